#include "support.h"

#include <string.h>

#include "core/variant/variant.h"

static const struct tables *shipped(struct arena *a)
{
	const struct tables *t = NULL;
	struct err e = {0};

	assert_ok(tables_load(PROFILES_DIR, a, &t, &e), &e);
	return t;
}

static void canonical_names(void **state)
{
	static const struct {
		const char *given;
		const char *canonical;
		const char *platform;
	} cases[] = {
		{"sm90-avx512", "sm90-avx512", "x86_64-linux"},
		{"cpu-avx2", "cpu-avx2", "x86_64-linux"},
		{"darwin-mps", "darwin-mps", "aarch64-darwin"},
		{"cpu-armv8.2", "cpu-armv8_2", "aarch64-linux"},
		{"cpu-x86_64_v3", "cpu-avx2", "x86_64-linux"},
		{"sm90-x86_64_v4", "sm90-avx512", "x86_64-linux"},
		{"cpu-armv8_2", "cpu-armv8_2", "aarch64-linux"},
		{"sm107-avx10.1", "sm100-avx10_1", "x86_64-linux"}, /* Rubin runs code for 10.0 */
		{"sm90+sm107+ptx-avx512amx", "sm90+sm100+ptx-avx512amx", "x86_64-linux"},
		{"sm90-armv9", "sm90-armv9", "aarch64-linux"},
		{"sm80+sm90-avx512", "sm80+sm90-avx512", "x86_64-linux"},
		{"sm90+sm80-avx512", "sm80+sm90-avx512", "x86_64-linux"},
		{"sm120+sm90+sm75-avx2", "sm75+sm90+sm120-avx2", "x86_64-linux"},
		{"sm80+sm90a+ptx-avx2", "sm80+sm90a+ptx-avx2", "x86_64-linux"},
		{"sm90+ptx+sm80-avx2", "sm80+sm90+ptx-avx2", "x86_64-linux"},
		{"sm90a+sm90-avx2", "sm90+sm90a-avx2", "x86_64-linux"},
		{"sm100f-avx2", "sm100f-avx2", "x86_64-linux"},
		{"sm90+sm90-avx2", "sm90-avx2", "x86_64-linux"},
		{"sm90+sm90+ptx-avx2", "sm90+ptx-avx2", "x86_64-linux"},
		{"sm90-graviton3", "sm90-neoverse_v1", "aarch64-linux"},
	};
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct profile p = {0};
		struct profile again = {0};
		assert_ok(profile_parse(t, cases[i].given, &a, &p, &e), &e);
		assert_string_equal(p.name, cases[i].canonical);
		assert_string_equal(p.platform, cases[i].platform);
		assert_string_equal(p.file, "");
		assert_ok(profile_parse(t, p.name, &a, &again, &e), &e);
		assert_string_equal(again.name, p.name);
	}
}

