#include "core/fatbin/fatbin.h"

#include <elf.h>

#include "core/fatbin/fatbin_parts.h"

/* The format is not documented. The numbers are from CUDA's headers
 * (FATBIN_MAGIC, FATBIN_KIND_*) and from what nvcc 12.4, 12.8 and 13.0 write for
 * each target, kind and compression, compared with cuobjdump. */
#define CONTAINER_MAGIC 0xba55ed50u
#define CONTAINER_HEADER 16u
#define ENTRY_HEADER 64u
#define WRAPPER_MAGIC 0x466243b1u
#define WRAPPER_BYTES 24u

enum entry_flags {
	FLAG_LZ4 = 0x2000,
	FLAG_ZSTD = 0x8000,
	FLAG_SEALED = 0x10000,
	FLAG_ARCH = 0x100000,   /* sm_90a: exactly this chip */
	FLAG_FAMILY = 0x200000, /* sm_100f: this family */
};

int fatbin_bad(const struct fatbin_file *f, uint64_t offset, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	const char *quote = f->name ? "'" : "", *open = *f->member ? " (" : "";
	return err_set(f->e, ERR_INTEGRITY, "%s%s%s%s%s%s: %s at offset 0x%llx", quote,
		       f->name ? f->name : "the file", quote, open, f->member, *open ? ")" : "",
		       text, (unsigned long long)offset);
}

uint64_t fatbin_number(const struct fatbin_file *f, uint64_t at, size_t bytes)
{
	uint64_t v = 0;
	memcpy(&v, f->data + at, bytes);
	return v;
}

static enum fatbin_kind known_kind(unsigned number)
{
	return number == FATBIN_PTX || number == FATBIN_CUBIN || number == FATBIN_LTO
		       ? (enum fatbin_kind)number
		       : FATBIN_OTHER;
}

void fatbin_add(struct fatbin_file *f, const struct fatbin_entry *entry)
{
	struct fatbin_boxes *b = f->b;

	b->entries = arena_room(f->a, b->entries, b->entries_count, &b->entries_cap, 64,
				sizeof(*b->entries));
	b->entries[b->entries_count++] = *entry;
}

void fatbin_close(struct fatbin_file *f, const struct fatbin_box *box)
{
	struct fatbin_boxes *b = f->b;

	b->items = arena_room(f->a, b->items, b->count, &b->cap, 16, sizeof(*b->items));
	b->items[b->count++] = (struct fatbin_box){.section = f->section,
						   .from = box->from,
						   .body = box->body,
						   .to = box->to,
						   .first = box->first,
						   .among = f->among,
						   .entries = b->entries_count - box->first};
}

/* Reads an entry whose complete header is inside the container. */
/* The entry at f->at, which is then behind it. */
static int read_entry(struct fatbin_file *f, uint64_t end)
{
	const uint64_t at = f->at;
	struct fatbin_entry entry = {
		.relocatable = f->relocatable, .member = f->member, .container = f->b->count};
	uint32_t header = (uint32_t)fatbin_number(f, at + 4, 4),
		 packed = (uint32_t)fatbin_number(f, at + 16, 4),
		 sm = (uint32_t)fatbin_number(f, at + 28, 4);
	uint64_t padded = fatbin_number(f, at + 8, 8), flags = fatbin_number(f, at + 40, 8),
		 raw = fatbin_number(f, at + 56, 8);

	if (header < ENTRY_HEADER || header > end - at)
		return fatbin_bad(f, at + 4, "a GPU code entry has a header of %u bytes", header);
	if (padded > end - at - header)
		return fatbin_bad(f, at + 8, "a GPU code entry of %llu bytes leaves its container",
				  (unsigned long long)padded);
	if (packed > padded)
		return fatbin_bad(f, at + 16, "a GPU code entry of %u bytes has room for %llu",
				  packed, (unsigned long long)padded);
	if (sm > 9999)
		return fatbin_bad(f, at + 28, "a GPU code entry for target %u", sm);
	if ((flags & FLAG_LZ4) && (flags & FLAG_ZSTD))
		return fatbin_bad(f, at + 40, "a GPU code entry that is compressed in two ways");
	entry.number = (unsigned)fatbin_number(f, at, 2);
	entry.kind = known_kind(entry.number);
	entry.packing = flags & FLAG_ZSTD  ? FATBIN_ZSTD
			: flags & FLAG_LZ4 ? FATBIN_LZ4
					   : FATBIN_PLAIN;
	entry.sealed = (flags & FLAG_SEALED) != 0;
	entry.from = at;
	entry.to = at + header + padded;
	entry.offset = at + header;
	entry.size = packed ? packed : padded;
	entry.raw_size = entry.packing == FATBIN_PLAIN ? entry.size : raw;
	snprintf(entry.target, sizeof(entry.target), "%u%s", sm,
		 flags & FLAG_FAMILY ? "f"
		 : flags & FLAG_ARCH ? "a"
				     : "");
	f->at = at + header + padded;
	fatbin_add(f, &entry);
	return 0;
}

