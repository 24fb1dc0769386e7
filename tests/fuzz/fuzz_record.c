/* Any bytes as a RECORD: rows that were read are
 * read again the same from what is written of them. */
#include <string.h>

#include "core/wheel/wheel.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};
	struct wheel_record_row *rows = NULL, *again;
	size_t count = 0, count_again;
	struct err e = {0};

	if (wheel_record_parse((const char *)data, size, "fuzz", &a, &rows, &count, &e) != 0) {
		fail_unless(e.kind == ERR_INTEGRITY && e.msg[0] && !rows);
		return 0;
	}

	for (size_t i = 0; i < count; i++)
		wheel_record_line(&text, rows[i].path, rows[i].digest, rows[i].size);
	fail_unless(wheel_record_parse(buf_cstr(&text), text.len, "written", &a, &again,
				       &count_again, &e) == 0);
	fail_unless(count == count_again);
	for (size_t i = 0; i < count; i++) {
		fail_unless(strcmp(rows[i].path, again[i].path) == 0 &&
			    strcmp(rows[i].digest, again[i].digest) == 0);
		fail_unless(rows[i].size == again[i].size && rows[i].path[0]);
	}

	return 0;
}
