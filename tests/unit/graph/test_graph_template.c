// Templates as objects: the walk, ids, hashes and differences, on the host and on the fake driver.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "device/device.h"
#include "graph/graph_object.h"
#include "graph/template.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/test.h"

static rondo_device *g_device;
static rondo_stream *g_stream;
static rondo_stream *g_side;
static rondo_event *g_events[2];
static uint32_t *g_x;
static void *g_function;  // of a kernel

typedef struct arguments {
    uint32_t *x;
    uint64_t count;
} arguments;

static bool g_is_fake;

// On CUDA a kernel that sets the condition stands before a conditional node, so that indices behind
// it are one more. In `text` they stand as "#1".
static const char *renumber(const char *text) {
    static char renumbered[256];
    size_t length = 0;
    for (; *text != '\0' && length + 1 < sizeof renumbered; ++text) {
        bool is_shifted = text[0] == '#';
        text += is_shifted;
        renumbered[length++] = (char)(*text + (is_shifted && g_is_fake));
    }
    renumbered[length] = '\0';
    return renumbered;
}

static void run_kernel(void *data) {
    (void)data;
}

static void run_fake_kernel(const void *data, size_t bytes) {
    (void)data;
    (void)bytes;
}

static void set_up(bool is_fake) {
    g_is_fake = is_fake;
    union {
        rondo_host_function function;
        void *address;
    } kernel = {.function = run_kernel};
    g_function = kernel.address;
    if (is_fake) {
        fake_cuda_reset(NULL);
        fake_cuda_install();
        fake_cuda_install_compiler();
        fake_cuda_set_kernel("scale", run_fake_kernel);
    }
    OK(rondo_device_open(is_fake ? "cuda:0" : "host", &g_device));
    if (is_fake) {
        OK(rondo__device_get_function(g_device, "", NULL, 0, "scale", &g_function));
    }
    OK(rondo_stream_create(g_device, NULL, &g_stream));
    OK(rondo_stream_create(g_device, NULL, &g_side));
    OK(rondo_event_create(g_device, 0, &g_events[0]));
    OK(rondo_event_create(g_device, 0, &g_events[1]));
    OK(rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, 256, (void **)&g_x));
}

static void tear_down(bool is_fake) {
    rondo_memory_free(g_device, g_x);
    rondo_event_destroy(g_events[1]);
    rondo_event_destroy(g_events[0]);
    rondo_stream_destroy(g_side);
    rondo_stream_destroy(g_stream);
    rondo_device_release(g_device);
    if (is_fake) {
        assert_int_equal(fake_cuda_count_objects(), 0);
        assert_string_equal(fake_cuda_get_violations(), "");
        fake_cuda_uninstall();
    }
}

// How a step differs from the plain one.
typedef struct step {
    uint32_t wider;  // threads in a block
    uint32_t shared_bytes;
    uint64_t count;       // added to an argument of the kernel
    size_t offset;        // of the kernel's memory
    uint32_t fill;        // added to the value in the body
    bool copies_in_body;  // in place of the fill
    size_t shorter;       // bytes of the copy
    uint32_t extra;       // fills behind everything
    bool is_in_a_row;     // nothing is forked
} step;

static const step plain;

static void launch(rondo_stream *stream, const step *s) {
    arguments packed = {g_x + s->offset, 7 + s->count};
    rondo_launch wanted = {.struct_size = sizeof wanted,
                           .function = g_function,
                           .name = "scale",
                           .grid = {2, 1, 1},
                           .block = {64 + s->wider, 1, 1},
                           .shared_bytes = s->shared_bytes,
                           .arguments = &packed,
                           .argument_bytes = sizeof packed};
    OK(rondo_stream_launch(stream, &wanted));
}

// 0 kernel "layer", 1 conditional "layer" with 2 "layer/body", 3 fill, 4 copy on the fork, 5 join
static rondo_graph *capture(const step *s) {
    rondo_graph_options options = {.struct_size = sizeof options};
    options.keep = RONDO_KEEP_TEMPLATE_ONLY;
    rondo_graph *graph;
    rondo_scope scope;
    rondo_stream *body;
    OK(rondo_graph_create(g_device, &options, &graph));
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_label_push(g_stream, "layer"));
    launch(g_stream, s);
    OK(rondo_scope_begin(g_stream, RONDO_SCOPE_IF, g_x, 0, &scope));
    OK(rondo_scope_enter(scope, 0, &body));
    OK(rondo_label_push(body, "body"));
    if (!s->copies_in_body) {
        OK(rondo_stream_fill(body, g_x + 4, 5 + s->fill, 4, 2));
    } else {
        OK(rondo_stream_copy(body, g_x + 4, g_x, 8, RONDO_COPY_DEVICE_TO_DEVICE));
    }
    OK(rondo_scope_leave(scope));
    OK(rondo_scope_end(scope));
    OK(rondo_label_pop(g_stream));
    rondo_stream *side = s->is_in_a_row ? g_stream : g_side;
    OK(rondo_event_record(g_events[0], g_stream));
    OK(rondo_stream_wait_event(g_side, g_events[0]));
    OK(rondo_stream_fill(g_stream, g_x + 8, 1, 4, 4));
    OK(rondo_stream_copy(side, g_x + 16, g_x + 24, 16 - s->shorter, RONDO_COPY_DEVICE_TO_DEVICE));
    OK(rondo_event_record(g_events[1], side));
    OK(rondo_stream_wait_event(g_stream, g_events[1]));
    for (uint32_t i = 0; i <= s->extra; ++i) {
        OK(rondo_stream_fill(g_stream, g_x + 32 + i, 1, 4, 1));
    }
    OK(rondo_graph_capture_end(graph));
    return graph;
}

