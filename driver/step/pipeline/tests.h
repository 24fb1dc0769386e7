/* A package's own tests, from its pinned source, against a finished wheel. */
#pragma once
#include "step/pipeline/pipeline.h"
#include "step/test/test.h"

struct pipeline_test_request {
	const struct pipeline_request *q; /* tables, directories, root, sandbox, store, jobs */
	const char *package;
	const char *release;
	const char *wheel;       /* NULL: what the root's Python has */
	const char *torch_wheel; /* for torchvision and torchaudio; NULL: the root's */
	const char *level;
	unsigned shard, shards;
	bool again; /* drop what was run before */
};

/* pipeline_test: the results so far and those of what was left to run, judged (see test_run; new
 * reference). They are kept in a tree of the store (kind "build") of their own. */
int pipeline_test(const struct pipeline_test_request *t, const struct run *run, struct arena *a, json_t **ret,
		  struct test_summary *ret_summary, struct err *e) MUST_CHECK;
