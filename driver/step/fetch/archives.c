#include "step/fetch/fetch.h"

#include "base/sys/fs.h"
#include "base/sys/proc.h"

static bool is_address(const char *s)
{
	if (strpbrk(s, " \t?#"))
		return false;
	return *s == '/' || strncmp(s, "http://", 7) == 0 || strncmp(s, "https://", 8) == 0 ||
	       strncmp(s, "file:///", 8) == 0;
}

/* Adds the site of one line of indextargets if it is of
 * this archive; the security archive has other suites. */
static void add_site(struct strlist *sites, struct arena *a, const char *line, bool need_origin,
		     bool security)
{
	char *rest = arena_strdup(a, line);
	const char *site = strsep(&rest, "|"), *origin = strsep(&rest, "|"),
		   *component = strsep(&rest, "|");
	const char *label = strsep(&rest, "|");

	if (!label || rest || !is_address(site) || strpbrk(site, "[]"))
		return;
	if (need_origin ? strcmp(origin, "Debian") != 0 : strcmp(component, "main") != 0)
		return;
	bool of_security = strstr(site, "security") || strstr(label, "Security");
	if (of_security == security)
		strlist_once(sites, a, path_join(a, site, ""));
}

int apt_sites(const struct fetcher *by, const char *archive, struct strlist *ret, struct err *e)
{
	static const char format[] = "$(SITE)|$(ORIGIN)|$(COMPONENT)|$(LABEL)";
	const char *program = proc_find(by->arena, "apt-get");
	/* what it cannot say is not known: another place may do */
	const size_t before = ret->count;
	bool security = strcmp(archive, "debian-security") == 0;

	if (!program || (!security && strcmp(archive, "debian") != 0))
		return 0;
	/* Before the first "apt-get update" (a fresh container) the origins are unknown, and the
	 * archive is known by its component: what comes from there is checked by its digest. */
	const char *const known[] = {program, "indextargets", "--format", format, NULL};
	/* Without lists it reads none: they take it seconds on a busy machine. */
	const char *const all[] = {program,
				   "indextargets",
				   "--no-release-info",
				   "-o",
				   "Dir::State::Lists=/nonexistent",
				   "--format",
				   format,
				   NULL};
	for (int i = by->o->any_site; i < 2 && ret->count == before; i++) {
		AUTO_BUF struct buf out = {0}, AUTO_BUF errors = {0};
		struct strlist lines = {0};
		struct proc_result result;
		const struct proc_spec spec = {.argv = i ? all : known,
					       .out = &out,
					       .err = &errors,
					       .max_output = 16 << 20,
					       .answer = true};
		if (proc_run(&spec, by->run, &result, e) < 0)
			return -1;
		strlist_split(&lines, by->arena, buf_cstr(&out), "\n");
		for (size_t k = 0; k < lines.count; k++)
			add_site(ret, by->arena, lines.items[k], i == 0, security);
		if (!i || ret->count > before || !result.status)
			continue;
		const char *said = arena_printf(
			by->arena, "apt-get does not say where the archive '%s' is: %.*s", archive,
			(int)strcspn(buf_cstr(&errors), "\n"), buf_cstr(&errors));
		if (err_kind_of_words(buf_cstr(&errors), ERR_NETWORK) == ERR_SYSTEM) {
			const char *tmp = getenv("TMPDIR");
			err_set(e, ERR_SYSTEM, "%s", said);
			return err_hint(e, "free some space in '%s' and in apt's directories",
					tmp && *tmp ? tmp : "/tmp");
		}

		log_warn(by->run->log, "%s", said);
	}

	return 0;
}

enum { FILE_MAX = 1 << 20 };

static bool is_name(const char *s, size_t len)
{
	bool good = len > 0 && len <= 64 && islower((unsigned char)*s);

	for (size_t i = 0; good && i < len; i++)
		good = islower((unsigned char)s[i]) || isdigit((unsigned char)s[i]) || s[i] == '-';
	return good;
}

int deb_place_parse(const char *place, struct arena *a, struct deb_place *ret, struct err *e)
{
	const char *slash = strchr(place, '/');

	if (!slash || !is_name(place, (size_t)(slash - place)) ||
	    !path_is_safe_relative(slash + 1)) {
		err_set(e, ERR_CONFIG, "not a path in a Debian archive: '%s'", place);
		return err_hint(e, "write it as deb:ARCHIVE/PATH, for example "
				   "deb:debian/pool/main/b/bash/NAME.deb");
	}

	*ret = (struct deb_place){.archive = arena_strndup(a, place, (size_t)(slash - place)),
				  .path = arena_strdup(a, slash + 1)};
	return 0;
}

int archives_word(const char *word, struct err *e)
{
	const char *equals = strchr(word, '=');

	if (equals && is_name(word, (size_t)(equals - word)) && is_address(equals + 1))
		return 0;
	err_set(e, ERR_USAGE, "option '--archive': not NAME=URL: '%s'", word);
	return err_hint(e, "for example --archive debian=URL with an http, https or file URL, or a "
			   "directory's "
			   "absolute path");
}

