#include "step/world/world_parts.h"

#include <archive.h>
#include <archive_entry.h>
#include <strings.h>

#include "core/wheel/wheel.h"

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
			  archive_error_string(d->outer) ? archive_error_string(d->outer)
							 : "it ends too early");
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

	return err_set(e, ERR_INTEGRITY,
		       "not a Debian package: it has no member '%s' where that belongs", stem);
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
			return tar_read(d->inner, MAX_CONTROL, out, e) < 0
				       ? err_wrap(e, "its control file")
				       : 0;
	return got < 0 ? -1
		       : err_set(e, ERR_INTEGRITY, "not a Debian package: it has no control file");
}

/* The names of "a (<< 1), b | c". */
static void split_names(struct strlist *out, struct arena *a, const char *value)
{
	struct strlist all = {0};

	strlist_split(&all, a, value, ",|");
	for (size_t i = 0; i < all.count; i++) {
		const char *name = all.items[i] + strspn(all.items[i], " \t\r\n");
		size_t n = strcspn(name, " \t\n:(");
		if (n > 0)
			strlist_ref(out, a, arena_strndup(a, name, n));
	}
}

static int parse_control(const struct buf *text, struct arena *a, struct deb_control *ret,
			 struct err *e)
{
	struct wheel_headers h; /* of the same form */
	struct strlist replaces = {0};
	AUTO_BUF struct buf out = {0};
	const char *start = buf_cstr(text) + strspn(buf_cstr(text), " \t\r\n"),
		   *end = buf_cstr(text) + text->len;

	for (const char *p = start; p < end; p++)
		if (((unsigned char)*p < 0x20 && (!*p || !strchr("\t\r\n", *p))) || *p == 0x7f)
			return err_set(e, ERR_INTEGRITY,
				       "its control file has a control character");
	if (wheel_headers_parse(&(struct file_bytes){start, (size_t)(end - start), "control"}, a,
				&h, e) < 0)
		return -1;
	const char *same = wheel_headers_get(&h, "Multi-Arch");
	struct deb_control k = {.name = wheel_headers_get(&h, "Package"),
				.version = wheel_headers_get(&h, "Version"),
				.arch = wheel_headers_get(&h, "Architecture"),
				.same = same && strcmp(same, "same") == 0};
	if (!k.name || !k.version || !k.arch)
		return err_set(e, ERR_INTEGRITY,
			       "its control file needs Package, Version and Architecture");
	wheel_headers_all(&h, "Replaces", a, &replaces);
	for (size_t i = 0; i < replaces.count; i++)
		split_names(&k.replaces, a, replaces.items[i]);
	for (size_t i = 0; i < h.count; i++) /* dpkg writes these two itself */
		if (strcasecmp(h.items[i].key, "Package") != 0 &&
		    strcasecmp(h.items[i].key, "Status") != 0)
			buf_printf(&out, "%s: %s\n", h.items[i].key, h.items[i].value);
	k.text = arena_strdup(a, buf_cstr(&out));
	*ret = k;
	return 0;
}

static int open_all(struct deb *d, const char *path, struct arena *a, struct deb_control *ret,
		    struct err *e)
{
	AUTO_BUF struct buf text = {0};

	archive_read_support_format_ar(d->outer);
	if (archive_read_open_filename(d->outer, path, READ_SIZE) != ARCHIVE_OK)
		return tar_fail(d->outer, e);
	if (check_version(d, e) < 0)
		return -1;
	if (find_member(d, "control.tar", e) < 0 || open_member(d, e) < 0)
		return -1;
	if (read_control(d, &text, e) < 0 || parse_control(&text, a, ret, e) < 0)
		return -1;
	return find_member(d, "data.tar", e) < 0 ? -1 : open_member(d, e);
}

int deb_open(const char *path, const struct tar_limits *l, const struct run *run, struct arena *a,
	     struct deb **ret, struct deb_control *ret_control, struct err *e)
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
