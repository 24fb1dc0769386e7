#include "core/tables/tables_schema.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/sys/digest.h"
#include "base/yaml/schema.h"
#include "core/tables/matrix_rows.h"

#define SOURCES                                                                                                        \
	CYAML_FIELD_STRING_PTR("sources", CYAML_FLAG_POINTER_NULL | CYAML_FLAG_OPTIONAL, struct tables, file_sources,  \
			       0, CYAML_UNLIMITED)

/* One key a line. */
/* clang-format off */
ROW(setting, struct table_setting,
	MAY(struct table_setting, name),   LIST(struct table_setting, names),
	MAY(struct table_setting, value),  NEED(struct table_setting, why),
	MAY(struct table_setting, source), MAY(struct table_setting, since),
	MAY(struct table_setting, until),  MAY(struct table_setting, gpu),  MAY(struct table_setting, package),
	FLAG(struct table_setting, cache), FLAG(struct table_setting, fixed));

ROW(isa, struct isa_row,
	NEED(struct isa_row, name),
	LIST(struct isa_row, aliases),
	NEED(struct isa_row, platform),
	NEED_LIST(struct isa_row, flags),
	NEED_LIST(struct isa_row, cpuinfo),
	LIST(struct isa_row, workloads),
	NUMBER(struct isa_row, rank, CYAML_FLAG_OPTIONAL),
	NEED(struct isa_row, gcc_min),
	NEED(struct isa_row, clang_min),
	NEED(struct isa_row, cpus),
	MAY(struct isa_row, note),
	ROWS(struct isa_row, settings, &setting_entry));
ROW(isa_group, struct isa_group,
	NEED(struct isa_group, name),
	NEED_LIST(struct isa_group, isas));
FIELDS(isa_file,
	SOURCES,
	NEED_ROWS(struct tables, isas, &isa_entry),
	ROWS(struct tables, groups, &isa_group_entry));
const cyaml_schema_value_t schema_isa = TOP(struct tables, isa_file_fields);

ROW(suffix, struct gpu_suffix,
	NEED(struct gpu_suffix, suffix),
	NEED(struct gpu_suffix, cuda_min),
	MAY(struct gpu_suffix, torch_min));
ROW(gpu, struct gpu_row,
	NEED(struct gpu_row, sm),
	NEED(struct gpu_row, capability),
	NEED(struct gpu_row, name),
	LIST(struct gpu_row, devices),
	NEED(struct gpu_row, cuda_min),
	MAY(struct gpu_row, cuda_max),
	MAY(struct gpu_row, torch_min),
	MAY(struct gpu_row, cudnn_max),
	LIST(struct gpu_row, platforms),
	MAY(struct gpu_row, driver_min),
	FLAG(struct gpu_row, no_extensions),
	MAY(struct gpu_row, extensions_until),
	LIST(struct gpu_row, not_with),
	ROWS(struct gpu_row, suffixes, &suffix_entry),
	ROWS(struct gpu_row, settings, &setting_entry),
	MAY(struct gpu_row, note),
	FLAG(struct gpu_row, tegra));
ROW(gpu_units, struct gpu_units_row,
	NEED_LIST(struct gpu_units_row, units),
	NEED(struct gpu_units_row, why));
ROW(gpu_extra, struct gpu_extra_row,
	NEED(struct gpu_extra_row, base),
	NEED(struct gpu_extra_row, extra),
	NEED(struct gpu_extra_row, since),
	NEED(struct gpu_extra_row, why));
FIELDS(gpu_file,
	SOURCES,
	NEED_ROWS(struct tables, gpus, &gpu_entry),
	ROWS(struct tables, gpu_units, &gpu_units_entry),
	CYAML_FIELD_SEQUENCE("extras", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct tables, gpu_extras,
			     &gpu_extra_entry, 0, CYAML_UNLIMITED));
const cyaml_schema_value_t schema_gpu = TOP(struct tables, gpu_file_fields);

ROW(cuda_library, struct cuda_library_row,
	NEED(struct cuda_library_row, package),    NEED(struct cuda_library_row, dir),
	MAY(struct cuda_library_row, older),       MAY(struct cuda_library_row, below),
	NEED_LIST(struct cuda_library_row, names), MAY(struct cuda_library_row, part),
	LIST(struct cuda_library_row, needs));
ROW(layout, struct layout_row,
	NEED(struct layout_row, name),
	MAY(struct layout_row, bundle),
	NEED_ROWS(struct layout_row, libraries, &cuda_library_entry));
