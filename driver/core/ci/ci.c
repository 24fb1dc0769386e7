#include "core/ci/ci.h"

#include <fnmatch.h>

#include "base/sys/json.h"
#include "base/yaml/yaml.h"
#include "core/ci/ci_caches.h"

/* GPU objects depend on the GPU list alone, C++ objects on the instruction set
 * alone; a toolkit changes both, a Python version neither (but for a few units). */
static void fill_job(struct ci_job *j, const struct ci_choice *c, struct arena *a)
{
	const struct profile *p = &c->variant.profile;

	j->release = c->release->name;
	j->shard = "";
	j->python = c->variant.python;
	j->cuda = c->variant.cuda ? c->variant.cuda : "";
	j->gpu = profile_gpu_name(p, a);
	j->isa = p->isa ? p->isa->name : "";
	j->platform = p->platform;
	const char *base = arena_printf(a, "ptbuild-%s-%s%s%s", j->release, j->platform,
					*j->cuda ? "-cuda" : "", j->cuda);
	j->cpu_cache = arena_printf(a, "%s-%s", base, *j->isa ? j->isa : "mps");
	/* Names of caches take letters, digits, '.', '_' and '-' only. */
	struct strlist targets = {0};
	strlist_split(&targets, a, j->gpu, "+");
	j->gpu_cache = p->gpu == GPU_CUDA
			       ? arena_printf(a, "%s-%s", base, strlist_join(&targets, a, "-"))
			       : "";
}

/* Names of compiler caches; NULL: not asked for. */
struct cache_names {
	const char *cpu, *gpu;
};

/* Whether a job of these waves compiles one of them. False for "". */
static bool is_made(const struct ci_plan *p, struct cache_names n, unsigned first, unsigned last)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct ci_job *j = &p->jobs[i];
		if (j->wave < first || j->wave > last)
			continue;
		bool makes_cpu = n.cpu && j->makes_cpu && strcmp(j->cpu_cache, n.cpu) == 0;
		bool makes_gpu = n.gpu && j->makes_gpu && strcmp(j->gpu_cache, n.gpu) == 0;
		if (makes_cpu || makes_gpu)
			return true;
	}

	return false;
}

/* A job goes into this wave when nothing that it would
 * compile is compiled beside it. In the last wave nothing is. */
static bool add_to_wave(const struct ci_plan *p, struct ci_job *j, unsigned wave)
{
	const struct cache_names own_cpu = {.cpu = j->cpu_cache}, own_gpu = {.gpu = j->gpu_cache};
	bool cpu = !is_made(p, own_cpu, 1, wave - 1);
	bool gpu = *j->gpu_cache && !is_made(p, own_gpu, 1, wave - 1);

	if (!cpu && !gpu)
		return false;
	if (cpu && is_made(p, own_cpu, wave, wave))
		return false;
	if (gpu && is_made(p, own_gpu, wave, wave))
		return false;
	j->wave = wave;
	j->makes_cpu = cpu;
	j->makes_gpu = gpu;
	return true;
}

/* Wave 1 compiles instruction sets and GPU lists in pairs, each once. Each one that is left is
 * paired with a known one of the other kind, so wave 2 compiles only that. Wave 3 finds
 * everything. */
static void set_waves(struct ci_plan *p)
{
	bool more = p->count > 0;

	for (unsigned wave = 1; more; wave++) {
		more = false;
		for (size_t i = 0; i < p->count; i++)
			if (p->jobs[i].wave == 0 && add_to_wave(p, &p->jobs[i], wave))
				more = true;
		p->waves = more ? wave : p->waves;
	}

	for (size_t i = 0; i < p->count; i++)
		if (p->jobs[i].wave == 0)
			p->jobs[i].wave = p->waves + 1;
	for (size_t i = 0; i < p->count; i++)
		p->waves = p->jobs[i].wave > p->waves ? p->jobs[i].wave : p->waves;
}

/* By wave, then jobs with the same GPU code together,
 * then those with the same C++ code, then by name. */
