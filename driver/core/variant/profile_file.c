#include "base/sys/fs.h"
#include "core/tables/tables_parts.h"
#include "core/variant/variant.h"

#define INHERIT_MAX 8
#define STEM_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"
#define STEM_MAX 64 /* it is in names of files, of 255 bytes, among others */

struct profile_text { /* the nodes of the file; NULL: absent */
	const struct yaml_tree *inherit, *gpu, *isa, *blas, *cflags, *toggles;
};

#define T struct profile_text
PLAIN(profile, T, NODE(T, inherit), NODE(T, gpu), NODE(T, isa), NODE(T, blas), NODE(T, cflags),
      NODE(T, toggles));

struct reader {
	const struct tables *t;
	const char *path;
	struct arena *a;
	struct inherit *inherit;
};

/* An error at a node. */
#define BAD(r, n, e, ...) row_bad(&(const struct yaml_place){(r)->path, (n)->line}, e, __VA_ARGS__)

/* The text of a node, NULL with an error. */
static const char *need_text(const struct reader *r, const struct yaml_tree *n, const char *key,
			     struct err *e)
{
	if (n->kind == YAML_TEXT && *n->text)
		return n->text;
	BAD(r, n, e, "'%s' needs a single value", key);
	return NULL;
}

/* Puts "file:line" in front of an error from a part that knows no file. */
static int at_node(const struct reader *r, const struct yaml_tree *n, struct err *e)
{
	return err_wrap(e, "%s:%u", r->path, n->line);
}

/* A word, or a list of words. */
static int read_words(const struct reader *r, const struct yaml_tree *n, struct strlist *ret,
		      struct err *e)
{
	const char *word;

	for (size_t i = 0; n->kind == YAML_LIST && i < n->count; i++) {
		if (!(word = need_text(r, &n->items[i], n->key, e)))
			return -1;
		strlist_ref(ret, r->a, word);
	}

	if (n->kind == YAML_LIST)
		return 0;
	if (!(word = need_text(r, n, n->key, e)))
		return -1;
	strlist_split(ret, r->a, word, " \t\n");
	return 0;
}

static int read_gpu(const struct reader *r, const struct yaml_tree *n, struct profile *p,
		    struct err *e)
{
	struct strlist words = {0};

	if (read_words(r, n, &words, e) < 0)
		return -1;
	if (!words.count)
		return BAD(r, n, e, "'gpu' is an empty list");
	return profile_set_gpu(r->t, strlist_join(&words, r->a, "+"), r->a, p, e) < 0
		       ? at_node(r, n, e)
		       : 0;
}

static int read_blas(const struct reader *r, const struct yaml_tree *n, struct profile *p,
		     struct err *e)
{
	struct strlist known = {0};
	const char *name = need_text(r, n, "blas", e);

	if (!name)
		return -1;
	p->blas = tables_blas(r->t, name);
	if (p->blas)
		return 0;
	for (unsigned i = 0; i < r->t->blas_count; i++)
		strlist_ref(&known, r->a, r->t->blas[i].name);
	BAD(r, n, e, "unknown BLAS '%s'", name);
	return suggest_known(e, NULL, &known);
}

static int read_cflags(const struct reader *r, const struct yaml_tree *n, struct profile *p,
		       struct err *e)
{
	const struct yaml_place at = {r->path, n->line};
	struct strlist flags = {0};

	if (read_words(r, n, &flags, e) < 0)
		return -1;
	for (size_t i = 0; i < flags.count; i++) {
		if (row_flag(&at, "cflags", flags.items[i], e) < 0)
			return -1;
		if (path_has_suffix(flags.items[i], "=native")) {
			BAD(r, n, e,
			    "'%s' is another flag on each machine, and the name of the wheel would "
			    "not say so",
			    flags.items[i]);
			return err_hint(e, "name the instruction set with 'isa'; --profile native "
					   "uses this machine's");
		}
	}

	strlist_append(&p->extra_cflags, r->a, &flags);
	return 0;
}

/* One toggle; an inherited one of that name is replaced. */
static int add_toggle(const struct reader *r, const struct yaml_tree *n, struct profile *p,
		      struct err *e)
{
	const char *name = n->key, *word;

