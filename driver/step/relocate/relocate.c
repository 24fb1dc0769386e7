#include "step/relocate/relocate_parts.h"

#include "base/sys/digest.h"
#include "base/sys/machine.h"
#include "base/sys/proc.h"

struct relocate_file {    /* one dynamic ELF file of the tree, or one to be vendored */
	const char *rel;  /* in the tree */
	const char *path; /* on disk */
	const char *dir;  /* of rel, "" = the tree's top */
	struct elf_info info;
	struct kvlist renames;               /* NEEDED names that change */
	struct strlist dirs;                 /* directories of the tree that hold what it needs */
	bool needs_provided;                 /* something comes from a package beside it */
	const struct wheel_vendored *vendor; /* NULL: it came with the wheel */
	const char *source_dir;              /* of a vendored one: its directory in the root */
};

struct relocation {
	const struct relocate_request *q;
	const struct run *run;
	struct arena *a;
	struct relocate_file **files; /* vendored ones behind the tree's own */
	size_t count, cap;
	struct strlist library_dirs; /* of the root */
	struct kvlist removed;       /* file names of dropped copies -> the name that stays */
	struct relocate_result result;
};

/* Build paths are rewritten in text files; verification finds them anywhere else. */
enum { MAX_TEXT = 64 << 20 };

/* A file behind the others. */
static void relocate_add(struct relocation *r, struct relocate_file *f)
{
	r->files =
		arena_room(r->a, r->files, r->count, &r->cap, 64, sizeof(struct relocate_file *));
	r->files[r->count++] = f;
}

static bool has_suffix(const char *rel, const char *const *suffixes)
{
	while (*suffixes && !path_has_suffix(rel, *suffixes))
		suffixes++;
	return *suffixes;
}

/* Appends `text` with every `from` replaced; false when there was none. */
static bool replace(struct buf *out, const char *text, size_t len, const char *from, const char *to)
{
	const char *at = text, *end = text + len, *hit;
	size_t n = strlen(from);

	while (n && (hit = memmem(at, (size_t)(end - at), from, n))) {
		buf_add(out, at, (size_t)(hit - at));
		buf_addstr(out, to);
		at = hit + n;
	}

	buf_add(out, at, (size_t)(end - at));
	return at != text;
}

static bool apply(struct buf *text, const struct kvlist *rules)
{
	bool changed = false;

	for (size_t i = 0; i < rules->count; i++) {
		struct buf out = {0};
		changed |= replace(&out, buf_cstr(text), text->len, rules->items[i].key,
				   rules->items[i].value);
		buf_release(text);
		*text = out;
	}

	return changed;
}

static int rewrite_one(const char *rel, const struct stat *st, void *user, struct err *e)
{
	static const char *const texts[] = {".cmake", ".pc", ".txt", ".py", ".h", NULL};
	static const char *const configs[] = {".cmake", ".pc", NULL};
	struct relocation *r = user;
	AUTO_BUF struct buf text = {0};

	if (!S_ISREG(st->st_mode) || st->st_size > MAX_TEXT || !has_suffix(rel, texts))
		return 0;
	const char *path = path_join(r->a, r->q->tree, rel);
	if (fs_read(TRUSTED, path, MAX_TEXT, &text, e) < 0)
		return -1;
	if (memchr(buf_cstr(&text), '\0', text.len))
		return 0;
	bool changed = apply(&text, &r->q->rewrite);
	if (has_suffix(rel, configs))
		changed = apply(&text, &r->removed) || changed;
	if (!changed)
		return 0;
	r->result.rewritten++;
	return fs_write(TRUSTED, path, buf_cstr(&text), text.len, st->st_mode & 07777, e);
}

/* The text files. */
static int relocate_rewrite(struct relocation *r, struct err *e)
{
	if (r->q->rewrite.count == 0 && r->removed.count == 0)
		return 0;
	return fs_walk(TRUSTED, r->q->tree, rewrite_one, r, e);
}

/* Where each needed library comes from. */
static bool is_needed(const struct relocation *r, const char *name)
{
	for (size_t i = 0; i < r->count; i++)
		if (strlist_contains(&r->files[i]->info.needed, name))
			return true;
	return false;
}

/* In that directory; NULL: in any. */
static struct relocate_file *find_path(const struct relocation *r, const char *dir,
				       const char *name)
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
static int copy_of(const struct relocation *r, const struct relocate_file *f,
		   const struct relocate_file **ret, struct err *e)
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

/* A library of the root that a file needs. */
struct needed_library {
	const struct relocate_file *by;
	const char *name;   /* that it is needed by */
	const char *source; /* the path inside the root, with links resolved; NULL: not found */
	struct elf_info info;
};

/* Looks for the library in one directory of the root; it must fit the machine. */
static int try_dir(struct relocation *r, struct needed_library *l, const char *dir, struct err *e)
{
	l->source = NULL;
	const char *inside;
	if (root_find(r->q->root, path_join(r->a, dir, l->name), r->a, &inside, e) < 0)
		return -1;
	if (!inside)
		return 0;
	const char *path = path_join(r->a, r->q->root->dir, inside);
	int rc = elf_try(path, r->a, &l->info, e);
	if (rc > 0 && l->info.dynamic && l->info.machine == l->by->info.machine)
		l->source = inside;
	return rc < 0 ? -1 : 0;
}

