#include "core/plan/buildenv.h"

/* Whether another package of the release has the
 * toggle: then a profile for all three may carry it. */
static const char *other_owner(const struct buildenv_request *q, const char *name)
{
	for (size_t i = 0; i < TABLES_PACKAGES; i++) {
		const struct package_row *row = tables_package(q->release, tables_packages[i]);
		if (row && strcmp(tables_packages[i], q->package) != 0 &&
		    tables_toggle(q->tables, tables_packages[i], name, row->version))
			return tables_packages[i];
	}

	return NULL;
}

static int refuse_fixed(const struct setting *now, struct arena *a, struct err *e)
{
	err_set(e, ERR_CONFIG, "'%s' cannot be overridden: ptbuild sets it", now->name);
	if (strcmp(now->name, "BLAS") == 0)
		return err_hint(e, "choose the BLAS with --blas or in the profile");
	if (strcmp(now->name, "CFLAGS") == 0 || strcmp(now->name, "CXXFLAGS") == 0)
		return err_hint(e, "add flags with 'cflags' in a profile file");
	if (strcmp(now->name, "TORCH_CUDA_ARCH_LIST") == 0)
		return err_hint(
			e, "it follows the GPU target of the profile, for example sm80+sm90-avx2");
	return err_hint(e, "its value is from %s: %s", settings_origin(now, a), now->why);
}

/* An option that may be asked for, but whose value another choice has settled. */
static int refuse_other(const struct setting *now, const struct setting *item, struct arena *a,
			struct err *e)
{
	err_set(e, ERR_CONFIG, "'%s=%s' does not go with this plan, which needs %s", item->name,
		item->value, now->value);
	return err_hint(e, "its value is from %s (%s): %s", settings_origin(now, a), now->rule,
			now->why);
}

/* The user's file has lines, the command line has none. */
static int at_place(const struct setting *item, struct arena *a, struct err *e)
{
	return item->line ? err_wrap(e, "%s", settings_origin(item, a)) : -1;
}

/* A name without a row, that the ISA or the release
 * nevertheless gives a value: any printable one will do. */
static int check_free_value(const struct setting *item, struct err *e)
{
	bool good = *item->value;

	for (const char *c = item->value; *c; c++)
		good = good && (unsigned char)*c >= ' ' && *c != 0x7f;
	if (good)
		return 0;
	err_set(e, ERR_CONFIG, "empty or unprintable value for '%s'", item->name);
	return err_hint(e, "write %s=VALUE", item->name);
}

/* The releases whose package has the toggle, "2.9.1 2.10.0". */
static char *releases_with(const struct buildenv_request *q, const char *name, struct arena *a)
{
	struct strlist l = {0};

	for (unsigned i = 0; i < q->tables->releases_count; i++) {
		const struct release_row *r = &q->tables->releases[i];
		const struct package_row *row = tables_package(r, q->package);
		if (row && tables_toggle(q->tables, q->package, name, row->version))
			strlist_ref(&l, a, r->name);
	}

	return strlist_join(&l, a, " ");
}

/* Returns the known spelling of a name: suggest_nearest ignores case, so a retired option or a name
 * of ptbuild's own in other case would get a neighbour of another name. */
static const char *in_known_case(const struct buildenv_request *q, const char *name,
				 const struct settings *set)
{
	const struct tables *t = q->tables;
	const char *others = NULL;

	for (unsigned i = 0; i < t->toggles_count; i++) {
		if (strcasecmp(t->toggles[i].name, name) != 0)
			continue;
		if (strcmp(t->toggles[i].package, q->package) == 0)
			return t->toggles[i].name;
		if (other_owner(q, t->toggles[i].name))
			others = t->toggles[i].name;
	}

	for (unsigned i = 0; i < t->retired_count; i++)
		if (strcasecmp(t->retired[i].name, name) == 0 &&
		    strcmp(t->retired[i].package, q->package) == 0)
			return t->retired[i].name;
	for (size_t i = 0; i < set->count; i++)
		if (strcasecmp(set->items[i].name, name) == 0)
			return set->items[i].name;
	return others ? others : name;
}

static int unknown_toggle(const struct buildenv_request *q, const struct setting *item,
			  const struct settings *set, struct arena *a, struct err *e)
{
	const char *version = q->row->version, *name = in_known_case(q, item->name, set);
	const struct setting *own = settings_get(set, name);

	if (own && own->fixed)
		return refuse_fixed(own, a, e);
	const struct retired_row *retired = tables_retired(q->tables, q->package, name, version);
	const struct toggle_row *elsewhen = tables_toggle(q->tables, q->package, name, NULL);
	if (retired || (elsewhen && !tables_toggle(q->tables, q->package, name, version))) {
		err_set(e, ERR_CONFIG, "%s %s has no option '%s'", q->package, version, name);
		if (retired)
			return err_hint(e, "%s", retired->why);
		const char *releases = releases_with(q, name, a);
		if (*releases)
			return err_hint(e, "releases that have it: %s", releases);
		return err_hint(e, "%s %s%s%s%s has it", q->package,
				*elsewhen->since ? "from " : "", elsewhen->since,
				*elsewhen->until ? " until before " : "", elsewhen->until);
	}

	struct strlist names = {0};
	for (unsigned i = 0; i < q->tables->toggles_count; i++) {
		const struct toggle_row *row = &q->tables->toggles[i];
		if (strcmp(row->package, q->package) == 0 && toggle_applies(row, version))
			strlist_ref(&names, a, row->name);
	}

	err_set(e, ERR_CONFIG, "unknown option '%s' of %s %s", item->name, q->package, version);
	if (strncmp(item->why, TOGGLE_WITHOUT, strlen(TOGGLE_WITHOUT)) == 0)
		err_set(e, ERR_CONFIG, "unknown feature '%s': %s %s has no option '%s'",
			item->why + strlen(TOGGLE_WITHOUT), q->package, version, name);
	const char *near = strcmp(name, item->name) != 0
				   ? name
				   : suggest_nearest(name, names.items, names.count);
	return suggest_hint(e, near, "'ptbuild list --toggles' lists all");
}

