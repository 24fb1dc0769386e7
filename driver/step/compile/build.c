#include "step/compile/build.h"

#include <string.h>

#include "base/path.h"
#include "base/sys/build_user.h"
#include "base/sys/fs.h"
#include "base/sys/machine.h"
#include "base/utf8.h"
#include "core/root/sandbox_walls.h"
#include "step/compile/build_parts.h"
#include "step/compile/build_tree.h"

int build_prepare(const struct build_request *q, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct sandbox s;
	const char *log;
	const struct package_row *row = q->plan->package_row;
	if (build_start_log(q, &a, &log, e) < 0 || build_sandbox(q, &a, &s, e) < 0)
		return -1;
	kvlist_set(&s.env, &a, "PATH", root_build_path(q->root, &a));
	kvlist_set(&s.env, &a, "LC_ALL", "C.UTF-8");
	if (build_tree_save(q->build_dir, q->plan, &s, e) < 0)
		return -1;
	for (unsigned i = 0; i < row->prepare_count; i++) {
		struct strlist argv = {0};
		strlist_refs(&argv, &a, row->prepare[i].argv, row->prepare[i].argv_count);
		s.cwd = path_join(&a, SANDBOX_SRC, row->prepare[i].dir);
		struct build_outcome out;
		const struct build_command c = {.q = q,
						.sandbox = &s,
						.argv = strlist_argv(&argv, &a),
						.step = arena_printf(&a, "prepare (%s)", strlist_join(&argv, &a, " ")),
						.log = log};
		if (build_command_run(&c, false, run, &out, e) < 0)
			return -1;
		if (out.short_of_memory)
			return build_too_large(&c, out.why, machine_memory(), e);
	}
	return 0;
}

static int one_wheel(const struct build_request *q, struct arena *a, const char **ret, struct err *e)
{
	struct strlist names = {0};
	const char *found = NULL;
	const char *dir = path_join(a, q->rest_dir ? q->rest_dir : q->build_dir, "out");
	if (fs_list(q->build_dir, "out", a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (!path_has_suffix(names.items[i], ".whl"))
			continue;
		if (found)
			return err_set(e, ERR_BUILD, "the build left more than one wheel in '%s': '%s' and '%s'", dir,
				       utf8_printable(found, a), utf8_printable(names.items[i], a));
		found = names.items[i];
	}
	if (!found)
		return err_set(e, ERR_BUILD, "the build succeeded but left no wheel in '%s'", dir);
	*ret = path_join(a, dir, found);
	return 0;
}

static int configure(struct building *b, struct err *e)
{
	const struct build_command c = building_command(b, b->backend->configure, "configure");
	struct build_outcome out;
	struct config_report early = {0};
	if (build_command_run(&c, false, b->run, &out, e) < 0)
		return -1;
	b->result.seconds += out.seconds;
	if (out.short_of_memory)
		return build_too_large(&c, out.why, b->pools.memory, e);
	/* Checked now, before an hour of compiling the wrong thing. */
	if (check_config_tree(b->q->plan, b->q->build_dir, BUILD_TREE, BUILD_LOG, b->backend->cmake, &early, e) < 0)
		return err_wrap(e, "%s", b->q->plan->package);
	return 0;
}

static int configure_and_compile(struct building *b, struct err *e)
{
	if (building_save(b, true, e) < 0)
		return -1;
	int rc = b->backend->configure ? configure(b, e) : 0;
	if (rc == 0)
		rc = building_compile(b, e);
	/* A full disk has been reported already. */
	if (building_save(b, false, rc == 0 ? e : ERR_IGNORED) < 0 && rc == 0)
		rc = -1;
	return rc;
}

/* A setuid file in the tree would be its owner's for everybody who can reach the tree. */
static int drop_bits(const struct building *b, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	size_t inside = 0, beside = 0;
	const char *dir = b->q->build_dir;
	if (!sandbox_wall(b->run, WALL_SETUID))
		return 0;
	if (build_user_drop_bits(path_join(&a, dir, "src"), &inside, e) < 0 ||
	    build_user_drop_bits(path_join(&a, dir, "out"), &beside, e) < 0)
		return -1;
	if (inside + beside)
		log_warn(b->run->log, "%s: the build left %zu setuid or setgid files, which are plain ones now",
			 b->q->plan->package, inside + beside);
	return 0;
}

static int build_once(struct building *b, struct err *e)
{
	const struct build_request *q = b->q;
	struct build_result *r = &b->result;
	int rc = configure_and_compile(b, e);
	if (drop_bits(b, rc == 0 ? e : ERR_IGNORED) < 0 || rc < 0)
		return -1;
	r->pools = b->pools.now;
	r->jobs = b->pools.now.total;
	if (check_config_tree(q->plan, q->build_dir, BUILD_TREE, BUILD_LOG, b->backend->cmake, &r->checked, e) < 0)
		return err_wrap(e, "%s", q->plan->package);
	return !q->shard && one_wheel(q, b->arena, &r->raw_wheel, e) < 0 ? -1 : 0;
}

/* Whether it may be the tree's fault: that of a run that was killed, or anything but a unit that does not compile. */
static bool cannot_go_on(const struct building *b, const struct err *e)
{
	const bool killed = b->has_last && b->last.running;
	return (e->kind == ERR_BUILD || e->kind == ERR_POLICY || e->kind == ERR_INTEGRITY) && (killed || !b->unit);
}

/* What was compiled is in the compiler cache. */
static int begin_anew(struct building *b, struct err *e)
{
	log_warn(b->run->log, "%s; the build tree of an earlier run cannot be continued: beginning anew%s", e->msg,
		 b->q->ccache_dir ? ", with the compiler cache" : "");
	err_clear(e);
	b->result.resumed = b->has_last = b->unit = false;
	b->result.checked = (struct config_report){0};
	return fs_remove(b->q->build_dir, BUILD_TREE, e) < 0 ? -1 : build_once(b, e);
}

int build_run(const struct build_request *q, const struct run *run, struct arena *a, struct build_result *ret,
	      struct err *e)
{
	struct building b = {.q = q, .run = run, .arena = a, .began = log_seconds()};
	struct build_result *r = &b.result;
	if (backend_find(q->plan->package_row->backend, &b.backend, e) < 0 ||
	    (q->shard && backend_shares(b.backend, q->plan->package, e) < 0))
		return -1;
	build_pools_plan(q, &b.pools);
	if (build_set_up(q, b.backend, b.pools.now.total, a, &b.sandbox, r, e) < 0)
		return -1;
	building_begin(&b);
	if (q->kind == SANDBOX_BWRAP && sandbox_wall(run, WALL_USER) && build_user_state() == BUILD_USER_OWN)
		log_info(run->log, "%s: builds run as user %d, not as root, and their trees are that user's",
			 q->plan->package, BUILD_USER);
	r->memory = b.pools.memory;
	r->resumed = fs_exists(q->build_dir, BUILD_TREE);
	int rc = build_once(&b, e);
	if (rc < 0 && r->resumed && cannot_go_on(&b, e))
		rc = begin_anew(&b, e);
	if (rc < 0)
		return -1;
	if (r->checked.overridden)
		log_info(run->log, "%s: %zu of %zu units have CPU flags of their own behind the plan's, such as %s",
			 q->plan->package, r->checked.overridden, r->checked.host_units, r->checked.first_overridden);
	*ret = b.result;
	return 0;
}
