/* C++ names for people. */
#pragma once
#include "base/arena.h"

/* demangle: "at::native::foo(int)" for "_ZN2at6native3fooEi", cut after 400 characters; any other
 * name as it is. Safe for names that nobody meant well: short ones can stand for gigabytes. */
char *demangle(const char *name, struct arena *a);
