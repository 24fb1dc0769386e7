/* Wheels by hand, of what lies below "w". */
#pragma once
#include "verify_fixture.h"

static inline const char *file(const char *name)
{
	return test_path("w/%s", name);
}

static inline char *read_bytes(const char *path, size_t *ret)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	*ret = (size_t)st.st_size;
	return test_read(path);
}

static inline void library(const char *name, const char *text, const char *flags)
{
	compile(arena_printf(&arena, "w/%s", name), text,
		arena_printf(&arena, "-nostdlib -Wl,-z,noexecstack %s", flags));
}

struct maker {
	const char *name, *version, *info; /* NULL: as the file name has them */
	const char *metadata;              /* more lines */
	const char *algorithm;             /* of RECORD; NULL: sha256 */
	const char *metadata_version;      /* NULL: 2.1 */
	bool one_tag;                      /* of the whole set */
};

/* What lies below "w", with metadata, as a wheel of this name. */
static inline const char *wheel_by(const char *name, const struct maker *m)
{
	struct wheel_name n;
	struct strlist python = {0}, abi = {0}, platform = {0}, files = {0};
	struct buf AUTO_BUF wheel = {0}, record = {0};
	uint8_t sha256[32];
	uint64_t size;
	struct zip_writer *w;
	assert_ok(wheel_name_parse(name, &arena, &n, &err), &err);
	const char *info = m->info ? m->info : wheel_dist_info(&n, &arena);
	strlist_split(&python, &arena, n.python, ".");
	strlist_split(&abi, &arena, n.abi, ".");
	strlist_split(&platform, &arena, n.platform, ".");
	buf_addstr(&wheel, "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: false\n");
	if (m->one_tag)
		buf_printf(&wheel, "Tag: %s-%s-%s\n", n.python, n.abi, n.platform);
	for (size_t i = 0; i < python.count && !m->one_tag; i++)
		for (size_t k = 0; k < abi.count; k++)
			for (size_t p = 0; p < platform.count; p++)
				buf_printf(&wheel, "Tag: %s-%s-%s\n", python.items[i], abi.items[k],
					   platform.items[p]);
	shell("mkdir -p '%s'", file(info));
	test_write(file(arena_printf(&arena, "%s/WHEEL", info)), buf_cstr(&wheel));
	test_write(file(arena_printf(&arena, "%s/METADATA", info)),
		   arena_printf(&arena, "Metadata-Version: %s\nName: %s\nVersion: %s\n%s",
				m->metadata_version ? m->metadata_version : "2.1",
				m->name ? m->name : n.dist, m->version ? m->version : n.version,
				m->metadata ? m->metadata : ""));
	shell("cd '%s' && find . -type f ! -path '*.dist-info/*' -printf '%%P\\n' | sort > ../list "
	      "&& find . -type f "
	      "-path '*.dist-info/*' -printf '%%P\\n' | sort >> ../list",
	      test_path("w"));
	AUTO_FREE char *list = test_read(test_path("list"));
	strlist_split(&files, &arena, list, "\n");
	const char *path = arena_strdup(&arena, test_path("%s", name));
	unlink(path);
	assert_ok(zip_create(&(struct zip_new){.path = path, .epoch = 0, .threads = 1, .level = 1},
			     &w, &err),
		  &err);
	for (size_t i = 0; i < files.count; i++) {
		char digest[DIGEST_RECORD_MAX];
		size_t len;
		AUTO_FREE char *data = read_bytes(file(files.items[i]), &len);
		digest_record(m->algorithm ? m->algorithm : "sha256", data, len, digest);
		wheel_record_line(&record, files.items[i], digest, (int64_t)len);
		assert_ok(zip_add_parts(w, files.items[i], file(files.items[i]), NULL, 0, sha256,
					&size, &err),
			  &err);
	}
	const char *own = arena_printf(&arena, "%s/RECORD", info);
	wheel_record_line(&record, own, "", -1);
	assert_ok(zip_add_data(w, own, record.data, record.len, &err), &err);
	assert_ok(zip_finish(w, sha256, &err), &err);
	shell("rm -r '%s'", file(info));
	return path;
}
