/* What the verify files share. */
#pragma once
#include "base/sys/digest.h"
#include "core/code/code.h"
#include "core/fatbin/fatbin_look.h"
#include "step/verify/verify.h"

struct requirement; /* core/wheel/requirement.h */

#define VERIFY_MARKER ".metadata-rev"

struct verify_member { /* a file in the archive */
	const struct zip_entry *entry;
	const struct wheel_record_row *row; /* of RECORD; NULL: none */
	char digest[DIGEST_RECORD_MAX];     /* by the algorithm of its row */
	const char *broken;                 /* why its contents cannot be read; NULL */
	const char *build_path;             /* the first build path in it, NULL if none */
	uint64_t build_path_at;
	enum elf_sort kind;
	bool loads_global;         /* Python code that loads libraries for all that come later */
	bool link_text;            /* a linker script: named like a library, but not one */
	unsigned machine;          /* of an ELF file */
	const char *elf_broken;    /* why it cannot be read as ELF; NULL */
	struct elf_info elf;       /* of a readable ELF_HOST, else zero */
	struct fatbin_summary gpu; /* zero without GPU code */
	struct fatbin_look look;   /* zero unless GPUs are promised */
	const char *gpu_broken;    /* why its GPU code cannot be read; NULL */
	struct library_isa *isa;   /* NULL: without code, or not asked for */
};

struct verifying {
	const struct verify_request *q;
	const struct run *run;
	struct arena *a;
	struct zip_reader *zip;
	struct verify_member *members; /* in the order of the archive's directory */
	size_t count;
	bool named;                    /* report.name is set */
	struct wheel_record_row *rows; /* of RECORD, by path */
	size_t rows_count;
	bool rows_read; /* false: it cannot be read */
	/* normalized names of the distributions that METADATA requires where the wheel is for */
	struct strlist requires;
	/* these with what the tables say that they bring, as do the wheels beside it; what its
	 * extras alone bring; what it requires elsewhere alone */
	struct strlist brought, optional, off;
	const char *requires_python;          /* NULL: METADATA has none */
	const char *dist_info;                /* "" if there is not exactly one */
	const char *entry_points;             /* the text; "": none */
	uint64_t allowed[EXTENSION_MACHINES]; /* extensions that its code may use anywhere */
	struct isa_idle idle;
	bool ours;                 /* made by ptbuild, so more is an error */
	bool musl;                 /* it is for musl alone */
	const char *cuda;          /* that libraries, METADATA or the name ask for: "13"; NULL */
	const char *cuda_required; /* of it what METADATA asks for */
	bool cuda_libraries;       /* they or METADATA ask for such that have or make GPU code */
	struct gpu_parts *parts;   /* NULL without tables */
	unsigned glibc;            /* the minor number of glibc 2 that they need; 0: none */
	struct strlist defined;    /* symbols of its libraries and of the companions, sorted */
	struct verify_report report;
	size_t cap;
	struct err fault; /* of the machine: there is no report then */
};

