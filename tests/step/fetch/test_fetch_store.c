#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "httpd.h"
#include "step/fetch/fetch_place.h"

#define KEY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIR "/cache/objects/pyenv/" KEY "/"
#define BODY "the bytes of a wheel"

/* A store and, on a server, an object of two files with
 * its list. Tests change the pages before they start it. */
struct world {
	struct arena arena;
	struct err err;
	struct store *store;
	struct httpd *server;
	struct httpd_page pages[3];
};

static const char *list_of(struct world *w, const char *name, const char *body, size_t size)
{
	char hex[DIGEST_HEX_LEN + 1];

	digest_data(body, strlen(body), hex);
	return arena_printf(&w->arena,
			    "{\"format\": 1, \"kind\": \"pyenv\", \"key\": \"" KEY
			    "\", \"files\": [{\"path\": \"%s\", \"size\": %zu, "
			    "\"sha256\": \"%s\"}]}",
			    name, size, hex);
}

static void set_list(struct world *w, const char *text)
{
	w->pages[0].body = text;
	w->pages[0].len = strlen(text);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	test_dir();
	w->pages[0].path = DIR ".manifest.json";
	w->pages[1] =
		(struct httpd_page){.path = DIR "a%2Bb.whl", .body = BODY, .len = strlen(BODY)};
	set_list(w, list_of(w, "a+b.whl", BODY, strlen(BODY)));
	*state = w;
	return store_open(test_path("store"), test_run(), &w->store, &w->err);
}

static int teardown(void **state)
{
	struct world *w = *state;

	store_close(w->store);
	httpd_stop(w->server);
	arena_release(&w->arena);
	free(w);
	return test_teardown(state);
}

static void start(struct world *w)
{
	w->server = httpd_start(w->pages, 2);
	assert_ok(fetch_store_set(w->store, httpd_url(w->server, "/cache/"), &w->err), &w->err);
}

static const char *pull(struct world *w)
{
	const char *path = "x";

	assert_ok(store_pull(w->store, STORE_PYENV, KEY, test_run(), &w->arena, &path, &w->err),
		  &w->err);
	return path;
}

/* Nothing was taken, nothing is left, and the server is not asked again. */
static void assert_left_alone(struct world *w)
{
	struct strlist names = {0};

	assert_null(pull(w));
	unsigned hits = httpd_hits(w->server, DIR ".manifest.json");
	assert_null(pull(w));
	assert_int_equal(httpd_hits(w->server, DIR ".manifest.json"), hits);
	assert_ok(fs_list(TRUSTED, test_path("store/tmp"), &w->arena, &names, &w->err), &w->err);
	assert_ok(fs_list(TRUSTED, test_path("store/objects"), &w->arena, &names, &w->err),
		  &w->err);
	assert_int_equal(names.count, 0);
}

static void an_object_is_taken_whole(void **state)
{
	struct world *w = *state;
	const char *found;

	start(w);
	const char *path = pull(w);
	assert_non_null(path);
	char *text = test_read(arena_printf(&w->arena, "%s/a+b.whl", path));
	assert_string_equal(text, BODY);
	free(text);
	assert_ok(store_find(w->store, STORE_PYENV, KEY, &w->arena, &found, &w->err), &w->err);
	assert_string_equal(found, path);
	const struct store_object o = {.kind = STORE_PYENV, .key = KEY, .path = path};
	assert_ok(store_verify(&o, test_run(), &w->err), &w->err);
}

static void without_a_remote_there_is_none(void **state)
{
	assert_null(pull(*state));
}

static void what_is_not_there_is_asked_for_again(void **state)
{
	static const int absent[] = {404, 403, 401, 410};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(absent); i++) {
		w->pages[0].fault = HTTPD_STATUS;
		w->pages[0].status = absent[i];
		start(w);
		assert_null(pull(w));
		assert_null(pull(w));
		assert_int_equal(httpd_hits(w->server, DIR ".manifest.json"), 2);
		httpd_stop(w->server);
		w->server = NULL;
	}
}

