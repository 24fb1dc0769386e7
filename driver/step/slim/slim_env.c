#include "step/slim/slim_env.h"

#include <sys/file.h>

#include "base/sys/digest.h"
#include "core/wheel/wheel.h"

enum { RECORD_MAX = 256 << 20 };

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
		if (fstat(v->places[i]->fd, &have) == 0 && have.st_dev == st->st_dev && have.st_ino == st->st_ino)
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
	v->places = arena_room(v->a, v->places, v->places_count, &v->places_cap, 8, sizeof(struct fs_place *));
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
	static const char *const libs[] = {"lib",           "lib64",           "usr/lib",      "usr/lib64",
					   "usr/local/lib", "usr/local/lib64", "opt/venv/lib", "opt/conda/lib"};
	if (!fs_is_dir(TRUSTED, v->q->dir))
		return err_set(e, ERR_USAGE, "not a directory: '%s'", v->q->dir);
	if (fs_place_open(v->q->dir, v->a, &v->top, e) < 0)
		return -1;
	/* Links of an image are meant for who runs in it, those of an environment for who runs here. */
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
	return err_hint(e, "name a virtual environment, the root of an image, or a site-packages directory");
}

/* ---- what is in them ---- */

/* Nothing was read of it: no library, or another package's affair, as a link is. */
static bool is_other(const struct slim_package *p, const char *path)
{
	struct stat st;
	if (!fatbin_library_name(path) || !path_is_safe_relative(path))
		return true;
	return fs_place_stat(p->place, path, &st) < 0 ? errno != ELOOP : !S_ISREG(st.st_mode) || st.st_size == 0;
}

/* A library by its row: a regular file that lies at the place. What a linked directory leads to may lie outside of the
 * environment, in a cache that others use. */
