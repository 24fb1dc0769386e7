#include "core/tables/tables_parts.h"

int row_bad(const struct yaml_place *at, struct err *e, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(e, ERR_CONFIG, "%s:%u: %s", at->file, at->line, text);
}

int row_version(const struct yaml_place *at, const char *key, const char *text, struct err *e)
{
	if (version_valid(text))
		return 0;
	row_bad(at, e, "'%s': not a version: '%s'", key, text);
	return err_hint(e, "a version is numbers with dots between, in quotes: \"12.8\"");
}

int row_range(const struct yaml_place *at, const char *key, const char *text, struct err *e)
{
	bool in;

	return version_in("1", text, &in, e) < 0
		       ? err_wrap(e, "%s:%u: '%s'", at->file, at->line, key)
		       : 0;
}

int row_flag(const struct yaml_place *at, const char *key, const char *text, struct err *e)
{
	if (*text == '-' && !strpbrk(text, " \t\n'\"\\$`;"))
		return 0;
	return row_bad(at, e,
		       "'%s': not a compiler flag: '%s' (one flag per entry, beginning with '-')",
		       key, text);
}

int row_requirement(const struct yaml_place *at, const char *key, const char *text, struct err *e)
{
	size_t n =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	if (n == 0 || !isalnum((unsigned char)text[0]) || !isalnum((unsigned char)text[n - 1]))
		return row_bad(at, e, "'%s': not a requirement: '%s' (NAME or NAME>=1.2,<3)", key,
			       text);
	return row_range(at, key, text + n, e);
}

/* As options and variables have to be. */
static bool row_identifier(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '_')
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	return true;
}

int row_first(const struct yaml_place *at, const void *rows, size_t size, size_t line,
	      const void *row, struct err *e)
{
	const char *name = *(const char *const *)row;

	for (const char *r = rows; r < (const char *)row; r += size)
		if (strcmp(*(const char *const *)(const void *)r, name) == 0)
			return row_bad(at, e, "'%s' is listed twice, first in line %u", name,
				       *(const unsigned *)(const void *)(r + line));
	return 0;
}

int row_settings(const struct tables *t, const char *file, const struct table_setting *s,
		 unsigned count, struct err *e)
{
	for (unsigned i = 0; i < count; i++) {
		const struct yaml_place at = {file, s[i].line};
		const struct toggle_row *toggle;
		const char *value;
		if (!row_identifier(s[i].name))
			return row_bad(&at, e, "not a name of a setting: '%s'", s[i].name);
		if (!tables_extension(t, s[i].package, "") &&
		    tables_package_rank(s[i].package) == TABLES_PACKAGES)
			return row_bad(&at, e, "'package' cannot be '%s'", s[i].package);
		if (strpbrk(s[i].value, "\n\r"))
			return row_bad(&at, e, "the value of '%s' has more than one line",
				       s[i].name);
		for (unsigned k = 0; k < i; k++)
			if (strcmp(s[k].name, s[i].name) == 0 &&
			    strcmp(s[k].package, s[i].package) == 0)
				return row_bad(&at, e, "'%s' is set twice, first in line %u",
					       s[i].name, s[k].line);
		toggle = tables_toggle(t, s[i].package, s[i].name, NULL);
		if (!toggle)
			continue;
		if (tables_toggle_value(toggle, s[i].value, &value, e) < 0)
			return err_wrap(e, "%s:%u", file, s[i].line);
		if (strcmp(value, s[i].value) != 0)
			return row_bad(&at, e, "write '%s' for '%s', not '%s'", value, s[i].name,
				       s[i].value);
	}

	return 0;
}

/* Whether a word can be in a profile's name, which '-' and '+' divide. */
static bool is_word(const char *s, const char *also)
{
	if (!*s)
		return false;
	for (; *s; s++) {
		bool letter = *s >= 'a' && *s <= 'z';
		bool digit = *s >= '0' && *s <= '9';
		if (!letter && !digit && !strchr(also, *s))
			return false;
	}

	return true;
}

static int check_isa(const struct tables *t, const struct yaml_place *at, const void *item,
		     struct err *e)
{
	const struct isa_row *row = item;

	if (!is_word(row->name, "_"))
		return row_bad(at, e,
			       "not a name for an instruction set: '%s' (lower-case letters, "
			       "digits and '_')",
			       row->name);
	if (tables_isa(t, row->name) != row)
		return row_bad(at, e, "'%s' is listed twice", row->name);
	for (unsigned i = 0; i < row->aliases_count; i++) {
		if (!is_word(row->aliases[i], "_."))
			return row_bad(
				at, e,
				"not an alias: '%s' (lower-case letters, digits, '_' and '.')",
				row->aliases[i]);
		if (tables_isa(t, row->aliases[i]) != row)
			return row_bad(at, e, "'%s' is listed twice", row->aliases[i]);
	}

