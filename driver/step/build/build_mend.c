#include "step/build/build_mend.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"
#include "base/path.h"
#include "base/sys/fs.h"
#include "core/ninja/ninja_log.h"
#include "core/ninja/ninja_mend.h"
#include "step/build/build_parts.h"

#define MAX_FILE (UINT64_C(1) << 30)
#define MAX_DEPTH 3 /* build/temp.linux-x86_64-cpython-313 of an extension, and one more */

struct output {
	const char *path; /* on the host */
	bool empty;
	int64_t mtime;
};

struct mend {
	const char *src; /* with all links resolved */
	struct arena *arena;
	struct strlist dirs; /* that hold a .ninja_log */
	struct output *outputs;
	size_t count, cap;
	int64_t latest; /* seconds: when the last of all was written */
};

static void find_dirs(struct mend *m, const char *dir, int depth)
{
	struct strlist names = {0};
	struct err ignored = {0};
	if (depth > MAX_DEPTH || fs_list(dir, m->arena, &names, &ignored) < 0)
		return;
	for (size_t i = 0; i < names.count; i++) {
		const char *path = path_join(m->arena, dir, names.items[i]);
		struct stat st;
		if (lstat(path, &st) < 0)
			continue;
		if (S_ISREG(st.st_mode) && strcmp(names.items[i], ".ninja_log") == 0)
			strlist_add(&m->dirs, m->arena, dir);
		else if (S_ISDIR(st.st_mode) && strcmp(names.items[i], "CMakeFiles") != 0)
			find_dirs(m, path, depth + 1);
	}
}

/* Cuts a file back to what `whole` says of it. */
static int cut(const char *path, size_t (*whole)(const char *data, size_t len), struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct stat st;
	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (fs_read(path, MAX_FILE, &text, e) < 0)
		return -1;
	size_t n = whole(buf_cstr(&text), text.len);
	if (n < text.len && truncate(path, (off_t)n) != 0)
		return err_errno(e, ERR_SYSTEM, "cannot cut '%s'", path);
	return 0;
}

/* Where an output lies on the host, NULL if that is not in the source tree, through a link either. */
static const char *host_path(const struct mend *m, const char *dir, const char *output)
{
	char real[PATH_MAX];
	const char *path = output, *inside = path_below(output, SANDBOX_SRC);
	if (inside)
		path = path_join(m->arena, m->src, inside);
	else if (*output != '/')
		path = path_join(m->arena, dir, output);
	const char *name = path_base(path);
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || !realpath(path_dir(m->arena, path), real))
		return NULL;
	if (strcmp(real, m->src) != 0 && !path_below(real, m->src))
		return NULL;
	return path_join(m->arena, real, name);
}

static void add_output(struct mend *m, const char *path)
{
	struct stat st;
	if (!path || lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	if (m->count == m->cap)
		m->outputs = arena_grow(m->arena, m->outputs, &m->cap, 1024, sizeof(*m->outputs));
	m->outputs[m->count++] = (struct output){.path = path, .empty = st.st_size == 0, .mtime = st.st_mtim.tv_sec};
	if (st.st_mtim.tv_sec > m->latest)
		m->latest = st.st_mtim.tv_sec;
}

static void read_outputs(struct mend *m, const char *dir)
{
	AUTO_BUF struct buf text = {0};
	struct err ignored = {0};
	struct ninja_log log;
	if (fs_read(path_join(m->arena, dir, ".ninja_log"), MAX_FILE, &text, &ignored) < 0 ||
	    ninja_log_parse(buf_cstr(&text), text.len, dir, m->arena, &log, &ignored) < 0)
		return; /* ninja begins a new one then, and makes everything again */
	for (size_t i = 0; i < log.count; i++)
		add_output(m, host_path(m, dir, log.entries[i].output));
}

static int64_t mtime(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? st.st_mtim.tv_sec : INT64_MIN;
}

/* What distutils keeps outside any log: it judges by time stamps. A library that was being copied when the disk was
 * full or the kill came is newer than its origin, so its half would go into the wheel. */
static int remove_unlogged(const struct mend *m, const char *build, bool objects, struct err *e)
{
	struct strlist names = {0};
	if (fs_list(build, m->arena, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *path = path_join(m->arena, build, names.items[i]);
		bool logged = false;
		for (size_t k = 0; k < m->dirs.count; k++)
			logged = logged || strcmp(m->dirs.items[k], path) == 0 || path_below(m->dirs.items[k], path);
		bool made = strncmp(names.items[i], "lib.", 4) == 0 ||
			    (objects && strncmp(names.items[i], "temp.", 5) == 0) ||
			    strncmp(names.items[i], "bdist.", 6) == 0;
		if (made && !logged && fs_remove_tree(path, e) < 0)
			return -1;
	}
	return 0;
}

static int after_restart(struct mend *m, const char *marker, const struct run *run, struct err *e)
{
	const char *build = path_join(m->arena, m->src, "build");
	size_t removed = 0;
	int64_t configured = mtime(path_join(m->arena, build, "CMakeCache.txt")), unpacked = mtime(marker);
	for (size_t i = 0; i < m->dirs.count; i++)
		read_outputs(m, m->dirs.items[i]);
	if (configured > m->latest)
		m->latest = configured;
	if (unpacked > m->latest)
		m->latest = unpacked;
	int64_t limit = m->latest - MEND_WINDOW_S;
	if (unpacked > limit) {
		log_info(run->log,
			 "the machine went down soon after the sources were unpacked: they are unpacked again");
		return fs_remove_tree(marker, e);
	}
	if (configured > limit) {
		log_info(run->log, "the machine went down soon after the configuration: it is made again");
		return fs_remove_tree(build, e);
	}
	for (size_t i = 0; i < m->count; i++) {
		if (!m->outputs[i].empty && m->outputs[i].mtime <= limit)
			continue;
		if (unlink(m->outputs[i].path) == 0)
			removed++;
	}
	log_info(run->log,
		 "the machine was started anew since the last run in this tree: %zu files that may not have reached "
		 "the disk are made again",
		 removed);
	return 0;
}

int build_mend(const char *build_dir, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct build_state last, now;
	char real[PATH_MAX];
	struct mend m = {.arena = &a, .latest = INT64_MIN + MEND_WINDOW_S};
	if (!build_state_read(build_dir, &last) || !realpath(path_join(&a, build_dir, "src"), real))
		return 0;
	m.src = real;
	find_dirs(&m, path_join(&a, real, "build"), 0);
	for (size_t i = 0; i < m.dirs.count; i++)
		if (cut(path_join(&a, m.dirs.items[i], ".ninja_log"), ninja_mend_log, e) < 0 ||
		    cut(path_join(&a, m.dirs.items[i], ".ninja_deps"), ninja_mend_deps, e) < 0)
			return -1;
	build_state_now(&now);
	bool restarted = strcmp(last.boot, now.boot) != 0;
	if (restarted && after_restart(&m, path_join(&a, build_dir, "src.ok"), run, e) < 0)
		return -1;
	const char *build = path_join(&a, real, "build");
	return fs_is_dir(build) ? remove_unlogged(&m, build, restarted, e) : 0;
}
