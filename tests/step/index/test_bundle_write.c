/* What lies beside the wheels of a bundle. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "core/zip/zip.h"
#include "step/index/index.h"

#define PURL "pkg:pypi/torch@2.6.0%2Bcpu.avx2"
/* A bill with a component of its own, the torch that it was made
 * against, what both have, and what only is called the same. */
#define BILL(wheel, own)                                                                           \
	"{\"components\":[{\"bom-ref\":\"" own "\",\"name\":\"" own "\"},{\"bom-ref\":\"" PURL     \
	"\",\"purl\":\"" PURL "\",\"name\":\"torch\"},{\"bom-ref\":\"gcc\",\"name\":\"gcc\"},{"    \
	"\"bom-ref\":\"x\",\"name\":\"" own "\"}],\"dependencies\":[{\"ref\":\"" wheel             \
	"\",\"dependsOn\":[\"" own "\",\"x\"]}]}"

static void make(struct bundle_wheel *w, const char *name, const char *version, const char *tag,
		 const char *bill, struct arena *a)
{
	struct zip_writer *z;
	struct err e = {0};
	uint8_t digest[32];
	const char *stem = arena_printf(a, "%s-%s", name, version);
	const char *path = arena_strdup(a, test_path("%s-cp313-cp313-%s_x86_64.whl", stem, tag));

	assert_ok(zip_create(&(struct zip_new){.path = path, .epoch = 0, .threads = 1, .level = 6},
			     &z, &e),
		  &e);
	assert_ok(zip_add_data(z, arena_printf(a, "%s.dist-info/METADATA", stem), "", 0, &e), &e);
	if (bill)
		assert_ok(zip_add_data(
				  z, arena_printf(a, "%s.dist-info/sboms/%s.cdx.json", stem, name),
				  bill, strlen(bill), &e),
			  &e);
	assert_ok(zip_finish(z, digest, &e), &e);
	*w = (struct bundle_wheel){path, name, version, "0123"};
}

static struct advisory_row advisories[] = {
	{.id = "CVE-1",
	 .package = "pytorch",
	 .versions = "<2.7.0",
	 .what = "reads too far",
	 .source = "GHSA-1"},
	{.id = "CVE-2", .package = "pytorch", .versions = "<2.6.0"},
	{.id = "CVE-3", .package = "torchvision", .versions = "<9"},
};
static const struct tables tables = {.advisories = advisories,
				     .advisories_count = ARRAY_LEN(advisories)};

static struct bundle_request site(const struct bundle_wheel *wheels, const struct strlist *install)
{
	static char dir[4096];

	snprintf(dir, sizeof(dir), "%s", test_path("%s", ""));
	return (struct bundle_request){.dir = dir,
				       .name = "My set",
				       .python = "3.13",
				       .machine = "x86_64",
				       .wheels = wheels,
				       .count = 2,
				       .install = install,
				       .tables = &tables};
}

static const json_t *component(const json_t *bill, const char *ref)
{
	size_t i;
	json_t *c;

	json_array_foreach(json_object_get(bill, "components"), i,
			   c) if (strcmp(json_text(c, "bom-ref"), ref) == 0) return c;
	return NULL;
}

