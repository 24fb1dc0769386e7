/* Where each needed library comes from. */

#include "base/path.h"
#include "base/sys/digest.h"
#include "step/relocate/relocate_parts.h"

static bool is_needed(const struct relocation *r, const char *name)
{
	for (size_t i = 0; i < r->count; i++)
		if (strlist_contains(&r->files[i]->info.needed, name))
			return true;
	return false;
}

/* In that directory; NULL: in any. */
static struct relocate_file *find_path(const struct relocation *r, const char *dir, const char *name)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct relocate_file *f = r->files[i];
		if ((!dir || strcmp(f->dir, dir) == 0) && strcmp(path_base(f->rel), name) == 0)
			return r->files[i];
	}
	return NULL;
}

static int same_bytes(const char *one, const char *other, bool *ret, struct err *e)
{
	char x[DIGEST_HEX_LEN + 1], y[DIGEST_HEX_LEN + 1];
	struct stat s, t;
	*ret = false;
	if (stat(one, &s) < 0 || stat(other, &t) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", one);
	if (s.st_size != t.st_size)
		return 0;
	if (digest_file(one, x, e) < 0 || digest_file(other, y, e) < 0)
		return -1;
	*ret = strcmp(x, y) == 0;
	return 0;
}

/* The library that `f` is a copy of under a longer name; NULL if it is not a copy. */
static int copy_of(const struct relocation *r, const struct relocate_file *f, const struct relocate_file **ret,
		   struct err *e)
{
	const char *base = path_base(f->rel), *soname = f->info.soname;
	size_t len = strlen(soname);
	bool same;
	*ret = NULL;
	if (len == 0 || strncmp(base, soname, len) != 0 || base[len] != '.' || is_needed(r, base))
		return 0;
	const struct relocate_file *original = find_path(r, f->dir, soname);
	if (!original)
		return 0;
	if (same_bytes(f->path, original->path, &same, e) < 0)
		return -1;
	*ret = same ? original : NULL;
	return 0;
}

int relocate_copies(struct relocation *r, struct strlist *ret, struct err *e)
{
	size_t kept = 0;
	for (size_t i = 0; i < r->count; i++) {
		const struct relocate_file *original;
		if (copy_of(r, r->files[i], &original, e) < 0)
			return -1;
		if (!original)
			continue;
		strlist_ref(ret, r->a, r->files[i]->path);
		kvlist_set(&r->removed, r->a, path_base(r->files[i]->rel), path_base(original->rel));
	}
	for (size_t i = 0; i < r->count; i++)
		if (!strlist_contains(ret, r->files[i]->path))
			r->files[kept++] = r->files[i];
	r->count = kept;
	return 0;
}

int relocate_drop_copies(struct relocation *r, const struct strlist *copies, struct err *e)
{
	for (size_t i = 0; i < copies->count; i++) {
		if (unlink(copies->items[i]) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot remove '%s'", copies->items[i]);
		r->result.removed++;
	}
	return 0;
}

/* The library in one directory of the root, as a path inside it with links resolved; NULL if none fits the machine. */
static int try_dir(struct relocation *r, const struct relocate_file *f, const char *dir, const char *name,
		   const char **ret, struct elf_info *ret_info, struct err *e)
{
	*ret = NULL;
	const char *inside;
	if (root_find(r->q->root, path_join(r->a, dir, name), r->a, &inside, e) < 0)
		return -1;
	if (!inside)
		return 0;
	const char *path = path_join(r->a, r->q->root->dir, inside);
	int rc = elf_try(path, 0, r->a, ret_info, e);
	if (rc > 0 && ret_info->dynamic && ret_info->machine == f->info.machine)
		*ret = inside;
	return rc < 0 ? -1 : 0;
}

static int find_in_root(struct relocation *r, const struct relocate_file *f, const char *name, const char **ret,
			struct elf_info *ret_info, struct err *e)
{
	struct strlist dirs = {0};
	/* Where the loader would search for this file: its own search path, then the root's. */
	static const char origin[] = "$ORIGIN";
	const char *own = f->info.runpath ? f->info.runpath : f->info.rpath;
	struct strlist entries = {0};
	if (own)
		strlist_split(&entries, r->a, own, ":");
	for (size_t i = 0; i < entries.count; i++) {
		const char *entry = entries.items[i];
		if (*entry == '/')
			strlist_ref(&dirs, r->a, entry);
		else if (f->source_dir && strncmp(entry, origin, sizeof(origin) - 1) == 0)
			strlist_addf(&dirs, r->a, "%s%s", f->source_dir, entry + sizeof(origin) - 1);
	}
	strlist_append(&dirs, r->a, &r->library_dirs);
	for (size_t i = 0; i < dirs.count; i++) {
		if (try_dir(r, f, dirs.items[i], name, ret, ret_info, e) < 0)
			return -1;
		if (*ret)
			return 0;
	}
	err_set(e, ERR_POLICY, "'%s' needs '%s', which is neither in the wheel nor in the root '%s'", f->rel, name,
		r->q->root->dir);
	return err_hint(e, "install the library there, or turn off the feature that needs it");
}

/* "libopenblas.so.0" -> "libopenblas-1a2b3c4d.so.0" */
static char *vendored_name(struct relocation *r, const char *needed, const char *sha256)
{
	if (strlist_contains(&r->q->keep_names, needed))
		return arena_strdup(r->a, needed);
	const char *suffix = strstr(needed, ".so");
	size_t stem = suffix ? (size_t)(suffix - needed) : strlen(needed);
	return arena_printf(r->a, "%.*s-%.8s%s", (int)stem, needed, sha256, needed + stem);
}

/* A build chooses the search path of what it links, so a path alone does not make a library the root's. */
static int check_owner(const struct relocation *r, const struct relocate_file *f, const char *needed,
		       const char *source, const char *package, struct err *e)
{
	if (package || r->q->any_library)
		return 0;
	bool has_list = root_resolve(r->q->root, "/var/lib/dpkg/info", r->a) != NULL;
	for (size_t i = 0; i < r->library_dirs.count && !has_list; i++) {
		const char *dir = root_resolve(r->q->root, r->library_dirs.items[i], r->a);
		size_t len = dir ? strlen(dir) : 0;
		if (len && strncmp(source, dir, len) == 0 && source[len] == '/')
			return 0;
	}
	err_set(e, ERR_POLICY, "'%s' needs '%s', and '%s' %s of the root '%s'", f->rel, needed, source,
		has_list ? "belongs to no package" : "lies in no library directory", r->q->root->dir);
	return err_hint(e, "install the package that has it, turn off the feature that needs it, or take it as it is "
			   "with --without-wall packages");
}

/* Each library of the root is vendored once, whatever names it is needed by. */
static int vendor(struct relocation *r, const struct relocate_file *by, const char *needed, const char *source,
		  const struct elf_info *info, const struct relocate_library **ret, struct err *e)
{
	char sha256[DIGEST_HEX_LEN + 1];
	for (size_t i = 0; i < r->libs_count; i++) {
		if (strcmp(r->libs[i]->source, source) == 0) {
			*ret = r->libs[i];
			return 0;
		}
	}
	const char *package;
	if (root_package_of(r->q->root, source, r->a, &package, e) < 0 ||
	    check_owner(r, by, needed, source, package, e) < 0 ||
	    digest_file(path_join(r->a, r->q->root->dir, source), sha256, e) < 0)
		return -1;
	r->libs = arena_room(r->a, r->libs, r->libs_count, &r->libs_cap, 16, sizeof(struct relocate_library *));
	struct relocate_library *lib = r->libs[r->libs_count++] = arena_alloc(r->a, sizeof(*lib));
	*lib = (struct relocate_library){.needed = arena_strdup(r->a, needed),
					 .name = vendored_name(r, needed, sha256),
					 .source = source,
					 .package = package ? package : "",
					 .sha256 = arena_strdup(r->a, sha256)};
	struct relocate_file *f = arena_alloc(r->a, sizeof(*f));
	*f = (struct relocate_file){.rel = path_join(r->a, r->q->libs_dir, lib->name),
				    .dir = r->q->libs_dir,
				    .info = *info,
				    .vendor = lib,
				    .source_dir = path_dir(r->a, source)};
	f->path = path_join(r->a, r->q->tree, f->rel);
	relocate_add(r, f);
	*ret = lib;
	return 0;
}

static void use_dir(struct relocation *r, struct relocate_file *f, const char *dir)
{
	strlist_once(&f->dirs, r->a, dir);
}

static int resolve_one(struct relocation *r, struct relocate_file *f, const char *name, struct err *e)
{
	/* The wheel's file of that name: beside who needs it, in libs_dir, anywhere, else by SONAME. */
	const struct relocate_file *found = find_path(r, f->dir, name);
	if (!found)
		found = find_path(r, r->q->libs_dir, name);
	if (!found)
		found = find_path(r, NULL, name);
	for (size_t i = 0; i < r->count && !found; i++)
		if (strcmp(r->files[i]->info.soname, name) == 0)
			found = r->files[i];
	const struct relocate_file *inside = found && !found->vendor ? found : NULL;
	if (inside) {
		/* By SONAME only: the loader looks for a file of that name, so the name follows the file. */
		if (strcmp(path_base(inside->rel), name) != 0)
			kvlist_set(&f->renames, r->a, name, path_base(inside->rel));
		if (inside != f)
			use_dir(r, f, inside->dir);
		return 0;
	}
	if (strings_match(r->q->provided.items, r->q->provided.count, name)) {
		f->needs_provided = true;
		return 0;
	}
	if (strings_match(r->q->never.items, r->q->never.count, name) || manylinux_allows(r->q->policy, name))
		return 0;
	const struct relocate_library *lib = NULL;
	const char *source = "";
	struct elf_info info = {0};
	if (find_in_root(r, f, name, &source, &info, e) < 0 || vendor(r, f, name, source, &info, &lib, e) < 0)
		return -1;
	if (strcmp(lib->name, name) != 0)
		kvlist_set(&f->renames, r->a, name, lib->name);
	use_dir(r, f, r->q->libs_dir);
	return 0;
}

int relocate_resolve(struct relocation *r, struct err *e)
{
	/* The list grows meanwhile: libraries to vendor have needs of their own. */
	for (size_t i = 0; i < r->count; i++) {
		struct relocate_file *f = r->files[i];
		for (size_t k = 0; k < f->info.needed.count; k++)
			if (resolve_one(r, f, f->info.needed.items[k], e) < 0)
				return -1;
	}
	return 0;
}

/* "$ORIGIN/../torch/lib" from "torchvision" to "torch/lib". */
static char *origin_relative(struct arena *a, const char *from, const char *to)
{
	struct strlist here = {0}, there = {0}, path = {0};
	size_t common = 0;
	strlist_split(&here, a, from, "/");
	strlist_split(&there, a, to, "/");
	while (common < here.count && common < there.count && strcmp(here.items[common], there.items[common]) == 0)
		common++;
	strlist_ref(&path, a, "$ORIGIN");
	for (size_t i = common; i < here.count; i++)
		strlist_ref(&path, a, "..");
	for (size_t i = common; i < there.count; i++)
		strlist_ref(&path, a, there.items[i]);
	return strlist_join(&path, a, "/");
}

char *relocate_rpath(const struct relocation *r, const struct relocate_file *f)
{
	struct strlist dirs = {0}, path = {0};
	if (strlist_contains(&f->dirs, r->q->libs_dir))
		strlist_ref(&dirs, r->a, r->q->libs_dir);
	strlist_append(&dirs, r->a, &f->dirs);
	if (f->needs_provided)
		strlist_append(&dirs, r->a, &r->q->runtime_dirs);
	for (size_t i = 0; i < dirs.count; i++) {
		const char *entry = origin_relative(r->a, f->dir, dirs.items[i]);
		strlist_once(&path, r->a, entry);
	}
	return strlist_join(&path, r->a, ":");
}
