/* The root of a world: what packages, tables and archives become, and what is refused. */
#include "deb_make.h"

#include "base/path.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "core/root/root.h"
#include "craft_zip.h"
#include "step/world/world_tree.h"

static struct arena arena;
static struct err err;
static struct world_tree tree;
static struct world_piece pieces[2];
static struct world_entry entries[2][24];
static const char *paths[2][24];
static struct world_part parts[2];
static struct world w;
static const char *top; /* of the tree */

static int setup(void **state)
{
	(void)state;
	test_dir();
	err_clear(&err);
	memset(parts, 0, sizeof(parts));
	parts[0] = (struct world_part){.part = "base1", .kind = "base", .prefix = ""};
	parts[1] =
		(struct world_part){.part = "kit1", .kind = "toolkit", .prefix = "usr/local/kit"};
	for (size_t i = 0; i < 2; i++)
		pieces[i] = (struct world_piece){
			.part = &parts[i], .lock = {.part = parts[i].part, .entries = entries[i]}};
	w = (struct world){
		.name = "base1", .platform = "x86_64-linux", .pieces = pieces, .count = 1};
	digest_data("key", 3, w.key);
	top = arena_strdup(&arena, test_path("tree"));
	return 0;
}

static int teardown(void **state)
{
	buf_release(&tree.manifest);
	tree = (struct world_tree){0};
	arena_release(&arena);
	return test_teardown(state);
}

static const char *here(const char *name)
{
	return arena_strdup(&arena, test_path("%s", name));
}

static void add_file(size_t piece, enum world_kind kind, const char *name, const char *place,
		     const struct buf *bytes)
{
	size_t n = pieces[piece].lock.count++;
	const char *path = here(arena_printf(&arena, "files/%zu-%zu", piece, n));

	test_write_bytes(path, bytes->data, bytes->len);
	entries[piece][n] = (struct world_entry){.kind = kind,
						 .name = name,
						 .version = "1",
						 .arch = kind == WORLD_DEB ? "amd64" : "",
						 .place = place,
						 .size = bytes->len};
	paths[piece][n] = path;
}

static void deb_with(size_t piece, const char *name, const char *more, const struct deb_entry *e,
		     size_t count)
{
	AUTO_BUF struct buf ar = {0};

	deb_bytes(&ar,
		  arena_printf(&arena, "Package: %s\nVersion: 1\nArchitecture: amd64\n%s", name,
			       more),
		  e, count, XZ);
	add_file(piece, WORLD_DEB, name, "pool/a.deb", &ar);
}

#define DEB(name, more, ...)                                                                       \
	do {                                                                                       \
		const struct deb_entry es[] = {__VA_ARGS__};                                       \
		deb_with(0, name, more, es, ARRAY_LEN(es));                                        \
	} while (0)

static int make_in(const char *dir, unsigned jobs)
{
	const char *const *const files[] = {paths[0], paths[1]};
	const struct toolkit_rules *rules;

	assert_ok(toolkit_rules_load(PROFILES_DIR, &arena, &rules, &err), &err);
	assert_ok(fs_mkdirs(TRUSTED, dir, &err), &err);
	buf_release(&tree.manifest);
	const struct world_tree_request q = {&w,   files, rules, dir,
					     jobs, NULL,  NULL,  .run = test_run()};
	return world_tree_make(&q, &arena, &tree, &err);
}

static int make(void)
{
	assert_ok(fs_remove(TRUSTED, top, &err), &err);
	return make_in(top, 3);
}

static struct stat look(const char *path)
{
	struct stat st = {0};

	if (lstat(path_join(&arena, top, path), &st) < 0)
		st.st_mode = 0;
	return st;
}

static void has(const char *path, const char *text, mode_t mode)
{
	AUTO_FREE char *got = test_read(path_join(&arena, top, path));

	if (!got)
		fail_msg("'%s' is missing", path);
	assert_string_equal(got, text);
	assert_int_equal(look(path).st_mode, S_IFREG | mode);
}

