#include "step/pack/pack.h"

#include <openssl/evp.h>

#include "base/sys/json.h"

#define STATEMENT_TYPE "https://in-toto.io/Statement/v1"
#define PREDICATE_TYPE "https://slsa.dev/provenance/v1"
#define PAYLOAD_TYPE "application/vnd.in-toto+json"
#define BUILD_TYPE "urn:x-ptbuild:wheel-build:1"
#define CAPTURE_TYPE "urn:x-ptbuild:wheel-of-installed-package:1" /* nothing was compiled */
#define SLIM_TYPE "urn:x-ptbuild:wheel-cut:1"                     /* of anybody's wheel */
#define BUILDER "urn:x-ptbuild:builder"

enum { STATEMENT_MAX = 16 << 20 };

static void add_dependency(json_t *list, const char *kind, const char *name, const char *sha256)
{
	json_array_append_new(list, json_pack("{s:s, s:{s:s}, s:{s:s}}", "name", name, "digest",
					      "sha256", sha256, "annotations", "kind", kind));
}

static void add_dependencies(json_t *list, const char *kind, const json_t *items,
			     const char *name_key)
{
	size_t i;
	const json_t *item;

	json_array_foreach(items, i, item)
	{
		const char *name = json_member(item, name_key);
		const char *sha256 = json_member(item, "sha256");
		if (name && sha256)
			add_dependency(list, kind, name, sha256);
	}
}

static json_t *dependencies(const json_t *record)
{
	static const char digest_mark[] = "sha256:";
	const json_t *inputs = json_object_get(record, "inputs"),
		     *root = json_object_get(inputs, "root");
	const json_t *torch = json_object_get(inputs, "torch");
	const char *identity = json_member(torch, "identity");
	const char *root_id = json_member(root, "id");
	const char *fingerprint = json_member(root, "fingerprint");
	json_t *list = json_array();

	add_dependencies(list,
			 json_object_get(record, "captured") ? "installed package"
			 : json_object_get(record, "slim")   ? "slimmed wheel"
							     : "source",
			 json_object_get(inputs, "sources"), "name");
	add_dependencies(list, "patch", json_object_get(inputs, "patches"), "name");
	add_dependencies(list, "vendored library", json_object_get(record, "vendored"), "source");
	if (identity && strncmp(identity, digest_mark, strlen(digest_mark)) == 0)
		add_dependency(list, "wheel built against", "torch",
			       identity + strlen(digest_mark));
	add_dependencies(list, "package of the root",
			 json_object_get(json_object_get(inputs, "world"), "packages"), "name");
	if (root_id && fingerprint)
		add_dependency(list, "root file system, by its package database", root_id,
			       fingerprint);
	return list;
}

static json_t *subset(const json_t *from, const char *const *keys)
{
	json_t *out = json_object();

	for (; *keys; keys++) {
		json_t *value = json_object_get(from, *keys);
		if (value)
			json_object_set(out, *keys, value);
	}

	return out;
}

int provenance_statement(const json_t *record, json_t **ret, struct err *e)
{
	static const char *const external[] = {"variant", "release",      "captured",
					       "slim",    "metadata_rev", NULL};
	static const char *const internal[] = {"compile_key", "pack_key", "output_key", "isa",
					       "tag",         "notes",    NULL};
	static const char *const environment[] = {"toolchain", "python", "sandbox", NULL};
	const char *wheel = json_member(record, "wheel"), *sha256 = json_member(record, "sha256"),
		   *key = json_member(record, "output_key"),
		   *generator = json_member(record, "generator");

	if (!wheel || !sha256 || !digest_valid_hex(sha256) || !key)
		return err_set(e, ERR_INTEGRITY,
			       "the record of the build lacks wheel, digest or key");
	json_t *parameters = subset(record, internal);
	json_object_set_new(parameters, "environment",
			    subset(json_object_get(record, "inputs"), environment));
	*ret = json_pack(
		"{s:s, s:[{s:s, s:{s:s}}], s:s, s:{s:{s:s, s:o, s:o, s:o}, s:{s:{s:s, s:{s:s}}, "
		"s:{s:s}}}}",
		"_type", STATEMENT_TYPE, "subject", "name", wheel, "digest", "sha256", sha256,
		"predicateType", PREDICATE_TYPE, "predicate", "buildDefinition", "buildType",
		json_object_get(record, "captured") ? CAPTURE_TYPE
		: json_object_get(record, "slim")   ? SLIM_TYPE
						    : BUILD_TYPE,
		"externalParameters", subset(record, external), "internalParameters", parameters,
		"resolvedDependencies", dependencies(record), "runDetails", "builder", "id",
		BUILDER, "version", "ptbuild", generator, "metadata", "invocationId", key);
	return *ret ? 0
		    : err_set(e, ERR_INTEGRITY, "cannot make a statement of the build's record");
}

