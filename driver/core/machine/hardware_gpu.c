#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/sys/machine.h"
#include "base/sys/proc.h"
#include "core/machine/hardware.h"

#define PATIENCE_MS 30000 /* eight GPUs without a persistence daemon need some ten seconds */
#define MAX_GPUS 64

static void add_gpu(struct hardware *h, const struct hardware_gpu *gpu, struct arena *a)
{
	if (!*gpu->name || !hardware_is_capability(gpu->capability) || h->gpu_count == MAX_GPUS)
		return;
	if (!h->gpu_count)
		h->gpus = arena_array(a, MAX_GPUS, sizeof(*h->gpus));
	h->gpus[h->gpu_count++] = *gpu;
}

static void take_gpu(const char *text, struct arena *a, struct hardware *h)
{
	struct strlist fields = {0};

	strlist_split(&fields, a, text, "\t");
	if (fields.count < 2)
		return;
	const uint64_t memory = fields.count > 2 ? strtoull(fields.items[2], NULL, 10) : 0;
	add_gpu(h, &(struct hardware_gpu){fields.items[0], fields.items[1], memory}, a);
}

/* Each once, in the order in which they came. */
static void add_trouble(struct hardware *h, struct arena *a, const char *text)
{
	if (*text && !strstr(h->gpu_trouble, text))
		h->gpu_trouble = arena_printf(a, "%s%s%s", h->gpu_trouble,
					      *h->gpu_trouble ? "; " : "", text);
}

void hardware_take_answers(const char *text, struct arena *a, struct hardware *h)
{
	struct strlist lines = {0};

	strlist_split(&lines, a, text, "\n");
	for (size_t i = 0; i < lines.count; i++) {
		char *line = arena_strdup(a, lines.items[i]), *value = strchr(line, ' ');
		if (!value)
			continue;
		*value++ = '\0';
		if (strcmp(line, "gpu") == 0)
			take_gpu(value, a, h);
		else if (strcmp(line, "driver") == 0 && version_valid(value))
			h->driver = value;
		else if (strcmp(line, "cuda") == 0 && version_valid(value))
			h->driver_cuda = value;
		else if (strcmp(line, "source") == 0)
			h->gpu_source = value;
		else if (strcmp(line, "trouble") == 0)
			add_trouble(h, a, value);
	}
}

static char *trim(char *s)
{
	s += strspn(s, " \t");
	for (size_t n = strlen(s); n && strchr(" \t\r", s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

/* Cuts off what follows the last comma and gives it; NULL without a comma. */
static char *last_field(char *line)
{
	char *comma = strrchr(line, ',');

	if (!comma)
		return NULL;
	*comma = '\0';
	return trim(comma + 1);
}

void hardware_take_smi(const char *text, struct arena *a, struct hardware *h)
{
	struct strlist lines = {0};

	strlist_split(&lines, a, text, "\n");
	for (size_t i = 0; i < lines.count; i++) {
		char *line = arena_strdup(a, lines.items[i]);
		char *driver = last_field(line), *mib = driver ? last_field(line) : NULL,
		     *capability = mib ? last_field(line) : NULL;
		size_t before = h->gpu_count;
		if (capability)
			add_gpu(h,
				&(struct hardware_gpu){trim(line), capability,
						       strtoull(mib, NULL, 10) << 20},
				a);
		if (h->gpu_count == before) {
			add_trouble(h, a,
				    arena_printf(a, "nvidia-smi: %s",
						 trim(arena_strdup(a, lines.items[i]))));
			continue;
		}

		h->gpu_source = "nvidia-smi";
		if (!*h->driver && version_valid(driver))
			h->driver = driver;
	}
}

/* Collects what the child writes. 0: it ended; 1: it was silent for too long. */
static int listen_to(int fd, const struct hardware_question *q, struct buf *out, struct err *e)
{
	char piece[4096];

	for (int left = q->patience_ms; left > 0; left -= 200) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (run_check(q->run, e) < 0)
			return -1;
		int ready = poll(&p, 1, 200);
		if (ready <= 0)
			continue;
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n == 0)
			return 0;
		if (n > 0 && out->len < (1u << 20))
			buf_add(out, piece, (size_t)n);
		else if (n < 0 && errno != EINTR)
			return 0;
		left += 200; /* silence alone counts */
	}

	return 1;
}

/* A process that hangs in the driver cannot even be killed: it is given up after a second. */
static void reap(pid_t pid, bool killed, int *status)
{
	for (int tries = 0; tries < 20; tries++) {
		pid_t ended = waitpid(pid, status, killed ? WNOHANG : 0);
		if (ended == pid || (ended < 0 && errno != EINTR))
			return;
		poll(NULL, 0, 50);
	}
}

/* 0: it ended, as *status says; 1: it was silent for too long. */
static int ask_once(const struct hardware_question *q, struct buf *out, int *status, struct err *e)
{
	int ends[2];

	buf_reset(out);
	if (pipe(ends) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot make a pipe");
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		q->child(ends[1], q->facts);
		_exit(0);
	}

	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return err_errno(e, ERR_SYSTEM, "cannot start a process");
	}

	int rc = listen_to(ends[0], q, out, e);
	close(ends[0]);
	if (rc != 0)
		kill(pid, SIGKILL);
	reap(pid, rc != 0, status);
	return rc;
}

