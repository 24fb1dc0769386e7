/* "ptbuild world lock": what the archive's present packages would change in the lock of a part. */

#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "cmd/world.h"
#include "step/fetch/archives.h"
#include "step/fetch/wheel_index.h"
#include "step/lock/lock_files.h"
#include "step/lock/lock_make.h"

#define ARCHIVE "debian"
#define MANIFEST_MAX (4U << 20) /* a hundred times the largest there is */

static int read_lock(const char *profiles, const char *part, const char *platform, struct arena *a,
		     const struct world_lock **ret, struct err *e)
{
	const char *path = world_lock_path(profiles, part, platform, a);
	struct world_lock *lock = arena_alloc(a, sizeof(*lock));
	*ret = NULL;
	if (!fs_exists(TRUSTED, path))
		return 0;
	if (world_lock_read(path, a, lock, e) < 0)
		return -1;
	*ret = lock;
	return 0;
}

/* What a toolkit lies on. */
static int add_base(struct cmd_context *c, const char *profiles, struct lock_request *q, struct err *e)
{
	const struct world_options *o = c->options;
	bool is_base = strcmp(q->part->kind, "base") == 0;
	if (is_base && o->base)
		return err_set(e, ERR_USAGE, "--base %s does not apply: '%s' is a base", o->base, q->part->part);
	if (is_base)
		return 0;
	if (!o->base) {
		err_set(e, ERR_USAGE, "'%s' lies on a base, and no --base says on which", q->part->part);
		return err_hint(e, "for example --base debian13");
	}
	if (world_part_load(profiles, o->base, c->arena, &q->base, e) < 0 ||
	    read_lock(profiles, o->base, q->platform, c->arena, &q->base_lock, e) < 0)
		return -1;
	if (q->base_lock)
		return 0;
	err_set(e, ERR_CONFIG, "the base '%s' has no lock for '%s'", o->base, q->platform);
	return err_hint(e, "make it first: ptbuild world lock %s --platform %s --write", o->base, q->platform);
}

static int find_archives(struct cmd_context *c, struct store *store, const struct fetch_options *o,
			 const struct world_part *p, const char *platform, struct world_entry **ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const char *file;
	if (fetch_page(store, p->manifest, NULL, MANIFEST_MAX, o, c->run, c->arena, &file, e) < 0 ||
	    fs_read(TRUSTED, file, MANIFEST_MAX, &text, e) < 0)
		return -1;
	return lock_redist(text.data, text.len, p->manifest, p->archives, p->archives_count, platform, c->arena, ret,
			   e);
}

/* The wheels and the archives that a part asks for, as the Python index and NVIDIA's manifest have them now, in the
 * place of those in the lock. What a python asks for is pinned by hand and stays. */
static int lock_files(struct cmd_context *c, const struct world_part *p, struct world_lock *l, struct err *e)
{
	struct fetch_options fetch;
	struct store *store;
	struct world_entry *wheels = arena_array(c->arena, p->wheels_count + 1, sizeof(*wheels)), *archives = NULL;
	if (strcmp(p->kind, "python") == 0) {
		/* "cpython==3.12.7+20241008" is in the lock, by hand. */
		const char *equals = strstr(p->archives[0], "==");
		for (size_t i = 0; equals && i < l->count; i++)
			if (strncmp(l->entries[i].name, p->archives[0], (size_t)(equals - p->archives[0])) == 0 &&
			    strcmp(l->entries[i].version, equals + 2) == 0)
				return 0;
		err_set(e, ERR_CONFIG, "the lock of '%s' for %s has no '%s'", p->part, l->platform, p->archives[0]);
		return err_hint(e, "no list of such archives is read: write its line, with a sha256 that you trust");
	}
	if (cmd_fetch_options(c, &fetch, e) < 0 || cmd_store(c, &store, e) < 0)
		return -1;
	for (unsigned i = 0; i < p->wheels_count; i++) {
		struct wheel_page page;
		if (wheel_list(store, p->wheels[i], &fetch, c->run, c->arena, &page, e) < 0 ||
		    lock_wheel(p->wheels[i], l->platform, page.files, page.count, c->arena, &wheels[i], e) < 0)
			return -1;
	}
	if (p->archives_count && find_archives(c, store, &fetch, p, l->platform, &archives, e) < 0)
		return -1;
	lock_replace(l, WORLD_WHEEL, wheels, p->wheels_count, c->arena);
	lock_replace(l, WORLD_FILE, archives, p->archives_count, c->arena);
	return 0;
}

