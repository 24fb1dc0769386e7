#include "support.h"

#include <stdbool.h>
#include <string.h>

#include "base/args.h"

struct options {
	bool verbose;
	bool quiet;
	const char *profile;
	const char *out;
	unsigned jobs;
	struct strlist only;
	struct kvlist set;
	const char *mode;
	struct strlist trees;
};

#define AT(member) offsetof(struct options, member)

static const struct arg_def common[] = {
	{"verbose", 'v', ARG_FLAG, AT(verbose), NULL, "say more", NULL},
	{"quiet", 'q', ARG_FLAG, AT(quiet), NULL, "say nothing", NULL},
	{"jobs", 'j', ARG_UINT, AT(jobs), "N", "jobs at once", NULL},
	{0},
};
static const struct arg_def build[] = {
	{"profile", 'p', ARG_ONE, AT(profile), "PROFILE", "what to build", NULL},
	{"out", 0, ARG_STRING, AT(out), "DIR", "where to", "<dir>"},
	{"only", 0, ARG_LIST, AT(only), "NAMES", "some of them", NULL},
	{"tree", 0, ARG_EACH, AT(trees), "TREE", "folders", "<file>"},
	{"mode", 0, ARG_STRING, AT(mode), "MODE", "how", "fast slow safe"},
	{"set", 0, ARG_PAIRS, AT(set), "NAME=VALUE", "a value, for example A=1", NULL},
	{0},
};
static const struct arg_def *const tables[] = {common, build};

struct parsed {
	struct options o;
	struct strlist positional;
	struct arena arena;
	struct err e;
	int rc;
};

static struct parsed parse(const char *const *words)
{
	struct parsed p = {.o = {.jobs = 7}};
	int argc = 0;

	while (words[argc])
		argc++;
	p.rc = args_parse(tables, ARRAY_LEN(tables), &p.o, argc, (char *const *)words, &p.arena,
			  &p.positional, &p.e);
	return p;
}

#define PARSE(...) parse((const char *const[]){"ptbuild", __VA_ARGS__, NULL})

static void assert_usage(struct parsed p, const char *msg, const char *hint)
{
	assert_int_equal(p.rc, -1);
	assert_int_equal(p.e.kind, ERR_USAGE);
	assert_string_equal(p.e.msg, msg);
	assert_string_equal(p.e.hint, hint);
	/* Nothing was stored, whatever came before the mistake. */
	assert_false(p.o.verbose);
	assert_null(p.o.profile);
	assert_int_equal(p.o.jobs, 7);
	assert_int_equal(p.o.only.count, 0);
	assert_int_equal(p.o.set.count, 0);
	assert_int_equal(p.positional.count, 0);
	arena_release(&p.arena);
}

static void no_words_change_nothing(void **state)
{
	(void)state;
	struct parsed p = parse((const char *const[]){"ptbuild", NULL});
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.jobs, 7);
	assert_int_equal(p.positional.count, 0);
	p = parse((const char *const[]){NULL});
	assert_int_equal(p.rc, 0);
}

static void long_options_of_all_tables(void **state)
{
	(void)state;
	struct parsed p = PARSE("--verbose", "--profile", "sm90-avx512", "--out=d", "--jobs", "12");
	assert_int_equal(p.rc, 0);
	assert_true(p.o.verbose);
	assert_false(p.o.quiet);
	assert_string_equal(p.o.profile, "sm90-avx512");
	assert_string_equal(p.o.out, "d");
	assert_int_equal(p.o.jobs, 12);
}

static void flags_can_be_taken_back(void **state)
{
	(void)state;
	struct parsed p = PARSE("--verbose", "--quiet", "--no-verbose");
	assert_int_equal(p.rc, 0);
	assert_false(p.o.verbose);
	assert_true(p.o.quiet);
}

static void the_last_of_two_counts(void **state)
{
	(void)state;
	struct parsed p = PARSE("--out=a", "--out=b", "-j1", "-j2");
	assert_string_equal(p.o.out, "b");
	assert_int_equal(p.o.jobs, 2);
}