	return row_settings(t, at->file, row->settings, row->settings_count, e);
}

static int check_group(const struct tables *t, const struct yaml_place *at, const void *item,
		       struct err *e)
{
	const struct isa_group *row = item;

	if (!is_word(row->name, "-_"))
		return row_bad(
			at, e,
			"not a name for a group: '%s' (lower-case letters, digits, '-' and '_')",
			row->name);
	if (tables_isa(t, row->name))
		return row_bad(at, e, "group '%s' has the name of an instruction set", row->name);
	for (unsigned i = 0; i < row->isas_count; i++) {
		const struct isa_row *isa = tables_isa(t, row->isas[i]);
		if (!isa || strcmp(isa->name, row->isas[i]) != 0)
			return row_bad(at, e,
				       "group '%s': not an instruction set of this file: '%s'",
				       row->name, row->isas[i]);
	}

	return 0;
}

/* "9.0" for "90", "12.1" for "121". */
static bool capability_fits(const struct gpu_row *row)
{
	size_t n = strlen(row->sm);
	char want[16];

	if (n < 2 || n > 4 || strspn(row->sm, "0123456789") != n)
		return false;
	snprintf(want, sizeof(want), "%.*s.%s", (int)(n - 1), row->sm, row->sm + n - 1);
	return strcmp(want, row->capability) == 0;
}

static int check_suffixes(const struct yaml_place *at, const struct gpu_row *row, struct err *e)
{
	for (unsigned i = 0; i < row->suffixes_count; i++) {
		const struct gpu_suffix *s = &row->suffixes[i];
		if (version_cmp(s->cuda_min, row->cuda_min) < 0)
			return row_bad(at, e,
				       "suffix '%s' cannot be older than its target: %s before %s",
				       s->suffix, s->cuda_min, row->cuda_min);
		if (text_search(s->suffix, row->suffixes, i, sizeof(*s)))
			return row_bad(at, e, "suffix '%s' is listed twice", s->suffix);
	}

	return 0;
}

static int check_gpu(const struct tables *t, const struct yaml_place *at, const void *item,
		     struct err *e)
{
	const struct gpu_row *row = item;

	if (!capability_fits(row))
		return row_bad(at, e, "sm '%s' and capability '%s' do not fit: 90 goes with 9.0",
			       row->sm, row->capability);
	if (*row->cuda_max && version_cmp(row->cuda_max, row->cuda_min) < 0)
		return row_bad(at, e, "cuda_max %s is before cuda_min %s", row->cuda_max,
			       row->cuda_min);
	if (row->tegra != (*row->sbsa != '\0'))
		return row_bad(at, e,
			       "'tegra' and 'sbsa' are of the same GPUs: sm '%s' has one of them",
			       row->sm);
	if (check_suffixes(at, row, e) < 0 ||
	    row_settings(t, at->file, row->settings, row->settings_count, e) < 0)
		return -1;
	for (unsigned i = 0; i < row->aliases_count; i++)
		if (tables_gpu(t, row->aliases[i]) != row)
			return row_bad(at, e, "sm '%s' is listed twice", row->aliases[i]);
	for (unsigned i = 0; i < row->not_with_count; i++)
		if (!tables_gpu(t, row->not_with[i]))
			return row_bad(at, e, "not_with: no sm '%s' in this file",
				       row->not_with[i]);
	return 0;
}

static int check_toolkit(const struct tables *t, const struct yaml_place *at, const void *item,
			 struct err *e)
{
	const struct toolkit_row *row = item;

	(void)t;
	return row->libraries_count ? 0
				    : row_bad(at, e, "no layout '%s' in this file", row->layout);
}

static int check_gpu_extra(const struct tables *t, const struct yaml_place *at, const void *item,
			   struct err *e)
{
	const struct gpu_extra_row *row = item;
	const char *const targets[] = {row->base, row->extra};

	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		char sm[16] = "";
		size_t n = strspn(targets[i], "0123456789");
		if (n < sizeof(sm))
			memcpy(sm, targets[i], n);
		if (!tables_gpu(t, sm) || strlen(targets[i]) > n + 1 ||
		    (targets[i][n] && !strchr("af", targets[i][n])))
			return row_bad(at, e, "no GPU target '%s' in this file", targets[i]);
	}

	return 0;
}

