#include "fetch_fixture.h"
#include "step/fetch/fetch_place.h"

static void truncated_transfer_is_resumed(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.fault = HTTPD_TRUNCATE, .times = 1, .cut = HALF});
	get_ok(f);
	assert_int_equal(httpd_hits(f->server, "/file"), 2);
	assert_int_equal(httpd_ranges(f->server, "/file"), 1);
	assert_int_equal(httpd_sent(f->server, "/file"), BODY);
}

static void always_truncated_gives_up_and_keeps_what_came(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.fault = HTTPD_TRUNCATE, .cut = 1000});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "cannot fetch 'file.bin'");
	assert_null(s.path);
	assert_int_equal(httpd_hits(f->server, "/file"), 3);
	struct stat st;
	assert_int_equal(stat(partial(f), &st), 0);
	assert_int_equal(st.st_size, 3000);
}

static void transfers_that_advance_are_not_given_up(void **state)
{
	struct fixture *f = *state;

	f->o.retries = 1;
	serve(f, (struct httpd_page){.fault = HTTPD_TRUNCATE, .times = 2, .cut = (1 << 20) + 1});
	get_ok(f);
	assert_int_equal(httpd_hits(f->server, "/file"), 3);
}

static void stalled_transfer_is_resumed(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.fault = HTTPD_STALL, .times = 1, .cut = HALF});
	get_ok(f);
	assert_int_equal(httpd_ranges(f->server, "/file"), 1);
	assert_int_equal(httpd_sent(f->server, "/file"), BODY);
	assert_true(f->stats.seconds < HANG_S);
}

static void silent_server_is_given_up(void **state)
{
	struct fixture *f = *state;

	f->o.retries = 1;
	serve(f, (struct httpd_page){.fault = HTTPD_STALL, .cut = 0});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "no byte for 1 seconds");
	assert_int_equal(httpd_hits(f->server, "/file"), 2);
}

static void partial_of_an_earlier_run_is_continued(void **state)
{
	struct fixture *f = *state;

	put_partial(f, body, HALF);
	serve(f, (struct httpd_page){0});
	get_ok(f);
	assert_int_equal(httpd_sent(f->server, "/file"), BODY - HALF);
	assert_int_equal(f->stats.bytes, BODY - HALF);
}

static void complete_partial_needs_no_request(void **state)
{
	struct fixture *f = *state;

	put_partial(f, body, BODY);
	serve(f, (struct httpd_page){0});
	get_ok(f);
	assert_int_equal(httpd_hits(f->server, "/file"), 0);
}

static void partial_longer_than_the_file_starts_over(void **state)
{
	struct fixture *f = *state;
	char *longer = malloc(BODY + 10);

	memset(longer, 'z', BODY + 10);
	put_partial(f, longer, BODY + 10);
	free(longer);
	serve(f, (struct httpd_page){0});
	get_ok(f);
	assert_int_equal(httpd_hits(f->server, "/file"), 2);
}

static void damaged_partial_starts_over(void **state)
{
	struct fixture *f = *state;

	put_partial(f, body + 1, HALF);
	serve(f, (struct httpd_page){0});
	get_ok(f);
	assert_int_equal(httpd_hits(f->server, "/file"), 2);
	assert_int_equal(httpd_ranges(f->server, "/file"), 1);
}

static void partial_that_is_a_link_is_refused(void **state)
{
	struct fixture *f = *state;
	const char *victim = path_join(&f->a, f->dir, "victim");

	test_write(victim, "precious");
	assert_ok(fs_mkdirs(TRUSTED, path_join(&f->a, f->dir, "store/partial"), &f->e), &f->e);
	assert_int_equal(symlink(victim, partial(f)), 0);
	serve(f, (struct httpd_page){0});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_SYSTEM, "store/partial/");
	char *text = test_read(victim);
	assert_string_equal(text, "precious");
	free(text);
}

