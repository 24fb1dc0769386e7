#include "core/tables/tables_parts.h"

#include "base/sys/digest.h"

/* clang-format off */
#define SOURCES {"sources", YAML_STRING, .offset = offsetof(struct tables, file_sources)}
/* What texts may be. */
#define VERSION .check = row_version
#define RANGE .check = row_range
#define PACKAGES .words = "pytorch torchvision torchaudio"
#define PLATFORMS .words = "x86_64-linux aarch64-linux aarch64-darwin"
#define KINDS .words = "cpu cuda mps"

/* The top of a file, as schema_ID. */
#define TOP(id, T, at_line, ...)                                                                                       \
	static const struct yaml_key id##_file_keys[] = {__VA_ARGS__, {.name = NULL}};                                 \
	const struct yaml_schema schema_##id = {id##_file_keys, sizeof(T), at_line}

/* One key a line. */
ROW(setting, struct table_setting,
	MAY(struct table_setting, name),   LIST(struct table_setting, names),
	MAY(struct table_setting, value),  NEED(struct table_setting, why),
	MAY(struct table_setting, source), MAY(struct table_setting, since, VERSION),
	MAY(struct table_setting, until, VERSION), MAY(struct table_setting, gpu, KINDS),
	MAY(struct table_setting, package), FLAG(struct table_setting, cache), FLAG(struct table_setting, fixed));

ROW(isa, struct isa_row,
	NEED(struct isa_row, name),
	LIST(struct isa_row, aliases),
	NEED(struct isa_row, platform, PLATFORMS),
	NEED_LIST(struct isa_row, flags, .check = row_flag),
	NEED_LIST(struct isa_row, cpuinfo),
	LIST(struct isa_row, workloads),
	NUMBER(struct isa_row, rank),
	MAY(struct isa_row, level),
	NEED(struct isa_row, gcc_min, VERSION),
	NEED(struct isa_row, clang_min, VERSION),
	NEED(struct isa_row, cpus),
	MAY(struct isa_row, qemu),
	MAY(struct isa_row, note),
	ROWS(struct isa_row, settings, setting));
ROW(isa_group, struct isa_group,
	NEED(struct isa_group, name),
	NEED_LIST(struct isa_group, isas));
TOP(isa, struct tables, 0,
	SOURCES,
	NEED_ROWS(struct tables, isas, isa),
	ROWS(struct tables, groups, isa_group));

PLAIN(suffix, struct gpu_suffix,
	NEED(struct gpu_suffix, suffix, .words = "a f"),
	NEED(struct gpu_suffix, cuda_min, VERSION),
	MAY(struct gpu_suffix, torch_min, VERSION));
ROW(gpu, struct gpu_row,
	NEED(struct gpu_row, sm),
	NEED(struct gpu_row, capability),
	NEED(struct gpu_row, name),
	LIST(struct gpu_row, aliases),
	LIST(struct gpu_row, devices),
	NEED(struct gpu_row, cuda_min, VERSION),
	MAY(struct gpu_row, cuda_max, VERSION),
	MAY(struct gpu_row, torch_min, VERSION),
	MAY(struct gpu_row, cudnn_max, VERSION),
	LIST(struct gpu_row, platforms, PLATFORMS),
	MAY(struct gpu_row, driver_min, VERSION),
	FLAG(struct gpu_row, no_extensions),
	MAY(struct gpu_row, extensions_until, VERSION),
	LIST(struct gpu_row, not_with),
	ROWS(struct gpu_row, suffixes, suffix),
	ROWS(struct gpu_row, settings, setting),
	MAY(struct gpu_row, note),
	FLAG(struct gpu_row, tegra),
	MAY(struct gpu_row, shares_from, VERSION),
	MAY(struct gpu_row, sbsa, VERSION));
ROW(gpu_units, struct gpu_units_row,
	NEED_LIST(struct gpu_units_row, units),
	NEED(struct gpu_units_row, why));
