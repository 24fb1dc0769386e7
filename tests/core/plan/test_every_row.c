/* Every value of every table counts: changed or deleted, one at a time, it changes a key, refuses a
 * plan or gives other variants, or it is on the list of what is for people only
 * (tests/data/rows_for_people.txt), which must be true too. */
#include "support.h"

#include <fnmatch.h>
#include <time.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/yaml/yaml_tree.h"
#include "core/plan/buildenv.h"
#include "core/plan/plan.h"
#include "core/root/toolkit.h"
#include "core/variant/variant.h"
#include "short_tables.h"
#include "table_edits.h"

struct entry { /* of the list */
	const char *table, *path;
	bool used;
};

/* A plan that is asked for. */
struct ask {
	const char *release, *variant;
	const char *gcc;     /* of the root; NULL: the root is not asked */
	const char *toolkit; /* the root's toolkit, which lacks `part`; NULL */
	size_t part;
	const char *blas, *toggle, *value; /* --blas, --set; NULL */
	const char *taken;                 /* instead of a build: an installed package; NULL */
	/* of torch's, by its name; NULL: a package of the release */
	const char *extension;
};

struct asks {
	struct ask *items;
	size_t count, cap;
};

static struct arena shared;
static const struct tables *shipped;
/* Copies of profiles/: one in which the tables that judge
 * a wheel are short, and one in which the others are. */
static const char *dir_plan, *dir_rules, *dir;
static struct entry *entries;
static size_t entries_count, wrong, changes, listed, last_asked;

/* ---- what it can change */

static const struct toolkits *root_toolkit(const struct tables *t, const struct ask *q,
					   struct arena *a)
{
	struct toolkits *list = arena_alloc(a, sizeof(*list));
	struct toolkit *k = arena_alloc(a, sizeof(*k));

	*k = (struct toolkit){.where = "/usr",
			      .home = "/usr",
			      .nvcc = "/usr/bin/nvcc",
			      .version = q->toolkit,
			      .release = q->toolkit,
			      .build = "",
			      .cc = "gcc",
			      .cxx = "g++",
			      .cxx_path = "/usr/bin/g++",
			      .cc_id = "",
			      .gcc = "13.2.0",
			      .text = "",
			      .parts = arena_array(a, t->parts_count, sizeof(*k->parts)),
			      .parts_count = t->parts_count};
	for (unsigned i = 0; i < t->parts_count; i++)
		k->parts[i] = (struct toolkit_part){&t->parts[i], i == q->part ? NULL : "header.h",
						    "9.1"};
	strlist_ref(&k->targets, a, "90");
	*list = (struct toolkits){k, 1};
	return list;
}

/* The key of the plan that takes an installed torch. */
static const char *answer_taken(const struct tables *t, const struct ask *q, struct arena *ret)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	const struct plan *p = NULL;
	const struct toolchain *tools;
	struct root root = {.dir = "/r", .id = "debian 13", .fingerprint = "f"};
	const struct plan_captured_request r = {.root = &root,
						.package = q->taken,
						.version = "2.6.0",
						.python = "3.13",
						.platform = "x86_64-linux",
						.digest = "d"};

	return plan_captured(t, &r, &a, &p, &tools, &e) < 0 ? "refused"
							    : arena_strdup(ret, p->output_key);
}

/* The keys of a plan, or why there is none. */
static const char *answer(const struct tables *t, const struct ask *q, struct arena *ret)
{
	AUTO_ARENA struct arena a = {0};
	struct variant v;
	struct err e = {0};
	const struct plan *p = NULL;
	struct tool gcc = {.name = "gcc", .path = "/usr/bin/gcc", .version = q->gcc, .id = ""};
	struct toolchain tools = {.tools = &gcc, .count = 1, .text = "", .fingerprint = ""};

	if (q->taken)
		return answer_taken(t, q, ret);
	if (variant_parse(t, q->variant, &a, &v, &e) < 0)
		return "no such variant";
	struct plan_request r = {.variant = &v, .release = q->release};
	r.toolchain = q->gcc ? &tools : NULL;
	r.toolkits = q->toolkit ? root_toolkit(t, q, &a) : NULL;
	r.options.blas = q->blas;
	if (q->toggle)
		kvlist_set(&r.options.toggles, &a, q->toggle, q->value);
	if (q->extension) {
		const struct package_row *row = tables_extension(t, q->extension, "");
		if (!row)
			return "no such extension";
		t = tables_extend(t, row, 1, &a);
		v.package = row->name;
		r.torch = "sha256:00";
		r.torch_version = "2.10.0";
	}

	if (plan_resolve(t, &r, &a, &p, &e) < 0)
		return "refused";
	return arena_printf(ret, "%s %s", p->compile_key, p->output_key);
}

