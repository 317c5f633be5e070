// Learned steps on the host: what is learned, what is refused and how it is said, what trials leave
// behind, and steps that look learnable but are not.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "device/device.h"
#include "graph/graph_object.h"
#include "learn/learned.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/learn_world.h"
#include "support/short_forms.h"
#include "support/test.h"

static learn_world g;
static rondo_pool *g_pool;
static rondo_generator *g_generator;
static unsigned char *g_pinned;

// ---- kernels and steps ------------------------------------------------------------------------

typedef struct work {
    unsigned char *out;
    const unsigned char *in;
    int64_t count;
    float factor;
    int32_t shift;
} work;

static void run_kernel(void *arguments) {
    const work *w = arguments;
    for (int64_t i = 0; i < w->count; ++i) {
        w->out[i] = (unsigned char)((float)w->in[i] * w->factor + (float)w->shift);
    }
}

static void run_other_kernel(void *arguments) {
    run_kernel(arguments);
}

static rondo_status launch(rondo_stream *stream, rondo_host_function function, uint32_t blocks,
                           const void *arguments, size_t bytes) {
    union {
        rondo_host_function function;
        void *address;
    } kernel = {.function = function};
    const rondo_launch wanted = LAUNCH("kernel", kernel.address, blocks, 64, arguments, bytes);
    return rondo_stream_launch(stream, &wanted);
}

static int64_t get_n(const rondo_value *a) {
    return a[2].integer;
}

// Two kernels, a copy and a fill, with interior addresses, a block of a pool, and a drop-out.
static rondo_status step_usual(rondo_stream *stream, const rondo_value *a, void *user_data) {
    unsigned char *x = a[0].pointer;
    unsigned char *y = a[1].pointer;
    void *block = NULL;
    (void)user_data;
    RETURN_IF_ERROR(rondo_pool_allocate(g_pool, stream, 1024, &block));
    const work first = {(unsigned char *)block + 16, x, get_n(a), a[3].single, 3};
    const work second = {y + 1024, (unsigned char *)block + 16, get_n(a), 2.0f, (int32_t)get_n(a)};
    RETURN_IF_ERROR(
        launch(stream, run_kernel, (uint32_t)(get_n(a) + 63) / 64, &first, sizeof first));
    RETURN_IF_ERROR(launch(stream, run_kernel, 1, &second, sizeof second));
    RETURN_IF_ERROR(rondo_stream_copy(stream, y + 2048, x + 8, (size_t)get_n(a) * 2,
                                      RONDO_COPY_DEVICE_TO_DEVICE));
    RETURN_IF_ERROR(rondo_stream_fill(stream, y + 3584, (uint32_t)get_n(a), 1, 100));
    return rondo_pool_free(g_pool, block);
}

static rondo_status step_counts(rondo_stream *stream, const rondo_value *a, void *user_data) {
    const work w = {a[1].pointer, a[0].pointer, get_n(a), a[3].single, (*(int32_t *)user_data)++};
    return launch(stream, run_kernel, 1, &w, sizeof w);
}

// A kernel that is chosen by how the address is aligned.
static rondo_status step_aligned(rondo_stream *stream, const rondo_value *a, void *user_data) {
    const work w = {a[1].pointer, a[0].pointer, get_n(a), a[3].single, 0};
    (void)user_data;
    const bool is_aligned = ((uintptr_t)a[0].pointer & 63) == 0;
    return launch(stream, is_aligned ? run_kernel : run_other_kernel, 1, &w, sizeof w);
}

// An address that lost its high bits on the way: near the base it looks right.
static rondo_status step_truncated(rondo_stream *stream, const rondo_value *a, void *user_data) {
    const uintptr_t base = (uintptr_t)g.buffers[0];
    const uint32_t distance = (uint32_t)((uintptr_t)a[0].pointer - base);
    const work w = {a[1].pointer, (const unsigned char *)(base + distance), get_n(a), a[3].single,
                    0};
    (void)user_data;
    return launch(stream, run_kernel, 1, &w, sizeof w);
}

