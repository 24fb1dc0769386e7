#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* libcurl and libarchive, with the forty libraries that they bring, loaded at the first call of one
 * of their functions: with the sanitizers a program that calls none starts in two thirds of the
 * time. lazy.inc has LAZY(NUMBER, FUNCTION, LIBRARY) for each function of both (lazy.cmake). */

struct function {
	const char *name, *library;
};

#define LAZY(number, name, library) {#name, library},
static const struct function functions[] = {
#include "lazy.inc"
};
#undef LAZY

void *lazy_found[sizeof(functions) / sizeof(functions[0])];
void *lazy_find(unsigned number);

void *lazy_find(unsigned number)
{
	const struct function *f = &functions[number];
	void *library = dlopen(f->library, RTLD_NOW | RTLD_GLOBAL);
	void *found = library ? dlsym(library, f->name) : NULL;

	if (!found) {
		fprintf(stderr, "%s\n", dlerror());
		abort();
	}

	return lazy_found[number] = found;
}

/* What a call passes is kept while the function is looked for: the
 * registers of arguments, and in %al how many of them are vectors'. */
__asm__(".text\n"
	"lazy_first:\n"
	" push %rdi; push %rsi; push %rdx; push %rcx; push %r8; push %r9; push %rax\n"
	" mov %r11d, %edi\n"
	" call lazy_find\n"
	" mov %rax, %r11\n"
	" pop %rax; pop %r9; pop %r8; pop %rcx; pop %rdx; pop %rsi; pop %rdi\n"
	" jmp *%r11\n");

#define LAZY(number, name, library)                                                                \
	__asm__(".globl " #name "\n.type " #name ", @function\n" #name ":\n"                       \
		" mov lazy_found + 8 * " #number "(%rip), %r11\n"                                  \
		" test %r11, %r11\n"                                                               \
		" jz 1f\n"                                                                         \
		" jmp *%r11\n"                                                                     \
		"1: mov $" #number ", %r11d\n"                                                     \
		" jmp lazy_first\n");
#include "lazy.inc"
