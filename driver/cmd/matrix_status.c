/* 'ptbuild matrix --status': how far a run is, by the files in its directory and by Slurm. */
#include <sys/stat.h>
#include <time.h>

#include "base/sys/json.h"
#include "cmd/select.h"
#include "step/watch/watch.h"

/* How far a run is. Its directory has the jobs (jobs.json), for each that began a file
 * of lines "key value" (state/ID), what it said (log/ID.log), and what it made
 * (out/ID; dist where something else started the jobs). */
#define STATE_MAX_BYTES (1u << 20)
#define LOG_TAIL 16384

static const char *const states[] = {"done", "running", "waiting", "failed", "lost"};
enum { DONE, RUNNING, WAITING, FAILED, LOST, STATES };

struct run_dir {
	struct arena *arena;
	const char *dir;
	json_t *jobs;      /* as jobs.json has them; each gets a key "run" */
	const char *name;  /* of the matrix */
	json_t *submitted; /* of each job: "JOB_TASK" of Slurm */
	json_t *queue;     /* of each of these that Slurm has: state and reason; NULL: not asked */
	size_t by[STATES];
	uint64_t seconds, hits, misses;
};

/* A part of a path, whatever the file says. */
static bool is_name(const char *s)
{
	return s && *s && *s != '.' && !strchr(s, '/');
}

/* ---- Slurm ---- */

#define SQUEUE_SECONDS 30.0
#define SUBMITTED_MAX_BYTES (16u << 20)
/* What the script calls the job that collects the wheels, in state/ and in `submitted`. */
#define COLLECT "collect"

/* Reads `submitted`, lines "JOB_TASK ID": the last submission of each counts. */
static void read_submitted(struct run_dir *r)
{
	AUTO_BUF struct buf text = {0};
	struct strlist lines = {0};

	if (!fs_exists(r->dir, "submitted") ||
	    fs_read(r->dir, "submitted", SUBMITTED_MAX_BYTES, &text, ERR_IGNORED) < 0)
		return;
	strlist_split(&lines, r->arena, buf_cstr(&text), "\n");
	for (size_t i = 0; i < lines.count; i++) {
		const char *blank = strchr(lines.items[i], ' ');
		if (blank)
			json_object_set_new(
				r->submitted, blank + 1,
				json_stringn(lines.items[i], (size_t)(blank - lines.items[i])));
	}
}

/* Asks Slurm for the jobs of the user who submitted these: "JOB_TASK STATE REASON". Where it cannot
 * be asked, the files alone say how far the run is. */
static void read_queue(struct run_dir *r, json_t *queue, struct cmd_context *c)
{
	AUTO_BUF struct buf text = {0};
	AUTO_BUF struct buf said = {0};
	struct strlist lines = {0};
	struct proc_result got;
	struct stat st;

	if (!json_object_size(r->submitted) || !proc_find_host(r->arena, "squeue") ||
	    stat(path_join(r->arena, r->dir, "submitted"), &st) < 0)
		return;
	const char *user = arena_printf(r->arena, "--user=%u", (unsigned)st.st_uid);
	const char *const argv[] = {"squeue", "--noheader",           "--array",
				    user,     "--format=%F_%K %T %r", NULL};
	const struct proc_spec spec = {
		.argv = argv, .out = &text, .err = &said, .timeout_s = SQUEUE_SECONDS};
	if (proc_run(&spec, c->run, &got, ERR_IGNORED) < 0 || got.status != 0) {
		log_warn(c->run->log, "squeue does not answer: what Slurm knows is not shown");
		return;
	}

	r->queue = queue;
	strlist_split(&lines, r->arena, buf_cstr(&text), "\n");
	for (size_t i = 0; i < lines.count; i++) {
		struct strlist words = {0};
		strlist_split(&words, r->arena, lines.items[i], " ");
		if (words.count < 2)
			continue;
		const char *reason = words.count > 2 ? strstr(lines.items[i], words.items[2]) : "";
		json_t *job = json_pack("{s:s, s:s}", "state", words.items[1], "reason", reason);
		json_object_set_new(r->queue, words.items[0], job);
		/* The job that collects is no array: squeue has a word of its own for its task. */
		json_object_set(r->queue,
				arena_printf(r->arena, "%.*s_" COLLECT,
					     (int)strcspn(words.items[0], "_"), words.items[0]),
				job);
	}
}

