#include "step/fetch/wheel_index.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys/pip.h"
#include "base/sys/proc.h"
#include "core/wheel/wheel.h"
#include "step/fetch/wheel_page.h"

/* Some 30 times the largest wheel: a pip that runs wild must not fill the disk. */
#define PIP_FILE_LIMIT (16UL << 30)

/* "torch_scatter-2.1.2.tar.gz" */
static bool is_sdist_of(const struct wheel_place *p, struct arena *a)
{
	const char *dash = strrchr(p->file, '-');
	return dash && strcmp(dash + 1, arena_printf(a, "%s" WHEEL_SDIST, p->version)) == 0 &&
	       strcmp(wheel_normalize(arena_strndup(a, p->file, (size_t)(dash - p->file)), a),
		      wheel_normalize(p->name, a)) == 0;
}

int wheel_place_parse(const char *place, struct arena *a, struct wheel_place *ret, struct err *e)
{
	const char *equals = strstr(place, "=="), *slash = equals ? strchr(equals, '/') : NULL;
	struct wheel_name parts;
	struct err why = {0};
	if (!slash || equals == place || strchr(slash + 1, '/')) {
		err_set(e, ERR_CONFIG, "not a wheel place: '%s'", place);
		return err_hint(e, "write it as wheel:NAME==VERSION/FILE.whl");
	}
	struct wheel_place p = {.name = arena_strndup(a, place, (size_t)(equals - place)),
				.version = arena_strndup(a, equals + 2, (size_t)(slash - equals - 2)),
				.file = arena_strdup(a, slash + 1)};
	const bool sdist = path_has_suffix(p.file, WHEEL_SDIST);
	if (!sdist && wheel_name_parse(p.file, a, &parts, &why) < 0)
		return err_set(e, ERR_CONFIG, "%s", why.msg);
	if (sdist ? !is_sdist_of(&p, a)
		  : strcmp(wheel_normalize(p.name, a), wheel_normalize(parts.dist, a)) != 0 ||
			    strcmp(p.version, parts.version) != 0)
		return err_set(e, ERR_CONFIG, "'%s' is not %s of %s %s", p.file, sdist ? "an sdist" : "a wheel", p.name,
			       p.version);
	*ret = p;
	return 0;
}

/* A value of "pip config list": KEY='VALUE', as Python prints a string; NULL if it has escapes. */
static const char *config_value(const char *line, const char *key, struct arena *a)
{
	size_t n = strlen(key);
	if (strncmp(line, key, n) != 0 || line[n] != '=' || strchr(line, '\\'))
		return NULL;
	const char *value = line + n + 1;
	size_t len = strlen(value);
	if (len < 3 || (*value != '\'' && *value != '"') || value[len - 1] != *value)
		return NULL;
	return arena_strndup(a, value + 1, len - 2);
}

/* What pip's files say, read by pip itself; a pip that cannot say it has none. */
static int index_of_pip(const struct run *run, struct arena *a, const char **ret, struct err *e)
{
	static const char *const keys[] = {"download.index-url", "global.index-url"};
	AUTO_BUF struct buf out = {0}, AUTO_BUF errors = {0};
	struct strlist argv = {0}, lines = {0};
	struct proc_result result;
	if (pip_find(a, &argv, "", ERR_IGNORED) < 0)
		return 0;
	strlist_split(&argv, a, "config list", " ");
	struct proc_spec spec = {.argv = strlist_argv(&argv, a), .out = &out, .err = &errors, .max_output = 1 << 20};
	if (proc_run(&spec, run, &result, e) < 0)
		return -1;
	if (result.status != 0)
		return 0;
	strlist_split(&lines, a, buf_cstr(&out), "\n");
	for (size_t k = 0; k < ARRAY_LEN(keys); k++)
		for (size_t i = 0; i < lines.count; i++) {
			const char *value = config_value(lines.items[i], keys[k], a);
			if (value) {
				*ret = value;
				return 0;
			}
		}
	return 0;
}

