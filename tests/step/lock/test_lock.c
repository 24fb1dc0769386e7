#include "archive_fixture.h"

#include "step/lock/drift.h"
#include "step/lock/lock_diff.h"
#include "step/lock/lock_make.h"

#define ASKED "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OTHER "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define MONDAY "Mon, 05 Jan 2026 08:00:00 UTC"
#define TUESDAY "Tue, 06 Jan 2026 08:00:00 UTC"

static const char *const main_only[] = {"main", NULL};
static const struct strlist components = {.items = (const char **)main_only, .count = 1};

static struct lock_request request(struct test_archive *t, const char *names, struct strlist *packages)
{
	strlist_split(packages, &t->arena, names, " ");
	return (struct lock_request){.part = "debian13",
				     .platform = "x86_64-linux",
				     .asked = ASKED,
				     .archive = "debian",
				     .suite = "trixie",
				     .components = &components,
				     .packages = packages,
				     .essential = true,
				     .keyring = t->keyring};
}

static int make(struct test_archive *t, const struct lock_request *q, struct world_lock *ret, struct err *e)
{
	const struct archive_get get = {.user = t, .get = archive_from_dir};
	return lock_make(q, &get, test_run(), &t->arena, ret, e);
}

static const char *shown(struct test_archive *t, const struct world_lock *l)
{
	struct strlist names = {0};
	for (size_t i = 0; i < l->count; i++)
		strlist_addf(&names, &t->arena, "%s=%s", l->entries[i].name, l->entries[i].version);
	strlist_sort(&names);
	return strlist_join(&names, &t->arena, " ");
}

static void fill(struct test_archive *t)
{
	archive_start(t);
	archive_add(t, "base-files", "13", "Essential: yes\n");
	archive_add(t, "gcc", "14.2", "Depends: libc6 (>= 2.41)\nRecommends: manpages\n");
	archive_add(t, "libc6", "2.41", "");
	archive_add(t, "manpages", "1", "");
}

static void a_lock_from_the_archive(void **state)
{
	(void)state;
	struct test_archive t = {0};
	struct strlist packages = {0};
	struct world_lock l, again;
	struct err e = {0};
	AUTO_BUF struct buf text = {0}, AUTO_BUF text_again = {0};
	fill(&t);
	archive_sign(&t, MONDAY, "");
	struct lock_request q = request(&t, "gcc", &packages);
	assert_ok(make(&t, &q, &l, &e), &e);
	assert_string_equal(shown(&t, &l), "base-files=13 gcc=14.2 libc6=2.41");
	assert_string_equal(l.date, "2026-01-05T08:00:00Z");
	assert_string_equal(l.suite, "trixie");
	/* what is written is a lock */
	world_lock_write(&l, &text);
	assert_ok(world_lock_parse(buf_cstr(&text), text.len, "debian13.lock", &t.arena, &again, &e), &e);
	world_lock_write(&again, &text_again);
	assert_string_equal(buf_cstr(&text), buf_cstr(&text_again));

	/* a new index with the same packages changes nothing; what the lock says of itself stays */
	archive_sign(&t, TUESDAY, "");
	again.tree = OTHER;
	q.before = &again;
	assert_ok(make(&t, &q, &l, &e), &e);
	assert_string_equal(l.date, "2026-01-05T08:00:00Z");
	assert_string_equal(l.tree, OTHER);
	/* another request does */
	q.asked = OTHER;
	assert_ok(make(&t, &q, &l, &e), &e);
	assert_string_equal(l.date, "2026-01-06T08:00:00Z");
	assert_null(l.tree);
	/* and an index that is older than the lock's is a mirror that stands still */
	archive_sign(&t, "Sun, 04 Jan 2026 08:00:00 UTC", "");
	assert_err(make(&t, &q, &l, &e), &e, ERR_INTEGRITY, "older than that of the lock");
	archive_stop(&t);
}

