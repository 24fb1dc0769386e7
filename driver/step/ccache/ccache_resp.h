/* The little of redis' protocol (RESP) that ccache speaks: arrays of strings, one after the other.
 * Part of the ccache step. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum { RESP_MAX_ARGS = 4, RESP_MAX_KEY = 128 };
#define RESP_MAX_VALUE ((size_t)256 << 20) /* an object of more is not worth a network */

struct resp_command {
	struct {
		const char *data; /* into the bytes that were parsed */
		size_t len;
	} args[RESP_MAX_ARGS];
	size_t count;
	size_t used; /* bytes of the whole command */
};

enum resp_state { RESP_MORE, RESP_DONE, RESP_BAD };

/* resp_parse: a command at the start of the bytes (pure). RESP_MORE: not all of it is there yet. */
enum resp_state resp_parse(const char *data, size_t len, struct resp_command *ret);
/* resp_is: whether the first word of the command is this one, in any case. */
bool resp_is(const struct resp_command *c, const char *word);
/* resp_key: the ccache key of the command's second word, in `ret`; false when it is none of
 * ccache's ("ccache:" and letters and digits). */
bool resp_key(const struct resp_command *c, char ret[RESP_MAX_KEY]);
/* resp_reply_len: of a reply's first line without its end: bytes of the string that follows
 * ("$12"), -1 for null ("$-1"), -2 for any other well-formed reply, -3 for what is none. */
long resp_reply_len(const char *line, size_t len);
/* resp_put: a command of these words. resp_put_bytes: a string as a part of it. */
void resp_put(struct buf *out, size_t count, const char *const *words);
void resp_put_bytes(struct buf *out, const void *data, size_t len);
