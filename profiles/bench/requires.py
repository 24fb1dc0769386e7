"""Which distributions a wheel pins that there are none of: a line NAME==VERSION each.

usage: requires.py {"requires": [lines of its metadata], "have": {name: version}}

The root's Python has its own beside those. Wheels of the index bring their CUDA libraries so, and torch does not
import without them. What a wheel asks for without a version is the root's business, and so is what no workload uses.
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
    for text in asked["requires"]:
        need = Requirement(" ".join(text.split()))
        pins = [s.version for s in need.specifier if s.operator == "==" and not s.version.endswith(".*")]
        wanted = pins and need.name.lower() not in UNUSED and (not need.marker or need.marker.evaluate({"extra": ""}))
        if wanted and there(need.name, asked["have"]) != pins[0]:
            print(f"{need.name}=={pins[0]}")


main()
