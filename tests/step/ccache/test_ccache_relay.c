#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/run.h"
#include "base/sys/fs.h"
#include "step/ccache/ccache_relay.h"

#define KEY "0123456789abcdefghijklmnopqrstuv0"
#define GET "*2\r\n$3\r\nGET\r\n$40\r\nccache:" KEY "\r\n"
#define SET "*3\r\n$3\r\nSET\r\n$40\r\nccache:" KEY "\r\n$5\r\nbytes\r\n"

static int connect_to(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* What comes back for these bytes, as far as `want` goes. */
static void asks(int fd, const char *bytes, const char *want)
{
	char got[512] = "";

	assert_int_equal(write(fd, bytes, strlen(bytes)), strlen(bytes));
	for (size_t have = 0; have < strlen(want);) {
		ssize_t n = read(fd, got + have, strlen(want) - have);
		assert_true(n > 0);
		have += (size_t)n;
	}

	assert_string_equal(got, want);
}

static struct ccache_relay *start(struct arena *a, const char *url, const char *lower)
{
	struct ccache_relay_request q = {.url = url};
	struct ccache_relay *r;
	struct err e = {0};
	static struct ccache_place place;

	place = (struct ccache_place){.dir = lower, .plain = true};
	if (lower)
		q.shared = (struct ccache_shared){.places = &place, .count = 1};
	strlist_add(&q.prefixes, a, "default/pytorch");
	test_write(test_path("dir/.keep"), "");
	q.dir = arena_strdup(a, test_path("dir"));
	assert_ok(ccache_relay_start(&q, test_run(), &r, &e), &e);
	return r;
}

static void only_what_ccache_needs(void **state)
{
	AUTO_ARENA struct arena a = {0};
	static const char *const no[] = {
		"*1\r\n$8\r\nFLUSHALL\r\n", "*2\r\n$4\r\nKEYS\r\n$1\r\n*\r\n",
		"*2\r\n$3\r\nGET\r\n$12\r\nother:secret\r\n",
		"*4\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n$3\r\ndir\r\n$1\r\n/\r\n"};

	(void)state;
	test_dir();
	struct ccache_relay *r = start(&a, NULL, NULL);
	int fd = connect_to(test_path("dir/s"));
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		asks(fd, no[i], "-ERR only ccache is served here\r\n");
	asks(fd, "*1\r\n$4\r\nPING\r\n", "+PONG\r\n");
	asks(fd, GET, "$-1\r\n");
	asks(fd, SET, "+OK\r\n");
	close(fd);
	fd = connect_to(test_path("dir/s"));
	assert_int_equal(write(fd, "FLUSHALL\r\n", 10), 10);
	char byte;
	assert_int_equal(read(fd, &byte, 1), 0); /* no protocol: hung up */
	close(fd);
	struct ccache_relay_stats stats;
	ccache_relay_stop(r, &stats);
	assert_int_equal(stats.asked, 1);
	assert_int_equal(stats.failures, 0);
}

static void a_lower_cache_answers(void **state)
{
	AUTO_ARENA struct arena a = {0};
	static const char *const places[] = {"lower/0/1/23456789abcdefghijklmnopqrstuv0R",
					     "lower/0/1/2/3456789abcdefghijklmnopqrstuv0M",
					     "lower/0/123456789abcdefghijklmnopqrstuv0R"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		test_dir();
		test_write(test_path("%s", places[i]), "result");
		const char *lower = arena_strdup(&a, test_path("lower"));
		struct ccache_relay *r = start(&a, NULL, lower);
		int fd = connect_to(test_path("dir/s"));
		asks(fd, GET GET, "$6\r\nresult\r\n$6\r\nresult\r\n");
		close(fd);
		struct ccache_relay_stats stats;
		ccache_relay_stop(r, &stats);
		assert_int_equal(stats.lower, 2);
	}
}

/* Each of these manifests is better than those after it. */
static void the_nearest_manifest_is_taken(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct ccache_relay *r;
	struct err e = {0};
	static const char *const tags[] = {"-scope", "-group", ""};
	static const char *const wants[] = {"$5\r\nman\1a\r\n", "$5\r\nman\1b\r\n",
					    "$5\r\nman\1c\r\n"};

	(void)state;
	test_dir();
	struct ccache_place place = {.dir = arena_strdup(&a, test_path("place"))};
	struct ccache_relay_request q = {
		.dir = arena_strdup(&a, test_path("dir")),
		.shared = {.places = &place, .count = 1, .scope = "scope", .group = "group"}};
	test_write(test_path("dir/.keep"), "");
	for (size_t i = 0; i < ARRAY_LEN(tags); i++)
		test_write(test_path("place/01/23456789abcdefghijklmnopqrstuv0%s", tags[i]),
			   arena_printf(&a, "man\1%c", (char)('a' + i)));
	assert_ok(ccache_relay_start(&q, test_run(), &r, &e), &e);
	int fd = connect_to(test_path("dir/s"));
	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		asks(fd, GET, wants[i]);
		assert_int_equal(
			unlink(test_path("place/01/23456789abcdefghijklmnopqrstuv0%s", tags[i])),
			0);
	}

	asks(fd, GET, "$-1\r\n");
	close(fd);
	ccache_relay_stop(r, NULL);
}

