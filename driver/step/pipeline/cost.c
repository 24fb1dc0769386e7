#include "step/pipeline/cost.h"

#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "step/fetch/fetch.h"

#define MAX_FILE ((uint64_t)8 << 20)
#define MAX_SECONDS 1e6
#define MAX_WHEEL 1e11
#define MAX_CLASSES 32
#define MAX_UNITS 100000u
#define LEAST_FACTOR 0.01

static bool take_seconds(char **p, double *ret)
{
	char *end;

	errno = 0;
	*ret = strtod(*p, &end);
	if (end == *p || errno || !(*ret >= 0 && *ret <= MAX_SECONDS))
		return false;
	if (*end && *end != ' ' && *end != '\t')
		return false;
	*p = *end ? end + 1 : end;
	return true;
}

/* Reads the units of the class in the line before. */
static bool take_units(struct weights *w, const char *text)
{
	char *end;

	errno = 0;
	const unsigned long n = strtoul(text, &end, 10);
	if (!w->classes_count || end == text || *text == '-')
		return false;
	if (errno || n > MAX_UNITS || *end != ' ')
		return false;
	if (strcmp(end + 1, w->classes[w->classes_count - 1].rule) != 0)
		return false;
	w->classes[w->classes_count - 1].units = (unsigned)n;
	return true;
}

static bool take_wheel(struct weights *w, const char *text)
{
	double packed, unpacked;
	int end = 0;

	if (sscanf(text, "%lf %lf%n", &packed, &unpacked, &end) != 2 || text[end])
		return false;
	if (!(packed > 0 && packed <= unpacked && unpacked <= MAX_WHEEL))
		return false;
	w->wheel = packed;
	w->unpacked = unpacked;
	return true;
}

/* "after SECONDS", "wheel BYTES BYTES", "class SECONDS SECONDS RULE"
 * (the second for each GPU), "units COUNT RULE", "SECONDS<TAB>PATH" */
static bool parse_line(struct weights *w, char *line, unsigned gpus)
{
	double seconds, each;

	if (strncmp(line, "after ", 6) == 0) {
		line += 6;
		return take_seconds(&line, &w->after) && !*line;
	}

	if (strncmp(line, "wheel ", 6) == 0)
		return take_wheel(w, line + 6);
	if (strncmp(line, "class ", 6) == 0) {
		line += 6;
		if (w->classes_count == MAX_CLASSES || !take_seconds(&line, &seconds) ||
		    !take_seconds(&line, &each))
			return false;
		w->classes[w->classes_count++] =
			(struct weights_class){line, seconds + each * gpus, 0};
		return *line != '\0';
	}

	if (strncmp(line, "units ", 6) == 0)
		return take_units(w, line + 6);
	if (!take_seconds(&line, &seconds) || !*line ||
	    (w->count && strcmp(w->units[w->count - 1].path, line) >= 0))
		return false;
	w->units[w->count++] = (struct weight){line, seconds};
	return true;
}

int weights_parse(const char *text, size_t len, const char *name, unsigned gpus, struct arena *a,
		  struct weights *ret, struct err *e)
{
	struct weights w = {.release = "",
			    .classes = arena_array(a, MAX_CLASSES, sizeof(*w.classes))};
	char *line = arena_strndup(a, text, len), *next;
	size_t count = 1;

	for (const char *c = line; (c = strchr(c, '\n')); c++)
		count++;
	w.units = arena_array(a, count, sizeof(*w.units));
	for (size_t n = 1; line; line = next, n++) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (*line && *line != '#' && !parse_line(&w, line, gpus))
			return err_set(e, ERR_CONFIG,
				       "%s:%zu: not a weight, or not in order: '%.200s'", name, n,
				       line);
	}

	*ret = w;
	return 0;
}

/* The release's own table, else the newest of those before it, else the oldest; "" for none. */
static const char *choose(const char *dir, const char *package, const char *release,
			  struct arena *a)
{
	struct strlist names = {0};
	const char *before = "", *after = "";
	const size_t skip = strlen(package);

