/* What the tests of fetching share: a store, a server with one page, and bytes to serve. */
#pragma once
#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "cache/store.h"
#include "httpd.h"
#include "step/fetch/fetch.h"

enum { BODY = 3 << 20, HALF = BODY / 2 };

static char body[BODY];
static char body_sha[65];
static char other[1000]; /* what a wrong place serves */
static char other_sha[65];

struct fixture {
	struct arena a;
	struct store *store;
	struct httpd *server;
	struct fetch_options o;
	struct fetch_stats stats;
	struct err e;
	const char *dir;
	struct run run;
	struct log log;
	int log_fd;
};

static inline int group_setup(void **state)
{
	(void)state;
	uint32_t x = 12345;
	for (size_t i = 0; i < BODY; i++) {
		x = x * 1664525U + 1013904223U;
		body[i] = (char)(x >> 24);
	}
	memset(other, 'x', sizeof(other));
	digest_data(body, BODY, body_sha);
	digest_data(other, sizeof(other), other_sha);
	/* The server is on this machine: no proxy of the environment may stand between. */
	setenv("no_proxy", "*", 1);
	return 0;
}

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->dir = arena_strdup(&f->a, test_dir());
	f->o = (struct fetch_options){.retries = 2, .backoff_ms = 1};
	f->log_fd = open(path_join(&f->a, f->dir, "log"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	f->log = (struct log){.level = LOG_NORMAL, .fd = f->log_fd};
	f->run = (struct run){.log = &f->log, .cancel_fd = -1};
	assert_ok(store_open(path_join(&f->a, f->dir, "store"), &f->run, &f->store, &f->e), &f->e);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	httpd_stop(f->server);
	store_close(f->store);
	close(f->log_fd);
	arena_release(&f->a);
	free(f);
	return test_teardown(state);
}

/* One page "/file" with the body and this fault. Only what is to stall
 * is given up after a second: on a busy machine anything may take one. */
static inline void serve(struct fixture *f, struct httpd_page page)
{
	page.path = "/file";
	if (!page.body) {
		page.body = body;
		page.len = BODY;
	}
	if (page.fault == HTTPD_STALL && !f->o.stall_seconds)
		f->o.stall_seconds = 1;
	f->server = httpd_start(&page, 1);
}

static inline struct fetch_source source(struct fixture *f, const char *name, const char *sha,
					 const char *url)
{
	struct fetch_source s = {.name = name, .sha256 = sha};
	if (url)
		strlist_add(&s.urls, &f->a, url);
	return s;
}

static inline int get(struct fixture *f, struct fetch_source *s, size_t count)
{
	err_clear(&f->e);
	return fetch_all(&(struct fetcher){f->store, &f->o, &f->run, &f->a}, s, count, &f->stats,
			 &f->e);
}

static inline struct fetch_source file_source(struct fixture *f)
{
	return source(f, "file.bin", body_sha, f->server ? httpd_url(f->server, "/file") : NULL);
}

static inline void assert_has_body(const struct fetch_source *s)
{
	struct err e = {0};
	char hex[65];
	assert_non_null(s->path);
	assert_ok(digest_file(s->path, hex, &e), &e);
	assert_string_equal(hex, body_sha);
}

static inline void get_ok(struct fixture *f)
{
	struct fetch_source s = file_source(f);
	assert_ok(get(f, &s, 1), &f->e);
	assert_has_body(&s);
	assert_int_equal(f->stats.downloaded, 1);
}

static inline const char *partial(struct fixture *f)
{
	return arena_printf(&f->a, "%s/store/partial/%s", f->dir, body_sha);
}

static inline void put_partial(struct fixture *f, const char *data, size_t len)
{
	test_write_bytes(partial(f), data, len);
}

static inline const char *log_text(struct fixture *f)
{
	char *text = test_read(path_join(&f->a, f->dir, "log"));
	const char *out = arena_strdup(&f->a, text);
	free(text);
	return out;
}
