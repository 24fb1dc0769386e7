#include "step/ccache/ccache_relay.h"

#include <time.h>

#include "base/os.h"
#include "base/sys/fs.h"

#define ALPHABET "0123456789abcdefghijklmnopqrstuv"
enum {
	KEY_MIN = 24,
	KEY_MAX = 64,         /* ccache's have 33 */
	MAX_ENTRIES = 500000, /* of a build: PyTorch for all GPUs has some 20,000 */
	FRESH_SECONDS = 3600, /* a time of use that is younger is good enough */
};

/* ---- names ---- */

static bool is_domain(const char *name)
{
	size_t len = strlen(name);
	return len > 0 && len <= 64 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == len && *name != '.';
}

int ccache_domain_parse(const char *text, struct arena *a, const char **ret_keep,
			struct strlist *ret_read, struct err *e)
{
	struct strlist read = {0};
	size_t first = strcspn(text, ":");
	const char *keep = first ? arena_strndup(a, text, first) : NULL;

	if (keep)
		strlist_ref(&read, a, keep);
	if (text[first])
		strlist_split(&read, a, text + first + 1, ":");
	for (size_t i = 0; i < read.count || i == 0; i++) {
		if (i < read.count && is_domain(read.items[i]))
			continue;
		err_set(e, ERR_USAGE, "option '--ccache-domain': '%s' is not a domain's name",
			i < read.count ? read.items[i] : text);
		return err_hint(e, "lower-case letters, digits, '-', '_' and '.', at most 64: "
				   "NAME, NAME:READ or "
				   ":READ");
	}

	*ret_keep = keep;
	*ret_read = read;
	return 0;
}

bool ccache_is_manifest(const void *data, size_t len)
{
	const uint8_t *p = data;
	return len > 3 && p[3] == 1;
}

void ccache_name(const char *key, const char *tag, char ret[CCACHE_MAX_NAME])
{
	snprintf(ret, CCACHE_MAX_NAME, "%.2s/%.*s%s%.*s", key, KEY_MAX, key + 2, tag ? "-" : "",
		 CCACHE_TAG_LEN, tag ? tag : "");
}

/* "0/1/23...R" of ccache's own directory: the key, and whether it is a manifest. */
static bool parse_front(const char *rel, char key[KEY_MAX + 1], bool *manifest)
{
	size_t n = 0, len = strlen(rel), levels = 0;

	for (; len > 2 && rel[1] == '/' && levels < 8; levels++, rel += 2, len -= 2)
		key[n++] = *rel;
	if (levels == 0 || len < 2 || (rel[len - 1] != 'R' && rel[len - 1] != 'M'))
		return false;
	if (n + len - 1 > KEY_MAX || n + len - 1 < KEY_MIN)
		return false;
	memcpy(key + n, rel, len - 1);
	key[n + len - 1] = '\0';
	*manifest = rel[len - 1] == 'M';
	return strspn(key, ALPHABET) == n + len - 1;
}

/* ---- reading ---- */

static bool read_entry(const char *path, bool touch, struct buf *out)
{
	struct stat st;
	size_t before = out->len;
	AUTO_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return false;
	if (fs_read_fd(fd, path, RESP_MAX_VALUE, out, ERR_IGNORED) < 0) {
		out->len = before;
		return false;
	}

	const struct timespec now[] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
	if (touch && time(NULL) - st.st_mtim.tv_sec > FRESH_SECONDS)
		(void)futimens(fd, now); /* another user's, or a disk that is only read */
	return true;
}

/* One to four levels of a digit, the rest of the key, and R for a result or M for a manifest. */
static bool plain_get(const char *dir, const char *key, struct buf *out)
{
	static const size_t levels[] = {2, 3, 1, 4};

	for (size_t k = 0; k < ARRAY_LEN(levels) * 2; k++) {
		AUTO_BUF struct buf path = {0};
		size_t before = out->len;
		for (size_t d = 0; d < levels[k / 2]; d++)
			buf_printf(&path, "%c/", key[d]);
		buf_printf(&path, "%s%c", key + levels[k / 2], k % 2 ? 'M' : 'R');
		if (!fs_exists(dir, buf_cstr(&path)))
			continue;
		if (fs_read(dir, buf_cstr(&path), RESP_MAX_VALUE, out, ERR_IGNORED) == 0 &&
		    out->len > before)
			return true;
		out->len = before;
	}

	return false;
}

static bool place_get(const struct ccache_place *p, const char *name, struct buf *out)
{
	AUTO_BUF struct buf path = {0};
	buf_printf(&path, "%s/%s", p->dir, name);
	return read_entry(buf_cstr(&path), p->own, out);
}

const struct ccache_place *ccache_shared_get(const struct ccache_shared *s, const char *key,
					     struct buf *out, bool *ret_own)
{
	const char *const tags[] = {s->scope, s->group, NULL};
	size_t before = out->len;

	for (size_t t = 0; t < ARRAY_LEN(tags); t++) {
		char name[CCACHE_MAX_NAME];
		ccache_name(key, tags[t], name);
		for (size_t i = 0; (tags[t] || t == 2) && i < s->count; i++) {
			const struct ccache_place *p = &s->places[i];
			if (p->plain ? tags[t] || !plain_get(p->dir, key, out)
				     : !place_get(p, name, out))
				continue;
			*ret_own = t == 0 ||
				   !ccache_is_manifest(out->data + before, out->len - before);
			return p;
		}
	}

