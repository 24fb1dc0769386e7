#!/usr/bin/env python3
"""Two installed torches against each other on the CPU: 28 workloads, in turns, each in a fresh process.

usage: bench_torch.py OURS OTHER [--threads 1,2] [--rounds 3] [--seconds 0.3] [--only NAME,...] [--json FILE]

OURS and OTHER are Python interpreters, each of an environment that has one torch (numpy is not needed). A round runs all workloads with the one, then with the
other; the next round begins with the other. A workload runs for about SECONDS a round, and its time is the median of its calls; what is compared is the least of
the rounds, which other work on the machine disturbs least. A ratio above 1 means that OURS is faster. The last line is the geometric mean.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time


def workloads(torch):
    """Name: function without arguments that does the work once. Inputs are the same in both processes."""
    nn, f = torch.nn, torch.nn.functional
    torch.manual_seed(0)

    def rand(*shape, dtype=torch.float32):
        return torch.randn(*shape).to(dtype)

    def quiet(module):
        return module.eval().requires_grad_(False)

    a512, a1536, d1024 = rand(512, 512), rand(1536, 1536), rand(1024, 1024, dtype=torch.float64)
    c512 = torch.complex(rand(512, 512), rand(512, 512))
    skinny, wide = rand(32, 4096), rand(4096, 4096)
    batch = rand(256, 64, 64)
    vector = rand(4096)
    image, kernel = rand(8, 64, 56, 56), rand(64, 64, 3, 3)
    depth_kernel = rand(64, 1, 3, 3)
    sound, sound_kernel = rand(16, 64, 1000), rand(64, 64, 5)
    query, key, value = (rand(4, 8, 256, 64) for _ in range(3))
    layer, tokens = quiet(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)), rand(8, 128, 512)
    recurrent, steps = quiet(nn.LSTM(128, 256)), rand(64, 16, 128)
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data, labels = rand(128, 512), torch.arange(128) % 10
    rows, big = rand(512, 1024), rand(1 << 20)
    index = torch.randint(0, 1 << 20, (1 << 18,))
    table, bags = rand(50000, 64), torch.randint(0, 50000, (512, 20))
    signals, pictures = rand(64, 4096), rand(16, 256, 256)
    system = rand(512, 512) + 512 * torch.eye(512)
    symmetric = a512[:256, :256] + a512[:256, :256].T
    norm, channels = nn.BatchNorm2d(64), rand(16, 64, 32, 32)
    small = [rand(16) for _ in range(64)]

    def train():
        optimizer.zero_grad()
        f.cross_entropy(model(data), labels).backward()
        optimizer.step()

    def overhead():
        total = small[0]
        for x in small:
            total = total + x
        return total

    return {
        "gemm fp32 512": lambda: a512 @ a512,
        "gemm fp32 1536": lambda: a1536 @ a1536,
        "gemm fp64 1024": lambda: d1024 @ d1024,
        "gemm complex64 512": lambda: c512 @ c512,
        "linear 32x4096x4096": lambda: skinny @ wide,
        "gemv 4096": lambda: wide @ vector,
        "bmm 256x64": lambda: batch @ batch,
        "conv2d 3x3": lambda: f.conv2d(image, kernel, padding=1),
        "conv2d depthwise": lambda: f.conv2d(image, depth_kernel, padding=1, groups=64),
        "conv1d": lambda: f.conv1d(sound, sound_kernel),
        "attention": lambda: f.scaled_dot_product_attention(query, key, value),
        "transformer layer": lambda: layer(tokens),
        "lstm": lambda: recurrent(steps),
        "mlp training step": train,
        "batch norm training": lambda: norm(channels),
        "layer norm": lambda: f.layer_norm(rows, (1024,)),
        "softmax": lambda: rows.softmax(-1),
        "gelu": lambda: f.gelu(rows),
        "exp 1M": lambda: big.exp(),
        "sum 1M": lambda: big.sum(),
        "sort 1M": lambda: big.sort(),
        "index select": lambda: big[index],
        "embedding bag": lambda: f.embedding_bag(bags, table, mode="sum"),
        "fft 64x4096": lambda: torch.fft.rfft(signals),
        "fft2 16x256x256": lambda: torch.fft.fft2(pictures),
        "solve 512": lambda: torch.linalg.solve(system, a512),
        "eigh 256": lambda: torch.linalg.eigh(symmetric),
        "64 small additions": overhead,
    }


def worker(threads, seconds, only):
    import torch

    torch.set_num_threads(threads)
    times = {}
    for name, work in workloads(torch).items():
        if only and name not in only:
            continue
        spans = []
        for _ in range(3):
            work()
        end = time.perf_counter() + seconds
        while len(spans) < 5 or time.perf_counter() < end:
            start = time.perf_counter()
            work()
            spans.append(time.perf_counter() - start)
        times[name] = statistics.median(spans)
    print(json.dumps({"torch": torch.__version__, "times": times}))


def run(python, args, threads):
    """A fresh process with no more processors than threads, so that neither side can take one that was not asked for."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "MKL_", "GOMP_", "KMP_", "OPENBLAS_"))}
    cpus = sorted(os.sched_getaffinity(0))[:threads]
    if len(cpus) < threads:
        sys.exit(f"bench_torch: {threads} threads, but {len(cpus)} processors")
    command = [python, os.path.abspath(__file__), "--worker", str(threads), "--seconds", str(args.seconds), "--only", args.only]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    if done.returncode:
        sys.exit(f"bench_torch: {' '.join(command)} gave {done.returncode}")
    return json.loads(done.stdout)


def compare(args, threads):
    best, versions = [{}, {}], ["", ""]
    for n in range(args.rounds):
        for side in (0, 1) if n % 2 == 0 else (1, 0):
            result = run((args.ours, args.other)[side], args, threads)
            versions[side] = result["torch"]
            for name, seconds in result["times"].items():
                best[side].setdefault(name, []).append(seconds)
    print(f"{threads} thread{'s' if threads > 1 else ''}: {versions[0]} against {versions[1]}, {args.rounds} rounds")
    print(f"{'workload':24} {'ours ms':>10} {'other ms':>10} {'other/ours':>11}  spread")
    rows = {}
    for name, ours in best[0].items():
        other = best[1][name]
        ratio = min(other) / min(ours)
        spread = max(max(x) / min(x) for x in (ours, other))
        rows[name] = {"ours": ours, "other": other, "ratio": ratio}
        print(f"{name:24} {min(ours) * 1e3:10.3f} {min(other) * 1e3:10.3f} {ratio:11.2f}  {spread:.2f}")
    mean = math.exp(statistics.fmean(math.log(r["ratio"]) for r in rows.values()))
    print(f"{'geometric mean':24} {'':10} {'':10} {mean:11.2f}")
    return {"threads": threads, "torch": versions, "workloads": rows, "geometric_mean": mean}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--worker", type=int)
    parser.add_argument("ours", nargs="?")
    parser.add_argument("other", nargs="?")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.worker:
        worker(args.worker, args.seconds, [x for x in args.only.split(",") if x])
        return
    if not args.other:
        sys.exit(__doc__)
    results = [compare(args, int(n)) for n in args.threads.split(",")]
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump(results, out, indent=1)


if __name__ == "__main__":
    main()
