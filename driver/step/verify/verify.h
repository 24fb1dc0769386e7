/* Verify: opens a wheel as a stranger would and checks every rule it claims. */
#pragma once
#include <jansson.h>

#include "core/code/isa_rules.h"
#include "core/fatbin/fatbin.h"
#include "core/plan/promise.h"
#include "core/wheel/manylinux.h"
#include "core/wheel/wheel.h"

enum finding_level { FINDING_NOTE, FINDING_WARNING, FINDING_ERROR };

struct finding {
	enum finding_level level;
	const char *rule; /* code of a row of verify_rules */
	const char *file; /* member, "" for the wheel itself */
	const char *text;
};

struct verify_rule {
	const char *code; /* never renamed: people filter by it */
	const char *text; /* what holds when nothing is found */
};

/* Every rule there is, in the order they are applied; ended by a row without a code.
 * verify_rule_find: NULL for a code that is none. */
extern const struct verify_rule verify_rules[];
const struct verify_rule *verify_rule_find(const char *code);

struct verify_request {
	const char *wheel;
	/* to understand the wheel's version label; NULL: it is not read */
	const struct tables *tables;
	/* what the code is compared with; NULL: what the label says */
	const struct promise *promise;
	/* to judge machine code by; NULL: it is not examined */
	const struct isa_rules *code;
	/* what the wheel must be the one of; NULL: not checked */
	const struct variant *against;
	/* NULL: no library is allowed outside, the tag is not checked */
	const struct manylinux_policy *policy;
	/* NEEDED names that its dependencies provide (torch's libraries); fnmatch patterns */
	struct strlist provided;
	/* libraries that are installed beside it and were read for their symbols */
	const struct elf_info *companions;
	size_t companions_count;
	struct strlist build_paths;  /* strings no member may contain */
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
	struct wheel_name name; /* empty strings when the file name is none of a wheel */
	char sha256[65];
	uint64_t bytes;
	size_t members, elf_files;
	const char *tag; /* the lowest honest platform tag, "" if it could not be found */
	const char *tag_why;
	unsigned metadata_rev;       /* 0: no marker */
	const char *requires_torch;  /* "" if none */
	struct promise promise;      /* that its code was compared with */
	struct verify_gpu_file *gpu; /* the files that hold GPU code */
	size_t gpu_count;
	size_t code_files, code_functions;
	uint64_t code_bytes; /* decoded */
	struct finding *findings;
	size_t count, errors, warnings;
};

struct companions {
	struct elf_info *items;
	size_t count;
};

/* companions_of_wheel: adds the libraries inside a wheel. companions_of_files: those of the paths
 * that are ELF files. Both in the arena. */
int companions_of_wheel(const char *wheel, const struct run *run, struct arena *a, struct companions *c,
			struct err *e) MUST_CHECK;
int companions_of_files(const struct strlist *paths, struct arena *a, struct companions *c, struct err *e) MUST_CHECK;
/* verify_wheel: the static checks: ZIP rules; RECORD complete, exact and with sha256; WHEEL and
 * METADATA agree with the name; the marker; for each ELF file: only $ORIGIN paths in DT_RPATH, no
 * DT_RUNPATH, every NEEDED inside, provided or allowed; the platform tag not lower than the
 * libraries need; no executable stack, no text relocations; no build path in any member; no
 * undefined symbol that neither the wheel, nor a companion at hand, nor the system, nor Python
 * provides; no instruction beyond the promise but in functions that something looks at the
 * processor for (without a promise: notes against the baseline). Findings are not an `err`: -1 only
 * when the file cannot be examined at all. */
int verify_wheel(const struct verify_request *q, const struct run *run, struct arena *a, struct verify_report *ret,
		 struct err *e) MUST_CHECK;
/* verify_json: the report as a document (new reference). verify_text: for people, a line per
 * finding and a summary. verify_lines: for machines that read lines: "wheel:member: error[code]:
 * text" per finding, nothing else. */
json_t *verify_json(const struct verify_report *r);
char *verify_text(const struct verify_report *r, struct arena *a);
char *verify_lines(const struct verify_report *r, struct arena *a);
