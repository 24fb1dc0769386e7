#include "fetch_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

static const char digest_of_nothing[] =
	"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
static const char digest_of_zeros[] =
	"0000000000000000000000000000000000000000000000000000000000000000";

static void downloads_into_the_store(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){0});
	struct fetch_source s = file_source(f);
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
	assert_string_equal(path_base(s.path), "file.bin");
	assert_contains(s.path, path_join(&f->a, f->dir, "store/objects/source"));
	assert_int_equal(f->stats.downloaded, 1);
	assert_int_equal(f->stats.from_store, 0);
	assert_int_equal(f->stats.bytes, BODY);
	assert_false(fs_exists(TRUSTED, partial(f)));
}

static void second_time_comes_from_the_store(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){0});
	get_ok(f);
	struct fetch_source s = file_source(f);
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
	assert_int_equal(f->stats.from_store, 1);
	assert_int_equal(f->stats.downloaded, 0);
	assert_int_equal(httpd_hits(f->server, "/file"), 1);
}

static void other_name_of_the_same_bytes_is_found(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){0});
	get_ok(f);
	struct fetch_source s = source(f, "upstream-name.bin", body_sha, NULL);
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
	assert_int_equal(f->stats.from_store, 1);
}

static void no_source_is_fine(void **state)
{
	struct fixture *f = *state;
	assert_ok(get(f, NULL, 0), &f->e);
	assert_int_equal(f->stats.downloaded + f->stats.from_store, 0);
}

static void several_files_at_once(void **state)
{
	struct fixture *f = *state;
	enum { N = 7 };
	struct httpd_page pages[N];
	struct fetch_source s[N];

	for (size_t i = 0; i < N; i++) {
		char *sha = arena_alloc(&f->a, 65);
		digest_data(body + i, 100000 + i, sha);
		pages[i] = (struct httpd_page){.path = arena_printf(&f->a, "/%zu", i),
					       .body = body + i,
					       .len = 100000 + i};
		s[i] = source(f, arena_printf(&f->a, "f%zu", i), sha, NULL);
	}

	f->server = httpd_start(pages, N);
	for (size_t i = 0; i < N; i++)
		strlist_add(&s[i].urls, &f->a, httpd_url(f->server, pages[i].path));
	assert_ok(get(f, s, N), &f->e);
	assert_int_equal(f->stats.downloaded, N);
	for (size_t i = 0; i < N; i++) {
		char hex[65];
		assert_ok(digest_file(s[i].path, hex, &f->e), &f->e);
		assert_string_equal(hex, s[i].sha256);
	}
}

static void same_file_twice_is_downloaded_once(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){0});
	struct fetch_source s[] = {file_source(f), file_source(f), file_source(f)};
	assert_ok(get(f, s, 3), &f->e);
	assert_has_body(&s[0]);
	assert_has_body(&s[2]);
	assert_int_equal(httpd_hits(f->server, "/file"), 1);
	assert_int_equal(f->stats.downloaded, 1);
	assert_int_equal(f->stats.from_store, 2);
}

static void next_place_is_tried(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){0});
	struct fetch_source s = source(f, "file.bin", body_sha, httpd_url(f->server, "/nothing"));
	strlist_add(&s.urls, &f->a, httpd_url(f->server, "/file"));
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
	assert_not_contains(log_text(f), "warning");
}

static void wrong_place_then_right_place_warns(void **state)
{
	struct fixture *f = *state;
	const struct httpd_page pages[] = {{.path = "/bad", .body = other, .len = sizeof(other)},
					   {.path = "/file", .body = body, .len = BODY}};

	f->server = httpd_start(pages, 2);
	struct fetch_source s = source(f, "file.bin", body_sha, httpd_url(f->server, "/bad"));
	strlist_add(&s.urls, &f->a, httpd_url(f->server, "/file"));
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
	assert_contains(log_text(f), "warning");
	assert_contains(log_text(f), other_sha);
}

/* A server that sends without end must not fill the disk. */
static void a_file_of_known_size_is_cut_there(void **state)
{
	struct fixture *f = *state;
	const struct httpd_page pages[] = {
		{.path = "/endless", .body = body, .len = HALF, .fault = HTTPD_ENDLESS},
		{.path = "/large", .body = body, .len = BODY},
		{.path = "/file", .body = body, .len = BODY}};

	f->server = httpd_start(pages, ARRAY_LEN(pages));
	struct fetch_source s = source(f, "file.bin", body_sha, httpd_url(f->server, "/endless"));
	s.max_bytes = BODY - 1;
	strlist_add(&s.urls, &f->a, httpd_url(f->server, "/large"));
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK,
		   "cannot fetch 'file.bin': more than 3145727 bytes from 'http");
	assert_contains(f->e.msg, "/endless'; more than 3145727 bytes from");
	assert_false(fs_exists(TRUSTED, partial(f)));
	assert_true(httpd_sent(f->server, "/endless") < 8 * BODY);
	s.max_bytes = BODY;
	strlist_add(&s.urls, &f->a, httpd_url(f->server, "/file"));
	s.urls.items[1] = httpd_url(f->server, "/none");
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
}

