/* For which GPUs a distribution's libraries are enough. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/sys/fs.h"
#include "core/fatbin/fatbin_look.h"
#include "core/machine/official_fit.h"
#include "core/wheel/wheel.h"
#include "shipped.h"

enum { LIBRARIES = 4, GROUPS = 8, IMAGES = 8 };

static struct arena arena;
static struct err err;
static const unsigned alone[] = {87, 110};

static int setup(void **state)
{
	(void)state;
	err_clear(&err);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

/* "c90 c90a p120 l75" */
static struct fatbin_entry *images(const char *text, size_t *ret_count)
{
	struct strlist words = {0};
	struct fatbin_entry *entries = arena_array(&arena, IMAGES, sizeof(*entries));

	strlist_split(&words, &arena, text, " ");
	for (size_t i = 0; i < words.count; i++) {
		const char c = words.items[i][0];
		const enum fatbin_kind kind = c == 'c'   ? FATBIN_CUBIN
					      : c == 'p' ? FATBIN_PTX
							 : FATBIN_LTO;
		entries[i] = (struct fatbin_entry){.kind = kind, .number = kind};
		snprintf(entries[i].target, sizeof(entries[i].target), "%s", words.items[i] + 1);
	}

	*ret_count = words.count;
	return entries;
}

/* "397 c70 c75 | 2 c70 c90a": how often, and what is in each. */
static struct fatbin_look look(const char *name, const char *text)
{
	struct fatbin_look l = {.name = name, .code = *text != '\0', .used = true};
	struct strlist groups = {0};

	strlist_split(&groups, &arena, text, "|");
	l.groups = arena_array(&arena, GROUPS, sizeof(*l.groups));
	for (size_t i = 0; i < groups.count; i++) {
		char *rest;
		struct fatbin_group *g = &l.groups[l.groups_count++];
		g->containers = strtoul(groups.items[i], &rest, 10);
		g->entries = images(rest, &g->count);
		l.containers += g->containers;
	}

	return l;
}

static struct fatbin_judging judging(bool torch, const struct fatbin_look *looks, size_t count,
				     const struct fatbin_wanted *w)
{
	return (struct fatbin_judging){.what = "x.whl",
				       .torch = torch,
				       .whole = torch,
				       .ptx = true,
				       .looks = looks,
				       .count = count,
				       .wanted = w};
}

static int judge_looks(bool torch, const struct fatbin_look *looks, size_t count,
		       struct fatbin_gpu gpu)
{
	const struct fatbin_wanted w = {&gpu, 1, alone, ARRAY_LEN(alone)};
	const struct fatbin_judging j = judging(torch, looks, count, &w);

	err_clear(&err);
	return fatbin_judge(&j, &arena, &err);
}

#define MAIN "torch/lib/libtorch_cuda.so"

/* As cuobjdump lists torch 2.9.1 (x86_64). */
static size_t torch_291(struct fatbin_look *ret)
{
	ret[0] = look(MAIN, "393 c70 c75 c80 c86 c90 c100 c120|2 c70 c75 c80 c86 c90 c90a c100 "
			    "c120|2 c70 c75 c80 c86 "
			    "c89 c90 c100 c120");
	ret[1] = look("torch/lib/libtorch_cuda_linalg.so", "107 c50 c60 c70 c80 c86 c90 c100 c120");
	ret[2] = look("torch/lib/libtorch_nvshmem.so", "2 c70 c80 c89 c90 p90");
	ret[3] = look("torch/lib/libtorch_python.so", "");
	ret[3].listed = images("c70 c75 c80 c86 c90 c100 c120", &ret[3].listed_count);
	return 4;
}

static void test_torch_needs_code_in_its_main_library(void **state)
{
	(void)state;
	static const struct {
		unsigned gpu;
		bool fits;
	} rows[] = {{50, false},  {52, false}, {53, false}, {60, false}, {61, false}, {62, false},
		    {70, true},   {72, true},  {75, true},  {80, true},  {86, true},  {87, true},
		    {88, true},   {89, true},  {90, true},  {100, true}, {101, true}, {103, true},
		    {110, false}, {120, true}, {121, true}};
	struct fatbin_look looks[LIBRARIES];
	const size_t count = torch_291(looks);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const int rc =
			judge_looks(true, looks, count, (struct fatbin_gpu){rows[i].gpu, false});
		if ((rc == 0) != rows[i].fits)
			fail_msg("sm%u: %d %s", rows[i].gpu, rc, err.msg);
		if (rows[i].fits)
			continue;
		assert_int_equal(err.kind, ERR_POLICY);
		assert_contains(err.msg, "libtorch_cuda.so");
		assert_contains(err.msg, arena_printf(&arena, "sm%u", rows[i].gpu));
		assert_contains(err.hint, "sm_70");
	}
}

