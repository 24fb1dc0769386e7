/* The checks of doctor: each adds lines, and gives -1 only when interrupted. */
#pragma once
#include "cmd/doctor_lines.h"

/* doctor_sandbox: whether one can be made. doctor_root: what lies in the root. doctor_cuda: the
 * toolkit and its libraries. doctor_machine: programs of the host, processor, disk and memory. */
int doctor_sandbox(struct doctor *d, struct err *e) MUST_CHECK;
int doctor_root(struct doctor *d, struct err *e) MUST_CHECK;
int doctor_cuda(struct doctor *d, struct err *e) MUST_CHECK;
int doctor_machine(struct doctor *d, struct err *e) MUST_CHECK;
