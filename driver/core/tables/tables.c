#include "core/tables/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/suggest.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/version.h"
#include "core/tables/tables_check.h"
#include "core/tables/tables_expand.h"
#include "core/tables/tables_schema.h"

#define TABLE_MAX_BYTES (4u << 20)

struct loader {
	struct tables *t;
	struct arena *a;
	struct digest *digest;
};

static int add_to_digest(struct loader *l, const char *name, const char *path, struct err *e)
{
	AUTO_BUF struct buf text = {0};

	if (fs_read(path, TABLE_MAX_BYTES, &text, e) < 0)
		return -1;
	uint64_t len = text.len;
	digest_update(l->digest, name, strlen(name) + 1);
	digest_update(l->digest, &len, sizeof(len));
	digest_update(l->digest, buf_cstr(&text), text.len);
	return 0;
}

/* Every table may say at its top where its facts come from. */
static void keep_sources(struct loader *l, const char *name, const cyaml_schema_value_t *schema, const char *data)
{
	for (const cyaml_schema_field_t *f = schema->mapping.fields; f->key; f++) {
		if (strcmp(f->key, "sources") != 0 || f->value.type != CYAML_STRING)
			continue;
		struct table_source *s = arena_alloc(l->a, sizeof(*s));
		*s = (struct table_source){arena_strdup(l->a, name), *(const char *const *)(data + f->data_offset),
					   l->t->sources};
		l->t->sources = s;
	}
}

/* The data of a file, NULL with an error. */
static void *load_file(struct loader *l, const char *name, const cyaml_schema_value_t *schema, struct err *e)
{
	const char *path = path_join(l->a, l->t->dir, name);
	struct yaml_lines *lines = NULL;
	void *data = NULL;

	if (!fs_exists(path)) {
		err_set(e, ERR_CONFIG, "no table '%s'", path);
		err_hint(e, "--profiles names the directory that holds isa.yaml, gpu.yaml and releases/");
		return NULL;
	}
	if (yaml_load(path, schema, l->a, &data, &lines, e) < 0 || add_to_digest(l, name, path, e) < 0)
		return NULL;
	schema_settle(schema, data, lines);
	keep_sources(l, name, schema, data);
	return data;
}

static int load_isas_and_gpus(struct loader *l, struct err *e)
{
	const struct isa_file *isa = load_file(l, "isa.yaml", &schema_isa, e);
	const struct gpu_file *gpu = isa ? load_file(l, "gpu.yaml", &schema_gpu, e) : NULL;

	if (!isa || !gpu)
		return -1;
	l->t->isas = isa->isas;
	l->t->isas_count = isa->isas_count;
	l->t->groups = isa->groups;
	l->t->groups_count = isa->groups_count;
	l->t->gpus = gpu->gpus;
	l->t->gpus_count = gpu->gpus_count;
	l->t->gpu_units = gpu->gpu_units;
	l->t->gpu_units_count = gpu->gpu_units_count;
	l->t->gpu_extras = gpu->extras;
	l->t->gpu_extras_count = gpu->extras_count;
	return 0;
}

/* Gives each toolkit what its layout says; the check finds a layout that is not there. */
static void join_layouts(const struct toolkit_file *f)
{
	for (unsigned i = 0; i < f->toolkits_count; i++)
		for (unsigned k = 0; k < f->layouts_count; k++) {
			struct toolkit_row *row = &f->toolkits[i];
			const struct layout_row *layout = &f->layouts[k];

			if (strcmp(row->layout, layout->name) != 0)
				continue;
			row->libraries = layout->libraries;
			row->libraries_count = layout->libraries_count;
		}
}

static int load_toolkits_and_blas(struct loader *l, struct err *e)
{
	const struct toolkit_file *cuda = load_file(l, "cuda.yaml", &schema_toolkit, e);
	const struct blas_file *blas = cuda ? load_file(l, "blas.yaml", &schema_blas, e) : NULL;

	if (!cuda || !blas)
		return -1;
	join_layouts(cuda);
	l->t->toolkits = cuda->toolkits;
	l->t->toolkits_count = cuda->toolkits_count;
	l->t->layouts = cuda->layouts;
	l->t->layouts_count = cuda->layouts_count;
	l->t->driver_libraries = cuda->driver_libraries;
	l->t->driver_libraries_count = cuda->driver_libraries_count;
	l->t->parts = cuda->parts;
	l->t->parts_count = cuda->parts_count;
	for (unsigned i = 0; i < cuda->parts_count; i++)
		if (!*cuda->parts[i].package)
			cuda->parts[i].package = "pytorch";
	l->t->blas = blas->blas;
	l->t->blas_count = blas->blas_count;
	return 0;
}