static void a_long_path_is_no_hindrance(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct ccache_relay *r;

	(void)state;
	test_dir();
	char name[101];
	memset(name, 'x', 100);
	name[100] = '\0';
	const char *dir = arena_strdup(&a, test_path("%s", name));
	assert_ok(fs_mkdirs(TRUSTED, dir, &e), &e);
	struct ccache_relay_request q = {.dir = dir};
	assert_ok(ccache_relay_start(&q, test_run(), &r, &e), &e);
	assert_int_equal(symlink(dir, test_path("short")), 0);
	int fd = connect_to(test_path("short/s"));
	asks(fd, GET, "$-1\r\n");
	close(fd);
	ccache_relay_stop(r, NULL);
}

/* A command of a value of 4 MiB, of which `sent` bytes come. */
static int half_said(const char *path, size_t sent)
{
	static char value[1 << 20];
	int fd = connect_to(path);
	static const char head[] = "*3\r\n$3\r\nSET\r\n$40\r\nccache:" KEY "\r\n$4194304\r\n";

	assert_int_equal(write(fd, head, sizeof(head) - 1), sizeof(head) - 1);
	for (size_t done = 0; done < sent;) {
		ssize_t n =
			send(fd, value, sent - done < sizeof(value) ? sent - done : sizeof(value),
			     MSG_NOSIGNAL);
		if (n <= 0)
			break;
		done += (size_t)n;
	}

	return fd;
}

static bool is_hung_up(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);
	return n == 0 || (n < 0 && errno != EAGAIN);
}

/* Each alone is within what a value may be. */
static void half_said_commands_are_limited_together(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct ccache_relay *r;
	struct err e = {0};
	int fds[8];
	size_t open = 0;

	(void)state;
	test_dir();
	test_write(test_path("dir/.keep"), "");
	struct ccache_relay_request q = {.dir = arena_strdup(&a, test_path("dir")),
					 .max_held = 3 << 20};
	assert_ok(ccache_relay_start(&q, test_run(), &r, &e), &e);
	const char *path = arena_strdup(&a, test_path("dir/s"));
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = half_said(path, 1 << 20);
	for (int turn = 0; turn < 6000; turn++, usleep(10000)) {
		open = 0;
		for (size_t i = 0; i < ARRAY_LEN(fds); i++)
			open += !is_hung_up(fds[i]);
		if (open <= 3)
			break;
	}

	assert_in_range(open, 1, 3);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	/* It serves again as soon as it has seen that they are gone. */
	char byte;
	for (int fd = -1, turn = 0; fd < 0; usleep(10000)) {
		assert_in_range(turn++, 0, 6000);
		fd = connect_to(path);
		(void)!send(fd, GET, strlen(GET), MSG_NOSIGNAL);
		bool answers = recv(fd, &byte, 1, 0) == 1 && byte == '$';
		close(fd);
		fd = answers ? 0 : -1;
	}

	ccache_relay_stop(r, NULL);
}

