#include "step/world/world_parts.h"

#include <archive.h>
#include <archive_entry.h>
#include <strings.h>

enum { READ_SIZE = 256 * 1024, MAX_CONTROL = 1 << 20, MAX_MEMBERS = 64 };

struct deb {
	struct archive *outer; /* the ar archive */
	struct tar *inner;     /* the member that is being read; NULL: none */
	const struct tar_limits *limits;
	const struct run *run;
};

/* The name of the next member; 0 at the end. */
static int next_member(struct deb *d, const char **ret, struct err *e)
{
	struct archive_entry *en;
	int rc = archive_read_next_header(d->outer, &en);
	if (rc == ARCHIVE_EOF)
		return 0;
	if (rc != ARCHIVE_OK)
		return tar_fail(d->outer, e);
	*ret = archive_entry_pathname(en);
	return *ret ? 1 : err_set(e, ERR_INTEGRITY, "damaged: a member has no name");
}

static la_ssize_t read_member(struct archive *inner, void *user, const void **data)
{
	const struct deb *d = user;
	size_t len = 0;
	la_int64_t at;
	int rc;
	while ((rc = archive_read_data_block(d->outer, data, &len, &at)) == ARCHIVE_OK)
		if (len > 0)
			return (la_ssize_t)len;
	if (rc == ARCHIVE_EOF)
		return 0;
	archive_set_error(inner, archive_errno(d->outer), "%s",
			  archive_error_string(d->outer) ? archive_error_string(d->outer) : "it ends too early");
	return -1;
}

static int open_member(struct deb *d, struct err *e)
{
	tar_close(d->inner);
	d->inner = NULL;
	return tar_open_member(read_member, d, d->limits, d->run, &d->inner, e);
}

static bool is_member(const char *name, const char *stem)
{
	size_t n = strlen(stem);
	static const char *const ends[] = {"", ".gz", ".xz", ".zst"};
	for (size_t i = 0; strncmp(name, stem, n) == 0 && i < ARRAY_LEN(ends); i++)
		if (strcmp(name + n, ends[i]) == 0)
			return true;
	return false;
}

/* Moves to the member `stem`, over those that are nobody's business, which begin with '_'. */
static int find_member(struct deb *d, const char *stem, struct err *e)
{
	const char *name = "";
	for (size_t i = 0; i < MAX_MEMBERS; i++) {
		int got = next_member(d, &name, e);
		if (got < 0)
			return -1;
		if (got > 0 && is_member(name, stem))
			return 0;
		if (got == 0 || *name != '_')
			break;
	}
	return err_set(e, ERR_INTEGRITY, "not a Debian package: it has no member '%s' where that belongs", stem);
}

static int check_version(struct deb *d, struct err *e)
{
	char text[8] = "";
	if (find_member(d, "debian-binary", e) < 0)
		return -1;
	la_ssize_t n = archive_read_data(d->outer, text, sizeof(text) - 1);
	if (n < 0)
		return tar_fail(d->outer, e);
	if (n < 4 || strncmp(text, "2.", 2) != 0 || text[3] != '\n')
		return err_set(e, ERR_INTEGRITY, "not a Debian package of format 2");
	return 0;
}

static int read_control(struct deb *d, struct buf *out, struct err *e)
{
	struct tar_entry en;
	int got;
	while ((got = tar_next(d->inner, &en, e)) > 0)
		if (strcmp(en.name, "control") == 0 && en.type == S_IFREG && !en.hard)
			return tar_read(d->inner, MAX_CONTROL, out, e) < 0 ? err_wrap(e, "its control file") : 0;
	return got < 0 ? -1 : err_set(e, ERR_INTEGRITY, "not a Debian package: it has no control file");
}

/* The names of "a (<< 1), b | c". */
static void split_names(struct strlist *out, struct arena *a, const char *value, size_t len)
{
	struct strlist all = {0};
	strlist_split(&all, a, arena_strndup(a, value, len), ",|");
	for (size_t i = 0; i < all.count; i++) {
		const char *name = all.items[i] + strspn(all.items[i], " \t\n");
		size_t n = strcspn(name, " \t\n:(");
		if (n > 0)
			strlist_ref(out, a, arena_strndup(a, name, n));
	}
}

/* A field, as pieces of the text: the value without blanks at its ends; further lines of it begin with a blank. */
struct field {
	const char *name, *value;
	size_t name_len, value_len;
};

static bool is_named(const struct field *f, const char *name)
{
	return strlen(name) == f->name_len && strncasecmp(f->name, name, f->name_len) == 0;
}

