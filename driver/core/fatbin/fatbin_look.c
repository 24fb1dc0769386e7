#include "core/fatbin/fatbin_look.h"

#include "core/fatbin/fatbin_parts.h"

struct grouping {
	struct fatbin_group *items;
	size_t count, cap;
	struct strlist keys; /* of each */
	struct arena *a;
};

/* The images of one fat binary without repetition, and a text that identifies it. */
static const char *distinct(struct fatbin_group *g, const struct fatbin_entry *entries,
			    size_t count, struct arena *a)
{
	struct strlist words = {0};

	g->entries = arena_array(a, count + 1, sizeof(*g->entries));
	for (size_t i = 0; i < count; i++) {
		const char *word = arena_printf(a, "%x:%s", entries[i].number, entries[i].target);
		if (strlist_contains(&words, word))
			continue;
		strlist_ref(&words, a, word);
		g->entries[g->count++] = entries[i];
	}

	strlist_sort(&words);
	return strlist_join(&words, a, " ");
}

static void add(struct grouping *to, const struct fatbin_entry *entries, size_t count)
{
	AUTO_ARENA struct arena scratch = {0};
	struct fatbin_group g = {.containers = 1};
	const char *key = distinct(&g, entries, count, &scratch);

	for (size_t i = 0; i < to->count; i++)
		if (strcmp(to->keys.items[i], key) == 0) {
			to->items[i].containers++;
			return;
		}
	struct fatbin_entry *own = arena_array(to->a, g.count, sizeof(*own));
	memcpy(own, g.entries, g.count * sizeof(*own));
	for (size_t i = 0; i < g.count; i++)
		own[i].member = "";
	g.entries = own;
	to->items = arena_room(to->a, to->items, to->count, &to->cap, 8, sizeof(*to->items));
	to->items[to->count++] = g;
	strlist_add(&to->keys, to->a, key);
}

static struct fatbin_group *group(const struct fatbin_boxes *b, struct arena *a, size_t *ret_count,
				  size_t *ret_containers)
{
	struct grouping to = {.a = a};

	*ret_containers = 0;
	for (size_t i = 0; i < b->count; i++) {
		const struct fatbin_box *box = &b->items[i];
		if (box->entries)
			add(&to, b->entries + box->first, box->entries);
		*ret_containers += box->entries > 0;
	}

	*ret_count = to.count;
	return to.items;
}

static bool is_elf(const uint8_t *data, size_t size)
{
	return size >= EI_NIDENT && memcmp(data, ELFMAG, SELFMAG) == 0 &&
	       data[EI_CLASS] == ELFCLASS64 && data[EI_DATA] == ELFDATA2LSB;
}

static bool has_section(const struct elf_map *m, const struct fatbin_boxes *b)
{
	for (size_t i = 0; i < b->sections_count; i++)
		if (fatbin_section(elf_section_name(m, b->sections, b->sections_count, i)) !=
		    FATBIN_NONE)
			return true;
	return false;
}

int fatbin_look_data(const struct file_bytes *in, struct arena *a, struct fatbin_look *ret,
		     struct err *e)
{
	AUTO_ELF_MAP struct elf_map m = {0};
	AUTO_ARENA struct arena scratch = {0};
	struct fatbin_look l = {.name = arena_strdup(a, in->name)};
	struct fatbin_boxes b, others = {0};
	struct fatbin_archs_list archs = {.arena = &scratch};
	size_t others_containers;

	if (!is_elf(in->data, in->size)) { /* text that links libraries, other machines' files */
		*ret = l;
		return 0;
	}

	if (elf_map_memory(in, &m, e) < 0 || fatbin_boxes_find(&m, &scratch, &b, e) < 0 ||
	    fatbin_archs_find(&m, &archs, e) < 0)
		return -1;
	l.groups = group(&b, a, &l.groups_count, &l.containers);
	l.code = b.count || has_section(&m, &b);
	l.used = l.code || strncmp(path_base(in->name), "libtorch_", strlen("libtorch_")) == 0;
	if (b.count)
		(void)fatbin_elsewhere(&b, &m, &scratch, &others);
	l.others = group(&others, a, &l.others_count, &others_containers);
	if (archs.count) {
		l.listed_count = archs.items[0].count;
		l.listed = arena_array(a, archs.items[0].count, sizeof(*l.listed));
		memcpy(l.listed, archs.items[0].entries, archs.items[0].count * sizeof(*l.listed));
	}

	*ret = l;
	return 0;
}

size_t fatbin_look_runs(const struct fatbin_look *l, const struct fatbin_wanted *w, unsigned gpu,
			bool *ret_others)
{
	size_t n = 0;
	bool others = false;

	for (size_t i = 0; i < l->groups_count; i++)
		if (fatbin_runs(l->groups[i].entries, l->groups[i].count, w, gpu))
			n += l->groups[i].containers;
	for (size_t i = 0; i < l->others_count; i++)
		others = others || fatbin_runs(l->others[i].entries, l->others[i].count, w, gpu);
	if (ret_others)
		*ret_others = others;
	return n;
}
