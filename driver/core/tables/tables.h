/* The tables: every fact of the field as a row under profiles/, loaded once, immutable, all in one
 * arena. */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/strlist.h"
#include "core/tables/rows_release.h"

/* Where the facts of a file come from. */
struct table_source {
	const char *file; /* as settings name it: "gpu.yaml", "releases/2.8.0.yaml" */
	const char *text;
	struct table_source *next;
};

struct tables {
	struct isa_row *isas;
	unsigned isas_count;
	struct isa_group *groups;
	unsigned groups_count;
	struct gpu_row *gpus;
	unsigned gpus_count;
	struct gpu_units_row *gpu_units;
	unsigned gpu_units_count;
	struct gpu_extra_row *gpu_extras;
	unsigned gpu_extras_count;
	struct toolkit_row *toolkits;
	unsigned toolkits_count;
	struct layout_row *layouts;
	unsigned layouts_count;
	const char **driver_libraries; /* of the machine that runs a wheel: "libcuda.so.1" */
	unsigned driver_libraries_count;
	struct part_row *parts;
	unsigned parts_count;
	struct blas_row *blas;
	unsigned blas_count;
	struct toggle_row *toggles;
	unsigned toggles_count;
	struct retired_row *retired;
	unsigned retired_count;
	struct correction_row *corrections;
	unsigned corrections_count;
	struct release_row *releases; /* sorted by version, newest last */
	unsigned releases_count;
	struct table_source *sources;
	const char *dir; /* the profiles directory */
	char digest[65]; /* sha256 over all table files */
	/* of extensions.yaml, which other tables are read beside; "" without it */
	char extensions_digest[65];
};

/* tables_load: reads isa.yaml, gpu.yaml, cuda.yaml, blas.yaml, toggles.yaml, corrections.yaml and
 * every releases/<name>.yaml below `dir`. ERR_CONFIG with file:line for what is wrong, also for
 * values that do not fit (a digest that is not 64 hex digits, a toolkit no row has, two rows of one
 * name). */
int tables_load(const char *dir, struct arena *a, const struct tables **ret, struct err *e) MUST_CHECK;

/* The three packages, in the order they are built. */
#define TABLES_PACKAGES 3
extern const char *const tables_packages[TABLES_PACKAGES];
/* tables_package_rank: its place among them; TABLES_PACKAGES for an unknown one.
 * tables_distribution: "torch" for "pytorch", else the package's own name. */
size_t tables_package_rank(const char *package);
const char *tables_distribution(const char *package);

/* Look-ups: NULL when absent. The _need forms give ERR_CONFIG with the nearest name and the list.
 * Aliases count. */
const struct isa_row *tables_isa(const struct tables *t, const char *name);
const struct isa_group *tables_isa_group(const struct tables *t, const char *name);
const struct gpu_row *tables_gpu(const struct tables *t, const char *sm);
const struct toolkit_row *tables_toolkit(const struct tables *t, const char *version);
/* tables_source: where the facts of a file come from; "" when it does not say, or there is no such
 * file. */
const char *tables_source(const struct tables *t, const char *file);
const struct blas_row *tables_blas(const struct tables *t, const char *name);
/* tables_python_known: whether a release builds for a Python ("3.13"). */
bool tables_python_known(const struct tables *t, const char *python);
/* tables_toggle: the row that this version of the package has; version NULL takes any. */
const struct toggle_row *tables_toggle(const struct tables *t, const char *package, const char *name,
				       const char *version);
/* tables_toggle_value: the row's own spelling of a value ("1", "true", "yes", "on" are all ON or 1;
 * case does not count); ERR_CONFIG with the values there are. Points into the row. */
int tables_toggle_value(const struct toggle_row *row, const char *value, const char **ret, struct err *e) MUST_CHECK;
/* tables_retired: why a name is no option of this version of the package (NULL: any version), NULL
 * if it is not retired. */
const struct retired_row *tables_retired(const struct tables *t, const char *package, const char *name,
					 const char *version);
int tables_need_release(const struct tables *t, const char *name, const struct release_row **ret,
			struct err *e) MUST_CHECK;
/* tables_package: the row of a package in a release, NULL if the release does not have it. */
const struct package_row *tables_package(const struct release_row *r, const char *package);
