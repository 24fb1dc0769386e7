/* The tables: every fact of the field as a row under profiles/, loaded once, immutable, all in one
 * arena. */
#pragma once

#include "base/base.h"
#include "core/tables/rows_release.h"
#include "core/tables/rows_rules.h"

/* Where the facts of a file come from. */
struct table_source {
	const char *file; /* as settings name it: "gpu.yaml", "releases/2.8.0.yaml" */
	const char *text;
	struct table_source *next;
};

struct tables {
	struct isa_row *isas;
	struct isa_group *groups;
	struct gpu_row *gpus;
	struct gpu_units_row *gpu_units;
	struct gpu_extra_row *gpu_extras;
	struct toolkit_row *toolkits;
	struct layout_row *layouts;
	const char **driver_libraries; /* of the machine that runs a wheel: "libcuda.so.1" */
	/* patterns of the names that these and their like have in wheels */
	const char **driver_files;
	struct line_row *cuda_lines;
	struct part_row *parts;
	struct nvcc_error_row *nvcc_errors;
	struct blas_row *blas;
	struct toggle_row *toggles;
	struct retired_row *retired;
	struct correction_row *corrections;
	struct advisory_row *advisories;
	struct need_row *needs;
	struct drop_row *drops;
	/* of slim.yaml: the least disk space of a slimmed torch while it is made, in percent of the
	 * official wheel's size; 0: not known */
	unsigned slim_percent;
	struct captured_row *captured;
	struct package_row *torch_extensions;
	const char **extension_requires; /* of Python, what the build of each needs */
	struct release_row *releases;    /* sorted by version, newest last */
	struct extension_file extensions;
	struct dispatch_file dispatch;
	struct manylinux_policy manylinux;
	struct pool_file threads;
	/* sha256 of the rows by which a wheel is judged, without what is for people only */
	char extensions_digest[65], dispatch_digest[65], manylinux_digest[65], threads_digest[65];
	char cuda_libraries_digest[65]; /* of layouts and driver_libraries in cuda.yaml */
	struct table_source *sources;
	/* profiles/known_sources: "pytorch 2.9.1 SHA256", as the projects publish them */
	struct strlist known_sources;
	const char *file_sources; /* while a file is loaded: its `sources` */
	const char *dir;          /* the profiles directory */
	unsigned isas_count, groups_count, gpus_count, gpu_units_count, gpu_extras_count,
		toolkits_count, layouts_count, driver_libraries_count, driver_files_count,
		cuda_lines_count, parts_count, nvcc_errors_count, blas_count, toggles_count,
		retired_count, corrections_count, advisories_count, needs_count, drops_count,
		captured_count, torch_extensions_count, extension_requires_count, releases_count;
};

/* tables_load: every table below `dir` but cpu.yaml, ci.yaml, matrices and examples. ERR_CONFIG
 * with file:line for what does not follow the schema and for values that do not fit together: an
 * unknown toolkit, two rows of one name. */
int tables_load(const char *dir, struct arena *a, const struct tables **ret,
		struct err *e) MUST_CHECK;

/* The three packages, in the order they are built. */
#define TABLES_PACKAGES 3
extern const char *const tables_packages[TABLES_PACKAGES];
/* tables_package_rank: its place among them; TABLES_PACKAGES for an unknown one.
 * tables_distribution: "torch" for "pytorch", else the package's own name. */
#define PACKAGE_TORCH "pytorch"
static inline bool package_is_torch(const char *package)
{
	return strcmp(package, PACKAGE_TORCH) == 0;
}
size_t tables_package_rank(const char *package);
const char *tables_distribution(const char *package);

/* Look-ups: NULL when absent. The _need forms give ERR_CONFIG with the nearest name and the list.
 * Aliases count. */
const struct isa_row *tables_isa(const struct tables *t, const char *name);
const struct isa_group *tables_isa_group(const struct tables *t, const char *name);
const struct gpu_row *tables_gpu(const struct tables *t, const char *sm);
/* tables_gpu_capability: by the number at the start of the text, "9.0" of "9.0a+PTX". */
const struct gpu_row *tables_gpu_capability(const struct tables *t, const char *text);
const struct toolkit_row *tables_toolkit(const struct tables *t, const char *version);
/* tables_chips: numbers of GPUs that are systems on a chip, whose code runs on them alone. */
unsigned *tables_chips(const struct tables *t, struct arena *a, size_t *ret_count);
/* tables_source: where the facts of a file come from; "" if it does not say, or is not a table. */
const char *tables_source(const struct tables *t, const char *file);
const struct blas_row *tables_blas(const struct tables *t, const char *name);
/* tables_python_known: whether a release builds for a Python ("3.13"). */
bool tables_python_known(const struct tables *t, const char *python);
/* toggle_applies: whether this version of the package has the row's option. */
bool toggle_applies(const struct toggle_row *row, const char *version);
/* tables_toggle: returns the row for this version of the package; version NULL matches any. */
const struct toggle_row *tables_toggle(const struct tables *t, const char *package,
				       const char *name, const char *version);