static struct ccache_relay *start_with(struct arena *a, uint64_t max_held, const char **ret_path)
{
	struct ccache_relay *r;
	struct err e = {0};

	test_dir();
	test_write(test_path("dir/.keep"), "");
	const struct ccache_relay_request q = {.dir = arena_strdup(a, test_path("dir")),
					       .max_held = max_held};
	assert_ok(ccache_relay_start(&q, test_run(), &r, &e), &e);
	*ret_path = arena_strdup(a, test_path("dir/s"));
	return r;
}

/* A byte makes room for many: the room counts. */
static void memory_counts_and_not_what_is_in_it(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const char *path;
	struct ccache_relay *r = start_with(&a, 1 << 20, &path);
	int fds[32];
	size_t open = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = connect_to(path);
		assert_int_equal(write(fds[i], "*", 1), 1);
	}

	for (int turn = 0; turn < 6000; turn++, usleep(10000)) {
		open = 0;
		for (size_t i = 0; i < ARRAY_LEN(fds); i++)
			open += !is_hung_up(fds[i]);
		if (open <= 16)
			break;
	}

	assert_in_range(open, 1, 16);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	ccache_relay_stop(r, NULL);
}

/* It waits for a free descriptor, and does not spin. */
static void without_a_descriptor_it_waits(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const char *path;
	struct ccache_relay *r = start_with(&a, 0, &path);
	struct rlimit was, none;
	struct rusage before, after;

	(void)state;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	getrusage(RUSAGE_SELF, &before);
	const int connected = connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	usleep(500000);
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(connected, 0);
	const double spent = (double)(after.ru_utime.tv_sec + after.ru_stime.tv_sec -
				      before.ru_utime.tv_sec - before.ru_stime.tv_sec) +
			     (double)(after.ru_utime.tv_usec + after.ru_stime.tv_usec -
				      before.ru_utime.tv_usec - before.ru_stime.tv_usec) /
				     1e6;
	assert_true(spent < 0.1);
	asks(fd, GET, "$-1\r\n");
	close(fd);
	ccache_relay_stop(r, NULL);
}

/* A server that takes connections and never says a word. */
static void stopping_does_not_wait_for_a_silent_server(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	(void)state;
	test_dir();
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", test_path("silent"));
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 5), 0);
	const char *url = arena_printf(&a, "redis+unix:%s", test_path("silent"));
	struct ccache_relay *r = start(&a, url, NULL);
	int fd = connect_to(test_path("dir/s"));
	assert_int_equal(write(fd, GET, strlen(GET)), strlen(GET));
	usleep(100000);
	double begun = log_seconds();
	ccache_relay_stop(r, NULL);
	assert_true(log_seconds() - begun < HANG_S);
	close(fd);
	close(listener);
}

/* A redis server that gives one connection after the other these bytes, whatever it is asked. */
struct stand_in {
	int listener;
	const char *says;
	size_t len;
	pthread_t thread;
};

static void *stand_in_thread(void *user)
{
	struct stand_in *s = user;
	char asked[512];

	for (int fd; (fd = accept(s->listener, NULL, NULL)) >= 0; close(fd)) {
		while (read(fd, asked, sizeof(asked)) > 0)
			(void)!send(fd, s->says, s->len, MSG_NOSIGNAL);
	}

	return NULL;
}

static void start_stand_in(struct stand_in *s, const char *says, size_t len)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	*s = (struct stand_in){
		.listener = socket(AF_UNIX, SOCK_STREAM, 0), .says = says, .len = len};
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", test_path("redis"));
	assert_int_equal(bind(s->listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(s->listener, 5), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, stand_in_thread, s), 0);
}

