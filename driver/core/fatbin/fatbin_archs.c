/* The list of targets that torch itself reports: torch.cuda.get_arch_list(). */

#include "core/fatbin/fatbin_parts.h"

/* "sm_75 sm_90 compute_120" with its NUL; 0 unless there are two targets at least. */
static size_t archs_at(const char *text, size_t room, struct fatbin_entry *entries,
		       size_t *ret_count)
{
	size_t at = 0, count = 0;

	for (;;) {
		size_t word = room - at > 3 && memcmp(text + at, "sm_", 3) == 0        ? 3
			      : room - at > 8 && memcmp(text + at, "compute_", 8) == 0 ? 8
										       : 0;
		size_t n = 0;
		if (!word || count == FATBIN_ARCHS_MAX)
			return 0;
		struct fatbin_entry *entry = &entries[count++];
		*entry = (struct fatbin_entry){.kind = word == 3 ? FATBIN_CUBIN : FATBIN_PTX};
		entry->from = at;
		for (at += word; at < room && n < 4 && text[at] >= '0' && text[at] <= '9'; at++)
			entry->target[n++] = text[at];
		if (n && at < room && (text[at] == 'a' || text[at] == 'f'))
			entry->target[n++] = text[at++];
		entry->to = at;
		if (n < 2 || at >= room)
			return 0;
		if (text[at] == '\0')
			break;
		if (text[at++] != ' ')
			return 0;
	}

	*ret_count = count;
	return count > 1 ? at : 0;
}

static void read_section(const struct elf_map *m, const Elf64_Shdr *s, struct fatbin_archs_list *l)
{
	const char *text = (const char *)m->data + s->sh_offset, *end = text + s->sh_size;
	struct fatbin_archs found;

	for (const char *at = text; (at = memmem(at, (size_t)(end - at), "sm_", 3));) {
		found.len = archs_at(at, (size_t)(end - at), found.entries, &found.count);
		found.at = (uint64_t)((const uint8_t *)at - m->data);
		if (found.len) {
			l->items = arena_room(l->arena, l->items, l->count, &l->cap, 2,
					      sizeof(*l->items));
			l->items[l->count++] = found;
		}

		at += found.len ? found.len : 3;
	}
}

int fatbin_archs_find(const struct elf_map *m, struct fatbin_archs_list *ret, struct err *e)
{
	Elf64_Shdr *sections;
	size_t sections_count;

	if (strncmp(path_base(m->name), "libtorch_", strlen("libtorch_")) != 0)
		return 0;
	if (elf_sections(m, ret->arena, &sections, &sections_count, e) < 0)
		return -1;
	for (size_t i = 0; i < sections_count; i++) {
		const char *name = elf_section_name(m, sections, sections_count, i);
		if (sections[i].sh_type == SHT_PROGBITS && strcmp(name, ".rodata") == 0)
			read_section(m, &sections[i], ret);
	}

	return 0;
}
