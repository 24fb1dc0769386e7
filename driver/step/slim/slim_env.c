#include "step/slim/slim_env.h"

#include <limits.h>
#include <sys/file.h>

#include "base/sys/digest.h"
#include "core/fatbin/fatbin_look.h"
#include "core/wheel/wheel.h"
#include "step/slim/slim_env_marker.h"

enum { RECORD_MAX = 256 << 20 };

struct env {
	const struct slim_env_request *q;
	const struct run *run;
	struct arena *a;
	struct strlist places;
	struct slim_package *packages;
	size_t count, cap;
	const char *unknown; /* the first without a list of its files that can be read */
	size_t unknown_count;
};

/* ---- where packages are ---- */

static bool has_packages(const char *dir, struct arena *a)
{
	struct strlist names = {0};
	if (!fs_is_dir(TRUSTED, dir) || fs_list(TRUSTED, dir, a, &names, ERR_IGNORED) < 0)
		return false;
	for (size_t i = 0; i < names.count; i++)
		if (path_has_suffix(names.items[i], ".dist-info"))
			return true;
	return false;
}

/* Each place once, whatever links lead to it: lib64 of a virtual environment is one. */
static void add_place(struct env *v, const char *dir)
{
	char real[PATH_MAX];
	if (realpath(dir, real) && has_packages(real, v->a) && !strlist_contains(&v->places, real))
		strlist_add(&v->places, v->a, real);
}

static int find_places(struct env *v, struct err *e)
{
	static const char *const libs[] = {"lib",           "lib64",           "usr/lib",      "usr/lib64",
					   "usr/local/lib", "usr/local/lib64", "opt/venv/lib", "opt/conda/lib"};
	if (!fs_is_dir(TRUSTED, v->q->dir))
		return err_set(e, ERR_USAGE, "not a directory: '%s'", v->q->dir);
	add_place(v, v->q->dir);
	for (size_t i = 0; i < ARRAY_LEN(libs); i++) {
		const char *lib = path_join(v->a, v->q->dir, libs[i]);
		struct strlist names = {0};
		if (!fs_is_dir(TRUSTED, lib) || fs_list(TRUSTED, lib, v->a, &names, ERR_IGNORED) < 0)
			continue;
		for (size_t k = 0; k < names.count; k++) {
			if (strncmp(names.items[k], "python3", 7) != 0)
				continue;
			const char *python = path_join(v->a, lib, names.items[k]);
			add_place(v, path_join(v->a, python, "site-packages"));
			add_place(v, path_join(v->a, python, "dist-packages"));
		}
	}
	if (v->places.count)
		return 0;
	err_set(e, ERR_USAGE, "no installed packages in '%s'", v->q->dir);
	return err_hint(e, "name a virtual environment, the root of an image, or a site-packages directory");
}

/* ---- what is in them ---- */

/* A library by its row: a regular file that lies at the place; a link is another package's affair. What a linked
 * directory leads to may lie outside of the environment, in a cache that others use. */
static int look_at(struct env *v, struct slim_package *p, const struct wheel_record_row *row, struct err *e)
{
	const char *path = path_join(v->a, p->place, row->path);
	struct stat st;
	struct fatbin_file_cut *f = &p->files[p->count];
	if (!fatbin_library_name(row->path) || !path_is_safe_relative(row->path))
		return 0;
	if (fs_stat(p->place, row->path, &st) < 0)
		return errno == ELOOP ? err_set(e, ERR_POLICY, "a link leads to '%s'", row->path) : 0;
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	struct fatbin_look *look = &p->looks[p->count];
	if (fatbin_look_file(path, row->path, v->a, look, e) < 0)
		return -1;
	if (!look->used)
		return 0;
	if (fatbin_file_slim(path, row->path, -1, path, v->q->wanted, v->a, f, e) < 0)
		return -1;
	p->count++;
	p->before += f->before;
	p->after += f->after;
	p->blank += f->blank;
	return 0;
}

static bool is_torch(const struct slim_package *p)
{
	return strncmp(p->info, "torch-", strlen("torch-")) == 0;
}

/* Whether it can be slimmed: the packages of others may have fewer kernels, and PTX of torch's alone is asked for. */
static void judge(struct env *v, struct slim_package *p)
{
	const struct fatbin_judging j = {.torch = is_torch(p),
					 .whole = is_torch(p),
					 .ptx = is_torch(p),
					 .looks = p->looks,
					 .count = p->count,
					 .wanted = v->q->wanted};
	struct err why = {0};
	if (p->left)
		return;
	if (fatbin_judge(&j, v->a, &why) < 0)
		p->left = arena_strdup(v->a, why.msg);
}