static void is_link(const char *path, const char *to)
{
	char got[256] = "";
	ssize_t n = readlink(path_join(&arena, top, path), got, sizeof(got) - 1);

	if (n <= 0)
		fail_msg("'%s' is not a link", path);
	assert_string_equal(got, to);
}

static bool lacks(const char *path)
{
	return look(path).st_mode == 0;
}

#define DIR_ENTRY(n)                                                                               \
	{                                                                                          \
		.name = (n), .mode = S_IFDIR | 0755                                                \
	}
#define LINK_ENTRY(n, t)                                                                           \
	{                                                                                          \
		.name = (n), .to = (t), .mode = S_IFLNK | 0777                                     \
	}
#define HARD_ENTRY(n, t)                                                                           \
	{                                                                                          \
		.name = (n), .to = (t), .hard = true                                               \
	}

static void packages_become_a_root(void **state)
{
	(void)state;
	DEB("a", "Multi-Arch: same\n", DIR_ENTRY("./"), DIR_ENTRY("./bin/"),
	    {.name = "./bin/tool", .data = "#!", .mode = S_IFREG | 04711},
	    HARD_ENTRY("./bin/twin", "./bin/tool"),
	    {.name = "./lib/x86_64-linux-gnu/libc.so", .data = "elf", .mtime = MTIME + 7},
	    LINK_ENTRY("./usr/lib/libc.so", "/lib/x86_64-linux-gnu/libc.so"),
	    {.name = "./etc/a.conf", .data = "conf", .mode = S_IFREG | 0600},
	    {.name = "./var/mail/", .mode = S_IFDIR | 02775, .mtime = MTIME + 5},
	    LINK_ENTRY("./etc/up", "../usr/x"));
	DEB("b", "Description: b\n more\n", LINK_ENTRY("./lib64", "usr/lib64"),
	    LINK_ENTRY("./bin", "usr/bin"),
	    {.name = "./usr/bin/other", .data = "", .mode = S_IFREG | 0755},
	    {.name = "./usr/share/\xc3\xa9 x", .data = "utf8"});
	assert_ok(make(), &err);
	has("usr/bin/tool", "#!", 0755);
	has("usr/bin/twin", "#!", 0755);
	assert_int_equal(look("usr/bin/twin").st_ino, look("usr/bin/tool").st_ino);
	has("usr/lib/x86_64-linux-gnu/libc.so", "elf", 0644);
	has("etc/a.conf", "conf", 0644);
	has("usr/share/\xc3\xa9 x", "utf8", 0644);
	is_link("usr/lib/libc.so", "/lib/x86_64-linux-gnu/libc.so");
	is_link("etc/up", "../usr/x");
	is_link("bin", "usr/bin");
	is_link("sbin", "usr/sbin");
	is_link("lib", "usr/lib");
	is_link("lib64", "usr/lib64");
	assert_int_equal(look("var/mail").st_mode, S_IFDIR | 0755);
	assert_int_equal(look("var/mail").st_mtime, MTIME + 5);
	assert_int_equal(look("usr/lib/x86_64-linux-gnu/libc.so").st_mtime, MTIME + 7);
	assert_int_equal(look("usr/bin/tool").st_mtime, MTIME);
	assert_int_equal(look("etc/ptbuild-world").st_mtime, MTIME + 7);
	assert_int_equal(look("tmp").st_mtime, MTIME + 7);
	assert_true(S_ISDIR(look("proc").st_mode) && S_ISDIR(look("dev").st_mode) &&
		    S_ISDIR(look("var/tmp").st_mode));
	has("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n", 0644);
	has("etc/ptbuild-world", arena_printf(&arena, "base1 x86_64-linux %s\n", w.key), 0644);
	has("var/lib/dpkg/status",
	    "Package: a\nStatus: install ok installed\nVersion: 1\nArchitecture: "
	    "amd64\nMulti-Arch: same\n\n"
	    "Package: b\nStatus: install ok installed\nVersion: 1\nArchitecture: "
	    "amd64\nDescription: b\n more\n\n",
	    0644);
	has("var/lib/dpkg/info/b.list", "/.\n/lib64\n/bin\n/usr/bin/other\n/usr/share/\xc3\xa9 x\n",
	    0644);
	assert_true(lacks("var/lib/dpkg/info/a.list") && !lacks("var/lib/dpkg/info/a:amd64.list"));
	assert_true(lacks(".ptbuild-world"));
}

