/* CPUID and XGETBV: what the processor has, and what the operating system has switched on. */
#include "core/machine/hardware_parts.h"

#ifdef __x86_64__
#include <cpuid.h>

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

void hardware_probe_x86(const struct hardware_facts *f, struct arena *a, struct hardware_cpu *cpu)
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
void hardware_probe_x86(const struct hardware_facts *f, struct arena *a, struct hardware_cpu *cpu)
{
	(void)f;
	(void)a;
	(void)cpu;
}
#endif
