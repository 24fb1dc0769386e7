#!/usr/bin/python3
"""Collectives over several GPUs, one process for each; run with the Python of the environment that has the torch.

    test_two_gpus.py [--gpus N] [--mib N] [--limit SECONDS] [--json FILE] [--self-check]

A line a check: pass or FAIL. The last one is the bandwidth of all_reduce over --mib MiB (1024): bytes that each GPU sends in a ring, 2 (n - 1) / n of the size, by the median of 20 calls.
--self-check does the same with Gloo on the processor, which proves this script and nothing of a wheel.
Exit status: 0 all passed; 1 a check failed, or the time limit (120 s) ran out; 2 usage; 3 fewer GPUs than asked for.
"""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time


def options():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--gpus", type=int, default=2)
    p.add_argument("--mib", type=int, default=1024)
    p.add_argument("--limit", type=float, default=120)
    p.add_argument("--json")
    p.add_argument("--self-check", action="store_true")
    p.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    p.add_argument("--port", type=int, help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.gpus < 2 or o.mib < 1 or not 0 < o.limit < 1e6:
        p.error("--gpus takes 2 or more, --mib 1 or more, --limit seconds")
    return o


class Process:
    """What one of the processes does."""

    def __init__(self, o):
        import torch

        self.torch, self.dist, self.o = torch, torch.distributed, o
        self.device = "cpu" if o.self_check else f"cuda:{o.rank}"
        if not o.self_check:
            torch.cuda.set_device(o.rank)
        self.dist.init_process_group("gloo" if o.self_check else "nccl", init_method=f"tcp://127.0.0.1:{o.port}", rank=o.rank, world_size=o.gpus)

    def say(self, name, ok, detail):
        every = self.torch.tensor([int(ok)], device=self.device)
        self.dist.all_reduce(every, op=self.dist.ReduceOp.MIN)
        if self.o.rank == 0:
            print(json.dumps({"check": name, "state": "pass" if every.item() else "FAIL", "detail": detail}), flush=True)

    def numbers(self, rank, count=1 << 20):
        return (self.torch.arange(count, device=self.device, dtype=self.torch.float32) % 1000) * (rank + 1)

    def sums(self):
        n, rank, dist, torch = self.o.gpus, self.o.rank, self.dist, self.torch
        whole = n * (n + 1) // 2
        x = self.numbers(rank)
        dist.all_reduce(x)
        self.say("all_reduce", torch.equal(x, self.numbers(0) * whole), f"{n} processes, {x.numel()} numbers")
        parts = [torch.empty(1 << 18, device=self.device) for _ in range(n)]
        dist.all_gather(parts, self.numbers(rank, 1 << 18))
        self.say("all_gather", all(torch.equal(p, self.numbers(r, 1 << 18)) for r, p in enumerate(parts)), f"{n} parts")
        x = self.numbers(rank)
        dist.broadcast(x, n - 1)
        self.say("broadcast", torch.equal(x, self.numbers(n - 1)), f"from process {n - 1}")
        if not self.o.self_check:  # Gloo has no reduce_scatter
            part = torch.empty((1 << 20) // n, device=self.device)
            dist.reduce_scatter_tensor(part, self.numbers(rank))
            want = (self.numbers(0) * whole).chunk(n)[rank]
            self.say("reduce_scatter", torch.equal(part, want), f"{part.numel()} numbers each")

    def training_step(self):
        """The gradients of a step over parts of a batch are those of one process over all of it."""
        torch = self.torch
        torch.manual_seed(5)
        torch.backends.cuda.matmul.allow_tf32 = False
        net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 8)).to(self.device)
        x, y = torch.randn(32 * self.o.gpus, 64).to(self.device), torch.randn(32 * self.o.gpus, 8).to(self.device)
        torch.nn.functional.mse_loss(net(x), y).backward()
        want = [p.grad.clone() for p in net.parameters()]
        net.zero_grad()
        spread = torch.nn.parallel.DistributedDataParallel(net, device_ids=None if self.o.self_check else [self.o.rank])
        a, b = x.chunk(self.o.gpus)[self.o.rank], y.chunk(self.o.gpus)[self.o.rank]
        torch.nn.functional.mse_loss(spread(a), b).backward()
        worst = max(((p.grad - w).abs().max() / w.abs().max()).item() for p, w in zip(net.parameters(), want))
        self.say("DDP training step", worst < 1e-5, f"largest difference of gradients {worst:.1e}")

    def bandwidth(self):
        x = self.torch.ones(self.o.mib << 18, device=self.device)
        spans = []
        for _ in range(25):
            x.fill_(1)
            if not self.o.self_check:
                self.torch.cuda.synchronize()
            self.dist.barrier()
            begin = time.perf_counter()
            self.dist.all_reduce(x)
            if not self.o.self_check:
                self.torch.cuda.synchronize()
            spans.append(time.perf_counter() - begin)
        seconds = statistics.median(spans[5:])
        speed = 2 * (self.o.gpus - 1) / self.o.gpus * x.numel() * 4 / seconds / 1e9
        self.say("bandwidth", bool((x == self.o.gpus).all()), f"all_reduce of {self.o.mib} MiB: {speed:.1f} GB/s ({seconds * 1e3:.2f} ms, fastest {min(spans) * 1e3:.2f})")

    def run(self):
        self.sums()
        self.training_step()
        self.bandwidth()
        self.dist.destroy_process_group()


def end(processes):
    for p in processes:
        if p.poll() is None:
            p.kill()
        p.wait()


def main():
    o = options()
    if o.rank is not None:
        Process(o).run()
        return 0
    import torch

    if not o.self_check and torch.cuda.device_count() < o.gpus:
        print(f"{torch.cuda.device_count()} GPUs here, not {o.gpus}")
        return 3
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    argv = [sys.executable, "-I", os.path.abspath(__file__), "--gpus", str(o.gpus), "--mib", str(o.mib), "--port", str(port)] + (["--self-check"] if o.self_check else [])
    processes = [subprocess.Popen(argv + ["--rank", str(r)], stdout=subprocess.PIPE if r == 0 else subprocess.DEVNULL, text=True) for r in range(o.gpus)]
    why = None
    try:
        text, _ = processes[0].communicate(timeout=o.limit)
        failed = [r for r, p in enumerate(processes) if p.wait(timeout=10)]
        why = f"process {failed[0]} failed" if failed else None
    except subprocess.TimeoutExpired:
        text, why = "", f"not done after {o.limit:.0f} s"
    finally:
        end(processes)
    results = [json.loads(line) for line in text.splitlines() if line.startswith('{"check"')]
    for r in results:
        print(f"{r['state']:7} {r['check']:20} {r['detail']}")
    if why:
        print(f"FAIL    {why}")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump({"torch": torch.__version__, "gpus": o.gpus, "results": results, "failed": why}, f, indent=1)
    return 1 if why or not results or any(r["state"] != "pass" for r in results) else 0


sys.exit(main())
