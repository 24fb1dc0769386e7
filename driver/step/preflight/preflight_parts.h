/* The tests of the table's rows: each adds lines, and gives -1 only when interrupted. */
#pragma once
#include "step/preflight/preflight.h"

typedef int preflight_test(struct preflight *d, struct err *e);

preflight_test preflight_platform, preflight_sandbox, preflight_cpu, preflight_torch_fits, preflight_places,
	preflight_memory, preflight_decoder; /* the machine */
preflight_test preflight_tools, preflight_python, preflight_flags, preflight_blas, preflight_torch,
	preflight_cuda; /* the root */
/* Those of needs.yaml that are found without running anything: programs of this machine, programs
 * and headers of the root. */
preflight_test preflight_programs, preflight_files;