static int by_sharing(const void *a, const void *b)
{
	const struct ci_job *x = a, *y = b;
	int order = (int)x->wave - (int)y->wave;

	if (!order)
		order = strcmp(x->gpu_cache, y->gpu_cache);
	if (!order)
		order = strcmp(x->cpu_cache, y->cpu_cache);
	if (!order)
		order = strcmp(x->variants.items[0], y->variants.items[0]);
	return order ? order : strcmp(x->id, y->id);
}

/* Labels are options of sbatch in a script for Slurm, and only there. */
static int check_labels(const struct ci_runner_row *r, const char *format, struct err *e)
{
	const enum ci_kind kind = ci_output(format)->kind;
	const bool slurm = kind == CI_SCRIPT, services = kind == CI_SERVICE;

	for (unsigned i = 0; (slurm || services) && i < r->labels_count; i++) {
		const char *label = r->labels[i];
		if (strcmp(label, "any") == 0 || ci_is_sbatch_label(label) == slurm)
			continue;
		if (services) {
			err_set(e, ERR_CONFIG,
				"'%s' of the runner map is an option of Slurm's sbatch, and the "
				"jobs are for %s",
				label, format);
			return err_hint(e,
					"write 'format: slurm' into its row, and add one for %s: "
					"{format: %s, labels: "
					"[self-hosted]}",
					format, format);
		}

		err_set(e, ERR_CONFIG, "'%s' is not an option of sbatch that a runner map may give",
			label);
		return err_hint(
			e,
			"write for example labels: [partition=long, constraint=avx512], or [any]");
	}

	return 0;
}

static int set_runner(struct ci_job *j, const struct ci_request *q, struct err *e)
{
	const char *variant = j->variants.items[0];

	j->runner = ci_runner(q->own ? q->own : q->tables, q->format, j->platform, variant);
	if (j->runner)
		return check_labels(j->runner, q->format, e);
	err_set(e, ERR_CONFIG, "no row of the runner map matches '%s' (%s)", variant, j->platform);
	return err_hint(e, "add a row to it: {match: \"%s\", labels: [...]}", variant);
}

static int set_collector(struct ci_plan *p, const struct ci_request *q, struct err *e)
{
	const struct ci_tables *map = q->own ? q->own : q->tables;
	const struct ci_job *last = p->count ? &p->jobs[p->count - 1] : NULL;

	if (!last)
		return 0;
	p->collector = ci_runner(map, q->format, last->platform, CI_COLLECT);
	p->collector = p->collector ? p->collector : last->runner;
	return check_labels(p->collector, q->format, e);
}

/* One job becomes its shards and the last, which alone builds what is built against the torch. */
static void add_shards(const struct ci_plan *p, const struct ci_job *whole, struct ci_plan *to,
		       struct arena *a)
{
	for (unsigned i = 1; i <= p->shards; i++) {
		struct ci_job *j = &to->jobs[to->count++];
		*j = *whole;
		j->variants = (struct strlist){0};
		strlist_ref(&j->variants, a, whole->variants.items[0]);
		j->shard = arena_printf(a, "%u/%u", i, p->shards);
		j->shards = p->shards;
		j->wave = whole->wave * 2 - 1;
	}

	to->jobs[to->count] = *whole;
	to->jobs[to->count].shard = "last";
	to->jobs[to->count++].wave = whole->wave * 2;
}

static void share_out(struct ci_plan *p, struct arena *a)
{
	struct ci_plan out = *p;

	out.jobs = arena_array(a, p->count * (p->shards + 1), sizeof(*out.jobs));
	out.count = 0;
	for (size_t i = 0; i < p->count; i++) {
		if (p->jobs[i].shares && (p->jobs[i].makes_cpu || p->jobs[i].makes_gpu)) {
			add_shards(p, &p->jobs[i], &out, a);
			continue;
		}

		out.jobs[out.count] = p->jobs[i];
		out.jobs[out.count++].wave = p->jobs[i].wave * 2;
	}

	out.waves = p->waves * 2;
	/* Waves without any job are left out. */
	unsigned next = 1;
	for (unsigned wave = 1; wave <= out.waves; wave++) {
		bool used = false;
		for (size_t i = 0; i < out.count; i++) {
			used = used || out.jobs[i].wave == wave;
			out.jobs[i].wave = out.jobs[i].wave == wave ? next : out.jobs[i].wave;
		}

		next += used;
	}

	out.waves = next - 1;
	*p = out;
}

