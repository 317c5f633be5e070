// program/passes/pass_layout.c — images in NHWC: convolutions and pools, and what can follow them
// there.
//
//   before   x ── Conv ── MaxPool ── Concat ── Flatten          every value [N, C, H, W]
//   after    x ─T─ Conv ── MaxPool ── Concat ─T'─ Flatten       T, T' are transposes; between them
//            [N, H, W, C]
//
// One walk in node order. A value may have a twin in NHWC. Ops that want NHWC take twins (a
// Transpose makes one where there is none) and make only a twin; ops that do not care about layout
// follow when all their image operands have twins; any other user of the NCHW value makes a
// Transpose back necessary, once. Convolutions of bytes want NHWC, too, where the target asks for
// it, and what quantises for them follows; in single precision on a GPU they alone want it, and all
// else only follows. A Transpose of the program's own from NHWC (as behind ConvNeXt's products over
// channels) gives its result a twin. Where H and W are 1 the two layouts have the same bytes and
// the transposes are Reshapes, which cost nothing.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/edit.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/window_write.h"

enum { IMAGE_RANK = 4 };

typedef struct layout {
    rondo_program *program;
    uint32_t wants;      // rondo__layout_kind
    size_t value_count;  // values of the program as it was
    int32_t *twin;       // NHWC twin of a value, or RONDO__VALUE_NONE
    bool *is_missing;    // the NCHW value has no maker any more; only the twin is made
} layout;

static bool is_byte(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_U8 || dtype == RONDO_DTYPE_I8;
}

// An image of reals, or of what stands for them in 16 bits; where convolutions of bytes count, of
// bytes or sums of them, too.
static bool is_image(const layout *l, int32_t value, rondo_shape *out_shape) {
    const rondo__value *v = &l->program->values[value];
    const rondo_dtype dtype = rondo__value_is_constant(v) ? v->constant.dtype : v->dtype;
    const bool is_real = dtype == RONDO_DTYPE_F32 || dtype == RONDO_DTYPE_F16 ||
                         dtype == RONDO_DTYPE_U16 || dtype == RONDO_DTYPE_I16;
    const bool is_counted =
        (l->wants & RONDO__LAYOUT_BYTES) != 0 && (is_byte(dtype) || dtype == RONDO_DTYPE_I32);
    return (is_real || is_counted) && rondo__value_get_shape(v, out_shape) &&
           out_shape->rank == IMAGE_RANK;
}

static rondo_shape to_nhwc(const rondo_shape *nchw) {
    return (rondo_shape){
        .rank = IMAGE_RANK,
        .extent = {nchw->extent[0], nchw->extent[2], nchw->extent[3], nchw->extent[1]}};
}

// Adds the op that turns `from` into `to`; the shape of `to` is `shape`. Moves of no data become a
// Reshape.
static rondo_status add_move(rondo_program *program, int32_t from, int32_t to,
                             const rondo_shape *shape, const int64_t *perm, bool is_free) {
    if (is_free) {
        return rondo__program_add_reshape(program, from, to, shape);
    }
    program->values[to].producer = -1;
    RETURN_IF_ERROR(rondo__program_add_simple(program, "", "Transpose", NULL, &from, 1, &to, 1));
    return rondo__op_set_ints(&program->nodes[program->node_count - 1].op, "perm", perm,
                              IMAGE_RANK);
}

static bool is_free_move(const rondo_shape *nchw) {
    return nchw->extent[1] == 1 || (nchw->extent[2] == 1 && nchw->extent[3] == 1);
}

// The NHWC twin of an image; made by a Transpose when there is none.
static rondo_status get_twin(layout *l, int32_t value, int32_t *out_twin) {
    if (l->twin[value] < 0) {
        static const int64_t perm[] = {0, 2, 3, 1};
        rondo_shape nchw;
        if (!is_image(l, value, &nchw)) {
            return RONDO_FAIL(INTERNAL, "value \"%s\" is not an image",
                              l->program->values[value].name);
        }
        rondo_shape nhwc = to_nhwc(&nchw);
        rondo_dtype dtype = l->program->values[value].dtype;
        int32_t twin;
        RETURN_IF_ERROR(rondo__program_add_shaped(l->program, l->program->values[value].name, dtype,
                                                  &nhwc, &twin));
        RETURN_IF_ERROR(add_move(l->program, value, twin, &nhwc, perm, is_free_move(&nchw)));
        l->twin[value] = twin;
    }
    *out_twin = l->twin[value];
    return RONDO_STATUS_OK;
}

