"""What every runtime check shares: a line of JSON per check on standard output, and the last line that says all ran."""

import importlib.metadata
import json
import os
import sys

_failed = 0
_count = 0


def expected():
    """The plan's side, as JSON in the first argument."""
    return json.loads(sys.argv[1])


def check(name, ok, detail=""):
    global _failed, _count
    _count += 1
    if not ok:
        _failed += 1
    print(json.dumps({"check": name, "ok": bool(ok), "detail": str(detail)}), flush=True)


def attempt(name, fn):
    """Runs fn, which returns (ok, detail); an exception is a failed check, not the end of the others."""
    try:
        ok, detail = fn()
    except Exception as ex:  # noqa: BLE001 - whatever it is, it is the finding
        ok, detail = False, f"{type(ex).__name__}: {ex}"
    check(name, ok, detail)


def aside(fn):
    """Begins fn in a process of its own; what this returns waits for its (ok, detail)."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            ok, detail = fn()
        except Exception as ex:  # noqa: BLE001 - as in attempt
            ok, detail = False, f"{type(ex).__name__}: {ex}"
        with os.fdopen(write, "w") as f:
            json.dump([bool(ok), str(detail)], f)
        os._exit(0)
    os.close(write)

    def wait():
        with os.fdopen(read) as f:
            said = f.read()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return json.loads(said) if status == 0 else (False, f"its process ended with status {status}")

    return wait


def close(got, want, tolerance):
    """Largest difference, relative to the largest wanted value."""
    import numpy as np

    got, want = np.asarray(got, dtype=np.float64), np.asarray(want, dtype=np.float64)
    if got.shape != want.shape:
        return False, f"shape {got.shape} instead of {want.shape}"
    scale = float(np.max(np.abs(want))) or 1.0
    error = float(np.max(np.abs(got - want))) / scale
    return bool(error <= tolerance), f"relative error {error:.1e}, allowed {tolerance:.0e}"


def inside(module, prefix):
    return module.__file__.startswith(prefix + "/"), module.__file__


def is_version(torch, want):
    """Whether it is the torch of this plan. pip goes by the version of the installed package; __version__ may say more:
    the official wheel of 2.6.0 has 2.6.0+cu124. That label is not asked for, so its CUDA is compared: a companion with
    code for GPUs links that toolkit's libraries. One without runs beside a torch for any."""
    installed, said = importlib.metadata.version("torch"), torch.__version__
    whole = want["torch"].startswith(f"{said}.") and "+" in said  # one that was cut still says what it was
    ok = installed == want["torch"] and (whole or want["torch"] in (said, said.split("+")[0]))
    if not want["cuda"]:
        return ok, said
    cuda = torch.version.cuda
    same = cuda is not None and cuda.split(".")[:2] == want["cuda"].split(".")[:2]
    return ok and same, said if same else f"{said} for {f'CUDA {cuda}' if cuda else 'the CPU'}, not CUDA {want['cuda']}"


def done():
    print(json.dumps({"done": True, "checks": _count, "failed": _failed}), flush=True)
    sys.exit(1 if _failed else 0)
