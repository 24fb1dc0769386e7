"""Does this extension load with the torch it was built against? What it computes, its author's tests say."""

import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_common import attempt, check, done, expected, is_version  # noqa: E402

import torch  # noqa: E402

want = expected()
dist = importlib.metadata.distribution(want["distribution"])
files = [str(f) for f in dist.files or []]
own = {f.split("/")[0].split(".")[0] for f in files}

check("version", dist.version == want["version"], dist.version)
check("torch", *is_version(torch, want))


def load(file):
    """As a module where it is one, else as a library that registers operators. By its whole name: under another one Python initializes it again when its package imports it, and its types are registered twice."""
    path = str(dist.locate_file(file))
    ends = [e for e in importlib.machinery.EXTENSION_SUFFIXES if file.endswith(e)]
    name = file[: -len(ends[0])].replace("/", ".") if ends else ""
    try:
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    except ImportError as ex:
        if name and "module export function" not in str(ex):
            raise
        torch.ops.load_library(path)
        return True, "registers operators"
    return True, "a module"


def brings(name):
    """What else it imports is of other packages, which need not be here."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as ex:
        other = (ex.name or "").split(".")[0]
        return other not in own and other != "torch", f"imports {ex.name}, which is not here"
    return True, "imported"


for file in files:
    if file.endswith(".so") and not file.split("/")[0].endswith(".libs"):
        attempt(f"loads {file}", lambda f=file: load(f))
for name in sorted(n for n in own if f"{n}/__init__.py" in files or f"{n}.py" in files):
    attempt(f"import {name}", lambda n=name: brings(n))
done()
