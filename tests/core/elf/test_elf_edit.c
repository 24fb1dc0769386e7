#include "support.h"

#include "elf_files.h"

/* What comes out passes for a library with other tools as well. */
static void readable(const char *path)
{
	must("readelf -Wa '%s' >out 2>&1 && ! grep -i warning out && "
	     "{ grep -q 'no sections' out || { strip -o out '%s' && ! readelf -Wa out "
	     "| grep -i warning; }; }",
	     path, path);
}

static bool change(const char *where, const char *soname, const struct kvlist *needed,
		   const char *rpath)
{
	struct err e = {0};
	const char *path = arena_strdup(&arena, where);
	bool in_place = false;

	assert_ok(elf_change(path, &(struct elf_change){soname, needed, rpath}, &in_place, &e), &e);
	readable(path);
	assert_int_not_equal(access(arena_printf(&arena, "%s.new", path), F_OK), 0);
	return in_place;
}

static void set_rpath(const char *path, const char *rpath, bool want_in_place)
{
	assert_int_equal(change(path, NULL, NULL, rpath), want_in_place);
	struct elf_info i = read_info(path);
	assert_null(i.runpath);
	if (*rpath)
		assert_string_equal(i.rpath, rpath);
	else
		assert_null(i.rpath);
}

static void in_place_touches_only_its_bytes(void **state)
{
	(void)state;
	const char *path =
		compile("liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath," TOKEN);
	size_t len, len_after, changed = 0;
	char *before = read_bytes(path, &len);
	set_rpath(path, "$ORIGIN/lib", true);
	char *after = read_bytes(path, &len_after);
	assert_int_equal(len, len_after);
	char *start = memmem(before, len, TOKEN, strlen(TOKEN));
	assert_non_null(start);
	for (size_t i = 0; i < len; i++) {
		if (before[i] == after[i])
			continue;
		changed++;
		assert_in_range(i, start - before, start - before + (long)strlen(TOKEN));
	}

	assert_true(changed > 200);
	assert_string_equal(after + (start - before), "$ORIGIN/lib");
	free(before);
	free(after);
	assert_int_equal(load("./liba.so", "answer"), 42);
}

static void in_place_leaves_no_old_path(void **state)
{
	(void)state;
	const char *path =
		compile("liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath," TOKEN);
	set_rpath(path, "$ORIGIN", true);
	assert_false(file_has(path, "789012345"));
	assert_false(file_has(path, "/ptbuild"));
}

static void joined_path_is_replaced_whole(void **state)
{
	(void)state;
	const char *path = compile(
		"liba.so", ANSWER,
		SHARED "-Wl,--disable-new-dtags,-rpath,/ptbuild/src/build/lib,-rpath," TOKEN);
	assert_string_equal(read_info(path).rpath, "/ptbuild/src/build/lib:" TOKEN);
	set_rpath(path, "$ORIGIN:$ORIGIN/../lib", true);
	assert_false(file_has(path, "/ptbuild"));
}

static void runpath_becomes_rpath(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER,
				   SHARED "-Wl,--enable-new-dtags,-rpath,/ptbuild/lib/somewhere");
	set_rpath(path, "$ORIGIN", true);
	assert_false(file_has(path, "/ptbuild"));
	assert_int_equal(load("./liba.so", "answer"), 42);
}

static void runpath_of_the_same_text_becomes_rpath(void **state)
{
	(void)state;
	set_rpath(compile("liba.so", ANSWER, SHARED "-Wl,--enable-new-dtags,-rpath,/same"), "/same",
		  true);
}

static void exact_length_fits(void **state)
{
	(void)state;
	set_rpath(compile("liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath,/1234567"),
		  "$ORIGIN/", true);
}

static void same_path_writes_nothing(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER,
				   SHARED "-Wl,--disable-new-dtags,-rpath,/opt/tail,-soname,tail");
	size_t len, len_after;
	char *before = read_bytes(path, &len);
	set_rpath(path, "/opt/tail", true);
	char *after = read_bytes(path, &len_after);
	assert_int_equal(len, len_after);
	assert_memory_equal(before, after, len);
	free(before);
	free(after);
}

