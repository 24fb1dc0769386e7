#include "archive_fixture.h"

#include "step/lock/lock_make.h"

#define ASKED "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OTHER "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define MONDAY "Mon, 05 Jan 2026 08:00:00 UTC"
#define TUESDAY "Tue, 06 Jan 2026 08:00:00 UTC"

static const char *const main_only[] = {"main", NULL};

static struct world_part part(struct test_archive *t, const char *name, const char *kind,
			      const char *names)
{
	struct strlist packages = {0};

	strlist_split(&packages, &t->arena, names, " ");
	return (struct world_part){.part = name,
				   .kind = kind,
				   .suite = "trixie",
				   .manifest = "",
				   .components = (const char **)main_only,
				   .components_count = 1,
				   .packages = packages.items,
				   .packages_count = (unsigned)packages.count};
}

static struct lock_request request(struct test_archive *t, const struct world_part *p)
{
	struct strlist *addresses = arena_alloc(&t->arena, sizeof(*addresses));

	*addresses = (struct strlist){0};
	strlist_ref(addresses, &t->arena, t->dir);
	return (struct lock_request){.run = test_run(),
				     .part = p,
				     .platform = "x86_64-linux",
				     .archive = "debian",
				     .addresses = addresses,
				     .keyring = t->keyring};
}

static int make(struct test_archive *t, const struct lock_request *q, struct world_lock *ret,
		struct err *e)
{
	return lock_make(q, &t->arena, ret, e);
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
	archive_add(t, "gcc", "1:14.2~1+b2", "Depends: libc6 (>= 2.41)\nRecommends: manpages\n");
	archive_add(t, "libc6", "2.41", "");
	archive_add(t, "manpages", "1", "");
}

static void a_lock_from_the_archive(void **state)
{
	(void)state;
	struct test_archive t = {0};
	struct world_lock l, again;
	struct err e = {0};
	fill(&t);
	archive_sign(&t, MONDAY, "");
	struct world_part p = part(&t, "debian13", "base", "gcc");
	struct lock_request q = request(&t, &p);
	assert_ok(make(&t, &q, &l, &e), &e);
	assert_string_equal(shown(&t, &l), "base-files=13 gcc=1:14.2~1+b2 libc6=2.41");
	assert_string_equal(l.date, "2026-01-05T08:00:00Z");
	assert_string_equal(l.suite, "trixie");
	const struct world_entry *gcc = world_lock_find(&l, WORLD_DEB, "gcc");
	assert_string_equal(gcc->place, "pool/gcc_1:14.2~1+b2_amd64.deb");
	assert_string_equal(gcc->arch, "amd64");
	assert_int_equal(gcc->size, strlen("gcc 1:14.2~1+b2"));
	/* what is written is a lock */
	const char *path = path_join(&t.arena, t.home, "debian13.lock");
	assert_ok(world_lock_save(&l, path, &e), &e);
	assert_ok(world_lock_read(path, &t.arena, &again, &e), &e);
	assert_string_equal(shown(&t, &again), shown(&t, &l));

	/* a new index with the same packages changes nothing; what the lock says of itself stays */
	archive_sign(&t, TUESDAY, "");
	again.tree = OTHER;
	q.before = &again;
	assert_ok(make(&t, &q, &l, &e), &e);
	assert_string_equal(l.date, "2026-01-05T08:00:00Z");
	assert_string_equal(l.tree, OTHER);
	/* another request does */
	again.asked = OTHER;
	assert_ok(make(&t, &q, &l, &e), &e);
	assert_string_equal(l.date, "2026-01-06T08:00:00Z");
	assert_null(l.tree);
	/* and an index that is older than the lock's is a mirror that stands still */
	archive_sign(&t, "Sun, 04 Jan 2026 08:00:00 UTC", "");
	assert_err(make(&t, &q, &l, &e), &e, ERR_INTEGRITY, "older than that of the lock");
	archive_stop(&t);
}

/* Of alternatives the first, unless another is asked for
 * before; recommended ones are left out, and apt itself. */
static void the_order_of_the_table_chooses(void **state)
{
	(void)state;
	struct test_archive t = {0};
	struct world_lock l;
	struct err e = {0};
	fill(&t);
	archive_add(&t, "numpy", "2", "Depends: libblas3 | libblas.so.3\n");
	archive_add(&t, "libblas3", "3", "Provides: libblas.so.3\n");
	archive_add(&t, "openblas", "0", "Provides: libblas.so.3\n");
	archive_add(&t, "apt", "3", "Essential: yes\n");
	archive_sign(&t, MONDAY, "");
	const struct world_part other = part(&t, "debian13", "base", "numpy"),
				ours = part(&t, "debian13", "base", "openblas numpy");
	struct lock_request q = request(&t, &other);
	assert_ok(make(&t, &q, &l, &e), &e);
	assert_string_equal(shown(&t, &l), "base-files=13 libblas3=3 numpy=2");
	q.part = &ours;
	assert_ok(make(&t, &q, &l, &e), &e);
	assert_string_equal(shown(&t, &l), "base-files=13 numpy=2 openblas=0");
	archive_stop(&t);
}