	if (!*name ||
	    strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") !=
		    strlen(name))
		return BAD(r, n, e, "not the name of a toggle: '%s'", name);
	word = need_text(r, n, name, e);
	if (!word)
		return -1;
	if (strpbrk(word, "\n\r"))
		return BAD(r, n, e, "the value of '%s' has more than one line", name);
	struct table_setting s = {.name = name,
				  .value = word,
				  .why = r->path,
				  .since = "",
				  .gpu = "",
				  .until = "",
				  .package = "",
				  .line = n->line};
	for (unsigned i = 0; i < p->toggles_count; i++) {
		if (strcmp(p->toggles[i].name, name) != 0)
			continue;
		if (strcmp(p->toggles[i].why, r->path) == 0)
			return BAD(r, n, e, "toggle '%s' is there twice", name);
		p->toggles[i] = s;
		return 0;
	}

	p->toggles[p->toggles_count++] = s;
	return 0;
}

static int read_toggles(const struct reader *r, const struct yaml_tree *n, struct profile *p,
			struct err *e)
{
	if (n->kind != YAML_MAPPING)
		return BAD(r, n, e, "'%s' is a mapping: NAME: VALUE", "toggles");
	struct table_setting *room = arena_array(r->a, p->toggles_count + n->count, sizeof(*room));
	if (p->toggles_count)
		memcpy(room, p->toggles, p->toggles_count * sizeof(*room));
	p->toggles = room;
	for (size_t i = 0; i < n->count; i++)
		if (add_toggle(r, &n->items[i], p, e) < 0)
			return -1;
	return 0;
}

static int read_inherit(const struct reader *r, const struct yaml_tree *n, struct profile *p,
			struct err *e)
{
	const char *name = need_text(r, n, "inherit", e);

	if (!name)
		return -1;
	if (++r->inherit->depth > INHERIT_MAX) {
		r->inherit->circle = true;
		return BAD(r, n, e, "circle of profiles in '%s': a profile cannot inherit itself",
			   name);
	}

	if (*name != '/' && (strchr(name, '/') || path_has_suffix(name, ".yaml")))
		name = path_join(r->a, path_dir(r->a, r->path),
				 name + (strncmp(name, "./", 2) == 0 ? 2 : 0));
	if (profile_by_name(r->t, name, r->inherit, r->a, p, e) < 0)
		return r->inherit->circle ? -1 : at_node(r, n, e); /* one place says it */
	return 0;
}

static int read_isa(const struct reader *r, const struct yaml_tree *n, struct profile *p,
		    struct err *e)
{
	const char *name = need_text(r, n, "isa", e);

	if (!name)
		return -1;
	if (profile_set_isa(r->t, name, r->a, p, e) < 0)
		return at_node(r, n, e);
	if (p->gpu == GPU_MPS) {
		BAD(r, n, e, "'%s' does not go with gpu mps", "isa");
		return err_hint(
			e, "take it out: every Mac with that GPU has the same instruction set");
	}

	return 0;
}

/* Reads 'inherit' first, wherever it is, then the file's own keys. */
static int read_document(const struct reader *r, struct profile *p, struct err *e)
{
	const struct yaml_tree top = {.line = 1};
	struct profile_text f = {0};

	if (yaml_load(r->path, &profile_schema, r->a, &f, NULL, e) < 0)
		return -1;
	if (f.inherit && read_inherit(r, f.inherit, p, e) < 0)
		return -1;
	if (f.gpu && read_gpu(r, f.gpu, p, e) < 0)
		return -1;
	if (f.isa && read_isa(r, f.isa, p, e) < 0)
		return -1;
	if (f.blas && read_blas(r, f.blas, p, e) < 0)
		return -1;
	if (f.cflags && read_cflags(r, f.cflags, p, e) < 0)
		return -1;
	if (f.toggles && read_toggles(r, f.toggles, p, e) < 0)
		return -1;
	if (!f.inherit && !f.gpu)
		return BAD(r, &top, e, "'%s' is missing: cpu, mps, or a list like [sm80, sm90]",
			   "gpu");
	return !p->isa && p->gpu != GPU_MPS
		       ? BAD(r, &top, e, "'%s' is missing: the CPU instruction set", "isa")
		       : 0;
}

