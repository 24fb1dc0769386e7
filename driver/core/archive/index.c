#include "core/archive/index.h"

#include <string.h>
#include <time.h>

enum { RELEASE_MAX = 16 << 20 };

/* Ten times Debian's largest. */
#define INDEX_MAX_BYTES (768ULL << 20)

const char *archive_arch(const char *platform)
{
	if (strcmp(platform, "x86_64-linux") == 0)
		return "amd64";
	return strcmp(platform, "aarch64-linux") == 0 ? "arm64" : NULL;
}

static int check_release(const struct archive_suite *s, const struct inrelease *r, struct err *e)
{
	char now[32];
	time_t t = time(NULL);
	struct tm tm;
	if (strcmp(r->suite, s->suite) != 0 && strcmp(r->codename, s->suite) != 0)
		return err_set(e, ERR_INTEGRITY, "the archive '%s' answers for '%s' with the suite '%s' (%s)",
			       s->archive, s->suite, r->suite, r->codename);
	strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
	if (r->valid_until && strcmp(r->valid_until, now) < 0) {
		err_set(e, ERR_INTEGRITY, "the index of '%s' in the archive '%s' expired at %s", s->suite, s->archive,
			r->valid_until);
		return err_hint(e,
				"its address may be of a mirror that stands still: name another with --archive %s=URL",
				s->archive);
	}
	if (s->not_before && strcmp(r->date, s->not_before) < 0) {
		err_set(e, ERR_INTEGRITY,
			"the index of '%s' in the archive '%s' is of %s, older than that of the lock (%s)", s->suite,
			s->archive, r->date, s->not_before);
		return err_hint(e,
				"its address may be of a mirror that stands still: name another with --archive %s=URL",
				s->archive);
	}
	return 0;
}

static const char *release_path(const struct archive_suite *s, struct arena *a)
{
	return arena_printf(a, "dists/%s/InRelease", s->suite);
}

int archive_index_get(const struct archive_suite *s, const struct archive_get *get, struct arena *a, const char **ret,
		      struct err *e)
{
	if (get->get(get->user, s->archive, release_path(s, a), NULL, RELEASE_MAX, a, ret, e) == 0)
		return 0;
	if (e->kind != ERR_NETWORK || e->hint[0]) /* the caller's own reason: --offline, no address known */
		return err_wrap(e, "no index of '%s'", s->suite);
	err_wrap(e, "no index of '%s': what is named as '%s' is not an archive of Debian, or cannot be reached",
		 s->suite, s->archive);
	return err_hint(e, "name the URL or directory that has 'dists' and 'pool': --archive %s=URL", s->archive);
}

static int read_release(const struct archive_suite *s, const struct archive_get *get, const struct run *run,
			struct arena *a, struct archive_index *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const char *file, *path = release_path(s, a);
	if (archive_index_get(s, get, a, &file, e) < 0)
		return -1;
	if (digest_file(file, ret->sha256, e) < 0 || inrelease_verify(file, s->keyring, run, &text, e) < 0 ||
	    inrelease_parse(buf_cstr(&text), text.len, arena_printf(a, "%s:%s", s->archive, path), a, &ret->release,
			    e) < 0)
		return -1;
	return check_release(s, &ret->release, e);
}

/* The packed list of a component, as the suite names it. */
static int choose_file(const struct archive_suite *s, const struct inrelease *r, const char *component, struct arena *a,
		       const struct inrelease_file **ret, uint64_t *ret_plain, struct err *e)
{
	static const char *const packed[] = {".xz", ".gz", ""};
	const char *plain = arena_printf(a, "%s/binary-%s/Packages", component, s->arch);
	const struct inrelease_file *whole = inrelease_find(r, plain);
	*ret_plain = whole && whole->size < INDEX_MAX_BYTES ? whole->size : INDEX_MAX_BYTES;
	for (size_t i = 0; i < ARRAY_LEN(packed); i++)
		if ((*ret = inrelease_find(r, arena_printf(a, "%s%s", plain, packed[i]))))
			return 0;
	err_set(e, ERR_CONFIG, "'%s' in the archive '%s' has no packages of the component '%s' for '%s'", s->suite,
		s->archive, component, s->arch);
	return err_hint(e, "its InRelease lists the components that it has");
}

static int read_component(const struct archive_suite *s, const char *component, const struct archive_get *get,
			  struct arena *a, struct archive_index *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const struct inrelease_file *f;
	const char *file;
	uint64_t plain;
	if (choose_file(s, &ret->release, component, a, &f, &plain, e) < 0)
		return -1;
	/* by its digest where the archive has it so: then a change of the suite meanwhile does not matter */
	const char *dir = arena_strndup(a, f->path, (size_t)(strrchr(f->path, '/') - f->path));
	const char *path = ret->release.by_hash
				   ? arena_printf(a, "dists/%s/%s/by-hash/SHA256/%s", s->suite, dir, f->sha256)
				   : arena_printf(a, "dists/%s/%s", s->suite, f->path);
	if (get->get(get->user, s->archive, path, f->sha256, f->size, a, &file, e) < 0 ||
	    packages_unpack(file, plain, &text, e) < 0)
		return err_wrap(e, "no packages of '%s'", component);
	return packages_parse(buf_cstr(&text), text.len, arena_printf(a, "%s:%s", s->archive, f->path), s->arch, a,
			      &ret->packages, e);
}

int archive_index_read(const struct archive_suite *s, const struct archive_get *get, const struct run *run,
		       struct arena *a, struct archive_index *ret, struct err *e)
{
	struct archive_index out = {0};
	if (read_release(s, get, run, a, &out, e) < 0)
		return -1;
	for (size_t i = 0; i < s->components->count; i++)
		if (read_component(s, s->components->items[i], get, a, &out, e) < 0)
			return -1;
	if (packages_sort(&out.packages, e) < 0)
		return -1;
	*ret = out;
	return 0;
}
