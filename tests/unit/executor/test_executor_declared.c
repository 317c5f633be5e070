// What a model declares against what it is fed and what it gives.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/text.h"
#include "support/models/model_fixture.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/text_sink.h"

enum { FLOAT = 1, INT64 = 7 };

static char warning[256];
static int warning_count;

static void keep_warning(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)level;
    warning_count += 1;
    snprintf(warning, sizeof warning, "%s", message);
}

static void fixture_init(model_fixture *f, const char *op, int32_t in_type, const char *in_shape,
                         int32_t out_type, const char *out_shape) {
    model_fixture_init(f);
    Onnx__GraphProto *graph = f->builder.graph;
    model_builder_add_input(&f->builder, graph, "x", in_type, in_shape);
    model_builder_add_node(&f->builder, graph, op, "made", "x", "y");
    model_builder_add_output(&f->builder, graph, "y", out_type, out_shape);
}

static float values[64] = {1, 0, 2, 3, 0, 4};

static rondo_status run(model_fixture *f, int64_t rows, int64_t columns) {
    rondo_binding feed = BIND("x", RONDO_DTYPE_F32, values, rows, columns);
    rondo_binding fetch = {.name = "y"};
    rondo_status status = rondo_executor_run(f->executor, &feed, 1, &fetch, 1);
    rondo_tensor_deinit(&fetch.tensor);
    return status;
}

TEST(test_executor_declared__results_against_declarations) {
    static const struct {
        const char *op;
        const char *in_shape;
        int32_t out_type;
        const char *out_shape;
        rondo_status status;  // of a run with [2, 3]
        const char *message;  // of the error, or of the warning
    } rows[] = {
        {"Relu", "2 3", FLOAT, "2 3", RONDO_STATUS_OK, ""},
        {"Relu", "a b", FLOAT, "a b", RONDO_STATUS_OK, ""},
        {"Relu", "2 3", FLOAT, NULL, RONDO_STATUS_OK, ""},
        {"Relu", "2 3", FLOAT, "-1 3", RONDO_STATUS_OK, ""},
        {"Relu", "2 3", FLOAT, "? ?", RONDO_STATUS_OK, ""},
        {"Relu", "? ?", FLOAT, "? ?", RONDO_STATUS_OK, ""},
        {"Relu", "-1 -7", FLOAT, "None None", RONDO_STATUS_OK, ""},
        {"Relu", "2 3", INT64, "2 3", RONDO_STATUS_BAD_DATA,
         "output \"y\" is declared i64, the result is f32"},
        {"Relu", "2 3", FLOAT, "2 4", RONDO_STATUS_OK,
         "output \"y\" is declared [2, 4], the result is [2, 3]; the result counts"},
        {"Relu", "a b", FLOAT, "a 4", RONDO_STATUS_OK,
         "output \"y\" is declared [a, 4], the result is [2, 3]; the result counts"},
        {"Shape", "a b", FLOAT, "2", RONDO_STATUS_BAD_DATA,
         "output \"y\" is declared f32, the result is i64"},
        {"Relu", "2 3", FLOAT, "6", RONDO_STATUS_OK,
         "output \"y\" is declared [6], the result is [2, 3]; the result counts"},
        {"Transpose", "a b", FLOAT, "a b", RONDO_STATUS_OK,
         "dimension \"a\" is 2 in \"x\" and 3 in output \"y\""},
        // What only the run tells.
        {"NonZero", "a b", INT64, "2 n", RONDO_STATUS_OK, ""},
        {"NonZero", "a b", INT64, "2 9", RONDO_STATUS_OK,
         "output \"y\" is declared [2, 9], the result is [2, 4]"},
        {"NonZero", "a b", FLOAT, "2 n", RONDO_STATUS_BAD_DATA,
         "output \"y\" is declared f32, the result is i64"},
        {"NonZero", "a b", INT64, "n", RONDO_STATUS_OK, "is declared [n], the result is [2, 4]"},
    };
    rondo_log_set_sink(keep_warning, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        model_fixture f;
        fixture_init(&f, rows[i].op, FLOAT, rows[i].in_shape, rows[i].out_type, rows[i].out_shape);
        model_fixture_load(&f);
        warning[0] = '\0';
        warning_count = 0;
        for (int attempt = 0; attempt < 3; ++attempt) {
            assert_int_equal(run(&f, 2, 3), rows[i].status);
        }
        const char *message =
            rows[i].status == RONDO_STATUS_OK ? warning : rondo_error_get_last()->message;
        if (strstr(message, rows[i].message) == NULL) {
            fail_msg("%s %s: \"%s\" lacks \"%s\"", rows[i].op,
                     rows[i].out_shape != NULL ? rows[i].out_shape : "", message, rows[i].message);
        }
        // A warning comes once for an executor.
        assert_int_equal(warning_count,
                         rows[i].status == RONDO_STATUS_OK && rows[i].message[0] != '\0' ? 1 : 0);
        model_fixture_deinit(&f);
    }
    rondo_log_set_sink(NULL, NULL);
}

