"""Texts that look like commands, traces in which all names are such texts, and checks that no answer contains them unescaped."""

import base64
import csv
import hashlib
import io
import json
import os
import pickle
import re
import tarfile
import unicodedata
import xml.etree.ElementTree

# FORGED begins a line that the program did not mean to write: after a line break, or where wrapping may put it.
TEXTS = [
    "\x1b]0;owned\x07\x1b[31mred\x1b[2J",
    "\x9b31m\x85\x7f\x00\x08\x0c\x0b",
    "\r\n::error file=a.py,line=1::FORGED",
    "\n::set-output name=x::FORGED",
    "\n   ::add-mask::FORGED",
    "\n\u00a0\u3000\u200b::stop-commands::FORGED",
    "\rFORGED",
    "\n##[error]FORGED",
    "##vso[task.setvariable variable=PATH]FORGED",
    "##teamcity[buildStatus text='FORGED']",
    "\x1b[0Ksection_start:1:FORGED\r\x1b[0K",
    " ::error::FORGED" * 24,
    " ##[error]FORGED" * 12,
    "\u202eexe.gnp\u202c\u2066a\u2069\u200e\u200f\u061c",
    "\u2028FORGED\u2029::error::FORGED",
    "\u200b::error::FORGED\ufeff\u00ad\U000e0041",
    "\nFORGED  1 ms  100 %\n",
    "<img src=x onerror=\"document.title='FORGED'\">",
    "</script><script>document.title='FORGED'</script>",
    "<!-- FORGED --> </td></table><h1>FORGED",
    "[FORGED](javascript:alert(1)) ![FORGED](http://evil.example/x.png)",
    "@octocat fixes #1 and octo/cat#2, http://evil.example www.evil.example a@evil.example",
    "\n\n# FORGED\n\n| a | b |\n|---|---|\n| FORGED | `x` |\n",
    "a|b\\|c `d` *e* _f_ ~~g~~ $h$ &lt;",
    "=HYPERLINK(\"http://evil.example\";\"FORGED\")",
    "+1+cmd|' /C calc'!A0",
    "-1+1",
    "@SUM(1)",
    "\t=1+1",
    "\uff1d1+1",
    "',\"FORGED\",'\"",
    "\n- FORGED",
    "%0A::error::FORGED%0D",
    "]]><failure>FORGED</failure>\ufffe\uffff",
]


def named(number, word=""):
    """A name that contains one of the texts, at its beginning or end, and `word`, by which the program recognizes the name."""
    text = TEXTS[number % len(TEXTS)]
    return f"{word}{text}{number}" if word or number // len(TEXTS) % 2 else f"{text}{number}"


