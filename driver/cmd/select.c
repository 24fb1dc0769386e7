#include "cmd/select.h"

#include "core/machine/detect.h"
#include "core/root/sandbox.h"
#include "core/variant/variant.h"
#include "core/world/world.h"
#include "step/source/source.h"

#define SELECT(type, field) (type), offsetof(struct cmd_select_base, select.field)

const struct arg_def cmd_select_options[] = {
	{"profile", 'p', SELECT(ARG_ONE, profile), "PROFILE",
	 "GPU target and CPU instruction set (sm90-avx512), native, or a profile file",
	 "<profile>"},
	{"matrix", 'm', SELECT(ARG_ONE, matrix), "NAME",
	 "all variants of a matrix: a name from 'ptbuild list --matrices', or a file", "<matrix>"},
	{"only", 0, SELECT(ARG_LIST, only), "GLOB",
	 "of a matrix, only the variants whose names match; may be repeated", NULL},
	{"package", 0, SELECT(ARG_LIST, packages), "NAMES",
	 "pytorch (default), torchvision, torchaudio or all", "pytorch torchvision torchaudio all"},
	{"extension", 0, SELECT(ARG_EACH, extensions), "TREE",
	 "an extension of torch's: a folder with setup.py or pyproject.toml, an sdist, or "
	 "NAME==VERSION; may be "
	 "repeated",
	 "<extension>"},
	{"release", 0, SELECT(ARG_STRING, release), "NAME",
	 "the pinned set of versions (default: the newest that fits)", "<release>"},
	{"python", 0, SELECT(ARG_STRING, python), "X.Y",
	 "Python version to build for (default: the user's, where the release has it)", "<python>"},
	{"cuda", 0, SELECT(ARG_STRING, cuda), "X.Y",
	 "CUDA toolkit version (default: the release's first)", "<cuda>"},
	{"cuda-home", 0, SELECT(ARG_STRING, cuda_home), "DIR",
	 "directory of a CUDA toolkit to use before all others (default: $CUDA_HOME with --root /)",
	 "<dir>"},
	{0},
};

const struct arg_def cmd_units_options[] = {
	{"units", 0, SELECT(ARG_EACH, units), "TREE",
	 "compile commands of a configured tree, named after its profile, to count what a matrix "
	 "compiles; may be "
	 "repeated",
	 "<tree>"},
	{0},
};

#define PLAN(type, field) (type), offsetof(struct cmd_select_base, select.plan.field)

const struct arg_def cmd_plan_options[] = {
	{"cuda-libraries", 0, PLAN(ARG_STRING, cuda_libraries), "WHERE",
	 "packages: the wheel requires the nvidia-* packages (default); system: the loader finds "
	 "the libraries",
	 "packages system"},
	{"blas", 0, PLAN(ARG_STRING, blas), "NAME",
	 "BLAS library (default: the profile's, else the platform's)", "<blas>"},
	{"set", 0, PLAN(ARG_PAIRS, toggles), "NAME=VALUE",
	 "override a build option, for example USE_MKLDNN=OFF; may be repeated", NULL},
	{"source", 0, SELECT(ARG_EACH, sources), "TREE",
	 "your own folder, archive or URL=SHA256 instead of the release's source, or the "
	 "FILE=SHA256 of a source whose digest the release lacks; may be repeated",
	 "<source>"},
	{"requirements", 0, SELECT(ARG_STRING, requirements), "LOCK",
	 "locked list of what the build of --extension needs from Python: the requirements.txt of "
	 "an earlier build",
	 "<file>"},
	{"version", 0, SELECT(ARG_STRING, version), "VERSION",
	 "version of --source or --extension (default: what its files say)", NULL},
	{"without", 0, PLAN(ARG_LIST, without), "FEATURES",
	 "build without these features, for example cudnn; the version label says so", NULL},
	{"torch", 0, PLAN(ARG_STRING, torch), "PLACE",
	 "torch to build the other packages against: a wheel, root, or official[==VERSION]",
	 "<wheel>"},
	{"platform", 0, PLAN(ARG_STRING, platform_tag), "KIND",
	 "platform tag: manylinux, the oldest that fits (default), or linux, which guarantees "
	 "nothing",
	 "manylinux linux"},
	{"metadata-rev", 0, PLAN(ARG_COUNT, metadata_rev), "N",
	 "revision of the wheel's metadata (default: 1)", NULL},
	{0},
};

