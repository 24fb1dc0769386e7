/* The actions of "ptbuild world". */
#pragma once
#include "cmd/cmd.h"
#include "core/world/world.h"

struct world_options {
	struct cmd_globals global;
	const char *platform; /* NULL: this machine's */
	const char *keyring;
	const char *base; /* lock: of a toolkit */
	const char *copy; /* make: NULL: none */
	const char *keep_days;
	bool write, dry_run;
};

int world_lock(struct cmd_context *c, const char *name, struct err *e) MUST_CHECK;
int world_make(struct cmd_context *c, const char *name, struct err *e) MUST_CHECK;
int world_verify(struct cmd_context *c, const char *name, struct err *e) MUST_CHECK;
int world_gc(struct cmd_context *c, const char *name, struct err *e) MUST_CHECK;

/* world_platform: --platform, else this machine's. ERR_USAGE for one that no part is for. */
int world_platform(const struct cmd_context *c, const char **ret, struct err *e) MUST_CHECK;
/* world_command: the command line for an action, with the directories that the user named. */
const char *world_command(const struct cmd_context *c, const char *action, const char *name, const char *platform);