static int read_package(struct env *v, const char *place, const char *info, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct slim_package p = {.info = info, .place = place};
	struct err why = {0};
	const char *record = path_join(v->a, info, "RECORD");
	const bool listed = fs_exists(place, record);
	if (!listed || fs_read(place, record, RECORD_MAX, &text, &why) < 0 ||
	    wheel_record_parse(buf_cstr(&text), text.len, record, v->a, &p.rows, &p.rows_count, &why) < 0) {
		if (listed) /* what a distribution installed has none */
			log_warn(v->run->log, "%s stays as it is: %s", info, why.msg);
		v->unknown = v->unknown_count++ ? v->unknown : info;
		return 0;
	}
	if (slim_env_check(place, info, v->q->wanted, v->a, e) < 0)
		return -1;
	p.files = arena_array(v->a, p.rows_count + 1, sizeof(*p.files));
	p.looks = arena_array(v->a, p.rows_count + 1, sizeof(*p.looks));
	for (size_t i = 0; i < p.rows_count && !p.left; i++) {
		if (run_check(v->run, e) < 0)
			return -1;
		if (look_at(v, &p, &p.rows[i], &why) < 0)
			p.left = arena_strdup(v->a, why.msg);
	}
	judge(v, &p);
	if (!p.count && !p.left)
		return 0;
	v->packages = arena_room(v->a, v->packages, v->count, &v->cap, 16, sizeof(*v->packages));
	v->packages[v->count++] = p;
	return 0;
}

static int read_packages(struct env *v, struct err *e)
{
	for (size_t i = 0; i < v->places.count; i++) {
		struct strlist names = {0};
		if (fs_list(TRUSTED, v->places.items[i], v->a, &names, e) < 0)
			return -1;
		for (size_t k = 0; k < names.count; k++) {
			log_status(v->run->log, "reading %s", names.items[k]);
			if (path_has_suffix(names.items[k], ".dist-info") &&
			    read_package(v, v->places.items[i], names.items[k], e) < 0)
				return -1;
		}
	}
	size_t left = 0;
	if (!v->count) {
		err_set(e, ERR_POLICY, "no package in '%s' has GPU code", v->q->dir);
		return v->unknown ? err_hint(e,
					     "what %zu of its packages hold is not known, for they have no RECORD that "
					     "can be read: the first is '%s'; install them again with pip",
					     v->unknown_count, v->unknown)
				  : err_hint(e, "there is nothing to cut: use it as it is");
	}
	for (size_t i = 0; i < v->count; i++) {
		left += v->packages[i].left != NULL;
		if (!v->packages[i].left || (left < v->count && !is_torch(&v->packages[i])))
			continue;
		err_set(e, ERR_POLICY, "'%s' cannot be cut: %s", v->packages[i].info, v->packages[i].left);
		return err_hint(e,
				"a slimmed environment has code for its own GPUs only: reinstall the packages first");
	}
	return 0;
}

/* ---- the change ---- */

