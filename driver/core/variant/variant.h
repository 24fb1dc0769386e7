/* Variants: the exact name of one build, as the recipe projects spelled it. */
#pragma once
#include "core/variant/profile.h"

struct variant {
	const char *package; /* "pytorch", "torchvision", "torchaudio" */
	const char *python;  /* "3.13" */
	const char *cuda;    /* "12.8", NULL without CUDA */
	struct profile profile;
};

/* The grammar (docs/profiles.md has it for users):
 *   variant = package "-python" digits "-" [ "cuda" N "_" N "-" ] profile
 *           | "python" digits "Packages." package "-" [ "cuda" N "_" N "-" ] profile
 *   profile = ( "cpu" | target { "+" target } ) "-" isa | "darwin-mps"
 *           | the stem of a file in <profiles>/examples
 *   target  = "sm" digits [ "a" | "f" ] [ "+ptx" ]
 * The first form has the toolkit if and only if the profile has GPU targets; the second, older
 * one may leave it open.
 * variant_parse: "pytorch-python313-cuda12_8-sm90-avx512", "torchvision-python313-cpu-avx2",
 * "pytorch-python311-darwin-mps". ERR_CONFIG says which part is wrong. */
int variant_parse(const struct tables *t, const char *name, struct arena *a, struct variant *ret,
		  struct err *e) MUST_CHECK;
/* variant_name: the canonical name; variant_parse of it gives the same variant. Targets are
 * sorted, aliases of instruction sets replaced; only a toolkit that is open leaves the older
 * form as it is. */
char *variant_name(const struct variant *v, struct arena *a);
/* variant_toolkit_word: "12.8" as names have it: "cuda12_8". */
char *variant_toolkit_word(const char *version, struct arena *a);
/* variant_spell: a variant's name from its parts; cuda may be NULL. */
char *variant_spell(const char *package, const char *python, const char *cuda, const char *profile, struct arena *a);
/* variant_looks_like: whether a word begins like a variant: a package and "-python". */
bool variant_looks_like(const char *word);