// Makes the NCHW value from its twin, for a user that needs it.
static rondo_status restore(layout *l, int32_t value) {
    static const int64_t perm[] = {0, 3, 1, 2};
    if (value < 0 || (size_t)value >= l->value_count || !l->is_missing[value]) {
        return RONDO_STATUS_OK;
    }
    rondo_shape nchw;
    if (!rondo__value_get_shape(&l->program->values[value], &nchw)) {
        return RONDO_FAIL(INTERNAL, "value \"%s\" has no known shape",
                          l->program->values[value].name);
    }
    l->is_missing[value] = false;
    return add_move(l->program, l->twin[value], value, &nchw, perm, is_free_move(&nchw));
}

// Lets node `n` make the twin of an output instead of the output.
static rondo_status make_twin_output(layout *l, size_t n, size_t output) {
    int32_t value = l->program->nodes[n].outputs[output];
    rondo_shape nchw;
    if (!rondo__value_get_shape(&l->program->values[value], &nchw)) {
        return RONDO_FAIL(INTERNAL, "value \"%s\" has no known shape",
                          l->program->values[value].name);
    }
    rondo_shape nhwc = to_nhwc(&nchw);
    int32_t twin;
    RETURN_IF_ERROR(rondo__program_add_shaped(l->program, l->program->values[value].name,
                                              l->program->values[value].dtype, &nhwc, &twin));
    l->program->nodes[n].outputs[output] = twin;
    l->program->values[twin].producer = (int32_t)n;
    l->program->values[value].producer = -1;
    l->twin[value] = twin;
    l->is_missing[value] = true;
    return RONDO_STATUS_OK;
}

// ---- ops that want NHWC -----------------------------------------------------------------------

static bool has_twin(const layout *l, int32_t value) {
    return value >= 0 && (size_t)value < l->value_count && l->twin[value] >= 0;
}

static bool is_byte_convolution(const rondo__node *node) {
    return rondo__node_is(node, RONDO__FUSED_ConvInteger) ||
           rondo__node_is(node, RONDO__FUSED_QLinearConv);
}

static bool is_convolution(const layout *l, const rondo__node *node) {
    rondo_shape shape;
    const bool is_wanted =
        (l->wants & RONDO__LAYOUT_REALS) != 0 && rondo__node_is(node, RONDO__FUSED_Conv);
    const bool is_wanted_byte = (l->wants & RONDO__LAYOUT_BYTES) != 0 && is_byte_convolution(node);
    return (is_wanted || is_wanted_byte) && is_image(l, node->inputs[0], &shape);
}

// Where the residual is among the inputs of a convolution.
static size_t get_residual(const rondo__node *node) {
    return rondo__node_is(node, RONDO__FUSED_Conv)          ? 3
           : rondo__node_is(node, RONDO__FUSED_ConvInteger) ? 7
                                                            : SIZE_MAX;
}

static rondo_status visit_convolution(layout *l, size_t n) {
    const size_t residual = get_residual(&l->program->nodes[n]);
    int32_t x = RONDO__VALUE_NONE;
    RETURN_IF_ERROR(get_twin(l, l->program->nodes[n].inputs[0], &x));
    int32_t z = RONDO__VALUE_NONE;
    if (l->program->nodes[n].input_count > residual && l->program->nodes[n].inputs[residual] >= 0) {
        RETURN_IF_ERROR(get_twin(l, l->program->nodes[n].inputs[residual], &z));
    }
    rondo__node *node = &l->program->nodes[n];  // appending may have moved the nodes
    node->inputs[0] = x;
    if (z >= 0) {
        node->inputs[residual] = z;
    }
    RETURN_IF_ERROR(rondo__op_set_int(&node->op, "channels_last", 1));
    return make_twin_output(l, n, 0);
}