static int asked_twice(const struct setting *now, const struct setting *item, struct err *e)
{
	if (strcmp(now->file, SETTING_COMMAND_LINE) != 0 ||
	    strcmp(item->file, SETTING_COMMAND_LINE) != 0 || strcmp(now->value, item->value) == 0)
		return 0;
	err_set(e, ERR_CONFIG, "'%s' is asked for twice: %s and %s", item->name, now->value,
		item->value);
	return err_hint(e, "drop one of --without and --set");
}

int toggle_set(const struct buildenv_request *q, const struct setting *item, struct arena *a,
	       struct settings *into, struct strlist *notes, struct err *e)
{
	const char *version = q->row->version;
	const struct toggle_row *row = tables_toggle(q->tables, q->package, item->name, version);
	const struct setting *now = settings_get(into, item->name);

	if (!row && now && now->fixed) {
		refuse_fixed(now, a, e);
		return at_place(item, a, e);
	}

	if (!row && !now && !q->row->name) { /* what an extension reads, its author knows */
		const char *owner = other_owner(q, item->name);
		if (owner) {
			strlist_addf(notes, a, "%s=%s is for %s: it changes nothing of %s itself",
				     item->name, item->value, owner, q->package);
			return 0;
		}

		unknown_toggle(q, item, into, a, e);
		return at_place(item, a, e);
	}

	struct setting new = *item;
	if ((row ? tables_toggle_value(row, item->value, &new.value, e)
		 : check_free_value(item, e)) < 0)
		return at_place(item, a, e);
	if (now && now->fixed && strcmp(new.value, now->value) != 0) {
		refuse_other(now, &new, a, e);
		return at_place(item, a, e);
	}

	if (now && asked_twice(now, &new, e) < 0)
		return -1;
	new.fixed = now && now->fixed;
	new.check = row && row->check;
	new.cache = row && row->cache;
	settings_put(into, a, &new);
	return 0;
}

static bool is_off(const struct toggle_row *row, const char *value)
{
	const char *off;
	return tables_toggle_value(row, "OFF", &off, ERR_IGNORED) == 0 && strcmp(off, value) == 0;
}

bool setting_is_off(const struct buildenv_request *q, const struct setting *s)
{
	const struct toggle_row *row =
		tables_toggle(q->tables, q->package, s->name, q->row->version);
	return row && is_off(row, s->value);
}

static bool is_users(const struct buildenv_request *q, const struct setting *s)
{
	return strcmp(s->file, SETTING_COMMAND_LINE) == 0 ||
	       (*q->profile->file && strcmp(s->file, q->profile->file) == 0);
}

/* One row; *ret_changed is set when its setting went off. */
static int settle_one(const struct buildenv_request *q, const struct toggle_row *row,
		      struct arena *a, struct settings *all, bool *ret_changed, struct err *e)
{
	if (!*row->needs || strcmp(row->package, q->package) != 0 ||
	    !toggle_applies(row, q->row->version))
		return 0;
	const struct setting *s = settings_get(all, row->name);
	if (!s || is_off(row, s->value))
		return 0;
	const struct toggle_row *needed =
		tables_toggle(q->tables, q->package, row->needs, q->row->version);
	const struct setting *other = settings_get(all, row->needs);
	if (!needed || !other || !is_off(needed, other->value))
		return 0;
	if (is_users(q, s)) {
		err_set(e, ERR_CONFIG, "'%s=%s' needs %s, which is %s", s->name, s->value,
			other->name, other->value);
		err_hint(e, "%s is from %s; ask for both or for neither", other->name,
			 settings_origin(other, a));
		return at_place(s, a, e);
	}

	struct setting off = {.name = s->name,
			      .file = "toggles.yaml",
			      .line = row->line,
			      .check = row->check,
			      .cache = row->cache};
	off.rule = arena_printf(a, "needs %s", other->name);
	off.why = arena_printf(a, "needs %s, which is %s (%s)", other->name, other->value,
			       settings_origin(other, a));
	if (tables_toggle_value(row, "OFF", &off.value, e) < 0)
		return -1;
	settings_put(all, a, &off);
	*ret_changed = true;
	return 0;
}

int toggle_settle(const struct buildenv_request *q, struct arena *a, struct settings *all,
		  struct err *e)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (unsigned i = 0; i < q->tables->toggles_count; i++)
			if (settle_one(q, &q->tables->toggles[i], a, all, &changed, e) < 0)
				return -1;
	}

	return 0;
}

const char *toggle_name(const struct buildenv_request *q, const char *feature, struct arena *a)
{
	static const char *const prefixes[] = {"USE_", "BUILD_", "TORCHVISION_USE_"};
	const char *names[ARRAY_LEN(prefixes)];

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		char *name = arena_printf(a, "%s%s", prefixes[i], feature);
		for (char *c = name; *c; c++)
			*c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c == '-' ? '_' : *c;
		names[i] = name;
	}

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (tables_toggle(q->tables, q->package, names[i], q->row->version))
			return names[i];
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (other_owner(q, names[i]))
			return names[i];
	return names[0];
}
