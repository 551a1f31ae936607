"""Compares foretrace with NVIDIA's own files, on a machine without a GPU. FORETRACE_NVIDIA names a folder with Debian's packages
libcuda1 libcupti11.8 libcupti-dev nvidia-cuda-dev nsight-systems nsight-systems-target libssh-4 (component non-free), each unpacked with
`dpkg -x PACKAGE.deb FOLDER`; skipped without it. FORETRACE names the program."""

import collections
import csv
import gzip
import io
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORETRACE = os.environ.get("FORETRACE")
NVIDIA = pathlib.Path(os.environ.get("FORETRACE_NVIDIA", "/nowhere")) / "usr"
LIBRARIES = NVIDIA / "lib/x86_64-linux-gnu"
NSYS = LIBRARIES / "nsight-systems/target-linux-x64/nsys"
IMPORTER = NVIDIA / "lib/nsight-systems/host-linux-x64/QdstrmImporter"
CUPTI = LIBRARIES / "libcupti.so.11.8"
SAMPLES = sorted(ROOT.glob("traces/*.pt.trace.json.gz"))

# Kind and structure of NVIDIA's, what is put into it, the row that decode() makes of it, and what that must have.
PLACED = dict(deviceId=1, contextId=2, streamId=3, correlationId=78, start=11, end=22)
FOUND = dict(device=1, context=2, stream=3, correlation=78, start=11, end=22)
CALL = ("CUpti_ActivityAPI", dict(cbid=17, start=100, end=200, threadId=4711, correlationId=81), "Call",
        dict(callback=17, start=100, end=200, thread=4711, correlation=81))
