/* Which root a command stands on: a world that is not made is told, not made. */
#include "support.h"

#include <jansson.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "capture.h"
#include "core/tables/tables.h"

static const json_t *world_of(const json_t *plan)
{
	return json_object_get(plan, "world");
}

static const char *name_of(const json_t *plan)
{
	const char *s = json_string_value(json_object_get(world_of(plan), "name"));
	return s ? s : "";
}

static void a_plan_names_the_world(void **state)
{
	(void)state;
	AUTO_JSON json_t *j = json_of("plan --profile cpu-avx2 --release 2.6.0-debian --json");
	assert_string_equal(name_of(j), "debian13");
	assert_false(json_is_true(json_object_get(world_of(j), "made")));
	assert_true(json_integer_value(json_object_get(world_of(j), "download_bytes")) > 300000000);
	const json_t *runs_on = json_object_get(j, "runs_on");
	assert_string_equal(json_string_value(json_object_get(runs_on, "glibc")), "2.41");
	assert_true(json_is_true(json_object_get(runs_on, "glibc_at_most")));
	/* it is this test's directory still */
	assert_string_equal(test_path("cache"), getenv("XDG_CACHE_HOME"));
	assert_false(fs_exists(TRUSTED, test_path("cache/ptbuild/worlds")));
}

static void the_toolkit_and_the_python_are_parts(void **state)
{
	(void)state;
	AUTO_JSON json_t *gpu = json_of("plan --profile sm90-avx512 --release 2.13.0 --json");
	assert_string_equal(name_of(gpu), "debian13_lean+cuda13_0");
	assert_string_equal(json_string_value(json_object_get(gpu, "python")), "3.13");
	AUTO_JSON json_t *old = json_of(
		"plan --profile sm90-avx512 --release 2.7.1 --python 3.12 --cuda 12.8 --json");
	assert_string_equal(name_of(old), "debian12+python3_12+cuda12_8");
	AUTO_JSON json_t *all =
		json_of("plan --profile cpu-avx2 --package all --release 2.13.0 --json");
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(name_of(json_array_get(all, i)), "debian13_lean");
	/* sm103 needs a newer toolkit than the release's first */
	AUTO_JSON json_t *newer = json_of("plan --profile sm103-avx512 --release 2.9.1 --json");
	assert_string_equal(json_string_value(json_object_get(newer, "cuda")), "12.9");
	assert_string_equal(name_of(newer), "debian12+python3_13+cuda12_9");
}

/* Two that leave the toolkit open, of which the
 * second needs a newer one than the release's first. */
static void an_open_toolkit_is_each_variants_own(void **state)
{
	(void)state;
	AUTO_JSON json_t *both =
		json_of("plan python313Packages.pytorch-sm90-avx2 "
			"python313Packages.pytorch-sm120-avx2 --release 2.7.1 --json");
	assert_string_equal(name_of(json_array_get(both, 0)), "debian12+python3_13+cuda12_6");
	assert_string_equal(name_of(json_array_get(both, 1)), "debian12+python3_13+cuda12_8");
}

/* What a build's keys count and the plan's do not. */
static const char *lack_of(const json_t *plan)
{
	static char text[64];
	const json_t *list = json_object_get(plan, "keys_lack"), *word;
	size_t i;

	text[0] = '\0';
	assert_true(json_is_array(list));
	json_array_foreach(list, i, word) snprintf(text + strlen(text), sizeof(text) - strlen(text),
						   "%s%s", i ? " " : "", json_string_value(word));
	return text;
}

