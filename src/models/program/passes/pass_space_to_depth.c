// program/passes/pass_space_to_depth.c — a convolution of few channels, as the first one of most
// networks, becomes one of many channels over blocks of pixels.
//
//   before   image ── cast ── Transpose ── Conv      3 channels, 7 x 7 taps, stride 2
//   after    image ── SpaceToDepth ── Conv'          16 channels, 4 x 4 taps, stride 1
//
// Tensor cores want channels by eights; 3 leave most of a product empty. A block is as large as the
// stride, so that the window moves on by one block. What the convolution pads, the blocks hold, and
// Conv' pads nothing. Along an axis with kernel k, stride s and p pixels of padding in front (7, 2
// and 3 here):
//
//   filter    f  0  1  2  3  4  5  6         f zeros in front, so that it begins with a block
//   pixels   [.  .][.  .][0  1][2  3]...     before = p + f pixels of padding
//                                            taps = (f + k) / s, rounded up
//
// With f = 0 there are fewest taps. With f = -p mod s a block begins at each multiple of s, and its
// rows are read at once; so that f is taken where it costs no tap. Filters get 0 where a block
// reaches over them: those taps meet pixels that the filter does not see, which matters for
// infinities and NaN alone (program/README.md). A kernel as large as its stride has none.
//
// Filters that are computed, as a training step's are, come to that form by a Gather from rows with
// a 0 behind them, and their changes (rondo.ConvWeights) come back from it by another.
//
// Where a block does not pay (stride 1, dilations, small kernels over many channels), it is one
// pixel: the convolution keeps its window, and channels are filled up to eights. In both cases the
// cast to f16 and the layout before the convolution are made on the way. Where there are none, as
// in the middle of a network, the op is a launch more, and small convolutions do without.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "op/image/convolution.h"
#include "op/image/space_to_depth.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/view.h"
#include "program/window_write.h"

enum {
    AXES = RONDO__SPACE_AXES,
    FEW_CHANNELS = 16,
    PIECE = 8,          // channels that are moved at once
    ONNX_FLOAT16 = 10,  // TensorProto.DataType
};

// Multiplications that take as long as a launch where no tensor core makes them.
static const double launch_products = 1e7;

typedef struct blocks {
    rondo__convolution convolution;
    int64_t block[AXES], front[AXES], taps[AXES], before[AXES], extent[AXES];
    int64_t channels;
} blocks;

// ---- the form ---------------------------------------------------------------------------------

static void find_blocks(blocks *b) {
    const rondo__window *w = &b->convolution.window;
    for (int32_t d = 0; d < AXES; ++d) {
        const int64_t s = w->stride[d], aligned = (s - w->pad_begin[d] % s) % s;
        b->block[d] = s;
        b->taps[d] = rondo__divide_up(w->kernel[d], s);
        b->front[d] = rondo__divide_up(aligned + w->kernel[d], s) == b->taps[d] ? aligned : 0;
        b->before[d] = w->pad_begin[d] + b->front[d];
        b->extent[d] = w->output[d] + b->taps[d] - 1;
    }
    b->channels =
        rondo__divide_up(b->convolution.channels * b->block[0] * b->block[1], PIECE) * PIECE;
}

// Blocks of one pixel.
static void find_pixels(blocks *b) {
    const rondo__window *w = &b->convolution.window;
    for (int32_t d = 0; d < AXES; ++d) {
        b->block[d] = 1;
        b->front[d] = 0;
        b->taps[d] = w->kernel[d];
        b->before[d] = 0;
        b->extent[d] = w->input[d];
    }
    b->channels = rondo__divide_up(b->convolution.channels, PIECE) * PIECE;
}

static int64_t count_products(const blocks *b) {
    return b->channels * b->taps[0] * b->taps[1];
}

// The form with fewer multiplications for each output.
static void choose_form(blocks *b) {
    const rondo__window *w = &b->convolution.window;
    find_pixels(b);
    const int64_t of_pixels = count_products(b);
    if ((w->stride[0] == 1 && w->stride[1] == 1) || w->dilation[0] != 1 || w->dilation[1] != 1) {
        return;
    }
    find_blocks(b);
    if (count_products(b) > of_pixels) {
        find_pixels(b);
    }
}

