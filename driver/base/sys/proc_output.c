#include <errno.h>

#include "base/sys/fs.h"
#include "base/sys/proc_internal.h"

#define CHUNK (64 * 1024)
#define MAX_CHUNKS 16              /* a pipe holds 64 KiB, by fcntl up to 1 MiB */
#define MAX_LINE ((size_t)1 << 20) /* a longer line is given out in pieces */
#define DEFAULT_MAX_OUTPUT ((size_t)64 << 20)

static void give_line(struct proc_stream *s, const struct proc_spec *spec)
{
	spec->on_line(buf_cstr(&s->line), s->line.len, spec->user);
	buf_reset(&s->line);
}

static void take_lines(struct proc_stream *s, const struct proc_spec *spec, const char *data, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = 0;
		while (i + n < len && data[i + n] != '\n' && data[i + n] != '\r')
			n++;
		size_t room = MAX_LINE - s->line.len;
		bool cut = n >= room;
		if (cut)
			n = room;
		buf_add(&s->line, data + i, n);
		i += n;
		if (n)
			s->after_cr = false;
		if (cut) {
			give_line(s, spec);
			continue;
		}
		if (i == len)
			break;
		bool cr = data[i++] == '\r';
		/* "\r\n" is one end, and a progress line that begins with '\r' has no empty line before it. */
		if (s->line.len || (!cr && !s->after_cr))
			give_line(s, spec);
		s->after_cr = cr;
	}
}

static void keep(struct buf *out, size_t max, const char *data, size_t len)
{
	size_t limit = max ? max : DEFAULT_MAX_OUTPUT;
	if (out->len >= limit)
		return;
	buf_add(out, data, len < limit - out->len ? len : limit - out->len);
}

int proc_stream_read(struct proc_stream *s, const struct proc_spec *spec, int log_fd, struct err *e)
{
	char chunk[CHUNK];
	for (int i = 0; s->fd >= 0 && i < MAX_CHUNKS; i++) {
		ssize_t n = read(s->fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0) {
			close(s->fd);
			s->fd = -1;
			return 0;
		}
		if (s->out)
			keep(s->out, spec->max_output, chunk, (size_t)n);
		if (spec->on_line)
			take_lines(s, spec, chunk, (size_t)n);
		if (log_fd >= 0 && fs_write_all(log_fd, chunk, (size_t)n, spec->log_path, e) < 0)
			return -1;
	}
	return 0;
}

void proc_stream_end(struct proc_stream *s, const struct proc_spec *spec)
{
	if (s->line.len && spec->on_line)
		give_line(s, spec);
	buf_release(&s->line);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}
