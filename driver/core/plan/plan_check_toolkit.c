#include <ctype.h>
#include <string.h>

#include "base/version.h"
#include "core/plan/plan_parts.h"

static int missing_toolkit(const struct plan_context *c, struct err *e)
{
	const struct toolkits *l = c->request->toolkits;
	const char *cuda = c->variant.cuda;
	if (!l->count) {
		err_set(e, ERR_SYSTEM, "the root has no CUDA toolkit, '%s' needs %s",
			variant_name(&c->variant, c->arena), cuda);
		return err_hint(
			e, "install CUDA %s there, name another root with --root, or say where it is with --cuda-home",
			cuda);
	}
	err_set(e, ERR_POLICY, "the root has no CUDA %s; it has %s", cuda, toolkit_list(l, c->arena));
	return err_hint(
		e,
		"ask for that one with --cuda, name another root with --root, or say where CUDA %s is with --cuda-home",
		cuda);
}

/* What the probed nvcc itself says it compiles for, which can be less than its version promises. */
static int check_nvcc_targets(const struct plan_context *c, struct err *e)
{
	const struct profile *p = &c->variant.profile;
	for (unsigned i = 0; i < p->targets_count; i++) {
		const char *target = arena_printf(c->arena, "%s%s", p->targets[i].row->sm, p->targets[i].suffix);
		if (strlist_contains(&c->probed->targets, target))
			continue;
		err_set(e, ERR_POLICY, "'%s' (CUDA %s) does not compile for sm%s", c->probed->nvcc, c->probed->release,
			target);
		return err_hint(e, "it knows %s", strlist_join(&c->probed->targets, c->arena, " "));
	}
	return 0;
}

static int check_compiler(const struct plan_context *c, struct err *e)
{
	const struct toolkit *k = c->probed;
	if (k->cc)
		return 0;
	err_set(e, ERR_POLICY, "nvcc %s accepts GCC up to %u, and the root has %s%s", k->version, k->gcc_max,
		*k->gcc ? "GCC " : "no GCC", k->gcc);
	return err_hint(e, "install gcc-%u and g++-%u in the root: they are taken when they are there", k->gcc_max,
			k->gcc_max);
}

int plan_check_toolkit(struct plan_context *c, struct err *e)
{
	if (c->variant.profile.gpu != GPU_CUDA || !c->request->toolkits)
		return 0;
	c->probed = toolkit_find(c->request->toolkits, c->variant.cuda);
	if (!c->probed)
		return missing_toolkit(c, e);
	if (check_nvcc_targets(c, e) < 0)
		return -1;
	return check_compiler(c, e);
}

/* What --without takes for a toggle: "cudnn" of USE_CUDNN. */
static char *feature_of(const char *toggle, struct arena *a)
{
	const char *at = strstr(toggle, "USE_");
	char *word = arena_strdup(a, at ? at + 4 : toggle);
	for (char *p = word; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return word;
}

static bool is_on(const char *value)
{
	return value && (strcmp(value, "ON") == 0 || strcmp(value, "1") == 0);
}

static int missing_part(const struct plan_context *c, const struct part_row *row, const struct setting *s,
			struct err *e)
{
	const struct toolkit *k = c->probed;
	const char *package = *row->debian ? arena_printf(c->arena, " (Debian's package %s)", row->debian) : "";
	err_set(e, ERR_POLICY, "%s=%s (%s), but beside CUDA %s in '%s' there is no %s: no header '%s'", s->name,
		s->value, settings_origin(s, c->arena), k->version, k->where, row->name, row->header);
	if (strcmp(row->toggle, "USE_CUDA") == 0)
		return err_hint(e, "install it%s: PyTorch does not build without", package);
	return err_hint(e, "install it%s, or give it up with --without %s", package, feature_of(row->toggle, c->arena));
}

/* A cuDNN that is newer than the last one for a target would build, and fail on the GPU. */
static int check_cudnn(const struct plan_context *c, const struct toolkit_part *part, struct err *e)
{
	const struct profile *p = &c->variant.profile;
	for (unsigned i = 0; *part->version && i < p->targets_count; i++) {
		const struct gpu_row *row = p->targets[i].row;
		if (!*row->cudnn_max || version_cmp(part->version, row->cudnn_max) <= 0)
			continue;
		err_set(e, ERR_POLICY, "cuDNN %s has no code for sm%s: %s was the last", part->version, row->sm,
			row->cudnn_max);
		return err_hint(e, "install cuDNN %s, or give it up with --without cudnn", row->cudnn_max);
	}
	return 0;
}

int plan_check_gpu(const struct plan_context *c, const struct buildenv *env, struct err *e)
{
	static const struct {
		const char *toggle;
		enum gpu_kind gpu;
		const char *profiles;
	} kinds[] = {
		{"USE_CUDA", GPU_CUDA, "a profile with GPU targets, such as sm90-avx2"},
		{"USE_MPS", GPU_MPS, "the profile darwin-mps"},
	};
	const struct profile *p = &c->variant.profile;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const struct setting *s = settings_get(&env->env, kinds[i].toggle);
		if (!s || is_on(s->value) == (p->gpu == kinds[i].gpu))
			continue;
		err_set(e, ERR_POLICY, "%s=%s (%s), but the profile is %s", s->name, s->value,
			settings_origin(s, c->arena), p->name);
		return is_on(s->value)
			       ? err_hint(e, "that is for %s", kinds[i].profiles)
			       : err_hint(e, "a wheel without it is that of a profile without GPU, such as cpu-avx2");
	}
	return 0;
}

int plan_check_parts(const struct plan_context *c, const struct buildenv *env, struct err *e)
{
	if (!c->probed)
		return 0;
	for (size_t i = 0; i < c->probed->parts_count; i++) {
		const struct toolkit_part *part = &c->probed->parts[i];
		const struct setting *s = settings_get(&env->env, part->row->toggle);
		if (strcmp(part->row->package, c->variant.package) != 0 || !s || !is_on(s->value))
			continue;
		if (!part->header)
			return missing_part(c, part->row, s, e);
		if (strcmp(part->row->name, "cudnn") == 0 && check_cudnn(c, part, e) < 0)
			return -1;
	}
	return 0;
}
