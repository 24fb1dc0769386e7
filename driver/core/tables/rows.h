/* The rows of the tables: one struct per kind of fact, loaded straight from profiles/.
 *
 * Optional strings are "" never NULL; optional lists have count 0. `line` is the row's line in
 * its file. */
#pragma once
#include <stdbool.h>

/* A value a row asks for, with the reason a person is shown. */
struct table_setting {
	const char *name;
	/* in the file only: one row for several names of one value; loading makes a row of each */
	const char **names;
	unsigned names_count;
	const char *value;
	const char *why;
	const char *source; /* of this row alone; "" = the file's */
	const char *since;  /* releases before this ignore the row; "" = no beginning */
	const char *until;  /* releases >= this ignore the row; "" = no end */
	const char *gpu;    /* kind of profile that it is for: "cpu", "cuda" or "mps"; "" = any */
	/* "pytorch" unless the file states it; inside a release: the package that contains it */
	const char *package;
	/* true: a CMake cache entry that PyTorch's own forwarding drops, so it goes through the
	 * generated file */
	bool cache;
	bool fixed; /* the row's subject does not work with another value: no one may set one */
	unsigned line;
};

struct isa_row { /* isa.yaml */
	const char *name;
	const char **aliases;
	const char *platform; /* "x86_64-linux", "aarch64-linux" */
	const char **flags;   /* for CFLAGS and CXXFLAGS, never for nvcc's host pass */
	/* feature names of /proc/cpuinfo that a machine must have to run it */
	const char **cpuinfo;
	const char **workloads; /* detect recommends it for these only; none = for any */
	unsigned rank;          /* detect prefers the higher */
	/* "v3": the lowest x86-64 level whose processors all run it; "" where no level says so */
	const char *level;
	const char *gcc_min;
	const char *clang_min;
	const char *cpus; /* for people: which processors */
	const char *qemu; /* QEMU_CPU of a processor that has it and little else; "" = none */
	const char *note; /* added to the plan's notes when not "" */
	struct table_setting *settings; /* toggles that the ISA implies */
	unsigned aliases_count, flags_count, cpuinfo_count, workloads_count, settings_count;
	unsigned line;
};

struct isa_group { /* isa.yaml: a word for several of them in a matrix */
	const char *name;
	const char **isas;
	unsigned isas_count;
	unsigned line;
};

struct gpu_suffix { /* "a", "f" and the first toolkit whose nvcc supports it */
	const char *suffix;
	const char *cuda_min;
	const char *torch_min; /* first PyTorch that does; "" = as the target */
};

struct gpu_row {                /* gpu.yaml */
	const char *sm;         /* "90" */
	const char *capability; /* "9.0" */
	const char *name;       /* "Hopper" */
	const char **aliases;   /* other numbers whose GPUs run its code: "107" */
	const char **devices;
	const char *cuda_min; /* first toolkit whose nvcc has the target */
	const char *cuda_max; /* last one ("" = still there) */
	/* first PyTorch whose arch lists know it ("" = all in the tables) */
	const char *torch_min;
	const char *cudnn_max; /* last cuDNN that supports it ("" = still supported) */
	/* where such machines exist; elsewhere: built, with a note; none = not known, no note */
	const char **platforms;
	/* first driver that knows the GPU ("" = the toolkit's floor decides) */
	const char *driver_min;
	/* torch.utils.cpp_extension refuses it: no torchvision, and no torchaudio that goes through
	 * it */
	bool no_extensions;
	/* first PyTorch whose torch.utils.cpp_extension no longer knows it ("" = all do) */
	const char *extensions_until;
	const char **not_with; /* targets that cannot be built together with it: "100" */
	struct gpu_suffix *suffixes;
	struct table_setting *settings; /* toggles that the target implies */
	const char *note;
	/* a system on a chip, whose code runs on it alone: what is built for a lower minor number
	 * of its line does not */
	bool tegra;
	/* first toolkit whose code for lower minor numbers of its line runs there ("" = none) */
	const char *shares_from;
	/* of such a system: the first CUDA whose toolkit for Arm servers (SBSA) makes its code */
	const char *sbsa;
	unsigned aliases_count, devices_count, platforms_count, not_with_count, suffixes_count,
		settings_count;
	unsigned line;
};

struct gpu_units_row {      /* gpu.yaml: C++ units of PyTorch that hold the GPU list */
	const char **units; /* the row is for trees that have the first of them */
	unsigned units_count;
	const char *why;
	unsigned line;
};

struct gpu_extra_row {     /* gpu.yaml: what PyTorch's own build adds to some kernels */
	const char *base;  /* asked for: "90" */
	const char *extra; /* then also there: "90a" */
	const char *since; /* first PyTorch */
	const char *why;
	unsigned line;
};

struct cuda_library_row {    /* cuda.yaml: libraries of one nvidia-* wheel */
	const char *package; /* "nvidia-cublas-cu12" */
	const char *dir;     /* below site-packages/nvidia: "cublas/lib", "cu13/lib" */
	const char *older;   /* that of older versions, below site-packages; "" = none */
	const char *below;   /* the first version that has these names no more; "" = none */
	const char **names;  /* fnmatch patterns of their SONAMEs: "libcublas.so.12" */
	const char *part;    /* the part that knows their version; "" = the toolkit's own version */
	const char *extra;   /* of the layout's bundle, which brings the package; "" = none */
	const char **needs;  /* packages whose libraries these need in turn, and it requires */
	unsigned names_count, needs_count;
	unsigned line;
};

