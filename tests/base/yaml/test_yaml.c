#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/run.h"
#include "base/yaml/yaml.h"

struct suffix {
	const char *suffix;
	const char *since;
};

struct row {
	const char *sm;
	const char *name;
	const char **devices;
	unsigned devices_count;
	bool checked;
	unsigned rank;
	unsigned long bytes;
	struct suffix *suffixes;
	unsigned suffixes_count;
	struct suffix *best;
	unsigned line;
};

struct top {
	struct row *gpus;
	unsigned gpus_count;
	const char *note;
};

struct any {
	const struct yaml_tree *a, *b;
};

PLAIN(suffix, struct suffix, NEED(struct suffix, suffix), MAY(struct suffix, since));
ROW(row, struct row, NEED(struct row, sm), MAY(struct row, name), LIST(struct row, devices),
    FLAG(struct row, checked), NUMBER(struct row, rank), NUMBER(struct row, bytes),
    {"suffixes", YAML_ROWS, LIST_AT(struct row, suffixes), .filled = true, .of = &suffix_schema},
    {"best", YAML_ROW, .offset = offsetof(struct row, best), .of = &suffix_schema});
PLAIN(top, struct top,
      {"gpus", YAML_ROWS, LIST_AT(struct top, gpus), .need = true, .of = &row_schema},
      MAY(struct top, note));
PLAIN(any, struct any, NODE(struct any, a), NODE(struct any, b));

static const char good[] = "# table\n"
			   "gpus:\n"
			   "  - sm: 9.0\n"
			   "    name: \"Hopper: one\"\n"
			   "    devices: [H100, H200]\n"
			   "    checked: true\n"
			   "    rank: 12\n"
			   "    bytes: 4294967296\n"
			   "\n"
			   "    suffixes:\n"
			   "      - suffix: a\n"
			   "        since: 12.10\n"
			   "      - suffix: f\n"
			   "    best: {suffix: &z z}\n"
			   "  - sm: 1e3\n"
			   "note: |\n"
			   "  two\n"
			   "  lines\n";

static struct top *load(struct arena *a, const char *yaml)
{
	struct err e = {0};
	struct top *top = arena_alloc(a, sizeof(*top));

	test_dir();
	test_write(test_path("t.yaml"), yaml);
	assert_ok(yaml_load(test_path("t.yaml"), &top_schema, a, top, NULL, &e), &e);
	return top;
}

static const struct yaml_tree *tree_of(struct arena *a, const char *yaml)
{
	struct err e = {0};
	struct yaml_tree *tree = arena_alloc(a, sizeof(*tree));

	test_dir();
	test_write(test_path("t.yaml"), yaml);
	assert_ok(yaml_tree_load(test_path("t.yaml"), a, tree, &e), &e);
	return tree;
}

/* It is refused, at that line with these words. */
static void refused(const char *yaml, size_t len, const char *want, const char *hint)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct top top = {0};
	const struct yaml_tree *tree = NULL;

	test_dir();
	test_write_bytes(test_path("t.yaml"), yaml, len);
	assert_err(yaml_load(test_path("t.yaml"), &top_schema, &a, &top, &tree, &e), &e, ERR_CONFIG,
		   want);
	assert_memory_equal(e.msg, test_path("t.yaml:"), strlen(test_path("t.yaml:")));
	assert_contains(e.hint, hint);
	assert_null(tree);
}

#define BAD(yaml, want, hint) refused((yaml), strlen(yaml), "t.yaml:" want, (hint))
#define INVALID(yaml, want) refused((yaml), strlen(yaml), "t.yaml:" want, "")

static void everything_is_loaded(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct top *t = load(&a, good);
	assert_int_equal(t->gpus_count, 2);
	const struct row *r = &t->gpus[0];
	assert_string_equal(r->name, "Hopper: one");
	assert_int_equal(r->devices_count, 2);
	assert_string_equal(r->devices[1], "H200");
	assert_true(r->checked);
	assert_int_equal(r->rank, 12);
	assert_true(r->bytes == 4294967296);
	assert_int_equal(r->line, 3);
	assert_int_equal(t->gpus[1].line, 15);
	assert_int_equal(r->suffixes_count, 2);
	assert_string_equal(r->best->suffix, "z");
	assert_string_equal(t->note, "two\nlines\n");
	/* Some editors begin with a byte order mark. */
	t = load(&a, arena_printf(&a, "\xef\xbb\xbf%s", good + strlen("# table\n")));
	assert_int_equal(t->gpus_count, 2);
	assert_int_equal(t->gpus[1].line, 14);
}