static int replace(struct env *v, const char *path, struct fatbin_file_cut *f, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct fatbin_file_cut done = {0};
	struct stat st;
	char *fresh = NULL;
	if (stat(path, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
	AUTO_FD int fd = fs_neighbour(path, 0600, &a, &fresh, e);
	if (fd < 0)
		return -1;
	int rc = fatbin_file_slim(path, f->name, fd, fresh, v->q->wanted, &a, &done, e);
	/* The owner may be kept only by root: a file of one's own it is anyway. */
	if (rc == 0 && ((fchown(fd, st.st_uid, st.st_gid) < 0 && errno != EPERM) ||
			fchmod(fd, st.st_mode & 07777) < 0 || fsync(fd) < 0))
		rc = err_errno(e, ERR_SYSTEM, "cannot write '%s'", fresh);
	/* Where nothing is to be cut any more, nothing was written either. */
	if (rc == 0 && done.changed)
		rc = fs_rename(fresh, path, e);
	if (rc < 0 || !done.changed)
		unlink(fresh);
	return rc;
}

static int true_row(struct env *v, const char *path, struct wheel_record_row *row, bool *changed, struct err *e)
{
	char digest[DIGEST_RECORD_MAX];
	AUTO_MAPPING struct fs_mapping m = {0};
	const char *algorithm = *row->digest ? arena_strndup(v->a, row->digest, strcspn(row->digest, "=")) : "sha256";
	if (fs_map(path, &m, e) < 0)
		return -1;
	digest_record(algorithm, m.data ? m.data : (const void *)"", m.size, digest);
	if (strcmp(row->digest, digest) == 0 && row->size == (int64_t)m.size)
		return 0;
	*changed = true;
	row->digest = arena_strdup(v->a, digest);
	row->size = (int64_t)m.size;
	return 0;
}

static int write_record(struct env *v, const struct slim_package *p, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const char *path = path_join(v->a, path_join(v->a, p->place, p->info), "RECORD");
	struct stat st;
	if (stat(path, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
	for (size_t k = 0; k < p->rows_count; k++)
		wheel_record_line(&text, p->rows[k].path, p->rows[k].digest, p->rows[k].size);
	return fs_write(TRUSTED, path, text.data, text.len, st.st_mode & 07777, e);
}

static int change(struct env *v, struct slim_package *p, struct err *e)
{
	bool changed = false;
	if (fs_sweep(TRUSTED, path_join(v->a, p->place, p->info), e) < 0 ||
	    slim_env_mark(p, v->q->wanted, v->a, &changed, e) < 0)
		return -1;
	for (size_t k = 0; k < p->count; k++) {
		struct fatbin_file_cut *f = &p->files[k];
		const char *path = path_join(v->a, p->place, f->name);
		log_status(v->run->log, "%s", f->name);
		if (run_check(v->run, e) < 0 || fs_sweep(TRUSTED, path_dir(v->a, path), e) < 0 ||
		    (f->changed && replace(v, path, f, e) < 0))
			return -1;
		for (size_t r = 0; r < p->rows_count; r++)
			if (strcmp(p->rows[r].path, f->name) == 0 && true_row(v, path, &p->rows[r], &changed, e) < 0)
				return -1;
	}
	return changed ? write_record(v, p, e) : 0;
}

/* What was read must be what is changed: one at a time. A file system without locks locks nothing. */
static int lock_places(struct env *v, int *locks, struct err *e)
{
	for (size_t i = 0; i < v->places.count; i++) {
		locks[i] = open(v->places.items[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (locks[i] < 0)
			return err_errno(e, ERR_SYSTEM, "cannot read '%s'", v->places.items[i]);
		if (flock(locks[i], LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
			err_set(e, ERR_SYSTEM, "'%s' is being cut by another process", v->places.items[i]);
			return err_hint(e, "run the same again when that has ended");
		}
	}
	return 0;
}

static int add_size(const char *rel, const struct stat *st, void *user, struct err *e)
{
	uint64_t *sizes = user;
	(void)rel;
	(void)e;
	if (S_ISREG(st->st_mode)) {
		sizes[0] += (uint64_t)st->st_size;
		sizes[1] += (uint64_t)st->st_blocks * 512;
	}
	return 0;
}

static int measure(struct env *v, uint64_t *ret, uint64_t *ret_disk, struct err *e)
{
	uint64_t sizes[2] = {0};
	for (size_t i = 0; i < v->places.count; i++)
		if (fs_walk_busy(TRUSTED, v->places.items[i], add_size, sizes, e) < 0)
			return -1;
	*ret = sizes[0];
	*ret_disk = sizes[1];
	return 0;
}

static int cut(struct env *v, struct slim_env_result *ret, struct err *e)
{
	struct slim_env_result r = {0};
	if (measure(v, &r.before, &r.disk_before, e) < 0 || read_packages(v, e) < 0)
		return -1;
	r.after = r.before;
	r.disk_after = r.disk_before;
	for (size_t i = 0; i < v->count; i++) {
		struct slim_package *p = &v->packages[i];
		if (p->left) { /* nothing of its plan is done */
			p->after = p->before;
			p->blank = 0;
			p->count = 0;
		}
		r.after -= p->before - p->after;
		if (!p->left && !v->q->dry_run && change(v, p, e) < 0)
			return -1;
	}
	log_status_end(v->run->log);
	if (!v->q->dry_run && measure(v, &r.after, &r.disk_after, e) < 0)
		return -1;
	r.packages = v->packages;
	r.count = v->count;
	*ret = r;
	return 0;
}

int slim_env(const struct slim_env_request *q, const struct run *run, struct arena *a, struct slim_env_result *ret,
	     struct err *e)
{
	struct env v = {.q = q, .run = run, .a = a};
	if (find_places(&v, e) < 0)
		return -1;
	int *locks = arena_array(a, v.places.count, sizeof(*locks));
	for (size_t i = 0; i < v.places.count; i++)
		locks[i] = -1;
	int rc = (q->dry_run || lock_places(&v, locks, e) == 0) ? cut(&v, ret, e) : -1;
	for (size_t i = 0; i < v.places.count; i++)
		if (locks[i] >= 0)
			close(locks[i]);
	return rc;
}