// The shape of filters in f16: of weights that are known, or that the program computes.
static bool read_filters(const rondo_program *program, int32_t value, rondo_shape *out_shape) {
    const rondo__value *w = &program->values[value];
    if (rondo__value_is_constant(w)) {
        *out_shape = w->constant.shape;
        return w->constant.dtype == RONDO_DTYPE_F16;
    }
    return w->dtype == RONDO_DTYPE_F16 && rondo__value_get_shape(w, out_shape);
}

static bool read(const rondo_program *program, const rondo__node *node, blocks *out_blocks) {
    rondo_shape x, w;
    if (!rondo__node_is(node, RONDO__FUSED_Conv) ||
        rondo__op_get_int(&node->op, "channels_last", 0) == 0) {
        return false;
    }
    const rondo__value *image = &program->values[node->inputs[0]];
    if (image->dtype != RONDO_DTYPE_F16 || !read_filters(program, node->inputs[1], &w) ||
        rondo__value_is_constant(image) || !rondo__value_get_shape(image, &x) ||
        x.rank != 2 + AXES || rondo_shape_get_count(&x) == 0) {
        return false;
    }
    *out_blocks = (blocks){0};
    const rondo__convolution *c = &out_blocks->convolution;
    if (rondo__convolution_init(&node->op, &x, &w, true, &out_blocks->convolution) !=
            RONDO_STATUS_OK ||
        c->group != 1 || c->channels > FEW_CHANNELS || c->channels % PIECE == 0 ||
        c->output_span == 0) {
        return false;
    }
    choose_form(out_blocks);
    return true;
}

// ---- where the image comes from ---------------------------------------------------------------

typedef struct source {
    int32_t value;
    bool is_last;    // [N, H, W, C]
    bool saturates;  // of a cast that was taken along
    bool saves;      // a launch that was there before
} source;

static bool has_extents(const rondo__view *view, const int64_t *extents, const int64_t *strides) {
    for (int32_t d = 0; d < 2 + AXES; ++d) {
        if (view->extent[d] != extents[d] || (extents[d] > 1 && view->stride[d] != strides[d])) {
            return false;
        }
    }
    return true;
}

// Goes back from [N, H, W, C] to the [N, C, H, W] that it was made of, or to another [N, H, W, C]
// with the same elements.
static void skip_layout(const rondo_program *program, source *s) {
    rondo_shape base;
    rondo__view view;
    rondo__view_trace(program, s->value, false, &view);
    if (view.base == s->value || view.offset != 0 || view.rank != 2 + AXES ||
        !rondo__value_get_shape(&program->values[view.base], &base) || base.rank != 2 + AXES) {
        return;
    }
    const int64_t *e = base.extent;
    const int64_t turned[] = {e[0], e[2], e[3], e[1]};
    const int64_t of_planes[] = {e[1] * e[2] * e[3], e[3], 1, e[2] * e[3]};
    const int64_t of_pixels[] = {e[1] * e[2] * e[3], e[2] * e[3], e[3], 1};
    if (has_extents(&view, turned, of_planes)) {
        s->is_last = false;
    } else if (!has_extents(&view, e, of_pixels)) {
        return;
    }
    s->saves = s->saves || !rondo__view_is_whole(program, &view);
    s->value = view.base;
}

// Goes back to f32. A cast behind an element-wise op stays: it will be a part of that op.
static void skip_cast(const rondo_program *program, source *s) {
    const int32_t producer = program->values[s->value].producer;
    if (producer < 0) {
        return;
    }
    const rondo__node *node = &program->nodes[producer];
    rondo__scalar_op op;
    int32_t first, second;
    float alpha, beta;
    const bool saturates =
        rondo__node_is(node, RONDO__FUSED_Elementwise) &&
        rondo__match_scalar_op(program, node, &op, &first, &second, &alpha, &beta) &&
        op == RONDO__SCALAR_Saturate;
    if ((!saturates && !rondo__node_is(node, RONDO__OP_Cast)) ||
        program->values[node->inputs[0]].dtype != RONDO_DTYPE_F32) {
        return;
    }
    const int32_t maker = program->values[node->inputs[0]].producer;
    if (maker >= 0 && (program->nodes[maker].op.def->flags & RONDO__OP_ELEMENTWISE) != 0) {
        return;
    }
    s->value = node->inputs[0];
    s->saturates = saturates;
    s->saves = true;
}

