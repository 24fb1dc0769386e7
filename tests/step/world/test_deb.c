/* One Debian package: what is read of it, and what is refused. */
#include "deb_make.h"

#include "step/world/world_parts.h"

#define CONTROL "Package: a\nVersion: 1:2-3\nArchitecture: amd64\n"

static struct arena arena;
static struct err err;

static int setup(void **state)
{
	(void)state;
	test_dir();
	err_clear(&err);
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static const struct deb_entry data[] = {
	{.name = "./", .mode = S_IFDIR | 0755},
	{.name = "./usr/", .mode = S_IFDIR | 0755},
	{.name = "./usr/a", .data = "hello"},
};

/* Opens a package of these bytes and reads it to its end: how many entries, or -1. */
static int read_all(const struct buf *ar, struct deb_control *k)
{
	AUTO_DEB struct deb *d = NULL;
	const struct tar_limits limits = {.max_bytes = 1 << 30};
	struct tar_entry en;
	const char *path = test_path("a.deb");
	int got, count = 0;

	test_write_bytes(path, buf_cstr(ar), ar->len);
	if (deb_open(path, &limits, test_run(), &arena, &d, k, &err) < 0)
		return -1;
	for (; (got = tar_next(deb_data(d), &en, &err)) > 0; count++) {
		AUTO_BUF struct buf text = {0};
		if (en.type == S_IFREG && tar_read(deb_data(d), 1 << 20, &text, &err) < 0)
			return -1;
	}

	return got < 0 ? -1 : count;
}

static void read_whatever_it_is_packed_with(void **state)
{
	(void)state;
	for (enum packing p = PLAIN; p <= ZST; p++) {
		AUTO_BUF struct buf ar = {0};
		struct deb_control k;
		deb_bytes(&ar,
			  CONTROL "Multi-Arch: same\nReplaces: b (<< 1), c:any | d,e\nStatus: "
				  "install ok removed\n"
				  "Description: one\n two\n .\n three\n",
			  data, 3, p);
		assert_int_equal(read_all(&ar, &k), 3);
		assert_string_equal(k.name, "a");
		assert_string_equal(k.version, "1:2-3");
		assert_string_equal(k.arch, "amd64");
		assert_true(k.same);
		assert_int_equal(k.replaces.count, 4);
		assert_string_equal(k.replaces.items[1], "c");
		assert_string_equal(k.replaces.items[3], "e");
		assert_string_equal(k.text, "Version: 1:2-3\nArchitecture: amd64\nMulti-Arch: "
					    "same\nReplaces: b (<< 1), "
					    "c:any | d,e\nDescription: one\n two\n .\n three\n");
	}
}

static void refused(const struct buf *ar, const char *message)
{
	struct deb_control k;
	assert_err(read_all(ar, &k), &err, ERR_INTEGRITY, message);
}

static void what_is_no_package(void **state)
{
	AUTO_BUF struct buf ar = {0}, tar = {0};

	(void)state;
	refused(&ar, "damaged");
	buf_addstr(&ar, "!<arch>\n");
	refused(&ar, "no member 'debian-binary'");
	ar_member(&ar, "debian-binary", "3.0\n", 4);
	refused(&ar, "not a Debian package of format 2");
	buf_reset(&ar);
	buf_addstr(&ar, "!<arch>\n");
	ar_member(&ar, "debian-binary", "2.0\n", 4);
	refused(&ar, "no member 'control.tar'");
	tar_bytes(&tar, data, 3, XZ);
	ar_member(&ar, "data.tar.xz", tar.data, tar.len);
	refused(&ar, "no member 'control.tar'");
	buf_reset(&ar);
	tar_bytes(&ar, data, 3, GZ);
	refused(&ar, "damaged");
	buf_reset(&ar);
	buf_addstr(&ar, "PK\003\004 not an archive of this kind at all");
	refused(&ar, "damaged");
	buf_reset(&ar);
	deb_bytes(&ar, CONTROL, data, 3, BZ2);
	refused(&ar, "no member 'data.tar'");
	buf_reset(&ar);
	deb_bytes(&ar, NULL, data, 3, XZ);
	refused(&ar, "no control file");
}

static void wrong_control_files(void **state)
{
	AUTO_BUF struct buf ar = {0}, large = {0};

	(void)state;
	deb_bytes(&ar, "Package: a\nVersion: 1\n", data, 3, XZ);
	refused(&ar, "needs Package, Version and Architecture");
	buf_reset(&ar);
	deb_bytes(&ar, "Package: a\nVersion\n", data, 3, XZ);
	refused(&ar, "'control' line 2: no \"Name: value\"");
	buf_reset(&ar);
	buf_addstr(&large, CONTROL "Description: ");
	while (large.len < (2 << 20))
		buf_addstr(&large, "more and more\n ");
	AUTO_BUF struct buf tar = {0};
	const struct deb_entry e[] = {{.name = "control", .data = buf_cstr(&large)}};
	tar_bytes(&tar, e, 1, GZ);
	buf_addstr(&ar, "!<arch>\n");
	ar_member(&ar, "debian-binary", "2.0\n", 4);
	ar_member(&ar, "control.tar.gz", tar.data, tar.len);
	refused(&ar, "more than 1048576 bytes");
}

/* Cut anywhere, it is refused and nothing else happens. */
static void cut_anywhere(void **state)
{
	(void)state;
	for (enum packing p = PLAIN; p <= ZST; p++) {
		AUTO_BUF struct buf ar = {0};
		struct deb_control k;
		deb_bytes(&ar, CONTROL, data, 3, p);
		size_t whole = ar.len;
		for (size_t len = 0; len < whole; len += whole / 97 + 1) {
			err_clear(&err);
			ar.len = len;
			/* what is cut may be padding: then all entries are there */
			int got = read_all(&ar, &k);
			if (got < 0)
				assert_int_equal(err.kind, ERR_INTEGRITY);
			else
				assert_int_equal(got, 3);
			if (len < whole / 2)
				assert_int_equal(got, -1);
		}
	}
}

static void other_members_are_left_alone(void **state)
{
	AUTO_BUF struct buf ar = {0}, one = {0}, two = {0};
	const struct deb_entry control[] = {{.name = "control", .data = CONTROL}};
	struct deb_control k;

	(void)state;
	tar_bytes(&one, control, 1, XZ);
	tar_bytes(&two, data, 3, ZST);
	buf_addstr(&ar, "!<arch>\n");
	ar_member(&ar, "debian-binary", "2.0\n", 4);
	ar_member(&ar, "_first", "x", 1);
	ar_member(&ar, "control.tar.xz", one.data, one.len);
	ar_member(&ar, "data.tar.zst", two.data, two.len);
	ar_member(&ar, "_gpgorigin", "y", 1);
	assert_int_equal(read_all(&ar, &k), 3);
}

static void a_missing_file(void **state)
{
	AUTO_DEB struct deb *d = NULL;
	struct deb_control k;

	(void)state;
	assert_err(deb_open(test_path("none"), NULL, test_run(), &arena, &d, &k, &err), &err,
		   ERR_SYSTEM, "cannot be read");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(read_whatever_it_is_packed_with),
		T(what_is_no_package),
		T(wrong_control_files),
		T(cut_anywhere),
		T(other_members_are_left_alone),
		T(a_missing_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
