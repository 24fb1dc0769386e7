/* The GPUs of this machine and code that was slimmed: what runs where. */
#pragma once
#include "cmd/select.h"
#include "core/wheel/slim_marker.h"

/* cmd_env_doctor: shows what the environment at `dir` was slimmed for. ERR_POLICY if a GPU of this
 * machine runs none of it. */
int cmd_env_doctor(struct cmd_context *c, const char *dir, struct err *e) MUST_CHECK;
/* cmd_env_warn: a warning for each GPU of this machine that does not run code for these. */
int cmd_env_warn(struct cmd_context *c, const struct slim_marker *wanted, struct err *e) MUST_CHECK;
/* slim_native: finds what '--gpu native' means here ("sm80+sm90"), and the machine whose driver has
 * to run it. ERR_POLICY if there is no GPU or the driver does not work; the message says which. */
int slim_native(struct cmd_context *c, const char **ret, const struct hardware **ret_machine,
		struct err *e) MUST_CHECK;
struct fatbin_file_cut;
struct fatbin_wanted;
/* slim_runs_on: "sm89", for the targets whose code a library lists under a lower number; NULL: it
 * lists all. */
const char *slim_runs_on(const struct fatbin_file_cut *f, const struct fatbin_wanted *w,
			 struct arena *a);

struct official_wheel; /* core/wheel/wheel.h */
struct official;
/* Pinned wheels that are asked for. */
struct cmd_official {
	const char *release, *platform;
	const char *cuda;               /* NULL: any */
	struct strlist dists;           /* "torch" */
	bool all;                       /* and those of the other packages that there are */
	struct strlist gpus;            /* "90": the targets that are to be in them */
	const struct hardware *machine; /* whose driver has to run them; NULL: any */
};
/* cmd_official_python: the Python by the rule of cmd_python, of those that have all wheels.
 * cmd_official_newest: the newest release that has them, for `python` (NULL: any), with code for
 * the targets; ERR_POLICY. cmd_official_check: whether torch of q->release has code for them;
 * ERR_POLICY, with a release that has it as the hint. */
int cmd_official_python(struct cmd_context *c, const struct official *all,
			const struct cmd_official *q, const char **ret, struct err *e) MUST_CHECK;
int cmd_official_check(struct cmd_context *c, const struct cmd_official *q, const char *python,
		       struct err *e) MUST_CHECK;
int cmd_official_newest(struct cmd_context *c, const struct cmd_official *q, const char *python,
			const char **ret, struct err *e) MUST_CHECK;
/* cmd_official_fetch: pinned wheels, into the store. */
int cmd_official_fetch(struct cmd_context *c, const struct official_wheel *const *wheels,
		       size_t count, struct strlist *ret, struct err *e) MUST_CHECK;
/* cmd_gpu_profile: GPUs of --gpu ("sm80+sm90") as a profile without an instruction set; ERR_CONFIG
 * for what is no GPU, ERR_USAGE for what cmd_slim does not keep alone ("sm90a"). */
int cmd_gpu_profile(struct cmd_context *c, const char *word, struct profile *ret,
		    struct err *e) MUST_CHECK;
/* cmd_slim: a wheel cut to the GPUs of a profile, in `dir`; *ret NULL: it has no GPU code. */
int cmd_slim(struct cmd_context *c, const char *wheel, const struct profile *p, const char *dir,
	     const char **ret, struct err *e) MUST_CHECK;

struct fetcher; /* step/fetch/fetch.h */
struct wheel_page;
/* What an index lists of a distribution, asked for as NAME==VERSION. */
struct cmd_listed {
	const char *asked;
	const char *known; /* the version of CUDA, where the index has no metadata; NULL */
	const struct wheel_page *page;
};

/* cmd_official_cuda: the toolkit of torch's wheel for x86_64 and for aarch64, by the metadata that
 * the index has with it, else l->known; "-": no wheel, or one without CUDA. NULL, with a warning:
 * not known, while that of the other is. ERR_NETWORK where none is. */
int cmd_official_cuda(const struct fetcher *by, const struct cmd_listed *l, const char *ret[2],
		      struct err *e) MUST_CHECK;
