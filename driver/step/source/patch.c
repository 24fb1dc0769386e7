#include "step/source/source.h"

#include <limits.h>

#include "base/sys/fs.h"
#include "base/sys/proc.h"

struct scan {
	const char *name;
	const char *pos, *end;
	unsigned line_no;
	struct arena *arena;
	struct strlist *files;
	struct strlist changed; /* targets of diffs that had hunks */
	const char *target;     /* of the diff now, NULL before the first "+++" */
	bool any;               /* a change was seen */
};

static int deny(const struct scan *s, const char *what, const char *path, struct err *e)
{
	return err_set(e, ERR_INTEGRITY, "patch '%s', line %u: %s '%.200s'", s->name, s->line_no,
		       what, path);
}

static bool next_line(struct scan *s, const char **line, size_t *len)
{
	if (s->pos >= s->end)
		return false;
	const char *nl = memchr(s->pos, '\n', (size_t)(s->end - s->pos));
	*line = s->pos;
	*len = (size_t)((nl ? nl : s->end) - s->pos);
	s->pos = nl ? nl + 1 : s->end;
	s->line_no++;
	return true;
}

static void skip(const char **text, size_t *len, const char *what)
{
	for (; *len && **text && strchr(what, **text); (*len)--)
		(*text)++;
}

/* A name in C quotes, as git writes unusual ones; NULL if it is malformed. */
static char *unquote(const char *s, struct arena *a)
{
	static const char from[] = "abtnvfr\"\\", to[] = "\a\b\t\n\v\f\r\"\\";
	char *out = arena_alloc(a, strlen(s) + 1);
	size_t n = 0;

	for (s++; *s && *s != '"'; s++) {
		const char *p;
		if (*s != '\\') {
			out[n++] = *s;
		} else if (*++s && (p = strchr(from, *s))) {
			out[n++] = to[p - from];
		} else if (s[0] >= '0' && s[0] <= '3' && s[1] >= '0' && s[1] <= '7' &&
			   s[2] >= '0' && s[2] <= '7') {
			out[n++] = (char)((s[0] - '0') * 64 + (s[1] - '0') * 8 + (s[2] - '0'));
			s += 2;
		} else {
			return NULL;
		}
	}

	return *s == '"' ? out : NULL;
}

/* Adds one reading of a name, with `strip` without its first component. */
static int check_path(struct scan *s, const char *path, bool strip, struct err *e)
{
	if (strcmp(path, "/dev/null") == 0)
		return 0;
	if (!path_is_safe_relative(path))
		return deny(s, "unsafe path", path, e);
	const char *slash = strchr(path, '/');
	const char *file = strip && slash ? slash + 1 : path;
	if (!strlist_contains(s->files, file))
		strlist_add(s->files, s->arena, file);
	return 0;
}

/* The rest of a header line. patch(1) guesses where the
 * name ends (a tab, a blank, a date): checks each reading. */
static int check_name(struct scan *s, const char *text, size_t len, bool strip, struct err *e)
{
	skip(&text, &len, " \t");
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	char *all = arena_strndup(s->arena, text, len);
	if (strlen(all) != len)
		return deny(s, "NUL byte in the name", all, e);
	if (all[0] == '"') {
		char *plain = unquote(all, s->arena);
		return plain ? check_path(s, plain, strip, e)
			     : deny(s, "malformed quoted name", all, e);
	}

	size_t tab = strcspn(all, "\t"), blank = strcspn(all, " \t");
	if (tab == 0)
		return deny(s, "no name in", all, e);
	if (check_path(s, arena_strndup(s->arena, all, tab), strip, e) < 0)
		return -1;
	return blank < tab ? check_path(s, arena_strndup(s->arena, all, blank), strip, e) : 0;
}

/* Both names of "diff --git a/x b/x". Names may hold blanks, so each word is checked. */
static int check_git(struct scan *s, const char *text, size_t len, struct err *e)
{
	char *all = arena_strndup(s->arena, text, len);

	for (char *p = all; *p;) {
		p += strspn(p, " \t\r");
		size_t n = strcspn(p, " \t\r");
		if (*p == '"') {
			char *close = p + 1;
			while (*close && *close != '"')
				close += *close == '\\' && close[1] ? 2 : 1;
			n = (size_t)(close - p) + (*close == '"');
		}

		if (n > 0 && check_name(s, p, n, true, e) < 0)
			return -1;
		p += n;
	}

	return 0;
}

static bool starts(const char *line, size_t len, const char *with)
{
	size_t n = strlen(with);
	return len >= n && memcmp(line, with, n) == 0;
}

