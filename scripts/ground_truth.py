#!/usr/bin/env python3
"""Runs small real models with and without one change at a time, so that predictions can be compared with the truth.

On a machine with a GPU, PyTorch and a built foretrace, this is the whole command. When it runs again, it continues where it stopped:

    scripts/ground_truth.py check --out "$OUT"; scripts/ground_truth.py --minutes 6 --bundle "$OUT/traces.tar"

Before the next call on another machine, unpack the bundles into traces/, because they hold the finished work (tar -C traces -xf).
For each case, two processes (before and after the change) train in turn, A B A B, and their step times are measured
without any profiler. Then each side's memory is taken, it is recorded by torch.profiler, and once more, in a process of
its own, by `foretrace collect`. Results go to traces/ground_truth.json, traces to traces/ground_truth/.

    scripts/ground_truth.py [run]          measure; finished cases are skipped, failed ones need --retry
    scripts/ground_truth.py --list         show the plan
    scripts/ground_truth.py evaluate       compare predictions with the measurements
    scripts/ground_truth.py steps FILE     time steps of decoders over a grid of batches and contexts
    scripts/ground_truth.py check          check eight properties of the collector that only a GPU can show
    scripts/ground_truth.py --dry-run --out FOLDER     the same with made-up times and the sample traces, without a GPU

Only the standard library and torch are needed: models and data are made here, from a seed.
Exit codes: 0 all done; 1 something is left, failed or (check) wrong; 2 usage; 3 no torch or no GPU.
"""

import argparse
import json
import os
import pathlib
import shutil
import sys

from ground_truth import plan, process, results

ROOT = pathlib.Path(__file__).resolve().parents[1]


def find_foretrace(given):
    """The program to use: the given one, $FORETRACE, the one in a build folder, or the one on PATH."""
    if given or os.environ.get("FORETRACE"):
        return pathlib.Path(given or os.environ["FORETRACE"])
    built = sorted(ROOT.glob("build*/**/foretrace"), key=lambda path: path.stat().st_mtime)
    built = [path for path in built if path.is_file() and os.access(path, os.X_OK)]
    found = built[-1] if built else shutil.which("foretrace")
    return pathlib.Path(found) if found else None


def with_collector(foretrace):
    """The program if it can collect, else None."""
    if foretrace is None or not foretrace.exists():
        return None
    code, _, _ = process.run([str(foretrace), "collect", "--help"], 30, process.Clock(None))
    return foretrace if code == 0 else None


def show_plan(items, kept):
    for item in items:
        entry = kept.entry(item.id) if kept else None
        state = entry["status"] if entry else ""
        if isinstance(item, plan.Case):
            predict = " ".join(f"--with {step}" for step in item.predict) if item.predict else "-"
            print(f"{item.id:28} {state:7} {item.before.key} -> {item.after.key}   {predict}")
        else:
            print(f"{item.id:28} {state:7} {', '.join(plan.LEVELS)}")
    print(f"{len(items)} items, {len(plan.sides(items))} sides")


def run(options):
    from ground_truth import campaign, provenance
    items = plan.items(options.only)
    if options.list:
        begun = (pathlib.Path(options.out) / results.NAME).exists()
        show_plan(items, results.Results(options.out, options.dry_run) if begun else None)
        return 0
    why = None if options.dry_run else provenance.missing()
    if why is not None:
        print(f"ground_truth.py: nothing can be measured here: {why}; --dry-run --out FOLDER tries the bookkeeping",
              file=sys.stderr)
        return 3
    clock = process.Clock(options.minutes)
    kept = results.Results(options.out, options.dry_run)
    options.foretrace = None if options.dry_run else with_collector(find_foretrace(options.foretrace))
    if options.foretrace is None and not options.dry_run:
        campaign.say("ground_truth.py: no foretrace with a collector was found; traces come from torch.profiler alone")
    number = kept.provenance(provenance.facts(options.dry_run, sys.argv))
    left = campaign.Campaign(items, kept, clock, options, number).run()
    kept.save()
    if options.bundle:
        for part in results.bundle(kept, options.bundle):
            campaign.say(f"{part}: {part.stat().st_size} bytes")
    failed = [item.id for item in items if kept.given_up(item.id)]
    done = len(items) - left - len(failed)
    print(f"{done} of {len(items)} done, {len(failed)} failed, {left} left")
    for name in failed:
        print(f"  failed: {name}")
    return 1 if left or failed else 0