	if (!fs_exists(TRUSTED, dir) || fs_list(TRUSTED, dir, a, &names, ERR_IGNORED) < 0)
		return "";
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i];
		if (strncmp(name, package, skip) != 0 || name[skip] != '-' ||
		    !path_has_suffix(name, ".tsv"))
			continue;
		const char *its =
			arena_strndup(a, name + skip + 1, strlen(name) - skip - strlen("-.tsv"));
		if (strcmp(its, release) == 0)
			return its;
		if (version_cmp(its, release) > 0)
			after = *after && version_cmp(after, its) <= 0 ? after : its;
		else
			before = *before && version_cmp(before, its) >= 0 ? before : its;
	}

	return *before ? before : after;
}

static const char *factor_path(const struct store *s, const char *package, struct arena *a)
{
	return arena_printf(a, "%s/stamps/speed-%s", store_dir(s), package);
}

/* The table in this machine's seconds. */
static void scale(struct weights *w, const char *path)
{
	AUTO_BUF struct buf text = {0};
	double factor;

	if (!fs_exists(TRUSTED, path) || fs_read(TRUSTED, path, 64, &text, ERR_IGNORED) < 0)
		return;
	if (sscanf(buf_cstr(&text), "%lf", &factor) != 1)
		return;
	if (!(factor >= LEAST_FACTOR && factor <= 1 / LEAST_FACTOR))
		return;
	for (size_t i = 0; i < w->count; i++)
		w->units[i].seconds *= factor;
	for (size_t i = 0; i < w->classes_count; i++)
		w->classes[i].seconds *= factor;
	w->after *= factor;
	w->factor = factor;
}

const struct weights *weights_load(const char *profiles, const char *package, const char *release,
				   unsigned gpus, const struct store *s, const struct run *run,
				   struct arena *a)
{
	AUTO_BUF struct buf text = {0};
	struct weights *w = arena_alloc(a, sizeof(*w));
	struct err e = {0};

	*w = (struct weights){.release = ""};
	const char *dir = path_join(a, profiles, "weights"),
		   *name = choose(dir, package, release, a);
	const char *path = arena_printf(a, "%s/%s-%s.tsv", dir, package, name);
	if (*name && (fs_read(TRUSTED, path, MAX_FILE, &text, &e) < 0 ||
		      weights_parse(buf_cstr(&text), text.len, path, gpus, a, w, &e) < 0))
		log_warn(run->log, "the time left will be a guess: %s", e.msg);
	w->release = w->count ? name : "";
	if (s && w->count)
		scale(w, factor_path(s, package, a));
	return w;
}

void weights_learn(const struct store *s, const char *package, const struct weights *w,
		   double seconds, double expected, double cpu_share)
{
	AUTO_ARENA struct arena a = {0};
	char text[32];

	if (seconds <= 0 || expected <= 0)
		return;
	if (cpu_share > 0 && cpu_share < 1)
		seconds *= cpu_share;
	int n = snprintf(text, sizeof(text), "%.4f\n",
			 (w->factor > 0 ? w->factor : 1) * seconds / expected);
	(void)!fs_write(TRUSTED, factor_path(s, package, &a), text, (size_t)n, 0644, ERR_IGNORED);
}

double weights_find(const struct weights *w, const char *path)
{
	const struct weight *u = text_find(path, w->units, w->count, sizeof(*u));

	if (u)
		return u->seconds;
	/* "Sort.cpp.AVX2.cpp.o": the first that begins with "Sort.cpp." */
	const char *base = path_base(path), *mark = strstr(base, ".cpp.");
	if (!mark || !path_has_suffix(mark + 1, ".cpp.o"))
		return 0;
	const size_t len = (size_t)(mark + strlen(".cpp.") - path);
	size_t low = 0, high = w->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strncmp(w->units[middle].path, path, len) < 0)
			low = middle + 1;
		else
			high = middle;
	}

	return low < w->count && strncmp(w->units[low].path, path, len) == 0 ? w->units[low].seconds
									     : 0;
}

#define NVCC_RULE "CUDA_COMPILER"

