/* Which of the pinned official wheels are meant. */
#include "base/sys/machine.h"
#include "cmd/select.h"
#include "cmd/slim_gpus.h"
#include "core/machine/host_python.h"
#include "core/machine/official_fit.h"
#include "core/tables/gpu_runs.h"
#include "core/wheel/wheel.h"
#include "step/fetch/fetch.h"

/* The Pythons for which all wheels are there, the newest last. */
static void list_pythons(const struct official *all, const struct cmd_official *q, struct arena *a,
			 struct strlist *ret)
{
	const struct hardware any = {.platform = q->platform};
	const struct official_query wanted = {.machine = &any,
					      .cuda = q->cuda,
					      .dists = &q->dists,
					      .all = q->all,
					      .any_driver = true};

	for (size_t i = 0; i < all->count; i++) {
		const char *tag = all->wheels[i].name.python;
		if (strncmp(tag, "cp3", 3) != 0)
			continue;
		const char *python = arena_printf(a, "3.%s", tag + 3);
		if (official_has_all(all, &wanted, python, a))
			strlist_once(ret, a, python);
	}

	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), version_order);
}

int cmd_official_python(struct cmd_context *c, const struct official *all,
			const struct cmd_official *q, const char **ret, struct err *e)
{
	const struct tables *t = c->tables;
	struct cmd_python p = {.platform = q->platform, .wheels = true};

	p.release = text_search(q->release, t->releases, t->releases_count, sizeof(*t->releases));
	list_pythons(all, q, c->arena, &p.pythons);
	if (p.pythons.count)
		return cmd_python(c, &p, ret, e);
	*ret = "3.13"; /* official_find says what there is */
	return 0;
}

/* The targets, each with "sm", for which torch of the release has no code. */
static struct strlist lacking_targets(const struct tables *t, const struct official *all,
				      const struct cmd_official *q, struct arena *a)
{
	struct strlist lacking = {0};

	for (size_t i = 0; i < q->gpus.count; i++) {
		const struct gpu_row *row = tables_gpu(t, q->gpus.items[i]);
		if (!row || !official_serves(t, all, q->platform, row->capability))
			strlist_addf(&lacking, a, "sm%s", q->gpus.items[i]);
	}

	return lacking;
}

/* What the tables say of a target that torch's toolkit has under another number; NULL. */
static const char *renamed_note(const struct tables *t, const struct official *all,
				const struct cmd_official *q)
{
	for (size_t i = 0; i < q->gpus.count; i++)
		for (size_t k = 0; k < all->count; k++) {
			const struct official_wheel *w = &all->wheels[k];
			const unsigned gpu = gpu_code_parse(q->gpus.items[i]).number;
			const struct gpu_row *row = strcmp(w->name.dist, "torch") == 0
							    ? gpu_renamed(t, gpu, w->cuda)
							    : NULL;
			if (row)
				return row->note;
		}

	return NULL;
}

/* A machine with these GPUs, the driver of q->machine, and one Python (NULL: any). */
static struct hardware described(const struct tables *t, const struct cmd_official *q,
				 const char *python, struct arena *a)
{
	const struct hardware *own = q->machine;
	struct hardware h = {.platform = q->platform,
			     .driver = own ? own->driver : "",
			     .driver_cuda = own ? own->driver_cuda : "",
			     .glibc = python ? "99" : ""};

	h.gpus = arena_array(a, q->gpus.count + 1, sizeof(*h.gpus));
	for (size_t i = 0; i < q->gpus.count; i++) {
		const struct gpu_row *row = tables_gpu(t, q->gpus.items[i]);
		h.gpus[h.gpu_count++].capability = row ? row->capability : q->gpus.items[i];
	}

	if (python)
		strlist_ref(&h.pythons, a, python);
	return h;
}

/* What the newest release is asked for. */
struct newest_asked {
	const struct tables *tables;
	const struct cmd_official *q;
	const char *python; /* NULL: any */
	struct arena *arena;
};

