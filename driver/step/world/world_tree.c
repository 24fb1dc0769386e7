#include "step/world/world_tree.h"

#include <sys/utsname.h>

#include "base/sys/fs.h"
#include "core/root/sandbox.h"
#include "step/world/world_parts.h"

/* ---- what no package brings: links, files, and a toolkit below its prefix ---- */

#define MAX_COPY (UINT64_C(64) << 20)

static int claim(struct world_making *m, struct name_claim c, struct name **ret, struct err *e)
{
	const struct name *have = names_find(&m->names, c.path);

	if (have && !(c.kind == NAME_DIR && have->kind == NAME_DIR))
		return err_set(e, ERR_CONFIG, "cannot create '%s': '%s' has it already", c.path,
			       have->unit ? have->unit->name : "the world's table");
	/* a directory that is there keeps its time */
	c.mtime = have ? (struct timespec){0} : m->newest;
	return names_claim(&m->names, &c, ret, e);
}

/* `unit`: the part's, or NULL for the world's. ERR_CONFIG
 * where something else is, as for links and directories. */
static int add_file(struct world_making *m, const struct world_unit *unit, const char *path,
		    const void *data, size_t len, struct err *e)
{
	const struct timespec times[2] = {m->newest, m->newest};
	struct name *n;
	AUTO_FD int fd = -1;

	if (claim(m, (struct name_claim){.path = path, .kind = NAME_FILE, .unit = unit}, &n, e) < 0)
		return -1;
	n->size = len;
	digest_data(data ? data : "", len, n->sha256);
	if (tree_create(&m->tree, path, 0644, &fd, e) < 0 ||
	    fs_write_all(fd, data ? data : "", len, path, e) < 0)
		return err_wrap(e, "'%s'", path);
	return futimens(fd, times) < 0
		       ? err_errno(e, ERR_SYSTEM, "cannot set the time of '%s'", path)
		       : 0;
}

static int add_link(struct world_making *m, const struct world_unit *unit, const char *path,
		    const char *to, struct err *e)
{
	struct name *n;
	const struct name *have = names_find(&m->names, path);

	if (have && have->kind == NAME_LINK && strcmp(have->target, to) == 0)
		return 0;
	if (claim(m, (struct name_claim){.path = path, .kind = NAME_LINK, .unit = unit}, &n, e) < 0)
		return -1;
	n->target = to;
	return tree_symlink(&m->tree, path, to, m->newest, e) < 0 ? err_wrap(e, "'%s'", path) : 0;
}

static int add_dir(struct world_making *m, const struct world_unit *unit, const char *path,
		   struct err *e)
{
	struct name *n;

	if (claim(m, (struct name_claim){.path = path, .kind = NAME_DIR, .unit = unit}, &n, e) < 0)
		return -1;
	return tree_mkdir(&m->tree, path, m->newest, e) < 0 ? err_wrap(e, "'%s'", path) : 0;
}

struct joining {
	const char *dir, *from;
	struct buf *out;
};

static int join_file(const char *rel, const struct stat *st, void *user, struct err *e)
{
	const struct joining *j = user;
	AUTO_ARENA struct arena a = {0};

	if (!S_ISREG(st->st_mode) || !path_has_suffix(rel, ".crt"))
		return 0;
	if (fs_read(j->dir, path_join(&a, j->from, rel), MAX_COPY, j->out, e) < 0)
		return -1;
	if (j->out->len > 0 && j->out->data[j->out->len - 1] != '\n')
		buf_addc(j->out, '\n');
	return 0;
}

static int add_made(struct world_making *m, const struct world_part *p,
		    const struct world_made *made, const struct world_unit *unit, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};
	const char *from = world_part_path(made->from, m->q->world->platform, &a);
	const char *path = world_part_path(made->path, m->q->world->platform, &a);
	struct joining j = {m->q->dir, from, &text};

	if (!fs_exists(m->q->dir, from))
		return err_set(e, ERR_CONFIG, "part '%s': there is no '%s' to make '%s' of",
			       p->part, from, path);
	int rc = strcmp(made->kind, "join") == 0 ? fs_walk(m->q->dir, from, join_file, &j, e)
						 : fs_read(m->q->dir, from, MAX_COPY, &text, e);
	if (rc == 0 && text.len == 0)
		rc = err_set(e, ERR_CONFIG, "there is nothing in '%s'", from);
	if (rc < 0)
		return err_wrap(e, "part '%s': cannot make '%s'", p->part, path);
	return add_file(m, unit, path, text.data, text.len, e);
}

