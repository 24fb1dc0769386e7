/* Which of the pinned official wheels are meant. */
#include "cmd/select.h"
#include "core/wheel/wheel.h"

static int by_version(const void *x, const void *y)
{
	return version_cmp(*(const char *const *)x, *(const char *const *)y);
}

static bool is_wanted(const struct official *all, const struct cmd_official *q, const char *dist, struct arena *a)
{
	return strlist_contains(&q->dists, dist) || (q->all && official_has(all, dist, a));
}

static bool has_all(const struct official *all, const struct cmd_official *q, const char *python, struct arena *a)
{
	const struct official_wheel *w;
	for (size_t i = 0; i < TABLES_PACKAGES; i++) {
		const char *dist = tables_distribution(tables_packages[i]);
		if (is_wanted(all, q, dist, a) &&
		    official_find(all, dist, python, q->platform, q->cuda, a, &w, ERR_IGNORED) < 0)
			return false;
	}
	return true;
}

/* The Pythons for which all wheels are there, the newest last. */
static void list_pythons(const struct official *all, const struct cmd_official *q, struct arena *a, struct strlist *ret)
{
	for (size_t i = 0; i < all->count; i++) {
		const char *tag = all->wheels[i].name.python;
		if (strncmp(tag, "cp3", 3) != 0)
			continue;
		const char *python = arena_printf(a, "3.%s", tag + 3);
		if (has_all(all, q, python, a))
			strlist_once(ret, a, python);
	}
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), by_version);
}

int cmd_official_python(struct cmd_context *c, const struct official *all, const struct cmd_official *q,
			const char **ret, struct err *e)
{
	const struct tables *t;
	struct cmd_python p = {.platform = q->platform, .wheels = true};
	if (cmd_tables(c, &t, e) < 0)
		return -1;
	p.release = text_search(q->release, t->releases, t->releases_count, sizeof(*t->releases));
	list_pythons(all, q, c->arena, &p.pythons);
	if (p.pythons.count)
		return cmd_python(c, &p, ret, e);
	*ret = "3.13"; /* official_find says what there is */
	return 0;
}

/* The tables say which GPUs the toolkit of the wheel has code for. */
static bool has_targets(const struct tables *t, const struct release_row *r, const struct official *all,
			const struct cmd_official *q, const char *python, struct arena *a)
{
	const struct official_wheel *w;
	if (official_find(all, "torch", python, q->platform, q->cuda, a, &w, ERR_IGNORED) < 0)
		return false;
	const char *own = r->toolkits_count ? r->toolkits[0] : NULL; /* where the index does not say */
	const char *cuda = strcmp(w->cuda, "-") == 0 ? own : w->cuda;
	for (size_t i = 0; i < q->gpus.count; i++) {
		const struct gpu_target target = {.row = tables_gpu(t, q->gpus.items[i]), .suffix = ""};
		if (target.row && !plan_takes_target(r, PACKAGE_TORCH, cuda, &target))
			return false;
	}
	return true;
}

int cmd_official_newest(struct cmd_context *c, const struct cmd_official *q, const char *python, const char **ret,
			struct err *e)
{
	const struct tables *t;
	if (cmd_tables(c, &t, e) < 0)
		return -1;
	for (unsigned i = t->releases_count; i-- > 0;) {
		const struct release_row *r = &t->releases[i];
		struct strlist pythons = {0};
		struct official all;
		/* also one that is built only for those who name it: its wheels are pinned */
		if (strcmp(r->name, r->base) != 0 || official_read(t->dir, r->name, c->arena, &all, ERR_IGNORED) < 0)
			continue;
		list_pythons(&all, q, c->arena, &pythons);
		const char *for_python = python && strlist_contains(&pythons, python) ? python : NULL;
		if (!python && pythons.count)
			for_python = pythons.items[pythons.count - 1];
		if (!for_python || !has_targets(t, r, &all, q, for_python, c->arena))
			continue;
		log_info(c->run->log, "the latest release with these wheels is %s", r->name);
		*ret = r->name;
		return 0;
	}
	err_set(e, ERR_CONFIG, "no release has official wheels of what is asked");
	return err_hint(e, "name one with --release; 'ptbuild list --releases' lists them");
}
