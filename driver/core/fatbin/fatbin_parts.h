/* The pieces of fatbin_scan. */
#pragma once
#include "core/fatbin/fatbin.h"

struct fatbin_file {
	const uint8_t *data;
	uint64_t size;
	const char *name;
	const char *member; /* of a static archive, "" elsewhere */
	fatbin_fn fn;
	void *user;
	size_t containers, wrappers;
};

/* fatbin_u16, _u32, _u64: a little-endian number; the caller has looked that it lies inside. */
uint16_t fatbin_u16(const struct fatbin_file *f, uint64_t at);
uint32_t fatbin_u32(const struct fatbin_file *f, uint64_t at);
uint64_t fatbin_u64(const struct fatbin_file *f, uint64_t at);
/* fatbin_bad: ERR_INTEGRITY "'name': text at offset 0x..."; -1. */
int fatbin_bad(const struct fatbin_file *f, uint64_t offset, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* fatbin_containers: the fat binaries of a section, one behind the other, zeroes between. */
int fatbin_containers(struct fatbin_file *f, uint64_t at, uint64_t end, bool relocatable, struct err *e) MUST_CHECK;
/* fatbin_wrappers: the records by which a program hands its fat binaries to the runtime:
 * counted. */
int fatbin_wrappers(struct fatbin_file *f, uint64_t at, uint64_t end, struct err *e) MUST_CHECK;
bool fatbin_is_container(const struct fatbin_file *f, uint64_t at, uint64_t end);
/* fatbin_elf: an ELF file in a range of the bytes: its sections, or the cubin that it is.
 * fatbin_is_elf: whether one begins there. */
int fatbin_elf(struct fatbin_file *f, uint64_t at, uint64_t end, struct err *e) MUST_CHECK;
bool fatbin_is_elf(const struct fatbin_file *f, uint64_t at, uint64_t end);
/* fatbin_archive: the members of a static archive. fatbin_is_archive: whether the file is one. */
int fatbin_archive(struct fatbin_file *f, struct err *e) MUST_CHECK;
bool fatbin_is_archive(const struct fatbin_file *f);
/* fatbin_cubin_target: the target that a cubin's ELF header names, "" if it names none ("90" also
 * for 90a where the flags do not tell). */
void fatbin_cubin_target(uint8_t abi, uint32_t flags, char ret[16]);

/* A file in memory, read-only; data NULL for an empty one. */
struct fatbin_mapped {
	const uint8_t *data;
	size_t size;
};
int fatbin_map(const char *path, struct fatbin_mapped *ret, struct err *e) MUST_CHECK;
void fatbin_unmap(struct fatbin_mapped *m);
