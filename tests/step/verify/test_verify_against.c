/* What --against compares, the rules and the lines for machines. */
#include "verify_fixture.h"

static char *lines_of(const struct verify_report *r)
{
	AUTO_JSON json_t *doc = verify_json(r);
	return show_string(doc, verify_lines, &arena);
}

static const struct tables *tables;

static int load(void **state)
{
	static struct arena rows;
	return load_policy(state) == 0 ? tables_load(PROFILES_DIR, &rows, &tables, &err) : -1;
}

static struct verify_report against(const char *variant, const char *version)
{
	struct variant v;

	make_tree();
	struct pack_request p = request();
	p.version = version;
	assert_ok(variant_parse(tables, variant, &arena, &v, &err), &err);
	return verify_with((struct verify_request){
		.wheel = pack_ok(&p).path, .tables = tables, .against = &v});
}

static void another_distribution(void **state)
{
	(void)state;
	struct verify_report r = against("pytorch-python313-cpu-avx2", "1.0+cpu.avx2");
	assert_found(&r, FINDING_ERROR, "against", "", "is a wheel of tiny_pack, not of torch");
}

static void another_python(void **state)
{
	(void)state;
	struct verify_report r = against("pytorch-python313-cpu-avx2", "1.0+cpu.avx2");
	assert_found(&r, FINDING_ERROR, "against", "", "is for the Python 'py3', not for 3.13");
	assert_int_equal(r.errors, 2);
}

static void another_label(void **state)
{
	(void)state;
	struct verify_report r = against("pytorch-python313-cpu-avx2", "1.0+cpu.avx512");
	assert_found(&r, FINDING_ERROR, "against", "",
		     "has the label 'cpu.avx512', which says avx512, not avx2");
	assert_int_equal(r.errors, 3);
}

/* The number of findings about the label. */
static size_t label_findings(const char *variant, const char *version, const char *text)
{
	struct verify_report r = against(variant, version);
	size_t n = 0;

	for (size_t i = 0; i < r.count; i++)
		n += strcmp(r.findings[i].rule, "against") == 0 &&
		     test_has(r.findings[i].text, "has the label");
	if (text)
		assert_found(&r, FINDING_ERROR, "against", "", text);
	test_dir();
	return n;
}

static void another_toolkit(void **state)
{
	static const char *const gpu = "1.0+cu124.sm90.avx512",
				 *const any = "python313Packages.pytorch-sm90-avx512";
	static const char *const named = "pytorch-python313-cuda12_6-sm90-avx512";

	(void)state;
	assert_int_equal(
		label_findings(named, gpu, "'cu124.sm90.avx512', which says cu124, not cu126"), 1);
	assert_int_equal(label_findings("pytorch-python313-cuda12_4-sm90-avx512", gpu, NULL), 0);
	assert_int_equal(label_findings(any, gpu, NULL), 0);
	assert_int_equal(label_findings(any, "1.0+cpu.avx512", "which says no CUDA, not any CUDA"),
			 1);
	assert_int_equal(label_findings(named, "1.0+cpu.avx512", "which says no CUDA, not cu126"),
			 1);
	assert_int_equal(
		label_findings("pytorch-python313-cpu-avx512", gpu, "which says cu124, not cpu"),
		1);
	/* others' labels: a toolkit alone, one that no table has, and a word */
	assert_int_equal(label_findings(named, "1.0+cu124", "which says cu124, not cu126"), 1);
	assert_int_equal(label_findings(named, "1.0+cu99", "which says cu99, not cu126"), 1);
	assert_int_equal(label_findings(any, "1.0+cu99", NULL), 0);
	assert_int_equal(label_findings(named, "1.0+custom", NULL), 0);
	assert_int_equal(label_findings(named, "1.0+debian", NULL), 0);
}

static void the_promise_is_read_from_the_label(void **state)
{
	(void)state;
	make_tree();
	struct verify_report r =
		verify_with((struct verify_request){.wheel = packed(), .tables = tables});
	assert_true(r.promise.binding);
	assert_string_equal(r.promise.isa->name, "avx2");
	AUTO_JSON json_t *j = verify_json(&r);
	const json_t *p = json_object_get(j, "promise");
	assert_string_equal(json_string_value(json_object_get(p, "isa")), "avx2");
	assert_string_equal(json_string_value(json_object_get(p, "from")), "its label 'cpu.avx2'");
	assert_true(json_is_true(json_object_get(p, "binding")));
}

