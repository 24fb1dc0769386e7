/* GPU code of a wheel against what the wheel promises. The fat binaries are made byte by byte. */
#include "verify_fixture.h"

#include <elf.h>

#include "core/machine/detect.h"
#include "craft_fatbin.h"

static const struct tables *tables;

static int load(void **state)
{
	static struct arena rows;
	return load_policy(state) == 0 ? tables_load(PROFILES_DIR, &rows, &tables, &err) : -1;
}

/* "90 90a | 90 ptx90" into fat binaries, one for each piece between bars. */
static void craft(const char *text, struct buf *ret)
{
	struct strlist binaries = {0};

	strlist_split(&binaries, &arena, text, "|");
	for (size_t i = 0; i < binaries.count; i++) {
		AUTO_BUF struct buf entries = {0};
		struct strlist words = {0};
		strlist_split(&words, &arena, binaries.items[i], " ");
		for (size_t k = 0; k < words.count; k++) {
			const char *w = words.items[k];
			bool ptx = strncmp(w, "ptx", 3) == 0, lto = strncmp(w, "lto", 3) == 0;
			char *suffix;
			unsigned sm = (unsigned)strtoul(w + (ptx || lto ? 3 : 0), &suffix, 10);
			if (ptx)
				craft_ptx_entry(&entries, sm);
			else if (lto)
				craft_entry(&entries, 8, sm, 0x10000, "sealed!!", 8, 0);
			else
				craft_cubin_entry(&entries, sm,
						  *suffix == 'a'   ? CRAFT_ARCH
						  : *suffix == 'f' ? CRAFT_FAMILY
								   : 0);
		}

		craft_container(ret, &entries);
	}
}

/* A wheel named torch whose library has these fat binaries (NULL: no section for them). */
static const char *wheel_of(const char *version, const char *code)
{
	make_tree();
	shell("cd '%s' && mv tiny_pack-1.0+raw.dist-info torch-1.0+raw.dist-info && sed -i "
	      "'s/^Name: .*/Name: torch/' "
	      "torch-1.0+raw.dist-info/METADATA",
	      test_path("tree"));
	if (code) {
		AUTO_BUF struct buf b = {0};
		craft(code, &b);
		test_write_bytes(test_path("code.bin"), b.data, b.len);
		compile(LIBRARY,
			arena_printf(
				&arena,
				"__asm__(\".section .nv_fatbin,\\\"a\\\"\\n.balign 8\\n.incbin "
				"\\\"%s\\\"\\n.previous\");\n",
				test_path("code.bin")),
			"-nostdlib");
	}

	struct pack_request p = request();
	p.version = version;
	return pack_ok(&p).path;
}

static struct verify_report verify_code(const char *version, const char *code)
{
	return verify_with(
		(struct verify_request){.wheel = wheel_of(version, code), .tables = tables});
}

#define SM90 "2.6.0+cu124.sm90.avx2"
#define LIB "tiny/libtiny.so"

static void what_was_promised(void **state)
{
	(void)state;
	struct verify_report r = verify_code(SM90, "90 | 90 | 90");
	assert_true(r.promise.binding);
	assert_clean(&r);
	assert_int_equal(r.gpu_count, 1);
	assert_int_equal(r.gpu[0].fat_binaries, 3);
	assert_int_equal(r.gpu[0].code[0].entries, 3);
	assert_contains(verify_text(&r, &arena),
			"gpu code: tiny/libtiny.so: 3 fat binaries:\n  3 cubin sm_90 (");
	AUTO_JSON json_t *j = verify_json(&r);
	json_t *code = json_object_get(json_array_get(json_object_get(j, "gpu_code"), 0), "code");
	assert_int_equal(json_integer_value(
				 json_object_get(json_object_get(code, "cubin sm_90"), "entries")),
			 3);
}

/* Cut off as sstrip does it: a file that is loaded and
 * run, with nothing but the code itself to find it by. */
