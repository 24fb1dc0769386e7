/* The protections of the sandbox, each alone. What gets
 * through when one is taken away shows that it stood. */
#include "sandbox_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_proc_is_read_only(void **state)
{
	(void)state;
	static const char lower[] = "echo 501 >/proc/self/oom_score_adj";
	assert_fails(lower, "Read-only file system");
	walled.without_protections = 1U << PROTECTION_PROC;
	assert_inside(lower, "");
}

static void test_the_kernel_kills_a_build_first(void **state)
{
	(void)state;
	assert_inside("cat /proc/self/oom_score_adj", "500\n");
	walled.without_protections = 1U << PROTECTION_LIMITS;
	assert_inside("cat /proc/self/oom_score_adj", "0\n");
}

/* refused: what a call of the C library says in the sandbox, by Python. */
static void assert_call(const char *call, const char *words)
{
	assert_inside(arena_printf(&arena,
				   "python3 -c 'import ctypes, os, socket\n"
				   "c = ctypes.CDLL(None, use_errno=True)\n"
				   "ctypes.set_errno(0)\n"
				   "%s\n"
				   "print(os.strerror(ctypes.get_errno()))'",
				   call),
		      words);
}

static void test_system_calls_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *call, *words;
	} cases[] = {
		{"c.syscall(425, 1, 0)", "Function not implemented\n"}, /* io_uring_setup */
		{"c.syscall(250, 0, 0)", "Function not implemented\n"}, /* keyctl */
		{"c.socket(40, 1, 0)", "Address family not supported by protocol\n"},
		{"c.socket(38, 5, 0)", "Address family not supported by protocol\n"},
		{"c.socket(16, 3, 12)", "Protocol not supported\n"},
		{"c.socket(16, 3, 0)", "Success\n"},
		{"c.ptrace(0, 0, 0, 0)", "Operation not permitted\n"},
		{"c.syscall(470, 0)", "Function not implemented\n"},
		{"c.chmod(b\"/tmp\", 0o4755)", "Operation not permitted\n"},
		{"c.chmod(b\"/tmp\", 0o2755)", "Success\n"},
		{"c.open(b\"/tmp/x\", os.O_CREAT | os.O_WRONLY, 0o4755)",
		 "Operation not permitted\n"},
	};
#if defined(__x86_64__)
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_call(cases[i].call, cases[i].words);
#else
	(void)cases;
#endif
	walled.without_protections = 1U << PROTECTION_SECCOMP;
	assert_call("c.chmod(b\"/tmp\", 0o4755)", "Success\n");
}

/* Pipes of the machine in what is shown read-only: mounts do not keep anybody from writing
 * into them. Where the kernel has no Landlock, doctor says so, and they are written. */
