"""What a torch for CUDA must do on a GPU, each compared with the CPU in double precision. Run by test_wheels.py inside a clean environment:

    gpu_checks.py [--self-check] [PACKAGE...]

PACKAGE is torchvision or torchaudio. --self-check runs the same on the CPU, which proves this script and nothing of a wheel.
Standard output: a JSON object a line, {"start": name} before each check, then {"check", "state", "detail", "tolerance", "seconds"}; state is pass, FAIL or absent; the last line is {"done": true}.
"""

import ctypes
import json
import os
import sys
import time

CHECKS = []


class Absent(Exception):
    """What is not in this build: told, neither passed nor failed."""


def check(name, tolerance=None, package=None):
    def add(fn):
        CHECKS.append((name, tolerance, package, fn))
        return fn

    return add


def emit(**fields):
    print(json.dumps(fields), flush=True)


def difference(got, want):
    """Largest difference, relative to the largest wanted value."""
    got, want = got.detach().double().cpu(), want.detach().double().cpu()
    if got.shape != want.shape:
        return f"shape {tuple(got.shape)} instead of {tuple(want.shape)}", float("inf")
    if not torch.isfinite(got).all():
        return "not finite", float("inf")
    worst = (got - want).abs().max().item() / max(want.abs().max().item(), 1e-300)
    return f"largest difference {worst:.2e}", worst


def within(pairs, tolerance):
    details, worst = [], 0.0
    for label, got, want in pairs:
        text, d = difference(got, want)
        details.append(f"{label}: {text}" if label else text)
        worst = max(worst, d)
    return worst <= tolerance, "; ".join(details)


def randn(*shape, dtype=None):
    """On the CPU: both sides start from the same numbers."""
    return torch.randn(*shape, dtype=dtype or torch.float64, generator=GENERATOR)


def put(t, dtype=None):
    return t.to(DEVICE, dtype or t.dtype)


# -- what is there ------------------------------------------------------------------------------------------------------------------------


@check("device")
def device(_):
    if SELF:
        return True, "the CPU, because of --self-check"
    p = torch.cuda.get_device_properties(0)
    return True, f"{p.name}, capability {p.major}.{p.minor}, {p.total_memory / 2**30:.0f} GiB; torch {torch.__version__}, CUDA {torch.version.cuda}"


@check("gpu targets")
def targets(_):
    if SELF:
        raise Absent("no GPU in a self-check")
    flags = torch._C._cuda_getArchFlags().split()
    major, minor = torch.cuda.get_device_capability(0)
    own = [f for f in flags if f.startswith(f"sm_{major}") and int("".join(c for c in f[3:] if c.isdigit())) <= 10 * major + minor]
    return bool(own), f"built for {' '.join(flags)}, the GPU takes {' '.join(own) or 'none of them'}"


def driver_context(name):
    """(status, current context) of the driver of this name; None where there is none."""
    try:
        ask = ctypes.CDLL(name).cuCtxGetCurrent
    except (OSError, AttributeError):
        return None
    context = ctypes.c_void_p()
    return ask(ctypes.byref(context)), context.value


def one_driver():
    """torch opens the driver as libcuda.so.1, cuDNN as libcuda.so. Where these are two files, as in a copy that made files of links, a process can have two drivers, and the second knows no context of the first."""
    first, second = driver_context("libcuda.so.1"), driver_context("libcuda.so")
    if first is None or first[0] or not first[1]:
        return False, f"libcuda.so.1 has no context: {first}"
    if second is None:
        return True, "libcuda.so.1; there is no libcuda.so"
    if second != first:
        return False, f"libcuda.so is another driver than libcuda.so.1: (status, context) is {second}, not {first}; make it a link to libcuda.so.1, else cuDNN's attention fails"
    return True, "libcuda.so.1 and libcuda.so have one context"


@check("driver")
def driver(_):
    if SELF:
        raise Absent("no driver in a self-check")
    torch.zeros(1, device=DEVICE)
    return one_driver()


@check("cudnn")
def cudnn(_):
    if not torch.backends.cudnn.is_available():
        raise Absent("this build has no cuDNN: convolutions use PyTorch's own kernels")
    return True, f"version {torch.backends.cudnn.version()}"


@check("nccl")
def nccl(_):
    if not (torch.distributed.is_available() and torch.distributed.is_nccl_available()):
        raise Absent("this build has no NCCL: no collectives over several GPUs")
    return True, f"version {torch.cuda.nccl.version()}"


