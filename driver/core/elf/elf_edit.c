#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys/fs.h"
#include "base/sys/proc.h"
#include "base/version.h"
#include "core/elf/elf.h"
#include "core/elf/elf_map.h"

#define PATCHELF_RANGE ">=0.14.3"

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
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot write '%s'", path);
	return fd;
}

static bool is_path_tag(int64_t tag)
{
	return tag == DT_RPATH || tag == DT_RUNPATH;
}

/* The first path tag becomes the DT_RPATH with string `index` (or goes, unless `keep`), the others go, and the entries
 * behind them move up. */
static int write_tags(int fd, const struct elf_map *m, bool keep, uint64_t index, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	Elf64_Dyn *dyn = arena_array(&a, m->dyn_count + 1, sizeof(*dyn));
	size_t n = 0;
	for (size_t i = 0; i < m->dyn_count; i++) {
		Elf64_Dyn d = m->dyn[i];
		if (is_path_tag(d.d_tag)) {
			if (!keep)
				continue;
			d.d_tag = DT_RPATH;
			d.d_un.d_val = index;
			keep = false;
		}
		dyn[n++] = d;
	}
	return fs_write_at(fd, dyn, (m->dyn_count + 1) * sizeof(*dyn), m->dyn_offset, m->name, e);
}

/* Blanks every path string that nothing else uses, since no build path may stay in the file. */
static int blank_strings(int fd, struct elf_map *m, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	for (size_t i = 0; i < m->dyn_count; i++) {
		size_t room;
		if (!is_path_tag(m->dyn[i].d_tag))
			continue;
		if (elf_map_path_room(m, m->dyn[i].d_un.d_val, &room, e) < 0 ||
		    fs_write_at(fd, arena_alloc(&a, room), room, m->strings + m->dyn[i].d_un.d_val, m->name, e) < 0)
			return -1;
	}
	return 0;
}

/* rpath "" removes the tags; else it must fit into the room of the string that elf_read reports. */
static int edit_in_place(const char *path, const char *rpath, struct err *e)
{
	AUTO_ELF_MAP struct elf_map m;
	uint64_t index = 0;
	if (elf_map_open(path, &m, e) < 0)
		return -1;
	if (!elf_map_dyn(&m, DT_RPATH, &index) && !elf_map_dyn(&m, DT_RUNPATH, &index))
		return 0;
	AUTO_FD int fd = open_writable(path, e);
	if (fd < 0 || blank_strings(fd, &m, e) < 0)
		return -1;
	if (*rpath && fs_write_at(fd, rpath, strlen(rpath), m.strings + index, path, e) < 0)
		return -1;
	return write_tags(fd, &m, *rpath != '\0', index, e);
}

