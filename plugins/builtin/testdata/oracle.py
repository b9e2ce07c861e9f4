"""Makes the goldens in llama.cpp/: what llama.cpp's samplers do with given candidates.

    pip install llama-cpp-python==0.3.36
    python oracle.py gemma-3-270m-q4_k_m.gguf llama.cpp

The model gives its vocabulary alone (dry looks at the text of tokens). README.md says
how the files are read.
"""
import ctypes, json, math, os, random, struct, sys
import llama_cpp as L

model_path, out_dir = sys.argv[1], sys.argv[2]


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def candidates(logits, ids=None):
    data = (L.llama_token_data * len(logits))()
    for i, l in enumerate(logits):
        data[i].id = ids[i] if ids else i
        data[i].logit = -math.inf if l is None else l
    arr = L.llama_token_data_array()
    arr.data, arr.size, arr.selected, arr.sorted = data, len(logits), -1, False
    return arr, data


def apply(sampler, logits, ids=None):
    arr, data = candidates(logits, ids)
    L.llama_sampler_apply(sampler, ctypes.byref(arr))
    return [(arr.data[i].id, arr.data[i].logit, arr.data[i].p) for i in range(arr.size)], arr.selected


def rows(seed):
    """Named logits: None is minus infinity. Four decimals keep the files short."""
    r = random.Random(seed)
    yield "one", [1.25]
    yield "two", [0.5, -0.5]
    yield "equal", [2.0] * 16
    yield "one finite", [None] * 7 + [3.5] + [None] * 4
    yield "few finite", [None if i % 3 else round(r.gauss(0, 2), 4) for i in range(48)]
    yield "peaked", [round(r.gauss(0, 1), 4) for _ in range(63)] + [14.0]
    yield "ties", [round(r.gauss(0, 2)) * 1.0 for _ in range(64)]
    for i, n in enumerate([5, 16, 40, 100, 256, 256, 256, 256]):
        scale = [0.5, 1, 2, 4][i % 4]
        yield f"random {n} {scale} {i}", [round(r.gauss(0, scale), 4) for _ in range(n)]


def truncation(make, settings, seed, ties=True):
    """Which tokens stay."""
    cases = []
    for i, p in enumerate(settings):
        for name, logits in rows(seed + i):
            if not ties and name in ("equal", "ties", "few finite", "one finite"):
                continue  # the order of equal values is std::sort's
            s = make(p)
            out, _ = apply(s, logits)
            L.llama_sampler_free(s)
            kept = sorted(t for t, l, _ in out if l != -math.inf)
            cases.append({"name": name, "config": p, "logits": logits, "kept": kept})
    return cases


def temperatures():
    cases = []
    for i, p in enumerate([{"range": r, "exponent": e, "temperature": t} for t, r, e in
                           [(1, 0.5, 1), (0.8, 0.3, 2), (1.5, 1, 0.5), (0.7, 0, 1), (0.5, 1.5, 1)]]):
        for name, logits in rows(100 + i):
            if name in ("few finite", "one finite"):
                continue  # llama.cpp counts tokens of no probability as possible ones
            s = L.llama_sampler_init_temp_ext(p["temperature"], p["range"], p["exponent"])
            before = {t: l for t, l in enumerate(logits)}
            out, _ = apply(s, logits)
            L.llama_sampler_free(s)
            t, l, _ = max(out, key=lambda c: abs(c[1]))
            cases.append({"name": name, "config": p, "logits": logits, "temperature": before[t] / l})
    return cases


def choices(make, settings, seed):
    """Runs of steps: candidates that stayed in order, their probabilities, the choice."""
    cases = []
    for i, p in enumerate(settings):
        r = random.Random(seed + i)
        s, steps = make(p), []
        for k in range(12):
            n = r.choice([20, 64, 100])
            logits = [round(r.gauss(0, 2.5), 4) for _ in range(n)]
            arr, data = candidates(logits)
            L.llama_sampler_apply(s, ctypes.byref(arr))
            token = arr.data[arr.selected].id
            L.llama_sampler_accept(s, token)
            probs = sorted(((arr.data[j].p, -arr.data[j].id) for j in range(arr.size)), reverse=True)
            step = {"logits": logits, "size": arr.size, "token": token}
            if arr.size == n:
                step["probabilities"] = [float("%.7g" % next(arr.data[j].p for j in range(n) if arr.data[j].id == t)) for t in range(n)]
            steps.append(step)
        L.llama_sampler_free(s)
        cases.append({"name": f"run {i}", "config": p, "vocab": p.get("n_vocab", 0), "steps": steps})
    return cases


