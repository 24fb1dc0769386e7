#include "toy.h"

#include <yaml.h>

int toy_unit1(int), toy_unit2(int), toy_unit3(int), toy_unit4(int), toy_unit5(int), toy_unit6(int), toy_unit7(int), toy_unit8(int), toy_unit9(int);

extern "C" int toy_sum(int n)
{
	return toy_unit1(n) + toy_unit2(n) + toy_unit3(n) + toy_unit4(n) + toy_unit5(n) + toy_unit6(n) + toy_unit7(n) + toy_unit8(n) + toy_unit9(n);
}

extern "C" const char *toy_flags(void)
{
	return TOY_CXX_FLAGS;
}

extern "C" const char *toy_file(void)
{
	return __FILE__;
}

extern "C" const char *toy_yaml(void)
{
	return yaml_get_version_string();
}
