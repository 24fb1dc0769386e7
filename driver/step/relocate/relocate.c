#include "step/relocate/relocate.h"

#include <fnmatch.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "step/relocate/relocate_parts.h"

void relocate_add(struct relocation *r, struct relocate_file *f)
{
	r->files = arena_room(r->a, r->files, r->count, &r->cap, 64, sizeof(struct relocate_file *));
	r->files[r->count++] = f;
}

bool relocate_matches(const struct strlist *patterns, const char *name)
{
	for (size_t i = 0; i < patterns->count; i++)
		if (fnmatch(patterns->items[i], name, 0) == 0)
			return true;
	return false;
}

static int collect_one(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct relocation *r = user;
	const char *path = path_join(r->a, r->q->tree, rel);
	bool is_elf;
	if (!S_ISREG(st->st_mode))
		return 0;
	if (elf_is(path, &is_elf, e) < 0)
		return -1;
	if (!is_elf)
		return 0;
	struct relocate_file *f = arena_alloc(r->a, sizeof(*f));
	*f = (struct relocate_file){.rel = arena_strdup(r->a, rel), .path = path};
	f->dir = strchr(rel, '/') ? path_dir(r->a, rel) : "";
	if (elf_read(path, 0, r->a, &f->info, e) < 0)
		return -1;
	/* Objects and GPU code are ELF files too, but the loader does not open them. */
	if (f->info.dynamic)
		relocate_add(r, f);
	return 0;
}

/* Copies a library out of the root, always with mode 0755. */
static int copy_library(struct relocation *r, struct relocate_file *f, struct err *e)
{
	const char *source = path_join(r->a, r->q->root->dir, f->vendor->source);
	if (fs_exists(TRUSTED, f->path))
		return err_set(e, ERR_POLICY, "cannot vendor '%s': '%s' is in the wheel already", f->vendor->source,
			       f->rel);
	if (fs_mkdirs(TRUSTED, path_join(r->a, r->q->tree, r->q->libs_dir), e) < 0 ||
	    fs_copy(TRUSTED, source, f->path, e) < 0)
		return -1;
	if (chmod(f->path, 0755) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot set the permissions of '%s'", f->path);
	log_verbose(r->run->log, "vendored %s as %s", f->vendor->source, f->rel);
	return 0;
}

static int finish_file(struct relocation *r, struct relocate_file *f, struct err *e)
{
	bool in_place, done = false;
	const char *soname = f->vendor ? f->vendor->name : NULL, *rpath = relocate_rpath(r, f);
	if (!soname && f->renames.count && elf_rename_in_place(f->path, &f->renames, strlen(rpath), &done, e) < 0)
		return -1;
	if (!done && (soname || f->renames.count) && elf_rename(f->path, soname, &f->renames, r->run, e) < 0)
		return -1;
	if (elf_set_rpath(f->path, rpath, r->run, &in_place, e) < 0)
		return -1;
	r->result.in_place += in_place;
	return 0;
}

static int change_files(struct relocation *r, struct err *e)
{
	for (size_t i = 0; i < r->count; i++) {
		struct relocate_file *f = r->files[i];
		if (run_check(r->run, e) < 0)
			return -1;
		log_status(r->run->log, "relocate %zu/%zu %s", i + 1, r->count, f->rel);
		if ((f->vendor && copy_library(r, f, e) < 0) || relocate_strip(r, f, e) < 0 || finish_file(r, f, e) < 0)
			return -1;
	}
	log_status_end(r->run->log);
	return 0;
}

int relocate_tree(const struct relocate_request *q, const struct run *run, struct arena *a, struct relocate_result *ret,
		  struct err *e)
{
	struct relocation r = {.q = q, .run = run, .a = a};
	struct strlist copies = {0};
	if (!path_is_safe_relative(q->libs_dir))
		return err_set(e, ERR_USAGE, "the directory for libraries '%s' leaves the wheel", q->libs_dir);
	if (root_library_dirs(q->root, a, &r.library_dirs, e) < 0 || fs_walk(TRUSTED, q->tree, collect_one, &r, e) < 0)
		return -1;
	if (relocate_copies(&r, &copies, e) < 0 || relocate_resolve(&r, e) < 0)
		return -1;
	if (relocate_drop_copies(&r, &copies, e) < 0 || change_files(&r, e) < 0)
		return -1;
	if (relocate_rewrite(&r, e) < 0 || relocate_scan(&r, e) < 0)
		return -1;
	r.result.elf_files = r.count;
	r.result.count = r.libs_count;
	r.result.libraries = arena_array(a, r.libs_count, sizeof(struct relocate_library));
	for (size_t i = 0; i < r.libs_count; i++)
		r.result.libraries[i] = *r.libs[i];
	*ret = r.result;
	return 0;
}