const struct cmd_select *cmd_selected(const struct cmd_context *c)
{
	return &((const struct cmd_select_base *)c->options)->select;
}

/* What a release must have. */
struct want {
	const struct tables *tables;
	const char *release;       /* that is named; NULL: any */
	struct strlist packages;   /* in the order they are built */
	const char *python, *cuda; /* NULL: any */
	const struct profile *profile;
	const struct world *world; /* that --root names; NULL: any */
	const char *note;          /* on the choice, for the plan; NULL: none */
};

static const char *missing_package(const struct release_row *r, const struct strlist *packages)
{
	for (size_t i = 0; i < packages->count; i++)
		if (!tables_package(r, packages->items[i]))
			return packages->items[i];
	return NULL;
}

static bool release_fits(const struct release_row *r, const struct want *w)
{
	if (missing_package(r, &w->packages))
		return false;
	if (w->python && !strings_contain(r->pythons, r->pythons_count, w->python))
		return false;
	return !w->cuda || strings_contain(r->toolkits, r->toolkits_count, w->cuda);
}

/* Whether the plan would take the release for all packages; *e keeps the last refusal. */
static bool release_builds(const struct release_row *r, const struct want *w, struct arena *a,
			   struct err *e)
{
	if (w->world && world_check_tools(w->world, r, a, e) < 0)
		return false;
	for (size_t i = 0; i < w->packages.count; i++) {
		const struct variant v = {.package = w->packages.items[i],
					  .python = w->python ? w->python
							      : r->pythons[r->pythons_count - 1],
					  .cuda = w->cuda,
					  .profile = *w->profile};
		const struct plan_request q = {.variant = &v, .release = r->name};
		const char *cuda;
		if (plan_cuda(w->tables, &q, a, &cuda, e) < 0)
			return false;
	}

	return true;
}

/* A release that is used only where it is named; NULL: none of them serves either. */
static const struct release_row *find_asked(const struct want *w, struct arena *a)
{
	struct err refusal = {0};

	for (unsigned i = w->tables->releases_count; i-- > 0;) {
		const struct release_row *r = &w->tables->releases[i];
		if (*r->asked && strcmp(r->name, r->base) == 0 && release_fits(r, w) &&
		    release_builds(r, w, a, &refusal))
			return r;
	}

	return NULL;
}

/* Whether a source of the packages has no proven digest. */
static bool lacks_digest(const struct release_row *r, const struct strlist *packages)
{
	for (size_t i = 0; i < packages->count; i++) {
		const struct package_row *p = tables_package(r, packages->items[i]);
		for (unsigned k = 0; k < p->sources_count; k++)
			if (!*p->sources[k].sha256)
				return true;
	}

	return false;
}

static int refuse_want(const struct want *w, struct arena *a, struct err *e)
{
	const struct release_row *asked = find_asked(w, a);

	err_set(e, ERR_CONFIG, "no release%s has these packages for Python %s and CUDA %s",
		asked ? " of the default ones" : "", w->python ? w->python : "(any)",
		w->cuda ? w->cuda : "(none)");
	if (asked && lacks_digest(asked, &w->packages))
		return err_hint(
			e,
			"release %s has them and can be planned (--release %s); to build it, "
			"give its source with --source FILE=SHA256",
			asked->name, asked->name);
	if (asked)
		return err_hint(e, "release %s has them: --release %s", asked->name, asked->name);
	return err_hint(e, "'ptbuild list --releases' lists them; name one with --release");
}