def evaluate_command(options):
    from ground_truth import evaluate
    foretrace = find_foretrace(options.foretrace)
    if foretrace is None:
        raise ValueError("no foretrace was found; give --foretrace FILE")
    found = evaluate.rows(options.file, foretrace)
    if options.format == "json":
        print(json.dumps({"rows": found, "classes": evaluate.classes(found)}, indent=1))
    else:
        print(evaluate.text(found, results.read(options.file)["dry_run"]))
    return 1 if not found or any("message" in row for row in found) else 0


def check_command(options):
    from ground_truth import check
    return check.main(options, find_foretrace(options.foretrace))


def steps_command(options):
    from ground_truth import provenance
    why = provenance.missing()
    if why is not None:
        print(f"ground_truth.py: nothing can be measured here: {why}", file=sys.stderr)
        return 3
    from ground_truth import serving
    serving.time_grid(options.file, process.Clock(options.minutes))
    return 0


def positive(text):
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be more than 0, got {text}")
    return value


def parser():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = made.add_subparsers(dest="what", metavar="COMMAND")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--foretrace", metavar="FILE", help="the program; otherwise $FORETRACE, the newest in build*/, PATH")
    running = commands.add_parser("run", parents=[shared], help="measure (also without naming it)")
    running.add_argument("--list", action="store_true", help="show the plan, and which items are done")
    running.add_argument("--only", action="append", default=[], metavar="MODEL[/CHANGE]", help="may be repeated")
    running.add_argument("--out", metavar="FOLDER", help="where results go (default: traces/)")
    running.add_argument("--minutes", type=positive, help="begin no item that would take longer")
    running.add_argument("--megabytes", type=positive, default=60, help="for all traces together (default: 60)")
    running.add_argument("--limit", type=positive, default=300, help="most seconds for a process to get ready (default: 300)")
    running.add_argument("--retry", action="store_true", help="try failed items again")
    running.add_argument("--bundle", metavar="FILE.tar", help="pack new files into FILE.tar, FILE.2.tar, ... of at most 15 MB")
    running.add_argument("--dry-run", action="store_true", help="without a GPU: made-up times, sample traces; needs --out")
    looking = commands.add_parser("evaluate", parents=[shared], help="compare predictions with the measurements")
    looking.add_argument("file", nargs="?", default=str(ROOT / "traces" / results.NAME))
    looking.add_argument("--format", choices=("text", "json"), default="text")
    timing = commands.add_parser("steps", help="time steps of decoders over a grid")
    timing.add_argument("file", metavar="FILE.csv")
    timing.add_argument("--minutes", type=positive, help="stop before this is over")
    checking = commands.add_parser("check", parents=[shared], help="try the collector on this GPU")
    checking.add_argument("--out", metavar="FOLDER",
                          help="for collector_check.json and the raw buffers (default: tests/collect/golden/)")
    checking.add_argument("--only", type=int, action="append", default=[], metavar="NUMBER",
                          help="only this point; may be repeated")
    checking.add_argument("--dry-run", action="store_true", help="without a GPU: look at a sample trace instead; needs --out")
    return made


def main(argv):
    if argv[:1] == ["worker"]:  # Started often, so it skips the imports below.
        from ground_truth import worker
        return worker.main(argv[1:])
    if not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help")):
        argv = ["run", *argv]
    made = parser()
    options = made.parse_args(argv)
    if getattr(options, "dry_run", False) and not options.out:
        made.error("--dry-run: must come with --out FOLDER, as made-up results have no place in traces/")
    real = (ROOT / "traces", ROOT / "tests" / "collect" / "golden")
    if getattr(options, "dry_run", False) and pathlib.Path(options.out).resolve() in real:
        made.error(f"--dry-run: --out must be another folder than {options.out}, which holds real results")
    try:
        if options.what == "run":
            options.out = options.out or str(ROOT / "traces")
            return run(options)
        return {"evaluate": evaluate_command, "steps": steps_command, "check": check_command}[options.what](options)
    except (ValueError, OSError) as error:
        print(f"ground_truth.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
