/* Small tables made by hand, for tests of what stands on tables: few rows, each for one rule. */
#pragma once
#include <string.h>

#include "core/tables/tables.h"

#define LINUX_X86 "x86_64-linux"
#define LINUX_ARM "aarch64-linux"
#define SETTING(n, v, w, ln)                                                                       \
	.name = (n), .value = (v), .why = (w), .since = "", .until = "", .gpu = "", .package = "", \
	.line = (ln)
#define SHA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SHA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define SHA_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

struct small_tables {
	struct tables t;
	struct isa_row isas[4];
	struct table_setting avx[4];
	struct gpu_row gpus[5];
	struct gpu_suffix suffixes[3];
	struct toolkit_row toolkits[3];
	struct blas_row blas[3];
	struct table_setting dots;
	struct toggle_row toggles[15];
	struct retired_row retired[2];
	struct release_row releases[2];
	struct package_row packages[5];
	struct source_row sources[3];
};

static inline void small_isas(struct small_tables *s)
{
	s->avx[0] = (struct table_setting){SETTING("USE_FBGEMM", "OFF", "needs AVX2", 11)};
	s->avx[1] = (struct table_setting){
		SETTING("CXX_AVX2_FOUND", "FALSE", "no AVX2 dispatch kernels", 12), .cache = true};
	s->avx[2] = (struct table_setting){SETTING("USE_NNPACK", "OFF", "needs AVX2", 13)};
	s->avx[3] =
		(struct table_setting){SETTING("TORCHVISION_USE_JPEG", "0", "for the test", 14)};
	s->avx[2].until = "2.9", s->avx[3].package = "torchvision";
	s->isas[0] = (struct isa_row){.name = "avx",
				      .platform = LINUX_X86,
				      .note = "",
				      .settings = s->avx,
				      .settings_count = 4,
				      .line = 10};
	s->isas[1] =
		(struct isa_row){.name = "avx2", .platform = LINUX_X86, .note = "", .line = 20};
	s->isas[2] =
		(struct isa_row){.name = "avx512", .platform = LINUX_X86, .note = "", .line = 30};
	s->isas[3] = (struct isa_row){.name = "armv9",
				      .platform = LINUX_ARM,
				      .note = "armv9: not for Graviton3, which has no SVE2",
				      .line = 40};
	static const char *avx[] = {"-mavx", "-mno-avx2"}, *avx512[] = {"-mavx512f", "-mfma"};
	static const char *avx2[] = {"-mavx2", "-mfma", "-mf16c"};
	static const char *armv9[] = {"-march=armv9-a+sve2"};
	s->isas[0].flags = avx, s->isas[0].flags_count = 2;
	s->isas[1].flags = avx2, s->isas[1].flags_count = 3;
	s->isas[2].flags = avx512, s->isas[2].flags_count = 2;
	s->isas[3].flags = armv9, s->isas[3].flags_count = 1;
	s->t.isas = s->isas, s->t.isas_count = 4;
}

static inline struct gpu_row small_gpu(const char *sm, const char *capability, const char *cuda_min,
				       unsigned line)
{
	return (struct gpu_row){.sm = sm,
				.capability = capability,
				.name = "",
				.cuda_min = cuda_min,
				.cuda_max = "",
				.torch_min = "",
				.extensions_until = "",
				.cudnn_max = "",
				.driver_min = "",
				.sbsa = "",
				.note = "",
				.line = line};
}

static inline void small_gpus(struct small_tables *s)
{
	static const char *arm[] = {LINUX_ARM};
	s->gpus[0] = small_gpu("61", "6.1", "8.0", 10);
	s->gpus[0].cuda_max = "12.9", s->gpus[0].cudnn_max = "9.10";
	s->gpus[1] = small_gpu("80", "8.0", "11.0", 20);
	s->gpus[2] = small_gpu("90", "9.0", "11.8", 30);
	s->suffixes[0] = (struct gpu_suffix){"a", "12.0", ""};
	s->gpus[2].suffixes = &s->suffixes[0], s->gpus[2].suffixes_count = 1;
	s->gpus[3] = small_gpu("103", "10.3", "12.9", 40);
	s->gpus[3].torch_min = "2.9";
	s->gpus[3].driver_min = "570.26";
	s->suffixes[1] = (struct gpu_suffix){"a", "12.9", ""};
	s->suffixes[2] = (struct gpu_suffix){"f", "13.0", ""};
	s->gpus[3].suffixes = &s->suffixes[1], s->gpus[3].suffixes_count = 2;
	s->gpus[4] = small_gpu("110", "11.0", "13.0", 50);
	s->gpus[4].platforms = arm, s->gpus[4].platforms_count = 1;
	s->gpus[4].note = "sm110 is sm101 before CUDA 13";
	s->t.gpus = s->gpus, s->t.gpus_count = 5;
}