static void plain_scalars_keep_their_text(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct top *t = load(&a, good);
	assert_string_equal(t->gpus[0].sm, "9.0");
	assert_string_equal(t->gpus[0].suffixes[0].since, "12.10");
	assert_string_equal(t->gpus[1].sm, "1e3");
	t = load(&a, "gpus: [{sm: yes, name: null}, {sm: 0x1F, name: ~}]\n");
	assert_string_equal(t->gpus[0].sm, "yes");
	assert_string_equal(t->gpus[0].name, "null");
	assert_string_equal(t->gpus[1].sm, "0x1F");
}

static void absent_options_are_empty(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct top *t = load(&a, good);
	const struct row *r = &t->gpus[1];
	assert_string_equal(r->name, "");
	assert_int_equal(r->devices_count, 0);
	assert_int_equal(r->suffixes_count, 0);
	assert_null(r->best);
	assert_int_equal(r->rank, 0);
	assert_string_equal(t->gpus[0].suffixes[1].since, "");
	t = load(&a, "gpus: [{sm: x, best: {suffix: a, since: }}]\n");
	assert_string_equal(t->gpus[0].best->since, "");
	assert_string_equal(t->note, "");
}

static void long_lists_are_loaded_in_order(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf b = {0};
	buf_addstr(&b, "gpus:\n");
	for (int i = 0; i < 3000; i++)
		buf_printf(&b, "  - {sm: s%d, rank: %d}\n", i, i);
	const struct top *t = load(&a, buf_cstr(&b));
	assert_int_equal(t->gpus_count, 3000);
	for (unsigned i = 0; i < 3000; i++) {
		char want[16];
		snprintf(want, sizeof(want), "s%u", i);
		assert_string_equal(t->gpus[i].sm, want);
		assert_int_equal(t->gpus[i].rank, i);
		assert_string_equal(t->gpus[i].name, "");
	}
}

static void unknown_keys_are_named_with_the_nearest(void **state)
{
	(void)state;
	BAD("gpus:\n  - sm: 1\n    nmae: x\n", "3: unknown key 'nmae'", "did you mean 'name'?");
	BAD("gpus: []\nremarks: 1\n", "2: unknown key 'remarks'", "known keys: gpus, note");
	BAD("gpus:\n  - sm: 1\n    suffixes:\n    - suffix: a\n      sinse: 2\n",
	    "5: unknown key 'sinse'", "did you mean 'since'?");
	BAD("gpus:\n  - sm: 1\n    best:\n      z1z1z1: a\n      a1a1a1: 2\n",
	    "4: unknown key 'z1z1z1'", "known keys: suffix, since");
}

static void missing_keys_are_named(void **state)
{
	(void)state;
	BAD("note: x\n", "1: missing key 'gpus'", "");
	BAD("gpus:\n  - sm: 1\n  - name: x\n", "3: missing key 'sm'", "");
	BAD("gpus:\n  - {}\n", "2: missing key 'sm'", "");
	BAD("gpus:\n  - sm: 1\n    best: {since: 1}\n", "3: missing key 'suffix'", "");
}

static void wrong_types_are_named(void **state)
{
	(void)state;
	BAD("gpus:\n  - sm: [1]\n", "2: wrong type: 'sm' must be text, not a list", "");
	BAD("gpus:\n  sm: 1\n", "1: wrong type: 'gpus' must be a list, not a mapping", "");
	BAD("gpus:\n", "1: wrong type: 'gpus' must be a list, not text", "");
	BAD("gpus:\n  - 9.0\n", "2: wrong type: an entry of 'gpus' must be a mapping, not text",
	    "");
	BAD("gpus:\n  - sm: 1\n    devices:\n      - a\n      - {b: c}\n",
	    "5: wrong type: an entry of 'devices' must be text, not a mapping", "");
	BAD("gpus:\n  - sm: 1\n    best: z\n", "3: wrong type: 'best' must be a mapping, not text",
	    "");
}

