/* What the files of the verify step share. */
#pragma once
#include "core/fatbin/fatbin.h"
#include "step/verify/verify.h"
#include "step/verify/verify_isa.h"

#define VERIFY_MARKER ".metadata-rev"

struct verify_member { /* one entry of the archive that is no directory */
	const struct zip_entry *entry;
	uint8_t sha256[32];
	const char *broken;     /* why its contents cannot be read; NULL: they can */
	const char *build_path; /* the first build path in it, NULL if none */
	uint64_t build_path_at;
	bool is_elf;
	const char *elf_broken; /* why it cannot be read as ELF; NULL: see elf */
	struct elf_info elf;
	struct fatbin_summary gpu; /* of GPU code; all zero without any */
	const char *gpu_broken;    /* why its GPU code cannot be read; NULL: see gpu */
	struct library_isa *isa;   /* NULL: no code, or not asked */
};

struct verifying {
	const struct verify_request *q;
	const struct run *run;
	struct arena *a;
	struct zip_reader *zip;
	struct verify_member *members; /* in the order of the archive's directory */
	size_t count;
	/* the file name is one of a wheel: report.name is set */
	bool named;
	/* distributions that METADATA requires, as wheel_normalize gives them */
	struct strlist requires;
	/* directory in the archive, "" if there is not exactly one */
	const char *dist_info;
	uint64_t allowed[EXTENSION_MACHINES]; /* what its code may use anywhere */
	struct isa_spare spare;
	bool ours; /* made by ptbuild, which promises more */
	struct verify_report report;
	size_t cap;
	struct err fault; /* of the machine: then there is no report */
};

/* verify_add: appends a finding; bytes that nobody can print become '?'. */
void verify_add(struct verifying *v, enum finding_level level, const char *rule, const char *file, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* verify_add_error: what another part said of the bytes, as a finding. What it said of the
 * machine (a disk that cannot be read) says nothing of the wheel and ends the verification with
 * that error. */
void verify_add_error(struct verifying *v, const char *rule, const char *file, const struct err *why);
/* verify_against: the file name against the variant that it must be of. */
void verify_against(struct verifying *v);
/* verify_members: reads every member once, several at a time: digest, build paths, ELF. `arenas`
 * (as many as `threads`) own what is found. */
int verify_members(struct verifying *v, unsigned threads, struct arena *arenas, struct err *e) MUST_CHECK;
/* verify_record: RECORD against the members. verify_info: WHEEL, METADATA, the marker and the order
 * of the archive. */
void verify_record(struct verifying *v);
void verify_info(struct verifying *v);
/* verify_isa: what was found in the libraries' code. */
void verify_isa(struct verifying *v);
/* verify_symbols: where undefined symbols come from. */
void verify_symbols(struct verifying *v);
/* verify_elf: paths, needs and the platform tag of the libraries. */
void verify_elf(struct verifying *v);
/* verify_gpu: the GPU code of every member against the promise. */
void verify_gpu(struct verifying *v);