/* The job of Slurm, with its state and reason while it has one; NULL: none was submitted. New
 * reference. */
static json_t *slurm_of(const struct run_dir *r, const char *id)
{
	const char *task = json_text(r->submitted, id);
	const json_t *job = json_object_get(r->queue, task);

	if (!*task)
		return NULL;
	return json_pack(
		"{s:s, s:o, s:o}", "job",
		arena_printf(r->arena, "%.*s",
			     (int)(strstr(task, "_" COLLECT) ? strcspn(task, "_") : strlen(task)),
			     task),
		"state", json_or_null(job ? json_text(job, "state") : NULL), "reason",
		json_or_null(job ? json_text(job, "reason") : NULL));
}

static json_t *slurm_or_null(const struct run_dir *r, const char *id)
{
	json_t *job = slurm_of(r, id);
	return job ? job : json_null();
}

/* "101_0 PENDING (PartitionTimeLimit)" */
static const char *slurm_text(const struct run_dir *r, const json_t *job)
{
	const char *state = json_text(job, "state"), *reason = json_text(job, "reason");
	const bool says = *reason && strcmp(reason, "None") != 0;

	return arena_printf(r->arena, "%s%s%s%s", json_text(job, "job"), *state ? " " : "", state,
			    says ? arena_printf(r->arena, " (%s)", reason) : "");
}

/* Whether Slurm was asked, and has a job no more that was submitted. */
static bool is_gone(const struct run_dir *r, const char *id)
{
	const char *task = json_text(r->submitted, id);
	return r->queue && *task && !json_object_get(r->queue, task);
}

/* ---- the files ---- */

/* Reads the lines "key value" of a state. Empty if the file is missing or malformed: a node may
 * have left anything. */
static struct kvlist read_state(const struct run_dir *r, const char *id)
{
	AUTO_BUF struct buf text = {0};
	AUTO_BUF struct buf shown = {0};
	struct kvlist out = {0};
	struct strlist lines = {0};
	const char *path = path_join(r->arena, "state", id);

	if (!fs_exists(r->dir, path) ||
	    fs_read(r->dir, path, STATE_MAX_BYTES, &text, ERR_IGNORED) < 0)
		return out;
	utf8_show(&shown, buf_cstr(&text), text.len, false);
	strlist_split(&lines, r->arena, buf_cstr(&shown), "\n");
	for (size_t i = 0; i < lines.count; i++) {
		const char *blank = strchr(lines.items[i], ' ');
		if (blank)
			kvlist_set(&out, r->arena,
				   arena_strndup(r->arena, lines.items[i],
						 (size_t)(blank - lines.items[i])),
				   blank + 1);
	}

	return out;
}

/* The last error of a log, with its hint on the same line; else its last line; "". */
static const char *why_failed(const struct run_dir *r, const char *id)
{
	static const char mark[] = "ptbuild: error: ";
	AUTO_BUF struct buf shown = {0};
	struct stat st;
	struct strlist lines = {0};
	char tail[LOG_TAIL];
	AUTO_FD int fd =
		fs_open(r->dir, arena_printf(r->arena, "log/%s.log", id), &st, ERR_IGNORED);
	off_t from = fd >= 0 && st.st_size > LOG_TAIL ? st.st_size - LOG_TAIL : 0;
	ssize_t n = fd >= 0 ? pread(fd, tail, sizeof(tail), from) : 0;

	utf8_show(&shown, tail, n > 0 ? (size_t)n : 0, false);
	strlist_split(&lines, r->arena, buf_cstr(&shown), "\n");
	for (size_t i = lines.count; i-- > 0;)
		if (strncmp(lines.items[i], mark, strlen(mark)) == 0)
			return lines.items[i] + strlen(mark);
	return lines.count ? lines.items[lines.count - 1] : "";
}

