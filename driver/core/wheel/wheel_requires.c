#include "core/wheel/wheel_requires.h"

#include <string.h>
#include <strings.h>

static const char field[] = "Requires-Dist";

char *wheel_requires_name(const char *requirement, struct arena *a)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
	requirement += strspn(requirement, " \t");
	return wheel_normalize(arena_strndup(a, requirement, strspn(requirement, letters)), a);
}

void wheel_requires_replace(struct wheel_headers *h, struct arena *a, const char *requirement)
{
	const char *name = wheel_requires_name(requirement, a);
	bool done = false;
	for (size_t i = 0; i < h->count;) {
		struct kv *item = &h->items[i];
		if (strcasecmp(item->key, field) != 0 || strcmp(wheel_requires_name(item->value, a), name) != 0) {
			i++;
		} else if (done) {
			wheel_headers_remove_at(h, i);
		} else {
			if (strcmp(item->value, requirement) != 0) {
				item->value = arena_strdup(a, requirement);
				h->raw[i] = NULL;
			}
			done = true;
			i++;
		}
	}
	if (!done)
		wheel_headers_add(h, a, field, requirement);
}
