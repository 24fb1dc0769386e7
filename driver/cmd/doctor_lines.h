/* The lines that doctor prints, and the way its checks ask the root. */
#pragma once
#include "cmd/select.h"

enum doctor_level { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_FAILURE };

struct doctor_line {
	enum doctor_level level;
	enum err_kind kind; /* of a failure */
	const char *name;
	const char *text;
	const char *fix; /* "" if there is nothing to do */
};

struct doctor {
	struct cmd_context *c;
	struct doctor_line lines[64];
	size_t count;
	const struct root *root;
	const struct toolchain *toolchain;
	const struct toolkit *toolkit; /* of the plan's CUDA; NULL: absent, or not needed */
	const struct release_row *release;
	const struct plan *plan; /* NULL without a profile */
};

/* doctor_add, by one of its three short forms: adds a line. doctor_fix: what to do about the
 * last. */
void doctor_add(struct doctor *d, enum doctor_level level, enum err_kind kind, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
#define doctor_ok(d, ...) doctor_add(d, DOCTOR_OK, ERR_NONE, __VA_ARGS__)
#define doctor_warn(d, ...) doctor_add(d, DOCTOR_WARNING, ERR_NONE, __VA_ARGS__)
#define doctor_fail(d, kind, ...) doctor_add(d, DOCTOR_FAILURE, kind, __VA_ARGS__)
void doctor_fix(struct doctor *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* doctor_fail_err: a failure with the texts of an error; -1 only for an interruption, put into
 * `e`. */
int doctor_fail_err(struct doctor *d, const char *name, const struct err *why, struct err *e) MUST_CHECK;

struct doctor_answer {
	bool ok;
	const char *line; /* the first of standard output, in the arena */
	const char *why;  /* what went wrong if not ok */
};
/* doctor_ask: runs a shell script in the sandbox, with /tmp writable and the toolkit mounted. A
 * failing script is an answer; -1 only for an interruption. */
int doctor_ask(struct doctor *d, const char *script, const struct strlist *args, struct doctor_answer *ret,
	       struct err *e) MUST_CHECK;
/* doctor_print: all lines, as text or JSON. doctor_verdict: the worst of them as an error. */
int doctor_print(const struct doctor *d, struct err *e) MUST_CHECK;
int doctor_verdict(const struct doctor *d, struct err *e) MUST_CHECK;