static void test_ptx_of_another_library_is_not_torchs(void **state)
{
	(void)state;
	struct fatbin_look looks[LIBRARIES];
	const size_t count = torch_291(looks);
	assert_err(judge_looks(true, looks, count, (struct fatbin_gpu){90, true}), &err, ERR_POLICY,
		   "no PTX");
	looks[0] = look(MAIN, "397 c90 p90");
	assert_ok(judge_looks(true, looks, count, (struct fatbin_gpu){90, true}), &err);
	assert_ok(judge_looks(true, looks, count, (struct fatbin_gpu){110, false}), &err);
	/* All of its code was removed: the fat binaries are still there, and empty. */
	looks[0] = look(MAIN, "");
	looks[0].code = true;
	assert_err(judge_looks(true, looks, count, (struct fatbin_gpu){110, false}), &err,
		   ERR_POLICY, "no code for sm110");
	looks[0] = look(MAIN, "396 c90|1 c90 p90");
	assert_err(judge_looks(true, looks, count, (struct fatbin_gpu){90, true}), &err, ERR_POLICY,
		   "no PTX");
}

static void test_torch_needs_as_many_as_for_its_own_gpus(void **state)
{
	(void)state;
	struct fatbin_look looks[2] = {look(MAIN, "300 c80 c90|90 c90|7 c80 c90 c120"),
				       look("libtorch_python.so", "")};
	looks[1].listed = images("c80 c90", &looks[1].listed_count);
	assert_int_equal(judge_looks(true, looks, 2, (struct fatbin_gpu){80, false}), 0);
	assert_int_equal(judge_looks(true, looks, 2, (struct fatbin_gpu){90, false}), 0);
	assert_err(judge_looks(true, looks, 2, (struct fatbin_gpu){120, false}), &err, ERR_POLICY,
		   "7 fat binaries");
	/* Slimmed before, it has no list of several: the GPU with the most counts. */
	looks[1].listed_count = 0;
	assert_err(judge_looks(true, looks, 2, (struct fatbin_gpu){80, false}), &err, ERR_POLICY,
		   "307 fat binaries");
	assert_int_equal(judge_looks(true, looks, 2, (struct fatbin_gpu){90, false}), 0);
}

static void test_other_packages_need_any_code(void **state)
{
	(void)state;
	struct fatbin_look looks[] = {look("a.so", "138 c61 c70"), look("b.so", "43 c80 p80"),
				      look("c.so", "")};
	const struct fatbin_gpu hopper = {90, false};
	const struct fatbin_wanted w = {&hopper, 1, alone, ARRAY_LEN(alone)};
	const struct fatbin_judging j = judging(false, looks, ARRAY_LEN(looks), &w);
	assert_int_equal(judge_looks(false, looks, 3, hopper), 0);
	assert_string_equal(fatbin_bare(&j, &arena), "a.so (sm90: 0 of 138 fat binaries)");
	assert_err(judge_looks(false, looks, 1, hopper), &err, ERR_POLICY, "runs on sm90");
	assert_contains(err.hint, "cubin sm_61, cubin sm_70");
	looks[0].others = arena_array(&arena, 1, sizeof(*looks[0].others));
	looks[0].others[0] = (struct fatbin_group){.containers = 1};
	looks[0].others[0].entries = images("l75", &looks[0].others[0].count);
	looks[0].others_count = 1;
	assert_int_equal(judge_looks(false, looks, 1, hopper), 0);
	assert_string_equal(fatbin_bare(&j, &arena), "");
}