static void what_there_is_one_of_is_given_once(void **state)
{
	(void)state;
	assert_usage(PARSE("--profile=a", "-j2", "-p", "b"),
		     "option '--profile' is given twice: 'a' and 'b'",
		     "give one; a file for --matrix lists several variants");
	assert_string_equal(PARSE("--profile=a", "-p", "a").o.profile, "a");
}

static void short_options_in_all_forms(void **state)
{
	(void)state;
	struct parsed p = PARSE("-vq", "-j4", "-p", "x");
	assert_int_equal(p.rc, 0);
	assert_true(p.o.verbose && p.o.quiet);
	assert_int_equal(p.o.jobs, 4);
	assert_string_equal(p.o.profile, "x");
	p = PARSE("-vj", "5");
	assert_true(p.o.verbose);
	assert_int_equal(p.o.jobs, 5);
}

static void lists_are_split_and_gathered(void **state)
{
	(void)state;
	struct parsed p = PARSE("--only=a,b", "--only", "c");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.only.count, 3);
	assert_string_equal(strlist_join(&p.o.only, &p.arena, " "), "a b c");
	arena_release(&p.arena);
}

static void paths_keep_their_commas(void **state)
{
	(void)state;
	struct parsed p = PARSE("--tree=a,b", "--tree", "c, d,", "--tree=,");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.trees.count, 3);
	assert_string_equal(strlist_join(&p.o.trees, &p.arena, "|"), "a,b|c, d,|,");
	arena_release(&p.arena);
	assert_usage(PARSE("--tree=a", "--tree="),
		     "option '--tree' needs a directory, and its value is empty", "");
	assert_usage(PARSE("--only", ""), "option '--only' needs a value, and its value is empty",
		     "");
	assert_usage(PARSE("--only=,,"), "option '--only' needs a value, and its value is empty",
		     "");
}

static void other_words_keep_their_order(void **state)
{
	(void)state;
	struct parsed p = PARSE("one", "-v", "two", "-", "--", "--quiet", "-x");
	assert_int_equal(p.rc, 0);
	assert_string_equal(strlist_join(&p.positional, &p.arena, " "), "one two - --quiet -x");
	assert_false(p.o.quiet);
	arena_release(&p.arena);
}

static void values_may_be_strange_but_not_empty(void **state)
{
	(void)state;
	assert_usage(PARSE("--profile="),
		     "option '--profile' needs a value, and its value is empty", "");
	struct parsed p = PARSE("--profile", "-", "--out", "-");
	assert_int_equal(p.rc, 0);
	assert_string_equal(p.o.profile, "-");
	assert_string_equal(p.o.out, "-");
	p = PARSE("--profile=a=b", "--out=--x");
	assert_string_equal(p.o.profile, "a=b");
	assert_string_equal(p.o.out, "--x");
}

static void strings_point_into_argv(void **state)
{
	(void)state;
	char word[] = "--profile=abc";
	const char *const words[] = {"ptbuild", word, NULL};
	struct parsed p = parse(words);
	assert_ptr_equal(p.o.profile, word + 10);
}

static void unknown_options_get_a_suggestion(void **state)
{
	(void)state;
	assert_usage(PARSE("-v", "--profle=x"), "unknown option '--profle'",
		     "did you mean '--profile'?");
	assert_usage(PARSE("x", "--no-verbos"), "unknown option '--no-verbos'",
		     "did you mean '--no-verbose'?");
	assert_usage(PARSE("--something-else"), "unknown option '--something-else'", "");
	assert_usage(PARSE("--=x"), "unknown option '--'", "");
	assert_usage(PARSE("-x"), "unknown option '-x'", "");
	assert_usage(PARSE("-vx"), "unknown option '-vx'", "");
	assert_usage(PARSE("-5"), "unknown option '-5'", "");
}

