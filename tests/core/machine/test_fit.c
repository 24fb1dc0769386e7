/* Where wheels run, told from plans and from wheels, against machines of tests/data/machines. */
#include "support.h"

#include <string.h>

#include "base/path.h"
#include "base/sys/json.h"
#include "core/fatbin/fatbin.h"
#include "core/machine/detect.h"
#include "core/plan/plan.h"
#include "core/plan/runs_on.h"
#include "core/tables/gpu_runs.h"
#include "core/wheel/wheel.h"
#include "shipped.h"

static struct arena a;
static const struct tables *tables;
static const struct hardware_facts *facts;

static int load(void **state)
{
	(void)state;
	struct err e = {0};
	tables = shipped_tables(&a);
	assert_ok(hardware_facts_load(PROFILES_DIR, &a, &facts, &e), &e);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	arena_release(&a);
	return 0;
}

static struct hardware machine(const char *name, const char *glibc, const char *pythons)
{
	struct hardware h;
	struct err e = {0};

	assert_ok(hardware_load(arena_printf(&a, TEST_DATA_DIR "/machines/%s.yaml", name), &a, &h,
				&e),
		  &e);
	h.glibc = glibc;
	strlist_split(&h.pythons, &a, pythons, " ");
	h.bare = false;
	return h;
}

/* Of a wheel's file name, as `verify` does it. */
static struct runs_on wheel(const char *file, const char *tag, const char *targets,
			    const char *torch)
{
	struct runs_on r;
	struct wheel_name n;
	struct promise p;
	struct strlist inside = {0};
	struct err e = {0};

	assert_ok(wheel_name_parse(file, &a, &n, &e), &e);
	const char *plus = strchr(n.version, '+');
	promise_of_label(tables, plus ? plus + 1 : "", &a, &p);
	strlist_split(&inside, &a, targets, " ");
	runs_on_of_wheel(tables, &n, tag, &p, &inside, torch, &a, &r);
	return r;
}

static const char *verdict(const struct runs_on *r, const struct root *root,
			   const struct hardware *h)
{
	struct fit fit;
	fit_of(r, root, facts, h, &a, &fit);
	return fit_text(&fit, &a);
}

static const char cpu_wheel[] = "torch-2.6.0+cpu.avx2-cp313-cp313-manylinux_2_39_x86_64.whl";

static void test_a_wheel_for_processors(void **state)
{
	(void)state;
	struct runs_on r = wheel(cpu_wheel, "manylinux_2_39_x86_64", "", "");
	const char *text = runs_on_text(&r, &a);
	assert_contains(text, "python 3.13 only; glibc 2.39 or newer; processor x86_64 with avx2: "
			      "Intel Haswell (2013)");
	assert_not_contains(text, "GPU");
	struct hardware h = machine("emerald-rapids-vm", "2.41", "3.11 3.13");
	assert_string_equal(verdict(&r, NULL, &h), "yes");
	h = machine("emerald-rapids-vm", "2.36", "3.11");
	assert_string_equal(verdict(&r, NULL, &h),
			    "no: its Python is 3.11, not 3.13; its glibc is 2.36, older than 2.39");
	h = machine("emerald-rapids-vm", "", "");
	assert_string_equal(verdict(&r, NULL, &h), "no: it has no Python 3.13; it has no glibc");
	h.bare = true;
	assert_contains(verdict(&r, NULL, &h), "perhaps: ");
	strlist_split(&h.pythons, &a, "3.11", " ");
	assert_contains(verdict(&r, NULL, &h), "no: its Python is 3.11, not 3.13");
	h = machine("sandy-bridge-gtx1080", "2.41", "3.13");
	assert_string_equal(verdict(&r, NULL, &h),
			    "no: no avx2 fma f16c (the processor does not list it)");
	h = machine("graviton3", "2.41", "3.13");
	assert_string_equal(verdict(&r, NULL, &h), "no: it is aarch64-linux, not x86_64-linux");
}

