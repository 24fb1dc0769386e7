#include "step/pack/cut_wheel.h"

#include "base/path.h"
#include "base/run.h"
#include "base/sys/machine.h"
#include "step/pack/cut_parts.h"
#include "step/pack/pack_parts.h"

enum {
	TEXT_MAX = 256 << 20,
	THREADS_MAX = 16,
	TARGETS_AT_ONCE = 2, /* one is cut while the other is packed */
};

/* ---- several at once ---- */

struct working {
	struct slimming *s;
	int (*one)(struct slimming *s, size_t i, struct err *e);
	size_t count;
	_Atomic size_t next;
};

static void work_on(unsigned thread, void *arg)
{
	struct working *w = arg;
	(void)thread;
	for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->count && i < w->s->failed;) {
		struct err e = {0};
		if (run_check(w->s->run, &e) == 0 && w->one(w->s, i, &e) == 0)
			continue;
		pthread_mutex_lock(&w->s->lock);
		if (i < w->s->failed) {
			w->s->failed = i;
			w->s->err = e;
		}
		pthread_mutex_unlock(&w->s->lock);
	}
}

/* The error is that of the first in order that fails, whatever their speed. */
static int work(struct slimming *s, unsigned threads, size_t count,
		int (*one)(struct slimming *s, size_t i, struct err *e), struct err *e)
{
	struct working w = {.s = s, .one = one, .count = count};
	s->failed = SIZE_MAX;
	thread_each(threads, work_on, &w);
	if (s->failed == SIZE_MAX)
		return 0;
	*e = s->err;
	return -1;
}

/* ---- what is in the wheel ---- */

static int missing(const struct slimming *s, const char *what, struct err *e)
{
	return err_set(e, ERR_INTEGRITY, "'%s' is not a whole wheel: it has no '%s'", s->q->wheel, what);
}

int slim_read(const struct slimming *s, const char *name, struct buf *out, struct err *e)
{
	const struct zip_entry *en = zip_find(s->zip, name);
	return en ? zip_read(s->zip, en, TEXT_MAX, out, e) : missing(s, name, e);
}

static int find_row(const struct slimming *s, const struct zip_entry *en, const struct wheel_record_row **ret,
		    struct err *e)
{
	*ret = text_find(en->name, s->rows, s->rows_count, sizeof(**ret));
	if (*ret && *(*ret)->digest && (*ret)->size == (int64_t)en->size)
		return 0;
	return err_set(e, ERR_INTEGRITY, "'%s': RECORD does not list '%s' with its digest and size", s->q->wheel,
		       en->name);
}

static int check_request(struct slimming *s, struct err *e)
{
	const struct slim_request *q = s->q;
	const char *plus;
	struct strlist words = {0};
	if (wheel_name_parse(q->wheel, s->a, &s->name, e) < 0)
		return -1;
	s->private = strncmp(wheel_normalize(s->name.dist, s->a), "nvidia_", 7) == 0;
	if (s->private && !q->nvidia) {
		err_set(e, ERR_POLICY, "'%s' is NVIDIA's: its licence limits changing it and passing it on",
			path_base(q->wheel));
		return err_hint(e, "--nvidia cuts it for use on this machine");
	}
	plus = strchr(s->name.version, '+');
	strlist_split(&words, s->a, plus ? plus + 1 : "", ".");
	for (size_t i = 0; i < words.count; i++)
		if (strncmp(words.items[i], "sm", 2) == 0 || strcmp(words.items[i], "cpu") == 0) {
			err_set(e, ERR_POLICY, "'%s' is made for '%s' already", path_base(q->wheel), plus + 1);
			return err_hint(e, "cut the wheel that it was made from");
		}
	s->dist_info = wheel_dist_info(&s->name, s->a);
	return 0;
}

/* ---- its libraries, inflated once ---- */

static bool is_library(const char *name)
{
	const char *base = path_base(name);
	return path_has_suffix(base, ".so") || strstr(base, ".so.");
}