// A table of addresses in memory that a copy reads at each replay.
static rondo_status step_host_table(rondo_stream *stream, const rondo_value *a, void *user_data) {
    const work w = {a[1].pointer, a[1].pointer, get_n(a), a[3].single, 0};
    (void)user_data;
    memcpy(g_pinned, &a[0].pointer, sizeof a[0].pointer);
    RETURN_IF_ERROR(rondo_stream_copy(stream, g.buffers[2], g_pinned, sizeof(void *),
                                      RONDO_COPY_HOST_TO_DEVICE));
    return launch(stream, run_kernel, 1, &w, sizeof w);
}

// The same table in device memory that a kernel reads: no node shows the address.
static rondo_status step_device_table(rondo_stream *stream, const rondo_value *a, void *user_data) {
    const work w = {a[1].pointer, g.buffers[2], get_n(a), a[3].single, 0};
    (void)user_data;
    memcpy(g.buffers[2], &a[0].pointer, sizeof a[0].pointer);
    return launch(stream, run_kernel, 1, &w, sizeof w);
}

// Division by multiplication: factor and shift of n.
static rondo_status step_magic(rondo_stream *stream, const rondo_value *a, void *user_data) {
    const uint64_t n = (uint64_t)get_n(a);
    const uint64_t magic = (UINT64_C(1) << 32) / n + 1;
    const work w = {a[1].pointer, a[0].pointer, (int64_t)magic, a[3].single, 0};
    (void)user_data;
    return launch(stream, run_kernel, 1, &w, sizeof w);
}

static rondo_status step_integer_to_float(rondo_stream *stream, const rondo_value *a,
                                          void *user_data) {
    const work w = {a[1].pointer, a[0].pointer, 7, a[3].single * (float)get_n(a), 0};
    (void)user_data;
    return launch(stream, run_kernel, 1, &w, sizeof w);
}

static rondo_status step_more_nodes(rondo_stream *stream, const rondo_value *a, void *user_data) {
    (void)user_data;
    for (int64_t i = 0; i < get_n(a); i += 200) {
        const work w = {a[1].pointer, a[0].pointer, 7, a[3].single, (int32_t)get_n(a)};
        RETURN_IF_ERROR(launch(stream, run_kernel, 1, &w, sizeof w));
    }
    return RONDO_STATUS_OK;
}

static rondo_status step_larger_block(rondo_stream *stream, const rondo_value *a, void *user_data) {
    void *block = NULL;
    (void)user_data;
    RETURN_IF_ERROR(rondo_pool_allocate(g_pool, stream, (size_t)get_n(a) * 8, &block));
    const work w = {block, a[0].pointer, get_n(a), a[3].single, 0};
    const work v = {a[1].pointer, block, get_n(a), 1.0f, 0};
    RETURN_IF_ERROR(launch(stream, run_kernel, 1, &w, sizeof w));
    RETURN_IF_ERROR(launch(stream, run_kernel, 1, &v, sizeof v));
    return rondo_pool_free(g_pool, block);
}

static rondo_status step_fails(rondo_stream *stream, const rondo_value *a, void *user_data) {
    (void)user_data;
    return get_n(a) > 400 ? rondo_stream_fill(stream, a[0].pointer, 0, 3, 8)
                          : step_usual(stream, a, NULL);
}

static rondo_status step_unseen(rondo_stream *stream, const rondo_value *a, void *user_data) {
    const work w = {a[1].pointer, a[0].pointer, get_n(a), 1.0f, 0};
    (void)user_data;
    return launch(stream, run_kernel, 1, &w, sizeof w);
}

static rondo_status step_ends_itself(rondo_stream *stream, const rondo_value *a, void *user_data) {
    (void)a;
    (void)user_data;
    return rondo_stream_synchronize(stream);
}

// ---- worlds -----------------------------------------------------------------------------------

static int open_world(void **state) {
    (void)state;
    learn_world_open(&g, "host");
    OK(rondo_pool_create(g.device, NULL, &g_pool));
    OK(rondo_generator_create(g.device, 1, &g_generator));
    OK(rondo_memory_allocate(g.device, RONDO_MEMORY_PINNED, LEARN_BYTES, (void **)&g_pinned));
    memset(g_pinned, 0, LEARN_BYTES);
    return 0;
}

