#include "step/slim/slim_parts.h"

#include "base/sys/digest.h"
#include "core/wheel/slim_marker.h"

enum { SAME_MIN = 64 << 10, MARKER_MAX = 64 << 10 };

/* ---- the plan ---- */

static bool is_chosen(const struct slim_drops *d, const struct drop_row *row)
{
	const struct slim_kind *k = slim_drops_kind(d, row);
	return k && k->chosen;
}

bool slim_parts_goes(const struct slim_env_request *q, struct slim_package *p, size_t i)
{
	struct slim_file *f = &p->parts[i];
	struct stat st;

	f->row = slim_drops_row(q->drops, q->wanted, p->info, p->rows, p->rows_count, i);
	if (!f->row)
		return false;
	const bool there = fs_place_stat(p->place, p->rows[i].path, &st) == 0;
	if ((there && !S_ISREG(st.st_mode)) || (!there && errno != ENOENT)) {
		f->row = NULL; /* another package's affair */
		return false;
	}

	f->bytes = there ? (uint64_t)st.st_blocks * 512 : 0;
	f->size = there ? (uint64_t)st.st_size : 0;
	f->gone = is_chosen(q->drops, f->row);
	p->changes = p->changes || f->gone;
	return f->gone;
}

void slim_parts_sections(const struct slim_env_request *q, struct slim_package *p, size_t i,
			 const struct fs_mapping *file)
{
	AUTO_ELF_MAP struct elf_map m = {0};
	AUTO_ARENA struct arena a = {0};
	struct slim_file *f = &p->parts[i];
	struct elf_strip s;

	if (file->size < EI_NIDENT || memcmp(file->data, ELFMAG, SELFMAG) != 0)
		return;
	if (elf_map_memory(&(struct file_bytes){file->data, file->size, p->rows[i].path}, &m,
			   ERR_IGNORED) < 0 ||
	    elf_strip_plan(&m, ELF_STRIP_DEBUG | ELF_STRIP_SYMBOLS, &a, &s, ERR_IGNORED) < 0 ||
	    !s.count)
		return;
	f->debug = s.debug;
	f->symbols = s.symbols;
	f->strip = (s.debug && (q->drops->strip & ELF_STRIP_DEBUG)) ||
		   (s.symbols && (q->drops->strip & ELF_STRIP_SYMBOLS));
	p->changes = p->changes || f->strip;
}

struct candidate {
	const struct wheel_record_row *row;
	size_t i;
};

static int by_directory(const void *a, const void *b)
{
	const struct wheel_record_row *x = ((const struct candidate *)a)->row,
				      *y = ((const struct candidate *)b)->row;
	const size_t n = (size_t)(path_base(x->path) - x->path),
		     m = (size_t)(path_base(y->path) - y->path);
	int c = n == m ? strncmp(x->path, y->path, n) : (n > m) - (n < m);

	c = c ? c : strcmp(x->digest, y->digest);
	return c ? c : (x > y) - (x < y);
}

static bool same_group(const struct candidate *a, const struct candidate *b)
{
	const size_t n = (size_t)(path_base(a->row->path) - a->row->path);

	return n == (size_t)(path_base(b->row->path) - b->row->path) &&
	       strncmp(a->row->path, b->row->path, n) == 0 && a->row->size == b->row->size &&
	       strcmp(a->row->digest, b->row->digest) == 0;
}

/* Owner and rights are the file's, so they must be
 * the same; of one inode there is nothing to gain. */
static bool may_be_one(const struct slim_package *p, size_t one, size_t other, uint64_t *ret_bytes)
{
	struct stat a, b;

	if (fs_place_stat(p->place, p->rows[one].path, &a) < 0 ||
	    fs_place_stat(p->place, p->rows[other].path, &b) < 0)
		return false;
	*ret_bytes = (uint64_t)b.st_blocks * 512;
	if (!S_ISREG(a.st_mode) || a.st_mode != b.st_mode || a.st_size != b.st_size)
		return false;
	if (a.st_uid != b.st_uid || a.st_gid != b.st_gid)
		return false;
	return a.st_dev == b.st_dev && a.st_ino != b.st_ino;
}