/* Vendored in a wheel of somebody else, they may be passed on as they are. */
static bool is_nvidia(const char *name)
{
	static const char *const starts[] = {"libcublas",   "libcudart", "libcudnn",  "libcufft",
					     "libcufile",   "libcupti",  "libcurand", "libcusolver",
					     "libcusparse", "libnccl",   "libnpp",    "libnv"};
	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		if (strncmp(path_base(name), starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

static int by_size(const void *a, const void *b)
{
	const struct slim_library *x = a, *y = b;
	return (x->entry->size < y->entry->size) - (x->entry->size > y->entry->size);
}

/* The digest of the wheel, then the libraries. */
static int extract_one(struct slimming *s, size_t i, struct err *e)
{
	if (i == 0)
		return digest_file(s->q->wheel, s->sha256, e);
	struct slim_library *l = &s->libraries[i - 1];
	AUTO_FD int fd = open(l->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot create '%s'", l->path);
	if (zip_extract_fd(s->zip, l->entry, fd, NULL, e) < 0 ||
	    fatbin_file_has(l->path, l->entry->name, &l->code, &l->used, e) < 0)
		return -1;
	if (!l->used && unlink(l->path) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot remove '%s'", l->path);
	return 0;
}

/* ---- one target ---- */

static void add_row(struct making *m, const char *name, const char *digest, uint64_t size)
{
	wheel_record_line(&m->record, name, digest, (int64_t)size);
	m->result.unpacked_bytes += size;
	m->result.files++;
}

static int copy_entry(struct slimming *s, struct making *m, const struct zip_entry *en, struct err *e)
{
	const struct wheel_record_row *row;
	const char *old = arena_printf(m->a, "%s-%s.", s->name.dist, s->name.version);
	size_t n = strlen(old);
	const char *name = strncmp(en->name, old, n) == 0
				   ? arena_printf(m->a, "%s-%s.%s", m->name.dist, m->name.version, en->name + n)
				   : en->name;
	if (find_row(s, en, &row, e) < 0 || zip_copy_as(m->zip, s->zip, en, name, e) < 0)
		return -1;
	add_row(m, name, row->digest, en->size);
	return 0;
}

static int add_text(struct making *m, const char *name, const char *text, struct err *e)
{
	char digest[DIGEST_RECORD_MAX];
	digest_record("sha256", text, strlen(text), digest);
	const char *path = path_join(m->a, m->dist_info, name);
	if (zip_add_data(m->zip, path, text, strlen(text), e) < 0)
		return -1;
	add_row(m, path, digest, strlen(text));
	return 0;
}

/* Parts of one library that several targets have are known by their place in it. */
static struct zip_mark *marks_of(const struct slimming *s, const struct making *m, const struct slim_library *l,
				 const struct fatbin_file_cut *f)
{
	struct zip_mark *marks = arena_array(m->a, f->marks_count + 1, sizeof(*marks));
	const uint64_t start = (uint64_t)(l - s->libraries + 1) << 44;
	for (size_t i = 0; i < f->marks_count; i++)
		marks[i] =
			(struct zip_mark){f->marks[i].at, f->marks[i].old == UINT64_MAX ? 0 : start + f->marks[i].old};
	return marks;
}

static int add_library(struct slimming *s, struct making *m, const struct slim_library *l, struct err *e)
{
	uint8_t sha256[DIGEST_LEN];
	char encoded[sizeof("sha256=") + 43] = "sha256=";
	uint64_t size;
	const struct wheel_record_row *row;
	struct fatbin_file_cut *f = &m->files[m->files_count];
	const char *to = arena_printf(m->a, "%s/cut-%zu", s->dir, m->target - s->q->targets);
	AUTO_FD int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || fchmod(fd, l->entry->mode & S_IXUSR ? 0755 : 0644) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot create '%s'", to);
	if (find_row(s, l->entry, &row, e) < 0)
		return -1;
	pthread_mutex_lock(&s->lock); /* it maps the library: twice would be too much memory */
	int rc = fatbin_file_slim(l->path, l->entry->name, fd, to, &m->target->wanted, m->a, f, e);
	pthread_mutex_unlock(&s->lock);
	if (rc < 0)
		return -1;
	m->files_count++;
	for (size_t g = 0; g < m->target->wanted.count; g++)
		m->runs[g] += f->cut.runs[g];
	if (!f->changed)
		return copy_entry(s, m, l->entry, e);
	m->private = m->private || is_nvidia(l->entry->name);
	if (zip_add_parts(m->zip, l->entry->name, to, marks_of(s, m, l, f), f->marks_count, sha256, &size, e) < 0)
		return -1;
	digest_base64url(sha256, encoded + strlen(encoded));
	add_row(m, l->entry->name, encoded, size);
	return 0;
}

static int add_payload(struct slimming *s, struct making *m, struct err *e)
{
	for (size_t i = 0; i < zip_count(s->zip); i++) {
		const struct zip_entry *en = zip_at(s->zip, i);
		const struct slim_library *l = NULL;
		if (path_has_suffix(en->name, "/") || path_below(en->name, s->dist_info))
			continue;
		for (size_t k = 0; k < s->libraries_count && !l; k++)
			l = s->libraries[k].entry == en && s->libraries[k].used ? &s->libraries[k] : NULL;
		if (s->failed < (size_t)(m->target - s->q->targets))
			return err_set(e, ERR_INTERRUPTED, "a target before it failed"); /* which is told */
		if (run_check(s->run, e) < 0 || (l ? add_library(s, m, l, e) : copy_entry(s, m, en, e)) < 0)
			return -1;
	}
	return 0;
}

/* The label says that newer GPUs can use it. */
static int check_ptx(const struct slimming *s, const struct making *m, struct err *e)
{
	if (fatbin_keeps_ptx(m->files, m->files_count))
		return 0;
	for (size_t g = 0; g < m->target->wanted.count; g++)
		if (m->target->wanted.gpus[g].ptx) {
			err_set(e, ERR_POLICY, "'%s' has no PTX that runs on sm%u", path_base(s->q->wheel),
				m->target->wanted.gpus[g].number);
			return err_hint(e, "leave out '+ptx'");
		}
	return 0;
}

/* Something must run on each GPU. */
static int check_runs(const struct slimming *s, const struct making *m, struct err *e)
{
	struct strlist have = {0};
	for (size_t g = 0; g < m->target->wanted.count; g++) {
		if (m->runs[g])
			continue;
		for (size_t i = 0; i < m->files_count; i++)
			for (size_t k = 0; k < m->files[i].cut.kept_count + m->files[i].cut.dropped_count; k++) {
				const struct fatbin_cut *c = &m->files[i].cut;
				const struct fatbin_count *n =
					k < c->kept_count ? &c->kept[k] : &c->dropped[k - c->kept_count];
				const char *name = fatbin_name(n, m->a);
				strlist_once(&have, m->a, name);
			}
		strlist_sort(&have);
		err_set(e, ERR_POLICY, "nothing in '%s' runs on sm%u", path_base(s->q->wheel),
			m->target->wanted.gpus[g].number);
		return err_hint(e, "it has %s",
				have.count ? strlist_join(&have, m->a, ", ") : "fat binaries without code");
	}
	return 0;
}

static int add_info(struct slimming *s, struct making *m, struct err *e)
{
	static const char *const own[] = {"RECORD",    "RECORD.jws",      "RECORD.p7s", "METADATA",
					  "WHEEL",     "direct_url.json", "INSTALLER",  "REQUESTED",
					  PACK_MARKER, WHEEL_CUT_BILL,    WHEEL_PRIVATE};
	for (size_t i = 0; i < zip_count(s->zip); i++) {
		const struct zip_entry *en = zip_at(s->zip, i);
		const char *name = path_below(en->name, s->dist_info);
		if (!name || path_has_suffix(en->name, "/") || strings_contain(own, ARRAY_LEN(own), name))
			continue;
		if (copy_entry(s, m, en, e) < 0)
			return -1;
	}
	AUTO_FREE char *bill = slim_bill(s, m);
	if (add_text(m, WHEEL_CUT_BILL, bill, e) < 0 || add_text(m, "METADATA", m->metadata, e) < 0 ||
	    (m->private && add_text(m, WHEEL_PRIVATE, SLIM_PRIVATE_TEXT, e) < 0) ||
	    add_text(m, "WHEEL", m->wheel, e) < 0 ||
	    add_text(m, PACK_MARKER, pack_marker(1, s->q->generator, m->key, m->a), e) < 0)
		return -1;
	const char *record = path_join(m->a, m->dist_info, "RECORD");
	wheel_record_line(&m->record, record, "", -1);
	m->result.unpacked_bytes += m->record.len;
	m->result.files++;
	return zip_add_data(m->zip, record, m->record.data, m->record.len, e);
}

static int make(struct slimming *s, struct making *m, struct err *e)
{
	uint8_t sha256[DIGEST_LEN];
	m->runs = arena_array(m->a, m->target->wanted.count + 1, sizeof(*m->runs));
	m->files = arena_array(m->a, s->libraries_count + 1, sizeof(*m->files));
	if (slim_texts(s, m, e) < 0)
		return -1;
	(void)pack_begin(&m->name, s->q->out_dir, m->a, &m->result);
	const char *temp = path_join(m->a, s->dir, m->result.file);
	if (zip_create(temp, s->epoch, s->threads, PACK_LEVEL, &m->zip, e) < 0)
		return -1;
	if (s->chunks)
		zip_share(m->zip, s->chunks);
	int rc = add_payload(s, m, e) < 0 || check_runs(s, m, e) < 0 || check_ptx(s, m, e) < 0 || add_info(s, m, e) < 0
			 ? -1
			 : 0;
	buf_release(&m->record);
	if (rc < 0) {
		zip_abort(m->zip);
		return -1;
	}
	if (zip_finish(m->zip, sha256, e) < 0)
		return -1;
	pthread_mutex_lock(&s->lock); /* it may log */
	rc = pack_finish(temp, sha256, s->run, &m->result, e) < 0 || slim_beside(s, m, e) < 0 ? -1 : 0;
	pthread_mutex_unlock(&s->lock);
	return rc;
}

static int make_one(struct slimming *s, size_t i, struct err *e)
{
	struct arena a = {0};
	struct making m = {.target = &s->q->targets[i], .a = &a, .private = s->private};
	pthread_mutex_lock(&s->lock);
	log_status(s->run->log, "%s: %s", path_base(s->q->wheel), m.target->name);
	pthread_mutex_unlock(&s->lock);
	int rc = make(s, &m, e);
	pthread_mutex_lock(&s->lock);
	arena_join(s->a, &a);
	pthread_mutex_unlock(&s->lock);
	s->results[i].packed = m.result;
	s->results[i].files = m.files;
	s->results[i].files_count = m.files_count;
	return rc;
}

static int make_all(struct slimming *s, struct slim_result *ret, struct err *e)
{
	struct slim_result before = {0};
	struct stat st;
	if (stat(s->q->wheel, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", s->q->wheel);
	before.bytes_before = (uint64_t)st.st_size;
	for (size_t i = 0; i < zip_count(s->zip); i++)
		before.unpacked_before += zip_at(s->zip, i)->size;
	memcpy(before.sha256_before, s->sha256, sizeof(s->sha256));
	for (size_t i = 0; i < s->q->count; i++)
		ret[i] = before;
	s->results = ret;
	return work(s, s->threads < TARGETS_AT_ONCE ? s->threads : TARGETS_AT_ONCE, s->q->count, make_one, e);
}

static int open_wheel(struct slimming *s, struct err *e)
{
	const char *metadata = path_join(s->a, s->dist_info, "METADATA");
	const struct zip_entry *en = zip_find(s->zip, metadata);
	if (!en)
		return missing(s, metadata, e);
	s->epoch = zip_epoch(en);
	log_status(s->run->log, "%s: reading", path_base(s->q->wheel));
	AUTO_BUF struct buf text = {0};
	const char *name = path_join(s->a, s->dist_info, "RECORD");
	if (slim_read(s, name, &text, e) < 0 ||
	    wheel_record_parse(buf_cstr(&text), text.len, name, s->a, &s->rows, &s->rows_count, e) < 0)
		return -1;
	array_sort(s->rows, s->rows_count, sizeof(*s->rows), text_cmp);
	s->libraries = arena_array(s->a, zip_count(s->zip) + 1, sizeof(*s->libraries));
	for (size_t i = 0; i < zip_count(s->zip); i++)
		if (is_library(zip_at(s->zip, i)->name) && zip_at(s->zip, i)->size &&
		    (s->q->nvidia || !is_nvidia(zip_at(s->zip, i)->name)))
			s->libraries[s->libraries_count++].entry = zip_at(s->zip, i);
	array_sort(s->libraries, s->libraries_count, sizeof(*s->libraries), by_size);
	for (size_t i = 0; i < s->libraries_count; i++)
		s->libraries[i].path = arena_printf(s->a, "%s/%zu", s->dir, i);
	if (work(s, s->threads < THREADS_MAX ? s->threads : THREADS_MAX, s->libraries_count + 1, extract_one, e) < 0)
		return -1;
	for (size_t i = 0; i < s->libraries_count; i++)
		s->any = s->any || s->libraries[i].code;
	if (s->q->expect_sha256 && strcmp(s->q->expect_sha256, s->sha256) != 0)
		return err_set(e, ERR_INTEGRITY, "'%s' has the sha256 %s, not %s", s->q->wheel, s->sha256,
			       s->q->expect_sha256);
	return 0;
}

int slim_wheel(const struct slim_request *q, const struct run *run, struct arena *a, struct slim_result *ret,
	       bool *ret_any, struct err *e)
{
	struct slimming s = {.q = q,
			     .run = run,
			     .a = a,
			     .threads = q->threads ? q->threads : machine_processors(),
			     .lock = PTHREAD_MUTEX_INITIALIZER};
	char *dir = NULL;
	if (check_request(&s, e) < 0 || fs_sweep(q->out_dir, e) < 0 || zip_open(q->wheel, a, &s.zip, e) < 0)
		return -1;
	/* Beside the results: the temporary directory may have no room for what is unpacked. */
	AUTO_FD int held = fs_neighbour(path_join(a, q->out_dir, path_base(q->wheel)), S_IFDIR | 0700, a, &dir, e);
	if (held < 0) {
		zip_close(s.zip);
		return -1;
	}
	s.dir = dir;
	int rc = open_wheel(&s, e);
	if (rc == 0 && s.any) {
		s.chunks = q->count > 1 ? zip_chunks_new() : NULL;
		rc = make_all(&s, ret, e);
		zip_chunks_free(s.chunks);
	}
	log_status_end(run->log);
	zip_close(s.zip);
	if (fs_remove(TRUSTED, dir, rc < 0 ? ERR_IGNORED : e) < 0)
		rc = -1;
	*ret_any = s.any;
	return rc;
}
