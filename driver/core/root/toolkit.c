#include "core/root/toolkit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/version.h"
#include "core/root/toolchain.h"
#include "core/root/toolkit_parts.h"

#define PROBE_SECONDS 60.0
#define HEADER_BYTES (UINT64_C(16) << 20)
#define OLDEST_GCC 9  /* of any release in the tables */
#define NEWEST_GCC 19 /* names beyond this one are not looked for */
#define MARK '\036'   /* record separator: no tool prints one */

/* Options of nvcc that a build would use: not every toolkit has each. */
static const char *const known_options[] = {"--objdir-as-tempdir", "--compress-mode", "--frandom-seed",
					    "--split-compile", "--threads"};

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
		kvlist_set(&s->env, s->arena, "LD_LIBRARY_PATH", strlist_join(&k->library_dirs, s->arena, ":"));
}

char *toolkit_list(const struct toolkits *l, struct arena *a)
{
	struct strlist names = {0};
	for (size_t i = 0; i < l->count; i++)
		strlist_addf(&names, a, "%s (%s)", l->items[i].version, l->items[i].where);
	return names.count ? strlist_join(&names, a, ", ") : arena_strdup(a, "none");
}

/* The word behind a mark, up to a character that ends it. */
static char *word_behind(const char *text, const char *mark, const char *end, struct arena *a)
{
	const char *p = strstr(text, mark);
	if (!p)
		return arena_strdup(a, "");
	p += strlen(mark);
	return arena_strndup(a, p, strcspn(p, end));
}

static void take_targets(const char *help, struct arena *a, struct strlist *ret)
{
	for (const char *p = strstr(help, "'sm_"); p; p = strstr(p + 1, "'sm_")) {
		const char *name = p + 4;
		size_t n = strcspn(name, "'");
		if (n == 0 || n > 8 || name[n] != '\'' || !isdigit((unsigned char)*name))
			continue;
		const char *target = arena_strndup(a, name, n);
		if (!strlist_contains(ret, target))
			strlist_ref(ret, a, target);
	}
}

bool toolkit_parse(const char *version_text, const char *help_text, struct arena *a, struct toolkit *k)
{
	k->release = word_behind(version_text, ", V", " \n", a);
	k->build = word_behind(version_text, "Build ", "\n", a);
	k->version = word_behind(version_text, ", release ", ", \n", a);
	if (!version_valid(k->version) || !version_valid(k->release))
		return false;
	take_targets(help_text, a, &k->targets);
	for (size_t i = 0; i < ARRAY_LEN(known_options); i++) {
		const char *at = strstr(help_text, known_options[i]);
		if (at && strchr(" \t\n=", at[strlen(known_options[i])]))
			strlist_ref(&k->options, a, known_options[i]);
	}
	return k->targets.count > 0;
}

/* A header by its name in the toolkit's directories: its path inside the root, its text in `text`. */
static const char *read_header(const struct root *r, const struct toolkit *k, const char *name, size_t dirs,
			       struct arena *a, struct buf *text)
{
	for (size_t i = 0; i < dirs; i++) {
		struct err ignored = {0};
		const char *path = root_resolve(r, path_join(a, k->include_dirs.items[i], name), a);
		buf_reset(text);
		if (path && fs_read(root_host_path(r, path, a), HEADER_BYTES, text, &ignored) == 0)
			return path;
	}
	return NULL;
}

static void find_parts(const struct tables *t, const struct root *r, struct toolkit *k, struct arena *a)
{
	AUTO_BUF struct buf text = {0};
	k->parts_count = t->parts_count;
	k->parts = arena_array(a, t->parts_count, sizeof(*k->parts));
	for (unsigned i = 0; i < t->parts_count; i++) {
		const struct part_row *row = &t->parts[i];
		struct strlist numbers = {0};
		k->parts[i] = (struct toolkit_part){
			.row = row,
			.version = "",
			.header = read_header(r, k, row->header, k->include_dirs.count, a, &text)};
		for (unsigned m = 0; k->parts[i].header && m < row->macros_count; m++) {
			long n = toolkit_header_number(buf_cstr(&text), row->macros[m]);
			if (n < 0)
				break;
			strlist_addf(&numbers, a, "%ld", n);
		}
		if (numbers.count == row->macros_count)
			k->parts[i].version = strlist_join(&numbers, a, ".");
	}
}

/* GCC of the root: its own, then those packaged beside it, the newest first. */
struct host_compiler {
	const char *cc, *cxx, *path; /* path of cxx */
	unsigned major;              /* 0: it does not say */
	const char *version, *id;
};

struct host_compilers {
	struct host_compiler items[NEWEST_GCC - OLDEST_GCC + 2];
	size_t count;
};

static void add_compiler(struct host_compilers *l, const struct root *r, const char *cc, const char *cxx,
			 struct arena *a)
{
	const char *path = root_find_program(r, cxx, a);
	if (path && root_find_program(r, cc, a))
		l->items[l->count++] =
			(struct host_compiler){.cc = cc, .cxx = cxx, .path = path, .version = "", .id = ""};
}

static void find_compilers(const struct root *r, struct arena *a, struct host_compilers *ret)
{
	add_compiler(ret, r, "gcc", "g++", a);
	for (unsigned n = NEWEST_GCC; n >= OLDEST_GCC; n--)
		add_compiler(ret, r, arena_printf(a, "gcc-%u", n), arena_printf(a, "g++-%u", n), a);
}

