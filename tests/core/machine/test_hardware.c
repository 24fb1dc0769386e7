#include "compile.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/sys/json.h"
#include "base/sys/proc.h"
#include "core/machine/hardware.h"
#include "shipped.h"

static struct arena shared;
static const struct hardware_facts *facts;

static int load_facts(void **state)
{
	(void)state;
	struct err e = {0};
	assert_ok(hardware_facts_load(PROFILES_DIR, &shared, &facts, &e), &e);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	arena_release(&shared);
	return 0;
}

/* ---- what the operating system prints ---- */

static void cpuinfo_of_x86(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware_cpu cpu = {.name = "", .vendor = ""};
	hardware_parse_cpuinfo("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: "
			       "23\nmodel\t\t: 113\nmodel "
			       "name\t: AMD Ryzen 9 3950X\n"
			       "stepping\t: 0\nflags\t\t: fpu sse2 avx2\n\nprocessor\t: "
			       "1\nvendor_id\t: Other\ncpu "
			       "family\t: 6\nmodel\t\t: 1\n"
			       "flags\t\t: fpu\n",
			       &a, &cpu);
	assert_string_equal(cpu.vendor, "AuthenticAMD");
	assert_string_equal(cpu.name, "AMD Ryzen 9 3950X");
	assert_int_equal(cpu.family, 23);
	assert_int_equal(cpu.model, 113);
	assert_int_equal(cpu.stepping, 0);
	assert_int_equal(cpu.flags.count, 3);
	assert_int_equal(cpu.cores.count, 0);
}

static void cpuinfo_of_two_kinds_of_arm_cores(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware_cpu cpu = {.name = "", .vendor = ""};
	hardware_parse_cpuinfo("processor\t: 0\nFeatures\t: fp asimd sve\nCPU implementer\t: "
			       "0x41\nCPU architecture: 8\nCPU part\t: "
			       "0xd87\n\n"
			       "processor\t: 1\nFeatures\t: fp asimd sve\nCPU implementer\t: "
			       "0x41\nCPU part\t: 0xd85\n\n"
			       "processor\t: 2\nCPU implementer\t: 0x41\nCPU part\t: 0xd87\n",
			       &a, &cpu);
	assert_int_equal(cpu.cores.count, 2);
	assert_string_equal(cpu.cores.items[0], "0x41:0xd87");
	assert_string_equal(cpu.cores.items[1], "0x41:0xd85");
	assert_int_equal(cpu.flags.count, 3);
}

static void odd_cpuinfo_gives_nothing(void **state)
{
	(void)state;
	static const char *const texts[] = {"",
					    "\n\n",
					    ":",
					    "flags",
					    "flags:",
					    "CPU part\t: 0xd40\n",
					    "model : : :\nfamily",
					    "\xff\xfe\n:"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		AUTO_ARENA struct arena a = {0};
		struct hardware_cpu cpu = {.name = "", .vendor = ""};
		hardware_parse_cpuinfo(texts[i], &a, &cpu);
		assert_int_equal(cpu.flags.count, 0);
		assert_int_equal(cpu.cores.count, 0);
	}
}

static void driver_versions_of_the_kernel(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	assert_string_equal(hardware_parse_driver("NVRM version: NVIDIA UNIX x86_64 Kernel Module  "
						  "535.183.01  Sun May 12 19:39:15 UTC 2024\n"
						  "GCC version:  gcc version 12.2.0\n",
						  &a),
			    "535.183.01");
	assert_string_equal(hardware_parse_driver("NVRM version: NVIDIA UNIX Open Kernel Module "
						  "for x86_64  575.57.08  Release Build  (dvs)\n",
						  &a),
			    "575.57.08");
	assert_string_equal(hardware_parse_driver("", &a), "");
	assert_string_equal(hardware_parse_driver("NVRM version: none", &a), "");
}

/* ---- what the GPU's libraries and programs say ---- */

static struct hardware empty(void)
{
	return (struct hardware){.platform = "x86_64-linux",
				 .cpu = {.name = "", .vendor = ""},
				 .driver = "",
				 .driver_cuda = "",
				 .gpu_source = "",
				 .gpu_trouble = ""};
}

