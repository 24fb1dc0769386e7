#include <signal.h>
#include <sys/mman.h>

#include "base/os.h"
#include "base/sys/build_user.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/machine.h"
#include "core/root/landlock_init.h"
#include "core/root/sandbox_parts.h"

#define BUILD_UMASK 022
#define MAX_FDS 16
#define ANSWER_MAX (UINT64_C(1) << 20)
#define ANSWER_SECONDS 3600.0 /* the test of a large wheel needs minutes */
/* of 1000: before whatever else runs here, as a browser's pages are */
#define OOM_SCORE 500

/* Memory files: texts for bubblewrap, output of the program inside (0: not used), bubblewrap's
 * options and its status. fds_close closes them. */
struct fds {
	int items[MAX_FDS];
	size_t count;
	size_t inside; /* one more than its place */
	const char *bwrap;
};

static void fds_close(const struct fds *f)
{
	for (size_t i = 0; i < f->count; i++)
		close(f->items[i]);
}

static int fds_take(struct fds *f, int *fd, struct err *e)
{
	if (f->count == MAX_FDS)
		return err_set(e, ERR_SYSTEM, "too many generated files in one sandbox");
	f->items[f->count++] = steal_fd(fd);
	return 0;
}

static int fds_add(struct fds *f, const char *data, size_t len, struct err *e)
{
	AUTO_FD int fd = os_memory_file();

	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot create a memory file");
	if (fs_write_all(fd, data, len, "memory file", e) < 0)
		return -1;
	if (lseek(fd, 0, SEEK_SET) != 0)
		return err_errno(e, ERR_SYSTEM, "cannot rewind a memory file");
	return fds_take(f, &fd, e);
}

/* The program that `name` is by the build's PATH, which
 * is not the caller's: Python looks itself up there. */
static const char *plain_program(const struct sandbox *s, const char *name)
{
	const char *path = kvlist_get(&s->env, "PATH");
	const char *found =
		path ? proc_find_in(s->arena, sandbox_host_text(s, path, s->arena), name) : NULL;

	return found ? found : name;
}

/* What is run in a sandbox. */
struct call {
	const char *const *argv;
	const struct proc_spec *spec;
	const struct run *run;
	struct proc_result *ret;
};

static int run_plain(const struct sandbox *s, const struct call *c, struct err *e)
{
	struct proc_spec spec = *c->spec;
	struct strlist words = {0}, env = {0};
	const char *cwd = sandbox_host_text(s, s->cwd ? s->cwd : "/", s->arena);

	if (sandbox_argv(s, c->argv, &words, e) < 0)
		return -1;
	for (size_t i = 0; i < s->env.count; i++)
		if (strcmp(s->env.items[i].key, "PWD") != 0)
			strlist_addf(&env, s->arena, "%s=%s", s->env.items[i].key,
				     sandbox_host_text(s, s->env.items[i].value, s->arena));
	strlist_addf(&env, s->arena, "PWD=%s", cwd);
	words.items[0] = plain_program(s, words.items[0]);
	spec.argv = words.items;
	spec.envp = env.items;
	spec.cwd = cwd;
	spec.umask = BUILD_UMASK;
	spec.alone = true; /* as with a process namespace */
	return proc_run(&spec, c->run, c->ret, e);
}

/* Shows the program that sets up Landlock. */
static int add_inside(struct fds *f, struct arena *a, struct strlist *options, struct err *e)
{
	strlist_split(
		options, a,
		arena_printf(a, "--perms 0555 --ro-bind-data %zu " LANDLOCK_INIT, 3 + f->count),
		" ");
	if (fds_add(f, (const char *)landlock_init_program, landlock_init_program_size, e) < 0 ||
	    fds_add(f, "", 0, e) < 0)
		return -1;
	f->inside = f->count;
	return 0;
}

/* The generated files in their order, then bubblewrap's options, then room for the status that it
 * writes. Options go through a file because they may be long and hold paths of the host, and
 * programs inside can read the command line of process 1. */
