#include "core/tables/tables.h"

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "core/tables/tables_parts.h"

#define KNOWN_SOURCES "known_sources"

enum { KNOWN_SOURCES_MAX = 1 << 20 };

struct loader {
	struct tables *t;
	struct arena *a;
};

static int load_file(struct loader *l, const char *name, const struct yaml_schema *schema,
		     void *data, struct err *e)
{
	const char *path = path_join(l->a, l->t->dir, name);

	if (yaml_load(path, schema, l->a, data, NULL, e) == 0)
		return 0;
	if (fs_exists(TRUSTED, path))
		return -1;
	err_set(e, ERR_CONFIG, "no table '%s'", path);
	return err_hint(
		e, "--profiles names the directory that holds isa.yaml, gpu.yaml and releases/");
}

/* Most tables say at their top where their facts come from. */
static void keep_sources(struct loader *l, const char *name, const char *text)
{
	struct table_source *s = arena_alloc(l->a, sizeof(*s));
	*s = (struct table_source){name, text, l->t->sources};
	l->t->sources = s;
}

static int load_members(struct loader *l, struct err *e)
{
	static const struct {
		const char *name;
		const struct yaml_schema *schema;
	} files[] = {{"isa.yaml", &schema_isa},
		     {"gpu.yaml", &schema_gpu},
		     {"cuda.yaml", &schema_cuda},
		     {"blas.yaml", &schema_blas},
		     {"toggles.yaml", &schema_toggles},
		     {"corrections.yaml", &schema_corrections},
		     {"needs.yaml", &schema_needs},
		     {"captured.yaml", &schema_captured},
		     {"slim.yaml", &schema_slim},
		     {"torch_extensions.yaml", &schema_torch_extensions}};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		/* A set of tables may pin no extensions, and remove GPU code alone. */
		if (i + 2 >= ARRAY_LEN(files) &&
		    !fs_exists(TRUSTED, path_join(l->a, l->t->dir, files[i].name)))
			continue;
		l->t->file_sources = "";
		if (load_file(l, files[i].name, files[i].schema, l->t, e) < 0)
			return -1;
		keep_sources(l, files[i].name, l->t->file_sources);
	}

	return 0;
}

/* The tables by which a wheel is judged count in its output key as a whole. */
static int load_rules(struct loader *l, struct err *e)
{
	static const char *const of_libraries[] = {"layouts", "driver_libraries", NULL};
	struct tables *t = l->t;

	if (load_file(l, "extensions.yaml", &schema_extensions, &t->extensions, e) < 0 ||
	    load_file(l, "dispatch.yaml", &schema_dispatch, &t->dispatch, e) < 0 ||
	    load_file(l, "manylinux.yaml", &schema_manylinux, &t->manylinux, e) < 0 ||
	    load_file(l, "threads.yaml", &schema_threads, &t->threads, e) < 0)
		return -1;
	schema_digest(&schema_extensions, &t->extensions, NULL, t->extensions_digest);
	schema_digest(&schema_dispatch, &t->dispatch, NULL, t->dispatch_digest);
	schema_digest(&schema_manylinux, &t->manylinux, NULL, t->manylinux_digest);
	schema_digest(&schema_threads, &t->threads, NULL, t->threads_digest);
	schema_digest(&schema_cuda, t, of_libraries, t->cuda_libraries_digest);
	return 0;
}

/* How many rows one with these names makes; -1 when it has none, or both forms. */
static int names_of(const struct yaml_place *at, const char *name, unsigned names_count,
		    struct err *e)
{
	if (*name && names_count)
		return row_bad(at, e, "'%s' together with 'names': use one of them", name);
	if (!*name && !names_count)
		return row_bad(at, e, "neither 'name' nor 'names'");
	return *name ? 1 : (int)names_count;
}

static int settle_value(const struct yaml_place *at, struct toggle_row *row, struct err *e)
{
	if (!*row->value)
		return 0;
	if (*row->cpu || *row->cuda || *row->mps)
		return row_bad(
			at, e,
			"'value' is for cpu, cuda and mps alike, but one of them is given as well");
	row->cpu = row->cuda = row->mps = row->value;
	return 0;
}

