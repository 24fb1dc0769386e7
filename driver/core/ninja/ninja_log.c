#include "core/ninja/ninja.h"

#include "base/sys/fs.h"

#define HEADER "# ninja log v"
#define OLDEST 5
#define NEWEST 7
#define MAX_MS UINT64_C(10000000000) /* four months */

/* How a number is written, and the largest that is one. */
struct number_form {
	unsigned base;
	uint64_t max;
};

static const struct number_form milliseconds = {10, MAX_MS}, mtimes = {10, INT64_MAX},
				hashes = {16, UINT64_MAX}, versions = {10, 1000};

/* The digits up to `end` as a number; false for anything else. */
static bool take_number(const char *p, const char *end, struct number_form f, uint64_t *ret)
{
	uint64_t n = 0;

	if (p == end)
		return false;
	for (; p < end; p++) {
		unsigned digit = *p >= '0' && *p <= '9'   ? (unsigned)(*p - '0')
				 : *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a') + 10
							  : 16;
		if (digit >= f.base || n > (f.max - digit) / f.base)
			return false;
		n = n * f.base + digit;
	}

	*ret = n;
	return true;
}

/* "<start>\t<end>\t<mtime>\t<output>\t<hash>", without the newline. */
static bool parse_entry(const char *p, const char *end, struct arena *a, struct ninja_entry *ret)
{
	const char *fields[6] = {p};

	for (unsigned i = 1; i < 5; i++) {
		const char *tab = memchr(fields[i - 1], '\t', (size_t)(end - fields[i - 1]));
		if (!tab)
			return false;
		fields[i] = tab + 1;
	}

	fields[5] = end + 1;
	uint64_t mtime;
	struct ninja_entry n;
	if (!take_number(fields[0], fields[1] - 1, milliseconds, &n.start_ms) ||
	    !take_number(fields[1], fields[2] - 1, milliseconds, &n.end_ms) ||
	    !take_number(fields[2], fields[3] - 1, mtimes, &mtime) ||
	    !take_number(fields[4], fields[5] - 1, hashes, &n.hash))
		return false;
	size_t len = (size_t)(fields[4] - 1 - fields[3]);
	if (len == 0 || memchr(fields[3], '\0', len) || n.end_ms < n.start_ms)
		return false;
	n.mtime = (int64_t)mtime;
	n.output = arena_strndup(a, fields[3], len);
	*ret = n;
	return true;
}

bool ninja_is_wait(const char *output)
{
	return strncmp(output, NINJA_WAIT_DIR, strlen(NINJA_WAIT_DIR)) == 0;
}

int ninja_log_parse(const struct file_bytes *in, struct arena *a, struct ninja_log *ret,
		    struct err *e)
{
	struct ninja_log log = {0};
	const char *text = in->data, *end = text + in->size,
		   *line = in->size ? memchr(text, '\n', in->size) : NULL;
	uint64_t version;
	size_t prefix = strlen(HEADER), cap = 0;

	if (!line || (size_t)(line - text) < prefix || memcmp(text, HEADER, prefix) != 0 ||
	    !take_number(text + prefix, line, versions, &version))
		return err_set(e, ERR_INTEGRITY, "%s:1: not a ninja log", in->name);
	if (version < OLDEST || version > NEWEST)
		return err_set(e, ERR_INTEGRITY,
			       "%s:1: ninja log version %u is not supported (%d to %d are)",
			       in->name, (unsigned)version, OLDEST, NEWEST);
	log.version = (unsigned)version;
	for (line++; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		log.entries =
			arena_room(a, log.entries, log.count, &cap, 1024, sizeof(*log.entries));
		struct ninja_entry *entry = &log.entries[log.count];
		if (!stop || !parse_entry(line, stop, a, entry))
			log.skipped++;
		else if (!ninja_is_wait(entry->output))
			log.count++;
		line = stop ? stop + 1 : end;
	}

	*ret = log;
	return 0;
}

int ninja_log_read(const char *top, const char *rel, struct arena *a, struct ninja_log *ret,
		   struct err *e)
{
	AUTO_BUF struct buf text = {0};

	return fs_read(top, rel, NINJA_FILE_MAX, &text, e) < 0
		       ? -1
		       : ninja_log_parse(&(struct file_bytes){buf_cstr(&text), text.len,
							      path_join(a, top, rel)},
					 a, ret, e);
}

struct find_logs {
	const char *below;
	struct arena *arena;
	struct strlist *dirs;
};

static int find_log(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct find_logs *f = user;

	(void)e;
	if (S_ISREG(st->st_mode) && strcmp(path_base(rel), ".ninja_log") == 0)
		strlist_ref(f->dirs, f->arena,
			    path_dir(f->arena, path_join(f->arena, f->below, rel)));
	return 0;
}

