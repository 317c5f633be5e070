// What PaddlePaddle's own tests say of its CUDAGraph, by their numbers in docs/peer_tests.md.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "conformance/peers/peers_kernel.h"
#include "conformance/random/random_support.h"
#include "rondo/inspect.h"
#include "rondo/pool.h"

static void begin(rondo_graph *graph, rondo_stream *stream) {
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
}

SUITE_CASE_EXECUTED(paddle_01_replays_with_fresh_input) {
    enum { COUNT = 300 };
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    uint32_t *sum = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    uint32_t *fresh = suite_allocate(context, RONDO_MEMORY_PINNED, COUNT);
    suite_set(context, x, 0, COUNT);
    suite_set(context, sum, 5, COUNT);
    begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, COUNT, 3, 1));    // of the input
    ASSERT_OK(suite_affine(context, context->stream, sum, COUNT, 2, 1));  // in place, goes on
    ASSERT_OK(rondo_graph_capture_end(graph));
    uint32_t expected = 5;
    for (uint32_t round = 0; round < 10; ++round) {
        for (uint32_t i = 0; i < COUNT; ++i) {
            fresh[i] = 100 * round + i;
        }
        ASSERT_OK(rondo_stream_copy(context->stream, x, fresh, sizeof(uint32_t) * COUNT,
                                    RONDO_COPY_HOST_TO_DEVICE));
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
        ASSERT_OK(rondo_stream_synchronize(context->stream));
        expected = expected * 2 + 1;
        ASSERT_VALUE(context, x, COUNT - 1, (100 * round + COUNT - 1) * 3 + 1);
        ASSERT_VALUE(context, sum, round, expected);
    }
    rondo_graph_destroy(graph);
}

// ---- concat and split by tables of pointers ---------------------------------------------------

// Part `i` of `ways` parts of `count` words each is at table[i]; `whole` holds all of them in a
// row.
typedef struct parts_arguments {
    uint32_t *const *table;
    uint32_t *whole;
    uint32_t count;
    uint32_t ways;
    uint32_t is_split;
} parts_arguments;

static const char parts_text[] =
    "extern \"C\" __global__ void move_parts(unsigned *const *table, unsigned *whole,\n"
    "                                        unsigned count, unsigned ways,\n"
    "                                        unsigned is_split) {\n"
    "    unsigned part = blockIdx.x;\n"
    "    for (unsigned i = 0; i < count; i++) {\n"
    "        if (is_split) { table[part][i] = whole[part * count + i] + 1; }\n"
    "        else { whole[part * count + i] = table[part][i]; }\n"
    "    }\n"
    "}\n";

static void run_parts(void *data) {
    const parts_arguments *a = data;
    for (uint32_t part = 0; part < a->ways; ++part) {
        for (uint32_t i = 0; i < a->count; ++i) {
            if (a->is_split != 0) {
                a->table[part][i] = a->whole[part * a->count + i] + 1;
            } else {
                a->whole[part * a->count + i] = a->table[part][i];
            }
        }
    }
}

PEERS_FAKE(run_parts, parts_arguments);

SUITE_CASE(paddle_02_concat_and_split) {
    static const peers_kernel kernel = {"move_parts", parts_text, run_parts, fake_run_parts};
    void *function = peers_get_function(context, &kernel);
    enum { WAYS = 100, COUNT = 7 };
    rondo_stream *stream = context->stream;
    uint32_t *parts[WAYS];
    for (uint32_t i = 0; i < WAYS; ++i) {
        parts[i] = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
        suite_set(context, parts[i], i, COUNT);
    }
    uint32_t *whole = suite_allocate(context, RONDO_MEMORY_DEVICE, WAYS * COUNT);
    // The host's table of pointers; the graph copies it anew in each replay.
    const size_t table_words = sizeof parts / (sizeof(uint32_t));
    uint32_t **pinned = (void *)suite_allocate(context, RONDO_MEMORY_PINNED, table_words);
    uint32_t **table = (void *)suite_allocate(context, RONDO_MEMORY_DEVICE, table_words);
    memcpy(pinned, parts, sizeof parts);
    parts_arguments arguments = {.table = table, .whole = whole, .count = COUNT, .ways = WAYS};
    const size_t bytes = offsetof(parts_arguments, is_split) + sizeof(uint32_t);

    rondo_graph *graph = suite_create_graph(context, true);
    begin(graph, stream);
    ASSERT_OK(rondo_stream_copy(stream, table, pinned, sizeof parts, RONDO_COPY_HOST_TO_DEVICE));
    ASSERT_OK(peers_launch(stream, &kernel, function, WAYS, &arguments, bytes));
    ASSERT_OK(suite_affine(context, stream, whole, WAYS * COUNT, 2, 0));
    arguments.is_split = 1;
    ASSERT_OK(peers_launch(stream, &kernel, function, WAYS, &arguments, bytes));
    ASSERT_OK(rondo_graph_capture_end(graph));
    uint32_t expected[WAYS];
    for (uint32_t i = 0; i < WAYS; ++i) {
        expected[i] = i;
    }
    for (int round = 0; round < 3; ++round) {
        ASSERT_OK(rondo_graph_replay(graph, stream));
        ASSERT_OK(rondo_stream_synchronize(stream));
        for (uint32_t i = 0; i < WAYS; ++i) {
            expected[i] = expected[i] * 2 + 1;
            ASSERT_VALUE(context, parts[i], (size_t)i % COUNT, expected[i]);
        }
    }
    static suite_text dot;
    dot = (suite_text){0};
    ASSERT_OK(rondo_graph_dump(graph, RONDO_TEXT_DOT, suite_append_text, &dot));
    assert_non_null(strstr(dot.bytes, "move_parts"));
    assert_non_null(strstr(dot.bytes, "host_to_device 800 bytes"));
    rondo_graph_destroy(graph);
    for (uint32_t i = 0; i < WAYS; ++i) {
        suite_free(context, RONDO_MEMORY_DEVICE, parts[i]);
    }
}