ROW(toolkit, struct toolkit_row,
	NEED(struct toolkit_row, version),
	NEED(struct toolkit_row, gcc_max),
	NEED(struct toolkit_row, clang_max),
	NEED(struct toolkit_row, driver),
	NEED(struct toolkit_row, driver_floor),
	MAY(struct toolkit_row, compress),
	NEED(struct toolkit_row, layout));
ROW(part, struct part_row,
	NEED(struct part_row, name),
	NEED(struct part_row, header),
	LIST(struct part_row, macros),
	NEED(struct part_row, toggle),
	MAY(struct part_row, package),
	MAY(struct part_row, debian));
ROW(nvcc_error, struct nvcc_error_row,
	NEED(struct nvcc_error_row, text),
	NEED(struct nvcc_error_row, fix),
	NEED(struct nvcc_error_row, source));
FIELDS(toolkit_file,
	SOURCES,
	NEED_ROWS(struct tables, layouts, &layout_entry),
	LIST(struct tables, driver_libraries),
	ROWS(struct tables, parts, &part_entry),
	ROWS(struct tables, nvcc_errors, &nvcc_error_entry),
	NEED_ROWS(struct tables, toolkits, &toolkit_entry));
const cyaml_schema_value_t schema_cuda = TOP(struct tables, toolkit_file_fields);

ROW(blas, struct blas_row,
	NEED(struct blas_row, name),  NEED(struct blas_row, cmake),
	NEED(struct blas_row, info),  MAY(struct blas_row, pkgconf),
	MAY(struct blas_row, debian), NEED_LIST(struct blas_row, platforms),
	MAY(struct blas_row, world),  MAY(struct blas_row, place),    LIST(struct blas_row, files),
	MAY(struct blas_row, linked), MAY(struct blas_row, licence),
	MAY(struct blas_row, note),   ROWS(struct blas_row, settings, &setting_entry));
FIELDS(blas_file,
	SOURCES,
	NEED_ROWS(struct tables, blas, &blas_entry));
const cyaml_schema_value_t schema_blas = TOP(struct tables, blas_file_fields);

ROW(toggle, struct toggle_row,
	MAY(struct toggle_row, name),   LIST(struct toggle_row, names),  MAY(struct toggle_row, package),
	MAY(struct toggle_row, since),  MAY(struct toggle_row, until),   MAY(struct toggle_row, value),
	MAY(struct toggle_row, cpu),    MAY(struct toggle_row, cuda),    MAY(struct toggle_row, mps),
	MAY(struct toggle_row, needs),  LIST(struct toggle_row, values), NEED(struct toggle_row, why),
	FLAG(struct toggle_row, cache), FLAG(struct toggle_row, check));
ROW(retired, struct retired_row,
	NEED(struct retired_row, name),
	MAY(struct retired_row, package),
	MAY(struct retired_row, since),
	NEED(struct retired_row, why));
FIELDS(toggle_file,
	SOURCES,
	NEED_ROWS(struct tables, toggles, &toggle_entry),
	ROWS(struct tables, retired, &retired_entry));
const cyaml_schema_value_t schema_toggles = TOP(struct tables, toggle_file_fields);

ROW(correction, struct correction_row,
	NEED(struct correction_row, name),   LIST(struct correction_row, packages),
	LIST(struct correction_row, kinds),  LIST(struct correction_row, isas),
	LIST(struct correction_row, gpus),   NEED(struct correction_row, note),
	NEED(struct correction_row, source));
FIELDS(correction_file,
	NEED_ROWS(struct tables, corrections, &correction_entry));
const cyaml_schema_value_t schema_corrections = TOP(struct tables, correction_file_fields);

ROW(source, struct source_row,
	NEED(struct source_row, name),
	NEED(struct source_row, sha256),
	NEED_LIST(struct source_row, urls),
	MAY(struct source_row, into),
	FLAG(struct source_row, keep_top),
	NUMBER(struct source_row, bytes, CYAML_FLAG_OPTIONAL),
	NUMBER(struct source_row, max_unpacked, CYAML_FLAG_OPTIONAL));
ROW(command, struct command_row,
	MAY(struct command_row, dir),
	NEED_LIST(struct command_row, argv),
	NEED(struct command_row, why));
ROW(need, struct need_row,
	MAY(struct need_row, tool),    MAY(struct need_row, program), MAY(struct need_row, header),
	MAY(struct need_row, module),  MAY(struct need_row, library), MAY(struct need_row, package),
	MAY(struct need_row, release), MAY(struct need_row, toggle),  FLAG(struct need_row, host),
	FLAG(struct need_row, optional),
	NEED(struct need_row, debian), MAY(struct need_row, wheel),   NEED(struct need_row, why));
