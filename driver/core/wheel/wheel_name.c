#include "core/wheel/wheel.h"

#include "base/sys/fs.h"

struct reader {
	const char *at;
	struct buf *out;
};

static bool is_separator(char c)
{
	return c && strchr("-_.", c);
}

/* A number without its leading zeros; none is zero. */
static void take_number(struct reader *r)
{
	size_t n = strspn(r->at, "0123456789"), zeros = strspn(r->at, "0");

	if (zeros >= n)
		buf_addc(r->out, '0');
	else
		buf_add(r->out, r->at + zeros, n - zeros);
	r->at += n;
}

/* Zeros at the end say nothing: 1.0 is 1. */
static bool take_release(struct reader *r)
{
	size_t kept = 0;

	for (bool first = true;; first = false) {
		if (!isdigit((unsigned char)*r->at))
			return false;
		size_t before = r->out->len;
		take_number(r);
		if (first || r->out->len - before != 1 || r->out->data[before] != '0')
			kept = r->out->len;
		if (*r->at != '.' || !isdigit((unsigned char)r->at[1]))
			break;
		buf_addc(r->out, *r->at++);
	}

	r->out->len = kept;
	return true;
}

/* "-rc.1" as "rc1", "rc." as "rc0": one of these words,
 * which are longest first where one begins with another. */
static bool take_word(struct reader *r, const char *const (*words)[2], size_t count)
{
	const char *word = r->at + is_separator(*r->at);

	for (size_t i = 0; i < count; i++) {
		if (strncmp(word, words[i][0], strlen(words[i][0])) != 0)
			continue;
		word += strlen(words[i][0]);
		buf_addstr(r->out, words[i][1]);
		r->at = word + is_separator(*word);
		take_number(r);
		return true;
	}

	return false;
}

static bool take_local(struct reader *r)
{
	for (char mark = '+';; mark = '.') {
		size_t n = strspn(++r->at, "abcdefghijklmnopqrstuvwxyz0123456789");
		if (!n)
			return false;
		buf_addc(r->out, mark);
		if (strspn(r->at, "0123456789") == n) {
			take_number(r);
		} else {
			buf_add(r->out, r->at, n);
			r->at += n;
		}

		if (!is_separator(*r->at))
			return true;
	}
}

static bool take_all(struct reader *r)
{
	static const char *const pre[][2] = {{"alpha", "a"}, {"beta", "b"}, {"preview", "rc"},
					     {"pre", "rc"},  {"rc", "rc"},  {"a", "a"},
					     {"b", "b"},     {"c", "rc"}};
	static const char *const post[][2] = {{"post", ".post"}, {"rev", ".post"}, {"r", ".post"}};
	static const char *const dev[][2] = {{"dev", ".dev"}};
	size_t digits = strspn(r->at, "0123456789");

	if (digits && r->at[digits] == '!') {
		take_number(r);
		buf_addc(r->out, *r->at++);
		if (strcmp(buf_cstr(r->out), "0!") == 0)
			buf_reset(r->out);
	}

	if (!take_release(r))
		return false;
	take_word(r, pre, ARRAY_LEN(pre));
	if (!take_word(r, post, ARRAY_LEN(post)) && *r->at && strchr("-_", *r->at) &&
	    isdigit((unsigned char)r->at[1])) {
		r->at++;
		buf_addstr(r->out, ".post");
		take_number(r);
	}

	take_word(r, dev, ARRAY_LEN(dev));
	return (*r->at != '+' || take_local(r)) && !*r->at;
}

char *wheel_version_key(const char *version, struct arena *a)
{
	struct buf AUTO_BUF out = {0};
	char *text = arena_strdup(a, version + strspn(version, " \t"));

	for (char *c = text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	for (size_t n = strlen(text); n && strchr(" \t", text[n - 1]); n--)
		text[n - 1] = '\0';
	struct reader r = {.at = *text == 'v' ? text + 1 : text, .out = &out};
	return take_all(&r) ? arena_strdup(a, buf_cstr(&out)) : NULL;
}

bool wheel_same_version(const char *left, const char *right, struct arena *a)
{
	const char *x = wheel_version_key(left, a), *y = wheel_version_key(right, a);
	return strcmp(x ? x : left, y ? y : right) == 0;
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"

static int bad(struct err *e, const char *file, const char *what)
{
	err_set(e, ERR_INTEGRITY, "not a wheel name: '%s': %s", file, what);
	return err_hint(e, "a wheel is called NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl");
}

/* Only ASCII letters and digits, and those in `more`. */
static bool made_of(const char *s, const char *more)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (!(c < 0x80 && isalnum(c)) && !strchr(more, c))
			return false;
	}

	return true;
}

static bool ends_well(const char *s)
{
	size_t n = strlen(s);
	return n && isalnum((unsigned char)s[0]) && isalnum((unsigned char)s[n - 1]);
}

/* Several tags in one are joined by dots. */
static bool good_tag(const char *s)
{
	return made_of(s, "_.") && ends_well(s) && !strstr(s, "..");
}

