#include "step/bench/bench.h"
#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "cmd/select.h"
#include "core/wheel/wheel.h"
#include "step/pipeline/pipeline.h"
#include "step/watch/watch.h"

enum { PAIRS = 20, PAIRS_MAX = 1000, CLASS_MAX = 64, LIMIT_S = 120, THREADS_MAX = 1024 };
#define SECONDS 0.3
#define SECONDS_MAX 3600.0

struct bench_options {
	struct cmd_globals global;
	const char *against, *seconds, *page, *device, *machine_class;
	struct strlist threads, only, with;
	unsigned pairs, limit;
};

/* ---- the words ---- */

static int parse_seconds(const char *text, double *ret, struct err *e)
{
	char *end;

	*ret = SECONDS;
	if (!text)
		return 0;
	*ret = strtod(text, &end);
	bool is_number = *text >= '0' && *text <= '9' && !*end;
	if (is_number && *ret > 0 && *ret <= SECONDS_MAX)
		return 0;
	err_set(e, ERR_USAGE, "--seconds: not a number of seconds: '%s'", text);
	return err_hint(e, "for example --seconds 0.3");
}

/* Without the option one and two, as far as there are processors. */
static int parse_threads(const struct strlist *words, unsigned count, json_t *ret, struct err *e)
{
	for (size_t i = 0; i < words->count; i++) {
		const char *word = words->items[i];
		char *end;
		errno = 0;
		unsigned long value = strtoul(word, &end, 10);
		bool is_number = *word >= '0' && *word <= '9' && !*end;
		if (!is_number || errno || value == 0)
			return err_set(e, ERR_USAGE, "--threads: not a number of threads: '%s'",
				       word);
		if (value > count)
			return err_set(e, ERR_USAGE,
				       "--threads %s: this machine has %u processor%s", word, count,
				       count == 1 ? "" : "s");
		json_array_append_new(ret, json_integer((json_int_t)value));
	}

	for (unsigned i = 1; words->count == 0 && i <= 2 && i <= count; i++)
		json_array_append_new(ret, json_integer(i));
	return 0;
}

/* A name for tables: printable ASCII. */
static int check_class(const char *name, struct err *e)
{
	size_t len = name ? strlen(name) : 1;

	for (const char *at = name; at && *at; at++)
		if (*at < ' ' || *at > '~' || *at == '|')
			len = 0;
	if (len > 0 && len <= CLASS_MAX)
		return 0;
	err_set(e, ERR_USAGE, "--machine-class: not a name of up to %d characters", CLASS_MAX);
	return err_hint(e, "for example --machine-class 'Zen 5, 16 processors'");
}

/* ASKED of profiles/bench/bench.py, without the files; `ret` is an empty object. */
static int fill_request(struct cmd_context *c, json_t *ret, struct err *e)
{
	const struct bench_options *o = c->options;
	unsigned *list = arena_array(c->arena, THREADS_MAX, sizeof(*list));
	const unsigned count = machine_list_processors(list, THREADS_MAX);
	const unsigned pairs = o->pairs ? o->pairs : PAIRS, limit = o->limit ? o->limit : LIMIT_S;
	const char *device = o->device ? o->device : "cpu";
	json_t *processors = json_array(), *threads = json_array();
	double seconds = SECONDS;

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(processors, json_integer(list[i]));
	json_object_set_new(ret, "processors", processors);
	json_object_set_new(ret, "threads", threads);
	json_object_set_new(ret, "only", json_from_strlist(&o->only));
	json_object_set_new(ret, "pairs", json_integer(pairs));
	json_object_set_new(ret, "limit", json_integer(limit));
	json_object_set_new(ret, "device", json_string(device));
	if (check_class(o->machine_class, e) < 0)
		return -1;
	json_object_set_new(ret, "machine_class",
			    o->machine_class ? json_string(o->machine_class) : json_null());
	if (strcmp(device, "cuda") == 0 && cmd_sandbox(c) != SANDBOX_NONE) {
		err_set(e, ERR_USAGE, "--device cuda: the sandbox shows no GPU");
		return err_hint(e, "add --sandbox none");
	}

	if (pairs > PAIRS_MAX)
		return err_set(e, ERR_USAGE, "--pairs: at most %d", PAIRS_MAX);
	if (parse_seconds(o->seconds, &seconds, e) < 0)
		return -1;
	json_object_set_new(ret, "seconds", json_real(seconds));
	return parse_threads(&o->threads, count ? count : machine_processors(), threads, e);
}

