#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strlist.h"
#include "base/sys/proc.h"

#define SH(script) ((const char *const[]){"sh", "-c", (script), NULL})

static struct proc_result run_ok(const struct proc_spec *spec)
{
	struct err e = {0};
	struct proc_result r = {.status = -1};

	assert_ok(proc_run(spec, test_run(), &r, &e), &e);
	return r;
}

static void output_is_appended(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	buf_addstr(&out, "> ");
	struct proc_result r =
		run_ok(&(struct proc_spec){.argv = SH("printf 'one\\ntwo'"), .out = &out});
	assert_int_equal(r.status, 0);
	assert_int_equal(r.signal, 0);
	assert_string_equal(buf_cstr(&out), "> one\ntwo");
}

static void both_streams_go_to_one_buffer_in_order(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	run_ok(&(struct proc_spec){.argv = SH("echo a; echo b >&2; echo c; echo d >&2"),
				   .out = &out});
	assert_string_equal(buf_cstr(&out), "a\nb\nc\nd\n");
}

static void streams_can_be_kept_apart(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	AUTO_BUF struct buf err = {0};
	run_ok(&(struct proc_spec){
		.argv = SH("echo a; echo b >&2; echo c"), .out = &out, .err = &err});
	assert_string_equal(buf_cstr(&out), "a\nc\n");
	assert_string_equal(buf_cstr(&err), "b\n");
	buf_reset(&err);
	run_ok(&(struct proc_spec){.argv = SH("echo a; echo b >&2"), .err = &err});
	assert_string_equal(buf_cstr(&err), "b\n");
}

static void output_nobody_wants_is_discarded(void **state)
{
	(void)state;
	struct proc_result r = run_ok(
		&(struct proc_spec){.argv = SH("head -c 1000000 /dev/zero; echo x >&2; exit 3")});
	assert_int_equal(r.status, 3);
}

static void exit_status_is_a_result(void **state)
{
	(void)state;
	assert_int_equal(run_ok(&(struct proc_spec){.argv = SH("exit 0")}).status, 0);
	assert_int_equal(run_ok(&(struct proc_spec){.argv = SH("exit 255")}).status, 255);
}

static void signal_deaths_are_told(void **state)
{
	(void)state;
	struct proc_result r = run_ok(&(struct proc_spec){.argv = SH("kill -SEGV $$")});
	assert_int_equal(r.signal, SIGSEGV);
	assert_int_equal(r.status, 128 + SIGSEGV);
}

static void missing_program_is_named(void **state)
{
	(void)state;
	struct err e = {0};
	struct proc_result r = {.status = 77};
	const struct proc_spec bare = {.argv = (const char *const[]){"no-such-program-x", NULL}};
	assert_err(proc_run(&bare, test_run(), &r, &e), &e, ERR_SYSTEM,
		   "program not found: 'no-such-program-x'");
	assert_contains(e.hint, "PATH");
	const struct proc_spec full = {.argv = (const char *const[]){"/proc/none/cc", NULL}};
	assert_err(proc_run(&full, test_run(), &r, &e), &e, ERR_SYSTEM,
		   "cannot start '/proc/none/cc': No such file");
	const struct proc_spec dir = {.argv = (const char *const[]){"/usr", NULL}};
	assert_err(proc_run(&dir, test_run(), &r, &e), &e, ERR_SYSTEM,
		   "cannot start '/usr': Permission denied");
	assert_int_equal(r.status, 77);
}

static void missing_directory_is_named(void **state)
{
	(void)state;
	struct err e = {0};
	struct proc_result r;
	const struct proc_spec spec = {.argv = SH("true"), .cwd = "/proc/none/d"};
	assert_err(proc_run(&spec, test_run(), &r, &e), &e, ERR_SYSTEM,
		   "cannot start 'sh' in '/proc/none/d': No such file");
}

static void directory_and_environment_are_set(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	test_dir();
	test_write(test_path("sub/f"), "");
	const char *const env[] = {"A=1", "PATH=/usr/bin:/bin", NULL};
	run_ok(&(struct proc_spec){
		.argv = SH("ls; env | grep -v -e ^_ -e ^PWD -e ^OLDPWD -e ^SHLVL | sort"),
		.envp = env,
		.cwd = test_path("sub"),
		.out = &out});
	assert_string_equal(buf_cstr(&out), "f\nA=1\nPATH=/usr/bin:/bin\n");
}

