#include "step/capture/capture.h"

#include "base/os.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"

enum { MAX_PATHS = 200000 };

/* Without importing torch, which needs seconds. */
static const char script[] =
	"import importlib.metadata as m, importlib.util as u, json, os, resource, runpy, sys, "
	"sysconfig as c\n"
	/* a file of the root may be endless */
	"resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
	"s = u.find_spec('torch')\n"
	"d = next(iter(m.distributions(name='torch')), None) if s and s.submodule_search_locations "
	"else None\n"
	"if not s or not s.submodule_search_locations: r = {}\n"
	"elif d is None: r = {'dir': s.submodule_search_locations[0]}\n"
	"else:\n"
	"    t = s.submodule_search_locations[0]\n"
	"    tag = 'cp%d%d' % sys.version_info[:2]\n"
	"    p = c.get_platform()\n"
	"    v = os.path.join(t, 'version.py')\n"
	"    r = {'dir': t, 'version': d.version, 'info': str(d._path), 'python': '%d.%d' % "
	"sys.version_info[:2],\n"
	"         'tag': f'{tag}-{tag}{sys.abiflags}-' + p.replace('-', '_').replace('.', '_'),\n"
	"         'platform': '-'.join(reversed(p.split('-', 1))), 'extension': '_C' + "
	"c.get_config_var('EXT_SUFFIX'),\n"
	"         'cuda': runpy.run_path(v).get('cuda') if os.path.isfile(v) else None,\n"
	"         'installer': (d.read_text('INSTALLER') or '').strip() or 'another installer',\n"
	"         'files': [str(f) for f in d.files] if d.read_text('RECORD') else None}\n"
	"print(json.dumps(r))\n";

struct finder {
	const struct root *root;
	const struct run *run;
	struct arena *a;
	struct captured t;
	size_t cap, seen;
	const char *dir, *site; /* torch and its parent directory, inside the root */
};

/* What the installed package lists cannot be captured. */
static int bad_list(const struct finder *f, const char *path, const char *what, struct err *e)
{
	err_set(e, ERR_INTEGRITY, "the torch of '%s' is not whole: %s lists '%s', which %s",
		f->root->dir, f->t.package, utf8_printable(path, f->a), what);
	return err_hint(e, "install the package again in that root");
}

/* Programs that test torch; a distribution keeps them where upstream's wheels have none. */
static bool is_wanted(const char *name)
{
	if (path_below(name, "torch/test") || strcmp(name, "torch/test") == 0)
		return false;
	if (strstr(name, "__pycache__"))
		return false;
	return !path_below(name, "torch/bin") || strcmp(path_base(name), "torch_shm_manager") == 0;
}

/* The directories that lead to a path: its own, and those whose links were followed. */
struct place {
	const char *dir; /* inside the root, without links */
	const struct place *from;
};

static bool leads_back(const struct place *p, const char *dir)
{
	while (p && strcmp(p->dir, dir) != 0 && !path_below(p->dir, dir))
		p = p->from;
	return p != NULL;
}

/* Adds a file, or the target of a link; for a link to a directory all below it. Skips a listed
 * directory (`from` NULL): its files are in the list. */
static int add_path(struct finder *f, const char *path, const char *name, const struct place *from,
		    struct err *e)
{
	struct stat here, st;

	if (!is_wanted(name) ||
	    (path_has_suffix(f->t.info, ".egg-info") && path_below(path, f->t.info)))
		return 0;
	if (run_check(f->run, e) < 0)
		return -1;
	if (++f->seen > MAX_PATHS)
		return bad_list(f, path, "leads to too many files through its links", e);
	const char *real = root_resolve(f->root, path, f->a);
	/* Links to headers whose package is not installed lead nowhere. */
	if (!real || stat(root_host_path(f->root, real, f->a), &st) < 0)
		return path_below(name, "torch/include") ? 0 : bad_list(f, path, "is not there", e);
	const char *source = root_host_path(f->root, real, f->a);
	if (S_ISREG(st.st_mode)) {
		f->t.files = arena_room(f->a, f->t.files, f->t.count, &f->cap, 1024,
					sizeof(*f->t.files));
		struct capture_file *file = &f->t.files[f->t.count++];
		*file = (struct capture_file){.name = name, .source = source};
		return digest_file(source, file->sha256, e);
	}

