#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "step/pack/pack.h"

#define WHEEL "torch-1.0-cp313-cp313-linux_x86_64.whl"
#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct arena arena;
static struct err err;
static char digest[DIGEST_HEX_LEN + 1];

static int setup(void **state)
{
	(void)state;
	test_dir();
	test_write(test_path(WHEEL), "wheel");
	digest_data("wheel", 5, digest);
	if (system(arena_printf(&arena,
				"cd '%s' && for k in key other; do openssl genpkey -algorithm "
				"ed25519 -out $k 2>/dev/null && "
				"openssl pkey -in $k -pubout -out $k.pub || exit 1; done",
				test_path("."))) != 0)
		fail_msg("no keys");
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static json_t *make_record(void)
{
	json_t *r = json_pack("{s:s,s:s,s:s,s:s,s:i,s:s,s:s,s:s}", "wheel", WHEEL, "sha256", digest,
			      "variant", "pytorch-python313-cpu-avx2", "release", "2.9.1",
			      "metadata_rev", 1, "compile_key", "c", "output_key", "o", "generator",
			      "ptbuild 0.1.0");

	json_object_set_new(r, "inputs",
			    json_pack("{s:[{s:s,s:s}],s:[{s:s,s:s}],s:{s:s,s:s},s:{s:s,s:s},s:s}",
				      "sources", "name", "src.tar.gz", "sha256", SHA, "patches",
				      "name", "p.patch", "sha256", SHA, "torch", "identity",
				      "sha256:" SHA, "version", "1.0", "root", "id", "debian 13",
				      "fingerprint", SHA, "toolchain", "gcc 14\n"));
	json_object_set_new(
		r, "vendored",
		json_pack("[{s:s,s:s}]", "source", "/usr/lib/libx.so.1", "sha256", SHA));
	return r;
}

static const char *wheel(void)
{
	return arena_strdup(&arena, test_path(WHEEL));
}

static void write_statement(const struct sign_key *key)
{
	AUTO_JSON json_t *r = make_record();
	assert_ok(provenance_write(r, wheel(), key, &arena, &err), &err);
}

static struct sign_key *load(const char *name, bool private_half)
{
	struct sign_key *k = NULL;
	const char *path = test_path("%s", name);

	assert_ok(private_half ? sign_load(path, true, &k, &err) : sign_load(path, false, &k, &err),
		  &err);
	return k;
}

static void write_signed(void)
{
	struct sign_key *AUTO_SIGN_KEY key = load("key", true);
	write_statement(key);
}

static void assert_bad(const char *key, enum err_kind kind, const char *want)
{
	struct sign_key *AUTO_SIGN_KEY k = load(key, false);
	assert_err(provenance_check(wheel(), k, &arena, &err), &err, kind, want);
}

static const char *at(const json_t *j, const char *const *path)
{
	for (; *path; path++)
		j = json_is_array(j) ? json_array_get(j, (size_t)atoi(*path))
				     : json_object_get(j, *path);
	const char *s = json_string_value(j);
	return s ? s : "(none)";
}
#define AT(j, ...) at(j, (const char *const[]){__VA_ARGS__, NULL})

static void test_statement(void **state)
{
	(void)state;
	AUTO_JSON json_t *r = make_record(), *AUTO_JSON s = NULL;
	assert_ok(provenance_statement(r, &s, &err), &err);
	assert_string_equal(AT(s, "_type"), "https://in-toto.io/Statement/v1");
	assert_string_equal(AT(s, "predicateType"), "https://slsa.dev/provenance/v1");
	assert_string_equal(AT(s, "subject", "0", "name"), WHEEL);
	assert_string_equal(AT(s, "subject", "0", "digest", "sha256"), digest);
	const json_t *p = json_object_get(s, "predicate"),
		     *d = json_object_get(p, "buildDefinition");
	assert_string_equal(AT(d, "externalParameters", "variant"), "pytorch-python313-cpu-avx2");
	assert_string_equal(AT(d, "internalParameters", "environment", "toolchain"), "gcc 14\n");
	assert_int_equal(json_array_size(json_object_get(d, "resolvedDependencies")), 5);
	assert_string_equal(AT(d, "resolvedDependencies", "0", "name"), "src.tar.gz");
	assert_string_equal(AT(d, "resolvedDependencies", "2", "digest", "sha256"), SHA);
	assert_string_equal(AT(p, "runDetails", "builder", "version", "ptbuild"), "ptbuild 0.1.0");
	assert_string_equal(AT(p, "runDetails", "metadata", "invocationId"), "o");
	assert_string_equal(AT(d, "buildType"), "urn:x-ptbuild:wheel-build:1");
	assert_string_equal(AT(d, "resolvedDependencies", "0", "annotations", "kind"), "source");
}

/* What was not compiled here does not say that it was. */
static void test_statement_of_a_taken_package(void **state)
{
	(void)state;
	AUTO_JSON json_t *r = make_record(), *AUTO_JSON s = NULL;
	json_object_set_new(r, "captured", json_string("python3-torch=2.6.0"));
	assert_ok(provenance_statement(r, &s, &err), &err);
	const json_t *d = json_object_get(json_object_get(s, "predicate"), "buildDefinition");
	assert_string_equal(AT(d, "buildType"), "urn:x-ptbuild:wheel-of-installed-package:1");
	assert_string_equal(AT(d, "externalParameters", "captured"), "python3-torch=2.6.0");
	assert_string_equal(AT(d, "resolvedDependencies", "0", "annotations", "kind"),
			    "installed package");
}

static void test_a_record_that_lacks_something(void **state)
{
	(void)state;
	static const char *const keys[] = {"wheel", "sha256", "output_key"};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		AUTO_JSON json_t *r = make_record(), *s = NULL;
		json_object_del(r, keys[i]);
		assert_err(provenance_statement(r, &s, &err), &err, ERR_INTEGRITY,
			   "lacks wheel, digest or key");
		assert_null(s);
	}
}

