/* Any bytes as the journal of a part's tests: what is read has an outcome and at least one try. */
#include <string.h>

#include "base/sys/json.h"
#include "fuzz.h"
#include "step/test/test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf out = {0};
	static const struct test_package none;
	struct test_journal j;
	struct err e = {0};
	const char *name;
	json_t *result;

	if (test_journal_parse(&(struct file_bytes){(const char *)data, size, "fuzz"}, &a, &j, &e) <
	    0) {
		fail_unless(e.kind == ERR_INTEGRITY && strncmp(e.msg, "fuzz:", 5) == 0);
		return 0;
	}

	json_object_foreach(j.tests, name, result)
	{
		fail_unless(json_is_string(json_object_get(result, "outcome")));
		fail_unless(json_integer_value(json_object_get(result, "tries")) > 0);
	}

	size_t count = json_object_size(j.tests);
	json_t *doc = test_judge(&none, json_pack("{s:o}", "a.py", j.tests)),
	       *s = json_object_get(doc, "summary");
	size_t told =
		(size_t)(json_int(s, "passed") + json_int(s, "skipped") + json_int(s, "flaky"));
	fail_unless((size_t)json_int(s, "run") == count &&
		    told + (size_t)json_int(s, "unexpected") == count);
	fail_unless(*show_string(doc, test_show, &a));
	test_junit("fuzz", doc, &out);
	json_decref(doc);
	return 0;
}
