/* Where CUDA toolkits are in a root. */

#include "core/root/toolkit.h"

/* Python packages first: they may be inside a conda prefix. */
static enum toolkit_layout layout_of(const struct root *r, const char *home, struct arena *a)
{
	if (strcmp(home, "/usr") == 0)
		return TOOLKIT_DISTRIBUTION;
	if (strstr(home, "-packages/nvidia/"))
		return TOOLKIT_PYTHON;
	return root_resolve(r, path_join(a, home, "conda-meta"), a) ? TOOLKIT_CONDA
								    : TOOLKIT_NVIDIA;
}

/* Whether every sandbox shows it. */
static bool is_shown(const struct root *r, const char *path)
{
	return strcmp(path, "/usr") == 0 || strncmp(path, "/usr/", 5) == 0 ||
	       (!r->host && strncmp(path, "/opt/", 5) == 0);
}

/* A toolkit that the user named gets a fixed place inside, so that no name of a
 * home directory is in the build. A Python package is mounted with those beside it. */
static void set_mount(const struct root *r, struct toolkit *k, bool given, struct arena *a)
{
	const char *dir = k->layout == TOOLKIT_PYTHON ? path_dir(a, k->where) : k->where;

	k->mount_from = root_host_path(r, dir, a);
	k->mount_to = given ? SANDBOX_CUDA : dir;
	k->home = k->layout == TOOLKIT_PYTHON ? path_join(a, k->mount_to, path_base(k->where))
					      : k->mount_to;
}

static void add_place(struct toolkit_places *l, const char *home, bool given)
{
	const struct root *r = l->root;
	struct arena *a = l->arena;
	const char *nvcc = root_find_program(r, path_join(a, home, "bin/nvcc"), a);

	if (!nvcc || l->count == TOOLKIT_PLACES)
		return;
	/* The target of /usr/local/cuda has the version in
	 * its name, and stays when another one is installed. */
	const char *real = strcmp(home, "/usr") == 0 ? home : root_resolve(r, home, a);
	const char *file = root_resolve(r, nvcc, a);
	if (!real || !file)
		return;
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->items[i].file, file) == 0)
			return;
	struct toolkit k = {
		.layout = layout_of(r, real, a), .where = real, .home = real, .file = file};
	k.tegra = root_resolve(r, path_join(a, real, "targets/aarch64-linux"), a) != NULL;
	if (!is_shown(r, real))
		set_mount(r, &k, given, a);
	k.nvcc = path_join(a, k.home, "bin/nvcc");
	l->items[l->count++] = k;
}

/* The entries of a directory whose names begin so,
 * the greatest first; none if it cannot be read. */
static struct strlist named(const struct root *r, const char *dir, const char *prefix,
			    struct arena *a)
{
	struct strlist names = {0}, found = {0};

	if (root_list(r, dir, a, &names, ERR_IGNORED) < 0)
		return found;
	for (size_t i = names.count; i-- > 0;)
		if (strncmp(names.items[i], prefix, strlen(prefix)) == 0)
			strlist_ref(&found, a, path_join(a, dir, names.items[i]));
	return found;
}

static void add_named(struct toolkit_places *l, const char *dir, const char *prefix)
{
	struct strlist homes = named(l->root, dir, prefix, l->arena);
	for (size_t i = 0; i < homes.count; i++)
		add_place(l, homes.items[i], false);
}

/* site-packages and dist-packages of the Pythons below a directory. */
static void add_python(struct toolkit_places *l, const char *lib)
{
	struct arena *a = l->arena;
	struct strlist pythons = named(l->root, lib, "python3", a);

	for (size_t i = 0; i < pythons.count; i++) {
		add_named(l, path_join(a, pythons.items[i], "site-packages/nvidia"), "cu");
		add_named(l, path_join(a, pythons.items[i], "dist-packages/nvidia"), "cu");
	}
}

void toolkit_places(struct toolkit_places *ret, const char *home)
{
	if (home)
		add_place(ret, home, true);
	add_named(ret, "/usr/local", "cuda-");
	add_place(ret, "/usr/local/cuda", false);
	add_place(ret, "/opt/cuda", false);
	add_place(ret, "/usr", false);
	add_python(ret, "/usr/local/lib");
	add_python(ret, "/usr/lib");
	add_place(ret, "/opt/conda", false);
}

static void add_dir(const struct root *r, const char *dir, struct arena *a, struct strlist *ret)
{
	const char *real = root_resolve(r, dir, a);
	if (real)
		strlist_once(ret, a, real);
}

size_t toolkit_include_dirs(const struct root *r, const struct toolkit *k, struct arena *a,
			    struct strlist *ret)
{
	/* The shared ones have what NVIDIA packages apart from the toolkit: cuDNN, NCCL. */
	static const char *const own[] = {"include", "targets/x86_64-linux/include",
					  "targets/sbsa-linux/include", "extras/CUPTI/include"},
				 *const shared[] = {"/usr/local/include", "/usr/include",
						    "/usr/include/x86_64-linux-gnu",
						    "/usr/include/aarch64-linux-gnu"};
	struct strlist packages = {0};

