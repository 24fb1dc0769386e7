#include <strings.h>

#include "base/sys/digest.h"
#include "core/plan/plan_parts.h"

char *plan_releases_with(const struct plan_context *c, const char *python, const char *cuda)
{
	struct strlist l = {0};

	for (unsigned i = 0; i < c->tables->releases_count; i++) {
		const struct release_row *r = &c->tables->releases[i];
		bool has_python = !python || strings_contain(r->pythons, r->pythons_count, python);
		bool has_cuda = !cuda || strings_contain(r->toolkits, r->toolkits_count, cuda);
		if (has_python && has_cuda && tables_package(r, c->variant.package))
			strlist_ref(&l, c->arena, r->name);
	}

	return strlist_join(&l, c->arena, " ");
}

static const struct source_row *find_source(const struct package_row *p, const char *name)
{
	return p ? text_search(name, p->sources, p->sources_count, sizeof(*p->sources)) : NULL;
}

/* That the archives the user names are sources of the
 * release, with digests that the tables do not gainsay. */
static int check_source(const struct plan_context *c, const char *file, const char *sha256,
			struct err *e)
{
	const struct source_row *s = NULL;
	struct strlist names = {0};

	for (size_t i = 0; !s && i < TABLES_PACKAGES; i++) {
		const struct package_row *p = tables_package(c->release, tables_packages[i]);
		s = find_source(p, path_base(file));
		for (unsigned k = 0; p && k < p->sources_count; k++)
			strlist_ref(&names, c->arena, p->sources[k].name);
	}

	if (!digest_valid_hex(sha256)) {
		err_set(e, ERR_USAGE, "--source %s: not a sha256: '%s'", file, sha256);
		return err_hint(
			e,
			"64 lower-case hex digits, as sha256sum prints them: --source FILE=SHA256");
	}

	if (!s) {
		err_set(e, ERR_USAGE, "--source %s: not a source of release %s", path_base(file),
			c->release->name);
		return err_hint(e,
				"release %s has these: %s; or choose another release with "
				"--release",
				c->release->name, strlist_join(&names, c->arena, " "));
	}

	if (!*s->sha256 || strcmp(s->sha256, sha256) == 0)
		return 0;
	err_set(e, ERR_INTEGRITY, "'%s' of release %s has the sha256 %s, not %s", s->name,
		c->release->name, s->sha256, sha256);
	return err_hint(e,
			"leave --source out, or rename the file: it is then a source of your own");
}

/* The package with the archives that the user names: their digests, and the place of a file. */
int need_sources(struct plan_context *c, struct err *e)
{
	const struct kvlist *given = &c->request->options.sources;

	if (!given->count)
		return 0;
	struct package_row *p = arena_alloc(c->arena, sizeof(*p));
	struct source_row *sources =
		arena_array(c->arena, c->package->sources_count, sizeof(*sources));

	for (size_t i = 0; i < given->count; i++)
		if (check_source(c, given->items[i].key, given->items[i].value, e) < 0)
			return -1;
	*p = *c->package;
	p->sources = sources;
	for (unsigned k = 0; k < p->sources_count; k++) {
		sources[k] = c->package->sources[k];
		for (size_t i = 0; i < given->count; i++) {
			const char *file = given->items[i].key;
			if (strcmp(path_base(file), sources[k].name) != 0)
				continue;
			struct strlist urls = {0};
			if (*file == '/')
				strlist_addf(&urls, c->arena, "file://%s", file);
			strlist_refs(&urls, c->arena, sources[k].urls, sources[k].urls_count);
			sources[k].sha256 = given->items[i].value;
			sources[k].urls_count = (unsigned)urls.count;
			sources[k].urls = urls.items;
		}
	}

	c->package = p;
	return 0;
}

int plan_unproven(const struct plan *p, struct err *e)
{
	for (unsigned i = 0; i < p->package_row->sources_count; i++) {
		const struct source_row *s = &p->package_row->sources[i];
		if (*s->sha256)
			continue;
		err_set(e, ERR_CONFIG, "'%s' of release %s has no proven digest: %s", s->name,
			p->release, s->unproven);
		return err_hint(e,
				"'ptbuild fetch --release %s --record' downloads it and keeps its "
				"digest, or give it yourself: --source /path/to/%s=SHA256; or "
				"take the official "
				"wheel: 'ptbuild slim --release %s --gpu TARGET'",
				p->release, s->name, p->release);
	}

	return 0;
}

int need_release(struct plan_context *c, struct err *e)
{
	return tables_need_release(c->tables, c->request->release, &c->release, e);
}

