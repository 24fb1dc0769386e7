#include <stdlib.h>
#include <string.h>

#include "step/verify/verify.h"

const struct verify_rule verify_rules[] = {
	{"zip", "the archive is one that every unpacker reads alike, the metadata last"},
	{"record", "RECORD lists every file with its size and sha256, and nothing else"},
	{"metadata", "WHEEL and METADATA are there and agree with the file name"},
	{"marker", "the .metadata-rev marker is there and well formed"},
	{"against", "the wheel is the one that --against names"},
	{"tag", "the platform tag is not lower than the libraries need"},
	{"elf", "every library can be read"},
	{"rpath", "library paths are DT_RPATH, relative and inside the packages"},
	{"needed", "every needed library is inside, of a dependency, or allowed by manylinux"},
	{"gpu-code", "GPU code can be read, and is for the target that its header names"},
	{"gpu-extra", "no GPU code for another target than promised"},
	{"gpu-missing", "every kernel has code for every promised target"},
	{"gpu-ptx", "no PTX or link-time code beyond the promise"},
	{"undefined",
	 "every symbol that a library wants is provided inside, by a companion, by the system or by Python"},
	{"undefined-unchecked", "(a note) symbols of libraries that are not at hand: see --with"},
	{"exec-stack", "no library asks for an executable stack"},
	{"textrel", "no library has text relocations"},
	{"isa", "no function uses instructions beyond the promise"},
	{"isa-init", "nor does what runs while a library is loaded"},
	{"isa-comdat", "nor does code that all units of a library share"},
	{"isa-unnamed", "what uses more has a name, so that its callers can be told"},
	{"isa-dispatched", "(a note) functions for which something looks at the processor first"},
	{"isa-unchecked", "all machine code can be examined"},
	{"build-path", "no file holds a path of the build"},
	{0},
};

const struct verify_rule *verify_rule_find(const char *code)
{
	for (const struct verify_rule *r = verify_rules; r->code; r++) {
		if (strcmp(r->code, code) == 0)
			return r;
	}
	return NULL;
}
