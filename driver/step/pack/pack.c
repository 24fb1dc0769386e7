#include "step/pack/pack_parts.h"

#include "base/sys/machine.h"

enum { METADATA_MAX = 16 << 20 };

struct packing {
	const struct pack_request *q;
	const struct run *run;
	struct arena *a;
	struct wheel_name name;
	const char *dist_info;  /* name below the tree */
	struct strlist payload; /* files in the order of the archive */
	struct strlist tail;    /* those of the dist-info, but marker and RECORD */
	struct pack_out out;
};

static int rename_in_tree(struct packing *p, const char *from, const char *to, struct err *e)
{
	if (strcmp(from, to) == 0)
		return 0;
	return fs_rename(path_join(p->a, p->q->tree, from), path_join(p->a, p->q->tree, to), e);
}

/* dist-info and data directory get the name of the full version. */
static int rename_directories(struct packing *p, const char *info, struct err *e)
{
	const char *stem = arena_strndup(p->a, info, strlen(info) - strlen(".dist-info"));
	const char *data = arena_printf(p->a, "%s.data", stem);

	if (rename_in_tree(p, info, p->dist_info, e) < 0)
		return -1;
	if (!fs_exists(TRUSTED, path_join(p->a, p->q->tree, data)))
		return 0;
	return rename_in_tree(p, data,
			      arena_printf(p->a, "%s-%s.data", p->name.dist, p->name.version), e);
}

static int read_headers(struct packing *p, const char *path, struct wheel_headers *ret,
			struct err *e)
{
	struct buf AUTO_BUF b = {0};

	if (fs_read(TRUSTED, path, METADATA_MAX, &b, e) < 0)
		return -1;
	return wheel_headers_parse(&(struct file_bytes){buf_cstr(&b), b.len, path}, p->a, ret, e);
}

static int write_headers(const char *path, const struct wheel_headers *h, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *text = wheel_headers_text(h, &a);
	return fs_write(TRUSTED, path, text, strlen(text), 0644, e);
}

/* Python and ABI tags as the build back end wrote them: "Tag: cp313-cp313-linux_x86_64". */
static int read_tags(struct packing *p, const struct wheel_headers *wheel, const char *path,
		     struct err *e)
{
	struct strlist tags = {0}, python = {0}, abi = {0};

	wheel_headers_all(wheel, "Tag", p->a, &tags);
	for (size_t i = 0; i < tags.count; i++) {
		const char *tag = tags.items[i];
		char *rest = arena_strdup(p->a, tag), *python_tag = strsep(&rest, "-"),
		     *abi_tag = strsep(&rest, "-");
		if (!abi_tag || !rest || strchr(rest, '-'))
			return err_set(e, ERR_INTEGRITY,
				       "'%s': the tag '%s' does not have three parts", path, tag);
		strlist_once(&python, p->a, python_tag);
		strlist_once(&abi, p->a, abi_tag);
	}

	if (!python.count)
		return err_set(e, ERR_INTEGRITY, "'%s' has no Tag line", path);
	p->name.python = strlist_join(&python, p->a, ".");
	p->name.abi = strlist_join(&abi, p->a, ".");
	return 0;
}

/* License-File exists since version 2.4 of the metadata. */
static void add_license_files(struct packing *p, struct wheel_headers *metadata)
{
	unsigned major = 0, minor = 0;
	const char *version = wheel_headers_get(metadata, "Metadata-Version");

	if (!version || sscanf(version, "%4u.%4u", &major, &minor) != 2)
		return;
	if (major < 2 || (major == 2 && minor < 4))
		return;
	struct strlist present = {0};
	wheel_headers_all(metadata, "License-File", p->a, &present);
	for (size_t i = 0; i < p->q->license_files.count; i++)
		if (!strlist_contains(&present, p->q->license_files.items[i]))
			wheel_headers_add(metadata, p->a, "License-File",
					  p->q->license_files.items[i]);
}