static void bills_become_one(void **state)
{
	(void)state;
	test_dir();
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *bill = NULL;
	struct strlist install = {0};
	struct bundle_wheel w[2];
	struct err e = {0};
	make(&w[0], "torch", "2.6.0+cpu.avx2", "manylinux_2_28", BILL(PURL, "a"), &a);
	make(&w[1], "tiny", "1.0", "manylinux_2_28", BILL("pkg:pypi/tiny@1.0", "b"), &a);
	struct bundle_request q = site(w, &install);
	assert_ok(bundle_write(&q, &a, &e), &e);
	assert_ok(json_read(TRUSTED, test_path(BUNDLE_SBOM), &bill, &e), &e);
	/* Two wheels, a and b, gcc once, x of each. */
	assert_int_equal(json_array_size(json_object_get(bill, "components")), 7);
	assert_string_equal(json_text(component(bill, "x"), "name"), "a");
	assert_string_equal(json_text(component(bill, "tiny:x"), "name"), "b");
	assert_string_equal(json_text(component(bill, PURL), "version"), "2.6.0+cpu.avx2");
	const json_t *rows = json_object_get(bill, "dependencies");
	assert_int_equal(json_array_size(rows), 3);
	const json_t *on = json_object_get(json_array_get(rows, 1), "dependsOn");
	assert_string_equal(json_string_value(json_array_get(on, 1)), "tiny:x");
	on = json_object_get(json_array_get(rows, 2), "dependsOn");
	assert_string_equal(json_text(json_array_get(rows, 2), "ref"), "bundle:My set");
	assert_string_equal(json_string_value(json_array_get(on, 0)), PURL);
	assert_string_equal(json_string_value(json_array_get(on, 1)), "pkg:pypi/tiny@1.0");
	const json_t *weak = json_object_get(bill, "vulnerabilities"),
		     *one = json_array_get(weak, 0);
	assert_int_equal(json_array_size(weak), 1);
	assert_string_equal(json_text(one, "id"), "CVE-1");
	assert_string_equal(json_text(one, "description"), "reads too far");
	assert_string_equal(json_text(json_array_get(json_object_get(one, "affects"), 0), "ref"),
			    PURL);
	assert_file(test_path(BUNDLE_CONSTRAINTS),
		    "# of the bundle 'My set': pip install -c, uv pip install -c\n"
		    "torch==2.6.0+cpu.avx2 # sha256:0123\n"
		    "tiny==1.0 # sha256:0123\n");
}

static void the_stage_has_the_glibc_of_all_wheels(void **state)
{
	(void)state;
	static const struct {
		const char *tag, *image;
	} cases[] = {{"manylinux_2_36", "python:3.13-slim-bookworm"},
		     {"manylinux_2_39", "python:3.13-slim-trixie"}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_ARENA struct arena a = {0};
		struct strlist install = {0};
		struct bundle_wheel w[2];
		struct err e = {0};
		test_dir();
		make(&w[0], "torch", "2.6.0", "manylinux_2_28", NULL, &a);
		make(&w[1], "tiny", "1.0", cases[i].tag, NULL, &a);
		strlist_split(&install, &a, "python3|-m|pip|install|a b", "|");
		struct bundle_request q = site(w, &install);
		assert_ok(bundle_write(&q, &a, &e), &e);
		char *text = test_read(test_path(BUNDLE_DOCKERFILE));
		assert_contains(text, arena_printf(&a, "\nARG BASE=%s\nFROM ${BASE} AS my-set\n",
						   cases[i].image));
		assert_contains(text, "\nRUN --mount=type=bind,target=/bundle \\\n\tpython3 -m pip "
				      "install 'a b'\n");
		free(text);
		test_teardown(state);
	}
}

static void what_is_no_bill_is_refused(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist install = {0};
	struct bundle_wheel w[2];
	struct err e = {0};
	static const char *const texts[] = {"[]", "{\"a\":1,\"a\":2}", "no json", ""};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		test_dir();
		make(&w[0], "torch", "2.6.0", "manylinux_2_28", NULL, &a);
		make(&w[1], "tiny", "1.0", "manylinux_2_28", texts[i], &a);
		struct bundle_request q = site(w, &install);
		assert_err(bundle_write(&q, &a, &e), &e, ERR_INTEGRITY,
			   "'tiny-1.0.dist-info/sboms/tiny.cdx.json' in "
			   "'tiny-1.0-cp313-cp313-manylinux_2_28_x86_64.whl' "
			   "is not a bill of materials");
		test_teardown(state);
	}

	/* What others put into theirs is taken as far as it has a form. */
	test_dir();
	make(&w[0], "torch", "2.6.0", "manylinux_2_28",
	     "{\"components\":[1,{\"name\":\"n\"}],\"dependencies\":[2,{}]}", &a);
	make(&w[1], "tiny", "1.0", "manylinux_2_28", "{\"components\":{},\"dependencies\":\"x\"}",
	     &a);
	struct bundle_request q = site(w, &install);
	assert_ok(bundle_write(&q, &a, &e), &e);
}

