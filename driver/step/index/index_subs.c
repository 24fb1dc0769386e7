#include <string.h>

#include "base/version.h"
#include "step/index/index_parts.h"

struct choosing {
	const struct index_wheel *wheels;
	size_t count;
	struct arena *a;
	struct index_sub *sub;
};

static bool is_pinned(const struct choosing *c, const struct index_wheel *w, const struct kv *pin)
{
	return strcmp(w->project, pin->key) == 0 && wheel_same_version(w->version, pin->value, c->a);
}

/* Without a label it is one that any index may have. */
static bool lacks(const struct choosing *c, const struct kv *pin)
{
	for (size_t i = 0; i < c->count; i++)
		if (is_pinned(c, &c->wheels[i], pin))
			return false;
	return strchr(pin->value, '+') != NULL;
}

/* Installers look for a project in the first index that has it: what a wheel pins must lie beside it. */
static bool add_pinned(struct choosing *c, const struct index_wheel *w, const struct kv *pin)
{
	bool added = false;
	for (size_t i = 0; i < c->count; i++) {
		if (!is_pinned(c, &c->wheels[i], pin))
			continue;
		added = added || !c->sub->has[i];
		c->sub->has[i] = true;
	}
	const char *line = arena_printf(c->a, "%s==%s, which '%s' requires", pin->key, pin->value, w->file);
	if (lacks(c, pin) && !strlist_contains(&c->sub->missing, line))
		strlist_ref(&c->sub->missing, c->a, line);
	return added;
}

static void close_sub(struct choosing *c)
{
	bool more = true;
	while (more) {
		more = false;
		for (size_t i = 0; i < c->count; i++)
			for (size_t k = 0; c->sub->has[i] && k < c->wheels[i].pins.count; k++)
				more = add_pinned(c, &c->wheels[i], &c->wheels[i].pins.items[k]) || more;
	}
}

/* Whether what a wheel pins is here, and what was chosen before. */
static bool agrees(const struct choosing *c, const struct index_wheel *w, const struct kvlist *chosen)
{
	for (size_t i = 0; i < w->pins.count; i++) {
		const char *have = kvlist_get(chosen, w->pins.items[i].key);
		if (lacks(c, &w->pins.items[i]) || (have && !wheel_same_version(have, w->pins.items[i].value, c->a)))
			return false;
	}
	return true;
}

static void choose(struct choosing *c, const char *project, struct kvlist *chosen)
{
	const char *best = NULL;
	for (size_t i = 0; i < c->count; i++) {
		const struct index_wheel *w = &c->wheels[i];
		if (c->sub->has[i] && !w->yanked && strcmp(w->project, project) == 0 && agrees(c, w, chosen) &&
		    (!best || version_cmp(w->version, best) >= 0))
			best = w->version;
	}
	if (best)
		kvlist_set(chosen, c->a, project, best);
}

/* torch first: it decides about the others. */
static void choose_all(struct choosing *c)
{
	struct kvlist chosen = {0};
	choose(c, "torch", &chosen);
	for (size_t i = 0; i < c->count; i++)
		if (c->sub->has[i] && !kvlist_get(&chosen, c->wheels[i].project))
			choose(c, c->wheels[i].project, &chosen);
	for (size_t k = 0; k < chosen.count; k++)
		strlist_addf(&c->sub->install, c->a, "%s==%s", chosen.items[k].key, chosen.items[k].value);
	for (size_t i = 0; i < c->count; i++) {
		const char *version = kvlist_get(&chosen, c->wheels[i].project);
		if (c->sub->has[i] && version && strcmp(version, c->wheels[i].version) == 0)
			strlist_ref(&c->sub->wheels, c->a, c->wheels[i].file);
	}
}

void index_subs(const struct index_wheel *wheels, size_t count, struct arena *a, struct index_sub **ret,
		size_t *ret_count)
{
	struct strlist names = {0};
	for (size_t i = 0; i < count; i++)
		if (*wheels[i].profile && !strlist_contains(&names, wheels[i].profile))
			strlist_ref(&names, a, wheels[i].profile);
	strlist_sort(&names);
	struct index_sub *subs = arena_array(a, names.count + 1, sizeof(*subs));
	for (size_t s = 0; s <= names.count; s++) {
		struct choosing c = {wheels, count, a, &subs[s]};
		subs[s] = (struct index_sub){.name = s ? names.items[s - 1] : INDEX_ALL, .label = ""};
		subs[s].has = arena_array(a, count, sizeof(bool));
		for (size_t i = 0; i < count; i++) {
			subs[s].has[i] = !s || strcmp(wheels[i].profile, subs[s].name) == 0;
			subs[s].label = s && subs[s].has[i] && !*subs[s].label ? wheels[i].label : subs[s].label;
		}
		if (s) {
			close_sub(&c);
			choose_all(&c);
		}
	}
	*ret = subs;
	*ret_count = names.count + 1;
}
