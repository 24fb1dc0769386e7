/* Pack: a tree into a wheel. */
#pragma once
#include "base/sys/digest.h"
#include "core/fatbin/fatbin.h"
#include "core/plan/plan.h"
#include "core/root/root.h"
#include "core/wheel/wheel.h"
#include "core/world/world.h"

/* On a torch tree not larger than zlib's 6 and three times as fast, see core/zip/zip_deflate.h. */
#define PACK_LEVEL 5

struct pack_request {
	const char *tree;             /* unpacked, relocated; its .dist-info is rewritten */
	const char *version;          /* full version the wheel must carry, "2.6.0+cpu.avx2" */
	const char *platform;         /* platform tag */
	struct strlist requires;      /* Requires-Dist to set: "torch==2.6.0+cpu.avx2" */
	struct strlist license_files; /* below dist-info/licenses */
	unsigned metadata_rev;
	const char *input_key; /* for the marker: key of all else that the bytes depend on */
	const char *generator; /* "ptbuild 0.1.0" */
	uint64_t epoch;
	unsigned threads;      /* 0 = processors */
	int level;             /* deflate, 0..9 */
	const char *out_dir;   /* where the wheel goes (existing) */
	const struct run *run; /* where to log, and how the user stops it */
};

struct pack_result {
	const char *path;
	const char *file;
	char sha256[65];
	uint64_t bytes, unpacked_bytes;
	size_t files;
};

/* pack_wheel: renames the dist-info to the version, writes METADATA (Version, Requires-Dist), WHEEL
 * (Generator, Tag), the marker .metadata-rev and RECORD, and drops direct_url.json, INSTALLER,
 * REQUESTED, RECORD's signatures and bytecode. Entries are sorted, dist-info last, in it the marker
 * and RECORD last. The marker is "rev=1 tool=ptbuild 0.1.0 input=<key>"; from revision 2 on the
 * revision is also the build tag. Written to a temporary name and renamed. ERR_INTEGRITY for files
 * that are not regular, ERR_POLICY when the wheel exists with other bytes. */
int pack_wheel(const struct pack_request *q, struct arena *a, struct pack_result *ret,
	       struct err *e) MUST_CHECK;

/* Repack: a wheel with another revision or as a variant; its compressed contents are copied. */

struct repack_variant {    /* PEP 825 */
	const char *label; /* "cpu.avx2" */
	const char *json;  /* what variant.json says */
};

struct repack_request {
	const char *wheel;         /* one that ptbuild packed */
	unsigned metadata_rev;     /* 0: that of the wheel */
	const char *generator;     /* "ptbuild 0.1.0" */
	const char *expect_sha256; /* of `wheel`, NULL: not compared */
	/* NULL: none. Else the version and what it pins lose their local labels: installers choose
	 * among the variants of one version */
	const struct repack_variant *variant;
	int level;             /* deflate level of the changed files */
	const char *out_dir;   /* where the new wheel goes (existing) */
	const struct run *run; /* where to log, and how the user stops it */
};

/* repack_wheel: the same bytes as pack_wheel for the same tree and input key with that revision.
 * All but WHEEL, marker, RECORD and the directory is copied without inflating. ERR_INTEGRITY for a
 * layout that is not ptbuild's own or a RECORD that does not list the entries in order. */
int repack_wheel(const struct repack_request *q, struct arena *a, struct pack_result *ret,
		 struct err *e) MUST_CHECK;

/* A finished wheel with the GPU code of some GPUs alone. */

struct slim_target {
	const char *name;  /* "sm80+sm90" */
	const char *label; /* "sm80.sm90": behind the toolkit's */
	struct fatbin_wanted wanted;
};

struct slim_request {
	const char *wheel;         /* anybody's */
	const char *expect_sha256; /* of it; NULL: not compared */
	const struct slim_target *targets;
	size_t count;
	const char *cuda; /* "12.8"; NULL: what the wheel says of itself */
	const struct tables *tables;
	/* NVIDIA's own wheels may be cut: the result is not for passing on */
	bool nvidia;
	const char *generator; /* "ptbuild 0.1.0" */
	unsigned threads;      /* 0 = processors */
	const char *out_dir;   /* where the wheels go (existing) */
	/* nothing is packed: of the results `packed` has the unpacked size alone */
	bool dry_run;
	const struct run *run; /* where to log, and how the user stops it */
};

struct slim_result { /* of a target */
	bool same;   /* the wheel is slimmed for these GPUs already: nothing was written */
	struct pack_result packed;
	uint64_t bytes_before, unpacked_before;
	char sha256_before[65];
	/* libraries with GPU code, and those with a list of targets */
	struct fatbin_file_cut *files;
	size_t files_count;
};

/* slim_wheel: writes a wheel for each target, with its label after the version's own, or after the
 * toolkit that the wheel names. Inflates and reads each library once, copies what does not change
 * packed; updates METADATA, WHEEL, RECORD, marker and bill of materials, and writes a statement of
 * provenance next to each wheel. *ret_any false: no library has GPU code, and nothing is written.
 * ERR_POLICY, before anything is written, for NVIDIA's wheels, for a wheel that was slimmed for
 * other GPUs, and like fatbin_judge; ERR_INTEGRITY for a damaged one. */
