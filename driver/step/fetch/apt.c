#include "step/fetch/apt.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/strlist.h"
#include "base/sys/fs.h"
#include "base/sys/lock.h"
#include "base/sys/proc.h"

enum { LISTS_MAX_AGE_S = 24 * 3600, MESSAGES_MAX = 1500 };

#define APT_FILE_LIMIT (16UL << 30)
#define KEYRING "/usr/share/keyrings/debian-archive-keyring.gpg"

struct apt {
	struct arena *a;
	const char *program;
	const char *suite;
	const char *component;
	const char *package; /* "SOURCE=VERSION" */
	const char *dir;     /* private state of this suite and component */
	struct strlist options;
	const struct run *run;
};

/* Each part becomes a word of a command line or a field of sources.list: only the alphabet of Debian's policy. */
static bool is_word(const char *s, size_t len, const char *more)
{
	static const char alnum[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	for (size_t i = 0; i < len; i++)
		if (!strchr(alnum, s[i]) && (i == 0 || !strchr(more, s[i])))
			return false;
	return len > 0;
}

static int parse_place(struct apt *apt, const char *place, struct err *e)
{
	const char *slash = strchr(place, '/');
	const char *second = slash ? strchr(slash + 1, '/') : NULL;
	const char *equals = second ? strchr(second + 1, '=') : NULL;
	if (!equals || !is_word(place, (size_t)(slash - place), "-.") ||
	    !is_word(slash + 1, (size_t)(second - slash - 1), "-") ||
	    !is_word(second + 1, (size_t)(equals - second - 1), "+-.") ||
	    !is_word(equals + 1, strlen(equals + 1), "+-.~:")) {
		err_set(e, ERR_CONFIG, "not an apt place: '%s'", place);
		return err_hint(e, "write it as apt:SUITE/COMPONENT/SOURCE=VERSION");
	}
	apt->suite = arena_strndup(apt->a, place, (size_t)(slash - place));
	apt->component = arena_strndup(apt->a, slash + 1, (size_t)(second - slash - 1));
	apt->package = arena_strdup(apt->a, second + 1);
	return 0;
}

/* The machine's own lists, sources, pins and package state are neither read nor changed. */
static void set_options(struct apt *apt)
{
	struct strlist *o = &apt->options;
	strlist_addf(o, apt->a, "Dir::State=%s/state", apt->dir);
	strlist_addf(o, apt->a, "Dir::State::status=%s/state/status", apt->dir);
	strlist_addf(o, apt->a, "Dir::Cache=%s/cache", apt->dir);
	strlist_addf(o, apt->a, "Dir::Etc::SourceList=%s/sources.list", apt->dir);
	strlist_split(o, apt->a,
		      "Dir::Etc::SourceParts=/dev/null Dir::Etc::Preferences=/dev/null "
		      "Dir::Etc::PreferencesParts=/dev/null Acquire::Languages=none Acquire::Retries=3 "
		      "Acquire::http::Timeout=30 Acquire::https::Timeout=30",
		      " ");
	if (geteuid() == 0) /* apt's own user may not write into a private directory */
		strlist_add(o, apt->a, "APT::Sandbox::User=root");
}

/* Runs apt-get, with `private` under the options above; its messages go into `errors`. */
static int run_apt(const struct apt *apt, bool private, const char *const *args, const char *cwd, struct buf *out,
		   struct buf *errors, int *ret_status, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist argv = {0};
	struct proc_result result;
	strlist_ref(&argv, &a, apt->program);
	for (size_t i = 0; private && i < apt->options.count; i++) {
		strlist_ref(&argv, &a, "-o");
		strlist_ref(&argv, &a, apt->options.items[i]);
	}
	for (; *args; args++)
		strlist_ref(&argv, &a, *args);
	struct proc_spec spec = {.argv = strlist_argv(&argv, &a),
				 .cwd = cwd,
				 .out = out,
				 .err = errors,
				 .max_output = 16 << 20,
				 .file_limit = APT_FILE_LIMIT};
	if (proc_run(&spec, apt->run, &result, e) < 0)
		return -1;
	*ret_status = result.status;
	return 0;
}

/* apt's errors and warnings, lines that start with "E:" or "W:". */
static void add_messages(struct buf *messages, const struct buf *errors)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist lines = {0};
	strlist_split(&lines, &a, buf_cstr(errors), "\n\r");
	for (size_t i = 0; i < lines.count && messages->len < MESSAGES_MAX; i++)
		if (strncmp(lines.items[i], "E: ", 3) == 0 || strncmp(lines.items[i], "W: ", 3) == 0)
			buf_printf(messages, "%s%s", messages->len ? "; " : "", lines.items[i] + 3);
}

