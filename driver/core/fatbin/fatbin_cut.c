#include "core/fatbin/fatbin_parts.h"
#include "core/tables/gpu_runs.h"

/* One fat binary as it will be. */
struct placed {
	uint64_t at, size;
	const bool *keep; /* of its entries */
};

struct planning {
	struct elf_cut *c;
	const struct elf_map *m;
	struct arena *a;
	const struct fatbin_wanted *w;
	struct fatbin_boxes b;
	struct placed *placed;
	struct fatbin_cut out;
	size_t kept_cap, dropped_cap;
};

/* What stays of each fat binary, and how long it is then. */
static void choose(struct planning *p)
{
	struct fatbin_cut *out = &p->out;
	bool *runs = arena_array(p->a, p->w->count + 1, sizeof(*runs));

	out->runs = arena_array(p->a, p->w->count + 1, sizeof(*out->runs));
	for (size_t i = 0; i < p->b.count; i++) {
		const struct fatbin_box *box = &p->b.items[i];
		const struct fatbin_entry *entries = p->b.entries + box->first;
		bool *keep = arena_array(p->a, box->entries + 1, sizeof(*keep));
		struct placed *to = &p->placed[i];
		fatbin_choose(&(struct fatbin_choice){entries, box->entries, p->w, keep, runs});
		out->filled += box->entries > 0;
		for (size_t g = 0; g < p->w->count; g++)
			out->runs[g] += runs[g];
		*to = (struct placed){box->from, box->body - box->from, keep};
		for (size_t k = 0; k < box->entries; k++) {
			keep[k] = keep[k] || box->whole;
			struct fatbin_count *n =
				keep[k] ? fatbin_count_for(p->a, &out->kept, &out->kept_count,
							   &p->kept_cap, &entries[k])
					: fatbin_count_for(p->a, &out->dropped, &out->dropped_count,
							   &p->dropped_cap, &entries[k]);
			n->entries++;
			n->bytes += entries[k].to - entries[k].from;
			to->size += keep[k] ? entries[k].to - entries[k].from : 0;
			*(keep[k] ? &out->kept_bytes : &out->dropped_bytes) +=
				entries[k].to - entries[k].from;
		}
	}

	out->containers = p->b.count;
	array_sort(out->kept, out->kept_count, sizeof(*out->kept), fatbin_count_cmp);
	array_sort(out->dropped, out->dropped_count, sizeof(*out->dropped), fatbin_count_cmp);
}

static const struct fatbin_box *pinned_from(const struct planning *p, size_t section, uint64_t at,
					    uint64_t end)
{
	for (size_t i = 0; i < p->b.count; i++) {
		const struct fatbin_box *box = &p->b.items[i];
		if (box->section == section && box->pinned && box->from < end &&
		    p->placed[i].size + box->from > at)
			return box;
	}

	return NULL;
}

/* Those of a section move down, one behind the other, around what must
 * stay; -1: they do not fit around that, and all stay where they are. */
static int pack(struct planning *p, size_t section, bool any_pinned, uint64_t *ret_used)
{
	const Elf64_Shdr *s = &p->b.sections[section];
	uint64_t align = s->sh_addralign > 8 ? s->sh_addralign : 8, at = s->sh_offset, used = at;

	for (size_t i = 0; i < p->b.count; i++) {
		const struct fatbin_box *box = &p->b.items[i], *in_the_way;
		uint64_t size = p->placed[i].size;
		if (box->section != section)
			continue;
		if (!box->pinned) {
			while (any_pinned && (in_the_way = pinned_from(p, section, at, at + size)))
				at = in_the_way->to;
			at += (align - (s->sh_addr + (at - s->sh_offset)) % align) % align;
			/* The linker's offset of the first one need not be a multiple. */
			at = used == s->sh_offset && at > box->from ? box->from : at;
			if (at + size > s->sh_offset + s->sh_size)
				return -1;
			p->placed[i].at = at;
			p->out.moved += at != box->from;
			at += size;
		}

		uint64_t end = p->placed[i].at + size;
		used = end > used ? end : used;
	}

	*ret_used = used;
	return 0;
}

static void add_box(struct planning *p, size_t i)
{
	const struct fatbin_box *box = &p->b.items[i];
	const struct placed *to = &p->placed[i];
	uint64_t at = to->at, head = box->body - box->from;

	if (at == box->from && to->size == box->to - box->from)
		return;
	uint8_t *header = arena_alloc(p->a, head);
	uint64_t size = to->size - head;
	memcpy(header, p->m->data + box->from, head);
	memcpy(header + 8, &size, sizeof(size));
	elf_cut_add(p->c, at, header, head);
	at += head;
	for (size_t k = 0; k < box->entries; k++) {
		const struct fatbin_entry *entry = &p->b.entries[box->first + k];
		if (!to->keep[k])
			continue;
		elf_cut_add(p->c, at, p->m->data + entry->from, entry->to - entry->from);
		at += entry->to - entry->from;
	}
}

/* Reduces containers without moving them: zeroes their ends and keeps the bytes between them. */
static void clear_ends(struct planning *p, size_t section)
{
	for (size_t i = 0; i < p->b.count; i++) {
		const struct fatbin_box *box = &p->b.items[i];
		if (box->section == section)
			elf_cut_add(p->c, box->from + p->placed[i].size, NULL,
				    box->to - box->from - p->placed[i].size);
	}
}