/* The newest release that serves what is asked; ret->release NULL: none. */
static int find_newest(const struct newest_asked *n, struct official_choice *ret, struct err *e)
{
	const struct cmd_official *q = n->q;
	const struct hardware h = described(n->tables, q, n->python, n->arena);
	const struct official_query wanted = {.machine = &h,
					      .cuda = q->cuda,
					      .dists = &q->dists,
					      .all = q->all,
					      .any_driver = true};

	return official_for(n->tables, &wanted, n->arena, ret, e);
}

static char *targets_text(const struct cmd_official *q, struct arena *a)
{
	struct strlist names = {0};

	for (size_t i = 0; i < q->gpus.count; i++)
		strlist_addf(&names, a, "sm%s", q->gpus.items[i]);
	return strlist_join(&names, a, ", ");
}

/* Whether a release of the tables can be built for a profile. */
static bool is_planned(const struct tables *t, const char *profile, struct arena *a)
{
	struct variant v = {.package = PACKAGE_TORCH};

	if (profile_parse(t, profile, a, &v.profile, ERR_IGNORED) < 0)
		return false;
	for (unsigned i = t->releases_count; i-- > 0;) {
		const struct release_row *r = &t->releases[i];
		const struct plan_request q = {.variant = &v, .release = r->name};
		const struct plan *p;
		if (!r->pytorch || !r->pythons_count || !tables_offered(r))
			continue;
		v.python = r->pythons[r->pythons_count - 1];
		if (plan_resolve(t, &q, a, &p, ERR_IGNORED) == 0)
			return true;
	}

	return false;
}

/* Builds for the targets: one for all of them, else one for each. */
static int hint_build(const struct tables *t, const struct cmd_official *q, struct arena *a,
		      struct err *e)
{
	const char *isa = machine_is_arm(q->platform) ? "armv8_2" : "avx2";
	const char *all = arena_printf(a, "sm%s-%s", strlist_join(&q->gpus, a, "+sm"), isa);
	struct strlist lines = {0};

	if (is_planned(t, all, a))
		return err_hint(e, "'ptbuild plan --profile %s' shows a build for it", all);
	for (size_t i = 0; i < q->gpus.count; i++) {
		const char *one = arena_printf(a, "sm%s-%s", q->gpus.items[i], isa);
		if (is_planned(t, one, a))
			strlist_addf(&lines, a, "'ptbuild plan --profile %s'", one);
	}

	if (!lines.count)
		return err_hint(e, "ptbuild plans no build for them either; 'ptbuild list --gpus' "
				   "lists the GPU targets");
	return err_hint(e, "%s show%s a build", strlist_join(&lines, a, " and "),
			lines.count == 1 ? "s" : "");
}

/* What would help where no release serves: another Python, another driver, or a build. */
static int hint_newest(const struct newest_asked *n, struct err *e)
{
	const struct cmd_official *q = n->q;
	struct cmd_official no_driver = *q;
	struct newest_asked any_python = *n, any_driver = *n;
	struct official_choice other;

	no_driver.machine = NULL;
	any_python.python = NULL;
	any_driver.q = &no_driver;
	if (find_newest(&any_python, &other, ERR_IGNORED) == 0 && other.release)
		return err_hint(e, "use --python %s, which release %s is for", other.wheel_python,
				other.release);
	if (q->machine && find_newest(&any_driver, &other, ERR_IGNORED) == 0 && other.release)
		return err_hint(e, "update the driver: 'ptbuild detect' shows which CUDA it runs");
	return hint_build(n->tables, q, n->arena, e);
}

int cmd_official_newest(struct cmd_context *c, const struct cmd_official *q, const char *python,
			const char **ret, struct err *e)
{
	const char *driver = q->machine ? " and this machine's driver" : "";
	struct newest_asked asked = {.tables = c->tables, .q = q, .arena = c->arena};
	struct host_python host = {0};
	const char *targets = targets_text(q, c->arena);
	struct official_choice w = {0};
	if (!python && strcmp(q->platform, machine_platform(c->arena)) == 0)
		host_python(c->run, c->arena, &host);
	asked.python = host.version;
	if (host.version && find_newest(&asked, &w, e) < 0)
		return -1;
	asked.python = python;
	if (!w.release && find_newest(&asked, &w, e) < 0)
		return -1;
	if (w.release) {
		log_info(c->run->log,
			 "release %s with CUDA %s: the newest official torch for %s%s; --release "
			 "chooses",
			 w.release, w.cuda, targets, driver);
		*ret = w.release;
		return 0;
	}

	err_set(e, ERR_POLICY, "no official torch is for %s%s%s%s", targets, driver,
		python ? " and Python " : "", python ? python : "");
	return hint_newest(&asked, e);
}

