#include <ctype.h>
#include <elf.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "core/plan/cuda_libraries.h"
#include "step/verify/verify_parts.h"

static bool is_provided(const struct verify_request *q, const char *needed)
{
	for (size_t i = 0; i < q->provided.count; i++) {
		if (fnmatch(q->provided.items[i], needed, 0) == 0)
			return true;
	}
	return false;
}

/* What follows "$ORIGIN/"; NULL if the entry does not begin so. */
static const char *behind_origin(const char *entry)
{
	static const char *const words[] = {"$ORIGIN", "${ORIGIN}"};
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i]);
		if (strncmp(entry, words[i], n) == 0 && (entry[n] == '\0' || entry[n] == '/'))
			return entry + n + strspn(entry + n, "/");
	}
	return NULL;
}

/* strsep, because an empty entry means the current directory. */
static void check_rpath(struct verifying *v, const struct verify_member *m, struct strlist *ret_dirs)
{
	const char *name = m->entry->name, *installed = verify_installed(name);
	for (char *rest = m->elf.rpath ? arena_strdup(v->a, m->elf.rpath) : NULL, *entry;
	     (entry = strsep(&rest, ":"));) {
		const char *relative = behind_origin(entry);
		if (!relative) {
			verify_add(v, FINDING_ERROR, "rpath", name,
				   "has '%s' in its DT_RPATH, which does not begin with $ORIGIN", entry);
			continue;
		}
		const char *from = installed && strchr(installed, '/') ? path_dir(v->a, installed) : "";
		if (installed && !path_stays_inside(from, *relative ? relative : ".")) {
			verify_add(v, FINDING_ERROR, "rpath", name,
				   "has '%s' in its DT_RPATH, which leaves site-packages", entry);
			continue;
		}
		strlist_ref(ret_dirs, v->a,
			    path_absolute(v->a, path_join(v->a, "/", from), *relative ? relative : "."));
	}
	if (m->elf.runpath)
		verify_add(v, FINDING_ERROR, "rpath", name, "has a DT_RUNPATH ('%s'), after which LD_LIBRARY_PATH wins",
			   m->elf.runpath);
}

const struct verify_member *verify_inside(const struct verifying *v, const char *needed)
{
	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		if (m->is_elf && (strcmp(path_base(m->entry->name), needed) == 0 ||
				  (m->elf.soname && strcmp(m->elf.soname, needed) == 0)))
			return m;
	}
	return NULL;
}

static bool is_reached(struct verifying *v, const struct strlist *dirs, const char *needed)
{
	for (size_t i = 0; i < dirs->count; i++) {
		if (zip_find(v->zip, path_join(v->a, dirs->items[i], needed) + 1))
			return true;
	}
	return false;
}

/* CUDA's libraries stay outside of the wheel: they come from packages that it requires, or from the system. A promise
 * for GPUs needs them, also where neither it nor the label names a toolkit. */
static bool is_of_cuda(struct verifying *v, const char *name, const char *needed)
{
	const struct promise *p = &v->report.promise;
	enum cuda_source source = v->q->tables ? cuda_source(v->q->tables, &v->requires, needed, v->a) : CUDA_UNKNOWN;
	bool cuda = p->cuda || p->gpu.count;
	if (source == CUDA_UNKNOWN || (p->binding && !cuda) || (source == CUDA_SYSTEM && !cuda))
		return false;
	if (source == CUDA_SYSTEM)
		verify_add(v, FINDING_NOTE, "needed", name,
			   "needs '%s', which no required package holds: the machine that runs it must have it",
			   needed);
	return true;
}

static void check_needed(struct verifying *v, const struct verify_member *m, const struct strlist *dirs)
{
	const char *name = m->entry->name;
	for (size_t i = 0; i < m->elf.needed.count; i++) {
		const char *needed = m->elf.needed.items[i];
		if (strchr(needed, '/'))
			verify_add(v, FINDING_ERROR, "needed", name, "needs '%s' by its path", needed);
		else if (is_reached(v, dirs, needed) || is_provided(v->q, needed) ||
			 strncmp(needed, "ld-linux", 8) == 0)
			continue;
		else if (verify_inside(v, needed))
			verify_add(v, FINDING_WARNING, "needed", name,
				   "needs '%s', which is in the wheel but not in its DT_RPATH", needed);
		else if (!is_of_cuda(v, name, needed) &&
			 (!v->q->policy || !manylinux_allows(v->q->policy, m->elf.machine, needed)))
			verify_add(v, FINDING_ERROR, "needed", name,
				   "needs '%s', which is neither in the wheel, nor from a dependency, nor allowed by "
				   "manylinux",
				   needed);
	}
}

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

/* Whether the wheel is for a Linux whose libraries can be read here: other systems call their own formats .so, too,
 * and other machines have ELF files of 32 bits. */
static bool has_readable_libraries(struct verifying *v)
{
	struct strlist platforms = {0};
	strlist_split(&platforms, v->a, v->report.name.platform, ".");
	for (size_t i = 0; i < platforms.count; i++) {
		const char *p = platforms.items[i];
		if (strstr(p, "linux") && (path_has_suffix(p, "_x86_64") || path_has_suffix(p, "_aarch64")))
			return true;
	}
	return false;
}