static source find_source(const rondo_program *program, int32_t image) {
    source s = {.value = image, .is_last = true};
    skip_layout(program, &s);
    skip_cast(program, &s);
    if (s.is_last) {
        skip_layout(program, &s);
    }
    return s;
}

// ---- the rewriting ----------------------------------------------------------------------------

// Where tap `k` of a channel goes, in [channels of blocks, taps].
static int64_t find_place(const blocks *b, int64_t channel, int64_t k) {
    const int64_t wide = b->convolution.window.kernel[1];
    const int64_t y = k / wide + b->front[0], x = k % wide + b->front[1];
    const int64_t deep = (channel * b->block[0] + y % b->block[0]) * b->block[1] + x % b->block[1];
    return (deep * b->taps[0] + y / b->block[0]) * b->taps[1] + x / b->block[1];
}

// From [filters, channels, kernel] to [filters, channels of blocks, taps].
static rondo_status make_weights(rondo_program *program, const blocks *b, int32_t value,
                                 int32_t *out_value) {
    const rondo_tensor *filters = &program->values[value].constant;
    const rondo__convolution *c = &b->convolution;
    const int64_t *kernel = c->window.kernel;
    const rondo_shape shape = {.rank = 2 + AXES,
                               .extent = {c->filters, b->channels, b->taps[0], b->taps[1]}};
    rondo_tensor made;
    RETURN_IF_ERROR(rondo_tensor_init(filters->dtype, &shape, &made));
    memset(made.data, 0, rondo_tensor_get_bytes(&made));
    const uint16_t *from = filters->data;
    uint16_t *to = made.data;
    for (int64_t plane = 0; plane < c->filters * c->channels; ++plane) {
        const int64_t filter = plane / c->channels, channel = plane % c->channels;
        for (int64_t k = 0; k < kernel[0] * kernel[1]; ++k) {
            to[filter * count_products(b) + find_place(b, channel, k)] = *from++;
        }
    }
    const rondo_status status = rondo__program_add_constant(program, "blocks", &made, out_value);
    rondo_tensor_deinit(&made);
    return status;
}

// Ints that the program then has; takes the tensor.
static rondo_status add_list(rondo_program *program, rondo_tensor *list, int32_t *out_value) {
    const rondo_status status = rondo__program_add_constant(program, "blocks", list, out_value);
    rondo_tensor_deinit(list);
    return status;
}

// How many zeros stand behind each row of [filters, taps]: one.
static rondo_status add_padding(rondo_program *program, int32_t *out_value) {
    static const int64_t pads[] = {0, 0, 0, 1};
    const rondo_shape shape = {.rank = 1, .extent = {4}};
    rondo_tensor list;
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_I64, &shape, &list));
    memcpy(list.data, pads, sizeof pads);
    return add_list(program, &list, out_value);
}

// Where each tap over blocks comes from in such a row.
static rondo_status add_places(rondo_program *program, const blocks *b, int32_t *out_value) {
    const rondo_shape shape = {.rank = 3, .extent = {b->channels, b->taps[0], b->taps[1]}};
    const int64_t span = b->convolution.kernel_span, all = b->convolution.channels * span;
    rondo_tensor list;
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_I64, &shape, &list));
    int64_t *from = list.data;
    for (int64_t i = 0; i < count_products(b); ++i) {
        from[i] = all;  // the zero
    }
    for (int64_t i = 0; i < all; ++i) {
        from[find_place(b, i / span, i % span)] = i;
    }
    return add_list(program, &list, out_value);
}

