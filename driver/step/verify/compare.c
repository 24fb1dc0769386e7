#include "base/sys/digest.h"
#include "base/sys/json.h"
#include "core/wheel/wheel.h"
#include "core/zip/zip.h"
#include "step/verify/compare_info.h"
#include "step/verify/verify.h"

struct comparing {
	struct arena *a;
	json_t *found;
	const struct run *run;
	struct zip_reader *zip[2];
	const char *file[2]; /* reused for each member */
	const char *member;  /* being compared */
	size_t details;      /* noted of it so far */
	size_t members;      /* that differ in their contents */
	size_t times;        /* members with another time */
	const char *first_time;
	size_t modes; /* members with modes that differ as those of the first do */
	const struct zip_entry *first_mode[2];
};

static bool compare_same(const struct fs_mapping *one, const struct fs_mapping *other)
{
	return one->size == other->size &&
	       (one->size == 0 || memcmp(one->data, other->data, one->size) == 0);
}

/* One more difference of the member. */
static void __attribute__((format(printf, 3, 4)))
compare_note(struct comparing *x, const char *where, const char *fmt, ...)
{
	va_list ap;

	if (++x->details > COMPARE_DETAILS + 1)
		return;
	va_start(ap, fmt);
	const char *what = arena_vprintf(x->a, fmt, ap);
	va_end(ap);
	if (x->details > COMPARE_DETAILS) {
		where = "";
		what = "differs in more than these";
	}

	json_array_append_new(x->found,
			      json_pack("{s:o, s:o, s:o}", "member", json_or_null(x->member),
					"where", json_or_null(utf8_printable(where, x->a)), "what",
					json_or_null(utf8_printable(what, x->a))));
}

/* Where two ELF files differ, by section and symbol. */
enum { NAMES_MAX = 10 };

struct symbol {
	const char *name;
	uint64_t address, size;
};

struct section {
	const char *name;
	GElf_Shdr header;
	struct fs_mapping bytes; /* empty for one without bytes in the file */
};

struct file {
	Elf *elf;
	struct section *sections;
	size_t count;
	struct symbol *symbols; /* with a size, by address */
	size_t symbols_count;
};

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return strcmp(x->name, y->name);
}

static const struct section *find_type(const struct file *f, uint32_t type)
{
	for (size_t i = 0; i < f->count; i++) {
		if (f->sections[i].header.sh_type == type)
			return &f->sections[i];
	}

	return NULL;
}

/* The static table, else what the dynamic one has. */
static void read_symbols(struct file *f, struct arena *a)
{
	const struct section *table = find_type(f, SHT_SYMTAB);

	table = table ? table : find_type(f, SHT_DYNSYM);
	Elf_Scn *scn = table ? elf_getscn(f->elf, (size_t)(table - f->sections) + 1) : NULL;
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	size_t n = data && table->header.sh_entsize ? data->d_size / table->header.sh_entsize : 0;
	f->symbols = arena_array(a, n, sizeof(*f->symbols));
	for (size_t i = 0; i < n && i < INT32_MAX; i++) {
		GElf_Sym s;
		if (!gelf_getsym(data, (int)i, &s) || !s.st_size || s.st_shndx == SHN_UNDEF)
			continue;
		const char *name = elf_strptr(f->elf, table->header.sh_link, s.st_name);
		if (name && *name)
			f->symbols[f->symbols_count++] =
				(struct symbol){name, s.st_value, s.st_size};
	}

	qsort(f->symbols, f->symbols_count, sizeof(*f->symbols), by_address);
}

