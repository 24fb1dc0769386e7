/* Which of the pinned official wheels are meant. */
#include "base/sys/machine.h"
#include "cmd/select.h"
#include "core/machine/host_python.h"
#include "core/machine/official_fit.h"
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

/* The targets, each with "sm", for which torch of the release has no code. */
static void list_lacking(const struct tables *t, const struct official *all, const struct cmd_official *q,
			 struct arena *a, struct strlist *ret)
{
	for (size_t i = 0; i < q->gpus.count; i++) {
		const struct gpu_row *row = tables_gpu(t, q->gpus.items[i]);
		if (!row || !official_serves(t, all, q->platform, row->capability))
			strlist_addf(ret, a, "sm%s", q->gpus.items[i]);
	}
}

/* torch's wheel, if it has CUDA, code for all targets, and a driver that runs it; NULL. */
static const struct official_wheel *serving(const struct tables *t, const struct official *all,
					    const struct cmd_official *q, const char *python, struct arena *a)
{
	const struct official_wheel *w;
	struct strlist lacking = {0};
	if (official_find(all, "torch", python, q->platform, q->cuda, a, &w, ERR_IGNORED) < 0)
		return NULL;
	if (strcmp(w->cuda, "-") == 0)
		return q->gpus.count ? NULL : w;
	if (q->machine && driver_fit(t, q->machine, w->cuda) == DRIVER_TOO_OLD)
		return NULL;
	list_lacking(t, all, q, a, &lacking);
	return lacking.count ? NULL : w;
}

/* torch's wheel of the newest release that serves what is asked; NULL: none. */
static const struct official_wheel *find_newest(const struct tables *t, const struct cmd_official *q,
						const char *python, struct arena *a, const char **ret_release)
{
	for (unsigned i = t->releases_count; i-- > 0;) {
		struct strlist pythons = {0};
		struct official all;
		*ret_release = t->releases[i].name;
		if (official_read(t->dir, *ret_release, a, &all, ERR_IGNORED) < 0)
			continue;
		const char *for_python = python && has_all(&all, q, python, a) ? python : NULL;
		if (!python) {
			list_pythons(&all, q, a, &pythons);
			for_python = pythons.count ? pythons.items[pythons.count - 1] : NULL;
		}
		const struct official_wheel *w = for_python ? serving(t, &all, q, for_python, a) : NULL;
		if (w)
			return w;
	}
	return NULL;
}

static char *targets_text(const struct cmd_official *q, struct arena *a)
{
	struct strlist names = {0};
	for (size_t i = 0; i < q->gpus.count; i++)
		strlist_addf(&names, a, "sm%s", q->gpus.items[i]);
	return strlist_join(&names, a, ", ");
}

static int hint_build(const struct cmd_official *q, struct arena *a, struct err *e)
{
	const bool arm = strncmp(q->platform, "aarch64", 7) == 0;
	return err_hint(e, "'ptbuild plan --profile sm%s-%s' shows a build for it", strlist_join(&q->gpus, a, "+sm"),
			arm ? "armv8_2" : "avx2");
}

int cmd_official_newest(struct cmd_context *c, const struct cmd_official *q, const char *python, const char **ret,
			struct err *e)
{
	const char *driver = q->machine ? " and this machine's driver" : "";
	const struct tables *t;
	if (cmd_tables(c, &t, e) < 0)
		return -1;
	struct host_python host = {0};
	const char *release, *targets = targets_text(q, c->arena);
	const struct official_wheel *w = NULL;
	if (!python && strcmp(q->platform, machine_platform(c->arena)) == 0)
		host_python(c->run, c->arena, &host);
	if (host.version)
		w = find_newest(t, q, host.version, c->arena, &release);
	if (!w)
		w = find_newest(t, q, python, c->arena, &release);
	if (w) {
		log_info(c->run->log, "release %s with CUDA %s: the newest official torch for %s%s; --release chooses",
			 release, w->cuda, targets, driver);
		*ret = release;
		return 0;
	}
	err_set(e, ERR_POLICY, "no official torch is for %s%s%s%s", targets, driver, python ? " and Python " : "",
		python ? python : "");
	if (q->machine)
		return err_hint(e, "update the driver ('ptbuild detect' shows which CUDA it runs), or choose with "
				   "--release");
	return hint_build(q, c->arena, e);
}

int cmd_official_check(struct cmd_context *c, const struct cmd_official *q, const char *python, struct err *e)
{
	struct strlist lacking = {0};
	struct official all;
	const struct tables *t;
	if (cmd_tables(c, &t, e) < 0 || official_read(t->dir, q->release, c->arena, &all, e) < 0)
		return -1;
	list_lacking(t, &all, q, c->arena, &lacking);
	if (!lacking.count || !strlist_contains(&q->dists, "torch"))
		return 0;
	err_set(e, ERR_POLICY, "official torch %s has no code for %s", q->release,
		strlist_join(&lacking, c->arena, ", "));
	const char *other;
	if (find_newest(t, q, python, c->arena, &other))
		return err_hint(e, "the newest release that has it: --release %s", other);
	return hint_build(q, c->arena, e);
}
