/* ELF: what relocation and verification need of a library. Read as the loader does, by program
 * headers and dynamic entries (a file without sections is whole); every offset of the file is
 * checked. */
#pragma once
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/run.h"
#include "base/strlist.h"

struct elf_version_need {    /* one entry of .gnu.version_r */
	const char *file;    /* "libc.so.6" */
	const char *version; /* "GLIBC_2.34" */
};

struct elf_info {
	/* EM_X86_64, EM_AARCH64, or another: only 64-bit little-endian files are read */
	unsigned machine;
	unsigned type; /* ET_DYN, ET_EXEC, ET_REL */
	bool is_64;
	bool dynamic;       /* has PT_DYNAMIC */
	bool stripped;      /* no section holds a static symbol table */
	const char *soname; /* "" if none */
	struct strlist needed;
	const char *rpath;   /* DT_RPATH, NULL if none */
	const char *runpath; /* DT_RUNPATH, NULL if none */
	/* bytes from the RPATH (else RUNPATH) string up to its NUL: what fits in place; 0 if none
	 * or if another entry shares the string */
	size_t rpath_room;
	struct elf_version_need *versions;
	size_t versions_count;
	struct strlist defined; /* names of defined dynamic symbols (only when asked) */
	/* "name" or "name@VERSION", without weak ones (only when asked) */
	struct strlist undefined;
	bool textrel;
	bool exec_stack; /* PT_GNU_STACK with X, or none */
	bool relr;       /* DT_RELR present */
};

enum { ELF_SYMBOLS = 1 };

/* elf_is: whether it is a regular file that starts like an ELF file; a missing one is none.
 * ERR_SYSTEM when it cannot be read: a library that was taken for a text would be shipped as it
 * is. */
int elf_is(const char *path, bool *ret, struct err *e) MUST_CHECK;
/* elf_read: ERR_INTEGRITY "file: what is wrong at which offset" for anything malformed. */
int elf_read(const char *path, unsigned flags, struct arena *a, struct elf_info *ret, struct err *e) MUST_CHECK;
/* elf_set_rpath: makes `rpath` the one DT_RPATH (never RUNPATH), in place when it fits into
 * rpath_room (the rest is filled with NULs, a DT_RUNPATH tag becomes DT_RPATH), else through
 * patchelf (version 0.14.3 or newer) on a copy that replaces the file. rpath "" removes it, always
 * in place. *ret_in_place may be NULL. Afterwards the file is read again and compared, and its
 * segments are checked to load: ERR_INTEGRITY if it is not so. ERR_POLICY for a file without
 * dynamic entries. */
int elf_set_rpath(const char *path, const char *rpath, const struct run *run, bool *ret_in_place,
		  struct err *e) MUST_CHECK;
/* elf_rename_in_place: replaces NEEDED entries and the version needs that go with them without
 * moving anything: the new names take the end of the search path's string, of which `keep` bytes
 * stay. *ret_done false, and nothing changed, when they do not fit there. What a file was linked
 * with a long path for: it costs what is read of it, whatever its size. */
int elf_rename_in_place(const char *path, const struct kvlist *needed, size_t keep, bool *ret_done,
			struct err *e) MUST_CHECK;
/* elf_rename: sets the SONAME (NULL: leaves it) and replaces NEEDED entries (and the version-need
 * file names that go with them) by the pairs in `needed` (old name -> new name; NULL: none).
 * Through patchelf, on a copy that replaces the file once everything else about it proved
 * unchanged. The copy goes out whole or not at all; nothing to change starts nothing. */
int elf_rename(const char *path, const char *soname, const struct kvlist *needed, const struct run *run,
	       struct err *e) MUST_CHECK;
