"""A headless browser for tests, through WebDriver's HTTP and chromedriver, using only the standard library."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request

from processes import PATIENCE, no_signal_ignored, wait_until

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPLORER = pathlib.Path(os.environ.get("FORETRACE_EXPLORER", ROOT / "build-explorer" / "explorer"))
AXE = EXPLORER.parent / "sources" / "axe-core" / "axe.min.js"  # As scripts/explorer.py fetches it.


class Browser:
    """One headless session."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen([shutil.which("chromedriver"), f"--port={port}", "--silent"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=no_signal_ignored)
        self.address = f"http://127.0.0.1:{port}"
        self.session = ""
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self):
        wait_until(self._answers, "chromedriver")
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
                            "--window-size=1400,1000"]}
        wanted = {"browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": options,
                  "timeouts": {"script": PATIENCE * 1000, "pageLoad": PATIENCE * 1000}}
        started = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{started['sessionId']}"

    def _answers(self):
        assert self.driver.poll() is None, "chromedriver has ended"
        try:
            self._ask("GET", "/status")
            return True
        except (urllib.error.URLError, ConnectionError):
            return False

    def close(self):
        if self.session:
            self._ask("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait()

    def _ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()[:500]) from error

    def post(self, path, body):
        return self._ask("POST", self.session + path, body)

    def open(self, page):
        self.post("/url", {"url": page.as_uri()})

    def visit(self, address):
        self.post("/url", {"url": address})

    def give_files(self, selector, paths):
        """Chooses files in an <input>, which replace the current ones."""
        self.run(f"document.querySelector({json.dumps(selector)}).value = ''")
        (element,) = self.post("/element", {"using": "css selector", "value": selector}).values()
        self.post(f"/element/{element}/value", {"text": "\n".join(map(str, paths))})

    def command(self, name, **parameters):
        """Sends a command of the DevTools."""
        return self.post("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def frame(self):
        """Waits until a picture is complete."""
        self.post("/execute/async", {"script": "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))", "args": []})

    def run(self, script):
        return self.post("/execute/sync", {"script": script, "args": []})

    def barriers(self):
        """What keeps people with disabilities from using the page, as axe finds it. REQUIRES: AXE.is_file()"""
        self.run("if (!window.axe) {" + AXE.read_text() + "}")
        script = ("const done = arguments[0];"
                  "axe.run().then(r => done(r.violations.map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html).join(' ; '))))")
        return self.post("/execute/async", {"args": [], "script": script})

    def wait_for(self, script):
        wait_until(lambda: self.run(f"return {script}"), script, every=0.02)

    def keys(self, keys):
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def _pointer(self, moves):
        self.post("/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}]})

    def drag(self, x, y, by):
        down, up = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
        move = {"type": "pointerMove", "duration": 50, "x": x + by, "y": y}
        self._pointer([{"type": "pointerMove", "duration": 0, "x": x, "y": y}, down, move, up])

    def wheel(self, x, y, by):
        scroll = {"type": "scroll", "x": x, "y": y, "deltaX": 0, "deltaY": by, "duration": 0, "origin": "viewport"}
        self.post("/actions", {"actions": [{"type": "wheel", "id": "wheel", "actions": [scroll]}]})

    def emulate(self, **features):
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.command("Emulation.setEmulatedMedia", features=named)

    def resize(self, width=None, height=800):
        """The size of the window; None: its own."""
        if width is None:
            self.command("Emulation.clearDeviceMetricsOverride")
        else:
            self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def complaints(self):
        return [line["message"] for line in self.post("/se/log", {"type": "browser"})]


# Texts with too little contrast to their background, by WCAG's rules.
CONTRASTS = """
// Mixed colours have parts from 0 to 1, others from 0 to 255.
const parse = text => (text.match(/[\\d.]+/g) ?? []).map((part, i) => i < 3 && text.startsWith('color(') ? 255 * part : +part);
const part = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const light = ([r, g, b]) => .2126 * part(r) + .7152 * part(g) + .0722 * part(b);
const behind = node => {
  for (let at = node; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
const low = [];
const check = (node, front, back) => {
  const [a, b] = [light(front), light(back)].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
  if (ratio < 4.5) low.push(node.tagName + ' ' + node.textContent.trim().slice(0, 40) + ' ' + ratio.toFixed(2));
};
for (const node of document.querySelectorAll('main *, header *, footer, nav *')) {
  if (node.closest('svg') || !node.checkVisibility() || ![...node.childNodes].some(c => c.nodeType === 3 && c.data.trim())) continue;
  check(node, parse(getComputedStyle(node).color), behind(node));
}
for (const text of document.querySelectorAll('svg text')) {
  const bar = text.parentElement.querySelector(':scope > rect');
  check(text, parse(getComputedStyle(text).fill), bar ? parse(getComputedStyle(bar).fill) : behind(text));
}
return low;
"""


def require():
    """Ends the test as skipped if there is no browser."""
    if not shutil.which("chromedriver") or not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        print("skipped: there is no browser with chromedriver (scripts/setup.sh all)")
        sys.exit(SKIPPED)
    try:
        Browser().close()
    except (OSError, AssertionError) as problem:
        print(f"skipped: no browser starts here: {problem}")
        sys.exit(SKIPPED)
