/* The word of a version label that says which torch a wheel is for. */
#include "core/wheel/wheel.h"

#define WORD "torch"

/* One word of a label: letters and digits. */
static void add_word(struct buf *b, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (isalnum((unsigned char)text[i]))
			buf_addc(b, (char)tolower((unsigned char)text[i]));
}

char *label_torch_word(const char *torch_version, const char *label, struct arena *a)
{
	AUTO_BUF struct buf b = {0};
	const size_t n = strcspn(torch_version, "+");
	const char *own = torch_version[n] ? torch_version + n + 1 : "plain";

	buf_addstr(&b, WORD);
	add_word(&b, torch_version, n);
	if (strcmp(own, label) != 0)
		add_word(&b, own, strlen(own));
	return arena_strdup(a, buf_cstr(&b));
}

char *label_without_torch(const char *label, struct arena *a)
{
	const size_t n = strlen(WORD);
	const char *last = label + strlen(label);

	while (last > label && !strchr("._-", last[-1]))
		last--;
	const bool word =
		last > label && strncasecmp(last, WORD, n) == 0 && isdigit((unsigned char)last[n]);
	return arena_strndup(a, label, word ? (size_t)(last - label) - 1 : strlen(label));
}
