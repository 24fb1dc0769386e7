/* A world as an image: its layers, what they hold, and that the same world gives the same bytes. */
#include "support.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "step/world/world_image.h"

static struct arena arena;

static const char *here(const char *name)
{
	return arena_strdup(&arena, test_path("%s", name));
}

static void put(const char *root, const char *rel, const char *text)
{
	const struct timespec times[2] = {{1700000000, 0}, {1700000000, 0}};
	const char *path = path_join(&arena, here(root), rel);

	assert_int_equal(fs_mkdirs(TRUSTED, path_dir(&arena, path), ERR_IGNORED), 0);
	test_write(path, text);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void make_root(const char *root)
{
	static const char long_name[] =
		"usr/lib/a-directory-with-a-name-that-is-longer-than-what-the-old-form-of-tar-has/"
		"room-for/so-it-needs-a-header-of-its-own-in-front-of-the-file";

	put(root, "usr/bin/tool", "tool");
	put(root, "etc/name", "base");
	put(root, long_name, "long");
	assert_int_equal(fs_mkdirs(TRUSTED, path_join(&arena, here(root), "tmp"), ERR_IGNORED), 0);
	assert_int_equal(symlink("usr/bin", path_join(&arena, here(root), "bin")), 0);
}

static int setup(void **state)
{
	(void)state;
	test_dir();
	umask(022); /* what packages bring has modes of its own */
	make_root("base");
	make_root("whole");
	put("base", "etc/gone", "gone");
	put("whole", "etc/name", "kits");
	put("whole", "usr/kit/bin/cc", "compiler");
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static struct world_image write_image(const char *root, const char *base, const char *to)
{
	const struct world_image_request q = {.run = test_run(),
					      .name = "base1+kit1",
					      .platform = "x86_64-linux",
					      .key = "0123456789abcdef",
					      .root = here(root),
					      .base = base ? here(base) : NULL,
					      .to = here(to)};
	struct world_image im;
	struct err e = {0};

	assert_ok(world_image_write(&q, &arena, &im, &e), &e);
	return im;
}

/* The bytes of one entry of a tar archive in memory; its names, each with its kind, in `names`. */
static void read_tar(const struct buf *bytes, const char *wanted, struct buf *out,
		     struct strlist *names)
{
	struct archive *tar = archive_read_new();
	struct archive_entry *entry;
	char block[4096];

	archive_read_support_format_tar(tar);
	assert_int_equal(archive_read_open_memory(tar, bytes->data, bytes->len), ARCHIVE_OK);
	while (archive_read_next_header(tar, &entry) == ARCHIVE_OK) {
		const char *name = archive_entry_pathname(entry);
		const char *target = archive_entry_symlink(entry);
		strlist_addf(names, &arena, "%s %o %lld%s%s", name,
			     (unsigned)archive_entry_perm(entry),
			     (long long)archive_entry_uid(entry), target ? " -> " : "",
			     target ? target : "");
		for (la_ssize_t n; wanted && strcmp(name, wanted) == 0 &&
				   (n = archive_read_data(tar, block, sizeof(block))) > 0;)
			buf_add(out, block, (size_t)n);
	}

	archive_read_free(tar);
}

static void layer_of(const char *image, const char *digest, struct strlist *names)
{
	AUTO_BUF struct buf bytes = {0}, layer = {0};
	struct strlist all = {0};

	assert_int_equal(fs_read(TRUSTED, here(image), 1 << 24, &bytes, ERR_IGNORED), 0);
	read_tar(&bytes, arena_printf(&arena, "blobs/sha256/%s", digest), &layer, &all);
	read_tar(&layer, NULL, NULL, names);
}

static bool has(const struct strlist *names, const char *begin)
{
	for (size_t i = 0; i < names->count; i++)
		if (strncmp(names->items[i], begin, strlen(begin)) == 0)
			return true;
	return false;
}

static void test_base_is_one_layer_with_a_place_for_builds(void **state)
{
	(void)state;
	struct strlist names = {0};
	const struct world_image im = write_image("base", NULL, "base.tar");

	assert_string_equal(im.name, "ptbuild-world/base1-kit1:0123456789ab");
	assert_int_equal(im.layers.count, 1);
	layer_of("base.tar", im.layers.items[0], &names);
	assert_true(has(&names, "usr/bin/tool 644 0"));
	assert_true(has(&names, "bin 777 0 -> usr/bin"));
	assert_true(has(&names, "tmp/ 1777 0"));
	assert_true(has(&names, "ptbuild/ 755 1000"));
	assert_true(has(&names, "usr/lib/a-directory-with-a-name-that-is-longer"));
}

static void test_base_layer_is_shared(void **state)
{
	(void)state;
	struct strlist names = {0};
	const struct world_image base = write_image("base", NULL, "base.tar");
	const struct world_image whole = write_image("whole", "base", "whole.tar");

	assert_int_equal(whole.layers.count, 2);
	assert_string_equal(whole.layers.items[0], base.layers.items[0]);
	layer_of("whole.tar", whole.layers.items[1], &names);
	assert_true(has(&names, "usr/kit/bin/cc "));
	assert_true(has(&names, "etc/name "));
	assert_true(has(&names, "etc/.wh.gone "));
	assert_false(has(&names, "usr/bin/tool "));
	assert_false(has(&names, "bin "));
	assert_false(has(&names, "ptbuild/"));
}

static void test_same_world_gives_same_bytes(void **state)
{
	(void)state;
	AUTO_BUF struct buf one = {0}, other = {0};

	write_image("whole", "base", "one.tar");
	write_image("whole", "base", "other.tar");
	assert_int_equal(fs_read(TRUSTED, here("one.tar"), 1 << 24, &one, ERR_IGNORED), 0);
	assert_int_equal(fs_read(TRUSTED, here("other.tar"), 1 << 24, &other, ERR_IGNORED), 0);
	assert_int_equal(one.len, other.len);
	assert_memory_equal(one.data, other.data, one.len);
}

static void test_manifest_names_its_blobs(void **state)
{
	(void)state;
	AUTO_BUF struct buf bytes = {0}, index = {0}, docker = {0};
	struct strlist names = {0};

	write_image("whole", "base", "whole.tar");
	assert_int_equal(fs_read(TRUSTED, here("whole.tar"), 1 << 24, &bytes, ERR_IGNORED), 0);
	read_tar(&bytes, "index.json", &index, &names);
	read_tar(&bytes, "manifest.json", &docker, &names);
	AUTO_JSON json_t *list = json_loads(buf_cstr(&docker), 0, NULL);
	const json_t *image = json_array_get(list, 0), *layers = json_object_get(image, "Layers");
	assert_int_equal(json_array_size(layers), 2);
	for (size_t i = 0; i < 2; i++)
		assert_true(has(&names, json_string_value(json_array_get(layers, i))));
	assert_true(has(&names, json_string_value(json_object_get(image, "Config"))));
	assert_contains(buf_cstr(&index), "docker.io/ptbuild-world/base1-kit1:0123456789ab");
}

static void test_missing_root_leaves_no_file(void **state)
{
	(void)state;
	const struct world_image_request q = {.run = test_run(),
					      .name = "x",
					      .platform = "x86_64-linux",
					      .key = "0123456789abcdef",
					      .root = here("nothing"),
					      .to = here("none.tar")};
	struct world_image im;
	struct err e = {0};

	assert_int_equal(world_image_write(&q, &arena, &im, &e), -1);
	assert_false(fs_exists(TRUSTED, q.to));
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_base_is_one_layer_with_a_place_for_builds),
		T(test_base_layer_is_shared),
		T(test_same_world_gives_same_bytes),
		T(test_manifest_names_its_blobs),
		T(test_missing_root_leaves_no_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
