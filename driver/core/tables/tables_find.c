#include <strings.h>

#include "core/tables/tables.h"

const char *const tables_packages[TABLES_PACKAGES] = {"pytorch", "torchvision", "torchaudio"};

size_t tables_package_rank(const char *package)
{
	size_t i = 0;

	while (i < TABLES_PACKAGES && strcmp(tables_packages[i], package) != 0)
		i++;
	return i;
}

const char *tables_distribution(const char *package)
{
	return package_is_torch(package) ? "torch" : package;
}

const struct isa_row *tables_isa(const struct tables *t, const char *name)
{
	for (unsigned i = 0; i < t->isas_count; i++) {
		const struct isa_row *row = &t->isas[i];
		if (strcmp(row->name, name) == 0 ||
		    strings_contain(row->aliases, row->aliases_count, name))
			return row;
	}

	return NULL;
}

const struct isa_group *tables_isa_group(const struct tables *t, const char *name)
{
	return text_search(name, t->groups, t->groups_count, sizeof(*t->groups));
}

bool tables_python_known(const struct tables *t, const char *python)
{
	for (unsigned i = 0; i < t->releases_count; i++)
		if (strings_contain(t->releases[i].pythons, t->releases[i].pythons_count, python))
			return true;
	return false;
}

const struct gpu_row *tables_gpu(const struct tables *t, const char *sm)
{
	const struct gpu_row *row = text_search(sm, t->gpus, t->gpus_count, sizeof(*t->gpus));

	for (unsigned i = 0; !row && i < t->gpus_count; i++)
		if (strings_contain(t->gpus[i].aliases, t->gpus[i].aliases_count, sm))
			row = &t->gpus[i];
	return row;
}

const struct gpu_row *tables_gpu_capability(const struct tables *t, const char *text)
{
	const size_t n = strspn(text, "0123456789.");

	for (unsigned i = 0; i < t->gpus_count; i++)
		if (strlen(t->gpus[i].capability) == n &&
		    strncmp(t->gpus[i].capability, text, n) == 0)
			return &t->gpus[i];
	return NULL;
}

bool tables_affects(const struct advisory_row *row, const char *distribution, const char *version)
{
	bool in;
	return strcmp(tables_distribution(row->package), distribution) == 0 &&
	       version_in(version, row->versions, &in, ERR_IGNORED) == 0 && in;
}

bool tables_offered(const struct release_row *r)
{
	return strcmp(r->name, r->base) == 0 && !*r->asked;
}

unsigned *tables_chips(const struct tables *t, struct arena *a, size_t *ret_count)
{
	unsigned *numbers = arena_array(a, t->gpus_count + 1, sizeof(*numbers));

	*ret_count = 0;
	for (unsigned i = 0; i < t->gpus_count; i++)
		if (t->gpus[i].tegra)
			numbers[(*ret_count)++] = (unsigned)strtoul(t->gpus[i].sm, NULL, 10);
	return numbers;
}

const struct toolkit_row *tables_toolkit(const struct tables *t, const char *version)
{
	return text_search(version, t->toolkits, t->toolkits_count, sizeof(*t->toolkits));
}

const char *tables_source(const struct tables *t, const char *file)
{
	for (const struct table_source *s = t->sources; s; s = s->next)
		if (strcmp(s->file, file) == 0)
			return s->text;
	return "";
}

const struct blas_row *tables_blas(const struct tables *t, const char *name)
{
	return text_search(name, t->blas, t->blas_count, sizeof(*t->blas));
}

bool toggle_applies(const struct toggle_row *row, const char *version)
{
	return (!*row->since || version_cmp(version, row->since) >= 0) &&
	       (!*row->until || version_cmp(version, row->until) < 0);
}

const struct toggle_row *tables_toggle(const struct tables *t, const char *package,
				       const char *name, const char *version)
{
	for (unsigned i = 0; i < t->toggles_count; i++) {
		const struct toggle_row *row = &t->toggles[i];
		if (strcmp(row->name, name) != 0 || strcmp(row->package, package) != 0)
			continue;
		if (!version || toggle_applies(row, version))
			return row;
	}

	return NULL;
}

const struct retired_row *tables_retired(const struct tables *t, const char *package,
					 const char *name, const char *version)
{
	for (unsigned i = 0; i < t->retired_count; i++) {
		const struct retired_row *row = &t->retired[i];
		if (strcmp(row->name, name) != 0 || strcmp(row->package, package) != 0)
			continue;
		if (!version || !*row->since || version_cmp(version, row->since) >= 0)
			return row;
	}

	return NULL;
}

