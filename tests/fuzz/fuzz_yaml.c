/* Any bytes as a YAML file: a tree whose lines are those of the file and whose values are as few
 * as promised, or an error that names the file. Twice the same bytes are twice the same tree. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/yaml/yaml_tree.h"
#include "fuzz.h"

/* The values below a node, which must be no more than are left. */
static size_t count(const struct yaml_tree *t, unsigned lines, unsigned depth, size_t left)
{
	size_t n = 1;

	fail_unless(left > 0 && depth <= 64 && t->line >= 1 && t->line <= lines);
	if (t->kind == YAML_TEXT)
		fail_unless(strlen(t->text) <= 4 << 20 && t->count == 0);
	for (size_t i = 0; i < t->count; i++) {
		fail_unless((t->kind == YAML_MAPPING) == (t->items[i].key != NULL));
		n += count(&t->items[i], lines, depth + 1, left - n);
	}

	return n;
}

static bool same(const struct yaml_tree *x, const struct yaml_tree *y)
{
	if (x->kind != y->kind || x->line != y->line || x->count != y->count)
		return false;
	if (x->kind == YAML_TEXT)
		return strcmp(x->text, y->text) == 0;
	for (size_t i = 0; i < x->count; i++)
		if (!same(&x->items[i], &y->items[i]))
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	static char path[32];
	AUTO_ARENA struct arena a = {0};
	struct yaml_tree t = {0}, again = {0};
	struct err e = {0};
	unsigned lines = 2;

	if (fd < 0) {
		fail_unless((fd = memfd_create("fuzz", MFD_CLOEXEC)) >= 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}

	fail_unless(pwrite(fd, data, size, 0) == (ssize_t)size && ftruncate(fd, (off_t)size) == 0);
	/* YAML has line ends that other files have not: three bytes at most. */
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n' || data[i] == '\r' || data[i] == 0x85 || data[i] == 0xa8 ||
			 data[i] == 0xa9;
	if (yaml_tree_load(path, &a, &t, &e) < 0) {
		fail_unless(e.kind == ERR_CONFIG && strncmp(e.msg, path, strlen(path)) == 0);
		return 0;
	}

	count(&t, lines, 0, 100001);
	fail_unless(yaml_tree_load(path, &a, &again, &e) == 0 && same(&t, &again));
	return 0;
}
