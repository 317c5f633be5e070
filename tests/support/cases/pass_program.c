// support/cases/pass_program.c — see pass_program.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/cases/pass_program.h"

#include <string.h>

#include "program/edit.h"
#include "program/shapes/specialise.h"
#include "support/cases/interpret.h"
#include "support/expect_ok.h"

enum { INPUTS_MAX = 4, OUTPUTS_MAX = 8 };

int32_t pass_add_input(rondo_program *program, rondo_dtype dtype, const rondo_shape *shape) {
    int32_t value;
    OK(rondo__program_add_shaped(program, "x", dtype, shape, &value));
    OK(rondo__program_add_input(program, value));
    return value;
}

int32_t pass_add_constant(rondo_program *program, const rondo_tensor *tensor) {
    int32_t value;
    OK(rondo__program_add_constant(program, "constant", tensor, &value));
    return value;
}

int32_t pass_add_list(rondo_program *program, const int64_t *numbers, size_t count) {
    const rondo_shape shape = {1, {(int64_t)count}};
    rondo_tensor tensor;
    OK(rondo_tensor_init(RONDO_DTYPE_I64, &shape, &tensor));
    memcpy(tensor.data, numbers, count * sizeof *numbers);
    const int32_t value = pass_add_constant(program, &tensor);
    rondo_tensor_deinit(&tensor);
    return value;
}

int32_t pass_add_node(rondo_program *program, const char *domain, const char *op,
                      const int32_t *inputs, size_t count) {
    int32_t value;
    OK(rondo__program_add_value(program, "made", &value));
    OK(rondo__program_add_simple(program, domain, op, NULL, inputs, count, &value, 1));
    return value;
}

rondo_program *pass_specialise(rondo_program *source) {
    rondo_program *program;
    rondo_tensor shapes[INPUTS_MAX] = {{0}};
    OK(rondo__program_verify(source));
    assert_true(source->input_count <= INPUTS_MAX);
    for (size_t i = 0; i < source->input_count; ++i) {
        const rondo__value *value = &source->values[source->inputs[i]];
        shapes[i].dtype = value->dtype;
        assert_true(rondo__value_get_shape(value, &shapes[i].shape));
    }
    OK(rondo__program_specialise(source, shapes, 1 << 20, &program, NULL));
    rondo_program_destroy(source);
    return program;
}

void pass_rewrite(rondo_program *program, rondo_status (*rewrite)(rondo_program *),
                  const rondo_tensor *inputs, double tolerance, const char *what) {
    rondo_tensor expected[OUTPUTS_MAX] = {{0}}, results[OUTPUTS_MAX] = {{0}};
    assert_true(program->output_count <= OUTPUTS_MAX);
    OK(interpret_program(program, inputs, expected));
    OK(rewrite(program));
    OK(interpret_program(program, inputs, results));
    for (size_t o = 0; o < program->output_count; ++o) {
        const double difference = compare_tensors(&results[o], &expected[o]);
        if (!(difference <= tolerance)) {
            fail_msg("%s: output %zu differs by %g", what, o, difference);
        }
        rondo_tensor_deinit(&results[o]);
        rondo_tensor_deinit(&expected[o]);
    }
}
