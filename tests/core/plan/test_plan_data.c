/* Plans of the real tables, as text that a reviewer can read: each tests/data/plan/NAME.profile in
 * gives NAME.expect out. With PTBUILD_WRITE_EXPECT=1 the expectations are written instead of
 * compared; the difference is then for a person to read. */
#include "tables_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/sys/fs.h"
#include "core/plan/plan.h"

#define DATA TEST_DATA_DIR "/plan"

struct asked {
	struct variant variant;
	struct plan_request request;
	const char *profile;
};

static void read_line(struct asked *q, const char *key, const char *value, struct arena *a)
{
	struct err e = {0};

	if (strcmp(key, "variant") == 0) {
		assert_ok(variant_parse(tables, value, a, &q->variant, &e), &e);
	} else if (strcmp(key, "profile") == 0) {
		q->profile = strcmp(value + strlen(value) - 5, ".yaml") == 0
				     ? path_join(a, DATA, value)
				     : value;
	} else if (strcmp(key, "package") == 0) {
		q->variant.package = value;
	} else if (strcmp(key, "python") == 0) {
		q->variant.python = value;
	} else if (strcmp(key, "cuda") == 0) {
		q->variant.cuda = value;
	} else if (strcmp(key, "release") == 0) {
		q->request.release = value;
	} else if (strcmp(key, "blas") == 0) {
		q->request.options.blas = value;
	} else if (strcmp(key, "torch") == 0) {
		q->request.torch = value;
	} else if (strcmp(key, "without") == 0) {
		strlist_add(&q->request.options.without, a, value);
	} else if (strcmp(key, "set") == 0) {
		const char *equals = strchr(value, '=');
		assert_non_null(equals);
		kvlist_set(&q->request.options.toggles, a,
			   arena_strndup(a, value, (size_t)(equals - value)), equals + 1);
	} else {
		fail_msg("unknown key '%s'", key);
	}
}

static void read_request(struct asked *q, const char *path, struct arena *a)
{
	struct strlist lines = {0};
	AUTO_FREE char *text = test_read(path);

	assert_non_null(text);
	strlist_split(&lines, a, text, "\n");
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i];
		const char *colon = strstr(line, ": ");
		if (*line == '#')
			continue;
		assert_non_null(colon);
		read_line(q, arena_strndup(a, line, (size_t)(colon - line)), colon + 2, a);
	}

	struct err e = {0};
	if (q->profile)
		assert_ok(profile_load(tables, q->profile, a, &q->variant.profile, &e), &e);
	q->request.variant = &q->variant;
}

/* One line a value: where it is from, and whether CMakeCache.txt must have it. */
static void write_setting(struct buf *out, const struct setting *s, bool checked)
{
	bool built_in = strcmp(s->file, SETTING_BUILT_IN) == 0;

	buf_printf(out, "  %s=%s", s->name, s->value);
	if (!built_in || checked)
		buf_printf(out, "  [%s%s%s]", built_in ? "" : path_base(s->file),
			   !built_in && checked ? ", " : "", checked ? "checked" : "");
	buf_addc(out, '\n');
}

static void write_settings(struct buf *out, const struct plan *p)
{
	buf_addstr(out, "environment:\n");
	for (size_t i = 0; i < p->env.count; i++)
		write_setting(out, &p->env.items[i],
			      settings_get(&p->cmake, p->env.items[i].name) != NULL);
	if (p->cache.count)
		buf_addstr(out, "generated cache entries:\n");
	for (size_t i = 0; i < p->cache.count; i++)
		write_setting(out, &p->cache.items[i],
			      settings_get(&p->cmake, p->cache.items[i].name) != NULL);
	for (size_t i = 0; i < p->cmake.count; i++)
		if (!settings_get(&p->env, p->cmake.items[i].name) &&
		    !settings_get(&p->cache, p->cmake.items[i].name))
			buf_printf(out, "checked besides: %s=%s\n", p->cmake.items[i].name,
				   p->cmake.items[i].value);
}

static void write_plan(struct buf *out, const struct plan *p, struct arena *a)
{
	buf_printf(out, "variant: %s\nversion: %s\nplatform: %s\n", p->variant,
		   plan_full_version(p, a), p->platform);
	if (p->depends.count)
		buf_printf(out, "depends: %s\n", strlist_join(&p->depends, a, " "));
	write_settings(out, p);
	if (p->notes.count)
		buf_addstr(out, "notes:\n");
	for (size_t i = 0; i < p->notes.count; i++)
		buf_printf(out, "  - %s\n", p->notes.items[i]);
}

static const char *strip_dir(const char *text, struct arena *a)
{
	AUTO_BUF struct buf b = {0};

	for (const char *at; (at = strstr(text, DATA "/")); text = at + strlen(DATA "/"))
		buf_add(&b, text, (size_t)(at - text));
	buf_addstr(&b, text);
	return arena_strdup(a, buf_cstr(&b));
}

static void one(const char *name)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf got = {0};
	struct asked q = {0};
	struct err e = {0};
	const struct plan *p = NULL;
	const char *expect = arena_printf(&a, "%s/%.*s.expect", DATA,
					  (int)(strlen(name) - strlen(".profile")), name);

	read_request(&q, path_join(&a, DATA, name), &a);
	if (plan_resolve(tables, &q.request, &a, &p, &e) == 0)
		write_plan(&got, p, &a);
	else
		buf_printf(&got, "exit %d: %s\nhint: %s\n", e.kind, strip_dir(e.msg, &a), e.hint);
	if (getenv("PTBUILD_WRITE_EXPECT")) {
		test_write(expect, buf_cstr(&got));
		return;
	}

	AUTO_FREE char *want = test_read(expect);
	if (!want)
		fail_msg("%s is missing", expect);
	if (strcmp(want, buf_cstr(&got)) != 0)
		fail_msg("%s: the plan is now\n%s", name, buf_cstr(&got));
}

static void plans_are_as_expected(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	struct err e = {0};
	size_t count = 0;
	assert_ok(fs_list(TRUSTED, DATA, &a, &names, &e), &e);
	for (size_t i = 0; i < names.count; i++)
		if (path_has_suffix(names.items[i], ".profile")) {
			one(names.items[i]);
			count++;
		}
	assert_true(count >= 20);
}

static void every_expectation_has_its_profile(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	struct err e = {0};
	assert_ok(fs_list(TRUSTED, DATA, &a, &names, &e), &e);
	for (size_t i = 0; i < names.count; i++)
		if (path_has_suffix(names.items[i], ".expect")) {
			size_t stem = strlen(names.items[i]) - strlen(".expect");
			assert_true(
				strlist_contains(&names, arena_printf(&a, "%.*s.profile", (int)stem,
								      names.items[i])));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans_are_as_expected),
		cmocka_unit_test(every_expectation_has_its_profile),
	};

	return cmocka_run_group_tests_name("plan_data", tests, load, unload);
}
