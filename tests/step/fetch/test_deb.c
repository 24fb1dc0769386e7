/* deb: places and the addresses of archives. No address of
 * this machine may take part: there is no apt-get in PATH. */
#include "fetch_fixture.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "step/fetch/fetch.h"

static const char pool[] = "/debian/pool/main/b/b+x/b+x_1.0~rc1_all.deb";

static int setup_deb(void **state)
{
	int status = setup(state);

	unsetenv("PTBUILD_ARCHIVE_DEBIAN");
	unsetenv("PTBUILD_ARCHIVE_DEBIAN_SNAPSHOT");
	setenv("PATH", "/nonexistent", 1);
	return status;
}

static struct fetch_source deb(struct fixture *f)
{
	return source(f, "b+x_1.0~rc1_all.deb", body_sha,
		      "deb:debian/pool/main/b/b+x/b+x_1.0~rc1_all.deb");
}

/* The server decodes nothing: the page has the path as it is asked for. */
static void serve_deb(struct fixture *f, const char *top)
{
	const struct httpd_page page = {
		.path = arena_printf(&f->a, "%s/pool/main/b/b%%2Bx/b%%2Bx_1.0~rc1_all.deb", top),
		.body = body,
		.len = BODY};

	f->server = httpd_start(&page, 1);
}

static void name_archive(struct fixture *f, const char *name, const char *url)
{
	strlist_addf(&f->o.archives, &f->a, "%s=%s", name, url);
}

static void comes_from_the_named_archive(void **state)
{
	struct fixture *f = *state;

	serve_deb(f, "/debian");
	name_archive(f, "debian", httpd_url(f->server, "/debian/"));
	struct fetch_source s = deb(f);
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
	assert_string_equal(path_base(s.path), "b+x_1.0~rc1_all.deb");
	assert_false(s.gone);
}

static void variable_then_file(void **state)
{
	struct fixture *f = *state;
	struct strlist got = {0};

	f->o.archives_file = path_join(&f->a, f->dir, "archives");
	const char text[] =
		"# of this machine\ndebian http://127.0.0.1:1/a/ # first\ndebian-security /s\n\n"
		"debian\thttps://127.0.0.1:1/b\r\n";
	test_write_bytes(f->o.archives_file, text, strlen(text));
	assert_ok(archives_find(&(struct fetcher){NULL, &f->o, &f->run, &f->a}, "debian", &got,
				&f->e),
		  &f->e);
	assert_string_equal(strlist_join(&got, &f->a, " "),
			    "http://127.0.0.1:1/a https://127.0.0.1:1/b");
	assert_ok(archives_find(&(struct fetcher){NULL, &f->o, &f->run, &f->a}, "debian-security",
				&got, &f->e),
		  &f->e);
	assert_string_equal(strlist_join(&got, &f->a, " "), "/s");
	setenv("PTBUILD_ARCHIVE_DEBIAN", " /x  file:///y/ ", 1);
	assert_ok(archives_find(&(struct fetcher){NULL, &f->o, &f->run, &f->a}, "debian", &got,
				&f->e),
		  &f->e);
	assert_string_equal(strlist_join(&got, &f->a, " "), "/x file:///y");
	name_archive(f, "debian", "/z");
	assert_ok(archives_find(&(struct fetcher){NULL, &f->o, &f->run, &f->a}, "debian", &got,
				&f->e),
		  &f->e);
	assert_string_equal(strlist_join(&got, &f->a, " "), "/z");
	assert_ok(
		archives_find(&(struct fetcher){NULL, &f->o, &f->run, &f->a}, "other", &got, &f->e),
		&f->e);
	assert_int_equal(got.count, 0);
}

static void bad_lines_and_addresses_are_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {{"debian\n", "archives:1: not an archive and its URL"},
		   {"\ndebian /a b\n", "archives:2: not an archive and its URL"},
		   {"Debian /a\n", "archives:1: not an archive and its URL"},
		   {"debian ftp://127.0.0.1/\n", "archives:1: not the address of an archive"},
		   {"debian a/b\n", "archives:1: not the address of an archive"}};
	struct fixture *f = *state;
	struct strlist got = {0};
	const struct fetch_options o = {.archives_file = path_join(&f->a, f->dir, "archives")};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		err_clear(&f->e);
		test_write_bytes(o.archives_file, bad[i].text, strlen(bad[i].text));
		assert_err(archives_find(&(struct fetcher){NULL, &o, &f->run, &f->a}, "debian",
					 &got, &f->e),
			   &f->e, ERR_CONFIG, bad[i].says);
	}

	err_clear(&f->e);
	setenv("PTBUILD_ARCHIVE_DEBIAN", "here", 1);
	assert_err(
		archives_find(&(struct fetcher){NULL, &o, &f->run, &f->a}, "debian", &got, &f->e),
		&f->e, ERR_CONFIG, "PTBUILD_ARCHIVE_DEBIAN: not the address of an archive: 'here'");
}