static void test_unsigned(void **state)
{
	(void)state;
	write_statement(NULL);
	AUTO_JSON json_t *s = NULL;
	assert_ok(json_read(TRUSTED, test_path(WHEEL PROVENANCE_STATEMENT), &s, &err), &err);
	assert_string_equal(AT(s, "subject", "0", "name"), WHEEL);
	assert_int_equal(access(test_path(WHEEL PROVENANCE_ENVELOPE), F_OK), -1);
	assert_bad("key.pub", ERR_INTEGRITY, "is not signed");
	assert_contains(err.hint, "--sign-key");
}

static void test_signed(void **state)
{
	(void)state;
	write_signed();
	struct sign_key *AUTO_SIGN_KEY k = load("key.pub", false);
	assert_ok(provenance_check(wheel(), k, &arena, &err), &err);
}

/* openssl alone, by the description of the format. */
static void test_a_stranger_can_check_it(void **state)
{
	(void)state;
	write_signed();
	if (system(arena_printf(
		    &arena,
		    "cd '%s' && python3 - <<'END'\n"
		    "import base64, json, subprocess\n"
		    "e = json.load(open('" WHEEL PROVENANCE_ENVELOPE "'))\n"
		    "t, p = e['payloadType'].encode(), base64.b64decode(e['payload'], "
		    "validate=True)\n"
		    "open('pae', 'wb').write(b'DSSEv1 %%d %%s %%d %%s' %% (len(t), t, len(p), p))\n"
		    "open('sig', 'wb').write(base64.b64decode(e['signatures'][0]['sig'], "
		    "validate=True))\n"
		    "assert p == open('" WHEEL PROVENANCE_STATEMENT "', 'rb').read()\n"
		    "subprocess.run('openssl pkeyutl -verify -pubin -inkey key.pub -rawin -in pae "
		    "-sigfile "
		    "sig'.split(), check=True,\n"
		    "               stdout=subprocess.DEVNULL)\n"
		    "END",
		    test_path("."))) != 0)
		fail_msg("openssl does not agree");
}