static void test_gpu_that_a_toolkit_renamed_needs_an_older_one(void **state)
{
	AUTO_ARENA struct arena rows = {0};
	const struct fatbin_gpu thor = {101, false}, turing = {75, false}, pascal = {61, false};
	struct fatbin_look looks[] = {look(MAIN, "300 c75 c100 p100")};
	struct fatbin_wanted w = {&thor, 1, alone, ARRAY_LEN(alone)};
	struct fatbin_judging j = judging(true, looks, 1, &w);

	(void)state;
	j.tables = shipped_tables(&rows);
	assert_ok(fatbin_judge(&j, &arena, &err), &err);
	j.cuda = "12.9";
	assert_ok(fatbin_judge(&j, &arena, &err), &err);
	j.cuda = "13.0";
	assert_err(fatbin_judge(&j, &arena, &err), &err, ERR_POLICY, "sm101");
	assert_contains(err.hint, "sm110");
	w.gpus = &turing;
	assert_ok(fatbin_judge(&j, &arena, &err), &err);
	/* It has no other number: what there is says more. */
	w.gpus = &pascal;
	assert_err(fatbin_judge(&j, &arena, &err), &err, ERR_POLICY, "sm61");
	assert_contains(err.hint, "cubin sm_75");
}

static const char *torch_cuda_of(const struct official *o, int machine)
{
	for (size_t i = 0; i < o->count; i++)
		if (strcmp(o->wheels[i].name.dist, "torch") == 0 &&
		    official_machine(o->wheels[i].name.platform) == machine)
			return o->wheels[i].cuda;
	return NULL;
}

/* Every official torch and every GPU of the tables:
 * fit exactly where its libtorch_cuda has code for it. */
static void test_official_torches_for_every_gpu(void **state)
{
	AUTO_ARENA struct arena rows = {0};
	const struct tables *t = shipped_tables(&rows);
	struct strlist lines = {0}, pinned = {0};
	char *text = test_read(TEST_DATA_DIR "/official_gpus.tsv");
	size_t rows_count = 0, wanted = 0, judged = 0;
	struct fatbin_wanted w = {.count = 1};

	(void)state;
	assert_non_null(text);
	w.alone = tables_chips(t, &arena, &w.alone_count);
	strlist_split(&lines, &arena, text, "\n");
	free(text);
	assert_ok(fs_list(TRUSTED, PROFILES_DIR "/official", &arena, &pinned, &err), &err);
	for (size_t i = 0; i < lines.count; i++) {
		struct strlist fields = {0}, held = {0}, fits = {0};
		strlist_split(&fields, &arena, lines.items[i], "\t");
		if (*lines.items[i] == '#')
			continue;
		assert_int_equal(fields.count, 4);
		assert_true(strlist_contains(&pinned, fields.items[0]));
		strlist_split(&held, &arena, fields.items[2], " ");
		strlist_split(&fits, &arena, fields.items[3], " ");
		/* What --release refuses by without a download is the same list. */
		struct official o;
		assert_ok(official_read(t->dir, fields.items[0], &arena, &o, &err), &err);
		const struct strlist *listed = &o.gpus[strcmp(fields.items[1], "aarch64") == 0];
		assert_string_equal(strlist_join(listed, &arena, " "), fields.items[2]);
		const char *images_text =
			arena_printf(&arena, "c%s", strlist_join(&held, &arena, " c"));
		struct fatbin_look looks[3] = {
			look(MAIN, arena_printf(&arena, "400 %s", images_text)),
			look("libtorch_nvshmem.so", "3 c90 p90"), look("libtorch_python.so", "")};
		looks[2].listed = images(images_text, &looks[2].listed_count);
		rows_count++;
		for (unsigned g = 0; g < t->gpus_count; g++, judged++) {
			const struct fatbin_gpu gpu = {(unsigned)strtoul(t->gpus[g].sm, NULL, 10),
						       false};
			struct fatbin_judging j = judging(true, looks, 3, &w);
			j.cuda = torch_cuda_of(&o, strcmp(fields.items[1], "aarch64") == 0);
			j.tables = t;
			w.gpus = &gpu;
			const bool fit = fatbin_judge(&j, &arena, &err) == 0;
			const char *platform = arena_printf(&arena, "%s-linux", fields.items[1]);
			assert_true(fit == official_serves(t, &o, platform, t->gpus[g].capability));
			if (fit != strlist_contains(&fits, t->gpus[g].sm))
				fail_msg("%s for sm%s: %d", lines.items[i], t->gpus[g].sm, fit);
		}
	}

	for (size_t i = 0; i < pinned.count; i++) {
		struct official o;
		assert_ok(official_read(t->dir, pinned.items[i], &arena, &o, &err), &err);
		wanted += (o.gpus[0].count > 0) + (o.gpus[1].count > 0);
	}

	assert_int_equal(rows_count, wanted);
	assert_true(judged >= rows_count * 20);
}

