/* Packs a release: the libraries that its programs need come
 * along, then the tree becomes a wheel. ci/release runs it.
 *
 *   pack-release TREE ROOT OUT_DIR EPOCH KEY SOURCES
 *
 * ROOT is where the libraries are found, and their licences. KEY says what the release was made of.
 * SOURCES lists the pinned sources that are linked into it, "DIGEST PATH" a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
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

static void add_component(json_t *list, const char *name, const char *version, const char *sha256)
{
	json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:[{s:s, s:s}]}", "type", "library",
					      "name", name, "version", version, "hashes", "alg",
					      "SHA-256", "content", sha256));
}

/* "o/openssl/openssl_3.5.7.orig.tar.gz" is openssl 3.5.7. */
static int add_sources(const char *path, json_t *list, struct arena *a, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct strlist lines = {0};

	if (fs_read(TRUSTED, path, 1 << 20, &text, e) < 0)
		return -1;
	strlist_split(&lines, a, buf_cstr(&text), "\n");
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i], *slash = strrchr(line, '/');
		const char *mark = slash ? strchr(slash, '_') : NULL;
		if (*line == '#' || !mark)
			continue;
		const char *name = arena_strndup(a, slash + 1, (size_t)(mark - slash - 1));
		const char *end = strstr(mark, ".orig.");
		const size_t len = end ? (size_t)(end - mark - 1) : strcspn(mark + 1, "_");
		const char *version = arena_strndup(a, mark + 1, len);
		add_component(list, name, version, arena_strndup(a, line, strcspn(line, " ")));
	}

	return 0;
}

/* The bill of materials: CycloneDX, as those of the wheels that ptbuild builds. */
static int write_bill(const struct relocate_result *r, const char *info, const char *sources,
		      struct arena *a, struct err *e)
{
	AUTO_JSON json_t *list = json_array();
	const char *path = path_join(a, info, "sboms/ptbuild.cdx.json");

	if (add_sources(sources, list, a, e) < 0)
		return -1;
	for (size_t i = 0; i < r->count; i++) {
		const char *package = r->libraries[i].package, *equals = strchr(package, '=');
		if (equals)
			add_component(list, arena_strndup(a, package, (size_t)(equals - package)),
				      equals + 1, r->libraries[i].sha256);
	}

	AUTO_JSON json_t *doc = json_pack(
		"{s:s, s:s, s:i, s:{s:{s:s, s:s, s:s}}, s:O}", "bomFormat", "CycloneDX",
		"specVersion", "1.6", "version", 1, "metadata", "component", "type", "application",
		"name", "ptbuild", "version", PTBUILD_VERSION, "components", list);
	return fs_mkdirs(TRUSTED, path_dir(a, path), e) < 0 ? -1
							    : json_write(doc, TRUSTED, path, e);
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
	struct relocate_request r = {.run = run,
				     .tree = tree,
				     .root = &root,
				     .libs_dir = "ptbuild/lib",
				     .policy = &policy,
				     .any_library = root.host};
	if (relocate_tree(&r, a, &relocated, e) < 0 ||
	    wheel_find_dist_info(tree, a, &info, e) < 0)
		return -1;
	const char *licences = path_join(a, path_join(a, tree, info), "licenses");
	struct pack_request p = {.run = run,
				 .tree = tree,
				 .version = PTBUILD_VERSION,
				 .metadata_rev = 1,
				 .input_key = words[4],
				 .generator = "ptbuild " PTBUILD_VERSION,
				 .epoch = strtoull(words[3], NULL, 10),
				 .level = PACK_LEVEL,
				 .out_dir = words[2]};
	struct pack_result packed;
	if (write_bill(&relocated, path_join(a, tree, info), words[5], a, e) < 0 ||
	    add_licences(&relocated, &root, licences, a, e) < 0 ||
	    list_licences(licences, a, &p.license_files, e) < 0 ||
	    manylinux_tag_of_tree(&tables->manylinux, tree, a, &tag, e) < 0)
		return -1;
	p.platform = tag;
	if (pack_wheel(&p, a, &packed, e) < 0)
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
	if (argc != 7) {
		fprintf(stderr, "usage: pack-release TREE ROOT OUT_DIR EPOCH KEY SOURCES\n");
		return 2;
	}

	if (pack(argv + 1, &run, &a, &e) == 0)
		return 0;
	fprintf(stderr, "pack-release: %s\n%s%s", e.msg, e.hint, e.hint[0] ? "\n" : "");
	return 1;
}
