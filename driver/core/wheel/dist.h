/* Distributions that are installed together, by their METADATA and RECORD. */
#pragma once
#include "core/wheel/requirement.h"

struct dist {
	const char *title; /* for people: "torch 2.6.0+cu124" */
	const char *name;  /* by wheel_normalize */
	const char *version;
	struct wheel_scope scope; /* of its tags; empty where they are not known */
	/* what installers take of its Requires-Dist */
	struct requirement *requires;
	size_t requires_count;
	struct wheel_record_row *rows; /* of RECORD, by path; none where it cannot be read */
	size_t rows_count;
};

struct entry_point {
	const char *line;          /* "name = module:function [extra]" */
	const char *name, *target; /* NULL: the line has no '=' */
	bool script;               /* installers make a program of this name */
};

/* entry_points_parse: the lines of all groups of an entry_points.txt. */
void entry_points_parse(const char *text, struct arena *a, struct entry_point **ret,
			size_t *ret_count);

/* dist_of_headers: of a METADATA; `n`: its wheel's name, or NULL; without RECORD. dist_of_wheel: of
 * a wheel. dist_installed: of a .dist-info directory. ERR_INTEGRITY for what is no METADATA.
 * dist_set_rows: what a wheel installs: rows of its RECORD, and the programs of its
 * entry_points.txt ("" if none). */
void dist_of_headers(const struct wheel_headers *h, const struct wheel_name *n, struct arena *a,
		     struct dist *ret);
int dist_of_wheel(const char *path, struct arena *a, struct dist *ret, struct err *e) MUST_CHECK;
int dist_installed(const char *info, struct arena *a, struct dist *ret, struct err *e) MUST_CHECK;
void dist_set_rows(struct dist *d, const struct wheel_record_row *rows, size_t count,
		   const char *entry_points, struct arena *a);
/* dist_requires: whether it requires a distribution (by wheel_normalize) without any extra. */
enum holds dist_requires(const struct dist *d, const char *name, const struct wheel_scope *s,
			 struct arena *a);
/* dist_refuses: its requirement that holds and does not take the version of the other; NULL. */
const struct requirement *dist_refuses(const struct dist *d, const struct dist *other,
				       const struct wheel_scope *s, struct arena *a);
/* label_accelerator: what a version's label says that it is built for: "cpu", "cu12", "rocm6",
 * "xpu"; NULL: nothing. requirement_accelerator: the same of the pin of a torch, and of a package
 * of CUDA's. requirement_serves: whether it may be met beside what is built for an accelerator.
 * dist_accelerator: by its label, else by what it requires. */
const char *label_accelerator(const char *label, struct arena *a);
const char *requirement_accelerator(const struct requirement *r, struct arena *a);
bool requirement_serves(const struct requirement *r, const char *accelerator, struct arena *a);
const char *dist_accelerator(const struct dist *d, const struct wheel_scope *s, struct arena *a);
/* dist_mixed: one is torch, the other requires it, and they are built for other accelerators: says
 * so for people; NULL: they are not. */
const char *dist_mixed(const struct dist *x, const struct dist *y, const struct wheel_scope *s,
		       struct arena *a);
/* dist_shares: a path that both own with other contents, of *ret_count; NULL. */
const char *dist_shares(const struct dist *x, const struct dist *y, size_t *ret_count);
