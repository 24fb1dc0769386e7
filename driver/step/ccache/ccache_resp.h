/* Reading what ccache sends to its remote storage: commands of redis' protocol (RESP), each an
 * array of strings. The bytes come out of the sandbox, so every limit is checked before anything is
 * kept. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

enum { RESP_MAX_ARGS = 4, RESP_MAX_KEY = 128 };
#define RESP_KEY_PREFIX "ccache:"
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

/* resp_parse: the command that the bytes start with. RESP_MORE: it is not complete yet. */
enum resp_state resp_parse(const char *data, size_t len, struct resp_command *ret);
/* resp_is: whether the command is `word`, in upper or lower case. */
bool resp_is(const struct resp_command *c, const char *word);
/* resp_key: the ccache key in the command's first argument; false if that is not RESP_KEY_PREFIX
 * with lower-case letters and digits behind it. */
bool resp_key(const struct resp_command *c, char ret[RESP_MAX_KEY]);
/* resp_put_bytes: a string as a reply. */
void resp_put_bytes(struct buf *out, const void *data, size_t len);
