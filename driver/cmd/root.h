/* The root that a command works in: a directory of --root, this machine's own, or that of a world:
 * the one that --root world:NAME names, else the one that the release's table has. */
#pragma once
#include "cmd/select.h"
#include "core/world/world.h"

/* What is known of a root that a command only looks at. */
struct cmd_root_state {
	const struct world *world; /* NULL: it is not a world's */
	bool made;                 /* cmd_root gives it as it is; true without a world */
	const char *dir;           /* of a world that is made; else NULL */
	uint64_t missing;          /* bytes of its files that the store lacks, to make it */
	unsigned unknown;          /* of how many more the size is not known */
	struct strlist archives;   /* Debian archives that those files come from */
};

/* Variants that stand on the same root. */
struct cmd_root_group {
	struct selections chosen;
	const struct world *world;          /* NULL: it is not a world's */
	struct err why;                     /* they can stand on none; empty: they can */
	struct strlist drift;               /* once it is made: of the world, as world_result */
	struct root *root;                  /* NULL: not made yet */
	const struct cmd_root_state *state; /* NULL: nobody looked yet */
};

/* cmd_root_groups: variants by the root that each stands on, in the order of their first: one group
 * with a directory as --root or without a sandbox, else one for each world. Those that can stand
 * on none, or not on the world that --root names, are groups of their own, with the reason
 * (ERR_POLICY). Makes nothing. */
int cmd_root_groups(struct cmd_context *c, const struct selections *s, struct cmd_root_group **ret, size_t *ret_count,
		    struct err *e) MUST_CHECK;
/* cmd_root_each: for plans, the group of each variant; its world may be that of another platform
 * than this machine's. */
int cmd_root_each(struct cmd_context *c, const struct selections *s, struct cmd_root_group *const **ret,
		  struct err *e) MUST_CHECK;
/* cmd_root_enter: cmd_root, and all that is asked of it, is that of this group from here on; it is
 * made when it is first asked for. */
void cmd_root_enter(struct cmd_context *c, const struct cmd_root_group *g);
/* cmd_root_make: enters it and has its root made, which it keeps. The error of a group that has
 * none is its reason. */
int cmd_root_make(struct cmd_context *c, struct cmd_root_group *g, struct err *e) MUST_CHECK;
/* cmd_root_look: whether there is a root yet; makes nothing. */
int cmd_root_look(struct cmd_context *c, struct cmd_root_state *ret, struct err *e) MUST_CHECK;
/* cmd_root_default: without --root and with a sandbox, the world that builds of a release stand on
 * without CUDA becomes that of the command; where there is none, this machine's root stays. */
int cmd_root_default(struct cmd_context *c, const struct release_row *r, struct err *e) MUST_CHECK;
/* cmd_root_named: the world that --root names, loaded; NULL: it names none. Makes nothing. */
int cmd_root_named(struct cmd_context *c, const struct world **ret, struct err *e) MUST_CHECK;
/* cmd_root_python: the Python that a build of this release is for, if neither it nor a world is
 * named: that of the root, or of the world that it would be; NULL: none that can be told without
 * running it. */
int cmd_root_python(struct cmd_context *c, const struct release_row *r, const struct profile *p, const char *cuda,
		    const char **ret, struct err *e) MUST_CHECK;
/* cmd_world_text: "debian13, 391.1 MB to download", "debian13, made". cmd_world_json: a new
 * reference; null without a world. */
char *cmd_world_text(const struct cmd_root_state *r, struct arena *a);
json_t *cmd_world_json(const struct cmd_root_state *r);
