#include "cmd_fixture.h"

#include "base/text.h"

/* A libcuda with as many GPUs as its name says; its
 * functions are those of the real one that are asked. */
#define FAKE_CUDA                                                                                  \
	"int cuInit(unsigned f) { (void)f; return INIT; }\n"                                       \
	"int cuDriverGetVersion(int *v) { *v = 12090; return 0; }\n"                               \
	"int cuDeviceGetCount(int *n) { *n = COUNT; return 0; }\n"                                 \
	"int cuDeviceGet(int *d, int i) { *d = i; return 0; }\n"                                   \
	"int cuDeviceGetName(char *s, int n, int d) { const char *t = d ? \"NVIDIA H100\" : "      \
	"\"NVIDIA A100\"; while "                                                                  \
	"(n-- > 1 && (*s = "                                                                       \
	"*t)) s++, t++; return 0; }\n"                                                             \
	"int cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 8 + d : 0; return 0; }\n" \
	"int cuDeviceTotalMem_v2(unsigned long *b, int d) { *b = 80ul << 30; return d > 1; }\n"    \
	"int cuGetErrorName(int e, const char **s) { *s = \"CUDA_ERROR_MADE_UP\"; return e != "    \
	"803; }\n"

#define FAKE_NVML                                                                                  \
	"static void put(char *s, unsigned n, const char *t) { while (n-- > 1 && (*s = *t)) s++, " \
	"t++; }\n"                                                                                 \
	"int nvmlInit_v2(void) { return 0; }\n"                                                    \
	"int nvmlSystemGetDriverVersion(char *s, unsigned n) { put(s, n, \"575.57.08\"); return "  \
	"0; }\n"                                                                                   \
	"int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }\n"                           \
	"int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = 0; return i != 0; }\n"     \
	"int nvmlDeviceGetName(void *d, char *s, unsigned n) { (void)d; put(s, n, \"NVIDIA "       \
	"L4\"); return 0; }\n"                                                                     \
	"int nvmlDeviceGetCudaComputeCapability(void *d, int *a, int *b) { (void)d; *a = 8; *b = " \
	"9; return 0; }\n"                                                                         \
	"int nvmlDeviceGetMemoryInfo(void *d, unsigned long long *m) { (void)d; m[0] = 24ull << "  \
	"30; return 0; }\n"

static void make_library(const char *name, const char *source, const char *defines)
{
	test_write(test_path("lib/%s.c", name), source);
	assert_int_equal(
		shell(arena_printf(&ran.arena, "cc -shared -fPIC %s -o '%s' '%s'", defines,
				   test_path("lib/%s.so.1", name), test_path("lib/%s.c", name))),
		0);
}

static void make_smi(const char *line)
{
	test_write(test_path("bin/nvidia-smi"),
		   arena_printf(&ran.arena, "#!/bin/sh\necho '%s'\n", line));
	assert_int_equal(
		shell(arena_printf(&ran.arena, "chmod +x '%s'", test_path("bin/nvidia-smi"))), 0);
}

/* `ptbuild detect` on this machine with the made-up driver. */
static json_t *detect(const char *options)
{
	const char *line = arena_printf(&ran.arena,
					"LD_LIBRARY_PATH='%s' PATH='%s':\"$PATH\" "
					"CUDA_VISIBLE_DEVICES= exec \"$PTBUILD\" detect --json %s",
					test_path("lib"), test_path("bin"), options);

	if (shell(line) != 0)
		fail_msg("%s", err_text());
	return json_out();
}

static const char *text(const json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key));
}

static bool starts(const char *s, const char *with)
{
	return s && strncmp(s, with, strlen(with)) == 0;
}

static void libcuda_tells_of_gpus_and_nvml_of_the_driver(void **state)
{
	(void)state;
	make_library("libcuda", FAKE_CUDA, "-DINIT=0 -DCOUNT=2");
	make_library("libnvidia-ml", FAKE_NVML, "");
	AUTO_JSON json_t *doc = detect("");
	const json_t *machine = json_object_get(doc, "machine");
	assert_true(starts(text(doc, "profile"), "sm80+sm90-"));
	assert_string_equal(text(machine, "gpu_source"), "libcuda");
	assert_string_equal(text(machine, "driver"), "575.57.08");
	assert_string_equal(text(machine, "driver_cuda"), "12.9");
	const json_t *gpus = json_object_get(machine, "gpus");
	assert_int_equal(json_array_size(gpus), 2);
	assert_string_equal(text(json_array_get(gpus, 0), "name"), "NVIDIA A100");
	assert_string_equal(text(json_array_get(gpus, 1), "capability"), "9.0");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(gpus, 0), "memory")),
			 INT64_C(80) << 30);
	assert_true(version_cmp(text(doc, "cuda"), "13") < 0);
}

