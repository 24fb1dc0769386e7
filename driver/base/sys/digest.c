#include "base/sys/digest.h"

#include <openssl/evp.h>

#include "base/os.h"
#include "base/sys/fs.h"

#define CHUNK ((size_t)256 * 1024)

/* SHA-256 over memory cannot fail but for want of memory or
 * of OpenSSL's own default provider: both end the program. */
static void must(int ok)
{
	if (!ok)
		abort();
}

/* struct digest is never defined: it is OpenSSL's own
 * context under a name that keeps OpenSSL out of the header. */
static EVP_MD_CTX *ctx(struct digest *d)
{
	return (EVP_MD_CTX *)d;
}

struct digest *digest_new(void)
{
	struct digest *d = (struct digest *)EVP_MD_CTX_new();

	must(d != NULL);
	digest_reset(d);
	return d;
}

void digest_reset(struct digest *d)
{
	must(EVP_DigestInit_ex(ctx(d), EVP_sha256(), NULL));
}

void digest_update(struct digest *d, const void *data, size_t len)
{
	must(EVP_DigestUpdate(ctx(d), data, len));
}

void digest_final(struct digest *d, uint8_t out[DIGEST_LEN])
{
	must(EVP_DigestFinal_ex(ctx(d), out, NULL));
}

void digest_free(struct digest *d)
{
	EVP_MD_CTX_free(ctx(d));
}

void digest_hex(const uint8_t in[DIGEST_LEN], char out[DIGEST_HEX_LEN + 1])
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < DIGEST_LEN; i++) {
		out[2 * i] = hex[in[i] >> 4];
		out[2 * i + 1] = hex[in[i] & 15];
	}

	out[DIGEST_HEX_LEN] = '\0';
}

static void base64url(const uint8_t *in, unsigned len, char *out)
{
	char padded[2 * EVP_MAX_MD_SIZE];

	must(EVP_EncodeBlock((unsigned char *)padded, in, (int)len) > 0);
	for (const char *c = padded; *c && *c != '='; c++)
		*out++ = (char)(*c == '+' ? '-' : *c == '/' ? '_' : *c);
	*out = '\0';
}

void digest_base64url(const uint8_t in[DIGEST_LEN], char out[44])
{
	base64url(in, DIGEST_LEN, out);
}

/* Those of Python's hashlib that are as good as sha256, or better. */
static const struct algorithm {
	const char *name, *openssl;
	unsigned char bytes;
} algorithms[] = {{"sha256", "SHA256", 32},      {"sha384", "SHA384", 48},
		  {"sha512", "SHA512", 64},      {"sha3_256", "SHA3-256", 32},
		  {"sha3_384", "SHA3-384", 48},  {"sha3_512", "SHA3-512", 64},
		  {"blake2b", "BLAKE2B512", 64}, {"blake2s", "BLAKE2S256", 32}};

size_t digest_record_length(const char *algorithm)
{
	const struct algorithm *x =
		text_search(algorithm, algorithms, ARRAY_LEN(algorithms), sizeof(*x));
	return x ? (x->bytes * 8 + 5) / 6 : 0;
}

void digest_record(const char *algorithm, const void *data, size_t len, char out[DIGEST_RECORD_MAX])
{
	const struct algorithm *x =
		text_search(algorithm, algorithms, ARRAY_LEN(algorithms), sizeof(*x));
	uint8_t raw[EVP_MAX_MD_SIZE];
	unsigned bytes = 0;

	must(x && EVP_Digest(data, len, raw, &bytes, EVP_get_digestbyname(x->openssl), NULL));
	base64url(raw, bytes, out + sprintf(out, "%s=", algorithm));
}

void digest_data(const void *data, size_t len, char out[DIGEST_HEX_LEN + 1])
{
	uint8_t raw[DIGEST_LEN];
	must(EVP_Digest(data, len, raw, NULL, EVP_sha256(), NULL));
	digest_hex(raw, out);
}

int digest_file(const char *path, char out[DIGEST_HEX_LEN + 1], struct err *e)
{
	struct stat st;
	AUTO_FD int fd = fs_open(TRUSTED, path, &st, e);

	if (fd < 0)
		return -1;
	os_will_read(fd);
	AUTO_FREE char *chunk = malloc(CHUNK);
	must(chunk != NULL);
	AUTO_DIGEST struct digest *d = digest_new();
	for (;;) {
		ssize_t n = read(fd, chunk, CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
		if (n == 0)
			break;
		digest_update(d, chunk, (size_t)n);
	}

	uint8_t raw[DIGEST_LEN];
	digest_final(d, raw);
	digest_hex(raw, out);
	return 0;
}

bool digest_valid_hex(const char *s)
{
	return strlen(s) == DIGEST_HEX_LEN && strspn(s, "0123456789abcdef") == DIGEST_HEX_LEN;
}