/* The same version without "t" is another interpreter, and so the other way round. */
static void test_a_wheel_for_free_threaded_python(void **state)
{
	(void)state;
	struct runs_on r = wheel("torch-2.6.0+cpu.avx2-cp313-cp313t-manylinux_2_28_x86_64.whl",
				 "manylinux_2_28_x86_64", "", "");
	assert_contains(runs_on_text(&r, &a), "python 3.13t (free-threaded) only");
	struct hardware h = machine("emerald-rapids-vm", "2.41", "3.13");
	assert_string_equal(verdict(&r, NULL, &h), "no: its Python is 3.13, not 3.13t");
	h = machine("emerald-rapids-vm", "2.41", "3.12 3.13t");
	assert_string_equal(verdict(&r, NULL, &h), "yes");
	r = wheel(cpu_wheel, "manylinux_2_28_x86_64", "", "");
	h = machine("emerald-rapids-vm", "2.41", "3.13t");
	assert_string_equal(verdict(&r, NULL, &h), "no: its Python is 3.13t, not 3.13");
}

/* What the root has counts only where processor and GPU do. */
static void test_a_root_helps_with_software_alone(void **state)
{
	(void)state;
	const struct root root = {.dir = "/srv/debian13"}, host = {.dir = "/", .host = true};
	struct runs_on r = wheel(cpu_wheel, "", "", "torch==2.6.0+debian");
	assert_string_equal(r.torch, "2.6.0+debian");
	assert_string_equal(wheel(cpu_wheel, "", "", "torch (==2.9.1)").torch, "2.9.1");
	assert_string_equal(wheel(cpu_wheel, "", "", "torch == 2.9.1 ; python_version > '3'").torch,
			    "2.9.1");
	assert_string_equal(wheel(cpu_wheel, "", "", "torch (>=2.14.0)").torch, ">=2.14.0");
	assert_string_equal(wheel(cpu_wheel, "", "", "torch<3,>=2.14; python_version > '3'").torch,
			    "<3,>=2.14");
	struct hardware h = machine("emerald-rapids-vm", "2.36", "3.13");
	assert_string_equal(verdict(&r, &root, &h),
			    "no: its glibc is 2.36, older than 2.39; the wheel can be used inside "
			    "the root '/srv/debian13'");
	assert_string_equal(verdict(&r, &host, &h), "no: its glibc is 2.36, older than 2.39");
	h = machine("sandy-bridge-gtx1080", "2.36", "3.13");
	assert_not_contains(verdict(&r, &root, &h), "inside the root");
	h = machine("emerald-rapids-vm", "2.41", "3.13");
	assert_string_equal(verdict(&r, &root, &h), "yes");
	r.torch_of_root = true;
	assert_contains(verdict(&r, &root, &h),
			"no: torch 2.6.0+debian is the root's own; the wheel can be used");
	assert_string_equal(verdict(&r, &host, &h), "yes");
}

static void test_a_wheel_for_gpus(void **state)
{
	(void)state;
	struct runs_on r = wheel(
		"torch-2.9.1+cu128.sm90.avx512-cp313-cp313-manylinux_2_28_x86_64.whl", "", "", "");
	assert_contains(runs_on_text(&r, &a), "gpu 9.0 and newer 9.x (Hopper: H100, H200, H20, "
					      "GH200); driver NVIDIA's 525.60.13 or newer");
	struct hardware h = machine("sapphire-rapids-h100", "2.36", "3.13");
	assert_string_equal(verdict(&r, NULL, &h), "yes");
	h.driver = "520.61.05";
	assert_string_equal(verdict(&r, NULL, &h),
			    "no: its driver is 520.61.05, older than 525.60.13");
	h = machine("cascade-lake-t4", "2.36", "3.13");
	assert_contains(verdict(&r, NULL, &h), "no: it lacks code for its ");
	assert_contains(verdict(&r, NULL, &h), "(7.5)");
	h = machine("emerald-rapids-vm", "2.36", "3.13");
	assert_string_equal(verdict(&r, NULL, &h), "no: it has no NVIDIA GPU");
}