static void the_root_knows_its_packages(void **state)
{
	struct root r;
	struct strlist files = {0};
	AUTO_BUF struct buf text = {0};
	struct world_stamp stamp;

	(void)state;
	DEB("a", "Multi-Arch: same\n", {.name = "./lib/a.so", .data = "a"});
	DEB("b", "", {.name = "./usr/bin/b", .data = "b", .mode = S_IFREG | 0755});
	assert_ok(make(), &err);
	assert_ok(root_open(top, &arena, &r, &err), &err);
	static const char *const owned[][2] = {
		{"/usr/lib/a.so", "a=1"}, {"/lib/a.so", "a=1"}, {"/bin/b", "b=1"}};
	for (size_t i = 0; i < ARRAY_LEN(owned); i++) {
		const char *package;
		assert_ok(root_package_of(&r, owned[i][0], &arena, &package, &err), &err);
		assert_string_equal(package, owned[i][1]);
	}

	assert_ok(root_package_files(&r, "a=1", &arena, &files, &err), &err);
	assert_int_equal(files.count, 2);
	assert_int_equal(root_dpkg_text(&r, &text, &err), 1);
	assert_string_equal(
		buf_cstr(&text),
		"dpkg\na amd64 1 install ok installed\nb amd64 1 install ok installed\n");
	assert_int_equal(world_read_stamp(top, &arena, &stamp, &err), 1);
	assert_string_equal(stamp.name, "base1");
	assert_string_equal(stamp.key, w.key);
}

static void excluded_and_kept(void **state)
{
	static const char *exclude[] = {"usr/share/doc/*", "usr/share/man/*"},
			  *keep[] = {"usr/share/doc/*/copyright"};

	(void)state;
	parts[0].exclude = exclude;
	parts[0].exclude_count = 2;
	parts[0].keep = keep;
	parts[0].keep_count = 1;
	DEB("a", "", DIR_ENTRY("./usr/share/doc/a"),
	    {.name = "./usr/share/doc/a/copyright", .data = "c"},
	    {.name = "./usr/share/doc/a/NEWS", .data = "n"}, DIR_ENTRY("./usr/share/doc/b"),
	    LINK_ENTRY("./usr/share/doc/c", "a"), LINK_ENTRY("./usr/share/doc/a/CHANGES", "NEWS"),
	    {.name = "./usr/share/man/a.1", .data = "m"},
	    HARD_ENTRY("./usr/share/man/b.1", "./usr/share/man/a.1"));
	assert_ok(make(), &err);
	has("usr/share/doc/a/copyright", "c", 0644);
	has("usr/share/doc/c/copyright", "c", 0644);
	assert_true(lacks("usr/share/doc/a/CHANGES"));
	assert_true(lacks("usr/share/doc/a/NEWS") && lacks("usr/share/doc/b") &&
		    lacks("usr/share/man"));
	has("var/lib/dpkg/info/a.list",
	    "/.\n/usr/share/doc/a\n/usr/share/doc/a/copyright\n/usr/share/doc/a/NEWS\n/usr/share/"
	    "doc/b\n"
	    "/usr/share/doc/c\n/usr/share/doc/a/CHANGES\n/usr/share/man/a.1\n/usr/share/man/b.1\n",
	    0644);
}

