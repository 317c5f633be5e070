// executor/run/check_results.c — see check_results.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/check_results.h"

#include "base/error.h"
#include "program/shapes/specialise.h"

// Whether extents are those foreseen; -1 stands for any.
static bool fits_foreseen(const rondo__tensor_info *foreseen, const rondo_shape *shape) {
    bool fits = foreseen->shape.rank == shape->rank;
    for (int32_t d = 0; fits && d < shape->rank; ++d) {
        fits = foreseen->shape.extent[d] < 0 || foreseen->shape.extent[d] == shape->extent[d];
    }
    return fits;
}

// Whether output `i` stacks what a body gave in each turn.
static bool is_row(const rondo__node *node, size_t i) {
    const bool is_loop = node->op.def->id == RONDO__OP_Loop;
    const bool is_scan = node->op.def->id == RONDO__OP_Scan;
    const int64_t others = is_loop ? 2 : rondo__op_get_int(&node->op, "num_scan_inputs", 0);
    return (is_loop || is_scan) && (int64_t)(i + (size_t)others) >= (int64_t)node->explicit_count;
}

// A loop of zero turns made no row. If inference found another empty shape for the rows, use that.
static void complete_rows(const rondo__tensor_info *foreseen, rondo_shape *shape) {
    rondo_shape completed = foreseen->shape;
    for (int32_t d = 0; d < completed.rank; ++d) {
        const int64_t own = completed.rank == shape->rank ? shape->extent[d] : 0;
        completed.extent[d] = completed.extent[d] < 0 ? own : completed.extent[d];
    }
    if (rondo_shape_get_count(shape) == 0 && rondo_shape_get_count(&completed) == 0) {
        *shape = completed;
    }
}

rondo_status rondo__results_check(const rondo__plan *plan, const rondo__node *node, size_t i,
                                  rondo_tensor *result) {
    const rondo_program *program = plan->program;
    rondo__tensor_info foreseen;
    rondo__program_get_info(program, node->outputs[i], &foreseen);
    if (!rondo__info_has_rank(&foreseen) || result->dtype == RONDO_DTYPE_NONE) {
        return RONDO_STATUS_OK;
    }
    if (is_row(node, i)) {
        complete_rows(&foreseen, &result->shape);
    }
    if (result->dtype == foreseen.dtype && fits_foreseen(&foreseen, &result->shape)) {
        return RONDO_STATUS_OK;
    }
    // An op of the program's own: its two functions disagree, which is no fault of ours.
    const bool is_user = (node->op.def->flags & RONDO__OP_USER) != 0;
    char made[160];
    char planned[160];
    return rondo__error_set(
        is_user ? RONDO_STATUS_BAD_DATA : RONDO_STATUS_INTERNAL, 0, "", __FILE__, __LINE__,
        __func__, "output %zu of %s is %s %s, but %s foresaw %s %s", i, rondo__node_describe(node),
        rondo_dtype_get_name(result->dtype), rondo_shape_format(&result->shape, made, sizeof made),
        is_user ? "its infer function" : "shape inference", rondo_dtype_get_name(foreseen.dtype),
        rondo__value_format_shape(program, &program->values[node->outputs[i]], planned,
                                  sizeof planned));
}
