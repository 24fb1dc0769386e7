/* Real ELF files for the tests: compiled by the machine's gcc in the test directory. */
#pragma once
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* shell: runs a command in the test directory with LD_LIBRARY_PATH unset; its exit status. */
__attribute__((format(printf, 1, 2), unused)) static int shell(const char *fmt, ...)
{
	char command[8192], whole[16384];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	snprintf(whole, sizeof(whole),
		 "cd '%s' && unset LD_LIBRARY_PATH && { %s; } >shell.out 2>&1", test_path("."),
		 command);
	int status = system(whole);
	return status < 0 || !WIFEXITED(status) ? 255 : WEXITSTATUS(status);
}

/* must: as shell; the test fails with the output unless the status is 0. */
#define must(...)                                                                                  \
	do {                                                                                       \
		if (shell(__VA_ARGS__) != 0)                                                       \
			fail_msg("%s", test_read(test_path("shell.out")));                         \
	} while (0)

/* compile: `code` into the file `name`, by gcc with `options` ("-shared -fPIC ..."). */
__attribute__((unused)) static const char *compile(const char *name, const char *code,
						   const char *options)
{
	test_write(test_path("%s.c", name), code);
	must("mkdir -p \"$(dirname '%s')\" && gcc -O1 -o '%s' '%s.c' %s", name, name, name,
	     options);
	must("rm '%s.c'", name);
	return test_path("%s", name);
}

/* load: opens a library in a process of its own and calls int NAME(void) of
 * it; its value, -1 when the loader refuses (its words are in shell.out). */
__attribute__((unused)) static int load(const char *library, const char *function)
{
	struct stat st;
	if (stat(test_path("loader"), &st) != 0) {
		compile("loader",
			"#include <dlfcn.h>\n#include <stdio.h>\n"
			"int main(int c, char **v) { void *h = dlopen(v[1], RTLD_NOW); if (!h) { "
			"puts(dlerror()); "
			"return 255; }\n"
			"int (*f)(void) = (int (*)(void))dlsym(h, v[2]); return c == 3 && f ? f() "
			": 254; }\n",
			"");
	}
	int status = shell("./loader '%s' %s", library, function);
	return status >= 254 ? -1 : status;
}
