/* Backends: how each package's own build is driven. PyTorch's changed twice; torchvision and
 * torchaudio have their own. */
#pragma once
#include "core/plan/plan.h"
#include "core/root/toolkit.h"

struct backend {
	const char *name;
	/* argv of a separate configuration run, NULL when the build does it by itself */
	const char *const *configure;
	const char *const *build; /* argv that leaves one wheel in SANDBOX_OUT */
	/* configures with CMake: the generated cache file is given, CMakeCache.txt and
	 * compile_commands.json are checked */
	bool cmake;
};

/* backend_find: ERR_CONFIG for a name that no backend has. */
int backend_find(const char *name, const struct backend **ret, struct err *e) MUST_CHECK;

/* backend_shares: whether a build can be divided into shards: it is configured before it compiles,
 * so that the compilations are known; else ERR_POLICY. */
int backend_shares(const struct backend *b, const char *package, struct err *e) MUST_CHECK;

/* BACKEND_RPATH: the DT_RPATH every library is linked with: a placeholder that relocation
 * overwrites with the final list. No '$', so that no shell or generator has to quote it. */
extern const char BACKEND_RPATH[];

/* BACKEND_MASQUERADE: a directory inside the sandbox that holds the compilers' names as links to
 * the compiler cache. */
#define BACKEND_MASQUERADE SANDBOX_CFG "/ccache"

/* BACKEND_CCACHE_REMOTE: where the socket of the compiler cache's remote storage ("s") is inside
 * the sandbox. */
#define BACKEND_CCACHE_REMOTE SANDBOX_TOP "/remote"

/* BACKEND_NVCC_LAUNCHER: the script inside the sandbox by which nvcc is run when there is a
 * compiler cache. */
#define BACKEND_NVCC_LAUNCHER SANDBOX_CFG "/ccache-nvcc"

/* BACKEND_HEAP: the script inside the sandbox by which the compiler cache runs a compiler if there
 * is memory to spare. BACKEND_HEAP_BYTES: what a compiler may then need more. */
#define BACKEND_HEAP SANDBOX_CFG "/ccache-heap"
#define BACKEND_HEAP_BYTES (UINT64_C(1) << 30)

/* BACKEND_MODULES: a directory inside the sandbox, on Python's path where setuptools builds, with a
 * package whose entry point setuptools calls: the units of all extension modules of a package are
 * compiled at once. */
#define BACKEND_MODULES SANDBOX_CFG "/modules"

/* The files ptbuild_modules.py, nvcc_by_ccache.sh and larger_heap.sh beside this one. */
extern const unsigned char modules_program[], nvcc_by_ccache_script[], larger_heap_script[];
extern const size_t modules_program_size, nvcc_by_ccache_script_size, larger_heap_script_size;

struct backend_options {
	unsigned jobs;
	const char *linker;      /* for -fuse-ld; NULL: the compiler's own */
	const char *ccache;      /* path of ccache in the root; NULL: none */
	const char *ccache_size; /* "2048Mi"; NULL: the usual */
	/* directory inside the sandbox that has the torch to build against (before the root's own);
	 * NULL: the root's */
	const char *torch;
	const char *venv; /* build environment inside the sandbox; NULL: the root's own Python */
};

/* backend_linker: the linker that the plan names in PTBUILD_LINKER, if the root has it and its
 * compiler knows it; else NULL. */
const char *backend_linker(const struct plan *p, const struct toolchain *t);
/* backend_env: the plan's environment, with what does not change bytes (jobs, compiler cache, the
 * RPATH placeholder) and where things are. */
void backend_env(const struct plan *p, const struct backend *b, const struct backend_options *o, struct arena *a,
		 struct kvlist *ret);
/* backend_nvcc_launcher: the text of a script that runs nvcc by way of `ccache` (a path), but for
 * the two cases in which ccache returns another compilation's object (-dc after -c; code under
 * #ifndef __CUDA_ARCH__ in its preprocessor mode). */
char *backend_nvcc_launcher(const struct plan *p, const char *ccache, struct arena *a);
/* backend_heap: the text of BACKEND_HEAP: GCC collects garbage from BACKEND_HEAP_BYTES on. The
 * compiler cache's key does not have it, so where GCC would write its options into what it makes
 * (debug information, link-time optimisation) it runs as it is. */
char *backend_heap(struct arena *a);
/* backend_cache_file: the text of the file that CMake reads as its toolchain file: the plan's cache
 * entries and the prefix map, which is a compile option and not a flag so that torch.__config__
 * does not print it. */
char *backend_cache_file(const struct plan *p, struct arena *a);
