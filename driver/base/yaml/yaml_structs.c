#include "base/yaml/yaml.h"

#define KEYS_MAX 32 /* of a schema */

/* A file that is loaded; every function below that fails sets `e`. */
struct loading {
	const char *path;
	struct arena *a;
	struct err *e;
};

static int fill(const struct loading *l, const struct yaml_tree *t, const struct yaml_schema *s,
		char *row);

static int expect(const struct loading *l, const struct yaml_tree *t, const char *name,
		  enum yaml_kind want)
{
	static const char *const names[] = {
		[YAML_TEXT] = "text", [YAML_LIST] = "a list", [YAML_MAPPING] = "a mapping"};

	if (t->kind == want)
		return 0;
	return err_set(l->e, ERR_CONFIG, "%s:%u: wrong type: %s'%s' must be %s, not %s", l->path,
		       t->line, t->key ? "" : "an entry of ", name, names[want], names[t->kind]);
}

static int bad_value(const struct loading *l, const struct yaml_tree *t, const char *name,
		     const char *want)
{
	return err_set(l->e, ERR_CONFIG, "%s:%u: wrong value of '%s': '%s' is not %s", l->path,
		       t->line, name, t->text, want);
}

int yaml_size(const struct yaml_place *at, const char *key, const char *text, struct err *e)
{
	uint64_t n;
	return size_parse(text, &n, e) < 0 ? err_wrap(e, "%s:%u: '%s'", at->file, at->line, key)
					   : 0;
}

/* A string, or an entry of a list of them, which is never empty. */
static int take_string(const struct loading *l, const struct yaml_tree *t, const struct yaml_key *k,
		       const char **ret)
{
	struct err *e = l->e;
	const bool filled = k->filled || k->type != YAML_STRING;

	if (expect(l, t, k->name, YAML_TEXT) < 0)
		return -1;
	if (filled && !*t->text)
		return err_set(e, ERR_CONFIG, "%s:%u: '%s' is empty", l->path, t->line, k->name);
	*ret = t->text;
	if (*t->text && (k->words || k->good)) {
		AUTO_ARENA struct arena a = {0};
		struct strlist known = {0};
		strlist_split(&known, &a, k->words ? k->words : "", " ");
		if (k->words ? !strlist_contains(&known, t->text) : !k->good(t->text)) {
			if (k->is)
				err_set(e, ERR_CONFIG, "%s:%u: '%s' is not %s", l->path, t->line,
					t->text, k->is);
			else
				err_set(e, ERR_CONFIG, "%s:%u: '%s' cannot be '%s'", l->path,
					t->line, k->name, t->text);
			const char *rest = arena_printf(&a, "it is one of: %s",
							strlist_join(&known, &a, ", "));
			const char *near = suggest_nearest(t->text, known.items, known.count);
			return known.count ? suggest_hint(e, near, rest) : -1;
		}
	}

	return *t->text && k->check
		       ? k->check(&(struct yaml_place){l->path, t->line}, k->name, t->text, e)
		       : 0;
}

static int take_truth(const struct loading *l, const struct yaml_tree *t, const struct yaml_key *k,
		      char *slot)
{
	if (expect(l, t, k->name, YAML_TEXT) < 0)
		return -1;
	*(bool *)slot = strcmp(t->text, "true") == 0;
	return *(bool *)slot || strcmp(t->text, "false") == 0
		       ? 0
		       : bad_value(l, t, k->name, "one of: true, false");
}

static int take_number(const struct loading *l, const struct yaml_tree *t, const struct yaml_key *k,
		       char *slot)
{
	if (expect(l, t, k->name, YAML_TEXT) < 0)
		return -1;
	errno = 0;
	const uint64_t n = strtoull(t->text, NULL, 10);
	const uint32_t n32 = (uint32_t)n;
	const uint16_t n16 = (uint16_t)n;
	bool in_range = !errno && n <= UINT64_MAX >> (64 - 8 * k->size);
	/* YAML knows other spellings, with a leading zero an octal one. */
	bool only_digits = *t->text && strspn(t->text, "0123456789") == strlen(t->text);
	bool leading_zero = t->text[0] == '0' && t->text[1];
	if (!only_digits || leading_zero || !in_range)
		return bad_value(l, t, k->name, "a whole number in range");
	memcpy(slot, k->size == 2 ? &n16 : k->size == 4 ? (const void *)&n32 : &n, k->size);
	return 0;
}

