#include "fetch_fixture.h"

#include "base/buf.h"
#include "step/fetch/fetch.h"

#define NAME "nvidia_toy_cu13-1.2.3-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
#define PLACE "wheel:nvidia-toy-cu13==1.2.3/" NAME
#define PAGE "/simple/nvidia-toy-cu13/"
#define HEAD "{\"meta\": {\"api-version\": \"1.1\"}, \"name\": \"nvidia-toy-cu13\", \"files\": ["

/* A stand-in for pip: notes its words, answers "config
 * list" with the file "config", and runs download.sh. */
static const char fake[] =
	"#!/bin/sh\n"
	"top=%s\n"
	"echo \"$@\" >>$top/calls\n"
	"if [ \"$1\" = config ]; then cat $top/config; exit 0; fi\n"
	"for word; do case $word in --dest=*) dest=${word#--dest=} ;; esac; done\n"
	". $top/download.sh\n";

static char *old_path;

static void put(struct fixture *f, const char *name, const char *text)
{
	test_write(path_join(&f->a, f->dir, name), text);
}

static const char *text_of(struct fixture *f, const char *name)
{
	AUTO_FREE char *text = test_read(path_join(&f->a, f->dir, name));
	return text ? arena_strdup(&f->a, text) : "";
}

static int wheel_setup(void **state)
{
	static const char *const names[] = {"PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL",
					    "PIP_NO_INDEX"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		unsetenv(names[i]);
	if (setup(state) != 0)
		return -1;
	struct fixture *f = *state;
	const char *pip = path_join(&f->a, f->dir, "bin/pip3");
	old_path = strdup(getenv("PATH"));
	test_write(pip, arena_printf(&f->a, fake, f->dir));
	chmod(pip, 0755);
	put(f, "config", "");
	put(f, "calls", "");
	put(f, "download.sh", "echo 'ERROR: no such version' >&2; exit 1\n");
	setenv("PATH", arena_printf(&f->a, "%s/bin:/usr/bin:/bin", f->dir), 1);
	return 0;
}

static int wheel_teardown(void **state)
{
	setenv("PATH", old_path, 1);
	free(old_path);
	unsetenv("PIP_INDEX_URL");
	unsetenv("UV_INDEX_URL");
	return teardown(state);
}

/* An index with this page and the file where a relative link finds it. */
static const char *serve_index(struct fixture *f, const char *page)
{
	struct httpd_page pages[] = {{.path = PAGE, .body = page, .len = strlen(page)},
				     {.path = "/files/" NAME, .body = body, .len = BODY},
				     {.path = "/files/other.whl", .body = body, .len = BODY}};

	f->server = httpd_start(pages, ARRAY_LEN(pages));
	return httpd_url(f->server, "/simple/");
}

static const char *entry(struct fixture *f, const char *url, const char *sha256)
{
	return arena_printf(
		&f->a,
		HEAD "{\"filename\": \"%s\", \"url\": \"%s\", \"hashes\": {\"sha256\": \"%s\"}, "
		     "\"size\": %d}]}",
		NAME, url, sha256, BODY);
}

static int get_wheel(struct fixture *f, const char **ret_path)
{
	struct fetch_source s = source(f, NAME, body_sha, PLACE);
	int status = get(f, &s, 1);

	*ret_path = s.path;
	if (status == 0)
		assert_has_body(&s);
	return status;
}

static void fails(struct fixture *f, enum err_kind kind, const char *text)
{
	const char *path;

	assert_int_equal(get_wheel(f, &path), -1);
	assert_int_equal(f->e.kind, kind);
	assert_contains(f->e.msg, text);
}

static void comes_from_the_index_that_pip_names(void **state)
{
	struct fixture *f = *state;
	const char *path;

	setenv("PIP_INDEX_URL",
	       serve_index(f, entry(f, "../../files/" NAME "#sha256=00", body_sha)), 1);
	assert_ok(get_wheel(f, &path), &f->e);
	assert_string_equal(path_base(path), NAME);
	assert_int_equal(httpd_hits(f->server, PAGE), 1);
	assert_string_equal(text_of(f, "calls"), ""); /* no pip */
	assert_false(fs_exists(TRUSTED, arena_printf(&f->a, "%s.page", partial(f))));
	assert_ok(get_wheel(f, &path), &f->e); /* from the store */
	assert_int_equal(httpd_hits(f->server, PAGE), 1);
}

static void comes_from_the_index_that_uv_or_pips_files_name(void **state)
{
	struct fixture *f = *state;
	const char *path, *index = serve_index(f, entry(f, "/files/" NAME, body_sha));

	put(f, "config",
	    arena_printf(&f->a,
			 "global.cert='/x'\nglobal.index-url='%s'\ninstall.index-url='http://"
			 "no.invalid/'\n",
			 index));
	assert_ok(get_wheel(f, &path), &f->e);
	assert_string_equal(text_of(f, "calls"), "config list\n");
	assert_ok(fs_remove(TRUSTED, path_join(&f->a, f->dir, "store/objects"), &f->e), &f->e);
	setenv("UV_INDEX_URL", index, 1);
	assert_ok(get_wheel(f, &path), &f->e);
	assert_string_equal(text_of(f, "calls"), "config list\n");
}

static void another_digest_in_the_page_is_refused_before_the_download(void **state)
{
	struct fixture *f = *state;

	setenv("PIP_INDEX_URL", serve_index(f, entry(f, "/files/" NAME, other_sha)), 1);
	fails(f, ERR_INTEGRITY, other_sha);
	assert_int_equal(httpd_hits(f->server, "/files/" NAME), 0);
}

static void other_bytes_are_refused(void **state)
{
	struct fixture *f = *state;
	const char *page = arena_printf(
		&f->a, HEAD "{\"filename\": \"%s\", \"url\": \"/files/%s\"}]}", NAME, NAME);
	struct httpd_page pages[] = {{.path = PAGE, .body = page, .len = strlen(page)},
				     {.path = "/files/" NAME, .body = other, .len = sizeof(other)}};

	f->server = httpd_start(pages, ARRAY_LEN(pages));
	setenv("PIP_INDEX_URL", httpd_url(f->server, "/simple"), 1);
	fails(f, ERR_INTEGRITY, "wrong digest");
}

/* A page that has the file only under links that nobody should follow. */
static void hostile_links_are_not_followed(void **state)
{
	static const char *const links[] = {
		"/files/other.whl",          "file:///etc/passwd",
		"file:///files/" NAME,       "gopher://127.0.0.1/files/" NAME,
		"//[/files/" NAME,           "/files/" NAME "/",
		"/files/%2e%2e/%2f" NAME "x"};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		setenv("PIP_INDEX_URL", serve_index(f, entry(f, links[i], body_sha)), 1);
		fails(f, ERR_NETWORK, "does not list '" NAME "'");
		assert_int_equal(httpd_hits(f->server, "/files/other.whl"), 0);
		httpd_stop(f->server);
		f->server = NULL;
	}
}