static double add_units(const struct cost_request *q, const struct weights *w, bool *nvcc)
{
	double seconds = 0;

	*nvcc = false;
	for (size_t i = 0; i < w->count; i++) {
		const struct weight *u = &w->units[i];
		if (!q->gpus && (strstr(u->path, ".cu.") || strstr(u->path, "cuda.dir/")))
			continue;
		seconds += u->seconds;
		*nvcc = *nvcc || (strstr(u->path, ".cu.") && u->seconds > 0);
	}

	return seconds;
}

/* The tables list no unit of nvcc, but how many there are and what a few of them took. */
static double guess_gpu(const struct weights *w)
{
	double seconds = 0;

	for (size_t i = 0; i < w->classes_count; i++)
		if (strcmp(w->classes[i].rule, NVCC_RULE) == 0)
			seconds += w->classes[i].seconds * w->classes[i].units;
	return seconds;
}

/* With emulated programs. Weights are those of native builds. */
static struct cost slow_down(struct cost c, const struct cost_request *q)
{
	if (!q->percent || c.units <= 0)
		return c;
	c.percent = q->percent;
	c.seconds = q->seconds;
	c.units *= q->percent / 100.0;
	c.after += q->seconds;
	return c;
}

struct cost cost_of(const struct cost_request *q, const struct run *run, struct arena *a)
{
	const struct weights *w =
		weights_load(q->profiles, q->package, q->release, q->gpus, q->store, run, a);
	struct cost c = {.after = w->after,
			 .wheel = w->wheel,
			 .unpacked = w->unpacked,
			 .here = w->factor > 0,
			 .table = w->release,
			 .release = q->release,
			 .package = q->package,
			 .memory = jobs_from_table(q->row ? q->row->memory : NULL),
			 .processors = machine_processors()};
	bool nvcc;

	c.units = add_units(q, w, &nvcc);
	if (!q->gpus || c.units <= 0)
		return slow_down(c, q);
	const double guess = nvcc ? 0 : guess_gpu(w);
	c.gpu = nvcc ? COST_GPU_MEASURED : guess > 0 ? COST_GPU_GUESSED : COST_GPU_UNKNOWN;
	c.units += guess;
	return slow_down(c, q);
}

unsigned cost_jobs(const struct cost *c, unsigned asked)
{
	return jobs_plan(jobs_usable(machine_memory()), machine_processors(), asked, &c->memory)
		.total;
}

double cost_seconds(const struct cost *c, unsigned jobs)
{
	const unsigned at_once = c->processors && jobs > c->processors ? c->processors : jobs;
	return c->units > 0 ? c->units / (at_once ? at_once : 1) + c->after : 0;
}

static const char *emulated_text(const struct cost *c, struct arena *a)
{
	char more[32];

	if (!c->percent)
		return "";
	size_time(more, sizeof(more), c->seconds);
	return arena_printf(a, "; emulated: %.1f times a native build, and %s more",
			    c->percent / 100.0, more);
}

char *cost_text(const struct cost *c, unsigned jobs, struct arena *a)
{
	char whole[32], units[32];

	if (c->units <= 0)
		return arena_printf(
			a,
			"unknown: no build of %s was measured; an estimate appears once some "
			"units are compiled",
			c->package);
	size_time(whole, sizeof(whole), cost_seconds(c, jobs));
	size_time(units, sizeof(units), c->units);
	const bool other = strcmp(c->table, c->release) != 0;
	const char *by = other ? arena_printf(a, "; estimated from release %s", c->table) : "";
	const char *gpu = c->gpu == COST_GPU_UNKNOWN   ? "; without GPU code"
			  : c->gpu == COST_GPU_GUESSED ? "; GPU code estimated roughly"
						       : "";
	return arena_printf(a, "%s %s with %u job%s (%s of CPU time)%s%s%s",
			    c->gpu == COST_GPU_UNKNOWN ? "more than" : "about", whole, jobs,
			    jobs == 1 ? "" : "s", units, by, gpu, emulated_text(c, a));
}