static void other_roots_are_no_worlds(void **state)
{
	(void)state;
	AUTO_JSON json_t *here = json_of("plan --profile cpu-avx2 --release 2.6.0 --root / --json");
	assert_true(json_is_null(world_of(here)));
	AUTO_JSON json_t *bare =
		json_of("plan --profile cpu-avx2 --release 2.6.0 --sandbox none --json");
	assert_true(json_is_null(world_of(bare)));
	AUTO_JSON json_t *named =
		json_of("plan --profile cpu-avx2 --release 2.9.1 --root world:debian12 --json");
	assert_string_equal(name_of(named), "debian12");
	assert_string_equal(lack_of(here), "");
	assert_string_equal(lack_of(named), "root"); /* it is not made */
	AUTO_JSON json_t *vision =
		json_of("plan --profile cpu-avx2 --release 2.6.0 --package torchvision --json");
	assert_string_equal(lack_of(vision), "root torch");
	assert_string_equal(json_string_value(json_object_get(named, "python")), "3.11");
	AUTO_JSON json_t *mac = json_of("plan --profile darwin-mps --json");
	assert_true(json_is_null(world_of(mac)));
}

static void refuse(const char *words, enum err_kind kind, const char *text)
{
	struct err e = {0};
	char *out = NULL;

	assert_int_equal(capture_run(words, &out, &e), -1);
	assert_int_equal(e.kind, kind);
	assert_contains(e.msg, text);
	free(out);
}

static void what_cannot_be_is_refused_before_anything_is_fetched(void **state)
{
	(void)state;
	refuse("plan --profile cpu-avx2 --root world:nowhere", ERR_CONFIG,
	       "unknown part of a world: 'nowhere'");
	refuse("plan --profile cpu-avx2 --root world:debian12+cuda12_4", ERR_CONFIG,
	       "of another Debian than the base");
	refuse("plan --profile cpu-avx2 --root world:cuda13_0", ERR_CONFIG,
	       "'cuda13_0' is not a base");
	refuse("build pytorch-python313-cpu-avx2 pytorch-python312-cpu-avx2 --release 2.9.1 "
	       "--offline",
	       ERR_NETWORK, "world 'debian13_lean'");
	/* one of two that cannot be is told before the other is fetched */
	AUTO_ARENA struct arena a = {0};
	char lean[] = "/tmp/ptbuild-lean-XXXXXX"; /* each run empties the test's own directory */
	assert_non_null(mkdtemp(lean));
	assert_int_equal(system(arena_printf(&a, "cp -r '%s/.' %s && rm %s/worlds/cuda12_6.*",
					     PROFILES_DIR, lean, lean)),
			 0);
	refuse(arena_printf(&a,
			    "fetch pytorch-python313-cpu-avx2 pytorch-python313-cuda12_6-sm90-avx2 "
			    "--release 2.13.0 "
			    "--offline --profiles %s",
			    lean),
	       ERR_POLICY, "has CUDA 12.6");
	refuse("build --profile cpu-avx2 --release 2.6.0-debian --offline", ERR_NETWORK,
	       "world 'debian13'");
	refuse("build --profile sm90-avx512 --release 2.9.1 --cuda 12.8 --offline", ERR_NETWORK,
	       "world 'debian12+python3_13+cuda12_8'");
	char *out = NULL;
	struct err e = {0};
	assert_int_equal(capture_run(arena_printf(&a,
						  "plan --profile sm90-avx512 --release 2.13.0 "
						  "--cuda 12.6 --profiles %s",
						  lean),
				     &out, &e),
			 0);
	assert_contains(out, "  world         none: no world of release 2.13.0 has CUDA 12.6\n");
	free(out);
	assert_int_equal(system(arena_printf(&a, "rm -r %s", lean)), 0);
}

/* Where the bases lack it; torchvision has no BLAS
 * of its own, and other processors have another one. */
static void the_blas_is_a_part(void **state)
{
	(void)state;
	AUTO_JSON json_t *all =
		json_of("plan --profile cpu-avx2 --package all --release 2.13.0 --blas mkl --json");
	assert_string_equal(name_of(json_array_get(all, 0)), "debian13_lean+mkl2026_2");
	assert_string_equal(name_of(json_array_get(all, 1)), "debian13_lean");
	AUTO_JSON json_t *gpu = json_of("plan --profile sm90-avx2 --release 2.7.1 --python 3.12 "
					"--cuda 12.8 --blas mkl --json");
	assert_string_equal(name_of(gpu), "debian12+python3_12+cuda12_8+mkl2026_2");
	AUTO_JSON json_t *own = json_of("plan --profile " TEST_DATA_DIR
					"/plan/own.yaml --release 2.9.1 --cuda 12.8 --json");
	assert_string_equal(name_of(own), "debian12+python3_13+cuda12_8+mkl2026_2");
	refuse("build --profile cpu-avx2 --release 2.6.0-debian --blas mkl --root world:debian13 "
	       "--offline",
	       ERR_POLICY, "the world 'debian13' has no part 'mkl2026_2'");
	refuse("plan --profile cpu-armv9 --release 2.6.0-debian --blas mkl", ERR_POLICY,
	       "blas 'mkl' does not exist on aarch64-linux");
}

