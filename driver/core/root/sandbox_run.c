#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"
#include "base/sys/fs.h"
#include "core/root/sandbox.h"

#define BUILD_UMASK 022
#define MAX_FDS 16

#define HINT_NAMESPACES                                                                                                \
	"allow unprivileged user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "      \
	"kernel.apparmor_restrict_unprivileged_userns; in a container: a seccomp profile that allows them, or "        \
	"--privileged), use bubblewrap 0.8.0 or newer, or build with --sandbox none"

/* Memory files for bubblewrap: texts, its options and its status. fds_close closes them. */
struct fds {
	int items[MAX_FDS];
	size_t count;
};

static void fds_close(const struct fds *f)
{
	for (size_t i = 0; i < f->count; i++)
		close(f->items[i]);
}

static int fds_add(struct fds *f, const char *data, size_t len, struct err *e)
{
	if (f->count == MAX_FDS)
		return err_set(e, ERR_SYSTEM, "too many generated files in one sandbox");
	AUTO_FD int fd = os_memory_file();
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot create a memory file");
	if (fs_write_all(fd, data, len, "memory file", e) < 0)
		return -1;
	if (lseek(fd, 0, SEEK_SET) != 0)
		return err_errno(e, ERR_SYSTEM, "cannot rewind a memory file");
	f->items[f->count++] = steal_fd(&fd);
	return 0;
}

/* Keeps the last message of bubblewrap, which writes every line until the program starts. */
struct listener {
	char words[512];
	proc_line_fn next;
	void *user;
};

static void watch_line(const char *line, size_t len, void *user)
{
	static const char mark[] = "bwrap: ";
	struct listener *w = user;
	size_t n = sizeof(mark) - 1;
	if (len > n && memcmp(line, mark, n) == 0) {
		size_t keep = len - n < sizeof(w->words) - 1 ? len - n : sizeof(w->words) - 1;
		memcpy(w->words, line + n, keep);
		w->words[keep] = '\0';
	}
	if (w->next)
		w->next(line, len, w->user);
}

/* bubblewrap would refuse these too, without saying what the path is for. */
static int check_shown(const struct sandbox *s, struct err *e)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct sandbox_op *op = &s->ops[i];
		struct stat st;
		if ((op->type == SANDBOX_RO || op->type == SANDBOX_RW) && stat(op->source, &st) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot show '%s' as '%s' in the sandbox", op->source,
					 op->dest);
	}
	return 0;
}

/* The program that `name` is by the build's PATH, which is not the caller's: Python looks itself up there. */
static const char *plain_program(const struct sandbox *s, const char *name)
{
	const char *path = kvlist_get(&s->env, "PATH");
	const char *found = path ? proc_find_in(s->arena, sandbox_host_text(s, path, s->arena), name) : NULL;
	return found ? found : name;
}

static int run_plain(const struct sandbox *s, const char *const *argv, struct proc_spec *spec, const struct run *run,
		     struct proc_result *ret, struct err *e)
{
	struct strlist words = {0}, env = {0};
	const char *cwd = sandbox_host_text(s, s->cwd ? s->cwd : "/", s->arena);
	if (sandbox_argv(s, argv, &words, e) < 0)
		return -1;
	for (size_t i = 0; i < s->env.count; i++)
		if (strcmp(s->env.items[i].key, "PWD") != 0)
			strlist_addf(&env, s->arena, "%s=%s", s->env.items[i].key,
				     sandbox_host_text(s, s->env.items[i].value, s->arena));
	strlist_addf(&env, s->arena, "PWD=%s", cwd);
	words.items[0] = plain_program(s, words.items[0]);
	spec->argv = words.items;
	spec->envp = env.items;
	spec->cwd = cwd;
	spec->umask = BUILD_UMASK;
	return proc_run(spec, run, ret, e);
}

/* The generated files in their order, then bubblewrap's options, then room for the status that it writes. Options go
 * through a file because they may be long and hold paths of the host, and programs inside can read the command line of
 * process 1. */
static int make_fds(const struct sandbox *s, struct fds *f, struct err *e)
{
	AUTO_BUF struct buf bytes = {0};
	struct strlist options = {0};
	for (size_t i = 0; i < s->count; i++)
		if (s->ops[i].type == SANDBOX_DATA && fds_add(f, s->ops[i].source, strlen(s->ops[i].source), e) < 0)
			return -1;
	sandbox_options(s, &options);
	for (size_t i = 0; i < options.count; i++)
		buf_add(&bytes, options.items[i], strlen(options.items[i]) + 1);
	if (fds_add(f, bytes.data, bytes.len, e) < 0)
		return -1;
	return fds_add(f, "", 0, e);
}

