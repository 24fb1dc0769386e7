/* A world as an image for containers: an OCI layout in a tar file, which docker load, podman load,
 * buildah and skopeo read. */
#pragma once
#include "base/base.h"
#include "base/run.h"

/* Images run as this user. It owns /ptbuild there, the directory of builds without a sandbox. */
#define WORLD_IMAGE_USER 1000

struct world_image_request {
	const char *name;     /* of the world */
	const char *platform; /* x86_64-linux or aarch64-linux */
	const char *key;
	const char *root; /* of the world */
	/* of the world's base, which is the first layer of all images over it; NULL: the world is
	 * a base */
	const char *base;
	const char *to;        /* the file, which is replaced when the image is complete */
	const struct run *run; /* where to log, and how the user stops it */
};

struct world_image {
	const char *name; /* "ptbuild-world/debian13:0123456789ab" */
	uint64_t bytes;   /* of the file */
	/* the digests of the layers: the base's first, then that of the other parts */
	struct strlist layers;
};

/* world_image_write: the same roots give the same bytes. ERR_SYSTEM for what cannot be read or
 * written. */
int world_image_write(const struct world_image_request *q, struct arena *a, struct world_image *ret,
		      struct err *e) MUST_CHECK;
