// SPDX-License-Identifier: Apache-2.0
#include "support/models/add_program.h"

#include <stdlib.h>
#include <string.h>

#include "rondo/builder.h"
#include "support/fake/fake_cuda.h"
#include "support/fake/fake_flow.h"
#include "support/short_forms.h"

// The arguments of the element-wise kernel, for two operands of one shape: groups of four.
static void add(const void *arguments, size_t argument_bytes) {
    struct {
        int64_t groups;
        float *y;
        const float *x[2];
    } words;
    if (argument_bytes != sizeof words) {
        abort();
    }
    memcpy(&words, arguments, sizeof words);
    for (int64_t i = 0; i < 4 * words.groups; ++i) {
        words.y[i] = words.x[0][i] + words.x[1][i];
    }
}

void add_program_prepare_fake(void) {
    fake_cuda_set_kernel("pointwise", add);
    fake_flow_set_carry();
    fake_cuda_install_compiler();
}

void add_program_fill(float *values, float first) {
    for (size_t i = 0; i < ADD_COUNT; ++i) {
        values[i] = first + (float)i;
    }
}

float add_program_y(float x, size_t i) {
    return x + (float)i / 2 + x;
}

size_t add_program_check(const float *values, float first, bool is_y) {
    for (size_t i = 0; i < ADD_COUNT; ++i) {
        const float x = first + (float)i;
        const float want = is_y ? add_program_y(x, i) : x + (float)i / 2;
        if (!(values[i] == want)) {
            return i;
        }
    }
    return ADD_COUNT;
}

static rondo_status fill(rondo_builder *builder) {
    static const char *const operands[2][2] = {{"x", "w"}, {"s", "x"}};
    static const char *const results[2] = {"s", "y"};
    float w[ADD_COUNT];
    for (size_t i = 0; i < ADD_COUNT; ++i) {
        w[i] = (float)i / 2;
    }
    rondo_status status = rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, ADD_COUNT));
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_constant(builder, "w", RONDO_DTYPE_F32, &add_shape, w);
    }
    for (int i = 0; i < 2 && status == RONDO_STATUS_OK; ++i) {
        status = rondo_builder_add_node(builder, "Add", operands[i], 2, &results[i], 1, NULL);
        if (status == RONDO_STATUS_OK) {
            status = rondo_builder_add_output(builder, results[i], NULL);
        }
    }
    return status;
}

rondo_status add_program_build(rondo_program **out_program) {
    rondo_builder *builder = NULL;
    *out_program = NULL;
    rondo_status status = rondo_builder_create(NULL, &builder);
    if (status == RONDO_STATUS_OK) {
        status = fill(builder);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_finish(builder, out_program);
    }
    rondo_builder_destroy(builder);
    return status;
}

rondo_status add_program_create(rondo_device *device, rondo_graphs_mode graphs,
                                rondo_program **out_program, rondo_executor **out_executor) {
    const rondo_executor_options options = {
        .struct_size = sizeof options, .graphs = graphs, .op_by_op = true};
    *out_executor = NULL;
    const rondo_status status = add_program_build(out_program);
    return status != RONDO_STATUS_OK
               ? status
               : rondo_executor_create(*out_program, device, &options, out_executor);
}

rondo_status add_program_run(rondo_executor *executor, float first) {
    float x[ADD_COUNT];
    const rondo_binding feed = {.name = "x", .tensor = add_program_on_host(x)};
    rondo_binding fetch = {.name = "y"};
    add_program_fill(x, first);
    const rondo_status status = rondo_executor_run(executor, &feed, 1, &fetch, 1);
    rondo_tensor_deinit(&fetch.tensor);
    return status;
}