static void longer_path_gets_a_segment(void **state)
{
	(void)state;
	compile("sub/libb.so", ANSWER, SHARED "-Wl,-soname,libb.so");
	const char *path = compile("liba.so", "int answer(void); int a(void) { return answer(); }",
				   SHARED "sub/libb.so -Wl,--disable-new-dtags,-rpath,/short");
	set_rpath(path, "$ORIGIN/nowhere/at/all:$ORIGIN/sub", false);
	assert_int_equal(load("./liba.so", "a"), 42);
	assert_false(file_has(path, "/short"));
}

/* Without notes, the table of symbols is one of the first sections and moves, here
 * pages behind the end of the old file. Its symbols are read at the old place. */
static void test_grow_moves_the_symbol_table(void **state)
{
	(void)state;
	const char *path = compile(
		"liba.so", ANSWER,
		SHARED "-fcf-protection=none -nostdlib -Wl,--build-id=none,--hash-style=gnu,"
		       "-z,noseparate-code,-s");
	char rpath[16384] = "$ORIGIN/";
	memset(rpath + strlen(rpath), 'a', sizeof(rpath) - 1 - strlen(rpath));
	set_rpath(path, rpath, false);
	assert_int_equal(load("./liba.so", "answer"), 42);
}

static void path_is_added_where_none_was(void **state)
{
	(void)state;
	compile("sub/libb.so", ANSWER, SHARED "-Wl,-soname,libb.so");
	const char *path = compile("liba.so", "int answer(void); int a(void) { return answer(); }",
				   SHARED "sub/libb.so");
	assert_int_equal(load("./liba.so", "a"), -1);
	set_rpath(path, "$ORIGIN/sub", false);
	assert_int_equal(load("./liba.so", "a"), 42);
}

static void shared_tail_keeps_the_other_name(void **state)
{
	(void)state;
	const char *path =
		compile("liba.so", "int tail_of_path(void) { return 7; }",
			SHARED "-Wl,--disable-new-dtags,-rpath,/ptbuild/opt/tail_of_path");
	set_rpath(path, "$ORIGIN", true);
	struct elf_info i = read_info(path);
	assert_true(strlist_contains(&i.defined, "tail_of_path"));
	assert_int_equal(load("./liba.so", "tail_of_path"), 7);
	assert_false(file_has(path, "/ptbuild"));
}

static void a_long_path_beside_a_shared_tail_leaves_nothing(void **state)
{
	(void)state;
	const char *path =
		compile("liba.so", "int tail_of_path(void) { return 7; }",
			SHARED "-Wl,--disable-new-dtags,-rpath,/ptbuild/opt/tail_of_path");
	set_rpath(path, "$ORIGIN/nowhere/at/all:$ORIGIN/sub", false);
	assert_int_equal(load("./liba.so", "tail_of_path"), 7);
	assert_false(file_has(path, "/ptbuild"));
}

static void empty_path_removes_the_tag(void **state)
{
	(void)state;
	const char *path =
		compile("liba.so", ANSWER,
			SHARED "-Wl,--disable-new-dtags,-rpath," TOKEN ",-soname,liba.so.1");
	struct elf_info before = read_info(path);
	set_rpath(path, "", true);
	struct elf_info after = read_info(path);
	assert_string_equal(after.soname, before.soname);
	assert_int_equal(after.needed.count, before.needed.count);
	assert_false(file_has(path, "/ptbuild"));
	assert_int_equal(load("./liba.so", "answer"), 42);
}

static void empty_path_removes_a_runpath(void **state)
{
	(void)state;
	const char *path =
		compile("liba.so", ANSWER, SHARED "-Wl,--enable-new-dtags,-rpath,/ptbuild/lib");
	set_rpath(path, "", true);
	assert_false(file_has(path, "/ptbuild"));
	assert_int_equal(load("./liba.so", "answer"), 42);
}

static void removing_none_changes_nothing(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER, SHARED);
	size_t len, len_after;
	char *before = read_bytes(path, &len);
	set_rpath(path, "", true);
	char *after = read_bytes(path, &len_after);
	assert_int_equal(len, len_after);
	assert_memory_equal(before, after, len);
	free(before);
	free(after);
}

