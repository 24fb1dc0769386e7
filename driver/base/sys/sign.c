#include "base/sys/digest.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/sys/fs.h"

enum { KEY_FILE_MAX = 64 * 1024 };

struct sign_key {
	EVP_PKEY *pkey;
	char id[DIGEST_HEX_LEN + 1];
};

/* A build has no terminal to ask at. */
static int no_password(char *buf, int size, int writing, void *user)
{
	(void)buf;
	(void)size;
	(void)writing;
	(void)user;
	return -1;
}

static void free_bio(BIO **b)
{
	BIO_free_all(*b);
}

static int make_key(const char *path, EVP_PKEY *pkey, struct sign_key **ret, struct err *e)
{
	unsigned char *der = NULL;

	if (EVP_PKEY_get_base_id(pkey) != EVP_PKEY_ED25519) {
		const char *type = EVP_PKEY_get0_type_name(pkey);
		return err_set(e, ERR_CONFIG, "'%s' is a key of type %s, not Ed25519", path,
			       type ? type : "unknown");
	}

	int len = i2d_PUBKEY(pkey, &der);
	if (len <= 0)
		return err_set(e, ERR_CONFIG, "'%s' has no public half", path);
	struct sign_key *k = calloc(1, sizeof(*k));
	if (!k)
		abort();
	digest_data(der, (size_t)len, k->id);
	OPENSSL_free(der);
	k->pkey = pkey;
	*ret = k;
	return 0;
}

int sign_load(const char *path, bool private_half, struct sign_key **ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};

	if (fs_read(TRUSTED, path, KEY_FILE_MAX, &text, e) < 0)
		return -1;
	BIO *bio CLEANUP(free_bio) = BIO_new_mem_buf(buf_cstr(&text), (int)text.len);
	if (!bio)
		abort();
	EVP_PKEY *pkey = private_half ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL)
				      : PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
	ERR_clear_error();
	int rc = -1;
	if (!pkey) {
		err_set(e, ERR_CONFIG,
			"'%s' holds no %s key in PEM form that can be read without a password",
			path, private_half ? "private" : "public");
		err_hint(e, private_half ? "openssl genpkey -algorithm ed25519 -out FILE makes one"
					 : "openssl pkey -in FILE -pubout writes the public half "
					   "of a private key");
	} else {
		rc = make_key(path, pkey, ret, e);
		if (rc < 0) {
			EVP_PKEY_free(pkey);
			err_hint(e, "openssl genpkey -algorithm ed25519 -out FILE makes one");
		}
	}

	OPENSSL_cleanse(buf_reserve(&text, 0) - text.len, text.len);
	return rc;
}

void sign_key_free(struct sign_key *k)
{
	if (!k)
		return;
	EVP_PKEY_free(k->pkey);
	free(k);
}

const char *sign_key_id(const struct sign_key *k)
{
	return k->id;
}

static void free_context(EVP_MD_CTX **c)
{
	EVP_MD_CTX_free(*c);
}

int sign_data(const struct sign_key *k, const void *data, size_t len, unsigned char ret[SIGN_LEN],
	      struct err *e)
{
	EVP_MD_CTX *c CLEANUP(free_context) = EVP_MD_CTX_new();
	size_t n = SIGN_LEN;
	if (!c || EVP_DigestSignInit(c, NULL, NULL, NULL, k->pkey) != 1 ||
	    EVP_DigestSign(c, ret, &n, data, len) != 1 || n != SIGN_LEN) {
		ERR_clear_error();
		return err_set(e, ERR_SYSTEM, "cannot sign with the key '%.16s...'", k->id);
	}

	return 0;
}

bool sign_valid(const struct sign_key *k, const void *data, size_t len,
		const unsigned char *signature, size_t signature_len)
{
	EVP_MD_CTX *c CLEANUP(free_context) = EVP_MD_CTX_new();
	bool valid = c && EVP_DigestVerifyInit(c, NULL, NULL, NULL, k->pkey) == 1 &&
		     EVP_DigestVerify(c, signature, signature_len, data, len) == 1;
	ERR_clear_error();
	return valid;
}
