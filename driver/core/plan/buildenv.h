/* The environment of a build: from a profile, the tables and a release to environment variables and
 * CMake cache entries, each with its origin. Nothing here reads a file.
 *
 * Layers, each overriding those before it: what holds for every build, toggles.yaml's value for
 * the GPU kind, the ISA's settings, GPU facts (cuDNN), the release's settings, BLAS, the user's
 * profile, the command line. */
#pragma once
#include "core/root/toolkit.h"
#include "core/variant/variant.h"

/* Settings of a build, each value with its origin and reason. */

#define SETTING_BUILT_IN "built in"         /* `file` of what holds for every build */
#define SETTING_COMMAND_LINE "command line" /* `file` of --set, --without and --blas */

struct setting {
	const char *name;
	const char *value;
	const char *file; /* the table, or "built in", or "command line", or the user's profile */
	unsigned line;    /* 0: none */
	/* what set it: "toggle for cuda", "release 2.8.0"; NULL: `file` says it all */
	const char *rule;
	const char *why;
	const char *source; /* of this fact alone; NULL or "": what its file says of all */
	bool check;         /* compare with CMakeCache.txt */
	/* a CMake cache entry that only the generated file can set: not in the environment */
	bool cache;
	/* follows from the profile or holds for every build: no toggle that a user may set */
	bool fixed;
};

struct settings {
	struct setting *items; /* by name, by bytes */
	size_t count;
	size_t cap;
};

/* settings_put: adds a setting, or replaces the one of that name; when the value changes, `why`
 * names the old value and its origin. `check` and `cache` stay set once set. Keeps the strings,
 * does not copy them. */
void settings_put(struct settings *s, struct arena *a, const struct setting *item);
/* settings_get: returns the setting of that name, NULL if it is missing. */
const struct setting *settings_get(const struct settings *s, const char *name);
/* settings_value: returns the value of a setting, NULL if it is missing. */
const char *settings_value(const struct settings *s, const char *name);
/* settings_on: whether it is there and ON or 1. */
bool settings_on(const struct settings *s, const char *name);
/* settings_origin: "gpu.yaml:42", "built in". */
char *settings_origin(const struct setting *item, struct arena *a) __attribute__((returns_nonnull));

/* What the user may ask of a plan besides the variant. The command line is parsed straight into
 * this struct, and it is handed on whole: a new option is a field here, a row in cmd_plan_options
 * and its use. */

struct plan_options {
	const char *blas;      /* NULL: the profile's, else the platform's */
	struct kvlist toggles; /* --set NAME=VALUE */
	/* --source FILE=SHA256 of a file of the release: its digest is the user's */
	struct kvlist sources;
	struct strlist without; /* features to drop: "cudnn" */
	/* what torchvision and torchaudio are built against: "root", a wheel's path, or NULL: the
	 * torch of the same variant */
	const char *torch;
	/* "packages" (NULL too): the nvidia-* packages, which the wheel requires; "system":
	 * wherever the loader finds them */
	const char *cuda_libraries;
	const char *platform_tag; /* "manylinux" (NULL too): as the libraries allow; "linux" */
	unsigned metadata_rev;    /* 0 = 1 */
};

struct buildenv_request {
	const struct tables *tables;
	const struct release_row *release;
	const struct package_row *row;
	const char *package; /* "pytorch", "torchvision", "torchaudio" */
	const struct profile *profile;
	const struct blas_row *blas; /* NULL for torchvision and torchaudio */
	/* the user's choice came from here (a file or "command line"); NULL: the platform's
	 * default */
	const char *blas_origin;
	/* the root's, NULL without CUDA or when the root was not asked */
	const struct toolkit *toolkit;
	const char *path;  /* PATH, without the toolkit's directory */
	const char *label; /* local version label */
	/* full version torchvision and torchaudio pin; "" = unknown */
	const char *torch_version;
	const struct plan_options *options;
};

struct buildenv {
	struct settings env;   /* sorted */
	struct settings cmake; /* what CMakeCache.txt must hold after configure, sorted */
	struct settings cache; /* those of them that only the generated file can set, sorted */
	struct strlist notes;  /* corrections made here, in a fixed order */
};

/* buildenv_resolve: ERR_CONFIG if the user sets a toggle that the package does not have in this
 * release, or a value that it does not allow; the hint names the releases that have it, why it was
 * removed, or the nearest name, and ignores case. A toggle of another package is left out, with a
 * note. */
int buildenv_resolve(const struct buildenv_request *q, struct arena *a, struct buildenv *ret,
		     struct err *e) MUST_CHECK;
/* buildenv_arch_list: "8.0;9.0a;12.0+PTX". */
char *buildenv_arch_list(const struct profile *p, struct arena *a);
/* buildenv_capability: "9.0a", "12.0+PTX". */
char *buildenv_capability(const struct gpu_target *t, struct arena *a);
/* buildenv_uses_cmake: whether a package of this backend configures with CMake (and so reads the
 * generated file). */
bool buildenv_uses_cmake(const char *backend);
/* buildenv_cudnn_dropped: the first target that some version of cuDNN dropped; NULL if none. The
 * root's cuDNN is not known when planning, so for such a target it is off unless the user turns it
 * on. buildenv_cudnn_reason: why, as a clause. */
const struct gpu_target *buildenv_cudnn_dropped(const struct profile *p);
char *buildenv_cudnn_reason(const struct gpu_target *t, const struct package_row *row,
			    struct arena *a);

/* setting_is_off: whether it has its toggle's value for OFF. */
bool setting_is_off(const struct buildenv_request *q, const struct setting *s);
/* What the reason of a toggle that --without FEATURE switched off begins with. */
#define TOGGLE_WITHOUT "asked for with --without "
/* toggle_set: checks a toggle that the user sets and puts it into `into`, the value in the table's
 * spelling. `item` has name, value and origin. Errors and notes are those of buildenv_resolve. */
int toggle_set(const struct buildenv_request *q, const struct setting *item, struct arena *a,
	       struct settings *into, struct strlist *notes, struct err *e) MUST_CHECK;
/* toggle_settle: turns off every option whose `needs` is off, and those that need it in turn.
 * ERR_CONFIG if the user turned on an option whose `needs` is off. */
int toggle_settle(const struct buildenv_request *q, struct arena *a, struct settings *all,
		  struct err *e) MUST_CHECK;
/* toggle_name: the toggle that --without FEATURE switches off: "cudnn" -> "USE_CUDNN", "sox" ->
 * "BUILD_SOX", "jpeg" -> "TORCHVISION_USE_JPEG". */
const char *toggle_name(const struct buildenv_request *q, const char *feature, struct arena *a)
	__attribute__((returns_nonnull));
