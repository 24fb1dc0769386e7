/* The tree of processes below one, read from /proc. Cheap enough for once a second; processes that
 * end meanwhile are simply not in it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"

struct proctree_item {
	pid_t pid, parent;
	uint64_t started;   /* ticks since boot: with the pid it names a process for ever */
	double cpu_seconds; /* user and system, of it and of its children that were waited for */
	/* as the kernel counts it at hand: shared pages count for each process that maps them */
	uint64_t rss_bytes;
	long threads;
	char name[16]; /* the program's, cut */
};

/* proctree_read: `root` first, then all below it, parents before their children. None when root is
 * not there. Where the kernel does not list children (CONFIG_PROC_CHILDREN), all processes of the
 * machine are looked at. */
void proctree_read(pid_t root, struct arena *a, struct proctree_item **ret, size_t *ret_count);
/* proctree_scan: the same by looking at all processes of the machine, whatever the kernel can
 * do. */
void proctree_scan(pid_t root, struct arena *a, struct proctree_item **ret, size_t *ret_count);
/* proctree_command: the arguments of a process, each ended by a NUL, appended to `out`; what is
 * beyond 128 KiB is cut off. False when it is gone. */
bool proctree_command(pid_t pid, struct buf *out);
/* proctree_peak: the largest resident set it ever had, in bytes; 0 when it is gone. */
uint64_t proctree_peak(pid_t pid);
/* proctree_cwd: its working directory as it sees it itself; NULL when that cannot be known. */
char *proctree_cwd(pid_t pid, struct arena *a);
