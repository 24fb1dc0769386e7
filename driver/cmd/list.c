#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "cmd/cmd.h"
#include "core/ci/ci.h"
#include "core/plan/plan.h"
#include "core/variant/variant.h"
#include "core/wheel/application.h"
#include "core/world/world.h"
#include "step/test/test.h"
#include "step/world/toolkit_tree.h"

enum { RELEASES, BUNDLES, MATRICES, PROFILES, ISAS, GPUS, TOOLKITS, BLAS, TOGGLES, SECTIONS };

struct list_options {
	struct cmd_globals global;
	bool asked[SECTIONS];
};

#define TEXT(row, name) JSON_IF_FILLED(struct row, name, #name)
#define LIST(row, name) JSON_STRINGS(struct row, name)

struct section {
	struct show show;
	/* adds the rows; NULL: they are the fields of an array in the tables */
	int (*add)(const struct tables *t, struct arena *a, json_t *rows, struct err *e);
	size_t array, count; /* offsets in struct tables */
	size_t size;         /* of an element */
	const struct json_field *fields;
};

static void put(json_t *row, const char *key, const char *value)
{
	json_object_set_new(row, key, json_filled(value));
}

static json_t *add_row(json_t *rows)
{
	json_t *row = json_object();
	json_array_append_new(rows, row);
	return row;
}

static int add_releases(const struct tables *t, struct arena *a, json_t *rows, struct err *e)
{
	JSON_FIELDS(fields, LIST(release_row, pythons), LIST(release_row, toolkits),
		    TEXT(release_row, note));
	(void)a, (void)e;
	for (unsigned i = 0; i < t->releases_count; i++) {
		const struct release_row *r = &t->releases[i];
		json_t *row = add_row(rows);
		put(row, "name", r->name);
		for (size_t p = 0; p < TABLES_PACKAGES; p++) {
			const struct package_row *package = tables_package(r, tables_packages[p]);
			put(row, tables_packages[p], package ? package->version : NULL);
		}

		json_add(row, r, fields);
	}

	return 0;
}

JSON_FIELDS(part_fields, TEXT(application_part, wheel), TEXT(application_part, python),
	    LIST(application_part, requires), LIST(application_part, gpus),
	    LIST(application_part, platforms), TEXT(application_part, why));

static int add_bundles(const struct tables *t, struct arena *a, json_t *rows, struct err *e)
{
	struct application_file f;

	if (applications_load(t->dir, a, &f, e) < 0)
		return -1;
	for (unsigned i = 0; i < f.applications_count; i++) {
		const struct application_row *r = &f.applications[i];
		json_t *row = add_row(rows);
		put(row, "name", r->name);
		put(row, "version", r->version);
		for (unsigned k = 0; k < r->parts_count; k++)
			if (strcmp(r->parts[k].name, "torch") == 0)
				put(row, "torch", r->parts[k].version);
		put(row, "note", r->note);
		put(row, "source", r->source);
		json_object_set_new(
			row, "wheels",
			json_rows(r->parts, r->parts_count, sizeof(*r->parts), part_fields));
	}

	return 0;
}

struct counts {
	size_t variants;
	size_t refused;
	size_t of_package[TABLES_PACKAGES];
};

static int count_variants(const struct tables *t, const struct matrix *m, struct counts *ret,
			  struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct matrix_walk w = {0};
	const char *name;

	while ((name = matrix_next(m, &w, &a))) {
		struct variant v;
		struct err refusal = {0};
		if (variant_parse(t, name, &a, &v, e) < 0)
			return err_wrap(e, "matrix '%s'", m->name);
		struct plan_request q = {.variant = &v, .release = m->release->name};
		ret->variants++;
		ret->refused += profile_is_planned_only(&v.profile) ||
				plan_cuda(t, &q, &a, &v.cuda, &refusal) < 0;
		ret->of_package[tables_package_rank(v.package)]++;
	}

	return 0;
}

static int add_matrix(const struct tables *t, const char *name, json_t *rows, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct matrix *m;
	struct counts n = {0};

	if (matrix_load(t, name, &a, &m, e) < 0 || count_variants(t, m, &n, e) < 0)
		return -1;
	json_t *row = add_row(rows);
	put(row, "name", name);
	put(row, "release", m->release->name);
	json_object_set_new(row, "variants", json_integer((json_int_t)n.variants));
	json_object_set_new(row, "refused", json_integer((json_int_t)n.refused));
	for (size_t p = 0; p < TABLES_PACKAGES; p++)
		json_object_set_new(row, tables_packages[p],
				    json_integer((json_int_t)n.of_package[p]));
	put(row, "view_of", m->base ? m->base->name : NULL);
	json_object_set_new(row, "note", json_string(m->note));
	return 0;
}

