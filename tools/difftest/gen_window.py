# SPDX-License-Identifier: Apache-2.0

"""Convolutions, pools, resizing and sampling."""
import numpy as np

from draw import Invalid
from registry import generates, some


class Window:
    """A random window over `rank` spatial axes that fits its input."""

    def __init__(self, draw, rank, most=7, allows_auto=True, has_dilations=True):
        self.rank = rank
        self.kernel = [draw.whole(1, 3) for _ in range(rank)]
        self.strides = [draw.whole(1, 3) for _ in range(rank)]
        self.dilations = [draw.whole(1, 2) if has_dilations else 1 for _ in range(rank)]
        self.spans = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        self.pads = [draw.whole(0, span - 1) for span in self.spans * 2]
        self.auto = draw.pick(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]) \
            if allows_auto and draw.chance(0.25) else None
        self.input = [draw.whole(span, max(span, most)) for span in self.spans]

    def attributes(self, draw, schema, has_kernel_shape=True):
        attrs = {}
        if has_kernel_shape:
            attrs["kernel_shape"] = self.kernel
        if any(s != 1 for s in self.strides) or draw.chance(0.3):
            attrs["strides"] = self.strides
        if schema.has("dilations") and any(d != 1 for d in self.dilations):
            attrs["dilations"] = self.dilations
        if self.auto is not None:
            attrs["auto_pad"] = self.auto
        if self.auto in (None, "NOTSET") and any(self.pads):
            attrs["pads"] = self.pads
        return attrs


def channels(draw):
    group = draw.pick([1, 1, 1, 2, 3])
    return group, group * draw.whole(1, 3), group * draw.whole(1, 3)