static void numbers_are_plain_decimals(void **state)
{
	(void)state;
	static const char *const bad[] = {"x",  "12abc", "1.5", "012",    "0x10",
					  "+1", "-1",    "",    "\"1 \"", "1_000"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char yaml[128];
		snprintf(yaml, sizeof(yaml), "gpus:\n  - sm: 1\n    rank: %s\n", bad[i]);
		BAD(yaml, "3: wrong value of 'rank': '", "");
	}

	AUTO_ARENA struct arena a = {0};
	const struct top *t = load(&a, "gpus:\n  - {sm: 1, rank: 0, bytes: 18446744073709551615}\n "
				       " - {sm: 2, rank: 4294967295}\n");
	assert_true(t->gpus[0].bytes == UINT64_MAX);
	assert_int_equal(t->gpus[1].rank, UINT32_MAX);
}

static void numbers_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	BAD("gpus:\n  - sm: 1\n    rank: 4294967296\n",
	    "3: wrong value of 'rank': '4294967296' is not a whole number in range", "");
	BAD("gpus:\n  - sm: 1\n    rank: 99999999999999999999999\n", "3: wrong value of 'rank'",
	    "");
	BAD("gpus:\n  - sm: 1\n    bytes: 18446744073709551616\n", "3: wrong value of 'bytes'", "");
}

static void truth_is_true_or_false(void **state)
{
	(void)state;
	static const char *const bad[] = {"yes", "no", "True", "1", "maybe", "", "truee"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char yaml[128];
		snprintf(yaml, sizeof(yaml), "gpus:\n  - sm: 1\n    checked: %s\n", bad[i]);
		BAD(yaml, "3: wrong value of 'checked': '", "");
	}

	AUTO_ARENA struct arena a = {0};
	assert_false(load(&a, "gpus: [{sm: 1, checked: false}]")->gpus[0].checked);
}

static void lengths_are_checked(void **state)
{
	(void)state;
	BAD("gpus:\n  - sm: \"\"\n", "2: 'sm' is empty", "");
	BAD("gpus:\n  - sm: 1\n    suffixes: []\n", "3: 'suffixes' needs at least 1 entry", "");
	BAD("gpus:\n  - sm: 1\n    devices: [\"\"]\n", "3: 'devices' is empty", "");
}

static void duplicate_keys_are_refused(void **state)
{
	(void)state;
	INVALID("gpus: []\nnote: a\ngpus: []\n", "3: duplicate key 'gpus' (first on line 1)");
	INVALID("gpus:\n  - sm: 1\n    rank: 1\n    name: a\n    rank: 1\n",
		"5: duplicate key 'rank' (first on line 3)");
	INVALID("gpus: [{sm: 1, sm: 1}]\n", "1: duplicate key 'sm'");
}

static void one_document_that_is_a_mapping(void **state)
{
	(void)state;
	INVALID("", "1: the file is empty");
	INVALID("# nothing\n\n", "");
	INVALID("gpus: []\n---\ngpus: []\n", "2: more than one document");
	INVALID("---\n...\n", "2: 'key: value' lines are expected at the top");
	INVALID("- gpus\n", "1: 'key: value' lines are expected at the top");
	INVALID("\n\nword\n", "3: 'key: value' lines are expected at the top");
	AUTO_ARENA struct arena a = {0};
	assert_int_equal(load(&a, "---\ngpus: []\n...\n")->gpus_count, 0);
}

static void aliases_stand_for_their_anchors(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct top *t = load(&a, "gpus:\n"
				       "  - sm: &first 9.0\n"
				       "    devices: &d [H100, &h H200]\n"
				       "    suffixes: &s\n"
				       "      - &one {suffix: a, since: &v 12.0}\n"
				       "    best: *one\n"
				       "  - {sm: *h, name: *first, devices: *d, suffixes: *s}\n"
				       "  - sm: x\n"
				       "    suffixes: [*one, {suffix: b, since: *v}, *one]\n"
				       "note: *v\n");
	assert_int_equal(t->gpus_count, 3);
	assert_string_equal(t->gpus[0].best->since, "12.0");
	assert_string_equal(t->gpus[1].sm, "H200");
	assert_string_equal(t->gpus[1].name, "9.0");
	assert_int_equal(t->gpus[1].devices_count, 2);
	assert_string_equal(t->gpus[1].devices[0], "H100");
	assert_string_equal(t->gpus[1].suffixes[0].suffix, "a");
	assert_int_equal(t->gpus[2].suffixes_count, 3);
	assert_string_equal(t->gpus[2].suffixes[1].since, "12.0");
	assert_string_equal(t->gpus[2].suffixes[2].suffix, "a");
	assert_string_equal(t->note, "12.0");
}

