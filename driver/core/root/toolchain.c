#include "core/root/toolkit.h"

#include "base/os.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"

/* against hanging alone: beside other work, or from a network, tools start slowly */
#define PROBE_SECONDS 600.0
#define MEMO_MAX 65536

static const struct {
	const char *name;
	bool in_key; /* it changes compiled bytes */
} known[] = {
	{"gcc", true},     {"g++", true},    {"clang", true},       {"ld", true},
	{"cmake", true},   {"ninja", true},  {"python3", true},     {"nvcc", false},
	{"ccache", false}, {"patch", false}, {"pkg-config", false}, {"git", false},
	{"mold", true},
};

/* The first word that begins with a digit, preferably one with a dot.
 * Parentheses are left out, since they hold the packager's own version. */
static char *version_in_line(const char *line, struct arena *a)
{
	char *plain = NULL;
	unsigned depth = 0;

	for (const char *p = line; *p; p++) {
		depth += *p == '(';
		depth -= *p == ')' && depth > 0;
		if (depth > 0 || !isdigit((unsigned char)*p) ||
		    (p > line && !isspace((unsigned char)p[-1])))
			continue;
		size_t n = strspn(p, "0123456789.");
		while (p[n - 1] == '.')
			n--;
		char *word = arena_strndup(a, p, n);
		if (strchr(word, '.'))
			return word;
		plain = plain ? plain : word;
	}

	return plain;
}

void toolchain_parse(const char *output, struct arena *a, const char **ret_version,
		     const char **ret_id)
{
	struct strlist lines = {0};

	*ret_version = *ret_id = "";
	strlist_split(&lines, a, output, "\n");
	for (size_t i = 0; i < lines.count && !strchr(*ret_version, '.'); i++) {
		const char *version = version_in_line(lines.items[i], a);
		if (version && (!**ret_version || strchr(version, '.'))) {
			*ret_version = version;
			*ret_id = lines.items[i];
		}
	}
}

int toolchain_ask(struct sandbox *s, const char *script, const struct strlist *args,
		  const struct run *run, struct strlist *ret, struct err *e)
{
	/* Killed, as for memory, is no answer: another key and another wheel would come of it. */
	static const char ask[] =
		"ask() { for try in 1 2; do text=$(\"$@\" 2>/dev/null); status=$?; "
		"[ $status -eq 0 ] && return; done; [ $status -le 128 ] || [ $status -gt 192 ] || "
		"{ echo \"'$*' was killed by signal $((status - 128))\" >&2; exit 1; }; }";
	struct arena *a = s->arena;
	AUTO_BUF struct buf out = {0}, errors = {0};
	struct strlist argv = {0};
	struct proc_spec spec = {.out = &out, .err = &errors, .timeout_s = PROBE_SECONDS};
	struct proc_result res;
	const char *shell = root_find_program(s->root, "sh", a);

	if (!shell)
		return err_set(e, ERR_SYSTEM, "the root '%s' has no sh", s->root->dir);
	const char *const words[] = {shell, "-c", arena_printf(a, "%s\n%s\nexit 0", ask, script),
				     "sh"};
	strlist_refs(&argv, a, words, ARRAY_LEN(words));
	strlist_append(&argv, a, args);
	kvlist_set(&s->env, a, "PATH", ROOT_PATH);
	kvlist_set(&s->env, a, "LC_ALL", "C");
	kvlist_set(&s->env, a, "HOME", SANDBOX_HOME);
	if (sandbox_run(s, argv.items, &spec, run, &res, e) < 0)
		return err_wrap(e, "cannot ask the tools of the root '%s' for their versions",
				s->root->dir);
	if (res.status != 0)
		return err_set(
			e, ERR_SYSTEM,
			"asking the tools for their versions failed with exit status %d: %.300s",
			res.status, buf_cstr(&errors));
	const char *first = strchr(buf_cstr(&out), *TOOLCHAIN_MARK);
	strlist_split(ret, a, first ? first : "", TOOLCHAIN_MARK);
	return 0;
}