static void wrong_names(void **state)
{
	static const struct {
		const char *given;
		const char *message;
		const char *hint;
	} cases[] = {
		{"sm91-avx2", "unknown GPU target 'sm91'", "did you mean 'sm90'"},
		{"sm107a-avx2", "unknown GPU target 'sm107a'", "known: cpu sm50"},
		{"SM90-avx2", "unknown GPU target 'SM90'", "sm90"},
		{"90-avx2", "unknown GPU target '90'", "did you mean 'sm90'"},
		{"9.0-avx2", "unknown GPU target '9.0'", "did you mean 'sm90'"},
		{"sm_90-avx2", "unknown GPU target 'sm_90'", "did you mean 'sm90'"},
		{"sm90-avx521", "unknown instruction set 'avx521'", "did you mean 'avx512'"},
		{"sm90-avx-512", "unknown instruction set 'avx-512'", "did you mean 'avx512'"},
		{"sm90-armv82", "unknown instruction set 'armv82'", "did you mean 'armv8_2'"},
		{"sm90-native", "unknown instruction set 'native'", "--profile cpu-native"},
		{"sm90-", "unknown instruction set ''", "known: avx"},
		{"cpu-", "unknown instruction set ''", "known: avx"},
		{"-avx2", "empty GPU target", "sm80+sm90"},
		{"sm80+-avx2", "empty GPU target in 'sm80+'", "sm80+sm90"},
		{"sm80++sm90-avx2", "empty GPU target in 'sm80++sm90'", "sm80+sm90"},
		{"+sm90-avx2", "empty GPU target", "sm80+sm90"},
		{"ptx-avx2", "'ptx' does not follow", "sm90+ptx"},
		{"ptx+sm90-avx2", "'ptx' does not follow", "sm90+ptx"},
		{"sm90+ptx+ptx-avx2", "'ptx' does not follow", "sm90+ptx"},
		{"sm80a-avx2", "sm80 has no suffix 'a'", "use sm80"},
		{"sm90f-avx2", "sm90 has no suffix 'f'", "sm90a"},
		{"sm100b-avx2", "sm100 has no suffix 'b'", "sm100a sm100f"},
		{"sm-avx2", "unknown GPU target 'sm'", "known: cpu sm50"},
		{"cpu+sm90-avx2", "'cpu' cannot be in a list", "sm80+sm90"},
		{"sm90+mps-avx2", "'mps' cannot be in a list", "sm80+sm90"},
		{"avx512", "no GPU target in profile 'avx512'", "cpu-avx512"},
		{"sm90", "no instruction set in profile 'sm90'", "sm90-avx512"},
		{"cpu", "no instruction set in profile 'cpu'", "cpu-avx2"},
		{"mps", "unknown profile 'mps'", "darwin-mps"},
		{"darwin-msp", "unknown profile 'darwin-msp'", "darwin-mps"},
		{"mps-avx2", "unknown profile 'mps-avx2'", "darwin-mps"},
		{"", "unknown profile ''", "sm90-avx512"},
		{"gpu", "unknown profile 'gpu'", "cpu-avx2"},
		{"sm80,sm90-avx512", "'sm80,sm90-avx512'", "'sm80+sm90-avx512'"},
		{"sm80,sm86+ptx,sm90-avx2", "unknown profile", "'sm80+sm86+ptx+sm90-avx2'"},
		{"cpu-avx2,cpu-avx512", "unknown profile",
		 "--profile cpu-avx2, then --profile cpu-avx512"},
		{"sm80,sm99-avx2", "unknown profile", "like sm80+sm90-avx512"},
		{"cpu-avx2,cpu-none", "unknown profile", "like sm80+sm90-avx512"},
		{"cpu-avx2,", "unknown profile", "like sm80+sm90-avx512"},
		{",", "unknown profile", "like sm80+sm90-avx512"},
	};
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct profile p = {0};
		assert_err(profile_parse(t, cases[i].given, &a, &p, &e), &e, ERR_CONFIG,
			   cases[i].message);
		assert_contains(e.hint, cases[i].hint);
		assert_null(p.name);
	}
}

static void targets_are_in_order(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct profile p = {0};
	struct err e = {0};

	(void)state;
	assert_ok(profile_parse(shipped(&a), "sm120+ptx+sm90a+sm80-avx2", &a, &p, &e), &e);
	assert_int_equal(p.gpu, GPU_CUDA);
	assert_int_equal(p.targets_count, 3);
	assert_string_equal(p.targets[0].row->sm, "80");
	assert_string_equal(p.targets[1].row->capability, "9.0");
	assert_string_equal(p.targets[1].suffix, "a");
	assert_false(p.targets[1].ptx);
	assert_string_equal(p.targets[2].row->sm, "120");
	assert_true(p.targets[2].ptx);
}

static void cpu_has_no_targets(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct profile p = {0};
	struct err e = {0};

	(void)state;
	assert_ok(profile_parse(shipped(&a), "cpu-avx", &a, &p, &e), &e);
	assert_int_equal(p.gpu, GPU_CPU);
	assert_int_equal(p.targets_count, 0);
	assert_string_equal(p.isa->name, "avx");
	assert_null(p.blas);
}

static void mps_has_no_instruction_set(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct profile p = {0};
	struct err e = {0};

	(void)state;
	assert_ok(profile_parse(shipped(&a), "darwin-mps", &a, &p, &e), &e);
	assert_int_equal(p.gpu, GPU_MPS);
	assert_null(p.isa);
}

