"""Can the trial be imported from a clean environment, and does it compute? A line of JSON per check, as the checks of the packages print."""

import json
import sys

import buildtrial

with open("/proc/self/maps") as f:
    inside = [line.split()[-1] for line in f if "/buildtrial.libs/" in line]
checks = {
    "installed": (buildtrial.__file__.startswith(sys.prefix + "/"), buildtrial.__file__),
    "vendored library": (any("libgomp" in path for path in inside), inside[0] if inside else "none"),
    "sum": (buildtrial.sum(100) == "2475.000000", buildtrial.sum(100)),
}
for name, (ok, detail) in checks.items():
    print(json.dumps({"check": name, "ok": ok, "detail": detail}))
failed = sum(not ok for ok, _ in checks.values())
print(json.dumps({"done": True, "checks": len(checks), "failed": failed}))
sys.exit(1 if failed else 0)
