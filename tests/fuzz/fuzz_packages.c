/* Any bytes as the index of an archive and as its list of files: what comes out keeps the rules, and packages that are
 * resolved are all of the index. */
#include <string.h>

#include "base/path.h"
#include "base/sys/digest.h"
#include "core/archive/inrelease.h"
#include "core/archive/resolve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail_unless(bool ok)
{
	if (!ok)
		abort();
}

static void try_resolve(const struct archive_packages *packages, struct arena *a)
{
	struct strlist asked = {0};
	const struct archive_package **got = NULL;
	size_t count = 0;
	struct err e = {0};
	strlist_add(&asked, a, packages->items[0].name);
	const struct resolve_request q = {.packages = packages, .arch = "amd64", .asked = &asked, .essential = true};
	if (resolve(&q, a, &got, &count, &e) != 0) {
		fail_unless(e.kind == ERR_CONFIG && e.msg[0]);
		return;
	}
	fail_unless(count > 0);
	for (size_t i = 0; i < count; i++)
		fail_unless(got[i] >= packages->items && got[i] < packages->items + packages->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	struct archive_packages packages = {0};
	struct inrelease release;
	struct err e = {0};
	if (inrelease_parse((const char *)data, size, "fuzz", &a, &release, &e) == 0)
		for (size_t i = 0; i < release.count; i++)
			fail_unless(path_is_safe_relative(release.files[i].path) &&
				    digest_valid_hex(release.files[i].sha256));
	if (packages_parse((const char *)data, size, "fuzz", "amd64", &a, &packages, &e) != 0) {
		fail_unless(e.kind == ERR_INTEGRITY && e.msg[0] && packages.count == 0);
		return 0;
	}
	for (size_t i = 0; i < packages.count; i++) {
		const struct archive_package *p = &packages.items[i];
		fail_unless(path_is_safe_relative(p->path) && digest_valid_hex(p->sha256) && p->size > 0);
		fail_unless(archive_name_valid(p->name) && archive_version_valid(p->version));
	}
	if (packages.count && packages_sort(&packages, &e) == 0)
		try_resolve(&packages, &a);
	return 0;
}
