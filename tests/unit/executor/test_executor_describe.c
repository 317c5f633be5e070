// Descriptions of plans: for which shapes, with which types, and what bodies hold.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/builder.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/short_forms.h"
#include "support/source_dir.h"
#include "support/test.h"

typedef struct fixture {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    char text[65536];
    size_t length;
} fixture;

static void open_model(const char *path, fixture *f) {
    char full[512];
    memset(f, 0, sizeof *f);
    (void)snprintf(full, sizeof full, "%s/%s", get_source_dir(), path);
    assert_int_equal(rondo_device_open("host", &f->device), RONDO_STATUS_OK);
    assert_int_equal(rondo_program_load_onnx(full, &f->program), RONDO_STATUS_OK);
    assert_int_equal(rondo_executor_create(f->program, f->device, NULL, &f->executor),
                     RONDO_STATUS_OK);
}

static void close_model(fixture *f) {
    rondo_executor_destroy(f->executor);
    rondo_program_destroy(f->program);
    rondo_device_release(f->device);
}

static bool keep(void *user_data, const char *text, size_t bytes) {
    fixture *f = user_data;
    assert_true(bytes < sizeof f->text);
    memcpy(f->text, text, bytes);
    f->text[bytes] = '\0';
    f->length = bytes;
    return true;
}

static void expect_text(const fixture *f, const char *part) {
    if (strstr(f->text, part) == NULL) {
        print_error("no \"%s\" in:\n%s", part, f->text);
    }
    assert_non_null(strstr(f->text, part));
}

TEST(test_executor_describe__shapes_of_feeds) {
    fixture f;
    open_model("tests/cli/models/add_relu.onnx", &f);
    assert_int_equal(rondo_executor_describe(f.executor, RONDO_TEXT_PLAIN, keep, &f),
                     RONDO_STATUS_OK);
    expect_text(&f, "f32 [batch=1, 3]\n");
    expect_text(&f, "1 op in 1 segment, 0 bypassed\n");
    // Without data: zeros of that shape; with data: borrowed.
    float ones[15] = {1.0f};
    rondo_binding feeds[2] = {
        {.name = "x", .tensor = {.dtype = RONDO_DTYPE_F32, .shape = {.rank = 2, .extent = {5, 3}}}},
        BIND("y", RONDO_DTYPE_F32, ones, 5, 3)};
    assert_int_equal(
        rondo_executor_describe_feeds(f.executor, feeds, 2, RONDO_TEXT_PLAIN, keep, &f),
        RONDO_STATUS_OK);
    expect_text(&f, "f32 [batch=5, 3]\n");
    expect_text(&f, "clip                             f32 [5, 3]\n");
    feeds[0].name = "nobody";
    assert_int_equal(
        rondo_executor_describe_feeds(f.executor, feeds, 2, RONDO_TEXT_PLAIN, keep, &f),
        RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "no input \"nobody\""));
    feeds[0].name = "y";
    assert_int_equal(
        rondo_executor_describe_feeds(f.executor, feeds, 2, RONDO_TEXT_PLAIN, keep, &f),
        RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "fed twice"));
    close_model(&f);
}

// An output has its name also where what copied it is gone, or where it is an input.
TEST(test_executor_describe__names_of_outputs) {
    static const char *const ends[] = {"r", "x"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; ++i) {
        fixture f = {0};
        rondo_builder *builder;
        OK(rondo_builder_create(NULL, &builder));
        OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 4)));
        OK(rondo_builder_add_node(builder, "Relu", (const char *[]){"x"}, 1, (const char *[]){"r"},
                                  1, NULL));
        OK(rondo_builder_add_node(builder, "Identity", &ends[i], 1, (const char *[]){"label"}, 1,
                                  NULL));
        OK(rondo_builder_add_output(builder, "label", NULL));
        f.program = build_finish(builder);
        OK(rondo_device_open("host", &f.device));
        OK(rondo_executor_create(f.program, f.device, NULL, &f.executor));
        OK(rondo_executor_describe(f.executor, RONDO_TEXT_PLAIN, keep, &f));
        expect_text(&f, "outputs\n  label                    f32 [4]\n");
        OK(rondo_executor_describe(f.executor, RONDO_TEXT_JSON, keep, &f));
        expect_text(&f, "\"outputs\": [{\"name\": \"label\", ");
        close_model(&f);
    }
}