int need_package(struct plan_context *c, struct err *e)
{
	const char *package = c->variant.package;

	c->package = tables_package(c->release, package);
	if (c->package)
		return 0;
	err_set(e, ERR_POLICY, "release '%s' has no %s", c->release->name, package);
	const char *others = plan_releases_with(c, NULL, NULL);
	return err_hint(e, "%s%s",
			*others ? "releases that have it: " : "no release in the tables has it",
			others);
}

int need_python(struct plan_context *c, struct err *e)
{
	const char *python = c->variant.python;

	if (strings_contain(c->release->pythons, c->release->pythons_count, python))
		return 0;
	err_set(e, ERR_POLICY, "release '%s' does not build for Python %s", c->release->name,
		python);
	const char *others = plan_releases_with(c, python, NULL);
	const struct strlist own = {.items = c->release->pythons,
				    .count = c->release->pythons_count};
	return err_hint(e, "it builds for %s%s%s", strlist_join(&own, c->arena, " "),
			*others ? arena_printf(c->arena, "; Python %s is in release ", python) : "",
			others);
}

int need_platform(struct plan_context *c, struct err *e)
{
	const struct profile *p = &c->variant.profile;

	if (!p->isa || strcmp(p->isa->platform, p->platform) == 0)
		return 0;
	err_set(e, ERR_POLICY, "isa '%s' is of %s, the profile '%s' of %s", p->isa->name,
		p->isa->platform, p->name, p->platform);
	return err_hint(e, "choose an instruction set of %s ('ptbuild list --isas')", p->platform);
}

/* The BLAS rows are in order of preference: the first of a platform is its default. */
static const struct blas_row *default_blas(const struct tables *t, const char *platform)
{
	for (unsigned i = 0; i < t->blas_count; i++)
		if (strings_contain(t->blas[i].platforms, t->blas[i].platforms_count, platform))
			return &t->blas[i];
	return NULL;
}

/* Whether it is for the platform or not. */
static const struct blas_row *choose_blas(const struct tables *t, const struct plan_request *q)
{
	const struct profile *p = &q->variant->profile;

	if (q->options.blas)
		return tables_blas(t, q->options.blas);
	return p->blas ? p->blas : default_blas(t, p->platform);
}

static bool has_blas(const struct plan_request *q)
{
	return package_is_torch(q->variant->package);
}

const struct blas_row *plan_blas(const struct tables *t, const struct plan_request *q)
{
	const struct blas_row *row = has_blas(q) ? choose_blas(t, q) : NULL;

	return row && strings_contain(row->platforms, row->platforms_count,
				      q->variant->profile.platform)
		       ? row
		       : NULL;
}

const struct blas_row *plan_other_blas(const struct plan_context *c)
{
	const struct blas_row *row = choose_blas(c->tables, c->request);
	return row == default_blas(c->tables, c->variant.profile.platform) ? NULL : row;
}

static int unknown_blas(const struct plan_context *c, const char *name, struct err *e)
{
	struct strlist names = {0};

	for (unsigned i = 0; i < c->tables->blas_count; i++)
		strlist_ref(&names, c->arena, c->tables->blas[i].name);
	err_set(e, ERR_CONFIG, "unknown BLAS '%s'", name);
	if (strcasecmp(name, "cublas") == 0)
		return err_hint(
			e,
			"cuBLAS is not a choice: it comes with CUDA; for the CPU choose one of %s",
			strlist_join(&names, c->arena, " "));
	return suggest_known(e, suggest_nearest(name, names.items, names.count), &names);
}

/* A root's GCC that is too old for the instruction set. Another
 * compiler that nvcc asks for is newer than any of these. */
int need_compiler(struct plan_context *c, struct err *e)
{
	const struct isa_row *isa = c->variant.profile.isa;
	const struct tool *gcc =
		c->request->toolchain ? toolchain_get(c->request->toolchain, "gcc") : NULL;

	if (!isa || !gcc || !*gcc->version || version_cmp(gcc->version, isa->gcc_min) >= 0)
		return 0;
	err_set(e, ERR_POLICY, "gcc %s of the root does not know '%s', which needs GCC %s",
		gcc->version, isa->name, isa->gcc_min);
	return err_hint(e, "use a root with GCC %s or newer (--root), or another instruction set",
			isa->gcc_min);
}

int need_known_blas(struct plan_context *c, struct err *e)
{
	const char *asked = c->request->options.blas;
	return asked && !tables_blas(c->tables, asked) ? unknown_blas(c, asked, e) : 0;
}

