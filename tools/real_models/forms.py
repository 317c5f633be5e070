# SPDX-License-Identifier: Apache-2.0

"""What a catalog of models is written in: sizes, models, and draws of their inputs."""
import dataclasses
import math
import typing

import numpy as np


class Size(typing.NamedTuple):
    usual: int
    low: int
    high: int
    step: int = 1


@dataclasses.dataclass
class Model:
    package: str
    path: str  # inside the wheel
    make_feeds: typing.Callable  # (draw, **sizes) -> {input: array}
    sizes: dict = dataclasses.field(default_factory=dict)
    compares_boxes: bool = False  # rows are boxes, whose order among near-equal scores is open


class Draw:
    """Inputs of one data set, the same on every machine."""

    def __init__(self, seed):
        self.random = np.random.Generator(np.random.Philox(seed))

    def normal(self, *shape, scale=1.0):
        return (scale * self.random.standard_normal(shape)).astype(np.float32)

    def uniform(self, *shape, low=0.0, high=1.0):
        return self.random.uniform(low, high, shape).astype(np.float32)

    def tokens(self, count, *shape, low=0):
        return self.random.integers(low, count, shape).astype(np.int64)

    def picture(self, *shape, low=-1.0, high=1.0):
        """Slow gradients, bright boxes, and strokes as of letters."""
        count, channels, height, width = shape
        y, x = np.mgrid[0:height, 0:width]
        pictures = np.empty(shape, np.float32)
        for picture in pictures:
            plane = 0.5 + 0.3 * np.sin(x / (20 + 60 * self.random.random())) * np.cos(y / 47.0)
            for _ in range(10):
                top, left = self.random.integers(0, height), self.random.integers(0, width)
                plane[top:top + height // 5 + 2, left:left + width // 4 + 2] = self.random.random()
            for _ in range(width // 6):
                top, left = self.random.integers(0, height), self.random.integers(0, width)
                if self.random.random() < 0.5:
                    plane[top:top + 12, left:left + 2] = 0.05
                else:
                    plane[top:top + 2, left:left + 9] = 0.05
            for channel in range(channels):
                picture[channel] = plane * (1 - 0.04 * channel)
        return np.clip(pictures, 0, 1) * np.float32(high - low) + np.float32(low)

    def speech(self, *shape):
        """Like a voice at 16 kHz: harmonics of a tone that wanders, loud and soft in turns."""
        time = np.arange(int(np.prod(shape))) / 16000.0
        pitch = 2 * np.pi * (110 + 40 * self.random.random()) * time + 3 * np.sin(5 * time)
        wave = sum(np.sin(k * pitch) / k for k in range(1, 20))
        loudness = 0.1 * np.maximum(0.02, np.sin(2 * np.pi * 3 * time + self.random.random()))
        return (loudness * wave).reshape(shape).astype(np.float32)


def pictures(name, height, width, low=-1.0, high=1.0, channels=3):
    def make(draw, n=1, h=height, w=width):
        return {name: draw.picture(n, channels, h, w, low=low, high=high)}
    return make


def draw_sizes(model, count):
    """The usual sizes, then `count` others, no two the same, or all that there are."""
    random = np.random.Generator(np.random.Philox(1))
    count = min(count, math.prod((size.high - size.low) // size.step + 1 for size in model.sizes.values()) - 1)
    found = [{name: size.usual for name, size in model.sizes.items()}]
    while model.sizes and len(found) <= count:
        sizes = {name: int(random.integers(0, (size.high - size.low) // size.step + 1)) * size.step + size.low
                 for name, size in model.sizes.items()}
        if sizes not in found:
            found.append(sizes)
    return found


FEW = Size(1, 1, 6)
WORDS = Size(32, 2, 96)
SHORT = Size(12, 2, 40)