/* bubblewrap writes an exit code into its status only if it started the program. */
static bool was_started(int status_fd)
{
	char text[512];
	ssize_t n = pread(status_fd, text, sizeof(text), 0);
	return n > 0 && memmem(text, (size_t)n, "\"exit-code\"", strlen("\"exit-code\"")) != NULL;
}

static int not_started(const char *program, const char *words, struct err *e)
{
	if (strncmp(words, "execvp ", 7) == 0 || strncmp(words, "Can't chdir ", 12) == 0)
		return err_set(e, ERR_SYSTEM, "cannot start '%s' in the sandbox: %s", program, words);
	err_set(e, ERR_POLICY, "cannot create the sandbox: bubblewrap says: %s", *words ? words : "nothing");
	return err_hint(e, HINT_NAMESPACES);
}

static int run_bwrap(const struct sandbox *s, const char *const *argv, struct proc_spec *spec, const struct fds *f,
		     const struct run *run, struct proc_result *ret, struct err *e)
{
	/* Programs inside can read the environment that process 1 was started with: it must have none of the host's. */
	static const char *const no_env[] = {NULL};
	struct strlist words = {0};
	struct listener listener = {.next = spec->on_line, .user = spec->user};
	struct proc_result res = {0};
	const char *bwrap = proc_find(s->arena, "bwrap");
	if (!bwrap) {
		err_set(e, ERR_SYSTEM, "bubblewrap (bwrap) is not installed, and the sandbox needs it");
		return err_hint(e, "install bubblewrap, or build with --sandbox none");
	}
	strlist_ref(&words, s->arena, bwrap);
	strlist_split(&words, s->arena,
		      arena_printf(s->arena, "--args %zu --json-status-fd %zu --", 3 + f->count - 2, 3 + f->count - 1),
		      " ");
	for (size_t i = 0; argv[i]; i++)
		strlist_ref(&words, s->arena, argv[i]);
	spec->argv = words.items;
	spec->envp = no_env;
	spec->cwd = "/";
	spec->umask = BUILD_UMASK;
	spec->fds = f->items;
	spec->fd_count = f->count;
	spec->on_line = watch_line;
	spec->user = &listener;
	int rc = proc_run(spec, run, &res, e);
	spec->on_line = listener.next;
	spec->user = listener.user;
	spec->fds = NULL;
	spec->fd_count = 0;
	if (rc < 0)
		return -1;
	if (res.status != 0 && res.signal == 0 && !was_started(f->items[f->count - 1]))
		return not_started(argv[0], listener.words, e);
	*ret = res;
	return 0;
}

int sandbox_run(const struct sandbox *s, const char *const *argv, struct proc_spec *spec, const struct run *run,
		struct proc_result *ret, struct err *e)
{
	struct fds f = {0};
	if (!argv[0] || !*argv[0])
		return err_set(e, ERR_USAGE, "no program to run in the sandbox");
	if (check_shown(s, e) < 0)
		return -1;
	if (s->kind == SANDBOX_NONE)
		return run_plain(s, argv, spec, run, ret, e);
	int rc = make_fds(s, &f, e);
	if (rc == 0)
		rc = run_bwrap(s, argv, spec, &f, run, ret, e);
	fds_close(&f);
	return rc;
}

int sandbox_capture(const struct sandbox *s, const char *const *argv, const struct run *run, struct buf *out,
		    struct err *e)
{
	AUTO_BUF struct buf text = {0}, errors = {0};
	struct proc_spec spec = {.out = &text, .err = &errors};
	struct proc_result res = {0};
	if (sandbox_run(s, argv, &spec, run, &res, e) < 0)
		return -1;
	if (res.status != 0) {
		const char *end = buf_cstr(&errors);
		size_t len = errors.len;
		while (len > 0 && strchr(" \t\r\n", end[len - 1]))
			len--;
		size_t from = len > 800 ? len - 800 : 0;
		return err_set(e, err_kind_of_words(end, ERR_BUILD), "'%s' failed with exit status %d: %.*s", argv[0],
			       res.status, (int)(len - from), end + from);
	}
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
