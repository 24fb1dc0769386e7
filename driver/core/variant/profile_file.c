#include <string.h>
#include <yaml.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/suggest.h"
#include "base/sys/fs.h"
#include "core/tables/row_check.h"
#include "core/variant/profile_parts.h"

/* The keys of 'toggles' are the user's, which a schema of fixed keys cannot say: so the document is read through
 * libyaml itself. */

#define PROFILE_MAX_BYTES (1u << 20)
#define INHERIT_MAX 8
#define MAX_DEPTH 64 /* as in tables */
#define CIRCLE "circle of profiles"
#define STEM_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"

struct reader {
	const struct tables *t;
	const char *path;
	struct arena *a;
	yaml_document_t doc;
	unsigned depth;
};

static unsigned line_of(const yaml_node_t *n)
{
	return n ? (unsigned)n->start_mark.line + 1 : 1;
}

/* An error at a node. */
#define BAD(r, n, e, ...) row_bad(&(const struct row_place){(r)->path, line_of(n)}, e, __VA_ARGS__)

/* The text of a scalar; NULL if the node is none, or is empty, or holds a NUL. */
static const char *text_of(const yaml_node_t *n)
{
	if (!n || n->type != YAML_SCALAR_NODE)
		return NULL;
	const char *s = (const char *)n->data.scalar.value;
	return n->data.scalar.length && strlen(s) == n->data.scalar.length ? s : NULL;
}

/* As text_of, in the arena; NULL with an error. */
static const char *need_text(struct reader *r, const yaml_node_t *n, const char *key, struct err *e)
{
	const char *s = text_of(n);
	if (s)
		return arena_strdup(r->a, s);
	BAD(r, n, e, "'%s' needs a value, one word", key);
	return NULL;
}

/* Puts "file:line" in front of an error from a part that knows no file. */
static int at_node(const struct reader *r, const yaml_node_t *n, struct err *e)
{
	return err_wrap(e, "%s:%u", r->path, line_of(n));
}

static int refuse_key(const struct reader *r, const yaml_node_t *key, const char *name, struct err *e)
{
	static const char *const known[] = {"inherit", "gpu", "isa", "blas", "cflags", "toggles"};
	const char *near = suggest_nearest(name, known, ARRAY_LEN(known));
	BAD(r, key, e, "unknown key '%s'", name);
	if (near)
		return err_hint(e, "did you mean '%s'? known: inherit gpu isa blas cflags toggles", near);
	return err_hint(e, "known: inherit gpu isa blas cflags toggles");
}

/* A word, or a list of words. */
static int read_words(struct reader *r, yaml_node_t *n, const char *key, struct strlist *ret, struct err *e)
{
	if (n->type != YAML_SEQUENCE_NODE) {
		const char *word = need_text(r, n, key, e);
		if (!word)
			return -1;
		strlist_split(ret, r->a, word, " \t\n");
		return 0;
	}
	for (const yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++) {
		const char *word = need_text(r, yaml_document_get_node(&r->doc, *i), key, e);
		if (!word)
			return -1;
		strlist_ref(ret, r->a, word);
	}
	return 0;
}

static int read_gpu(struct reader *r, yaml_node_t *n, struct profile *p, struct err *e)
{
	struct strlist words = {0};
	if (read_words(r, n, "gpu", &words, e) < 0)
		return -1;
	if (!words.count)
		return BAD(r, n, e, "'gpu' is an empty list");
	if (profile_set_gpu(r->t, strlist_join(&words, r->a, "+"), r->a, p, e) < 0)
		return at_node(r, n, e);
	return 0;
}

static int read_blas(struct reader *r, yaml_node_t *n, struct profile *p, struct err *e)
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
	return err_hint(e, "known: %s", strlist_join(&known, r->a, " "));
}