@check("collectives of one process", 0.0)
def collectives(tolerance):
    """NCCL on the GPU, Gloo on both; several GPUs are for test_two_gpus.py."""
    dist = torch.distributed
    if not dist.is_available():
        raise Absent("this build has no torch.distributed")
    pairs = []
    for backend, dev in [("gloo", "cpu")] + ([] if SELF else [("gloo", DEVICE), ("nccl", DEVICE)]):
        if backend == "nccl" and not dist.is_nccl_available():
            continue
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
        x = randn(1000).to(dev)
        y, parts = x.clone(), [torch.empty_like(x)]
        dist.all_reduce(y)
        dist.all_gather(parts, x)
        pairs += [(f"{backend} {dev}", y, x), ("", parts[0], x)]
        dist.destroy_process_group()
    return within(pairs, tolerance)


# -- matrix products ----------------------------------------------------------------------------------------------------------------------


def matmul(dtype, tolerance, tf32=False):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    a, b = randn(1023, 517), randn(517, 769)
    a, b = a.to(dtype), b.to(dtype)
    try:
        return within([("", put(a) @ put(b), a.double() @ b.double())], tolerance)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


@check("matmul fp64", 1e-13)
def matmul_fp64(tolerance):
    return matmul(torch.float64, tolerance)


@check("matmul fp32", 1e-5)
def matmul_fp32(tolerance):
    return matmul(torch.float32, tolerance)


@check("matmul tf32", 2e-3)
def matmul_tf32(tolerance):
    ok, detail = matmul(torch.float32, tolerance, tf32=True)
    if not SELF and torch.cuda.get_device_capability(0)[0] < 8:
        raise Absent("this GPU has no TF32")
    return ok, detail


@check("matmul bf16", 1e-2)
def matmul_bf16(tolerance):
    return matmul(torch.bfloat16, tolerance)


@check("matmul fp16", 2e-3)
def matmul_fp16(tolerance):
    return matmul(torch.float16, tolerance)


@check("batched matmul", 1e-5)
def batched(tolerance):
    a, b = randn(17, 64, 33), randn(17, 33, 48)
    return within([("", torch.bmm(put(a, torch.float32), put(b, torch.float32)), torch.bmm(a, b))], tolerance)


# -- PyTorch's own kernels ----------------------------------------------------------------------------------------------------------------


@check("elementwise", 1e-6)
def elementwise(tolerance):
    a = randn(100003)
    g = put(a, torch.float32)
    ops = [("exp", torch.exp), ("sin", torch.sin), ("erf", torch.erf), ("gelu", torch.nn.functional.gelu), ("lgamma", lambda t: torch.lgamma(t.abs() + 1))]
    return within([(n, f(g), f(a.float().double())) for n, f in ops], tolerance)


@check("sort, scan, reduce, scatter", 1e-5)
def cub(tolerance):
    a, index = randn(50021), torch.randint(0, 100, (50021,), generator=GENERATOR)
    g = put(a, torch.float32)
    same = torch.equal(torch.unique(put(index)).cpu(), torch.unique(index))
    zeros = torch.zeros(100, dtype=torch.float64)
    ok, detail = within(
        [
            ("sort", g.sort().values, a.float().sort().values),
            ("cumsum", g.double().cumsum(0), a.float().double().cumsum(0)),
            ("sum", g.abs().sum(), a.float().double().abs().sum()),
            ("topk", g.topk(50).values, a.float().topk(50).values),
            ("scatter", put(zeros).scatter_add(0, put(index), put(a)), zeros.scatter_add(0, index, a)),
        ],
        tolerance,
    )
    return ok and same, detail + ("" if same else "; unique differs")


@check("kernel compiled at run time", 1e-6)
def nvrtc(tolerance):
    if SELF:
        raise Absent("no NVRTC in a self-check")
    fn = torch.cuda.jiterator._create_jit_fn("template <typename T> T twice_plus(T x, T y) { return T(2) * x + y; }")
    a, b = randn(1000), randn(1000)
    return within([("", fn(put(a), put(b)), 2 * a + b)], tolerance)


# -- CUDA's libraries ---------------------------------------------------------------------------------------------------------------------


