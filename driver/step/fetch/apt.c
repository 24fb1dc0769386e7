#include "step/fetch/apt.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/sys/proc.h"

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
	if (of_security == security)
		strlist_once(sites, a, site);
}

int apt_sites(const char *archive, const struct run *run, struct arena *a, struct strlist *ret, struct err *e)
{
	static const char format[] = "$(SITE)|$(ORIGIN)|$(COMPONENT)|$(LABEL)";
	const char *program = proc_find(a, "apt-get");
	bool security = strcmp(archive, "debian-security") == 0;
	if (!program || (!security && strcmp(archive, "debian") != 0))
		return 0;
	/* Before the first "apt-get update" (a fresh container) the origins are unknown, and the archive is known by
	 * its component: what comes from there is checked by its digest. */
	const char *const known[] = {program, "indextargets", "--format", format, NULL};
	const char *const all[] = {program, "indextargets", "--no-release-info", "--format", format, NULL};
	for (int i = 0; i < 2 && ret->count == 0; i++) {
		AUTO_BUF struct buf out = {0}, AUTO_BUF errors = {0};
		struct strlist lines = {0};
		struct proc_result result;
		const struct proc_spec spec = {
			.argv = i ? all : known, .out = &out, .err = &errors, .max_output = 16 << 20};
		if (proc_run(&spec, run, &result, e) < 0)
			return -1;
		strlist_split(&lines, a, buf_cstr(&out), "\n");
		for (size_t k = 0; k < lines.count; k++)
			add_site(ret, a, lines.items[k], i == 0, security);
		if (i && !ret->count && result.status &&
		    err_kind_of_words(buf_cstr(&errors), ERR_NETWORK) == ERR_SYSTEM) {
			const char *tmp = getenv("TMPDIR");
			err_set(e, ERR_SYSTEM, "apt-get does not say where the archive '%s' is: %.*s", archive,
				(int)strcspn(buf_cstr(&errors), "\n"), buf_cstr(&errors));
			return err_hint(e, "free some space in '%s' and in apt's directories",
					tmp && *tmp ? tmp : "/tmp");
		}
		if (i && !ret->count && result.status)
			log_warn(run->log, "apt-get does not say where the archive '%s' is: %.*s", archive,
				 (int)strcspn(buf_cstr(&errors), "\n"), buf_cstr(&errors));
	}
	return 0;
}
