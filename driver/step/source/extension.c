#include "step/source/source.h"

#include "base/sys/fs.h"
#include "core/wheel/wheel.h"

enum { FILE_MAX = 1 << 20 };

#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

/* The files that say something. */
enum { PKG_INFO, PYPROJECT, SETUP_PY, GITMODULES, FILES };
static const char *const file_names[FILES] = {"PKG-INFO", "pyproject.toml", "setup.py",
					      ".gitmodules"};

struct source {
	const char *path;
	struct arena *a;
	const char *text[FILES]; /* NULL: missing */
	size_t len[FILES];
	const char *name, *version;
	struct strlist requires; /* of the build */
	struct strlist depends;  /* of the wheel */
	const char *python;
	const char *gpu_code; /* the first file of it; "": none */
};

/* nvcc's files; what a build or an environment in the folder has left is no source. */
static bool is_gpu_code(const char *rel)
{
	static const char *const tops[] = {".git/", "build/", "dist/"};

	for (size_t i = 0; i < ARRAY_LEN(tops); i++)
		if (strncmp(rel, tops[i], strlen(tops[i])) == 0)
			return false;
	return !strstr(rel, "site-packages/") &&
	       (path_has_suffix(rel, ".cu") || path_has_suffix(rel, ".cuh"));
}

static void look_at(struct source *s, const char *rel)
{
	if (!*s->gpu_code && is_gpu_code(rel))
		s->gpu_code = arena_strdup(s->a, rel);
}

static int look_at_file(const char *rel, const struct stat *st, void *user, struct err *e)
{
	(void)st;
	(void)e;
	look_at(user, rel);
	return 0;
}

static void keep(struct source *s, size_t i, const struct buf *text)
{
	s->text[i] = arena_strndup(s->a, buf_cstr(text), text->len);
	s->len[i] = strlen(s->text[i]);
}

static int read_folder(struct source *s, struct err *e)
{
	for (size_t i = 0; i < FILES; i++) {
		AUTO_BUF struct buf text = {0};
		if (!fs_exists(TRUSTED, path_join(s->a, s->path, file_names[i])))
			continue;
		if (fs_read(TRUSTED, path_join(s->a, s->path, file_names[i]), FILE_MAX, &text, e) <
		    0)
			return -1;
		keep(s, i, &text);
	}

	return fs_walk(TRUSTED, s->path, look_at_file, s, e);
}

static const struct tar_limits limits = {
	.max_bytes = UINT64_C(8) << 30, .max_ratio = 200, .max_entries = 500000};

static int read_archive(struct source *s, const struct run *run, struct err *e)
{
	AUTO_TAR struct tar *t = NULL;
	struct tar_entry en;
	int got;

	if (tar_open(s->path, &limits, run, &t, e) < 0)
		return -1;
	while ((got = tar_next(t, &en, e)) > 0) {
		const char *slash = strchr(en.name, '/');
		if (slash && en.type == S_IFREG)
			look_at(s, slash + 1);
		for (size_t i = 0; slash && en.type == S_IFREG && i < FILES; i++) {
			AUTO_BUF struct buf text = {0};
			if (strcmp(slash + 1, file_names[i]) != 0 || s->text[i])
				continue;
			if (tar_read(t, FILE_MAX, &text, e) < 0)
				return tar_deny(t, e);
			keep(s, i, &text);
		}
	}

	return got;
}

/* The directories of .gitmodules: its lines "path = third_party/x". */
static void list_modules(const struct source *s, struct strlist *ret)
{
	struct strlist lines = {0};

	strlist_split(&lines, s->a, s->text[GITMODULES] ? s->text[GITMODULES] : "", "\r\n");
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i] + strspn(lines.items[i], " \t");
		const char *value =
			strncmp(line, "path", 4) == 0 ? line + 4 + strspn(line + 4, " \t") : "";
		if (*value != '=')
			continue;
		value += 1 + strspn(value + 1, " \t");
		if (*value && *value != '/' && !strstr(value, ".."))
			strlist_once(ret, s->a, value);
	}
}

static bool is_below(const char *name, const char *dir)
{
	const size_t n = strlen(dir);
	return strncmp(name, dir, n) == 0 && name[n] == '/' && name[n + 1];
}

/* Takes away the modules of which an archive has a file. */
static int drop_archived(const struct source *s, const struct run *run, struct strlist *modules,
			 struct err *e)
{
	AUTO_TAR struct tar *t = NULL;
	struct tar_entry en;
	int got;

	if (tar_open(s->path, &limits, run, &t, e) < 0)
		return -1;
	while ((got = tar_next(t, &en, e)) > 0) {
		const char *slash = strchr(en.name, '/');
		for (size_t i = modules->count; slash && i-- > 0;)
			if (is_below(slash + 1, modules->items[i]))
				modules->items[i] = modules->items[--modules->count];
	}