static int read_cflags(struct reader *r, yaml_node_t *n, struct profile *p, struct err *e)
{
	const struct row_place at = {r->path, line_of(n)};
	struct strlist flags = {0};
	if (read_words(r, n, "cflags", &flags, e) < 0 ||
	    row_flags(&at, "cflags", strlist_argv(&flags, r->a), (unsigned)flags.count, e) < 0)
		return -1;
	strlist_append(&p->extra_cflags, r->a, &flags);
	return 0;
}

/* One toggle; an inherited one of that name is replaced. */
static int add_toggle(struct reader *r, const yaml_node_t *key, const yaml_node_t *value, struct profile *p,
		      struct err *e)
{
	const char *name = text_of(key);
	const char *word;
	if (!name || strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name))
		return BAD(r, key, e, "not the name of a toggle: '%s'", name ? name : "");
	word = need_text(r, value, name, e);
	if (!word)
		return -1;
	if (strpbrk(word, "\n\r"))
		return BAD(r, value, e, "the value of '%s' has more than one line", name);
	struct table_setting s = {.name = arena_strdup(r->a, name),
				  .value = word,
				  .why = r->path,
				  .since = "",
				  .gpu = "",
				  .until = "",
				  .package = "",
				  .line = line_of(key)};
	for (unsigned i = 0; i < p->toggles_count; i++) {
		if (strcmp(p->toggles[i].name, name) != 0)
			continue;
		if (strcmp(p->toggles[i].why, r->path) == 0)
			return BAD(r, key, e, "toggle '%s' is there twice", name);
		p->toggles[i] = s;
		return 0;
	}
	p->toggles[p->toggles_count++] = s;
	return 0;
}

static int read_toggles(struct reader *r, yaml_node_t *n, struct profile *p, struct err *e)
{
	if (n->type != YAML_MAPPING_NODE)
		return BAD(r, n, e, "'%s' is a mapping: NAME: VALUE", "toggles");
	size_t count = (size_t)(n->data.mapping.pairs.top - n->data.mapping.pairs.start);
	struct table_setting *room = arena_array(r->a, p->toggles_count + count, sizeof(*room));
	if (p->toggles_count)
		memcpy(room, p->toggles, p->toggles_count * sizeof(*room));
	p->toggles = room;
	for (const yaml_node_pair_t *i = n->data.mapping.pairs.start; i < n->data.mapping.pairs.top; i++)
		if (add_toggle(r, yaml_document_get_node(&r->doc, i->key), yaml_document_get_node(&r->doc, i->value), p,
			       e) < 0)
			return -1;
	return 0;
}

static int read_inherit(struct reader *r, yaml_node_t *n, struct profile *p, struct err *e)
{
	const char *name = need_text(r, n, "inherit", e);
	if (!name)
		return -1;
	if (r->depth >= INHERIT_MAX)
		return BAD(r, n, e, CIRCLE " in '%s': a profile cannot inherit itself", name);
	if (*name != '/' && (strchr(name, '/') || path_has_suffix(name, ".yaml")))
		name = path_join(r->a, path_dir(r->a, r->path), name + (strncmp(name, "./", 2) == 0 ? 2 : 0));
	if (profile_by_name(r->t, name, r->depth + 1, r->a, p, e) < 0)
		return strstr(e->msg, CIRCLE) ? -1 : at_node(r, n, e); /* one place says it */
	return 0;
}

/* The value of a key, NULL when it is not there. */
static yaml_node_t *find(struct reader *r, const yaml_node_t *map, const char *name)
{
	for (const yaml_node_pair_t *i = map->data.mapping.pairs.start; i < map->data.mapping.pairs.top; i++) {
		const char *key = text_of(yaml_document_get_node(&r->doc, i->key));
		if (key && strcmp(key, name) == 0)
			return yaml_document_get_node(&r->doc, i->value);
	}
	return NULL;
}

