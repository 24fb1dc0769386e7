/* Plans every variant of every matrix in one process, as `ptbuild plan --matrix`
 * would, and says what it took. Usage: plan_matrices [PROFILES]. Exits with 1 when
 * it takes more than a second or more than 100 MiB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "core/plan/plan.h"
#include "core/variant/variant.h"

#define SECONDS_MAX 1.0
#define MIB_MAX 100

struct totals {
	size_t matrices, planned, refused;
	size_t bytes; /* of JSON */
	struct plan_digests digests;
};

static int plan_one(const struct tables *t, const struct matrix *m, const char *name,
		    struct totals *n, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct variant v;
	const struct plan *p;

	if (variant_parse(t, name, &a, &v, e) < 0)
		return -1;
	struct plan_request q = {
		.variant = &v, .release = m->release->name, .digests = &n->digests};
	if (plan_resolve(t, &q, &a, &p, e) < 0) {
		if (e->kind != ERR_POLICY)
			return -1;
		err_clear(e);
		n->refused++;
		return 0;
	}

	json_t *doc = plan_json(p);
	char *text = json_dumps(doc, 0);
	n->bytes += text ? strlen(text) : 0;
	free(text);
	json_decref(doc);
	n->planned++;
	return 0;
}

static int plan_matrix(const struct tables *t, const char *name, struct totals *n, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct matrix *m;
	struct matrix_walk w = {0};
	const char *variant;

	if (matrix_load(t, name, &a, &m, e) < 0)
		return -1;
	n->matrices++;
	while ((variant = matrix_next(m, &w, &a)))
		if (plan_one(t, m, variant, n, e) < 0)
			return -1;
	return 0;
}

static int plan_all(const char *profiles, struct totals *n, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t;
	struct strlist names = {0};

	n->digests.arena = &a;
	if (tables_load(profiles, &a, &t, e) < 0 || matrix_names(t, &a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if (plan_matrix(t, names.items[i], n, e) < 0)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	struct totals n = {0};
	struct err e = {0};
	struct timespec from, to;
	struct rusage used;

	clock_gettime(CLOCK_MONOTONIC, &from);
	if (plan_all(argc > 1 ? argv[1] : PROFILES_DIR, &n, &e) < 0) {
		fprintf(stderr, "%s\n%s\n", e.msg, e.hint);
		return 2;
	}

	clock_gettime(CLOCK_MONOTONIC, &to);
	getrusage(RUSAGE_SELF, &used);
	double seconds =
		(double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
		     (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
	double mib = (double)used.ru_maxrss / 1024;
	printf("%zu matrices, %zu plans, %zu refusals, %.1f MB of JSON: %.3f s (%.3f s of "
	       "processor time), peak %.1f "
	       "MiB\n",
	       n.matrices, n.planned, n.refused, (double)n.bytes / 1e6, seconds, cpu, mib);
	return cpu > SECONDS_MAX || mib > MIB_MAX;
}
