#include "step/bench/bench_stats.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double bench_median(const double *values, size_t count)
{
	AUTO_ARENA struct arena a = {0};
	if (count == 0)
		return 0;
	double *sorted = arena_array(&a, count, sizeof(*sorted));
	memcpy(sorted, values, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_value);
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

double bench_spread(const double *values, size_t count)
{
	double least = count ? values[0] : 0, most = least;
	for (size_t i = 1; i < count; i++) {
		least = values[i] < least ? values[i] : least;
		most = values[i] > most ? values[i] : most;
	}
	double median = bench_median(values, count);
	return median > 0 ? (most - least) / median : 0;
}

double bench_geometric_mean(const double *values, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += log(values[i]);
	return count ? exp(sum / (double)count) : 0;
}

bool bench_same(const double a[2], const double b[2], double tolerance)
{
	double size = fmax(fabs(a[0]), fabs(b[0]));
	return fabs(a[0] - b[0]) <= tolerance * size && fabs(a[1] - b[1]) <= tolerance * size;
}