bool cost_guessed(const struct cost *c)
{
	const bool gpu_measured = c->gpu == COST_GPU_NONE || c->gpu == COST_GPU_MEASURED;
	return c->units <= 0 || !gpu_measured || strcmp(c->table, c->release) != 0;
}

char *cost_size_text(const struct cost *c, uint64_t official, struct arena *a)
{
	struct strlist parts = {0};
	const bool known = c->wheel > 0, other = known && strcmp(c->table, c->release) != 0;

	if (known && c->gpu == COST_GPU_NONE)
		strlist_addf(&parts, a, "about %.0f MB, %.0f MB unpacked%s%s", c->wheel / 1e6,
			     c->unpacked / 1e6, other ? "; estimated from release " : "",
			     other ? c->table : "");
	else if (known)
		strlist_addf(&parts, a,
			     "more than %.0f MB, the size of release %s without GPU code",
			     c->wheel / 1e6, c->table);
	if (official)
		strlist_addf(&parts, a, "the official wheel is %.0f MB", (double)official / 1e6);
	return parts.count ? strlist_join(&parts, a, "; ") : NULL;
}

/* The Debian archive of a source that has no other places; NULL: it has. */
static const char *only_archive(const struct source_row *s, struct arena *a)
{
	const char *archive = NULL;

	for (unsigned i = 0; i < s->urls_count; i++) {
		struct deb_place p;
		if (strncmp(s->urls[i], "deb:", 4) != 0 ||
		    deb_place_parse(s->urls[i] + 4, a, &p, ERR_IGNORED) < 0)
			return NULL;
		archive = p.archive;
	}

	return archive;
}

void cost_sources(struct store *s, const struct package_row *row, struct arena *a,
		  struct cost_downloads *d)
{
	for (unsigned i = 0; i < row->sources_count; i++) {
		const char *place = row->sources[i].urls_count ? row->sources[i].urls[0] : "";
		if (fetch_has(s, row->sources[i].sha256) || *place == '/' ||
		    strncmp(place, "folder:", 7) == 0)
			continue; /* here already */
		d->sources += row->sources[i].bytes;
		d->of_unknown += !row->sources[i].bytes;
		const char *archive = only_archive(&row->sources[i], a);
		if (archive)
			strlist_once(&d->archives, a, archive);
	}
}

char *cost_downloads_text(const struct cost_downloads *d, struct arena *a)
{
	struct strlist parts = {0};

	if (d->world)
		strlist_addf(&parts, a, "%.1f MB for the world", (double)d->world / 1e6);
	if (d->sources)
		strlist_addf(&parts, a, "%.1f MB of sources", (double)d->sources / 1e6);
	if (d->torch)
		strlist_addf(&parts, a, "%.1f MB for the torch", (double)d->torch / 1e6);
	if (d->of_unknown)
		strlist_addf(&parts, a, "%u file%s of unknown size", d->of_unknown,
			     d->of_unknown == 1 ? "" : "s");
	return parts.count ? strlist_join(&parts, a, ", ")
			   : arena_strdup(a, "nothing: the store has it all");
}

static json_t *seconds_json(double seconds)
{
	return seconds > 0 ? json_real(seconds) : json_null();
}

json_t *cost_json(const struct cost *c, const struct cost_downloads *d, unsigned jobs)
{
	static const char *const gpu[] = {NULL, "measured", "guessed", "not counted"};
	const uint64_t bytes = d->world + d->sources + d->torch;
	const bool known = c->units > 0;

	return json_pack(
		"{s:I, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "download_bytes",
		(json_int_t)bytes, "downloads_of_unknown_size", (int)d->of_unknown, "jobs",
		(int)jobs, "seconds", seconds_json(cost_seconds(c, jobs)), "processor_seconds",
		seconds_json(c->units), "gpu_code", json_or_null(gpu[c->gpu]), "by",
		json_or_null(known ? c->table : NULL), "wheel_bytes",
		c->wheel > 0 ? json_integer((json_int_t)c->wheel) : json_null(), "emulated",
		c->percent ? json_pack("{s:i, s:i}", "percent", (int)c->percent, "seconds",
				       (int)c->seconds)
			   : json_null());
}