/* cuda.yaml: how the nvidia-* wheels of a CUDA line are laid out */
struct layout_row {
	const char *name;                   /* "cu12" */
	const char *bundle;                 /* whose extras bring the toolkit's own; "" = none */
	struct cuda_library_row *libraries; /* in the order of the search path */
	unsigned libraries_count;
	unsigned line;
};

/* cuda.yaml: a library that a toolkit may hold or lack, found by its header */
struct part_row {
	const char *name;    /* "cudnn" */
	const char *header;  /* "cudnn_version.h" */
	const char **macros; /* those of the header that make up the version, in this order */
	unsigned macros_count;
	const char *toggle;  /* the option that needs it: "USE_CUDNN" */
	const char *package; /* of the toggle: "pytorch" (the default), "torchvision" */
	const char *debian;  /* the package of Debian that has it, "" = none: for hints */
	unsigned line;
};

struct toolkit_row {         /* cuda.yaml */
	const char *version; /* "12.8" */
	const char *gcc_max; /* newest major GCC nvcc accepts, inclusive */
	const char *clang_max;
	const char *driver;       /* the toolkit's own driver on Linux */
	const char *driver_floor; /* by minor-version compatibility */
	const char *compress;     /* how nvcc compresses GPU code: "size"; "" = its default */
	const char *layout;
	struct cuda_library_row *libraries; /* those of the layout */
	unsigned libraries_count;
	unsigned line;
};

struct line_row { /* cuda.yaml: a major version of CUDA without a toolkit here */
	const char *cuda;
	const char *driver_floor;
	unsigned line;
};

struct nvcc_error_row { /* cuda.yaml: what nvcc says where it can compile nothing */
	const char *text;
	const char *fix; /* the way out */
	const char *source;
	unsigned line;
};

struct blas_row {            /* blas.yaml */
	const char *name;    /* "openblas" */
	const char *cmake;   /* value of BLAS: "OpenBLAS" */
	const char *info;    /* BLAS_INFO that torch.__config__.show() must then print: "open" */
	const char *pkgconf; /* module to look for; "" = none (a framework) */
	const char *debian;  /* the package of Debian that has it; "" = none */
	const char *world;   /* the part of a world that has it; "" = the bases have it */
	/* the setting that names its directory: "INTEL_MKL_DIR"; "" = it is among the root's own */
	const char *place;
	const char **files; /* what PyTorch needs of it, below that directory */
	/* what of it is linked into the wheel's own libraries, by its directory in the root's
	 * usr/share/doc: "mkl-static"; "" = it stays a library of its own */
	const char *linked;
	const char *licence; /* of what is linked, by name; "" = none is */
	const char **platforms;
	const char *note;
	struct table_setting *settings; /* what PyTorch needs besides BLAS=... */
	unsigned files_count, platforms_count, settings_count;
	unsigned line;
};

struct toggle_row { /* toggles.yaml: one USE_/BUILD_ option of a package */
	const char *name;
	const char **names;  /* as in table_setting */
	const char *package; /* "pytorch" (the default), "torchvision", "torchaudio" */
	const char *since;   /* first release (of that package) that has it; "" = all */
	const char *until;   /* first release that no longer has it; "" = still there */
	const char *value;   /* in the file only: the same for all three of the next */
	/* value for GPU target cpu, cuda, mps; "" = not set, PyTorch's own default holds */
	const char *cpu;
	const char *cuda;
	const char *mps;
	/* a toggle of the same package without which this one is off; "" = none */
	const char *needs;
	/* what may be asked for, in the package's own spelling; none in the file = ON, OFF */
	const char **values;
	const char *why;
	const char *source; /* as in table_setting */
	bool cache;         /* as in table_setting */
	bool check;         /* compare with CMakeCache.txt after configure */
	unsigned names_count, values_count;
	unsigned line;
};

struct retired_row { /* toggles.yaml: a name people ask for that no longer exists, or never did */
	const char *name;
	const char *package;
	const char *since; /* first release of these tables without it; "" = it never existed */
	const char *why;   /* and what to use */
	unsigned line;
};

struct correction_row { /* corrections.yaml: what recipes got wrong, a note for whom it concerns */
	const char *name;
	const char **packages; /* none = all, as for the next four */
	const char **kinds;    /* "cpu", "cuda", "mps" */
	const char **isas;
	const char **gpus; /* "90": one of the profile's targets is enough */
	const char **releases;
	const char *versions; /* of the package: "<2.10"; "" = all, as for the next two */
	const char *cuda;     /* toolkits */
	const char *pythons;
	const char *note;
	const char *source;
	bool limits; /* the note is of something that the wheel cannot do: every plan shows it */
	unsigned packages_count, kinds_count, isas_count, gpus_count, releases_count;
	unsigned line;
};

struct advisory_row { /* corrections.yaml: a weakness that is published of a package */
	const char *id;
	const char *package; /* "pytorch" (the default) */
	const char *versions;
	const char *what;
	const char *source;
	unsigned line;
};
