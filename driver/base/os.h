/* What differs between operating systems: os_linux.c and os_darwin.c, one of which is built.
 * Everything else keeps to what both have (ci/check-portable). */
#pragma once
#include <pthread.h>
#include <sys/types.h>

#include "base/cleanup.h"

#ifdef __APPLE__ /* POSIX' names for a file's times */
#define st_atim st_atimespec
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
extern char **environ;
#endif

/* All that can fail gives -1 with errno. */
/* os_open_cancel: blocks SIGINT, SIGTERM and SIGHUP; the descriptor becomes and stays readable once
 * one of them came. */
int os_open_cancel(void);
/* os_program_path: the running program's file, NUL-terminated. */
int os_program_path(char *ret, size_t size) MUST_CHECK;
int os_random(void *data, size_t len) MUST_CHECK;
/* os_boot_id: one text for each start of the machine, "" if unknown. */
void os_boot_id(char *ret, size_t size);
/* os_errno_text: strerror(3) in English, from any thread. */
const char *os_errno_text(int number) __attribute__((returns_nonnull));
/* os_pipe, os_memory_file (a nameless file): closed by exec. */
int os_pipe(int ends[2]) MUST_CHECK;
int os_memory_file(void) MUST_CHECK;
/* os_copy: copy_file_range(2), with `in_at` as there; ENOSYS where there is no such call. */
ssize_t os_copy(int in, off_t *in_at, int out, size_t len) MUST_CHECK;
/* os_rename_new: renames and never replaces (EEXIST). os_rename_swap: exchanges two paths. Both
 * fail with EINVAL or ENOSYS where the file system lacks the call. */
int os_rename_new(int from_dir, const char *from, int to_dir, const char *to) MUST_CHECK;
int os_rename_swap(const char *from, const char *to) MUST_CHECK;
/* os_open_beneath: openat2(2), which follows no link and stays below `dir`; ENOSYS where there is
 * no such call. */
int os_open_beneath(int dir, const char *path, int flags) MUST_CHECK;
/* os_chmod_beside: fchmodat(2) that follows no link. */
int os_chmod_beside(int dir, const char *name, mode_t mode);
/* Hints: the whole file will be read once, in order; these bytes may be written back now. */
void os_will_read(int fd);
void os_begin_writing(int fd, off_t at, off_t len);
/* os_sync_disk: all that was written to the file system of an open file is on its disk. */
int os_sync_disk(int fd) MUST_CHECK;
/* os_process_fd: readable once the process has ended; -1 where there is no such thing. */
int os_process_fd(pid_t pid);
/* os_die_with_parent: kills this process when its parent dies; 0 also where that is impossible. */
int os_die_with_parent(void) MUST_CHECK;
/* os_close_on_exec_from: marks all descriptors from `first` on; -1 where there is no such call. */
int os_close_on_exec_from(int first) MUST_CHECK;
/* os_user_outside: returns the number that a user of this user namespace has in the parent
 * namespace; -1: none. */
int os_user_outside(uid_t user, uid_t *ret) MUST_CHECK;
/* os_processors: returns how many processors this process may run on; at least 1. */
unsigned os_processors(void);
/* os_list_processors: the numbers of at most `max` of them, ascending, and how many; 0 where a
 * process cannot be held to some. */
unsigned os_list_processors(unsigned *ret, unsigned max);
/* os_memory: bytes of the machine where its free memory cannot be read; else UINT64_MAX. */
uint64_t os_memory(void);
/* os_cond_init: a condition whose waits ignore changes of the clock. os_cond_wait: at most that
 * many seconds. */
void os_cond_init(pthread_cond_t *c);
void os_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, double seconds);