/* The next field of a paragraph of "Field: value"; 0 at its end, which is an empty line or that of the text. */
static int next_field(const char **at, struct field *ret, struct err *e)
{
	const char *line = *at, *end = line + strcspn(line, "\n"), *colon = memchr(line, ':', (size_t)(end - line));
	if (line + strspn(line, " \t\r") == end)
		return 0;
	for (const char *p = line; colon && p < colon; p++)
		if (*p <= ' ' || (unsigned char)*p > 0x7e)
			colon = NULL;
	if (!colon || colon == line)
		return err_set(e, ERR_INTEGRITY, "its control file has a line that is not 'Field: value': '%.*s'",
			       end - line > 80 ? 80 : (int)(end - line), line);
	while (end[0] == '\n' && (end[1] == ' ' || end[1] == '\t') && !strchr("\r\n", end[1 + strspn(end + 1, " \t")]))
		end += 1 + strcspn(end + 1, "\n");
	for (const char *p = line; p < end; p++)
		if (((unsigned char)*p < 0x20 && !strchr("\t\r\n", *p)) || *p == 0x7f)
			return err_set(e, ERR_INTEGRITY, "its control file has a control character");
	*at = end + (*end == '\n');
	for (colon++; colon < end && strchr(" \t\r\n", *colon);)
		colon++;
	while (end > colon && strchr(" \t\r\n", end[-1]))
		end--;
	*ret = (struct field){line, colon, strcspn(line, ":"), (size_t)(end - colon)};
	return 1;
}

static int parse_control(const struct buf *text, struct arena *a, struct deb_control *ret, struct err *e)
{
	struct deb_control k = {0};
	const struct {
		const char *name, **to;
	} fields[] = {{"Package", &k.name}, {"Version", &k.version}, {"Architecture", &k.arch}};
	struct field f;
	int got;
	AUTO_BUF struct buf out = {0};
	const char *at = buf_cstr(text) + strspn(buf_cstr(text), " \t\r\n");
	if (strlen(buf_cstr(text)) != text->len)
		return err_set(e, ERR_INTEGRITY, "its control file has a control character");
	while ((got = next_field(&at, &f, e)) > 0) {
		for (size_t i = 0; i < ARRAY_LEN(fields); i++)
			if (is_named(&f, fields[i].name))
				*fields[i].to = arena_strndup(a, f.value, f.value_len);
		if (is_named(&f, "Multi-Arch"))
			k.same = f.value_len == 4 && memcmp(f.value, "same", 4) == 0;
		if (is_named(&f, "Replaces"))
			split_names(&k.replaces, a, f.value, f.value_len);
		if (is_named(&f, "Package") || is_named(&f, "Status")) /* dpkg writes these itself */
			continue;
		buf_printf(&out, "%.*s: %.*s\n", (int)f.name_len, f.name, (int)f.value_len, f.value);
	}
	if (got < 0)
		return -1;
	if (!k.name || !k.version || !k.arch)
		return err_set(e, ERR_INTEGRITY, "its control file needs Package, Version and Architecture");
	k.text = arena_strdup(a, buf_cstr(&out));
	*ret = k;
	return 0;
}

static int open_all(struct deb *d, const char *path, struct arena *a, struct deb_control *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	archive_read_support_format_ar(d->outer);
	if (archive_read_open_filename(d->outer, path, READ_SIZE) != ARCHIVE_OK)
		return tar_fail(d->outer, e);
	if (check_version(d, e) < 0 || find_member(d, "control.tar", e) < 0 || open_member(d, e) < 0 ||
	    read_control(d, &text, e) < 0 || parse_control(&text, a, ret, e) < 0)
		return -1;
	return find_member(d, "data.tar", e) < 0 ? -1 : open_member(d, e);
}

int deb_open(const char *path, const struct tar_limits *l, const struct run *run, struct arena *a, struct deb **ret,
	     struct deb_control *ret_control, struct err *e)
{
	struct deb *d = calloc(1, sizeof(*d));
	if (!d || !(d->outer = archive_read_new()))
		abort();
	d->limits = l;
	d->run = run;
	if (open_all(d, path, a, ret_control, e) < 0) {
		deb_close(d);
		return -1;
	}
	*ret = d;
	return 0;
}

struct tar *deb_data(const struct deb *d)
{
	return d->inner;
}

void deb_close(struct deb *d)
{
	if (!d)
		return;
	tar_close(d->inner);
	archive_read_free(d->outer);
	free(d);
}