static char *variable_of(const char *archive, struct arena *a)
{
	char *out = arena_printf(a, "PTBUILD_ARCHIVE_%s", archive);

	for (char *p = out; *p; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
	return out;
}

static int add_address(struct strlist *l, struct arena *a, const char *address, const char *from,
		       struct err *e)
{
	if (!is_address(address)) {
		err_set(e, ERR_CONFIG, "%s: not the address of an archive: '%s'", from, address);
		return err_hint(e,
				"give an http, https or file URL, or a directory's absolute path");
	}

	strlist_once(l, a, path_join(a, address, "")); /* no slash at its end */
	return 0;
}

/* Those that the user's file names. */
static int add_file(const struct fetcher *by, const char *archive, struct strlist *ret,
		    struct err *e)
{
	const char *file = by->o->archives_file;
	struct arena *a = by->arena;
	AUTO_BUF struct buf text = {0};

	if (!file || !fs_exists(TRUSTED, file))
		return 0;
	if (fs_read(TRUSTED, file, FILE_MAX, &text, e) < 0)
		return -1;
	char *rest = arena_strdup(a, buf_cstr(&text)), *line;
	for (unsigned number = 1; (line = strsep(&rest, "\n")); number++) {
		struct strlist words = {0};
		line[strcspn(line, "#\r")] = '\0';
		strlist_split(&words, a, line, " \t");
		if (words.count == 0)
			continue;
		const char *from = arena_printf(a, "%s:%u", file, number);
		if (words.count != 2 || !is_name(words.items[0], strlen(words.items[0]))) {
			err_set(e, ERR_CONFIG, "%s: not an archive and its URL: '%s'", from, line);
			return err_hint(e, "write a line as 'debian URL'");
		}

		if (strcmp(words.items[0], archive) == 0 &&
		    add_address(ret, a, words.items[1], from, e) < 0)
			return -1;
	}

	return 0;
}

int archives_find(const struct fetcher *by, const char *archive, struct strlist *ret, struct err *e)
{
	struct strlist out = {0};
	size_t len = strlen(archive);

	for (size_t i = 0; i < by->o->archives.count; i++) {
		const char *word = by->o->archives.items[i];
		if (strncmp(word, archive, len) == 0 && word[len] == '=' &&
		    add_address(&out, by->arena, word + len + 1, "--archive", e) < 0)
			return -1;
	}

	if (!out.count) {
		struct strlist urls = {0};
		const char *name = variable_of(archive, by->arena), *value = getenv(name);
		strlist_split(&urls, by->arena, value ? value : "", " \t\n");
		for (size_t k = 0; k < urls.count; k++)
			if (add_address(&out, by->arena, urls.items[k], name, e) < 0)
				return -1;
	}

	if ((!out.count &&
	     (add_file(by, archive, &out, e) < 0 || apt_sites(by, archive, &out, e) < 0)))
		return -1;
	*ret = out;
	return 0;
}

int archives_unknown(const char *archive, struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	err_set(e, ERR_NETWORK, "no address of the archive '%s' is known", archive);
	return err_hint(e,
			"set %s to the URL of its 'dists' and 'pool', pass --archive %s=URL, or "
			"name a directory with its files: --mirror DIR",
			variable_of(archive, &a), archive);
}

char *archives_snapshots(const char *archive, struct arena *a)
{
	return arena_printf(a, "%s-snapshot", archive);
}

enum { RELEASE_MAX = 16 << 20 };

int fetch_archive(const struct fetcher *by, const char *archive, const char *suite,
		  struct strlist *ret, struct err *e)
{
	struct strlist all[2] = {0};
	const char *place = arena_printf(by->arena, "%s/dists/%s/InRelease", archive, suite), *file;

	if (fetch_latest(by, &(struct fetch_page){place, NULL, RELEASE_MAX}, &file, e) < 0) {
		/* a reason of its own: --offline, no address known */
		if (e->kind != ERR_NETWORK || e->hint[0])
			return err_wrap(e, "no index of '%s'", suite);
		err_wrap(e,
			 "no index of '%s': what is named as '%s' is not an archive of Debian, or "
			 "cannot be reached",
			 suite, archive);
		return err_hint(
			e,
			"name the URL or directory that has 'dists' and 'pool': --archive %s=URL",
			archive);
	}

	if (archives_find(by, archive, &all[0], e) < 0 ||
	    archives_find(by, archives_snapshots(archive, by->arena), &all[1], e) < 0)
		return -1;
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < all[i].count; k++)
			if (!by->o->offline || *all[i].items[k] == '/' ||
			    strncmp(all[i].items[k], "file:", 5) == 0)
				strlist_ref(ret, by->arena, all[i].items[k]);
	return 0;
}
