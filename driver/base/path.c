#include "base/path.h"

#include "base/buf.h"
#include "base/strlist.h"

char *path_join(struct arena *ar, const char *a, const char *b)
{
	size_t len = strlen(a);

	while (len && a[len - 1] == '/')
		len--;
	b += strspn(b, "/");
	/* "" stays relative, "/" stays the root. */
	const char *slash = *a ? "/" : "";
	if (!*b)
		return len || !*a ? arena_strndup(ar, a, len) : arena_strdup(ar, "/");
	size_t room = len + 1 + strlen(b) + 1;
	char *out = arena_alloc(ar, room);
	snprintf(out, room, "%.*s%s%s", (int)len, a, slash, b);
	return out;
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

char *path_dir(struct arena *ar, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return arena_strdup(ar, ".");
	while (slash > path && slash[-1] == '/')
		slash--;
	return slash == path ? arena_strdup(ar, "/")
			     : arena_strndup(ar, path, (size_t)(slash - path));
}

static bool is_dot(const char *s, size_t n)
{
	return n == 1 && s[0] == '.';
}

static bool is_dotdot(const char *s, size_t n)
{
	return n == 2 && s[0] == '.' && s[1] == '.';
}

bool path_is_safe_relative(const char *path)
{
	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	for (const char *p = path;; p++) {
		size_t n = strcspn(p, "/");
		if (n == 0 || is_dot(p, n) || is_dotdot(p, n))
			return false;
		p += n;
		if (!*p)
			return true;
	}
}

/* Walks the components of `path` from `depth` levels
 * below the top; -1 as soon as it climbs above it. */
static long walk_depth(const char *path, long depth)
{
	while (depth >= 0 && *path) {
		size_t n = strcspn(path, "/");
		if (is_dotdot(path, n))
			depth--;
		else if (n && !is_dot(path, n))
			depth++;
		path += n;
		path += strspn(path, "/");
	}

	return depth;
}

bool path_stays_inside(const char *from, const char *target)
{
	if (from[0] == '/' || target[0] == '/' || !target[0])
		return false;
	return walk_depth(target, walk_depth(from, 0)) >= 0;
}

char *path_from_here(struct arena *ar, const char *path)
{
	AUTO_FREE char *cwd = getcwd(NULL, 0);
	return cwd || *path == '/' ? path_absolute(ar, cwd ? cwd : "/", path)
				   : arena_strdup(ar, path);
}

char *path_absolute(struct arena *ar, const char *cwd, const char *path)
{
	const char *in = path[0] == '/' ? path : path_join(ar, cwd, path);
	char *out = arena_alloc(ar, strlen(in) + 2);
	size_t len = 0;

	while (*in) {
		size_t n = strcspn(in, "/");
		if (is_dotdot(in, n)) {
			while (len && out[--len] != '/')
				;
		} else if (n && !is_dot(in, n)) {
			out[len++] = '/';
			memcpy(out + len, in, n);
			len += n;
		}

		in += n;
		in += strspn(in, "/");
	}

	if (!len)
		out[len++] = '/';
	out[len] = '\0';
	return out;
}

const char *path_below(const char *path, const char *top)
{
	size_t n = strlen(top);
	return strncmp(path, top, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

bool path_has_suffix(const char *path, const char *suffix)
{
	size_t n = strlen(path), m = strlen(suffix);
	return n >= m && memcmp(path + n - m, suffix, m) == 0;
}

const char *shell_quoted(const char *word, struct arena *a)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
	AUTO_BUF struct buf out = {0};

	if (*word && strspn(word, plain) == strlen(word))
		return word;
	buf_addc(&out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			buf_addstr(&out, "'\\''");
		else
			buf_addc(&out, *word);
	}

	buf_addc(&out, '\'');
	return arena_strdup(a, buf_cstr(&out));
}

char *shell_line(const char *const *words, size_t count, struct arena *a)
{
	struct strlist quoted = {0};

	for (size_t i = 0; i < count; i++)
		strlist_ref(&quoted, a, shell_quoted(words[i], a));
	return strlist_join(&quoted, a, " ");
}