/* DSSE's pre-authentication encoding. */
static void encode_signed(struct buf *out, const char *payload, size_t len)
{
	buf_printf(out, "DSSEv1 %zu %s %zu ", strlen(PAYLOAD_TYPE), PAYLOAD_TYPE, len);
	buf_add(out, payload, len);
}

static char *to_base64(const void *data, size_t len, struct arena *a)
{
	char *out = arena_alloc(a, (len + 2) / 3 * 4 + 1);
	EVP_EncodeBlock((unsigned char *)out, data, (int)len);
	return out;
}

/* Standard alphabet with padding and nothing else; false otherwise. */
static bool from_base64(const char *text, struct arena *a, unsigned char **ret, size_t *ret_len)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t len = strlen(text), body = strspn(text, alphabet), padding = len - body;

	if (len % 4 || padding > 2 || strspn(text + body, "=") != padding || len > STATEMENT_MAX)
		return false;
	*ret = arena_alloc(a, len / 4 * 3 + 1);
	int n = EVP_DecodeBlock(*ret, (const unsigned char *)text, (int)len);
	if (n < 0)
		return false;
	*ret_len = (size_t)n - padding;
	return true;
}

/* NULL: an error. */
static json_t *make_envelope(const char *payload, const struct sign_key *key, struct arena *a,
			     struct err *e)
{
	AUTO_BUF struct buf text = {0};
	unsigned char signature[SIGN_LEN];
	const size_t len = strlen(payload);

	encode_signed(&text, payload, len);
	if (sign_data(key, text.data, text.len, signature, e) < 0)
		return NULL;
	json_t *envelope =
		json_pack("{s:s, s:s, s:[{s:s, s:s}]}", "payload", to_base64(payload, len, a),
			  "payloadType", PAYLOAD_TYPE, "signatures", "keyid", sign_key_id(key),
			  "sig", to_base64(signature, sizeof(signature), a));
	if (!envelope)
		(void)err_set(e, ERR_SYSTEM, "cannot make the envelope");
	return envelope;
}

/* A file that holds this text already is left alone. */
static int write_if_other(const char *path, const char *text, struct err *e)
{
	AUTO_BUF struct buf have = {0};

	if (fs_exists(TRUSTED, path) &&
	    fs_read(TRUSTED, path, STATEMENT_MAX, &have, ERR_IGNORED) == 0 &&
	    strcmp(buf_cstr(&have), text) == 0)
		return 0;
	return fs_write(TRUSTED, path, text, strlen(text), 0644, e);
}

static int drop_stale(const char *path, const char *statement, struct arena *a, struct err *e)
{
	AUTO_JSON json_t *envelope = NULL;

	if (!fs_exists(TRUSTED, path))
		return 0;
	const char *want = to_base64(statement, strlen(statement), a), *have = NULL;
	if (json_read(TRUSTED, path, &envelope, ERR_IGNORED) == 0)
		have = json_member(envelope, "payload");
	if (have && strcmp(have, want) == 0)
		return 0;
	return unlink(path) < 0
		       ? err_errno(e, ERR_SYSTEM,
				   "cannot remove '%s', which is about another wheel", path)
		       : 0;
}

int provenance_write(const json_t *record, const char *wheel, const struct sign_key *key,
		     struct arena *a, struct err *e)
{
	AUTO_JSON json_t *statement = NULL;
	const char *envelope_path = arena_printf(a, "%s" PROVENANCE_ENVELOPE, wheel);