// The mean or sum over H and W of an image that is there in NHWC, as exporters write global
// averages and gradients write sums.
static bool is_reduced_image(const layout *l, const rondo__node *node, rondo__op_id op) {
    rondo_shape shape;
    size_t count = 0;
    if (!rondo__node_is(node, op) || !has_twin(l, node->inputs[0]) ||
        !is_image(l, node->inputs[0], &shape) ||
        l->program->values[node->inputs[0]].dtype == RONDO_DTYPE_I32) {
        return false;
    }
    const int64_t *axes = rondo__op_get_ints(&node->op, "axes", &count);
    if (node->input_count > 1 && node->inputs[1] >= 0) {
        const rondo__value *list = &l->program->values[node->inputs[1]];
        const bool is_known =
            rondo__value_is_constant(list) && list->constant.dtype == RONDO_DTYPE_I64;
        axes = is_known ? list->constant.data : NULL;
        count = is_known ? (size_t)rondo_shape_get_count(&list->constant.shape) : 0;
    }
    uint32_t found = 0;
    for (size_t i = 0; axes != NULL && i < count; ++i) {
        const int64_t axis = axes[i] < 0 ? axes[i] + IMAGE_RANK : axes[i];
        found |= axis >= 0 && axis < IMAGE_RANK ? 1u << axis : 0u;
    }
    return found == (1u << 2 | 1u << 3);
}

static bool is_sum_of_image(const layout *l, const rondo__node *node) {
    return is_reduced_image(l, node, RONDO__OP_ReduceSum) && node->input_count == 2 &&
           rondo__op_get_int(&node->op, "keepdims", 1) == 0;
}

static rondo_status visit_sum(layout *l, size_t n) {
    const rondo_shape shape = {.rank = 1, .extent = {2}};
    rondo_tensor list;
    int32_t value;
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_I64, &shape, &list));
    ((int64_t *)list.data)[0] = 1;
    ((int64_t *)list.data)[1] = 2;
    const rondo_status status = rondo__program_add_constant(l->program, "axes", &list, &value);
    rondo_tensor_deinit(&list);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    l->program->nodes[n].inputs[0] = l->twin[l->program->nodes[n].inputs[0]];
    l->program->nodes[n].inputs[1] = value;
    return RONDO_STATUS_OK;
}

// The mean as GlobalAveragePool; where its result has no H and W, a Reshape takes them away.
static rondo_status visit_mean(layout *l, size_t n) {
    rondo__node *node = &l->program->nodes[n];
    const int32_t y = node->outputs[0];
    rondo_shape image, shape;
    (void)rondo__value_get_shape(&l->program->values[node->inputs[0]], &image);
    (void)rondo__value_get_shape(&l->program->values[y], &shape);
    node->inputs[0] = l->twin[node->inputs[0]];
    node->input_count = node->explicit_count = 1;
    node->op.def = rondo__op_get_def(RONDO__FUSED_GlobalAveragePool);
    node->op.opset = RONDO_OP_OPSET_MAX;
    RETURN_IF_ERROR(rondo__op_set_int(&node->op, "channels_last", 1));
    if (shape.rank == IMAGE_RANK) {
        return make_twin_output(l, n, 0);
    }
    const rondo_shape pooled = {.rank = IMAGE_RANK,
                                .extent = {image.extent[0], 1, 1, image.extent[1]}};
    int32_t means;
    RETURN_IF_ERROR(rondo__program_add_shaped(l->program, l->program->values[y].name,
                                              l->program->values[y].dtype, &pooled, &means));
    l->program->nodes[n].outputs[0] = means;
    l->program->values[means].producer = (int32_t)n;
    l->program->values[y].producer = -1;
    return rondo__program_add_reshape(l->program, means, y, &shape);
}

static bool is_pool(const layout *l, const rondo__node *node) {
    rondo_shape shape;
    if (!is_image(l, node->inputs[0], &shape)) {
        return false;
    }
    if ((l->wants & RONDO__LAYOUT_REALS) == 0 && !has_twin(l, node->inputs[0])) {
        return false;
    }
    if (rondo__node_is(node, RONDO__OP_MaxPool)) {
        return node->output_count == 1 || node->outputs[1] < 0;
    }
    return rondo__node_is(node, RONDO__OP_AveragePool) ||
           rondo__node_is(node, RONDO__OP_GlobalAveragePool);
}

