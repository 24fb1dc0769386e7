#include "cache/history.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"

#define HEADER "ptbuild history 1 "
#define MAX_FILE ((uint64_t)32 << 20) /* twenty thousand paths of the longest kind */
#define MAX_SECONDS 1e7               /* four months: not the time of a unit */

static const char *const kind_names[HISTORY_KINDS] = {"compile", "heavy", "link"};

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct history_unit *)a)->path, ((const struct history_unit *)b)->path);
}

static int oldest_first(const void *a, const void *b)
{
	const struct history_unit *x = a, *y = b;
	int c = by_path(x, y);
	return c ? c : (x->seen > y->seen) - (x->seen < y->seen);
}

static int newest_first(const void *a, const void *b)
{
	const struct history_unit *x = a, *y = b;
	return x->seen != y->seen ? (x->seen < y->seen) - (x->seen > y->seen) : strcmp(x->path, y->path);
}

static bool can_keep(const struct history_unit *u)
{
	size_t len = strlen(u->path);
	if (len == 0 || len > HISTORY_MAX_PATH || (unsigned)u->kind >= HISTORY_KINDS)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)u->path[i] < 0x20 || u->path[i] == 0x7f)
			return false;
	return u->seconds >= 0 && u->seconds <= MAX_SECONDS; /* false for NaN too */
}

/* The next number of a line, up to the blank behind it. */
static bool take_number(char **p, uint64_t max, uint64_t *ret)
{
	char *end;
	if (**p < '0' || **p > '9')
		return false;
	errno = 0;
	*ret = strtoull(*p, &end, 10);
	if (errno || *end != ' ' || *ret > max)
		return false;
	*p = end + 1;
	return true;
}

/* "<kind> <milliseconds> <bytes> <build> <path>" */
static bool parse_unit(char *line, struct arena *a, struct history_unit *ret)
{
	struct history_unit u = {0};
	uint64_t milliseconds, seen;
	size_t n = strcspn(line, " ");
	unsigned kind = 0;
	while (kind < HISTORY_KINDS && !(strlen(kind_names[kind]) == n && strncmp(line, kind_names[kind], n) == 0))
		kind++;
	char *p = line + n;
	if (kind == HISTORY_KINDS || *p++ != ' ')
		return false;
	if (!take_number(&p, (uint64_t)(MAX_SECONDS * 1000), &milliseconds) ||
	    !take_number(&p, UINT64_MAX - 1, &u.peak_bytes) || !take_number(&p, UINT32_MAX, &seen))
		return false;
	u.kind = kind;
	u.seconds = (double)milliseconds / 1000;
	u.seen = (unsigned)seen;
	u.path = p;
	if (!can_keep(&u))
		return false;
	u.path = arena_strdup(a, p);
	*ret = u;
	return true;
}

static int parse_units(char *text, const char *name, struct arena *a, struct history *h, struct err *e)
{
	size_t lines = 0;
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	if (lines > HISTORY_MAX_UNITS)
		return err_set(e, ERR_INTEGRITY, "'%s' lists more than %d units", name, HISTORY_MAX_UNITS);
	struct history_unit *units = arena_array(a, lines + 1, sizeof(*units));
	for (char *line = text, *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			return err_set(e, ERR_INTEGRITY, "%s:%zu: the last line has no end", name, h->count + 2);
		*end = '\0';
		if (!parse_unit(line, a, &units[h->count]))
			return err_set(e, ERR_INTEGRITY, "%s:%zu: not a unit: '%.200s'", name, h->count + 2, line);
		if (h->count && strcmp(units[h->count - 1].path, units[h->count].path) >= 0)
			return err_set(e, ERR_INTEGRITY, "%s:%zu: the units are not in order", name, h->count + 2);
		if (units[h->count].seen > h->builds)
			return err_set(e, ERR_INTEGRITY, "%s:%zu: a build number above the file's", name, h->count + 2);
		h->count++;
	}
	h->units = units;
	return 0;
}

int history_parse(const char *text, size_t len, const char *name, struct arena *a, struct history *ret, struct err *e)
{
	struct history h = {0};
	char digest[DIGEST_HEX_LEN + 1];
	uint64_t builds;
	size_t prefix = strlen(HEADER), head = prefix + DIGEST_HEX_LEN + 1;
	if (len < head || strncmp(text, HEADER, prefix) != 0 || text[head - 1] != ' ')
		return err_set(e, ERR_INTEGRITY, "'%s' does not begin with '%s'", name, HEADER);
	digest_data(text + head, len - head, digest);
	if (strncmp(text + prefix, digest, DIGEST_HEX_LEN) != 0)
		return err_set(e, ERR_INTEGRITY, "'%s' is damaged: its digest is not that of its first line", name);
	char *body = arena_strndup(a, text + head, len - head), *end = strchr(body, '\n');
	if (strlen(body) != len - head || !end)
		return err_set(e, ERR_INTEGRITY, "%s:1: the first line has no end", name);
	*end = ' ';
	if (!take_number(&body, UINT32_MAX, &builds) || body != end + 1)
		return err_set(e, ERR_INTEGRITY, "%s:1: no number of builds", name);
	h.builds = (unsigned)builds;
	if (parse_units(body, name, a, &h, e) < 0)
		return -1;
	*ret = h;
	return 0;
}