static void lines_behind_an_alias_are_the_anchors(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct yaml_tree *l = tree_of(&a, "a: &a\n  - x: 1\n  - y: 2\nb:\n  c: *a\n");
	assert_int_equal(yaml_line(l, "b/c"), 5);
	assert_int_equal(yaml_line(l, "b/c/1/y"), 3);
	BAD("gpus:\n  - sm: 1\n    devices: &d [a]\n  - sm: *d\n",
	    "4: wrong type: 'sm' must be text, not a list", "");
}

static void odd_anchors_aliases_and_tags_are_refused(void **state)
{
	(void)state;
	INVALID("note: *n\n", "1: alias 'n' has no anchor before it");
	INVALID("a: &a\n  b: *a\n", "2: alias 'a' has no anchor before it");
	INVALID("note: x\n<<: *base\n", "2: alias 'base' has no anchor before it");
	INVALID("a: &x 1\nb: 1\nc: &x 2\n", "3: duplicate anchor 'x' (first on line 1)");
	INVALID("gpus:\n  - {&k sm: 1}\n", "2: a key must be plain text");
	INVALID("note: &n x\n*n : y\n", "2: a key must be plain text");
	INVALID("gpus:\n  - sm: !!str 1\n", "2: tags are not supported");
	INVALID("gpus: !list\n  - sm: 1\n", "1: tags are not supported");
	BAD("note: &n {sm: 1}\ngpus: [<<: *n]\n", "2: unknown key '<<'", "known keys: sm");
}

