#include <string.h>

#include "base/size.h"
#include "base/sys/fs.h"
#include "base/sys/machine.h"
#include "core/ninja/ninja_file.h"
#include "step/compile/build_parts.h"

/* Measurements of earlier builds correct the table. */
static void learn(const struct history *h, struct jobs_memory *need)
{
	AUTO_ARENA struct arena a = {0};
	uint64_t *peaks = arena_array(&a, h->count + 1, sizeof(*peaks));
	size_t count = 0;
	for (size_t i = 0; i < h->count; i++)
		if (h->units[i].kind != HISTORY_LINK)
			peaks[count++] = h->units[i].peak_bytes;
	jobs_learn(need, peaks, count, history_peak(h, HISTORY_LINK, 100));
}

void build_pools_plan(const struct build_request *q, struct build_pools *ret)
{
	struct build_pools p = {.need = jobs_from_table(q->plan->package_row->memory), .memory = machine_memory()};
	if (q->history)
		learn(q->history, &p.need);
	p.now = jobs_plan(jobs_usable(p.memory), machine_processors(), q->jobs, &p.need);
	*ret = p;
}

/* What a unit's weight is judged by. */
struct judge {
	const struct memory_row *table;
	const struct history *history;
	uint64_t ordinary;   /* more than this is heavy */
	double mean_seconds; /* of the units that are known */
	uint64_t largest;    /* peak of the heavy units seen */
};

static struct ninja_weight judge_unit(const char *output, void *user)
{
	struct judge *j = user;
	const struct history_unit *known = j->history ? history_find(j->history, output) : NULL;
	const struct heavy_row *row = jobs_heavy_row(j->table, output);
	struct ninja_weight u = {.heavy = row != NULL, .cost = j->mean_seconds};
	uint64_t bytes = row ? size_bytes(row->bytes) : 0;
	if (known && known->peak_bytes) {
		bytes = known->peak_bytes;
		u.heavy = bytes > j->ordinary;
	}
	if (u.heavy && bytes > j->largest)
		j->largest = bytes;
	if (known && known->seconds > 0)
		u.cost = known->seconds;
	else if (row) /* until times are known, heavy ones go first, the heaviest of all at the front */
		u.cost = 1e6 + (double)bytes / 1e9;
	return u;
}

static double mean_seconds(const struct history *h)
{
	double sum = 0;
	size_t n = 0;
	for (size_t i = 0; i < h->count; i++) {
		if (h->units[i].kind == HISTORY_LINK || h->units[i].seconds <= 0)
			continue;
		sum += h->units[i].seconds;
		n++;
	}
	return n ? sum / (double)n : 0;
}

static struct judge make_judge(const struct build_request *q, const struct build_pools *p)
{
	return (struct judge){.table = q->plan->package_row->memory,
			      .history = q->history,
			      .ordinary = p->need.compile,
			      .mean_seconds = q->history ? mean_seconds(q->history) : 0};
}

static struct ninja_options options(const struct build_pools *p, struct judge *j)
{
	return (struct ninja_options){
		.compile = p->now.compile, .heavy = p->now.heavy, .link = p->now.link, .weigh = judge_unit, .user = j};
}

int build_pools_fit(const struct build_request *q, struct build_pools *p, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};
	AUTO_BUF struct buf ignored = {0};
	struct judge judge = make_judge(q, p);
	const struct ninja_options o = options(p, &judge);
	struct ninja_counts counts;
	if (fs_read(q->build_dir, BUILD_NINJA, NINJA_FILE_MAX, &text, e) < 0 ||
	    ninja_text(buf_cstr(&text), text.len, BUILD_NINJA, &o, &a, &ignored, &counts, e) < 0)
		return -1;
	p->need.heavy = judge.largest > p->need.compile ? judge.largest : p->need.compile;
	p->now = jobs_plan(jobs_usable(p->memory), machine_processors(), q->jobs, &p->need);
	return 0;
}

int build_pools_write(const struct build_request *q, const struct build_pools *p, struct arena *a,
		      struct strlist *ret_heavy, struct err *e)
{
	struct judge judge = make_judge(q, p);
	const struct ninja_options o = options(p, &judge);
	struct ninja_counts counts;
	if (ninja_file_rewrite(q->build_dir, BUILD_NINJA, &o, a, &counts, e) < 0)
		return -1;
	*ret_heavy = counts.heavy_outputs;
	return 0;
}
