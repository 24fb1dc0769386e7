/* Pages of the Python index: whatever a server sends. */
#include <stddef.h>
#include <string.h>

#include "fuzz.h"
#include "step/fetch/fetch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const pages[] = {"https://index.invalid/simple/toy/",
					    "http://127.0.0.1:1/toy/"};

	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		AUTO_ARENA struct arena a = {0};
		struct err e = {0};
		struct wheel_page p = {0};
		if (wheel_page_parse(&(struct file_bytes){(const char *)data, size, pages[i]}, &a,
				     &p, &e) < 0)
			continue;
		for (size_t k = 0; k < p.count; k++) {
			const struct wheel_listed *f = &p.files[k];
			if (strchr(f->name, '/') || strncmp(f->url, "http", 4) != 0 ||
			    !wheel_page_find(&p, f->name))
				abort();
			if (i == 0 && strncmp(f->url, "https:", 6) != 0)
				abort();
		}
	}

	return 0;
}