/* Adds the site of one line of indextargets if it is of this archive; the security archive has other suites. */
static void add_site(struct strlist *sites, struct arena *a, const char *line, bool need_origin, bool security)
{
	char *rest = arena_strdup(a, line);
	const char *site = strsep(&rest, "|"), *origin = strsep(&rest, "|"), *component = strsep(&rest, "|");
	const char *label = strsep(&rest, "|");
	if (!label || rest || !strstr(site, "://") || strpbrk(site, " \t[]"))
		return;
	if (need_origin ? strcmp(origin, "Debian") != 0 : strcmp(component, "main") != 0)
		return;
	bool of_security = strstr(site, "security") || strstr(label, "Security");
	if (of_security == security && !strlist_contains(sites, site))
		strlist_ref(sites, a, site);
}

static int find_sites(const struct apt *apt, bool security, struct strlist *sites, struct err *e)
{
	static const char format[] = "$(SITE)|$(ORIGIN)|$(COMPONENT)|$(LABEL)";
	/* Before the first "apt-get update" (a fresh container) the origins are unknown: the archive's signature
	 * decides. */
	static const char *const known[] = {"indextargets", "--format", format, NULL};
	static const char *const all[] = {"indextargets", "--no-release-info", "--format", format, NULL};
	for (int i = 0; i < 2 && sites->count == 0; i++) {
		AUTO_BUF struct buf out = {0}, AUTO_BUF errors = {0};
		struct strlist lines = {0};
		int status;
		if (run_apt(apt, false, i ? all : known, NULL, &out, &errors, &status, e) < 0)
			return -1;
		strlist_split(&lines, apt->a, buf_cstr(&out), "\n");
		for (size_t k = 0; k < lines.count; k++)
			add_site(sites, apt->a, lines.items[k], i == 0, security);
	}
	return 0;
}

static int need_sites(const struct apt *apt, struct strlist *sites, struct err *e)
{
	if (find_sites(apt, false, sites, e) < 0)
		return -1;
	if (sites->count)
		return 0;
	err_set(e, ERR_NETWORK, "apt-get on this machine knows no site of the Debian archive");
	return err_hint(e, "add one to its sources, or give the directory that holds the file with --mirror DIR");
}

int apt_sites(const char *archive, const struct run *run, struct arena *a, struct strlist *ret, struct err *e)
{
	struct apt apt = {.a = a, .run = run, .program = proc_find(a, "apt-get")};
	bool security = strcmp(archive, "debian-security") == 0;
	if (!apt.program || (!security && strcmp(archive, "debian") != 0))
		return 0;
	return find_sites(&apt, security, ret, e);
}

/* Writes sources.list; a changed one makes the lists stale. */
static int write_sources(const struct apt *apt, const char *stamp, struct err *e)
{
	AUTO_BUF struct buf text = {0}, AUTO_BUF old = {0};
	struct strlist sites = {0};
	const char *path = path_join(apt->a, apt->dir, "sources.list");
	if (need_sites(apt, &sites, e) < 0)
		return -1;
	for (size_t i = 0; i < sites.count; i++)
		buf_printf(&text, "deb-src %s%s %s %s\n", fs_exists(KEYRING) ? "[signed-by=" KEYRING "] " : "",
			   sites.items[i], apt->suite, apt->component);
	if (fs_exists(path) && fs_read(path, 1 << 20, &old, e) < 0)
		return -1;
	if (strcmp(buf_cstr(&old), buf_cstr(&text)) == 0)
		return 0;
	if (unlink(stamp) < 0 && errno != ENOENT)
		return err_errno(e, ERR_SYSTEM, "cannot delete '%s'", stamp);
	return fs_write_atomic(path, text.data, text.len, 0644, e);
}