static void pages_of_other_shapes_are_read_without_harm(void **state)
{
	static const char *const entries[] = {
		"1",
		"null",
		"{}",
		"{\"filename\": 3, \"url\": \"/x\"}",
		"{\"filename\": \"../" NAME "\", \"url\": \"/files/" NAME "\"}",
		"{\"filename\": \"" NAME "\", \"url\": [\"/files/" NAME "\"]}",
		("{\"filename\": \"nvidia_toy_cu13-1.2.3.tar.gz\", \"url\": "
		 "\"nvidia_toy_cu13-1.2.3.tar.gz\"}"),
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		setenv("PIP_INDEX_URL",
		       serve_index(f, arena_printf(&f->a, HEAD "%s]}", entries[i])), 1);
		fails(f, ERR_NETWORK, "does not list");
		httpd_stop(f->server);
		f->server = NULL;
	}
}

static void an_endless_page_is_cut(void **state)
{
	struct fixture *f = *state;
	size_t len = WHEEL_PAGE_MAX + 10;
	AUTO_FREE char *page = malloc(len);

	memset(page, ' ', len);
	struct httpd_page pages[] = {{.path = PAGE, .body = page, .len = len}};
	f->server = httpd_start(pages, 1);
	setenv("PIP_INDEX_URL", httpd_url(f->server, "/simple/"), 1);
	fails(f, ERR_NETWORK, "more than 16777216 bytes");
	assert_false(fs_exists(TRUSTED, arena_printf(&f->a, "%s.page", partial(f))));
}

static void a_page_without_json_is_left_to_pip(void **state)
{
	static const char *const pages[] = {
		"<!DOCTYPE html><a href=x>x</a>", "[1, 2]",
		"{\"meta\": {\"api-version\": \"2.0\"}, \"files\": []}",
		"{\"meta\": {\"api-version\": \"1.0\"}, \"files\": {}}"};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		setenv("PIP_INDEX_URL", serve_index(f, pages[i]), 1);
		put(f, "calls", "");
		fails(f, ERR_NETWORK, "pip did not download '" NAME "': no such version");
		assert_contains(text_of(f, "calls"), "download ");
		httpd_stop(f->server);
		f->server = NULL;
	}
}