static void environment_is_inherited_by_default(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	setenv("PTBUILD_TEST_VARIABLE", "here", 1);
	run_ok(&(struct proc_spec){.argv = SH("printf %s \"$PTBUILD_TEST_VARIABLE\""),
				   .out = &out});
	assert_string_equal(buf_cstr(&out), "here");
}

static void child_starts_clean(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	int leak = open("/dev/null", O_RDONLY); /* without CLOEXEC on purpose */
	signal(SIGPIPE, SIG_IGN);
	sigset_t set, old;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, &old);
	run_ok(&(struct proc_spec){.argv = SH("cat; for f in /proc/self/fd/*; do echo ${f##*/}; "
					      "done | head -3 | tr '\\n' ' ';"
					      " test $(ps -o pgid= -p $$ 2>/dev/null || cut -d' ' "
					      "-f5 /proc/$$/stat) -eq $PPID && echo "
					      "the keeper leads;"
					      " exec grep -E 'Sig(Blk|Ign)' /proc/self/status"),
				   .out = &out});
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGPIPE, SIG_DFL);
	assert_contains(buf_cstr(&out), "the keeper leads\n");
	assert_contains(buf_cstr(&out), "SigBlk:\t0000000000000000");
	assert_contains(buf_cstr(&out), "SigIgn:\t0000000000000000");
	buf_reset(&out);
	const char *const argv[] = {"test", "-e", NULL, NULL};
	AUTO_ARENA struct arena a = {0};
	const char *with[4] = {argv[0], argv[1], arena_printf(&a, "/proc/self/fd/%d", leak), NULL};
	assert_int_equal(run_ok(&(struct proc_spec){.argv = with}).status, 1);
	close(leak);
}

static void given_descriptors_come_in_order(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	int a[2], b[2];
	assert_int_equal(pipe2(a, O_CLOEXEC), 0);
	assert_int_equal(pipe2(b, O_CLOEXEC), 0);
	assert_int_equal(write(a[1], "first", 5), 5);
	assert_int_equal(write(b[1], "second", 6), 6);
	close(a[1]);
	close(b[1]);
	/* Swapped against their own numbers, and one twice. */
	const int fds[] = {b[0], a[0], b[0]};
	run_ok(&(struct proc_spec){.argv = SH("cat <&4; cat <&3; for n in 3 4 5 6 7 8 9; do [ -e "
					      "/proc/$$/fd/$n ] && printf $n; done"),
				   .out = &out,
				   .fds = fds,
				   .fd_count = 3});
	assert_string_equal(buf_cstr(&out), "firstsecond345");
	close(a[0]);
	close(b[0]);
}

static void umask_is_the_childs_own(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	mode_t old = umask(0);
	run_ok(&(struct proc_spec){.argv = SH("umask"), .out = &out, .umask = 027});
	assert_int_equal(umask(022), 0);
	run_ok(&(struct proc_spec){.argv = SH("umask"), .out = &out});
	umask(old);
	assert_string_equal(buf_cstr(&out), "0027\n0022\n");
}

static void time_is_measured(void **state)
{
	(void)state;
	struct proc_result r = run_ok(&(struct proc_spec){
		.argv = SH("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.2")});
	assert_true(r.seconds >= 0.2 && r.seconds < 60);
	assert_true(r.cpu_seconds > 0 && r.cpu_seconds < 60);
}

static void big_output_is_taken_whole(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	AUTO_BUF struct buf err = {0};
	run_ok(&(struct proc_spec){
		.argv = SH("head -c 5000000 /dev/zero & head -c 5000000 /dev/zero >&2; wait"),
		.out = &out,
		.err = &err});
	assert_int_equal(out.len, 5000000);
	assert_int_equal(err.len, 5000000);
}

static void output_above_the_limit_is_dropped(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	struct proc_result r = run_ok(&(struct proc_spec){
		.argv = SH("printf 0123456789; head -c 300000 /dev/zero; exit 4"),
		.out = &out,
		.max_output = 8});
	assert_string_equal(buf_cstr(&out), "01234567");
	assert_int_equal(r.status, 4);
}

struct lines {
	struct arena arena;
	struct strlist list;
	size_t longest;
};

static void collect(const char *line, size_t len, void *user)
{
	struct lines *l = user;

	assert_int_equal(strlen(line), len);
	strlist_add(&l->list, &l->arena, line);
	if (len > l->longest)
		l->longest = len;
}