static void nvml_is_asked_where_libcuda_is_not(void **state)
{
	(void)state;
	make_library("libnvidia-ml", FAKE_NVML, "");
	AUTO_JSON json_t *doc = detect("");
	assert_true(starts(text(doc, "profile"), "sm89-"));
	assert_string_equal(text(json_object_get(doc, "machine"), "gpu_source"), "NVML");
}

static void nvidia_smi_is_asked_last(void **state)
{
	(void)state;
	make_smi("NVIDIA GeForce RTX 2080, 7.5, 8192, 560.35.03");
	AUTO_JSON json_t *doc = detect("");
	assert_true(starts(text(doc, "profile"), "sm75-"));
	assert_string_equal(text(json_object_get(doc, "machine"), "gpu_source"), "nvidia-smi");
	assert_string_equal(text(json_object_get(doc, "machine"), "driver"), "560.35.03");
}

static void a_failing_libcuda_is_a_warning(void **state)
{
	(void)state;
	make_library("libcuda", FAKE_CUDA, "-DINIT=803 -DCOUNT=0");
	make_smi("NVIDIA H100, 9.0, 81559, 550.54.15");
	AUTO_JSON json_t *doc = detect("");
	assert_true(starts(text(doc, "profile"), "sm90-"));
	assert_contains(json_string_value(json_array_get(json_object_get(doc, "warnings"), 0)),
			"error 803, CUDA_ERROR_MADE_UP");
	/* Its version is that of a compatibility library, which this driver cannot load. */
	assert_null(
		json_string_value(json_object_get(json_object_get(doc, "machine"), "driver_cuda")));
}

static void a_driver_without_a_gpu_is_told(void **state)
{
	(void)state;
	make_library("libcuda", FAKE_CUDA, "-DINIT=100 -DCOUNT=0");
	AUTO_JSON json_t *doc = detect("");
	assert_true(starts(text(doc, "profile"), "cpu-"));
	assert_int_equal(json_array_size(json_object_get(doc, "warnings")), 1);
	assert_contains(json_string_value(json_array_get(json_object_get(doc, "warnings"), 0)),
			"error 100");
}

