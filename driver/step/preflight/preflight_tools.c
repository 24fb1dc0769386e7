/* The tools of the root: there, and in the release's range. */
#include <string.h>

#include "base/version.h"
#include "step/preflight/preflight_parts.h"

static const char *range_of(const struct preflight *d, const char *tool)
{
	const struct release_row *r = d->q->release;
	const char *gcc = tables_gcc(r, d->q->plan ? d->q->plan->platform : "");
	const struct {
		const char *tool, *range;
	} ranges[] = {{"gcc", gcc}, {"g++", gcc}, {"cmake", r->cmake}, {"ninja", r->ninja}};
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (strcmp(tool, ranges[i].tool) == 0)
			return ranges[i].range ? ranges[i].range : "";
	return "";
}

static int check_tool(struct preflight *d, const struct need_row *row, struct err *e)
{
	const struct tool *t = toolchain_get(d->toolchain, row->tool);
	const char *range = range_of(d, row->tool);
	struct err why = {0};
	bool fits = true;
	if (!t) {
		preflight_fail(d, ERR_CONFIG, row->tool, "not one of the tools that ptbuild knows");
	} else if (t->path && !*t->version) {
		preflight_fail(d, ERR_SYSTEM, row->tool, "%s prints no version: is it broken?", t->path);
		preflight_install(d, row->debian, false);
	} else if (!t->path) {
		preflight_add(d, row->optional ? PREFLIGHT_WARNING : PREFLIGHT_FAILURE, ERR_SYSTEM, row->tool,
			      "not in the root '%s': %s", d->q->root->dir, row->why);
		preflight_install(d, row->debian, false);
	} else if (!row->optional && d->q->plan && settings_value(&d->q->plan->env, "PATH") &&
		   !preflight_find_program(d, row->tool)) {
		preflight_fail(d, ERR_SYSTEM, row->tool, "only as '%s', where a build does not look", t->path);
		preflight_install(d, row->debian, false);
	} else if (version_in(t->version, range, &fits, &why) < 0) {
		return preflight_fail_err(d, row->tool, &why, e);
	} else if (!fits) {
		preflight_fail(d, ERR_POLICY, row->tool, "%s is %s, release %s needs %s", t->path, t->version,
			       d->q->release->name, range);
		preflight_fix(d, "install a version in that range, or build in another root with --root DIR");
		preflight_fix_world(d);
	} else {
		preflight_ok(d, row->tool, "%s %s", t->path, t->version);
	}
	return 0;
}

/* "3.13" against "3.13.5". */
static bool is_of(const char *version, const char *minor)
{
	size_t n = strlen(minor);
	return strncmp(version, minor, n) == 0 && (version[n] == '.' || !version[n]);
}

static bool allowed(const struct release_row *r, const char *version)
{
	for (unsigned i = 0; i < r->pythons_count; i++)
		if (is_of(version, r->pythons[i]))
			return true;
	return false;
}

static int check_python(struct preflight *d, const struct need_row *row, struct err *e)
{
	const struct tool *t = toolchain_get(d->toolchain, "python3");
	if (!t->path || !*t->version)
		return check_tool(d, row, e);
	if (d->q->plan && !is_of(t->version, d->q->plan->python)) {
		preflight_fail(d, ERR_POLICY, "python3", "%s of the root '%s' is %s, the build is for Python %s",
			       t->path, d->q->root->dir, t->version, d->q->plan->python);
		preflight_fix(d,
			      "ask for the root's own Python (leave --python out), or name a root that has Python %s",
			      d->q->plan->python);
	} else if (!allowed(d->q->release, t->version)) {
		preflight_fail(d, ERR_POLICY, "python3", "%s is %s, which release %s does not build for", t->path,
			       t->version, d->q->release->name);
		preflight_fix(d, "use a root with a Python of 'ptbuild list --releases', or another release");
	} else {
		preflight_ok(d, "python3", "%s %s", t->path, t->version);
	}
	return 0;
}

int preflight_tools(struct preflight *d, struct err *e)
{
	const struct tables *t = d->q->tables;
	bool cmake = !d->q->plan || strcmp(d->q->plan->package_row->backend, "setuptools") != 0;
	struct err why = {0};
	if (!d->toolchain && toolchain_probe(d->q->root, d->q->kind, d->run, d->arena, &d->toolchain, &why) < 0)
		return preflight_fail_err(d, "tools", &why, e);
	for (unsigned i = 0; i < t->needs_count; i++) {
		const struct need_row *row = &t->needs[i];
		if (!*row->tool || !preflight_wants(d, row) || (!cmake && strcmp(row->tool, "cmake") == 0))
			continue;
		if ((strcmp(row->tool, "python3") == 0 ? check_python : check_tool)(d, row, e) < 0)
			return -1;
	}
	return 0;
}