static rondo_status visit_pool(layout *l, size_t n) {
    int32_t x = RONDO__VALUE_NONE;
    rondo_shape shape;
    (void)rondo__value_get_shape(&l->program->values[l->program->nodes[n].inputs[0]], &shape);
    RETURN_IF_ERROR(get_twin(l, l->program->nodes[n].inputs[0], &x));
    rondo__node *node = &l->program->nodes[n];
    const rondo__op_id id = rondo__node_is(node, RONDO__OP_MaxPool) ? RONDO__FUSED_MaxPool
                            : rondo__node_is(node, RONDO__OP_AveragePool)
                                ? RONDO__FUSED_AveragePool
                                : RONDO__FUSED_GlobalAveragePool;
    if (id != RONDO__FUSED_GlobalAveragePool) {
        rondo__window window;
        RETURN_IF_ERROR(rondo__window_init(&node->op, 2, &shape.extent[2], NULL, &window));
        RETURN_IF_ERROR(rondo__window_write(&node->op, &window));
    }
    RETURN_IF_ERROR(rondo__op_set_int(&node->op, "channels_last", 1));
    node->op.def = rondo__op_get_def(id);
    node->op.opset = RONDO_OP_OPSET_MAX;
    node->inputs[0] = x;
    node->output_count = 1;
    return make_twin_output(l, n, 0);
}

// ---- normalisations by groups -----------------------------------------------------------------

// A norm of whole rows costs as much in either layout, so it follows its operand.
static bool is_following_norm(const layout *l, const rondo__node *node) {
    rondo_shape shape;
    return rondo__node_is(node, RONDO__FUSED_GroupNormalization) && has_twin(l, node->inputs[0]) &&
           is_image(l, node->inputs[0], &shape);
}

static rondo_status visit_norm(layout *l, size_t n) {
    rondo__node *node = &l->program->nodes[n];
    node->inputs[0] = l->twin[node->inputs[0]];
    RETURN_IF_ERROR(rondo__op_set_int(&node->op, "channels_last", 1));
    return make_twin_output(l, n, 0);
}

// In training, and on the way back. All that has channels follows x.
static bool is_following_batch(const layout *l, const rondo__node *node) {
    rondo_shape shape;
    const bool is_back = rondo__node_is(node, RONDO__FUSED_NormGradient) && node->input_count > 4 &&
                         node->inputs[3] >= 0;
    const bool is_pool = rondo__node_is(node, RONDO__FUSED_PoolGradient);
    const size_t x = is_back || is_pool ? 1 : 0;
    return (is_back || is_pool || rondo__node_is(node, RONDO__FUSED_InsertZeros) ||
            rondo__node_is(node, RONDO__FUSED_BatchNormalization)) &&
           has_twin(l, node->inputs[x]) && is_image(l, node->inputs[x], &shape) &&
           node->outputs[0] >= 0;
}

static rondo_status visit_batch(layout *l, size_t n) {
    static const size_t images[] = {0, 1, 5};
    const bool is_back = rondo__node_is(&l->program->nodes[n], RONDO__FUSED_NormGradient) ||
                         rondo__node_is(&l->program->nodes[n], RONDO__FUSED_PoolGradient);
    for (size_t i = 0; i < (is_back ? 3u : 1u); ++i) {
        const size_t at = images[i];
        if (at < l->program->nodes[n].input_count && l->program->nodes[n].inputs[at] >= 0) {
            int32_t twin = RONDO__VALUE_NONE;
            RETURN_IF_ERROR(get_twin(l, l->program->nodes[n].inputs[at], &twin));
            l->program->nodes[n].inputs[at] = twin;
        }
    }
    RETURN_IF_ERROR(rondo__op_set_int(&l->program->nodes[n].op, "channels_last", 1));
    return make_twin_output(l, n, 0);
}

// Both images, and weights as they are.
static rondo_status visit_weights(layout *l, size_t n) {
    for (size_t i = 0; i < 2; ++i) {
        int32_t twin = RONDO__VALUE_NONE;
        RETURN_IF_ERROR(get_twin(l, l->program->nodes[n].inputs[i], &twin));
        l->program->nodes[n].inputs[i] = twin;
    }
    return rondo__op_set_int(&l->program->nodes[n].op, "channels_last", 1);
}

// ---- depth to space ---------------------------------------------------------------------------

