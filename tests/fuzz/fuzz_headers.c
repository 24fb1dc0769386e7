/* Any bytes as METADATA: unchanged it is written
 * back byte by byte, and what is set is read again. */
#include <string.h>

#include "core/wheel/dist.h"
#include "fuzz.h"

static void change(struct wheel_headers *h, struct arena *a)
{
	struct wheel_headers again;
	struct err e = {0};

	wheel_headers_set(h, a, "Version", "1.0+new");
	wheel_requires_replace(h, a, "torch==1.0+new");
	wheel_headers_remove(h, "Tag", "cp");
	const char *text = wheel_headers_text(h, a);
	fail_unless(wheel_headers_parse(&(struct file_bytes){text, strlen(text), "written"}, a,
					&again, &e) == 0);
	fail_unless(again.count == h->count && strcmp(again.body, h->body) == 0);
	fail_unless(strcmp(wheel_headers_get(&again, "version"), "1.0+new") == 0);
	for (size_t i = 0; i < again.count; i++)
		fail_unless(strcmp(again.items[i].key, h->items[i].key) == 0 &&
			    strcmp(again.items[i].value, h->items[i].value) == 0);
}

/* The same bytes as entry_points.txt. */
static void read_entry_points(const char *text, struct arena *a)
{
	struct entry_point *points;
	size_t count;

	entry_points_parse(text, a, &points, &count);
	for (size_t i = 0; i < count; i++) {
		fail_unless(*points[i].line && !points[i].name == !points[i].target);
		fail_unless(!points[i].name || strstr(points[i].line, points[i].name));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	struct wheel_headers h = {0};
	struct err e = {0};

	read_entry_points(arena_strndup(&a, (const char *)data, size), &a);
	if (wheel_headers_parse(&(struct file_bytes){(const char *)data, size, "fuzz"}, &a, &h,
				&e) != 0) {
		fail_unless(e.kind == ERR_INTEGRITY && e.msg[0] && h.count == 0);
		return 0;
	}

	const char *text = wheel_headers_text(&h, &a);
	fail_unless(strlen(text) == size && (size == 0 || memcmp(text, data, size) == 0));
	change(&h, &a);
	return 0;
}
