/* The file of a set: its rows with their places, and what is wrong with it. */
#include "support.h"

#include <string.h>
#include <unistd.h>

#include "core/variant/variant.h"

static struct bundle_file load(const char *text, struct arena *a)
{
	struct bundle_file f = {0};
	struct err e = {0};

	test_write(test_path("all.yaml"), text);
	assert_ok(bundle_file_load(arena_strdup(a, test_path("all.yaml")), a, &f, &e), &e);
	return f;
}

static void refused(const char *text, const char *error)
{
	AUTO_ARENA struct arena a = {0};
	struct bundle_file f;
	struct err e = {0};

	test_write(test_path("all.yaml"), text);
	assert_err(bundle_file_load(test_path("all.yaml"), &a, &f, &e), &e, ERR_CONFIG, error);
}

static void rows_know_their_places(void **state)
{
	(void)state;
	test_dir();
	AUTO_ARENA struct arena a = {0};
	test_write(test_path("tiny/setup.py"), "");
	const struct bundle_file f =
		load("# a set\nprofile: sm90-avx2\ncuda: \"13.0\"\ntorch: slim==2.11.0\n"
		     "companions: [torchvision, torchaudio==2.11.0]\nextensions:\n  - tiny\n"
		     "  - torch-scatter==2.1.2\n",
		     &a);
	const char *const want[] = {"2:1 (profile: sm90-avx2)",
				    "3:1 (cuda: 13.0)",
				    "4:1 (torch: slim==2.11.0)",
				    "5:14 (companions: torchvision)",
				    "5:27 (companions: torchaudio==2.11.0)",
				    "7:5 (extensions: tiny)",
				    "8:5 (extensions: torch-scatter==2.1.2)"};
	assert_int_equal(f.count, ARRAY_LEN(want));
	for (size_t i = 0; i < f.count; i++)
		assert_string_equal(bundle_row_text(&f.rows[i], &a),
				    arena_printf(&a, "%s:%s", test_path("all.yaml"), want[i]));
	assert_string_equal(f.name, "all");
	assert_int_equal(f.torch, BUNDLE_SLIM);
	assert_string_equal(f.version, "2.11.0");
	/* What lies beside the file is a path, all else is a name. */
	assert_string_equal(f.rows[5].value, test_path("tiny"));
	assert_string_equal(f.rows[6].value, "torch-scatter==2.1.2");
	assert_int_equal(f.rows[6].kind, BUNDLE_EXTENSION);
	/* The file may be named from where one is. */
	struct bundle_file near = {0};
	struct err e = {0};
	assert_int_equal(chdir(test_path(".")), 0);
	assert_ok(bundle_file_load("all.yaml", &a, &near, &e), &e);
	assert_string_equal(near.rows[5].value, test_path("tiny"));
	test_write(test_path("near.yaml"),
		   "profile: cpu-avx2\ntorch: torch-2.6.0-cp313-cp313-linux_x86_64.whl\n"
		   "extensions: [tiny]\n");
	assert_ok(bundle_file_load("./near.yaml", &a, &near, &e), &e);
	assert_string_equal(near.rows[1].value,
			    test_path("torch-2.6.0-cp313-cp313-linux_x86_64.whl"));
	assert_int_equal(chdir("/"), 0);
}

static void a_torch_is_one_of_five_kinds(void **state)
{
	(void)state;
	test_dir();
	static const struct {
		const char *text;
		enum set_torch kind;
		const char *version;
	} cases[] = {{"official", BUNDLE_OFFICIAL, NULL},
		     {"official==2.11.0", BUNDLE_OFFICIAL, "2.11.0"},
		     {"slim", BUNDLE_SLIM, NULL},
		     {"root", BUNDLE_ROOT, NULL},
		     {"torch-2.6.0.whl", BUNDLE_WHEEL, NULL},
		     {"2.6.0-debian", BUNDLE_RELEASE, NULL},
		     {"officials", BUNDLE_RELEASE, NULL}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_ARENA struct arena a = {0};
		const struct bundle_file f = load(
			arena_printf(&a, "profile: p/mine.yaml\ntorch: %s\nextensions: [x==1]\n",
				     cases[i].text),
			&a);
		assert_int_equal(f.torch, cases[i].kind);
		assert_string_equal(f.version ? f.version : "",
				    cases[i].version ? cases[i].version : "");
		assert_string_equal(f.rows[0].value, test_path("p/mine.yaml"));
		assert_string_equal(f.rows[1].value, cases[i].kind == BUNDLE_WHEEL
							     ? test_path("torch-2.6.0.whl")
							     : cases[i].text);
	}
}

static void what_is_no_set_is_told(void **state)
{
	(void)state;
	test_dir();
	refused("profile: cpu-avx2\ntorch: root\n", "a torch alone does not make a set");
	refused("profile: cpu-avx2\nextensions: [x==1]\n", "all.yaml:1: missing key 'torch'");
	refused("torch: root\nextensions: [x==1]\n", "all.yaml:1: missing key 'profile'");
	refused("profile: cpu-avx2\ntorch: root\nextension: [x==1]\n",
		"all.yaml:3: unknown key 'extension'");
	refused("profile: cpu-avx2\ntorch: root\nextensions: x==1\n", "all.yaml:3: wrong type");
	refused("profile: cpu-avx2\ntorch: slim==new\nextensions: [x==1]\n",
		"all.yaml:2: not a version: 'new'");
	refused("profile: cpu-avx2\ntorch: root\ncompanions: [torchtext]\n",
		"all.yaml:3:14: torch has no companion 'torchtext'");
	refused("profile: cpu-avx2\ntorch: root\ncompanions:\n  - pytorch\n",
		"all.yaml:4:5: torch has no companion 'pytorch'");
	refused("profile: cpu-avx2\ntorch: root\ncompanions: ['torchvision,torchaudio']\n",
		"torch has no companion 'torchvision,torchaudio'");
	refused("profile: cpu-avx2\ntorch: root\ncompanions: [torchvision==]\n",
		"all.yaml:3:14: not a version: ''");
	refused("profile: cpu-avx2\ntorch: root\nextensions: ['']\n",
		"all.yaml:3: 'extensions' is empty");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(rows_know_their_places, test_teardown),
		cmocka_unit_test_teardown(a_torch_is_one_of_five_kinds, test_teardown),
		cmocka_unit_test_teardown(what_is_no_set_is_told, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
