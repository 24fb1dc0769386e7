/* Ed25519 signatures through OpenSSL's EVP. No function here puts key material into a message. */
#pragma once

#include "base/base.h"

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
bool sign_valid(const struct sign_key *k, const void *data, size_t len, const unsigned char *signature,
		size_t signature_len);

static inline void sign_key_cleanup(struct sign_key **k)
{
	sign_key_free(*k);
}
#define AUTO_SIGN_KEY CLEANUP(sign_key_cleanup)
