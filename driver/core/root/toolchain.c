#include "core/root/toolchain.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"

#define PROBE_SECONDS 60.0
#define MARK '\036' /* record separator: no tool prints one */
#define MEMO_MAX 65536

static const struct {
	const char *name;
	bool in_key; /* it changes compiled bytes */
} known[] = {
	{"gcc", true},    {"g++", true},         {"clang", true}, {"ld", true},      {"cmake", true},
	{"ninja", true},  {"python3", true},     {"nvcc", false}, {"ccache", false}, {"patchelf", false},
	{"patch", false}, {"pkg-config", false}, {"git", false},  {"mold", true},
};

/* version_in_line: the first word that begins with a digit, parentheses left out: they hold the packager's own version.
 * A word with a dot wins over one without. */
static char *version_in_line(const char *line, size_t len, struct arena *a)
{
	const char *plain = NULL;
	size_t plain_len = 0;
	unsigned depth = 0;
	for (size_t i = 0; i < len; i++) {
		if (line[i] == '(')
			depth++;
		else if (line[i] == ')' && depth > 0)
			depth--;
		bool starts = i == 0 || isspace((unsigned char)line[i - 1]);
		if (depth > 0 || !starts || !isdigit((unsigned char)line[i]))
			continue;
		size_t n = 0;
		while (i + n < len &&
		       (isdigit((unsigned char)line[i + n]) ||
			(line[i + n] == '.' && i + n + 1 < len && isdigit((unsigned char)line[i + n + 1]))))
			n++;
		if (memchr(line + i, '.', n))
			return arena_strndup(a, line + i, n);
		if (!plain) {
			plain = line + i;
			plain_len = n;
		}
	}
	return plain ? arena_strndup(a, plain, plain_len) : NULL;
}

void toolchain_parse(const char *output, struct arena *a, const char **ret_version, const char **ret_id)
{
	const char *plain = NULL, *plain_line = NULL;
	for (const char *p = output; *p;) {
		size_t len = strcspn(p, "\n");
		const char *version = version_in_line(p, len, a);
		if (version && strchr(version, '.')) {
			*ret_version = version;
			*ret_id = arena_strndup(a, p, len);
			return;
		}
		if (version && !plain) {
			plain = version;
			plain_line = arena_strndup(a, p, len);
		}
		p += len + (p[len] == '\n');
	}
	*ret_version = plain ? plain : "";
	*ret_id = plain ? plain_line : "";
}

/* One shell prints a block for each tool: its name behind a mark, then what it says. A tool that fails says nothing. */
static int run_tools(const struct root *root, enum sandbox_kind kind, const struct tool *tools, size_t count,
		     const struct run *run, struct arena *a, struct buf *out, struct err *e)
{
	static const char script[] =
		"while [ $# -gt 0 ]; do printf '\\036%s\\n' \"$1\"; "
		"text=$(\"$2\" --version 2>/dev/null) && printf '%s\\n' \"$text\"; shift 2; done; exit 0";
	struct strlist argv = {0};
	struct sandbox s;
	struct proc_spec spec = {.out = out, .err = out, .timeout_s = PROBE_SECONDS};
	struct proc_result res;
	const char *shell = root_find_program(root, "sh", a);
	if (!shell)
		return err_set(e, ERR_SYSTEM, "the root '%s' has no sh", root->dir);
	if (sandbox_init(&s, kind, root, a, e) < 0)
		return -1;
	kvlist_set(&s.env, a, "PATH", ROOT_PATH);
	kvlist_set(&s.env, a, "LC_ALL", "C");
	kvlist_set(&s.env, a, "HOME", SANDBOX_HOME);
	strlist_ref(&argv, a, shell);
	strlist_ref(&argv, a, "-c");
	strlist_ref(&argv, a, script);
	strlist_ref(&argv, a, "sh");
	for (size_t i = 0; i < count; i++) {
		if (!tools[i].path)
			continue;
		strlist_ref(&argv, a, tools[i].name);
		strlist_ref(&argv, a, tools[i].path);
	}
	if (sandbox_run(&s, argv.items, &spec, run, &res, e) < 0)
		return -1;
	if (res.status != 0)
		return err_set(e, ERR_SYSTEM, "asking the tools for their versions failed with exit status %d: %.300s",
			       res.status, buf_cstr(out));
	return 0;
}

static void take_blocks(struct toolchain *t, char *text, struct arena *a)
{
	for (char *block = strchr(text, MARK); block;) {
		char *name = block + 1;
		char *next = strchr(name, MARK);
		if (next)
			*next = '\0';
		char *body = strchr(name, '\n');
		if (body) {
			*body++ = '\0';
			for (size_t i = 0; i < t->count; i++)
				if (strcmp(t->tools[i].name, name) == 0)
					toolchain_parse(body, a, &t->tools[i].version, &t->tools[i].id);
		}
		block = next;
	}
}

