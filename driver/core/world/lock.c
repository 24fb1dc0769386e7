#include "core/world/world.h"

#include "base/sys/digest.h"
#include "base/sys/fs.h"

#define HEADER "ptbuild lock 1"
#define MAX_TEXT (4ULL << 20)
#define MAX_ENTRIES 20000U
#define MAX_SIZE (64ULL << 30) /* of one file */
#define MAX_FIELDS 7

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

const char *const world_kind_names[] = {"deb", "wheel", "file"};

struct reader {
	const char *at, *end;
	const char *file;
	unsigned line; /* of `fields` */
	char *fields[MAX_FIELDS + 1];
	size_t count;
	struct arena *a;
	size_t cap;
};

static int bad(const struct reader *r, struct err *e, const char *what, const char *value)
{
	const char *quote = *value ? "'" : "";

	err_set(e, ERR_CONFIG, "%s:%u: %s%s%s%.80s%s", r->file, r->line, what, *value ? " " : "",
		quote, value, quote);
	return err_hint(e, "take it from ptbuild's release again, or remove it and make one: "
			   "ptbuild world lock PART --write");
}

/* The next line into fields; 0 at the end. */
static int next_line(struct reader *r, struct err *e)
{
	r->count = 0;
	if (r->at == r->end)
		return 0;
	r->line++;
	const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
	if (!stop)
		return bad(r, e, "the lock ends within a line", "");
	for (const char *p = r->at; p < stop; p++)
		if (*p < ' ' || *p > '~')
			return bad(r, e, "a line with bytes that are not printable ASCII", "");
	char *text = arena_strndup(r->a, r->at, (size_t)(stop - r->at));
	r->at = stop + 1;
	for (char *p = text;; p++) {
		size_t n = strcspn(p, " ");
		if (n == 0)
			return bad(r, e, "an empty field in line", text);
		if (r->count == MAX_FIELDS)
			return bad(r, e, "too many fields in line", text);
		r->fields[r->count++] = p;
		p += n;
		if (!*p)
			return 1;
		*p = '\0';
	}
}

/* The next line, which begins with the word and has so many fields with it. */
static int need_line(struct reader *r, const char *word, size_t count, struct err *e)
{
	int got = next_line(r, e);

	if (got < 0)
		return -1;
	if (got == 0 || r->count != count || !r->fields[0] || strcmp(r->fields[0], word) != 0) {
		r->line += got == 0;
		return bad(r, e, "expected a line of the kind", word);
	}

	return 0;
}

/* A word of at most `max` of these characters that begins with a letter or a digit. */
static bool is_word(const char *s, const char *more, size_t max)
{
	size_t n = strlen(s);

	if (n == 0 || n > max || !strchr(LOWER UPPER DIGITS, s[0]))
		return false;
	for (const char *p = s; *p; p++)
		if (!strchr(LOWER UPPER DIGITS, *p) && !strchr(more, *p))
			return false;
	return true;
}

static bool is_name(const char *s)
{
	return is_word(s, "+-._", 128);
}

static bool is_version(const char *s)
{
	return is_word(s, "+-._:~!", 128);
}

/* "2025-01-31T12:00:00Z" */
static bool is_date(const char *s)
{
	static const char form[] = "0000-00-00T00:00:00Z";

	if (strlen(s) != sizeof(form) - 1)
		return false;
	for (size_t i = 0; form[i]; i++)
		if (form[i] == '0' ? !strchr(DIGITS, s[i]) : s[i] != form[i])
			return false;
	return true;
}

static bool is_place(enum world_kind kind, const char *s)
{
	if (strlen(s) > 1024)
		return false;
	if (kind == WORLD_FILE)
		return strncmp(s, "https://", 8) == 0 || strncmp(s, "http://", 7) == 0;
	if (!path_is_safe_relative(s) || strpbrk(s, "?#%\\\"'"))
		return false;
	if (kind == WORLD_DEB)
		return path_has_suffix(s, ".deb");
	return !strchr(s, '/') && path_has_suffix(s, ".whl");
}