static int file_path(struct store *s, const char *package, const char *release, struct arena *a, const char **ret,
		     struct err *e)
{
	const char *name = arena_printf(a, "%s-%s", package, release);
	if (!path_is_safe_relative(name) || strchr(name, '/'))
		return err_set(e, ERR_CONFIG, "not a file name: '%s'", name);
	*ret = path_join(a, path_join(a, store_dir(s), "history"), name);
	return 0;
}

/* A file that cannot be used counts as none. */
static void read_file(const char *path, const struct run *run, struct arena *a, struct history *ret)
{
	AUTO_BUF struct buf text = {0};
	struct err e = {0};
	*ret = (struct history){0};
	if (!fs_exists(TRUSTED, path))
		return;
	if (fs_read(TRUSTED, path, MAX_FILE, &text, &e) < 0 ||
	    history_parse(buf_cstr(&text), text.len, path, a, ret, &e) < 0)
		log_warn(run->log, "the times of earlier builds are unknown: %s", e.msg);
}

const struct history *history_load(struct store *s, const char *package, const char *release, const struct run *run,
				   struct arena *a)
{
	struct history *h = arena_alloc(a, sizeof(*h));
	struct err ignored = {0};
	const char *path;
	if (file_path(s, package, release, a, &path, &ignored) == 0)
		read_file(path, run, a, h);
	return h;
}

const struct history_unit *history_find(const struct history *h, const char *path)
{
	const struct history_unit key = {.path = path};
	return h->count ? bsearch(&key, h->units, h->count, sizeof(key), by_path) : NULL;
}

size_t history_measured(const struct history *h, enum history_kind kind)
{
	size_t n = 0;
	for (size_t i = 0; i < h->count; i++)
		n += h->units[i].kind == kind && h->units[i].peak_bytes;
	return n;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

uint64_t history_peak(const struct history *h, enum history_kind kind, unsigned percent)
{
	AUTO_ARENA struct arena a = {0};
	size_t n = history_measured(h, kind), k = 0;
	if (n == 0)
		return 0;
	uint64_t *peaks = arena_array(&a, n, sizeof(*peaks));
	for (size_t i = 0; i < h->count; i++)
		if (h->units[i].kind == kind && h->units[i].peak_bytes)
			peaks[k++] = h->units[i].peak_bytes;
	qsort(peaks, n, sizeof(*peaks), by_number);
	size_t rank = (n * percent + 99) / 100;
	return peaks[rank < 1 ? 0 : rank > n ? n - 1 : rank - 1];
}

static void blend(struct history_unit *into, const struct history_unit *u)
{
	if (u->seconds > 0)
		into->seconds = into->seconds > 0 ? (into->seconds + u->seconds) / 2 : u->seconds;
	if (u->peak_bytes > into->peak_bytes)
		into->peak_bytes = u->peak_bytes;
	into->kind = u->kind;
	into->seen = u->seen;
}

/* Old and new in one list sorted by path, each path once. */
static void merge(struct history *h, const struct history_unit *units, size_t count, struct arena *a)
{
	struct history_unit *all = arena_array(a, h->count + count + 1, sizeof(*all));
	size_t n = 0, kept = 0;
	h->builds += h->builds < UINT32_MAX;
	for (size_t i = 0; i < h->count; i++)
		all[n++] = h->units[i];
	for (size_t i = 0; i < count; i++) {
		if (!can_keep(&units[i]))
			continue;
		all[n] = units[i];
		all[n++].seen = h->builds;
	}
	qsort(all, n, sizeof(*all), oldest_first);
	for (size_t i = 0; i < n; i++) {
		if (kept && strcmp(all[kept - 1].path, all[i].path) == 0)
			blend(&all[kept - 1], &all[i]);
		else
			all[kept++] = all[i];
	}
	if (kept > HISTORY_MAX_UNITS) {
		qsort(all, kept, sizeof(*all), newest_first);
		kept = HISTORY_MAX_UNITS;
		qsort(all, kept, sizeof(*all), by_path);
	}
	h->units = all;
	h->count = kept;
}

static int write_file(const char *path, const struct history *h, struct err *e)
{
	AUTO_BUF struct buf body = {0}, text = {0};
	char digest[DIGEST_HEX_LEN + 1];
	buf_printf(&body, "%u\n", h->builds);
	for (size_t i = 0; i < h->count; i++) {
		const struct history_unit *u = &h->units[i];
		buf_printf(&body, "%s %.0f %" PRIu64 " %u %s\n", kind_names[u->kind], ceil(u->seconds * 1000),
			   u->peak_bytes, u->seen, u->path);
	}
	digest_data(body.data, body.len, digest);
	buf_printf(&text, HEADER "%s ", digest);
	buf_add(&text, body.data, body.len);
	return fs_write(TRUSTED, path, text.data, text.len, 0644, e);
}

int history_merge(struct store *s, const char *package, const char *release, const struct history_unit *units,
		  size_t count, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_LOCK struct lock lock = LOCK_NONE;
	struct history h;
	char key[DIGEST_HEX_LEN + 1];
	const char *path;
	if (file_path(s, package, release, &a, &path, e) < 0)
		return -1;
	const char *name = path_base(path);
	digest_data(name, strlen(name), key);
	if (fs_mkdirs(TRUSTED, path_dir(&a, path), e) < 0 || store_lock(s, "history", key, run, &lock, e) < 0)
		return -1;
	read_file(path, run, &a, &h);
	merge(&h, units, count, &a);
	return write_file(path, &h, e);
}