static int read_container(struct fatbin_file *f, uint64_t limit)
{
	const uint64_t at = f->at;

	if (limit - at < CONTAINER_HEADER)
		return fatbin_bad(f, at, "a fat binary ends within its header");
	unsigned version = (unsigned)fatbin_number(f, at + 4, 2),
		 header = (unsigned)fatbin_number(f, at + 6, 2);
	uint64_t size = fatbin_number(f, at + 8, 8);
	if (version != 1 || header < CONTAINER_HEADER)
		return fatbin_bad(f, at + 4, "a fat binary of version %u with a header of %u bytes",
				  version, header);
	if (header > limit - at || size > limit - at - header)
		return fatbin_bad(f, at + 8, "a fat binary of %llu bytes leaves its section",
				  (unsigned long long)size);
	uint64_t end = at + header + size;
	size_t first = f->b->entries_count;
	for (f->at = at + header; f->at < end;) {
		if (end - f->at < ENTRY_HEADER)
			return fatbin_bad(f, f->at, "a GPU code entry ends within its header");
		if (read_entry(f, end) < 0)
			return -1;
	}

	fatbin_close(f, &(struct fatbin_box){
				.from = at, .body = at + header, .to = end, .first = first});
	return 0;
}

int fatbin_containers(struct fatbin_file *f, uint64_t at, uint64_t end)
{
	for (f->at = at; f->at < end;) {
		if (f->data[f->at] == 0) { /* what pads them to their alignment */
			f->at++;
			continue;
		}

		if (end - f->at < 4 || fatbin_number(f, f->at, 4) != CONTAINER_MAGIC)
			return fatbin_bad(f, f->at, "not a fat binary where one must be");
		if (read_container(f, end) < 0)
			return -1;
	}

	return 0;
}

int fatbin_wrappers(struct fatbin_file *f, uint64_t at, uint64_t end)
{
	for (; at < end; at += WRAPPER_BYTES) {
		if (end - at < WRAPPER_BYTES || fatbin_number(f, at, 4) != WRAPPER_MAGIC)
			return fatbin_bad(f, at, "not a record of a fat binary where one must be");
	}

	return 0;
}

bool fatbin_is_container(const struct fatbin_file *f, uint64_t at, uint64_t end)
{
	return end - at >= CONTAINER_HEADER && fatbin_number(f, at, 4) == CONTAINER_MAGIC;
}

struct summing {
	struct fatbin_summary *s;
	struct arena *a;
	size_t cap, sets_cap;
	struct strlist words, cubins; /* of the fat binary that is being read */
};

int fatbin_target_cmp(const char *a, const char *b)
{
	char *a_end, *b_end;
	unsigned long x = strtoul(a, &a_end, 10), y = strtoul(b, &b_end, 10);
	return x != y ? (x > y) - (x < y) : strcmp(a_end, b_end);
}

char *fatbin_kind_name(enum fatbin_kind kind, unsigned number, struct arena *a)
{
	if (kind == FATBIN_PTX)
		return arena_strdup(a, "PTX");
	if (kind == FATBIN_CUBIN)
		return arena_strdup(a, "cubin");
	if (kind == FATBIN_LTO)
		return arena_strdup(a, "LTO code");
	return arena_printf(a, "kind 0x%x", number);
}

