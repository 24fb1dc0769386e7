#include <ctype.h>
#include <string.h>

#include "base/fs.h"
#include "step/build_parts.h"

/* Less than this left on the disk of the build tree counts as full. */
#define FULL_BYTES (UINT64_C(256) << 10)

/* The first line of the log, from `offset` on, that says what went wrong. */
static void first_error(const char *log_path, uint64_t offset, struct buf *out)
{
	static const char *const marks[] = {
		" error: ", "fatal error:", "CMake Error", "Error: ", "error: ", "undefined reference", "No space left"};
	AUTO_BUF struct buf log = {0};
	struct err ignored = {0};
	if (fs_read(log_path, UINT64_C(1) << 30, &log, &ignored) != 0 || offset >= log.len)
		return;
	const char *text = log.data + offset, *best = NULL;
	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		const char *at = strstr(text, marks[i]);
		/* pip wraps the reason, which stands above, in this one. */
		while (at && strncmp(at, "error: subprocess-exited", 24) == 0)
			at = strstr(at + 1, marks[i]);
		if (at && (!best || at < best))
			best = at;
	}
	const char *start = best;
	if (!best) { /* no line that looks like an error: the last one that says anything */
		size_t end = log.len;
		while (end > offset && isspace((unsigned char)log.data[end - 1]))
			end--;
		start = log.data + end;
	}
	while (start > text && start[-1] != '\n')
		start--;
	size_t n = strcspn(start, "\r\n");
	buf_add(out, start, n < 500 ? n : 500);
	const char *more = best ? start + n + strspn(start + n, "\r\n") : NULL;
	if (more && strncmp(start, "CMake Error", 11) == 0 && *more) /* CMake puts the reason on the next line */
		buf_printf(out, " %.*s", (int)strcspn(more, "\r\n"), more + strspn(more, " "));
}

int build_failure(const struct build_command *c, uint64_t offset, int status, struct err *e)
{
	AUTO_BUF struct buf why = {0};
	const char *package = c->q->plan->package;
	uint64_t free_bytes;
	/* A full disk is told as one, whatever words the build had for it: often it could not even write them down. */
	struct err ignored = {0};
	if (fs_free_bytes(c->log, &free_bytes, &ignored) == 0 && free_bytes < FULL_BYTES) {
		err_set(e, ERR_SYSTEM, "%s: %s failed with status %d: no space is left where '%s' lies", package, c->step, status, c->log);
		return err_hint(e, "make room, or name another place with --cache; the tree is kept, the same command goes on from there");
	}
	first_error(c->log, offset, &why);
	err_set(e, ERR_BUILD, "%s: %s failed with status %d: %s", package, c->step, status, buf_cstr(&why));
	return err_hint(e, "the whole log is '%s'; the tree is kept, the same command goes on from there", c->log);
}
