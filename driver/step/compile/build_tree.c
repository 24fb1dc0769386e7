#include "step/compile/build.h"

#include "base/os.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "core/plan/plan.h"

#define FILE_NAME "tree.json"

int build_tree_save(const char *dir, const struct plan *p, const struct sandbox *s, struct err *e)
{
	AUTO_JSON json_t *j = json_pack("{s:o, s:o}", "variant", json_or_null(p->variant),
					"sandbox", sandbox_to_json(s));
	return json_write(j, dir, FILE_NAME, e);
}

static int64_t written(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static int by_use(const void *a, const void *b)
{
	const struct build_tree *x = a, *y = b;
	return (x->used < y->used) - (x->used > y->used);
}

/* Skips a tree whose file cannot be read: the next build in it writes the file again. */
static bool read_tree(const char *dir, const char *key, struct arena *a, struct build_tree *ret)
{
	AUTO_JSON json_t *j = NULL;
	struct stat st;
	const char *variant;

	if (fs_stat(dir, FILE_NAME, &st) < 0 || json_read(dir, FILE_NAME, &j, ERR_IGNORED) < 0)
		return false;
	variant = json_member(j, "variant");
	if (!variant)
		return false;
	*ret = (struct build_tree){
		.dir = dir, .key = key, .variant = arena_strdup(a, variant), .used = written(&st)};
	return true;
}

int build_tree_list(const char *builds, struct arena *a, struct build_tree **ret, size_t *ret_count,
		    struct err *e)
{
	struct strlist names = {0};
	size_t count = 0;

	if (fs_exists(builds, "") && fs_list(builds, "", a, &names, e) < 0)
		return -1;
	struct build_tree *list = arena_array(a, names.count + 1, sizeof(*list));
	for (size_t i = 0; i < names.count; i++)
		count += read_tree(path_join(a, builds, names.items[i]), names.items[i], a,
				   &list[count]);
	qsort(list, count, sizeof(*list), by_use);
	*ret = list;
	*ret_count = count;
	return 0;
}

/* Returns SANDBOX_TOP if the tree was built in it (core/root/sandbox.h) and must be there again. */
static const char *place_of(const struct sandbox *s)
{
	for (size_t i = 0; s->kind == SANDBOX_NONE && i < s->count; i++)
		if (strcmp(s->ops[i].dest, SANDBOX_SRC) == 0 && s->ops[i].source &&
		    strcmp(s->ops[i].source, SANDBOX_SRC) == 0)
			return SANDBOX_TOP;
	return NULL;
}

static int run_in_tree(const struct build_tree *t, const struct sandbox *s, const char *const *argv,
		       const struct run *run, struct proc_result *ret, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_WORK_TREE struct work_tree work = WORK_TREE_NONE;
	struct proc_spec spec = {.attached = true};

	if (work_tree_take(place_of(s), t->dir, run, &a, &work, e) < 0)
		return -1;
	int rc = sandbox_run(s, argv, &spec, run, ret, e);
	return work_tree_give_back(&work, rc < 0 ? ERR_IGNORED : e) < 0 ? -1 : rc;
}

struct sources {
	int64_t whole; /* when they were */
	struct buf *out;
};

/* What was written later, a compiler may have written. */
static int print_source(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct sources *s = user;

	(void)e;
	if (S_ISREG(st->st_mode) && written(st) <= s->whole)
		buf_printf(s->out, "%s %lld %lld\n", rel, (long long)st->st_size,
			   (long long)written(st));
	return 0;
}

static int print_sources(const struct build_tree *t, struct buf *out, struct err *e)
{
	struct stat st;

	if (fs_stat(t->dir, BUILD_SOURCE_OK, &st) < 0) /* they are unpacked again */
		return 0;
	return fs_walk(t->dir, "src", print_source, &(struct sources){written(&st), out}, e);
}

int build_tree_enter(const struct build_tree *t, const char *const *argv, const struct run *run,
		     struct err *e)
{
	/* bash for its prompt, sh where the root has none. */
	static const char *const shell[] = {
		"sh", "-c", "command -v bash >/dev/null && exec bash --norc -i || exec sh -i",
		NULL};
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *j = NULL;
	struct sandbox s;
	struct proc_result res = {0};
	AUTO_BUF struct buf before = {0}, after = {0};
	char digest[DIGEST_HEX_LEN + 1];
	const char *path = path_join(&a, t->dir, FILE_NAME);

	if (json_read(t->dir, FILE_NAME, &j, e) < 0 ||
	    sandbox_from_json(json_object_get(j, "sandbox"), path, &a, &s, e) < 0)
		return -1;
	s.terminal = isatty(STDIN_FILENO);
	if (s.terminal) {
		const char *term = getenv("TERM");
		kvlist_set(&s.env, &a, "TERM", term ? term : "dumb");
		kvlist_set(&s.env, &a, "PS1", "[ptbuild \\w]\\$ ");
	}

	if (print_sources(t, &before, e) < 0 ||
	    run_in_tree(t, &s, argv ? argv : shell, run, &res, e) < 0 ||
	    print_sources(t, &after, e) < 0)
		return -1;
	if (strcmp(buf_cstr(&before), buf_cstr(&after)) != 0) {
		digest_data(buf_cstr(&after), after.len, digest);
		if (fs_write(t->dir, BUILD_TREE_CHANGED, digest, strlen(digest), 0644, e) < 0)
			return -1;
	}

	if (!argv || res.status == 0)
		return 0;
	return err_set(e, ERR_BUILD, "'%s' ended with status %d", argv[0], res.status);
}
