/* The TLS side of the test server. */
#pragma once
#include <openssl/ssl.h>

/* httpd_tls_new: a server context with a fresh self-signed certificate for 127.0.0.1,
 * which is also written to `pem`, so that a client may be told to trust it. */
SSL_CTX *httpd_tls_new(const char *pem);