static const char *names_of_matrix(const struct tables *t, const char *name, struct arena *ret)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf all = {0};
	struct matrix_walk w = {0};
	struct err e = {0};
	const struct matrix *m = NULL;
	const char *variant;

	if (matrix_load(t, name, &a, &m, &e) < 0)
		return "refused";
	while ((variant = matrix_next(m, &w, &a)))
		buf_printf(&all, "%s %s\n", m->release->name, variant);
	return arena_strdup(ret, buf_cstr(&all));
}

struct world { /* what is asked about a table */
	const struct file *file;
	struct asks asks;
	struct strlist matrices;
	struct strlist before;       /* the answers of the shipped table */
	const struct tables *tables; /* NULL: they are loaded anew for each change */
};

static const char *ask(const struct world *w, const struct tables *t, size_t i, struct arena *a)
{
	if (i < w->asks.count)
		return answer(t, &w->asks.items[i], a);
	return names_of_matrix(t, w->matrices.items[i - w->asks.count], a);
}

static void ask_first(struct world *w)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	const struct tables *t = w->tables;

	write_table(dir, w->file, NULL, 0);
	if (!t)
		assert_ok(tables_load(dir, &a, &t, &e), &e);
	for (size_t i = 0; i < w->asks.count + w->matrices.count; i++)
		strlist_add(&w->before, &shared, ask(w, t, i, &a));
}

enum outcome { NOTHING, EFFECT, REFUSED };

/* Whether a value of the row is a word of what is asked:
 * such a plan is the likely one to change with the row. */
static bool mentions(const struct ask *q, const struct yaml_tree *row)
{
	for (size_t i = 0; i < row->count; i++)
		if (mentions(q, &row->items[i]))
			return true;
	if (row->kind != YAML_TEXT || !row->text[0] || !row->text[1])
		return false;
	return q->toggle ? strcmp(q->toggle, row->text) == 0
			 : strstr(q->variant, row->text) != NULL;
}

/* `row`: where the change is, NULL for all over the table. Every plan is asked until
 * one has another answer; the order only saves time: those that the row is about first,
 * and in both halves from the one that changed last. */
static enum outcome change(const struct world *w, const struct yaml_tree *row,
			   const struct edit *edits, size_t count)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	const struct tables *t = w->tables;

	changes++;
	write_table(dir, w->file, edits, count);
	if (!t && tables_load(dir, &a, &t, &e) < 0)
		return REFUSED;
	for (size_t n = 0; n < 2 * w->before.count; n++) {
		size_t i = (n + last_asked) % w->before.count;
		bool first = row && i < w->asks.count && mentions(&w->asks.items[i], row);
		if (first != (n < w->before.count))
			continue;
		if (strcmp(ask(w, t, i, &a), w->before.items[i]) != 0) {
			last_asked = i;
			return EFFECT;
		}
	}

	return NOTHING;
}

/* The key of a value, the last word of its path. */
static const char *key_of(const struct leaf *l)
{
	const char *dot = strrchr(l->path, '.');
	return dot ? dot + 1 : l->path;
}

/* Where one value may not change without others of its line that have the same key: all of them. */
static enum outcome change_line(const struct world *w, const struct leaf *l, const char *text)
{
	struct edit edits[16];
	size_t n = 0;

	for (size_t i = 0; i < w->file->count && n < ARRAY_LEN(edits); i++) {
		const struct leaf *o = &w->file->leaves[i];
		if (o->node->line == l->node->line && strcmp(key_of(o), key_of(l)) == 0)
			edits[n++] = (struct edit){o->node, text};
	}

	return n > 1 ? change(w, l->row, edits, n) : NOTHING;
}

/* One value: does any change of it have an effect?
 * Where none is even accepted, its row is deleted. */
