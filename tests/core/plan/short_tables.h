#pragma once

/* Tables that hold just enough, for where they are not the
 * ones that are changed: reading them takes most of the time. */
static const struct {
	const char *name, *text;
} short_tables[] = {
	{"extensions.yaml",
	 "extensions: [{name: x86_64, machine: x86_64}]\ncombined: [{needs: [a], sets: [A]}]\n"
	 "instructions: [{mnemonic: a, needs: [a], why: x}]\n"
	 "encodings: [{needs: [a], mask: \"0x1\", value: \"0x1\", what: x}]\n"},
	{"dispatch.yaml", "families: [{library: \"*\", extensions: [any], why: x}]\n"},
	{"manylinux.yaml",
	 "libraries: [{name: a}]\npolicies: [{policy: 2_28, machine: x86_64, glibc: 2}]"},
	{"threads.yaml", "pools: [{name: a, libraries: [a], why: x, instead: x}]\n"},
	{"isa.yaml", "isas: [{name: avx2, platform: x86_64-linux, flags: [-mavx2], cpuinfo: "
		     "[avx2], gcc_min: \"5\", "
		     "clang_min: \"5\", cpus: x}]\n"},
	{"gpu.yaml", "gpus: [{sm: \"90\", capability: \"9.0\", name: x, cuda_min: \"12.0\"}]\n"},
	{"cuda.yaml",
	 "layouts: [{name: cu12, libraries: [{package: a, dir: a, names: [a]}]}]\n"
	 "toolkits: [{version: \"12.8\", gcc_max: \"14\", clang_max: \"19\", driver: \"1\", "
	 "driver_floor: \"1\", layout: cu12}]\n"},
	{"blas.yaml",
	 "blas: [{name: openblas, cmake: OpenBLAS, info: open, platforms: [x86_64-linux]}]\n"},
	{"toggles.yaml", "toggles:\n  - {names: [USE_CUDA, USE_CUDNN, USE_NCCL, USE_CUSPARSELT, "
			 "USE_CUFILE, USE_NVSHMEM, USE_KINETO], "
			 "value: "
			 "\"ON\", why: x}\n  - {name: TORCHVISION_USE_NVJPEG, package: "
			 "torchvision, value: \"1\", values: "
			 "[\"0\", \"1\"], why: x}\n"},
	{"corrections.yaml", "corrections: [{name: a, note: x, source: x}]\n"},
	{"needs.yaml", "needs: [{tool: gcc, debian: gcc, why: x}]\n"},
	{"captured.yaml", "captured: [{package: a, version: a, check: a, why: x}]\n"},
	{"releases/2.9.1.yaml",
	 "name: 2.9.1\nbase: 2.9.1\npythons: [\"3.13\"]\ntoolkits: [\"12.8\"]\nsource_date_epoch: "
	 "1762905600\n"
	 "pytorch:\n  version: 2.9.1\n  backend: setup-py-env\n  sources: [{name: a, sha256: "
	 "e17504700ebc4c87f9b57059df1c4d790b769458c04db144c7a92aea90f2c92b, urls: "
	 "[\"https://a\"]}]\n"},
};
