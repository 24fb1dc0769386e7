"""Does this torch work, and is it the one that was asked for? References are numpy's."""

import glob
import itertools
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_config  # noqa: E402
from check_common import aside, attempt, check, close, done, expected, inside  # noqa: E402

# Threads that wait sleep: the checks run beside each other and beside the check of the contents. Read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np  # noqa: E402
import torch  # noqa: E402

want = expected()
rng = np.random.default_rng(1)
torch.manual_seed(1)

check("installed", *inside(torch, sys.prefix))
check("version", torch.__version__ == want["version"], torch.__version__)

config = torch.__config__.show()
if want.get("blas_info"):
    found = re.search(r"BLAS_INFO=(\w+)", config)
    check("blas", found and found.group(1) == want["blas_info"], found.group(0) if found else "no BLAS_INFO")
flags = re.search(r"CXX_FLAGS=([^,\n]*)", config)
flags = flags.group(1).split() if flags else []
missing = [f for f in want["cpu_flags"] if f not in flags]
check("cpu flags", not missing, f"missing {missing}" if missing else " ".join(want["cpu_flags"]))
said = check_config.read(os.path.dirname(torch.__file__), config)
asked = {name: value for name, value in want.get("settings", {}).items() if name in said.options}
wrong = said.differences(asked)
unknown = f", not understood: {'; '.join(said.unknown)[:300]}" if said.unknown else ""
check("settings", not wrong, "; ".join(wrong) if wrong else f"{len(asked)} options as asked for{unknown}")
alone = "OFF" not in [value for value, _ in said.options.get("CAFFE2_LINK_LOCAL_PROTOBUF", ())]
check("cmake package", alone, "asks for no protobuf" if alone else "find_package(Torch) asks for protobuf, which is inside the wheel")
# Those of other projects that torch's own headers include: extensions need the first, torch.compile's vector code the second.
lacking = [h for h in ("pybind11/pybind11.h", "sleef.h") if not os.path.exists(os.path.join(os.path.dirname(torch.__file__), "include", h))]
check("headers", not lacking, f"no {' and no '.join(lacking)}" if lacking else "pybind11's and sleef's")
check("no build path", "/ptbuild" not in config, "in torch.__config__")
check("cuda", (torch.version.cuda is not None) == bool(want["cuda"]), torch.version.cuda)
if want.get("gpu"):
    asked = {g.replace(".", "").replace("+PTX", "") for g in want["gpu"]}
    asked = {f"sm_{g}" for g in asked} | {f"compute_{g.replace('.', '').replace('+PTX', '')}" for g in want["gpu"] if "+PTX" in g}
    built = set(torch._C._cuda_getArchFlags().split())  # torch.cuda.get_arch_list is empty on a machine without a GPU
    check("gpu targets", built == asked, " ".join(sorted(built)))
if "mkldnn" in want:
    check("mkldnn", torch.backends.mkldnn.is_available() == want["mkldnn"], torch.backends.mkldnn.is_available())
check("lapack", torch._C.has_lapack, "")
engines = torch.backends.quantized.supported_engines
features = {
    "kineto": torch.profiler.kineto_available(),
    "distributed": torch.distributed.is_available(),
    "gloo": torch.distributed.is_available() and torch.distributed.is_gloo_available(),
    "tensorpipe": torch.distributed.is_available() and torch.distributed.rpc.is_available(),
    "qnnpack": "qnnpack" in engines,
}
for name, there in features.items():
    if name in want:
        check(name, there == want[name], there)


def matmul(dtype, tolerance):
    a, b = rng.standard_normal((173, 211)), rng.standard_normal((211, 97))
    return close((torch.tensor(a, dtype=dtype) @ torch.tensor(b, dtype=dtype)).double(), a @ b, tolerance)


def svd():
    a = rng.standard_normal((60, 40))
    return close(torch.linalg.svd(torch.tensor(a)).S, np.linalg.svd(a, compute_uv=False), 1e-12)


def solve():
    a, b = rng.standard_normal((50, 50)), rng.standard_normal((50, 3))
    return close(torch.linalg.solve(torch.tensor(a), torch.tensor(b)), np.linalg.solve(a, b), 1e-9)


