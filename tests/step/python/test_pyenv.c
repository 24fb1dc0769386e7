#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/proc.h"
#include "cache/store.h"
#include "step/python/pyenv.h"

/* Makes a wheel of one module by hand: pip takes it
 * like any other. Arguments: directory, name, version. */
static const char make_wheel[] =
	"import base64, hashlib, sys, zipfile\n"
	"top, name, version = sys.argv[1:]\n"
	"info = f'{name}-{version}.dist-info'\n"
	"files = {f'{name}.py': f'version = \"{version}\"\\n',\n"
	"  f'{info}/METADATA': f'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n',\n"
	"  f'{info}/WHEEL': 'Wheel-Version: 1.0\\nGenerator: hand\\nRoot-Is-Purelib: true\\nTag: "
	"py3-none-any\\n'}\n"
	"record = ''\n"
	"for path, text in files.items():\n"
	"  d = "
	"base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()\n"
	"  record += f'{path},sha256={d},{len(text)}\\n'\n"
	"files[f'{info}/RECORD'] = record + f'{info}/RECORD,,\\n'\n"
	"with zipfile.ZipFile(f'{top}/{name}-{version}-py3-none-any.whl', 'w') as z:\n"
	"  for path, text in files.items():\n"
	"    z.writestr(path, text)\n";

struct fixture {
	struct arena a;
	struct err e;
	const char *dir;
	const char *wheels;
	const char *build;
	struct store *store;
	struct root root;
	enum sandbox_kind kind;
	struct package_row row;
	struct plan plan;
	struct strlist requires;
	struct pyenv env;
	struct strlist have;
	struct strlist missing;
};

static char host_python[16];

static int group_setup(void **state)
{
	(void)state;
	static const char *const argv[] = {"/usr/bin/python3", "-c",
					   "import sys; print('%d.%d' % sys.version_info[:2])",
					   NULL};
	AUTO_BUF struct buf out = {0};
	struct err e = {0};
	assert_ok(proc_capture(argv, test_run(), &out, &e), &e);
	snprintf(host_python, sizeof(host_python), "%s", buf_cstr(&out));
	return 0;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->dir = arena_strdup(&f->a, test_dir());
	f->wheels = path_join(&f->a, f->dir, "wheels");
	f->build = path_join(&f->a, f->dir, "build");
	assert_ok(fs_mkdirs(TRUSTED, f->wheels, &f->e), &f->e);
	assert_ok(fs_mkdirs(TRUSTED, f->build, &f->e), &f->e);
	assert_ok(fs_mkdirs(TRUSTED, path_join(&f->a, f->dir, "profiles/requirements"), &f->e),
		  &f->e);
	assert_ok(store_open(path_join(&f->a, f->dir, "store"), test_run(), &f->store, &f->e),
		  &f->e);
	assert_ok(root_open(NULL, &f->a, &f->root, &f->e), &f->e);
	f->kind = SANDBOX_BWRAP;
	f->row.requirements = "";
	f->plan = (struct plan){.package = "pytorch",
				.release = "1.2.3",
				.python = host_python,
				.package_row = &f->row};
	/* The only index there is: a directory of the test. */
	setenv("PIP_NO_INDEX", "1", 1);
	setenv("PIP_FIND_LINKS", f->wheels, 1);
	setenv("PIP_CONFIG_FILE", "/dev/null", 1);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	store_close(f->store);
	arena_release(&f->a);
	free(f);
	return test_teardown(state);
}

static void require(struct fixture *f, const char *text)
{
	strlist_add(&f->requires, &f->a, text);
	f->row.python_requires = f->requires.items;
	f->row.python_requires_count = (unsigned)f->requires.count;
}

static const char *wheel_path(struct fixture *f, const char *name, const char *version)
{
	return arena_printf(&f->a, "%s/%s-%s-py3-none-any.whl", f->wheels, name, version);
}