/* Without --release only upstream's own qualify: one like "2.6.0-debian" needs
 * a root of its own. Nor does one that is only for those who ask for it. */
static int pick_release(const struct want *w, struct arena *a, const struct release_row **ret,
			struct err *e)
{
	const struct tables *t = w->tables;
	const struct release_row *newest = NULL;
	struct err refusal = {0};

	if (w->release) {
		if (tables_need_release(t, w->release, ret, e) < 0)
			return -1;
		const char *missing = missing_package(*ret, &w->packages);
		return missing ? err_set(e, ERR_CONFIG, "release '%s' has no %s", (*ret)->name,
					 missing)
			       : 0;
	}

	for (unsigned i = t->releases_count; i-- > 0;) {
		*ret = &t->releases[i];
		if (!tables_offered(*ret) || !release_fits(*ret, w))
			continue;
		if (release_builds(*ret, w, a, &refusal))
			return 0;
		newest = newest ? newest : *ret;
	}

	*ret = newest; /* its plan says what is in the way */
	return newest ? 0 : refuse_want(w, a, e);
}

static int default_python(struct cmd_context *c, const struct release_row *r, struct want *w,
			  struct err *e)
{
	struct cmd_python q = {.release = r,
			       .platform = w->profile->platform,
			       .profile = w->profile,
			       .packages = w->packages,
			       .cuda = w->cuda};

	strlist_refs(&q.pythons, c->arena, r->pythons, r->pythons_count);
	return cmd_python(c, &q, &w->python, e);
}

/* Fills in the parts of a profile's name that stand for
 * this machine: "native", "native-avx2", "sm90-native". */
static int fill_native(struct cmd_context *c, const char **profile, struct want *w, struct err *e)
{
	const struct tables *t = w->tables;
	const struct cmd_select *o = cmd_selected(c);
	const struct hardware_facts *facts;
	const struct hardware *h;
	struct detected d;

	if (!detect_is_native(o->profile))
		return 0;
	if (cmd_machine(c, true, &facts, &h, e) < 0 ||
	    detect_choose(t, facts, h, NULL, o->release, c->arena, &d, e) < 0 ||
	    detect_fill_native(&d, o->profile, c->arena, profile, e) < 0)
		return -1;
	log_info(c->run->log, "%s is %s on this machine", o->profile, *profile);
	for (size_t i = 0; i < d.warnings.count; i++)
		log_warn(c->run->log, "%s", d.warnings.items[i]);
	w->note = arena_printf(c->arena, "%s is %s on the machine that asked: %s", o->profile,
			       *profile, d.reasons.count ? d.reasons.items[0] : h->platform);
	if (d.cuda && !o->cuda && strncmp(o->profile, "native", 6) == 0)
		w->cuda = d.cuda; /* the driver here can run it */
	return 0;
}

static int select_by_profile(struct cmd_context *c, const struct tables *t, struct selections *ret,
			     struct err *e)
{
	const struct cmd_select *o = cmd_selected(c);
	struct want w = {.tables = t, .release = o->release, .python = o->python, .cuda = o->cuda};
	const char *name = o->profile;
	struct profile profile;
	const struct release_row *release;

	if (fill_native(c, &name, &w, e) < 0 || profile_load(t, name, c->arena, &profile, e) < 0)
		return -1;
	if (profile.gpu != GPU_CUDA && o->cuda)
		return err_set(e, ERR_USAGE, "--cuda %s does not apply: profile '%s' has no CUDA",
			       o->cuda, profile.name);
	struct cmd_extension x = {0};
	if (o->extensions.count || o->follow_torch || c->own_source) {
		if (cmd_extension(c, o, &profile, &x, e) < 0)
			return -1;
		w.release = w.release ? w.release : x.release;
		w.python = w.python ? w.python : x.python;
		w.cuda = w.cuda ? w.cuda : x.cuda;
		t = w.tables = c->tables;
	}

