#include "core/wheel/manylinux.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/version.h"
#include "base/yaml/yaml.h"

struct library_row {
	const char *name;
	const char *since; /* NULL: every policy */
	bool versioned;    /* all its symbols have versions */
};

struct policy_row {
	const char *policy; /* "2_28" */
	const char *machine;
	const char *ceilings[6]; /* NULL: no version of that prefix */
	const char **also;       /* whole version names that are no numbers */
	unsigned also_count;
};

struct manylinux_policy {
	struct library_row *libraries;
	unsigned libraries_count;
	struct policy_row *rows; /* of each machine, ascending */
	unsigned rows_count;
};

static const char *const prefixes[] = {"GLIBC", "GLIBCXX", "CXXABI", "GCC", "LIBATOMIC", "ZLIB"};

static const struct {
	unsigned machine;
	const char *name;
} machines[] = {{EM_X86_64, "x86_64"}, {EM_AARCH64, "aarch64"}};

static const cyaml_schema_value_t text_value = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, CYAML_UNLIMITED)};

#define CEILING(key, i)                                                                                                \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct policy_row, ceilings[i], 1, 16)

static const cyaml_schema_field_t library_fields[] = {
	CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct library_row, name, 1, CYAML_UNLIMITED),
	CYAML_FIELD_STRING_PTR("since", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct library_row, since, 1, 16),
	CYAML_FIELD_BOOL("versioned", CYAML_FLAG_OPTIONAL, struct library_row, versioned), CYAML_FIELD_END};

static const cyaml_schema_field_t policy_fields[] = {
	CYAML_FIELD_STRING_PTR("policy", CYAML_FLAG_POINTER, struct policy_row, policy, 1, 16),
	CYAML_FIELD_STRING_PTR("machine", CYAML_FLAG_POINTER, struct policy_row, machine, 1, 16),
	CEILING("glibc", 0),
	CEILING("glibcxx", 1),
	CEILING("cxxabi", 2),
	CEILING("gcc", 3),
	CEILING("libatomic", 4),
	CEILING("zlib", 5),
	CYAML_FIELD_SEQUENCE("also", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct policy_row, also, &text_value, 0,
			     CYAML_UNLIMITED),
	CYAML_FIELD_END};

static const cyaml_schema_value_t library_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct library_row, library_fields)};
static const cyaml_schema_value_t policy_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct policy_row, policy_fields)};

static const cyaml_schema_field_t top_fields[] = {
	CYAML_FIELD_SEQUENCE("libraries", CYAML_FLAG_POINTER, struct manylinux_policy, libraries, &library_value, 1,
			     CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE_COUNT("policies", CYAML_FLAG_POINTER, struct manylinux_policy, rows, rows_count,
				   &policy_value, 1, CYAML_UNLIMITED),
	CYAML_FIELD_END};

static const cyaml_schema_value_t top_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct manylinux_policy, top_fields)};

static const char *machine_name(unsigned machine)
{
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		if (machines[i].machine == machine)
			return machines[i].name;
	}
	return NULL;
}

static bool known_machine(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		if (strcmp(machines[i].name, name) == 0)
			return true;
	}
	return false;
}

/* "2_28" -> 28; 0 for anything else. */
static unsigned policy_minor(const char *policy)
{
	unsigned minor;
	int end = 0;
	return sscanf(policy, "2_%3u%n", &minor, &end) == 1 && policy[end] == '\0' ? minor : 0;
}

static const char *check_row(const struct manylinux_policy *p, size_t i)
{
	const struct policy_row *row = &p->rows[i];
	if (policy_minor(row->policy) == 0)
		return "policy is not of the form 2_N";
	if (!known_machine(row->machine))
		return "machine is neither x86_64 nor aarch64";
	if (!row->ceilings[0])
		return "policy without a ceiling for glibc";
	for (size_t c = 0; c < ARRAY_LEN(prefixes); c++) {
		if (row->ceilings[c] && !version_valid(row->ceilings[c]))
			return "ceiling is not a version";
	}
	for (size_t k = 0; k < i; k++) {
		if (strcmp(p->rows[k].machine, row->machine) == 0 &&
		    policy_minor(p->rows[k].policy) >= policy_minor(row->policy))
			return "policies of a machine must ascend";
	}
	return NULL;
}

int manylinux_load(const char *dir, struct arena *a, const struct manylinux_policy **ret, struct err *e)
{
	const char *path = path_join(a, dir, "manylinux.yaml"), *bad = NULL;
	struct manylinux_policy *p;
	struct yaml_lines *lines;
	if (yaml_load(path, &top_value, a, (void **)&p, &lines, e) < 0)
		return -1;
	for (size_t i = 0; i < p->rows_count; i++) {
		bad = check_row(p, i);
		if (bad)
			return err_set(e, ERR_CONFIG, "%s:%u: %s", path, yaml_line(lines, "policies/%zu", i), bad);
	}
	for (size_t i = 0; i < p->libraries_count; i++) {
		if (p->libraries[i].since && policy_minor(p->libraries[i].since) == 0)
			return err_set(e, ERR_CONFIG, "%s:%u: 'since' of '%s' is not of the form 2_N", path,
				       yaml_line(lines, "libraries/%zu", i), p->libraries[i].name);
	}
	*ret = p;
	return 0;
}