static bool read_file(struct file *f, const struct fs_mapping *b, struct arena *a)
{
	size_t names, count;

	if (elf_version(EV_CURRENT) == EV_NONE || b->size < EI_NIDENT ||
	    memcmp(b->data, ELFMAG, SELFMAG) != 0)
		return false;
	f->elf = elf_memory((char *)(uintptr_t)b->data, b->size);
	if (!f->elf || elf_getshdrstrndx(f->elf, &names) != 0 ||
	    elf_getshdrnum(f->elf, &count) != 0 || count < 2)
		return false;
	f->sections = arena_array(a, count - 1, sizeof(*f->sections));
	for (size_t i = 1; i < count; i++) {
		struct section *s = &f->sections[i - 1];
		Elf_Scn *scn = elf_getscn(f->elf, i);
		if (!scn || !gelf_getshdr(scn, &s->header))
			return false;
		const char *name = elf_strptr(f->elf, names, s->header.sh_name);
		s->name = name ? name : "";
		bool inside = s->header.sh_offset <= b->size &&
			      s->header.sh_size <= b->size - s->header.sh_offset;
		if (s->header.sh_type != SHT_NOBITS && inside)
			s->bytes = (struct fs_mapping){b->data + s->header.sh_offset,
						       s->header.sh_size};
	}

	f->count = count - 1;
	read_symbols(f, a);
	return true;
}

static const struct section *find_section(const struct file *f, const char *name)
{
	return text_search(name, f->sections, f->count, sizeof(*f->sections));
}

static const struct symbol *symbol_at(const struct file *f, uint64_t address)
{
	size_t low = 0, high = f->symbols_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (f->symbols[mid].address <= address)
			low = mid + 1;
		else
			high = mid;
	}

	while (low-- > 0) {
		const struct symbol *s = &f->symbols[low];
		if (address - s->address < s->size)
			return s;
		if (address - s->address > (1U << 20))
			break;
	}

	return NULL;
}

/* Sections of equal size: which symbols differ. */
static void compare_section_bytes(struct comparing *x, const struct file *f,
				  const struct section *one, const struct section *other)
{
	size_t len = one->bytes.size, bytes = 0, first = len, last_end = 0;
	struct strlist names = {0};

	for (size_t i = 0; i < len; i++) {
		if (one->bytes.data[i] == other->bytes.data[i])
			continue;
		first = first == len ? i : first;
		bytes++;
		if (i < last_end || names.count == NAMES_MAX || !(one->header.sh_flags & SHF_ALLOC))
			continue;
		const struct symbol *s = symbol_at(f, one->header.sh_addr + i);
		last_end = s ? (size_t)(s->address + s->size - one->header.sh_addr) : i + 16;
		if (s)
			strlist_once(&names, x->a, s->name);
	}

	compare_note(x, arena_printf(x->a, "section %s", one->name),
		     "%zu of %zu bytes differ, the first at 0x%zx", bytes, len, first);
	for (size_t i = 0; i < names.count; i++)
		compare_note(x, arena_printf(x->a, "symbol %s", names.items[i]),
			     "has other bytes in %s", one->name);
}

static int by_symbol_name(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	int c = strcmp(x->name, y->name);
	return c ? c : (x->size > y->size) - (x->size < y->size);
}

/* Symbols that only one has, or of another size. Leaves the symbols sorted by name. */
static void compare_symbols(struct comparing *x, const struct file *one, const struct file *other)
{
	size_t i = 0, k = 0, shown = 0;
	struct symbol *p = one->symbols, *q = other->symbols;

	qsort(p, one->symbols_count, sizeof(*p), by_symbol_name);
	qsort(q, other->symbols_count, sizeof(*q), by_symbol_name);
	while ((i < one->symbols_count || k < other->symbols_count) && shown < NAMES_MAX) {
		int c = i == one->symbols_count     ? 1
			: k == other->symbols_count ? -1
						    : strcmp(p[i].name, q[k].name);
		if (c != 0) {
			compare_note(x,
				     arena_printf(x->a, "symbol %s", c < 0 ? p[i].name : q[k].name),
				     "is in the %s only", c < 0 ? "first" : "second");
			shown++;
		} else if (p[i].size != q[k].size) {
			compare_note(x, arena_printf(x->a, "symbol %s", p[i].name),
				     "has %llu bytes in the first, %llu in the second",
				     (unsigned long long)p[i].size, (unsigned long long)q[k].size);
			shown++;
		}

		i += c <= 0;
		k += c >= 0;
	}
}

