#include "core/root/toolkit.h"

#include "base/sys/json.h"

#define HEADER_BYTES (UINT64_C(16) << 20)
#define OLDEST_GCC 9  /* of any release in the tables */
#define NEWEST_GCC 19 /* names beyond this one are not looked for */

static const char *const layout_names[] = {"nvidia", "distribution", "python", "conda"};

const char *toolkit_layout_name(enum toolkit_layout layout)
{
	return layout_names[layout];
}

const struct toolkit *toolkit_find(const struct toolkits *l, const char *version)
{
	for (size_t i = 0; i < l->count; i++)
		if (version_cmp(l->items[i].version, version) == 0)
			return &l->items[i];
	return NULL;
}

const struct toolkit_part *toolkit_part_of(const struct toolkit *k, const char *name)
{
	for (size_t i = 0; i < k->parts_count; i++)
		if (strcmp(k->parts[i].row->name, name) == 0)
			return &k->parts[i];
	return NULL;
}

void toolkit_mount(const struct toolkit *k, struct sandbox *s)
{
	if (k->mount_from)
		sandbox_add(s, SANDBOX_RO, k->mount_from, k->mount_to);
}

void toolkit_run(const struct toolkit *k, struct sandbox *s)
{
	toolkit_mount(k, s);
	if (k->library_dirs.count)
		kvlist_set(&s->env, s->arena, "LD_LIBRARY_PATH",
			   strlist_join(&k->library_dirs, s->arena, ":"));
}

char *toolkit_list(const struct toolkits *l, struct arena *a)
{
	struct strlist names = {0};

	for (size_t i = 0; i < l->count; i++)
		strlist_addf(&names, a, "%s (%s)", l->items[i].version, l->items[i].where);
	return names.count ? strlist_join(&names, a, ", ") : arena_strdup(a, "none");
}

/* A GCC of the root. */
struct host_compiler {
	const char *cc, *cxx, *path; /* path of cxx */
	unsigned major;              /* 0: it does not say */
	const char *version, *id;
};

struct host_compilers {
	struct host_compiler items[NEWEST_GCC - OLDEST_GCC + 2];
	size_t count;
};

/* The toolkits of a root, and what is asked for them. */
struct probing {
	const struct tables *tables;
	const struct root *root;
	enum sandbox_kind kind;
	const struct run *run;
	struct arena *arena;
	struct toolkit_places places;
	struct host_compilers compilers;
};

/* A header that is looked for in the directories of a toolkit, and its text. */
struct header {
	const struct toolkit *k;
	size_t dirs;      /* so many of its directories are searched */
	const char *path; /* inside the root; NULL: none */
	struct buf text;
};

static void header_release(struct header *h)
{
	buf_release(&h->text);
}

static int read_header(const struct probing *p, struct header *h, const char *name, struct err *e)
{
	h->path = NULL;
	for (size_t i = 0; i < h->dirs && !h->path; i++) {
		const char *path = path_join(p->arena, h->k->include_dirs.items[i], name);
		buf_reset(&h->text);
		if (root_find(p->root, path, p->arena, &h->path, e) < 0 ||
		    (h->path && root_read(p->root, h->path, HEADER_BYTES, &h->text, e) < 0))
			return -1;
	}

	return 0;
}

static int find_parts(const struct probing *p, struct toolkit *k, struct err *e)
{
	const struct tables *t = p->tables;
	struct arena *a = p->arena;
	struct header h CLEANUP(header_release) = {.k = k, .dirs = k->include_dirs.count};

	k->parts_count = t->parts_count;
	k->parts = arena_array(a, t->parts_count, sizeof(*k->parts));
	for (unsigned i = 0; i < t->parts_count; i++) {
		const struct part_row *row = &t->parts[i];
		struct strlist numbers = {0};
		k->parts[i] = (struct toolkit_part){.row = row, .version = ""};
		if (read_header(p, &h, row->header, e) < 0)
			return -1;
		k->parts[i].header = h.path;
		for (unsigned m = 0; k->parts[i].header && m < row->macros_count; m++) {
			long n = toolkit_header_number(buf_cstr(&h.text), row->macros[m]);
			if (n < 0)
				break;
			strlist_addf(&numbers, a, "%ld", n);
		}

		if (numbers.count == row->macros_count)
			k->parts[i].version = strlist_join(&numbers, a, ".");
	}

	return 0;
}

static void add_compiler(struct probing *p, const char *cc, const char *cxx)
{
	struct host_compilers *l = &p->compilers;
	const char *path = root_find_program(p->root, cxx, p->arena);

	if (path && root_find_program(p->root, cc, p->arena))
		l->items[l->count++] = (struct host_compiler){
			.cc = cc, .cxx = cxx, .path = path, .version = "", .id = ""};
}

/* Asks each program for --version and --help, in this order; an answer that is empty counts. */
static int ask(const struct probing *p, const struct strlist *programs, struct strlist *ret,
	       struct err *e)
{
	static const char script[] =
		"for tool in \"$@\"; do for word in --version --help; do "
		"ask \"$tool\" $word; printf '\\036\\n%s\\n' \"$text\"; done; done";
	struct sandbox s;

	if (sandbox_init(&s, p->kind, p->root, p->arena, e) < 0)
		return -1;
	for (size_t i = 0; i < p->places.count; i++)
		toolkit_mount(&p->places.items[i], &s);
	if (toolchain_ask(&s, script, programs, p->run, ret, e) < 0)
		return -1;
	if (ret->count != 2 * programs->count)
		return err_set(e, ERR_SYSTEM,
			       "asking the CUDA toolkits for their versions gave %zu answers "
			       "instead of %zu",
			       ret->count, 2 * programs->count);
	return 0;
}