static void a_toolkit_leaves_out_the_base(void **state)
{
	(void)state;
	struct test_archive t = {0};
	struct strlist packages = {0}, nvcc = {0};
	struct world_lock base, l;
	struct err e = {0};
	fill(&t);
	archive_add(&t, "nvcc", "12.4", "Depends: gcc, libcudart (= 12.4)\n");
	archive_add(&t, "libcudart", "12.4", "Depends: libc6\n");
	archive_sign(&t, MONDAY, "");
	struct lock_request q = request(&t, "gcc", &packages);
	assert_ok(make(&t, &q, &base, &e), &e);
	struct lock_request toolkit = request(&t, "nvcc", &nvcc);
	struct world_entry wheel = {.kind = WORLD_WHEEL,
				    .name = "nvidia-nccl",
				    .version = "2",
				    .arch = "",
				    .sha256 = OTHER,
				    .place = "n.whl",
				    .size = 1};
	const struct world_lock before = {
		.part = "cuda12_4", .platform = "x86_64-linux", .asked = OTHER, .entries = &wheel, .count = 1};
	toolkit.part = "cuda12_4";
	toolkit.essential = false;
	toolkit.base = &base;
	toolkit.base_packages = &packages;
	toolkit.before = &before;
	assert_ok(make(&t, &toolkit, &l, &e), &e);
	assert_string_equal(shown(&t, &l), "libcudart=12.4 nvcc=12.4 nvidia-nccl=2");
	/* a base that is locked otherwise than the archive is now */
	base.entries[0].version = "0";
	assert_err(make(&t, &toolkit, &l, &e), &e, ERR_CONFIG,
		   "the lock of 'debian13' has 'base-files' 0, the archive 13");
	assert_contains(e.hint, "ptbuild world lock debian13");
	archive_stop(&t);
}

static void archives_that_lie(void **state)
{
	(void)state;
	struct test_archive t = {0}, other = {0};
	struct strlist packages = {0};
	struct world_lock l;
	struct err e = {0};
	fill(&t);
	struct lock_request q = request(&t, "gcc", &packages);
	archive_sign(&t, MONDAY, "Valid-Until: " TUESDAY "\n");
	assert_err(make(&t, &q, &l, &e), &e, ERR_INTEGRITY, "expired at 2026-01-06T08:00:00Z");
	archive_sign(&t, MONDAY, "");
	q.suite = "bookworm";
	assert_err(make(&t, &q, &l, &e), &e, ERR_NETWORK, "no index of 'bookworm'");
	archive_run("cp", "-r", path_join(&t.arena, t.dir, "dists/trixie"),
		    path_join(&t.arena, t.dir, "dists/bookworm"), NULL);
	assert_err(make(&t, &q, &l, &e), &e, ERR_INTEGRITY, "answers for 'bookworm' with the suite 'stable' (trixie)");
	q.suite = "trixie";
	q.platform = "aarch64-linux";
	assert_err(make(&t, &q, &l, &e), &e, ERR_CONFIG, "no packages of the component 'main' for 'arm64'");
	q.platform = "riscv64-linux";
	assert_err(make(&t, &q, &l, &e), &e, ERR_CONFIG, "Debian has no packages for the platform 'riscv64-linux'");
	q.platform = "x86_64-linux";
	/* packages that are not those of the signature, and a signature of somebody else */
	const char *index = path_join(&t.arena, t.dir, "dists/trixie/main/binary-amd64/Packages");
	AUTO_FREE char *text = test_read(index);
	text[strlen(text) / 2] ^= 1;
	test_write(index, text);
	assert_err(make(&t, &q, &l, &e), &e, ERR_INTEGRITY, "wrong bytes");
	archive_start(&other);
	q.keyring = other.keyring;
	assert_err(make(&other, &q, &l, &e), &e, ERR_NETWORK, "no index of 'trixie'");
	archive_stop(&other);
	buf_release(&t.packages);
	arena_release(&t.arena);
}

static void the_difference_of_locks(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct lock_diff d;
	struct world_entry x[] = {
		{.name = "cpp", .version = "1", .arch = "amd64", .sha256 = ASKED, .place = "c", .size = 1},
		{.name = "gcc", .version = "1", .arch = "amd64", .sha256 = ASKED, .place = "g", .size = 1},
		{.name = "old", .version = "1", .arch = "amd64", .sha256 = ASKED, .place = "o", .size = 1},
		{.name = "same", .version = "1", .arch = "all", .sha256 = ASKED, .place = "s", .size = 1}};
	struct world_entry y[] = {x[3], x[1], x[0], x[2]};
	struct world_lock before = {.asked = ASKED, .entries = x, .count = 4},
			  after = {.asked = ASKED, .entries = y, .count = 4};
	lock_compare(&before, &after, &a, &d);
	assert_int_equal(d.count, 0);
	assert_false(d.other_request);
	y[1].version = "2"; /* gcc */
	y[1].size = 7;
	y[2].sha256 = OTHER; /* cpp */
	y[3].name = "new";   /* old */
	lock_compare(&before, &after, &a, &d);
	assert_int_equal(d.count, 4);
	assert_string_equal(d.changes[0].name, "cpp");
	assert_true(d.changes[0].same_version);
	assert_string_equal(d.changes[1].name, "gcc");
	assert_string_equal(d.changes[1].before, "1");
	assert_string_equal(d.changes[1].after, "2");
	assert_int_equal(d.changes[1].size, 7);
	assert_string_equal(d.changes[2].name, "new");
	assert_null(d.changes[2].before);
	assert_string_equal(d.changes[3].name, "old");
	assert_null(d.changes[3].after);
	assert_int_equal(d.added, 1);
	assert_int_equal(d.removed, 1);
	assert_int_equal(d.changed, 2);
	lock_compare(NULL, &after, &a, &d);
	assert_int_equal(d.added, 4);
}

