/* Asks libcuda and NVML, loaded at run time. Runs in
 * a child process, because they may hang or crash. */
#include <dlfcn.h>
#include <glob.h>

#include "core/machine/hardware.h"

#define NAME_LEN 256
#define ERROR_LEN 512
#define MAX_GPUS 64

/* A function of a library, NULL if it is missing. POSIX guarantees the conversion. */
#define FIND(lib, fn, name) (*(void **)&(fn) = dlsym((lib), (name)))

/* A library that is there and cannot be loaded: empty, as
 * images of containers keep it, or for another machine. */
static void note_error(const char *name, char why[ERROR_LEN])
{
	const char *error = dlerror();

	if (!*why && error &&
	    (strncmp(error, name, strlen(name)) != 0 || !strstr(error, "No such file")))
		snprintf(why, ERROR_LEN, "%.*s", (int)strcspn(error, "\n"), error);
}

/* The loader's own paths first, then the places of cpu.yaml, which may be patterns. */
static void *open_first(int fd, const struct hardware_facts *f, const char *name)
{
	char why[ERROR_LEN] = "";
	void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		note_error(name, why);
	for (unsigned i = 0; !lib && i < f->driver_places_count; i++) {
		char pattern[NAME_LEN];
		glob_t found;
		snprintf(pattern, sizeof(pattern), "%s/%s", f->driver_places[i], name);
		if (glob(pattern, 0, NULL, &found) != 0)
			continue;
		for (size_t k = 0; !lib && k < found.gl_pathc; k++) {
			lib = dlopen(found.gl_pathv[k], RTLD_NOW | RTLD_LOCAL);
			if (!lib)
				note_error(found.gl_pathv[k], why);
		}

		globfree(&found);
	}

	if (!lib && *why)
		dprintf(fd, "trouble %s\n", why);
	return lib;
}

/* What a library says of a GPU. */
struct said {
	char name[NAME_LEN];
	int major, minor; /* its compute capability */
};

static void say_gpu(int fd, const struct said *g, unsigned long long bytes)
{
	const char *name = *g->name ? g->name : "NVIDIA GPU";
	dprintf(fd, "gpu %.*s\t%d.%d\t%llu\n", (int)strcspn(name, "\t\n"), name, g->major, g->minor,
		bytes);
}

struct cuda {
	int (*init)(unsigned flags);
	int (*driver)(int *version);
	int (*count)(int *count);
	int (*get)(int *device, int ordinal);
	int (*name)(char *name, int len, int device);
	int (*attribute)(int *value, int attribute, int device);
	int (*memory)(size_t *bytes, int device);
	int (*error_name)(int error, const char **text);
};

/* From cuda.h, where they are part of the stable interface. */
enum { CUDA_MAJOR = 75, CUDA_MINOR = 76, CUDA_NO_DEVICE = 100 };

static bool find_cuda(int fd, const struct hardware_facts *f, struct cuda *c)
{
	void *lib = open_first(fd, f, "libcuda.so.1");

	if (!lib)
		return false;
	FIND(lib, c->init, "cuInit");
	FIND(lib, c->driver, "cuDriverGetVersion");
	FIND(lib, c->count, "cuDeviceGetCount");
	FIND(lib, c->get, "cuDeviceGet");
	FIND(lib, c->name, "cuDeviceGetName");
	FIND(lib, c->attribute, "cuDeviceGetAttribute");
	FIND(lib, c->memory, "cuDeviceTotalMem_v2");
	FIND(lib, c->error_name, "cuGetErrorName");
	bool finds_devices = c->init && c->count && c->get;
	bool whole = finds_devices && c->name && c->attribute;
	if (!whole)
		dprintf(fd, "trouble libcuda.so.1 lacks functions of the driver's interface\n");
	return whole;
}

static int say_cuda_device(int fd, const struct cuda *c, int i)
{
	struct said gpu = {0};
	int device;
	size_t bytes = 0;
	int rc = c->get(&device, i);

	if (rc == 0)
		rc = c->name(gpu.name, sizeof(gpu.name) - 1, device);
	if (rc == 0)
		rc = c->attribute(&gpu.major, CUDA_MAJOR, device);
	if (rc == 0)
		rc = c->attribute(&gpu.minor, CUDA_MINOR, device);
	if (rc != 0)
		return rc;
	if (!c->memory || c->memory(&bytes, device) != 0)
		bytes = 0;
	say_gpu(fd, &gpu, bytes);
	return 0;
}

/* `what`: "", or the device that is asked, counted from 0. */
static void say_cuda_trouble(int fd, const struct cuda *c, const char *what, int rc)
{
	const char *word = NULL;

	if (!c->error_name || c->error_name(rc, &word) != 0)
		word = NULL;
	dprintf(fd, "trouble %slibcuda returned error %d%s%s\n", what, rc, word ? ", " : "",
		word ? word : "");
}