@generates("Conv")
def conv(draw, op, schema):
    window = Window(draw, draw.pick([1, 2, 2, 3]))
    group, c, m = channels(draw)
    dtype = schema.pick_dtype(draw)
    if draw.chance(0.15):
        group, c = c, c
        m = c * draw.whole(1, 2)
    x = draw.feed(draw.array(dtype, [draw.whole(1, 2), c] + window.input), False)
    w = draw.feed(draw.array(dtype, [m, c // group] + window.kernel, "plain"))
    inputs = [x, w] + ([draw.feed(draw.array(dtype, [m], "plain"))] if draw.chance(0.6) else [])
    attrs = window.attributes(draw, schema, draw.chance(0.5))
    if group != 1:
        attrs["group"] = group
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("ConvTranspose")
def conv_transpose(draw, op, schema):
    window = Window(draw, draw.pick([1, 2, 2, 3]), 4)
    group, c, m = channels(draw)
    dtype = schema.pick_dtype(draw)
    x = draw.feed(draw.array(dtype, [draw.whole(1, 2), c] + window.input), False)
    w = draw.feed(draw.array(dtype, [c, m // group] + window.kernel, "plain"))
    inputs = [x, w] + ([draw.feed(draw.array(dtype, [m], "plain"))] if draw.chance(0.6) else [])
    attrs = window.attributes(draw, schema, draw.chance(0.5))
    if group != 1:
        attrs["group"] = group
    extra = [draw.whole(0, max(s, d) - 1) for s, d in zip(window.strides, window.dilations)]
    if any(extra) and draw.chance(0.5):
        attrs["output_padding"] = extra
    elif draw.chance(0.2):
        attrs.pop("pads", None)
        attrs["output_shape"] = [s * (i - 1) + span - draw.whole(0, min(span - 1, 1))
                                 for i, s, span in zip(window.input, window.strides, window.spans)]
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("DeformConv")
def deform_conv(draw, op, schema):
    window = Window(draw, 2, 5, False)
    group, c, m = channels(draw)
    offset_group = draw.pick([g for g in (1, 2) if c % g == 0])
    dtype = schema.pick_dtype(draw)
    batch = draw.whole(1, 2)
    output = [(i + window.pads[d] + window.pads[d + 2] - window.spans[d]) // window.strides[d] + 1
              for d, i in enumerate(window.input)]
    k = int(np.prod(window.kernel))
    inputs = [draw.feed(draw.array(dtype, [batch, c] + window.input, "plain"), False),
              draw.feed(draw.array(dtype, [m, c // group] + window.kernel, "plain")),
              draw.feed(draw.array(dtype, [batch, offset_group * k * 2] + output, "plain"))]
    inputs.append(draw.feed(draw.array(dtype, [m], "plain")) if draw.chance(0.5) else "")
    if draw.chance(0.5):
        inputs.append(draw.feed(draw.array(dtype, [batch, offset_group * k] + output, "unit")))
    attrs = window.attributes(draw, schema)
    attrs.update({"group": group, "offset_group": offset_group})
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("MaxPool", "AveragePool", "LpPool")
def pool(draw, op, schema):
    window = Window(draw, draw.pick([1, 2, 2, 3]), has_dilations=schema.has("dilations"))
    dtype = schema.pick_dtype(draw)
    x = draw.array(dtype, [draw.whole(1, 2), draw.whole(1, 3)] + window.input)
    attrs = window.attributes(draw, schema)
    attrs.update(some(draw, schema, 0.4, ceil_mode=1, count_include_pad=lambda: draw.whole(0, 1),
                      storage_order=lambda: draw.whole(0, 1), p=lambda: draw.whole(1, 3)))
    wants = [True] + ([draw.chance(0.4)] if op == "MaxPool" and schema.version >= 8 else [])
    return draw.finish(draw.node(op, [draw.feed(x, False)], wants, **attrs))


@generates("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(draw, op, schema):
    shape = draw.full_shape(3, 5, 5)
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape), False)
    return draw.finish(draw.node(op, [x], **some(draw, schema, p=lambda: draw.whole(1, 3))))


@generates("MaxUnpool")
def max_unpool(draw, op, schema):
    rank = draw.pick([1, 2])
    kernel = [draw.whole(1, 3) for _ in range(rank)]
    strides = kernel
    spatial = [draw.whole(1, 3) for _ in range(rank)]
    shape = [1, draw.whole(1, 2)] + spatial
    output = [(i - 1) * s + k for i, s, k in zip(spatial, strides, kernel)]
    count, places = int(np.prod(shape)), int(np.prod(output)) * shape[1]
    index = np.array(sorted(draw.permutation(places)[:count]), np.int64).reshape(shape)
    if index.size != count:
        raise Invalid
    dtype = schema.pick_dtype(draw)
    inputs = [draw.feed(draw.array(dtype, shape), False), draw.feed(index)]
    if draw.chance(0.3):
        inputs.append(draw.ints([1, shape[1]] + output))
    return draw.finish(draw.node(op, inputs, kernel_shape=kernel, strides=strides))


@generates("Col2Im")
def col2im(draw, op, schema):
    window = Window(draw, draw.pick([1, 2, 2, 3]), 5, False)
    blocks = [(i + window.pads[d] + window.pads[d + window.rank] - window.spans[d])
              // window.strides[d] + 1 for d, i in enumerate(window.input)]
    c = draw.whole(1, 2)
    shape = [draw.whole(1, 2), c * int(np.prod(window.kernel)), int(np.prod(blocks))]
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape, "small"), False)
    attrs = window.attributes(draw, schema, False)
    return draw.finish(draw.node(op, [x, draw.ints(window.input), draw.ints(window.kernel)], **attrs))


# ---- Resize and its like ------------------------------------------------------------------------

COORDINATES = {10: [None], 11: ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                "tf_half_pixel_for_nn", "tf_crop_and_resize"],
               13: ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                    "tf_crop_and_resize", "tf_half_pixel_for_nn"],
               18: ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                    "tf_crop_and_resize", "tf_half_pixel_for_nn"],
               19: ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                    "asymmetric", "tf_crop_and_resize"]}
SCALES = (0.4, 0.5, 0.6, 0.75, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)


def draw_resize_scales(draw, rank, mode):
    """Batch and channels are mostly left alone."""
    scales = [1.0, 1.0][:rank] + [draw.pick(SCALES) for _ in range(rank - 2)]
    if rank < 3 or draw.chance(0.1):
        scales = [draw.pick(SCALES) for _ in range(rank)]
    return scales


@generates("Upsample")
def upsample(draw, op, schema):
    mode = draw.pick(["nearest", "linear"])
    shape = draw.full_shape(4, 4, 5)
    scales = [1.0, 1.0] + [draw.pick([1.0, 1.5, 2.0, 3.0]) for _ in range(2)]
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape), False)
    return draw.finish(draw.node(op, [x, draw.feed(np.array(scales, np.float32))], mode=mode))


@generates("Resize")
def resize(draw, op, schema):
    mode = draw.pick(["nearest", "linear"] + (["cubic"] if schema.version >= 11 else []))
    rank = 4 if mode == "cubic" else draw.pick([1, 2, 3, 4, 4, 4, 5])
    shape = draw.full_shape(rank, rank, 5, 300)
    dtype = schema.pick_dtype(draw)
    x = draw.feed(draw.array(dtype, shape), False)
    scales = draw_resize_scales(draw, rank, mode)
    if schema.version < 11:
        return draw.finish(draw.node(op, [x, draw.feed(np.array(scales, np.float32))], mode=mode))
    coordinates = draw.pick(COORDINATES[schema.version])
    attrs = {"mode": mode, "coordinate_transformation_mode": coordinates}
    attrs.update(some(draw, schema, 0.4, exclude_outside=1, cubic_coeff_a=lambda: draw.pick([-0.5, -0.6]),
                      extrapolation_value=lambda: draw.real(), antialias=1))
    if mode == "nearest":
        attrs.update(some(draw, schema, nearest_mode=lambda: draw.pick(
            ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])))
    if mode != "cubic":
        attrs.pop("exclude_outside", None)
    if mode == "nearest":
        attrs.pop("antialias", None)
    axes = list(range(rank))
    if schema.has("axes") and draw.chance(0.4):
        axes = draw.subset(axes, 1)
        if mode == "cubic":
            axes = draw.pick([[2, 3], [3, 2]])
        attrs["axes"] = [a - rank if draw.chance(0.3) else a for a in axes]
    roi = ""
    if coordinates == "tf_crop_and_resize":
        starts, ends = zip(*(sorted((draw.real(-0.2, 1), draw.real(0, 1.2))) if a > 1 else (0.0, 1.0)
                             for a in axes))
        roi_dtype = schema.pick_dtype(draw, 1)
        roi = draw.feed(np.array(starts + ends).astype(roi_dtype))
    elif draw.chance(0.2):
        roi = draw.feed(np.array([], np.float32))
    if draw.chance(0.5):
        inputs = [x, roi, draw.feed(np.array([scales[a] for a in axes], np.float32))]
    else:
        sizes = [max(1, int(shape[a] * scales[a])) for a in axes]
        empty = np.array([], np.float32)
        # Versions 11 and 12 ask for scales, be they empty.
        absent = draw.feed(empty, True) if schema.version < 13 or draw.chance(0.2) else ""
        inputs = [x, roi or (draw.feed(empty, True) if schema.version < 13 else ""), absent,
                  draw.ints(sizes)]
        attrs.update(some(draw, schema, 0.4, keep_aspect_ratio_policy=lambda: draw.pick(
            ["stretch", "not_larger", "not_smaller"])))
    if schema.version < 13 and inputs[1] == "":
        inputs[1] = draw.feed(np.array([], np.float32), True)
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("GridSample")
def grid_sample(draw, op, schema):
    rank = 2 if schema.version < 20 else draw.pick([2, 2, 3])
    modes = ["bilinear", "nearest", "bicubic"] if schema.version < 20 else ["linear", "nearest", "cubic"]
    if rank == 3:
        modes = modes[:2]
    batch = draw.whole(1, 2)
    spatial = [draw.whole(1, 5) for _ in range(rank)]
    shape = [batch, draw.whole(1, 2)] + spatial
    grid = draw.array(np.float32, [batch] + [draw.whole(1, 4) for _ in range(rank)] + [rank], "plain")
    draw.case.floor = 2e-6  # coordinates are rounded to f32, and cubic weights are steep
    dtype = schema.pick_dtype(draw)
    grid_dtype = schema.pick_dtype(draw, 1)
    attrs = some(draw, schema, 0.8, mode=lambda: draw.pick(modes), align_corners=lambda: draw.whole(0, 1),
                 padding_mode=lambda: draw.pick(["zeros", "border", "reflection"]))
    x = draw.feed(draw.array(dtype, shape, "plain"), False)
    return draw.finish(draw.node(op, [x, draw.feed(np.clip(grid, -2, 2).astype(grid_dtype))], **attrs))


