#include <string.h>

#include "base/sys/json.h"
#include "cmd/cmd.h"
#include "cmd/help.h"
#include "cmd/list_matrices.h"

struct list_options {
	struct cmd_globals global;
	bool releases, matrices, profiles, isas, gpus, toolkits, blas, toggles;
};

/* A section is made as JSON; the text is the same rows as columns. */
struct section {
	const char *name;
	size_t flag;                                              /* offset in list_options */
	json_t *(*rows)(const struct tables *t, struct arena *a); /* NULL: the next */
	/* rows that are in files of their own */
	int (*load)(const struct tables *t, struct arena *a, json_t **ret, struct err *e);
	/* keys shown as text; NULL ends them */
	const char *columns[8];
};

static json_t *strings(const char *const *items, unsigned count)
{
	json_t *l = json_array();
	for (unsigned i = 0; i < count; i++)
		json_array_append_new(l, json_string(items[i]));
	return l;
}

static void put(json_t *row, const char *key, const char *value)
{
	json_object_set_new(row, key, value && *value ? json_string(value) : json_null());
}

static json_t *add_row(json_t *rows)
{
	json_t *row = json_object();
	json_array_append_new(rows, row);
	return row;
}

static json_t *release_rows(const struct tables *t, struct arena *a)
{
	(void)a;
	json_t *rows = json_array();
	for (unsigned i = 0; i < t->releases_count; i++) {
		const struct release_row *r = &t->releases[i];
		json_t *row = add_row(rows);
		put(row, "name", r->name);
		put(row, "pytorch", r->pytorch ? r->pytorch->version : NULL);
		put(row, "torchvision", r->torchvision ? r->torchvision->version : NULL);
		put(row, "torchaudio", r->torchaudio ? r->torchaudio->version : NULL);
		json_object_set_new(row, "pythons", strings(r->pythons, r->pythons_count));
		json_object_set_new(row, "toolkits", strings(r->toolkits, r->toolkits_count));
		put(row, "note", r->note);
	}
	return rows;
}

static bool exists_on(const struct gpu_row *gpu, const char *platform)
{
	for (unsigned i = 0; i < gpu->platforms_count; i++)
		if (strcmp(gpu->platforms[i], platform) == 0)
			return true;
	return gpu->platforms_count == 0;
}

static void put_profile(json_t *rows, const char *name, const char *platform, const char *gpu, const char *isa)
{
	json_t *row = add_row(rows);
	put(row, "name", name);
	put(row, "platform", platform);
	put(row, "gpu", gpu);
	put(row, "isa", isa);
}

/* The composed names for machines that exist; any other pair may be named as well, and several SMs joined with '+'. */
static json_t *profile_rows(const struct tables *t, struct arena *a)
{
	json_t *rows = json_array();
	for (unsigned k = 0; k < t->isas_count; k++)
		put_profile(rows, arena_printf(a, "cpu-%s", t->isas[k].name), t->isas[k].platform, NULL,
			    t->isas[k].name);
	put_profile(rows, "darwin-mps", "aarch64-darwin", NULL, NULL);
	for (unsigned i = 0; i < t->gpus_count; i++)
		for (unsigned k = 0; k < t->isas_count; k++)
			if (exists_on(&t->gpus[i], t->isas[k].platform))
				put_profile(rows, arena_printf(a, "sm%s-%s", t->gpus[i].sm, t->isas[k].name),
					    t->isas[k].platform, t->gpus[i].capability, t->isas[k].name);
	return rows;
}

static json_t *isa_rows(const struct tables *t, struct arena *a)
{
	(void)a;
	json_t *rows = json_array();
	for (unsigned i = 0; i < t->isas_count; i++) {
		const struct isa_row *r = &t->isas[i];
		json_t *row = add_row(rows);
		put(row, "name", r->name);
		json_object_set_new(row, "aliases", strings(r->aliases, r->aliases_count));
		put(row, "platform", r->platform);
		json_object_set_new(row, "flags", strings(r->flags, r->flags_count));
		json_object_set_new(row, "cpuinfo", strings(r->cpuinfo, r->cpuinfo_count));
		put(row, "cpus", r->cpus);
		put(row, "note", r->note);
	}
	return rows;
}

