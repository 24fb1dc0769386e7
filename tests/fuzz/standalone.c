/* A driver for fuzz targets where libFuzzer is not: runs every corpus file as it is, then
 * seeded random changes of them, until the count or the time is used up. Usage: fuzz_NAME
 * [--runs N] [--seconds S] [--seed X] [--keep FILE] CORPUS... (files or directories). With
 * --keep each input is written there first, so that the one that crashed is at hand.
 * FUZZ_SECONDS in the environment counts more than --seconds. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fuzz.h"

#define INPUT_ROOM (1U << 20)

struct input {
	uint8_t *data;
	size_t size;
};

struct corpus {
	struct input *items;
	size_t count;
};

struct options {
	unsigned long runs;
	double seconds;
	uint64_t seed;
	const char *keep;
};

static void die(const char *what, const char *subject)
{
	fprintf(stderr, "%s '%s'\n", what, subject);
	exit(2);
}

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

static void add_file(struct corpus *c, const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = need(malloc(INPUT_ROOM));

	if (!f)
		die("cannot read", path);
	size_t n = fread(data, 1, INPUT_ROOM, f);
	fclose(f);
	c->items = need(realloc(c->items, (c->count + 1) * sizeof(*c->items)));
	c->items[c->count++] = (struct input){.data = data, .size = n};
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void add_path(struct corpus *c, const char *path)
{
	struct stat st;
	struct dirent **names;

	if (stat(path, &st) != 0)
		die("cannot read", path);
	if (!S_ISDIR(st.st_mode)) {
		add_file(c, path);
		return;
	}

	int n = scandir(path, &names, NULL, by_name);
	if (n < 0)
		die("cannot read", path);
	for (int i = 0; i < n; i++) {
		char file[4096];
		snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
		if (names[i]->d_name[0] != '.')
			add_file(c, file);
		free(names[i]);
	}

	free(names);
}

static uint64_t next(uint64_t *s)
{
	/* xorshift64: the same numbers on every machine. */
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* change: one random change in place; the buffer holds INPUT_ROOM bytes. */
static size_t change(uint8_t *data, size_t size, const struct corpus *c, uint64_t *s)
{
	static const char *const words[] = {
		"../", "/",    "..",   "\n",   "\xff\xff\xff\xff", "0", "77777777777",
		"-1",  "\r\n", "--- ", "+++ ", "@@ -1 +1 @@\n"};
	size_t at = size ? next(s) % size : 0, n = 1 + next(s) % 16;

	switch (next(s) % 7) {
	case 0: /* flip a bit */
		if (size)
			data[at] ^= (uint8_t)(1U << next(s) % 8);
		return size;
	case 1: /* set a byte */
		if (size)
			data[at] = (uint8_t)next(s);
		return size;
	case 2: /* leave some out */
		n = n > size - at ? size - at : n;
		memmove(data + at, data + at + n, size - at - n);
		return size - n;
	case 3: /* repeat some */
		n = n > size - at ? size - at : n;
		if (size + n > INPUT_ROOM)
			return size;
		memmove(data + at + n, data + at, size - at);
		return size + n;
	case 4: /* put a word over what is there */
	{
		const char *word = words[next(s) % (sizeof(words) / sizeof(words[0]))];
		size_t len = strlen(word);
		if (at + len <= size)
			memcpy(data + at, word, len);
		return size;
	}
	case 5: /* cut the end off */
		return next(s) % 8 ? size : at;
	default: /* a piece of another one */
	{
		const struct input *other = &c->items[next(s) % c->count];
		if (!other->size)
			return size;
		size_t from = next(s) % other->size, len = 1 + next(s) % 512;
		len = len > other->size - from ? other->size - from : len;
		len = len > size - at ? size - at : len;
		memcpy(data + at, other->data + from, len);
		return size;
	}
	}
}

static void run_one(const struct options *o, const uint8_t *data, size_t size)
{
	/* A copy of exactly this size, so that a read behind its end is seen. */
	uint8_t *copy = need(malloc(size ? size : 1));

	memcpy(copy, data, size);
	if (o->keep) {
		FILE *f = fopen(o->keep, "wb");
		if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
			die("cannot write", o->keep);
	}

	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int take_option(struct options *o, const char *name, const char *value)
{
	if (strcmp(name, "--runs") == 0)
		o->runs = strtoul(value, NULL, 10);
	else if (strcmp(name, "--seconds") == 0)
		o->seconds = strtod(value, NULL);
	else if (strcmp(name, "--seed") == 0)
		o->seed = strtoull(value, NULL, 10);
	else if (strcmp(name, "--keep") == 0)
		o->keep = value;
	else
		return -1;
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {.runs = 20000, .seconds = 4, .seed = 1};
	struct corpus c = {0};
	unsigned long done = 0;

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--", 2) != 0)
			add_path(&c, argv[i]);
		else if (i + 1 == argc || take_option(&o, argv[i], argv[i + 1]) != 0)
			die("unknown option, or no value for", argv[i]);
		else
			i++;
	}

	if (c.count == 0)
		die("no corpus for", argv[0]);
	const char *seconds = getenv("FUZZ_SECONDS");
	if (seconds)
		o.seconds = strtod(seconds, NULL);
	run_one(&o, (const uint8_t *)"", 0);
	for (size_t i = 0; i < c.count; i++)
		run_one(&o, c.items[i].data, c.items[i].size);
	uint64_t state = o.seed * 0x9e3779b97f4a7c15ULL + 1;
	uint8_t *data = need(malloc(INPUT_ROOM));
	for (double end = now() + o.seconds; done < o.runs && now() < end; done++) {
		const struct input *from = &c.items[next(&state) % c.count];
		size_t size = from->size;
		memcpy(data, from->data, size);
		for (uint64_t n = 1 + next(&state) % 8; n > 0; n--)
			size = change(data, size, &c, &state);
		run_one(&o, data, size);
	}

	printf("%zu corpus files and %lu changed ones (seed %llu): no crash\n", c.count, done,
	       (unsigned long long)o.seed);
	free(data);
	for (size_t i = 0; i < c.count; i++)
		free(c.items[i].data);
	free(c.items);
	return 0;
}
