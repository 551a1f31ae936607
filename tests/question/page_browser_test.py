#!/usr/bin/env python3
"""Opens the pages that foretrace writes in a headless browser, as a person would: with wheel, keys and clicks.

Speaks WebDriver's HTTP with chromedriver, using only the standard library. Without chromedriver the test is skipped (exit
status 77). FORETRACE names the program; FORETRACE_CORPUS, where set, a folder with a large recording to measure the first paint on.
"""

import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import browser
from browser import AXE, CONTRASTS, Browser

FORETRACE = os.environ.get("FORETRACE", "foretrace")
ROOT = pathlib.Path(__file__).resolve().parents[2]
TRACES = ROOT / "traces"
ANSWERED = 0, 1, 4  # A page of what does not hold, or is not decided, is a page as well.
LARGE = "hta-ddp-v100-mem/df_index_resolver.json.gz"

RANGE = "const c = document.getElementById('timeline'); return [+c.dataset.from, +c.dataset.to]"


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.folder = tempfile.TemporaryDirectory()
        cls.page = cls.write("prediction", TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz", "--with", "recompute", "--memory-limit", "8GB")

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    @classmethod
    def write(cls, name, trace, *arguments, command="predict"):
        page = pathlib.Path(cls.folder.name) / f"{name}.html"
        done = subprocess.run([FORETRACE, *command.split("_"), trace, *arguments, "--html", page, "--quiet"], stdout=subprocess.DEVNULL)
        assert done.returncode in ANSWERED, done
        return page

    def setUp(self):
        self.browser.emulate(prefers_color_scheme="light")
        self.open(self.page)

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])

    def open(self, page):
        self.browser.open(page)
        self.browser.wait_for("document.getElementById('timeline').dataset.ready === 'yes'")

    def range(self):
        self.browser.frame()
        return self.browser.run(RANGE)

    def act(self, script):
        self.browser.run(script)
        self.browser.frame()

    def middle(self):
        """A place on the canvas, in coordinates of the window."""
        self.browser.run("document.getElementById('timeline').scrollIntoView({block: 'center', behavior: 'instant'})")
        return self.browser.run("const b = document.getElementById('timeline').getBoundingClientRect();"
                                "return [Math.round(b.left + b.width * .6), Math.round(b.top + b.height / 2)]")

    def test_zooms_with_the_wheel(self):
        from_before, to_before = self.range()
        self.browser.wheel(*self.middle(), -200)
        from_after, to_after = self.range()
        self.assertLess(to_after - from_after, to_before - from_before)
        self.assertGreater(from_after, from_before)

    def test_moves_by_dragging(self):
        from_before, to_before = self.range()
        self.browser.drag(*self.middle(), -150)
        from_after, to_after = self.range()
        self.assertGreater(from_after, from_before)
        self.assertLessEqual(abs((to_after - from_after) - (to_before - from_before)), 1)

    def test_zooms_and_moves_with_keys(self):
        self.act("document.getElementById('timeline').focus()")
        ranges = [self.range()]
        for key in "+", "\ue014", "-", "0", "w", "a", "s":  # \ue014 is the arrow to the right.
            self.browser.keys(key)
            ranges.append(self.range())
        widths = [to - start for start, to in ranges]
        self.assertLess(widths[1], widths[0])
        self.assertGreater(ranges[2][0], ranges[1][0])
        self.assertGreater(widths[3], widths[2])
        self.assertGreater(widths[4], widths[3])
        self.assertLess(widths[5], widths[4])
        self.assertLess(ranges[6][0], ranges[5][0])
        self.assertGreater(widths[7], widths[6])

    def test_tells_what_a_task_waits_for(self):
        self.act("document.getElementById('timeline').focus()")
        self.browser.keys(["\ue015", "]"])  # The arrow down.
        self.browser.wait_for("document.querySelector('#inspect dl')")
        self.assertIn("waits for", self.browser.run("return document.getElementById('inspect').textContent"))
        self.browser.wait_for("document.getElementById('said').textContent !== ''")

    def test_finds_tasks_by_name(self):
        self.act("const s = document.getElementById('search'); s.value = 'softmax'; s.dispatchEvent(new Event('input'))")
        self.browser.wait_for("/now: \\d+ tasks/.test(document.getElementById('matches').textContent)")
        self.act("document.getElementById('match-behind').click()")
        self.browser.wait_for("/softmax/i.test(document.querySelector('#inspect h3')?.textContent)")

    def test_draws_the_critical_path_only_if_asked(self):
        picture = "return document.getElementById('timeline').toDataURL()"
        with_path = self.browser.run(picture)
        self.act("document.getElementById('path').click()")
        without = self.browser.run(picture)
        self.assertNotEqual(with_path, without)
        self.act("document.getElementById('path').click()")
        self.assertEqual(with_path, self.browser.run(picture))

    def test_arranges_and_aligns(self):
        picture = "return document.getElementById('timeline').toDataURL()"
        before = self.browser.run(picture)
        choose = "const s = document.getElementById('{}'); s.value = '{}'; s.dispatchEvent(new Event('change'))"
        self.act(choose.format("arrange", "lanes"))
        in_turn = self.browser.run(picture)
        self.assertNotEqual(before, in_turn)
        self.act(choose.format("align", "start"))
        self.assertNotEqual(in_turn, self.browser.run(picture))

    def test_every_picture_has_a_table(self):
        for section in "time", "timelines", "schedule", "memory", "reactions", "certainty":
            with self.subTest(section):
                self.assertGreaterEqual(self.browser.run(f"return document.querySelectorAll('#{section} table').length"), 1)
        self.assertEqual(self.browser.run("return document.querySelectorAll('h1').length"), 1)
        unnamed = "return [...document.querySelectorAll('button, select, input')].filter(n => !n.labels?.length && " \
                  "!n.getAttribute('aria-label') && !n.textContent.trim()).map(n => n.id)"
        self.assertEqual(self.browser.run(unnamed), [])
        links = "return [...document.querySelectorAll('a')].filter(a => !document.querySelector(a.getAttribute('href'))).length"
        self.assertEqual(self.browser.run(links), 0)

    def test_can_be_read_in_both_themes(self):
        page = "return getComputedStyle(document.body).backgroundColor"
        self.assertEqual(self.browser.run(CONTRASTS), [])
        light = self.browser.run(page)
        self.browser.emulate(prefers_color_scheme="dark")
        self.browser.frame()
        self.assertNotEqual(light, self.browser.run(page))
        self.assertEqual(self.browser.run(CONTRASTS), [])
        self.act("document.getElementById('theme').click()")
        self.assertEqual(light, self.browser.run(page))
        self.browser.run("localStorage.clear()")

    def test_fits_a_narrow_window(self):
        self.browser.resize(380)
        sweep = pathlib.Path(self.folder.name) / "narrow.json"
        sweep.write_text(json.dumps({
            "version": 1, "trace": str(TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz"), "memory": {"limit": "8GB"},
            "transforms": [{"use": "scale", "where": {"kind": "kernel"}}, {"use": "recompute"}],
            "sweep": {"scale.factor": [0.5, 1], "recompute.share": [0, 1]}}))
        pages = [self.write("narrow", sweep, command="sweep"),
                 self.write("narrow_memory", TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz", command="memory")]
        try:
            self.open(self.page)
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 380)
            # Texts beside numbers are as wide as the page, one below the other.
            cut = "return [...document.querySelectorAll('.texts td.left')].filter(e => e.getBoundingClientRect().right > innerWidth).length"
            self.assertEqual(self.browser.run(cut), 0)
            for page in pages:
                self.browser.open(page)
                self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 380)
            self.browser.open(pages[0])
            # Axes keep their distance, so the picture scrolls.
            self.assertGreater(self.browser.run("return document.getElementById('parallel').getBoundingClientRect().width"), 600)
        finally:
            self.browser.resize()

    def test_tables_that_scroll_say_so(self):
        told = "return [...document.querySelectorAll('.table')].filter(e => e.checkVisibility()).map(e => [e.scrollWidth > e.clientWidth, " \
               "getComputedStyle(e, '::before').content.includes('more to the right')])"
        wide = self.browser.run(told)
        self.browser.resize(380)
        try:
            self.open(self.page)
            narrow = self.browser.run(told)
        finally:
            self.browser.resize()
        self.assertIn([True, True], narrow)
        self.assertTrue(all(scrolls == says for scrolls, says in wide + narrow))

    def asked(self):
        """The arguments of each question, for a page with most of what its pages can have."""
        trace, later = TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz", TRACES / "resnet18-v100-loader4.pt.trace.json.gz"
        recorded, folder = TRACES / "resnet18-v100-loader0.pt.trace.json.gz", pathlib.Path(self.folder.name)
        subprocess.run([FORETRACE, "check", trace, "--baseline", folder / "baseline.json", "--bless", "--quiet"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([FORETRACE, "predict", recorded, "--with", "loader:workers=4", "--format", "json", "-o", folder / "predicted.json", "--quiet"], check=True)
        (folder / "allocator.txt").write_text("malloc a 12MiB\nfree a\n")
        (folder / "jobs.json").write_text('{"jobs": [{"rates": {"1": 2, "4": 7}}]}')
        (folder / "sweep.json").write_text(json.dumps({
            "version": 1, "trace": str(trace), "memory": {"limit": "8GB"}, "transforms": [{"use": "scale", "where": {"kind": "kernel"}}, {"use": "recompute"}],
            "sweep": {"scale.factor": [0.5, 1], "recompute.share": [0, 1]}}))
        llama = "llama3-8b", "--machine", "dgx-h100"
        return {
            "advise": [trace], "check": [trace, "--baseline", folder / "baseline.json"],
            "collective": ["auto", "--machine", "dgx-h100", "--bytes", "8..1GB/x4"], "diff": [recorded, later], "doctor": [trace],
            "generate": ["bert-large", "--machine", "dgx-a100"], "info": [TRACES / "gpt-a100-two-ranks"],
            "input": [TRACES / "input-bound-v100.pt.trace.json.gz"], "kernels": [trace], "memory": [trace], "memory_replay": [folder / "allocator.txt"],
            "plan": ["bert-large", "--machine", "dgx-a100", "--gpus", "8", "--global-batch", "64"], "plan_allocate": [folder / "jobs.json", "--nodes", "4"],
            "plan_serve": [*llama, "--gpus", "1", "--load", "rate=4,input=200,output=30", "--slo", "ttft_p99=2s"],
            "plan_show": ["zb_h1:stages=4,micro_batches=8,forward=1ms,backward=1ms,weight=1ms"], "plan_size": [trace, "--gpus", "1..16"],
            "plan_system": [ROOT / "scenarios/claims/chimera.json"], "predict": [TRACES / "gpt-a100-two-ranks", "--with", "recompute", "--memory-limit", "8GB"],
            "scale": [trace, "--machine", "dgx-a100", "--gpus", "1..64"], "serve": [*llama, "--vary", "concurrency=1,4"],
            "sweep": [folder / "sweep.json"], "validate": [recorded], "verify": [folder / "predicted.json", later]}

    def test_every_page_fits_any_window_and_can_be_used_by_everyone(self):
        questions = [name for part in ("question", "studies") for name in
                     re.findall(r"^QUESTION\((\w+)", (ROOT / f"src/{part}/questions.def").read_text(), re.MULTILINE)]
        asked = self.asked()
        self.assertEqual(sorted(asked), sorted(questions))
        outside = "return [...document.querySelectorAll('.plot text, .plot circle, .bars svg')].filter(e => e.checkVisibility()).filter(e => { " \
                  "const b = e.getBoundingClientRect(); return b.left < 0 || b.right > innerWidth; }).map(e => e.textContent)"
        unnamed = "return [...document.querySelectorAll('.plot, .bars')].filter(e => e.role !== 'img' || !e.ariaLabel).length"
        try:
            for question, arguments in asked.items():
                page = self.write("everyone_" + question, *arguments, command=question)
                for width, theme in itertools.product((1280, 390), ("light", "dark")):
                    with self.subTest(question=question, width=width, theme=theme):
                        self.browser.emulate(prefers_color_scheme=theme)
                        self.browser.resize(width)
                        self.browser.open(page)
                        self.browser.frame()
                        if question in ("advise", "collective", "diff", "plan", "plan_show", "scale", "serve"):
                            self.assertGreater(self.browser.run("return document.querySelectorAll('.plot, .bars').length"), 0)
                        self.assertEqual(self.browser.run(outside), [])
                        self.assertEqual(self.browser.run(unnamed), 0)
                        self.assertEqual(self.browser.run(CONTRASTS), [])
                        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
                        if AXE.is_file():  # As scripts/explorer.py fetches it.
                            self.assertEqual(self.browser.barriers(), [])
        finally:
            self.browser.resize()

    def test_loads_nothing(self):
        self.assertEqual(self.browser.run("return performance.getEntriesByType('resource').map(e => e.name)"), [])

    def test_draws_without_a_what_if(self):
        self.open(self.write("recorded", TRACES / "resnet18-v100-loader0.pt.trace.json.gz"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('#align').length"), 0)

    def test_the_page_of_a_sweep_keeps_what_is_asked_for(self):
        scenario = pathlib.Path(self.folder.name) / "sweep.json"
        scenario.write_text(json.dumps({
            "version": 1, "trace": str(TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz"), "memory": {"limit": "8GB"},
            "transforms": [{"use": "scale", "where": {"kind": "kernel"}}],
            "sweep": {"memory.limit": ["8GB", "16GB"], "scale.factor": [0.5, 1, 1.5, 2]}}))
        self.browser.open(self.write("sweep", scenario, command="sweep"))
        for theme in "light", "dark":
            self.browser.emulate(prefers_color_scheme=theme)
            self.assertEqual(self.browser.run(CONTRASTS), [])
        # 8 GB hold what 16 GB hold of half, so a line parts the rows of the map.
        self.assertEqual(self.browser.run("return ['td.heat', '.heat.fails', '.heat.best', '.heat.edge-below'].map("
                                          "one => document.querySelectorAll(one).length)"), [8, 4, 1, 4])
        told = "document.getElementById('told').textContent"
        self.assertEqual(self.browser.run(f"return {told}"), "8 of 8 points")
        choose = "const of = document.querySelector('[aria-label=\"Only, of use\"]'); of.value = [...of].find(o => o.text === 'usable').value;"
        self.browser.run(choose + "of.dispatchEvent(new Event('change'));")
        self.assertEqual(self.browser.run(f"return {told}"), "4 of 8 points")
        self.browser.run("document.getElementById('all').click()")
        self.assertEqual(self.browser.run(f"return {told}"), "8 of 8 points")
        left, top, width, height, axes = self.browser.run(
            "const lines = document.getElementById('parallel'); lines.scrollIntoView({block: 'end', behavior: 'instant'}); const b = lines.getBoundingClientRect();"
            "return [b.left, b.top, b.width, b.height, page.data('sweep').axes.length]")
        x, y = round(left + 66 + (width - 132) / (axes - 1)), round(top + height - 20)  # Just below the low end of scale.factor.
        half = {"type": "pointerMove", "duration": 50, "x": x, "y": y - round((height - 84) / 2)}
        self.browser._pointer([{"type": "pointerMove", "duration": 0, "x": x, "y": y}, {"type": "pointerDown", "button": 0}, half,
                               {"type": "pointerUp", "button": 0}])
        self.assertEqual(self.browser.run(f"return {told}"), "4 of 8 points")
        self.assertTrue(self.browser.run("return document.documentElement.scrollWidth <= innerWidth"))
        self.browser.run("document.getElementById('all').click()")
        self.check_sorting()

    def check_sorting(self):
        """Sorts the table, which begins with the fastest, with a click and with the keyboard."""
        rows = "return [...document.querySelectorAll('#kept tbody tr')].map(row => row.cells[{}].textContent)"
        names = self.browser.run("return [...document.querySelectorAll('#kept th')].map(head => head.textContent)")
        sorts = "return [...document.querySelectorAll('#kept th')].map(head => head.ariaSort)"
        at = names.index("scale.factor")
        time = 1 + self.browser.run("return page.data('sweep').axes.findIndex(axis => axis.key === 'step_time_ns')")
        self.assertEqual(self.browser.run(sorts), ["ascending" if n == time else None for n in range(len(names))])
        button = f"document.querySelectorAll('#kept th button')[{at}]"
        self.act(f"{button}.click()")
        self.assertEqual(self.browser.run(rows.format(at)), ["0.5", "0.5", "1", "1", "1.5", "1.5", "2", "2"])
        self.act(f"{button}.focus()")
        self.browser.keys("\ue007")  # Enter.
        self.browser.frame()
        self.assertEqual(self.browser.run(rows.format(at)), ["2", "2", "1.5", "1.5", "1", "1", "0.5", "0.5"])
        self.assertEqual(self.browser.run(sorts), ["descending" if n == at else None for n in range(len(names))])
        self.assertTrue(self.browser.run(f"return document.activeElement === {button}"))
        self.browser.keys("\ue007")
        self.browser.frame()
        self.assertEqual(self.browser.run(sorts)[at], "ascending")

    def test_the_page_of_memory_works(self):
        self.browser.open(self.write("memory", TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz", command="memory"))
        self.browser.frame()
        picture = "return document.getElementById('blocks').toDataURL()"
        before = self.browser.run(picture)
        self.act("document.getElementById('blocks').focus()")
        self.browser.keys("+")
        self.browser.frame()
        self.assertNotEqual(before, self.browser.run(picture))
        self.assertEqual(self.browser.run(CONTRASTS), [])

    def test_a_click_on_a_block_shows_its_stack(self):
        self.browser.open(self.write("stacks", TRACES / "gpt-a100-two-ranks/rank0.pt.trace.json.gz", command="memory"))
        self.browser.frame()
        lines = self.browser.run("""
            const canvas = document.getElementById('blocks'), box = canvas.getBoundingClientRect();
            for (let x = .05; x < 1; x += .01) for (let y = .05; y < 1; y += .05) {
              canvas.dispatchEvent(new MouseEvent('click', {clientX: box.left + x * box.width, clientY: box.top + y * box.height}));
              const lines = [...document.getElementById('hover').children].map(line => line.textContent);
              if (lines.length > 5) return lines;
            }""")
        self.assertEqual(lines[-2:], ["model.py:61 forward", "model.py:83 forward"])

    def injected(self, page, policy):
        """Which of three injected scripts run in a page; `policy` edits the policy of the page."""
        text = policy(page.read_text())
        attacks = ("<script>document.body.dataset.inline = 'ran'</script><img src=x onerror=\"document.body.dataset.handler = 'ran'\">"
                   "<a id=evil href=\"javascript:void(document.body.dataset.link = 'ran')\">x</a></body>")
        forged = page.with_suffix(".forged.html")
        forged.write_text(text.replace("</body>", attacks))
        self.browser.open(forged)
        self.browser.run("document.getElementById('evil').click()")
        self.browser.frame()
        return self.browser.run("return ['inline', 'handler', 'link'].filter(name => document.body.dataset[name])")

    def test_a_script_that_got_into_a_page_does_not_run(self):
        pages = {"prediction": self.page, "memory": self.write("policy", TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz", command="memory")}
        for name, page in pages.items():
            with self.subTest(name):
                self.assertEqual(self.injected(page, lambda text: text), [])
                refusals = self.browser.complaints()
                self.assertTrue(refusals)
                self.assertTrue(all("Content Security Policy" in refusal for refusal in refusals), refusals)
                allowed = self.injected(page, lambda text: re.sub("script-src[^;]*", "script-src 'unsafe-inline'", text))
                self.assertEqual(allowed, ["inline", "handler", "link"])
                self.browser.complaints()

    def test_a_large_recording_is_there_at_once(self):
        trace = pathlib.Path(os.environ.get("FORETRACE_CORPUS", "")) / LARGE
        if not trace.is_file():
            self.skipTest("FORETRACE_CORPUS names no folder of recordings")
        page = self.write("large", trace, "--with", "amp")
        self.assertLess(page.stat().st_size, 6_000_000)
        self.open(page)
        painted, drawn = self.browser.run("return [performance.getEntriesByName('first-contentful-paint')[0].startTime, "
                                          "performance.getEntriesByName('timeline drawn')[0].startTime]")
        print(f"\n{page.stat().st_size / 1e6:.2f} MB, first paint after {painted:.0f} ms, timelines after {drawn:.0f} ms")
        before = self.range()
        self.browser.wheel(*self.middle(), -300)
        self.assertNotEqual(before, self.range())


if __name__ == "__main__":
    browser.require()
    unittest.main()