static int make_lock(struct cmd_context *c, const char *profiles, const struct world_part *p, const char *platform,
		     const struct world_lock *before, struct world_lock *ret, struct err *e)
{
	const struct world_options *o = c->options;
	struct lock_request q = {.part = p,
				 .platform = platform,
				 .archive = ARCHIVE,
				 .before = before,
				 .keyring = o->keyring ? cmd_absolute(c->arena, o->keyring) : NULL};
	struct fetch_options fetch;
	struct strlist addresses = {0};
	struct store *store;
	char asked[65];
	if (!p->packages_count) {
		world_part_asked(p, asked);
		*ret = before ? *before : (struct world_lock){.part = p->part, .platform = platform};
		ret->asked = arena_strdup(c->arena, asked);
		return lock_files(c, p, ret, e);
	}
	q.addresses = &addresses;
	if (add_base(c, profiles, &q, e) < 0 || cmd_fetch_options(c, &fetch, e) < 0 || cmd_store(c, &store, e) < 0 ||
	    fetch_archive(store, ARCHIVE, p->suite, &fetch, c->run, c->arena, &addresses, e) < 0 ||
	    lock_make(&q, c->run, c->arena, ret, e) < 0)
		return -1;
	return p->wheels_count + p->archives_count ? lock_files(c, p, ret, e) : 0;
}

static json_t *diff_json(const struct lock_diff *d)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < d->count; i++) {
		const struct lock_change *x = &d->changes[i];
		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:o, s:o, s:I, s:b}", "kind", x->kind, "name", x->name,
						"before", json_or_null(x->before), "after", json_or_null(x->after),
						"bytes", (json_int_t)x->size, "same_version", x->same_version));
	}
	return rows;
}

static const struct show lock_rows[] = {
	{.text = "[{!before}+][{!after}-][{?same_version}!][{!same_version}{?before}{?after} ] {kind:<5} {name} "
		 "[{before}][{!same_version}{?before} -> {after}][{!before}{after}, {bytes:MB}]"
		 "[{?same_version}: other bytes or place of one version]",
	 .each = "changes"},
	{.text = "{part} {platform}: {files} files, {bytes:MB}[, index of {date}]: {added} added, {removed} removed, "
		 "{changed} changed[{?other_request}, the table asks for something else than before]"},
	{.text = "written to {written}"},
	{0}};

int world_lock(struct cmd_context *c, const char *name, struct err *e)
{
	const struct world_options *o = c->options;
	const char *profiles, *platform, *written = NULL;
	const struct world_part *p;
	const struct world_lock *before;
	struct world_lock after;
	struct lock_diff d;
	if (world_platform(c, &platform, e) < 0 || cmd_profiles_dir(c, &profiles, e) < 0 ||
	    world_part_load(profiles, name, c->arena, &p, e) < 0 || world_part_check_platform(p, platform, e) < 0 ||
	    read_lock(profiles, name, platform, c->arena, &before, e) < 0 ||
	    make_lock(c, profiles, p, platform, before, &after, e) < 0)
		return -1;
	lock_compare(before, &after, c->arena, &d);
	if (o->write && (!before || d.count || d.other_request)) {
		written = world_lock_path(profiles, name, platform, c->arena);
		if (world_lock_save(&after, written, e) < 0)
			return e->kind == ERR_INTEGRITY ? -1
							: err_hint(e, "give a directory of tables that you may write "
								      "with --profiles DIR");
	}
	return cmd_show(c,
			json_pack("{s:i, s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:I, s:I, s:I, s:o, s:o}", "schema", 1,
				  "part", after.part, "platform", after.platform, "suite", after.suite, "date",
				  after.date, "files", (json_int_t)after.count, "bytes",
				  (json_int_t)world_lock_bytes(&after), "other_request", d.other_request, "added",
				  (json_int_t)d.added, "removed", (json_int_t)d.removed, "changed",
				  (json_int_t)d.changed, "changes", diff_json(&d), "written", json_or_null(written)),
			lock_rows, e);
}