static void refused_connection_names_every_place(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){0});
	const char *first = arena_strdup(&f->a, httpd_url(f->server, "/a"));
	httpd_stop(f->server);
	f->server = NULL;
	struct fetch_source s = source(f, "file.bin", body_sha, first);
	strlist_add(&s.urls, &f->a, "/does/not/exist");
	strlist_add(&s.urls, &f->a, "ftp://127.0.0.1/x");
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, first);
	assert_contains(f->e.msg, "/does/not/exist");
	assert_contains(f->e.msg, "unsupported URL 'ftp://127.0.0.1/x'");
}

/* What one file found out, the others need not: each would wait as long. */
static void an_unreachable_host_is_asked_for_one_file(void **state)
{
	struct fixture *f = *state;
	enum { N = 6 };
	struct fetch_source s[N];

	serve(f, (struct httpd_page){0});
	const char *url = arena_strdup(&f->a, httpd_url(f->server, "/file"));
	const char *host = arena_strndup(&f->a, url, strlen(url) - strlen("/file"));
	httpd_stop(f->server);
	f->server = NULL;
	f->o.parallel = 1;
	f->o.retries = 1;
	f->o.backoff_ms = 200;
	for (size_t i = 0; i < N; i++) {
		char *sha = arena_alloc(&f->a, 65);
		digest_data(body, i, sha);
		s[i] = source(f, arena_printf(&f->a, "f%zu", i), sha, url);
	}

	f->log.level = LOG_VERBOSE;
	assert_err(get(f, s, N), &f->e, ERR_NETWORK, "cannot fetch 'f0': cannot get 'http");
	assert_false(s[1].gone);
	const char *text = log_text(f),
		   *said = arena_printf(&f->a, "'%s' cannot be reached and is not asked again",
					host);
	const char *first = strstr(text, said);
	assert_non_null(first);
	assert_null(strstr(first + 1, said));
	const char *pause = strstr(text, "' again in ");
	assert_non_null(pause);
	assert_null(strstr(pause + 1, "' again in "));
	assert_contains(text,
			arena_printf(&f->a, "cannot fetch 'f1': '%s' cannot be reached", host));
	assert_contains(text, "cannot fetch 'f3'");
	assert_not_contains(text, "cannot fetch 'f4'");
	assert_contains(text, "and 2 more files could not be fetched");
}

/* The second is silent while the progress is first told. */
static void no_place_at_all(void **state)
{
	struct fixture *f = *state;
	struct fetch_source s = source(f, "file.bin", body_sha, NULL);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "no URL is known");
}

static void file_url_is_copied(void **state)
{
	struct fixture *f = *state;

	test_write_bytes(path_join(&f->a, f->dir, "a b"), body, BODY);
	struct fetch_source s =
		source(f, "file.bin", body_sha, arena_printf(&f->a, "file://%s/a%%20b", f->dir));
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
	assert_true(fs_exists(TRUSTED, path_join(&f->a, f->dir, "a b")));
}

static void absolute_path_is_copied(void **state)
{
	struct fixture *f = *state;
	const char *path = path_join(&f->a, f->dir, "plain");

	test_write_bytes(path, body, BODY);
	struct fetch_source s = source(f, "file.bin", body_sha, path);
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
	assert_true(fs_exists(TRUSTED, path));
}

static void wrong_local_file_stays_where_it_is(void **state)
{
	struct fixture *f = *state;
	const char *path = path_join(&f->a, f->dir, "plain");

	test_write_bytes(path, other, sizeof(other));
	struct fetch_source s = source(f, "file.bin", body_sha, path);
	assert_err(get(f, &s, 1), &f->e, ERR_INTEGRITY, other_sha);
	assert_true(fs_exists(TRUSTED, path));
	assert_false(fs_exists(TRUSTED, partial(f)));
}

static void file_on_another_host_is_refused(void **state)
{
	struct fixture *f = *state;
	struct fetch_source s = source(f, "file.bin", body_sha, "file://elsewhere/x");
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "unsupported URL");
}

