"""The checks of headers must be able to fail: each case is a small tree with one fault."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"

GOOD = {
    "src/LAYERS": "base:  units.h <-\ngraph: graph.h <- base\n",
    "include/foretrace/units.h": """#pragma once
#include <cstdint>
namespace foretrace {
struct Bytes {
  std::int64_t count = 0;
};
inline constexpr int kMaxBytes = 7;
inline Bytes rounded(double bytes) { return Bytes{static_cast<std::int64_t>(bytes)}; }
inline bool operator==(Bytes a, Bytes b) { return a.count == b.count; }
}  // namespace foretrace
""",
    "include/foretrace/graph.h": """#pragma once
#include <vector>
#include "foretrace/units.h"
namespace foretrace {
struct Graph {
  std::vector<Bytes> sizes;
};
}  // namespace foretrace
""",
    "src/graph/edges.h": """#pragma once
#include "foretrace/graph.h"
namespace foretrace {
/// std::map and fmt::format are only mentioned here.
struct Edge {
  std::vector<Bytes> sizes;
  const char* name = "std::string";
};
}  // namespace foretrace
""",
}


def write(root, changes):
    for name, text in {**GOOD, **changes}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def violations(changes):
    with tempfile.TemporaryDirectory() as folder:
        write(pathlib.Path(folder), changes)
        run = subprocess.run([sys.executable, SCRIPTS / "check_includes.py", folder], capture_output=True, text=True)
        assert (run.returncode == 1) == bool(run.stdout), run
        return run.stdout.splitlines() + run.stderr.splitlines()


def edge(body, includes='#include "foretrace/graph.h"\n'):
    return {"src/graph/edge.h": f"#pragma once\n{includes}namespace foretrace {{\n{body}\n}}  // namespace foretrace\n"}


def without(name, line):
    assert GOOD[name].count(line) == 1
    return {name: GOOD[name].replace(line, "")}


class Text(unittest.TestCase):
    def test_headers_that_include_what_they_use_pass(self):
        self.assertEqual(violations({}), [])

    def test_a_header_of_the_standard_library_is_missing(self):
        self.assertEqual(violations(without("include/foretrace/graph.h", "#include <vector>\n")),
                         ["include/foretrace/graph.h: uses vector without including <vector>",
                          "src/graph/edges.h: uses vector without including <vector>"])

    def test_a_header_of_this_repository_is_missing(self):
        self.assertEqual(violations(without("include/foretrace/graph.h", '#include "foretrace/units.h"\n')),
                         ["include/foretrace/graph.h: uses Bytes without including include/foretrace/units.h",
                          "src/graph/edges.h: uses Bytes without including include/foretrace/units.h"])

    def test_constants_and_functions_need_their_header(self):
        here = "src/graph/edge.h: uses"
        self.assertEqual(violations(edge("inline int most = kMaxBytes;", "")),
                         [f"{here} kMaxBytes without including include/foretrace/units.h"])
        self.assertEqual(violations(edge("inline auto one() { return rounded(1); }", "")),
                         [f"{here} rounded without including include/foretrace/units.h"])

    def test_own_members_may_have_the_name_of_a_function_elsewhere(self):
        own = "struct Edge {\n  double rounded(double bytes);\n  double one() { return rounded(1); }\n};"
        self.assertEqual(violations(edge(own, "")), [])

    def test_what_is_declared_needs_no_header(self):
        self.assertEqual(violations(edge("struct Bytes;\nvoid add(const Bytes& bytes);", "")), [])
        app = "#pragma once\nnamespace CLI {\nclass App;\n}  // namespace CLI\nvoid add(CLI::App& app);\n"
        self.assertEqual(violations({"src/graph/app.h": app}), [])

    def test_other_libraries_need_their_headers(self):
        self.assertEqual(violations(edge("void write(const nlohmann::json& value);")),
                         ["src/graph/edge.h: uses nlohmann without including <nlohmann/...>"])

    def test_no_header_is_included_inside_a_table(self):
        table = '#include "graph/edge.h"\nint main() {\n  static const int all[] = {\n%s  };\n}\n'
        for line, found in (('#include "graph/all.def"\n', []),
                            ('#include "foretrace/graph.h"\n',
                             ["src/graph/all.cc: includes foretrace/graph.h inside a body"])):
            self.assertEqual(violations({"src/graph/all.cc": table % line}), found)

    def test_every_name_of_the_standard_library_is_in_the_table(self):
        self.assertEqual(violations(edge("std::flat_map* map = nullptr;")),
                         ["src/graph/edge.h: uses std::flat_map, which the table of scripts/check_includes.py does not have"])


class Compiled(unittest.TestCase):
    """Runs scripts/check_headers.sh, which also compiles."""

    def check(self, changes, commit=True):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            write(root, {})
            shutil.copytree(SCRIPTS, root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))

            def git(*arguments):
                subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=root, check=True, capture_output=True)

            git("init", "--quiet", "--initial-branch=main")
            for message in ("first", "second") if commit else ():
                git("add", "--all")
                git("commit", "--quiet", "--allow-empty", "--message", message)
            write(root, changes)
            run = subprocess.run([root / "scripts" / "check_headers.sh"], capture_output=True, text=True)
            self.assertEqual(run.returncode, 1 if "error" in run.stderr or run.stdout else 0, run)
            return run.stdout + run.stderr

    @classmethod
    def setUpClass(cls):
        if not shutil.which("git") or not (shutil.which("c++")):
            raise unittest.SkipTest("needs git and c++")

    def test_headers_that_compile_pass(self):
        self.assertEqual(self.check({}), "")

    def test_a_header_included_twice_must_change_nothing(self):
        self.assertIn("redefinition", self.check(without("src/graph/edges.h", "#pragma once\n")))

    def test_a_changed_header_is_compiled_alone(self):
        self.assertIn("incomplete type", self.check(edge("struct Bytes;\ninline int size(Bytes* bytes) { return sizeof(*bytes); }", "")))

    def test_without_a_main_branch_modules_are_compiled(self):
        found = self.check(edge("inline int one() { return 1 }"), commit=False)
        self.assertIn("no main branch is known", found)
        self.assertIn("expected ‘;’" if "‘" in found else "expected ';'", found)


if __name__ == "__main__":
    unittest.main()
