#!/usr/bin/env python3
"""Makes one table, in Markdown, of what `ptbuild bench --json` wrote on several machines.

usage: speed_table.py FILE...

A row is a machine class (--machine-class of bench) and a number of threads. Files of one class follow each other.
"""
import json
import sys

HEAD = ("Machine", "Against", "Threads", "Pairs", "Geometric mean", "Faster", "Slower", "No difference shown", "Slower ones")


def rows(document):
    """The cells of each set of a document."""
    for one in document["sets"]:
        counted = [w for w in one["workloads"] if w["state"] == "compared" and w["in_mean"]]
        slower = sorted((w for w in counted if w["verdict"] == "slower"), key=lambda w: w["ratio"])
        names = ", ".join(f"{w['name']} {w['ratio']:.2f} ({w['interval'][0]:.2f} to {w['interval'][1]:.2f})" for w in slower)
        mean = one["geometric_mean"]
        yield (document["machine_class"] or "not named", document["other"]["torch"], str(one["threads"]), str(one["pairs"]),
               "-" if mean is None else f"{mean:.2f}", str(one["faster"]), str(one["slower"]),
               str(len(counted) - one["faster"] - one["slower"]), names or "none")


def table(documents):
    lines = [HEAD, ["---"] * len(HEAD)]
    for document in sorted(documents, key=lambda d: d["machine_class"] or ""):
        lines.extend(rows(document))
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    documents = []
    for name in sys.argv[1:]:
        try:
            with open(name, encoding="utf-8") as f:
                documents.append(json.load(f))
            table(documents[-1:])
        except (OSError, ValueError, KeyError, TypeError) as ex:
            sys.exit(f"speed_table: '{name}' is not what 'ptbuild bench --json' writes: {type(ex).__name__}: {ex}")
    sys.stdout.write(table(documents))


if __name__ == "__main__":
    main()
