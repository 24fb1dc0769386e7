#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "step/compile/build_parts.h"

#define MARKER "src.ok"

int build_mend(const char *build_dir, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct build_state last, now;
	struct strlist names = {0};
	if (!build_state_read(build_dir, &last))
		return 0;
	build_state_now(&now);
	if (strcmp(last.boot, now.boot) != 0 && fs_exists(build_dir, MARKER)) {
		log_info(run->log,
			 "the machine was restarted since the last run in this tree, whose last files may not "
			 "have reached the disk: beginning anew, with the compiler cache");
		return fs_remove(build_dir, MARKER, e);
	}
	if (!fs_is_dir(build_dir, BUILD_TREE))
		return 0;
	/* distutils keeps no log and goes by time stamps: half a library, left by a kill or a full disk while it was
	 * copied, is newer than its origin and would go into the wheel. */
	if (fs_list(build_dir, BUILD_TREE, &a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if ((strncmp(names.items[i], "lib.", 4) == 0 || strncmp(names.items[i], "bdist.", 6) == 0) &&
		    fs_remove(build_dir, path_join(&a, BUILD_TREE, names.items[i]), e) < 0)
			return -1;
	return 0;
}
