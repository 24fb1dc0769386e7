/* The word of a version label that says which torch a wheel is for: written, and read in other
 * makers' forms, too. */
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

/* How many digits the minor number has in "26", "210" (2.10), "291" (2.9.1) and "2130" (2.13.0). If
 * there are three, the last two are one number below 30. */
static int minor_digits(const char *digits, size_t n)
{
	if (n > 3)
		return 2;
	return n == 3 && digits[1] < '3' ? 2 : 1;
}

const char *label_torch(const char *label, struct arena *a)
{
	static const char *const words[] = {"torch", "pt"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const char *at = strstr(label, words[i]), *digits = at ? at + strlen(words[i]) : "";
		const size_t n = strspn(digits, "0123456789");
		if (!n || (at > label && isalpha((unsigned char)at[-1])))
			continue;
		if (digits[n] == '.' && isdigit((unsigned char)digits[n + 1]))
			return arena_strndup(a, digits,
					     n + 1 + strspn(digits + n + 1, "0123456789"));
		if (n > 1)
			return arena_printf(a, "%c.%.*s", *digits, minor_digits(digits, n),
					    digits + 1);
	}

	return NULL;
}
