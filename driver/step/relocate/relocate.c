#include "step/relocate/relocate.h"

#include "base/path.h"
#include "base/sys/machine.h"
#include "base/sys/proc.h"
#include "step/relocate/relocate_parts.h"

/* The names, one a line; none when the library uses no more than it may. */
static int names_to_keep(struct relocation *r, const struct relocate_file *f, struct buf *ret, struct err *e)
{
	AUTO_ARENA struct arena scratch = {0};
	AUTO_ELF_MAP struct elf_map m = {0};
	struct isa_scan s;
	enum extension_machine machine;
	uint64_t allowed[EXTENSION_MACHINES];
	if (!r->q->code || !isa_scan_machine(f->info.machine, &machine))
		return 0;
	struct isa_idle spare = {(int)machine_processors() - 1};
	isa_rules_allowed(r->q->code, r->q->isa, allowed);
	if (elf_map_open(f->path, &m, e) < 0 ||
	    isa_scan_file(&m, r->q->code->decoders, allowed, &spare, r->run, &scratch, &s, e) < 0)
		return -1;
	for (size_t i = 0; i < s.count; i++) {
		const char *name = s.found[i].range->name;
		/* Exported names stay anyway; the tool takes a line with '#' for a comment. */
		if (name && !(s.found[i].range->flags & (CODE_STRONG | CODE_WEAK)) && !strpbrk(name, "#\n"))
			buf_printf(ret, "%s\n", name);
	}
	return 0;
}

static int run_tool(struct relocation *r, const struct relocate_file *f, const char *fresh, struct err *e)
{
	AUTO_BUF struct buf names = {0}, out = {0};
	const char *list = arena_printf(r->a, "%s.names", f->path),
		   *keep = arena_printf(r->a, "--keep-symbols=%s", list);
	const char *const all[] = {"strip", "--strip-unneeded", "-o", fresh, f->path, NULL};
	const char *const most[] = {"objcopy", "--strip-unneeded", "--keep-file-symbols", keep, f->path, fresh, NULL};
	if (names_to_keep(r, f, &names, e) < 0)
		return -1;
	if (names.len == 0)
		return proc_capture(all, r->run, &out, e);
	if (fs_write(TRUSTED, list, names.data, names.len, 0644, e) < 0)
		return -1;
	int rc = proc_capture(most, r->run, &out, e);
	unlink(list);
	return rc;
}

/* Removes the symbol table but for names that verification needs. */
static int relocate_strip(struct relocation *r, struct relocate_file *f, struct err *e)
{
	struct stat st;
	const char *fresh = arena_printf(r->a, "%s.stripped", f->path);
	if (f->info.stripped)
		return 0;
	if (stat(f->path, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", f->path);
	int rc = run_tool(r, f, fresh, e);
	if (rc == 0 && chmod(fresh, st.st_mode & 07777) < 0)
		rc = err_errno(e, ERR_SYSTEM, "cannot set the permissions of '%s'", fresh);
	if (rc == 0 && rename(fresh, f->path) < 0)
		rc = err_errno(e, ERR_SYSTEM, "cannot replace '%s'", f->path);
	if (rc < 0) {
		unlink(fresh);
		return err_wrap(e, "cannot strip '%s'", f->rel);
	}
	f->info.stripped = true;
	r->result.stripped++;
	return 0;
}

void relocate_add(struct relocation *r, struct relocate_file *f)
{
	r->files = arena_room(r->a, r->files, r->count, &r->cap, 64, sizeof(struct relocate_file *));
	r->files[r->count++] = f;
}

static int collect_one(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct relocation *r = user;
	const char *path = path_join(r->a, r->q->tree, rel);
	struct elf_info info;
	int rc = S_ISREG(st->st_mode) ? elf_try(path, 0, r->a, &info, e) : 0;
	/* Objects and GPU code are ELF files too, but the loader does not open them. */
	if (rc <= 0 || !info.dynamic)
		return rc < 0 ? -1 : 0;
	struct relocate_file *f = arena_alloc(r->a, sizeof(*f));
	*f = (struct relocate_file){.rel = arena_strdup(r->a, rel), .path = path, .info = info};
	f->dir = strchr(rel, '/') ? path_dir(r->a, rel) : "";
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
	if (relocate_drop_copies(&r, &copies, e) < 0)
		return -1;
	for (size_t i = 0; i < r.count; i++) {
		struct relocate_file *f = r.files[i];
		if (run_check(r.run, e) < 0)
			return -1;
		log_status(r.run->log, "relocate %zu/%zu %s", i + 1, r.count, f->rel);
		if ((f->vendor && copy_library(&r, f, e) < 0) || relocate_strip(&r, f, e) < 0)
			return -1;
		const struct elf_change change = {f->vendor ? f->vendor->name : NULL, &f->renames,
						  relocate_rpath(&r, f)};
		bool in_place;
		if (elf_change(f->path, &change, &in_place, e) < 0)
			return -1;
		r.result.in_place += in_place;
	}
	log_status_end(r.run->log);
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
