#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/digest.h"

static struct err err;

static void openssl(const char *fmt, const char *a, const char *b)
{
	char command[8192];

	char *AUTO_FREE one = strdup(test_path("%s", a));
	snprintf(command, sizeof(command), fmt, one, test_path("%s", b));
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

static void make_pair(const char *name)
{
	char public_name[64];

	snprintf(public_name, sizeof(public_name), "%s.pub", name);
	test_path(".");
	openssl("openssl genpkey -algorithm ed25519 -out '%s' 2>/dev/null && : '%s'", name, "");
	openssl("openssl pkey -in '%s' -pubout -out '%s'", name, public_name);
}

static struct sign_key *private_key(const char *name)
{
	struct sign_key *k = NULL;
	assert_ok(sign_load(test_path("%s", name), true, &k, &err), &err);
	return k;
}

static struct sign_key *public_key(const char *name)
{
	struct sign_key *k = NULL;
	assert_ok(sign_load(test_path("%s", name), false, &k, &err), &err);
	return k;
}

static void test_signed_and_checked(void **state)
{
	(void)state;
	unsigned char signature[SIGN_LEN];
	make_pair("key");
	struct sign_key *AUTO_SIGN_KEY k = private_key("key"),
				       *AUTO_SIGN_KEY pub = public_key("key.pub");
	assert_string_equal(sign_key_id(k), sign_key_id(pub));
	assert_int_equal(strlen(sign_key_id(k)), 64);
	assert_ok(sign_data(k, "text", 4, signature, &err), &err);
	assert_true(sign_valid(pub, "text", 4, signature, SIGN_LEN));
	assert_true(sign_valid(k, "text", 4, signature, SIGN_LEN));
	assert_false(sign_valid(pub, "tex", 3, signature, SIGN_LEN));
	assert_false(sign_valid(pub, "test", 4, signature, SIGN_LEN));
	assert_false(sign_valid(pub, "text", 4, signature, SIGN_LEN - 1));
	signature[0] ^= 1;
	assert_false(sign_valid(pub, "text", 4, signature, SIGN_LEN));
}

/* Ed25519 is deterministic, and openssl's own program agrees. */
static void test_openssl_agrees(void **state)
{
	(void)state;
	unsigned char one[SIGN_LEN], two[SIGN_LEN];
	make_pair("key");
	struct sign_key *AUTO_SIGN_KEY k = private_key("key");
	assert_ok(sign_data(k, "text", 4, one, &err), &err);
	assert_ok(sign_data(k, "text", 4, two, &err), &err);
	assert_memory_equal(one, two, SIGN_LEN);
	test_write(test_path("text"), "text");
	FILE *f = fopen(test_path("sig"), "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(one, 1, SIGN_LEN, f), SIGN_LEN);
	fclose(f);
	openssl("cd \"$(dirname '%s')\" && openssl pkeyutl -verify -pubin -inkey key.pub -rawin "
		"-in text -sigfile sig "
		">/dev/null && : '%s'",
		"text", "");
}

static void test_another_key(void **state)
{
	(void)state;
	unsigned char signature[SIGN_LEN];
	make_pair("key");
	make_pair("other");
	struct sign_key *AUTO_SIGN_KEY k = private_key("key"),
				       *AUTO_SIGN_KEY other = public_key("other.pub");
	assert_ok(sign_data(k, "text", 4, signature, &err), &err);
	assert_string_not_equal(sign_key_id(k), sign_key_id(other));
	assert_false(sign_valid(other, "text", 4, signature, SIGN_LEN));
}

static void assert_no_key(const char *name, enum err_kind kind, const char *want, const char *hint)
{
	struct sign_key *k = NULL;

	assert_err(sign_load(test_path("%s", name), true, &k, &err), &err, kind, want);
	assert_contains(err.hint, hint);
	assert_null(k);
}

static void test_what_is_no_key(void **state)
{
	(void)state;
	struct sign_key *k = NULL;
	make_pair("key");
	assert_no_key("absent", ERR_SYSTEM, "absent", "");
	test_write(test_path("text"), "-----BEGIN NONSENSE-----\n");
	assert_no_key("text", ERR_CONFIG, "holds no private key", "openssl genpkey");
	assert_no_key("key.pub", ERR_CONFIG, "holds no private key", "openssl genpkey");
	assert_err(sign_load(test_path("key"), false, &k, &err), &err, ERR_CONFIG,
		   "holds no public key");
	assert_contains(err.hint, "-pubout");
	openssl("openssl genpkey -algorithm x25519 -out '%s' 2>/dev/null && : '%s'", "x", "");
	assert_no_key("x", ERR_CONFIG, "of type X25519, not Ed25519", "ed25519");
	/* a key with a password is not asked about */
	openssl("openssl pkey -in '%s' -aes256 -passout pass:secret -out '%s'", "key", "locked");
	assert_no_key("locked", ERR_CONFIG, "without a password", "openssl genpkey");
}

/* Neither half of a key shows in a message. */
static void test_messages_hold_no_key(void **state)
{
	(void)state;
	struct sign_key *k = NULL;
	make_pair("key");
	char *AUTO_FREE text = test_read(test_path("key"));
	char body[33] = "";
	sscanf(text, "-----BEGIN PRIVATE KEY-----\n%32s", body);
	assert_int_equal(strlen(body), 32);
	test_write(test_path("broken"), "-----BEGIN PRIVATE KEY-----\n");
	FILE *f = fopen(test_path("broken"), "a");
	assert_non_null(f);
	fprintf(f, "%s\n-----END PRIVATE KEY-----\n", body);
	fclose(f);
	assert_err(sign_load(test_path("broken"), true, &k, &err), &err, ERR_CONFIG,
		   "holds no private key");
	assert_null(strstr(err.msg, body));
	assert_null(strstr(err.hint, body));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_signed_and_checked, test_teardown),
		cmocka_unit_test_teardown(test_openssl_agrees, test_teardown),
		cmocka_unit_test_teardown(test_another_key, test_teardown),
		cmocka_unit_test_teardown(test_what_is_no_key, test_teardown),
		cmocka_unit_test_teardown(test_messages_hold_no_key, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