static int close_world(void **state) {
    (void)state;
    OK(rondo_device_synchronize(g.device));
    rondo_memory_free(g.device, g_pinned);
    rondo_generator_release(g_generator);
    rondo_pool_release(g_pool);
    learn_world_close(&g);
    return 0;
}

static rondo_learned *create(rondo_learned_function step, void *user_data,
                             const rondo_learned_options *options) {
    rondo_learned *learned = NULL;
    OK(rondo_learned_create(g.device, options, learn_arguments, LEARN_ARGUMENTS, step, user_data,
                            &learned));
    return learned;
}

typedef struct log_lines {
    size_t count;
    char last[512];
} log_lines;

static void take_line(void *user_data, rondo_log_level level, const char *message) {
    log_lines *log = user_data;
    assert_int_equal(level, RONDO_LOG_WARNING);
    ++log->count;
    (void)snprintf(log->last, sizeof log->last, "%s", message);
}

static bool append_text(void *user_data, const char *text, size_t bytes) {
    strncat(user_data, text, bytes);
    return true;
}

// ---- cases ------------------------------------------------------------------------------------

TEST(a_step_is_learned_and_runs_with_any_values) {
    rondo_learned *learned = create(step_usual, NULL, NULL);
    rondo_value values[4];
    static const struct {
        size_t x, y;
        int64_t n;
        float f;
    } rows[] = {{0, 1, 100, 1.5f}, {0, 1, 100, 2.5f}, {1, 2, 512, 1.5f}, {0, 1, 1, 0.0f},
                {2, 0, 64, 1.5f},  {2, 0, 65, 1.5f},  {0, 1, 100, 1.5f}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        learn_world_set(&g, values, rows[i].x, rows[i].y, rows[i].n, rows[i].f);
        learn_world_expect_same(&g, learned, step_usual, NULL, values, LEARN_ARGUMENTS);
        learn_world_expect_same(&g, learned, step_usual, NULL, values, LEARN_ARGUMENTS);
    }
    static char text[8192];
    text[0] = '\0';
    OK(rondo_learned_describe(learned, RONDO_TEXT_PLAIN, append_text, text));
    assert_non_null(strstr(text, "grid.x: ceil(n / 64)"));
    assert_non_null(strstr(text, "source: x + 8"));
    assert_non_null(strstr(text, "bytes: n * 2"));
    const rondo_learned_report report = learn_world_report(learned);
    assert_int_equal(report.state, RONDO_LEARNED_PROVED);
    assert_int_equal(report.node_count, 4);
    assert_int_equal(report.changing_count, 4);
    rondo_learned_stats stats = {.struct_size = sizeof stats};
    OK(rondo_learned_get_stats(learned, &stats));
    assert_int_equal(stats.run_count, 14);
    assert_int_equal(stats.unchanged_count, 7);
    assert_int_equal(stats.fallback_count, 0);
    rondo_learned_slot slots[64];
    slots[0].struct_size = sizeof slots[0];
    size_t count = 0;
    OK(rondo_learned_list_slots(learned, slots, 64, &count));
    assert_int_equal(count, report.slot_count);
    rondo_learned_destroy(learned);
}

// Pools, generators, label scopes and the stream are after the trials what they were before.
static rondo_status step_with_state(rondo_stream *stream, const rondo_value *a, void *user_data) {
    (void)user_data;
    OK(rondo_label_push(stream, "left open"));
    RETURN_IF_ERROR(
        rondo_random_uniform(g_generator, stream, RONDO_DTYPE_F32, a[1].pointer, 16, 0.0, 1.0));
    return step_usual(stream, a, NULL);
}