RECORDS = [
    ("CONCURRENT_KERNEL", "CUpti_ActivityKernel8",
     dict(PLACED, gridX=2, gridY=3, gridZ=4, blockX=32, blockY=2, blockZ=1, registersPerThread=40, staticSharedMemory=1024,
          dynamicSharedMemory=2048, name="gemm", graphNodeId=0x1234567890, graphId=42), "ShapedKernel",
     dict(FOUND, grid_x=2, grid_y=3, grid_z=4, block_x=32, block_y=2, block_z=1, registers=40, static_shared=1024,
          dynamic_shared=2048, name="gemm", graph_node=0x1234567890, graph=42)),
    ("MEMCPY", "CUpti_ActivityMemcpy5", dict(PLACED, copyKind=1, srcKind=2, dstKind=3, flags=1, bytes=4096, graphNodeId=99), "Transfer",
     dict(FOUND, copy_kind=1, source_kind=2, destination_kind=3, is_async=1, bytes=4096, graph_node=99)),
    ("MEMCPY2", "CUpti_ActivityMemcpyPtoP4", dict(PLACED, copyKind=10, flags=0, bytes=8192, srcDeviceId=1, dstDeviceId=6, graphNodeId=98),
     "Transfer", dict(FOUND, copy_kind=10, is_async=0, bytes=8192, source_device=1, destination_device=6, graph_node=98)),
    ("MEMSET", "CUpti_ActivityMemset4", dict(PLACED, bytes=512, flags=1, memoryKind=3, graphNodeId=97), "Transfer",
     dict(FOUND, bytes=512, is_async=1, destination_kind=3, copy_kind=0, graph_node=97)),
    ("RUNTIME", *CALL), ("DRIVER", *CALL), ("INTERNAL_LAUNCH_API", *CALL),
    ("SYNCHRONIZATION", "CUpti_ActivitySynchronization",
     dict(type=2, start=300, end=301, correlationId=82, contextId=2, streamId=9, cudaEventId=10), "Sync",
     dict(type=2, start=300, end=301, correlation=82, context=2, stream=9, event=10, sync_id=0)),
    ("CUDA_EVENT", "CUpti_ActivityCudaEvent", dict(correlationId=83, contextId=2, streamId=9, eventId=10), "Event",
     dict(correlation=83, context=2, stream=9, event=10, sync_id=0, device_time=0)),
    ("MEMORY2", "CUpti_ActivityMemory3",
     dict(memoryOperationType=2, memoryKind=3, correlationId=84, address=0xabc000, bytes=1 << 20, timestamp=500, deviceId=2, contextId=3,
          streamId=4, name="src.cu", isAsync=1), "DeviceMemory",
     dict(is_release=1, memory_kind=3, correlation=84, address=0xabc000, bytes=1 << 20, time=500, device=2, context=3, stream=4,
          source="src.cu", is_async=1)),
    ("MEMORY_POOL", "CUpti_ActivityMemoryPool2",
     dict(memoryPoolOperationType=3, deviceId=2, address=0xdef000, size=123, timestamp=600, utilizedSize=55), "MemoryPool",
     dict(operation=3, device=2, address=0xdef000, size=123, time=600, utilized=55)),
    ("OVERHEAD", "CUpti_ActivityOverhead",
     {"overheadKind": 0x10000, "objectKind": 2, "objectId.pt.threadId": 4712, "start": 700, "end": 800}, "Overhead",
     dict(kind=0x10000, thread=4712, start=700, end=800, correlation=0)),
    ("DEVICE", "CUpti_ActivityDevice4",
     dict(id=2, name="A100", globalMemorySize=80 << 30, l2CacheSize=40 << 20, coreClockRate=1410000, numMultiprocessors=108,
          computeCapabilityMajor=8, computeCapabilityMinor=0), "Device",
     dict(ordinal=2, name="A100", memory_bytes=80 << 30, l2_bytes=40 << 20, core_clock_khz=1410000, multiprocessors=108, major=8, minor=0)),
    ("CONTEXT", "CUpti_ActivityContext", dict(contextId=2, deviceId=1, nullStreamId=7), "Context",
     dict(context=2, device=1, null_stream=7)),
    ("STREAM", "CUpti_ActivityStream", dict(contextId=2, streamId=9, priority=5, flag=2), "Stream",
     dict(context=2, stream=9, priority=5, flag=2)),
]
DECODES = """
#include <dlfcn.h>
#include <cstdio>
#include <string>
#include <vector>
#include "collect/cupti/decode.h"
#include "trace/spool.h"
#include <cupti.h>
using namespace foretrace;
std::vector<unsigned char> buffer;
template <class Record>
Record& add(CUpti_ActivityKind kind) {
  buffer.resize(buffer.size() + sizeof(Record), 0xEE);
  auto& record = reinterpret_cast<Record&>(buffer[buffer.size() - sizeof(Record)]);
  record.kind = kind;
  return record;
}
int main(int, char** arguments) {
  buffer.reserve(1 << 16);
  %s
  auto next = reinterpret_cast<CUptiResult (*)(unsigned char*, size_t, CUpti_Activity**)>(
      dlsym(dlopen(arguments[1], RTLD_NOW), "cuptiActivityGetNextRecord"));
  std::vector<unsigned char*> records;
  for (CUpti_Activity* record = nullptr; next(buffer.data(), buffer.size(), &record) == CUPTI_SUCCESS;)
    records.push_back(reinterpret_cast<unsigned char*>(record));
  records.push_back(buffer.data() + buffer.size());
  std::printf("%%zu records\\n", records.size() - 1);
  collect::Texts texts;
  alignas(8) char row[collect::kMaxRowBytes];
  for (size_t i = 0; i + 1 < records.size(); ++i) {
    const auto& record = reinterpret_cast<cupti::Activity&>(*records[i]);
    const auto decoded = collect::decode(record, static_cast<size_t>(records[i + 1] - records[i]), texts, row);
    if (decoded.bytes == 0) std::printf("record %%zu makes no row\\n", i);
    switch (i) { %s }
  }
}
"""
RANGES = """
#include <nvtx3/nvToolsExt.h>
int main(void) {
  nvtxRangePushA("outer");
  nvtxRangeId_t range = nvtxRangeStartA("crosses");
  nvtxRangePop();
  nvtxRangeEnd(range);
}
"""


