#include "sandbox_fixture.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void test_environment_is_exact(void **state)
{
	(void)state;
	setenv("PTBUILD_SECRET", "hunter2", 1);
	kvlist_set(&box.env, &arena, "EMPTY", "");
	kvlist_set(&box.env, &arena, "ODD", "a b=c\"$HOME'\n--");
	assert_inside("env -0 | sort -z | tr '\\0' '|'",
		      "EMPTY=|ODD=a b=c\"$HOME'\n--|PATH=" ROOT_PATH "|PWD=/|");
}

static void test_no_environment_of_the_host_in_any_process(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	setenv("PTBUILD_SECRET", "hunter2", 1);
	inside(&out, "cat /proc/[0-9]*/environ");
	assert_contains(buf_cstr(&out), "PATH=");
	assert_null(memmem(out.data, out.len, "hunter2", 7));
}

static void test_no_host_path_on_any_command_line(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	show_rw("src", SANDBOX_SRC);
	inside(&out, "cat /proc/[0-9]*/cmdline");
	assert_non_null(memmem(out.data, out.len, "--args", 6));
	assert_null(memmem(out.data, out.len, "ptbuild-test", 12));
}

static void test_user_and_host_name(void **state)
{
	(void)state;
	assert_inside("id -u; id -g; id -un; cat /proc/sys/kernel/hostname",
		      "1000\n1000\nptbuild\nptbuild\n");
}

static void test_umask_is_fixed(void **state)
{
	(void)state;
	mode_t before = umask(077);
	assert_inside("umask", "0022\n");
	umask(before);
}

static void test_cwd(void **state)
{
	(void)state;
	show_rw("src", SANDBOX_SRC);
	box.cwd = SANDBOX_SRC;
	assert_inside("pwd -P; echo $PWD", SANDBOX_SRC "\n" SANDBOX_SRC "\n");
}

static void test_cwd_that_is_not_there(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf out = {0};
	box.cwd = "/ptbuild/nowhere";
	assert_err(sandbox_capture(&box, (const char *const[]){"true", NULL}, test_run(), &out, &e),
		   &e, ERR_SYSTEM, "/ptbuild/nowhere");
}

static void test_passwd_is_made_up(void **state)
{
	(void)state;
	assert_inside("cut -d: -f1 /etc/passwd | tr '\\n' ' '; cut -d: -f1 /etc/group",
		      "root ptbuild nobody root\nptbuild\nnogroup\n");
}

static void test_names_of_services_are_known(void **state)
{
	(void)state;
	assert_inside("getent services http | cut -c1-4; getent protocols tcp | cut -c1-3",
		      access("/etc/services", F_OK) == 0 ? "http\ntcp\n" : "");
}

/* A program's own servers listen on a name; the
 * machine's names and addresses are nobody's business. */
static void test_hosts_is_made_up(void **state)
{
	(void)state;
	assert_inside("cat /etc/hosts; getent hosts localhost ptbuild | cut -d' ' -f1",
		      "127.0.0.1 localhost ptbuild\n::1 localhost\n::1\n127.0.0.1\n");
}

static void test_data_file(void **state)
{
	(void)state;
	sandbox_add(&box, SANDBOX_DATA, "some text", "/ptbuild/note");
	assert_inside("cat /ptbuild/note; (echo more >> /ptbuild/note) 2>/dev/null || echo ' kept'",
		      "some text kept\n");
}

static void test_many_variables(void **state)
{
	(void)state;
	char name[32];
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "V%d", i);
		kvlist_set(&box.env, &arena, name,
			   "a value of about one hundred bytes, so that all of them together are "
			   "longer than one "
			   "argument");
	}

	assert_inside("env | grep -c ^V", "2000\n");
}

/* A listener on the host's loopback; its port. */
static int listen_on_host(unsigned *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	*port = ntohs(at.sin_port);
	return fd;
}

