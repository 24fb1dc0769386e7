/* Makes a build tree safe to resume after a kill or a loss of power. */
#pragma once
#include "base/cleanup.h"
#include "base/err.h"
#include "base/run.h"

/* MEND_WINDOW_S: what was written less than this before a loss of power may not have reached the
 * disk: Linux writes dirty pages back after 30 s (vm.dirty_expire_centisecs), looking every 5 s. */
#define MEND_WINDOW_S 120

/* build_mend: after a kill all that was written is there: torn last records of ninja's logs are
 * cut, and what distutils keeps outside any log (build/lib.*, bdist.*) is removed, since a
 * half-copied library there would pass for a whole one. After a reboot (another boot id than the
 * last run's) files may be empty or have holes though ninja's log calls them done: outputs that are
 * empty, or were written within MEND_WINDOW_S of the last, are removed; if CMake's files or the
 * sources are that young, the build directory or the whole tree is made again. It logs what it
 * does. Nothing outside `build_dir`/src is touched, whatever the logs name. */
int build_mend(const char *build_dir, const struct run *run, struct err *e) MUST_CHECK;
