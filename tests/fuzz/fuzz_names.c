/* Any bytes as the name of a variant and of a profile: what is
 * understood has one spelling, and that spelling means the same. */
#include <string.h>

#include "core/variant/variant.h"
#include "fuzz.h"

static const struct tables *shipped(void)
{
	static struct arena a;
	static const struct tables *t;
	struct err e = {0};

	if (!t && tables_load(PROFILES_DIR, &a, &t, &e) < 0)
		abort();
	return t;
}

static bool same_profile(const struct profile *x, const struct profile *y)
{
	if (x->gpu != y->gpu || x->isa != y->isa || x->targets_count != y->targets_count ||
	    strcmp(x->platform, y->platform) != 0)
		return false;
	for (unsigned i = 0; i < x->targets_count; i++)
		if (x->targets[i].row != y->targets[i].row ||
		    strcmp(x->targets[i].suffix, y->targets[i].suffix) != 0 ||
		    x->targets[i].ptx != y->targets[i].ptx)
			return false;
	return true;
}

static bool same_text(const char *x, const char *y)
{
	return x == y || (x && y && strcmp(x, y) == 0);
}

static void try_variant(const struct tables *t, const char *name, struct arena *a)
{
	struct variant v = {0}, again = {0};
	struct err e = {0};

	if (variant_parse(t, name, a, &v, &e) < 0) {
		fail_unless(e.kind == ERR_CONFIG && e.msg[0] && e.hint[0] && !v.package);
		return;
	}

	fail_unless(variant_looks_like(name));
	const char *canonical = variant_name(&v, a);
	fail_unless(variant_parse(t, canonical, a, &again, &e) == 0);
	fail_unless(strcmp(variant_name(&again, a), canonical) == 0);
	fail_unless(strcmp(v.package, again.package) == 0 && strcmp(v.python, again.python) == 0 &&
		    same_text(v.cuda, again.cuda));
	fail_unless(same_profile(&v.profile, &again.profile));
}

static void try_profile(const struct tables *t, const char *name, struct arena *a)
{
	struct profile p = {0}, again = {0};
	struct err e = {0};

	if (profile_parse(t, name, a, &p, &e) < 0) {
		fail_unless(e.kind == ERR_CONFIG && e.msg[0] && e.hint[0] && !p.name);
		return;
	}

	fail_unless(profile_parse(t, p.name, a, &again, &e) == 0 &&
		    strcmp(p.name, again.name) == 0 && same_profile(&p, &again));
	fail_unless(strcmp(profile_composed_name(&p, a), p.name) == 0);
	for (const char *c = profile_label(&p, NULL, a); *c; c++)
		fail_unless((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '.');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	const char *name = arena_strndup(&a, (const char *)data, size);

	try_variant(shipped(), name, &a);
	try_profile(shipped(), name, &a);
	return 0;
}
