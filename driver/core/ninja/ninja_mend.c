#include "core/ninja/ninja_log.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Format: ninja's src/deps_log.cc. */
#define SIGNATURE "# ninjadeps\n"
#define VERSION 4
#define MAX_RECORD (((uint32_t)1 << 19) - 1)
#define DEPS_FLAG ((uint32_t)1 << 31)

size_t ninja_mend_log(const char *text, size_t len)
{
	const char *nul = memchr(text, '\0', len);
	size_t n = nul ? (size_t)(nul - text) : len;
	while (n && text[n - 1] != '\n')
		n--;
	return n;
}

static uint32_t word(const char *p)
{
	uint32_t w;
	memcpy(&w, p, sizeof(w)); /* in the order of this machine, as ninja writes it */
	return w;
}

/* A path ends with the complement of its number. */
static bool is_path(const char *p, uint32_t size, uint32_t count)
{
	return size >= 8 && word(p + size - 4) == ~count;
}

/* Output, time (64 bits), then the inputs, all by number. */
static bool is_deps(const char *p, uint32_t size, uint32_t count)
{
	if (size < 12 || word(p) >= count)
		return false;
	for (uint32_t i = 12; i < size; i += 4)
		if (word(p + i) >= count)
			return false;
	return true;
}

size_t ninja_mend_deps(const char *data, size_t len)
{
	const size_t head = strlen(SIGNATURE) + 4;
	uint32_t count = 0;
	if (len < head || memcmp(data, SIGNATURE, strlen(SIGNATURE)) != 0 || word(data + strlen(SIGNATURE)) != VERSION)
		return len;
	size_t at = head;
	while (len - at >= 4) {
		uint32_t size = word(data + at) & ~DEPS_FLAG;
		bool deps = word(data + at) & DEPS_FLAG;
		const char *p = data + at + 4;
		if (size > MAX_RECORD || size % 4 || len - at - 4 < size)
			break;
		if (deps ? !is_deps(p, size, count) : !is_path(p, size, count))
			break;
		count += !deps;
		at += 4 + size;
	}
	return at;
}