/* tables_toggle_value: the row's own spelling of a value ("1", "true", "yes", "on" are all ON or 1;
 * case does not count); ERR_CONFIG with the values there are. Points into the row. */
int tables_toggle_value(const struct toggle_row *row, const char *value, const char **ret,
			struct err *e) MUST_CHECK;
/* tables_retired: why a name is no option of this version of the package (NULL: any version), NULL
 * if it is not retired. */
const struct retired_row *tables_retired(const struct tables *t, const char *package,
					 const char *name, const char *version);
/* tables_need_release, _toolkit and _python (one that a release builds for): ERR_CONFIG with what
 * was perhaps meant. */
int tables_need_release(const struct tables *t, const char *name, const struct release_row **ret,
			struct err *e) MUST_CHECK;
int tables_need_toolkit(const struct tables *t, const char *version, const struct toolkit_row **ret,
			struct err *e) MUST_CHECK;
int tables_need_python(const struct tables *t, const char *python, struct err *e) MUST_CHECK;
/* tables_cflags: adds the package's own compiler flags for a platform. */
void tables_cflags(const struct package_row *p, const char *platform, struct arena *a,
		   struct strlist *ret);
/* tables_gcc: returns the range of GCC that a release supports on a platform. */
const char *tables_gcc(const struct release_row *r, const char *platform);
/* tables_need_wheel: the distribution of the Python index that has the row's module. */
const char *tables_need_wheel(const struct need_row *row);
/* tables_affects: whether an advisory is of this version of a distribution ("torch"). */
bool tables_affects(const struct advisory_row *row, const char *distribution, const char *version);
/* tables_offered: whether a release of upstream's is taken where none is named. */
bool tables_offered(const struct release_row *r);
/* tables_package: the row of a package in a release, NULL if the release does not have it. */
const struct package_row *tables_package(const struct release_row *r, const char *package);
/* What every extension has: how it is built, and the locked list of what its build needs. */
#define TABLES_EXTENSION_BACKEND "extension"
#define TABLES_EXTENSION_LIST "extension.txt"
/* tables_extend: the tables with more packages in every release: extensions that are built against
 * its torch, each by what its row and every extension's build require. */
const struct tables *tables_extend(const struct tables *t, const struct package_row *extensions,
				   size_t count, struct arena *a);
/* requirements_is_lock: whether a row's `requirements` are a lock of the user's or of an earlier
 * build, by its absolute path. requirements_path: its file; `dir`: of the tables' lists. */
static inline bool requirements_is_lock(const char *requirements)
{
	return *requirements == '/';
}
const char *requirements_path(const char *dir, const char *requirements, struct arena *a);
/* tables_lock: the tables with this lock for an extension that tables_extend added. */
const struct tables *tables_lock(const struct tables *t, const char *extension, const char *lock,
				 struct arena *a);
/* A source of the user's for a package: see own_version. */
struct own_row {
	const char *package, *version, *state;
	struct source_row source;
};

/* tables_own: the tables with this source in the place of the package's own, in every release that
 * has the package. Options, commands and requirements stay, patches do not. */
const struct tables *tables_own(const struct tables *t, const struct own_row *own, struct arena *a);
/* tables_version: of what is built: that of the user's source, else the row's. */
static inline const char *tables_version(const struct package_row *p)
{
	return p->own_version ? p->own_version : p->version;
}

/* A digest that the user's machine saw, of a source whose digest no table has. */
struct recorded_row {
	const char *release, *package, *name; /* of the source */
	const char *sha256, *url, *day;       /* "2026-11-28" */
	unsigned long bytes;
	unsigned line;
};

struct recorded_file {
	struct recorded_row *sources;
	unsigned sources_count;
};

/* recorded_read: the user's file; a file that is not there has no rows. ERR_CONFIG with file:line.
 * recorded_apply: the tables with those digests. A row for a source that has one in its table, or
 * that no release has, counts for nothing. recorded_text: the file with these rows. */
int recorded_read(const char *path, struct arena *a, struct recorded_file *ret,
		  struct err *e) MUST_CHECK;
const struct tables *recorded_apply(const struct tables *t, const struct recorded_file *f,
				    struct arena *a);
char *recorded_text(const struct recorded_file *f, struct arena *a);
/* tables_doubts: whether a source is another than those that this version of the package is known
 * to have; false for a version of which none is known. */
bool tables_doubts(const struct tables *t, const char *package, const char *version,
		   const char *sha256);
/* tables_extension: the row of an extension by its name and a version ("": any); NULL: none. */
const struct package_row *tables_extension(const struct tables *t, const char *name,
					   const char *version);
/* tables_policy_minor: 28 for the manylinux policy "2_28"; 0 for anything else. */
unsigned tables_policy_minor(const char *policy);
