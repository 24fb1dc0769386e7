/* Applications: what vLLM, SGLang and the like are installed with. A row of profiles/bundles.yaml
 * names one version and the wheels of it that must fit together, profiles/bundles/NAME-VERSION
 * their digests. */
#pragma once
#include "core/tables/tables.h"
#include "core/wheel/wheel.h"

struct application_part {
	const char *wheel;     /* "torch==2.14.0" */
	const char *python;    /* its Requires-Python; "": any */
	const char **requires; /* the Requires-Dist lines of its METADATA that name another part */
	const char **gpus; /* targets of its GPU code: "80+ptx", "90a"; none: no code to remove */
	const char **platforms; /* where the application requires it; none: everywhere */
	const char *why; /* why this version, where nothing pins it; why it stays whole; "" */
	unsigned requires_count, gpus_count, platforms_count;
	bool optional; /* the application runs without its GPU code */
	unsigned line;
	/* of `wheel`, filled by applications_load: the name as METADATA has it and its version */
	const char *name, *version;
};

struct application_row {
	const char *name, *version;
	const char *source; /* where the facts of the row come from */
	const char *note;
	struct application_part *parts; /* the application itself first */
	unsigned parts_count;
	unsigned line;
};

struct application_file {
	const char *path;
	struct application_row *applications;
	unsigned applications_count;
};

/* applications_load: profiles/bundles.yaml; without the file there are no rows. ERR_CONFIG with
 * file:line for what does not follow the schema, a requirement that no part meets or that is
 * malformed, two parts of one name, and a first part that is not the application. */
int applications_load(const char *profiles, struct arena *a, struct application_file *ret,
		      struct err *e) MUST_CHECK;
/* applications_find: of "vllm==0.33.0", or the newest of "vllm". ERR_USAGE with the near names. */
int applications_find(const struct application_file *f, const char *asked, struct arena *a,
		      const struct application_row **ret, struct err *e) MUST_CHECK;
/* application_pins: its wheels with their digests. ERR_CONFIG with file:line as official_read, and
 * where a part has none. */
int application_pins(const char *profiles, const struct application_row *row, struct arena *a,
		     struct official *ret, struct err *e) MUST_CHECK;

struct application_query {
	const struct tables *tables;
	const struct application_row *row;
	const struct official *pins;
	const char *python, *platform; /* "3.13", "x86_64-linux" */
	const char *cuda;              /* NULL: any */
	struct strlist gpus; /* "9.0": targets for which each part with GPU code has some */
	const bool *off;     /* by part: as if the row did not have it; NULL: none */
};

/* application_choose: the wheel of each part, by its index; NULL: this platform does not need it.
 * ERR_POLICY for the first of these that fails: a Python, a wheel, code for each GPU, what the
 * parts require of each other. application_pythons: those for which it succeeds, the newest last.
 */
int application_choose(const struct application_query *q, struct arena *a,
		       const struct official_wheel ***ret, struct err *e) MUST_CHECK;
/* application_cuts: whether the chosen wheel of a part is slimmed: it has GPU code, and some for
 * each GPU. */
bool application_cuts(const struct application_query *q, const struct application_part *p,
		      const struct official_wheel *w);
void application_pythons(const struct application_query *q, struct arena *a, struct strlist *ret);
