#include "core/fatbin/fatbin.h"

struct reader {
	const char *at, *end;
};

static bool begins(const struct reader *r, const char *word)
{
	const size_t n = strlen(word);
	return (size_t)(r->end - r->at) > n && memcmp(r->at, word, n) == 0;
}

/* Blanks and comments; false at the end. */
static bool skip(struct reader *r)
{
	while (r->at < r->end) {
		const char *close;
		if (isspace((unsigned char)*r->at)) {
			r->at++;
			continue;
		}

		if (begins(r, "//"))
			close = memchr(r->at, '\n', (size_t)(r->end - r->at));
		else if (begins(r, "/*"))
			close = memmem(r->at + 2, (size_t)(r->end - r->at) - 2, "*/", 2);
		else
			return true;
		if (!close)
			return false;
		r->at = close + (*close == '*' ? 2 : 1);
	}

	return false;
}

/* ".version 8.7" and ".target sm_90a, debug" begin
 * every module (PTX ISA, "PTX Module Directives"). */
bool fatbin_text(const void *data, size_t size, struct fatbin_entry *ret)
{
	static const char version[] = ".version", target[] = ".target";
	struct reader r = {data, (const char *)data + size};
	struct fatbin_entry entry = {
		.kind = FATBIN_PTX, .number = FATBIN_PTX, .size = size, .raw_size = size};
	size_t n = 0;

	if (!skip(&r) || !begins(&r, version))
		return false;
	r.at += strlen(version);
	if (!skip(&r))
		return false;
	while (r.at < r.end && (isdigit((unsigned char)*r.at) || *r.at == '.'))
		r.at++;
	if (!skip(&r) || !begins(&r, target))
		return false;
	r.at += strlen(target);
	if (!skip(&r) || !begins(&r, "sm_"))
		return false;
	for (r.at += 3;
	     r.at < r.end && isalnum((unsigned char)*r.at) && n + 1 < sizeof(entry.target); r.at++)
		entry.target[n++] = *r.at;
	if (!isdigit((unsigned char)entry.target[0]))
		return false;
	*ret = entry;
	return true;
}