int hardware_ask_child(const struct hardware_question *q, struct arena *a, struct hardware *h,
		       struct err *e)
{
	AUTO_BUF struct buf out = {0};
	int status = 0, rc = ask_once(q, &out, &status, e);

	/* Killed for memory, it may answer now; a driver that is broken dies again. */
	if (rc == 0 && WIFSIGNALED(status))
		rc = ask_once(q, &out, &status, e);
	if (rc < 0)
		return -1;
	hardware_take_answers(buf_cstr(&out), a, h);
	if (rc > 0)
		add_trouble(h, a,
			    arena_printf(a, "libcuda did not answer within %d seconds",
					 q->patience_ms / 1000));
	else if (WIFSIGNALED(status))
		add_trouble(h, a, arena_printf(a, "libcuda died with signal %d", WTERMSIG(status)));
	return 0;
}

static int ask_smi(const struct run *run, struct arena *a, struct hardware *h, struct err *e)
{
	static const char *const argv[] = {
		"nvidia-smi", "--query-gpu=name,compute_cap,memory.total,driver_version",
		"--format=csv,noheader,nounits", NULL};
	AUTO_BUF struct buf out = {0};
	struct proc_result r;
	struct err why = {0};

	if (!proc_find(a, argv[0]))
		return 0;
	const struct proc_spec spec = {
		.argv = argv, .out = &out, .timeout_s = PATIENCE_MS / 1000.0};
	if (proc_run(&spec, run, &r, &why) < 0) {
		if (why.kind == ERR_INTERRUPTED)
			return err_set(e, ERR_INTERRUPTED, "%s", why.msg);
		add_trouble(h, a, why.msg);
		return 0;
	}

	if (r.status != 0)
		add_trouble(h, a, arena_printf(a, "nvidia-smi ended with %d", r.status));
	else if (!out.len)
		add_trouble(h, a, "nvidia-smi printed nothing");
	hardware_take_smi(buf_cstr(&out), a, h);
	return 0;
}

/* NVIDIA's GPUs through libcuda, else NVML, else nvidia-smi;
 * all of the machine, whatever CUDA_VISIBLE_DEVICES says. */
static int read_gpus(const struct hardware_facts *f, const struct run *run, struct arena *a,
		     struct hardware *h, struct err *e)
{
	const struct hardware_question q = {hardware_gpu_child, f, PATIENCE_MS, run};

	if (hardware_ask_child(&q, a, h, e) < 0 || (!h->gpu_count && ask_smi(run, a, h, e) < 0))
		return -1;
	if (!*h->driver)
		h->driver = hardware_kernel_driver(a);
	return 0;
}

int hardware_read(const struct hardware_facts *f, bool gpus, const struct run *run, struct arena *a,
		  struct hardware *ret, struct err *e)
{
	struct hardware h = {.platform = "",
			     .cpu = {.name = "", .vendor = ""},
			     .driver = "",
			     .driver_cuda = "",
			     .gpu_source = "",
			     .gpu_trouble = "",
			     .glibc = "",
			     .processors = machine_processors(),
			     .memory = machine_memory()};

	if (hardware_read_cpu(f, a, &h, e) < 0 || (gpus && read_gpus(f, run, a, &h, e) < 0))
		return -1;
	hardware_find_pythons(a, &h.pythons);
	*ret = h;
	return 0;
}