/* A "+++" line: the file that the next hunks change. */
static void start_diff(struct scan *s, const char *text, size_t len)
{
	size_t n = 0;

	skip(&text, &len, " \t");
	while (n < len && text[n] != '\t' && text[n] != '\r')
		n++;
	s->target = arena_strndup(s->arena, text, n);
}

/* Whether a line is a header that changes something without a hunk. */
static bool changes_without_hunk(const char *line, size_t len)
{
	static const char *const headers[] = {"old mode ", "rename to ", "copy to ",
					      "new file mode ", "deleted file mode "};

	for (size_t i = 0; i < ARRAY_LEN(headers); i++)
		if (starts(line, len, headers[i]))
			return true;
	return false;
}

/* One line outside hunks. patch(1) also takes indented headers. */
static int header(struct scan *s, const char *line, size_t len, struct err *e)
{
	static const struct {
		const char *word;
		bool strip;
	} names[] = {
		{"--- ", true},        {"+++ ", true},          {"*** ", true},
		{"---\t", true},       {"+++\t", true},         {"***\t", true},
		{"Index:", true},      {"rename from ", false}, {"rename to ", false},
		{"copy from ", false}, {"copy to ", false},
	};

	skip(&line, &len, " \tX");
	if (starts(line, len, "GIT binary patch"))
		return deny(s, "binary change, which patch(1) cannot make, at", "GIT binary patch",
			    e);
	if ((starts(line, len, "new file mode 12") || starts(line, len, "new mode 12") ||
	     starts(line, len, "old mode 12") || starts(line, len, "deleted file mode 12")))
		return deny(s, "symbolic link made or changed at",
			    arena_strndup(s->arena, line, len), e);
	if (changes_without_hunk(line, len))
		s->any = true;
	if (starts(line, len, "diff --git ")) {
		s->target = NULL;
		return check_git(s, line + strlen("diff --git "), len - strlen("diff --git "), e);
	}

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i].word);
		if (!starts(line, len, names[i].word))
			continue;
		if (len == n || (names[i].word[0] != 'I' && line[n] == '\r'))
			return 0; /* "--- " alone ends the text of a mail */
		if (names[i].word[0] == '+')
			start_diff(s, line + n, len - n);
		return check_name(s, line + n, len - n, names[i].strip, e);
	}

	return 0;
}

/* "A,B" of a range; B is 1 if absent. */
static bool take_range(const char **p, const char *end, unsigned long *ret_count)
{
	unsigned long v[2] = {0, 1};

	for (unsigned i = 0; i < 2; i++) {
		const char *from;
		if (i == 1 && (*p == end || **p != ','))
			break;
		*p += i;
		from = *p;
		for (v[i] = 0; *p < end && isdigit((unsigned char)**p) && v[i] < UINT_MAX; (*p)++)
			v[i] = v[i] * 10 + (unsigned long)(**p - '0');
		if (*p == from || v[i] >= UINT_MAX)
			return false;
	}

	*ret_count = v[1];
	return true;
}

/* Whether the line is "@@ -A,B +C,D @@". */
static bool hunk_counts(const char *line, size_t len, unsigned long *old, unsigned long *new)
{
	const char *p = line + 4, *end = line + len;

	if (!starts(line, len, "@@ -") || !take_range(&p, end, old) ||
	    !starts(p, (size_t)(end - p), " +"))
		return false;
	p += 2;
	return take_range(&p, end, new) && starts(p, (size_t)(end - p), " @@");
}

/* Reads as many lines as the head announces, whatever they look like. */
static int hunk(struct scan *s, unsigned long old, unsigned long new, struct err *e)
{
	unsigned at = s->line_no;
	const char *line;
	size_t len;

	while (old > 0 || new > 0) {
		bool got = next_line(s, &line, &len);
		char c = got && len > 0 && line[0] != '\r' ? line[0] : ' ';
		if (got && c == '\\')
			continue;
		bool takes_old = c == ' ' || c == '-' || c == '\t';
		bool takes_new = c == ' ' || c == '+' || c == '\t';
		bool is_hunk_line = got && (takes_old || takes_new);
		bool too_many = (takes_old && old == 0) || (takes_new && new == 0);
		if (!is_hunk_line || too_many)
			return err_set(
				e, ERR_INTEGRITY,
				"patch '%s', line %u: the hunk is truncated or damaged at line %u",
				s->name, at, s->line_no);
		old -= takes_old;
		new -= takes_new;
	}

	s->any = true;
	return 0;
}

