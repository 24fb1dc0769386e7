#include "httpd_tls.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "httpd_tls: %s failed\n", what);
	abort();
}

static void add_extension(X509 *cert, int nid, const char *value)
{
	X509V3_CTX ctx;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	need(ext != NULL, value);
	need(X509_add_ext(cert, ext, -1), "X509_add_ext");
	X509_EXTENSION_free(ext);
}

static X509 *self_signed(EVP_PKEY *key)
{
	X509 *cert = X509_new();

	need(cert != NULL, "X509_new");
	X509_NAME *name = X509_get_subject_name(cert);
	need(X509_set_version(cert, 2) && ASN1_INTEGER_set(X509_get_serialNumber(cert), 1),
	     "version");
	need(X509_gmtime_adj(X509_getm_notBefore(cert), -3600) &&
		     X509_gmtime_adj(X509_getm_notAfter(cert), 86400),
	     "time");
	need(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"test", -1,
					-1, 0),
	     "name");
	need(X509_set_issuer_name(cert, name) && X509_set_pubkey(cert, key), "issuer");
	add_extension(cert, NID_basic_constraints, "critical,CA:TRUE");
	add_extension(cert, NID_subject_alt_name, "IP:127.0.0.1");
	need(X509_sign(cert, key, EVP_sha256()) > 0, "X509_sign");
	return cert;
}

SSL_CTX *httpd_tls_new(const char *pem)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");

	need(key != NULL, "EVP_EC_gen");
	X509 *cert = self_signed(key);
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	need(ctx && SSL_CTX_use_certificate(ctx, cert) == 1 &&
		     SSL_CTX_use_PrivateKey(ctx, key) == 1,
	     "SSL_CTX");
	FILE *f = fopen(pem, "w");
	need(f && PEM_write_X509(f, cert) && fclose(f) == 0, pem);
	X509_free(cert);
	EVP_PKEY_free(key);
	return ctx;
}
