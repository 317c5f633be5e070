// program/half/pass_half.c — f32 to f16 where the rules (half_rules.c) allow it, with casts in
// between.
//
//   before   x ── Conv ── Pow ── y          after   x ─cast─ Conv ─cast─ Pow ── y
//            f32  f32     f32                       f32      f16         f32    f32
//
// A value keeps its f32 form. If a node makes f16, that is a new value, and the old one becomes a
// cast of it for its readers: nodes that stay in f32, and the program's outputs. So the types of
// inputs and outputs cannot change. Each value is cast at most once in each direction.
//
// A cast is a rondo.Elementwise of one op, Saturate, so that what was finite stays finite, and so
// that the element-wise pass takes it into its neighbours, where it costs nothing. Gradients of a
// scaled loss and what ranks send each other are cast as they are.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/edit.h"
#include "program/half/half_judge.h"
#include "program/shapes/specialise.h"

enum { ONNX_FLOAT = 1, ONNX_FLOAT16 = 10, ONNX_BFLOAT16 = 16 };  // TensorProto.DataType

typedef struct halving {
    rondo_program *program;
    rondo__half_cache *cache;
    rondo_dtype dtype;  // F16 or BF16
    int64_t number;     // its number in ONNX
    const rondo__half_decision *decisions;
    size_t value_count;  // values of the program as it was; the others are f16 forms
    int32_t *half_of;    // f16 form of a value; RONDO__VALUE_NONE until it is needed
} halving;

static rondo_status add_cast(rondo_program *program, int32_t from, int32_t to, int64_t type) {
    static const char *const names[] = {"Saturate"};
    static const int64_t operands[] = {0, -1, -1};
    static const float zero = 0.0f;
    RETURN_IF_ERROR(rondo__program_add_simple(program, "rondo", "Elementwise",
                                              program->values[to].name, &from, 1, &to, 1));
    rondo__op *op = &program->nodes[program->node_count - 1].op;
    RETURN_IF_ERROR(rondo__op_set_strings(op, "ops", names, 1));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "operands", operands, 3));
    RETURN_IF_ERROR(rondo__op_set_floats(op, "alphas", &zero, 1));
    RETURN_IF_ERROR(rondo__op_set_floats(op, "betas", &zero, 1));
    return rondo__op_set_int(op, "to", type);
}

// What overflows becomes infinite: a scaled gradient is to be seen as spoilt, and an average over
// ranks as PyTorch's and NCCL's are.
static rondo_status add_open_cast(rondo_program *program, int32_t from, int32_t to, int64_t type) {
    RETURN_IF_ERROR(
        rondo__program_add_simple(program, "", "Cast", program->values[to].name, &from, 1, &to, 1));
    return rondo__op_set_int(&program->nodes[program->node_count - 1].op, "to", type);
}

static bool is_gradient(const rondo_program *program, int32_t value) {
    const int32_t maker = program->values[value].producer;
    return maker >= 0 && program->nodes[maker].precision >= RONDO__PRECISION_TRAINED;
}

// A new f16 value with the shape of `value`.
static rondo_status add_half(halving *h, int32_t value, int32_t *out_half) {
    rondo_shape shape;
    const bool has_shape = rondo__value_get_shape(&h->program->values[value], &shape);
    return rondo__program_add_shaped(h->program, h->program->values[value].name, h->dtype,
                                     has_shape ? &shape : NULL, out_half);
}

static bool is_cast_open(const halving *h, int32_t value) {
    return h->dtype == RONDO_DTYPE_BF16 || is_gradient(h->program, value);
}

// The f16 form of an f32 value that a node reads.
static rondo_status get_half(halving *h, int32_t value, int32_t *out_half) {
    if (h->half_of[value] < 0) {
        const rondo__value *v = &h->program->values[value];
        int32_t half;
        if (rondo__value_is_constant(v)) {
            rondo_tensor rounded = {0};
            RETURN_IF_ERROR(rondo__half_round(h->cache, &v->constant, &rounded));
            rondo_status status = rondo__program_add_constant(h->program, v->name, &rounded, &half);
            rondo_tensor_deinit(&rounded);
            if (status != RONDO_STATUS_OK) {
                return status;
            }
        } else {
            RETURN_IF_ERROR(add_half(h, value, &half));
            RETURN_IF_ERROR(is_cast_open(h, value)
                                ? add_open_cast(h->program, value, half, h->number)
                                : add_cast(h->program, value, half, h->number));
        }
        h->half_of[value] = half;
    }
    *out_half = h->half_of[value];
    return RONDO_STATUS_OK;
}

