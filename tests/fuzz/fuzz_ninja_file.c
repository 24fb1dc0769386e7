/* Any bytes as a build.ninja, as they are and with the end of the last line that ninja wants:
 * what comes out is stable, and has the statements that were there; and as a build's log. */
#include <string.h>

#include "core/ninja/ninja.h"
#include "core/ninja/ninja_parts.h"
#include "fuzz.h"
#include "step/compile/build_parts.h"

static struct ninja_weight judge(const char *output, void *user)
{
	(void)user;
	return (struct ninja_weight){.heavy = strlen(output) % 3 == 0,
				     .cost = (double)(output[0] % 7)};
}

static size_t edges(const char *text, size_t len, struct arena *a)
{
	struct ninja_edge *list;
	size_t count;

	ninja_build_parse(text, len, a, &list, &count);
	return count;
}

static void try_log(const char *text, size_t len, struct arena *a)
{
	struct build_log l;
	char *copy = arena_strndup(a, text, len);

	build_log_read(copy, strlen(copy), a, &l);
	fail_unless(l.error && strlen(l.error) <= 1100 && (!l.unit || *l.unit) &&
		    !(l.killed && strchr(l.killed, '\n')));
}

static double seconds(const char *output, void *user)
{
	(void)user;
	return (double)(strlen(output) % 5);
}

/* Shares are disjoint and together they are all. */
static void try_share(const char *text, size_t len, struct arena *a)
{
	struct ninja_share s;
	struct err e = {0};
	size_t sum = 0;

	for (unsigned i = 1; i <= 3; i++) {
		const struct ninja_share_options o = {.index = i, .count = 3, .seconds = seconds};
		if (ninja_share(text, len, "fuzz", &o, a, &s, &e) < 0) {
			fail_unless(e.kind == ERR_INTEGRITY && i == 1);
			return;
		}

		sum += s.outputs.count;
	}

	fail_unless(sum == s.units);
}

static void try_text(const char *text, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf once = {0};
	AUTO_BUF struct buf twice = {0};
	const struct ninja_options o = {.compile = 3, .heavy = 2, .link = 1, .weigh = judge};
	struct ninja_counts c;
	struct err e = {0};

	try_share(text, size, &a);
	if (ninja_text(text, size, "fuzz", &o, &a, &once, &c, &e) != 0) {
		fail_unless(e.kind == ERR_INTEGRITY && e.msg[0] && once.len == 0);
		return;
	}

	(void)buf_cstr(&once);
	fail_unless(ninja_text(once.data, once.len, "fuzz", &o, &a, &twice, &c, &e) == 0);
	fail_unless(!c.changed && twice.len == once.len &&
		    memcmp(twice.data, once.data, once.len) == 0);
	/* What stands between ptbuild's own marks is made anew. */
	fail_unless(memmem(text, size, NINJA_HEAD_BEGIN, strlen(NINJA_HEAD_BEGIN)) ||
		    edges(once.data, once.len, &a) == edges(text, size, &a));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf ended = {0};
	const char *text = (const char *)data;

	try_log(text, size, &a);
	try_text(text, size);
	buf_add(&ended, text, size);
	buf_addc(&ended, '\n');
	try_text(ended.data, ended.len);
	return 0;
}
