/* Whether C++ files can be compiled without CUDA's headers: read, not compiled. */
#pragma once
#include "base/base.h"

struct cuda_file {
	const char *path;
	bool direct;             /* it includes a header of CUDA's, under no condition */
	struct strlist includes; /* the last parts of the other names that it includes so */
};

struct cuda_headers {
	struct arena *a;
	struct cuda_file *files;
	size_t count, cap;
	bool incomplete; /* there are more files than are looked at */
};

/* cuda_headers_want: whether a file is one to look at: a source or a header of C++. */
bool cuda_headers_want(const char *path);
/* cuda_headers_add: looks at a file. What an #if of any kind decides, but a guard around the whole
 * file, does not count. */
void cuda_headers_add(struct cuda_headers *h, const char *path, const char *text);
/* cuda_headers_need: a C++ file, if every one but those of tests and examples includes headers of
 * CUDA's, perhaps through headers of the tree; "": some do without, or there is none. */
const char *cuda_headers_need(const struct cuda_headers *h);