// ---- a loader beside the capture --------------------------------------------------------------

enum { BATCHES = 100, BATCH_WORDS = 64, SLOTS = 4, LOADERS = 2 };

// Loaders fill slots in turn: batch b goes to slot b % SLOTS, once the one before was used up.
typedef struct loader_queue {
    suite_context *context;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t *slots[SLOTS];  // device memory
    int64_t filled[SLOTS];   // which batch is there; -1: none
    int64_t consumed;        // batches used up so far
    int next_batch;          // to be claimed by a loader
    bool has_failed;
} loader_queue;

// Pins memory, fills it, copies it over on a stream of its own, frees it: what a loader does.
static bool load_batch(loader_queue *queue, rondo_stream *stream, int batch) {
    rondo_device *device = queue->context->device;
    void *staging = NULL;
    if (rondo_memory_allocate(device, RONDO_MEMORY_PINNED, BATCH_WORDS * sizeof(uint32_t),
                              &staging) != RONDO_STATUS_OK) {
        return false;
    }
    for (uint32_t i = 0; i < BATCH_WORDS; ++i) {
        ((uint32_t *)staging)[i] = (uint32_t)batch * 1000 + i;
    }
    bool is_loaded = rondo_stream_copy(stream, queue->slots[batch % SLOTS], staging,
                                       BATCH_WORDS * sizeof(uint32_t),
                                       RONDO_COPY_HOST_TO_DEVICE) == RONDO_STATUS_OK &&
                     rondo_stream_synchronize(stream) == RONDO_STATUS_OK;
    rondo_memory_free(device, staging);
    return is_loaded;
}