static void labels(void **state)
{
	static const struct {
		const char *profile;
		const char *cuda;
		const char *label;
	} cases[] = {{"sm90-avx512", "12.8", "cu128.sm90.avx512"},
		     {"sm80+sm90a+ptx-avx2", "13.0", "cu130.sm80.sm90a.ptx.avx2"},
		     {"cpu-avx2", NULL, "cpu.avx2"},
		     {"cpu-armv8_2", NULL, "cpu.armv8.2"},
		     {"cpu-neoverse_v1", NULL, "cpu.neoverse.v1"},
		     {"darwin-mps", NULL, "mps"},
		     {"l40s-server", "12.8", "cu128.sm89.avx512bf16.l40s.server"}};
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct profile p = {0};
		assert_ok(profile_load(t, cases[i].profile, &a, &p, &e), &e);
		assert_string_equal(profile_label(&p, cases[i].cuda, &a), cases[i].label);
	}
}

static void examples_are_found_by_stem(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct profile p = {0};
	struct err e = {0};

	(void)state;
	assert_ok(profile_load(shipped(&a), "l40s-server", &a, &p, &e), &e);
	assert_string_equal(p.name, "l40s-server");
	assert_contains(p.file, "examples/l40s-server.yaml");
	assert_string_equal(p.blas->name, "openblas");
	assert_string_equal(p.isa->name, "avx512bf16");
	assert_string_equal(p.targets[0].row->sm, "89");
	assert_int_equal(p.toggles_count, 4);
	assert_string_equal(p.toggles[0].name, "USE_DISTRIBUTED");
	assert_string_equal(p.toggles[0].value, "OFF");
	assert_string_equal(p.toggles[0].why, p.file);
	assert_int_equal(p.toggles[0].line, 8);
}

static void the_second_example_inherits(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct profile p = {0};
	struct err e = {0};

	(void)state;
	assert_ok(profile_load(shipped(&a), "old-and-new", &a, &p, &e), &e);
	assert_int_equal(p.targets_count, 2);
	assert_true(p.targets[1].ptx);
	assert_string_equal(p.isa->name, "avx2");
	assert_int_equal(p.extra_cflags.count, 1);
}

static void composed_names_load_too(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct profile p = {0};
	struct err e = {0};

	(void)state;
	assert_ok(profile_load(shipped(&a), "sm90-avx512", &a, &p, &e), &e);
	assert_string_equal(p.name, "sm90-avx512");
	assert_string_equal(p.file, "");
}

static void an_unknown_name_keeps_the_composed_message(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct profile p = {0};
	struct err e = {0};

	(void)state;
	assert_err(profile_load(shipped(&a), "l40s-avx2", &a, &p, &e), &e, ERR_CONFIG,
		   "unknown GPU target 'l40s'");
	assert_err(profile_load(shipped(&a), "/nowhere/mine.yaml", &a, &p, &e), &e, ERR_CONFIG,
		   "no profile '/nowhere/mine.yaml'");
}

/* What was named is wrong, not the machine. */
static void a_path_that_is_no_file_is_told(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct profile p = {0};
	struct err e = {0};

	(void)state;
	test_dir();
	assert_err(profile_load(shipped(&a), test_path("."), &a, &p, &e), &e, ERR_CONFIG,
		   "is a directory, not a YAML");
	assert_contains(e.hint, "name a file in it");
	err_clear(&e);
	assert_err(profile_load(shipped(&a), "/dev/null", &a, &p, &e), &e, ERR_CONFIG,
		   "not a regular file: '/dev/null' is a device");
}

/* Loads `text` as mine.yaml. */
static int load_text(struct arena *a, const char *text, struct profile *p, struct err *e)
{
	const struct tables *t = shipped(a);

	test_dir();
	test_write(test_path("mine.yaml"), text);
	return profile_load(t, test_path("mine.yaml"), a, p, e);
}

