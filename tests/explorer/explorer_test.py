#!/usr/bin/env python3
"""The explorer in a headless browser, with real recordings and no network: every answer, and the trip of a new user.

FORETRACE_EXPLORER names the folder that scripts/explorer.py made (by default build-explorer/explorer); without it the test is skipped.
FORETRACE names the program, whose answers must be the page's to the byte; FORETRACE_CORPUS, where set, a folder with more recordings.
"""

import base64
import functools
import gzip
import http.server
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import browser
from browser import AXE, CONTRASTS, EXPLORER, Browser

FORETRACE = os.environ.get("FORETRACE", "foretrace")
CORPUS = pathlib.Path(os.environ.get("FORETRACE_CORPUS", "/nowhere"))
TRACES = ROOT / "traces"
LOADER0, LOADER4 = (TRACES / f"resnet18-v100-loader{workers}.pt.trace.json.gz" for workers in (0, 4))
LARGE = CORPUS / "hta-ddp-v100-mem" / "df_index_resolver.json.gz"
# Recordings of all formats that the page reads, each with a question.
RECORDINGS = [
    (LOADER0, "loader:workers=2"),
    (LOADER4, "prefetch"),
    (TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz", "amp,recompute"),
    (TRACES / "gpt-a100-launch-bound.pt.trace.json.gz", "cuda_graphs"),
    (TRACES / "input-bound-v100.pt.trace.json.gz", "loader"),
    (CORPUS / "nsys-h200-small" / "report3.sqlite", "amp"),
    (CORPUS / "nanogpt-8rank" / "rank2.json.gz", "amp"),
    (CORPUS / "nanogpt-8rank", "amp"),
    (CORPUS / "hta-resnet-ddp-a100" / "nccl_data.json.gz", "amp"),
    (CORPUS / "megatron-tp2" / "final.1.et", "scale:factor=0.5,where.kind=kernel"),
    (CORPUS / "rn50-autograd-api" / "w0.pt.trace.json.gz", "amp"),
    (CORPUS / "rn50-dl-v100" / "w0_runA.pt.trace.json.gz", "loader:workers=2,amp"),
    (CORPUS / "mi300-act-ckpt" / "resnet_act_checkpoint.json.gz", "cuda_graphs"),
    (CORPUS / "param-resnet" / "resnet_kineto.json.gz", "op_fusion"),
    (CORPUS / "snap-xl-forward" / "xl_ctx128_forward_none.pickle", ""),
    (CORPUS / "rocprof-mi350" / "908_results.json.gz", "amp"),
    (CORPUS / "hta-dlrm-a100" / "control.json.gz", "scale:factor=0.5,where.name=/gemm|sgemm/"),
    (CORPUS / "nsys-27b-eager-graph" / "result_2_7B_compile_ro.sqlite", "amp"),
    (CORPUS / "chakra-et" / "chakra.0.et", ""),
    (CORPUS / "vllm-capture" / "vllm_piecewise.json.gz", "cuda_graphs"),
    (LARGE, "fused_optimizer"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    asked = []

    def log_message(self, *_):
        self.asked.append(self.path)


class ExplorerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=EXPLORER))
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = Browser()
        cls.browser.command("Network.enable")

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.server.shutdown()
        cls.server.server_close()
        cls.folder.cleanup()

    def setUp(self):
        self.visit()

    def tearDown(self):
        self.offline(False)
        self.assertEqual(self.browser.complaints(), [])

    def visit(self, fragment=""):
        self.offline(False)
        self.browser.visit("about:blank")
        self.browser.visit(f"http://127.0.0.1:{self.server.server_port}/index.html{fragment}")
        self.browser.wait_for("document.body.dataset.ready === 'yes'")
        # The network is off: the page must already have everything that it needs.
        self.offline(True)

    def offline(self, is_off):
        self.browser.command("Network.emulateNetworkConditions", offline=is_off, latency=0, downloadThroughput=-1, uploadThroughput=-1)

    def drop(self, path):
        """Drops a file on the page, as a mouse does."""
        self.browser.run("delete document.body.dataset.opened")
        self.browser.run(f"""const bytes = Uint8Array.from(atob({json.dumps(base64.b64encode(path.read_bytes()).decode())}), c => c.charCodeAt(0));
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([bytes], {json.dumps(path.name)}));
            dispatchEvent(new DragEvent('drop', {{dataTransfer, cancelable: true}}))""")

    def made(self, name, content):
        path = pathlib.Path(self.folder.name) / name
        path.write_bytes(content)
        return path

    def press(self, selector):
        self.browser.run(f"document.querySelector({json.dumps(selector)}).click()")

    def choose(self, selector, value):
        self.browser.run(f"const s = document.querySelector({json.dumps(selector)}); s.value = {json.dumps(value)}; s.dispatchEvent(new Event('change'))")

    def field(self, name):
        """Script that finds the field of another question by its label."""
        return f"[...document.querySelectorAll('#any-fields .field')].find(one => one.textContent.startsWith({json.dumps(name)}))"

    def ask(self, question, **settings):
        """The answer to another question than the prediction."""
        self.choose("#any", question)
        for name, value in settings.items():
            self.browser.run(f"const field = {self.field(name)}.querySelector('.values > input:last-child'); if (field.type === 'checkbox') field.click();"
                             f"else field.value = {json.dumps(value)}, field.dispatchEvent(new Event('input'))")
        return self.asked(question)

    def asked(self, question):
        self.browser.run("delete document.body.dataset.asked")
        self.press("#ask")
        self.browser.wait_for(f"document.body.dataset.asked === '{question}'")
        return self.browser.run("return window.foretrace_other")

    def check_like_the_program(self, path, steps, folder):
        """The page's answer about what is open is that of the program to the byte."""
        found, command = self.saved()
        program, *arguments = shlex.split(command)
        self.assertEqual(program, "foretrace", path)
        wanted = subprocess.run([FORETRACE, *arguments, "--no-cache", "--quiet", "--format", "json"], cwd=folder,
                                capture_output=True, text=True, check=True).stdout
        self.assertEqual(found, wanted, (path, steps))

    def open(self, *traces):
        """Milliseconds until the page shows its first picture."""
        self.browser.run("delete document.body.dataset.opened")
        self.browser.give_files("#files", traces)
        self.browser.wait_for("document.body.dataset.opened")
        return int(self.browser.run("return document.body.dataset.opened"))

    def add(self, steps):
        drawn = "+(document.body.dataset.drawn ?? 0)"
        before = self.browser.run(f"return {drawn}")
        self.browser.run(f"document.getElementById('add').value = {json.dumps(steps)}; document.getElementById('question').requestSubmit()")
        self.browser.wait_for(f"{drawn} > {before}")

    def text(self, selector):
        return self.browser.run(f"return document.querySelector('{selector}').innerText")

    def saved(self):
        """The answer and the command that the page offers for copying."""
        return self.browser.run("return [window.foretrace_answer.json, window.foretrace_answer.command]")

    def test_answers_are_those_of_the_program_to_the_byte(self):
        compared = 0
        for trace, steps in RECORDINGS:
            if not trace.exists():
                continue
            with self.subTest(trace=trace.name, steps=steps):
                self.visit()
                self.open(*(sorted(trace.iterdir()) if trace.is_dir() else [trace]))
                if steps:
                    self.add(steps)
                folder = trace.parent
                if trace.is_dir():
                    folder = pathlib.Path(self.folder.name)
                    shutil.copytree(trace, folder / "job", dirs_exist_ok=True)
                self.check_like_the_program(trace.name, steps, folder)
                compared += 1
        print(f"\n{compared} answers equal to the program's")

    def test_is_there_within_its_limits(self):
        if "CMAKE_BUILD_TYPE:UNINITIALIZED=Release" not in (EXPLORER.parent / "CMakeCache.txt").read_text():
            self.skipTest("the explorer was built by explorer.py --quick")
        size = sum(len(gzip.compress(path.read_bytes())) for path in EXPLORER.iterdir() if not path.name.endswith(".gz"))
        print(f"\ndownload {size / 1e6:.2f} MB compressed")
        self.assertLess(size, 4_000_000)

    def test_loads_nothing_after_the_page_is_there(self):
        del Quiet.asked[:]
        self.open(TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz")
        self.add("amp")
        self.browser.wait_for("document.body.dataset.advised")
        self.assertEqual(Quiet.asked, [])

    def test_a_slider_moves_the_answer_and_the_timelines(self):
        self.open(TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz")
        self.add("scale:where.kind=kernel,factor=0.5")
        step_time = "return document.querySelector('#figures .main').textContent"
        before, picture = self.browser.run(step_time), self.browser.run("return document.getElementById('timeline').toDataURL()")
        drawn = self.browser.run("return +document.body.dataset.drawn")
        self.browser.run("const s = document.querySelector('.step input[type=range]'); s.value = 0.1; s.dispatchEvent(new Event('input'))")
        self.browser.wait_for(f"+document.body.dataset.drawn > {drawn}")
        self.assertNotEqual(self.browser.run(step_time), before)
        self.assertNotEqual(self.browser.run("return document.getElementById('timeline').toDataURL()"), picture)
        self.assertIn("factor=0.1", self.saved()[1])

    def test_the_stretch_that_is_looked_at_stays(self):
        self.open(LOADER0)
        self.add("scale:where.kind=kernel,factor=0.5")
        self.browser.run("document.getElementById('timeline').focus()")
        self.browser.keys(["+", "+"])
        self.browser.frame()
        seen = "const c = document.getElementById('timeline'); return [c.dataset.from, c.dataset.to]"
        before = self.browser.run(seen)
        drawn = self.browser.run("return +document.body.dataset.drawn")
        self.browser.run("const s = document.querySelector('.step input[type=range]'); s.value = 0.4; s.dispatchEvent(new Event('input'))")
        self.browser.wait_for(f"+document.body.dataset.drawn > {drawn}")
        self.browser.frame()
        self.assertEqual(self.browser.run(seen), before)

    def test_archives_are_read_as_the_program_reads_them(self):
        folder = pathlib.Path(self.folder.name)
        for name, kept in ("one.tar.gz", [LOADER0]), ("one.zip", [LOADER0]), ("cut.tar", [LOADER0]):
            if name.endswith(".zip"):
                with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
                    archive.write(kept[0], "runs/" + kept[0].name)
            else:
                with tarfile.open(folder / name, "w:gz" if name.endswith("gz") else "w", format=tarfile.PAX_FORMAT) as archive:
                    archive.add(kept[0], "runs/" + kept[0].name)
            if name == "cut.tar":
                (folder / name).write_bytes((folder / name).read_bytes()[:90_000])
            with self.subTest(name):
                self.visit()
                self.open(folder / name)
                self.check_like_the_program(name, "", folder)

    def test_the_trip_of_a_new_user(self):
        first = self.text("#start")
        for words in "Drop a trace here", "How to record", "export_chrome_trace", "What it cannot do":
            self.assertIn(words, first)
        self.drop(LOADER0)
        self.browser.wait_for("document.body.dataset.opened")
        self.assertFalse(self.browser.run("return document.getElementById('first').checkVisibility()"))
        self.add("loader:workers=2")
        self.press("#keep")
        self.add("amp")
        rows = "return [...document.querySelectorAll('#kept tbody tr')].map(row => [...row.cells].slice(0, 5).map(one => one.textContent))"
        recorded, kept, current = self.browser.run(rows)
        found = json.loads(self.saved()[0])
        self.assertEqual([recorded[0], kept[0], current[0]], ["as recorded", "loader:workers=2", "loader:workers=2,amp (below)".replace(",", ", ")])
        self.assertEqual(recorded[1], "85.35 ms")
        self.assertEqual(kept[1:2] + kept[3:], ["48.91 ms", "-42.7 %", "1.74x"])
        self.assertEqual(current[4], f"{found['speedup']:.2f}x")
        self.browser.give_files("#other", [LOADER4])
        self.browser.wait_for("document.getElementById('shown').checkVisibility()")
        self.assertIn("B takes 36.48 ms less a step", self.text("#heading"))
        self.assertIn("data loading takes less", self.text("#part-a-step"))
        self.assertIn(f"A is {LOADER0.name}, B is {LOADER4.name}.", self.text("#lead"))
        self.assertIn("A above B", self.text("#arrange"))
        self.assertEqual(self.browser.run("return document.getElementById('timeline').dataset.ready"), "yes")
        self.press("#back")
        self.browser.wait_for("!document.getElementById('shown').checkVisibility()")
        fragment = self.browser.run("return location.hash")
        self.assertNotIn("resnet", fragment)
        self.visit(fragment)
        self.assertIn("The link asks: loader:workers=2, amp.", self.text("#status"))
        self.open(LOADER0)
        self.browser.wait_for("document.querySelectorAll('#kept tbody tr').length === 3 && !document.getElementById('kept').textContent.includes('...')")
        self.assertEqual(self.browser.run(rows), [recorded, kept, current])
        self.assertIn("--with loader:workers=2 --with amp", self.saved()[1])
        self.press("#kept [aria-label='Remove loader:workers=2']")
        self.assertEqual(self.browser.run(rows), [])

    def test_a_damaged_or_unreadable_file_is_the_first_line(self):
        self.open(LOADER0)
        self.browser.wait_for("document.body.dataset.advised")
        self.drop(self.made("cut.json.gz", LOADER0.read_bytes()[:60_000]))
        self.browser.wait_for("document.body.dataset.opened")
        self.browser.wait_for("document.body.dataset.advised")
        self.assertEqual(self.browser.run("return document.body.dataset.advised"), "none")
        first = self.browser.run("return document.querySelector('main').innerText.trim().split('\\n')[0]")
        self.assertEqual(first, "cut.json.gz is damaged")
        self.assertIn("cut off", self.text("#problem"))
        self.assertEqual(self.text("#advice p"), "Nothing is advised about a damaged recording.")
        self.assertEqual(self.browser.run("return [...document.querySelectorAll('#advice button')].length"), 0)
        self.drop(self.made("picture.png", b"\x89PNG\r\n" + bytes(range(256))))
        self.browser.wait_for("document.getElementById('problem').textContent.includes('picture.png')")
        self.assertIn("89 50 4e 47", self.text("#problem"))
        for cleared in "#work", "#figures", "#lead", "#sections":
            self.assertFalse(self.browser.run(f"return document.querySelector('{cleared}').checkVisibility()"), cleared)
        self.assertEqual(self.browser.run("return document.getElementById('sections').children.length"), 0)
        self.assertIn("How long would", self.text("#heading"))
        self.open(LOADER4)
        self.assertEqual(self.text("#problem"), "")
        self.browser.wait_for("document.body.dataset.advised")

    def test_the_timeline_opens_at_one_step_of_this_file(self):
        seen = "const c = document.getElementById('timeline'); return [+c.dataset.from, +c.dataset.to]"
        event = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}}
        self.open(self.made("short.json", json.dumps({"traceEvents": [event]}).encode()))
        self.browser.frame()
        self.assertLess(self.browser.run(seen)[1], 1e5)
        self.assertIn("2 us for the whole recording", self.text("#figures"))
        for _ in range(2):
            self.open(LOADER0)
            self.browser.frame()
            start, end = self.browser.run(seen)
            self.assertGreater(end - start, 85e6)
            self.assertLess(end - start, 2 * 85e6)
            self.press("#whole")

    def test_refusals_name_buttons_and_fields(self):
        self.open(LOADER0)
        refused = "document.getElementById('refused')"
        for wrong, words in ("flash", "scale:where.kind=kernel"), ("faster gpu", "the list of the field \"On\""), ("lader", "did you mean"):
            self.browser.run(f"document.getElementById('add').value = {json.dumps(wrong)}; document.getElementById('question').requestSubmit()")
            self.browser.wait_for(f"{refused}.textContent.includes({json.dumps(words)})")
            self.assertNotRegex(self.text("#refused"), "--|`|foretrace ")
        drawn = self.browser.run("return +(document.body.dataset.drawn ?? 0)")
        self.press("#refused button")
        self.browser.wait_for(f"+document.body.dataset.drawn > {drawn}")
        self.assertEqual(self.text(".step h3"), "loader")
        self.assertEqual(self.text("#refused"), "")
        labels = self.browser.run("return [...document.querySelectorAll('.step label')].map(one => one.textContent)")
        self.assertIn("Prefetch factor", labels)
        self.assertEqual([one for one in labels if "_" in one], [])

    def test_one_setting_is_varied(self):
        self.open(LOADER0)
        self.assertFalse(self.browser.run("return document.getElementById('vary').checkVisibility()"))
        self.add("loader")
        self.browser.run("document.getElementById('vary-values').value = '1..4'")
        self.press("#draw")
        self.browser.wait_for("document.body.dataset.varied === 'loader.workers'")
        self.assertIn("75.3 ms", self.text("#sections"))
        self.assertGreater(self.browser.run("return document.querySelectorAll('#sections svg').length"), 0)
        self.press("#back")
        self.browser.wait_for("document.getElementById('timeline')")

    def test_a_baseline_is_made_and_checked(self):
        self.open(LOADER0)
        self.assertNotIn("error", self.ask("check", Baseline="baseline.json", Bless=True))
        self.assertEqual(self.browser.run("return document.querySelector('#any-answer a').download"), "baseline.json")
        written = self.browser.run("return [...window.foretrace_other.written[0].data]")
        baseline = self.made("baseline.json", bytes(written))
        self.open(LOADER4)
        self.choose("#any", "check")
        self.browser.run(f"{self.field('Baseline')}.querySelector('[type=file]').id = 'chosen'")
        self.browser.give_files("#chosen", [baseline])
        found = self.asked("check")
        self.assertNotIn("error", found)
        self.assertRegex(found["text"], r"step_time +85.35 ms +48.86 ms +-42.7 %")
        self.assertTrue(self.browser.run("return document.getElementById('shown').checkVisibility()"))

    def test_a_plan_is_that_of_the_program(self):
        self.open(LOADER0)
        found = self.ask("plan", Model="gpt2-1.4b", Gpus="8", Machine="dgx-a100", **{"Global batch": "64"})
        self.assertNotIn("error", found)
        wanted = subprocess.run([FORETRACE, "plan", "gpt2-1.4b", "--gpus", "8", "--machine", "dgx-a100", "--global-batch", "64", "--format", "json"],
                                capture_output=True, text=True, check=True).stdout
        self.assertEqual(found["json"], wanted)
        self.assertGreater(self.browser.run("return document.querySelectorAll('#sections svg').length"), 0)

    def test_a_forged_link_is_refused_in_words(self):
        for fragment in "#%7Bno", "#null", "#" + json.dumps({"transforms": [{"use": "loader", "prep_rates": "x"}]}).replace(" ", "%20"):
            self.visit(fragment)
            self.assertIn("valid scenario", self.text("#status"))
        self.visit("#" + json.dumps({"transforms": [{"use": "<img src=x onerror=alert(1)>"}], "machine": "x"}).replace(" ", "%20"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('.step').length"), 0)

    def test_advice_can_be_tried(self):
        self.open(LOADER0)
        self.browser.wait_for("document.body.dataset.advised")
        self.assertIn("Bound by", self.text("#advice"))
        self.assertIn("Ceilings", self.text("#advice"))
        self.browser.run("document.querySelector('#advice [aria-label=\"Try loader:workers=2\"]').click()")
        self.browser.wait_for("document.querySelector('.step h3')?.textContent === 'loader'")
        self.browser.wait_for("document.getElementById('figures').textContent.includes('-42.7 %')")

    def test_every_question_can_be_asked(self):
        self.visit()
        self.open(LOADER0)
        names = self.browser.run("return [...document.querySelectorAll('#any option')].map(one => one.value)")
        self.assertIn("plan_show", names)
        self.assertGreater(len(names), 15)
        for name in names:
            self.choose("#any", name)
            self.assertNotRegex(self.browser.run("return document.getElementById('any-fields').textContent"), "--[a-z]", name)
            labels = self.browser.run("return [...document.querySelectorAll('#any-fields label')].map(one => one.textContent)")
            self.assertEqual([one for one in labels if "_" in one], [], name)
        self.ask("doctor")
        wanted = subprocess.run([FORETRACE, "doctor", "resnet18-v100-loader0.pt.trace.json.gz", "--format", "json", "--no-cache", "--quiet"],
                                cwd=TRACES, capture_output=True, text=True, check=True).stdout
        self.assertEqual(self.browser.run("return window.foretrace_other.json"), wanted)

    def test_a_folder_keeps_files_of_one_name_apart(self):
        ranks = [CORPUS / "nanogpt-8rank" / f"rank{rank}.json.gz" for rank in range(2)]
        if not ranks[0].is_file():
            self.skipTest("FORETRACE_CORPUS names no folder of recordings")
        folder = pathlib.Path(self.folder.name) / "apart"
        for rank, trace in enumerate(ranks):
            (folder / f"host{rank}").mkdir(parents=True)
            shutil.copy(trace, folder / f"host{rank}" / "trace.json.gz")
        self.browser.give_files("#folder", [folder])
        self.browser.wait_for("document.body.dataset.opened")
        found = json.loads(self.saved()[0])
        self.assertEqual([one["path"] for one in found["inputs"]], ["job/host0/trace.json.gz", "job/host1/trace.json.gz"])

    def test_wrong_input_gets_the_programs_words(self):
        broken = pathlib.Path(self.folder.name) / "broken.json"
        broken.write_text("{\"traceEvents\": [")
        empty = pathlib.Path(self.folder.name) / "empty.json"
        empty.write_text("")
        for path, words in (broken, "must contain events"), (empty, "empty"):
            self.browser.give_files("#files", [path])
            self.browser.wait_for(f"document.getElementById('problem').textContent.includes({json.dumps(path.name)})")
            self.assertIn(words, self.text("#problem"))

    def check_readable(self, state):
        """Contrast, accessibility and width, in both themes and in a wide and a narrow window."""
        for theme in "light", "dark":
            for width in 1280, 390:
                self.browser.emulate(prefers_color_scheme=theme)
                self.browser.resize(width)
                self.browser.frame()
                with self.subTest(f"{state}, {theme}, {width}"):
                    self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
                    self.assertEqual(self.browser.run(CONTRASTS), [])
                    if AXE.is_file():
                        self.assertEqual(self.browser.barriers(), [])

    def test_can_be_read_and_heard(self):
        try:
            self.check_readable("first screen")
            self.open(LOADER0)
            self.add("loader:workers=2")
            self.press("#keep")
            self.add("amp,scale:where.kind=kernel")
            self.browser.wait_for("document.body.dataset.advised")
            self.browser.run("document.getElementById('add').value = 'flash'; document.getElementById('question').requestSubmit()")
            self.browser.wait_for("document.getElementById('refused').textContent")
            self.check_readable("alternatives and a refusal")
            self.browser.give_files("#other", [LOADER4])
            self.browser.wait_for("document.getElementById('shown').checkVisibility()")
            self.check_readable("two recordings")
            self.drop(self.made("cut.json.gz", LOADER0.read_bytes()[:60_000]))
            self.browser.wait_for("document.body.dataset.opened")
            self.check_readable("a damaged file")
        finally:
            self.browser.emulate(prefers_color_scheme="light")
            self.browser.resize()

    def test_a_large_recording_answers_at_once(self):
        if not LARGE.is_file():
            self.skipTest("FORETRACE_CORPUS names no folder of recordings")
        first = self.open(LARGE)
        self.browser.wait_for("document.body.dataset.advised")
        times = {}
        for steps in "scale:where.kind=kernel,factor=0.5", "fused_optimizer", "cuda_graphs":
            self.browser.run("document.getElementById('reset').click()")
            self.add(steps)
            times[steps] = int(self.browser.run("return document.body.dataset.answered"))
        print(f"\nfirst picture after {first} ms; new answers after {times} ms")


if __name__ == "__main__":
    if not (EXPLORER / "foretrace.wasm").is_file():
        print("skipped: the explorer is not built (scripts/explorer.py)")
        sys.exit(browser.SKIPPED)
    browser.require()
    unittest.main()
