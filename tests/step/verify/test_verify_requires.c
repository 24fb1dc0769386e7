#include "foreign_fixture.h"

#define LINUX "-py3-none-manylinux_2_17_x86_64.whl"
#define CP313 "-cp313-cp313-manylinux_2_17_x86_64.whl"
#define F "int cudaGetDevice(int *d) { return *d; }"
#define G "int cudaGetDevice(int *); int g(void) { int d = 0; return cudaGetDevice(&d); }"

static struct verify_request request_of(const char *wheel)
{
	static struct arena rows;
	return (struct verify_request){.wheel = wheel, .tables = shipped_tables(&rows)};
}

static const char *wheel_with(const char *name, const char *metadata)
{
	return wheel_by(name, &(struct maker){.metadata = metadata});
}

static struct verify_report judge(const char *name, const char *metadata)
{
	test_write(file("p/__init__.py"), "");
	return verify_with(request_of(wheel_with(name, metadata)));
}

static void add_with(struct verify_request *q, const char *wheel)
{
	struct wheel_name n;

	q->with = arena_room(&arena, q->with, q->with_count, &q->with_cap, 4, sizeof(*q->with));
	assert_ok(dist_of_wheel(wheel, &arena, &q->with[q->with_count++], &err), &err);
	assert_ok(wheel_name_parse(wheel, &arena, &n, &err), &err);
	strlist_ref(&q->given, &arena, wheel_normalize(n.dist, &arena));
}

/* The first is verified with the second beside it; both have METADATA. */
static struct verify_report judge_pair(const char *name, const char *metadata, const char *other,
				       const char *its)
{
	test_dir();
	test_write(file("p/__init__.py"), "");
	struct verify_request q = request_of(wheel_with(name, metadata));
	unlink(file("p/__init__.py"));
	test_write(file("q/__init__.py"), "");
	add_with(&q, wheel_with(other, its));
	return verify_with(q);
}

static bool has(const struct verify_report *r, const char *rule)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->findings[i].rule, rule) == 0)
			return true;
	return false;
}

static void test_requires_python_excludes_the_tag(void **state)
{
	(void)state;
	struct verify_report r = judge("p-1" CP313, "Requires-Python: >=3.9,<3.13\n");
	assert_only_error(&r, "metadata", "METADATA", "<3.13");
	r = judge("p-1" CP313, "Requires-Python: >=3.9,<3.14\n");
	assert_false(has(&r, "metadata"));
	r = judge("p-1-cp312.cp313-none-any.whl", "Requires-Python: <3.13\n");
	assert_found(&r, FINDING_WARNING, "metadata", "METADATA", "excludes 3.13");
	r = judge("p-1-cp38-abi3"
		  "-manylinux_2_17_x86_64.whl",
		  "Requires-Python: >=3.11\n");
	assert_false(has(&r, "metadata"));
	r = judge("p-1-py3-none-any.whl", "Requires-Python: >=3.11\n");
	assert_false(has(&r, "metadata"));
	r = judge("p-1-py2-none-any.whl", "Requires-Python: <3\n");
	assert_false(has(&r, "metadata"));
}

static void test_direct_references(void **state)
{
	(void)state;
	struct verify_report r =
		judge("p-1" LINUX, "Requires-Dist: torch @ file:///home/me/torch-2.6.0.whl\n");
	assert_only_error(&r, "metadata", "METADATA", "file:///home/me");
	r = judge("p-1" LINUX,
		  "Requires-Dist: torch @ https://h/torch.whl ; python_version > '3.8'\n");
	assert_found(&r, FINDING_WARNING, "metadata", "METADATA", "https://h/torch.whl");
	assert_int_equal(r.errors, 0);
}