@generates("AffineGrid")
def affine_grid(draw, op, schema):
    rank = draw.pick([2, 3])
    batch = draw.whole(1, 2)
    theta = draw.array(schema.pick_dtype(draw), [batch, rank, rank + 1], "plain")
    size = [batch, draw.whole(1, 3)] + [draw.whole(1, 4) for _ in range(rank)]
    attrs = some(draw, schema, align_corners=lambda: draw.whole(0, 1))
    return draw.finish(draw.node(op, [draw.feed(theta), draw.ints(size)], **attrs))


@generates("RoiAlign")
def roi_align(draw, op, schema):
    batch, count = draw.whole(1, 2), draw.whole(1, 3)
    shape = [batch, draw.whole(1, 2), draw.whole(2, 6), draw.whole(2, 6)]
    dtype = schema.pick_dtype(draw)
    corners = np.sort(draw.rng.uniform(0, 6, [count, 2, 2]), 1).reshape(count, 4).astype(dtype)
    attrs = some(draw, schema, mode=lambda: draw.pick(["avg", "max"]),
                 output_height=lambda: draw.whole(1, 3), output_width=lambda: draw.whole(1, 3),
                 sampling_ratio=lambda: draw.whole(0, 3), spatial_scale=lambda: draw.real(0.3, 1.5),
                 coordinate_transformation_mode=lambda: draw.pick(["half_pixel", "output_half_pixel"]))
    index = draw.rng.integers(0, batch, [count])
    inputs = [draw.feed(draw.array(dtype, shape, "plain"), False), draw.feed(corners), draw.feed(index)]
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("MaxRoiPool")
def max_roi_pool(draw, op, schema):
    batch, count = draw.whole(1, 2), draw.whole(1, 3)
    shape = [batch, draw.whole(1, 2), draw.whole(2, 6), draw.whole(2, 6)]
    dtype = schema.pick_dtype(draw, among=[np.dtype(np.float32), np.dtype(np.float64)])
    corners = np.sort(draw.rng.integers(0, 6, [count, 2, 2]), 1).reshape(count, 4)
    rois = np.concatenate([draw.rng.integers(0, batch, [count, 1]), corners], 1).astype(dtype)
    attrs = some(draw, schema, spatial_scale=lambda: draw.pick([0.5, 1.0]))
    inputs = [draw.feed(draw.array(dtype, shape, "plain"), False), draw.feed(rois)]
    return draw.finish(draw.node(op, inputs, pooled_shape=[draw.whole(1, 3), draw.whole(1, 3)], **attrs))
