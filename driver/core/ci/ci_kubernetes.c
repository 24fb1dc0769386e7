/* Jobs for Kubernetes, as a List: a Job for each of the plan, labelled by its wave, and one that
 * indexes the wheels. Kubernetes knows no order of Jobs, so the user applies one wave at a time. */
#include <ctype.h>
#include <inttypes.h>

#include "base/sys/digest.h"
#include "base/sys/json.h"
#include "core/ci/ci.h"

#define CLAIM "ptbuild" /* the volume that all jobs share */
#define USER 1000
#define NAME_MAX_LENGTH 54u /* with a digest at most the 63 characters that Kubernetes allows */
#define INDEX_SECONDS 7200
#define INDEX_MEMORY (UINT64_C(2) << 30)
#define QUEUE "queue=" /* a label of the runner map: Kueue's queue */

/* Lower-case letters, digits and dashes, and part of a digest: names that differ only in other
 * characters, or after the limit, stay apart. */
static const char *name_of(const char *id, struct arena *a)
{
	char digest[DIGEST_HEX_LEN + 1];
	AUTO_BUF struct buf out = {0};

	digest_data(id, strlen(id), digest);
	for (const char *p = id; *p && out.len < NAME_MAX_LENGTH; p++) {
		const char c = (char)tolower((unsigned char)*p);
		const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		buf_addc(&out, plain || !out.len ? c : '-');
	}

	return arena_printf(a, "%s-%.8s", buf_cstr(&out), digest);
}

static json_t *number_text(uint64_t n)
{
	return json_sprintf("%" PRIu64, n);
}

struct job {
	const char *id, *wave, *platform;
	const struct ci_runner_row *runner; /* NULL: any node */
	const struct strlist *argv;
	unsigned cpus;
	uint64_t memory, disk, seconds; /* disk 0: not in the container */
};

static json_t *resources(const struct job *j)
{
	json_t *o = json_pack("{s:o, s:o}", "cpu", number_text(j->cpus), "memory",
			      number_text(j->memory));

	if (j->disk)
		json_object_set_new(o, "ephemeral-storage", number_text(j->disk));
	return json_pack("{s:O, s:o}", "requests", o, "limits", o);
}

/* As docs/sandbox.md says: the sandbox needs namespaces and a complete /proc. Without one a build
 * needs nothing. */
static json_t *security(const struct ci_plan *p)
{
	json_t *o = json_pack("{s:i, s:i, s:b, s:b, s:{s:[s]}}", "runAsUser", USER, "runAsGroup",
			      USER, "runAsNonRoot", 1, "allowPrivilegeEscalation", 0,
			      "capabilities", "drop", "ALL");

	json_object_set_new(o, "seccompProfile",
			    p->sandboxed ? json_pack("{s:s, s:s}", "type", "Localhost",
						     "localhostProfile", "ptbuild/seccomp.json")
					 : json_pack("{s:s}", "type", "RuntimeDefault"));
	if (p->sandboxed && p->whole_proc)
		json_object_set_new(o, "procMount", json_string("Unmasked"));
	return o;
}

/* Labels of the runner map: a queue of Kueue, and of the nodes. */
static void add_labels(const struct ci_runner_row *r, json_t *labels, json_t *nodes,
		       struct arena *a)
{
	for (unsigned i = 0; r && i < r->labels_count; i++) {
		const char *label = r->labels[i], *equals = strchr(label, '=');
		if (!equals)
			continue;
		if (strncmp(label, QUEUE, strlen(QUEUE)) == 0)
			json_object_set_new(labels, "kueue.x-k8s.io/queue-name",
					    json_string(equals + 1));
		else
			json_object_set_new(nodes,
					    arena_strndup(a, label, (size_t)(equals - label)),
					    json_string(equals + 1));
	}
}

static json_t *pod(const struct ci_plan *p, const struct job *j, json_t *nodes)
{
	json_t *container =
		json_pack("{s:s, s:o, s:o, s:s, s:[{s:s, s:s}], s:o, s:o, s:[{s:s, s:s}]}", "name",
			  "build", "image", json_or_null(p->image), "command",
			  json_from_strlist(j->argv), "workingDir", "/shared", "env", "name",
			  "HOME", "value", "/tmp", "securityContext", security(p), "resources",
			  resources(j), "volumeMounts", "name", CLAIM, "mountPath", "/shared");
	json_t *spec =
		json_pack("{s:s, s:{s:i}, s:[o], s:[{s:s, s:{s:s}}]}", "restartPolicy", "Never",
			  "securityContext", "fsGroup", USER, "containers", container, "volumes",
			  "name", CLAIM, "persistentVolumeClaim", "claimName", CLAIM);

	/* procMount needs a user namespace of the pod. */
	if (p->sandboxed && p->whole_proc)
		json_object_set_new(spec, "hostUsers", json_false());
	json_object_set_new(spec, "nodeSelector", nodes);
	return spec;
}

static json_t *job_json(const struct ci_plan *p, const struct job *j)
{
	AUTO_ARENA struct arena a = {0};
	json_t *labels = json_pack("{s:s, s:s}", "app", "ptbuild", "ptbuild-wave", j->wave);
	const bool arm = strcmp(j->platform, "aarch64-linux") == 0;
	json_t *nodes = json_pack("{s:s}", "kubernetes.io/arch", arm ? "arm64" : "amd64");

	add_labels(j->runner, labels, nodes, &a);
	return json_pack("{s:s, s:s, s:{s:s, s:o, s:{s:s}}, s:{s:i, s:I, s:{s:{s:{s:s}}, s:o}}}",
			 "apiVersion", "batch/v1", "kind", "Job", "metadata", "name",
			 name_of(j->id, &a), "labels", labels, "annotations", "ptbuild/variant",
			 j->id, "spec", "backoffLimit", 2, "activeDeadlineSeconds",
			 (json_int_t)j->seconds, "template", "metadata", "labels", "app", "ptbuild",
			 "spec", pod(p, j, nodes));
}

bool ci_kubernetes_runs(const struct ci_job *j)
{
	return path_has_suffix(j->platform, "-linux");
}

json_t *ci_kubernetes(const struct ci_plan *p)
{
	AUTO_ARENA struct arena a = {0};
	json_t *items = json_array();
	struct strlist index = {0};

	for (size_t i = 0; i < p->count; i++) {
		const struct ci_job *j = &p->jobs[i];
		if (!ci_kubernetes_runs(j))
			continue;
		const struct job one = {.id = j->id,
					.wave = arena_printf(&a, "%u", j->wave),
					.platform = j->platform,
					.runner = j->runner,
					.argv = &j->argv,
					.cpus = j->cpus,
					.memory = j->memory,
					.disk = p->sandboxed ? 0 : j->disk,
					.seconds = j->seconds};
		json_array_append_new(items, job_json(p, &one));
	}

	strlist_split(&index, &a, "ptbuild index", " ");
	strlist_ref(&index, &a, p->out);
	const struct job last = {.id = "index",
				 .wave = "index",
				 .platform = p->count ? p->jobs[0].platform : "",
				 .argv = &index,
				 .cpus = 1,
				 .memory = INDEX_MEMORY,
				 .seconds = INDEX_SECONDS};
	json_array_append_new(items, job_json(p, &last));
	return json_pack("{s:s, s:s, s:o}", "apiVersion", "v1", "kind", "List", "items", items);
}