static enum outcome try_leaf(const struct world *w, struct leaf *l)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist ways = {0};
	struct edit edit = {.node = l->node};
	enum outcome best = REFUSED;

	ways_of(w->file, l, &a, &ways);
	for (const struct leaf *o = l; o-- > w->file->leaves && !l->way;)
		if (strcmp(o->path, l->path) == 0)
			l->way = o->way;
	for (size_t n = 0; n < ways.count + 1; n++) {
		size_t i = (n + l->way) % (ways.count + 1);
		edit.text = i < ways.count ? ways.items[i] : NULL;
		enum outcome o = change(w, l->row, &edit, 1);
		if (o == EFFECT) {
			l->way = i;
			return o;
		}

		if (o == NOTHING)
			best = o;
	}

	for (size_t i = 0; best == NOTHING && i < ways.count; i++)
		if (change_line(w, l, ways.items[i]) == EFFECT)
			return EFFECT;
	if (best == NOTHING || !l->row)
		return best;
	return change(w, l->row, &(struct edit){.node = l->row}, 1);
}

static struct entry *entry_of(const struct file *f, const struct leaf *l)
{
	for (size_t i = 0; i < entries_count; i++)
		if (fnmatch(entries[i].table, f->name, 0) == 0 &&
		    fnmatch(entries[i].path, l->path, 0) == 0)
			return &entries[i];
	return NULL;
}

/* All values that one entry of the list stands for, changed
 * at once: if that has no effect, none of them has. */
static void try_entry(const struct world *w, struct entry *entry)
{
	AUTO_ARENA struct arena a = {0};
	const struct file *f = w->file;
	struct edit *edits = arena_array(&a, f->count, sizeof(*edits));
	size_t n = 0;

	for (size_t i = 0; i < f->count; i++)
		if (entry_of(f, &f->leaves[i]) == entry)
			edits[n++] = (struct edit){f->leaves[i].node,
						   bumped(f->leaves[i].node->text, 1, &a)};
	if (!n)
		return;
	entry->used = true;
	listed += n;
	if (change(w, NULL, edits, n) == EFFECT) {
		print_message("%s: %s is on the list of what is for people only, but counts\n",
			      f->name, entry->path);
		wrong++;
	}
}

static void try_table(struct world *w)
{
	static const char *const words[] = {"changes no key", "", ""};
	const struct file *f = w->file;
	size_t begin = changes;
	clock_t from = clock();

	ask_first(w);
	for (size_t i = 0; i < f->count; i++) {
		if (entry_of(f, &f->leaves[i]))
			continue;
		if (try_leaf(w, &f->leaves[i]) != NOTHING)
			continue;
		print_message("%s:%u: %s '%s' %s\n", f->name, f->leaves[i].node->line,
			      f->leaves[i].path, f->leaves[i].node->text, words[0]);
		wrong++;
	}

	for (size_t i = 0; i < entries_count; i++)
		try_entry(w, &entries[i]);
	print_message("           %s: %zu values, %zu changes, %.1f s\n", f->name, f->count,
		      changes - begin, (double)(clock() - from) / CLOCKS_PER_SEC);
	AUTO_BUF struct buf text = {0};
	struct err e = {0};
	assert_ok(fs_read(TRUSTED, path_join(&shared, PROFILES_DIR, f->name), 4 << 20, &text, &e),
		  &e);
	test_write(path_join(&shared, dir, f->name), buf_cstr(&text));
}

/* ---- what to ask */

/* Releases that tell the rows of GPUs and toolkits apart. */
static const char *const few[] = {"2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.13.0"};

static struct ask *add(struct asks *l, const char *release, const char *variant)
{
	l->items = arena_room(&shared, l->items, l->count, &l->cap, 64, sizeof(*l->items));
	l->items[l->count] = (struct ask){.release = release, .variant = variant};
	return &l->items[l->count++];
}

static const char *spelled(const char *package, const char *python, const char *cuda,
			   const char *profile)
{
	return variant_spell(package, python, cuda, profile, &shared);
}

/* Each extension of torch's, with a GPU and without. */
static void ask_extensions(struct asks *l, const char *release)
{
	for (unsigned i = 0; i < shipped->torch_extensions_count; i++) {
		const char *name = shipped->torch_extensions[i].name;
		add(l, release, spelled("pytorch", "3.12", "13.0", "sm90-avx2"))->extension = name;
		add(l, release, spelled("pytorch", "3.12", NULL, "cpu-avx2"))->extension = name;
	}
}