/* Where the record of a variant may be, seen from the directory. */
static const char *find_record(const struct run_dir *r, const char *id, const char *variant,
			       json_t **ret)
{
	const char *at[] = {arena_printf(r->arena, "out/%s/%s", id, variant),
			    arena_printf(r->arena, "dist/%s", variant), variant};

	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		const char *path = path_join(r->arena, at[i], "build.json");
		if (fs_exists(r->dir, path) && json_read(r->dir, path, ret, ERR_IGNORED) == 0)
			return at[i];
	}

	return NULL;
}

/* What a finished variant is; NULL where it is not there. New reference. */
static json_t *made_of(struct run_dir *r, const char *id, const char *variant)
{
	AUTO_JSON json_t *record = NULL;
	const char *at = find_record(r, id, variant, &record);

	if (!at)
		return NULL;
	const json_t *build = json_object_get(record, "build"),
		     *cache = json_object_get(build, "compiler_cache");
	const char *page = path_join(r->arena, at, "build.html");
	r->hits += (uint64_t)json_int(cache, "hits");
	r->misses += (uint64_t)json_int(cache, "misses");
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}", "wheel", json_text(record, "wheel"),
			 "bytes", json_int(record, "bytes"), "hits", json_int(cache, "hits"),
			 "misses", json_int(cache, "misses"), "remote_hits",
			 json_int(cache, "remote_hits"), "page",
			 json_or_null(fs_is_file(r->dir, page) ? page : NULL));
}

static size_t state_of(const struct run_dir *r, const char *id, const struct kvlist *lines,
		       bool all_made)
{
	const char *said = kvlist_get(lines, "state");
	size_t state = all_made ? DONE : WAITING;

	for (size_t i = 0; said && i < STATES; i++)
		if (strcmp(states[i], said) == 0)
			state = i;
	/* A job says itself how it ends, and cannot when it is killed. */
	const bool open = state == RUNNING || state == WAITING;
	return open && is_gone(r, id) ? LOST : state;
}

/* At least 0. */
static int64_t line_number(const struct kvlist *lines, const char *key)
{
	const char *text = kvlist_get(lines, key);
	const int64_t n = text ? strtoll(text, NULL, 10) : 0;
	return n < 0 ? 0 : n;
}

/* Why a job ended without its wheels; NULL where it did not. */
static const char *why_ended(struct run_dir *r, const char *id, const char *state)
{
	if (strcmp(state, "failed") == 0)
		return why_failed(r, id);
	if (strcmp(state, "lost") == 0)
		return "it did not end: its node went away, or it was killed";
	return NULL;
}

/* The last job, which makes the index. New reference. */
static json_t *collect_json(struct run_dir *r)
{
	const struct kvlist lines = read_state(r, COLLECT);
	const char *state = states[state_of(r, COLLECT, &lines, false)];
	const bool submitted = *json_text(r->submitted, COLLECT);

	return json_pack("{s:s, s:o, s:o}", "state", submitted ? state : "not submitted", "why",
			 json_or_null(why_ended(r, COLLECT, state)), "slurm",
			 slurm_or_null(r, COLLECT));
}