FIELDS(needs_file,
	SOURCES,
	NEED_ROWS(struct tables, needs, &need_entry));
const cyaml_schema_value_t schema_needs = TOP(struct tables, needs_file_fields);

ROW(taken, struct taken_row,
	NEED(struct taken_row, package), NEED(struct taken_row, version), MAY(struct taken_row, requirement),
	MAY(struct taken_row, check),    NEED(struct taken_row, why));
FIELDS(taken_file,
	SOURCES,
	NEED_ROWS(struct tables, taken, &taken_entry));
const cyaml_schema_value_t schema_taken = TOP(struct tables, taken_file_fields);

ROW(heavy, struct heavy_row,
	NEED(struct heavy_row, units),
	NEED(struct heavy_row, bytes),
	NEED(struct heavy_row, why));
ROW(cflags, struct cflags_row,
	NEED_LIST(struct cflags_row, flags),
	LIST(struct cflags_row, platforms),
	NEED(struct cflags_row, why));
ROW(cuda_require, struct cuda_require_row,
	NEED(struct cuda_require_row, requirement),
	MAY(struct cuda_require_row, cuda),
	LIST(struct cuda_require_row, platforms));
FIELDS(memory,
	MAY(struct memory_row, compile),
	MAY(struct memory_row, link),
	ROWS(struct memory_row, heavy, &heavy_entry));
FIELDS(package,
	NEED(struct package_row, version),
	NEED(struct package_row, backend),
	NEED_ROWS(struct package_row, sources, &source_entry),
	MAY(struct package_row, series),
	LIST(struct package_row, skip_patches),
	ROWS(struct package_row, prepare, &command_entry),
	LIST(struct package_row, python_requires),
	LIST(struct package_row, install_requires),
	ROWS(struct package_row, cuda_requires, &cuda_require_entry),
	MAY(struct package_row, requirements),
	MAY(struct package_row, tried_with),
	ROWS(struct package_row, settings, &setting_entry),
	ROWS(struct package_row, extra_cflags, &cflags_entry),
	MAY(struct package_row, cudnn),
	MAY(struct package_row, note),
	CYAML_FIELD_MAPPING_PTR("memory", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct package_row, memory,
				memory_fields));
#define PACKAGE(member)                                                                                                \
	CYAML_FIELD_MAPPING_PTR(#member, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct release_row, member,         \
				package_fields)
ROW(world, struct world_row,
	NEED(struct world_row, base),
	LIST(struct world_row, cuda));
FIELDS(release,
	NEED(struct release_row, name),
	NEED(struct release_row, base),
	NEED_LIST(struct release_row, pythons),
	LIST(struct release_row, toolkits),
	ROWS(struct release_row, worlds, &world_entry),
	MAY(struct release_row, cmake),
	MAY(struct release_row, ninja),
	MAY(struct release_row, gcc),
	MAY(struct release_row, gcc_arm),
	MAY(struct release_row, clang),
	MAY(struct release_row, cuda),
	MAY(struct release_row, disk),
	MAY(struct release_row, note),
	MAY(struct release_row, sources),
	NUMBER(struct release_row, source_date_epoch, CYAML_FLAG_DEFAULT),
	PACKAGE(pytorch),
	PACKAGE(torchvision),
	PACKAGE(torchaudio));
const cyaml_schema_value_t schema_release = TOP(struct release_row, release_fields);

ROW(extension, struct extension_row,
	NEED(struct extension_row, name),
	NEED(struct extension_row, machine),
	LIST(struct extension_row, implies),
	LIST(struct extension_row, sets));
ROW(combined, struct combined_row,
	NEED_LIST(struct combined_row, needs),
	NEED_LIST(struct combined_row, sets));
ROW(instruction, struct instruction_row,
	NEED(struct instruction_row, mnemonic),
	NEED_LIST(struct instruction_row, needs),
	NEED(struct instruction_row, why));
ROW(encoding, struct encoding_row,
	NEED_LIST(struct encoding_row, needs),
	NEED(struct encoding_row, mask),
	NEED(struct encoding_row, value),
	NEED(struct encoding_row, what));
FIELDS(extension_file,
	NEED_ROWS(struct extension_file, extensions, &extension_entry),
	NEED_ROWS(struct extension_file, combined, &combined_entry),
	NEED_ROWS(struct extension_file, instructions, &instruction_entry),
	NEED_ROWS(struct extension_file, encodings, &encoding_entry));
