/* The packed wheel is verified in two ways at once: by its contents, on every processor, and by use, which waits for
 * Python most of the time. */
#include "base/path.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "base/thread.h"
#include "step/pipeline/make.h"

struct use {
	struct verify_run_request q;
	struct log log; /* quiet: the messages come from the check of the contents */
	struct run run;
	struct arena *arena;
	struct verify_run_result result;
	struct err err;
	int rc;
	pthread_t thread;
	bool started;
};

static void use_now(struct use *u)
{
	u->rc = fs_remove(TRUSTED, u->q.work_dir, &u->err) < 0 ||
				verify_run(&u->q, &u->run, u->arena, &u->result, &u->err) < 0
			? -1
			: 0;
}

static void *use_in_thread(void *user)
{
	use_now(user);
	return NULL;
}

/* Waits for the thread; where none could be started, does the work now. */
static void use_end(struct use *u)
{
	if (u->started)
		pthread_join(u->thread, NULL);
	else
		use_now(u);
}

static int verify_contents(struct make *m, struct err *e)
{
	struct promise promise;
	promise_of_plan(m->plan, m->arena, &promise);
	struct verify_request v = {.wheel = m->packed.path,
				   .temp_dir = m->build_dir, /* /tmp may be small */
				   .tables = m->q->tables,
				   .promise = &promise,
				   .code = m->code,
				   .policy = m->policy,
				   .provided = m->provided,
				   .expect_version = plan_full_version(m->plan, m->arena),
				   .expect_requires =
					   m->torch ? arena_printf(m->arena, "torch==%s", m->torch->version) : NULL};
	struct companions torch = {0};
	strlist_append(&v.provided, m->arena, &m->cuda.names);
	add_build_paths(m, &v.build_paths);
	if (companions_of_files(&m->torch_files, m->arena, &torch, e) < 0)
		return -1;
	v.companions = torch.items;
	v.companions_count = torch.count;
	if (verify_wheel(&v, m->run, m->arena, &m->verified, e) < 0)
		return -1;
	if (m->verified.errors == 0)
		return 0;
	AUTO_JSON json_t *doc = verify_json(&m->verified);
	err_set(e, ERR_POLICY, "the wheel of '%s' is not what it claims:\n%s", m->plan->variant,
		show_string(doc, verify_rows, m->arena));
	return err_hint(e, "the wheel is not kept; the build tree is '%s'", m->rest_dir ? m->rest_dir : m->build_dir);
}

/* Findings in the file come first: a wheel that is not what it claims may well fail when it is used, which says
 * less. */
int verify_made(struct make *m, struct err *e)
{
	AUTO_ARENA struct arena side = {0};
	struct use u = {
		.q = {.plan = m->plan,
		      .root = m->q->root,
		      .kind = m->q->kind,
		      .wheel = m->packed.path,
		      .torch_wheel = m->torch ? m->torch->wheel : NULL,
		      .checks_dir = m->checks_dir ? m->checks_dir : path_join(m->arena, m->q->profiles_dir, "checks"),
		      .venv = m->pyenv.dir,
		      .work_dir = path_join(m->arena, m->build_dir, "check")},
		.log = {.level = LOG_QUIET, .fd = m->run->log->fd},
		.arena = &side};
	u.run = (struct run){.log = &u.log, .cancel_fd = m->run->cancel_fd};
	u.started = thread_start(&u.thread, use_in_thread, &u) == 0;
	int rc = verify_contents(m, e);
	use_end(&u);
	if (rc < 0)
		return -1;
	if (u.rc < 0) {
		*e = u.err;
		return -1;
	}
	verify_run_copy(&u.result, m->arena, &m->used);
	if (!m->used.ran)
		log_warn(m->run->log, "%s was verified but not run: %s", m->packed.file, m->used.why_not);
	return 0;
}
