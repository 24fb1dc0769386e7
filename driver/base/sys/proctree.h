/* The tree of processes below one, read from /proc, cheaply enough for once a second. Processes
 * that end meanwhile are left out. */
#pragma once

#include "base/base.h"

struct proctree_item {
	pid_t pid, parent;
	uint64_t started;   /* ticks since boot: with the pid it names a process for ever */
	double cpu_seconds; /* user and system, of it and of its children that were waited for */
	/* shared pages count for each process that maps them */
	uint64_t rss_bytes;
	long threads;
	char name[16]; /* the program's, cut */
};

/* proctree_read: `root` first, then all below it, parents before their children; none when root is
 * gone. Where the kernel does not list children (CONFIG_PROC_CHILDREN) it is proctree_scan, which
 * looks at all processes of the machine. */
void proctree_read(pid_t root, struct arena *a, struct proctree_item **ret, size_t *ret_count);
void proctree_scan(pid_t root, struct arena *a, struct proctree_item **ret, size_t *ret_count);
/* proctree_command: the arguments, each ended by a NUL, appended to `out`, at most 128 KiB. False
 * when the process is gone. */
bool proctree_command(pid_t pid, struct buf *out);
/* proctree_peak: the largest resident set it ever had, in bytes; 0 when it is gone. */
uint64_t proctree_peak(pid_t pid);
/* proctree_own: the memory that it has and no other process shares by a file, in bytes. */
uint64_t proctree_own(pid_t pid);
/* proctree_cwd: its working directory as it sees it; NULL when that is unknown. */
char *proctree_cwd(pid_t pid, struct arena *a);