static void answers_of_the_child(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware h = empty();
	hardware_take_answers(
		"cuda 12.9\ngpu NVIDIA H200\t9.0\t151000000000\ngpu NVIDIA A100\t8.0\nsource "
		"libcuda\ndriver 575.57.08\n",
		&a, &h);
	assert_int_equal(h.gpu_count, 2);
	assert_string_equal(h.gpus[0].name, "NVIDIA H200");
	assert_string_equal(h.gpus[0].capability, "9.0");
	assert_int_equal(h.gpus[0].memory, 151000000000);
	assert_int_equal(h.gpus[1].memory, 0);
	assert_string_equal(h.driver_cuda, "12.9");
	assert_string_equal(h.driver, "575.57.08");
	assert_string_equal(h.gpu_source, "libcuda");
}

static void broken_answers_are_passed_over(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware h = empty();
	hardware_take_answers("gpu\ngpu \ngpu X\ngpu X\t90\ngpu X\t9.00\ngpu X\t9.\ngpu "
			      "X\tnine\t1\ndriver abc\ncuda "
			      "\nnonsense 1\ngpu \t9.0\n",
			      &a, &h);
	assert_int_equal(h.gpu_count, 0);
	assert_string_equal(h.driver, "");
	assert_string_equal(h.driver_cuda, "");
}

static void answers_of_nvidia_smi(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware h = empty();
	hardware_take_smi(
		"NVIDIA GeForce RTX 3090, 8.6, 24576, 580.82.09\nTesla T4, 7.5, 15360, 580.82.09\n",
		&a, &h);
	assert_int_equal(h.gpu_count, 2);
	assert_string_equal(h.gpus[0].name, "NVIDIA GeForce RTX 3090");
	assert_int_equal(h.gpus[0].memory, UINT64_C(24576) << 20);
	assert_string_equal(h.gpus[1].capability, "7.5");
	assert_string_equal(h.driver, "580.82.09");
	assert_string_equal(h.gpu_source, "nvidia-smi");
	struct hardware spark = empty(); /* memory of the processor and the GPU is one */
	hardware_take_smi("NVIDIA GB10, 12.1, [N/A], 580.95.05\n", &a, &spark);
	assert_int_equal(spark.gpu_count, 1);
	assert_string_equal(spark.gpus[0].capability, "12.1");
	assert_int_equal(spark.gpus[0].memory, 0);
	struct hardware none = empty();
	hardware_take_smi("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
			  "driver.\nField "
			  "\"compute_cap\" is not "
			  "valid\n, , ,\n",
			  &a, &none);
	assert_int_equal(none.gpu_count, 0);
	assert_string_equal(none.gpu_source, "");
	assert_contains(none.gpu_trouble,
			"nvidia-smi: NVIDIA-SMI has failed because it couldn't communicate");
	assert_contains(none.gpu_trouble, "\"compute_cap\" is not valid");
}

static void child_that_dies(int fd, const struct hardware_facts *f)
{
	(void)f;
	assert_true(write(fd, "driver 550.54.15\n", 17) == 17);
	raise(SIGKILL);
}

static void child_that_hangs(int fd, const struct hardware_facts *f)
{
	(void)f;
	assert_true(write(fd, "gpu NVIDIA A10\t8.6\t1\n", 21) == 21);
	pause();
}

static void child_that_talks_too_much(int fd, const struct hardware_facts *f)
{
	(void)f;
	char line[1000];
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	for (int i = 0; i < 3000; i++)
		assert_true(write(fd, line, sizeof(line)) > 0);
}

static void child_that_dies_once(int fd, const struct hardware_facts *f)
{
	(void)f;
	if (mkdir(test_path("asked"), 0755) == 0)
		raise(SIGKILL);
	assert_true(write(fd, "gpu NVIDIA A10\t8.6\t1\n", 21) == 21);
}

static void a_driver_that_dies_or_hangs_does_no_harm(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware h = empty();
	struct err e = {0};
	assert_ok(hardware_ask_child(
			  &(struct hardware_question){child_that_dies, facts, 10000, test_run()},
			  &a, &h, &e),
		  &e);
	assert_string_equal(h.driver, "550.54.15");
	assert_contains(h.gpu_trouble, "died with signal 9");
	h = empty();
	test_dir();
	assert_ok(hardware_ask_child(&(struct hardware_question){child_that_dies_once, facts, 10000,
								 test_run()},
				     &a, &h, &e),
		  &e);
	assert_string_equal(h.gpu_trouble, "");
	assert_int_equal(h.gpu_count, 1);
	h = empty();
	assert_ok(hardware_ask_child(
			  &(struct hardware_question){child_that_hangs, facts, 300, test_run()}, &a,
			  &h, &e),
		  &e);
	assert_contains(h.gpu_trouble, "did not answer");
	assert_int_equal(h.gpu_count, 1);
	h = empty();
	assert_ok(hardware_ask_child(&(struct hardware_question){child_that_talks_too_much, facts,
								 10000, test_run()},
				     &a, &h, &e),
		  &e);
	assert_string_equal(h.gpu_trouble, "");
	assert_int_equal(h.gpu_count, 0);
}

