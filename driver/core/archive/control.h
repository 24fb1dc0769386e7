/* Debian control text: paragraphs of "Field: value" lines, with blank lines between them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct control {
	const char *file; /* for messages */
	const char *pos, *end;
	unsigned line; /* of the line read last */
	bool inside;   /* of a paragraph */
};

/* A field, as pieces of the text. */
struct control_field {
	const char *name, *value;
	/* the value without blanks at its ends; further lines of it begin with a blank */
	size_t name_len, value_len;
	unsigned line;
};

enum control_got { CONTROL_FIELD, CONTROL_PARAGRAPH_END, CONTROL_END };

/* control_open: over `len` bytes that the caller keeps. */
void control_open(struct control *c, const char *file, const char *text, size_t len);
/* control_next: the next field, or the end of a paragraph (each that has fields ends once), or of
 * the text. ERR_INTEGRITY with file and line for a line that is not of this form, is longer than
 * 1 MiB or has control characters. */
int control_next(struct control *c, enum control_got *ret, struct control_field *ret_field, struct err *e) MUST_CHECK;
/* control_is: whether the field has this name, in any case. */
bool control_is(const struct control_field *f, const char *name);
