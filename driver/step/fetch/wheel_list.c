#include "step/fetch/wheel_list.h"

#include <string.h>

#include "base/buf.h"
#include "base/sys/fs.h"
#include "step/fetch/wheel_index.h"

int wheel_list(struct store *store, const char *asked, const struct fetch_options *o, const struct run *run,
	       struct arena *a, struct wheel_page *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const char *index = NULL, *file;
	if (wheel_index(run, a, &index, e) < 0 || (!index && wheel_index_default(run, a, &index, e) < 0))
		return -1;
	const char *url = wheel_page_url(index, arena_strndup(a, asked, strcspn(asked, "=")), a);
	if (fetch_page(store, url, WHEEL_PAGE_ACCEPT, WHEEL_PAGE_MAX, o, run, a, &file, e) < 0 ||
	    fs_read(TRUSTED, file, WHEEL_PAGE_MAX, &text, e) < 0)
		return -1;
	return wheel_page_parse(text.data, text.len, url, a, ret, e);
}