int need_blas(struct plan_context *c, struct err *e)
{
	const struct profile *p = &c->variant.profile;

	c->blas = choose_blas(c->tables, c->request);
	c->blas_origin = c->request->options.blas ? SETTING_COMMAND_LINE : p->blas ? p->file : NULL;
	if (c->blas)
		return 0;
	err_set(e, ERR_CONFIG, "no BLAS for %s", p->platform);
	return err_hint(e, "add a row with that platform to blas.yaml");
}

int need_blas_platform(struct plan_context *c, struct err *e)
{
	const char *platform = c->variant.profile.platform;

	if (strings_contain(c->blas->platforms, c->blas->platforms_count, platform))
		return 0;
	const struct blas_row *best = default_blas(c->tables, platform);
	err_set(e, ERR_POLICY, "blas '%s' does not exist on %s", c->blas->name, platform);
	return err_hint(e, "use %s", best ? best->name : "another platform");
}

int need_gpu_profile(struct plan_context *c, struct err *e)
{
	const struct package_row *p = c->package;

	if (!p->cuda_only || c->variant.profile.gpu == GPU_CUDA)
		return 0;
	err_set(e, ERR_POLICY, "%s has GPU code alone, and profile '%s' has no CUDA", p->name,
		c->variant.profile.name);
	return err_hint(e, "use a profile with GPU targets, such as sm90-avx2");
}

int need_extension_torch(struct plan_context *c, struct err *e)
{
	const struct package_row *p = c->package;
	const char *torch = c->request->torch_version;
	bool in = false;

	if (!torch || !*torch)
		torch = c->release->base;
	if (version_in(torch, p->torch, &in, e) < 0)
		return err_wrap(e, "%s: what it requires of torch", p->name);
	if (in)
		return 0;
	err_set(e, ERR_POLICY, "%s %s requires torch%s, not torch %s", p->name, p->version,
		p->torch, torch);
	return err_hint(e,
			"name another torch with --torch or --release, or take another version of "
			"%s",
			p->name);
}

int need_extension_python(struct plan_context *c, struct err *e)
{
	const struct package_row *p = c->package;
	bool in = false;

	if (version_in(c->variant.python, p->python, &in, e) < 0)
		return err_wrap(e, "%s: what it requires of Python", p->name);
	if (in)
		return 0;
	err_set(e, ERR_POLICY, "%s %s requires Python %s, not %s", p->name, p->version, p->python,
		c->variant.python);
	return err_hint(e, "name another Python with --python, or take another version of %s",
			p->name);
}

/* "2.9" of "2.9.1+cpu": releases of one line have the same C++ interface. */
static bool same_line(const char *left, const char *right)
{
	const size_t major = strcspn(left, ".");
	const size_t n = left[major] ? major + 1 + strspn(left + major + 1, "0123456789") : major;
	return strncmp(left, right, n) == 0 && !isdigit((unsigned char)right[n]);
}

/* The release whose torch is of this line; of several
 * the first that is offered; NULL: none has the package. */
static const struct release_row *release_of_torch(const struct plan_context *c, const char *torch)
{
	const struct release_row *found = NULL;

	for (unsigned i = 0; i < c->tables->releases_count; i++) {
		const struct release_row *r = &c->tables->releases[i];
		if (tables_package(r, c->variant.package) && same_line(torch, r->base) &&
		    (!found || (!tables_offered(found) && tables_offered(r))))
			found = r;
	}

	return found;
}

/* torchvision and torchaudio are for the torch of
 * their release, or for what their stable ABI takes. */
int need_companion_torch(struct plan_context *c, struct err *e)
{
	const struct package_row *p = c->package;
	const char *torch = c->request->torch_version;
	bool in = false;

	if (!torch || !*torch || same_line(torch, c->release->base))
		return 0;
	if (*p->torch && version_in(torch, p->torch, &in, e) < 0)
		return err_wrap(e, "%s: what it takes of torch", c->variant.package);
	if (in)
		return 0;
	const struct release_row *other = release_of_torch(c, torch);
	err_set(e, ERR_POLICY, "%s %s goes with torch %s, not %s", c->variant.package, p->version,
		*p->torch ? p->torch : c->release->base, torch);
	return other ? err_hint(e, "release %s has %s %s: --release %s", other->name,
				c->variant.package,
				tables_package(other, c->variant.package)->version, other->name)
		     : err_hint(e, "leave --torch out, or give it a torch %s", c->release->base);
}