/* ---- drivers made for the test ---- */

#define CUDA                                                                                       \
	"#include <stddef.h>\n#include <string.h>\n"                                               \
	"int cuInit(unsigned f) { return f; }\n"                                                   \
	"int cuDriverGetVersion(int *v) { *v = 12080; return 0; }\n"                               \
	"int cuDeviceGetCount(int *n) { *n = 1; return 0; }\n"                                     \
	"int cuDeviceGet(int *d, int i) { *d = i; return 0; }\n"                                   \
	"int cuDeviceGetName(char *s, int n, int d) { strncpy(s, \"Made L4\", n); return d; }\n"   \
	"int cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 8 : 9; return d; }\n"     \
	"int cuDeviceTotalMem_v2(size_t *n, int d) { *n = 1 << 20; return d; }\n"

/* LOST: the error for each handle but the last; INIT: that
 * of the start. Whoever uses the lost one's handle dies. */
#define NVML                                                                                       \
	"#include <stdlib.h>\n#include <string.h>\n"                                               \
	"static int good;\n"                                                                       \
	"static int of(void *d) { if (d != &good) abort(); return 0; }\n"                          \
	"int nvmlInit_v2(void) { return INIT; }\n"                                                 \
	"int nvmlSystemGetDriverVersion(char *s, unsigned n) { strncpy(s, \"570.86.10\", n); "     \
	"return 0; }\n"                                                                            \
	"int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }\n"                           \
	"int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { if (i == 1) *d = &good; "       \
	"return i ? 0 : LOST; }\n"                                                                 \
	"int nvmlDeviceGetName(void *d, char *s, unsigned n) { strncpy(s, \"Made T4\", n); "       \
	"return of(d); }\n"                                                                        \
	"int nvmlDeviceGetCudaComputeCapability(void *d, int *a, int *b) { *a = 7; *b = 5; "       \
	"return of(d); }\n"                                                                        \
	"int nvmlDeviceGetMemoryInfo(void *d, unsigned long long *m) { m[0] = 1 << 30; return "    \
	"of(d); }\n"                                                                               \
	"const char *nvmlErrorString(int e) { return e == 15 ? \"GPU is lost\" : \"made error\"; " \
	"}\n"

/* The loader finds a driver of this machine before any that a test puts into a directory. */
static bool has_driver(void)
{
	bool has = dlopen("libcuda.so.1", RTLD_NOW) || dlopen("libnvidia-ml.so.1", RTLD_NOW);

	if (has)
		print_message("NOT RUN: this machine has an NVIDIA driver of its own\n");
	return has;
}

/* What the libraries in one place of the table say. */
static struct hardware ask_in(const char *place, struct arena *a)
{
	struct hardware_facts own = *facts;
	struct hardware h = empty();
	struct err e = {0};

	own.driver_places = &place;
	own.driver_places_count = 1;
	assert_ok(hardware_ask_child(
			  &(struct hardware_question){hardware_gpu_child, &own, 20000, test_run()},
			  a, &h, &e),
		  &e);
	return h;
}

static const char *const places[] = {
	"/usr/lib/wsl/lib",
	"/usr/local/nvidia/lib64",
	"/run/opengl-driver/lib",
	"/var/lib/snapd/lib/gl/made",
	"/usr/lib/x86_64-linux-gnu/GL/nvidia-580-95-05/lib",
	"/usr/lib/aarch64-linux-gnu/nvidia",
	"/usr/lib/aarch64-linux-gnu/tegra",
	"/usr/lib/x86_64-linux-gnu/nvidia/current",
};

