/* The arithmetic of a comparison. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* bench_median: of an even number the mean of the two in the middle; 0 without values, which stay
 * in their order. */
double bench_median(const double *values, size_t count);
/* bench_spread: (most - least) / median; 0 for fewer than two. */
double bench_spread(const double *values, size_t count);
/* bench_geometric_mean: of values above 0; 0 without any. */
double bench_geometric_mean(const double *values, size_t count);
/* bench_same: whether two results are one: each of the two sums differs by at most the part
 * `tolerance` of the larger first one, which is that of the magnitudes. */
bool bench_same(const double a[2], const double b[2], double tolerance);