def conv2d():
    x, w = rng.standard_normal((2, 3, 12, 13)), rng.standard_normal((4, 3, 3, 3))
    ref = np.zeros((2, 4, 10, 11))
    for i in range(3):
        for j in range(3):
            ref += np.einsum("nchw,oc->nohw", x[:, :, i : i + 10, j : j + 11], w[:, :, i, j])
    got = torch.nn.functional.conv2d(torch.tensor(x, dtype=torch.float32), torch.tensor(w, dtype=torch.float32))
    return close(got, ref, 1e-5)


def transforms(dtype):
    """Powers of two and others, one line and many, whose elements lie apart, of real numbers and of complex ones."""
    for shape in ((480,), (2,), (1024,), (5, 64), (3, 48), (40, 512)):
        for a in views(random(dtype, *shape)):
            yield torch.fft.fft(a), np.fft.fft(wide(a))
            yield torch.fft.ifft(a, dim=0), np.fft.ifft(wide(a), axis=0)
            yield torch.fft.fftn(a), np.fft.fftn(wide(a))
            if not dtype.is_complex:
                yield torch.fft.rfft(a), np.fft.rfft(wide(a))
                yield torch.fft.irfft(torch.fft.rfft(a), n=shape[-1]), wide(a)


def autograd():
    x, y = rng.standard_normal((64, 5)), rng.standard_normal((64, 1))
    w = torch.zeros(5, 1, dtype=torch.float64, requires_grad=True)
    loss = ((torch.tensor(x) @ w - torch.tensor(y)) ** 2).mean()
    loss.backward()
    return close(w.grad, -2.0 * x.T @ y / 64, 1e-12)


def train():
    x = torch.tensor(rng.standard_normal((256, 8)), dtype=torch.float32)
    y = x.sum(1, keepdim=True)
    net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    losses = []
    for _ in range(200):
        opt.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses[-1] < losses[0] / 20, f"loss {losses[0]:.3f} -> {losses[-1]:.4f}"


def script():
    @torch.jit.script
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * 2 + 1

    a = rng.standard_normal(100)
    return close(f(torch.tensor(a)), np.maximum(a, 0) * 2 + 1, 1e-15)


def vectorized():
    a = rng.standard_normal(10007)
    t = torch.tensor(a, dtype=torch.float32)
    return close(torch.sin(t) + torch.exp(t) + torch.erf(t).abs().sqrt(), np.sin(a) + np.exp(a) + np.sqrt(np.abs(np.vectorize(__import__("math").erf)(a))), 1e-5)

# What ATen calls of BLAS and LAPACK, without the letter of the type, and the check below that goes through it.
ROUTINES = {
    "dot": "dot", "dotc": "dot", "dotu": "dot", "dotc_sub": "dot", "dotu_sub": "dot", "gemv": "gemv", "gemm": "gemm", "trsm": "triangular", "scal": "gemv", "axpy": "sparse", "copy": "sparse",
    "geev": "eigenvalues", "heevd": "eigenvalues", "syevd": "eigenvalues", "sytrd": "eigenvalues", "stedc": "eigenvalues", "laed1": "eigenvalues", "ormtr": "eigenvalues", "gels": "least squares", "gelsd": "least squares", "gelss": "least squares", "gelsy": "least squares",
    "geqrf": "orthogonal", "orgqr": "orthogonal", "ungqr": "orthogonal", "ormqr": "orthogonal", "unmqr": "orthogonal", "gesdd": "singular values", "getrf": "lu", "getrs": "lu",
    "potrf": "cholesky", "potrs": "cholesky", "potri": "cholesky", "sytrf": "ldl", "sytrs": "ldl", "hetrf": "ldl", "hetrs": "ldl",
    "gemm_batch": "gemm", "gemm_batch_strided": "gemm", "sbgemm": "gemm", "sbgemv": "gemv", "shgemm": "gemm",
}
TYPES = {torch.float32: 5e-5, torch.float64: 1e-12, torch.complex64: 5e-5, torch.complex128: 1e-12}


def routines(path):
    """The BLAS and LAPACK routines among the undefined symbols of an ELF library."""
    data = open(path, "rb").read()
    sections, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, sections + i * size) for i in range(count)]
    found = set()
    for h in headers:
        if h[1] != 11:  # SHT_DYNSYM
            continue
        names = headers[h[6]][4]
        for at in range(h[4], h[4] + h[5], 24):
            name, _, _, section = struct.unpack_from("<IBBH", data, at)
            if section != 0:
                continue
            text = data[names + name : data.index(b"\0", names + name)].decode()
            m = re.fullmatch(r"(?:cblas_)?[sdcz]([a-z0-9]+(?:_sub|_batch|_batch_strided)?)_?", text)
            if m and (text.startswith("cblas_") or text.endswith("_")):
                found.add(m.group(1) if m.group(1) in ROUTINES else re.sub(r"^cblas_|_$", "", text))
    return found