	return got;
}

static int drop_present(const struct source *s, struct strlist *modules, struct err *e)
{
	for (size_t i = modules->count; i-- > 0;) {
		struct strlist names = {0};
		const char *dir = path_join(s->a, s->path, modules->items[i]);
		if (fs_is_dir(TRUSTED, dir) && fs_list(TRUSTED, dir, s->a, &names, e) < 0)
			return -1;
		if (names.count)
			modules->items[i] = modules->items[--modules->count];
	}

	return 0;
}

/* A submodule that was not cloned fails after minutes, as a header
 * that is missing. Some are for tests alone, so it is no error. */
static int warn_modules(const struct source *s, const struct run *run, struct err *e)
{
	struct strlist modules = {0};
	const bool folder = fs_is_dir(TRUSTED, s->path);

	list_modules(s, &modules);
	if (!modules.count)
		return 0;
	if ((folder ? drop_present(s, &modules, e) : drop_archived(s, run, &modules, e)) < 0)
		return -1;
	if (!modules.count)
		return 0;
	const bool clone = folder && fs_exists(TRUSTED, path_join(s->a, s->path, ".git"));
	const char *fix =
		clone ? arena_printf(s->a, "run: git -C %s submodule update --init --recursive",
				     shell_quoted(s->path, s->a))
		      : "use the project's sdist, or a clone with its submodules";
	strlist_sort(&modules);
	log_warn(run->log, "'%s' has empty git submodules, which its build may need: %s; %s",
		 s->path, strlist_join(&modules, s->a, ", "), fix);
	return 0;
}

char *extension_requirement(const char *text, struct arena *a)
{
	const char *marker = strchr(text, ';');

	text += strspn(text, " \t");
	const size_t len = marker && marker >= text ? (size_t)(marker - text) : strlen(text);
	size_t n = strspn(text, NAME_LETTERS);
	if (marker && strstr(marker, "extra"))
		return NULL;
	AUTO_BUF struct buf out = {0};
	buf_add(&out, text, n < len ? n : len);
	for (bool extras = false; n < len; n++) {
		extras = (extras || text[n] == '[') && text[n] != ']';
		if (!extras && !strchr(" \t()[]", text[n]))
			buf_addc(&out, text[n]);
	}

	return arena_strdup(a, buf_cstr(&out));
}

/* name="tiny" among the arguments of setup(), or __version__ = "1.0"; "" for other expressions. */
static const char *literal(const struct source *s, const char *from, const char *word)
{
	const char *whole = s->text[SETUP_PY], *text = whole ? strstr(whole, from) : NULL;

	for (const char *at = text; at && (at = strstr(at, word)); at += strlen(word)) {
		const char *p = at + strlen(word);
		if (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == '.'))
			continue;
		p += strspn(p, " \t");
		if (*p != '=' || p[1] == '=')
			continue;
		p++;
		p += strspn(p, " \t\n");
		size_t n = *p == '"' || *p == '\'' ? strcspn(p + 1, "\"'\n\\{") : 0;
		if (n && p[n + 1] == *p)
			return arena_strndup(s->a, p + 1, n);
	}

	return "";
}

static int take_info(struct source *s, struct err *e)
{
	struct wheel_headers h;

	if (!s->text[PKG_INFO])
		return 0;
	if (wheel_headers_parse(s->text[PKG_INFO], s->len[PKG_INFO], "PKG-INFO", s->a, &h, e) < 0)
		return -1;
	const char *name = wheel_headers_get(&h, "Name"),
		   *version = wheel_headers_get(&h, "Version");
	const char *python = wheel_headers_get(&h, "Requires-Python");
	s->name = name ? name : "";
	s->version = version ? version : "";
	s->python = python ? python : "";
	wheel_headers_all(&h, "Requires-Dist", s->a, &s->depends);
	return 0;
}

static int take_project(struct source *s, struct err *e)
{
	struct pyproject p;

	if (!s->text[PYPROJECT])
		return 0;
	if (pyproject_read(s->text[PYPROJECT], s->len[PYPROJECT], "pyproject.toml", s->a, &p, e) <
	    0)
		return -1;
	s->name = *s->name ? s->name : p.name;
	s->version = *s->version ? s->version : p.version;
	s->python = *s->python ? s->python : p.requires_python;
	strlist_append(&s->requires, s->a, &p.requires);
	strlist_append(&s->depends, s->a, &p.dependencies);
	return 0;
}

