#include "base/yaml/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml/yaml_tree.h"

/* cyaml grows a list entry by entry with a realloc each. The arena cannot free, so blocks remember their room and
 * double it. */
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

/* The first thing that cyaml says, and the innermost line of the backtrace that follows it. */
struct words {
	char text[256];
	unsigned line;
};

static void listen(cyaml_log_t level, void *ctx, const char *fmt, va_list args)
{
	struct words *w = ctx;
	char line[sizeof(w->text)];
	if (level < CYAML_LOG_ERROR || vsnprintf(line, sizeof(line), fmt, args) < 0)
		return;
	line[strcspn(line, "\n")] = '\0';
	const char *place = strstr(line, "(line: ");
	if (place && !w->line)
		w->line = (unsigned)strtoul(place + strlen("(line: "), NULL, 10);
	else if (!place && !w->text[0] && strncmp(line, "Load: ", 6) == 0 && strcmp(line, "Load: Backtrace:") != 0)
		snprintf(w->text, sizeof(w->text), "%s", line + 6);
}

int yaml_load(const char *path, const cyaml_schema_value_t *schema, struct arena *a, void **ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	AUTO_ARENA struct arena scratch = {0};
	struct yaml_tree tree;
	if (yaml_tree_read(path, &text, e) < 0 || yaml_tree_parse(path, &text, &scratch, &tree, e) < 0)
		return -1;
	if (yaml_check(path, &tree, schema, e) < 0)
		return -1;
	struct words words = {0};
	const cyaml_config_t config = {
		.log_fn = listen,
		.log_ctx = &words,
		.log_level = CYAML_LOG_ERROR,
		.mem_fn = arena_mem,
		.mem_ctx = a,
		.flags = CYAML_CFG_DEFAULT,
	};
	cyaml_data_t *data = NULL;
	cyaml_err_t rc = cyaml_load_data((const uint8_t *)buf_cstr(&text), text.len, &config, schema, &data, NULL);
	if (rc == CYAML_OK && data) {
		*ret = data;
		return 0;
	}
	unsigned line = words.line ? words.line : 1;
	return err_set(e, ERR_CONFIG, "%s:%u: %s", path, line, words.text[0] ? words.text : cyaml_strerror(rc));
}
