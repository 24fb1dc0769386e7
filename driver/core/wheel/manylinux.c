#include "core/wheel/wheel.h"

#include <elf.h>

#include "base/sys/fs.h"
#include "core/tables/tables.h"

static const char *const prefixes[MANYLINUX_PREFIXES] = {"GLIBC", "GLIBCXX",   "CXXABI",
							 "GCC",   "LIBATOMIC", "ZLIB"};

const char *manylinux_machine(unsigned machine)
{
	return machine == EM_X86_64 ? "x86_64" : machine == EM_AARCH64 ? "aarch64" : NULL;
}

static const struct system_library_row *find_library(const struct manylinux_policy *p,
						     const char *soname)
{
	return text_search(soname, p->libraries, p->libraries_count, sizeof(*p->libraries));
}

bool manylinux_allows(const struct manylinux_policy *p, const char *soname)
{
	return find_library(p, soname) != NULL;
}

bool manylinux_versioned(const struct manylinux_policy *p, const char *soname)
{
	const struct system_library_row *row = find_library(p, soname);
	return row && row->versioned;
}

static bool row_takes_version(const struct policy_row *row, const char *version)
{
	size_t len = strcspn(version, "_");

	if (strings_contain(row->also, row->also_count, version))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		if (strlen(prefixes[i]) != len || memcmp(prefixes[i], version, len) != 0 ||
		    version[len] == '\0')
			continue;
		const char *number = version + len + 1;
		return *row->ceilings[i] && version_valid(number) &&
		       version_cmp(number, row->ceilings[i]) <= 0;
	}

	/* Other prefixes belong to libraries that are in the wheel, or that a dependency brings. */
	return true;
}

static bool row_takes_library(const struct policy_row *row,
			      const struct system_library_row *library)
{
	return !library || !*library->since ||
	       tables_policy_minor(row->policy) >= tables_policy_minor(library->since);
}

struct verdict {
	const struct manylinux_policy *policy;
	const char *machine;
	size_t row;      /* index of the lowest row that allows all so far; policies_count: none */
	unsigned beyond; /* a minor version of glibc that is newer than all rows; 0 */
	char *why;
	struct arena *arena;
};

/* The next row of the machine at or behind `from`. */
static size_t next_row(const struct verdict *v, size_t from)
{
	while (from < v->policy->policies_count &&
	       strcmp(v->policy->policies[from].machine, v->machine) != 0)
		from++;
	return from;
}

static size_t last_row(const struct verdict *v)
{
	size_t last = next_row(v, 0);

	for (size_t i = last; i < v->policy->policies_count; i = next_row(v, i + 1))
		last = i;
	return last;
}

/* A glibc that came out after the table: PEP 600 names its policy
 * by the number, and what the newest row allows stays allowed. */
static bool is_beyond(const struct verdict *v, const char *version, unsigned *ret_minor)
{
	return v->row < v->policy->policies_count &&
	       sscanf(version, "GLIBC_2.%3u", ret_minor) == 1 &&
	       !row_takes_version(&v->policy->policies[last_row(v)], version);
}

static void raise_for_version(struct verdict *v, const char *name, const char *version,
			      const char *file)
{
	size_t before = v->row;
	unsigned minor;

	if (is_beyond(v, version, &minor)) {
		v->row = last_row(v);
		if (minor > v->beyond) {
			v->beyond = minor;
			v->why = arena_printf(v->arena, "'%s' needs %s of %s", name, version, file);
		}

		return;
	}

	while (v->row < v->policy->policies_count &&
	       !row_takes_version(&v->policy->policies[v->row], version))
		v->row = next_row(v, v->row + 1);
	if (v->row != before)
		v->why = arena_printf(v->arena, "'%s' needs %s of %s", name, version, file);
}