static int check_part(const struct tables *t, const struct yaml_place *at, const void *item,
		      struct err *e)
{
	const struct part_row *row = item;

	if (!path_is_safe_relative(row->header))
		return row_bad(at, e, "not a name of a header: '%s'", row->header);
	if (!tables_toggle(t, row->package, row->toggle, NULL))
		return row_bad(at, e, "no toggle '%s' of %s in toggles.yaml", row->toggle,
			       row->package);
	return 0;
}

static int check_cuda_library(const struct tables *t, const char *file,
			      const struct layout_row *layout, const struct cuda_library_row *row,
			      struct err *e)
{
	const struct yaml_place at = {file, row->line};

	if (!path_is_safe_relative(row->dir))
		return row_bad(&at, e, "not a directory below site-packages/nvidia: '%s'",
			       row->dir);
	if (*row->older && !path_is_safe_relative(row->older))
		return row_bad(&at, e, "not a directory below site-packages: '%s'", row->older);
	if (row_first(&at, layout->libraries, sizeof(*row), offsetof(struct cuda_library_row, line),
		      row, e) < 0)
		return -1;
	for (unsigned i = 0; i < row->needs_count; i++)
		if (!text_search(row->needs[i], layout->libraries, layout->libraries_count,
				 sizeof(*row)))
			return row_bad(&at, e, "no package '%s' in layout '%s'", row->needs[i],
				       layout->name);
	if (*row->part && !text_search(row->part, t->parts, t->parts_count, sizeof(*t->parts)))
		return row_bad(&at, e, "no part '%s' in this file", row->part);
	return 0;
}

static int check_layout(const struct tables *t, const struct yaml_place *at, const void *item,
			struct err *e)
{
	const struct layout_row *row = item;

	for (unsigned i = 0; i < row->libraries_count; i++)
		if (check_cuda_library(t, at->file, row, &row->libraries[i], e) < 0)
			return -1;
	return 0;
}

static int check_blas(const struct tables *t, const struct yaml_place *at, const void *item,
		      struct err *e)
{
	const struct blas_row *row = item;

	if (!is_word(row->name, "_"))
		return row_bad(at, e,
			       "not a name for a BLAS: '%s' (lower-case letters, digits and '_')",
			       row->name);
	if (*row->world && !is_word(row->world, "_"))
		return row_bad(at, e, "not a name of a part of a world: '%s'", row->world);
	if (*row->linked && !is_word(row->linked, "-+."))
		return row_bad(at, e, "not a name of a directory of documents: '%s'", row->linked);
	if (!*row->place != !row->files_count)
		return row_bad(at, e, "'%s' needs both 'place' and 'files', or neither", row->name);
	if (!*row->linked != !*row->licence)
		return row_bad(at, e, "'%s' needs both 'linked' and 'licence', or neither",
			       row->name);
	return row_settings(t, at->file, row->settings, row->settings_count, e);
}

/* Whether two rows hold for a common version. */
static bool overlap(const struct toggle_row *a, const struct toggle_row *b)
{
	bool a_first = *a->until && *b->since && version_cmp(a->until, b->since) <= 0;
	bool b_first = *b->until && *a->since && version_cmp(b->until, a->since) <= 0;
	return !a_first && !b_first;
}

static int check_toggle(const struct tables *t, const struct yaml_place *at, const void *item,
			struct err *e)
{
	const struct toggle_row *row = item;
	const char *given[] = {row->cpu, row->cuda, row->mps};
	const char *value;

	if (!row_identifier(row->name))
		return row_bad(at, e, "not a name of an option: '%s'", row->name);
	if (*row->since && *row->until && version_cmp(row->since, row->until) >= 0)
		return row_bad(at, e, "'%s' ends in %s before it begins in %s", row->name,
			       row->until, row->since);
	for (size_t i = 0; i < ARRAY_LEN(given); i++) {
		if (!*given[i])
			continue;
		if (tables_toggle_value(row, given[i], &value, e) < 0)
			return err_wrap(e, "%s:%u", at->file, at->line);
		if (strcmp(value, given[i]) != 0)
			return row_bad(at, e, "write '%s' for '%s', not '%s'", value, row->name,
				       given[i]);
	}

	if (*row->needs && (strcmp(row->needs, row->name) == 0 ||
			    !tables_toggle(t, row->package, row->needs, NULL)))
		return row_bad(at, e, "'%s' needs '%s', which is not another option of %s",
			       row->name, row->needs, row->package);
	for (const struct toggle_row *o = t->toggles; o < row; o++)
		if (strcmp(o->name, row->name) == 0 && strcmp(o->package, row->package) == 0 &&
		    overlap(o, row))
			return row_bad(
				at, e,
				"'%s' of %s is listed twice for the same version, first in line %u",
				row->name, row->package, o->line);
	return 0;
}