static void server_without_ranges_starts_over(void **state)
{
	struct fixture *f = *state;

	put_partial(f, body, HALF);
	serve(f, (struct httpd_page){.fault = HTTPD_NO_RANGE});
	get_ok(f);
	assert_int_equal(httpd_hits(f->server, "/file"), 1);
	assert_int_equal(httpd_sent(f->server, "/file"), BODY);
}

static void wrong_content_range_starts_over(void **state)
{
	struct fixture *f = *state;

	put_partial(f, body, HALF);
	serve(f, (struct httpd_page){.fault = HTTPD_WRONG_RANGE});
	get_ok(f);
	assert_int_equal(httpd_hits(f->server, "/file"), 2);
	assert_int_equal(httpd_ranges(f->server, "/file"), 1);
}

static void missing_content_range_starts_over(void **state)
{
	struct fixture *f = *state;

	put_partial(f, body, HALF);
	serve(f, (struct httpd_page){.fault = HTTPD_NO_CONTENT_RANGE});
	get_ok(f);
	assert_int_equal(httpd_ranges(f->server, "/file"), 1);
}

static void range_answered_in_part_is_continued(void **state)
{
	struct fixture *f = *state;

	put_partial(f, body, HALF);
	serve(f, (struct httpd_page){.fault = HTTPD_PART, .times = 1, .cut = 1000});
	get_ok(f);
	assert_int_equal(httpd_hits(f->server, "/file"), 2);
	assert_int_equal(httpd_sent(f->server, "/file"), BODY - HALF);
}

static void part_that_nobody_asked_for_is_refused(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.fault = HTTPD_ALWAYS_PART, .cut = 1000});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "not asked for");
	assert_int_equal(httpd_hits(f->server, "/file"), 1);
}

static void assert_no_retry(struct fixture *f, int status)
{
	serve(f, (struct httpd_page){.fault = HTTPD_STATUS, .status = status});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK,
		   arena_printf(&f->a, "http status %d from '%s'", status,
				httpd_url(f->server, "/file")));
	assert_int_equal(httpd_hits(f->server, "/file"), 1);
	assert_contains(f->e.hint, "--mirror");
}

static void not_found_is_not_retried(void **state)
{
	assert_no_retry(*state, 404);
}

static void forbidden_is_not_retried(void **state)
{
	assert_no_retry(*state, 403);
}

static void gone_is_not_retried(void **state)
{
	assert_no_retry(*state, 410);
}

static void success_without_the_file_is_no_success(void **state)
{
	assert_no_retry(*state, 203);
}

static void server_error_is_retried(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.fault = HTTPD_STATUS, .status = 500, .times = 2});
	get_ok(f);
	assert_int_equal(httpd_hits(f->server, "/file"), 3);
}

static void lasting_server_error_is_given_up(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.fault = HTTPD_STATUS, .status = 503});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "http status 503");
	assert_int_equal(httpd_hits(f->server, "/file"), 3);
}

static void retry_after_is_honoured(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){
			 .fault = HTTPD_STATUS, .status = 429, .times = 1, .retry_after = 1});
	get_ok(f);
	assert_int_equal(httpd_hits(f->server, "/file"), 2);
	assert_true(f->stats.seconds >= 1.0);
}

static void long_retry_after_goes_to_the_next_place(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.fault = HTTPD_STATUS, .status = 429, .retry_after = 3600});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "asked to wait 3600 seconds");
	assert_int_equal(httpd_hits(f->server, "/file"), 1);
}

static void hang_up_is_retried(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.fault = HTTPD_HANG_UP, .times = 2});
	get_ok(f);
	assert_int_equal(httpd_hits(f->server, "/file"), 3);
}

static void wrong_digest_is_deleted_and_both_are_named(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.body = other, .len = sizeof(other)});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_INTEGRITY, other_sha);
	assert_contains(f->e.msg, body_sha);
	assert_contains(f->e.hint, "--mirror");
	assert_false(fs_exists(TRUSTED, partial(f)));
	assert_int_equal(httpd_hits(f->server, "/file"), 1);
	assert_null(s.path);
}