static const char *check_parts(const struct wheel_name *n)
{
	/* Names written before the rule of lower case and
	 * underscores are in use, so dots and capitals pass. */
	if (!made_of(n->dist, "_.") || !ends_well(n->dist))
		return "the distribution name may hold letters, digits, '_' and '.' only";
	if (!isdigit((unsigned char)n->version[0]) || !made_of(n->version, "._!+") ||
	    !ends_well(n->version) || strstr(n->version, ".."))
		return "the version is not well-formed";
	const char *plus = strchr(n->version, '+');
	if (plus && (strchr(plus + 1, '+') || strchr(plus + 1, '!') || !ends_well(plus + 1)))
		return "the version's local label is not well-formed";
	if (*n->build && (!isdigit((unsigned char)n->build[0]) || !made_of(n->build, "_.")))
		return "the build tag must begin with a digit and hold letters, digits, '_' and "
		       "'.' only";
	if (!good_tag(n->python))
		return "the Python tag is not well-formed";
	if (!good_tag(n->abi))
		return "the ABI tag is not well-formed";
	if (!good_tag(n->platform))
		return "the platform tag is not well-formed";
	return n->variant[strspn(n->variant, LOWER "0123456789_.")]
		       ? "the variant's label may hold lower-case letters, digits, '_' and '.' only"
		       : NULL;
}

int wheel_name_parse(const char *file, struct arena *a, struct wheel_name *ret, struct err *e)
{
	const char *base = path_base(file);

	if (!path_has_suffix(base, ".whl"))
		return bad(e, base, "it does not end in .whl");
	char *text = arena_strndup(a, base, strlen(base) - strlen(".whl"));
	const char *part[7];
	size_t count = 0;
	for (char *rest = text, *piece; (piece = strsep(&rest, "-"));) {
		if (count == ARRAY_LEN(part))
			return bad(e, base, "it has more than seven parts");
		part[count++] = piece;
	}

	if (count < 5)
		return bad(e, base, "it has fewer than five parts");
	for (size_t i = 2; i < count; i++)
		if (!*part[i])
			return bad(e, base, "a part of it is empty");
	/* A Python tag begins with two letters and more, a build tag does not. */
	bool build = count == 7 || (count == 6 && strspn(part[2], LOWER) < 2);
	size_t tags = build ? 3 : 2;
	struct wheel_name n = {part[0],
			       part[1],
			       build ? part[2] : "",
			       part[tags],
			       part[tags + 1],
			       part[tags + 2],
			       count > tags + 3 ? part[tags + 3] : ""};
	for (size_t i = tags; i < tags + 3; i++)
		for (char *c = text + (part[i] - text); *c; c++)
			*c = (char)tolower((unsigned char)*c);
	const char *what = check_parts(&n);
	if (what)
		return bad(e, base, what);
	*ret = n;
	return 0;
}

char *wheel_name_format(const struct wheel_name *n, struct arena *a)
{
	return arena_printf(a, "%s-%s%s%s-%s-%s-%s%s%s.whl", n->dist, n->version,
			    *n->build ? "-" : "", n->build, n->python, n->abi, n->platform,
			    *n->variant ? "-" : "", n->variant);
}

char *wheel_normalize(const char *dist, struct arena *a)
{
	char *out = arena_alloc(a, strlen(dist) + 1), *to = out;

	for (const char *s = dist; *s; s++) {
		if (!strchr("-_.", *s))
			*to++ = (char)tolower((unsigned char)*s);
		else if (s == dist || !strchr("-_.", s[-1]))
			*to++ = '_';
	}

	return out;
}

char *wheel_index_name(const char *dist, struct arena *a)
{
	char *name = wheel_normalize(dist, a);

	for (char *c = name; *c; c++)
		*c = *c == '_' ? '-' : *c;
	return name;
}

char *wheel_dist_info(const struct wheel_name *n, struct arena *a)
{
	return arena_printf(a, "%s-%s.dist-info", n->dist, n->version);
}

int wheel_find_dist_info(const char *tree, struct arena *a, const char **ret, struct err *e)
{
	struct strlist names = {0};
	const char *found = NULL;

	if (fs_list(TRUSTED, tree, a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (!path_has_suffix(names.items[i], ".dist-info"))
			continue;
		if (found)
			return err_set(e, ERR_INTEGRITY,
				       "'%s' has two .dist-info directories, '%s' and '%s'", tree,
				       found, names.items[i]);
		found = names.items[i];
	}

	if (!found) {
		err_set(e, ERR_INTEGRITY, "'%s' has no .dist-info directory", tree);
		return err_hint(e, "it must be an unpacked wheel");
	}

	*ret = found;
	return 0;
}

int wheel_zip_dist_info(const struct zip_reader *z, struct arena *a, const char **ret,
			struct err *e)
{
	struct strlist found = {0};

	for (size_t i = 0; i < zip_count(z); i++) {
		const char *name = zip_at(z, i)->name, *slash = strchr(name, '/');
		const char *top = arena_strndup(a, name, slash ? (size_t)(slash - name) : 0);
		if (path_has_suffix(top, ".dist-info"))
			strlist_once(&found, a, top);
	}

	if (found.count != 1)
		return err_set(e, ERR_INTEGRITY, "has %zu .dist-info directories, not one",
			       found.count);
	*ret = found.items[0];
	return 0;
}

int wheel_zip_text(const struct zip_reader *z, const char *path, uint64_t max, struct buf *out,
		   struct err *e)
{
	const struct zip_entry *en = zip_find(z, path);
	return en ? zip_read(z, en, max, out, e)
		  : err_set(e, ERR_INTEGRITY, "it has no '%s'", path);
}

bool wheel_is_dist_info(const struct wheel_name *n, const char *dir, struct arena *a)
{
	const char *stem = arena_strndup(a, dir, strlen(dir) - strlen(".dist-info")),
		   *dash = strrchr(stem, '-');

	return dash && wheel_same_version(dash + 1, n->version, a) &&
	       strcmp(wheel_normalize(arena_strndup(a, stem, (size_t)(dash - stem)), a),
		      wheel_normalize(n->dist, a)) == 0;
}
