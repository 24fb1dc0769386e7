#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "core/fatbin/fatbin_look.h"
#include "core/wheel/slim_marker.h"
#include "step/pack/pack_parts.h"

#define SLIM_PRIVATE_TEXT                                                                          \
	"Cut by ptbuild for use on one machine. NVIDIA's licence limits changing its files and "   \
	"passing them on.\n"

enum {
	TEXT_MAX = 16 << 20,
	THREADS_MAX = 16,
	TARGETS_AT_ONCE = 2, /* one is cut while the other is packed */
};

struct slim_library {
	const struct zip_entry *entry;
	const char *path; /* inflated */
	struct fatbin_look look;
};

struct slimming {
	const struct slim_request *q;
	const struct run *run;
	struct arena *a;
	unsigned threads;
	struct zip_reader *zip;
	struct zip_chunks *chunks; /* what the wheels of several targets share; NULL */
	struct wheel_name name;
	const char *dist_info;
	const char *toolkit;           /* "cu132"; "": not known */
	struct wheel_record_row *rows; /* by path */
	size_t rows_count;
	struct slim_library *libraries; /* the largest first */
	size_t libraries_count;
	bool any, private;
	bool same;       /* it is slimmed for these GPUs already */
	const char *dir; /* for what is inflated */
	char sha256[DIGEST_HEX_LEN + 1];
	uint64_t epoch;
	struct slim_result *results;
	pthread_mutex_t lock;  /* of what threads share: arena and cutting */
	_Atomic size_t failed; /* the first target that did; SIZE_MAX: none */
};

struct making { /* the wheel of a target */
	const struct slim_target *target;
	struct arena *a;
	struct wheel_name name;
	const char *dist_info, *metadata, *wheel, *key;
	struct pack_out out;
	struct fatbin_file_cut *files;
	size_t files_count;
	bool private; /* something of NVIDIA's is cut in it */
};

#define SLIM_ID "slim 3" /* changes when the same wheel would be cut to other bytes */

/* "cu128" of "12.8". */
static char *toolkit_label(const char *version, struct arena *a)
{
	struct strlist digits = {0};

	strlist_split(&digits, a, version, ".");
	if (digits.count > 2) /* 12.8.90 */
		digits.count = 2;
	return arena_printf(a, "cu%s", strlist_join(&digits, a, ""));
}

/* What a package says of its CUDA: version.py of torch ("cuda: Optional[str] = '12.8'"), of
 * its companions ("__version__ = '0.24.1+cu128'"), or a requirement. "" if nothing does. */
static int find_toolkit(const struct slimming *s, const char **ret, struct err *e)
{
	static const char mark[] = "\ncuda";
	struct arena *a = s->a;
	struct wheel_headers metadata;
	AUTO_BUF struct buf text = {0};
	const struct zip_entry *en =
		zip_find(s->zip, arena_printf(a, "%s/version.py", s->name.dist));

	*ret = s->q->cuda ? toolkit_label(s->q->cuda, a) : "";
	if (wheel_zip_headers(s->zip, s->dist_info, "METADATA", a, &metadata, e) < 0 ||
	    (!**ret && en && zip_read(s->zip, en, TEXT_MAX, &text, e) < 0))
		return -1;
	for (const char *at = buf_cstr(&text); !**ret && (at = strstr(at, mark)); at++) {
		const char *number =
			at + strlen(mark) + strspn(at + strlen(mark), ": =Optional[str]'\"");
		if (isdigit((unsigned char)*number))
			*ret = toolkit_label(
				arena_strndup(a, number, strspn(number, "0123456789.")), a);
	}

	const char *label = strstr(buf_cstr(&text), "+cu");
	if (!**ret && label && isdigit((unsigned char)label[3]))
		*ret = arena_strndup(a, label + 1, 2 + strspn(label + 3, "0123456789"));
	const char *machine = official_machine(s->name.platform) == 1 ? "aarch64" : "x86_64";
	const char *cuda = **ret ? "-" : official_cuda(&metadata, machine, a);
	if (strcmp(cuda, "-") != 0)
		*ret = toolkit_label(cuda, a);
	return 0;
}

