/* dpkg's database of the packages, as after an installation. */
#include <stdlib.h>
#include <string.h>

#include "step/world/world_parts.h"

static int by_list(const void *a, const void *b)
{
	return strcmp((*(struct work *const *)a)->list_name, (*(struct work *const *)b)->list_name);
}

int world_dpkg(struct world_making *m, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf status = {0};
	struct work **debs = arena_array(&a, m->count + 1, sizeof(struct work *));
	size_t count = 0;
	for (size_t i = 0; i < m->count; i++)
		if (m->works[i].list_name)
			debs[count++] = &m->works[i];
	array_sort(debs, count, sizeof(struct work *), by_list);
	for (size_t i = 0; i < count; i++) {
		const char *path = arena_printf(&a, "var/lib/dpkg/info/%s.list", debs[i]->list_name);
		buf_addstr(&status, debs[i]->status);
		if (world_add_file(m, NULL, path, debs[i]->list.data, debs[i]->list.len, e) < 0)
			return -1;
	}
	if (world_add_file(m, NULL, "var/lib/dpkg/info/format", "1\n", 2, e) < 0 ||
	    world_add_file(m, NULL, "var/lib/dpkg/available", "", 0, e) < 0)
		return -1;
	return world_add_file(m, NULL, "var/lib/dpkg/status", buf_cstr(&status), status.len, e);
}
