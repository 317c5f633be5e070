# SPDX-License-Identifier: Apache-2.0

"""What generators draw with: shapes, arrays, axes, attributes, and the case that grows of them."""
import ml_dtypes
import numpy as np
import onnx.defs

from case import Case, Node
from values import STRING, Maybe, Sequence

# ONNX's names of the types that Rondo has, as NumPy knows them.
DTYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(bfloat16)": ml_dtypes.bfloat16, "tensor(int8)": np.int8, "tensor(int16)": np.int16,
    "tensor(int32)": np.int32, "tensor(int64)": np.int64, "tensor(uint8)": np.uint8,
    "tensor(uint16)": np.uint16, "tensor(uint32)": np.uint32, "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
}
FLOATS = tuple(np.dtype(d) for d in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16))
SPECIALS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-42, 1e-38)
NOT_FINITE = SPECIALS[:4]
WORDS = ("", "a", "b", "A", "cat", "Cat", "dog", "two words", " padded ", "a,b,,c", "12", "-3.5", "straße",
         "Ärger", "日本", "x\ty", "tail,", "aaab")
# Inputs that may hold strings, of ops with generators for numbers.
TAKES_STRINGS = {"Compress": 0, "Concat": 0, "DepthToSpace": 0, "Equal": 0, "Expand": 0, "Flatten": 0, "Gather": 0,
                 "GatherElements": 0, "GatherND": 0, "Identity": 0, "OneHot": 2, "Reshape": 0, "ReverseSequence": 0,
                 "Scatter": 0, "ScatterElements": 0, "ScatterND": 0, "Shape": 0, "Size": 0, "Slice": 0,
                 "SpaceToDepth": 0, "Split": 0, "Squeeze": 0, "Tile": 0, "Transpose": 0, "Unique": 0,
                 "Unsqueeze": 0, "Where": 1}


def is_float(dtype):
    return np.dtype(dtype) in FLOATS


class Invalid(Exception):
    """The drawn shapes or attributes make no case; another draw is taken."""