static int check_retired(const struct tables *t, const struct yaml_place *at, const void *item,
			 struct err *e)
{
	const struct retired_row *row = item;

	if (!row_identifier(row->name))
		return row_bad(at, e, "not a name of an option: '%s'", row->name);
	for (unsigned i = 0; i < t->toggles_count; i++) {
		const struct toggle_row *live = &t->toggles[i];
		if (strcmp(live->name, row->name) != 0 || strcmp(live->package, row->package) != 0)
			continue;
		if (!*row->since || !*live->until || version_cmp(live->until, row->since) > 0)
			return row_bad(at, e, "'%s' cannot be retired: line %u still has it",
				       row->name, live->line);
	}

	return 0;
}

static int check_correction(const struct tables *t, const struct yaml_place *at, const void *item,
			    struct err *e)
{
	const struct correction_row *row = item;

	if (!is_word(row->name, "-."))
		return row_bad(at, e,
			       "not a name for a correction: '%s' (lower-case letters, digits, '-' "
			       "and '.')",
			       row->name);
	for (unsigned i = 0; i < row->isas_count; i++)
		if (!tables_isa(t, row->isas[i]))
			return row_bad(at, e, "unknown instruction set '%s'", row->isas[i]);
	for (unsigned i = 0; i < row->gpus_count; i++)
		if (!tables_gpu(t, row->gpus[i]))
			return row_bad(at, e, "unknown GPU target '%s'", row->gpus[i]);
	return 0;
}

/* A release that is not there is fine: a set of tables may have fewer. */
static int check_need(const struct tables *t, const struct yaml_place *at, const void *item,
		      struct err *e)
{
	const struct need_row *row = item;
	const char *given[] = {row->tool, row->program, row->header, row->module, row->library};
	unsigned n = 0;

	(void)t;
	for (size_t i = 0; i < ARRAY_LEN(given); i++)
		n += *given[i] != '\0';
	if (n != 1)
		return row_bad(
			at, e,
			"a need is one of 'tool', 'program', 'header', 'module' and 'library'");
	if (row->host && !*row->program)
		return row_bad(at, e, "'host' is for a 'program'");
	return 0;
}

static bool is_number(const char *text)
{
	return !*text || (text[strspn(text, "0123456789")] == '\0' && strlen(text) < 5);
}

/* A valid pattern cannot match a dist-info or a path outside the tree. */
static bool is_pattern(const char *glob)
{
	return strchr(glob, '/') && *glob != '*' && *glob != '/' && !strstr(glob, "..");
}

static int check_drop(const struct tables *t, const struct yaml_place *at, const void *item,
		      struct err *e)
{
	const struct drop_row *row = item;
	const int ways = (*row->strip != '\0') + (row->files_count > 0) + (row->targets_count > 0) +
			 row->same;

	(void)t;
	if (ways != 1)
		return row_bad(at, e, "a row has one of 'strip', 'files', 'targets' and 'same'");
	if (!is_number(row->gpus_below) || !is_number(row->gpus_from))
		return row_bad(at, e, "'gpus_below' and 'gpus_from' are numbers such as 90");
	for (unsigned i = 0; i < row->files_count; i++)
		if (!is_pattern(row->files[i]))
			return row_bad(at, e, "'%s' is not a pattern below a package's directory",
				       row->files[i]);
	for (unsigned i = 0; i < row->targets_count; i++) {
		const char *star = strchr(row->targets[i], '*');
		if (!is_pattern(row->targets[i]) || !star || strchr(star + 1, '*'))
			return row_bad(at, e, "'%s' needs one '*', for the GPU's number",
				       row->targets[i]);
	}

	if (strcmp(row->name, "all") == 0)
		return row_bad(at, e, "'all' is every kind");
	return 0;
}

static int check_captured(const struct tables *t, const struct yaml_place *at, const void *item,
			  struct err *e)
{
	const struct captured_row *row = item;

	(void)t;
	return !*row->requirement == !*row->check
		       ? row_bad(at, e, "a row has either 'requirement' or 'check'")
		       : 0;
}

/* "2_28" -> 28; 0 for anything else. */
unsigned tables_policy_minor(const char *policy)
{
	unsigned minor;
	int end = 0;
	return sscanf(policy, "2_%3u%n", &minor, &end) == 1 && policy[end] == '\0' ? minor : 0;
}