static void values_cannot_be_taken_back(void **state)
{
	(void)state;
	assert_usage(PARSE("--no-profile"), "unknown option '--no-profile'",
		     "did you mean '--profile'?");
	assert_usage(PARSE("--no-"), "unknown option '--no-'", "");
}

static void flags_take_no_value(void **state)
{
	(void)state;
	assert_usage(PARSE("--verbose=yes"), "option '--verbose' accepts no value", "");
	assert_usage(PARSE("--no-verbose="), "option '--no-verbose' accepts no value", "");
}

static void missing_values_are_noticed(void **state)
{
	(void)state;
	assert_usage(PARSE("--only=a", "--profile"), "option '--profile' needs a value",
		     "write --profile=PROFILE");
	assert_usage(PARSE("--profile", "--verbose"), "option '--profile' needs a value",
		     "write --profile=PROFILE");
	assert_usage(PARSE("-vj"), "option '-j' needs a value", "write --jobs=N");
}

static void numbers_are_checked(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",  "x", "-1", "+1", "1.5", "0x10", " 1", "4294967296", "99999999999999999999999",
		"1 "};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char word[64], msg[128];
		snprintf(word, sizeof(word), "--jobs=%s", bad[i]);
		snprintf(msg, sizeof(msg), "option '--jobs': not a number: '%s'", bad[i]);
		assert_usage(PARSE(word), msg, "give a decimal number from 0 to 4294967295");
	}

	struct parsed p = PARSE("--jobs=4294967295");
	assert_int_equal(p.o.jobs, 4294967295u);
	p = PARSE("-j007");
	assert_int_equal(p.o.jobs, 7);
}

static void pairs_are_split_and_the_last_of_a_name_counts(void **state)
{
	(void)state;
	struct parsed p = PARSE("--set=A=1,B=", "--set", "C=x=y", "--set=A=2");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.set.count, 3);
	assert_string_equal(kvlist_get(&p.o.set, "A"), "2");
	assert_string_equal(kvlist_get(&p.o.set, "B"), "");
	assert_string_equal(kvlist_get(&p.o.set, "C"), "x=y");
	arena_release(&p.arena);
	assert_usage(PARSE("--set=A=1,B"), "option '--set': not NAME=VALUE: 'B'",
		     "--set: a value, for example A=1");
	assert_usage(PARSE("--set", "=1"), "option '--set': not NAME=VALUE: '=1'",
		     "--set: a value, for example A=1");
}

static void only_the_listed_values_are_taken(void **state)
{
	(void)state;
	struct parsed p = PARSE("--mode=slow");
	assert_int_equal(p.rc, 0);
	assert_string_equal(p.o.mode, "slow");
	arena_release(&p.arena);
	assert_usage(PARSE("--mode=sl"), "option '--mode': unknown value 'sl'",
		     "it is fast, slow or safe");
	assert_usage(PARSE("--mode", ""), "option '--mode' needs a value, and its value is empty",
		     "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_words_change_nothing),
		cmocka_unit_test(long_options_of_all_tables),
		cmocka_unit_test(flags_can_be_taken_back),
		cmocka_unit_test(the_last_of_two_counts),
		cmocka_unit_test(what_there_is_one_of_is_given_once),
		cmocka_unit_test(short_options_in_all_forms),
		cmocka_unit_test(lists_are_split_and_gathered),
		cmocka_unit_test(paths_keep_their_commas),
		cmocka_unit_test(other_words_keep_their_order),
		cmocka_unit_test(values_may_be_strange_but_not_empty),
		cmocka_unit_test(strings_point_into_argv),
		cmocka_unit_test(unknown_options_get_a_suggestion),
		cmocka_unit_test(values_cannot_be_taken_back),
		cmocka_unit_test(flags_take_no_value),
		cmocka_unit_test(missing_values_are_noticed),
		cmocka_unit_test(numbers_are_checked),
		cmocka_unit_test(pairs_are_split_and_the_last_of_a_name_counts),
		cmocka_unit_test(only_the_listed_values_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
