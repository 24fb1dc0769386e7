#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "base/version.h"
#include "core/buildenv.h"

static const char *const packages[] = {"pytorch", "torchvision", "torchaudio"};

bool toggle_applies(const struct toggle_row *row, const char *version)
{
	return (!*row->since || version_cmp(version, row->since) >= 0) && (!*row->until || version_cmp(version, row->until) < 0);
}

/* The row of this name for a package: the one of this version, else any (`*ret_here` tells). */
static const struct toggle_row *find_row(const struct tables *t, const char *package, const char *name, const char *version, bool *ret_here)
{
	const struct toggle_row *other = NULL;
	*ret_here = false;
	for (unsigned i = 0; i < t->toggles_count; i++) {
		const struct toggle_row *row = &t->toggles[i];
		if (strcmp(row->name, name) != 0 || strcmp(row->package, package) != 0)
			continue;
		if (toggle_applies(row, version)) {
			*ret_here = true;
			return row;
		}
		other = row;
	}
	return other;
}

/* The boolean a word means: 1, 0, or -1 for none. CMake's words. */
static int boolean_of(const char *word)
{
	static const char *const yes[] = {"ON", "1", "TRUE", "YES", "Y"};
	static const char *const no[] = {"OFF", "0", "FALSE", "NO", "N"};
	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		if (strcasecmp(word, yes[i]) == 0)
			return 1;
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (strcasecmp(word, no[i]) == 0)
			return 0;
	return -1;
}

/* A value the tables give for this toggle, which shows how its values are spelled; NULL if there is none. */
static const char *example_value(const struct toggle_row *row, const struct setting *now)
{
	if (row)
		for (size_t i = 0; i < 3; i++) {
			const char *v = (const char *const[]){row->cpu, row->cuda, row->mps}[i];
			if (*v)
				return v;
		}
	return now ? now->value : NULL;
}

static const char *spell(int on, const char *example)
{
	if (strcmp(example, "1") == 0 || strcmp(example, "0") == 0)
		return on ? "1" : "0";
	if (strcasecmp(example, "TRUE") == 0 || strcasecmp(example, "FALSE") == 0)
		return on ? "TRUE" : "FALSE";
	return on ? "ON" : "OFF";
}

static bool printable(const char *value)
{
	for (const char *c = value; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return true;
}

static int spell_value(const struct setting *item, const char *example, const char **ret, struct err *e)
{
	if (!*item->value || !printable(item->value)) {
		err_set(e, ERR_CONFIG, "empty or unprintable value for '%s'", item->name);
		return err_hint(e, "write NAME=VALUE, for example %s=%s", item->name, example ? example : "OFF");
	}
	if (!example || boolean_of(example) < 0) {
		*ret = item->value;
		return 0;
	}
	int on = boolean_of(item->value);
	if (on < 0) {
		err_set(e, ERR_CONFIG, "'%s' is no value for the switch '%s'", item->value, item->name);
		return err_hint(e, "use %s or %s", spell(1, example), spell(0, example));
	}
	*ret = spell(on, example);
	return 0;
}

/* The releases whose package has the toggle, "2.9.1 2.10.0". */
static char *releases_with(const struct tables *t, const char *package, const char *name, struct arena *a)
{
	struct strlist l = {0};
	for (unsigned i = 0; i < t->releases_count; i++) {
		const struct package_row *row = tables_package(&t->releases[i], package);
		bool here = false;
		if (row && find_row(t, package, name, row->version, &here) && here)
			strlist_ref(&l, a, t->releases[i].name);
	}
	return strlist_join(&l, a, " ");
}

static int unknown_toggle(const struct buildenv_request *q, const struct setting *item, const struct toggle_row *elsewhen, struct arena *a,
			  struct err *e)
{
	const char *version = q->row->version;
	if (elsewhen) {
		const char *releases = releases_with(q->tables, q->package, item->name, a);
		err_set(e, ERR_CONFIG, "'%s' is no option of %s %s", item->name, q->package, version);
		if (*releases)
			return err_hint(e, "releases that have it: %s", releases);
		return err_hint(e, "%s", *elsewhen->why ? elsewhen->why : "no release in the tables has it");
	}
	struct strlist names = {0};
	for (unsigned i = 0; i < q->tables->toggles_count; i++) {
		const struct toggle_row *row = &q->tables->toggles[i];
		if (strcmp(row->package, q->package) == 0 && toggle_applies(row, version))
			strlist_ref(&names, a, row->name);
	}
	err_set(e, ERR_CONFIG, "unknown option '%s' of %s %s", item->name, q->package, version);
	const char *near = suggest_nearest(item->name, names.items, names.count);
	if (near)
		return err_hint(e, "did you mean '%s'?", near);
	return err_hint(e, "the options of a package are the rows of toggles.yaml");
}

static int refuse_fixed(const struct setting *item, const struct setting *now, struct arena *a, struct err *e)
{
	err_set(e, ERR_CONFIG, "'%s' is not a toggle: ptbuild sets it", item->name);
	if (strcmp(item->name, "BLAS") == 0)
		return err_hint(e, "choose the BLAS with --blas or in the profile");
	if (strcmp(item->name, "CFLAGS") == 0 || strcmp(item->name, "CXXFLAGS") == 0)
		return err_hint(e, "add flags with 'cflags' in a profile file");
	if (strcmp(item->name, "TORCH_CUDA_ARCH_LIST") == 0)
		return err_hint(e, "it follows the GPU target of the profile, for example sm80+sm90-avx2");
	return err_hint(e, "its value is from %s: %s", settings_origin(now, a), now->why);
}

/* Whether another package of the release has the toggle: then a profile for all three may carry it. */
static const char *other_owner(const struct buildenv_request *q, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(packages); i++) {
		const struct package_row *row = tables_package(q->release, packages[i]);
		bool here = false;
		if (strcmp(packages[i], q->package) != 0 && row && find_row(q->tables, packages[i], name, row->version, &here) && here)
			return packages[i];
	}
	return NULL;
}