void slim_parts_same(const struct slim_env_request *q, struct slim_package *p, struct arena *a)
{
	struct candidate *list = arena_array(a, p->rows_count + 1, sizeof(*list));
	size_t n = 0, first = 0;

	for (size_t i = 0; i < p->rows_count; i++) {
		const struct wheel_record_row *row = &p->rows[i];
		if (row->size >= SAME_MIN && *row->digest && !p->parts[i].gone &&
		    path_is_safe_relative(row->path))
			list[n++] = (struct candidate){row, i};
	}

	array_sort(list, n, sizeof(*list), by_directory);
	for (size_t k = 1; k < n; k++) {
		struct slim_file *f = &p->parts[list[k].i];
		uint64_t bytes;
		if (!same_group(&list[first], &list[k])) {
			first = k;
			continue;
		}

		if (!may_be_one(p, list[first].i, list[k].i, &bytes))
			continue;
		f->like = list[first].i + 1;
		f->bytes = bytes;
		p->changes = p->changes || q->drops->same;
	}
}

/* Sections of two names of one file go from both, and from the disk once. */
static void count_file(const struct slim_drops *d, const struct slim_file *f,
		       struct slim_saved *sum)
{
	const uint64_t code = f->cut ? f->cut->before - f->cut->after + f->cut->blank : 0;
	const uint64_t debug = d->strip & ELF_STRIP_DEBUG ? f->debug : 0;
	const uint64_t symbols = d->strip & ELF_STRIP_SYMBOLS ? f->symbols : 0;

	if (f->gone) {
		sum->size += f->size;
		sum->disk += f->bytes;
		return;
	}

	sum->size += debug + symbols;
	if (f->like && d->same)
		/* its code is counted by its package */
		sum->disk += f->bytes - (code < f->bytes ? code : f->bytes);
	else
		sum->disk += debug + symbols;
}

void slim_parts_count(const struct slim_env_request *q, const struct slim_package *p,
		      struct slim_saved *sum, struct arena *a)
{
	const struct slim_drops *d = q->drops;

	for (size_t i = 0; i < p->rows_count; i++) {
		const struct slim_file *f = &p->parts[i];
		const uint64_t left = f->cut ? f->cut->after - f->cut->blank : f->bytes;
		count_file(d, f, sum);
		if (f->row)
			slim_drops_add(d, f->row, left < f->bytes ? left : f->bytes, a);
		if (f->gone)
			continue;
		if (f->like) {
			slim_drops_add(d, slim_drops_same(d), f->bytes, a);
			continue; /* its sections go with the other name's */
		}

		slim_drops_add(d, slim_drops_strip(d, "debug"), f->debug, a);
		slim_drops_add(d, slim_drops_strip(d, "symbols"), f->symbols, a);
	}
}

/* ---- the change ---- */

int slim_parts_strip(const struct fs_mapping *file, const char *name, unsigned what, int fd,
		     bool *ret_done, struct err *e)
{
	AUTO_ELF_MAP struct elf_map before = {0};
	AUTO_ELF_MAP struct elf_map after = {0};
	AUTO_MAPPING struct fs_mapping fresh = {0};
	AUTO_ARENA struct arena a = {0};
	struct elf_strip s;

	*ret_done = false;
	if (elf_map_memory(&(struct file_bytes){file->data, file->size, name}, &before, e) < 0 ||
	    elf_strip_plan(&before, what, &a, &s, e) < 0)
		return -1;
	if (!s.count)
		return 0;
	if (elf_strip_write(&s, fd, name, e) < 0 || fs_map_fd(fd, name, &fresh, e) < 0 ||
	    elf_map_memory(&(struct file_bytes){fresh.data, fresh.size, name}, &after, e) < 0)
		return -1;
	if (elf_strip_prove(&before, &after, what, e) < 0)
		return err_wrap(e, "the stripped file is not equal, and is not used");
	*ret_done = true;
	return 0;
}

int slim_parts_remove(const struct slim_package *p, size_t i, struct arena *a, struct err *e)
{
	const char *path = p->rows[i].path;

	if (fs_place_remove(p->place, path, e) < 0)
		return -1;
	/* A directory without files would be an importable package still. */
	for (const char *dir = path_dir(a, path); strchr(dir, '/'); dir = path_dir(a, dir)) {
		struct strlist names = {0};
		if (fs_place_list(p->place, dir, a, &names, ERR_IGNORED) < 0 || names.count)
			break;
		if (fs_place_remove(p->place, dir, e) < 0)
			return -1;
	}

	return 0;
}

int slim_parts_link(const struct slim_package *p, size_t i, struct err *e)
{
	AUTO_MAPPING struct fs_mapping one = {0};
	AUTO_MAPPING struct fs_mapping other = {0};
	const char *from = p->rows[p->parts[i].like - 1].path, *to = p->rows[i].path;
	struct stat st, st_other;
	bool done;

	if (fs_place_map(p->place, from, &one, &st, e) < 0 ||
	    fs_place_map(p->place, to, &other, &st_other, e) < 0)
		return -1;
	if (st.st_ino == st_other.st_ino || one.size != other.size ||
	    memcmp(one.data, other.data, one.size) != 0)
		return 0;
	return fs_place_link(p->place, from, to, &st, &done, e);
}

