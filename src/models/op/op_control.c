// op/op_control.c — If, Loop, Scan, SequenceMap: entries only; the executor runs their bodies.
// rondo.Rest holds ops that wait for shapes (program/passes/pass_rest.c), and runs its body once;
// rondo.Counted has no body; it waits for the count of an op of a GPU (executor/state/counted.h).
//
// An op instance has an opaque pointer to a body, so these entries infer nothing of the outputs.
// The input counts include the values that bodies capture.
// SPDX-License-Identifier: Apache-2.0
#include "op/op.h"

static rondo_status infer_control(rondo__infer *infer) {
    return rondo__infer_set_data_dependent(infer, RONDO_DTYPE_NONE);
}

static const char *const if_attributes[] = {"else_branch", "then_branch", NULL};
static const char *const loop_attributes[] = {"body", NULL};
static const char *const scan_8_attributes[] = {"body", "directions", "num_scan_inputs", NULL};
static const char *const scan_attributes[] = {"body",
                                              "num_scan_inputs",
                                              "scan_input_axes",
                                              "scan_input_directions",
                                              "scan_output_axes",
                                              "scan_output_directions",
                                              NULL};

#define CONTROL_ENTRY(op_name, first_opset, last_opset, least_inputs, attribute_list)           \
    RONDO_OP_ROW(OP, op_name, first_opset, last_opset, least_inputs, RONDO_OP_ANY_COUNT, 0,     \
                 RONDO_OP_ANY_COUNT, .flags = RONDO__OP_CONTROL, .capture = RONDO__CAPTURE_YES, \
                 .attributes = (attribute_list), .infer = infer_control)

const rondo__op_def rondo__op_table_control[] = {
    CONTROL_ENTRY(If, 1, RONDO_OP_OPSET_MAX, 1, if_attributes),
    // Trip count and condition of a Loop may both be left out.
    CONTROL_ENTRY(Loop, 1, RONDO_OP_OPSET_MAX, 0, loop_attributes),
    CONTROL_ENTRY(Scan, 8, 8, 2, scan_8_attributes),
    CONTROL_ENTRY(Scan, 9, RONDO_OP_OPSET_MAX, 1, scan_attributes),
    CONTROL_ENTRY(SequenceMap, 17, RONDO_OP_OPSET_MAX, 1, loop_attributes),
    RONDO_OP_ROW(FUSED, Rest, 1, RONDO_OP_OPSET_MAX, 0, RONDO_OP_ANY_COUNT, 0, RONDO_OP_ANY_COUNT,
                 .flags = RONDO__OP_CONTROL | RONDO__OP_INTERNAL, .capture = RONDO__CAPTURE_NEVER,
                 .infer = infer_control),
    RONDO_OP_ROW(FUSED, Counted, 1, RONDO_OP_OPSET_MAX, 2, RONDO_OP_ANY_COUNT, 1,
                 RONDO_OP_ANY_COUNT, .flags = RONDO__OP_CONTROL | RONDO__OP_INTERNAL,
                 .capture = RONDO__CAPTURE_NEVER, .infer = infer_control),
    {.name = NULL},
};