static void bad_words_are_refused(void **state)
{
	static const char *const bad[] = {"debian", "=http://127.0.0.1/", "debian=", "deb ian=/x",
					  "debian=x"};
	struct err e = {0};

	(void)state;
	assert_ok(archives_word("debian-snapshot=http://127.0.0.1/x", &e), &e);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		err_clear(&e);
		assert_err(archives_word(bad[i], &e), &e, ERR_USAGE,
			   "option '--archive': not NAME=URL");
	}
}

static void unknown_archive_says_what_to_set(void **state)
{
	struct fixture *f = *state;
	struct fetch_source s = deb(f);

	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK,
		   "no address of the archive 'debian' is known");
	assert_contains(f->e.hint, "PTBUILD_ARCHIVE_DEBIAN");
	assert_contains(f->e.hint, "--archive debian=URL");
	assert_false(s.gone);
}

static void bad_places_are_refused(void **state)
{
	static const char *const bad[] = {"deb:debian", "deb:/pool/x", "deb:debian/../x",
					  "deb:Debian/x", "deb:debian/"};
	struct fixture *f = *state;

	name_archive(f, "debian", f->dir);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct fetch_source s = source(f, "file.bin", body_sha, bad[i]);
		assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "not a path in a Debian archive");
		assert_false(s.gone);
	}
}

static void a_directory_is_an_archive_even_offline(void **state)
{
	struct fixture *f = *state;

	test_write_bytes(arena_printf(&f->a, "%s%s", f->dir, pool), body, BODY);
	name_archive(f, "debian", "http://127.0.0.1:1/debian");
	name_archive(f, "debian", arena_printf(&f->a, "file://%s/debian", f->dir));
	f->o.offline = true;
	struct fetch_source s = deb(f);
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
}

static void snapshot_is_tried_last(void **state)
{
	struct fixture *f = *state;

	serve_deb(f, "/then");
	name_archive(f, "debian-snapshot", httpd_url(f->server, "/then"));
	name_archive(f, "debian", httpd_url(f->server, "/now"));
	struct fetch_source s = deb(f);
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
	/* not a page */
	assert_int_equal(httpd_hits(f->server, "/now/pool/main/b/b%2Bx/b%2Bx_1.0~rc1_all.deb"), 0);
}

static void gone_from_every_archive(void **state)
{
	struct fixture *f = *state;

	serve_deb(f, "/elsewhere");
	name_archive(f, "debian", httpd_url(f->server, "/a"));
	name_archive(f, "debian", httpd_url(f->server, "/b"));
	name_archive(f, "debian-snapshot", httpd_url(f->server, "/s"));
	struct fetch_source s = deb(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "http status 404");
	assert_true(s.gone);
}

static void silent_mirror_does_not_hide_that_it_is_gone(void **state)
{
	struct fixture *f = *state;

	serve_deb(f, "/elsewhere");
	f->o.retries = 1;
	name_archive(f, "debian", "http://127.0.0.1:1/debian");
	name_archive(f, "debian", httpd_url(f->server, "/b"));
	struct fetch_source s = deb(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "http status 404");
	assert_true(s.gone);
}

static void silent_or_failing_snapshot_leaves_doubt(void **state)
{
	struct fixture *f = *state;
	const struct httpd_page page = {.path = "/bad/pool/main/b/b%2Bx/b%2Bx_1.0~rc1_all.deb",
					.fault = HTTPD_STATUS,
					.status = 403};

	f->server = httpd_start(&page, 1);
	f->o.retries = 1;
	name_archive(f, "debian", httpd_url(f->server, "/a"));
	name_archive(f, "debian-snapshot", "http://127.0.0.1:1/debian");
	struct fetch_source s = deb(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "http status 404");
	assert_false(s.gone);
	name_archive(f, "debian", httpd_url(f->server, "/bad"));
	f->o.archives.items[1] = "debian-snapshot=/nonexistent";
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "http status 403");
	assert_false(s.gone);
}

static void wrong_bytes_are_refused_and_named(void **state)
{
	struct fixture *f = *state;

	test_write_bytes(arena_printf(&f->a, "%s%s", f->dir, pool), other, sizeof(other));
	name_archive(f, "debian", path_join(&f->a, f->dir, "debian"));
	struct fetch_source s = deb(f);
	assert_err(get(f, &s, 1), &f->e, ERR_INTEGRITY, other_sha);
	assert_contains(f->e.msg, "b+x_1.0~rc1_all.deb");
	assert_false(s.gone);
}