static json_t *gpu_rows(const struct tables *t, struct arena *a)
{
	json_t *rows = json_array();
	for (unsigned i = 0; i < t->gpus_count; i++) {
		const struct gpu_row *r = &t->gpus[i];
		json_t *row = add_row(rows);
		json_t *suffixes = json_array();
		for (unsigned k = 0; k < r->suffixes_count; k++)
			json_array_append_new(suffixes, json_string(r->suffixes[k].suffix));
		put(row, "sm", arena_printf(a, "sm%s", r->sm));
		put(row, "capability", r->capability);
		put(row, "cuda_min", r->cuda_min);
		put(row, "cuda_max", r->cuda_max);
		put(row, "torch_min", r->torch_min);
		json_object_set_new(row, "suffixes", suffixes);
		json_object_set_new(row, "platforms", strings(r->platforms, r->platforms_count));
		put(row, "name", r->name);
		json_object_set_new(row, "devices", strings(r->devices, r->devices_count));
		put(row, "note", r->note);
	}
	return rows;
}

static json_t *toolkit_rows(const struct tables *t, struct arena *a)
{
	(void)a;
	json_t *rows = json_array();
	for (unsigned i = 0; i < t->toolkits_count; i++) {
		const struct toolkit_row *r = &t->toolkits[i];
		json_t *row = add_row(rows);
		put(row, "version", r->version);
		put(row, "gcc_max", r->gcc_max);
		put(row, "clang_max", r->clang_max);
		put(row, "driver", r->driver);
		put(row, "driver_floor", r->driver_floor);
	}
	return rows;
}

static json_t *blas_rows(const struct tables *t, struct arena *a)
{
	(void)a;
	json_t *rows = json_array();
	for (unsigned i = 0; i < t->blas_count; i++) {
		const struct blas_row *r = &t->blas[i];
		json_t *row = add_row(rows);
		put(row, "name", r->name);
		put(row, "cmake", r->cmake);
		json_object_set_new(row, "platforms", strings(r->platforms, r->platforms_count));
		put(row, "note", r->note);
	}
	return rows;
}

static json_t *toggle_rows(const struct tables *t, struct arena *a)
{
	(void)a;
	json_t *rows = json_array();
	for (unsigned i = 0; i < t->toggles_count; i++) {
		const struct toggle_row *r = &t->toggles[i];
		json_t *row = add_row(rows);
		put(row, "package", r->package);
		put(row, "name", r->name);
		put(row, "cpu", r->cpu);
		put(row, "cuda", r->cuda);
		put(row, "mps", r->mps);
		put(row, "since", r->since);
		put(row, "until", r->until);
		json_object_set_new(row, "values", strings(r->values, r->values_count));
		put(row, "why", r->why);
	}
	return rows;
}

#define FLAG(field) offsetof(struct list_options, field)

static const struct section sections[] = {
	{"releases",
	 FLAG(releases),
	 release_rows,
	 NULL,
	 {"name", "pytorch", "torchvision", "torchaudio", "pythons", "toolkits"}},
	{"matrices", FLAG(matrices), NULL, list_matrices, {"name", "release", "variants", "refused", "note"}},
	{"profiles", FLAG(profiles), profile_rows, NULL, {"name", "platform", "gpu", "isa"}},
	{"isas", FLAG(isas), isa_rows, NULL, {"name", "platform", "flags", "cpus"}},
	{"gpus",
	 FLAG(gpus),
	 gpu_rows,
	 NULL,
	 {"sm", "capability", "cuda_min", "cuda_max", "torch_min", "name", "devices"}},
	{"toolkits", FLAG(toolkits), toolkit_rows, NULL, {"version", "gcc_max", "clang_max", "driver", "driver_floor"}},
	{"blas", FLAG(blas), blas_rows, NULL, {"name", "cmake", "platforms"}},
	{"toggles", FLAG(toggles), toggle_rows, NULL, {"package", "name", "cpu", "cuda", "mps", "since", "until"}},
};

static const char *cell(const json_t *row, const char *key, struct arena *a)
{
	const json_t *value = json_object_get(row, key);
	if (json_is_integer(value))
		return arena_printf(a, "%lld", (long long)json_integer_value(value));
	if (!json_is_array(value))
		return json_is_string(value) ? json_string_value(value) : "-";
	struct strlist l = {0};
	for (size_t i = 0; i < json_array_size(value); i++)
		strlist_ref(&l, a, json_string_value(json_array_get(value, i)));
	return strlist_join(&l, a, strcmp(key, "devices") == 0 ? ", " : " ");
}

