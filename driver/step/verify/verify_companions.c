/* Libraries that are installed beside the wheel, read for the symbols that they define. */
#include <fcntl.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "step/verify/verify.h"

static void make_room(struct companions *c, size_t more, struct arena *a)
{
	struct elf_info *grown = arena_array(a, c->count + more, sizeof(*grown));
	if (c->count)
		memcpy(grown, c->items, c->count * sizeof(*grown));
	c->items = grown;
}

/* Without a SONAME a library is needed by the name of its file. */
static int read_one(const char *path, const char *name, struct arena *a, struct companions *c, struct err *e)
{
	struct elf_info *info = &c->items[c->count];
	bool elf = false;
	if (elf_is(path, &elf, e) < 0)
		return -1;
	if (!elf)
		return 0;
	if (elf_read(path, ELF_SYMBOLS, a, info, e) < 0)
		return -1;
	if (!*info->soname)
		info->soname = arena_strdup(a, path_base(name));
	c->count++;
	return 0;
}

static int read_member(struct zip_reader *z, const struct zip_entry *en, const char *tmp, struct arena *a,
		       struct companions *c, struct err *e)
{
	AUTO_FD int fd = open(tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot create '%s'", tmp);
	if (zip_extract_fd(z, en, fd, NULL, e) < 0)
		return -1;
	return read_one(tmp, en->name, a, c, e) < 0 ? err_wrap(e, "%s", en->name) : 0;
}

int companions_of_wheel(const char *wheel, const struct run *run, struct arena *a, struct companions *c, struct err *e)
{
	struct zip_reader *z;
	char *dir;
	if (zip_open(wheel, a, &z, e) < 0)
		return -1;
	make_room(c, zip_count(z), a);
	int rc = fs_temp_dir(NULL, "ptbuild-verify-", a, &dir, e);
	bool made = rc == 0;
	for (size_t i = 0; i < zip_count(z) && rc == 0; i++) {
		const struct zip_entry *en = zip_at(z, i);
		if (strstr(path_base(en->name), ".so"))
			rc = run_check(run, e) < 0 ? -1 : read_member(z, en, path_join(a, dir, "member"), a, c, e);
	}
	if (made)
		(void)!fs_remove(TRUSTED, dir, ERR_IGNORED);
	zip_close(z);
	return rc;
}

int companions_of_files(const struct strlist *paths, struct arena *a, struct companions *c, struct err *e)
{
	make_room(c, paths->count, a);
	for (size_t i = 0; i < paths->count; i++) {
		if (read_one(paths->items[i], paths->items[i], a, c, e) < 0)
			return -1;
	}
	return 0;
}
