/* Why a sandbox could not be created, and what to change: bubblewrap's message names the step. */
#include "core/root/sandbox_parts.h"

/* Of /proc: the kernel mounts one only where the container's own is complete and writable. */
static int hint_proc(struct err *e)
{
	return err_hint(e,
			"give the container a complete /proc (docker: systempaths=unconfined, "
			"podman: unmask=ALL, Kubernetes: procMount: Unmasked; docs/sandbox.md: In "
			"a container), or build with --without-protection processes");
}

int sandbox_hint_container(struct err *e)
{
	return err_hint(e, "start the container with the seccomp profile "
			   "profiles/container/seccomp.json of ptbuild (docs/sandbox.md: In a "
			   "container), or build with --sandbox none in a container that is "
			   "thrown away");
}

static int hint_user(struct err *e)
{
	return err_hint(e, "start the container as another user, for example with --user 1000 "
			   "(docs/sandbox.md: In a container)");
}

/* Where only root may create namespaces, bubblewrap has to run as root for the build's user, as if
 * it were setuid. Debian 13 builds it without that. */
static int hint_setuid(struct err *e)
{
	return err_hint(e, "start ptbuild as another user, allow unprivileged user namespaces, or "
			   "build with --without-protection user: this bubblewrap cannot run for "
			   "another user");
}

int sandbox_hint_machine(struct err *e)
{
	if (sandbox_filtered())
		return sandbox_hint_container(e);
	return err_hint(e, "allow unprivileged user namespaces (sysctl user.max_user_namespaces, "
			   "kernel.unprivileged_userns_clone, "
			   "kernel.apparmor_restrict_unprivileged_userns), use bubblewrap 0.8.0 or "
			   "newer, or build with --sandbox none");
}

static const struct {
	const char *words;
	int (*hint)(struct err *e);
} causes[] = {
	{"max_user_namespaces: ", hint_proc},
	{"Can't mount proc", hint_proc},
	{"Can't set hostname", sandbox_hint_container},
	{"setting up uid map", hint_user},
	{"setuid use of bubblewrap is not supported", hint_setuid},
};

int sandbox_not_created(const char *words, struct err *e)
{
	err_set(e, ERR_POLICY, "cannot create the sandbox: bubblewrap says: %s",
		*words ? words : "nothing");
	for (size_t i = 0; i < ARRAY_LEN(causes); i++)
		if (strstr(words, causes[i].words))
			return causes[i].hint(e);
	return sandbox_hint_machine(e);
}