/* Whether libcuda reported a GPU; those that work count. */
static bool ask_cuda(int fd, const struct hardware_facts *f)
{
	struct cuda c = {0};
	int version = 0, count = 0;
	bool found = false;

	if (!find_cuda(fd, f, &c))
		return false;
	int rc = c.init(0);
	/* A compatibility library whose driver is too old for it still reports its own version. */
	bool begun = rc == 0 || rc == CUDA_NO_DEVICE;
	bool has_version = begun && c.driver && c.driver(&version) == 0;
	if (has_version && version > 0)
		dprintf(fd, "cuda %d.%d\n", version / 1000, version % 1000 / 10);
	if (rc == 0)
		rc = c.count(&count);
	if (rc != 0)
		say_cuda_trouble(fd, &c, "", rc);
	else if (count <= 0)
		dprintf(fd, "trouble libcuda counts no GPU\n");
	for (int i = 0; rc == 0 && i < count && i < MAX_GPUS; i++) {
		char what[40];
		int one = say_cuda_device(fd, &c, i);
		snprintf(what, sizeof(what), "GPU %d of %d: ", i, count);
		if (one != 0)
			say_cuda_trouble(fd, &c, what, one);
		found = found || one == 0;
	}

	if (found)
		dprintf(fd, "source libcuda\n");
	return found;
}

struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml {
	int (*init)(void);
	int (*driver)(char *version, unsigned len);
	int (*count)(unsigned *count);
	int (*get)(unsigned i, void **device);
	int (*name)(void *device, char *name, unsigned len);
	int (*capability)(void *device, int *major, int *minor);
	int (*memory)(void *device, struct nvml_memory *memory);
	const char *(*error)(int error);
};

static bool find_nvml(int fd, const struct hardware_facts *f, struct nvml *n)
{
	void *lib = open_first(fd, f, "libnvidia-ml.so.1");

	if (!lib)
		return false;
	FIND(lib, n->init, "nvmlInit_v2");
	FIND(lib, n->driver, "nvmlSystemGetDriverVersion");
	FIND(lib, n->count, "nvmlDeviceGetCount_v2");
	FIND(lib, n->get, "nvmlDeviceGetHandleByIndex_v2");
	FIND(lib, n->name, "nvmlDeviceGetName");
	FIND(lib, n->capability, "nvmlDeviceGetCudaComputeCapability");
	FIND(lib, n->memory, "nvmlDeviceGetMemoryInfo");
	FIND(lib, n->error, "nvmlErrorString");
	bool finds_devices = n->init && n->count && n->get;
	bool whole = finds_devices && n->driver && n->name && n->capability;
	if (!whole)
		dprintf(fd, "trouble libnvidia-ml.so.1 lacks functions of NVML\n");
	return whole;
}

/* NVML's errors are above zero. */
static void say_nvml_trouble(int fd, const struct nvml *n, const char *what, int rc)
{
	const char *word = n->error ? n->error(rc) : NULL;
	dprintf(fd, "trouble %sNVML returned error %d%s%s\n", what, rc, word ? ", " : "",
		word ? word : "");
}

/* Whether it is there and answers. */
static bool say_nvml_device(int fd, const struct nvml *n, unsigned i, unsigned count, bool known)
{
	struct nvml_memory memory = {0};
	struct said gpu = {0};
	char what[40];
	void *device;
	int rc = n->get(i, &device);

	if (rc == 0)
		rc = n->name(device, gpu.name, sizeof(gpu.name) - 1);
	if (rc == 0)
		rc = n->capability(device, &gpu.major, &gpu.minor);
	snprintf(what, sizeof(what), "GPU %u of %u: ", i, count);
	if (rc != 0)
		say_nvml_trouble(fd, n, what, rc);
	if (rc != 0 || known)
		return false;
	if (!n->memory || n->memory(device, &memory) != 0)
		memory.total = 0;
	say_gpu(fd, &gpu, memory.total);
	return true;
}

/* `known`: libcuda has listed the GPUs; broken ones, which it skips, are reported here. */
static void ask_nvml(int fd, const struct hardware_facts *f, bool known)
{
	struct nvml n = {0};
	char text[NAME_LEN] = "";
	unsigned count = 0;
	bool found = false;

	if (!find_nvml(fd, f, &n))
		return;
	int rc = n.init();
	if (rc == 0 && n.driver(text, sizeof(text) - 1) == 0)
		dprintf(fd, "driver %s\n", text);
	if (rc == 0)
		rc = n.count(&count);
	if (rc != 0)
		say_nvml_trouble(fd, &n, "", rc);
	for (unsigned i = 0; rc == 0 && i < count && i < MAX_GPUS; i++)
		found = say_nvml_device(fd, &n, i, count, known) || found;
	if (found)
		dprintf(fd, "source NVML\n");
}

void hardware_gpu_child(int fd, const struct hardware_facts *f)
{
	unsetenv("CUDA_VISIBLE_DEVICES");
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	ask_nvml(fd, f, ask_cuda(fd, f));
}