/* By the tables of its parts: nothing is made or fetched for it. */
static void a_named_world_must_have_what_is_asked(void **state)
{
	static const char *const commands[] = {"build", "fetch", "doctor"};
	static const char says[] =
		"the world 'debian13' has no CUDA 13.0; 'debian13_lean+cuda13_0' has it";
	char words[160];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		snprintf(words, sizeof(words),
			 "%s --profile sm90-avx2 --release 2.13.0 --root world:debian13 --offline",
			 commands[i]);
		refuse(words, ERR_POLICY, says);
	}

	refuse("build --profile cpu-avx2 --release 2.9.1 --python 3.12 --root world:debian12 "
	       "--offline",
	       ERR_POLICY,
	       "the world 'debian12' has Python 3.11, not 3.12; 'debian13_lean+python3_12' has it");
	refuse("build --profile sm90-avx2 --release 2.13.0 --root world:debian13_lean+cuda13_0 "
	       "--offline",
	       ERR_NETWORK, "world 'debian13_lean+cuda13_0'");
	AUTO_FREE char *text =
		text_of("plan --profile sm90-avx2 --release 2.13.0 --root world:debian13");
	assert_contains(text, "  world         none: the world 'debian13' has no CUDA 13.0;");
	/* a name alone: no default asks the root for its Python */
	AUTO_JSON json_t *exact = json_of(
		"plan pytorch-python313-cpu-avx2 --release 2.13.0 --root world:debian13 --json");
	assert_string_equal(name_of(exact), "debian13");
	assert_false(json_is_true(json_object_get(world_of(exact), "made")));
}

static void the_python_is_the_named_worlds(void **state)
{
	(void)state;
	AUTO_JSON json_t *old = json_of("plan --profile cpu-avx2 --root world:debian11 --json");
	assert_string_equal(json_string_value(json_object_get(old, "variant")),
			    "pytorch-python39-cpu-avx2");
	/* the newest that takes both its Python and its CMake 3.18 */
	assert_string_equal(json_string_value(json_object_get(old, "release")), "2.7.1");
	assert_string_equal(name_of(old), "debian11");
	AUTO_JSON json_t *part =
		json_of("plan --profile cpu-avx2 --root world:debian12+python3_12 --json");
	assert_string_equal(json_string_value(json_object_get(part, "python")), "3.12");
	refuse("plan --profile cpu-avx2 --release 2.13.0 --root world:debian11", ERR_POLICY,
	       "does not build for Python 3.9");
}

static const char *other_platform(const char **ret_profile)
{
	struct utsname u;

	assert_int_equal(uname(&u), 0);
	const bool arm = strcmp(u.machine, "aarch64") == 0;
	*ret_profile = arm ? "cpu-avx2" : "cpu-armv8_2";
	return arm ? "x86_64-linux" : "aarch64-linux";
}

/* What is asked for by its GPU or instruction set alone has a world. */
static void every_default_has_a_world(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = NULL;
	struct err e = {0};
	struct strlist profiles = {0};

	(void)state;
	assert_ok(tables_load(PROFILES_DIR, &a, &t, &e), &e);
	for (unsigned i = 0; i < t->isas_count; i++)
		strlist_addf(&profiles, &a, "cpu-%s", t->isas[i].name);
	for (unsigned i = 0; i < t->gpus_count; i++) {
		const struct gpu_row *g = &t->gpus[i];
		bool x86 = strings_allow(g->platforms, g->platforms_count, "x86_64-linux");
		if (*g->sbsa && *g->cuda_max && version_cmp(g->cuda_max, g->sbsa) < 0)
			continue; /* no toolkit for Arm servers makes its code */
		strlist_addf(&profiles, &a, "sm%s-%s", g->sm, x86 ? "avx2" : "armv8_2");
	}

	for (size_t i = 0; i < profiles.count; i++) {
		AUTO_JSON json_t *plan =
			json_of(arena_printf(&a, "plan --profile %s --json", profiles.items[i]));
		if (!*name_of(plan))
			fail_msg("%s has no world", profiles.items[i]);
	}
}