/* A capability, how far its code reaches, and GPUs. */
static void test_how_far_gpu_code_reaches(void **state)
{
	static const struct {
		const char *targets, *says, *gpu;
		bool runs;
	} cases[] = {
		{"80", "8.0 and newer 8.x (", "8.0", true},
		{"80", "8.0 and newer 8.x (", "8.9", true},
		{"80", "8.0 and newer 8.x (", "9.0", false},
		{"86", "8.6 and newer 8.x (", "8.0", false},
		{"90a", "9.0 only (", "9.0", true},
		{"90a", "9.0 only (", "9.1", false},
		{"100f", "10.0 and its family (", "10.3", true},
		{"100f", "10.0 and its family (", "12.0", false},
		{"90+PTX", "9.0 and all newer (", "12.0", true},
		{"90+PTX", "9.0 and all newer (", "8.9", false},
		{"87", "8.7 only (", "8.7", true},
		{"87", "8.7 only (", "8.9", false},
		{"80 90", "; 9.0 and newer 9.x (", "9.0", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct runs_on r =
			wheel("x-1.0-py3-none-manylinux_2_28_x86_64.whl", "", cases[i].targets, "");
		struct hardware h = machine("sapphire-rapids-h100", "2.36", "3.13");
		h.gpus[0].capability = cases[i].gpu;
		h.gpu_count = 1;
		assert_contains(runs_on_text(&r, &a), cases[i].says);
		if (cases[i].runs != (strcmp(verdict(&r, NULL, &h), "yes") == 0))
			fail_msg("%s on %s: %s", cases[i].targets, cases[i].gpu,
				 verdict(&r, NULL, &h));
	}

	/* The newest of the GPUs decides where it needs more than the toolkit's line. */
	struct runs_on r =
		wheel("torch-2.9.1+cu128.sm90.sm120.avx2-cp313-cp313-manylinux_2_28_x86_64.whl", "",
		      "", "");
	assert_string_equal(r.driver, "570.26");
}

/* Other people's: nothing is promised, so what is found inside counts. */
static void test_foreign_wheels(void **state)
{
	(void)state;
	struct runs_on r = wheel("torch-2.7.0+cu128-cp39-abi3-manylinux_2_28_x86_64.whl",
				 "manylinux_2_34_x86_64", "80 90", "");
	assert_string_equal(
		runs_on_text(&r, &a),
		"python 3.9 or newer; glibc 2.34 or newer; processor x86_64; its label declares no "
		"instruction set; gpu 8.0 and newer 8.x (Ampere: A100, A30); 9.0 and newer 9.x "
		"(Hopper: "
		"H100, H200, H20, GH200); driver NVIDIA's 525.60.13 or newer");
	struct hardware h = machine("sapphire-rapids-h100", "2.36", "3.8 3.12");
	assert_string_equal(verdict(&r, NULL, &h), "yes");
	r = wheel("x-1.0-cp313-cp313-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", "", "", "");
	assert_string_equal(r.glibc, "2.17");
	r = wheel("x-1.0-py3-none-any.whl", "any", "", "");
	assert_string_equal(runs_on_text(&r, &a), "python 3 or newer");
	assert_string_equal(verdict(&r, NULL, &h), "yes");
	r = wheel("x-1.0-cp312-cp312-linux_aarch64.whl", "", "", "");
	assert_contains(runs_on_text(&r, &a),
			"python 3.12 only; glibc not declared; processor aarch64; its label");
}

/* Where pip refuses a wheel, it does not run. */
static void test_what_installers_refuse(void **state)
{
	(void)state;
	struct hardware h = machine("emerald-rapids-vm", "2.36", "3.11 3.12");
	static const char *const ranges[][2] = {
		{">=3.9", "yes"},
		{">=3.12", "yes"},
		{">=3.11.4,<3.12", "perhaps"},
		{"==3.12.*", "yes"},
		{"!=3.13.*", "yes"},
		{"not one", "yes"},
		{">=3.13", "no: "},
		{"<3.11", "no: "},
		{"==2.7.*", "no: "},
		/* As packaging.specifiers has it, of a full version: 3.11.7, 3.12.3. */
		{"<=3.11", "perhaps: whether its Python 3.11 is one that the wheel requires "
			   "(<=3.11) depends on"},
		{"==3.11", "perhaps"},
		{">3.12", "perhaps"},
		{">=3.12.8", "perhaps"},
		{"===3.12.3", "perhaps"},
		{"~=3.11.0", "yes"},
		{"~=3.11", "yes"},
		{"~=3.13", "no: "},
		{"!=3.11.*,!=3.12.*", "no: "},
		{"!=3.11.7,!=3.12.*", "perhaps"},
		{">=3.11,<3.12.0a0", "yes"},
		{">=3.13.0b1", "no: "},
		{"", "yes"},
		{">=3.11,", "yes"},
		{">=3.6.*", "yes"},
		{"^3.13", "yes"},
		{"~=3", "yes"},
		{"==3.*", "yes"},
	};
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
		struct runs_on r = wheel("x-1.0-py3-none-any.whl", "any", "", "");
		r.requires_python = ranges[i][0];
		if (strncmp(verdict(&r, NULL, &h), ranges[i][1], strlen(ranges[i][1])) != 0)
			fail_msg("%s: %s", ranges[i][0], verdict(&r, NULL, &h));
	}

	struct runs_on r = wheel("x-1.0-py3-none-manylinux_3_0_x86_64.whl", "", "", "");
	assert_string_equal(verdict(&r, NULL, &h),
			    "no: no installer there supports its platform tag");
	r = wheel("x-1.0-pp311-pypy311_pp73-linux_x86_64.whl", "", "", "");
	assert_string_equal(verdict(&r, NULL, &h),
			    "no: its Python is 3.11 and 3.12, not PyPy 3.11");
	r = wheel("x-1.0-py3-none-any.win_amd64.whl", "", "", "");
	assert_string_equal(verdict(&r, NULL, &h), "yes");
	r = wheel("x-1.0-cp311-cp311-manylinux_2_17_aarch64.manylinux_2_17_x86_64.whl", "", "", "");
	assert_string_equal(verdict(&r, NULL, &h), "yes");
	r = wheel("x-1.0-cp310.cp312-cp310.cp312-linux_x86_64.whl", "", "", "");
	assert_contains(runs_on_text(&r, &a), "python 3.10, 3.12 only");
	r = wheel("x-1.0-cp311-cp311-macosx_10_13_universal2.whl", "", "", "");
	assert_string_equal(verdict(&r, NULL, &h),
			    "no: it is x86_64-linux, not x86_64-darwin or aarch64-darwin");
	r = wheel("x-1.0-cp311-abi3-any.whl", "", "", "");
	assert_string_equal(verdict(&r, NULL, &h), "no: no installer asks for its tags");
	h.glibc = "";
	r = wheel("x-1.0-cp311-cp311-musllinux_1_2_x86_64.manylinux_2_17_x86_64.whl", "", "", "");
	assert_string_equal(verdict(&r, NULL, &h), "yes");
}

