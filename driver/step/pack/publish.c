#include "step/pack/pack.h"

#include "base/sys/json.h"

/* Reads the copy again: the disk may have changed a byte since the store last looked. */
static int check_copy(const char *part, const char *from, const char *sha256, struct err *e)
{
	char have[DIGEST_HEX_LEN + 1];

	if (!sha256)
		return 0;
	if (digest_file(part, have, e) < 0)
		return -1;
	if (strcmp(have, sha256) == 0)
		return 0;
	err_set(e, ERR_INTEGRITY, "'%s' has sha256 %s, its record says %s", from, have, sha256);
	return err_hint(e, "'ptbuild cache verify' moves it out of the way, so that the next build "
			   "makes it again");
}

/* A copy that gets its name when it is complete and synced. `sha256` may be NULL. */
static int copy_whole(const char *from, const char *to, const char *sha256, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *part = NULL;
	AUTO_FD int fd = fs_neighbour(to, 0600, &a, &part, e);

	if (fd < 0)
		return -1;
	if (fs_copy_fd(TRUSTED, from, fd, to, e) < 0 || check_copy(part, from, sha256, e) < 0 ||
	    fs_sync_file(part, e) < 0 || fs_rename(part, to, e) < 0) {
		unlink(part);
		return -1;
	}

	return 0;
}

int publish_wheel(const char *from, const char *to, const char *sha256, const struct run *run,
		  struct arena *a, struct err *e)
{
	char have[DIGEST_HEX_LEN + 1] = "";

	if (fs_sweep(TRUSTED, path_dir(a, to), e) < 0 ||
	    (fs_exists(TRUSTED, to) && digest_file(to, have, e) < 0))
		return -1;
	if (strcmp(have, sha256) == 0)
		return 0;
	if (copy_whole(from, to, sha256, e) < 0)
		return -1;
	if (*have)
		log_warn(run->log,
			 "replacing '%s', which has other contents (sha256 %s); use "
			 "another --out to keep both",
			 to, have);
	return 0;
}

int publish_export(const char *object, const char *wheel, const char *sha256, unsigned metadata_rev,
		   const char *variant, const char *out_dir, const struct run *run, struct arena *a,
		   const char **ret_path, struct err *e)
{
	const char *path = path_join(a, out_dir, wheel), *details = path_join(a, out_dir, variant);

	if (fs_mkdirs(TRUSTED, details, e) < 0 || fs_sweep(TRUSTED, details, e) < 0 ||
	    publish_wheel(path_join(a, object, wheel), path, sha256, run, a, e) < 0)
		return -1;
	const char *rev = arena_printf(a, "%u\n", metadata_rev);
	if (fs_write(TRUSTED, arena_printf(a, "%s.metadata-rev", path), rev, strlen(rev), 0644, e) <
		    0 ||
	    copy_whole(path_join(a, object, "build.json"), path_join(a, details, "build.json"),
		       NULL, e) < 0)
		return -1;
	/* Objects of older versions have none. */
	const char *page = path_join(a, object, "build.html");
	if (fs_exists(TRUSTED, page) &&
	    copy_whole(page, path_join(a, details, "build.html"), NULL, e) < 0)
		return -1;
	const char *lock = path_join(a, object, PACK_LOCK);
	if (fs_exists(TRUSTED, lock) &&
	    copy_whole(lock, path_join(a, details, PACK_LOCK), NULL, e) < 0)
		return -1;
	*ret_path = path;
	return 0;
}

enum { RELEASE_MAX = 100 };

/* The file that the word comes from may be anybody's. */
static bool is_file_name(const char *release)
{
	size_t len = strlen(release);

	return len > 0 && len <= RELEASE_MAX &&
	       strspn(release,
		      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+~=-") ==
		       len;
}

static const char *file_of(const struct earlier_request *q, const char *release, const char *ending,
			   struct arena *a)
{
	return arena_printf(a, "%s/%s/build%s%s.%s", q->out_dir, q->variant, release ? "-" : "",
			    release ? release : "", ending);
}

int earlier_keep(const struct earlier_request *q, const struct run *run, struct arena *a,
		 struct err *e)
{
	/* the record last: it says that there is something */
	static const char *const endings[] = {"html", "json"};
	AUTO_JSON json_t *record = NULL;
	const char *path = file_of(q, NULL, "json", a);

	if (!fs_exists(TRUSTED, path) || json_read(TRUSTED, path, &record, ERR_IGNORED) < 0)
		return 0;
	const char *release = json_member(record, "release");
	if (!release || strcmp(release, q->release) == 0 || !is_file_name(release))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		const char *from = file_of(q, NULL, endings[i], a);
		if (fs_exists(TRUSTED, from) &&
		    fs_rename(from, file_of(q, release, endings[i], a), e) < 0)
			return -1;
		/* of an earlier turn of this release */
		(void)unlink(file_of(q, q->release, endings[i], a));
	}

	log_info(run->log, "%s: the record of %s is kept as '%s'", q->variant, release,
		 path_base(file_of(q, release, "json", a)));
	return 0;
}
