/* Lists GPU code as `cuobjdump -all -lelf` and `-lptx` name it: "cubin sm_90a", "PTX
 * sm_90", a line an entry, in the order of the file. For tests/gpu/compare_cuobjdump.py. */
#include <stdio.h>

#include "base/sys/fs.h"
#include "core/fatbin/fatbin.h"

static void print(const struct fatbin_entry *entry, struct arena *a)
{
	printf("%s sm_%s%s%s\n", fatbin_kind_name(entry->kind, entry->number, a), entry->target,
	       *entry->member ? " " : "", entry->member);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		AUTO_ARENA struct arena a = {0};
		struct fatbin_summary s;
		struct fatbin_entries all = {0};
		struct err e = {0};
		AUTO_MAPPING struct fs_mapping m = {0};
		if (fs_map(argv[i], &m, &e) < 0 ||
		    fatbin_scan(&(struct file_bytes){m.data, m.size, argv[i]}, &a, &all, &e) < 0 ||
		    fatbin_summarize(&(struct file_bytes){m.data, m.size, argv[i]}, &a, &s, &e) <
			    0) {
			fprintf(stderr, "%s\n", e.msg);
			return 1;
		}

		for (size_t k = 0; k < all.count; k++)
			print(&all.items[k], &a);
		for (size_t k = 0; k < s.wrong.count; k++)
			fprintf(stderr, "%s: %s\n", argv[i], s.wrong.items[k]);
		if (s.wrong.count)
			return 1;
	}

	return 0;
}