int elf_check_patchelf(const struct run *run, struct err *e)
{
	static const char *const argv[] = {"patchelf", "--version", NULL};
	AUTO_BUF struct buf out = {0};
	bool fits;
	if (proc_capture(argv, run, &out, e) < 0)
		return err_hint(e, "install patchelf %s", PATCHELF_RANGE);
	const char *version = strrchr(buf_cstr(&out), ' ');
	version = version ? version + 1 : buf_cstr(&out);
	if (!version_valid(version))
		return err_set(e, ERR_SYSTEM, "cannot read the version of patchelf from '%s'", buf_cstr(&out));
	if (version_in(version, PATCHELF_RANGE, &fits, e) < 0)
		return -1;
	if (!fits) {
		err_set(e, ERR_SYSTEM, "patchelf '%s' is too old, %s is needed", version, PATCHELF_RANGE);
		return err_hint(e, "older ones write libraries that do not load; install a newer patchelf");
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

/* Reads the edited file again: it must be as `want` says, and loadable. `name` is for the message. */
static int check_edited(const char *path, const char *name, const struct elf_info *want, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_ELF_MAP struct elf_map m = {0};
	struct elf_info got;
	const char *bad = NULL;
	if (elf_read(path, ELF_SYMBOLS, &a, &got, e) < 0 || elf_map_open(path, &m, e) < 0 ||
	    elf_map_loadable(&m, e) < 0)
		return err_wrap(e, "editing '%s' broke it", name);
	if (!same_path(got.rpath, want->rpath) || !same_path(got.runpath, want->runpath))
		bad = "search path";
	else if (strcmp(got.soname, want->soname) != 0)
		bad = "SONAME";
	else if (!same_list(&got.needed, &want->needed))
		bad = "list of needed libraries";
	else if (!same_list(&got.defined, &want->defined) || !same_list(&got.undefined, &want->undefined))
		bad = "symbols";
	else if (got.versions_count != want->versions_count)
		bad = "version needs";
	for (size_t i = 0; !bad && i < got.versions_count; i++) {
		if (strcmp(got.versions[i].file, want->versions[i].file) != 0 ||
		    strcmp(got.versions[i].version, want->versions[i].version) != 0)
			bad = "version needs";
	}
	return bad ? err_set(e, ERR_INTEGRITY, "editing '%s' broke it: its %s came out wrong", name, bad) : 0;
}

/* Runs patchelf on `from`, the result in `to` with from's permissions. */
static int run_patchelf(struct strlist *argv, struct arena *a, const char *from, const char *to, const struct run *run,
			struct err *e)
{
	AUTO_BUF struct buf out = {0};
	struct stat st;
	if (stat(from, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", from);
	strlist_ref(argv, a, "--output");
	strlist_ref(argv, a, to);
	strlist_ref(argv, a, from);
	if (proc_capture(strlist_argv(argv, a), run, &out, e) < 0)
		return err_wrap(e, "cannot edit '%s'", from);
	if (chmod(to, st.st_mode & 07777) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot set the permissions of '%s'", to);
	return 0;
}

/* Unless it failed before (`rc`), the copy takes the file's place once it is proved right. */
static int put_in_place(const char *fresh, const char *path, const struct elf_info *want, int rc, struct err *e)
{
	if (rc == 0)
		rc = check_edited(fresh, path, want, e);
	if (rc == 0 && rename(fresh, path) < 0)
		rc = err_errno(e, ERR_SYSTEM, "cannot replace '%s'", path);
	if (rc < 0)
		unlink(fresh);
	return rc;
}

/* The old string is taken out first: patchelf would overwrite it even if another name is inside it. */
static int edit_through_copy(const char *path, const char *rpath, struct arena *a, const struct elf_info *want,
			     const struct run *run, struct err *e)
{
	const char *bare = arena_printf(a, "%s.bare", path), *fresh = arena_printf(a, "%s.new", path);
	struct strlist argv = {0};
	strlist_split(&argv, a, "patchelf --force-rpath --set-rpath", " ");
	strlist_ref(&argv, a, rpath);
	if (elf_check_patchelf(run, e) < 0)
		return -1;
	int rc = fs_copy(TRUSTED, path, bare, e) < 0 || edit_in_place(bare, "", e) < 0 ||
				 run_patchelf(&argv, a, bare, fresh, run, e) < 0
			 ? -1
			 : 0;
	unlink(bare);
	return put_in_place(fresh, path, want, rc, e);
}

int elf_set_rpath(const char *path, const char *rpath, const struct run *run, bool *ret_in_place, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct elf_info info;
	if (elf_read(path, ELF_SYMBOLS, &a, &info, e) < 0)
		return -1;
	if (!info.dynamic)
		return err_set(e, ERR_POLICY, "'%s' has no dynamic entries, so it cannot have a search path", path);
	bool done = !info.runpath && (*rpath ? same_path(info.rpath, rpath) : !info.rpath);
	bool in_place = done || *rpath == '\0' || strlen(rpath) <= info.rpath_room;
	info.rpath = *rpath ? rpath : NULL;
	info.runpath = NULL;
	if (!done && in_place && (edit_in_place(path, rpath, e) < 0 || check_edited(path, path, &info, e) < 0))
		return -1;
	if (!in_place && edit_through_copy(path, rpath, &a, &info, run, e) < 0)
		return -1;
	if (ret_in_place)
		*ret_in_place = in_place;
	return 0;
}

/* NULL if the name stays. */
static const char *new_name(const struct kvlist *needed, const char *name)
{
	const char *to = kvlist_get(needed, name);
	return to && strcmp(to, name) != 0 ? to : NULL;
}

/* What the file must look like after the renaming; false if it does already. */
static bool rename_info(struct elf_info *info, const char *soname, const struct kvlist *needed, struct arena *a)
{
	bool change = soname && strcmp(soname, info->soname) != 0;
	struct strlist names = {0};
	for (size_t i = 0; i < info->needed.count; i++) {
		const char *to = new_name(needed, info->needed.items[i]);
		change = change || to;
		strlist_ref(&names, a, to ? to : info->needed.items[i]);
	}
	struct elf_version_need *versions = arena_array(a, info->versions_count, sizeof(versions[0]));
	for (size_t i = 0; i < info->versions_count; i++) {
		const char *to = new_name(needed, info->versions[i].file);
		change = change || to;
		versions[i] = (struct elf_version_need){to ? to : info->versions[i].file, info->versions[i].version};
	}
	info->versions = versions;
	info->soname = soname ? soname : info->soname;
	info->needed = names;
	return change;
}

static bool find_needed(const struct elf_map *m, const char *name, uint32_t *ret, struct err *e)
{
	for (size_t i = 0; i < m->dyn_count; i++) {
		const char *s;
		uint64_t index = m->dyn[i].d_un.d_val;
		if (m->dyn[i].d_tag == DT_NEEDED && index <= UINT32_MAX &&
		    elf_map_string(m, index, m->dyn_offset, &s, e) == 0 && strcmp(s, name) == 0) {
			*ret = (uint32_t)index;
			return true;
		}
	}
	return false;
}

/* Version needs that still name the old file, though the loader wants each to name a needed library. The new name is in
 * the string table already, as a NEEDED. */
static int rename_version_files(const char *path, const struct kvlist *needed, struct err *e)
{
	AUTO_ELF_MAP struct elf_map m;
	struct elf_need *needs;
	size_t count;
	if (elf_map_open(path, &m, e) < 0 || elf_map_needs(&m, &needs, &count, e) < 0)
		return -1;
	AUTO_FD int fd = -1;
	for (size_t i = 0; i < count; i++) {
		const char *file;
		uint32_t index;
		if (elf_map_string(&m, needs[i].file, needs[i].offset, &file, e) < 0)
			return -1;
		const char *to = new_name(needed, file);
		if (!to || !find_needed(&m, to, &index, e))
			continue;
		if (fd < 0 && (fd = open_writable(path, e)) < 0)
			return -1;
		if (fs_write_at(fd, &index, sizeof(index), needs[i].offset + offsetof(Elf64_Verneed, vn_file), path,
				e) < 0)
			return -1;
	}
	return 0;
}

struct room {
	uint64_t index;      /* of the search path in the string table */
	size_t len;          /* of it */
	struct kvlist names; /* the new ones; each once */
	size_t bytes;        /* of them with their NULs */
};

/* How much of the search path's string the new names take. */
static int measure_room(struct elf_map *m, const struct elf_info *info, const struct kvlist *needed, struct arena *a,
			struct room *ret, struct err *e)
{
	struct room r = {0};
	if ((elf_map_dyn(m, DT_RPATH, &r.index) || elf_map_dyn(m, DT_RUNPATH, &r.index)) &&
	    elf_map_path_room(m, r.index, &r.len, e) < 0)
		return -1;
	for (size_t i = 0; i < info->needed.count; i++) {
		const char *to = new_name(needed, info->needed.items[i]);
		if (!to || kvlist_get(&r.names, to))
			continue;
		kvlist_set(&r.names, a, to, "");
		r.bytes += strlen(to) + 1;
	}
	*ret = r;
	return 0;
}

/* Where a new name will start in the string table: they fill the end of the search path's string. */
static uint64_t index_of(const struct room *r, const char *name)
{
	uint64_t at = r->index + r->len + 1 - r->bytes;
	for (size_t i = 0; i < r->names.count && strcmp(r->names.items[i].key, name) != 0; i++)
		at += strlen(r->names.items[i].key) + 1;
	return at;
}

static int write_names(int fd, const struct elf_map *m, const struct room *r, struct err *e)
{
	for (size_t i = 0; i < r->names.count; i++) {
		const char *name = r->names.items[i].key;
		if (fs_write_at(fd, name, strlen(name) + 1, m->strings + index_of(r, name), m->name, e) < 0)
			return -1;
	}
	return fs_write_at(fd, "", 1, m->strings + r->index + r->len - r->bytes, m->name, e);
}

static int write_needed(int fd, const struct elf_map *m, const struct room *r, const struct kvlist *needed,
			struct err *e)
{
	const char *s;
	for (size_t i = 0; i < m->dyn_count; i++) {
		Elf64_Dyn d = m->dyn[i];
		if (d.d_tag != DT_NEEDED)
			continue;
		if (elf_map_string(m, d.d_un.d_val, m->dyn_offset, &s, e) < 0)
			return -1;
		const char *to = new_name(needed, s);
		if (!to)
			continue;
		d.d_un.d_val = index_of(r, to);
		if (fs_write_at(fd, &d, sizeof(d), m->dyn_offset + i * sizeof(d), m->name, e) < 0)
			return -1;
	}
	return 0;
}

int elf_rename_in_place(const char *path, const struct kvlist *needed, size_t keep, bool *ret_done, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_ELF_MAP struct elf_map m = {0};
	struct elf_info info, want;
	struct room r;
	if (elf_read(path, ELF_SYMBOLS, &a, &info, e) < 0 || elf_map_open(path, &m, e) < 0)
		return -1;
	want = info;
	if (!rename_info(&want, NULL, needed, &a)) {
		*ret_done = true;
		return 0;
	}
	if (measure_room(&m, &info, needed, &a, &r, e) < 0)
		return -1;
	/* A version need without its NEEDED has no new name to refer to. */
	bool fits = r.len >= r.bytes && r.len - r.bytes >= keep && r.index + r.len <= UINT32_MAX;
	for (size_t i = 0; fits && i < want.versions_count; i++)
		fits = strlist_contains(&want.needed, want.versions[i].file);
	if (!fits) {
		*ret_done = false;
		return 0;
	}
	AUTO_FD int fd = open_writable(path, e);
	if (fd < 0 || write_needed(fd, &m, &r, needed, e) < 0 || write_names(fd, &m, &r, e) < 0 ||
	    rename_version_files(path, needed, e) < 0)
		return -1;
	if (want.rpath)
		want.rpath = arena_strndup(&a, want.rpath, r.len - r.bytes);
	if (want.runpath)
		want.runpath = arena_strndup(&a, want.runpath, r.len - r.bytes);
	if (check_edited(path, path, &want, e) < 0)
		return -1;
	*ret_done = true;
	return 0;
}

/* In two runs: patchelf 0.14.3 loses the SONAME if it replaces NEEDED entries at the same time. */
static int rename_through_copy(const char *path, const char *fresh, const char *soname, const struct elf_info *info,
			       const struct kvlist *needed, struct arena *a, const struct run *run, struct err *e)
{
	struct strlist argv = {0}, first = {0};
	strlist_ref(&argv, a, "patchelf");
	for (size_t i = 0; i < info->needed.count; i++) {
		const char *to = new_name(needed, info->needed.items[i]);
		if (!to)
			continue;
		strlist_ref(&argv, a, "--replace-needed");
		strlist_ref(&argv, a, info->needed.items[i]);
		strlist_ref(&argv, a, to);
	}
	if (!soname || strcmp(soname, info->soname) == 0)
		return run_patchelf(&argv, a, path, fresh, run, e);
	strlist_split(&first, a, "patchelf --set-soname", " ");
	strlist_ref(&first, a, soname);
	if (argv.count == 1)
		return run_patchelf(&first, a, path, fresh, run, e);
	const char *middle = arena_printf(a, "%s.middle", path);
	int rc = run_patchelf(&first, a, path, middle, run, e);
	if (rc == 0)
		rc = run_patchelf(&argv, a, middle, fresh, run, e);
	unlink(middle);
	return rc;
}

int elf_rename(const char *path, const char *soname, const struct kvlist *needed, const struct run *run, struct err *e)
{
	static const struct kvlist none;
	AUTO_ARENA struct arena a = {0};
	struct elf_info info, want;
	needed = needed ? needed : &none;
	if (elf_read(path, ELF_SYMBOLS, &a, &info, e) < 0)
		return -1;
	if (!info.dynamic)
		return err_set(e, ERR_POLICY, "'%s' has no dynamic entries, so it has no names to change", path);
	want = info;
	if (!rename_info(&want, soname, needed, &a))
		return 0;
	if (elf_check_patchelf(run, e) < 0)
		return -1;
	const char *fresh = arena_printf(&a, "%s.new", path);
	int rc = rename_through_copy(path, fresh, soname, &info, needed, &a, run, e);
	if (rc == 0)
		rc = rename_version_files(fresh, needed, e);
	return put_in_place(fresh, path, &want, rc, e);
}
