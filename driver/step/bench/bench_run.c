#include <fnmatch.h>

#include "base/sys/json.h"
#include "step/bench/bench.h"

#define SCRIPTS SANDBOX_TOP "/bench"
#define TICK_S 0.1
/* For what is not a workload, at least. A first import reads some gigabytes from the disk and compiles a thousand
 * files. */
#define IMPORT_S 900.0

static const char *const sides[] = {"the wheel", "the other"};

struct benching {
	const struct bench_request *q;
	const struct run *run;
	struct arena *arena;
	struct strlist given_up; /* failed in a run: not tried again */
	double load;
	bool disturbed;
};

/* What a process is started for. */
struct turn {
	enum bench_side side;
	unsigned threads;
	struct strlist skip; /* names that it is not asked for */
	bool probe;
};

/* One process. */
struct process {
	struct bench_said *said;
	size_t answers; /* and open: those at `since` */
	const char *open;
	double since, limit;
	bool late;
};

static void on_line(const char *line, size_t len, void *user)
{
	struct process *p = user;
	bench_said_line(p->said, line, len);
	if (p->open == p->said->open && p->answers == p->said->count)
		return;
	p->open = p->said->open;
	p->answers = p->said->count;
	p->since = log_seconds();
}

static int on_tick(pid_t pid, void *user, struct err *e)
{
	struct process *p = user;
	(void)pid;
	double limit = p->said->open || p->limit > IMPORT_S ? p->limit : IMPORT_S;
	if (log_seconds() - p->since < limit)
		return 0;
	p->late = true;
	return err_set(e, ERR_SYSTEM, "not done in %.0f s", limit);
}