	return NULL;
}

/* ---- promotion ---- */

struct candidate {
	const char *rel, *key;
	bool manifest;
};

struct promotion {
	const struct ccache_promote_request *q;
	const struct run *run;
	struct arena *arena;
	struct candidate *items;
	size_t count, cap, seen;
	struct ccache_promoted made;
};

static int add_candidate(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct promotion *p = user;
	char key[KEY_MAX + 1], name[CCACHE_MAX_NAME];
	bool manifest = false;

	if (++p->seen > MAX_ENTRIES)
		return err_set(e, ERR_INTEGRITY, "more than %d files in the build's compiler cache",
			       MAX_ENTRIES);
	if (!parse_front(rel, key, &manifest))
		return 0;
	if (!S_ISREG(st->st_mode) || st->st_size == 0 || (uint64_t)st->st_size > RESP_MAX_VALUE) {
		p->made.refused++;
		return 0;
	}

	ccache_name(key, manifest ? p->q->scope : NULL, name);
	if (fs_exists(TRUSTED, path_join(p->arena, p->q->place, name)))
		return 0;
	p->items = arena_room(p->arena, p->items, p->count, &p->cap, 1024, sizeof(*p->items));
	p->items[p->count++] = (struct candidate){arena_strdup(p->arena, rel),
						  arena_strdup(p->arena, key), manifest};
	return 0;
}

/* Into the stage, under its number; 1: it is no entry, or too much. */
static int stage_one(struct promotion *p, size_t i, struct err *e)
{
	AUTO_BUF struct buf data = {0};
	struct err why = {0};
	const struct candidate *c = &p->items[i];
	const char *to = arena_printf(p->arena, "%s/%zu", p->q->stage, i);

	if (fs_read(p->q->top, path_join(p->arena, p->q->front, c->rel), RESP_MAX_VALUE, &data,
		    &why) < 0 ||
	    data.len < 16 || memcmp(data.data, "\xcc\xac\x01", 3) != 0 ||
	    data.data[3] != (char)c->manifest) {
		p->made.refused++;
		return 1;
	}

	if (p->made.bytes + data.len > p->q->max_bytes)
		return 1;
	AUTO_FD int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot make '%s'", to);
	p->made.bytes += data.len;
	return fs_write_all(fd, data.data, data.len, to, e);
}

/* From the stage to its name, unless another build was faster. */
static int place_one(struct promotion *p, size_t i, struct err *e)
{
	char name[CCACHE_MAX_NAME];
	const struct candidate *c = &p->items[i];
	const char *from = arena_printf(p->arena, "%s/%zu", p->q->stage, i);

	ccache_name(c->key, c->manifest ? p->q->scope : NULL, name);
	const char *to = path_join(p->arena, p->q->place, name);
	if (link(from, to) < 0 && errno == ENOENT &&
	    fs_mkdirs(TRUSTED, path_dir(p->arena, to), e) < 0)
		return -1;
	if (!fs_exists(TRUSTED, to) && link(from, to) < 0 && errno != EEXIST)
		return err_errno(e, ERR_SYSTEM, "cannot make '%s'", to);
	struct stat st, have;
	if (lstat(from, &st) < 0 || lstat(to, &have) < 0 || st.st_ino != have.st_ino)
		return 0;
	strlist_add(&p->made.names, p->arena, name);
	if (!c->manifest)
		return 0;
	ccache_name(c->key, NULL, name);
	to = path_join(p->arena, p->q->place, name);
	if (link(from, to) < 0 && errno != EEXIST)
		return err_errno(e, ERR_SYSTEM, "cannot make '%s'", to);
	ccache_name(c->key, p->q->group, name);
	to = path_join(p->arena, p->q->place, name);
	/* rename(2) of two names of one file does nothing */
	const char *other = arena_printf(p->arena, "%s-", from);
	if (link(from, other) < 0 || rename(other, to) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot make '%s'", to);
	return 0;
}

/* All bytes reach the disk before the first gets its
 * name: a torn entry would never be written again. */
static int sync_stage(const struct promotion *p, struct err *e)
{
	AUTO_FD int fd = open(p->q->stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || os_sync_disk(fd) < 0
		       ? err_errno(e, ERR_SYSTEM, "cannot sync '%s'", p->q->stage)
		       : 0;
}

int ccache_promote(const struct ccache_promote_request *q, struct arena *a,
		   struct ccache_promoted *ret, struct err *e)
{
	struct promotion p = {.q = q, .run = q->run, .arena = a};
	size_t kept = 0;

	if (fs_mkdirs(TRUSTED, q->place, e) < 0 ||
	    fs_walk_busy(q->top, q->front, add_candidate, &p, e) < 0)
		return -1;
	bool *staged = arena_array(a, p.count + 1, sizeof(*staged));
	for (size_t i = 0; i < p.count; i++) {
		int rc = run_check(q->run, e) < 0 ? -1 : stage_one(&p, i, e);
		if (rc < 0)
			return -1;
		staged[i] = rc == 0;
		kept += staged[i];
	}

	if (kept && sync_stage(&p, e) < 0)
		return -1;
	/* Results before manifests, which name them. */
	for (int manifests = 0; manifests < 2; manifests++)
		for (size_t i = 0; i < p.count; i++)
			if (staged[i] && p.items[i].manifest == (manifests > 0) &&
			    place_one(&p, i, e) < 0)
				return -1;
	*ret = p.made;
	return 0;
}