static void removing_a_shared_path_keeps_the_other_name(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER,
				   SHARED "-Wl,--disable-new-dtags,-rpath,/opt/tail,-soname,tail");
	set_rpath(path, "", true);
	assert_string_equal(read_info(path).soname, "tail");
}

static void works_without_sections(void **state)
{
	(void)state;
	const char *path =
		compile("liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath," TOKEN);
	drop_sections(path);
	set_rpath(path, "$ORIGIN", true);
	assert_int_equal(load("./liba.so", "answer"), 42);
}

static void executables_take_a_path(void **state)
{
	(void)state;
	compile("lib/libb.so", ANSWER, SHARED "-Wl,-soname,libb.so");
	const char *path =
		compile("bin/prog", "int answer(void); int main(void) { return answer(); }",
			"lib/libb.so -Wl,--disable-new-dtags,-rpath," TOKEN);
	set_rpath(path, "$ORIGIN/../lib", true);
	must("mkdir moved; mv bin lib moved");
	assert_int_equal(shell("moved/bin/prog"), 42);
}

static void read_only_files_are_edited_and_stay_so(void **state)
{
	(void)state;
	struct stat st;
	const char *path =
		compile("liba.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath," TOKEN);
	must("chmod 0555 liba.so");
	set_rpath(path, "$ORIGIN", true);
	set_rpath(path, "$ORIGIN/longer/than/what/was/there/before", false);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0555);
}

static void files_that_cannot_take_a_path(void **state)
{
	(void)state;
	struct err e;
	const char *object = compile("a.o", ANSWER, "-c");
	assert_err(elf_change(object, &(struct elf_change){.rpath = "$ORIGIN"}, NULL, &e), &e,
		   ERR_POLICY, "a.o");
	test_write(test_path("text"), "no ELF file");
	assert_err(
		elf_change(test_path("text"), &(struct elf_change){.rpath = "$ORIGIN"}, NULL, &e),
		&e, ERR_INTEGRITY, "text");
}

static void soname_is_renamed(void **state)
{
	(void)state;
	const char *path = compile("liba.so.1", ANSWER, SHARED "-Wl,-soname,liba.so.1");
	assert_false(change(path, "liba-1a2b3c4d.so.1", NULL, ""));
	assert_string_equal(read_info(path).soname, "liba-1a2b3c4d.so.1");
	assert_int_equal(load("./liba.so.1", "answer"), 42);
}

static void soname_is_added(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER, SHARED);
	assert_false(change(path, "liba-1a2b3c4d.so", NULL, ""));
	assert_string_equal(read_info(path).soname, "liba-1a2b3c4d.so");
	assert_int_equal(load("./liba.so", "answer"), 42);
}

/* liba.so needs libb.so.1 with a version. */
static const char *make_needing(const char *path_option)
{
	test_write(test_path("map"), "VERS_9 { global: answer; local: *; };");
	compile("libb.so.1", ANSWER, SHARED "-Wl,-soname,libb.so.1,--version-script,map");
	return compile("liba.so", "int answer(void); int a(void) { return answer(); }",
		       arena_printf(&arena, SHARED "libb.so.1 %s", path_option));
}

/* It finds libb under its new name, and with the new path only. */
static void rename_needed(const char *path, const char *soname, bool want_in_place)
{
	struct kvlist names = {0};

	kvlist_set(&names, &arena, "libb.so.1", "libb-1a2b3c4d.so.1");
	assert_int_equal(change(path, soname, &names, "$ORIGIN/sub"), want_in_place);
	struct elf_info i = read_info(path);
	assert_true(strlist_contains(&i.needed, "libb-1a2b3c4d.so.1"));
	assert_false(strlist_contains(&i.needed, "libb.so.1"));
	bool found = false;
	for (size_t k = 0; k < i.versions_count; k++) {
		assert_string_not_equal(i.versions[k].file, "libb.so.1");
		found = found || strcmp(i.versions[k].file, "libb-1a2b3c4d.so.1") == 0;
	}

	assert_true(found);
	assert_true(strlist_contains(&i.undefined, "answer@VERS_9"));
	assert_string_equal(i.rpath, "$ORIGIN/sub");
	assert_string_equal(i.soname, soname ? soname : "");
	must("mkdir sub; mv libb.so.1 sub/libb-1a2b3c4d.so.1");
	assert_false(change(test_path("sub/libb-1a2b3c4d.so.1"), "libb-1a2b3c4d.so.1", NULL, ""));
	assert_int_equal(load("./liba.so", "a"), 42);
	assert_false(file_has(path, "/ptbuild"));
}

