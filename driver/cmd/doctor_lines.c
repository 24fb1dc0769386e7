#include "cmd/doctor_lines.h"

#include <stdarg.h>
#include <string.h>

#include "base/sys/json.h"
#include "cmd/help.h"

void doctor_add(struct doctor *d, enum doctor_level level, enum err_kind kind, const char *name, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (d->count < ARRAY_LEN(d->lines))
		d->lines[d->count++] =
			(struct doctor_line){level, kind, name, arena_vprintf(d->c->arena, fmt, args), ""};
	va_end(args);
}

void doctor_fix(struct doctor *d, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	d->lines[d->count - 1].fix = arena_vprintf(d->c->arena, fmt, args);
	va_end(args);
}

int doctor_fail_err(struct doctor *d, const char *name, const struct err *why, struct err *e)
{
	if (why->kind == ERR_INTERRUPTED) {
		*e = *why;
		return -1;
	}
	doctor_fail(d, why->kind, name, "%s", why->msg);
	doctor_fix(d, "%s", why->hint);
	return 0;
}

int doctor_ask(struct doctor *d, const char *script, const struct strlist *args, struct doctor_answer *ret,
	       struct err *e)
{
	struct sandbox s;
	struct arena *a = d->c->arena;
	AUTO_BUF struct buf out = {0};
	struct strlist argv = {0};
	struct err why = {0};
	*ret = (struct doctor_answer){false, "", ""};
	if (sandbox_init(&s, cmd_sandbox(d->c), d->root, a, &why) == 0) {
		if (d->toolkit)
			toolkit_mount(d->toolkit, &s);
		kvlist_set(&s.env, a, "PATH", ROOT_PATH);
		kvlist_set(&s.env, a, "LC_ALL", "C.UTF-8");
		strlist_ref(&argv, a, "/bin/sh");
		strlist_ref(&argv, a, "-c");
		strlist_ref(&argv, a, script);
		strlist_ref(&argv, a, "sh");
		strlist_append(&argv, a, args);
		ret->ok = sandbox_capture(&s, strlist_argv(&argv, a), d->c->run, &out, &why) == 0;
	}
	ret->line = arena_strndup(a, buf_cstr(&out), strcspn(buf_cstr(&out), "\n"));
	ret->why = arena_strdup(a, why.msg);
	if (why.kind != ERR_INTERRUPTED)
		return 0;
	*e = why;
	return -1;
}

static const char *const level_names[] = {"ok", "warning", "failure"};

static int print_json(const struct doctor *d, struct err *e)
{
	json_t *list = json_array();
	enum doctor_level worst = DOCTOR_OK;
	for (size_t i = 0; i < d->count; i++) {
		const struct doctor_line *k = &d->lines[i];
		worst = k->level > worst ? k->level : worst;
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:o, s:o}", "name", k->name, "level", level_names[k->level],
						"text", json_or_null(k->text), "fix", json_or_null(k->fix)));
	}
	AUTO_JSON json_t *doc =
		json_pack("{s:i, s:o, s:s, s:o, s:s, s:o}", "schema", 1, "root", json_or_null(d->root->dir), "release",
			  d->release->name, "variant", json_or_null(d->plan ? d->plan->variant : NULL), "worst",
			  level_names[worst], "checks", list);
	return json_print(doc, e);
}

int doctor_print(const struct doctor *d, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	if (d->c->global->json)
		return print_json(d, e);
	buf_printf(&out, "root %s (%s), release %s%s%s\n", d->root->dir, d->root->id, d->release->name,
		   d->plan ? ", " : "", d->plan ? d->plan->variant : "");
	for (size_t i = 0; i < d->count; i++) {
		const struct doctor_line *k = &d->lines[i];
		buf_printf(&out, "%-8s %-12s %s\n", level_names[k->level], k->name, k->text);
		if (*k->fix)
			buf_printf(&out, "%-8s %-12s -> %s\n", "", "", k->fix);
	}
	return cmd_write_stdout(&out, e);
}

/* What the machine lacks comes before what does not go together, since it explains it. */
int doctor_verdict(const struct doctor *d, struct err *e)
{
	size_t failures = 0;
	enum err_kind kind = ERR_POLICY;
	for (size_t i = 0; i < d->count; i++) {
		if (d->lines[i].level != DOCTOR_FAILURE)
			continue;
		failures++;
		if (d->lines[i].kind != ERR_POLICY)
			kind = ERR_SYSTEM;
	}
	if (failures == 0)
		return 0;
	return err_set(e, kind, "this machine cannot build it: %zu of %zu checks failed", failures, d->count);
}
