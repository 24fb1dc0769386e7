/* What METADATA requires, evaluated as installers evaluate it: versions and their specifiers
 * (PEP 440), requirements with extras, direct references and markers (PEP 508, 685). */
#pragma once
#include "core/wheel/wheel.h"

/* pep440_cmp: <0, 0, >0 by the order of PEP 440, in which a local label counts last. What is no
 * version comes before all versions. */
int pep440_cmp(const char *x, const char *y, struct arena *a);
/* specifier_check: ERR_INTEGRITY names the clause of a specifier (">=1,<2", "" for any) that
 * PEP 440 does not have. */
int specifier_check(const char *specifier, struct arena *a, struct err *e) MUST_CHECK;
/* specifier_takes: whether every clause takes the version. A pre-release is a version like any
 * other. A malformed clause takes nothing. */
bool specifier_takes(const char *specifier, const char *version, struct arena *a);
/* specifier_takes_some: whether some version meets every clause; true if one is malformed. */
bool specifier_takes_some(const char *specifier, struct arena *a);
/* specifier_pin: the version of "==V" or "===V"; NULL for any other specifier. */
const char *specifier_pin(const char *specifier, struct arena *a);
/* specifier_takes_series: whether it takes a release of a series: one of 2.6, 2.6.0, 2.6.1 and so
 * on for "2.6". */
bool specifier_takes_series(const char *specifier, const char *series, struct arena *a);

struct requirement {
	const char *line;      /* as METADATA has it, on one line */
	const char *name;      /* by wheel_normalize */
	struct strlist extras; /* of that distribution, normalised likewise */
	const char *specifier; /* ">=1,<2"; "": any version */
	const char *url;       /* of a direct reference, "file:///a.whl"; "" */
	const char *marker;    /* "" if none */
};

/* requirement_parse: a Requires-Dist. ERR_INTEGRITY says what installers refuse about it. */
int requirement_parse(const char *line, struct arena *a, struct requirement *ret,
		      struct err *e) MUST_CHECK;

enum holds { HOLDS_NEVER, HOLDS_PERHAPS, HOLDS_ALWAYS };

struct marker_env {
	const char *python;   /* "3.13", "3.13t", "3.13.2"; NULL: not known */
	const char *platform; /* "x86_64-linux", "aarch64-darwin", or a tag; NULL: not known */
	const char *extra;    /* the extra that is asked for; "": none; NULL: any */
};

/* marker_check: ERR_INTEGRITY for what is no marker. marker_eval: of a marker ("" holds always) for
 * CPython: PERHAPS where it depends on what is not known. What is no marker holds perhaps. */
int marker_check(const char *marker, struct arena *a, struct err *e) MUST_CHECK;
enum holds marker_eval(const char *marker, const struct marker_env *env, struct arena *a);

/* The Pythons and platforms that a wheel may be installed for. */
struct wheel_scope {
	struct strlist pythons, platforms; /* empty: any */
};

/* wheel_scope_of: by its tags and its Requires-Python (NULL: none). */
void wheel_scope_of(const struct wheel_name *n, const char *requires_python, struct arena *a,
		    struct wheel_scope *ret);
/* requirement_holds: over all of a scope. `extra` as in marker_env. */
enum holds requirement_holds(const struct requirement *r, const struct wheel_scope *s,
			     const char *extra, struct arena *a);
