"""Compares foretrace's totals of Nsight Systems reports with SQL on the same tables, and runs scripts that people write for nsys
on foretrace's own export to those tables. FORETRACE_CORPUS names the folder with the reports (skipped without it), FORETRACE the
program."""

import json
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORETRACE = os.environ.get("FORETRACE")
CORPUS = os.environ.get("FORETRACE_CORPUS")

DEVICE_TABLES = ("KERNEL", "GRAPH_TRACE", "MEMCPY", "MEMSET")
RANGES = (34, 59, 60)  # NVTX marks, ranges of a thread, ranges of the process


def run(*arguments):
    done = subprocess.run([FORETRACE, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: exit code {done.returncode}: {done.stderr}")
    return done.stdout


def shown(path):
    """The output of `info`: one object per process."""
    found = json.loads(run("info", path, "--format", "json", "--no-cache", "--quiet"))
    return found if isinstance(found, list) else [found]


def union(intervals):
    total, until = 0, None
    for start, end in sorted(intervals):
        if until is None or end > until:
            total += end - (start if until is None else max(start, until))
            until = end
    return total


class Report:
    """The tables of a report, by process."""

    def __init__(self, path):
        self.database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        self.tables = {name for name, in self.database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def rows(self, table, columns, where=""):
        name = table if table in ("NVTX_EVENTS", "CUDA_GPU_MEMORY_USAGE_EVENTS") else "CUPTI_ACTIVITY_KIND_" + table
        return self.database.execute(f"SELECT {columns} FROM {name} {where}").fetchall() if name in self.tables else []

    def processes(self):
        """The processes with device work, ordered by their lowest device and then by their number."""
        least = {}
        for table in DEVICE_TABLES:
            for process, device in self.rows(table, "globalPid, min(deviceId)", "GROUP BY 1"):
                least[process] = min(device, least.get(process, device))
        return [process for device, process in sorted((device, process) for process, device in least.items())]

    def totals(self, process):
        of_device = f"WHERE globalPid = {process}"
        of_thread = f"WHERE globalTid / 0x1000000 * 0x1000000 = {process}"
        device = {table: self.rows(table, "start, end", of_device) for table in DEVICE_TABLES}
        ranges = self.rows("NVTX_EVENTS", "eventType, end", f"{of_thread} AND eventType IN {RANGES}")
        bytes_of = lambda table: sum(bytes for bytes, in self.rows(table, "bytes", of_device))
        return {
            "kernels": len(device["KERNEL"]) + len(device["GRAPH_TRACE"]),
            "copies": len(device["MEMCPY"]),
            "fills": len(device["MEMSET"]),
            "copied_bytes": bytes_of("MEMCPY"),
            "filled_bytes": bytes_of("MEMSET"),
            "calls": len(self.rows("RUNTIME", "1", of_thread)),
            "syncs": len(self.rows("SYNCHRONIZATION", "1", of_device)),
            "memory_events": len(self.rows("CUDA_GPU_MEMORY_USAGE_EVENTS", "1", of_device)),
            "ranges": sum(1 for kind, end in ranges if kind == 34 or end is not None),
            "device_busy_ns": union([row for rows in device.values() for row in rows]),
        }


def totals_shown(found):
    records = found["records"]
    return {
        **{key: records[key] for key in ("kernels", "copies", "fills", "calls", "syncs", "memory_events")},
        "ranges": records["ops"] + records["annotations"],
        **{key: found[key] for key in ("copied_bytes", "filled_bytes", "device_busy_ns")},
    }


def make_report(path):
    """Two processes that number their calls alike, and one that has no device work."""
    database = sqlite3.connect(path)
    database.executescript("""
        CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
        INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel_v7000'), (3, 'cudaMemcpyAsync_v3020');
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, demangledName);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId, correlationId, globalPid, bytes, copyKind);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, eventClass, globalTid, correlationId, nameId);
        CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid);
    """)
    for process, device in ((7, 1), (9, 0), (11, None)):
        pid = 1 << 48 | process << 24
        for i in range(120):
            at, correlation = 10_000 * i, 2 * i + 1
            database.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?)", (at, at + 9000, f"step {i}", pid | 1))
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, 2)",
                             (at, at + 500, pid | 1, correlation))
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, 3)",
                             (at + 600, at + 900, pid | 1, correlation + 1))
            if device is None:
                continue
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, 7, ?, ?, 1)",
                             (at + 1000, at + 4000 + process, device, correlation, pid))
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, ?, 8, ?, ?, ?, 1)",
                             (at + 3000, at + 6000, device, correlation + 1, pid, 100 + process))
    database.commit()
    database.close()