static void test_no_way_to_the_hosts_loopback(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	char script[128];
	unsigned port;
	AUTO_FD int fd = listen_on_host(&port);
	assert_true(fd >= 0);
	snprintf(script, sizeof(script),
		 "bash -c 'exec 3<>/dev/tcp/127.0.0.1/%u && echo connected'", port);
	assert_fails(script, "Connection refused");
	/* The same script reaches the listener once the network
	 * is shared: the refusal above is the sandbox's. */
	box.network = true;
	assert_int_equal(inside(&out, script), 0);
	assert_string_equal(buf_cstr(&out), "connected\n");
}

static void test_no_way_out(void **state)
{
	(void)state;
	assert_fails("bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'", "Network is unreachable");
	assert_fails("bash -c 'exec 3<>/dev/udp/192.0.2.1/53'", "Network is unreachable");
}

static void test_loopback_is_its_own(void **state)
{
	(void)state;
	assert_inside("sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '", "lo\n");
}

static void test_no_abstract_sockets_of_the_host(void **state)
{
	(void)state;
	struct sockaddr_un {
		sa_family_t family;
		char path[32];
	} at = {.family = AF_UNIX, .path = "\0ptbuild-test-abstract"};
	AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_inside("grep -c ptbuild-test-abstract /proc/net/unix || true", "0\n");
}

static void test_root_is_read_only(void **state)
{
	(void)state;
	static const char *const places[] = {"/usr/evil",     "/etc/evil",
					     "/evil",         "/usr/bin/evil",
					     "/ptbuild/evil", "/etc/alternatives/evil"};
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		char script[128];
		struct stat st;
		snprintf(script, sizeof(script), "touch %s", places[i]);
		assert_fails(script, "Read-only file system");
		assert_int_not_equal(lstat(places[i], &st), 0);
	}
}

static void test_writable_where_told(void **state)
{
	(void)state;
	show_rw("src", SANDBOX_SRC);
	assert_inside("echo text > /ptbuild/src/file", "");
	char *text = test_read(test_path("src/file"));
	assert_string_equal(text, "text\n");
	free(text);
	struct stat st;
	assert_int_equal(stat(test_path("src/file"), &st), 0);
	assert_int_equal(st.st_uid, geteuid() == 0 ? BUILD_USER : geteuid());
	assert_int_equal(st.st_mode & 0777, 0644);
}

static void test_read_only_where_told(void **state)
{
	(void)state;
	test_write(test_path("cfg/file"), "as it was");
	sandbox_add(&box, SANDBOX_RO, test_path("cfg"), SANDBOX_CFG);
	assert_inside("cat /ptbuild/cfg/file", "as it was");
	assert_fails("echo no > /ptbuild/cfg/file", "Read-only file system");
	assert_fails("rm /ptbuild/cfg/file", "Read-only file system");
	char *text = test_read(test_path("cfg/file"));
	assert_string_equal(text, "as it was");
	free(text);
}

static void test_home_and_temporary_directories(void **state)
{
	(void)state;
	assert_inside("for d in /tmp /ptbuild/home /ptbuild/tmp; do ls -A $d; echo x > $d/x; cat "
		      "$d/x; done",
		      "x\nx\nx\n");
	assert_inside("ls -A /tmp /ptbuild/home /ptbuild/tmp | grep -v :", "\n\n");
}

static void test_nothing_else_is_there(void **state)
{
	(void)state;
	assert_inside("for p in /home /root /run /var /sys /boot /mnt /media /srv /opt /etc/shadow "
		      "/etc/gshadow "
		      "/etc/ssh /etc/apt; do "
		      "[ ! -e $p ] || echo $p; done",
		      "");
	assert_inside("ls -A /ptbuild", landlock_version() ? "home\ninside\ntmp\n" : "home\ntmp\n");
}

static void test_the_hosts_files_are_out_of_sight(void **state)
{
	(void)state;
	char script[512];
	test_write(test_path("secret"), "hunter2");
	snprintf(script, sizeof(script), "cat '%s'", test_path("secret"));
	assert_fails(script, "No such file");
	snprintf(script, sizeof(script), "ls '%s'",
		 getenv("HOME") && strcmp(getenv("HOME"), "/") != 0 ? getenv("HOME") : "/root");
	assert_fails(script, "No such file");
}

