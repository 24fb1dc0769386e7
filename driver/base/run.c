#include "base/run.h"

#include <poll.h>

bool run_cancelled(const struct run *r)
{
	if (r->cancel_fd < 0)
		return false;
	struct pollfd p = {.fd = r->cancel_fd, .events = POLLIN};
	/* A pipe whose writer has gone (POLLHUP) means that main is being torn down: stop as well. */
	return poll(&p, 1, 0) > 0 && (p.revents & (POLLIN | POLLHUP));
}

int run_check(const struct run *r, struct err *e)
{
	return run_cancelled(r) ? err_set(e, ERR_INTERRUPTED, "interrupted") : 0;
}