static void wrong_files(void **state)
{
	static const struct {
		const char *text;
		const char *message;
		const char *hint;
	} cases[] = {
		{"gpu: sm90\nisa: avx2\ntogles: {}\n", "mine.yaml:3: unknown key 'togles'",
		 "did you mean 'toggles'"},
		{"gpu: sm90\ncolour: red\nisa: avx2\n", "mine.yaml:2: unknown key 'colour'",
		 "known keys: inherit"},
		{"gpu: sm90\nisa: avx2\nisa: avx512\n",
		 "mine.yaml:3: duplicate key 'isa' (first on line 2)", ""},
		{"gpu: sm90\nisa: avx2\n---\ngpu: cpu\nisa: avx2\n",
		 "mine.yaml:3: more than one document in the file", ""},
		{"gpu: sm91\nisa: avx2\n", "mine.yaml:1: unknown GPU target 'sm91'", "sm90"},
		{"isa: avx2\ngpu:\n- sm90\n- sm19\n", "mine.yaml:2: unknown GPU target 'sm19'", ""},
		{"gpu: []\nisa: avx2\n", "mine.yaml:1: 'gpu' is an empty list", ""},
		{"gpu: {a: b}\nisa: avx2\n", "mine.yaml:1: 'gpu' needs a single value", ""},
		{"gpu:\nisa: avx2\n", "'gpu' needs a single value", ""},
		{"gpu: [[sm90]]\nisa: avx2\n", "mine.yaml:1: 'gpu' needs a single value", ""},
		{"gpu: [90]\nisa: avx2\n", "mine.yaml:1: unknown GPU target '90'", "sm90"},
		{"gpu: sm90\n", "mine.yaml:1: 'isa' is missing", ""},
		{"isa: avx2\n", "mine.yaml:1: 'gpu' is missing", ""},
		{"gpu: sm90\nisa: avx3\n", "mine.yaml:2: unknown instruction set 'avx3'", "avx2"},
		{"gpu: mps\nisa: avx2\n", "mine.yaml:2: 'isa' does not go with gpu mps", ""},
		{"gpu: sm90\nisa: avx2\nblas: cublas\n", "mine.yaml:3: unknown BLAS 'cublas'",
		 "known: openblas mkl veclib"},
		{"gpu: sm90\nisa: avx2\ncflags: [O3]\n",
		 "mine.yaml:3: 'cflags': not a compiler flag: 'O3'", ""},
		{"gpu: sm90\nisa: avx2\ncflags: [\"-O3 -g\"]\n",
		 "mine.yaml:3: 'cflags': not a compiler flag: '-O3 -g'", ""},
		{"gpu: sm90\nisa: avx2\ncflags: [\"-D$(id)\"]\n",
		 "mine.yaml:3: 'cflags': not a compiler flag: '-D$(id)'", ""},
		{"gpu: sm90\nisa: avx2\ncflags: [-march=native]\n",
		 "mine.yaml:3: '-march=native' is another flag on each", "--profile native"},
		{"gpu: sm90\nisa: avx2\ntoggles: [USE_CUDNN]\n",
		 "mine.yaml:3: 'toggles' is a mapping", ""},
		{"gpu: sm90\nisa: avx2\ntoggles:\n  USE_CUDNN: OFF\n  USE_CUDNN: ON\n",
		 "mine.yaml:5: toggle 'USE_CUDNN' is there twice", ""},
		{"gpu: sm90\nisa: avx2\ntoggles:\n  USE-CUDNN: OFF\n",
		 "mine.yaml:4: not the name of a toggle: 'USE-CUDNN'", ""},
		{"gpu: sm90\nisa: avx2\ntoggles:\n  USE_CUDNN: [OFF]\n",
		 "mine.yaml:4: 'USE_CUDNN' needs a single value", ""},
		{"gpu: sm90\nisa: avx2\ntoggles:\n  USE_CUDNN: \"a\\nb\"\n",
		 "mine.yaml:4: the value of 'USE_CUDNN' has more than one line", ""},
		{"inherit: sm90-avx99\n", "mine.yaml:1: ", "avx"},
		{"inherit: other.yaml\n", "mine.yaml:1: no profile", ""},
		{"inherit: mine.yaml\n", "circle of profiles", ""},
		{"- sm90\n", "mine.yaml:1: 'key: value' lines are expected", ""},
		{"", "mine.yaml:1: the file is empty", ""},
		{"gpu: [sm90\nisa: avx2\n", "mine.yaml:", ""},
		{"gpu: \"s\\0m\"\nisa: avx2\n", "mine.yaml:1: a text with a NUL byte", ""},
		{"? [a]\n: b\n", "a key must be plain text", ""},
	};
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_ARENA struct arena a = {0};
		struct profile p = {0};
		assert_err(load_text(&a, cases[i].text, &p, &e), &e, ERR_CONFIG, cases[i].message);
		assert_contains(e.hint, cases[i].hint);
		assert_null(p.name);
	}
}

