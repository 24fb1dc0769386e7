/* Matrices: named sets of variants. A file of a few rows below profiles/matrices/ stands for all
 * their combinations. */
#pragma once
#include "core/variant/variant.h"

struct matrix_row; /* of a file */

struct matrix {
	const char *name; /* "build-pytorch/pytorch-2.10-python313"; a user's file: its path */
	const char *note; /* one line, for people */
	const struct release_row *release;
	const char *file;
	const struct matrix_row *rows;
	unsigned rows_count;
	struct strlist only;       /* globs; a variant must match one of them. Empty: all */
	struct strlist except;     /* globs; a variant must match none of them */
	const struct matrix *base; /* what this one is a view of; NULL */
};

/* matrix_names: the names of all matrices below <profiles>/matrices, sorted. */
int matrix_names(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e) MUST_CHECK;
/* matrix_load: by name, or the path of a YAML file. ERR_CONFIG with the nearest name, or with
 * file:line for a mistake in the file: an unknown release, Python, toolkit, GPU target or
 * instruction set, a row that contradicts itself (a toolkit for cpu), a view of itself. */
int matrix_load(const struct tables *t, const char *name, struct arena *a, const struct matrix **ret,
		struct err *e) MUST_CHECK;

/* A walk over the variants of a matrix in the order of its rows; zero-initialised at the start. */
struct matrix_walk {
	unsigned row;
	unsigned long cell;
};
/* matrix_next: the canonical name of the next variant, in the arena; NULL at the end. */
const char *matrix_next(const struct matrix *m, struct matrix_walk *w, struct arena *a);