static int first_hunk(struct scan *s, struct err *e)
{
	if (!s->target)
		return deny(s, "no file named for the hunk at", "@@", e);
	if (strcmp(s->target, "/dev/null") == 0)
		return 0;
	if (strlist_contains(&s->changed, s->target))
		return deny(s, "a second set of changes to", s->target, e);
	strlist_add(&s->changed, s->arena, s->target);
	return 0;
}

int patch_scan(const char *name, const char *text, size_t len, struct arena *a,
	       struct strlist *ret_files, struct err *e)
{
	struct strlist files = {0};
	struct scan s = {.name = name, .pos = text, .end = text + len, .arena = a, .files = &files};
	const char *line;
	unsigned long old, new;
	size_t n;
	/* 0: text; 1: after "---"; 2: after "+++"; 3: after
	 * a hunk. Hunks begin where patch(1) expects them. */
	unsigned state = 0;

	while (next_line(&s, &line, &n)) {
		if (state >= 2 && hunk_counts(line, n, &old, &new)) {
			if ((state == 2 && first_hunk(&s, e) < 0) || hunk(&s, old, new, e) < 0)
				return -1;
			state = 3;
			continue;
		}

		if (state == 3 && n > 0 && line[0] == '\\')
			continue;
		if (header(&s, line, n, e) < 0)
			return -1;
		if (starts(line, n, "--- "))
			s.target = NULL;
		state = starts(line, n, "--- ") ? 1 : state == 1 && starts(line, n, "+++ ") ? 2 : 0;
	}

	if (!s.any)
		return err_set(e, ERR_INTEGRITY, "patch '%s' contains no change in unified format",
			       name);
	strlist_append(ret_files, a, &files);
	return 0;
}

#define MAX_PATCH (64U << 20)

/* The file's directory, links followed, is inside the tree, and the file itself is not a link. */
static int check_place(const char *tree, const char *patch, const char *file, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct stat st;
	const char *path = path_join(&a, tree, file);

	if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
		return err_set(e, ERR_INTEGRITY, "patch '%s' changes '%s', which is a link", patch,
			       file);
	for (const char *dir = path_dir(&a, file); strcmp(dir, ".") != 0; dir = path_dir(&a, dir)) {
		const char *host = path_join(&a, tree, dir);
		if (lstat(host, &st) < 0)
			continue;
		AUTO_FREE char *real = realpath(host, NULL);
		if (!real)
			return err_errno(e, ERR_INTEGRITY, "patch '%s' changes '%s' through '%s'",
					 patch, file, dir);
		size_t n = strlen(tree);
		if (strncmp(real, tree, n) != 0 || (real[n] != '/' && real[n] != '\0' && n > 1))
			return err_set(e, ERR_INTEGRITY,
				       "patch '%s' changes '%s', which is outside the tree: '%s' "
				       "is a link out of it",
				       patch, file, dir);
		break;
	}

	return 0;
}

/* What follows `lead` in a line, up to its end or " (renamed
 * from ...)", without quotes; NULL for other lines. */
static const char *word_after(const char *line, const char *lead, struct arena *a)
{
	size_t n = strlen(lead);

	if (strncmp(line, lead, n) != 0)
		return NULL;
	const char *tail = strstr(line + n, " (");
	size_t len = tail ? (size_t)(tail - line) - n : strlen(line + n);
	if (len >= 2 && line[n] == '\'' && line[n + len - 1] == '\'')
		return arena_strndup(a, line + n + 1, len - 2);
	return arena_strndup(a, line + n, len);
}

/* Whether a line of patch(1)'s output says itself what is wrong. */
static bool is_reason(const char *line)
{
	static const char *const reasons[] = {"malformed patch",      "which already exists",
					      "which does not exist", "not deleting file",
					      "refusing to patch",    "****"};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (strstr(line, reasons[i]))
			return true;
	return false;
}