// [N, C b b, H, W] to [N, C, H b, W b], with the two of b before C or behind it.
static bool is_depth_to_space(const layout *l, const rondo__node *node) {
    rondo_shape shape;
    return rondo__node_is(node, RONDO__OP_DepthToSpace) && has_twin(l, node->inputs[0]) &&
           is_image(l, node->inputs[0], &shape) && is_image(l, node->outputs[0], &shape);
}

static rondo_status become_transpose(rondo__node *node, int32_t x, const int64_t *perm,
                                     size_t rank) {
    rondo__op op = {.opset = RONDO_OP_OPSET_WRITTEN, .def = rondo__op_get_def(RONDO__OP_Transpose)};
    int32_t *inputs = rondo__calloc(1, sizeof *inputs);
    rondo_status status =
        inputs != NULL ? rondo__op_set_ints(&op, "perm", perm, rank) : RONDO_STATUS_NO_MEMORY;
    if (status != RONDO_STATUS_OK) {
        rondo__op_deinit(&op);
        rondo__free(inputs);
        return status;
    }
    inputs[0] = x;
    rondo__node_become(node, &op, inputs, 1);
    return status;
}

// In NHWC: a Reshape, a Transpose that keeps rows of C together, and a Reshape.
static rondo_status visit_depth_to_space(layout *l, size_t n) {
    static const int64_t behind[] = {0, 1, 4, 2, 5, 3}, before[] = {0, 1, 3, 2, 4, 5};
    rondo_program *program = l->program;
    const rondo__op *op = &program->nodes[n].op;
    const bool is_behind = strcmp(rondo__op_get_string(op, "mode", "DCR"), "CRD") == 0;
    const int32_t x = program->nodes[n].inputs[0], y = program->nodes[n].outputs[0];
    const rondo_dtype dtype = program->values[y].dtype;
    const char *name = program->values[y].name;
    rondo_shape from, to;
    (void)rondo__value_get_shape(&program->values[x], &from);
    (void)rondo__value_get_shape(&program->values[y], &to);
    const int64_t *e = from.extent, b = to.extent[2] / e[2], c = to.extent[1];
    const rondo_shape split = {
        .rank = 6, .extent = {e[0], e[2], e[3], is_behind ? c : b, b, is_behind ? b : c}};
    const rondo_shape turned = {.rank = 6, .extent = {e[0], e[2], b, e[3], b, c}};
    const rondo_shape nhwc = to_nhwc(&to);
    int32_t parts, moved, twin;
    RETURN_IF_ERROR(rondo__program_add_shaped(program, name, dtype, &split, &parts));
    RETURN_IF_ERROR(rondo__program_add_shaped(program, name, dtype, &turned, &moved));
    RETURN_IF_ERROR(rondo__program_add_shaped(program, name, dtype, &nhwc, &twin));
    RETURN_IF_ERROR(rondo__program_add_reshape(program, l->twin[x], parts, &split));
    RETURN_IF_ERROR(rondo__program_add_reshape(program, moved, twin, &nhwc));
    RETURN_IF_ERROR(become_transpose(&program->nodes[n], parts, is_behind ? behind : before, 6));
    program->nodes[n].outputs[0] = moved;
    program->values[moved].producer = (int32_t)n;
    program->values[y].producer = -1;
    l->twin[y] = twin;
    l->is_missing[y] = true;
    return RONDO_STATUS_OK;
}

// ---- ops that do not care ---------------------------------------------------------------------

// A constant operand in NHWC: scalars stay, [1, C, 1, 1], [C, 1, 1] and full images are permuted.
static rondo_status permute_constant(layout *l, int32_t value, int32_t *out_value,
                                     bool *out_is_possible) {
    const rondo_tensor *source = &l->program->values[value].constant;
    *out_is_possible = true;
    *out_value = value;
    if (rondo_shape_get_count(&source->shape) == 1) {
        return RONDO_STATUS_OK;
    }
    if (source->shape.rank > IMAGE_RANK) {
        *out_is_possible = false;
        return RONDO_STATUS_OK;
    }
    int64_t e[IMAGE_RANK] = {1, 1, 1, 1};
    for (int32_t d = 0; d < source->shape.rank; ++d) {
        e[IMAGE_RANK - source->shape.rank + d] = source->shape.extent[d];
    }
    rondo_shape nhwc = {.rank = IMAGE_RANK, .extent = {e[0], e[2], e[3], e[1]}};
    rondo_tensor permuted;
    RETURN_IF_ERROR(rondo_tensor_init(source->dtype, &nhwc, &permuted));
    size_t bytes = rondo_dtype_get_bytes(source->dtype);
    const char *from = source->data;
    for (int64_t n = 0; n < e[0]; ++n) {
        for (int64_t c = 0; c < e[1]; ++c) {
            for (int64_t h = 0; h < e[2]; ++h) {
                for (int64_t w = 0; w < e[3]; ++w, from += bytes) {
                    int64_t to = ((n * e[2] + h) * e[3] + w) * e[1] + c;
                    memcpy((char *)permuted.data + (size_t)to * bytes, from, bytes);
                }
            }
        }
    }
    rondo_status status = rondo__program_add_constant(l->program, "nhwc", &permuted, out_value);
    rondo_tensor_deinit(&permuted);
    return status;
}

