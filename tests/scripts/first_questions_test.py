"""The first questions of practitioners, in their words: each is answered, or its message leads to a question that is answered. FORETRACE
names the program. With --transcript, prints each command and the first line of its answer."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORETRACE = os.environ.get("FORETRACE", "foretrace")
LOADER, GPU, LAUNCH = (f"traces/{name}.pt.trace.json.gz" for name in
                       ("resnet18-v100-loader0", "gpt-a100-gpu-bound", "gpt-a100-launch-bound"))

# The question and, if it is not answered at once, a part of its message and the question that the message leads to.
QUESTIONS = [
    (f"predict {GPU} --with bf16", None, None),
    (f"predict {LOADER} --with num_workers=4", None, None),
    (f"predict {GPU} --with checkpointing", None, None),
    (f"predict {GPU} --with 'gradient checkpointing' --memory-limit 8GB", None, None),
    (f"predict {LOADER} --with amp,loader:workers=4", None, None),
    (f"predict {LAUNCH} --with compile", None, None),
    (f"predict {LAUNCH} --with torch.compile=reduce-overhead", None, None),
    (f"predict {LAUNCH} --with cudagraphs", None, None),
    (f"predict {LAUNCH} --with 'fused adam'", None, None),
    (f"predict {LOADER} --with pin_memory=True", None, None),
    (f"predict {GPU} --with grad_accum=4", None, None),
    (f"predict {GPU} --with gpu=h100-sxm5-80gb", None, None),
    (f"predict {GPU} --with 'bigger batch'", None, None),
    (f"predict {GPU} --with batch=64", "batch_size:from=32,to=64", f"predict {GPU} --with batch_size:from=8,to=64"),
    (f"predict {GPU} --with seq_len=2048", "sequence_length:from=512,to=1024",
     f"predict {GPU} --with sequence_length:from=1024,to=2048"),
    (f"predict {GPU} --with h100", "faster_device:to=h100-sxm5-80gb", f"predict {GPU} --with faster_device:to=h100-sxm5-80gb"),
    (f"predict {GPU} --with fsdp", "zero:stage=3,workers=8", f"predict {GPU} --with zero:stage=3,workers=8,optimizer_bytes=1GB"),
    (f"predict {GPU} --with ddp", "data_parallel:gpus=8,machine=dgx-a100",
     f"predict {GPU} --with data_parallel:gpus=8,machine=dgx-a100,gradient_bytes=500MB"),
    (f"predict {GPU} --with steps=4", "gradient_accumulation:micro_batches=4",
     f"predict {GPU} --with gradient_accumulation:micro_batches=4"),
    (f"predict {GPU} --with 'flash attention'", "scale:where.kind=kernel,where.name=/softmax/,factor=0.5",
     f"predict {GPU} --with scale:where.kind=kernel,where.name=/softmax/,factor=0.5"),
    (f"predict {LOADER} --with 'no dataloader'", "scale:where.kind=input,factor=0",
     f"predict {LOADER} --with scale:where.kind=input,factor=0"),
    (f"predict {GPU} --samples-per-step 8", None, None),
    (f"predict {GPU} --with oom", "foretrace memory TRACE", f"memory {GPU} --memory-limit 16GB"),
    (f"predict {LOADER} --num-workers 4", "--with loader", f"predict {LOADER} --with loader:workers=4"),
    (f"predict {GPU} amp", "--with amp", f"predict {GPU} --with amp"),
    (f"predict {GPU} --with 'amp + prefetch'", 'did you mean "amp,prefetch"?', f"predict {GPU} --with amp,prefetch"),
    (f"predict {GPU} --with scale:name=softmax,kind=kernel,factor=0.5", None, None),
    (f"predict {LOADER} --vary num_workers=1,2,4", "add it with --with loader", f"predict {LOADER} --with loader --vary num_workers=1,2,4"),
    (f"predict {GPU} --memory 16GB", "--memory-limit", f"predict {GPU} --memory-limit 16GB"),
    (f"predict {GPU} --format html", "--html FILE", None),
    (f"memory {GPU} --limit 16GB", "--memory-limit", f"memory {GPU} --memory-limit 16GB"),
    (f"{GPU}", "foretrace advise", f"advise {GPU}"),
    (f"analyze {GPU}", "advise", f"advise {GPU}"),
    (f"compare {LOADER} {LOADER}", "diff", f"diff {LOADER} {LOADER}"),
    (f"predict {GPU} --gpus 8", "data_parallel:gpus=8,machine=dgx-a100", f"scale {GPU} --machine dgx-a100 --gpus 8 --scheme data_parallel:gradient_bytes=500MB"),
    (f"predict {GPU} --mfu", "--samples-per-step 32", f"predict {GPU} --samples-per-step 32"),
    (f"mfu {GPU}", "--samples-per-step 32", f"predict {GPU} --samples-per-step 32"),
    (f"predict {LOADER} --with 'num_workers 8'", None, None),
    (f"predict {GPU} --with max-autotune", None, None),
    ("help bf16", None, None),
    ("help num_workers", None, None),
]


def ask(question):
    done = subprocess.run([FORETRACE, *shlex.split(question), *(() if question.startswith(("help", "traces/")) else ("--quiet", "--no-cache"))],
                          cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def first_lines(out):
    lines = [line for line in out.splitlines() if line.strip()]
    return " | ".join(re.sub(" +", " ", line) for line in lines[:2])


class FirstQuestions(unittest.TestCase):
    def test_each_is_answered_or_led_to_an_answer(self):
        for question, message, further in QUESTIONS:
            with self.subTest(question=question):
                code, out, error = ask(question)
                if message is None:
                    self.assertEqual((code, error), (0, ""))
                    self.assertTrue(out)
                    continue
                self.assertEqual(code, 2)
                self.assertIn(message, error)
                if further is not None:
                    code, out, error = ask(further)
                    self.assertEqual(code, 0, error)


def transcript():
    for question, message, further in QUESTIONS:
        for one in filter(None, (question, further)):
            code, out, error = ask(one)
            print(f"$ foretrace {one}\n  [{code}] {first_lines(out) or error.strip()}")


if __name__ == "__main__":
    transcript() if "--transcript" in sys.argv else unittest.main()
