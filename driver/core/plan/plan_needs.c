#include "core/plan/plan_parts.h"

static bool is_cuda(const struct plan_context *c)
{
	return c->variant.profile.gpu == GPU_CUDA;
}

static bool is_without_cuda(const struct plan_context *c)
{
	return !is_cuda(c);
}

static bool is_torch(const struct plan_context *c)
{
	return package_is_torch(c->variant.package);
}

static bool is_extension(const struct plan_context *c)
{
	return c->package->name != NULL;
}

static bool is_companion(const struct plan_context *c)
{
	return !is_extension(c) && !is_torch(c);
}

/* What words and tables alone decide, in the order in which it is asked: each row refuses what
 * cannot be, with its reason and its hint, or chooses what later rows need. The needs that a
 * machine and a root decide are in step/preflight/doctor_list.c. */
static const struct {
	bool (*applies)(const struct plan_context *c); /* NULL: to all */
	plan_rule *check;
} rules[] = {
	{NULL, need_release},
	{NULL, need_package},
	{NULL, need_sources},
	{NULL, need_python},
	{NULL, need_platform},
	{NULL, need_compiler},
	{is_without_cuda, need_no_cuda},
	{is_cuda, need_toolkits},
	{is_cuda, need_known_toolkit},
	{is_cuda, need_nvcc_targets},
	{is_cuda, need_release_toolkit},
	{is_cuda, need_torch_targets},
	{is_cuda, need_targets_together},
	{is_cuda, need_extension_targets},
	{is_cuda, need_sbsa_targets},
	{NULL, need_known_blas},
	{is_torch, need_blas},
	{is_torch, need_blas_platform},
	{is_extension, need_gpu_profile},
	{is_extension, need_extension_torch},
	{is_extension, need_extension_python},
	{is_companion, need_companion_torch},
};

int plan_check(struct plan_context *c, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (rules[i].applies && !rules[i].applies(c))
			continue;
		if (rules[i].check(c, e) < 0)
			return -1;
	}

	return 0;
}