static void fail_loading(loader_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->has_failed = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

// When the case stops in its middle, the loaders must, too.
static void stop_loaders(void *object) {
    fail_loading(object);
}

static void *run_loader(void *argument) {
    loader_queue *queue = argument;
    const int batches = suite_rounds(BATCHES, 8);
    rondo_stream *stream = NULL;
    bool is_fine = rondo_stream_create(queue->context->device, NULL, &stream) == RONDO_STATUS_OK;
    while (is_fine) {
        pthread_mutex_lock(&queue->lock);
        int batch = queue->next_batch++;
        while (batch < batches && batch - queue->consumed >= SLOTS && !queue->has_failed) {
            pthread_cond_wait(&queue->changed, &queue->lock);
        }
        bool is_over = batch >= batches || queue->has_failed;
        pthread_mutex_unlock(&queue->lock);
        if (is_over) {
            break;
        }
        is_fine = load_batch(queue, stream, batch);
        pthread_mutex_lock(&queue->lock);
        queue->filled[batch % SLOTS] = batch;
        queue->has_failed = queue->has_failed || !is_fine;
        pthread_cond_broadcast(&queue->changed);
        pthread_mutex_unlock(&queue->lock);
    }
    if (!is_fine) {
        fail_loading(queue);
    }
    rondo_stream_destroy(stream);
    return NULL;
}

SUITE_CASE_EXECUTED(paddle_03_capture_beside_loader_threads) {
    rondo_stream *stream = context->stream;
    static loader_queue queue;
    queue = (loader_queue){.context = context};
    pthread_mutex_init(&queue.lock, NULL);
    pthread_cond_init(&queue.changed, NULL);
    for (int i = 0; i < SLOTS; ++i) {
        queue.slots[i] = suite_allocate(context, RONDO_MEMORY_DEVICE, BATCH_WORDS);
        queue.filled[i] = -1;
    }
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, BATCH_WORDS);
    rondo_graph *graph = suite_create_graph(context, false);
    suite_remember(stop_loaders, &queue);
    pthread_t loaders[LOADERS];
    for (int i = 0; i < LOADERS; ++i) {
        assert_int_equal(pthread_create(&loaders[i], NULL, run_loader, &queue), 0);
    }
    int wrong = 0;
    bool has_failed = false;
    for (int batch = 0; batch < suite_rounds(BATCHES, 8); ++batch) {
        pthread_mutex_lock(&queue.lock);
        while (queue.filled[batch % SLOTS] != batch && !queue.has_failed) {
            pthread_cond_wait(&queue.changed, &queue.lock);
        }
        has_failed = queue.has_failed;
        pthread_mutex_unlock(&queue.lock);
        if (has_failed) {
            break;
        }
        ASSERT_OK(rondo_stream_copy(stream, x, queue.slots[batch % SLOTS],
                                    BATCH_WORDS * sizeof(uint32_t), RONDO_COPY_DEVICE_TO_DEVICE));
        if (batch == 0) {
            // On the first batch, while the loaders go on.
            begin(graph, stream);
            for (int i = 0; i < 50; ++i) {
                ASSERT_OK(suite_affine(context, stream, x, BATCH_WORDS, 1, 2));
            }
            ASSERT_OK(rondo_graph_capture_end(graph));
        }
        ASSERT_OK(rondo_graph_replay(graph, stream));
        ASSERT_OK(rondo_stream_synchronize(stream));
        uint32_t last;
        suite_read(context, &last, x + BATCH_WORDS - 1, sizeof last);
        wrong += last != (uint32_t)batch * 1000 + BATCH_WORDS - 1 + 100;
        pthread_mutex_lock(&queue.lock);
        queue.consumed = batch + 1;
        pthread_cond_broadcast(&queue.changed);
        pthread_mutex_unlock(&queue.lock);
    }
    for (int i = 0; i < LOADERS; ++i) {
        pthread_join(loaders[i], NULL);
    }
    suite_forget(&queue);
    assert_false(queue.has_failed);
    assert_int_equal(wrong, 0);
    assert_int_equal(queue.consumed, suite_rounds(BATCHES, 8));
    rondo_graph_destroy(graph);
    for (int i = 0; i < SLOTS; ++i) {
        suite_free(context, RONDO_MEMORY_DEVICE, queue.slots[i]);
    }
    suite_free(context, RONDO_MEMORY_DEVICE, x);
    pthread_mutex_destroy(&queue.lock);
    pthread_cond_destroy(&queue.changed);
}

// ---- an op with a workspace -------------------------------------------------------------------

// y = (x * 3 + 1) through a workspace that the op takes for itself.
static rondo_status op_with_workspace(suite_context *context, rondo_pool *pool,
                                      rondo_stream *stream, uint32_t *x, uint32_t *y,
                                      uint32_t count) {
    void *workspace = NULL;
    rondo_status status = rondo_pool_allocate(pool, stream, count * sizeof *x, &workspace);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    ASSERT_OK(
        rondo_stream_copy(stream, workspace, x, count * sizeof *x, RONDO_COPY_DEVICE_TO_DEVICE));
    ASSERT_OK(suite_affine(context, stream, workspace, count, 3, 1));
    ASSERT_OK(
        rondo_stream_copy(stream, y, workspace, count * sizeof *x, RONDO_COPY_DEVICE_TO_DEVICE));
    return rondo_pool_free(pool, workspace);
}

SUITE_CASE(paddle_04_workspace_inside_a_capture) {
    enum { COUNT = 5000 };
    rondo_pool *pool;
    ASSERT_OK(rondo_pool_create(context->device, NULL, &pool));
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    uint32_t *y = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    rondo_graph *graph = suite_create_graph(context, false);
    begin(graph, context->stream);
    // First use of the pool: it has to ask the driver, in the middle of the capture.
    ASSERT_OK(op_with_workspace(context, pool, context->stream, x, y, COUNT));
    ASSERT_OK(op_with_workspace(context, pool, context->stream, y, y, COUNT));
    ASSERT_OK(rondo_graph_capture_end(graph));
    for (uint32_t round = 1; round < 4; ++round) {
        suite_set(context, x, round, COUNT);
        // Others use the pool meanwhile.
        ASSERT_OK(op_with_workspace(context, pool, context->stream, x, y, COUNT));
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
        ASSERT_OK(rondo_stream_synchronize(context->stream));
        ASSERT_VALUE(context, y, COUNT - 1, (round * 3 + 1) * 3 + 1);
    }
    rondo_graph_destroy(graph);
    rondo_pool_release(pool);
}