/* A driver that is there and does not answer as one is told, whatever is wrong with it. */
static void a_driver_that_is_none_is_told(void **state)
{
	(void)state;
	static const char *const rows[][3] = {
		{FAKE_CUDA, "-DINIT=0 -DCOUNT=0", "libcuda counts no GPU"},
		{FAKE_CUDA, "-DINIT=0 -DCOUNT=-1", "libcuda counts no GPU"},
		{"int cuInit(int f) { return f; }", "", "libcuda.so.1 lacks functions"},
		{"int cuInit(int f) { return f; }", "empty", "libcuda.so.1: file too short"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		/* The images of containers keep empty files in the place of the driver's. */
		bool empty = strcmp(rows[i][1], "empty") == 0;
		make_library("libcuda", rows[i][0], empty ? "" : rows[i][1]);
		if (empty)
			test_write(test_path("lib/libcuda.so.1"), "");
		AUTO_JSON json_t *doc = detect("");
		assert_true(starts(text(doc, "profile"), "cpu-"));
		assert_int_equal(json_array_size(json_object_get(doc, "warnings")), 1);
		assert_contains(
			json_string_value(json_array_get(json_object_get(doc, "warnings"), 0)),
			rows[i][2]);
	}

	unlink(test_path("lib/libcuda.so.1"));
	make_smi("");
	assert_int_equal(shell(arena_printf(&ran.arena, "echo '#!/bin/sh' > '%s'",
					    test_path("bin/nvidia-smi"))),
			 0);
	AUTO_JSON json_t *doc = detect("");
	assert_contains(json_string_value(json_array_get(json_object_get(doc, "warnings"), 0)),
			"nvidia-smi printed nothing");
	make_library("libcuda",
		     "int cuInit(unsigned f) { return (int)f; }\nint cuDeviceGetCount(int *n) { *n "
		     "= 1; return 0; }\n"
		     "int cuDeviceGet(int *d, int i) { *d = i; return 0; }\n"
		     "int cuDeviceGetName(char *s, int n, int d) { *s = 0; return n == d; }\n"
		     "int cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 9 : d; "
		     "return 0; }\n",
		     "");
	AUTO_JSON json_t *nameless = detect("");
	assert_true(starts(text(nameless, "profile"), "sm90-"));
}

static void this_machine_gets_a_profile_that_runs(void **state)
{
	(void)state;
	assert_int_equal(ptbuild("detect"), 0);
	assert_contains(out(), "profile ");
	assert_contains(out(), "build    ptbuild --profile ");
	assert_contains(out(), "why ");
	AUTO_JSON json_t *doc = detect("");
	size_t i;
	const json_t *isa;
	bool found = false;
	json_array_foreach(json_object_get(doc, "isas"), i, isa) found |=
		strcmp(text(isa, "name"), text(doc, "isa")) == 0 &&
		json_is_true(json_object_get(isa, "runs"));
	assert_true(found);
}

static void a_machine_from_a_file(void **state)
{
	(void)state;
	assert_int_equal(ptbuild("detect --workload int8 --machine " TEST_DATA_DIR
				 "/machines/cascade-lake-t4.yaml"),
			 0);
	assert_contains(out(), "profile  sm75-avx512vnni\n");
	expect("detect --machine " TEST_DATA_DIR "/machines/nehalem-x5570.yaml", 7,
	       "no profile fits this machine");
	assert_contains(out(), "profile  none\n");
	expect("detect --machine /nowhere.yaml", 2, "/nowhere.yaml");
	expect("detect --workload fp8", 2, "unknown value 'fp8'");
	expect("detect --release 9.9", 3, "9.9");
	expect("detect sm90-avx2", 2, "has no argument");
}

/* The member "machine" of one answer is the --machine of another. */
static void the_description_travels(void **state)
{
	(void)state;
	AUTO_JSON json_t *doc = detect("--machine " TEST_DATA_DIR "/machines/dgx-spark.yaml");
	assert_contains(text(doc, "without_build"), "ptbuild slim --release ");
	assert_contains(text(doc, "without_build"), " --gpu sm121 --platform aarch64-linux");
	AUTO_FREE char *machine = json_dumps(json_object_get(doc, "machine"), 0);
	test_write(test_path("box.json"), machine);
	AUTO_JSON json_t *again =
		detect(arena_printf(&ran.arena, "--machine '%s'", test_path("box.json")));
	assert_string_equal(text(again, "profile"), "sm121-armv9");
	assert_true(json_equal(doc, again));
}

/* A plan of a native profile is that of the exact one, and says so. */
static void native_is_made_exact_in_the_plan(void **state)
{
	(void)state;
	make_library("libcuda", FAKE_CUDA, "-DINIT=0 -DCOUNT=1");
	make_library("libnvidia-ml", FAKE_NVML, "");
	const char *with = arena_printf(&ran.arena, "LD_LIBRARY_PATH='%s'", test_path("lib"));
	assert_int_equal(
		shell(arena_printf(&ran.arena,
				   "%s \"$PTBUILD\" plan --profile native --python 3.13 --json",
				   with)),
		0);
	AUTO_JSON json_t *plan = json_out();
	assert_true(starts(text(plan, "variant"), "pytorch-python313-cuda12_"));
	assert_string_equal(json_string_value(json_array_get(json_object_get(plan, "gpu"), 0)),
			    "8.0");
	assert_not_contains(out(), "march=native");
	assert_contains(json_string_value(json_array_get(json_object_get(plan, "notes"), 0)),
			"native is sm80-");
	const char *key = arena_strdup(&ran.arena, text(plan, "compile_key"));
	assert_int_equal(
		shell(arena_printf(&ran.arena, "\"$PTBUILD\" plan '%s' --release %s --json",
				   text(plan, "variant"), text(plan, "release"))),
		0);
	AUTO_JSON json_t *exact = json_out();
	assert_string_equal(text(exact, "compile_key"), key);
	assert_int_equal(
		shell(arena_printf(&ran.arena,
				   "%s \"$PTBUILD\" plan --profile cpu-native --python 3.13 --json",
				   with)),
		0);
	AUTO_JSON json_t *cpu = json_out();
	assert_true(json_is_null(json_object_get(cpu, "cuda")));
	assert_int_equal(shell(arena_printf(&ran.arena,
					    "%s \"$PTBUILD\" plan --profile native-avx2 --release "
					    "2.9.1 --cuda 12.9 --python 3.13 --json",
					    with)),
			 0);
	AUTO_JSON json_t *half = json_out();
	assert_string_equal(text(half, "variant"), "pytorch-python313-cuda12_9-sm80-avx2");
}

/* 'ptbuild slim' with the made-up driver: exit status; it
 * may fetch nothing, so what it would fetch is an error. */
static int slim(const char *options)
{
	const char *line = arena_printf(
		&ran.arena,
		"LD_LIBRARY_PATH='%s' PATH='%s':\"$PATH\" exec \"$PTBUILD\" slim --offline "
		"--cache '%s' --out '%s' --platform x86_64-linux %s",
		test_path("lib"), test_path("bin"), test_path("store"), test_path("out"), options);

	return shell(line);
}

static void test_slim_native_takes_all_gpus_and_a_release_for_the_driver(void **state)
{
	(void)state;
	make_library("libcuda", FAKE_CUDA, "-DINIT=0 -DCOUNT=2");
	make_library("libnvidia-ml", FAKE_NVML, "");
	assert_int_equal(slim("--gpu native"), ERR_NETWORK);
	assert_contains(err_text(), "native is sm80+sm90 on this machine");
	assert_contains(err_text(), " with CUDA 12.");
	assert_int_equal(slim("--gpu native,sm75"), ERR_NETWORK);
	assert_contains(err_text(), "for sm80, sm90, sm75 and this machine's driver");
	assert_int_equal(slim("--gpu sm90"), ERR_NETWORK);
	assert_contains(err_text(), " with CUDA 13.");
	assert_int_equal(slim("--gpu native --cuda 13.0"), ERR_POLICY);
	assert_contains(err_text(), "leave --cuda out: release 2.10.0 is for CUDA 12.8");
	/* The named release stays, whatever the driver. */
	assert_int_equal(slim("--gpu native --release 2.8.0"), ERR_NETWORK);
	assert_contains(err_text(), "'torch-2.8.0-");
}

static void test_slim_native_without_gpu_names_the_reason(void **state)
{
	(void)state;
	make_smi("NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver");
	assert_int_equal(slim("--gpu native"), ERR_POLICY);
	assert_contains(err_text(), "the NVIDIA driver of this machine does not work: ");
	assert_contains(err_text(), "--gpu sm89");
	make_library("libcuda", FAKE_CUDA, "-DINIT=803 -DCOUNT=0");
	assert_int_equal(slim("--gpu native"), ERR_POLICY);
	assert_contains(err_text(), "error 803, CUDA_ERROR_MADE_UP");
	unlink(test_path("lib/libcuda.so.1"));
	make_smi("Tesla K40, 3.5, 11441, 470.256.02");
	assert_int_equal(slim("--gpu native"), ERR_POLICY);
	assert_contains(err_text(), "Tesla K40 has 3.5");
	unlink(test_path("bin/nvidia-smi"));
	if (shell("command -v nvidia-smi || test -e /proc/driver/nvidia/version") == 0)
		return; /* the machine has a driver of its own */
	assert_int_equal(slim("--gpu native"), ERR_POLICY);
	assert_contains(err_text(), "this machine has no NVIDIA GPU");
	assert_contains(err_text(), "--gpu sm89");
	assert_int_equal(slim("--profile native"), ERR_USAGE);
	assert_contains(err_text(), "--gpu native");
	assert_int_equal(slim(""), ERR_USAGE);
}

static void test_doctor_env_names_gpus_that_run_and_do_not(void **state)
{
	(void)state;
	make_library("libcuda", FAKE_CUDA, "-DINIT=0 -DCOUNT=2");
	assert_int_equal(shell(arena_printf(&ran.arena, "mkdir -p '%s/site/torch-2.9.1.dist-info'",
					    test_path("env"))),
			 0);
	test_write(test_path("env/site/torch-2.9.1.dist-info/RECORD"),
		   "torch-2.9.1.dist-info/ptbuild-slim.json,,\n");
	test_write(test_path("env/site/torch-2.9.1.dist-info/ptbuild-slim.json"),
		   "{\"schema\": 1, \"gpus\": [\"9.0\"], \"release\": \"2.9.1\", \"ptbuild\": "
		   "\"0.2.0\", "
		   "\"dropped\": []}\n");
	assert_int_equal(
		shell(arena_printf(&ran.arena,
				   "LD_LIBRARY_PATH='%s' exec \"$PTBUILD\" doctor --env '%s/site'",
				   test_path("lib"), test_path("env"))),
		ERR_POLICY);
	assert_contains(out(), "code for sm90");
	assert_int_equal(occurrences(out(), "this machine's"), 2);
	assert_int_equal(occurrences(out(), "(9.0) runs it"), 1);
	assert_int_equal(occurrences(out(), "(8.0) runs none of it"), 1);
}

static int bench_on_the_gpu(const char *label, const char *other)
{
	const char *const labels[] = {label, other};
	const char *wheels[2];

	for (size_t i = 0; i < 2; i++) {
		wheels[i] = arena_strdup(
			&ran.arena,
			test_path("torch-2.9.1+%s-cp38-cp38-linux_x86_64.whl", labels[i]));
		test_write(wheels[i], "not read");
	}

	return shell(arena_printf(
		&ran.arena,
		"LD_LIBRARY_PATH='%s' exec \"$PTBUILD\" bench '%s' --against '%s' --device cuda "
		"--sandbox none --root / --offline",
		test_path("lib"), wheels[0], wheels[1]));
}

/* Before the wheels are opened, and what they pin is fetched. */
static void bench_refuses_a_wheel_without_code_for_the_gpu(void **state)
{
	(void)state;
	make_library("libcuda", FAKE_CUDA, "-DINIT=0 -DCOUNT=1");
	make_library("libnvidia-ml", FAKE_NVML, "");
	assert_int_equal(bench_on_the_gpu("cu128.sm80.avx2", "cu128.sm90.avx2"), 7);
	assert_contains(
		err_text(),
		"this machine cannot run 'torch-2.9.1+cu128.sm90.avx2-cp38-cp38-linux_x86_64.whl': "
		"it lacks code for its NVIDIA A100 (8.0)");
	assert_contains(err_text(), "its label 'cu128.sm90.avx2'");
	assert_int_equal(bench_on_the_gpu("cpu.avx2", "cu128.sm80.avx2"), 7);
	assert_contains(err_text(),
			"'torch-2.9.1+cpu.avx2-cp38-cp38-linux_x86_64.whl' has no GPU code");
	/* both have code for it, or promise nothing: the next check speaks */
	const char *const fine[] = {"cu128.sm80.avx512", "own"};
	for (size_t i = 0; i < ARRAY_LEN(fine); i++) {
		assert_int_equal(bench_on_the_gpu("cu128.sm80.avx2", fine[i]), 7);
		assert_contains(err_text(), "is for cp38, but the Python of the root");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(libcuda_tells_of_gpus_and_nvml_of_the_driver),
		T(bench_refuses_a_wheel_without_code_for_the_gpu),
		T(nvml_is_asked_where_libcuda_is_not),
		T(nvidia_smi_is_asked_last),
		T(a_failing_libcuda_is_a_warning),
		T(a_driver_without_a_gpu_is_told),
		T(a_driver_that_is_none_is_told),
		T(this_machine_gets_a_profile_that_runs),
		T(a_machine_from_a_file),
		T(the_description_travels),
		T(native_is_made_exact_in_the_plan),
		T(test_slim_native_takes_all_gpus_and_a_release_for_the_driver),
		T(test_slim_native_without_gpu_names_the_reason),
		T(test_doctor_env_names_gpus_that_run_and_do_not),
	};

	return cmocka_run_group_tests_name("cmd/detect", tests, NULL, NULL);
}