static void directory_and_fifo_are_no_files(void **state)
{
	struct fixture *f = *state;
	const char *fifo = path_join(&f->a, f->dir, "fifo");

	assert_int_equal(mkfifo(fifo, 0600), 0);
	struct fetch_source s = source(f, "file.bin", body_sha, fifo);
	strlist_add(&s.urls, &f->a, f->dir);
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "not a regular file");
	assert_contains(f->e.msg, fifo);
}

static void mirror_directory_by_digest_comes_first(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){0});
	test_write_bytes(arena_printf(&f->a, "%s/m/%s/file.bin", f->dir, body_sha), body, BODY);
	strlist_add(&f->o.mirrors, &f->a, path_join(&f->a, f->dir, "m/"));
	get_ok(f);
	assert_int_equal(httpd_hits(f->server, "/file"), 0);
}

static void mirror_directory_by_name(void **state)
{
	struct fixture *f = *state;

	test_write_bytes(arena_printf(&f->a, "%s/m/file.bin", f->dir), body, BODY);
	strlist_add(&f->o.mirrors, &f->a, arena_printf(&f->a, "file://%s/m", f->dir));
	get_ok(f);
}

static void mirror_url_comes_first_with_the_name_escaped(void **state)
{
	struct fixture *f = *state;
	const struct httpd_page pages[] = {{.path = "/m/f%2Bile.bin", .body = body, .len = BODY},
					   {.path = "/file", .body = body, .len = BODY}};

	f->server = httpd_start(pages, 2);
	strlist_add(&f->o.mirrors, &f->a, httpd_url(f->server, "/m/"));
	struct fetch_source s = source(f, "f+ile.bin", body_sha, httpd_url(f->server, "/file"));
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
	assert_string_equal(path_base(s.path), "f+ile.bin");
	assert_int_equal(httpd_hits(f->server, "/m/f%2Bile.bin"), 1);
	assert_int_equal(httpd_hits(f->server, "/file"), 0);
}

static void mirror_without_the_file_is_passed_over(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){0});
	strlist_add(&f->o.mirrors, &f->a, path_join(&f->a, f->dir, "empty"));
	get_ok(f);
	assert_int_equal(httpd_hits(f->server, "/file"), 1);
}

static void offline_takes_a_mirror_directory(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){0});
	f->o.offline = true;
	test_write_bytes(arena_printf(&f->a, "%s/m/file.bin", f->dir), body, BODY);
	strlist_add(&f->o.mirrors, &f->a, path_join(&f->a, f->dir, "m"));
	get_ok(f);
	assert_int_equal(httpd_hits(f->server, "/file"), 0);
}

static void offline_asks_no_server(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){0});
	f->o.offline = true;
	struct fetch_source s = file_source(f);
	strlist_add(&s.urls, &f->a, "deb:debian/pool/x");
	assert_err(get(f, &s, 1), &f->e, ERR_NETWORK, "'file.bin'");
	assert_contains(f->e.msg, body_sha);
	assert_contains(f->e.msg, "--offline");
	assert_int_equal(httpd_hits(f->server, "/file"), 0);
}

static void names_that_are_no_file_names_are_refused(void **state)
{
	struct fixture *f = *state;
	static const char *const bad[] = {"", "a/b", "..", ".hidden", "-x", "/abs", "a\nb"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct fetch_source s = source(f, bad[i], body_sha, "/dev/null");
		assert_err(get(f, &s, 1), &f->e, ERR_CONFIG, "not a file name");
	}
}

static void digests_that_are_none_are_refused(void **state)
{
	struct fixture *f = *state;
	static const char *const bad[] = {
		"", "abc", "../../../../../../../../../../../../../../../../../../../../../../",
		"ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct fetch_source s = source(f, "file.bin", bad[i], "/dev/null");
		assert_err(get(f, &s, 1), &f->e, ERR_CONFIG, "no sha256");
	}
}

static void one_failure_does_not_stop_the_others(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){0});
	struct fetch_source s[] = {
		source(f, "lost.bin", other_sha, httpd_url(f->server, "/nothing")), file_source(f)};
	assert_err(get(f, s, 2), &f->e, ERR_NETWORK, "'lost.bin'");
	assert_null(s[0].path);
	assert_null(s[1].path);
	struct fetch_source again = source(f, "file.bin", body_sha, NULL);
	assert_ok(get(f, &again, 1), &f->e);
	assert_int_equal(f->stats.from_store, 1);
}

static void every_failure_is_told(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){0});
	struct fetch_source s[] = {source(f, "lost.bin", other_sha, "/nothing/a"),
				   source(f, "gone.bin", body_sha, "/nothing/b")};
	assert_err(get(f, s, 2), &f->e, ERR_NETWORK, "'lost.bin'");
	assert_contains(log_text(f), "'gone.bin'");
}