/* Each lies below the test's directory; the rows of the table are put before that as well. */
static void drivers_where_distributions_put_them(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	if (has_driver())
		return;
	test_dir();
	compile("libcuda.so.1", CUDA, "-shared -fPIC");
	struct hardware_facts below = *facts;
	below.driver_places = arena_array(&a, facts->driver_places_count, sizeof(char *));
	for (unsigned i = 0; i < facts->driver_places_count; i++)
		below.driver_places[i] =
			arena_printf(&a, "%s/at%s", test_path("."), facts->driver_places[i]);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct hardware h = empty();
		struct err e = {0};
		must("rm -rf at && mkdir -p at%s && cp libcuda.so.1 at%s", places[i], places[i]);
		assert_ok(hardware_ask_child(&(struct hardware_question){hardware_gpu_child, &below,
									 20000, test_run()},
					     &a, &h, &e),
			  &e);
		if (h.gpu_count != 1)
			fail_msg("%s: not found (%s)", places[i], h.gpu_trouble);
		assert_string_equal(h.gpus[0].capability, "8.9");
		assert_string_equal(h.gpu_source, "libcuda");
		assert_string_equal(h.driver_cuda, "12.8");
	}

	must("rm -rf at && mkdir -p at/opt/nvidia && cp libcuda.so.1 at/opt/nvidia");
	struct hardware h = empty();
	struct err e = {0};
	assert_ok(hardware_ask_child(&(struct hardware_question){hardware_gpu_child, &below, 20000,
								 test_run()},
				     &a, &h, &e),
		  &e);
	assert_int_equal(h.gpu_count, 0);
}

static void errors_of_nvml_are_above_zero(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	if (has_driver())
		return;
	test_dir();
	compile("one/libnvidia-ml.so.1", NVML, "-shared -fPIC -DINIT=0 -DLOST=15");
	struct hardware h = ask_in(test_path("one"), &a);
	assert_string_equal(h.gpu_trouble, "GPU 0 of 2: NVML returned error 15, GPU is lost");
	assert_int_equal(h.gpu_count, 1);
	assert_string_equal(h.gpus[0].name, "Made T4");
	assert_string_equal(h.gpus[0].capability, "7.5");
	assert_string_equal(h.gpu_source, "NVML");
	assert_string_equal(h.driver, "570.86.10");

	compile("two/libnvidia-ml.so.1", NVML, "-shared -fPIC -DINIT=18 -DLOST=0");
	h = ask_in(test_path("two"), &a);
	assert_string_equal(h.gpu_trouble, "NVML returned error 18, made error");
	assert_int_equal(h.gpu_count, 0);

	/* libcuda passes a lost GPU over: it is told all the same, and the other is listed once. */
	compile("one/libcuda.so.1", CUDA, "-shared -fPIC");
	h = ask_in(test_path("one"), &a);
	assert_contains(h.gpu_trouble, "GPU is lost");
	assert_int_equal(h.gpu_count, 1);
	assert_string_equal(h.gpus[0].name, "Made L4");
}

/* ---- the facts ---- */

static void implied_features_are_followed(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist all = {0};
	static const char *const names[] = {"avx512_vnni", "made_up"};
	hardware_closure(facts, names, ARRAY_LEN(names), &a, &all);
	assert_true(strlist_contains(&all, "avx512f"));
	assert_true(strlist_contains(&all, "avx2"));
	assert_true(strlist_contains(&all, "f16c"));
	assert_true(strlist_contains(&all, "popcnt"));
	assert_true(strlist_contains(&all, "made_up"));
	assert_false(strlist_contains(&all, "avx512bw"));
}

static const char *kind_of(const struct hardware_cpu *cpu, struct arena *a)
{
	const struct processor_row *const *rows;
	return hardware_processors(facts, cpu, a, &rows) ? rows[0]->name : "";
}

static void processors_are_told_by_their_numbers(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware_cpu cpu = {
		.vendor = "GenuineIntel", .family = 6, .model = 85, .stepping = 4};
	assert_string_equal(kind_of(&cpu, &a), "Skylake-SP");
	cpu.stepping = 7;
	assert_string_equal(kind_of(&cpu, &a), "Cascade Lake");
	cpu.stepping = 11;
	assert_string_equal(kind_of(&cpu, &a), "Cooper Lake");
	cpu.stepping = 15;
	assert_string_equal(kind_of(&cpu, &a), "");
	cpu = (struct hardware_cpu){.vendor = "AuthenticAMD", .family = 25, .model = 24};
	assert_string_equal(kind_of(&cpu, &a), "Zen 4");
	cpu.model = 33;
	assert_string_equal(kind_of(&cpu, &a), "Zen 3");
	strlist_ref(&cpu.cores, &a, "0x41:0xd40");
	assert_string_equal(kind_of(&cpu, &a), "Neoverse V1");
}

