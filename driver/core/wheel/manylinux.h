/* Which platform tag a wheel may honestly carry: the highest symbol versions of its libraries
 * against the policy table (profiles/manylinux.yaml). */
#pragma once
#include "core/elf/elf.h"
#include "core/tables/rows_rules.h"

/* manylinux_allows: whether a NEEDED name may stay outside the wheel by the allow-list of the
 * newest policy (each list holds those before it). False for a machine without policies. */
bool manylinux_allows(const struct manylinux_policy *p, unsigned machine, const char *soname);
/* manylinux_versioned: whether every symbol of that library has a version, so that one wanted
 * without is not of it. False for a library that no list has. */
bool manylinux_versioned(const struct manylinux_policy *p, const char *soname);
/* manylinux_tag: the lowest policy that all of `infos` satisfy, "manylinux_2_28_x86_64";
 * "linux_x86_64" when none does; "any" when no info is a dynamic ELF file. Judged are version
 * needs, DT_RELR, and NEEDED names of the allow-list that a policy does not have yet; who provides
 * other NEEDED names is not asked here. *ret_why says which need of which file decided.
 * ERR_INTEGRITY for a machine without policies and for two machines in one wheel. */
int manylinux_tag(const struct manylinux_policy *p, const struct elf_info *infos, const char *const *names,
		  size_t count, struct arena *a, char **ret_tag, char **ret_why, struct err *e) MUST_CHECK;
/* manylinux_tag_of_tree: the same of all ELF files below a directory. */
int manylinux_tag_of_tree(const struct manylinux_policy *p, const char *dir, struct arena *a, char **ret_tag,
			  struct err *e) MUST_CHECK;
