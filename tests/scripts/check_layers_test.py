"""The layer check must be able to fail: each case is a small tree with one fault."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_layers.py"

LAYERS = """
# A comment.
base:     units.h          <-
graph:    graph.h          <- base
simulate: simulate.h       <- base graph
report:   report.h         <- base graph   # Never simulate.
"""

GOOD = {
    "src/LAYERS": LAYERS,
    "include/foretrace/units.h": "#include <vector>\n",
    "include/foretrace/graph.h": '#include "foretrace/units.h"\n',
    "include/foretrace/simulate.h": '#include "foretrace/graph.h"\n',
    "include/foretrace/report.h": '#include "foretrace/graph.h"\n',
    "src/graph/graph.cc": '#include "foretrace/graph.h"\n#include "graph/storage.h"\n#include <map>\n',
    "src/graph/storage.h": '#include "foretrace/units.h"\n',
}


def violations(changes):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**GOOD, **changes}.items():
            if text is None:
                continue
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        run = subprocess.run([sys.executable, str(SCRIPT), str(root)], capture_output=True, text=True)
        assert (run.returncode == 1) == bool(run.stdout), run
        return run.stdout.splitlines() + run.stderr.splitlines()


class CheckLayers(unittest.TestCase):
    def test_a_tree_that_keeps_the_rules_passes(self):
        self.assertEqual(violations({}), [])

    def test_a_module_may_not_look_up(self):
        self.assertEqual(
            violations({"src/graph/bad.cc": '#include "foretrace/simulate.h"\n'}),
            ["src/graph/bad.cc: graph may not see foretrace/simulate.h, which belongs to simulate"])

    def test_a_module_may_not_look_sideways(self):
        self.assertEqual(
            violations({"src/report/bad.cc": '#  include <foretrace/simulate.h>\n'}),
            ["src/report/bad.cc: report may not see foretrace/simulate.h, which belongs to simulate"])

    def test_headers_go_on_in_the_next_line(self):
        more = {"src/LAYERS": LAYERS.replace("simulate.h       <- base graph", "simulate.h       <- base graph\n          clock.h"),
                "include/foretrace/clock.h": ""}
        self.assertEqual(violations(more), [])
        self.assertEqual(
            violations({**more, "src/report/bad.cc": '#include "foretrace/clock.h"\n'}),
            ["src/report/bad.cc: report may not see foretrace/clock.h, which belongs to simulate"])

    def test_private_headers_stay_private(self):
        self.assertEqual(violations({"src/simulate/bad.cc": '#include "graph/storage.h"\n'}),
                         ["src/simulate/bad.cc: graph/storage.h is private to another module"])

    def test_lists_of_registrations_are_private_too(self):
        self.assertEqual(violations({"src/report/bad.h": '#include "simulate/registered.h"\n'}),
                         ["src/report/bad.h: simulate/registered.h is private to another module"])

    def test_public_headers_keep_the_rules(self):
        self.assertEqual(
            violations({"include/foretrace/units.h": '#include "foretrace/graph.h"\n'}),
            ["include/foretrace/units.h: base may not see foretrace/graph.h, which belongs to graph"])

    def test_every_folder_is_listed(self):
        self.assertEqual(violations({"src/extra/x.cc": ""}), ["src/extra: is not listed in src/LAYERS"])

    def test_every_public_header_is_listed(self):
        self.assertEqual(violations({"include/foretrace/extra.h": ""}),
                         ["include/foretrace/extra.h: is not listed in src/LAYERS"])

    def test_every_listed_header_exists(self):
        self.assertEqual(violations({"include/foretrace/report.h": None}),
                         ["src/LAYERS: report.h of report does not exist"])

    def test_nothing_hides_elsewhere_in_include(self):
        self.assertEqual(violations({"include/other.h": ""}),
                         ["include/other.h: public headers live in include/foretrace, answer/ and question/"])

    def test_questions_and_answers_have_folders(self):
        more = {"src/LAYERS": LAYERS.replace("report.h         <-", "report.h answer/memory.h <-"),
                "include/foretrace/answer/memory.h": '#include "foretrace/graph.h"\n'}
        self.assertEqual(violations(more), [])
        self.assertEqual(violations({**more, "src/graph/bad.cc": '#include "foretrace/answer/memory.h"\n'}),
                         ["src/graph/bad.cc: graph may not see foretrace/answer/memory.h, which belongs to report"])

    def test_a_listed_header_of_a_module_may_be_shared(self):
        shared = {"src/LAYERS": LAYERS.replace("graph.h          <-", "graph.h graph/storage.h <-")}
        self.assertEqual(violations({**shared, "src/simulate/x.cc": '#include "graph/storage.h"\n'}), [])
        self.assertEqual(violations({**shared, "src/base/x.cc": '#include "graph/storage.h"\n'}),
                         ["src/base/x.cc: base may not see graph/storage.h, which belongs to graph"])

    def test_folders_do_not_include_each_other_in_a_cycle(self):
        self.assertEqual(
            violations({"src/graph/edit/x.h": '#include "graph/storage.h"\n',
                        "src/graph/y.cc": '#include "graph/edit/x.h"\n'}),
            ["src/graph: includes itself through graph/edit"])

    def test_a_folder_holds_thirty_files(self):
        self.assertEqual(violations({f"src/graph/many/{i}.cc": "" for i in range(30)}), [])
        self.assertEqual(violations({f"src/graph/many/{i}.cc": "" for i in range(31)}),
                         ["src/graph/many: 31 files, where 30 are allowed"])

    def test_there_is_no_cycle(self):
        self.assertEqual(violations({"src/LAYERS": LAYERS.replace("units.h          <-", "units.h <- graph")}),
                         ["src/LAYERS:3: graph is not listed above base"])

    def test_every_line_is_understood(self):
        self.assertEqual(violations({"src/LAYERS": LAYERS + "plan plan.h\n"}),
                         ['src/LAYERS:7: must be "module: headers <- modules"'])


if __name__ == "__main__":
    unittest.main()
