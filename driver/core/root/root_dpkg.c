#include "core/root/root_dpkg.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"

#define MAX_STATUS (64U << 20)

/* One stanza of the status file; the fields point into its text. */
struct stanza {
	const char *package, *arch, *version, *status;
	int package_len, arch_len, version_len, status_len;
};

static bool take_field(const char *line, size_t len, const char *name, const char **value, int *value_len)
{
	size_t n = strlen(name);
	if (len <= n || strncmp(line, name, n) != 0 || line[n] != ':')
		return false;
	line += n + 1;
	len -= n + 1;
	while (len > 0 && *line == ' ') {
		line++;
		len--;
	}
	*value = line;
	*value_len = (int)len;
	return true;
}

/* next_stanza: moves *p behind the stanza; false at the end of the text. */
static bool next_stanza(const char **p, struct stanza *s)
{
	bool any = false;
	*s = (struct stanza){.package = "", .arch = "", .version = "", .status = ""};
	while (**p) {
		size_t len = strcspn(*p, "\n");
		const char *line = *p;
		*p += len + ((*p)[len] == '\n');
		if (len == 0 && any)
			return true;
		any = any || len > 0;
		(void)(take_field(line, len, "Package", &s->package, &s->package_len) ||
		       take_field(line, len, "Architecture", &s->arch, &s->arch_len) ||
		       take_field(line, len, "Version", &s->version, &s->version_len) ||
		       take_field(line, len, "Status", &s->status, &s->status_len));
	}
	return any;
}

/* read_status: 1 with the text, 0 when the root has no such database. */
static int read_status(const struct root *r, struct arena *a, struct buf *out, struct err *e)
{
	const char *real = root_resolve(r, "/var/lib/dpkg/status", a);
	if (!real)
		return 0;
	return fs_read(root_host_path(r, real, a), MAX_STATUS, out, e) == 0 ? 1 : -1;
}

int root_dpkg_text(const struct root *r, struct buf *out, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};
	int got = read_status(r, &a, &text, e);
	if (got <= 0)
		return got;
	struct strlist lines = {0};
	struct stanza s;
	for (const char *p = buf_cstr(&text); next_stanza(&p, &s);)
		if (s.package_len > 0)
			strlist_addf(&lines, &a, "%.*s %.*s %.*s %.*s", s.package_len, s.package, s.arch_len, s.arch,
				     s.version_len, s.version, s.status_len, s.status);
	if (lines.count == 0)
		return 0; /* an empty database says nothing about the contents */
	strlist_sort(&lines);
	buf_addstr(out, "dpkg\n");
	for (size_t i = 0; i < lines.count; i++)
		buf_printf(out, "%s\n", lines.items[i]);
	return 1;
}

/* other_name: /usr/lib/x for /lib/x and the other way round: packages list either, whatever the link says. NULL for
 * paths outside these. */
static const char *other_name(const char *path, struct arena *a)
{
	static const char *const merged[] = {"/lib/", "/lib64/", "/lib32/", "/libx32/", "/bin/", "/sbin/"};
	bool usr = strncmp(path, "/usr/", 5) == 0;
	for (size_t i = 0; i < ARRAY_LEN(merged); i++)
		if (strncmp(usr ? path + 4 : path, merged[i], strlen(merged[i])) == 0)
			return usr ? path + 4 : path_join(a, "/usr", path);
	return NULL;
}

/* has_line: whether one line of the text, which starts with a newline, is `name`. */
static bool has_line(const struct buf *text, const char *name, size_t len)
{
	const char *p = text->data, *end = text->data + text->len;
	while ((p = memmem(p, (size_t)(end - p), name, len))) {
		if (p[-1] == '\n' && (p + len == end || p[len] == '\n'))
			return true;
		p++;
	}
	return false;
}

/* read_list: a whole list in one read, after a newline so that each line begins behind one. */
static bool read_list(int dir, const char *name, struct buf *out)
{
	AUTO_FD int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	buf_reset(out);
	buf_addc(out, '\n');
	for (;;) {
		char *to = buf_reserve(out, (size_t)st.st_size + 1);
		ssize_t n = read(fd, to, (size_t)st.st_size + 1);
		if (n <= 0)
			return n == 0;
		out->len += (size_t)n;
	}
}

struct owner {
	const char *names[4]; /* what the file may be listed as, best first */
	size_t count;
	size_t rank; /* of the best match so far */
	char list[NAME_MAX + 1];
};

static void add_name(struct owner *o, const char *name)
{
	for (size_t i = 0; i < o->count; i++)
		if (strcmp(o->names[i], name) == 0)
			return;
	if (o->count < ARRAY_LEN(o->names))
		o->names[o->count++] = name;
}

static void search_lists(DIR *d, struct owner *o)
{
	AUTO_BUF struct buf text = {0};
	for (const struct dirent *entry; o->rank > 0 && (entry = readdir(d));) {
		if (!path_has_suffix(entry->d_name, ".list") || !read_list(dirfd(d), entry->d_name, &text))
			continue;
		for (size_t i = 0; i < o->rank; i++) {
			if (!has_line(&text, o->names[i], strlen(o->names[i])))
				continue;
			o->rank = i;
			memcpy(o->list, entry->d_name, strlen(entry->d_name) + 1);
		}
	}
}

/* package_version: "name=version" of the package that a list file's name ("libc6:amd64.list") stands for. */
static char *package_version(const struct root *r, const char *list, struct arena *a)
{
	AUTO_BUF struct buf text = {0};
	struct err ignored = {0};
	const char *name = arena_strndup(a, list, strlen(list) - strlen(".list"));
	int name_len = (int)strcspn(name, ":");
	const char *arch = name[name_len] ? name + name_len + 1 : NULL;
	if (read_status(r, a, &text, &ignored) <= 0)
		return NULL;
	struct stanza s;
	for (const char *p = buf_cstr(&text); next_stanza(&p, &s);) {
		if (s.package_len != name_len || strncmp(s.package, name, (size_t)name_len) != 0)
			continue;
		if (arch && (s.arch_len != (int)strlen(arch) || strncmp(s.arch, arch, strlen(arch)) != 0))
			continue;
		return arena_printf(a, "%.*s=%.*s", name_len, name, s.version_len, s.version);
	}
	return NULL;
}

char *root_package_of(const struct root *r, const char *path, struct arena *a)
{
	AUTO_ARENA struct arena scratch = {0};
	const char *info = root_resolve(r, "/var/lib/dpkg/info", &scratch);
	if (!info || path[0] != '/')
		return NULL;
	struct owner o = {0};
	const char *real = root_resolve(r, path, &scratch);
	const char *other = other_name(path, &scratch);
	const char *real_other = real ? other_name(real, &scratch) : NULL;
	add_name(&o, path);
	if (other)
		add_name(&o, other);
	if (real)
		add_name(&o, real);
	if (real_other)
		add_name(&o, real_other);
	o.rank = o.count;
	AUTO_DIR DIR *d = opendir(root_host_path(r, info, &scratch));
	if (d)
		search_lists(d, &o);
	return o.list[0] ? package_version(r, o.list, a) : NULL;
}
