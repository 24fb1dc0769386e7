/* Which platform tag a wheel may honestly carry: the highest symbol versions of its libraries against the policy table (profiles/manylinux.yaml). */
#pragma once
#include "core/elf.h"

struct manylinux_policy; /* loaded table */

/* manylinux_load: the policy table of `dir`/manylinux.yaml: per architecture, the policies (glibc minor, ceilings for GLIBC, GLIBCXX, CXXABI, GCC, LIBATOMIC, ZLIB) and the library allow-list. */
int manylinux_load(const char *dir, struct arena *a, const struct manylinux_policy **ret, struct err *e) MUST_CHECK;
/* manylinux_allows: whether a NEEDED name may stay outside the wheel by the allow-list. */
bool manylinux_allows(const struct manylinux_policy *p, unsigned machine, const char *soname);
/* manylinux_tag: the lowest policy that all of `infos` satisfy, "manylinux_2_28_x86_64"; "linux_x86_64" when none does. *ret_why says which symbol of which file decided. */
int manylinux_tag(const struct manylinux_policy *p, const struct elf_info *infos, const char *const *names, size_t count, struct arena *a,
		  char **ret_tag, char **ret_why, struct err *e) MUST_CHECK;
