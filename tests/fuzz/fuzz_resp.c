/* Any bytes as what ccache says to its remote storage: a command that was read lies inside
 * the bytes and is read the same from a copy of itself alone; a beginning of it wants more. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "step/ccache/ccache_relay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct resp_command c, again;
	char key[RESP_MAX_KEY];
	const char *bytes = (const char *)data;

	if (resp_parse(bytes, size, &c) != RESP_DONE)
		return 0;
	fail_unless(c.count >= 1 && c.count <= RESP_MAX_ARGS && c.used <= size);
	for (size_t i = 0; i < c.count; i++)
		fail_unless(c.args[i].data >= bytes &&
			    c.args[i].data + c.args[i].len + 2 <= bytes + c.used);
	if (resp_key(&c, key))
		fail_unless(strlen(key) >= 8 && !strchr(key, '/') && !strchr(key, '.'));
	char *copy = malloc(c.used);
	fail_unless(copy != NULL);
	memcpy(copy, bytes, c.used);
	fail_unless(resp_parse(copy, c.used, &again) == RESP_DONE && again.used == c.used &&
		    again.count == c.count);
	fail_unless(resp_parse(copy, c.used - 1, &again) == RESP_MORE);
	free(copy);
	return 0;
}