	if (provenance_statement(record, &statement, e) < 0)
		return -1;
	AUTO_FREE char *text = json_dumps(statement, JSON_INDENT(1));
	if (!text)
		abort();
	if (write_if_other(arena_printf(a, "%s" PROVENANCE_STATEMENT, wheel), text, e) < 0)
		return -1;
	if (!key)
		return drop_stale(envelope_path, text, a, e);
	AUTO_JSON json_t *envelope = make_envelope(text, key, a, e);
	if (!envelope)
		return -1;
	AUTO_FREE char *signed_text = json_dumps(envelope, JSON_INDENT(1));
	if (!signed_text)
		abort();
	return write_if_other(envelope_path, signed_text, e);
}

struct envelope {
	const char *path;
	unsigned char *payload;
	size_t payload_len;
	const json_t *signatures;
};

static int malformed(const struct envelope *v, struct err *e, const char *what)
{
	return err_set(e, ERR_INTEGRITY, "not a signed statement: '%s': %s", v->path, what);
}

static int open_envelope(const json_t *j, struct envelope *v, struct arena *a, struct err *e)
{
	const char *type = json_member(j, "payloadType"), *payload = json_member(j, "payload");

	v->signatures = json_object_get(j, "signatures");
	if (!type || strcmp(type, PAYLOAD_TYPE) != 0)
		return malformed(v, e, "its payload type is not " PAYLOAD_TYPE);
	if (!payload || !from_base64(payload, a, &v->payload, &v->payload_len))
		return malformed(v, e, "its payload is not base64");
	if (!json_is_array(v->signatures) || json_array_size(v->signatures) == 0)
		return malformed(v, e, "it has no signature");
	return 0;
}

static int check_signature(const struct envelope *v, const struct sign_key *key, struct arena *a,
			   struct err *e)
{
	AUTO_BUF struct buf text = {0};
	size_t i;
	const json_t *s;
	const char *other = "none";
	bool key_named = false;

	encode_signed(&text, (const char *)v->payload, v->payload_len);
	json_array_foreach(v->signatures, i, s)
	{
		const char *id = json_member(s, "keyid"), *sig = json_member(s, "sig");
		unsigned char *signature;
		size_t len;
		if (sig && from_base64(sig, a, &signature, &len) &&
		    sign_valid(key, text.data, text.len, signature, len))
			return 0;
		key_named = key_named || (id && strcmp(id, sign_key_id(key)) == 0);
		other = id ? id : other;
	}

	if (key_named)
		return err_set(
			e, ERR_INTEGRITY,
			"'%s' was changed after it was signed: this key's signature does not match",
			v->path);
	err_set(e, ERR_INTEGRITY, "'%s' is signed by another key: %.16s..., not %.16s...", v->path,
		other, sign_key_id(key));
	return err_hint(e, "pass --key the public half of the key that --sign-key named when the "
			   "wheel was built");
}

/* A statement says one thing about one file: another kind of statement may say
 * the opposite, another digest or subject something else to who reads that first. */
static int check_statement(const struct envelope *v, const json_t *statement, struct err *e)
{
	const json_t *subjects = json_object_get(statement, "subject"),
		     *subject = json_array_get(subjects, 0);
	const json_t *build =
		json_object_get(json_object_get(statement, "predicate"), "buildDefinition");
	const char *type = json_member(statement, "_type"),
		   *predicate = json_member(statement, "predicateType"),
		   *made = json_member(build, "buildType");

	if (!type || strcmp(type, STATEMENT_TYPE) != 0 || !json_member(subject, "name") ||
	    !json_member(json_object_get(subject, "digest"), "sha256"))
		return malformed(v, e, "its payload is not an in-toto statement about a file");
	if (json_array_size(subjects) != 1)
		return malformed(v, e, "its statement is about several files");
	if (json_object_size(json_object_get(subject, "digest")) != 1)
		return malformed(v, e, "its statement has other digests than sha256");
	if (!predicate || strcmp(predicate, PREDICATE_TYPE) != 0)
		return malformed(v, e,
				 "its statement is not about how the wheel was built: its type is "
				 "not " PREDICATE_TYPE);
	if (!made || (strcmp(made, BUILD_TYPE) != 0 && strcmp(made, CAPTURE_TYPE) != 0 &&
		      strcmp(made, SLIM_TYPE) != 0))
		return malformed(v, e, "its statement is not of a build by ptbuild");
	return 0;
}

