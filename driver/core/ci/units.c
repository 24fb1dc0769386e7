#include "core/ci/units.h"

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"

/* Returns the file after the last "-o" of a command, which compilers obey; "" without "-o". */
static char *output_of(const char *command, struct arena *a)
{
	static const char option[] = " -o ";
	const char *output = "";

	for (const char *p = strstr(command, option); p; p = strstr(p + 1, option))
		output = p + strlen(option) + strspn(p + strlen(option), " ");
	return arena_strndup(a, output, strcspn(output, " "));
}

/* Builds see their sources below .../src, wherever that
 * is on the host: the path below it names the unit. */
static const char *below_tree(const char *file)
{
	static const char src[] = "/src/";
	const char *at = strstr(file, src);
	return at ? at + sizeof(src) - 1 : file;
}

/* An entry of compile_commands.json. */
struct command_entry {
	const json_t *json;
	const char *path; /* of the file */
	size_t index;
};

static int take_unit(const struct command_entry *entry, struct arena *a, struct compile_unit *ret,
		     struct err *e)
{
	const char *file = json_member(entry->json, "file"),
		   *command = json_member(entry->json, "command");

	if (!file || !command)
		return err_set(e, ERR_INTEGRITY, "'%s': entry %zu has no file or no command",
			       entry->path, entry->index);
	*ret = (struct compile_unit){.file = arena_strdup(a, below_tree(file)),
				     .cuda = path_has_suffix(file, ".cu")};
	ret->key = arena_printf(a, "%s %s", ret->file, output_of(command, a));
	digest_data(command, strlen(command), ret->command);
	return 0;
}

/* The list of commands, and the name that says what the tree was configured for. */
static const char *find_commands(const char *path, struct arena *a, const char **ret_name)
{
	static const char *const places[] = {"compile_commands.json", "build/compile_commands.json",
					     "src/build/compile_commands.json"};
	const char *base = path_base(path);

	if (!fs_is_dir(TRUSTED, path)) {
		size_t n = strlen(base);
		*ret_name = path_has_suffix(base, ".json")
				    ? arena_strndup(a, base, n - strlen(".json"))
				    : base;
		return path;
	}

	*ret_name = base;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (fs_exists(TRUSTED, path_join(a, path, places[i])))
			return path_join(a, path, places[i]);
	return path_join(a, path, places[0]);
}

int units_read(const struct tables *t, const char *path, struct arena *a,
	       struct configured_tree *ret, struct err *e)
{
	AUTO_JSON json_t *list = NULL;
	struct configured_tree tree = {0};
	const char *commands = find_commands(path, a, &tree.name);

	if (profile_parse(t, tree.name, a, &tree.profile, e) < 0) {
		err_wrap(e, "'%s'", path);
		return err_hint(
			e,
			"name the file after what the tree was configured for: sm90-avx512.json");
	}

	if (json_read(TRUSTED, commands, &list, e) < 0)
		return -1;
	if (!json_is_array(list))
		return err_set(e, ERR_INTEGRITY, "'%s' is not a list of compile commands",
			       commands);
	tree.units = arena_array(a, json_array_size(list), sizeof(*tree.units));
	for (size_t i = 0; i < json_array_size(list); i++) {
		const struct command_entry entry = {json_array_get(list, i), commands, i};
		if (take_unit(&entry, a, &tree.units[tree.count++], e) < 0)
			return -1;
	}

	array_sort(tree.units, tree.count, sizeof(*tree.units), text_cmp);
	for (size_t i = 1; i < tree.count; i++)
		if (strcmp(tree.units[i].key, tree.units[i - 1].key) == 0)
			return err_set(e, ERR_INTEGRITY, "'%s' compiles '%s' twice into one object",
				       commands, tree.units[i].file);
	*ret = tree;
	return 0;
}

/* What two trees differ in: a set of enum unit_depends. */
static unsigned differ_in(const struct profile *x, const struct profile *y)
{
	size_t n = strcspn(x->name, "-");
	bool gpu = strcspn(y->name, "-") != n || strncmp(x->name, y->name, n) != 0;
	return (gpu ? UNIT_GPU : 0u) | (x->isa != y->isa ? UNIT_ISA : 0u);
}

struct comparing {
	const struct configured_tree *trees;
	size_t count;
	unsigned *differ;                  /* of each pair of trees */
	const struct compile_unit **units; /* one in every tree */
};

/* False when a tree lacks the unit. */
static bool find_everywhere(struct comparing *c, const char *key)
{
	for (size_t i = 0; i < c->count; i++) {
		c->units[i] =
			text_find(key, c->trees[i].units, c->trees[i].count, sizeof(**c->units));
		if (!c->units[i])
			return false;
	}

	return true;
}

/* Only trees that differ in one thing show the origin of a difference. */
static enum unit_depends depends_on(const struct comparing *c)
{
	unsigned found = UNIT_NOTHING;

	for (size_t i = 0; i < c->count; i++)
		for (size_t k = i + 1; k < c->count; k++) {
			unsigned differ = c->differ[i * c->count + k];
			if ((differ == UNIT_GPU || differ == UNIT_ISA) &&
			    strcmp(c->units[i]->command, c->units[k]->command) != 0)
				found |= differ;
		}
	return (enum unit_depends)found;
}

