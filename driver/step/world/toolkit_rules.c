#include "step/world/toolkit_tree.h"

#include "base/yaml/yaml.h"

#define T struct toolkit_target
PLAIN(platform, T, NEED(T, platform), NEED(T, target));
#define M struct toolkit_move
PLAIN(move, M, NEED(M, from), NEED(M, to));
#define L struct toolkit_link
PLAIN(link, L, NEED(L, path), NEED(L, to), NEED(L, why));
#define S struct toolkit_stub
PLAIN(stub, S, NEED(S, path), NEED(S, soname), NEED_LIST(S, headers), LIST(S, leave),
      NEED_NUMBER(S, answer), NEED(S, why));
#define R struct toolkit_rules
PLAIN(rules, R, NEED(R, sources), NEED_ROWS(R, platforms, platform), NEED_LIST(R, wheel_dirs),
      LIST(R, drop), NEED_ROWS(R, moves, move), ROWS(R, links, link), ROWS(R, stubs, stub));

static int bad_path(const char *file, unsigned line, const char *path, struct err *e)
{
	return err_set(e, ERR_CONFIG, "%s:%u: '%s' is not a path inside the toolkit", file, line,
		       path);
}

static int check(const struct toolkit_rules *r, const char *file, const struct yaml_tree *lines,
		 struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	for (unsigned i = 0; i < r->platforms_count; i++)
		if (!path_is_safe_relative(r->platforms[i].target) ||
		    strchr(r->platforms[i].target, '/'))
			return bad_path(file, yaml_line(lines, "platforms/%u", i),
					r->platforms[i].target, e);
	for (unsigned i = 0; i < r->wheel_dirs_count; i++)
		if (!path_is_safe_relative(r->wheel_dirs[i]))
			return bad_path(file, yaml_line(lines, "wheel_dirs/%u", i),
					r->wheel_dirs[i], e);
	for (unsigned i = 0; i < r->moves_count; i++)
		if (!path_is_safe_relative(r->moves[i].from) ||
		    !path_is_safe_relative(r->moves[i].to))
			return bad_path(file, yaml_line(lines, "moves/%u", i), r->moves[i].to, e);
	for (unsigned i = 0; i < r->links_count; i++) {
		const struct toolkit_link *l = &r->links[i];
		const char *dir = strchr(l->path, '/') ? path_dir(&a, l->path) : "";
		if (!path_is_safe_relative(l->path) || *l->to == '/' ||
		    !path_stays_inside(dir, l->to))
			return bad_path(file, yaml_line(lines, "links/%u", i), l->path, e);
	}

	for (unsigned i = 0; i < r->stubs_count; i++) {
		const struct toolkit_stub *s = &r->stubs[i];
		if (!path_is_safe_relative(s->path))
			return bad_path(file, yaml_line(lines, "stubs/%u", i), s->path, e);
		for (unsigned k = 0; k < s->headers_count; k++)
			if (!path_is_safe_relative(s->headers[k]))
				return bad_path(file, yaml_line(lines, "stubs/%u/headers/%u", i, k),
						s->headers[k], e);
	}

	return 0;
}

int toolkit_rules_load(const char *profiles_dir, struct arena *a, const struct toolkit_rules **ret,
		       struct err *e)
{
	const char *file = path_join(a, profiles_dir, "toolkit_tree.yaml");
	const struct yaml_tree *lines;
	struct toolkit_rules *r = arena_alloc(a, sizeof(*r));

	if (yaml_load(file, &rules_schema, a, r, &lines, e) < 0 || check(r, file, lines, e) < 0)
		return -1;
	*ret = r;
	return 0;
}

const char *toolkit_rules_fill(const char *path, const char *target, struct arena *a)
{
	const char *at = strchr(path, '@');
	return at ? arena_printf(a, "%.*s%s%s", (int)(at - path), path, target, at + 1) : path;
}

const char *toolkit_rules_map(const struct toolkit_rules *r, const char *target,
			      const char *component, const char *path, struct arena *a)
{
	if (strings_match(r->drop, r->drop_count, path))
		return NULL;
	if (!strchr(path, '/'))
		return arena_printf(a, "share/doc/%s/%s", component, path);
	for (unsigned i = 0; i < r->moves_count; i++) {
		const char *rest = path_below(path, r->moves[i].from);
		if (rest)
			return path_join(a, toolkit_rules_fill(r->moves[i].to, target, a), rest);
	}

	return arena_strdup(a, path);
}
