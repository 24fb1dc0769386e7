#include "step/build.h"

#include <string.h>

#include "base/fs.h"
#include "base/path.h"
#include "step/build_parts.h"

int build_prepare(const struct build_request *q, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct sandbox s;
	const char *log;
	const struct package_row *row = q->plan->package_row;
	if (build_start_log(q, &a, &log, e) != 0 || build_sandbox(q, &a, &s, e) != 0)
		return -1;
	kvlist_set(&s.env, &a, "PATH", "/usr/bin:/bin");
	kvlist_set(&s.env, &a, "LC_ALL", "C.UTF-8");
	for (unsigned i = 0; i < row->prepare_count; i++) {
		struct strlist argv = {0};
		struct proc_result res;
		for (unsigned k = 0; k < row->prepare[i].argv_count; k++)
			strlist_add(&argv, &a, row->prepare[i].argv[k]);
		s.cwd = path_join(&a, SANDBOX_SRC, row->prepare[i].dir);
		const struct build_command c = {.q = q,
						.sandbox = &s,
						.argv = strlist_argv(&argv, &a),
						.step = arena_printf(&a, "prepare (%s)", strlist_join(&argv, &a, " ")),
						.log = log};
		if (build_command_run(&c, run, &res, e) != 0)
			return -1;
	}
	return 0;
}

/* ccache's log of statistics: a line per compilation that names the counter. */
static void count_cache(const char *path, struct build_result *r)
{
	AUTO_BUF struct buf text = {0};
	struct err ignored = {0};
	if (!fs_exists(path) || fs_read(path, UINT64_C(256) << 20, &text, &ignored) != 0)
		return;
	char *next = NULL;
	for (char *line = text.len ? text.data : NULL; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (strcmp(line, "direct_cache_hit") == 0 || strcmp(line, "preprocessed_cache_hit") == 0)
			r->cache_hits++;
		else if (strcmp(line, "cache_miss") == 0)
			r->cache_misses++;
	}
}

static int one_wheel(const char *dir, struct arena *a, const char **ret, struct err *e)
{
	struct strlist names = {0};
	const char *found = NULL;
	if (fs_list(dir, a, &names, e) != 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (!path_has_suffix(names.items[i], ".whl"))
			continue;
		if (found)
			return err_set(e, ERR_BUILD, "the build left more than one wheel in '%s': '%s' and '%s'", dir, found,
				       names.items[i]);
		found = names.items[i];
	}
	if (!found)
		return err_set(e, ERR_BUILD, "the build ended well but left no wheel in '%s'", dir);
	*ret = path_join(a, dir, found);
	return 0;
}

int build_run(const struct build_request *q, const struct run *run, struct arena *a, struct build_result *ret, struct err *e)
{
	struct build_result r = {0};
	struct sandbox s;
	const struct backend *b;
	struct proc_result res;
	const char *src = path_join(a, q->build_dir, "src");
	if (backend_find(q->plan->package_row->backend, &b, e) != 0 || build_set_up(q, b, a, &s, &r, e) != 0)
		return -1;
	r.resumed = fs_exists(path_join(a, src, "build"));
	if (b->configure) {
		const struct build_command configure = {.q = q, .sandbox = &s, .argv = b->configure, .step = "configure", .log = r.log};
		struct asked_report early = {0};
		if (build_command_run(&configure, run, &res, e) != 0)
			return -1;
		r.seconds += res.seconds;
		/* An hour of compiling the wrong thing is saved by looking now. */
		if (asked_tree(q->plan, src, r.log, b->cmake, &early, e) != 0)
			return err_wrap(e, "%s", q->plan->package);
	}
	const struct build_command build = {.q = q, .sandbox = &s, .argv = b->build, .step = "build", .log = r.log};
	if (build_command_run(&build, run, &res, e) != 0)
		return -1;
	r.seconds += res.seconds;
	if (asked_tree(q->plan, src, r.log, b->cmake, &r.asked, e) != 0)
		return err_wrap(e, "%s", q->plan->package);
	const char *out = path_join(a, q->build_dir, "out");
	if (one_wheel(out, a, &r.raw_wheel, e) != 0)
		return -1;
	count_cache(path_join(a, out, "ccache.stats"), &r);
	*ret = r;
	return 0;
}
