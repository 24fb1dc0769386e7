#include "step/slim/slim_parts.h"

#include <sys/file.h>

#include "base/sys/digest.h"
#include "core/fatbin/fatbin_look.h"
#include "core/tables/gpu_runs.h"
#include "core/tables/tables.h"
#include "core/wheel/wheel.h"
#include "step/slim/slim_env_marker.h"

enum { RECORD_MAX = 256 << 20, MARKER_MAX = 64 << 10, METADATA_MAX = 4 << 20 };

struct env {
	const struct slim_env_request *q;
	const struct run *run;
	struct arena *a;
	struct fs_place top;
	enum fs_links links;
	struct fs_place **places;
	size_t places_count, places_cap;
	struct slim_package *packages;
	size_t count, cap;
	const char *unknown; /* the first without a list of its files that can be read */
	size_t unknown_count;
	size_t with_code;        /* packages */
	struct slim_saved saved; /* by what goes besides GPU code */
};

/* ---- where packages are ---- */

static bool has_packages(const struct fs_place *p, struct arena *a)
{
	struct strlist names = {0};

	if (fs_place_list(p, "", a, &names, ERR_IGNORED) < 0)
		return false;
	for (size_t i = 0; i < names.count; i++)
		if (path_has_suffix(names.items[i], ".dist-info"))
			return true;
	return false;
}

static bool is_known(const struct env *v, const struct stat *st)
{
	struct stat have;

	for (size_t i = 0; i < v->places_count; i++)
		if (fstat(v->places[i]->fd, &have) == 0 && have.st_dev == st->st_dev &&
		    have.st_ino == st->st_ino)
			return true;
	return false;
}

/* Each place once, whatever links lead to it: lib64 of a virtual environment is one. */
static int add_place(struct env *v, const char *rel, struct err *e)
{
	struct fs_place p = {.fd = -1};
	struct stat st;
	bool found = false;

	if (fs_place_below(&v->top, rel, v->links, v->a, &p, &found, e) < 0)
		return -1;
	if (!found)
		return 0;
	if (!has_packages(&p, v->a) || fstat(p.fd, &st) < 0 || is_known(v, &st)) {
		fs_place_close(&p);
		return 0;
	}

	v->places = arena_room(v->a, v->places, v->places_count, &v->places_cap, 8,
			       sizeof(struct fs_place *));
	v->places[v->places_count] = arena_array(v->a, 1, sizeof(p));
	*v->places[v->places_count++] = p;
	return 0;
}

static int add_library_dir(struct env *v, const char *lib, struct err *e)
{
	struct fs_place dir = {.fd = -1};
	struct strlist names = {0};
	bool found = false;

	if (fs_place_below(&v->top, lib, v->links, v->a, &dir, &found, e) < 0)
		return -1;
	if (!found)
		return 0;
	int rc = fs_place_list(&dir, "", v->a, &names, e);
	fs_place_close(&dir);
	for (size_t k = 0; k < names.count && rc == 0; k++) {
		if (strncmp(names.items[k], "python3", strlen("python3")) != 0)
			continue;
		const char *python = path_join(v->a, lib, names.items[k]);
		if (add_place(v, path_join(v->a, python, "site-packages"), e) < 0 ||
		    add_place(v, path_join(v->a, python, "dist-packages"), e) < 0)
			rc = -1;
	}

	return rc;
}