static void a_promise_of_the_caller_wins(void **state)
{
	struct profile p;
	struct promise promise;

	(void)state;
	make_tree();
	assert_ok(profile_parse(tables, "cpu-avx512", &arena, &p, &err), &err);
	promise_of_profile(&p, NULL, "the test", &arena, &promise);
	struct verify_report r = verify_with(
		(struct verify_request){.wheel = packed(), .tables = tables, .promise = &promise});
	assert_string_equal(r.promise.isa->name, "avx512");
}

/* Libraries of CUDA are not part of a wheel, whatever the toolkit. */
static void a_profile_for_gpus_names_no_toolkit(void **state)
{
	static const char *const versions[] = {"1.0+cu124.sm90.avx512", "1.0+custom"};
	struct profile p;
	struct promise promise;

	(void)state;
	assert_ok(profile_parse(tables, "sm90-avx512", &arena, &p, &err), &err);
	promise_of_profile(&p, NULL, "the test", &arena, &promise);
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		test_dir();
		make_tree();
		compile("libcudart.so.12", "int a(void) { return 1; }\n",
			"-nostdlib -Wl,-soname,libcudart.so.12");
		compile(LIBRARY, "int a(void); int b(void) { return a(); }\n",
			arena_printf(&arena, "-nostdlib -L'%s' -l:libcudart.so.12",
				     test_path(".")));
		struct pack_request q = request();
		q.version = versions[i];
		struct verify_report r = verify_with((struct verify_request){
			.wheel = pack_ok(&q).path, .tables = tables, .promise = &promise});
		assert_found(&r, FINDING_NOTE, "needed", "tiny/libtiny.so",
			     "needs 'libcudart.so.12', which no required package holds");
		for (size_t k = 0; k < r.count; k++)
			assert_true(strcmp(r.findings[k].rule, "needed") != 0 ||
				    r.findings[k].level == FINDING_NOTE);
		assert_true(i ? !r.promise.cuda : strcmp(r.promise.cuda, "12.4") == 0);
		assert_string_equal(r.promise.from, "the test");
	}
}

static void lines_for_machines(void **state)
{
	(void)state;
	struct verify_report r = against("pytorch-python313-cpu-avx2", "1.0+cpu.avx2");
	const char *text = lines_of(&r);
	assert_contains(text, "tiny_pack-1.0+cpu.avx2-py3-none-manylinux_2_17_x86_64.whl: "
			      "error[against]: is a wheel "
			      "of tiny_pack, not of torch\n");
	test_dir();
	make_tree();
	compile(LIBRARY, "int answer(void) { return 42; }\n", "-nostdlib -Wl,-z,execstack");
	r = verify(packed());
	assert_string_equal(lines_of(&r), "tiny_pack-1.0+cpu.avx2-py3-none-manylinux_2_17_x86_64."
					  "whl:tiny/libtiny.so: error[exec-stack]: asks "
					  "for an executable stack\n");
}

static void a_clean_wheel_has_no_lines(void **state)
{
	(void)state;
	make_tree();
	struct verify_report r = verify(packed());
	assert_string_equal(lines_of(&r), "");
}

static void every_rule_has_a_code_of_its_own(void **state)
{
	(void)state;
	size_t count = 0;
	for (const struct verify_rule *r = verify_rules; r->code; r++, count++) {
		for (const struct verify_rule *other = verify_rules; other != r; other++)
			assert_string_not_equal(other->code, r->code);
		assert_true(strlen(r->code) <= 20 &&
			    strspn(r->code, "abcdefghijklmnopqrstuvwxyz0123456789-") ==
				    strlen(r->code));
		assert_true(*r->text);
	}

	assert_int_equal(count, RULES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(another_distribution),
		TEST(another_python),
		TEST(another_label),
		TEST(another_toolkit),
		TEST(the_promise_is_read_from_the_label),
		TEST(a_promise_of_the_caller_wins),
		TEST(a_profile_for_gpus_names_no_toolkit),
		TEST(lines_for_machines),
		TEST(a_clean_wheel_has_no_lines),
		TEST(every_rule_has_a_code_of_its_own),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