static int take_setup(struct source *s, struct err *e)
{
	if (!s->text[SETUP_PY] && !s->text[PYPROJECT]) {
		err_set(e, ERR_USAGE, "'%s' has neither setup.py nor pyproject.toml", s->path);
		return err_hint(e, "pass --extension the folder or the sdist of a Python package");
	}

	s->name = *s->name ? s->name : literal(s, "setup(", "name");
	s->version = *s->version ? s->version : literal(s, "setup(", "version");
	s->version = *s->version ? s->version : literal(s, "", "__version__");
	if (*s->name && *s->version)
		return 0;
	err_set(e, ERR_USAGE, "'%s' does not say its %s without being run", s->path,
		*s->name ? "version" : "name");
	return err_hint(e, "write them into [project] of pyproject.toml, or as texts into setup(): "
			   "name=\"x\", "
			   "version=\"1.0\"");
}

/* The range of a distribution among requirements; "" for none. */
static const char *range_of(const struct source *s, const struct strlist *l, const char *name)
{
	for (size_t i = 0; i < l->count; i++) {
		const char *plain = extension_requirement(l->items[i], s->a);
		if (plain && strcmp(wheel_requires_name(plain, s->a), name) == 0)
			return plain + strspn(plain, NAME_LETTERS);
	}

	return "";
}

static int check_range(const struct source *s, const char *what, const char *range, struct err *e)
{
	bool in;

	if (version_in("1", range, &in, e) == 0)
		return 0;
	e->kind = ERR_INTEGRITY;
	return err_wrap(e, "'%s': what it requires of %s", s->path, what);
}

static int make_row(const struct source *s, struct package_row *ret, struct err *e)
{
	struct strlist requires = {0};
	const char *torch = range_of(s, &s->depends, "torch");
	struct package_row row = {.backend = TABLES_EXTENSION_BACKEND,
				  .series = "",
				  .requirements = TABLES_EXTENSION_LIST,
				  .tried_with = "",
				  .cudnn = "",
				  .note = ""};

	row.name = wheel_normalize(s->name, s->a);
	row.version = arena_strndup(s->a, s->version, strcspn(s->version, "+"));
	row.python = s->python;
	row.torch = *torch ? torch : range_of(s, &s->requires, "torch");
	if (check_range(s, "torch", row.torch, e) < 0 ||
	    check_range(s, "Python", row.python, e) < 0)
		return -1;
	for (size_t i = 0; i < s->requires.count; i++) {
		const char *plain = extension_requirement(s->requires.items[i], s->a);
		if (!plain || strchr(s->requires.items[i], ';') ||
		    strcmp(wheel_requires_name(plain, s->a), "torch") == 0)
			continue;
		if (check_range(s, plain, plain + strspn(plain, NAME_LETTERS), e) < 0)
			return -1;
		strlist_once(&requires, s->a, plain);
	}

	row.python_requires = requires.items;
	row.python_requires_count = (unsigned) requires.count;
	const char *setup = s->text[SETUP_PY];
	row.cuda_only = setup && strstr(setup, "CUDAExtension(") && !strstr(setup, "CppExtension");
	row.gpu_code =
		!*s->gpu_code && setup && strstr(setup, "CUDAExtension") ? "setup.py" : s->gpu_code;
	*ret = row;
	return 0;
}

/* As PEP 508 has it: it becomes a part of file names and of URLs. */
static bool is_name(const char *s)
{
	const size_t len = strlen(s);
	return len && strspn(s, NAME_LETTERS) == len && isalnum((unsigned char)s[0]) &&
	       isalnum((unsigned char)s[len - 1]);
}

int extension_read(const char *path, const struct run *run, struct arena *a,
		   struct package_row *ret, struct err *e)
{
	struct source s = {
		.path = path, .a = a, .name = "", .version = "", .python = "", .gpu_code = ""};

	if (!fs_exists(TRUSTED, path))
		return err_set(e, ERR_USAGE, "no folder or sdist '%s'", path);
	for (size_t i = 0; i < FILES; i++) {
		if (strcmp(path_base(path), file_names[i]) == 0 && !fs_is_dir(TRUSTED, path)) {
			err_set(e, ERR_USAGE, "'%s' is a file of an extension", path);
			return err_hint(
				e, "pass --extension the folder or the sdist of a Python package");
		}
	}

	if ((fs_is_dir(TRUSTED, path) ? read_folder(&s, e) : read_archive(&s, run, e)) < 0)
		return err_wrap(e, "extension '%s'", path);
	if (take_info(&s, e) < 0 || take_project(&s, e) < 0)
		return err_wrap(e, "extension '%s'", path);
	if (take_setup(&s, e) < 0)
		return -1;
	if (!is_name(s.name))
		return err_set(e, ERR_INTEGRITY, "'%s': '%.60s' is not a valid package name", path,
			       s.name);
	if (!wheel_version_key(s.version, a))
		return err_set(e, ERR_INTEGRITY, "'%s' has no version: '%.60s'", path, s.version);
	if (warn_modules(&s, run, e) < 0)
		return err_wrap(e, "extension '%s'", path);
	return make_row(&s, ret, e);
}