static int expand_toggle(const char *file, struct toggle_row *row, int *ret_rows, struct err *e)
{
	static const char *on_off[] = {"ON", "OFF"};
	const struct yaml_place at = {file, row->line};
	int n = names_of(&at, row->name, row->names_count, e);

	if (n < 0 || settle_value(&at, row, e) < 0)
		return -1;
	if (!*row->package)
		row->package = "pytorch";
	if (!row->values_count) {
		row->values = on_off;
		row->values_count = ARRAY_LEN(on_off);
	}

	*ret_rows += n;
	return 0;
}

/* Makes one row per name; `value` becomes cpu, cuda and mps; package and values get their defaults.
 * ERR_CONFIG "file:line: ..." for a row that has a key twice or not at all. */
static int expand_toggles(const char *file, struct arena *a, struct tables *f, struct err *e)
{
	int rows = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < f->toggles_count; i++)
		if (expand_toggle(file, &f->toggles[i], &rows, e) < 0)
			return -1;
	struct toggle_row *all = arena_array(a, (size_t)rows, sizeof(*all));
	for (unsigned i = 0; i < f->toggles_count; i++) {
		const struct toggle_row *row = &f->toggles[i];
		all[n] = *row;
		if (*row->name)
			n++;
		for (unsigned k = 0; k < row->names_count; k++) {
			all[n] = *row;
			all[n++].name = row->names[k];
		}
	}

	f->toggles = all;
	f->toggles_count = n;
	for (unsigned i = 0; i < f->retired_count; i++)
		if (!*f->retired[i].package)
			f->retired[i].package = "pytorch";
	return 0;
}

/* Where settings are written. */
struct setting_place {
	const char *file, *package; /* of those that name none */
	struct arena *arena;
};

/* One row per name; rows without a package get that of the place. */
static int expand_settings(const struct setting_place *at, struct table_setting **settings,
			   unsigned *count, struct err *e)
{
	const struct table_setting *rows = *settings;
	unsigned n = 0, total = 0;

	for (unsigned i = 0; i < *count; i++) {
		int names = names_of(&(const struct yaml_place){at->file, rows[i].line},
				     rows[i].name, rows[i].names_count, e);
		if (names < 0)
			return -1;
		total += (unsigned)names;
	}

	struct table_setting *all = arena_array(at->arena, total, sizeof(*all));
	for (unsigned i = 0; i < *count; i++) {
		unsigned names = *rows[i].name ? 1 : rows[i].names_count;
		for (unsigned k = 0; k < names; k++) {
			all[n] = rows[i];
			all[n].name = *rows[i].name ? rows[i].name : rows[i].names[k];
			if (!*all[n].package)
				all[n].package = at->package;
			n++;
		}
	}

	*settings = all;
	*count = n;
	return 0;
}

static int expand_extensions(struct loader *l, struct err *e)
{
	const char *file = path_join(l->a, l->t->dir, "torch_extensions.yaml");

	for (unsigned i = 0; i < l->t->torch_extensions_count; i++) {
		struct package_row *row = &l->t->torch_extensions[i];
		row->backend = TABLES_EXTENSION_BACKEND;
		if (!*row->requirements)
			row->requirements = TABLES_EXTENSION_LIST;
		const struct setting_place at = {file, row->name, l->a};
		if (expand_settings(&at, &row->settings, &row->settings_count, e) < 0)
			return -1;
	}

	return 0;
}

static int expand(struct loader *l, struct err *e)
{
	struct tables *t = l->t;
	const struct setting_place isa = {path_join(l->a, t->dir, "isa.yaml"), "pytorch", l->a};
	const struct setting_place gpu = {path_join(l->a, t->dir, "gpu.yaml"), "pytorch", l->a};
	const struct setting_place blas = {path_join(l->a, t->dir, "blas.yaml"), "pytorch", l->a};

	/* Gives each toolkit what its layout says; the check finds a layout that is not there. */
	for (unsigned i = 0; i < t->toolkits_count; i++)
		for (unsigned k = 0; k < t->layouts_count; k++) {
			struct toolkit_row *row = &t->toolkits[i];
			const struct layout_row *layout = &t->layouts[k];
			if (strcmp(row->layout, layout->name) != 0)
				continue;
			row->libraries = layout->libraries;
			row->libraries_count = layout->libraries_count;
		}
	for (unsigned i = 0; i < t->parts_count; i++)
		if (!*t->parts[i].package)
			t->parts[i].package = "pytorch";
	if (expand_extensions(l, e) < 0 ||
	    expand_toggles(path_join(l->a, t->dir, "toggles.yaml"), l->a, t, e) < 0)
		return -1;
	for (unsigned i = 0; i < t->isas_count; i++)
		if (expand_settings(&isa, &t->isas[i].settings, &t->isas[i].settings_count, e) < 0)
			return -1;
	for (unsigned i = 0; i < t->gpus_count; i++)
		if (expand_settings(&gpu, &t->gpus[i].settings, &t->gpus[i].settings_count, e) < 0)
			return -1;
	for (unsigned i = 0; i < t->blas_count; i++)
		if (expand_settings(&blas, &t->blas[i].settings, &t->blas[i].settings_count, e) < 0)
			return -1;
	return 0;
}

