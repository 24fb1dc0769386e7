/* Verify: opens a wheel as a stranger would and checks every rule it claims. */
#pragma once
#include <jansson.h>

#include "core/manylinux.h"
#include "core/wheel.h"

enum finding_level { FINDING_NOTE, FINDING_WARNING, FINDING_ERROR };

struct finding {
	enum finding_level level;
	const char
		*rule; /* "record", "tag", "rpath", "needed", "build-path", "metadata", "marker", "zip", "elf", "exec-stack", "textrel" */
	const char *file; /* member, "" for the wheel itself */
	const char *text;
};

struct verify_request {
	const char *wheel;
	const struct manylinux_policy *policy; /* NULL: no library is allowed outside, the tag is not checked */
	struct strlist provided;               /* NEEDED names that its dependencies provide (torch's libraries); fnmatch patterns */
	struct strlist build_paths;            /* strings no member may contain */
	const char *expect_version;            /* NULL: not checked */
	const char *expect_requires;           /* a Requires-Dist line that must be there; NULL */
};

struct verify_report {
	const char *file;       /* without the directory */
	struct wheel_name name; /* empty strings when the file name is none of a wheel */
	char sha256[65];
	uint64_t bytes;
	size_t members, elf_files;
	const char *tag; /* the lowest honest platform tag, "" if it could not be found */
	const char *tag_why;
	unsigned metadata_rev;      /* 0: no marker */
	const char *requires_torch; /* "" if none */
	struct finding *findings;
	size_t count, errors, warnings;
};

/* verify_wheel: the static checks: ZIP rules; RECORD complete, exact and with sha256; WHEEL and METADATA agree with the name; the marker; for each ELF file: only $ORIGIN paths in DT_RPATH, no DT_RUNPATH, every NEEDED inside, provided or allowed;
 * the platform tag not lower than the libraries need; no executable stack, no text relocations; no build path in any member. Findings are not an `err`: -1 only when the file cannot be examined at all. */
int verify_wheel(const struct verify_request *q, const struct run *run, struct arena *a, struct verify_report *ret,
		 struct err *e) MUST_CHECK;
/* verify_json: the report as a document (new reference). verify_text: for people, a line per finding and a summary. */
json_t *verify_json(const struct verify_report *r);
char *verify_text(const struct verify_report *r, struct arena *a);
