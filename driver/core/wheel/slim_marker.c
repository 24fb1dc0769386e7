#include "core/wheel/slim_marker.h"

#include "base/sys/fs.h"
#include "base/sys/json.h"

enum { SCHEMA = 1, FILE_MAX = 64 << 10, ITEMS_MAX = 64, ITEM_MAX = 64 };

void slim_marker_gpu(struct slim_marker *m, unsigned number, bool ptx, struct arena *a)
{
	strlist_addf(&m->gpus, a, "%u.%u%s", number / 10, number % 10, ptx ? "+PTX" : "");
	strlist_sort(&m->gpus);
}

bool slim_marker_of_label(const char *label, struct arena *a, struct slim_marker *ret)
{
	struct strlist words = {0};
	struct slim_marker m = {.release = "", .ptbuild = ""};

	strlist_split(&words, a, label, ".");
	for (size_t i = 0; i < words.count; i++) {
		const char *number = words.items[i] + 2;
		const size_t n =
			strncmp(words.items[i], "sm", 2) == 0 ? strspn(number, "0123456789") : 0;
		const char *suffix = number + n;
		const bool whole =
			n && (!*suffix || strcmp(suffix, "a") == 0 || strcmp(suffix, "f") == 0);
		const bool ptx = i + 1 < words.count && strcmp(words.items[i + 1], "ptx") == 0;
		if (whole && n > 1 && n < 4)
			strlist_addf(&m.gpus, a, "%.*s.%s%s", (int)n - 1, number, suffix - 1,
				     ptx ? "+PTX" : "");
	}

	strlist_sort(&m.gpus);
	*ret = m;
	return m.gpus.count > 0;
}

char *slim_marker_names(const struct slim_marker *m, struct arena *a)
{
	struct strlist words = {0};

	for (size_t i = 0; i < m->gpus.count; i++) {
		const char *gpu = m->gpus.items[i], *dot = strchr(gpu, '.'),
			   *plus = strchr(dot, '+');
		const int minor = plus ? (int)(plus - dot) - 1 : (int)strlen(dot + 1);
		strlist_addf(&words, a, "sm%.*s%.*s%s", (int)(dot - gpu), gpu, minor, dot + 1,
			     plus ? "+ptx" : "");
	}

	return strlist_join(&words, a, "+");
}

static bool all_of(const struct strlist *some, const struct strlist *list)
{
	for (size_t i = 0; i < some->count; i++)
		if (!strlist_contains(list, some->items[i]))
			return false;
	return true;
}

bool slim_marker_same(const struct slim_marker *left, const struct slim_marker *right)
{
	return all_of(&left->gpus, &right->gpus) && all_of(&right->gpus, &left->gpus);
}

bool slim_marker_others(const struct slim_marker *had, const struct slim_marker *wanted)
{
	return had->gpus.count && !slim_marker_same(had, wanted);
}

bool slim_marker_adds(const struct slim_marker *m, const struct slim_marker *more)
{
	return !all_of(&more->dropped, &m->dropped);
}

char *slim_marker_text(const struct slim_marker *m, struct arena *a)
{
	AUTO_JSON json_t *doc =
		json_pack("{s:i, s:o, s:s, s:s, s:o}", "schema", SCHEMA, "gpus",
			  json_from_strlist(&m->gpus), "release", m->release, "ptbuild", m->ptbuild,
			  "dropped", json_from_strlist(&m->dropped));
	AUTO_FREE char *text = json_dumps(doc, 0);

	if (!text)
		abort();
	return arena_printf(a, "%s\n", text);
}

struct reading {
	const json_t *doc;
	const char *what;
	struct arena *a;
	struct err *e;
};

static int bad(const struct reading *r, const char *why)
{
	return err_set(r->e, ERR_INTEGRITY, "'%s': %s", r->what, why);
}

static int bad_value(const struct reading *r, const char *key)
{
	return err_set(r->e, ERR_INTEGRITY, "'%s': unexpected value of '%s'", r->what, key);
}

/* "9.0", "9.0a" or "9.0+PTX". */
static bool is_gpu(const char *s)
{
	size_t major = strspn(s, "0123456789");

	if (major < 1 || major > 2 || *s == '0')
		return false;
	if (s[major] != '.' || !isdigit((unsigned char)s[major + 1]))
		return false;
	const char *end = s + major + 2;
	end += *end == 'a' || *end == 'f';
	return *end == '\0' || strcmp(end, "+PTX") == 0;
}

/* What is printed later holds no control characters. */
static bool is_word(const char *s)
{
	size_t n = 0;

	while (s[n] > ' ' && s[n] <= '~')
		n++;
	return s[n] == '\0' && n > 0 && n <= ITEM_MAX;
}

typedef bool (*fits_fn)(const char *);

static int read_list(const struct reading *r, const char *key, fits_fn fits, struct strlist *ret)
{
	const json_t *list = json_object_get(r->doc, key), *item;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > ITEMS_MAX)
		return bad_value(r, key);
	json_array_foreach(list, i, item)
	{
		const char *s = json_string_value(item);
		bool whole = s && strlen(s) == json_string_length(item);
		if (!whole || !fits(s))
			return bad_value(r, key);
		strlist_add(ret, r->a, s);
	}

	return 0;
}

static int read_word(const struct reading *r, const char *key, const char **ret)
{
	const char *s = json_text(r->doc, key);

	if (*s && !is_word(s))
		return bad_value(r, key);
	*ret = arena_strdup(r->a, s);
	return 0;
}

int slim_marker_parse(const struct file_bytes *in, struct arena *a, struct slim_marker *ret,
		      struct err *e)
{
	struct reading r = {.what = in->name, .a = a, .e = e};
	struct slim_marker m = {0};
	json_error_t why;

	if (in->size > FILE_MAX)
		return bad(&r, "it is larger than 64 KiB");
	AUTO_JSON json_t *doc = json_loadb(in->data, in->size, JSON_REJECT_DUPLICATES, &why);
	r.doc = doc;
	if (!doc)
		return err_set(e, ERR_INTEGRITY, "'%s':%d: invalid JSON", in->name, why.line);
	if (!json_is_object(doc) || json_int(doc, "schema") != SCHEMA)
		return bad(&r, "unknown schema");
	if (read_list(&r, "gpus", is_gpu, &m.gpus) < 0 ||
	    read_list(&r, "dropped", is_word, &m.dropped) < 0)
		return -1;
	if (read_word(&r, "release", &m.release) < 0 || read_word(&r, "ptbuild", &m.ptbuild) < 0)
		return -1;
	strlist_sort(&m.gpus);
	*ret = m;
	return 0;
}

int slim_marker_read(const char *top, const char *dist_info, struct arena *a,
		     struct slim_marker *ret, bool *ret_any, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const char *path = path_join(a, dist_info, SLIM_MARKER);

	*ret_any = false;
	if (!fs_exists(top, path))
		return 0;
	if (fs_read(top, path, FILE_MAX, &text, e) < 0 ||
	    slim_marker_parse(&(struct file_bytes){buf_cstr(&text), text.len, path}, a, ret, e) < 0)
		return -1;
	*ret_any = true;
	return 0;
}
