# SPDX-License-Identifier: Apache-2.0

"""Strings: ops on them, casts to and from them, regular expressions."""
import numpy as np

from draw import WORDS, is_float
from registry import generates, some
from values import STRING, get_element_type

NUMBERS = ("0", "-1", "1.5", "-2e3", "100", "7", "0.125", "1e2", "+3", "-0", "12345678", "2.5e-3")
NOT_FINITE_TEXT = ("inf", "-inf", "nan", "INF", "NaN")


@generates("StringConcat")
def string_concat(draw, op, schema):
    shape = draw.shape()
    shapes = [shape, draw.broadcast(shape)]
    if draw.chance(0.5):
        shapes.reverse()
    return draw.finish(draw.node(op, [draw.feed(draw.words(s)) for s in shapes]))


@generates("StringSplit")
def string_split(draw, op, schema):
    x = draw.feed(draw.words(draw.shape(0, 3)), False)
    attrs = some(draw, schema, delimiter=lambda: draw.pick(["", ",", " ", "a", ",,", "or"]),
                 maxsplit=lambda: draw.whole(1, 3))
    return draw.finish(draw.node(op, [x], 2, **attrs))


@generates("StringNormalizer")
def string_normalizer(draw, op, schema):
    count = draw.whole(1, 5)
    plain = [word for word in WORDS if word.isascii()]
    x = draw.words(draw.pick([[count], [1, count]]), draw.pick([plain, WORDS]))
    attrs = some(draw, schema, is_case_sensitive=lambda: draw.whole(0, 1),
                 case_change_action=lambda: draw.pick(["LOWER", "UPPER", "NONE"]),
                 stopwords=lambda: draw.subset(plain[1:], 1)[:3])
    if all(word.isascii() for word in x.flatten()) and draw.chance(0.6):
        attrs["locale"] = "C"  # the only one that is everywhere: without it ONNX Runtime often refuses
    return draw.finish(draw.node(op, [draw.feed(x, False)], **attrs))


def draw_pattern(draw, depth=3):
    """A regular expression that RE2 and Python read alike."""
    if depth == 0 or draw.chance(0.3):
        return draw.pick(["a", "b", "c", ".", "[a-c]", "[^a]", r"\d", r"\w", r"\s", "[[:alpha:]]"
                          if draw.chance(0.1) else "x", r"\.", "é", "[a-z0-9]"])
    inner = [draw_pattern(draw, depth - 1) for _ in range(draw.whole(1, 3))]
    form = draw.pick(["join", "join", "either", "many", "count"])
    if form == "join":
        return "".join(inner)
    group = draw.pick(["(", "(?:"]) + ("|".join(inner) if form == "either" else inner[0]) + ")"
    if form == "many":
        return group + draw.pick(["*", "+", "?", "*?", "+?", "??"])
    if form == "count":
        low = draw.whole(0, 2)
        return group + draw.pick([f"{{{low}}}", f"{{{low},}}", f"{{{low},{low + draw.whole(0, 2)}}}"])
    return group


@generates("RegexFullMatch")
def regex_full_match(draw, op, schema):
    pattern = draw_pattern(draw)
    if draw.chance(0.15):
        pattern = draw.pick(["(?i)", "^", ""]) + pattern + draw.pick(["", "$"])
    letters = ["a", "b", "c", "A", "1", " ", ".", "é", "x", "\n" if draw.chance(0.1) else "y"]
    shape = draw.shape(0, 2)
    texts = ["".join(draw.pick(letters) for _ in range(draw.whole(0, 6))) for _ in range(8)]
    return draw.finish(draw.node(op, [draw.feed(draw.words(shape, texts), False)], pattern=pattern))


def cast_strings(draw, schema):
    """(source, target): one of them strings."""
    numbers = [d for d in schema.get_dtypes(0, True)]
    other = draw.pick(numbers)
    shape = draw.shape(0, 3)
    if draw.chance(0.5):
        return draw.array(other, shape, draw.pick(["any", "small"])), STRING
    texts = NUMBERS + NOT_FINITE_TEXT if is_float(other) and draw.chance(0.4) else NUMBERS
    if not is_float(other):
        texts = ("0", "1", "7", "12") if other.kind in "ub" else ("0", "-1", "7", "-12")
    return draw.words(shape, texts), other


@generates("Cast of strings")
def cast(draw, op, schema):
    source, target = cast_strings(draw, schema)
    return draw.finish(draw.node("Cast", [draw.feed(source, False)], to=get_element_type(target)))


@generates("CastLike of strings")
def cast_like(draw, op, schema):
    source, target = cast_strings(draw, schema)
    like = draw.words([1]) if target == STRING else np.ones([1], target)
    return draw.finish(draw.node("CastLike", [draw.feed(source, False), draw.feed(like)]))
