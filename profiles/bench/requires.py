"""Which distributions a wheel pins that there are none of: a line NAME==VERSION or NAME[EXTRA,...]==VERSION each.

usage: requires.py {"requires": [lines of its metadata], "extras": [those asked for], "have": {name: version}}

The root's Python has its own beside those. Wheels of the index bring their CUDA libraries so, and torch does not
import without them. What a wheel asks for without a version is the root's business, and so is what no workload uses. A part of an extra is often pinned as
"13.1.0.3.*", the version without more; a range as "2.*" of other requirements is no pin.
"""
import importlib.metadata as metadata
import json
import sys

from pip._vendor.packaging.requirements import Requirement

UNUSED = {"triton"}  # only torch.compile asks for it, and it is among the largest


def there(name, have):
    try:
        return have.get(name.lower().replace("-", "_").replace(".", "_")) or metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def main():
    asked = json.loads(sys.argv[1])
    extras = asked["extras"]
    for text in asked["requires"]:
        need = Requirement(" ".join(text.split()))
        pins = [s.version for s in need.specifier if s.operator == "==" and (extras or not s.version.endswith(".*"))]
        holds = not need.marker or any(need.marker.evaluate({"extra": x}) for x in extras or [""])
        pin = pins[0].removesuffix(".*") if pins else None
        if pin and holds and need.name.lower() not in UNUSED and there(need.name, asked["have"]) != pin:
            print(f"{need.name}{'[' + ','.join(sorted(need.extras)) + ']' if need.extras else ''}=={pin}")


main()
