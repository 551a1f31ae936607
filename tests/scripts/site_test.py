#!/usr/bin/env python3
"""The site of the documentation: every page is there and every link leads somewhere. FORETRACE names the program."""

import html.parser
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORETRACE = os.environ.get("FORETRACE", "foretrace")


class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.add(given.get("id"))
        for name in "href", "src":
            if given.get(name):
                self.links.append(given[name])


class SiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        explorer = folder / "explorer"
        explorer.mkdir()
        (explorer / "index.html").write_text("<!doctype html><title>explorer</title><footer></footer>")
        subprocess.run([sys.executable, ROOT / "scripts" / "site.py", "--program", shutil.which(FORETRACE), "--explorer", explorer,
                        "--out", folder / "site"], check=True, stdout=subprocess.DEVNULL)
        cls.html = folder / "site" / "html"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_command_and_transform_has_a_page(self):
        for kind in "commands", "transforms":
            listed = subprocess.run([FORETRACE, "list", kind], check=True, capture_output=True, text=True).stdout
            names = [line.split()[0] for line in listed.splitlines() if line]
            self.assertGreater(len(names), 20)
            for name in names:
                self.assertTrue((self.html / "docs" / kind / f"{name}.html").is_file(), f"{kind}/{name}")

    def test_every_link_leads_somewhere(self):
        pages = {path: Links(path.read_text()) for path in self.html.rglob("*.html")}
        self.assertGreater(len(pages), 150)
        lost = []
        for path, page in pages.items():
            for link in page.links:
                parts = urllib.parse.urlsplit(link)
                if parts.scheme or link.startswith("#") and path.name in ("genindex.html", "search.html"):
                    continue
                target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
                if not target.is_file():
                    lost.append(f"{path.relative_to(self.html)}: {link}")
                elif parts.fragment and target in pages and parts.fragment not in pages[target].anchors:
                    lost.append(f"{path.relative_to(self.html)}: {link}")
        self.assertEqual(lost, [])

    def test_begins_with_the_explorer(self):
        first = (self.html / "index.html").read_text()
        self.assertIn("<title>explorer</title>", first)
        self.assertIn("docs/recording.html", first)
        self.assertIn("../index.html", (self.html / "docs" / "index.html").read_text())
        self.assertTrue((self.html / ".nojekyll").is_file())


if __name__ == "__main__":
    if any(importlib.util.find_spec(name) is None for name in ("sphinx", "myst_parser", "furo")):
        print("skipped: there is no Sphinx with MyST and Furo (scripts/setup.sh all)")
        sys.exit(77)
    unittest.main()
