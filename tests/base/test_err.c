#include "support.h"

#include <errno.h>
#include <string.h>

static void set_gives_minus_one_and_fills(void **state)
{
	(void)state;
	struct err e = {0};
	assert_int_equal(err_set(&e, ERR_CONFIG, "unknown ISA '%s'", "avx9"), -1);
	assert_int_equal(e.kind, ERR_CONFIG);
	assert_string_equal(e.msg, "unknown ISA 'avx9'");
	assert_string_equal(e.hint, "");
}

static void set_clears_an_older_hint(void **state)
{
	(void)state;
	struct err e = {0};
	err_set(&e, ERR_USAGE, "first");
	err_hint(&e, "do this");
	err_set(&e, ERR_SYSTEM, "second");
	assert_string_equal(e.hint, "");
	assert_int_equal(e.kind, ERR_SYSTEM);
}

static void errno_is_appended_and_kept(void **state)
{
	(void)state;
	struct err e = {0};
	errno = ENOENT;
	assert_int_equal(err_errno(&e, ERR_SYSTEM, "cannot read '%s'", "x"), -1);
	assert_string_equal(e.msg, "cannot read 'x': No such file or directory");
	assert_int_equal(errno, ENOENT);
	assert_string_equal(e.hint, "");
}

static void full_disk_is_the_machines_fault_and_has_a_hint(void **state)
{
	(void)state;
	static const int full[] = {ENOSPC, EDQUOT, EFBIG};
	for (size_t i = 0; i < sizeof(full) / sizeof(full[0]); i++) {
		struct err e = {0};
		errno = full[i];
		err_errno(&e, ERR_NETWORK, "cannot write");
		assert_int_equal(e.kind, ERR_SYSTEM);
		assert_string_equal(e.hint, ERR_DISK_HINT);
		assert_int_equal(err_disk(e.msg), full[i]);
	}

	assert_int_equal(err_disk("FileNotFoundError: [Errno 2] No usable temporary directory "
				  "found in ['/tmp']"),
			 ENOSPC);
	assert_int_equal(
		err_disk("E: You don't have enough free space in /var/cache/apt/archives/."),
		ENOSPC);
	assert_int_equal(err_disk("cannot read 'x': Input/output error"), 0);
}

static void wrap_puts_context_in_front(void **state)
{
	(void)state;
	struct err e = {0};
	err_set(&e, ERR_INTEGRITY, "bad digest");
	err_hint(&e, "fetch it again");
	assert_int_equal(err_wrap(&e, "source '%s'", "a.tar"), -1);
	err_wrap(&e, "release 1");
	assert_string_equal(e.msg, "release 1: source 'a.tar': bad digest");
	assert_int_equal(e.kind, ERR_INTEGRITY);
	assert_string_equal(e.hint, "fetch it again");
}

static void own_text_may_be_an_argument(void **state)
{
	(void)state;
	struct err e = {0};
	err_set(&e, ERR_SYSTEM, "inner");
	err_hint(&e, "old hint");
	err_hint(&e, "%s, or not", e.hint);
	err_set(&e, ERR_BUILD, "outer (%s)", e.msg);
	assert_string_equal(e.msg, "outer (inner)");
	err_set(&e, ERR_SYSTEM, "x");
	err_hint(&e, "a");
	err_hint(&e, "%s b", e.hint);
	assert_string_equal(e.hint, "a b");
}

static void long_text_is_cut_not_overrun(void **state)
{
	(void)state;
	char big[5000];
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	struct err e = {0};
	err_set(&e, ERR_SYSTEM, "%s", big);
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
	err_hint(&e, "%s", big);
	assert_int_equal(strlen(e.hint), sizeof(e.hint) - 1);
	err_wrap(&e, "file 'a'");
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
	assert_memory_equal(e.msg, "file 'a': xxx", 13);
	err_wrap(&e, "%s", big);
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
	assert_memory_equal(e.msg, "xxx", 3);
	errno = EIO;
	err_errno(&e, ERR_SYSTEM, "%s", big);
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
}

static void clear_empties_all(void **state)
{
	(void)state;
	struct err e = {0};
	err_set(&e, ERR_POLICY, "m");
	err_hint(&e, "h");
	err_clear(&e);
	assert_int_equal(e.kind, ERR_NONE);
	assert_string_equal(e.msg, "");
	assert_string_equal(e.hint, "");
}

static void words_of_a_broken_machine(void **state)
{
	(void)state;
	assert_int_equal(
		err_kind_of_words("OSError: [Errno 28] No space left on device", ERR_BUILD),
		ERR_SYSTEM);
	assert_int_equal(err_kind_of_words("ld: final link failed: Input/output error", ERR_BUILD),
			 ERR_SYSTEM);
	assert_int_equal(err_kind_of_words("error: expected ';'", ERR_BUILD), ERR_BUILD);
	assert_int_equal(err_kind_of_words("OSError: [Errno 27] File too large", ERR_NETWORK),
			 ERR_SYSTEM);
	assert_int_equal(err_kind_of_words("", ERR_POLICY), ERR_POLICY);
	assert_int_equal(err_kind_of_words("gcc: fatal error: Killed signal terminated program cc1",
					   ERR_POLICY),
			 ERR_SYSTEM);
	assert_int_equal(err_kind_of_words("x.cxx:1:1: error: 'Killed' is no type", ERR_BUILD),
			 ERR_BUILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_gives_minus_one_and_fills),
		cmocka_unit_test(set_clears_an_older_hint),
		cmocka_unit_test(errno_is_appended_and_kept),
		cmocka_unit_test(full_disk_is_the_machines_fault_and_has_a_hint),
		cmocka_unit_test(wrap_puts_context_in_front),
		cmocka_unit_test(own_text_may_be_an_argument),
		cmocka_unit_test(words_of_a_broken_machine),
		cmocka_unit_test(long_text_is_cut_not_overrun),
		cmocka_unit_test(clear_empties_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
