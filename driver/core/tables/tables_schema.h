/* The YAML schemas of the tables: what keys a file may have and which struct they fill. */
#pragma once
#include "base/yaml/yaml.h"
#include "core/tables/rows_release.h"

struct isa_file {
	const char *sources;
	struct isa_row *isas;
	unsigned isas_count;
	struct isa_group *groups;
	unsigned groups_count;
};

struct gpu_file {
	const char *sources;
	struct gpu_row *gpus;
	unsigned gpus_count;
	struct gpu_units_row *gpu_units;
	unsigned gpu_units_count;
	struct gpu_extra_row *extras;
	unsigned extras_count;
};

struct toolkit_file {
	const char *sources;
	struct layout_row *layouts;
	unsigned layouts_count;
	const char **driver_libraries;
	unsigned driver_libraries_count;
	struct part_row *parts;
	unsigned parts_count;
	struct toolkit_row *toolkits;
	unsigned toolkits_count;
};

struct blas_file {
	const char *sources;
	struct blas_row *blas;
	unsigned blas_count;
};

struct toggle_file {
	const char *sources;
	struct toggle_row *toggles;
	unsigned toggles_count;
	struct retired_row *retired;
	unsigned retired_count;
};

struct correction_file {
	struct correction_row *corrections;
	unsigned corrections_count;
};

/* Top level of each file; a release's top level is its release_row. */
extern const cyaml_schema_value_t schema_isa, schema_gpu, schema_toolkit, schema_blas, schema_toggle, schema_correction,
	schema_release;

/* schema_settle: makes what cyaml loaded whole: absent strings become "", and every row with a
 * `line` gets the line it stands on. */
void schema_settle(const cyaml_schema_value_t *schema, void *data, const struct yaml_lines *lines);