/* Whatever is not a string or null is a failure of the server, which the build does not see. */
static void what_a_server_may_answer(void **state)
{
#define SAYS(text) text, sizeof(text) - 1
	static const struct {
		const char *says;
		size_t len;
		const char *want;
		unsigned hits, failures;
	} table[] = {
		{SAYS("$0\r\n\r\n"), "$0\r\n\r\n", 1, 0},
		{SAYS("$6\r\n\r\n\0*$\n\r\n"), "$6\r\n\r\n", 1, 0},
		{SAYS("$-1\r\n"), "$-1\r\n", 0, 0},
		{SAYS("+OK\r\n"), "$-1\r\n", 0, 1},
		{SAYS(":1\r\n"), "$-1\r\n", 0, 1},
		{SAYS("-ERR no\r\n"), "$-1\r\n", 0, 1},
		{SAYS("$-2\r\n"), "$-1\r\n", 0, 1},
		{SAYS("$1x\r\n"), "$-1\r\n", 0, 1},
		{SAYS("HTTP/1.1 400 Bad Request\r\n"), "$-1\r\n", 0, 1},
		{SAYS("$5\r\nbytes\r\n$5\r\nbytes\r\n"), "$-1\r\n", 0, 1},
		{SAYS("*1\r\n$5\r\nbytes\r\n"), "$-1\r\n", 0, 1},
		{SAYS("*2000000000\r\n:1\r\n"), "$-1\r\n", 0, 1},
		{SAYS("$99999999999999999999\r\n"), "$-1\r\n", 0, 1},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		AUTO_ARENA struct arena a = {0};
		struct ccache_relay_stats stats;
		struct stand_in s;
		test_dir();
		start_stand_in(&s, table[i].says, table[i].len);
		struct ccache_relay *r =
			start(&a, arena_printf(&a, "redis+unix:%s", test_path("redis")), NULL);
		int fd = connect_to(test_path("dir/s"));
		asks(fd, GET, table[i].want);
		close(fd);
		ccache_relay_stop(r, &stats);
		assert_int_equal(stats.hits, table[i].hits);
		assert_int_equal(stats.failures, table[i].failures);
		shutdown(s.listener, SHUT_RDWR);
		pthread_join(s.thread, NULL);
		close(s.listener);
	}
}

/* A redis server of one key, which notes what it is told. */
struct keeper {
	int listener;
	pthread_t thread;
	struct buf said;
};

static void *keeper_thread(void *user)
{
	struct keeper *k = user;
	char got[512];

	for (int fd; (fd = accept(k->listener, NULL, NULL)) >= 0; close(fd)) {
		for (ssize_t n; (n = read(fd, got, sizeof(got))) > 0;) {
			buf_add(&k->said, got, (size_t)n);
			bool asks = memmem(got, (size_t)n, "EXISTS", 6);
			const char *says = !asks                                 ? "+OK\r\n"
					   : memmem(got, (size_t)n, "/there", 6) ? ":1\r\n"
										 : ":0\r\n";
			(void)!send(fd, says, strlen(says), MSG_NOSIGNAL);
		}
	}

	return NULL;
}

static size_t occurs(const struct buf *b, const char *word)
{
	size_t n = 0;

	for (const char *p = buf_cstr((struct buf *)b); (p = strstr(p, word)); p++)
		n++;
	return n;
}

