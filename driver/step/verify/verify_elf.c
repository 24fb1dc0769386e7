#include <elf.h>

#include "step/verify/verify_parts.h"

/* "x.so", "libx-0352e75f.so.1.0.2k"; not "libx.so.1.debug". */
static bool is_library_name(const char *name)
{
	for (const char *so = strstr(name, ".so"); so; so = strstr(so + 1, ".so")) {
		const char *p = so + strlen(".so");
		while (*p == '.' && isdigit((unsigned char)p[1]))
			for (p++; isalnum((unsigned char)*p); p++)
				;
		if (!*p)
			return true;
	}

	return false;
}

/* Whether the wheel is for a Linux whose libraries can be read here: other systems
 * call their own formats .so, too, and other machines have ELF files of 32 bits. */
static bool has_readable_libraries(struct verifying *v)
{
	struct strlist platforms = {0};

	strlist_split(&platforms, v->a, v->report.name.platform, ".");
	for (size_t i = 0; i < platforms.count; i++) {
		const char *p = platforms.items[i];
		if (strstr(p, "linux") &&
		    (path_has_suffix(p, "_x86_64") || path_has_suffix(p, "_aarch64")))
			return true;
	}

	return false;
}

bool verify_is_library(const struct verify_member *m)
{
	return m->kind == ELF_HOST && !m->elf_broken && m->elf.dynamic;
}

/* As platform tags name it; NULL. */
static const char *any_machine(unsigned machine)
{
	enum { LOONGARCH = 258 }; /* EM_LOONGARCH before elf.h had it */
	static const struct {
		unsigned machine;
		const char *name;
	} names[] = {{EM_386, "i686"},      {EM_ARM, "armv7l"},    {EM_S390, "s390x"},
		     {EM_PPC64, "ppc64le"}, {EM_RISCV, "riscv64"}, {LOONGARCH, "loongarch64"}};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].machine == machine)
			return names[i].name;
	return manylinux_machine(machine);
}

/* A platform's processor: "x86_64" of "manylinux_2_28_x86_64". */
static bool is_for(const char *platform, unsigned machine)
{
	const char *name = any_machine(machine);

	if (!name)
		return false;
	if (path_has_suffix(platform, name))
		return true;
	if (machine == EM_ARM)
		return strstr(platform, "_armv");
	return machine == EM_PPC64 && path_has_suffix(platform, "_ppc64");
}

static bool any_library_for(const struct verifying *v, const char *platform)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->members[i].kind == ELF_HOST && is_for(platform, v->members[i].machine))
			return true;
	return false;
}

/* What the name says is a library, and the loader cannot take. A 32-bit helper
 * beside a library for the wheel's own machine, and GPU code, are for somebody else. */
static const char *no_library(struct verifying *v, const struct verify_member *m)
{
	switch (m->kind) {
	case ELF_NONE:
		if (m->link_text && !v->ours)
			return NULL;
		return m->entry->size ? "it is not an ELF file" : "it is empty";
	case ELF_DEBUG: /* debuggers look in such a directory */
		return strstr(m->entry->name, "/.debug/") ? NULL
							  : "it holds debug information alone";
	case ELF_FOREIGN:
		return any_library_for(v, v->report.name.platform)
			       ? NULL
			       : "it is not a 64-bit little-endian ELF file, as this platform has "
				 "them";
	case ELF_HOST:
		if (m->elf.type == ET_DYN && m->elf.pie)
			return "it is a program (a PIE), which dlopen refuses";
		return m->elf.type != ET_DYN || !m->elf.dynamic
			       ? "it is an ELF file that cannot be loaded"
			       : NULL;
	default:
		return NULL;
	}
}

/* A file that is no library by its name need not be whole: a warning. */
static void check_format(struct verifying *v, const struct verify_member *m, bool readable)
{
	const char *name = m->entry->name;
	bool library = readable && !m->broken && is_library_name(path_base(name));
	const char *not = library && !m->elf_broken ? no_library(v, m) : NULL;

	if (m->elf_broken)
		verify_add(v, library ? FINDING_ERROR : FINDING_WARNING, RULE_ELF, name, "%s",
			   m->elf_broken);
	else if (not )
		verify_add(v, FINDING_ERROR, RULE_ELF, name, "is not a library: %s", not );
	else if (library && m->kind == ELF_NONE)
		verify_add(v, FINDING_NOTE, RULE_ELF, name,
			   "is a linker script, which neither the loader nor Python can load");
	else if (m->kind == ELF_FOREIGN)
		verify_add(v, FINDING_NOTE, RULE_ELF, name,
			   "is not a 64-bit little-endian ELF file (its machine is %u): nothing "
			   "more is examined",
			   m->machine);
}

