#include "step/pipeline/weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/version.h"

#define MAX_FILE ((uint64_t)8 << 20)
#define MAX_SECONDS 1e6
#define MAX_CLASSES 32
#define MAX_UNITS 100000u

struct parser {
	struct arena *arena;
	struct history_unit *units;
	struct weights_class *classes;
	struct weights w;
	size_t count, classes_count;
	unsigned gpus;
};

static bool take_seconds(char **p, double *ret)
{
	char *end;
	errno = 0;
	*ret = strtod(*p, &end);
	if (end == *p || errno || !(*ret >= 0 && *ret <= MAX_SECONDS) || (*end && *end != ' ' && *end != '\t'))
		return false;
	*p = *end ? end + 1 : end;
	return true;
}

/* Of the class that the line before names. */
static bool take_units(struct parser *p, const char *text)
{
	char *end;
	errno = 0;
	const unsigned long n = strtoul(text, &end, 10);
	if (!p->classes_count || end == text || *text == '-' || errno || n > MAX_UNITS || *end != ' ' ||
	    strcmp(end + 1, p->classes[p->classes_count - 1].rule) != 0)
		return false;
	p->classes[p->classes_count - 1].units = (unsigned)n;
	return true;
}

/* "after SECONDS", "class SECONDS SECONDS RULE" (the second for each GPU), "units COUNT RULE", "SECONDS<TAB>PATH" */
static bool parse_line(struct parser *p, char *line)
{
	double seconds, each;
	if (strncmp(line, "after ", 6) == 0) {
		line += 6;
		return take_seconds(&line, &p->w.after) && !*line;
	}
	if (strncmp(line, "class ", 6) == 0) {
		line += 6;
		if (p->classes_count == MAX_CLASSES || !take_seconds(&line, &seconds) || !take_seconds(&line, &each))
			return false;
		p->classes[p->classes_count++] = (struct weights_class){line, seconds + each * p->gpus, 0};
		return *line != '\0';
	}
	if (strncmp(line, "units ", 6) == 0)
		return take_units(p, line + 6);
	if (!take_seconds(&line, &seconds) || !*line)
		return false;
	if (p->count && strcmp(p->units[p->count - 1].path, line) >= 0)
		return false;
	p->units[p->count++] = (struct history_unit){.path = line, .seconds = seconds};
	return true;
}

int weights_parse(const char *text, size_t len, const char *name, unsigned gpus, struct arena *a, struct weights *ret,
		  struct err *e)
{
	struct parser p = {.arena = a, .gpus = gpus};
	char *line = arena_strndup(a, text, len), *next;
	struct history *units = arena_alloc(a, sizeof(*units));
	size_t lines = 1;
	for (const char *c = line; (c = strchr(c, '\n')); c++)
		lines++;
	p.units = arena_array(a, lines, sizeof(*p.units));
	p.classes = arena_array(a, MAX_CLASSES, sizeof(*p.classes));
	for (size_t n = 1; line; line = next, n++) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (*line && *line != '#' && !parse_line(&p, line))
			return err_set(e, ERR_CONFIG, "%s:%zu: not a weight, or not in order: '%.200s'", name, n, line);
	}
	*units = (struct history){.units = p.units, .count = p.count};
	p.w.units = units;
	p.w.elsewhere = true;
	p.w.classes = p.classes;
	p.w.classes_count = p.classes_count;
	*ret = p.w;
	return 0;
}

/* The release's own table, else the newest of those before it, else the oldest; "" for none. */
static const char *choose(const char *dir, const char *package, const char *release, struct arena *a)
{
	struct strlist names = {0};
	struct err ignored = {0};
	const char *before = "", *after = "";
	const size_t skip = strlen(package);
	if (!fs_exists(TRUSTED, dir) || fs_list(TRUSTED, dir, a, &names, &ignored) < 0)
		return "";
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i];
		if (strncmp(name, package, skip) != 0 || name[skip] != '-' || !path_has_suffix(name, ".tsv"))
			continue;
		const char *its = arena_strndup(a, name + skip + 1, strlen(name) - skip - strlen("-.tsv"));
		if (strcmp(its, release) == 0)
			return its;
		if (version_cmp(its, release) > 0)
			after = *after && version_cmp(after, its) <= 0 ? after : its;
		else
			before = *before && version_cmp(before, its) >= 0 ? before : its;
	}
	return *before ? before : after;
}

/* Both lists as one; a unit of the table that history lacks gets the scale of those in both. */
static struct history *join(const struct history *table, const struct history *history, struct arena *a)
{
	struct history *h = arena_alloc(a, sizeof(*h));
	struct history_unit *all = arena_array(a, table->count + history->count + 1, sizeof(*all));
	double here = 0, there = 0;
	for (size_t i = 0; i < table->count; i++) {
		const struct history_unit *u = history_find(history, table->units[i].path);
		here += u && u->seconds > 0 ? u->seconds : 0;
		there += u && u->seconds > 0 ? table->units[i].seconds : 0;
	}
	const double scale = here > 0 && there > 0 ? here / there : 1;
	for (size_t i = 0, k = 0; i < table->count || k < history->count;) {
		int order = i == table->count     ? 1
			    : k == history->count ? -1
						  : strcmp(table->units[i].path, history->units[k].path);
		if (order < 0) {
			all[h->count] = table->units[i++];
			all[h->count++].seconds *= scale;
			continue;
		}
		all[h->count] = history->units[k++];
		if (order == 0 && all[h->count].seconds <= 0)
			all[h->count].seconds = table->units[i].seconds * scale;
		h->count++;
		i += order == 0;
	}
	h->units = all;
	h->builds = history->builds;
	return h;
}

/* History that knows a tenth of the table says more of this machine than the table does. */
static void add_history(struct weights *w, const struct history *history, struct arena *a)
{
	w->table = w->units;
	w->elsewhere = w->units->count > 0 && history->count * 10 < w->units->count;
	w->units = join(w->units, history, a);
}

const struct weights *weights_load(const char *profiles, const char *package, const char *release, unsigned gpus,
				   const struct history *history, const struct run *run, struct arena *a)
{
	AUTO_BUF struct buf text = {0};
	struct weights *w = arena_alloc(a, sizeof(*w));
	struct err e = {0};
	static const struct history none;
	*w = (struct weights){.units = &none, .release = ""};
	const char *dir = path_join(a, profiles, "weights"), *name = choose(dir, package, release, a);
	const char *path = arena_printf(a, "%s/%s-%s.tsv", dir, package, name);
	if (*name && (fs_read(TRUSTED, path, MAX_FILE, &text, &e) < 0 ||
		      weights_parse(buf_cstr(&text), text.len, path, gpus, a, w, &e) < 0))
		log_warn(run->log, "the time left will be a guess: %s", e.msg);
	w->release = w->units->count ? name : "";
	add_history(w, history, a);
	return w;
}

double weights_find(const struct weights *w, const char *path)
{
	const struct history *h = w->units;
	const struct history_unit *u = history_find(h, path);
	if (u)
		return u->seconds;
	/* "Sort.cpp.AVX2.cpp.o": the first that begins with "Sort.cpp." */
	const char *base = path_base(path), *mark = strstr(base, ".cpp.");
	if (!mark || !path_has_suffix(mark + 1, ".cpp.o"))
		return 0;
	const size_t len = (size_t)(mark + strlen(".cpp.") - path);
	size_t low = 0, high = h->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strncmp(h->units[middle].path, path, len) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < h->count && strncmp(h->units[low].path, path, len) == 0 ? h->units[low].seconds : 0;
}