/* A file is gone only when every place says so: one that cannot be asked may have it. */
static void gone_is_what_every_place_says(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){.fault = HTTPD_STATUS, .status = 503});
	struct fetch_source s[] = {
		source(f, "gone.bin", other_sha, httpd_url(f->server, "/nothing")),
		source(f, "none.bin", body_sha, "/nothing/a"),
		source(f, "busy.bin", digest_of_nothing, httpd_url(f->server, "/nothing")),
		source(f, "wrong.bin", digest_of_zeros, httpd_url(f->server, "/nothing"))};
	strlist_add(&s[0].urls, &f->a, "/nothing/b");
	strlist_add(&s[2].urls, &f->a, httpd_url(f->server, "/file"));
	strlist_add(&s[3].urls, &f->a, "ftp://host/file");
	assert_err(get(f, s, ARRAY_LEN(s)), &f->e, ERR_NETWORK, "'gone.bin'");
	assert_true(s[0].gone);
	assert_true(s[1].gone);
	assert_false(s[2].gone);
	assert_false(s[3].gone);
	struct fetch_source there = source(f, "here.bin", other_sha, "/nothing/a");
	strlist_add(&there.urls, &f->a, "/nothing/b");
	f->o.offline = true;
	there.urls.items[1] = "http://127.0.0.1:1/x";
	assert_err(get(f, &there, 1), &f->e, ERR_NETWORK, "--offline");
	assert_false(there.gone);
}

static void cancelled_before_the_start(void **state)
{
	struct fixture *f = *state;
	int ends[2];

	serve(f, (struct httpd_page){0});
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	f->run.cancel_fd = ends[0];
	struct fetch_source s = file_source(f);
	assert_err(get(f, &s, 1), &f->e, ERR_INTERRUPTED, "interrupted");
	assert_int_equal(httpd_hits(f->server, "/file"), 0);
	close(ends[0]);
	close(ends[1]);
}

struct canceller {
	const char *partial;
	int fd;
};

/* When half of the file is there. */
static void *press_ctrl_c(void *user)
{
	const struct canceller *c = user;
	struct stat st = {0};

	for (int i = 0; i < HANG_S * 100 && (stat(c->partial, &st) < 0 || st.st_size < HALF); i++)
		usleep(10000);
	assert_int_equal(write(c->fd, "x", 1), 1);
	return NULL;
}

static void cancel_stops_at_once_and_keeps_the_partial(void **state)
{
	struct fixture *f = *state;
	int ends[2];
	pthread_t t;

	f->o.stall_seconds = 300;
	serve(f, (struct httpd_page){.fault = HTTPD_STALL, .cut = HALF});
	assert_int_equal(pipe(ends), 0);
	f->run.cancel_fd = ends[0];
	struct canceller c = {.partial = partial(f), .fd = ends[1]};
	assert_int_equal(pthread_create(&t, NULL, press_ctrl_c, &c), 0);
	struct fetch_source s = file_source(f);
	double start = log_seconds();
	assert_err(get(f, &s, 1), &f->e, ERR_INTERRUPTED, "interrupted");
	assert_true(log_seconds() - start < HANG_S);
	pthread_join(t, NULL);
	struct stat st;
	assert_int_equal(stat(partial(f), &st), 0);
	assert_int_equal(st.st_size, HALF);
	close(ends[0]);
	close(ends[1]);
}

/* A store on a file system of 1 MiB: the second file
 * is not asked for. Exit status: 0 as promised. */
static int fill_the_disk(struct fixture *f)
{
	const char *dir = path_join(&f->a, f->dir, "small");
	struct store *store;

	if (mkdir(dir, 0755) < 0)
		return 10;
	if (!test_own_mounts()) /* before there are threads */
		return 11;
	serve(f, (struct httpd_page){0});
	if (mount("none", dir, "tmpfs", 0, "size=1m") < 0)
		return 12;
	if (store_open(path_join(&f->a, dir, "store"), &f->run, &store, &f->e) != 0)
		return 13;
	struct fetch_source s[2] = {file_source(f), file_source(f)};
	s[1].sha256 = digest_of_zeros;
	f->o.parallel = 1;
	int status =
		fetch_all(&(struct fetcher){store, &f->o, &f->run, &f->a}, s, 2, &f->stats, &f->e);
	store_close(store);
	if (status != -1 || f->e.kind != ERR_SYSTEM)
		return 14;
	if (!strstr(f->e.msg, "small/store/partial/") || !f->e.hint[0])
		return 15;
	return httpd_hits(f->server, "/file") == 1 ? 0 : 16;
}

