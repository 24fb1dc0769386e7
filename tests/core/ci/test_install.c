#include "support.h"

#include "core/ci/ci_install.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define NAME "ptbuild-1.2.0-py3-none-manylinux_2_31_x86_64.whl"
#define ARM "ptbuild-1.2.0-py3-none-manylinux_2_31_aarch64.whl"

static void test_places_of_wheels(void **state)
{
	(void)state;
	static const struct {
		const char *text, *platform;
		bool here;
	} good[] = {
		{"https://example.org/v1/" NAME "=" DIGEST, "x86_64-linux", false},
		{"http://127.0.0.1:8080/a=b/" ARM "=" DIGEST, "aarch64-linux", false},
		{"dist/" NAME "=" DIGEST, "x86_64-linux", true},
		{"a..b/" NAME "=" DIGEST, "x86_64-linux", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		AUTO_ARENA struct arena a = {0};
		struct ci_wheel w;
		struct err e = {0};
		assert_ok(ci_wheel_read(good[i].text, &a, &w, &e), &e);
		assert_string_equal(w.platform, good[i].platform);
		assert_int_equal(w.here, good[i].here);
		assert_string_equal(w.sha256, DIGEST);
		assert_int_equal(strlen(w.place), strlen(good[i].text) - strlen("=" DIGEST));
	}
}

static void test_other_places_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *part;
	} bad[] = {
		{NAME, "the digest of the wheel is missing"},
		{NAME "=" DIGEST "0", "not a sha256"},
		{NAME "=", "not a sha256: ''"},
		{NAME "=ABCDEF", "not a sha256: 'ABCDEF'"},
		{"=" DIGEST, "not the name of a wheel"},
		{"/srv/" NAME "=" DIGEST, "not a path in the repository"},
		{"../" NAME "=" DIGEST, "not a path in the repository"},
		{"a/../../" NAME "=" DIGEST, "not a path in the repository"},
		{"-r/" NAME "=" DIGEST, "not a path in the repository"},
		{"file:///srv/" NAME "=" DIGEST, "not a path in the repository"},
		{"https://user:word@example.org/" NAME "=" DIGEST, "into a CI file"},
		{"https://example.org/" NAME "?key=1=" DIGEST, "into a CI file"},
		{"https://example.org/$(id)/" NAME "=" DIGEST, "into a CI file"},
		{"a'b/" NAME "=" DIGEST, "into a CI file"},
		{"dist/torch-2.9.1-cp313-cp313-manylinux_2_31_x86_64.whl=" DIGEST, "not the name"},
		{"dist/ptbuild-1.2.0.tar.gz=" DIGEST, "not the name"},
		{"dist/ptbuild-1.2.0-py3-none-win_amd64.whl=" DIGEST, "not the name"},
		{NAME "/=" DIGEST, "not the name"},
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_ARENA struct arena a = {0};
		struct ci_wheel w;
		struct err e = {0};
		assert_err(ci_wheel_read(bad[i].text, &a, &w, &e), &e, ERR_USAGE, bad[i].part);
	}
}

static const char *lines_of(const struct ci_plan *p, struct arena *a)
{
	struct strlist lines = ci_install(p, a);
	return strlist_join(&lines, a, "\n");
}

static void test_jobs_get_ptbuild_one_way(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	static const char *packages[] = {"ca-certificates", "python3-venv"};
	const struct ci_tables t = {.wheel_packages = packages, .wheel_packages_count = 2};
	struct ci_wheel wheels[2];
	struct err e = {0};

	struct ci_plan p = {.tables = &t};
	assert_contains(lines_of(&p, &a), "cmake --build");
	assert_true(ci_install_source(&p) && ci_install_checkout(&p));
	p.image = "example.org/ptbuild:1";
	assert_string_equal(lines_of(&p, &a), "");
	assert_false(ci_install_source(&p) || ci_install_checkout(&p));

	p.image = NULL;
	p.wheels = wheels;
	p.wheels_count = 1;
	assert_ok(ci_wheel_read("https://example.org/" NAME "=" DIGEST, &a, &wheels[0], &e), &e);
	assert_contains(lines_of(&p, &a), "install -y --no-install-recommends ca-certificates "
					  "python3-venv\n");
	assert_contains(lines_of(&p, &a), "x86_64) /opt/ptbuild/bin/pip install ");
	assert_contains(lines_of(&p, &a), "'https://example.org/" NAME "#sha256=" DIGEST "' ;;");
	assert_null(strstr(lines_of(&p, &a), "cmake"));
	assert_false(ci_install_source(&p) || ci_install_checkout(&p));

	p.wheels_count = 2;
	assert_ok(ci_wheel_read("dist/" ARM "=" DIGEST, &a, &wheels[1], &e), &e);
	assert_contains(lines_of(&p, &a),
			"aarch64) echo '" DIGEST "  dist/" ARM "' | sha256sum --check --strict; ");
	assert_contains(lines_of(&p, &a), " './dist/" ARM "' ;;");
	assert_true(!ci_install_source(&p) && ci_install_checkout(&p));
	assert_ptr_equal(ci_wheel_of(&p, "aarch64-linux"), &wheels[1]);
	assert_null(ci_wheel_of(&p, "aarch64-darwin"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places_of_wheels),
		cmocka_unit_test(test_other_places_are_refused),
		cmocka_unit_test(test_jobs_get_ptbuild_one_way),
	};

	return cmocka_run_group_tests_name("core/ci/install", tests, NULL, NULL);
}
