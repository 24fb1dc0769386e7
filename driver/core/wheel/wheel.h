/* Wheels: names, RECORD, METADATA, WHEEL. */
#pragma once
#include "core/elf/elf.h"
#include "core/tables/rows_rules.h"
#include "core/zip/zip.h"

struct wheel_name { /* torch-2.6.0+cpu.avx2-1-cp313-cp313-manylinux_2_41_x86_64.whl */
	const char *dist;
	const char *version; /* full, with the label */
	const char *build;   /* "" if none */
	const char *python;
	const char *abi;
	const char *platform;
	const char *variant; /* label of a wheel variant (PEP 825): ...-x86_64-cpu.avx2.whl; "" */
};

/* wheel_name_parse: of a file name or path; tags in lower case, as installers compare them.
 * ERR_INTEGRITY says which part breaks which rule. */
int wheel_name_parse(const char *file, struct arena *a, struct wheel_name *ret,
		     struct err *e) MUST_CHECK;
/* A Linux that installs wheels. */
struct wheel_machine {
	const char *name; /* "x86_64" */
	unsigned glibc;   /* 2.`glibc` */
};

/* wheel_name_takes: whether pip installs it for a CPython ("3.13", free-threaded "3.13t"), whatever
 * the platform. wheel_name_lands: whether the machine is among its platforms.
 * wheel_name_installs: both; `m` NULL: on any. wheel_name_pythons: lists all its Pythons for
 * people, "3.10, 3.12"; *ret_newer: the last and later ones. wheel_name_musl: returns the only musl
 * that it is for, "1.2"; NULL. wheel_name_platforms: adds its platforms, "x86_64-linux"; a tag that
 * has no such word unchanged; none for "any". */
bool wheel_name_takes(const struct wheel_name *n, const char *python, struct arena *a);
bool wheel_name_lands(const struct wheel_name *n, const struct wheel_machine *m, struct arena *a);
bool wheel_name_installs(const struct wheel_name *n, const char *python,
			 const struct wheel_machine *m, struct arena *a);
char *wheel_name_pythons(const struct wheel_name *n, struct arena *a, bool *ret_newer);
const char *wheel_name_musl(const struct wheel_name *n, struct arena *a);
void wheel_name_platforms(const struct wheel_name *n, struct arena *a, struct strlist *ret);
char *wheel_name_format(const struct wheel_name *n, struct arena *a);
/* wheel_version_key: returns a text that is equal for versions that PEP 440 calls equal ("1.0-RC1",
 * "1rc1"); NULL for an invalid version. wheel_same_version: compares by it; an invalid version
 * equals only itself. */
char *wheel_version_key(const char *version, struct arena *a);
bool wheel_same_version(const char *left, const char *right, struct arena *a);
/* wheel_normalize: distribution name as file names carry it ([-_.]+ -> _, lower case). */
char *wheel_normalize(const char *dist, struct arena *a);
/* wheel_index_name: returns the name as package indexes have it (PEP 503: with dashes). */
char *wheel_index_name(const char *dist, struct arena *a);
/* label_torch_word: the last word of a version label that says which torch the wheel is for:
 * "torch2130" for "2.13.0" with the same label, "torch2130plain" with none, "torch2130cu130" with
 * that one. label_without_torch: the label without such a word, which is the torch's own. */
#define LABEL_TEGRA "tegra" /* a word: the code is made with JetPack's own toolkit */
char *label_torch_word(const char *torch_version, const char *label, struct arena *a);
char *label_without_torch(const char *label, struct arena *a);
/* label_torch: the torch that a label names, "2.6" of "cu12torch2.6" and "pt26cu124", "2.9" of
 * "cpu.avx2.torch291", "2.13" of "torch2130plain"; NULL. */
const char *label_torch(const char *label, struct arena *a);
/* wheel_dist_info: "torch-2.6.0+cpu.avx2.dist-info". */
char *wheel_dist_info(const struct wheel_name *n, struct arena *a);
/* wheel_find_dist_info: the name of the .dist-info directory of an unpacked wheel. ERR_INTEGRITY
 * unless there is exactly one. */
int wheel_find_dist_info(const char *tree, struct arena *a, const char **ret,
			 struct err *e) MUST_CHECK;

/* wheel_zip_dist_info: like wheel_find_dist_info, for a packed wheel. */
int wheel_zip_dist_info(const struct zip_reader *z, struct arena *a, const char **ret,
			struct err *e) MUST_CHECK;
/* wheel_zip_text: a member by its path, of at most `max` bytes. ERR_INTEGRITY. */
int wheel_zip_text(const struct zip_reader *z, const char *path, uint64_t max, struct buf *out,
		   struct err *e) MUST_CHECK;
/* wheel_is_dist_info: whether a .dist-info directory is named after the wheel, in any spelling. */
bool wheel_is_dist_info(const struct wheel_name *n, const char *dir, struct arena *a);
/* A file in the dist-info of a wheel that may not be passed on. */
#define WHEEL_PRIVATE "NOT-FOR-PASSING-ON"
/* In the dist-info of a wheel that `ptbuild slim` made of another: its bill of materials. */
#define WHEEL_CUT_BILL "sboms/slim.cdx.json"

