#include "step/pack/earlier.h"

#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"

enum { RELEASE_MAX = 100 };

/* The file that the word comes from may be anybody's. */
static bool is_file_name(const char *release)
{
	size_t len = strlen(release);
	return len > 0 && len <= RELEASE_MAX &&
	       strspn(release, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+~=-") == len;
}

static const char *file_of(const struct earlier_request *q, const char *release, const char *ending, struct arena *a)
{
	return arena_printf(a, "%s/%s/build%s%s.%s", q->out_dir, q->variant, release ? "-" : "", release ? release : "",
			    ending);
}

int earlier_keep(const struct earlier_request *q, const struct run *run, struct arena *a, struct err *e)
{
	static const char *const endings[] = {"html", "json"}; /* the record last: it says that there is something */
	AUTO_JSON json_t *record = NULL;
	const char *path = file_of(q, NULL, "json", a);
	if (!fs_exists(TRUSTED, path) || json_read(TRUSTED, path, &record, ERR_IGNORED) < 0)
		return 0;
	const char *release = json_member(record, "release");
	const char *wheel = json_member(record, "wheel");
	if (!release || strcmp(release, q->release) == 0 || !is_file_name(release))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		const char *from = file_of(q, NULL, endings[i], a);
		if (fs_exists(TRUSTED, from) && fs_rename(from, file_of(q, release, endings[i], a), e) < 0)
			return -1;
		(void)unlink(file_of(q, q->release, endings[i], a)); /* of an earlier turn of this release */
	}
	if (wheel && strcmp(wheel, q->wheel) == 0)
		log_warn(run->log, "'%s' of %s takes the place of that of %s: give each release an --out of its own",
			 wheel, q->release, release);
	log_info(run->log, "%s: the record of %s is kept as '%s'", q->variant, release,
		 path_base(file_of(q, release, "json", a)));
	return 0;
}