/* What reaches the rows of a release: each package, Python and toolkit. */
static void ask_release(struct asks *l, const struct release_row *r, bool pythons)
{
	static const char *const processors[] = {"cpu-avx2", "cpu-armv8_2", "darwin-mps"};
	static const char *const gpus[] = {"sm90-avx2", "sm90-armv9"};
	const char *python = r->pythons[r->pythons_count / 2];

	for (size_t p = 0; p < TABLES_PACKAGES; p++) {
		const char *name = tables_packages[p];
		if (!tables_package(r, name))
			continue;
		for (size_t i = 0; i < ARRAY_LEN(processors); i++)
			add(l, r->name, spelled(name, python, NULL, processors[i]));
		for (unsigned i = 0; i < r->toolkits_count; i++)
			for (size_t m = 0; m < ARRAY_LEN(gpus); m++)
				add(l, r->name, spelled(name, python, r->toolkits[i], gpus[m]));
		for (unsigned i = 0; pythons && i < r->pythons_count; i++)
			add(l, r->name, spelled(name, r->pythons[i], NULL, "cpu-avx"));
	}
}

/* Each instruction set with a GCC that is just new enough, and what GPUs imply. */
static void ask_isas(struct asks *l)
{
	const struct release_row *r = &shipped->releases[shipped->releases_count - 1];

	for (unsigned i = 0; i < shipped->isas_count; i++) {
		const struct isa_row *isa = &shipped->isas[i];
		const char *profile = arena_printf(&shared, "cpu-%s", isa->name);
		add(l, r->name, spelled("pytorch", r->pythons[0], NULL, profile))->gcc =
			isa->gcc_min;
		for (unsigned k = 0; k < isa->aliases_count; k++)
			add(l, r->name,
			    spelled("pytorch", r->pythons[0], NULL,
				    arena_printf(&shared, "cpu-%s", isa->aliases[k])));
		for (const struct release_row *o = shipped->releases; o <= r; o++)
			add(l, o->name, spelled("pytorch", o->pythons[0], NULL, profile));
	}
}

static void ask_gpu(struct asks *l, const struct release_row *r, const struct gpu_row *gpu)
{
	const char *python = r->pythons[0], *first = r->toolkits[0];
	const size_t forms = 1 + gpu->suffixes_count;

	for (size_t s = 0; s < (gpu->tegra ? 2 : 1) * forms; s++) { /* a Jetson's on Arm, too */
		const char *suffix = s % forms ? gpu->suffixes[s % forms - 1].suffix : "";
		const char *profile = arena_printf(&shared, "sm%s%s-%s", gpu->sm, suffix,
						   s < forms ? "avx2" : "armv9");
		for (unsigned n = 0; n < r->toolkits_count; n++)
			add(l, r->name, spelled("pytorch", python, r->toolkits[n], profile));
	}

	for (unsigned i = 0; i < gpu->aliases_count; i++)
		add(l, r->name,
		    spelled("pytorch", python, first,
			    arena_printf(&shared, "sm%s-avx2", gpu->aliases[i])));
	for (unsigned i = 0; i < gpu->not_with_count; i++)
		add(l, r->name,
		    spelled("pytorch", python, first,
			    arena_printf(&shared, "sm%s+sm%s-avx2", gpu->not_with[i], gpu->sm)));
	if (r->torchvision)
		add(l, r->name,
		    spelled("torchvision", python, first,
			    arena_printf(&shared, "sm%s-avx2", gpu->sm)));
}

static void ask_gpus(struct asks *l)
{
	for (unsigned k = 0; k < shipped->gpus_count; k++)
		for (unsigned i = 0; i < shipped->releases_count; i++)
			if (strings_contain(few, ARRAY_LEN(few), shipped->releases[i].name))
				ask_gpu(l, &shipped->releases[i], &shipped->gpus[k]);
}

/* A root whose toolkit lacks one part. */
static void ask_parts(struct asks *l)
{
	const struct release_row *r = NULL;
	struct err e = {0};

	assert_ok(tables_need_release(shipped, few[ARRAY_LEN(few) - 1], &r, &e), &e);
	for (size_t i = 0; i <= shipped->parts_count; i++)
		for (size_t p = 0; p < 2; p++) {
			add(l, r->name,
			    spelled(tables_packages[p], r->pythons[0], r->toolkits[0],
				    "sm90-avx2"));
			l->items[l->count - 1].toolkit = r->toolkits[0];
			l->items[l->count - 1].part = i;
		}
}

