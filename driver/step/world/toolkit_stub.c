/* Stubs of the driver's libraries, for linkers: NVIDIA's own packages bring them, the wheels do not. */
#include <elf.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/elf/elf_stub.h"
#include "step/world/driver_names.h"
#include "step/world/toolkit_parts.h"

#define MAX_HEADER (UINT64_C(16) << 20)

static unsigned machine_of(const char *platform)
{
	static const struct {
		const char *platform;
		unsigned machine;
	} all[] = {{"x86_64-linux", EM_X86_64}, {"aarch64-linux", EM_AARCH64}};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(all[i].platform, platform) == 0)
			return all[i].machine;
	return EM_NONE;
}

/* Sorted, each once, without those that the row leaves out. */
static void settle(const struct toolkit_stub *s, struct strlist *names)
{
	size_t kept = 0;
	strlist_sort(names);
	for (size_t i = 0; i < names->count; i++) {
		const char *name = names->items[i];
		if ((kept == 0 || strcmp(names->items[kept - 1], name) != 0) &&
		    !strings_contain(s->leave, s->leave_count, name))
			names->items[kept++] = name;
	}
	names->count = kept;
}

/* Of the headers that are there. */
static int read_names(const struct toolkit_tree *t, const struct toolkit_stub *s, struct arena *a, struct strlist *ret,
		      struct err *e)
{
	for (unsigned i = 0; i < s->headers_count; i++) {
		AUTO_BUF struct buf text = {0};
		const char *path = toolkit_rules_fill(s->headers[i], t->target, a);
		if (!fs_exists(t->dir, path))
			continue;
		if (fs_read(t->dir, path, MAX_HEADER, &text, e) < 0 ||
		    driver_names(buf_cstr(&text), text.len, a, ret, e) < 0)
			return err_wrap(e, "header '%s'", path);
	}
	settle(s, ret);
	return 0;
}

static int make_stub(struct toolkit_tree *t, const struct toolkit_stub *s, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf bytes = {0};
	struct strlist names = {0};
	const char *path = toolkit_rules_fill(s->path, t->target, &a);
	const char *first = toolkit_rules_fill(s->headers[0], t->target, &a);
	struct elf_stub stub = {machine_of(t->platform), s->soname, &names, s->answer};
	if (fs_exists(t->dir, path) || !fs_exists(t->dir, first))
		return 0;
	if (read_names(t, s, &a, &names, e) < 0)
		return -1;
	if (names.count == 0)
		return err_set(e, ERR_INTEGRITY, "the header '%s' declares no function, so '%s' cannot be made", first,
			       path);
	if (elf_stub_put(&stub, &bytes, e) < 0 || toolkit_tree_account(t, bytes.len, e) < 0)
		return -1;
	AUTO_FD int fd = toolkit_tree_add(t, path, e);
	if (fd < 0 || fs_write_all(fd, bytes.data, bytes.len, path, e) < 0)
		return -1;
	return toolkit_tree_done(&fd, false, path, e);
}

int toolkit_stubs_make(struct toolkit_tree *t, struct err *e)
{
	for (unsigned i = 0; i < t->rules->stubs_count; i++)
		if (make_stub(t, &t->rules->stubs[i], e) < 0)
			return -1;
	return 0;
}