/* World and Python are the tables' for it; this machine
 * has no say, and doctor looks at it only if it can build. */
static void a_plan_for_another_platform(void **state)
{
	const char *profile, *platform = other_platform(&profile), *python;
	char words[160];
	struct err e = {0};

	(void)state;
	snprintf(words, sizeof(words), "plan --profile %s --release 2.13.0 --json", profile);
	AUTO_JSON json_t *j = json_of(words);
	python = json_string_value(json_object_get(j, "python"));
	assert_string_equal(python, "3.14"); /* the newest in a world */
	assert_string_equal(name_of(j), "debian13_lean+python3_14");
	assert_string_equal(json_string_value(json_object_get(world_of(j), "platform")), platform);
	snprintf(words, sizeof(words),
		 "plan --profile %s --release 2.13.0 --root world:debian12 --json", profile);
	AUTO_JSON json_t *named = json_of(words);
	assert_string_equal(json_string_value(json_object_get(world_of(named), "platform")),
			    platform);
	AUTO_FREE char *text = NULL;
	assert_int_equal(
		capture_run("doctor --profile darwin-mps --release 2.13.0 --json", &text, &e), -1);
	assert_contains(e.msg, "aarch64-darwin");
	assert_not_contains(e.msg, "reasons");
	AUTO_JSON json_t *checks = json_loads(text, 0, NULL);
	const json_t *lines = json_object_get(checks, "checks");
	const json_t *last = json_array_get(lines, json_array_size(lines) - 1);
	assert_string_equal(json_string_value(json_object_get(last, "name")), "platform");
}

static void take_says_which_root_it_means(void **state)
{
	(void)state;
	AUTO_FREE char *text = text_of("help capture");
	assert_contains(text, "Without --root the root is this machine's own system");
}

static json_int_t number_of(const json_t *plan, const char *key)
{
	return json_integer_value(json_object_get(json_object_get(plan, "cost"), key));
}

static const char *cost_word(const json_t *plan, const char *key)
{
	const char *s = json_string_value(json_object_get(json_object_get(plan, "cost"), key));
	return s ? s : "";
}

static double time_of(const json_t *plan)
{
	return json_number_value(
		json_object_get(json_object_get(plan, "cost"), "processor_seconds"));
}

/* A machine of one platform emulates the other, or has no estimate of it. */
static void test_plan_time_for_another_platform_is_of_emulation(void **state)
{
	const char *profile;
	const bool x86 = strcmp(other_platform(&profile), "aarch64-linux") == 0;
	char words[160];

	(void)state;
	snprintf(words, sizeof(words),
		 "plan --package torchvision --profile %s --release 2.6.0-debian --json",
		 x86 ? "cpu-avx2" : "cpu-armv8_2");
	AUTO_JSON json_t *own = json_of(words);
	assert_true(json_is_null(json_object_get(json_object_get(own, "cost"), "emulated")));
	if (!x86) /* no cross part is for it */
		return;
	AUTO_JSON json_t *arm =
		json_of("plan --package torchvision --profile cpu-armv8_2 --release "
			"2.6.0-debian --json");
	AUTO_JSON json_t *old =
		json_of("plan --package torchvision --profile cpu-armv8_2 --release "
			"2.7.1 --root world:debian12 --json");
	AUTO_JSON json_t *old_own =
		json_of("plan --package torchvision --profile cpu-avx2 --release "
			"2.7.1 --root world:debian12 --json");
	const json_t *slower = json_object_get(json_object_get(arm, "cost"), "emulated");
	assert_int_equal(json_integer_value(json_object_get(slower, "percent")), 120);
	assert_true(time_of(arm) > 1.19 * time_of(own) && time_of(arm) < 1.21 * time_of(own));
	/* without compilers of this machine */
	assert_true(time_of(old) > 12 * time_of(old_own));
}

