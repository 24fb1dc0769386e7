/* Linux: /proc, CPUID and the auxiliary vector. */
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <gnu/libc-version.h>
#include <sys/auxv.h>

#include "base/sys/fs.h"
#include "base/sys/machine.h"
#include "core/machine/hardware.h"

static const char *read_proc(const char *path, struct arena *a)
{
	AUTO_BUF struct buf text = {0};

	return fs_read(TRUSTED, path, 16u << 20, &text, ERR_IGNORED) < 0
		       ? ""
		       : arena_strdup(a, buf_cstr(&text));
}

#ifdef __x86_64__
#define OSXSAVE (1u << 27)

static uint64_t read_xcr0(void)
{
	uint32_t low, high;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

static bool shows(const struct feature_place *p)
{
	unsigned r[4];

	if (!__get_cpuid_count(p->leaf, p->subleaf, &r[0], &r[1], &r[2], &r[3]))
		return false;
	return r[p->reg] >> p->bit & 1;
}

/* CPUID lists what the processor has, XCR0 which registers the operating system saves. */
static void probe(const struct hardware_facts *f, struct arena *a, struct hardware_cpu *cpu)
{
	unsigned eax, ebx, ecx, edx;
	struct feature_place place;

	cpu->probed_known = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0;
	if (!cpu->probed_known)
		return;
	cpu->xcr0_known = true;
	cpu->xcr0 = ecx & OSXSAVE ? read_xcr0() : 0;
	for (unsigned i = 0; i < f->features_count; i++)
		if (feature_cpuid(&f->features[i], &place) && shows(&place))
			strlist_ref(&cpu->probed, a, f->features[i].name);
}
#else
static bool has_bit(const char *bit, unsigned long word)
{
	return *bit && (word >> strtoul(bit, NULL, 10) & 1);
}

/* The auxiliary vector: what the kernel lets programs use. */
static void probe(const struct hardware_facts *f, struct arena *a, struct hardware_cpu *cpu)
{
	unsigned long one = getauxval(AT_HWCAP), two = getauxval(AT_HWCAP2);

	cpu->probed_known = one != 0;
	for (unsigned i = 0; i < f->features_count; i++)
		if (has_bit(f->features[i].hwcap, one) || has_bit(f->features[i].hwcap2, two))
			strlist_ref(&cpu->probed, a, f->features[i].name);
}
#endif

int hardware_read_cpu(const struct hardware_facts *f, struct arena *a, struct hardware *h,
		      struct err *e)
{
	h->platform = machine_platform(a);
	if (strcmp(h->platform, "x86_64-linux") != 0 && strcmp(h->platform, "aarch64-linux") != 0)
		return err_set(e, ERR_POLICY, "cannot build on '%s': neither x86_64 nor aarch64",
			       h->platform);
	hardware_parse_cpuinfo(read_proc("/proc/cpuinfo", a), a, &h->cpu);
	probe(f, a, &h->cpu);
	h->glibc = gnu_get_libc_version();
	return 0;
}

const char *hardware_kernel_driver(struct arena *a)
{
	return hardware_parse_driver(read_proc("/proc/driver/nvidia/version", a), a);
}
