/* What was cut, read again by other means than it was
 * written: the two files are compared by address. */

#include "core/fatbin/fatbin_parts.h"

struct proving {
	const struct elf_map *old, *new;
	const struct fatbin_wanted *w;
	struct arena *a;
	struct fatbin_boxes b[2];
};

static int same_box(const struct proving *p, const struct fatbin_box *old,
		    const struct fatbin_box *new, struct err *e)
{
	const struct fatbin_entry *from = p->b[0].entries + old->first,
				  *to = p->b[1].entries + new->first;
	bool *keep = arena_array(p->a, old->entries + 1, sizeof(*keep));
	size_t n = 0;

	fatbin_choose(&(struct fatbin_choice){from, old->entries, p->w, keep, NULL});
	for (size_t i = 0; i < old->entries; i++) {
		if (!keep[i] && !old->whole)
			continue;
		uint64_t size = from[i].to - from[i].from;
		if (n == new->entries || to[n].to - to[n].from != size ||
		    memcmp(p->old->data + from[i].from, p->new->data + to[n].from, size) != 0)
			return elf_map_bad(p->new, new->from, e,
					   "the code for sm_%s is not what it was", from[i].target);
		n++;
	}

	return n == new->entries ? 0
				 : elf_map_bad(p->new, new->from, e,
					       "a fat binary holds more than it should");
}

/* The same relocations, in the same order, lead to the fat binaries of both files. */
static int compare_boxes(const struct proving *p, struct err *e)
{
	const struct fatbin_boxes *old = &p->b[0], *new = &p->b[1];
	bool *seen = arena_array(p->a, old->count + 1, sizeof(*seen));

	if (old->count != new->count || old->pointers_count != new->pointers_count)
		return elf_map_bad(
			p->new, 0, e, "%zu fat binaries with %zu pointers were %zu with %zu",
			new->count, new->pointers_count, old->count, old->pointers_count);
	for (size_t i = 0; i < old->pointers_count; i++) {
		size_t from = old->pointers[i].box;
		if (!seen[from] &&
		    same_box(p, &old->items[from], &new->items[new->pointers[i].box], e) < 0)
			return -1;
		seen[from] = true;
	}

	for (size_t i = 0; i < old->count; i++) {
		const struct fatbin_box *box = &old->items[i];
		const Elf64_Shdr *s = &old->sections[box->section];
		bool start = false;
		if (seen[i])
			continue;
		const struct fatbin_box *now =
			fatbin_box_at(new, p->new, s->sh_addr + (box->from - s->sh_offset), &start);
		if (!now || !start)
			return elf_map_bad(p->new, box->from, e,
					   "a fat binary that must stay at its address is missing");
		if (same_box(p, box, now, e) < 0)
			return -1;
	}

	return 0;
}

/* Whether an offset of the old file holds what a cut may change: headers, GPU code, pointers
 * to it, the list of targets, places of hash tables and of what moved from behind the headers. */
static bool may_differ(const struct elf_cut *allowed, uint64_t offset, uint64_t *ret_next)
{
	*ret_next = UINT64_MAX;
	for (size_t i = 0; i < allowed->count; i++) {
		const struct elf_patch *x = &allowed->patches[i];
		if (offset >= x->at && offset - x->at < x->len) {
			*ret_next = x->at + x->len;
			return true;
		}

		if (x->at > offset && x->at < *ret_next)
			*ret_next = x->at;
	}

	return false;
}

static int compare_rest(const struct proving *p, const struct elf_cut *allowed, struct err *e)
{
	for (size_t i = 0; i < p->old->segments_count; i++) {
		const GElf_Phdr *s = &p->old->segments[i];
		uint64_t end = s->p_offset + s->p_filesz, next, where, room;
		if (s->p_type != PT_LOAD)
			continue;
		for (uint64_t at = s->p_offset; at < end; at = next) {
			bool any = may_differ(allowed, at, &next);
			next = next < end ? next : end;
			if (any)
				continue;
			uint64_t address = s->p_vaddr + (at - s->p_offset);
			if (!elf_map_find(p->new, address, &where, &room) || room < next - at ||
			    memcmp(p->old->data + at, p->new->data + where, next - at) != 0)
				return elf_map_bad(p->new, at, e,
						   "what is at address 0x%llx is not what it was",
						   (unsigned long long)address);
		}
	}

	return 0;
}