static int add_extras(struct world_making *m, const struct world_part *p,
		      const struct world_unit *unit, struct err *e)
{
	for (unsigned i = 0; i < p->links_count; i++) {
		const struct world_link *l = &p->links[i];
		const char *platform = m->q->world->platform;
		if (add_link(m, unit, world_part_path(l->path, platform, &m->names.arena),
			     world_part_path(l->to, platform, &m->names.arena), e) < 0)
			return -1;
	}

	for (unsigned i = 0; i < p->made_count; i++)
		if (add_made(m, p, &p->made[i], unit, e) < 0)
			return -1;
	return 0;
}

struct reading {
	struct world_making *m;
	const struct world_unit *unit;
	const char *prefix;
	int dir; /* of the prefix */
};

/* One file or link that the toolkit brought: its facts, and the world's time. */
static int read_facts(const char *rel, const struct stat *st, void *user, struct err *e)
{
	const struct reading *r = user;
	const struct timespec times[2] = {r->m->newest, r->m->newest};
	struct arena *a = &r->m->names.arena;
	const char *path = path_join(a, r->prefix, rel);
	char target[PATH_MAX];
	struct name *n;

	if (run_check(r->m->run, e) < 0 ||
	    claim(r->m,
		  (struct name_claim){.path = path,
				      .kind = S_ISLNK(st->st_mode) ? NAME_LINK : NAME_FILE,
				      .unit = r->unit},
		  &n, e) < 0)
		return -1;
	if (utimensat(r->dir, rel, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot set the time of '%s'", path);
	if (S_ISLNK(st->st_mode)) {
		ssize_t len = readlinkat(r->dir, rel, target, sizeof(target));
		if (len < 0)
			return err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
		n->target = arena_strndup(a, target, (size_t)len);
		return 0;
	}

	n->executable = (st->st_mode & S_IXUSR) != 0;
	n->size = (uint64_t)st->st_size;
	return digest_file(path_join(a, r->m->q->dir, path), n->sha256, e);
}

/* The toolkit of a part, with its files hashed and their times set. */
static int add_prefix(struct world_making *m, size_t piece, const struct world_unit *unit,
		      struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct world_piece *p = &m->q->world->pieces[piece];
	const char *prefix = p->part->prefix;
	struct toolkit_file *files = arena_array(&a, p->lock.count + 1, sizeof(*files));
	size_t count = 0;

	for (size_t i = 0; i < p->lock.count; i++) {
		const struct world_entry *t = &p->lock.entries[i];
		if (t->kind != WORLD_DEB && !world_part_place(p->part, t->name))
			files[count++] = (struct toolkit_file){m->q->files[piece][i], t->name,
							       t->version, path_base(t->place)};
	}

	if (count == 0)
		return 0;
	if (add_dir(m, unit, prefix, e) < 0 ||
	    toolkit_tree_make(m->q->toolkits, files, count, m->q->world->platform,
			      path_join(&a, m->q->dir, prefix), m->run, e) < 0)
		return err_wrap(e, "part '%s'", p->part->part);
	struct reading r = {.m = m, .unit = unit, .prefix = prefix};
	AUTO_FD int dir =
		openat(m->tree.top, prefix, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return err_errno(e, ERR_SYSTEM, "cannot open '%s'", prefix);
	r.dir = dir;
	return fs_walk(m->q->dir, prefix, read_facts, &r, e);
}

/* ---- what is made of all ---- */

#define MAX_COMPILED (UINT64_C(64) << 20)

/* Every module that the world's Python finds is compiled to its place below argv[1], by
 * argv[2] processes. Which of them compiles a file, and after which others, changes no
 * byte (tried: 1,556 files by 1, 2 and 3 processes). What is no Python of this version, as
 * some templates and tests of packages, stays as it is. */
static const char script[] =
	"import importlib.util, os, py_compile, sys\n"
	"out, parts, todo = sys.argv[1], int(sys.argv[2]), {}\n"
	"for top in filter(os.path.isdir, sys.path):\n"
	"    for at, dirs, files in os.walk(top):\n"
	"        dirs[:] = [d for d in dirs if d not in ('test', 'tests', '__pycache__')]\n"
	"        for path in (os.path.join(at, f) for f in files if f.endswith('.py')):\n"
	"            todo[path] = importlib.util.cache_from_source(path)\n"
	"part = next((i for i in range(1, parts) if os.fork() == 0), 0)\n"
	"for path in sorted(todo)[part::parts]:\n"
	"    if not os.path.lexists(todo[path]):\n"
	"        py_compile.compile(path, out + todo[path], path, quiet=2,\n"
	"                           "
	"invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\n"
	"if part:\n"
	"    os._exit(0)\n"
	"for i in range(1, parts):\n"
	"    if os.wait()[1]:\n"
	"        sys.exit('a process that compiles ended early')\n";

/* The base's own Python for this machine, which a cross part may have: it writes the same bytes
 * (5,117 files of debian13 compared, 2026-11-28). Else the world's Python. */
static const char *python_program(const struct world_making *m, struct arena *a)
{
	const struct emulation *by = m->q->emulation;
	const char *own = arena_printf(a, "usr/libexec/ptbuild/python%s",
				       m->q->world->pieces[0].part->python);
	const bool has = by && by->layer && !world_python_part(m->q->world);

	return has && fs_exists(by->layer, own) ? arena_printf(a, "/%s", own) : "python3";
}

static int run_script(const struct world_making *m, const struct root *root, struct arena *a,
		      struct err *e)
{
	const char *jobs = arena_printf(a, "%u", m->q->jobs < 1 ? 1 : m->q->jobs);
	const char *argv[] = {python_program(m, a), "-I", "-c", script, SANDBOX_OUT, jobs, NULL};
	AUTO_BUF struct buf out = {0};
	struct sandbox s;

	if (sandbox_init(&s, SANDBOX_BWRAP, root, a, e) < 0)
		return -1;
	sandbox_add(&s, SANDBOX_RW, m->q->compiled, SANDBOX_OUT);
	kvlist_set(&s.env, a, "PATH", root_build_path(root, a));
	return sandbox_capture(&s, argv, m->run, &out, e);
}

static int add_compiled(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct world_making *m = user;
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf bytes = {0};
	const char *dir = path_dir(&a, rel), *of = path_dir(&a, dir);
	const struct name *beside = names_find(&m->names, of);
	bool is_compiled = S_ISREG(st->st_mode) && path_has_suffix(rel, ".pyc");
	bool in_cache = path_has_suffix(dir, "/__pycache__") && beside && beside->kind == NAME_DIR;

	if (!is_compiled || !in_cache)
		return err_set(e, ERR_INTEGRITY,
			       "the world's Python wrote '%s', which compiles nothing of it", rel);
	if (fs_read(m->q->compiled, rel, MAX_COMPILED, &bytes, e) < 0 ||
	    add_dir(m, NULL, dir, e) < 0)
		return -1;
	return add_file(m, NULL, rel, bytes.data, bytes.len, e);
}

static int by_list(const void *a, const void *b)
{
	return strcmp((*(struct work *const *)a)->list_name, (*(struct work *const *)b)->list_name);
}

/* dpkg's database of all packages, as after an installation. */
static int world_dpkg(struct world_making *m, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf status = {0};
	struct work **debs = arena_array(&a, m->count + 1, sizeof(struct work *));
	size_t count = 0;

	for (size_t i = 0; i < m->count; i++)
		if (m->works[i].list_name)
			debs[count++] = &m->works[i];
	array_sort(debs, count, sizeof(struct work *), by_list);
	for (size_t i = 0; i < count; i++) {
		const char *path =
			arena_printf(&a, "var/lib/dpkg/info/%s.list", debs[i]->list_name);
		buf_addstr(&status, debs[i]->status);
		if (add_file(m, NULL, path, debs[i]->list.data, debs[i]->list.len, e) < 0)
			return -1;
	}

	if (add_file(m, NULL, "var/lib/dpkg/info/format", "1\n", 2, e) < 0 ||
	    add_file(m, NULL, "var/lib/dpkg/available", "", 0, e) < 0)
		return -1;
	return add_file(m, NULL, "var/lib/dpkg/status", buf_cstr(&status), status.len, e);
}

enum { MAX_JOBS = 32, MAX_PIECES = 32 };

/* What a root needs beside what packages bring. */
static const char *const dirs[] = {"dev",     "etc",     "home",    "proc",      "root",
				   "run",     "sys",     "tmp",     "usr",       "var",
				   "var/tmp", "usr/bin", "usr/lib", "usr/lib64", "usr/sbin"};
static const char *const links[][2] = {
	{"bin", "usr/bin"}, {"lib", "usr/lib"}, {"lib64", "usr/lib64"}, {"sbin", "usr/sbin"}};
/* What Debian's installer writes; the sandbox shows its own in this place. */
static const char hosts[] = "127.0.0.1 localhost\n::1 localhost\n";

/* Each thread has its own. */
struct pool {
	struct world_making *m;
	struct unpacker unpackers[MAX_JOBS];
};

static int unpack_one(unsigned thread, size_t i, void *user, struct err *e)
{
	struct pool *p = user;
	struct unpacker *u = &p->unpackers[thread];
	struct work *w = &p->m->works[i];

	if (!u->m && tree_open(&u->tree, p->m->q->dir, e) < 0)
		return -1;
	u->m = p->m;
	if (unpack_work(u, w, e) == 0)
		return 0;
	return e->kind != ERR_INTERRUPTED ? err_wrap(e, "'%s'", w->unit.name) : -1;
}

static int unpack_all(struct world_making *m, struct pool *p, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	unsigned jobs = m->q->jobs < 1 ? 1 : m->q->jobs > MAX_JOBS ? MAX_JOBS : m->q->jobs;
	uint64_t *sizes = arena_array(&a, m->count, sizeof(*sizes));

	for (size_t i = 0; i < m->count; i++)
		sizes[i] = m->works[i].entry->size;
	int rc = thread_items(jobs, m->count, sizes, m->run, unpack_one, p, e);
	for (size_t i = 0; i < jobs; i++)
		if (p->unpackers[i].m)
			tree_close(&p->unpackers[i].tree);
	return rc;
}

/* Whether a file of a part is unpacked by itself. */
static bool is_unpacked(const struct world_part *p, const struct world_entry *t)
{
	switch (t->kind) {
	case WORLD_DEB:
		return true;
	case WORLD_FILE:
		return strcmp(p->kind, "python") == 0;
	case WORLD_WHEEL:
		return world_part_place(p, t->name);
	default:
		return false;
	}
}

/* A unit for each file that is unpacked by itself. */
static int list_works(struct world_making *m, struct arena *a, struct err *e)
{
	const struct world *w = m->q->world;
	size_t all = 0;

	for (size_t i = 0; i < w->count; i++)
		all += w->pieces[i].lock.count;
	m->works = arena_array(a, all + 1, sizeof(*m->works));
	for (size_t i = 0; i < w->count; i++) {
		const struct world_part *p = w->pieces[i].part;
		for (size_t j = 0; j < w->pieces[i].lock.count; j++) {
			const struct world_entry *t = &w->pieces[i].lock.entries[j];
			if (!is_unpacked(p, t)) {
				if (strcmp(p->kind, "toolkit") == 0)
					continue;
				return err_set(e, ERR_CONFIG,
					       "part '%s' is not a toolkit, so '%s' "
					       "has no install path in it",
					       p->part, t->name);
			}

			struct work *k = &m->works[m->count];
			*k = (struct work){.part = p, .entry = t, .path = m->q->files[i][j]};
			k->unit = (struct world_unit){.name = t->name,
						      .piece = i,
						      .at = m->count++,
						      .replaces = &k->replaces};
		}
	}

	return 0;
}

/* New files changed the times of directories: they are set when all is there, those below first. */
static int set_dir_times(struct world_making *m, struct name *const *sorted, struct err *e)
{
	const struct timespec top[2] = {m->newest, m->newest};

	for (size_t i = m->names.count; i-- > 0;) {
		const struct name *n = sorted[i];
		struct timespec t = n->mtime.tv_sec ? n->mtime : m->newest;
		const struct timespec times[2] = {t, t};
		if (n->kind == NAME_DIR &&
		    utimensat(m->tree.top, n->path, times, AT_SYMLINK_NOFOLLOW) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot set the time of '%s'", n->path);
	}

	if (fchmod(m->tree.top, 0755) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot set the mode of '%s'", m->q->dir);
	return futimens(m->tree.top, top) < 0
		       ? err_errno(e, ERR_SYSTEM, "cannot set the time of '%s'", m->q->dir)
		       : 0;
}

static int finish(struct world_making *m, struct arena *a, struct world_tree *ret, struct err *e)
{
	const struct world *w = m->q->world;
	AUTO_ARENA struct arena scratch = {0};
	AUTO_BUF struct buf part = {0};
	struct name **all = names_sorted(&m->names, &scratch);

	if (set_dir_times(m, all, e) < 0)
		return -1;
	ret->parts = arena_array(a, w->count, sizeof(*ret->parts));
	for (size_t i = 0; i < w->count; i++) {
		buf_reset(&part);
		names_text(all, m->names.count, i, &part);
		digest_data(buf_cstr(&part), part.len, ret->parts[i]);
	}

	for (size_t i = 0; i < m->names.count; i++)
		ret->bytes += all[i]->size;
	names_text(all, m->names.count, SIZE_MAX, &ret->manifest);
	digest_data(buf_cstr(&ret->manifest), ret->manifest.len, ret->digest);
	return 0;
}

/* All that is not unpacked: what the parts' tables
 * say, part by part, then what is the world's own. */
static int add_rest(struct world_making *m, struct arena *a, struct err *e)
{
	const struct world *w = m->q->world;

	for (size_t i = 0; i < m->count; i++)
		if (m->works[i].newest.tv_sec > m->newest.tv_sec)
			m->newest = m->works[i].newest;
	/* Puts the winners of settled paths in their
	 * places, and removes the directory of spare files. */
	if (names_settle(&m->names, e) < 0)
		return -1;
	struct name **all = names_sorted(&m->names, a);
	for (size_t k = 0; k < m->names.count && m->names.spares > 0; k++)
		if (all[k]->spare &&
		    renameat(m->tree.top, all[k]->spare, m->tree.top, all[k]->path) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot rename '%s' to '%s'", all[k]->spare,
					 all[k]->path);
	if (fs_remove_at(m->tree.top, NAMES_SPARE, m->q->dir, e) < 0)
		return -1;
	for (size_t n = 0; n < ARRAY_LEN(dirs); n++)
		if (add_dir(m, NULL, dirs[n], e) < 0)
			return -1;
	for (size_t n = 0; n < ARRAY_LEN(links); n++)
		if (add_link(m, NULL, links[n][0], links[n][1], e) < 0)
			return -1;
	if (add_file(m, NULL, "etc/hosts", hosts, strlen(hosts), e) < 0)
		return -1;
	for (size_t i = 0; i < w->count; i++) {
		const struct world_part *p = w->pieces[i].part;
		struct world_unit *unit = arena_alloc(a, sizeof(*unit));
		*unit = (struct world_unit){.name = p->part, .piece = i, .at = SIZE_MAX};
		if ((strcmp(p->kind, "toolkit") == 0 && add_prefix(m, i, unit, e) < 0) ||
		    add_extras(m, p, unit, e) < 0)
			return -1;
	}

	const char *stamp = arena_printf(a, "%s %s %s\n", w->name, w->platform, w->key);
	if (world_dpkg(m, e) < 0 || add_file(m, NULL, WORLD_STAMP, stamp, strlen(stamp), e) < 0)
		return -1;
	/* The modules of the world's Python, by it, in the sandbox, where
	 * it runs on this machine; a warning where it does not run. */
	struct utsname u;
	struct root root;
	struct err why = {0};
	if (!m->q->compiled || uname(&u) < 0)
		return 0;
	const char *here = arena_printf(a, "%s-linux", u.machine);
	if (!m->q->emulation && strcmp(m->q->world->platform, here) != 0)
		return 0;
	if (root_open(m->q->dir, a, &root, &why) < 0 || !root_find_program(&root, "python3", a))
		return 0;
	root.emulation = m->q->emulation;
	if (run_script(m, &root, a, &why) == 0)
		return fs_walk(TRUSTED, m->q->compiled, add_compiled, m, e);
	if (why.kind == ERR_INTERRUPTED) {
		*e = why;
		return -1;
	}

	log_warn(m->run->log,
		 "the Python files of the world stay uncompiled, and each start of Python in it is "
		 "slower: %s",
		 why.msg);
	return 0;
}

int world_tree_make(const struct world_tree_request *q, struct arena *a, struct world_tree *ret,
		    struct err *e)
{
	AUTO_ARENA struct arena arena = {0};
	struct world_making m = {.q = q, .run = q->run};
	struct pool pool = {.m = &m};

	if (q->world->count > MAX_PIECES)
		return err_set(e, ERR_CONFIG, "world '%s' has more than %d parts", q->world->name,
			       MAX_PIECES);
	*ret = (struct world_tree){0};
	struct names *n = &m.names;
	*n = (struct names){0};
	pthread_mutex_init(&n->mutex, NULL);
	int rc = tree_open(&m.tree, q->dir, e) < 0 || list_works(&m, &arena, e) < 0 ||
				 unpack_all(&m, &pool, e) < 0
			 ? -1
			 : 0;
	if (rc < 0 || add_rest(&m, &arena, e) < 0 || finish(&m, a, ret, e) < 0)
		rc = err_wrap(e, "world '%s'", q->world->name);
	for (size_t i = 0; i < m.count; i++)
		buf_release(&m.works[i].list);
	for (size_t i = 0; i < MAX_JOBS; i++)
		arena_release(&pool.unpackers[i].arena); /* what the works point to */
	names_release(&m.names);
	tree_close(&m.tree);
	return rc;
}