static void short_content_length_is_a_wrong_digest(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.fault = HTTPD_SHORT_LENGTH, .cut = 1000});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_INTEGRITY, "wrong digest");
	assert_false(fs_exists(TRUSTED, partial(f)));
}

static void empty_answer_is_a_wrong_digest(void **state)
{
	struct fixture *f = *state;

	put_partial(f, body, HALF);
	serve(f, (struct httpd_page){.fault = HTTPD_NO_RANGE, .body = "", .len = 0});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_INTEGRITY,
		   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void huge_content_length_is_refused(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.fault = HTTPD_HUGE_LENGTH});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "more than 2147483648 bytes");
	assert_int_equal(httpd_hits(f->server, "/file"), 1);
}

static void content_length_beyond_64_bits_is_refused(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.fault = HTTPD_OVERFLOW_LENGTH});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "more than 2147483648 bytes");
	assert_int_equal(httpd_hits(f->server, "/file"), 1);
}

static void redirect_is_followed(void **state)
{
	struct fixture *f = *state;
	const struct httpd_page pages[] = {
		{.path = "/from", .fault = HTTPD_REDIRECT, .location = "/file"},
		{.path = "/file", .body = body, .len = BODY}};

	f->server = httpd_start(pages, 2);
	struct fetch_source s = source(f, "file.bin", body_sha, httpd_url(f->server, "/from"));
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
}

static void resumed_redirect_keeps_the_range(void **state)
{
	struct fixture *f = *state;
	const struct httpd_page pages[] = {
		{.path = "/from", .fault = HTTPD_REDIRECT, .location = "/file"},
		{.path = "/file", .body = body, .len = BODY}};

	f->server = httpd_start(pages, 2);
	put_partial(f, body, HALF);
	struct fetch_source s = source(f, "file.bin", body_sha, httpd_url(f->server, "/from"));
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
	assert_int_equal(httpd_sent(f->server, "/file"), BODY - HALF);
}

static void redirect_loop_ends(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.fault = HTTPD_LOOP});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "10");
	assert_int_equal(httpd_hits(f->server, "/file"), 11);
}

static void redirect_to_a_file_is_refused(void **state)
{
	struct fixture *f = *state;
	const char *secret = path_join(&f->a, f->dir, "secret");

	test_write_bytes(secret, body, BODY);
	serve(f, (struct httpd_page){.fault = HTTPD_REDIRECT,
				     .location = arena_printf(&f->a, "file://%s", secret)});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "rotocol");
	assert_null(s.path);
	assert_int_equal(httpd_hits(f->server, "/file"), 1);
}

static void garbage_instead_of_headers_is_refused(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.fault = HTTPD_GARBAGE});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "cannot get");
	assert_int_equal(httpd_hits(f->server, "/file"), 1);
}

static const char *start_tls(struct fixture *f, struct httpd_page page)
{
	const char *pem = path_join(&f->a, f->dir, "cert.pem");

	page.path = "/file";
	page.body = body;
	page.len = BODY;
	f->server = httpd_start_tls(&page, 1, pem);
	return pem;
}

static void certificate_that_nobody_vouches_for_is_refused(void **state)
{
	struct fixture *f = *state;

	start_tls(f, (struct httpd_page){0});
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "certificate");
	assert_null(s.path);
	assert_int_equal(httpd_hits(f->server, "/file"), 0);
}

static void trusted_certificate_is_taken(void **state)
{
	struct fixture *f = *state;

	setenv("SSL_CERT_FILE", start_tls(f, (struct httpd_page){0}), 1);
	struct fetch_source s = file_source(f);
	int status = get(f, &s, 1);
	unsetenv("SSL_CERT_FILE");
	assert_ok(status, &f->e);
	assert_has_body(&s);
}

