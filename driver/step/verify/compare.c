#include "base/sys/digest.h"
#include "base/sys/json.h"
#include "core/zip/zip.h"
#include "step/verify/verify.h"

enum { TEXT_PROBE = 8192, LINE_SHOWN = 120 };

struct archives {
	struct comparing x;
	const struct run *run;
	struct zip_reader *zip[2];
	const char *file[2]; /* takes one member after the other */
	size_t times;        /* members with another time */
	const char *first_time;
};

void compare_note(struct comparing *x, const char *where, const char *fmt, ...)
{
	struct comparison *c = x->c;
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
	c->items = arena_room(x->a, c->items, c->count, &c->cap, 32, sizeof(*c->items));
	c->items[c->count++] = (struct difference){x->member, utf8_printable(where, x->a), utf8_printable(what, x->a)};
}

/* ---- contents ---- */

static bool is_text(const struct compare_bytes *b)
{
	return !b->len || !memchr(b->data, 0, b->len < TEXT_PROBE ? b->len : TEXT_PROBE);
}

/* The line around `at`, shortened. */
static char *line_at(const struct compare_bytes *b, size_t at, struct arena *a)
{
	size_t start = at < b->len ? at : b->len, end = start;
	while (start > 0 && b->data[start - 1] != '\n')
		start--;
	while (end < b->len && b->data[end] != '\n')
		end++;
	size_t len = end - start;
	bool cut = len > LINE_SHOWN;
	size_t from = cut && at - start > LINE_SHOWN / 2 ? at - LINE_SHOWN / 2 : start;
	len = end - from < LINE_SHOWN ? end - from : LINE_SHOWN;
	return arena_printf(a, "%.*s%s", (int)len, (const char *)b->data + from, cut ? "..." : "");
}

static void compare_text_bytes(struct comparing *x, const struct compare_bytes *b)
{
	size_t at = 0, line = 1, shorter = b[0].len < b[1].len ? b[0].len : b[1].len;
	for (; at < shorter && b[0].data[at] == b[1].data[at]; at++)
		line += b[0].data[at] == '\n';
	compare_note(x, arena_printf(x->a, "line %zu", line), "is '%s' in the first, '%s' in the second",
		     line_at(&b[0], at, x->a), line_at(&b[1], at, x->a));
}

static void compare_binary(struct comparing *x, const struct compare_bytes *b)
{
	size_t at = 0, differ = 0, first = 0, shorter = b[0].len < b[1].len ? b[0].len : b[1].len;
	for (; at < shorter; at++) {
		if (b[0].data[at] != b[1].data[at] && !differ++)
			first = at;
	}
	first = differ ? first : shorter;
	if (b[0].len == b[1].len)
		compare_note(x, "", "%zu of %zu bytes differ, the first at 0x%zx", differ, shorter, first);
	else
		compare_note(x, "", "has %zu bytes in the first, %zu in the second; the first difference is at 0x%zx",
			     b[0].len, b[1].len, first);
}

