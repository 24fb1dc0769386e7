/* SHA-256 through OpenSSL's EVP, and what else RECORD may have. */
#pragma once
#include "base/base.h"

#define DIGEST_LEN 32
#define DIGEST_HEX_LEN 64 /* without the NUL */

struct digest; /* a running SHA-256 */

struct digest *digest_new(void) __attribute__((returns_nonnull));
void digest_update(struct digest *d, const void *data, size_t len);
/* digest_final: the object may then only be freed or reset. */
void digest_final(struct digest *d, uint8_t out[DIGEST_LEN]);
void digest_reset(struct digest *d);
void digest_free(struct digest *d);

static inline void digest_cleanup(struct digest **d)
{
	digest_free(*d);
}
#define AUTO_DIGEST CLEANUP(digest_cleanup)

/* digest_hex: lower-case hex and a NUL. */
void digest_hex(const uint8_t in[DIGEST_LEN], char out[DIGEST_HEX_LEN + 1]);
/* digest_base64url: the 43 characters of RECORD (URL-safe, no padding) and a NUL. */
void digest_base64url(const uint8_t in[DIGEST_LEN], char out[44]);
/* digest_record: a field of RECORD, "sha512=...", by an algorithm of digest_record_length. */
enum { DIGEST_RECORD_MAX = 128 };
void digest_record(const char *algorithm, const void *data, size_t len,
		   char out[DIGEST_RECORD_MAX]);
/* digest_record_length: how many characters of unpadded base64 follow the name: 43 for "sha256"; 0
 * for a name that RECORD may not have. */
size_t digest_record_length(const char *algorithm);
/* digest_data: hex digest of `len` bytes. */
void digest_data(const void *data, size_t len, char out[DIGEST_HEX_LEN + 1]);
/* digest_file: hex digest of a regular file. */
int digest_file(const char *path, char out[DIGEST_HEX_LEN + 1], struct err *e) MUST_CHECK;
/* digest_valid_hex: exactly 64 lower-case hex digits. */
bool digest_valid_hex(const char *s);

/* Ed25519 signatures through OpenSSL's EVP. No function here puts key material into a message. */

#define SIGN_LEN 64

struct sign_key;

/* sign_load: the private or the public half of an Ed25519 key, from a PEM file without a password.
 * ERR_CONFIG says what the file holds instead. */
int sign_load(const char *path, bool private_half, struct sign_key **ret, struct err *e) MUST_CHECK;
/* sign_key_free: NULL is fine. */
void sign_key_free(struct sign_key *k);
/* sign_key_id: hex SHA-256 of the public half (SubjectPublicKeyInfo), for either half of a pair. */
const char *sign_key_id(const struct sign_key *k) __attribute__((returns_nonnull));
/* sign_data: with a private key. */
int sign_data(const struct sign_key *k, const void *data, size_t len, unsigned char ret[SIGN_LEN],
	      struct err *e) MUST_CHECK;
/* sign_valid: whether the signature is this key's for these bytes. */
bool sign_valid(const struct sign_key *k, const void *data, size_t len,
		const unsigned char *signature, size_t signature_len);

static inline void sign_key_cleanup(struct sign_key **k)
{
	sign_key_free(*k);
}
#define AUTO_SIGN_KEY CLEANUP(sign_key_cleanup)