static void a_plan_says_what_it_takes(void **state)
{
	(void)state;
	AUTO_JSON json_t *cpu = json_of(
		"plan --profile cpu-avx2 --release 2.6.0-debian --jobs 1 --package all --json");
	const json_t *torch = json_array_get(cpu, 0), *vision = json_array_get(cpu, 1),
		     *audio = json_array_get(cpu, 2);
	const json_int_t world =
		json_integer_value(json_object_get(world_of(torch), "download_bytes"));
	assert_int_equal(number_of(torch, "download_bytes"), world + 27212640 + 216036 + 186492);
	assert_int_equal(number_of(vision, "download_bytes"), world + 13149842);
	assert_int_equal(number_of(audio, "download_bytes"), world + 4503013);
	assert_int_equal(number_of(torch, "downloads_of_unknown_size"), 0);
	assert_int_equal(number_of(torch, "jobs"), 1);
	assert_string_equal(cost_word(torch, "by"), "2.6.0-debian");
	assert_string_equal(cost_word(torch, "gpu_code"), "");
	const double units = json_number_value(
		json_object_get(json_object_get(torch, "cost"), "processor_seconds"));
	const double seconds =
		json_number_value(json_object_get(json_object_get(torch, "cost"), "seconds"));
	assert_true(units > 8000 && units < 20000 && seconds > units && seconds < units + 60);
	AUTO_JSON json_t *gpu = json_of("plan --profile sm90-avx512 --release 2.6.0-debian --json");
	assert_string_equal(cost_word(gpu, "gpu_code"), "guessed");
	assert_true(json_number_value(json_object_get(json_object_get(gpu, "cost"),
						      "processor_seconds")) > units + 335 * 59);
	AUTO_JSON json_t *other =
		json_of("plan --profile cpu-avx2 --release 2.10.0 --root / --json");
	assert_int_equal(number_of(other, "download_bytes"), 372567293);
	assert_string_equal(cost_word(other, "by"), "2.6.0-debian");
}

static void the_official_torch_is_downloaded_too(void **state)
{
	(void)state;
	AUTO_FREE char *text = text_of("plan --extension torch-scatter==2.1.2 --profile sm90-avx2 "
				       "--torch official==2.11.0");
	assert_contains(text, " MB for the world, 530.7 MB for the torch");
	assert_contains(text, "unknown: no build of torch_scatter was measured");
	AUTO_JSON json_t *plan = json_of("plan --extension torch-scatter==2.1.2 --profile "
					 "sm90-avx2 --torch official==2.11.0 --json");
	assert_int_equal(number_of(plan, "download_bytes"),
			 json_integer_value(json_object_get(world_of(plan), "download_bytes")) +
				 530711509);
}

static size_t count_lines(const char *text)
{
	size_t lines = 0;

	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n', lines++)
		assert_true(strcspn(p, "\n") <= 80);
	return lines;
}

/* But for what depends on this machine, a line or two. */
static void the_headline_plan_is_a_screen(void **state)
{
	(void)state;
	AUTO_FREE char *text = text_of("plan --profile sm90-avx512 --release 2.13.0 --jobs 2");
	char *here = strstr(text, "\n  this machine"), *next = strstr(here, "\n  cuda  ");
	assert_non_null(next);
	size_t of_here = 0;
	for (const char *p = here + 1; p <= next; p++)
		of_here += *p == '\n';
	assert_in_range(count_lines(text), 20, 37 + of_here);
	assert_contains(
		text, "\n  world         debian13_lean+cuda13_0, not made yet; not in the keys\n");
	assert_contains(text,
			"\n  downloads     2298.1 MB for the world, 1 file of unknown size\n");
	assert_contains(text, "\n  time          about ");
	assert_contains(text, "\n  disk          32.8 GiB");
	assert_contains(text, " of CPU time");
	assert_contains(text, "GPU code");
}