/* Returns 1 for CMake's words that mean on, 0 for those that mean off, -1 for any other. */
static int truth_of(const char *word)
{
	static const char *const yes[] = {"1", "on", "true", "yes", "y"};
	static const char *const no[] = {"0", "off", "false", "no", "n"};

	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		if (strcasecmp(word, yes[i]) == 0)
			return 1;
		if (strcasecmp(word, no[i]) == 0)
			return 0;
	}

	return -1;
}

int tables_toggle_value(const struct toggle_row *row, const char *value, const char **ret,
			struct err *e)
{
	int truth = truth_of(value);
	AUTO_ARENA struct arena a = {0};

	for (unsigned i = 0; i < row->values_count; i++) {
		const char *v = row->values[i];
		if (strcasecmp(v, value) == 0 || (truth >= 0 && truth_of(v) == truth)) {
			*ret = v;
			return 0;
		}
	}

	const struct strlist known = {.items = row->values, .count = row->values_count};
	err_set(e, ERR_CONFIG, "'%s' cannot be '%s'", row->name, value);
	return err_hint(e, "it accepts %s", strlist_join(&known, &a, ", "));
}

static int unknown_version(const char *what, const char *asked, const struct strlist *known,
			   const char *more, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *near = suggest_version(asked, known->items, known->count);

	err_set(e, ERR_CONFIG, "unknown %s '%s'", what, asked);
	return suggest_hint(e, near,
			    arena_printf(&a, "known: %s%s", strlist_join(known, &a, " "), more));
}

int tables_need_release(const struct tables *t, const char *name, const struct release_row **ret,
			struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist known = {0};

	*ret = text_search(name, t->releases, t->releases_count, sizeof(**ret));
	for (unsigned i = 0; i < t->releases_count; i++)
		strlist_ref(&known, &a, t->releases[i].name);
	return *ret ? 0 : unknown_version("release", name, &known, "", e);
}

int tables_need_toolkit(const struct tables *t, const char *version, const struct toolkit_row **ret,
			struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist known = {0};

	for (unsigned i = 0; i < t->toolkits_count; i++)
		strlist_ref(&known, &a, t->toolkits[i].version);
	*ret = tables_toolkit(t, version);
	return *ret ? 0 : unknown_version("CUDA toolkit", version, &known, "", e);
}

int tables_need_python(const struct tables *t, const char *python, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist known = {0}, usual = {0}; /* usual: without --release */

	for (unsigned i = 0; i < t->releases_count; i++)
		for (unsigned k = 0; k < t->releases[i].pythons_count; k++) {
			const char *own = t->releases[i].pythons[k];
			strlist_once(&known, &a, own);
			if (tables_offered(&t->releases[i]))
				strlist_once(&usual, &a, own);
		}
	if (strlist_contains(&known, python))
		return 0;
	const char *plain = arena_strndup(&a, python, *python ? strlen(python) - 1 : 0);
	if (!path_has_suffix(python, "t") || !strlist_contains(&known, plain))
		return unknown_version("Python", python, &known, "; or leave --python out", e);
	err_set(e, ERR_CONFIG, "free-threaded Python '%s' is not supported", python);
	return strlist_contains(&usual, plain)
		       ? err_hint(e, "use --python %s", plain)
		       : err_hint(e, "use one of %s with --python, or leave it out",
				  strlist_join(&usual, &a, " "));
}

void tables_cflags(const struct package_row *p, const char *platform, struct arena *a,
		   struct strlist *ret)
{
	for (unsigned i = 0; i < p->extra_cflags_count; i++) {
		const struct cflags_row *row = &p->extra_cflags[i];
		for (unsigned k = 0;
		     strings_allow(row->platforms, row->platforms_count, platform) &&
		     k < row->flags_count;
		     k++)
			strlist_ref(ret, a, row->flags[k]);
	}
}

const struct package_row *tables_package(const struct release_row *r, const char *package)
{
	const struct package_row *const rows[TABLES_PACKAGES + 1] = {r->pytorch, r->torchvision,
								     r->torchaudio};

	for (unsigned i = 0; i < r->extensions_count; i++)
		if (strcmp(r->extensions[i].name, package) == 0)
			return &r->extensions[i];
	return rows[tables_package_rank(package)];
}