static void require(struct bundle_wheel *w, const char *line, struct arena *a)
{
	struct zip_writer *z;
	struct err e = {0};
	uint8_t digest[32];
	const char *info = arena_printf(a, "%s-%s.dist-info/METADATA", w->name, w->version);
	const char *text = arena_printf(a, "Name: %s\nVersion: %s\nRequires-Dist: %s\n", w->name,
					w->version, line);

	assert_ok(
		zip_create(&(struct zip_new){.path = w->path, .epoch = 0, .threads = 1, .level = 6},
			   &z, &e),
		&e);
	assert_ok(zip_add_data(z, info, text, strlen(text), &e), &e);
	assert_ok(zip_finish(z, digest, &e), &e);
}

static void test_wheels_that_refuse_each_other(void **state)
{
	(void)state;
	static const struct {
		const char *torch, *version, *line;
		bool fits;
	} rows[] = {
		{"2.6.0", "0.21.0", "torch==2.4", false},
		{"2.6.0+cpu", "0.21.0", "torch==2.6.0", true},
		{"2.6.0", "0.21.0", "torch==2.4; python_version < '3.10'", true},
		{"2.6.0+cu124", "0.21.0+cpu", "torch==2.6.0", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_ARENA struct arena a = {0};
		struct strlist install = {0};
		struct bundle_wheel w[2];
		struct err e = {0};
		test_dir();
		strlist_add(&install, &a, "pip");
		make(&w[0], "torch", rows[i].torch, "linux", NULL, &a);
		make(&w[1], "torchvision", rows[i].version, "linux", NULL, &a);
		unlink(w[1].path);
		require(&w[1], rows[i].line, &a);
		const struct bundle_request q = site(w, &install);
		if (rows[i].fits)
			assert_ok(bundle_write(&q, &a, &e), &e);
		else
			assert_err(bundle_write(&q, &a, &e), &e, ERR_POLICY, "torchvision");
	}
}

static size_t compared;

/* Linked in the place of strcmp (--wrap): how many strings are looked at is counted, not timed. */
int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b)
{
	compared++;
	return __real_strcmp(a, b);
}

static size_t compared_of(unsigned components)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf bill = {0};
	struct strlist install = {0};
	struct bundle_wheel w[2];
	struct err e = {0};

	test_dir();
	buf_addstr(&bill, "{\"components\":[");
	for (unsigned i = 0; i < components; i++)
		buf_printf(&bill, "%s{\"bom-ref\":\"c%u\",\"name\":\"c\"}", i ? "," : "", i);
	buf_addstr(&bill, "],\"dependencies\":[");
	for (unsigned i = 0; i < components; i++)
		buf_printf(&bill, "%s{\"ref\":\"c%u\",\"dependsOn\":[\"c%u\"]}", i ? "," : "", i,
			   components - i);
	buf_addstr(&bill, "]}");
	make(&w[0], "torch", "2.6.0", "manylinux_2_28", buf_cstr(&bill), &a);
	make(&w[1], "tiny", "1.0", "manylinux_2_28", NULL, &a);
	struct bundle_request q = site(w, &install);
	compared = 0;
	assert_ok(bundle_write(&q, &a, &e), &e);
	return compared;
}

static void test_work_grows_as_the_bill_does(void **state)
{
	const size_t few = compared_of(500);

	test_teardown(state);
	const size_t many = compared_of(4000);
	assert_true(many < 16 * few + 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(bills_become_one, test_teardown),
		cmocka_unit_test_teardown(test_work_grows_as_the_bill_does, test_teardown),
		cmocka_unit_test(the_stage_has_the_glibc_of_all_wheels),
		cmocka_unit_test_teardown(what_is_no_bill_is_refused, test_teardown),
		cmocka_unit_test_teardown(test_wheels_that_refuse_each_other, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