/* Whether a job with this profile builds the release, Python, CUDA and profile of a choice. */
static bool is_job_of(const struct ci_job *j, const char *profile, const struct ci_choice *c)
{
	const struct variant *v = &c->variant;
	const char *cuda = v->cuda ? v->cuda : "";

	if (strcmp(j->release, c->release->name) != 0 || strcmp(j->python, v->python) != 0)
		return false;
	return strcmp(j->cuda, cuda) == 0 && strcmp(profile, v->profile.name) == 0;
}

/* FNV-1a: texts with different marks differ. A matrix may have ten thousand jobs, whose names begin
 * alike: comparing each with each takes most of the time. */
static uint64_t mark_of(const char *text, uint64_t before)
{
	uint64_t mark = before ^ UINT64_C(0xcbf29ce484222325);

	for (const char *p = text; *p; p++)
		mark = (mark ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
	return mark;
}

/* What is_job_of compares of each job so far, and its mark. */
struct known_jobs {
	const char **profiles;
	uint64_t *marks;
};

static void add_choice(struct ci_plan *p, const struct ci_choice *c, const struct known_jobs *known,
		       struct arena *a)
{
	const struct variant *v = &c->variant;
	const char *variant = variant_name(v, a);
	uint64_t mark = mark_of(v->python, mark_of(c->release->name, 0));
	size_t at = 0;

	mark = mark_of(v->profile.name, mark_of(v->cuda ? v->cuda : "", mark));
	while (at < p->count &&
	       (known->marks[at] != mark || !is_job_of(&p->jobs[at], known->profiles[at], c)))
		at++;
	if (at == p->count) {
		known->profiles[at] = v->profile.name;
		known->marks[at] = mark;
		p->count++;
		fill_job(&p->jobs[at], c, a);
	}

	p->jobs[at].shares = p->jobs[at].shares || c->shares;
	p->jobs[at].world = c->world > p->jobs[at].world ? c->world : p->jobs[at].world;
	if (!p->jobs[at].files.world)
		p->jobs[at].files = c->files;
	strlist_once(&p->jobs[at].variants, a, variant);
}

static void add_words(struct strlist *to, struct arena *a, const char *option, const char *value)
{
	if (!value)
		return;
	strlist_ref(to, a, option);
	strlist_ref(to, a, value);
}

/* Options hold no blanks within words. Where a script knows
 * the places of its jobs, they are no words of these. */
static void name_job(struct ci_plan *p, size_t at, uint64_t *marks, bool places, struct arena *a)
{
	struct ci_job *j = &p->jobs[at];
	const char *name = j->variants.items[0];
	bool taken = false;

	marks[at] = mark_of(name, 0);
	for (size_t i = 0; i < at && !taken; i++)
		taken = marks[i] == marks[at] && strcmp(p->jobs[i].id, name) == 0;
	j->id = taken ? arena_printf(a, "%s-%s", name, j->release) : name;
	if (j->shards)
		j->id = arena_printf(a, "%s-shard-%.*s-of-%u", j->id, (int)strcspn(j->shard, "/"),
				     j->shard, j->shards);
	strlist_ref(&j->argv, a, "ptbuild");
	strlist_ref(&j->argv, a, "build");
	strlist_append(&j->argv, a, &j->variants);
	add_words(&j->argv, a, "--release", j->release);
	strlist_split(&j->argv, a, p->options, " ");
	add_words(&j->argv, a, "--shard", *j->shard ? j->shard : NULL);
	add_words(&j->argv, a, "--ccache-remote", p->remote);
	if (places) {
		add_words(&j->argv, a, "--cache", p->store);
		add_words(&j->argv, a, "--out", p->out);
	}

	j->command = shell_line(j->argv.items, j->argv.count, a);
}

int ci_plan_make(const struct ci_request *q, struct arena *a, struct ci_plan *ret, struct err *e)
{
	const bool script = ci_output(q->format)->kind == CI_SCRIPT;
	struct ci_plan p = *ret;

	p.tables = q->tables;
	p.jobs = arena_array(a, q->count, sizeof(*p.jobs));
	const struct known_jobs known = {arena_array(a, q->count, sizeof(*known.profiles)),
					 arena_array(a, q->count, sizeof(*known.marks))};
	for (size_t k = 0; k < TABLES_PACKAGES; k++)
		for (size_t i = 0; i < q->count; i++)
			if (strcmp(q->choices[i].variant.package, tables_packages[k]) == 0)
				add_choice(&p, &q->choices[i], &known, a);
	set_waves(&p);
	if (p.shards > 1)
		share_out(&p, a);
	uint64_t *marks = arena_array(a, p.count, sizeof(*marks));
	for (size_t i = 0; i < p.count; i++) {
		name_job(&p, i, marks, !script, a);
		if (set_runner(&p.jobs[i], q, e) < 0)
			return -1;
	}

	for (size_t i = 0; i < p.count; i++)
		p.has_cuda = p.has_cuda || *p.jobs[i].cuda;
	array_sort(p.jobs, p.count, sizeof(*p.jobs), by_sharing);
	ci_keep_files(&p, q->format, a);
	if (script && set_collector(&p, q, e) < 0)
		return -1;
	*ret = p;
	return 0;
}

char *ci_build(const struct ci_plan *p, const char *format, struct arena *a)
{
	const char *how = p->remote ? " --ccache-remote " : " --ccache-size ";
	return arena_printf(a, "%s%s%s --cache " CI_STORE " --out dist", p->options, how,
			    p->remote ? p->remote : ci_format(p->tables, format)->cache);
}

json_t *ci_labels(const struct ci_runner_row *r)
{
	return json_from_strings(r->labels, r->labels_count);
}

static bool is_count(const char *s)
{
	const size_t n = strlen(s);
	return *s != '0' && n && n <= 6 && strspn(s, "0123456789") == n;
}

static bool is_commit(const char *s)
{
	return strlen(s) == 40 && strspn(s, "0123456789abcdef") == 40;
}

/* Labels go into files that services read: plain words only. */
static bool is_label(const char *s)
{
	return strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:+/"
			 "=@&|,*()[] ") == strlen(s);
}