static int make_state(const struct apt *apt, struct err *e)
{
	if (fs_mkdirs(path_join(apt->a, apt->dir, "state/lists/partial"), e) < 0 ||
	    fs_mkdirs(path_join(apt->a, apt->dir, "cache/archives/partial"), e) < 0)
		return -1;
	return fs_write_atomic(path_join(apt->a, apt->dir, "state/status"), "", 0, 0644, e);
}

static bool is_fresh(const char *stamp)
{
	struct stat st;
	return stat(stamp, &st) == 0 && time(NULL) - st.st_mtime < LISTS_MAX_AGE_S && st.st_mtime <= time(NULL);
}

/* A failed update is not an error yet: other or older lists may do. */
static int update(const struct apt *apt, const char *stamp, struct buf *messages, struct err *e)
{
	static const char *const args[] = {"-q", "update", NULL};
	AUTO_BUF struct buf errors = {0};
	int status;
	log_verbose(apt->run->log, "fetch: apt-get update for %s/%s", apt->suite, apt->component);
	if (run_apt(apt, true, args, NULL, NULL, &errors, &status, e) < 0)
		return -1;
	if (status == 0)
		return fs_write_atomic(stamp, "", 0, 0644, e);
	add_messages(messages, &errors);
	return 0;
}

static bool has_file(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

/* The exit status does not count: the archive may have dropped other files of the package. */
static int download(const struct apt *apt, const char *file, const char *dir, struct buf *messages, bool *ret_came,
		    struct err *e)
{
	const char *const args[] = {"-q", "source", "--download-only", "--only-source", apt->package, NULL};
	AUTO_BUF struct buf errors = {0};
	int status;
	if (run_apt(apt, true, args, dir, NULL, &errors, &status, e) < 0)
		return -1;
	*ret_came = has_file(file);
	if (!*ret_came)
		add_messages(messages, &errors);
	return 0;
}

static int fetch_locked(const struct apt *apt, const char *name, const char *dir, struct err *e)
{
	AUTO_BUF struct buf messages = {0};
	const char *stamp = path_join(apt->a, apt->dir, "updated");
	const char *file = path_join(apt->a, dir, name);
	bool came = false;
	if (make_state(apt, e) < 0 || write_sources(apt, stamp, e) < 0)
		return -1;
	bool updated = !is_fresh(stamp);
	if (updated && update(apt, stamp, &messages, e) < 0)
		return -1;
	if (download(apt, file, dir, &messages, &came, e) < 0)
		return -1;
	if (!came && !updated) { /* the lists may be older than the version */
		buf_reset(&messages);
		if (update(apt, stamp, &messages, e) < 0 || download(apt, file, dir, &messages, &came, e) < 0)
			return -1;
	}
	if (came)
		return 0;
	err_set(e, ERR_NETWORK, "apt-get did not download '%s' of '%s' from %s/%s: %s", name, apt->package, apt->suite,
		apt->component, messages.len ? buf_cstr(&messages) : "it gave no reason");
	return err_hint(e, "check that the archive still has this version, or give the directory that holds the file "
			   "with --mirror DIR");
}

int apt_fetch(const char *place, const char *name, const char *state_dir, const char *dir, const struct run *run,
	      struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_LOCK struct lock lock = LOCK_NONE;
	struct apt apt = {.a = &a, .run = run};
	if (parse_place(&apt, place, e) < 0)
		return -1;
	if (!path_is_safe_relative(name) || strchr(name, '/'))
		return err_set(e, ERR_CONFIG, "not a file name: '%s'", name);
	apt.program = proc_find(&a, "apt-get");
	if (!apt.program) {
		err_set(e, ERR_NETWORK, "no apt-get on this machine to fetch '%s'", place);
		return err_hint(e, "give the directory that holds '%s' with --mirror DIR", name);
	}
	apt.dir = arena_printf(&a, "%s/%s_%s", state_dir, apt.suite, apt.component);
	set_options(&apt);
	if (fs_mkdirs(apt.dir, e) < 0 || lock_acquire(&lock, path_join(&a, apt.dir, "lock"), false, run, e) < 0)
		return -1;
	return fetch_locked(&apt, name, dir, e);
}
