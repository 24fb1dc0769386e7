#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml/yaml.h"
#include "base/yaml/yaml_tree.h"

struct yaml_lines {
	struct yaml_tree root;
};

int yaml_lines_load(const char *path, struct arena *a, struct yaml_lines **ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct yaml_tree tree;
	if (yaml_tree_read(path, &text, e) < 0 || yaml_tree_parse(path, &text, a, &tree, e) < 0)
		return -1;
	struct yaml_lines *l = arena_alloc(a, sizeof(*l));
	l->root = tree;
	*ret = l;
	return 0;
}

static const struct yaml_tree *list_item(const struct yaml_tree *t, const char *digits, size_t len)
{
	if (t->kind != YAML_LIST || !len || len > 9 || strspn(digits, "0123456789") < len)
		return NULL;
	size_t n = strtoul(digits, NULL, 10);
	return n < t->count ? &t->items[n] : NULL;
}

/* The child that *path begins with, and *path moved behind it. A key may itself have slashes, so longer pieces are
 * tried too. */
static const struct yaml_tree *step_down(const struct yaml_tree *t, const char **path)
{
	const char *p = *path;
	for (size_t len = strcspn(p, "/");; len += 1 + strcspn(p + len + 1, "/")) {
		const struct yaml_tree *child = yaml_tree_find(t, p, len);
		if (!child)
			child = list_item(t, p, len);
		if (child) {
			*path = p + len + (p[len] == '/');
			return child;
		}
		if (!p[len])
			return NULL;
	}
}

unsigned yaml_line(const struct yaml_lines *l, const char *fmt, ...)
{
	char path[1024];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	const struct yaml_tree *at = &l->root;
	const char *p = n < 0 ? "" : path;
	while (*p) {
		const struct yaml_tree *child = step_down(at, &p);
		if (!child)
			break;
		at = child;
	}
	return at->line;
}