/* By the lock alone, in which a wheel of the base is a tool, too. */
static void a_tool_that_does_not_fit_is_refused(void **state)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf words = {0};
	struct err e = {0};
	char *top;

	(void)state;
	/* running a command empties the directory of the test */
	assert_ok(fs_temp_dir(NULL, "ptbuild-tables-", &a, &top, &e), &e);
	const char *dir = path_join(&a, top, "profiles"),
		   *table = path_join(&a, dir, "releases/2.9.1.yaml");
	assert_ok(fs_copy_tree(PROFILES_DIR, dir, &e), &e);
	AUTO_FREE char *text = test_read(table);
	char *range = strstr(text, "cmake: \">=3.27\"");
	assert_non_null(range);
	range[strlen("cmake: \">=3.2")] = '9'; /* 3.29: fits */
	test_write(table, text);
	buf_printf(
		&words,
		"build --profile sm90-avx512 --release 2.9.1 --cuda 12.8 --offline --profiles %s",
		dir);
	refuse(buf_cstr(&words), ERR_NETWORK, "world 'debian12+python3_13+cuda12_8'");
	range[strlen("cmake: \">=3.")] = '3'; /* 3.39 */
	test_write(table, text);
	refuse(buf_cstr(&words), ERR_POLICY,
	       "'debian12' has cmake 3.31.10; release 2.9.1 needs >=3.39");
	assert_ok(fs_remove(TRUSTED, top, &e), &e);
}

static void doctor_needs_nothing_of_a_world(void **state)
{
	(void)state;
	AUTO_FREE char *text = NULL;
	struct err e = {0};
	int rc = capture_run("doctor --offline --profile sm90-avx2 --release 2.13.0 --json", &text,
			     &e);
	AUTO_JSON json_t *j = json_loads(text, 0, NULL);
	assert_non_null(j);
	/* its store is empty, and this machine may lack the room */
	assert_true(rc < 0 && (e.kind == ERR_NETWORK || e.kind == ERR_SYSTEM));
	const json_t *checks = json_object_get(j, "checks"), *item;
	size_t i, worlds = 0, told = 0, host = 0;
	json_array_foreach(checks, i, item)
	{
		const char *name = json_string_value(json_object_get(item, "name"));
		assert_string_not_equal(name, "nvcc");
		assert_string_not_equal(name, "gcc");
		worlds += strcmp(name, "world") == 0;
		told += strcmp(name, "downloads") == 0 || strcmp(name, "time") == 0;
		host += strcmp(name, "patch") == 0 || strcmp(name, "strip") == 0;
		/* 20 GiB of the release, and six times 2.3 GB of the world */
		if (strcmp(name, "disk") == 0)
			assert_contains(json_string_value(json_object_get(item, "text")),
					"needs 32.8 GiB");
	}

	assert_int_equal(worlds, 1);
	assert_int_equal(told, 2);
	assert_int_equal(host, 2); /* this machine needs its own programs all the same */
	assert_contains(json_string_value(json_object_get(j, "root")), "debian13_lean+cuda13_0, ");
}

static int setup(void **state)
{
	(void)state;
	test_dir();
	setenv("XDG_CACHE_HOME", test_path("cache"), 1);
	return 0;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, test_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_plan_names_the_world),
		T(the_toolkit_and_the_python_are_parts),
		T(an_open_toolkit_is_each_variants_own),
		T(the_blas_is_a_part),
		T(other_roots_are_no_worlds),
		T(what_cannot_be_is_refused_before_anything_is_fetched),
		T(doctor_needs_nothing_of_a_world),
		T(a_plan_says_what_it_takes),
		T(test_plan_time_for_another_platform_is_of_emulation),
		T(the_official_torch_is_downloaded_too),
		T(the_headline_plan_is_a_screen),
		T(a_tool_that_does_not_fit_is_refused),
		T(a_named_world_must_have_what_is_asked),
		T(the_python_is_the_named_worlds),
		T(a_plan_for_another_platform),
		T(every_default_has_a_world),
		T(take_says_which_root_it_means),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