/* Makes a wheel and gives its line for a locked list. */
static const char *wheel(struct fixture *f, const char *name, const char *version)
{
	const char *const argv[] = {
		"/usr/bin/python3", "-c", make_wheel, f->wheels, name, version, NULL};
	AUTO_BUF struct buf out = {0};
	char hex[DIGEST_HEX_LEN + 1];

	assert_ok(proc_capture(argv, test_run(), &out, &f->e), &f->e);
	assert_ok(digest_file(wheel_path(f, name, version), hex, &f->e), &f->e);
	return arena_printf(&f->a, "%s==%s --hash=sha256:%s\n", name, version, hex);
}

static const char *list_path(struct fixture *f)
{
	return path_join(&f->a, f->dir, "profiles/requirements/list.txt");
}

static void put_list(struct fixture *f, const char *text)
{
	test_write(list_path(f), text);
	f->row.requirements = "list.txt";
}

static int check(struct fixture *f)
{
	err_clear(&f->e);
	return pyenv_check(&f->plan, &f->root, f->kind, test_run(), &f->a, &f->have, &f->missing,
			   &f->e);
}

static struct pyenv_request request(struct fixture *f, bool offline)
{
	return (struct pyenv_request){.plan = &f->plan,
				      .profiles_dir = path_join(&f->a, f->dir, "profiles"),
				      .root = &f->root,
				      .kind = f->kind,
				      .store = f->store,
				      .build_dir = f->build,
				      .offline = offline};
}

static int prepare(struct fixture *f, bool offline)
{
	struct pyenv_request q = request(f, offline);
	err_clear(&f->e);
	return pyenv_prepare(&q, test_run(), &f->a, &f->env, &f->e);
}

static bool store_has_pyenv(struct fixture *f)
{
	struct store_object *items;
	size_t count;
	bool found = false;

	assert_ok(store_list(f->store, &f->a, &items, &count, &f->e), &f->e);
	for (size_t i = 0; i < count; i++)
		found |= strcmp(items[i].kind, STORE_PYENV) == 0;
	return found;
}

/* What the environment's Python prints, offline in the sandbox as the build would run it. */
static const char *ask_env(struct fixture *f, const char *script)
{
	AUTO_BUF struct buf out = {0};
	struct sandbox s;
	const char *const argv[] = {SANDBOX_VENV "/bin/python", "-c", script, NULL};

	assert_ok(sandbox_init(&s, f->kind, &f->root, &f->a, &f->e), &f->e);
	sandbox_add(&s, SANDBOX_RO, f->env.dir, SANDBOX_VENV);
	assert_ok(sandbox_capture(&s, argv, test_run(), &out, &f->e), &f->e);
	return arena_strdup(&f->a, buf_cstr(&out));
}

static void what_the_root_has_is_named_with_its_version(void **state)
{
	struct fixture *f = *state;

	require(f, "pip>=1,<1000");
	assert_ok(check(f), &f->e);
	assert_int_equal(f->have.count, 1);
	assert_int_equal(f->missing.count, 0);
	assert_contains(f->have.items[0], "pip ");
	assert_contains(f->have.items[0], "(root)");
}

static void requirement_without_range_takes_any_version(void **state)
{
	struct fixture *f = *state;

	require(f, "pip");
	assert_ok(check(f), &f->e);
	assert_int_equal(f->have.count, 1);
}

static void names_are_compared_as_packages_are(void **state)
{
	struct fixture *f = *state;

	require(f, "PIP >= 1");
	assert_ok(check(f), &f->e);
	assert_int_equal(f->have.count, 1);
}

static void what_is_not_installed_is_missing(void **state)
{
	struct fixture *f = *state;

	require(f, "pip");
	require(f, "ptbtoy-nowhere>=2");
	assert_ok(check(f), &f->e);
	assert_int_equal(f->have.count, 1);
	assert_int_equal(f->missing.count, 1);
	assert_string_equal(f->missing.items[0], "ptbtoy-nowhere>=2 (not installed)");
}

static void what_is_out_of_range_is_missing_with_what_was_found(void **state)
{
	struct fixture *f = *state;

	require(f, "pip<1");
	assert_ok(check(f), &f->e);
	assert_int_equal(f->missing.count, 1);
	assert_contains(f->missing.items[0], "pip<1 (found ");
}