/* A root's glibc is the most that a wheel of it can need. */
static void test_a_plan(void **state)
{
	(void)state;
	struct plan p = {.variant = "v",
			 .platform = "x86_64-linux",
			 .python = "3.13",
			 .torch = "",
			 .torch_version = ""};
	struct runs_on r;
	p.isa_row = tables_isa(tables, "avx2");
	runs_on_of_plan(tables, &p, "2.41", &a, &r);
	assert_contains(runs_on_text(&r, &a),
			"glibc 2.41, the root's, at most; the finished wheel may need less");
	struct hardware h = machine("emerald-rapids-vm", "2.36", "3.13");
	assert_string_equal(verdict(&r, NULL, &h),
			    "perhaps: its glibc is 2.36, and 2.41 may be needed");
	h.glibc = "2.41";
	assert_string_equal(verdict(&r, NULL, &h), "yes");
	runs_on_of_plan(tables, &p, "", &a, &r);
	assert_not_contains(runs_on_text(&r, &a), "glibc");
	assert_string_equal(verdict(&r, NULL, &h),
			    "perhaps: the root's glibc is not known without --root DIR");
	AUTO_JSON json_t *j = runs_on_json(&r);
	assert_true(json_is_null(json_object_get(j, "glibc")) &&
		    json_is_true(json_object_get(j, "glibc_at_most")));
	assert_string_equal(json_string_value(json_object_get(j, "isa")), "avx2");
	assert_int_equal(json_array_size(json_object_get(j, "features")), 3);
	p.platform = "aarch64-darwin";
	p.isa_row = NULL;
	runs_on_of_plan(tables, &p, "", &a, &r);
	assert_string_equal(runs_on_text(&r, &a), "python 3.13 only; processor aarch64");
}

static void test_driver_known_by_its_cuda_alone(void **state)
{
	(void)state;
	struct hardware h = machine("sapphire-rapids-h100", "2.41", "3.13");
	struct runs_on r =
		wheel("torch-2.11.0+cu130.sm90-cp313-cp313-manylinux_2_28_x86_64.whl", "", "", "");
	h.driver = "";
	h.driver_cuda = "12.4";
	assert_contains(verdict(&r, NULL, &h), "CUDA 13.0 is needed");
	h.driver_cuda = "13.0";
	assert_string_equal(verdict(&r, NULL, &h), "yes");
	h.driver = "550.54.15"; /* with a compatibility library that works */
	assert_string_equal(verdict(&r, NULL, &h), "yes");
	h.driver_cuda = "";
	assert_contains(verdict(&r, NULL, &h), "550.54.15, older than 580");
	h.driver = "";
	r = wheel("torch-2.9.1+cu128.sm90-cp313-cp313-manylinux_2_28_x86_64.whl", "", "", "");
	h.driver_cuda = "12.4";
	assert_string_equal(verdict(&r, NULL, &h), "yes");
}