static void raise_for_library(struct verdict *v, const char *name, const char *soname)
{
	size_t before = v->row;
	const struct system_library_row *library = find_library(v->policy, soname);

	while (v->row < v->policy->policies_count &&
	       !row_takes_library(&v->policy->policies[v->row], library))
		v->row = next_row(v, v->row + 1);
	if (v->row != before)
		v->why = arena_printf(v->arena, "'%s' needs %s", name, soname);
}

static int judge(struct verdict *v, const struct elf_info *info, const char *name, struct err *e)
{
	const char *machine = manylinux_machine(info->machine);

	if (!machine)
		return err_set(e, ERR_INTEGRITY,
			       "'%s' is for a machine without a policy (ELF machine %u)", name,
			       info->machine);
	if (v->machine && strcmp(v->machine, machine) != 0)
		return err_set(e, ERR_INTEGRITY, "'%s' is for %s, other files of the wheel for %s",
			       name, machine, v->machine);
	if (!v->machine) {
		v->machine = machine;
		v->row = next_row(v, 0);
		v->why = arena_printf(v->arena, "nothing needs more");
	}

	for (size_t i = 0; i < info->versions_count; i++)
		raise_for_version(v, name, info->versions[i].version, info->versions[i].file);
	for (size_t i = 0; i < info->needed.count; i++)
		raise_for_library(v, name, info->needed.items[i]);
	/* A linker may leave the version need out that makes old loaders refuse the file. */
	if (info->relr)
		raise_for_version(v, name, "GLIBC_ABI_DT_RELR", "the loader (DT_RELR)");
	return 0;
}

int manylinux_tag(const struct manylinux_policy *p, const struct elf_info *infos,
		  const char *const *names, size_t count, struct arena *a, char **ret_tag,
		  char **ret_why, struct err *e)
{
	struct verdict v = {.policy = p, .arena = a};

	for (size_t i = 0; i < count; i++)
		if (infos[i].dynamic && judge(&v, &infos[i], names[i], e) < 0)
			return -1;
	if (!v.machine) {
		*ret_tag = arena_strdup(a, "any");
		*ret_why = arena_strdup(a, "no dynamic ELF file is inside");
	} else {
		const char *policy = v.row == p->policies_count ? NULL
				     : v.beyond                 ? arena_printf(a, "2_%u", v.beyond)
								: p->policies[v.row].policy;
		*ret_tag = policy ? arena_printf(a, "manylinux_%s_%s", policy, v.machine)
				  : arena_printf(a, "linux_%s", v.machine);
		*ret_why = v.why;
	}

	return 0;
}

int manylinux_tag_of_tree(const struct manylinux_policy *p, const char *dir, struct arena *a,
			  char **ret_tag, struct err *e)
{
	struct strlist files = {0}, names = {0};
	struct elf_info *infos = NULL;
	size_t cap = 0;
	char *why;

	if (fs_list_tree(TRUSTED, dir, a, &files, e) < 0)
		return -1;
	for (size_t i = 0; i < files.count; i++) {
		infos = arena_room(a, infos, names.count, &cap, 64, sizeof(*infos));
		int rc = elf_try(path_join(a, dir, files.items[i]), a, &infos[names.count], e);
		if (rc < 0)
			return -1;
		if (rc > 0)
			strlist_ref(&names, a, files.items[i]);
	}

	return manylinux_tag(p, infos, names.items, names.count, a, ret_tag, &why, e);
}

unsigned manylinux_glibc(const char *tag)
{
	static const struct {
		const char *name;
		unsigned minor;
	} old[] = {{"manylinux1_", 5}, {"manylinux2010_", 12}, {"manylinux2014_", 17}};

	for (size_t i = 0; i < ARRAY_LEN(old); i++) {
		if (strncmp(tag, old[i].name, strlen(old[i].name)) == 0)
			return old[i].minor;
	}

	unsigned minor;
	int end = 0;
	return sscanf(tag, "manylinux_2_%3u_%n", &minor, &end) == 1 && end ? minor : 0;
}