static void code_in_a_file_without_section_headers(void **state)
{
	(void)state;
	static const struct {
		const char *inside;
		bool kept;
	} rows[] = {{"90 | 90", true}, {"90 | 90 80", false}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		Elf64_Ehdr h;
		test_dir();
		assert_int_equal(unlink(wheel_of(SM90, rows[i].inside)), 0);
		const char *path = test_path("tree/%s", LIB);
		int fd = open(path, O_RDWR);
		assert_true(fd >= 0 && pread(fd, &h, sizeof(h), 0) == sizeof(h));
		assert_int_equal(ftruncate(fd, (off_t)h.e_shoff), 0);
		h.e_shoff = h.e_shnum = h.e_shstrndx = 0;
		assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
		close(fd);
		struct pack_request p = request();
		p.version = SM90;
		struct verify_report r = verify_with(
			(struct verify_request){.wheel = pack_ok(&p).path, .tables = tables});
		assert_int_equal(r.gpu_count, 1);
		assert_int_equal(r.gpu[0].fat_binaries, 2);
		if (rows[i].kept)
			assert_clean(&r);
		else
			assert_only_error(&r, "gpu-extra", LIB, "has 1 cubin for sm_80");
	}
}

static void several_targets_and_ptx(void **state)
{
	(void)state;
	struct verify_report r =
		verify_code("2.6.0+cu124.sm80.sm90.ptx.avx2", "80 90 ptx90 | ptx90 90 80");
	assert_clean(&r);
}

static void extras_of_pytorch_itself(void **state)
{
	(void)state;
	struct verify_report r = verify_code(SM90, "90 | 90 90a | 90a");
	assert_clean(&r);
}

/* What a later PyTorch adds is a defect in an earlier one. */
static void extras_of_a_later_pytorch(void **state)
{
	(void)state;
	struct verify_report r = verify_code("2.6.0+cu128.sm120.avx2", "120 | 120 120a");
	assert_only_error(
		&r, "gpu-extra", LIB,
		"has 1 cubin for sm_120a, which its label 'cu128.sm120.avx2' does not declare");
}

static void a_target_too_many(void **state)
{
	(void)state;
	struct verify_report r = verify_code(SM90, "90 | 90 80 | 90 80");
	assert_only_error(&r, "gpu-extra", LIB, "has 2 cubins for sm_80");
}

static void a_target_missing_everywhere(void **state)
{
	(void)state;
	struct verify_report r = verify_code("2.6.0+cu124.sm80.sm90.avx2", "90 | 90");
	assert_only_error(&r, "gpu-missing", LIB,
			  "has no code for sm_80 in 2 of 2 fat binaries (one has cubin sm_90)");
}

static void a_target_missing_in_one_kernel(void **state)
{
	(void)state;
	struct verify_report r = verify_code("2.6.0+cu124.sm80.sm90.avx2", "80 90 | 80 90 | 80");
	assert_only_error(&r, "gpu-missing", LIB,
			  "has no code for sm_90 in 1 of 3 fat binaries (one has cubin sm_80)");
}

static void no_gpu_code_at_all(void **state)
{
	(void)state;
	struct verify_report r = verify_code(SM90, NULL);
	assert_only_error(&r, "gpu-missing", "", "holds no GPU code at all");
}

static void an_extension_may_be_cxx_alone(void **state)
{
	(void)state;
	make_tree();
	struct pack_request p = request();
	p.version = SM90;
	struct verify_report r =
		verify_with((struct verify_request){.wheel = pack_ok(&p).path, .tables = tables});
	assert_int_equal(r.errors, 0);
	assert_found(&r, FINDING_WARNING, "gpu-missing", "", "holds no GPU code at all");
}

static void ptx_that_nobody_asked_for(void **state)
{
	(void)state;
	struct verify_report r = verify_code(SM90, "90 ptx90 | 90");
	assert_only_error(&r, "gpu-ptx", LIB, "has PTX for sm_90 (1)");
}

