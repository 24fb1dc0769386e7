#include "step/fetch/fetch_partial.h"

#include "base/sys/fs.h"

enum { CHUNK = 1 << 20 };

/* Hashes the first p->have bytes and leaves the descriptor behind them. */
static int hash_existing(struct partial *p, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *chunk = arena_alloc(&a, CHUNK);
	digest_reset(p->digest);
	for (uint64_t done = 0; done < p->have;) {
		ssize_t n = fs_read_at(p->fd, chunk, p->have - done < CHUNK ? (size_t)(p->have - done) : CHUNK, done);
		if (n < 0)
			return err_errno(e, ERR_SYSTEM, "cannot read '%s'", p->path);
		if (n == 0)
			return err_set(e, ERR_SYSTEM, "'%s' became shorter while it was read", p->path);
		digest_update(p->digest, chunk, (size_t)n);
		done += (uint64_t)n;
		if (run_check(run, e) < 0)
			return -1;
	}
	return lseek(p->fd, (off_t)p->have, SEEK_SET) < 0 ? err_errno(e, ERR_SYSTEM, "cannot seek in '%s'", p->path)
							  : 0;
}

static int open_file(struct partial *p, struct err *e)
{
	struct stat st;
	p->fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (p->fd < 0 || fstat(p->fd, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot open '%s'", p->path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_SYSTEM, "not a regular file: '%s'", p->path);
	p->have = (uint64_t)st.st_size;
	return p->have > p->max ? partial_restart(p, e) : 0;
}

int partial_open(struct partial *p, const char *path, const char *sha256, uint64_t max, const struct run *run,
		 bool *ret_complete, struct err *e)
{
	AUTO_PARTIAL struct partial new = {.path = path, .fd = -1, .digest = digest_new(), .max = max};
	char got[DIGEST_HEX_LEN + 1];
	bool complete = false;
	if (open_file(&new, e) < 0)
		return -1;
	if (new.have > 0 && !sha256 && partial_restart(&new, e) < 0) /* nothing to check a longer one by */
		return -1;
	if (new.have > 0) {
		if (hash_existing(&new, run, e) < 0)
			return -1;
		complete = partial_matches(&new, sha256, got);
		if (!complete && hash_existing(&new, run, e) < 0)
			return -1;
	}
	*ret_complete = complete;
	*p = new;
	new = PARTIAL_NONE;
	return 0;
}

int partial_add(struct partial *p, const void *data, size_t len, struct err *e)
{
	if (fs_write_all(p->fd, data, len, p->path, e) < 0)
		return -1;
	digest_update(p->digest, data, len);
	p->have += len;
	return 0;
}

int partial_restart(struct partial *p, struct err *e)
{
	if (ftruncate(p->fd, 0) < 0 || lseek(p->fd, 0, SEEK_SET) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot truncate '%s'", p->path);
	digest_reset(p->digest);
	p->have = 0;
	return 0;
}

bool partial_matches(struct partial *p, const char *sha256, char ret_got[DIGEST_HEX_LEN + 1])
{
	uint8_t raw[DIGEST_LEN];
	digest_final(p->digest, raw);
	digest_hex(raw, ret_got);
	return strcmp(ret_got, sha256) == 0;
}

int partial_delete(struct partial *p, struct err *e)
{
	if (unlink(p->path) < 0 && errno != ENOENT)
		return err_errno(e, ERR_SYSTEM, "cannot delete '%s'", p->path);
	return 0;
}

void partial_close(struct partial *p)
{
	if (p->fd >= 0)
		close(p->fd);
	digest_free(p->digest);
	*p = PARTIAL_NONE;
}