	w.release = w.release ? w.release : c->own_release;

	const bool all_named = strlist_contains(&o->packages, "all");
	const bool none_named = !o->packages.count && !x.packages.count;
	for (size_t i = 0; i < TABLES_PACKAGES; i++) {
		bool named = all_named || strlist_contains(&o->packages, tables_packages[i]);
		if (named || (none_named && i == 0))
			strlist_ref(&w.packages, c->arena, tables_packages[i]);
	}

	strlist_append(&w.packages, c->arena, &x.packages);
	w.profile = &profile;
	const struct toolkit_row *toolkit;
	/* A version that no release has is a slip; one
	 * that another release has is left to the choice. */
	if (o->python && tables_need_python(t, o->python, e) < 0)
		return -1;
	if (o->cuda && tables_need_toolkit(t, o->cuda, &toolkit, e) < 0)
		return -1;
	if (cmd_root_named(c, &w.world, e) < 0)
		return -1;
	if (!w.python && w.world)
		w.python = world_python(w.world);
	if (pick_release(&w, c->arena, &release, e) < 0)
		return -1;
	if (!w.python && default_python(c, release, &w, e) < 0)
		return -1;
	ret->items = arena_array(c->arena, w.packages.count, sizeof(*ret->items));
	for (; ret->count < w.packages.count; ret->count++) {
		struct selection *s = &ret->items[ret->count];
		*s = (struct selection){{w.packages.items[ret->count], w.python, w.cuda, profile},
					release,
					w.note,
					NULL};
		if (strlist_contains(&x.packages, s->variant.package) &&
		    cmd_extension_cuda(c, o, s, e) < 0)
			return -1;
	}

	return 0;
}

static int select_by_name(struct cmd_context *c, const struct strlist *words,
			  struct selections *ret, struct err *e)
{
	const struct tables *t = c->tables;
	const struct cmd_select *o = cmd_selected(c);

	if (o->packages.count || o->python || o->cuda) {
		err_set(e, ERR_USAGE, "a variant's name already says package, Python and CUDA");
		return err_hint(e,
				"leave --package, --python and --cuda out, or use --profile "
				"instead of '%s'",
				words->items[0]);
	}

	const struct world *named;
	if (cmd_root_named(c, &named, e) < 0)
		return -1;
	ret->items = arena_array(c->arena, words->count, sizeof(*ret->items));
	for (; ret->count < words->count; ret->count++) {
		const char *word = words->items[ret->count];
		struct selection s = {0}, *at = &ret->items[ret->count];
		if (variant_parse(t, word, c->arena, &s.variant, e) < 0) {
			/* A profile instead of a variant gets its own error; otherwise the first
			 * error stays. */
			struct profile profile;
			if (variant_looks_like(word) ||
			    profile_load(t, word, c->arena, &profile, ERR_IGNORED) < 0)
				return -1;
			err_set(e, ERR_USAGE, "'%s' is a profile, not the name of a variant", word);
			return err_hint(e, "write --profile %s", shell_quoted(word, c->arena));
		}

		struct want w = {.tables = t,
				 .release = o->release ? o->release : c->own_release,
				 .python = s.variant.python,
				 .cuda = s.variant.cuda,
				 .profile = &s.variant.profile,
				 .world = named};
		strlist_ref(&w.packages, c->arena, s.variant.package);
		if (pick_release(&w, c->arena, &s.release, e) < 0)
			return err_wrap(e, "%s", word);
		size_t rank = tables_package_rank(s.variant.package);
		for (; at > ret->items && tables_package_rank(at[-1].variant.package) > rank; at--)
			at[0] = at[-1];
		*at = s;
	}

	return 0;
}

static int nothing_matches(const struct matrix *m, const struct strlist *only, struct arena *a,
			   struct err *e)
{
	struct matrix_walk w = {0};
	const char *first = matrix_next(m, &w, a);