static int find_in_root(struct relocation *r, struct needed_library *l, struct err *e)
{
	const struct relocate_file *f = l->by;
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
			strlist_addf(&dirs, r->a, "%s%s", f->source_dir,
				     entry + sizeof(origin) - 1);
	}

	strlist_append(&dirs, r->a, &r->library_dirs);
	for (size_t i = 0; i < dirs.count; i++) {
		if (try_dir(r, l, dirs.items[i], e) < 0)
			return -1;
		if (l->source)
			return 0;
	}

	err_set(e, ERR_POLICY,
		"'%s' needs '%s', which is neither in the wheel nor in the root '%s'", f->rel,
		l->name, r->q->root->dir);
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

/* A build chooses the search path of what it links,
 * so a path alone does not make a library the root's. */
static int check_owner(const struct relocation *r, const struct needed_library *l,
		       const char *package, struct err *e)
{
	const char *source = l->source;

	if (package || r->q->any_library)
		return 0;
	bool has_list = root_resolve(r->q->root, "/var/lib/dpkg/info", r->a) != NULL;
	for (size_t i = 0; i < r->library_dirs.count && !has_list; i++) {
		const char *dir = root_resolve(r->q->root, r->library_dirs.items[i], r->a);
		size_t len = dir ? strlen(dir) : 0;
		if (len && strncmp(source, dir, len) == 0 && source[len] == '/')
			return 0;
	}

	err_set(e, ERR_POLICY, "'%s' needs '%s', and '%s' %s of the root '%s'", l->by->rel, l->name,
		source, has_list ? "belongs to no package" : "is in no library directory",
		r->q->root->dir);
	return err_hint(
		e,
		"install the package that has it, turn off the feature that needs it, or allow it "
		"with --without-protection packages");
}

/* Each library of the root is vendored once, whatever names it is needed by. */
static int vendor(struct relocation *r, const struct needed_library *l,
		  const struct wheel_vendored **ret, struct err *e)
{
	const char *source = l->source;
	char sha256[DIGEST_HEX_LEN + 1];

	for (size_t i = 0; i < r->count; i++)
		if (r->files[i]->vendor && strcmp(r->files[i]->vendor->source, source) == 0) {
			*ret = r->files[i]->vendor;
			return 0;
		}
	const char *package;
	if (root_package_of(r->q->root, source, r->a, &package, e) < 0 ||
	    check_owner(r, l, package, e) < 0)
		return -1;
	if (digest_file(path_join(r->a, r->q->root->dir, source), sha256, e) < 0)
		return -1;
	struct wheel_vendored *lib = arena_alloc(r->a, sizeof(*lib));
	*lib = (struct wheel_vendored){
		.file = path_join(r->a, r->q->libs_dir, vendored_name(r, l->name, sha256)),
		.needed = arena_strdup(r->a, l->name),
		.source = source,
		.package = package ? package : "",
		.sha256 = arena_strdup(r->a, sha256)};
	r->result.count++;
	struct relocate_file *f = arena_alloc(r->a, sizeof(*f));
	*f = (struct relocate_file){.rel = lib->file,
				    .dir = r->q->libs_dir,
				    .info = l->info,
				    .vendor = lib,
				    .source_dir = path_dir(r->a, source)};
	f->path = path_join(r->a, r->q->tree, f->rel);
	relocate_add(r, f);
	*ret = lib;
	return 0;
}

static int resolve_one(struct relocation *r, struct relocate_file *f, const char *name,
		       struct err *e)
{
	/* The wheel's file of that name: beside who needs
	 * it, in libs_dir, anywhere, else by SONAME. */
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
		/* By SONAME only: the loader looks for a file
		 * of that name, so the name follows the file. */
		if (strcmp(path_base(inside->rel), name) != 0)
			kvlist_set(&f->renames, r->a, name, path_base(inside->rel));
		if (inside != f)
			strlist_once(&f->dirs, r->a, inside->dir);
		return 0;
	}

	if (strings_match(r->q->provided.items, r->q->provided.count, name)) {
		f->needs_provided = true;
		return 0;
	}

	if (strings_match(r->q->never.items, r->q->never.count, name) ||
	    manylinux_allows(r->q->policy, name))
		return 0;
	const struct wheel_vendored *lib = NULL;
	struct needed_library wanted = {.by = f, .name = name};
	if (find_in_root(r, &wanted, e) < 0 || vendor(r, &wanted, &lib, e) < 0)
		return -1;
	if (strcmp(path_base(lib->file), name) != 0)
		kvlist_set(&f->renames, r->a, name, path_base(lib->file));
	strlist_once(&f->dirs, r->a, r->q->libs_dir);
	return 0;
}