const struct tables *tables_extend(const struct tables *t, const struct package_row *extensions,
				   size_t count, struct arena *a)
{
	struct tables *all = arena_alloc(a, sizeof(*all));
	struct package_row *rows = arena_array(a, count, sizeof(*rows));

	for (size_t k = 0; k < count; k++) {
		struct strlist requires = {0};
		for (unsigned i = 0; i < t->extension_requires_count; i++)
			strlist_once(&requires, a, t->extension_requires[i]);
		for (unsigned i = 0; i < extensions[k].python_requires_count; i++)
			strlist_once(&requires, a, extensions[k].python_requires[i]);
		rows[k] = extensions[k];
		rows[k].python_requires = requires.items;
		rows[k].python_requires_count = (unsigned) requires.count;
	}

	*all = *t;
	all->releases = arena_array(a, t->releases_count, sizeof(*all->releases));
	for (unsigned i = 0; i < t->releases_count; i++) {
		all->releases[i] = t->releases[i];
		all->releases[i].extensions = rows;
		all->releases[i].extensions_count = (unsigned)count;
	}

	return all;
}

const char *requirements_path(const char *dir, const char *requirements, struct arena *a)
{
	return requirements_is_lock(requirements) ? requirements : path_join(a, dir, requirements);
}

const struct tables *tables_lock(const struct tables *t, const char *extension, const char *lock,
				 struct arena *a)
{
	struct tables *all = arena_alloc(a, sizeof(*all));

	*all = *t;
	all->releases = arena_array(a, t->releases_count, sizeof(*all->releases));
	for (unsigned i = 0; i < t->releases_count; i++) {
		struct release_row *r = &all->releases[i];
		*r = t->releases[i];
		struct package_row *rows = arena_array(a, r->extensions_count, sizeof(*rows));
		for (unsigned k = 0; k < r->extensions_count; k++) {
			rows[k] = r->extensions[k];
			if (strcmp(rows[k].name, extension) == 0)
				rows[k].requirements = lock;
		}

		r->extensions = rows;
	}

	return all;
}

static struct package_row *own_package(const struct package_row *p, const struct own_row *own,
				       struct arena *a)
{
	struct package_row *row = arena_alloc(a, sizeof(*row));
	struct source_row *source = arena_alloc(a, sizeof(*source));

	*row = *p;
	*source = own->source;
	row->sources = source;
	row->sources_count = 1;
	row->series = "";
	row->skip_patches_count = 0;
	row->own_version = own->version;
	row->own_state = own->state;
	return row;
}

const struct tables *tables_own(const struct tables *t, const struct own_row *own, struct arena *a)
{
	const size_t rank = tables_package_rank(own->package);

	if (rank >= TABLES_PACKAGES)
		return t;
	struct tables *all = arena_alloc(a, sizeof(*all));
	*all = *t;
	all->releases = arena_array(a, t->releases_count, sizeof(*all->releases));
	for (unsigned i = 0; i < t->releases_count; i++) {
		struct release_row *r = &all->releases[i];
		*r = t->releases[i];
		struct package_row **rows[TABLES_PACKAGES] = {&r->pytorch, &r->torchvision,
							      &r->torchaudio};
		struct package_row **at = rows[rank];
		*at = *at ? own_package(*at, own, a) : NULL;
	}

	return all;
}

bool tables_doubts(const struct tables *t, const char *package, const char *version,
		   const char *sha256)
{
	AUTO_ARENA struct arena a = {0};
	const char *of = arena_printf(&a, "%s %s ", package, version);
	bool known = false;

	for (size_t i = 0; i < t->known_sources.count; i++) {
		const char *line = t->known_sources.items[i];
		if (strncmp(line, of, strlen(of)) != 0)
			continue;
		known = true;
		if (strcmp(line + strlen(of), sha256) == 0)
			return false;
	}

	return known;
}

const struct package_row *tables_extension(const struct tables *t, const char *name,
					   const char *version)
{
	for (unsigned i = 0; i < t->torch_extensions_count; i++) {
		const struct package_row *row = &t->torch_extensions[i];
		if (strcmp(row->name, name) == 0 &&
		    (!*version || strcmp(row->version, version) == 0))
			return row;
	}

	return NULL;
}

const char *tables_need_wheel(const struct need_row *row)
{
	return *row->wheel ? row->wheel : row->module;
}

const char *tables_gcc(const struct release_row *r, const char *platform)
{
	return strcmp(platform, "aarch64-linux") == 0 && r->gcc_arm && *r->gcc_arm ? r->gcc_arm
										   : r->gcc;
}
