#include "core/code/code.h"

enum { BLOCK_BYTES = 1 << 18, HELPERS_MAX = 255 };

struct block { /* ranges that one thread decodes at a time */
	size_t first, end;
};

struct scanning {
	const struct elf_map *m;
	const struct decoder *decoder;
	uint64_t allowed;
	struct isa_idle *idle;
	const struct run *run;
	struct code_map *map;
	struct block *blocks;
	size_t blocks_count;
	atomic_size_t next;
	atomic_bool cancelled;
};

struct scanner { /* what one thread found */
	struct scanning *s;
	struct arena arena;
	struct isa_found *found;
	size_t count, cap;
	uint64_t bytes, instructions, skipped, first_skipped;
	size_t functions, clean;
	bool borrowed; /* its processor */
	pthread_t thread;
};

bool isa_scan_machine(unsigned elf_machine, enum extension_machine *ret)
{
	if (elf_machine != EM_X86_64 && elf_machine != EM_AARCH64)
		return false;
	*ret = elf_machine == EM_X86_64 ? EXTENSION_X86_64 : EXTENSION_AARCH64;
	return true;
}

/* What the file has of a range's bytes; NULL: nothing. */
static const uint8_t *bytes_of(const struct scanning *s, const struct code_range *r, uint64_t *ret)
{
	uint64_t offset, room, size = r->end - r->start;

	if (!elf_map_find(s->m, r->start, &offset, &room))
		return NULL;
	*ret = size < room ? size : room;
	return s->m->data + offset;
}

static void scan_range(struct scanner *w, const struct code_range *r)
{
	struct scanning *s = w->s;
	struct decode_tally t = {0};
	uint64_t size;
	const uint8_t *bytes = bytes_of(s, r, &size);
	bool data = r->flags & CODE_DATA, stated = !data && ((r->flags & CODE_DECLARED) || r->name);

	if (!bytes)
		return;
	decode_run(s->decoder, &(struct code_bytes){bytes, size, r->start}, s->allowed, &t);
	w->bytes += size;
	w->instructions += t.instructions;
	w->functions += stated;
	w->clean += stated && !t.unknown && !t.count;
	/* Bytes between functions that do not decode to their end are tables that assembler
	 * keeps there. On AArch64 every word decodes, so an object is taken for one. */
	bool table = !stated && (t.unknown || (data && s->m->header.e_machine == EM_AARCH64));
	uint64_t skipped = table ? size : t.unknown;
	if (skipped && (!w->skipped || r->start < w->first_skipped))
		w->first_skipped = r->start;
	w->skipped += skipped;
	if (table || !t.count)
		return;
	w->found = arena_room(&w->arena, w->found, w->count, &w->cap, 64, sizeof(*w->found));
	w->found[w->count++] = (struct isa_found){r, t};
}

static void *scan_blocks(void *arg);

/* Another thread for the blocks that are left, if a processor is idle. */
static void add_thread(struct scanner *w, struct scanner *team, size_t *team_count)
{
	struct scanning *s = w->s;

	if (!s->idle || *team_count == HELPERS_MAX)
		return;
	int free_now = atomic_load(&s->idle->processors);
	while (free_now > 0 &&
	       !atomic_compare_exchange_weak(&s->idle->processors, &free_now, free_now - 1))
		;
	if (free_now <= 0)
		return;
	struct scanner *h = &team[*team_count];
	*h = (struct scanner){.s = s, .borrowed = true};
	if (thread_start(&h->thread, scan_blocks, h) != 0)
		atomic_fetch_add(&s->idle->processors, 1);
	else
		++*team_count;
}

static bool scan_next(struct scanner *w)
{
	struct scanning *s = w->s;
	size_t i = atomic_fetch_add(&s->next, 1);

	if (i >= s->blocks_count || atomic_load(&s->cancelled))
		return false;
	if (run_cancelled(s->run))
		atomic_store(&s->cancelled, true);
	for (size_t k = s->blocks[i].first; k < s->blocks[i].end; k++)
		scan_range(w, &s->map->ranges[k]);
	return true;
}

static void *scan_blocks(void *arg)
{
	struct scanner *w = arg;

	while (scan_next(w))
		;
	if (w->borrowed)
		atomic_fetch_add(&w->s->idle->processors, 1);
	return NULL;
}

