#include "core/plan/plan.h"

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "core/plan/plan_parts.h"

char *plan_full_version(const struct plan *p, struct arena *a)
{
	return arena_printf(a, "%s%s%s", p->version, *p->local_label ? "+" : "", p->local_label);
}

int plan_patches(const char *patches_dir, const char *release, struct arena *a, struct plan *p,
		 struct err *e)
{
	if (!patches_dir)
		return 0;
	const char *dir = path_join(a, path_join(a, patches_dir, p->package), release);
	const char *series = path_join(a, dir, "series");
	struct strlist names = {0};
	if (!fs_exists(TRUSTED, series))
		return 0;
	if (series_read(series, NULL, a, &names, e) < 0)
		return -1;
	p->patches = arena_array(a, names.count, sizeof(*p->patches));
	for (size_t i = 0; i < names.count; i++) {
		char *sha256 = arena_alloc(a, DIGEST_HEX_LEN + 1);
		struct plan_patch patch = {names.items[i], path_join(a, dir, names.items[i]),
					   sha256};
		if (digest_file(patch.path, sha256, e) < 0)
			return err_wrap(e, "patch '%s' of '%s'", patch.name, series);
		p->patches[p->patches_count++] = patch;
	}

	return 0;
}

/* The torch that torchvision and torchaudio are built against: its variant,
 * and its version as far as it is known. `label`: of ptbuild's own. */
static void pair(const struct plan_context *c, const char *label, struct plan *p)
{
	const struct plan_request *q = c->request;

	p->torch = "";
	p->torch_version = "";
	if (package_is_torch(p->package))
		return;
	struct variant torch = c->variant;
	torch.package = PACKAGE_TORCH;
	strlist_ref(&p->depends, c->arena, variant_name(&torch, c->arena));
	p->torch = q->torch ? q->torch : "";
	if (q->torch_version && *q->torch_version)
		p->torch_version = q->torch_version;
	else if (c->release->pytorch && strcmp(p->torch, "root") != 0)
		p->torch_version =
			arena_printf(c->arena, "%s+%s", tables_version(c->release->pytorch),
				     plan_label_of_source(c->release->pytorch, label, c->arena));
}

/* The table's ranges are checked when it is loaded. */
static bool is_required(const struct cuda_require_row *row, const struct variant *v)
{
	bool in;
	return strings_allow(row->platforms, row->platforms_count, v->profile.platform) &&
	       version_in(v->cuda, row->cuda, &in, ERR_IGNORED) == 0 && in;
}

/* NVIDIA's packages for Arm are those of servers. */
const char *plan_usual_libraries(const struct plan_context *c)
{
	return c->probed && c->probed->tegra ? "system" : "packages";
}

static void describe(const struct plan_context *c, struct plan *p)
{
	const struct plan_request *q = c->request;
	const struct variant *v = &c->variant;
	struct arena *a = c->arena;

	p->variant = variant_name(v, a);
	p->package = v->package;
	p->distribution = tables_distribution(v->package);
	p->release = c->release->name;
	p->version = tables_version(c->package);
	p->platform = v->profile.platform;
	p->python = v->python;
	p->cuda = v->cuda;
	for (unsigned i = 0; i < v->profile.targets_count; i++)
		strlist_ref(&p->gpu, a, buildenv_capability(&v->profile.targets[i], a));
	p->isa = v->profile.isa ? v->profile.isa->name : NULL;
	p->blas = c->blas ? c->blas->name : NULL;
	p->isa_row = v->profile.isa;
	p->toolkit = c->probed;
	p->toolkit_row = c->toolkit;
	p->torch_toolkit = c->probed;
	p->torch_toolkit_row = c->toolkit;
	if (!v->cuda && q->torch_cuda) {
		p->torch_toolkit = q->toolkits ? toolkit_find(q->toolkits, q->torch_cuda) : NULL;
		p->torch_toolkit_row = tables_toolkit(c->tables, q->torch_cuda);
	}

	p->blas_row = c->blas;
	if (v->profile.isa)
		strlist_refs(&p->cpu_flags, a, v->profile.isa->flags, v->profile.isa->flags_count);
	p->release_row = c->release;
	p->package_row = c->package;
	p->metadata_rev = q->options.metadata_rev ? q->options.metadata_rev : 1;
	const char *libraries =
		q->options.cuda_libraries ? q->options.cuda_libraries : plan_usual_libraries(c);
	p->cuda_libraries = v->cuda ? libraries : "";
	if (v->cuda)
		strlist_refs(&p->driver_libraries, a, c->tables->driver_libraries,
			     c->tables->driver_libraries_count);
	p->sandbox = sandbox_text(q->sandbox, q->without_protections, a);
	p->elsewhere = q->elsewhere;
	const struct package_row *row = c->package;
	strlist_refs(&p->requires, c->arena, row->install_requires, row->install_requires_count);
	for (unsigned i = 0; p->cuda && i < row->cuda_requires_count; i++)
		if (is_required(&row->cuda_requires[i], &c->variant))
			strlist_ref(&p->requires, c->arena, row->cuda_requires[i].requirement);
	p->platform_tag = q->options.platform_tag ? q->options.platform_tag : "manylinux";
}

static void keep_sources(const struct tables *t, const struct settings *s, struct plan *p,
			 struct arena *a)
{
	for (size_t i = 0; i < s->count; i++) {
		const char *file = s->items[i].file, *text;
		if (!kvlist_get(&p->fact_sources, file) && *(text = tables_source(t, file)))
			kvlist_set(&p->fact_sources, a, file, text);
	}
}

