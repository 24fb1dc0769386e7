#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "step/pack/pack.h"

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define INFO "tree/torch-1.0.dist-info/"
#define SBOM INFO "sboms/torch.cdx.json"

static struct arena arena;
static struct err err;
static struct root root;
static struct strlist licenses;

static struct source_row source = {.name = "src.tar.gz", .sha256 = SHA};
static struct package_row row = {.sources = &source, .sources_count = 1};
static const struct release_row release = {.source_date_epoch = 1738108800};
static struct plan_patch patch = {.name = "a.patch", .sha256 = SHA};
static struct plan plan;
static const struct wheel_vendored libraries[] = {
	{"torch/lib/libx-01234567.so.1", "libx.so.1", "/usr/lib/libx.so.1.2",
	 "libx1=2:1.2+ds-3~deb13u1", SHA},
	{"torch/lib/libgomp.so.1", "libgomp.so.1", "/usr/lib/libgomp.so.1", "libgomp1=14.2.0-19",
	 SHA},
	{"torch/lib/libx-extra.so", "libx-extra.so", "/usr/lib/libx-extra.so",
	 "libx1=2:1.2+ds-3~deb13u1", SHA},
	{"torch/lib/libown.so", "libown.so", "/opt/libown.so", "", SHA}};

static int setup(void **state)
{
	(void)state;
	test_dir();
	err_clear(&err);
	licenses = (struct strlist){0};
	test_write(test_path(INFO "METADATA"), "Name: torch\n");
	for (size_t i = 0; i < ARRAY_LEN(libraries); i++)
		test_write(test_path("tree/%s", libraries[i].file), libraries[i].file);
	test_write(test_path("root/usr/share/doc/libx1/copyright"),
		   "Format: https://example.org/1.0/\n\nFiles: *\nLicense: MIT \n "
		   "text\n\nFiles: b\nlicense: BSD-3-clause\n\nLicense: MIT\n More\n");
	test_write(test_path("root/usr/share/doc/gcc-14-base/copyright"),
		   "This is free text.\nLicense: not machine-readable\n");
	assert_int_equal(symlink("gcc-14-base", test_path("root/usr/share/doc/libgomp1")), 0);
	plan = (struct plan){.distribution = "torch",
			     .version = "1.0",
			     .local_label = "cpu.avx2",
			     .platform = "x86_64-linux",
			     .torch = "",
			     .torch_version = "",
			     .package_row = &row,
			     .release_row = &release,
			     .patches = &patch,
			     .patches_count = 1};
	root = (struct root){.dir = arena_strdup(&arena, test_path("root")), .id = "debian 13"};
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static struct sbom_request request(void)
{
	return (struct sbom_request){.run = test_run(),
				     .tree = arena_strdup(&arena, test_path("tree")),
				     .root = &root,
				     .plan = &plan,
				     .generator = "ptbuild 0.1.0",
				     .libraries = libraries,
				     .libraries_count = ARRAY_LEN(libraries)};
}

static json_t *write_ok(const struct sbom_request *q)
{
	json_t *j = NULL;

	assert_ok(sbom_write(q, &arena, &licenses, &err), &err);
	assert_ok(json_read(TRUSTED, test_path(SBOM), &j, &err), &err);
	return j;
}

static const char *at(const json_t *j, const char *const *path)
{
	for (; *path; path++)
		j = json_is_array(j) ? json_array_get(j, (size_t)atoi(*path))
				     : json_object_get(j, *path);
	const char *s = json_string_value(j);
	return s ? s : "(none)";
}
#define AT(j, ...) at(j, (const char *const[]){__VA_ARGS__, NULL})

static void test_document(void **state)
{
	(void)state;
	struct sbom_request q = request();
	AUTO_JSON json_t *j = write_ok(&q);
	assert_string_equal(AT(j, "bomFormat"), "CycloneDX");
	assert_string_equal(AT(j, "specVersion"), "1.6");
	assert_null(json_object_get(j, "serialNumber"));
	assert_string_equal(AT(j, "metadata", "timestamp"), "2025-01-29T00:00:00Z");
	assert_string_equal(AT(j, "metadata", "component", "purl"),
			    "pkg:pypi/torch@1.0%2Bcpu.avx2");
	assert_string_equal(AT(j, "metadata", "tools", "components", "0", "version"), "0.1.0");
	assert_int_equal(json_array_size(json_object_get(j, "components")), 6);
	assert_string_equal(AT(j, "components", "0", "name"), "src.tar.gz");
	assert_string_equal(AT(j, "components", "0", "hashes", "0", "content"), SHA);
	assert_string_equal(AT(j, "components", "1", "bom-ref"), "patch:a.patch");
}

static void test_vendored_library(void **state)
{
	(void)state;
	char digest[DIGEST_HEX_LEN + 1];
	struct sbom_request q = request();
	AUTO_JSON json_t *j = write_ok(&q);
	const json_t *c = json_array_get(json_object_get(j, "components"), 2);
	assert_string_equal(AT(c, "name"), "libx1");
	assert_string_equal(AT(c, "version"), "2:1.2+ds-3~deb13u1");
	assert_string_equal(
		AT(c, "purl"),
		"pkg:deb/debian/libx1@2%3A1.2%2Bds-3~deb13u1?arch=amd64&distro=debian-13");
	/* the digest of the file as it is shipped, that of its source beside */
	digest_data(libraries[0].file, strlen(libraries[0].file), digest);
	assert_string_equal(AT(c, "hashes", "0", "content"), digest);
	assert_string_equal(AT(c, "properties", "1", "value"), "torch/lib/libx-01234567.so.1");
	assert_string_equal(AT(c, "properties", "4", "value"), SHA);
	assert_int_equal(json_array_size(json_object_get(c, "licenses")), 2);
	assert_string_equal(AT(c, "licenses", "0", "license", "name"), "BSD-3-clause");
	assert_string_equal(AT(c, "licenses", "1", "license", "name"), "MIT");
}

/* Every reference is unique and depended on. */
static void test_references(void **state)
{
	(void)state;
	struct sbom_request q = request();
	AUTO_JSON json_t *j = write_ok(&q);
	const json_t *on =
		json_object_get(json_array_get(json_object_get(j, "dependencies"), 0), "dependsOn");
	assert_string_equal(AT(j, "dependencies", "0", "ref"),
			    AT(j, "metadata", "component", "bom-ref"));
	assert_int_equal(json_array_size(on), 6);
	for (size_t i = 0; i < 6; i++) {
		const char *ref =
			AT(json_array_get(json_object_get(j, "components"), i), "bom-ref");
		assert_string_equal(ref, json_string_value(json_array_get(on, i)));
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(ref, json_string_value(json_array_get(on, k)));
	}
}

static void test_licences_are_copied_once(void **state)
{
	(void)state;
	struct sbom_request q = request();
	AUTO_JSON json_t *j = write_ok(&q);
	assert_int_equal(licenses.count, 2);
	assert_string_equal(licenses.items[0], "vendored/libgomp1/copyright");
	assert_string_equal(licenses.items[1], "vendored/libx1/copyright");
	char *AUTO_FREE text = test_read(test_path(INFO "licenses/vendored/libgomp1/copyright"));
	assert_string_equal(text, "This is free text.\nLicense: not machine-readable\n");
	assert_null(
		json_object_get(json_array_get(json_object_get(j, "components"), 3), "licenses"));
}

static void test_of_no_package(void **state)
{
	(void)state;
	struct sbom_request q = request();
	AUTO_JSON json_t *j = write_ok(&q);
	const json_t *c = json_array_get(json_object_get(j, "components"), 5);
	assert_string_equal(AT(c, "name"), "libown.so");
	assert_null(json_object_get(c, "purl"));
	assert_null(json_object_get(c, "version"));
}

/* What is inside the wheel's own libraries has its
 * licence, and those of its parts, in the wheel. */
static void test_linked_library(void **state)
{
	struct sbom_linked linked = {"mkl-static", "1.2", "Some Licence", SHA, "", "", ""};

	(void)state;
	test_write(test_path("root/usr/share/doc/mkl-static/LICENSE.txt"), "terms");
	test_write(test_path("root/usr/share/doc/mkl-static/parts/one.txt"), "others");
	assert_int_equal(symlink("gone", test_path("root/usr/share/doc/mkl-static/gone.txt")), 0);
	struct sbom_request q = request();
	q.linked = &linked;
	AUTO_JSON json_t *j = write_ok(&q);
	const json_t *c = json_array_get(json_object_get(j, "components"), 6);
	assert_string_equal(AT(c, "name"), "mkl-static");
	assert_string_equal(AT(c, "purl"), "pkg:pypi/mkl-static@1.2");
	assert_string_equal(AT(c, "hashes", "0", "content"), SHA);
	assert_string_equal(AT(c, "licenses", "0", "license", "name"), "Some Licence");
	assert_string_equal(AT(c, "properties", "0", "value"), "linked library");
	assert_null(json_object_get(c, "scope"));
	assert_int_equal(licenses.count, 4);
	assert_string_equal(licenses.items[2], "vendored/mkl-static/LICENSE.txt");
	assert_string_equal(licenses.items[3], "vendored/mkl-static/parts/one.txt");
	char *AUTO_FREE text =
		test_read(test_path(INFO "licenses/vendored/mkl-static/LICENSE.txt"));
	assert_string_equal(text, "terms");
	/* of a root that is no world */
	linked.version = linked.sha256 = "";
	AUTO_JSON json_t *other = write_ok(&q);
	c = json_array_get(json_object_get(other, "components"), 6);
	assert_null(json_object_get(c, "version"));
	assert_null(json_object_get(c, "purl"));
	assert_null(json_object_get(c, "hashes"));
}

static void assert_linked_version(const struct sbom_linked *linked, const char *version)
{
	struct sbom_request q = request();

	q.linked = linked;
	AUTO_JSON json_t *j = write_ok(&q);
	const json_t *c = json_array_get(json_object_get(j, "components"), 6);
	if (version)
		assert_string_equal(AT(c, "version"), version);
	else
		assert_null(json_object_get(c, "version"));
	/* whose package it was is not known */
	assert_null(json_object_get(c, "purl"));
}

/* In a root that is no world the library's own module says which version it is. */
static void test_version_of_a_linked_library(void **state)
{
	struct sbom_linked linked = {"own-static", "",    "Some Licence",         "",
				     "/opt/own",   "own", "/opt/none:/opt/own/pc"};

	(void)state;
	test_write(test_path("root/usr/share/doc/own-static/LICENSE.txt"), "terms");
	test_write(test_path("root/opt/own-7/lib/own.a"), "");
	assert_int_equal(symlink("own-7", test_path("root/opt/own")), 0);
	assert_linked_version(&linked, NULL);
	test_write(test_path("root/opt/own-7/pc/own.pc"),
		   "v=2\nName: own\nVersion:  2026.2 \nLibs: -lown\n");
	assert_linked_version(&linked, "2026.2");
	test_write(test_path("root/opt/own-7/pc/own.pc"), "v=2\nName: own\nVersion: ${v}\n");
	assert_linked_version(&linked, NULL);
	/* another one's module */
	test_write(test_path("root/opt/other/own.pc"), "Version: 3\n");
	linked.module_dirs = "/opt/other:/opt/own/pc";
	assert_linked_version(&linked, NULL);
	linked.place = "/opt/other";
	assert_linked_version(&linked, "3");
}

/* What the root was made of is in the bill, and said not to be in the wheel. */
static void test_files_of_the_world(void **state)
{
	struct world_entry files[] = {{WORLD_DEB, "g++", "4:14.2.0-1", "amd64", SHA, "", 0},
				      {WORLD_WHEEL, "nvidia-nvvm", "13.0.88", "", SHA, "", 0},
				      {WORLD_FILE, "cpython", "3.12.7+20241008", "", SHA, "", 0}};
	struct world_piece pieces[] = {{.lock = {.entries = files, .count = 2}},
				       {.lock = {.entries = files + 2, .count = 1}}};
	const struct world world = {.pieces = pieces, .count = ARRAY_LEN(pieces)};

	(void)state;
	struct sbom_request q = request();
	q.world = &world;
	AUTO_JSON json_t *j = write_ok(&q);
	const json_t *all = json_object_get(j, "components");
	assert_int_equal(json_array_size(all), 9);
	for (size_t i = 6; i < 9; i++) {
		assert_string_equal(AT(json_array_get(all, i), "scope"), "excluded");
		assert_string_equal(AT(json_array_get(all, i), "hashes", "0", "content"), SHA);
	}

	assert_string_equal(AT(j, "components", "6", "purl"),
			    "pkg:deb/debian/g%2B%2B@4%3A14.2.0-1?arch=amd64&distro=debian-13");
	assert_string_equal(AT(j, "components", "7", "purl"), "pkg:pypi/nvidia-nvvm@13.0.88");
	assert_null(json_object_get(json_array_get(all, 8), "purl"));
}

static void test_no_copyright_file(void **state)
{
	(void)state;
	assert_int_equal(unlink(test_path("root/usr/share/doc/libgomp1")), 0);
	struct sbom_request q = request();
	AUTO_JSON json_t *j = write_ok(&q);
	assert_int_equal(licenses.count, 1);
	assert_string_equal(AT(j, "components", "3", "name"), "libgomp1");
}

/* A link out of the root is resolved inside it. */
static void test_link_out_of_the_root(void **state)
{
	(void)state;
	test_write(test_path("secret/copyright"), "secret");
	assert_int_equal(unlink(test_path("root/usr/share/doc/libgomp1")), 0);
	assert_int_equal(symlink(test_path("secret"), test_path("root/usr/share/doc/libgomp1")), 0);
	struct sbom_request q = request();
	AUTO_JSON json_t *j = write_ok(&q);
	assert_non_null(j);
	assert_int_equal(licenses.count, 1);
}

static void test_torch_that_it_is_built_against(void **state)
{
	(void)state;
	struct sbom_request q = request();
	plan.torch_version = "2.6.0+cpu.avx2";
	plan.torch = "sha256:" SHA;
	plan.platform = "aarch64-linux";
	AUTO_JSON json_t *j = write_ok(&q);
	assert_string_equal(AT(j, "components", "2", "purl"), "pkg:pypi/torch@2.6.0%2Bcpu.avx2");
	assert_string_equal(AT(j, "components", "2", "hashes", "0", "content"), SHA);
	assert_contains(AT(j, "components", "3", "purl"), "arch=arm64");
}

static void test_same_bytes_again(void **state)
{
	(void)state;
	struct sbom_request q = request();
	json_decref(write_ok(&q));
	char *AUTO_FREE first = test_read(test_path(SBOM));
	json_decref(write_ok(&q));
	char *AUTO_FREE second = test_read(test_path(SBOM));
	assert_string_equal(first, second);
}

static void test_what_cannot_be_listed(void **state)
{
	(void)state;
	struct sbom_request q = request();
	assert_int_equal(unlink(test_path("tree/torch/lib/libown.so")), 0);
	assert_err(sbom_write(&q, &arena, &licenses, &err), &err, ERR_SYSTEM, "libown.so");
	assert_int_equal(access(test_path(SBOM), F_OK), -1);
	assert_int_equal(licenses.count, 0);
	q.libraries_count = 0;
	plan.version = "\xff";
	assert_err(sbom_write(&q, &arena, &licenses, &err), &err, ERR_INTEGRITY, "not UTF-8");
	q.tree = arena_strdup(&arena, test_path("root"));
	assert_err(sbom_write(&q, &arena, &licenses, &err), &err, ERR_INTEGRITY, "no .dist-info");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_document),
		TEST(test_vendored_library),
		TEST(test_references),
		TEST(test_licences_are_copied_once),
		TEST(test_of_no_package),
		TEST(test_linked_library),
		TEST(test_version_of_a_linked_library),
		TEST(test_files_of_the_world),
		TEST(test_no_copyright_file),
		TEST(test_link_out_of_the_root),
		TEST(test_torch_that_it_is_built_against),
		TEST(test_same_bytes_again),
		TEST(test_what_cannot_be_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