static int make_fds(const struct sandbox *s, const struct run *run, struct fds *f, struct err *e)
{
	AUTO_BUF struct buf bytes = {0};
	struct strlist options = {0};
	AUTO_FD int filter = -1;

	for (size_t i = 0; i < s->count; i++)
		if (s->ops[i].type == SANDBOX_DATA &&
		    fds_add(f, s->ops[i].source, strlen(s->ops[i].source), e) < 0)
			return -1;
	if (sandbox_protection(run, PROTECTION_SECCOMP) && !seccomp_works()) {
		err_set(e, ERR_POLICY,
			"cannot create the sandbox: this kernel does not support filters of system "
			"calls (seccomp)");
		return err_hint(e, "use a kernel with CONFIG_SECCOMP_FILTER, or build with "
				   "--without-protection seccomp");
	}

	if (sandbox_protection(run, PROTECTION_SECCOMP) && (filter = seccomp_filter(e)) < 0)
		return -1;
	if (filter >= 0) {
		strlist_ref(&options, s->arena, "--seccomp");
		strlist_addf(&options, s->arena, "%zu", 3 + f->count);
		if (fds_take(f, &filter, e) < 0)
			return -1;
	}

	if (sandbox_protection(run, PROTECTION_LANDLOCK) && landlock_version() &&
	    add_inside(f, s->arena, &options, e) < 0)
		return -1;
	sandbox_options(s, &options);
	for (size_t i = 0; i < options.count; i++)
		buf_add(&bytes, options.items[i], strlen(options.items[i]) + 1);
	return fds_add(f, bytes.data, bytes.len, e) < 0 ? -1 : fds_add(f, "", 0, e);
}

/* bubblewrap writes an exit code into its status only if it started the program. */
static bool was_started(int status_fd)
{
	char text[512];
	ssize_t n = pread(status_fd, text, sizeof(text), 0);
	return n > 0 && memmem(text, (size_t)n, "\"exit-code\"", strlen("\"exit-code\"")) != NULL;
}

/* What the program inside said: whether it could not become the build's. */
static bool inside_failed(const struct fds *f, struct landlock_init_failure *ret)
{
	return f->inside && pread(f->items[f->inside - 1], ret, sizeof(*ret), 0) == sizeof(*ret);
}

static int not_inside(const char *program, const struct landlock_init_failure *failure,
		      struct err *e)
{
	if (failure->what == LANDLOCK_INIT_EXEC)
		return err_set(e, ERR_SYSTEM, "cannot start '%s' in the sandbox: %s", program,
			       os_errno_text(failure->error));
	err_set(e, ERR_POLICY, "cannot create the sandbox: Landlock: %s",
		os_errno_text(failure->error));
	return err_hint(e, "build without that protection: --without-protection landlock");
}

static int not_started(const char *program, const char *words, struct err *e)
{
	if (strncmp(words, "execvp ", 7) == 0 || strncmp(words, "Can't chdir ", 12) == 0)
		return err_set(e, ERR_SYSTEM, "cannot start '%s' in the sandbox: %s", program,
			       words);
	if (strstr(words, "error while loading shared libraries")) {
		err_set(e, ERR_SYSTEM, "cannot start bubblewrap: %s", words);
		return err_hint(e, "install the library, or this system's own bubblewrap");
	}

	return sandbox_not_created(words, e);
}

/* Where the caller is root, the build is BUILD_USER, who can reach nothing in root's directories:
 * what the sandbox shows is mounted for it at other places. Returns where bubblewrap is then. */
static const char *take_user(struct sandbox *s, const char *bwrap, struct sandbox_entry *n)
{
	struct arena *a = s->arena;
	struct strlist sources = {0}, places = {0};
	struct sandbox_op *ops = arena_array(a, s->count + 1, sizeof(*ops));
	bool *mapped = arena_array(a, s->count + 1, sizeof(*mapped));

	for (size_t i = 0; i < s->count; i++) {
		ops[i] = s->ops[i];
		mapped[sources.count] =
			ops[i].type == SANDBOX_RO && path_below(ops[i].dest, SANDBOX_TOP);
		if (ops[i].type != SANDBOX_RO && ops[i].type != SANDBOX_RW)
			continue;
		strlist_ref(&sources, a, ops[i].source);
		strlist_addf(&places, a, SANDBOX_STAGE "/%zu", places.count);
		ops[i].source = places.items[places.count - 1];
	}

	strlist_ref(&sources, a, bwrap);
	strlist_ref(&places, a, SANDBOX_STAGE "/bwrap");
	s->ops = ops;
	n->user = BUILD_USER;
	n->at = n->count = sources.count;
	n->sources = strlist_argv(&sources, a);
	n->places = strlist_argv(&places, a);
	mapped[n->count - 1] = false;
	n->mapped = mapped;
	n->fds = arena_array(a, sources.count + 1, sizeof(*n->fds));
	return places.items[places.count - 1];
}

