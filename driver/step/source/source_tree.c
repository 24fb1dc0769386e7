#include "step/source/source_tree.h"

#include "base/sys/fs.h"
#include "base/sys/tar.h"
#include "step/source/cuda_headers.h"

enum { FILE_MAX = 1 << 20 };

static const char *const file_names[SOURCE_FILES] = {"PKG-INFO", "pyproject.toml", "setup.py",
						     ".gitmodules", "version.txt"};

/* What the package has, and no other. */
static const struct {
	const char *file, *package;
} signs[] = {{"torch/__init__.py", "pytorch"},
	     {"torchvision/__init__.py", "torchvision"},
	     {"torchaudio/__init__.py", "torchaudio"},
	     {"src/torchaudio/__init__.py", "torchaudio"}};

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

static void look_at(struct source_tree *s, const char *rel)
{
	for (size_t i = 0; i < ARRAY_LEN(signs); i++)
		if (strcmp(rel, signs[i].file) == 0)
			s->package = signs[i].package;
	if (!*s->gpu_code && is_gpu_code(rel))
		s->gpu_code = arena_strdup(s->a, rel);
}

struct walk {
	struct source_tree *s;
	struct cuda_headers *h;
};

static bool is_looked_at(const char *rel, uint64_t size)
{
	return size <= FILE_MAX && cuda_headers_want(rel) && !strstr(rel, "site-packages/");
}

static int look_at_file(const char *rel, const struct stat *st, void *user, struct err *e)
{
	const struct walk *w = user;
	AUTO_BUF struct buf text = {0};

	look_at(w->s, rel);
	if (!S_ISREG(st->st_mode) || !is_looked_at(rel, (uint64_t)st->st_size))
		return 0;
	if (fs_read(TRUSTED, path_join(w->s->a, w->s->path, rel), FILE_MAX, &text, e) < 0)
		return -1;
	cuda_headers_add(w->h, rel, buf_cstr(&text));
	return 0;
}

static void keep(struct source_tree *s, size_t i, const struct buf *text)
{
	s->text[i] = arena_strndup(s->a, buf_cstr(text), text->len);
	s->len[i] = strlen(s->text[i]);
}

static int read_folder(struct source_tree *s, struct cuda_headers *h, struct err *e)
{
	for (size_t i = 0; i < SOURCE_FILES; i++) {
		AUTO_BUF struct buf text = {0};
		if (!fs_exists(TRUSTED, path_join(s->a, s->path, file_names[i])))
			continue;
		if (fs_read(TRUSTED, path_join(s->a, s->path, file_names[i]), FILE_MAX, &text, e) <
		    0)
			return -1;
		keep(s, i, &text);
	}

	return fs_walk(TRUSTED, s->path, look_at_file, &(struct walk){s, h}, e);
}

static const struct tar_limits limits = {
	.max_bytes = UINT64_C(8) << 30, .max_ratio = 200, .max_entries = 500000};

/* Files of a directory follow each other. */
static void add_dir(struct source_tree *s, const char *rel)
{
	const char *last = s->dirs.count ? s->dirs.items[s->dirs.count - 1] : "";
	const char *slash = strrchr(rel, '/');
	const size_t n = slash ? (size_t)(slash - rel) : 0;

	if (n && (strlen(last) != n || strncmp(last, rel, n) != 0))
		strlist_ref(&s->dirs, s->a, arena_strndup(s->a, rel, n));
}

static int read_archive(struct source_tree *s, struct cuda_headers *h, const struct run *run,
			struct err *e)
{
	AUTO_TAR struct tar *t = NULL;
	struct tar_entry en;
	int got;

	if (tar_open(s->path, &limits, run, &t, e) < 0)
		return -1;
	while ((got = tar_next(t, &en, e)) > 0) {
		const char *slash = strchr(en.name, '/');
		if (!slash || en.type != S_IFREG)
			continue;
		add_dir(s, slash + 1);
		look_at(s, slash + 1);
		if (is_looked_at(slash + 1, en.size)) {
			AUTO_BUF struct buf text = {0};
			if (tar_read(t, FILE_MAX, &text, e) < 0)
				return tar_deny(t, e);
			cuda_headers_add(h, slash + 1, buf_cstr(&text));
		}

		for (size_t i = 0; i < SOURCE_FILES; i++) {
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
static void list_modules(const struct source_tree *s, struct strlist *ret)
{
	struct strlist lines = {0};

	strlist_split(&lines, s->a, s->text[SOURCE_GITMODULES] ? s->text[SOURCE_GITMODULES] : "",
		      "\r\n");
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

/* Whether a directory is another one or below it. */
static bool is_in(const char *dir, const char *other)
{
	const size_t n = strlen(other);
	return strncmp(dir, other, n) == 0 && (!dir[n] || dir[n] == '/');
}

/* Takes away the modules of which an archive has a file. */
static void drop_archived(const struct source_tree *s, struct strlist *modules)
{
	for (size_t k = 0; k < s->dirs.count; k++)
		for (size_t i = modules->count; i-- > 0;)
			if (is_in(s->dirs.items[k], modules->items[i]))
				modules->items[i] = modules->items[--modules->count];
}

static int drop_present(const struct source_tree *s, struct strlist *modules, struct err *e)
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
int source_tree_warn(const struct source_tree *s, const struct run *run, struct err *e)
{
	struct strlist modules = {0};
	const bool folder = fs_is_dir(TRUSTED, s->path);

	list_modules(s, &modules);
	if (!modules.count)
		return 0;
	if (!folder)
		drop_archived(s, &modules);
	else if (drop_present(s, &modules, e) < 0)
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

bool source_tree_is_member(const char *path)
{
	for (size_t i = 0; i < SOURCE_FILES; i++)
		if (strcmp(path_base(path), file_names[i]) == 0 && !fs_is_dir(TRUSTED, path))
			return true;
	return false;
}

int source_tree_read(const char *path, const struct run *run, struct arena *a,
		     struct source_tree *ret, struct err *e)
{
	struct source_tree s = {.path = path, .a = a, .gpu_code = "", .package = ""};
	struct cuda_headers h = {.a = a};

	if ((fs_is_dir(TRUSTED, path) ? read_folder(&s, &h, e) : read_archive(&s, &h, run, e)) < 0)
		return -1;
	s.needs_cuda = cuda_headers_need(&h);
	*ret = s;
	return 0;
}
