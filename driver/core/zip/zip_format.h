/* Numbers of the ZIP format (APPNOTE 6.3) that reader and writer share. */
#pragma once
#include <stdint.h>

enum {
	ZIP_LOCAL_LEN = 30,
	ZIP_CENTRAL_LEN = 46,
	ZIP_END_LEN = 22,
	ZIP_END64_LEN = 56,
	ZIP_LOCATOR_LEN = 20,
	ZIP_EXTRA_64 = 1,
	ZIP_FLAG_DESCRIPTOR = 1 << 3,
	ZIP_FLAG_UTF8 = 1 << 11,
	ZIP_STORED = 0,
	ZIP_DEFLATED = 8,
	ZIP_UNIX = 3,
	ZIP_MAX16 = 0xffff,
};

#define ZIP_MAX32 0xffffffffu
#define ZIP_LOCAL_SIG 0x04034b50u
#define ZIP_CENTRAL_SIG 0x02014b50u
#define ZIP_END_SIG 0x06054b50u
#define ZIP_END64_SIG 0x06064b50u
#define ZIP_LOCATOR_SIG 0x07064b50u
#define ZIP_DESCRIPTOR_SIG 0x08074b50u

static inline uint16_t zip_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t zip_get32(const uint8_t *p)
{
	return (uint32_t)zip_get16(p) | (uint32_t)zip_get16(p + 2) << 16;
}

static inline uint64_t zip_get64(const uint8_t *p)
{
	return (uint64_t)zip_get32(p) | (uint64_t)zip_get32(p + 4) << 32;
}