static int refuse_at(const struct setting *item, struct arena *a, struct err *e)
{
	if (item->line)
		return err_wrap(e, "%s", settings_origin(item, a));
	return -1;
}

int toggle_set(const struct buildenv_request *q, const struct setting *item, struct arena *a, struct settings *into, struct strlist *notes,
	       struct err *e)
{
	bool here = false;
	const struct toggle_row *row = find_row(q->tables, q->package, item->name, q->row->version, &here);
	const struct setting *now = settings_get(into, item->name);
	if (!here && (!now || now->fixed)) {
		const char *owner = row || now ? NULL : other_owner(q, item->name);
		if (owner) {
			strlist_addf(notes, a, "%s=%s is for %s: it changes nothing of %s itself", item->name, item->value, owner,
				     q->package);
			return 0;
		}
		if (now)
			refuse_fixed(item, now, a, e);
		else
			unknown_toggle(q, item, row, a, e);
		return refuse_at(item, a, e);
	}
	struct setting new = *item;
	if (spell_value(item, example_value(here ? row : NULL, now), &new.value, e) < 0)
		return refuse_at(item, a, e);
	if (now && strcmp(now->file, SETTING_COMMAND_LINE) == 0 && strcmp(item->file, SETTING_COMMAND_LINE) == 0 &&
	    strcmp(now->value, new.value) != 0) {
		err_set(e, ERR_CONFIG, "'%s' is asked for twice: %s and %s", item->name, now->value, new.value);
		return err_hint(e, "drop one of --without and --set");
	}
	new.check = here && row->check;
	new.cache = here && row->cache;
	settings_put(into, a, &new);
	return 0;
}

const char *toggle_name(const struct buildenv_request *q, const char *feature, struct arena *a)
{
	static const char *const prefixes[] = {"USE_", "BUILD_", "TORCHVISION_USE_"};
	const char *others = NULL;
	const char *first = NULL;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		char *name = arena_printf(a, "%s%s", prefixes[i], feature);
		for (char *c = name; *c; c++)
			*c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c == '-' ? '_' : *c;
		bool here = false;
		if (find_row(q->tables, q->package, name, q->row->version, &here) && here)
			return name;
		if (!others && other_owner(q, name))
			others = name;
		if (!first)
			first = name;
	}
	return others ? others : first;
}