def random(dtype, *shape):
    a = rng.standard_normal(shape)
    if dtype.is_complex:
        a = a + 1j * rng.standard_normal(shape)
    return torch.tensor(a).to(dtype)


def error(got, ref):
    """Largest difference relative to the largest wanted value; numpy computes the reference in double precision."""
    got, ref = np.asarray(got.resolve_conj().resolve_neg()).astype(np.complex128), np.asarray(ref).astype(np.complex128)
    if got.shape != ref.shape:
        raise ValueError(f"shape {got.shape} instead of {ref.shape}")
    return float(np.max(np.abs(got - ref), initial=0.0)) / (float(np.max(np.abs(ref), initial=0.0)) or 1.0)


def wide(t):
    return np.asarray(t.resolve_conj().resolve_neg()).astype(np.complex128 if t.is_complex() else np.float64)


def views(t):
    """The same shape in other layouts: strided, transposed in memory, conjugated."""
    yield t
    yield torch.stack([t, t * 0], -1)[..., 0]
    if t.dim() >= 2:
        yield t.mT.contiguous().mT
    if t.is_complex():
        yield t.conj()
    yield -t


def dot(dtype):
    for n in (0, 1, 2, 257):
        for a in views(random(dtype, n)):
            for b in views(random(dtype, n)):
                yield torch.dot(a, b), np.dot(wide(a), wide(b))
                yield torch.vdot(a, b), np.vdot(wide(a), wide(b))


def gemv(dtype):
    for m, n in ((1, 1), (3, 0), (37, 21), (130, 257)):
        for a in views(random(dtype, m, n)):
            x, y = random(dtype, n), random(dtype, m)
            yield torch.mv(a, x), wide(a) @ wide(x)
            yield torch.addmv(y, a, x, beta=0.5, alpha=2), 0.5 * wide(y) + 2 * (wide(a) @ wide(x))
            yield torch.mv(a.mH, y), wide(a).conj().T @ wide(y)


def gemm(dtype):
    for m, k, n in ((1, 1, 1), (2, 0, 3), (33, 21, 17)):
        for a in views(random(dtype, m, k)):
            for b in views(random(dtype, k, n)):
                yield a @ b, wide(a) @ wide(b)
    a, b, c = random(dtype, 70, 90), random(dtype, 90, 50), random(dtype, 70, 50)
    yield torch.addmm(c, a, b, beta=0.25, alpha=3), 0.25 * wide(c) + 3 * (wide(a) @ wide(b))
    yield a.mH @ c, wide(a).conj().T @ wide(c)
    # Large enough for what takes the place of the BLAS there.
    for a in views(random(dtype, 130, 96)):
        b, c = random(dtype, 96, 129), random(dtype, 130, 129)
        yield torch.addmm(c, a, b, beta=0.5, alpha=2), 0.5 * wide(c) + 2 * (wide(a) @ wide(b))
    for batch, m, k, n in ((7, 9, 11, 5), (300, 6, 12, 7), (2, 130, 96, 129)):
        for a in views(random(dtype, batch, m, k)):
            b, c = random(dtype, batch, k, n), random(dtype, batch, m, n)
            yield torch.bmm(a, b), wide(a) @ wide(b)
            yield torch.bmm(a, b[:1].expand(batch, k, n)), wide(a) @ wide(b[:1])
            yield torch.baddbmm(c, a, b, beta=0.5, alpha=2), 0.5 * wide(c) + 2 * (wide(a) @ wide(b))


def triangular(dtype):
    for n, columns, upper, unit in itertools.product((20, 70), (4, 45), (False, True), (False, True)):
        a = random(dtype, n, n) + n * torch.eye(n, dtype=dtype)
        b = random(dtype, n, columns)
        t = torch.triu(a) if upper else torch.tril(a)
        if unit:
            t = t / n
            t = t - torch.diag(torch.diagonal(t)) + torch.eye(n, dtype=dtype)
        yield torch.linalg.solve_triangular(t, b, upper=upper, unitriangular=unit), np.linalg.solve(wide(t), wide(b))
        yield torch.linalg.solve_triangular(t, b.mT, upper=upper, left=False, unitriangular=unit), np.linalg.solve(wide(t).T, wide(b)).T


