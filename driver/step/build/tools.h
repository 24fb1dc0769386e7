/* Tools: what a plan needs of the root, checked before anything is fetched or built. */
#pragma once
#include "core/plan/plan.h"
#include "core/root/toolchain.h"

/* tools_check: the root has compiler, CMake, ninja, Python (and nvcc of the plan's toolkit for
 * CUDA) in the release's ranges, and this machine is of the plan's platform. ERR_SYSTEM names what
 * is missing, ERR_POLICY a version out of range or another platform. */
int tools_check(const struct plan *p, const struct toolchain *t, const struct root *root, struct err *e) MUST_CHECK;
