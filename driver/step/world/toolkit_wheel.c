#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/path.h"
#include "core/zip/zip.h"
#include "step/world/toolkit_parts.h"

/* A path of the wheel's .dist-info: its licence, or nothing to keep. */
static const char *dist_info(const char *component, const char *path, struct arena *a)
{
	const char *name = path_base(path);
	return strncasecmp(name, "license", 7) == 0 ? arena_printf(a, "share/doc/%s/%s", component, name) : NULL;
}

/* Where an entry goes: NULL with *ret_known: it is left out. */
static const char *place_of(const struct toolkit_tree *t, const struct toolkit_file *f, const char *name,
			    bool *ret_known, struct arena *a)
{
	const char *slash = strchr(name, '/');
	*ret_known = true;
	if (slash && slash - name > 10 && strncmp(slash - 10, ".dist-info", 10) == 0)
		return dist_info(f->name, name, a);
	for (unsigned i = 0; i < t->rules->wheel_dirs_count; i++) {
		const char *rest = path_below(name, t->rules->wheel_dirs[i]);
		if (rest)
			return toolkit_rules_map(t->rules, t->target, f->name, rest, a);
	}
	*ret_known = path_has_suffix(name, "/__init__.py");
	return NULL;
}

static int add_entry(struct toolkit_tree *t, const struct toolkit_file *f, const struct zip_reader *z,
		     const struct zip_entry *en, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	bool known;
	if (path_has_suffix(en->name, "/"))
		return 0;
	const char *path = place_of(t, f, en->name, &known, &a);
	if (!path && known)
		return 0;
	if (!path) {
		err_set(e, ERR_INTEGRITY, "has '%s', for which toolkit_tree.yaml has no place", en->name);
		return err_hint(e, "its directory is not among 'wheel_dirs'");
	}
	if (toolkit_tree_account(t, en->size, e) < 0)
		return -1;
	AUTO_FD int fd = toolkit_tree_add(t, path, e);
	if (fd < 0 || zip_extract_fd(z, en, fd, NULL, e) < 0)
		return -1;
	return toolkit_tree_done(&fd, en->mode & S_IXUSR, path, e);
}

int toolkit_wheel_unpack(struct toolkit_tree *t, const struct toolkit_file *f, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_ZIP struct zip_reader *z = NULL;
	if (zip_open(f->path, &a, &z, e) < 0)
		return -1;
	for (size_t i = 0; i < zip_count(z); i++)
		if (run_check(t->run, e) < 0 || add_entry(t, f, z, zip_at(z, i), e) < 0)
			return -1;
	return 0;
}