/* verify_add: a finding; bytes that cannot be printed become '?'. */
void verify_add(struct verifying *v, enum finding_level level, enum verify_rule_id rule,
		const char *file, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* verify_add_error: an error of another module as a finding; an error of the machine (a disk that
 * cannot be read) ends the verification instead. */
void verify_add_error(struct verifying *v, enum verify_rule_id rule, const char *file,
		      const struct err *why);
/* A finding reported for the first of several. verify_more: "; it is the first of 3 such WHAT", ""
 * for one. */
struct verify_some {
	size_t count;
	const char *file, *entry;
};
void verify_count(struct verify_some *s, const char *file, const char *entry);
const char *verify_more(struct verifying *v, const struct verify_some *s, const char *what);
/* verify_members: reads every member once, on several threads: digest, build paths, ELF, code. The
 * `arenas` (one a thread) own what they find. */
int verify_members(struct verifying *v, unsigned threads, struct arena *arenas,
		   struct err *e) MUST_CHECK;
/* verify_is_library: whether the loader can load it: a library or a program. */
bool verify_is_library(const struct verify_member *m);
/* verify_requires_cuda: notes the CUDA version that a requirement asks for. */
void verify_requires_cuda(struct verifying *v, const struct requirement *r);
/* verify_needed_glibc: the highest N of GLIBC_2.N that a library needs, and which; 0: none. */
unsigned verify_needed_glibc(const struct verifying *v, const char **ret_who);
/* verify_inside: the library in the wheel that this NEEDED name means, NULL. */
const struct verify_member *verify_inside(const struct verifying *v, const char *needed);
bool verify_is_loader(const char *needed);
/* verify_at_hand: the library of this NEEDED name in the wheel or of a companion; NULL. */
const struct elf_info *verify_at_hand(const struct verifying *v, const char *needed);
bool verify_is_defined(const struct verifying *v, const char *symbol);
/* What is known of a library that versions are needed of. */
enum version_file {
	VERSION_FILE_LOADED,
	VERSION_FILE_OPEN,    /* a library that is not at hand may load it */
	VERSION_FILE_EARLIER, /* it must have been loaded before */
	VERSION_FILE_ABSENT,  /* nothing loads it under this name */
};
/* verify_version_file: `closure`: all names that DT_NEEDED entries of the member and of what it
 * loads ask for. */
enum version_file verify_version_file(struct verifying *v, const struct verify_member *m,
				      const struct strlist *closure, const char *file);
/* verify_versions: findings for the versions that a member needs. */
void verify_versions(struct verifying *v, const struct verify_member *m,
		     const struct strlist *closure);
/* verify_lacks_version: a library without any versions has all, for the loader. */
bool verify_lacks_version(const struct elf_info *info, const char *version);
/* verify_is_of_torch: whether torch brings the library of this NEEDED name. */
bool verify_is_of_torch(const char *needed);
/* verify_not_given: adds the distributions that another's wheel requires, itself or by an extra,
 * and that were not given. */
void verify_not_given(const struct verifying *v, struct strlist *ret);

/* The rules, by subject. */
void verify_against(struct verifying *v); /* the file name against q->against */
/* WHEEL, METADATA, the marker, the order of the archive */
void verify_info(struct verifying *v);
/* Requires-Dist and Requires-Python, of METADATA at `file` */
void verify_requires(struct verifying *v, const char *file, const struct wheel_headers *h);
void verify_elf(struct verifying *v);      /* what libraries are, and the platform tag */
void verify_load(struct verifying *v);     /* search paths and needed libraries */
void verify_parts(struct verifying *v);    /* `parts` and `cuda`, while the members are there */
void verify_machines(struct verifying *v); /* report.runs_on */
void verify_modules(struct verifying *v);  /* modules that its Pythons import, the stable ABI */
void verify_symbols(struct verifying *v);  /* where undefined symbols come from */
void verify_isa(struct verifying *v);      /* instructions of the libraries' code */
void verify_gpu(struct verifying *v);      /* GPU code against the promise */

/* What the code of a library uses beyond the promise, by what that means. */
enum isa_class {
	ISA_INIT,       /* runs while the library is loaded: the import fails */
	ISA_COMDAT,     /* one copy for all units: any caller may get it */
	ISA_PLAIN,      /* an ordinary function */
	ISA_UNNAMED,    /* which function is not known, or whether it is code */
	ISA_DISPATCHED, /* called only on processors that have it */
	ISA_CLASSES
};

enum { ISA_LINES_MAX = 20 }; /* kept of each class of a library */

struct isa_findings {
	size_t count;
	uint64_t above;
	const char *lines[ISA_LINES_MAX]; /* of the first ones by address */
};

struct library_isa {
	const char *why_not;  /* NULL if examined */
	struct isa_scan scan; /* its numbers alone; zero unless examined */
	struct isa_findings groups[ISA_CLASSES];
};

/* verify_isa_scan: fills `isa` of a readable ELF file, unless nothing is known of its machine.
 * Errors are ERR_INTERRUPTED and those of the machine. */
int verify_isa_scan(struct verifying *v, struct verify_member *member, struct elf_map *m,
		    struct arena *a, struct err *e) MUST_CHECK;
