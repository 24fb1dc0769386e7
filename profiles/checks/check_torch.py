"""Does this torch work, and is it the one that was asked for? References are numpy's."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_common import attempt, check, close, done, expected, inside  # noqa: E402

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


def fft():
    a = rng.standard_normal(480)
    return close(torch.view_as_real(torch.fft.fft(torch.tensor(a))), np.stack([np.fft.fft(a).real, np.fft.fft(a).imag], -1), 1e-12)


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


attempt("matmul float32", lambda: matmul(torch.float32, 1e-5))
attempt("matmul float64", lambda: matmul(torch.float64, 1e-13))
attempt("matmul bfloat16", lambda: matmul(torch.bfloat16, 2e-2))
attempt("svd", svd)
attempt("solve", solve)
attempt("conv2d", conv2d)
attempt("fft", fft)
attempt("autograd", autograd)
attempt("training step", train)
attempt("torchscript", script)
attempt("vectorized", vectorized)
done()