static json_t *counts(const struct fatbin_count *items, size_t count, struct arena *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "code",
						      fatbin_name(&items[i], a), "images",
						      (json_int_t)items[i].entries, "bytes",
						      (json_int_t)items[i].bytes));
	return list;
}

/* "3 of 9 fat binaries have nothing for sm75"; NULL: each has code for every GPU. */
static const char *lacking(const struct fatbin_cut *c, const struct fatbin_wanted *w,
			   struct arena *a)
{
	struct strlist words = {0};

	for (size_t g = 0; g < w->count; g++)
		if (c->runs[g] < c->filled && !c->unread)
			strlist_addf(&words, a, "%zu of %zu fat binaries have nothing for sm%u",
				     c->filled - c->runs[g], c->filled, w->gpus[g].number);
	return words.count ? strlist_join(&words, a, ", ") : NULL;
}

json_t *slim_file_json(const struct fatbin_file_cut *f, const struct fatbin_wanted *w,
		       struct arena *a)
{
	const struct fatbin_cut *c = &f->cut;

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "file", f->name,
			 "bytes_before", (json_int_t)f->before, "bytes", (json_int_t)f->after,
			 "blank", (json_int_t)f->blank, "fat_binaries", (json_int_t)c->containers,
			 "kept", counts(c->kept, c->kept_count, a), "dropped",
			 counts(c->dropped, c->dropped_count, a), "targets_told",
			 json_or_null(c->archs), "left", json_or_null(c->left), "lacking",
			 json_or_null(lacking(c, w, a)));
}

static json_t *components(const struct slimming *s, const struct making *m)
{
	json_t *cut = json_array();

	for (size_t i = 0; i < m->files_count; i++) {
		AUTO_JSON json_t *told = slim_file_json(&m->files[i], &m->target->wanted, m->a);
		AUTO_FREE char *text = json_dumps(told, JSON_COMPACT);
		json_array_append_new(
			cut, json_pack("{s:s, s:s}", "name", "ptbuild:cut", "value", text));
	}

	return json_pack("[{s:s, s:s, s:s, s:s, s:[{s:s, s:s}], s:o}]", "type", "library", "name",
			 s->name.dist, "version", s->name.version, "description",
			 path_base(s->q->wheel), "hashes", "alg", "SHA-256", "content", s->sha256,
			 "properties", cut);
}

/* Provenance and revision beside the wheel. */
static int slim_beside(const struct slimming *s, const struct making *m, struct err *e)
{
	AUTO_JSON json_t *record =
		json_pack("{s:s, s:s, s:s, s:s, s:i, s:{s:s, s:b}, s:{s:[{s:s, s:s}]}}", "wheel",
			  m->out.result.file, "sha256", m->out.result.sha256, "generator",
			  s->q->generator, "output_key", m->key, "metadata_rev", 1, "slim", "gpu",
			  m->target->name, "private", m->private, "inputs", "sources", "name",
			  path_base(s->q->wheel), "sha256", s->sha256);
	const char *rev = arena_printf(m->a, "%s.metadata-rev", m->out.result.path);

	return fs_write(TRUSTED, rev, "1\n", 2, 0644, e) < 0
		       ? -1
		       : provenance_write(record, m->out.result.path, NULL, m->a, e);
}

/* ---- what is in the wheel ---- */

static int find_row(const struct slimming *s, const struct zip_entry *en,
		    const struct wheel_record_row **ret, struct err *e)
{
	*ret = text_find(en->name, s->rows, s->rows_count, sizeof(**ret));
	if (*ret && *(*ret)->digest && (*ret)->size == (int64_t)en->size)
		return 0;
	return err_set(e, ERR_INTEGRITY, "'%s': RECORD does not list '%s' with its digest and size",
		       s->q->wheel, en->name);
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
		err_set(e, ERR_POLICY,
			"'%s' is NVIDIA's: its licence limits changing it and passing it on",
			path_base(q->wheel));
		return err_hint(e, "--nvidia cuts it for use on this machine");
	}

	plus = strchr(s->name.version, '+');
	strlist_split(&words, s->a, plus ? plus + 1 : "", ".");
	if (strlist_contains(&words, "cpu")) {
		err_set(e, ERR_POLICY, "'%s' has no GPU code: its label is '%s'",
			path_base(q->wheel), plus + 1);
		return err_hint(e, "use the wheel for CUDA");
	}

	s->dist_info = wheel_dist_info(&s->name, s->a);
	return 0;
}

