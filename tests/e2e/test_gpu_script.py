#!/usr/bin/python3
"""The script that tries wheels on a GPU, on machines that have none: what it says, and with which exit status. The torch here is a stand-in."""
import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from wheelsite import venv

GPU = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpu")
SCRIPT = os.path.join(GPU, "test_wheels.py")

NO_GPU = """
__version__ = "1.0"
class version: cuda = "12.4"
class cuda:
    is_available = staticmethod(lambda: False)
    device_count = staticmethod(lambda: 0)
    @staticmethod
    def init(): raise RuntimeError("Found no NVIDIA driver on your system")
"""
DRIVER = "static int up; int cuInit(unsigned f) { up = 1; return 0; } int cuCtxGetCurrent(void **c) { if (!up) return 3; *c = &up; return 0; }"
DIES = NO_GPU.replace("lambda: False", "lambda: __import__('os').abort()")


def wheel(directory, code, requires=""):
    path = os.path.join(directory, "torch-1.0-py3-none-any.whl")
    info = "torch-1.0.dist-info"
    files = {"torch/__init__.py": code, f"{info}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: 1.0\n{requires}", f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = "".join(f"{n},sha256={base64.urlsafe_b64encode(hashlib.sha256(t.encode()).digest()).rstrip(b'=').decode()},{len(t)}\n" for n, t in files.items())
    with zipfile.ZipFile(path, "w") as z:
        for name, text in files.items():
            z.writestr(name, text)
        z.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return path


class GpuScript(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temp = tempfile.TemporaryDirectory()
        cls.dir = cls.temp.name
        venv(os.path.join(cls.dir, "venv"))  # it makes its own in Bundle

    @classmethod
    def tearDownClass(cls):
        cls.temp.cleanup()

    def run_script(self, *args):
        r = subprocess.run([sys.executable, SCRIPT, *args], capture_output=True, text=True, timeout=300)
        return r.returncode, r.stdout + r.stderr

    def test_no_gpu_is_told_and_is_no_success(self):
        out = os.path.join(self.dir, "out.json")
        status, text = self.run_script(wheel(self.dir, NO_GPU), "--no-deps", "--venv", os.path.join(self.dir, "venv"), "--json", out)
        self.assertEqual(status, 3, text)
        self.assertIn("no GPU: Found no NVIDIA driver on your system; nothing was tested", text)
        with open(out, encoding="utf-8") as f:
            document = json.load(f)
        self.assertFalse(document["ok"])
        self.assertEqual(document["status"], 3)
        self.assertEqual(document["checks"], [])

    def test_a_crash_is_a_failed_check(self):
        status, text = self.run_script(wheel(self.dir, DIES), "--no-deps", "--venv", os.path.join(self.dir, "venv"))
        self.assertEqual(status, 1, text)
        self.assertIn("FAIL    import torch", text)
        self.assertIn("ended with status -6 here", text)

    def test_a_wheel_that_does_not_install(self):
        with open(os.path.join(self.dir, "torch-2.0-py3-none-any.whl"), "wb") as f:
            f.write(b"no zip")
        status, text = self.run_script(f.name, "--no-deps", "--venv", os.path.join(self.dir, "venv"))
        self.assertEqual(status, 4, text)
        self.assertIn("the wheels do not install", text)

    def test_two_drivers_are_seen(self):
        """As in a copy of a driver's directory whose links became files."""
        with open(os.path.join(GPU, "gpu_checks.py"), encoding="utf-8") as f:
            checks = f.read()
        code = "import ctypes\ndef driver_context" + checks.split("def driver_context", 1)[1].split("@check", 1)[0]
        code += "\nctypes.CDLL('libcuda.so.1').cuInit(0) if UP else None\nprint(*one_driver())"
        first, second = (os.path.join(self.dir, n) for n in ("libcuda.so.1", "libcuda.so"))

        def seen(up=True):
            env = os.environ | {"LD_LIBRARY_PATH": self.dir}
            return subprocess.run([sys.executable, "-c", code.replace("UP", str(up))], check=True, capture_output=True, text=True, env=env).stdout

        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-Wl,-soname,libcuda.so.1", "-o", first, "-"], check=True, text=True, input=DRIVER)
        self.assertEqual(seen(), "True libcuda.so.1; there is no libcuda.so\n")
        self.assertEqual(seen(up=False), "False libcuda.so.1 has no context: (3, None)\n")
        os.symlink("libcuda.so.1", second)
        self.assertEqual(seen(), "True libcuda.so.1 and libcuda.so have one context\n")
        os.unlink(second)
        shutil.copyfile(first, second)
        self.assertIn("False libcuda.so is another driver than libcuda.so.1: (status, context) is (3, None), not (0, ", seen())

    def test_usage(self):
        for args in ([], ["/etc/hostname"], ["nothing-1.0-py3-none-any.whl"]):
            self.assertEqual(self.run_script(*args)[0], 2)


class Bundle(unittest.TestCase):
    """Wheels and all that they need, in parts: made of this machine's own packages, unpacked and run apart from them."""

    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.addCleanup(self.temp.cleanup)
        self.dir = self.temp.name
        self.out = os.path.join(self.dir, "out")

    def bundle(self, *args, root="/"):
        r = subprocess.run([sys.executable, os.path.join(GPU, "bundle.py"), "--root", root, "--out", self.out, *args], capture_output=True, text=True, timeout=600)
        return r.returncode, r.stdout + r.stderr

    def start(self):
        may = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]  # only root may change its root directory
        return subprocess.run([*may, "sh", os.path.join(self.out, "run"), os.path.join(self.dir, "work"), "--json", "/tmp/out.json"], capture_output=True, text=True, timeout=600)

    def test_it_runs_apart_from_this_machine(self):
        status, text = self.bundle("--part-size", "5000000", "--level", "0", "--package", "python3-yaml", wheel(self.dir, NO_GPU))
        self.assertEqual(status, 0, text)
        parts = sorted(n for n in os.listdir(self.out) if n.startswith("part-"))
        self.assertGreater(len(parts), 1)
        self.assertTrue(all(os.path.getsize(os.path.join(self.out, n)) <= 5000000 for n in parts))
        r = self.start()
        self.assertEqual(r.returncode, 3, r.stdout + r.stderr)
        self.assertIn("no GPU: Found no NVIDIA driver on your system; nothing was tested", r.stdout)
        with open(os.path.join(self.dir, "work/tmp/out.json"), encoding="utf-8") as f:
            self.assertEqual(json.load(f)["wheels"], {"torch": "torch-1.0-py3-none-any.whl"})
        with open("/proc/self/mounts", encoding="utf-8") as f:
            self.assertNotIn(self.dir, f.read())
        # a part that did not arrive whole
        with open(os.path.join(self.out, parts[0]), "r+b") as f:
            f.truncate(1000)
        self.assertNotEqual(self.start().returncode, 0)

    def test_the_library_that_the_root_has_chosen(self):
        """libblas.so.3 is in two packages; numpy's dependency names one, the root's link leads to the other."""
        root = os.path.join(self.dir, "root")
        packages = {name: "" for name in ("python3", "python3-venv", "python3-pip", "libc-bin", "ca-certificates")}
        packages |= {"python3-numpy": "Depends: libblas3 | libblas.so.3\n", "libblas3": "", "libopenblas0": "Provides: libblas.so.3\nDepends: libgfortran5\n", "libgfortran5": ""}
        lib = "usr/lib/x86_64-linux-gnu"
        files = {"libblas3": f"{lib}/blas/libblas.so.3", "libopenblas0": f"{lib}/openblas/libblas.so.3", "libgfortran5": f"{lib}/libgfortran.so.5"}
        for name in ("var/lib/dpkg/info", "etc/alternatives", f"{lib}/blas", f"{lib}/openblas"):
            os.makedirs(os.path.join(root, name))
        with open(os.path.join(root, "var/lib/dpkg/status"), "w", encoding="utf-8") as f:
            f.write("\n".join(f"Package: {name}\nStatus: install ok installed\nArchitecture: amd64\n{more}" for name, more in packages.items()))
        for name in packages:
            with open(os.path.join(root, f"var/lib/dpkg/info/{name}.list"), "w", encoding="utf-8") as f:
                f.write(f"/.\n/{files[name]}\n" if name in files else "/.\n")
        for file in files.values():
            with open(os.path.join(root, file), "w", encoding="utf-8"):
                pass
        os.symlink(f"/{lib}/openblas/libblas.so.3", os.path.join(root, "etc/alternatives/libblas.so.3-x86_64-linux-gnu"))
        os.symlink("/etc/alternatives/libblas.so.3-x86_64-linux-gnu", os.path.join(root, lib, "libblas.so.3"))
        status, text = self.bundle("--package", "python3-numpy", wheel(self.dir, NO_GPU), root=root)
        self.assertEqual(status, 0, text)
        packed = subprocess.run(f"cat {self.out}/part-* | tar -tJf -", shell=True, check=True, capture_output=True, text=True).stdout.split()
        for name in (f"{lib}/libblas.so.3", "etc/alternatives/libblas.so.3-x86_64-linux-gnu", *files.values()):
            self.assertIn(name, packed)

    def test_a_library_that_no_package_has(self):
        """cuDNN of a world lies in a directory of its own, with a link to each of its libraries, which it loads by their names."""
        lib = os.path.join(self.dir, "usr/lib/x86_64-linux-gnu")
        os.makedirs(os.path.join(lib, "cudnn9"))
        for name in ("libcudnn.so.9", "libcudnn_ops.so.9"):
            open(os.path.join(lib, "cudnn9", name), "w", encoding="utf-8").close()
            os.symlink(f"cudnn9/{name}", os.path.join(lib, name))
        os.symlink("libcudnn.so.9", os.path.join(lib, "libcudnn.so"))
        for name in ("libnccl.so.2", "libother.so.1"):
            open(os.path.join(lib, name), "w", encoding="utf-8").close()
        code = (f"import sys, types; sys.path.insert(0, {GPU!r}); sys.dont_write_bytecode = True; import bundle; root = types.SimpleNamespace(top={self.dir!r})\n"
                "for t in sys.argv[1:]: print(*sorted(n.removeprefix('usr/lib/x86_64-linux-gnu/') for n in bundle.unowned(root, 'usr/lib/x86_64-linux-gnu/' + t)))")
        r = subprocess.run([sys.executable, "-c", code, "cudnn9/libcudnn.so.9", "libnccl.so.2"], capture_output=True, text=True)
        self.assertEqual(r.stdout.splitlines(), ["cudnn9/libcudnn.so.9 cudnn9/libcudnn_ops.so.9 libcudnn.so libcudnn.so.9 libcudnn_ops.so.9", "libnccl.so.2"], r.stderr)

    def test_what_the_root_lacks_is_named(self):
        status, text = self.bundle(wheel(self.dir, NO_GPU, "Requires-Dist: no-such-distribution>=1\nRequires-Dist: nvidia-cublas-cu12==12.4.5.8\n"))
        self.assertNotEqual(status, 0)
        self.assertIn("a wheel requires 'no-such-distribution', and the root has no package of it", text)
        status, text = self.bundle("--package", "no-such-package", wheel(self.dir, NO_GPU))
        self.assertNotEqual(status, 0)
        self.assertIn("the root has no package 'no-such-package'", text)
        status, text = self.bundle(wheel(self.dir, NO_GPU), root=self.dir)
        self.assertNotEqual(status, 0)
        self.assertIn("is no Debian root", text)
        self.assertFalse(os.path.exists(self.out))


class SeveralGpus(unittest.TestCase):
    """The script for several GPUs, with the stand-in in Python's path."""

    def run_script(self, *args):
        with tempfile.TemporaryDirectory() as temp:
            with zipfile.ZipFile(wheel(temp, NO_GPU)) as z:
                z.extractall(temp)
            r = subprocess.run([sys.executable, os.path.join(GPU, "test_two_gpus.py"), *args], capture_output=True, text=True, timeout=300, env=os.environ | {"PYTHONPATH": temp})
        return r.returncode, r.stdout + r.stderr

    def test_no_gpu_is_told_and_is_no_success(self):
        self.assertEqual(self.run_script(), (3, "0 GPUs here, not 2\n"))

    def test_a_process_that_dies_is_a_failure(self):
        status, text = self.run_script("--self-check", "--mib", "1")  # the stand-in has no torch.distributed
        self.assertEqual(status, 1, text)
        self.assertIn("FAIL    process 0 failed", text)

    def test_usage(self):
        for args in (["--gpus", "1"], ["--limit", "0"], ["--limit", "soon"], ["wheel"]):
            self.assertEqual(self.run_script(*args)[0], 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