static void pip_is_asked_where_no_index_is_named(void **state)
{
	struct fixture *f = *state;
	const char *path, *served = path_join(&f->a, f->dir, "served");

	test_write_bytes(served, body, BODY);
	put(f, "download.sh", "cp $top/served $dest/" NAME "\n");
	assert_ok(get_wheel(f, &path), &f->e);
	const char *calls = text_of(f, "calls");
	assert_contains(calls, "config list\ndownload ");
	assert_contains(calls,
			"--no-deps --no-cache-dir --only-binary :all: --ignore-requires-python ");
	assert_contains(calls, "--platform=manylinux2014_x86_64 --platform=manylinux_2_17_x86_64 "
			       "nvidia-toy-cu13==1.2.3\n");
	assert_null(strstr(calls, "--abi"));
}

static void what_pip_brings_is_checked(void **state)
{
	struct fixture *f = *state;

	put(f, "download.sh", "echo other >$dest/" NAME "\n");
	fails(f, ERR_INTEGRITY, "wrong digest");
	put(f, "download.sh",
	    "echo other >$dest/another-1.0-py3-none-any.whl; rm -f $dest/" NAME "\n");
	fails(f, ERR_NETWORK, "it took another file");
	put(f, "download.sh", "ln -sf /etc/passwd $dest/" NAME "\n");
	fails(f, ERR_NETWORK, "it took another file");
}

static void offline_asks_nobody(void **state)
{
	struct fixture *f = *state;

	f->o.offline = true;
	fails(f, ERR_NETWORK, "--offline forbids");
	assert_string_equal(text_of(f, "calls"), "");
}