static void links_and_files_of_the_table(void **state)
{
	struct world_link links[] = {{"usr/bin/cc", "gcc", "x"},
				     {"usr/lib/@/b.so", "c/b.so", "x"},
				     {"etc/same", "x", "x"}};
	struct world_made made[] = {{"etc/passwd", "copy", "usr/share/passwd.master", "x"},
				    {"etc/certs/all.crt", "join", "usr/share/certs", "x"}};

	(void)state;
	parts[0].links = links;
	parts[0].links_count = 3;
	parts[0].made = made;
	parts[0].made_count = 2;
	DEB("a", "", {.name = "./usr/share/passwd.master", .data = "root"},
	    {.name = "./usr/share/certs/b.crt", .data = "B"},
	    {.name = "./usr/share/certs/a/z.crt", .data = "A\n"},
	    {.name = "./usr/share/certs/README", .data = "no"}, LINK_ENTRY("./etc/same", "x"));
	assert_ok(make(), &err);
	is_link("usr/bin/cc", "gcc");
	is_link("usr/lib/x86_64-linux-gnu/b.so", "c/b.so");
	has("etc/passwd", "root", 0644);
	has("etc/certs/all.crt", "A\nB\n", 0644);
	DEB("b", "", {.name = "./usr/bin/cc", .data = "mine"});
	assert_err(make(), &err, ERR_CONFIG, "cannot create 'usr/bin/cc': 'b' has it");
	pieces[0].lock.count--;
	made[0].from = "usr/share/none";
	assert_err(make(), &err, ERR_CONFIG,
		   "there is no 'usr/share/none' to make 'etc/passwd' of");
}

static void one_path_of_two_packages(void **state)
{
	(void)state;
	DEB("a", "", {.name = "./usr/x", .data = "one"}, LINK_ENTRY("./usr/l", "x"));
	DEB("b", "", {.name = "./usr/x", .data = "one", .mtime = MTIME + 1},
	    LINK_ENTRY("./usr/l", "x"));
	assert_ok(make(), &err);
	has("usr/x", "one", 0644);
	assert_int_equal(look("usr/x").st_mtime, MTIME);
	assert_true(lacks(".ptbuild-world"));
	DEB("c", "", {.name = "./usr/x", .data = "two"});
	assert_err(make(), &err, ERR_INTEGRITY,
		   "'a' and 'c' both have 'usr/x', with different contents");
	pieces[0].lock.count--;
	DEB("c", "Replaces: a (<< 2), b\n", {.name = "./usr/x", .data = "two", .mtime = MTIME + 2},
	    LINK_ENTRY("./usr/l", "y"));
	assert_ok(make(), &err);
	has("usr/x", "two", 0644);
	is_link("usr/l", "y");
	assert_int_equal(look("usr/x").st_mtime, MTIME + 2);
	DEB("d", "", {.name = "./usr/x/y", .data = "two"});
	assert_err(make(), &err, ERR_INTEGRITY,
		   "both have 'usr/x', which is a directory in one of them alone");
}

static void a_replaced_file_has_hard_links(void **state)
{
	(void)state;
	DEB("a", "", {.name = "./usr/x", .data = "one"}, HARD_ENTRY("./usr/x2", "./usr/x"));
	DEB("b", "Replaces: a\n", {.name = "./usr/x", .data = "two"},
	    HARD_ENTRY("./usr/x3", "./usr/x"));
	assert_ok(make(), &err);
	has("usr/x", "two", 0644);
	has("usr/x2", "one", 0644);
	has("usr/x3", "two", 0644);
}

static void refused(const struct deb_entry *e, size_t count, const char *message)
{
	pieces[0].lock.count = 0;
	deb_with(0, "bad", "", e, count);
	assert_err(make(), &err, ERR_INTEGRITY, message);
	assert_contains(err.msg, "'bad'");
	assert_int_equal(test_count_entries(test_path("outside")), 1);
}

#define REFUSED(message, ...)                                                                      \
	do {                                                                                       \
		const struct deb_entry es[] = {__VA_ARGS__};                                       \
		refused(es, ARRAY_LEN(es), message);                                               \
	} while (0)