static int look_at(struct env *v, struct slim_package *p, const struct wheel_record_row *row, struct err *e)
{
	AUTO_MAPPING struct fs_mapping file = {0};
	struct fatbin_file_cut *f = &p->files[p->count];
	struct stat st;
	bool code, used;
	if (is_other(p, row->path))
		return 0;
	if (fs_place_map(p->place, row->path, &file, &st, e) < 0 ||
	    fatbin_file_has(&file, row->path, &code, &used, e) < 0)
		return -1;
	if (!used)
		return 0;
	if (fatbin_file_slim(&file, row->path, -1, v->q->wanted, v->a, f, e) < 0)
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

static void judge(struct env *v, struct slim_package *p)
{
	const bool without = is_torch(p) && !fatbin_keeps_ptx(p->files, p->count);
	for (size_t g = 0; g < v->q->wanted->count && !p->left; g++) {
		size_t runs = 0, containers = 0;
		for (size_t i = 0; i < p->count; i++) {
			runs += p->files[i].cut.runs[g];
			containers += p->files[i].cut.containers;
		}
		if (!runs && containers)
			p->left = arena_printf(v->a, "nothing in it runs on sm%u", v->q->wanted->gpus[g].number);
		else if (without && v->q->wanted->gpus[g].ptx)
			p->left = arena_printf(v->a, "it has no PTX that runs on sm%u", v->q->wanted->gpus[g].number);
	}
}

static int read_package(struct env *v, const struct fs_place *place, const char *info, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct slim_package p = {.info = info, .place = place};
	struct err why = {0};
	const char *record = path_join(v->a, info, "RECORD");
	const bool listed = fs_place_has(place, record);
	if (!listed || fs_place_read(place, record, RECORD_MAX, &text, &why) < 0 ||
	    wheel_record_parse(buf_cstr(&text), text.len, record, v->a, &p.rows, &p.rows_count, &why) < 0) {
		if (listed) /* what a distribution installed has none */
			log_warn(v->run->log, "%s stays as it is: %s", info, why.msg);
		v->unknown = v->unknown_count++ ? v->unknown : info;
		return 0;
	}
	p.files = arena_array(v->a, p.rows_count + 1, sizeof(*p.files));
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
	for (size_t i = 0; i < v->places_count; i++) {
		struct strlist names = {0};
		if (fs_place_list(v->places[i], "", v->a, &names, e) < 0)
			return -1;
		for (size_t k = 0; k < names.count; k++) {
			log_status(v->run->log, "reading %s", names.items[k]);
			if (path_has_suffix(names.items[k], ".dist-info") &&
			    read_package(v, v->places[i], names.items[k], e) < 0)
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
		return err_hint(e, "an environment that was cut before has code for its GPU alone: install it again");
	}
	return 0;
}

/* ---- the change ---- */

/* One descriptor each for what is read and what is written: whatever is put there meanwhile is not looked at. */
static int replace(struct env *v, const struct slim_package *p, const struct fatbin_file_cut *f, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_MAPPING struct fs_mapping file = {0};
	AUTO_FRESH struct fs_fresh fresh = {.fd = -1, .dir = -1};
	struct fatbin_file_cut done = {0};
	struct stat st;
	if (fs_place_map(p->place, f->name, &file, &st, e) < 0 || fs_fresh_open(p->place, f->name, &fresh, e) < 0 ||
	    fatbin_file_slim(&file, f->name, fresh.fd, v->q->wanted, &a, &done, e) < 0)
		return -1;
	/* Where nothing is to be cut any more, nothing was written either. */
	return done.changed ? fs_fresh_commit(&fresh, &st, e) : 0;
}

static int true_row(struct env *v, const struct slim_package *p, struct wheel_record_row *row, bool *changed,
		    struct err *e)
{
	char digest[DIGEST_RECORD_MAX];
	AUTO_MAPPING struct fs_mapping m = {0};
	struct stat st;
	const char *algorithm = *row->digest ? arena_strndup(v->a, row->digest, strcspn(row->digest, "=")) : "sha256";
	if (fs_place_map(p->place, row->path, &m, &st, e) < 0)
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
	const char *path = path_join(v->a, p->info, "RECORD");
	struct stat st;
	AUTO_FD int fd = fs_place_file(p->place, path, &st, e);
	if (fd < 0)
		return -1;
	for (size_t k = 0; k < p->rows_count; k++)
		wheel_record_line(&text, p->rows[k].path, p->rows[k].digest, p->rows[k].size);
	return fs_place_write(p->place, path, text.data, text.len, &st, e);
}

static int change(struct env *v, const struct slim_package *p, struct err *e)
{
	bool changed = false;
	if (fs_place_sweep(p->place, p->info, e) < 0)
		return -1;
	for (size_t k = 0; k < p->count; k++) {
		const struct fatbin_file_cut *f = &p->files[k];
		log_status(v->run->log, "%s", f->name);
		if (run_check(v->run, e) < 0 || fs_place_sweep(p->place, path_dir(v->a, f->name), e) < 0 ||
		    (f->changed && replace(v, p, f, e) < 0))
			return -1;
		for (size_t r = 0; r < p->rows_count; r++)
			if (strcmp(p->rows[r].path, f->name) == 0 && true_row(v, p, &p->rows[r], &changed, e) < 0)
				return -1;
	}
	return changed ? write_record(v, p, e) : 0;
}

/* What was read must be what is changed: one at a time. A file system without locks locks nothing. */
static int lock_places(struct env *v, struct err *e)
{
	for (size_t i = 0; i < v->places_count; i++)
		if (flock(v->places[i]->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
			err_set(e, ERR_SYSTEM, "'%s' is being cut by another process", v->places[i]->path);
			return err_hint(e, "run the same again when that has ended");
		}
	for (size_t i = 0; i < v->places_count; i++)
		if (fs_place_sweep(v->places[i], "", e) < 0)
			return -1;
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
	for (size_t i = 0; i < v->places_count; i++)
		if (fs_place_walk(v->places[i], add_size, sizes, e) < 0)
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
	struct env v = {.q = q, .run = run, .a = a, .top.fd = -1};
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
