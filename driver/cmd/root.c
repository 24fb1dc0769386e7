#include "cmd/root.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/sys/machine.h"
#include "base/version.h"
#include "core/world/choose.h"
#include "step/pipeline/pipeline_world.h"

#define WORLD_ROOT "world:"

/* Of the variant, or where it names none, the release's first. */
static const char *toolkit_of(const struct release_row *r, const struct profile *p, const char *cuda)
{
	if (p->gpu != GPU_CUDA)
		return NULL;
	return cuda ? cuda : r->toolkits_count ? r->toolkits[0] : NULL;
}

int cmd_platform(struct arena *a, const char **ret, struct err *e)
{
	struct utsname u;
	if (uname(&u) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot tell the kind of this machine");
	*ret = arena_printf(a, "%s-linux", u.machine);
	return 0;
}

static const char *named_world(const struct cmd_context *c)
{
	const char *root = c->global->root;
	return root && strncmp(root, WORLD_ROOT, strlen(WORLD_ROOT)) == 0 ? root + strlen(WORLD_ROOT) : NULL;
}

static int load_world(struct cmd_context *c, const char *name, struct err *e)
{
	const char *platform, *profiles;
	if (cmd_platform(c->arena, &platform, e) < 0 || cmd_profiles_dir(c, &profiles, e) < 0)
		return -1;
	return world_load(profiles, name, platform, c->arena, &c->world, e);
}

/* "1:3.31.6-2" is 3.31.6. */
static const char *upstream_version(const char *version, struct arena *a)
{
	const char *colon = strchr(version, ':'), *from = colon ? colon + 1 : version;
	return arena_strndup(a, from, strspn(from, "0123456789."));
}

/* The wheel or the package of a base that has a tool; a wheel's is first in PATH. */
static const struct world_entry *find_tool(const struct world_lock *l, const char *package, const char *wheel)
{
	const struct world_entry *found = NULL;
	for (size_t i = 0; i < l->count; i++) {
		const struct world_entry *t = &l->entries[i];
		if (t->kind == WORLD_WHEEL && strcmp(t->name, wheel) == 0)
			return t;
		if (t->kind == WORLD_DEB && strcmp(t->name, package) == 0)
			found = t;
	}
	return found;
}

/* A world is as its lock says: what a build would refuse can be told before anything is downloaded. */
static int check_tools(struct cmd_context *c, const struct release_row *r, struct err *e)
{
	const struct {
		const char *package, *wheel, *range;
	} tools[] = {{"cmake", "cmake", r->cmake}, {"ninja-build", "ninja", r->ninja}, {"gcc", "", r->gcc}};
	const struct world_piece *base = &c->world->pieces[0];
	for (size_t t = 0; t < ARRAY_LEN(tools); t++) {
		const struct world_entry *tool = find_tool(&base->lock, tools[t].package, tools[t].wheel);
		bool fits = true;
		if (!tool)
			continue;
		const char *version = upstream_version(tool->version, c->arena);
		if (version_in(version, tools[t].range, &fits, e) < 0)
			return -1;
		if (fits)
			continue;
		err_set(e, ERR_POLICY, "'%s' has %s %s; release %s needs %s", base->part->part, tool->name, version,
			r->name, tools[t].range);
		return err_hint(e, "another toolkit (--cuda) may stand on a newer base; --root DIR is a root of your "
				   "own");
	}
	return 0;
}

static int same_world(const char *first, const char *name, const char *variant, struct err *e)
{
	if (strcmp(first ? first : "", name ? name : "") == 0)
		return 0;
	err_set(e, ERR_USAGE, "the variants stand on several worlds: '%s', and for %s '%s'", first ? first : "none",
		variant, name ? name : "none");
	return err_hint(e, "build those of each world by a command of its own (--only), or name one root with --root");
}

int cmd_root_choose(struct cmd_context *c, const struct selections *s, struct err *e)
{
	const struct tables *t;
	const char *platform, *first = NULL;
	if (named_world(c))
		return c->world || load_world(c, named_world(c), e) == 0 ? 0 : -1;
	if (c->global->root || cmd_sandbox(c) == SANDBOX_NONE || !s->count)
		return 0;
	if (cmd_tables(c, &t, e) < 0 || cmd_platform(c->arena, &platform, e) < 0)
		return -1;
	for (size_t i = 0; i < s->count; i++) {
		const struct variant *v = &s->items[i].variant;
		const struct release_row *r = s->items[i].release;
		struct world_choice w = {0};
		const struct plan_request q = {.variant = v, .release = r->name};
		const char *cuda = toolkit_of(r, &v->profile, v->cuda);
		struct err ignored = {0};
		/* a GPU can need a newer one than the release's first; what cannot be planned is refused there */
		if (cuda && !v->cuda && plan_cuda(t, &q, c->arena, &cuda, &ignored) < 0)
			cuda = r->toolkits[0];
		/* a plan can be for another kind of machine, whose roots are not made here */
		if (strcmp(v->profile.platform, platform) == 0 &&
		    world_choose(t, r, platform, cuda, v->python, c->arena, &w, e) < 0)
			return -1;
		if (i && same_world(first, w.name, variant_name(v, c->arena), e) < 0)
			return -1;
		first = w.name;
	}
	if (!first)
		return 0;
	if (load_world(c, first, e) < 0)
		return -1;
	if (check_tools(c, s->items[0].release, e) == 0)
		return 0;
	c->world = NULL;
	return -1;
}

int cmd_root_look(struct cmd_context *c, struct cmd_root_state *ret, struct err *e)
{
	struct store *store;
	const char *cache, *lower = getenv("PTBUILD_LOWER_STORE"), *dir = NULL;
	struct err ignored = {0};
	*ret = (struct cmd_root_state){c->world, true};
	if (!c->world || c->root)
		return 0;
	ret->made = false;
	/* Looking makes no store. */
	if (cmd_cache_dir(c, &cache, &ignored) < 0 ||
	    (!fs_exists(path_join(c->arena, cache, "format")) && !c->global->lower_stores.count && !(lower && *lower)))
		return 0;
	if (cmd_store(c, &store, e) < 0 || world_find(store, c->world, c->arena, &dir, e) < 0)
		return -1;
	ret->made = dir != NULL;
	return 0;
}

static int make_world(struct cmd_context *c, const char **ret, struct err *e)
{
	struct world_request q = {.world = c->world,
				  .no_drift = c->global->no_drift,
				  .jobs = c->global->jobs ? c->global->jobs : machine_processors()};
	struct world_result r = {0};
	if (cmd_store(c, &q.store, e) < 0 || cmd_profiles_dir(c, &q.profiles, e) < 0 ||
	    cmd_fetch_options(c, &q.fetch, e) < 0)
		return -1;
	struct cmd_root_state state;
	if (cmd_root_look(c, &state, e) < 0)
		return -1;
	if (!state.made)
		log_info(c->run->log, "world %s", cmd_world_text(&state, c->arena));
	/* Its lock is held until the process ends. */
	if (world_ensure(&q, c->run, c->arena, &r, e) < 0)
		return err_wrap(e, "world '%s'", c->world->name);
	if (!r.hit)
		log_info(c->run->log, "world %s is made (%.0f s)", c->world->name, r.seconds);
	for (size_t i = 0; i < r.drift.count; i++)
		log_warn(c->run->log, "drift: not the pinned package: %s", r.drift.items[i]);
	c->drift = r.drift;
	c->world = r.world;
	*ret = r.dir;
	return 0;
}

int cmd_root(struct cmd_context *c, const struct root **ret, struct err *e)
{
	const char *dir = c->global->root ? cmd_absolute(c->arena, c->global->root) : NULL;
	if (!c->root) {
		struct root *root = arena_alloc(c->arena, sizeof(*root));
		if (!c->world && named_world(c) && load_world(c, named_world(c), e) < 0)
			return -1;
		if ((c->world && make_world(c, &dir, e) < 0) || root_open(dir, c->arena, root, e) < 0)
			return -1;
		c->root = root;
	}
	*ret = c->root;
	return 0;
}

/* The version in the file name of the root's python3, so that nothing is run; NULL if there is none. */
static const char *python_of(const struct root *root, struct arena *a)
{
	const char *path = root_find_program(root, "python3", a);
	if (path)
		path = root_resolve(root, path, a);
	const char *name = path ? path_base(path) : "";
	return strncmp(name, "python3.", 8) == 0 ? arena_strdup(a, name + strlen("python")) : NULL;
}

int cmd_root_python(struct cmd_context *c, const struct release_row *r, const struct profile *p, const char *cuda,
		    const char **ret, struct err *e)
{
	const struct tables *t;
	const struct root *root;
	const char *platform;
	struct world_choice w = {0};
	struct err ignored = {0};
	*ret = NULL;
	if (named_world(c)) {
		if (!c->world && load_world(c, named_world(c), e) < 0)
			return -1;
		for (size_t i = 0; i < c->world->count; i++)
			if (*c->world->pieces[i].part->python)
				*ret = c->world->pieces[i].part->python;
		return 0;
	}
	if (!c->global->root && cmd_sandbox(c) != SANDBOX_NONE) {
		if (cmd_tables(c, &t, e) < 0 || cmd_platform(c->arena, &platform, e) < 0)
			return -1;
		if (strcmp(p->platform, platform) == 0 &&
		    world_choose(t, r, platform, toolkit_of(r, p, cuda), NULL, c->arena, &w, &ignored) == 0 && w.name) {
			*ret = w.python;
			return 0;
		}
	}
	if (cmd_root(c, &root, &ignored) == 0)
		*ret = python_of(root, c->arena);
	return 0;
}

char *cmd_world_text(const struct cmd_root_state *r, struct arena *a)
{
	if (r->made)
		return arena_printf(a, "%s, made", r->world->name);
	return arena_printf(a, "%s, %.1f MB to download", r->world->name, (double)r->world->download / 1e6);
}

json_t *cmd_world_json(const struct cmd_root_state *r)
{
	if (!r->world)
		return json_null();
	return json_pack("{s:s, s:s, s:s, s:b, s:I}", "name", r->world->name, "platform", r->world->platform, "key",
			 r->world->key, "made", r->made, "download_bytes", (json_int_t)r->world->download);
}