// The f16 form of what ranks send: as a node makes it, or an open cast, beside the form that others
// may read.
static rondo_status get_sent(halving *h, int32_t value, int32_t *out_half) {
    const int32_t known = h->half_of[value];
    if (is_cast_open(h, value) || rondo__value_is_constant(&h->program->values[value]) ||
        (known >= 0 && h->program->values[known].producer >= 0)) {
        return get_half(h, value, out_half);
    }
    RETURN_IF_ERROR(add_half(h, value, out_half));
    return add_open_cast(h->program, value, *out_half, h->number);
}

// Averages over ranks leave vectors, which are few bytes, and a launch each to round.
static bool stays_single(const rondo_program *program, const rondo__node *node, size_t input) {
    rondo_shape shape;
    return rondo__half_is_fixed_input(node, input) ||
           (rondo__node_is(node, RONDO__FUSED_AllReduce) &&
            (!rondo__value_get_shape(&program->values[node->inputs[input]], &shape) ||
             shape.rank < 2));
}

// A step looks at the gradients that it sends, to leave out one that is not finite: it is to see
// what rounding has made of them.
static rondo_status check_what_is_sent(halving *h, int32_t value, int32_t half) {
    int32_t wide = RONDO__VALUE_NONE;
    for (size_t n = 0; n < h->program->node_count; ++n) {
        const rondo__node *node = &h->program->nodes[n];
        if (node->precision != RONDO__PRECISION_TRAINED || !rondo__node_is(node, RONDO__OP_Mul) ||
            node->inputs[0] != value) {
            continue;
        }
        if (wide < 0) {
            rondo_shape shape;
            const bool has_shape = rondo__value_get_shape(&h->program->values[value], &shape);
            RETURN_IF_ERROR(rondo__program_add_shaped(h->program, h->program->values[value].name,
                                                      RONDO_DTYPE_F32, has_shape ? &shape : NULL,
                                                      &wide));
            RETURN_IF_ERROR(add_open_cast(h->program, half, wide, ONNX_FLOAT));
        }
        h->program->nodes[n].inputs[0] = wide;
    }
    return RONDO_STATUS_OK;
}

static rondo_status convert_inputs(halving *h, size_t n) {
    for (size_t i = 0; i < h->program->nodes[n].input_count; ++i) {
        const int32_t value = h->program->nodes[n].inputs[i];
        if (value < 0 || !rondo__half_is_single(h->program, value) ||
            stays_single(h->program, &h->program->nodes[n], i)) {
            continue;
        }
        const bool sends = rondo__node_is(&h->program->nodes[n], RONDO__FUSED_AllReduce);
        int32_t half;
        RETURN_IF_ERROR(sends ? get_sent(h, value, &half) : get_half(h, value, &half));
        h->program->nodes[n].inputs[i] = half;
        if (sends) {
            RETURN_IF_ERROR(check_what_is_sent(h, value, half));
        }
    }
    return RONDO_STATUS_OK;
}

// The types that inference gives the outputs, now that inputs are f16.
static rondo_status infer_outputs(const rondo_program *program, const rondo__node *node,
                                  rondo__tensor_info *infos) {
    memset(infos, 0, (node->input_count + node->output_count) * sizeof *infos);
    for (size_t i = 0; i < node->input_count; ++i) {
        rondo__program_get_info(program, node->inputs[i], &infos[i]);
    }
    rondo__infer infer = {.op = &node->op,
                          .input_count = node->input_count,
                          .output_count = node->output_count,
                          .inputs = infos,
                          .outputs = infos + node->input_count};
    return rondo__op_infer(&infer);
}

