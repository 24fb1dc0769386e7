/* A plan request on the small tables, shared by the tests of planning. Include support.h first. */
#pragma once
#include <stdlib.h>
#include <string.h>

#include "core/plan/plan.h"
#include "small_tables.h"

struct fixture {
	struct small_tables s;
	struct arena a;
	struct variant v;
	struct gpu_target targets[3];
	struct plan_request q;
	const struct plan *p;
	struct err e;
};

/* pytorch-python313-cuda12_8-sm90-avx512 of release 2.8.0; a test changes what it is about. */
static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	small_tables_fill(&f->s);
	f->targets[0] = small_target(&f->s, 2, "", false);
	f->v = (struct variant){.package = "pytorch",
				.python = "3.13",
				.cuda = "12.8",
				.profile = {.name = "sm90-avx512",
					    .gpu = GPU_CUDA,
					    .targets = f->targets,
					    .targets_count = 1,
					    .isa = &f->s.isas[2],
					    .file = "",
					    .platform = LINUX_X86}};
	f->q = (struct plan_request){.variant = &f->v, .release = "2.8.0"};
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	arena_release(&f->a);
	free(f);
	return test_teardown(state);
}

static inline void use_cpu(struct fixture *f)
{
	f->v.cuda = NULL;
	f->v.profile.name = "cpu-avx512";
	f->v.profile.gpu = GPU_CPU;
	f->v.profile.targets_count = 0;
}

static inline void use_gpu(struct fixture *f, unsigned row, const char *suffix)
{
	f->targets[0] = small_target(&f->s, row, suffix, false);
}

static inline void use_arm(struct fixture *f)
{
	f->v.profile.isa = &f->s.isas[3];
	f->v.profile.platform = LINUX_ARM;
}

static inline const struct plan *resolve(struct fixture *f)
{
	assert_ok(plan_resolve(&f->s.t, &f->q, &f->a, &f->p, &f->e), &f->e);
	return f->p;
}

#define refuse(f, kind, text)                                                                      \
	assert_err(plan_resolve(&(f)->s.t, &(f)->q, &(f)->a, &(f)->p, &(f)->e), &(f)->e, kind, text)

static inline bool has_note(const struct plan *p, const char *part)
{
	for (size_t i = 0; i < p->notes.count; i++)
		if (strstr(p->notes.items[i], part))
			return true;
	return false;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
