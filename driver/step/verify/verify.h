/* Checks a finished wheel against every rule that it claims to keep. */
#pragma once
#include "core/code/code.h"
#include "core/fatbin/fatbin.h"
#include "core/plan/plan.h"
#include "core/wheel/wheel.h"

enum finding_level { FINDING_NOTE, FINDING_WARNING, FINDING_ERROR };

struct finding {
	enum finding_level level;
	const char *rule; /* a code of verify_rules */
	const char *file; /* member, "" for the wheel itself */
	const char *text;
};

struct verify_rule {
	const char *code; /* never renamed: people filter by it */
	const char *text; /* what holds when nothing is found */
};

/* In the order they are applied, ended by a row without a code. verify_rule_find: NULL if
 * unknown. */
extern const struct verify_rule verify_rules[];
const struct verify_rule *verify_rule_find(const char *code);

struct verify_request {
	const char *wheel;
	const struct tables *tables;           /* label and thread pools; NULL: not read */
	const struct promise *promise;         /* NULL: what the label promises */
	const struct isa_rules *code;          /* NULL: machine code is not examined */
	const struct variant *against;         /* that the wheel must be of; NULL */
	const struct manylinux_policy *policy; /* NULL: no library may be outside, no tag check */
	/* fnmatch patterns of NEEDED names of its dependencies */
	struct strlist provided;
	struct strlist given;              /* normalized names of dependencies that have these */
	const struct elf_info *companions; /* libraries installed beside it, with symbols */
	size_t companions_count;
	struct strlist build_paths;  /* that no file may hold */
	const char *provenance;      /* what is wrong with the statement beside it; NULL: nothing */
	const char *temp_dir;        /* where members are unpacked; NULL: $TMPDIR, else /tmp */
	const char *expect_version;  /* NULL: not checked */
	const char *expect_requires; /* a Requires-Dist line that must be there; NULL */
};

struct verify_gpu_file {
	const char *file;
	size_t fat_binaries;
	struct fatbin_count *code; /* sorted by target, then kind */
	size_t count;
};

struct verify_report {
	const char *file;       /* without the directory */
	struct wheel_name name; /* empty strings if the file name is malformed */
	char sha256[65];
	uint64_t bytes;
	size_t members, elf_files;
	const char *tag; /* the lowest honest platform tag, "" if unknown */
	const char *tag_why;
	unsigned metadata_rev;       /* 0: no marker */
	const char *requires_torch;  /* "" if none */
	struct promise promise;      /* its code was compared with it */
	struct runs_on runs_on;      /* zero if the file name is malformed, or without tables */
	struct verify_gpu_file *gpu; /* the files that hold GPU code */
	size_t gpu_count;
	size_t code_files;
	size_t code_functions; /* within the promise; all of them without one */
	uint64_t code_bytes;   /* decoded */
	/* what code uses beyond the promise without looking for it: "cx16", "" nothing */
	const char *code_beyond;
	struct finding *findings;
	size_t count, errors, warnings;
};

struct companions {
	struct elf_info *items;
	size_t count;
};

/* companions_of_wheel, companions_of_files: add the libraries inside a wheel, or those of the paths
 * that are ELF files. */
int companions_of_wheel(const char *wheel, const struct run *run, struct arena *a, struct companions *c,
			struct err *e) MUST_CHECK;
int companions_of_files(const struct strlist *paths, struct arena *a, struct companions *c, struct err *e) MUST_CHECK;
/* verify_wheel: applies verify_rules without running anything of the wheel. Findings are not an
 * error: -1 only if it cannot be examined. */
int verify_wheel(const struct verify_request *q, const struct run *run, struct arena *a, struct verify_report *ret,
		 struct err *e) MUST_CHECK;
/* verify_json: a new reference. verify_rows show it: a line a finding, and a summary; verify_lines:
 * only "wheel:member: error[code]: text" a finding. */
json_t *verify_json(const struct verify_report *r);
extern const struct show verify_rows[], verify_lines[];
