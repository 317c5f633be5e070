// Strings, sequences and optionals at the borders of an executor: who owns them, that one plan
// serves sequences of any length, and wrong feeds and fetches.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/source_dir.h"
#include "support/test.h"

enum { WORDS, LIST, MAYBE, FEED_COUNT };
enum { SCORES, SHOUTED, GROWN, NEGATED, TEXTS, PICKED, WRAPPED, FETCH_COUNT };

typedef struct bench {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    rondo_binding feeds[FEED_COUNT];
    rondo_binding fetches[FETCH_COUNT];
    rondo_string words[2];
    rondo_tensor items[3];
} bench;

static int set_up(void **state) {
    static const char *const feeds[] = {"words", "list", "maybe"};
    static const char *const fetches[] = {"scores", "shouted", "grown",  "negated",
                                          "texts",  "picked",  "wrapped"};
    static const float numbers[] = {1.0f, -2.0f, 3.0f};
    char path[512];
    bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    (void)snprintf(path, sizeof path, "%s/tests/models/words_and_lists/model.onnx",
                   get_source_dir());
    OK(rondo_device_open("host", &b->device));
    OK(rondo_program_load_onnx(path, &b->program));
    OK(rondo_executor_create(b->program, b->device, NULL, &b->executor));
    for (size_t i = 0; i < FEED_COUNT; ++i) {
        b->feeds[i].name = feeds[i];
    }
    for (size_t i = 0; i < FETCH_COUNT; ++i) {
        b->fetches[i].name = fetches[i];
    }
    b->words[0] = (rondo_string){"red", 3};
    b->words[1] = (rondo_string){"blue", 4};
    // The caller's own array of strings: nothing is copied to feed it.
    b->feeds[WORDS].tensor = (rondo_tensor){
        .dtype = RONDO_DTYPE_STRING, .shape = {.rank = 1, .extent = {2}}, .data = b->words};
    for (size_t i = 0; i < 3; ++i) {
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &(rondo_shape){.rank = 1, .extent = {1}},
                             &b->items[i]));
        *(float *)b->items[i].data = numbers[i];
    }
    OK(rondo_tensor_init_sequence(b->items, 2, &b->feeds[LIST].tensor));
    OK(rondo_tensor_init_optional(NULL, &b->feeds[MAYBE].tensor));
    *state = b;
    return 0;
}

static void drop_fetches(bench *b) {
    for (size_t i = 0; i < FETCH_COUNT; ++i) {
        rondo_tensor_deinit(&b->fetches[i].tensor);
    }
}

static int tear_down(void **state) {
    bench *b = *state;
    drop_fetches(b);
    for (size_t i = 0; i < FEED_COUNT; ++i) {
        rondo_tensor_deinit(&b->feeds[i].tensor);
    }
    for (size_t i = 0; i < 3; ++i) {
        rondo_tensor_deinit(&b->items[i]);
    }
    rondo_executor_destroy(b->executor);
    rondo_program_destroy(b->program);
    rondo_device_release(b->device);
    free(b);
    return 0;
}

static void run(bench *b) {
    drop_fetches(b);
    OK(rondo_executor_run(b->executor, b->feeds, FEED_COUNT, b->fetches, FETCH_COUNT));
}

static const rondo_string *get_string(const bench *b, size_t fetch, size_t index) {
    return (const rondo_string *)b->fetches[fetch].tensor.data + index;
}

TEST(test_executor_objects__belong_to_who_fetched_them) {
    bench *b = *state;
    run(b);
    assert_string_equal(get_string(b, SHOUTED, 0)->data, "RED!");
    // Outputs may be written, fed memory may change: neither is seen by the executor.
    *(rondo_string *)b->fetches[SHOUTED].tensor.data = (rondo_string){"gone", 4};
    const rondo_tensor *grown = rondo_tensor_get_item(&b->fetches[GROWN].tensor, 0);
    *(float *)grown->data = 99.0f;
    b->words[0] = (rondo_string){"green", 5};
    *(float *)b->items[0].data = 50.0f;
    OK(rondo_executor_rerun(b->executor));
    b->words[0] = (rondo_string){"red", 3};
    *(float *)b->items[0].data = 1.0f;
    run(b);
    assert_string_equal(get_string(b, SHOUTED, 0)->data, "RED!");
    assert_true(*(const float *)rondo_tensor_get_item(&b->fetches[GROWN].tensor, 0)->data == 2.0f);
    assert_true(((const float *)b->fetches[SCORES].tensor.data)[1] == 0.5f);
    // They outlive the executor and the program.
    rondo_executor_destroy(b->executor);
    b->executor = NULL;
    assert_string_equal(get_string(b, TEXTS, 1)->data, "-4");
    assert_int_equal(rondo_tensor_get_item(&b->fetches[WRAPPED].tensor, 0)->shape.extent[0], 2);
}

TEST(test_executor_objects__the_executor_keeps_its_program) {
    bench *b = *state;
    rondo_program_destroy(b->program);
    b->program = NULL;
    run(b);
    assert_string_equal(get_string(b, SHOUTED, 0)->data, "RED!");
}

