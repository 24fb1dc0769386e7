/* What only the files of this room share. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* slurm.sh, put into the program when that is built. */
extern const unsigned char slurm_script[];
extern const size_t slurm_script_size;

/* ci_is_sbatch_label: whether a label of a runner is an option of sbatch that a map may give:
 * "partition=gpu". */
bool ci_is_sbatch_label(const char *label);