int slim_wheel(const struct slim_request *q, struct arena *a, struct slim_result *ret,
	       bool *ret_any, struct err *e) MUST_CHECK;
/* slim_file_json: what was kept and dropped of a library, and what it lacks; a new reference. */
json_t *slim_file_json(const struct fatbin_file_cut *f, const struct fatbin_wanted *w,
		       struct arena *a);

/* Bill of materials of a wheel: sources and vendored libraries, with their licences. */

struct sbom_linked {         /* one that is linked into the wheel's own libraries */
	const char *name;    /* "mkl-static": of its directory in the root's usr/share/doc */
	const char *version; /* "" unknown */
	const char *licence; /* by name */
	const char *sha256;  /* of the wheel that it is from; "" unknown */
	/* Without a version: the directory inside the root that it is in ("" unknown), its module
	 * of pkg-config, and where that is looked for, ':' between. */
	const char *place, *module, *module_dirs;
};

struct sbom_request {
	const char *tree; /* the unpacked, relocated wheel */
	const struct root *root;
	const struct plan *plan;   /* what it is, and what of: sources, patches, torch */
	const struct world *world; /* its files are listed as "excluded"; NULL */
	const char *generator;     /* "ptbuild 0.1.0" */
	const struct wheel_vendored *libraries;
	size_t libraries_count;
	const struct sbom_linked *linked; /* NULL: nothing is */
	const struct run *run;            /* where to log, and how the user stops it */
};

/* sbom_write: writes <dist-info>/sboms/<distribution>.cdx.json (CycloneDX 1.6, no serial number,
 * time of the epoch), <dist-info>/licenses/vendored/<package>/copyright from the root's
 * usr/share/doc, and all files of linked components; *ret_licenses: those files, below licenses/. A
 * linked component has the version of its module if that is below its directory and no other is
 * known, and a package URL only if the wheel is known. Warns about a library without package or
 * copyright file and lists it without a licence. */
int sbom_write(const struct sbom_request *q, struct arena *a, struct strlist *ret_licenses,
	       struct err *e) MUST_CHECK;

/* Provenance: what a wheel was made of and by whom, beside the wheel: an in-toto Statement with
 * SLSA v1 provenance, and the same signed as a DSSE envelope. */

#define PROVENANCE_STATEMENT ".intoto.json" /* behind the wheel's file name */
#define PROVENANCE_ENVELOPE ".dsse.json"

/* provenance_statement: from a build.json alone and without times: the same build has the same
 * statement. ERR_INTEGRITY when the record lacks something. New reference. */
int provenance_statement(const json_t *record, json_t **ret, struct err *e) MUST_CHECK;
/* provenance_write: the statement beside the wheel, and with `key` the signed envelope. Without a
 * key an existing envelope is removed if it holds another statement. */
int provenance_write(const json_t *record, const char *wheel, const struct sign_key *key,
		     struct arena *a, struct err *e) MUST_CHECK;
/* provenance_check: checks that the envelope next to the wheel is signed by `key` and is about this
 * wheel. ERR_INTEGRITY distinguishes a missing, malformed, foreign or changed envelope and other
 * bytes. */
int provenance_check(const char *wheel, const struct sign_key *key, struct arena *a,
		     struct err *e) MUST_CHECK;
/* provenance_beside: returns, for people, how the wheel was made, from the statement next to it,
 * which may be unsigned; NULL without a statement. ERR_INTEGRITY: about another wheel, or
 * broken. */
int provenance_beside(const char *wheel, struct arena *a, const char **ret,
		      struct err *e) MUST_CHECK;

/* Publish: a verified wheel into the store, and from the store into the output directory. */

/* publish_wheel: an atomic copy, which must have this digest. A file that has it already is left
 * alone; one with other bytes is replaced, with a warning. */
int publish_wheel(const char *from, const char *to, const char *sha256, const struct run *run,
		  struct arena *a, struct err *e) MUST_CHECK;
#define PACK_LOCK "requirements.txt" /* what the build needed of Python, in the object */
/* publish_export: like publish_wheel, copies the object's wheel, <wheel>.metadata-rev and
 * <variant>/build.json into `out_dir` (created if needed). *ret_path: the wheel in out_dir. */
int publish_export(const char *object, const char *wheel, const char *sha256, unsigned metadata_rev,
		   const char *variant, const char *out_dir, const struct run *run, struct arena *a,
		   const char **ret_path, struct err *e) MUST_CHECK;

struct earlier_request {
	const char *out_dir, *variant; /* of build.json: out_dir/variant */
	const char *release;           /* of what is put there now */
};

/* earlier_keep: if the record there is of another release, it and its page become
 * build-<release>.json and .html, and the log says so. A record that cannot be read is left for
 * what is put there. */
int earlier_keep(const struct earlier_request *q, const struct run *run, struct arena *a,
		 struct err *e) MUST_CHECK;
