/* macOS has neither bubblewrap nor seccomp. */
#include "core/root/seccomp.h"

const struct seccomp_call *seccomp_calls(size_t *ret_count)
{
	*ret_count = 0;
	return NULL;
}

int seccomp_filter(struct err *e)
{
	return err_set(e, ERR_POLICY, "this system has no filter of system calls");
}

bool seccomp_works(void)
{
	return false;
}
