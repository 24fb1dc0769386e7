#include "core/wheel/wheel_requires.h"

#include <string.h>

char *wheel_requires_name(const char *requirement, struct arena *a)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
	requirement += strspn(requirement, " \t");
	return wheel_normalize(arena_strndup(a, requirement, strspn(requirement, letters)), a);
}

static bool same_distribution(const char *old, const char *new, struct arena *a)
{
	return strcmp(wheel_requires_name(old, a), wheel_requires_name(new, a)) == 0;
}

void wheel_requires_replace(struct wheel_headers *h, struct arena *a, const char *requirement)
{
	wheel_headers_replace(h, a, "Requires-Dist", requirement, same_distribution);
}
