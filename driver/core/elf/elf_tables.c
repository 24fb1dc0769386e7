/* The tables behind the dynamic entries: symbols and versions. */

#include "core/elf/elf_map.h"

enum { MAX_VERSIONS = 0x7fff }; /* a symbol's version index has 15 bits */

static uint32_t get32(const struct elf_map *m, uint64_t offset)
{
	uint32_t v;
	memcpy(&v, m->data + offset, sizeof(v));
	return v;
}

/* The last symbol in the GNU hash table, which has those that can be found by name, ends the
 * highest bucket's chain. 0: it has none, and *ret is the first that it would have. */
static int count_gnu_hash(const struct elf_map *m, uint64_t address, uint64_t *ret, struct err *e)
{
	uint64_t offset, room;

	if (elf_map_need(m, address, 16, "GNU hash table", &offset, e) < 0 ||
	    !elf_map_find(m, address, &offset, &room))
		return -1;
	uint64_t buckets = get32(m, offset), first = get32(m, offset + 4),
		 bloom = get32(m, offset + 8), last = 0;
	uint64_t head = 16 + bloom * 8, chains = head + buckets * 4;
	if (chains > room)
		return elf_map_bad(m, offset, e,
				   "the GNU hash table's %llu buckets leave its segment",
				   (unsigned long long)buckets);
	for (uint64_t i = 0; i < buckets; i++) {
		uint64_t b = get32(m, offset + head + i * 4);
		if (b > last)
			last = b;
	}

	*ret = first;
	if (last == 0)
		return 0;
	if (last < first)
		return elf_map_bad(m, offset, e,
				   "the GNU hash table's bucket names symbol %llu before its first",
				   (unsigned long long)last);
	for (;; last++) {
		uint64_t at = chains + (last - first) * 4;
		if (at > room - 4 || room < 4)
			return elf_map_bad(m, offset, e,
					   "the GNU hash table's last chain leaves its segment");
		if (get32(m, offset + at) & 1)
			break;
	}

	*ret = last + 1;
	return 1;
}

/* Symbols that relocations use: enough for an object
 * that exports nothing, whose hash table is empty. */
static int count_relocations(const struct elf_map *m, const struct elf_table *t, uint64_t *count,
			     struct err *e)
{
	struct elf_range table;

	if (elf_map_table(m, t, &table, e) < 0)
		return -1;
	for (uint64_t i = 0; i + sizeof(Elf64_Rela) <= table.size; i += sizeof(Elf64_Rela)) {
		Elf64_Rela r;
		memcpy(&r, m->data + table.offset + i, sizeof(r));
		uint64_t symbol = ELF64_R_SYM(r.r_info);
		if (symbol != 0 && symbol + 1 > *count)
			*count = symbol + 1;
	}

	return 0;
}

int elf_map_symbols(const struct elf_map *m, uint64_t *ret_offset, uint64_t *ret_count,
		    struct err *e)
{
	uint64_t table, hash, offset, entry, count = 0;

	*ret_offset = *ret_count = 0;
	if (!elf_map_dyn(m, DT_SYMTAB, &table))
		return 0;
	if (elf_map_dyn(m, DT_SYMENT, &entry) && entry != sizeof(Elf64_Sym))
		return elf_map_bad(m, m->dyn_offset, e, "symbols of %llu bytes in the entries",
				   (unsigned long long)entry);
	if (elf_map_dyn(m, DT_HASH, &hash)) {
		if (elf_map_need(m, hash, 8, "hash table", &offset, e) < 0)
			return -1;
		count = get32(m, offset + 4);
	} else {
		int all = 0;
		if (elf_map_dyn(m, DT_GNU_HASH, &hash))
			all = count_gnu_hash(m, hash, &count, e);
		if (all < 0)
			return -1;
		if (!all && (count_relocations(m, &ELF_RELA, &count, e) < 0 ||
			     count_relocations(m, &ELF_JMPREL, &count, e) < 0))
			return -1;
	}

	if (count &&
	    elf_map_need(m, table, count * sizeof(Elf64_Sym), "symbol table", ret_offset, e) < 0)
		return -1;
	*ret_count = count;
	return 0;
}

Elf64_Sym elf_map_symbol(const struct elf_map *m, uint64_t table, uint64_t index)
{
	Elf64_Sym s;
	memcpy(&s, m->data + table + index * sizeof(s), sizeof(s));
	return s;
}

/* Each record is at least its own size further on than the
 * one before, so every walk ends at the segment's end. */
static bool step(uint64_t *at, uint64_t next, uint64_t size, uint64_t end)
{
	if (next < size || next > end - *at || end - *at - next < size)
		return false;
	*at += next;
	return true;
}