	if (!first) {
		err_set(e, ERR_CONFIG, "matrix '%s' has no variant", m->name);
		return err_hint(e,
				"its filters 'only' and 'except' exclude every variant: see '%s'",
				m->file);
	}

	err_set(e, ERR_CONFIG, "no variant of matrix '%s' matches --only %s", m->name,
		strlist_join(only, a, ","));
	return err_hint(
		e, "its names are like %s; a glob must match the whole name, for example '*-%s'",
		first, "avx2");
}

static int select_by_matrix(struct cmd_context *c, const struct tables *t, struct selections *ret,
			    struct err *e)
{
	const struct cmd_select *o = cmd_selected(c);
	const struct matrix *m;
	struct strlist names = {0};
	struct matrix_walk w = {0};
	const char *name;

	if (o->packages.count || o->python || o->cuda) {
		err_set(e, ERR_USAGE, "a matrix already says packages, Pythons and toolkits");
		return err_hint(e,
				"leave --package, --python and --cuda out; --only '*-cuda12_8-*' "
				"selects from matrix '%s'",
				o->matrix);
	}

	if (matrix_load(t, o->matrix, c->arena, &m, e) < 0)
		return -1;
	const struct release_row *release = m->release;
	if (o->release && tables_need_release(t, o->release, &release, e) < 0)
		return -1;
	while ((name = matrix_next(m, &w, c->arena)))
		if (!o->only.count || strings_match(o->only.items, o->only.count, name))
			strlist_ref(&names, c->arena, name);
	if (!names.count)
		return nothing_matches(m, &o->only, c->arena, e);
	ret->items = arena_array(c->arena, names.count, sizeof(*ret->items));
	for (; ret->count < names.count; ret->count++) {
		struct selection *s = &ret->items[ret->count];
		s->release = release;
		if (variant_parse(t, names.items[ret->count], c->arena, &s->variant, e) < 0)
			return err_wrap(e, "matrix '%s'", m->name);
	}

	return 0;
}

static int check_ways(const struct cmd_context *c, const struct strlist *words, struct err *e)
{
	const struct cmd_select *o = cmd_selected(c);

	if (words->count && o->profile)
		return err_set(e, ERR_USAGE, "'%s' and --profile %s cannot be used together",
			       words->items[0], o->profile);
	if (words->count && o->matrix)
		return err_set(e, ERR_USAGE, "'%s' and --matrix %s cannot be used together",
			       words->items[0], o->matrix);
	if (o->profile && o->matrix)
		return err_set(e, ERR_USAGE, "--profile %s and --matrix %s cannot be used together",
			       o->profile, o->matrix);
	if (o->only.count && !o->matrix) {
		err_set(e, ERR_USAGE, "--only without --matrix");
		return err_hint(
			e, "it selects from the variants of a matrix ('ptbuild list --matrices')");
	}

	if (o->extensions.count && !o->profile) {
		err_set(e, ERR_USAGE, "--extension without --profile");
		return err_hint(e, "name what it is built for, for example --profile cpu-avx2 or "
				   "--profile sm90-avx2");
	}

	if (o->requirements && !o->extensions.count) {
		err_set(e, ERR_USAGE, "--requirements without --extension");
		return err_hint(e, "name the extension; a release has a list of its own");
	}

	if (o->units.count && !o->matrix)
		return err_set(
			e, ERR_USAGE,
			"--units without --matrix: it counts what the variants of a matrix share");
	if (words->count || o->profile || o->matrix)
		return 0;
	err_set(e, ERR_USAGE, "no profile, matrix or variant to %s", c->command->name);
	return err_hint(e, "name a profile, for example --profile sm90-avx512 or --profile "
			   "cpu-avx2, or a variant");
}

