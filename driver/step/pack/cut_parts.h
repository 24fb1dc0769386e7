/* What cut_wheel.c (the archive) and cut_texts.c (what it says) share. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "base/sys/digest.h"
#include "step/pack/cut_wheel.h"

#define SLIM_PRIVATE_TEXT                                                                                              \
	"Cut by ptbuild for use on one machine. NVIDIA's licence limits changing its files and passing them on.\n"

struct slim_library {
	const struct zip_entry *entry;
	const char *path; /* inflated */
	bool code, used;  /* has GPU code; that, or a list of targets */
};

struct slimming {
	const struct slim_request *q;
	const struct run *run;
	struct arena *a;
	unsigned threads;
	struct zip_reader *zip;
	struct zip_chunks *chunks; /* what the wheels of several targets share; NULL */
	struct wheel_name name;
	const char *dist_info;
	struct wheel_record_row *rows; /* by path */
	size_t rows_count;
	struct slim_library *libraries; /* the largest first */
	size_t libraries_count;
	bool any, private;
	const char *dir; /* for what is inflated */
	char sha256[DIGEST_HEX_LEN + 1];
	uint64_t epoch;
	struct slim_result *results;
	pthread_mutex_t lock;  /* of what threads share: arena, log, errors, and cutting */
	_Atomic size_t failed; /* the first in order; SIZE_MAX: none */
	struct err err;        /* its */
};

struct making { /* the wheel of a target */
	const struct slim_target *target;
	struct arena *a;
	struct wheel_name name;
	const char *dist_info, *metadata, *wheel, *key;
	struct zip_writer *zip;
	struct buf record;
	struct pack_result result;
	struct fatbin_file_cut *files;
	size_t files_count;
	size_t *runs; /* fat binaries for each GPU */
	bool private; /* something of NVIDIA's is cut in it */
};

/* slim_read: a member of the wheel that is cut, appended to `out`. */
int slim_read(const struct slimming *s, const char *name, struct buf *out, struct err *e) MUST_CHECK;
/* slim_texts: name, METADATA, WHEEL and input key. slim_bill: CycloneDX; the caller frees it.
 * slim_beside: provenance and revision beside the wheel. */
int slim_texts(const struct slimming *s, struct making *m, struct err *e) MUST_CHECK;
char *slim_bill(const struct slimming *s, const struct making *m) __attribute__((returns_nonnull));
int slim_beside(const struct slimming *s, const struct making *m, struct err *e) MUST_CHECK;
