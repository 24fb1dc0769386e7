/* macOS has neither bubblewrap nor seccomp. */
#include "core/root/sandbox_parts.h"

int seccomp_filter(struct err *e)
{
	return err_set(e, ERR_POLICY, "this system has no filter of system calls");
}

bool seccomp_works(void)
{
	return false;
}