@check("convolution", 1e-4)
def convolution(tolerance):
    pairs = []
    for label, fn, x, w in (
        ("2d", lambda x, w: torch.nn.functional.conv2d(x, w, stride=2, padding=1), randn(4, 8, 33, 35), randn(16, 8, 3, 3)),
        ("grouped", lambda x, w: torch.nn.functional.conv2d(x, w, groups=8), randn(2, 8, 17, 17), randn(8, 1, 3, 3)),
        ("3d", torch.nn.functional.conv3d, randn(2, 3, 9, 10, 11), randn(4, 3, 3, 3, 3)),
        ("transposed", torch.nn.functional.conv_transpose2d, randn(2, 6, 9, 9), randn(6, 4, 3, 3)),
    ):
        sides = []
        for dev, dtype in ((DEVICE, torch.float32), ("cpu", torch.float64)):
            xi = x.to(dev, dtype).requires_grad_()
            wi = w.to(dev, dtype).requires_grad_()
            y = fn(xi, wi)
            y.square().mean().backward()
            sides.append((y, xi.grad, wi.grad))
        pairs += [(f"{label} {part}", a, b) for part, a, b in zip(("forward", "input", "weight"), *sides)]
    return within(pairs, tolerance)


@check("cuDNN convolution", 2e-2)
def cudnn_convolution(tolerance):
    """Half precision, in which cuDNN is the only library; the back end that torch chooses is asked for."""
    if not torch.backends.cudnn.is_available():
        raise Absent("no cuDNN")
    on_gpu()
    chosen, pairs = None, []
    for dtype in (torch.float16, torch.bfloat16):
        x, w = randn(4, 16, 33, 35).to(dtype), randn(32, 16, 3, 3).to(dtype)
        sides = []
        for dev, kind in ((DEVICE, dtype), ("cpu", torch.float64)):
            xi, wi = (t.to(dev, kind, copy=True).requires_grad_() for t in (x, w))
            y = torch.nn.functional.conv2d(xi, wi, padding=1)
            y.sum().backward()
            sides.append((y, xi.grad, wi.grad))
        pairs += [(f"{str(dtype)[6:]} {n}", a, b) for n, a, b in zip(("forward", "input", "weight"), *sides)]
        chosen = torch._C._select_conv_backend(put(x), put(w), None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)
        if "Cudnn" not in str(chosen):
            return False, f"torch chose {chosen}"
    ok, text = within(pairs, tolerance)
    return ok, f"{chosen}; {text}"


@check("cuDNN RNN", 1e-4)
def cudnn_rnn(tolerance):
    if not torch.backends.cudnn.is_available() and not SELF:
        raise Absent("no cuDNN")
    pairs = []
    for kind in (torch.nn.LSTM, torch.nn.GRU):
        torch.manual_seed(4)
        net, x = kind(24, 32, num_layers=2, bidirectional=True).double(), randn(11, 5, 24)
        sides = []
        for dev, dtype in ((DEVICE, torch.float32), ("cpu", torch.float64)):
            net = net.to(dev, dtype)
            net.zero_grad()
            xi = x.to(dev, dtype, copy=True).requires_grad_()
            y = net(xi)[0]
            y.square().mean().backward()
            sides.append((y, xi.grad, net.weight_hh_l1.grad.clone()))
        pairs += [(f"{kind.__name__} {part}", a, b) for part, a, b in zip(("forward", "input", "weight"), *sides)]
    return within(pairs, tolerance)


@check("semi-structured sparsity", 2e-2)
def semi_structured(tolerance):
    """Two of four numbers are there; cuSPARSELt multiplies them."""
    on_gpu()
    if not torch.backends.cusparselt.is_available():
        raise Absent("no cuSPARSELt")
    torch.sparse.SparseSemiStructuredTensor._FORCE_CUTLASS = False
    a = (randn(128, 256) * torch.tensor([0.0, 0.0, 1.0, 1.0], dtype=torch.float64).repeat(64)).half()
    b = randn(256, 128).half()
    return within([("", torch.sparse.to_sparse_semi_structured(put(a)) @ put(b), a.double() @ b.double())], tolerance)


