#include "core/root/sandbox_parts.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/os.h"

/* A rule of the list, and why it is there. */
struct seccomp_call {
	const char *names; /* with blanks between */
	int error;         /* what the caller gets */
	const char *why;
};

/* Lists what is refused, not what is allowed: compilers and build tools of every root have to work.
 * ENOSYS if programs then use another call, EPERM if they have no other. */
static const struct seccomp_call calls[] = {
	{"add_key request_key keyctl", ENOSYS,
	 "keys of the caller's session and user, which no namespace separates"},
	{"io_uring_setup io_uring_enter io_uring_register", ENOSYS,
	 "does what other calls do where no filter sees it; the kernel's largest source of flaws"},
	{"bpf perf_event_open", EPERM,
	 "programs and counters inside the kernel; they see other processes"},
	{"userfaultfd", EPERM, "stops the kernel in the middle of a copy, which exploits need"},
	{"kexec_load kexec_file_load reboot", EPERM, "another kernel"},
	{"init_module finit_module delete_module create_module query_module get_kernel_syms", EPERM,
	 "code in the kernel"},
	{"mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick "
	 "mount_setattr",
	 EPERM, "what is seen is settled before the build starts"},
	{"setns", EPERM, "other namespaces"},
	{"clone3", ENOSYS,
	 "its flags are in memory, where no filter sees them; programs fall back on clone"},
	{"openat2 fchmodat2", ENOSYS,
	 "their modes are not seen, or not by older lists; programs fall back"},
	{"ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd", EPERM,
	 "hands on other processes; no build needs a debugger"},
	{"open_by_handle_at name_to_handle_at", EPERM,
	 "files by number, past directories and mounts"},
	{"fanotify_init fanotify_mark", EPERM, "watches whole mounts"},
	{"swapon swapoff acct quotactl quotactl_fd", EPERM, "the machine's administration"},
	{"settimeofday clock_settime adjtimex clock_adjtime stime", EPERM, "the machine's clock"},
	{"sethostname setdomainname syslog vhangup", EPERM, "the machine's administration"},
	{"ioperm iopl modify_ldt vm86 vm86old", EPERM,
	 "ports and segments of the processor, flaws of the past"},
	{"lookup_dcookie uselib ustat sysfs _sysctl nfsservctl", ENOSYS,
	 "old, and nothing calls them"},
	{"move_pages migrate_pages", EPERM, "memory of other processes"},
	{"memfd_secret", ENOSYS, "memory that even the kernel's dumps leave out"},
};

/* A call refused for some values of its arguments: (argument
 * & mask) compared with value, of one or two of them. */
struct condition {
	const char *call;
	int error;
	struct scmp_arg_cmp args[2];
	unsigned count;
};

#define HAS(arg, bits) SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, (bits), (bits))
#define WORD(arg, value) SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, 0xffffffff, (value))

static int refuse(scmp_filter_ctx f, const struct condition *when)
{
	const uint32_t action = SCMP_ACT_ERRNO((unsigned)when->error);
	int number = seccomp_syscall_resolve_name(when->call);

	if (number == __NR_SCMP_ERROR || number < 0)
		return 0; /* this processor has no such call */
	return seccomp_rule_add_array(f, action, number, when->count, when->args);
}

static int refuse_when(scmp_filter_ctx f, const struct condition *list, size_t count)
{
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = refuse(f, &list[i]);
	return rc;
}

/* A program may talk to itself: AF_UNIX, AF_INET and AF_INET6 over loopback, and netlink's routes,
 * by which it discovers them. Each other family (AF_VSOCK to the host of a virtual machine, AF_ALG,
 * AF_PACKET...) either has no namespace that confines it or has had its flaws. Those above
 * AF_NETLINK share one rule, which also sees the upper half of the argument. */
static int refuse_families(scmp_filter_ctx f)
{
	static const char *const names[] = {"socket", "socketpair"};
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(names) && rc == 0; i++) {
		for (unsigned family = AF_INET + 1; family < AF_NETLINK && rc == 0; family++) {
			const struct condition one = {
				names[i], EAFNOSUPPORT, {SCMP_CMP64(0, SCMP_CMP_EQ, family, 0)}, 1};
			if (family != AF_INET6)
				rc = refuse(f, &one);
		}

		const struct condition above = {
			names[i], EAFNOSUPPORT, {SCMP_CMP64(0, SCMP_CMP_GT, AF_NETLINK, 0)}, 1};
		if (rc == 0)
			rc = refuse(f, &above);
	}

	static const struct condition netlink = {
		"socket",
		EPROTONOSUPPORT,
		{SCMP_CMP64(0, SCMP_CMP_EQ, AF_NETLINK, 0), SCMP_CMP64(2, SCMP_CMP_NE, 0, 0)},
		2};
	return rc ? rc : refuse(f, &netlink);
}