/* The lock of the first packages, an archive that went on to the second, and the entry of one name gone. */
static int drift_of(struct test_archive *t, const struct world_lock *l, const char *name, struct world_lock *ret,
		    struct drift *d, struct err *e)
{
	const struct archive_get get = {.user = t, .get = archive_from_dir};
	const struct archive_suite suite = {.archive = "debian",
					    .suite = "trixie",
					    .arch = "amd64",
					    .components = &components,
					    .keyring = t->keyring};
	struct archive_index index;
	bool *gone = arena_array(&t->arena, l->count, sizeof(*gone));
	for (size_t i = 0; i < l->count; i++)
		gone[i] = strcmp(l->entries[i].name, name) == 0;
	assert_ok(archive_index_read(&suite, &get, test_run(), &t->arena, &index, e), e);
	return drift_resolve(l, gone, &index, &t->arena, ret, d, e);
}

static void drift_is_told_and_fits(void **state)
{
	(void)state;
	struct test_archive t = {0};
	struct strlist packages = {0};
	struct world_lock l, now;
	struct drift d;
	struct err e = {0};
	char key[65], key_now[65];
	fill(&t);
	archive_sign(&t, MONDAY, "");
	struct lock_request q = request(&t, "gcc", &packages);
	assert_ok(make(&t, &q, &l, &e), &e);
	l.tree = OTHER;
	buf_reset(&t.packages);
	archive_add(&t, "base-files", "13", "Essential: yes\n");
	archive_add(&t, "gcc", "14.3", "Depends: libc6 (>= 2.40)\n");
	archive_add(&t, "gcc", "14.10", "Depends: libc6 (>= 2.40)\n");
	archive_add(&t, "libc6", "2.42", "Depends: libnew\n");
	archive_add(&t, "libnew", "1", "");
	archive_sign(&t, TUESDAY, "");
	assert_ok(drift_of(&t, &l, "gcc", &now, &d, &e), &e);
	assert_int_equal(d.count, 1);
	assert_string_equal(d.changes[0].name, "gcc");
	assert_string_equal(d.changes[0].locked, "14.2");
	assert_string_equal(d.changes[0].present, "14.10");
	assert_string_equal(shown(&t, &now), "base-files=13 gcc=14.10 libc6=2.41");
	assert_string_equal(now.date, "2026-01-06T08:00:00Z");
	assert_null(now.tree);
	world_lock_key(&l, "rules", key);
	world_lock_key(&now, "rules", key_now);
	assert_string_not_equal(key, key_now);
	/* nothing gone, nothing new */
	assert_ok(drift_of(&t, &l, "nothing", &now, &d, &e), &e);
	assert_int_equal(d.count, 0);
	assert_string_equal(now.tree, OTHER);
	/* the present version needs what the lock lacks */
	assert_err(drift_of(&t, &l, "libc6", &now, &d, &e), &e, ERR_NETWORK, "do not fit the lock of 'debian13'");
	assert_contains(e.msg, "libnew");
	assert_contains(e.hint, "ptbuild world lock debian13 --platform x86_64-linux");
	/* it is the very version that the index has: the mirror is not whole */
	assert_err(drift_of(&t, &l, "base-files", &now, &d, &e), &e, ERR_NETWORK,
		   "the archive's index has nothing newer (13)");
	/* it is nowhere */
	l.entries[0].name = "vanished";
	assert_err(drift_of(&t, &l, "vanished", &now, &d, &e), &e, ERR_NETWORK, "in every version");
	const bool gone[] = {true, false, true};
	assert_err(drift_refuse(&l, gone, &e), &e, ERR_NETWORK, "2 packages of 'debian13'");
	assert_contains(e.msg, "vanished 13, libc6 2.41");
	archive_stop(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_from_the_archive), cmocka_unit_test(a_toolkit_leaves_out_the_base),
		cmocka_unit_test(archives_that_lie),       cmocka_unit_test(the_difference_of_locks),
		cmocka_unit_test(drift_is_told_and_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