static int map_member(struct archives *p, size_t i, const struct zip_entry *en, struct fs_mapping *ret, struct err *e)
{
	AUTO_FD int fd = open(p->file[i], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot create '%s'", p->file[i]);
	return zip_extract_fd(p->zip[i], en, fd, NULL, e) < 0 ? -1 : fs_map(p->file[i], ret, e);
}

static int compare_contents(struct archives *p, const struct zip_entry *const *en, struct err *e)
{
	AUTO_MAPPING struct fs_mapping one = {0};
	AUTO_MAPPING struct fs_mapping other = {0};
	if (map_member(p, 0, en[0], &one, e) < 0 || map_member(p, 1, en[1], &other, e) < 0)
		return -1;
	const struct compare_bytes b[] = {{one.data, one.size}, {other.data, other.size}};
	if (!compare_same(&b[0], &b[1])) {
		p->x.c->members++;
		if (is_text(&b[0]) && is_text(&b[1]))
			compare_text_bytes(&p->x, b);
		else if (!compare_elf(&p->x, &b[0], &b[1]))
			compare_binary(&p->x, b);
	} else if (en[0]->packed != en[1]->packed || en[0]->method != en[1]->method) {
		compare_note(&p->x, "packing", "the same contents are packed differently");
	}
	return 0;
}

/* ---- the archive ---- */

static int compare_entry(struct archives *p, const struct zip_entry *one, const struct zip_entry *other, struct err *e)
{
	const struct zip_entry *const both[] = {one, other};
	if (one->mode != other->mode)
		compare_note(&p->x, "mode", "is %o in the first, %o in the second", one->mode, other->mode);
	if (one->dos_time != other->dos_time && !p->times++)
		p->first_time = one->name;
	/* The archive's checksum and size are enough: comparing all members would take long. */
	if (one->crc == other->crc && one->size == other->size && one->packed == other->packed &&
	    one->method == other->method)
		return 0;
	return compare_contents(p, both, e);
}

static int by_name(const void *a, const void *b)
{
	const struct zip_entry *const *x = a, *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

static const struct zip_entry **sorted(const struct zip_reader *z, struct arena *a)
{
	size_t n = zip_count(z);
	const struct zip_entry **out = arena_array(a, n, sizeof(void *));
	for (size_t i = 0; i < n; i++)
		out[i] = zip_at(z, i);
	qsort(out, n, sizeof(void *), by_name);
	return out;
}

static int compare_members(struct archives *p, struct err *e)
{
	struct arena *a = p->x.a;
	const struct zip_entry **one = sorted(p->zip[0], a), **other = sorted(p->zip[1], a);
	size_t n = zip_count(p->zip[0]), m = zip_count(p->zip[1]), i = 0, k = 0, directories[2] = {0};
	while (i < n || k < m) {
		int c = i == n ? 1 : k == m ? -1 : strcmp(one[i]->name, other[k]->name);
		p->x.member = c <= 0 ? one[i]->name : other[k]->name;
		p->x.details = 0;
		if (run_check(p->run, e) < 0)
			return -1;
		if (c != 0 && path_has_suffix(p->x.member, "/")) {
			directories[c > 0]++;
		} else if (c != 0) {
			p->x.c->members++;
			compare_note(&p->x, "", "is in the %s only", c < 0 ? "first" : "second");
		} else if (compare_entry(p, one[i], other[k], e) < 0) {
			return -1;
		}
		i += c <= 0;
		k += c >= 0;
	}
	p->x.member = "";
	p->x.details = 0;
	for (i = 0; i < 2; i++)
		if (directories[i])
			compare_note(&p->x, "", "%zu entries of directories are in the %s only", directories[i],
				     i ? "second" : "first");
	if (p->times)
		compare_note(&p->x, "time", "%zu members have another one, the first is '%s'", p->times, p->first_time);
	for (i = 0; n == m && i < n; i++) {
		if (strcmp(zip_at(p->zip[0], i)->name, zip_at(p->zip[1], i)->name) != 0) {
			compare_note(&p->x, "order", "the members are in another order from '%s' on",
				     zip_at(p->zip[0], i)->name);
			break;
		}
	}
	if (!p->x.c->count)
		compare_note(
			&p->x, "",
			"the archives differ, but neither in names, order, times, modes nor sizes of their members");
	return 0;
}

static int compare_archives(struct archives *p, const char *const *wheels, struct err *e)
{
	char *dir;
	if (fs_temp_dir(NULL, "ptbuild-compare-", p->x.a, &dir, e) < 0)
		return -1;
	int rc = 0;
	for (size_t i = 0; i < 2 && rc == 0; i++) {
		p->file[i] = path_join(p->x.a, dir, i ? "second" : "first");
		rc = zip_open(wheels[i], p->x.a, &p->zip[i], e);
	}
	if (rc == 0)
		rc = compare_members(p, e);
	zip_close(p->zip[0]);
	zip_close(p->zip[1]);
	if (fs_remove(TRUSTED, dir, rc < 0 ? ERR_IGNORED : e) < 0)
		rc = -1;
	return rc;
}

int compare_wheels(const char *one, const char *other, const struct run *run, struct arena *a, struct comparison *ret,
		   struct err *e)
{
	struct comparison c = {0};
	const char *const wheels[] = {one, other};
	struct archives p = {.x = {.a = a, .c = &c, .member = ""}, .run = run};
	if (digest_file(one, c.sha256[0], e) < 0 || digest_file(other, c.sha256[1], e) < 0)
		return -1;
	c.same = strcmp(c.sha256[0], c.sha256[1]) == 0;
	if (!c.same && compare_archives(&p, wheels, e) < 0)
		return -1;
	*ret = c;
	return 0;
}

json_t *compare_json(const struct comparison *c)
{
	json_t *list = json_array();
	for (size_t i = 0; i < c->count; i++) {
		const struct difference *d = &c->items[i];
		json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "member", json_or_null(d->member), "where",
						      json_or_null(d->where), "what", json_or_null(d->what)));
	}
	return json_pack("{s:b, s:[s, s], s:i, s:o}", "same", c->same, "sha256", c->sha256[0], c->sha256[1], "members",
			 (int)c->members, "differences", list);
}
