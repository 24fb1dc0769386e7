/* The file of 'ptbuild set': what has to fit together, a row for each part. */
#pragma once
#include "base/base.h"

enum set_kind { SET_PROFILE, SET_PYTHON, SET_CUDA, SET_TORCH, SET_COMPANION, SET_EXTENSION };

/* What the torch of a set is. */
enum set_torch { SET_OFFICIAL, SET_SLIM, SET_ROOT, SET_WHEEL, SET_RELEASE };

struct set_row {
	enum set_kind kind;
	const char *text;  /* as it stands there */
	const char *value; /* a path that is there, seen from the file's directory; else the text */
	const char *place; /* "set.yaml:3:8" */
};

struct set_file {
	const char *name; /* of the file, without .yaml */
	struct set_row *rows;
	size_t count;
	enum set_torch torch;
	const char *version; /* of SET_OFFICIAL and SET_SLIM; NULL: the release's */
};

/* set_file_load: profile, python, cuda and torch, lists of companions and extensions. ERR_CONFIG
 * with file and line as yaml_load, and for a set of torch alone. */
int set_file_load(const char *path, struct arena *a, struct set_file *ret, struct err *e) MUST_CHECK;
/* set_row_text: "set.yaml:3:8 (torch: official)". */
char *set_row_text(const struct set_row *r, struct arena *a) __attribute__((returns_nonnull));