/* Each answer is a tool's name on a line, then what the tool says. */
static void take_answers(struct toolchain *t, const struct strlist *answers, struct arena *a)
{
	for (size_t k = 0; k < answers->count; k++) {
		const char *answer = answers->items[k];
		size_t n = strcspn(answer, "\n");
		for (size_t i = 0; i < t->count; i++)
			if (strlen(t->tools[i].name) == n &&
			    strncmp(t->tools[i].name, answer, n) == 0)
				toolchain_parse(answer + n, a, &t->tools[i].version,
						&t->tools[i].id);
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
static int find_tools(const struct root *root, struct arena *a, struct toolchain **ret,
		      struct err *e)
{
	struct toolchain *t = arena_alloc(a, sizeof(*t));

	t->count = ARRAY_LEN(known);
	t->tools = arena_array(a, t->count, sizeof(*t->tools));
	t->root = root;
	t->fingerprint = arena_strdup(a, root->fingerprint);
	if (root_glibc(root, a, &t->glibc, e) < 0)
		return -1;
	for (size_t i = 0; i < t->count; i++)
		t->tools[i] = (struct tool){.name = known[i].name,
					    .path = root_find_program(root, known[i].name, a),
					    .version = "",
					    .id = ""};
	*ret = t;
	return 0;
}

int toolchain_probe(const struct root *root, enum sandbox_kind kind, const struct run *run,
		    struct arena *a, const struct toolchain **ret, struct err *e)
{
	/* A tool that fails says nothing. */
	static const char script[] =
		"while [ $# -gt 0 ]; do printf '\\036%s\\n' \"$1\"; ask \"$2\" --version; "
		"[ $status -ne 0 ] || printf '%s\\n' \"$text\"; shift 2; done";
	struct toolchain *t;
	struct strlist args = {0}, answers = {0};
	struct sandbox s;

	if (find_tools(root, a, &t, e) < 0)
		return -1;
	for (size_t i = 0; i < t->count; i++) {
		if (!t->tools[i].path)
			continue;
		strlist_ref(&args, a, t->tools[i].name);
		strlist_ref(&args, a, t->tools[i].path);
	}

	if (sandbox_init(&s, kind, root, a, e) < 0 ||
	    toolchain_ask(&s, script, &args, run, &answers, e) < 0)
		return -1;
	take_answers(t, &answers, a);
	t->text = key_text(t, a);
	*ret = t;
	return 0;
}

/* What the answers depend on: two lines for the root, and one per tool with
 * what changes when the tool is replaced. False when a tool cannot be examined. */
static bool describe(const struct toolchain *t, const struct root *root, enum sandbox_kind kind,
		     struct buf *out)
{
	AUTO_ARENA struct arena a = {0};

	buf_printf(out, "%s %s\n%s\n", sandbox_kind_name(kind), t->fingerprint, root->dir);
	for (size_t i = 0; i < t->count; i++) {
		const char *path = t->tools[i].path,
			   *real = path ? root_resolve(root, path, &a) : NULL;
		struct stat st;
		if (!path) {
			buf_printf(out, "%s absent\n", t->tools[i].name);
			continue;
		}

		if (!real || stat(root_host_path(root, real, &a), &st) < 0)
			return false;
		buf_printf(out, "%s %s %s %llu %llu %lld.%09ld %lld.%09ld\n", t->tools[i].name,
			   path, real, (unsigned long long)st.st_ino,
			   (unsigned long long)st.st_size, (long long)st.st_mtim.tv_sec,
			   st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	}

	return true;
}

/* The file: a digest of the rest, the description, then
 * an answer per tool, cut to the one line that counts. */
void toolchain_remember(const struct toolchain *t, const struct root *root, enum sandbox_kind kind,
			const char *memo)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};
	char digest[DIGEST_HEX_LEN + 1];

	if (!describe(t, root, kind, &text))
		return;
	for (size_t i = 0; i < t->count; i++) {
		if (t->tools[i].path && !*t->tools[i].id)
			return;
		if (t->tools[i].path)
			buf_printf(&text, TOOLCHAIN_MARK "%s\n%s\n", t->tools[i].name,
				   t->tools[i].id);
	}

	digest_data(text.data, text.len, digest);
	const char *whole = arena_printf(&a, "%s\n%s", digest, buf_cstr(&text));
	(void)!fs_write(TRUSTED, memo, whole, strlen(whole), 0644, ERR_IGNORED);
}

const struct toolchain *toolchain_recall(const struct root *root, enum sandbox_kind kind,
					 const char *memo, struct arena *a)
{
	AUTO_BUF struct buf text = {0}, now = {0};
	char digest[DIGEST_HEX_LEN + 1];
	struct toolchain *t;

	if (find_tools(root, a, &t, ERR_IGNORED) < 0 || !fs_exists(TRUSTED, memo) ||
	    fs_read(TRUSTED, memo, MEMO_MAX, &text, ERR_IGNORED) < 0 ||
	    !describe(t, root, kind, &now))
		return NULL;
	char *all = arena_strdup(a, buf_cstr(&text)), *body = strchr(all, '\n');
	if (!body || body - all != DIGEST_HEX_LEN)
		return NULL;
	*body++ = '\0';
	digest_data(body, strlen(body), digest);
	if (strcmp(all, digest) != 0 || strncmp(body, buf_cstr(&now), now.len) != 0 ||
	    body[now.len] != *TOOLCHAIN_MARK)
		return NULL;
	struct strlist answers = {0};
	strlist_split(&answers, a, body + now.len, TOOLCHAIN_MARK);
	take_answers(t, &answers, a);
	t->text = key_text(t, a);
	return t;
}

const struct tool *toolchain_get(const struct toolchain *t, const char *name)
{
	return text_search(name, t->tools, t->count, sizeof(*t->tools));
}