class Recording:
    """A few steps of a job on one GPU, in the format of PyTorch's profiler. Time is in microseconds."""

    def __init__(self):
        self.events = []
        self.now = 1000
        self.device_free = 0
        self.correlation = 0
        self.held = 0

    def add(self, cat, name, begin, end, process=1, thread=1, **args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": process, "tid": thread, "ts": begin, "dur": end - begin, "args": args})

    def allocate(self, size):
        self.held += size
        self.events.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": self.now,
                            "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096 + abs(size), "Bytes": size,
                                     "Total Allocated": self.held, "Total Reserved": 1 << 30}})

    def op(self, number, kernel, slower, call="cudaLaunchKernel"):
        """An op in a module that launches one kernel and allocates memory."""
        self.correlation += 1
        begin = self.now
        self.now += 5
        self.add("cuda_runtime", call, self.now, self.now + 5, correlation=self.correlation, cbid=211)
        start = max(self.now + 8, self.device_free)
        self.device_free = start + 40 * slower
        self.add("kernel", kernel, start, self.device_free, 0, 7, correlation=self.correlation, device=0, stream=7, context=1,
                 grid=[1, 1, 1], block=[32, 1, 1])
        self.now += 6
        self.allocate(1 << 20 | number << 9)
        self.now += 2
        self.add("cpu_op", named(number + 3), begin, self.now, **{"Call stack": f"{named(number + 5, 'train.py(12): ')};{named(number)}"})
        self.add("python_function", named(number + 7, "nn.Module: "), begin - 1, self.now + 1, **{"Python id": self.correlation})
        self.now += 3

    def step(self, number, slower, extra):
        begin = self.now
        self.now += 2
        for i in range(len(TEXTS)):
            self.op(i, named(i), slower)
        for i in range(extra):
            self.op(i, named(i + 11, "void more"), slower)
            self.correlation += 1
            self.now = self.device_free + 4
            self.add("cuda_runtime", "cudaStreamSynchronize", self.now - 10, self.now, correlation=self.correlation, cbid=131)
        for i in range(len(TEXTS) - 5):
            self.allocate(-(1 << 20 | i << 9))
            self.now += 1
        self.now = max(self.now, self.device_free + 5)
        self.correlation += 1
        self.add("cuda_runtime", "cudaDeviceSynchronize", self.now - 10, self.now, correlation=self.correlation, cbid=165)
        self.add("user_annotation", f"ProfilerStep#{number}", begin, self.now + 1)
        self.add("user_annotation", named(number, "loading "), begin + 1, begin + 2)
        self.now += 3

    def document(self, rank):
        for i, kind in enumerate(("process_name", "process_labels", "thread_name")):
            self.events.append({"ph": "M", "name": kind, "pid": 1, "tid": 1, "ts": 1, "args": {"name": named(i + 2), "labels": named(i + 3)}})
        return {"schemaVersion": 1, "baseTimeNanoseconds": 0, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
                "deviceProperties": [{"id": 0, "name": named(2, "GPU "), "totalGlobalMem": 1 << 34, "numSms": 8}],
                "hostname": named(3), "traceEvents": self.events}


def write_recording(path, slower=1, extra=0, rank=0):
    recording = Recording()
    for number in range(4):
        recording.step(number, slower, extra)
    # Odd records become notes with an example.
    recording.add("kernel", named(2, "no launch"), recording.now, recording.now + 5, 0, 7, correlation=99999, device=0, stream=7)
    recording.add(named(4), named(5), recording.now, recording.now + 5)
    path.write_text(json.dumps(recording.document(rank)))
    return path


def write_snapshot(path):
    """A snapshot of PyTorch's allocator; its stacks are hostile."""
    events = []
    for i in range(len(TEXTS)):
        frames = [{"name": named(i), "filename": named(i + 1), "line": i}, {"name": named(i + 2), "filename": "train.py", "line": 3}]
        events.append({"action": "alloc", "addr": 4096 + (i << 21), "size": 1 << 20, "stream": 0, "time_us": i + 1, "frames": frames})
    segment = {"device": 0, "address": 4096, "total_size": len(TEXTS) << 21, "allocated_size": 0, "active_size": 0, "stream": 0,
               "segment_type": "large", "blocks": []}
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [events]}, 4))
    return path


