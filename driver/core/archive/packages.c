#include "core/archive/packages.h"

#include <archive.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/digest.h"
#include "core/archive/control.h"

enum { PACKAGES_MAX = 500000, NAME_MAX_BYTES = 128, PATH_MAX_BYTES = 1024 };

/* Ten times the largest package of Debian. */
#define SIZE_MAX_BYTES (32ULL << 30)

static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789";

bool archive_name_valid(const char *s)
{
	size_t len = strlen(s);
	return len >= 2 && len <= NAME_MAX_BYTES && strchr(lower, *s) &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == len;
}

bool archive_version_valid(const char *s)
{
	size_t len = strlen(s);
	return len > 0 && len <= NAME_MAX_BYTES && *s >= '0' && *s <= '9' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-~:") == len;
}

struct reading {
	struct control control;
	const char *arch;
	struct arena *arena;
	unsigned first_line;
	bool has_size;
	struct archive_package now;
};

static int deny(const struct reading *r, unsigned line, const char *what, const char *value, struct err *e)
{
	return err_set(e, ERR_INTEGRITY, "%s:%u: %s '%.200s'", r->control.file, line, what, value);
}

static const char *copy(struct reading *r, const struct control_field *f)
{
	return arena_strndup(r->arena, f->value, f->value_len);
}

static int once(const struct reading *r, const void *before, const struct control_field *f, struct err *e)
{
	if (!before)
		return 0;
	return err_set(e, ERR_INTEGRITY, "%s:%u: '%.*s' a second time in one package", r->control.file, f->line,
		       f->name_len > 40 ? 40 : (int)f->name_len, f->name);
}

/* Digits only: no sign, no blank, no overflow. */
static int take_size(struct reading *r, const struct control_field *f, struct err *e)
{
	uint64_t n = 0;
	if (once(r, r->has_size ? "" : NULL, f, e) < 0)
		return -1;
	const char *text = copy(r, f);
	size_t digits = strspn(text, "0123456789");
	if (digits == 0 || text[digits] || digits > 15)
		return deny(r, f->line, "not a size:", text, e);
	for (const char *p = text; *p; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	if (n == 0 || n > SIZE_MAX_BYTES)
		return deny(r, f->line, "not the size of a package:", text, e);
	r->now.size = n;
	r->has_size = true;
	return 0;
}

/* Further lines of a value are joined by a blank; bytes beyond ASCII are nowhere in relations. */
static int take_relation(struct reading *r, const struct control_field *f, const char **ret, struct err *e)
{
	if (once(r, *ret, f, e) < 0)
		return -1;
	char *text = arena_strndup(r->arena, f->value, f->value_len);
	for (char *p = text; *p; p++) {
		if (*p == '\n' || *p == '\t' || *p == '\r')
			*p = ' ';
		if ((unsigned char)*p > 0x7e)
			return deny(r, f->line, "not a list of packages:", text, e);
	}
	*ret = text;
	return 0;
}

static bool is_pool_path(const char *path)
{
	size_t len = strlen(path);
	return len <= PATH_MAX_BYTES && path_is_safe_relative(path) && path_has_suffix(path, ".deb") &&
	       strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-~_/:%") == len;
}

static int take_word(struct reading *r, const struct control_field *f, const char **to, bool (*valid)(const char *),
		     const char *what, struct err *e)
{
	if (once(r, *to, f, e) < 0)
		return -1;
	const char *text = copy(r, f);
	if (strlen(text) != f->value_len || !valid(text))
		return deny(r, f->line, what, text, e);
	*to = text;
	return 0;
}

static unsigned priority_of(const char *word)
{
	static const char *const words[] = {"required", "important", "standard"};
	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(word, words[i]) == 0)
			return i;
	return ARRAY_LEN(words);
}

static int take_field(struct reading *r, const struct control_field *f, struct err *e)
{
	static const char *const names[RELATIONS] = {"Pre-Depends", "Depends", "Conflicts", "Breaks", "Provides"};
	struct archive_package *p = &r->now;
	if (!r->first_line)
		r->first_line = f->line;
	if (control_is(f, "Package"))
		return take_word(r, f, &p->name, archive_name_valid, "not the name of a package:", e);
	if (control_is(f, "Version"))
		return take_word(r, f, &p->version, archive_version_valid, "not a version:", e);
	if (control_is(f, "Architecture"))
		return take_word(r, f, &p->arch, archive_name_valid, "not an architecture:", e);
	if (control_is(f, "Filename"))
		return take_word(r, f, &p->path, is_pool_path, "not the path of a package:", e);
	if (control_is(f, "SHA256"))
		return take_word(r, f, &p->sha256, digest_valid_hex, "not a sha256:", e);
	if (control_is(f, "Size"))
		return take_size(r, f, e);
	if (control_is(f, "Essential"))
		p->essential = strcmp(copy(r, f), "yes") == 0;
	if (control_is(f, "Priority"))
		p->priority = priority_of(copy(r, f));
	for (size_t i = 0; i < RELATIONS; i++)
		if (control_is(f, names[i]))
			return take_relation(r, f, &p->relations[i], e);
	return 0;
}