static bool compare_files(struct comparing *x, const struct file *one, const struct file *other)
{
	bool sizes = false, any = false;

	for (size_t i = 0; i < one->count; i++) {
		const struct section *s = &one->sections[i], *t = find_section(other, s->name);
		if (t && compare_same(&s->bytes, &t->bytes))
			continue;
		any = true;
		const char *where = arena_printf(x->a, "section %s", s->name);
		if (!t)
			compare_note(x, where, "is in the first only");
		else if (s->bytes.size != t->bytes.size)
			compare_note(x, where, "has %zu bytes in the first, %zu in the second",
				     s->bytes.size, t->bytes.size);
		else
			compare_section_bytes(x, one, s, t);
		sizes = sizes || !t || s->bytes.size != t->bytes.size;
	}

	for (size_t i = 0; i < other->count; i++) {
		if (find_section(one, other->sections[i].name))
			continue;
		compare_note(x, arena_printf(x->a, "section %s", other->sections[i].name),
			     "is in the second only");
		any = sizes = true;
	}

	if (sizes)
		compare_symbols(x, one, other);
	return any;
}

static bool compare_elf(struct comparing *x, const struct fs_mapping *one,
			const struct fs_mapping *other)
{
	struct file f = {0}, g = {0};
	bool differ =
		read_file(&f, one, x->a) && read_file(&g, other, x->a) && compare_files(x, &f, &g);

	elf_end(f.elf);
	elf_end(g.elf);
	return differ;
}

enum { TEXT_PROBE = 8192, LINE_SHOWN = 120 };

/* ---- contents ---- */

static bool is_text(const struct fs_mapping *b)
{
	return !b->size || !memchr(b->data, 0, b->size < TEXT_PROBE ? b->size : TEXT_PROBE);
}

/* The line around `at`, shortened. */
static char *line_at(const struct fs_mapping *b, size_t at, struct arena *a)
{
	size_t start = at < b->size ? at : b->size, end = start;

	while (start > 0 && b->data[start - 1] != '\n')
		start--;
	while (end < b->size && b->data[end] != '\n')
		end++;
	size_t len = end - start;
	bool cut = len > LINE_SHOWN;
	size_t from = cut && at - start > LINE_SHOWN / 2 ? at - LINE_SHOWN / 2 : start;
	len = end - from < LINE_SHOWN ? end - from : LINE_SHOWN;
	return arena_printf(a, "%.*s%s", (int)len, (const char *)b->data + from, cut ? "..." : "");
}

static void compare_text_bytes(struct comparing *x, const struct fs_mapping *b)
{
	size_t at = 0, line = 1, shorter = b[0].size < b[1].size ? b[0].size : b[1].size;

	for (; at < shorter && b[0].data[at] == b[1].data[at]; at++)
		line += b[0].data[at] == '\n';
	compare_note(x, arena_printf(x->a, "line %zu", line),
		     "is '%s' in the first, '%s' in the second", line_at(&b[0], at, x->a),
		     line_at(&b[1], at, x->a));
}

static void compare_binary(struct comparing *x, const struct fs_mapping *b)
{
	size_t at = 0, differ = 0, first = 0,
	       shorter = b[0].size < b[1].size ? b[0].size : b[1].size;

	for (; at < shorter; at++) {
		if (b[0].data[at] != b[1].data[at] && !differ++)
			first = at;
	}

	first = differ ? first : shorter;
	if (b[0].size == b[1].size)
		compare_note(x, "", "%zu of %zu bytes differ, the first at 0x%zx", differ, shorter,
			     first);
	else
		compare_note(x, "",
			     "has %zu bytes in the first, %zu in the second; the first difference "
			     "is at 0x%zx",
			     b[0].size, b[1].size, first);
}

