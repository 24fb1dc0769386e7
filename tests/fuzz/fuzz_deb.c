/* Any bytes as a Debian package, and as the data archive of a good one: whatever becomes
 * of it, the tree holds only files, directories and links of two modes, nothing of the
 * host's is touched, and its manifest says what is there. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "fuzz.h"
#include "step/world/world_tree.h"

/* look: a path of the tree; its user argument is the manifest. */
static int look(const char *rel, const struct stat *st, void *user, struct err *e)
{
	const struct world_tree *t = user;
	AUTO_ARENA struct arena a = {0};

	(void)e;
	fail_unless(path_is_safe_relative(rel) && (S_ISREG(st->st_mode) || S_ISLNK(st->st_mode)));
	fail_unless(S_ISLNK(st->st_mode) || (st->st_mode & 07777) == 0644 ||
		    (st->st_mode & 07777) == 0755);
	fail_unless(!t || strstr(buf_cstr(&t->manifest), arena_printf(&a, "\t%s\n", rel)));
	return 0;
}

static void member(struct buf *ar, const char *name, const void *data, size_t len)
{
	buf_printf(ar, "%-16s%-12d%-6d%-6d%-8s%-10zu`\n", name, 0, 0, 0, "100644", len);
	buf_add(ar, data, len);
	if (len % 2)
		buf_addc(ar, '\n');
}

/* A tar archive of one file. */
static void control_tar(struct buf *out)
{
	static const char text[] = "Package: a\nVersion: 1\nArchitecture: all\n";
	char block[1024] = "control";
	unsigned sum = 0;

	snprintf(block + 100, 8, "%07o", 0644);
	snprintf(block + 124, 12, "%011zo", sizeof(text) - 1);
	memset(block + 148, ' ', 8);
	block[156] = '0';
	for (size_t i = 0; i < 512; i++)
		sum += (unsigned char)block[i];
	snprintf(block + 148, 8, "%06o", sum);
	memcpy(block + 512, text, sizeof(text) - 1);
	buf_add(out, block, sizeof(block));
	memset(block, 0, sizeof(block));
	buf_add(out, block, sizeof(block));
}

static void try(const char *dir, const struct buf *package)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	AUTO_FD int fd = memfd_create("fuzz", MFD_CLOEXEC);
	const char *file = arena_printf(&a, "/proc/self/fd/%d", fd),
		   *top = path_join(&a, dir, "tree");
	const struct world_part part = {.part = "base", .kind = "base", .prefix = ""};
	struct world_entry entry = {
		.kind = WORLD_DEB, .name = "a", .version = "1", .arch = "all", .size = 1};
	struct world_piece piece = {.part = &part,
				    .lock = {.part = "base", .entries = &entry, .count = 1}};
	const struct world w = {
		.name = "base", .platform = "x86_64-linux", .pieces = &piece, .count = 1};
	const char *const *const files[] = {&file};
	const struct run run = {.log = &(struct log){.level = LOG_QUIET, .fd = 2}, .cancel_fd = -1};
	const struct world_tree_request q = {
		.run = &run, .world = &w, .files = files, .dir = top, .jobs = 1};
	struct world_tree t = {0};

	fail_unless(fs_mkdirs(TRUSTED, top, &e) == 0);
	fail_unless(fs_write_all(fd, buf_cstr(package), package->len, "package", &e) == 0);
	int rc = world_tree_make(&q, &a, &t, &e);
	fail_unless(rc == 0 || e.kind == ERR_INTEGRITY || e.kind == ERR_CONFIG ||
		    e.kind == ERR_SYSTEM);
	fail_unless(fs_walk(TRUSTED, top, look, rc == 0 ? &t : NULL, &e) == 0);
	buf_release(&t.manifest);
	fail_unless(fs_remove(TRUSTED, top, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_BUF struct buf package = {0}, control = {0};
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	char *dir;

	if (size > 1 << 20)
		return 0;
	/* In memory: a disk would be synced for each input. */
	fail_unless(fs_temp_dir(fs_is_dir(TRUSTED, "/dev/shm") ? "/dev/shm" : NULL, "fuzz-deb-", &a,
				&dir, &e) == 0);
	buf_add(&package, data, size);
	try(dir, &package);
	buf_reset(&package);
	control_tar(&control);
	buf_addstr(&package, "!<arch>\n");
	member(&package, "debian-binary", "2.0\n", 4);
	member(&package, "control.tar", control.data, control.len);
	member(&package, "data.tar", data, size);
	try(dir, &package);
	fail_unless(fs_remove(TRUSTED, dir, &e) == 0);
	return 0;
}
