#!/usr/bin/env python3
"""README.md's "0.27 to 0.48 of the torch wheel" against the sizes in docs/slim.md: one GPU, x86-64.

usage: slim_ratios.py README SLIM
"""
import re
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sizes(line):
    """The packed sizes of a row: "888 (1,695)" is 888."""
    return [float(cell.split("(")[0].replace(",", "")) for cell in line.strip("| \n").split("|")[1:]]


def main(readme, page):
    stated = re.search(r"(\d\.\d\d) to (\d\.\d\d) of the torch wheel", read(readme))
    table = read(page).split("| torch, MB |")[1].split("\n\n")[0].splitlines()
    titles = [cell.strip() for cell in table[0].strip("| ").split("|")]
    ratios = []
    for line in table[2:]:
        upstream, *slimmed = sizes(line)
        ratios += [size / upstream for size, title in zip(slimmed, titles[1:]) if "+" not in title]
    print(f"{page}: {min(ratios):.3f} to {max(ratios):.3f} in {len(ratios)} sizes; {readme}: {stated.group()}")
    apart = [abs(found - float(words)) for found, words in zip((min(ratios), max(ratios)), stated.groups())]
    return 0 if max(apart) < 0.01 else 1  # the page has whole megabytes


sys.exit(main(*sys.argv[1:]))