static bool parse_size(const char *s, uint64_t *ret)
{
	uint64_t n = 0;

	if (!*s || s[0] == '0' || strlen(s) > 12 || s[strspn(s, DIGITS)])
		return false;
	for (const char *p = s; *p; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	*ret = n;
	return n <= MAX_SIZE;
}

int world_entry_cmp(const void *x, const void *y)
{
	const struct world_entry *a = x, *b = y;
	return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : strcmp(a->name, b->name);
}

static int parse_entry(struct reader *r, struct world_lock *l, struct err *e)
{
	struct world_entry *t, new = {.arch = ""};
	char **f = r->fields;
	size_t k = 0;

	while (k < ARRAY_LEN(world_kind_names) && strcmp(world_kind_names[k], f[0]) != 0)
		k++;
	if (k == ARRAY_LEN(world_kind_names))
		return bad(r, e, "expected deb, wheel, file or tree, but there is", f[0]);
	new.kind = (enum world_kind)k;
	size_t shift = new.kind == WORLD_DEB;
	if (r->count != 6 + shift)
		return bad(r, e, "the wrong number of fields for", f[0]);
	new.name = f[1];
	new.version = f[2];
	if (shift)
		new.arch = f[3];
	new.sha256 = f[4 + shift];
	new.place = f[5 + shift];
	if (!is_name(new.name))
		return bad(r, e, "not a name:", new.name);
	if (!is_version(new.version))
		return bad(r, e, "not a version:", new.version);
	if (shift && !is_word(new.arch, "-", 32))
		return bad(r, e, "not an architecture:", new.arch);
	bool unknown = new.kind == WORLD_FILE &&strcmp(f[3], "-") == 0;
	if (!unknown && !parse_size(f[3 + shift], &new.size))
		return bad(r, e, "not a size:", f[3 + shift]);
	if (!digest_valid_hex(new.sha256))
		return bad(r, e, "not a sha256:", new.sha256);
	if (!is_place(new.kind, new.place))
		return bad(r, e, "not a URL of that kind:", new.place);
	if (new.kind == WORLD_DEB && !l->archive)
		return bad(r, e, "a package in a lock without an archive:", new.name);
	if (l->count > 0 && world_entry_cmp(&l->entries[l->count - 1], &new) >= 0)
		return bad(r, e, "not in order, or there twice:", new.name);
	if (l->count == MAX_ENTRIES)
		return bad(r, e, "too many entries, at", new.name);
	l->entries = arena_room(r->a, l->entries, !l->entries || l->count, &r->cap, 512,
				sizeof(*l->entries));
	t = &l->entries[l->count++];
	*t = new;
	return 0;
}

static int parse_archive(struct reader *r, struct world_lock *l, struct err *e)
{
	bool has_names = r->count == 5 && is_name(r->fields[1]) && is_name(r->fields[2]);

	if (!has_names || !digest_valid_hex(r->fields[3]) || !is_date(r->fields[4]))
		return bad(r, e, "not a name, a suite, a sha256 and a time:", r->fields[1]);
	l->archive = r->fields[1];
	l->suite = r->fields[2];
	l->release = r->fields[3];
	l->date = r->fields[4];
	return 0;
}

static int parse_head(struct reader *r, struct world_lock *l, struct err *e)
{
	if (need_line(r, "ptbuild", 3, e) < 0)
		return -1;
	if (strcmp(r->fields[1], "lock") != 0 || strcmp(r->fields[2], "1") != 0) {
		bad(r, e, "not a lock of format 1:", r->fields[2]);
		return err_hint(e, "the first line is '%s'; a newer ptbuild may know this one",
				HEADER);
	}

	if (need_line(r, "part", 3, e) < 0)
		return -1;
	l->part = r->fields[1];
	l->platform = r->fields[2];
	if (!is_word(l->part, "_", 64) || !is_word(l->platform, "_-", 64))
		return bad(r, e, "not a part and a platform:", l->part);
	if (need_line(r, "asked", 2, e) < 0)
		return -1;
	l->asked = r->fields[1];
	return digest_valid_hex(l->asked) ? 0 : bad(r, e, "not a sha256:", l->asked);
}

int world_lock_parse(const struct file_bytes *in, struct arena *a, struct world_lock *ret,
		     struct err *e)
{
	const char *text = in->data;
	struct reader r = {.at = text, .end = text + in->size, .file = in->name, .a = a};
	struct world_lock l = {0};
	int got;

	if (in->size > MAX_TEXT)
		return err_set(e, ERR_CONFIG, "'%s' is larger than any lock", in->name);
	if (parse_head(&r, &l, e) < 0)
		return -1;
	for (bool first = true; (got = next_line(&r, e)) > 0; first = false) {
		if (l.tree)
			return bad(&r, e, "a line after the last one, tree:", r.fields[0]);
		if (first && strcmp(r.fields[0], "archive") == 0) {
			if (parse_archive(&r, &l, e) < 0)
				return -1;
		} else if (strcmp(r.fields[0], "tree") == 0) {
			l.tree = r.fields[1];
			if (r.count != 2 || !digest_valid_hex(l.tree))
				return bad(&r, e, "not one sha256 after", "tree");
		} else if (parse_entry(&r, &l, e) < 0) {
			return -1;
		}
	}

	if (got < 0)
		return -1;
	*ret = l;
	return 0;
}

int world_lock_read(const char *path, struct arena *a, struct world_lock *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};

	if (fs_read(TRUSTED, path, MAX_TEXT, &text, e) < 0) {
		e->kind = ERR_CONFIG;
		return err_hint(e, "take it from ptbuild's release again");
	}

	return world_lock_parse(&(struct file_bytes){buf_cstr(&text), text.len, path}, a, ret, e);
}