static int check_keys(struct reader *r, const yaml_node_t *map, struct err *e)
{
	static const char *const known[] = {"inherit", "gpu", "isa", "blas", "cflags", "toggles"};
	bool seen[ARRAY_LEN(known)] = {false};
	for (const yaml_node_pair_t *i = map->data.mapping.pairs.start; i < map->data.mapping.pairs.top; i++) {
		const yaml_node_t *key = yaml_document_get_node(&r->doc, i->key);
		const char *name = text_of(key);
		size_t k = 0;
		if (!name)
			return BAD(r, key, e, "a key must be text%s", "");
		while (k < ARRAY_LEN(known) && strcmp(known[k], name) != 0)
			k++;
		if (k == ARRAY_LEN(known))
			return refuse_key(r, key, name, e);
		if (seen[k])
			return BAD(r, key, e, "key '%s' is there twice", name);
		seen[k] = true;
	}
	return 0;
}

static int read_isa(struct reader *r, yaml_node_t *n, struct profile *p, struct err *e)
{
	const char *name = need_text(r, n, "isa", e);
	if (!name)
		return -1;
	if (profile_set_isa(r->t, name, r->a, p, e) < 0)
		return at_node(r, n, e);
	if (p->gpu == GPU_MPS) {
		BAD(r, n, e, "'%s' does not go with gpu mps", "isa");
		return err_hint(e, "take it out: every Mac with that GPU has the same instruction set");
	}
	return 0;
}

/* 'inherit' first wherever it stands, then what this file says itself. */
static int read_document(struct reader *r, struct profile *p, struct err *e)
{
	yaml_node_t *map = yaml_document_get_root_node(&r->doc);
	bool has_gpu = false;
	if (!map || map->type != YAML_MAPPING_NODE)
		return BAD(r, map, e, "not a profile: '%s' has no keys such as gpu and isa", path_base(r->path));
	if (check_keys(r, map, e) < 0)
		return -1;
	yaml_node_t *n = find(r, map, "inherit");
	if (n) {
		if (read_inherit(r, n, p, e) < 0)
			return -1;
		has_gpu = true;
	}
	if ((n = find(r, map, "gpu")) && read_gpu(r, n, p, e) < 0)
		return -1;
	has_gpu |= n != NULL;
	if ((n = find(r, map, "isa")) && read_isa(r, n, p, e) < 0)
		return -1;
	if ((n = find(r, map, "blas")) && read_blas(r, n, p, e) < 0)
		return -1;
	if ((n = find(r, map, "cflags")) && read_cflags(r, n, p, e) < 0)
		return -1;
	if ((n = find(r, map, "toggles")) && read_toggles(r, n, p, e) < 0)
		return -1;
	if (!has_gpu)
		return BAD(r, map, e, "'%s' is missing: cpu, mps, or a list like [sm80, sm90]", "gpu");
	if (!p->isa && p->gpu != GPU_MPS)
		return BAD(r, map, e, "'%s' is missing: the CPU instruction set", "isa");
	return 0;
}

/* What another profile is called already: a composed one, or what stands for this machine's. */
static bool is_taken(const struct tables *t, const char *stem, struct arena *a)
{
	struct profile p;
	struct err ignored = {0};
	const char *dash = strchr(stem, '-');
	return strcmp(stem, "native") == 0 || strncmp(stem, "native-", 7) == 0 ||
	       (dash && strcmp(dash + 1, "native") == 0) || profile_parse(t, stem, a, &p, &ignored) == 0;
}

/* The nearest name that a profile can have; "" if there is none. */
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
	return strcmp(name, "native") == 0 ? arena_strdup(a, "my-machine") : arena_printf(a, "my-%s", name);
}

/* The stem becomes part of variant names and of the wheel's version, where '.', '_' and '-' are one: files of two
 * names must not become one. */
