// op/registered.c — see registered.h, and rondo/user_op.h.
// SPDX-License-Identifier: Apache-2.0
#include "op/registered.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "op/support.h"
#include "tensor/elements.h"

enum { SMALL_COUNT = 16 };  // inputs and outputs for which no heap is used

bool rondo__op_has_compute(const rondo__op_def *def) {
    return def->compute != NULL && ((def->flags & RONDO__OP_USER) == 0 ||
                                    rondo__user_op_get(def)->definition.compute != NULL);
}

void rondo__tensor_show_info(const rondo__tensor_info *info, rondo_tensor *out_tensor) {
    *out_tensor = (rondo_tensor){.dtype = info->dtype, .shape = info->shape};
    if (info->constant != NULL) {
        out_tensor->data = info->constant->data;
    }
}

void rondo__attribute_show(const rondo__attribute *attribute, rondo_attribute *out_attribute) {
    const rondo__attribute *a = attribute;
    *out_attribute = (rondo_attribute){
        .name = a->name,
        .kind = (rondo_attribute_kind)a->kind + 1,
        .float_value = a->float_value,
        .int_value = a->int_value,
        .string_value = a->string_value,
        .tensor = a->kind == RONDO__ATTRIBUTE_TENSOR ? &a->tensor_value : NULL,
        .count = a->count,
        .ints = a->ints,
        .floats = a->floats,
        .strings = (const char *const *)a->strings,
        .program = a->body,
    };
}

// ---- the entry's functions --------------------------------------------------------------------

rondo_status rondo__user_op_note(const rondo__op *op, rondo_status status, uint64_t sequence,
                                 const char *what) {
    status = rondo__error_note_callback(status, sequence, "rondo_op_register", what);
    if (status != RONDO_STATUS_OK && rondo_error_get_last()->op[0] == '\0') {
        rondo__error_prefix("%s node \"%.64s\"", op->def->name, op->name);
        rondo__error_set_op(op->name);
    }
    return status;
}

// The inferred type and shape of one output.
static rondo_status take_output(rondo__infer *infer, size_t i, const rondo_tensor *said) {
    if (!rondo__dtype_is_plain(said->dtype)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "its infer function gives output %zu the type %s; it is a number's", i,
                             rondo_dtype_get_name(said->dtype));
    }
    bool is_known = said->shape.rank >= 0;
    if (said->shape.rank < -1 || said->shape.rank > RONDO_RANK_MAX) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "its infer function gives output %zu rank %d", i,
                             said->shape.rank);
    }
    for (int32_t d = 0; d < said->shape.rank; ++d) {
        if (said->shape.extent[d] < -1) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA,
                                 "its infer function gives output %zu the extent %lld", i,
                                 (long long)said->shape.extent[d]);
        }
        is_known = is_known && said->shape.extent[d] >= 0;
    }
    if (is_known) {
        return rondo__infer_set_output(infer, i, said->dtype, &said->shape);
    }
    infer->is_data_dependent = infer->needed_inputs == 0;
    infer->outputs[i] = (rondo__tensor_info){.dtype = said->dtype};
    return rondo__infer_set_partial(infer, i, &said->shape);
}