TEST(test_executor_describe__bodies) {
    fixture f;
    open_model("tests/models/branch_and_loop/model.onnx", &f);
    assert_int_equal(rondo_executor_describe(f.executor, RONDO_TEXT_PLAIN, keep, &f),
                     RONDO_STATUS_OK);
    expect_text(&f, "device host, 6 ops in 1 segment, 0 bypassed\n");
    expect_text(&f, "  If                   control    /If ");
    expect_text(&f, "/If                              bool []");
    expect_text(&f, "/Loop                            f32 [3, 16] i64 []");
    expect_text(&f, "    then_branch: 3 ops in 1 segment, 0 bypassed\n");
    expect_text(&f, "        ReduceMax            simd       /ReduceMax ");
    // A body in a body, and one whose shapes come out of the loop.
    expect_text(&f, "          then_branch: 3 ops in 1 segment, 0 bypassed\n");
    expect_text(&f, "    else_branch: 0 ops in 0 segments, 0 bypassed\n");
    expect_text(&f,
                "    then_branch: 1 op in 1 segment, 0 bypassed\n"
                "      segment 0: 1 op, captured; ends with the model\n"
                "        Mul                  simd       /Mul_1 ");
    assert_null(strstr(f.text, "none"));
    assert_int_equal(rondo_executor_describe(f.executor, RONDO_TEXT_JSON, keep, &f),
                     RONDO_STATUS_OK);
    expect_text(&f, "\"bodies\": [\n      {\"name\": \"then_branch\", \"plan\": {");
    // The plans made ahead are those that run.
    rondo_shape shape = {.rank = 2, .extent = {3, 16}};
    rondo_binding feeds[2] = {{.name = "x"}, {.name = "steps"}};
    assert_int_equal(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &feeds[0].tensor), RONDO_STATUS_OK);
    shape = (rondo_shape){0};
    assert_int_equal(rondo_tensor_init(RONDO_DTYPE_I64, &shape, &feeds[1].tensor), RONDO_STATUS_OK);
    assert_int_equal(rondo_executor_run(f.executor, feeds, 2, NULL, 0), RONDO_STATUS_OK);
    rondo_tensor_deinit(&feeds[0].tensor);
    rondo_tensor_deinit(&feeds[1].tensor);
    close_model(&f);
}

// Segments with their ops, what is bypassed with its reason, bodies inside; names are only text.
TEST(test_executor_describe__picture) {
    fixture f;
    open_model("tests/models/branch_and_loop/model.onnx", &f);
    assert_int_equal(rondo_executor_describe(f.executor, RONDO_TEXT_SVG, keep, &f),
                     RONDO_STATUS_OK);
    expect_text(&f, "device host: 6 ops in 1 segment, 0 bypassed</text>");
    expect_text(&f, "segment 0: 6 ops, captured</text>");
    expect_text(&f, "Loop</tspan> <tspan class=\"rp-note\">/Loop</tspan>");
    expect_text(&f, "body of /Loop</text>");
    expect_text(&f, "else_branch of /If: no ops</text>");
    close_model(&f);

    open_model("tests/models/columns_and_classes/model.onnx", &f);
    assert_int_equal(rondo_executor_describe(f.executor, RONDO_TEXT_SVG, keep, &f),
                     RONDO_STATUS_OK);
    expect_text(&f, "class=\"rp-bypass\"");
    expect_text(&f, "cut: OneHotEncoder &#34;OneHotEncoder_4&#34;: strings and");
    close_model(&f);

    open_model("tests/cli/models/markup_names.onnx", &f);
    assert_int_equal(rondo_executor_describe(f.executor, RONDO_TEXT_SVG, keep, &f),
                     RONDO_STATUS_OK);
    expect_text(&f, "Relu &#60;/script&#62;&#60;script&#62;");
    expect_text(&f, "&#34; onload=&#34;");
    assert_null(strstr(f.text, "<script"));
    assert_null(strstr(f.text, "]]>"));
    close_model(&f);
}

TEST_MAIN()
