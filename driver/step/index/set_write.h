/* What lies beside the wheels of a set: constraints, one bill of materials, a stage for Docker. */
#pragma once
#include "core/tables/tables.h"

#define SET_CONSTRAINTS "constraints.txt"
#define SET_SBOM "sbom.cdx.json"
#define SET_DOCKERFILE "Dockerfile"

struct set_wheel {
	const char *path; /* in the directory */
	const char *name, *version;
	const char *sha256;
};

struct set_request {
	const char *dir;              /* holds the wheels and their index */
	const char *name;             /* of the set */
	const char *python, *machine; /* "3.13", "x86_64" */
	const struct set_wheel *wheels;
	size_t count;
	const struct strlist *install; /* the words that install it from /set */
	const struct tables *tables;   /* whose advisories the bill names */
};

/* set_write: SET_CONSTRAINTS for pip and uv; SET_SBOM, the bills of the wheels as one
 * (CycloneDX 1.6), in which what several have is once, with the published weaknesses of what the
 * tables know; SET_DOCKERFILE. The same wheels and tables give the same bytes. ERR_INTEGRITY for a
 * wheel with a bill that is none. */
int set_write(const struct set_request *q, struct arena *a, struct err *e) MUST_CHECK;