@check("cuSOLVER", 1e-9)
def solver(tolerance):
    a, b = randn(120, 120), randn(120, 5)
    spd = a @ a.T + 120 * torch.eye(120, dtype=torch.float64)
    q, r = torch.linalg.qr(put(a))
    return within(
        [
            ("svd", torch.linalg.svdvals(put(a)), torch.linalg.svdvals(a)),
            ("eigh", torch.linalg.eigvalsh(put(spd)), torch.linalg.eigvalsh(spd)),
            ("cholesky", torch.linalg.cholesky(put(spd)), torch.linalg.cholesky(spd)),
            ("solve", torch.linalg.solve(put(a), put(b)), torch.linalg.solve(a, b)),
            ("inverse", torch.linalg.inv(put(spd)), torch.linalg.inv(spd)),
            ("qr", q @ r, a),
        ],
        tolerance,
    )


def eig_pairs(a):
    """What depends neither on the order of eigenvalues nor on the phase of vectors."""
    x, y = (put(a).detach().clone().requires_grad_() for _ in "xy")
    values, vectors = torch.linalg.eig(x)
    (values**3).sum().real.backward()  # the trace of A A A
    (torch.linalg.eigvals(y) ** 2).sum().real.backward()
    label = f"{'complex' if a.is_complex() else 'real'} {'x'.join(map(str, a.shape))}"
    for name, got, want in (
        ("vectors", put(a).to(values.dtype) @ vectors, vectors * values.unsqueeze(-2)),
        ("lengths", torch.linalg.vector_norm(vectors, dim=-2), torch.ones(values.shape, dtype=torch.float64)),
        ("gradient", x.grad, 3 * (a @ a).mH),
        ("eigvals' gradient", y.grad, 2 * a.mH),
    ):
        got, want = (torch.view_as_real(t.detach().to(values.dtype)) for t in (got, want))
        yield f"{label} {name}", got, want


def complex_randn(*shape):
    return torch.complex(randn(*shape), randn(*shape))


@check("eigenvalues of general matrices", 1e-8)
def general_eigenvalues(tolerance):
    return within([p for a in (randn(5, 33, 33), complex_randn(5, 33, 33), randn(300, 300)) for p in eig_pairs(a)], tolerance)


@check("eigenvalues of large general matrices", 1e-6)
def large_eigenvalues(tolerance):
    """Up to 2,048 rows may be the CPU's work; more are the GPU's, by MAGMA or by cuSOLVER (upstream's way of 2.10), or whose the patch of 2.6.0-debian says."""
    if SELF:
        raise Absent("no GPU in a self-check")
    version, cuda = (tuple(map(int, v.split(".")[:2])) for v in (torch.__version__, torch.version.cuda))
    if not torch.cuda.has_magma and (2, 6) < version and (cuda < (12, 8) or version < (2, 10)):
        raise Absent("no MAGMA, and cuSOLVER's way asks for CUDA 12.8 and PyTorch 2.10: more than 2,048 rows raise")
    return within([p for a in (randn(2100, 2100), complex_randn(2100, 2100)) for p in eig_pairs(a)], tolerance)


@check("cuFFT", 1e-12)
def fft(tolerance):
    a, b = randn(16, 480), randn(4, 30, 77)
    real = torch.view_as_real
    return within(
        [
            ("fft", real(torch.fft.fft(put(a))), real(torch.fft.fft(a))),
            ("rfft", real(torch.fft.rfft(put(a))), real(torch.fft.rfft(a))),
            ("fftn", real(torch.fft.fftn(put(b))), real(torch.fft.fftn(b))),
            ("round trip", torch.fft.irfft(torch.fft.rfft(put(a)), n=480), a),
        ],
        tolerance,
    )


@check("cuSPARSE", 1e-12)
def sparse(tolerance):
    dense = randn(200, 150) * (torch.rand(200, 150, generator=GENERATOR) < 0.05)
    right = randn(150, 40)
    return within(
        [
            ("csr", put(dense).to_sparse_csr() @ put(right), dense @ right),
            ("coo", torch.sparse.mm(put(dense).to_sparse(), put(right)), dense @ right),
        ],
        tolerance,
    )


