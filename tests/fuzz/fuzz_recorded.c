/* Any bytes as a recorded.yaml: read, and then written as a file with the same rows, or refused
 * with file and line. */
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/tables/tables.h"
#include "fuzz.h"

static struct arena arena;
static char *top;

static void clean(void)
{
	struct err e;
	(void)!fs_remove(TRUSTED, top, &e);
	arena_release(&arena);
}

static const char *put(const void *data, size_t size)
{
	struct err e = {0};

	if (!top) {
		fail_unless(fs_temp_dir(fs_is_dir(TRUSTED, "/dev/shm") ? "/dev/shm" : "/tmp",
					"ptbuild-fuzz-", &arena, &top, &e) == 0);
		atexit(clean);
	}

	fail_unless(fs_write(top, "recorded.yaml", data, size, 0644, &e) == 0);
	return "recorded.yaml";
}

/* Control characters are left out of what is written. */
static bool is_plain(const struct recorded_row *r)
{
	const char *const all[] = {r->release, r->package, r->name, r->url, r->day};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		for (const char *c = all[i]; *c; c++)
			if ((unsigned char)*c < 0x20)
				return false;
	return true;
}

static void compare(const struct recorded_row *x, const struct recorded_row *y)
{
	fail_unless(strcmp(x->sha256, y->sha256) == 0 && x->bytes == y->bytes);
	if (!is_plain(x))
		return;
	fail_unless(strcmp(x->release, y->release) == 0 && strcmp(x->name, y->name) == 0);
	fail_unless(strcmp(x->url, y->url) == 0 && strcmp(x->day, y->day) == 0);
}

/* To a release with a source without a digest, and one that has its own. */
static void apply(const struct recorded_file *f, struct arena *a)
{
	struct source_row sources[] = {{.name = "a", .sha256 = ""},
				       {.name = "b", .sha256 = "known"}};
	struct package_row package = {.sources = sources, .sources_count = 2};
	struct release_row release = {.name = "1", .pytorch = &package};
	const struct tables t = {.releases = &release, .releases_count = 1};
	const struct tables *all = recorded_apply(&t, f, a);
	const struct source_row *s = all->releases[0].pytorch->sources;

	fail_unless(strcmp(s[1].sha256, "known") == 0 && !s[1].recorded);
	fail_unless(!*s[0].sha256 || (strlen(s[0].sha256) == 64 && s[0].recorded));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	struct recorded_file f, again;
	struct err e = {0};

	put(data, size);
	const char *path = path_join(&a, top, "recorded.yaml");
	if (recorded_read(path, &a, &f, &e) < 0) {
		fail_unless(e.kind == ERR_CONFIG && strstr(e.msg, "recorded.yaml") && e.hint[0]);
		return 0;
	}

	apply(&f, &a);
	const char *text = recorded_text(&f, &a);
	put(text, strlen(text));
	if (!f.sources_count)
		return 0;
	fail_unless(recorded_read(path, &a, &again, &e) == 0);
	fail_unless(again.sources_count == f.sources_count);
	for (unsigned i = 0; i < f.sources_count; i++)
		compare(&f.sources[i], &again.sources[i]);
	return 0;
}