enum {
	PAGE_SMALLEST = 0x1000,
	PAGE_LARGEST = 0x10000, /* of AArch64 kernels: RHEL's, and those for Grace */
};

static void check_one(struct verifying *v, const struct verify_member *m)
{
	const char *name = m->entry->name;

	if (m->kind != ELF_HOST || m->elf_broken ||
	    (m->elf.type != ET_DYN && m->elf.type != ET_EXEC))
		return;
	if (m->elf.unloadable)
		verify_add(v, FINDING_ERROR, RULE_ELF, name, "the loader cannot take it: %s",
			   m->elf.unloadable);
	else if (m->machine == EM_AARCH64 && m->elf.page < PAGE_LARGEST)
		verify_add(v, FINDING_WARNING, RULE_ELF, name,
			   "has segments aligned to %u KiB: a kernel with pages of 64 KiB cannot "
			   "load it",
			   (unsigned)(m->elf.page >> 10));
	else if (m->elf.page < PAGE_SMALLEST && m->elf.dynamic && !m->elf.program && !v->musl)
		verify_add(v, FINDING_WARNING, RULE_ELF, name,
			   "has segments aligned to %u bytes, less than a page: glibc before 2.35 "
			   "does not load it",
			   (unsigned)m->elf.page);
	/* musl's loader never makes the stack executable. */
	if (m->elf.exec_stack && m->elf.dynamic && !v->musl)
		verify_add(v, FINDING_ERROR, RULE_EXEC_STACK, name, "%s",
			   m->elf.stack_told ? "asks for an executable stack"
					     : "does not say which stack it needs (no "
					       "PT_GNU_STACK), which asks for an "
					       "executable one");
	if (m->elf.textrel)
		verify_add(v, FINDING_ERROR, RULE_TEXTREL, name, "has text relocations");
}

unsigned verify_needed_glibc(const struct verifying *v, const char **ret_who)
{
	unsigned highest = 0, minor;

	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		for (size_t k = 0; k < m->elf.versions_count; k++) {
			if (sscanf(m->elf.versions[k].version, "GLIBC_2.%3u", &minor) == 1 &&
			    minor > highest) {
				highest = minor;
				*ret_who = m->entry->name;
			}
		}
	}

	return highest;
}

/* The claimed glibc is below what the libraries need. */
static void check_floor(struct verifying *v, const char *platform, unsigned claimed)
{
	/* The table has no policies below 2.17 and between 2.17 and
	 * 2.28, nor for other machines: there glibc's version decides. */
	const char *who = "";
	bool known = *v->report.tag && (claimed >= 28 || claimed == 17);
	unsigned needed = known ? 0 : verify_needed_glibc(v, &who);

	if (known)
		verify_add(v, FINDING_ERROR, RULE_TAG, "",
			   "has the platform '%s', but needs '%s': %s", platform, v->report.tag,
			   v->report.tag_why);
	else if (needed > claimed)
		verify_add(v, FINDING_ERROR, RULE_TAG, "",
			   "has the platform '%s', but '%s' needs GLIBC_2.%u", platform, who,
			   needed);
}

/* The first library of the platform's machine, and of others. */
struct sides {
	const struct verify_member *own, *other;
	bool mixed; /* the others are of several machines: somebody chooses among them */
};

/* The lowest glibc of the platforms that the name has; 0 if none is of manylinux. */
static unsigned lowest_glibc(const struct strlist *platforms)
{
	unsigned lowest = 0;

	for (size_t i = 0; i < platforms->count; i++) {
		unsigned minor = manylinux_glibc(platforms->items[i]);
		lowest = minor && (!lowest || minor < lowest) ? minor : lowest;
	}

	return lowest;
}