/* Opened for writing, with nothing written: through
 * core_pattern root would run programs outside. */
static void test_settings_of_the_kernel_are_read_only(void **state)
{
	(void)state;
	assert_inside("grep -o ' /proc/sys proc r[ow]' /proc/mounts", " /proc/sys proc ro\n");
	assert_inside("test -r /proc/sys/kernel/core_pattern", "");
	assert_fails("exec 3>>/proc/sys/kernel/core_pattern", "Permission denied");
	/* As it was when a build was root: one protection is left. */
	walled.without_protections = 1U << PROTECTION_USER;
	assert_fails("exec 3>>/proc/sys/kernel/core_pattern",
		     geteuid() == 0 ? "Read-only file system" : "Permission denied");
}

/* pip of Debian 13 opens the bundle when it is imported. Keys are never shown. */
static void test_certificates_are_shown_and_keys_are_not(void **state)
{
	(void)state;
	static const char bundle[] = "/etc/ssl/certs/ca-certificates.crt";
	assert_inside("ls /etc/ssl 2>/dev/null || true",
		      access("/etc/ssl/certs", F_OK) == 0 ? "certs\n" : "");
	if (access(bundle, R_OK) == 0)
		assert_inside(arena_printf(&arena, "head -c 1 %s >/dev/null && echo read", bundle),
			      "read\n");
}

static void test_few_devices(void **state)
{
	(void)state;
	assert_inside("cd /dev; for f in *; do [ -b $f ] && echo block; [ ! -L $f ] && [ -c $f ] "
		      "&& printf '%s ' $f; "
		      "done; true",
		      "full null random tty urandom zero ");
}

static void test_own_processes_only(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	inside(&out, "ls /proc | grep -c '^[0-9]'");
	assert_in_range(atoi(buf_cstr(&out)), 2, 6);
	char script[64];
	/* This process's own number means nothing inside, or somebody else. */
	snprintf(script, sizeof(script), "kill -9 %d", getpid());
	inside(&out, script);
	assert_inside("cat /proc/1/comm", "bwrap\n");
}

static void test_no_capabilities(void **state)
{
	(void)state;
	assert_inside(
		"grep -E '^(CapPrm|CapEff|CapInh|CapAmb|NoNewPrivs)' /proc/self/status | tr -d "
		"'\\t'",
		"CapInh:0000000000000000\nCapPrm:0000000000000000\nCapEff:0000000000000000\nCapAmb:"
		"0000000000000000\nNoNewPrivs:1\n");
}

static void test_no_name_space_of_its_own(void **state)
{
	(void)state;
	assert_fails("unshare --user --map-root-user true", "unshare");
	assert_fails("unshare --mount true", "not permitted");
	assert_fails("mount -o remount,rw /usr", "mount");
}

static void test_setuid_does_nothing(void **state)
{
	(void)state;
	show_rw("src", SANDBOX_SRC);
	inside(&(struct buf){0}, "cp /usr/bin/id /ptbuild/src/id");
	assert_int_equal(chmod(test_path("src/id"), 06755), 0);
	assert_inside("/ptbuild/src/id -u; /ptbuild/src/id -ru", "1000\n1000\n");
}

static void test_exit_status_comes_through(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	assert_int_equal(inside(&out, "exit 7"), 7);
	assert_int_equal(inside(&out, "kill -9 $$"), 137);
	assert_int_equal(inside(&out, "exit 1"), 1);
}

/* What a program says in bubblewrap's name does not make its failure one of the sandbox. */
static void test_a_program_cannot_speak_for_the_sandbox(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	assert_int_equal(inside(&out, "echo 'bwrap: No permissions' >&2; exit 1"), 1);
	assert_string_equal(buf_cstr(&out), "bwrap: No permissions\n");
}

static void on_line(const char *line, size_t len, void *user)
{
	struct buf *out = user;
	buf_add(out, line, len);
	buf_addc(out, '/');
}

