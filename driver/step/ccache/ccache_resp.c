#include "step/ccache/ccache_relay.h"

#include <strings.h>

#define MAX_LINE 24

/* A line with a number, such as "*3\r\n". */
struct resp_number {
	char mark;
	size_t max;
};

static const struct resp_number array_count = {'*', RESP_MAX_ARGS},
				string_bytes = {'$', RESP_MAX_VALUE};

/* -1 if it is malformed or above the largest. *used: bytes of the line, 0 if it is not complete
 * yet. */
static long number_line(const char *data, size_t len, struct resp_number k, size_t *used)
{
	size_t n = 0;

	*used = 0;
	if (len == 0)
		return 0;
	if (data[0] != k.mark)
		return -1;
	size_t i = 1;
	for (; i < len && i < MAX_LINE && n <= k.max; i++) {
		if (data[i] < '0' || data[i] > '9')
			break;
		n = n * 10 + (size_t)(data[i] - '0');
	}

	if (i == len && i < MAX_LINE && n <= k.max)
		return 0;
	if (i == 1 || i >= MAX_LINE || n > k.max || data[i] != '\r')
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
	long count = number_line(data, len, array_count, &used);

	if (count < 0)
		return RESP_BAD;
	if (used == 0)
		return RESP_MORE;
	if (count == 0)
		return RESP_BAD;
	size_t at = used;
	for (; c.count < (size_t)count; c.count++) {
		long n = number_line(data + at, len - at, string_bytes, &used);
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
	return c->args[0].len == strlen(word) &&
	       strncasecmp(c->args[0].data, word, c->args[0].len) == 0;
}

bool resp_key(const struct resp_command *c, char ret[RESP_MAX_KEY])
{
	const size_t prefix = strlen(RESP_KEY_PREFIX);

	if (c->count < 2 || c->args[1].len < prefix + 8 ||
	    c->args[1].len - prefix >= RESP_MAX_KEY ||
	    memcmp(c->args[1].data, RESP_KEY_PREFIX, prefix) != 0)
		return false;
	size_t len = c->args[1].len - prefix;
	memcpy(ret, c->args[1].data + prefix, len);
	ret[len] = '\0';
	return strspn(ret, "0123456789abcdefghijklmnopqrstuvwxyz") == len;
}
