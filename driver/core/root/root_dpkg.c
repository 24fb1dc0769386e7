#include "base/sys/fs.h"
#include "core/root/root.h"

#define STATUS_FILE "/var/lib/dpkg/status"
#define MAX_STATUS (64U << 20)

enum { PACKAGE, ARCHITECTURE, VERSION, STATUS, FIELDS };

/* One package of the status file; absent fields are "". */
struct stanza {
	const char *field[FIELDS];
};

/* Moves *p behind the next stanza; false at the end of the text. */
static bool next_stanza(const char **p, struct arena *a, struct stanza *s)
{
	static const char *const names[FIELDS] = {
		"Package:", "Architecture:", "Version:", "Status:"};
	bool any = false;

	*s = (struct stanza){{"", "", "", ""}};
	while (**p) {
		const char *line = *p;
		size_t len = strcspn(line, "\n");
		*p += len + (line[len] == '\n');
		if (len == 0 && any)
			return true;
		any = any || len > 0;
		for (size_t i = 0; i < FIELDS; i++) {
			size_t n = strlen(names[i]);
			if (strncmp(line, names[i], n) != 0)
				continue;
			n += strspn(line + n, " ");
			s->field[i] = arena_strndup(a, line + n, len - n);
		}
	}

	return any;
}

int root_dpkg_text(const struct root *r, struct buf *out, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};
	int got = root_read(r, STATUS_FILE, MAX_STATUS, &text, e);

	if (got <= 0)
		return got;
	struct strlist lines = {0};
	struct stanza s;
	for (const char *p = buf_cstr(&text); next_stanza(&p, &a, &s);)
		if (*s.field[PACKAGE])
			strlist_addf(&lines, &a, "%s %s %s %s\n", s.field[PACKAGE],
				     s.field[ARCHITECTURE], s.field[VERSION], s.field[STATUS]);
	if (lines.count == 0)
		return 0; /* an empty database says nothing about the contents */
	strlist_sort(&lines);
	buf_printf(out, "dpkg\n%s", strlist_join(&lines, &a, ""));
	return 1;
}

/* /usr/lib/x for /lib/x and the other way round, since
 * packages list either. NULL for paths elsewhere. */
static const char *other_name(const char *path, struct arena *a)
{
	static const char *const merged[] = {"/lib/",    "/lib64/", "/lib32/",
					     "/libx32/", "/bin/",   "/sbin/"};
	bool usr = strncmp(path, "/usr/", 5) == 0;

	for (size_t i = 0; i < ARRAY_LEN(merged); i++)
		if (strncmp(usr ? path + 4 : path, merged[i], strlen(merged[i])) == 0)
			return usr ? path + 4 : path_join(a, "/usr", path);
	return NULL;
}

/* Whether `name` is a line of the text, which starts with a newline. */
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

struct owner {
	struct strlist names; /* what the file may be listed as, best first */
	size_t rank;          /* of the best match so far */
	const char *list;     /* that has it; NULL: none */
};

static int search_lists(const char *dir, const struct strlist *lists, struct owner *o,
			struct err *e)
{
	AUTO_BUF struct buf text = {0};

	for (size_t k = 0; k < lists->count && o->rank > 0; k++) {
		if (!path_has_suffix(lists->items[k], ".list"))
			continue;
		buf_reset(&text);
		buf_addc(&text, '\n'); /* every line follows one */
		if (fs_read(dir, lists->items[k], MAX_STATUS, &text, e) < 0)
			return -1;
		for (size_t i = 0; i < o->rank; i++) {
			if (!has_line(&text, o->names.items[i], strlen(o->names.items[i])))
				continue;
			o->rank = i;
			o->list = lists->items[k];
		}
	}

	return 0;
}

/* Returns "name=version" of the package that owns a list ("libc6:amd64.list"); NULL if it is not
 * installed. */
static int package_version(const struct root *r, const char *list, struct arena *a,
			   const char **ret, struct err *e)
{
	AUTO_ARENA struct arena scratch = {0};
	AUTO_BUF struct buf text = {0};
	char *name = arena_strndup(&scratch, list, strlen(list) - strlen(".list"));
	char *arch = strchr(name, ':');

	if (arch)
		*arch++ = '\0';
	if (root_read(r, STATUS_FILE, MAX_STATUS, &text, e) < 0)
		return -1;
	struct stanza s;
	for (const char *p = buf_cstr(&text); !*ret && next_stanza(&p, &scratch, &s);)
		if (strcmp(s.field[PACKAGE], name) == 0 &&
		    (!arch || strcmp(s.field[ARCHITECTURE], arch) == 0))
			*ret = arena_printf(a, "%s=%s", name, s.field[VERSION]);
	return 0;
}

int root_package_of(const struct root *r, const char *path, struct arena *a, const char **ret,
		    struct err *e)
{
	AUTO_ARENA struct arena scratch = {0};
	const char *info, *real, *found = NULL;

	if (root_find(r, "/var/lib/dpkg/info", &scratch, &info, e) < 0 ||
	    root_find(r, path, &scratch, &real, e) < 0)
		return -1;
	if (!info || path[0] != '/') {
		*ret = NULL;
		return 0;
	}

	struct owner o = {0};
	const char *const names[] = {path, other_name(path, &scratch), real,
				     real ? other_name(real, &scratch) : NULL};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i])
			strlist_once(&o.names, &scratch, names[i]);
	o.rank = o.names.count;
	const char *dir = root_host_path(r, info, &scratch);
	struct strlist lists = {0};
	if (fs_list(TRUSTED, dir, &scratch, &lists, e) < 0 ||
	    search_lists(dir, &lists, &o, e) < 0 ||
	    (o.list && package_version(r, o.list, a, &found, e) < 0))
		return -1;
	*ret = found;
	return 0;
}

/* Whether a file of dpkg lists the files of a package: PACKAGE.list or PACKAGE:ARCH.list. */
static bool lists_package(const char *name, const char *package, size_t len)
{
	if (strncmp(name, package, len) != 0 || !path_has_suffix(name, ".list"))
		return false;
	return name[len] == ':' || strcmp(name + len, ".list") == 0;
}

int root_package_files(const struct root *r, const char *package, struct arena *a,
		       struct strlist *ret, struct err *e)
{
	static const char dir[] = "/var/lib/dpkg/info";
	struct strlist names = {0};
	size_t len = strcspn(package, "=");

	if (root_list(r, dir, a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i];
		AUTO_BUF struct buf text = {0};
		if (!lists_package(name, package, len))
			continue;
		if (root_read(r, path_join(a, dir, name), MAX_STATUS, &text, e) < 0)
			return -1;
		strlist_split(ret, a, buf_cstr(&text), "\n");
	}

	return 0;
}
