/* The symbols of Python's stable ABI, which abi3 modules keep to: stable_abi.yaml, loaded when a
 * wheel has such a module. */
#pragma once
#include "base/base.h"

struct stable_abi;

/* stable_abi_load: of the profiles directory. ERR_CONFIG with file and line. */
int stable_abi_load(const char *profiles_dir, struct arena *a, const struct stable_abi **ret, struct err *e) MUST_CHECK;
/* stable_abi_since: the first minor version of Python 3 that has the symbol; 0 if none promises
 * it. */
unsigned stable_abi_since(const struct stable_abi *s, const char *symbol);