static int add_job(struct run_dir *r, json_t *job, struct err *e)
{
	const char *id = json_text(job, "id");
	bool all = true;
	size_t i;
	const json_t *variant;

	if (!is_name(id))
		return err_set(e, ERR_INTEGRITY, "'%s/jobs.json' has a job without a name", r->dir);
	json_t *made = json_object();
	json_array_foreach(json_object_get(job, "variants"), i, variant)
	{
		const char *name = json_string_value(variant);
		json_t *its = is_name(name) ? made_of(r, id, name) : NULL;
		all = all && its;
		if (its)
			json_object_set_new(made, name, its);
	}

	const struct kvlist lines = read_state(r, id);
	const size_t state = state_of(r, id, &lines, all);
	const int64_t began = line_number(&lines, "started"), ended = line_number(&lines, "ended");
	const int64_t until = ended                                   ? ended
			      : strcmp(states[state], "running") == 0 ? (int64_t)time(NULL)
								      : began;
	const char *log = arena_printf(r->arena, "log/%s.log", id);
	r->by[state]++;
	r->seconds += until > began ? (uint64_t)(until - began) : 0;
	json_object_set_new(job, "run",
			    json_pack("{s:s, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "state",
				      states[state], "node",
				      json_or_null(kvlist_get(&lines, "node")), "attempt",
				      (json_int_t)line_number(&lines, "attempt"), "exit",
				      (json_int_t)line_number(&lines, "exit"), "seconds",
				      (json_int_t)(until > began ? until - began : 0), "why",
				      json_or_null(why_ended(r, id, states[state])), "log",
				      json_or_null(fs_is_file(r->dir, log) ? log : NULL), "made",
				      made, "slurm", slurm_or_null(r, id)));
	return 0;
}

static const char *share(uint64_t hits, uint64_t misses, struct arena *a)
{
	return hits + misses
		       ? arena_printf(a, "%.0f %%", 100.0 * (double)hits / (double)(hits + misses))
		       : "";
}

static const char *duration(uint64_t seconds, struct arena *a)
{
	char text[64];
	size_time(text, sizeof(text), (double)seconds);
	return arena_strdup(a, text);
}

static json_t *row_json(const struct run_dir *r, const json_t *job, const char *variant)
{
	struct arena *a = r->arena;
	const json_t *run = json_object_get(job, "run"),
		     *made = json_object_get(json_object_get(run, "made"), variant);
	const int64_t seconds = json_int(run, "seconds"), bytes = json_int(made, "bytes");
	const char *name =
		strchr(json_text(job, "shard"), '/')
			? arena_printf(a, "%s shard %s", variant, json_text(job, "shard"))
			: variant;

	return json_pack(
		"{s:s, s:s, s:I, s:o, s:s, s:o, s:s, s:s, s:s, s:s, s:s}", "state",
		json_text(run, "state"), "variant", name, "wave", json_int(job, "wave"), "time",
		json_or_null(seconds ? duration((uint64_t)seconds, a) : NULL), "hits",
		share((uint64_t)json_int(made, "hits"), (uint64_t)json_int(made, "misses"), a),
		"size",
		json_or_null(bytes ? arena_printf(a, "%.1f MB", (double)bytes / 1e6) : NULL),
		"node", json_text(run, "node"), "why", json_text(run, "why"), "page",
		json_text(made, "page"), "log", json_text(run, "log"), "slurm",
		slurm_text(r, json_object_get(run, "slurm")));
}

static json_t *rows_json(const struct run_dir *r)
{
	json_t *rows = json_array();
	size_t i, k;
	const json_t *job, *variant;

	json_array_foreach(r->jobs, i, job)
	{
		json_array_foreach(json_object_get(job, "variants"), k, variant)
		{
			const char *name = json_string_value(variant);
			json_array_append_new(rows, row_json(r, job, name ? name : ""));
		}
	}

	return rows;
}

/* "5 done, 1 failed of 6 jobs" */
static const char *summary_of(const struct run_dir *r)
{
	struct strlist parts = {0};

	for (size_t i = 0; i < STATES; i++)
		if (r->by[i])
			strlist_addf(&parts, r->arena, "%zu %s", r->by[i], states[i]);
	return arena_printf(r->arena, "%s of %zu job%s", strlist_join(&parts, r->arena, ", "),
			    json_array_size(r->jobs), plural(json_array_size(r->jobs)));
}

