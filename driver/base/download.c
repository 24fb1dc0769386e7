#include "base/download.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/run.h"

#define PLAIN_S 10.0
#define MB 1e6

enum { BAR = 24, MANY_ORIGINS = 4 };

static void put_size(struct buf *out, const struct download *d)
{
	if (!d->total)
		buf_addstr(out, "size unknown");
	else
		buf_printf(out, "%s%.1f MB", d->unknown ? "at least " : "", (double)d->total / MB);
	if (d->have)
		buf_printf(out, ", resuming after %.1f MB", (double)d->have / MB);
}

void download_begin(struct log *l, const struct download *d)
{
	AUTO_BUF struct buf text = {0};

	if (d->name)
		buf_printf(&text, "downloading '%s' (", d->name);
	else
		buf_printf(&text, "downloading %zu files (", d->files);
	put_size(&text, d);
	buf_addstr(&text, ")");
	for (size_t i = 0; i < d->of->count && i < MANY_ORIGINS; i++)
		buf_printf(&text, "%s%s", i ? " or " : " from ", d->of->items[i]);
	log_info(l, "%s, kept in '%s'", buf_cstr(&text), d->kept);
}

static void put_bar(struct buf *out, double share)
{
	const size_t full = (size_t)(share * BAR);

	buf_addc(out, '[');
	for (size_t i = 0; i < BAR; i++)
		buf_addc(out, i < full ? '#' : '-');
	buf_addstr(out, "] ");
}

static void put_amount(struct buf *out, const struct download_state *s)
{
	const double received = (double)s->received, total = (double)s->total;
	const double rate = s->seconds > 0 ? received / s->seconds : 0;

	if (s->total)
		buf_printf(out, "%.1f of %.1f MB (%u %%)", received / MB, total / MB,
			   (unsigned)(100 * received / total));
	else
		buf_printf(out, "%.1f MB", received / MB);
	if (s->files > 1)
		buf_printf(out, ", %zu of %zu files", s->done, s->files);
	if (s->failed)
		buf_printf(out, ", %zu failed", s->failed);
	buf_printf(out, ", %.1f MB/s", rate / MB);
	if (s->total > s->received && rate > 0)
		buf_printf(out, ", %.0f s left", (total - received) / rate);
}

void download_show(struct log *l, const struct download_state *s)
{
	AUTO_BUF struct buf text = {0};
	struct download_state now = *s;

	if (!l->tty && s->seconds < PLAIN_S)
		return;
	if (now.received > now.total) /* of some files the size is not known */
		now.total = 0;
	else if (!l->tty && now.received == now.total)
		return; /* download_end comes next */
	if (l->tty && now.total)
		put_bar(&text, (double)now.received / (double)now.total);
	else
		buf_addstr(&text, "downloading: ");
	put_amount(&text, &now);
	log_every(l, PLAIN_S, "%s", buf_cstr(&text));
}

void download_end(struct log *l, const struct download_state *s)
{
	log_status_end(l);
	log_info(l, "downloaded %.1f MB in %.1f s", (double)s->received / MB, s->seconds);
}