static void a_toolkit_leaves_out_the_base(void **state)
{
	(void)state;
	struct test_archive t = {0};
	struct world_lock base, l;
	struct err e = {0};
	fill(&t);
	archive_add(&t, "nvcc", "12.4", "Depends: gcc, libcudart (= 12.4)\n");
	archive_add(&t, "libcudart", "12.4", "Depends: libc6\n");
	archive_sign(&t, MONDAY, "");
	const struct world_part debian = part(&t, "debian13", "base", "gcc"),
				cuda = part(&t, "cuda12_4", "toolkit", "nvcc");
	struct lock_request q = request(&t, &debian), toolkit = request(&t, &cuda);
	assert_ok(make(&t, &q, &base, &e), &e);
	struct world_entry wheel = {.kind = WORLD_WHEEL,
				    .name = "nvidia-nccl",
				    .version = "2",
				    .arch = "",
				    .sha256 = OTHER,
				    .place = "n.whl",
				    .size = 1};
	const struct world_lock before = {.part = "cuda12_4",
					  .platform = "x86_64-linux",
					  .asked = OTHER,
					  .entries = &wheel,
					  .count = 1};
	toolkit.base = &debian;
	toolkit.base_lock = &base;
	toolkit.before = &before;
	assert_ok(make(&t, &toolkit, &l, &e), &e);
	assert_string_equal(shown(&t, &l), "libcudart=12.4 nvcc=12.4 nvidia-nccl=2");
	/* a base that is locked otherwise than the archive is now */
	for (size_t i = 0; i < base.count; i++)
		if (strcmp(base.entries[i].name, "base-files") == 0)
			base.entries[i].version = "0";
	assert_err(make(&t, &toolkit, &l, &e), &e, ERR_CONFIG,
		   "the lock of 'debian13' has 'base-files' 0, the archive 13");
	assert_contains(e.hint, "ptbuild world lock debian13");
	archive_stop(&t);
}

static void archives_that_lie(void **state)
{
	(void)state;
	struct test_archive t = {0};
	struct world_lock l;
	struct err e = {0};
	fill(&t);
	struct world_part p = part(&t, "debian13", "base", "gcc");
	struct lock_request q = request(&t, &p);
	archive_sign(&t, MONDAY, "Valid-Until: " TUESDAY "\n");
	assert_err(make(&t, &q, &l, &e), &e, ERR_INTEGRITY, "has expired");
	archive_sign(&t, MONDAY, "");
	p.suite = "bookworm";
	assert_err(make(&t, &q, &l, &e), &e, ERR_NETWORK, "cannot read the index of 'bookworm'");
	archive_run("cp", "-r", path_join(&t.arena, t.dir, "dists/trixie"),
		    path_join(&t.arena, t.dir, "dists/bookworm"), NULL);
	assert_err(make(&t, &q, &l, &e), &e, ERR_INTEGRITY,
		   "answers for 'bookworm' with the suite 'stable' (trixie)");
	p.suite = "trixie";
	q.platform = "aarch64-linux";
	assert_err(make(&t, &q, &l, &e), &e, ERR_CONFIG,
		   "apt-get cannot have the packages together");
	q.platform = "x86_64-linux";
	const struct world_part none = part(&t, "debian13", "base", "nothing"),
				torn = part(&t, "debian13", "base", "broken");
	q.part = &none;
	assert_err(make(&t, &q, &l, &e), &e, ERR_CONFIG, "Unable to locate package nothing");
	archive_add(&t, "broken", "1", "Depends: nowhere\n");
	archive_sign(&t, MONDAY, "");
	q.part = &torn;
	/* apt 2: "broken : Depends: nowhere" */
	assert_err(make(&t, &q, &l, &e), &e, ERR_CONFIG, "nowhere");
	/* apt 3: "broken:amd64 Depends nowhere" */
	assert_non_null(strstr(e.msg, "broken"));
	q.part = &p;
	/* packages that are not those of the signature, and a text that nobody signed */
	const char *index = path_join(&t.arena, t.dir, "dists/trixie/main/binary-amd64/Packages");
	const char *release = path_join(&t.arena, t.dir, "dists/trixie/InRelease");
	AUTO_FREE char *text = test_read(index);
	AUTO_FREE char *lies = test_read(release);
	text[strlen(text) / 2] ^= 1;
	test_write(index, text);
	assert_err(make(&t, &q, &l, &e), &e, ERR_INTEGRITY, "Hash Sum mismatch");
	strstr(lies, "Origin: Debian")[8] = 'X';
	test_write(release, lies);
	assert_err(make(&t, &q, &l, &e), &e, ERR_INTEGRITY,
		   "the signature of 'InRelease' is not good");
	archive_stop(&t);
}