static void test_gpu_target_runs_by_number_letter_and_chip(void **state)
{
	static const struct {
		const char *code, *gpu, *cuda;
		enum gpu_runs runs;
	} rows[] = {
		{"8.0", "8.6", "", GPU_RUNS_YES},
		{"8.6", "8.0", "", GPU_RUNS_NO},
		{"8.0", "9.0", "", GPU_RUNS_NO},
		/* Orin, a system on a chip */
		{"8.7", "8.7", "", GPU_RUNS_YES},
		{"8.7", "8.9", "", GPU_RUNS_NO},
		{"8.0", "8.7", "", GPU_RUNS_PERHAPS},
		{"8.0", "8.7", "13.0", GPU_RUNS_PERHAPS},
		{"8.0", "8.7", "13.2", GPU_RUNS_YES},
		{"8.9", "8.7", "13.2", GPU_RUNS_NO},
		{"8.7", "8.9", "13.2", GPU_RUNS_NO},
		{"8.0+PTX", "8.7", "", GPU_RUNS_YES},
		/* Xavier and the Jetson Thor of CUDA 12 share with none */
		{"7.0", "7.2", "13.2", GPU_RUNS_PERHAPS},
		{"10.0", "10.1", "12.8", GPU_RUNS_PERHAPS},
		{"10.0", "11.0", "13.2", GPU_RUNS_NO},
		/* for CUDA 13 it is 11.0 */
		{"10.0", "10.1", "12.9", GPU_RUNS_PERHAPS},
		{"10.0", "10.1", "13.0", GPU_RUNS_NO},
		{"10.0+PTX", "10.1", "13.0", GPU_RUNS_NO},
		{"10.1", "10.1", "13.0", GPU_RUNS_NO},
		/* "a" on that chip alone, "f" in its family */
		{"9.0a", "9.0", "", GPU_RUNS_YES},
		{"10.0a", "10.3", "", GPU_RUNS_NO},
		{"10.0f", "10.3", "", GPU_RUNS_YES},
		{"12.0f", "12.1", "", GPU_RUNS_YES},
		{"12.0a", "12.1", "", GPU_RUNS_NO},
		{"12.1f", "12.0", "", GPU_RUNS_NO},
		{"12.0f", "10.0", "", GPU_RUNS_NO},
		{"100f+PTX", "12.0", "", GPU_RUNS_NO},
		{"90a+PTX", "10.0", "", GPU_RUNS_NO},
		{"90a+PTX", "9.0", "", GPU_RUNS_YES},
		{"90+ptx", "12.1", "", GPU_RUNS_YES},
		{"9.0+PTX", "8.9", "", GPU_RUNS_NO},
		/* a GPU that the tables do not know */
		{"12.0", "12.9", "", GPU_RUNS_YES},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *code = rows[i].code, *gpu = rows[i].gpu, *cuda = rows[i].cuda;
		const enum gpu_runs runs = gpu_target_runs(tables, code, gpu, cuda);
		if (runs != rows[i].runs)
			fail_msg("%s on %s, CUDA '%s': %d", code, gpu, cuda, (int)runs);
	}
}

/* The same rule decides what slim keeps, which names GPUs by number. */
static void test_fatbin_choose_agrees_with_gpu_target_runs(void **state)
{
	static const char *const codes[] = {"80",  "86",   "87",   "89",  "90",  "90a",
					    "100", "100f", "103a", "110", "120f"};
	size_t chips_count;
	const unsigned *chips = tables_chips(tables, &a, &chips_count);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		for (unsigned g = 0; g < tables->gpus_count; g++) {
			const struct gpu_row *row = &tables->gpus[g];
			const struct fatbin_gpu gpu = {gpu_code_parse(row->sm).number, false};
			const struct fatbin_wanted w = {&gpu, 1, chips, chips_count};
			struct fatbin_entry entry = {.kind = FATBIN_CUBIN, .number = FATBIN_CUBIN};
			bool keep, runs;
			snprintf(entry.target, sizeof(entry.target), "%s", codes[i]);
			fatbin_choose(&(struct fatbin_choice){&entry, 1, &w, &keep, &runs});
			const char *gpu_text = row->capability;
			const enum gpu_runs rule = gpu_target_runs(tables, codes[i], gpu_text, "");
			assert_int_equal(runs, rule != GPU_RUNS_NO);
			assert_int_equal(keep, runs);
		}
}

