"""Compares `ganglion bench` with llama.cpp on one model, in turns in one run.

Usage: peerbench.py BINARY MODEL [THREADS] [ROUNDS]

Each round measures the peer and then ours; the medians and the ratio round by
round are printed, so that a machine whose speed drifts does not favour a side.
Needs the Python package llama-cpp-python.
"""
import ctypes
import json
import statistics
import subprocess
import sys
import time

import llama_cpp
import numpy as np

PROMPT, GENERATE = 512, 128


class Peer:
    def __init__(self, path, threads):
        self.llm = llama_cpp.Llama(model_path=path, n_ctx=PROMPT + GENERATE + 64, n_batch=512, n_ubatch=512,
                                   n_threads=threads, n_threads_batch=threads, verbose=False)

    def measure(self, round_):
        vocab = self.llm.n_vocab()
        tokens = [int((round_ * 7919 + i * 104729 + 13) % vocab) for i in range(PROMPT)]
        self.llm.reset()
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.llm.ctx), True)
        start = time.perf_counter()
        self.llm.eval(tokens)
        prefill = PROMPT / (time.perf_counter() - start)
        self.llm.reset()
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.llm.ctx), True)
        return prefill, self.decode(vocab)

    def decode(self, vocab):
        """Greedy decode through the C API, without the Python package's sampling."""
        ctx, token = self.llm.ctx, ctypes.c_int32(13)
        start = time.perf_counter()
        for _ in range(GENERATE):
            batch = llama_cpp.llama_batch_get_one(ctypes.pointer(token), 1)
            if llama_cpp.llama_decode(ctx, batch) != 0:
                raise RuntimeError("llama_decode failed")
            logits = llama_cpp.llama_get_logits_ith(ctx, -1)
            row = np.ctypeslib.as_array(logits, shape=(vocab,))
            token = ctypes.c_int32(int(row.argmax()))
        return GENERATE / (time.perf_counter() - start)


def ours(binary, model, threads):
    out = subprocess.run([binary, "bench", "--model", model, "--threads", str(threads), "--json", "--repeat", "3",
                          "--prompt", str(PROMPT), "--generate", str(GENERATE)], capture_output=True, text=True, check=True)
    r = json.loads(out.stdout)
    return r["prefill_tokens_per_second"], r["decode_tokens_per_second"]


def main():
    binary, model = sys.argv[1:3]
    threads = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    peer = Peer(model, threads)
    peer.measure(0)  # warm-up
    theirs, mine = [], []
    for i in range(1, rounds + 1):
        theirs.append(peer.measure(i))
        mine.append(ours(binary, model, threads))
    for k, what in enumerate(("prefill", "decode")):
        a = [m[k] for m in mine]
        b = [t[k] for t in theirs]
        ratios = sorted(x / y for x, y in zip(a, b))
        print(f"{what}: ganglion {statistics.median(a):.1f}, llama.cpp {statistics.median(b):.1f} tokens/s, "
              f"ratio median {statistics.median(ratios):.2f} (min {ratios[0]:.2f}, max {ratios[-1]:.2f})")


main()
