"""ground_truth.json and the files beside it. It is also the state of the campaign: it has everything that a later call needs."""

import hashlib
import json
import os
import pathlib
import re
import tempfile

SCHEMA = "foretrace.ground_truth/1"
NAME = "ground_truth.json"
FOLDER = "ground_truth"  # Of the traces, beside the file.
MOST_ATTEMPTS = 3


class Results:
    def __init__(self, out, dry_run):
        self.out = pathlib.Path(out)
        self.path = self.out / NAME
        self.folder = self.out / FOLDER
        self.all = {"schema": SCHEMA, "dry_run": dry_run, "provenance": [], "cases": [], "overhead": [], "sides": {},
                    "attempts": {}, "bundled": []}
        if self.path.exists():
            kept = read(self.path)
            if kept.get("dry_run", False) != dry_run:
                what = "played" if kept.get("dry_run") else "measured"
                raise ValueError(f"{self.path}: holds {what} results, which do not mix; give another --out")
            self.all.update(kept)
        self.folder.mkdir(parents=True, exist_ok=True)

    def save(self):
        write_atomically(self.path, as_text(self.all).encode())

    def provenance(self, facts):
        """The index of these facts in the list. Facts of a machine that was seen before are not repeated."""
        lasting = {name: value for name, value in facts.items() if name not in ("date", "command", "clocks")}
        for number, kept in enumerate(self.all["provenance"]):
            if {name: value for name, value in kept.items() if name not in ("date", "command", "clocks")} == lasting:
                return number
        self.all["provenance"].append(facts)
        return len(self.all["provenance"]) - 1

    def entry(self, item_id):
        for kept in self.all["cases"] + self.all["overhead"]:
            if kept["id"] == item_id:
                return kept
        return None

    def finished(self, item_id):
        kept = self.entry(item_id)
        return kept is not None and kept["status"] == "done"

    def given_up(self, item_id):
        kept = self.entry(item_id)
        return kept is not None and kept["status"] == "failed"

    def put(self, kind, entry):
        entries = self.all[kind]
        entries[:] = [kept for kept in entries if kept["id"] != entry["id"]] + [entry]
        self.all["attempts"].pop(entry["id"], None)
        self.save()

    def begin(self, item_id):
        """Counts the attempt before it is made, so that a case that takes the whole campaign down is noticed."""
        attempts = self.all["attempts"].get(item_id, 0) + 1
        self.all["attempts"][item_id] = attempts
        self.save()
        return attempts

    def not_begun(self, item_id):
        """An attempt that ran out of time says nothing about the case."""
        self.all["attempts"][item_id] = max(0, self.all["attempts"].get(item_id, 1) - 1)
        self.save()

    def used_bytes(self):
        return sum(path.stat().st_size for path in self.folder.iterdir() if path.is_file())

    def describe(self, path):
        content = path.read_bytes()
        return {"path": str(path.relative_to(self.out)), "bytes": len(content),
                "sha256": hashlib.sha256(content).hexdigest()}


def as_text(document):
    """JSON with an entry per line, but lists of numbers in one line: there are thousands of step times."""
    text = json.dumps(document, indent=1, sort_keys=True)
    return re.sub(r"\[[\s\d.,eE+-]*\]", lambda found: " ".join(found[0].split()).replace("[ ", "[").replace(" ]", "]"),
                  text) + "\n"


def read(path):
    try:
        kept = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: must be JSON: {error}") from None
    if not isinstance(kept, dict) or kept.get("schema") != SCHEMA:
        raise ValueError(f"{path}: must have the schema {SCHEMA}")
    return kept


def write_atomically(path, content):
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def bundle(results, archive, part_bytes=15_000_000, most_parts=6):
    """Packs the files that were not packed before, and the results, into archive, archive.2.tar, ...; returns their paths.

    Each part stays below `part_bytes`; files that do not fit into the last part wait for the next bundle."""
    import tarfile
    archive = pathlib.Path(archive)
    new = sorted(path for path in results.folder.iterdir()
                 if not path.name.startswith(".") and str(path.relative_to(results.out)) not in results.all["bundled"])
    parts, room = [[]], part_bytes - results.path.stat().st_size - 64_000
    for path in new:
        size = path.stat().st_size + 2048
        if size > room and parts[-1]:
            if len(parts) == most_parts:
                break
            parts.append([])
            room = part_bytes - 64_000
        if size <= room:
            parts[-1].append(path)
            room -= size
    results.all["bundled"] += [str(path.relative_to(results.out)) for part in parts for path in part]
    results.save()
    written = []
    for number, part in enumerate(parts, 1):
        name = archive if number == 1 else archive.with_suffix(f".{number}{archive.suffix}")
        with tarfile.open(name, "w") as tar:
            for path in ([results.path] if number == 1 else []) + part:
                tar.add(path, str(path.relative_to(results.out)))
        written.append(name)
    return written