/* *late: it timed out. */
static int start(const struct benching *b, const struct turn *t, struct bench_said *said, struct proc_result *res,
		 bool *late, struct err *e)
{
	static const char script[] = SCRIPTS "/run_workloads.py";
	static const char *const variables[] = {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"};
	AUTO_ARENA struct arena a = {0};
	struct sandbox s;
	struct process p = {.said = said, .answers = said->count, .since = log_seconds(), .limit = b->q->limit};
	struct proc_spec spec = {.on_line = on_line, .user = &p, .on_tick = on_tick, .tick_user = &p, .tick_s = TICK_S};
	json_t *processors = json_array();
	for (unsigned i = 0; b->q->processors && i < t->threads; i++)
		json_array_append_new(processors, json_integer(b->q->processors[i]));
	AUTO_JSON json_t *o =
		json_pack("{s:o, s:o, s:i, s:o, s:f, s:s, s:b}", "only", json_from_strlist(&b->q->only), "skip",
			  json_from_strlist(&t->skip), "threads", (int)t->threads, "processors", processors, "seconds",
			  b->q->seconds, "device", b->q->device, "probe", t->probe);
	AUTO_FREE char *text = json_dumps(o, JSON_COMPACT);
	const char *argv[] = {b->q->python, "-I", script, text, NULL};
	sandbox_copy(b->q->sandboxes[t->side], &a, &s);
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		kvlist_set(&s.env, &a, variables[i], arena_printf(&a, "%u", t->threads));
	sandbox_add(&s, SANDBOX_RO, b->q->scripts_dir, SCRIPTS);
	int rc = sandbox_run(&s, argv, &spec, b->run, res, e);
	/* A signal to all of a group ends it before it is seen here. */
	if (rc == 0 && run_check(b->run, e) < 0)
		return -1;
	*late = rc < 0 && p.late && e->kind == ERR_SYSTEM;
	if (!*late)
		return rc;
	err_clear(e);
	return 0;
}

static int words_of(const struct bench_said *said, const char *what, enum bench_side side, int status, struct err *e)
{
	return err_set(e, err_kind_of_words(said->words, ERR_POLICY), "%s torch %s (status %d): %s",
		       side == BENCH_OURS ? "the wheel's" : "the other", what, status,
		       *said->words ? said->words : "it said nothing");
}

static int wrong_line(const struct bench_said *said, enum bench_side side, struct err *e)
{
	return err_set(e, ERR_INTEGRITY, "what the workloads of %s printed cannot be read: %s", sides[side],
		       said->wrong);
}

/* Whether both import, and what they are. Nothing is measured. */
static int probe(struct benching *b, enum bench_side side, struct bench_result *r, struct err *e)
{
	struct bench_said said = {.arena = b->arena};
	const struct turn t = {.side = side, .threads = b->q->threads[0], .probe = true};
	struct proc_result res = {0};
	bool late;
	log_stage(b->run->log, "bench: %s is imported", sides[side]);
	if (start(b, &t, &said, &res, &late, e) < 0)
		return -1;
	if (said.wrong)
		return wrong_line(&said, side, e);
	if (late || res.status != 0 || !said.done || !said.torch)
		return words_of(&said, "does not import", side, res.status, e);
	if (strcmp(b->q->device, "cuda") == 0 && !said.cuda) {
		err_set(e, ERR_POLICY, "torch %s of %s has no CUDA device here", said.torch, sides[side]);
		return err_hint(e, "nvidia-smi says whether the driver has one");
	}
	r->torch[side] = said.torch;
	r->cpu[side] = said.cpu;
	return 0;
}

int bench_choose(struct bench_request *q, const struct strlist *names, struct arena *a, struct err *e)
{
	struct strlist chosen = {0};
	for (size_t k = 0; k < q->only.count; k++) {
		bool used = false;
		for (size_t i = 0; i < names->count; i++)
			if (fnmatch(q->only.items[k], names->items[i], 0) == 0) {
				used = true;
				strlist_once(&chosen, a, names->items[i]);
			}
		if (used)
			continue;
		err_set(e, ERR_USAGE, "--only: no workload is called '%s'", q->only.items[k]);
		return err_hint(e, "they are in '%s/workloads.py'; a pattern: --only 'gemm*'", q->scripts_dir);
	}
	q->only = chosen;
	return 0;
}

static const char *end_of(const struct benching *b, bool late, const struct proc_result *res)
{
	if (late)
		return arena_printf(b->arena, "not done in %.0f s", b->q->limit);
	/* bubblewrap gives the status that a shell would. */
	int sig = res->signal ? res->signal : res->status > 128 ? res->status - 128 : 0;
	return sig ? arena_printf(b->arena, "the process died of signal %d", sig)
		   : arena_printf(b->arena, "the process ended with status %d", res->status);
}

/* All workloads once. A process that does not come back from one is followed by another for the rest. */
static int run_once(struct benching *b, enum bench_side side, unsigned threads, struct bench_said *said, struct err *e)
{
	/* The average of a minute, in which these runs have no more than their threads. */
	double load;
	if (getloadavg(&load, 1) == 1) {
		b->load = load > b->load ? load : b->load;
		b->disturbed |= load > threads + 0.5;
	}
	while (!said->done) {
		struct proc_result res = {0};
		struct turn t = {.side = side, .threads = threads};
		bool late;
		size_t before = said->count;
		strlist_append(&t.skip, b->arena, &b->given_up);
		for (size_t i = 0; i < said->count; i++)
			strlist_ref(&t.skip, b->arena, said->answers[i].name);
		if (run_check(b->run, e) < 0 || start(b, &t, said, &res, &late, e) < 0)
			return -1;
		if (said->wrong)
			return wrong_line(said, side, e);
		if (!said->done)
			bench_said_close(said, end_of(b, late, &res));
		if (!said->done && said->count == before)
			return words_of(said, "ends before its workloads", side, res.status, e);
	}
	return 0;
}

static int run_set(struct benching *b, unsigned threads, json_t *sets, struct err *e)
{
	size_t count = (size_t)b->q->pairs * BENCH_SIDES;
	struct bench_said *all = arena_array(b->arena, count, sizeof(*all));
	const struct bench_said **runs = arena_array(b->arena, count, sizeof(const struct bench_said *));
	b->given_up = (struct strlist){0};
	for (unsigned p = 0; p < b->q->pairs; p++) {
		struct bench_said *pair = &all[(size_t)p * BENCH_SIDES];
		for (unsigned n = 0; n < BENCH_SIDES; n++) {
			enum bench_side side = (n == 1) != bench_other_first(p) ? BENCH_OTHER : BENCH_OURS;
			pair[side].arena = b->arena;
			runs[(size_t)p * BENCH_SIDES + side] = &pair[side];
			log_stage(b->run->log, "bench: %u thread%s, pair %u of %u, %s", threads,
				  threads == 1 ? "" : "s", p + 1, b->q->pairs, sides[side]);
			if (run_once(b, side, threads, &pair[side], e) < 0)
				return -1;
		}
		for (unsigned n = 0; n < BENCH_SIDES; n++) {
			/* What did not work on a side is not tried in later pairs: a time limit each would be long. */
			for (size_t i = 0; i < pair[n].count; i++)
				if (pair[n].answers[i].why)
					strlist_once(&b->given_up, b->arena, pair[n].answers[i].name);
		}
	}
	json_array_append_new(sets, bench_judge(runs, b->q->pairs, threads, b->q->processors, b->arena));
	return 0;
}

int bench_run(const struct bench_request *q, const struct run *run, struct arena *a, struct bench_result *ret,
	      struct err *e)
{
	struct benching b = {.q = q, .run = run, .arena = a, .load = -1};
	struct bench_result r = {.sets = json_array()};
	int rc = probe(&b, BENCH_OURS, &r, e);
	if (rc == 0)
		rc = probe(&b, BENCH_OTHER, &r, e);
	for (size_t i = 0; rc == 0 && i < q->threads_count; i++)
		rc = run_set(&b, q->threads[i], r.sets, e);
	log_status_end(run->log);
	r.load = b.load;
	r.disturbed = b.disturbed;
	if (rc < 0)
		json_decref(r.sets);
	else
		*ret = r;
	return rc;
}
