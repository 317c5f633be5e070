// Fail the nth for the passes of a GPU's plan: every allocation while a transformer is specialised,
// simplified, joined and fused fails once, in turn. The failing pass says so, nothing stays behind,
// and the program that it began with can be taken again.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "program/half/half_pass.h"
#include "program/passes/passes.h"
#include "program/shapes/specialise.h"
#include "rondo/onnx.h"
#include "support/source_dir.h"
#include "support/sweep.h"

enum { INPUTS_MAX = 8 };

static const rondo__pass_options all = {.channels_last = true,
                                        .fuse_bytes = true,
                                        .split_transposed = true,
                                        .widen_images = true,
                                        .fuse_convolution = true,
                                        .fuse_matmul = true,
                                        .turn_products = true,
                                        .fuse_attention = true,
                                        .fuse_group_norm = true,
                                        .fuse_concat = true,
                                        .fuse_elementwise = true,
                                        .fuse_norm = true,
                                        .fuse_rows = true,
                                        .fuse_few_rows = true,
                                        .append_attention = true,
                                        .end_batches = true,
                                        .lay_filters = true,
                                        .add_shortcuts = true};

static rondo_status run_passes(const rondo_program *source, const rondo_tensor *shapes,
                               bool is_half) {
    rondo_program *program = NULL;
    rondo_status status = rondo__program_specialise(source, shapes, 1 << 20, &program, NULL);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    status = rondo__program_simplify(program);
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_clear_denormals(program);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_join_products(program);
    }
    if (status == RONDO_STATUS_OK && is_half) {
        status = rondo__program_name_norms(program, true);
    }
    if (status == RONDO_STATUS_OK && is_half) {
        rondo__half_report report;
        status = rondo__pass_half(program, NULL, &report);
        rondo__half_report_deinit(&report);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_optimise(program, &all);
        assert_true(status != RONDO_STATUS_OK || program->node_count > 3);
    }
    rondo_program_destroy(program);
    return status;
}

static void sweep_model(const char *folder, bool is_half) {
    char path[512];
    rondo_program *source;
    rondo_tensor inputs[INPUTS_MAX] = {{0}}, shapes[INPUTS_MAX] = {{0}};
    (void)snprintf(path, sizeof path, "%s/%s/model.onnx", get_source_dir(), folder);
    OK(rondo_program_load_onnx(path, &source));
    const size_t input_count = rondo_program_get_input_count(source);
    assert_true(input_count <= INPUTS_MAX);
    for (size_t i = 0; i < input_count; ++i) {
        (void)snprintf(path, sizeof path, "%s/%s/test_data_set_0/input_%zu.pb", get_source_dir(),
                       folder, i);
        OK(rondo_tensor_load_onnx(path, &inputs[i]));
        shapes[i] = inputs[i];
        shapes[i].data = NULL;  // a known value would be computed with, and leave nothing to fuse
        shapes[i].storage = NULL;
    }
    size_t points = sweep_get_first();
    for (bool has_failed = true; has_failed; points += sweep_get_every()) {
        const uint64_t sequence = rondo_error_get_last()->sequence;
        sweep_fail_allocation(points, false);
        const rondo_status status = run_passes(source, shapes, is_half);
        has_failed = sweep_end_allocations();
        assert_int_equal(status, has_failed ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK);
        assert_true(!has_failed || rondo_error_get_last()->sequence > sequence);
    }
    print_message("%s: %zu allocations, each %zu. of them\n", folder, points, sweep_get_every());
    assert_true(points > 300);
    for (size_t i = 0; i < input_count; ++i) {
        rondo_tensor_deinit(&inputs[i]);
    }
    rondo_program_destroy(source);
}

TEST(test_fuse_sweep__vit) {
    sweep_model("tests/models/vit_mini", false);
}

TEST(test_fuse_sweep__convnext) {
    sweep_model("tests/models/convnext_mini", true);
}

TEST(test_fuse_sweep__unet) {
    sweep_model("tests/models/unet_mini", true);
}

TEST(test_fuse_sweep__bert) {
    sweep_model("tests/models/bert_mini", false);
}

TEST(test_fuse_sweep__shortcut) {
    sweep_model("tests/models/shortcut_mini", true);
}

TEST(test_fuse_sweep__swin) {
    sweep_model("tests/models/swin_mini", true);
}

TEST(test_fuse_sweep__gpt2) {
    sweep_model("tests/models/gpt2_mini", true);
}

// Caches that a step appends to, products of one row.
TEST(test_fuse_sweep__decode) {
    sweep_model("tests/models/decode_unread_caches", true);
}

// Products of bytes.
TEST(test_fuse_sweep__narrow) {
    sweep_model("tests/models/narrow_mini", false);
}

TEST_MAIN()
