#include "support.h"

#include <string.h>

#include "core/wheel/wheel.h"

static struct pyproject read_text(const char *text, struct arena *a)
{
	struct pyproject p;
	struct err e = {0};

	assert_ok(pyproject_read(&(struct file_bytes){text, strlen(text), "pyproject.toml"}, a, &p,
				 &e),
		  &e);
	return p;
}

static void what_counts_is_read_and_the_rest_is_read_over(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct pyproject p = read_text(
		"title = 'x'\n[build-system]\nrequires = [\n \"setuptools>=61\", # why\n "
		"'torch',\n]\n"
		"[project]\r\nname = \"tiny\"\r\nversion='1.2'\nrequires-python = \">=3.9\"\n"
		"authors = [{name = \"A\", mail = 'b'}, {}]\nkeys = [[1, 2], [true]]\n"
		"dependencies = [\"numpy\"]\ndynamic = []\ntext = \"\"\"\n[project]\nname = "
		"'no'\"\"\"\n"
		"[[tool.x]]\nname = 'other'\n[project.urls]\n\"a.b\" = 'c' # end",
		&a);
	assert_string_equal(p.name, "tiny");
	assert_string_equal(p.version, "1.2");
	assert_string_equal(p.requires_python, ">=3.9");
	assert_string_equal(strlist_join(&p.requires, &a, " "), "setuptools>=61 torch");
	assert_string_equal(strlist_join(&p.dependencies, &a, " "), "numpy");
	assert_true(p.build_system);
}

static void a_dotted_key_is_the_same(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct pyproject p =
		read_text("project.name = \"a\\\"b\"\nproject . \"version\" = '2'\n", &a);
	assert_string_equal(p.name, "a\"b");
	assert_string_equal(p.version, "2");
	assert_false(p.build_system);
	assert_string_equal(read_text("", &a).name, "");
	assert_string_equal(read_text("[project]\nname = 3\n", &a).name, "");
}

static void what_is_no_toml_is_told_with_its_line(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"\n[project\nname = 'x'\n", "'p':2: ']' was expected"},
		{"name 'x'\n", "'p':1: '=' was expected"},
		{"name = 'x\n'\n", "'p':1: a text does not end on its line"},
		{"name = '''x\n", "'p':2: a text does not end"},
		{"a = [1, 2\n", "'p':2: a list does not end"},
		{"a = [1 2]\n[", "'p':2: a key was expected"},
		{"a = \n", "a value was expected"},
		{"a = 'x' 'y'\n", "'p':1: more on the line than was expected"},
		{"a = {b 1}\n", "'p':1: '=' was expected"},
		{"= 1\n", "'p':1: a key was expected"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_ARENA struct arena a = {0};
		struct pyproject p = {0};
		struct err e = {0};
		assert_err(pyproject_read(
				   &(struct file_bytes){cases[i].text, strlen(cases[i].text), "p"},
				   &a, &p, &e),
			   &e, ERR_INTEGRITY, cases[i].error);
		assert_null(p.name);
	}
}

static void brackets_are_bounded_and_so_is_the_text(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct pyproject p;
	struct err e = {0};
	char deep[4096] = "a = ";
	memset(deep + 4, '[', sizeof(deep) - 5);
	assert_err(pyproject_read(&(struct file_bytes){deep, strlen(deep), "p"}, &a, &p, &e), &e,
		   ERR_INTEGRITY, "too many brackets");
	/* The text ends where its length says. */
	assert_err(pyproject_read(&(struct file_bytes){"a = 'x'", 6, "p"}, &a, &p, &e), &e,
		   ERR_INTEGRITY, "does not end");
	assert_err(pyproject_read(&(struct file_bytes){"a = \0'x'", 8, "p"}, &a, &p, &e), &e,
		   ERR_INTEGRITY, "a value was expected");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_counts_is_read_and_the_rest_is_read_over),
		cmocka_unit_test(a_dotted_key_is_the_same),
		cmocka_unit_test(what_is_no_toml_is_told_with_its_line),
		cmocka_unit_test(brackets_are_bounded_and_so_is_the_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