int wheel_index(const struct run *run, struct arena *a, const char **ret, struct err *e)
{
	static const char *const variables[] = {"PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"};
	const char *no_index = getenv("PIP_NO_INDEX"), *found = NULL;
	for (size_t i = 0; i < ARRAY_LEN(variables) && !found && !(no_index && *no_index); i++) {
		const char *value = getenv(variables[i]);
		found = value && *value ? arena_strdup(a, value) : NULL;
	}
	if (!found && !(no_index && *no_index) && index_of_pip(run, a, &found, e) < 0)
		return -1;
	*ret = found;
	return 0;
}

int wheel_index_default(const struct run *run, struct arena *a, const char **ret, struct err *e)
{
	static const char before[] = "(default http";
	AUTO_BUF struct buf out = {0}, AUTO_BUF errors = {0};
	struct strlist argv = {0};
	struct proc_result result;
	/* pip breaks its lines for the terminal's width, in the middle of an address too. */
	strlist_split(&argv, a, "env COLUMNS=1000", " ");
	if (pip_find(a, &argv, "name an index with PIP_INDEX_URL, or install pip (python3-pip)", e) < 0)
		return -1;
	strlist_split(&argv, a, "download --help", " ");
	struct proc_spec spec = {.argv = strlist_argv(&argv, a), .out = &out, .err = &errors, .max_output = 1 << 20};
	if (proc_run(&spec, run, &result, e) < 0)
		return -1;
	const char *at = result.status == 0 ? strstr(buf_cstr(&out), before) : NULL;
	const char *url = at ? at + sizeof(before) - sizeof("http") : NULL, *end = url ? strchr(url, ')') : NULL;
	if (!end || strcspn(url, " \n") < (size_t)(end - url)) {
		err_set(e, ERR_NETWORK, "pip does not say which index it uses");
		return err_hint(e, "name one with PIP_INDEX_URL");
	}
	*ret = arena_strndup(a, url, (size_t)(end - url));
	return 0;
}

/* pip chooses by tags: it is asked for those of this very file. */
static void add_tags(const char *file, struct arena *a, struct strlist *argv)
{
	struct wheel_name n;
	struct strlist platforms = {0};
	if (wheel_name_parse(file, a, &n, ERR_IGNORED) < 0 || strcmp(n.platform, "any") == 0)
		return;
	strlist_split(&platforms, a, n.platform, ".");
	for (size_t i = 0; i < platforms.count; i++)
		strlist_addf(argv, a, "--platform=%s", platforms.items[i]);
	if (strncmp(n.python, "cp3", 3) == 0 && isdigit((unsigned char)n.python[3])) {
		strlist_addf(argv, a, "--python-version=3.%s", n.python + 3);
		strlist_ref(argv, a, "--implementation=cp");
		strlist_addf(argv, a, "--abi=%s", n.abi);
	}
}

int wheel_pip_download(const struct wheel_place *p, const char *dir, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf output = {0};
	struct strlist argv = {0};
	struct proc_result result;
	struct stat st;
	static const char fixed[] = "download --quiet --disable-pip-version-check --no-input --no-deps --no-cache-dir "
				    "--only-binary :all:";
	if (pip_find(&a, &argv, "name an index with PIP_INDEX_URL, or install pip (python3-pip)", e) < 0)
		return -1;
	strlist_split(&argv, &a, fixed, " ");
	strlist_addf(&argv, &a, "--dest=%s", dir);
	add_tags(p->file, &a, &argv);
	strlist_addf(&argv, &a, "%s==%s", p->name, p->version);
	struct proc_spec spec = {.argv = strlist_argv(&argv, &a),
				 .out = &output,
				 .err = &output,
				 .cwd = dir,
				 .file_limit = PIP_FILE_LIMIT};
	if (proc_run(&spec, run, &result, e) < 0)
		return -1;
	if (lstat(path_join(&a, dir, p->file), &st) == 0 && S_ISREG(st.st_mode))
		return 0;
	err_set(e, ERR_NETWORK, "pip did not download '%s': %s", p->file,
		result.status ? pip_reason(&a, &output) : "it took another file");
	return err_hint(e, "check pip's network settings (PIP_INDEX_URL, proxy variables), or give the directory that "
			   "holds the file with --mirror DIR");
}
