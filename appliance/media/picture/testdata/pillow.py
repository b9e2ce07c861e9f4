"""Writes the pictures of this folder and, as NAME.want.png, what Pillow makes of each.

pip install Pillow==13.0.0 numpy && python3 pillow.py
"""
import io, math, struct, zlib
import numpy as np
from PIL import Image, ImageOps

rng = np.random.default_rng(7)


def photo(w, h):
    """Slopes, edges of strong colour, and noise."""
    y, x = np.mgrid[0:h, 0:w].astype(float)
    m = np.stack([127 + 120 * np.sin(x / 7 + y / 11), 255 * x / w, 255 * (1 - y / h)], -1)
    m[(x - w / 3) ** 2 + (y - h / 2) ** 2 < (min(w, h) / 4) ** 2] = [230, 20, 30]
    m[h // 2:h // 2 + 5, w // 2:] = [10, 240, 20]
    m[: h // 3, w - w // 4:] = rng.integers(0, 256, (h // 3, w // 4, 3))
    return Image.fromarray(np.clip(m, 0, 255).astype(np.uint8))


def want(name, image):
    image.save(name + ".want.png", optimize=True)


def on_white(m):
    m = m.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", m.size, "white"), m).convert("RGB")


def golden(name, image, make=lambda m: m.convert("RGB"), **kw):
    image.save(name, **kw)
    want(name, make(Image.open(name)))


# JPEG
for size in [(61, 47), (64, 48), (17, 33), (1, 1), (5, 3), (40, 16)]:
    p = photo(*size)
    tag = "%dx%d" % size
    for sub in (0, 1, 2):
        golden(f"j{sub}-{tag}.jpg", p, quality=85, subsampling=sub)
p = photo(61, 47)
for q in (5, 50, 100):
    golden(f"q{q}.jpg", p, quality=q)
golden("prog.jpg", p, quality=80, progressive=True)
golden("prog444.jpg", p, quality=95, progressive=True, subsampling=0)
golden("prog-odd.jpg", photo(131, 67), quality=60, progressive=True)
golden("gray.jpg", p.convert("L"), quality=80)
golden("gray-prog.jpg", p.convert("L"), quality=80, progressive=True)
golden("restart.jpg", p, quality=80, restart_marker_blocks=2)
golden("restart-prog.jpg", p, quality=80, progressive=True, restart_marker_rows=1)
golden("optimized.jpg", p, quality=80, optimize=True)
golden("cmyk.jpg", p.convert("CMYK"), quality=90)
golden("rgb.jpg", p, quality=90, keep_rgb=True)

# s411.jpg and s440.jpg are rgb.png through simplejpeg.encode_jpeg(…, 85, colorsubsampling=…),
# which Pillow does not write.
for o in range(1, 9):
    e = Image.Exif()
    e[274] = o
    golden(f"exif{o}.jpg", photo(29, 21), lambda m: ImageOps.exif_transpose(m).convert("RGB"), quality=90, exif=e)
e = Image.Exif()
e[274] = 6
golden("exif6.png", photo(29, 21), lambda m: ImageOps.exif_transpose(m).convert("RGB"), exif=e)
golden("exif6.webp", photo(29, 21), lambda m: ImageOps.exif_transpose(m).convert("RGB"), exif=e, lossless=True)

# WebP
alpha = p.convert("RGBA")
alpha.putalpha(Image.fromarray((np.mgrid[0:47, 0:61][1] * 255 // 60).astype(np.uint8)))
for size in [(61, 47), (64, 48), (1, 1), (2, 3)]:
    golden("lossy-%dx%d.webp" % size, photo(*size), quality=70)
golden("lossless.webp", p, lossless=True)
golden("alpha.webp", alpha, on_white, quality=80)
golden("alpha-lossless.webp", alpha, on_white, lossless=True)
golden("alpha-raw.webp", alpha, on_white, quality=80, alpha_quality=50)

# PNG
golden("rgb.png", p)
golden("gray.png", p.convert("L"))
golden("bits.png", p.convert("1"))
golden("palette.png", p.quantize(100))
golden("palette4.png", p.quantize(13), bits=4)
golden("palette2.png", p.quantize(4), bits=2)
golden("alpha.png", alpha, on_white)
golden("gray-alpha.png", alpha.convert("LA"), on_white)
golden("transparent-palette.png", p.quantize(32), on_white, transparency=bytes(range(0, 256, 8)))
golden("transparent-rgb.png", p, on_white, transparency=(230, 20, 30))
golden("transparent-gray.png", p.convert("L"), on_white, transparency=p.convert("L").getpixel((20, 23)))


def png(name, kind, depth, samples, interlaced, expected):
    """PNG by hand: samples is [h, w, channels] of ints; filters take turns."""
    h, w, ch = samples.shape

    def rows(part):
        out, above = b"", None
        for i, row in enumerate(part):
            flat = row.reshape(-1)
            if depth == 16:
                raw = flat.astype(">u2").tobytes()
            elif depth == 8:
                raw = flat.astype(np.uint8).tobytes()
            else:
                raw = np.packbits(np.unpackbits(flat.astype(np.uint8)[:, None], axis=1)[:, 8 - depth:].reshape(-1)).tobytes()
            back = max(1, ch * depth // 8)
            up = above or bytes(len(raw))
            left = bytes(back) + raw[:-back] if len(raw) > back else bytes(len(raw))
            corner = bytes(back) + up[:-back] if len(raw) > back else bytes(len(raw))
            left, corner = left[:len(raw)], corner[:len(raw)]
            kinds = i % 5

            def paeth(a, b, c):
                pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
                return a if pa <= pb and pa <= pc else b if pb <= pc else c
            f = [lambda a, b, c: 0, lambda a, b, c: a, lambda a, b, c: b, lambda a, b, c: (a + b) // 2, paeth][kinds]
            out += bytes([kinds]) + bytes((v - f(a, b, c)) & 255 for v, a, b, c in zip(raw, left, up, corner))
            above = raw
        return out
    if interlaced:
        data = b""
        for x, y, dx, dy in [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]:
            part = samples[y::dy, x::dx]
            if part.size:
                data += rows(part)
    else:
        data = rows(samples)

    def chunk(k, b):
        return struct.pack(">I", len(b)) + k + b + struct.pack(">I", zlib.crc32(k + b))
    packed = zlib.compress(data, 9)
    half = len(packed) // 2
    open(name, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, kind, 0, 0, int(interlaced)))
                           + chunk(b"IDAT", packed[:half]) + chunk(b"IDAT", packed[half:]) + chunk(b"IEND", b""))
    Image.open(name).load()
    want(name, expected)


a = np.array(p).astype(int)
noise = rng.integers(0, 256, a.shape)
png("rgb16.png", 2, 16, a * 256 + noise, False, p)
png("rgb16-adam7.png", 2, 16, a * 256 + noise, True, p)
png("rgb-adam7.png", 2, 8, a, True, p)
g = np.array(p.convert("L")).astype(int)
png("gray16.png", 0, 16, (g * 256 + noise[:, :, 0])[:, :, None], False, p.convert("L").convert("RGB"))
ga = np.array(alpha.convert("LA")).astype(int)
png("gray-alpha16.png", 4, 16, ga * 256 + noise[:, :, :2], False, on_white(alpha.convert("LA")))
ra = np.array(alpha).astype(int)
png("alpha16.png", 6, 16, ra * 256 + 7, True, on_white(alpha))
for depth in (1, 2, 4):
    v = g >> (8 - depth)
    top = (1 << depth) - 1
    png(f"gray{depth}.png", 0, depth, v[:, :, None], depth == 2, Image.fromarray((v * 255 // top).astype(np.uint8)).convert("RGB"))
png("tiny-adam7.png", 2, 8, a[:2, :3], True, p.crop((0, 0, 3, 2)))

# GIF
golden("still.gif", p.quantize(64))
golden("plain.gif", p.quantize(64), interlace=0)
golden("transparent.gif", p.quantize(16), on_white, transparency=3)

# BMP
golden("rgb.bmp", p)
golden("palette.bmp", p.quantize(100))
golden("gray.bmp", p.convert("L"))
golden("bits.bmp", p.convert("1"))
golden("alpha.bmp", alpha, lambda m: m.convert("RGB"))


def bmp(name, bits, coding, pixels, palette=b"", masks=b"", w=61, h=47, top=False):
    head = struct.pack("<IiiHHIIiiII", 40, w, -h if top else h, 1, bits, coding, len(pixels), 0, 0, len(palette) // 4, 0)
    at = 14 + 40 + len(masks) + len(palette)
    open(name, "wb").write(b"BM" + struct.pack("<IHHI", at + len(pixels), 0, 0, at) + head + masks + palette + pixels)
    want(name, Image.open(name).convert("RGB"))


def rows16(v, top):
    v = v if top else v[::-1]
    return b"".join(r.astype("<u2").tobytes() + bytes(-2 * len(r) % 4) for r in v)


r, gg, b = a[:, :, 0], a[:, :, 1], a[:, :, 2]
bmp("rgb555.bmp", 16, 0, rows16((r >> 3) << 10 | (gg >> 3) << 5 | b >> 3, False))
bmp("rgb565.bmp", 16, 3, rows16((r >> 3) << 11 | (gg >> 2) << 5 | b >> 3, True), masks=struct.pack("<III", 0xf800, 0x7e0, 0x1f), top=True)
bmp("fields32.bmp", 32, 3, np.array((r << 24 | gg << 16 | b << 8)[::-1]).astype("<u4").tobytes(), masks=struct.pack("<III", 0xff000000, 0xff0000, 0xff00))
q = p.quantize(60)
pal = b"".join(bytes([c[2], c[1], c[0], 0]) for c in np.array(q.getpalette()[:180]).reshape(-1, 3).tolist())
data = b""
for row in np.array(q)[::-1]:
    i = 0
    while i < len(row):
        n = 1
        while i + n < len(row) and row[i + n] == row[i] and n < 255:
            n += 1
        if n < 3 and len(row) - i >= 5:
            data += bytes([0, 5]) + row[i:i + 5].tobytes() + b"\0"
            i += 5
        else:
            data += bytes([n, row[i]])
            i += n
    data += b"\0\0"
bmp("rle8.bmp", 8, 1, data + b"\0\1", pal)
q = p.quantize(16)
pal = b"".join(bytes([c[2], c[1], c[0], 0]) for c in np.array((q.getpalette() + [0] * 48)[:48]).reshape(-1, 3).tolist())
flat = np.array(q)
bmp("palette4.bmp", 4, 0, b"".join(bytes(int(x) << 4 | int(y) for x, y in zip(np.append(r, [0] * 3)[0:64:2], np.append(r, [0] * 3)[1:64:2])) for r in flat[::-1]), pal)

# TIFF
for c in ("raw", "tiff_lzw", "tiff_deflate", "packbits", "tiff_adobe_deflate"):
    golden(f"{c}.tiff", p, compression=c)
golden("lzw-predictor.tiff", p, compression="tiff_lzw", tiffinfo={317: 2})
golden("gray.tiff", p.convert("L"))
golden("palette.tiff", p.quantize(50))
golden("alpha.tiff", alpha, on_white)
golden("bits.tiff", p.convert("1"))
i16 = Image.fromarray((g * 256 + noise[:, :, 0]).astype(np.uint16))
i16.save("gray16.tiff")
want("gray16.tiff", p.convert("L").convert("RGB"))
e = Image.Exif()
e[274] = 8
golden("exif8.tiff", photo(29, 21), lambda m: ImageOps.exif_transpose(m).convert("RGB"), exif=e)

# Animations: every frame as Pillow shows it, below one another.
frames = []
for i in range(6):
    m = Image.new("RGBA", (40, 30), (0, 0, 0, 0))
    m.paste(photo(24, 20).convert("RGBA"), (2 * i, i))
    m.paste((255 - 40 * i, 40 * i, 90, 160 if i % 2 else 255), (30 - 3 * i, 5, 38 - 3 * i, 15))
    frames.append(m)


def moving(name, frames=frames, **kw):
    frames[0].save(name, save_all=True, append_images=frames[1:], **kw)
    m = Image.open(name)
    column = Image.new("RGB", (40, 30 * m.n_frames))
    for i in range(m.n_frames):
        m.seek(i)
        column.paste(on_white(m), (0, 30 * i))
    want(name, column)


for d in (1, 2, 3):
    moving(f"moving{d}.gif", duration=[100, 200, 50, 80, 120, 40], disposal=d)
moving("moving.webp", duration=[100, 200, 50, 80, 120, 40], lossless=True)
moving("moving-lossy.webp", duration=100, quality=60, kmin=2, kmax=3)
# Pillow mixes opacity itself by opacity where APNG lays frames over one another, and
# forgets what to go back to: those files have no half-transparent pixels and no disposal 2.
solid = []
for m in frames:
    m = m.copy()
    m.putalpha(m.getchannel("A").point(lambda v: 255 if v else 0))
    solid.append(m)
times = [100, 200, 50, 80, 120, 40]
for d in (0, 1, 2):
    moving(f"moving{d}0.png", duration=times, disposal=d, blend=0)
for d in (0, 1):
    moving(f"moving{d}1.png", solid, duration=times, disposal=d, blend=1)