static void ptx_alone_is_no_code_for_the_target(void **state)
{
	(void)state;
	struct verify_report r = verify_code(SM90, "90 | ptx90");
	assert_found(&r, FINDING_ERROR, "gpu-missing", LIB, "has no code for sm_90 in 1 of 2");
	assert_found(&r, FINDING_ERROR, "gpu-ptx", LIB, "has PTX for sm_90");
}

static void intermediate_code(void **state)
{
	(void)state;
	struct verify_report r = verify_code(SM90, "90 lto90");
	assert_only_error(&r, "gpu-ptx", LIB, "has LTO code for sm_90");
}

static void gpu_code_in_a_cpu_wheel(void **state)
{
	(void)state;
	struct verify_report r = verify_code("2.6.0+cpu.avx2", "90");
	assert_only_error(&r, "gpu-extra", LIB, "its label 'cpu.avx2' does not declare");
}

/* The letter counts: code for sm_90a runs on exactly that chip. */
static void another_letter(void **state)
{
	(void)state;
	struct verify_report r = verify_code("2.6.0+cu124.sm90a.avx2", "90");
	assert_found(&r, FINDING_ERROR, "gpu-extra", LIB, "cubin for sm_90,");
	assert_found(&r, FINDING_ERROR, "gpu-missing", LIB, "no code for sm_90a");
	assert_int_equal(r.errors, 2);
}

static void a_wheel_that_promises_nothing(void **state)
{
	(void)state;
	struct verify_report r = verify_code("2.6.0", "75 90 ptx120");
	assert_false(r.promise.binding);
	assert_int_equal(r.errors, 0);
	assert_int_equal(r.gpu[0].count, 3);
}

static void code_that_cannot_be_read(void **state)
{
	(void)state;
	make_tree();
	compile(LIBRARY,
		"__asm__(\".section .nv_fatbin,\\\"a\\\"\\n.long 0xba55ed50, 0x00100001, 0x1000, "
		"0\\n.previous\");\n",
		"-nostdlib");
	struct verify_report r = verify_with((struct verify_request){.wheel = packed()});
	assert_only_error(&r, "gpu-code", LIB, "a fat binary of 4096 bytes leaves its section");
	assert_not_contains(verify_text(&r, &arena), "ptbuild-verify-");
}

static void code_for_another_target_than_said(void **state)
{
	(void)state;
	AUTO_BUF struct buf cubin = {0}, entries = {0}, b = {0};
	make_tree();
	craft_cubin(&cubin, 80, 128);
	craft_entry(&entries, 2, 90, 0, cubin.data, cubin.len, 0);
	craft_entry(&entries, 0x40, 90, 0, "x", 1, 0);
	craft_container(&b, &entries);
	test_write_bytes(test_path("tree/tiny/code.fatbin"), b.data, b.len);
	struct verify_report r = verify_with((struct verify_request){.wheel = packed()});
	assert_found(&r, FINDING_ERROR, "gpu-code", "tiny/code.fatbin",
		     "is for sm_80, its header says sm_90");
	assert_found(&r, FINDING_ERROR, "gpu-code", "tiny/code.fatbin", "of the unknown kind 0x40");
	assert_int_equal(r.errors, 2);
}

