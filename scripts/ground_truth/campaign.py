"""Runs the cases of the plan as far as time allows, and keeps the results."""

import gzip
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

from ground_truth import plan, played, process, results, statistics_of
from ground_truth.process import Failed, OutOfTime, Worker

ROUNDS = 4
ROUND_S = 0.8  # A round takes about this long,
ROUND_STEPS = (6, 30)  # within these limits.
PROFILED_STEPS = 4
COLLECTED_STEPS = 6  # Marks show where steps begin, so the first and the last step of a window are incomplete.
REFILL_S = 1.0  # After a round, loader processes prepare batches ahead, which would disturb the other side's round.
OVERHEAD_STEPS = 20
GUESS_S = {"compile": 150}
USUAL_GUESS_S = 45


def say(text):
    print(text, file=sys.stderr, flush=True)


class Budget:
    """Bytes that a trace may take. No trace may take much more than its share, so that there is room for the last ones."""

    def __init__(self, kept, megabytes, traces):
        self.kept, self.limit = kept, megabytes * 1_000_000
        self.most_each = max(4 * self.limit // max(traces, 1), 100_000)

    def room(self):
        return min(self.most_each, self.limit - self.kept.used_bytes())


class Campaign:
    def __init__(self, items, kept, clock, options, provenance):
        self.items, self.kept, self.clock, self.options, self.provenance = items, kept, clock, options, provenance
        self.workers = {}
        self.budget = Budget(kept, options.megabytes, 2 * len(plan.sides(items)))

    def run(self):
        """Returns the number of items that are still to be done."""
        try:
            for number, item in enumerate(self.items):
                if not self.settled(item):
                    self.attempt(item)
                self.close_workers(self.items[number + 1:])
        except OutOfTime:
            say("time is up")
        finally:
            self.close_workers([])
        return sum(not self.settled(item) for item in self.items)

    def settled(self, item):
        return self.kept.finished(item.id) or (self.kept.given_up(item.id) and not self.options.retry)

    def attempt(self, item):
        needed = self.estimate(item)
        if self.clock.left() < needed:
            say(f"{item.id}: left for later, needs about {needed:.0f} s")
            return
        begun = time.monotonic()
        entry = {"id": item.id, "status": "failed", "provenance": self.provenance}
        kind = "cases" if isinstance(item, plan.Case) else "overhead"
        try:
            if self.kept.begin(item.id) > results.MOST_ATTEMPTS:
                raise Failed(f"took the campaign down {results.MOST_ATTEMPTS} times")
            entry.update(self.case(item) if kind == "cases" else self.overhead(item), status="done")
        except Failed as failure:
            entry["message"] = str(failure)
            self.close_workers([])  # The failure may have left the device unusable for them.
        except OutOfTime:
            self.kept.not_begun(item.id)
            raise
        entry["spent_s"] = round(time.monotonic() - begun, 1)
        if kind == "cases":
            entry.update(model=item.model, change=item.change, summary=plan.CHANGES[item.change].summary,
                         predict=item.predict)
        self.kept.put(kind, entry)
        say(f"{item.id}: {entry.get('message') or self.summary(entry)} ({entry['spent_s']:.0f} s)")

    def estimate(self, item):
        """Seconds that an item will take, estimated from other items of its kind."""
        if isinstance(item, plan.Overhead):
            kin, guess = self.kept.all["overhead"], 90
        else:
            done = [kept for kept in self.kept.all["cases"] if kept["status"] == "done"]
            kin = [kept for kept in done if kept["change"] == item.change]
            guess = GUESS_S.get(item.change, USUAL_GUESS_S)
            if item.change not in GUESS_S:
                kin = kin or done
        if kin:
            return 1.2 * max(kept["spent_s"] for kept in kin)
        return 0 if self.options.dry_run else guess

    @staticmethod
    def summary(entry):
        if "before" not in entry:
            return ", ".join(f"{level['level']} {level['slowdown'] - 1:+.1%}" for level in entry["levels"])
        before, after = (entry[name]["step_time_ns"] for name in ("before", "after"))
        return f"{before / 1e6:.2f} ms to {after / 1e6:.2f} ms, {before / after:.2f} times as fast"

    def close_workers(self, items_left):
        needed = set(plan.sides([item for item in items_left if not self.settled(item)][:6]))
        for key in [key for key in self.workers if key not in needed]:
            self.workers.pop(key).close()

    def ready(self, sides):
        """The workers of these sides. Those that do not run yet are started at the same time."""
        new = [side for side in sides if side.key not in self.workers]
        for side in new:
            self.workers[side.key] = Worker(side, self.options.dry_run, self.clock)
            self.workers[side.key].send({"do": "prepare"})
        for side in new:
            self.workers[side.key].facts = self.workers[side.key].answer(self.options.limit)
        return [self.workers[side.key] for side in sides]

    def case(self, case):
        sides = (case.before, case.after)
        workers = self.ready(sides)
        rounds = [[], []]
        steps = [ROUND_STEPS[0], ROUND_STEPS[0]]
        for number in range(ROUNDS + 1):
            for which, worker in enumerate(workers):
                measured = worker.ask("time", steps=steps[which])
                if worker.side.workers and not self.options.dry_run:
                    time.sleep(REFILL_S)
                step_s = statistics.median(measured["device_ns"]) / 1e9
                if number > 0:  # A round before the first one determines the length of the others.
                    rounds[which].append(measured)
                steps[which] = max(ROUND_STEPS[0], min(ROUND_STEPS[1], round(ROUND_S / max(step_s, 1e-6))))
                if worker.side.workers:  # Twice what is ready when a round begins, or no steady turn is seen.
                    steps[which] = max(steps[which], 4 * worker.side.workers + 1)
        told = {}
        for name, side, worker, measured in zip(("before", "after"), sides, workers, rounds):
            recorded = self.record(side, worker, plan.CHANGES[case.change].memory)
            told[name] = {"side": side.key, "settings": side.as_json(), **statistics_of.of_rounds(measured, side.workers),
                          **recorded}
            told[name]["noise"] = statistics_of.noise(told[name])
        return told

    def record(self, side, worker, snapshot):
        """Records the memory and the traces of a side once, because they are the same in every case."""
        fresh = {"traces": {}, "notes": [], "provenance": self.provenance, **worker.facts}
        found = self.kept.all["sides"].setdefault(side.key, fresh)
        if "memory" not in found:
            found["memory"] = self.guarded(found, "memory", lambda: worker.ask("memory", steps=3))
            self.guarded(found, "kineto", lambda: self.profile(side, worker, found))
            if side.key in plan.begun_from():
                self.guarded(found, "ftrace", lambda: self.collect(side, found))
        if snapshot and "snapshot" not in found["traces"]:
            self.guarded(found, "snapshot", lambda: self.snapshot(side, worker, found))
        self.kept.save()
        told = ("memory", "traces", "notes", "parameters", "loss", "profiled_step_time_ns", "collected_step_time_ns")
        return {name: found[name] for name in told if name in found}

    @staticmethod
    def guarded(found, what, action):
        """A side may lack one of its extras; the reason is stored with it."""
        try:
            return action()
        except Failed as failure:
            found["notes"].append(f"{what}: {failure}")
            return None

    def profile(self, side, worker, found):
        steps = PROFILED_STEPS
        while True:
            with tempfile.TemporaryDirectory() as folder:
                raw = pathlib.Path(folder) / "trace.json"
                told = worker.ask("profile", steps=steps, path=str(raw), limit_s=180)
                packed = gzip.compress(raw.read_bytes(), 9, mtime=0)
            if len(packed) <= self.budget.room():
                break
            if steps == 1:
                raise self.too_large("a trace of one step", packed)
            steps //= 2
        found["traces"]["kineto"] = {**self.keep(f"{side.key}.pt.trace.json.gz", packed), "steps": steps}
        found["profiled_step_time_ns"] = round(statistics.median(told["device_ns"]))

    def too_large(self, what, content):
        return Failed(f"{what} takes {len(content)} bytes, and there is room for {self.budget.room()}")

    def keep(self, name, content):
        path = self.kept.folder / name
        results.write_atomically(path, content)
        return self.kept.describe(path)

    def collect(self, side, found):
        if self.options.foretrace is None and not self.options.dry_run:
            raise Failed("no foretrace with a collector was found")
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace.ftrace"
            told = process.recorded(side, self.options.foretrace, trace, COLLECTED_STEPS, self.clock, ops=False,
                                    played=self.options.dry_run)
            name = f"{side.key}.ftrace"
            if self.options.dry_run:
                name = f"{side.key}.collected.pt.trace.json.gz"
                shutil.copy(played.sample(side), trace)
            if not trace.exists():
                raise Failed(f"foretrace collect wrote no trace: {process.last_words(told['said'])}")
            content = trace.read_bytes()
        if len(content) > self.budget.room():
            raise self.too_large("the trace", content)
        found["traces"]["ftrace"] = {**self.keep(name, content), "steps": COLLECTED_STEPS}
        found["collected_step_time_ns"] = round(statistics.median(told["inside"]["device_ns"][1:]))

    def snapshot(self, side, worker, found):
        with tempfile.TemporaryDirectory() as folder:
            raw = pathlib.Path(folder) / "snapshot.pickle"
            worker.ask("snapshot", steps=2, path=str(raw))
            packed = gzip.compress(raw.read_bytes(), 9, mtime=0)
        if len(packed) > self.budget.room():
            raise self.too_large("the snapshot", packed)
        found["traces"]["snapshot"] = self.keep(f"{side.key}.snapshot.pickle.gz", packed)

    def overhead(self, item):
        """Step times in the recorded window, by what is recorded. "off" is measured first and last, to show drift."""
        if self.options.foretrace is None and not self.options.dry_run:
            raise Failed("no foretrace with a collector was found")
        times = {level: [] for level in plan.LEVELS}
        notes = []
        for level in [*plan.LEVELS, "off"]:
            try:
                times[level].append(self.overhead_run(item.side, plan.LEVELS[level]))
            except Failed as failure:
                notes.append(f"{level}: {failure}")
        if not times["off"]:
            raise Failed(notes[0])
        base = statistics.median(sum(times["off"], []))
        levels = []
        for level, runs in times.items():
            if runs:
                step = statistics.median(sum(runs, []))
                levels.append({"level": level, **(plan.LEVELS[level] or {}), "step_time_ns": round(step),
                               "slowdown": step / base, "steps_ns": runs})
        return {"model": item.model, "settings": item.side.as_json(), "levels": levels, "notes": notes}

    def overhead_run(self, side, what):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace.ftrace" if what else None
            what = what or {}
            told = process.recorded(side, self.options.foretrace, trace, OVERHEAD_STEPS, self.clock,
                                    record=what.get("record"), ops=what.get("ops", False), played=self.options.dry_run)
        return told["inside"]["device_ns"][1:]
