/* Any bytes as a wheel's file name: what is taken apart is
 * put together again the same, but for capitals of tags. */
#include <string.h>
#include <strings.h>

#include "base/path.h"
#include "core/wheel/wheel.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	const char *file = arena_strndup(&a, (const char *)data, size);
	struct wheel_name n = {0};
	struct err e = {0};

	if (wheel_name_parse(file, &a, &n, &e) != 0) {
		fail_unless(e.kind == ERR_INTEGRITY && e.msg[0] && e.hint[0] && !n.dist);
		return 0;
	}

	fail_unless(strcasecmp(wheel_name_format(&n, &a), path_base(file)) == 0);
	fail_unless(path_is_safe_relative(wheel_dist_info(&n, &a)));
	const char *normal = wheel_normalize(n.dist, &a);
	fail_unless(strcmp(wheel_normalize(normal, &a), normal) == 0);
	return 0;
}
