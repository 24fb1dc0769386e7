/* The recipes of the projects that ptbuild replaces, from
 * tests/data/recipe-matrices.txt, which is independent of the tables. */
#pragma once
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/strlist.h"

#define RECIPE_BRANCHES 12

struct recipe_branch {
	const char *name;
	const char *release;
	size_t recipes;         /* as documented */
	struct strlist names;   /* as variants, in the order of the file */
	struct strlist refused; /* those of them that no toolkit can build */
};

static inline void recipe_isas(const char *words, struct arena *a, struct strlist *ret)
{
	struct strlist l = {0};
	strlist_split(&l, a, words, ",");
	for (size_t i = 0; i < l.count; i++) {
		const char *word = l.items[i];
		bool x86 = strncmp(word, "x86-", 4) == 0;
		if (strcmp(word, "x86-5") == 0)
			strlist_ref(ret, a, "avx");
		if (x86)
			strlist_split(ret, a, "avx2 avx512 avx512bf16 avx512vnni", " ");
		else if (strcmp(word, "arm") == 0)
			strlist_split(ret, a, "armv8_2 armv9", " ");
		else
			strlist_ref(ret, a, word);
	}
}

static inline void recipe_profiles(const struct strlist *row, const char *toolkit, struct arena *a,
				   struct strlist *ret)
{
	struct strlist gpus = {0};
	struct strlist isas = {0};
	if (strcmp(toolkit, "mps") == 0) {
		strlist_ref(ret, a, "darwin-mps");
		return;
	}
	strlist_split(&gpus, a, row->items[3], ",");
	recipe_isas(row->items[4], a, &isas);
	for (size_t i = 0; i < gpus.count; i++)
		for (size_t k = 0; k < isas.count; k++)
			if (strcmp(toolkit, "cpu") == 0)
				strlist_addf(ret, a, "cpu-%s", isas.items[k]);
			else
				strlist_addf(ret, a, "%s-sm%s-%s", toolkit, gpus.items[i],
					     isas.items[k]);
}

static inline void recipe_row(struct recipe_branch *b, const char *line, struct arena *a)
{
	bool refused = strncmp(line, "refused ", 8) == 0;
	struct strlist row = {0};
	struct strlist packages = {0};
	struct strlist toolkits = {0};
	strlist_split(&row, a, refused ? line + 8 : line, " ");
	assert_int_equal(row.count, 5);
	strlist_split(&packages, a, row.items[0], ",");
	strlist_split(&toolkits, a, row.items[2], ",");
	for (size_t t = 0; t < toolkits.count; t++) {
		struct strlist profiles = {0};
		recipe_profiles(&row, toolkits.items[t], a, &profiles);
		for (size_t i = 0; i < packages.count; i++)
			for (size_t k = 0; k < profiles.count; k++) {
				const char *name =
					arena_printf(a, "%s-python%s-%s", packages.items[i],
						     row.items[1], profiles.items[k]);
				strlist_ref(&b->names, a, name);
				if (refused)
					strlist_ref(&b->refused, a, name);
			}
	}
}

/* Fills RECIPE_BRANCHES branches. */
static inline void recipe_branches(struct recipe_branch *branches, struct arena *a)
{
	struct strlist lines = {0};
	size_t count = 0;
	char *text = test_read(TEST_DATA_DIR "/recipe-matrices.txt");
	assert_non_null(text);
	strlist_split(&lines, a, text, "\n");
	free(text);
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i];
		if (*line == '#')
			continue;
		if (strncmp(line, "branch ", 7) != 0) {
			assert_true(count > 0);
			recipe_row(&branches[count - 1], line, a);
			continue;
		}
		struct strlist words = {0};
		strlist_split(&words, a, line, " ");
		assert_int_equal(words.count, 4);
		assert_true(count < RECIPE_BRANCHES);
		branches[count++] =
			(struct recipe_branch){.name = words.items[1],
					       .release = words.items[2],
					       .recipes = strtoul(words.items[3], NULL, 10)};
	}
	assert_int_equal(count, RECIPE_BRANCHES);
}
