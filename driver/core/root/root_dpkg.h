/* The package database of a root that dpkg keeps. For root.c only. */
#pragma once
#include "base/buf.h"
#include "core/root/root.h"

/* root_dpkg_text: one "package architecture version status" line per entry of the database, sorted;
 * 1 when there is one, 0 when there is none, -1 on error. */
int root_dpkg_text(const struct root *r, struct buf *out, struct err *e) MUST_CHECK;
