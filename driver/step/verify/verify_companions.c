/* The libraries of wheels that are installed beside the one that is verified, read for what they define. */
#include <fcntl.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "step/verify/verify.h"

static int read_member(struct zip_reader *z, const struct zip_entry *en, const char *tmp, struct arena *a,
		       struct companions *c, struct err *e)
{
	uint8_t digest[32];
	struct elf_info *info = &c->items[c->count];
	AUTO_FD int fd = open(tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot create '%s'", tmp);
	if (zip_extract_fd(z, en, fd, digest, e) < 0)
		return -1;
	bool elf = false;
	if (elf_is(tmp, &elf, e) < 0)
		return -1;
	if (!elf)
		return 0;
	if (elf_read(tmp, ELF_SYMBOLS, a, info, e) < 0)
		return err_wrap(e, "%s", en->name);
	/* Libraries are needed by their file's name where they have no SONAME. */
	if (!info->soname || !*info->soname)
		info->soname = arena_strdup(a, path_base(en->name));
	c->count++;
	return 0;
}

int companions_of_wheel(const char *wheel, const struct run *run, struct arena *a, struct companions *c, struct err *e)
{
	struct zip_reader *z;
	char *dir;
	if (zip_open(wheel, a, &z, e) < 0)
		return -1;
	struct elf_info *grown = arena_array(a, c->count + zip_count(z), sizeof(*grown));
	if (c->count)
		memcpy(grown, c->items, c->count * sizeof(*grown));
	c->items = grown;
	int rc = fs_temp_dir(NULL, "ptbuild-verify-", a, &dir, e);
	bool made = rc == 0;
	for (size_t i = 0; i < zip_count(z) && rc == 0; i++) {
		const struct zip_entry *en = zip_at(z, i);
		if (!strstr(path_base(en->name), ".so"))
			continue;
		rc = run_check(run, e);
		if (rc == 0)
			rc = read_member(z, en, path_join(a, dir, "member"), a, c, e);
	}
	struct err ignored = {0};
	if (made)
		(void)!fs_remove_tree(dir, &ignored);
	zip_close(z);
	return rc;
}

int companions_of_files(const struct strlist *paths, struct arena *a, struct companions *c, struct err *e)
{
	struct elf_info *grown = arena_array(a, c->count + paths->count, sizeof(*grown));
	if (c->count)
		memcpy(grown, c->items, c->count * sizeof(*grown));
	c->items = grown;
	for (size_t i = 0; i < paths->count; i++) {
		struct elf_info *info = &c->items[c->count];
		bool elf = false;
		if (elf_is(paths->items[i], &elf, e) < 0)
			return -1;
		if (!elf)
			continue;
		if (elf_read(paths->items[i], ELF_SYMBOLS, a, info, e) < 0)
			return -1;
		if (!info->soname || !*info->soname)
			info->soname = arena_strdup(a, path_base(paths->items[i]));
		c->count++;
	}
	return 0;
}
