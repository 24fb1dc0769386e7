#include "base/path.h"
#include "core/root/sandbox.h"
#include "step/watch/watch_parts.h"

char *watch_unit_name(const char *build_dir, const char *dir, const char *output, struct arena *a)
{
	if (output[0] != '/' && !dir)
		return arena_strdup(a, output);
	const char *path = output[0] == '/' ? path_absolute(a, "/", output) : path_absolute(a, dir, output);
	const char *inside = path_below(path, SANDBOX_SRC "/build");
	if (!inside)
		inside = path_below(path, path_join(a, build_dir, "src/build"));
	return arena_strdup(a, inside ? inside : path);
}

/* "x86_64-linux-gnu-g++-14" ends in "g++", and so does "g++". */
static bool is_compiler(const char *path)
{
	static const char *const names[] = {"gcc",  "g++",      "cc",     "c++",     "clang", "clang++",
					    "nvcc", "gfortran", "ccache", "sccache", "ld"};
	const char *base = path_base(path);
	size_t n = strlen(base), digits = n;
	while (digits > 0 && strchr("0123456789.", base[digits - 1]))
		digits--;
	if (digits < n && digits > 0 && base[digits - 1] == '-')
		n = digits - 1;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t len = strlen(names[i]);
		if (n >= len && strncmp(base + n - len, names[i], len) == 0 && (n == len || base[n - len - 1] == '-'))
			return true;
	}
	return false;
}

const char *watch_output(const char *command, size_t len)
{
	const char *end = command + len, *found = NULL;
	if (len == 0 || end[-1] != '\0' || !is_compiler(command))
		return NULL;
	for (const char *p = command + strlen(command) + 1; p < end; p += strlen(p) + 1) {
		if (strcmp(p, "-o") == 0 && p + 3 < end)
			found = p + 3; /* the last one counts, as it does for the compiler */
	}
	return found && *found ? found : NULL;
}

/* Below this the resident set stands for the peak, which saves reading a file. */
#define SMALL_BYTES (UINT64_C(32) << 20)

/* The unit of this process, by its own command line. That is empty for a moment when it becomes another program, so it
 * is read again at the next look: no process has the empty name. */
static struct watch_held *read_unit(struct watch_units *u, struct proctree_item *it, double at)
{
	AUTO_BUF struct buf command = {0};
	AUTO_ARENA struct arena a = {0};
	if (!proctree_command(it->pid, &command) || !command.len) {
		it->name[0] = '\0';
		return NULL;
	}
	const char *output = watch_output(command.data, command.len);
	if (!output)
		return NULL;
	const char *dir = output[0] == '/' ? NULL : proctree_cwd(it->pid, &a);
	const char *path = watch_unit_name(u->build_dir, dir, output, &a);
	size_t low = 0, high = u->count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = strcmp(u->units[mid]->unit.path, path);
		if (c == 0)
			return u->units[mid];
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (u->count == WATCH_MAX_UNITS)
		return NULL;
	struct watch_held *new = arena_alloc(&u->arena, sizeof(*new));
	new->unit = (struct watch_unit){.path = arena_strdup(&u->arena, path), .first = at, .last = at};
	u->units = arena_room(&u->arena, u->units, u->count, &u->cap, 256, sizeof(void *));
	memmove(u->units + low + 1, u->units + low, (u->count++ - low) * sizeof(void *));
	return u->units[low] = new;
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
static struct watch_held *unit_of(struct watch_units *u, struct proctree_item *it, const struct watch_process *now,
				  size_t seen, double at)
{
	const struct watch_process *old = find_process(u->last, u->last_count, it->pid);
	if (old && old->item.started == it->started && strcmp(old->item.name, it->name) == 0)
		return old->unit;
	const struct watch_process *parent = find_process(now, seen, it->parent);
	return parent && parent->unit ? parent->unit : read_unit(u, it, at);
}

unsigned watch_units_look(struct watch_units *u, const struct proctree_item *items, size_t count, double at)
{
	struct watch_process *now = calloc(count + 1, sizeof(*now));
	unsigned running = 0;
	if (!now)
		abort();
	for (size_t i = 0; i < count; i++) {
		now[i].item = items[i];
		struct watch_held *unit = now[i].unit = unit_of(u, &now[i].item, now, i, at);
		if (!unit)
			continue;
		uint64_t bytes = items[i].rss_bytes < SMALL_BYTES ? 0 : proctree_peak(items[i].pid);
		if (bytes < items[i].rss_bytes)
			bytes = items[i].rss_bytes;
		running += unit->bytes == 0;
		unit->unit.last = at;
		unit->bytes += bytes ? bytes : 1;
	}
	for (size_t i = 0; i < count; i++) {
		struct watch_held *unit = now[i].unit;
		if (!unit)
			continue;
		if (unit->bytes > unit->unit.peak_bytes)
			unit->unit.peak_bytes = unit->bytes;
		unit->bytes = 0;
	}
	free(u->last);
	u->last = now;
	u->last_count = count;
	u->looked = at;
	return running;
}

void watch_units_release(struct watch_units *u)
{
	free(u->last);
	arena_release(&u->arena);
	*u = (struct watch_units){0};
}