// ---- the walk ---------------------------------------------------------------------------------

static rondo_status note_level(void *user_data, rondo__template_level *level) {
    snprintf(strchr(user_data, '\0'), 16, "%s", level->node != NULL ? "(" : "[");
    level->skips_rest = level->recorded == NULL;
    return RONDO_STATUS_OK;
}

static rondo_status note_node(void *user_data, const rondo__template_node *node) {
    snprintf(strchr(user_data, '\0'), 16, "%zu%.2s ", node->id,
             rondo__node_kind_get_name(node->info.kind));
    return RONDO_STATUS_OK;
}

static rondo_status note_end(void *user_data, const rondo__template_level *level) {
    snprintf(strchr(user_data, '\0'), 16, "%s", level->node != NULL ? ") " : "]");
    return RONDO_STATUS_OK;
}

static rondo_status refuse_fill(void *user_data, const rondo__template_node *node) {
    (void)user_data;
    return node->info.kind == RONDO__NODE_FILL ? RONDO_STATUS_STATE : RONDO_STATUS_OK;
}

static void check_walk(bool is_fake) {
    static const rondo__template_visitor visitor = {
        .enter_level = note_level, .enter_node = note_node, .leave_level = note_end};
    static const rondo__template_visitor refusing = {.enter_node = refuse_fill};
    set_up(is_fake);
    rondo_graph *graph = capture(&plain);
    char seen[256] = "";
    OK(rondo__template_visit(graph->recorded, &visitor, seen));
    assert_string_equal(
        seen, is_fake ? "[0ke 1ke 2co (3me ) 4me 5me 6me ]" : "[0ke 1co (2me ) 3me 4me 5me ]");
    assert_int_equal(rondo__template_visit(graph->recorded, &refusing, NULL), RONDO_STATUS_STATE);
    // Ids lead to places and handles, of which those of a level lead back.
    rondo__node_table table;
    rondo__node_places places;
    OK(rondo__node_table_init(graph->recorded, &table));
    assert_int_equal(table.count, 6 + is_fake);
    assert_int_equal(table.keys[2 + is_fake].parent, 1 + is_fake);
    assert_int_equal(table.keys[2 + is_fake].index, 0);
    assert_int_equal(table.keys[5].parent, SIZE_MAX);
    assert_int_equal(table.keys[5].index, 4);
    assert_ptr_equal(table.keys[5].level, graph->recorded);
    assert_ptr_not_equal(table.keys[2 + is_fake].level, graph->recorded);
    OK(rondo__node_places_init(graph->recorded, &places));
    assert_int_equal(rondo__node_places_find(&places, table.keys[5].handle), 4);
    assert_int_equal(rondo__node_places_find(&places, (rondo__node_handle)-1), SIZE_MAX);
    rondo__node_places_deinit(&places);
    rondo__node_table_deinit(&table);
    rondo_graph_destroy(graph);
    tear_down(is_fake);
}

TEST(test_graph_template__a_walk_meets_every_node) {
    check_walk(false);
    check_walk(true);
}

// ---- hashes and differences -------------------------------------------------------------------

typedef struct diff_row {
    const char *first;  // difference; "": none
    size_t count;
    bool has_same_structure;
    bool has_same_hash;  // of the structure
    bool has_same_content;
    step after;
} diff_row;

static void check_row(const diff_row *row, rondo_graph *before) {
    rondo_graph *after = capture(&row->after);
    rondo__template_diff diff;
    char text[256] = "";
    OK(rondo__template_compare(before->recorded, after->recorded, after->participants, SIZE_MAX,
                               &diff));
    if (diff.count > 0) {
        size_t length = rondo__difference_format(&diff.entries[0], text, sizeof text);
        assert_int_equal(length, strlen(text));
    }
    assert_string_equal(text, renumber(row->first));
    assert_int_equal(diff.count, row->count);
    assert_int_equal(diff.has_same_structure, row->has_same_structure);
    rondo__template_diff_deinit(&diff);
    rondo__template_hash hashes[2];
    OK(rondo__template_get_hash(before->recorded, &hashes[0]));
    OK(rondo__template_get_hash(after->recorded, &hashes[1]));
    assert_int_equal(hashes[0].structure == hashes[1].structure, row->has_same_hash);
    assert_int_equal(hashes[0].content == hashes[1].content, row->has_same_content);
    rondo_graph_destroy(after);
}