static void no_requirement_is_fine(void **state)
{
	struct fixture *f = *state;
	assert_ok(check(f), &f->e);
	assert_int_equal(f->have.count + f->missing.count, 0);
}

static void requirements_that_are_none_are_refused(void **state)
{
	struct fixture *f = *state;
	static const char *const bad[] = {"",
					  ">=1",
					  "-r file",
					  "a[extra]>=1",
					  "a @ https://x.invalid/a.whl",
					  "a; python_version>'3'",
					  "a b",
					  "../a"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		f->requires = (struct strlist){0};
		require(f, bad[i]);
		assert_err(check(f), &f->e, ERR_CONFIG, "not a Python requirement");
	}
}

static void malformed_range_names_the_requirement(void **state)
{
	struct fixture *f = *state;
	require(f, "pip>=x");
	assert_err(check(f), &f->e, ERR_CONFIG, "pip>=x");
}

static void another_python_than_planned_is_refused(void **state)
{
	struct fixture *f = *state;

	f->plan.python = "3.2";
	require(f, "pip");
	assert_err(check(f), &f->e, ERR_POLICY, "the plan needs 3.2");
	assert_contains(f->e.hint, host_python);
}

static void root_without_python(void **state)
{
	struct fixture *f = *state;
	const char *dir = path_join(&f->a, f->dir, "root");

	assert_ok(fs_mkdirs(TRUSTED, path_join(&f->a, dir, "usr/bin"), &f->e), &f->e);
	assert_ok(root_open(dir, &f->a, &f->root, &f->e), &f->e);
	assert_err(check(f), &f->e, ERR_POLICY, "no Python in the root");
}

static void complete_root_needs_no_environment(void **state)
{
	struct fixture *f = *state;

	require(f, "pip");
	assert_ok(prepare(f, true), &f->e);
	assert_null(f->env.dir);
	assert_string_equal(f->env.key, "");
	assert_int_equal(f->env.have.count, 1);
	assert_false(fs_exists(TRUSTED, path_join(&f->a, f->build, "venv")));
}

static void test_lock_is_installed_in_a_complete_root(void **state)
{
	struct fixture *f = *state;

	require(f, "pip");
	put_list(f, wheel(f, "ptbtoy", "2.5"));
	f->row.requirements = list_path(f);
	assert_ok(prepare(f, false), &f->e);
	assert_string_equal(ask_env(f, "import ptbtoy; print(ptbtoy.version, end=\"\")"), "2.5");
}

static void missing_without_a_list_names_what_is_missing(void **state)
{
	struct fixture *f = *state;

	require(f, "ptbtoy>=2");
	assert_err(prepare(f, false), &f->e, ERR_CONFIG, "ptbtoy>=2 (not installed)");
	assert_contains(f->e.msg, "1.2.3");
	assert_contains(f->e.hint, "root");
}

static void list_is_downloaded_and_installed(void **state)
{
	struct fixture *f = *state;

	require(f, "ptbtoy>=2");
	require(f, "pip");
	put_list(f, wheel(f, "ptbtoy", "2.5"));
	assert_ok(prepare(f, false), &f->e);
	assert_string_equal(f->env.dir, path_join(&f->a, f->build, "venv"));
	assert_true(digest_valid_hex(f->env.key));
	assert_int_equal(f->env.have.count, 2);
	assert_string_equal(f->env.have.items[0], "ptbtoy 2.5 (environment)");
	assert_true(store_has_pyenv(f));
	assert_string_equal(ask_env(f, "import ptbtoy; print(ptbtoy.version, end=\"\")"), "2.5");
}

static void works_without_a_sandbox_too(void **state)
{
	struct fixture *f = *state;

	f->kind = SANDBOX_NONE;
	require(f, "ptbtoy>=2");
	put_list(f, wheel(f, "ptbtoy", "2.5"));
	assert_ok(prepare(f, false), &f->e);
	assert_string_equal(ask_env(f, "import ptbtoy; print(ptbtoy.version, end=\"\")"), "2.5");
}

static void list_wins_over_the_version_of_the_root(void **state)
{
	struct fixture *f = *state;

	require(f, "wheel>=900");
	put_list(f, wheel(f, "wheel", "999.1"));
	assert_ok(prepare(f, false), &f->e);
	assert_string_equal(f->env.have.items[0], "wheel 999.1 (environment)");
}