def run(*command, code=0, libraries=(), **environment):
    environment = {**os.environ, **environment, "LD_LIBRARY_PATH": ":".join(map(str, libraries))}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=environment)
    if done.returncode != code:
        raise AssertionError(f"{command}: exit code {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout, done.stderr


def check_of(field, value):
    text = f'texts.text(found.{field}) != std::string("{value}")'
    differs = text if isinstance(value, str) else f"static_cast<long long>(found.{field}) != {value}"
    return f'if ({differs}) std::printf("record %zu: {field} is wrong\\n", i);'


@unittest.skipUnless(NVIDIA.is_dir(), "FORETRACE_NVIDIA does not name a folder with NVIDIA's packages")
class Nvidia(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def nsys(self, *arguments):
        return run(*arguments, libraries=[LIBRARIES], HOME=str(self.folder), TMPDIR=str(self.folder))[0]

    def compiled(self, name, *sources, text=None):
        if text is not None:
            (self.folder / name).write_text(text)
            sources = (self.folder / name, *sources)
        to = self.folder / pathlib.Path(name).stem
        run("c++", "-std=c++20", "-w", "-I", ROOT / "src", "-I", ROOT / "include", "-I", ROOT / "tests",
            "-I", ROOT / "tests/third_party/nvtx3", "-isystem", NVIDIA / "include", *sources, "-o", to, "-ldl")
        return to

    def test_records_lie_where_nvidias_headers_and_iterator_say(self):
        program = self.compiled("abi_check.cc", ROOT / "tests/collect/abi_check.cc")
        self.assertIn("version 18, agree", run(program, CUPTI)[0])

    def test_every_field_of_nvidias_structures_is_decoded(self):
        made = [f"{{ auto& record = add<{struct}>(CUPTI_ACTIVITY_KIND_{kind});"
                + "".join(f" record.{field} = decltype(record.{field})({json.dumps(value)});" for field, value in fields.items()) + " }"
                for kind, struct, fields, _, _ in RECORDS]
        checks = [f"case {i}: {{ const auto& found = reinterpret_cast<spool::{row}&>(row);"
                  + "".join(check_of(field, value) for field, value in wanted.items()) + " break; }"
                  for i, (_, _, _, row, wanted) in enumerate(RECORDS)]
        program = self.compiled("decodes.cc", ROOT / "src/collect/cupti/decode.cc", ROOT / "src/collect/spool/texts.cc",
                                text=DECODES % ("\n".join(made), "\n".join(checks)))
        self.assertEqual(run(program, CUPTI)[0], f"{len(RECORDS)} records\n")

    def test_the_driver_loads_the_collector_without_a_device(self):
        if os.path.exists("/proc/driver/nvidia"):
            self.skipTest("NVIDIA's driver is here, and the test is of machines without one")
        node = pathlib.Path("/dev/nvidiactl")
        if not node.exists():  # libcuda makes it if it may, and other tests ask whether it is there.
            self.addCleanup(node.unlink, missing_ok=True)
        starts = 'import ctypes; print("cuInit", ctypes.CDLL("libcuda.so.1").cuInit(0))'
        out, err = run(FORETRACE, "collect", "-o", self.folder / "none.ftrace", "--", shutil.which("python3", path="/usr/bin") or "python3",
                       "-c", starts, code=3, libraries=[LIBRARIES / "nvidia/current", LIBRARIES])
        self.assertEqual(out, "cuInit 100\n")
        self.assertRegex(err, r'nothing is recorded in process \d+: CUPTI says "CUPTI_ERROR_NOT_INITIALIZED" \(15\)')

    def test_what_nsys_records_and_exports_is_read(self):
        program, report = self.compiled("ranges.cc", text=RANGES), self.folder / "ranges"
        self.nsys(NSYS, "profile", "-t", "nvtx", "--sample=none", "--cpuctxsw=none", "-o", report, program)
        self.nsys(IMPORTER, "-i", f"{report}.qdstrm", "-o", f"{report}.nsys-rep")
        self.nsys(NSYS, "export", "--type", "sqlite", "-o", f"{report}.sqlite", f"{report}.nsys-rep")
        run(FORETRACE, "convert", f"{report}.sqlite", f"{report}.json", "--quiet", "--no-cache")
        run(FORETRACE, "convert", f"{report}.sqlite", f"{report}.again.sqlite", "--quiet", "--no-cache")
        events = json.loads(pathlib.Path(f"{report}.json").read_text())["traceEvents"]
        nests = {event["name"]: "start/end range" not in event.get("args", {}) for event in events if event.get("cat") == "user_annotation"}
        self.assertEqual(nests, {"outer": True, "crosses": False})
        select = "SELECT text, eventType, end - start FROM NVTX_EVENTS WHERE end IS NOT NULL ORDER BY text"
        theirs, ours = (sqlite3.connect(f"{report}{ending}").execute(select).fetchall() for ending in (".sqlite", ".again.sqlite"))
        self.assertEqual([kind for _, kind, _ in theirs], [60, 59])
        self.assertEqual(ours, theirs)

    def stats(self, report, name):
        out = self.nsys(NSYS, "stats", "--report", name, "--format", "csv", "--output", "@cat", "--force-overwrite", "true", report)
        return list(csv.DictReader(io.StringIO(out.split("[@cat]... ", 1)[1].strip())))

    def totals(self, report, name, count):
        totals = collections.defaultdict(lambda: (0, 0))
        for row in self.stats(report, name):
            key = row.get("Name") or row.get("Operation") or row["Range"].removeprefix(":")
            totals[key] = (totals[key][0] + int(row[count]), totals[key][1] + int(row["Total Time (ns)"]))
        return dict(totals)

    def test_nsys_stats_has_the_totals_of_a_trace(self):
        for sample in SAMPLES:
            with self.subTest(sample=sample.name):
                self.compare_totals(sample)

    def compare_totals(self, sample):
        report = self.folder / f"{sample.name}.sqlite"
        run(FORETRACE, "convert", sample, report, "--quiet", "--no-cache")
        with gzip.open(sample, "rt") as file:
            events = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
        for name, count, categories in (("gpukernsum", "Instances", {"kernel", "Kernel"}),
                                        ("cudaapisum", "Num Calls", {"cuda_runtime", "Runtime", "cuda_driver"})):
            wanted = collections.defaultdict(lambda: (0, 0))
            for event in events:
                if event.get("cat") in categories:
                    number, time = wanted[event["name"]]
                    wanted[event["name"]] = (number + 1, time + round(event["dur"] * 1000))
            self.assertGreater(len(wanted), 3)
            self.assertEqual(self.totals(report, name, count), dict(wanted), name)

    def test_nsys_stats_has_the_shape_of_a_launch_and_the_kind_of_a_range(self):
        common = {"ph": "X", "pid": 9, "tid": 9}
        kernel = {"device": 0, "stream": 7, "correlation": 1, "grid": [2, 3, 1], "block": [64, 2, 1], "registers per thread": 40,
                  "shared memory": 3000, "static shared memory": 1000}  # nsys shows thousands.
        events = [{**common, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 5, "dur": 2, "args": {"correlation": 1}},
                  {**common, "cat": "user_annotation", "name": "outer", "ts": 0, "dur": 10},
                  {**common, "cat": "user_annotation", "name": "crosses", "ts": 6, "dur": 30, "args": {"start/end range": 1}},
                  {**common, "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 9, "dur": 30, "args": kernel}]
        trace, report = self.folder / "shape.json", self.folder / "shape.sqlite"
        trace.write_text(json.dumps({"traceEvents": events}))
        run(FORETRACE, "convert", trace, report, "--quiet", "--no-cache")
        row, = self.stats(report, "gputrace")
        self.assertEqual([row[key] for key in ("GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd")],
                         ["2", "3", "1", "64", "2", "1", "40"])
        self.assertEqual([float(value) * 1e6 for key, value in row.items() if re.match("StcSMem|DymSMem", key)], [1000, 2000])
        self.assertEqual(self.totals(report, "nvtxppsum", "Instances"), {"outer": (1, 10000)})
        self.assertEqual(self.totals(report, "nvtxsesum", "Instances"), {"crosses": (1, 30000)})


if __name__ == "__main__":
    unittest.main()
