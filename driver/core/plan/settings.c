#include "core/plan/buildenv.h"

static struct setting *find(const struct settings *s, const char *name)
{
	return text_search(name, s->items, s->count, sizeof(*s->items));
}

char *settings_origin(const struct setting *item, struct arena *a)
{
	return item->line ? arena_printf(a, "%s:%u", item->file, item->line) : arena_strdup(a, item->file);
}

void settings_add(struct settings *s, struct arena *a, const struct setting *item)
{
	s->items = arena_room(a, s->items, s->count, &s->cap, 32, sizeof(*s->items));
	s->items[s->count++] = *item;
}

void settings_put(struct settings *s, struct arena *a, const struct setting *item)
{
	struct setting *old = find(s, item->name);
	if (!old) {
		settings_add(s, a, item);
		return;
	}
	struct setting new = *item;
	new.check = item->check || old->check;
	new.cache = item->cache || old->cache;
	if (strcmp(old->value, item->value) != 0)
		new.why =
			arena_printf(a, "%s (instead of '%s' from %s)", item->why, old->value, settings_origin(old, a));
	*old = new;
}

const struct setting *settings_get(const struct settings *s, const char *name)
{
	return find(s, name);
}

const char *settings_value(const struct settings *s, const char *name)
{
	const struct setting *item = find(s, name);
	return item ? item->value : NULL;
}

bool settings_on(const struct settings *s, const char *name)
{
	const char *value = settings_value(s, name);
	return value && (strcmp(value, "ON") == 0 || strcmp(value, "1") == 0);
}

void settings_sort(struct settings *s)
{
	array_sort(s->items, s->count, sizeof(*s->items), text_cmp);
}
