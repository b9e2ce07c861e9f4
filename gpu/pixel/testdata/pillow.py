"""Writes pillow.txt: the SHA-256 of what Pillow makes of patterns that the test makes too.

pip install Pillow==11.3.0 && python3 pillow.py > pillow.txt

Pillow 13 runs the vertical pass first where that is cheaper, which gives other bytes for
some of the sizes. The reference and the models' training run the horizontal one first.
"""
import hashlib
from PIL import Image

FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}
SIZES = [
    (1, 1), (1, 2), (2, 1), (1, 97), (97, 1), (2, 2), (3, 3), (3, 5), (5, 3), (7, 7), (8, 8), (13, 64),
    (16, 16), (31, 17), (64, 48), (64, 64), (65, 63), (96, 64), (100, 101), (127, 1), (1, 300), (128, 96),
    (200, 150), (256, 3), (3, 256), (317, 211),
]
HUGE = [((4000, 3), (7, 5)), ((3, 4000), (5, 7)), ((1, 1), (600, 400)), ((2, 3), (777, 555)), ((1200, 900), (1, 1)),
        ((1200, 900), (896, 896)), ((1200, 900), (3, 700)), ((1999, 1), (2, 9)), ((900, 1200), (448, 597)), ((640, 480), (1280, 960))]


def pattern(kind, w, h):
    """Noise, black and white noise (which overshoots), or slopes."""
    out, s = bytearray(), 1
    for y in range(h):
        for x in range(w):
            for c in range(3):
                s = (s * 1664525 + 1013904223) & 0xFFFFFFFF
                if kind == 0:
                    v = s >> 24
                elif kind == 1:
                    v = 255 if s >> 31 else 0
                else:
                    v = (x * (c + 3) + y * (5 - c)) & 255
                out.append(v)
    return Image.frombytes("RGB", (w, h), bytes(out))


pairs = [(a, b) for i, a in enumerate(SIZES) for j, b in enumerate(SIZES) if (i * 7 + j * 3) % 5 == 0 and a != b] + HUGE
for n, (a, b) in enumerate(pairs):
    image = pattern(n % 3, *a)
    for name, f in FILTERS.items():
        digest = hashlib.sha256(image.resize(b, f).tobytes()).hexdigest()
        print(n % 3, *a, *b, name, digest)