static void test_label_names_another_torch(void **state)
{
	(void)state;
	static const struct {
		const char *version, *line;
		bool differs;
	} rows[] = {
		{"1+torch2.6", "torch==2.4", true},
		{"1+torch2.6", "torch==2.6.0", false},
		{"1+torch2.6", "torch>=2.4", false},
		{"1+torch2.6", "torch<2.6", true},
		{"1+torch2.6", "torch~=2.4.0", true},
		{"1+torch2.6", "Torch==2.4; python_version < '3'", false},
		{"1+pt26cu124", "torch==2.4.*", true},
		{"1+cu12torch2.11cxx11abitrue", "torch==2.1.1", true},
		{"1+cu12torch2.11cxx11abitrue", "torch==2.11.0", false},
		{"1+cpu.avx2.torch291", "torch==2.9.1+cpu.avx2", false},
		{"1+cpu.avx2.torch291", "torch==2.8.0+cpu.avx2", true},
		{"1+cu130.sm90.torch2130plain", "torch==2.13.0", false},
		{"1+cu130.sm90.torch2130plain", "torch==2.12.1", true},
		{"1+torch210", "torch==2.10.0", false},
		{"1+cpu", "torch==2.6.0+cu124", true},
		{"1+cu124", "torch==2.6.0+cu126", false},
		{"1+cu124", "nvidia-cublas-cu11", true},
		{"1+cu124", "nvidia-cublas-cu12", false},
		{"1+cu130", "cuda-toolkit[cudart]==12.8.1", true},
		{"1+cu124", "cuda-toolkit[cudart]==13.*", true},
		{"1+cu124", "cuda-toolkit>=13", true},
		{"1+cu124", "cuda-toolkit~=13.0", true},
		{"1+cu124", "nvidia-cuda-runtime<14,>=13", true},
		{"1+cu124", "cuda-toolkit<13,>=12.4", false},
		{"1+cu132", "cuda-toolkit>=12", false},
		{"1+cu132", "cuda-toolkit", false},
		{"1+cpu", "cuda-toolkit>=12", true},
		{"1+opt2", "torch==2.4", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct verify_report r =
			judge(arena_printf(&arena, "p-%s" LINUX, rows[i].version),
			      arena_printf(&arena, "Requires-Dist: %s\n", rows[i].line));
		if (r.warnings != rows[i].differs)
			fail_msg("%s, %s: %s", rows[i].version, rows[i].line,
				 verify_text(&r, &arena));
	}
}

static void test_requirements_that_no_version_meets(void **state)
{
	(void)state;
	static const struct {
		const char *lines;
		bool refused;
	} rows[] = {
		{"Requires-Dist: torch>=2.5\nRequires-Dist: torch<2.4\n", true},
		{"Requires-Dist: torch>=2.5,<2.4\n", true},
		{"Requires-Dist: torch==2.5\nRequires-Dist: Torch!=2.5.*\n", true},
		{"Requires-Dist: torch>=2.5\nRequires-Dist: torch<2.6\n", false},
		{"Requires-Dist: torch>=2.5\nRequires-Dist: torch==2.5.*\n", false},
		{"Requires-Dist: torch>=2.5; python_version<'3.10'\n"
		 "Requires-Dist: torch<2.4; python_version>='3.10'\n",
		 false},
		{"Requires-Dist: torch>=2.5\nRequires-Dist: torch<2.4; sys_platform=='win32'\n",
		 false},
		{"Requires-Dist: torch>=2.5\nRequires-Dist: torch<2.4; extra=='old'\n", false},
		{"Requires-Dist: torch>=2.5\nRequires-Dist: torch<2.4; python_version>='3.12'\n",
		 true},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct verify_report r = judge("p-1" CP313, rows[i].lines);
		if (r.errors != rows[i].refused)
			fail_msg("%s: %s", rows[i].lines, verify_text(&r, &arena));
	}
}

static void test_wheels_beside_it(void **state)
{
	(void)state;
	static const struct {
		const char *name, *metadata, *other, *its, *rule;
		enum finding_level level;
	} rows[] = {
		{"p-1" LINUX, "Requires-Dist: torch==2.4\n", "torch-2.6.0" LINUX, "", "requires",
		 FINDING_ERROR},
		{"p-1" LINUX, "Requires-Dist: torch>=2.4\n", "torch-2.6.0+cpu" LINUX, "", NULL, 0},
		{"p-1" LINUX, "Requires-Dist: torch==2.4; sys_platform=='win32'\n",
		 "torch-2.6.0" LINUX, "", NULL, 0},
		{"p-1" LINUX, "Requires-Dist: torch==2.4; extra=='x'\n", "torch-2.6.0" LINUX, "",
		 NULL, 0},
		{"p-1" CP313, "Requires-Dist: Q.x<1; python_version>='3.12'\n", "q_x-1" LINUX, "",
		 "requires", FINDING_ERROR},
		{"torch-2.6.0" LINUX, "", "q-1" LINUX, "Requires-Dist: torch==2.4.0\n", "requires",
		 FINDING_ERROR},
		{"torchvision-0.21.0+cpu" LINUX, "Requires-Dist: torch==2.6.0\n",
		 "torch-2.6.0+cu124" LINUX, "", "requires", FINDING_WARNING},
		{"torchvision-0.21.0+cu124" LINUX, "Requires-Dist: torch==2.6.0\n",
		 "torch-2.6.0+cpu" LINUX, "", "requires", FINDING_ERROR},
		{"torchvision-0.21.0+cu118" LINUX, "Requires-Dist: torch==2.6.0\n",
		 "torch-2.6.0+cu124" LINUX, "", "requires", FINDING_ERROR},
		{"torchvision-0.21.0+cu121" LINUX, "Requires-Dist: torch==2.6.0\n",
		 "torch-2.6.0+cu124" LINUX, "", NULL, 0},
		{"torch-2.6.0+cu124" LINUX, "", "torchvision-0.21.0+cpu" LINUX,
		 "Requires-Dist: torch==2.6.0\n", "requires", FINDING_WARNING},
		{"torchvision-0.21.0+cpu" LINUX, "Requires-Dist: torch==2.6.0\n",
		 "torch-2.6.0" LINUX,
		 "Requires-Dist: nvidia-cublas-cu12==12.4.5.8; platform_system=='Linux'\n",
		 "requires", FINDING_WARNING},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct verify_report r =
			judge_pair(rows[i].name, rows[i].metadata, rows[i].other, rows[i].its);
		if (rows[i].rule)
			assert_found(&r, rows[i].level, rows[i].rule, "METADATA", "");
		else if (has(&r, "requires"))
			fail_msg("%s: %s", rows[i].metadata, verify_text(&r, &arena));
	}
}

static void test_pin_with_a_label(void **state)
{
	(void)state;
	struct verify_report r = judge("p-1" LINUX, "Requires-Dist: executorch==1.4.1+cpu\n");
	assert_found(&r, FINDING_NOTE, "requires", "METADATA", "executorch==1.4.1+cpu");
	r = judge_pair("p-1" LINUX, "Requires-Dist: executorch==1.4.1+cpu\n",
		       "executorch-1.4.1+cpu" LINUX, "");
	assert_false(has(&r, "requires"));
}

/* A wheel whose library needs another one, which is not in it. */
static struct verify_report judge_library(const char *soname, const char *metadata)
{
	test_dir();
	library("lib.so", F, arena_printf(&arena, "-Wl,-soname,%s", soname));
	library("p/c.so", G, arena_printf(&arena, "'%s'", file("lib.so")));
	unlink(file("lib.so"));
	return verify_with(request_of(wheel_with("p-1" CP313, metadata)));
}

static void test_cuda_library_of_no_requirement(void **state)
{
	(void)state;
	static const struct {
		const char *soname, *line;
		int level; /* -1: nothing */
	} rows[] = {
		{"libcudart.so.12", "numpy", FINDING_WARNING},
		{"libcudart.so.12", "nvidia-cuda-runtime-cu12", -1},
		{"libcudart.so.12", "NVIDIA.cuda_runtime-cu12 (>=12)", -1},
		{"libcudart.so.12", "nvidia-cuda-runtime-cu12; python_version < '3.10'",
		 FINDING_WARNING},
		{"libcudart.so.12", "nvidia-cuda-runtime-cu12; platform_machine == 'aarch64'",
		 FINDING_WARNING},
		{"libcudart.so.12", "nvidia-cuda-runtime-cu12; platform_machine == 'x86_64'", -1},
		{"libcudart.so.12", "nvidia-cuda-runtime-cu12; extra == 'cuda'", FINDING_NOTE},
		{"libcudart.so.12", "torch>=2.6", FINDING_NOTE},
		{"libcudart.so.12", "torch; python_version < '3'", FINDING_WARNING},
		{"libcudart.so.12", "nvidia-cuda-runtime", FINDING_WARNING},
		{"libcublas.so.13", "cuda-toolkit[cublas,cudart]==13.0.2", -1},
		{"libcublas.so.13", "cuda-toolkit[CUBLAS]", -1},
		{"libcublas.so.13", "cuda-toolkit[all]>=13,<14", -1},
		{"libcublas.so.13", "cuda-toolkit[cusolver]~=13.0", -1},
		{"libcublas.so.13", "cuda-toolkit[cudart]==13.0.2", FINDING_WARNING},
		{"libcublas.so.13", "cuda-toolkit==13.0.2", FINDING_WARNING},
		{"libcublas.so.13", "cuda-toolkit[cublas]==12.8.1", FINDING_WARNING},
		{"libcublas.so.12", "cuda-toolkit[cublas]==12.*", -1},
		{"libcublas.so.12", "nvidia-cusolver-cu12", -1},
		{"libcudnn.so.9", "cuda-toolkit[all]", FINDING_WARNING},
		{"libcudnn.so.9", "pydantic", FINDING_WARNING},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct verify_report r = judge_library(
			rows[i].soname, arena_printf(&arena, "Requires-Dist: %s\n", rows[i].line));
		if (rows[i].level < 0 && has(&r, "needed"))
			fail_msg("%s: %s", rows[i].line, verify_text(&r, &arena));
		if (rows[i].level >= 0)
			assert_found(&r, (enum finding_level)rows[i].level, "needed", "p/c.so",
				     rows[i].soname);
	}
}

static void test_missing_library_names_no_stranger(void **state)
{
	(void)state;
	struct verify_report r = judge_library("libarrow.so.1900",
					       "Requires-Dist: pyarrow\nRequires-Dist: pydantic\n");
	assert_found(&r, FINDING_NOTE, "needed", "p/c.so", ": pyarrow");
	assert_not_contains(verify_text(&r, &arena), "pydantic");
}

static void test_python_2_is_a_python_of_the_tags(void **state)
{
	(void)state;
	struct verify_report r = judge("p-1-py2.py3-none-any.whl", "Requires-Python: >=2.7,<3\n");
	assert_false(has(&r, "metadata"));
	r = judge("p-1-py2.py3-none-any.whl", "Requires-Python: >=4\n");
	assert_found(&r, FINDING_ERROR, "metadata", "METADATA", "all Pythons");
}

static const char *wheel_with_scripts(const char *name, const char *entry_points)
{
	test_write(file(arena_printf(&arena, "%s-1.dist-info/entry_points.txt", name)),
		   entry_points);
	return wheel_with(arena_printf(&arena, "%s-1" LINUX, name), "");
}

static void test_two_owners_of_one_script(void **state)
{
	(void)state;
	static const struct {
		const char *own, *its;
		bool shared;
	} rows[] = {
		{"[console_scripts]\nrun = p:main\n", "[console_scripts]\nrun=q:main\n", true},
		{"[console_scripts]\nrun = p:main\n", "[gui_scripts]\nrun = q:main\n", true},
		{"[console_scripts]\nrun = p:main\n", "[console_scripts]\nrun2 = q:main\n", false},
		{"[console_scripts]\nrun = p:main\n", "[other]\nrun = q:main\n", false},
		{"[console_scripts]\nrun = p:main\n", "[console_scripts]\nrun=p:main\n", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		test_dir();
		shell("mkdir -p '%s' '%s'", file("p-1.dist-info"), file("q-1.dist-info"));
		struct verify_request q = request_of(wheel_with_scripts("p", rows[i].own));
		shell("mkdir -p '%s'", file("q-1.dist-info"));
		add_with(&q, wheel_with_scripts("q", rows[i].its));
		struct verify_report r = verify_with(q);
		if (rows[i].shared)
			assert_found(&r, FINDING_WARNING, "shared", "bin/run", "both p 1 and q 1");
		else if (has(&r, "shared"))
			fail_msg("row %zu: %s", i, verify_text(&r, &arena));
	}
}

static void test_two_owners_of_one_path(void **state)
{
	(void)state;
	test_write(file("nvidia/nvshmem/lib/a.txt"), "12");
	test_write(file("nvidia/__init__.py"), "");
	struct verify_request q = request_of(wheel_with("nvidia_nvshmem_cu12-3.4.5" LINUX, ""));
	test_write(file("nvidia/nvshmem/lib/a.txt"), "13");
	const char *other = wheel_with("nvidia_nvshmem_cu13-3.7.2" LINUX, "");
	add_with(&q, other);
	struct verify_report r = verify_with(q);
	assert_found(&r, FINDING_WARNING, "shared", "nvidia/nvshmem/lib/a.txt",
		     "nvidia_nvshmem_cu13 3.7.2");
	assert_int_equal(r.warnings, 1);
	test_write(file("nvidia_nvshmem_cu13-3.7.2.data/purelib/nvidia/nvshmem/lib/a.txt"), "13");
	assert_int_equal(unlink(file("nvidia/nvshmem/lib/a.txt")), 0);
	other = wheel_with("nvidia_nvshmem_cu13-3.7.2" LINUX, "");
	r = verify_with(q);
	assert_found(&r, FINDING_WARNING, "shared", "nvidia/nvshmem/lib/a.txt",
		     "nvidia_nvshmem_cu13 3.7.2");
	r = judge("p-1" LINUX,
		  "Requires-Dist: nvidia-nvshmem-cu12\nRequires-Dist: nvidia-nvshmem-cu13\n");
	assert_found(&r, FINDING_WARNING, "shared", "METADATA", "nvidia-nvshmem-cu13");
	r = judge("p-1" LINUX, "Requires-Dist: nvidia-nvshmem-cu12; python_version < '3.10'\n"
			       "Requires-Dist: nvidia-cublas\n");
	assert_false(has(&r, "shared"));
	r = judge_pair("p-1" LINUX, "Requires-Dist: nvidia-cudnn-cu13\n", "torch-2.9.1" LINUX,
		       "Requires-Dist: nvidia-cudnn-cu12==9.10.2.21\n");
	assert_found(&r, FINDING_WARNING, "shared", "METADATA", "nvidia-cudnn-cu12");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_requires_python_excludes_the_tag),
		TEST(test_direct_references),
		TEST(test_label_names_another_torch),
		TEST(test_requirements_that_no_version_meets),
		TEST(test_wheels_beside_it),
		TEST(test_pin_with_a_label),
		TEST(test_cuda_library_of_no_requirement),
		TEST(test_missing_library_names_no_stranger),
		TEST(test_python_2_is_a_python_of_the_tags),
		TEST(test_two_owners_of_one_path),
		TEST(test_two_owners_of_one_script),
	};

	return cmocka_run_group_tests(tests, load_policy, NULL);
}