/* Those that moved have another number. */
static const Elf64_Shdr *same_section(const struct proving *p, size_t i)
{
	const Elf64_Shdr *old = &p->b[0].sections[i], *new = p->b[1].sections;

	if (new[i].sh_name == old->sh_name)
		return &new[i];
	for (size_t k = 0; k < p->b[1].sections_count; k++)
		if (new[k].sh_name == old->sh_name)
			return &new[k];
	return &new[i];
}

/* Whether a section that is not loaded has the bytes that it had. */
static bool same_bytes(const struct proving *p, const Elf64_Shdr *old, const Elf64_Shdr *new)
{
	const uint8_t *before = p->old->data + old->sh_offset,
		      *after = p->new->data + new->sh_offset;

	if (old->sh_size != new->sh_size)
		return false;
	return memcmp(before, after, old->sh_size) == 0;
}

/* What is not loaded: symbols and debugging information for tools. */
static int compare_sections(const struct proving *p, struct err *e)
{
	const struct fatbin_boxes *b = p->b;

	if (b[0].sections_count != b[1].sections_count)
		return elf_map_bad(p->new, p->new->header.e_shoff, e,
				   "it has %zu sections, not %zu", b[1].sections_count,
				   b[0].sections_count);
	for (size_t i = 0; i < b[0].sections_count; i++) {
		const Elf64_Shdr *old = &b[0].sections[i], *new = same_section(p, i);
		bool in_file = old->sh_type != SHT_NULL && old->sh_type != SHT_NOBITS;
		bool same = old->sh_type == new->sh_type && old->sh_flags == new->sh_flags;
		if (same && in_file && !(old->sh_flags & SHF_ALLOC))
			same = same_bytes(p, old, new);
		if (!same)
			return elf_map_bad(p->new, new->sh_offset, e,
					   "section %zu is not what it was", i);
	}

	return 0;
}

static bool may_move(int64_t tag)
{
	if (tag == DT_HASH || tag == DT_GNU_HASH || tag == DT_SYMTAB)
		return true;
	return tag == DT_VERSYM || tag == DT_VERNEED || tag == DT_VERDEF;
}

static const Elf64_Shdr *section_at(const struct fatbin_boxes *b, uint64_t address)
{
	for (size_t i = 0; i < b->sections_count; i++) {
		const Elf64_Shdr *s = &b->sections[i];
		const bool loaded = (s->sh_flags & SHF_ALLOC) && s->sh_type != SHT_NOBITS;
		if (loaded && s->sh_addr == address)
			return s;
	}

	return NULL;
}

/* Whether a table that a dynamic entry points to is elsewhere now, with the same bytes. */
static bool moved_table(const struct proving *p, const Elf64_Dyn *entry)
{
	uint64_t value, offset, room;
	const Elf64_Shdr *s = section_at(&p->b[0], entry->d_un.d_val);

	if (!s || !may_move(entry->d_tag) || !elf_map_dyn(p->new, entry->d_tag, &value))
		return false;
	if (value == entry->d_un.d_val || !elf_map_find(p->new, value, &offset, &room))
		return false;
	const uint8_t *old = p->old->data + s->sh_offset, *new = p->new->data + offset;
	return room >= s->sh_size && memcmp(old, new, s->sh_size) == 0;
}

