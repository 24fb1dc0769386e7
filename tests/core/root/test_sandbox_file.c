#include "support.h"

#include <string.h>

#include "base/sys/json.h"
#include "core/root/sandbox.h"

static char *argv_text(const struct sandbox *s, struct arena *a)
{
	static const char *const argv[] = {"true", NULL};
	struct strlist words = {0};
	struct err e = {0};

	assert_ok(sandbox_argv(s, argv, &words, &e), &e);
	return strlist_join(&words, a, "\n");
}

static void a_sandbox_comes_back_as_it_was(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct root root;
	struct sandbox s, back;
	struct err e = {0};
	assert_ok(root_open("/", &a, &root, &e), &e);
	assert_ok(sandbox_init(&s, SANDBOX_BWRAP, &root, &a, &e), &e);
	sandbox_add(&s, SANDBOX_RW, "/tmp", SANDBOX_SRC);
	kvlist_set(&s.env, &a, "PATH", "/usr/bin");
	kvlist_set(&s.env, &a, "FLAGS", "-DA=\"b c\"");
	s.cwd = SANDBOX_SRC;
	AUTO_JSON json_t *j = sandbox_to_json(&s);
	assert_ok(sandbox_from_json(j, "file", &a, &back, &e), &e);
	assert_string_equal(argv_text(&back, &a), argv_text(&s, &a));
	assert_int_equal(back.count, s.count);
	for (size_t i = 0; i < s.count; i++)
		if (s.ops[i].type == SANDBOX_DATA)
			assert_string_equal(back.ops[i].source, s.ops[i].source);
}

static void what_is_no_sandbox_is_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"{}",
		"[]",
		"{\"kind\":\"chroot\",\"network\":false,\"cwd\":\"/\",\"ops\":[],\"env\":[]}",
		"{\"kind\":\"none\",\"network\":false,\"cwd\":\"relative\",\"ops\":[],\"env\":[]}",
		"{\"kind\":\"none\",\"network\":1,\"cwd\":\"/\",\"ops\":[],\"env\":[]}",
		"{\"kind\":\"none\",\"network\":false,\"cwd\":\"/\",\"ops\":{},\"env\":[]}",
		"{\"kind\":\"none\",\"network\":false,\"cwd\":\"/"
		"\",\"ops\":[{\"type\":\"what\",\"source\":null,\"dest\":\"/"
		"a\"}],\"env\":[]}",
		"{\"kind\":\"none\",\"network\":false,\"cwd\":\"/"
		"\",\"ops\":[{\"type\":\"rw\",\"source\":null,\"dest\":\"/"
		"a\"}],\"env\":[]}",
		("{\"kind\":\"none\",\"network\":false,\"cwd\":\"/"
		 "\",\"ops\":[{\"type\":\"rw\",\"source\":\"/"
		 "a\",\"dest\":\"a\"}],\"env\":[]}"),
		"{\"kind\":\"none\",\"network\":false,\"cwd\":\"/"
		"\",\"ops\":[],\"env\":[[\"A=B\",\"c\"]]}",
		"{\"kind\":\"none\",\"network\":false,\"cwd\":\"/\",\"ops\":[],\"env\":[[\"A\"]]}",
	};
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct sandbox s = {.cwd = "untouched"};
		AUTO_JSON json_t *j = json_loads(texts[i], 0, NULL);
		assert_non_null(j);
		assert_err(sandbox_from_json(j, "the file", &a, &s, &e), &e, ERR_INTEGRITY,
			   "'the file' does not describe a sandbox");
		assert_string_equal(s.cwd, "untouched");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sandbox_comes_back_as_it_was),
		cmocka_unit_test(what_is_no_sandbox_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