static int find_places(struct env *v, struct err *e)
{
	static const char *const libs[] = {"lib",          "lib64",         "usr/lib",
					   "usr/lib64",    "usr/local/lib", "usr/local/lib64",
					   "opt/venv/lib", "opt/conda/lib"};

	if (!fs_is_dir(TRUSTED, v->q->dir))
		return err_set(e, ERR_USAGE, "not a directory: '%s'", v->q->dir);
	if (fs_place_open(v->q->dir, v->a, &v->top, e) < 0)
		return -1;
	/* Links of an image are relative to its root, those of an environment to this machine. */
	const bool own = fs_place_has(&v->top, "pyvenv.cfg") || fs_place_has(&v->top, "conda-meta");
	v->links = own || has_packages(&v->top, v->a) ? FS_LINKS_WITHIN : FS_LINKS_ROOT;
	if (add_place(v, "", e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(libs); i++)
		if (add_library_dir(v, libs[i], e) < 0)
			return -1;
	if (v->places_count)
		return 0;
	err_set(e, ERR_USAGE, "no installed packages in '%s'", v->q->dir);
	return err_hint(
		e,
		"name a virtual environment, the root of an image, or a site-packages directory");
}

/* ---- what is in them ---- */

/* Nothing was read of it: neither a library nor a
 * program, or another package's affair, as a link is. */
static bool is_other(const struct slim_package *p, const char *path)
{
	struct stat st;
	const bool library = fatbin_library_name(path);

	if (!path_is_safe_relative(path))
		return true;
	if (fs_place_stat(p->place, path, &st) < 0)
		return !library || errno != ELOOP;
	return !S_ISREG(st.st_mode) || st.st_size == 0 || (!library && !(st.st_mode & 0111));
}

/* A library by its row: a regular file in the place. What a linked directory
 * leads to may lie outside of the environment, in a cache that others use. */
static int look_at(struct env *v, struct slim_package *p, size_t i, struct err *e)
{
	AUTO_MAPPING struct fs_mapping file = {0};
	const struct wheel_record_row *row = &p->rows[i];
	struct fatbin_file_cut *f = &p->files[p->count];
	struct stat st;

	if (is_other(p, row->path))
		return 0;
	if (fs_place_map(p->place, row->path, &file, &st, e) < 0)
		return -1;
	slim_parts_sections(v->q, p, i, &file);
	if (!fatbin_library_name(row->path))
		return 0;
	struct fatbin_look *look = &p->looks[p->count];
	if (fatbin_look_data(&(struct file_bytes){file.data, file.size, row->path}, v->a, look, e) <
	    0)
		return -1;
	if (!look->used)
		return 0;
	if (fatbin_file_slim(&file, row->path, -1, v->q->wanted, v->a, f, e) < 0)
		return -1;
	p->count++;
	p->parts[i].cut = f;
	p->before += f->before;
	p->after += f->after;
	p->blank += f->blank;
	return 0;
}

static bool is_torch(const struct slim_package *p)
{
	return strncmp(p->info, "torch-", strlen("torch-")) == 0;
}

/* The toolkit that its METADATA requires; NULL: none is known. */
static const char *toolkit(const struct env *v, const struct slim_package *p)
{
	AUTO_BUF struct buf text = {0};
	struct wheel_headers h;
	const char *path = path_join(v->a, p->info, "METADATA");

	if (fs_place_read(p->place, path, METADATA_MAX, &text, ERR_IGNORED) < 0 ||
	    wheel_headers_parse(&(struct file_bytes){buf_cstr(&text), text.len, path}, v->a, &h,
				ERR_IGNORED) < 0)
		return NULL;
	const char *cuda = official_cuda(&h, NULL, v->a);
	return strcmp(cuda, "-") == 0 ? NULL : cuda;
}

/* Whether it can be slimmed. Packages of others may have fewer kernels, and PTX of torch's
 * alone is asked for. A marker says that an earlier run judged it for these GPUs; a kill may
 * have left its list of targets without the others. */
static void judge(struct env *v, struct slim_package *p)
{
	const bool judged = fs_place_has(p->place, path_join(v->a, p->info, SLIM_MARKER));
	const struct fatbin_judging j = {.torch = is_torch(p),
					 .whole = is_torch(p) && !judged,
					 .ptx = is_torch(p),
					 .looks = p->looks,
					 .count = p->count,
					 .wanted = v->q->wanted,
					 .cuda = toolkit(v, p),
					 .tables = v->q->tables};
	struct err why = {0};

	if (p->left)
		return;
	if (fatbin_judge(&j, v->a, &why) < 0)
		p->left = arena_strdup(v->a, why.msg);
}

static int read_package(struct env *v, const struct fs_place *place, const char *info,
			struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct slim_package p = {.info = info, .place = place};
	struct err why = {0};
	const char *record = path_join(v->a, info, "RECORD");
	const bool listed = fs_place_has(place, record);

	if (!listed || fs_place_read(place, record, RECORD_MAX, &text, &why) < 0 ||
	    wheel_record_parse(buf_cstr(&text), text.len, record, v->a, &p.rows, &p.rows_count,
			       &why) < 0) {
		if (listed) /* what a distribution installed has none */
			log_warn(v->run->log, "%s stays as it is: %s", info, why.msg);
		v->unknown = v->unknown_count++ ? v->unknown : info;
		return 0;
	}

	struct wheel_record_row *rows = arena_array(v->a, p.rows_count + 1, sizeof(*rows));
	if (p.rows_count)
		memcpy(rows, p.rows, p.rows_count * sizeof(*rows));
	p.rows = rows;
	p.parts = arena_array(v->a, p.rows_count + 1, sizeof(*p.parts));
	p.files = arena_array(v->a, p.rows_count + 1, sizeof(*p.files));
	p.looks = arena_array(v->a, p.rows_count + 1, sizeof(*p.looks));
	for (size_t i = 0; i < p.rows_count && !p.left; i++) {
		if (run_check(v->run, e) < 0)
			return -1;
		if (v->run->log->tty)
			log_status(v->run->log, "reading %s", p.rows[i].path);
		if (!slim_parts_goes(v->q, &p, i) && look_at(v, &p, i, &why) < 0)
			p.left = arena_strdup(v->a, why.msg);
	}

	judge(v, &p);
	slim_parts_same(v->q, &p, v->a);
	if (!p.left)
		slim_parts_count(v->q, &p, &v->saved, v->a);
	v->with_code += p.count || p.left;
	if (!p.count && !p.left && !p.changes)
		return 0;
	v->packages = arena_room(v->a, v->packages, v->count, &v->cap, 16, sizeof(*v->packages));
	v->packages[v->count++] = p;
	return 0;
}

/* What the tables say of a wanted GPU that the package's toolkit has under another number. */
static const char *renamed_note(const struct env *v, const struct slim_package *p)
{
	const char *cuda = toolkit(v, p);

	for (size_t g = 0; g < v->q->wanted->count; g++) {
		const unsigned gpu = v->q->wanted->gpus[g].number;
		const struct gpu_row *row = gpu_renamed(v->q->tables, gpu, cuda);
		if (row)
			return row->note;
	}

	return NULL;
}

static int read_packages(struct env *v, struct err *e)
{
	if (slim_env_check(v->places, v->places_count, v->q->wanted, v->a, e) < 0)
		return -1;
	for (size_t i = 0; i < v->places_count; i++) {
		struct strlist names = {0};
		if (fs_place_list(v->places[i], "", v->a, &names, e) < 0)
			return -1;
		for (size_t k = 0; k < names.count; k++) {
			if (path_has_suffix(names.items[k], ".dist-info") &&
			    read_package(v, v->places[i], names.items[k], e) < 0)
				return -1;
		}
	}

	size_t left = 0;
	if (!v->with_code) {
		err_set(e, ERR_POLICY, "no package in '%s' has GPU code", v->q->dir);
		return v->unknown ? err_hint(e,
					     "what %zu of its packages hold is not known, for they "
					     "have no RECORD that "
					     "can be read: the first is '%s'; install them again "
					     "with pip",
					     v->unknown_count, v->unknown)
				  : err_hint(e, "it needs no slimming: use it as it is");
	}

	for (size_t i = 0; i < v->count; i++) {
		left += v->packages[i].left != NULL;
		if (!v->packages[i].left || (left < v->with_code && !is_torch(&v->packages[i])))
			continue;
		err_set(e, ERR_POLICY, "'%s' cannot be slimmed: %s", v->packages[i].info,
			v->packages[i].left);
		const char *note = renamed_note(v, &v->packages[i]);
		if (note)
			return err_hint(e, "%s", note);
		return err_hint(e, "a slimmed environment has code for its own GPUs only: "
				   "reinstall the packages first");
	}

	return 0;
}

/* ---- the change ---- */

/* Replaces the file by the stripped form of `file`: what was cut, or the file as it was. */
static int strip_into(struct env *v, const struct slim_package *p, const struct fs_mapping *file,
		      const char *path, const struct stat *st, bool *ret_done, struct err *e)
{
	AUTO_FRESH struct fs_fresh fresh = {.fd = -1, .dir = -1};

	if (fs_fresh_open(p->place, path, &fresh, e) < 0 ||
	    slim_parts_strip(file, path, v->q->drops->strip, fresh.fd, ret_done, e) < 0)
		return -1;
	return *ret_done ? fs_fresh_commit(&fresh, st, e) : 0;
}

/* One descriptor each for what is read and what is written:
 * whatever is put there meanwhile is not looked at. */
static int replace(struct env *v, const struct slim_package *p, size_t i, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_MAPPING struct fs_mapping file = {0};
	AUTO_MAPPING struct fs_mapping made = {0};
	AUTO_FRESH struct fs_fresh fresh = {.fd = -1, .dir = -1};
	const struct slim_file *f = &p->parts[i];
	const char *path = p->rows[i].path;
	struct fatbin_file_cut done = {0};
	struct stat st;
	bool stripped = false;

	if (fs_place_map(p->place, path, &file, &st, e) < 0)
		return -1;
	if (!f->cut || !f->cut->changed)
		return strip_into(v, p, &file, path, &st, &stripped, e);
	if (fs_fresh_open(p->place, path, &fresh, e) < 0 ||
	    fatbin_file_slim(&file, path, fresh.fd, v->q->wanted, &a, &done, e) < 0)
		return -1;
	/* Where nothing is to be cut any more, nothing was written either. */
	if (!done.changed)
		return 0;
	if (f->strip && (fs_map_fd(fresh.fd, path, &made, e) < 0 ||
			 strip_into(v, p, &made, path, &st, &stripped, e) < 0))
		return -1;
	return stripped ? 0 : fs_fresh_commit(&fresh, &st, e);
}

/* Makes the row what the file is. 1: it was not. */
static int true_row(struct env *v, const struct slim_package *p, struct wheel_record_row *row,
		    struct err *e)
{
	char digest[DIGEST_RECORD_MAX];
	AUTO_MAPPING struct fs_mapping m = {0};
	struct stat st;
	const char *algorithm =
		*row->digest ? arena_strndup(v->a, row->digest, strcspn(row->digest, "="))
			     : "sha256";

	if (fs_place_map(p->place, row->path, &m, &st, e) < 0)
		return -1;
	digest_record(algorithm, m.data ? m.data : (const void *)"", m.size, digest);
	if (strcmp(row->digest, digest) == 0 && row->size == (int64_t)m.size)
		return 0;
	row->digest = arena_strdup(v->a, digest);
	row->size = (int64_t)m.size;
	return 1;
}

static int write_record(struct env *v, const struct slim_package *p, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const char *path = path_join(v->a, p->info, "RECORD");
	struct stat st;
	AUTO_FD int fd = fs_place_file(p->place, path, &st, e);

	if (fd < 0)
		return -1;
	for (size_t k = 0; k < p->rows_count; k++)
		if (!p->parts[k].gone)
			wheel_record_line(&text, p->rows[k].path, p->rows[k].digest,
					  p->rows[k].size);
	return fs_place_write(p->place, path, text.data, text.len, &st, e);
}

/* 1: its row is another now. */
static int change_file(struct env *v, struct slim_package *p, size_t i, struct err *e)
{
	const struct slim_file *f = &p->parts[i];
	const bool same = f->like && v->q->drops->same, cut = f->cut && f->cut->changed;

	if (!f->cut && !f->strip && !f->gone && !same)
		return 0;
	log_status(v->run->log, "%s", p->rows[i].path);
	if (run_check(v->run, e) < 0)
		return -1;
	if (f->gone)
		return slim_parts_remove(p, i, v->a, e) < 0 ? -1 : 1;

	if (fs_place_sweep(p->place, path_dir(v->a, p->rows[i].path), e) < 0)
		return -1;
	if ((cut || f->strip) && replace(v, p, i, e) < 0)
		return -1;
	if (same && slim_parts_link(p, i, e) < 0)
		return -1;
	return true_row(v, p, &p->rows[i], e);
}

static int change(struct env *v, struct slim_package *p, struct err *e)
{
	bool changed = false;

	if (fs_place_sweep(p->place, p->info, e) < 0)
		return -1;
	/* The marker first: after a kill a second run then knows for which GPUs this one was. */
	if (slim_parts_mark(v->q, p, v->a, &changed, e) < 0)
		return -1;
	for (size_t i = 0; i < p->rows_count; i++) {
		const int other = change_file(v, p, i, e);
		if (other < 0)
			return -1;
		changed = changed || other;
	}

	return changed ? write_record(v, p, e) : 0;
}

/* What was read must be what is changed: one at a
 * time. A file system without locks locks nothing. */
static int lock_places(struct env *v, struct err *e)
{
	for (size_t i = 0; i < v->places_count; i++)
		if (flock(v->places[i]->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
			err_set(e, ERR_SYSTEM, "another process is slimming '%s'",
				v->places[i]->path);
			return err_hint(e, "run the same again when that has ended");
		}
	for (size_t i = 0; i < v->places_count; i++)
		if (fs_place_sweep(v->places[i], "", e) < 0)
			return -1;
	return 0;
}

struct measuring {
	uint64_t size, disk;
	struct arena a;
	struct stat *shared; /* files with several names */
	size_t count, cap;
};

static int add_size(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct measuring *m = user;

	(void)rel;
	(void)e;
	if (!S_ISREG(st->st_mode))
		return 0;
	m->size += (uint64_t)st->st_size;
	if (st->st_nlink > 1) {
		m->shared = arena_room(&m->a, m->shared, m->count, &m->cap, 64, sizeof(*m->shared));
		m->shared[m->count++] = *st;
		return 0;
	}

	m->disk += (uint64_t)st->st_blocks * 512;
	return 0;
}

static int by_inode(const void *a, const void *b)
{
	const struct stat *x = a, *y = b;
	const int c = (x->st_ino > y->st_ino) - (x->st_ino < y->st_ino);
	return c ? c : (x->st_dev > y->st_dev) - (x->st_dev < y->st_dev);
}

/* A file with several names uses its space once. */
static int measure(struct env *v, uint64_t *ret, uint64_t *ret_disk, struct err *e)
{
	struct measuring m = {0};
	int rc = 0;

	for (size_t i = 0; i < v->places_count && rc == 0; i++)
		rc = fs_place_walk(v->places[i], add_size, &m, e);
	array_sort(m.shared, m.count, sizeof(*m.shared), by_inode);
	for (size_t i = 0; i < m.count; i++)
		if (!i || by_inode(&m.shared[i - 1], &m.shared[i]) != 0)
			m.disk += (uint64_t)m.shared[i].st_blocks * 512;
	arena_release(&m.a);
	*ret = m.size;
	*ret_disk = m.disk;
	return rc;
}

static int cut(struct env *v, struct slim_env_result *ret, struct err *e)
{
	struct slim_env_result r = {0};

	if (measure(v, &r.before, &r.disk_before, e) < 0 || read_packages(v, e) < 0)
		return -1;
	uint64_t size = v->saved.size, disk = v->saved.disk;
	for (size_t i = 0; i < v->count; i++) {
		struct slim_package *p = &v->packages[i];
		if (p->left) { /* nothing of its plan is done */
			p->after = p->before;
			p->blank = 0;
			p->count = 0;
		}

		size += p->before - p->after;
		disk += p->before - p->after + p->blank;
		if (!p->left && !v->q->dry_run && change(v, p, e) < 0)
			return fs_disk_place(p->place->path, e);
	}

	log_status_end(v->run->log);
	r.after = r.before - (size < r.before ? size : 0);
	r.disk_after = r.disk_before - (disk < r.disk_before ? disk : 0);
	if (!v->q->dry_run && measure(v, &r.after, &r.disk_after, e) < 0)
		return -1;
	r.packages = v->packages;
	r.count = v->count;
	*ret = r;
	return 0;
}

/* The marker of ret->info. 0: it has none. */
static int read_marker(struct env *v, const struct fs_place *place, struct slim_marked *ret,
		       struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const char *path = path_join(v->a, ret->info, SLIM_MARKER);

	if (!fs_place_has(place, path))
		return 0;
	if (fs_place_read(place, path, MARKER_MAX, &text, e) < 0 ||
	    slim_marker_parse(&(struct file_bytes){buf_cstr(&text), text.len, path}, v->a,
			      &ret->marker, e) < 0)
		return err_hint(e, "reinstall that package");
	return 1;
}

static int read_markers(struct env *v, struct slim_marked **ret, size_t *ret_count, struct err *e)
{
	size_t cap = 0;

	for (size_t i = 0; i < v->places_count; i++) {
		struct strlist names = {0};
		if (fs_place_list(v->places[i], "", v->a, &names, e) < 0)
			return -1;
		for (size_t k = 0; k < names.count; k++) {
			struct slim_marked m = {.info = names.items[k]};
			if (!path_has_suffix(m.info, ".dist-info"))
				continue;
			const int any = read_marker(v, v->places[i], &m, e);
			if (any < 0)
				return -1;
			if (!any)
				continue;
			*ret = arena_room(v->a, *ret, *ret_count, &cap, 16, sizeof(**ret));
			(*ret)[(*ret_count)++] = m;
		}
	}

	return 0;
}

int slim_env_marked(const char *dir, const struct run *run, struct arena *a,
		    struct slim_marked **ret, size_t *ret_count, struct err *e)
{
	const struct slim_env_request q = {.dir = dir};
	struct env v = {.q = &q, .run = run, .a = a, .top.fd = -1};

	*ret = NULL;
	*ret_count = 0;
	int rc = find_places(&v, e);
	if (rc == 0)
		rc = read_markers(&v, ret, ret_count, e);
	for (size_t i = 0; i < v.places_count; i++)
		fs_place_close(v.places[i]);
	fs_place_close(&v.top);
	return rc;
}

int slim_env(const struct slim_env_request *q, struct arena *a, struct slim_env_result *ret,
	     struct err *e)
{
	struct env v = {.q = q, .run = q->run, .a = a, .top.fd = -1};
	int rc = find_places(&v, e);

	if (rc == 0 && !q->dry_run)
		rc = lock_places(&v, e);
	if (rc == 0)
		rc = cut(&v, ret, e);
	for (size_t i = 0; i < v.places_count; i++)
		fs_place_close(v.places[i]);
	fs_place_close(&v.top);
	return rc;
}
