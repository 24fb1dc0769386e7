#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "step/bench/bench.h"

#define RUNS SANDBOX_TOP "/runs"
#define MARK "{\"bench\": "

/* Bytes that are kept of a process: of its answers, some hundred each, and the end of all else. */
enum { ANSWERS_MAX = 4 << 20, WORDS_MAX = 64 << 10, WORDS_KEPT = 4 << 10 };

struct output {
	struct buf *answers, *words;
};

static void on_line(const char *line, size_t len, void *user)
{
	const struct output *o = user;
	struct buf *words = o->words;

	if (len >= strlen(MARK) && memcmp(line, MARK, strlen(MARK)) == 0) {
		const bool room = o->answers->len + len < ANSWERS_MAX;
		buf_add(o->answers, line, room ? len : 0);
		buf_addc(o->answers, '\n');
		return;
	}

	const size_t kept = len < WORDS_KEPT ? len : WORDS_KEPT;
	buf_add(words, line + len - kept, kept);
	buf_addc(words, '\n');
	if (words->len < WORDS_MAX)
		return;
	memmove(words->data, words->data + words->len - WORDS_KEPT, WORDS_KEPT);
	words->len = WORDS_KEPT;
}

static enum err_kind kind_of(const json_t *answer, const char *text)
{
	const char *kind = json_text(answer, "kind");

	if (strcmp(kind, "usage") == 0)
		return ERR_USAGE;
	if (strcmp(kind, "policy") == 0)
		return err_kind_of_words(text, ERR_POLICY);
	return ERR_INTEGRITY;
}

/* What bench.py says next; a new reference. */
static int ask(const struct bench_request *q, json_t **ret, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf out = {0};
	AUTO_FREE char *asked = json_dumps(q->asked, JSON_COMPACT);
	static const char script[] = BENCH_SCRIPTS "/bench.py";
	const char *argv[] = {"python3", "-I", script, asked, q->runs_dir ? RUNS : NULL, NULL};
	struct sandbox s;
	json_error_t why;

	sandbox_copy(q->root, &a, &s);
	if (q->runs_dir)
		sandbox_add(&s, SANDBOX_RO, q->runs_dir, RUNS);
	if (sandbox_capture(&s, argv, q->run, &out, e) < 0)
		return err_wrap(e, "cannot tell which workload is next");
	AUTO_JSON json_t *answer = json_loadb(out.data, out.len, 0, &why);
	const char *error = json_member(answer, "error"), *hint = json_member(answer, "hint");
	const json_t *turn = json_object_get(answer, "turn");
	if (error) {
		err_set(e, kind_of(answer, error), "%s", error);
		return hint ? err_hint(e, "%s", hint) : -1;
	}

	if (!json_is_object(turn) && !json_is_object(json_object_get(answer, "document")))
		return err_set(e, ERR_INTEGRITY, "cannot read the answer of bench.py: %.100s",
			       buf_cstr(&out));
	*ret = json_incref(answer);
	return 0;
}

/* Runs a process; what it printed becomes file number `n`. */
static int run_turn(const struct bench_request *q, const json_t *turn, unsigned n, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf answers = {0};
	AUTO_BUF struct buf words = {0};
	struct output o = {&answers, &words};
	const enum bench_side side =
		json_int(turn, "side") == BENCH_OURS ? BENCH_OURS : BENCH_OTHER;
	const char *options = json_text(turn, "options"), *stage = json_text(turn, "stage");
	static const char script[] = BENCH_SCRIPTS "/run_workloads.py";
	const char *argv[] = {q->python, "-I", script, options, NULL};
	const double limit = json_number_value(json_object_get(turn, "limit"));
	const struct proc_spec spec = {.on_line = on_line, .user = &o, .timeout_s = limit};
	struct proc_result result = {0};
	struct sandbox s;

	sandbox_copy(q->sandboxes[side], &a, &s);
	sandbox_add(&s, SANDBOX_RO, q->scripts_dir, BENCH_SCRIPTS);
	if (*stage)
		log_stage(q->run->log, "%s", stage);
	/* A signal to all of a group ends it before it is seen here. */
	if (sandbox_run(&s, argv, &spec, q->run, &result, e) < 0 || run_check(q->run, e) < 0)
		return -1;
	buf_add(&answers, words.data, words.len);
	const char *name = arena_printf(&a, "%u.%d", n, result.status);
	return fs_write(q->runs_dir, name, answers.data, answers.len, 0644, e);
}

int bench_check(const struct bench_request *q, struct err *e)
{
	json_t *answer;

	if (ask(q, &answer, e) < 0)
		return -1;
	json_decref(answer);
	return 0;
}

int bench_run(const struct bench_request *q, json_t **ret, struct err *e)
{
	for (unsigned n = 0;; n++) {
		json_t *answer;
		if (ask(q, &answer, e) < 0)
			return -1;
		if (json_object_get(answer, "document")) {
			*ret = answer;
			return 0;
		}

		int rc = run_turn(q, json_object_get(answer, "turn"), n, e);
		json_decref(answer);
		if (rc < 0)
			return -1;
	}
}
