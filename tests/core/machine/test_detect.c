/* Machines as files in tests/data/machines, and the profile
 * that each of them should get (expected.txt there). */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/machine/detect.h"
#include "core/machine/official_fit.h"
#include "core/variant/variant.h"
#include "shipped.h"

#define DATA TEST_DATA_DIR "/machines"

static struct arena shared;
static const struct tables *tables;
static const struct hardware_facts *facts;

static int load(void **state)
{
	(void)state;
	struct err e = {0};
	tables = shipped_tables(&shared);
	assert_ok(hardware_facts_load(PROFILES_DIR, &shared, &facts, &e), &e);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	arena_release(&shared);
	return 0;
}

static struct hardware machine(const char *name, struct arena *a)
{
	struct hardware h;
	struct err e = {0};

	assert_ok(hardware_load(arena_printf(a, "%s/%s.yaml", DATA, name), a, &h, &e), &e);
	return h;
}

static struct detected choose(const struct hardware *h, const char *workload, const char *release,
			      struct arena *a)
{
	struct detected d;
	struct err e = {0};

	assert_ok(detect_choose(tables, facts, h, workload, release, a, &d, &e), &e);
	return d;
}

enum { NAME, GENERAL, INT8, BF16, RELEASE, CUDA, OFFICIAL, PHRASE, COLUMNS };

struct expected {
	const char *column[COLUMNS];
};

static void strip(char *s)
{
	for (size_t n = strlen(s); n && s[n - 1] == ' '; n--)
		s[n - 1] = '\0';
}

static size_t read_expected(struct arena *a, struct expected *rows, size_t max)
{
	struct strlist lines = {0};
	AUTO_FREE char *text = test_read(DATA "/expected.txt");
	size_t count = 0;

	assert_non_null(text);
	strlist_split(&lines, a, text, "\n");
	for (size_t i = 0; i < lines.count; i++) {
		struct strlist fields = {0};
		if (lines.items[i][0] == '#')
			continue;
		assert_true(count < max);
		strlist_split(&fields, a, lines.items[i], "|");
		assert_int_equal(fields.count, COLUMNS);
		for (size_t k = 0; k < COLUMNS; k++) {
			char *field = (char *)fields.items[k] + strspn(fields.items[k], " ");
			strip(field);
			rows[count].column[k] = field;
		}

		count++;
	}

	return count;
}

static void same(const struct expected *row, int column, const char *what, const char *got,
		 const char *none)
{
	const char *want = row->column[column];

	if (strcmp(got ? got : none, want) != 0)
		fail_msg("%s: %s is %s, should be %s", row->column[NAME], what, got ? got : none,
			 want);
}

static void as_expected(const struct expected *row)
{
	AUTO_ARENA struct arena a = {0};
	struct hardware h = machine(row->column[NAME], &a);
	struct detected d = choose(&h, NULL, NULL, &a);

	same(row, GENERAL, "the profile", d.profile, "none");
	same(row, RELEASE, "the release", d.release, "-");
	same(row, CUDA, "the toolkit", d.cuda, "-");
	const char *told = arena_printf(&a, "%s\n%s", strlist_join(&d.reasons, &a, "\n"),
					strlist_join(&d.warnings, &a, "\n"));
	if (!strstr(told, row->column[PHRASE]))
		fail_msg("%s: '%s' is not in: %s", row->column[NAME], row->column[PHRASE], told);
	struct official_choice official;
	struct err e = {0};
	const struct official_query q = {.machine = &h};
	assert_ok(official_for(tables, &q, &a, &official, &e), &e);
	same(row, OFFICIAL, "the official release", d.gpu ? official.release : NULL, "-");
	d = choose(&h, "training", NULL, &a);
	same(row, GENERAL, "the profile for training", d.profile, "none");
	d = choose(&h, "int8", NULL, &a);
	same(row, INT8, "the profile for int8", d.profile, "none");
	d = choose(&h, "bf16", NULL, &a);
	same(row, BF16, "the profile for bf16", d.profile, "none");
}

