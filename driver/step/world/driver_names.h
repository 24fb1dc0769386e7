/* Which functions a header of CUDA's driver API declares. */
#pragma once
#include "base/err.h"
#include "base/strlist.h"

/* driver_names: adds the names behind the word CUDAAPI, those that a #define gives to one of them
 * ("cuMemAlloc" is "cuMemAlloc_v2"), and those with the suffixes _ptds and _ptsz, which
 * __CUDA_API_PTDS and __CUDA_API_PTSZ make. Conditions are not looked at: all branches count. A
 * name may be added more than once. The text may hold any bytes. ERR_INTEGRITY for a name of more
 * than 200 characters, and for more than 20000 names in `ret`. */
int driver_names(const char *text, size_t len, struct arena *a, struct strlist *ret, struct err *e) MUST_CHECK;
