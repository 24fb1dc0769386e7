#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "base/path.h"
#include "base/sys/fs.h"
#include "base/sys/lock.h"
#include "step/index/index_parts.h"

/* Marks the directories that this step made: it replaces no others. */
#define OWN ".ptbuild-index"

struct indexing {
	const struct index_request *q;
	const struct run *run;
	struct arena *a;
	struct index_wheel *wheels; /* sorted by file name */
	size_t count;
	const char *url;   /* before the wheels' names, as seen from a project's page */
	const char *stage; /* where the new sub-directories are made */
	struct index_result result;
};

static int read_wheels(struct indexing *x, struct err *e)
{
	struct strlist names = {0};
	if (fs_list(TRUSTED, x->q->dir, x->a, &names, e) < 0)
		return -1;
	x->wheels = arena_array(x->a, names.count, sizeof(*x->wheels));
	for (size_t i = 0; i < names.count; i++) {
		if (names.items[i][0] == '.' || !path_has_suffix(names.items[i], ".whl"))
			continue;
		log_status(x->run->log, "index %s", names.items[i]);
		if (run_check(x->run, e) < 0 ||
		    index_read(x->q->dir, names.items[i], x->a, &x->wheels[x->count], e) < 0)
			return -1;
		x->result.yanked += x->wheels[x->count].yanked;
		x->count++;
	}
	log_status_end(x->run->log);
	x->result.wheels = x->count;
	if (x->count)
		return 0;
	err_set(e, ERR_USAGE, "no wheel in '%s'", x->q->dir);
	return err_hint(e, "give the directory that --out named for the build");
}

static void projects_of(const struct indexing *x, const struct index_sub *sub, struct strlist *ret)
{
	for (size_t i = 0; i < x->count; i++)
		if (sub->has[i])
			strlist_once(ret, x->a, x->wheels[i].project);
	strlist_sort(ret);
}

static int write_page(const char *dir, const char *html, const char *json, struct arena *a, struct err *e)
{
	if (fs_mkdirs(TRUSTED, dir, e) < 0 ||
	    fs_write(TRUSTED, path_join(a, dir, "index.html"), html, strlen(html), 0644, e) < 0)
		return -1;
	return fs_write(TRUSTED, path_join(a, dir, "index.json"), json, strlen(json), 0644, e);
}

static int write_project(struct indexing *x, const char *dir, const struct index_sub *sub, const char *project,
			 struct err *e)
{
	struct buf AUTO_BUF html = {0};
	const struct index_wheel **chosen = arena_array(x->a, x->count, sizeof(void *));
	size_t n = 0;
	for (size_t i = 0; i < x->count; i++)
		if (sub->has[i] && strcmp(x->wheels[i].project, project) == 0)
			chosen[n++] = &x->wheels[i];
	index_project_html(chosen, n, x->url, &html);
	return write_page(path_join(x->a, dir, project), buf_cstr(&html), index_project_json(chosen, n, x->url, x->a),
			  x->a, e);
}

static int write_sub(struct indexing *x, const struct index_sub *sub, struct err *e)
{
	struct buf AUTO_BUF html = {0};
	struct strlist projects = {0};
	const char *dir = path_join(x->a, x->stage, sub->name);
	projects_of(x, sub, &projects);
	index_root_html(&projects, &html);
	if (write_page(dir, buf_cstr(&html), index_root_json(&projects, x->a), x->a, e) < 0 ||
	    fs_write(TRUSTED, path_join(x->a, dir, OWN), "", 0, 0644, e) < 0)
		return -1;
	for (size_t i = 0; i < projects.count; i++)
		if (write_project(x, dir, sub, projects.items[i], e) < 0)
			return -1;
	if (sub > x->result.subs)
		return 0;
	x->result.projects = projects.count;
	const char *listing = index_listing_json(x->result.subs + 1, x->result.count - 1, x->a);
	return fs_write(TRUSTED, path_join(x->a, dir, INDEX_LISTING), listing, strlen(listing), 0644, e);
}

static int write_subs(struct indexing *x, struct err *e)
{
	for (size_t i = 0; i < x->count; i++)
		if (strcmp(x->wheels[i].profile, INDEX_ALL) == 0)
			return err_set(e, ERR_POLICY,
				       "'%s' has the label '%s', which is reserved for the index of all wheels",
				       x->wheels[i].file, INDEX_ALL);
	index_subs(x->wheels, x->count, x->a, &x->result.subs, &x->result.count);
	for (size_t i = 0; i < x->result.count; i++)
		if (write_sub(x, &x->result.subs[i], e) < 0)
			return -1;
	return fs_sync_tree(x->stage, e);
}

