/* The rules that a wheel is checked by. */
#include "step/verify/verify.h"

const struct verify_rule verify_rules[] = {
	[RULE_ZIP] = {"zip", "every unpacker reads the archive alike, and the metadata is last"},
	[RULE_RECORD] = {"record",
			 "RECORD lists every file with its size and digest, and nothing else"},
	[RULE_METADATA] = {"metadata", "WHEEL and METADATA are there and agree with the file name"},
	[RULE_REQUIRES] = {"requires", "METADATA agrees with the label and with what --with gives"},
	[RULE_SHARED] = {"shared", "no two packages that are installed together own one path"},
	[RULE_MARKER] = {"marker", "the .metadata-rev marker is there and well formed"},
	[RULE_AGAINST] = {"against", "the wheel is the one that --against names"},
	[RULE_PROVENANCE] =
		{"provenance",
		 "a statement next to the wheel (WHEEL.intoto.json) is about this wheel"},
	[RULE_TAG] = {"tag", "the platform tag is not lower than the libraries need"},
	[RULE_ELF] = {"elf", "every library can be read, and what has the name of one is one"},
	[RULE_MODULE] =
		{"module",
		 "every extension module has a suffix that Pythons of the wheel's tags look for"},
	[RULE_ABI3] = {"abi3", "an abi3 wheel uses what the stable ABI of its Python has"},
	[RULE_RPATH] = {"rpath", "library paths are DT_RPATH, relative and inside the packages"},
	[RULE_NEEDED] = {"needed", "every needed library is in the wheel, from a dependency, or "
				   "allowed by manylinux"},
	[RULE_DRIVER] = {"driver",
			 "no library of the GPU's driver is in the wheel: it is the machine's"},
	[RULE_GPU_CODE] = {"gpu-code",
			   "GPU code can be read, and is for the target that its header names"},
	[RULE_GPU_EXTRA] = {"gpu-extra", "no GPU code for targets that are not declared"},
	[RULE_GPU_MISSING] = {"gpu-missing", "every kernel has code for every declared target"},
	[RULE_GPU_PTX] = {"gpu-ptx", "no PTX or link-time code beyond the declared targets"},
	[RULE_UNDEFINED] =
		{"undefined",
		 "every symbol that a library wants is provided inside, by a companion, by "
		 "the system or by Python"},
	[RULE_UNDEFINED_UNCHECKED] =
		{"undefined-unchecked",
		 "(a note) symbols may be from libraries that were not given: see --with"},
	[RULE_THREADS] =
		{"threads",
		 "there is one OpenMP runtime, and no BLAS with threads of its own next to it"},
	[RULE_EXEC_STACK] = {"exec-stack", "no library asks for an executable stack"},
	[RULE_TEXTREL] = {"textrel", "no library has text relocations"},
	[RULE_ISA] = {"isa", "no function uses instructions beyond the declared set"},
	[RULE_ISA_INIT] = {"isa-init", "nor does what runs while a library is loaded"},
	[RULE_ISA_COMDAT] = {"isa-comdat", "nor does code that all units of a library share"},
	[RULE_ISA_UNNAMED] =
		{"isa-unnamed",
		 "functions that use more have a name, so that their callers can be found"},
	[RULE_ISA_DISPATCHED] =
		{"isa-dispatched",
		 "(a note) functions that are called only after a check of the processor"},
	[RULE_ISA_UNCHECKED] = {"isa-unchecked", "all machine code can be examined"},
	[RULE_FAST_MATH] = {"fast-math",
			    "loading a library does not change how the program computes"},
	[RULE_BUILD_PATH] = {"build-path", "no file holds a path of the build"},
	[RULE_NAME] = {"name", "names are seen whole, are taken by file systems, and mean the same "
			       "on all of them"},
	[RULE_START] = {"start", "nothing runs whenever Python starts"},
	[RULE_MODE] = {"mode", "no file is setuid, setgid or sticky"},
	[RULES] = {0},
};