static int take_list(const struct loading *l, const struct yaml_tree *t, const struct yaml_key *k,
		     char *row)
{
	if (expect(l, t, k->name, YAML_LIST) < 0)
		return -1;
	if (k->filled && !t->count)
		return err_set(l->e, ERR_CONFIG, "%s:%u: '%s' needs at least 1 entry", l->path,
			       t->line, k->name);
	unsigned count = (unsigned)t->count;
	size_t size = k->of ? k->of->size : sizeof(const char *);
	char *items = count ? arena_array(l->a, count, size) : NULL;
	for (unsigned i = 0; i < count; i++) {
		const struct yaml_tree *item = &t->items[i];
		char *slot = items + i * size;
		if (!k->of && take_string(l, item, k, (const char **)(void *)slot) < 0)
			return -1;
		if (k->of &&
		    (expect(l, item, k->name, YAML_MAPPING) < 0 || fill(l, item, k->of, slot) < 0))
			return -1;
	}

	memcpy(row + k->offset, &items, sizeof(items));
	memcpy(row + k->count, &count, sizeof(count));
	return 0;
}

static int take(const struct loading *l, const struct yaml_tree *t, const struct yaml_key *k,
		char *row)
{
	char *slot = row + k->offset;

	switch (k->type) {
	case YAML_STRING:
		return take_string(l, t, k, (const char **)(void *)slot);
	case YAML_TRUTH:
		return take_truth(l, t, k, slot);
	case YAML_NUMBER:
		return take_number(l, t, k, slot);
	case YAML_ROW:
		if (expect(l, t, k->name, YAML_MAPPING) < 0)
			return -1;
		*(void **)(void *)slot = arena_alloc(l->a, k->of->size);
		return fill(l, t, k->of, *(void **)(void *)slot);
	case YAML_NODE:
		*(const struct yaml_tree **)(void *)slot = t;
		return 0;
	default:
		return take_list(l, t, k, row);
	}
}

static int unknown_key(const struct loading *l, const struct yaml_tree *t,
		       const struct yaml_schema *s)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist known = {0};

	for (const struct yaml_key *k = s->keys; k->name; k++)
		strlist_ref(&known, &a, k->name);
	err_set(l->e, ERR_CONFIG, "%s:%u: unknown key '%s'", l->path, t->line, t->key);
	return suggest_hint(l->e, suggest_nearest(t->key, known.items, known.count),
			    arena_printf(&a, "known keys: %s", strlist_join(&known, &a, ", ")));
}

/* The key of each item, and that no two items have the same. */
static int find_keys(const struct loading *l, const struct yaml_tree *t,
		     const struct yaml_schema *s, const struct yaml_tree **items)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct yaml_tree *item = &t->items[i];
		size_t k = 0;
		while (s->keys[k].name && strcmp(s->keys[k].name, item->key) != 0)
			k++;
		if (!s->keys[k].name)
			return unknown_key(l, item, s);
		if (k >= KEYS_MAX)
			abort();
		if (items[k])
			return err_set(l->e, ERR_CONFIG,
				       "%s:%u: duplicate key '%s' (first on line %u)", l->path,
				       item->line, item->key, items[k]->line);
		items[k] = item;
	}

	return 0;
}

static int fill(const struct loading *l, const struct yaml_tree *t, const struct yaml_schema *s,
		char *row)
{
	const struct yaml_tree *items[KEYS_MAX] = {0};

	if (find_keys(l, t, s, items) < 0)
		return -1;
	if (s->line)
		memcpy(row + s->line, &t->line, sizeof(t->line));
	for (const struct yaml_key *k = s->keys; k->name; k++) {
		const struct yaml_tree *item = items[k - s->keys];
		if (!item && k->need)
			return err_set(l->e, ERR_CONFIG, "%s:%u: missing key '%s'", l->path,
				       t->line, k->name);
		if (item && take(l, item, k, row) < 0)
			return -1;
		if (!item && k->type == YAML_STRING)
			*(const char **)(void *)(row + k->offset) = "";
	}

	return 0;
}

int yaml_load(const char *path, const struct yaml_schema *schema, struct arena *a, void *data,
	      const struct yaml_tree **ret_tree, struct err *e)
{
	const struct loading l = {path, a, e};
	struct yaml_tree *tree = arena_alloc(a, sizeof(*tree));

	if (yaml_tree_load(path, a, tree, e) < 0 || fill(&l, tree, schema, data) < 0)
		return -1;
	if (ret_tree)
		*ret_tree = tree;
	return 0;
}

static const struct yaml_tree *child(const struct yaml_tree *t, const char *name, size_t len)
{
	char *end;

	for (size_t i = 0; t->kind == YAML_MAPPING && i < t->count; i++)
		if (strncmp(t->items[i].key, name, len) == 0 && !t->items[i].key[len])
			return &t->items[i];
	unsigned long n = strtoul(name, &end, 10);
	return t->kind == YAML_LIST && len && end == name + len && n < t->count ? &t->items[n]
										: NULL;
}

const struct yaml_tree *yaml_at(const struct yaml_tree *t, const char *fmt, ...)
{
	char path[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	for (const char *p = path; *p;) {
		size_t len = strcspn(p, "/");
		const struct yaml_tree *below = child(t, p, len);
		if (!below)
			break;
		t = below;
		p += len + (p[len] == '/');
	}

	return t;
}