static void wrong_facts(const char *features, const char *processors, const char *text)
{
	AUTO_ARENA struct arena a = {0};
	const struct hardware_facts *f;
	struct err e = {0};

	test_dir();
	test_write(test_path("cpu.yaml"),
		   arena_printf(&a, "features:\n%sprocessors:\n%s", features, processors));
	assert_err(hardware_facts_load(test_path("."), &a, &f, &e), &e, ERR_CONFIG, text);
}

#define GOOD_FEATURE "  - {name: avx, cpuid: 1.0.ecx.28}\n"
#define GOOD_PROCESSOR "  - {name: P, vendor: V, family: \"6\", models: [\"1\"]}\n"

static void wrong_facts_are_refused_with_their_line(void **state)
{
	(void)state;
	wrong_facts(GOOD_FEATURE GOOD_FEATURE, GOOD_PROCESSOR, "cpu.yaml:3: 'avx' is there twice");
	wrong_facts("  - {name: x, cpuid: 7.0.exx.1}\n", GOOD_PROCESSOR,
		    "leaf.subleaf.register.bit");
	wrong_facts("  - {name: x, cpuid: 7.0.ebx.32}\n", GOOD_PROCESSOR,
		    "leaf.subleaf.register.bit");
	wrong_facts("  - {name: x, cpuid: 7.0.ebx.3x}\n", GOOD_PROCESSOR,
		    "leaf.subleaf.register.bit");
	wrong_facts("  - {name: x, state: \"6\"}\n", GOOD_PROCESSOR, "'state'");
	wrong_facts("  - {name: x, hwcap: \"64\"}\n", GOOD_PROCESSOR, "auxiliary vector");
	wrong_facts("  - {name: x, implies: [y]}\n", GOOD_PROCESSOR,
		    "implies a feature that no row has");
	wrong_facts("  - {name: x, leaf: 7}\n", GOOD_PROCESSOR, "unknown key 'leaf'");
	wrong_facts(GOOD_FEATURE, "  - {name: P, vendor: V}\n", "cpu.yaml:4: 'P' needs");
	wrong_facts(GOOD_FEATURE,
		    "  - {name: P, vendor: V, family: \"6\", models: [\"1\"], part: \"0x1\"}\n",
		    "needs");
	wrong_facts(GOOD_FEATURE, "  - {name: P, vendor: V, family: \"6\", models: [\"9-1\"]}\n",
		    "a model that is neither");
	wrong_facts(GOOD_FEATURE, "  - {name: P, vendor: V, family: \"x\", models: [\"1\"]}\n",
		    "not a number in its range");
	wrong_facts(GOOD_FEATURE,
		    "  - {name: P, vendor: V, family: \"6\", models: [\"1\"], steppings: \"a\"}\n",
		    "steppings");
	wrong_facts(GOOD_FEATURE,
		    "  - {name: P, implementer: \"0x41\", part: \"0x1\", distrust: [sse9]}\n",
		    "distrusts");
}

/* The macros that flags switch on, beyond the compiler's defaults,
 * one a line; "" when the compiler does not know the target. */
static void macros_of(const char *compiler, const char *target, const struct isa_row *isa,
		      struct buf *out, struct arena *a)
{
	struct err e = {0};
	struct strlist flags = {0};

	for (unsigned i = 0; i < isa->flags_count; i++)
		strlist_ref(&flags, a, isa->flags[i]);
	const char *script = arena_printf(
		a,
		"d=$(mktemp -d) && %s %s -dM -E - </dev/null | sort >$d/base && %s %s %s -dM "
		"-E - </dev/null | sort >$d/with && "
		"comm -13 $d/base $d/with | cut -d' ' -f2; rm -rf $d",
		compiler, target, compiler, target, strlist_join(&flags, a, " "));
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	assert_ok(proc_capture(argv, test_run(), out, &e), &e);
	assert_true(out->len > 0);
	buf_addc(out, '\n');
}

static bool is_line(const char *text, const char *line)
{
	size_t n = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at += n)
		if ((at == text || at[-1] == '\n') && (at[n] == '\n' || !at[n]))
			return true;
	return false;
}