static int add_matrices(const struct tables *t, struct arena *a, json_t *rows, struct err *e)
{
	struct strlist names = {0};

	if (matrix_names(t, a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if (add_matrix(t, names.items[i], rows, e) < 0)
			return -1;
	return 0;
}

/* What a profile's name stands for. */
struct listed_profile {
	const char *name, *platform;
	const char *gpu, *isa; /* NULL: none */
};

static void add_profile(json_t *rows, const struct listed_profile *p)
{
	json_array_append_new(rows, json_pack("{s:s, s:s, s:o, s:o}", "name", p->name, "platform",
					      p->platform, "gpu", json_or_null(p->gpu), "isa",
					      json_or_null(p->isa)));
}

/* The pairs that machines have; any other pair is a
 * name too, and so are several SMs joined with '+'. */
static int add_profiles(const struct tables *t, struct arena *a, json_t *rows, struct err *e)
{
	(void)e;
	for (unsigned k = 0; k < t->isas_count; k++)
		add_profile(rows, &(struct listed_profile){
					  .name = arena_printf(a, "cpu-%s", t->isas[k].name),
					  .platform = t->isas[k].platform,
					  .isa = t->isas[k].name});
	add_profile(rows,
		    &(struct listed_profile){.name = "darwin-mps", .platform = "aarch64-darwin"});
	for (unsigned i = 0; i < t->gpus_count; i++)
		for (unsigned k = 0; k < t->isas_count; k++) {
			const struct gpu_row *gpu = &t->gpus[i];
			const struct isa_row *isa = &t->isas[k];
			const struct listed_profile p = {
				.name = arena_printf(a, "sm%s-%s", gpu->sm, isa->name),
				.platform = isa->platform,
				.gpu = gpu->capability,
				.isa = isa->name};
			if (strings_allow(gpu->platforms, gpu->platforms_count, isa->platform))
				add_profile(rows, &p);
		}
	return 0;
}

/* The least driver of a GPU: its own, or that of the first toolkit which has it. */
static const char *least_driver(const struct tables *t, const struct gpu_row *r)
{
	for (unsigned i = 0; !*r->driver_min && i < t->toolkits_count; i++)
		if (version_cmp(t->toolkits[i].version, r->cuda_min) >= 0)
			return t->toolkits[i].driver_floor;
	return r->driver_min;
}

static int add_gpus(const struct tables *t, struct arena *a, json_t *rows, struct err *e)
{
	JSON_FIELDS(before, LIST(gpu_row, aliases), TEXT(gpu_row, capability),
		    TEXT(gpu_row, cuda_min), TEXT(gpu_row, cuda_max), TEXT(gpu_row, torch_min));
	JSON_FIELDS(after, LIST(gpu_row, platforms), TEXT(gpu_row, name), LIST(gpu_row, devices),
		    TEXT(gpu_row, note));
	(void)e;
	for (unsigned i = 0; i < t->gpus_count; i++) {
		const struct gpu_row *r = &t->gpus[i];
		json_t *row = add_row(rows), *suffixes = json_array();
		for (unsigned k = 0; k < r->suffixes_count; k++)
			json_array_append_new(suffixes, json_string(r->suffixes[k].suffix));
		put(row, "sm", arena_printf(a, "sm%s", r->sm));
		json_add(row, r, before);
		json_object_set_new(row, "suffixes", suffixes);
		put(row, "driver_min", least_driver(t, r));
		json_add(row, r, after);
	}

	return 0;
}

JSON_FIELDS(isa_fields, TEXT(isa_row, name), LIST(isa_row, aliases), TEXT(isa_row, platform),
	    LIST(isa_row, flags), LIST(isa_row, cpuinfo), TEXT(isa_row, cpus), TEXT(isa_row, note));
JSON_FIELDS(toolkit_fields, TEXT(toolkit_row, version), TEXT(toolkit_row, gcc_max),
	    TEXT(toolkit_row, clang_max), TEXT(toolkit_row, driver),
	    TEXT(toolkit_row, driver_floor));
JSON_FIELDS(blas_fields, TEXT(blas_row, name), TEXT(blas_row, cmake), LIST(blas_row, platforms),
	    TEXT(blas_row, world), TEXT(blas_row, note));
JSON_FIELDS(toggle_fields, TEXT(toggle_row, package), TEXT(toggle_row, name), TEXT(toggle_row, cpu),
	    TEXT(toggle_row, cuda), TEXT(toggle_row, mps), TEXT(toggle_row, since),
	    TEXT(toggle_row, until), LIST(toggle_row, values), TEXT(toggle_row, why));

#define COLUMNS(name, ...)                                                                         \
	{                                                                                          \
		.each = (name), .columns = { __VA_ARGS__ }                                         \
	}
#define ROWS(array, row)                                                                           \
	NULL, offsetof(struct tables, array), offsetof(struct tables, array##_count),              \
		sizeof(struct row)

static const struct section sections[SECTIONS] = {
	[RELEASES] = {COLUMNS("releases", "name", "pytorch", "torchvision", "torchaudio", "pythons",
			      "toolkits"),
		      .add = add_releases},
	[BUNDLES] = {COLUMNS("bundles", "name", "version", "torch", "note"), .add = add_bundles},
	[MATRICES] = {COLUMNS("matrices", "name", "release", ">variants", ">refused", "note"),
		      .add = add_matrices},
	[PROFILES] = {COLUMNS("profiles", "name", "platform", "gpu", "isa"), .add = add_profiles},
	[ISAS] = {COLUMNS("isas", "name", "platform", "flags", "cpus"), ROWS(isas, isa_row),
		  isa_fields},
	[GPUS] = {COLUMNS("gpus", "sm", "capability", "cuda_min", "cuda_max", "torch_min",
			  "driver_min", "name", "devices:,"),
		  .add = add_gpus},
	[TOOLKITS] = {COLUMNS("toolkits", "version", "gcc_max", "clang_max", "driver",
			      "driver_floor"),
		      ROWS(toolkits, toolkit_row), toolkit_fields},
	[BLAS] = {COLUMNS("blas", "name", "cmake", "platforms"), ROWS(blas, blas_row), blas_fields},
	[TOGGLES] = {COLUMNS("toggles", "package", "name", "cpu", "cuda", "mps", "since", "until"),
		     ROWS(toggles, toggle_row), toggle_fields},
};

#define ASKED(section) ARG_FLAG, offsetof(struct list_options, asked[section]), NULL

/* In the order of the sections. */
static const struct arg_def list_defs[] = {
	{"releases", 0, ASKED(RELEASES), "pinned sets: versions, Pythons, CUDA toolkits", NULL},
	{"bundles", 0, ASKED(BUNDLES), "applications for 'ptbuild bundle NAME==VERSION'", NULL},
	{"matrices", 0, ASKED(MATRICES),
	 "named sets of variants: how many they hold, and how many of those cannot be built", NULL},
	{"profiles", 0, ASKED(PROFILES),
	 "names for --profile; or, before DIR, which tables to list", NULL},
	{"isas", 0, ASKED(ISAS), "CPU instruction sets", NULL},
	{"gpus", 0, ASKED(GPUS), "GPU targets", NULL},
	{"toolkits", 0, ASKED(TOOLKITS), "CUDA toolkits", NULL},
	{"blas", 0, ASKED(BLAS), "BLAS libraries", NULL},
	{"toggles", 0, ASKED(TOGGLES), "build options and their values", NULL},
	{0},
};

static int add_section(const struct tables *t, const struct section *s, struct arena *a,
		       json_t *rows, struct err *e)
{
	if (s->add)
		return s->add(t, a, rows, e);
	const char *base = (const char *)t,
		   *array = *(const char *const *)(const void *)(base + s->array);
	for (unsigned i = 0; i < *(const unsigned *)(const void *)(base + s->count); i++)
		json_add(add_row(rows), array + i * s->size, s->fields);
	return 0;
}

/* Tables that commands read where they need them: what is wrong in one is found here, too. */
static int read_others(const struct tables *t, struct arena *a, struct err *e)
{
	const struct hardware_facts *facts;
	const struct toolkit_rules *rules;
	const struct stable_abi *abi;
	const struct world_part *part;
	const struct ci_tables *ci;
	struct application_file applications;
	const char *world;
	struct strlist parts = {0};

#define THERE(name) fs_exists(t->dir, name)
	if (THERE("cpu.yaml") && hardware_facts_load(t->dir, a, &facts, e) < 0)
		return -1;
	if (THERE("ci.yaml") && ci_tables_load(t->dir, a, &ci, e) < 0)
		return -1;
	if (THERE("stable_abi.yaml") && stable_abi_load(t->dir, a, &abi, e) < 0)
		return -1;
	if (THERE("toolkit_tree.yaml") && toolkit_rules_load(t->dir, a, &rules, e) < 0)
		return -1;
	if (THERE("worlds") && world_part_names(t->dir, a, &parts, e) < 0)
		return -1;
	for (size_t i = 0; i < parts.count; i++)
		if (world_part_load(t->dir, parts.items[i], a, &part, e) < 0)
			return -1;
	if (applications_load(t->dir, a, &applications, e) < 0)
		return -1;
	for (unsigned i = 0; i < t->releases_count; i++)
		if (test_table_world(t->dir, t->releases[i].name, a, &world, e) < 0)
			return -1;
	return 0;
}

static int list_main(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	const struct list_options *o = c->options;
	AUTO_JSON json_t *all = json_pack("{s:i}", "schema", 1);
	struct show shown[2 * SECTIONS + 1] = {0};
	size_t asked = 0, n = 0;
	const bool other = words->count == 1 && o->asked[PROFILES];
	/* With a directory behind it --profiles is what it is of every other command. */
	struct cmd_globals global = *c->global;

	if (words->count && !other) {
		err_set(e, ERR_USAGE, "list has no argument '%s'", words->items[0]);
		return err_hint(e, "'ptbuild list --profiles DIR' lists the tables of a directory");
	}

	global.profiles = other ? words->items[0] : NULL;
	c->global = &global;
	if (cmd_open(c, OPEN_TABLES, e) < 0)
		return -1;
	const struct tables *t = c->tables;
	if (read_others(t, c->arena, e) < 0)
		return -1;
	/* A folder of patches whose name is no release's is read by no plan. */
	struct strlist releases = {0};
	if (cmd_open(c, OPEN_PATCHES, e) < 0)
		return -1;
	for (unsigned i = 0; i < t->releases_count; i++)
		strlist_ref(&releases, c->arena, t->releases[i].name);
	for (size_t k = 0; k < TABLES_PACKAGES; k++) {
		const char *dir = path_join(c->arena, c->patches_dir, tables_packages[k]);
		struct strlist names = {0};
		if (fs_is_dir(TRUSTED, dir) && fs_list(TRUSTED, dir, c->arena, &names, e) < 0)
			return -1;
		for (size_t i = 0; i < names.count; i++) {
			if (strlist_contains(&releases, names.items[i]))
				continue;
			const char *near =
				suggest_nearest(names.items[i], releases.items, releases.count);
			const char *folder = path_join(c->arena, dir, names.items[i]);
			const char *guess =
				near ? arena_printf(c->arena, "; did you mean '%s'?", near) : "";
			log_warn(c->run->log, "the patches in '%s' are of no release%s", folder,
				 guess);
		}
	}

	bool shown_of[SECTIONS];
	for (size_t i = 0; i < SECTIONS; i++) {
		shown_of[i] = o->asked[i] && !(i == PROFILES && other);
		asked += shown_of[i];
	}

	for (size_t i = 0; i < SECTIONS; i++) {
		if (asked ? !shown_of[i] : i != RELEASES)
			continue;
		json_t *rows = json_array();
		json_object_set_new(all, list_defs[i].name, rows);
		if (add_section(t, &sections[i], c->arena, rows, e) < 0)
			return -1;
		if (asked > 1)
			shown[n++] = (struct show){
				.text = arena_printf(c->arena, "\n%s", list_defs[i].name),
				.bold = true};
		shown[n++] = sections[i].show;
	}

	json_object_set_new(all, "tables", json_or_null(t->dir));
	if (!asked)
		shown[n] = (struct show){.text = "\nthe tables: {tables}"};
	return cmd_show(c, json_incref(all), shown, e);
}

const struct command command_list = {
	.name = "list",
	.summary = "list releases, profiles and what they are made of",
	.usage = "[--releases] [--bundles] [--matrices] [--profiles [DIR]] [--isas] [--gpus] "
		 "[--toolkits] "
		 "[--blas] [--toggles]",
	.tables = {list_defs},
	.arguments = {{"DIR", "after --profiles: the directory of the tables", "<dir>"}},
	.options_size = sizeof(struct list_options),
	.run = list_main,
};
