
#include "core/fatbin/fatbin_parts.h"

struct summing {
	struct fatbin_summary *s;
	struct arena *a;
	const char *name;
	const void *data;
	size_t size;
	size_t cap, sets_cap;
	bool open; /* a fat binary is being read: */
	size_t container;
	struct strlist words, cubins;
};

int fatbin_target_cmp(const char *a, const char *b)
{
	char *a_end, *b_end;
	unsigned long x = strtoul(a, &a_end, 10), y = strtoul(b, &b_end, 10);
	return x != y ? (x > y) - (x < y) : strcmp(a_end, b_end);
}

char *fatbin_kind_name(enum fatbin_kind kind, unsigned number, struct arena *a)
{
	return kind == FATBIN_PTX     ? arena_strdup(a, "PTX")
	       : kind == FATBIN_CUBIN ? arena_strdup(a, "cubin")
	       : kind == FATBIN_LTO   ? arena_strdup(a, "LTO code")
				      : arena_printf(a, "kind 0x%x", number);
}

char *fatbin_name(const struct fatbin_count *c, struct arena *a)
{
	return arena_printf(a, "%s sm_%s", fatbin_kind_name(c->kind, c->number, a), c->target);
}

/* Whether a cubin or PTX that says `inside` of itself fits an entry for `target`: newer cubins leave the letter out. */
static bool fits(enum fatbin_kind kind, const char *target, const char *inside)
{
	if (!*inside || strcmp(target, inside) == 0)
		return true;
	return kind == FATBIN_CUBIN && strtoul(target, NULL, 10) == strtoul(inside, NULL, 10);
}

static struct fatbin_count *count_for(struct summing *c, const struct fatbin_entry *entry)
{
	struct fatbin_summary *s = c->s;
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].number == entry->number && strcmp(s->items[i].target, entry->target) == 0)
			return &s->items[i];
	s->items = arena_room(c->a, s->items, s->count, &c->cap, 16, sizeof(*s->items));
	struct fatbin_count *n = &s->items[s->count++];
	*n = (struct fatbin_count){.kind = entry->kind, .number = entry->number};
	memcpy(n->target, entry->target, sizeof(n->target));
	return n;
}

/* The end of a fat binary: it is counted with those that hold the same. */
static void close_container(struct summing *c)
{
	struct fatbin_summary *s = c->s;
	if (!c->open)
		return;
	strlist_sort(&c->words);
	const char *text = strlist_join(&c->words, c->a, ", ");
	size_t i = 0;
	while (i < s->sets_count && strcmp(s->sets[i].text, text) != 0)
		i++;
	if (i == s->sets_count) {
		s->sets = arena_room(c->a, s->sets, s->sets_count, &c->sets_cap, 8, sizeof(*s->sets));
		s->sets[s->sets_count++] = (struct fatbin_set){.text = text, .cubins = c->cubins};
		c->cubins = (struct strlist){0};
	}
	s->sets[i].containers++;
	s->containers++;
	c->words.count = c->cubins.count = 0;
	c->open = false;
}

static int add(const struct fatbin_entry *entry, void *user, struct err *e)
{
	struct summing *c = user;
	char inside[16];
	struct fatbin_count *n = count_for(c, entry);
	n->entries++;
	n->bytes += entry->size;
	if (c->open && c->container != entry->container)
		close_container(c);
	c->open = true;
	c->container = entry->container;
	const char *word = fatbin_name(n, c->a);
	strlist_once(&c->words, c->a, word);
	if (entry->kind == FATBIN_CUBIN && !strlist_contains(&c->cubins, entry->target))
		strlist_add(&c->cubins, c->a, entry->target);
	if (fatbin_inside(c->data, c->size, c->name, entry, inside, e) < 0)
		return -1;
	if (!fits(entry->kind, entry->target, inside))
		strlist_addf(&c->s->wrong, c->a, "%s at offset 0x%llx is for sm_%s, its header says sm_%s",
			     fatbin_kind_name(entry->kind, entry->number, c->a), (unsigned long long)entry->offset,
			     inside, entry->target);
	return 0;
}

static int by_target(const void *a, const void *b)
{
	const struct fatbin_count *x = a, *y = b;
	int order = fatbin_target_cmp(x->target, y->target);
	return order ? order : (x->number > y->number) - (x->number < y->number);
}

int fatbin_summarize(const void *data, size_t size, const char *name, struct arena *a, struct fatbin_summary *ret,
		     struct err *e)
{
	struct fatbin_summary s = {0};
	struct summing c = {.s = &s, .a = a, .name = name, .data = data, .size = size};
	if (fatbin_scan(data, size, name, add, &c, e) < 0)
		return -1;
	close_container(&c);
	array_sort(s.items, s.count, sizeof(*s.items), by_target);
	*ret = s;
	return 0;
}