	bool is_link =
		lstat(root_host_path(f->root, path, f->a), &here) == 0 && S_ISLNK(here.st_mode);
	if (!S_ISDIR(st.st_mode))
		return bad_list(f, path, "is neither a file nor a directory", e);
	if (!from && !is_link)
		return 0;
	const struct place own = {path_dir(f->a, path), NULL}, next = {real, from ? from : &own};
	if (leads_back(next.from, real))
		return bad_list(f, path, "is a link in a circle", e);
	struct strlist names = {0};
	if (root_list(f->root, real, f->a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if (add_path(f, path_join(f->a, real, names.items[i]),
			     path_join(f->a, name, names.items[i]), &next, e) < 0)
			return -1;
	return 0;
}

static int add_of_record(struct finder *f, const json_t *files, struct err *e)
{
	size_t i;
	const json_t *item;

	json_array_foreach(files, i, item)
	{
		const char *name = json_string_value(item);
		if (!name || !path_is_safe_relative(name)) /* programs: "../../../bin/torchrun" */
			continue;
		if (add_path(f, path_join(f->a, f->site, name), arena_strdup(f->a, name), NULL, e) <
		    0)
			return -1;
	}

	return 0;
}

static int add_of_package(struct finder *f, struct err *e)
{
	struct strlist paths = {0};
	const char *package;

	if (root_package_of(f->root, path_join(f->a, f->dir, "__init__.py"), f->a, &package, e) < 0)
		return -1;
	if (!package) {
		err_set(e, ERR_POLICY,
			"nothing says which files the torch of '%s' has: no RECORD and no package",
			f->root->dir);
		return err_hint(
			e, "install torch there with pip or the distribution's package manager");
	}

	f->t.package = package;
	if (root_package_files(f->root, package, f->a, &paths, e) < 0)
		return -1;
	for (size_t i = 0; i < paths.count; i++) {
		const char *name = path_below(paths.items[i], f->site);
		if (!name || path_has_suffix(name, "/")) /* elsewhere, or a directory */
			continue;
		if (!path_is_safe_relative(name))
			return bad_list(f, paths.items[i], "leads out of it", e);
		if (add_path(f, paths.items[i], name, NULL, e) < 0)
			return -1;
	}

	return 0;
}

enum { INFO_MAX = 16 << 20 };

/* Lists the files of an .egg-info and its package that a .dist-info needs: name and path in the
 * root. */
static void egg_files(const struct captured *t, struct arena *a, struct kvlist *ret)
{
	static const char *const names[][2] = {{"METADATA", "PKG-INFO"},
					       {"entry_points.txt", "entry_points.txt"},
					       {"top_level.txt", "top_level.txt"}};
	const char *package = arena_strndup(a, t->package, strcspn(t->package, "="));

	if (!path_has_suffix(t->info, ".egg-info"))
		return;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		kvlist_set(ret, a, names[i][0], path_join(a, t->info, names[i][1]));
	kvlist_set(ret, a, "LICENSE", arena_printf(a, "/usr/share/doc/%s/copyright", package));
}

static int no_torch(const struct root *root, struct arena *a, struct err *e)
{
	err_set(e, ERR_POLICY, "the Python of '%s' has no torch", root->dir);
	if (root->host)
		return err_hint(e, "install one (Debian: apt-get install python3-torch), or name a "
				   "root that has one "
				   "with --root DIR");
	const char *fix = root_world_fix(root, a);
	if (fix)
		return err_hint(e, "%s", fix);
	return err_hint(e,
			"install one there (Debian: chroot %s apt-get install python3-torch), or "
			"name another root "
			"with --root DIR",
			shell_quoted(root->dir, a));
}

/* What can be seen before the files are read. */
static int check(const struct finder *f, const json_t *answer, struct err *e)
{
	const char *extension = json_text(answer, "extension"), *cuda = json_text(answer, "cuda");

	if (!*f->t.version) {
		err_set(e, ERR_POLICY,
			"the torch of '%s' is incomplete: '%s' has no metadata next to it",
			f->root->dir, f->dir);
		return err_hint(
			e, "install it again there with pip or the distribution's package manager");
	}

	if (*cuda) {
		err_set(e, ERR_POLICY,
			"the torch of '%s' is for CUDA %s, and only one for the CPU can be "
			"captured",
			f->root->dir, cuda);
		return err_hint(e, "build one: 'ptbuild build --profile PROFILE'");
	}

	if (root_resolve(f->root, path_join(f->a, f->dir, extension), f->a))
		return 0;
	err_set(e, ERR_POLICY,
		"the torch in root '%s' was not built for the root's Python %s: '%s/%s' is missing",
		f->root->dir, f->t.python, f->dir, extension);
	return err_hint(e, "install torch for Python %s there, or use another root: --root DIR",
			f->t.python);
}

static int ask(struct finder *f, enum sandbox_kind kind, json_t **ret, struct err *e)
{
	const char *argv[] = {"python3", "-I", "-c", script, NULL};
	AUTO_BUF struct buf out = {0};
	struct sandbox s;

	if (sandbox_init(&s, kind, f->root, f->a, e) < 0)
		return -1;
	kvlist_set(&s.env, f->a, "PATH", root_build_path(f->root, f->a));
	if (sandbox_capture(&s, argv, f->run, &out, e) < 0)
		return err_wrap(e, "cannot ask '%s' for its torch", f->root->dir);
	*ret = json_loadb(buf_cstr(&out), out.len, 0, NULL);
	return *ret ? 0
		    : err_set(e, ERR_POLICY, "the Python of '%s' does not say what torch it has",
			      f->root->dir);
}

int capture_find(const struct root *root, enum sandbox_kind kind, const struct run *run,
		 struct arena *a, struct captured *ret, struct err *e)
{
	struct finder f = {.root = root, .run = run, .a = a};
	AUTO_JSON json_t *answer = NULL;

	if (ask(&f, kind, &answer, e) < 0)
		return -1;
	f.dir = arena_strdup(a, json_text(answer, "dir"));
	if (*f.dir != '/')
		return no_torch(root, a, e);
	f.site = path_dir(a, f.dir);
	f.t = (struct captured){.version = arena_strdup(a, json_text(answer, "version")),
				.python = arena_strdup(a, json_text(answer, "python")),
				.tag = arena_strdup(a, json_text(answer, "tag")),
				.platform = arena_strdup(a, json_text(answer, "platform")),
				.info = arena_strdup(a, json_text(answer, "info"))};
	f.t.package =
		arena_printf(a, "torch=%s by %s", f.t.version, json_text(answer, "installer"));
	if (check(&f, answer, e) < 0)
		return -1;
	const json_t *files = json_object_get(answer, "files");
	if ((json_is_array(files) ? add_of_record(&f, files, e) : add_of_package(&f, e)) < 0)
		return -1;
	AUTO_BUF struct buf all = {0};
	struct kvlist info = {0};
	struct stat st;
	struct captured *t = &f.t;
	array_sort(t->files, t->count, sizeof(*t->files), text_cmp);
	buf_printf(&all, "%s\n%s\n", t->info, t->tag);
	for (size_t i = 0; i < t->count; i++) {
		if (stat(t->files[i].source, &st) < 0)
			return err_errno(e, ERR_SYSTEM, "cannot read '%s'", t->files[i].source);
		buf_printf(&all, "%s %s%s\n", t->files[i].sha256, t->files[i].name,
			   st.st_mode & S_IXUSR ? " x" : "");
		if (strcmp(t->files[i].name, "torch/version.py") == 0)
			t->epoch = (uint64_t)st.st_mtim.tv_sec;
	}

	egg_files(t, f.a, &info);
	for (size_t i = 0; i < info.count; i++) {
		buf_printf(&all, "%s\n", info.items[i].key);
		if (root_read(f.root, info.items[i].value, INFO_MAX, &all, e) < 0)
			return -1;
	}

	digest_data(all.data, all.len, t->digest);
	*ret = f.t;
	return 0;
}

static int write_text(const char *path, const struct buf *text, struct err *e)
{
	return fs_write(TRUSTED, path, text->data, text->len, 0644, e);
}

/* The .dist-info that pip would have made of an .egg-info. */
static int make_dist_info(const struct captured *t, const struct root *root, const char *dir,
			  struct arena *a, struct err *e)
{
	AUTO_BUF struct buf wheel = {0};
	struct kvlist files = {0};

	egg_files(t, a, &files);
	if (fs_mkdirs(TRUSTED, dir, e) < 0)
		return -1;
	for (size_t i = 0; i < files.count; i++) {
		AUTO_BUF struct buf text = {0};
		int there = root_read(root, files.items[i].value, INFO_MAX, &text, e);
		if (there < 0 ||
		    (there && write_text(path_join(a, dir, files.items[i].key), &text, e) < 0))
			return -1;
	}

	buf_printf(&wheel, "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: %s\n", t->tag);
	return write_text(path_join(a, dir, "WHEEL"), &wheel, e);
}

/* The tree is whole only when the step has ended: no file needs a name of its own before. */
static int copy_file(const struct capture_file *f, const char *tree, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct stat st;
	const char *to = path_join(&a, tree, f->name);
	AUTO_FD int out = fs_create(tree, f->name, 0600, e);

	if (out < 0 || fs_copy_fd(TRUSTED, f->source, out, to, e) < 0)
		return -1;
	/* A distribution's modes say nothing of who may read the file here. */
	if (fstat(out, &st) < 0 || fchmod(out, st.st_mode & S_IXUSR ? 0755 : 0644) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot set the permissions of '%s'", to);
	return 0;
}

int capture_write(const struct captured *t, const struct root *root, const struct strlist *notes,
		  const char *tree, const char *log, const struct run *run, struct arena *a,
		  struct err *e)
{
	AUTO_BUF struct buf list = {0};

	if (fs_mkdirs(TRUSTED, tree, e) < 0)
		return -1;
	for (size_t i = 0; i < t->count; i++) {
		const struct capture_file *f = &t->files[i];
		if (run_check(run, e) < 0 || copy_file(f, tree, e) < 0)
			return -1;
		buf_printf(&list, "%s %s %s\n", f->sha256, f->name, f->source);
	}

	AUTO_BUF struct buf text = {0};
	bool egg = path_has_suffix(t->info, ".egg-info");
	const char *dir = path_join(a, tree,
				    egg ? arena_printf(a, "torch-%s.dist-info", t->version)
					: path_base(t->info));
	if (egg && make_dist_info(t, root, dir, a, e) < 0)
		return -1;
	for (size_t i = 0; i < notes->count; i++)
		buf_printf(&text, "%s\n", notes->items[i]);
	if (write_text(path_join(a, dir, "captured-from"), &text, e) < 0 ||
	    fs_mkdirs(TRUSTED, path_dir(a, log), e) < 0)
		return -1;
	return write_text(log, &list, e);
}