/* Removes all releases but those, or puts them all back. */
static void keep_releases(const char *const *names, size_t count)
{
	struct err e = {0};
	const char *to = path_join(&shared, dir, "releases");

	assert_ok(fs_remove(TRUSTED, to, &e), &e);
	assert_ok(fs_copy_tree(PROFILES_DIR "/releases", to, &e), &e);
	for (unsigned i = 0; count && i < shipped->releases_count; i++) {
		const struct release_row *r = &shipped->releases[i];
		if (!strings_contain(names, count, r->name))
			assert_ok(
				fs_remove(TRUSTED, path_join(&shared, to, path_base(r->file)), &e),
				&e);
	}
}

/* The tables that judge a wheel: any plan will do. */
static void try_rules(const char *name)
{
	struct file f = read_table(name, &shared);
	struct world w = {.file = &f};

	dir = dir_rules;
	add(&w.asks, "2.9.1", "pytorch-python313-cuda12_8-sm90-avx2");
	try_table(&w);
	dir = dir_plan;
}

static void ask_blas(struct asks *l)
{
	for (unsigned i = 0; i < shipped->blas_count; i++) {
		add(l, "2.9.1", "pytorch-python313-cpu-avx2")->blas = shipped->blas[i].name;
		add(l, "2.9.1", "pytorch-python313-cpu-armv8_2")->blas = shipped->blas[i].name;
		add(l, "2.9.1", "pytorch-python313-darwin-mps")->blas = shipped->blas[i].name;
	}

	/* refused, since the row has it fixed */
	struct ask *q = add(l, "2.9.1", "pytorch-python313-cpu-avx2");
	q->blas = "mkl";
	q->toggle = "USE_STATIC_MKL";
	q->value = "OFF";
}

/* --set of each toggle, to each of its values: in each
 * release if it has none of its own, else in one. */
static void ask_toggles(struct asks *l)
{
	for (unsigned i = 0; i < shipped->toggles_count; i++) {
		const struct toggle_row *row = &shipped->toggles[i];
		bool unset = !*row->cpu && !*row->cuda && !*row->mps, done = false;
		for (unsigned k = 0; k < shipped->releases_count && !done; k++) {
			const struct release_row *r = &shipped->releases[k];
			const struct package_row *p = tables_package(r, row->package);
			const char *cuda = *row->cuda && r->toolkits_count ? r->toolkits[0] : NULL;
			if (!p || (!unset && !toggle_applies(row, p->version)))
				continue;
			done = !unset;
			for (unsigned v = 0; v < row->values_count; v++) {
				const char *profile = cuda ? "sm90-avx2" : "cpu-avx2";
				struct ask *q =
					add(l, r->name,
					    spelled(row->package, r->pythons[0], cuda, profile));
				q->toggle = row->name;
				q->value = row->values[v];
			}
		}
	}
}

/* The large tables beside toggles.yaml or gpu.yaml: short ones, or the shipped ones again. */
static void put_short(const char *table, bool on)
{
	static const char *const large[] = {"toggles.yaml", "gpu.yaml", "isa.yaml",
					    "corrections.yaml"};

	for (size_t i = 0; i < ARRAY_LEN(large); i++) {
		AUTO_BUF struct buf text = {0};
		struct err e = {0};
		const char *name = large[i];
		if (!strings_contain(large, 2, table) || strcmp(name, table) == 0)
			continue;
		for (size_t k = 0; k < ARRAY_LEN(short_tables); k++)
			if (strcmp(short_tables[k].name, name) == 0)
				buf_addstr(&text, on ? short_tables[k].text : "");
		if (!on)
			assert_ok(fs_read(TRUSTED, path_join(&shared, PROFILES_DIR, name), 4 << 20,
					  &text, &e),
				  &e);
		test_write(path_join(&shared, dir, name), buf_cstr(&text));
	}
}