	for (size_t i = 0; i < ARRAY_LEN(own) && k->layout != TOOLKIT_DISTRIBUTION; i++)
		add_dir(r, path_join(a, k->where, own[i]), a, ret);
	if (k->layout == TOOLKIT_PYTHON)
		packages = named(r, path_dir(a, k->where), "", a);
	for (size_t i = packages.count; i-- > 0;)
		add_dir(r, path_join(a, packages.items[i], "include"), a, ret);
	size_t own_count = ret->count;
	for (size_t i = 0; i < ARRAY_LEN(shared); i++)
		add_dir(r, shared[i], a, ret);
	return k->layout == TOOLKIT_DISTRIBUTION ? ret->count : own_count;
}

void toolkit_library_dirs(const struct root *r, const struct toolkit *k, struct arena *a,
			  struct strlist *ret)
{
	static const char *const own[] = {"lib64", "lib", "targets/x86_64-linux/lib",
					  "targets/sbsa-linux/lib", "extras/CUPTI/lib64"};
	struct strlist seen = {0}, packages = {0};

	for (size_t i = 0; i < ARRAY_LEN(own) && k->layout != TOOLKIT_DISTRIBUTION; i++) {
		size_t before = seen.count;
		add_dir(r, path_join(a, k->where, own[i]), a, &seen);
		if (seen.count > before)
			strlist_ref(ret, a, path_join(a, k->home, own[i]));
	}

	if (k->layout == TOOLKIT_PYTHON)
		packages = named(r, path_dir(a, k->where), "", a);
	for (size_t i = packages.count; i-- > 0;) {
		const char *name = path_base(packages.items[i]);
		if (strcmp(name, path_base(k->where)) != 0 &&
		    root_resolve(r, path_join(a, packages.items[i], "lib"), a))
			strlist_ref(ret, a,
				    path_join(a, path_join(a, path_dir(a, k->home), name), "lib"));
	}
}

/* Parsers of what a toolkit's programs print and its headers say. */
/* Options of nvcc that a build uses where the toolkit has them. */
static const char *const known_options[] = {"--objdir-as-tempdir", "--compress-mode",
					    "--frandom-seed", "--split-compile", "--threads"};

/* The text after a mark, up to one of the characters `end`; "" without the mark. */
static char *text_after(const char *text, const char *mark, const char *end, struct arena *a)
{
	const char *p = strstr(text, mark);

	if (!p)
		return arena_strdup(a, "");
	p += strlen(mark);
	return arena_strndup(a, p, strcspn(p, end));
}

bool toolkit_parse(const char *version_text, const char *help_text, struct arena *a,
		   struct toolkit *k)
{
	k->release = text_after(version_text, ", V", " \n", a);
	k->build = text_after(version_text, "Build ", "\n", a);
	k->version = text_after(version_text, ", release ", ", \n", a);
	if (!version_valid(k->version) || !version_valid(k->release))
		return false;
	for (const char *p = strstr(help_text, "'sm_"); p; p = strstr(p + 1, "'sm_")) {
		const char *name = p + 4;
		size_t n = strcspn(name, "'");
		if (n == 0 || n > 8 || name[n] != '\'' || !isdigit((unsigned char)*name))
			continue;
		const char *target = arena_strndup(a, name, n);
		strlist_once(&k->targets, a, target);
	}

	for (size_t i = 0; i < ARRAY_LEN(known_options); i++) {
		const char *at = strstr(help_text, known_options[i]);
		if (at && strchr(" \t\n=", at[strlen(known_options[i])]))
			strlist_ref(&k->options, a, known_options[i]);
	}

	return k->targets.count > 0;
}

long toolkit_header_number(const char *text, const char *name)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist lines = {0};

	strlist_split(&lines, &a, text, "\n");
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i];
		struct strlist words = {0};
		if (line[strspn(line, " \t")] != '#')
			continue;
		strlist_split(&words, &a, line, "# \t\r()");
		if (words.count > 2 && strcmp(words.items[0], "define") == 0 &&
		    strcmp(words.items[1], name) == 0 && isdigit((unsigned char)*words.items[2]))
			return strtol(words.items[2], NULL, 0);
	}

	return -1;
}

/* The number after the last `mark` that has one, 0 without. */
static unsigned number_after(const char *text, const char *mark)
{
	unsigned long found = 0;

	for (const char *p = strstr(text, mark); p; p = strstr(p + 1, mark)) {
		unsigned long n = strtoul(p + strlen(mark), NULL, 10);
		found = n ? n : found;
	}

	return found < 10000 ? (unsigned)found : 0;
}

void toolkit_header_limits(const char *text, unsigned *gcc_max, unsigned *clang_max)
{
	unsigned beyond = number_after(text, "(__clang_major__ >=");
	*gcc_max = number_after(text, "#if __GNUC__ >");
	*clang_max = beyond ? beyond - 1 : 0;
}