int plan_cuda(const struct tables *t, const struct plan_request *q, struct arena *a,
	      const char **ret, struct err *e)
{
	struct plan_context c = {.tables = t, .request = q, .arena = a, .variant = *q->variant};

	if (plan_check(&c, e) < 0)
		return -1;
	*ret = c.variant.cuda;
	return 0;
}

/* PATH of the build, by where the root's Python is or will be. */
static const char *path_of(const struct plan_request *q, struct arena *a)
{
	const struct tool *python = q->toolchain ? toolchain_get(q->toolchain, "python3") : NULL;
	return root_path_of(python ? python->path : q->python, a);
}

int plan_resolve(const struct tables *t, const struct plan_request *q, struct arena *a,
		 const struct plan **ret, struct err *e)
{
	struct plan_context c = {.tables = t, .request = q, .arena = a, .variant = *q->variant};

	if (plan_check(&c, e) < 0)
		return -1;
	struct plan *p = arena_alloc(a, sizeof(*p));
	describe(&c, p);
	struct buildenv_request request = {.tables = t,
					   .release = c.release,
					   .row = c.package,
					   .package = p->package,
					   .profile = &c.variant.profile,
					   .blas = c.blas,
					   .blas_origin = c.blas_origin,
					   .toolkit = c.probed && c.probed->cc ? c.probed : NULL,
					   .path = path_of(q, a),
					   .torch_version = "",
					   .options = &q->options};
	struct buildenv env = {0};
	const char *label;
	if (plan_label(&c, &request, &label, e) < 0)
		return -1;
	pair(&c, label, p);
	p->local_label = plan_label_with_torch(&c, label, p->torch_version);
	request.label = p->local_label;
	request.torch_version = p->torch_version;
	if (buildenv_resolve(&request, a, &env, e) < 0 || plan_check_gpu_options(&c, &env, e) < 0)
		return -1;
	p->env = env.env;
	p->cmake = env.cmake;
	p->cache = env.cache;
	keep_sources(t, &p->env, p, a);
	keep_sources(t, &p->cmake, p, a);
	kvlist_sort(&p->fact_sources);
	if (!c.package->own_version && plan_patches(q->patches_dir, c.release->name, a, p, e) < 0)
		return -1;
	plan_notes(&c, &env);
	p->notes = c.notes;
	p->asides = c.asides;
	p->advisories = c.advisories;
	p->advised = c.advised;
	const char *glibc = q->toolchain ? q->toolchain->glibc : q->glibc;
	runs_on_of_plan(t, p, glibc ? glibc : "", a, &p->runs_on);
	struct plan_need *needs = NULL;
	for (size_t i = 0,
		    n = p->cuda && q->toolkits ? plan_root_needs(p, q->toolkits, a, &needs) : 0;
	     i < n; i++)
		if (!needs[i].text)
			return err_take(e, &needs[i].why);
	if (plan_keys(&c, p, e) < 0)
		return -1;
	*ret = p;
	return 0;
}

#define MAX_SERIES (1U << 20)

/* A line of a series of patches. */
struct series_line {
	const char *series; /* the file */
	unsigned number;
	const char *text;
};

/* The name on it, NULL on one without. */
static int series_name(const struct series_line *l, struct arena *a, const char **ret,
		       struct err *e)
{
	struct strlist words = {0};

	*ret = NULL;
	strlist_split(&words, a, l->text, " \t\r");
	for (size_t i = 0; i < words.count && words.items[i][0] != '#'; i++) {
		if (i == 0) {
			*ret = words.items[0];
		} else if (strcmp(words.items[i], "-p1") != 0) {
			err_set(e, ERR_CONFIG, "%s:%u: option '%s' of patch '%s' is not supported",
				l->series, l->number, words.items[i], *ret);
			return err_hint(e, "write the patch for -p1, in its forward direction");
		}
	}

	if (*ret && !path_is_safe_relative(*ret))
		return err_set(e, ERR_CONFIG, "%s:%u: unsafe patch name '%s'", l->series, l->number,
			       *ret);
	return 0;
}

int series_read(const char *series, const struct strlist *skip, struct arena *a,
		struct strlist *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct strlist all = {0}, out = {0};

	if (fs_read(TRUSTED, series, MAX_SERIES, &text, e) < 0)
		return -1;
	const char *p = buf_cstr(&text), *end = p + text.len;
	if (memchr(p, '\0', text.len))
		return err_set(e, ERR_CONFIG, "'%s' is not a text file", series);
	for (unsigned line_no = 1; p < end; line_no++) {
		size_t n = strcspn(p, "\n");
		const struct series_line line = {series, line_no, arena_strndup(a, p, n)};
		const char *name;
		if (series_name(&line, a, &name, e) < 0)
			return -1;
		p += n + (p[n] == '\n');
		if (!name)
			continue;
		if (strlist_contains(&all, name))
			return err_set(e, ERR_CONFIG, "%s:%u: patch '%s' is listed twice", series,
				       line_no, name);
		strlist_add(&all, a, name);
		if (!skip || !strlist_contains(skip, name))
			strlist_add(&out, a, name);
	}

	for (size_t i = 0; skip && i < skip->count; i++) {
		if (!strlist_contains(&all, skip->items[i])) {
			err_set(e, ERR_CONFIG, "'%s' has no patch '%s' to skip", series,
				skip->items[i]);
			return err_hint(e, "take it out of 'skip_patches' in the release's file");
		}
	}

	strlist_append(ret, a, &out);
	return 0;
}