static void every_machine_gets_its_profile(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	static struct expected rows[200];
	size_t count = read_expected(&a, rows, ARRAY_LEN(rows));
	for (size_t i = 0; i < count; i++)
		as_expected(&rows[i]);
	assert_true(count >= 60);
}

static void every_machine_has_a_row_and_every_row_a_machine(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	static struct expected rows[200];
	struct strlist names = {0};
	struct err e = {0};
	size_t files = 0, count = read_expected(&a, rows, ARRAY_LEN(rows));
	assert_ok(fs_list(TRUSTED, DATA, &a, &names, &e), &e);
	for (size_t i = 0; i < names.count; i++) {
		bool found = false;
		if (!path_has_suffix(names.items[i], ".yaml"))
			continue;
		for (size_t k = 0; k < count; k++)
			found |= strcmp(arena_printf(&a, "%s.yaml", rows[k].column[NAME]),
					names.items[i]) == 0;
		if (!found)
			fail_msg("%s has no row in expected.txt", names.items[i]);
		files++;
	}

	assert_int_equal(files, count);
}

/* A recommended profile is a name that the grammar takes and gives back. */
static void every_profile_is_a_canonical_name(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	static struct expected rows[200];
	size_t count = read_expected(&a, rows, ARRAY_LEN(rows));
	for (size_t i = 0; i < count; i++)
		for (int k = GENERAL; k <= BF16; k++) {
			struct profile p;
			struct err e = {0};
			if (strcmp(rows[i].column[k], "none") == 0)
				continue;
			assert_ok(profile_load(tables, rows[i].column[k], &a, &p, &e), &e);
			assert_string_equal(p.name, rows[i].column[k]);
		}
}

/* No instruction set is called runnable on a machine that lacks one of its features. */
static void what_runs_has_every_feature(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	static struct expected rows[200];
	size_t count = read_expected(&a, rows, ARRAY_LEN(rows)), seen = 0;
	for (size_t i = 0; i < count; i++) {
		struct hardware h = machine(rows[i].column[NAME], &a);
		struct detected d = choose(&h, NULL, NULL, &a);
		const struct strlist *has = h.cpu.flags.count ? &h.cpu.flags : &h.cpu.probed;
		for (size_t k = 0; k < d.isa_count; k++)
			for (unsigned f = 0; !d.isas[k].missing && f < d.isas[k].row->cpuinfo_count;
			     f++, seen++)
				if (!strlist_contains(has, d.isas[k].row->cpuinfo[f]))
					fail_msg("%s: %s without %s", rows[i].column[NAME],
						 d.isas[k].row->name, d.isas[k].row->cpuinfo[f]);
	}

	assert_true(seen > 100);
}

static void others_that_run_are_named(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware h = machine("zen4-9354-l40s", &a);
	struct detected d = choose(&h, NULL, NULL, &a);
	assert_string_equal(kvlist_get(&d.also, "sm89-avx512vnni"), "for --workload int8");
	assert_string_equal(kvlist_get(&d.also, "sm89-avx2"), "runs too");
	assert_string_equal(kvlist_get(&d.also, "cpu-avx512"), "does not use the GPU");
	assert_string_equal(kvlist_get(&d.also, "sm80-avx512"), "code for 8.0 runs on 8.9");
	assert_null(kvlist_get(&d.also, "sm87-avx512")); /* Orin's code runs on Orin alone */
	assert_null(kvlist_get(&d.also, "sm90-avx512"));
	assert_string_equal(d.command,
			    "ptbuild --profile sm89-avx512 --release 2.13.0 --cuda 12.6");
	h = machine("jetson-orin", &a);
	d = choose(&h, NULL, NULL, &a);
	assert_null(kvlist_get(&d.also, "sm80-armv8_2"));
	h = machine("future-gpu", &a);
	d = choose(&h, NULL, NULL, &a);
	assert_null(kvlist_get(&d.also, "sm120-avx512")); /* runs on 12.1, and the GPU has 14.0 */
	h = machine("mac-m1", &a);
	d = choose(&h, NULL, NULL, &a);
	assert_string_equal(d.command, "ptbuild plan --profile darwin-mps");
}