// The node makes f16 forms; f32 forms are casts of them, which are removed if no node reads them.
static rondo_status convert_outputs(halving *h, size_t n) {
    rondo__node *node = &h->program->nodes[n];
    if (rondo__node_is(node, RONDO__OP_Cast) &&
        rondo__op_get_int(&node->op, "to", 0) == ONNX_FLOAT) {
        RETURN_IF_ERROR(rondo__op_set_int(&node->op, "to", h->number));
    }
    rondo__tensor_info *infos =
        rondo__calloc(node->input_count + node->output_count + 1, sizeof *infos);
    if (infos == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const size_t first_output = node->input_count;
    rondo_status status = infer_outputs(h->program, node, infos);
    for (size_t i = 0; status == RONDO_STATUS_OK && i < h->program->nodes[n].output_count; ++i) {
        const int32_t value = h->program->nodes[n].outputs[i];
        if (value < 0 || !rondo__half_is_single(h->program, value) ||
            infos[first_output + i].dtype != h->dtype) {
            continue;
        }
        int32_t half;
        status = add_half(h, value, &half);
        if (status == RONDO_STATUS_OK) {
            h->half_of[value] = half;
            h->program->nodes[n].outputs[i] = half;
            h->program->values[half].producer = (int32_t)n;
            h->program->values[value].producer = -1;
            status = h->dtype == RONDO_DTYPE_BF16
                         ? add_open_cast(h->program, half, value, ONNX_FLOAT)
                         : add_cast(h->program, half, value, ONNX_FLOAT);
        }
    }
    rondo__free(infos);
    return status;
}

static rondo_status convert(halving *h, size_t node_count) {
    for (size_t n = 0; n < node_count; ++n) {
        if (h->decisions[n].is_touched && h->decisions[n].reason == NULL) {
            RETURN_IF_ERROR(convert_inputs(h, n));
            RETURN_IF_ERROR(convert_outputs(h, n));
        }
    }
    return RONDO_STATUS_OK;
}

// ---- the report -------------------------------------------------------------------------------

void rondo__half_report_deinit(rondo__half_report *report) {
    for (size_t i = 0; i < report->kept_count; ++i) {
        rondo__free(report->kept[i].name);
    }
    rondo__free(report->kept);
    memset(report, 0, sizeof *report);
}

static rondo_status write_report(const rondo_program *program,
                                 const rondo__half_decision *decisions,
                                 rondo__half_report *report) {
    report->kept = rondo__calloc(program->node_count + 1, sizeof *report->kept);
    if (report->kept == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t n = 0; n < program->node_count; ++n) {
        if (!decisions[n].is_touched) {
            continue;
        }
        if (decisions[n].reason == NULL) {
            report->half_count += 1;
            continue;
        }
        const rondo__op *op = &program->nodes[n].op;
        char *name = rondo__strdup(op->name);
        if (name == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        report->kept[report->kept_count++] =
            (rondo__half_kept){.op = op->def->name, .name = name, .reason = decisions[n].reason};
    }
    return RONDO_STATUS_OK;
}

// ---- the pass ---------------------------------------------------------------------------------

// The author of a model with f16 chose where; its f32 parts are meant to be f32.
static bool holds_half(const rondo_program *program, rondo_dtype dtype) {
    for (size_t v = 0; v < program->value_count; ++v) {
        const rondo__value *value = &program->values[v];
        if (value->dtype == dtype || value->constant.dtype == dtype) {
            return true;
        }
    }
    return false;
}

rondo_status rondo__pass_half(rondo_program *program, rondo__half_cache *cache,
                              rondo__half_report *out_report) {
    memset(out_report, 0, sizeof *out_report);
    const rondo_dtype dtype = rondo__half_get_dtype(cache);
    out_report->dtype = dtype;
    if (holds_half(program, dtype)) {
        out_report->note = dtype == RONDO_DTYPE_F16
                               ? "the model holds f16 already and stays as it is"
                               : "the model holds bf16 already and stays as it is";
        return RONDO_STATUS_OK;
    }
    const size_t node_count = program->node_count;
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    halving h = {.program = program,
                 .cache = cache,
                 .dtype = dtype,
                 .number = dtype == RONDO_DTYPE_F16 ? ONNX_FLOAT16 : ONNX_BFLOAT16,
                 .value_count = program->value_count};
    rondo__half_decision *decisions = rondo__calloc(node_count + 1, sizeof *decisions);
    h.half_of = rondo__calloc(program->value_count + 1, sizeof *h.half_of);
    if (decisions == NULL || h.half_of == NULL) {
        goto free_lists;
    }
    for (size_t v = 0; v < program->value_count; ++v) {
        h.half_of[v] = RONDO__VALUE_NONE;
    }
    h.decisions = decisions;
    status = rondo__half_decide(program, cache, decisions);
    if (status == RONDO_STATUS_OK) {
        status = write_report(program, decisions, out_report);
    }
    if (status == RONDO_STATUS_OK) {
        status = convert(&h, node_count);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__half_round_before_gathers(program);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_verify(program);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_remove_dead(program);
    }

free_lists:
    rondo__free(decisions);
    rondo__free(h.half_of);
    if (status != RONDO_STATUS_OK) {
        rondo__half_report_deinit(out_report);
    }
    return status;
}
