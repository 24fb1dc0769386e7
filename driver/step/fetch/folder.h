/* A folder of the user's as a source: the archive that it makes, the same for the same files. */
#pragma once
#include "base/arena.h"
#include "base/err.h"

/* folder_pack: writes a tar of the files in `dir`, below `top` in it, to `fd` (-1: nowhere) and
 * gives its sha256. Left out are .git, build, dist and virtual environments at the top, and
 * bytecode; modes become 0644 or 0755, times the beginning of 1980. ERR_USAGE for what is no
 * folder, holds neither files nor links, or is larger than FOLDER_MAX. */
#define FOLDER_MAX (UINT64_C(2) << 30)
int folder_pack(const char *dir, const char *top, int fd, char hex[65], struct err *e) MUST_CHECK;
