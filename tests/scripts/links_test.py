#!/usr/bin/env python3
"""The documents: their links to files and headings lead somewhere, README.md is short, and what it counts is so. Asks no network.
FORETRACE names the program."""

import collections
import os
import pathlib
import re
import subprocess
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORETRACE = os.environ.get("FORETRACE", "foretrace")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)|^\[[^\]]+\]: +(\S+)", re.M)
MOST_LINES = 200


def documents():
    """All documents of the repository, but nothing from build folders."""
    folders = [path for path in ROOT.iterdir() if path.is_dir() and (path.name == ".github" or not path.name.startswith((".", "build")))]
    return sorted([*ROOT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.md"))])


def prose(path):
    """The lines of a document without its blocks of code."""
    fence = None
    for line in path.read_text(encoding="utf-8").splitlines():
        mark = re.match(r" *(```+|~~~+)", line)
        if mark and (fence is None or line.strip().startswith(fence)):
            fence = mark[1] if fence is None else None
        elif fence is None and not line.startswith("    "):
            yield line


def anchors(path):
    """The anchors that forges give to the headings of a document."""
    counts = collections.Counter()
    for line in prose(path):
        heading = re.match(r"#{1,6} +(.*)", line)
        if heading:
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
            name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            yield f"{name}-{counts[name]}" if counts[name] else name
            counts[name] += 1


def lost(path):
    """The links of a document that lead nowhere."""
    for found in LINK.finditer(re.sub(r"`[^`]*`", "", "\n".join(prose(path)))):
        link = urllib.parse.urlsplit(found[1] or found[2])
        if link.scheme or link.netloc:
            continue
        target = (path.parent / urllib.parse.unquote(link.path)).resolve() if link.path else path
        if not target.exists() or not target.is_relative_to(ROOT):
            yield f"{path.relative_to(ROOT)}: {link.geturl()}: there is no such file"
        elif link.fragment and (target.suffix != ".md" or link.fragment not in anchors(target)):
            yield f"{path.relative_to(ROOT)}: {link.geturl()}: there is no such heading"


class Links(unittest.TestCase):
    def test_all_lead_somewhere(self):
        self.assertGreater(len(documents()), 40)
        self.assertEqual([line for path in documents() for line in lost(path)], [])

    def test_the_index_names_every_page_of_the_manual(self):
        named = set(re.findall(r"\]\(([\w-]+\.md)", (ROOT / "docs" / "README.md").read_text()))
        self.assertEqual({path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}, named)


class Readme(unittest.TestCase):
    text = (ROOT / "README.md").read_text()

    def test_is_short(self):
        self.assertLessEqual(len(self.text.splitlines()), MOST_LINES)

    def test_counts_the_transforms(self):
        listed = subprocess.run([FORETRACE, "list", "transforms"], check=True, capture_output=True, text=True).stdout
        names = {line.split()[0] for line in listed.splitlines() if line}
        edits = {path.stem for path in (ROOT / "src" / "transform" / "primitives").glob("*.cc")}
        self.assertLessEqual(edits, names)
        self.assertIn(f"{len(edits)} primitives and {len(names - edits)} optimizations", self.text)


if __name__ == "__main__":
    unittest.main()