int ninja_log_dirs(const char *top, const char *rel, struct arena *a, struct strlist *ret,
		   struct err *e)
{
	struct find_logs f = {rel, a, ret};

	return fs_exists(top, rel) && !fs_is_file(top, rel)
		       ? fs_walk_busy(top, rel, find_log, &f, e)
		       : 0;
}

/* An entry while its run is being found. */
struct item {
	const struct ninja_entry *entry;
	size_t order;   /* its place in the log */
	int64_t origin; /* ms since the epoch when its run would have begun */
	bool object;    /* an object file: its time stamp is the command's */
	unsigned outputs;
	unsigned run;
};

static int by_output(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int c = strcmp(x->entry->output, y->entry->output);
	return c ? c : (x->order < y->order) - (x->order > y->order);
}

static int by_command(const void *a, const void *b)
{
	const struct ninja_entry *x = ((const struct item *)a)->entry,
				 *y = ((const struct item *)b)->entry;

	if (x->start_ms != y->start_ms)
		return x->start_ms < y->start_ms ? -1 : 1;
	if (x->end_ms != y->end_ms)
		return x->end_ms < y->end_ms ? -1 : 1;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	/* ninja names a command by its first output. */
	return (((const struct item *)a)->order > ((const struct item *)b)->order) -
	       (((const struct item *)a)->order < ((const struct item *)b)->order);
}

static int by_origin(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static bool is_object(const char *path)
{
	size_t n = strlen(path);
	return n > 2 && strcmp(path + n - 2, ".o") == 0;
}

static size_t list_items(const struct ninja_log *log, struct item *items)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < log->count; i++) {
		const struct ninja_entry *en = &log->entries[i];
		items[n++] = (struct item){
			.entry = en,
			.order = i,
			.outputs = 1,
			.object = is_object(en->output) && en->mtime,
			.origin = en->mtime / 1000000 -
				  (int64_t)(log->version >= 6 ? en->start_ms : en->end_ms)};
	}

	qsort(items, n, sizeof(*items), by_output);
	for (size_t i = 0; i < n; i++) { /* the last entry of each output is first */
		if (kept == 0 || strcmp(items[kept - 1].entry->output, items[i].entry->output) != 0)
			items[kept++] = items[i];
	}

	n = kept;
	qsort(items, n, sizeof(*items), by_command);
	kept = 0;
	for (size_t i = 0; i < n; i++) {
		const struct ninja_entry *en = items[i].entry,
					 *last = kept ? items[kept - 1].entry : NULL;
		/* One command that makes a hundred headers is one unit. */
		if (last && last->start_ms == en->start_ms && last->end_ms == en->end_ms &&
		    last->hash == en->hash)
			items[kept - 1].outputs++;
		else
			items[kept++] = items[i];
	}

	return kept;
}

/* When each run began, in ms since the epoch. Runs whose starts
 * are closer than this count as one: the first was over at once. */
#define APART_MS 5000
static size_t find_runs(const struct item *items, size_t count, struct arena *a, int64_t **ret)
{
	int64_t *origins = arena_array(a, count + 1, sizeof(*origins));
	size_t n = 0, runs = 0;

	/* where there are no objects, by all that has a time stamp */
	for (int pass = 0; pass < 2 && n == 0; pass++) {
		for (size_t i = 0; i < count; i++) {
			if (pass == 0 ? items[i].object : items[i].entry->mtime != 0)
				origins[n++] = items[i].origin;
		}
	}

	qsort(origins, n, sizeof(*origins), by_origin);
	for (size_t i = 0; i < n;) {
		size_t first = i++;
		while (i < n && origins[i] - origins[i - 1] < APART_MS)
			i++;
		origins[runs++] = origins[first + (i - first) / 2];
	}

	*ret = origins;
	return runs;
}

static unsigned nearest_run(const struct item *it, const int64_t *runs, size_t count)
{
	size_t best = 0;

	for (size_t i = 1; i < count; i++) {
		if (llabs(runs[i] - it->origin) < llabs(runs[best] - it->origin))
			best = i;
	}

	return (unsigned)best;
}

static int by_start(const void *a, const void *b)
{
	const struct ninja_unit *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return strcmp(x->path, y->path);
}

void ninja_units_sort(struct ninja_unit *units, size_t count)
{
	array_sort(units, count, sizeof(*units), by_start);
}

