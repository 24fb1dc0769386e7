/* Decompression in its own thread, in parallel to writing. For unpack.c only. */
#pragma once
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct archive;
struct unpack_filter;

/* unpack_filter_start: begins to decompress `fd`, which the caller owns but must not use meanwhile;
 * uncompressed bytes pass unchanged. */
int unpack_filter_start(int fd, struct unpack_filter **ret, struct err *e) __attribute__((warn_unused_result));
/* unpack_filter_read: the next bytes in *ret_data, valid until the next call; 0 at the end; -1 when
 * damaged, see unpack_filter_error. */
ssize_t unpack_filter_read(struct unpack_filter *f, const void **ret_data);
/* unpack_filter_error: hands the number and text of what failed on to another reader. */
void unpack_filter_error(const struct unpack_filter *f, struct archive *to);
/* unpack_archive_error: -1 with what libarchive says of `a`, or `otherwise` where it says nothing:
 * ERR_SYSTEM when its file could not be read, else ERR_INTEGRITY. */
int unpack_archive_error(struct archive *a, const char *otherwise, struct err *e);
/* unpack_filter_stop: ends the thread and frees; NULL is fine. */
void unpack_filter_stop(struct unpack_filter *f);
