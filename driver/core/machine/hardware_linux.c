/* Linux: /proc and the auxiliary vector. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "core/machine/hardware_parts.h"

/* Files of /proc have no size beforehand. */
static const char *read_proc(const char *path, struct arena *a)
{
	AUTO_BUF struct buf text = {0};
	AUTO_FILE FILE *f = fopen(path, "re");
	char piece[4096];
	size_t n;
	while (f && text.len < (4u << 20) && (n = fread(piece, 1, sizeof(piece), f)) > 0)
		buf_add(&text, piece, n);
	return arena_strdup(a, buf_cstr(&text));
}

static bool has_bit(const char *bit, unsigned long word)
{
	return *bit && (word >> strtoul(bit, NULL, 10) & 1);
}

/* The kernel's own word on what a program may use, without the way through text. */
static void probe_arm(const struct hardware_facts *f, struct arena *a, struct hardware_cpu *cpu)
{
	unsigned long one = getauxval(AT_HWCAP), two = getauxval(AT_HWCAP2);
	cpu->probed_known = one != 0;
	for (unsigned i = 0; i < f->features_count; i++)
		if (has_bit(f->features[i].hwcap, one) || has_bit(f->features[i].hwcap2, two))
			strlist_ref(&cpu->probed, a, f->features[i].name);
}

int hardware_read_cpu(const struct hardware_facts *f, struct arena *a, struct hardware *h, struct err *e)
{
	struct utsname u;
	if (uname(&u) != 0)
		return err_errno(e, ERR_SYSTEM, "cannot tell what machine this is");
	bool x86 = strcmp(u.machine, "x86_64") == 0;
	if (!x86 && strcmp(u.machine, "aarch64") != 0)
		return err_set(e, ERR_POLICY, "no build is known for a %s machine", u.machine);
	h->platform = x86 ? "x86_64-linux" : "aarch64-linux";
	hardware_parse_cpuinfo(read_proc("/proc/cpuinfo", a), a, &h->cpu);
	if (x86)
		hardware_probe_x86(f, a, &h->cpu);
	else
		probe_arm(f, a, &h->cpu);
	return 0;
}

const char *hardware_kernel_driver(struct arena *a)
{
	return hardware_parse_driver(read_proc("/proc/driver/nvidia/version", a), a);
}
