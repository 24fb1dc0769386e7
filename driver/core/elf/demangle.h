/* C++ names for people. */
#pragma once
#include "base/arena.h"

/* demangle: "at::native::foo(int)" for "_ZN2at6native3fooEi", cut after 400 characters; other names
 * are copied. Safe for hostile names, which can expand to gigabytes. */
char *demangle(const char *name, struct arena *a);