static bool is_package(const char *s)
{
	return *s && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789+.-") == strlen(s);
}

#define PLATFORM_WORDS "x86_64-linux aarch64-linux aarch64-darwin"

#define F struct ci_format_row
PLAIN(format, F, NEED(F, name), NEED(F, jobs, .good = is_count, .is = "a number of jobs"),
      NEED(F, minutes, .good = is_count, .is = "a number of minutes"),
      NEED(F, cache, .check = yaml_size),
      MAY(F, cpus, .good = is_count, .is = "a number of processors"),
      MAY(F, own, .good = is_label, .is = "a runner label"), MAY(F, caches, .check = yaml_size),
      MAY(F, files, .check = yaml_size),
      MAY(F, attests, .good = is_count, .is = "a number of files"));

#define M struct ci_machine_row
PLAIN(machine, M, NEED(M, label, .good = is_label, .is = "a runner label"), NEED(M, format),
      NEED(M, platform, .words = PLATFORM_WORDS),
      NEED(M, cpus, .good = is_count, .is = "a number of processors"),
      NEED(M, disk, .check = yaml_size),
      NEED(M, minutes, .good = is_count, .is = "a number of minutes"));

#define A struct ci_action_row
PLAIN(action, A, NEED(A, name), NEED(A, uses), NEED(A, commit, .good = is_commit, .is = "a commit"),
      NEED(A, version));

#define R struct ci_runner_row
PLAIN(runner, R, MAY(R, match), MAY(R, platform, .words = PLATFORM_WORDS),
      MAY(R, format, .words = "table json github gitlab slurm kubernetes"),
      MAY(R, minutes, .good = is_count, .is = "a number of minutes"),
      MAY(R, cpus, .good = is_count, .is = "a number of processors"),
      MAY(R, disk, .check = yaml_size), MAY(R, mem, .check = yaml_size),
      NEED_LIST(R, labels, .good = is_label, .is = "a runner label"));