static int marked(struct slimming *s, struct slim_marker *ret, bool *ret_any, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const char *path = path_join(s->a, s->dist_info, SLIM_MARKER),
		   *plus = strchr(s->name.version, '+');

	*ret_any = false;
	if (!zip_find(s->zip, path)) /* older ptbuilds left no marker */
		*ret_any = slim_marker_of_label(plus ? plus + 1 : "", s->a, ret);
	else if (wheel_zip_text(s->zip, path, TEXT_MAX, &text, e) < 0 ||
		 slim_marker_parse(&(struct file_bytes){buf_cstr(&text), text.len, path}, s->a, ret,
				   e) < 0)
		return -1;
	else
		*ret_any = true;
	return 0;
}

static void mark(const struct slimming *s, const struct slim_target *t, struct slim_marker *ret,
		 struct arena *a)
{
	const char *space = strrchr(s->q->generator, ' ');

	*ret = (struct slim_marker){.release = s->name.version,
				    .ptbuild = space ? space + 1 : s->q->generator};
	for (size_t g = 0; g < t->wanted.count; g++)
		slim_marker_gpu(ret, t->wanted.gpus[g].number, t->wanted.gpus[g].ptx, a);
}

/* What was removed cannot come back: the same GPUs again are nothing to do, others are refused. */
static int check_marker(struct slimming *s, struct err *e)
{
	struct slim_marker had, wanted;
	bool any;

	if (marked(s, &had, &any, e) < 0)
		return -1;
	if (any && !had.gpus.count) {
		err_set(e, ERR_POLICY, "'%s' has no GPU code, by its %s", path_base(s->q->wheel),
			SLIM_MARKER);
		return err_hint(e, "it needs no slimming: use it as it is");
	}

	for (size_t i = 0; any && i < s->q->count; i++) {
		mark(s, &s->q->targets[i], &wanted, s->a);
		if (slim_marker_same(&had, &wanted))
			continue;
		err_set(e, ERR_POLICY, "'%s' has code for %s only", path_base(s->q->wheel),
			slim_marker_names(&had, s->a));
		return err_hint(e, "slim the wheel that it was made from");
	}

	s->same = any;
	return 0;
}

/* ---- its libraries, inflated once ---- */

/* Vendored in a wheel of somebody else, they may be passed on as they are. */
static bool is_nvidia(const char *name)
{
	static const char *const starts[] = {"libcublas*", "libcudart*",   "libcudnn*",
					     "libcufft*",  "libcufile*",   "libcupti*",
					     "libcurand*", "libcusolver*", "libcusparse*",
					     "libnccl*",   "libnpp*",      "libnv*"};

	return strings_match(starts, ARRAY_LEN(starts), path_base(name));
}

static int by_size(const void *a, const void *b)
{
	const struct slim_library *x = a, *y = b;
	return (x->entry->size < y->entry->size) - (x->entry->size > y->entry->size);
}

