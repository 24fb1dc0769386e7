/* macOS: sysctl. All Macs of a kind have one profile, so no features are read. */
#include <sys/sysctl.h>
#include <sys/utsname.h>

#include "core/machine/hardware.h"

int hardware_read_cpu(const struct hardware_facts *f, struct arena *a, struct hardware *h,
		      struct err *e)
{
	struct utsname u;
	char name[256];
	size_t len = sizeof(name);

	(void)f;
	if (uname(&u) != 0)
		return err_errno(e, ERR_SYSTEM, "cannot read the machine's name");
	h->platform = strcmp(u.machine, "arm64") == 0 ? "aarch64-darwin" : "x86_64-darwin";
	if (sysctlbyname("machdep.cpu.brand_string", name, &len, NULL, 0) == 0)
		h->cpu.name = arena_strndup(a, name, strnlen(name, sizeof(name)));
	return 0;
}

const char *hardware_kernel_driver(struct arena *a)
{
	(void)a;
	return "";
}