static void names_are_changed_in_place(void **state)
{
	(void)state;
	struct stat before, after;
	const char *path =
		arena_strdup(&arena, make_needing("-Wl,--disable-new-dtags,-rpath," TOKEN));
	assert_int_equal(stat(path, &before), 0);
	rename_needed(path, NULL, true);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	assert_int_equal(before.st_ino, after.st_ino);
}

static void names_without_room_get_a_segment(void **state)
{
	(void)state;
	rename_needed(make_needing("-Wl,--enable-new-dtags,-rpath,/ptbuild/x"), "liba-00000001.so",
		      false);
}

static void names_where_no_path_was_get_a_segment(void **state)
{
	(void)state;
	rename_needed(make_needing(""), NULL, false);
}

/* The path ends where the first new name begins: room for both, and for one byte less. */
static void in_place_takes_the_last_byte(void **state)
{
	(void)state;
	struct kvlist names = {0};
	const char *name = "libb-1a2b3c4d.so.1";
	const size_t room = strlen(TOKEN) - strlen(name) - 1;
	char *path = arena_alloc(&arena, room + 2);
	memset(path, 'x', room + 1);
	kvlist_set(&names, &arena, "libb.so.1", name);
	assert_false(
		change(make_needing("-Wl,--disable-new-dtags,-rpath," TOKEN), NULL, &names, path));
	path[room] = '\0';
	const char *lib = make_needing("-Wl,--disable-new-dtags,-rpath," TOKEN);
	assert_true(change(lib, NULL, &names, path));
	struct elf_info i = read_info(lib);
	assert_string_equal(i.rpath, path);
	assert_true(strlist_contains(&i.needed, name));
}

/* Again and again: segments are added as long as headers have room, and nothing else changes. */
static void a_file_can_be_changed_many_times(void **state)
{
	(void)state;
	const char *path = make_needing("");
	for (int i = 0; i < 6; i++)
		set_rpath(path, arena_printf(&arena, "$ORIGIN/%0*d", 20 + 20 * i, i), false);
	set_rpath(path, "$ORIGIN", true);
	assert_int_equal(load("./liba.so", "a"), 42);
}

static void programs_get_a_longer_path(void **state)
{
	(void)state;
	compile("lib/libb.so", ANSWER, SHARED "-Wl,-soname,libb.so");
	const char *path = compile(
		"bin/prog", "int answer(void); int main(void) { return answer(); }", "lib/libb.so");
	set_rpath(path, "$ORIGIN/../lib", false);
	assert_int_equal(shell("bin/prog"), 42);
	set_rpath(path, "$ORIGIN/a/longer/path/than/before:$ORIGIN/../lib", false);
	assert_int_equal(shell("bin/prog"), 42);
}

/* As lld leaves it: the segment of the dynamic entries ends behind the first DT_NULL. */
static void trim_dynamic(const char *path)
{
	size_t len, n = 0;

	char *AUTO_FREE bytes = read_bytes(path, &len);
	const Elf64_Ehdr *h = (const void *)bytes;
	Elf64_Phdr *p = (void *)(bytes + h->e_phoff);
	while (p->p_type != PT_DYNAMIC)
		p++;
	const Elf64_Dyn *dyn = (const void *)(bytes + p->p_offset);
	while (dyn[n++].d_tag != DT_NULL)
		;
	p->p_filesz = p->p_memsz = n * sizeof(*dyn);
	put(path, (size_t)((const char *)p - bytes), p, sizeof(*p));
}