ROW(gpu_extra, struct gpu_extra_row,
	NEED(struct gpu_extra_row, base),
	NEED(struct gpu_extra_row, extra),
	NEED(struct gpu_extra_row, since, VERSION),
	NEED(struct gpu_extra_row, why));
TOP(gpu, struct tables, 0,
	SOURCES,
	NEED_ROWS(struct tables, gpus, gpu),
	ROWS(struct tables, gpu_units, gpu_units),
	{"extras", YAML_ROWS, LIST_AT(struct tables, gpu_extras), .of = &gpu_extra_schema});

ROW(cuda_library, struct cuda_library_row,
	NEED(struct cuda_library_row, package),    NEED(struct cuda_library_row, dir),
	MAY(struct cuda_library_row, older),       MAY(struct cuda_library_row, below, VERSION),
	NEED_LIST(struct cuda_library_row, names), MAY(struct cuda_library_row, part),
	MAY(struct cuda_library_row, extra),       LIST(struct cuda_library_row, needs));
ROW(layout, struct layout_row,
	NEED(struct layout_row, name),
	MAY(struct layout_row, bundle),
	NEED_ROWS(struct layout_row, libraries, cuda_library));
ROW(toolkit, struct toolkit_row,
	NEED(struct toolkit_row, version, VERSION),
	NEED(struct toolkit_row, gcc_max, VERSION),
	NEED(struct toolkit_row, clang_max, VERSION),
	NEED(struct toolkit_row, driver, VERSION),
	NEED(struct toolkit_row, driver_floor, VERSION),
	MAY(struct toolkit_row, compress, .words = "size speed balance none"),
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
ROW(cuda_line, struct line_row,
	NEED(struct line_row, cuda),
	NEED(struct line_row, driver_floor));
TOP(cuda, struct tables, 0,
	SOURCES,
	NEED_ROWS(struct tables, layouts, layout),
	LIST(struct tables, driver_libraries),
	LIST(struct tables, driver_files),
	ROWS(struct tables, cuda_lines, cuda_line),
	ROWS(struct tables, parts, part),
	ROWS(struct tables, nvcc_errors, nvcc_error),
	NEED_ROWS(struct tables, toolkits, toolkit));

ROW(blas, struct blas_row,
	NEED(struct blas_row, name),  NEED(struct blas_row, cmake),
	NEED(struct blas_row, info),  MAY(struct blas_row, pkgconf),
	MAY(struct blas_row, debian), NEED_LIST(struct blas_row, platforms, PLATFORMS),
	MAY(struct blas_row, world),  MAY(struct blas_row, place),    LIST(struct blas_row, files),
	MAY(struct blas_row, linked), MAY(struct blas_row, licence),
	MAY(struct blas_row, note),   ROWS(struct blas_row, settings, setting));
TOP(blas, struct tables, 0,
	SOURCES,
	NEED_ROWS(struct tables, blas, blas));

ROW(toggle, struct toggle_row,
	MAY(struct toggle_row, name),   LIST(struct toggle_row, names),  MAY(struct toggle_row, package, PACKAGES),
	MAY(struct toggle_row, since, VERSION), MAY(struct toggle_row, until, VERSION), MAY(struct toggle_row, value),
	MAY(struct toggle_row, cpu),    MAY(struct toggle_row, cuda),    MAY(struct toggle_row, mps),
	MAY(struct toggle_row, needs),  LIST(struct toggle_row, values), NEED(struct toggle_row, why),
	FLAG(struct toggle_row, cache), FLAG(struct toggle_row, check));
ROW(retired, struct retired_row,
	NEED(struct retired_row, name),
	MAY(struct retired_row, package, PACKAGES),
	MAY(struct retired_row, since, VERSION),
	NEED(struct retired_row, why));
TOP(toggles, struct tables, 0,
	SOURCES,
	NEED_ROWS(struct tables, toggles, toggle),
	ROWS(struct tables, retired, retired));

ROW(correction, struct correction_row,
	NEED(struct correction_row, name),   LIST(struct correction_row, packages, PACKAGES),
	LIST(struct correction_row, kinds, KINDS),  LIST(struct correction_row, isas),
	LIST(struct correction_row, gpus),   LIST(struct correction_row, releases),
	MAY(struct correction_row, versions, RANGE),
	MAY(struct correction_row, cuda, RANGE),    MAY(struct correction_row, pythons, RANGE),
	NEED(struct correction_row, note),   NEED(struct correction_row, source),
	FLAG(struct correction_row, limits));
ROW(advisory, struct advisory_row,
	NEED(struct advisory_row, id),       NEED(struct advisory_row, package, PACKAGES),
	NEED(struct advisory_row, versions, RANGE), NEED(struct advisory_row, what),
	NEED(struct advisory_row, source));
TOP(corrections, struct tables, 0,
	NEED_ROWS(struct tables, corrections, correction),
	ROWS(struct tables, advisories, advisory));

ROW(source, struct source_row,
	NEED(struct source_row, name, .check = row_file_name),
	MAY(struct source_row, sha256),
	MAY(struct source_row, unproven),
	NEED_LIST(struct source_row, urls, .check = row_url),
	MAY(struct source_row, into, .check = row_inside),
	FLAG(struct source_row, keep_top),
	NUMBER(struct source_row, bytes),
	NUMBER(struct source_row, max_unpacked));
PLAIN(command, struct command_row,
	MAY(struct command_row, dir, .check = row_inside),
	NEED_LIST(struct command_row, argv),
	NEED(struct command_row, why));
ROW(need, struct need_row,
	MAY(struct need_row, tool),    MAY(struct need_row, program), MAY(struct need_row, header),
	MAY(struct need_row, module),  MAY(struct need_row, library), MAY(struct need_row, package, PACKAGES),
	MAY(struct need_row, release), MAY(struct need_row, toggle),  FLAG(struct need_row, host),
	FLAG(struct need_row, optional),
	NEED(struct need_row, debian), MAY(struct need_row, wheel),   NEED(struct need_row, why));
TOP(needs, struct tables, 0,
	SOURCES,
	NEED_ROWS(struct tables, needs, need));

ROW(drop, struct drop_row,
	NEED(struct drop_row, name),     MAY(struct drop_row, strip, .words = "debug symbols"),
	MAY(struct drop_row, package),   MAY(struct drop_row, versions, RANGE),
	LIST(struct drop_row, files),    LIST(struct drop_row, targets),
	MAY(struct drop_row, gpus_below), MAY(struct drop_row, gpus_from),
	FLAG(struct drop_row, same),     FLAG(struct drop_row, by_default),
	NEED(struct drop_row, lost),     NUMBER(struct drop_row, megabytes));
TOP(slim, struct tables, 0,
	SOURCES,
	NUMBER(struct tables, slim_percent),
	NEED_ROWS(struct tables, drops, drop));

ROW(captured, struct captured_row,
	NEED(struct captured_row, package), NEED(struct captured_row, version), MAY(struct captured_row, requirement),
	MAY(struct captured_row, check),    NEED(struct captured_row, why));
TOP(captured, struct tables, 0,
	SOURCES,
	NEED_ROWS(struct tables, captured, captured));

ROW(heavy, struct heavy_row,
	NEED(struct heavy_row, units),
	NEED(struct heavy_row, bytes, .check = row_memory),
	NEED(struct heavy_row, why));
ROW(cflags, struct cflags_row,
	NEED_LIST(struct cflags_row, flags, .check = row_flag),
	LIST(struct cflags_row, platforms, .words = "x86_64-linux aarch64-linux"),
	NEED(struct cflags_row, why));
ROW(cuda_require, struct cuda_require_row,
	NEED(struct cuda_require_row, requirement, .check = row_requirement),
	MAY(struct cuda_require_row, cuda, RANGE),
	LIST(struct cuda_require_row, platforms, .words = "x86_64-linux aarch64-linux"));
ROW(memory, struct memory_row,
	MAY(struct memory_row, compile, .check = row_memory),
	MAY(struct memory_row, link, .check = row_memory),
	ROWS(struct memory_row, heavy, heavy));
ROW(package, struct package_row,
	NEED(struct package_row, version, VERSION),
	NEED(struct package_row, backend,
		.words = "setup-py-env setup-py-cmake-env scikit-build-core setuptools setuptools-cmake"),
	NEED_ROWS(struct package_row, sources, source),
	MAY(struct package_row, series, .check = row_inside),
	LIST(struct package_row, skip_patches, .check = row_inside),
	MAY(struct package_row, patches),
	ROWS(struct package_row, prepare, command),
	LIST(struct package_row, python_requires, .check = row_requirement),
	LIST(struct package_row, install_requires, .check = row_requirement),
	ROWS(struct package_row, cuda_requires, cuda_require),
	MAY(struct package_row, requirements, .check = row_file_name),
	MAY(struct package_row, tried_with, .check = row_file_name),
	ROWS(struct package_row, settings, setting),
	ROWS(struct package_row, extra_cflags, cflags),
	MAY(struct package_row, cudnn, VERSION),
	MAY(struct package_row, torch, RANGE),
	MAY(struct package_row, note),
	KEY(struct package_row, memory, YAML_ROW, .of = &memory_schema));
ROW(torch_extension, struct package_row,
	NEED(struct package_row, name),
	NEED(struct package_row, version),
	NEED_ROWS(struct package_row, sources, source),
	ROWS(struct package_row, prepare, command),
	NEED_LIST(struct package_row, python_requires, .check = row_requirement),
	LIST(struct package_row, install_requires, .check = row_requirement),
	MAY(struct package_row, torch, RANGE),
	MAY(struct package_row, python, RANGE),
	FLAG(struct package_row, cuda_only),
	ROWS(struct package_row, settings, setting),
	MAY(struct package_row, requirements, .check = row_file_name),
	MAY(struct package_row, tried_with, .check = row_file_name),
	MAY(struct package_row, series, .check = row_inside), MAY(struct package_row, cudnn, VERSION),
	MAY(struct package_row, note),
	KEY(struct package_row, memory, YAML_ROW, .of = &memory_schema));
TOP(torch_extensions, struct tables, 0,
	SOURCES,
	NEED_LIST(struct tables, extension_requires),
	NEED_ROWS(struct tables, torch_extensions, torch_extension));
#define PACKAGE(member) KEY(struct release_row, member, YAML_ROW, .of = &package_schema)
ROW(world, struct world_row,
	NEED(struct world_row, base),
	LIST(struct world_row, cuda),
	LIST(struct world_row, platforms));
TOP(release, struct release_row, offsetof(struct release_row, line),
	NEED(struct release_row, name),
	NEED(struct release_row, base, VERSION),
	NEED_LIST(struct release_row, pythons, .check = row_python),
	LIST(struct release_row, toolkits),
	ROWS(struct release_row, worlds, world),
	MAY(struct release_row, cmake, RANGE),
	MAY(struct release_row, ninja, RANGE),
	MAY(struct release_row, gcc, RANGE),
	MAY(struct release_row, gcc_arm, RANGE),
	MAY(struct release_row, clang, RANGE),
	MAY(struct release_row, cuda, RANGE),
	MAY(struct release_row, disk, .check = yaml_size),
	MAY(struct release_row, note),
	MAY(struct release_row, asked),
	MAY(struct release_row, label, .check = row_label),
	MAY(struct release_row, sources),
	NEED_NUMBER(struct release_row, source_date_epoch),
	PACKAGE(pytorch),
	PACKAGE(torchvision),
	PACKAGE(torchaudio));

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
TOP(extensions, struct extension_file, 0,
	NEED_ROWS(struct extension_file, extensions, extension),
	NEED_ROWS(struct extension_file, combined, combined),
	NEED_ROWS(struct extension_file, instructions, instruction),
	NEED_ROWS(struct extension_file, encodings, encoding));

ROW(family, struct family_row,
	NEED(struct family_row, library),
	MAY(struct family_row, symbol),
	MAY(struct family_row, unit),
	NEED_LIST(struct family_row, extensions),
	FLAG(struct family_row, carries),
	NEED(struct family_row, why));
TOP(dispatch, struct dispatch_file, 0,
	NEED_ROWS(struct dispatch_file, families, family));

ROW(library, struct system_library_row,
	NEED(struct system_library_row, name),
	MAY(struct system_library_row, since),
	FLAG(struct system_library_row, versioned));
#define CEILING(key, i) {key, YAML_STRING, .offset = offsetof(struct policy_row, ceilings[i]), .filled = true, VERSION}
ROW(policy, struct policy_row,
	NEED(struct policy_row, policy),
	NEED(struct policy_row, machine, .words = "x86_64 aarch64"),
	CEILING("glibc", 0),
	CEILING("glibcxx", 1),
	CEILING("cxxabi", 2),
	CEILING("gcc", 3),
	CEILING("libatomic", 4),
	CEILING("zlib", 5),
	LIST(struct policy_row, also));
TOP(manylinux, struct manylinux_policy, 0,
	NEED_ROWS(struct manylinux_policy, libraries, library),
	NEED_ROWS(struct manylinux_policy, policies, policy),
	LIST(struct manylinux_policy, musl));

ROW(pool, struct pool_row,
	NEED(struct pool_row, name),
	FLAG(struct pool_row, openmp),
	LIST(struct pool_row, libraries),
	LIST(struct pool_row, defines),
	LIST(struct pool_row, wants),
	LIST(struct pool_row, without),
	NEED(struct pool_row, why),
	NEED(struct pool_row, instead));
TOP(threads, struct pool_file, 0,
	NEED_ROWS(struct pool_file, pools, pool));

ROW(matrix_row, struct matrix_row,
	LIST(struct matrix_row, packages, PACKAGES), LIST(struct matrix_row, pythons),
	LIST(struct matrix_row, toolkits), NEED_LIST(struct matrix_row, gpus), LIST(struct matrix_row, isas));
TOP(matrix, struct matrix_file, offsetof(struct matrix_file, line),
	NEED(struct matrix_file, note),
	MAY(struct matrix_file, release),
	MAY(struct matrix_file, of),
	LIST(struct matrix_file, pythons),
	ROWS(struct matrix_file, rows, matrix_row),
	LIST(struct matrix_file, only),
	LIST(struct matrix_file, except));

/* clang-format on */

static bool counts(const char *key, const char *const *keys)
{
	/* whose values no program reads but to print them */
	static const char *const for_people[] = {"why",     "what",   "note",
						 "instead", "source", "sources"};

	while (keys && *keys && strcmp(*keys, key) != 0)
		keys++;
	return (!keys || *keys) && !strings_contain(for_people, ARRAY_LEN(for_people), key);
}

static void put_text(const char *text, struct buf *out)
{
	buf_printf(out, "%zu:", strlen(text));
	buf_addstr(out, text);
	buf_addc(out, '\n');
}

static void put_fields(const struct yaml_schema *schema, const char *data, const char *const *keys,
		       struct buf *out)
{
	for (const struct yaml_key *k = schema->keys; k->name; k++) {
		const void *slot = data + k->offset;
		unsigned count;
		if (!counts(k->name, keys))
			continue;
		buf_addstr(out, k->name);
		buf_addc(out, ' ');
		if (k->type == YAML_STRING || k->type == YAML_TRUTH) {
			put_text(k->type == YAML_STRING ? *(const char *const *)slot
				 : *(const bool *)slot  ? "true"
							: "false",
				 out);
			continue;
		}

		memcpy(&count, data + k->count, sizeof(count));
		buf_printf(out, "%u\n", count);
		for (unsigned i = 0; i < count; i++)
			if (k->of)
				put_fields(k->of, *(const char *const *)slot + i * k->of->size,
					   NULL, out);
			else
				put_text((*(const char *const *const *)slot)[i], out);
	}
}

void schema_digest(const struct yaml_schema *schema, const void *data, const char *const *keys,
		   char ret[65])
{
	AUTO_BUF struct buf text = {0};
	put_fields(schema, data, keys, &text);
	digest_data(buf_cstr(&text), text.len, ret);
}
