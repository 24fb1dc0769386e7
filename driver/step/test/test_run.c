#include <time.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "step/test/test.h"

#define RUNNER SANDBOX_TOP "/tests"
#define RESULTS SANDBOX_TOP "/results"
#define JOURNAL_MAX (UINT64_C(256) << 20)
/* Memory of one process of tests: test_nn and test_ops stay below. */
#define PROCESS_BYTES (UINT64_C(1536) << 20)

/* One part of a file: a process at a time, and a journal. */
struct unit {
	const struct test_row *row;
	unsigned part, parts;
	const char *name; /* of its journal */
};

struct testing {
	const struct test_request *q;
	const struct run *run;
	struct arena arena;
	struct unit *units;
	size_t count, cap;
	unsigned workers, threads;
	uint64_t memory;       /* for each */
	pthread_mutex_t mutex; /* of all below, and of the log */
	size_t done, tests, failed;
	json_t *files;
};

int tests_check_needs(const struct test_request *q, const struct run *run, struct arena *a,
		      struct err *e)
{
	AUTO_BUF struct buf out = {0};
	struct strlist argv = {0}, modules = {0}, packages = {0};

	strlist_ref(&argv, a, q->python);
	strlist_ref(&argv, a, "-c");
	strlist_ref(&argv, a,
		    "import importlib.util, sys\nfor i, m in enumerate(sys.argv[1:]):\n"
		    "  if not importlib.util.find_spec(m): print(i)");
	for (unsigned i = 0; i < q->tests->needs_count; i++)
		strlist_ref(&argv, a, q->tests->needs[i].module);
	if (sandbox_capture(q->sandbox, strlist_argv(&argv, a), run, &out, e) < 0)
		return -1;
	for (char *rest = out.data, *line; out.len && (line = strsep(&rest, "\n"));) {
		size_t i = strtoul(line, NULL, 10);
		if (!*line || i >= q->tests->needs_count)
			continue;
		strlist_ref(&modules, a, q->tests->needs[i].module);
		strlist_ref(&packages, a, q->tests->needs[i].debian);
	}

	if (modules.count == 0)
		return 0;
	const struct root *root = q->sandbox->root;
	err_set(e, ERR_SYSTEM, "the tests need Python modules that the root lacks: %s",
		strlist_join(&modules, a, ", "));
	const char *fix = root_world_fix(root, a);
	return err_hint(e, "%s",
			fix ? fix : root_install(root, false, strlist_join(&packages, a, " "), a));
}

/* ---- what to run ---- */

static unsigned longer(const struct testing *t, unsigned time)
{
	return t->q->slower ? time * t->q->slower / 100 : time;
}

static unsigned limit_of(const struct test_row *r)
{
	return r->limit ? r->limit : TEST_LIMIT_S;
}

static unsigned minutes_of(const struct test_row *r)
{
	return r->minutes ? r->minutes : TEST_MINUTES;
}

static void add_row(struct testing *t, const struct test_row *row, size_t *index)
{
	bool full = strcmp(t->q->level, "full") == 0;
	unsigned parts = row->parts ? row->parts : 1;
	struct test_row *r = arena_alloc(&t->arena, sizeof(*r));

	*r = *row;
	r->limit = longer(t, limit_of(row));
	r->minutes = longer(t, minutes_of(row));
	if (full) {
		r->select_count = 0;
		r->sample = 1;
	}

	/* The file, and other inputs of a row's outcomes: a changed row begins again. */
	AUTO_BUF struct buf text = {0};
	char digest[DIGEST_HEX_LEN + 1];
	char *flat = arena_strdup(&t->arena, r->file);
	for (char *s = flat; *s; s++)
		*s = (char)(*s == '/' ? '.' : *s);
	buf_printf(&text, "%u %u\n", r->sample, limit_of(r));
	for (unsigned i = 0; i < r->select_count; i++)
		buf_printf(&text, "%s\n", r->select[i]);
	digest_data(buf_cstr(&text), text.len, digest);
	const char *name = arena_printf(&t->arena, "%s.%.8s", flat, digest);
	for (unsigned i = 0; i < parts; i++, ++*index) {
		if (t->q->shards && *index % t->q->shards != t->q->shard - 1)
			continue;
		t->units =
			arena_room(&t->arena, t->units, t->count, &t->cap, 64, sizeof(*t->units));
		t->units[t->count++] = (struct unit){
			r, i, parts, arena_printf(&t->arena, "%s.%uof%u", name, i + 1, parts)};
	}
}

