#include "step/pipeline/make.h"

/* Rejects an object that has right digests but is unusable, as others could have written it:
 * `found` becomes NULL. With the key's lock it is moved away from the store, so that it is built
 * again. */
static int pass_over(struct wheel_lookup *x, struct err *e)
{
	struct err why = {0};
	const struct store_object o = {
		.kind = STORE_WHEEL, .key = x->plan->output_key, .path = x->found};

	if (store_check_wheel(x->found, x->plan->output_key, &why) == 0)
		return 0;
	if (why.kind != ERR_INTEGRITY) {
		*e = why;
		return -1;
	}

	bool own = path_below(x->found, store_dir(x->store)) != NULL;
	x->found = NULL;
	if (!x->locked)
		return 0;
	log_warn(x->run->log, "%s: it is %s", why.msg,
		 own ? "moved to the store's quarantine" : "passed over");
	return own ? store_quarantine(x->store, &o, e) : 0;
}

/* An object may be good in one store and not in another: the fallback stores come after the own
 * one. */
static int find_good(struct wheel_lookup *x, struct err *e)
{
	struct store *store = x->store;

	for (const char *last = NULL;;) {
		if (store_find(store, STORE_WHEEL, x->plan->output_key, x->arena, &x->found, e) < 0)
			return -1;
		if (!x->found || (last && strcmp(last, x->found) == 0)) {
			x->found = NULL;
			return 0;
		}

		last = x->found;
		if (pass_over(x, e) < 0)
			return -1;
		if (x->found || !x->locked)
			return 0;
	}
}

int wheel_look_up(struct wheel_lookup *x, struct lock *key, struct err *e)
{
	struct store *store = x->store;
	const char *output_key = x->plan->output_key;

	if (find_good(x, e) < 0)
		return -1;
	if (x->found)
		return 0;
	if (store_lock(store, STORE_WHEEL, output_key, x->run, key, e) < 0)
		return -1;
	x->locked = true;
	if (find_good(x, e) < 0)
		return -1;
	if (x->found)
		return 0;
	if (store_pull(store, STORE_WHEEL, output_key, x->run, x->arena, &x->found, e) < 0)
		return -1;
	return x->found ? pass_over(x, e) : 0;
}
