#include "core/elf/elf.h"
#include "core/elf/elf_map.h"

/* Build back ends leave files that their owner may not write. */
static int open_writable(const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
	bool locked = (st.st_mode & S_IWUSR) == 0;
	if (locked && chmod(path, (st.st_mode & 07777) | S_IWUSR) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot make '%s' writable", path);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int saved = errno;
	if (locked && chmod(path, st.st_mode & 07777) < 0)
		saved = errno;
	errno = saved;
	return fd < 0 ? err_errno(e, ERR_SYSTEM, "cannot write '%s'", path) : fd;
}

static bool is_path_tag(int64_t tag)
{
	return tag == DT_RPATH || tag == DT_RUNPATH;
}

/* Blanks every path string, but for a tail that something
 * else uses, since no build path may stay in the file. */
static int blank_strings(int fd, struct elf_map *m, struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	for (size_t i = 0; i < m->dyn_count; i++) {
		size_t room;
		if (!is_path_tag(m->dyn[i].d_tag))
			continue;
		if (elf_map_path_room(m, m->dyn[i].d_un.d_val, &room, e) < 0)
			return -1;
		if (room > 0 && fs_write_at(fd, arena_alloc(&a, room + 1), room + 1,
					    m->strings + m->dyn[i].d_un.d_val, m->name, e) < 0)
			return -1;
	}

	return 0;
}

static bool same_list(const struct strlist *a, const struct strlist *b)
{
	bool same = a->count == b->count;

	for (size_t i = 0; i < a->count && same; i++)
		same = strcmp(a->items[i], b->items[i]) == 0;
	return same;
}

static bool same_path(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Reads the edited file again: it must be as `want`
 * says, and loadable. `name` is for the message. */
static int check_edited(const char *path, const char *name, const struct elf_info *want,
			struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_ELF_MAP struct elf_map m = {0};
	struct elf_info got;
	const char *bad = NULL;

	if (elf_read_all(path, &a, &got, e) < 0 || elf_map_open(path, &m, e) < 0 ||
	    elf_map_loadable(&m, e) < 0)
		return err_wrap(e, "editing '%s' broke it", name);
	if (!same_path(got.rpath, want->rpath) || !same_path(got.runpath, want->runpath))
		bad = "search path";
	else if (strcmp(got.soname, want->soname) != 0)
		bad = "SONAME";
	else if (!same_list(&got.needed, &want->needed))
		bad = "list of needed libraries";
	else if (!same_list(&got.defined, &want->defined) ||
		 !same_list(&got.undefined, &want->undefined))
		bad = "symbols";
	else if (got.versions_count != want->versions_count)
		bad = "version needs";
	for (size_t i = 0; !bad && i < got.versions_count; i++) {
		if (strcmp(got.versions[i].file, want->versions[i].file) != 0 ||
		    strcmp(got.versions[i].version, want->versions[i].version) != 0)
			bad = "version needs";
	}

	return bad ? err_set(e, ERR_INTEGRITY, "editing '%s' broke it: its %s came out wrong", name,
			     bad)
		   : 0;
}

/* NULL if the name stays. */
static const char *new_name(const struct kvlist *needed, const char *name)
{
	const char *to = kvlist_get(needed, name);
	return to && strcmp(to, name) != 0 ? to : NULL;
}

/* What the file must look like afterwards; false if its names do already. */
static bool rename_info(struct elf_info *info, const char *soname, const struct kvlist *needed,
			struct arena *a)
{
	bool change = soname && strcmp(soname, info->soname) != 0;
	struct strlist names = {0};

	for (size_t i = 0; i < info->needed.count; i++) {
		const char *to = new_name(needed, info->needed.items[i]);
		change = change || to;
		strlist_ref(&names, a, to ? to : info->needed.items[i]);
	}

	struct elf_version_need *versions =
		arena_array(a, info->versions_count, sizeof(versions[0]));
	for (size_t i = 0; i < info->versions_count; i++) {
		const char *to = new_name(needed, info->versions[i].file);
		change = change || to;
		versions[i] = (struct elf_version_need){to ? to : info->versions[i].file,
							info->versions[i].version, false};
	}

	info->versions = versions;
	info->soname = soname ? soname : info->soname;
	info->needed = names;
	return change;
}

/* Strings that the file gets, each once. */
struct strings {
	struct strlist names;
	size_t bytes; /* of them with their NULs */
	uint64_t at;  /* of the first in the string table */
};

static void add_string(struct strings *s, struct arena *a, const char *name)
{
	if (!name || !*name || strlist_contains(&s->names, name))
		return;
	strlist_ref(&s->names, a, name);
	s->bytes += strlen(name) + 1;
}

static uint64_t index_of(const struct strings *s, const char *name)
{
	uint64_t at = s->at;

	for (size_t i = 0; i < s->names.count && strcmp(s->names.items[i], name) != 0; i++)
		at += strlen(s->names.items[i]) + 1;
	return at;
}

/* How many dynamic entries come to those that are there. */
static size_t more_entries(const struct elf_map *m, const struct elf_change *c)
{
	uint64_t value;

	return (*c->rpath && !elf_map_dyn(m, DT_RPATH, &value) &&
		!elf_map_dyn(m, DT_RUNPATH, &value)) +
	       (c->soname && !elf_map_dyn(m, DT_SONAME, &value));
}

/* A file that is changed in place, or its copy. */
struct editing {
	int fd;
	struct elf_map *m;
	const struct elf_change *c;
	struct strings s;
};

/* The dynamic entries as they will be, with the DT_NULL
 * behind them; what is left of their room is zero. */
static int new_entries(const struct editing *x, Elf64_Dyn *to, struct err *e)
{
	const struct elf_map *m = x->m;
	const struct elf_change *c = x->c;
	const struct strings *s = &x->s;
	bool path = *c->rpath, soname = c->soname;
	size_t n = 0;

	for (size_t i = 0; i < m->dyn_count; i++) {
		Elf64_Dyn d = m->dyn[i];
		const char *name = "";
		if (is_path_tag(d.d_tag)) {
			if (!path)
				continue;
			d = (Elf64_Dyn){DT_RPATH, {index_of(s, c->rpath)}};
			path = false;
		}

		if ((d.d_tag == DT_NEEDED || d.d_tag == DT_SONAME) &&
		    elf_map_string(m, d.d_un.d_val, m->dyn_offset, &name, e) < 0)
			return -1;
		if (d.d_tag == DT_NEEDED && new_name(c->needed, name))
			d.d_un.d_val = index_of(s, new_name(c->needed, name));
		if (d.d_tag == DT_SONAME && soname && strcmp(name, c->soname) != 0)
			d.d_un.d_val = index_of(s, c->soname);
		soname = soname && d.d_tag != DT_SONAME;
		to[n++] = d;
	}

	if (path)
		to[n++] = (Elf64_Dyn){DT_RPATH, {index_of(s, c->rpath)}};
	if (soname)
		to[n++] = (Elf64_Dyn){DT_SONAME, {index_of(s, c->soname)}};
	memset(to + n, 0, (m->dyn_count + 3 - n) * sizeof(*to));
	return 0;
}

/* Version needs that still name the old file, though
 * the loader wants each to name a needed library. */
static int write_needs(const struct editing *x, struct err *e)
{
	struct elf_map *m = x->m;
	struct elf_need *needs;
	size_t count;

	if (elf_map_needs(m, &needs, &count, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const char *file;
		if (elf_map_string(m, needs[i].file, needs[i].offset, &file, e) < 0)
			return -1;
		const char *to = new_name(x->c->needed, file);
		uint64_t index = to ? index_of(&x->s, to) : 0;
		if (index > UINT32_MAX)
			return elf_map_bad(m, needs[i].offset, e,
					   "a string table of more than 4 GiB, used");
		const uint32_t value = (uint32_t)index;
		if (to &&
		    fs_write_at(x->fd, &value, sizeof(value),
				needs[i].offset + offsetof(Elf64_Verneed, vn_file), m->name, e) < 0)
			return -1;
	}

	return 0;
}

/* The strings have room at s.at. */
static int edit(const struct editing *x, struct err *e)
{
	struct elf_map *m = x->m;
	const struct strings *s = &x->s;
	AUTO_ARENA struct arena a = {0};
	Elf64_Dyn *dyn = arena_array(&a, m->dyn_count + 3, sizeof(*dyn));
	const size_t count = m->dyn_count + 3 < m->dyn_room ? m->dyn_count + 3 : m->dyn_room;
	uint64_t at = m->strings + s->at;

	/* The map sees what is written: version needs into
	 * the search path's string come after it is blank. */
	if (new_entries(x, dyn, e) < 0 || blank_strings(x->fd, m, e) < 0)
		return -1;
	for (size_t i = 0; i < s->names.count; at += strlen(s->names.items[i++]) + 1)
		if (fs_write_at(x->fd, s->names.items[i], strlen(s->names.items[i]) + 1, at,
				m->name, e) < 0)
			return -1;
	return write_needs(x, e) < 0
		       ? -1
		       : fs_write_at(x->fd, dyn, count * sizeof(*dyn), m->dyn_offset, m->name, e);
}

/* The copy has a longer string table, with the strings behind the old ones. */
static int edit_copy(const char *fresh, const struct editing *old, struct err *e)
{
	const struct elf_map *m = old->m;
	struct editing x = *old;
	AUTO_ARENA struct arena a = {0};
	AUTO_ELF_MAP struct elf_map grown = {0};
	struct elf_cut cut = {.map = m, .a = &a};
	struct stat st;

	x.s.at = m->strings_size;
	if (stat(m->name, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", m->name);
	if (elf_cut_grow(&cut, x.s.bytes, more_entries(m, x.c), e) < 0)
		return -1;
	AUTO_FD int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot write '%s'", fresh);
	if (elf_cut_write(&cut, fd, fresh, e) < 0 || elf_map_open(fresh, &grown, e) < 0)
		return -1;
	x.fd = fd;
	x.m = &grown;
	if (edit(&x, e) < 0)
		return -1;
	return fchmod(fd, st.st_mode & 07777) < 0
		       ? err_errno(e, ERR_SYSTEM, "cannot set the permissions of '%s'", fresh)
		       : 0;
}

/* A file is as `info` says, and becomes as `after`. */
struct change {
	const char *path;
	struct elf_change want;
	struct elf_info info, after;
	bool in_place;
};

static int write_change(struct change *h, struct arena *a, struct err *e)
{
	const char *path = h->path;
	const struct elf_change *c = &h->want;
	const struct elf_info *info = &h->info, *after = &h->after;
	AUTO_ELF_MAP struct elf_map m = {0};
	struct editing x = {.m = &m, .c = c};
	struct strings *s = &x.s;
	size_t room = 0;

	if (elf_map_open(path, &m, e) < 0)
		return -1;
	add_string(s, a, c->rpath);
	for (size_t i = 0; i < info->needed.count; i++)
		add_string(s, a, new_name(c->needed, info->needed.items[i]));
	for (size_t i = 0; i < info->versions_count; i++)
		add_string(s, a, new_name(c->needed, info->versions[i].file));
	if (c->soname && strcmp(c->soname, info->soname) != 0)
		add_string(s, a, c->soname);
	if ((elf_map_dyn(&m, DT_RPATH, &s->at) || elf_map_dyn(&m, DT_RUNPATH, &s->at)) &&
	    elf_map_path_room(&m, s->at, &room, e) < 0)
		return -1;
	h->in_place = s->bytes == 0 || (room && s->bytes <= room + 1 &&
					m.dyn_count + more_entries(&m, c) < m.dyn_room);
	if (h->in_place) {
		AUTO_FD int fd = open_writable(path, e);
		x.fd = fd;
		return fd < 0 || edit(&x, e) < 0 ? -1 : check_edited(path, path, after, e);
	}

	const char *fresh = arena_printf(a, "%s.new", path);
	int rc = edit_copy(fresh, &x, e);
	if (rc == 0)
		rc = check_edited(fresh, path, after, e);
	if (rc == 0 && rename(fresh, path) < 0)
		rc = err_errno(e, ERR_SYSTEM, "cannot replace '%s'", path);
	if (rc < 0)
		unlink(fresh);
	return rc;
}

int elf_change(const char *path, const struct elf_change *c, bool *ret_in_place, struct err *e)
{
	static const struct kvlist none;
	AUTO_ARENA struct arena a = {0};
	struct change h = {.path = path,
			   .want = {c->soname, c->needed ? c->needed : &none, c->rpath},
			   .in_place = true};
	struct elf_info *after = &h.after;

	if (elf_read_all(path, &a, &h.info, e) < 0)
		return -1;
	if (!h.info.dynamic)
		return err_set(e, ERR_POLICY,
			       "'%s' has no dynamic entries, so it cannot have a search path",
			       path);
	*after = h.info;
	bool names = rename_info(after, h.want.soname, h.want.needed, &a);
	after->rpath = *h.want.rpath ? h.want.rpath : NULL;
	after->runpath = NULL;
	if ((names || h.info.runpath || !same_path(h.info.rpath, after->rpath)) &&
	    write_change(&h, &a, e) < 0)
		return -1;
	if (ret_in_place)
		*ret_in_place = h.in_place;
	return 0;
}
