/* macOS has neither bubblewrap nor seccomp. */
#include "core/root/sandbox_calls.h"

const struct sandbox_call *sandbox_calls(size_t *ret_count)
{
	*ret_count = 0;
	return NULL;
}

int sandbox_calls_filter(struct err *e)
{
	return err_set(e, ERR_POLICY, "this system has no filter of system calls");
}

bool sandbox_calls_work(void)
{
	return false;
}
