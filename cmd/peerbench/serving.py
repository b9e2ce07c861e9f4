"""Compares the serving side of Ganglion with llama-cpp-python's server, in turns in
one run: process start to the first token of a streamed answer, resident memory, and
the speed of tokenizing 1 MiB of mixed text.

Usage: serving.py BINARY MODEL [THREADS] [ROUNDS]

Needs the Python package llama-cpp-python[server].
"""
import ctypes
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import llama_cpp

SAMPLES = [
    "The quick brown fox jumps over the lazy dog; it has done so for years, and nobody minds. ",
    "Größe, naïve, façade: Ärger über Öl. L'été dernier, à Noël, où étiez-vous ? ",
    "\tfor i := range words { sum += len(words[i]) } // 0x%04x\n",
    "В чащах юга жил бы цитрус? Да, но фальшивый экземпляр! ",
    "敏捷的棕色狐狸跳过了懒狗。東京特許許可局局長。빠른 갈색 여우. ",
    "{\"id\": %d, \"name\": \"value\", \"list\": [1, 2.5, -3e10, null, true]}\n",
    "नमस्ते दुनिया, مرحبا بالعالم, שלום עולם 😀🚀👩‍👩‍👧 ",
]


def mixed_text(size):
    parts, n, i = [], 0, 0
    while n < size:
        s = SAMPLES[i % len(SAMPLES)]
        s = s % (i * 7919 % 65521) if "%" in s else s
        parts.append(s.encode())
        n += len(parts[-1])
        i += 1
    return b"".join(parts)[:size].decode("utf-8", "ignore").encode()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def first_token(command, port, env):
    """Seconds from process start to the first piece of text; and the resident MB."""
    start = time.perf_counter()
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    try:
        body = json.dumps({"model": "m", "prompt": "The capital of France is", "max_tokens": 8, "temperature": 0, "stream": True})
        while True:
            try:
                c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                c.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
                answer = c.getresponse()
                if answer.status == 200:
                    break
            except OSError:
                pass
            if server.poll() is not None:
                raise RuntimeError(f"{command[0]} ended with {server.returncode}")
            time.sleep(0.002)
        seconds = None
        for line in answer:
            if line.startswith(b"data: {") and json.loads(line[6:])["choices"][0].get("text") and seconds is None:
                seconds = time.perf_counter() - start
        with open(f"/proc/{server.pid}/status") as f:
            rss = int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) / 1000
        return seconds, rss
    finally:
        server.terminate()
        server.wait()


def start_ours(binary, model, threads):
    port = free_port()
    with tempfile.TemporaryDirectory() as home:
        return first_token([binary, "serve", "--listen", f"127.0.0.1:{port}", "--model", model, "--threads", str(threads)],
                           port, dict(os.environ, HOME=home))


def start_peer(model, threads):
    port = free_port()
    return first_token([sys.executable, "-m", "llama_cpp.server", "--model", model, "--host", "127.0.0.1", "--port", str(port),
                        "--n_threads", str(threads), "--n_ctx", "4096"], port, os.environ)


def tokenize_ours(binary, model, path, repeat):
    with open(path, "rb") as f:
        out = subprocess.run([binary, "tokenize", "--model", model, "--repeat", str(repeat)], stdin=f, capture_output=True, check=True)
    r = json.loads(out.stdout)
    return r["seconds"], r["tokens"]


def tokenize_peer(vocab, text, repeat):
    room = len(text) + 16
    ids = (ctypes.c_int32 * room)()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        n = llama_cpp.llama_tokenize(vocab, text, len(text), ids, room, True, True)
        times.append(time.perf_counter() - start)
    return statistics.median(times), n


def show(what, ours, theirs, unit):
    ratios = sorted(a / b for a, b in zip(ours, theirs))
    print(f"{what}: ganglion {statistics.median(ours):.3f}, llama-cpp-python {statistics.median(theirs):.3f} {unit}, "
          f"ratio median {statistics.median(ratios):.3f} (min {ratios[0]:.3f}, max {ratios[-1]:.3f})")


def main():
    binary, model = sys.argv[1:3]
    threads = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
    start_ours(binary, model, threads), start_peer(model, threads)  # warm the page cache
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(start_peer(model, threads))
        ours.append(start_ours(binary, model, threads))
    show("start to first token", [s for s, _ in ours], [s for s, _ in theirs], "s")
    show("resident memory", [m for _, m in ours], [m for _, m in theirs], "MB")

    text = mixed_text(1 << 20)
    llm = llama_cpp.Llama(model_path=model, vocab_only=True, verbose=False)
    vocab = llama_cpp.llama_model_get_vocab(llm.model)
    with tempfile.NamedTemporaryFile() as f:
        f.write(text)
        f.flush()
        ours, theirs = [], []
        for _ in range(rounds):
            b, n = tokenize_peer(vocab, text, 5)
            a, m = tokenize_ours(binary, model, f.name, 5)
            if n != m:
                raise RuntimeError(f"{m} tokens against {n}")
            ours.append(a)
            theirs.append(b)
    show(f"tokenizing {len(text)} bytes into {n} tokens", ours, theirs, "s")


main()