static int check_stem(const struct tables *t, const char *path, struct arena *a, const char **ret, struct err *e)
{
	const char *base = path_base(path);
	size_t n = strlen(base);
	if (path_has_suffix(base, ".yaml"))
		n -= strlen(".yaml");
	const char *stem = arena_strndup(a, base, n), *right = right_stem(t, stem, a);
	if (n && strcmp(stem, right) == 0) {
		*ret = stem;
		return 0;
	}
	err_set(e, ERR_CONFIG, "'%s' cannot be the name of a profile%s", base,
		is_taken(t, stem, a) ? ": it is that of another one" : "");
	if (*right)
		return err_hint(e, "name the file '%s.yaml': small letters and digits, with single '-' between them",
				right);
	return err_hint(e, "name the file with small letters and digits, and single '-' between them: it becomes part "
			   "of the wheel's version");
}

/* What the loader takes minutes for, and what it leaves unread. Its own complaints are left to it. */
static int check_shape(const struct reader *r, const struct buf *text, struct err *e)
{
	yaml_parser_t parser;
	yaml_event_t event;
	unsigned depth = 0, documents = 0;
	int rc = 0;
	if (!yaml_parser_initialize(&parser))
		return err_set(e, ERR_SYSTEM, "out of memory for '%s'", r->path);
	yaml_parser_set_input_string(&parser, (const unsigned char *)buf_cstr(text), text->len);
	for (bool more = true; more && rc == 0 && yaml_parser_parse(&parser, &event);) {
		unsigned long line = (unsigned long)event.start_mark.line + 1;
		const yaml_event_type_t type = event.type;
		more = type != YAML_STREAM_END_EVENT;
		depth += type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT;
		depth -= type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT;
		documents += type == YAML_DOCUMENT_START_EVENT;
		yaml_event_delete(&event);
		if (depth > MAX_DEPTH)
			rc = err_set(e, ERR_CONFIG, "%s:%lu: nested too deeply", r->path, line);
		else if (documents > 1)
			rc = err_set(e, ERR_CONFIG, "%s:%lu: more than one document in the file", r->path, line);
	}
	yaml_parser_delete(&parser);
	return rc;
}

static int parse(struct reader *r, const struct buf *text, struct profile *p, struct err *e)
{
	yaml_parser_t parser;
	int ok = 0;
	if (check_shape(r, text, e) < 0)
		return -1;
	if (!yaml_parser_initialize(&parser))
		return err_set(e, ERR_SYSTEM, "out of memory for '%s'", r->path);
	yaml_parser_set_input_string(&parser, (const unsigned char *)buf_cstr(text), text->len);
	if (!yaml_parser_load(&parser, &r->doc)) {
		err_set(e, ERR_CONFIG, "%s:%lu: %s", r->path, (unsigned long)parser.problem_mark.line + 1,
			parser.problem ? parser.problem : "no YAML");
		ok = -1;
	} else {
		ok = read_document(r, p, e);
		yaml_document_delete(&r->doc);
	}
	yaml_parser_delete(&parser);
	return ok;
}

int profile_file_load(const struct tables *t, const char *path, unsigned depth, struct arena *a, struct profile *ret,
		      struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct reader r = {.t = t, .path = arena_strdup(a, path), .a = a, .depth = depth};
	struct profile p = {.file = "", .platform = ""};
	const char *stem = "";
	if (fs_is_dir(TRUSTED, path)) {
		err_set(e, ERR_CONFIG, "profile '%s' is a directory, not a YAML file", path);
		return err_hint(e, "name a file in it, or a profile such as sm90-avx512");
	}
	if (check_stem(t, path, a, &stem, e) < 0)
		return -1;
	if (!fs_exists(TRUSTED, path)) {
		err_set(e, ERR_CONFIG, "no profile '%s'", path);
		return err_hint(e, "a profile is GPU-ISA, like sm90-avx512, or the path of a YAML file");
	}
	if (fs_read(TRUSTED, path, PROFILE_MAX_BYTES, &text, e) < 0) {
		e->kind = ERR_CONFIG; /* a wrong name, as for the tables */
		return -1;
	}
	if (parse(&r, &text, &p, e) < 0)
		return -1;
	p.name = stem;
	p.file = r.path;
	profile_settle_platform(&p);
	*ret = p;
	return 0;
}