def repetition(vocab):
    def piece(t):
        buf = ctypes.create_string_buffer(256)
        one = (L.llama_token * 1)(t)
        n = L.llama_detokenize(vocab, one, 1, buf, 256, False, True)
        return buf.raw[:n].decode("utf-8", "replace")

    def encode(text):
        b = text.encode()
        out = (L.llama_token * 64)()
        n = L.llama_tokenize(vocab, b, len(b), out, 64, False, False)
        return list(out[:n])

    r = random.Random(7)
    words = encode("The quick brown fox jumps over the lazy dog: \"never\" * said\n the dog.\n\nThe end of it, -- and so on! So what?")
    cases = []
    settings = [
        {"multiplier": 0.8, "base": 1.75, "allowed_length": 2, "last_n": 2048, "breakers": ["\n", ":", "\"", "*"]},
        {"multiplier": 0.8, "base": 1.75, "allowed_length": 2, "last_n": 2048, "breakers": []},
        {"multiplier": 1.5, "base": 1.2, "allowed_length": 1, "last_n": 64, "breakers": ["\n"]},
        {"multiplier": 0.5, "base": 1, "allowed_length": 3, "last_n": 2048, "breakers": [":"]},
        {"multiplier": 0.8, "base": 1.75, "allowed_length": 2, "last_n": 2048, "breakers": ["\n\nThe end", "dog: \"n", "ox j"]},
    ]
    histories = {
        "short": lambda: words[:2],
        "same": lambda: [words[3]] * 300,
        "pair": lambda: words[2:4] * 100,
        "text twice": lambda: words + words[:9],
        "text thrice": lambda: words + words + words[:17],
        "cut at breaker": lambda: words + words,
        "random of 3": lambda: [r.choice(words[:3]) for _ in range(500)],
        "random of 8": lambda: [r.choice(words[:8]) for _ in range(2048)],
        "random words": lambda: [r.choice(words) for _ in range(400)],
        "blocks": lambda: sum((words[a:a + 7] for a in [r.randrange(len(words) - 7) for _ in range(60)]), []),
    }
    used = sorted(set(words))
    for p in settings:
        strings = [b.encode() for b in p["breakers"]]
        arr = (ctypes.c_char_p * max(1, len(strings)))(*strings)
        for name, make in histories.items():
            history = make()
            s = L.llama_sampler_init_dry(vocab, p["multiplier"], p["base"], p["allowed_length"], p["last_n"], arr, len(strings))
            for t in history:
                L.llama_sampler_accept(s, t)
            out, _ = apply(s, [0.0] * len(used), used)
            L.llama_sampler_free(s)
            cases.append({"name": name, "config": p, "history": history,
                          "penalties": {str(t): -l for t, l, _ in out if l != 0}})
    tails = {}
    for p in settings:
        for b in p["breakers"]:
            for cut in range(1, len(b)):
                tails[b[cut:]] = encode(b[cut:])
    return {"pieces": {str(t): piece(t) for t in used}, "encoded": tails, "cases": cases}


def write(name, cases, **more):
    with open(os.path.join(out_dir, name + ".json"), "w") as f:
        body = {"oracle": "llama-cpp-python 0.3.36", **more}
        f.write(json.dumps(body)[:-1] + ', "cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")


L.llama_backend_init()
write("min-p", truncation(lambda p: L.llama_sampler_init_min_p(p["p"], p["min_keep"]),
      [{"p": p, "min_keep": k} for p, k in [(0.05, 1), (0.1, 1), (0.5, 1), (1, 1), (0, 1), (0.3, 7)]], 1))
write("top-nsigma", truncation(lambda p: L.llama_sampler_init_top_n_sigma(p["n"]),
      [{"n": n} for n in (0, 0.5, 1, 1.5, 2, 3)], 20))
write("typical", truncation(lambda p: L.llama_sampler_init_typical(p["p"], p["min_keep"]),
      [{"p": p, "min_keep": k} for p, k in [(0.2, 1), (0.5, 1), (0.8, 1), (0.95, 1), (1, 1), (0.3, 9)]], 40, ties=False))
write("xtc", truncation(lambda p: L.llama_sampler_init_xtc(p["probability"], p["threshold"], p["min_keep"], 1),
      [{"probability": q, "threshold": t, "min_keep": k} for q, t, k in
       [(1, 0.1, 1), (1, 0.05, 1), (1, 0.01, 1), (1, 0.3, 1), (1, 0.51, 1), (0, 0.1, 1), (1, 0.02, 60)]], 60))
write("dynatemp", temperatures())
write("mirostat", choices(lambda p: L.llama_sampler_init_mirostat(p["n_vocab"], 11, p["tau"], p["eta"], p["m"]),
      [{"tau": t, "eta": e, "m": m, "n_vocab": v} for t, e, m, v in [(5, 0.1, 100, 32000), (3, 0.1, 100, 262144), (2, 0.4, 20, 128), (4, 0.2, 60, 151936)]], 200))
write("mirostat2", choices(lambda p: L.llama_sampler_init_mirostat_v2(11, p["tau"], p["eta"]),
      [{"tau": t, "eta": e} for t, e in [(5, 0.1), (3, 0.1), (2, 0.4), (1, 0.2)]], 220))
write("adaptive-p", choices(lambda p: L.llama_sampler_init_adaptive_p(p["target"], p["decay"], 11),
      [{"target": t, "decay": d} for t, d in [(0.55, 0.9), (0.3, 0.5), (0.1, 0.99), (0.9, 0)]], 240))

params = L.llama_model_default_params()
params.vocab_only = True
model = L.llama_model_load_from_file(model_path.encode(), params)
body = repetition(L.llama_model_get_vocab(model))
write("dry", body.pop("cases"), **body)
