#include "step/source/source_tree.h"

#include "base/sys/fs.h"
#include "core/wheel/requirement.h"
#include "core/wheel/wheel.h"

#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

/* What the source says of itself. */
struct source {
	const struct source_tree *tree;
	const char *path;
	struct arena *a;
	const char *name, *version;
	struct strlist requires; /* of the build */
	struct strlist depends;  /* of the wheel */
	const char *python;
};

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
	const char *whole = s->tree->text[SOURCE_SETUP_PY],
		   *text = whole ? strstr(whole, from) : NULL;

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

	if (!s->tree->text[SOURCE_PKG_INFO])
		return 0;
	if (wheel_headers_parse(&(struct file_bytes){s->tree->text[SOURCE_PKG_INFO],
						     s->tree->len[SOURCE_PKG_INFO], "PKG-INFO"},
				s->a, &h, e) < 0)
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

	if (!s->tree->text[SOURCE_PYPROJECT])
		return 0;
	if (pyproject_read(&(struct file_bytes){s->tree->text[SOURCE_PYPROJECT],
						s->tree->len[SOURCE_PYPROJECT], "pyproject.toml"},
			   s->a, &p, e) < 0)
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
	if (!s->tree->text[SOURCE_SETUP_PY] && !s->tree->text[SOURCE_PYPROJECT]) {
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
	if (*s->name)
		return err_hint(e, "name it with --version, for example --version 1.0");
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

/* Whether setup.py makes extensions for CUDA and no others: what it imports, it need not use. */
static bool has_cuda_alone(const char *setup)
{
	AUTO_BUF struct buf text = {0};

	if (!strstr(setup, "CUDAExtension("))
		return false;
	for (const char *line = setup; *line;) {
		const char *from = line + strspn(line, " \t");
		size_t n = strcspn(line, "\n");
		const char *bracket = memchr(line, '(', n);
		if (strncmp(from, "from ", 5) == 0 && bracket)
			n = (size_t)(bracket - line) + strcspn(bracket, ")");
		else if (strncmp(from, "from ", 5) != 0)
			buf_add(&text, line, n + (line[n] == '\n'));
		line += n + (line[n] != '\0');
	}

	return !strstr(buf_cstr(&text), "CppExtension");
}

/* With a marker or extras: what comes of it depends on the Python. On one line, for pip. */
static int add_also(const struct source *s, const char *text, struct strlist *ret, struct err *e)
{
	struct requirement r;
	const size_t len = strlen(text);

	if (requirement_parse(text, s->a, &r, e) < 0)
		return err_wrap(e, "'%s': a requirement of its build", s->path);
	if (*r.url || strcspn(text, "\r\n") != len) {
		err_set(e, ERR_POLICY, "'%s': its build requires '%.80s', which no index has",
			s->path, text);
		return err_hint(e, "require a name and a range, like \"setuptools>=62.3,<80\"");
	}

	strlist_once(ret, s->a, text);
	return 0;
}

static int make_row(const struct source *s, struct package_row *ret, struct err *e)
{
	struct strlist requires = {0}, also = {0};
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
		const char *text = s->requires.items[i];
		const char *plain = extension_requirement(text, s->a);
		if (!plain || strcmp(wheel_requires_name(plain, s->a), "torch") == 0)
			continue;
		if (strpbrk(text, ";[") && add_also(s, text, &also, e) < 0)
			return -1;
		if (strchr(text, ';'))
			continue;
		if (check_range(s, plain, plain + strspn(plain, NAME_LETTERS), e) < 0)
			return -1;
		strlist_once(&requires, s->a, plain);
	}

	row.python_requires = requires.items;
	row.python_requires_count = (unsigned) requires.count;
	row.also_requires = also.items;
	row.also_requires_count = (unsigned)also.count;
	const char *setup = s->tree->text[SOURCE_SETUP_PY];
	row.cuda_only = setup && (has_cuda_alone(setup) ||
				  (strstr(setup, "CUDAExtension") && *s->tree->needs_cuda));
	row.gpu_code = !*s->tree->gpu_code && setup && strstr(setup, "CUDAExtension")
			       ? "setup.py"
			       : s->tree->gpu_code;
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

/* What a tool that asks git for the version takes instead; all of them, as one may be called by
 * another. */
static void pretend(const struct source *s, struct package_row *row)
{
	static const char *const names[] = {"SETUPTOOLS_SCM_PRETEND_VERSION",
					    "PDM_BUILD_SCM_VERSION", "PBR_VERSION"};
	struct table_setting *settings = arena_array(s->a, ARRAY_LEN(names), sizeof(*settings));

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		settings[i] = (struct table_setting){.name = names[i],
						     .value = s->version,
						     .why = "the version of --version",
						     .source = "",
						     .since = "",
						     .until = "",
						     .gpu = "",
						     .package = row->name};
	row->settings = settings;
	row->settings_count = ARRAY_LEN(names);
}

int extension_read(const struct extension_asked *q, const struct run *run, struct arena *a,
		   struct package_row *ret, struct err *e)
{
	const char *path = q->path;
	struct source_tree tree;
	struct source s = {
		.tree = &tree, .path = path, .a = a, .name = "", .version = "", .python = ""};

	if (!fs_exists(TRUSTED, path))
		return err_set(e, ERR_USAGE, "no folder or sdist '%s'", path);
	if (source_tree_is_member(path)) {
		err_set(e, ERR_USAGE, "'%s' is a file of an extension", path);
		return err_hint(e, "pass --extension the folder or the sdist of a Python package");
	}

	if (source_tree_read(path, run, a, &tree, e) < 0 || take_info(&s, e) < 0 ||
	    take_project(&s, e) < 0)
		return err_wrap(e, "extension '%s'", path);
	s.version = q->version ? q->version : s.version;
	if (take_setup(&s, e) < 0)
		return -1;
	if (!is_name(s.name))
		return err_set(e, ERR_INTEGRITY, "'%s': '%.60s' is not a valid package name", path,
			       s.name);
	if (!wheel_version_key(s.version, a))
		return err_set(e, ERR_INTEGRITY, "'%s' has no version: '%.60s'", path, s.version);
	if (source_tree_warn(&tree, run, e) < 0)
		return err_wrap(e, "extension '%s'", path);
	if (make_row(&s, ret, e) < 0)
		return -1;
	if (q->version)
		pretend(&s, ret);
	return 0;
}