static bool is_own(struct indexing *x, const char *name)
{
	return fs_exists(TRUSTED, path_join(x->a, path_join(x->a, x->q->dir, name), OWN));
}

static int check_names(struct indexing *x, struct err *e)
{
	for (size_t i = 0; i < x->result.count; i++) {
		const char *name = x->result.subs[i].name;
		if (!fs_exists(TRUSTED, path_join(x->a, x->q->dir, name)) || is_own(x, name))
			continue;
		err_set(e, ERR_POLICY, "'%s' in '%s' is not an index of ptbuild", name, x->q->dir);
		return err_hint(e, "move it away");
	}
	return 0;
}

static int write_sidecars(struct indexing *x, struct err *e)
{
	for (size_t i = 0; i < x->count; i++) {
		const struct index_wheel *w = &x->wheels[i];
		struct buf AUTO_BUF have = {0};
		const char *path = path_join(x->a, x->q->dir, arena_printf(x->a, "%s.metadata", w->file));
		if (fs_exists(TRUSTED, path) && fs_read(TRUSTED, path, w->metadata_len, &have, ERR_IGNORED) == 0 &&
		    have.len == w->metadata_len && memcmp(buf_cstr(&have), w->metadata, have.len) == 0)
			continue;
		if (fs_write(TRUSTED, path, w->metadata, w->metadata_len, 0644, e) < 0)
			return -1;
	}
	return 0;
}

/* Leaves the old one in the stage, which is removed. */
static int exchange(struct indexing *x, const char *name, struct err *e)
{
	const char *fresh = path_join(x->a, x->stage, name), *place = path_join(x->a, x->q->dir, name);
	if (!fs_exists(TRUSTED, place))
		return fs_rename(fresh, place, e);
	if (os_rename_swap(fresh, place) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return err_errno(e, ERR_SYSTEM, "cannot replace '%s'", place);
	/* The file system cannot exchange: for a moment there is no index. */
	if (fs_rename(place, path_join(x->a, x->stage, arena_printf(x->a, "old-%s", name)), e) < 0)
		return -1;
	return fs_rename(fresh, place, e);
}

static bool is_sub(const struct indexing *x, const char *name)
{
	for (size_t i = 0; i < x->result.count; i++)
		if (strcmp(x->result.subs[i].name, name) == 0)
			return true;
	return false;
}

/* Removes profiles without wheels and sidecars of removed wheels. */
static int remove_stale(struct indexing *x, struct err *e)
{
	static const char sidecar[] = ".whl.metadata";
	struct strlist names = {0};
	if (fs_list(TRUSTED, x->q->dir, x->a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i], *path = path_join(x->a, x->q->dir, name);
		bool stale = !is_sub(x, name) && is_own(x, name);
		if (name[0] != '.' && path_has_suffix(name, sidecar))
			stale = !fs_exists(TRUSTED, arena_strndup(x->a, path, strlen(path) - strlen(".metadata")));
		if (stale && fs_remove(TRUSTED, path, e) < 0)
			return -1;
	}
	return 0;
}

static int publish(struct indexing *x, struct err *e)
{
	/* Sidecars before the pages that refer to them. */
	if (write_subs(x, e) < 0 || check_names(x, e) < 0 || write_sidecars(x, e) < 0)
		return -1;
	for (size_t i = 0; i < x->result.count; i++)
		if (exchange(x, x->result.subs[i].name, e) < 0)
			return -1;
	return fs_sync_dir(x->q->dir, e) < 0 ? -1 : remove_stale(x, e);
}

static const char *wheels_url(const char *base, struct arena *a)
{
	if (!base)
		return "../../";
	return arena_printf(a, "%s%s", base, path_has_suffix(base, "/") ? "" : "/");
}

int index_write(const struct index_request *q, const struct run *run, struct arena *a, struct index_result *ret,
		struct err *e)
{
	struct indexing x = {.q = q, .run = run, .a = a, .url = wheels_url(q->base_url, a)};
	AUTO_LOCK struct lock lock = LOCK_NONE;
	char *stage = NULL;
	if (!fs_is_dir(TRUSTED, q->dir))
		return err_set(e, ERR_USAGE, "not a directory: '%s'", q->dir);
	if (lock_acquire(&lock, path_join(a, q->dir, OWN ".lock"), false, run, e) < 0 || read_wheels(&x, e) < 0)
		return -1;
	if (fs_temp_dir(q->dir, ".index-", a, &stage, e) < 0)
		return -1;
	x.stage = stage;
	int rc = publish(&x, e);
	if (fs_remove(TRUSTED, stage, rc < 0 ? ERR_IGNORED : e) < 0)
		rc = -1;
	if (rc < 0)
		return -1;
	*ret = x.result;
	return 0;
}
