/* Wheels to verify, good ones and changed ones. */
#pragma once
#include "wheel_fixture.h"

#include <fcntl.h>

#include "base/sys/digest.h"
#include "base/sys/json.h"
#include "craft_zip.h"
#include "shipped.h"
#include "step/verify/verify.h"

static const struct manylinux_policy *policy;

static inline int load_policy(void **state)
{
	static struct arena rows;
	(void)state;
	policy = &shipped_tables(&rows)->manylinux;
	return 0;
}

static inline struct verify_report verify_with(struct verify_request q)
{
	struct verify_report r;
	q.policy = policy;
	q.run = test_run();
	assert_ok(verify_wheel(&q, &arena, &r, &err), &err);
	return r;
}

static inline struct verify_report verify(const char *wheel)
{
	return verify_with((struct verify_request){.wheel = wheel});
}

static inline char *verify_text(const struct verify_report *r, struct arena *a)
{
	AUTO_JSON json_t *doc = verify_json(r);
	return show_string(doc, verify_rows, a);
}

static inline void assert_clean(const struct verify_report *r)
{
	if (r->errors || r->warnings || r->count)
		fail_msg("%s", verify_text(r, &arena));
}

/* A finding of this level and rule that names the member and holds the text. */
static inline void assert_found(const struct verify_report *r, enum finding_level level,
				const char *rule, const char *file, const char *text)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct finding *f = &r->findings[i];
		if (f->level == level && strcmp(f->rule, rule) == 0 && test_has(f->file, file) &&
		    test_has(f->text, text))
			return;
	}
	fail_msg("no finding '%s' of rule '%s' for '%s' in:\n%s", text, rule, file,
		 verify_text(r, &arena));
}

static inline void assert_only_error(const struct verify_report *r, const char *rule,
				     const char *file, const char *text)
{
	assert_found(r, FINDING_ERROR, rule, file, text);
	if (r->errors != 1)
		fail_msg("more than one error:\n%s", verify_text(r, &arena));
}

/* The fixture's tree as a wheel. */
static inline const char *packed(void)
{
	struct pack_request q = request();
	return pack_ok(&q).path;
}

/* The wheel taken apart, changed by a shell command in its directory
 * (`$I` is the dist-info), and put together again without any mending. */
static inline const char *changed(const char *command)
{
	struct zip_reader *z;
	test_dir();
	make_tree();
	const char *wheel = packed();
	assert_ok(zip_open(wheel, &arena, &z, &err), &err);
	assert_ok(zip_extract(z, test_path("x"), false, test_run(), &err), &err);
	zip_close(z);
	assert_int_equal(unlink(wheel), 0);
	shell("cd '%s' && I='" INFO "' && { %s; }", test_path("x"), command);
	shell("cd '%s' && find . -type f ! -path '*.dist-info/*' -printf '%%P\\n' | sort > ../list "
	      "&& find . -path "
	      "'*.dist-info/*' -type f "
	      "! -name RECORD "
	      "! -name .metadata-rev -printf '%%P\\n' | sort >> ../list && find . -name "
	      ".metadata-rev -printf '%%P\\n' "
	      ">> ../list && "
	      "find . -name RECORD -printf '%%P\\n' >> ../list",
	      test_path("x"));
	struct zip_writer *w;
	uint8_t sha256[32];
	uint64_t size;
	char line[4096];
	assert_ok(zip_create(&(struct zip_new){.path = wheel, .epoch = 0, .threads = 1, .level = 6},
			     &w, &err),
		  &err);
	FILE *list = fopen(test_path("list"), "r");
	assert_non_null(list);
	while (fgets(line, sizeof(line), list)) {
		line[strcspn(line, "\n")] = '\0';
		assert_ok(zip_add_parts(w, line, test_path("x/%s", line), NULL, 0, sha256, &size,
					&err),
			  &err);
	}
	fclose(list);
	assert_ok(zip_finish(w, sha256, &err), &err);
	return wheel;
}
