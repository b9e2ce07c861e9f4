"""Compares `ganglion bench` with llama.cpp, in turns in one run.

Usage: peerbench.py BINARY MODEL [MODEL…] [--threads N] [--rounds N] [--contended] [--synthetic]

Each round measures the peer and then ours in both modes; the medians and the ratio
round by round are printed, so that a machine whose speed drifts does not favour a
side. --contended measures decoding beside a busy loop on one processor instead, as a
share of decoding alone. --synthetic adds llamas of 1.1B random weights in Q4_0 and
Q4_K, which are made beside the first model. Needs the Python packages llama-cpp-python and numpy.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time

import llama_cpp
import numpy as np

PROMPT = int(os.environ.get("PEERBENCH_PROMPT", "512"))  # less only to try the script
GENERATE = int(os.environ.get("PEERBENCH_GENERATE", "64"))
SEQUENCES = 8
NEEDED = {"prefill": 1.0, "decode": 1.1, "exact decode": 0.9, "8 sequences": 1.0}


class Peer:
    """llama.cpp through its C interface, with its default path for the processor."""

    def __init__(self, path, threads):
        self.llm = llama_cpp.Llama(model_path=path, n_ctx=PROMPT + GENERATE + 64, n_batch=512, n_ubatch=512,
                                   n_threads=threads, n_threads_batch=threads, verbose=False)
        self.vocab = self.llm.n_vocab()
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_seq_max, params.n_batch = SEQUENCES * (GENERATE + 64), SEQUENCES, 512
        params.n_threads = params.n_threads_batch = threads
        self.many = llama_cpp.llama_init_from_model(self.llm.model, params)

    @staticmethod
    def clear(ctx):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(ctx), True)

    def prefill(self, round_):
        tokens = [int((round_ * 7919 + i * 104729 + 13) % self.vocab) for i in range(PROMPT)]
        self.llm.reset()
        self.clear(self.llm.ctx)
        start = time.perf_counter()
        self.llm.eval(tokens)
        return PROMPT / (time.perf_counter() - start)

    def decode(self, ctx, sequences):
        """Greedy decode of several sequences; the sum of their tokens a second."""
        self.clear(ctx)
        batch = llama_cpp.llama_batch_init(sequences, 0, 1)
        tokens = [13 + i for i in range(sequences)]
        batch.n_tokens = sequences
        start = time.perf_counter()
        for position in range(GENERATE):
            for i, token in enumerate(tokens):
                batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, position, 1, True
                batch.seq_id[i][0] = i
            if llama_cpp.llama_decode(ctx, batch) != 0:
                raise RuntimeError("llama_decode failed")
            for i in range(sequences):
                row = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(ctx, i), shape=(self.vocab,))
                tokens[i] = int(row.argmax())
        rate = GENERATE * sequences / (time.perf_counter() - start)
        llama_cpp.llama_batch_free(batch)
        return rate

    def measure(self, round_):
        return {"prefill": self.prefill(round_), "decode": self.decode(self.llm.ctx, 1),
                "8 sequences": self.decode(self.many, SEQUENCES)}


def bench(binary, model, threads, *flags):
    out = subprocess.run([binary, "bench", "--model", model, "--threads", str(threads), "--json", "--repeat", "3",
                          "--speculate", "off", "--prompt", str(PROMPT), "--generate", str(GENERATE), *flags], capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(out.stderr)
    return json.loads(out.stdout)


def ours(binary, model, threads):
    fast = bench(binary, model, threads, "--numerics", "fast", "--sequences", str(SEQUENCES))
    exact = bench(binary, model, threads, "--numerics", "exact")
    return {"prefill": fast["prefill_tokens_per_second"], "decode": fast["decode_tokens_per_second"],
            "8 sequences": fast["batch_decode_tokens_per_second"], "exact decode": exact["decode_tokens_per_second"],
            "exact prefill": exact["prefill_tokens_per_second"]}


def compare(binary, model, threads, rounds):
    peer = Peer(model, threads)
    peer.measure(0)  # warm-up
    theirs, mine = [], []
    for i in range(1, rounds + 1):
        theirs.append(peer.measure(i))
        mine.append(ours(binary, model, threads))
    print(os.path.basename(model))
    for what in mine[0]:
        a = [m[what] for m in mine]
        b = [t[what.removeprefix("exact ")] for t in theirs]
        ratios = sorted(x / y for x, y in zip(a, b))
        needed = f", must reach {NEEDED[what]}" if what in NEEDED else ""
        print(f"  {what}: ganglion {statistics.median(a):.1f}, llama.cpp {statistics.median(b):.1f} tokens/s, "
              f"ratio median {statistics.median(ratios):.2f} (min {ratios[0]:.2f}, max {ratios[-1]:.2f}{needed})")


def contended(binary, model, threads, rounds):
    """Decoding while another process keeps processor 0 busy, as a share of alone."""
    peer = Peer(model, threads)
    measures = {"ganglion": lambda: bench(binary, model, threads, "--prompt", "1")["decode_tokens_per_second"],
                "llama.cpp": lambda: peer.decode(peer.llm.ctx, 1)}
    shares = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            alone = measure()
            busy = subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", "while True: pass"])
            try:
                shares[name].append(measure() / alone)
            finally:
                busy.kill()
                busy.wait()
    print(os.path.basename(model))
    for name, values in shares.items():
        print(f"  decode beside a busy processor: {name} {statistics.median(values):.2f} of alone"
              f" (min {min(values):.2f}, max {max(values):.2f}{', must reach 0.45' if name == 'ganglion' else ''})")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("binary")
    p.add_argument("models", nargs="+")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--contended", action="store_true")
    p.add_argument("--synthetic", action="store_true")
    a = p.parse_intermixed_args()
    if a.synthetic:
        for kind in ("q4_0", "q4_k"):
            a.models.append(os.path.join(os.path.dirname(a.models[0]), f"synthetic-llama-1.1b-{kind}.gguf"))
            bench(a.binary, a.models[-1], a.threads, "--synthetic", kind, "--prompt", "1", "--generate", "1")
    for model in a.models:
        (contended if a.contended else compare)(a.binary, model, a.threads, a.rounds)


main()
