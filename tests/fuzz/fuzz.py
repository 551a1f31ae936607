#!/usr/bin/env python3
"""Fuzzes the targets one after another, keeps the inputs that reach new code, and writes the table of README.md.

    fuzz.py [--minutes 20] [--jobs 1] [--build build-fuzz] [--seeds FOLDER] [TARGET...]

Each target begins with the inputs kept in corpus/TARGET.tar.xz and those that seeds.py wrote. Afterwards the fewest inputs that
reach the same code are kept there, and the minutes and executions are added to those of runs.tsv. An input that
crashes, hangs or takes too much memory is written to found/; the exit status is then 1.
"""

import argparse
import concurrent.futures
import datetime
import io
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
CORPUS, FOUND, RUNS, README = HERE / "corpus", HERE / "found", HERE / "runs.tsv", HERE / "README.md"
# The most bytes of an input, so that the corpus stays small; longer inputs reach little more.
MOST_BYTES = 4096
MOST_BYTES_OF = {"nsys": 65536, "spool": 16384}  # Formats in which little takes much.
SECONDS_OF_AN_INPUT = 25  # By the clock on the wall, as libFuzzer counts them.
MEGABYTES = 4096
SECONDS_BETWEEN_LOOKS = 0.5
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
    """Packs inputs reproducibly: the same inputs give the same bytes. Names are numbers, the shortest input first."""
    CORPUS.mkdir(exist_ok=True)
    inputs = sorted((path.read_bytes() for path in folder.iterdir()), key=lambda content: (len(content), content))
    with tarfile.open(CORPUS / f"{target}.tar.xz", "w:xz", format=tarfile.USTAR_FORMAT) as tar:
        for number, content in enumerate(inputs):
            entry = tarfile.TarInfo(f"{number:05}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return len(inputs)


def processor_minutes(process):
    """The CPU time that a running process has used; 0 once it has ended."""
    try:
        words = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK") / 60


def fuzzer(options, target, *arguments, minutes=None):
    """Runs a target for this many minutes of CPU time: (exit status, its output, minutes used)."""
    FOUND.mkdir(exist_ok=True)
    limits = [f"-timeout={options.timeout}", f"-rss_limit_mb={MEGABYTES}", f"-max_len={MOST_BYTES_OF.get(target, MOST_BYTES)}"]
    command = [str(options.build / "tests" / "fuzz" / f"{target}_fuzz"), *limits, f"-artifact_prefix={FOUND}/{target}-", *map(str, arguments)]
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1"}
    used = 0.0
    with tempfile.TemporaryFile() as written:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=written, env=environment) as process:
            while process.poll() is None:
                time.sleep(SECONDS_BETWEEN_LOOKS)
                used = max(used, processor_minutes(process))
                if minutes is not None and used >= minutes:
                    process.send_signal(signal.SIGUSR1)  # libFuzzer then ends as it does when its time is up.
                    process.wait()
        written.seek(0)
        return process.returncode, written.read().decode(errors="replace"), used


def fuzz(options, target):
    """The result of a run: a row, and whether nothing was found."""
    with tempfile.TemporaryDirectory(prefix="foretrace-fuzz-") as place:
        grown, least = pathlib.Path(place, "grown"), pathlib.Path(place, "least")
        grown.mkdir()
        least.mkdir()
        unpack(target, grown)
        if options.seeds and (options.seeds / target).is_dir():
            shutil.copytree(options.seeds / target, grown, dirs_exist_ok=True)
        status, words, spent = fuzzer(options, target, "-print_final_stats=1", grown, minutes=options.minutes)
        executions = re.findall(r"stat::number_of_executed_units:\s*(\d+)", words)
        if status != 0:
            print(f"{target}: exit status {status}\n{words[-3000:]}", file=sys.stderr)
        merged, merging, _ = fuzzer(options, target, "-merge=1", least, grown)
        coverage = re.findall(r"cov: (\d+)", merging)
        kept = pack(target, least if merged == 0 else grown)
    row = {"target": target, "minutes": spent, "executions": int(executions[-1]) if executions else 0, "inputs": kept,
           "coverage": coverage[-1] if coverage else "-", "last": datetime.date.today().isoformat()}
    return row, status == 0


def read_runs():
    if not RUNS.exists():
        return {}
    lines = [line.split("\t") for line in RUNS.read_text(encoding="utf-8").splitlines()[1:]]
    return {line[0]: dict(zip(COLUMNS, line)) for line in lines}


def add(row):
    """Adds a run to the sums of all runs, which the README shows."""
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
    parser.add_argument("--minutes", type=float, default=20, help="of processor time, for each target")
    parser.add_argument("--jobs", type=int, default=1, help="so many targets at the same time")
    parser.add_argument("--timeout", type=int, default=SECONDS_OF_AN_INPUT, metavar="SECONDS",
                        help="for one input; give more on a busy machine, where little work takes long")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build-fuzz", help="of cmake --preset fuzz")
    parser.add_argument("--seeds", type=pathlib.Path, metavar="FOLDER", help="inputs to begin with, by seeds.py")
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
        row, fine = fuzz(options, target)
        with lock:
            add(row)
            is_fine = is_fine and fine
        print(f"{target}: {row['executions']} executions in {row['minutes']:.1f} minutes, {row['inputs']} inputs kept", file=sys.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, chosen))
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
