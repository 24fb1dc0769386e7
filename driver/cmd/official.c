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
	/* official_find says what there is */
	struct host_python host = {0};
	host_python(c->run, c->arena, &host);
	*ret = host.version ? host.version : "3.13";
	return 0;
}

static const char *other_platform(const char *platform)
{
	return machine_is_arm(platform) ? "x86_64-linux" : "aarch64-linux";
}

/* Whether only systems of another platform have the GPU. */
static bool is_elsewhere(const struct tables *t, const char *gpu, const char *platform)
{
	const struct gpu_row *row = tables_gpu(t, gpu);

	return row && !strings_allow(row->platforms, row->platforms_count, platform);
}

/* The targets, each with "sm", for which torch of the release has no code. */
static struct strlist lacking_targets(const struct tables *t, const struct official *all,
				      const struct cmd_official *q, struct arena *a)
{
	struct strlist lacking = {0};

	for (size_t i = 0; i < q->gpus.count; i++) {
		const struct gpu_row *row = tables_gpu(t, q->gpus.items[i]);
		if (!row || is_elsewhere(t, q->gpus.items[i], q->platform) ||
		    !official_serves(t, all, q->platform, row->capability))
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
	const char *release; /* this one alone; NULL: any */
};

/* The newest release that serves what is asked; ret->release NULL: none. */
static int find_newest(const struct newest_asked *n, struct official_choice *ret, struct err *e)
{
	const struct cmd_official *q = n->q;
	const struct hardware h = described(n->tables, q, n->python, n->arena);
	const struct official_query wanted = {.machine = &h,
					      .release = n->release,
					      .cuda = q->cuda,
					      .dists = &q->dists,
					      .all = q->all,
					      .any_driver = true};

	*ret = (struct official_choice){0};
	for (size_t i = 0; i < q->gpus.count; i++)
		if (is_elsewhere(n->tables, q->gpus.items[i], q->platform))
			return 0;
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

/* ": only aarch64-linux systems have sm110" behind an error, or "". */
static const char *elsewhere_text(const struct tables *t, const struct cmd_official *q,
				  struct arena *a)
{
	struct strlist names = {0};

	for (size_t i = 0; i < q->gpus.count; i++)
		if (is_elsewhere(t, q->gpus.items[i], q->platform))
			strlist_addf(&names, a, "sm%s", q->gpus.items[i]);
	if (!names.count)
		return "";
	return arena_printf(a, ": only %s systems have %s", other_platform(q->platform),
			    strlist_join(&names, a, ", "));
}

/* The oldest instruction set of the systems that have the GPU. */
static const char *least_isa(const struct tables *t, const char *gpu, const char *platform)
{
	const char *on = is_elsewhere(t, gpu, platform) ? other_platform(platform) : platform;

	return machine_is_arm(on) ? "armv8_2" : "avx2";
}

/* Builds for the targets: one for all of them, else one for each. */
static int hint_build(const struct tables *t, const struct cmd_official *q, struct arena *a,
		      struct err *e)
{
	const char *isa = least_isa(t, q->gpus.items[0], q->platform);
	const char *all = arena_printf(a, "sm%s-%s", strlist_join(&q->gpus, a, "+sm"), isa);
	struct strlist lines = {0};
	bool mixed = false;

	for (size_t i = 0; i < q->gpus.count; i++)
		mixed |= strcmp(least_isa(t, q->gpus.items[i], q->platform), isa) != 0;

	if (!mixed && is_planned(t, all, a))
		return err_hint(e, "'ptbuild plan --profile %s' shows a build for it", all);
	for (size_t i = 0; i < q->gpus.count; i++) {
		const char *gpu = q->gpus.items[i];
		const char *one = arena_printf(a, "sm%s-%s", gpu, least_isa(t, gpu, q->platform));
		if (is_planned(t, one, a))
			strlist_addf(&lines, a, "'ptbuild plan --profile %s'", one);
	}

	if (!lines.count)
		return err_hint(e, "ptbuild plans no build for them either; 'ptbuild list --gpus' "
				   "lists the GPU targets");
	return err_hint(e, "%s show%s a build", strlist_join(&lines, a, " and "),
			lines.count == 1 ? "s" : "");
}

static bool has_newest(const struct newest_asked *n, struct official_choice *ret)
{
	return find_newest(n, ret, ERR_IGNORED) == 0 && ret->release;
}

/* The same for the Python that is nearest to the one that is asked for. */
static bool has_nearest_python(const struct newest_asked *n, struct official_choice *ret)
{
	enum { MOST_APART = 10 };
	struct newest_asked near = *n;
	const bool three = n->python && strncmp(n->python, "3.", 2) == 0;
	const long minor = three ? strtol(n->python + 2, NULL, 10) : 0;

	for (long apart = 1; three && apart <= MOST_APART; apart++) {
		near.python = arena_printf(n->arena, "3.%ld", minor + apart);
		if (has_newest(&near, ret))
			return true;
		near.python = arena_printf(n->arena, "3.%ld", minor - apart);
		if (minor >= apart && has_newest(&near, ret))
			return true;
	}

	near.python = NULL;
	return has_newest(&near, ret);
}

/* Wheels of the other platform; false: it has none either. */
static bool hint_platform(const struct newest_asked *n, struct err *e)
{
	struct cmd_official there = *n->q;
	struct newest_asked asked = *n;
	struct official_choice other;

	there.platform = other_platform(n->q->platform);
	there.machine = NULL;
	asked.q = &there;
	if (!has_newest(&asked, &other))
		return false;
	err_hint(e, "use --platform %s: release %s has it there", there.platform, other.release);
	return true;
}

/* A target that the newest toolkit has under another number. */
static const char *newest_note(const struct newest_asked *n)
{
	const struct tables *t = n->tables;

	for (size_t i = 0; i < n->q->gpus.count && t->toolkits_count; i++) {
		const unsigned gpu = gpu_code_parse(n->q->gpus.items[i]).number;
		const struct gpu_row *row =
			gpu_renamed(t, gpu, t->toolkits[t->toolkits_count - 1].version);
		if (row)
			return row->note;
	}

	return NULL;
}

/* What would help where no release serves: another Python, CUDA, driver or platform, or a build. */
static int hint_newest(const struct newest_asked *n, struct err *e)
{
	const struct cmd_official *q = n->q;
	struct cmd_official no_driver = *q, no_cuda = *q;
	struct newest_asked any_cuda = *n, any_driver = *n;
	struct official_choice other;

	no_driver.machine = NULL;
	no_cuda.cuda = NULL;
	any_cuda.q = &no_cuda;
	any_driver.q = &no_driver;
	if (has_nearest_python(n, &other))
		return err_hint(e, "use --python %s, which release %s is for", other.wheel_python,
				other.release);
	if (q->cuda && has_newest(&any_cuda, &other))
		return err_hint(e, "leave --cuda out: release %s is for CUDA %s", other.release,
				other.cuda);
	if (q->machine && has_newest(&any_driver, &other))
		return err_hint(e, "update the driver: 'ptbuild detect' shows which CUDA it runs");
	if (hint_platform(n, e))
		return -1;
	const char *note = newest_note(n);
	return note ? err_hint(e, "%s", note) : hint_build(n->tables, q, n->arena, e);
}

int cmd_official_newest(struct cmd_context *c, const struct cmd_official *q, const char *python,
			const char **ret, struct err *e)
{
	const char *driver = q->machine ? " and this machine's driver" : "";
	struct newest_asked asked = {.tables = c->tables, .q = q, .arena = c->arena};
	struct host_python host = {0};
	const char *targets = targets_text(q, c->arena);
	struct official_choice w = {0};
	if (!python)
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

	err_set(e, ERR_POLICY, "no official torch is for %s%s%s%s%s%s%s", targets, driver,
		python ? " and Python " : "", python ? python : "", q->cuda ? " and CUDA " : "",
		q->cuda ? q->cuda : "", elsewhere_text(c->tables, q, c->arena));
	return hint_newest(&asked, e);
}

/* The CUDA versions of torch in a release, "-" for none. */
static struct strlist torch_cudas(const struct official *all, const char *platform, struct arena *a)
{
	struct strlist found = {0};

	for (size_t i = 0; i < all->count; i++) {
		const struct official_wheel *w = &all->wheels[i];
		if (strcmp(w->name.dist, "torch") == 0 &&
		    official_machine(w->name.platform) == machine_is_arm(platform))
			strlist_once(&found, a, w->cuda);
	}

	return found;
}

/* --cuda is one that torch of the release has; else the hint names the releases that have it. */
static int check_cuda(const struct tables *t, const struct official *all,
		      const struct cmd_official *q, struct arena *a, struct err *e)
{
	struct strlist have = torch_cudas(all, q->platform, a), releases = {0};

	if (!q->cuda || !strlist_contains(&q->dists, "torch") || !have.count ||
	    strlist_contains(&have, q->cuda))
		return 0;
	for (unsigned i = 0; i < t->releases_count; i++) {
		const char *name = t->releases[i].name;
		struct official other;
		if (!official_pinned(t->dir, name, a) ||
		    official_read(t->dir, name, a, &other, ERR_IGNORED) < 0)
			continue;
		const struct strlist cudas = torch_cudas(&other, q->platform, a);
		if (strlist_contains(&cudas, q->cuda))
			strlist_ref(&releases, a, name);
	}

	const char *versions = "the CPU";
	if (!strlist_contains(&have, "-"))
		versions = arena_printf(a, "CUDA %s", strlist_join(&have, a, " and "));
	err_set(e, ERR_CONFIG, "release %s is for %s on %s, not for CUDA %s", q->release, versions,
		q->platform, q->cuda);
	if (!releases.count)
		return err_hint(e, "no official torch is for CUDA %s: leave --cuda out", q->cuda);
	return err_hint(e, "releases for CUDA %s: %s; for example --release %s", q->cuda,
			strlist_join(&releases, a, ", "), releases.items[releases.count - 1]);
}

int cmd_official_check(struct cmd_context *c, const struct cmd_official *q, const char *python,
		       struct err *e)
{
	struct official all;
	const struct tables *t = c->tables;
	const struct newest_asked asked = {
		.tables = t, .q = q, .python = python, .arena = c->arena};
	struct newest_asked same = asked;

	same.release = q->release;
	if (official_read(t->dir, q->release, c->arena, &all, e) < 0 ||
	    check_cuda(t, &all, q, c->arena, e) < 0)
		return -1;
	const struct strlist lacking = lacking_targets(t, &all, q, c->arena);
	if (!lacking.count || !strlist_contains(&q->dists, "torch"))
		return 0;
	err_set(e, ERR_POLICY, "official torch %s has no code for %s%s", q->release,
		strlist_join(&lacking, c->arena, ", "), elsewhere_text(t, q, c->arena));
	const char *note = renamed_note(t, &all, q);
	if (note)
		return err_hint(e, "%s", note);
	struct official_choice other;
	if (find_newest(&asked, &other, ERR_IGNORED) == 0 && other.release)
		return err_hint(e, "the newest release that has it: --release %s", other.release);
	if (hint_platform(&same, e) || hint_platform(&asked, e))
		return -1;
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

	size_t known = 0;
	for (size_t k = 0; k < ARRAY_LEN(platforms); k++) {
		if (!ret[k])
			ret[k] = tried[k] ? l->known : "-";
		known += tried[k] && ret[k];
	}

	for (size_t k = 0; k < ARRAY_LEN(platforms); k++) {
		if (ret[k])
			continue;
		if (!known) {
			err_set(e, ERR_NETWORK,
				"the index has no metadata of '%s' for %s: its CUDA version is "
				"unknown",
				l->asked, platforms[k]);
			return err_hint(e, "name it: --cuda VERSION");
		}

		log_warn(by->run->log,
			 "leaving out '%s' for %s: the index has no metadata of it, so its CUDA "
			 "version is unknown; --cuda names it",
			 l->asked, platforms[k]);
	}

	return 0;
}
