/* Which platform tag a wheel may honestly carry: the highest symbol versions of its libraries
 * against the policy table (profiles/manylinux.yaml). */
#pragma once
#include "core/elf/elf.h"
#include "core/tables/rows_rules.h"

/* manylinux_allows: whether the newest policy, which includes the older ones, allows a NEEDED name
 * outside the wheel, the same ones on every machine. */
bool manylinux_allows(const struct manylinux_policy *p, const char *soname);
/* manylinux_versioned: whether every symbol of that library has a version. False if unknown. */
bool manylinux_versioned(const struct manylinux_policy *p, const char *soname);
/* manylinux_glibc: the minor version of glibc that a platform tag stands for: 28 for
 * "manylinux_2_28_x86_64"; 0 for a tag of another kind. */
unsigned manylinux_glibc(const char *tag);
/* manylinux_tag: the lowest policy that all `infos` satisfy, "manylinux_2_28_x86_64";
 * "linux_x86_64" when none does; "any" without a dynamic ELF file. Judged by version needs, DT_RELR
 * and NEEDED names that only later policies allow. *ret_why: which need of which file decided.
 * ERR_INTEGRITY for a machine without policies and for two machines. */
int manylinux_tag(const struct manylinux_policy *p, const struct elf_info *infos, const char *const *names,
		  size_t count, struct arena *a, char **ret_tag, char **ret_why, struct err *e) MUST_CHECK;
/* manylinux_tag_of_tree: the same of all ELF files below a directory. */
int manylinux_tag_of_tree(const struct manylinux_policy *p, const char *dir, struct arena *a, char **ret_tag,
			  struct err *e) MUST_CHECK;