/* Turns patch(1)'s output into one error with file and hunk. */
static int explain(const char *patch, const char *output, struct arena *a, struct err *e)
{
	struct strlist lines = {0};
	static const char *const would[] = {"The next patch would create the file ",
					    "The next patch would delete the file "};
	const char *file = NULL, *what = NULL;

	strlist_split(&lines, a, output, "\n");
	for (size_t i = 0; i < lines.count && !what; i++) {
		const char *line = lines.items[i];
		const char *word = word_after(line, "checking file ", a);
		for (size_t k = 0; !word && k < ARRAY_LEN(would); k++) {
			word = word_after(line, would[k], a);
			word = word ? arena_strndup(a, word,
						    strlen(word) - path_has_suffix(word, ","))
				    : NULL;
		}

		unsigned hunk;
		char at[64];
		file = word ? word : file;
		if (sscanf(line, "Hunk #%u FAILED at %60[0-9]", &hunk, at) == 2)
			what = arena_printf(a, "hunk %u at line %s does not match", hunk, at);
		else if (strstr(line, "Reversed (or previously applied) patch detected"))
			what = "it is in the sources already";
		else if (strstr(line, "can't find file to patch"))
			what = "the file it changes does not exist", file = NULL;
		else if (is_reason(line))
			what = line;
	}

	for (size_t i = 0; i < lines.count && what && !file; i++) {
		file = word_after(lines.items[i], "|+++ ", a);
		if (file)
			file = arena_strndup(a, file, strcspn(file, "\t"));
	}

	if (!what)
		what = lines.count > 0 ? lines.items[lines.count - 1] : "patch(1) gave no reason";
	err_set(e, ERR_INTEGRITY, "patch '%s' does not apply: file '%s': %s", patch,
		file ? file : "?", what);
	return err_hint(
		e,
		"the patch was made for other sources: refresh it, or remove it from the series");
}

/* A patch that is applied; `out` has the output of patch(1). */
struct patching {
	const char *tree, *patch; /* with links resolved */
	const struct run *run;
	struct buf *out;
};

/* 0 when it applied, 1 when patch(1) refused. */
static int run_patch(const struct patching *p, bool dry, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist argv = {0};
	const char *path = getenv("PATH");
	/* PATCH_GET, POSIXLY_CORRECT and QUOTING_STYLE would change what
	 * patch(1) does. Its temporary files lie beside the tree: the
	 * machine's own place may be full, or another user's. */
	const char *const env[] = {"LC_ALL=C",
				   arena_printf(&a, "PATH=%s", path ? path : "/usr/bin:/bin"),
				   arena_printf(&a, "TMPDIR=%s", path_dir(&a, p->tree)), NULL};
	/* --unified: other formats, whose names the scan does not know, are refused. */
	static const char command[] =
		"patch --unified --fuzz=0 --batch --forward -p1 --no-backup-if-mismatch "
		"--reject-file=-";
	struct proc_result res;

	strlist_split(&argv, &a, command, " ");
	if (dry)
		strlist_add(&argv, &a, "--dry-run");
	strlist_addf(&argv, &a, "--directory=%s", p->tree);
	strlist_addf(&argv, &a, "--input=%s", p->patch);
	const struct proc_spec spec = {
		.argv = argv.items, .envp = env, .out = p->out, .umask = 022, .answer = true};
	if (proc_run(&spec, p->run, &res, e) < 0)
		return -1;
	return res.status == 0 ? 0 : 1;
}

int patch_scan_file(const char *path, struct arena *a, struct strlist *ret_files, struct err *e)
{
	AUTO_BUF struct buf text = {0};

	if (fs_read(TRUSTED, path, MAX_PATCH, &text, e) < 0)
		return -1;
	return patch_scan(path_base(path), buf_cstr(&text), text.len, a, ret_files, e);
}

int patch_apply(const char *tree, const char *patch, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf out = {0};
	AUTO_FREE char *top = realpath(tree, NULL);
	AUTO_FREE char *file = realpath(patch, NULL);
	const char *name = path_base(patch);
	struct strlist files = {0};

	if (!top)
		return err_errno(e, ERR_SYSTEM, "cannot open the tree '%s'", tree);
	if (!file)
		return err_errno(e, ERR_SYSTEM, "cannot open the patch '%s'", patch);
	if (!proc_find(&a, "patch")) {
		err_set(e, ERR_SYSTEM, "patch(1) is not installed");
		return err_hint(e, "install patch");
	}

	if (patch_scan_file(patch, &a, &files, e) < 0)
		return -1;
	for (size_t i = 0; i < files.count; i++)
		if (check_place(top, name, files.items[i], e) < 0)
			return -1;
	const struct patching p = {.tree = top, .patch = file, .run = run, .out = &out};
	int rc = run_patch(&p, true, e);
	if (rc > 0)
		return explain(name, buf_cstr(&out), &a, e);
	buf_reset(&out);
	if (rc == 0)
		rc = run_patch(&p, false, e);
	if (rc > 0) {
		err_set(e, ERR_SYSTEM, "patch '%s' failed although its dry run succeeded: %.500s",
			name, buf_cstr(&out));
		return err_hint(e, "the tree is partly patched: check disk space and permissions, "
				   "then unpack it again");
	}

	return rc;
}