static int need_wheel(struct cmd_context *c, const char *word, const char **ret, struct err *e)
{
	*ret = path_from_here(c->arena, word);
	return fs_exists(TRUSTED, *ret) ? 0 : err_set(e, ERR_USAGE, "no wheel '%s'", word);
}

static int find_wheels(struct cmd_context *c, const struct strlist *words, struct pair_request *b,
		       struct err *e)
{
	const struct bench_options *o = c->options;
	const char *path;

	if (words->count != 1 || !o->against) {
		err_set(e, ERR_USAGE, "bench needs one wheel, and another one to compare it with");
		return err_hint(e,
				"for example 'ptbuild bench dist/torch-*.whl --against official'");
	}

	bool official = strcmp(o->against, "official") == 0;
	if (official && c->global->offline) {
		err_set(e, ERR_USAGE,
			"--against official asks the Python index, which --offline forbids");
		return err_hint(e, "give the file of that wheel: --against FILE");
	}

	if (need_wheel(c, words->items[0], &b->wheels[BENCH_OURS], e) < 0)
		return -1;
	for (size_t i = 0; i < o->with.count; i++) {
		if (need_wheel(c, o->with.items[i], &path, e) < 0)
			return -1;
		strlist_ref(&b->beside, c->arena, path);
	}

	if (official)
		return 0;
	if (need_wheel(c, o->against, &b->wheels[BENCH_OTHER], e) < 0)
		return -1;
	return pair_check(b->wheels[BENCH_OURS], b->wheels[BENCH_OTHER], e);
}

/* ---- the GPU ---- */

/* A label that promises nothing is not judged: that wheel is tried. */
static int check_label(struct cmd_context *c, const char *wheel, const struct tables *t,
		       const struct hardware *h, struct err *e)
{
	const struct strlist none = {0};
	struct wheel_name n;
	struct promise p;
	struct runs_on r;
	struct fit fit;

	if (wheel_name_parse(wheel, c->arena, &n, e) < 0)
		return -1;
	const char *plus = strchr(n.version, '+');
	promise_of_label(t, plus ? plus + 1 : "", c->arena, &p);
	/* that of the official ones for the CPU */
	if (!p.gpu_known && !(plus && strcmp(plus, "+cpu") == 0))
		return 0;
	runs_on_of_wheel(t, &n, "", &p, &none, "", c->arena, &r);
	fit_gpu(&r, h, c->arena, &fit);
	if (!r.gpu.count)
		err_set(e, ERR_POLICY, "--device cuda: '%s' has no GPU code", path_base(wheel));
	else if (fit.verdict == FIT_NO)
		err_set(e, ERR_POLICY, "--device cuda: this machine cannot run '%s': %s",
			path_base(wheel), strlist_join(&fit.lacks, c->arena, "; "));
	else
		return 0;
	return err_hint(e, "that is by %s; --device cpu compares the code for processors", p.from);
}

/* What no driver or no code is there for: before gigabytes are fetched and installed. */
static int check_gpu(struct cmd_context *c, const struct pair_request *b, struct err *e)
{
	const struct hardware_facts *facts;
	const struct hardware *h;

	if (cmd_open(c, OPEN_TABLES, e) < 0 || cmd_machine(c, true, &facts, &h, e) < 0)
		return -1;
	if (!h->gpu_count) {
		err_set(e, ERR_POLICY, "--device cuda: this machine has no NVIDIA GPU%s%s",
			*h->gpu_trouble ? ": " : "", h->gpu_trouble);
		return err_hint(e, "run nvidia-smi to see whether the driver finds one");
	}

	for (size_t i = 0; i < BENCH_SIDES; i++)
		if (b->wheels[i] && check_label(c, b->wheels[i], c->tables, h, e) < 0)
			return -1;
	return 0;
}

/* ---- the results ---- */

static const struct show set_rows[] = {
	{.text = "\n{threads} thread{threads:s}, {pairs} pair{pairs:s}", .bold = true},
	{.each = "workloads",
	 .columns = {"workload={name}", ">the wheel={-wheel}", ">the other={-other}",
		     ">ratio={ratio:.2}", ">interval={-interval}", "verdict={-verdict}",
		     ">spread={-spread}", ">offset={-offsets}", "why={state}: {-reason}"}},
	SHOW("geometric mean of {compared}", "{geometric_mean:.2}"),
	SHOW("slower than the other", "{name} ({ratio:.2})", .each = "-lowest", .join = ", "),
	{0}};

