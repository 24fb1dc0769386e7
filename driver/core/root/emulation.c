#include "core/root/emulation.h"

#include <sys/utsname.h>

#define OLDEST_MAJOR 6
#define OLDEST_MINOR 7

/* The first 20 bytes of an ELF program: of 64 bits, little-endian, of this machine, executable or
 * position-independent (the mask leaves out the lowest bit of e_type, and the ABI's version). */
static const struct {
	const char *platform, *magic, *mask;
} rows[] = {{"aarch64-linux",
	     "\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00"
	     "\\xb7\\x00",
	     "\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff"
	     "\\xfe\\xff\\xff\\xff"}};

bool emulation_kernel(const char *release)
{
	char *end;
	const unsigned long major = strtoul(release, &end, 10);

	if (end == release || *end != '.')
		return false;
	const unsigned long minor = strtoul(end + 1, NULL, 10);
	return major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR);
}

char *emulation_row(const char *platform, const char *program, struct arena *a)
{
	/* P: argv[0] stays what the caller gave. O, C: opened with the program's own rights.
	 * F: the emulator is opened now, so that it need not be in the root. */
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].platform, platform) == 0)
			return arena_printf(a, ":ptbuild-%s:M::%s:%s:%s:FPOC", platform,
					    rows[i].magic, rows[i].mask, program);
	return NULL;
}

int emulation_check(const char *platform, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct utsname u;

	if (!emulation_row(platform, "", &a)) {
		err_set(e, ERR_POLICY, "programs for %s cannot be run on this machine", platform);
		return err_hint(e, "run ptbuild on a machine of that platform");
	}

	if (uname(&u) < 0 || strcmp(u.sysname, "Linux") != 0 || emulation_kernel(u.release))
		return 0;
	err_set(e, ERR_POLICY,
		"programs for %s cannot be run on this machine: Linux %s has no binfmt_misc for "
		"user namespaces, which came with %d.%d",
		platform, u.release, OLDEST_MAJOR, OLDEST_MINOR);
	return err_hint(e,
			"boot Linux %d.%d or newer, or run ptbuild on a machine of that platform",
			OLDEST_MAJOR, OLDEST_MINOR);
}