@check("random numbers", 0.01)
def random(tolerance):
    torch.manual_seed(7)
    a = torch.randn(1 << 20, device=DEVICE)
    u = torch.rand(1 << 20, device=DEVICE)
    torch.manual_seed(7)
    again = torch.randn(1 << 20, device=DEVICE)
    mean, std, middle = a.mean().item(), a.std().item(), u.mean().item()
    kept = torch.nn.functional.dropout(torch.ones(1 << 20, device=DEVICE), 0.25).count_nonzero().item() / (1 << 20)
    ok = torch.equal(a, again) and abs(mean) < tolerance and abs(std - 1) < tolerance and abs(middle - 0.5) < tolerance and abs(kept - 0.75) < tolerance
    return ok and 0 <= u.min().item() and u.max().item() < 1, f"mean {mean:.4f}, deviation {std:.4f}, uniform mean {middle:.4f}, dropout keeps {kept:.4f}, seed repeats: {torch.equal(a, again)}"


# -- attention ----------------------------------------------------------------------------------------------------------------------------


def attention(backend, tolerance, widths=(64, 128)):
    """One form of attention, forced, forwards and backwards, against the plain form in double precision on the CPU; bfloat16 may differ four times as much."""
    sdpa, worst = torch.nn.functional.scaled_dot_product_attention, {}
    for dtype in (torch.float16, torch.bfloat16):
        for width in widths:
            for causal in (False, True):
                numbers = [randn(2, 4, 128, width).to(dtype) for _ in range(4)]
                sides = []
                for forced, kind, dev in ((backend, dtype, DEVICE), (torch.nn.attention.SDPBackend.MATH, torch.float64, "cpu")):
                    q, k, v = (x.to(dev, kind, copy=True).requires_grad_() for x in numbers[:3])
                    with torch.nn.attention.sdpa_kernel(forced):
                        try:
                            y = sdpa(q, k, v, is_causal=causal)
                        except RuntimeError as ex:
                            if "No available kernel" in str(ex) and not worst:
                                raise Absent(f"not in this build: {str(ex).splitlines()[0]}") from None
                            raise
                        y.backward(numbers[3].to(dev, kind))
                    sides.append((y, q.grad, k.grad, v.grad))
                for part, got, want in zip(("output", "q", "k", "v"), *sides):
                    label = f"{str(dtype)[6:]} {part}"
                    worst[label] = max(worst.get(label, 0.0), difference(got, want)[1])
    ok = all(d <= tolerance * (4 if label.startswith("bfloat16") else 1) for label, d in worst.items())
    return ok, "largest differences: " + ", ".join(f"{label} {d:.1e}" for label, d in worst.items())


def on_gpu():
    if SELF:
        raise Absent("only on a GPU")


@check("attention, plain", 5e-3)
def attention_math(tolerance):
    return attention(torch.nn.attention.SDPBackend.MATH, tolerance)


@check("attention, flash", 5e-3)
def attention_flash(tolerance):
    return attention(torch.nn.attention.SDPBackend.FLASH_ATTENTION, tolerance, (64, 128, 256))


@check("attention, memory-efficient", 5e-3)
def attention_efficient(tolerance):
    on_gpu()
    return attention(torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION, tolerance, (64, 128, 256))


@check("attention, cuDNN", 5e-3)
def attention_cudnn(tolerance):
    on_gpu()
    return attention(torch.nn.attention.SDPBackend.CUDNN_ATTENTION, tolerance)


@check("transformer layer", 1e-4)
def transformer(tolerance):
    torch.manual_seed(3)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True).double().eval()
    x = randn(3, 20, 64)
    want = layer(x)
    return within([("", layer.to(DEVICE, torch.float32)(put(x, torch.float32)), want)], tolerance)


# -- training -----------------------------------------------------------------------------------------------------------------------------


def network():
    torch.manual_seed(11)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(8 * 8 * 8, 10)
    )


def data():
    return randn(64, 3, 16, 16), torch.randint(0, 10, (64,), generator=GENERATOR)


def train(net, x, y, steps):
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(steps):
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


@check("training steps", 1e-3)
def training(tolerance):
    x, y = data()
    want = train(network().double(), x, y, 10)
    got = train(network().to(DEVICE), put(x, torch.float32), put(y), 10)
    worst = max(abs(a - b) for a, b in zip(got, want))
    return worst <= tolerance and got[-1] < got[0], f"loss {got[0]:.4f} -> {got[-1]:.4f}, largest difference to the CPU {worst:.2e}"