static inline void small_cuda(struct small_tables *s)
{
	static const char *names12[] = {"libcublas.so.12"};
	static struct cuda_library_row libraries12[] = {{.package = "nvidia-cublas-cu12",
							 .dir = "cublas/lib",
							 .names = names12,
							 .names_count = 1,
							 .part = ""}};
	const char *versions[] = {"12.8", "12.9", "13.0"};
	const char *drivers[] = {"570.26", "575.51.03", "580.65.06"};
	for (unsigned i = 0; i < 3; i++)
		s->toolkits[i] =
			(struct toolkit_row){.version = versions[i],
					     .gcc_max = "14",
					     .clang_max = "19",
					     .driver = drivers[i],
					     .driver_floor = i < 2 ? "525.60.13" : "580.65.06",
					     .compress = i < 2 ? "" : "size",
					     .libraries = libraries12,
					     .libraries_count = 1,
					     .line = 5 + i};
	s->t.toolkits = s->toolkits, s->t.toolkits_count = 3;
}

static inline void small_blas(struct small_tables *s)
{
	static const char *linuxes[] = {LINUX_X86, LINUX_ARM};
	static const char *x86[] = {LINUX_X86};
	static const char *darwin[] = {"aarch64-darwin"};
	s->dots = (struct table_setting){
		SETTING("BLAS_USE_CBLAS_DOT", "ON", "complex dot products", 4), .cache = true};
	s->blas[0] =
		(struct blas_row){"openblas", "OpenBLAS", "open", "openblas", "", "", "", NULL, "",
				  "",         linuxes,    "",     &s->dots,   0,  2,  1,  3};
	s->blas[1] = s->blas[2] = s->blas[0];
	s->blas[1].name = s->blas[1].info = s->blas[1].pkgconf = "mkl";
	s->blas[1].cmake = "MKL";
	s->blas[1].world = "mkl1";
	s->blas[1].platforms = x86;
	s->blas[1].line = 6;
	s->blas[2].name = "veclib";
	s->blas[2].cmake = "vecLib";
	s->blas[2].info = "accelerate";
	s->blas[2].pkgconf = "";
	s->blas[2].platforms = darwin;
	s->blas[2].line = 9;
	s->blas[1].platforms_count = s->blas[2].platforms_count = 1;
	s->blas[1].settings_count = s->blas[2].settings_count = 0;
	s->t.blas = s->blas, s->t.blas_count = 3;
}

#define TOGGLE(n, p, c, g, m, w, ln)                                                               \
	.name = (n), .package = (p), .since = "", .until = "", .value = "", .needs = "",           \
	.cpu = (c), .cuda = (g), .mps = (m), .why = (w), .values = on_off, .values_count = 2,      \
	.line = (ln)

static inline void small_toggles(struct small_tables *s)
{
	static const char *on_off[] = {"ON", "OFF"};
	static const char *digits[] = {"1", "0"};
	static const char *threading[] = {"SEQ", "OMP"};
	struct toggle_row rows[] = {
		{TOGGLE("USE_CUDA", "pytorch", "OFF", "ON", "OFF", "the GPU target", 1)},
		{TOGGLE("USE_CUDNN", "pytorch", "OFF", "ON", "OFF", "convolutions", 2)},
		{TOGGLE("USE_FBGEMM", "pytorch", "ON", "ON", "OFF", "quantised kernels", 3)},
		{TOGGLE("USE_NNPACK", "pytorch", "ON", "ON", "ON", "convolutions on the CPU", 4)},
		{TOGGLE("USE_MPI", "pytorch", "OFF", "OFF", "OFF", "nothing from the host", 5)},
		{TOGGLE("INSTALL_TEST", "pytorch", "OFF", "OFF", "OFF", "no tests in the wheel",
			6)},
		{TOGGLE("CXX_AVX2_FOUND", "pytorch", "", "", "", "found by CMake", 7)},
		{TOGGLE("USE_GENAI", "pytorch", "", "ON", "", "CUDA kernels", 8)},
		{TOGGLE("MKL_THREADING", "pytorch", "SEQ", "SEQ", "", "one thread pool", 10)},
		{TOGGLE("TORCHVISION_USE_JPEG", "torchvision", "1", "1", "1", "decoding", 20)},
		{TOGGLE("TORCHVISION_USE_WEBP", "torchvision", "0", "0", "0", "decoding", 21)},
		{TOGGLE("BUILD_SOX", "torchaudio", "OFF", "OFF", "OFF", "no sox", 30)},
		{TOGGLE("USE_OPENMP", "torchaudio", "ON", "ON", "OFF", "threads", 31)},
		{TOGGLE("USE_CUDA", "torchaudio", "OFF", "ON", "OFF", "the GPU target", 32)},
		{TOGGLE("FORCE_CUDA", "torchvision", "0", "1", "0", "the GPU target", 22)},
	};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		rows[i].check = strcmp(rows[i].name, "INSTALL_TEST") != 0 &&
				strcmp(rows[i].package, "torchvision") != 0;
	rows[6].cache = true;
	rows[7].since = "2.9", rows[7].until = "2.11";
	rows[8].values = threading;
	rows[9].values = rows[10].values = rows[14].values = digits;
	rows[10].since = "0.24";
	rows[11].until = "2.9";
	memcpy(s->toggles, rows, sizeof(rows));
	s->t.toggles = s->toggles, s->t.toggles_count = ARRAY_LEN(rows);
	s->retired[0] = (struct retired_row){.name = "USE_METAL",
					     .package = "pytorch",
					     .since = "2.4",
					     .why = "removed in 2.4: use USE_MPS"};
	s->retired[1] = (struct retired_row){.name = "USE_CUBLAS",
					     .package = "pytorch",
					     .since = "",
					     .why = "comes with USE_CUDA"};
	s->t.retired = s->retired, s->t.retired_count = 2;
}