def write_archive(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


COMMAND = re.compile(r"##[A-Za-z]*\[")


def is_obeyed(character):
    """Control characters, marks that reorder or hide letters, and line separators: Unicode's categories Cc, Cf, Zl and Zp."""
    return unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") and character not in "\n\t"


def faults_of_bytes(answer, own_commands=()):
    """Faults of any answer: parts that a terminal or a build server would obey. Lines may begin with `own_commands`, as GitHub's do."""
    faults = []
    try:
        text = answer.decode()
    except UnicodeDecodeError:
        return ["bytes that are no UTF-8"]
    for line in text.split("\n"):
        if any(map(is_obeyed, line)):
            faults.append("control or hidden character")
        trimmed = "".join(c for c in line if not is_obeyed(c)).lstrip()
        if trimmed.startswith("::") and not any(re.fullmatch(own, line) for own in own_commands):
            faults.append("command at the begin of a line")
        if COMMAND.search(line):
            faults.append("command in a line")
    return faults


def faults_of_lines(answer):
    """Faults of text: lines that a name forged."""
    return ["forged line" for line in re.split(r"[\n\r\u2028\u2029]", answer.decode(errors="replace"))
            if re.match(r"\s*(#+|-|\|) ?FORGED|\s*FORGED  1 ms|FORGED$", line)]


def faults_of_markdown(answer):
    text = answer.decode(errors="replace").replace("<!-- -->", "\0")
    text = re.sub(r"(?<=\| )`[^`|\n]*`(?= \|)", "code", text)
    faults = faults_of_lines(answer)
    for pattern in (r"<[A-Za-z/!]", r"(?<!\\)\[FORGED(?<!\\)\]\(", r"@octocat", r"@SUM", r"a@evil", r"://evil", r"www\.evil", r"[ /t]#[12]\b",
                    r"(?<!\\)(?:\\\\)*[`$]", r"(?<!\\)(?:\\\\)*~~", r"&lt;(?=\d)"):
        faults += [f"markup {pattern}"] * len(re.findall(pattern, text))
    columns = 0
    for line in text.split("\n"):
        bars = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) if line.startswith("|") else 0
        if bars and columns and bars != columns:
            faults.append("broken table")
        columns = bars
    return faults


def faults_of_csv(answer):
    faults = []
    rows = list(csv.reader(io.StringIO(answer.decode(errors="replace"), newline="")))
    if len(rows) != answer.count(b"\n"):
        faults += ["broken record"] * (answer.count(b"\n") - len(rows))
    for row in rows:
        if len(row) != len(rows[0]):
            faults.append("broken record")
        for cell in row:
            formula = cell.startswith(("=", "+", "-", "@", "\t", "\r", "\uff1d"))
            faults += ["formula"] if formula and not re.fullmatch(r"-[0-9.]+(e-?[0-9]+)?|[-+=]", cell) else []
    return faults


def faults_of_json(answer):
    json.loads(answer)
    return []


def faults_of_json_lines(answer):
    for line in answer.split(b"\n")[:-1]:
        json.loads(line)
    return []


def faults_of_xml(answer):
    try:
        root = xml.etree.ElementTree.fromstring(answer)
    except xml.etree.ElementTree.ParseError as error:
        return [f"no XML: {error}"]
    inner = sum(1 for failure in root.iter("failure") if (failure.text or "").startswith("FORGED"))
    return ["forged test"] * inner + faults_of_lines(answer)


def faults_of_page(answer):
    """Faults of a page: scripts that it would run although its policy does not name their hashes."""
    text = answer.decode()
    policy = re.search(r"Content-Security-Policy\" content=\"([^\"]*)\"", text)[1]
    allowed = re.search(r"script-src([^;]*)", policy)[1].split()
    faults = ["scripts without a hash"] if "'unsafe-inline'" in allowed else []
    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    hashes = ["'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'" for script in scripts]
    faults += ["script that is not allowed"] * len([one for one in hashes if one not in allowed])
    faults += ["unused hash"] * len(set(allowed) - set(hashes) - {"'unsafe-inline'"})
    faults += ["injected tag"] * len(re.findall(r"<(?:img|h1>FORGED)|document\.title='FORGED'</script|</script><script>document", text))
    return faults + (["hidden character"] if any(map(is_obeyed, re.sub(r"<script.*?</script>", "", text, flags=re.S))) else [])


FORMS = {"text": faults_of_lines, "markdown": faults_of_markdown, "csv": faults_of_csv, "json": faults_of_json, "jsonl": faults_of_json_lines,
         "junit": faults_of_xml, "bencher": faults_of_json, "benchmark": faults_of_json, "github": lambda answer: [], "page": faults_of_page}


def file_name(text):
    """A hostile name that a file system accepts."""
    return os.fsencode(text.replace("/", "_").replace("\0", ""))[:120].decode(errors="surrogateescape")
