#include <string.h>

#include "base/path.h"
#include "base/shell.h"
#include "base/sys/fs.h"
#include "step/compile/build_parts.h"

/* Less than this left on the disk of the build tree counts as full. */
#define FULL_BYTES (UINT64_C(256) << 10)
#define RESUMES "the build tree is kept; the same command resumes the build"

static bool has_ninja(const char *src, const char *dir, struct arena *a)
{
	return fs_exists(src, path_join(a, dir, "build.ninja"));
}

/* The directory below src whose build.ninja makes the unit, relative to src; NULL if unknown. CMake names units
 * relative to its build directory, extensions of torch name them by full path. */
static const char *ninja_dir(const char *build_dir, const char *unit, struct arena *a)
{
	const char *src = path_join(a, build_dir, "src");
	if (*unit == '/') {
		/* without a sandbox: the tree's path on the host */
		const char *inside = path_below(unit, SANDBOX_SRC);
		if (!inside && !(inside = path_below(unit, src)))
			return NULL;
		for (const char *dir = path_dir(a, inside); strcmp(dir, ".") != 0 && *dir && *dir != '/';
		     dir = path_dir(a, dir))
			if (has_ninja(src, dir, a))
				return dir;
		return NULL;
	}
	struct strlist names = {0};
	if (fs_exists(build_dir, BUILD_NINJA))
		return "build";
	if (fs_list(build_dir, BUILD_TREE, a, &names, ERR_IGNORED) < 0)
		return NULL;
	for (size_t i = 0; i < names.count; i++) {
		const char *dir = path_join(a, "build", names.items[i]);
		if (has_ninja(src, dir, a))
			return dir;
	}
	return NULL;
}

/* "ptbuild shell VARIANT", with the options that find the tree. */
static const char *shell_command(const struct build_request *q, struct arena *a)
{
	return arena_printf(a, "ptbuild shell %s%s%s", shell_quoted(q->plan->variant, a), q->shell_options ? " " : "",
			    q->shell_options ? q->shell_options : "");
}

int build_failure(const struct build_command *c, const struct build_log *said, int status, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *package = c->q->plan->package;
	uint64_t free_bytes;
	/* Whatever the build said of a full disk: often it could not even write that. */
	if (fs_free_bytes(c->q->build_dir, &free_bytes, ERR_IGNORED) == 0 && free_bytes < FULL_BYTES) {
		err_set(e, ERR_SYSTEM, "%s: %s failed with status %d: no space left on the disk of '%s'", package,
			c->step, status, c->log);
		return err_hint(e, "make room, or name another place with --cache; " RESUMES);
	}
	/* A compiler takes back the file that it could not finish, so there is room again by now; or another disk is
	 * meant. */
	if (err_kind_of_words(said->error, ERR_BUILD) == ERR_SYSTEM) {
		err_set(e, ERR_SYSTEM, "%s: %s failed with status %d: %s", package, c->step, status, said->error);
		return err_hint(e,
				"this is a fault of the machine: mend it, or make room, or name another place with "
				"--cache\nthe whole log is '%s'; " RESUMES,
				c->log);
	}
	err_set(e, ERR_BUILD, "%s: %s failed with status %d: %s", package, c->step, status, said->error);
	if (c->ret_unit)
		*c->ret_unit = said->unit != NULL;
	const char *dir = said->unit ? ninja_dir(c->q->build_dir, said->unit, &a) : NULL;
	if (!dir)
		return err_hint(e, "inspect the build tree with: %s\nthe whole log is '%s'; " RESUMES,
				shell_command(c->q, &a), c->log);
	err_set(e, ERR_BUILD, "%s: %s failed with status %d in unit '%s': %s", package, c->step, status, said->unit,
		said->error);
	return err_hint(e, "build this unit alone with: %s -- ninja -C %s %s\nthe whole log is '%s'; " RESUMES,
			shell_command(c->q, &a), shell_quoted(dir, &a), shell_quoted(said->unit, &a), c->log);
}

int build_too_large(const struct build_command *c, const char *why, uint64_t memory, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	err_set(e, ERR_SYSTEM, "%s: %s does not fit into memory even with one job at a time (%.1f GiB free): %s",
		c->q->plan->package, c->step, (double)memory / (double)(UINT64_C(1) << 30), why);
	return err_hint(e,
			"give it more memory (a limit of the container or of a cgroup counts), or add swap; look with: "
			"%s\nthe whole log "
			"is '%s'; " RESUMES,
			shell_command(c->q, &a), c->log);
}
