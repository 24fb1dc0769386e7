/* Asks libcuda and NVML, loaded at run time. Runs in a child process, because they may hang or crash. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/machine/hardware_parts.h"

#define NAME_LEN 256
#define MAX_GPUS 64

/* A function of a library, NULL if it is missing. POSIX guarantees the conversion. */
#define FIND(lib, fn, name) (*(void **)&(fn) = dlsym((lib), (name)))

/* The loader's own paths first, then where containers and WSL put the driver's libraries. */
static void *open_first(const char *name)
{
	static const char *const dirs[] = {"", "/usr/lib/wsl/lib/", "/usr/local/nvidia/lib64/"};
	char path[NAME_LEN];
	void *lib = NULL;
	for (size_t i = 0; !lib && i < ARRAY_LEN(dirs); i++) {
		snprintf(path, sizeof(path), "%s%s", dirs[i], name);
		lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return lib;
}

static void say_gpu(int fd, const char *name, int major, int minor, unsigned long long bytes)
{
	dprintf(fd, "gpu %.*s\t%d.%d\t%llu\n", (int)strcspn(name, "\t\n"), name, major, minor, bytes);
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
enum { CUDA_NO_DEVICE = 100, CUDA_MAJOR = 75, CUDA_MINOR = 76 };

static bool find_cuda(struct cuda *c)
{
	void *lib = open_first("libcuda.so.1");
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
	return c->init && c->count && c->get && c->name && c->attribute;
}

static int say_cuda_device(int fd, const struct cuda *c, int i)
{
	char name[NAME_LEN] = "";
	int device, major, minor;
	size_t bytes = 0;
	int rc = c->get(&device, i);
	if (rc == 0)
		rc = c->name(name, sizeof(name) - 1, device);
	if (rc == 0)
		rc = c->attribute(&major, CUDA_MAJOR, device);
	if (rc == 0)
		rc = c->attribute(&minor, CUDA_MINOR, device);
	if (rc != 0)
		return rc;
	if (!c->memory || c->memory(&bytes, device) != 0)
		bytes = 0;
	say_gpu(fd, name, major, minor, bytes);
	return 0;
}

/* Whether libcuda reported a GPU. */
static bool ask_cuda(int fd)
{
	struct cuda c = {0};
	const char *word = NULL;
	int version = 0, count = 0;
	if (!find_cuda(&c))
		return false;
	int rc = c.init(0);
	if (c.driver && c.driver(&version) == 0 && version > 0)
		dprintf(fd, "cuda %d.%d\n", version / 1000, version % 1000 / 10);
	if (rc == 0)
		rc = c.count(&count);
	for (int i = 0; rc == 0 && i < count && i < MAX_GPUS; i++)
		rc = say_cuda_device(fd, &c, i);
	if (rc == 0 && count > 0) {
		dprintf(fd, "source libcuda\n");
		return true;
	}
	if (rc != 0 && rc != CUDA_NO_DEVICE) {
		if (!c.error_name || c.error_name(rc, &word) != 0)
			word = NULL;
		dprintf(fd, "trouble libcuda returned error %d%s%s\n", rc, word ? ", " : "", word ? word : "");
	}
	return false;
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
};

static bool find_nvml(struct nvml *n)
{
	void *lib = open_first("libnvidia-ml.so.1");
	if (!lib)
		return false;
	FIND(lib, n->init, "nvmlInit_v2");
	FIND(lib, n->driver, "nvmlSystemGetDriverVersion");
	FIND(lib, n->count, "nvmlDeviceGetCount_v2");
	FIND(lib, n->get, "nvmlDeviceGetHandleByIndex_v2");
	FIND(lib, n->name, "nvmlDeviceGetName");
	FIND(lib, n->capability, "nvmlDeviceGetCudaComputeCapability");
	FIND(lib, n->memory, "nvmlDeviceGetMemoryInfo");
	return n->init && n->driver && n->count && n->get && n->name && n->capability;
}

static void ask_nvml(int fd, bool only_driver)
{
	struct nvml n = {0};
	struct nvml_memory memory = {0};
	char text[NAME_LEN] = "";
	void *device;
	unsigned count = 0;
	int major, minor;
	bool found = false;
	if (!find_nvml(&n) || n.init() != 0)
		return;
	if (n.driver(text, sizeof(text) - 1) == 0)
		dprintf(fd, "driver %s\n", text);
	if (only_driver || n.count(&count) != 0)
		return;
	for (unsigned i = 0; i < count && i < MAX_GPUS; i++) {
		if (n.get(i, &device) < 0 || n.name(device, text, sizeof(text) - 1) != 0 ||
		    n.capability(device, &major, &minor) != 0)
			continue;
		if (!n.memory || n.memory(device, &memory) != 0)
			memory.total = 0;
		say_gpu(fd, text, major, minor, memory.total);
		found = true;
	}
	if (found)
		dprintf(fd, "source NVML\n");
}

void hardware_gpu_child(int fd)
{
	unsetenv("CUDA_VISIBLE_DEVICES");
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	ask_nvml(fd, ask_cuda(fd));
}
