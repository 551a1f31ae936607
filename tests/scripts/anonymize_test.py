"""An anonymized trace contains no word of the program, and predictions from it are the same.

Looks at the files with Python's own JSON reader and its own list of public words.
"""

import gzip
import json
import os
import re
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FORETRACE = os.environ.get("FORETRACE")
SAMPLES = [os.path.join(ROOT, "traces", name) for name in sorted(os.listdir(os.path.join(ROOT, "traces")))
           if name.endswith(".json.gz")]
CORPUS = ["hta-small/simple_add_cp.json.gz", "hta-small/event_sync_multi_stream.json.gz",
          "nanogpt-8rank/rank0.json.gz", "hta-ddp-v100-mem/df_index_resolver.json.gz",
          "mi300-act-ckpt/resnet_act_checkpoint.json.gz", "dev-pair-h100-mi300/bertsmall_h100.json.gz"]
QUESTIONS = [[], ["amp"], ["fused_optimizer"], ["loader"], ["prefetch"], ["cuda_graphs"]]

# Names of CUDA, PyTorch and NCCL, and the keys of the file format.
PUBLIC = re.compile(
    r"^(aten|c10|c10d|prims?)::[\w.]+$|^(cuda|cu|hip)[A-Z]\w*$|^hsa_\w+$"
    r"|^[A-Z]\w*Backward\d+$|^torch::autograd::(AccumulateGrad|CopyBackwards|CopySlices|GraphRoot)$"
    r"|^(ProfilerStep|step|iteration|batch|iter)[#_ :=-]*\d+$")
FORMAT = set("""Memcpy Memset Pageable Pinned Device Array Managed Unified HtoD DtoH DtoD PtoP HtoH
 Optimizer step zero_grad enumerate DataLoader autograd engine evaluate_function Backward torch nccl
 Module kernel process thread stream sync Stream Event Context Sync Wait Unknown name names trace
 schemaVersion displayTimeUnit deviceProperties distributedInfo rank world_size baseTimeNanoseconds
 traceEvents args External correlation registers shared static start range
 Input Dims type Concrete Inputs Call stack Sequence number
 Fwd Record function Python parent device graph node grid block bytes kind fromDevice toDevice
 Collective nelems Group size dtype Process Ranks cuda_sync_kind wait_on_stream
 wait_on_cuda_event_record_corr_id wait_on_cuda_event_id Total Reserved Allocated Bytes Addr memory
 cpu_op user_annotation python_function cuda_runtime cuda_driver overhead gpu_memcpy gpu_memset
 gpu_user_annotation cuda_sync cpu_instant_event fwdbwd ac2g process_name process_labels labels
 process_sort_index sort_index thread_name thread_sort_index totalGlobalMem computeMajor
 computeMinor numSms message Name Type True False None record_param_comms
 _SingleProcessDataLoaderIter _MultiProcessingDataLoaderIter __next__ next
 DistributedDataParallel forward Buffer Flush Activity Request Runtime Triggered Loading Lazy
 Command Full Instrumentation Resource PyTorch Profiler Start Iteration CopyHostToDevice
 CopyDeviceToHost CopyDeviceToDevice FillBuffer""".split())
TYPES = set("""float double long int short char signed unsigned bool Half BFloat16 complex Scalar Tensor
 TensorList GenericList ScalarList Int Bool Double Float Long Byte Char BFloat INVALID""".split())


def run(*arguments):
    done = subprocess.run([FORETRACE, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: {done.stderr}")
    return done.stdout


def load(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as file:
        text = file.read().decode("utf-8", "replace")
    return json.loads(text, strict=False)


def texts_of(value):
    """Every text in a JSON value that is not a key."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part)


def words_of(text):
    return re.findall(r"[A-Za-z_]{4,}", text)


def numbers(path, steps):
    arguments = ["predict", path, "--format", "json", "--no-cache"]
    for step in steps:
        arguments += ["--with", step]
    done = subprocess.run([FORETRACE, *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4):
        # The refusal must not depend on names: it is the same for both.
        return done.returncode
    answer = json.loads(done.stdout)
    keep = {}
    for key in ("measured", "baseline", "predicted", "speedup"):
        keep[key] = answer.get(key)
    for part in keep.values():
        if isinstance(part, dict):
            part.pop("assumptions", None)
    return keep


def traces():
    found = list(SAMPLES)
    corpus = os.environ.get("FORETRACE_CORPUS")
    if corpus:
        found += [os.path.join(corpus, name) for name in CORPUS]
    return [path for path in found if os.path.exists(path)]


@unittest.skipUnless(FORETRACE, "FORETRACE names no program")
class Anonymize(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_no_word_of_the_program_remains(self):
        for path in traces():
            with self.subTest(path=path):
                hidden = self.path("hidden.json")
                kept = run("anonymize", path, hidden, "--no-cache", "--quiet", "--list-kept").splitlines()
                devices = [p.get("name", "") for p in load(hidden).get("deviceProperties", [])]
                allowed = set(FORMAT) | TYPES
                for text in kept + devices:
                    # Kernel words are fragments joined by dashes; all are shown to the user.
                    allowed.update(words_of(text))
                with open(hidden, encoding="utf-8") as file:
                    words = set(words_of(file.read()))
                original = set()
                for text in texts_of(load(path)):
                    original.update(words_of(text))
                self.assertEqual(sorted((words & original) - allowed), [])

    def test_what_is_kept_is_public(self):
        fragments = re.compile(r"^[a-z0-9_:-]+$")  # Parts of kernel names.
        for path in traces():
            with self.subTest(path=path):
                out = self.path("kept.json")
                for text in run("anonymize", path, out, "--no-cache", "--quiet", "--list-kept").splitlines():
                    words = [w for w in words_of(text) if w not in FORMAT and w not in TYPES]
                    if PUBLIC.match(text) or fragments.match(text) or not words:
                        continue
                    self.assertRegex(text, r"NVIDIA|Tesla|Quadro|GeForce|AMD|^nccl|^rccl|Float8|qint|AllReduce|c10::")

    def test_predictions_are_the_same(self):
        for path in traces():
            hidden = self.path("hidden.json.gz")
            run("anonymize", path, hidden, "--no-cache", "--quiet")
            for steps in QUESTIONS:
                with self.subTest(path=path, steps=steps):
                    self.assertEqual(numbers(path, steps), numbers(hidden, steps))

    def test_the_salt_decides(self):
        one, same, other = self.path("a.json"), self.path("b.json"), self.path("c.json")
        run("anonymize", SAMPLES[0], one, "--salt", "x", "--quiet", "--no-cache")
        run("anonymize", SAMPLES[0], same, "--salt", "x", "--quiet", "--no-cache")
        run("anonymize", SAMPLES[0], other, "--salt", "y", "--quiet", "--no-cache")
        contents = []
        for path in (one, same, other):
            with open(path, "rb") as file:
                contents.append(file.read())
        self.assertEqual(contents[0], contents[1])
        self.assertNotEqual(contents[0], contents[2])


if __name__ == "__main__":
    unittest.main()