static int finish(struct reading *r, struct archive_packages *ret, struct err *e)
{
	struct archive_package *p = &r->now;
	const char *missing = !p->name       ? "Package"
			      : !p->version  ? "Version"
			      : !p->arch     ? "Architecture"
			      : !p->path     ? "Filename"
			      : !p->sha256   ? "SHA256"
			      : !r->has_size ? "Size"
					     : NULL;
	if (missing)
		return deny(r, r->first_line, "a package without the field", missing, e);
	if (strcmp(p->arch, r->arch) != 0 && strcmp(p->arch, "all") != 0)
		return deny(r, r->first_line, "a package for another architecture:", p->arch, e);
	if (ret->count >= PACKAGES_MAX)
		return deny(r, r->first_line, "more than 500,000 packages, at", p->name, e);
	if (ret->count == ret->cap)
		ret->items = arena_grow(r->arena, ret->items, &ret->cap, 1024, sizeof(*ret->items));
	p->file = r->control.file;
	p->line = r->first_line;
	ret->items[ret->count++] = *p;
	return 0;
}

static void begin(struct reading *r)
{
	r->now = (struct archive_package){.priority = priority_of("")};
	r->first_line = 0;
	r->has_size = false;
}

int packages_parse(const char *text, size_t len, const char *file, const char *arch, struct arena *a,
		   struct archive_packages *ret, struct err *e)
{
	struct reading r = {.arch = arch, .arena = a};
	struct archive_packages out = *ret;
	enum control_got got;
	struct control_field f;
	control_open(&r.control, arena_strdup(a, file), text, len);
	begin(&r);
	for (;;) {
		if (control_next(&r.control, &got, &f, e) < 0)
			return -1;
		if (got == CONTROL_END)
			break;
		if (got == CONTROL_FIELD ? take_field(&r, &f, e) < 0 : finish(&r, &out, e) < 0)
			return -1;
		if (got == CONTROL_PARAGRAPH_END)
			begin(&r);
	}
	*ret = out;
	return 0;
}

static int compare(const void *x, const void *y)
{
	const struct archive_package *a = x, *b = y;
	int c = strcmp(a->name, b->name);
	c = c ? c : strcmp(a->version, b->version);
	return c ? c : strcmp(a->arch, b->arch);
}

int packages_sort(struct archive_packages *p, struct err *e)
{
	if (p->count)
		qsort(p->items, p->count, sizeof(*p->items), compare);
	for (size_t i = 1; i < p->count; i++) {
		const struct archive_package *a = &p->items[i - 1], *b = &p->items[i];
		if (compare(a, b) == 0)
			return err_set(e, ERR_INTEGRITY, "%s:%u: package '%s' %s (%s) is also at %s:%u", b->file,
				       b->line, b->name, b->version, b->arch, a->file, a->line);
	}
	return 0;
}

const struct archive_package *packages_of(const struct archive_packages *p, const char *name, size_t *ret_count)
{
	size_t low = 0, high = p->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(p->items[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	size_t n = low;
	while (n < p->count && strcmp(p->items[n].name, name) == 0)
		n++;
	*ret_count = n - low;
	return n > low ? &p->items[low] : NULL;
}

const struct archive_package *packages_find(const struct archive_packages *p, const char *name, const char *version,
					    const char *arch)
{
	size_t count;
	const struct archive_package *first = packages_of(p, name, &count);
	for (size_t i = 0; i < count; i++)
		if (strcmp(first[i].version, version) == 0 && (!arch || strcmp(first[i].arch, arch) == 0))
			return &first[i];
	return NULL;
}

static void free_reader(struct archive **r)
{
	archive_read_free(*r);
}

int packages_unpack(const char *path, uint64_t max, struct buf *out, struct err *e)
{
	CLEANUP(free_reader) struct archive *r = archive_read_new();
	struct archive_entry *entry;
	char block[1 << 16];
	size_t start = out->len;
	if (!r)
		return err_set(e, ERR_SYSTEM, "not enough memory to read '%s'", path);
	archive_read_support_filter_xz(r);
	archive_read_support_filter_gzip(r);
	archive_read_support_format_raw(r);
	archive_read_support_format_empty(r);
	int status = archive_read_open_filename(r, path, sizeof(block));
	if (status == ARCHIVE_OK)
		status = archive_read_next_header(r, &entry);
	if (status == ARCHIVE_EOF) /* an empty file */
		return 0;
	for (la_ssize_t n = 1; status == ARCHIVE_OK && n > 0;) {
		n = archive_read_data(r, block, sizeof(block));
		if (n < 0)
			status = (int)n;
		else if (out->len - start + (size_t)n > max)
			return err_set(e, ERR_INTEGRITY, "'%s' is larger than the archive says (%llu bytes)", path,
				       (unsigned long long)max);
		else
			buf_add(out, block, (size_t)n);
	}
	if (status != ARCHIVE_OK)
		return err_set(e, ERR_INTEGRITY, "cannot unpack '%s': %s", path, archive_error_string(r));
	return 0;
}
