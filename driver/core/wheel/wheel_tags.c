/* What a wheel's tags stand for, as installers take them: PEP 425, 600, 656, 703 and 803. */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "core/wheel/manylinux.h"
#include "core/wheel/wheel.h"

enum { ABI3_FIRST = 2, PYMALLOC_LAST = 7, ABI3T_FIRST = 15 }; /* minor versions of Python 3 */

struct python {
	unsigned long minor;
	bool threaded; /* free-threaded: "3.13t" */
};

/* Whether one pair of tags is among those of this CPython. */
static bool takes_pair(const struct python *own, const char *tag, const char *abi, struct arena *a)
{
	const char *digits = tag + strspn(tag, "abcdefghijklmnopqrstuvwxyz");
	bool cp = strncmp(tag, "cp3", 3) == 0, py = strncmp(tag, "py3", 3) == 0;
	if (!cp && !py)
		return false;
	const unsigned long of = strtoul(digits + 1, NULL, 10); /* "py3": 0 */
	if (py)
		return of <= own->minor && strcmp(abi, "none") == 0;
	if (strcmp(abi, "abi3") == 0)
		return !own->threaded && of >= ABI3_FIRST && of <= own->minor;
	if (strcmp(abi, "abi3t") == 0)
		return of >= ABI3T_FIRST && of <= own->minor;
	const char *flags = own->threaded ? "t" : own->minor <= PYMALLOC_LAST ? "m" : "";
	return of == own->minor &&
	       (strcmp(abi, "none") == 0 || strcmp(abi, arena_printf(a, "cp3%lu%s", own->minor, flags)) == 0);
}

bool wheel_name_takes(const struct wheel_name *n, const char *python, struct arena *a)
{
	struct strlist tags = {0}, abis = {0};
	char *end = NULL;
	if (strncmp(python, "3.", 2) != 0)
		return false;
	struct python own = {.minor = strtoul(python + 2, &end, 10)};
	own.threaded = *end == 't';
	strlist_split(&tags, a, n->python, ".");
	strlist_split(&abis, a, n->abi, ".");
	for (size_t i = 0; i < tags.count; i++)
		for (size_t k = 0; k < abis.count; k++)
			if (takes_pair(&own, tags.items[i], abis.items[k], a))
				return true;
	return false;
}

/* The oldest glibc that a machine's tags name. */
static unsigned first_glibc(const char *machine)
{
	return strcmp(machine, "x86_64") == 0 ? 5 : 17;
}

bool wheel_name_lands(const struct wheel_name *n, const char *machine, unsigned glibc, struct arena *a)
{
	struct strlist tags = {0};
	strlist_split(&tags, a, n->platform, ".");
	for (size_t i = 0; i < tags.count; i++) {
		const char *tag = tags.items[i];
		unsigned wants = manylinux_glibc(tag);
		if (strcmp(tag, "any") == 0 || strcmp(tag, arena_printf(a, "linux_%s", machine)) == 0)
			return true;
		if (wants >= first_glibc(machine) && wants <= glibc &&
		    path_has_suffix(tag, arena_printf(a, "_%s", machine)))
			return true;
	}
	return false;
}

const char *wheel_name_musl(const struct wheel_name *n, struct arena *a)
{
	static const char mark[] = "musllinux_";
	struct strlist tags = {0};
	const char *version = NULL;
	strlist_split(&tags, a, n->platform, ".");
	for (size_t i = 0; i < tags.count; i++) {
		if (strncmp(tags.items[i], mark, strlen(mark)) != 0)
			return NULL;
		const char *major = tags.items[i] + strlen(mark), *minor = strchr(major, '_');
		if (!version && minor)
			version = arena_printf(a, "%.*s.%.*s", (int)(minor - major), major,
					       (int)strspn(minor + 1, "0123456789"), minor + 1);
	}
	return version;
}