/* Places that a cut may change. */
static void allow(const struct proving *p, const struct fatbin_cut *done, struct elf_cut *to)
{
	const struct fatbin_boxes *b = &p->b[0];

	elf_cut_add(to, 0, NULL, sizeof(Elf64_Ehdr));
	elf_cut_add(to, p->old->header.e_phoff, NULL,
		    (uint64_t)p->new->header.e_phnum * sizeof(Elf64_Phdr));
	elf_cut_add(to, p->old->header.e_shoff, NULL, b->sections_count * sizeof(Elf64_Shdr));
	for (size_t i = 0; i < b->count; i++)
		if (b->items[i].among)
			elf_cut_add(to, b->items[i].from, NULL, b->items[i].to - b->items[i].from);
		else if (i == 0 || b->items[i].section != b->items[i - 1].section)
			elf_cut_add(to, b->sections[b->items[i].section].sh_offset, NULL,
				    b->sections[b->items[i].section].sh_size);
	for (size_t i = 0; i < b->pointers_count; i++) {
		elf_cut_add(to, b->pointers[i].at, NULL, sizeof(uint64_t));
		if (b->pointers[i].in_place)
			elf_cut_add(to, b->pointers[i].in_place, NULL, sizeof(uint64_t));
	}

	elf_cut_add(to, done->archs_at, NULL, done->archs_len);
	for (size_t i = 0; i < p->old->dyn_count; i++) {
		if (!moved_table(p, &p->old->dyn[i]))
			continue;
		elf_cut_add(to,
			    p->old->dyn_offset + i * sizeof(Elf64_Dyn) + offsetof(Elf64_Dyn, d_un),
			    NULL, 8);
	}
}

int fatbin_cut_prove(const struct elf_map *before, const struct elf_map *after,
		     const struct fatbin_wanted *w, const struct fatbin_cut *done, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct proving p = {.old = before, .new = after, .w = w, .a = &a};
	struct elf_cut allowed = {.map = before, .a = &a};
	uint64_t table[2], count[2];

	if (elf_map_loadable(after, e) < 0)
		return -1;
	if (fatbin_boxes_read(before, &a, &p.b[0], e) < 0)
		return -1;
	if (fatbin_boxes_read(after, &a, &p.b[1], e) < 0)
		return -1;
	if (elf_map_symbols(before, &table[0], &count[0], e) < 0)
		return -1;
	if (elf_map_symbols(after, &table[1], &count[1], e) < 0)
		return -1;
	(void)fatbin_unread(&p.b[0], before, w, &a);
	if (count[0] != count[1])
		return elf_map_bad(after, 0, e, "it has %llu dynamic symbols, not %llu",
				   (unsigned long long)count[1], (unsigned long long)count[0]);
	allow(&p, done, &allowed);
	return compare_boxes(&p, e) < 0 || compare_sections(&p, e) < 0
		       ? -1
		       : compare_rest(&p, &allowed, e);
}

int fatbin_file_slim(const struct fs_mapping *file, const char *name, int fd,
		     const struct fatbin_wanted *w, struct arena *a, struct fatbin_file_cut *ret,
		     struct err *e)
{
	AUTO_ELF_MAP struct elf_map before = {0};
	AUTO_ELF_MAP struct elf_map after = {0};
	AUTO_MAPPING struct fs_mapping written = {0};
	struct fatbin_file_cut f = {.name = name};

	if (elf_map_memory(&(struct file_bytes){file->data, file->size, name}, &before, e) < 0)
		return err_wrap(e, "%s", name);
	/* The report outlives the plan, whose patches may be many. */
	struct elf_cut cut = {.map = &before, .a = a};
	if (fatbin_cut_plan(&cut, w, &f.cut, e) < 0)
		return -1;
	f.before = before.size;
	f.after = cut.size;
	f.blank = elf_cut_blank(&cut);
	f.changed = cut.count > 0;
	f.marks = elf_cut_marks(&cut, a, &f.marks_count);
	if (f.changed && fd >= 0) {
		if (elf_cut_write(&cut, fd, name, e) < 0 || fs_map_fd(fd, name, &written, e) < 0 ||
		    elf_map_memory(&(struct file_bytes){written.data, written.size, name}, &after,
				   e) < 0)
			return -1;
		if (fatbin_cut_prove(&before, &after, w, &f.cut, e) < 0)
			return err_wrap(e, "the slimmed file is not equivalent and is not used");
	}

	*ret = f;
	return 0;
}