const cyaml_schema_value_t schema_extensions = TOP(struct extension_file, extension_file_fields);

ROW(family, struct family_row,
	NEED(struct family_row, library),
	MAY(struct family_row, symbol),
	MAY(struct family_row, unit),
	NEED_LIST(struct family_row, extensions),
	FLAG(struct family_row, carries),
	NEED(struct family_row, why));
FIELDS(dispatch,
	NEED_ROWS(struct dispatch_file, families, &family_entry));
const cyaml_schema_value_t schema_dispatch = TOP(struct dispatch_file, dispatch_fields);

ROW(library, struct system_library_row,
	NEED(struct system_library_row, name),
	MAY(struct system_library_row, since),
	FLAG(struct system_library_row, versioned));
#define CEILING(key, i)                                                                                                \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct policy_row, ceilings[i], 1,       \
			       CYAML_UNLIMITED)
ROW(policy, struct policy_row,
	NEED(struct policy_row, policy),
	NEED(struct policy_row, machine),
	CEILING("glibc", 0),
	CEILING("glibcxx", 1),
	CEILING("cxxabi", 2),
	CEILING("gcc", 3),
	CEILING("libatomic", 4),
	CEILING("zlib", 5),
	LIST(struct policy_row, also));
FIELDS(manylinux,
	NEED_ROWS(struct manylinux_policy, libraries, &library_entry),
	NEED_ROWS(struct manylinux_policy, policies, &policy_entry));
const cyaml_schema_value_t schema_manylinux = TOP(struct manylinux_policy, manylinux_fields);

ROW(pool, struct pool_row,
	NEED(struct pool_row, name),
	FLAG(struct pool_row, openmp),
	LIST(struct pool_row, libraries),
	LIST(struct pool_row, defines),
	LIST(struct pool_row, wants),
	LIST(struct pool_row, without),
	NEED(struct pool_row, why),
	NEED(struct pool_row, instead));
FIELDS(threads,
	NEED_ROWS(struct pool_file, pools, &pool_entry));
const cyaml_schema_value_t schema_threads = TOP(struct pool_file, threads_fields);

ROW(matrix_row, struct matrix_row,
	LIST(struct matrix_row, packages),  LIST(struct matrix_row, pythons), LIST(struct matrix_row, toolkits),
	NEED_LIST(struct matrix_row, gpus), LIST(struct matrix_row, isas));
FIELDS(matrix,
	NEED(struct matrix_file, note),
	MAY(struct matrix_file, release),
	MAY(struct matrix_file, of),
	LIST(struct matrix_file, pythons),
	ROWS(struct matrix_file, rows, &matrix_row_entry),
	LIST(struct matrix_file, only),
	LIST(struct matrix_file, except));
const cyaml_schema_value_t schema_matrix = TOP(struct matrix_file, matrix_fields);

/* Where the line number lies in the struct that a set of fields fills. */
static const struct {
	const cyaml_schema_field_t *fields;
	size_t offset;
} line_members[] = {
	{setting_fields, offsetof(struct table_setting, line)},
	{isa_fields, offsetof(struct isa_row, line)},
	{gpu_fields, offsetof(struct gpu_row, line)},
	{cuda_library_fields, offsetof(struct cuda_library_row, line)},
	{layout_fields, offsetof(struct layout_row, line)},
	{gpu_units_fields, offsetof(struct gpu_units_row, line)},
	{gpu_extra_fields, offsetof(struct gpu_extra_row, line)},
	{part_fields, offsetof(struct part_row, line)},
	{toolkit_fields, offsetof(struct toolkit_row, line)},
	{blas_fields, offsetof(struct blas_row, line)},
	{toggle_fields, offsetof(struct toggle_row, line)},
	{retired_fields, offsetof(struct retired_row, line)},
	{source_fields, offsetof(struct source_row, line)},
	{correction_fields, offsetof(struct correction_row, line)},
	{taken_fields, offsetof(struct taken_row, line)},
	{package_fields, offsetof(struct package_row, line)},
	{release_fields, offsetof(struct release_row, line)},
	{isa_group_fields, offsetof(struct isa_group, line)},
	{matrix_row_fields, offsetof(struct matrix_row, line)},
	{matrix_fields, offsetof(struct matrix_file, line)},
	{need_fields, offsetof(struct need_row, line)},
	{heavy_fields, offsetof(struct heavy_row, line)},
	{nvcc_error_fields, offsetof(struct nvcc_error_row, line)},
	{cflags_fields, offsetof(struct cflags_row, line)},
	{cuda_require_fields, offsetof(struct cuda_require_row, line)},
	{memory_fields, offsetof(struct memory_row, line)},
	{extension_fields, offsetof(struct extension_row, line)},
	{combined_fields, offsetof(struct combined_row, line)},
	{instruction_fields, offsetof(struct instruction_row, line)},
	{encoding_fields, offsetof(struct encoding_row, line)},
	{family_fields, offsetof(struct family_row, line)},
	{library_fields, offsetof(struct system_library_row, line)},
	{policy_fields, offsetof(struct policy_row, line)},
	{pool_fields, offsetof(struct pool_row, line)},
};
/* clang-format on */