/* What a compiler may use, by its own word, is what a machine must have by the table's. */
static void isa_rows_name_all_that_their_flags_switch_on(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped_tables(&a);
	size_t checked = 0;
	for (unsigned i = 0; i < t->isas_count; i++) {
		const struct isa_row *isa = &t->isas[i];
		bool x86 = strcmp(isa->platform, "x86_64-linux") == 0;
		AUTO_BUF struct buf macros = {0};
		struct strlist needs = {0};
		macros_of("clang", x86 ? "-target x86_64-linux-gnu" : "-target aarch64-linux-gnu",
			  isa, &macros, &a);
#ifdef __x86_64__
		if (x86)
			macros_of("gcc", "", isa, &macros, &a);
#endif
		hardware_closure(facts, isa->cpuinfo, isa->cpuinfo_count, &a, &needs);
		for (unsigned k = 0; k < facts->features_count; k++)
			for (unsigned m = 0; m < facts->features[k].macros_count; m++) {
				const struct feature_row *f = &facts->features[k];
				if (!is_line(buf_cstr(&macros), f->macros[m]))
					continue;
				checked++;
				if (!strlist_contains(&needs, f->name))
					fail_msg("%s: its flags switch %s on (%s), its cpuinfo "
						 "does not ask for it",
						 isa->name, f->name, f->macros[m]);
			}
	}

	assert_true(checked > 40);
}

/* ---- this machine ---- */

/* A script of that name, as version managers have them, says nothing. */
static void a_python_is_a_program(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_FREE char *path = strdup(getenv("PATH"));
	struct strlist found = {0};
	test_dir();
	test_write(test_path("python3.98"), "#!/bin/sh\nexit 127\n");
	chmod(test_path("python3.98"), 0755);
	assert_int_equal(symlink("/usr/bin/python3", test_path("python3.99")), 0);
	setenv("PATH", test_path("."), 1);
	hardware_find_pythons(&a, &found);
	setenv("PATH", path, 1);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.items[0], "3.99");
}

static void this_machine_tells_the_same_twice(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware h, again;
	struct err e = {0};
	assert_ok(hardware_read(facts, true, test_run(), &a, &h, &e), &e);
	assert_true(h.processors > 0 && h.memory > 0);
	assert_true(h.cpu.flags.count > 0);
	assert_string_equal(h.glibc, gnu_get_libc_version());
	assert_true(h.pythons.count > 0);
	AUTO_FREE char *cpuinfo = NULL;
	AUTO_BUF struct buf text = {0};
	static const char *const argv[] = {"/bin/cat", "/proc/cpuinfo", NULL};
	assert_ok(proc_capture(argv, test_run(), &text, &e), &e);
	cpuinfo = strdup(buf_cstr(&text));
	for (size_t i = 0; i < h.cpu.probed.count; i++) /* CPUID and the kernel agree */
		assert_contains(cpuinfo, h.cpu.probed.items[i]);
	assert_true(!h.cpu.probed_known || h.cpu.probed.count > 3);
	AUTO_JSON json_t *j = hardware_json(&h);
	AUTO_FREE char *dump = json_dumps(j, 0);
	test_dir();
	test_write(test_path("m.json"), dump);
	assert_ok(hardware_load(test_path("m.json"), &a, &again, &e), &e);
	AUTO_JSON json_t *k = hardware_json(&again);
	assert_true(json_equal(j, k));
}

static void a_cancelled_run_is_noticed(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware h;
	struct err e = {0};
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	struct run run = *test_run();
	run.cancel_fd = ends[0];
	assert_err(hardware_read(facts, true, &run, &a, &h, &e), &e, ERR_INTERRUPTED,
		   "interrupted");
	close(ends[0]);
	close(ends[1]);
}

/* ---- descriptions ---- */

static void wrong_machine(const char *text, const char *part)
{
	AUTO_ARENA struct arena a = {0};
	struct hardware h;
	struct err e = {0};

	test_dir();
	test_write(test_path("m.yaml"), text);
	assert_err(hardware_load(test_path("m.yaml"), &a, &h, &e), &e, ERR_CONFIG, part);
}

#define CPU "platform: x86_64-linux\ncpu: {flags: avx}\n"