static void second_time_needs_neither_network_nor_work(void **state)
{
	struct fixture *f = *state;

	require(f, "ptbtoy>=2");
	put_list(f, wheel(f, "ptbtoy", "2.5"));
	assert_ok(prepare(f, false), &f->e);
	const char *proof = path_join(&f->a, f->env.dir, "proof");
	test_write(proof, "still here");
	setenv("PIP_FIND_LINKS", "/nowhere", 1);
	assert_ok(prepare(f, true), &f->e);
	assert_true(fs_exists(TRUSTED, proof));
}

static void another_build_takes_it_from_the_store(void **state)
{
	struct fixture *f = *state;

	require(f, "ptbtoy>=2");
	put_list(f, wheel(f, "ptbtoy", "2.5"));
	assert_ok(prepare(f, false), &f->e);
	setenv("PIP_FIND_LINKS", "/nowhere", 1);
	f->build = path_join(&f->a, f->dir, "build2");
	assert_ok(fs_mkdirs(TRUSTED, f->build, &f->e), &f->e);
	assert_ok(prepare(f, true), &f->e);
	assert_string_equal(ask_env(f, "import ptbtoy; print(ptbtoy.version, end=\"\")"), "2.5");
}

static void half_made_environment_is_made_anew(void **state)
{
	struct fixture *f = *state;

	test_write(path_join(&f->a, f->build, "venv/bin/python"), "torn");
	require(f, "ptbtoy>=2");
	put_list(f, wheel(f, "ptbtoy", "2.5"));
	assert_ok(prepare(f, false), &f->e);
	assert_string_equal(ask_env(f, "import ptbtoy; print(ptbtoy.version, end=\"\")"), "2.5");
}

static void changed_list_is_another_environment(void **state)
{
	struct fixture *f = *state;

	require(f, "ptbtoy>=2");
	put_list(f, wheel(f, "ptbtoy", "2.5"));
	assert_ok(prepare(f, false), &f->e);
	const char *key = arena_strdup(&f->a, f->env.key);
	put_list(f, wheel(f, "ptbtoy", "2.6"));
	assert_ok(prepare(f, false), &f->e);
	assert_string_not_equal(f->env.key, key);
	assert_string_equal(ask_env(f, "import ptbtoy; print(ptbtoy.version, end=\"\")"), "2.6");
}

static void comments_do_not_change_the_key(void **state)
{
	struct fixture *f = *state;

	require(f, "ptbtoy>=2");
	const char *line = wheel(f, "ptbtoy", "2.5");
	put_list(f, line);
	assert_ok(prepare(f, false), &f->e);
	const char *key = arena_strdup(&f->a, f->env.key);
	put_list(f, arena_printf(&f->a, "# why\n\n%s", line));
	assert_ok(prepare(f, true), &f->e);
	assert_string_equal(f->env.key, key);
}

static void markers_that_do_not_hold_are_left_out(void **state)
{
	struct fixture *f = *state;

	require(f, "ptbtoy>=2");
	const char *line = wheel(f, "ptbtoy", "2.5");
	put_list(f, arena_printf(&f->a,
				 "ptbtoy==1.0 ; python_version < \"3\" --hash=sha256:%064d\n"
				 "ptbtoy==2.5 ; python_version >= \"3\" and sys_platform == "
				 "\"linux\" \\\n    %s",
				 0, strstr(line, "--hash")));
	assert_ok(prepare(f, false), &f->e);
	assert_string_equal(f->env.have.items[0], "ptbtoy 2.5 (environment)");
}

static void without_a_build_directory_it_only_downloads(void **state)
{
	struct fixture *f = *state;

	f->build = NULL;
	require(f, "ptbtoy>=2");
	put_list(f, wheel(f, "ptbtoy", "2.5"));
	assert_ok(prepare(f, false), &f->e);
	assert_null(f->env.dir);
	assert_true(digest_valid_hex(f->env.key));
	assert_true(store_has_pyenv(f));
}

