"""The quickest build that still leaves everything a step of ptbuild looks at: a compiled module, compile commands, a wheel. The compiler has been run before."""

import base64
import hashlib
import json
import os
import sys
import zipfile

out = sys.argv[sys.argv.index("--dist-dir") + 1]
version = os.environ["PYTORCH_BUILD_VERSION"]
tag = "cp%d%d" % sys.version_info[:2]
info = f"torch-{version}.dist-info"
os.makedirs("build/lib/torch", exist_ok=True)

# What a real build does: objects, one after the other, each seen by the next run.
for n in range(1, 9):
    path = f"build/unit{n}.o"
    if not os.path.exists(path):
        with open(path + ".part", "wb") as f:
            f.write(hashlib.sha512(b"%d" % n).digest() * 64)
        os.rename(path + ".part", path)
    print(f"[{n}/8] unit{n}.o", flush=True)
command = f"gcc {os.environ.get('CFLAGS', '')} -c module.c -o module.o"
with open("build/compile_commands.json", "w") as f:
    json.dump([{"directory": os.getcwd(), "file": "module.c", "command": command}], f)

files = {"torch/__init__.py": open("__init__.py", "rb").read(), "torch/_C.so": open("module.so", "rb").read()}
for n in range(1, 9):
    files[f"torch/data/unit{n}.bin"] = open(f"build/unit{n}.o", "rb").read()
files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\nRequires-Dist: typing-extensions\n".encode()
files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tiny\nRoot-Is-Purelib: false\nTag: {tag}-{tag}-linux_x86_64\n".encode()
record = "".join(
    "%s,sha256=%s,%d\n" % (n, base64.urlsafe_b64encode(hashlib.sha256(d).digest()).rstrip(b"=").decode(), len(d)) for n, d in files.items()
)
files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
with zipfile.ZipFile(f"{out}/torch-{version}-{tag}-{tag}-linux_x86_64.whl", "w") as z:
    for name, data in files.items():
        entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
        z.writestr(entry, data)
