/* The entries of a lock that are not Debian packages: wheels as an index lists them, and archives
 * of NVIDIA's redistributable components as their manifest has them. */
#pragma once
#include "core/wheel/wheel.h"
#include "core/world/world.h"

/* lock_wheel: of the wheels listed for a distribution the one of "name==version" for any Python 3
 * on the platform; of several the one that runs with the oldest glibc. ERR_NETWORK where there is
 * none, two with the same glibc, or one without digest and size. */
int lock_wheel(const char *asked, const char *platform, const struct wheel_listed *files, size_t count, struct arena *a,
	       struct world_entry *ret, struct err *e) MUST_CHECK;
/* lock_wheel_for: the same for one Python and ABI, as tags have them: "cp313" and "cp313". */
int lock_wheel_for(const char *asked, const char *python, const char *abi, const char *platform,
		   const struct wheel_listed *files, size_t count, struct arena *a, struct world_entry *ret,
		   struct err *e) MUST_CHECK;
/* lock_redist: the archives of components in a manifest (redistrib_12.8.1.json) that came from
 * `url`, beside which they lie; ret has one entry for each. ERR_NETWORK for a manifest that cannot
 * be read, lacks a component or has none of it for the platform. */
int lock_redist(const char *text, size_t len, const char *url, const char *const *components, size_t count,
		const char *platform, struct arena *a, struct world_entry **ret, struct err *e) MUST_CHECK;
/* lock_replace: the entries of one kind by others. */
void lock_replace(struct world_lock *l, enum world_kind kind, const struct world_entry *entries, size_t count,
		  struct arena *a);