@unittest.skipUnless(FORETRACE, "FORETRACE names no program")
class NsysTotals(unittest.TestCase):
    maxDiff = None

    def check(self, path):
        report = Report(path)
        expected = [report.totals(process) for process in report.processes()]
        self.assertEqual([totals_shown(found) for found in shown(path)], expected)
        self.assertGreater(sum(totals["kernels"] for totals in expected), 0)

    def test_processes_are_told_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "two.sqlite"
            make_report(path)
            self.check(path)
            self.assertEqual([found["rank"] for found in shown(path)], [0, 1])
            self.assertEqual(shown(f"{path}:9")[0]["copied_bytes"], 120 * 109)
            step = json.loads(run("predict", f"{path}:7", "--format", "json", "--no-cache", "--quiet"))
            self.assertEqual(step["measured"]["step_time_ns"], 10_000)

    @unittest.skipUnless(CORPUS, "FORETRACE_CORPUS names no folder of recordings")
    def test_totals_of_the_corpus_are_those_of_its_tables(self):
        paths = sorted(pathlib.Path(CORPUS).glob("nsys*/*.sqlite"))
        self.assertGreater(len(paths), 0)
        for path in paths:
            with self.subTest(path.name):
                self.check(path)
                answer = json.loads(run("predict", path, "--format", "json", "--no-cache", "--quiet"))
                self.assertGreater(answer["measured"]["step_time_ns"], 0)
                self.assertLess(answer["baseline"]["replay_error"], 0.01)
                self.assertIn("can be used", run("doctor", path, "--no-cache", "--quiet"))


@unittest.skipUnless(FORETRACE, "FORETRACE names no program")
class NsysExport(unittest.TestCase):
    """Queries of scripts made for nsys, on foretrace's export."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name) / "x.sqlite"
        self.trace = ROOT / "traces" / "resnet18-v100-loader0.pt.trace.json.gz"
        run("convert", self.trace, self.path, "--no-cache", "--quiet")
        self.database = sqlite3.connect(self.path)
        self.addCleanup(self.database.close)

    def all(self, sql):
        return self.database.execute(sql).fetchall()

    def test_kernels_join_their_names_and_their_launches(self):
        rows = self.all("""
            SELECT s.value AS name, count(*), sum(k.end - k.start) AS total, min(k.start - r.start) AS least_lag
            FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
            JOIN StringIds AS s ON s.id = k.demangledName
            JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r ON r.correlationId = k.correlationId
                AND r.globalTid / 0x1000000 % 0x1000000 = k.globalPid / 0x1000000 % 0x1000000
            GROUP BY k.demangledName ORDER BY total DESC""")
        top = shown(self.trace)[0]["heaviest"]
        kernels = [entry for entry in top if not entry["name"].startswith("Mem")]
        self.assertEqual([(name, count, total) for name, count, total, lag in rows][:len(kernels)],
                         [(entry["name"], entry["count"], entry["total_ns"]) for entry in kernels])
        self.assertTrue(all(lag > 0 for name, count, total, lag in rows))

    def test_ranges_hold_the_calls_made_in_them(self):
        rows = self.all("""
            SELECT n.text, count(*) FROM NVTX_EVENTS AS n
            JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r
                ON r.globalTid = n.globalTid AND r.start >= n.start AND r.end <= n.end
            JOIN CUPTI_ACTIVITY_KIND_KERNEL AS k ON k.correlationId = r.correlationId
            WHERE n.eventType = 59 AND n.text LIKE 'ProfilerStep#%' GROUP BY n.text""")
        self.assertEqual(len(rows), len(shown(self.trace)[0]["steps_on_host_ns"]))
        self.assertTrue(all(kernels > 10 for name, kernels in rows))

    def test_copies_are_summed_by_their_kind(self):
        rows = self.all("""
            SELECT o.label, m.label, sum(c.bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY AS c
            JOIN ENUM_CUDA_MEMCPY_OPER AS o ON o.id = c.copyKind
            JOIN ENUM_CUDA_MEM_KIND AS m ON m.id = c.srcKind GROUP BY 1, 2""")
        self.assertEqual(rows, [("Host-to-Device", "Pageable", shown(self.trace)[0]["copied_bytes"])])

    def check_predictions(self, trace, path, *options):
        before, after = (json.loads(run("predict", each, *options, "--format", "json", "--no-cache", "--quiet"))
                         for each in (trace, path))
        for key in ("measured", "baseline", "predicted"):
            self.assertEqual(before[key], after[key], f"{trace}: {key}")

    def test_predictions_stay_the_same(self):
        self.check_predictions(self.trace, self.path)
        self.check_predictions(self.trace, self.path, "--with", "amp")

    @unittest.skipUnless(CORPUS, "FORETRACE_CORPUS names no folder of recordings")
    def test_predictions_of_the_corpus_stay_the_same(self):
        for name in ("rn50-dl-v100/w0_runA.pt.trace.json.gz", "hta-ddp-v100-mem/df_index_resolver.json.gz",
                     "nanogpt-8rank/rank0.json.gz", "dev-pair-h100-mi300/qwen05b_h100.json.gz",
                     "nsys-27b-eager-graph/result_2_7B_compile_ro.sqlite"):
            trace = pathlib.Path(CORPUS) / name
            if not trace.exists():
                continue
            run("convert", trace, self.path, "--no-cache", "--quiet")
            self.check_predictions(trace, self.path)


if __name__ == "__main__":
    unittest.main()