class Draw:
    """One case being made. Names: x0, x1, ... inputs; y0, y1, ... outputs."""

    def __init__(self, rng, opset, specials=SPECIALS):
        self.rng = rng
        self.opset = opset
        # NaN, infinities and denormals: in one case of five, and then in a few elements.
        self.specials = specials
        self.has_specials = self.chance(0.2)
        self.case = Case(opset, [], {}, {}, [])
        self.case.has_loose_shapes = self.chance(0.15)
        self.constant_chance = float(rng.choice([0.0, 0.3, 0.7], p=[0.4, 0.4, 0.2]))

    # ---- plain draws

    def chance(self, p):
        return bool(self.rng.random() < p)

    def whole(self, low, high):
        """Between low and high, both included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def pick(self, choices):
        choices = list(choices)
        return choices[self.whole(0, len(choices) - 1)]

    def real(self, low=-2.0, high=2.0):
        return float(np.float32(self.rng.uniform(low, high)))

    def permutation(self, count):
        return [int(i) for i in self.rng.permutation(count)]

    def subset(self, items, least=0):
        items = list(items)
        count = self.whole(min(least, len(items)), len(items))
        return [items[i] for i in self.permutation(len(items))[:count]]

    # ---- shapes

    def extent(self, most=6):
        u = self.rng.random()
        return 0 if u < 0.03 else 1 if u < 0.22 else self.whole(2, most)

    def shape(self, least=0, most=4, largest=6, count=400):
        rank = self.whole(least, most)
        shape = [self.extent(largest) for _ in range(rank)]
        while int(np.prod(shape)) > count:
            shape[int(np.argmax(shape))] //= 2
        return shape

    def full_shape(self, *arguments, **options):
        """Without extents of 0."""
        return [max(extent, 1) for extent in self.shape(*arguments, **options)]

    def broadcast(self, shape):
        """A shape that broadcasts to `shape`."""
        shape = [1 if self.chance(0.25) else extent for extent in shape]
        return shape[self.whole(0, len(shape)) if self.chance(0.4) else 0:]

    def axis(self, rank, extra=0):
        if rank + extra == 0:
            raise Invalid
        axis = self.whole(0, rank + extra - 1)
        return axis - rank - extra if self.chance(0.4) else axis

    def axes(self, rank, least=0):
        return [axis - rank if self.chance(0.4) else axis
                for axis in self.subset(range(rank), least)]

    # ---- arrays

    def array(self, dtype, shape, kind="any"):
        """kind: any, small (whole, -4 .. 4), positive, unit (0 .. 1), plain (no specials)."""
        dtype, shape = np.dtype(dtype), tuple(shape)
        if dtype == np.bool_:
            return np.asarray(self.rng.random(shape) < 0.5)
        if dtype == STRING:
            return self.words(shape)
        if not is_float(dtype):
            return self.whole_array(dtype, shape, kind)
        if kind == "positive":
            values = self.rng.uniform(0.05, 3.0, shape)
        elif kind == "unit":
            values = self.rng.uniform(0.0, 1.0, shape)
        elif kind == "small" or (kind == "any" and self.chance(0.3)):
            values = self.rng.integers(-4, 5, shape).astype(np.float64)
        else:
            values = self.rng.standard_normal(shape) * self.pick([0.1, 1.0, 1.0, 3.0])
        values = np.asarray(values)
        if self.has_specials and kind in ("any", "special") and values.size > 0:
            where = self.rng.random(shape) < self.pick([0.1, 0.3, 1.0])
            values = np.where(where, self.rng.choice(self.specials, shape), values)
        with np.errstate(all="ignore"):
            return np.asarray(values).astype(dtype)

    def words(self, shape, choices=WORDS):
        array = np.empty(tuple(shape), object)
        array.flat[:] = [self.pick(choices) for _ in range(array.size)]
        return array

    def whole_array(self, dtype, shape, kind):
        limits = np.iinfo(dtype)
        low, high = max(limits.min, -9), min(limits.max, 9)
        if kind in ("small", "plain"):
            low, high = max(limits.min, -4), 4
        elif kind == "positive":
            low, high = 1, 5
        elif kind == "unit":
            low, high = 0, 1
        elif self.chance(0.15):
            low, high = limits.min, limits.max
        return self.rng.integers(low, high, shape, dtype=dtype, endpoint=True)

    # ---- the case

    def feed(self, array, constant=None):
        """Adds an input of the graph, or a constant by chance or because `constant` says so."""
        name = f"x{len(self.case.feeds) + len(self.case.constants)}"
        if constant is None:
            constant = self.chance(self.constant_chance)
        if isinstance(array, (Sequence, Maybe)):
            self.case.feeds[name] = array
        else:
            (self.case.constants if constant else self.case.feeds)[name] = np.asarray(array)
        return name

    def ints(self, values, dtype=np.int64):
        """A list of numbers as an input, known beforehand two times out of three."""
        return self.feed(np.array(values, dtype), self.chance(0.67))

    def node(self, op, inputs, outputs=1, domain="", **attrs):
        """Adds a node; `outputs` is how many, or a list of which are wanted. Gives their names."""
        wanted = [True] * outputs if isinstance(outputs, int) else outputs
        count = sum(len(node.outputs) for node in self.case.nodes)
        names = [f"y{count + i}" if is_wanted else "" for i, is_wanted in enumerate(wanted)]
        while inputs and inputs[-1] == "":
            inputs = inputs[:-1]
        self.case.nodes.append(Node(op, list(inputs), names, attrs, domain))
        return names

    def finish(self, outputs):
        self.case.outputs = [name for name in outputs if name]
        return self.case


class Schema:
    """What onnx.defs says of an op at an opset."""

    def __init__(self, op, opset, domain=""):
        self.schema = onnx.defs.get_schema(op, opset, domain)
        self.version = self.schema.since_version
        self.attributes = self.schema.attributes

    def get_dtypes(self, index=0, is_output=False):
        """The types that Rondo has of an input, by its number."""
        formal = (self.schema.outputs if is_output else self.schema.inputs)
        formal = formal[min(index, len(formal) - 1)]
        names = [formal.type_str]
        for constraint in self.schema.type_constraints:
            if constraint.type_param_str == formal.type_str:
                names = constraint.allowed_type_strs
        return [np.dtype(DTYPES[name]) for name in DTYPES if name in names]

    def pick_dtype(self, draw, index=0, among=None):
        dtypes = [d for d in self.get_dtypes(index) if among is None or d in among]
        if not dtypes:
            raise Invalid
        if among is None and self.takes_strings(index) and draw.chance(0.1):
            return STRING
        if np.dtype(np.float32) in dtypes and draw.chance(0.5):
            return np.dtype(np.float32)
        return draw.pick(dtypes)

    def takes_strings(self, index):
        """Whether this version of the op takes strings there."""
        formal = self.schema.inputs[min(index, len(self.schema.inputs) - 1)]
        return TAKES_STRINGS.get(self.schema.name) == index and "tensor(string)" in formal.types

    def has(self, attribute):
        return attribute in self.attributes

    def count_inputs(self):
        return len(self.schema.inputs)
