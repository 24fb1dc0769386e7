#include <fnmatch.h>

#include "base/yaml/yaml.h"
#include "core/ci/ci.h"

PLAIN(format, struct ci_format_row, NEED(struct ci_format_row, name), NEED(struct ci_format_row, jobs),
      NEED(struct ci_format_row, minutes), NEED(struct ci_format_row, cache), MAY(struct ci_format_row, cpus));

PLAIN(action, struct ci_action_row, NEED(struct ci_action_row, name), NEED(struct ci_action_row, uses),
      NEED(struct ci_action_row, commit), NEED(struct ci_action_row, version));

PLAIN(runner, struct ci_runner_row, MAY(struct ci_runner_row, match), MAY(struct ci_runner_row, platform),
      MAY(struct ci_runner_row, format), MAY(struct ci_runner_row, minutes), NEED_LIST(struct ci_runner_row, labels));

/* A user's map has runners alone. */
PLAIN(map, struct ci_tables, NEED_ROWS(struct ci_tables, runners, runner));
PLAIN(table, struct ci_tables,
      {"formats", YAML_ROWS, LIST_AT(struct ci_tables, formats), .need = true, .of = &format_schema},
      NEED(struct ci_tables, image),
      {"actions", YAML_ROWS, LIST_AT(struct ci_tables, actions), .need = true, .of = &action_schema},
      NEED_ROWS(struct ci_tables, runners, runner));

/* Labels go into files that services read: plain words only. */
static bool is_label(const char *s)
{
	return *s && strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:+/=@&|,*()[] ") ==
			     strlen(s);
}

static bool is_count(const char *s)
{
	char *end;
	return strtoul(s, &end, 10) != 0 && !*end;
}

static int load(const char *path, const struct yaml_schema *schema, struct arena *a, const struct ci_tables **ret,
		struct err *e)
{
	const struct yaml_tree *lines;
	struct ci_tables *t = arena_alloc(a, sizeof(*t));
	if (yaml_load(path, schema, a, t, &lines, e) < 0)
		return -1;
	for (unsigned i = 0; i < t->formats_count; i++) {
		const struct ci_format_row *f = &t->formats[i];
		unsigned line = yaml_line(lines, "formats/%u", i);
		uint64_t bytes;
		if (!is_count(f->jobs))
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' is not a number of jobs", path, line, f->jobs);
		if (!is_count(f->minutes))
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' is not a number of minutes", path, line, f->minutes);
		if (*f->cpus && !is_count(f->cpus))
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' is not a number of processors", path, line, f->cpus);
		if (size_parse(f->cache, &bytes, e) < 0)
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' is not a size", path, line, f->cache);
	}
	for (unsigned i = 0; i < t->actions_count; i++)
		if (strlen(t->actions[i].commit) != 40 || strspn(t->actions[i].commit, "0123456789abcdef") != 40)
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' is not a commit", path,
				       yaml_line(lines, "actions/%u", i), t->actions[i].commit);
	for (unsigned i = 0; i < t->runners_count; i++) {
		if (*t->runners[i].minutes && !is_count(t->runners[i].minutes))
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' is not a number of minutes", path,
				       yaml_line(lines, "runners/%u", i), t->runners[i].minutes);
		for (unsigned k = 0; k < t->runners[i].labels_count; k++)
			if (!is_label(t->runners[i].labels[k]))
				return err_set(e, ERR_CONFIG, "%s:%u: '%s' is not a runner label", path,
					       yaml_line(lines, "runners/%u", i), t->runners[i].labels[k]);
	}
	*ret = t;
	return 0;
}

int ci_tables_load(const char *profiles_dir, struct arena *a, const struct ci_tables **ret, struct err *e)
{
	return load(path_join(a, profiles_dir, "ci.yaml"), &table_schema, a, ret, e);
}

int ci_runners_load(const char *path, struct arena *a, const struct ci_tables **ret, struct err *e)
{
	return load(path, &map_schema, a, ret, e);
}

const struct ci_format_row *ci_format(const struct ci_tables *t, const char *format)
{
	return text_search(format, t->formats, t->formats_count, sizeof(*t->formats));
}

unsigned ci_minutes(const struct ci_format_row *f, const struct ci_runner_row *r)
{
	return (unsigned)strtoul(*r->minutes ? r->minutes : f->minutes, NULL, 10);
}

static bool fits(const char *own, const char *asked)
{
	return !*own || strcmp(own, asked) == 0;
}

const struct ci_runner_row *ci_runner(const struct ci_tables *t, const char *format, const char *platform,
				      const char *variant)
{
	for (unsigned i = 0; i < t->runners_count; i++) {
		const struct ci_runner_row *r = &t->runners[i];
		if (fits(r->format, format) && fits(r->platform, platform) &&
		    (!*r->match || fnmatch(r->match, variant, 0) == 0))
			return r;
	}
	return NULL;
}

const char *ci_action(const struct ci_tables *t, const char *name, struct arena *a)
{
	for (unsigned i = 0; i < t->actions_count; i++)
		if (strcmp(t->actions[i].name, name) == 0)
			return arena_printf(a, "%s@%s", t->actions[i].uses, t->actions[i].commit);
	return NULL;
}