/* The labels of 'ptbuild slim' have no CPU part. */
static void test_label_without_cpu_part_is_checked(void **state)
{
	static const struct {
		const char *version, *code;
		const char *error; /* NULL: none */
	} rows[] = {
		{"2.6.0+cu124.sm90", "75 90 ptx90", NULL},
		{"2.6.0+cu124.sm61", "75 90", "runs on sm61"},
		{"2.6.0+sm61", "75 90", "runs on sm61"},
		{"2.6.0+sm90", "90", NULL},
		{"2.6.0+pt26cu124.sm80.sm120", "80 | 80", "runs on sm120"},
		{"2.6.0+cu124.sm86", "80", NULL},
		{"2.6.0+cu124.sm100", "90 ptx90", NULL},
		/* CUDA 13 calls it sm110 */
		{"2.6.0+cu128.sm101", "100", NULL},
		{"2.6.0+cu130.sm101", "100", "no code for sm101"},
		{"2.6.0+cu124.sm90.ptx", "90 ptx90", NULL},
		{"2.6.0+cu124.sm90.ptx", "90", "no PTX"},
		{"2.6.0+cu124.sm90", NULL, "holds no GPU code at all"},
		{"2.6.0+cu124", "75", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		test_dir();
		struct verify_report r = verify_code(rows[i].version, rows[i].code);
		assert_false(r.promise.binding);
		if (rows[i].error)
			assert_only_error(&r, "gpu-missing", "", rows[i].error);
		else
			assert_int_equal(r.errors, 0);
	}
}

/* What runs on another library alone is no torch for that GPU. */
static void test_torch_main_library_must_run(void **state)
{
	static const struct {
		const char *version, *code;
		bool fits;
	} rows[] = {{"2.6.0+cu124.sm90", "90", true},
		    {"2.6.0+cu124.sm90", "75", false},
		    {"2.6.0+cu124.sm90", "ptx80", true},
		    {"2.6.0+cu124.sm90.avx2", "90", true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		test_dir();
		(void)wheel_of("2.6.0", rows[i].code);
		shell("cd '%s' && mv libtiny.so libtorch_cuda.so && rm ../../out/*",
		      test_path("tree/tiny"));
		AUTO_BUF struct buf b = {0};
		craft("90", &b);
		test_write_bytes(test_path("tree/tiny/other.fatbin"), b.data, b.len);
		struct pack_request p = request();
		p.version = rows[i].version;
		struct verify_report r = verify_with(
			(struct verify_request){.wheel = pack_ok(&p).path, .tables = tables});
		if (rows[i].fits)
			assert_int_equal(r.errors, 0);
		else
			assert_only_error(&r, "gpu-missing", "",
					  "libtorch_cuda.so has no code for sm90");
	}
}

/* A wheel without label of files of GPU code and their targets. */
static struct verify_report report_of(const char *const files[][2], size_t count)
{
	test_dir();
	(void)wheel_of("2.6.0", NULL);
	shell("rm -f '%s'/*", test_path("out"));
	for (size_t i = 0; i < count; i++) {
		AUTO_BUF struct buf b = {0};
		craft(files[i][1], &b);
		const char *path = test_path("tree/tiny/%s", files[i][0]);
		shell("mkdir -p \"$(dirname '%s')\"", path);
		test_write_bytes(path, b.data, b.len);
	}

	struct pack_request p = request();
	p.version = "2.6.0";
	return verify_with((struct verify_request){.wheel = pack_ok(&p).path, .tables = tables});
}

static const char *gpus_of(const char *const files[][2], size_t count)
{
	const struct verify_report r = report_of(files, count);
	return strlist_join(&r.runs_on.gpu, &arena, " ");
}

static void test_alternatives_and_families(void **state)
{
	(void)state;
	static const char *const alternatives[][2] = {{"a_cuda126.fatbin", "75 80"},
						      {"a_cuda130.fatbin", "80 120"}};
	static const char *const required[][2] = {{"a.fatbin", "75 80"}, {"b.fatbin", "80 120"}};
	static const char *const families[][2] = {{"hopper_C.fatbin", "90"},
						  {"blackwell_C.fatbin", "100"}};
	assert_string_equal(gpus_of(alternatives, 2), "7.5 8.0 12.0");
	assert_string_equal(gpus_of(required, 2), "8.0");
	assert_string_equal(gpus_of(families, 2), "10.0 9.0");
}

/* What has no code for the machine's GPU, by files and their targets. */
static void test_parts_of_a_wheel_on_a_gpu(void **state)
{
	static const struct {
		const char *files[4][2];
		const char *gpu;
		enum fit_verdict verdict;
		size_t lacks;
	} rows[] = {
		/* a library for many GPUs decides, not one for a generation of them */
		{{{"_C.fatbin", "75 80 90 120"}, {"fa3.fatbin", "90a"}}, "9.0", FIT_YES, 0},
		{{{"_C.fatbin", "75 80 90 120"}, {"fa3.fatbin", "90a"}}, "12.0", FIT_YES, 1},
		{{{"_C.fatbin", "75 80 90 120"}, {"fa3.fatbin", "90a"}}, "6.1", FIT_NO, 1},
		/* one with a twentieth of the code does not */
		{{{"_C.fatbin", "80"}, {"help.fatbin", "80 120"}}, "12.0", FIT_YES, 1},
		{{{"_C.fatbin", "80 | 80 | 80 | 80 | 80"}, {"help.fatbin", "80 120"}},
		 "12.0",
		 FIT_PERHAPS,
		 1},
		/* a later minor number runs both */
		{{{"a.fatbin", "86 90"}, {"b.fatbin", "80 90"}}, "8.6", FIT_YES, 0},
		{{{"a.fatbin", "86 90"}, {"b.fatbin", "80 90"}}, "8.0", FIT_YES, 1},
		{{{"a.fatbin", "86 90 | 86 90"}, {"b.fatbin", "80 90"}}, "8.0", FIT_PERHAPS, 1},
		/* families: each serves what no other does */
		{{{"hopper_C.fatbin", "90a"}, {"blackwell_C.fatbin", "100f"}}, "9.0", FIT_YES, 1},
		{{{"hopper_C.fatbin", "90a"}, {"blackwell_C.fatbin", "100f"}},
		 "7.5",
		 FIT_PERHAPS,
		 1},
		{{{"sm90/_C.fatbin", "90a"}, {"sm100/_C.fatbin", "100f"}}, "10.0", FIT_YES, 0},
		{{{"sm90/_C.fatbin", "90a"}, {"sm100/_C.fatbin", "100f"}}, "7.5", FIT_NO, 1},
		{{{"_C.cu126.fatbin", "75"}, {"_C.cu130.fatbin", "80"}}, "8.0", FIT_YES, 0},
	};
	struct hardware h = {
		.platform = "x86_64-linux", .driver = "", .driver_cuda = "", .glibc = "2.41"};
	struct hardware_gpu gpu = {.name = "GPU"};

	(void)state;
	h.gpus = &gpu;
	h.gpu_count = 1;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t count = 0;
		struct fit fit;
		while (count < 4 && rows[i].files[count][0])
			count++;
		const struct verify_report r = report_of(rows[i].files, count);
		gpu.capability = rows[i].gpu;
		fit_gpu(&r.runs_on, &h, &arena, &fit);
		if (fit.verdict != rows[i].verdict || fit.lacks.count != rows[i].lacks)
			fail_msg("row %zu: %s", i, fit_text(&fit, &arena));
	}
}

static enum fit_verdict verdict_on(const char *capability, const struct verify_report *r)
{
	struct hardware_gpu gpu = {.name = "GPU", .capability = capability};
	const struct hardware h = {.platform = "x86_64-linux",
				   .driver = "580.95.05",
				   .driver_cuda = "13.0",
				   .glibc = "2.41",
				   .gpus = &gpu,
				   .gpu_count = 1};
	struct fit fit;

	fit_gpu(&r->runs_on, &h, &arena, &fit);
	return fit.verdict;
}

/* A library with this code and `space` bytes more, next
 * to one without code that needs these SONAMEs. */
static struct verify_report report_beside(const char *sonames, const char *code, const char *space)
{
	test_dir();
	(void)wheel_of("2.6.0", code);
	shell("cd '%s' && rm -f out/* && echo 'int f;' >f.c && for s in %s; do "
	      "cc -shared -o $s -Wl,-soname,$s f.c; done && "
	      "cc -shared -fPIC -Wl,--no-as-needed -o tree/tiny/host.so f.c %s && "
	      "head -c %s /dev/zero >>tree/tiny/libtiny.so",
	      test_path("."), sonames, sonames, space);
	struct pack_request p = request();
	p.version = "2.6.0";
	return verify_with((struct verify_request){.wheel = pack_ok(&p).path, .tables = tables});
}

static void test_libraries_without_code_beside_parts_without_it(void **state)
{
	static const struct {
		const char *sonames, *space;
		enum fit_verdict verdict;
	} rows[] = {
		{"libcuda.so.1", "1", FIT_PERHAPS},
		{"libcudart.so.12", "1", FIT_PERHAPS},
		{"libcuda.so.1", "4000000", FIT_NO}, /* less than a hundredth of the bytes */
		{"libother.so.1", "1", FIT_NO},
		{"libcuda.so.1 libc10_cuda.so", "1", FIT_NO}, /* an extension of torch's */
		{"libtiny.so", "1", FIT_NO},                  /* which loads the code */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct verify_report r = report_beside(rows[i].sonames, "90", rows[i].space);
		const enum fit_verdict verdict = verdict_on("7.5", &r);
		if (verdict != rows[i].verdict || verdict_on("9.0", &r) != FIT_YES)
			fail_msg("%s, %s bytes: %d", rows[i].sonames, rows[i].space, (int)verdict);
	}
}

/* Where more libraries use GPUs without code than have some, the code is a feature. */
static void test_more_libraries_without_code_than_parts(void **state)
{
	static const struct {
		const char *hosts, *space;
		enum fit_verdict verdict;
	} rows[] = {
		{"a.so b.so", "1", FIT_YES},
		{"a.so", "1", FIT_PERHAPS},
		{"a_cuda12.so a_cuda13.so", "1", FIT_PERHAPS}, /* alternatives are one */
		{"a_torch28.so a_torch29.so", "1", FIT_PERHAPS},
		{"a.so b.so", "8000000", FIT_NO}, /* less than a hundredth of the bytes */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		test_dir();
		(void)wheel_of("2.6.0", "90");
		shell("cd '%s' && rm -f out/* && echo 'int f;' >f.c && "
		      "cc -shared -o c.so -Wl,-soname,libcuda.so.1 f.c && for s in %s; do "
		      "cc -shared -fPIC -Wl,--no-as-needed -o tree/tiny/$s f.c c.so; done && "
		      "head -c %s /dev/zero >>tree/tiny/libtiny.so",
		      test_path("."), rows[i].hosts, rows[i].space);
		struct pack_request p = request();
		p.version = "2.6.0";
		const struct verify_report r = verify_with(
			(struct verify_request){.wheel = pack_ok(&p).path, .tables = tables});
		const enum fit_verdict verdict = verdict_on("7.5", &r);
		if (verdict != rows[i].verdict || verdict_on("9.0", &r) != FIT_YES)
			fail_msg("%s, %s bytes: %d", rows[i].hosts, rows[i].space, (int)verdict);
	}
}

static void test_needed_cuda_libraries_without_code_for_a_gpu(void **state)
{
	static const struct {
		const char *sonames, *gpu;
		enum fit_verdict verdict;
	} rows[] = {
		{"libnvrtc.so.13", "6.1", FIT_NO},
		{"libcudart.so.13", "6.1", FIT_YES},
		{"libcudart.so.13 libtorch_cuda.so", "6.1", FIT_NO},
		{"libcudart.so.13 libtorch_cuda.so", "7.5", FIT_YES},
		{"libcudart.so.12 libtorch_cuda.so", "6.1", FIT_YES},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct verify_report r = report_beside(rows[i].sonames, NULL, "1");
		if (verdict_on(rows[i].gpu, &r) != rows[i].verdict)
			fail_msg("%s on %s", rows[i].sonames, rows[i].gpu);
	}
}

static void test_ptx_as_text_is_code(void **state)
{
	static const struct {
		const char *text, *gpus;
	} rows[] = {
		{"//\n// Generated\n.version 8.7\n.target sm_75, debug\n.address_size 64\n",
		 "7.5+PTX"},
		{"/* a */ .version 8.7\n/* b */\n.target sm_90a\n", "9.0a+PTX"},
		{".target sm_75\n", ""},
		{".version 8.7\n", ""},
		{".version 8.7\n.target texmode\n", ""},
		{"# .version 8.7\n.target sm_75\n", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		test_dir();
		(void)wheel_of("2.6.0", NULL);
		shell("rm -f '%s'/*", test_path("out"));
		test_write(test_path("tree/tiny/kernel.ptx"), rows[i].text);
		struct pack_request p = request();
		p.version = "2.6.0";
		const struct verify_report r = verify_with(
			(struct verify_request){.wheel = pack_ok(&p).path, .tables = tables});
		assert_string_equal(strlist_join(&r.runs_on.gpu, &arena, " "), rows[i].gpus);
	}
}

/* The driver compiles it for the GPU that a label names, if that is no older. */
static void test_ptx_as_text_serves_a_label(void **state)
{
	static const struct {
		const char *version, *target;
		size_t errors;
	} rows[] = {
		{"2.6.0+cu124.sm90", "sm_75", 0},      {"2.6.0+cu124.sm90.avx2", "sm_75", 0},
		{"2.6.0+cu124.sm90.avx2", "sm_90", 0}, {"2.6.0+cu124.sm80", "sm_90", 1},
		{"2.6.0+cu124.sm80.avx2", "sm_90", 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		test_dir();
		(void)wheel_of(rows[i].version, NULL);
		shell("rm -f '%s'/*", test_path("out"));
		test_write(test_path("tree/tiny/kernel.ptx"),
			   arena_printf(&arena, ".version 8.4\n.target %s\n", rows[i].target));
		struct pack_request p = request();
		p.version = rows[i].version;
		const struct verify_report r = verify_with(
			(struct verify_request){.wheel = pack_ok(&p).path, .tables = tables});
		if (r.errors != rows[i].errors)
			fail_msg("%s, %s: %s", rows[i].version, rows[i].target,
				 verify_text(&r, &arena));
	}
}

/* A wheel with this requirement, and a file of GPU code or none. */
static struct verify_report report_requiring(const char *requires, const char *code)
{
	test_dir();
	(void)wheel_of("2.6.0", code);
	shell("rm -f '%s'/* && echo 'Requires-Dist: %s' > '%s' && sed -i '/^Name/r %s' "
	      "'%s'/torch-*.dist-info/METADATA",
	      test_path("out"), "x", test_path("line"), test_path("line"), test_path("tree"));
	shell("cd '%s'/torch-*.dist-info && sed -i \"s|^Requires-Dist: x|Requires-Dist: "
	      "%s|\" METADATA",
	      test_path("tree"), requires);
	struct pack_request p = request();
	p.version = "2.6.0";
	return verify_with((struct verify_request){.wheel = pack_ok(&p).path, .tables = tables});
}

/* By METADATA and by the name, where no library asks for a runtime. */
static void test_cuda_of_metadata_and_name(void **state)
{
	static const struct {
		const char *requires, *cuda, *driver;
	} rows[] = {
		{"nvidia-cublas-cu12", "12", "525.60.13"},
		{"cuda-toolkit[cudart]==13.*", "13", "580"},
		{"cuda-toolkit<13,>=12", "12", "525.60.13"},
		{"nvidia-cuda-runtime", "13", "580"},
		{"nvidia-cudnn-cu11; extra == 'x'", "", ""},
		{"nvidia-nccl-cu11", "11", "450.80.02"},
		{"curio==0.5", "", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct verify_report r = report_requiring(rows[i].requires, "80");
		if (strcmp(r.runs_on.cuda, rows[i].cuda) != 0 ||
		    strcmp(r.runs_on.driver, rows[i].driver) != 0)
			fail_msg("%s: CUDA '%s', driver '%s'", rows[i].requires, r.runs_on.cuda,
				 r.runs_on.driver);
	}
}

static void test_cuda_of_paths(void **state)
{
	(void)state;
	static const char *const files[][2] = {{"cu13/a.fatbin", "80"}, {"b.fatbin", "80"}};
	struct verify_report r = report_of(files, 2);
	assert_string_equal(r.runs_on.cuda, "13");
	assert_string_equal(r.runs_on.driver, "580");
	r = report_of(files + 1, 1);
	assert_string_equal(r.runs_on.cuda, "");
}

/* CUDA 13 has no code for Pascal, but its driver 580 runs Pascal. */
static void test_cuda_libraries_without_code_for_a_gpu(void **state)
{
	static const struct {
		const char *requires, *gpu;
		enum fit_verdict verdict;
	} rows[] = {
		{"nvidia-cuda-nvrtc", "6.1", FIT_NO},
		{"nvidia-cublas", "6.1", FIT_NO},
		{"cuda-toolkit[nvrtc]==13.*", "6.1", FIT_NO},
		{"nvidia-cuda-nvrtc", "7.5", FIT_YES},
		{"nvidia-cuda-runtime", "6.1", FIT_YES},
		{"nvidia-cublas-cu12", "6.1", FIT_YES},
		{"nvidia-cublas; extra == 'x'", "6.1", FIT_YES},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct verify_report r = report_requiring(rows[i].requires, NULL);
		if (verdict_on(rows[i].gpu, &r) != rows[i].verdict)
			fail_msg("%s on %s", rows[i].requires, rows[i].gpu);
	}
}

static void test_cuda_runtime_that_is_needed_names_the_driver(void **state)
{
	(void)state;
	(void)wheel_of("2.6.0", NULL);
	shell("cd '%s' && rm -f out/* && echo 'int f;' >r.c && cc -shared -o r.so "
	      "-Wl,-soname,libcudart.so.13 r.c && "
	      "echo 'extern int f; "
	      "int g(void) { return f; }' >u.c && cc -shared -fPIC -o tree/tiny/libtiny.so u.c "
	      "./r.so",
	      test_path("."));
	struct pack_request p = request();
	p.version = "2.6.0";
	struct verify_report r =
		verify_with((struct verify_request){.wheel = pack_ok(&p).path, .tables = tables});
	assert_string_equal(r.runs_on.cuda, "13");
	assert_string_equal(r.runs_on.driver, "580");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_promised),
		TEST(code_in_a_file_without_section_headers),
		TEST(several_targets_and_ptx),
		TEST(extras_of_pytorch_itself),
		TEST(extras_of_a_later_pytorch),
		TEST(a_target_too_many),
		TEST(a_target_missing_everywhere),
		TEST(a_target_missing_in_one_kernel),
		TEST(no_gpu_code_at_all),
		TEST(an_extension_may_be_cxx_alone),
		TEST(ptx_that_nobody_asked_for),
		TEST(ptx_alone_is_no_code_for_the_target),
		TEST(intermediate_code),
		TEST(gpu_code_in_a_cpu_wheel),
		TEST(another_letter),
		TEST(a_wheel_that_promises_nothing),
		TEST(code_that_cannot_be_read),
		TEST(code_for_another_target_than_said),
		TEST(test_label_without_cpu_part_is_checked),
		TEST(test_torch_main_library_must_run),
		TEST(test_alternatives_and_families),
		TEST(test_parts_of_a_wheel_on_a_gpu),
		TEST(test_libraries_without_code_beside_parts_without_it),
		TEST(test_more_libraries_without_code_than_parts),
		TEST(test_needed_cuda_libraries_without_code_for_a_gpu),
		TEST(test_ptx_as_text_is_code),
		TEST(test_ptx_as_text_serves_a_label),
		TEST(test_cuda_of_metadata_and_name),
		TEST(test_cuda_of_paths),
		TEST(test_cuda_libraries_without_code_for_a_gpu),
		TEST(test_cuda_runtime_that_is_needed_names_the_driver),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
