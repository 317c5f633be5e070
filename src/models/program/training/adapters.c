// program/training/adapters.c — low-rank adapters: w + a b in the place of a weight w, which stays.
// See rondo/training.h.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/builder/builder_parts.h"
#include "program/edit.h"
#include "program/node_pattern.h"
#include "rondo/training.h"
#include "rondo/variable.h"

static const char call_name[] = "rondo_builder_add_adapters";

// A matrix that a product reads as its second factor.
static bool is_weight(const rondo_program *program, int32_t value, int64_t rank) {
    const rondo_tensor *w = &program->values[value].constant;
    const bool is_real = w->dtype == RONDO_DTYPE_F32 || w->dtype == RONDO_DTYPE_F64;
    if (!is_real || w->shape.rank != 2 || w->shape.extent[0] <= rank ||
        w->shape.extent[1] <= rank) {
        return false;
    }
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        if (node->explicit_count > 1 && node->inputs[1] == value &&
            (rondo__node_is(node, RONDO__OP_MatMul) || rondo__node_is(node, RONDO__OP_Gemm))) {
            return true;
        }
    }
    return false;
}

static bool matches(const char *name, const char *const *patterns, size_t count) {
    bool is_match = count == 0;
    for (size_t i = 0; i < count; ++i) {
        is_match = is_match || rondo__pattern_matches(patterns[i], name);
    }
    return is_match;
}

static rondo_status add_factor(rondo_builder *builder, const char *name, rondo_dtype dtype,
                               int64_t rows, int64_t columns, rondo_start_kind kind) {
    const rondo_port port = {.struct_size = sizeof port,
                             .name = name,
                             .dtype = dtype,
                             .rank = 2,
                             .extent = {rows, columns}};
    const rondo_start start = {.struct_size = sizeof start, .kind = kind};
    return rondo_builder_add_variable(builder, &port, &start);
}

static rondo_status add_adapter(rondo_builder *builder, int32_t weight, int64_t rank) {
    rondo_program *program = builder->program;
    const rondo_tensor w = program->values[weight].constant;
    int32_t sum = RONDO__VALUE_NONE;
    int32_t product = RONDO__VALUE_NONE;
    char *names[4] = {NULL};
    static const char *const endings[4] = {"lora_a", "lora_b", "lora_ab", "adapted"};
    rondo_status status = RONDO_STATUS_OK;
    for (int i = 0; i < 4 && status == RONDO_STATUS_OK; ++i) {
        names[i] = rondo__strformat("%s.%s", program->values[weight].name, endings[i]);
        status = names[i] != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    }
    // One factor starts at zero, so that the model is at first what it was.
    if (status == RONDO_STATUS_OK) {
        status = add_factor(builder, names[0], w.dtype, w.shape.extent[0], rank,
                            RONDO_START_XAVIER_UNIFORM);
    }
    if (status == RONDO_STATUS_OK) {
        status =
            add_factor(builder, names[1], w.dtype, rank, w.shape.extent[1], RONDO_START_CONSTANT);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_add_value(program, names[2], &product);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_add_shaped(program, names[3], w.dtype, &w.shape, &sum);
    }
    if (status == RONDO_STATUS_OK) {
        const int32_t factors[2] = {rondo__program_find_value(program, names[0]),
                                    rondo__program_find_value(program, names[1])};
        rondo__program_replace_uses(program, weight, sum);
        status = rondo__program_add_simple(program, "", "MatMul", NULL, factors, 2, &product, 1);
    }
    if (status == RONDO_STATUS_OK) {
        const int32_t parts[2] = {weight, product};
        status = rondo__program_add_simple(program, "", "Add", NULL, parts, 2, &sum, 1);
    }
    for (int i = 0; i < 4; ++i) {
        rondo__free(names[i]);
    }
    return status;
}

static rondo_status add_adapters(rondo_builder *builder, const char *const *patterns, size_t count,
                                 int64_t rank) {
    const size_t values = builder->program->value_count;
    size_t added = 0;
    for (size_t v = 0; v < values; ++v) {
        if (is_weight(builder->program, (int32_t)v, rank) &&
            matches(builder->program->values[v].name, patterns, count)) {
            RETURN_IF_ERROR(add_adapter(builder, (int32_t)v, rank));
            added += 1;
        }
    }
    if (added == 0) {
        return RONDO_FAIL_AS(call_name, INVALID,
                             "no matrix larger than rank %lld, second factor of a MatMul or Gemm, "
                             "matches",
                             (long long)rank);
    }
    return rondo__program_verify(builder->program);
}

rondo_status rondo_builder_add_adapters(rondo_builder *builder, const char *const *patterns,
                                        size_t count, int64_t rank) {
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    if (rank < 1 || count > 65536 || (patterns == NULL && count > 0) || builder->parent != NULL) {
        return RONDO_FAIL(INVALID, "%s",
                          rank < 1                  ? "rank is below 1"
                          : builder->parent != NULL ? "a body has no adapters"
                                                    : "patterns is NULL, or over 65536");
    }
    for (size_t i = 0; i < count; ++i) {
        if (patterns[i] == NULL) {
            return RONDO_FAIL(INVALID, "pattern %zu is NULL", i);
        }
    }
    rondo_program *before = builder->program;
    rondo_program *copy = NULL;
    RETURN_IF_ERROR(rondo__program_clone_whole(before, &copy));
    builder->program = copy;
    const rondo_status status = add_adapters(builder, patterns, count, rank);
    builder->program = status == RONDO_STATUS_OK ? copy : before;
    rondo_program_destroy(status == RONDO_STATUS_OK ? before : copy);
    return status;
}