static struct fatbin_entry image(enum fatbin_kind kind, const char *target)
{
	struct fatbin_entry entry = {.kind = kind, .number = kind};
	snprintf(entry.target, sizeof(entry.target), "%s", target);
	return entry;
}

/* "c90 c90a p90 l90": what stays of them for the GPUs. */
static const char *chosen(const char *images, const struct fatbin_gpu *gpus, size_t count)
{
	struct strlist words = {0}, left = {0};
	struct fatbin_entry entries[16];
	bool keep[16], runs[4];
	struct fatbin_wanted w = {gpus, count, alone, ARRAY_LEN(alone)};

	strlist_split(&words, &arena, images, " ");
	for (size_t i = 0; i < words.count; i++)
		entries[i] = image(words.items[i][0] == 'c'   ? FATBIN_CUBIN
				   : words.items[i][0] == 'p' ? FATBIN_PTX
				   : words.items[i][0] == 'l' ? FATBIN_LTO
							      : FATBIN_OTHER,
				   words.items[i] + 1);
	fatbin_choose(&(struct fatbin_choice){entries, words.count, &w, keep, runs});
	for (size_t i = 0; i < words.count; i++)
		if (keep[i])
			strlist_ref(&left, &arena, words.items[i]);
	for (size_t g = 0; g < count; g++)
		if (!runs[g])
			strlist_addf(&left, &arena, "none for %u", gpus[g].number);
	return strlist_join(&left, &arena, " ");
}

#define CHOSEN(images, ...)                                                                        \
	chosen(images, (const struct fatbin_gpu[]){__VA_ARGS__},                                   \
	       sizeof((const struct fatbin_gpu[]){__VA_ARGS__}) / sizeof(struct fatbin_gpu))
#define GPU(n)                                                                                     \
	{                                                                                          \
		n, false                                                                           \
	}

/* CUDA's own rules: a binary runs on the same and on higher
 * minor numbers of its line, PTX on all that is newer. */
static void test_as_the_driver_chooses(void **state)
{
	(void)state;
	assert_string_equal(CHOSEN("c80 c90 c90a c100", GPU(90)), "c90 c90a");
	assert_string_equal(CHOSEN("c70 c75 c80 c86 c90", GPU(89)), "c86");
	assert_string_equal(CHOSEN("c80 c87 c90", GPU(89)), "c80"); /* Orin's runs on Orin alone */
	assert_string_equal(CHOSEN("c80 c87 p80", GPU(87)), "c87");
	/* not promised: both stay */
	assert_string_equal(CHOSEN("c80 p75 p80", GPU(87)), "c80 p80");
	assert_string_equal(CHOSEN("c80 c90a p90a p80 p75", GPU(100)), "p80");
	assert_string_equal(CHOSEN("c100 c100a c100f c103a", GPU(103)), "c103a");
	assert_string_equal(CHOSEN("c100 c100a c100f", GPU(103)), "c100 c100f");
	assert_string_equal(CHOSEN("c120 c120a", GPU(121)), "c120");
	assert_string_equal(CHOSEN("c100f p100f p90", GPU(120)), "p90");
	assert_string_equal(CHOSEN("c120 p120 p90", {120, true}), "c120 p120");
	assert_string_equal(CHOSEN("c80 c90 p90", GPU(80), GPU(90)), "c80 c90");
	assert_string_equal(CHOSEN("c90 l80 l75", GPU(80)), "l80");
	assert_string_equal(CHOSEN("c90 c100a p100a", GPU(80)), "none for 80");
	assert_string_equal(CHOSEN("c90 x0", GPU(80)), "x0 none for 80");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_torch_needs_code_in_its_main_library, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_ptx_of_another_library_is_not_torchs, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_torch_needs_as_many_as_for_its_own_gpus, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_gpu_that_a_toolkit_renamed_needs_an_older_one,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_official_torches_for_every_gpu, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_other_packages_need_any_code, setup, teardown),
		cmocka_unit_test_setup_teardown(test_as_the_driver_chooses, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
