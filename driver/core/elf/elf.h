/* What relocation and verification need of an ELF file, read as the loader does: by program headers
 * and dynamic entries. */
#pragma once
#include "base/base.h"

struct elf_version_need {    /* one entry of .gnu.version_r */
	const char *file;    /* "libc.so.6" */
	const char *version; /* "GLIBC_2.34" */
	bool weak;           /* the loader does without */
};

struct elf_info {
	unsigned machine;   /* EM_X86_64, EM_AARCH64 or another of 64 bits and little-endian */
	unsigned type;      /* ET_DYN, ET_EXEC, ET_REL */
	bool dynamic;       /* has PT_DYNAMIC */
	bool program;       /* names a loader (PT_INTERP), or is linked as one */
	bool pie;           /* linked as one (DF_1_PIE), which dlopen refuses */
	bool stripped;      /* no section holds a static symbol table */
	const char *soname; /* "" if none */
	struct strlist needed;
	const char *rpath;   /* DT_RPATH, NULL if none */
	const char *runpath; /* DT_RUNPATH, NULL if none */
	struct elf_version_need *versions;
	size_t versions_count;
	struct strlist defined_versions;
	struct strlist defined; /* dynamic symbols; of elf_read_all alone */
	/* "name" or "name@VERSION", weak ones left out; of elf_read_all alone */
	struct strlist undefined;
	bool textrel;
	bool exec_stack; /* PT_GNU_STACK with X, or absent if the loader then assumes X */
	bool stack_told; /* there is a PT_GNU_STACK */
	/* the smallest alignment of a PT_LOAD segment; UINT64_MAX without one */
	uint64_t page;
	const char *unloadable; /* why the loader would fail on it; NULL */
	bool relr;              /* DT_RELR present */
	unsigned level;         /* of x86-64, which the file's property asks for: 2 to 4; 0 */
};

enum elf_sort {
	ELF_NONE,    /* no ELF file, or none that its header lets one understand */
	ELF_HOST,    /* 64 bits, little-endian: x86-64, AArch64 and other processors */
	ELF_FOREIGN, /* of another word size or byte order */
	ELF_GPU,     /* code for a GPU */
	ELF_DEBUG,   /* what debuggers want of a library that is elsewhere: its code has no bytes */
};

/* elf_sort: what a whole file is, by its ELF header and section headers. *ret_machine: its
 * e_machine (may be NULL). */
enum elf_sort elf_sort(const void *data, size_t size, unsigned *ret_machine);
/* elf_read: all but the symbols. elf_read_all: also these. ERR_INTEGRITY "file: what is wrong at
 * which offset". */
int elf_read(const char *path, struct arena *a, struct elf_info *ret, struct err *e) MUST_CHECK;
int elf_read_all(const char *path, struct arena *a, struct elf_info *ret, struct err *e) MUST_CHECK;
/* elf_try, elf_try_all: the same of a regular file that starts like an ELF file: 1; of another, or
 * none: 0. ERR_SYSTEM if it is there and cannot be read. */
int elf_try(const char *path, struct arena *a, struct elf_info *ret, struct err *e) MUST_CHECK;
int elf_try_all(const char *path, struct arena *a, struct elf_info *ret, struct err *e) MUST_CHECK;
struct elf_change {         /* what a library gets */
	const char *soname; /* NULL: it keeps its own */
	/* old name -> new name, of NEEDED entries and their version needs; NULL: none */
	const struct kvlist *needed;
	const char *rpath; /* its only search path then, a DT_RPATH; "": none */
};
/* elf_change: in place where the new strings fit into the search path's own (elf_map_path_room),
 * else on a copy with a longer string table (elf_cut_grow), which replaces the file. The result is
 * read again and compared: ERR_INTEGRITY. ERR_POLICY for a file without dynamic entries.
 * ret_in_place may be NULL. */
int elf_change(const char *path, const struct elf_change *c, bool *ret_in_place,
	       struct err *e) MUST_CHECK;

/* C++ names for people. */
/* demangle: "at::native::foo(int)" for "_ZN2at6native3fooEi", cut after 400 characters; other names
 * are copied. Safe for hostile names, which can expand to gigabytes. */
char *demangle(const char *name, struct arena *a);

/* A shared library that only linkers use: it names functions of a library that is elsewhere. */

struct elf_stub {
	unsigned machine;   /* EM_X86_64 or EM_AARCH64 */
	const char *soname; /* "libcuda.so.1" */
	const struct strlist *functions;
	uint16_t answer; /* every function returns it, if one is run after all */
};

/* elf_stub_put: its bytes, appended to `out`. The same request gives the same bytes. ERR_CONFIG for
 * another machine, ERR_INTEGRITY if it would have more than 16 MiB. */
int elf_stub_put(const struct elf_stub *s, struct buf *out, struct err *e) MUST_CHECK;