/* One validator: what the reader refuses is not written. */
static void no_lock_is_written_that_cannot_be_read(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_ARENA struct arena a = {0};
	struct world_entry x = {.kind = WORLD_DEB,
				.name = "gcc",
				.version = "1",
				.arch = "amd64",
				.sha256 = ASKED,
				.place = "pool/a#b.deb",
				.size = 1};
	const struct world_lock l = {.part = "p",
				     .platform = "x86_64-linux",
				     .asked = ASKED,
				     .archive = "debian",
				     .suite = "trixie",
				     .release = ASKED,
				     .date = "2026-01-05T08:00:00Z",
				     .entries = &x,
				     .count = 1};
	const char *path = path_join(&a, test_dir(), "p.lock");
	assert_err(world_lock_save(&l, path, &e), &e, ERR_INTEGRITY,
		   "p.lock:5: not a URL of that kind");
	assert_false(fs_exists(TRUSTED, path));
	x.place = "pool/a.deb";
	assert_ok(world_lock_save(&l, path, &e), &e);
	test_teardown(NULL);
}

static void the_difference_of_locks(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct world_entry x[] = {{.name = "cpp",
				   .version = "1",
				   .arch = "amd64",
				   .sha256 = ASKED,
				   .place = "c",
				   .size = 1},
				  {.name = "gcc",
				   .version = "1",
				   .arch = "amd64",
				   .sha256 = ASKED,
				   .place = "g",
				   .size = 1},
				  {.name = "old",
				   .version = "1",
				   .arch = "amd64",
				   .sha256 = ASKED,
				   .place = "o",
				   .size = 1},
				  {.name = "same",
				   .version = "1",
				   .arch = "all",
				   .sha256 = ASKED,
				   .place = "s",
				   .size = 1}};
	struct world_entry y[] = {x[3], x[1], x[0], x[2]};
	struct world_lock before = {.asked = ASKED, .entries = x, .count = 4},
			  after = {.asked = ASKED, .entries = y, .count = 4};
	AUTO_JSON json_t *none = lock_compare(&before, &after, &a);
	assert_int_equal(json_array_size(json_object_get(none, "changes")), 0);
	assert_false(json_is_true(json_object_get(none, "other_request")));
	assert_false(lock_differs(none));
	y[1].version = "2"; /* gcc */
	y[1].size = 7;
	y[2].sha256 = OTHER; /* cpp */
	y[3].name = "new";   /* old */
	AUTO_JSON json_t *diff = lock_compare(&before, &after, &a);
	AUTO_JSON json_t *want = json_pack(
		"{s:b, s:i, s:i, s:i, s:[{s:s, s:s, s:s, s:s, s:i, s:b}, {s:s, s:s, s:s, s:s, s:i, "
		"s:b},"
		" {s:s, s:s, s:n, s:s, s:i, s:b}, {s:s, s:s, s:s, s:n, s:i, s:b}]}",
		"other_request", false, "added", 1, "removed", 1, "changed", 2, "changes", "kind",
		"deb", "name", "cpp", "before", "1", "after", "1", "bytes", 1, "same_version", true,
		"kind", "deb", "name", "gcc", "before", "1", "after", "2", "bytes", 7,
		"same_version", false, "kind", "deb", "name", "new", "before", "after", "1",
		"bytes", 1, "same_version", false, "kind", "deb", "name", "old", "before", "1",
		"after", "bytes", 0, "same_version", false);
	assert_true(json_equal(diff, want));
	assert_true(lock_differs(diff));
	AUTO_JSON json_t *all = lock_compare(NULL, &after, &a);
	assert_int_equal(json_int(all, "added"), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_from_the_archive),
		cmocka_unit_test(the_order_of_the_table_chooses),
		cmocka_unit_test(a_toolkit_leaves_out_the_base),
		cmocka_unit_test(archives_that_lie),
		cmocka_unit_test(no_lock_is_written_that_cannot_be_read),
		cmocka_unit_test(the_difference_of_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