/* Namespaces give capabilities, and with them most of the kernel. */
static int refuse_name_spaces(scmp_filter_ctx f)
{
	static const unsigned long flags[] = {CLONE_NEWUSER,  CLONE_NEWNS,  CLONE_NEWPID,
					      CLONE_NEWNET,   CLONE_NEWIPC, CLONE_NEWUTS,
					      CLONE_NEWCGROUP};
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(flags) && rc == 0; i++) {
		const struct condition both[] = {{"clone", EPERM, {HAS(0, flags[i])}, 1},
						 {"unshare", EPERM, {HAS(0, flags[i])}, 1}};
		rc = refuse_when(f, both, ARRAY_LEN(both));
	}

	return rc;
}

/* A setuid file would be its owner's outside as well. A directory's setgid bit is left
 * alone: tools copy it, and files with it lose it when the build is over. The terminal: what
 * is typed into it by a program is typed by the user. */
static int refuse_modes(scmp_filter_ctx f)
{
	static const struct condition list[] = {
		{"chmod", EPERM, {HAS(1, S_ISUID)}, 1},
		{"fchmod", EPERM, {HAS(1, S_ISUID)}, 1},
		{"fchmodat", EPERM, {HAS(2, S_ISUID)}, 1},
		{"creat", EPERM, {HAS(1, S_ISUID)}, 1},
		{"open", EPERM, {HAS(1, O_CREAT), HAS(2, S_ISUID)}, 2},
		{"openat", EPERM, {HAS(2, O_CREAT), HAS(3, S_ISUID)}, 2},
		{"mknod", EPERM, {HAS(1, S_ISUID)}, 1},
		{"mknodat", EPERM, {HAS(2, S_ISUID)}, 1},
		{"ioctl", EPERM, {WORD(1, TIOCSTI)}, 1},
		{"ioctl", EPERM, {WORD(1, 0x541c /* TIOCLINUX */)}, 1},
	};

	return refuse_when(f, list, ARRAY_LEN(list));
}

/* Calls of kernels that came after this list (mseal, 462, is the last it knows)
 * are as if they were not there. All architectures have the same numbers there. */
enum { LAST_KNOWN = 462, LAST_NUMBER = 511, FCHMODAT2 = 452 };

static int refuse_new(scmp_filter_ctx f)
{
	int rc = seccomp_rule_add_array(f, SCMP_ACT_ERRNO(ENOSYS), FCHMODAT2, 0, NULL);

	for (int number = LAST_KNOWN + 1; number <= LAST_NUMBER && (rc == 0 || rc == -EEXIST);
	     number++)
		rc = seccomp_rule_add_array(f, SCMP_ACT_ERRNO(ENOSYS), number, 0, NULL);
	return rc == -EEXIST ? 0 : rc;
}

static int refuse_calls(scmp_filter_ctx f)
{
	AUTO_ARENA struct arena a = {0};
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(calls) && rc == 0; i++) {
		struct strlist names = {0};
		strlist_split(&names, &a, calls[i].names, " ");
		for (size_t k = 0; k < names.count && rc == 0; k++)
			if (strcmp(names.items[k], "fchmodat2") !=
			    0) /* refuse_new: older libraries have no name for it */
				rc = refuse(f, &(struct condition){.call = names.items[k],
								   .error = calls[i].error});
	}

	return rc;
}

int seccomp_filter(struct err *e)
{
	static int (*const parts[])(scmp_filter_ctx f) = {
		refuse_calls, refuse_families, refuse_name_spaces, refuse_modes, refuse_new};
	AUTO_FD int fd = os_memory_file();
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	int rc = fd < 0 || !f ? -ENOMEM : 0;

	/* Calls of another architecture (32-bit programs) end
	 * the program: their numbers mean something else. */
	if (rc == 0)
		rc = seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	/* A tree of comparisons in the place of a row of a hundred. */
	if (rc == 0)
		rc = seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	for (size_t i = 0; i < ARRAY_LEN(parts) && rc == 0; i++)
		rc = parts[i](f);
	if (rc == 0)
		rc = seccomp_export_bpf(f, fd);
	if (f)
		seccomp_release(f);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) != 0)
		rc = -errno;
	if (rc < 0) {
		errno = -rc;
		return err_errno(e, ERR_POLICY, "cannot make the filter of system calls");
	}

	return steal_fd(&fd);
}

bool seccomp_works(void)
{
	/* With no filter the kernel complains about the address, if it has filters. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) < 0 && errno == EFAULT;
}
