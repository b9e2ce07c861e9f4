"""Makes llama.cpp/grammar.json: which tokens llama.cpp's grammar sampler allows.

    python grammar_oracle.py gemma-3-270m-q4_k_m.gguf llama.cpp/grammar.json

3,000 tokens of the model's vocabulary take part. At each step of a walk the set of the
allowed ones is written as hexadecimal digits of four tokens each, low bit first, and the
walk goes on with one of them.
"""
import ctypes, json, math, random, sys
import llama_cpp as L

L.llama_backend_init()
params = L.llama_model_default_params()
params.vocab_only = True
model = L.llama_model_load_from_file(sys.argv[1].encode(), params)
vocab = L.llama_model_get_vocab(model)
total = L.llama_vocab_n_tokens(vocab)


def piece(t):
    buf = ctypes.create_string_buffer(256)
    n = L.llama_token_to_piece(vocab, t, buf, 256, 0, False)
    return buf.raw[:max(n, 0)]


r = random.Random(5)
pieces = [piece(t) for t in range(total)]
eog = [t for t in range(total) if L.llama_vocab_is_eog(vocab, t)]
chosen = [t for t in range(total) if len(pieces[t]) == 1]
short = [t for t in range(total) if 1 < len(pieces[t]) < 6 and all(b < 128 for b in pieces[t])]
signs = [t for t in short if any(b in b'"{}[]:,.+-*/=()\n ' for b in pieces[t])]
broken = [t for t in range(total) if len(pieces[t]) > 1 and pieces[t].decode("utf-8", "ignore").encode() != pieces[t]]
other = [t for t in range(total) if 1 < len(pieces[t]) < 9 and any(b > 127 for b in pieces[t]) and t not in broken]
words = [t for t in range(total) if 3 < len(pieces[t]) < 12]
chosen += r.sample(short, 900) + r.sample(signs, 500) + r.sample(other, 400) + broken[:50] + r.sample(words, 1000)
seen = set()
tokens = []
for t in chosen:
    if pieces[t] not in seen and t not in eog and 0 not in pieces[t]:
        seen.add(pieces[t])
        tokens.append(t)
tokens = tokens[:2999]
end = eog[0]

GRAMMARS = {
    "literal": 'root ::= "yes" | "no" | "maybe so"',
    "class": 'root ::= [a-z]+ "-" [^a-z0-9\\n"]{2,4} [A-C\\x30-\\x39]*',
    "repetitions": 'root ::= "a"? "b"* "c"+ "d"{2} ("e" | "fg"){1,3} ","{0,2} [ ]{2,}',
    "arithmetic": 'root ::= (expr "=" ws term "\\n")+\nexpr ::= term ([-+*/] term)*\nterm ::= ident | num | "(" ws expr ")" ws\nident ::= [a-z] [a-z0-9_]* ws\nnum ::= [0-9]+ ws\nws ::= [ \\t\\n]*',
    "json": r'''
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws  # members
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
''',
    "list": 'root ::= item+\nitem ::= "- " [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ "\\n"',
    "letters of the world": 'root ::= [а-яё]+ " " [一-龥ぁ-ん]+ ("é" | "ü" | "\\u00e8")* [\\U0001F300-\\U0001F6FF]{1,2} .{3}',
    "any": 'root ::= .+',
    "ambiguous": 'root ::= (a | b)* "end"\na ::= [a-m]+ " "?\nb ::= [g-z]+ " "?',
    "nested": 'root ::= s\ns ::= "(" s ")" s | ""',
}


def sampler(text):
    return L.llama_sampler_init_grammar(vocab, text.encode(), b"root")


def allowed(s):
    ids = tokens + [end]
    data = (L.llama_token_data * len(ids))()
    for i, t in enumerate(ids):
        data[i].id, data[i].logit = t, 0
    arr = L.llama_token_data_array()
    arr.data, arr.size, arr.selected, arr.sorted = data, len(ids), -1, False
    L.llama_sampler_apply(s, ctypes.byref(arr))
    return [data[i].logit != -math.inf for i in range(len(ids))]


def digits(bits):
    out = ""
    for i in range(0, len(bits), 4):
        out += "%x" % sum(b << k for k, b in enumerate(bits[i:i + 4]))
    return out


cases = []
for name, text in GRAMMARS.items():
    for walk in range(2):
        s, steps = sampler(text), []
        for _ in range(12):
            bits = allowed(s)
            live = [i for i, b in enumerate(bits[:-1]) if b]
            step = {"allowed": digits(bits)}
            steps.append(step)
            if not live:
                break
            longest = sorted(live, key=lambda i: -len(pieces[tokens[i]]))[:40]
            take = r.choice(live if r.random() < 0.6 else longest)
            step["token"] = take
            L.llama_sampler_accept(s, tokens[take])
        L.llama_sampler_free(s)
        cases.append({"name": f"{name} {walk}", "grammar": text, "steps": steps})
with open(sys.argv[2], "w") as f:
    body = {"oracle": "llama-cpp-python 0.3.36", "pieces": [pieces[t].hex() for t in tokens]}
    f.write(json.dumps(body)[:-1] + ', "cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")