/* Checks the whole metadata before changing anything. */
static int rewrite_dist_info(struct packing *p, struct err *e)
{
	const char *info = "";

	if (wheel_find_dist_info(p->q->tree, p->a, &info, e) < 0)
		return -1;
	const char *dir = path_join(p->a, p->q->tree, info);
	struct wheel_headers metadata = {0}, wheel = {0};
	if (read_headers(p, path_join(p->a, dir, "METADATA"), &metadata, e) < 0 ||
	    read_headers(p, path_join(p->a, dir, "WHEEL"), &wheel, e) < 0)
		return -1;
	const char *dist = wheel_headers_get(&metadata, "Name");
	if (!dist || strchr(dist, '/'))
		return err_set(e, ERR_INTEGRITY, "'%s/METADATA' has no Name that a wheel can have",
			       dir);
	p->name = (struct wheel_name){.dist = wheel_normalize(dist, p->a),
				      .version = p->q->version,
				      .build = pack_build(p->q->metadata_rev, p->a),
				      .platform = p->q->platform,
				      .variant = ""};
	if (read_tags(p, &wheel, path_join(p->a, dir, "WHEEL"), e) < 0)
		return -1;
	struct wheel_name checked;
	if (wheel_name_parse(wheel_name_format(&p->name, p->a), p->a, &checked, e) < 0)
		return err_wrap(e, "cannot pack '%s'", p->q->tree);
	p->dist_info = wheel_dist_info(&p->name, p->a);
	wheel_headers_set(&metadata, p->a, "Version", p->q->version);
	for (size_t i = 0; i < p->q->requires.count; i++)
		wheel_requires_replace(&metadata, p->a, p->q->requires.items[i]);
	add_license_files(p, &metadata);
	wheel_headers_set(&wheel, p->a, "Wheel-Version", "1.0");
	wheel_headers_set(&wheel, p->a, "Generator", p->q->generator);
	wheel_headers_set(&wheel, p->a, "Root-Is-Purelib", "false");
	pack_set_build(&wheel, p->a, p->name.build);
	/* One Tag line for each combination: "py2.py3-none-any" has two. */
	struct strlist python = {0}, abi = {0}, platform = {0};
	strlist_split(&python, p->a, p->name.python, ".");
	strlist_split(&abi, p->a, p->name.abi, ".");
	strlist_split(&platform, p->a, p->name.platform, ".");
	wheel_headers_remove(&wheel, "Tag", "");
	for (size_t i = 0; i < python.count; i++) {
		for (size_t j = 0; j < abi.count; j++) {
			for (size_t k = 0; k < platform.count; k++)
				wheel_headers_add(&wheel, p->a, "Tag",
						  arena_printf(p->a, "%s-%s-%s", python.items[i],
							       abi.items[j], platform.items[k]));
		}
	}

	if (rename_directories(p, info, e) < 0)
		return -1;
	/* Files of an installer, signatures of the old contents, and what is written again. */
	static const char *const stale[] = {"direct_url.json", "INSTALLER",  "REQUESTED", "RECORD",
					    "RECORD.jws",      "RECORD.p7s", PACK_MARKER};
	for (size_t i = 0; i < ARRAY_LEN(stale); i++)
		if (fs_remove(TRUSTED,
			      path_join(p->a, path_join(p->a, p->q->tree, p->dist_info), stale[i]),
			      e) < 0)
			return -1;
	dir = path_join(p->a, p->q->tree, p->dist_info);
	if (write_headers(path_join(p->a, dir, "METADATA"), &metadata, e) < 0)
		return -1;
	return write_headers(path_join(p->a, dir, "WHEEL"), &wheel, e);
}

static int collect(const char *rel, const struct stat *st, void *user, struct err *e)
{
	struct packing *p = user;

	if (path_has_suffix(rel, ".pyc") || strstr(rel, "/__pycache__/") ||
	    strncmp(rel, "__pycache__/", strlen("__pycache__/")) == 0)
		return 0;
	if (!S_ISREG(st->st_mode)) {
		err_set(e, ERR_INTEGRITY, "'%s/%s' is not a regular file", p->q->tree, rel);
		return err_hint(e, S_ISLNK(st->st_mode)
					   ? "replace the symbolic link by the file that it names"
					   : "remove it: a wheel holds regular files only");
	}

	strlist_add(path_below(rel, p->dist_info) ? &p->tail : &p->payload, p->a, rel);
	return 0;
}

