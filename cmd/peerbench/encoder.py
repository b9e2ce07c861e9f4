#!/usr/bin/env python3
"""Time to encode one picture beside llama.cpp, on the same tower, in one run.

The tower is a quarter of SigLIP (448 pixels, patches of 14, width 1152, 7 layers, halves),
which the benchmark of gpu/encoder makes; its rows are as wide as those of the default model.

ENCODER_TEST is that package's test program; `./build.sh bench-encoder` makes it.

usage: encoder.py ENCODER_TEST MODEL [--rounds N] [--threads N]
"""
import argparse
import ctypes
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
from llama_cpp import llama_cpp, mtmd_cpp


def ours(test, tower, threads):
    """Seconds, and seconds of processor time, of one picture."""
    env = dict(os.environ, GANGLION_SIGLIP=str(tower), GOMAXPROCS=str(threads))
    out = subprocess.run([test, "-test.run", "-", "-test.bench", "SigLIP", "-test.benchtime", "3x"],
                         env=env, check=True, capture_output=True, text=True).stdout
    figures = dict((unit, float(value)) for value, unit in re.findall(r"([\d.]+) (s/picture|cpu-s/picture)", out))
    return figures["s/picture"], figures["cpu-s/picture"]


@llama_cpp.llama_log_callback
def complaints(level, text, _):
    """Passes on warnings and errors, and leaves out what is said of each picture."""
    if level in (3, 4):
        sys.stderr.write(text.decode(errors="replace"))


class Peer:
    """llama.cpp's encoder over its library."""

    def __init__(self, tower, model, threads):
        mtmd_cpp.mtmd_log_set(complaints, None)
        llama_cpp.llama_backend_init()
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 0
        self.model = llama_cpp.llama_model_load_from_file(model.encode(), params)
        options = mtmd_cpp.mtmd_context_params_default()
        options.use_gpu, options.n_threads, options.print_timings, options.warmup = False, threads, False, False
        self.ctx = mtmd_cpp.mtmd_init_from_file(str(tower).encode(), self.model, options)
        if not self.ctx:
            raise SystemExit("llama.cpp does not load the tower")
        pixels = numpy.random.default_rng(7).integers(0, 256, 448 * 448 * 3, dtype=numpy.uint8)
        data = (ctypes.c_uint8 * pixels.size).from_buffer_copy(pixels.tobytes())
        bitmap = mtmd_cpp.mtmd_bitmap_init(448, 448, data)
        text = mtmd_cpp.mtmd_input_text()
        text.text, text.add_special, text.parse_special = mtmd_cpp.mtmd_get_marker(self.ctx), True, True
        text.text_len = len(text.text)
        self.chunks = mtmd_cpp.mtmd_input_chunks_init()
        bitmaps = (mtmd_cpp.mtmd_bitmap_p_ctypes * 1)(bitmap)
        if mtmd_cpp.mtmd_tokenize(self.ctx, self.chunks, ctypes.byref(text), bitmaps, 1):
            raise SystemExit("llama.cpp does not take the picture")
        n = mtmd_cpp.mtmd_input_chunks_size(self.chunks)
        chunks = [mtmd_cpp.mtmd_input_chunks_get(self.chunks, i) for i in range(n)]
        self.picture = next(c for c in chunks if mtmd_cpp.mtmd_input_chunk_get_type(c) == mtmd_cpp.MTMD_INPUT_CHUNK_TYPE_IMAGE)

    def encode(self):
        used, start = processor(), time.perf_counter()
        if mtmd_cpp.mtmd_encode_chunk(self.ctx, self.picture):
            raise SystemExit("llama.cpp does not encode the picture")
        return time.perf_counter() - start, processor() - used


def processor():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main():
    args = argparse.ArgumentParser()
    args.add_argument("test")
    args.add_argument("model")
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--threads", type=int, default=os.cpu_count())
    args = args.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tower = pathlib.Path(folder) / "siglip.gguf"
        ours(args.test, tower, args.threads)  # makes the tower
        peer = Peer(tower, args.model, args.threads)
        peer.encode()
        ratios, cpu = [], []
        for _ in range(args.rounds):
            a, b = ours(args.test, tower, args.threads), min(peer.encode() for _ in range(3))
            ratios.append(b[0] / a[0])
            cpu.append(b[1] / a[1])
            print(f"ganglion {a[0]:.2f} s ({a[1]:.2f} of processor time), llama.cpp {b[0]:.2f} s ({b[1]:.2f})")
        print(f"pictures per second: {statistics.median(ratios):.2f} times llama.cpp's "
              f"({min(ratios):.2f} to {max(ratios):.2f}); per processor time {statistics.median(cpu):.2f}")


if __name__ == "__main__":
    main()
