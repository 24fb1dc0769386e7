/* What is asked of the places of downloads before anything long; all on loopback. */
#include "support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "httpd.h"
#include "step/fetch/fetch.h"

static const char digest[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static struct fetch_source source(struct arena *a, const char *url)
{
	struct fetch_source s = {.name = "file.tar.gz", .sha256 = digest};

	if (url)
		strlist_add(&s.urls, a, url);
	return s;
}

/* A port of loopback at which nobody listens, or (silent)
 * a server that takes connections and says nothing. */
static const char *port(struct arena *a, bool silent, int *ret_fd)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&in, len) == 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	if (silent)
		assert_int_equal(listen(fd, 8), 0);
	*ret_fd = fd;
	return arena_printf(a, "http://127.0.0.1:%u/file.tar.gz", ntohs(in.sin_port));
}

static const char *probe(struct arena *a, struct fetch_source s, const struct fetch_options *o)
{
	const char *why = "not set";
	struct err e = {0};

	assert_ok(fetch_probe(&s, 1, o, test_run(), a, &why, &e), &e);
	return why;
}

static void test_servers(void **state)
{
	AUTO_ARENA struct arena a = {0};
	static const char body[] = "some bytes";
	const struct httpd_page pages[] = {
		{.path = "/file.tar.gz", .body = body, .len = sizeof(body)},
		{.path = "/busy", .fault = HTTPD_STATUS, .status = 503},
		{.path = "/huge", .body = body, .len = sizeof(body), .fault = HTTPD_ENDLESS},
	};
	const struct fetch_options o = {0};
	int closed;

	(void)state;
	struct httpd *h = httpd_start(pages, ARRAY_LEN(pages));
	assert_null(probe(&a, source(&a, httpd_url(h, "/file.tar.gz")), &o));
	/* one that is busy may have it when it is asked for it */
	assert_null(probe(&a, source(&a, httpd_url(h, "/busy")), &o));
	assert_null(probe(&a, source(&a, httpd_url(h, "/huge")), &o));
	assert_contains(probe(&a, source(&a, httpd_url(h, "/none")), &o), "HTTP status 404");
	assert_contains(probe(&a, source(&a, port(&a, false, &closed)), &o), "connect");
	/* another place has it */
	struct fetch_source two = source(&a, port(&a, false, &closed));
	strlist_add(&two.urls, &a, httpd_url(h, "/file.tar.gz"));
	assert_null(probe(&a, two, &o));
	/* each URL is asked once, with a range of a byte */
	unsigned before = httpd_hits(h, "/file.tar.gz");
	struct fetch_source same[2] = {source(&a, httpd_url(h, "/file.tar.gz")),
				       source(&a, httpd_url(h, "/file.tar.gz"))};
	const char *why[2];
	struct err e = {0};
	assert_ok(fetch_probe(same, 2, &o, test_run(), &a, why, &e), &e);
	assert_int_equal(httpd_hits(h, "/file.tar.gz"), before + 1);
	assert_int_equal(httpd_ranges(h, "/file.tar.gz"), before + 1);
	httpd_stop(h);
}

static void test_a_silent_server_is_not_waited_for(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct fetch_options o = {0};
	/* one after the other they would hang */
	enum { COUNT = 2 * HANG_S * 1000 / FETCH_PROBE_MS };
	int silent;

	(void)state;
	const char *url = port(&a, true, &silent), *why[COUNT] = {NULL};
	struct fetch_source s[COUNT];
	for (int i = 0; i < COUNT; i++)
		s[i] = source(&a, arena_printf(&a, "%s%d", url, i));
	struct err e = {0};
	double start = log_seconds();
	assert_ok(fetch_probe(s, COUNT, &o, test_run(), &a, why, &e), &e);
	assert_true(log_seconds() - start < HANG_S);
	for (int i = 0; i < COUNT; i++) {
		assert_contains(why[i], "127.0.0.1");
		assert_string_equal(why[i], why[0]); /* what is alike is told once */
	}

	close(silent);
}

static void test_mirrors_and_files(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct fetch_options o = {0};
	int closed;

	(void)state;
	const char *gone = port(&a, false, &closed);
	test_write(test_path("mirror/file.tar.gz"), "bytes");
	strlist_add(&o.mirrors, &a, test_path("mirror"));
	assert_null(probe(&a, source(&a, gone), &o));
	o.mirrors.count = 0;
	strlist_add(&o.mirrors, &a, test_path("empty"));
	assert_contains(probe(&a, source(&a, gone), &o), "not in '");
	assert_null(probe(
		&a, source(&a, arena_printf(&a, "file://%s", test_path("mirror/file.tar.gz"))),
		&o));
	assert_contains(probe(&a, source(&a, "/no/such/file"), &o), "'/no/such/file' is not there");
}

static void test_archives(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct fetch_options o = {0};

	(void)state;
	struct httpd *h = httpd_start(NULL, 0);
	const struct fetch_source deb = source(&a, "deb:old-archive/pool/a.deb");
	assert_contains(probe(&a, deb, &o), "no address of the archive 'old-archive' is known");
	strlist_addf(&o.archives, &a, "old-archive=%s", httpd_url(h, ""));
	/* an archive that has the file no longer is there all the same */
	assert_null(probe(&a, deb, &o));
	httpd_stop(h);
	assert_contains(probe(&a, deb, &o), "connect");
}

int main(void)
{
	/* The servers are on this machine: no proxy of the environment may stand between. */
	setenv("no_proxy", "*", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_servers, test_teardown),
		cmocka_unit_test_teardown(test_a_silent_server_is_not_waited_for, test_teardown),
		cmocka_unit_test_teardown(test_mirrors_and_files, test_teardown),
		cmocka_unit_test_teardown(test_archives, test_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