/* Options that would change nothing of what was selected. */
static int refuse_idle(const struct cmd_select *o, const struct selections *s, struct err *e)
{
	bool cuda = false, companion = false;

	for (size_t i = 0; i < s->count; i++) {
		cuda |= s->items[i].variant.profile.gpu == GPU_CUDA;
		companion |= !package_is_torch(s->items[i].variant.package);
	}

	if (!cuda && o->cuda_home)
		return err_set(e, ERR_USAGE,
			       "--cuda-home %s does not apply: profile '%s' has no CUDA",
			       o->cuda_home, s->items[0].variant.profile.name);
	if (o->plan.torch && !companion)
		return err_set(e, ERR_USAGE,
			       "--torch %s does not apply: it is for torchvision and torchaudio",
			       o->plan.torch);
	return 0;
}

int cmd_select(struct cmd_context *c, const struct strlist *words, struct selections *ret,
	       struct err *e)
{
	*ret = (struct selections){0};
	if (check_ways(c, words, e) < 0 || cmd_own_sources(c, words, e) < 0)
		return -1;
	const struct tables *t = c->tables;
	int rc = words->count              ? select_by_name(c, words, ret, e)
		 : cmd_selected(c)->matrix ? select_by_matrix(c, t, ret, e)
					   : select_by_profile(c, t, ret, e);
	return rc < 0 ? -1 : refuse_idle(cmd_selected(c), ret, e);
}

const char *cmd_select_cuda_home(const struct cmd_context *c)
{
	const char *home = cmd_selected(c)->cuda_home,
		   *set = c->global->root || c->world ? NULL : getenv("CUDA_HOME");
	return home ? home : set && *set == '/' ? set : NULL;
}

/* Finds malformed patches before anything is created; unpacking the source shows whether they
 * fit. */
static int check_patches(const struct plan *p, struct arena *a, struct err *e)
{
	for (size_t i = 0; i < p->patches_count; i++) {
		struct strlist files = {0};
		if (patch_scan_file(p->patches[i].path, a, &files, e) < 0)
			return -1;
	}

	return 0;
}

/* The CUDA toolkits of the root; `home` as for toolkit_probe, the same in every call. */
static int cmd_toolkits(struct cmd_context *c, const char *home, const struct toolkits **ret,
			struct err *e)
{
	const struct root *root = NULL;

	if (!c->toolkits &&
	    (cmd_root(c, &root, e) < 0 || toolkit_probe(c->tables, root, cmd_sandbox(c), home,
							c->run, c->arena, &c->toolkits, e) < 0))
		return -1;
	*ret = c->toolkits;
	return 0;
}

int cmd_select_plan(struct cmd_context *c, const struct selection *s,
		    const struct toolchain *toolchain, const char *torch, const char *torch_version,
		    const struct plan **ret, struct err *e)
{
	const struct plan_options o = cmd_plan_asked(c);
	const struct toolkits *toolkits = NULL;
	const bool cuda = s->variant.profile.gpu == GPU_CUDA || s->torch_cuda;
	if (toolchain && cuda && cmd_toolkits(c, cmd_select_cuda_home(c), &toolkits, e) < 0)
		return -1;
	struct plan_request q = {
		.variant = &s->variant,
		.release = s->release->name,
		.options = o,
		.toolchain = toolchain,
		.toolkits = toolkits,
		.own_root = !c->world && (c->global->root || cmd_sandbox(c) == SANDBOX_NONE),
		.torch = torch ? torch : o.torch,
		.torch_version = torch_version,
		.sandbox = cmd_sandbox(c),
		.elsewhere = sandbox_elsewhere(cmd_sandbox(c)),
		.without_protections = c->run->without_protections,
		.patches_dir = c->patches_dir,
		.digests = c->digests,
		.note = s->note,
		.torch_cuda = s->torch_cuda,
	};
	if (c->world) {
		q.glibc = c->world->pieces[0].part->glibc;
		q.python = world_python_program(c->world, c->arena);
	}

	return plan_resolve(c->tables, &q, c->arena, ret, e) < 0 ? -1
								 : check_patches(*ret, c->arena, e);
}
