/* Index: a static simple repository (PEP 503, 592, 629, 658, 691, 700, 714) over a directory of
 * wheels, for pip and uv. */
#pragma once
#include "base/run.h"
#include "base/strlist.h"

#define INDEX_ALL "simple" /* the sub-directory that has every wheel */

struct index_request {
	const char *dir; /* holds the wheels, and gets the index */
	/* where the wheels of `dir` are served, NULL: beside the index, by relative links */
	const char *base_url;
};

/* INDEX_ALL, or the directory of a profile: "cpu-avx2", by the versions' local labels. */
struct index_sub {
	const char *name;
	const char *label; /* of its first wheel: "cpu.avx2"; "" of INDEX_ALL */
	/* of each wheel in `dir` by name: its own ones and those that they pin */
	bool *has;
	/* of a profile, what to ask installers for: of each project the newest version, all of them
	 * with the newest torch: "torch==2.6.0+cpu.avx2"; and the wheels of these versions */
	struct strlist install, wheels;
	/* what a wheel pins and none is, but a yanked one, and what has no version for that torch;
	 * for people */
	struct strlist missing;
};

/* In the directory of a profile: `install`, a line each, for pip and uv. */
#define INDEX_CONSTRAINTS "constraints.txt"
/* In INDEX_ALL: name, label, install, wheels, missing of the others. */
#define INDEX_LISTING "ptbuild.json"

struct index_result {
	size_t wheels, projects, yanked;
	struct index_sub *subs;
	size_t count;
};

/* index_write: writes index.html and index.json into <name>/ and <name>/<project>/ below `dir`, for
 * each profile and for all wheels, INDEX_LISTING, INDEX_CONSTRAINTS, and <wheel>.metadata beside
 * each wheel. A wheel with a file <wheel>.yanked beside it is yanked; the first line is the reason.
 * The same wheels give the same bytes. Sub-directories are exchanged atomically, those without
 * wheels removed; concurrent calls wait. Nothing changes on an error: ERR_INTEGRITY names a bad
 * wheel, ERR_POLICY a directory of that name that is not an index. */
int index_write(const struct index_request *q, const struct run *run, struct arena *a, struct index_result *ret,
		struct err *e) MUST_CHECK;
