#include <string.h>

#include "base/size.h"
#include "base/sys/fs.h"
#include "base/sys/machine.h"
#include "core/ninja/ninja_file.h"
#include "step/compile/build_parts.h"

void build_pools_plan(const struct build_request *q, struct build_pools *ret)
{
	struct build_pools p = {.need = jobs_from_table(q->plan->package_row->memory), .memory = machine_memory()};
	p.now = jobs_plan(jobs_usable(p.memory), machine_processors(), q->jobs, &p.need);
	*ret = p;
}

/* What a unit's weight is judged by. */
struct judge {
	const struct build_request *q;
	uint64_t largest; /* peak of the heavy units seen */
};

/* Heavy ones go first, the heaviest of all at the front; then the longest. */
static struct ninja_weight judge_unit(const char *output, void *user)
{
	struct judge *j = user;
	const struct heavy_row *row = jobs_heavy_row(j->q->plan->package_row->memory, output);
	const uint64_t bytes = row ? size_bytes(row->bytes) : 0;
	j->largest = bytes > j->largest ? bytes : j->largest;
	return (struct ninja_weight){.heavy = row != NULL,
				     .cost = row             ? 1e6 + (double)bytes / 1e9
					     : j->q->seconds ? j->q->seconds(output, j->q->user)
							     : 0};
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
	struct judge judge = {.q = q};
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
	struct judge judge = {.q = q};
	const struct ninja_options o = options(p, &judge);
	struct ninja_counts counts;
	if (ninja_file_rewrite(q->build_dir, BUILD_NINJA, &o, a, &counts, e) < 0)
		return -1;
	*ret_heavy = counts.heavy_outputs;
	return 0;
}
