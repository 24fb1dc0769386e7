/* The packed wheel is verified in two ways at once: by its contents, on every processor, and by use, which waits for
 * Python most of the time. */
#include "base/path.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "base/thread.h"
#include "step/pipeline/make.h"

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

/* By its contents and by use. */
struct both {
	struct make *m;
	struct verify_run_request q;
	struct log log; /* quiet: the messages come from the check of the contents */
	struct run run;
	struct arena arena;
	struct verify_run_result result;
	struct err err[2];
	int rc[2];
};

static void verify_one(unsigned i, void *user)
{
	struct both *b = user;
	struct err *e = &b->err[i];
	b->rc[i] = i == 0                                     ? verify_contents(b->m, e)
		   : fs_remove(TRUSTED, b->q.work_dir, e) < 0 ? -1
							      : verify_run(&b->q, &b->run, &b->arena, &b->result, e);
}

/* Findings in the file come first: a wheel that is not what it claims may well fail when it is used, which says
 * less. */
int verify_made(struct make *m, struct err *e)
{
	struct both b = {
		.m = m,
		.q = {.plan = m->plan,
		      .root = m->q->root,
		      .kind = m->q->kind,
		      .wheel = m->packed.path,
		      .torch_wheel = m->torch ? m->torch->wheel : NULL,
		      .checks_dir = m->checks_dir ? m->checks_dir : path_join(m->arena, m->q->profiles_dir, "checks"),
		      .venv = m->pyenv.dir,
		      .work_dir = path_join(m->arena, m->build_dir, "check")},
		.log = {.level = LOG_QUIET, .fd = m->run->log->fd}};
	b.run = (struct run){.log = &b.log, .cancel_fd = m->run->cancel_fd};
	thread_each(2, verify_one, &b);
	const int failed = b.rc[0] < 0 ? 0 : b.rc[1] < 0 ? 1 : -1;
	if (failed >= 0)
		*e = b.err[failed];
	else
		verify_run_copy(&b.result, m->arena, &m->used);
	arena_release(&b.arena);
	if (failed < 0 && !m->used.ran)
		log_warn(m->run->log, "%s was verified but not run: %s", m->packed.file, m->used.why_not);
	return failed < 0 ? 0 : -1;
}
