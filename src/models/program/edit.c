// program/edit.c — see edit.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/edit.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

void rondo__program_remove_nodes(rondo_program *program, const bool *remove, size_t remove_count) {
    size_t kept = 0;
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__node *node = &program->nodes[n];
        if (n < remove_count && remove[n]) {
            for (size_t i = 0; i < node->output_count; ++i) {
                int32_t value = node->outputs[i];
                if (value >= 0 && program->values[value].producer == (int32_t)n) {
                    program->values[value].producer = -1;
                }
            }
            rondo__node_deinit(node);
            continue;
        }
        if (kept != n) {
            for (size_t i = 0; i < node->output_count; ++i) {
                int32_t value = node->outputs[i];
                if (value >= 0 && program->values[value].producer == (int32_t)n) {
                    program->values[value].producer = (int32_t)kept;
                }
            }
            program->nodes[kept] = *node;
            memset(node, 0, sizeof *node);
        }
        kept += 1;
    }
    program->node_count = kept;
}

void rondo__program_drop_optional(rondo_program *program, int32_t value) {
    size_t kept = 0;
    for (size_t i = 0; i < program->optional_count; ++i) {
        if (program->optionals[i].value != value) {
            program->optionals[kept++] = program->optionals[i];
        }
    }
    program->optional_count = kept;
}

void rondo__program_replace_uses(rondo_program *program, int32_t from, int32_t to) {
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__node *node = &program->nodes[n];
        for (size_t i = 0; i < node->input_count; ++i) {
            if (node->inputs[i] == from) {
                node->inputs[i] = to;
            }
        }
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        if (program->outputs[i] == from) {
            program->outputs[i] = to;
        }
    }
}

bool rondo__value_has_known_shape(const rondo__value *value) {
    if (value->constant.dtype != RONDO_DTYPE_NONE) {
        return true;
    }
    bool is_known = value->has_shape && value->rank >= 0 && value->rank <= RONDO_RANK_MAX;
    for (int32_t d = 0; is_known && d < value->rank; ++d) {
        is_known = value->dims[d].number >= 0;
    }
    return is_known;
}

bool rondo__value_get_shape(const rondo__value *value, rondo_shape *out_shape) {
    memset(out_shape, 0, sizeof *out_shape);
    if (value->constant.dtype != RONDO_DTYPE_NONE) {
        *out_shape = value->constant.shape;
        return true;
    }
    if (!rondo__value_has_known_shape(value)) {
        return false;
    }
    out_shape->rank = value->rank;
    for (int32_t d = 0; d < value->rank; ++d) {
        out_shape->extent[d] = value->dims[d].number;
    }
    return true;
}

bool rondo__program_get_shape(const rondo_program *program, int32_t value, rondo_shape *out_shape) {
    return value >= 0 && rondo__value_get_shape(&program->values[value], out_shape);
}

void rondo__value_set_shape(rondo__value *value, rondo_dtype dtype, const rondo_shape *shape) {
    value->dtype = dtype;
    value->has_shape = shape != NULL;
    value->rank = shape != NULL ? shape->rank : 0;
    for (int32_t d = 0; d < RONDO_RANK_MAX; ++d) {
        value->dims[d].number = shape != NULL && d < shape->rank ? shape->extent[d] : -1;
        value->dims[d].symbol = -1;
    }
}

void rondo__value_set_info(rondo__value *value, rondo_dtype dtype, const rondo__tensor_info *info) {
    rondo__value_set_shape(value, dtype, rondo__info_has_rank(info) ? &info->shape : NULL);
}

bool rondo__value_is_constant(const rondo__value *value) {
    return value->constant.dtype != RONDO_DTYPE_NONE;
}

rondo_status rondo__program_add_shaped(rondo_program *program, const char *name, rondo_dtype dtype,
                                       const rondo_shape *shape, int32_t *out_value) {
    rondo_status status = rondo__program_add_value(program, name, out_value);
    if (status == RONDO_STATUS_OK) {
        rondo__value_set_shape(&program->values[*out_value], dtype, shape);
    }
    return status;
}

rondo_status rondo__program_add_reshape(rondo_program *program, int32_t from, int32_t to,
                                        const rondo_shape *shape) {
    const rondo_shape list = {.rank = 1, .extent = {shape->rank}};
    rondo_tensor extents;
    int32_t inputs[2] = {from, RONDO__VALUE_NONE};
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_I64, &list, &extents));
    memcpy(extents.data, shape->extent, (size_t)shape->rank * sizeof(int64_t));
    rondo_status status = rondo__program_add_constant(program, "extents", &extents, &inputs[1]);
    rondo_tensor_deinit(&extents);
    program->values[to].producer = -1;
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_add_simple(program, "", "Reshape", NULL, inputs, 2, &to, 1);
    }
    return status;
}

rondo_status rondo__uses_init(const rondo_program *program, rondo__uses *out_uses) {
    memset(out_uses, 0, sizeof *out_uses);
    size_t total = 0;
    for (size_t n = 0; n < program->node_count; ++n) {
        total += program->nodes[n].input_count;
    }
    rondo__uses uses;
    uses.first = rondo__calloc(program->value_count + 2, sizeof *uses.first);
    uses.users = rondo__calloc(total + 1, sizeof *uses.users);
    uses.is_output = rondo__calloc(program->value_count + 1, sizeof *uses.is_output);
    if (uses.first == NULL || uses.users == NULL || uses.is_output == NULL) {
        rondo__uses_deinit(&uses);
        return RONDO_STATUS_NO_MEMORY;
    }
    // Counting sort by value; first[v + 1] serves as the fill cursor of v until all are placed.
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        for (size_t i = 0; i < node->input_count; ++i) {
            if (node->inputs[i] >= 0) {
                uses.first[node->inputs[i] + 2] += 1;
            }
        }
    }
    for (size_t v = 1; v < program->value_count + 2; ++v) {
        uses.first[v] += uses.first[v - 1];
    }
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        for (size_t i = 0; i < node->input_count; ++i) {
            if (node->inputs[i] >= 0) {
                uses.users[uses.first[node->inputs[i] + 1]++] = n;
            }
        }
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        uses.is_output[program->outputs[i]] = true;
    }
    *out_uses = uses;
    return RONDO_STATUS_OK;
}

void rondo__uses_deinit(rondo__uses *uses) {
    rondo__free(uses->first);
    rondo__free(uses->users);
    rondo__free(uses->is_output);
    memset(uses, 0, sizeof *uses);
}

int32_t rondo__uses_get_single(const rondo__uses *uses, int32_t value) {
    if (value < 0 || uses->is_output[value] || uses->first[value + 1] - uses->first[value] != 1) {
        return -1;
    }
    return (int32_t)uses->users[uses->first[value]];
}