static int check_policy(const struct tables *t, const struct yaml_place *at, const void *item,
			struct err *e)
{
	const struct policy_row *row = item;
	unsigned minor = tables_policy_minor(row->policy);

	if (!minor)
		return row_bad(at, e, "policy '%s' is not of the form 2_N", row->policy);
	if (!*row->ceilings[0])
		return row_bad(at, e, "policy '%s' without a ceiling for glibc", row->policy);
	for (const struct policy_row *o = t->manylinux.policies; o < row; o++)
		if (strcmp(o->machine, row->machine) == 0 &&
		    tables_policy_minor(o->policy) >= minor)
			return row_bad(at, e, "policies of a machine must ascend");
	return 0;
}

static int check_library(const struct tables *t, const struct yaml_place *at, const void *item,
			 struct err *e)
{
	const struct system_library_row *row = item;

	(void)t;
	if (*row->since && !tables_policy_minor(row->since))
		return row_bad(at, e, "'since' of '%s' is not of the form 2_N", row->name);
	return 0;
}

static int check_pool(const struct tables *t, const struct yaml_place *at, const void *item,
		      struct err *e)
{
	const struct pool_row *row = item;

	(void)t;
	if (!row->libraries_count && !row->defines_count)
		return row_bad(at, e, "'%s' has neither 'libraries' nor 'defines'", row->name);
	if (!row->defines_count && row->wants_count + row->without_count)
		return row_bad(at, e, "'%s' has 'wants' or 'without', but no 'defines'", row->name);
	return 0;
}

#define KIND(file, member, type, unique, check)                                                    \
	{                                                                                          \
		file, offsetof(struct tables, member), offsetof(struct tables, member##_count),    \
			sizeof(type), offsetof(type, line), unique, check                          \
	}

static const struct kind {
	const char *file;
	size_t rows, count, size, line; /* offsets in struct tables and in a row */
	bool unique;                    /* no two rows of one name, which every row begins with */
	int (*check)(const struct tables *t, const struct yaml_place *at, const void *row,
		     struct err *e);
} kinds[] = {
	KIND("toggles.yaml", toggles, struct toggle_row, false, check_toggle),
	KIND("toggles.yaml", retired, struct retired_row, false, check_retired),
	KIND("isa.yaml", isas, struct isa_row, true, check_isa),
	KIND("isa.yaml", groups, struct isa_group, true, check_group),
	KIND("gpu.yaml", gpus, struct gpu_row, true, check_gpu),
	KIND("gpu.yaml", gpu_extras, struct gpu_extra_row, false, check_gpu_extra),
	KIND("cuda.yaml", parts, struct part_row, true, check_part),
	KIND("cuda.yaml", layouts, struct layout_row, true, check_layout),
	KIND("cuda.yaml", toolkits, struct toolkit_row, true, check_toolkit),
	KIND("blas.yaml", blas, struct blas_row, true, check_blas),
	KIND("corrections.yaml", corrections, struct correction_row, true, check_correction),
	KIND("corrections.yaml", advisories, struct advisory_row, true, NULL),
	KIND("needs.yaml", needs, struct need_row, false, check_need),
	KIND("slim.yaml", drops, struct drop_row, false, check_drop),
	KIND("captured.yaml", captured, struct captured_row, false, check_captured),
	KIND("torch_extensions.yaml", torch_extensions, struct package_row, false,
	     tables_check_extension),
	KIND("manylinux.yaml", manylinux.policies, struct policy_row, false, check_policy),
	KIND("manylinux.yaml", manylinux.libraries, struct system_library_row, false,
	     check_library),
	KIND("threads.yaml", threads.pools, struct pool_row, true, check_pool),
};

static int check_kind(const struct tables *t, const struct kind *k, const char *file, struct err *e)
{
	const char *rows = *(const char *const *)(const void *)((const char *)t + k->rows);
	unsigned count = *(const unsigned *)(const void *)((const char *)t + k->count);

	for (unsigned i = 0; i < count; i++) {
		const char *row = rows + i * k->size;
		const struct yaml_place at = {file,
					      *(const unsigned *)(const void *)(row + k->line)};
		if ((k->unique && row_first(&at, rows, k->size, k->line, row, e) < 0) ||
		    (k->check && k->check(t, &at, row, e) < 0))
			return -1;
	}

	return 0;
}

int tables_check(const struct tables *t, struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (check_kind(t, &kinds[i], path_join(&a, t->dir, kinds[i].file), e) < 0)
			return -1;
	for (unsigned i = 0; i < t->releases_count; i++)
		if (tables_check_release(t, &t->releases[i], e) < 0)
			return -1;
	return 0;
}