static void test_lines_go_to_the_caller(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf out = {0};
	struct proc_spec spec = {.on_line = on_line, .user = &out};
	struct proc_result res;
	assert_ok(sandbox_run(&box,
			      (const char *const[]){"sh", "-c", "echo one; echo bwrap: two", NULL},
			      &spec, test_run(), &res, &e),
		  &e);
	assert_string_equal(buf_cstr(&out), "one/bwrap: two/");
	assert_ptr_equal(spec.on_line, on_line);
	assert_ptr_equal(spec.user, &out);
}

static void test_missing_program(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf out = {0};
	assert_err(sandbox_capture(&box, (const char *const[]){"no-such-program", NULL}, test_run(),
				   &out, &e),
		   &e, ERR_SYSTEM, "cannot start 'no-such-program'");
	assert_contains(e.msg, "No such file");
}

static void test_empty_command(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist out = {0};
	AUTO_BUF struct buf text = {0};
	assert_err(sandbox_argv(&box, (const char *const[]){NULL}, &out, &e), &e, ERR_USAGE,
		   "no program");
	assert_err(sandbox_capture(&box, (const char *const[]){"", NULL}, test_run(), &text, &e),
		   &e, ERR_USAGE, "no program");
}

static void test_missing_source(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf out = {0};
	sandbox_add(&box, SANDBOX_RO, "/no/such/dir", SANDBOX_CFG);
	assert_err(sandbox_capture(&box, (const char *const[]){"true", NULL}, test_run(), &out, &e),
		   &e, ERR_SYSTEM, "'/no/such/dir'");
	assert_contains(e.msg, SANDBOX_CFG);
}

static void test_capture(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf out = {0};
	assert_ok(sandbox_capture(&box,
				  (const char *const[]){"sh", "-c", "echo out; echo err >&2", NULL},
				  test_run(), &out, &e),
		  &e);
	assert_string_equal(buf_cstr(&out), "out\n");
	assert_err(sandbox_capture(&box,
				   (const char *const[]){"sh", "-c",
							 "echo out; echo the reason >&2; exit 3",
							 NULL},
				   test_run(), &out, &e),
		   &e, ERR_BUILD, "exit status 3: the reason");
	assert_err(sandbox_capture(&box,
				   (const char *const[]){"sh", "-c", "echo half; kill -9 $$", NULL},
				   test_run(), &out, &e),
		   &e, ERR_SYSTEM, "'sh' was killed by signal 9");
	assert_string_equal(buf_cstr(&out), "out\n");
}

static void test_probe(void **state)
{
	(void)state;
	struct err e = {0};
	assert_ok(sandbox_probe(&host, test_run(), &e), &e);
}

/* Sets the caller's PATH and gives the old one, for setting it back. */
static const char *swap_path(const char *path)
{
	const char *old = arena_strdup(&arena, getenv("PATH"));
	setenv("PATH", path, 1);
	return old;
}

static void test_bubblewrap_is_missing(void **state)
{
	(void)state;
	struct err e = {0};
	const char *path = swap_path(test_path("empty"));
	int rc = sandbox_probe(&host, test_run(), &e);
	swap_path(path);
	assert_int_equal(rc, -1);
	assert_int_equal(e.kind, ERR_SYSTEM);
	assert_contains(e.msg, "bubblewrap");
	assert_contains(e.hint, "install bubblewrap");
}

static void test_without_one_the_program_is_that_of_the_environment(void **state)
{
	(void)state;
	struct err e = {0};
	struct sandbox plain;
	AUTO_BUF struct buf out = {0};
	const char *const programs[] = {"build", "caller"};
	assert_ok(sandbox_init(&plain, SANDBOX_NONE, &host, &arena, &e), &e);
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		const char *file = test_path("%s/which-one", programs[i]);
		const char *text =
			arena_printf(&arena, "#!/bin/sh\necho of %s: \"$0\"\n", programs[i]);
		test_write(file, text);
		chmod(file, 0755);
	}

	kvlist_set(&plain.env, &arena, "PATH",
		   arena_printf(&arena, "%s:/usr/bin:/bin", test_path("build")));
	const char *path = swap_path(arena_printf(&arena, "%s:/usr/bin:/bin", test_path("caller")));
	int rc = sandbox_capture(&plain, (const char *const[]){"which-one", NULL}, test_run(), &out,
				 &e);
	swap_path(path);
	assert_ok(rc, &e);
	assert_string_equal(buf_cstr(&out),
			    arena_printf(&arena, "of build: %s\n", test_path("build/which-one")));
}