@check("autocast", 0.5)
def autocast(tolerance):
    x, y = data()
    x, y = put(x, torch.float32), put(y)
    kind = "cpu" if SELF else "cuda"
    details, ok = [], True
    for dtype in (torch.bfloat16, torch.float16):
        net = network().to(DEVICE)
        opt = torch.optim.SGD(net.parameters(), lr=0.05)
        scaler = torch.amp.GradScaler(kind, enabled=dtype == torch.float16)
        losses, inside = [], None
        for _ in range(30):
            opt.zero_grad()
            with torch.autocast(kind, dtype=dtype):
                out = net(x)
                inside = out.dtype
                loss = torch.nn.functional.cross_entropy(out, y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            losses.append(loss.item())
        ok = ok and inside == dtype and losses[-1] < tolerance * losses[0]
        details.append(f"{str(dtype)[6:]}: loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    return ok, "; ".join(details) + " (the last is to be below the tolerance times the first)"


@check("graph capture", 1e-6)
def graph(tolerance):
    if SELF:
        raise Absent("no CUDA graphs in a self-check")
    net = network().to(DEVICE).eval()
    x, _ = data()
    static = put(x, torch.float32)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            net(static)
    torch.cuda.current_stream().wait_stream(side)
    g = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(g):
        out = net(static)
    fresh = put(randn(64, 3, 16, 16), torch.float32)
    static.copy_(fresh)
    g.replay()
    torch.cuda.synchronize()
    with torch.no_grad():
        return within([("replayed with other numbers", out, net(fresh))], tolerance)


@check("torch.compile", 1e-3)
def compiled(tolerance):
    """The compiler of torch makes kernels with triton, and a C++ compiler is needed to start them."""
    try:
        import triton  # noqa: F401
    except ImportError:
        raise Absent("no triton") from None
    on_gpu()

    def work(a, b):
        return torch.softmax((a @ b).relu() * 2 + 1, dim=-1).sum(dim=0)

    a, b = randn(300, 200), randn(200, 100)
    return within([("", torch.compile(work)(put(a, torch.float32), put(b, torch.float32)), work(a, b))], tolerance)


@check("profiler")
def profiler(_):
    on_gpu()
    if torch.profiler.ProfilerActivity.CUDA not in torch.profiler.supported_activities():
        raise Absent("the profiler of this build does not see the GPU")
    x = put(randn(512, 512), torch.float32)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]) as seen:
        (x @ x).sum().item()
    kernels = [e for e in seen.events() if e.device_type == torch.autograd.DeviceType.CUDA and e.time_range.elapsed_us() > 0]
    return len(kernels) > 1, f"{len(kernels)} events on the GPU, one is {kernels[0].name[:60] if kernels else 'none'}"


@check("streams and memory")
def streams(_):
    if SELF:
        raise Absent("no streams in a self-check")
    before = torch.cuda.memory_allocated()
    a = torch.ones(1 << 24, device=DEVICE)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(20):
        a.mul_(1.0)
    end.record()
    torch.cuda.synchronize()
    pinned = torch.empty(1 << 20).pin_memory()
    pinned.copy_(a[: 1 << 20], non_blocking=True)
    torch.cuda.synchronize()
    used = torch.cuda.memory_allocated() - before
    return pinned.sum().item() == 1 << 20 and used >= 1 << 26, f"20 passes over 64 MiB in {begin.elapsed_time(end):.2f} ms, {used >> 20} MiB allocated"


# -- the companions -----------------------------------------------------------------------------------------------------------------------


def boxes(n):
    xy = torch.rand(n, 2, generator=GENERATOR, dtype=torch.float64) * 100
    return torch.cat([xy, xy + 1 + torch.rand(n, 2, generator=GENERATOR, dtype=torch.float64) * 40], 1)


@check("torchvision.ops.nms", package="torchvision")
def nms(_):
    import torchvision

    b, s = boxes(500).float(), torch.rand(500, generator=GENERATOR)
    got, want = torchvision.ops.nms(put(b), put(s), 0.5).cpu(), torchvision.ops.nms(b, s, 0.5)
    return torch.equal(got, want), f"keeps {got.numel()} of 500, the CPU {want.numel()}; torchvision {torchvision.__version__}"


@check("torchvision.ops.roi_align", 5e-5, package="torchvision")
def roi_align(tolerance):
    import torchvision

    x, b = randn(2, 4, 40, 40), boxes(30) / 4
    rois = torch.cat([torch.randint(0, 2, (30, 1), generator=GENERATOR).double(), b], 1)
    sides = []
    for dev, dtype in ((DEVICE, torch.float32), ("cpu", torch.float64)):
        xi = x.to(dev, dtype).requires_grad_()
        y = torchvision.ops.roi_align(xi, rois.to(dev, dtype), (7, 7), sampling_ratio=2)
        y.sum().backward()
        sides.append((y, xi.grad))
    return within([(n, a, c) for n, a, c in zip(("forward", "backward"), *sides)], tolerance)


