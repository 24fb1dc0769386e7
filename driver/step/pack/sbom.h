/* Bill of materials of a wheel: sources and vendored libraries, with their licences. */
#pragma once
#include "core/plan/plan.h"
#include "core/root/root.h"
#include "core/world/world.h"

struct sbom_library {        /* one that was vendored */
	const char *file;    /* in the tree: "torch/lib/libopenblas-1a2b3c4d.so.0" */
	const char *needed;  /* "libopenblas.so.0" */
	const char *source;  /* path in the root */
	const char *package; /* "libopenblas0-pthread=0.3.29+ds-3", "" unknown */
	const char *sha256;  /* of the source */
};

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
	const struct sbom_library *libraries;
	size_t libraries_count;
	const struct sbom_linked *linked; /* NULL: nothing is */
};

/* sbom_write: writes <dist-info>/sboms/<distribution>.cdx.json (CycloneDX 1.6, no serial number,
 * time of the epoch), <dist-info>/licenses/vendored/<package>/copyright from the root's
 * usr/share/doc, and all files of what is linked; *ret_licenses: those files, below licenses/. What
 * is linked has the version of its module where that lies below its place and no other is known,
 * and a package URL only if the wheel is known. Warns about a library without package or copyright
 * file and lists it without a licence. */
int sbom_write(const struct sbom_request *q, const struct run *run, struct arena *a, struct strlist *ret_licenses,
	       struct err *e) MUST_CHECK;
