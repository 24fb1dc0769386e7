/* The rows of a release's file, which is in profiles/releases; docs/own.md adds one. As in rows.h,
 * optional strings are "" never NULL, optional lists have count 0. */
#pragma once
#include "core/tables/rows.h"

struct source_row {
	const char *name;   /* file name in the store */
	const char *sha256; /* "" = `unproven` says why none is known */
	const char *unproven;
	/* the day on which this user recorded the digest; NULL: it is the table's, or none */
	const char *recorded;
	/* tried in order; https:, http:, file:, deb:ARCHIVE/PATH */
	const char **urls;
	unsigned urls_count;
	/* directory below the source tree where it is unpacked; "" = the tree itself */
	const char *into;
	bool keep_top;              /* false: the archive's single top directory is stripped */
	unsigned long bytes;        /* to download; 0 = not known */
	unsigned long max_unpacked; /* bytes; 0 = 8 GiB */
	unsigned line;
};

struct command_row {     /* run in the sandbox after patching */
	const char *dir; /* below the source tree */
	const char **argv;
	unsigned argv_count;
	const char *why;
};

struct heavy_row { /* units that need more memory than the others */
	/* a pattern of fnmatch(3) for the outputs as ninja names them:
	 * "*FlashAttentionKernel.cpp*" */
	const char *units;
	const char *bytes; /* what one needs at its peak: "2300M" */
	const char *why;
	unsigned line;
};

/* what the jobs of a package's build need at their peak, measured; "" = not known */
struct memory_row {
	const char *compile; /* one compiler on a unit that is not heavy */
	const char *link;
	struct heavy_row *heavy;
	unsigned heavy_count;
	unsigned line;
};

struct need_row {         /* needs.yaml: what a build needs: one of the first five */
	const char *tool; /* of the toolchain, in the release's range: "cmake" */
	const char *program;
	const char *header;            /* below an include directory: "eigen3/Eigen/Core" */
	const char *module;            /* of Python, imported: "numpy" */
	const char *library;           /* of CUDA, for the linker: "libcuda.so" */
	const char *package, *release; /* who needs it; "" = all */
	const char *toggle;            /* only where this option is ON; "" = always */
	bool host;                     /* on this machine, not in the root */
	bool optional;                 /* without it the build only is slower */
	const char *debian;            /* the package of Debian that has it */
	const char *wheel;             /* the distribution with the module; "" = its name */
	const char *why;
	unsigned line;
};

struct captured_row {                  /* captured.yaml: it has `requirement` or `check` */
	const char *package, *version; /* of the distribution; the version is a glob */
	const char *requirement;       /* replaces its Requires-Dist: "sympy>=1.13.1" */
	const char *check;             /* a runtime check that it is known to fail */
	const char *why;
	unsigned line;
};

struct cflags_row { /* warnings and the like, added behind the ISA flags */
	const char **flags;
	const char **platforms; /* none = all */
	const char *why;
	unsigned flags_count, platforms_count;
	unsigned line;
};

struct cuda_require_row {        /* a Requires-Dist of the CUDA wheels alone */
	const char *requirement; /* "triton==3.6.0" */
	const char *cuda;        /* toolkits that it is for: "<13"; "" = all */
	const char **platforms;  /* none = all */
	unsigned platforms_count;
	unsigned line;
};

