#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "cache/store_internal.h"

/* What cannot be used now, an empty mount or one that is not there yet, is told and left out. */
static int leave_out(struct store *s, const char *dir, const char *why)
{
	struct log log = s->log;
	log_warn(&log, "the lower store '%s' is left out: %s", dir, why);
	return 0;
}

static int add(struct store *s, char *real)
{
	char **items = realloc(s->lowers, (s->lowers_count + 1) * sizeof(*items));
	if (!items)
		abort();
	s->lowers = items;
	s->lowers[s->lowers_count++] = real;
	return 0;
}

int store_add_lower(struct store *s, const char *dir, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	AUTO_FREE char *real = realpath(dir, NULL);
	if (!real)
		return leave_out(s, dir, strerror(errno));
	if (strcmp(real, s->dir) == 0) {
		err_set(e, ERR_USAGE, "'%s' cannot be its own lower store", dir);
		return err_hint(e, "--lower-store names another directory than --cache");
	}
	if (fs_list(real, &a, &names, e) < 0) {
		leave_out(s, dir, e->msg);
		err_clear(e);
		return 0;
	}
	if (names.count == 0)
		return leave_out(s, dir, "it is empty");
	const char *format = path_join(&a, real, "format");
	if (!fs_exists(format)) {
		err_set(e, ERR_CONFIG, "'%s' is no store: it has no format file", dir);
		return err_hint(e, "--lower-store names the directory that was another ptbuild's --cache");
	}
	if (store_check_format(format, real, e) < 0)
		return -1;
	for (size_t i = 0; i < s->lowers_count; i++)
		if (strcmp(s->lowers[i], real) == 0)
			return 0;
	int rc = add(s, real);
	real = NULL;
	return rc;
}

size_t store_lowers(const struct store *s, const char *const **ret)
{
	*ret = (const char *const *)s->lowers;
	return s->lowers_count;
}
