#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys/digest.h"
#include "cache/store_internal.h"

#define KIND_MAX 32

int store_check_name(const char *kind, const char *key, struct err *e)
{
	size_t n = strspn(kind, "abcdefghijklmnopqrstuvwxyz");
	if (n == 0 || n > KIND_MAX || kind[n])
		return err_set(e, ERR_CONFIG, "not a kind of object: '%.64s' (one to %d lower-case letters)", kind,
			       KIND_MAX);
	if (!digest_valid_hex(key))
		return err_set(e, ERR_CONFIG, "not a key of a %s: '%.80s' (64 lower-case hexadecimal digits)", kind,
			       key);
	return 0;
}

char *store_object_path(const char *store_dir, const char *kind, const char *key, struct arena *a)
{
	if (strcmp(kind, STORE_WORLD) == 0)
		return arena_printf(a, "%s/worlds/%s", store_dir, key);
	return arena_printf(a, "%s/objects/%s/%s", store_dir, kind, key);
}

char *store_stamp_path(const struct store *s, const char *kind, const char *key, struct arena *a)
{
	return arena_printf(a, "%s/stamps/%s-%s", s->dir, kind, key);
}

char *store_lock_path(const struct store *s, const char *kind, const char *key, struct arena *a)
{
	return arena_printf(a, "%s/locks/%s-%s", s->dir, kind, key);
}

void store_touch(const char *path)
{
	if (utimensat(AT_FDCWD, path, NULL, 0) < 0)
		return;
}
