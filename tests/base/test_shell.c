#include "support.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/sys/proc.h"

static void plain_words_stay(void **state)
{
	static const char *const words[] = {"/srv/root", "sm80+sm90-avx512", "--set=USE_X=ON",
					    "a_b@c%d:e,f.g"};
	AUTO_ARENA struct arena a = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		assert_ptr_equal(shell_quoted(words[i], &a), words[i]);
}

/* What a shell makes of it is the word again. */
static void a_shell_reads_them_back(void **state)
{
	static const char *const words[] = {
		"",          "a b",      "it's", "''",      "$(id)", "`id`",
		"a\\b",      "\"quoted", "a\nb", "~root",   "*",     "gr\xc3\xbc\xc3\x9f",
		";|&<>()#!", "a\tb",     "-n",   "a=$HOME", "{a,b}"};
	AUTO_ARENA struct arena a = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		AUTO_BUF struct buf out = {0};
		struct err e = {0};
		const char *const argv[] = {
			"sh", "-c", arena_printf(&a, "printf %%s %s", shell_quoted(words[i], &a)),
			NULL};
		assert_ok(proc_capture(argv, test_run(), &out, &e), &e);
		assert_string_equal(buf_cstr(&out), words[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_words_stay),
		cmocka_unit_test(a_shell_reads_them_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
