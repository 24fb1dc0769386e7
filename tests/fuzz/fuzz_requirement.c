/* Any bytes as a requirement: what is taken is taken
 * again in its parts, and its versions are in one order. */
#include <string.h>

#include "core/wheel/requirement.h"
#include "fuzz.h"

static void evaluate(const struct requirement *r, struct arena *a)
{
	static const char *const versions[] = {"2.6.0", "2.6.0+cpu", "3rc1", "1!0"};
	const struct marker_env known = {.python = "3.13", .platform = "x86_64-linux", .extra = ""},
				none = {0};
	struct err e = {0};

	fail_unless(specifier_check(r->specifier, a, &e) == 0 &&
		    marker_check(r->marker, a, &e) == 0);
	for (size_t i = 0; i < ARRAY_LEN(versions); i++)
		(void)specifier_takes(r->specifier, versions[i], a);
	const char *pin = specifier_pin(r->specifier, a);
	fail_unless(specifier_takes_some(r->specifier, a) ||
		    !specifier_takes(r->specifier, "0", a));
	fail_unless(!pin || strncmp(r->specifier, "===", 3) == 0 ||
		    specifier_takes(r->specifier, pin, a));
	/* What is not known can only make an answer less sure. */
	const enum holds sure = marker_eval(r->marker, &known, a),
			 unsure = marker_eval(r->marker, &none, a);
	fail_unless(unsure == HOLDS_PERHAPS || unsure == sure);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	const char *text = arena_strndup(&a, (const char *)data, size);
	struct requirement r = {.line = NULL}, again;
	struct err e = {0};
	const int order = pep440_cmp(text, "1", &a), reverse = pep440_cmp("1", text, &a);

	fail_unless((order > 0) == (reverse < 0) && (order < 0) == (reverse > 0));
	if (requirement_parse(text, &a, &r, &e) < 0) {
		fail_unless(e.kind == ERR_INTEGRITY && e.msg[0] && !r.line);
		return 0;
	}

	fail_unless(requirement_parse(r.line, &a, &again, &e) == 0 &&
		    strcmp(again.name, r.name) == 0);
	fail_unless(strcmp(again.marker, r.marker) == 0 &&
		    strcmp(again.specifier, r.specifier) == 0);
	evaluate(&r, &a);
	return 0;
}
