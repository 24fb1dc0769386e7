#include "step/source/unpack_filter.h"

#include <archive.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/thread.h"

#define SLOTS 4
#define SLOT_SIZE (1U << 20)
#define READ_SIZE (1U << 18)

struct unpack_filter {
	struct archive *archive;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *memory;
	size_t lens[SLOTS];
	unsigned first; /* the oldest filled slot */
	unsigned count; /* filled slots; the oldest one is being read while `held` */
	bool held;
	bool ended; /* the thread adds no more */
	bool stop;  /* nobody wants more */
	bool failed;
	int number; /* of libarchive, with `error` */
	char error[256];
};

/* EILSEQ and EINVAL are libarchive's own numbers for bytes that it cannot make sense of, -1 for all else. */
int unpack_archive_error(struct archive *a, const char *otherwise, struct err *e)
{
	int number = archive_errno(a);
	const char *text = archive_error_string(a);
	if (number > 0 && number != EILSEQ && number != EINVAL)
		return err_set(e, ERR_SYSTEM, "cannot be read: %s", strerror(number));
	return err_set(e, ERR_INTEGRITY, "%s", text ? text : otherwise);
}

/* Waits for room; NULL when stopped. */
static char *free_slot(struct unpack_filter *f, unsigned *ret)
{
	pthread_mutex_lock(&f->lock);
	while (f->count == SLOTS && !f->stop)
		pthread_cond_wait(&f->changed, &f->lock);
	bool stop = f->stop;
	*ret = (f->first + f->count) % SLOTS;
	pthread_mutex_unlock(&f->lock);
	return stop ? NULL : f->memory + (size_t)*ret * SLOT_SIZE;
}

static void fill_done(struct unpack_filter *f, unsigned slot, la_ssize_t got)
{
	pthread_mutex_lock(&f->lock);
	if (got > 0) {
		f->lens[slot] = (size_t)got;
		f->count++;
	} else {
		f->ended = true;
		f->failed = got < 0;
		if (got < 0) {
			f->number = archive_errno(f->archive);
			snprintf(f->error, sizeof(f->error), "%s", archive_error_string(f->archive));
		}
	}
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

static void *decompress(void *arg)
{
	struct unpack_filter *f = arg;
	la_ssize_t got = 1;
	unsigned slot;
	for (char *to; got > 0 && (to = free_slot(f, &slot));) {
		got = archive_read_data(f->archive, to, SLOT_SIZE);
		fill_done(f, slot, got);
	}
	return NULL;
}

static int open_raw(struct archive *a, int fd)
{
	struct archive_entry *entry;
	int r = archive_read_support_format_raw(a);
	/* "all" would start programs for formats that the library cannot read itself. */
	int (*const filters[])(struct archive *) = {archive_read_support_filter_gzip, archive_read_support_filter_xz,
						    archive_read_support_filter_bzip2,
						    archive_read_support_filter_zstd};
	for (size_t i = 0; r == ARCHIVE_OK && i < ARRAY_LEN(filters); i++)
		r = filters[i](a);
	if (r == ARCHIVE_OK)
		r = archive_read_open_fd(a, fd, READ_SIZE);
	return r == ARCHIVE_OK ? archive_read_next_header(a, &entry) : r;
}

int unpack_filter_start(int fd, struct unpack_filter **ret, struct err *e)
{
	struct unpack_filter *f = calloc(1, sizeof(*f));
	if (!f)
		abort();
	f->archive = archive_read_new();
	f->memory = malloc((size_t)SLOTS * SLOT_SIZE);
	if (!f->archive || !f->memory)
		abort();
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	int rc = 0;
	if (open_raw(f->archive, fd) != ARCHIVE_OK)
		rc = unpack_archive_error(f->archive, "holds nothing", e);
	else if (thread_start(&f->thread, decompress, f) != 0)
		rc = err_set(e, ERR_SYSTEM, "cannot start a thread");
	if (rc < 0) {
		archive_read_free(f->archive);
		free(f->memory);
		free(f);
		return -1;
	}
	*ret = f;
	return 0;
}

ssize_t unpack_filter_read(struct unpack_filter *f, const void **ret_data)
{
	ssize_t got = 0;
	pthread_mutex_lock(&f->lock);
	if (f->held) {
		f->first = (f->first + 1) % SLOTS;
		f->count--;
		f->held = false;
		pthread_cond_signal(&f->changed);
	}
	while (f->count == 0 && !f->ended)
		pthread_cond_wait(&f->changed, &f->lock);
	if (f->count > 0) {
		*ret_data = f->memory + (size_t)f->first * SLOT_SIZE;
		got = (ssize_t)f->lens[f->first];
		f->held = true;
	} else if (f->failed) {
		got = -1;
	}
	pthread_mutex_unlock(&f->lock);
	return got;
}

void unpack_filter_error(const struct unpack_filter *f, struct archive *to)
{
	archive_set_error(to, f->number, "%s", f->error);
}

void unpack_filter_stop(struct unpack_filter *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	archive_read_free(f->archive);
	free(f->memory);
	free(f);
}
