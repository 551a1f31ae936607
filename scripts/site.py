#!/usr/bin/env python3
"""Makes a folder that any host of static files can serve, html/ in --out: the explorer is its first page, the documentation is in docs/.

    scripts/site.py [--program build/foretrace] [--explorer build-explorer/explorer] [--out build-site]

The documentation's pages are README.md; the manual in docs/; the guides beside scenarios, traces, sources and tests; the program's own help on its
commands, transforms, lists and schemas; the public headers; and the Python module. Nothing is written for the site alone, so it
agrees with the program: the tests check that outputs in README.md, docs/ and scenarios/README.md are those of the program. Needs
Sphinx, MyST and Furo (scripts/setup.sh all). Without the explorer's folder the documentation is all of it.
"""

import argparse
import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GUIDES = {"scenarios": "scenarios/README.md", "gate": "scenarios/ci/README.md", "clusters": "scenarios/cluster/README.md",
          "packets": "scenarios/packets/README.md", "samples": "traces/README.md", "sources": "src/README.md",
          "importers": "src/import/README.md", "tests": "tests/README.md", "contributing": "CONTRIBUTING.md", "reporting": "SECURITY.md",
          "changes": "CHANGELOG.md"}
# The manual, in the order in which its index names the pages.
MANUAL = {"manual": "docs/README.md",
          **{name: f"docs/{name}.md" for name in re.findall(r"\]\(([\w-]+)\.md", (ROOT / "docs" / "README.md").read_text())}}
PAGE_OF = {path: name for name, path in {"index": "README.md", **MANUAL, **GUIDES}.items()}
CONF = """project = "Foretrace"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Foretrace"
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
html_static_path = []
highlight_language = "none"
"""


def linked(path):
    """The text of a document in which links to other documents lead to their pages. Other files of the repository have no page, so that
    only the words of links to them are left."""
    def link(match):
        target, mark, anchor = match[3].partition("#")
        place = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if re.match(r"[a-z]+:", match[3]):
            return match[0]
        if match[1] and (ROOT / place).is_file():
            return f"![{match[2]}]({place})"
        return f"[{match[2]}]({PAGE_OF[place]}.md{mark}{anchor})" if place in PAGE_OF else match[2]
    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]*)\)", link, (ROOT / path).read_text())


class Site:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def says(self, *arguments):
        return subprocess.run([self.program, *arguments], check=True, capture_output=True, text=True).stdout

    def write(self, name, text):
        path = self.folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def code(self, text, language="none"):
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
        return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"

    def listed(self, kind):
        """[(name, summary)] of `foretrace list`."""
        return [line.split(None, 1) for line in self.says("list", kind).splitlines() if line[:1].strip() and " " in line]

    def contents(self, title, pages, text=""):
        return f"# {title}\n\n{text}\n\n" + self.code("\n".join(pages), "{toctree}\n:maxdepth: 1")

    def documents(self):
        for name, path in {**MANUAL, **GUIDES}.items():
            self.write(name, linked(path))
        shutil.copytree(ROOT / "scenarios", self.folder / "scenarios", ignore=lambda _, names: [n for n in names if not n.endswith(".png")])

    def program_pages(self):
        commands = self.listed("commands")
        for name, summary in commands:
            self.write(f"commands/{name}", f"# {name}\n\n{summary}\n\n" + self.code(self.says("help", name)))
        self.write("commands/index", self.contents("Commands", [name for name, _ in commands]))
        transforms = self.listed("transforms")
        for name, summary in transforms:
            self.write(f"transforms/{name}", f"# {name}\n\n{summary}\n\n" + self.code(self.says("help", "transform", name)))
        self.write("transforms/index", self.contents("Transforms", [name for name, _ in transforms]))
        self.write("lists", "# Lists\n\nEverything that has a name: formats, devices, machines, models, schedules and others.\n\n" + self.code(self.says("list")))
        self.write("schema", "# Schema of scenarios\n\n" + self.code(self.says("schema", "scenario"), "json"))
        return ["commands/index", "transforms/index", "lists", "schema"]

    def headers(self):
        names = []
        for path in sorted((ROOT / "include" / "foretrace").rglob("*.h")):
            name = path.relative_to(ROOT / "include" / "foretrace").with_suffix("").as_posix()
            self.write(f"headers/{name}", f"# {name}.h\n\n" + self.code(path.read_text(), "cpp"))
            names.append(name)
        self.write("headers/index", self.contents("C++ headers", names))
        return ["headers/index"]

    def python(self):
        text = "# Python\n\n"
        for path in sorted((ROOT / "src" / "python" / "foretrace").glob("*.py")):
            module = ast.parse(path.read_text())
            if path.name == "__init__.py":
                text += self.code(ast.get_docstring(module))
            for node in module.body:
                if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or node.name.startswith("_") or not ast.get_docstring(node):
                    continue
                given = f"({ast.unparse(node.args)})" if isinstance(node, ast.FunctionDef) else ""
                text += f"\n## {node.name}\n\n" + self.code(f"{node.name}{given}") + "\n" + self.code(ast.get_docstring(node))
                for inner in getattr(node, "body", []):
                    if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_") and ast.get_docstring(inner):
                        text += "\n" + self.code(f"{node.name}.{inner.name}({ast.unparse(inner.args)})\n    {ast.get_docstring(inner)}")
        self.write("python", text)
        return ["python"]

    def make(self, has_explorer):
        self.folder.mkdir(parents=True)
        (self.folder / "conf.py").write_text(CONF)
        self.documents()
        rest = {"Manual": MANUAL, "Reference": self.program_pages() + self.python() + self.headers(), "Guides": GUIDES}
        text = linked("README.md")
        if has_explorer:
            title, _, rest_of_text = text.partition("\n")
            text = f"{title}\n\n<a href=\"../index.html\">Open the explorer</a>: Foretrace in this browser, with your trace or a sample. The trace stays on your machine.\n{rest_of_text}"
        for caption, pages in rest.items():
            text += "\n" + self.code("\n".join(pages), f"{{toctree}}\n:caption: {caption}\n:maxdepth: 1\n:hidden:\n")
        self.write("index", text)


def add_explorer(explorer, folder):
    """Makes the explorer the first page of the folder, with links to the documentation."""
    shutil.copytree(explorer, folder, dirs_exist_ok=True)
    (folder / ".nojekyll").touch()  # GitHub's Pages would leave out folders such as docs/_static.
    page = folder / "index.html"
    links = "<a href=\"docs/index.html\">Documentation</a>, <a href=\"docs/recording.html\">recording a trace</a>."
    page.write_text(page.read_text().replace("</footer>", f" {links}</footer>"))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "foretrace")
    options.add_argument("--explorer", type=pathlib.Path, default=ROOT / "build-explorer" / "explorer")
    options.add_argument("--out", type=pathlib.Path, default=ROOT / "build-site")
    asked = options.parse_args()
    if not asked.program.is_file():
        sys.exit(f"site.py: {asked.program}: does not exist; scripts/try.sh builds it")
    sources, html = asked.out / "sources", asked.out / "html"
    has_explorer = (asked.explorer / "index.html").is_file()
    shutil.rmtree(asked.out, ignore_errors=True)
    Site(asked.program.resolve(), sources).make(has_explorer)
    done = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", asked.out / "doctrees", sources,
                           html / "docs" if has_explorer else html], check=False)
    if done.returncode != 0:
        sys.exit("site.py: Sphinx reported errors; see above")
    if has_explorer:
        add_explorer(asked.explorer, html)
    print(f"{html}: {sum(1 for _ in html.rglob('*.html'))} pages")


if __name__ == "__main__":
    main()