void ninja_log_units(const struct ninja_log *log, struct arena *a, struct ninja_unit **ret,
		     size_t *ret_count)
{
	struct item *items = arena_array(a, log->count + 1, sizeof(*items));
	size_t count = list_items(log, items);
	struct ninja_unit *units = arena_array(a, count + 1, sizeof(*units));
	int64_t *runs;
	size_t run_count = find_runs(items, count, a, &runs);

	for (size_t i = 0; i < count; i++) {
		const struct ninja_entry *en = items[i].entry;
		unsigned run = run_count ? nearest_run(&items[i], runs, run_count) : 0;
		double origin = run_count ? (double)runs[run] / 1000 : 0;
		units[i] = (struct ninja_unit){.path = en->output,
					       .start = origin + (double)en->start_ms / 1000,
					       .end = origin + (double)en->end_ms / 1000,
					       .run = run,
					       .outputs = items[i].outputs,
					       .input = ""};
	}

	ninja_units_sort(units, count);
	*ret = units;
	*ret_count = count;
}

unsigned ninja_slots(const struct ninja_unit *units, size_t count, unsigned *slots)
{
	AUTO_ARENA struct arena a = {0};
	double *busy = arena_array(&a, count + 1, sizeof(*busy)); /* until when each slot is busy */
	unsigned used = 0;

	for (size_t i = 0; i < count; i++) {
		unsigned s = 0;
		while (s < used && busy[s] > units[i].start)
			s++;
		if (s == used)
			used++;
		busy[s] = units[i].end;
		slots[i] = s;
	}

	return used;
}

#define MAX_COUNTERS 256
#define MAX_NAME 64

static bool is_name(const char *p, size_t len)
{
	if (len == 0 || len > MAX_NAME)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool letter = p[i] >= 'a' && p[i] <= 'z';
		bool digit = p[i] >= '0' && p[i] <= '9';
		if (!letter && !digit && p[i] != '_')
			return false;
	}

	return true;
}

static void count(struct ccache_stats *s, const char *name, size_t len, struct arena *a)
{
	for (size_t i = 0; i < s->counters_count; i++) {
		if (strncmp(s->counters[i].name, name, len) == 0 && !s->counters[i].name[len]) {
			s->counters[i].count++;
			return;
		}
	}

	if (s->counters_count < MAX_COUNTERS)
		s->counters[s->counters_count++] =
			(struct ccache_counter){arena_strndup(a, name, len), 1};
}

static bool is(const char *p, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(p, name, len) == 0;
}

static void take_counter(struct ccache_stats *s, struct ccache_source *source, const char *p,
			 size_t len, struct arena *a)
{
	if (!is_name(p, len))
		return;
	count(s, p, len, a);
	bool direct = is(p, len, "direct_cache_hit"),
	     preprocessed = is(p, len, "preprocessed_cache_hit"), miss = is(p, len, "cache_miss");
	s->direct_hits += direct;
	s->preprocessed_hits += preprocessed;
	s->misses += miss;
	s->remote_hits += is(p, len, "remote_storage_hit");
	if (source) {
		source->hits += direct || preprocessed;
		source->misses += miss;
	}
}

/* A source that is compiled several times becomes one. */
static size_t join_sources(struct ccache_source *sources, size_t n)
{
	size_t kept = 0;

	array_sort(sources, n, sizeof(*sources), text_cmp);
	for (size_t i = 0; i < n; i++) {
		if (kept && strcmp(sources[kept - 1].path, sources[i].path) == 0) {
			sources[kept - 1].hits += sources[i].hits;
			sources[kept - 1].misses += sources[i].misses;
		} else {
			sources[kept++] = sources[i];
		}
	}

	return kept;
}

void ccache_stats_parse(const char *text, size_t len, struct arena *a, struct ccache_stats *ret)
{
	struct ccache_stats s = {.counters = arena_array(a, MAX_COUNTERS, sizeof(*s.counters))};
	const char *end = text + len;
	size_t calls = 0;

	for (const char *p = text; p < end; p++)
		calls += *p == '#';
	s.sources = arena_array(a, calls + 1, sizeof(*s.sources));
	struct ccache_source *source = NULL;
	for (const char *p = text; p < end;) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		size_t n = stop ? (size_t)(stop - p) : (size_t)(end - p);
		if (n > 2 && p[0] == '#' && p[1] == ' ') {
			source = NULL;
			if (!memchr(p, '\0', n)) {
				source = &s.sources[s.sources_count++];
				source->path = arena_strndup(a, p + 2, n - 2);
			}
		} else {
			take_counter(&s, source, p, n, a);
		}

		p = stop ? stop + 1 : end;
	}

	array_sort(s.counters, s.counters_count, sizeof(*s.counters), text_cmp);
	s.sources_count = join_sources(s.sources, s.sources_count);
	*ret = s;
}