static void test_orin_takes_code_for_sm80_with_newer_toolkits(void **state)
{
	(void)state;
	struct hardware h = machine("sapphire-rapids-h100", "2.36", "3.13");
	struct runs_on r =
		wheel("torch-2.9.1+cu128.sm80-cp313-cp313-manylinux_2_28_x86_64.whl", "", "", "");
	h.gpus[0].capability = "8.7";
	h.gpu_count = 1;
	assert_contains(verdict(&r, NULL, &h), "perhaps: ");
	r = wheel("torch-2.15.0+cu132.sm80-cp313-cp313-manylinux_2_28_x86_64.whl", "", "", "");
	h.driver = "700.0";
	assert_string_equal(verdict(&r, NULL, &h), "yes");
	h.gpus[0].capability = "8.9";
	r = wheel("torch-2.15.0+cu132.sm87-cp313-cp313-manylinux_2_28_x86_64.whl", "", "", "");
	assert_contains(verdict(&r, NULL, &h), "no: ");
}

/* JetPack 6 has a CUDA of its own, JetPack 7 that of Arm servers. */
static void test_jetson_needs_its_own_toolkit_before_cuda_13(void **state)
{
	(void)state;
	static const struct {
		const char *machine, *wheel, *verdict;
	} cases[] = {
		{"jetson-orin", "torch-2.9.1+cu126.sm87.armv8.2-cp313-cp313-linux_aarch64.whl",
		 "no: "},
		{"jetson-orin",
		 "torch-2.9.1+cu126.sm87.armv8.2.tegra-cp313-cp313-linux_aarch64.whl", "yes"},
		{"jetson-orin", "torch-2.9.1+cu130.sm87.armv8.2-cp313-cp313-linux_aarch64.whl",
		 "no: its driver"},
		{"jetson-orin-jetpack7",
		 "torch-2.9.1+cu130.sm87.armv8.2-cp313-cp313-linux_aarch64.whl", "yes"},
		{"jetson-orin", "torch-2.5.0a0-cp313-cp313-linux_aarch64.whl", "perhaps: "},
		{"graviton3", "torch-2.9.1+cpu.armv8.2-cp313-cp313-linux_aarch64.whl", "yes"},
		{"jetson-thor", "torch-2.9.1+cu130.sm110.armv9-cp313-cp313-linux_aarch64.whl",
		 "yes"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct hardware h = machine(cases[i].machine, "2.41", "3.13");
		const bool foreign = !strchr(cases[i].wheel, '+');
		struct runs_on r = wheel(cases[i].wheel, "", foreign ? "87" : "", "");
		if (foreign)
			runs_on_set_cuda(tables, "12.6", &r);
		const char *text = verdict(&r, NULL, &h);
		if (strncmp(text, cases[i].verdict, strlen(cases[i].verdict)) != 0)
			fail_msg("%s on %s: %s", cases[i].wheel, cases[i].machine, text);
	}

	const struct hardware orin = machine("jetson-orin", "2.35", "3.10"),
			      gh200 = machine("grace-gh200", "", "");
	assert_int_equal(driver_fit(tables, &orin, "12.6"), DRIVER_TOO_OLD);
	assert_int_equal(driver_fit(tables, &gh200, "12.6"), DRIVER_OWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jetson_needs_its_own_toolkit_before_cuda_13),
		cmocka_unit_test(test_a_wheel_for_processors),
		cmocka_unit_test(test_a_wheel_for_free_threaded_python),
		cmocka_unit_test(test_a_root_helps_with_software_alone),
		cmocka_unit_test(test_a_wheel_for_gpus),
		cmocka_unit_test(test_driver_known_by_its_cuda_alone),
		cmocka_unit_test(test_gpu_target_runs_by_number_letter_and_chip),
		cmocka_unit_test(test_fatbin_choose_agrees_with_gpu_target_runs),
		cmocka_unit_test(test_orin_takes_code_for_sm80_with_newer_toolkits),
		cmocka_unit_test(test_how_far_gpu_code_reaches),
		cmocka_unit_test(test_foreign_wheels),
		cmocka_unit_test(test_what_installers_refuse),
		cmocka_unit_test(test_a_plan),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