static enum driver_fit toolkit_fit(const struct detected *d, const char *cuda)
{
	for (size_t i = 0; i < d->toolkit_count; i++)
		if (strcmp(d->toolkits[i].row->version, cuda) == 0)
			return d->toolkits[i].fit;
	fail_msg("no toolkit %s", cuda);
	return DRIVER_UNKNOWN;
}

/* Floors of the CUDA release notes, tables 2 and 3. */
static void the_driver_decides_which_toolkits_run(void **state)
{
	(void)state;
	static const struct {
		const char *driver, *cuda;
		enum driver_fit fit;
	} cases[] = {
		{"525.60.12", "12.8", DRIVER_TOO_OLD}, {"525.60.13", "12.8", DRIVER_COMPATIBLE},
		{"570.25", "12.8", DRIVER_COMPATIBLE}, {"570.26", "12.8", DRIVER_OWN},
		{"579.99", "13.0", DRIVER_TOO_OLD},    {"580.00", "13.0", DRIVER_COMPATIBLE},
		{"580.65.06", "13.0", DRIVER_OWN},     {"580.65.06", "13.1", DRIVER_COMPATIBLE},
		{"590.44.01", "13.1", DRIVER_OWN},     {"550.54.14", "12.4", DRIVER_OWN},
		{"580.65.06", "12.4", DRIVER_OWN},     {"550.54.13", "12.4", DRIVER_COMPATIBLE},
	};
	AUTO_ARENA struct arena a = {0};
	struct hardware h = machine("sapphire-rapids-h100", &a);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		h.driver = cases[i].driver;
		struct detected d = choose(&h, NULL, NULL, &a);
		assert_int_equal(toolkit_fit(&d, cases[i].cuda), cases[i].fit);
	}
}

static void test_a_driver_older_than_the_gpu_runs_nothing_on_it(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	static const char *const drivers[][2] = {{"550.54.15", ""}, {"", "12.4"}};
	struct official_choice official;
	struct err e = {0};
	for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
		struct hardware h = machine("zen5-9950x-rtx5090", &a);
		h.driver = drivers[i][0];
		h.driver_cuda = drivers[i][1];
		struct detected d = choose(&h, NULL, NULL, &a);
		assert_string_equal(d.profile, "cpu-avx512");
		assert_contains(strlist_join(&d.warnings, &a, "\n"), "570.26");
		const struct official_query q = {.machine = &h};
		assert_ok(official_for(tables, &q, &a, &official, &e), &e);
		assert_null(official.release);
	}
}

static void gpus_without_a_common_toolkit_are_split(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware h = machine("mixed-gtx1080-rtx5090", &a);
	h.driver = "590.44.01";
	/* has 12.6, which lacks sm120, and 13.x, which lack sm61 */
	struct detected d = choose(&h, NULL, "2.14.1", &a);
	assert_string_equal(d.profile, "sm120-avx512");
	assert_string_equal(d.cuda, "13.0");
	assert_contains(strlist_join(&d.warnings, &a, "\n"), "sm61 is left out");
}

static void what_the_system_lacks_is_told(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware h = machine("cascade-lake-t4", &a);
	h.glibc = "2.12";
	strlist_split(&h.pythons, &a, "3.8 3.13t", " ");
	struct detected d = choose(&h, NULL, NULL, &a);
	const char *warnings = strlist_join(&d.warnings, &a, "\n");
	assert_contains(warnings, "and this machine has 3.8 3.13t");
	assert_contains(warnings,
			"its glibc is 2.12, and the oldest world of release 2.13.0 has 2.");
	h.glibc = "2.41";
	strlist_ref(&h.pythons, &a, "3.13");
	d = choose(&h, NULL, NULL, &a);
	assert_int_equal(d.warnings.count, 0);
	h.driver = "450.80.02"; /* runs no toolkit of the tables */
	d = choose(&h, NULL, NULL, &a);
	assert_string_equal(d.command, "ptbuild --profile cpu-avx512");
	assert_contains(strlist_join(&d.warnings, &a, "\n"),
			"update it to 525.60.13 or newer, then use sm75-avx512");
}