typedef enum follow_kind {
    FOLLOW_NOT,
    FOLLOW_ELEMENTWISE,
    FOLLOW_AXIS,       // Concat: operands are images, and attribute axis tells one of their axes
    FOLLOW_SPLIT,      // the same with one image, several outputs, and lists as further inputs
    FOLLOW_RESIZE,     // an image, and lists of one number for each axis
    FOLLOW_QUANTISED,  // an image first and as output 0; its parameters have no layout
} follow_kind;

static follow_kind get_follow_kind(const rondo__node *node) {
    if (rondo__node_is(node, RONDO__OP_Concat)) {
        return FOLLOW_AXIS;
    }
    if (rondo__node_is(node, RONDO__OP_Split)) {
        return FOLLOW_SPLIT;
    }
    if (rondo__node_is(node, RONDO__OP_QuantizeLinear) ||
        rondo__node_is(node, RONDO__OP_DequantizeLinear) ||
        rondo__node_is(node, RONDO__OP_DynamicQuantizeLinear)) {
        return FOLLOW_QUANTISED;
    }
    if (rondo__node_is(node, RONDO__OP_Resize) || rondo__node_is(node, RONDO__OP_Upsample)) {
        return rondo__op_find(&node->op, "axes") == NULL ? FOLLOW_RESIZE : FOLLOW_NOT;
    }
    return (node->op.def->flags & RONDO__OP_ELEMENTWISE) != 0 ? FOLLOW_ELEMENTWISE : FOLLOW_NOT;
}

// Whether a constant operand can be had for images in NHWC.
static bool takes_constant(follow_kind kind, const rondo_tensor *constant, size_t input) {
    const int64_t count = rondo_shape_get_count(&constant->shape);
    switch (kind) {
        case FOLLOW_ELEMENTWISE:
            return true;
        case FOLLOW_SPLIT:
            return input > 0;
        case FOLLOW_RESIZE:
            return input > 0 && (count == 0 || (count == IMAGE_RANK && constant->shape.rank == 1));
        default:
            return false;
    }
}

// Scales that are one for all, or go by channel.
static bool is_quantised_follower(const layout *l, const rondo__node *node) {
    rondo_shape image, scale = {0};
    const bool is_dynamic = rondo__node_is(node, RONDO__OP_DynamicQuantizeLinear);
    if (!has_twin(l, node->inputs[0]) || node->outputs[0] < 0 ||
        !is_image(l, node->outputs[0], &image) ||
        (!is_dynamic && !rondo__value_get_shape(&l->program->values[node->inputs[1]], &scale))) {
        return false;
    }
    const int64_t axis = rondo__op_get_int(&node->op, "axis", 1);
    const bool is_one = scale.rank <= 1 && rondo_shape_get_count(&scale) == 1;
    return rondo__op_get_int(&node->op, "block_size", 0) == 0 &&
           (is_one || axis == 1 || axis == 1 - IMAGE_RANK);
}