struct wheel_vendored {      /* a library of the root that is in the wheel */
	const char *file;    /* in the tree: "torch/lib/libopenblas-1a2b3c4d.so.0" */
	const char *needed;  /* the name it was asked by: "libopenblas.so.0" */
	const char *source;  /* path in the root, links resolved */
	const char *package; /* "libopenblas0-pthread=0.3.29+ds-3", "" unknown */
	const char *sha256;  /* of the source */
};

struct wheel_record_row {
	const char *path;
	const char *digest; /* "sha256=" and base64url; "" for RECORD itself */
	int64_t size;       /* -1: none */
};

/* wheel_record_parse: strict CSV of three fields, no digest weaker than sha256; ERR_INTEGRITY names
 * the line. wheel_zip_record: of a wheel as it is, by its dist-info.
 * wheel_record_line: one row with its newline, quoted where needed. */
int wheel_record_parse(const char *text, size_t len, const char *what, struct arena *a,
		       struct wheel_record_row **ret, size_t *ret_count, struct err *e) MUST_CHECK;
int wheel_zip_record(const struct zip_reader *z, const char *info, struct arena *a,
		     struct wheel_record_row **ret, size_t *ret_count, struct err *e) MUST_CHECK;
void wheel_record_line(struct buf *out, const char *path, const char *digest, int64_t size);
/* wheel_installed: the path below site-packages once installed; NULL for what goes elsewhere
 * (scripts, data, headers). */
const char *wheel_installed(const char *name);

struct wheel_header {
	const char *key, *value;
	const char *raw; /* the line or lines as read; NULL once set */
};

/* METADATA and WHEEL: name-value lines like those of RFC 822, then a body. */
struct wheel_headers {
	struct wheel_header *items; /* names may repeat */
	size_t count, cap;
	const char *body;      /* without the empty line before it; "" if none */
	const char *separator; /* between the lines and the body; "" if nothing */
	const char *eol;       /* "\n" or "\r\n", as in the first line */
};
/* wheel_headers_parse: values are trimmed, folded ones keep their line ends; ERR_INTEGRITY names
 * the line. What is not changed is written back byte for byte. wheel_zip_headers: of a file in the
 * dist-info of a wheel as it is. */
int wheel_headers_parse(const struct file_bytes *in, struct arena *a, struct wheel_headers *ret,
			struct err *e) MUST_CHECK;
int wheel_zip_headers(const struct zip_reader *z, const char *info, const char *name,
		      struct arena *a, struct wheel_headers *ret, struct err *e) MUST_CHECK;
/* Names are compared without case. wheel_headers_get: the first value, or NULL; wheel_headers_all:
 * adds all values to `ret`. */
const char *wheel_headers_get(const struct wheel_headers *h, const char *name);
void wheel_headers_all(const struct wheel_headers *h, const char *name, struct arena *a,
		       struct strlist *ret);
/* wheel_headers_set: replaces the first value, removes the others of that name. */
void wheel_headers_set(struct wheel_headers *h, struct arena *a, const char *name,
		       const char *value);
/* wheel_headers_add: behind the last of that name, or at the end. */
void wheel_headers_add(struct wheel_headers *h, struct arena *a, const char *name,
		       const char *value);
/* wheel_headers_remove: removes the headers `name` whose value begins with `value_prefix` ("":
 * all). */
void wheel_headers_remove(struct wheel_headers *h, const char *name, const char *value_prefix);
char *wheel_headers_text(const struct wheel_headers *h, struct arena *a);

struct wheel_listed {
	const char *name;   /* of the file */
	const char *url;    /* absolute, http or https */
	const char *sha256; /* "" if the index does not say */
	uint64_t size;      /* 0 likewise */
};

/* wheel_requires_name: the normalised distribution name at the start of a requirement, "" if
 * none. */
char *wheel_requires_name(const char *requirement, struct arena *a);
/* wheel_requires_replace: replaces the Requires-Dist lines of the same distribution, or adds
 * one. */
void wheel_requires_replace(struct wheel_headers *h, struct arena *a, const char *requirement);

enum wheel_python_fit {
	WHEEL_PYTHON_NEVER,
	WHEEL_PYTHON_BY_PATCH, /* some of its patch releases */
	WHEEL_PYTHON_ALWAYS
};

/* wheel_requires_python: whether a Python ("3.11", "3.13t") satisfies a Requires-Python, by PEP
 * 440. ERR_INTEGRITY for a malformed range: installers then accept every Python. */
int wheel_requires_python(const char *range, const char *python, struct arena *a,
			  enum wheel_python_fit *ret, struct err *e) MUST_CHECK;

/* The wheels of a release as the Python index has them, pinned by digest: a file of
 * profiles/official, made by 'ptbuild slim --release NAME --pin'. */

struct official_wheel {
	const char *file; /* its name, with distribution, version, Python and platform */
	struct wheel_name name;
	uint64_t size;
	const char *sha256;
	const char *cuda; /* "12.8"; "-": the wheel has none, or the index does not say */
};