TEST(trials_leave_nothing_behind) {
    rondo_generator_state before;
    rondo_generator_state after;
    rondo_pool_stats pool_before = {.struct_size = sizeof pool_before};
    rondo_pool_stats pool_after = {.struct_size = sizeof pool_after};
    rondo_learned *learned = create(step_with_state, NULL, NULL);
    rondo_value values[4];
    learn_world_set(&g, values, 0, 1, 100, 1.0f);
    const size_t area_count = g.device->areas.count;
    OK(rondo_generator_get_state(g_generator, &before));
    OK(rondo_pool_get_stats(g_pool, &pool_before));
    OK(rondo_learned_learn(learned, g.stream, values, 4));
    assert_int_equal(learn_world_report(learned).state, RONDO_LEARNED_PROVED);
    OK(rondo_generator_get_state(g_generator, &after));
    assert_int_equal(before.offset, after.offset);
    OK(rondo_pool_get_stats(g_pool, &pool_after));
    assert_int_equal(pool_before.live_bytes, pool_after.live_bytes);
    assert_int_equal(pool_before.live_count, pool_after.live_count);
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    OK(rondo_graph_get_stats(rondo_learned_get_graph(learned), &stats));
    assert_int_equal(stats.arena_live_bytes, 0);
    assert_int_equal(stats.replay_count, 0);
    // The graph's own block may be a new area of the pool; no trial's is left.
    assert_true(g.device->areas.count <= area_count + 1);
    bool is_recording = true;
    OK(rondo_stream_is_recording(g.stream, &is_recording));
    assert_false(is_recording);
    // Two runs draw what two eager calls would.
    float drawn[2][16];
    for (int i = 0; i < 2; ++i) {
        OK(rondo_learned_run(learned, g.stream, values, 4));
        OK(rondo_stream_synchronize(g.stream));
        memcpy(drawn[i], g.buffers[1], sizeof drawn[i]);
    }
    OK(rondo_generator_set_state(g_generator, &before));
    for (int i = 0; i < 2; ++i) {
        OK(rondo_random_uniform(g_generator, g.stream, RONDO_DTYPE_F32, g.buffers[1], 16, 0, 1));
        OK(rondo_stream_synchronize(g.stream));
        assert_memory_equal(drawn[i], g.buffers[1], sizeof drawn[i]);
    }
    rondo_learned_destroy(learned);
}

// A block that the step keeps is taken back after each trial; only the graph's own stays.
static rondo_status step_keeps_block(rondo_stream *stream, const rondo_value *a, void *user_data) {
    void **kept = user_data;
    RETURN_IF_ERROR(rondo_pool_allocate(g_pool, stream, 1024, kept));
    const work w = {*kept, a[0].pointer, get_n(a), a[3].single, 0};
    const work v = {a[1].pointer, *kept, get_n(a), 1.0f, 0};
    RETURN_IF_ERROR(launch(stream, run_kernel, 1, &w, sizeof w));
    return launch(stream, run_kernel, 1, &v, sizeof v);
}

TEST(blocks_of_trials_are_taken_back) {
    void *kept = NULL;
    rondo_pool_stats stats = {.struct_size = sizeof stats};
    // A run that is compared would leave the address of another recording's block in `kept`.
    const rondo_learned_options options = {.struct_size = sizeof options, .draws_wanted = 1};
    rondo_learned *learned = create(step_keeps_block, &kept, &options);
    rondo_value values[4];
    learn_world_set(&g, values, 0, 1, 100, 2.0f);
    OK(rondo_learned_run(learned, g.stream, values, 4));
    learn_world_set(&g, values, 2, 1, 200, 3.0f);
    OK(rondo_learned_run(learned, g.stream, values, 4));
    OK(rondo_stream_synchronize(g.stream));
    assert_int_equal(learn_world_report(learned).state, RONDO_LEARNED_PROVED);
    OK(rondo_pool_get_stats(g_pool, &stats));
    assert_int_equal(stats.live_count, 1);
    OK(rondo_pool_free(g_pool, kept));
    rondo_learned_destroy(learned);
    OK(rondo_pool_get_stats(g_pool, &stats));
    assert_int_equal(stats.live_count, 0);
}

