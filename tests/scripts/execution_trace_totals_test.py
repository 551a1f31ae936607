"""The output of `info` about real execution traces equals totals that are counted here without the program:
PyTorch's with json, Chakra's with a decoder of a few lines."""

import ast
import gzip
import json
import os
import struct
import subprocess
import tarfile
import tempfile
import unittest

FORETRACE = os.environ.get("FORETRACE", "")
CORPUS = os.environ.get("FORETRACE_CORPUS", "")

PYTORCH = [
    "megatron-tp2/pytorch_et_0.json.gz",
    "megatron-tp2/pytorch_et_1.json.gz",
    "param-resnet/resnet_1gpu_et.json.gz",
    "param-resnet/resnet_2gpu_et.json.gz",
    "param-resnet/resnet_et_2023.json.gz",
    "param-gpt2-et/hf_GPT2_et.json.tar.gz",
    "chakra-et/1.0.2-chakra.0.0.4.tgz",
    "hta-small/benchmark_simple_add_et.json.gz",
    "dlrm-8rank/dlrm_pytorch_et.tar.gz",
]
CHAKRA = ["chakra-et/chakra.0.et", "megatron-tp2/final.0.et", "megatron-tp2/final.1.et"]


def info(path):
    run = subprocess.run([FORETRACE, "info", "--no-cache", "--quiet", "--format", "json", path],
                         capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    return found if isinstance(found, list) else [found]


def documents(path):
    """The JSON documents of a file or an archive, by their names."""
    if not path.endswith(("tar.gz", "tgz")):
        with gzip.open(path) as file:
            yield path, json.load(file)
        return
    with tarfile.open(path) as archive:
        for member in archive:
            name = os.path.basename(member.name)
            if member.isfile() and not name.startswith("._"):
                yield name, json.load(archive.extractfile(member))


def tensors_in(value, kind):
    """Yields the bytes of every tensor in an argument."""
    if kind.startswith("Tensor("):
        if "nullptr" not in kind:
            yield value[3] * value[4], value[1]
    elif kind.startswith(("GenericList[", "Tuple[")) and "Tensor(" in kind:
        inner, depth, start = kind[kind.index("[") + 1:-1], 0, 0
        kinds = []
        for i, c in enumerate(inner + ","):
            depth += (c in "[(") - (c in ")]")
            if c == "," and depth == 0:
                kinds.append(inner[start:i])
                start = i + 1
        for element, of_element in zip(value, kinds):
            yield from tensors_in(element, of_element)


def totals(sides):
    """`sides`: (is_output, values, types) of every op."""
    found = {"read": 0, "written": 0, "read_bytes": 0, "written_bytes": 0}
    storages = set()
    for is_output, values, types in sides:
        what = "written" if is_output else "read"
        for value, kind in zip(values, types):
            for size, storage in tensors_in(value, kind):
                found[what] += 1
                found[what + "_bytes"] += size
                storages |= {storage} - {0}
    return {**found, "storages": len(storages)}


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
        shift += 7


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            size, form = {1: (8, "<Q"), 5: (4, "<I")}[key & 7]
            value, at = struct.unpack(form, data[at:at + size])[0], at + size
        yield key >> 3, value


def messages(data):
    at = 0
    while at < len(data):
        size, at = varint(data, at)
        yield data[at:at + size]
        at += size


def chakra_node(data):
    node = {"name": "", "micros": 0, "attributes": {}, "sides": []}
    for number, value in fields(data):
        if number == 2:
            node["name"] = value.decode()
        elif number == 7:
            node["micros"] = value
        elif number in (8, 9):
            slots = {n: ast.literal_eval(v.decode()) for n, v in fields(value)}
            node["sides"].append((number == 9, slots.get(1, []), slots.get(3, [])))
        elif number == 10:
            parts = list(fields(value))
            node["attributes"][parts[0][1].decode()] = parts[-1][1]
    return node


@unittest.skipUnless(FORETRACE and CORPUS, "FORETRACE_CORPUS names no folder of recordings")
class ExecutionTraceTotals(unittest.TestCase):

    def test_pytorch_traces_have_the_ops_and_tensors_that_json_has(self):
        for path in PYTORCH:
            path = os.path.join(CORPUS, path)
            expected = []
            for _, document in documents(path):
                nodes = [n for n in document["nodes"] if "[pytorch|profiler|" not in n["name"]]
                flat = "inputs" in nodes[0] and isinstance(nodes[0]["inputs"], list)
                sides = [(side == "output",
                          n[side + "s"] if flat else n[side + "s"]["values"],
                          n[side + "_types"] if flat else n[side + "s"]["types"])
                         for n in nodes for side in ("input", "output")]
                expected.append({"ops": len(nodes), **totals(sides)})
            found = [{"ops": t["records"]["ops"] + t["records"]["annotations"], **t["tensors"]}
                     for t in info(path)]
            with self.subTest(path):
                key = lambda one: sorted(one.items())
                self.assertEqual(sorted(found, key=key), sorted(expected, key=key))

    def test_chakra_traces_have_the_nodes_and_sizes_that_their_bytes_have(self):
        for path in CHAKRA:
            path = os.path.join(CORPUS, path)
            with open(path, "rb") as file:
                nodes = [chakra_node(m) for m in list(messages(file.read()))[1:]]
            nodes = [n for n in nodes if "[pytorch|profiler|" not in n["name"]]
            cpu = [n for n in nodes if n["attributes"]["is_cpu_op"]]
            device = [n for n in nodes if not n["attributes"]["is_cpu_op"]]
            [found] = info(path)
            records = found["records"]
            with self.subTest(path):
                self.assertEqual(records["ops"] + records["annotations"], len(cpu))
                self.assertEqual(records["kernels"] + records["copies"] + records["fills"],
                                 len(device))
                self.assertEqual(found["collectives"]["in_elements"],
                                 sum(n["attributes"].get("comm_size", 0) for n in nodes))
                self.assertEqual(found["collectives"]["count"],
                                 sum("comm_size" in n["attributes"] for n in nodes))
                self.assertEqual(found["tensors"],
                                 totals([side for n in cpu for side in n["sides"]]))
                # No two nodes of a stream overlap, so that with one stream the sum is the time
                # the device is busy, and with two it is at most that.
                device_micros = sum(n["micros"] for n in device)
                self.assertLessEqual(found["device_busy_ns"], 1000 * device_micros)
                self.assertEqual(
                    found["device_time_ns"], 1000 * device_micros)

    def test_a_cut_trace_is_read_up_to_the_cut_or_refused(self):
        with open(os.path.join(CORPUS, CHAKRA[1]), "rb") as file:
            whole = file.read()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cut.et")
            for size in (0, 1, 50, 200, 10_000, len(whole) // 2, len(whole) - 1):
                with open(path, "wb") as file:
                    file.write(whole[:size])
                run = subprocess.run([FORETRACE, "info", "--no-cache", "--quiet", path],
                                     capture_output=True, text=True)
                self.assertIn(run.returncode, (0, 3), size)
                self.assertEqual(run.returncode == 0, "is cut off" in run.stdout, size)


@unittest.skipUnless(FORETRACE, "needs FORETRACE")
class ExecutionTraceCommands(unittest.TestCase):
    """The answers of the commands to a small execution trace, alone and beside a profiler's trace."""

    OPS = ["aten::zeros", "aten::mm", "aten::relu"]

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        tensor = {"values": [[5, 6, 0, 100, 4, "cuda:0"]], "shapes": [[100]],
                  "types": ["Tensor(float)"]}
        nodes = [{"id": i + 2, "name": name, "ctrl_deps": 1, "inputs": tensor, "outputs": tensor,
                  "attrs": [{"name": "rf_id", "type": "uint64", "value": i + 1}]}
                 for i, name in enumerate(self.OPS)]
        events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 10 * i,
                   "dur": 9, "args": {"Record function id": i + 1}}
                  for i, name in enumerate(self.OPS)]
        self.execution = self.write("et.json", {"schema": "1.1.0-chakra.0.0.4", "nodes": nodes})
        self.profile = self.write("kineto.json", {"traceEvents": events})

    def write(self, name, document):
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as file:
            json.dump(document, file)
        return path

    def run_foretrace(self, *arguments):
        return subprocess.run([FORETRACE, *arguments, "--no-cache", "--quiet"],
                              capture_output=True, text=True)

    def test_a_trace_without_times_is_shown(self):
        shown = self.run_foretrace("info", self.execution)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"recorded +the order of events, without times")
        self.assertRegex(shown.stdout,
                         r"tensors +3 read \(1.2 kB\), 3 written \(1.2 kB\), in 1 storage")

    def test_a_trace_without_times_predicts_nothing(self):
        refused = self.run_foretrace("predict", self.execution)
        self.assertEqual(refused.returncode, 3)
        self.assertIn("must have times, but is an execution trace", refused.stderr)

    def test_every_command_takes_an_execution_trace(self):
        out = os.path.join(self.folder.name, "linked.ftrace")
        for command in (["info", self.profile], ["predict", self.profile],
                        ["doctor", self.profile], ["convert", self.profile, out]):
            run = self.run_foretrace(*command, "--execution-trace", self.execution)
            self.assertEqual(run.returncode, 0, (command, run.stderr))
        [found] = info(out)
        self.assertEqual(found["tensors"]["read"], 3)

    def test_a_folder_links_what_lies_beside_each_other(self):
        [found] = info(self.folder.name)
        self.assertEqual(found["format"], "kineto")
        self.assertEqual(found["tensors"], {"read": 3, "written": 3, "read_bytes": 1200,
                                            "written_bytes": 1200, "storages": 1})


if __name__ == "__main__":
    unittest.main()
