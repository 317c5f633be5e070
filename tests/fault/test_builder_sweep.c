// Each allocation of building, printing and saving a program fails once, in turn: a clear error, no
// leak, no half-made program, no half-written file.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "rondo/onnx.h"
#include "support/models/code_programs.h"
#include "support/short_forms.h"
#include "support/sweep.h"
#include "support/text_sink.h"

static const char path[] = "/tmp/rondo-builder-sweep.onnx";

static rondo_status build_print_save(const code_program *row, const char *file) {
    rondo_program *program = NULL;
    rondo_status status = code_program_build(row, &program);
    if (status == RONDO_STATUS_OK) {
        status = rondo_program_describe(program, RONDO_TEXT_JSON, text_sink_ignore, NULL);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_program_save_onnx(program, file);
    }
    rondo_program_destroy(program);
    return status;
}

TEST(test_builder_sweep__every_allocation_fails_once) {
    char file[128];
    (void)snprintf(file, sizeof file, "%s.%d", path, (int)getpid());
    for (const code_program *row = code_programs; row->name != NULL; ++row) {
        OK(build_print_save(row, file));
        assert_int_equal(remove(file), 0);
        size_t points = 0;
        for (bool has_failed = true; has_failed;) {
            const uint64_t sequence = rondo_error_get_last()->sequence;
            sweep_fail_allocation(points, false);
            const int64_t balance = rondo__memory_get_balance();
            const rondo_status status = build_print_save(row, file);
            assert_int_equal(rondo__memory_get_balance(), balance);
            has_failed = sweep_end_allocations();
            assert_int_equal(remove(file) == 0, status == RONDO_STATUS_OK);
            // The examples by which types are inferred may fail without harm, but not for memory.
            (void)sweep_step(status, sequence, "build_print_save");
            assert_int_equal(status, has_failed ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK);
            points += has_failed;
        }
        print_message("%s: %zu allocations failed in turn\n", row->name, points);
        assert_true(points > 50);
    }
}

// A call that failed leaves the builder as it was: the same call then does its work.
TEST(test_builder_sweep__a_failed_call_can_be_made_again) {
    for (const code_program *row = code_programs; row->name != NULL; ++row) {
        for (size_t n = 0;; ++n) {
            rondo_builder *builder = NULL;
            rondo_program *program = NULL;
            OK(rondo_builder_create(NULL, &builder));
            OK(row->fill(builder));
            sweep_fail_allocation(n, false);
            const rondo_status status = rondo_builder_finish(builder, &program);
            const bool has_failed = sweep_end_allocations();
            if (status != RONDO_STATUS_OK) {
                OK(rondo_builder_finish(builder, &program));
            }
            rondo_program_destroy(program);
            rondo_builder_destroy(builder);
            if (!has_failed) {
                break;
            }
        }
    }
}

TEST(test_builder_sweep__groups_of_nodes_are_made_whole_or_not) {
    for (size_t n = 0;; ++n) {
        rondo_builder *builder = NULL;
        rondo_program *program = NULL;
        OK(rondo_builder_create(NULL, &builder));
        OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F16, 2, 3)));
        sweep_fail_allocation(n, false);
        const rondo_status status = rondo_builder_add_l2_normalize(builder, "x", 1, 0.5f, "y");
        const bool has_failed = sweep_end_allocations();
        assert_int_equal(status, has_failed ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK);
        if (has_failed) {
            OK(rondo_builder_add_l2_normalize(builder, "x", 1, 0.5f, "y"));
        }
        OK(rondo_builder_add_output(builder, "y", NULL));
        OK(rondo_builder_finish(builder, &program));
        assert_int_equal(rondo_program_get_node_count(program), 6);
        rondo_program_destroy(program);
        rondo_builder_destroy(builder);
        if (!has_failed) {
            break;
        }
    }
}

TEST_MAIN()