/* Zeroes the bytes between the containers of a section, up to the last one. */
static void clear_between(struct planning *p, size_t section)
{
	struct elf_hole *taken = arena_array(p->a, p->b.count, sizeof(*taken));
	size_t n = 0;

	for (size_t i = 0; i < p->b.count; i++)
		if (p->b.items[i].section == section)
			taken[n++] = (struct elf_hole){p->placed[i].at,
						       p->placed[i].at + p->placed[i].size};
	array_sort(taken, n, sizeof(*taken), number_cmp);
	uint64_t at = p->b.sections[section].sh_offset;
	for (size_t i = 0; i < n; i++) {
		elf_cut_add(p->c, at, NULL, taken[i].from - at);
		at = taken[i].to;
	}
}

static void add_pointers(struct planning *p)
{
	for (size_t i = 0; i < p->b.pointers_count; i++) {
		const struct fatbin_pointer *from = &p->b.pointers[i];
		const struct fatbin_box *box = &p->b.items[from->box];
		const Elf64_Shdr *s = &p->b.sections[box->section];
		if (p->placed[from->box].at == box->from)
			continue;
		uint64_t *address = arena_alloc(p->a, sizeof(*address));
		*address = s->sh_addr + (p->placed[from->box].at - s->sh_offset);
		elf_cut_add(p->c, from->at, address, sizeof(*address));
		if (from->in_place)
			elf_cut_add(p->c, from->in_place, address, sizeof(*address));
	}
}

/* Each section with its fat binaries; *ret_count tails. */
static void place_sections(struct planning *p, struct elf_tail *tails, size_t *ret_count)
{
	for (size_t s = 0; s < p->b.sections_count; s++) {
		size_t boxes = 0, pinned = 0;
		bool among = false;
		uint64_t used, before = p->out.moved;
		for (size_t i = 0; i < p->b.count; i++) {
			boxes += p->b.items[i].section == s;
			among = among || (p->b.items[i].section == s && p->b.items[i].among);
			pinned += p->b.items[i].section == s && p->b.items[i].pinned;
		}

		if (among)
			clear_ends(p, s);
		if (!boxes || among)
			continue;
		if (pack(p, s, pinned > 0, &used) < 0) {
			for (size_t i = 0; i < p->b.count; i++)
				if (p->b.items[i].section == s) {
					p->b.items[i].pinned = true;
					p->placed[i].at = p->b.items[i].from;
				}
			p->out.moved = before;
			pinned = boxes;
			(void)pack(p, s, true, &used);
		}

		if (pinned)
			p->out.left = arena_printf(
				p->a,
				"%zu of %zu fat binaries of %s cannot be moved: "
				"no relocation points to them, or something "
				"points into them",
				pinned, boxes,
				elf_section_name(p->m, p->b.sections, p->b.sections_count, s));
		clear_between(p, s);
		tails[(*ret_count)++] = (struct elf_tail){s, used};
	}

	for (size_t i = 0; i < p->b.count; i++)
		add_box(p, i);
	add_pointers(p);
}

/* ---- torch's own list of its targets ---- */

static void shorten_archs(struct planning *p, const struct fatbin_archs *archs)
{
	bool keep[FATBIN_ARCHS_MAX];
	const char *text = (const char *)p->m->data + archs->at;
	char *now = arena_alloc(p->a, archs->len + 2), *end = now;

	fatbin_choose(&(struct fatbin_choice){archs->entries, archs->count, p->w, keep, NULL});
	for (size_t i = 0; i < archs->count; i++)
		if (keep[i]) {
			const struct fatbin_entry *word = &archs->entries[i];
			size_t n = word->to - word->from;
			if (end != now)
				*end++ = ' ';
			memcpy(end, text + word->from, n);
			end += n;
		}
	p->out.archs = now;
	p->out.archs_at = archs->at;
	p->out.archs_len = archs->len;
	if (strlen(now) < archs->len)
		elf_cut_add(p->c, archs->at, now, archs->len);
}

static int find_archs(struct planning *p, struct err *e)
{
	struct fatbin_archs_list l = {.arena = p->a};

	if (fatbin_archs_find(p->m, &l, e) < 0)
		return -1;
	for (size_t i = 0; i < l.count; i++)
		shorten_archs(p, &l.items[i]);
	return 0;
}

int fatbin_cut_plan(struct elf_cut *cut, const struct fatbin_wanted *w, struct fatbin_cut *ret,
		    struct err *e)
{
	struct planning p = {.c = cut, .m = cut->map, .a = cut->a, .w = w};

	if (fatbin_boxes_read(p.m, p.a, &p.b, e) < 0)
		return -1;
	struct elf_tail *tails = arena_array(p.a, p.b.sections_count + 1, sizeof(*tails));
	size_t count = 0;
	p.placed = arena_array(p.a, p.b.count + 1, sizeof(*p.placed));
	const char *unread = fatbin_unread(&p.b, p.m, w, p.a);
	choose(&p);
	p.out.unread = unread != NULL;
	if (p.out.dropped_count)
		place_sections(&p, tails, &count);
	if (find_archs(&p, e) < 0 || elf_cut_tails(cut, tails, count, e) < 0)
		return -1;
	if (cut->kept)
		p.out.left = cut->kept;
	if (unread)
		p.out.left = arena_printf(p.a, "%s has GPU code that is not read: all of it stays",
					  unread);
	if (p.b.count && !p.b.sections_count)
		p.out.left = "it has no section headers that separate its GPU code from other data";
	*ret = p.out;
	return 0;
}