/* One shell prints what each tool says to --version and to --help, each answer behind a mark, in the order asked. */
static int ask(const struct root *root, enum sandbox_kind kind, const struct toolkit_places *places,
	       const struct strlist *programs, const struct run *run, struct arena *a, struct strlist *ret,
	       struct err *e)
{
	static const char script[] =
		"for tool in \"$@\"; do for word in --version --help; do printf '\\036'; \"$tool\" $word 2>/dev/null; "
		"done; done; exit 0";
	AUTO_BUF struct buf out = {0};
	struct sandbox s;
	struct strlist argv = {0};
	struct proc_spec spec = {.out = &out, .err = &out, .timeout_s = PROBE_SECONDS};
	struct proc_result res;
	const char *shell = root_find_program(root, "sh", a);
	if (!shell)
		return err_set(e, ERR_SYSTEM, "the root '%s' has no sh", root->dir);
	if (sandbox_init(&s, kind, root, a, e) < 0)
		return -1;
	for (size_t i = 0; i < places->count; i++)
		if (places->items[i].mount_from)
			sandbox_add(&s, SANDBOX_RO, places->items[i].mount_from, places->items[i].mount_to);
	kvlist_set(&s.env, a, "PATH", ROOT_PATH);
	kvlist_set(&s.env, a, "LC_ALL", "C");
	kvlist_set(&s.env, a, "HOME", SANDBOX_HOME);
	const char *const words[] = {shell, "-c", script, "sh"};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		strlist_ref(&argv, a, words[i]);
	strlist_append(&argv, a, programs);
	if (sandbox_run(&s, strlist_argv(&argv, a), &spec, run, &res, e) < 0)
		return -1;
	if (res.status != 0)
		return err_set(e, ERR_SYSTEM,
			       "asking the CUDA toolkits for their versions failed with exit status %d: %.300s",
			       res.status, buf_cstr(&out));
	char *text = arena_strdup(a, buf_cstr(&out));
	for (char *p = strchr(text, MARK); p;) {
		char *next = strchr(p + 1, MARK);
		if (next)
			*next = '\0';
		strlist_ref(ret, a, p + 1);
		p = next;
	}
	if (ret->count != 2 * programs->count)
		return err_set(e, ERR_SYSTEM,
			       "asking the CUDA toolkits for their versions gave %zu answers instead of %zu",
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
			strlist_addf(&lines, a, "%s %s\n", k->parts[i].row->name, k->parts[i].version);
	return strlist_join(&lines, a, "");
}

static void describe(const struct tables *t, const struct root *r, const struct toolkit_place *p,
		     const struct host_compilers *compilers, struct toolkit *k, struct arena *a)
{
	AUTO_BUF struct buf text = {0};
	k->layout = p->layout;
	k->where = p->where;
	k->home = p->home;
	k->mount_from = p->mount_from;
	k->mount_to = p->mount_to;
	k->nvcc = p->nvcc;
	k->cc_id = "";
	size_t own = toolkit_include_dirs(r, p, a, &k->include_dirs);
	if (read_header(r, k, "crt/host_config.h", own, a, &text))
		toolkit_header_limits(buf_cstr(&text), &k->gcc_max, &k->clang_max);
	toolkit_library_dirs(r, p, a, &k->library_dirs);
	const struct toolkit_row *row = tables_toolkit(t, k->version);
	if (!k->gcc_max && row)
		k->gcc_max = (unsigned)strtoul(row->gcc_max, NULL, 10);
	choose_compiler(k, compilers);
	find_parts(t, r, k, a);
	k->text = key_text(k, a);
}

static void take_compilers(struct host_compilers *l, const struct strlist *answers, size_t at, struct arena *a)
{
	for (size_t i = 0; i < l->count; i++) {
		struct host_compiler *c = &l->items[i];
		toolchain_parse(answers->items[at + 2 * i], a, &c->version, &c->id);
		c->major = (unsigned)strtoul(c->version, NULL, 10);
	}
}

int toolkit_probe(const struct tables *t, const struct root *root, enum sandbox_kind kind, const char *home,
		  const struct run *run, struct arena *a, const struct toolkits **ret, struct err *e)
{
	struct toolkit_places places = {0};
	struct host_compilers compilers = {0};
	struct strlist programs = {0}, answers = {0};
	struct toolkits *l = arena_alloc(a, sizeof(*l));
	if (home && !root_find_program(root, path_join(a, home, "bin/nvcc"), a)) {
		err_set(e, ERR_POLICY, "no CUDA toolkit in '%s': it has no bin/nvcc", home);
		return err_hint(e, "name the directory that holds bin/nvcc, as a path inside the root");
	}
	toolkit_places(root, home, a, &places);
	if (places.count) {
		find_compilers(root, a, &compilers);
		for (size_t i = 0; i < places.count; i++)
			strlist_ref(&programs, a, places.items[i].nvcc);
		for (size_t i = 0; i < compilers.count; i++)
			strlist_ref(&programs, a, compilers.items[i].path);
		if (ask(root, kind, &places, &programs, run, a, &answers, e) < 0)
			return -1;
		take_compilers(&compilers, &answers, 2 * places.count, a);
	}
	struct toolkit *items = arena_array(a, places.count, sizeof(*items));
	for (size_t i = 0; i < places.count; i++) {
		struct toolkit k = {0};
		if (!toolkit_parse(answers.items[2 * i], answers.items[2 * i + 1], a, &k))
			continue;
		describe(t, root, &places.items[i], &compilers, &k, a);
		items[l->count++] = k;
	}
	l->items = items;
	*ret = l;
	return 0;
}