static int add_files(struct packing *p, const struct strlist *files, struct err *e)
{
	for (size_t i = 0; i < files->count; i++) {
		struct arena AUTO_ARENA scratch = {0};
		const char *rel = files->items[i];
		if (run_check(p->run, e) < 0 ||
		    pack_file(&p->out, rel, path_join(&scratch, p->q->tree, rel), NULL, 0, e) < 0)
			return -1;
	}

	return 0;
}

static int write_archive(struct packing *p, struct err *e)
{
	const struct pack_request *q = p->q;
	const char *marker = path_join(p->a, p->dist_info, PACK_MARKER);
	const char *text = pack_marker(q->metadata_rev, q->generator, q->input_key, p->a);

	if (fs_walk(TRUSTED, q->tree, collect, p, e) < 0)
		return -1;
	strlist_sort(&p->payload);
	strlist_sort(&p->tail);
	if (fs_write(TRUSTED, path_join(p->a, q->tree, marker), text, strlen(text), 0644, e) < 0 ||
	    pack_open(&p->out, &p->name, q->out_dir, q->out_dir, q->epoch,
		      q->threads ? q->threads : machine_processors(), q->level, e) < 0)
		return -1;
	bool failed = add_files(p, &p->payload, e) < 0 || add_files(p, &p->tail, e) < 0 ||
		      pack_text(&p->out, marker, text, e) < 0;
	return pack_close(&p->out, failed ? -1 : 0, p->dist_info, q->tree, e);
}

char *pack_marker(unsigned rev, const char *generator, const char *input_key, struct arena *a)
{
	return arena_printf(a, "rev=%u tool=%s input=%s\n", rev, generator, input_key);
}

char *pack_build(unsigned rev, struct arena *a)
{
	return rev > 1 ? arena_printf(a, "%u", rev) : arena_strdup(a, "");
}

void pack_set_build(struct wheel_headers *wheel, struct arena *a, const char *build)
{
	struct strlist tags = {0};

	wheel_headers_all(wheel, "Tag", a, &tags);
	/* The build tag goes before the others. */
	wheel_headers_remove(wheel, "Build", "");
	wheel_headers_remove(wheel, "Tag", "");
	if (*build)
		wheel_headers_add(wheel, a, "Build", build);
	for (size_t i = 0; i < tags.count; i++)
		wheel_headers_add(wheel, a, "Tag", tags.items[i]);
}

int pack_open(struct pack_out *o, const struct wheel_name *name, const char *out_dir,
	      const char *temp_dir, uint64_t epoch, unsigned threads, int level, struct err *e)
{
	o->result.file = wheel_name_format(name, o->a);
	o->result.path = path_join(o->a, out_dir, o->result.file);
	char *temp = NULL;
	o->held = -1;
	AUTO_FD int fd =
		fs_neighbour(path_join(o->a, temp_dir, o->result.file), 0644, o->a, &temp, e);
	if (fd < 0)
		return -1;
	o->temp = temp;
	AUTO_FD int held = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	int rc = held < 0 ? err_errno(e, ERR_SYSTEM, "cannot create '%s'", temp)
			  : zip_create_fd(fd,
					  &(struct zip_new){.path = temp,
							    .epoch = epoch,
							    .threads = threads,
							    .level = level},
					  &o->zip, e);
	if (rc < 0) {
		(void)unlink(temp);
		return -1;
	}

	(void)steal_fd(&fd);
	o->held = steal_fd(&held);
	return 0;
}

static void release(struct pack_out *o)
{
	if (o->held >= 0)
		close(o->held);
	o->held = -1;
}

void pack_row(struct pack_out *o, const char *name, const char *digest, uint64_t size)
{
	wheel_record_line(&o->record, name, digest, (int64_t)size);
	o->result.unpacked_bytes += size;
	o->result.files++;
}