/* What the server has stays; only the group's newest manifest is replaced. */
static void entries_are_sent_once(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct keeper k = {.listener = socket(AF_UNIX, SOCK_STREAM, 0)};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct strlist names = {0};
	struct err e = {0};
	size_t sent;

	(void)state;
	test_dir();
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", test_path("redis"));
	assert_int_equal(bind(k.listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(k.listener, 5), 0);
	assert_int_equal(pthread_create(&k.thread, NULL, keeper_thread, &k), 0);
	static const char *const have[] = {"ab/there", "ab/result", "ab/manifest-0123456789abcdef",
					   "ab/gone"};
	for (size_t i = 0; i < ARRAY_LEN(have); i++) {
		if (i < 3)
			test_write(test_path("place/%s", have[i]), "bytes");
		strlist_add(&names, &a, have[i]);
	}

	const char *place = arena_strdup(&a, test_path("place"));
	struct ccache_send to = {arena_printf(&a, "redis+unix:%s", test_path("redis")),
				 "default/py-torch", place, "fedcba98765432100000", names};
	assert_ok(ccache_relay_send(&to, test_run(), &sent, &e), &e);
	assert_int_equal(sent, 2);
	assert_int_equal(occurs(&k.said, "SET\r\n"), 4);
	assert_int_equal(occurs(&k.said, "NX\r\n"), 3);
	assert_int_equal(
		occurs(&k.said,
		       "ptbuild:default/py-torch/ab/result\r\n$5\r\nbytes\r\n$2\r\nNX\r\n"),
		1);
	assert_int_equal(
		occurs(&k.said,
		       "ptbuild:default/py-torch/ab/manifest\r\n$5\r\nbytes\r\n$2\r\nNX\r\n"),
		1);
	assert_int_equal(
		occurs(&k.said, "/ab/manifest-0123456789abcdef\r\n$5\r\nbytes\r\n$2\r\nNX\r\n"), 1);
	assert_int_equal(occurs(&k.said, "*3\r\n$3\r\nSET\r\n$53\r\nptbuild:default/py-torch/ab/"
					 "manifest-fedcba9876543210\r\n$5\r\nbytes\r\n"),
			 1);
	size_t said = k.said.len;
	to.url = arena_printf(&a, "%s|read-only", to.url);
	assert_ok(ccache_relay_send(&to, test_run(), &sent, &e), &e);
	assert_int_equal(sent, 0);
	assert_int_equal(k.said.len, said);
	shutdown(k.listener, SHUT_RDWR);
	pthread_join(k.thread, NULL);
	close(k.listener);
	buf_release(&k.said);
}

static void many_at_once(void **state)
{
	AUTO_ARENA struct arena a = {0};
	int fds[64];

	(void)state;
	test_dir();
	struct ccache_relay *r = start(&a, NULL, NULL);
	const char *path = arena_strdup(&a, test_path("dir/s"));
	for (int round = 0; round < 10; round++) {
		for (size_t i = 0; i < ARRAY_LEN(fds); i++)
			fds[i] = connect_to(path);
		for (size_t i = 0; i < ARRAY_LEN(fds); i++)
			asks(fds[i], GET, "$-1\r\n");
		for (size_t i = 0; i < ARRAY_LEN(fds); i++)
			close(fds[i]);
	}

	struct ccache_relay_stats stats;
	ccache_relay_stop(r, &stats);
	assert_int_equal(stats.asked, 640);
}

static void addresses(void **state)
{
	static const char *const good[] = {"redis://host",           "redis://user:pw@host:65535/5",
					   "redis://pw@[::1]:6379",  "redis+unix:/run/redis.sock",
					   "redis://host|read-only", "http://host/|read-only",
					   "http://host/cache/",     "https://user:pw@host:8443"};
	static const char *const bad[] = {"",
					  "host",
					  "redis:host",
					  "redis://",
					  "redis://:pw@",
					  "redis://host:",
					  "redis://host:x",
					  "redis://host:0",
					  "redis://host:65536",
					  "redis://host:99999999999",
					  "http://host:65536/",
					  "redis://host/x",
					  "redis+unix:x",
					  "rediss://host",
					  "http://",
					  "http://host/?a=b",
					  "memcached://h",
					  "redis://host|readonly",
					  "redis://host|read-only|x"};
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_ok(ccache_relay_check(good[i], &e), &e);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_err(ccache_relay_check(bad[i], &e), &e, ERR_USAGE, "--ccache-remote");
}

#define T(name) cmocka_unit_test_teardown(name, test_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(only_what_ccache_needs),
		T(a_lower_cache_answers),
		T(the_nearest_manifest_is_taken),
		T(a_long_path_is_no_hindrance),
		T(half_said_commands_are_limited_together),
		T(memory_counts_and_not_what_is_in_it),
		T(without_a_descriptor_it_waits),
		T(stopping_does_not_wait_for_a_silent_server),
		T(what_a_server_may_answer),
		T(entries_are_sent_once),
		T(many_at_once),
		T(addresses),
	};

	return cmocka_run_group_tests_name("ccache_remote", tests, NULL, NULL);
}