def sparse(dtype):
    a, b = random(dtype, 30, 40), random(dtype, 40, 6)
    a[a.abs() < 1] = 0
    yield torch.sparse.mm(a.to_sparse(), b), wide(a) @ wide(b)
    yield torch.sparse.mm(a.to_sparse_csr(), b), wide(a) @ wide(b)


def eigenvalues(dtype):
    a = random(dtype, 24, 24)
    w, v = torch.linalg.eig(a)
    yield a.to(v.dtype) @ v, wide(v) * wide(w)
    h = a + a.mH
    w, v = torch.linalg.eigh(h)
    yield w, np.linalg.eigvalsh(wide(h))
    yield h @ v, wide(v) * wide(w)
    # Large enough for parts on several threads: equal values, parts that nothing joins, very large and very small ones.
    n = 270
    h = random(dtype, n, n)
    h = h + h.mH
    apart = torch.block_diag(h[:90, :90], h[90:, 90:])
    flat = 3 * torch.eye(n, dtype=dtype)
    flat[:2, :2] = 1
    many = [(a, np.linalg.eigvalsh(wide(a))) for a in (h, apart, flat, h * 1e-12, h * 1e30, 0 * h)]
    before = torch.get_num_threads()
    try:
        for count in (2, 4):
            torch.set_num_threads(count)
            for (a, values), part in itertools.product(many, ("L", "U")):
                w, v = torch.linalg.eigh(a, UPLO=part)
                yield w, values
                yield a @ v, wide(v) * wide(w)
                yield v.mH @ v, np.eye(n)
    finally:
        torch.set_num_threads(before)


def least_squares(dtype):
    a, b = random(dtype, 31, 9), random(dtype, 31, 3)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        yield torch.linalg.lstsq(a, b, driver=driver).solution, np.linalg.lstsq(wide(a), wide(b), rcond=None)[0]


def orthogonal(dtype):
    a, c = random(dtype, 26, 14), random(dtype, 26, 5)
    q, r = torch.linalg.qr(a)
    yield q @ r, wide(a)
    yield q.mH @ q, np.eye(14)
    h, tau = torch.geqrf(a)
    yield torch.linalg.householder_product(h, tau), wide(q)
    full = torch.linalg.qr(a, mode="complete").Q
    yield torch.ormqr(h, tau, c), wide(full) @ wide(c)


def singular_values(dtype):
    a = random(dtype, 19, 28)
    u, s, v = torch.linalg.svd(a, full_matrices=False)
    yield s, np.linalg.svd(wide(a), compute_uv=False)
    yield (u * s) @ v, wide(a)


def lu(dtype):
    for n, columns in ((230, 40), (25, 4)):
        a, b = random(dtype, n, n) / n**0.5 + torch.eye(n, dtype=dtype), random(dtype, n, columns)
        factors, pivots = torch.linalg.lu_factor(a)
        want_x = np.linalg.solve(wide(a), wide(b))
        yield torch.linalg.lu_solve(factors, pivots, b), want_x
        yield torch.linalg.lu_solve(factors, pivots, b, adjoint=True), np.linalg.solve(wide(a).conj().T, wide(b))
        yield torch.linalg.solve(a, b), want_x
    yield torch.linalg.inv(a) @ b, want_x
    yield torch.linalg.det(a), np.linalg.det(wide(a))


def cholesky(dtype):
    a, b = random(dtype, 22, 22), random(dtype, 22, 3)
    a = a @ a.mH + 22 * torch.eye(22, dtype=dtype)
    lower = torch.linalg.cholesky(a)
    yield lower, np.linalg.cholesky(wide(a))
    yield torch.cholesky_solve(b, lower), np.linalg.solve(wide(a), wide(b))
    yield torch.cholesky_inverse(lower), np.linalg.inv(wide(a))


def ldl(dtype):
    for hermitian in (False, True):
        a, b = random(dtype, 18, 18), random(dtype, 18, 3)
        a = a + (a.mH if hermitian else a.mT)
        factors, pivots = torch.linalg.ldl_factor(a, hermitian=hermitian)
        yield torch.linalg.ldl_solve(factors, pivots, b, hermitian=hermitian), np.linalg.solve(wide(a), wide(b))


