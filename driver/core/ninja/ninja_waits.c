/* Heavy units before all others, whatever library they belong to.
 *
 * ninja 1.12 starts the command with the longest chain of commands after it, and a pool keeps its places for what
 * became ready first. So a kernel of the last library took one of the few places for heavy units and kept it, without
 * being started, until every ordinary unit of the libraries below was made; the heavy units were left for the end,
 * where they cannot fill the processors. Here each link waits for its heavy units once more, through a few commands
 * that do nothing: their chain is then the longest, and they run beside the ordinary ones from the beginning. Older
 * ninjas go by the order of the file; this changes nothing for them. */
#include <stdlib.h>
#include <string.h>

#include "core/ninja/ninja_log.h"
#include "core/ninja/ninja_parts.h"

#define RULE NINJA_PREFIX "wait"
#define LENGTH 4 /* longer than the chain of libraries that are linked one against the other */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_plain(const char *path)
{
	return path[strcspn(path, " $:|\n\r")] == '\0';
}

/* The outputs of the heavy units, sorted. */
static struct strlist heavy_outputs(const struct ninja_pieces *l, struct arena *a)
{
	struct strlist outputs = {0};
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].kind == KIND_HEAVY && is_plain(l->items[i].output))
			strlist_ref(&outputs, a, l->items[i].output);
	array_sort(outputs.items, outputs.count, sizeof(*outputs.items), by_name);
	return outputs;
}

/* Adds the heavy inputs of a link, with a blank before each. */
static void heavy_inputs(const struct ninja_piece *piece, const struct strlist *heavy, struct buf *ret)
{
	AUTO_BUF struct buf word = {0};
	const char *end = piece->at + piece->head_len;
	bool plain;
	for (const char *p = ninja_skip_blanks(piece->inputs, end), *next; p < end && *p != '|';
	     p = ninja_skip_blanks(next, end)) {
		next = ninja_take_word(p, end, &word, &plain);
		if (next == p)
			return;
		const char *name = buf_cstr(&word);
		if (bsearch(&name, heavy->items, heavy->count, sizeof(*heavy->items), by_name))
			buf_printf(ret, " %s", name);
	}
}

/* Nothing is appended after a '$', which would escape it, nor to an empty joined line. */
static bool has_plain_end(const struct ninja_piece *piece)
{
	char last = piece->at[piece->head_len - 1];
	return last != '$' && last != '\n';
}

void ninja_add_waits(struct ninja_pieces *l, struct arena *a, struct buf *out)
{
	const struct strlist heavy = heavy_outputs(l, a);
	unsigned waits = 0;
	for (size_t i = 0; heavy.count && i < l->count; i++) {
		struct ninja_piece *piece = &l->items[i];
		AUTO_BUF struct buf inputs = {0};
		if (piece->links && has_plain_end(piece))
			heavy_inputs(piece, &heavy, &inputs);
		if (!inputs.len)
			continue;
		if (!waits)
			buf_addstr(out, "rule " RULE "\n  command = : > $out\n");
		piece->wait = ++waits;
		piece->order_only = memmem(piece->at, piece->head_len, "||", 2) != NULL;
		buf_printf(out, "build " NINJA_WAIT_DIR "%u-1: " RULE "%s\n", waits, buf_cstr(&inputs));
		for (unsigned k = 2; k <= LENGTH; k++)
			buf_printf(out, "build " NINJA_WAIT_DIR "%u-%u: " RULE " " NINJA_WAIT_DIR "%u-%u\n", waits, k,
				   waits, k - 1);
	}
}

void ninja_put_wait(const struct ninja_piece *piece, struct buf *out)
{
	if (piece->wait)
		buf_printf(out, "%s " NINJA_WAIT_DIR "%u-%u", piece->order_only ? "" : " ||", piece->wait, LENGTH);
}

/* Where the last word begins, with the blank before it; 0 if that blank is escaped. */
static size_t last_word(const char *head, size_t len)
{
	while (len && head[len - 1] != ' ')
		len--;
	return len > 1 && head[len - 2] != '$' ? len - 1 : 0;
}

/* " .ptbuild-heavy/2-4", as ninja_put_wait writes it. */
static bool is_wait(const char *word, size_t len)
{
	static const char dir[] = " " NINJA_WAIT_DIR;
	const size_t start = sizeof(dir) - 1;
	if (len <= start || memcmp(word, dir, start) != 0)
		return false;
	for (size_t i = start; i < len; i++)
		if ((word[i] < '0' || word[i] > '9') && word[i] != '-')
			return false;
	return true;
}

size_t ninja_head_len(const char *head, size_t len)
{
	for (;;) {
		size_t at = last_word(head, len), n = len - at;
		bool bars = n == 3 && memcmp(head + at, " ||", 3) == 0;
		if (!at || (!bars && !is_wait(head + at, n)))
			return len;
		len = at;
	}
}
