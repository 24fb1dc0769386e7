#include "step/pipeline/make.h"

#include "base/os.h"
#include "core/code/code.h"
#include "step/compile/build_parts.h"
#include "step/fetch/fetch.h"
#include "step/pipeline/make_world.h"

#define NAME "buildtrial"

/* ---- what was tried before ---- */

/* A file that is added or removed changes the time of its directory. */
struct dirs {
	const struct root *root;
	struct arena *a;
	struct buf *out;
};

static void add_dir(const struct dirs *d, const char *dir, unsigned below)
{
	const struct root *r = d->root;
	struct arena *a = d->a;
	struct strlist names = {0};
	struct stat st;
	const char *inside = root_resolve(r, dir, a);

	if (!inside || stat(root_host_path(r, inside, a), &st) < 0 || !S_ISDIR(st.st_mode))
		return;
	buf_printf(d->out, "%s %llu %lld.%09ld\n", dir, (unsigned long long)st.st_ino,
		   (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	if (below == 0 || root_list(r, dir, a, &names, ERR_IGNORED) < 0)
		return;
	for (size_t i = 0; i < names.count; i++)
		add_dir(d, path_join(a, dir, names.items[i]), below - 1);
}

struct digests {
	const char *top;
	struct arena *a;
	struct buf *out;
};

static int add_source(const char *rel, const struct stat *st, void *user, struct err *e)
{
	const struct digests *d = user;
	char digest[DIGEST_HEX_LEN + 1];

	(void)st;
	if (digest_file(path_join(d->a, d->top, rel), digest, e) < 0)
		return -1;
	buf_printf(d->out, "%s\n", digest);
	return 0;
}

static const char *sources(const struct make *t)
{
	return path_join(t->arena, t->q->profiles_dir, "trial");
}

/* Returns the file in the store that records a passed test build; NULL if it is unknown. */
static const char *memo(const struct make *t)
{
	struct arena *a = t->arena;
	const struct {
		const char *dir;
		unsigned below;
	} dirs[] = {{"/usr/bin", 0},
		    {"/usr/include", 1},
		    {"/usr/lib/gcc", 2},
		    {"/usr/libexec/gcc", 2},
		    {"/usr/lib/python3", 1},
		    {arena_printf(a, "/usr/lib/python%s", t->plan->python), 1},
		    {arena_printf(a, "/usr/local/lib/python%s", t->plan->python), 2}};
	AUTO_BUF struct buf text = {0};
	char id[32], digest[DIGEST_HEX_LEN + 1];
	const struct tables *tables = t->q->tables;
	struct digests d = {sources(t), a, &text};
	struct strlist libraries = {0};

	buf_printf(&text, "%s %s %d %d\n%s\n%s\n%s\n%s\n", PTBUILD_VERSION, decoder_id(id),
		   PLAN_BUILDER, PLAN_PACKER, tables->extensions_digest, tables->dispatch_digest,
		   tables->manylinux_digest, tables->threads_digest);
	/* What of the plan reaches the trial: builds that differ in the rest share it. */
	static const char *const names[] = {"CC",      "CXX",  "CFLAGS",        "CXXFLAGS",
					    "LDFLAGS", "PATH", "PTBUILD_LINKER"};
	buf_printf(&text, "%s\n%s\n%s\n%s\n%s\n", t->plan->platform, t->plan->python,
		   t->plan->sandbox, t->plan->isa ? t->plan->isa : "",
		   t->plan->package_row->backend);
	for (unsigned i = 0; i < t->plan->package_row->python_requires_count; i++)
		buf_printf(&text, "%s\n", t->plan->package_row->python_requires[i]);
	for (size_t i = 0; i < t->plan->env.count; i++)
		if (strncmp(t->plan->env.items[i].name, "CMAKE_", 6) == 0 ||
		    strings_contain(names, ARRAY_LEN(names), t->plan->env.items[i].name))
			buf_printf(&text, "%s=%s\n", t->plan->env.items[i].name,
				   t->plan->env.items[i].value);
	buf_printf(&text, "%s %s\n", t->q->root->dir, t->q->root->fingerprint);
	for (size_t i = 0; i < t->toolchain->count; i++)
		buf_printf(&text, "%s %s\n", t->toolchain->tools[i].id,
			   t->toolchain->tools[i].path ? t->toolchain->tools[i].path : "");
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		add_dir(&(struct dirs){t->q->root, a, &text}, dirs[i].dir, dirs[i].below);
	if (root_library_dirs(t->q->root, a, &libraries, ERR_IGNORED) < 0 ||
	    fs_walk(TRUSTED, d.top, add_source, &d, ERR_IGNORED) < 0)
		return NULL;
	for (size_t i = 0; i < libraries.count; i++)
		add_dir(&(struct dirs){t->q->root, a, &text}, libraries.items[i], 0);
	digest_data(text.data, text.len, digest);
	return arena_printf(a, "%s/stamps/trial-%s", store_dir(t->q->store), digest);
}

/* Whether it was made and passed on the same of everything: plan, ptbuild,
 * tables, tools and the directories of the root with what a compiler needs. */
static bool trial_passed(const struct make *t)
{
	const char *path = memo(t);
	return path && fs_exists(TRUSTED, path);
}

/* ---- the trial ---- */

/* The back end that uses what the plan's own uses: one run
 * of setup.py, with CMake or without, or the front end. */
static const char *backend_of(const struct plan *p)
{
	const char *own = p->package_row->backend;

	if (plan_is_extension(p))
		return "setuptools";
	return strncmp(own, "setup-py-", 9) == 0 ? "setuptools-cmake" : own;
}

/* The plan's own, of another package, which has no GPU code: nvcc was asked by the preflight. */
static struct plan trial_plan(const struct plan *p, struct package_row *row, struct arena *a)
{
	struct plan t = *p;

	*row = (struct package_row){.version = "1",
				    .backend = backend_of(p),
				    .series = "",
				    .python_requires = p->package_row->python_requires,
				    .python_requires_count = p->package_row->python_requires_count,
				    .requirements = p->package_row->requirements,
				    .cudnn = ""};
	t.package_row = row;
	t.package = t.distribution = NAME;
	t.version = "1";
	t.local_label = "trial";
	t.torch = t.torch_version = t.cuda_libraries = "";
	t.cuda = NULL;
	t.toolkit = NULL;
	t.toolkit_row = NULL;
	t.gpu = t.driver_libraries = t.depends = (struct strlist){0};
	t.patches_count = 0;
	t.metadata_rev = 1;
	/* What every CMake project obeys is compared as for the
	 * package, but for what only one with GPU code has. */
	t.cmake = (struct settings){0};
	for (size_t i = 0; i < p->cmake.count; i++)
		if (strncmp(p->cmake.items[i].name, "CMAKE_", 6) == 0 &&
		    strncmp(p->cmake.items[i].name, "CMAKE_CUDA_", 11) != 0)
			settings_put(&t.cmake, a, &p->cmake.items[i]);
	return t;
}

static int make_in(const struct make *t, const char *dir, const struct run *run, struct err *e)
{
	struct package_row row;
	const struct plan plan = trial_plan(t->plan, &row, t->arena);
	struct pipeline_request q = *t->q;
	struct make m = {.q = &q,
			 .run = run,
			 .arena = t->arena,
			 .plan = &plan,
			 .toolchain = t->toolchain,
			 .build_dir = path_join(t->arena, dir, "build"),
			 .stage = path_join(t->arena, dir, "wheel"),
			 .checks_dir = sources(t),
			 .no_ccache = true};

	q.run = run;
	q.jobs = 1;
	if (strcmp(row.requirements, TABLES_EXTENSION_LIST) == 0) {
		/* What that list lacks is locked by the build, after doctor. */
		row.python_requires = q.tables->extension_requires;
		row.python_requires_count = q.tables->extension_requires_count;
	}

	if (fs_mkdirs(TRUSTED, m.build_dir, e) < 0 || fs_mkdirs(TRUSTED, m.stage, e) < 0 ||
	    fs_copy_tree(m.checks_dir, path_join(t->arena, m.build_dir, "src"), e) < 0)
		return -1;
	return make_wheel(&m, e);
}

/* Keeps the log and says what failed. */
static void explain(const struct make *t, const char *dir, struct err *e)
{
	const char *kept = arena_printf(t->arena, "%s/stamps/trial.log", store_dir(t->q->store));

	if (e->kind == ERR_INTERRUPTED || e->kind == ERR_NETWORK)
		return;
	bool full = e->kind == ERR_SYSTEM; /* the disk, memory: that hint says more */
	if (e->kind == ERR_BUILD)
		e->kind = ERR_SYSTEM;
	err_wrap(e, "the test build for %s failed", t->plan->variant);
	if (!full && fs_copy(dir, "build/log/build.log", kept, ERR_IGNORED) == 0)
		err_hint(e,
			 "see its log '%s'; fix the root '%s', or use another root with --root DIR",
			 kept, t->q->root->dir);
}

/* Builds profiles/trial with the plan's flags, relocates, packs, verifies, installs and
 * imports it, and remembers that it passed. What a compiler says is ERR_SYSTEM here, since
 * the source is known to be right; the hint names the log. ERR_NETWORK if the Python
 * packages of the build must be fetched and cannot. */
static int trial_run(const struct make *t, struct err *e)
{
	const char *dir, *stamp = memo(t);
	struct log quiet = {.level = LOG_QUIET, .fd = t->run->log->fd};
	struct run silent = *t->run;

	silent.log = &quiet;
	if (store_stage(t->q->store, t->arena, &dir, e) < 0)
		return -1;
	int rc = make_in(t, dir, &silent, e);
	if (rc < 0)
		explain(t, dir, e);
	store_drop_stage(t->q->store, dir);
	if (rc == 0 && stamp)
		(void)!fs_write(TRUSTED, stamp, "passed\n", 7, 0644, ERR_IGNORED);
	return rc;
}

int pipeline_installs(void *user, struct preflight *d, struct strlist *ret, struct err *e)
{
	const struct pipeline_request *q = user;
	const struct pyenv_request r = {.plan = d->q->plan,
					.profiles_dir = q->profiles_dir,
					.root = d->q->root,
					.kind = d->q->kind};

	return r.plan ? pyenv_installs(&r, d->run, d->arena, ret, e) : 0;
}

bool pipeline_needs_cuda(const struct pipeline_request *q)
{
	for (size_t i = 0; i < q->count; i++)
		if (q->targets[i].variant.profile.gpu == GPU_CUDA || q->targets[i].torch_cuda)
			return true;
	return false;
}

const char *pipeline_other_store(const struct store *store, const struct root *root,
				 struct arena *a)
{
	const char *const *dirs;
	const size_t count = store_fallbacks(store, &dirs);
	const char *dir = path_dir(a, path_dir(a, path_dir(a, root->dir)));
	AUTO_FREE char *real = realpath(dir, NULL);

	for (size_t i = 0; i <= count; i++) {
		AUTO_FREE char *own = realpath(i < count ? dirs[i] : store_dir(store), NULL);
		if (real && own && strcmp(real, own) == 0)
			return NULL;
	}

	return dir;
}

static struct pyenv_request lock_request(const struct pipeline_request *q, const struct plan *p)
{
	return (struct pyenv_request){.plan = p,
				      .profiles_dir = q->profiles_dir,
				      .root = q->root,
				      .kind = q->kind,
				      .store = q->store,
				      .offline = q->fetch.offline};
}

int pipeline_lock(const struct pipeline_request *q, const struct plan *p, const struct run *run,
		  struct arena *a, const struct tables **tables, struct err *e)
{
	const struct pyenv_request r = lock_request(q, p);
	const char *lock;

	if (requirements_lock(&r, run, a, &lock, e) < 0)
		return -1;
	if (lock)
		*tables = tables_lock(*tables, p->package, lock, a);
	return 0;
}

int pipeline_lock_more(const struct pipeline_request *q, const struct plan *p,
		       const struct strlist *asks, const struct run *run, struct arena *a,
		       const struct tables **tables, struct err *e)
{
	const char *have = p->package_row->requirements;
	struct package_row row = *p->package_row;
	struct plan unlocked = *p;
	const struct pyenv_request r = lock_request(q, &unlocked);

	if (requirements_is_lock(have) &&
	    !path_below(have, path_join(a, store_dir(q->store), "stamps")))
		return -1;
	err_clear(e);
	log_info(run->log, "%s: its back end asks for %s", p->package, strlist_join(asks, a, ", "));
	row.requirements = TABLES_EXTENSION_LIST;
	unlocked.package_row = &row;
	return requirements_ask(&r, asks, a, e) < 0
		       ? -1
		       : pipeline_lock(q, &unlocked, run, a, tables, e);
}

int pipeline_trial(void *user, struct preflight *d, struct err *e)
{
	const struct make t = {.q = user,
			       .run = d->run,
			       .arena = d->arena,
			       .plan = d->q->plan,
			       .toolchain = d->toolchain};
	const bool whole = d->q->whole;
	struct err why = {0};
	double start = log_seconds();

	if (!whole)
		log_stage(d->run->log, "%s: preflight", d->q->plan->package);
	int rc = trial_run(&t, &why);
	log_status_end(d->run->log);
	if (rc == 0)
		preflight_ok(d, "trial", "test extension built, installed and imported in %.1f s",
			     log_seconds() - start);
	else if (!whole || why.kind != ERR_NETWORK)
		return preflight_err(d, "trial", &why, e);
	else
		preflight_warn(
			d, "trial", why.hint, "not made: %s",
			d->q->offline
				? why.msg
				: "what it needs is not in the store, and doctor fetches nothing");
	log_verbose(d->run->log, "%s: %s", d->q->plan->package,
		    rc < 0 ? why.msg : d->lines[d->count - 1].text);
	return 0;
}

/* The newest release whose sources of a package are all in Debian archives; NULL: none. */
static const char *release_of_debian(const struct tables *t, const char *package)
{
	const char *found = NULL;

	for (unsigned i = 0; i < t->releases_count; i++) {
		const struct package_row *p = tables_package(&t->releases[i], package);
		bool all = p && p->sources_count;
		for (unsigned k = 0; all && k < p->sources_count; k++)
			all = p->sources[k].urls_count &&
			      strncmp(p->sources[k].urls[0], "deb:", 4) == 0;
		found = all ? t->releases[i].name : found;
	}

	return found;
}

/* The sources that the store lacks, of those whose digest is known. */
static size_t add_sources(struct store *store, const struct package_row *p, struct arena *a,
			  struct fetch_source *ret)
{
	size_t n = 0;

	for (unsigned i = 0; i < p->sources_count; i++) {
		const struct source_row *row = &p->sources[i];
		if (*row->sha256 && !fetch_has(store, row->sha256))
			ret[n++] = fetch_source_of(row, a);
	}

	return n;
}

/* Adds a failure for those of `count` files that fail alike. */
/* Files that were asked for, and why each cannot be reached (NULL: it can). */
struct unreached {
	const struct fetch_source *all;
	size_t count;
	const char **why;
	const char *of; /* what they belong to */
	const char *fix;
};

static void tell(struct preflight *d, const struct unreached *u, bool offline,
		 enum preflight_level level)
{
	const struct fetch_source *all = u->all;
	const char **why = u->why, *of = u->of, *fix = u->fix;
	const size_t count = u->count;

	for (size_t i = 0; i < count; i++) {
		struct strlist names = {0};
		for (size_t k = i; why[i] && k < count; k++)
			if (why[k] && strcmp(why[i], why[k]) == 0) {
				strlist_addf(&names, d->arena, "'%s'", all[k].name);
				why[k] = k == i ? why[k] : NULL;
			}
		if (why[i])
			preflight_add(d,
				      PREFLIGHT_LINE(level, ERR_NETWORK,
						     offline ? "store" : "network", fix),
				      "%s%s cannot be downloaded: %s",
				      strlist_join(&names, d->arena, " "), of, why[i]);
	}
}

int pipeline_reach(struct preflight *d, struct store *store, const struct fetch_options *o,
		   const char *torch, bool others, struct err *e)
{
	static const char mirror[] =
		"name a mirror (--mirror URL|DIR) or a store that has it (--lower-store DIR, "
		"filled by 'ptbuild fetch' where there is a network)";
	const struct plan *p = d->q->plan;
	struct arena *a = d->arena;
	struct fetch_source *world = NULL;
	const size_t of_world = d->q->not_made ? world_places(store, d->q->world, a, &world) : 0;
	/* Without a plan, of the release's torch. */
	const struct package_row *row = p ? p->package_row
					: d->q->release
						? tables_package(d->q->release, PACKAGE_TORCH)
						: NULL;
	struct fetch_source *all =
		arena_array(a, (row ? row->sources_count : 0) + of_world + 2, sizeof(*all));
	size_t count = row && !(p && p->captured) ? add_sources(store, row, a, all) : 0;
	const size_t before = preflight_failures(d);
	struct torch_source official;
	const int found = p ? torch_official_of(torch, d->q->tables, p, a, &official, e) : 0;

	if (found < 0)
		return -1;
	if (found && !fetch_has(store, official.official->sha256))
		all[count++] = fetch_source_official(official.official, a);
	const char **why = arena_array(a, count + of_world + 1, sizeof(*why));
	const char *debian =
		row ? release_of_debian(d->q->tables, p ? p->package : PACKAGE_TORCH) : NULL;
	const bool own = debian && strcmp(debian, p ? p->release : d->q->release->name) == 0;
	const char *fix = mirror;
	if (own)
		fix = arena_printf(
			a, "%s; or use the torch of a local root with 'ptbuild capture --root DIR'",
			mirror);
	else if (debian)
		fix = arena_printf(a,
				   "%s; or use --release %s, whose sources are in a Debian "
				   "archive, or its root's torch with 'ptbuild capture'",
				   mirror, debian);
	double start = log_seconds();
	if (of_world)
		memcpy(all + count, world, of_world * sizeof(*all));
	/* Who wants to know all asks all at once: each waits for its seconds. */
	if (fetch_probe(all, d->q->whole ? count + of_world : count, o, d->run, a, why, e) < 0)
		return -1;
	tell(d, &(struct unreached){all, count, why, "", fix}, o->offline,
	     others ? PREFLIGHT_WARNING : PREFLIGHT_FAILURE);
	if (preflight_failures(d) > before && !d->q->whole)
		return 0;
	if (of_world && !d->q->whole &&
	    fetch_probe(all + count, of_world, o, d->run, a, why + count, e) < 0)
		return -1;
	if (of_world)
		tell(d,
		     &(struct unreached){all + count, of_world, why + count,
					 arena_printf(a, " of the world '%s'", d->q->world->name),
					 own ? fix : mirror},
		     o->offline, PREFLIGHT_FAILURE);
	if (preflight_failures(d) > before)
		return 0;
	struct strlist reached = {0};
	if (count)
		strlist_addf(&reached, a, "the sources of %s", p ? p->package : PACKAGE_TORCH);
	if (of_world)
		strlist_addf(&reached, a, "the files of the world '%s'", d->q->world->name);
	if (reached.count)
		preflight_ok(d, "network", "%s can be reached (%.1f s)",
			     strlist_join(&reached, a, " and "), log_seconds() - start);
	return 0;
}

static int reach(void *user, struct preflight *d, struct err *e)
{
	const struct pipeline_request *q = user;
	return pipeline_reach(d, q->store, &q->fetch, q->plan.torch, false, e);
}

int pipeline_preflight(const struct make *m, const struct toolkits *toolkits, struct err *e)
{
	const struct pipeline_request *q = m->q;
	const struct plan *p = m->plan;
	struct arena *a = m->arena;
	struct preflight *d = arena_alloc(a, sizeof(*d));
	const char *store = store_dir(q->store);
	const struct preflight_request r = {
		.stages = PREFLIGHT_TABLES | PREFLIGHT_MACHINE | PREFLIGHT_NETWORK | PREFLIGHT_ROOT,
		.tables = q->tables,
		.release = p->release_row,
		.plan = p,
		.root = q->root,
		.world = q->world,
		.kind = q->kind,
		.toolchain = m->toolchain,
		.toolkits = toolkits,
		.cuda_home = q->cuda_home,
		.store_dir = store,
		.out_dir = q->out_dir,
		.build_dir = path_join(a, path_join(a, store, "build"), p->compile_key),
		.jobs = q->jobs,
		.offline = q->fetch.offline,
		.tried = p->captured || trial_passed(m),
		.installs = pipeline_installs,
		.reach = reach,
		.trial = pipeline_trial,
		.user = (void *)q};

	return preflight_run(d, &r, m->run, a, e) < 0 ? -1 : preflight_verdict(d, e);
}