// Pinned memory that a copy reads moves, too; its bytes may be others in each run.
static rondo_status step_reads_pinned(rondo_stream *stream, const rondo_value *a, void *user_data) {
    (void)user_data;
    RETURN_IF_ERROR(
        rondo_stream_copy(stream, g.buffers[0], g_pinned, 64, RONDO_COPY_HOST_TO_DEVICE));
    return rondo_stream_copy(stream, a[1].pointer, (const char *)a[0].pointer + 16, 1024,
                             RONDO_COPY_HOST_TO_DEVICE);
}

TEST(pinned_sources_are_learned) {
    rondo_argument arguments[2] = {learn_arguments[0], learn_arguments[1]};
    rondo_learned *learned = NULL;
    unsigned char *pinned[2];
    arguments[0].memory = RONDO_MEMORY_PINNED;
    for (size_t i = 0; i < 2; ++i) {
        OK(rondo_memory_allocate(g.device, RONDO_MEMORY_PINNED, LEARN_BYTES, (void **)&pinned[i]));
    }
    OK(rondo_learned_create(g.device, NULL, arguments, 2, step_reads_pinned, NULL, &learned));
    for (int i = 0; i < 4; ++i) {
        const rondo_value values[] = {{.pointer = pinned[i % 2]},
                                      {.pointer = g.buffers[1 + i / 2]}};
        memset(pinned[i % 2], 10 + i, LEARN_BYTES);
        memset(g_pinned, 20 + i, LEARN_BYTES);
        OK(rondo_learned_run(learned, g.stream, values, 2));
        OK(rondo_stream_synchronize(g.stream));
        assert_memory_equal(pinned[i % 2], g.buffers[1 + i / 2], 1024);
        assert_memory_equal(g_pinned, g.buffers[0], 64);
    }
    assert_int_equal(learn_world_report(learned).state, RONDO_LEARNED_PROVED);
    rondo_learned_destroy(learned);
    rondo_memory_free(g.device, pinned[0]);
    rondo_memory_free(g.device, pinned[1]);
}

TEST(adversaries_are_refused) {
    static const struct {
        const char *name;
        rondo_learned_function step;
        rondo_refusal refusal;
    } rows[] = {
        {"counts its calls", step_counts, RONDO_REFUSAL_WORD},
        {"truncates an address", step_truncated, RONDO_REFUSAL_WORD},
        {"host table", step_host_table, RONDO_REFUSAL_TABLE},
        {"magic numbers", step_magic, RONDO_REFUSAL_WORD},
        {"float of an integer", step_integer_to_float, RONDO_REFUSAL_WORD},
        {"more nodes", step_more_nodes, RONDO_REFUSAL_NODES},
        {"a larger block", step_larger_block, RONDO_REFUSAL_MEMORY},
        {"fails", step_fails, RONDO_REFUSAL_STEP_FAILED},
        {"waits", step_ends_itself, RONDO_REFUSAL_STEP_FAILED},
    };
    const rondo_learned_options options = {.struct_size = sizeof options,
                                           .fallback = RONDO_LEARN_REFUSE};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        int32_t calls = 0;
        rondo_learned *learned = create(rows[i].step, &calls, &options);
        rondo_value values[4];
        learn_world_set(&g, values, 0, 1, 100, 1.5f);
        assert_int_equal(rondo_learned_run(learned, g.stream, values, 4), RONDO_STATUS_UNSUPPORTED);
        const rondo_learned_report report = learn_world_report(learned);
        if (report.refusal != rows[i].refusal) {
            print_error("%s: %s\n", rows[i].name, report.message);
        }
        assert_int_equal(report.refusal, rows[i].refusal);
        assert_int_equal(report.state, RONDO_LEARNED_REFUSED);
        assert_string_not_equal(report.message, "");
        assert_string_not_equal(report.advice, "");
        rondo_learned_destroy(learned);
    }
}