static void make_blocks(struct scanning *s, struct arena *a)
{
	uint64_t size = 0;
	size_t first = 0;

	s->blocks = arena_array(a, s->map->count + 1, sizeof(*s->blocks));
	for (size_t i = 0; i < s->map->count; i++) {
		size += s->map->ranges[i].end - s->map->ranges[i].start;
		if (size >= BLOCK_BYTES || i + 1 == s->map->count) {
			s->blocks[s->blocks_count++] = (struct block){first, i + 1};
			first = i + 1;
			size = 0;
		}
	}
}

static int by_address(const void *a, const void *b)
{
	const struct isa_found *x = a, *y = b;
	return x->range < y->range ? -1 : x->range > y->range;
}

static void gather(const struct scanner *team, size_t n, struct arena *a, struct isa_scan *r)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += team[i].count;
	r->found = arena_array(a, total, sizeof(*r->found));
	for (size_t i = 0; i < n; i++) {
		if (team[i].count)
			memcpy(r->found + r->count, team[i].found,
			       team[i].count * sizeof(*r->found));
		r->count += team[i].count;
		r->bytes += team[i].bytes;
		r->instructions += team[i].instructions;
		r->functions += team[i].functions;
		r->clean += team[i].clean;
		if (team[i].skipped && (!r->skipped || team[i].first_skipped < r->first_skipped))
			r->first_skipped = team[i].first_skipped;
		r->skipped += team[i].skipped;
	}

	array_sort(r->found, r->count, sizeof(*r->found), by_address);
}

enum { TARGETS_MAX = 1024 };

/* Marks targets of a range: of its direct calls, or the addresses that it computes. */
static void mark_targets(const struct scanning *s, const struct code_range *r, bool calls)
{
	uint64_t targets[TARGETS_MAX], size;
	const uint8_t *bytes = bytes_of(s, r, &size);
	size_t n = bytes ? decode_targets(s->decoder, bytes, size, r->start, calls, targets,
					  TARGETS_MAX)
			 : 0;

	for (size_t i = 0; i < n; i++) {
		struct code_range *to = code_map_at(s->map, targets[i]);
		if (!to || to->start != targets[i])
			continue;
		if (!calls)
			to->flags |= CODE_DISPATCHED;
		else if (!to->name && (to->flags & CODE_DECLARED))
			to->flags |= CODE_INIT_PART | (r->flags & CODE_ASKED);
	}
}

/* A resolver computes the addresses of the functions it chooses from; these may have any name. A
 * nameless function that an initialiser calls is a part of it: compilers split functions. */
static void mark_ranges(struct scanning *s, bool *fast_math)
{
	for (size_t i = 0; i < s->map->count; i++) {
		struct code_range *r = &s->map->ranges[i];
		uint64_t size;
		const uint8_t *bytes = r->flags & CODE_INIT ? bytes_of(s, r, &size) : NULL;
		*fast_math = *fast_math || (bytes && decode_fast_math(s->decoder, bytes, size));
		if (bytes && decode_asks_cpuid(s->decoder, bytes, size))
			r->flags |= CODE_ASKED;
		if (r->flags & CODE_RESOLVER)
			mark_targets(s, r, false);
		if ((r->flags & CODE_INIT) && (r->flags & CODE_DECLARED))
			mark_targets(s, r, true);
	}
}

int isa_scan_file(struct elf_map *m, const struct isa_scan_request *q, struct isa_scan *ret,
		  struct err *e)
{
	AUTO_ARENA struct arena scratch = {0};
	struct isa_scan r = {0};

	if (!isa_scan_machine(m->header.e_machine, &r.machine))
		return elf_map_bad(m, offsetof(Elf64_Ehdr, e_machine), e,
				   "code of ELF machine %u is not examined", m->header.e_machine);
	if (code_map_read(m, q->arena, &r.map, e) < 0)
		return -1;
	struct scanning s = {.m = m,
			     .decoder = q->decoders[r.machine],
			     .allowed = q->allowed[r.machine],
			     .idle = q->idle,
			     .run = q->run,
			     .map = &r.map};
	struct scanner *team = arena_array(&scratch, HELPERS_MAX + 1, sizeof(*team));
	size_t team_count = 1;
	team[0].s = &s;
	mark_ranges(&s, &r.fast_math);
	make_blocks(&s, &scratch);
	while (scan_next(&team[0]))
		add_thread(&team[0], team, &team_count);
	for (size_t i = 1; i < team_count; i++)
		pthread_join(team[i].thread, NULL);
	gather(team, team_count, q->arena, &r);
	for (size_t i = 0; i < team_count; i++)
		arena_release(&team[i].arena);
	if (atomic_load(&s.cancelled))
		return run_check(q->run, e);
	*ret = r;
	return 0;
}
