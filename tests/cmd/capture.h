/* Runs a command line in this process and takes what it
 * prints on standard output. Include support.h first. */
#pragma once
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"

#define CAPTURE_WORDS 24

/* capture_run: "ptbuild WORDS" split at blanks, with the tables of the source tree.
 * Gives cmd_main's result; *ret_out is malloc'd, "" when nothing was printed. */
static inline int capture_run(const char *words, char **ret_out, struct err *e)
{
	char line[1024];
	char *argv[CAPTURE_WORDS] = {(char[]){"ptbuild"}};
	int argc = 1;
	snprintf(line, sizeof(line), "%s", words);
	setenv("PTBUILD_DATA_DIR", TEST_SOURCE_DIR "/..", 1);
	for (char *rest = line, *word; (word = strtok_r(rest, " ", &rest));) {
		assert_true(argc + 1 < CAPTURE_WORDS);
		argv[argc++] = word;
	}
	test_dir();
	test_python("3.13");
	const char *path = test_path("stdout");
	int out = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(out >= 0);
	fflush(stdout);
	int keep = dup(STDOUT_FILENO);
	dup2(out, STDOUT_FILENO);
	int rc = cmd_main(argc, argv, test_run(), e);
	fflush(stdout);
	dup2(keep, STDOUT_FILENO);
	close(keep);
	close(out);
	*ret_out = test_read(path);
	assert_non_null(*ret_out);
	return rc;
}

/* text_of: what a command line that works prints,
 * malloc'd. json_of: the same as JSON (new reference). */
static inline char *text_of(const char *words)
{
	struct err e = {0};
	char *out = NULL;
	assert_ok(capture_run(words, &out, &e), &e);
	return out;
}

static inline json_t *json_of(const char *words)
{
	AUTO_FREE char *text = text_of(words);
	json_error_t error;
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!j)
		fail_msg("%s: line %d: %s", words, error.line, error.text);
	return j;
}