static int load_toggles(struct loader *l, struct err *e)
{
	struct toggle_file *f = load_file(l, "toggles.yaml", &schema_toggle, e);

	if (!f || tables_expand_toggles(path_join(l->a, l->t->dir, "toggles.yaml"), l->a, f, e) < 0)
		return -1;
	l->t->toggles = f->toggles;
	l->t->toggles_count = f->toggles_count;
	l->t->retired = f->retired;
	l->t->retired_count = f->retired_count;
	return 0;
}

static int load_corrections(struct loader *l, struct err *e)
{
	const struct correction_file *f = load_file(l, "corrections.yaml", &schema_correction, e);

	if (!f)
		return -1;
	l->t->corrections = f->corrections;
	l->t->corrections_count = f->corrections_count;
	return 0;
}

static int expand_release(struct loader *l, struct release_row *r, struct err *e)
{
	struct package_row *rows[TABLES_PACKAGES] = {r->pytorch, r->torchvision, r->torchaudio};

	for (size_t p = 0; p < TABLES_PACKAGES; p++)
		if (rows[p] && tables_expand_settings(r->file, tables_packages[p], l->a, &rows[p]->settings,
						      &rows[p]->settings_count, e) < 0)
			return -1;
	return 0;
}

static int expand_isas_and_gpus(struct loader *l, struct err *e)
{
	const char *file = path_join(l->a, l->t->dir, "isa.yaml");

	for (unsigned i = 0; i < l->t->isas_count; i++)
		if (tables_expand_settings(file, "pytorch", l->a, &l->t->isas[i].settings,
					   &l->t->isas[i].settings_count, e) < 0)
			return -1;
	file = path_join(l->a, l->t->dir, "gpu.yaml");
	for (unsigned i = 0; i < l->t->gpus_count; i++)
		if (tables_expand_settings(file, "pytorch", l->a, &l->t->gpus[i].settings,
					   &l->t->gpus[i].settings_count, e) < 0)
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

	if (fs_list(dir, l->a, &names, e) < 0)
		return -1;
	l->t->releases = arena_array(l->a, names.count, sizeof(*l->t->releases));
	for (size_t i = 0; i < names.count; i++) {
		const char *name = path_join(l->a, "releases", names.items[i]);

		if (names.items[i][0] == '.' || !path_has_suffix(names.items[i], ".yaml"))
			continue;
		struct release_row *r = load_file(l, name, &schema_release, e);
		if (!r)
			return -1;
		r->file = path_join(l->a, l->t->dir, name);
		if (expand_release(l, r, e) < 0)
			return -1;
		l->t->releases[l->t->releases_count++] = *r;
	}
	if (!l->t->releases_count)
		return err_set(e, ERR_CONFIG, "no release in '%s'", dir);
	qsort(l->t->releases, l->t->releases_count, sizeof(*l->t->releases), by_version);
	return 0;
}

int tables_load(const char *dir, struct arena *a, const struct tables **ret, struct err *e)
{
	struct tables *t = arena_alloc(a, sizeof(*t));
	AUTO_DIGEST struct digest *digest = digest_new();
	struct loader l = {.t = t, .a = a, .digest = digest};
	uint8_t sum[DIGEST_LEN];

	t->dir = arena_strdup(a, dir);
	if (load_isas_and_gpus(&l, e) < 0 || load_toolkits_and_blas(&l, e) < 0 || load_toggles(&l, e) < 0 ||
	    load_corrections(&l, e) < 0 || load_releases(&l, e) < 0)
		return -1;
	if (expand_isas_and_gpus(&l, e) < 0 || tables_check(t, e) < 0)
		return -1;
	const char *extensions = path_join(a, dir, "extensions.yaml");
	if (fs_exists(extensions) && digest_file(extensions, t->extensions_digest, e) < 0)
		return -1;
	digest_final(digest, sum);
	digest_hex(sum, t->digest);
	*ret = t;
	return 0;
}
