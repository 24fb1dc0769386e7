#include <string.h>

#include "base/path.h"
#include "core/plan/buildenv.h"

static void put(struct settings *all, struct arena *a, const char *name, const char *value, const char *why)
{
	settings_put(all, a,
		     &(struct setting){.name = name,
				       .value = value,
				       .file = SETTING_BUILT_IN,
				       .rule = "the root's CUDA toolkit",
				       .why = why,
				       .fixed = true});
}

/* What makes nvcc's objects equal from one run to the next, and small. */
static const char *nvcc_flags(const struct buildenv_request *q, struct arena *a)
{
	const struct toolkit *k = q->toolkit;
	const struct toolkit_row *row = tables_toolkit(q->tables, k->version);
	struct strlist flags = {0};
	/* PyTorch itself has it among its flags. */
	if (!package_is_torch(q->package))
		strlist_ref(&flags, a, "-Xfatbin -compress-all");
	if (row && *row->compress && strlist_contains(&k->options, "--compress-mode"))
		strlist_addf(&flags, a, "-compress-mode=%s", row->compress);
	if (strlist_contains(&k->options, "--objdir-as-tempdir"))
		strlist_ref(&flags, a, "-objtemp");
	return strlist_join(&flags, a, " ");
}

/* Each package hands flags to nvcc through a variable of its own. */
static void layer_nvcc_flags(const struct buildenv_request *q, struct settings *all, struct arena *a)
{
	static const struct {
		const char *package, *backend, *name;
	} names[] = {{"torchvision", "setuptools", "NVCC_FLAGS"},
		     {"torchaudio", "setuptools-cmake", "CUDAFLAGS"},
		     /* Its setup.py takes none; this one nvcc reads itself. */
		     {"torchaudio", "setuptools", "NVCC_APPEND_FLAGS"}};
	const char *name = "TORCH_NVCC_FLAGS";
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(q->package, names[i].package) == 0 && strcmp(q->row->backend, names[i].backend) == 0)
			name = names[i].name;
	if (q->row->name) /* nvcc reads this itself, whatever the extension does */
		name = "NVCC_APPEND_FLAGS";
	const char *flags = nvcc_flags(q, a);
	if (*flags)
		put(all, a, name, flags,
		    "GPU code is compressed; temporary files are named after the object, not after the process, so "
		    "that objects are equal");
}

void buildenv_cuda(const struct buildenv_request *q, struct settings *all, struct arena *a)
{
	const struct toolkit *k = q->toolkit;
	if (!k || q->profile->gpu != GPU_CUDA)
		return;
	put(all, a, "CC", k->cc, arena_printf(a, "nvcc %s accepts GCC up to %u", k->version, k->gcc_max));
	put(all, a, "CXX", k->cxx, arena_printf(a, "nvcc %s accepts GCC up to %u", k->version, k->gcc_max));
	put(all, a, "CUDAHOSTCXX", k->cxx_path, "the compiler behind nvcc is the one that compiles all else");
	put(all, a, "CUDA_HOME", k->home, arena_printf(a, "CUDA %s of the root", k->version));
	put(all, a, "CUDACXX", k->nvcc, arena_printf(a, "nvcc of CUDA %s", k->version));
	if (k->layout != TOOLKIT_DISTRIBUTION) {
		put(all, a, "CUDA_PATH", k->home, "where CMake looks for the toolkit");
		put(all, a, "PATH", arena_printf(a, "%s:%s", path_dir(a, k->nvcc), q->path),
		    "the toolkit's nvcc before any other");
	}
	layer_nvcc_flags(q, all, a);
}