int elf_map_needs(struct elf_map *m, struct elf_need **ret, size_t *ret_count, struct err *e)
{
	struct elf_need *list = NULL;
	size_t count = 0, cap = 0;
	uint64_t address, records, at, room;

	*ret = NULL;
	*ret_count = 0;
	if (!elf_map_dyn(m, DT_VERNEED, &address) || !elf_map_dyn(m, DT_VERNEEDNUM, &records) ||
	    records == 0)
		return 0;
	if (elf_map_need(m, address, sizeof(Elf64_Verneed), "version needs", &at, e) < 0 ||
	    !elf_map_find(m, address, &at, &room))
		return -1;
	uint64_t end = at + room;
	for (uint64_t i = 0; i < records; i++) {
		Elf64_Verneed need;
		memcpy(&need, m->data + at, sizeof(need));
		uint64_t aux = at;
		if (need.vn_version != VER_NEED_CURRENT || need.vn_cnt == 0)
			return elf_map_bad(m, at, e, "malformed version need");
		if (!step(&aux, need.vn_aux, sizeof(Elf64_Vernaux), end))
			return elf_map_bad(m, at, e, "version need that leaves its segment");
		for (unsigned j = 0; j < need.vn_cnt; j++) {
			Elf64_Vernaux v;
			memcpy(&v, m->data + aux, sizeof(v));
			if (count == MAX_VERSIONS)
				return elf_map_bad(m, aux, e, "more than %d version needs",
						   MAX_VERSIONS);
			list = arena_room(&m->arena, list, count, &cap, 16, sizeof(*list));
			list[count++] =
				(struct elf_need){.offset = at,
						  .file = need.vn_file,
						  .name = v.vna_name,
						  .index = v.vna_other & MAX_VERSIONS,
						  .weak = (v.vna_flags & VER_FLG_WEAK) != 0};
			if (j + 1U < need.vn_cnt && !step(&aux, v.vna_next, sizeof(v), end))
				return elf_map_bad(m, aux, e,
						   "version need that leaves its segment");
		}

		if (i + 1 < records && !step(&at, need.vn_next, sizeof(need), end))
			return elf_map_bad(m, at, e, "chain of %llu version needs breaks",
					   (unsigned long long)records);
	}

	*ret = list;
	*ret_count = count;
	return 0;
}

int elf_map_definitions(struct elf_map *m, struct elf_need **ret, size_t *ret_count, struct err *e)
{
	struct elf_need *list = NULL;
	uint64_t address, records, at, room;
	size_t total = 0, cap = 0;

	*ret = NULL;
	*ret_count = 0;
	if (!elf_map_dyn(m, DT_VERDEF, &address) || !elf_map_dyn(m, DT_VERDEFNUM, &records) ||
	    records == 0)
		return 0;
	if (elf_map_need(m, address, sizeof(Elf64_Verdef), "version definitions", &at, e) < 0 ||
	    !elf_map_find(m, address, &at, &room))
		return -1;
	uint64_t end = at + room;
	for (uint64_t i = 0; i < records; i++) {
		Elf64_Verdef def;
		memcpy(&def, m->data + at, sizeof(def));
		uint64_t aux = at;
		uint64_t next = def.vd_aux;
		for (unsigned j = 0; j < def.vd_cnt; j++) {
			Elf64_Verdaux v;
			/* A record's first name follows the
			 * record itself, the others one another. */
			if (!step(&aux, next, sizeof(v), end) || total == (size_t)2 * MAX_VERSIONS)
				return elf_map_bad(m, at, e,
						   "version definition that leaves its segment");
			memcpy(&v, m->data + aux, sizeof(v));
			list = arena_room(&m->arena, list, total, &cap, 16, sizeof(*list));
			list[total++] =
				(struct elf_need){.offset = aux, .name = v.vda_name, .index = j};
			next = v.vda_next;
		}

		if (i + 1 < records && !step(&at, def.vd_next, sizeof(def), end))
			return elf_map_bad(m, at, e, "chain of %llu version definitions breaks",
					   (unsigned long long)records);
	}

	*ret = list;
	*ret_count = total;
	return 0;
}

struct room_query {
	/* end: where the string's own NUL may be, before what others use of it */
	uint64_t start, end;
};

static void see_user(struct room_query *q, uint64_t index)
{
	if (index >= q->start && index <= q->end)
		q->end = index > q->start ? index - 1 : q->start;
}

static int see_users(struct elf_map *m, struct room_query *q, struct err *e)
{
	static const int64_t tags[] = {DT_NEEDED, DT_SONAME,    DT_CONFIG, DT_DEPAUDIT,
				       DT_AUDIT,  DT_AUXILIARY, DT_FILTER};
	uint64_t table = 0, count = 0;
	struct elf_need *needs, *defs;
	size_t needs_count, defs_count;

	for (size_t i = 0; i < m->dyn_count; i++) {
		for (size_t t = 0; t < ARRAY_LEN(tags); t++) {
			if (m->dyn[i].d_tag == tags[t])
				see_user(q, m->dyn[i].d_un.d_val);
		}
	}

	if (elf_map_symbols(m, &table, &count, e) < 0 ||
	    elf_map_needs(m, &needs, &needs_count, e) < 0 ||
	    elf_map_definitions(m, &defs, &defs_count, e) < 0)
		return -1;
	for (uint64_t i = 0; i < count; i++)
		see_user(q, elf_map_symbol(m, table, i).st_name);
	for (size_t i = 0; i < needs_count; i++) {
		see_user(q, needs[i].file);
		see_user(q, needs[i].name);
	}

	for (size_t i = 0; i < defs_count; i++)
		see_user(q, defs[i].name);
	return 0;
}

int elf_map_path_room(struct elf_map *m, uint64_t index, size_t *ret, struct err *e)
{
	const char *s;

	*ret = 0;
	if (elf_map_string(m, index, m->dyn_offset, &s, e) < 0)
		return -1;
	/* Linkers store a string inside a longer one that ends with it. */
	if (index == 0 || s[-1] != '\0')
		return 0;
	struct room_query q = {.start = index, .end = index + strlen(s)};
	if (see_users(m, &q, e) < 0)
		return -1;
	*ret = q.end - q.start;
	return 0;
}