TEST(test_executor_objects__one_plan_serves_sequences_of_any_length) {
    bench *b = *state;
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    for (size_t count = 1; count <= 3; ++count) {
        rondo_tensor_deinit(&b->feeds[LIST].tensor);
        OK(rondo_tensor_init_sequence(b->items, count, &b->feeds[LIST].tensor));
        rondo_tensor_deinit(&b->feeds[MAYBE].tensor);
        OK(rondo_tensor_init_optional(count == 2 ? &b->items[2] : NULL, &b->feeds[MAYBE].tensor));
        run(b);
        assert_int_equal(b->fetches[GROWN].tensor.shape.extent[0], count);
        assert_true(*(const float *)b->fetches[PICKED].tensor.data == (count == 2 ? 5.0f : 2.0f));
    }
    OK(rondo_executor_get_stats(b->executor, &stats));
    assert_int_equal(stats.plan_count, 1);
}

static void expect_refusal(bench *b, const char *part) {
    drop_fetches(b);
    rondo_status status =
        rondo_executor_run(b->executor, b->feeds, FEED_COUNT, b->fetches, FETCH_COUNT);
    if (status != RONDO_STATUS_INVALID || strstr(rondo_error_get_last()->message, part) == NULL) {
        fail_msg("%s \"%s\", expected \"%s\"", rondo_status_get_name(status),
                 rondo_error_get_last()->message, part);
    }
    assert_null(b->fetches[SCORES].tensor.data);
}

TEST(test_executor_objects__wrong_feeds_are_told_in_full) {
    bench *b = *state;
    rondo_tensor whole;
    rondo_tensor wrong;
    rondo_tensor right = b->feeds[LIST].tensor;
    b->feeds[LIST].tensor = b->items[0];
    expect_refusal(b, "feed \"list\" is f32, the model takes sequence");
    OK(rondo_tensor_init(RONDO_DTYPE_I64, &(rondo_shape){.rank = 1, .extent = {1}}, &whole));
    OK(rondo_tensor_init_sequence(&whole, 1, &wrong));
    b->feeds[LIST].tensor = wrong;
    expect_refusal(b, "feed \"list\" holds i64, the model takes f32");
    b->feeds[LIST].tensor.shape = (rondo_shape){.rank = 2, .extent = {1, 1}};
    expect_refusal(b, "no valid sequence; make it with rondo_tensor_init_sequence");
    ((rondo_tensor *)wrong.data)->data = NULL;
    b->feeds[LIST].tensor = wrong;
    expect_refusal(b, "feed \"list\": its data is NULL");
    rondo_tensor_deinit(&wrong);
    rondo_tensor_deinit(&whole);
    b->feeds[LIST].tensor = right;
    b->words[1] = (rondo_string){NULL, 4};
    expect_refusal(b, "feed \"words\": string 1 has 4 bytes, but no address");
    b->words[1] = (rondo_string){"blue", 4};
    // Who fetches strings into memory of its own is told why that cannot be.
    b->fetches[SHOUTED].tensor = b->feeds[WORDS].tensor;
    rondo_status status =
        rondo_executor_run(b->executor, b->feeds, FEED_COUNT, b->fetches, FETCH_COUNT);
    assert_int_equal(status, RONDO_STATUS_INVALID);
    assert_non_null(
        strstr(rondo_error_get_last()->message, "fetch \"shouted\": a string is always allocated"));
    b->fetches[SHOUTED].tensor = (rondo_tensor){0};
    run(b);  // and nothing was lost
    assert_string_equal(get_string(b, SHOUTED, 1)->data, "BLUE!");
}

TEST(test_executor_objects__fetches_of_an_earlier_run_are_replaced) {
    bench *b = *state;
    run(b);
    const void *former = b->fetches[SHOUTED].tensor.storage;
    b->words[1] = (rondo_string){"green", 5};
    OK(rondo_executor_run(b->executor, b->feeds, FEED_COUNT, b->fetches, FETCH_COUNT));
    assert_string_equal(get_string(b, SHOUTED, 1)->data, "GREEN!");
    assert_ptr_not_equal(b->fetches[SHOUTED].tensor.storage, former);
}

// Half precision leaves what strings and sequences hold in f32, and the search for lost precision
// looks into them.
TEST(test_executor_objects__keep_f32_in_half_precision) {
    bench *b = *state;
    rondo_executor_options options = {.struct_size = sizeof options};
    rondo_precision_loss loss = {.struct_size = sizeof loss};
    rondo_device *device;
    options.dtype = RONDO_DTYPE_F16;
    OK(rondo_device_open("host", &device));
    OK(rondo_executor_find_loss(b->program, device, &options, b->feeds, FEED_COUNT, 0.01, &loss));
    rondo_device_release(device);
    assert_false(loss.is_found);
    assert_true(loss.compared_count > FETCH_COUNT);
    assert_true(loss.output_error < 1e-3);
}

TEST_MAIN_WITH(set_up, tear_down)