static void no_spare_entries(void **state)
{
	(void)state;
	const char *path = compile("liba.so", ANSWER, SHARED);
	trim_dynamic(path);
	assert_false(change(path, "liba-1a2b3c4d.so", NULL, "$ORIGIN/sub"));
	struct elf_info i = read_info(path);
	assert_string_equal(i.soname, "liba-1a2b3c4d.so");
	assert_string_equal(i.rpath, "$ORIGIN/sub");
	assert_int_equal(load("./liba.so", "answer"), 42);
	/* The path has room, and the entries have none. */
	path = compile("libb.so", ANSWER, SHARED "-Wl,--disable-new-dtags,-rpath," TOKEN);
	trim_dynamic(path);
	assert_false(change(path, "libb-1a2b3c4d.so", NULL, "$ORIGIN/sub"));
	assert_string_equal(read_info(path).soname, "libb-1a2b3c4d.so");
	assert_int_equal(load("./libb.so", "answer"), 42);
	assert_false(file_has(path, "/ptbuild"));
}

static void headers_without_room_leave_the_file(void **state)
{
	(void)state;
	struct err e = {0};
	const char *path = compile("liba.so", ANSWER, SHARED);
	drop_sections(path);
	size_t len, len_after;
	char *AUTO_FREE before = read_bytes(path, &len);
	assert_err(elf_change(path, &(struct elf_change){.rpath = "$ORIGIN"}, NULL, &e), &e,
		   ERR_INTEGRITY, "no room for another program header");
	char *AUTO_FREE after = read_bytes(path, &len_after);
	assert_int_equal(len, len_after);
	assert_memory_equal(before, after, len);
}

static void several_names_in_place(void **state)
{
	(void)state;
	struct kvlist names = {0};
	compile("libc1.so", "int one(void) { return 1; }", SHARED "-Wl,-soname,libc1.so");
	compile("libc2.so", "int two(void) { return 2; }", SHARED "-Wl,-soname,libc2.so");
	const char *path = compile(
		"liba.so", "int one(void), two(void); int a(void) { return one() + two(); }",
		SHARED "libc1.so libc2.so -Wl,--disable-new-dtags,-rpath," TOKEN);
	path = arena_strdup(&arena, path);
	kvlist_set(&names, &arena, "libc1.so", "libc1-00000001.so");
	kvlist_set(&names, &arena, "libc2.so", "libc2-00000002.so");
	assert_true(change(path, NULL, &names, "$ORIGIN"));
	must("mv libc1.so libc1-00000001.so; mv libc2.so libc2-00000002.so");
	assert_int_equal(load("./liba.so", "a"), 3);
	struct elf_info i = read_info(path);
	assert_string_equal(i.needed.items[0], "libc1-00000001.so");
	assert_string_equal(i.needed.items[1], "libc2-00000002.so");
}

static void renaming_nothing_writes_nothing(void **state)
{
	(void)state;
	struct kvlist names = {0};
	const char *path = compile("liba.so", ANSWER, SHARED "-Wl,-soname,liba.so.1");
	must("chmod 0444 liba.so; touch -d @1000 liba.so");
	kvlist_set(&names, &arena, "libabsent.so", "libother.so");
	assert_true(change(path, "liba.so.1", &names, ""));
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mtime, 1000);
}

#define T(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(in_place_touches_only_its_bytes),
		T(in_place_leaves_no_old_path),
		T(joined_path_is_replaced_whole),
		T(runpath_becomes_rpath),
		T(runpath_of_the_same_text_becomes_rpath),
		T(exact_length_fits),
		T(same_path_writes_nothing),
		T(longer_path_gets_a_segment),
		T(test_grow_moves_the_symbol_table),
		T(path_is_added_where_none_was),
		T(shared_tail_keeps_the_other_name),
		T(a_long_path_beside_a_shared_tail_leaves_nothing),
		T(empty_path_removes_the_tag),
		T(empty_path_removes_a_runpath),
		T(removing_none_changes_nothing),
		T(removing_a_shared_path_keeps_the_other_name),
		T(works_without_sections),
		T(executables_take_a_path),
		T(read_only_files_are_edited_and_stay_so),
		T(files_that_cannot_take_a_path),
		T(soname_is_renamed),
		T(soname_is_added),
		T(names_are_changed_in_place),
		T(names_without_room_get_a_segment),
		T(names_where_no_path_was_get_a_segment),
		T(in_place_takes_the_last_byte),
		T(a_file_can_be_changed_many_times),
		T(programs_get_a_longer_path),
		T(no_spare_entries),
		T(headers_without_room_leave_the_file),
		T(several_names_in_place),
		T(renaming_nothing_writes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
