/* Tools: what a plan needs of the root, checked before anything is fetched or built. */
#pragma once
#include "core/plan/plan.h"
#include "core/root/toolchain.h"

/* tools_check: compiler, CMake, ninja, Python (and nvcc of the plan's toolkit for CUDA) are in
 * the root, and in the release's ranges. ERR_SYSTEM names what is missing, ERR_POLICY what has a
 * version that the release does not build with, or a plan of another platform than this
 * machine's. */
int tools_check(const struct plan *p, const struct toolchain *t, const struct root *root, struct err *e) MUST_CHECK;