/* Finds each NEEDED of each file; appends the libraries to vendor. Reads only. */
static int relocate_resolve(struct relocation *r, struct err *e)
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
	while (common < here.count && common < there.count &&
	       strcmp(here.items[common], there.items[common]) == 0)
		common++;
	strlist_ref(&path, a, "$ORIGIN");
	for (size_t i = common; i < here.count; i++)
		strlist_ref(&path, a, "..");
	for (size_t i = common; i < there.count; i++)
		strlist_ref(&path, a, there.items[i]);
	return strlist_join(&path, a, "/");
}

/* The search path of a file, "" for none. */
static char *relocate_rpath(const struct relocation *r, const struct relocate_file *f)
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

/* The names, one a line; none when the library uses no more than it may. */
static int names_to_keep(struct relocation *r, const struct relocate_file *f, struct buf *ret,
			 struct err *e)
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
	    isa_scan_file(&m,
			  &(struct isa_scan_request){r->q->code->decoders, allowed, &spare, r->run,
						     &scratch},
			  &s, e) < 0)
		return -1;
	for (size_t i = 0; i < s.count; i++) {
		const char *name = s.found[i].range->name;
		/* Exported names stay anyway; for the tool a line with '#' is a comment. */
		if (name && !(s.found[i].range->flags & (CODE_STRONG | CODE_WEAK)) &&
		    !strpbrk(name, "#\n"))
			buf_printf(ret, "%s\n", name);
	}

	return 0;
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
	AUTO_BUF struct buf names = {0};
	const struct relocate_tool t = {r->q, f->path, fresh, &names};
	int rc = names_to_keep(r, f, &names, e) < 0 ? -1 : relocate_strip_file(&t, r->run, r->a, e);
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

static int collect_one(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct relocation *r = user;
	const char *path = path_join(r->a, r->q->tree, rel);
	struct elf_info info;
	int rc = S_ISREG(st->st_mode) ? elf_try(path, r->a, &info, e) : 0;

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
		return err_set(e, ERR_POLICY, "cannot vendor '%s': '%s' is in the wheel already",
			       f->vendor->source, f->rel);
	if (fs_mkdirs(TRUSTED, path_join(r->a, r->q->tree, r->q->libs_dir), e) < 0 ||
	    fs_copy(TRUSTED, source, f->path, e) < 0)
		return -1;
	if (chmod(f->path, 0755) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot set the permissions of '%s'", f->path);
	log_verbose(r->run->log, "vendored %s as %s", f->vendor->source, f->rel);
	return 0;
}

int relocate_tree(const struct relocate_request *q, struct arena *a, struct relocate_result *ret,
		  struct err *e)
{
	struct relocation r = {.q = q, .run = q->run, .a = a};
	struct strlist copies = {0};

	if (!path_is_safe_relative(q->libs_dir))
		return err_set(e, ERR_USAGE, "the directory for libraries '%s' leaves the wheel",
			       q->libs_dir);
	if (root_library_dirs(q->root, a, &r.library_dirs, e) < 0 ||
	    fs_walk(TRUSTED, q->tree, collect_one, &r, e) < 0)
		return -1;
	/* Takes copies under longer names out of the
	 * list; relocate_drop_copies removes their files. */
	size_t kept = 0;
	for (size_t i = 0; i < r.count; i++) {
		const struct relocate_file *original;
		if (copy_of(&r, r.files[i], &original, e) < 0)
			return -1;
		if (!original)
			continue;
		strlist_ref(&copies, r.a, r.files[i]->path);
		kvlist_set(&r.removed, r.a, path_base(r.files[i]->rel), path_base(original->rel));
	}

	for (size_t i = 0; i < r.count; i++)
		if (!strlist_contains(&copies, r.files[i]->path))
			r.files[kept++] = r.files[i];
	r.count = kept;
	if (relocate_resolve(&r, e) < 0)
		return -1;
	for (size_t i = 0; i < copies.count; i++) {
		if (unlink(copies.items[i]) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot remove '%s'", copies.items[i]);
		r.result.removed++;
	}

	for (size_t i = 0; i < r.count; i++) {
		struct relocate_file *f = r.files[i];
		if (run_check(r.run, e) < 0)
			return -1;
		log_status(r.run->log, "relocate %zu/%zu %s", i + 1, r.count, f->rel);
		if ((f->vendor && copy_library(&r, f, e) < 0) || relocate_strip(&r, f, e) < 0)
			return -1;
		const struct elf_change change = {f->vendor ? path_base(f->rel) : NULL, &f->renames,
						  relocate_rpath(&r, f)};
		bool in_place;
		if (elf_change(f->path, &change, &in_place, e) < 0)
			return -1;
		r.result.in_place += in_place;
	}

	log_status_end(r.run->log);
	if (relocate_rewrite(&r, e) < 0)
		return -1;
	r.result.elf_files = r.count;
	r.result.libraries = arena_array(a, r.result.count, sizeof(struct wheel_vendored));
	for (size_t i = 0, n = 0; i < r.count; i++)
		if (r.files[i]->vendor)
			r.result.libraries[n++] = *r.files[i]->vendor;
	*ret = r.result;
	return 0;
}
