// Memory in a capture: temporaries from a pool are the graph's, and two graphs share theirs. Runs
// on every machine.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

enum { CELLS = 1024 };

typedef struct scale {
    const float *from;
    float *to;
    float factor;
} scale;

static void run_scale(void *arguments) {
    const scale *k = arguments;
    for (int i = 0; i < CELLS; ++i) {
        k->to[i] = k->factor * k->from[i];
    }
}

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

// ---- the step
// y = 2 * (3 * x), by a temporary. The same code serves eagerly and in a capture.
static void put_step(rondo_pool *pool, rondo_stream *stream, const float *x, float *y) {
    void *temporary;
    check(rondo_pool_allocate(pool, stream, CELLS * sizeof(float), &temporary));
    const scale first = {x, temporary, 3.0f}, second = {temporary, y, 2.0f};
    check(rondo_stream_call_host(stream, "first", run_scale, &first, sizeof first));
    check(rondo_stream_call_host(stream, "second", run_scale, &second, sizeof second));
    check(rondo_pool_free(pool, temporary));  // at once: work of the stream may still use it
}

// ---- two graphs, one arena
static void capture(rondo_device *device, rondo_stream *stream, rondo_pool *pool, float *x,
                    float *y, rondo_arena *arena, rondo_graph **out_graph) {
    const rondo_graph_options options = {.struct_size = sizeof options, .arena = arena};
    check(rondo_graph_create(device, &options, out_graph));
    check(rondo_graph_capture_begin(*out_graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    put_step(pool, stream, x, y);
    check(rondo_graph_capture_end(*out_graph));
}

// ---- the rest
int main(void) {
    static float x[CELLS], y[CELLS], z[CELLS];
    rondo_device *device;
    rondo_stream *stream;
    rondo_pool *pool;
    rondo_arena *arena;
    rondo_graph *graphs[2];
    check(rondo_device_open("host", &device));
    check(rondo_stream_create(device, NULL, &stream));
    check(rondo_pool_create(device, NULL, &pool));
    check(rondo_arena_create(device, NULL, &arena));
    capture(device, stream, pool, x, y, arena, &graphs[0]);
    capture(device, stream, pool, y, z, arena, &graphs[1]);
    x[7] = 1.0f;
    check(rondo_graph_replay(graphs[0], stream));
    check(rondo_graph_replay(graphs[1], stream));
    check(rondo_stream_synchronize(stream));

    rondo_arena_stats stats = {.struct_size = sizeof stats};
    check(rondo_arena_get_stats(arena, &stats));
    printf("z[7] is %g; two graphs with a temporary of %zu bytes each hold %llu bytes together\n",
           (double)z[7], CELLS * sizeof(float), (unsigned long long)stats.live_peak_bytes);
    const int is_right = z[7] == 36.0f && stats.live_peak_bytes < 2 * CELLS * sizeof(float);
    rondo_graph_destroy(graphs[0]), rondo_graph_destroy(graphs[1]);
    rondo_arena_release(arena), rondo_pool_release(pool);
    rondo_stream_destroy(stream), rondo_device_release(device);
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
