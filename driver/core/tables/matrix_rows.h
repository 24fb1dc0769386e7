/* The rows of a matrix file. */
#pragma once
#include "core/tables/rows.h"

struct matrix_row {
	const char **packages; /* none in the file = pytorch */
	unsigned packages_count;
	const char **pythons; /* none in the file = the file's */
	unsigned pythons_count;
	const char **toolkits; /* none for cpu and mps */
	unsigned toolkits_count;
	const char **gpus; /* "cpu", "mps", "sm90", "sm80+sm90a+ptx" */
	unsigned gpus_count;
	/* instruction sets, or groups of isa.yaml, which loading takes apart; none for mps */
	const char **isas;
	unsigned isas_count;
	unsigned line;
};

struct matrix_file {
	const char *note;
	const char *release; /* "" in a view */
	const char *of;      /* a view: the matrix that only and except choose from; "" */
	const char **pythons;
	unsigned pythons_count;
	struct matrix_row *rows;
	unsigned rows_count;
	const char **only;
	unsigned only_count;
	const char **except;
	unsigned except_count;
	unsigned line;
};