static int map_member(struct comparing *x, size_t i, const struct zip_entry *en,
		      struct fs_mapping *ret, struct err *e)
{
	AUTO_FD int fd =
		open(x->file[i], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot create '%s'", x->file[i]);
	if (zip_extract_fd(x->zip[i], en, fd, NULL, e) < 0)
		return fs_disk_place(x->file[i], e);
	return fs_map(x->file[i], ret, e);
}

static bool compare_documents(struct comparing *x, const char *name, const struct fs_mapping *b)
{
	struct strlist where = {0}, what = {0};

	if (!compare_info(name, b, x->a, &where, &what))
		return false;
	for (size_t i = 0; i < where.count; i++)
		compare_note(x, where.items[i], "%s", what.items[i]);
	if (!where.count)
		compare_note(x, "", "has the same meaning, written differently");
	return true;
}

static int compare_contents(struct comparing *x, const struct zip_entry *const *en, struct err *e)
{
	AUTO_MAPPING struct fs_mapping one = {0};
	AUTO_MAPPING struct fs_mapping other = {0};

	if (map_member(x, 0, en[0], &one, e) < 0 || map_member(x, 1, en[1], &other, e) < 0)
		return -1;
	const struct fs_mapping b[] = {one, other};
	if (!compare_same(&b[0], &b[1])) {
		x->members++;
		if (compare_documents(x, en[0]->name, b))
			return 0;
		if (is_text(&b[0]) && is_text(&b[1]))
			compare_text_bytes(x, b);
		else if (!compare_elf(x, &b[0], &b[1]))
			compare_binary(x, b);
	} else if (en[0]->packed != en[1]->packed || en[0]->method != en[1]->method) {
		compare_note(x, "packing", "the same contents are packed differently");
	}

	return 0;
}

/* ---- the archive ---- */

/* Packers give all members a mode of theirs: one line says it of those that differ alike. */
static void compare_modes(struct comparing *x, const struct zip_entry *one,
			  const struct zip_entry *other)
{
	if (one->mode == other->mode)
		return;
	if (!x->modes) {
		x->first_mode[0] = one;
		x->first_mode[1] = other;
	}

	if (one->mode == x->first_mode[0]->mode && other->mode == x->first_mode[1]->mode)
		x->modes++;
	else
		compare_note(x, "mode", "is %o in the first, %o in the second", one->mode,
			     other->mode);
}

static void note_modes(struct comparing *x)
{
	const struct zip_entry *one = x->first_mode[0], *other = x->first_mode[1];

	x->details = 0;
	if (x->modes == 1) {
		x->member = one->name;
		compare_note(x, "mode", "is %o in the first, %o in the second", one->mode,
			     other->mode);
	} else if (x->modes) {
		compare_note(
			x, "mode",
			"%zu members have %o in the first, %o in the second, the first is '%s'",
			x->modes, one->mode, other->mode, one->name);
	}

	x->member = "";
	x->details = 0;
}

static int compare_entry(struct comparing *x, const struct zip_entry *one,
			 const struct zip_entry *other, struct err *e)
{
	const struct zip_entry *const both[] = {one, other};

	compare_modes(x, one, other);
	if (one->dos_time != other->dos_time && !x->times++)
		x->first_time = one->name;
	/* The archive's checksum and size are enough: comparing all members would take long. */
	if (one->crc == other->crc && one->size == other->size && one->packed == other->packed &&
	    one->method == other->method)
		return 0;
	return compare_contents(x, both, e);
}

struct member {
	const char *name; /* its dist-info without the version: it is the same directory in both */
	const struct zip_entry *en;
};

static struct member *read_members(const struct zip_reader *z, struct arena *a)
{
	const size_t n = zip_count(z);
	const char *info = "";
	struct member *members = arena_array(a, n + 1, sizeof(*members));