static void settle_fields(const cyaml_schema_field_t *fields, char *data, const char *path,
			  const struct yaml_lines *lines);

static void settle_sequence(const cyaml_schema_field_t *f, char *data, const char *path, const struct yaml_lines *lines)
{
	char *items = *(char **)(data + f->data_offset);
	const cyaml_schema_value_t *entry = f->value.sequence.entry;
	unsigned count;
	char below[160];
	memcpy(&count, data + f->count_offset, sizeof(count));
	if (entry->type != CYAML_MAPPING)
		return;
	for (unsigned i = 0; i < count; i++) {
		snprintf(below, sizeof(below), "%s%s%s/%u", path, *path ? "/" : "", f->key, i);
		settle_fields(entry->mapping.fields, items + (size_t)i * entry->data_size, below, lines);
	}
}

static void settle_fields(const cyaml_schema_field_t *fields, char *data, const char *path,
			  const struct yaml_lines *lines)
{
	for (size_t i = 0; i < ARRAY_LEN(line_members); i++)
		if (line_members[i].fields == fields) {
			unsigned line = yaml_line(lines, "%s", path);
			memcpy(data + line_members[i].offset, &line, sizeof(line));
		}
	for (const cyaml_schema_field_t *f = fields; f->key; f++) {
		const char **slot = (const char **)(data + f->data_offset);
		if (f->value.type == CYAML_STRING && !*slot) {
			*slot = "";
		} else if (f->value.type == CYAML_SEQUENCE) {
			settle_sequence(f, data, path, lines);
		} else if (f->value.type == CYAML_MAPPING && *slot) {
			char below[160];
			snprintf(below, sizeof(below), "%s%s%s", path, *path ? "/" : "", f->key);
			settle_fields(f->value.mapping.fields, *(char **)slot, below, lines);
		}
	}
}

void schema_settle(const cyaml_schema_value_t *schema, void *data, const struct yaml_lines *lines)
{
	settle_fields(schema->mapping.fields, data, "", lines);
}

/* Keys whose values no program reads but to print them. */
static bool is_for_people(const char *key)
{
	static const char *const keys[] = {"why", "what", "note", "instead", "source", "sources"};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (strcmp(keys[i], key) == 0)
			return true;
	return false;
}

static bool counts(const char *key, const char *const *keys)
{
	while (keys && *keys && strcmp(*keys, key) != 0)
		keys++;
	return (!keys || *keys) && !is_for_people(key);
}

static void put_text(const char *text, struct buf *out)
{
	buf_printf(out, "%zu:%s\n", strlen(text), text);
}

static void put_fields(const cyaml_schema_field_t *fields, const char *data, const char *const *keys, struct buf *out)
{
	for (const cyaml_schema_field_t *f = fields; f->key; f++) {
		const char *slot = data + f->data_offset;
		if (!counts(f->key, keys))
			continue;
		buf_printf(out, "%s ", f->key);
		if (f->value.type == CYAML_STRING) {
			put_text(*(const char *const *)slot, out);
		} else if (f->value.type == CYAML_BOOL) {
			put_text(*(const bool *)slot ? "true" : "false", out);
		} else {
			const cyaml_schema_value_t *entry = f->value.sequence.entry;
			const char *items = *(const char *const *)slot;
			unsigned count;
			memcpy(&count, data + f->count_offset, sizeof(count));
			buf_printf(out, "%u\n", count);
			for (unsigned i = 0; i < count; i++) {
				if (entry->type == CYAML_MAPPING)
					put_fields(entry->mapping.fields, items + (size_t)i * entry->data_size, NULL,
						   out);
				else
					put_text(((const char *const *)(const void *)items)[i], out);
			}
		}
	}
}

void schema_digest(const cyaml_schema_value_t *schema, const void *data, const char *const *keys, char ret[65])
{
	AUTO_BUF struct buf text = {0};
	put_fields(schema->mapping.fields, data, keys, &text);
	digest_data(buf_cstr(&text), text.len, ret);
}