static void offline_without_a_download(void **state)
{
	struct fixture *f = *state;

	require(f, "ptbtoy>=2");
	put_list(f, wheel(f, "ptbtoy", "2.5"));
	assert_err(prepare(f, true), &f->e, ERR_NETWORK, "ptbtoy>=2 (not installed)");
	assert_contains(f->e.msg, "--offline");
	assert_false(store_has_pyenv(f));
	assert_false(fs_exists(TRUSTED, path_join(&f->a, f->build, "venv")));
}

static void other_bytes_are_an_integrity_error(void **state)
{
	struct fixture *f = *state;

	require(f, "ptbtoy>=2");
	wheel(f, "ptbtoy", "2.5");
	put_list(f, arena_printf(&f->a, "ptbtoy==2.5 --hash=sha256:%064d\n", 7));
	assert_err(prepare(f, false), &f->e, ERR_INTEGRITY, "pip cannot download");
	assert_false(store_has_pyenv(f));
	assert_false(fs_exists(TRUSTED, path_join(&f->a, f->build, "venv")));
}

static void absent_wheel_is_a_network_error(void **state)
{
	struct fixture *f = *state;

	require(f, "ptbtoy>=2");
	put_list(f, arena_printf(&f->a, "ptbtoy==2.5 --hash=sha256:%064d\n", 7));
	assert_err(prepare(f, false), &f->e, ERR_NETWORK, "ptbtoy==2.5");
	assert_false(store_has_pyenv(f));
}

static void source_archives_are_not_taken(void **state)
{
	struct fixture *f = *state;

	require(f, "ptbtoy>=2");
	test_write(path_join(&f->a, f->wheels, "ptbtoy-2.5.tar.gz"), "a setup.py that would run");
	char hex[DIGEST_HEX_LEN + 1];
	assert_ok(digest_file(path_join(&f->a, f->wheels, "ptbtoy-2.5.tar.gz"), hex, &f->e), &f->e);
	put_list(f, arena_printf(&f->a, "ptbtoy==2.5 --hash=sha256:%s\n", hex));
	assert_err(prepare(f, false), &f->e, ERR_NETWORK, "ptbtoy==2.5");
}

static void list_that_does_not_bring_it(void **state)
{
	struct fixture *f = *state;

	require(f, "ptbtoy>=3");
	put_list(f, wheel(f, "ptbtoy", "2.5"));
	assert_err(prepare(f, false), &f->e, ERR_CONFIG, "does not provide ptbtoy>=3 (found 2.5)");
}

static void absent_list_is_named(void **state)
{
	struct fixture *f = *state;

	require(f, "ptbtoy>=2");
	f->row.requirements = "nowhere.txt";
	assert_err(prepare(f, false), &f->e, ERR_SYSTEM, "requirements/nowhere.txt");
}

static void interruption_leaves_no_environment(void **state)
{
	struct fixture *f = *state;
	int ends[2];
	struct run run = *test_run();

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	run.cancel_fd = ends[0];
	require(f, "ptbtoy>=2");
	put_list(f, wheel(f, "ptbtoy", "2.5"));
	struct pyenv_request q = request(f, false);
	assert_err(pyenv_prepare(&q, &run, &f->a, &f->env, &f->e), &f->e, ERR_INTERRUPTED,
		   "interrupted");
	assert_false(store_has_pyenv(f));
	close(ends[0]);
	close(ends[1]);
}

#define H "--hash=sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void list_with_comments_markers_and_continued_lines(void **state)
{
	struct fixture *f = *state;
	struct locked_list l;

	put_list(f,
		 "# top\r\n"
		 "a-b_c.d==1.0+x \\\n    " H " \\\n    " H "  # why\n"
		 "\n"
		 "  numpy==2.2.6 ; python_version >= \"3.10\" and sys_platform == 'linux' " H "\n"
		 "last==1!2.0 " H);
	assert_ok(locked_list_read(list_path(f), &f->a, &l, &f->e), &f->e);
	assert_int_equal(l.count, 3);
	assert_string_equal(l.items[0].name, "a-b_c.d");
	assert_string_equal(l.items[0].version, "1.0+x");
	assert_int_equal(l.items[0].hashes.count, 2);
	assert_string_equal(l.items[0].marker, "");
	assert_string_equal(l.items[1].marker,
			    "python_version >= \"3.10\" and sys_platform == 'linux'");
	assert_string_equal(l.items[2].version, "1!2.0");
}