static void a_release_may_be_asked_for(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware h = machine("cascade-lake-t4", &a);
	struct detected d = choose(&h, NULL, "2.8.0", &a);
	struct err e = {0};
	assert_string_equal(d.release, "2.8.0");
	assert_string_equal(d.command, "ptbuild --profile sm75-avx512 --release 2.8.0 --cuda 12.8");
	assert_err(detect_choose(tables, facts, &h, NULL, "2.8.1", &a, &d, &e), &e, ERR_CONFIG,
		   "2.8.1");
	/* One that is never chosen by itself says why. */
	h.gpu_count = 0;
	d = choose(&h, NULL, "2.15.0", &a);
	assert_contains(strlist_join(&d.warnings, &a, "\n"),
			"release 2.15.0: no digest of its source is proven");
}

static const char *filled(const struct detected *d, const char *name, struct arena *a)
{
	const char *got;
	struct err e = {0};

	assert_ok(detect_fill_native(d, name, a, &got, &e), &e);
	return got;
}

static void native_parts_are_made_exact(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware h = machine("mixed-a100-h100", &a);
	struct detected d = choose(&h, NULL, NULL, &a);
	assert_string_equal(filled(&d, "native", &a), "sm80+sm90-avx2");
	assert_string_equal(filled(&d, "native-avx512", &a), "sm80+sm90-avx512");
	assert_string_equal(filled(&d, "sm75-native", &a), "sm75-avx2");
	assert_string_equal(filled(&d, "cpu-native", &a), "cpu-avx2");
	assert_string_equal(filled(&d, "native-native", &a), "sm80+sm90-avx2");
	assert_string_equal(filled(&d, "sm90-avx512", &a), "sm90-avx512");
	assert_false(detect_is_native("sm90-avx512"));
	assert_false(detect_is_native("natives-avx2"));
	assert_false(detect_is_native("my-native-box.yaml"));
	assert_true(detect_is_native("native"));
	assert_true(detect_is_native("cpu-native"));
}

static void native_needs_a_machine_that_fits(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware h = machine("nehalem-x5570", &a);
	struct detected d = choose(&h, NULL, NULL, &a);
	const char *got;
	struct err e = {0};
	assert_err(detect_fill_native(&d, "native", &a, &got, &e), &e, ERR_POLICY,
		   "no profile fits this machine");
	h = machine("mac-m3", &a);
	d = choose(&h, NULL, NULL, &a);
	assert_string_equal(filled(&d, "native", &a), "darwin-mps");
	assert_err(detect_fill_native(&d, "cpu-native", &a, &got, &e), &e, ERR_POLICY, "Mac");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_machine_gets_its_profile),
		cmocka_unit_test(every_machine_has_a_row_and_every_row_a_machine),
		cmocka_unit_test(every_profile_is_a_canonical_name),
		cmocka_unit_test(what_runs_has_every_feature),
		cmocka_unit_test(others_that_run_are_named),
		cmocka_unit_test(the_driver_decides_which_toolkits_run),
		cmocka_unit_test(test_a_driver_older_than_the_gpu_runs_nothing_on_it),
		cmocka_unit_test(gpus_without_a_common_toolkit_are_split),
		cmocka_unit_test(what_the_system_lacks_is_told),
		cmocka_unit_test(a_release_may_be_asked_for),
		cmocka_unit_test(native_parts_are_made_exact),
		cmocka_unit_test(native_needs_a_machine_that_fits),
	};

	return cmocka_run_group_tests_name("core/detect", tests, load, unload);
}