static inline struct package_row small_package(const char *version, const char *backend,
					       struct source_row *source, unsigned line)
{
	return (struct package_row){.version = version,
				    .backend = backend,
				    .sources = source,
				    .sources_count = 1,
				    .series = "",
				    .requirements = "",
				    .cudnn = "",
				    .note = "",
				    .torch = "",
				    .line = line};
}

static inline void small_releases(struct small_tables *s)
{
	static const char *pythons_old[] = {"3.11", "3.12", "3.13"};
	static const char *pythons_new[] = {"3.12", "3.13", "3.14"};
	static const char *toolkits_old[] = {"12.8", "12.9"};
	static const char *toolkits_new[] = {"12.8", "12.9", "13.0"};
	static const char *places[] = {"https://example.org/a.tar.gz"};
	const char *digests[] = {SHA_A, SHA_B, SHA_C};
	const char *names[] = {"torch.tar.gz", "vision.tar.gz", "audio.tar.gz"};
	for (unsigned i = 0; i < 3; i++)
		s->sources[i] = (struct source_row){.name = names[i],
						    .sha256 = digests[i],
						    .urls = places,
						    .urls_count = 1,
						    .into = ""};
	s->packages[0] = small_package("2.8.0", "setup-py-env", &s->sources[0], 20);
	s->packages[1] = small_package("0.23.0", "setuptools", &s->sources[1], 30);
	s->packages[2] = small_package("2.8.0", "setuptools-cmake", &s->sources[2], 40);
	s->packages[3] = small_package("2.9.1", "setup-py-env", &s->sources[0], 20);
	s->packages[4] = small_package("0.24.1", "setuptools", &s->sources[1], 30);
	s->packages[0].cudnn = "9.10.2.21", s->packages[3].cudnn = "9.13.0.50";
	for (unsigned i = 0; i < 2; i++)
		s->releases[i] = (struct release_row){
			.name = i ? "2.9.1" : "2.8.0",
			.base = i ? "2.9.1" : "2.8.0",
			.pythons = i ? pythons_new : pythons_old,
			.pythons_count = 3,
			.toolkits = i ? toolkits_new : toolkits_old,
			.toolkits_count = i ? 3 : 2,
			.note = "",
			.asked = "",
			.label = "",
			.source_date_epoch = i ? 1763000000 : 1754000000,
			.pytorch = &s->packages[i ? 3 : 0],
			.torchvision = &s->packages[i ? 4 : 1],
			.torchaudio = i ? NULL : &s->packages[2],
			.file = i ? "releases/2.9.1.yaml" : "releases/2.8.0.yaml"};
	s->t.releases = s->releases, s->t.releases_count = 2;
}

/* small_tables_fill: the rows as above; a test may then change the one that it is about. */
static inline void small_tables_fill(struct small_tables *s)
{
	*s = (struct small_tables){.t.dir = ""};
	small_isas(s);
	small_gpus(s);
	small_cuda(s);
	small_blas(s);
	small_toggles(s);
	small_releases(s);
}

/* small_target: an entry of an SM list. */
static inline struct gpu_target small_target(const struct small_tables *s, unsigned row,
					     const char *suffix, bool ptx)
{
	return (struct gpu_target){.row = &s->gpus[row], .suffix = suffix, .ptx = ptx};
}
