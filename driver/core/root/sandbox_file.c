#include "core/root/sandbox.h"

#include <string.h>

#include "base/sys/json.h"

static const char *const type_names[] = {
	[SANDBOX_RO] = "ro",     [SANDBOX_RW] = "rw",     [SANDBOX_TMPFS] = "tmpfs", [SANDBOX_DIR] = "dir",
	[SANDBOX_LINK] = "link", [SANDBOX_PROC] = "proc", [SANDBOX_DEV] = "dev",     [SANDBOX_DATA] = "data"};

json_t *sandbox_to_json(const struct sandbox *s)
{
	json_t *ops = json_array(), *env = json_array();
	for (size_t i = 0; i < s->count; i++)
		json_array_append_new(ops,
				      json_pack("{s:s, s:o, s:o}", "type", type_names[s->ops[i].type], "source",
						json_or_null(s->ops[i].source), "dest", json_or_null(s->ops[i].dest)));
	for (size_t i = 0; i < s->env.count; i++)
		json_array_append_new(env, json_pack("[o, o]", json_or_null(s->env.items[i].key),
						     json_or_null(s->env.items[i].value)));
	return json_pack("{s:s, s:b, s:o, s:o, s:o}", "kind", sandbox_kind_name(s->kind), "network", s->network, "cwd",
			 json_or_null(s->cwd), "ops", ops, "env", env);
}

static bool read_op(const json_t *j, struct sandbox *s)
{
	const char *type = json_member(j, "type");
	const char *dest = json_member(j, "dest");
	const json_t *source = json_object_get(j, "source");
	for (size_t i = 0; type && dest && i < ARRAY_LEN(type_names); i++) {
		if (strcmp(type, type_names[i]) != 0)
			continue;
		bool wanted = i == SANDBOX_RO || i == SANDBOX_RW || i == SANDBOX_LINK || i == SANDBOX_DATA;
		if (*dest != '/' || wanted != json_is_string(source))
			return false;
		sandbox_add(s, (enum sandbox_op_type)i, json_string_value(source), dest);
		return true;
	}
	return false;
}

static bool read_all(json_t *j, struct sandbox *s)
{
	const char *kind, *key, *value;
	int network;
	json_t *ops, *env;
	if (json_unpack(j, "{s:s, s:b, s:s, s:o, s:o}", "kind", &kind, "network", &network, "cwd", &s->cwd, "ops", &ops,
			"env", &env) < 0 ||
	    !sandbox_kind_parse(kind, &s->kind) || *s->cwd != '/' || !json_is_array(ops) || !json_is_array(env))
		return false;
	s->network = network;
	s->cwd = arena_strdup(s->arena, s->cwd);
	for (size_t i = 0; i < json_array_size(ops); i++)
		if (!read_op(json_array_get(ops, i), s))
			return false;
	for (size_t i = 0; i < json_array_size(env); i++) {
		if (json_unpack(json_array_get(env, i), "[s, s]", &key, &value) < 0 || !*key || strchr(key, '='))
			return false;
		kvlist_set(&s->env, s->arena, key, value);
	}
	return true;
}

int sandbox_from_json(const json_t *j, const char *name, struct arena *a, struct sandbox *ret, struct err *e)
{
	struct sandbox s = {.arena = a};
	if (!read_all((json_t *)j, &s))
		return err_set(e, ERR_INTEGRITY, "'%s' does not describe a sandbox", name);
	*ret = s;
	return 0;
}