// The same of weights that are computed: a zero behind the taps of each filter, and then a Gather.
static rondo_status compute_weights(rondo_program *program, size_t n, const blocks *b,
                                    int32_t value, int32_t *out_value) {
    const rondo__convolution *c = &b->convolution;
    const int64_t all = c->channels * c->kernel_span;
    const rondo_shape flat = {.rank = 2, .extent = {c->filters, all}};
    const rondo_shape padded = {.rank = 2, .extent = {c->filters, all + 1}};
    const rondo_shape made = {.rank = 2 + AXES,
                              .extent = {c->filters, b->channels, b->taps[0], b->taps[1]}};
    int32_t padding[2], gathered[2];
    RETURN_IF_ERROR(
        rondo__program_add_shaped(program, "blocks", RONDO_DTYPE_F16, &flat, &padding[0]));
    RETURN_IF_ERROR(rondo__program_add_reshape(program, value, padding[0], &flat));
    RETURN_IF_ERROR(add_padding(program, &padding[1]));
    RETURN_IF_ERROR(
        rondo__program_add_shaped(program, "blocks", RONDO_DTYPE_F16, &padded, &gathered[0]));
    RETURN_IF_ERROR(rondo__program_add_simple(program, "", "Pad", program->nodes[n].op.name,
                                              padding, 2, &gathered[0], 1));
    RETURN_IF_ERROR(add_places(program, b, &gathered[1]));
    RETURN_IF_ERROR(
        rondo__program_add_shaped(program, "blocks", RONDO_DTYPE_F16, &made, out_value));
    RETURN_IF_ERROR(rondo__program_add_simple(program, "", "Gather", program->nodes[n].op.name,
                                              gathered, 2, out_value, 1));
    return rondo__op_set_int(&program->nodes[program->node_count - 1].op, "axis", 1);
}

// Where each tap [channels, kernel] comes from in a row of taps over blocks.
static rondo_status add_places_back(rondo_program *program, const blocks *b, int32_t *out_value) {
    const int64_t *kernel = b->convolution.window.kernel, span = b->convolution.kernel_span;
    const rondo_shape shape = {.rank = 3,
                               .extent = {b->convolution.channels, kernel[0], kernel[1]}};
    rondo_tensor list;
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_I64, &shape, &list));
    for (int64_t i = 0; i < b->convolution.channels * span; ++i) {
        ((int64_t *)list.data)[i] = find_place(b, i / span, i % span);
    }
    return add_list(program, &list, out_value);
}

static bool has_ints(const rondo__op *op, const char *name, const int64_t *values, int64_t absent) {
    size_t count = 0;
    const int64_t *list = rondo__op_get_ints(op, name, &count);
    bool has = count == 0 || count >= AXES;
    for (int32_t d = 0; d < AXES && has; ++d) {
        has = (count > 0 ? list[d] : absent) == values[d];
    }
    return has;
}

// Whether the node makes the changes of the weights of this convolution, or of one with as many
// filters and the same window: others may see the image, too.
static bool is_way_back(const rondo_program *program, const rondo__node *node, const blocks *b,
                        int32_t image) {
    const rondo__window *w = &b->convolution.window;
    rondo_shape changes;
    return rondo__node_is(node, RONDO__FUSED_ConvWeights) && node->inputs[1] == image &&
           rondo__value_get_shape(&program->values[node->inputs[0]], &changes) &&
           rondo_shape_is_equal(&changes, &b->convolution.output) &&
           rondo__op_get_int(&node->op, "group", 1) == 1 &&
           rondo__op_get_int(&node->op, "channels_last", 0) != 0 &&
           has_ints(&node->op, "kernel_shape", w->kernel, -1) &&
           has_ints(&node->op, "strides", w->stride, 1) &&
           has_ints(&node->op, "dilations", w->dilation, 1) &&
           has_ints(&node->op, "pads", w->pad_begin, 0);
}

static rondo_status write_window(rondo__op *op, const blocks *b);

// The changes of the weights over blocks; a Gather leaves those of taps that there are.
static rondo_status rewrite_way_back(rondo_program *program, size_t n, const blocks *b,
                                     int32_t image) {
    const rondo__convolution *c = &b->convolution;
    const int32_t result = program->nodes[n].outputs[0];
    const rondo_dtype dtype = program->values[result].dtype;
    const rondo_shape made = {.rank = 2 + AXES,
                              .extent = {c->filters, b->channels, b->taps[0], b->taps[1]}};
    const rondo_shape flat = {.rank = 2, .extent = {c->filters, count_products(b)}};
    int32_t changes, gathered[2];
    RETURN_IF_ERROR(rondo__program_add_shaped(program, "blocks", dtype, &made, &changes));
    RETURN_IF_ERROR(rondo__program_add_shaped(program, "blocks", dtype, &flat, &gathered[0]));
    program->nodes[n].inputs[1] = image;
    program->nodes[n].outputs[0] = changes;
    program->values[changes].producer = (int32_t)n;
    program->values[result].producer = -1;
    if (b->block[0] * b->block[1] > 1) {
        RETURN_IF_ERROR(write_window(&program->nodes[n].op, b));
    }
    RETURN_IF_ERROR(rondo__program_add_reshape(program, changes, gathered[0], &flat));
    RETURN_IF_ERROR(add_places_back(program, b, &gathered[1]));
    RETURN_IF_ERROR(rondo__program_add_simple(program, "", "Gather", program->nodes[n].op.name,
                                              gathered, 2, &result, 1));
    return rondo__op_set_int(&program->nodes[program->node_count - 1].op, "axis", 1);
}