static void aliases_cannot_blow_a_file_up(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	buf_addstr(&b, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
	for (int i = 1; i < 30; i++) {
		buf_printf(&b, "a%d: &a%d [", i, i);
		for (int n = 0; n < 10; n++)
			buf_printf(&b, "*a%d,", i - 1);
		buf_addstr(&b, "]\n");
	}

	refused(b.data, b.len, "t.yaml:5: more than 100000 values", "");
	buf_reset(&b);
	buf_addstr(&b, "note: [");
	for (int i = 0; i < 100001; i++)
		buf_addstr(&b, "1,");
	buf_addstr(&b, "]\n");
	refused(b.data, b.len, "t.yaml:1: more than 100000 values", "");
}

static void broken_syntax_has_its_line(void **state)
{
	(void)state;
	INVALID("gpus: [\n", "2: invalid YAML: while parsing a flow node");
	INVALID("gpus: []\n\tnote: x\n", "2: invalid YAML");
	INVALID("gpus: []\n  note: x\n", "2: invalid YAML");
	INVALID("note: \"open\n",
		"2: invalid YAML: while scanning a quoted scalar, found unexpected end of stream");
	INVALID("note: a\n? [x]\n: b\n", "2: a key must be plain text");
	INVALID("%YAML 3.0\n---\nnote: a\n", "1: invalid YAML: found incompatible YAML document");
	INVALID("note: `x\n", "1: invalid YAML");
}

static void text_that_is_not_utf8_has_its_line(void **state)
{
	(void)state;
	INVALID("gpus: []\n\nnote: \"a\xff\"\n", "3: invalid YAML: invalid leading UTF-8 octet");
	INVALID("gpus: []\nnote: \x01\n", "2: invalid YAML: control characters are not allowed");
	INVALID("note: \xc3\n", "1: invalid YAML");
	refused("\xff\xfen\0o\0t\0e\0:\0 \0x\0\n\0", 18, "t.yaml:1: invalid YAML", "");
	refused("note: a\0b\n", 10, "t.yaml:1: invalid YAML", "");
	INVALID("note: \"a\\0b\"\n", "1: a text with a NUL byte");
	INVALID("\"no\\0te\": b\n", "1: a text with a NUL byte");
}

static void deep_nesting_is_refused(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	buf_addstr(&b, "note: ");
	for (int i = 0; i < 100000; i++)
		buf_addc(&b, '[');
	refused(b.data, b.len, "t.yaml:1: nested too deeply", "");
	buf_reset(&b);
	for (int i = 0; i < 70; i++)
		buf_printf(&b, "%*sk:\n", i, "");
	refused(b.data, b.len, "t.yaml:", "");
}

static void unreadable_and_huge_files(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct yaml_tree t;
	test_dir();
	assert_err(yaml_tree_load(test_path("none.yaml"), &a, &t, &e), &e, ERR_CONFIG,
		   "none.yaml': No such file");
	assert_err(yaml_tree_load(test_path("."), &a, &t, &e), &e, ERR_CONFIG,
		   "not a regular file");
	char *big = calloc(1, (4 << 20) + 1);
	assert_non_null(big);
	memset(big, '#', (4 << 20) + 1);
	test_write_bytes(test_path("big.yaml"), big, (4 << 20) + 1);
	free(big);
	assert_err(yaml_tree_load(test_path("big.yaml"), &a, &t, &e), &e, ERR_CONFIG,
		   "big.yaml' has more than 4194304 bytes");
}

static void lines_of_every_node(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct yaml_tree *l = tree_of(&a, good);
	assert_int_equal(yaml_line(l, "%s", ""), 1);
	assert_int_equal(yaml_line(l, "gpus"), 2);
	assert_int_equal(yaml_line(l, "gpus/%d", 0), 3);
	assert_int_equal(yaml_line(l, "gpus/0/sm"), 3);
	assert_int_equal(yaml_line(l, "gpus/0/%s", "bytes"), 8);
	assert_int_equal(yaml_line(l, "gpus/0/devices/1"), 5);
	assert_int_equal(yaml_line(l, "gpus/0/suffixes/0/since"), 12);
	assert_int_equal(yaml_line(l, "gpus/0/suffixes/1"), 13);
	assert_int_equal(yaml_line(l, "gpus/0/best/suffix"), 14);
	assert_int_equal(yaml_line(l, "gpus/1"), 15);
	assert_int_equal(yaml_line(l, "note"), 16);
}

static void unknown_nodes_have_their_parents_line(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct yaml_tree *l = tree_of(&a, good);
	assert_int_equal(yaml_line(l, "none"), 1);
	assert_int_equal(yaml_line(l, "gpus/7/sm"), 2);
	assert_int_equal(yaml_line(l, "gpus/1/name"), 15);
	assert_int_equal(yaml_line(l, "gpus/x"), 2);
	assert_int_equal(yaml_line(l, "gpus/-1"), 2);
	assert_int_equal(yaml_line(l, "gpus/99999999999999999999"), 2);
	assert_int_equal(yaml_line(l, "gpus//"), 2);
	assert_int_equal(yaml_line(l, "gpus/0/sm/deeper"), 3);
	assert_int_equal(yaml_line(l, "gpus/1%2000d", 1), 2);
}

static void a_node_is_taken_as_it_stands(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct any any = {0};
	test_dir();
	test_write(test_path("t.yaml"), "a:\n  z: [1]\n  y: 2\n  z: 3\n");
	assert_ok(yaml_load(test_path("t.yaml"), &any_schema, &a, &any, NULL, &e), &e);
	assert_null(any.b);
	assert_int_equal(any.a->kind, YAML_MAPPING);
	assert_int_equal(any.a->count, 3);
	assert_string_equal(any.a->items[0].key, "z");
	assert_int_equal(any.a->items[0].kind, YAML_LIST);
	assert_string_equal(any.a->items[1].text, "2");
	assert_string_equal(any.a->items[2].key, "z");
	assert_int_equal(any.a->items[2].line, 4);
}

static void mutate(struct buf *b, unsigned *seed)
{
	static const char spice[] = "\n\t :-[]{}#&*!|>'\"%@`,?~0a\xff\xc3\x01";
	size_t at = (size_t)rand_r(seed) % b->len;
	size_t len = (size_t)rand_r(seed) % (b->len - at) % 40;

	switch (rand_r(seed) % 4) {
	case 0:
		b->data[at] = spice[(size_t)rand_r(seed) % (sizeof(spice) - 1)];
		break;
	case 1:
		b->data[at] = (char)rand_r(seed);
		break;
	case 2:
		memmove(b->data + at, b->data + at + len, b->len - at - len);
		b->len -= len;
		break;
	default:
		(void)buf_reserve(b, len);
		buf_add(b, b->data + at, len);
		break;
	}
}

/* Good bytes with some of them changed, cut or doubled:
 * never a crash, and an error always says where. */
static void mutated_tables_are_survived(void **state)
{
	(void)state;
	unsigned seed = 1234567;
	size_t taken = 0, refusals = 0;
	char path[64];
	AUTO_FD int fd = memfd_create("table", MFD_CLOEXEC);
	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	double end = log_seconds() + 1.5;
	for (int round = 0; round < 3000 && log_seconds() < end; round++) {
		AUTO_ARENA struct arena a = {0};
		AUTO_BUF struct buf b = {0};
		buf_add(&b, good, sizeof(good) - 1);
		for (int n = round % 4; n >= 0 && b.len; n--)
			mutate(&b, &seed);
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, b.data, b.len, 0), b.len);
		struct err e = {0};
		struct top top = {0};
		const struct yaml_tree *l = NULL;
		if (yaml_load(path, &top_schema, &a, &top, &l, &e) == 0) {
			taken++;
			for (unsigned i = 0; i < top.gpus_count; i++)
				assert_true(strlen(top.gpus[i].sm) > 0);
			assert_true(yaml_line(l, "gpus/0/sm") >= 1);
		} else {
			refusals++;
			assert_int_equal(e.kind, ERR_CONFIG);
			assert_memory_equal(e.msg, path, strlen(path));
			assert_int_equal(e.msg[strlen(path)], ':');
			assert_true(strtoul(e.msg + strlen(path) + 1, NULL, 10) > 0);
			assert_null(l);
		}
	}

	assert_true(taken > 0);
	assert_true(refusals > taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(everything_is_loaded, test_teardown),
		cmocka_unit_test_teardown(plain_scalars_keep_their_text, test_teardown),
		cmocka_unit_test_teardown(absent_options_are_empty, test_teardown),
		cmocka_unit_test_teardown(long_lists_are_loaded_in_order, test_teardown),
		cmocka_unit_test_teardown(unknown_keys_are_named_with_the_nearest, test_teardown),
		cmocka_unit_test_teardown(missing_keys_are_named, test_teardown),
		cmocka_unit_test_teardown(wrong_types_are_named, test_teardown),
		cmocka_unit_test_teardown(numbers_are_plain_decimals, test_teardown),
		cmocka_unit_test_teardown(numbers_that_do_not_fit_are_refused, test_teardown),
		cmocka_unit_test_teardown(truth_is_true_or_false, test_teardown),
		cmocka_unit_test_teardown(lengths_are_checked, test_teardown),
		cmocka_unit_test_teardown(duplicate_keys_are_refused, test_teardown),
		cmocka_unit_test_teardown(one_document_that_is_a_mapping, test_teardown),
		cmocka_unit_test_teardown(aliases_stand_for_their_anchors, test_teardown),
		cmocka_unit_test_teardown(lines_behind_an_alias_are_the_anchors, test_teardown),
		cmocka_unit_test_teardown(odd_anchors_aliases_and_tags_are_refused, test_teardown),
		cmocka_unit_test_teardown(aliases_cannot_blow_a_file_up, test_teardown),
		cmocka_unit_test_teardown(broken_syntax_has_its_line, test_teardown),
		cmocka_unit_test_teardown(text_that_is_not_utf8_has_its_line, test_teardown),
		cmocka_unit_test_teardown(deep_nesting_is_refused, test_teardown),
		cmocka_unit_test_teardown(unreadable_and_huge_files, test_teardown),
		cmocka_unit_test_teardown(lines_of_every_node, test_teardown),
		cmocka_unit_test_teardown(unknown_nodes_have_their_parents_line, test_teardown),
		cmocka_unit_test_teardown(a_node_is_taken_as_it_stands, test_teardown),
		cmocka_unit_test_teardown(mutated_tables_are_survived, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