static void check_lines(const char *script, const char *want)
{
	struct lines l = {0};

	run_ok(&(struct proc_spec){.argv = SH(script), .on_line = collect, .user = &l});
	assert_string_equal(strlist_join(&l.list, &l.arena, "|"), want);
	arena_release(&l.arena);
}

static void lines_are_complete_over_split_reads(void **state)
{
	(void)state;
	check_lines("printf 'on'; sleep 0.1; printf 'e\\ntw'; sleep 0.1; printf 'o\\n\\nlast'",
		    "one|two||last");
}

static void carriage_returns_end_lines(void **state)
{
	(void)state;
	check_lines("printf '10%%\\r20%%\\r\\r30%%\\r\\ndone\\r\\n\\r\\nx\\n'",
		    "10%|20%|30%|done|x");
	check_lines("printf 'a\\r'; sleep 0.1; printf '\\nb\\n\\nc'", "a|b||c");
}

static void no_output_no_lines(void **state)
{
	(void)state;
	check_lines("true", "");
}

static void many_lines_and_a_very_long_one(void **state)
{
	(void)state;
	struct lines l = {0};
	run_ok(&(struct proc_spec){
		.argv = SH("seq 20000; head -c 2500000 /dev/zero | tr '\\0' x; echo; echo end"),
		.on_line = collect,
		.user = &l});
	assert_int_equal(l.list.count, 20000 + 3 + 1);
	assert_string_equal(l.list.items[0], "1");
	assert_string_equal(l.list.items[19999], "20000");
	assert_int_equal(l.longest, 1 << 20);
	assert_string_equal(l.list.items[20003], "end");
	arena_release(&l.arena);
}

static void log_file_gets_both_streams_appended(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	AUTO_BUF struct buf err = {0};
	test_dir();
	test_write(test_path("log"), "before\n");
	run_ok(&(struct proc_spec){.argv = SH("echo a; sleep 0.2; echo b >&2"),
				   .out = &out,
				   .err = &err,
				   .log_path = test_path("log")});
	run_ok(&(struct proc_spec){.argv = SH("echo c; echo d >&2"), .log_path = test_path("log")});
	char *text = test_read(test_path("log"));
	assert_string_equal(text, "before\na\nb\nc\nd\n");
	free(text);
	assert_string_equal(buf_cstr(&err), "b\n");
}

static void log_file_that_cannot_be_opened_stops_all(void **state)
{
	(void)state;
	struct err e = {0};
	struct proc_result r;
	test_dir();
	AUTO_ARENA struct arena a = {0};
	const char *touched = arena_strdup(&a, test_path("touched"));
	const struct proc_spec spec = {.argv = (const char *const[]){"touch", touched, NULL},
				       .log_path = test_path("no/log")};
	assert_err(proc_run(&spec, test_run(), &r, &e), &e, ERR_SYSTEM, "cannot write '");
	assert_int_equal(access(touched, F_OK), -1);
}

static void full_log_disk_stops_the_program(void **state)
{
	(void)state;
	struct err e = {0};
	struct proc_result r;
	double start = log_seconds();
	const struct proc_spec spec = {.argv = SH("echo x; sleep 300"), .log_path = "/dev/full"};
	assert_err(proc_run(&spec, test_run(), &r, &e), &e, ERR_SYSTEM,
		   "cannot write '/dev/full': No space left");
	assert_contains(e.hint, "free some space");
	assert_true(log_seconds() - start < HANG_S);
}

/* Runs a program that says something and then waits until its time is over,
 * which is longer where it had too little to begin. Gives how long it ran. */
static double times_out(struct proc_spec *spec)
{
	for (spec->timeout_s = 0.3;; spec->timeout_s *= 5) {
		struct err e = {0};
		struct proc_result r = {.status = 77};
		double start = log_seconds();
		assert_err(proc_run(spec, test_run(), &r, &e), &e, ERR_SYSTEM, "timed out after ");
		double took = log_seconds() - start;
		assert_true(took >= spec->timeout_s && took < HANG_S);
		assert_int_equal(r.status, 77);
		if (spec->out->len)
			return took;
	}
}

static void timeout_stops_the_program(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf out = {0};
	struct proc_result r;
	times_out(&(struct proc_spec){.argv = SH("echo early; sleep 300"), .out = &out});
	assert_string_equal(buf_cstr(&out), "early\n");
	const struct proc_spec spec = {.argv = SH("sleep 300"), .timeout_s = 0.3};
	assert_err(proc_run(&spec, test_run(), &r, &e), &e, ERR_SYSTEM,
		   "timed out after 0.3 s: 'sh'");
}

