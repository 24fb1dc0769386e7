/* A request for an environment on the small tables,
 * shared by its tests. Include support.h first. */
#pragma once
#include <stdlib.h>
#include <string.h>

#include "core/plan/buildenv.h"
#include "small_tables.h"

struct fixture {
	struct small_tables s;
	struct arena a;
	struct profile profile;
	struct gpu_target targets[3];
	struct table_setting user[2];
	struct plan_options options;
	struct buildenv_request q;
	struct buildenv env;
	struct err e;
};

/* PyTorch 2.8.0 for cpu-avx2; a test changes what it is about. */
static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	small_tables_fill(&f->s);
	f->profile = (struct profile){.name = "cpu-avx2",
				      .gpu = GPU_CPU,
				      .isa = &f->s.isas[1],
				      .file = "",
				      .platform = LINUX_X86};
	f->profile.targets = f->targets;
	f->profile.toggles = f->user;
	f->q = (struct buildenv_request){.tables = &f->s.t,
					 .path = "/usr/bin:/bin",
					 .release = &f->s.releases[0],
					 .row = &f->s.packages[0],
					 .package = "pytorch",
					 .profile = &f->profile,
					 .blas = &f->s.blas[0],
					 .label = "cpu.avx2",
					 .torch_version = "",
					 .options = &f->options};
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	arena_release(&f->a);
	free(f);
	return 0;
}

static inline void use_cuda(struct fixture *f, unsigned row, const char *suffix, bool ptx)
{
	f->profile.gpu = GPU_CUDA;
	f->targets[f->profile.targets_count++] = small_target(&f->s, row, suffix, ptx);
}

static inline void use_package(struct fixture *f, const char *package, unsigned row,
			       unsigned release)
{
	f->q.package = package;
	f->q.row = &f->s.packages[row];
	f->q.release = &f->s.releases[release];
	f->q.blas = strcmp(package, "pytorch") == 0 ? f->q.blas : NULL;
}

static inline void use_user_toggle(struct fixture *f, const char *name, const char *value)
{
	f->profile.file = "my.yaml";
	f->user[f->profile.toggles_count++] =
		(struct table_setting){SETTING(name, value, "my.yaml", 7)};
}

static inline void resolve(struct fixture *f)
{
	assert_ok(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e);
}

static inline void want_env(struct fixture *f, const char *name, const char *value)
{
	const char *got = settings_value(&f->env.env, name);
	if (!got)
		fail_msg("%s is not set", name);
	assert_string_equal(got, value);
}