static bool is_follower(const layout *l, const rondo__node *node) {
    const follow_kind kind = get_follow_kind(node);
    if (kind == FOLLOW_QUANTISED) {
        return is_quantised_follower(l, node);
    }
    if (kind == FOLLOW_NOT || node->input_count < 1 ||
        (node->output_count != 1 && kind != FOLLOW_SPLIT)) {
        return false;
    }
    rondo_shape shape;
    for (size_t i = 0; i < node->output_count; ++i) {
        if (node->outputs[i] < 0 || !is_image(l, node->outputs[i], &shape)) {
            return false;
        }
    }
    size_t twins = 0;
    for (size_t i = 0; i < node->input_count; ++i) {
        int32_t value = node->inputs[i];
        if (value < 0) {
            continue;
        }
        if (rondo__value_is_constant(&l->program->values[value])) {
            if (!takes_constant(kind, &l->program->values[value].constant, i)) {
                return false;
            }
            continue;
        }
        if (!has_twin(l, value) || !is_image(l, value, &shape)) {
            return false;
        }
        twins += 1;
    }
    return twins > 0;
}

// A list of one number for each axis, in the order of NHWC.
static rondo_status permute_list(layout *l, int32_t value, int32_t *out_value) {
    static const size_t order[IMAGE_RANK] = {0, 2, 3, 1};
    const rondo_tensor *source = &l->program->values[value].constant;
    *out_value = value;
    if (rondo_shape_get_count(&source->shape) != IMAGE_RANK) {
        return RONDO_STATUS_OK;
    }
    rondo_tensor permuted;
    RETURN_IF_ERROR(rondo_tensor_init(source->dtype, &source->shape, &permuted));
    const size_t bytes = rondo_dtype_get_bytes(source->dtype);
    for (size_t i = 0; i < IMAGE_RANK; ++i) {
        memcpy((char *)permuted.data + i * bytes, (const char *)source->data + order[i] * bytes,
               bytes);
    }
    rondo_status status = rondo__program_add_constant(l->program, "nhwc", &permuted, out_value);
    rondo_tensor_deinit(&permuted);
    return status;
}

static rondo_status turn_axis(rondo__node *node) {
    static const int64_t new_axis[IMAGE_RANK] = {0, 3, 1, 2};
    int64_t axis =
        rondo__op_get_int(&node->op, "axis", rondo__node_is(node, RONDO__OP_Concat) ? 1 : 0);
    axis = axis < 0 ? axis + IMAGE_RANK : axis;
    return axis >= 0 && axis < IMAGE_RANK
               ? rondo__op_set_int(&node->op, "axis", new_axis[axis])
               : RONDO_FAIL(BAD_DATA, "%s: axis is out of range", rondo__node_describe(node));
}

