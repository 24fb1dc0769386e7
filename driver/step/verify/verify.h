/* Checks a finished wheel against every rule that it claims to keep. */
#pragma once
#include "core/code/code.h"
#include "core/fatbin/fatbin.h"
#include "core/plan/plan.h"
#include "core/root/sandbox.h"
#include "core/wheel/dist.h"

enum finding_level { FINDING_NOTE, FINDING_WARNING, FINDING_ERROR };

struct finding {
	enum finding_level level;
	const char *rule; /* a code of verify_rules */
	const char *file; /* member, "" for the wheel itself */
	const char *text;
};

/* In the order they are applied. */
enum verify_rule_id {
	RULE_ZIP,
	RULE_RECORD,
	RULE_METADATA,
	RULE_REQUIRES,
	RULE_SHARED,
	RULE_MARKER,
	RULE_AGAINST,
	RULE_PROVENANCE,
	RULE_TAG,
	RULE_ELF,
	RULE_MODULE,
	RULE_ABI3,
	RULE_RPATH,
	RULE_NEEDED,
	RULE_DRIVER,
	RULE_GPU_CODE,
	RULE_GPU_EXTRA,
	RULE_GPU_MISSING,
	RULE_GPU_PTX,
	RULE_UNDEFINED,
	RULE_UNDEFINED_UNCHECKED,
	RULE_THREADS,
	RULE_EXEC_STACK,
	RULE_TEXTREL,
	RULE_ISA,
	RULE_ISA_INIT,
	RULE_ISA_COMDAT,
	RULE_ISA_UNNAMED,
	RULE_ISA_DISPATCHED,
	RULE_ISA_UNCHECKED,
	RULE_FAST_MATH,
	RULE_BUILD_PATH,
	RULE_NAME,
	RULE_START,
	RULE_MODE,
	RULES,
};

struct verify_rule {
	const char *code; /* never renamed: people filter by it */
	const char *text; /* what holds when nothing is found */
};

/* By their numbers, ended by a row without a code. */
extern const struct verify_rule verify_rules[];

struct companions {
	struct elf_info *items;
	size_t count, cap;
};

struct verify_request {
	const char *wheel;
	const struct tables *tables;           /* label and thread pools; NULL: not read */
	const struct promise *promise;         /* NULL: what the label promises */
	const struct isa_rules *code;          /* NULL: machine code is not examined */
	const struct variant *against;         /* that the wheel must be of; NULL */
	const struct manylinux_policy *policy; /* NULL: no library may be outside, no tag check */
	/* fnmatch patterns of NEEDED names of its dependencies */
	struct strlist provided;
	struct strlist given;         /* normalized names of dependencies that have these */
	struct companions companions; /* libraries installed beside it, with symbols */
	struct dist *with;            /* the distributions of these, as far as they are known */
	size_t with_count, with_cap;
	struct strlist build_paths;  /* that no file may hold */
	const char *provenance;      /* why the statement beside it is wrong; NULL: it is not */
	const char *temp_dir;        /* where members are unpacked; NULL: $TMPDIR, else /tmp */
	const char *expect_version;  /* NULL: not checked */
	const char *expect_requires; /* a Requires-Dist line that must be there; NULL */
	const struct run *run;       /* where to log, and how the user stops it */
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

/* companions_of_wheel, companions_of_files: add the libraries inside a wheel, or those of the paths
 * that are ELF files. */
int companions_of_wheel(const char *wheel, const struct run *run, struct arena *a,
			struct companions *c, struct err *e) MUST_CHECK;
int companions_of_files(const struct strlist *paths, struct arena *a, struct companions *c,
			struct err *e) MUST_CHECK;
/* verify_wheel: applies verify_rules without running anything of the wheel. Findings are not an
 * error: -1 only if it cannot be examined. */
int verify_wheel(const struct verify_request *q, struct arena *a, struct verify_report *ret,
		 struct err *e) MUST_CHECK;
/* verify_json: a new reference. verify_rows show it: a line a finding, and a summary; verify_lines:
 * only "wheel:member: error[code]: text" a finding. verify_brief adds what verify_brief_rows show:
 * of errors and warnings a line a rule, of notes the number. */
json_t *verify_json(const struct verify_report *r);
void verify_brief(json_t *doc);
extern const struct show verify_rows[], verify_brief_rows[], verify_lines[];

/* Verification by use: installs the wheel into a clean environment in the sandbox, imports it and
 * compares operations of each kind with references. */

struct verify_run_request {
	const struct plan *plan;
	const struct root *root;
	enum sandbox_kind kind;
	const char *wheel;       /* host path */
	const char *torch_wheel; /* that it is built for; NULL: the root's torch, or it is torch */
	/* host paths of wheels that are unpacked as well, without asking pip; of a file that
	 * several have the first one stays */
	struct strlist beside;
	const char *checks_dir; /* <profiles>/checks */
	const char *venv;       /* of the build, whose packages are seen too; NULL: none */
	const char *work_dir;   /* host directory for the environment; created and removed */
	const struct run *run;  /* where to log, and how the user stops it */
};

struct verify_run_check {
	const char *name;
	const char *detail;
	bool ok;
};

struct verify_run_result {
	bool ran;
	const char *why_not; /* what this machine lacks, if it did not run */
	const char *run_by;  /* "qemu 10.0.13 as neoverse-n1"; NULL: this machine's processor */
	struct verify_run_check *checks;
	size_t count;
	double seconds;
};

/* verify_run: ERR_POLICY names the first failed check and how many failed, or has Python's words if
 * the import fails. On a machine that cannot run the wheel's code: ran = false, no error. */
int verify_run(const struct verify_run_request *q, struct arena *a, struct verify_run_result *ret,
	       struct err *e) MUST_CHECK;
/* verify_python: ERR_POLICY if the wheel's name is not for the root's Python. Leaves a Python of
 * unknown version to pip. */
int verify_python(const struct root *root, const char *wheel, struct arena *a,
		  struct err *e) MUST_CHECK;
/* verify_environment: only the environment, in work_dir, which stays, and the sandbox that sees it.
 * Only root, kind, wheel (NULL: the root's own packages), torch_wheel, beside and work_dir count,
 * and the toolkit of a plan that is not NULL. */
int verify_environment(const struct verify_run_request *q, struct arena *a, struct sandbox *ret,
		       struct err *e) MUST_CHECK;
#define VERIFY_PYTHON (SANDBOX_OUT "/venv/bin/python")

/* compare_wheels: what differs between two wheels, down to the member, the ELF section and the
 * symbol, at most COMPARE_DETAILS and a line of each; a new reference. Archives of different bytes
 * have at least one difference. -1: cannot be read. */
enum { COMPARE_DETAILS = 20 };
int compare_wheels(const char *one, const char *other, const struct run *run, struct arena *a,
		   json_t **ret, struct err *e) MUST_CHECK;
