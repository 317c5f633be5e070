// A mean over the height and width of an image in NHWC becomes a global average; other means stay.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "program/passes/passes.h"
#include "program/shapes/specialise.h"
#include "rondo/builder.h"
#include "support/cases/interpret.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { CHANNELS = 8 };

typedef struct mean_row {
    int64_t axes[3];
    int64_t axis_count, keeps;
    bool is_list;  // the axes are an input
    bool is_average;
} mean_row;

// y = mean(conv(x)) over some axes.
static rondo_program *build(const mean_row *row) {
    const rondo_shape weights = {4, {CHANNELS, CHANNELS, 1, 1}}, list = {1, {row->axis_count}};
    const char *const operands[] = {"x", "w"}, *const averaged[] = {"a", "axes"};
    const char *const made[] = {"a"}, *const means[] = {"y"};
    const rondo_attribute attributes[] = {
        ATTRIBUTE_INT("keepdims", row->keeps),
        ATTRIBUTE_INTS("axes", row->axes, (size_t)row->axis_count)};
    const rondo_builder_options opset = {.struct_size = sizeof opset,
                                         .opset = row->is_list ? 18 : 13};
    rondo_builder *builder;
    rondo_tensor tensor;
    OK(rondo_builder_create(&opset, &builder));
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 2, CHANNELS, 5, 6)));
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &weights, &tensor));
    for (int64_t i = 0; i < rondo_shape_get_count(&weights); ++i) {
        ((float *)tensor.data)[i] = (float)((i * 7 + 3) % 11) / 8.0f - 0.6f;
    }
    OK(rondo_builder_add_parameter(builder, "w", &tensor, RONDO_PARAMETER_COPIED));
    rondo_tensor_deinit(&tensor);
    OK(rondo_tensor_init(RONDO_DTYPE_I64, &list, &tensor));
    memcpy(tensor.data, row->axes, (size_t)row->axis_count * sizeof row->axes[0]);
    OK(rondo_builder_add_parameter(builder, "axes", &tensor, RONDO_PARAMETER_COPIED));
    rondo_tensor_deinit(&tensor);
    OK(rondo_builder_add_node(builder, "Conv", operands, 2, made, 1, NULL));
    OK(rondo_builder_add_node(builder, "ReduceMean", averaged, row->is_list ? 2 : 1, means, 1,
                              &WITH_LIST(attributes, row->is_list ? 1 : 2)));
    OK(rondo_builder_add_output(builder, "y", NULL));
    return build_finish(builder);
}

TEST(test_program_pass_means__of_images_are_averages) {
    static const mean_row rows[] = {
        {{2, 3}, 2, 1, false, true},     {{-1, -2}, 2, 1, false, true},
        {{3, 2}, 2, 1, true, true},      {{2, 3}, 2, 0, false, true},
        {{-2, 3}, 2, 0, true, true},     {{1, 2}, 2, 1, false, false},
        {{1, 2, 3}, 3, 1, false, false}, {{2}, 1, 1, true, false},
    };
    static const rondo__pass_options nhwc = {.channels_last = true, .fuse_convolution = true};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        rondo_program *source = build(&rows[i]), *program;
        rondo_tensor x, expected = {0}, found = {0};
        const rondo_shape shape = {4, {2, CHANNELS, 5, 6}};
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &x));
        for (int64_t e = 0; e < rondo_shape_get_count(&shape); ++e) {
            ((float *)x.data)[e] = (float)((e * 5 + e / 13) % 19) / 9.0f - 1.0f;
        }
        rondo_tensor shape_only = x;
        shape_only.data = NULL;
        shape_only.storage = NULL;
        OK(rondo__program_specialise(source, &shape_only, 1 << 20, &program, NULL));
        OK(interpret_program(program, &x, &expected));
        OK(rondo__program_optimise(program, &nhwc));
        OK(interpret_program(program, &x, &found));
        const size_t averages = interpret_count(program, RONDO__FUSED_GlobalAveragePool);
        const double difference = compare_tensors(&found, &expected);
        if (averages != (rows[i].is_average ? 1 : 0) || !(difference <= 1e-5)) {
            fail_msg("row %zu: %zu averages, difference %g", i, averages, difference);
        }
        rondo_tensor_deinit(&x);
        rondo_tensor_deinit(&expected);
        rondo_tensor_deinit(&found);
        rondo_program_destroy(program);
        rondo_program_destroy(source);
    }
}

TEST_MAIN()