static void program_that_ignores_sigterm_is_killed(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	struct proc_spec spec = {.argv = SH("trap '' TERM; echo x; while :; do sleep 0.1; done"),
				 .out = &out};
	double took = times_out(&spec);
	assert_true(took >= spec.timeout_s + 1);
}

static void in_time_is_no_timeout(void **state)
{
	(void)state;
	assert_int_equal(
		run_ok(&(struct proc_spec){.argv = SH("sleep 0.1; exit 5"), .timeout_s = 60})
			.status,
		5);
}

struct canceller {
	int fd;
	const char *when; /* file to wait for */
};

static void *cancel_when_there(void *arg)
{
	const struct canceller *c = arg;

	for (int i = 0; i < 1000 && access(c->when, F_OK) != 0; i++)
		usleep(10000);
	ssize_t n = write(c->fd, "x", 1);
	return n == 1 ? arg : NULL;
}

static bool is_running(const char *pid_file)
{
	char *text = test_read(pid_file);

	assert_non_null(text);
	pid_t pid = (pid_t)strtol(text, NULL, 10);
	free(text);
	assert_true(pid > 1);
	/* A killed grandchild may stay a zombie until init gets to it. */
	for (int i = 0; i < 200; i++) {
		char path[64], state = 'X';
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		char *stat = test_read(path);
		const char *paren = stat ? strrchr(stat, ')') : NULL;
		if (paren)
			state = paren[2];
		free(stat);
		if (state == 'X' || state == 'Z')
			return false;
		usleep(10000);
	}

	return true;
}

static void run_and_cancel(const char *script)
{
	struct err e = {0};
	struct log log = {.level = LOG_QUIET, .fd = 2};
	int fds[2];
	AUTO_ARENA struct arena a = {0};
	const char *dir = arena_strdup(&a, test_dir());
	const char *pid_file = arena_printf(&a, "%s/pid", dir);

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	const struct run run = {.log = &log, .cancel_fd = fds[0]};
	struct canceller c = {.fd = fds[1], .when = pid_file};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, cancel_when_there, &c), 0);
	AUTO_BUF struct buf out = {0};
	struct proc_result r;
	const struct proc_spec spec = {.argv = SH(script), .cwd = dir, .out = &out};
	double start = log_seconds();
	assert_err(proc_run(&spec, &run, &r, &e), &e, ERR_INTERRUPTED, "interrupted");
	assert_true(log_seconds() - start < HANG_S);
	pthread_join(thread, NULL);
	assert_false(is_running(pid_file));
	/* It stays cancelled: the next one does not start. */
	assert_err(proc_run(&spec, &run, &r, &e), &e, ERR_INTERRUPTED, "interrupted");
	close(fds[0]);
	close(fds[1]);
}

struct ticks {
	unsigned count, stop_at;
	const char *then; /* a file to make instead of stopping the program; NULL: none */
	pid_t pid;
};

static int count_tick(pid_t pid, void *user, struct err *e)
{
	struct ticks *t = user;

	t->pid = pid;
	if (++t->count != t->stop_at)
		return 0;
	if (!t->then)
		return err_set(e, ERR_POLICY, "enough after %u", t->count);
	test_write(t->then, "");
	return 0;
}

/* It runs until the third tick; as many ticks as fit into the time that it took come at most. */
static void ticks_come_while_it_runs(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	AUTO_ARENA struct arena a = {0};
	test_dir();
	struct ticks t = {.stop_at = 3, .then = arena_strdup(&a, test_path("enough"))};
	struct proc_result r = run_ok(&(struct proc_spec){
		.argv = SH("echo $PPID; while [ ! -e enough ]; do sleep 0.02; done"),
		.cwd = test_path("."),
		.out = &out,
		.on_tick = count_tick,
		.tick_user = &t,
		.tick_s = 0.05});
	assert_true(t.count >= 3 && t.count <= r.seconds / 0.05);
	assert_int_equal(t.pid, atoi(buf_cstr(&out)));
}

static void a_tick_can_stop_the_program(void **state)
{
	(void)state;
	struct ticks t = {.stop_at = 3};
	struct err e = {0};
	struct proc_result r = {.status = 77};
	const struct proc_spec spec = {
		.argv = SH("sleep 300"), .on_tick = count_tick, .tick_user = &t, .tick_s = 0.02};
	double start = log_seconds();
	assert_err(proc_run(&spec, test_run(), &r, &e), &e, ERR_POLICY, "enough after 3");
	assert_true(log_seconds() - start < HANG_S);
	assert_int_equal(t.count, 3);
	assert_int_equal(r.status, 77);
}

