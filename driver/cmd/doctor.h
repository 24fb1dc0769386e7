/* What the checks of doctor share: each adds lines, and gives -1 only when it was interrupted or
 * the program itself failed. */
#pragma once
#include "cmd/select.h"
#include "core/root/toolkit.h"

enum doctor_level { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_FAILURE };

struct doctor_check {
	enum doctor_level level;
	enum err_kind kind; /* of a failure */
	const char *name;
	const char *text;
	const char *fix; /* "" if there is nothing to do */
};

struct doctor {
	struct cmd_context *c;
	struct doctor_check checks[64];
	size_t count;
	const struct root *root;
	const struct toolchain *toolchain;
	/* of the plan's CUDA; NULL: none is there, or none is needed */
	const struct toolkit *toolkit;
	const struct release_row *release;
	const struct plan *plan; /* NULL without a profile */
};

#define DOCTOR_TEXT(d, ...) arena_printf((d)->c->arena, __VA_ARGS__)

void doctor_ok(struct doctor *d, const char *name, const char *text);
void doctor_warn(struct doctor *d, const char *name, const char *text, const char *fix);
void doctor_fail(struct doctor *d, enum err_kind kind, const char *name, const char *text, const char *fix);
/* doctor_fail_err: a failure with the texts of an error. */
void doctor_fail_err(struct doctor *d, const char *name, const struct err *why);
/* doctor_shell: a script in the sandbox, with /tmp writable and the toolkit shown; standard output
 * in `out`. Its failure is a failure to report, so it is put into `why`; -1 only when interrupted.
 * *ret_ok tells. */
int doctor_shell(struct doctor *d, const char *script, const struct strlist *args, struct buf *out, bool *ret_ok,
		 struct err *why, struct err *e) MUST_CHECK;

/* doctor_sandbox: whether one can be made. doctor_root: everything that lies in the root.
 * doctor_cuda: the toolkit and what lies beside it. doctor_machine: programs of the host,
 * processor, disk and memory. */
int doctor_sandbox(struct doctor *d, struct err *e) MUST_CHECK;
int doctor_root(struct doctor *d, struct err *e) MUST_CHECK;
int doctor_cuda(struct doctor *d, struct err *e) MUST_CHECK;
void doctor_machine(struct doctor *d);