/* What a version label says in a word of its own: an
 * instruction set, a GPU, a BLAS, another build or world. */
static bool is_label_word(const struct tables *t, const char *stem)
{
	if (tables_isa(t, stem) || tables_blas(t, stem) || strcmp(stem, "drift") == 0)
		return true;
	if (strncmp(stem, "sm", 2) == 0)
		return strspn(stem + 2, "0123456789") > 0;
	if (strncmp(stem, "own", 3) != 0)
		return false;
	return strspn(stem + 3, "0123456789abcdef") == 8 && !stem[11];
}

/* Whether another profile has that name: a composed one, or the one of this machine. */
static bool is_taken(const struct tables *t, const char *stem, struct arena *a)
{
	struct profile p;
	const char *dash = strchr(stem, '-');
	bool begins_native = strcmp(stem, "native") == 0 || strncmp(stem, "native-", 7) == 0;
	bool ends_native = dash && strcmp(dash + 1, "native") == 0;

	if (is_label_word(t, stem) || begins_native || ends_native)
		return true;
	return profile_parse(t, stem, a, &p, ERR_IGNORED) == 0;
}

/* Returns the nearest name that a profile can have; "" if none is near. */
static char *right_stem(const struct tables *t, const char *stem, struct arena *a)
{
	struct strlist words = {0};
	char *lower = arena_strdup(a, stem);

	for (char *c = lower; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
		else if (!strchr(STEM_CHARS, *c))
			*c = '-';
	strlist_split(&words, a, lower, "-");
	char *name = strlist_join(&words, a, "-");
	if (!*name || !is_taken(t, name, a))
		return name;
	return strcmp(name, "native") == 0 ? arena_strdup(a, "my-machine")
					   : arena_printf(a, "my-%s", name);
}

/* The stem becomes part of variant names and of the wheel's version,
 * where '.', '_' and '-' are one: files of two names must not become one. */
static int check_stem(const struct reader *r, const char **ret, struct err *e)
{
	const struct tables *t = r->t;
	struct arena *a = r->a;
	const char *base = path_base(r->path);
	size_t n = strlen(base);

	if (path_has_suffix(base, ".yaml"))
		n -= strlen(".yaml");
	if (n > STEM_MAX)
		return err_set(e, ERR_CONFIG,
			       "profile '%.*s...': its name is longer than %d characters", STEM_MAX,
			       base, STEM_MAX);
	const char *stem = arena_strndup(a, base, n), *right = right_stem(t, stem, a);
	if (n && strcmp(stem, right) == 0) {
		*ret = stem;
		return 0;
	}

	err_set(e, ERR_CONFIG, "'%s' cannot be the name of a profile%s", base,
		is_label_word(t, stem) ? ": labels have a meaning for it"
		: is_taken(t, stem, a) ? ": it is that of another one"
				       : "");
	if (*right)
		return err_hint(e,
				"name the file '%s.yaml': small letters and digits, with single "
				"'-' between them",
				right);
	return err_hint(e, "name the file with small letters and digits, and single '-' between "
			   "them: it becomes part "
			   "of the wheel's version");
}

int profile_file_load(const struct tables *t, const char *path, struct inherit *inherit,
		      struct arena *a, struct profile *ret, struct err *e)
{
	const struct reader r = {.t = t, .path = arena_strdup(a, path), .a = a, .inherit = inherit};
	struct profile p = {.file = "", .platform = ""};
	const char *stem = "";

	if (fs_is_dir(TRUSTED, path)) {
		err_set(e, ERR_CONFIG, "profile '%s' is a directory, not a YAML file", path);
		return err_hint(e, "name a file in it, or a profile such as sm90-avx512");
	}

	if (!fs_exists(TRUSTED, path)) {
		err_set(e, ERR_CONFIG, "no profile '%s'", path);
		return err_hint(
			e, "a profile is GPU-ISA, like sm90-avx512, or the path of a YAML file");
	}

	if (check_stem(&r, &stem, e) < 0 || read_document(&r, &p, e) < 0)
		return -1;
	p.name = stem;
	p.file = r.path;
	profile_settle_platform(&p);
	*ret = p;
	return 0;
}