static int by_version(const void *a, const void *b)
{
	const struct release_row *x = a;
	const struct release_row *y = b;
	int order = version_cmp(x->base, y->base);

	return order ? order : strcmp(x->name, y->name);
}

static int load_releases(struct loader *l, struct err *e)
{
	const char *dir = path_join(l->a, l->t->dir, "releases");
	struct strlist names = {0};

	if (fs_list(TRUSTED, dir, l->a, &names, e) < 0)
		return -1;
	l->t->releases = arena_array(l->a, names.count, sizeof(*l->t->releases));
	for (size_t i = 0; i < names.count; i++) {
		const char *name = path_join(l->a, "releases", names.items[i]);
		if (names.items[i][0] == '.' || !path_has_suffix(names.items[i], ".yaml"))
			continue;
		struct release_row *r = &l->t->releases[l->t->releases_count++];
		if (load_file(l, name, &schema_release, r, e) < 0)
			return -1;
		keep_sources(l, name, r->sources);
		r->file = path_join(l->a, l->t->dir, name);
		struct package_row *rows[TABLES_PACKAGES] = {r->pytorch, r->torchvision,
							     r->torchaudio};
		for (size_t p = 0; p < TABLES_PACKAGES; p++) {
			const struct setting_place at = {r->file, tables_packages[p], l->a};
			if (rows[p] && expand_settings(&at, &rows[p]->settings,
						       &rows[p]->settings_count, e) < 0)
				return -1;
		}
	}

	if (!l->t->releases_count)
		return err_set(e, ERR_CONFIG, "no release in '%s'", dir);
	qsort(l->t->releases, l->t->releases_count, sizeof(*l->t->releases), by_version);
	return 0;
}

/* "PACKAGE VERSION SHA256" on each line; '#' begins a comment. */
static int load_known_sources(struct loader *l, struct err *e)
{
	const char *path = path_join(l->a, l->t->dir, KNOWN_SOURCES);
	AUTO_BUF struct buf text = {0};
	struct strlist lines = {0};

	if (!fs_exists(TRUSTED, path))
		return 0;
	if (fs_read(TRUSTED, path, KNOWN_SOURCES_MAX, &text, e) < 0)
		return -1;
	strlist_split(&lines, l->a, buf_cstr(&text), "\n");
	for (size_t i = 0; i < lines.count; i++) {
		struct strlist words = {0};
		strlist_split(&words, l->a, lines.items[i], " \t");
		if (!words.count || words.items[0][0] == '#')
			continue;
		const bool good = words.count == 3 && digest_valid_hex(words.items[2]) &&
				  tables_package_rank(words.items[0]) < TABLES_PACKAGES;
		if (!good)
			return err_set(e, ERR_CONFIG, "%s: not PACKAGE VERSION SHA256: '%.100s'",
				       path, lines.items[i]);
		strlist_add(&l->t->known_sources, l->a, strlist_join(&words, l->a, " "));
	}

	return 0;
}

int tables_load(const char *dir, struct arena *a, const struct tables **ret, struct err *e)
{
	struct tables *t = arena_alloc(a, sizeof(*t));
	struct loader l = {.t = t, .a = a};

	t->dir = arena_strdup(a, dir);
	if (load_members(&l, e) < 0 || load_rules(&l, e) < 0 || expand(&l, e) < 0)
		return -1;
	if (load_releases(&l, e) < 0 || load_known_sources(&l, e) < 0 || tables_check(t, e) < 0)
		return -1;
	*ret = t;
	return 0;
}