char *fatbin_name(const struct fatbin_count *c, struct arena *a)
{
	return arena_printf(a, "%s sm_%s", fatbin_kind_name(c->kind, c->number, a), c->target);
}

/* Whether a cubin or PTX that says `inside` of itself fits
 * an entry for `target`: newer cubins leave the letter out. */
static bool fits(enum fatbin_kind kind, const char *target, const char *inside)
{
	if (!*inside || strcmp(target, inside) == 0)
		return true;
	return kind == FATBIN_CUBIN && strtoul(target, NULL, 10) == strtoul(inside, NULL, 10);
}

struct fatbin_count *fatbin_count_for(struct arena *a, struct fatbin_count **items, size_t *count,
				      size_t *cap, const struct fatbin_entry *entry)
{
	for (size_t i = 0; i < *count; i++)
		if ((*items)[i].number == entry->number &&
		    strcmp((*items)[i].target, entry->target) == 0)
			return &(*items)[i];
	*items = arena_room(a, *items, *count, cap, 16, sizeof(**items));
	struct fatbin_count *n = &(*items)[(*count)++];
	*n = (struct fatbin_count){.kind = entry->kind, .number = entry->number};
	memcpy(n->target, entry->target, sizeof(n->target));
	return n;
}

/* The end of a fat binary: it is counted with those that hold the same. */
static void close_container(struct summing *c)
{
	struct fatbin_summary *s = c->s;

	strlist_sort(&c->words);
	const char *text = strlist_join(&c->words, c->a, ", ");
	size_t i = 0;
	while (i < s->sets_count && strcmp(s->sets[i].text, text) != 0)
		i++;
	if (i == s->sets_count) {
		s->sets =
			arena_room(c->a, s->sets, s->sets_count, &c->sets_cap, 8, sizeof(*s->sets));
		s->sets[s->sets_count++] = (struct fatbin_set){.text = text, .cubins = c->cubins};
		c->cubins = (struct strlist){0};
	}

	s->sets[i].containers++;
	s->containers++;
	c->words.count = c->cubins.count = 0;
}

static void add(struct summing *c, const struct fatbin_entry *entry, const char *inside)
{
	struct fatbin_count *n = fatbin_count_for(c->a, &c->s->items, &c->s->count, &c->cap, entry);

	n->entries++;
	n->bytes += entry->size;
	const char *word = fatbin_name(n, c->a);
	strlist_once(&c->words, c->a, word);
	if (entry->kind == FATBIN_CUBIN && !strlist_contains(&c->cubins, entry->target))
		strlist_add(&c->cubins, c->a, entry->target);
	if (!fits(entry->kind, entry->target, inside))
		strlist_addf(&c->s->wrong, c->a,
			     "%s at offset 0x%llx is for sm_%s, its header says sm_%s",
			     fatbin_kind_name(entry->kind, entry->number, c->a),
			     (unsigned long long)entry->offset, inside, entry->target);
}

int fatbin_count_cmp(const void *a, const void *b)
{
	const struct fatbin_count *x = a, *y = b;
	int order = fatbin_target_cmp(x->target, y->target);
	return order ? order : (x->number > y->number) - (x->number < y->number);
}

bool fatbin_library_name(const char *name)
{
	const char *base = path_base(name);
	return path_has_suffix(base, ".so") || strstr(base, ".so.");
}

int fatbin_summarize(const struct file_bytes *in, struct arena *a, struct fatbin_summary *ret,
		     struct err *e)
{
	AUTO_ARENA struct arena scratch = {0};
	struct fatbin_summary s = {0};
	struct summing c = {.s = &s, .a = a};
	struct fatbin_entries all;

	if (fatbin_scan(in, &scratch, &all, e) < 0)
		return -1;
	for (size_t i = 0; i < all.count; i++) {
		char inside[16];
		if (fatbin_inside(in, &all.items[i], inside, e) < 0)
			return -1;
		add(&c, &all.items[i], inside);
		if (i + 1 == all.count || all.items[i + 1].container != all.items[i].container)
			close_container(&c);
	}

	array_sort(s.items, s.count, sizeof(*s.items), fatbin_count_cmp);
	*ret = s;
	return 0;
}