static void what_packages_may_not_have(void **state)
{
	char deep[3200], name[300];
	const char *outside = here("outside");

	(void)state;
	test_write(here("outside/kept"), "kept");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i < sizeof(deep) - 1; i++)
		deep[i] = i % 2 ? '/' : 'd';
	deep[sizeof(deep) - 1] = '\0';
	REFUSED("'..' in its name", {.name = "./usr/../../x", .data = "x"});
	REFUSED("absolute name", {.name = "/usr/x", .data = "x"});
	REFUSED("control byte", {.name = "./usr/a\nb", .data = "x"});
	REFUSED("not UTF-8", {.name = "./usr/\xff", .data = "x"});
	REFUSED("device", {.name = "./dev/null", .mode = S_IFCHR | 0666});
	REFUSED("device", {.name = "./dev/pipe", .mode = S_IFIFO | 0666});
	REFUSED("is there twice", {.name = "./usr/x", .data = "1"},
		{.name = "./usr/x", .data = "2"});
	REFUSED("is there twice", {.name = "./bin/x", .data = "1"},
		{.name = "./usr/bin/x", .data = "1"});
	REFUSED("leaves the tree", LINK_ENTRY("./usr/x", "../../x"));
	REFUSED("control byte", LINK_ENTRY("./usr/x", "a\tb"));
	REFUSED("a directory in one of them alone", LINK_ENTRY("./usr/o", outside),
		{.name = "./usr/o/x", .data = "x"});
	REFUSED("a directory in one of them alone", {.name = "./usr/o/x", .data = "x"},
		LINK_ENTRY("./usr/o", outside));
	REFUSED("not a file of it before", HARD_ENTRY("./usr/x", "./usr/none"));
	REFUSED("'..' in its name", HARD_ENTRY("./usr/x", "../outside/kept"));
	REFUSED("absolute name", HARD_ENTRY("./usr/x", arena_printf(&arena, "%s/kept", outside)));
	REFUSED("not a file of it before", LINK_ENTRY("./usr/l", "x"),
		HARD_ENTRY("./usr/x", "./usr/l"));
	REFUSED("reserves", {.name = "./.ptbuild-world/0", .data = "x"});
	REFUSED("longer than", {.name = arena_printf(&arena, "./usr/%s", name), .data = "x"});
	REFUSED("longer than", {.name = deep, .data = "x"});
}

static void another_package_than_the_lock_says(void **state)
{
	(void)state;
	DEB("a", "", {.name = "./usr/x", .data = "x"});
	entries[0][0].version = "2";
	assert_err(make(), &err, ERR_INTEGRITY,
		   "its control file says a 1 amd64, the lock a 2 amd64");
	entries[0][0].version = "1";
	entries[0][0].arch = "all";
	assert_err(make(), &err, ERR_INTEGRITY, "the lock a 1 all");
	entries[0][0].arch = "amd64";
	entries[0][0].name = "b";
	assert_err(make(), &err, ERR_INTEGRITY, "'b': its control file says a 1");
	test_write(paths[0][0], "not a package");
	assert_err(make(), &err, ERR_INTEGRITY, "world 'base1': 'b': damaged");
}

/* The same manifest and the same times whatever the
 * umask, the number of threads, and who comes first. */