/* The user that the sandbox's user 1000 is outside. */
static int outside_user(const struct run *run, uid_t *ret, struct err *e)
{
	*ret = geteuid();
	enum build_user_state state =
		sandbox_protection(run, PROTECTION_USER) ? build_user_state() : BUILD_USER_SELF;
	if (state == BUILD_USER_OWN)
		*ret = BUILD_USER;
	if (state != BUILD_USER_MISSING)
		return 0;
	err_set(e, ERR_POLICY,
		"the build would run as the root user: this user namespace has no user %d",
		BUILD_USER);
	return err_hint(e, "map more users into the container, start ptbuild as another user, or "
			   "build with --without-protection user");
}

/* Gives the writable directories to the user; back to root if no other user can have them. */
static int give_dirs(const struct sandbox *s, uid_t user, struct err *e)
{
	if (geteuid() != 0 || build_user_state() != BUILD_USER_OWN)
		return 0;
	for (size_t i = 0; i < s->count; i++)
		if (s->ops[i].type == SANDBOX_RW && build_user_give(s->ops[i].source, user, e) < 0)
			return -1;
	return 0;
}

/* Without a user namespace the user inside is the one outside: its name stays. */
static void name_user(struct sandbox *s, uid_t user)
{
	const char *number = arena_printf(s->arena, ":%u:", user);
	struct sandbox_op *ops = arena_array(s->arena, s->count + 1, sizeof(*ops));

	for (size_t i = 0; i < s->count; i++) {
		AUTO_BUF struct buf text = {0};
		ops[i] = s->ops[i];
		if (ops[i].type != SANDBOX_DATA)
			continue;
		for (const char *p = ops[i].source; *p;) {
			bool found = strncmp(p, ":1000:", 6) == 0;
			found ? buf_addstr(&text, number) : buf_addc(&text, *p);
			p += found ? 5 : 1; /* the last colon may begin the group's number */
			if (found)
				text.len--;
		}

		ops[i].source = arena_strdup(s->arena, buf_cstr(&text));
	}

	s->ops = ops;
}

static void set_limits(const struct run *run, uid_t user, struct sandbox *s,
		       struct sandbox_entry *n)
{
	const struct run_limits l = sandbox_limits(run);

	if (!sandbox_protection(run, PROTECTION_LIMITS))
		return;
	/* The kernel counts all of a user's tasks: what else the user starts must not
	 * end a build. The watch is exact, and this stops what is faster than it. */
	n->tasks = proctree_tasks(user) + 4 * l.processes + 4096;
	n->data = run->limits.memory;
	n->file = run->limits.disk;
	n->oom_score = OOM_SCORE;
	/* A setuid bubblewrap does not let its caller say how much memory its files may take. */
	s->memory = s->way == SANDBOX_WAY_USER ? l.memory : 0;
}

static int not_entered(const struct sandbox_entry *n, struct arena *a, struct err *e)
{
	const char *source = n->user && n->at < n->count ? n->sources[n->at] : NULL;
	/* ENOSPC is the kernel's limit of name spaces or mounts */
	const bool disk = n->error == EIO;
	const char *step = source ? arena_printf(a, "%s '%s'", n->failed, source) : n->failed;
	const enum err_kind kind = disk ? ERR_SYSTEM : ERR_POLICY;

	err_set(e, kind, "cannot create the sandbox: %s: %s", step, os_errno_text(n->error));
	if (disk)
		return -1;
	const bool early = !n->user || strstr(n->failed, "keyring");
	if (early && n->error == EPERM && sandbox_filtered())
		return sandbox_hint_container(e);
	if (early)
		return err_hint(
			e, "build without that protection: see --without-protection in 'ptbuild "
			   "help build'");
	if (source && n->error == EACCES)
		return err_hint(e, "let all users read it: chmod -R a+rX %s",
				shell_quoted(source, a));
	return err_hint(e, "start the container as another user, for example with --user 1000 "
			   "(docs/sandbox.md: In a container)");
}