static const struct library_row *find_library(const struct manylinux_policy *p, const char *soname)
{
	for (size_t i = 0; i < p->libraries_count; i++) {
		if (strcmp(p->libraries[i].name, soname) == 0)
			return &p->libraries[i];
	}
	return NULL;
}

bool manylinux_allows(const struct manylinux_policy *p, unsigned machine, const char *soname)
{
	return machine_name(machine) && find_library(p, soname);
}

bool manylinux_versioned(const struct manylinux_policy *p, const char *soname)
{
	const struct library_row *row = find_library(p, soname);
	return row && row->versioned;
}

static bool row_takes_version(const struct policy_row *row, const char *version)
{
	size_t len = strcspn(version, "_");
	for (size_t i = 0; i < row->also_count; i++) {
		if (strcmp(row->also[i], version) == 0)
			return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		if (strlen(prefixes[i]) != len || memcmp(prefixes[i], version, len) != 0 || version[len] == '\0')
			continue;
		const char *number = version + len + 1;
		return row->ceilings[i] && version_valid(number) && version_cmp(number, row->ceilings[i]) <= 0;
	}
	/* Other prefixes belong to libraries that are in the wheel, or that a dependency brings. */
	return true;
}

static bool row_takes_library(const struct policy_row *row, const struct library_row *library)
{
	return !library || !library->since || policy_minor(row->policy) >= policy_minor(library->since);
}

struct verdict {
	const struct manylinux_policy *policy;
	const char *machine;
	size_t row; /* index of the lowest row that takes everything so far; rows_count: none */
	char *why;
	struct arena *arena;
};

/* The next row of the machine at or behind `from`. */
static size_t next_row(const struct verdict *v, size_t from)
{
	while (from < v->policy->rows_count && strcmp(v->policy->rows[from].machine, v->machine) != 0)
		from++;
	return from;
}

static void raise_for_version(struct verdict *v, const char *name, const char *version, const char *file)
{
	size_t before = v->row;
	while (v->row < v->policy->rows_count && !row_takes_version(&v->policy->rows[v->row], version))
		v->row = next_row(v, v->row + 1);
	if (v->row != before)
		v->why = arena_printf(v->arena, "'%s' needs %s of %s", name, version, file);
}

static void raise_for_library(struct verdict *v, const char *name, const char *soname)
{
	size_t before = v->row;
	const struct library_row *library = find_library(v->policy, soname);
	while (v->row < v->policy->rows_count && !row_takes_library(&v->policy->rows[v->row], library))
		v->row = next_row(v, v->row + 1);
	if (v->row != before)
		v->why = arena_printf(v->arena, "'%s' needs %s", name, soname);
}

static int judge(struct verdict *v, const struct elf_info *info, const char *name, struct err *e)
{
	const char *machine = machine_name(info->machine);
	if (!machine)
		return err_set(e, ERR_INTEGRITY, "'%s' is for a machine without a policy (ELF machine %u)", name,
			       info->machine);
	if (v->machine && strcmp(v->machine, machine) != 0)
		return err_set(e, ERR_INTEGRITY, "'%s' is for %s, other files of the wheel for %s", name, machine,
			       v->machine);
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

int manylinux_tag(const struct manylinux_policy *p, const struct elf_info *infos, const char *const *names,
		  size_t count, struct arena *a, char **ret_tag, char **ret_why, struct err *e)
{
	struct verdict v = {.policy = p, .arena = a};
	for (size_t i = 0; i < count; i++) {
		if (infos[i].dynamic && judge(&v, &infos[i], names[i], e) < 0)
			return -1;
	}
	if (!v.machine) {
		*ret_tag = arena_strdup(a, "any");
		*ret_why = arena_strdup(a, "no dynamic ELF file is inside");
	} else {
		*ret_tag = v.row < p->rows_count ? arena_printf(a, "manylinux_%s_%s", p->rows[v.row].policy, v.machine)
						 : arena_printf(a, "linux_%s", v.machine);
		*ret_why = v.why;
	}
	return 0;
}

struct tag_scan {
	const char *dir;
	struct arena *arena;
	struct elf_info *infos;
	size_t cap;
	struct strlist names;
};

static int scan_file(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct tag_scan *s = user;
	const char *path = path_join(s->arena, s->dir, rel);
	bool is_elf;
	(void)st;
	if (elf_is(path, &is_elf, e) < 0)
		return -1;
	if (!is_elf)
		return 0;
	if (s->names.count == s->cap)
		s->infos = arena_grow(s->arena, s->infos, &s->cap, 64, sizeof(*s->infos));
	if (elf_read(path, 0, s->arena, &s->infos[s->names.count], e) < 0)
		return -1;
	strlist_add(&s->names, s->arena, rel);
	return 0;
}

int manylinux_tag_of_tree(const struct manylinux_policy *p, const char *dir, struct arena *a, char **ret_tag,
			  struct err *e)
{
	struct tag_scan s = {.dir = dir, .arena = a};
	char *why;
	if (fs_walk(dir, scan_file, &s, e) < 0)
		return -1;
	return manylinux_tag(p, s.infos, s.names.items, s.names.count, a, ret_tag, &why, e);
}