def of_types(cases, types=TYPES):
    def run():
        worst, count = 0.0, 0
        for dtype in types:
            for got, ref in cases(dtype):
                e = error(got, ref)
                count += 1
                if not e <= TYPES[dtype]:
                    return False, f"{dtype}: case {count} has relative error {e:.1e}, allowed {TYPES[dtype]:.0e}"
                worst = max(worst, e / TYPES[dtype])
        return True, f"{count} cases in {', '.join(str(t).removeprefix('torch.') for t in types)}, at most {worst:.0%} of the allowed error"

    return run


def types_aside(cases):
    """The same with a process for each type, begun at once."""
    begun = [aside(of_types(cases, [dtype])) for dtype in TYPES]

    def run():
        said = [wait() for wait in begun]
        failed = [detail for ok, detail in said if not ok]
        return not failed, "; ".join(failed or [detail for _, detail in said])

    return run


def by_index():
    """Sums into rows: some hit often, some never; too few numbers for threads, and enough."""
    for n, rows, width in ((7, 3, 5), (900, 40, 48), (3000, 5000, 17)):
        index = rng.integers(0, rows, n)
        source, start = rng.standard_normal((n, width)), rng.standard_normal((rows, width))
        want_sum, want_most = start.copy(), start.copy()
        np.add.at(want_sum, index, source)
        np.maximum.at(want_most, index, source)
        i, x, t = torch.tensor(index), torch.tensor(source), torch.tensor(start)
        wide_index = i[:, None].expand(n, width)
        made = (t.index_add(0, i, x), t.scatter_add(0, wide_index, x), t.index_put((i,), x, accumulate=True), t.index_put((i - rows,), x, accumulate=True))
        for got, ref in (*((m, want_sum) for m in made), (t.scatter_reduce(0, wide_index, x, "amax"), want_most)):
            good, said = close(got, ref, 1e-12)
            if not good:
                return good, said
    try:
        torch.zeros(5, 4).repeat(1, 9000).index_put_((torch.tensor([5]),), torch.ones(1, 36000), accumulate=True)
    except IndexError:
        return True, "three sizes, five ways"
    return False, "an index beyond the rows was taken"


LINALG = {
    "dot": dot, "gemv": gemv, "gemm": gemm, "triangular": triangular, "sparse": sparse, "eigenvalues": eigenvalues, "least squares": least_squares, "orthogonal": orthogonal,
    "singular values": singular_values, "lu": lu, "cholesky": cholesky, "ldl": ldl,
}


