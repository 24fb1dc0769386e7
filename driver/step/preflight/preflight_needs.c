/* What the table needs.yaml asks for, found without running anything. */
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/elf/elf.h"
#include "step/preflight/preflight_parts.h"

static bool is_for(const char *asked, const char *name)
{
	return !*asked || strcmp(asked, name) == 0;
}

/* Without a plan only what every build of the release needs. */
bool preflight_wants(const struct preflight *d, const struct need_row *row)
{
	const struct plan *p = d->q->plan;
	if (!is_for(row->release, d->q->release->name) || (!p && (*row->package || *row->toggle)))
		return false;
	if (p && !is_for(row->package, p->package))
		return false;
	const char *value = *row->toggle ? settings_value(&p->env, row->toggle) : "1";
	return value && (strcmp(value, "ON") == 0 || strcmp(value, "1") == 0);
}

/* In /usr/local/include, /usr/include and the directory of the platform below it. */
static const char *find_header(const struct preflight *d, const char *name)
{
	struct strlist dirs = {0};
	struct err ignored = {0};
	strlist_ref(&dirs, d->arena, "/usr/local/include");
	strlist_ref(&dirs, d->arena, "/usr/include");
	if (root_library_dirs(d->q->root, d->arena, &dirs, &ignored) < 0)
		err_clear(&ignored);
	for (size_t i = 0; i < dirs.count; i++) {
		const char *below = path_below(dirs.items[i], "/usr/lib");
		const char *dir = below ? path_join(d->arena, "/usr/include", below) : dirs.items[i];
		const char *path = root_resolve(d->q->root, path_join(d->arena, dir, name), d->arena);
		struct stat st;
		if (path && stat(root_host_path(d->q->root, path, d->arena), &st) == 0 && S_ISREG(st.st_mode))
			return path;
	}
	return NULL;
}

/* Where the package's build finds a program, which is not all of ROOT_PATH. */
const char *preflight_find_program(const struct preflight *d, const char *name)
{
	struct strlist dirs = {0};
	const char *path = d->q->plan ? settings_value(&d->q->plan->env, "PATH") : NULL, *found = NULL;
	if (!path)
		return root_find_program(d->q->root, name, d->arena);
	strlist_split(&dirs, d->arena, path, ":");
	for (size_t i = 0; i < dirs.count && !found; i++)
		found = root_find_program(d->q->root, path_join(d->arena, dirs.items[i], name), d->arena);
	return found;
}

/* An old one writes libraries that do not load. */
static bool is_old(struct preflight *d, const char *name)
{
	struct err why = {0};
	if (strcmp(name, "patchelf") != 0 || elf_check_patchelf(d->run, &why) == 0)
		return false;
	preflight_fail(d, ERR_SYSTEM, name, "%s", why.msg);
	preflight_fix(d, "%s", why.hint);
	return true;
}

/* False if it is missing. */
static bool check_row(struct preflight *d, const struct need_row *row)
{
	const char *name = *row->program ? row->program : row->header, *path;
	if (row->host)
		path = proc_find(d->arena, name);
	else
		path = *row->program ? preflight_find_program(d, name) : find_header(d, name);
	if (path && row->host && is_old(d, name))
		return false;
	if (path && *row->program)
		preflight_ok(d, name, "%s", path);
	if (path)
		return true;
	preflight_fail(d, ERR_SYSTEM, name, "not %s '%s': %s", row->host ? "in PATH of" : "in the root",
		       row->host ? "this machine" : d->q->root->dir, row->why);
	preflight_install(d, row->debian, row->host);
	return false;
}

void preflight_needs(struct preflight *d)
{
	const struct tables *t = d->q->tables;
	unsigned headers = 0;
	for (unsigned i = 0; i < t->needs_count; i++) {
		const struct need_row *row = &t->needs[i];
		if (d->q->world && !row->host) /* a world that is to be made has it */
			continue;
		if ((*row->program || *row->header) && preflight_wants(d, row) && check_row(d, row))
			headers += *row->header != '\0';
	}
	if (headers)
		preflight_ok(d, "headers", "%u of them are there", headers);
}