// Nothing is wrong with a step that does not use an argument, and what it hands on through memory
// nobody sees: so it is learned, and the log and the report name the argument.
TEST(arguments_of_no_use_are_warned_of) {
    static const struct {
        rondo_learned_function step;
        const char *message;
    } rows[] = {{step_device_table,
                 "no node changes with argument \"x\", so each replay uses what the recording had; "
                 "hand it to a node, or leave it out"},
                {step_unseen,
                 "no node changes with argument \"f\", so each replay uses what the recording had; "
                 "hand it to a node, or leave it out"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rondo_learned *learned = create(rows[i].step, NULL, NULL);
        rondo_value values[4];
        log_lines log = {0};
        learn_world_set(&g, values, 0, 1, 100, 1.0f);
        rondo_log_set_sink(take_line, &log);
        OK(rondo_learned_run(learned, g.stream, values, 4));
        values[2].integer = 101;
        OK(rondo_learned_run(learned, g.stream, values, 4));
        OK(rondo_stream_synchronize(g.stream));
        rondo_log_set_sink(NULL, NULL);
        const rondo_learned_report report = learn_world_report(learned);
        assert_int_equal(report.state, RONDO_LEARNED_PROVED);
        assert_int_equal(report.refusal, RONDO_REFUSAL_NONE);
        assert_int_equal(report.unseen_count, 1);
        rondo_learned_finding finding = {.struct_size = sizeof finding};
        size_t count = 0;
        OK(rondo_learned_list_findings(learned, &finding, 1, &count));
        assert_int_equal(count, report.finding_count);
        assert_int_equal(finding.refusal, RONDO_REFUSAL_UNSEEN);
        assert_true(finding.is_warning);
        assert_string_equal(finding.message, rows[i].message);
        assert_int_equal(log.count, 1);
        assert_non_null(strstr(log.last, rows[i].message));
        rondo_learned_destroy(learned);
    }
}

// Small alignments are tried; so the choice by alignment is seen only where it can be met.
TEST(a_choice_by_alignment_is_found) {
    rondo_argument arguments[4];
    memcpy(arguments, learn_arguments, sizeof learn_arguments);
    const rondo_learned_options options = {.struct_size = sizeof options,
                                           .fallback = RONDO_LEARN_REFUSE};
    rondo_value values[4];
    learn_world_set(&g, values, 0, 1, 100, 1.5f);
    for (int i = 0; i < 2; ++i) {
        rondo_learned *learned = NULL;
        arguments[0].alignment = i == 0 ? 4 : 0;
        OK(rondo_learned_create(g.device, &options, arguments, 4, step_aligned, NULL, &learned));
        const rondo_status status = rondo_learned_run(learned, g.stream, values, 4);
        assert_int_equal(status, i == 0 ? RONDO_STATUS_UNSUPPORTED : RONDO_STATUS_OK);
        assert_int_equal(learn_world_report(learned).refusal,
                         i == 0 ? RONDO_REFUSAL_FUNCTION : RONDO_REFUSAL_NONE);
        rondo_learned_destroy(learned);
    }
}

// Whatever was refused runs as the fallback says, with the right results.
static rondo_status step_refused(rondo_stream *stream, const rondo_value *a, void *user_data) {
    const work w = {a[1].pointer, a[0].pointer, (get_n(a) * 2654435761) % 97, a[3].single, 0};
    (void)user_data;
    return launch(stream, run_kernel, 1, &w, sizeof w);
}

TEST(refused_steps_fall_back) {
    static const rondo_learned_fallback fallbacks[] = {RONDO_LEARN_RECAPTURE, RONDO_LEARN_EAGER};
    for (size_t i = 0; i < 2; ++i) {
        const rondo_learned_options options = {.struct_size = sizeof options,
                                               .fallback = fallbacks[i]};
        rondo_learned *learned = create(step_refused, NULL, &options);
        rondo_value values[4];
        for (int64_t n = 1; n < 20; n += 3) {
            learn_world_set(&g, values, n % 2 == 0, 2, n, 1.5f);
            learn_world_expect_same(&g, learned, step_refused, NULL, values, LEARN_ARGUMENTS);
            learn_world_expect_same(&g, learned, step_refused, NULL, values, LEARN_ARGUMENTS);
        }
        rondo_learned_stats stats = {.struct_size = sizeof stats};
        OK(rondo_learned_get_stats(learned, &stats));
        assert_int_equal(stats.run_count, 14);
        assert_int_equal(stats.fallback_count, 14);
        rondo_learned_destroy(learned);
    }
}

// Four bytes that are others each time, beside four that an argument explains: as where a struct
// has padding that nobody writes.
static rondo_status step_padded(rondo_stream *stream, const rondo_value *a, void *user_data) {
    uint32_t *turn = user_data;
    const work w = {a[1].pointer, a[0].pointer, 1, a[3].single,
                    (int32_t)(++*turn * UINT32_C(2654435761))};
    return launch(stream, run_kernel, 1, &w, sizeof w);
}

TEST(padding_is_named_without_its_neighbour) {
    const rondo_learned_options options = {.struct_size = sizeof options,
                                           .fallback = RONDO_LEARN_REFUSE};
    uint32_t turn = 0;
    rondo_learned *learned = create(step_padded, &turn, &options);
    rondo_value values[4];
    learn_world_set(&g, values, 0, 1, 100, 1.5f);
    assert_int_equal(rondo_learned_run(learned, g.stream, values, 4), RONDO_STATUS_UNSUPPORTED);
    const rondo_learned_report report = learn_world_report(learned);
    assert_int_equal(report.refusal, RONDO_REFUSAL_WORD);
    assert_string_equal(report.word, "arguments, bytes 28 to 31");
    rondo_learned_destroy(learned);
}

// A special case that is too rare for the few draws of the proof: the check finds it, and the run
// is right.
static rondo_status step_rare(rondo_stream *stream, const rondo_value *a, void *user_data) {
    const work w = {a[1].pointer, a[0].pointer, get_n(a) == 333 ? 1 : get_n(a), a[3].single, 0};
    (void)user_data;
    return launch(stream, run_kernel, 1, &w, sizeof w);
}

TEST(checks_find_rare_cases) {
    const rondo_learned_options options = {
        .struct_size = sizeof options, .check_every = 1, .learn_ns = 1, .draws_wanted = 1};
    rondo_learned *learned = create(step_rare, NULL, &options);
    rondo_value values[4];
    for (int64_t n = 330; n < 340; ++n) {
        learn_world_set(&g, values, 0, 1, n, 1.5f);
        learn_world_expect_same(&g, learned, step_rare, NULL, values, LEARN_ARGUMENTS);
        assert_int_equal(learn_world_report(learned).state,
                         n < 333 ? RONDO_LEARNED_PROVED : RONDO_LEARNED_REFUSED);
    }
    const rondo_learned_report report = learn_world_report(learned);
    assert_int_equal(report.refusal, RONDO_REFUSAL_CHANGED);
    assert_non_null(strstr(report.message, "it may be padding"));
    rondo_learned_destroy(learned);
}

static void expect_invalid(rondo_learned *learned, const rondo_value *values, size_t count,
                           const char *text) {
    assert_int_equal(rondo_learned_run(learned, g.stream, values, count), RONDO_STATUS_INVALID);
    if (strstr(rondo_error_get_last()->message, text) == NULL) {
        print_error("%s\n", rondo_error_get_last()->message);
    }
    assert_non_null(strstr(rondo_error_get_last()->message, text));
}

TEST(bad_values_are_refused_and_nothing_is_lost) {
    rondo_learned *learned = create(step_usual, NULL, NULL);
    rondo_value values[4];
    for (int is_learned = 0; is_learned < 2; ++is_learned) {
        learn_world_set(&g, values, 0, 1, 100, 1.5f);
        expect_invalid(learned, values, 3, "3 values; the step has 4");
        expect_invalid(learned, NULL, 4, "values");
        values[2].integer = 513;
        expect_invalid(learned, values, 4, "\"n\" is 513; its domain is from 1 to 512");
        learn_world_set(&g, values, 0, 1, 100, 1.5f);
        values[0].pointer = NULL;
        expect_invalid(learned, values, 4, "\"x\" is NULL");
        values[0].pointer = g.buffers[0] + 1;
        expect_invalid(learned, values, 4, "no multiple of 256");
        values[0].pointer = g.buffers[0] + 256;
        expect_invalid(learned, values, 4, "its extent is 4096");
        values[0].pointer = g_pinned;
        expect_invalid(learned, values, 4, "pinned");
        void *freed = NULL;
        OK(rondo_memory_allocate(g.device, RONDO_MEMORY_DEVICE, LEARN_BYTES, &freed));
        rondo_memory_free(g.device, freed);
        values[0].pointer = freed;
        expect_invalid(learned, values, 4, "freed since");
        assert_int_equal(rondo_learned_run(NULL, g.stream, values, 4), RONDO_STATUS_INVALID);
        learn_world_set(&g, values, 1, 2, 77, 2.5f);
        learn_world_expect_same(&g, learned, step_usual, NULL, values, LEARN_ARGUMENTS);
    }
    // While the stream records, nothing runs, and the capture goes on.
    rondo_graph *graph = NULL;
    OK(rondo_graph_create(g.device, NULL, &graph));
    OK(rondo_graph_capture_begin(graph, g.stream, RONDO_CAPTURE_THREAD_LOCAL));
    learn_world_set(&g, values, 1, 2, 78, 2.5f);
    assert_int_equal(rondo_learned_run(learned, g.stream, values, 4), RONDO_STATUS_STATE);
    OK(rondo_graph_capture_end(graph));
    rondo_graph_destroy(graph);
    learn_world_expect_same(&g, learned, step_usual, NULL, values, LEARN_ARGUMENTS);
    rondo_learned_destroy(learned);
}

TEST(bad_descriptions_are_refused) {
    static const rondo_value set[] = {{.integer = 5}, {.integer = 1000}};
    static const struct {
        rondo_argument argument;
        const char *text;
    } rows[] = {
        {{.name = "p"}, "extent"},
        {{.name = "p", .extent = 8, .alignment = 3}, "power of two"},
        {{.name = "p", .extent = 8, .memory = 7}, "rondo_memory_kind"},
        {{.name = "p", .extent = 8, .values = set, .value_count = 2}, "set of values"},
        {{.name = "k", .kind = 99}, "rondo_argument_kind"},
        {{.name = "s", .kind = RONDO_ARGUMENT_STRUCT}, "1 to 256 bytes"},
        {{.name = "s", .kind = RONDO_ARGUMENT_STRUCT, .bytes = 257}, "1 to 256 bytes"},
        {{.name = "n", .kind = RONDO_ARGUMENT_INT8, .least.integer = 3, .most.integer = 1},
         "above"},
        {{.name = "n", .kind = RONDO_ARGUMENT_INT8, .most.integer = 200}, "does not have"},
        {{.name = "n", .kind = RONDO_ARGUMENT_INT8, .values = set, .value_count = 2}, "1000"},
        {{.name = "n", .kind = RONDO_ARGUMENT_INT32, .values = set}, "empty"},
        {{.name = "n", .kind = RONDO_ARGUMENT_INT32, .value_count = 2}, "NULL"},
        {{.name = "n",
          .kind = RONDO_ARGUMENT_INT32,
          .least.integer = 5,
          .most.integer = 7,
          .multiple_of = 4},
         "multiple"},
        {{.name = "f", .kind = RONDO_ARGUMENT_FLOAT, .multiple_of = 4}, "integers"},
        {{.name = "f", .kind = RONDO_ARGUMENT_FLOAT, .least.single = 1.0f}, "least"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rondo_learned *learned = NULL;
        rondo_argument argument = rows[i].argument;
        argument.struct_size = sizeof argument;
        assert_int_equal(
            rondo_learned_create(g.device, NULL, &argument, 1, step_usual, NULL, &learned),
            RONDO_STATUS_INVALID);
        assert_null(learned);
        if (strstr(rondo_error_get_last()->message, rows[i].text) == NULL) {
            print_error("%zu: %s\n", i, rondo_error_get_last()->message);
        }
        assert_non_null(strstr(rondo_error_get_last()->message, rows[i].text));
    }
}

TEST_MAIN_WITH(open_world, close_world)