static rondo_status write_attributes(const blocks *b, const source *s, rondo__op *op) {
    RETURN_IF_ERROR(rondo__op_set_ints(op, "block", b->block, AXES));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "before", b->before, AXES));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "extent", b->extent, AXES));
    RETURN_IF_ERROR(rondo__op_set_int(op, "channels", b->channels));
    RETURN_IF_ERROR(rondo__op_set_int(op, "channels_last", s->is_last));
    RETURN_IF_ERROR(rondo__op_set_int(op, "saturate", s->saturates));
    return rondo__op_set_int(op, "to", ONNX_FLOAT16);
}

// Adds the op, under the convolution's name and with its marks.
static rondo_status add_blocks(rondo_program *program, size_t n, const blocks *b, const source *s,
                               int32_t *out_value) {
    const rondo_shape shape = {
        .rank = 2 + AXES,
        .extent = {b->convolution.batch, b->extent[0], b->extent[1], b->channels}};
    RETURN_IF_ERROR(rondo__program_add_shaped(program, program->values[s->value].name,
                                              RONDO_DTYPE_F16, &shape, out_value));
    RETURN_IF_ERROR(rondo__program_add_simple(
        program, "rondo", "SpaceToDepth", program->nodes[n].op.name, &s->value, 1, out_value, 1));
    rondo__node *made = &program->nodes[program->node_count - 1];
    made->place = program->nodes[n].place;
    made->precision = program->nodes[n].precision;
    return write_attributes(b, s, &made->op);
}

// The window over blocks: it pads nothing, and moves by one.
static rondo_status write_window(rondo__op *op, const blocks *b) {
    rondo__window window = {.rank = AXES};
    for (int32_t d = 0; d < AXES; ++d) {
        window.kernel[d] = b->taps[d];
        window.stride[d] = 1;
        window.dilation[d] = 1;
    }
    return rondo__window_write(op, &window);
}

static bool is_small(const rondo__convolution *c) {
    return (double)c->batch * (double)c->output_span * (double)c->filters * (double)c->channels *
               (double)c->kernel_span <
           launch_products;
}

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t n) {
    rondo_program *program = rewriting->program;
    blocks b;
    int32_t image = RONDO__VALUE_NONE, weights = RONDO__VALUE_NONE;
    if (!read(program, &program->nodes[n], &b)) {
        return RONDO_STATUS_OK;
    }
    const source s = find_source(program, program->nodes[n].inputs[0]);
    if (!s.saves && is_small(&b.convolution)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(add_blocks(program, n, &b, &s, &image));
    const int32_t seen = program->nodes[n].inputs[0], filters = program->nodes[n].inputs[1];
    RETURN_IF_ERROR(rondo__value_is_constant(&program->values[filters])
                        ? make_weights(program, &b, filters, &weights)
                        : compute_weights(program, n, &b, filters, &weights));
    rondo__node *node = &program->nodes[n];
    node->inputs[0] = image;
    node->inputs[1] = weights;
    if (b.block[0] * b.block[1] > 1) {
        RETURN_IF_ERROR(write_window(&node->op, &b));
    }
    for (size_t i = rewriting->uses.first[seen]; i < rewriting->uses.first[seen + 1]; ++i) {
        const size_t user = rewriting->uses.users[i];
        if (is_way_back(program, &program->nodes[user], &b, seen)) {
            RETURN_IF_ERROR(rewrite_way_back(program, user, &b, image));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_space_to_depth(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
