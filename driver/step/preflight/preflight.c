#include <stdarg.h>
#include <string.h>

#include "base/shell.h"
#include "core/code/decode.h"
#include "core/code/isa_rules.h"
#include "step/preflight/preflight_parts.h"

void preflight_add(struct preflight *d, enum preflight_level level, enum err_kind kind, const char *name,
		   const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (d->count < ARRAY_LEN(d->lines))
		d->lines[d->count++] = (struct preflight_line){.level = level,
							       .kind = kind,
							       .name = name,
							       .text = arena_vprintf(d->arena, fmt, args),
							       .fix = "",
							       .package = ""};
	va_end(args);
}

void preflight_fix(struct preflight *d, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	d->lines[d->count - 1].fix = arena_vprintf(d->arena, fmt, args);
	va_end(args);
}

/* The command that installs Debian's packages on this machine or in the root. */
static const char *install_command(const struct preflight *d, const char *packages, bool on_host)
{
	const struct root *r = d->q->root;
	if (on_host || r->host)
		return arena_printf(d->arena, "sudo apt-get install %s", packages);
	return arena_printf(d->arena, "sudo chroot %s sh -c 'apt-get update && apt-get install -y %s'",
			    shell_quoted(r->dir, d->arena), packages);
}

void preflight_install(struct preflight *d, const char *package, bool on_host)
{
	struct preflight_line *l = &d->lines[d->count - 1];
	const char *where = on_host || d->q->root->host ? "on this machine" : "in the root";
	l->package = package;
	l->on_host = on_host || d->q->root->host;
	if (*package && strncmp(d->q->root->id, "debian", 6) == 0)
		preflight_fix(d, "install %s: %s", package, install_command(d, package, on_host));
	else if (*package)
		preflight_fix(d, "install what Debian calls %s %s", package, where);
	else
		preflight_fix(d, "install it %s", where);
	if (!on_host)
		preflight_fix_world(d);
}

void preflight_fix_world(struct preflight *d)
{
	const char *fix = root_world_fix(d->q->root, d->arena);
	if (!fix)
		return;
	d->lines[d->count - 1].package = "";
	preflight_fix(d, "%s", fix);
}

int preflight_fail_err(struct preflight *d, const char *name, const struct err *why, struct err *e)
{
	if (why->kind == ERR_INTERRUPTED) {
		*e = *why;
		return -1;
	}
	preflight_fail(d, why->kind, name, "%s", why->msg);
	preflight_fix(d, "%s", why->hint);
	return 0;
}

int preflight_ask(struct preflight *d, const char *script, const struct strlist *args, struct preflight_answer *ret,
		  struct err *e)
{
	struct sandbox s;
	struct arena *a = d->arena;
	AUTO_BUF struct buf out = {0};
	struct strlist argv = {0};
	struct err why = {0};
	*ret = (struct preflight_answer){false, "", ""};
	if (sandbox_init(&s, d->q->kind, d->q->root, a, &why) == 0) {
		if (d->toolkit)
			toolkit_mount(d->toolkit, &s);
		kvlist_set(&s.env, a, "PATH", ROOT_PATH);
		kvlist_set(&s.env, a, "HOME", SANDBOX_HOME);
		kvlist_set(&s.env, a, "LC_ALL", "C.UTF-8");
		for (const char *const *word = (const char *const[]){"/bin/sh", "-c", script, "sh", NULL}; *word;
		     word++)
			strlist_ref(&argv, a, *word);
		strlist_append(&argv, a, args);
		ret->ok = sandbox_capture(&s, strlist_argv(&argv, a), d->run, &out, &why) == 0;
	}
	ret->text = arena_strdup(a, buf_cstr(&out));
	ret->why = arena_strdup(a, why.msg);
	if (why.kind != ERR_INTERRUPTED)
		return 0;
	*e = why;
	return -1;
}

bool preflight_is_taken(const struct preflight *d)
{
	return d->q->plan && d->q->plan->taken;
}

static size_t failures(const struct preflight *d)
{
	size_t n = 0;
	for (size_t i = 0; i < d->count; i++)
		n += d->lines[i].level == PREFLIGHT_FAILURE;
	return n;
}

