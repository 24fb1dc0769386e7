#include "core/root/jobs.h"

#include <fnmatch.h>

#include "base/base.h"

/* For Python, ninja with its graph, the compiler driver and ptbuild itself. */
#define OWN_BYTES (UINT64_C(384) << 20)

struct jobs_memory jobs_from_table(const struct memory_row *row)
{
	struct jobs_memory m = {.compile = JOBS_COMPILE_BYTES, .heavy = 0, .link = JOBS_LINK_BYTES};

	if (row && *row->compile)
		m.compile = size_bytes(row->compile);
	if (row && *row->link)
		m.link = size_bytes(row->link);
	for (unsigned i = 0; row && i < row->heavy_count; i++) {
		uint64_t bytes = size_bytes(row->heavy[i].bytes);
		if (bytes > m.heavy)
			m.heavy = bytes;
	}

	if (m.heavy == 0)
		m.heavy = JOBS_HEAVY_BYTES;
	if (m.heavy < m.compile)
		m.heavy = m.compile;
	return m;
}

const struct heavy_row *jobs_heavy_row(const struct memory_row *row, const char *output)
{
	for (unsigned i = 0; row && i < row->heavy_count; i++)
		if (fnmatch(row->heavy[i].units, output, 0) == 0)
			return &row->heavy[i];
	return NULL;
}

uint64_t jobs_usable(uint64_t available)
{
	if (available == UINT64_MAX)
		return available;
	uint64_t own = available / 8 < OWN_BYTES ? available / 8 : OWN_BYTES;
	return available - own;
}

static unsigned fitting(uint64_t memory, uint64_t each, unsigned most)
{
	uint64_t n = each ? memory / each : most;

	if (n < 1)
		n = 1;
	return n < most ? (unsigned)n : most;
}

/* How many jobs of `each` bytes fit when ordinary ones take all other places; 0: not even one. */
static unsigned beside(uint64_t memory, uint64_t each, uint64_t ordinary, unsigned total)
{
	for (unsigned n = total; n >= 1; n--) {
		/* Division keeps the products of any two figures from running over. */
		uint64_t left = memory;
		if (each && left / each < n)
			continue;
		left -= n * each;
		if (!ordinary || left / ordinary >= total - n)
			return n;
	}

	return 0;
}

struct jobs_pools jobs_plan(uint64_t usable, unsigned processors, unsigned asked,
			    const struct jobs_memory *need)
{
	struct jobs_pools p = {
		.total = asked ? asked
			       : fitting(usable, need->compile, processors ? processors : 1)};

	p.compile = p.total;
	p.heavy = beside(usable, need->heavy, need->compile, p.total);
	if (p.heavy == 0) {
		p.heavy = fitting(usable, need->heavy, p.total);
		p.heavy_first = p.heavy < p.total;
	}

	p.link = beside(usable, need->link, need->compile, p.total);
	if (p.link == 0)
		p.link = 1;
	return p;
}

bool jobs_spare(uint64_t usable, const struct jobs_pools *p, const struct jobs_memory *need,
		uint64_t more)
{
	if (need->heavy > UINT64_MAX - more || need->compile > UINT64_MAX - more)
		return false;
	return beside(usable, need->heavy + more, need->compile + more, p->total) >= p->heavy &&
	       beside(usable, need->link, need->compile + more, p->total) >= p->link;
}

static void clamp(unsigned *n, unsigned most)
{
	if (*n > most)
		*n = most;
}

void jobs_cap(struct jobs_pools *p, unsigned total)
{
	if (total < 1)
		total = 1;
	clamp(&p->total, total);
	clamp(&p->compile, p->total);
	clamp(&p->heavy, p->total);
	clamp(&p->link, p->total);
	p->heavy_first = p->heavy_first && p->heavy < p->total;
}

bool jobs_lower(struct jobs_pools *p)
{
	if (p->total <= 1)
		return false;
	p->heavy = p->heavy > 1 ? p->heavy / 2 : 1;
	p->link = p->link > 1 ? p->link / 2 : 1;
	jobs_cap(p, p->total / 2);
	return true;
}

bool jobs_pressed(struct jobs_pressure *p, double full, double now)
{
	if (full < JOBS_PRESSURE_BOUND) {
		p->since = 0;
		return false;
	}

	if (p->since <= 0)
		p->since = now;
	return now - p->since >= JOBS_PRESSURE_S;
}
