#!/usr/bin/python3
"""The script that tries wheels on a GPU, on machines that have none: what it says, and with which exit status. The torch here is a stand-in."""
import base64
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpu", "test_wheels.py")

NO_GPU = """
__version__ = "1.0"
class version: cuda = "12.4"
class cuda:
    is_available = staticmethod(lambda: False)
    device_count = staticmethod(lambda: 0)
    @staticmethod
    def init(): raise RuntimeError("Found no NVIDIA driver on your system")
"""
DIES = NO_GPU.replace("lambda: False", "lambda: __import__('os').abort()")


def wheel(directory, code):
    path = os.path.join(directory, "torch-1.0-py3-none-any.whl")
    info = "torch-1.0.dist-info"
    files = {"torch/__init__.py": code, f"{info}/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 1.0\n", f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
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

    def test_usage(self):
        for args in ([], ["/etc/hostname"], ["nothing-1.0-py3-none-any.whl"]):
            self.assertEqual(self.run_script(*args)[0], 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