static int not_emulated(const struct sandbox_entry *n, const struct emulation *m, struct err *e)
{
	err_set(e, ERR_POLICY, "cannot run programs for %s by %s: %s: %s", m->platform, m->name,
		n->failed, os_errno_text(n->error));
	return err_hint(e,
			"let this user create user namespaces and mount in them (in a container: "
			"--privileged), have the kernel's modules overlay and binfmt_misc loaded, "
			"or build on a machine of that platform");
}

/* What sandbox_enter needs to run a root of another platform. */
static int set_emulation(const struct sandbox *s, struct sandbox_entry *n, struct err *e)
{
	const struct emulation *m = s->emulation;

	if (!m)
		return 0;
	if (emulation_check(m->platform, e) < 0)
		return -1;
	if (s->way != SANDBOX_WAY_USER) {
		err_set(e, ERR_POLICY,
			"cannot run programs for %s by %s: users may not create user namespaces",
			m->platform, m->name);
		return sandbox_hint_machine(e);
	}

	n->emulator = m->program;
	n->emulator_dir = path_dir(s->arena, m->program);
	n->row = sandbox_emulator_row(m->platform, s->arena);
	n->root = s->emulated;
	n->layer = m->layer;
	return 0;
}

static bool is_setuid(const char *program)
{
	struct stat st;
	return geteuid() != 0 && stat(program, &st) == 0 && (st.st_mode & S_ISUID) &&
	       st.st_uid == 0;
}

/* Memory that parent and child share, released at the end of the scope. */
static void entry_free(struct sandbox_entry **n)
{
	if (*n)
		munmap(*n, sizeof(**n));
}

/* The program inside, and what may be written. */
static void add_rules(const struct sandbox *s, size_t status, struct strlist *ret)
{
	strlist_ref(ret, s->arena, LANDLOCK_INIT);
	strlist_addf(ret, s->arena, "%zu", status);
	for (size_t i = 0; i < s->count; i++) {
		const struct sandbox_op *op = &s->ops[i];
		bool system = op->type == SANDBOX_PROC || op->type == SANDBOX_DEV;
		if (op->type == SANDBOX_DEV && !s->proc_open) {
			strlist_ref(ret, s->arena, "dev");
			strlist_ref(ret, s->arena, op->dest);
		}

		if (op->type == SANDBOX_RW || op->type == SANDBOX_TMPFS ||
		    (system && s->proc_open)) {
			strlist_ref(ret, s->arena, "rw");
			strlist_ref(ret, s->arena, op->dest);
		}

		if (op->type == SANDBOX_DEV) {
			strlist_ref(ret, s->arena, "rw");
			strlist_ref(ret, s->arena, path_join(s->arena, op->dest, "shm"));
		}
	}

	strlist_ref(ret, s->arena, "--");
}

static int start_bwrap(const struct sandbox *s, const struct call *c, const struct fds *f,
		       struct err *e)
{
	/* Programs inside can read the environment that process
	 * 1 was started with: it must have none of the host's. */
	static const char *const no_env[] = {NULL};
	struct proc_spec spec = *c->spec;
	struct strlist words = {0};

	strlist_ref(&words, s->arena, f->bwrap);
	strlist_split(&words, s->arena,
		      arena_printf(s->arena, "--args %zu --json-status-fd %zu --", 3 + f->count - 2,
				   3 + f->count - 1),
		      " ");
	if (f->inside)
		add_rules(s, 2 + f->inside, &words);
	for (size_t i = 0; c->argv[i]; i++)
		strlist_ref(&words, s->arena, c->argv[i]);
	spec.argv = words.items;
	spec.envp = no_env;
	spec.cwd = "/";
	spec.umask = BUILD_UMASK;
	spec.fds = f->items;
	spec.fd_count = f->count;
	return proc_run(&spec, c->run, c->ret, e);
}

