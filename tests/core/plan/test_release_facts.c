/* Facts of upstream's releases that the tables once had wrong
 * or lacked: each stands here so that no edit loses it. */
#include "tables_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/plan/plan.h"
#include "core/root/toolkit.h"

static const struct plan *plan_of(const char *release, const char *variant, struct arena *a,
				  struct err *e)
{
	struct variant v;
	const struct plan *p = NULL;

	assert_ok(variant_parse(tables, variant, a, &v, e), e);
	struct plan_request q = {.variant = &v, .release = release};
	return plan_resolve(tables, &q, a, &p, e) < 0 ? NULL : p;
}

static void gpu_targets(void **state)
{
	static const struct {
		const char *release, *variant, *refusal, *hint; /* NULL: planned */
	} rows[] = {
		/* torch 2.8 has 10.3, and no family targets. */
		{"2.8.0", "pytorch-python313-cuda12_9-sm103-avx2", NULL, NULL},
		{"2.7.1", "pytorch-python313-cuda12_8-sm103-avx2", "has no sm103",
		 "with release 2.13.0"},
		{"2.8.0", "pytorch-python313-cuda12_9-sm100f-avx2",
		 "does not know sm100f: PyTorch has it from 2.9.0", "with release 2.13.0"},
		{"2.8.0", "pytorch-python313-cuda12_9-sm103f-avx2", "does not know sm103f",
		 "with release 2.13.0"},
		{"2.8.0", "pytorch-python313-cuda12_9-sm120f-avx2", "does not know sm120f",
		 "with release 2.13.0"},
		{"2.8.0", "pytorch-python313-cuda12_9-sm121f-armv9", "does not know sm121f",
		 "with release 2.13.0"},
		{"2.8.0", "pytorch-python313-cuda12_9-sm101f-armv9", "does not know sm101f",
		 "it is sm110"},
		{"2.9.1", "pytorch-python313-cuda12_9-sm100f-avx2", NULL, NULL},
		{"2.8.0", "pytorch-python313-cuda12_9-sm121a-armv9", NULL, NULL},
		{"2.8.0", "torchaudio-python313-cuda12_9-sm120f-avx2", "does not know sm120f",
		 "with release 2.10.0"},
		/* 10.1 left the list of torch's extension
		 * builder, PyTorch itself still compiles for it. */
		{"2.8.0", "torchvision-python313-cuda12_8-sm101-armv9", "from CUDA 13.0 on",
		 "it is sm110"},
		{"2.9.1", "torchvision-python313-cuda12_8-sm101-armv9", "has no 10.1 from 2.9.0 on",
		 "it is sm110"},
		{"2.9.1", "torchaudio-python313-cuda12_8-sm101-armv9", "has no 10.1 from 2.9.0 on",
		 "it is sm110"},
		{"2.9.1", "pytorch-python313-cuda12_8-sm101-armv9", "from CUDA 13.0 on",
		 "it is sm110"},
		/* JetPack 6 has a CUDA of its own. */
		{"2.13.0", "pytorch-python313-cuda12_6-sm87-armv8_2", "from CUDA 13.0 on",
		 "--cuda 13.0"},
		{"2.8.0", "torchvision-python313-cuda12_6-sm87-armv8_2", "from CUDA 13.0 on",
		 "--release 2.13.0"},
		{"2.13.0", "pytorch-python313-cuda13_0-sm87-armv8_2", NULL, NULL},
		{"2.13.0", "pytorch-python313-cuda12_6-sm87-avx2", NULL, NULL},
		{"2.9.1", "pytorch-python313-cuda12_9-sm100+sm103-avx2", "sm100 and sm103 together",
		 "leave sm103 out"},
		{"2.9.1", "pytorch-python313-cuda12_9-sm90+sm103-avx2", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_ARENA struct arena a = {0};
		struct err e = {0};
		const struct plan *p = plan_of(rows[i].release, rows[i].variant, &a, &e);
		if (!p != !!rows[i].refusal)
			fail_msg("%s, %s: %s", rows[i].release, rows[i].variant,
				 p ? "is planned" : e.msg);
		if (p)
			continue;
		assert_int_equal(e.kind, ERR_POLICY);
		assert_contains(e.msg, rows[i].refusal);
		assert_contains(e.hint, rows[i].hint);
	}
}

/* A patch that changes changes what its row pins: its plan's note has the digest. */
static void shipped_patches_are_the_releases_own(void **state)
{
	(void)state;
	for (unsigned i = 0; i < tables->releases_count; i++) {
		AUTO_ARENA struct arena a = {0};
		struct err e = {0};
		const struct plan *p = NULL;
		struct variant v = {.package = "pytorch", .python = "3.13"};
		struct plan_request q = {.variant = &v,
					 .release = tables->releases[i].name,
					 .patches_dir = PROFILES_DIR "/../patches"};
		assert_ok(profile_load(tables, "cpu-avx2", &a, &v.profile, &e), &e);
		assert_ok(plan_resolve(tables, &q, &a, &p, &e), &e);
		const bool debian = strcmp(q.release, "2.6.0-debian") == 0;
		if (strcmp(p->local_label, debian ? "cpu.avx2.debian" : "cpu.avx2") != 0)
			fail_msg("%s: %s", q.release, strlist_join(&p->notes, &a, "\n"));
	}
}

static const struct package_row *row_of(const char *release, const char *package)
{
	const struct release_row *r = NULL;
	struct err e = {0};

	assert_ok(tables_need_release(tables, release, &r, &e), &e);
	assert_non_null(tables_package(r, package));
	return tables_package(r, package);
}

/* "setuptools>=75,<82" among what the package's build needs. */
static bool builds_with(const struct package_row *p, const char *requirement)
{
	return strings_contain(p->python_requires, p->python_requires_count, requirement);
}

static void build_requirements(void **state)
{
	static const char *const releases[] = {"2.11.0", "2.12.1", "2.13.0"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(releases); i++)
		assert_true(builds_with(row_of(releases[i], "torchaudio"), "setuptools>=75,<82"));
	assert_string_equal(row_of("2.11.0", "pytorch")->cudnn, "9.19.0.56");
}

/* Requires-Dist of the official wheels: torch.compile on a GPU imports them. */
static void triton_of_cuda_wheels(void **state)
{
	static const struct {
		const char *release, *variant, *requires;
	} rows[] = {
		{"2.6.0", "pytorch-python313-cuda12_4-sm90-avx2", "triton==3.2.0"},
		{"2.6.0-debian", "pytorch-python313-cuda12_4-sm90-avx2",
		 "sympy>=1.13.1 triton==3.2.0"},
		{"2.6.0-debian", "pytorch-python313-cpu-avx2", "sympy>=1.13.1"},
		{"2.7.1", "pytorch-python313-cuda12_8-sm90-avx2", "triton==3.3.1"},
		{"2.8.0", "pytorch-python313-cuda12_8-sm90-avx2", "triton==3.4.0"},
		{"2.8.0", "pytorch-python313-cuda12_8-sm90-armv9", ""},
		{"2.8.0", "torchvision-python313-cuda12_8-sm90-avx2", ""},
		{"2.9.1", "pytorch-python313-cuda12_8-sm90-avx2", "triton==3.5.1"},
		{"2.10.0", "pytorch-python313-cuda12_8-sm90-avx2",
		 "triton==3.6.0 cuda-bindings==12.9.4"},
		{"2.10.0", "pytorch-python313-cuda13_0-sm90-avx2",
		 "triton==3.6.0 cuda-bindings>=13.0.3,<14"},
		{"2.10.0", "pytorch-python313-cuda13_0-sm90-armv9", ""},
		{"2.11.0", "pytorch-python313-cuda13_0-sm90-armv9",
		 "triton==3.6.0 cuda-bindings>=13.0.3,<14"},
		{"2.12.1", "pytorch-python313-cuda13_0-sm90-avx2",
		 "triton==3.7.1 cuda-bindings>=13.0.3,<14"},
		{"2.13.0", "pytorch-python313-cuda13_0-sm90-avx2",
		 "triton==3.7.1 cuda-bindings>=13.0.3,<14"},
		{"2.13.0", "pytorch-python313-cpu-avx2", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_ARENA struct arena a = {0};
		struct err e = {0};
		const struct plan *p = plan_of(rows[i].release, rows[i].variant, &a, &e);
		assert_ok(p ? 0 : -1, &e);
		assert_string_equal(strlist_join(&p->requires, &a, " "), rows[i].requires);
	}
}

/* Without the macro complex dot products of OpenBLAS
 * are 0; no release probes for it with BLAS=OpenBLAS. */
static void complex_dots(void **state)
{
	(void)state;
	for (unsigned i = 0; i < tables->releases_count; i++)
		for (unsigned arm = 0; arm < 2; arm++) {
			AUTO_ARENA struct arena a = {0};
			struct err e = {0};
			const char *release = tables->releases[i].name;
			const struct plan *p = plan_of(release,
						       arm ? "pytorch-python313-cpu-armv9"
							   : "pytorch-python313-cpu-avx2",
						       &a, &e);
			assert_ok(p ? 0 : -1, &e);
			assert_string_equal(settings_value(&p->cmake, "BLAS"), "OpenBLAS");
			assert_string_equal(settings_value(&p->cmake, "BLAS_USE_CBLAS_DOT"), "ON");
			/* Its threads are OpenMP's. */
			assert_string_equal(p->blas_row->debian, "libopenblas-openmp-dev");
		}
}

/* torchaudio's setup.py took CMake's flags up to 2.10; from
 * 2.11 on it takes none, and nvcc reads its own variable. */
static void nvcc_flags_of_companions(void **state)
{
	static const struct {
		const char *release, *package, *name;
	} rows[] = {
		{"2.9.1", "torchaudio", "CUDAFLAGS"},
		{"2.11.0", "torchaudio", "NVCC_APPEND_FLAGS"},
		{"2.12.1", "torchaudio", "NVCC_APPEND_FLAGS"},
		{"2.13.0", "torchaudio", "NVCC_APPEND_FLAGS"},
		{"2.13.0", "torchvision", "NVCC_FLAGS"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_ARENA struct arena a = {0};
		struct err e = {0};
		struct variant v;
		const struct plan *p = NULL;
		struct toolkit kit = {.version = rows[i].release[2] == '9' ? "12.8" : "13.0",
				      .where = "/cuda",
				      .home = "/cuda",
				      .nvcc = "/cuda/bin/nvcc",
				      .release = "",
				      .build = "",
				      .cc = "gcc",
				      .cxx = "g++",
				      .cxx_path = "/usr/bin/g++",
				      .cc_id = "",
				      .gcc = "",
				      .text = ""};
		struct toolkits list = {.items = &kit, .count = 1};
		strlist_ref(&kit.targets, &a, "90");
		strlist_ref(&kit.options, &a, "--objdir-as-tempdir");
		const char *cuda = rows[i].release[2] == '9' ? "cuda12_8" : "cuda13_0";
		const char *name =
			arena_printf(&a, "%s-python313-%s-sm90-avx2", rows[i].package, cuda);
		assert_ok(variant_parse(tables, name, &a, &v, &e), &e);
		struct plan_request q = {
			.variant = &v, .release = rows[i].release, .toolkits = &list};
		assert_ok(plan_resolve(tables, &q, &a, &p, &e), &e);
		const char *flags = settings_value(&p->env, rows[i].name);
		assert_non_null(flags);
		assert_contains(flags, "-objtemp");
	}
}

/* What is compressed with -compress-mode needs a driver of CUDA 12.4. */
static void compressed_code_and_drivers(void **state)
{
	(void)state;
	for (unsigned i = 0; i < tables->toolkits_count; i++) {
		const struct toolkit_row *row = &tables->toolkits[i];
		bool thirteen = version_cmp(row->version, "13") >= 0;
		assert_string_equal(row->compress, thirteen ? "size" : "");
		assert_true(!thirteen || version_cmp(row->driver_floor,
						     tables_toolkit(tables, "12.4")->driver) > 0);
	}
}

/* Flags without which a compiler of Debian 12 or 13 stops in a submodule. */
static void compilers_that_warn(void **state)
{
	static const char fbgemm[] = "-Wno-error=maybe-uninitialized -Wno-error=uninitialized";
	static const char xnnpack[] = "-Wno-error=incompatible-pointer-types";
	static const struct {
		const char *release, *profile, *flags;
		bool there;
	} rows[] = {
		{"2.6.0", "cpu-avx2", fbgemm, true},     {"2.7.1", "cpu-avx512", fbgemm, true},
		{"2.6.0", "cpu-armv9", fbgemm, false},   {"2.8.0", "cpu-avx2", fbgemm, false},
		{"2.8.0", "cpu-armv8_2", xnnpack, true}, {"2.9.1", "cpu-armv9", xnnpack, true},
		{"2.8.0", "cpu-avx2", xnnpack, false},   {"2.10.0", "cpu-armv9", xnnpack, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_ARENA struct arena a = {0};
		struct err e = {0};
		const char *variant = arena_printf(&a, "pytorch-python313-%s", rows[i].profile);
		const struct plan *p = plan_of(rows[i].release, variant, &a, &e);
		assert_ok(p ? 0 : -1, &e);
		for (size_t k = 0; k < 2; k++) {
			const char *flags = settings_value(&p->env, k ? "CFLAGS" : "CXXFLAGS");
			assert_int_equal(strstr(flags, rows[i].flags) != NULL, rows[i].there);
		}
	}
}

/* The archive of 2.7.1 lacks the file that says which NCCL,
 * and without the directory the build would clone it. */
static void nccl_of_2_7_1(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct package_row *p = row_of("2.7.1", "pytorch");

	(void)state;
	assert_int_equal(p->prepare_count, 1);
	assert_int_equal(p->prepare[0].argv_count, 3);
	const char *command =
		arena_printf(&a,
			     "cd '%s' && %s && test -s .ci/docker/ci_commit_pins/nccl-cu12.txt && "
			     "test -d third_party/nccl",
			     test_dir(), p->prepare[0].argv[2]);
	assert_int_equal(system(command), 0);
}

static bool takes_gcc(const char *release, const char *version)
{
	const struct release_row *r = NULL;
	struct err e = {0};
	bool in = true;

	assert_ok(tables_need_release(tables, release, &r, &e), &e);
	assert_ok(version_in(version, r->gcc_arm, &in, &e), &e);
	return in;
}

/* GCC 14 crashes in the SVE code of these two. */
static void gcc_on_arm(void **state)
{
	static const char *const crashing[] = {"2.9.1", "2.10.0"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(crashing); i++) {
		assert_false(takes_gcc(crashing[i], "14.2.0"));
		assert_false(takes_gcc(crashing[i], "14.3.0"));
		assert_true(takes_gcc(crashing[i], "12.2.0"));
		assert_true(takes_gcc(crashing[i], "14.4.0"));
	}

	assert_true(takes_gcc("2.8.0", "14.2.0"));
	assert_contains(row_of("2.10.0", "torchaudio")->note, "GCC 14.2");
}

static void notes_of_a_package(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	const struct plan *p = plan_of("2.10.0", "torchaudio-python313-cpu-avx2", &a, &e);

	(void)state;
	assert_true(strlist_contains(&p->notes, row_of("2.10.0", "torchaudio")->note));
	p = plan_of("2.10.0", "torchvision-python313-cpu-avx2", &a, &e);
	assert_false(strlist_contains(&p->notes, row_of("2.10.0", "torchaudio")->note));
}

/* What is planned without a proven digest is not fetched, and is what the user says it is. */
static void sources_without_a_digest(void **state)
{
	static const char good[] =
		"1111111111111111111111111111111111111111111111111111111111111111";
	static const struct {
		const char *file, *sha256, *refusal, *hint; /* refusal NULL: planned */
	} rows[] = {
		{"/src/pytorch-v2.15.0.tar.gz", good, NULL, NULL},
		{"vision-0.29.2.tar.gz", good, NULL, NULL},
		{"/src/pytorch-v2.15.0.tar.gz", "1234", "not a sha256: '1234'",
		 "--source FILE=SHA256"},
		{"/src/pytorch.tar.gz", good,
		 "--source pytorch.tar.gz: not a source of release 2.15.0",
		 "pytorch-v2.15.0.tar.gz"},
		{"audio-2.11.0.tar.gz", good,
		 "'audio-2.11.0.tar.gz' of release 2.15.0 has the sha256 599ec24e",
		 "leave --source out"},
	};
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};

	(void)state;
	const struct plan *p = plan_of("2.15.0", "pytorch-python313-cpu-avx2", &a, &e);
	assert_non_null(p);
	assert_contains(p->notes.items[p->notes.count - 1], "has no verified digest");
	assert_err(plan_unproven(p, &e), &e, ERR_CONFIG,
		   "'pytorch-v2.15.0.tar.gz' of release 2.15.0 has no proven digest");
	assert_contains(e.hint, "--source /path/to/pytorch-v2.15.0.tar.gz=SHA256; or take the "
				"official wheel: 'ptbuild slim "
				"--release 2.15.0 --gpu TARGET'");
	const char *without = p->compile_key;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct variant v;
		err_clear(&e);
		assert_ok(variant_parse(tables, "pytorch-python313-cpu-avx2", &a, &v, &e), &e);
		struct plan_request q = {.variant = &v, .release = "2.15.0"};
		kvlist_set(&q.options.sources, &a, rows[i].file, rows[i].sha256);
		int rc = plan_resolve(tables, &q, &a, &p, &e);
		assert_int_equal(rc < 0, rows[i].refusal != NULL);
		if (rc < 0) {
			assert_contains(e.msg, rows[i].refusal);
			assert_contains(e.hint, rows[i].hint);
			continue;
		}

		const struct source_row *s = &p->package_row->sources[0];
		bool own = *rows[i].file == '/';
		assert_int_equal(plan_unproven(p, &e) == 0, own);
		assert_string_equal(
			s->urls[0],
			own ? "file:///src/pytorch-v2.15.0.tar.gz"
			    : "https://github.com/pytorch/pytorch/releases/download/v2.15.0/"
			      "pytorch-v2.15.0.tar.gz");
		assert_int_equal(strcmp(p->compile_key, without) == 0, !own);
	}
}

static bool notes_have(const struct plan *p, const char *text)
{
	for (size_t i = 0; i < p->notes.count; i++)
		if (strstr(p->notes.items[i], text))
			return true;
	return false;
}

/* What is known of a version stands in its plan. */
static void advisories_and_what_a_version_lacks(void **state)
{
	static const struct {
		const char *release, *variant, *first, *advised;
		size_t count;
		bool eig, vllm;
	} rows[] = {
		{"2.6.0", "pytorch-python312-cuda12_4-sm90-avx2", "CVE-2025-3000", "2.13.0", 18,
		 true, false},
		{"2.9.1", "pytorch-python312-cuda12_8-sm90-avx2", "CVE-2025-3000", "2.13.0", 4,
		 true, true},
		{"2.9.1", "pytorch-python314-cuda12_8-sm90-avx2", "CVE-2025-3000", "2.13.0", 4,
		 true, false},
		{"2.9.1", "pytorch-python312-cpu-avx2", "CVE-2025-3000", "2.13.0", 4, false, false},
		{"2.9.1", "torchvision-python312-cuda12_8-sm90-avx2", NULL, "", 0, false, false},
		{"2.10.0", "pytorch-python312-cuda12_6-sm90-avx2", "CVE-2025-3000", "2.13.0", 2,
		 true, false},
		{"2.10.0", "pytorch-python312-cuda12_8-sm90-avx2", "CVE-2025-3000", "2.13.0", 2,
		 false, false},
		{"2.12.1", "pytorch-python312-cuda13_0-sm90-avx2", "CVE-2025-3000", "2.13.0", 1,
		 false, false},
		{"2.13.0", "pytorch-python312-cuda13_0-sm90-avx2", NULL, "", 0, false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_ARENA struct arena a = {0};
		struct err e = {0};
		const struct plan *p = plan_of(rows[i].release, rows[i].variant, &a, &e);
		assert_ok(p ? 0 : -1, &e);
		assert_int_equal(p->advisories.count, rows[i].count);
		assert_string_equal(p->advised, rows[i].advised);
		assert_int_equal(notes_have(p, "has known vulnerabilities"), rows[i].first != NULL);
		if (rows[i].first)
			assert_string_equal(p->advisories.items[0], rows[i].first);
		assert_int_equal(notes_have(p, "torch.linalg.eig and eigvals"), rows[i].eig);
		assert_int_equal(notes_have(p, "fits vLLM 0.14.0, 0.15.1"), rows[i].vllm);
	}
}

/* Only for those who ask for them: what nobody built is not a default. */
static void releases_that_are_asked_for(void **state)
{
	(void)state;
	for (unsigned i = 0; i < tables->releases_count; i++) {
		const struct release_row *r = &tables->releases[i];
		assert_int_equal(tables_offered(r), version_cmp(r->base, "2.14") < 0 &&
							    strcmp(r->name, "2.6.0-debian") != 0);
	}
}

/* Shipped sources are the known ones, each with a line; another digest of their version is not. */
static void test_sources_of_releases_are_known(void **state)
{
	size_t sources = 0;

	(void)state;
	for (unsigned i = 0; i < tables->releases_count; i++) {
		const struct release_row *r = &tables->releases[i];
		for (size_t k = 0; k < TABLES_PACKAGES; k++) {
			const struct package_row *p = tables_package(r, tables_packages[k]);
			for (unsigned n = 0; p && n < p->sources_count; n++) {
				const char *sha256 = p->sources[n].sha256;
				if (!*sha256)
					continue;
				sources++;
				assert_false(tables_doubts(tables, tables_packages[k], p->version,
							   sha256));
				assert_true(tables_doubts(tables, tables_packages[k], p->version,
							  "0000"));
			}
		}
	}

	assert_true(sources > 20);
	assert_false(tables_doubts(tables, "pytorch", "99.0", "0000"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpu_targets),
		cmocka_unit_test(shipped_patches_are_the_releases_own),
		cmocka_unit_test(build_requirements),
		cmocka_unit_test(triton_of_cuda_wheels),
		cmocka_unit_test(complex_dots),
		cmocka_unit_test(nvcc_flags_of_companions),
		cmocka_unit_test(compressed_code_and_drivers),
		cmocka_unit_test(compilers_that_warn),
		cmocka_unit_test_teardown(nccl_of_2_7_1, test_teardown),
		cmocka_unit_test(gcc_on_arm),
		cmocka_unit_test(notes_of_a_package),
		cmocka_unit_test(sources_without_a_digest),
		cmocka_unit_test(test_sources_of_releases_are_known),
		cmocka_unit_test(releases_that_are_asked_for),
		cmocka_unit_test(advisories_and_what_a_version_lacks),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