/* Whether the tables can judge what this program's decoder finds in a wheel. */
static int check_decoder(struct preflight *d, struct err *e)
{
	const struct isa_rules *rules;
	struct err why = {0};
	char id[32];
	if (isa_rules_new(d->q->tables, d->arena, &rules, &why) < 0)
		return preflight_fail_err(d, "decoder", &why, e);
	preflight_ok(d, "decoder", "%s, and every set of it has a row", decoder_id(id));
	return 0;
}

int preflight_run(struct preflight *d, const struct preflight_request *q, const struct run *run, struct arena *a,
		  struct err *e)
{
	*d = (struct preflight){.q = q, .run = run, .arena = a, .toolchain = q->toolchain};
	const bool taken = preflight_is_taken(d);
	if (preflight_sandbox(d, e) < 0 || (!taken && preflight_machine(d, e) < 0))
		return -1;
	if (d->foreign)
		return 0;
	if (check_decoder(d, e) < 0)
		return -1;
	if (q->world) {
		preflight_ok(d, "world", "%s; compilers, Python and toolkit are in it", q->world);
		preflight_needs(d); /* those of this machine */
		return 0;
	}
	/* Nothing can be asked of a root that no sandbox shows. */
	if (d->lines[0].level == PREFLIGHT_FAILURE)
		return 0;
	if (taken)
		return preflight_python(d, e);
	if (preflight_tools(d, e) < 0)
		return -1;
	preflight_needs(d);
	if (preflight_python(d, e) < 0)
		return -1;
	/* What follows runs compilers, in a shell. */
	if (!d->toolchain || (!q->whole && failures(d)))
		return 0;
	if ((!q->tried && preflight_compiler(d, e) < 0) || preflight_torch(d, e) < 0)
		return -1;
	return preflight_cuda(d, e);
}

/* All packages by one command for each place, then what else is to be done. */
static const char *what_to_do(const struct preflight *d)
{
	struct strlist all = {0};
	for (int host = 1; host >= 0; host--) {
		struct strlist packages = {0};
		for (size_t i = 0; i < d->count; i++) {
			const struct preflight_line *l = &d->lines[i];
			if (l->level == PREFLIGHT_FAILURE && *l->package && l->on_host == (host != 0) &&
			    !strlist_contains(&packages, l->package))
				strlist_ref(&packages, d->arena, l->package);
		}
		if (packages.count && strncmp(d->q->root->id, "debian", 6) == 0)
			strlist_ref(&all, d->arena,
				    install_command(d, strlist_join(&packages, d->arena, " "), host != 0));
	}
	for (size_t i = 0; i < d->count; i++) {
		const struct preflight_line *l = &d->lines[i];
		bool told = *l->package && strncmp(d->q->root->id, "debian", 6) == 0;
		if (l->level == PREFLIGHT_FAILURE && *l->fix && !told && !strlist_contains(&all, l->fix))
			strlist_ref(&all, d->arena, l->fix);
	}
	return strlist_join(&all, d->arena, "\n");
}

int preflight_verdict(const struct preflight *d, struct err *e)
{
	struct strlist texts = {0};
	const struct preflight_line *last = NULL;
	enum err_kind kind = ERR_POLICY;
	for (size_t i = 0; i < d->count; i++) {
		const struct preflight_line *l = &d->lines[i];
		if (l->level != PREFLIGHT_FAILURE)
			continue;
		last = l;
		strlist_addf(&texts, d->arena, "%s: %s", l->name, l->text);
		/* What the machine lacks comes before what does not go together, since it explains it. */
		if (l->kind != ERR_POLICY)
			kind = ERR_SYSTEM;
	}
	if (!last)
		return 0;
	const char *what = d->q->plan ? d->q->plan->variant : d->q->release->name;
	const char *done = preflight_is_taken(d) ? "taken" : "built";
	if (texts.count == 1) {
		err_set(e, kind, "%s cannot be %s here: %s", what, done, texts.items[0]);
		return *last->fix ? err_hint(e, "%s", last->fix) : -1;
	}
	err_set(e, kind, "%s cannot be %s here, for %zu reasons:\n  %s", what, done, texts.count,
		strlist_join(&texts, d->arena, "\n  "));
	return err_hint(e, "%s", what_to_do(d));
}
