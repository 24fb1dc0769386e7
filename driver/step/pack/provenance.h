/* Provenance: what a wheel was made of and by whom, beside the wheel: an in-toto Statement with
 * SLSA v1 provenance, and the same signed as a DSSE envelope. */
#pragma once
#include <jansson.h>

#include "base/sys/digest.h"

#define PROVENANCE_STATEMENT ".intoto.json" /* behind the wheel's file name */
#define PROVENANCE_ENVELOPE ".dsse.json"

/* provenance_statement: from a build.json alone and without times: the same build has the same
 * statement. ERR_INTEGRITY when the record lacks something. New reference. */
int provenance_statement(const json_t *record, json_t **ret, struct err *e) MUST_CHECK;
/* provenance_write: the statement beside the wheel, and with `key` the signed envelope. Without a
 * key an existing envelope is removed if it holds another statement. */
int provenance_write(const json_t *record, const char *wheel, const struct sign_key *key, struct arena *a,
		     struct err *e) MUST_CHECK;
/* provenance_check: the envelope beside the wheel is signed by `key` and is about this wheel.
 * ERR_INTEGRITY tells a missing, malformed, foreign or changed envelope and other bytes apart. */
int provenance_check(const char *wheel, const struct sign_key *key, struct arena *a, struct err *e) MUST_CHECK;
/* provenance_beside: what the statement beside the wheel, which need not be signed, says of how it
 * was made, for people; NULL: there is none. ERR_INTEGRITY: about another wheel, or broken. */
int provenance_beside(const char *wheel, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
