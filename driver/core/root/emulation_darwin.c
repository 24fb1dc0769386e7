/* macOS runs programs of no other system. */
#include "core/root/sandbox_parts.h"

int sandbox_open_space(const char *uids, const char *gids)
{
	(void)uids;
	(void)gids;
	errno = ENOSYS;
	return -1;
}

int sandbox_show_layer(struct sandbox_entry *n)
{
	n->failed = "no other platform is emulated on this system";
	n->error = ENOSYS;
	return -1;
}

char *sandbox_emulator_row(const char *platform, struct arena *a)
{
	return emulation_row(platform, "", a);
}

int sandbox_open_emulator(struct sandbox_entry *n)
{
	return sandbox_show_layer(n);
}

int sandbox_emulate(struct sandbox_entry *n)
{
	return sandbox_show_layer(n);
}