struct official {
	const char *path; /* of the file */
	struct official_wheel *wheels;
	size_t count, cap;
	/* targets for which each GPU library of torch has code, by official_machine: "90",
	 * "120+ptx"; empty: not known, or none */
	struct strlist gpus[2];
};

/* official_read: ERR_CONFIG names file and line; a release without one names those there are.
 * official_read_file: such a file by its path, which may have wheels for every platform too. */
int official_read_file(const char *path, struct arena *a, struct official *ret,
		       struct err *e) MUST_CHECK;
int official_read(const char *profiles, const char *release, struct arena *a, struct official *ret,
		  struct err *e) MUST_CHECK;
/* official_pinned: whether there is a file of that release. */
bool official_pinned(const char *profiles, const char *release, struct arena *a);
/* official_take: adds the listed files of "NAME==VERSION" for Linux with digest and size, of
 * several build tags the highest. `cuda` is that of each official_machine; NULL leaves it out.
 * ERR_NETWORK if none is left. */
int official_take(struct official *o, const char *asked, const struct wheel_listed *files,
		  size_t count, const char *const cuda[2], struct arena *a,
		  struct err *e) MUST_CHECK;
/* official_keep: adds what another file has of distributions that this one lacks, and its
 * targets. */
void official_keep(struct official *o, const struct official *old, struct arena *a);
/* official_text: the file. */
void official_text(const struct official *o, const char *release, struct buf *out);
/* official_has: any wheel of a distribution. */
bool official_has(const struct official *o, const char *dist, struct arena *a);
/* official_find: the wheel of a distribution for a Python ("3.13"), a platform ("x86_64-linux")
 * and a toolkit (NULL: any; but for torch, one of its major version). ERR_CONFIG says what there
 * is. */
int official_find(const struct official *o, const char *dist, const char *python,
		  const char *platform, const char *cuda, struct arena *a,
		  const struct official_wheel **ret, struct err *e) MUST_CHECK;
/* official_cuda: "12.8" of the requirements that torch's METADATA has for a platform (NULL: any);
 * "-": none. */
const char *official_cuda(const struct wheel_headers *metadata, const char *platform,
			  struct arena *a);
/* official_machine: 0 for x86_64-linux, 1 for aarch64-linux, -1 for another platform tag. */
int official_machine(const char *tag);

/* pyproject.toml: what it says of a project, without running anything of it. */

struct pyproject {
	const char *name, *version;  /* of [project]; "" where it does not say */
	const char *requires_python; /* ">=3.9"; "" = any */
	struct strlist requires;     /* of [build-system] */
	struct strlist dependencies;
	bool build_system; /* there is that table */
};

/* pyproject_read: only these keys count; the rest is read over. ERR_INTEGRITY names file and line
 * of what is no TOML. */
int pyproject_read(const struct file_bytes *from, struct arena *a, struct pyproject *ret,
		   struct err *e) MUST_CHECK;

/* Which platform tag a wheel may honestly carry: the highest symbol versions of its libraries
 * against the policy table (profiles/manylinux.yaml). */

/* manylinux_allows: whether the newest policy, which includes the older ones, allows a NEEDED name
 * outside the wheel, the same ones on every machine. */
bool manylinux_allows(const struct manylinux_policy *p, const char *soname);
/* manylinux_versioned: whether every symbol of that library has a version. False if unknown. */
bool manylinux_versioned(const struct manylinux_policy *p, const char *soname);
/* manylinux_machine: "x86_64" of ELF's number; NULL for a machine without policies. */
const char *manylinux_machine(unsigned machine);
/* manylinux_glibc: returns the minor version of glibc in a platform tag: 28 for
 * "manylinux_2_28_x86_64"; 0 for a tag of another kind. */
unsigned manylinux_glibc(const char *tag);
/* manylinux_tag: the lowest policy that all `infos` satisfy, "manylinux_2_28_x86_64";
 * "linux_x86_64" when none does; "any" without a dynamic ELF file. Judged by version needs, DT_RELR
 * and NEEDED names that only later policies allow. *ret_why: which need of which file decided.
 * ERR_INTEGRITY for a machine without policies and for two machines. */
int manylinux_tag(const struct manylinux_policy *p, const struct elf_info *infos,
		  const char *const *names, size_t count, struct arena *a, char **ret_tag,
		  char **ret_why, struct err *e) MUST_CHECK;
/* manylinux_tag_of_tree: like manylinux_tag, for all ELF files below a directory. */
int manylinux_tag_of_tree(const struct manylinux_policy *p, const char *dir, struct arena *a,
			  char **ret_tag, struct err *e) MUST_CHECK;

/* The symbols of Python's stable ABI, which abi3 modules keep to: stable_abi.yaml, loaded when a
 * wheel has such a module. */

struct stable_abi;

/* stable_abi_load: of the profiles directory. ERR_CONFIG with file and line. */
int stable_abi_load(const char *profiles_dir, struct arena *a, const struct stable_abi **ret,
		    struct err *e) MUST_CHECK;
/* stable_abi_since: the first minor version of Python 3 that has the symbol; 0 if none promises
 * it. */
unsigned stable_abi_since(const struct stable_abi *s, const char *symbol);