static void a_file_gives_all_it_says(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct profile p = {0};
	struct err e = {0};

	(void)state;
	assert_ok(
		load_text(
			&a,
			"gpu: [sm90, sm80+ptx]\nisa: avx512\nblas: mkl\ncflags: -O3 -mtune=znver4\n"
			"toggles:\n  USE_NCCL: OFF\n  ATEN_THREADING: NATIVE\n",
			&p, &e),
		&e);
	assert_string_equal(p.name, "mine");
	assert_int_equal(p.targets_count, 2);
	assert_true(p.targets[0].ptx);
	assert_string_equal(p.blas->name, "mkl");
	assert_int_equal(p.extra_cflags.count, 2);
	assert_string_equal(p.extra_cflags.items[1], "-mtune=znver4");
	assert_int_equal(p.toggles_count, 2);
	assert_string_equal(p.toggles[1].value, "NATIVE");
	assert_int_equal(p.toggles[1].line, 7);
	assert_string_equal(p.platform, "x86_64-linux");
}

static void mps_in_a_file(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct profile p = {0};
	struct err e = {0};

	(void)state;
	assert_ok(load_text(&a, "gpu: mps\nblas: veclib\n", &p, &e), &e);
	assert_int_equal(p.gpu, GPU_MPS);
	assert_string_equal(p.platform, "aarch64-darwin");
}

static void inherit_adds_and_replaces(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	struct profile p = {0};
	struct err e = {0};

	(void)state;
	test_dir();
	test_write(
		test_path("base.yaml"),
		"gpu: sm80\nisa: avx2\ncflags: [-O3]\ntoggles: {USE_NCCL: OFF, USE_CUDNN: OFF}\n");
	test_write(test_path("child.yaml"), "isa: avx512\ntoggles:\n  USE_CUDNN: ON\n  USE_MAGMA: "
					    "ON\ncflags: [-g1]\ninherit: base.yaml\n");
	assert_ok(profile_load(t, test_path("child.yaml"), &a, &p, &e), &e);
	assert_string_equal(p.name, "child");
	assert_string_equal(p.targets[0].row->sm, "80");
	assert_string_equal(p.isa->name, "avx512");
	assert_int_equal(p.extra_cflags.count, 2);
	assert_string_equal(p.extra_cflags.items[0], "-O3");
	assert_int_equal(p.toggles_count, 3);
	assert_string_equal(p.toggles[0].value, "OFF");
	assert_contains(p.toggles[0].why, "base.yaml");
	assert_string_equal(p.toggles[1].value, "ON");
	assert_contains(p.toggles[1].why, "child.yaml");
	assert_string_equal(p.toggles[2].name, "USE_MAGMA");
}

static void inherit_from_mps_to_cpu_needs_an_isa(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct profile p = {0};
	struct err e = {0};

	(void)state;
	assert_err(load_text(&a, "inherit: darwin-mps\ngpu: cpu\n", &p, &e), &e, ERR_CONFIG,
		   "'isa' is missing");
	assert_ok(load_text(&a, "inherit: sm90-avx2\ngpu: mps\n", &p, &e), &e);
	assert_null(p.isa);
}

static void profiles_that_inherit_each_other(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	struct profile p = {0};
	struct err e = {0};

	(void)state;
	test_dir();
	test_write(test_path("a.yaml"), "inherit: b.yaml\n");
	test_write(test_path("b.yaml"), "inherit: a.yaml\n");
	assert_err(profile_load(t, test_path("a.yaml"), &a, &p, &e), &e, ERR_CONFIG,
		   "circle of profiles");
}