static void try_yaml(const char *name)
{
	static const char *const rules[] = {"extensions.yaml", "dispatch.yaml", "manylinux.yaml",
					    "threads.yaml"};
	static const char *const with_few[] = {"gpu.yaml",         "cuda.yaml",    "blas.yaml",
					       "corrections.yaml", "cpu.yaml",     "ci.yaml",
					       "needs.yaml",       "captured.yaml"};

	if (strings_contain(rules, ARRAY_LEN(rules), name)) {
		try_rules(name);
		return;
	}

	struct file f = read_table(name, &shared);
	struct world w = {.file = &f};
	struct err e = {0};
	if (strcmp(name, "gpu.yaml") == 0)
		ask_gpus(&w.asks);
	if (strcmp(name, "isa.yaml") == 0) {
		ask_isas(&w.asks);
		assert_ok(matrix_names(shipped, &shared, &w.matrices, &e), &e);
	}

	if (strcmp(name, "cuda.yaml") == 0)
		ask_parts(&w.asks);
	if (strcmp(name, "blas.yaml") == 0)
		ask_blas(&w.asks);
	if (strcmp(name, "toggles.yaml") == 0)
		ask_toggles(&w.asks);
	if (strcmp(name, "captured.yaml") == 0)
		add(&w.asks, NULL, "")->taken = "python3-torch=2.6.0+dfsg-7";
	bool is_extensions = strcmp(name, "torch_extensions.yaml") == 0;
	if (is_extensions)
		ask_extensions(&w.asks, few[4]);
	bool is_release = strncmp(name, "releases/", 9) == 0,
	     is_few = strings_contain(with_few, ARRAY_LEN(with_few), name);
	for (unsigned i = 0; i < shipped->releases_count; i++) {
		const struct release_row *r = &shipped->releases[i];
		if (is_release && strcmp(path_base(r->file), path_base(name)) == 0)
			keep_releases(&r->name, 1);
		else if (is_release || is_extensions ||
			 (is_few && !strings_contain(few, ARRAY_LEN(few), r->name)))
			continue;
		ask_release(&w.asks, r, is_release);
	}

	if (is_few)
		keep_releases(few, ARRAY_LEN(few));
	if (is_extensions)
		keep_releases(&few[4], 1);
	put_short(name, true);
	try_table(&w);
	put_short(name, false);
	keep_releases(NULL, 0);
}

static const struct tables *tables_of_dir(void)
{
	struct tables *t = arena_alloc(&shared, sizeof(*t));

	*t = *shipped;
	t->dir = dir;
	return t;
}

static void try_matrix(const char *name)
{
	struct file f = read_table(name, &shared);
	struct world w = {.file = &f, .tables = tables_of_dir()};
	const char *stem = name + strlen("matrices/");

	strlist_ref(&w.matrices, &shared,
		    arena_strndup(&shared, stem, strlen(stem) - strlen(".yaml")));
	try_table(&w);
}

static void try_example(const char *name)
{
	struct file f = read_table(name, &shared);
	struct world w = {.file = &f, .tables = tables_of_dir()};
	const char *stem =
		arena_strndup(&shared, path_base(name), strlen(path_base(name)) - strlen(".yaml"));

	add(&w.asks, "2.9.1", spelled("pytorch", "3.13", "12.8", stem));
	try_table(&w);
}

/* ---- files that are not YAML */

/* Each line changed: some plan of the release must have another key. */
static void try_lines(const char *name, const struct ask *q)
{
	AUTO_BUF struct buf text = {0};
	AUTO_ARENA struct arena a = {0};
	struct tables t = *shipped;
	struct err e = {0};
	const char *path = path_join(&a, dir, name);

	t.dir = dir;
	assert_ok(fs_read(TRUSTED, path, 4 << 20, &text, &e), &e);
	const char *before = answer(&t, q, &a);
	for (const char *line = buf_cstr(&text); *line; line += strcspn(line, "\n") + 1) {
		AUTO_BUF struct buf changed = {0};
		buf_add(&changed, buf_cstr(&text), (size_t)(line - buf_cstr(&text)));
		buf_addc(&changed, *line == '#' ? '!' : '#');
		buf_addstr(&changed, line + 1);
		test_write(path, buf_cstr(&changed));
		changes++;
		if (strcmp(answer(&t, q, &a), before) == 0) {
			print_message("%s: '%.40s' changes no key\n", name, line);
			wrong++;
		}
	}

	test_write(path, buf_cstr(&text));
}

