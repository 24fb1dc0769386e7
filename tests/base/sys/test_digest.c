#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys/digest.h"

/* FIPS 180-4 test vectors. */
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define MILLION_A "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"

static void known_digests(void **state)
{
	(void)state;
	char hex[DIGEST_HEX_LEN + 1];
	digest_data("", 0, hex);
	assert_string_equal(hex, EMPTY);
	digest_data("abc", 3, hex);
	assert_string_equal(hex, ABC);
}

static void pieces_give_the_same(void **state)
{
	(void)state;
	AUTO_DIGEST struct digest *d = digest_new();
	char chunk[1000];
	memset(chunk, 'a', sizeof(chunk));
	for (int i = 0; i < 1000; i++)
		digest_update(d, chunk, sizeof(chunk));
	uint8_t raw[DIGEST_LEN];
	digest_final(d, raw);
	char hex[DIGEST_HEX_LEN + 1];
	digest_hex(raw, hex);
	assert_string_equal(hex, MILLION_A);
}

static void reset_starts_again(void **state)
{
	(void)state;
	AUTO_DIGEST struct digest *d = digest_new();
	uint8_t raw[DIGEST_LEN];
	char hex[DIGEST_HEX_LEN + 1];
	digest_update(d, "xyz", 3);
	digest_reset(d);
	digest_update(d, "abc", 3);
	digest_final(d, raw);
	digest_hex(raw, hex);
	assert_string_equal(hex, ABC);
	digest_reset(d);
	digest_final(d, raw);
	digest_hex(raw, hex);
	assert_string_equal(hex, EMPTY);
}

static void base64url_has_no_padding(void **state)
{
	(void)state;
	uint8_t raw[DIGEST_LEN];
	char out[44];
	memset(raw, 0xff, sizeof(raw));
	digest_base64url(raw, out);
	assert_string_equal(out, "__________________________________________8");
	for (size_t i = 0; i < sizeof(raw); i++)
		raw[i] = (uint8_t)(0xfb - i * 8);
	digest_base64url(raw, out);
	assert_int_equal(strlen(out), 43);
	assert_null(strpbrk(out, "+/="));
	assert_int_equal(out[0], '-');
}

static void files_of_any_size(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	char hex[DIGEST_HEX_LEN + 1];
	test_write(test_path("empty"), "");
	assert_ok(digest_file(test_path("empty"), hex, &e), &e);
	assert_string_equal(hex, EMPTY);
	char *big = malloc(1000000);
	assert_non_null(big);
	memset(big, 'a', 1000000);
	test_write_bytes(test_path("big"), big, 1000000);
	free(big);
	assert_ok(digest_file(test_path("big"), hex, &e), &e);
	assert_string_equal(hex, MILLION_A);
}

static void unreadable_files_are_named(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	char hex[DIGEST_HEX_LEN + 1] = "untouched";
	assert_err(digest_file(test_path("missing"), hex, &e), &e, ERR_SYSTEM,
		   "/missing': No such file");
	assert_err(digest_file(test_path("."), hex, &e), &e, ERR_SYSTEM, "not a regular file");
	assert_int_equal(mkfifo(test_path("fifo"), 0600), 0);
	assert_err(digest_file(test_path("fifo"), hex, &e), &e, ERR_SYSTEM, "not a regular file");
	assert_string_equal(hex, "untouched");
}

static void valid_hex_is_strict(void **state)
{
	(void)state;
	assert_true(digest_valid_hex(ABC));
	assert_false(digest_valid_hex(""));
	assert_false(digest_valid_hex(ABC "0"));
	assert_false(digest_valid_hex(
		"BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
	assert_false(digest_valid_hex(
		"ga7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
	assert_false(digest_valid_hex(
		"a7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_digests),
		cmocka_unit_test(pieces_give_the_same),
		cmocka_unit_test(reset_starts_again),
		cmocka_unit_test(base64url_has_no_padding),
		cmocka_unit_test_teardown(files_of_any_size, test_teardown),
		cmocka_unit_test_teardown(unreadable_files_are_named, test_teardown),
		cmocka_unit_test(valid_hex_is_strict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