int cmd_official_check(struct cmd_context *c, const struct cmd_official *q, const char *python,
		       struct err *e)
{
	struct official all;
	const struct tables *t = c->tables;
	const struct newest_asked asked = {t, q, python, c->arena};

	if (official_read(t->dir, q->release, c->arena, &all, e) < 0)
		return -1;
	const struct strlist lacking = lacking_targets(t, &all, q, c->arena);
	if (!lacking.count || !strlist_contains(&q->dists, "torch"))
		return 0;
	err_set(e, ERR_POLICY, "official torch %s has no code for %s", q->release,
		strlist_join(&lacking, c->arena, ", "));
	const char *note = renamed_note(t, &all, q);
	if (note)
		return err_hint(e, "%s", note);
	struct official_choice other;
	if (find_newest(&asked, &other, ERR_IGNORED) == 0 && other.release)
		return err_hint(e, "the newest release that has it: --release %s", other.release);
	return hint_build(t, q, c->arena, e);
}

int cmd_official_fetch(struct cmd_context *c, const struct official_wheel *const *wheels,
		       size_t count, struct strlist *ret, struct err *e)
{
	struct fetch_source *sources = arena_array(c->arena, count, sizeof(*sources));
	struct fetch_stats stats;
	struct store *store;

	if (cmd_open(c, OPEN_NETWORK, e) < 0 || cmd_store(c, &store, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		sources[i] = fetch_source_official(wheels[i], c->arena);
	if (fetch_all(&(struct fetcher){store, c->fetch, c->run, c->arena}, sources, count, &stats,
		      e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		strlist_ref(ret, c->arena, sources[i].path);
	return 0;
}

enum { METADATA_TRIES = 4 };

static const char *const platforms[] = {"x86_64-linux", "aarch64-linux"};

int cmd_official_cuda(const struct fetcher *by, const struct cmd_listed *l, const char *ret[2],
		      struct err *e)
{
	const struct wheel_page *page = l->page;
	const char *version = strstr(l->asked, "==");
	unsigned tried[2] = {0};

	for (size_t i = 0; i < page->count && version; i++) {
		AUTO_BUF struct buf text = {0};
		struct wheel_headers h;
		struct wheel_name n;
		struct err why = {0};
		const char *file, *name = page->files[i].name;
		if (wheel_name_parse(name, by->arena, &n, e) < 0)
			return -1;
		int machine = official_machine(n.platform);
		if (strcmp(n.version, version + 2) != 0 || machine < 0 || ret[machine] ||
		    tried[machine]++ >= METADATA_TRIES)
			continue;
		const char *url = arena_printf(by->arena, "%s.metadata", page->files[i].url);
		if (fetch_latest(by, &(struct fetch_page){url, NULL, WHEEL_PAGE_MAX}, &file, &why) <
		    0) {
			if (why.kind == ERR_SYSTEM || why.kind == ERR_INTERRUPTED)
				return err_take(e, &why);
			/* an index has it of most wheels */
			log_verbose(by->run->log, "%s", why.msg);
			continue;
		}

		if (fs_read(TRUSTED, file, WHEEL_PAGE_MAX, &text, e) < 0 ||
		    wheel_headers_parse(&(struct file_bytes){buf_cstr(&text), text.len, name},
					by->arena, &h, e) < 0)
			return -1;
		ret[machine] = official_cuda(&h, platforms[machine], by->arena);
	}

	for (size_t k = 0; k < ARRAY_LEN(platforms); k++) {
		ret[k] = ret[k] ? ret[k] : tried[k] ? l->known : "-";
		if (!ret[k]) {
			err_set(e, ERR_NETWORK,
				"the index has no metadata of '%s' for %s: its CUDA version is "
				"unknown",
				l->asked, platforms[k]);
			return err_hint(e, "name it: --cuda VERSION");
		}
	}

	return 0;
}
