#include "cmd/world_lock_files.h"

#include <string.h>

#include "base/sys/fs.h"
#include "step/fetch/wheel_list.h"
#include "step/lock/lock_files.h"

#define MANIFEST_MAX (4U << 20) /* a hundred times the largest there is */

static int find_wheel(struct cmd_context *c, struct store *store, const struct fetch_options *o, const char *asked,
		      const char *platform, struct world_entry *ret, struct err *e)
{
	struct wheel_page page;
	const char *name = arena_strndup(c->arena, asked, strcspn(asked, "="));
	if (wheel_list(store, name, o, c->run, c->arena, &page, e) < 0)
		return -1;
	struct lock_listed *files = arena_array(c->arena, page.count + 1, sizeof(*files));
	for (size_t i = 0; i < page.count; i++)
		files[i] = (struct lock_listed){page.files[i].name, page.files[i].sha256, page.files[i].size};
	return lock_wheel(asked, platform, files, page.count, c->arena, ret, e);
}

static int find_archives(struct cmd_context *c, struct store *store, const struct fetch_options *o,
			 const struct world_part *p, const char *platform, struct world_entry **ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const char *file;
	if (fetch_page(store, p->manifest, NULL, MANIFEST_MAX, o, c->run, c->arena, &file, e) < 0 ||
	    fs_read(file, MANIFEST_MAX, &text, e) < 0)
		return -1;
	return lock_redist(text.data, text.len, p->manifest, p->archives, p->archives_count, platform, c->arena, ret,
			   e);
}

/* "cpython==3.12.7+20241008" is in the lock, by hand. */
static int check_pinned(const struct world_part *p, const struct world_lock *l, struct arena *a, struct err *e)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->entries[i].kind == WORLD_FILE &&
		    strcmp(arena_printf(a, "%s==%s", l->entries[i].name, l->entries[i].version), p->archives[0]) == 0)
			return 0;
	err_set(e, ERR_CONFIG, "the lock of '%s' for %s has no '%s'", p->part, l->platform, p->archives[0]);
	return err_hint(e, "no list of such archives is read: write its line, with a sha256 that you trust");
}

int world_lock_files(struct cmd_context *c, const struct world_part *p, struct world_lock *l, struct err *e)
{
	struct fetch_options fetch;
	struct store *store;
	struct world_entry *wheels = arena_array(c->arena, p->wheels_count + 1, sizeof(*wheels)), *archives = NULL;
	if (strcmp(p->kind, "python") == 0)
		return check_pinned(p, l, c->arena, e);
	if (cmd_fetch_options(c, &fetch, e) < 0 || cmd_store(c, &store, e) < 0)
		return -1;
	for (unsigned i = 0; i < p->wheels_count; i++)
		if (find_wheel(c, store, &fetch, p->wheels[i], l->platform, &wheels[i], e) < 0)
			return -1;
	if (p->archives_count && find_archives(c, store, &fetch, p, l->platform, &archives, e) < 0)
		return -1;
	lock_replace(l, WORLD_WHEEL, wheels, p->wheels_count, c->arena);
	lock_replace(l, WORLD_FILE, archives, p->archives_count, c->arena);
	return 0;
}