	if (wheel_zip_dist_info(z, a, &info, ERR_IGNORED) < 0)
		info = "";
	const size_t len = strlen(info);
	for (size_t i = 0; i < n; i++) {
		const struct zip_entry *en = zip_at(z, i);
		const bool inside =
			len && strncmp(en->name, info, len) == 0 && en->name[len] == '/';
		members[i] = (struct member){
			inside ? arena_printf(a, ".dist-info%s", en->name + len) : en->name, en};
	}

	array_sort(members, n, sizeof(*members), text_cmp);
	return members;
}

static int compare_members(struct comparing *x, struct err *e)
{
	const struct zip_entry *one, *other;
	size_t n = zip_count(x->zip[0]), m = zip_count(x->zip[1]), i = 0, k = 0,
	       directories[2] = {0};
	const struct member *left = read_members(x->zip[0], x->a),
			    *right = read_members(x->zip[1], x->a);

	while (i < n || k < m) {
		one = i < n ? left[i].en : NULL;
		other = k < m ? right[k].en : NULL;
		int c = i == n ? 1 : k == m ? -1 : strcmp(left[i].name, right[k].name);
		x->member = c <= 0 ? one->name : other->name;
		x->details = 0;
		if (run_check(x->run, e) < 0)
			return -1;
		if (c != 0 && path_has_suffix(x->member, "/")) {
			directories[c > 0]++;
		} else if (c != 0) {
			x->members++;
			compare_note(x, "", "is in the %s only", c < 0 ? "first" : "second");
		} else if (compare_entry(x, one, other, e) < 0) {
			return -1;
		}

		i += c <= 0;
		k += c >= 0;
	}

	x->member = "";
	note_modes(x);
	for (i = 0; i < 2; i++)
		if (directories[i])
			compare_note(x, "", "%zu entries of directories are in the %s only",
				     directories[i], i ? "second" : "first");
	if (x->times)
		compare_note(x, "time", "%zu members have another one, the first is '%s'", x->times,
			     x->first_time);
	for (i = 0; n == m && i < n; i++) {
		if (strcmp(zip_at(x->zip[0], i)->name, zip_at(x->zip[1], i)->name) != 0) {
			compare_note(x, "order", "the members are in another order from '%s' on",
				     zip_at(x->zip[0], i)->name);
			break;
		}
	}

	if (!json_array_size(x->found))
		compare_note(x, "",
			     "the archives differ, but neither in names, order, times, modes nor "
			     "sizes of their members");
	return 0;
}

static int compare_archives(struct comparing *x, const char *const *wheels, struct err *e)
{
	char *dir;

	if (fs_temp_dir(NULL, "ptbuild-compare-", x->a, &dir, e) < 0)
		return -1;
	int rc = 0;
	for (size_t i = 0; i < 2 && rc == 0; i++) {
		x->file[i] = path_join(x->a, dir, i ? "second" : "first");
		rc = zip_open(wheels[i], x->a, &x->zip[i], e);
	}

	if (rc == 0)
		rc = compare_members(x, e);
	zip_close(x->zip[0]);
	zip_close(x->zip[1]);
	if (fs_remove(TRUSTED, dir, rc < 0 ? ERR_IGNORED : e) < 0)
		rc = -1;
	return rc;
}

int compare_wheels(const char *one, const char *other, const struct run *run, struct arena *a,
		   json_t **ret, struct err *e)
{
	AUTO_JSON json_t *found = json_array();
	const char *const wheels[] = {one, other};
	struct comparing x = {.a = a, .found = found, .member = "", .run = run};
	char sha256[2][DIGEST_HEX_LEN + 1];

	if (digest_file(one, sha256[0], e) < 0 || digest_file(other, sha256[1], e) < 0)
		return -1;
	const bool same = strcmp(sha256[0], sha256[1]) == 0;
	if (!same && compare_archives(&x, wheels, e) < 0)
		return -1;
	*ret = json_pack("{s:b, s:[s, s], s:i, s:O}", "same", same, "sha256", sha256[0], sha256[1],
			 "members", (int)x.members, "differences", found);
	return 0;
}