static const struct show status_rows[] = {
	{.text = "{matrix}: {-summary}"},
	{.text = "{?-collect}the job that collects the wheels: {-collect}"},
	{.each = "-rows",
	 .columns = {"state", "variant", ">wave", ">time", ">hits", ">size", "node", "slurm", "why",
		     "see=[{?why}{log}]"}},
	{0}};

/* What there is nothing of yet has no tile. */
static void add_tile(json_t *tiles, const char *value, const char *what)
{
	if (*value)
		json_array_append_new(tiles, json_pack("{s:s, s:s}", "value", value, "what", what));
}

static json_t *tiles_json(const struct run_dir *r)
{
	json_t *tiles = json_array();
	struct arena *a = r->arena;

	add_tile(tiles, arena_printf(a, "%zu of %zu", r->by[0], json_array_size(r->jobs)),
		 "jobs done");
	add_tile(tiles, arena_printf(a, "%zu", r->by[3] + r->by[4]), "failed or lost");
	add_tile(tiles, r->seconds ? duration(r->seconds, a) : "", "in all jobs together");
	add_tile(tiles, share(r->hits, r->misses, a), "of units from the compiler cache");
	return tiles;
}

static json_t *document(struct run_dir *r)
{
	json_t *counts = json_object();

	for (size_t i = 0; i < STATES; i++)
		json_object_set_new(counts, states[i], json_integer((json_int_t)r->by[i]));
	json_t *doc = json_pack("{s:i, s:o, s:o, s:O, s:o, s:s, s:o}", "schema", 1, "matrix",
				json_or_null(r->name), "counts", counts, "jobs", r->jobs, "-rows",
				rows_json(r), "-summary", summary_of(r), "-tiles", tiles_json(r));
	if (json_object_size(r->submitted)) {
		json_t *last = collect_json(r);
		const char *of = slurm_text(r, json_object_get(last, "slurm"));
		const char *why = json_text(last, "why");
		json_object_set_new(doc, "-collect",
				    json_sprintf("%s%s%s%s%s", json_text(last, "state"),
						 *of ? ", " : "", of, *why ? ": " : "", why));
		json_object_set_new(doc, COLLECT, last);
	}

	return doc;
}

int matrix_status(struct cmd_context *c, const char *dir, const char *format, struct err *e)
{
	AUTO_JSON json_t *doc = NULL;
	AUTO_BUF struct buf out = {0};
	struct run_dir r = {.arena = c->arena, .dir = dir};
	const char *path = path_join(c->arena, dir, "jobs.json");
	size_t i;
	json_t *job;

	if (!fs_exists(TRUSTED, path)) {
		err_set(e, ERR_CONFIG, "not the directory of a run: '%s' lacks jobs.json", dir);
		return err_hint(e, "name the directory that the script of 'ptbuild matrix MATRIX "
				   "--format slurm' was given");
	}

	if (json_read(TRUSTED, path, &doc, e) < 0)
		return -1;
	r.jobs = json_object_get(doc, "jobs");
	r.name = json_text(doc, "matrix");
	if (!json_is_array(r.jobs))
		return err_set(e, ERR_INTEGRITY, "'%s' is not a list of jobs", path);
	AUTO_JSON json_t *submitted = json_object();
	r.submitted = submitted;
	read_submitted(&r);
	AUTO_JSON json_t *queue = json_object();
	/* Before the files: what ends in between has said so in its file. */
	read_queue(&r, queue, c);
	json_array_foreach(r.jobs, i, job) if (add_job(&r, job, e) < 0) return -1;
	AUTO_JSON json_t *all = document(&r);
	if (strcmp(format, "html") == 0) {
		report_matrix(all, &out);
		return cmd_write_bytes(&out, e);
	}

	if (strcmp(format, "table") != 0 && strcmp(format, "json") != 0)
		return err_set(e, ERR_USAGE,
			       "--status can be shown as table, json or html, not as %s", format);
	if (strcmp(format, "table") == 0)
		return cmd_show(c, json_incref(all), status_rows, e);
	c->shown = true;
	show_strip(all);
	return json_print(all, e);
}