static void every_other_line_counts(void **state)
{
	static const struct {
		const char *file, *package;
	} files[] = {{"requirements/shared.txt", "pytorch"},
		     {"checks/check_common.py", "pytorch"},
		     {"checks/check_torch.py", "pytorch"},
		     {"checks/check_config.py", "pytorch"},
		     {"checks/check_torchvision.py", "torchvision"},
		     {"checks/check_torchaudio.py", "torchaudio"},
		     {"checks/check_common.py", "torchvision"}};

	(void)state;
	wrong = 0;
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		try_lines(files[i].file, &(struct ask){.release = "2.9.1",
						       .variant = spelled(files[i].package, "3.13",
									  NULL, "cpu-avx2")});
	assert_int_equal(wrong, 0);
}

/* ---- the list, and the tables one by one */

static void read_list(void)
{
	AUTO_FREE char *text = test_read(TEST_DATA_DIR "/rows_for_people.txt");
	struct strlist lines = {0};

	assert_non_null(text);
	strlist_split(&lines, &shared, text, "\n");
	entries = arena_array(&shared, lines.count, sizeof(*entries));
	for (size_t i = 0; i < lines.count; i++) {
		struct strlist words = {0};
		strlist_split(&words, &shared, lines.items[i], " ");
		if (!words.count || words.items[0][0] == '#')
			continue;
		if (words.count < 4)
			fail_msg("no reason in '%s'", lines.items[i]);
		entries[entries_count++] =
			(struct entry){.table = words.items[0], .path = words.items[1]};
	}
}

static int try_file(const char *rel, const struct stat *st, void *user, struct err *e)
{
	const char *name = arena_strdup(&shared, rel);

	(void)st;
	(void)user;
	(void)e;
	/* of finished wheels */
	if (!path_has_suffix(rel, ".yaml") || strncmp(rel, "tests/", 6) == 0)
		return 0;
	/* verify alone reads the one, 'slim --env' the other. */
	if (strcmp(rel, "stable_abi.yaml") == 0 || strcmp(rel, "slim.yaml") == 0)
		return 0;
	/* 'bundle' takes finished wheels by it: tests/core/wheel/test_application.c */
	if (strcmp(rel, "bundles.yaml") == 0)
		return 0;
	/* What a root is made by: its own digest is in the
	 * keys. core/world and step/world take lines away. */
	if (strncmp(rel, "worlds/", 7) == 0 || strcmp(rel, "toolkit_tree.yaml") == 0)
		return 0;
	if (strncmp(rel, "matrices/", 9) == 0)
		try_matrix(name);
	else if (strncmp(rel, "examples/", 9) == 0)
		try_example(name);
	else
		try_yaml(name);
	return 0;
}

static void every_value_counts(void **state)
{
	struct err e = {0};

	(void)state;
	wrong = 0;
	read_list();
	assert_ok(fs_walk(TRUSTED, PROFILES_DIR, try_file, NULL, &e), &e);
	for (size_t i = 0; i < entries_count; i++)
		if (!entries[i].used) {
			print_message("on the list, but in no table: %s %s\n", entries[i].table,
				      entries[i].path);
			wrong++;
		}
	print_message("           %zu changes, %zu values for people only\n", changes, listed);
	assert_int_equal(wrong, 0);
}

static int copy_profiles(void **state)
{
	struct err e = {0};

	(void)state;
	test_dir();
	dir_rules = arena_strdup(&shared, test_path("rules"));
	dir = dir_plan = arena_strdup(&shared, test_path("profiles"));
	assert_ok(fs_copy_tree(PROFILES_DIR, dir_plan, &e), &e);
	for (size_t i = 0; i < ARRAY_LEN(short_tables); i++)
		test_write(path_join(&shared, i < 3 ? dir_plan : dir_rules, short_tables[i].name),
			   short_tables[i].text);
	for (size_t i = 0; i < 3; i++)
		test_write(path_join(&shared, dir_rules, short_tables[i].name),
			   short_tables[i].text);
	assert_ok(tables_load(PROFILES_DIR, &shared, &shipped, &e), &e);
	return 0;
}

static int release(void **state)
{
	arena_release(&shared);
	return test_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_value_counts),
					   cmocka_unit_test(every_other_line_counts)};
	return cmocka_run_group_tests_name("every_row", tests, copy_profiles, release);
}