static void test_landlock_keeps_pipes(void **state)
{
	(void)state;
	static const char write_pipe[] = "echo through >/ptbuild/cfg/pipe";
	char text[16] = "";
	assert_int_equal(mkdir(test_path("shown"), 0755), 0);
	assert_int_equal(mkfifo(test_path("shown/pipe"), 0666), 0);
	assert_int_equal(chmod(test_path("shown/pipe"), 0666), 0);
	AUTO_FD int fd = open(test_path("shown/pipe"), O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	sandbox_add(&box, SANDBOX_RO, test_path("shown"), SANDBOX_CFG);
	printf("Landlock of this kernel: %d\n", landlock_version());
	if (landlock_version()) {
		assert_fails(write_pipe, "Permission denied");
		assert_int_equal(read(fd, text, sizeof(text)), -1);
		walled.without_protections = 1U << PROTECTION_LANDLOCK;
	}

	assert_inside(write_pipe, "");
	assert_int_equal(read(fd, text, sizeof(text)), strlen("through\n"));
}

/* bubblewrap's own process is there to a build, but no build's to touch. */
static void test_landlock_keeps_other_processes(void **state)
{
	(void)state;
	static const char signal[] = "kill -0 1";
	if (landlock_version() >= 6) {
		assert_fails(signal, "Operation not permitted");
		walled.without_protections = 1U << PROTECTION_LANDLOCK;
	}

	assert_inside(signal, "");
}

/* What compilers, linkers and their caches do, and streams that lie outside of what is shown. */
static void test_landlock_lets_builds_work(void **state)
{
	(void)state;
	show_rw("src", SANDBOX_SRC);
	assert_inside("cd /ptbuild/src && mkdir a b && echo 1 >a/x && mv a/x b/y && ln b/y a/z && "
		      "mkfifo a/p && "
		      "ln -s z a/l && echo 2 >>a/z && truncate -s 2 b/y && cat a/l && rm -r a b",
		      "1\n");
	assert_inside("for d in /tmp /dev/shm /ptbuild/home; do echo $d >$d/x && cat $d/x; done",
		      "/tmp\n/dev/shm\n/ptbuild/home\n");
	assert_inside("cp /bin/true /tmp/run && /tmp/run && cat /dev/stdin && echo x >/dev/null && "
		      "echo y",
		      "y\n");
	assert_inside(
		"python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))'",
		"[1, 2]\n");
}

/* stopped: the error that ends the script. */
static void assert_stopped(const char *script, const char *words, const char *option)
{
	struct err e = {0};
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct proc_spec spec = {.timeout_s = 60, .log_path = test_path("log")};
	struct proc_result res = {0};

	assert_err(sandbox_run(&box, argv, &spec, &walled, &res, &e), &e, ERR_BUILD, words);
	assert_contains(e.hint, option);
}

/* Whatever umask root has: what ptbuild shows of its own can be
 * read, what belongs to the root or to others is left as it is. */
static void test_own_files_can_be_read(void **state)
{
	(void)state;
	struct err e = {0};
	static const char *const argv[] = {"true", NULL};
	AUTO_BUF struct buf out = {0};
	assert_int_equal(mkdir(test_path("own"), 0700), 0);
	assert_int_equal(mkdir(test_path("own/more"), 0700), 0);
	test_write(test_path("own/more/file"), "text");
	assert_int_equal(chmod(test_path("own/more/file"), 0600), 0);
	sandbox_add(&box, SANDBOX_RO, test_path("own"), SANDBOX_CFG);
	assert_inside(
		"cat /ptbuild/cfg/more/file; echo x 2>/dev/null >/ptbuild/cfg/more/file || echo no",
		"textno\n");
	if (build_user_state() != BUILD_USER_OWN)
		return;
	sandbox_add(&box, SANDBOX_RO, test_path("own"), "/opt/own");
	assert_err(sandbox_capture(&box, argv, &walled, &out, &e), &e, ERR_POLICY,
		   "the build's user cannot read");
	assert_contains(e.hint, "chmod -R a+rX");
}

static void test_limits_stop_a_program(void **state)
{
	(void)state;
	walled.limits = (struct run_limits){.log = 100000};
	assert_stopped("while :; do echo a line of output that says nothing; done", "of output",
		       "--max-log");
	walled.limits = (struct run_limits){.silence = 1};
	assert_stopped("sleep 60", "wrote nothing for 1 s", "--max-silence");
	walled.limits = (struct run_limits){.time = 1};
	assert_stopped("while :; do echo x; sleep 0.1; done", "more than 1 s", "--max-time");
	walled.limits = (struct run_limits){.processes = 20};
	assert_stopped("for i in $(seq 40); do sleep 60 & done; wait", "processes and threads",
		       "--max-processes");
	show_rw("src", SANDBOX_SRC);
	walled.limits = (struct run_limits){.disk = 1 << 20};
	assert_stopped("for i in 1 2 3 4; do head -c 1000000 /dev/urandom >/ptbuild/src/$i; done; "
		       "sleep 60",
		       "its files reached", "--max-disk");
}

/* What cannot be measured is not let go on. */
static void test_nothing_hides_from_the_disk_limit(void **state)
{
	(void)state;
	show_rw("src", SANDBOX_SRC);
	walled.limits = (struct run_limits){.disk = 1 << 20};
	assert_stopped("cd /ptbuild/src; for i in $(seq 520); do mkdir d; cd d; done; "
		       "head -c 3000000 /dev/urandom >x; sleep 60",
		       "cannot be measured: directories nested more than 512 deep", "--max-disk");
}

static void test_memory_is_limited(void **state)
{
	(void)state;
	walled.limits = (struct run_limits){.memory = 200 << 20};
	assert_stopped("for i in 1 2 3 4; do python3 -c 'x = bytearray(100 << 20); import time; "
		       "time.sleep(60)' & done; wait",
		       "memory use reached", "--max-memory");
	assert_fails("python3 -c 'bytearray(300 << 20)'", "MemoryError");
	assert_fails("head -c 150000000 /dev/zero >/ptbuild/tmp/x", "No space left");
}

static void test_names(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist names = {0};
	unsigned without = 0;
	strlist_split(&names, &arena, "seccomp user", " ");
	assert_ok(sandbox_protections_parse(&names, &without, &e), &e);
	assert_int_equal(without, 1U << PROTECTION_SECCOMP | 1U << PROTECTION_USER);
	assert_string_equal(sandbox_text(SANDBOX_BWRAP, without, &arena),
			    "bubblewrap without user, seccomp");
	assert_string_equal(sandbox_text(SANDBOX_BWRAP, 0, &arena), "bubblewrap");
	assert_string_equal(sandbox_text(SANDBOX_NONE, 0, &arena), "none");
	strlist_ref(&names, &arena, "moat");
	assert_err(sandbox_protections_parse(&names, &without, &e), &e, ERR_USAGE,
		   "unknown protection 'moat'");
	assert_contains(e.hint, "seccomp");
}

/* What a build could read of a process outside is the way to files outside. */
static void test_shared_proc_shows_no_more_than_names(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	char script[600];
	walled.without_protections = 1U << PROTECTION_PROCESSES;
	snprintf(script, sizeof(script),
		 "p=/proc/%d; test -r $p/comm || echo unseen; "
		 "for f in environ maps auxv; do head -c 1 $p/$f && echo reads $f; done "
		 "2>/dev/null; "
		 "for d in root cwd; do ls $p/$d/ && echo lists $d; done 2>/dev/null; "
		 /* a process of the same user has numbers there, and they lead nowhere */
		 "for n in 0 1 2; do true <$p/fd/$n && echo opens $n; done 2>/dev/null; "
		 "for n in 0 1 2; do readlink $p/fd/$n && echo follows $n; done; "
		 "kill -0 ${p#/proc/} 2>/dev/null && echo kills; echo end",
		 getpid());
	assert_int_equal(inside(&out, script), 0);
	assert_string_equal(buf_cstr(&out), "end\n");
	assert_fails("exec 3>/proc/self/oom_score_adj", "Read-only file system");
	assert_fails("exec 3>>/proc/sys/kernel/core_pattern", "");
	assert_int_not_equal(inside(&out, "unshare --user true"), 0);
	assert_inside("cat /proc/self/comm", "cat\n");
}

static void test_each_is_shown(void **state)
{
	(void)state;
	const struct sandbox_protection_state *w;
	walled.without_protections = 1U << PROTECTION_PROC;
	size_t count = sandbox_protections_look(SANDBOX_BWRAP, &walled, &arena, &w);
	assert_int_equal(count, SANDBOX_PROTECTIONS + 1);
	for (size_t i = 0; i < count; i++) {
		bool stands = strcmp(w[i].name, "landlock") == 0 ? landlock_version() > 0 : true;
		assert_int_equal(w[i].stands, stands && strcmp(w[i].name, "proc") != 0);
	}

	assert_int_equal(sandbox_protections_look(SANDBOX_NONE, &walled, &arena, &w), 0);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_names),
		T(test_each_is_shown),
		T(test_shared_proc_shows_no_more_than_names),
		T(test_proc_is_read_only),
		T(test_the_kernel_kills_a_build_first),
		T(test_system_calls_are_refused),
		T(test_landlock_keeps_pipes),
		T(test_landlock_keeps_other_processes),
		T(test_landlock_lets_builds_work),
		T(test_own_files_can_be_read),
		T(test_limits_stop_a_program),
		T(test_nothing_hides_from_the_disk_limit),
		T(test_memory_is_limited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
