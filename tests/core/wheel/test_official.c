/* The file of a release's wheels, and what of an index goes into it. */
#include "support.h"

#include <string.h>

#include "base/sys/fs.h"
#include "core/wheel/wheel.h"

static struct arena arena;
static struct err err;

static int setup(void **state)
{
	(void)state;
	test_dir();
	err_clear(&err);
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

#define MAGIC "ptbuild official 1\n"
#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TORCH "torch-2.9.1-cp313-cp313-manylinux_2_28_x86_64.whl"

static int read_text(const char *text, struct official *ret)
{
	err_clear(&err);
	assert_ok(fs_mkdirs(TRUSTED, test_path("p/official"), &err), &err);
	assert_ok(fs_write(TRUSTED, test_path("p/official/2.9.1"), text, strlen(text), 0644, &err),
		  &err);
	return official_read(test_path("p"), "2.9.1", &arena, ret, &err);
}

static void test_damaged_rows(void **state)
{
	(void)state;
	static const struct {
		const char *row, *text;
	} bad[] = {
		{TORCH " " SHA " 5", "not a file, its sha256, its size and its CUDA"},
		{TORCH " " SHA " 5 12.8 more", "not a file, its sha256, its size and its CUDA"},
		{"torch-2.9.1.whl " SHA " 5 12.8", ":3: "},
		{"torch.tar.gz " SHA " 5 12.8", ":3: "},
		{"torch-2.9.1-cp313-cp313-win_amd64.whl " SHA " 5 12.8", "not a wheel for Linux"},
		{"torch-2.9.1-cp313-cp313-macosx_11_0_arm64.whl " SHA " 5 12.8",
		 "not a wheel for Linux"},
		{"torch-2.9.1-cp313-cp313-manylinux_2_28_s390x.whl " SHA " 5 12.8",
		 "not a wheel for Linux"},
		{TORCH " 0123 5 12.8", "not a sha256"},
		{TORCH " " SHA "0 5 12.8", "not a sha256"},
		{TORCH " 0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef 5 12.8",
		 "not a sha256"},
		{TORCH " " SHA " 0 12.8", "not a size"},
		{TORCH " " SHA " -5 12.8", "not a size"},
		{TORCH " " SHA " 5MB 12.8", "not a size"},
		{TORCH " " SHA " 9999999999999 12.8", "not a size"},
		{TORCH " " SHA " 5 cu128", "not a version of CUDA"},
		{TORCH " " SHA " 5 ../x", "not a version of CUDA"},
		{TORCH " " SHA " 5 12.8\r", "not a version of CUDA"},
		{"gpus x86_64", "not a machine and its GPU targets"},
		{"gpus riscv64 90", "not x86_64 or aarch64"},
		{"gpus x86_64 sm90", "not a GPU target"},
		{"gpus x86_64 90+asm", "not a GPU target"},
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct official o = {0};
		const char *text = arena_printf(&arena, MAGIC "# words\n%s\n", bad[i].row);
		assert_err(read_text(text, &o), &err, ERR_CONFIG, bad[i].text);
		assert_contains(err.msg, "official/2.9.1:3: ");
		assert_int_equal(o.count, 0);
	}

	struct official o = {0};
	assert_err(read_text("ptbuild official 2\n", &o), &err, ERR_CONFIG,
		   ":1: not a list of official wheels");
	assert_err(read_text("", &o), &err, ERR_CONFIG, ":1: not a list of official wheels");
	assert_err(official_read(test_path("p"), "../2.9.1", &arena, &o, &err), &err, ERR_CONFIG,
		   "are not pinned");
	err_clear(&err);
	assert_err(official_read(test_path("p"), "2.0.0", &arena, &o, &err), &err, ERR_CONFIG,
		   "are not pinned");
	assert_contains(err.hint, "pinned are 2.9.1");
	assert_contains(err.hint, "--pin torch==2.0.0");
	err_clear(&err);
	assert_err(official_read(test_path("p"), "2.9", &arena, &o, &err), &err, ERR_CONFIG,
		   "are not pinned");
	assert_contains(err.hint, "did you mean '2.9.1'?");
	err_clear(&err);
	assert_err(official_read(test_path("p"), "2.6.0-debian", &arena, &o, &err), &err,
		   ERR_CONFIG, "are not pinned");
	assert_false(test_has(err.hint, "--pin"));
}

static void test_gpus_are_kept(void **state)
{
	(void)state;
	struct official o = {0};
	AUTO_BUF struct buf text = {0};
	assert_ok(read_text(MAGIC "gpus x86_64 75 120+ptx\ngpus aarch64 90\n" TORCH " " SHA
				  " 5 12.8\n",
			    &o),
		  &err);
	assert_string_equal(strlist_join(&o.gpus[0], &arena, " "), "75 120+ptx");
	assert_string_equal(strlist_join(&o.gpus[1], &arena, " "), "90");
	official_text(&o, "2.9.1", &text);
	assert_non_null(
		strstr(buf_cstr(&text), "\ngpus x86_64 75 120+ptx\ngpus aarch64 90\n" TORCH));
}

static void test_find(void **state)
{
	(void)state;
	struct official o;
	const struct official_wheel *w;
	assert_ok(read_text(MAGIC "torch-2.9.1-cp313-cp313t-manylinux_2_28_x86_64.whl " SHA
				  " 4 12.8\n" TORCH " " SHA " 5 12.8\n\n"
				  "torch-2.9.1-cp313-cp313-manylinux_2_28_aarch64.whl " SHA
				  " 6 -\n",
			    &o),
		  &err);
	assert_int_equal(o.count, 3);
	assert_true(official_has(&o, "torch", &arena));
	assert_false(official_has(&o, "torchdata", &arena));
	assert_ok(official_find(&o, "torch", "3.13", "x86_64-linux", NULL, &arena, &w, &err), &err);
	assert_string_equal(w->file, TORCH);
	assert_ok(official_find(&o, "torch", "3.13t", "x86_64-linux", NULL, &arena, &w, &err),
		  &err);
	assert_int_equal(w->size, 4);
	assert_ok(official_find(&o, "torch", "3.13", "aarch64-linux", "13.0", &arena, &w, &err),
		  &err);
	assert_int_equal(w->size, 6);
	assert_err(official_find(&o, "torch", "3.13", "x86_64-linux", "13.0", &arena, &w, &err),
		   &err, ERR_CONFIG, "CUDA 13.0");
	assert_string_equal(err.hint, "it has cp313t, cp313 for x86_64 with CUDA 12.8; cp313 for "
				      "aarch64");
	err_clear(&err);
	assert_err(official_find(&o, "torch", "3.9", "x86_64-linux", NULL, &arena, &w, &err), &err,
		   ERR_CONFIG, "no torch for Python 3.9");
}

static void test_keep_adds_other_distributions(void **state)
{
	(void)state;
	struct official old, made = {0};
	const struct official_wheel *w;
	assert_ok(read_text(MAGIC "gpus x86_64 90\n" TORCH " " SHA " 5 12.8\n"
				  "torchvision-0.24.1-cp313-cp313-manylinux_2_28_x86_64.whl " SHA
				  " 6 12.8\n",
			    &old),
		  &err);
	const struct wheel_listed files[] = {{.name = TORCH, .sha256 = SHA, .size = 7}};
	const char *const cuda[2] = {"12.9", "-"};
	assert_ok(official_take(&made, "torch==2.9.1", files, 1, cuda, &arena, &err), &err);
	official_keep(&made, &old, &arena);
	assert_int_equal(made.count, 2);
	assert_true(official_has(&made, "torchvision", &arena));
	assert_string_equal(strlist_join(&made.gpus[0], &arena, " "), "90");
	assert_ok(official_find(&made, "torch", "3.13", "x86_64-linux", NULL, &arena, &w, &err),
		  &err);
	assert_int_equal(w->size, 7);
}

static void test_companions_fit_a_major_version_of_cuda(void **state)
{
	(void)state;
	struct official o;
	const struct official_wheel *w;
	static const char vision[] = "torchvision-0.29.2-py3-none-manylinux_2_28_x86_64.whl";
	assert_ok(read_text(arena_printf(&arena,
					 MAGIC "%s " SHA " 5 13.2\n" TORCH " " SHA " 5 13.2\n",
					 vision),
			    &o),
		  &err);
	assert_ok(
		official_find(&o, "torchvision", "3.13", "x86_64-linux", "13.0", &arena, &w, &err),
		&err);
	assert_err(
		official_find(&o, "torchvision", "3.13", "x86_64-linux", "12.8", &arena, &w, &err),
		&err, ERR_CONFIG, "no torchvision");
	err_clear(&err);
	assert_err(official_find(&o, "torch", "3.13", "x86_64-linux", "13.0", &arena, &w, &err),
		   &err, ERR_CONFIG, "no torch");
}

static void test_what_is_taken_is_read_again(void **state)
{
	(void)state;
	const char *const cuda[2] = {"12.8", "-"};
	const struct wheel_listed files[] = {
		{.name = TORCH, .sha256 = SHA, .size = 5},
		{.name = "torch-2.9.1-3-cp313-cp313-manylinux_2_28_x86_64.whl",
		 .sha256 = SHA,
		 .size = 6},
		{.name = "torch-2.9.0-cp313-cp313-manylinux_2_28_x86_64.whl",
		 .sha256 = SHA,
		 .size = 7},
		{.name = "torch-2.9.1-cp312-cp312-win_amd64.whl", .sha256 = SHA, .size = 8},
		{.name = "torch-2.9.1-cp312-cp312-manylinux_2_28_x86_64.whl",
		 .sha256 = "",
		 .size = 9},
		{.name = "torch-2.9.1.tar.gz", .sha256 = SHA, .size = 10},
	};
	struct official o = {0}, again;
	AUTO_BUF struct buf text = {0};
	assert_ok(official_take(&o, "Torch==2.9.1", files, ARRAY_LEN(files), cuda, &arena, &err),
		  &err);
	assert_int_equal(o.count, 1);
	official_text(&o, "2.9.1", &text);
	assert_ok(read_text(buf_cstr(&text), &again), &err);
	assert_string_equal(again.wheels[0].file, files[1].name);
	assert_int_equal(again.wheels[0].size, 6);
	assert_err(official_take(&o, "torch", files, 1, cuda, &arena, &err), &err, ERR_USAGE,
		   "not a wheel with its version");
	err_clear(&err);
	assert_err(official_take(&o, "torch==9", files, 1, cuda, &arena, &err), &err, ERR_NETWORK,
		   "has no wheel of 'torch==9'");
}

static void test_cuda_of_metadata(void **state)
{
	(void)state;
	static const struct {
		const char *line, *x86_64, *aarch64;
	} rows[] = {
		{"nvidia-cuda-runtime-cu12==12.8.90; platform_system == 'Linux' and "
		 "platform_machine == 'x86_64'",
		 "12.8", "-"},
		{"cuda-toolkit[cublas,cudart]==13.0.2; platform_system == 'Linux'", "13.0", "13.0"},
		{"NVIDIA_cuda.runtime (==13.2.*)", "13.2", "13.2"},
		{"cuda-toolkit==13.0.2; platform_machine == 'aarch64'", "-", "13.0"},
		{"cuda-toolkit==13.0.2; platform_machine != 'x86_64'", "-", "13.0"},
		{"cuda-toolkit==13.0.2; extra == 'gpu'", "-", "-"},
		{"cuda-toolkit>=13", "-", "-"},
		{"cuda-toolkits==13.0.2", "-", "-"},
		{"cuda-toolkit ==", "-", "-"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *text = arena_printf(
			&arena, "Metadata-Version: 2.1\nRequires-Dist: %s\n", rows[i].line);
		struct wheel_headers h;
		assert_ok(wheel_headers_parse(&(struct file_bytes){text, strlen(text), "m"}, &arena,
					      &h, &err),
			  &err);
		assert_string_equal(official_cuda(&h, "x86_64", &arena), rows[i].x86_64);
		assert_string_equal(official_cuda(&h, "aarch64-linux", &arena), rows[i].aarch64);
		const bool one = strcmp(rows[i].x86_64, "-") != 0;
		assert_string_equal(official_cuda(&h, NULL, &arena),
				    one ? rows[i].x86_64 : rows[i].aarch64);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_damaged_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gpus_are_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_find, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keep_adds_other_distributions, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_companions_fit_a_major_version_of_cuda, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_what_is_taken_is_read_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cuda_of_metadata, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