struct package_row { /* one package of a release */
	const char *version;
	/* "setup-py-env" (era A), "setup-py-cmake-env" (era B), "scikit-build-core" (era C),
	 * "setuptools" (vision), "setuptools-cmake" (audio <= 2.10) */
	const char *backend;
	struct source_row *sources;
	/* a patch series inside the unpacked tree ("debian/patches/series"), "" = none;
	 * patches/<package>/<release>/series comes after it */
	const char *series;
	const char **skip_patches; /* names of that series left out */
	/* of patches/<package>/<release>: 'sha256sum $(cat series) | sha256sum'; with others the
	 * wheel's label says so. "" = none */
	const char *patches;
	struct command_row *prepare;
	/* what the build needs from Python: "setuptools>=62.3,<80" ... */
	const char **python_requires;
	/* replaces/completes Requires-Dist of the wheel, without torch itself */
	const char **install_requires;
	struct cuda_require_row *cuda_requires;
	/* locked list with hashes, file below profiles/requirements ("" = none: the root must have
	 * them) */
	const char *requirements;
	/* another such list, of what only the trial of its wheel imports; in no key */
	const char *tried_with;
	struct table_setting *settings; /* release-wide overrides of toggles and environment */
	struct cflags_row *extra_cflags;
	const char *cudnn;         /* "" = none stated */
	const char *note;          /* added to the plan's notes when not "" */
	struct memory_row *memory; /* NULL: nothing known */
	const char *torch;         /* versions it supports, by its stable ABI; "" = all */
	/* Only for an extension, in torch_extensions.yaml: its name as in file names (NULL: a
	 * package of a release); the versions of Python that it supports, "" = all; whether it
	 * needs CUDA. */
	const char *name, *python;
	bool cuda_only;
	/* of its build, with a marker or extras, as the source has them: resolved and locked */
	const char **also_requires;
	unsigned also_requires_count;
	/* Only for a source of the user's in the place of the release's: its version, and what it
	 * is, for people. NULL: the release's. `version` stays the release's: options follow it. */
	const char *own_version, *own_state;
	/* a file of its source with GPU code; "" = it has none, NULL = not known */
	const char *gpu_code;
	unsigned sources_count, skip_patches_count, prepare_count, python_requires_count,
		install_requires_count, cuda_requires_count, settings_count, extra_cflags_count;
	unsigned line;
};

/* The base of a release's builds: the first row that fits. */
struct world_row {
	const char *base;       /* a part of profiles/worlds */
	const char **cuda;      /* only for these toolkits; none: for all, and without CUDA */
	const char **platforms; /* only for these; none: for all */
	unsigned cuda_count, platforms_count;
	unsigned line;
};

struct release_row {      /* releases/<name>.yaml */
	const char *name; /* "2.9.1", "2.6.0-debian" */
	const char *base; /* upstream version for comparisons: "2.6.0" */
	const char **pythons;
	const char **toolkits;    /* CUDA versions it builds with, the default first */
	struct world_row *worlds; /* none: builds use the machine's own system */
	const char *cmake;        /* version ranges: ">=3.18,<4" */
	const char *ninja;
	const char *gcc;
	const char *gcc_arm; /* instead of gcc on Arm; "" = the same */
	const char *clang;
	const char *cuda;
	const char *disk; /* bytes a build needs, for doctor: "18G" */
	const char *note;
	const char *asked; /* why it is taken only where it is named; "" = by itself too */
	/* a word in the version labels, where another release has these versions; "" = none */
	const char *label;
	const char *sources; /* where its facts come from */
	unsigned long source_date_epoch;
	struct package_row *pytorch; /* NULL when the release does not have it */
	struct package_row *torchvision;
	struct package_row *torchaudio;
	/* what --extension asks for, not of the file */
	const struct package_row *extensions;
	const char *file; /* where it came from */
	unsigned pythons_count, toolkits_count, worlds_count, extensions_count;
	unsigned line;
};

/* The rows of a matrix file. */
struct matrix_row {
	const char **packages; /* none in the file = pytorch */
	const char **pythons;  /* none in the file = the file's */
	const char **toolkits; /* none for cpu and mps */
	const char **gpus;     /* "cpu", "mps", "sm90", "sm80+sm90a+ptx" */
	/* instruction sets, or groups of isa.yaml, which loading expands; none for mps */
	const char **isas;
	unsigned packages_count, pythons_count, toolkits_count, gpus_count, isas_count;
	unsigned line;
};

struct matrix_file {
	const char *note;
	const char *release; /* "" in a view */
	const char *of;      /* a view: the matrix that only and except choose from; "" */
	const char **pythons;
	struct matrix_row *rows;
	const char **only;
	const char **except;
	unsigned pythons_count, rows_count, only_count, except_count;
	unsigned line;
};
