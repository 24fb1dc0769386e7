/* Any bytes as the record of a slimmed distribution: what is taken is written and read alike. */
#include <string.h>

#include "core/wheel/slim_marker.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	struct slim_marker m, back;
	struct err e = {0};

	if (slim_marker_parse(&(struct file_bytes){(const char *)data, size, "input"}, &a, &m, &e) <
	    0) {
		if (!*e.msg)
			abort();
		return 0;
	}

	const char *text = slim_marker_text(&m, &a);
	(void)slim_marker_names(&m, &a);
	if (slim_marker_parse(&(struct file_bytes){text, strlen(text), "again"}, &a, &back, &e) <
		    0 ||
	    !slim_marker_same(&m, &back))
		abort();
	return 0;
}