static void test_same_bytes_again(void **state)
{
	(void)state;
	struct stat before, after;
	write_signed();
	assert_int_equal(stat(test_path(WHEEL PROVENANCE_ENVELOPE), &before), 0);
	write_signed();
	assert_int_equal(stat(test_path(WHEEL PROVENANCE_ENVELOPE), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	/* without a key the signature of the same statement stays */
	write_statement(NULL);
	assert_int_equal(access(test_path(WHEEL PROVENANCE_ENVELOPE), F_OK), 0);
}

static void test_a_stale_signature_goes(void **state)
{
	(void)state;
	write_signed();
	AUTO_JSON json_t *r = make_record();
	json_object_set_new(r, "output_key", json_string("another"));
	assert_ok(provenance_write(r, wheel(), NULL, &arena, &err), &err);
	assert_int_equal(access(test_path(WHEEL PROVENANCE_ENVELOPE), F_OK), -1);
}

static void test_another_key(void **state)
{
	(void)state;
	write_signed();
	assert_bad("other.pub", ERR_INTEGRITY, "is signed by another key");
}

static void edit(const char *from, const char *to)
{
	if (system(arena_printf(&arena,
				"cd '%s' && python3 - '%s' '%s' <<'END'\n"
				"import base64, json, sys\n"
				"n = '" WHEEL PROVENANCE_ENVELOPE "'\n"
				"e = json.load(open(n))\n"
				"p = base64.b64decode(e['payload'])\n"
				"assert sys.argv[1].encode() in p\n"
				"e['payload'] = base64.b64encode(p.replace(sys.argv[1].encode(), "
				"sys.argv[2].encode())).decode()\n"
				"json.dump(e, open(n, 'w'))\n"
				"END",
				test_path("."), from, to)) != 0)
		fail_msg("not edited");
}

static void test_a_changed_statement(void **state)
{
	(void)state;
	write_signed();
	edit("2.9.1", "2.9.2");
	assert_bad("key.pub", ERR_INTEGRITY, "was changed after it was signed");
}

static void test_another_wheel(void **state)
{
	(void)state;
	write_signed();
	test_write(test_path(WHEEL), "other bytes");
	assert_bad("key.pub", ERR_INTEGRITY, "is about another wheel");
	/* the same bytes under another name */
	test_write(test_path("renamed.whl"), "wheel");
	assert_int_equal(rename(test_path(WHEEL PROVENANCE_ENVELOPE),
				test_path("renamed.whl" PROVENANCE_ENVELOPE)),
			 0);
	struct sign_key *AUTO_SIGN_KEY k = load("key.pub", false);
	assert_err(
		provenance_check(arena_strdup(&arena, test_path("renamed.whl")), k, &arena, &err),
		&err, ERR_INTEGRITY, "is about another wheel");
}

static void test_what_lies_beside_is_read_without_a_key(void **state)
{
	const char *says;

	(void)state;
	assert_ok(provenance_beside(wheel(), &arena, &says, &err), &err);
	assert_null(says);
	write_statement(NULL);
	assert_ok(provenance_beside(wheel(), &arena, &says, &err), &err);
	assert_contains(says, "pytorch-python313-cpu-avx2 of release ");
	assert_contains(says, ", by ptbuild 0.1.0; not signed");
	write_signed();
	assert_ok(provenance_beside(wheel(), &arena, &says, &err), &err);
	assert_contains(says, "; signed: --key checks by whom");
	test_write(test_path(WHEEL), "other bytes");
	assert_err(provenance_beside(wheel(), &arena, &says, &err), &err, ERR_INTEGRITY,
		   "is about another wheel");
	static const char *const broken[] = {
		"", "x", "[]", "5", "{\"subject\": 5}", "{\"subject\": [{\"name\": 5}]}"};
	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		test_write(test_path(WHEEL PROVENANCE_STATEMENT), broken[i]);
		assert_int_equal(provenance_beside(wheel(), &arena, &says, &err), -1);
		assert_int_equal(err.kind, ERR_INTEGRITY);
	}

	/* another maker's, about this file */
	test_write(test_path(WHEEL PROVENANCE_STATEMENT),
		   arena_printf(&arena,
				"{\"subject\": [{\"name\": \"" WHEEL
				"\", \"digest\": {\"sha256\": \"%s\"}}]}",
				digest));
	test_write(test_path(WHEEL), "wheel");
	assert_ok(provenance_beside(wheel(), &arena, &says, &err), &err);
	assert_contains(says, "by another maker");
}

/* The same key has signed something else: `from` of the statement is now `to`, in both files. */
static void resign(const char *from, const char *to)
{
	if (system(arena_printf(
		    &arena,
		    "cd '%s' && python3 - '%s' '%s' <<'END'\n"
		    "import base64, json, subprocess, sys\n"
		    "n = '" WHEEL PROVENANCE_ENVELOPE "'\n"
		    "e = json.load(open(n))\n"
		    "p = base64.b64decode(e['payload'])\n"
		    "assert sys.argv[1].encode() in p, p\n"
		    "p = p.replace(sys.argv[1].encode(), sys.argv[2].encode(), 1)\n"
		    "t = e['payloadType'].encode()\n"
		    "open('pae', 'wb').write(b'DSSEv1 %%d %%s %%d %%s' %% (len(t), t, len(p), p))\n"
		    "subprocess.run(['openssl', 'pkeyutl', '-sign', '-inkey', 'key', '-rawin', "
		    "'-in', "
		    "'pae', '-out', 'sig'], "
		    "check=True)\n"
		    "e['payload'] = base64.b64encode(p).decode()\n"
		    "e['signatures'][0]['sig'] = base64.b64encode(open('sig', "
		    "'rb').read()).decode()\n"
		    "json.dump(e, open(n, 'w'))\n"
		    "open('" WHEEL PROVENANCE_STATEMENT "', 'wb').write(p)\n"
		    "END",
		    test_path("."), from, to)) != 0)
		fail_msg("not signed again");
}

/* A signature says who speaks. What is said must be that this wheel was built so. */
static void test_signed_statements_about_something_else(void **state)
{
	(void)state;
	static const struct {
		const char *from, *to, *want;
	} cases[] = {
		{"slsa.dev/provenance/v1", "in-toto.io/attestation/test-result/v0.1",
		 "not about how the wheel was built"},
		{"slsa.dev/provenance/v1", "slsa.dev/verification_summary/v1",
		 "not about how the wheel was built"},
		{"\"predicateType\"", "\"predicate_type\"", "not about how the wheel was built"},
		{"urn:x-ptbuild:wheel-build:1", "urn:x-other:build", "not of a build by ptbuild"},
		{"\"sha256\": \"", "\"sha512\": \"00\", \"sha256\": \"",
		 "other digests than sha256"},
		{"\"subject\": [",
		 "\"subject\": [{\"name\": \"x\", \"digest\": {\"sha256\": \"00\"}}, ",
		 "several files"},
		{"\"subject\": [", "\"subject\": [], \"subjects\": [",
		 "not an in-toto statement about a file"},
		{"\"_type\"", "\"type\"", "not an in-toto statement about a file"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		write_signed();
		resign(cases[i].from, cases[i].to);
		assert_bad("key.pub", ERR_INTEGRITY, cases[i].want);
		unlink(test_path(WHEEL PROVENANCE_ENVELOPE));
	}

	/* What is signed again without a change holds: the cases above fail for what they say. */
	write_signed();
	resign("2.9.1", "2.9.1");
	struct sign_key *AUTO_SIGN_KEY k = load("key.pub", false);
	assert_ok(provenance_check(wheel(), k, &arena, &err), &err);
}

static void test_the_unsigned_file_must_not_say_something_else(void **state)
{
	(void)state;
	write_signed();
	test_write(test_path(WHEEL PROVENANCE_STATEMENT),
		   "{\"_type\": \"https://in-toto.io/Statement/v1\"}");
	assert_bad("key.pub", ERR_INTEGRITY, "has signed");
	unlink(test_path(WHEEL PROVENANCE_STATEMENT));
	struct sign_key *AUTO_SIGN_KEY k = load("key.pub", false);
	assert_ok(provenance_check(wheel(), k, &arena, &err), &err);
}

static void test_what_is_no_envelope(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"{", WHEEL},
		{"[]", "payload type"},
		{"{\"payloadType\": \"text/plain\", \"payload\": \"e30=\", \"signatures\": [{}]}",
		 "payload type"},
		{"{\"payloadType\": \"application/vnd.in-toto+json\", \"payload\": \"e30\", "
		 "\"signatures\": [{}]}",
		 "not base64"},
		{"{\"payloadType\": \"application/vnd.in-toto+json\", \"payload\": \"e3=0\", "
		 "\"signatures\": [{}]}",
		 "not base64"},
		{"{\"payloadType\": \"application/vnd.in-toto+json\", \"payload\": \"e30=\", "
		 "\"signatures\": []}",
		 "no signature"},
		{"{\"payloadType\": \"application/vnd.in-toto+json\", \"payload\": \"e30=\", "
		 "\"signatures\": "
		 "[{\"sig\": 1}]}",
		 "another key"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		test_write(test_path(WHEEL PROVENANCE_ENVELOPE), cases[i].text);
		assert_bad("key.pub", ERR_INTEGRITY, cases[i].want);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_statement),
		TEST(test_statement_of_a_taken_package),
		TEST(test_a_record_that_lacks_something),
		TEST(test_unsigned),
		TEST(test_signed),
		TEST(test_a_stranger_can_check_it),
		TEST(test_same_bytes_again),
		TEST(test_a_stale_signature_goes),
		TEST(test_another_key),
		TEST(test_a_changed_statement),
		TEST(test_another_wheel),
		TEST(test_what_lies_beside_is_read_without_a_key),
		TEST(test_signed_statements_about_something_else),
		TEST(test_the_unsigned_file_must_not_say_something_else),
		TEST(test_what_is_no_envelope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