static void cancel_kills_grandchildren(void **state)
{
	(void)state;
	run_and_cancel("sh -c 'echo $$ >pid.part; mv pid.part pid; sleep 300; :' & sleep 300; :");
}

static void cancel_kills_what_ignores_sigterm(void **state)
{
	(void)state;
	run_and_cancel("sh -c 'trap \"\" TERM; echo $$ >pid.part; mv pid.part pid; while :; do "
		       "sleep 0.2; done' & trap "
		       "'' TERM; while :; "
		       "do sleep 0.2; done");
}

static void cancel_kills_what_its_parent_left_behind(void **state)
{
	(void)state;
	/* The program itself obeys at once; its child does not. */
	run_and_cancel("sh -c 'trap \"\" TERM; echo $$ >pid.part; mv pid.part pid; while :; do "
		       "sleep 0.2; done' & "
		       "sleep 300; :");
}

static void output_held_open_by_a_grandchild_does_not_hang(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	test_dir();
	double start = log_seconds();
	struct proc_result r = run_ok(
		&(struct proc_spec){.argv = SH("sleep 300 & echo $! >pid; echo said; exit 6"),
				    .cwd = test_path("."),
				    .out = &out});
	assert_true(log_seconds() - start < HANG_S);
	assert_int_equal(r.status, 6);
	assert_string_equal(buf_cstr(&out), "said\n");
	assert_false(is_running(test_path("pid")));
}

/* It ends the daemon whose number a script wrote. */
static void end_daemon(void)
{
	char *pid = test_read(test_path("pid"));

	assert_non_null(pid);
	assert_true(atoi(pid) > 1);
	assert_int_equal(kill(atoi(pid), SIGKILL), 0);
	free(pid);
}

static void output_held_open_by_an_escaped_daemon_does_not_hang(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	test_dir();
	double start = log_seconds();
	run_ok(&(struct proc_spec){.argv = SH("setsid sleep 300 & echo $! >pid; echo said"),
				   .cwd = test_path("."),
				   .out = &out});
	end_daemon();
	assert_true(log_seconds() - start < HANG_S);
	assert_string_equal(buf_cstr(&out), "said\n");
	buf_reset(&out);
	times_out(&(struct proc_spec){
		.argv = SH("setsid sleep 300 & echo $! >pid; echo said; exec sleep 300"),
		.cwd = test_path("."),
		.out = &out});
	end_daemon();
	assert_string_equal(buf_cstr(&out), "said\n");
}

/* What has a session of its own and ignores what can be
 * ignored ends with an "alone" program, however that ends. */
static void alone_leaves_nothing_behind(void **state)
{
	(void)state;
	static const char start[] =
		"setsid sh -c 'trap \"\" TERM; echo $$; >there; exec sleep 3457' & "
		"while [ ! -e there ]; do sleep 0.02; done; rm there;";
	static const char *const ends[] = {"exit 3", "kill -TERM $$", "sleep 600"};
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		AUTO_BUF struct buf script = {0}, out = {0};
		test_dir();
		buf_printf(&script, "%s %s", start, ends[i]);
		struct proc_spec spec = {.argv = SH(buf_cstr(&script)),
					 .cwd = test_path("."),
					 .out = &out,
					 .alone = true};
		if (i == 2)
			times_out(&spec);
		else
			run_ok(&spec);
		assert_int_equal(kill((pid_t)strtol(buf_cstr(&out), NULL, 10), 0), -1);
	}
}

static void file_size_limit_holds(void **state)
{
	(void)state;
	test_dir();
	struct proc_result r = run_ok(
		&(struct proc_spec){.argv = (const char *const[]){"dd", "if=/dev/zero", "of=big",
								  "bs=1000", "count=100", NULL},
				    .cwd = test_path("."),
				    .file_limit = 4096});
	assert_int_equal(r.signal, SIGXFSZ);
	struct stat st;
	assert_int_equal(stat(test_path("big"), &st), 0);
	assert_int_equal(st.st_size, 4096);
}