/* The unsigned file must be equal, or its readers would get another statement. */
static int check_beside(const struct envelope *v, const char *wheel, struct arena *a, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const char *path = arena_printf(a, "%s" PROVENANCE_STATEMENT, wheel);

	if (!fs_exists(TRUSTED, path))
		return 0;
	if (fs_read(TRUSTED, path, STATEMENT_MAX, &text, e) < 0)
		return -1;
	if (text.len == v->payload_len && memcmp(text.data, v->payload, text.len) == 0)
		return 0;
	return err_set(e, ERR_INTEGRITY, "'%s' is not what '%s' has signed", path, v->path);
}

/* Accepts statements by other makers, too. */
static int check_subject(const char *path, const json_t *statement, const char *wheel,
			 struct err *e)
{
	char have[DIGEST_HEX_LEN + 1];
	const json_t *subject = json_array_get(json_object_get(statement, "subject"), 0);
	const char *name = json_text(subject, "name"),
		   *sha256 = json_text(json_object_get(subject, "digest"), "sha256");

	if (digest_file(wheel, have, e) < 0)
		return -1;
	if (strcmp(sha256, have) != 0 || strcmp(name, path_base(wheel)) != 0)
		return err_set(e, ERR_INTEGRITY,
			       "'%s' is about another wheel: '%s' with sha256 %s; this one is '%s' "
			       "with %s",
			       path, name, sha256, path_base(wheel), have);
	return 0;
}

int provenance_beside(const char *wheel, struct arena *a, const char **ret, struct err *e)
{
	AUTO_JSON json_t *j = NULL;
	const struct envelope v = {.path = arena_printf(a, "%s" PROVENANCE_STATEMENT, wheel)};

	*ret = NULL;
	if (!fs_exists(TRUSTED, v.path))
		return 0;
	if (json_read(TRUSTED, v.path, &j, e) < 0 || check_subject(v.path, j, wheel, e) < 0)
		return -1;
	const json_t *predicate = json_object_get(j, "predicate"),
		     *external = json_object_get(json_object_get(predicate, "buildDefinition"),
						 "externalParameters");
	const bool own = check_statement(&v, j, ERR_IGNORED) == 0;
	const char *by =
		json_text(json_object_get(json_object_get(json_object_get(predicate, "runDetails"),
							  "builder"),
					  "version"),
			  "ptbuild");
	/* A slimmed wheel has neither: it was made from a wheel. */
	const char *variant = json_text(external, "variant");
	const char *says;
	if (!own)
		says = "by another maker, who says so of this file";
	else if (*variant)
		says = arena_printf(a, "%s of release %s, by %s", variant,
				    json_text(external, "release"), by);
	else
		says = arena_printf(a, "by %s", *by ? by : "ptbuild");
	const bool envelope = fs_exists(TRUSTED, arena_printf(a, "%s" PROVENANCE_ENVELOPE, wheel));
	says = arena_printf(a, "%s; %s", says,
			    envelope ? "signed: --key checks by whom" : "not signed");
	*ret = utf8_printable(says, a);
	return 0;
}

int provenance_check(const char *wheel, const struct sign_key *key, struct arena *a, struct err *e)
{
	AUTO_JSON json_t *j = NULL;
	struct envelope v = {.path = arena_printf(a, "%s" PROVENANCE_ENVELOPE, wheel)};

	if (!fs_exists(TRUSTED, v.path)) {
		err_set(e, ERR_INTEGRITY, "'%s' is not signed: there is no '%s'", path_base(wheel),
			v.path);
		return err_hint(e, "'ptbuild build --sign-key FILE' writes it");
	}

	if (json_read(TRUSTED, v.path, &j, e) < 0 || open_envelope(j, &v, a, e) < 0 ||
	    check_signature(&v, key, a, e) < 0)
		return -1;
	json_error_t why;
	AUTO_JSON json_t *statement =
		json_loadb((const char *)v.payload, v.payload_len, JSON_REJECT_DUPLICATES, &why);
	if (check_statement(&v, statement, e) < 0 || check_subject(v.path, statement, wheel, e) < 0)
		return -1;
	return check_beside(&v, wheel, a, e);
}
