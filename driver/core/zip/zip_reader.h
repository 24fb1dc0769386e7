/* What zip_read.c (the directory) and zip_extract.c (the contents) share. */
#pragma once
#include "core/zip/zip.h"

struct zip_reader {
	int fd;
	char *path;
	uint64_t size;
	struct zip_entry *entries; /* in the order of the central directory */
	size_t count;
	const struct zip_entry **by_name; /* sorted */
	uint64_t *data;                   /* where each entry's packed bytes start */
	bool *plain;                      /* flags and version are those of zip_write.c */
};

/* zip_read_at: exactly `len` bytes of the archive from `offset` on. */
int zip_read_at(const struct zip_reader *z, uint64_t offset, void *to, size_t len, struct err *e) MUST_CHECK;