@check("torchvision.ops.deform_conv2d", 1e-4, package="torchvision")
def deform(tolerance):
    import torchvision

    x, w, o = randn(2, 4, 12, 12), randn(6, 4, 3, 3), randn(2, 18, 10, 10)
    f = torch.float32
    return within([("", torchvision.ops.deform_conv2d(put(x, f), put(o, f), put(w, f)), torchvision.ops.deform_conv2d(x, o, w))], tolerance)


@check("torchaudio.functional.rnnt_loss", 1e-4, package="torchaudio")
def rnnt(tolerance):
    import torchaudio

    logits, labels = randn(3, 20, 6, 12).float(), torch.randint(1, 12, (3, 5), generator=GENERATOR, dtype=torch.int32)
    lengths, targets = torch.full((3,), 20, dtype=torch.int32), torch.full((3,), 5, dtype=torch.int32)
    sides = []
    for dev in (DEVICE, "cpu"):
        x = logits.to(dev).requires_grad_()
        loss = torchaudio.functional.rnnt_loss(x, labels.to(dev), lengths.to(dev), targets.to(dev), blank=0)
        loss.backward()
        sides.append((loss, x.grad))
    return within([(n, a, b) for n, a, b in zip(("loss", "gradient"), *sides)], tolerance)


@check("torchaudio.functional.forced_align", 1e-5, package="torchaudio")
def align(tolerance):
    import torchaudio

    log_probs = randn(1, 50, 20).float().log_softmax(-1)
    labels = torch.randint(1, 20, (1, 12), generator=GENERATOR, dtype=torch.int32)
    got_path, got_score = torchaudio.functional.forced_align(put(log_probs), put(labels), blank=0)
    path, score = torchaudio.functional.forced_align(log_probs, labels, blank=0)
    ok, detail = within([("scores", got_score, score)], tolerance)
    return ok and torch.equal(got_path.cpu(), path), f"{detail}; paths equal: {torch.equal(got_path.cpu(), path)}; torchaudio {torchaudio.__version__}"


@check("torchaudio.functional.lfilter", 1e-4, package="torchaudio")
def lfilter(tolerance):
    import torchaudio

    x, a, b = randn(4, 4000), torch.tensor([1.0, -0.6, 0.2]).double(), torch.tensor([0.3, 0.2, 0.1]).double()
    f = torch.float32
    return within([("", torchaudio.functional.lfilter(put(x, f), put(a, f), put(b, f), clamp=False), torchaudio.functional.lfilter(x, a, b, clamp=False))], tolerance)


def run_one(name, tolerance, package, fn, packages):
    emit(start=name)
    begin = time.monotonic()
    try:
        if package and package not in packages:
            raise Absent(f"no wheel of {package} was given")
        ok, detail = fn(tolerance)
        if not SELF:
            torch.cuda.synchronize()
        state = "pass" if ok else "FAIL"
    except Absent as ex:
        state, detail = "absent", str(ex)
    except Exception as ex:  # noqa: BLE001 - whatever it is, it is the finding
        state, detail = "FAIL", f"{type(ex).__name__}: {ex}"
    emit(check=name, state=state, detail=detail, tolerance=tolerance, seconds=round(time.monotonic() - begin, 3))


def why_no_gpu():
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA"
    try:
        torch.cuda.init()
    except Exception as ex:  # noqa: BLE001
        return str(ex).splitlines()[0]
    return f"{torch.cuda.device_count()} devices"


def main():
    for name, tolerance, package, fn in CHECKS:
        run_one(name, tolerance, package, fn, PACKAGES)
    emit(done=True)


SELF = "--self-check" in sys.argv
PACKAGES = [a for a in sys.argv[1:] if not a.startswith("-")]
emit(start="import torch")
import torch  # noqa: E402

if not SELF and not torch.cuda.is_available():
    emit(no_gpu=why_no_gpu())
    sys.exit(3)
DEVICE = "cpu" if SELF else "cuda"
GENERATOR = torch.Generator().manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
main()