static rondo_status infer_user(rondo__infer *infer) {
    const rondo_op_definition *definition = &rondo__user_op_get(infer->op->def)->definition;
    const size_t count = infer->input_count + infer->output_count;
    rondo_tensor small[SMALL_COUNT];
    rondo_tensor *tensors = small;
    if (count > SMALL_COUNT) {
        tensors = rondo__calloc(count, sizeof *tensors);
        if (tensors == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    rondo_tensor *outputs = tensors + infer->input_count;
    for (size_t i = 0; i < infer->input_count; ++i) {
        rondo__tensor_show_info(&infer->inputs[i], &tensors[i]);
    }
    memset(outputs, 0, infer->output_count * sizeof *outputs);
    const uint64_t sequence = rondo_error_get_last()->sequence;
    rondo_op_node node = {infer->op, infer};
    rondo_status status = rondo__user_op_note(
        infer->op,
        definition->infer(&node, tensors, infer->input_count, outputs, infer->output_count),
        sequence, "its infer function");
    for (size_t i = 0; status == RONDO_STATUS_OK && i < infer->output_count; ++i) {
        status = take_output(infer, i, &outputs[i]);
    }
    if (tensors != small) {
        rondo__free(tensors);
    }
    return status;
}

// Gives the function an output to write, or an empty one to make.
static rondo_status begin_output(rondo__compute *compute, size_t i, rondo_tensor *out_shown) {
    const rondo__tensor_info *info = &compute->inferred[i];
    *out_shown = (rondo_tensor){0};
    if (!rondo__compute_wants_output(compute, i)) {
        return RONDO_STATUS_OK;
    }
    *out_shown = (rondo_tensor){.dtype = info->dtype, .shape = info->shape};
    return info->is_shape_known ? rondo__compute_get_inferred(compute, i, &out_shown->data)
                                : RONDO_STATUS_OK;
}

// Takes an output that the function has made.
static rondo_status end_output(rondo__compute *compute, size_t i, rondo_tensor *made) {
    if (made->dtype == RONDO_DTYPE_NONE || compute->inferred[i].is_shape_known) {
        return RONDO_STATUS_OK;
    }
    if (made->storage == NULL || made->dtype != compute->inferred[i].dtype) {
        return RONDO_OP_FAIL(compute->op, BAD_DATA,
                             "its compute function has not made output %zu, %s, by "
                             "rondo_tensor_init",
                             i, rondo_dtype_get_name(compute->inferred[i].dtype));
    }
    return rondo__compute_take_output(compute, i, made);
}

static rondo_status run_compute(rondo__compute *compute, rondo_tensor *tensors) {
    const rondo_op_definition *definition = &rondo__user_op_get(compute->op->def)->definition;
    rondo_tensor *outputs = tensors + compute->input_count;
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < compute->input_count; ++i) {
        tensors[i] = compute->inputs[i] != NULL ? *compute->inputs[i] : (rondo_tensor){0};
        tensors[i].storage = NULL;
    }
    for (size_t i = 0; i < compute->output_count; ++i) {
        outputs[i] = (rondo_tensor){0};
    }
    for (size_t i = 0; i < compute->output_count && status == RONDO_STATUS_OK; ++i) {
        status = begin_output(compute, i, &outputs[i]);
    }
    if (status == RONDO_STATUS_OK) {
        const uint64_t sequence = rondo_error_get_last()->sequence;
        rondo_op_node node = {compute->op, NULL};
        status = rondo__user_op_note(compute->op,
                                     definition->compute(&node, tensors, compute->input_count,
                                                         outputs, compute->output_count),
                                     sequence, "its compute function");
    }
    for (size_t i = 0; i < compute->output_count && status == RONDO_STATUS_OK; ++i) {
        status = end_output(compute, i, &outputs[i]);
    }
    for (size_t i = 0; i < compute->output_count; ++i) {
        rondo_tensor_deinit(&outputs[i]);  // what was made and not taken
    }
    return status;
}

static rondo_status compute_user(rondo__compute *compute) {
    if (rondo__user_op_get(compute->op->def)->definition.compute == NULL) {
        return rondo__op_fail_unsupported(
            compute->op,
            "it was registered without `compute`, which runs where there is no kernel for a "
            "device, or a shape depends on data");
    }
    const size_t count = compute->input_count + compute->output_count;
    rondo_tensor small[SMALL_COUNT];
    if (count <= SMALL_COUNT) {
        return run_compute(compute, small);
    }
    rondo_tensor *tensors = rondo__calloc(count, sizeof *tensors);
    if (tensors == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status = run_compute(compute, tensors);
    rondo__free(tensors);
    return status;
}

// ---- registering ------------------------------------------------------------------------------

// ONNX's own is nameless inside.
static const char *get_domain(const rondo_op_definition *d) {
    return strcmp(d->domain, "ai.onnx") == 0 ? "" : d->domain;
}

// Ops of ONNX's domains that stand in no table, because a model's reader makes others of them.
static const char *const read_ops[][2] = {{"", "ImageScaler"},
                                          {"ai.onnx.preview", "FlexAttention"},
                                          {"ai.onnx.preview.training", "Gradient"}};

typedef struct own_search {
    const char *domain;
    const char *name;
    bool is_there;
} own_search;

static void look_at_own(void *user_data, const rondo__op_def *def) {
    own_search *search = user_data;
    search->is_there = search->is_there || (strcmp(def->name, search->name) == 0 &&
                                            strcmp(def->domain, search->domain) == 0);
}

// Whether the library itself has the op in some version.
static bool is_own_op(const char *domain, const char *name) {
    own_search search = {.domain = domain, .name = name};
    rondo__op_visit(look_at_own, &search);
    for (size_t i = 0; i < sizeof read_ops / sizeof read_ops[0]; ++i) {
        search.is_there = search.is_there || (strcmp(domain, read_ops[i][0]) == 0 &&
                                              strcmp(name, read_ops[i][1]) == 0);
    }
    return search.is_there;
}

static rondo_status check_definition(const rondo_op_definition *d) {
    const char *missing = d->domain == NULL || d->domain[0] == '\0' ? "domain"
                          : d->name == NULL || d->name[0] == '\0'   ? "name"
                          : d->infer == NULL                        ? "infer"
                                                                    : NULL;
    if (missing != NULL) {
        return RONDO_FAIL_AS("rondo_op_register", INVALID, "op \"%.64s\": %s is missing",
                             d->name != NULL ? d->name : "", missing);
    }
    const bool is_taken =
        strncmp(d->domain, "ai.onnx", 7) == 0 && is_own_op(get_domain(d), d->name);
    if (is_taken || strcmp(d->domain, "rondo") == 0) {
        return RONDO_FAIL_AS("rondo_op_register", INVALID,
                             "op \"%.64s\": domain \"%.64s\" is not the program's%s; choose one "
                             "of its own",
                             d->name, d->domain, is_taken ? ", and has the op" : "");
    }
    if (d->compute == NULL && d->host.launch == NULL && d->cuda.launch == NULL) {
        return RONDO_FAIL_AS("rondo_op_register", INVALID,
                             "op \"%.64s\" has neither `compute` nor a launch function", d->name);
    }
    if (d->input_min > d->input_max || d->input_max >= RONDO_OP_ANY_COUNT ||
        d->output_min > d->output_max || d->output_max >= RONDO_OP_ANY_COUNT ||
        d->output_min == 0) {
        return RONDO_FAIL_AS("rondo_op_register", INVALID,
                             "op \"%.64s\": %u to %u inputs and %u to %u outputs; up to %d are "
                             "possible, and 1 output at least",
                             d->name, (unsigned)d->input_min, (unsigned)d->input_max,
                             (unsigned)d->output_min, (unsigned)d->output_max,
                             RONDO_OP_ANY_COUNT - 1);
    }
    if (d->version_min < 0 || d->version_max < 0 ||
        (d->version_max > 0 && d->version_min > d->version_max)) {
        return RONDO_FAIL_AS("rondo_op_register", INVALID, "op \"%.64s\": versions %d to %d",
                             d->name, (int)d->version_min, (int)d->version_max);
    }
    if ((int)d->capture < RONDO_OP_CAPTURE_UNKNOWN || d->capture > RONDO_OP_CAPTURE_NO ||
        (d->flags & ~(uint32_t)RONDO_OP_IMPURE) != 0) {
        return RONDO_FAIL_AS("rondo_op_register", INVALID,
                             "op \"%.64s\": capture %d or flags %u are not known", d->name,
                             (int)d->capture, (unsigned)d->flags);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_op_register(const rondo_op_definition *definition) {
    rondo_op_definition merged = {.struct_size = sizeof merged};
    if (definition == NULL) {
        return RONDO_FAIL(INVALID, "definition is NULL");
    }
    RETURN_IF_ERROR(
        rondo__read_options(definition, &merged, sizeof merged, __func__, "rondo_op_definition"));
    RETURN_IF_ERROR(check_definition(&merged));
    rondo__user_op *op = rondo__calloc(1, sizeof *op);
    if (op == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const bool is_impure = (merged.flags & RONDO_OP_IMPURE) != 0 || merged.compute == NULL;
    op->definition = merged;
    op->def = (rondo__op_def){
        .domain = get_domain(&merged),
        .name = merged.name,
        .opset_min = merged.version_min,
        .opset_max = merged.version_max > 0 ? merged.version_max : INT32_MAX,
        .input_min = (uint8_t)merged.input_min,
        .input_max = (uint8_t)merged.input_max,
        .output_min = (uint8_t)merged.output_min,
        .output_max = (uint8_t)merged.output_max,
        .flags = RONDO__OP_USER | (is_impure ? (uint32_t)RONDO__OP_IMPURE : 0),
        .attributes = merged.attributes,
        .infer = infer_user,
        .compute = compute_user,
    };
    const rondo_status status = rondo__op_enter(op);
    if (status != RONDO_STATUS_OK) {
        rondo__free(op);
    }
    return status;
}

// ---- what the functions of an op ask ----------------------------------------------------------

const char *rondo_op_get_name(const rondo_op_node *node) {
    return node != NULL ? node->op->name : "";
}

void *rondo_op_get_data(const rondo_op_node *node) {
    return node != NULL ? rondo__user_op_get(node->op->def)->definition.data : NULL;
}

int32_t rondo_op_get_version(const rondo_op_node *node) {
    return node != NULL ? node->op->opset : 0;
}

bool rondo_op_is_training(const rondo_op_node *node) {
    return node != NULL && node->op->is_training;
}

bool rondo_op_get_attribute(const rondo_op_node *node, const char *name,
                            rondo_attribute *out_attribute) {
    const rondo__attribute *found =
        node != NULL && name != NULL ? rondo__op_find(node->op, name) : NULL;
    if (out_attribute != NULL) {
        *out_attribute = (rondo_attribute){0};
        if (found != NULL) {
            rondo__attribute_show(found, out_attribute);
        }
    }
    return found != NULL;
}

void rondo_op_need_value(rondo_op_node *node, size_t index) {
    if (node != NULL && node->infer != NULL && index < node->infer->input_count) {
        (void)!rondo__infer_needs_value(node->infer, index);
    }
}

rondo_status rondo_op_fail(const rondo_op_node *node, rondo_status status, const char *message) {
    if (status == RONDO_STATUS_OK) {
        status = RONDO_STATUS_INTERNAL;
    }
    if (node == NULL) {
        return rondo__error_set(status, 0, "", __FILE__, __LINE__, __func__, "%.200s",
                                message != NULL ? message : "");
    }
    return rondo__op_fail(node->op, status, __FILE__, __LINE__, __func__, "%.160s",
                          message != NULL ? message : "");
}