static int run_bwrap(const struct sandbox *given, const struct call *c, struct err *e)
{
	const char *const *argv = c->argv;
	const struct run *run = c->run;
	struct sandbox s = *given;
	struct proc_spec spec = *c->spec;
	struct sandbox_watch watch;
	struct proc_result res = {0};
	struct call wrapped = {.argv = argv, .spec = &spec, .run = run, .ret = &res};
	struct fds f = {0};
	uid_t user;
	const char *bwrap = proc_find_host(s.arena, "bwrap");

	if (!bwrap) {
		err_set(e, ERR_SYSTEM,
			"bubblewrap (bwrap) is not installed, and the sandbox needs it");
		return err_hint(e, "install bubblewrap, or build with --sandbox none");
	}

	if (outside_user(run, &user, e) < 0 || give_dirs(&s, user, e) < 0)
		return -1;
	CLEANUP(entry_free)
	struct sandbox_entry *n =
		mmap(NULL, sizeof(*n), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (n == MAP_FAILED) {
		n = NULL;
		return err_errno(e, ERR_SYSTEM, "cannot start 'bwrap'");
	}

	s.way = sandbox_way(user, is_setuid(bwrap));
	s.proc_open = !sandbox_protection(run, PROTECTION_PROC);
	s.proc_shared = !sandbox_protection(run, PROTECTION_PROCESSES);
	if (s.proc_shared && s.way == SANDBOX_WAY_NO_USER) {
		err_set(e, ERR_POLICY,
			"a shared /proc is not supported without user namespaces: a build could "
			"reach files through it");
		return err_hint(e, "keep the protection 'processes'");
	}

	n->keyring = sandbox_protection(run, PROTECTION_KEYRING);
	s.keys_open = !n->keyring;
	n->privileged = s.way != SANDBOX_WAY_USER;
	set_limits(run, user, &s, n);
	sandbox_watch_begin(&watch, given, run, &spec);
	if (user != geteuid())
		bwrap = take_user(&s, bwrap, n);
	if (s.way == SANDBOX_WAY_NO_USER)
		name_user(&s, user);
	if (set_emulation(&s, n, e) < 0)
		return -1;
	spec.enter = sandbox_enter;
	spec.enter_user = n;
	f.bwrap = bwrap;
	int rc = make_fds(&s, run, &f, e);
	if (rc == 0)
		rc = start_bwrap(&s, &wrapped, &f, e);
	struct landlock_init_failure failure;
	if (rc < 0 && n->failed && n->emulating)
		rc = not_emulated(n, s.emulation, e);
	else if (rc < 0 && n->failed)
		rc = not_entered(n, s.arena, e);
	else if (rc == 0 && inside_failed(&f, &failure))
		rc = not_inside(argv[0], &failure, e);
	else if (rc == 0 && res.status != 0 && res.signal == 0 &&
		 !was_started(f.items[f.count - 1]))
		rc = not_started(argv[0], watch.words, e);
	fds_close(&f);
	if (rc == 0)
		*c->ret = res;
	return rc;
}

static int check_platform(const struct sandbox *s, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct root *r = s->root;

	if (s->emulation || !r || !r->platform || strcmp(r->platform, machine_platform(&a)) == 0)
		return 0;
	err_set(e, ERR_POLICY, "the programs of the root '%s' are for %s, and this machine is %s",
		r->dir, r->platform, machine_platform(&a));
	return err_hint(e, "use ptbuild on such a machine");
}

int sandbox_run(const struct sandbox *s, const char *const *argv, const struct proc_spec *spec,
		const struct run *run, struct proc_result *ret, struct err *e)
{
	const struct call c = {.argv = argv, .spec = spec, .run = run, .ret = ret};

	if (!argv[0] || !*argv[0])
		return err_set(e, ERR_USAGE, "no program to run in the sandbox");
	/* bubblewrap would refuse these too, without saying what the path is for. */
	for (size_t i = 0; i < s->count; i++) {
		const struct sandbox_op *op = &s->ops[i];
		struct stat st;
		if ((op->type == SANDBOX_RO || op->type == SANDBOX_RW) && stat(op->source, &st) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot show '%s' as '%s' in the sandbox",
					 op->source, op->dest);
	}

	if (check_platform(s, e) < 0)
		return -1;
	if (s->kind == SANDBOX_NONE)
		return give_dirs(s, geteuid(), e) < 0 ? -1 : run_plain(s, &c, e);
	return run_bwrap(s, &c, e);
}

/* The file of an answer, which begins with its own digest; NULL where none is kept. */
static const char *answer_file(const struct sandbox *s, const char *const *argv)
{
	AUTO_BUF struct buf question = {0};
	char digest[DIGEST_HEX_LEN + 1];

	if (!s->answers || !s->root->world)
		return NULL;
	buf_printf(&question, "%s\n%s\n%s\n", s->root->world, s->root->dir,
		   sandbox_kind_name(s->kind));
	for (size_t i = 0; argv[i]; i++)
		buf_add(&question, argv[i], strlen(argv[i]) + 1);
	digest_data(question.data, question.len, digest);
	return arena_printf(s->arena, "%s/answer-%s", s->answers, digest);
}

bool sandbox_recall(const struct sandbox *s, const char *const *argv, struct buf *out)
{
	AUTO_BUF struct buf text = {0};
	char digest[DIGEST_HEX_LEN + 1];
	const char *file = answer_file(s, argv);

	if (!file || !fs_exists(TRUSTED, file) ||
	    fs_read(TRUSTED, file, ANSWER_MAX, &text, ERR_IGNORED) < 0 || text.len < DIGEST_HEX_LEN)
		return false;
	digest_data(text.data + DIGEST_HEX_LEN, text.len - DIGEST_HEX_LEN, digest);
	if (memcmp(text.data, digest, DIGEST_HEX_LEN) != 0)
		return false;
	buf_add(out, text.data + DIGEST_HEX_LEN, text.len - DIGEST_HEX_LEN);
	return true;
}

static void remember(const struct sandbox *s, const char *const *argv, const struct buf *answer)
{
	AUTO_BUF struct buf text = {0};
	char digest[DIGEST_HEX_LEN + 1];
	const char *file = answer_file(s, argv);

	digest_data(buf_cstr(answer), answer->len, digest);
	buf_printf(&text, "%s%s", digest, buf_cstr(answer));
	if (file)
		(void)!fs_write(TRUSTED, file, text.data, text.len, 0644, ERR_IGNORED);
}

int sandbox_capture(const struct sandbox *s, const char *const *argv, const struct run *run,
		    struct buf *out, struct err *e)
{
	if (sandbox_recall(s, argv, out))
		return 0;
	AUTO_BUF struct buf text = {0}, errors = {0};
	struct proc_spec spec = {.out = &text, .err = &errors, .timeout_s = ANSWER_SECONDS};
	struct proc_result res = {0};
	if (sandbox_run(s, argv, &spec, run, &res, e) < 0)
		return -1;
	/* As for memory; what it would have said is not known. */
	if (res.status == 128 + SIGKILL) {
		err_set(e, ERR_SYSTEM, "'%s' was killed by signal %d", argv[0], SIGKILL);
		return err_hint(e,
				"run the same command again; where memory ran out, give it more");
	}

	if (res.status != 0) {
		const char *end = buf_cstr(&errors);
		size_t len = errors.len;
		while (len > 0 && strchr(" \t\r\n", end[len - 1]))
			len--;
		size_t from = len > 800 ? len - 800 : 0;
		return err_set(e, err_kind_of_words(end, ERR_BUILD),
			       "'%s' failed with exit status %d: %.*s", argv[0], res.status,
			       (int)(len - from), end + from);
	}

	remember(s, argv, &text);
	buf_add(out, text.data, text.len);
	return 0;
}

int sandbox_probe(const struct root *root, const struct run *run, struct err *e)
{
	static const char *const argv[] = {"true", NULL};
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf out = {0};
	struct sandbox s;

	if (sandbox_init(&s, SANDBOX_BWRAP, root, &a, e) < 0)
		return -1;
	kvlist_set(&s.env, &a, "PATH", ROOT_PATH);
	if (sandbox_capture(&s, argv, run, &out, e) == 0)
		return 0;
	if (e->kind == ERR_BUILD)
		e->kind = ERR_POLICY;
	return -1;
}
