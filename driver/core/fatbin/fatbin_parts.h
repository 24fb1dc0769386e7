/* What the fatbin files share. */
#pragma once
#include "core/fatbin/fatbin.h"

struct fatbin_file {
	const uint8_t *data;
	uint64_t size;
	const char *name;
	const char *member; /* of a static archive, "" elsewhere */
	fatbin_fn fn;
	/* after a fat binary's entries: where it begins, where its header ends, and its end;
	 * NULL */
	int (*box)(uint64_t from, uint64_t entries, uint64_t to, void *user, struct err *e);
	void *user;
	size_t containers;
};

/* fatbin_number: little-endian; the caller has checked that it lies inside. */
uint64_t fatbin_number(const struct fatbin_file *f, uint64_t at, size_t bytes);
/* fatbin_bad: ERR_INTEGRITY "'name': text at offset 0x..."; -1. */
int fatbin_bad(const struct fatbin_file *f, uint64_t offset, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* fatbin_containers: the fat binaries of a section, one after the other, with zeros between.
 * fatbin_wrappers: checks the records by which a program hands them to the runtime. */
int fatbin_containers(struct fatbin_file *f, uint64_t at, uint64_t end, bool relocatable, struct err *e) MUST_CHECK;
int fatbin_wrappers(struct fatbin_file *f, uint64_t at, uint64_t end, struct err *e) MUST_CHECK;
/* fatbin_search: fat binaries among other data, found by how they begin. */
int fatbin_search(struct fatbin_file *f, uint64_t at, uint64_t end, struct err *e) MUST_CHECK;
bool fatbin_is_container(const struct fatbin_file *f, uint64_t at, uint64_t end);
/* fatbin_elf: the sections of an ELF file in a range of the bytes, or the cubin that it is. */
int fatbin_elf(struct fatbin_file *f, uint64_t at, uint64_t end, struct err *e) MUST_CHECK;
bool fatbin_is_elf(const struct fatbin_file *f, uint64_t at, uint64_t end);
/* fatbin_cubin_target: the target in a cubin's ELF header, "" if none ("90" also for 90a where the
 * flags do not tell). */
void fatbin_cubin_target(uint8_t abi, uint32_t flags, char ret[16]);
