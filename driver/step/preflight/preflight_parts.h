/* The checks of the preflight: each adds lines, and gives -1 only when interrupted. */
#pragma once
#include "step/preflight/preflight.h"

struct preflight_answer {
	bool ok;
	const char *text; /* standard output, in the arena */
	const char *why;  /* what went wrong if not ok */
};
/* preflight_ask: runs a shell script in the sandbox, with /tmp writable and the toolkit mounted. A
 * failing script is an answer; -1 only for an interruption. */
int preflight_ask(struct preflight *d, const char *script, const struct strlist *args, struct preflight_answer *ret,
		  struct err *e) MUST_CHECK;

/* preflight_sandbox: whether one can be made. preflight_machine: platform, processor, directories,
 * disk and memory. preflight_tools: the tools of the root in the release's ranges.
 * preflight_needs: what the table needs.yaml asks for. preflight_python: the root's Python, its
 * modules and pip. preflight_compiler: whether it takes the profile's flags and links its BLAS.
 * preflight_cuda: the toolkit and its libraries. preflight_torch: the root's torch, if the build is
 * against that. */
int preflight_sandbox(struct preflight *d, struct err *e) MUST_CHECK;
int preflight_machine(struct preflight *d, struct err *e) MUST_CHECK;
int preflight_tools(struct preflight *d, struct err *e) MUST_CHECK;
void preflight_needs(struct preflight *d);
int preflight_python(struct preflight *d, struct err *e) MUST_CHECK;
int preflight_compiler(struct preflight *d, struct err *e) MUST_CHECK;
int preflight_cuda(struct preflight *d, struct err *e) MUST_CHECK;
int preflight_torch(struct preflight *d, struct err *e) MUST_CHECK;
/* preflight_find_program: the path inside the root of a program in the PATH of the plan's build;
 * NULL if absent. */
const char *preflight_find_program(const struct preflight *d, const char *name);
/* preflight_wants: whether a row of the table counts for this build. */
bool preflight_wants(const struct preflight *d, const struct need_row *row);
/* preflight_is_taken: whether nothing is compiled, since the root's torch is taken as it is. */
bool preflight_is_taken(const struct preflight *d);