static void the_same_every_time(void **state)
{
	char first[65] = "";

	(void)state;
	for (int i = 0; i < 12; i++) {
		const char *name = arena_printf(&arena, "p%02d", i);
		AUTO_BUF struct buf more = {0};
		buf_printf(&more, "Replaces: p%02d\n", i - 1);
		const struct deb_entry es[] = {
			{.name = "./usr/", .mode = S_IFDIR | 0755, .mtime = MTIME + i},
			{.name = arena_printf(&arena, "./usr/share/%s", name), .data = name},
			{.name = "./usr/same", .data = "same", .mtime = MTIME + 20 - i},
			{.name = arena_printf(&arena, "./usr/pair%d", i / 2), .data = name},
			{.name = arena_printf(&arena, "./usr/big%d", i),
			 .size = (size_t)(i % 3) << 18},
		};
		deb_with(0, name, i % 2 ? buf_cstr(&more) : "", es, ARRAY_LEN(es));
	}

	for (unsigned i = 0; i < 12; i++) {
		mode_t before = umask(i % 2 ? 077 : 022);
		assert_ok(fs_remove(TRUSTED, top, &err), &err);
		int rc = make_in(top, 1 + i % 5);
		umask(before);
		assert_ok(rc, &err);
		if (i == 0)
			memcpy(first, tree.digest, sizeof(first));
		assert_string_equal(tree.digest, first);
		has("usr/pair3", "p07", 0644);
		assert_int_equal(look("usr/same").st_mtime, MTIME + 20);
		assert_int_equal(look("usr").st_mtime, MTIME + 11);
		assert_int_equal(look("").st_mode & 07777, 0755);
	}

	assert_string_equal(tree.digest,
			    (digest_data(tree.manifest.data, tree.manifest.len, first), first));
}

static void a_toolkit_lies_over_the_base(void **state)
{
	AUTO_BUF struct buf zip = {0};
	const struct craft_entry wheel[] = {
		{.name = "nvidia/cu13/bin/nvcc", .data = "#!", .mode = S_IFREG | 0744},
		{.name = "nvidia/cu13/lib/libcudart.so.13", .data = "elf", .mode = S_IFREG | 0755},
	};
	struct craft_zip z = {0};
	char alone[65], part[65];

	(void)state;
	DEB("a", "", {.name = "./usr/local/x", .data = "x"});
	assert_ok(make(), &err);
	memcpy(alone, tree.parts[0], sizeof(alone));
	craft_zip(&z, wheel, 2);
	zip = z.bytes;
	z = (struct craft_zip){0};
	add_file(1, WORLD_WHEEL, "nvidia-cuda-nvcc", "nvidia_cuda_nvcc-1-py3-none-any.whl", &zip);
	const struct deb_entry over[] = {{.name = "./usr/local/y", .data = "y"}};
	deb_with(1, "kitlib", "", over, 1);
	w.count = 2;
	w.name = "base1+kit1";
	assert_ok(make(), &err);
	has("usr/local/kit/bin/nvcc", "#!", 0755);
	has("usr/local/y", "y", 0644);
	is_link("usr/local/kit/targets/x86_64-linux/lib/libcudart.so", "libcudart.so.13");
	assert_int_equal(look("usr/local/kit/bin/nvcc").st_mtime, MTIME);
	assert_int_equal(look("usr/local/kit/version.json").st_mtime, MTIME);
	assert_int_equal(look("usr/local/kit/bin").st_mtime, MTIME);
	/* a part is the same whatever else is there */
	assert_string_equal(tree.parts[0], alone);
	memcpy(part, tree.parts[1], sizeof(part));
	DEB("b", "", {.name = "./usr/share/z", .data = "z"});
	assert_ok(make(), &err);
	assert_string_equal(tree.parts[1], part);
	assert_string_not_equal(tree.parts[0], alone);
	assert_contains(buf_cstr(&tree.manifest), "\tusr/local/kit/bin/nvcc\n");
}