static const char *key_text(const struct toolchain *t, struct arena *a)
{
	struct strlist lines = {0};
	for (size_t i = 0; i < t->count; i++)
		if (known[i].in_key && t->tools[i].path)
			strlist_addf(&lines, a, "%s: %s\n", t->tools[i].name, t->tools[i].id);
	strlist_sort(&lines);
	return strlist_join(&lines, a, "");
}

/* The known tools, and where they are. */
static struct toolchain *find_tools(const struct root *root, struct arena *a)
{
	struct toolchain *t = arena_alloc(a, sizeof(*t));
	t->count = ARRAY_LEN(known);
	t->tools = arena_array(a, t->count, sizeof(*t->tools));
	t->root_id = root->id;
	t->fingerprint = arena_strdup(a, root->fingerprint);
	for (size_t i = 0; i < t->count; i++)
		t->tools[i] = (struct tool){.name = known[i].name,
					    .path = root_find_program(root, known[i].name, a),
					    .version = "",
					    .id = ""};
	return t;
}

int toolchain_probe(const struct root *root, enum sandbox_kind kind, const struct run *run, struct arena *a,
		    const struct toolchain **ret, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	struct toolchain *t = find_tools(root, a);
	if (run_tools(root, kind, t->tools, t->count, run, a, &out, e) < 0)
		return -1;
	take_blocks(t, arena_strdup(a, buf_cstr(&out)), a);
	t->text = key_text(t, a);
	*ret = t;
	return 0;
}

/* What the answers depend on: two lines for the root, and one for each tool with what changes when somebody replaces
 * it. False when a tool cannot be looked at. */
static bool looks(const struct toolchain *t, const struct root *root, enum sandbox_kind kind, struct arena *a,
		  struct buf *out)
{
	buf_printf(out, "%s %s\n%s\n", sandbox_kind_name(kind), t->fingerprint, root->dir);
	for (size_t i = 0; i < t->count; i++) {
		const char *path = t->tools[i].path, *real = path ? root_resolve(root, path, a) : NULL;
		struct stat st;
		if (!path) {
			buf_printf(out, "%s absent\n", t->tools[i].name);
			continue;
		}
		if (!real || stat(root_host_path(root, real, a), &st) < 0)
			return false;
		buf_printf(out, "%s %s %s %llu %llu %lld.%09ld %lld.%09ld\n", t->tools[i].name, path, real,
			   (unsigned long long)st.st_ino, (unsigned long long)st.st_size, (long long)st.st_mtim.tv_sec,
			   st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	}
	return true;
}

/* A digest of all behind it, the looks, then a block for each tool as the probe's script prints them, with the one line
 * that counts. */
void toolchain_remember(const struct toolchain *t, const struct root *root, enum sandbox_kind kind, const char *memo)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};
	char digest[DIGEST_HEX_LEN + 1];
	struct err ignored = {0};
	if (!looks(t, root, kind, &a, &text))
		return;
	for (size_t i = 0; i < t->count; i++) {
		if (t->tools[i].path && !*t->tools[i].id)
			return;
		if (t->tools[i].path)
			buf_printf(&text, "%c%s\n%s\n", MARK, t->tools[i].name, t->tools[i].id);
	}
	digest_data(text.data, text.len, digest);
	const char *whole = arena_printf(&a, "%s\n%s", digest, buf_cstr(&text));
	if (fs_write_atomic(memo, whole, strlen(whole), 0644, &ignored) < 0)
		err_clear(&ignored);
}

const struct toolchain *toolchain_recall(const struct root *root, enum sandbox_kind kind, const char *memo,
					 struct arena *a)
{
	AUTO_BUF struct buf text = {0}, now = {0};
	char digest[DIGEST_HEX_LEN + 1];
	struct err ignored = {0};
	struct toolchain *t = find_tools(root, a);
	if (!fs_exists(memo) || fs_read(memo, MEMO_MAX, &text, &ignored) < 0 || !looks(t, root, kind, a, &now)) {
		err_clear(&ignored);
		return NULL;
	}
	char *all = arena_strdup(a, buf_cstr(&text)), *body = strchr(all, '\n');
	if (!body || body - all != DIGEST_HEX_LEN)
		return NULL;
	*body++ = '\0';
	digest_data(body, strlen(body), digest);
	if (strcmp(all, digest) != 0 || strncmp(body, buf_cstr(&now), now.len) != 0 || body[now.len] != MARK)
		return NULL;
	take_blocks(t, body + now.len, a);
	t->text = key_text(t, a);
	return t;
}

const struct tool *toolchain_get(const struct toolchain *t, const char *name)
{
	for (size_t i = 0; i < t->count; i++)
		if (strcmp(t->tools[i].name, name) == 0)
			return &t->tools[i];
	return NULL;
}
