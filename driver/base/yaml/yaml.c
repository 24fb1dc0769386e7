#include "base/yaml/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml/yaml_tree.h"

struct yaml_lines {
	struct yaml_tree root;
};

/* libcyaml grows a list by a realloc for each entry. The arena cannot free, so blocks know their room and double it. */
struct block {
	size_t size;
	size_t room;
	_Alignas(max_align_t) unsigned char data[];
};

static void *arena_mem(void *ctx, void *ptr, size_t size)
{
	if (!size)
		return NULL;
	struct block *old = ptr ? (struct block *)((unsigned char *)ptr - offsetof(struct block, data)) : NULL;
	if (old && size <= old->room) {
		old->size = size;
		return ptr;
	}
	if (size > SIZE_MAX / 4)
		return NULL;
	size_t room = old ? size * 2 : size;
	struct block *b = arena_alloc(ctx, sizeof(*b) + room);
	b->size = size;
	b->room = room;
	if (old)
		memcpy(b->data, old->data, old->size);
	return b->data;
}

int yaml_load(const char *path, const cyaml_schema_value_t *schema, struct arena *a, void **ret,
	      struct yaml_lines **ret_lines, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct yaml_lines lines;
	if (yaml_tree_load(path, a, &text, &lines.root, e) < 0 || yaml_check(path, &lines.root, schema, e) < 0)
		return -1;
	/* What could be wrong was found by yaml_check, with its line. */
	const cyaml_config_t config = {.log_level = CYAML_LOG_ERROR + 1, .mem_fn = arena_mem, .mem_ctx = a};
	cyaml_data_t *data = NULL;
	cyaml_err_t rc = cyaml_load_data((const uint8_t *)buf_cstr(&text), text.len, &config, schema, &data, NULL);
	if (rc != CYAML_OK || !data)
		return err_set(e, ERR_CONFIG, "%s:1: %s", path, cyaml_strerror(rc));
	*ret = data;
	*ret_lines = arena_alloc(a, sizeof(lines));
	**ret_lines = lines;
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