// The operands in NHWC; *out_is_possible: whether there are such.
static rondo_status turn_inputs(layout *l, size_t n, int32_t *out_inputs, bool *out_is_possible) {
    const follow_kind kind = get_follow_kind(&l->program->nodes[n]);
    *out_is_possible = true;
    for (size_t i = 0; i < l->program->nodes[n].input_count && *out_is_possible; ++i) {
        int32_t value = l->program->nodes[n].inputs[i];
        out_inputs[i] = value;
        if (value < 0 || (kind == FOLLOW_QUANTISED && i > 0)) {
            continue;
        }
        if (!rondo__value_is_constant(&l->program->values[value])) {
            out_inputs[i] = l->twin[value];
        } else if (kind == FOLLOW_RESIZE) {
            RETURN_IF_ERROR(permute_list(l, value, &out_inputs[i]));
        } else if (kind == FOLLOW_ELEMENTWISE) {
            RETURN_IF_ERROR(permute_constant(l, value, &out_inputs[i], out_is_possible));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status visit_follower(layout *l, size_t n, bool *out_followed) {
    *out_followed = false;
    size_t input_count = l->program->nodes[n].input_count;
    int32_t *inputs = rondo__calloc(input_count + 1, sizeof *inputs);
    if (inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    bool is_possible = false;
    size_t image_count = l->program->nodes[n].output_count;
    rondo_status status = turn_inputs(l, n, inputs, &is_possible);
    if (status == RONDO_STATUS_OK && is_possible) {
        rondo__node *node = &l->program->nodes[n];
        const follow_kind kind = get_follow_kind(node);
        memcpy(node->inputs, inputs, input_count * sizeof *inputs);
        if (kind == FOLLOW_AXIS || kind == FOLLOW_SPLIT) {
            status = turn_axis(node);
        } else if (kind == FOLLOW_QUANTISED) {
            image_count = 1;
            if (!rondo__node_is(node, RONDO__OP_DynamicQuantizeLinear)) {
                status = rondo__op_set_int(&node->op, "axis", IMAGE_RANK - 1);
            }
        }
        *out_followed = true;
    }
    for (size_t i = 0; *out_followed && status == RONDO_STATUS_OK && i < image_count; ++i) {
        status = make_twin_output(l, n, i);
    }
    rondo__free(inputs);
    return status;
}

// An image that the program itself makes from NHWC: its twin is there.
static void note_transpose(layout *l, const rondo__node *node) {
    static const int64_t perm[] = {0, 3, 1, 2};
    const rondo__attribute *attribute = rondo__op_find(&node->op, "perm");
    rondo_shape shape;
    if (rondo__node_is(node, RONDO__OP_Transpose) && attribute != NULL &&
        attribute->count == IMAGE_RANK && memcmp(attribute->ints, perm, sizeof perm) == 0 &&
        is_image(l, node->outputs[0], &shape) &&
        !rondo__value_is_constant(&l->program->values[node->inputs[0]])) {
        l->twin[node->outputs[0]] = node->inputs[0];
    }
}

static rondo_status visit_node(layout *l, size_t n) {
    if (is_convolution(l, &l->program->nodes[n])) {
        return visit_convolution(l, n);
    }
    if (is_pool(l, &l->program->nodes[n])) {
        return visit_pool(l, n);
    }
    if (is_reduced_image(l, &l->program->nodes[n], RONDO__OP_ReduceMean)) {
        return visit_mean(l, n);
    }
    if (is_sum_of_image(l, &l->program->nodes[n])) {
        return visit_sum(l, n);
    }
    if (is_following_norm(l, &l->program->nodes[n])) {
        return visit_norm(l, n);
    }
    if (is_following_batch(l, &l->program->nodes[n])) {
        return visit_batch(l, n);
    }
    if (rondo__node_is(&l->program->nodes[n], RONDO__FUSED_ConvWeights) &&
        (l->wants & RONDO__LAYOUT_REALS) != 0) {
        return visit_weights(l, n);
    }
    if (is_depth_to_space(l, &l->program->nodes[n])) {
        return visit_depth_to_space(l, n);
    }
    if (is_follower(l, &l->program->nodes[n])) {
        bool followed;
        RETURN_IF_ERROR(visit_follower(l, n, &followed));
        if (followed) {
            return RONDO_STATUS_OK;
        }
    }
    for (size_t i = 0; i < l->program->nodes[n].input_count; ++i) {
        RETURN_IF_ERROR(restore(l, l->program->nodes[n].inputs[i]));
    }
    note_transpose(l, &l->program->nodes[n]);
    return RONDO_STATUS_OK;
}

// Pools alone do not pay for two transposes; without a convolution the program stays as it is.
static bool has_convolution(const layout *l) {
    for (size_t n = 0; n < l->program->node_count; ++n) {
        if (is_convolution(l, &l->program->nodes[n])) {
            return true;
        }
    }
    return false;
}

bool rondo__layout_is_wanted(rondo_program *program, uint32_t wants) {
    const layout l = {.program = program, .wants = wants};
    return has_convolution(&l);
}

rondo_status rondo__pass_layout(rondo_program *program, uint32_t wants) {
    layout l = {.program = program, .wants = wants, .value_count = program->value_count};
    if (!has_convolution(&l)) {
        return RONDO_STATUS_OK;
    }
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    size_t node_count = program->node_count;
    l.twin = rondo__calloc(l.value_count + 1, sizeof *l.twin);
    l.is_missing = rondo__calloc(l.value_count + 1, sizeof *l.is_missing);
    if (l.twin == NULL || l.is_missing == NULL) {
        goto free_lists;
    }
    for (size_t v = 0; v < l.value_count; ++v) {
        l.twin[v] = RONDO__VALUE_NONE;
    }
    status = RONDO_STATUS_OK;
    for (size_t n = 0; n < node_count && status == RONDO_STATUS_OK; ++n) {
        status = visit_node(&l, n);
    }
    for (size_t i = 0; i < program->output_count && status == RONDO_STATUS_OK; ++i) {
        status = restore(&l, program->outputs[i]);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_verify(program);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_remove_dead(program);
    }

free_lists:
    rondo__free(l.twin);
    rondo__free(l.is_missing);
    return status;
}