static void list_of_the_project_is_well_formed(void **state)
{
	struct fixture *f = *state;
	struct locked_list l;

	assert_ok(locked_list_read(PROFILES_DIR "/requirements/shared.txt", &f->a, &l, &f->e),
		  &f->e);
	assert_true(l.count > 5);
}

static void bad_lines_are_refused_with_their_place(void **state)
{
	struct fixture *f = *state;
	static const char *const bad[] = {
		"a==1",
		"a>=1 " H,
		"a===1 " H,
		"a " H,
		"a== " H,
		"==1 " H,
		"-r other.txt",
		"--index-url https://x.invalid",
		"--hash=sha256:00",
		"https://x.invalid/a.whl " H,
		"a @ https://x.invalid/a.whl " H,
		"./a.whl " H,
		"a[extra]==1 " H,
		"a==1 --hash=sha256:0123",
		"a==1 --hash=md5:0123456789abcdef0123456789abcdef",
		"a==1 "
		"--hash=sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
		"a==1 " H " --config-settings=x",
		"a==1 ; " H,
		"a==1, <2 " H,
		"a==1 b==2 " H,
		"a==1 " H " \\",
		"_a==1 " H,
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct locked_list l = {0};
		put_list(f, arena_printf(&f->a, "# one\nok==1 " H "\n%s", bad[i]));
		assert_err(locked_list_read(list_path(f), &f->a, &l, &f->e), &f->e, ERR_CONFIG,
			   "list.txt:3: ");
		assert_null(l.items);
	}
}

static void empty_list_and_control_bytes_are_refused(void **state)
{
	struct fixture *f = *state;
	struct locked_list l;

	put_list(f, "# nothing\n\n");
	assert_err(locked_list_read(list_path(f), &f->a, &l, &f->e), &f->e, ERR_CONFIG,
		   "an empty list");
	test_write_bytes(list_path(f), "a==1\0b", 6);
	assert_err(locked_list_read(list_path(f), &f->a, &l, &f->e), &f->e, ERR_CONFIG, "offset 4");
	test_write(list_path(f), "a==1 \033[31m " H);
	assert_err(locked_list_read(list_path(f), &f->a, &l, &f->e), &f->e, ERR_CONFIG, "offset 5");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_the_root_has_is_named_with_its_version),
		T(requirement_without_range_takes_any_version),
		T(names_are_compared_as_packages_are),
		T(what_is_not_installed_is_missing),
		T(what_is_out_of_range_is_missing_with_what_was_found),
		T(no_requirement_is_fine),
		T(requirements_that_are_none_are_refused),
		T(malformed_range_names_the_requirement),
		T(another_python_than_planned_is_refused),
		T(root_without_python),
		T(complete_root_needs_no_environment),
		T(test_lock_is_installed_in_a_complete_root),
		T(missing_without_a_list_names_what_is_missing),
		T(list_is_downloaded_and_installed),
		T(works_without_a_sandbox_too),
		T(list_wins_over_the_version_of_the_root),
		T(second_time_needs_neither_network_nor_work),
		T(another_build_takes_it_from_the_store),
		T(half_made_environment_is_made_anew),
		T(changed_list_is_another_environment),
		T(comments_do_not_change_the_key),
		T(markers_that_do_not_hold_are_left_out),
		T(without_a_build_directory_it_only_downloads),
		T(offline_without_a_download),
		T(other_bytes_are_an_integrity_error),
		T(absent_wheel_is_a_network_error),
		T(source_archives_are_not_taken),
		T(list_that_does_not_bring_it),
		T(absent_list_is_named),
		T(interruption_leaves_no_environment),
		T(list_with_comments_markers_and_continued_lines),
		T(list_of_the_project_is_well_formed),
		T(bad_lines_are_refused_with_their_place),
		T(empty_list_and_control_bytes_are_refused),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