static void check_platform(struct verifying *v, const char *platform, unsigned lowest,
			   const struct sides *s)
{
	unsigned claimed = manylinux_glibc(platform), honest = manylinux_glibc(v->report.tag);
	const char *machine = s->other ? any_machine(s->other->machine) : NULL;

	if (s->other && !machine)
		machine = arena_printf(v->a, "ELF machine %u", s->other->machine);
	if (s->other && strcmp(platform, "any") == 0)
		verify_add(v, s->mixed ? FINDING_WARNING : FINDING_ERROR, RULE_TAG, "",
			   "has the platform 'any', but '%s' is a %s for %s", s->other->entry->name,
			   is_library_name(path_base(s->other->entry->name)) ? "library"
									     : "program",
			   machine);
	else if (!s->own && s->other)
		verify_add(v, FINDING_ERROR, RULE_TAG, "",
			   "has the platform '%s', but '%s' is for %s", platform,
			   s->other->entry->name, machine);
	else if (s->other)
		verify_add(v, FINDING_NOTE, RULE_TAG, s->other->entry->name,
			   "is for %s, and the wheel for '%s'", machine, platform);
	if (s->own && claimed && !*v->report.tag)
		check_floor(v, platform, claimed);
	if (!s->own || !strstr(v->report.tag, "linux"))
		return;
	if (claimed && !honest)
		verify_add(v, FINDING_ERROR, RULE_TAG, "",
			   "has the platform '%s', but no manylinux policy holds: %s", platform,
			   v->report.tag_why);
	else if (claimed && claimed < honest)
		check_floor(v, platform, claimed);
	else if (claimed > honest && claimed == lowest)
		verify_add(v, FINDING_NOTE, RULE_TAG, "",
			   "has platform tag '%s', but '%s' is enough: %s", platform, v->report.tag,
			   v->report.tag_why);
}

/* Counts 32-bit files only for machines that have no 64-bit ones. */
static bool has_side(const struct verify_member *m)
{
	bool small_alone = m->kind == ELF_FOREIGN && !manylinux_machine(m->machine);
	bool is_loaded = m->elf.type == ET_DYN || m->elf.type == ET_EXEC;
	return (m->kind == ELF_HOST || small_alone) && !m->elf_broken && is_loaded;
}

static void find_sides(const struct verifying *v, const char *platform, struct sides *ret)
{
	*ret = (struct sides){0};
	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		if (!has_side(m))
			continue;
		const struct verify_member **to =
			is_for(platform, m->machine) ? &ret->own : &ret->other;
		ret->mixed = ret->mixed || (*to && (*to)->machine != m->machine);
		*to = *to ? *to : m;
	}
}

/* The lowest honest tag, of the libraries for the machine that the name says. */
static void find_tag(struct verifying *v, const char *platform)
{
	struct elf_info *infos = arena_array(v->a, v->count, sizeof(*infos));
	const char **names = arena_array(v->a, v->count, sizeof(*names));
	struct sides s;
	size_t count = 0;
	char *tag, *why;
	struct err wrong = {0};

	find_sides(v, platform, &s);
	unsigned machine = s.own ? s.own->machine : s.other ? s.other->machine : 0;
	for (size_t i = 0; i < v->count && manylinux_machine(machine); i++) {
		const struct verify_member *m = &v->members[i];
		if (!verify_is_library(m) || m->machine != machine)
			continue;
		infos[count] = m->elf;
		names[count++] = m->entry->name;
	}

	if (machine && !manylinux_machine(machine))
		verify_add(v, FINDING_NOTE, RULE_TAG, "",
			   "is for ELF machine %u, which the policies do not have: of its tag "
			   "glibc alone is checked",
			   machine);
	else if (manylinux_tag(v->q->policy, infos, names, count, v->a, &tag, &why, &wrong) < 0)
		verify_add_error(v, RULE_TAG, "", &wrong);
	else {
		v->report.tag = tag;
		v->report.tag_why = why;
	}
}

static void check_tag(struct verifying *v)
{
	struct strlist platforms = {0};

	if (!v->q->policy)
		return;
	if (v->named)
		strlist_split(&platforms, v->a, v->report.name.platform, ".");
	const char *first = platforms.count ? platforms.items[0] : "any";
	if (strstr(v->report.name.platform, "musllinux_")) {
		/* A library that needs versions of glibc cannot be loaded where musl is. */
		const char *who = "";
		unsigned needed = verify_needed_glibc(v, &who);
		if (needed)
			verify_add(v, FINDING_ERROR, RULE_TAG, who,
				   "needs GLIBC_2.%u, and the wheel is for musl", needed);
	}

	if (!v->musl && (strcmp(first, "any") == 0 || strstr(first, "linux")))
		find_tag(v, first);
	/* Of several tags for the same libraries the first
	 * that is wrong is enough: there is one cause. */
	const struct verify_member *told = NULL;
	for (size_t i = 0; i < platforms.count; i++) {
		struct sides s;
		const size_t before = v->report.errors;
		find_sides(v, platforms.items[i], &s);
		if ((s.own || s.other) && (!told || told != s.own))
			check_platform(v, platforms.items[i], lowest_glibc(&platforms), &s);
		told = v->report.errors > before && s.own ? s.own : told;
	}
}

void verify_elf(struct verifying *v)
{
	bool readable = has_readable_libraries(v);

	for (size_t i = 0; i < v->count; i++) {
		check_format(v, &v->members[i], readable);
		check_one(v, &v->members[i]);
	}

	check_tag(v);
}