static void redirect_from_https_to_http_is_refused(void **state)
{
	struct fixture *f = *state;
	const struct httpd_page plain_page = {.path = "/file", .body = body, .len = BODY};
	struct httpd *plain = httpd_start(&plain_page, 1);
	const char *pem = start_tls(
		f, (struct httpd_page){.fault = HTTPD_REDIRECT,
				       .location = arena_strdup(&f->a, httpd_url(plain, "/file"))});

	setenv("SSL_CERT_FILE", pem, 1);
	struct fetch_source s = file_source(f);
	int status = get(f, &s, 1);
	unsetenv("SSL_CERT_FILE");
	unsigned hits = httpd_hits(plain, "/file");
	httpd_stop(plain);
	assert_int_equal(status, -1);
	assert_int_equal(f->e.kind, ERR_NETWORK);
	assert_int_equal(hits, 0);
	assert_int_equal(httpd_hits(f->server, "/file"), 1);
}

static void passwords_stay_out_of_messages(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){0});
	const char *plain = httpd_url(f->server, "/nothing");
	struct fetch_source s =
		source(f, "file.bin", body_sha,
		       arena_printf(&f->a, "http://anna:hush@%s", plain + strlen("http://")));
	strlist_add(&s.urls, &f->a, "ftp://anna:hush@127.0.0.1/x");
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, plain);
	assert_not_contains(f->e.msg, "hush");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void authorities_are_those_named_else_the_systems(void **state)
{
	(void)state;
	const char *before = getenv("SSL_CERT_FILE");
	AUTO_FREE char *kept = before ? strdup(before) : NULL;
	setenv("SSL_CERT_FILE", "/one", 1);
	setenv("CURL_CA_BUNDLE", "/two", 1);
	assert_string_equal(transfer_authorities(), "/one");
	setenv("SSL_CERT_FILE", "", 1);
	assert_string_equal(transfer_authorities(), "/two");
	unsetenv("CURL_CA_BUNDLE");
	const char *found = transfer_authorities();
	assert_true(!found || access(found, R_OK) == 0);
	if (access("/etc/ssl/certs/ca-certificates.crt", R_OK) == 0)
		assert_string_equal(found, "/etc/ssl/certs/ca-certificates.crt");
	if (kept)
		setenv("SSL_CERT_FILE", kept, 1);
	else
		unsetenv("SSL_CERT_FILE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(truncated_transfer_is_resumed),
		T(always_truncated_gives_up_and_keeps_what_came),
		T(transfers_that_advance_are_not_given_up),
		T(stalled_transfer_is_resumed),
		T(silent_server_is_given_up),
		T(partial_of_an_earlier_run_is_continued),
		T(complete_partial_needs_no_request),
		T(partial_longer_than_the_file_starts_over),
		T(damaged_partial_starts_over),
		T(partial_that_is_a_link_is_refused),
		T(server_without_ranges_starts_over),
		T(wrong_content_range_starts_over),
		T(missing_content_range_starts_over),
		T(range_answered_in_part_is_continued),
		T(part_that_nobody_asked_for_is_refused),
		T(not_found_is_not_retried),
		T(forbidden_is_not_retried),
		T(gone_is_not_retried),
		T(success_without_the_file_is_no_success),
		T(server_error_is_retried),
		T(lasting_server_error_is_given_up),
		T(retry_after_is_honoured),
		T(long_retry_after_goes_to_the_next_place),
		T(hang_up_is_retried),
		T(wrong_digest_is_deleted_and_both_are_named),
		T(short_content_length_is_a_wrong_digest),
		T(empty_answer_is_a_wrong_digest),
		T(huge_content_length_is_refused),
		T(content_length_beyond_64_bits_is_refused),
		T(redirect_is_followed),
		T(resumed_redirect_keeps_the_range),
		T(redirect_loop_ends),
		T(redirect_to_a_file_is_refused),
		T(garbage_instead_of_headers_is_refused),
		T(certificate_that_nobody_vouches_for_is_refused),
		T(trusted_certificate_is_taken),
		T(redirect_from_https_to_http_is_refused),
		T(passwords_stay_out_of_messages),
		T(authorities_are_those_named_else_the_systems),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