/* The root's own compiler where nvcc accepts it, else the newest that it does accept. */
static void choose_compiler(struct toolkit *k, const struct host_compilers *l)
{
	k->gcc = l->count && strcmp(l->items[0].cc, "gcc") == 0 ? l->items[0].version : "";
	for (size_t i = 0; i < l->count; i++) {
		const struct host_compiler *c = &l->items[i];
		if (c->major < OLDEST_GCC || (k->gcc_max && c->major > k->gcc_max))
			continue;
		k->cc = c->cc;
		k->cxx = c->cxx;
		k->cxx_path = c->path;
		k->cc_id = c->id;
		return;
	}
}

static const char *key_text(const struct toolkit *k, struct arena *a)
{
	struct strlist lines = {0};

	strlist_addf(&lines, a, "nvcc %s %s\n", k->release, k->build);
	strlist_addf(&lines, a, "host compiler %s\n", k->cc_id);
	for (size_t i = 0; i < k->parts_count; i++)
		if (k->parts[i].header)
			strlist_addf(&lines, a, "%s %s\n", k->parts[i].row->name,
				     k->parts[i].version);
	return strlist_join(&lines, a, "");
}

static int describe(const struct probing *p, struct toolkit *k, struct err *e)
{
	const struct root *r = p->root;
	struct arena *a = p->arena;
	struct header h CLEANUP(header_release) = {.k = k};

	k->cc_id = "";
	h.dirs = toolkit_include_dirs(r, k, a, &k->include_dirs);
	if (read_header(p, &h, "crt/host_config.h", e) < 0)
		return -1;
	if (h.path)
		toolkit_header_limits(buf_cstr(&h.text), &k->gcc_max, &k->clang_max);
	toolkit_library_dirs(r, k, a, &k->library_dirs);
	const struct toolkit_row *row = tables_toolkit(p->tables, k->version);
	if (!k->gcc_max && row)
		k->gcc_max = (unsigned)strtoul(row->gcc_max, NULL, 10);
	choose_compiler(k, &p->compilers);
	if (find_parts(p, k, e) < 0)
		return -1;
	k->text = key_text(k, a);
	return 0;
}

static void take_compilers(struct host_compilers *l, const struct strlist *answers, size_t at,
			   struct arena *a)
{
	for (size_t i = 0; i < l->count; i++) {
		struct host_compiler *c = &l->items[i];
		toolchain_parse(answers->items[at + 2 * i], a, &c->version, &c->id);
		c->major = (unsigned)strtoul(c->version, NULL, 10);
	}
}

int toolkit_probe(const struct tables *t, const struct root *root, enum sandbox_kind kind,
		  const char *home, const struct run *run, struct arena *a,
		  const struct toolkits **ret, struct err *e)
{
	struct probing p = {.tables = t, .root = root, .kind = kind, .run = run, .arena = a};
	const struct toolkit_places *places = &p.places;
	struct host_compilers *compilers = &p.compilers;
	struct strlist programs = {0}, answers = {0};
	struct toolkits *l = arena_alloc(a, sizeof(*l));

	if (home && !root_find_program(root, path_join(a, home, "bin/nvcc"), a)) {
		err_set(e, ERR_POLICY, "no CUDA toolkit in '%s': it has no bin/nvcc", home);
		return err_hint(
			e, "name the directory that holds bin/nvcc, as a path inside the root");
	}

	p.places.root = root;
	p.places.arena = a;
	toolkit_places(&p.places, home);
	if (places->count) {
		add_compiler(&p, "gcc", "g++");
		for (unsigned n = NEWEST_GCC; n >= OLDEST_GCC; n--)
			add_compiler(&p, arena_printf(a, "gcc-%u", n),
				     arena_printf(a, "g++-%u", n));
		for (size_t i = 0; i < places->count; i++)
			strlist_ref(&programs, a, places->items[i].nvcc);
		for (size_t i = 0; i < compilers->count; i++)
			strlist_ref(&programs, a, compilers->items[i].path);
		if (ask(&p, &programs, &answers, e) < 0)
			return -1;
		take_compilers(compilers, &answers, 2 * places->count, a);
	}

	struct toolkit *items = arena_array(a, places->count, sizeof(*items));
	for (size_t i = 0; i < places->count; i++) {
		struct toolkit *k = &items[l->count];
		*k = places->items[i];
		if (!toolkit_parse(answers.items[2 * i], answers.items[2 * i + 1], a, k))
			continue;
		if (describe(&p, k, e) < 0)
			return -1;
		l->count++;
	}

	l->items = items;
	*ret = l;
	return 0;
}

json_t *toolkit_json(const struct toolkit *k)
{
	json_t *parts = json_object();

	for (size_t i = 0; i < k->parts_count; i++) {
		const struct toolkit_part *p = &k->parts[i];
		json_object_set_new(parts, p->row->name,
				    p->header ? json_string(p->version) : json_null());
	}

	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:i, s:i, s:o, s:o}", "version",
			 k->version, "release", k->release, "build", k->build, "layout",
			 toolkit_layout_name(k->layout), "where", k->where, "nvcc", k->nvcc,
			 "targets", json_from_strlist(&k->targets), "options",
			 json_from_strlist(&k->options), "gcc_max", (int)k->gcc_max, "clang_max",
			 (int)k->clang_max, "cxx", json_or_null(k->cxx), "parts", parts);
}
