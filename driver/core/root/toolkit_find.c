#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/root/toolkit_parts.h"

static bool in_root(const struct root *r, const char *path, struct arena *a)
{
	return root_resolve(r, path, a) != NULL;
}

/* Python packages first: such a directory may lie inside a conda prefix. */
static enum toolkit_layout layout_of(const struct root *r, const char *home, struct arena *a)
{
	if (strcmp(home, "/usr") == 0)
		return TOOLKIT_DISTRIBUTION;
	if (strstr(home, "-packages/nvidia/"))
		return TOOLKIT_PYTHON;
	if (in_root(r, path_join(a, home, "conda-meta"), a))
		return TOOLKIT_CONDA;
	return TOOLKIT_NVIDIA;
}

/* What a sandbox shows of a root anyway. */
static bool is_shown(const struct root *r, const char *path)
{
	return strcmp(path, "/usr") == 0 || strncmp(path, "/usr/", 5) == 0 ||
	       (!r->host && strncmp(path, "/opt/", 5) == 0);
}

/* A place of the user's own gets a fixed one inside, so that no name of a home directory is in the build. A Python
 * package is one of several directories. */
static void show(const struct root *r, struct toolkit_place *p, bool given, struct arena *a)
{
	const char *dir = p->layout == TOOLKIT_PYTHON ? path_dir(a, p->where) : p->where;
	p->mount_from = root_host_path(r, dir, a);
	p->mount_to = given ? SANDBOX_CUDA : dir;
	p->home = p->layout == TOOLKIT_PYTHON ? path_join(a, p->mount_to, path_base(p->where)) : p->mount_to;
}

static void add_place(struct toolkit_places *l, const struct root *r, const char *home, bool given, struct arena *a)
{
	const char *nvcc = root_find_program(r, path_join(a, home, "bin/nvcc"), a);
	if (!nvcc || l->count == TOOLKIT_PLACES)
		return;
	/* /usr/local/cuda is a link to the newest: the name with the version says more, and does not change when
	 * another one is installed. */
	const char *real = strcmp(home, "/usr") == 0 ? home : root_resolve(r, home, a);
	const char *file = root_resolve(r, nvcc, a);
	if (!real || !file)
		return;
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->items[i].file, file) == 0)
			return;
	struct toolkit_place p = {.layout = layout_of(r, real, a), .where = real, .home = real, .file = file};
	if (!is_shown(r, real))
		show(r, &p, given, a);
	p.nvcc = path_join(a, p.home, "bin/nvcc");
	l->items[l->count++] = p;
}

/* Every entry of a directory whose name begins so, the greatest first. */
static void add_named(struct toolkit_places *l, const struct root *r, const char *dir, const char *prefix,
		      struct arena *a)
{
	struct strlist names = {0};
	struct err ignored = {0};
	const char *real = root_resolve(r, dir, a);
	if (!real || fs_list(root_host_path(r, real, a), a, &names, &ignored) < 0)
		return;
	for (size_t i = names.count; i-- > 0;)
		if (strncmp(names.items[i], prefix, strlen(prefix)) == 0)
			add_place(l, r, path_join(a, dir, names.items[i]), false, a);
}

/* site-packages and dist-packages of the Pythons below a directory. */
static void add_python(struct toolkit_places *l, const struct root *r, const char *lib, struct arena *a)
{
	static const char *const sites[] = {"site-packages/nvidia", "dist-packages/nvidia"};
	struct strlist names = {0};
	struct err ignored = {0};
	const char *real = root_resolve(r, lib, a);
	if (!real || fs_list(root_host_path(r, real, a), a, &names, &ignored) < 0)
		return;
	for (size_t i = names.count; i-- > 0;) {
		if (strncmp(names.items[i], "python3", 7) != 0)
			continue;
		for (size_t k = 0; k < ARRAY_LEN(sites); k++) {
			const char *nvidia = path_join(a, path_join(a, lib, names.items[i]), sites[k]);
			add_named(l, r, nvidia, "cu", a);
		}
	}
}

void toolkit_places(const struct root *r, const char *home, struct arena *a, struct toolkit_places *ret)
{
	if (home)
		add_place(ret, r, home, true, a);
	add_named(ret, r, "/usr/local", "cuda-", a);
	add_place(ret, r, "/usr/local/cuda", false, a);
	add_place(ret, r, "/opt/cuda", false, a);
	add_place(ret, r, "/usr", false, a);
	add_python(ret, r, "/usr/local/lib", a);
	add_python(ret, r, "/usr/lib", a);
	add_place(ret, r, "/opt/conda", false, a);
}

static void add_dirs(const struct root *r, const struct strlist *dirs, struct arena *a, struct strlist *ret)
{
	for (size_t i = 0; i < dirs->count; i++) {
		const char *real = root_resolve(r, dirs->items[i], a);
		if (real && !strlist_contains(ret, real))
			strlist_ref(ret, a, real);
	}
}

size_t toolkit_include_dirs(const struct root *r, const struct toolkit_place *p, struct arena *a, struct strlist *ret)
{
	/* The last ones hold what NVIDIA packages apart from the toolkit: cuDNN, NCCL. */
	static const char *const own[] = {"include", "targets/x86_64-linux/include", "targets/sbsa-linux/include",
					  "extras/CUPTI/include"};
	static const char *const shared[] = {"/usr/local/include", "/usr/include", "/usr/include/x86_64-linux-gnu",
					     "/usr/include/aarch64-linux-gnu"};
	struct strlist all = {0}, others = {0};
	for (size_t i = 0; i < ARRAY_LEN(own) && p->layout != TOOLKIT_DISTRIBUTION; i++)
		strlist_ref(&all, a, path_join(a, p->where, own[i]));
	if (p->layout == TOOLKIT_PYTHON) {
		struct strlist names = {0};
		struct err ignored = {0};
		const char *nvidia = path_dir(a, p->where);
		if (fs_list(root_host_path(r, nvidia, a), a, &names, &ignored) == 0)
			for (size_t i = 0; i < names.count; i++)
				strlist_ref(&all, a, path_join(a, path_join(a, nvidia, names.items[i]), "include"));
	}
	for (size_t i = 0; i < ARRAY_LEN(shared); i++)
		strlist_ref(&others, a, shared[i]);
	add_dirs(r, &all, a, ret);
	size_t own_count = ret->count;
	add_dirs(r, &others, a, ret);
	return p->layout == TOOLKIT_DISTRIBUTION ? ret->count : own_count;
}

void toolkit_library_dirs(const struct root *r, const struct toolkit_place *p, struct arena *a, struct strlist *ret)
{
	static const char *const own[] = {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib",
					  "extras/CUPTI/lib64"};
	struct strlist seen = {0}, names = {0};
	struct err ignored = {0};
	if (p->layout == TOOLKIT_DISTRIBUTION)
		return;
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		const char *real = root_resolve(r, path_join(a, p->where, own[i]), a);
		if (!real || strlist_contains(&seen, real))
			continue;
		strlist_ref(&seen, a, real);
		strlist_ref(ret, a, path_join(a, p->home, own[i]));
	}
	if (p->layout != TOOLKIT_PYTHON ||
	    fs_list(root_host_path(r, path_dir(a, p->where), a), a, &names, &ignored) < 0)
		return;
	for (size_t i = 0; i < names.count; i++) {
		const char *lib = path_join(a, names.items[i], "lib");
		if (strcmp(names.items[i], path_base(p->where)) != 0 &&
		    root_resolve(r, path_join(a, path_dir(a, p->where), lib), a))
			strlist_ref(ret, a, path_join(a, path_dir(a, p->home), lib));
	}
}
