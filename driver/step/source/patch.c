#include "step/source/patch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/sys/fs.h"
#include "base/sys/proc.h"

#define MAX_PATCH (64U << 20)

/* The file's directory, links followed, is inside the tree, and the file itself is not a link. */
static int check_place(const char *tree, const char *patch, const char *file, struct arena *a, struct err *e)
{
	struct stat st;
	const char *path = path_join(a, tree, file);
	if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
		return err_set(e, ERR_INTEGRITY, "patch '%s' changes '%s', which is a link", patch, file);
	for (const char *dir = path_dir(a, file); strcmp(dir, ".") != 0; dir = path_dir(a, dir)) {
		const char *host = path_join(a, tree, dir);
		if (lstat(host, &st) < 0)
			continue;
		AUTO_FREE char *real = realpath(host, NULL);
		if (!real)
			return err_errno(e, ERR_INTEGRITY, "patch '%s' changes '%s' through '%s'", patch, file, dir);
		size_t n = strlen(tree);
		if (strncmp(real, tree, n) != 0 || (real[n] != '/' && real[n] != '\0' && n > 1))
			return err_set(e, ERR_INTEGRITY,
				       "patch '%s' changes '%s', which lies outside the tree: '%s' is a link out of it",
				       patch, file, dir);
		break;
	}
	return 0;
}

/* What follows `lead` in a line, up to its end or " (renamed from ...)", without quotes; NULL for other lines. */
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
			word = word ? arena_strndup(a, word, strlen(word) - path_has_suffix(word, ",")) : NULL;
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
		else if (strstr(line, "malformed patch") || strstr(line, "which already exists") ||
			 strstr(line, "which does not exist") || strstr(line, "not deleting file") ||
			 strstr(line, "refusing to patch") || strstr(line, "****"))
			what = line;
	}
	for (size_t i = 0; i < lines.count && what && !file; i++) {
		file = word_after(lines.items[i], "|+++ ", a);
		if (file)
			file = arena_strndup(a, file, strcspn(file, "\t"));
	}
	if (!what)
		what = lines.count > 0 ? lines.items[lines.count - 1] : "patch(1) gave no reason";
	err_set(e, ERR_INTEGRITY, "patch '%s' does not apply: file '%s': %s", patch, file ? file : "?", what);
	return err_hint(e, "the patch was made for other sources: refresh it, or remove it from the series");
}

/* 0 when it applied, 1 when patch(1) refused; its output in `out`. */
static int run_patch(const char *tree, const char *patch, bool dry, const struct run *run, struct buf *out,
		     struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist argv = {0};
	const char *path = getenv("PATH");
	/* PATCH_GET, POSIXLY_CORRECT and QUOTING_STYLE would change what patch(1) does. Its temporary files lie beside
	 * the tree: the machine's own place may be full, or another user's. */
	const char *const env[] = {"LC_ALL=C", arena_printf(&a, "PATH=%s", path ? path : "/usr/bin:/bin"),
				   arena_printf(&a, "TMPDIR=%s", path_dir(&a, tree)), NULL};
	/* --unified: other formats, whose names the scan does not know, are refused. */
	static const char command[] = "patch --unified --fuzz=0 --batch --forward -p1 --no-backup-if-mismatch "
				      "--reject-file=-";
	struct proc_result res;
	strlist_split(&argv, &a, command, " ");
	if (dry)
		strlist_add(&argv, &a, "--dry-run");
	strlist_addf(&argv, &a, "--directory=%s", tree);
	strlist_addf(&argv, &a, "--input=%s", patch);
	const struct proc_spec spec = {.argv = argv.items, .envp = env, .out = out, .umask = 022};
	if (proc_run(&spec, run, &res, e) < 0)
		return -1;
	return res.status == 0 ? 0 : 1;
}

int patch_apply(const char *tree, const char *patch, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0}, out = {0};
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
	if (fs_read(TRUSTED, file, MAX_PATCH, &text, e) < 0)
		return -1;
	if (patch_scan(name, buf_cstr(&text), text.len, &a, &files, e) < 0)
		return -1;
	for (size_t i = 0; i < files.count; i++)
		if (check_place(top, name, files.items[i], &a, e) < 0)
			return -1;
	int rc = run_patch(top, file, true, run, &out, e);
	if (rc > 0)
		return explain(name, buf_cstr(&out), &a, e);
	buf_reset(&out);
	if (rc == 0)
		rc = run_patch(top, file, false, run, &out, e);
	if (rc > 0) {
		err_set(e, ERR_SYSTEM, "patch '%s' failed although its dry run succeeded: %.500s", name,
			buf_cstr(&out));
		return err_hint(e,
				"the tree is partly patched: check disk space and permissions, then unpack it again");
	}
	return rc;
}
