/* There is no bubblewrap on macOS. */
#include "core/root/sandbox_parts.h"

int sandbox_enter(void *entry)
{
	(void)entry;
	errno = ENOSYS;
	return -1;
}

enum sandbox_way sandbox_way(uid_t user, bool setuid)
{
	(void)user;
	(void)setuid;
	return SANDBOX_WAY_USER;
}

bool sandbox_filtered(void)
{
	return false;
}
