/* The torch of the root, which a companion is built against: it is imported, its headers are read and its CMake package
 * is looked for as the build does. A part of it may be missing: Debian has it in three packages. */
#include <string.h>

#include "step/preflight/preflight_parts.h"

/* Headers are only preprocessed: compiling them takes ten seconds. */
static const char script[] =
	"say() { echo \"$1: $(sed -n \"/$2/,\\$p\" log | head -n \"$3\")\" >&2; exit 1; }\n"
	"d=$(mktemp -d) || exit; trap 'rm -rf \"$d\"' EXIT; cd \"$d\" || exit\n"
	"python3 -I -c 'import sysconfig, torch.utils, torch.utils.cpp_extension as x\n"
	"print(torch.utils.cmake_prefix_path)\n"
	"print(sysconfig.get_paths()[\"include\"], *x.include_paths(), sep=\"\\n\")' >said 2>log || say 'it cannot be "
	"imported' Error 1\n"
	"{ read -r prefix; while read -r path; do set -- \"$@\" -isystem \"$path\"; done; } <said\n"
	"echo '#include <torch/extension.h>' >t.cpp; g++ -std=c++17 -E -o t.ii \"$@\" t.cpp 2>log || say 'its headers "
	"are not all there' error 1\n"
	"echo 'cmake_minimum_required(VERSION 3.18)\n"
	"project(t C CXX)\n"
	"find_package(Torch REQUIRED)' >CMakeLists.txt\n"
	"cmake -S . -B b -DCMAKE_PREFIX_PATH=\"$prefix\" >log 2>&1 || say 'CMake does not find it' 'CMake Error' 6\n";

int preflight_torch(struct preflight *d, struct err *e)
{
	const struct plan *p = d->q->plan;
	const struct strlist none = {0};
	struct preflight_answer got;
	if (!p || strcmp(p->torch, "root") != 0)
		return 0;
	if (preflight_ask(d, script, &none, &got, e) < 0)
		return -1;
	if (got.ok)
		preflight_ok(d, "torch", "%s of the root: imported, headers and CMake package found", p->torch_version);
	else
		preflight_fail(d, ERR_SYSTEM, "torch", "the root's torch does not serve: %s", got.why);
	if (!got.ok)
		preflight_install(d, "python3-torch libtorch-dev", false);
	return 0;
}