static const struct show rows[] = {
	SHOW("the wheel", "{wheel.file} (torch {wheel.torch}[, code for {wheel.cpu}])"),
	SHOW("the other", "{other.file} (torch {other.torch}[, code for {other.cpu}])"),
	{.text = "at most {pairs} pair{pairs:s}, {seconds} s a workload, on the {-device}; a ratio "
		 "above 1: the wheel is faster"},
	{.each = "sets", .rows = set_rows},
	{0}};

static int show_results(struct cmd_context *c, json_t *doc, struct err *e)
{
	const struct bench_options *o = c->options;
	AUTO_BUF struct buf page = {0};

	report_bench(doc, &page);
	if (cmd_show(c, json_incref(doc), rows, e) < 0 ||
	    (o->page && fs_write(TRUSTED, o->page, page.data, page.len, 0644, e) < 0))
		return -1;
	if (json_is_true(json_object_get(doc, "disturbed")))
		log_warn(c->run->log,
			 "other programs used up to %.1f processors meanwhile, and the figures say "
			 "less",
			 json_number_value(json_object_get(doc, "load")));
	return 0;
}

static int run_bench(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	const struct bench_options *o = c->options;
	struct pipeline_request q = {.kind = cmd_sandbox(c)};
	struct pair_request b = {.run = c->run, .q = &q, .platform = machine_platform(c->arena)};
	AUTO_JSON json_t *asked = json_object();
	json_t *got;

	b.asked = asked;
	if (find_wheels(c, words, &b, e) < 0 || fill_request(c, asked, e) < 0)
		return -1;
	if (o->page && fs_can_write(o->page, e) < 0) /* rather than after minutes of measuring */
		return err_wrap(e, "--page");
	if (strcmp(json_text(asked, "device"), "cuda") == 0 && check_gpu(c, &b, e) < 0)
		return -1;
	q.fetch = *c->fetch;
	q.profiles_dir = c->profiles_dir;
	if (cmd_root(c, &q.root, e) < 0 || cmd_store(c, &q.store, e) < 0 ||
	    pair_bench(&b, c->arena, &got, e) < 0)
		return -1;
	AUTO_JSON json_t *results = got;
	const char *refused = json_member(results, "refused");
	if (show_results(c, json_object_get(results, "document"), e) < 0)
		return -1;
	return refused ? err_set(e, ERR_POLICY, "%s", refused) : 0;
}

#define OPTION(type, field) (type), offsetof(struct bench_options, field)

static const struct arg_def bench_options[] = {
	{"against", 0, OPTION(ARG_STRING, against), "WHEEL",
	 "the wheel to compare with, or official for that of the same version from the Python "
	 "index",
	 "<wheel>"},
	{"pairs", 0, OPTION(ARG_COUNT, pairs), "N",
	 "runs of each wheel, in turns, at most; fewer where they show enough (default: 20)", NULL},
	{"threads", 0, OPTION(ARG_LIST, threads), "LIST",
	 "threads, and processors to hold them to (default: 1,2)", NULL},
	{"only", 0, OPTION(ARG_LIST, only), "NAMES",
	 "only these workloads; patterns such as 'gemm*'", NULL},
	{"seconds", 0, OPTION(ARG_STRING, seconds), "S",
	 "time for each workload in a run (default: 0.3)", NULL},
	{"limit", 0, OPTION(ARG_COUNT, limit), "S",
	 "end a workload after this many seconds (default: 120)", NULL},
	{"device", 0, OPTION(ARG_STRING, device), "DEVICE",
	 "cpu (default), or cuda with --sandbox none", "cpu cuda"},
	{"machine-class", 0, OPTION(ARG_STRING, machine_class), "NAME",
	 "what kind of machine this is, for the JSON and tables of several", NULL},
	{"with", 0, OPTION(ARG_LIST, with), "WHEELS",
	 "wheels installed alongside both, for what they require", "<wheel>"},
	{"page", 0, OPTION(ARG_STRING, page), "FILE", "write the results as a page for a browser",
	 NULL},
	{0},
};

const struct command command_bench = {
	.name = "bench",
	.summary = "compare the speed of a torch wheel with that of another",
	.usage = "WHEEL --against WHEEL|official [OPTION...]",
	.tables = {bench_options},
	.arguments = {{"WHEEL", "the torch wheel to measure", "<wheel>"}},
	.options_size = sizeof(struct bench_options),
	.run = run_bench,
};