static void other_bytes_are_not_taken(void **state)
{
	struct world *w = *state;

	w->pages[1].body = "the bytes of a wheeL";
	start(w);
	assert_left_alone(w);
}

static void a_file_that_is_listed_and_not_there(void **state)
{
	struct world *w = *state;

	w->pages[1].path = "/elsewhere";
	start(w);
	assert_left_alone(w);
}

static void lists_that_are_none(void **state)
{
	struct world *w = *state;
	const char *const bad[] = {
		"",
		"{",
		"<html>not found</html>",
		list_of(w, "../../out", BODY, strlen(BODY)),
		list_of(w, "/etc/passwd", BODY, strlen(BODY)),
		list_of(w, ".manifest.json", BODY, strlen(BODY)),
		list_of(w, "a+b.whl", BODY, 3),
		"{\"format\": 1, \"kind\": \"pyenv\", \"key\": \"" KEY "\", \"files\": []}",
		"{\"format\": 2, \"kind\": \"pyenv\", \"key\": \"" KEY "\", \"files\": [{}]}",
		"{\"format\": 1, \"kind\": \"source\", \"key\": \"" KEY "\", \"files\": [{}]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		set_list(w, bad[i]);
		start(w);
		assert_left_alone(w);
		store_close(w->store);
		httpd_stop(w->server);
		w->server = NULL;
		assert_ok(store_open(test_path("store"), test_run(), &w->store, &w->err), &w->err);
	}

	assert_false(fs_exists(TRUSTED, test_path("out")));
}

static void servers_that_misbehave(void **state)
{
	static const enum httpd_fault faults[] = {
		HTTPD_TRUNCATE,        HTTPD_SHORT_LENGTH, HTTPD_HUGE_LENGTH,
		HTTPD_OVERFLOW_LENGTH, HTTPD_LOOP,         HTTPD_GARBAGE,
		HTTPD_HANG_UP,         HTTPD_ALWAYS_PART,  HTTPD_STATUS};
	struct world *w = *state;

	for (size_t i = 0; i < 2 * ARRAY_LEN(faults); i++) {
		struct httpd_page *p = &w->pages[i % 2];
		p->fault = faults[i / 2];
		p->cut = 5;
		p->status = 500;
		start(w);
		assert_left_alone(w);
		p->fault = HTTPD_OK;
		store_close(w->store);
		httpd_stop(w->server);
		w->server = NULL;
		assert_ok(store_open(test_path("store"), test_run(), &w->store, &w->err), &w->err);
	}
}

static void addresses_that_are_none(void **state)
{
	static const char *const bad[] = {"",
					  "/dir",
					  "file:///dir",
					  "ftp://host/",
					  "http://",
					  "http://host/?x=1",
					  "https://host/#part"};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_err(fetch_store_set(w->store, bad[i], &w->err), &w->err, ERR_USAGE,
			   "--store-url");
	assert_err(fetch_store_set(w->store, "ftp://user:secret@host/", &w->err), &w->err,
		   ERR_USAGE, "host");
	assert_not_contains(w->err.msg, "secret");
	assert_null(pull(w));
}

static void a_dead_server_is_no_failure(void **state)
{
	struct world *w = *state;

	assert_ok(fetch_store_set(w->store, "http://127.0.0.1:1/", &w->err), &w->err);
	assert_null(pull(w));
	assert_null(pull(w));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_object_is_taken_whole),
		T(without_a_remote_there_is_none),
		T(what_is_not_there_is_asked_for_again),
		T(other_bytes_are_not_taken),
		T(a_file_that_is_listed_and_not_there),
		T(lists_that_are_none),
		T(servers_that_misbehave),
		T(addresses_that_are_none),
		T(a_dead_server_is_no_failure),
	};

	return cmocka_run_group_tests_name("fetch_store", tests, NULL, NULL);
}
