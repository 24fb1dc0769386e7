#include "step/python/pyenv.h"

#include "base/sys/digest.h"
#include "base/sys/fs.h"

#define LIST_MAX (4U << 20)
#define HASH "--hash=sha256:"

#define ALNUM "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static const char blanks[] = " \t\r";

struct parser {
	const char *path;
	unsigned line; /* of the requirement being read */
	struct arena *a;
	struct err *e;
	struct locked *items;
	size_t count, cap;
};

static int refuse(const struct parser *p, const char *why, const char *text)
{
	err_set(p->e, ERR_CONFIG, "%s:%u: %s: '%.80s'", p->path, p->line, why, text);
	return err_hint(
		p->e,
		"every line of a locked list is NAME==VERSION with one --hash=sha256:... or more");
}

static int parse_hashes(const struct parser *p, const char *text, const char *whole,
			struct locked *l)
{
	struct strlist words = {0};

	strlist_split(&words, p->a, text, blanks);
	for (size_t i = 0; i < words.count; i++) {
		const char *w = words.items[i];
		if (strncmp(w, HASH, strlen(HASH)) != 0 || !digest_valid_hex(w + strlen(HASH)))
			return refuse(p, "not a --hash=sha256: of 64 lower-case hex digits", w);
		strlist_ref(&l->hashes, p->a, w + strlen(HASH));
	}

	return l->hashes.count ? 0 : refuse(p, "no --hash", whole);
}

static int parse_requirement(struct parser *p, const char *text)
{
	const char *s = text;
	size_t n = strspn(s, ALNUM "-_.");

	if (n == 0 || strchr("-_.", *s))
		return refuse(p, "not a pinned distribution", text);
	struct locked l = {.name = arena_strndup(p->a, s, n), .marker = ""};
	s += n + strspn(s + n, blanks);
	if (strncmp(s, "==", 2) != 0 || s[2] == '=')
		return refuse(p, "not pinned to one version with ==", text);
	s += 2 + strspn(s + 2, blanks);
	n = strspn(s, ALNUM "-_.+!");
	if (n == 0)
		return refuse(p, "no version", text);
	l.version = arena_strndup(p->a, s, n);
	s += n + strspn(s + n, blanks);
	const char *hashes = strstr(s, " --");
	if (*s == ';') {
		size_t len = hashes ? (size_t)(hashes - s) : strlen(s);
		char *marker = arena_strndup(p->a, s + 1, len - 1);
		marker += strspn(marker, blanks);
		for (size_t end = strlen(marker); end && strchr(blanks, marker[end - 1]); end--)
			marker[end - 1] = '\0';
		if (!*marker)
			return refuse(p, "an empty marker", text);
		l.marker = marker;
		s += len;
	}

	if (parse_hashes(p, s, text, &l) != 0)
		return -1;
	p->items = arena_room(p->a, p->items, p->count, &p->cap, 32, sizeof(*p->items));
	p->items[p->count++] = l;
	return 0;
}

/* Cuts a comment: a '#' at the start or behind a blank, as pip reads it. */
static void cut_comment(char *line)
{
	for (char *c = line; (c = strchr(c, '#')) != NULL; c++)
		if (c == line || c[-1] == ' ' || c[-1] == '\t') {
			*c = '\0';
			return;
		}
}

/* The line without blanks around it and without a backslash at its end. */
static char *trim(char *line, bool *ret_continued)
{
	line += strspn(line, blanks);
	size_t len = strlen(line);
	while (len && strchr(blanks, line[len - 1]))
		len--;
	*ret_continued = len && line[len - 1] == '\\';
	line[*ret_continued ? len - 1 : len] = '\0';
	return line;
}

static int parse_text(struct parser *p, char *text)
{
	AUTO_BUF struct buf logical = {0};
	unsigned number = 0;
	bool continued = false;

	for (char *line = text; line;) {
		char *next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		number++;
		if (!continued)
			p->line = number;
		cut_comment(line);
		buf_printf(&logical, "%s ", trim(line, &continued));
		line = next;
		if (continued && line)
			continue;
		const char *whole = buf_cstr(&logical) + strspn(buf_cstr(&logical), blanks);
		if (continued)
			return refuse(p, "the last line ends with a backslash", whole);
		if (*whole && parse_requirement(p, whole) < 0)
			return -1;
		buf_reset(&logical);
	}

	return 0;
}

int locked_list_read(const char *path, struct arena *a, struct locked_list *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct parser p = {.path = path, .a = a, .e = e};

	if (fs_read(TRUSTED, path, LIST_MAX, &text, e) < 0)
		return -1;
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.data[i] < 0x20 &&
		    !strchr("\t\r\n", text.data[i] ? text.data[i] : 'x'))
			return err_set(e, ERR_CONFIG, "%s: a control byte at offset %zu", path, i);
	if (parse_text(&p, arena_strdup(a, buf_cstr(&text))) != 0)
		return -1;
	if (p.count == 0)
		return err_set(e, ERR_CONFIG, "%s: an empty list", path);
	*ret = (struct locked_list){p.items, p.count};
	return 0;
}

int locked_lists_read(const char *dir, const char *const *files, size_t count, struct arena *a,
		      struct locked_list *ret, struct err *e)
{
	struct locked_list all = {0};
	size_t cap = 0;

	for (size_t i = 0; i < count; i++) {
		struct locked_list one;
		if (!files[i] || !*files[i])
			continue;
		if (locked_list_read(requirements_path(dir, files[i], a), a, &one, e) < 0)
			return -1;
		for (size_t k = 0; k < one.count; k++) {
			all.items =
				arena_room(a, all.items, all.count, &cap, 32, sizeof(*all.items));
			all.items[all.count++] = one.items[k];
		}
	}

	*ret = all;
	return 0;
}
