/* Build trees after an end that was none: a kill, a loss of power. */
#pragma once
#include "base/cleanup.h"
#include "base/err.h"
#include "base/run.h"

/* MEND_WINDOW_S: what was written less than this before a loss of power may never have reached the
 * disk: Linux writes dirty pages back after 30 seconds (vm.dirty_expire_centisecs), and looks every
 * 5. */
#define MEND_WINDOW_S 120

/* build_mend: makes the tree in `build_dir` safe to go on in. After a kill all that was written is
 * there: torn last records of ninja's logs are cut, and what distutils keeps outside any log
 * (build/lib.*, bdist.*) is removed, since a half-copied library there would be taken for a whole
 * one. After a start of the machine (the boot's number is not the one of the last run) files may be
 * empty or hold holes though ninja's log calls them done: outputs that are empty or were written
 * within MEND_WINDOW_S of the latest are removed, so that they are made again; if CMake's files or
 * the sources themselves are that young, the build directory or the whole tree is. Says so. Nothing
 * outside `build_dir`/src is touched, whatever the logs name. */
int build_mend(const char *build_dir, const struct run *run, struct err *e) MUST_CHECK;