static void latest_file_is_stored_by_its_digest(void **state)
{
	struct fixture *f = *state;
	const char *path = path_join(&f->a, f->dir, "debian/dists/x/InRelease"), *got = NULL;

	test_write_bytes(path, body, BODY);
	name_archive(f, "debian", path_join(&f->a, f->dir, "debian"));
	assert_ok(fetch_latest(&(struct fetcher){f->store, &f->o, &f->run, &f->a},
			       &(struct fetch_page){"debian/dists/x/InRelease", NULL, BODY}, &got,
			       &f->e),
		  &f->e);
	assert_contains(got, body_sha);
	assert_string_equal(path_base(got), "InRelease");
	assert_err(fetch_latest(&(struct fetcher){f->store, &f->o, &f->run, &f->a},
				&(struct fetch_page){"debian/dists/x/InRelease", NULL, BODY - 1},
				&got, &f->e),
		   &f->e, ERR_NETWORK, "too large");
	test_write_bytes(path, other, sizeof(other));
	err_clear(&f->e);
	assert_ok(fetch_latest(&(struct fetcher){f->store, &f->o, &f->run, &f->a},
			       &(struct fetch_page){"debian/dists/x/InRelease", NULL, BODY}, &got,
			       &f->e),
		  &f->e);
	assert_contains(got, other_sha);
	f->o.offline = true;
	assert_err(fetch_latest(&(struct fetcher){f->store, &f->o, &f->run, &f->a},
				&(struct fetch_page){"debian/dists/x/InRelease", NULL, BODY}, &got,
				&f->e),
		   &f->e, ERR_NETWORK, "--offline forbids");
}

/* A server that closes nothing and gives the last digit of the
 * path as the body; it serves one connection after the other. */
struct keeper {
	int listener;
	unsigned connections, requests;
};

static void answer(struct keeper *k, int fd)
{
	char text[4096];
	size_t len = 0;

	for (ssize_t n; (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0;) {
		len += (size_t)n;
		text[len] = '\0';
		if (!strstr(text, "\r\n\r\n"))
			continue;
		const char digit = *(strstr(text, " HTTP/1.1") - 1);
		dprintf(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%c", digit);
		k->requests++;
		len = 0;
	}
}

static void *keep(void *user)
{
	struct keeper *k = user;

	for (int fd; (fd = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
		k->connections++;
		answer(k, fd);
		close(fd);
	}

	return NULL;
}

static void a_connection_is_used_again(void **state)
{
	struct fixture *f = *state;
	enum { N = 10 };
	struct fetch_source s[N];
	struct keeper k = {.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	pthread_t thread;

	assert_int_equal(bind(k.listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(k.listener, 16), 0);
	assert_int_equal(getsockname(k.listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(pthread_create(&thread, NULL, keep, &k), 0);
	for (unsigned i = 0; i < N; i++) {
		const char digit = (char)('0' + i);
		char *sha = arena_alloc(&f->a, 65);
		digest_data(&digit, 1, sha);
		s[i] = source(f, arena_printf(&f->a, "f%u", i), sha,
			      arena_printf(&f->a, "deb:debian/%u", i));
	}

	name_archive(f, "debian", arena_printf(&f->a, "http://127.0.0.1:%u", ntohs(at.sin_port)));
	f->o.parallel = 1;
	assert_ok(get(f, s, N), &f->e);
	shutdown(k.listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(k.listener);
	assert_int_equal(k.requests, N);
	assert_int_equal(k.connections, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(comes_from_the_named_archive, setup_deb, teardown),
		cmocka_unit_test_setup_teardown(variable_then_file, setup_deb, teardown),
		cmocka_unit_test_setup_teardown(bad_lines_and_addresses_are_refused, setup_deb,
						teardown),
		cmocka_unit_test(bad_words_are_refused),
		cmocka_unit_test_setup_teardown(unknown_archive_says_what_to_set, setup_deb,
						teardown),
		cmocka_unit_test_setup_teardown(bad_places_are_refused, setup_deb, teardown),
		cmocka_unit_test_setup_teardown(a_directory_is_an_archive_even_offline, setup_deb,
						teardown),
		cmocka_unit_test_setup_teardown(snapshot_is_tried_last, setup_deb, teardown),
		cmocka_unit_test_setup_teardown(gone_from_every_archive, setup_deb, teardown),
		cmocka_unit_test_setup_teardown(silent_mirror_does_not_hide_that_it_is_gone,
						setup_deb, teardown),
		cmocka_unit_test_setup_teardown(silent_or_failing_snapshot_leaves_doubt, setup_deb,
						teardown),
		cmocka_unit_test_setup_teardown(wrong_bytes_are_refused_and_named, setup_deb,
						teardown),
		cmocka_unit_test_setup_teardown(latest_file_is_stored_by_its_digest, setup_deb,
						teardown),
		cmocka_unit_test_setup_teardown(a_connection_is_used_again, setup_deb, teardown),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