/* A user's map has runners alone. */
#define T struct ci_tables
PLAIN(map, T, NEED_ROWS(T, runners, runner));
PLAIN(table, T, ROWS(T, formats, format, .need = true), NEED(T, image),
      LIST(T, wheel_packages, .good = is_package, .is = "a package"), ROWS(T, machines, machine),
      ROWS(T, actions, action, .need = true), NEED_ROWS(T, runners, runner));

/* NULL: an error. */
static const struct ci_tables *load(const char *path, const struct yaml_schema *schema,
				    struct arena *a, struct err *e)
{
	struct ci_tables *t = arena_alloc(a, sizeof(*t));

	return yaml_load(path, schema, a, t, NULL, e) < 0 ? NULL : t;
}

int ci_tables_load(const char *profiles_dir, struct arena *a, const struct ci_tables **ret,
		   struct err *e)
{
	*ret = load(path_join(a, profiles_dir, "ci.yaml"), &table_schema, a, e);
	return *ret ? 0 : -1;
}

int ci_runners_load(const char *path, struct arena *a, const struct ci_tables **ret, struct err *e)
{
	*ret = load(path, &map_schema, a, e);
	return *ret ? 0 : -1;
}

const struct ci_format_row *ci_format(const struct ci_tables *t, const char *format)
{
	return text_search(format, t->formats, t->formats_count, sizeof(*t->formats));
}

static bool fits(const char *own, const char *asked)
{
	return !*own || strcmp(own, asked) == 0;
}

const struct ci_runner_row *ci_runner(const struct ci_tables *t, const char *format,
				      const char *platform, const char *variant)
{
	for (unsigned i = 0; i < t->runners_count; i++) {
		const struct ci_runner_row *r = &t->runners[i];
		if (fits(r->format, format) && fits(r->platform, platform) &&
		    (!*r->match || fnmatch(r->match, variant, 0) == 0))
			return r;
	}

	return NULL;
}

/* NULL: not one of the service's. */
static const struct ci_machine_row *machine_of(const struct ci_tables *t, const char *format,
					       const struct ci_runner_row *r)
{
	for (unsigned i = 0; i < t->machines_count; i++)
		if (strcmp(t->machines[i].format, format) == 0 &&
		    strings_contain(r->labels, r->labels_count, t->machines[i].label))
			return &t->machines[i];
	return NULL;
}

static const char *first_filled(const char *a, const char *b, const char *c)
{
	return *a ? a : *b ? b : c;
}

struct ci_limits ci_limits(const struct ci_tables *t, const char *format,
			   const struct ci_runner_row *r)
{
	static const struct ci_machine_row none = {.cpus = "", .disk = "", .minutes = ""};
	const struct ci_machine_row *found = machine_of(t, format, r), *m = found ? found : &none;
	const struct ci_format_row *f = ci_format(t, format);

	return (struct ci_limits){
		.minutes = (unsigned)strtoul(first_filled(r->minutes, m->minutes, f->minutes), NULL,
					     10),
		.cpus = (unsigned)strtoul(first_filled(r->cpus, m->cpus, f->cpus), NULL, 10),
		.disk = size_bytes(first_filled(r->disk, m->disk, "0")),
		.memory = *r->mem ? size_bytes(r->mem) : 0,
		.timed = *r->minutes};
}

const char *ci_larger(const struct ci_tables *t, const char *format, const char *platform,
		      uint64_t disk)
{
	const struct ci_machine_row *best = NULL;

	for (unsigned i = 0; i < t->machines_count; i++) {
		const struct ci_machine_row *m = &t->machines[i];
		if (strcmp(m->format, format) != 0 || strcmp(m->platform, platform) != 0 ||
		    size_bytes(m->disk) < disk)
			continue;
		best = best && size_bytes(best->disk) <= size_bytes(m->disk) ? best : m;
	}

	return best ? best->label : ci_format(t, format)->own;
}

const char *ci_action(const struct ci_tables *t, const char *name, struct arena *a)
{
	const struct ci_action_row *r = text_search(name, t->actions, t->actions_count, sizeof(*r));
	return r ? arena_printf(a, "%s@%s", r->uses, r->commit) : NULL;
}
