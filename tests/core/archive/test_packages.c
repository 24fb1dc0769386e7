#include "support.h"

#include <string.h>

#include "core/archive/control.h"
#include "core/archive/packages.h"

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ONE                                                                                                            \
	"Package: gcc\nVersion: 4:14.2.0-1\nArchitecture: amd64\nPriority: optional\n"                                 \
	"Depends: cpp (= 4:14.2.0-1),\n gcc-14 (>= 14.2.0-1~)\nFilename: "                                             \
	"pool/main/g/gcc-defaults/gcc_14.2.0-1_amd64.deb\n"                                                            \
	"Size: 1234\nSHA256: " SHA "\nDescription: the\n compiler\n .\n of GNU\n"

static int parse(const char *text, struct arena *a, struct archive_packages *ret, struct err *e)
{
	return packages_parse(text, strlen(text), "Packages", "amd64", a, ret, e);
}

static void reads_what_it_needs(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct archive_packages p = {0};
	struct err e = {0};
	size_t count;
	assert_ok(parse("\n\n" ONE
			"\n\n\nPackage: base-files\nEssential: yes\nVersion: 1\nArchitecture: all\nPriority: required\n"
			"Filename: pool/b.deb\nsize: 7\nSHA256: " SHA "\n",
			&a, &p, &e),
		  &e);
	assert_ok(packages_sort(&p, &e), &e);
	assert_int_equal(p.count, 2);
	assert_string_equal(p.items[0].name, "base-files");
	assert_true(p.items[0].essential);
	assert_int_equal(p.items[0].priority, 0);
	const struct archive_package *gcc = packages_find(&p, "gcc", "4:14.2.0-1", "amd64");
	assert_non_null(gcc);
	assert_string_equal(gcc->relations[RELATION_DEPENDS], "cpp (= 4:14.2.0-1),  gcc-14 (>= 14.2.0-1~)");
	assert_null(gcc->relations[RELATION_BREAKS]);
	assert_int_equal(gcc->size, 1234);
	assert_int_equal(gcc->line, 3);
	assert_false(gcc->essential);
	assert_ptr_equal(packages_of(&p, "gcc", &count), gcc);
	assert_int_equal(count, 1);
	assert_null(packages_of(&p, "gc", &count));
	assert_null(packages_find(&p, "gcc", "5", NULL));
}

/* Each replaces one line of a package. */
static void hostile_lines(void **state)
{
	(void)state;
	static const struct {
		const char *line, *instead, *error;
	} cases[] = {
		{"Package: gcc", "Package: ../../etc/passwd",
		 "Packages:1: not the name of a package: '../../etc/passwd'"},
		{"Package: gcc", "Package: a/b", "Packages:1: not the name of a package"},
		{"Package: gcc", "Package: -o", "Packages:1: not the name of a package"},
		{"Package: gcc", "Package:", "Packages:1: not the name of a package"},
		{"Package: gcc", "Pack age: gcc", "Packages:1: not the name of a field"},
		{"Package: gcc", "gcc", "Packages:1: neither 'Field: value'"},
		{"Package: gcc", " gcc", "Packages:1: a continuation without a field"},
		{"Package: gcc",
		 "Package: g\x01"
		 "cc",
		 "Packages:1: a control character"},
		{"Package: gcc", "Section: x", "Packages:1: a package without the field 'Package'"},
		{"Package: gcc", "Package: gcc\nPackage: gcc", "Packages:2: 'Package' a second time"},
		{"Version: 4:14.2.0-1", "Version: 1 2", "Packages:2: not a version: '1 2'"},
		{"Version: 4:14.2.0-1", "Version: 1/2", "Packages:2: not a version"},
		{"Version: 4:14.2.0-1", "Version: x", "Packages:2: not a version"},
		{"Architecture: amd64", "Architecture: arm64",
		 "Packages:1: a package for another architecture: 'arm64'"},
		{"Filename: pool/main/g/gcc-defaults/gcc_14.2.0-1_amd64.deb", "Filename: pool/../../x.deb",
		 "Packages:7: not the path of a package"},
		{"Filename: pool/main/g/gcc-defaults/gcc_14.2.0-1_amd64.deb", "Filename: /pool/x.deb",
		 "Packages:7: not the path of a package"},
		{"Filename: pool/main/g/gcc-defaults/gcc_14.2.0-1_amd64.deb", "Filename: pool/x y.deb",
		 "Packages:7: not the path of a package"},
		{"Filename: pool/main/g/gcc-defaults/gcc_14.2.0-1_amd64.deb", "Filename: pool/x.rpm",
		 "Packages:7: not the path of a package"},
		{"Size: 1234", "Size: -1", "Packages:8: not a size: '-1'"},
		{"Size: 1234", "Size: 0", "Packages:8: not the size of a package"},
		{"Size: 1234", "Size: 99999999999999", "Packages:8: not the size of a package"},
		{"Size: 1234", "Size: 99999999999999999999999999", "Packages:8: not a size"},
		{"Size: 1234", "Size: 1234\nSize: 4321", "Packages:9: 'Size' a second time"},
		{"SHA256: " SHA, "SHA256: 0123", "Packages:9: not a sha256: '0123'"},
		{"SHA256: " SHA, "SHA1: 0123", "Packages:1: a package without the field 'SHA256'"},
		{"Depends: cpp", "Depends: \xc3\xa4", "Packages:5: not a list of packages"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_ARENA struct arena a = {0};
		AUTO_BUF struct buf text = {0};
		struct archive_packages p = {0};
		struct err e = {0};
		const char *at = strstr(ONE, cases[i].line);
		assert_non_null(at);
		buf_add(&text, ONE, (size_t)(at - ONE));
		buf_addstr(&text, cases[i].instead);
		buf_addstr(&text, at + strlen(cases[i].line));
		assert_err(parse(buf_cstr(&text), &a, &p, &e), &e, ERR_INTEGRITY, cases[i].error);
		assert_int_equal(p.count, 0);
	}
}

static void the_same_twice(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct archive_packages p = {0};
	struct err e = {0};
	assert_ok(parse(ONE, &a, &p, &e), &e);
	assert_ok(packages_parse(ONE, strlen(ONE), "contrib", "amd64", &a, &p, &e), &e);
	assert_err(packages_sort(&p, &e), &e, ERR_INTEGRITY, "package 'gcc' 4:14.2.0-1 (amd64) is also at");
}

static void a_line_without_end(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};
	struct archive_packages p = {0};
	struct err e = {0};
	buf_addstr(&text, "Package: ");
	for (int i = 0; i < 3 << 19; i++)
		buf_addc(&text, 'x');
	assert_err(parse(buf_cstr(&text), &a, &p, &e), &e, ERR_INTEGRITY, "Packages:1: a line of more than 1 MiB");
}

/* The size is the archive's word: a file that unpacks to more is stopped there. */
static void unpacking_is_bounded(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	struct err e = {0};
	test_dir();
	const char *plain = test_path("Packages");
	test_write(plain, ONE);
	assert_err(packages_unpack(plain, strlen(ONE) - 1, &out, &e), &e, ERR_INTEGRITY,
		   "larger than the archive says");
	buf_reset(&out);
	assert_ok(packages_unpack(plain, strlen(ONE), &out, &e), &e);
	assert_string_equal(buf_cstr(&out), ONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_it_needs),
		cmocka_unit_test(hostile_lines),
		cmocka_unit_test(the_same_twice),
		cmocka_unit_test(a_line_without_end),
		cmocka_unit_test_teardown(unpacking_is_bounded, test_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
