/* What the packages of a part do not bring: links, files, and a toolkit below its prefix. */

#include "base/sys/fs.h"
#include "step/world/world_parts.h"

#define MAX_COPY (UINT64_C(64) << 20)

static int claim(struct world_making *m, const struct world_unit *unit, const char *path, enum name_kind kind,
		 struct name **ret, struct err *e)
{
	bool first;
	const struct name *have = names_find(&m->names, path);
	if (have && !(kind == NAME_DIR && have->kind == NAME_DIR))
		return err_set(e, ERR_CONFIG, "'%s', which is to be made, is there already: '%s' has it", path,
			       have->unit ? have->unit->name : "the world's table");
	/* a directory that is there keeps its time */
	return names_claim(&m->names, path, kind, unit, have ? (struct timespec){0} : m->newest, ret, &first, e);
}

int world_add_file(struct world_making *m, const struct world_unit *unit, const char *path, const void *data,
		   size_t len, struct err *e)
{
	const struct timespec times[2] = {m->newest, m->newest};
	struct name *n;
	AUTO_FD int fd = -1;
	if (claim(m, unit, path, NAME_FILE, &n, e) < 0)
		return -1;
	n->size = len;
	digest_data(data ? data : "", len, n->sha256);
	if (tree_create(&m->tree, path, 0644, &fd, e) < 0 || fs_write_all(fd, data ? data : "", len, path, e) < 0)
		return err_wrap(e, "'%s'", path);
	return futimens(fd, times) < 0 ? err_errno(e, ERR_SYSTEM, "cannot set the time of '%s'", path) : 0;
}

int world_add_link(struct world_making *m, const struct world_unit *unit, const char *path, const char *to,
		   struct err *e)
{
	struct name *n;
	const struct name *have = names_find(&m->names, path);
	if (have && have->kind == NAME_LINK && strcmp(have->target, to) == 0)
		return 0;
	if (claim(m, unit, path, NAME_LINK, &n, e) < 0)
		return -1;
	n->target = to;
	return tree_symlink(&m->tree, path, to, m->newest, e) < 0 ? err_wrap(e, "'%s'", path) : 0;
}

int world_add_dir(struct world_making *m, const struct world_unit *unit, const char *path, struct err *e)
{
	struct name *n;
	if (claim(m, unit, path, NAME_DIR, &n, e) < 0)
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

static int add_made(struct world_making *m, const struct world_part *p, const struct world_made *made,
		    const struct world_unit *unit, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};
	const char *from = world_part_path(made->from, m->q->world->platform, &a);
	const char *path = world_part_path(made->path, m->q->world->platform, &a);
	struct joining j = {m->q->dir, from, &text};
	if (!fs_exists(m->q->dir, from))
		return err_set(e, ERR_CONFIG, "part '%s': there is no '%s' to make '%s' of", p->part, from, path);
	int rc = strcmp(made->kind, "join") == 0 ? fs_walk(m->q->dir, from, join_file, &j, e)
						 : fs_read(m->q->dir, from, MAX_COPY, &text, e);
	if (rc == 0 && text.len == 0)
		rc = err_set(e, ERR_CONFIG, "there is nothing in '%s'", from);
	if (rc < 0)
		return err_wrap(e, "part '%s': cannot make '%s'", p->part, path);
	return world_add_file(m, unit, path, text.data, text.len, e);
}

int world_extras(struct world_making *m, const struct world_part *p, const struct world_unit *unit, struct err *e)
{
	for (unsigned i = 0; i < p->links_count; i++) {
		const struct world_link *l = &p->links[i];
		const char *platform = m->q->world->platform;
		if (world_add_link(m, unit, world_part_path(l->path, platform, &m->names.arena),
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
	    claim(r->m, r->unit, path, S_ISLNK(st->st_mode) ? NAME_LINK : NAME_FILE, &n, e) < 0)
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

int world_prefix(struct world_making *m, size_t piece, const struct world_unit *unit, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct world_piece *p = &m->q->world->pieces[piece];
	const char *prefix = p->part->prefix;
	struct toolkit_file *files = arena_array(&a, p->lock.count + 1, sizeof(*files));
	size_t count = 0;
	for (size_t i = 0; i < p->lock.count; i++) {
		const struct world_entry *t = &p->lock.entries[i];
		if (t->kind != WORLD_DEB && !world_part_place(p->part, t->name))
			files[count++] =
				(struct toolkit_file){m->q->files[piece][i], t->name, t->version, path_base(t->place)};
	}
	if (count == 0)
		return 0;
	if (world_add_dir(m, unit, prefix, e) < 0 ||
	    toolkit_tree_make(m->q->toolkits, files, count, m->q->world->platform, path_join(&a, m->q->dir, prefix),
			      m->run, e) < 0)
		return err_wrap(e, "part '%s'", p->part->part);
	struct reading r = {.m = m, .unit = unit, .prefix = prefix};
	AUTO_FD int dir = openat(m->tree.top, prefix, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return err_errno(e, ERR_SYSTEM, "cannot open '%s'", prefix);
	r.dir = dir;
	return fs_walk(m->q->dir, prefix, read_facts, &r, e);
}