static void no_descriptors_leak(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	struct err e = {0};
	struct proc_result r;
	int before = dup(0);
	close(before);
	for (int i = 0; i < 20; i++) {
		run_ok(&(struct proc_spec){.argv = SH("echo x"), .out = &out, .err = &out});
		const struct proc_spec bad = {.argv = (const char *const[]){"/proc/none", NULL},
					      .out = &out};
		assert_int_equal(proc_run(&bad, test_run(), &r, &e), -1);
	}

	int after = dup(0);
	close(after);
	assert_int_equal(after, before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void child_dies_with_its_parent(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const char *dir = arena_strdup(&a, test_dir());
	pid_t parent = fork();
	if (parent == 0) {
		struct err e = {0};
		struct proc_result r;
		const struct proc_spec spec = {
			.argv = SH("echo $$ >pid.part; mv pid.part pid; exec sleep 300"),
			.cwd = dir};
		_exit(proc_run(&spec, test_run(), &r, &e) == 0 ? 0 : 1);
	}

	for (int i = 0; i < 1000 && access(test_path("pid"), F_OK) != 0; i++)
		usleep(10000);
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	assert_false(is_running(test_path("pid")));
}

/* Neither a group of its own nor a parent that is gone
 * lets a process outlive the program that started it all. */
static void daemons_die_with_the_parent(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const char *dir = arena_strdup(&a, test_dir());
	pid_t parent = fork();
	if (parent == 0) {
		struct err e = {0};
		struct proc_result r;
		const struct proc_spec spec = {
			.argv = SH("(setsid sh -c '(echo $$ >pid.part; mv pid.part pid; sleep "
				   "300) & sleep 300' &) & sleep 300"),
			.cwd = dir};
		_exit(proc_run(&spec, test_run(), &r, &e) == 0 ? 0 : 1);
	}

	for (int i = 0; i < 1000 && access(test_path("pid"), F_OK) != 0; i++)
		usleep(10000);
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	assert_false(is_running(test_path("pid")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_is_appended),
		cmocka_unit_test(both_streams_go_to_one_buffer_in_order),
		cmocka_unit_test(streams_can_be_kept_apart),
		cmocka_unit_test(output_nobody_wants_is_discarded),
		cmocka_unit_test(exit_status_is_a_result),
		cmocka_unit_test(signal_deaths_are_told),
		cmocka_unit_test(missing_program_is_named),
		cmocka_unit_test(missing_directory_is_named),
		cmocka_unit_test_teardown(directory_and_environment_are_set, test_teardown),
		cmocka_unit_test(environment_is_inherited_by_default),
		cmocka_unit_test(child_starts_clean),
		cmocka_unit_test(given_descriptors_come_in_order),
		cmocka_unit_test(umask_is_the_childs_own),
		cmocka_unit_test(time_is_measured),
		cmocka_unit_test(big_output_is_taken_whole),
		cmocka_unit_test(output_above_the_limit_is_dropped),
		cmocka_unit_test(lines_are_complete_over_split_reads),
		cmocka_unit_test(carriage_returns_end_lines),
		cmocka_unit_test(no_output_no_lines),
		cmocka_unit_test(many_lines_and_a_very_long_one),
		cmocka_unit_test_teardown(log_file_gets_both_streams_appended, test_teardown),
		cmocka_unit_test_teardown(log_file_that_cannot_be_opened_stops_all, test_teardown),
		cmocka_unit_test(full_log_disk_stops_the_program),
		cmocka_unit_test(timeout_stops_the_program),
		cmocka_unit_test(program_that_ignores_sigterm_is_killed),
		cmocka_unit_test(in_time_is_no_timeout),
		cmocka_unit_test_teardown(ticks_come_while_it_runs, test_teardown),
		cmocka_unit_test(a_tick_can_stop_the_program),
		cmocka_unit_test_teardown(cancel_kills_grandchildren, test_teardown),
		cmocka_unit_test_teardown(cancel_kills_what_ignores_sigterm, test_teardown),
		cmocka_unit_test_teardown(cancel_kills_what_its_parent_left_behind, test_teardown),
		cmocka_unit_test_teardown(output_held_open_by_a_grandchild_does_not_hang,
					  test_teardown),
		cmocka_unit_test_teardown(output_held_open_by_an_escaped_daemon_does_not_hang,
					  test_teardown),
		cmocka_unit_test(alone_leaves_nothing_behind),
		cmocka_unit_test_teardown(file_size_limit_holds, test_teardown),
		cmocka_unit_test(no_descriptors_leak),
		cmocka_unit_test_teardown(daemons_die_with_the_parent, test_teardown),
		cmocka_unit_test_teardown(child_dies_with_its_parent, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