/* What bubblewrap says in a container, and what its user can change. */
static void test_hint_names_what_the_container_lacks(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"cannot open /proc/sys/user/max_user_namespaces: Read-only file system",
		 "systempaths=unconfined"},
		{"Can't mount proc on /newroot/proc: Operation not permitted",
		 "--without-protection processes"},
		{"Can't set hostname to ptbuild: Operation not permitted",
		 "profiles/container/seccomp.json"},
		{"setting up uid map: Operation not permitted", "--user 1000"},
		{"setuid use of bubblewrap is not supported", "--without-protection user"},
	};
	const char *path =
		swap_path(arena_printf(&arena, "%s:%s", test_path("bin"), getenv("PATH")));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = {0};
		test_write(test_path("bin/bwrap"),
			   arena_printf(&arena, "#!/bin/sh\necho \"bwrap: %s\" >&2\nexit 1\n",
					cases[i][0]));
		chmod(test_path("bin/bwrap"), 0755);
		int rc = sandbox_probe(&host, test_run(), &e);
		assert_int_equal(rc, -1);
		assert_int_equal(e.kind, ERR_POLICY);
		assert_contains(e.msg, cases[i][0]);
		assert_contains(e.hint, cases[i][1]);
	}

	swap_path(path);
}

static void test_bubblewrap_cannot_work(void **state)
{
	(void)state;
	struct err e = {0};
	test_write(test_path("bin/bwrap"),
		   "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n");
	chmod(test_path("bin/bwrap"), 0755);
	const char *path =
		swap_path(arena_printf(&arena, "%s:%s", test_path("bin"), getenv("PATH")));
	int rc = sandbox_probe(&host, test_run(), &e);
	test_write(test_path("bin/bwrap"), "#!/bin/sh\necho '/tmp/bwrap: error while loading "
					   "shared libraries: libcap.so.2: not there' >&2\n"
					   "exit 127\n");
	struct err loader = {0};
	assert_int_equal(sandbox_probe(&host, test_run(), &loader), -1);
	assert_int_equal(loader.kind, ERR_SYSTEM);
	assert_contains(
		loader.msg,
		"cannot start bubblewrap: /tmp/bwrap: error while loading shared libraries: "
		"libcap.so.2");
	swap_path(path);
	assert_int_equal(rc, -1);
	assert_int_equal(e.kind, ERR_POLICY);
	assert_contains(e.msg, "No permissions to create new namespace");
	assert_contains(e.hint, "user namespaces");
	assert_contains(e.hint, "--sandbox none");
}

static bool alive(const char *mark)
{
	bool found = false;
	DIR *d = opendir("/proc");

	assert_non_null(d);
	for (struct dirent *entry; !found && (entry = readdir(d));) {
		char path[300], text[512] = {0};
		snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
		if (fd >= 0)
			close(fd);
		found = n > 0 && memmem(text, (size_t)n, mark, strlen(mark)) &&
			strncmp(text, "sleep", 5) == 0;
	}

	closedir(d);
	return found;
}

static bool becomes(bool want, const char *mark)
{
	for (int i = 0; i < 15000; i++) { /* five minutes: against hanging alone */
		if (alive(mark) == want)
			return true;
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}

	return false;
}

static void test_dies_with_its_parent(void **state)
{
	(void)state;
	char mark[64];
	int status;
	snprintf(mark, sizeof(mark), "1000.%d", getpid());
	pid_t pid = fork();
	if (pid == 0) {
		struct err e = {0};
		struct proc_spec spec = {0};
		struct proc_result res;
		/* In a session of its own and deaf to hangups:
		 * only the end of the namespace ends it. */
		const char *const argv[] = {"setsid", "nohup", "sleep", mark, NULL};
		_exit(sandbox_run(&box, argv, &spec, test_run(), &res, &e) == 0 ? 0 : 1);
	}

	assert_true(pid > 0);
	assert_true(becomes(true, mark));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(becomes(false, mark));
}