const struct world_entry *world_lock_sorted(const struct world_lock *l, struct arena *a)
{
	struct world_entry *copy = arena_array(a, l->count + 1, sizeof(*copy));

	for (size_t i = 0; i < l->count; i++)
		copy[i] = l->entries[i];
	array_sort(copy, l->count, sizeof(*copy), world_entry_cmp);
	return copy;
}

static void write_entry(struct buf *out, const struct world_entry *t)
{
	buf_printf(out, "%s %s %s ", world_kind_names[t->kind], t->name, t->version);
	if (t->kind == WORLD_DEB)
		buf_printf(out, "%s ", t->arch);
	if (t->size)
		buf_printf(out, "%llu %s", (unsigned long long)t->size, t->sha256);
	else
		buf_printf(out, "- %s", t->sha256);
}

void world_lock_write(const struct world_lock *l, struct buf *out)
{
	AUTO_ARENA struct arena a = {0};
	const struct world_entry *all = world_lock_sorted(l, &a);

	buf_printf(out, HEADER "\npart %s %s\nasked %s\n", l->part, l->platform, l->asked);
	if (l->archive)
		buf_printf(out, "archive %s %s %s %s\n", l->archive, l->suite, l->release, l->date);
	for (size_t i = 0; i < l->count; i++) {
		write_entry(out, &all[i]);
		buf_printf(out, " %s\n", all[i].place);
	}

	if (l->tree)
		buf_printf(out, "tree %s\n", l->tree);
}

int world_lock_save(const struct world_lock *l, const char *path, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};
	struct world_lock again;

	world_lock_write(l, &text);
	if (world_lock_parse(&(struct file_bytes){buf_cstr(&text), text.len, path}, &a, &again, e) <
	    0) {
		e->kind = ERR_INTEGRITY;
		err_wrap(e, "the new lock would not be one");
		return err_hint(
			e,
			"what the archive, the index or the manifest says of this file is wrong");
	}

	return fs_sweep(TRUSTED, path_dir(&a, path), e) < 0
		       ? -1
		       : fs_write(TRUSTED, path, text.data, text.len, 0644, e);
}

const struct world_entry *world_lock_find(const struct world_lock *l, enum world_kind kind,
					  const char *name)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->entries[i].kind == kind && strcmp(l->entries[i].name, name) == 0)
			return &l->entries[i];
	return NULL;
}

char *world_lock_path(const char *profiles, const char *part, const char *platform, struct arena *a)
{
	return arena_printf(a, "%s/worlds/%s.%s.lock", profiles, part, platform);
}

uint64_t world_lock_bytes(const struct world_lock *l)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < l->count; i++)
		sum += l->entries[i].size;
	return sum;
}

void world_lock_key(const struct world_lock *l, const char *rules, char ret[65])
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};
	const struct world_entry *all = world_lock_sorted(l, &a);

	buf_printf(&text, "part %s %s\n", l->part, l->platform);
	for (size_t i = 0; i < l->count; i++) {
		write_entry(&text, &all[i]);
		buf_addc(&text, '\n');
	}

	buf_printf(&text, "rules\n%s", rules);
	digest_data(buf_cstr(&text), text.len, ret);
}