static void add_kind(const struct slim_drops *d, const struct drop_row *row, struct slim_marker *m,
		     struct arena *a)
{
	if (is_chosen(d, row))
		strlist_once(&m->dropped, a, row->name);
}

/* Whether what stays is for the wanted GPUs: cut GPU code, or files that others need are gone. */
static bool is_for_gpus(const struct slim_package *p)
{
	bool found = p->count > 0;

	for (size_t i = 0; i < p->rows_count && !found; i++)
		found = p->parts[i].gone && slim_drops_by_gpu(p->parts[i].row);
	return found;
}

static void fill(const struct slim_env_request *q, const struct slim_package *p,
		 struct slim_marker *m, struct arena *a)
{
	const struct slim_drops *d = q->drops;
	const char *end = strstr(p->info, ".dist-info"), *dash = p->info;

	for (const char *s = p->info; (s = strchr(s, '-')) && s < end; s++)
		dash = s + 1;
	m->release = arena_strndup(a, dash, (size_t)(end - dash));
	m->ptbuild = PTBUILD_VERSION;
	for (size_t g = 0; g < q->wanted->count && is_for_gpus(p); g++)
		slim_marker_gpu(m, q->wanted->gpus[g].number, q->wanted->gpus[g].ptx, a);
	for (size_t i = 0; i < p->rows_count; i++) {
		const struct slim_file *f = &p->parts[i];
		if (f->gone)
			add_kind(d, f->row, m, a);
		if (f->strip && f->debug)
			add_kind(d, slim_drops_strip(d, "debug"), m, a);
		if (f->strip && f->symbols)
			add_kind(d, slim_drops_strip(d, "symbols"), m, a);
		if (f->like > 0)
			add_kind(d, slim_drops_same(d), m, a);
	}
}

/* What an earlier run dropped is gone still, with the GPUs that it was dropped for. */
static void keep_earlier(const struct slim_package *p, const char *path, struct slim_marker *m,
			 struct arena *a)
{
	AUTO_BUF struct buf text = {0};
	struct slim_marker old = {0};

	if (!fs_place_has(p->place, path) ||
	    fs_place_read(p->place, path, MARKER_MAX, &text, ERR_IGNORED) < 0 ||
	    slim_marker_parse(&(struct file_bytes){buf_cstr(&text), text.len, path}, a, &old,
			      ERR_IGNORED) < 0)
		return;
	for (size_t i = 0; i < old.gpus.count; i++)
		strlist_once(&m->gpus, a, old.gpus.items[i]);
	for (size_t i = 0; i < old.dropped.count; i++)
		strlist_once(&m->dropped, a, old.dropped.items[i]);
}

int slim_parts_mark(const struct slim_env_request *q, struct slim_package *p, struct arena *a,
		    bool *ret_changed, struct err *e)
{
	AUTO_BUF struct buf old = {0};
	const char *path = path_join(a, p->info, SLIM_MARKER);
	struct slim_marker m = {0};
	struct stat st;
	char digest[DIGEST_RECORD_MAX];
	size_t i = 0;

	fill(q, p, &m, a);
	keep_earlier(p, path, &m, a);
	strlist_sort(&m.dropped);
	const char *text = slim_marker_text(&m, a);
	digest_record("sha256", text, strlen(text), digest);
	while (i < p->rows_count && strcmp(p->rows[i].path, path) != 0)
		i++;
	const bool listed = i < p->rows_count && strcmp(p->rows[i].digest, digest) == 0;
	const bool there = fs_place_has(p->place, path) &&
			   fs_place_read(p->place, path, MARKER_MAX, &old, ERR_IGNORED) == 0 &&
			   strcmp(buf_cstr(&old), text) == 0;
	if (listed && there)
		return 0;
	AUTO_FD int record = fs_place_file(p->place, path_join(a, p->info, "RECORD"), &st, e);
	if (record < 0 ||
	    (!there && fs_place_write(p->place, path, text, strlen(text), &st, e) < 0))
		return -1;
	p->rows[i] =
		(struct wheel_record_row){path, arena_strdup(a, digest), (int64_t)strlen(text)};
	p->rows_count += i == p->rows_count;
	*ret_changed = true;
	return 0;
}