TEST(test_executor_declared__a_description_tells_the_same) {
    model_fixture f;
    fixture_init(&f, "Relu", FLOAT, "2 3", INT64, "2 3");
    model_fixture_load(&f);
    assert_int_equal(rondo_executor_describe(f.executor, RONDO_TEXT_PLAIN, text_sink_ignore, NULL),
                     RONDO_STATUS_BAD_DATA);
    assert_non_null(strstr(rondo_error_get_last()->message, "declared i64, the result is f32"));
    model_fixture_deinit(&f);
}

TEST(test_executor_declared__a_symbol_is_one_number) {
    model_fixture f;
    fixture_init(&f, "Relu", FLOAT, "n n", FLOAT, "n n");
    model_builder_add_input(&f.builder, f.builder.graph, "z", FLOAT, "m n");
    model_fixture_load(&f);
    static const struct {
        int64_t x[2];
        int64_t z[2];
        const char *message;  // NULL: fine
    } rows[] = {
        {{3, 3}, {5, 3}, NULL},
        {{4, 4}, {1, 4}, NULL},
        {{5, 3}, {5, 5}, "dimension \"n\" is 5 in feed \"x\" and 3 in feed \"x\""},
        {{5, 5}, {5, 3}, "dimension \"n\" is 5 in feed \"x\" and 3 in feed \"z\""},
        {{2, 2}, {7, 2}, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        rondo_binding feeds[2] = {{.name = "x"}, {.name = "z"}};
        for (int k = 0; k < 2; ++k) {
            const int64_t *extent = k == 0 ? rows[i].x : rows[i].z;
            feeds[k].tensor = (rondo_tensor){.dtype = RONDO_DTYPE_F32,
                                             .shape = {.rank = 2, .extent = {extent[0], extent[1]}},
                                             .data = values};
        }
        const rondo_status status = rondo_executor_run(f.executor, feeds, 2, NULL, 0);
        if (rows[i].message == NULL) {
            OK(status);
            continue;
        }
        assert_int_equal(status, RONDO_STATUS_INVALID);
        assert_non_null(strstr(rondo_error_get_last()->message, rows[i].message));
    }
    model_fixture_deinit(&f);
}

// ONNX Runtime takes such models, too.
TEST(test_executor_declared__an_output_may_be_listed_twice) {
    model_fixture f;
    fixture_init(&f, "Relu", FLOAT, "2 3", FLOAT, "2 3");
    model_builder_add_output(&f.builder, f.builder.graph, "y", FLOAT, "2 3");
    model_fixture_load(&f);
    assert_int_equal(rondo_program_get_output_count(f.program), 2);
    OK(rondo_executor_describe(f.executor, RONDO_TEXT_PLAIN, text_sink_ignore, NULL));
    for (int round = 0; round < 3; ++round) {
        rondo_binding feed = BIND("x", RONDO_DTYPE_F32, values, 2, 3);
        rondo_binding fetches[3] = {{.name = "y"}, {.name = "y"}, {.name = "y"}};
        assert_int_equal(rondo_executor_run(f.executor, &feed, 1, fetches, 3),
                         RONDO_STATUS_INVALID);
        assert_non_null(strstr(rondo_error_get_last()->message, "fetched twice"));
        for (size_t count = 1; count <= 2; ++count) {
            OK(rondo_executor_run(f.executor, &feed, 1, fetches, count));
            for (size_t i = 0; i < count; ++i) {
                assert_memory_equal(fetches[i].tensor.data, values, 6 * sizeof(float));
                rondo_tensor_deinit(&fetches[i].tensor);
            }
        }
    }
    model_fixture_deinit(&f);
}

TEST_MAIN()