static void check_differences(bool is_fake) {
    char moved[128];
    set_up(is_fake);
    snprintf(moved, sizeof moved, "node 0 (layer): argument word 0 0x%llx before, 0x%llx now",
             (unsigned long long)(uintptr_t)g_x, (unsigned long long)(uintptr_t)(g_x + 3));
    const diff_row rows[] = {
        {"", 0, true, true, true, {0}},
        {"node 0 (layer): block.x 64 before, 128 now",
         2,
         true,
         false,
         false,
         {.wider = 64, .shared_bytes = 8}},
        {"node 0 (layer): argument word 1 0x7 before, 0x8 now", 1, true, true, true, {.count = 1}},
        {moved, 1, true, true, true, {.offset = 3}},
        {"node #1_0_0 (layer/body): fill_value 5 before, 6 now", 1, true, true, false, {.fill = 1}},
        {"node #3: byte_count 16 before, 8 now", 2, true, false, false, {.shorter = 8}},
        {"node #1_0_0 (layer/body): kind memset before, memcpy now",
         1,
         false,
         false,
         false,
         {.copies_in_body = true}},
        {"node #5: node none before, memset now", 1, false, false, false, {.extra = 1}},
        {"node #3: edges #1 -> #3 before, #2 -> #3 now",
         1,
         false,
         false,
         false,
         {.is_in_a_row = true}},
    };
    rondo_graph *before = capture(&plain);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        check_row(&rows[i], before);
    }
    // The other way round, and no more than are wanted.
    rondo_graph *longer = capture(&rows[7].after);
    rondo_graph *wider = capture(&rows[1].after);
    rondo__template_diff diff;
    OK(rondo__template_compare(longer->recorded, before->recorded, NULL, 1, &diff));
    assert_string_equal(diff.entries[0].before, "memset");
    assert_string_equal(diff.entries[0].after, "none");
    rondo__template_diff_deinit(&diff);
    OK(rondo__template_compare(before->recorded, wider->recorded, NULL, 1, &diff));
    assert_int_equal(diff.count, 1);
    assert_string_equal(diff.entries[0].label, "");
    rondo__template_diff_deinit(&diff);
    rondo_graph_destroy(wider);
    rondo_graph_destroy(longer);
    rondo_graph_destroy(before);
    tear_down(is_fake);
}

TEST(test_graph_template__differences_name_node_and_field) {
    check_differences(false);
    check_differences(true);
}

static bool fail_nth(void *user_data) {
    long *left = user_data;
    return (*left)-- == 0;
}

// Each allocation fails once; nothing is lost then.
TEST(test_graph_template__failures_leave_nothing) {
    set_up(false);
    rondo_graph *before = capture(&plain);
    const step other = {.wider = 64, .fill = 1};
    rondo_graph *after = capture(&other);
    long nth = 0;
    for (bool has_failed = true; has_failed; ++nth) {
        long left = nth;
        rondo__template_diff diff;
        rondo__template_hash hash;
        rondo__memory_set_fault(fail_nth, &left);
        int64_t balance = rondo__memory_get_balance();
        rondo_status status = rondo__template_compare(before->recorded, after->recorded,
                                                      after->participants, SIZE_MAX, &diff);
        if (status == RONDO_STATUS_OK) {
            rondo__template_diff_deinit(&diff);
            status = rondo__template_get_hash(after->recorded, &hash);
        }
        assert_int_equal(rondo__memory_get_balance(), balance);
        rondo__memory_set_fault(NULL, NULL);
        has_failed = left < 0;
        assert_int_equal(status, has_failed ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK);
    }
    assert_true(nth > 10);
    rondo_graph_destroy(after);
    rondo_graph_destroy(before);
    tear_down(false);
}

// ---- updates ----------------------------------------------------------------------------------

static char g_logged[1024];

static void keep_message(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)level;
    if (strstr(message, "new executable") != NULL) {
        snprintf(g_logged, sizeof g_logged, "%s", message);
    }
}

static void check_update(bool is_fake) {
    set_up(is_fake);
    rondo_log_set_sink(keep_message, NULL);
    rondo_log_set_level(RONDO_LOG_DEBUG);
    g_logged[0] = '\0';
    rondo_graph *graph = capture(&plain);
    OK(rondo_graph_instantiate(graph));
    step more = plain;
    more.extra = 1;
    rondo_graph *source = capture(&more);
    rondo_update_report report = {.struct_size = sizeof report};
    OK(rondo_graph_update(graph, source, &report));
    assert_int_equal(report.result, RONDO_UPDATE_INSTANTIATED);
    assert_non_null(strstr(g_logged, renumber("patched: node #5: node none before, memset now")));
    rondo_log_set_level(RONDO_LOG_WARNING);
    rondo_log_set_sink(NULL, NULL);
    rondo_graph_destroy(source);
    rondo_graph_destroy(graph);
    tear_down(is_fake);
}

TEST(test_graph_template__an_update_says_why_it_could_not_patch) {
    check_update(false);
    check_update(true);
}

TEST_MAIN()