/* cuDNN of a wheel beside the toolkit that Debian has in /usr. */
static void a_wheel_of_a_toolkit_with_places_goes_to_the_system(void **state)
{
	AUTO_BUF struct buf zip = {0};
	const struct craft_entry wheel[] = {
		{.name = "nvidia/cudnn/include/cudnn.h", .data = "h"},
		{.name = "nvidia/cudnn/lib/libcudnn.so.9", .data = "elf", .mode = S_IFREG | 0755},
		{.name = "nvidia/cudnn/LICENSE", .data = "law"},
		{.name = "nvidia/__init__.py", .data = ""},
	};
	struct craft_zip z = {0};

	(void)state;
	struct world_wheel places[] = {
		{"nvidia-cudnn", "nvidia/cudnn/include", "usr/include"},
		{"nvidia-cudnn", "nvidia/cudnn/lib", "usr/lib/@"},
		{"nvidia-cudnn", "nvidia/cudnn", "usr/share/doc/nvidia-cudnn"}};
	parts[1].places = places;
	parts[1].places_count = ARRAY_LEN(places);
	DEB("a", "", {.name = "./usr/local/x", .data = "x"});
	craft_zip(&z, wheel, ARRAY_LEN(wheel));
	zip = z.bytes;
	add_file(1, WORLD_WHEEL, "nvidia-cudnn", "nvidia_cudnn-1-py3-none-any.whl", &zip);
	w.count = 2;
	w.name = "base1+kit1";
	assert_ok(make(), &err);
	has("usr/include/cudnn.h", "h", 0644);
	has("usr/lib/x86_64-linux-gnu/libcudnn.so.9", "elf", 0755);
	has("usr/share/doc/nvidia-cudnn/LICENSE", "law", 0644);
	assert_true(lacks("usr/local/kit") && lacks("usr/share/doc/nvidia-cudnn/lib"));
	places[2].from = "nvidia/other";
	assert_err(make(), &err, ERR_INTEGRITY, "'nvidia-cudnn': has nothing in 'nvidia/other'");
	parts[1].places_count = 0;
}

static void a_base_has_wheels_too(void **state)
{
	AUTO_BUF struct buf zip = {0};
	const struct craft_entry wheel[] = {
		{.name = "cmake/data/", .data = "", .mode = S_IFDIR | 0755},
		{.name = "cmake/data/bin/cmake", .data = "new", .mode = S_IFREG | 0744},
		{.name = "cmake/data/share/vim/x", .data = "vim"},
		{.name = "cmake/data/share/Modules/M.cmake", .data = "m", .mode = S_IFREG | 0600},
		{.name = "cmake/__init__.py", .data = "python"},
		{.name = "cmake-1.dist-info/licenses/AUTHORS", .data = "they"},
		{.name = "cmake-1.dist-info/METADATA", .data = "meta"},
	};
	const char *const without[] = {"*/vim/*"};
	struct craft_zip z = {0};

	(void)state;
	struct world_wheel place = {"cmake", "cmake/data", "usr/local"};
	parts[0].places = &place;
	parts[0].places_count = 1;
	parts[0].exclude = (const char **)(uintptr_t)without;
	parts[0].exclude_count = 1;
	DEB("cmake", "", {.name = "./usr/bin/cmake", .data = "old", .mode = S_IFREG | 0755},
	    {.name = "./usr/local/share/a", .data = "a"});
	craft_zip(&z, wheel, ARRAY_LEN(wheel));
	zip = z.bytes;
	add_file(0, WORLD_WHEEL, "cmake", "cmake-1-py3-none-manylinux_2_17_x86_64.whl", &zip);
	assert_ok(make(), &err);
	has("usr/bin/cmake", "old", 0755);
	has("usr/local/bin/cmake", "new", 0755);
	has("usr/local/share/Modules/M.cmake", "m", 0644);
	has("usr/local/share/a", "a", 0644);
	has("usr/share/doc/cmake/AUTHORS", "they", 0644);
	assert_true(lacks("usr/local/share/vim") && lacks("usr/share/doc/cmake/METADATA"));
	assert_true(lacks("usr/local/__init__.py") && lacks("usr/local/cmake"));
	assert_contains(buf_cstr(&tree.manifest), "\tusr/local/bin/cmake\n");
	place.from = ".";
	place.to = "usr/lib/python";
	assert_ok(make(), &err);
	has("usr/lib/python/cmake/data/bin/cmake", "new", 0755);
	has("usr/lib/python/cmake-1.dist-info/METADATA", "meta", 0644);
	place.from = "cmake/other";
	assert_err(make(), &err, ERR_INTEGRITY, "'cmake': has nothing in 'cmake/other'");
	parts[0].places_count = 0;
	assert_err(make(), &err, ERR_CONFIG,
		   "part 'base1' is not a toolkit, so 'cmake' has no install path in it");
	parts[0].kind = "python";
	assert_err(make(), &err, ERR_CONFIG,
		   "part 'base1' is not a toolkit, so 'cmake' has no install path in it");
}

