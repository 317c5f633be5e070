// support/models/placed_program.c — see placed_program.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/models/placed_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/expect_ok.h"

static void add_constants(rondo_builder *builder) {
    const int64_t whole[] = {2, 4};
    const int64_t zero = 0;
    float table[4 * PLACED_COUNT];
    for (int i = 0; i < 4 * PLACED_COUNT; ++i) {
        table[i] = (float)i / 4;
    }
    OK(rondo_builder_add_constant(builder, "table", RONDO_DTYPE_F32,
                                  &(rondo_shape){2, {4, PLACED_COUNT}}, table));
    OK(rondo_builder_add_constant(builder, "row", RONDO_DTYPE_F32,
                                  &(rondo_shape){1, {PLACED_COUNT}}, table + 1));
    OK(rondo_builder_add_constant(builder, "square", RONDO_DTYPE_I64, &(rondo_shape){1, {2}},
                                  whole));
    OK(rondo_builder_add_constant(builder, "zero", RONDO_DTYPE_I64, &(rondo_shape){1, {1}}, &zero));
}

rondo_program *placed_build(const placed_node *nodes, const char *const *outputs) {
    rondo_builder *builder;
    rondo_program *program;
    rondo_port x = {.struct_size = sizeof x, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 1};
    rondo_port i = {.struct_size = sizeof i, .name = "i", .dtype = RONDO_DTYPE_I64, .rank = 1};
    x.extent[0] = PLACED_COUNT;
    i.extent[0] = 1;
    OK(rondo_builder_create(NULL, &builder));
    OK(rondo_builder_add_input(builder, &x));
    OK(rondo_builder_add_input(builder, &i));
    add_constants(builder);
    for (const placed_node *n = nodes; n < nodes + PLACED_NODES_MAX && n->op != NULL; ++n) {
        const char *dot = strrchr(n->op, '.');  // "ai.onnx.ml.Normalizer"
        char domain[32] = "";
        (void)snprintf(domain, sizeof domain, "%.*s", dot != NULL ? (int)(dot - n->op) : 0, n->op);
        const rondo_builder_node_options options = {
            .struct_size = sizeof options, .name = n->output, .domain = domain};
        size_t count = 0;
        while (count < 3 && n->inputs[count] != NULL) {
            count += 1;
        }
        OK(rondo_builder_begin_place(builder, n->place != NULL ? n->place : "all"));
        OK(rondo_builder_add_node(builder, dot != NULL ? dot + 1 : n->op, n->inputs, count,
                                  &n->output, 1, &options));
        OK(rondo_builder_end_place(builder));
    }
    for (; *outputs != NULL; ++outputs) {
        OK(rondo_builder_add_output(builder, *outputs, NULL));
    }
    OK(rondo_builder_finish(builder, &program));
    rondo_builder_destroy(builder);
    return program;
}

void placed_fill(placed_feeds *f, int run) {
    for (int k = 0; k < PLACED_COUNT; ++k) {
        f->x[k] = (float)(k - 3 + run);
    }
    f->i = run % 4;
    f->list[0] = (rondo_binding){"x", {RONDO_DTYPE_F32, {1, {PLACED_COUNT}}, f->x, NULL, NULL}};
    f->list[1] = (rondo_binding){"i", {RONDO_DTYPE_I64, {1, {1}}, &f->i, NULL, NULL}};
}

void placed_expect_same(const rondo_tensor *have, const rondo_tensor *want, const char *what) {
    const size_t bytes = rondo_tensor_get_bytes(want);
    assert_true(rondo_shape_is_equal(&have->shape, &want->shape));
    if (memcmp(have->data, want->data, bytes) != 0) {
        fail_msg("%s: another result than on the host, the first %g, not %g", what,
                 (double)*(const float *)have->data, (double)*(const float *)want->data);
    }
}

static size_t count_outputs(const char *const *outputs) {
    size_t count = 0;
    while (outputs[count] != NULL) {
        count += 1;
    }
    return count;
}

void placed_compare(rondo_executor *gpu, rondo_executor *host, const char *const *outputs,
                    const char *what, bool waits) {
    const size_t count = count_outputs(outputs);
    for (int run = 0; run < PLACED_RUNS; ++run) {
        placed_feeds f;
        rondo_binding have[3] = {{0}};
        rondo_binding want[3] = {{0}};
        placed_fill(&f, run);
        for (size_t k = 0; k < count; ++k) {
            have[k].name = want[k].name = outputs[k];
        }
        OK(rondo_executor_run(host, f.list, 2, want, count));
        if (waits) {
            OK(rondo_executor_run(gpu, f.list, 2, have, count));
        } else {
            OK(rondo_executor_run_async(gpu, f.list, 2, have, count, NULL));
            memset(f.x, 0, sizeof f.x);
            f.i = 0;
            OK(rondo_executor_wait(gpu));
        }
        for (size_t k = 0; k < count; ++k) {
            placed_expect_same(&have[k].tensor, &want[k].tensor, what);
            rondo_tensor_deinit(&have[k].tensor);
            rondo_tensor_deinit(&want[k].tensor);
        }
    }
}
