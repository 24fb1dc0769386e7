#include "step/ccache/ccache_resp.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define MAX_LINE 24
#define KEY_PREFIX "ccache:"

/* "*3\r\n": the number behind the mark; -1 when it is none or above `max`, 0 in *used when there is more to come. */
static long number_line(const char *data, size_t len, char mark, size_t max, size_t *used)
{
	size_t n = 0;
	*used = 0;
	if (len == 0)
		return 0;
	if (data[0] != mark)
		return -1;
	size_t i = 1;
	for (; i < len && i < MAX_LINE && n <= max && data[i] >= '0' && data[i] <= '9'; i++)
		n = n * 10 + (size_t)(data[i] - '0');
	if (i == len && i < MAX_LINE && n <= max)
		return 0;
	if (i == 1 || i >= MAX_LINE || n > max || data[i] != '\r')
		return -1;
	if (i + 1 == len)
		return 0;
	if (data[i + 1] != '\n')
		return -1;
	*used = i + 2;
	return (long)n;
}

enum resp_state resp_parse(const char *data, size_t len, struct resp_command *ret)
{
	struct resp_command c = {0};
	size_t used;
	long count = number_line(data, len, '*', RESP_MAX_ARGS, &used);
	if (count < 0)
		return RESP_BAD;
	if (used == 0)
		return RESP_MORE;
	if (count == 0)
		return RESP_BAD;
	size_t at = used;
	for (; c.count < (size_t)count; c.count++) {
		long n = number_line(data + at, len - at, '$', RESP_MAX_VALUE, &used);
		if (n < 0)
			return RESP_BAD;
		if (used == 0 || len - at - used < (size_t)n + 2)
			return RESP_MORE;
		at += used;
		if (memcmp(data + at + n, "\r\n", 2) != 0)
			return RESP_BAD;
		c.args[c.count].data = data + at;
		c.args[c.count].len = (size_t)n;
		at += (size_t)n + 2;
	}
	c.used = at;
	*ret = c;
	return RESP_DONE;
}

bool resp_is(const struct resp_command *c, const char *word)
{
	return c->args[0].len == strlen(word) && strncasecmp(c->args[0].data, word, c->args[0].len) == 0;
}

bool resp_key(const struct resp_command *c, char ret[RESP_MAX_KEY])
{
	const size_t prefix = strlen(KEY_PREFIX);
	if (c->count < 2 || c->args[1].len < prefix + 8 || c->args[1].len - prefix >= RESP_MAX_KEY ||
	    memcmp(c->args[1].data, KEY_PREFIX, prefix) != 0)
		return false;
	size_t len = c->args[1].len - prefix;
	memcpy(ret, c->args[1].data + prefix, len);
	ret[len] = '\0';
	return strspn(ret, "0123456789abcdefghijklmnopqrstuvwxyz") == len;
}

long resp_reply_len(const char *line, size_t len)
{
	if (len == 0 || !strchr("+-:$", line[0]) || memchr(line, '\0', len))
		return -3;
	if (line[0] != '$')
		return -2;
	if (len == 3 && memcmp(line, "$-1", 3) == 0)
		return -1;
	size_t n = 0;
	if (len == 1 || len > 12)
		return -3;
	for (size_t i = 1; i < len; i++) { /* at most eleven digits */
		if (line[i] < '0' || line[i] > '9')
			return -3;
		n = n * 10 + (size_t)(line[i] - '0');
	}
	return n <= RESP_MAX_VALUE ? (long)n : -3;
}

void resp_put_bytes(struct buf *out, const void *data, size_t len)
{
	buf_printf(out, "$%zu\r\n", len);
	buf_add(out, data, len);
	buf_addstr(out, "\r\n");
}

void resp_put(struct buf *out, size_t count, const char *const *words)
{
	buf_printf(out, "*%zu\r\n", count);
	for (size_t i = 0; i < count && words[i]; i++)
		resp_put_bytes(out, words[i], strlen(words[i]));
}