static void a_python_goes_to_its_prefix(void **state)
{
	static const struct deb_entry only[] = {
		{.name = "python/", .mode = S_IFDIR | 0755},
		{.name = "python/bin/python3.12", .data = "elf", .mode = S_IFREG | 0755},
		{.name = "python/bin/python3", .to = "python3.12", .mode = S_IFLNK | 0777},
		{.name = "python/bin/2to3", .to = "python/bin/python3.12", .hard = true},
	};
	static const struct deb_entry full[] = {
		{.name = "python/build/x.o", .data = "o"},
		{.name = "python/PYTHON.json", .data = "{}"},
		{.name = "python/install/bin/python3.12", .data = "elf", .mode = S_IFREG | 0755},
	};

	(void)state;
	parts[1].kind = "python";
	parts[1].prefix = "opt/python3.12";
	DEB("a", "", {.name = "./usr/local/x", .data = "x"});
	w.count = 2;
	for (int i = 0; i < 2; i++) {
		AUTO_BUF struct buf tar = {0};
		pieces[1].lock.count = 0;
		tar_bytes(&tar, i ? full : only, i ? 3 : 4, i ? ZST : GZ);
		add_file(1, WORLD_FILE, "cpython", "https://example.org/p.tar.gz", &tar);
		assert_ok(make(), &err);
		has("opt/python3.12/bin/python3.12", "elf", 0755);
		assert_true(lacks("opt/python3.12/build") && lacks("opt/python3.12/PYTHON.json"));
		if (!i) {
			is_link("opt/python3.12/bin/python3", "python3.12");
			has("opt/python3.12/bin/2to3", "elf", 0755);
		}
	}

	AUTO_BUF struct buf other = {0};
	const struct deb_entry nothing[] = {{.name = "other/x", .data = "x"}};
	pieces[1].lock.count = 0;
	tar_bytes(&other, nothing, 1, GZ);
	add_file(1, WORLD_FILE, "cpython", "https://example.org/p.tar.gz", &other);
	assert_err(make(), &err, ERR_INTEGRITY, "'cpython': has no directory 'python'");
	parts[1].kind = "base";
	assert_err(make(), &err, ERR_CONFIG,
		   "part 'kit1' is not a toolkit, so 'cpython' has no install path in it");
}

static void a_stamp_that_is_none(void **state)
{
	struct world_stamp stamp;

	(void)state;
	assert_int_equal(world_read_stamp(here("nowhere"), &arena, &stamp, &err), 0);
	test_write(here("r/etc/ptbuild-world"), "base1 x86_64-linux\n");
	assert_err(world_read_stamp(here("r"), &arena, &stamp, &err), &err, ERR_INTEGRITY,
		   "does not name a world");
	assert_int_equal(unlink(here("r/etc/ptbuild-world")), 0);
	assert_int_equal(symlink("/etc/hostname", here("r/etc/ptbuild-world")), 0);
	assert_int_equal(world_read_stamp(here("r"), &arena, &stamp, &err), -1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(packages_become_a_root),
		T(the_root_knows_its_packages),
		T(excluded_and_kept),
		T(links_and_files_of_the_table),
		T(one_path_of_two_packages),
		T(a_replaced_file_has_hard_links),
		T(what_packages_may_not_have),
		T(another_package_than_the_lock_says),
		T(the_same_every_time),
		T(a_toolkit_lies_over_the_base),
		T(a_base_has_wheels_too),
		T(a_wheel_of_a_toolkit_with_places_goes_to_the_system),
		T(a_python_goes_to_its_prefix),
		T(a_stamp_that_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