static void count_commands(const struct configured_tree *trees, size_t count, struct arena *a,
			   struct unit_model *m)
{
	struct strlist all = {0};

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < trees[i].count; k++)
			strlist_ref(&all, a, trees[i].units[k].command);
	strlist_sort(&all);
	m->total = all.count;
	for (size_t i = 0; i < all.count; i++)
		m->distinct += i == 0 || strcmp(all.items[i], all.items[i - 1]) != 0;
}

static bool has_file(const struct configured_tree *t, const char *file)
{
	for (size_t i = 0; i < t->count; i++)
		if (strcmp(t->units[i].file, file) == 0)
			return true;
	return false;
}

/* The row of the PyTorch that the tree is of; NULL when the table has none. */
static const struct gpu_units_row *gpu_units_of(const struct tables *t,
						const struct configured_tree *tree)
{
	for (unsigned i = 0; i < t->gpu_units_count; i++)
		if (has_file(tree, t->gpu_units[i].units[0]))
			return &t->gpu_units[i];
	return NULL;
}

static int compare_trees(struct comparing *c, struct arena *a, struct unit_model *m, struct err *e)
{
	c->differ = arena_array(a, c->count * c->count, sizeof(*c->differ));
	c->units = arena_array(a, c->count, sizeof(const struct compile_unit *));
	for (size_t i = 0; i < c->count; i++)
		for (size_t k = i + 1; k < c->count; k++) {
			unsigned differ = differ_in(&c->trees[i].profile, &c->trees[k].profile);
			c->differ[i * c->count + k] = differ;
			m->gpu_compared = m->gpu_compared || differ == UNIT_GPU;
			m->isa_compared = m->isa_compared || differ == UNIT_ISA;
		}
	if (m->gpu_compared || m->isa_compared)
		return 0;
	err_set(e, ERR_USAGE,
		"cannot compare the %zu trees: no two of them differ in only the GPU targets or "
		"only the instruction set",
		c->count);
	return err_hint(e, "give for example those of sm90-avx512, sm90-avx2 and sm80-avx512");
}

int units_model(const struct tables *t, const struct configured_tree *trees, size_t count,
		struct arena *a, struct unit_model *ret, struct err *e)
{
	struct unit_model m = {0};
	struct comparing c = {.trees = trees, .count = count};

	if (compare_trees(&c, a, &m, e) < 0)
		return -1;
	const struct gpu_units_row *row = gpu_units_of(t, &trees[0]);
	m.facts = arena_array(a, trees[0].count, sizeof(*m.facts));
	for (size_t i = 0; i < trees[0].count; i++) {
		const struct compile_unit *u = &trees[0].units[i];
		if (!find_everywhere(&c, u->key))
			continue;
		struct unit_dependence *f = &m.facts[m.count++];
		/* The GPU list may be in a header, where commands do not show it. */
		bool known = row && strings_contain(row->units, row->units_count, u->file);
		*f = (struct unit_dependence){u,
					      depends_on(&c) | (known ? UNIT_GPU : UNIT_NOTHING)};
		m.by[u->cuda][f->depends]++;
		if (f->unit->cuda && (f->depends & UNIT_ISA))
			strlist_addf(
				&m.unexpected, a,
				"'%s' is compiled for the GPU and depends on the instruction set",
				f->unit->file);
		if (!f->unit->cuda && (f->depends & UNIT_GPU) && !known)
			strlist_addf(&m.unexpected, a,
				     "'%s' is compiled for the CPU and depends on the GPU list",
				     f->unit->file);
	}

	for (size_t i = 0; i < count; i++)
		m.elsewhere += trees[i].count - m.count;
	count_commands(trees, count, a, &m);
	*ret = m;
	return 0;
}

void units_cost(const struct unit_model *m, const struct variant *const *variants, size_t count,
		struct arena *a, struct unit_cost *ret)
{
	struct unit_cost c = {0};
	struct strlist gpus = {0}, isas = {0};

	for (size_t i = 0; i < count; i++) {
		const struct profile *p = &variants[i]->profile;
		if (p->gpu != GPU_CUDA || !package_is_torch(variants[i]->package)) {
			c.others++;
			continue;
		}

		/* Another toolkit or Python changes every command. */
		const char *where = arena_printf(a, "%s %s", variants[i]->python,
						 variants[i]->cuda ? variants[i]->cuda : "");
		const char *gpu = arena_printf(a, "%s %.*s", where, (int)strcspn(p->name, "-"),
					       p->name),
			   *isa = arena_printf(a, "%s %s", where, p->isa->name);
		strlist_once(&gpus, a, gpu);
		strlist_once(&isas, a, isa);
		c.variants++;
	}

	c.gpus = gpus.count;
	c.isas = isas.count;
	c.total = c.variants * m->count;
	for (size_t i = 0; c.variants && i < 2; i++)
		c.distinct += m->by[i][UNIT_NOTHING] + m->by[i][UNIT_GPU] * c.gpus +
			      m->by[i][UNIT_ISA] * c.isas + m->by[i][UNIT_BOTH] * c.variants;
	*ret = c;
}
