/* Decompression in a thread of its own, so that files are written while the next bytes are
 * unpacked. For unpack.c only. */
#pragma once
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct unpack_filter;

/* unpack_filter_start: begins to decompress what `fd` (owned by the caller, not to be touched
 * meanwhile) holds; bytes that are not compressed come as they are. */
int unpack_filter_start(int fd, struct unpack_filter **ret, struct err *e) __attribute__((warn_unused_result));
/* unpack_filter_read: the next bytes in *ret_data, valid until the next call; 0 at the end; -1 on
 * damage, the text in unpack_filter_error. */
ssize_t unpack_filter_read(struct unpack_filter *f, const void **ret_data);
const char *unpack_filter_error(const struct unpack_filter *f);
/* unpack_filter_stop: ends the thread, wherever it is, and frees; NULL is fine. */
void unpack_filter_stop(struct unpack_filter *f);
