/* The whole plan, as `ptbuild plan --json` prints it, of one variant of
 * each package of each release: tests/data/golden. See the README there. */
#include "tables_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys/fs.h"
#include "core/plan/plan.h"

#define DATA TEST_DATA_DIR "/golden"
#define PYTHON "3.13"

/* One profile for each package, so that together they
 * show a single target, a list with PTX, and no GPU. */
static const char *profile_of(const char *package)
{
	if (strcmp(package, "pytorch") == 0)
		return "sm90-avx512";
	return strcmp(package, "torchvision") == 0 ? "sm80+sm90+ptx-avx2" : "cpu-armv8_2";
}

static char *plan_as_text(const struct release_row *r, const char *package, struct arena *a)
{
	struct variant v = {.package = package, .python = PYTHON};
	struct plan_request q = {.variant = &v, .release = r->name};
	struct err e = {0};
	const struct plan *p = NULL;

	assert_ok(profile_load(tables, profile_of(package), a, &v.profile, &e), &e);
	assert_ok(plan_resolve(tables, &q, a, &p, &e), &e);
	json_t *doc = plan_json(p);
	/* They change with every input, and the versions of libraries
	 * are among those: tests of their own are for them. */
	json_object_set_new(doc, "compile_key", json_string("..."));
	json_object_set_new(doc, "output_key", json_string("..."));
	char *text = json_dumps(doc, JSON_INDENT(1));
	json_decref(doc);
	char *whole = arena_printf(a, "%s\n", text);
	free(text);
	return whole;
}

static void every_release_and_package_is_as_in_its_file(void **state)
{
	(void)state;
	size_t wrong = 0, files = 0;
	for (unsigned i = 0; i < tables->releases_count; i++)
		for (size_t k = 0; k < TABLES_PACKAGES; k++) {
			AUTO_ARENA struct arena a = {0};
			const struct release_row *r = &tables->releases[i];
			if (!tables_package(r, tables_packages[k]))
				continue;
			const char *path =
				arena_printf(&a, DATA "/%s-%s.json", r->name, tables_packages[k]);
			const char *now = plan_as_text(r, tables_packages[k], &a);
			files++;
			if (getenv("PTBUILD_WRITE_EXPECT")) {
				test_write(path, now);
				continue;
			}

			AUTO_FREE char *golden = test_read(path);
			if (golden && strcmp(golden, now) == 0)
				continue;
			print_error("%s is not what is planned now\n", path);
			wrong++;
		}
	assert_true(files >= 27);
	if (wrong)
		fail_msg("%zu of %zu files differ: see " DATA "/README.md", wrong, files);
}

static void no_file_is_left_over(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist files = {0};
	struct err e = {0};
	assert_ok(fs_list(TRUSTED, DATA, &a, &files, &e), &e);
	for (size_t i = 0; i < files.count; i++) {
		bool known = strcmp(files.items[i], "README.md") == 0;
		for (unsigned r = 0; r < tables->releases_count; r++)
			for (size_t k = 0; k < TABLES_PACKAGES; k++)
				known = known || strcmp(arena_printf(&a, "%s-%s.json",
								     tables->releases[r].name,
								     tables_packages[k]),
							files.items[i]) == 0;
		if (!known)
			fail_msg(DATA "/%s belongs to no release", files.items[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_release_and_package_is_as_in_its_file),
		cmocka_unit_test(no_file_is_left_over),
	};

	return cmocka_run_group_tests_name("plan_golden", tests, load, unload);
}
