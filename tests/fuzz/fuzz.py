#!/usr/bin/env python3
"""Fuzzes the targets one after another, keeps what reaches new code, and writes the table of README.md.

    fuzz.py [--minutes 20] [--jobs 1] [--build build-fuzz] [TARGET...]

Each target begins with what is kept in corpus/TARGET.tar.xz. Afterwards the fewest inputs that reach the
same code are kept there, and the minutes and executions are added to those of runs.tsv. An input that
crashes, hangs or takes too much memory is written to found/; the exit status is then 1.
"""

import argparse
import concurrent.futures
import datetime
import io
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
CORPUS, FOUND, RUNS, README = HERE / "corpus", HERE / "found", HERE / "runs.tsv", HERE / "README.md"
# Of an input, so that what is kept stays small; longer ones reach little that these do not.
MOST_BYTES = 4096
SECONDS_OF_AN_INPUT = 25
MEGABYTES = 4096
COLUMNS = ("target", "minutes", "executions", "inputs", "coverage", "last")
TABLE = re.compile(r"(?<=<!-- runs -->\n).*?(?=<!-- end -->)", re.DOTALL)


def targets():
    return sorted(path.name.removesuffix("_fuzz.cc") for path in HERE.glob("*_fuzz.cc"))


def unpack(target, folder):
    archive = CORPUS / f"{target}.tar.xz"
    if archive.exists():
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")


def pack(target, folder):
    """The same bytes for the same inputs. Names are numbers, the shortest input first."""
    CORPUS.mkdir(exist_ok=True)
    inputs = sorted((path.read_bytes() for path in folder.iterdir()), key=lambda content: (len(content), content))
    with tarfile.open(CORPUS / f"{target}.tar.xz", "w:xz", format=tarfile.USTAR_FORMAT) as tar:
        for number, content in enumerate(inputs):
            entry = tarfile.TarInfo(f"{number:05}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return len(inputs)


def fuzzer(build, target, *arguments, quiet=False):
    FOUND.mkdir(exist_ok=True)
    limits = [f"-timeout={SECONDS_OF_AN_INPUT}", f"-rss_limit_mb={MEGABYTES}", f"-max_len={MOST_BYTES}"]
    command = [str(build / "tests" / "fuzz" / f"{target}_fuzz"), *limits, f"-artifact_prefix={FOUND}/{target}-", *map(str, arguments)]
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1"}
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, check=False)


def fuzz(build, target, minutes):
    """What became of it: a row, and whether nothing was found."""
    with tempfile.TemporaryDirectory(prefix="foretrace-fuzz-") as place:
        grown, least = pathlib.Path(place, "grown"), pathlib.Path(place, "least")
        grown.mkdir()
        least.mkdir()
        unpack(target, grown)
        start = time.monotonic()
        done = fuzzer(build, target, f"-max_total_time={round(60 * minutes)}", "-print_final_stats=1", grown)
        spent = (time.monotonic() - start) / 60
        words = done.stderr.decode(errors="replace")
        executions = re.findall(r"stat::number_of_executed_units:\s*(\d+)", words)
        if done.returncode != 0:
            print(f"{target}: exit status {done.returncode}\n{words[-3000:]}", file=sys.stderr)
        merged = fuzzer(build, target, "-merge=1", least, grown)
        coverage = re.findall(r"cov: (\d+)", merged.stderr.decode(errors="replace"))
        kept = pack(target, least if merged.returncode == 0 else grown)
    row = {"target": target, "minutes": spent, "executions": int(executions[-1]) if executions else 0, "inputs": kept,
           "coverage": coverage[-1] if coverage else "-", "last": datetime.date.today().isoformat()}
    return row, done.returncode == 0


def read_runs():
    if not RUNS.exists():
        return {}
    lines = [line.split("\t") for line in RUNS.read_text(encoding="utf-8").splitlines()[1:]]
    return {line[0]: dict(zip(COLUMNS, line)) for line in lines}


def add(row):
    """To the sums of all runs so far, which the README shows."""
    runs = read_runs()
    before = runs.get(row["target"], {"minutes": 0, "executions": 0})
    row = {**row, "minutes": f"{float(before['minutes']) + row['minutes']:.1f}",
           "executions": int(before["executions"]) + row["executions"]}
    runs[row["target"]] = row
    ordered = [runs[target] for target in sorted(runs)]
    RUNS.write_text("".join("\t".join(str(cell) for cell in line) + "\n" for line in
                            [COLUMNS, *([row[column] for column in COLUMNS] for row in ordered)]), encoding="utf-8")
    lines = ["| target | minutes | executions | inputs kept | code points reached | last run |", "|---|---:|---:|---:|---:|---|"]
    lines += [f"| {row['target']} | {float(row['minutes']):.0f} | {int(row['executions']):,} | {row['inputs']} | {row['coverage']} | {row['last']} |"
              for row in ordered]
    README.write_text(TABLE.sub(lambda _: "\n" + "\n".join(lines) + "\n\n", README.read_text(encoding="utf-8")), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(targets()))
    parser.add_argument("--minutes", type=float, default=20, help="for each target")
    parser.add_argument("--jobs", type=int, default=1, help="so many targets at the same time")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build-fuzz", help="of cmake --preset fuzz")
    options = parser.parse_args()
    for target in options.targets:
        if target not in targets():
            parser.error(f"there is no target {target}; there are {', '.join(targets())}")
    chosen = options.targets or targets()
    missing = [name for name in chosen if not (options.build / "tests" / "fuzz" / f"{name}_fuzz").exists()]
    if missing:
        parser.error(f"{options.build} has no {missing[0]}_fuzz: cmake --preset fuzz && cmake --build --preset fuzz")
    lock = threading.Lock()
    is_fine = True

    def one(target):
        nonlocal is_fine
        row, fine = fuzz(options.build, target, options.minutes)
        with lock:
            add(row)
            is_fine = is_fine and fine
        print(f"{target}: {row['executions']} executions in {row['minutes']:.1f} minutes, {row['inputs']} inputs kept", file=sys.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, chosen))
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