/* The digest of the wheel, then the libraries. */
static int extract_one(unsigned thread, size_t i, void *user, struct err *e)
{
	struct slimming *s = user;

	(void)thread;
	if (i == 0)
		return digest_file(s->q->wheel, s->sha256, e);
	struct slim_library *l = &s->libraries[i - 1];
	struct arena a = {0};
	AUTO_MAPPING struct fs_mapping file = {0};
	AUTO_FD int fd = open(l->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot create '%s'", l->path);
	if (zip_extract_fd(s->zip, l->entry, fd, NULL, e) < 0)
		return e->kind == ERR_SYSTEM ? err_wrap(e, "'%s'", l->path) : -1;
	if (fs_map_fd(fd, l->path, &file, e) < 0 || fs_close(&fd, l->path, e) < 0)
		return -1;
	int rc = fatbin_look_data(&(struct file_bytes){file.data, file.size, l->entry->name}, &a,
				  &l->look, e);
	pthread_mutex_lock(&s->lock);
	arena_join(s->a, &a);
	pthread_mutex_unlock(&s->lock);
	if (rc < 0)
		return -1;
	if (!l->look.used && unlink(l->path) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot remove '%s'", l->path);
	return 0;
}

/* ---- one target ---- */

static int copy_entry(struct slimming *s, struct making *m, const struct zip_entry *en,
		      struct err *e)
{
	const struct wheel_record_row *row;
	const char *old = arena_printf(m->a, "%s-%s.", s->name.dist, s->name.version);
	size_t n = strlen(old);
	const char *name = strncmp(en->name, old, n) == 0
				   ? arena_printf(m->a, "%s-%s.%s", m->name.dist, m->name.version,
						  en->name + n)
				   : en->name;

	if (find_row(s, en, &row, e) < 0 || zip_copy_as(m->out.zip, s->zip, en, name, e) < 0)
		return -1;
	pack_row(&m->out, name, row->digest, en->size);
	return 0;
}

static int add_text(struct making *m, const char *name, const char *text, struct err *e)
{
	return pack_text(&m->out, path_join(m->a, m->dist_info, name), text, e);
}

/* Parts of one library that several targets have are known by their place in it. */
static struct zip_mark *marks_of(const struct slimming *s, const struct making *m,
				 const struct slim_library *l, const struct fatbin_file_cut *f)
{
	struct zip_mark *marks = arena_array(m->a, f->marks_count + 1, sizeof(*marks));
	const uint64_t start = (uint64_t)(l - s->libraries + 1) << 44;

	for (size_t i = 0; i < f->marks_count; i++)
		marks[i] = (struct zip_mark){f->marks[i].at, f->marks[i].old == UINT64_MAX
								     ? 0
								     : start + f->marks[i].old};
	return marks;
}

/* It maps the library: twice would be too much memory. */
static int cut_library(struct slimming *s, struct making *m, const struct slim_library *l, int fd,
		       struct fatbin_file_cut *ret, struct err *e)
{
	AUTO_MAPPING struct fs_mapping file = {0};

	pthread_mutex_lock(&s->lock);
	int rc = fs_map(l->path, &file, e);
	if (rc == 0)
		rc = fatbin_file_slim(&file, l->entry->name, fd, &m->target->wanted, m->a, ret, e);
	fs_unmap(&file);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

static int add_library(struct slimming *s, struct making *m, const struct slim_library *l,
		       struct err *e)
{
	const struct wheel_record_row *row;
	struct fatbin_file_cut *f = &m->files[m->files_count];
	const char *to = arena_printf(m->a, "%s/cut-%zu", s->dir, m->target - s->q->targets);
	AUTO_FD int fd = open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || fchmod(fd, l->entry->mode & S_IXUSR ? 0755 : 0644) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot create '%s'", to);
	if (find_row(s, l->entry, &row, e) < 0)
		return -1;
	if (cut_library(s, m, l, fd, f, e) < 0)
		return fs_disk_place(to, e);
	m->files_count++;
	if (!f->changed)
		return copy_entry(s, m, l->entry, e);
	m->private = m->private || is_nvidia(l->entry->name);
	return pack_file(&m->out, l->entry->name, to, marks_of(s, m, l, f), f->marks_count, e);
}

static int add_payload(struct slimming *s, struct making *m, struct err *e)
{
	for (size_t i = 0; i < zip_count(s->zip); i++) {
		const struct zip_entry *en = zip_at(s->zip, i);
		const struct slim_library *l = NULL;
		if (path_has_suffix(en->name, "/") || path_below(en->name, s->dist_info))
			continue;
		for (size_t k = 0; k < s->libraries_count && !l; k++)
			l = s->libraries[k].entry == en && s->libraries[k].look.used
				    ? &s->libraries[k]
				    : NULL;
		if (s->failed < (size_t)(m->target - s->q->targets))
			/* already reported */
			return err_set(e, ERR_INTERRUPTED, "a target before it failed");
		if (run_check(s->run, e) < 0 ||
		    (l ? add_library(s, m, l, e) : copy_entry(s, m, en, e)) < 0)
			return -1;
	}

	return 0;
}

static int add_info(struct slimming *s, struct making *m, struct err *e)
{
	static const char *const own[] = {"RECORD",       "RECORD.jws",  "RECORD.p7s",
					  "METADATA",     "WHEEL",       "direct_url.json",
					  "INSTALLER",    "REQUESTED",   PACK_MARKER,
					  WHEEL_CUT_BILL, WHEEL_PRIVATE, SLIM_MARKER};

	for (size_t i = 0; i < zip_count(s->zip); i++) {
		const struct zip_entry *en = zip_at(s->zip, i);
		const char *name = path_below(en->name, s->dist_info);
		if (!name || path_has_suffix(en->name, "/") ||
		    strings_contain(own, ARRAY_LEN(own), name))
			continue;
		if (copy_entry(s, m, en, e) < 0)
			return -1;
	}

	/* CycloneDX; the caller frees it. */
	AUTO_JSON json_t *doc = json_pack(
		"{s:s, s:s, s:i, s:{s:s, s:{s:[{s:s, s:s}]}, s:{s:s, s:s, s:s}}, s:o}", "bomFormat",
		"CycloneDX", "specVersion", "1.6", "version", 1, "metadata", "timestamp",
		size_utc((int64_t)s->epoch, m->a), "tools", "components", "type", "application",
		"name", s->q->generator, "component", "type", "library", "name", s->name.dist,
		"version", m->name.version, "components", components(s, m));
	AUTO_FREE char *bill = json_dumps(doc, JSON_INDENT(1));
	struct slim_marker marker;
	mark(s, m->target, &marker, m->a);
	if (!bill)
		abort();
	if (add_text(m, WHEEL_CUT_BILL, bill, e) < 0 || add_text(m, "METADATA", m->metadata, e) < 0)
		return -1;
	if (m->private && add_text(m, WHEEL_PRIVATE, SLIM_PRIVATE_TEXT, e) < 0)
		return -1;
	if (add_text(m, "WHEEL", m->wheel, e) < 0)
		return -1;
	if (add_text(m, SLIM_MARKER, slim_marker_text(&marker, m->a), e) < 0)
		return -1;
	const char *made = pack_marker(1, s->q->generator, m->key, m->a);
	return add_text(m, PACK_MARKER, made, e) < 0 ? -1 : 0;
}

static uint64_t unpacked_size(const struct slimming *s)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < zip_count(s->zip); i++)
		bytes += zip_at(s->zip, i)->size;
	return bytes;
}

/* What make() would find, without a wheel. */
static int measure(struct slimming *s, struct making *m, struct err *e)
{
	const struct pack_result size = {.unpacked_bytes = unpacked_size(s)};

	m->out.result = size;
	for (size_t i = 0; i < s->libraries_count; i++) {
		const struct slim_library *l = &s->libraries[i];
		struct fatbin_file_cut *f = &m->files[m->files_count];
		if (!l->look.used)
			continue;
		if (run_check(s->run, e) < 0 || cut_library(s, m, l, -1, f, e) < 0)
			return -1;
		m->files_count++;
		m->out.result.unpacked_bytes -= f->before - f->after;
	}

	return 0;
}

static int make(struct slimming *s, struct making *m, struct err *e)
{
	/* Name, METADATA, WHEEL and input key. */
	struct wheel_headers metadata, wheel;
	const char *plus = strchr(s->name.version, '+');

	if (wheel_zip_headers(s->zip, s->dist_info, "METADATA", m->a, &metadata, e) < 0 ||
	    wheel_zip_headers(s->zip, s->dist_info, "WHEEL", m->a, &wheel, e) < 0)
		return -1;
	const char *toolkit = plus ? label_without_torch(plus + 1, m->a) : s->toolkit;
	const char *label =
		arena_printf(m->a, "%s%s%s", toolkit, *toolkit ? "." : "", m->target->label);
	m->name = s->name;
	/* its word stays the last one */
	const char *torch = plus ? plus + 1 + strlen(toolkit) : "";
	m->name.version = arena_printf(m->a, "%.*s+%s%s", (int)strcspn(s->name.version, "+"),
				       s->name.version, label, torch);
	m->dist_info = wheel_dist_info(&m->name, m->a);
	wheel_headers_set(&metadata, m->a, "Version", m->name.version);
	wheel_headers_set(&wheel, m->a, "Generator", s->q->generator);
	pack_set_build(&wheel, m->a, m->name.build);
	m->metadata = wheel_headers_text(&metadata, m->a);
	m->wheel = wheel_headers_text(&wheel, m->a);
	/* What is in the wheel, not how libdeflate packs it:
	 * unlike a built wheel it is in no store by this key. */
	char key[DIGEST_HEX_LEN + 1];
	const char *text =
		arena_printf(m->a, SLIM_ID "\n%s\n%s\n%d\n", s->sha256, label, s->q->nvidia);
	digest_data(text, strlen(text), key);
	m->key = arena_strdup(m->a, key);
	if (pack_open(&m->out, &m->name, s->q->out_dir, s->dir, s->epoch, s->threads, PACK_LEVEL,
		      e) < 0)
		return -1;
	if (s->chunks)
		zip_share(m->out.zip, s->chunks);
	int rc = add_payload(s, m, e) < 0 || add_info(s, m, e) < 0 ? -1 : 0;
	return pack_close(&m->out, rc, m->dist_info, NULL, e) < 0 ||
			       pack_finish(&m->out, s->run, e) < 0
		       ? -1
		       : slim_beside(s, m, e);
}

static int make_one(unsigned thread, size_t i, void *user, struct err *e)
{
	struct slimming *s = user;
	struct arena a = {0};

	(void)thread;
	struct making m = {
		.target = &s->q->targets[i], .a = &a, .private = s->private, .out.a = &a};
	log_status(s->run->log, "%s: %s", path_base(s->q->wheel), m.target->name);
	m.files = arena_array(&a, s->libraries_count + 1, sizeof(*m.files));
	int rc = s->q->dry_run ? measure(s, &m, e) : make(s, &m, e);
	pthread_mutex_lock(&s->lock);
	arena_join(s->a, &a);
	if (rc < 0 && i < s->failed)
		s->failed = i;
	pthread_mutex_unlock(&s->lock);
	s->results[i].packed = m.out.result;
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
	before.unpacked_before = unpacked_size(s);
	memcpy(before.sha256_before, s->sha256, sizeof(s->sha256));
	for (size_t i = 0; i < s->q->count; i++)
		ret[i] = before;
	s->results = ret;
	return thread_items(s->threads < TARGETS_AT_ONCE ? s->threads : TARGETS_AT_ONCE,
			    s->q->count, NULL, s->run, make_one, s, e);
}

/* Every label is a promise: all are judged before the first wheel is written. */
static int judge(struct slimming *s, struct err *e)
{
	struct fatbin_look *looks = arena_array(s->a, s->libraries_count + 1, sizeof(*looks));
	struct promise built;

	promise_of_label(s->q->tables, s->toolkit, s->a, &built);
	for (size_t i = 0; i < s->libraries_count; i++)
		looks[i] = s->libraries[i].look;
	for (size_t i = 0; i < s->q->count; i++) {
		const struct fatbin_judging j = {
			.what = path_base(s->q->wheel),
			.torch = fatbin_is_torch(wheel_normalize(s->name.dist, s->a)),
			.whole = true,
			.ptx = true,
			.looks = looks,
			.count = s->libraries_count,
			.wanted = &s->q->targets[i].wanted,
			.cuda = built.cuda,
			.tables = s->q->tables};
		if (fatbin_judge(&j, s->a, e) < 0)
			return -1;
		const char *bare = fatbin_bare(&j, s->a);
		if (*bare)
			log_warn(s->run->log, "'%s' has libraries without code for %s: %s", j.what,
				 s->q->targets[i].name, bare);
	}

	return 0;
}

static int open_wheel(struct slimming *s, struct err *e)
{
	static const char *const needed[] = {"METADATA", "WHEEL", "RECORD"};

	for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
		const char *path = path_join(s->a, s->dist_info, needed[i]);
		if (!zip_find(s->zip, path))
			return err_set(e, ERR_INTEGRITY,
				       "'%s' is not a whole wheel: it has no '%s'", s->q->wheel,
				       path);
	}

	s->epoch = zip_epoch(zip_find(s->zip, path_join(s->a, s->dist_info, "METADATA")));
	if (check_marker(s, e) < 0)
		return -1;
	if (s->same)
		return 0;
	log_status(s->run->log, "%s: reading", path_base(s->q->wheel));
	if (find_toolkit(s, &s->toolkit, e) < 0 ||
	    wheel_zip_record(s->zip, s->dist_info, s->a, &s->rows, &s->rows_count, e) < 0)
		return -1;
	array_sort(s->rows, s->rows_count, sizeof(*s->rows), text_cmp);
	s->libraries = arena_array(s->a, zip_count(s->zip) + 1, sizeof(*s->libraries));
	for (size_t i = 0; i < zip_count(s->zip); i++)
		if (fatbin_library_name(zip_at(s->zip, i)->name) && zip_at(s->zip, i)->size &&
		    (s->q->nvidia || !is_nvidia(zip_at(s->zip, i)->name)))
			s->libraries[s->libraries_count++].entry = zip_at(s->zip, i);
	array_sort(s->libraries, s->libraries_count, sizeof(*s->libraries), by_size);
	for (size_t i = 0; i < s->libraries_count; i++)
		s->libraries[i].path = arena_printf(s->a, "%s/%zu", s->dir, i);
	if (thread_items(s->threads < THREADS_MAX ? s->threads : THREADS_MAX,
			 s->libraries_count + 1, NULL, s->run, extract_one, s, e) < 0)
		return -1;
	for (size_t i = 0; i < s->libraries_count; i++)
		s->any = s->any || s->libraries[i].look.code;
	if (s->q->expect_sha256 && strcmp(s->q->expect_sha256, s->sha256) != 0)
		return err_set(e, ERR_INTEGRITY, "'%s' has the sha256 %s, not %s", s->q->wheel,
			       s->sha256, s->q->expect_sha256);
	return s->any ? judge(s, e) : 0;
}

int slim_wheel(const struct slim_request *q, struct arena *a, struct slim_result *ret,
	       bool *ret_any, struct err *e)
{
	struct slimming s = {.q = q,
			     .run = q->run,
			     .a = a,
			     .threads = q->threads ? q->threads : machine_processors(),
			     .lock = PTHREAD_MUTEX_INITIALIZER,
			     .failed = SIZE_MAX};
	char *dir = NULL;

	if (check_request(&s, e) < 0 || fs_sweep(TRUSTED, q->out_dir, e) < 0 ||
	    zip_open(q->wheel, a, &s.zip, e) < 0)
		return -1;
	/* Beside the results: the temporary directory may have no room for what is unpacked. */
	AUTO_FD int held = fs_neighbour(path_join(a, q->out_dir, path_base(q->wheel)),
					S_IFDIR | 0700, a, &dir, e);
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

	log_status_end(q->run->log);
	zip_close(s.zip);
	if (fs_remove(TRUSTED, dir, rc < 0 ? ERR_IGNORED : e) < 0)
		rc = -1;
	for (size_t i = 0; i < q->count && s.same; i++)
		ret[i] = (struct slim_result){.same = true};
	*ret_any = s.any || s.same;
	return rc;
}