def all_routines():
    """Every routine that the library takes from elsewhere has a check; one without a BLAS of its own (a static one) has none to look at."""
    found = set().union(*(routines(p) for p in glob.glob(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so*"))))
    unknown = sorted(r for r in found if ROUTINES.get(r) not in LINALG)
    return not unknown, f"no check for {' '.join(unknown)}" if unknown else f"{len(found)} routines"


def threads():
    """How many threads did work while a matrix product ran, for 1, 2 and 4 threads: a BLAS with threads of its own does not listen to set_num_threads."""
    def ticks():
        now = {}
        for task in glob.glob("/proc/self/task/*/stat"):
            try:
                fields = open(task).read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            now[task] = int(fields[11]) + int(fields[12])
        return now

    a, before, seen = torch.randn(700, 700), torch.get_num_threads(), []
    try:
        for n in (1, 2, 4):
            torch.set_num_threads(n)
            a @ a
            start = ticks()
            for _ in range(20):
                torch.linalg.solve(a, a @ a)
            seen.append((n, sum(t > start.get(task, 0) for task, t in ticks().items())))
    finally:
        torch.set_num_threads(before)
    return all(worked <= n for n, worked in seen), ", ".join(f"{worked} worked of {n}" for n, worked in seen)


TWO = """
import sys, torch, torch.distributed as dist
rank, store = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
torch.manual_seed(7)
net, x, y = torch.nn.Linear(6, 3).double(), torch.randn(8, 6).double(), torch.randn(8, 3).double()
alone = torch.nn.Linear(6, 3).double()
alone.load_state_dict(net.state_dict())
both = torch.nn.parallel.DistributedDataParallel(net)
for model, part in ((both, slice(rank, None, 2)), (alone, slice(None))):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x[part]), y[part]).backward()
        optimizer.step()
t = torch.full((3,), float(rank + 1))
dist.all_reduce(t)
assert t.tolist() == [3.0] * 3, t
print(max(float((a - b).abs().max()) for a, b in zip(net.parameters(), alone.parameters())))
dist.destroy_process_group()
"""


def tcp_store():
    """What init_process_group over env:// and tcp:// begins with, torchrun too."""
    store = torch.distributed.TCPStore("127.0.0.1", 0, 1, True)
    store.set("a", "b")
    return store.get("a") == b"b", f"libuv {store.libuvBackend}"


def two_processes():
    """Training over two processes gives the numbers of one."""
    with tempfile.TemporaryDirectory() as d:
        env = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        ran = [subprocess.Popen([sys.executable, "-c", TWO, str(r), d + "/store"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) for r in (0, 1)]
        out = [p.communicate(timeout=120) for p in ran]
    for p, (_, said) in zip(ran, out):
        if p.returncode != 0:
            return False, said.strip().splitlines()[-1] if said.strip() else f"status {p.returncode}"
    worst = max(float(o.split()[-1]) for o, _ in out)
    return worst < 1e-12, f"all_reduce and 20 steps of two processes, {worst:.1e} from one process"


def quantized(engine):
    def run():
        before = torch.backends.quantized.engine
        torch.backends.quantized.engine = engine
        try:
            w, x, b = rng.standard_normal((7, 16)), rng.standard_normal((5, 16)), rng.standard_normal(7)
            qw = torch.quantize_per_tensor(torch.tensor(w, dtype=torch.float32), 0.02, 0, torch.qint8)
            qx = torch.quantize_per_tensor(torch.tensor(x, dtype=torch.float32), 0.03, 100, torch.quint8)
            packed = torch.ops.quantized.linear_prepack(qw, torch.tensor(b, dtype=torch.float32))
            got = torch.ops.quantized.linear(qx, packed, 0.1, 128).dequantize()
            ref = np.asarray(qx.dequantize()) @ np.asarray(qw.dequantize()).T + b
            ref = np.clip(np.round(ref / 0.1) + 128, 0, 255)
            worst = float(np.max(np.abs(np.asarray(got) / 0.1 + 128 - ref)))
            return worst <= 1.01, f"{worst:.0f} steps of 0.1 from the reference"
        finally:
            torch.backends.quantized.engine = before

    return run


def xnnpack():
    x, w, b = torch.randn(2, 4, 9, 9), torch.randn(6, 4, 3, 3), torch.randn(6)
    packed = torch.ops.prepacked.conv2d_clamp_prepack(w, b, [1, 1], [0, 0], [1, 1], 1, None, None)
    return close(torch.ops.prepacked.conv2d_clamp_run(x, packed), torch.nn.functional.conv2d(x, w, b), 1e-5)


def profiler():
    with torch.profiler.profile() as p:
        torch.mm(torch.randn(50, 50), torch.randn(50, 50))
    with tempfile.TemporaryDirectory() as d:
        p.export_chrome_trace(d + "/trace.json")
        names = {e.get("name") for e in __import__("json").load(open(d + "/trace.json"))["traceEvents"]}
    return "aten::mm" in names, f"{len(names)} names in the trace"


# The longest, beside the others: begun before anything here has threads, which a fork would lose.
LINALG_RUN = {name: (types_aside if cases is eigenvalues else of_types)(cases) for name, cases in LINALG.items()}
both_processes = aside(two_processes) if want.get("gloo") else None

attempt("matmul float32", lambda: matmul(torch.float32, 1e-5))
attempt("matmul float64", lambda: matmul(torch.float64, 1e-13))
attempt("matmul bfloat16", lambda: matmul(torch.bfloat16, 2e-2))
attempt("svd", svd)
attempt("solve", solve)
attempt("conv2d", conv2d)
attempt("fft", of_types(transforms))
attempt("sums by index", by_index)
attempt("autograd", autograd)
attempt("training step", train)
attempt("torchscript", script)
attempt("vectorized", vectorized)
attempt("routines", all_routines)
for name, run in LINALG_RUN.items():
    attempt(name, run)
if want.get("openmp"):
    attempt("threads", threads)
for engine in engines:
    if engine not in ("none", "fbgemm"):
        attempt(f"quantized linear, {engine}", quantized(engine))
if want.get("xnnpack"):
    attempt("xnnpack", xnnpack)
if want.get("kineto"):
    attempt("profiler", profiler)
if want.get("gloo"):
    attempt("tcp store", tcp_store)
    attempt("two processes", both_processes)
done()