static void wrong_descriptions_are_refused_with_their_line(void **state)
{
	(void)state;
	wrong_machine("platform: x86_64-linux\n", "missing key 'cpu'");
	wrong_machine("platform: riscv64-linux\ncpu: {flags: v}\n",
		      "m.yaml:1: 'riscv64-linux' is not a platform");
	wrong_machine(CPU "memory: 64X\n", "m.yaml:3: 'memory': not a size: '64X'");
	wrong_machine(CPU "memory: \"-1\"\n", "not a size");
	wrong_machine(CPU "memory: 99999999999T\n", "not a size");
	wrong_machine(CPU "driver: new\n", "'new' is not a driver version");
	wrong_machine(CPU "glibc: x\n", "'x' is not a version of glibc");
	wrong_machine(CPU "pythons: 3.11 zz\n", "'zz' is not a Python like 3.13");
	wrong_machine(CPU "pythons: 3.13d\n", "'3.13d' is not a Python like 3.13");
	wrong_machine(CPU "driver_cuda: twelve\n", "not a CUDA version");
	wrong_machine(CPU "gpus: [{name: X, capability: \"90\"}]\n",
		      "'90' is not a compute capability");
	wrong_machine(CPU "gpus: [{name: X, capability: 9.0, memory: big}]\n",
		      "m.yaml:3: 'memory': not a size: 'big'");
	wrong_machine(CPU "gpu: none\n", "unknown key 'gpu'");
	wrong_machine("platform: aarch64-linux\ncpu: {flags: sve, cores: [\"0x41\"]}\n",
		      "implementer and part");
	wrong_machine("platform: aarch64-linux\ncpu: {flags: sve, cores: [\"0x41:0xffff\"]}\n",
		      "implementer and part");
	wrong_machine("platform: x86_64-linux\ncpu: {flags: avx, xcr0: 0xzz}\n", "hexadecimal");
	wrong_machine("[]", "are expected at the top");
	wrong_machine("", "m.yaml");
}

static void a_missing_feature_says_why(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct hardware h = empty();
	strlist_ref(&h.cpu.flags, &a, "avx512f");
	assert_null(hardware_missing(facts, &h, "avx512f", &a));
	assert_contains(hardware_missing(facts, &h, "avx2", &a), "does not list it");
	h.cpu.probed_known = true;
	assert_contains(hardware_missing(facts, &h, "avx512f", &a),
			"the processor does not show it");
	strlist_ref(&h.cpu.probed, &a, "avx512f");
	strlist_ref(&h.cpu.probed, &a, "avx2");
	assert_null(hardware_missing(facts, &h, "avx512f", &a));
	assert_contains(hardware_missing(facts, &h, "avx2", &a),
			"the operating system does not list it");
	h.cpu.xcr0_known = true;
	h.cpu.xcr0 = 0x7;
	assert_contains(hardware_missing(facts, &h, "avx512f", &a), "XCR0 is 0x7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpuinfo_of_x86),
		cmocka_unit_test(cpuinfo_of_two_kinds_of_arm_cores),
		cmocka_unit_test(odd_cpuinfo_gives_nothing),
		cmocka_unit_test(driver_versions_of_the_kernel),
		cmocka_unit_test(answers_of_the_child),
		cmocka_unit_test(broken_answers_are_passed_over),
		cmocka_unit_test(answers_of_nvidia_smi),
		cmocka_unit_test_teardown(a_driver_that_dies_or_hangs_does_no_harm, test_teardown),
		cmocka_unit_test_teardown(drivers_where_distributions_put_them, test_teardown),
		cmocka_unit_test_teardown(errors_of_nvml_are_above_zero, test_teardown),
		cmocka_unit_test(implied_features_are_followed),
		cmocka_unit_test(processors_are_told_by_their_numbers),
		cmocka_unit_test_teardown(wrong_facts_are_refused_with_their_line, test_teardown),
		cmocka_unit_test(isa_rows_name_all_that_their_flags_switch_on),
		cmocka_unit_test_teardown(a_python_is_a_program, test_teardown),
		cmocka_unit_test_teardown(this_machine_tells_the_same_twice, test_teardown),
		cmocka_unit_test(a_cancelled_run_is_noticed),
		cmocka_unit_test_teardown(wrong_descriptions_are_refused_with_their_line,
					  test_teardown),
		cmocka_unit_test(a_missing_feature_says_why),
	};

	return cmocka_run_group_tests_name("core/hardware", tests, load_facts, unload);
}