static bool has_file(const struct test_package *p, size_t before, const char *file)
{
	return text_search(file, p->files, before, sizeof(*p->files));
}

/* Adds the rows of the level; at level full also every file of tests in the directory. */
static int add_units(struct testing *t, struct err *e)
{
	const struct test_package *p = t->q->tests;
	bool full = strcmp(t->q->level, "full") == 0;
	struct strlist names = {0};
	size_t index = 0;

	/* A row may name a removed file; the runner reports rows of removed tests. */
	for (unsigned i = 0; i < p->expected_count; i++) {
		const char *file = arena_strndup(&t->arena, p->expected[i].test,
						 strcspn(p->expected[i].test, ":"));
		if (!fs_exists(t->q->src, path_join(&t->arena, p->dir, file)))
			return err_set(
				e, ERR_CONFIG,
				"'%s' is expected to fail, but the source has no file '%s/%s'",
				p->expected[i].test, p->dir, file);
	}

	for (unsigned i = 0; i < p->files_count; i++)
		if (test_row_in(&p->files[i], t->q->level) &&
		    !(full && has_file(p, i, p->files[i].file)))
			add_row(t, &p->files[i], &index);
	if (full && fs_list(t->q->src, p->dir, &t->arena, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		struct test_row r = {.file = names.items[i]};
		if (strncmp(r.file, "test_", 5) == 0 && path_has_suffix(r.file, ".py") &&
		    !has_file(p, p->files_count, r.file))
			add_row(t, &r, &index);
	}

	return 0;
}

/* ---- one part ---- */

/* A unit that runs, and how its last process ended. */
struct running {
	struct testing *t;
	const struct unit *unit;
	struct arena *arena;
	const char *journal; /* the name of its file */
	int status;
	bool late; /* the time of the unit's file was over */
};

static int read_journal(const struct running *x, struct test_journal *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct arena *a = x->arena;
	const char *top = x->t->q->results_dir, *name = x->journal;

	if (fs_exists(top, name) && fs_read(top, name, JOURNAL_MAX, &text, e) < 0)
		return -1;
	return test_journal_parse(
		&(struct file_bytes){buf_cstr(&text), text.len, path_join(a, top, name)}, a, ret,
		e);
}

static int add_to_journal(const struct running *x, json_t *row, struct err *e)
{
	AUTO_JSON json_t *owned = row;
	AUTO_FREE char *line = json_dumps(owned, JSON_COMPACT);
	AUTO_BUF struct buf text = {0};
	AUTO_FD int fd = fs_append(x->t->q->results_dir, x->journal, e);

	buf_printf(&text, "%s\n", line ? line : "{}");
	return fd < 0 ? -1 : fs_write_all(fd, text.data, text.len, x->journal, e);
}

/* That the time of a unit's file was over, in words. `open`: the test that ran then, or NULL. */
static const char *late_text(const struct unit *u, const char *open, struct arena *a)
{
	const unsigned minutes = minutes_of(u->row);

	if (open)
		return arena_printf(a, "not done in %u minutes; the last test was %s", minutes,
				    open);
	return arena_printf(a, "not done in %u minutes", minutes);
}

/* After a process: its journal, with the verdict on a test that it did not come back from. */
static int close_journal(const struct running *x, struct test_journal *ret, struct err *e)
{
	const struct unit *u = x->unit;
	struct arena *a = x->arena;
	const int status = x->status;
	struct test_journal j;

	if (read_journal(x, &j, e) < 0)
		return -1;
	if (j.done) {
		*ret = j;
		return 0;
	}

	const char *open = j.open;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - j.open_at;
	json_decref(j.tests);
	if (open && !x->late) {
		bool timeout = seconds >= limit_of(u->row);
		if (add_to_journal(
			    x,
			    json_pack(
				    "{s:s, s:s, s:f, s:o}", "test", open, "outcome",
				    timeout ? "timeout" : "crashed", "seconds", seconds, "detail",
				    json_string(
					    timeout ? arena_printf(a, "not done in %u s",
								   limit_of(u->row))
						    : arena_printf(
							      a, "the process ended with status %d",
							      status))),
			    e) < 0)
			return -1;
	} else if (x->late || status != 0) {
		const char *why =
			x->late ? late_text(u, open, a)
				: arena_printf(a, "the process ended with status %d", status);
		if (add_to_journal(x, json_pack("{s:s}", "error", why), e) < 0)
			return -1;
	}

	return read_journal(x, ret, e);
}

static int run_process(struct running *x, double timeout, struct err *e)
{
	const struct testing *t = x->t;
	const struct unit *u = x->unit;
	struct arena *a = x->arena;
	struct sandbox s;
	json_t *expected = json_array();

	for (unsigned i = 0; i < t->q->tests->expected_count; i++)
		json_array_append_new(expected, json_string(t->q->tests->expected[i].test));
	AUTO_JSON json_t *o = json_pack(
		"{s:s, s:o, s:o, s:i, s:i, s:i, s:i, s:I, s:s}", "file", u->row->file, "select",
		json_from_strings(u->row->select, u->row->select_count), "expected", expected,
		"sample", u->row->sample ? (int)u->row->sample : 1, "part", (int)u->part, "parts",
		(int)u->parts, "limit", (int)limit_of(u->row), "memory", (json_int_t)t->memory,
		"journal", arena_printf(a, RESULTS "/%s.jsonl", u->name));
	AUTO_FREE char *text = json_dumps(o, JSON_COMPACT);
	const char *argv[] = {t->q->python, RUNNER "/run_tests.py", text, NULL};
	struct proc_spec spec = {.log_top = t->q->results_dir,
				 .log_path = arena_printf(a, "%s.log", u->name),
				 .timeout_s = timeout};
	struct proc_result res;
	double start = log_seconds();
	sandbox_copy(t->q->sandbox, a, &s);
	kvlist_set(&s.env, a, "OMP_NUM_THREADS", arena_printf(a, "%u", t->threads));
	kvlist_set(&s.env, a, "PYTHONDONTWRITEBYTECODE", "1");
	/* its words would hide the failure's */
	kvlist_set(&s.env, a, "PYTORCH_PRINT_REPRO_ON_FAILURE", "0");
	sandbox_add(&s, SANDBOX_RW, t->q->src, SANDBOX_SRC);
	sandbox_add(&s, SANDBOX_RO, t->q->runner_dir, RUNNER);
	sandbox_add(&s, SANDBOX_RW, t->q->results_dir, RESULTS);
	s.cwd = path_join(a, SANDBOX_SRC, t->q->tests->dir);
	int rc = sandbox_run(&s, argv, &spec, t->run, &res, e);
	x->late = rc < 0 && e->kind == ERR_SYSTEM && log_seconds() - start >= timeout;
	x->status = rc < 0 ? 1 : res.status;
	return x->late ? 0 : rc;
}

/* One process after the other, until the journal says that nothing is left. */
static int run_unit(struct running *x, struct test_journal *ret, struct err *e)
{
	const struct unit *u = x->unit;
	double limit = 60.0 * minutes_of(u->row), start = log_seconds();

	x->journal = arena_printf(x->arena, "%s.jsonl", u->name);
	if (read_journal(x, ret, e) < 0)
		return -1;
	while (!ret->done) {
		double left = limit - (log_seconds() - start);
		size_t before = ret->lines;
		json_decref(ret->tests);
		ret->tests = NULL;
		if (run_check(x->t->run, e) < 0 || run_process(x, left > 1 ? left : 1, e) < 0)
			return -1;
		if (close_journal(x, ret, e) < 0)
			return -1;
		if (ret->lines == before) /* the caller drops what there is */
			return err_set(e, ERR_INTEGRITY, "the runner of '%s' said nothing",
				       u->row->file);
	}

	return 0;
}

/* ---- all of them ---- */

static int run_one(unsigned thread, size_t i, void *user, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct testing *t = user;
	const struct unit *u = &t->units[i];
	struct test_journal j = {0};

	(void)thread;
	struct running x = {.t = t, .unit = u, .arena = &a};
	int rc = run_unit(&x, &j, e);
	pthread_mutex_lock(&t->mutex);
	if (rc == 0) {
		const char *name;
		json_t *result, *file = json_object_get(t->files, u->row->file);
		if (!file)
			json_object_set_new(t->files, u->row->file, file = json_object());
		json_object_foreach(j.tests, name, result)
		{
			const char *outcome = json_member(result, "outcome");
			bool failed =
				strcmp(outcome, "passed") != 0 && strcmp(outcome, "skipped") != 0;
			t->tests++;
			t->failed += failed &&
				     !test_expected(t->q->tests,
						    arena_printf(&a, "%s::%s", u->row->file, name));
		}

		json_object_update(file, j.tests);
		t->done++;
	}

	log_status(t->run->log, "tests: %zu/%zu parts, %zu tests, %zu failed unexpectedly; %s",
		   t->done, t->count, t->tests, t->failed, u->row->file);
	pthread_mutex_unlock(&t->mutex);
	json_decref(j.tests);
	return rc;
}

int tests_run(const struct test_request *q, const struct run *run, json_t **ret, struct err *e)
{
	struct testing t = {
		.q = q, .run = run, .mutex = PTHREAD_MUTEX_INITIALIZER, .files = json_object()};
	int rc = add_units(&t, e);
	unsigned processors = machine_processors(), n = t.q->jobs ? t.q->jobs : processors;
	uint64_t fit = machine_memory() / PROCESS_BYTES;

	if (!t.q->jobs && fit < n)
		n = fit ? (unsigned)fit : 1;
	t.workers = n < t.count ? n : (unsigned)t.count;
	t.memory = machine_memory() / (t.workers + 1);
	t.threads = t.workers && processors / t.workers > 1 ? processors / t.workers : 1;
	if (rc == 0)
		rc = thread_items(t.workers, t.count, NULL, run, run_one, &t, e);
	log_status_end(run->log);
	if (rc == 0)
		*ret = t.files;
	else
		json_decref(t.files);
	arena_release(&t.arena);
	return rc;
}

static const char *const outcomes[] = {"passed",  "skipped", "failed",
				       "crashed", "timeout", "stale"};

/* How a test ended. */
struct outcome {
	const char *word, *detail;
	double seconds;
};

static void add_outcome(json_t *tests, const char *name, const struct outcome *o)
{
	json_int_t tries =
		json_integer_value(json_object_get(json_object_get(tests, name), "tries"));

	json_object_set_new(tests, name,
			    json_pack("{s:s, s:f, s:s, s:I}", "outcome", o->word, "seconds",
				      o->seconds, "detail", o->detail, "tries", tries + 1));
}

/* The name of the complete file, where a test's name is expected. */
#define WHOLE "(file)"

/* One line; NULL if it is right, else what is wrong with it. */
static const char *add_line(const json_t *row, struct arena *a, struct test_journal *j)
{
	const char *begin = json_member(row, "begin");
	const char *test = json_member(row, "test");
	const char *error = json_member(row, "error");
	const char *skipped = json_member(row, "skipped");

	if (begin) {
		j->open = arena_strdup(a, begin);
		j->open_at = json_number_value(json_object_get(row, "at"));
		j->done = false;
		return NULL;
	}

	if (test) {
		const char *outcome = json_member(row, "outcome");
		const char *detail = json_member(row, "detail");
		if (!outcome || !strings_contain(outcomes, ARRAY_LEN(outcomes), outcome))
			return "an outcome that is not known";
		const double seconds = json_number_value(json_object_get(row, "seconds"));
		add_outcome(j->tests, test,
			    &(struct outcome){outcome, detail ? detail : "", seconds});
		j->open = NULL;
		return NULL;
	}

	if (error || skipped)
		add_outcome(j->tests, WHOLE,
			    &(struct outcome){.word = error ? "failed" : "skipped",
					      .detail = error ? error : skipped});
	else if (!json_is_integer(json_object_get(row, "end")))
		return "neither a test nor an end";
	j->done = error || json_integer_value(json_object_get(row, "end")) == 0;
	return NULL;
}

int test_journal_parse(const struct file_bytes *in, struct arena *a, struct test_journal *ret,
		       struct err *e)
{
	const char *text = in->data;
	struct test_journal j = {.tests = json_object()};
	size_t line = 1;

	for (size_t at = 0; at < in->size; line++) {
		const char *end = memchr(text + at, '\n', in->size - at);
		if (!end)
			break;
		json_error_t why;
		json_t *row = json_loadb(text + at, (size_t)(end - (text + at)),
					 JSON_REJECT_DUPLICATES, &why);
		const char *wrong = json_is_object(row) ? add_line(row, a, &j) : "not an object";
		json_decref(row);
		if (wrong) {
			json_decref(j.tests);
			err_set(e, ERR_INTEGRITY, "%s:%zu: %s", in->name, line, wrong);
			return err_hint(e, "'--again' begins from scratch");
		}

		at = (size_t)(end - text) + 1;
	}

	j.lines = line - 1;
	*ret = j;
	return 0;
}
