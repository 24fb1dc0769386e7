#include "step/build/build.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"
#include "base/path.h"
#include "base/sys/fs.h"
#include "core/ninja/ninja_file.h"
#include "core/ninja/ninja_log.h"
#include "step/build/build_parts.h"

struct mend {
	const char *src; /* with all links resolved */
	struct arena *arena;
	struct strlist dirs; /* that hold a .ninja_log */
};

/* Truncates a file to what `whole` says is whole. */
static int cut(const char *path, size_t (*whole)(const char *data, size_t len), struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct stat st;
	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (fs_read(path, NINJA_FILE_MAX, &text, e) < 0)
		return -1;
	size_t n = whole(buf_cstr(&text), text.len);
	if (n < text.len && truncate(path, (off_t)n) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot cut '%s'", path);
	return 0;
}

/* Where an output lies on the host; NULL outside of the source tree, also by way of a link. */
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

static int64_t mtime(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? st.st_mtim.tv_sec : INT64_MIN + MEND_WINDOW_S;
}

/* Removes what a log calls done but is empty or was written after `limit`. Returns how many files. */
static size_t remove_young(const struct mend *m, const char *dir, int64_t limit)
{
	struct err ignored = {0};
	struct ninja_log log;
	size_t removed = 0;
	if (ninja_log_read(path_join(m->arena, dir, ".ninja_log"), m->arena, &log, &ignored) < 0)
		return 0; /* ninja begins a new one then, and makes everything again */
	for (size_t i = 0; i < log.count; i++) {
		const char *path = host_path(m, dir, log.entries[i].output);
		struct stat st;
		if (path && lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
		    (st.st_size == 0 || st.st_mtim.tv_sec > limit))
			removed += unlink(path) == 0;
	}
	return removed;
}

/* distutils keeps no log and goes by time stamps: half a library, left by a kill or a full disk while it was copied, is
 * newer than its origin and would go into the wheel. */
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

static int after_restart(const struct mend *m, const char *build, const char *marker, const struct run *run,
			 struct err *e)
{
	size_t removed = 0;
	int64_t configured = mtime(path_join(m->arena, build, "CMakeCache.txt")), unpacked = mtime(marker);
	int64_t latest = configured > unpacked ? configured : unpacked;
	for (size_t i = 0; i < m->dirs.count; i++) { /* ninja writes into its log whenever a command ends */
		int64_t logged = mtime(path_join(m->arena, m->dirs.items[i], ".ninja_log"));
		latest = logged > latest ? logged : latest;
	}
	const int64_t limit = latest - MEND_WINDOW_S;
	if (unpacked > limit) {
		log_info(run->log, "the machine went down soon after the sources were unpacked: unpacking them again");
		return fs_remove_tree(marker, e);
	}
	if (configured > limit) {
		log_info(run->log, "the machine went down soon after the configuration: configuring again");
		return fs_remove_tree(build, e);
	}
	for (size_t i = 0; i < m->dirs.count; i++)
		removed += remove_young(m, m->dirs.items[i], limit);
	log_info(run->log,
		 "the machine was restarted since the last run in this tree: making %zu files again that may not have "
		 "reached the disk",
		 removed);
	return 0;
}

int build_mend(const char *build_dir, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct build_state last, now;
	char real[PATH_MAX];
	struct mend m = {.src = real, .arena = &a};
	if (!build_state_read(build_dir, &last) || !realpath(path_join(&a, build_dir, "src"), real))
		return 0;
	const char *build = path_join(&a, real, "build");
	build_state_now(&now);
	bool restarted = strcmp(last.boot, now.boot) != 0;
	if (ninja_log_dirs(build, &a, &m.dirs, e) < 0 ||
	    (restarted && after_restart(&m, build, path_join(&a, build_dir, "src.ok"), run, e) < 0))
		return -1;
	for (size_t i = 0; i < m.dirs.count; i++)
		if (cut(path_join(&a, m.dirs.items[i], ".ninja_log"), ninja_mend_log, e) < 0 ||
		    cut(path_join(&a, m.dirs.items[i], ".ninja_deps"), ninja_mend_deps, e) < 0)
			return -1;
	return fs_is_dir(build) ? remove_unlogged(&m, build, restarted, e) : 0;
}
