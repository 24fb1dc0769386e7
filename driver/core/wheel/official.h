/* The wheels of a release as the Python index has them, pinned by digest: a file of
 * profiles/official, made by 'ptbuild slim --release NAME --pin'. */
#pragma once
#include "core/wheel/wheel.h"

struct official_wheel {
	const char *file; /* its name, with distribution, version, Python and platform */
	struct wheel_name name;
	uint64_t size;
	const char *sha256;
	const char *cuda; /* "12.8"; "-": the index does not say, or there is none */
};

struct official {
	const char *path; /* of the file */
	struct official_wheel *wheels;
	size_t count;
};

/* official_read: ERR_CONFIG names file and line; a release without one names those there are. */
int official_read(const char *profiles, const char *release, struct arena *a, struct official *ret,
		  struct err *e) MUST_CHECK;
/* official_hint: "ptbuild slim --release 2.9.1 --gpu sm90" for a platform; NULL: the release is
 * not pinned. */
const char *official_hint(const char *profiles, const char *release, const char *gpu, const char *platform,
			  struct arena *a);
/* official_take: of the listed files of "NAME==VERSION" those for Linux with digest and size, of
 * several build tags the highest. `cuda` is told of each. ERR_NETWORK if there is none. */
int official_take(struct official *o, const char *asked, const struct wheel_listed *files, size_t count,
		  const char *const cuda[2], struct arena *a, struct err *e) MUST_CHECK;
/* official_text: the file. */
void official_text(const struct official *o, const char *release, struct buf *out);
/* official_has: any wheel of a distribution. */
bool official_has(const struct official *o, const char *dist, struct arena *a);
/* official_find: the wheel of a distribution for a Python ("3.13"), a platform ("x86_64-linux")
 * and a toolkit (NULL: any). ERR_CONFIG says what there is. */
int official_find(const struct official *o, const char *dist, const char *python, const char *platform,
		  const char *cuda, struct arena *a, const struct official_wheel **ret, struct err *e) MUST_CHECK;
/* official_cuda: "12.8" of the requirements that torch's METADATA has for a platform; "-": none. */
const char *official_cuda(const struct wheel_headers *metadata, const char *platform, struct arena *a);
/* official_machine: 0 for x86_64-linux, 1 for aarch64-linux, -1 for another platform tag. */
int official_machine(const char *tag);