static void places_are_checked(void **state)
{
	static const struct {
		const char *place, *says;
	} bad[] = {
		{"wheel:toy", "not a location of a wheel"},
		{"wheel:==1/x.whl", "not a location of a wheel"},
		{"wheel:toy==1/a/toy-1-py3-none-any.whl", "not a location of a wheel"},
		{"wheel:toy==1/toy.zip", "not a wheel name"},
		{"wheel:toy==2/toy-1-py3-none-any.whl", "is not a wheel of toy 2"},
		{"wheel:other==1/toy-1-py3-none-any.whl", "is not a wheel of other 1"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct fetch_source s = source(f, "x.whl", body_sha, bad[i].place);
		assert_int_equal(get(f, &s, 1), -1);
		assert_contains(f->e.msg, bad[i].says);
	}

	struct wheel_place p;
	assert_ok(wheel_place_parse("A.b==1.0/a_B-1.0-cp313-cp313-any.whl", &f->a, &p, &f->e),
		  &f->e);
	assert_string_equal(wheel_page_url("https://x.invalid/simple//", p.name, &f->a),
			    "https://x.invalid/simple/a-b/");
}

static void links_keep_to_https(void **state)
{
	struct fixture *f = *state;
	struct wheel_page p;
	const char *text = entry(f, "http://x.invalid/" NAME, body_sha);

	assert_ok(wheel_page_parse(
			  &(struct file_bytes){text, strlen(text), "https://x.invalid/simple/n/"},
			  &f->a, &p, &f->e),
		  &f->e);
	assert_int_equal(p.count, 0);
	assert_ok(wheel_page_parse(
			  &(struct file_bytes){text, strlen(text), "http://x.invalid/simple/n/"},
			  &f->a, &p, &f->e),
		  &f->e);
	assert_int_equal(p.count, 1);
	assert_int_equal(p.files[0].size, BODY);
}

/* With its index in the environment, then with one that only pip's help names. */
static void all_wheels_of_a_distribution(void **state)
{
	struct fixture *f = *state;
	struct wheel_page page;
	const char *index = serve_index(f, entry(f, "/files/" NAME, body_sha));

	setenv("PIP_INDEX_URL", index, 1);
	assert_ok(wheel_list(&(struct fetcher){f->store, &f->o, &f->run, &f->a}, "nvidia_toy.cu13",
			     &page, &f->e),
		  &f->e);
	assert_int_equal(page.count, 1);
	assert_string_equal(page.files[0].name, NAME);
	assert_int_equal(page.files[0].size, BODY);
	assert_string_equal(text_of(f, "calls"), "");
	unsetenv("PIP_INDEX_URL");
	put(f, "download.sh",
	    arena_printf(&f->a, "echo \"  -i <url>  Base URL (default %s). Or a directory\"\n",
			 index));
	assert_ok(wheel_list(&(struct fetcher){f->store, &f->o, &f->run, &f->a}, "nvidia-toy-cu13",
			     &page, &f->e),
		  &f->e);
	assert_int_equal(page.count, 1);
	assert_string_equal(text_of(f, "calls"), "config list\ndownload --help\n");
	assert_int_equal(httpd_hits(f->server, PAGE), 2);
	put(f, "download.sh", "echo '  -i <url>  Base URL (default http://x y)'\n");
	assert_err(wheel_list(&(struct fetcher){f->store, &f->o, &f->run, &f->a}, "nvidia-toy-cu13",
			      &page, &f->e),
		   &f->e, ERR_NETWORK, "pip does not say which index it uses");
	f->o.offline = true;
	setenv("PIP_INDEX_URL", index, 1);
	assert_err(wheel_list(&(struct fetcher){f->store, &f->o, &f->run, &f->a}, "nvidia-toy-cu13",
			      &page, &f->e),
		   &f->e, ERR_NETWORK, "--offline");
}

/* As on a Debian with python3-venv and without python3-pip. */
static void python_without_pip_is_no_matter_of_the_network(void **state)
{
	static const char says[] = "echo '/usr/bin/python3: No module named pip' >&2; exit 1\n";
	struct fixture *f = *state;

	test_write(path_join(&f->a, f->dir, "bin/pip3"),
		   arena_printf(&f->a, "#!/bin/sh\n%s", says));
	fails(f, ERR_NETWORK, "no pip on this machine");
	assert_contains(f->e.hint, "python3-pip");
}

/* Else the names would go to an index that its files do not name. */
static void a_killed_pip_does_not_mean_another_index(void **state)
{
	struct fixture *f = *state;
	struct wheel_page page;
	const char *index = serve_index(f, entry(f, "/files/" NAME, body_sha));

	put(f, "download.sh",
	    arena_printf(&f->a, "echo '  -i <url>  Base URL (default %s). Or more'\n", index));
	test_write(path_join(&f->a, f->dir, "bin/pip3"),
		   arena_printf(&f->a,
				"#!/bin/sh\n[ $1 != config ] || kill -9 $$\n. %s/download.sh\n",
				f->dir));
	assert_err(wheel_list(&(struct fetcher){f->store, &f->o, &f->run, &f->a}, "nvidia-toy-cu13",
			      &page, &f->e),
		   &f->e, ERR_SYSTEM, "was killed by signal 9");
	assert_int_equal(httpd_hits(f->server, PAGE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(comes_from_the_index_that_pip_names, wheel_setup,
						wheel_teardown),
		cmocka_unit_test_setup_teardown(comes_from_the_index_that_uv_or_pips_files_name,
						wheel_setup, wheel_teardown),
		cmocka_unit_test_setup_teardown(
			another_digest_in_the_page_is_refused_before_the_download, wheel_setup,
			wheel_teardown),
		cmocka_unit_test_setup_teardown(python_without_pip_is_no_matter_of_the_network,
						wheel_setup, wheel_teardown),
		cmocka_unit_test_setup_teardown(other_bytes_are_refused, wheel_setup,
						wheel_teardown),
		cmocka_unit_test_setup_teardown(hostile_links_are_not_followed, wheel_setup,
						wheel_teardown),
		cmocka_unit_test_setup_teardown(pages_of_other_shapes_are_read_without_harm,
						wheel_setup, wheel_teardown),
		cmocka_unit_test_setup_teardown(an_endless_page_is_cut, wheel_setup,
						wheel_teardown),
		cmocka_unit_test_setup_teardown(a_page_without_json_is_left_to_pip, wheel_setup,
						wheel_teardown),
		cmocka_unit_test_setup_teardown(pip_is_asked_where_no_index_is_named, wheel_setup,
						wheel_teardown),
		cmocka_unit_test_setup_teardown(what_pip_brings_is_checked, wheel_setup,
						wheel_teardown),
		cmocka_unit_test_setup_teardown(offline_asks_nobody, wheel_setup, wheel_teardown),
		cmocka_unit_test_setup_teardown(places_are_checked, wheel_setup, wheel_teardown),
		cmocka_unit_test_setup_teardown(links_keep_to_https, wheel_setup, wheel_teardown),
		cmocka_unit_test_setup_teardown(all_wheels_of_a_distribution, wheel_setup,
						wheel_teardown),
		cmocka_unit_test_setup_teardown(a_killed_pip_does_not_mean_another_index,
						wheel_setup, wheel_teardown),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