static void full_disk_is_a_system_error_with_path_and_hint(void **state)
{
	struct fixture *f = *state;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fill_the_disk(f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int fetch_in_child(struct fixture *f)
{
	struct store *store;
	struct fetch_source s = file_source(f);

	if (store_open(path_join(&f->a, f->dir, "store"), &f->run, &store, &f->e) != 0)
		return 1;
	int status =
		fetch_all(&(struct fetcher){store, &f->o, &f->run, &f->a}, &s, 1, &f->stats, &f->e);
	store_close(store);
	return status == 0 && s.path ? 0 : 2;
}

static void two_processes_download_once(void **state)
{
	struct fixture *f = *state;
	enum { N = 3 };
	pid_t pids[N];

	f->o.stall_seconds = 5;
	serve(f, (struct httpd_page){
			 .fault = HTTPD_STATUS, .status = 429, .retry_after = 1, .times = 1});
	for (int i = 0; i < N; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(fetch_in_child(f));
	}

	for (int i = 0; i < N; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}

	assert_int_equal(httpd_hits(f->server, "/file"), 2);
	assert_int_equal(httpd_sent(f->server, "/file"), BODY);
}

struct thread_job {
	struct fixture *f;
	int status;
	struct fetch_stats stats;
};

static void *fetch_in_thread(void *user)
{
	struct thread_job *j = user;
	AUTO_ARENA struct arena a = {0};
	struct store *store;
	struct err e = {0};
	struct log log = {.level = LOG_QUIET, .fd = j->f->log_fd};
	struct run run = {.log = &log, .cancel_fd = -1};
	struct fetch_source s = {.name = "file.bin", .sha256 = body_sha};

	strlist_add(&s.urls, &a, httpd_url(j->f->server, "/file"));
	j->status = -1;
	if (store_open(path_join(&a, j->f->dir, "store"), &run, &store, &e) != 0)
		return NULL;
	j->status = fetch_all(&(struct fetcher){store, &j->f->o, &run, &a}, &s, 1, &j->stats, &e);
	store_close(store);
	return NULL;
}

static void two_threads_download_once(void **state)
{
	struct fixture *f = *state;
	pthread_t t[2];
	struct thread_job jobs[2] = {{.f = f}, {.f = f}};

	serve(f, (struct httpd_page){0});
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, fetch_in_thread, &jobs[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(jobs[0].status, 0);
	assert_int_equal(jobs[1].status, 0);
	assert_int_equal(jobs[0].stats.downloaded + jobs[1].stats.downloaded, 1);
	assert_int_equal(httpd_hits(f->server, "/file"), 1);
}

static void progress_is_reported(void **state)
{
	struct fixture *f = *state;

	serve(f, (struct httpd_page){0});
	get_ok(f);
	assert_contains(log_text(f), "downloading 'file.bin' (size unknown)");
	assert_contains(log_text(f), path_join(&f->a, f->dir, "store"));
	assert_contains(log_text(f), "downloaded ");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(downloads_into_the_store),
		T(second_time_comes_from_the_store),
		T(other_name_of_the_same_bytes_is_found),
		T(no_source_is_fine),
		T(several_files_at_once),
		T(same_file_twice_is_downloaded_once),
		T(next_place_is_tried),
		T(wrong_place_then_right_place_warns),
		T(a_file_of_known_size_is_cut_there),
		T(refused_connection_names_every_place),
		T(an_unreachable_host_is_asked_for_one_file),
		T(no_place_at_all),
		T(file_url_is_copied),
		T(absolute_path_is_copied),
		T(wrong_local_file_stays_where_it_is),
		T(file_on_another_host_is_refused),
		T(directory_and_fifo_are_no_files),
		T(mirror_directory_by_digest_comes_first),
		T(mirror_directory_by_name),
		T(mirror_url_comes_first_with_the_name_escaped),
		T(mirror_without_the_file_is_passed_over),
		T(offline_takes_a_mirror_directory),
		T(offline_asks_no_server),
		T(names_that_are_no_file_names_are_refused),
		T(digests_that_are_none_are_refused),
		T(one_failure_does_not_stop_the_others),
		T(every_failure_is_told),
		T(gone_is_what_every_place_says),
		T(cancelled_before_the_start),
		T(cancel_stops_at_once_and_keeps_the_partial),
		T(full_disk_is_a_system_error_with_path_and_hint),
		T(two_processes_download_once),
		T(two_threads_download_once),
		T(progress_is_reported),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
