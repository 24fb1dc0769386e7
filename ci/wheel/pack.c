/* Packs a release: the libraries that its programs need come
 * along, then the tree becomes a wheel. ci/release runs it.
 *
 *   pack-release TREE ROOT OUT_DIR EPOCH KEY
 *
 * ROOT is where the libraries are found, and their
 * licences. KEY says what the release was made of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/tables/tables.h"
#include "step/pack/pack.h"
#include "step/relocate/relocate.h"

/* glibc alone is taken from the machine: a bare one need
 * not have what other wheels expect of it, like libz. */
static void only_glibc(const struct manylinux_policy *all, struct arena *a,
		       struct manylinux_policy *ret)
{
	static const char *const others[] = {"libstdc++.so.6", "libgcc_s.so.1", "libatomic.so.1"};

	*ret = *all;
	ret->libraries = arena_array(a, all->libraries_count, sizeof(*ret->libraries));
	ret->libraries_count = 0;
	for (unsigned i = 0; i < all->libraries_count; i++) {
		bool takes = all->libraries[i].versioned;
		for (size_t j = 0; j < sizeof(others) / sizeof(others[0]); j++)
			takes = takes && strcmp(all->libraries[i].name, others[j]) != 0;
		if (takes)
			ret->libraries[ret->libraries_count++] = all->libraries[i];
	}
}

/* The licence of each package that a library came from, as the root has it. */
static int add_licences(const struct relocate_result *r, const struct root *root, const char *dir,
			struct arena *a, struct err *e)
{
	for (size_t i = 0; i < r->count; i++) {
		AUTO_BUF struct buf text = {0};
		const char *package = arena_strndup(a, r->libraries[i].package,
						    strcspn(r->libraries[i].package, "="));
		const char *path = arena_printf(a, "/usr/share/doc/%s/copyright", package);
		const char *found = root_resolve(root, path, a);
		if (!found)
			return err_set(e, ERR_POLICY,
				       "no licence of '%s', which '%s' came from: no '%s'", package,
				       r->libraries[i].needed, path);
		if (root_read(root, found, 16 << 20, &text, e) < 0 ||
		    fs_write(TRUSTED, path_join(a, dir, package), text.data, text.len, 0644, e) < 0)
			return -1;
		fprintf(stderr, "takes %s of %s\n", r->libraries[i].needed,
			r->libraries[i].package);
	}

	return 0;
}

static int list_licences(const char *dir, struct arena *a, struct strlist *ret, struct err *e)
{
	struct strlist names = {0};

	if (fs_list(TRUSTED, dir, a, &names, e) < 0)
		return -1;
	strlist_sort(&names);
	strlist_append(ret, a, &names);
	return 0;
}

static int pack(char **words, const struct run *run, struct arena *a, struct err *e)
{
	const struct tables *tables = NULL;
	struct manylinux_policy policy;
	struct relocate_result relocated;
	struct root root;
	const char *info = "", *tree = words[0];
	char *tag = NULL;

	if (tables_load(path_join(a, tree, "ptbuild/share/ptbuild/profiles"), a, &tables, e) < 0 ||
	    root_open(words[1], a, &root, e) < 0)
		return -1;
	only_glibc(&tables->manylinux, a, &policy);
	struct relocate_request r = {.tree = tree,
				     .root = &root,
				     .libs_dir = "ptbuild/lib",
				     .policy = &policy,
				     .any_library = root.host};
	if (relocate_tree(&r, run, a, &relocated, e) < 0 ||
	    wheel_find_dist_info(tree, a, &info, e) < 0)
		return -1;
	const char *licences = path_join(a, path_join(a, tree, info), "licenses");
	struct pack_request p = {.tree = tree,
				 .version = PTBUILD_VERSION,
				 .metadata_rev = 1,
				 .input_key = words[4],
				 .generator = "ptbuild " PTBUILD_VERSION,
				 .epoch = strtoull(words[3], NULL, 10),
				 .level = PACK_LEVEL,
				 .out_dir = words[2]};
	struct pack_result packed;
	if (add_licences(&relocated, &root, licences, a, e) < 0 ||
	    list_licences(licences, a, &p.license_files, e) < 0 ||
	    manylinux_tag_of_tree(&tables->manylinux, tree, a, &tag, e) < 0)
		return -1;
	p.platform = tag;
	if (pack_wheel(&p, run, a, &packed, e) < 0)
		return -1;
	printf("%s\n", packed.path);
	return 0;
}

int main(int argc, char **argv)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct log log;

	log_init(&log, STDERR_FILENO, LOG_NORMAL);
	const struct run run = {.log = &log, .cancel_fd = -1};
	if (argc != 6) {
		fprintf(stderr, "usage: pack-release TREE ROOT OUT_DIR EPOCH KEY\n");
		return 2;
	}

	if (pack(argv + 1, &run, &a, &e) == 0)
		return 0;
	fprintf(stderr, "pack-release: %s\n%s%s", e.msg, e.hint, e.hint[0] ? "\n" : "");
	return 1;
}