static void test_timeout_ends_everything(void **state)
{
	(void)state;
	struct err e = {0};
	char mark[64];
	struct proc_spec spec = {.timeout_s = 1};
	struct proc_result res;
	snprintf(mark, sizeof(mark), "2000.%d", getpid());
	const char *const argv[] = {"setsid", "sleep", mark, NULL};
	assert_err(sandbox_run(&box, argv, &spec, test_run(), &res, &e), &e, ERR_SYSTEM, "bwrap");
	assert_true(becomes(false, mark));
}

static void test_background_processes_end_with_the_program(void **state)
{
	(void)state;
	char mark[64], script[128];
	snprintf(mark, sizeof(mark), "3000.%d", getpid());
	snprintf(script, sizeof(script), "setsid sleep %s >/dev/null 2>&1 & sleep 0.2", mark);
	assert_inside(script, "");
	assert_true(becomes(false, mark));
}

/* An ordinary user: nobody, when the tests run as root. */
static void test_works_for_an_ordinary_user(void **state)
{
	(void)state;
	int status;
	show_rw("src", SANDBOX_SRC);
	assert_int_equal(chmod(test_path("src"), 0777), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct err e = {0};
		AUTO_BUF struct buf out = {0};
		static const char *const argv[] = {
			"sh", "-c",
			"id -u && echo x > /ptbuild/src/x && ! touch /usr/x 2>/dev/null && "
			"! cat /etc/shadow 2>/dev/null",
			NULL};
		if (geteuid() == 0 &&
		    (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0))
			_exit(10);
		int rc = sandbox_capture(&box, argv, test_run(), &out, &e);
		if (rc != 0)
			fprintf(stderr, "%s\n", e.msg);
		_exit(rc != 0 ? 11 : strcmp(buf_cstr(&out), "1000\n") != 0 ? 12 : 0);
	}

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	struct stat st;
	assert_int_equal(stat(test_path("src/x"), &st), 0);
	assert_int_equal(st.st_uid, geteuid() == 0 ? 65534 : geteuid());
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_environment_is_exact),
		T(test_no_environment_of_the_host_in_any_process),
		T(test_no_host_path_on_any_command_line),
		T(test_user_and_host_name),
		T(test_umask_is_fixed),
		T(test_cwd),
		T(test_cwd_that_is_not_there),
		T(test_passwd_is_made_up),
		T(test_names_of_services_are_known),
		T(test_hosts_is_made_up),
		T(test_data_file),
		T(test_many_variables),
		T(test_no_way_to_the_hosts_loopback),
		T(test_no_way_out),
		T(test_loopback_is_its_own),
		T(test_no_abstract_sockets_of_the_host),
		T(test_root_is_read_only),
		T(test_writable_where_told),
		T(test_read_only_where_told),
		T(test_home_and_temporary_directories),
		T(test_nothing_else_is_there),
		T(test_the_hosts_files_are_out_of_sight),
		T(test_settings_of_the_kernel_are_read_only),
		T(test_certificates_are_shown_and_keys_are_not),
		T(test_few_devices),
		T(test_own_processes_only),
		T(test_no_capabilities),
		T(test_no_name_space_of_its_own),
		T(test_setuid_does_nothing),
		T(test_exit_status_comes_through),
		T(test_a_program_cannot_speak_for_the_sandbox),
		T(test_lines_go_to_the_caller),
		T(test_missing_program),
		T(test_empty_command),
		T(test_missing_source),
		T(test_capture),
		T(test_probe),
		T(test_bubblewrap_is_missing),
		T(test_without_one_the_program_is_that_of_the_environment),
		T(test_hint_names_what_the_container_lacks),
		T(test_bubblewrap_cannot_work),
		T(test_dies_with_its_parent),
		T(test_timeout_ends_everything),
		T(test_background_processes_end_with_the_program),
		T(test_works_for_an_ordinary_user),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
