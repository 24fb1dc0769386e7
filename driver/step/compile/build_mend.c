#include "step/compile/build.h"

#include <string.h>

#include "base/os.h"
#include "base/path.h"
#include "base/sys/fs.h"
#include "core/ninja/ninja_file.h"
#include "core/ninja/ninja_log.h"
#include "step/compile/build_parts.h"

#define BUILD "build"
#define MARKER "src.ok"

struct mend {
	const char *src; /* all paths are below it */
	struct arena *arena;
	struct strlist dirs; /* that hold a .ninja_log */
};

/* Truncates a file to what `whole` says is whole. */
static int cut(const struct mend *m, const char *rel, size_t (*whole)(const char *data, size_t len), struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct stat st;
	if (fs_stat(m->src, rel, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (fs_read(m->src, rel, NINJA_FILE_MAX, &text, e) < 0)
		return -1;
	size_t n = whole(buf_cstr(&text), text.len);
	return n < text.len ? fs_truncate(m->src, rel, n, e) : 0;
}

/* Where an output lies; NULL outside of the source tree, also by way of a link. */
static const char *output_path(const struct mend *m, const char *dir, const char *output)
{
	const char *inside = path_below(output, SANDBOX_SRC);
	if (!inside)
		inside = *output == '/' ? output : path_join(m->arena, dir, output);
	return fs_resolve(m->src, inside, m->arena);
}

static int64_t mtime(const char *top, const char *rel)
{
	struct stat st;
	return fs_stat(top, rel, &st) == 0 ? st.st_mtim.tv_sec : INT64_MIN + MEND_WINDOW_S;
}

/* Removes what a log calls done but is empty or was written after `limit`. Returns how many files. */
static size_t remove_young(const struct mend *m, const char *dir, int64_t limit)
{
	struct err ignored = {0};
	struct ninja_log log;
	size_t removed = 0;
	if (ninja_log_read(m->src, path_join(m->arena, dir, ".ninja_log"), m->arena, &log, &ignored) < 0)
		return 0; /* ninja begins a new one then, and makes everything again */
	for (size_t i = 0; i < log.count; i++) {
		const char *path = output_path(m, dir, log.entries[i].output);
		struct stat st;
		if (path && fs_stat(m->src, path, &st) == 0 && S_ISREG(st.st_mode) &&
		    (st.st_size == 0 || st.st_mtim.tv_sec > limit))
			removed += fs_remove(m->src, path, &ignored) == 0;
	}
	return removed;
}

/* distutils keeps no log and goes by time stamps: half a library, left by a kill or a full disk while it was copied, is
 * newer than its origin and would go into the wheel. */
static int remove_unlogged(const struct mend *m, bool objects, struct err *e)
{
	struct strlist names = {0};
	if (fs_list(m->src, BUILD, m->arena, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *path = path_join(m->arena, BUILD, names.items[i]);
		bool logged = false;
		for (size_t k = 0; k < m->dirs.count; k++)
			logged = logged || strcmp(m->dirs.items[k], path) == 0 || path_below(m->dirs.items[k], path);
		bool made = strncmp(names.items[i], "lib.", 4) == 0 ||
			    (objects && strncmp(names.items[i], "temp.", 5) == 0) ||
			    strncmp(names.items[i], "bdist.", 6) == 0;
		if (made && !logged && fs_remove(m->src, path, e) < 0)
			return -1;
	}
	return 0;
}

static int after_restart(const struct mend *m, const char *build_dir, const struct run *run, struct err *e)
{
	size_t removed = 0;
	int64_t configured = mtime(m->src, BUILD "/CMakeCache.txt"), unpacked = mtime(build_dir, MARKER);
	int64_t latest = configured > unpacked ? configured : unpacked;
	for (size_t i = 0; i < m->dirs.count; i++) { /* ninja writes into its log whenever a command ends */
		int64_t logged = mtime(m->src, path_join(m->arena, m->dirs.items[i], ".ninja_log"));
		latest = logged > latest ? logged : latest;
	}
	const int64_t limit = latest - MEND_WINDOW_S;
	if (unpacked > limit) {
		log_info(run->log, "the machine went down soon after the sources were unpacked: unpacking them again");
		return fs_remove(build_dir, MARKER, e);
	}
	if (configured > limit) {
		log_info(run->log, "the machine went down soon after the configuration: configuring again");
		return fs_remove(m->src, BUILD, e);
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
	struct stat st;
	struct mend m = {.src = path_join(&a, build_dir, "src"), .arena = &a};
	if (!build_state_read(build_dir, &last) || fs_stat(build_dir, "src", &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	build_state_now(&now);
	bool restarted = strcmp(last.boot, now.boot) != 0;
	if (ninja_log_dirs(m.src, BUILD, &a, &m.dirs, e) < 0 || (restarted && after_restart(&m, build_dir, run, e) < 0))
		return -1;
	for (size_t i = 0; i < m.dirs.count; i++)
		if (cut(&m, path_join(&a, m.dirs.items[i], ".ninja_log"), ninja_mend_log, e) < 0 ||
		    cut(&m, path_join(&a, m.dirs.items[i], ".ninja_deps"), ninja_mend_deps, e) < 0)
			return -1;
	bool built = fs_stat(m.src, BUILD, &st) == 0 && S_ISDIR(st.st_mode);
	return built ? remove_unlogged(&m, restarted, e) : 0;
}
