#include "core/root/sandbox_file.h"

#include <string.h>

#include "base/sys/json.h"

static const char *const type_names[] = {
	[SANDBOX_RO] = "ro",     [SANDBOX_RW] = "rw",     [SANDBOX_TMPFS] = "tmpfs", [SANDBOX_DIR] = "dir",
	[SANDBOX_LINK] = "link", [SANDBOX_PROC] = "proc", [SANDBOX_DEV] = "dev",     [SANDBOX_DATA] = "data"};

json_t *sandbox_to_json(const struct sandbox *s)
{
	json_t *ops = json_array(), *env = json_array(), *out = json_object();
	for (size_t i = 0; i < s->count; i++) {
		const struct sandbox_op *op = &s->ops[i];
		json_t *one = json_object();
		json_object_set_new(one, "type", json_string(type_names[op->type]));
		json_object_set_new(one, "source", json_or_null(op->source));
		json_object_set_new(one, "dest", json_or_null(op->dest));
		json_array_append_new(ops, one);
	}
	for (size_t i = 0; i < s->env.count; i++) {
		json_t *pair = json_array();
		json_array_append_new(pair, json_or_null(s->env.items[i].key));
		json_array_append_new(pair, json_or_null(s->env.items[i].value));
		json_array_append_new(env, pair);
	}
	json_object_set_new(out, "kind", json_string(sandbox_kind_name(s->kind)));
	json_object_set_new(out, "network", json_boolean(s->network));
	json_object_set_new(out, "cwd", json_or_null(s->cwd));
	json_object_set_new(out, "ops", ops);
	json_object_set_new(out, "env", env);
	return out;
}

static bool read_op(const json_t *j, struct sandbox *s)
{
	const char *type = json_string_value(json_object_get(j, "type"));
	const char *dest = json_string_value(json_object_get(j, "dest"));
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

static bool read_all(const json_t *j, struct sandbox *s)
{
	size_t i;
	const json_t *one;
	const json_t *ops = json_object_get(j, "ops"), *env = json_object_get(j, "env");
	const char *kind = json_string_value(json_object_get(j, "kind")),
		   *cwd = json_string_value(json_object_get(j, "cwd"));
	if (!kind || !sandbox_kind_parse(kind, &s->kind) || !cwd || *cwd != '/' || !json_is_array(ops) ||
	    !json_is_array(env) || !json_is_boolean(json_object_get(j, "network")))
		return false;
	s->network = json_is_true(json_object_get(j, "network"));
	s->cwd = arena_strdup(s->arena, cwd);
	json_array_foreach(ops, i, one)
	{
		if (!read_op(one, s))
			return false;
	}
	json_array_foreach(env, i, one)
	{
		const char *key = json_string_value(json_array_get(one, 0)),
			   *value = json_string_value(json_array_get(one, 1));
		if (!key || !*key || strchr(key, '=') || !value)
			return false;
		kvlist_set(&s->env, s->arena, key, value);
	}
	return true;
}

int sandbox_from_json(const json_t *j, const char *name, struct arena *a, struct sandbox *ret, struct err *e)
{
	struct sandbox s = {.arena = a};
	if (!read_all(j, &s))
		return err_set(e, ERR_INTEGRITY, "'%s' describes no sandbox", name);
	*ret = s;
	return 0;
}