static void file_names_that_cannot_be_labels(void **state)
{
	static const struct {
		const char *name, *hint;
	} names[] = {
		{"Mine.yaml", "'mine.yaml'"},
		{"my profile.yaml", "'my-profile.yaml'"},
		{"-x.yaml", "'x.yaml'"},
		{"x-.yaml", "'x.yaml'"},
		{".yaml", "with small letters and digits"},
		{"m\xc3\xbc.yaml", "'m.yaml'"},
		/* the label of each would be a.b */
		{"a.b.yaml", "'a-b.yaml'"},
		{"a_b.yaml", "'a-b.yaml'"},
		{"a--b.yaml", "'a-b.yaml'"},
		/* of other profiles */
		{"cpu-avx.yaml", "'my-cpu-avx.yaml'"},
		{"cpu_avx.yaml", "'my-cpu-avx.yaml'"},
		{"sm90-avx512.yaml", "'my-sm90-avx512.yaml'"},
		{"darwin-mps.yaml", "'my-darwin-mps.yaml'"},
		{"native.yaml", "'my-machine.yaml'"},
		{"native-avx2.yaml", "'my-native-avx2.yaml'"},
		{"cpu-native.yaml", "'my-cpu-native.yaml'"},
		/* what labels say of a wheel */
		{"avx512.yaml", "'my-avx512.yaml'"},
		{"mkl.yaml", "'my-mkl.yaml'"},
		{"sm90.yaml", "'my-sm90.yaml'"},
		{"drift.yaml", "'my-drift.yaml'"},
		{"own54ed5a92.yaml", "'my-own54ed5a92.yaml'"},
	};
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	struct err e = {0};

	(void)state;
	test_dir();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct profile p = {0};
		test_write(test_path("%s", names[i].name), "gpu: sm90\nisa: avx2\n");
		assert_err(profile_load(t, test_path("%s", names[i].name), &a, &p, &e), &e,
			   ERR_CONFIG, "cannot be the name of a profile");
		assert_contains(e.hint, names[i].hint);
		if (*names[i].hint == '\'') { /* a name that works */
			const char *right =
				arena_strndup(&a, names[i].hint + 1, strlen(names[i].hint) - 2);
			test_write(test_path("%s", right), "gpu: sm90\nisa: avx2\n");
			assert_ok(profile_load(t, test_path("%s", right), &a, &p, &e), &e);
		}
	}

	/* Names of files have 255 bytes. */
	struct profile p = {0};
	const char *most = arena_printf(&a, "%064d.yaml", 1),
		   *more = arena_printf(&a, "%065d.yaml", 1);
	test_write(test_path("%s", most), "gpu: sm90\nisa: avx2\n");
	assert_ok(profile_load(t, test_path("%s", most), &a, &p, &e), &e);
	test_write(test_path("%s", more), "gpu: sm90\nisa: avx2\n");
	assert_err(profile_load(t, test_path("%s", more), &a, &p, &e), &e, ERR_CONFIG,
		   "is longer than 64 characters");
}

static void an_example_cannot_leave_its_directory(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct profile p = {0};
	struct err e = {0};

	(void)state;
	assert_err(profile_load(shipped(&a), "..", &a, &p, &e), &e, ERR_CONFIG,
		   "unknown profile '..'");
	assert_err(profile_load(shipped(&a), "../isa", &a, &p, &e), &e, ERR_CONFIG,
		   "no profile '../isa'");
}

static void a_huge_file_is_refused(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	struct profile p = {0};
	struct err e = {0};
	size_t size = 2u << 20;
	char *text = arena_alloc(&a, size + 1);

	(void)state;
	memset(text, '#', size);
	test_dir();
	test_write(test_path("huge.yaml"), text);
	err_clear(&e);
	assert_int_equal(profile_load(t, test_path("huge.yaml"), &a, &p, &e), -1);
	assert_contains(e.msg, "huge.yaml");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(canonical_names, test_teardown),
		cmocka_unit_test_teardown(wrong_names, test_teardown),
		cmocka_unit_test_teardown(targets_are_in_order, test_teardown),
		cmocka_unit_test_teardown(cpu_has_no_targets, test_teardown),
		cmocka_unit_test_teardown(mps_has_no_instruction_set, test_teardown),
		cmocka_unit_test_teardown(labels, test_teardown),
		cmocka_unit_test_teardown(examples_are_found_by_stem, test_teardown),
		cmocka_unit_test_teardown(the_second_example_inherits, test_teardown),
		cmocka_unit_test_teardown(composed_names_load_too, test_teardown),
		cmocka_unit_test_teardown(an_unknown_name_keeps_the_composed_message,
					  test_teardown),
		cmocka_unit_test_teardown(a_path_that_is_no_file_is_told, test_teardown),
		cmocka_unit_test_teardown(wrong_files, test_teardown),
		cmocka_unit_test_teardown(a_file_gives_all_it_says, test_teardown),
		cmocka_unit_test_teardown(mps_in_a_file, test_teardown),
		cmocka_unit_test_teardown(inherit_adds_and_replaces, test_teardown),
		cmocka_unit_test_teardown(inherit_from_mps_to_cpu_needs_an_isa, test_teardown),
		cmocka_unit_test_teardown(profiles_that_inherit_each_other, test_teardown),
		cmocka_unit_test_teardown(file_names_that_cannot_be_labels, test_teardown),
		cmocka_unit_test_teardown(an_example_cannot_leave_its_directory, test_teardown),
		cmocka_unit_test_teardown(a_huge_file_is_refused, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
