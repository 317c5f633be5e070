// A replay whose first kernel sees its input through a tensor map takes device tensors where they
// are, as any other does: the map is a part of the kernel's arguments. Maps are used on Hopper
// alone (and where the emulated GPU says that it is one); elsewhere the same runs take other
// kernels.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rondo/models.h"
#include "rondo/tuning.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/text_sink.h"

enum { ROWS = 70, DEPTH = 128, COLUMNS = 96, TENSORS = 3, RUNS = 9 };

static uint16_t weights[DEPTH * COLUMNS], rows[TENSORS][ROWS * DEPTH];
static float want[TENSORS][ROWS * COLUMNS];

static uint16_t draw(void) {
    static uint32_t seed = 7;
    seed = seed * 1664525u + 1013904223u;
    return rondo_f16_from_float((float)(seed >> 24) / 128.0f - 1.0f);
}

static void make_data(void) {
    for (size_t i = 0; i < DEPTH * COLUMNS; ++i) {
        weights[i] = draw();
    }
    for (size_t t = 0; t < TENSORS; ++t) {
        for (size_t i = 0; i < ROWS * DEPTH; ++i) {
            rows[t][i] = draw();
        }
        for (size_t i = 0; i < ROWS * COLUMNS; ++i) {
            float sum = 0;
            for (size_t k = 0; k < DEPTH; ++k) {
                sum += rondo_f16_to_float(rows[t][i / COLUMNS * DEPTH + k]) *
                       rondo_f16_to_float(weights[k * COLUMNS + i % COLUMNS]);
            }
            want[t][i] = sum;
        }
    }
}

static rondo_program *build(void) {
    const rondo_shape w = {2, {DEPTH, COLUMNS}};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F16, ROWS, DEPTH)));
    OK(rondo_builder_add_constant(builder, "w", RONDO_DTYPE_F16, &w, weights));
    build_node(builder, "MatMul", "x w", "y", NULL);
    OK(rondo_builder_add_output(builder, "y", NULL));
    return build_finish(builder);
}

// ---- a tuning file that chooses a kernel with maps ----------------------------------------------

static const char choice[] = "tma 64x32 stages 10 split 2";

static text_sink write_tuning(rondo_executor *executor) {
    text_sink all = {{0}, 0};
    OK(rondo_executor_write_tuning(executor, text_sink_append, &all));
    return all;
}

// What a contest chooses for the program, with the choice in place of its winner.
static void write_file(rondo_program *program, rondo_device *device, const char *path) {
    rondo_executor *executor;
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .tuning = RONDO_TUNING_FAST};
    static uint16_t zeros[ROWS * DEPTH];
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F16, zeros, ROWS, DEPTH);
    OK(rondo_executor_create(program, device, &options, &executor));
    OK(rondo_executor_run(executor, &feed, 1, NULL, 0));
    text_sink all = write_tuning(executor);
    rondo_executor_destroy(executor);
    char *end = all.text + all.length;
    while (end > all.text && end[-1] == '\n') {
        *--end = '\0';
    }
    char *last = strrchr(all.text, '\t');  // the only line that is no comment ends with the choice
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    if (last != NULL) {
        (void)fprintf(file, "%.*s%s\n", (int)(last + 1 - all.text), all.text, choice);
    } else {
        (void)fputs(all.text, file);
    }
    assert_int_equal(fclose(file), 0);
}

static bool has_maps(rondo_device *device) {
    rondo_device_info info = {.struct_size = sizeof info};
    OK(rondo_device_get_info(device, &info));
    return !rondo_device_is_host(device) && info.arch_major == 9;
}

TEST(test_executor_tensor_map__addresses_that_change) {
    rondo_device *device = NULL;
    rondo_executor *executor;
    rondo_stream *stream;
    rondo_tensor x[TENSORS];
    char path[] = "/tmp/rondo_tuning_XXXXXX";
    const rondo_shape shape = {2, {ROWS, DEPTH}};
    rondo_executor_options options = {
        .struct_size = sizeof options, .graphs = RONDO_GRAPHS_ON, .tuning = RONDO_TUNING_OFF};
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_stream_create(device, NULL, &stream));
    make_data();
    rondo_program *program = build();
    if (has_maps(device)) {
        const int file = mkstemp(path);
        assert_true(file >= 0);
        (void)close(file);
        write_file(program, device, path);
        options.tuning_file = path;
    }
    OK(rondo_executor_create(program, device, &options, &executor));
    for (size_t t = 0; t < TENSORS; ++t) {
        OK(rondo_tensor_init_device(device, RONDO_DTYPE_F16, &shape, &x[t]));
        rondo_tensor from = {.dtype = RONDO_DTYPE_F16, .shape = shape, .data = rows[t]};
        OK(rondo_tensor_copy(stream, &from, &x[t]));
    }
    OK(rondo_stream_synchronize(stream));
    for (size_t run = 0; run < RUNS; ++run) {
        const size_t t = run * 2 % TENSORS;
        static uint16_t got[ROWS * COLUMNS];
        const rondo_binding feed = {"x", x[t]};
        rondo_binding fetch = BIND("y", RONDO_DTYPE_F16, got, ROWS, COLUMNS);
        memset(got, 0xff, sizeof got);
        OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
        for (size_t i = 0; i < ROWS * COLUMNS; ++i) {
            const float difference = rondo_f16_to_float(got[i]) - want[t][i];
            if (!(difference <= 0.05f && difference >= -0.05f)) {
                fail_msg("run %zu, element %zu: %g, expected %g", run, i,
                         (double)rondo_f16_to_float(got[i]), (double)want[t][i]);
            }
        }
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(executor, &stats));
    assert_int_equal(stats.replay_run_count, RUNS - 1);
    if (options.tuning_file != NULL) {
        const text_sink all = write_tuning(executor);
        if (strstr(all.text, choice) == NULL) {
            fail_msg("another kernel was taken: %s", all.text);
        }
        (void)unlink(path);
    }
    for (size_t t = 0; t < TENSORS; ++t) {
        rondo_tensor_deinit(&x[t]);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
}

int main(void) {
    return ON_DEVICES();
}