/* By its name the loader is given it, and must be able to take it. A file that is no library by its name need not be
 * whole: a warning. */
static void check_format(struct verifying *v, const struct verify_member *m, bool readable)
{
	const char *name = m->entry->name;
	bool library = readable && !m->broken && is_library_name(path_base(name));
	if (m->elf_broken)
		verify_add(v, library ? FINDING_ERROR : FINDING_WARNING, "elf", name, "%s", m->elf_broken);
	else if (library && !m->is_elf)
		verify_add(v, FINDING_ERROR, "elf", name, "is not a library: %s",
			   m->entry->size ? "it is not an ELF file" : "it is empty");
	else if (library && (m->elf.type != ET_DYN || !m->elf.dynamic))
		verify_add(v, FINDING_ERROR, "elf", name, "is not a library: it is an ELF file that cannot be loaded");
}

static void check_one(struct verifying *v, const struct verify_member *m)
{
	const char *name = m->entry->name;
	struct strlist dirs = {0};
	if (m->elf_broken || !m->elf.dynamic)
		return;
	check_rpath(v, m, &dirs);
	check_needed(v, m, &dirs);
	if (m->elf.exec_stack)
		verify_add(v, FINDING_ERROR, "exec-stack", name, "asks for an executable stack");
	if (m->elf.textrel)
		verify_add(v, FINDING_ERROR, "textrel", name, "has text relocations");
}

static const char *machine_name(unsigned machine)
{
	return machine == EM_X86_64 ? "x86_64" : machine == EM_AARCH64 ? "aarch64" : NULL;
}

/* The highest GLIBC_2.N that a library needs, and which. */
static unsigned needed_glibc(const struct verifying *v, const char **ret_who)
{
	unsigned highest = 0, minor;
	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		for (size_t k = 0; k < m->elf.versions_count; k++) {
			if (sscanf(m->elf.versions[k].version, "GLIBC_2.%3u", &minor) == 1 && minor > highest) {
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
	/* The table has no policies below 2.17 and between 2.17 and 2.28: there glibc's version decides. */
	const char *who = "";
	unsigned needed = claimed < 28 && claimed != 17 ? needed_glibc(v, &who) : 0;
	if (claimed >= 28 || claimed == 17)
		verify_add(v, FINDING_ERROR, "tag", "", "has the platform '%s', but needs '%s': %s", platform,
			   v->report.tag, v->report.tag_why);
	else if (needed > claimed)
		verify_add(v, FINDING_ERROR, "tag", "", "has the platform '%s', but '%s' needs GLIBC_2.%u", platform,
			   who, needed);
}

static void check_platform(struct verifying *v, const char *platform, const struct verify_member *first)
{
	unsigned claimed = manylinux_glibc(platform), honest = manylinux_glibc(v->report.tag);
	const char *machine = machine_name(first->elf.machine);
	if (strcmp(platform, "any") == 0)
		verify_add(v, FINDING_ERROR, "tag", "", "has the platform 'any', but '%s' is a library for %s",
			   first->entry->name, machine ? machine : "one machine");
	else if (machine && !path_has_suffix(platform, arena_printf(v->a, "_%s", machine)))
		verify_add(v, FINDING_ERROR, "tag", "", "has the platform '%s', but '%s' is for %s", platform,
			   first->entry->name, machine);
	else if (claimed && !honest)
		verify_add(v, FINDING_ERROR, "tag", "", "has the platform '%s', but no manylinux policy holds: %s",
			   platform, v->report.tag_why);
	else if (claimed && claimed < honest)
		check_floor(v, platform, claimed);
	else if (claimed > honest)
		verify_add(v, FINDING_NOTE, "tag", "", "has the platform '%s'; '%s' would be honest: %s", platform,
			   v->report.tag, v->report.tag_why);
}

static void check_tag(struct verifying *v)
{
	struct elf_info *infos = arena_array(v->a, v->count, sizeof(*infos));
	const char **names = arena_array(v->a, v->count, sizeof(*names));
	const struct verify_member *first = NULL;
	size_t count = 0;
	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		if (!m->is_elf || m->elf_broken || !m->elf.dynamic)
			continue;
		first = first ? first : m;
		infos[count] = m->elf;
		names[count++] = m->entry->name;
	}
	char *tag, *why;
	struct err wrong = {0};
	if (!v->q->policy)
		return;
	if (manylinux_tag(v->q->policy, infos, names, count, v->a, &tag, &why, &wrong) < 0) {
		verify_add_error(v, "tag", "", &wrong);
		return;
	}
	v->report.tag = tag;
	v->report.tag_why = why;
	struct strlist platforms = {0};
	if (v->named)
		strlist_split(&platforms, v->a, v->report.name.platform, ".");
	for (size_t i = 0; first && i < platforms.count; i++)
		check_platform(v, platforms.items[i], first);
}

void verify_elf(struct verifying *v)
{
	bool readable = has_readable_libraries(v);
	for (size_t i = 0; i < v->count; i++) {
		check_format(v, &v->members[i], readable);
		if (v->members[i].is_elf)
			check_one(v, &v->members[i]);
	}
	check_tag(v);
}
