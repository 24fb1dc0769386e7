/* What the commands that run the pipeline share. */
#pragma once
#include "cmd/select.h"
#include "step/pipeline/pipeline.h"

/* The options struct of these commands begins with one. */
struct cmd_build_base {
	struct cmd_select_base base;
	struct pipeline_options pipeline;
	const char *shard; /* "I/N" or "last"; NULL */
	bool check;
};

/* A request for what is built in one root. */
struct cmd_build_request {
	struct pipeline_request q;
	struct cmd_root_group *group;
};

struct cmd_build_requests {
	struct cmd_build_request *items;
	size_t count;
	size_t targets; /* of all of them */
};

/* cmd_build_common: reads the options that all requests share, except what is built and where; the
 * options begin with a cmd_build_base. */
int cmd_build_common(struct cmd_context *c, struct pipeline_request *q, struct err *e) MUST_CHECK;
/* cmd_build_requests: the requests that the options (they begin with a cmd_build_base) ask for, one
 * for each root, without it. cmd_build_root: the root, which may have to be made first: once all
 * else is checked; where a wheel is only taken from the store (repack_only), if one is there. */
int cmd_build_requests(struct cmd_context *c, const struct strlist *words,
		       struct cmd_build_requests *ret, struct err *e) MUST_CHECK;
int cmd_build_root(struct cmd_context *c, struct cmd_build_request *r, struct err *e) MUST_CHECK;
/* cmd_build: builds what the options (they begin with a cmd_build_base) ask for. cmd_capture: the
 * torch that is installed in the root of the context. The caller frees the results, also after a
 * failure. */
int cmd_build(struct cmd_context *c, const struct strlist *words, struct pipeline_results *ret,
	      struct err *e) MUST_CHECK;
int cmd_capture(struct cmd_context *c, struct pipeline_results *ret, struct err *e) MUST_CHECK;
/* cmd_parse_shard: "2/3", the second of three. ERR_USAGE for anything else. */
int cmd_parse_shard(const char *text, unsigned *index, unsigned *count, struct err *e) MUST_CHECK;
/* The options of every command that writes wheels; fields of cmd_build_base. */
extern const struct arg_def cmd_build_options[];
/* cmd_build_print: what was made, as text or JSON. */
int cmd_build_print(struct cmd_context *c, const struct pipeline_results *r,
		    struct err *e) MUST_CHECK;
