/* Build paths: rewritten in text files, an error anywhere else. */

#include "base/path.h"
#include "step/relocate/relocate_parts.h"

enum { MAX_TEXT = 64 << 20 };

static bool has_suffix(const char *rel, const char *const *suffixes)
{
	while (*suffixes && !path_has_suffix(rel, *suffixes))
		suffixes++;
	return *suffixes;
}

/* Appends `text` with every `from` replaced; false when there was none. */
static bool replace(struct buf *out, const char *text, size_t len, const char *from, const char *to)
{
	const char *at = text, *end = text + len, *hit;
	size_t n = strlen(from);
	while (n && (hit = memmem(at, (size_t)(end - at), from, n))) {
		buf_add(out, at, (size_t)(hit - at));
		buf_addstr(out, to);
		at = hit + n;
	}
	buf_add(out, at, (size_t)(end - at));
	return at != text;
}

static bool apply(struct buf *text, const struct kvlist *rules)
{
	bool changed = false;
	for (size_t i = 0; i < rules->count; i++) {
		struct buf out = {0};
		changed |= replace(&out, buf_cstr(text), text->len, rules->items[i].key, rules->items[i].value);
		buf_release(text);
		*text = out;
	}
	return changed;
}

static int rewrite_one(const char *rel, const struct stat *st, void *user, struct err *e)
{
	static const char *const texts[] = {".cmake", ".pc", ".txt", ".py", ".h", NULL};
	static const char *const configs[] = {".cmake", ".pc", NULL};
	struct relocation *r = user;
	AUTO_BUF struct buf text = {0};
	if (!S_ISREG(st->st_mode) || st->st_size > MAX_TEXT || !has_suffix(rel, texts))
		return 0;
	const char *path = path_join(r->a, r->q->tree, rel);
	if (fs_read(TRUSTED, path, MAX_TEXT, &text, e) < 0)
		return -1;
	if (memchr(buf_cstr(&text), '\0', text.len))
		return 0;
	bool changed = apply(&text, &r->q->rewrite);
	if (has_suffix(rel, configs))
		changed = apply(&text, &r->removed) || changed;
	if (!changed)
		return 0;
	r->result.rewritten++;
	return fs_write(TRUSTED, path, buf_cstr(&text), text.len, st->st_mode & 07777, e);
}

int relocate_rewrite(struct relocation *r, struct err *e)
{
	if (r->q->rewrite.count == 0 && r->removed.count == 0)
		return 0;
	return fs_walk(TRUSTED, r->q->tree, rewrite_one, r, e);
}

struct scan {
	struct relocation *r;
	size_t hits, files;
	char *first_file;
	uint64_t first_offset;
	char text[128]; /* the first hit with what follows it */
};

static void note_first(struct scan *s, const char *rel, const char *data, size_t size, size_t offset)
{
	size_t n = 0;
	s->first_file = arena_strdup(s->r->a, rel);
	s->first_offset = offset;
	while (n + 1 < sizeof(s->text) && offset + n < size && isprint((unsigned char)data[offset + n])) {
		s->text[n] = data[offset + n];
		n++;
	}
	s->text[n] = '\0';
}

static int scan_one(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct scan *s = user;
	if (run_check(s->r->run, e) < 0)
		return -1;
	if (!S_ISREG(st->st_mode) || st->st_size == 0)
		return 0;
	AUTO_MAPPING struct fs_mapping m = {0};
	if (fs_map(path_join(s->r->a, s->r->q->tree, rel), &m, e) < 0)
		return -1;
	/* Counts the build paths in a file; notes the first of all. */
	const char *data = (const char *)m.data;
	const struct strlist *paths = &s->r->q->build_paths;
	size_t hits = 0, first = m.size;
	for (size_t i = 0; i < paths->count; i++) {
		size_t n = strlen(paths->items[i]);
		const char *at = data, *hit;
		while (n && (hit = memmem(at, m.size - (size_t)(at - data), paths->items[i], n))) {
			if ((size_t)(hit - data) < first)
				first = (size_t)(hit - data);
			hits++;
			at = hit + n;
		}
	}
	if (hits && !s->first_file)
		note_first(s, rel, data, m.size, first);
	s->hits += hits;
	s->files += hits != 0;
	return 0;
}

int relocate_scan(struct relocation *r, struct err *e)
{
	struct scan s = {.r = r};
	if (r->q->build_paths.count == 0)
		return 0;
	if (fs_walk(TRUSTED, r->q->tree, scan_one, &s, e) < 0)
		return -1;
	if (s.hits == 0)
		return 0;
	err_set(e, ERR_POLICY, "'%s' contains a build path at offset 0x%llx: '%s' (%zu in %zu files)", s.first_file,
		(unsigned long long)s.first_offset, s.text, s.hits, s.files);
	return err_hint(e, "compile with -ffile-prefix-map, or add a rewriting rule for text files");
}
