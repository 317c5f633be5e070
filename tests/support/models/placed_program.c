// support/models/placed_program.c — see placed_program.h.
// SPDX-License-Identifier: Apache-2.0

#include "support/models/placed_program.h"
#include "support/models/build_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/expect_ok.h"
#include "support/test.h"

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
    rondo_port x = {.struct_size = sizeof x, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 1};
    rondo_port i = {.struct_size = sizeof i, .name = "i", .dtype = RONDO_DTYPE_I64, .rank = 1};
    x.extent[0] = PLACED_COUNT;
    i.extent[0] = 1;
    rondo_builder *builder = build_begin();
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
    return build_finish(builder);
}

void placed_fill(placed_feeds *f, int run) {
    for (int k = 0; k < PLACED_COUNT; ++k) {
        f->x[k] = (float)(k - 3 + run);
    }
    f->i = run % 4;
    f->list[0] = (rondo_binding){"x", {RONDO_DTYPE_F32, {1, {PLACED_COUNT}}, f->x, NULL, NULL}};
    f->list[1] = (rondo_binding){"i", {RONDO_DTYPE_I64, {1, {1}}, &f->i, NULL, NULL}};
}

static void expect_same(const rondo_tensor *have, const rondo_tensor *want, const char *what) {
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
            expect_same(&have[k].tensor, &want[k].tensor, what);
            rondo_tensor_deinit(&have[k].tensor);
            rondo_tensor_deinit(&want[k].tensor);
        }
    }
}

// ---- devices ----------------------------------------------------------------------------------

void placed_open(const fake_cuda_options *options, rondo_device **out_gpus,
                 rondo_device **out_host) {
    fake_cuda_reset(options);
    fake_cuda_install();
    fake_cuda_install_compiler();
    for (int i = 0; i < (options != NULL ? options->device_count : 1); ++i) {
        char name[16];
        (void)snprintf(name, sizeof name, "cuda:%d", i);
        OK(rondo_device_open(name, &out_gpus[i]));
    }
    OK(rondo_device_open("host", out_host));
}

void placed_close(rondo_device *const *gpus, int count, rondo_device *host) {
    for (int i = 0; i < count; ++i) {
        rondo_device_release(gpus[i]);
    }
    rondo_device_release(host);
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
}

// ---- places -----------------------------------------------------------------------------------

// What is said of this op, value or the like; the running test fails when nothing is.
static rondo_placement find(rondo_executor *executor, rondo_placement_kind kind, const char *name) {
    rondo_placement list[64];
    size_t count;
    OK(rondo_executor_list_placements(executor, NULL, 0, 64, list, &count));
    assert_true(count <= 64);
    for (size_t i = 0; i < count; ++i) {
        if (list[i].kind == kind && strcmp(list[i].name, name) == 0) {
            return list[i];
        }
    }
    fail_msg("nothing is said of \"%s\"", name);
    return (rondo_placement){0};
}

void placed_expect_place(rondo_executor *executor, rondo_placement_kind kind, const char *name,
                         const char *place, const char *reason) {
    const rondo_placement found = find(executor, kind, name);
    if (strcmp(found.place, place) != 0 || strstr(found.reason, reason) == NULL) {
        fail_msg("\"%s\" is on %s because %s", name, found.place, found.reason);
    }
}
