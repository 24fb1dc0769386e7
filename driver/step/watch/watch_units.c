#include <stdlib.h>
#include <string.h>

#include "step/watch/watch_parts.h"

/* Below this the resident set at hand is near enough to the peak, and one file less is read. */
#define SMALL_BYTES (UINT64_C(32) << 20)

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static size_t hash(const char *s)
{
	size_t h = 5381;
	for (; *s; s++)
		h = h * 33 + (unsigned char)*s;
	return h ^ (h >> 17);
}

static size_t *slot_of(const struct watch_units *u, const char *path)
{
	size_t i = hash(path) & (u->table_size - 1);
	while (u->table[i] && strcmp(u->units[u->table[i] - 1].path, path) != 0)
		i = (i + 1) & (u->table_size - 1);
	return &u->table[i];
}

static void grow(struct watch_units *u)
{
	u->cap = u->cap ? u->cap * 2 : 256;
	u->units = must(realloc(u->units, u->cap * sizeof(*u->units)));
	u->held = must(realloc(u->held, u->cap * sizeof(*u->held)));
	free(u->table);
	u->table_size = u->cap * 4;
	u->table = must(calloc(u->table_size, sizeof(*u->table)));
	for (size_t i = 0; i < u->count; i++)
		*slot_of(u, u->units[i].path) = i + 1;
}

static size_t find_unit(struct watch_units *u, const char *path, double at)
{
	if (u->count == u->cap)
		grow(u);
	size_t *slot = slot_of(u, path);
	if (*slot)
		return *slot - 1;
	if (u->count == WATCH_MAX_UNITS)
		return WATCH_NO_UNIT;
	u->units[u->count] = (struct watch_unit){.path = arena_strdup(&u->arena, path), .first = at, .last = at};
	u->held[u->count] = 0;
	*slot = u->count + 1;
	return u->count++;
}

/* What this process makes, by its own command line. */
static size_t read_unit(struct watch_units *u, pid_t pid, double at)
{
	AUTO_BUF struct buf command = {0};
	AUTO_ARENA struct arena a = {0};
	if (!proctree_command(pid, &command) || !command.len)
		return WATCH_NO_UNIT;
	const char *output = watch_output(command.data, command.len);
	if (!output)
		return WATCH_NO_UNIT;
	const char *dir = output[0] == '/' ? NULL : proctree_cwd(pid, &a);
	return find_unit(u, watch_unit_name(u->build_dir, dir, output, &a), at);
}

static const struct watch_process *find_process(const struct watch_process *all, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++) {
		if (all[i].item.pid == pid)
			return &all[i];
	}
	return NULL;
}

/* A process that was there at the last look, and has not become another program since, is what it was; a child of a
 * unit's process is of that unit; only of others the command line is read. */
static size_t unit_of(struct watch_units *u, const struct proctree_item *it, const struct watch_process *now,
		      size_t seen, double at)
{
	const struct watch_process *old = find_process(u->last, u->last_count, it->pid);
	if (old && old->item.started == it->started && strcmp(old->item.name, it->name) == 0)
		return old->unit;
	const struct watch_process *parent = find_process(now, seen, it->parent);
	if (parent && parent->unit != WATCH_NO_UNIT)
		return parent->unit;
	return read_unit(u, it->pid, at);
}

unsigned watch_units_look(struct watch_units *u, const struct proctree_item *items, size_t count, double at)
{
	struct watch_process *now = must(calloc(count + 1, sizeof(*now)));
	unsigned making = 0;
	for (size_t i = 0; i < count; i++) {
		size_t unit = unit_of(u, &items[i], now, i, at);
		now[i] = (struct watch_process){.item = items[i], .unit = unit};
		if (unit == WATCH_NO_UNIT)
			continue;
		uint64_t bytes = items[i].rss_bytes < SMALL_BYTES ? 0 : proctree_peak(items[i].pid);
		if (bytes < items[i].rss_bytes)
			bytes = items[i].rss_bytes;
		making += u->held[unit] == 0;
		u->units[unit].last = at;
		u->held[unit] += bytes ? bytes : 1;
	}
	for (size_t i = 0; i < count; i++) {
		size_t unit = now[i].unit;
		if (unit == WATCH_NO_UNIT)
			continue;
		if (u->held[unit] > u->units[unit].peak_bytes)
			u->units[unit].peak_bytes = u->held[unit];
		u->held[unit] = 0;
	}
	free(u->last);
	u->last = now;
	u->last_count = count;
	u->looked = at;
	return making;
}

void watch_units_release(struct watch_units *u)
{
	free(u->units);
	free(u->held);
	free(u->table);
	free(u->last);
	arena_release(&u->arena);
	*u = (struct watch_units){0};
}
