#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of tests/cli/images again, and what Pillow makes of them (needs Pillow and
numpy; the tests do not).

usage: make_images.py [DIRECTORY]
"""
import os
import struct
import sys
import zlib

import numpy
from PIL import Image, ImageOps


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, data, *more):
    """A PNG file of grey pixels whose header says these extents, whatever the data are."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(more) + chunk(b"IDAT", data) +
            chunk(b"IEND", b""))


def scene(width, height):
    """Smooth colours, and edges that a filter has to soften."""
    y, x = numpy.mgrid[0:height, 0:width]
    red = 127 + 127 * numpy.sin(x / 5.0)
    green = 255.0 * y / (height - 1)
    blue = 255.0 * ((x // 7 + y // 5) % 2)
    return numpy.stack([red, green, blue], axis=2).round().astype(numpy.uint8)


def middle(image, width, height):
    left = round((image.width - width) / 2.0)
    top = round((image.height - height) / 2.0)
    return image.crop((left, top, left + width, top + height))


def main(folder):
    os.makedirs(os.path.join(folder, "set"), exist_ok=True)

    def path(name):
        return os.path.join(folder, name)

    image = Image.fromarray(scene(61, 43))
    image.save(path("scene.png"))
    image.save(path("scene.ppm"))
    image.save(path("scene.bmp"))  # rows from below, each filled up to 4 bytes
    with open(path("from_top.bmp"), "wb") as file:  # 32 bits a pixel
        pixels = numpy.array(image.convert("RGBA"))[:, :, [2, 1, 0, 3]].tobytes()
        file.write(b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + len(pixels), 0, 54, 40, 61, -43, 1, 32, 0,
                                       len(pixels), 0, 0, 0, 0) + pixels)
    # What an ImageDecoder makes of it.
    numpy.save(path("decoded_rgb.npy"), numpy.array(image))
    numpy.save(path("decoded_bgr.npy"), numpy.array(image)[:, :, ::-1].copy())
    numpy.save(path("decoded_grey.npy"), numpy.array(image.convert("L"))[:, :, None])
    image.save(path("scene.jpg"), quality=92)
    image.save(path("progressive.jpg"), quality=92, progressive=True, subsampling=0)
    image.convert("L").save(path("grey.png"))
    image.convert("L").save(path("grey.jpg"), quality=92)
    image.convert("P", palette=Image.ADAPTIVE, colors=16).save(path("palette.png"))
    with_alpha = image.copy()
    with_alpha.putalpha(Image.fromarray((scene(61, 43)[:, :, 1] // 2)))
    with_alpha.save(path("alpha.png"))
    image.convert("CMYK").save(path("cmyk.jpg"))

    # What EXIF says of how the camera was held: all eight ways of one small picture.
    exif = Image.Exif()
    exif[0x0112] = 6
    small = Image.fromarray(scene(24, 16)).resize((6, 4), Image.BOX)
    small.save(path("held.jpg"), quality=95, subsampling=0, exif=exif)
    for way in range(1, 9):
        held = Image.open(path("held.jpg"))
        held.getexif()[0x0112] = way
        numpy.save(path(f"held_{way}.npy"), numpy.asarray(ImageOps.exif_transpose(held))[None])

    # Whole pictures as Pillow decodes them, and what its BILINEAR makes of the first: smaller by
    # the shorter side with the middle cut out, stretched, and larger.
    for name in ("scene.png", "scene.jpg", "progressive.jpg", "grey.png", "grey.jpg", "palette.png",
                 "alpha.png"):
        pixels = numpy.asarray(Image.open(path(name)).convert("RGB"))[None]
        numpy.save(path(name + ".npy"), pixels)
    short = image.resize((int(24 * 61 / 43), 24), Image.BILINEAR)
    numpy.save(path("short_24.npy"), numpy.asarray(middle(short, 21, 21))[None])
    numpy.save(path("stretched_20x31.npy"),
               numpy.asarray(image.resize((20, 31), Image.BILINEAR))[None])
    numpy.save(path("larger_100x70.npy"),
               numpy.asarray(image.resize((100, 70), Image.BILINEAR))[None])
    luma = numpy.asarray(image.convert("L"), numpy.float32)[None, None] / numpy.float32(255)
    numpy.save(path("luma.npy"), luma)

    # Broken ones: cut short, of another kind inside, of extents that nobody has memory for.
    for name, share in (("scene.png", 0.5), ("scene.jpg", 0.5)):
        with open(path(name), "rb") as file:
            data = file.read()
        with open(path("cut_" + name), "wb") as file:
            file.write(data[:int(len(data) * share)])
        with open(path("head_" + name), "wb") as file:
            file.write(data[:20])
    with open(path("huge.png"), "wb") as file:
        file.write(png(0x7fffffff, 0x7fffffff, zlib.compress(b"")))
    with open(path("wide.png"), "wb") as file:
        file.write(png(50000, 50000, zlib.compress(b"")))
    with open(path("empty.png"), "wb") as file:
        file.write(png(0, 4, zlib.compress(b"")))
    with open(path("wide.jpg"), "wb") as file:
        with open(path("scene.jpg"), "rb") as scene_file:
            data = bytearray(scene_file.read())
        at = data.index(b"\xff\xc0")
        data[at + 5:at + 9] = struct.pack(">HH", 65000, 65000)
        file.write(bytes(data))
    with open(path("flipped.png"), "wb") as file:
        with open(path("scene.png"), "rb") as scene_file:
            data = bytearray(scene_file.read())
        data[len(data) // 2] ^= 0x40
        file.write(bytes(data))

    # A folder: pictures in the order of their numbers, one broken, and a file that is none.
    for i, level in ((1, 10), (2, 200), (10, 90)):
        Image.new("RGB", (24, 24), (level, level // 2, 255 - level)).save(path(f"set/p{i}.png"))
    with open(path("set/p3.png"), "wb") as file:
        file.write(b"no picture")
    with open(path("set/notes.txt"), "w", encoding="ascii") as file:
        file.write("no picture\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else
         os.path.join(os.path.dirname(os.path.abspath(__file__)), "images"))