int pack_text(struct pack_out *o, const char *name, const char *text, struct err *e)
{
	char digest[DIGEST_RECORD_MAX];

	digest_record("sha256", text, strlen(text), digest);
	pack_row(o, name, digest, strlen(text));
	return zip_add_data(o->zip, name, text, strlen(text), e);
}

int pack_file(struct pack_out *o, const char *name, const char *path, const struct zip_mark *marks,
	      size_t count, struct err *e)
{
	uint8_t sha256[DIGEST_LEN];

	char digest[sizeof("sha256=") + 43] = "sha256=";
	uint64_t size;
	if (zip_add_parts(o->zip, name, path, marks, count, sha256, &size, e) < 0)
		return -1;
	digest_base64url(sha256, digest + strlen(digest));
	pack_row(o, name, digest, size);
	return 0;
}

int pack_close(struct pack_out *o, int rc, const char *dist_info, const char *tree, struct err *e)
{
	const char *rel = path_join(o->a, dist_info, "RECORD");
	uint8_t sha256[DIGEST_LEN];

	wheel_record_line(&o->record, rel, "", -1);
	o->result.unpacked_bytes += o->record.len;
	o->result.files++;
	if (rc == 0 && tree)
		rc = fs_write(TRUSTED, path_join(o->a, tree, rel), o->record.data, o->record.len,
			      0644, e);
	if (rc == 0)
		rc = zip_add_data(o->zip, rel, o->record.data, o->record.len, e);
	buf_release(&o->record);
	if (rc < 0)
		zip_abort(o->zip);
	else
		rc = zip_finish(o->zip, sha256, e);
	if (rc == 0)
		digest_hex(sha256, o->result.sha256);
	else
		release(o);
	return rc;
}

/* Renames the finished file, or removes it if the same bytes are there already. */
static int place(const struct pack_out *o, const struct run *run, struct err *e)
{
	const char *temp = o->temp, *path = o->result.path, *sha256 = o->result.sha256;
	char there[DIGEST_HEX_LEN + 1];
	bool placed;

	if (fs_rename_new(temp, path, &placed, e) < 0 || placed)
		return placed ? 0 : -1;
	if (digest_file(path, there, e) < 0)
		return -1;
	if (strcmp(there, sha256) != 0) {
		err_set(e, ERR_POLICY, "'%s' exists with other bytes: sha256 %s, not %s", path,
			there, sha256);
		return err_hint(e, "a published file name must keep its bytes: raise the metadata "
				   "revision, or move "
				   "the old file away");
	}

	log_verbose(run->log, "%s exists already with the same bytes", path_base(path));
	return unlink(temp) < 0 ? err_errno(e, ERR_SYSTEM, "cannot remove '%s'", temp) : 0;
}

int pack_finish(struct pack_out *o, const struct run *run, struct err *e)
{
	struct stat st;
	int rc = fstat(o->held, &st) < 0 ? err_errno(e, ERR_SYSTEM, "cannot read '%s'", o->temp)
					 : place(o, run, e);

	if (rc < 0)
		(void)unlink(o->temp);
	else
		o->result.bytes = (uint64_t)st.st_size;
	release(o);
	return rc;
}

int pack_wheel(const struct pack_request *q, struct arena *a, struct pack_result *ret,
	       struct err *e)
{
	struct packing p = {.q = q, .run = q->run, .a = a, .out.a = a};

	if (q->metadata_rev < 1)
		return err_set(e, ERR_CONFIG, "the metadata revision must be 1 or more");
	if (strpbrk(q->generator, "\r\n") || !*q->generator || strpbrk(q->input_key, " \r\n") ||
	    !*q->input_key)
		return err_set(e, ERR_CONFIG,
			       "generator '%s' or input key '%s' is empty or not one line",
			       q->generator, q->input_key);
	for (size_t i = 0; i < q->requires.count; i++)
		if (strpbrk(q->requires.items[i], "\r\n"))
			return err_set(e, ERR_CONFIG, "the requirement '%s' is not one line",
				       q->requires.items[i]);
	if (rewrite_dist_info(&p, e) < 0 || write_archive(&p, e) < 0 ||
	    pack_finish(&p.out, q->run, e) < 0)
		return -1;
	*ret = p.out.result;
	return 0;
}
