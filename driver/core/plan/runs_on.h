/* Where a wheel runs: what it needs of a machine, derived from the plan before it is built and from
 * the wheel itself afterwards. */
#pragma once
#include <jansson.h>

#include "base/base.h"

struct gpu_parts; /* core/plan/gpu_parts.h */
struct gpu_row;   /* core/tables/rows.h */
struct isa_row;
struct plan;       /* core/plan/plan.h */
struct promise;    /* core/plan/plan.h */
struct tables;     /* core/tables/tables.h */
struct wheel_name; /* core/wheel/wheel.h */

struct runs_on {
	const char *platform;     /* "x86_64-linux", "x86_64-darwin or aarch64-darwin"; "": any */
	struct strlist platforms; /* each of them */
	const char *python;       /* "3.13", "3", "3.10, 3.12"; "": none */
	bool python_newer;        /* the last and later ones */
	/* which decides by its tags; NULL: it is not built yet */
	const struct wheel_name *wheel;
	const char *requires_python; /* of its METADATA, ">=3.9"; NULL: none */
	const char *musl;            /* "1.2"; "": it is not for musl alone */
	bool any_libc;               /* musl and glibc: installers choose by its tags */
	const char *glibc;           /* "2.39"; "": none is needed, or it is not known */
	/* it is the root's: the finished wheel needs this one or an older one */
	bool glibc_at_most;
	bool isa_known;
	/* NULL: any processor of the platform, or it is not known */
	const struct isa_row *isa;
	/* capabilities: "9.0", "9.0a", "12.0+PTX"; empty: none is used */
	struct strlist gpu;
	const struct gpu_row **gpu_rows; /* of each; NULL: not in the tables */
	const struct tables *tables;     /* which say what they run on */
	const struct gpu_parts *parts;   /* that have them; NULL: a label or plan names them */
	const char *driver;              /* the lowest that works: "525.60.13"; "" not known */
	const char *cuda;                /* the toolkit that it is for: "13.0"; "" none is known */
	bool libraries;                  /* it needs CUDA libraries with GPU code or compilers */
	bool tegra;                      /* its code is made with JetPack's own toolkit */
	const char *torch;               /* the version that it requires; "" none */
	bool torch_of_root;              /* which is the root's own, and no index has it */
};

/* runs_on_of_plan: `glibc` of the root, "" if it is not known. */
void runs_on_of_plan(const struct tables *t, const struct plan *p, const char *glibc,
		     struct arena *a, struct runs_on *ret);
/* runs_on_of_wheel: by its file name, its promise, and the lowest honest platform tag (""
 * unknown). `targets`: the GPU code found inside ("90a", "120+PTX"), which counts where nothing is
 * promised. `requires_torch`: its requirement, "" none. */
void runs_on_of_wheel(const struct tables *t, const struct wheel_name *n, const char *tag,
		      const struct promise *p, const struct strlist *targets,
		      const char *requires_torch, struct arena *a, struct runs_on *ret);
/* runs_on_set_cuda: for a wheel whose label names no toolkit: the CUDA version, or its major
 * number, that its libraries need, and the lowest driver for it. */
void runs_on_set_cuda(const struct tables *t, const char *cuda, struct runs_on *r);
/* runs_on_python: whether a Python ("3.13", "3.13t") can use the wheel. */
bool runs_on_python(const struct runs_on *r, const char *python, struct arena *a);
/* runs_on_requires: whether a Python satisfies Requires-Python: 1 yes, 0 no, -1: some of its patch
 * releases do. */
int runs_on_requires(const struct runs_on *r, const char *python, struct arena *a);
/* runs_on_installs: whether the installer of that Python on a Linux ("x86_64-linux", glibc "2.41")
 * accepts its tags; true if the wheel does not exist yet, or without glibc. */
bool runs_on_installs(const struct runs_on *r, const char *python, const char *platform,
		      const char *glibc, struct arena *a);
/* runs_on_json: a new reference. */
json_t *runs_on_json(const struct runs_on *r);
/* runs_on_lines: for people, a subject and a phrase each. runs_on_text: all in one line. */
void runs_on_lines(const struct runs_on *r, struct arena *a, struct kvlist *ret);
char *runs_on_text(const struct runs_on *r, struct arena *a);