/* Columns as wide as their widest cell; nothing behind the last. */
static void print_rows(struct buf *out, const struct section *s, const json_t *rows, struct arena *a)
{
	int widths[ARRAY_LEN(s->columns)] = {0};
	size_t count = 0;
	for (; count < ARRAY_LEN(s->columns) && s->columns[count]; count++) {
		widths[count] = (int)strlen(s->columns[count]);
		for (size_t i = 0; i < json_array_size(rows); i++) {
			int width = (int)strlen(cell(json_array_get(rows, i), s->columns[count], a));
			widths[count] = width > widths[count] ? width : widths[count];
		}
	}
	for (size_t i = 0; i <= json_array_size(rows); i++)
		for (size_t k = 0; k < count; k++) {
			const char *text = i ? cell(json_array_get(rows, i - 1), s->columns[k], a) : s->columns[k];
			if (k + 1 < count)
				buf_printf(out, "%-*s  ", widths[k], text);
			else
				buf_printf(out, "%s\n", text);
		}
}

static bool chosen(const struct list_options *o, const struct section *s)
{
	return *(const bool *)((const char *)o + s->flag);
}

static int list_main(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	(void)words;
	const struct list_options *o = c->options;
	const struct tables *t;
	if (cmd_tables(c, &t, e) < 0)
		return -1;
	size_t asked = 0;
	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		asked += chosen(o, &sections[i]);
	AUTO_JSON json_t *all = json_object();
	json_object_set_new(all, "schema", json_integer(1));
	AUTO_BUF struct buf out = {0};
	for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
		if (asked ? !chosen(o, &sections[i]) : i > 0)
			continue;
		json_t *rows = NULL;
		if (sections[i].rows)
			rows = sections[i].rows(t, c->arena);
		else if (sections[i].load(t, c->arena, &rows, e) < 0)
			return -1;
		if (asked > 1)
			buf_printf(&out, "%s%s\n", out.len ? "\n" : "", sections[i].name);
		print_rows(&out, &sections[i], rows, c->arena);
		json_object_set_new(all, sections[i].name, rows);
	}
	return c->global->json ? json_print(all, e) : cmd_write_stdout(&out, e);
}

static const struct arg_def list_defs[] = {
	{"releases", 0, ARG_FLAG, FLAG(releases), NULL, "pinned sets: versions, Pythons, CUDA toolkits", NULL},
	{"matrices", 0, ARG_FLAG, FLAG(matrices), NULL,
	 "named sets of variants: how many they hold, and how many of those cannot be built", NULL},
	{"profiles", 0, ARG_FLAG, FLAG(profiles), NULL, "names for --profile", NULL},
	{"isas", 0, ARG_FLAG, FLAG(isas), NULL, "CPU instruction sets", NULL},
	{"gpus", 0, ARG_FLAG, FLAG(gpus), NULL, "GPU targets", NULL},
	{"toolkits", 0, ARG_FLAG, FLAG(toolkits), NULL, "CUDA toolkits", NULL},
	{"blas", 0, ARG_FLAG, FLAG(blas), NULL, "BLAS libraries", NULL},
	{"toggles", 0, ARG_FLAG, FLAG(toggles), NULL, "build options and their values", NULL},
	{0},
};

const struct command command_list = {
	.name = "list",
	.summary = "list releases, profiles and what they are made of",
	.usage = "[--releases] [--matrices] [--profiles] [--isas] [--gpus] [--toolkits] [--blas] [--toggles]",
	.text = "Shows the tables that plans are made from; without options, the releases. With --json, prints an "
		"object with an array for each section.\n"
		"A profile is a GPU target and an instruction set: any of --gpus with any of --isas, several targets "
		"joined with '+' (sm80+sm90-avx2), cpu-ISA, or darwin-mps. --profiles lists the pairs that machines "
		"have.",
	.tables = {list_defs},
	.examples = {{"ptbuild list", "the releases"},
		     {"ptbuild list --profiles --json", "names for --profile, as JSON"},
		     {"ptbuild list --matrices", "names for --matrix"},
		     {"ptbuild list --gpus --isas", "what profiles are made of"}},
	.options_size = sizeof(struct list_options),
	.run = list_main,
};
