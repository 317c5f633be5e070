// What a graph cache costs: a hit with few and with many graphs, over the replay alone; random
// changes of keys under a budget, with the growth of memory; the policies beside each other.
//
//   build/bench/graph_cache DEVICE [--quick] [--check]
//
//   DEVICE    "host" or "cuda:N"
//   --quick   fewer rounds: for a look, not for a record
//   --check   exit status 1 when a goal is missed
//
// Steps are fills, which every device has. Hits and replays are timed in blocks of calls, one of
// each kind in turn, and the stream is drained between blocks, outside of the times. Both go over
// their graphs in random order: with thousands in use each call finds its graph outside of the
// processor's caches, and that is no matter of the look-up. Printed is what one block in ten does
// not exceed, since other programs disturb the rest.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/backend.h"
#include "base/clock.h"
#include "bench.h"
#include "goals.h"
#include "rondo/rondo.h"

enum { FEW = 16, MANY = 4096, BLOCK_CALLS = 512, KEYS = 50, BUDGET = 8, COUNT = 64 };

typedef struct bench {
    rondo_device *device;
    rondo_stream *stream;
    uint32_t *memory;
    bool is_quick;
} bench;

// 64 bytes, as shapes of a few tensors and flags take.
typedef struct key {
    uint32_t value;
    uint32_t fill_count;
    uint32_t rest[14];
} key;

typedef struct step_data {
    const bench *b;
    key key;
} step_data;

// The tenth part of the values is below it: what a block takes while nobody disturbs it.
static double get_quiet(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare_doubles);
    return values[count / 10];
}

static uint32_t draw(uint32_t *state, uint32_t count) {
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(*state >> 8) * count) >> 24);
}

// memory[i] = value + i for the first fill_count; and the last is `value`, whoever was before.
static rondo_status run_step(rondo_stream *stream, void *user_data) {
    const step_data *data = user_data;
    uint32_t *memory = data->b->memory;
    rondo_status status =
        rondo_stream_fill(stream, memory + COUNT - 1, data->key.value, sizeof(uint32_t), 1);
    for (uint32_t i = 0; status == RONDO_STATUS_OK && i < data->key.fill_count; ++i) {
        status = rondo_stream_fill(stream, memory + i, data->key.value + i, sizeof(uint32_t), 1);
    }
    return status;
}

static rondo_cache_outcome run(const bench *b, rondo_graph_cache *cache, uint32_t value,
                               uint32_t fill_count) {
    step_data data = {.b = b, .key = {.value = value, .fill_count = fill_count}};
    rondo_cache_outcome outcome;
    must(rondo_graph_cache_run(cache, &data.key, sizeof data.key, b->stream, run_step, &data,
                               &outcome));
    return outcome;
}

static rondo_graph_cache *create_cache(const bench *b, rondo_cache_policy policy,
                                       size_t entry_limit) {
    rondo_graph_cache *cache = NULL;
    rondo_graph_cache_options options = {.struct_size = sizeof options};
    options.policy = policy;
    options.entry_limit = entry_limit;
    must(rondo_graph_cache_create(b->device, &options, &cache));
    return cache;
}

// ---- the library's heap -----------------------------------------------------------------------

// The bytes that the library asked for and has not given back. (What malloc says of itself counts
// blocks that it keeps for the thread.) In front of each area stands its size.
enum { HEAD_BYTES = 64 };
static _Atomic(int64_t) g_heap_bytes;

static void *allocate(void *user_data, size_t bytes, size_t alignment) {
    (void)user_data;
    size_t head = alignment > HEAD_BYTES ? alignment : HEAD_BYTES;
    char *area = aligned_alloc(head, (head + bytes + head - 1) / head * head);
    if (area == NULL) {
        return NULL;
    }
    memcpy(area + head - 2 * sizeof(size_t), &head, sizeof head);
    memcpy(area + head - sizeof(size_t), &bytes, sizeof bytes);
    atomic_fetch_add(&g_heap_bytes, (int64_t)bytes);
    return area + head;
}

static void free_area(void *user_data, void *address) {
    size_t head;
    size_t bytes;
    (void)user_data;
    if (address != NULL) {
        memcpy(&head, (char *)address - 2 * sizeof(size_t), sizeof head);
        memcpy(&bytes, (char *)address - sizeof(size_t), sizeof bytes);
        atomic_fetch_sub(&g_heap_bytes, (int64_t)bytes);
        free((char *)address - head);
    }
}

static void *reallocate(void *user_data, void *address, size_t bytes) {
    size_t former = 0;
    void *moved = allocate(user_data, bytes, HEAD_BYTES);
    if (moved != NULL && address != NULL) {
        memcpy(&former, (char *)address - sizeof(size_t), sizeof former);
        memcpy(moved, address, former < bytes ? former : bytes);
        free_area(user_data, address);
    }
    return moved;
}

// ---- hits -------------------------------------------------------------------------------------

static rondo_graph **capture_graphs(const bench *b, uint32_t count) {
    rondo_graph **graphs = calloc(count, sizeof(rondo_graph *));
    for (uint32_t i = 0; graphs != NULL && i < count; ++i) {
        step_data data = {.b = b, .key = {.value = i}};
        must(rondo_graph_create(b->device, NULL, &graphs[i]));
        must(rondo_graph_capture_begin(graphs[i], b->stream, RONDO_CAPTURE_THREAD_LOCAL));
        must(run_step(b->stream, &data));
        must(rondo_graph_capture_end(graphs[i]));
    }
    return graphs;
}

// Holds the stream until the block is submitted. Otherwise a call sometimes has to wake whoever
// runs the work, which takes longer than the call.
static atomic_bool g_is_open;

static void wait_for_gate(void *arguments) {
    (void)arguments;
    while (!atomic_load(&g_is_open)) {
        struct timespec pause = {.tv_nsec = 20000};
        nanosleep(&pause, NULL);
    }
}

// Nanoseconds a call of a block of hits, or of replays where there is no cache. Of `count` graphs
// `used_count` are used.
static double time_block(const bench *b, rondo_graph_cache *cache, rondo_graph **graphs,
                         uint32_t count, uint32_t used_count, uint32_t *seed) {
    uint32_t order[BLOCK_CALLS];
    for (size_t i = 0; i < BLOCK_CALLS; ++i) {
        order[i] = draw(seed, used_count) * (count / used_count);
    }
    atomic_store(&g_is_open, false);
    must(rondo_stream_call_host(b->stream, "gate", wait_for_gate, NULL, 0));
    uint64_t start = rondo__clock_now_ns();
    for (size_t i = 0; i < BLOCK_CALLS; ++i) {
        if (cache != NULL) {
            (void)run(b, cache, order[i], 0);
        } else {
            must(rondo_graph_replay(graphs[order[i]], b->stream));
        }
    }
    uint64_t end = rondo__clock_now_ns();
    atomic_store(&g_is_open, true);
    must(rondo_stream_synchronize(b->stream));
    return (double)(end - start) / BLOCK_CALLS;
}

static void measure_hits(const bench *b) {
    enum { KINDS = 5, BLOCKS = 400 };
    static const struct {
        const char *name;
        bool is_many, is_replay;
        uint32_t used_count;
    } kinds[KINDS] = {
        {"a hit among 16 graphs", false, false, FEW},
        {"a hit among 4096 graphs, of which 16 are in use", true, false, FEW},
        {"a hit among 4096 graphs, all in use", true, false, MANY},
        {"rondo_graph_replay of one of 16 graphs", false, true, FEW},
        {"rondo_graph_replay of one of 4096 graphs, all in use", true, true, MANY},
    };
    static const uint32_t counts[2] = {FEW, MANY};
    static double times[KINDS][BLOCKS];
    rondo_graph_cache *caches[2];
    rondo_graph **graphs[2];
    double ns[KINDS];
    size_t blocks = b->is_quick ? 40 : BLOCKS;
    uint32_t seed = 1;
    for (size_t i = 0; i < 2; ++i) {
        caches[i] = create_cache(b, RONDO_CACHE_ALWAYS_CAPTURE, MANY);
        graphs[i] = capture_graphs(b, counts[i]);
        for (uint32_t j = 0; j < counts[i] * 10; ++j) {
            (void)run(b, caches[i], j % counts[i], 0);
        }
        must(rondo_stream_synchronize(b->stream));
    }
    for (size_t block = 0; block < blocks; ++block) {
        for (size_t i = 0; i < KINDS; ++i) {
            size_t at = (i + block) % KINDS;
            size_t side = kinds[at].is_many ? 1 : 0;
            times[at][block] = time_block(b, kinds[at].is_replay ? NULL : caches[side],
                                          graphs[side], counts[side], kinds[at].used_count, &seed);
        }
    }
    print_head("hits, keys of 64 bytes in random order");
    for (size_t at = 0; at < KINDS; ++at) {
        ns[at] = get_quiet(times[at], blocks);
        report(kinds[at].name, ns[at], "ns", NO_GOAL, 0);
    }
    report("a hit among 4096, 16 in use: times that among 16", ns[1] / ns[0], "", AT_MOST, 1.5);
    report("  all in use: times that among 16", ns[2] / ns[0], "", NO_GOAL, 0);
    report("a replay, all of 4096 in use: times that of 16", ns[4] / ns[3], "", NO_GOAL, 0);
    report("a hit over the replay, 16 graphs", ns[0] - ns[3], "ns", NO_GOAL, 0);
    for (size_t i = 0; i < 2; ++i) {
        rondo_graph_cache_destroy(caches[i]);
        for (uint32_t j = 0; j < counts[i]; ++j) {
            rondo_graph_destroy(graphs[i][j]);
        }
        free(graphs[i]);
    }
}

// ---- random changes ---------------------------------------------------------------------------

static double get_heap_bytes(void) {
    return (double)atomic_load(&g_heap_bytes);
}

static double get_device_bytes(const bench *b) {
    uint64_t free_bytes = 0;
    if (b->device->backend->get_free_bytes != NULL) {
        must(b->device->backend->get_free_bytes(b->device, &free_bytes));
    }
    return -(double)free_bytes;
}

static void check(const bench *b, uint32_t value, uint32_t fill_count) {
    uint32_t seen[COUNT];
    must(rondo_stream_synchronize(b->stream));
    must(rondo_stream_copy(b->stream, seen, b->memory, sizeof seen, RONDO_COPY_DEVICE_TO_HOST));
    must(rondo_stream_synchronize(b->stream));
    bool is_right = seen[COUNT - 1] == value;
    for (uint32_t i = 0; i < fill_count; ++i) {
        is_right = is_right && seen[i] == value + i;
    }
    if (!is_right) {
        fprintf(stderr, "graph_cache: the results of key %u are wrong\n", (unsigned)value);
        exit(2);
    }
}

// Microseconds a run. Steps have 4 to 12 fills, so that not every graph can be patched.
static double change(const bench *b, rondo_graph_cache *cache, int count, uint32_t *seed) {
    uint64_t spent = 0;
    for (int i = 0; i < count; ++i) {
        uint32_t value = draw(seed, KEYS);
        uint32_t fill_count = 4 * (1 + value % 3);
        uint64_t start = rondo__clock_now_ns();
        (void)run(b, cache, value, fill_count);
        spent += rondo__clock_now_ns() - start;
        if (i % 50 == 49) {
            check(b, value, fill_count);
        }
    }
    // The same graphs are held at the end of each call.
    must(rondo_stream_synchronize(b->stream));
    must(rondo_graph_cache_clear(cache));
    for (uint32_t i = 0; i < 3 * BUDGET; ++i) {
        (void)run(b, cache, i % BUDGET, 4 * (1 + (i % BUDGET) % 3));
    }
    must(rondo_stream_synchronize(b->stream));
    return (double)spent / 1e3 / (double)count;
}

static void measure_changes(const bench *b) {
    static const struct {
        const char *name;
        rondo_cache_policy policy;
    } rows[] = {
        {"never captured", RONDO_CACHE_NEVER_CAPTURE},
        {"always captured", RONDO_CACHE_ALWAYS_CAPTURE},
        {"measured", RONDO_CACHE_MEASURED},
    };
    int count = b->is_quick ? 2000 : 10000;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char title[96];
        uint32_t seed = 7;
        rondo_graph_cache *cache = create_cache(b, rows[i].policy, BUDGET);
        (void)change(b, cache, count / 2, &seed);
        double heap = get_heap_bytes();
        double device = get_device_bytes(b);
        double us = change(b, cache, count, &seed);
        double heap_growth = get_heap_bytes() - heap;
        double device_growth = get_device_bytes(b) - device;
        rondo_graph_cache_stats stats = {.struct_size = sizeof stats};
        must(rondo_graph_cache_get_stats(cache, &stats));
        snprintf(title, sizeof title, "%d random changes of %d keys, room for %d; %s", count, KEYS,
                 BUDGET, rows[i].name);
        print_head(title);
        report("a run", us, "us", NO_GOAL, 0);
        report("hits of 100 runs",
               100.0 * (double)stats.hit_count / (double)(stats.hit_count + stats.miss_count), "",
               NO_GOAL, 0);
        report("captures", (double)stats.capture_count, "", NO_GOAL, 0);
        report("  of them by patching", (double)stats.update_count, "", NO_GOAL, 0);
        report("growth of the heap", heap_growth, "bytes", AT_MOST, 0);
        report("growth of the device's memory", device_growth, "bytes", AT_MOST, 0);
        rondo_graph_cache_destroy(cache);
    }
}

// ---- bytes ------------------------------------------------------------------------------------

// What a cache says that a graph takes, beside what the library's heap says.
static void measure_bytes(const bench *b) {
    static const uint32_t sizes[] = {0, 9, 60};
    enum { GRAPHS = 100 };
    print_head("bytes of a graph on the host");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        char what[64];
        rondo_graph_cache *cache = create_cache(b, RONDO_CACHE_ALWAYS_CAPTURE, 2 * GRAPHS);
        (void)run(b, cache, 0, sizes[i]);
        double before = get_heap_bytes();
        for (uint32_t j = 1; j <= GRAPHS; ++j) {
            (void)run(b, cache, j, sizes[i]);
        }
        double bytes = (get_heap_bytes() - before) / GRAPHS;
        rondo_graph_cache_stats stats = {.struct_size = sizeof stats};
        must(rondo_graph_cache_get_stats(cache, &stats));
        snprintf(what, sizeof what, "%u fills, taken from the heap", (unsigned)sizes[i] + 1);
        report(what, bytes, "bytes", NO_GOAL, 0);
        snprintf(what, sizeof what, "%u fills, as the cache says", (unsigned)sizes[i] + 1);
        report(what, (double)stats.bytes / (GRAPHS + 1), "bytes", NO_GOAL, 0);
        rondo_graph_cache_destroy(cache);
    }
}

// ---- one key ----------------------------------------------------------------------------------

// The policies on a key that comes all the time: measured is never the slowest.
static void measure_one_key(const bench *b) {
    static const uint32_t sizes[] = {0, 10, 60};
    static const char *const names[] = {"measured", "always captured", "never captured"};
    enum { BLOCKS = 200 };
    static double times[3][BLOCKS];
    size_t blocks = b->is_quick ? 20 : BLOCKS;
    print_head("one key, again and again");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        rondo_graph_cache *caches[3];
        for (int32_t policy = 0; policy < 3; ++policy) {
            caches[policy] = create_cache(b, policy, BUDGET);
            for (int j = 0; j < 200; ++j) {
                (void)run(b, caches[policy], 1, sizes[i]);
            }
        }
        for (size_t block = 0; block < blocks; ++block) {
            for (size_t at = 0; at < 3; ++at) {
                rondo_graph_cache *cache = caches[(at + block) % 3];
                uint64_t start = rondo__clock_now_ns();
                for (int j = 0; j < 50; ++j) {
                    (void)run(b, cache, 1, sizes[i]);
                }
                times[(at + block) % 3][block] = (double)(rondo__clock_now_ns() - start) / 50;
                must(rondo_stream_synchronize(b->stream));
            }
        }
        for (size_t at = 0; at < 3; ++at) {
            char what[64];
            snprintf(what, sizeof what, "%u fills, %s", (unsigned)sizes[i] + 1, names[at]);
            report(what, get_quiet(times[at], blocks), "ns", NO_GOAL, 0);
        }
        key wanted = {.value = 1, .fill_count = sizes[i]};
        rondo_graph_cache_entry entry = {.struct_size = sizeof entry};
        must(rondo_graph_cache_get_entry(caches[0], &wanted, sizeof wanted, &entry));
        printf("| &nbsp; %s | | | |\n", entry.reason);
        for (size_t at = 0; at < 3; ++at) {
            rondo_graph_cache_destroy(caches[at]);
        }
    }
}

int main(int argc, char **argv) {
    bench b = {.device = NULL};
    bool is_checked = false;
    for (int i = 2; i < argc; ++i) {
        b.is_quick = b.is_quick || strcmp(argv[i], "--quick") == 0;
        is_checked = is_checked || strcmp(argv[i], "--check") == 0;
    }
    if (argc < 2) {
        fprintf(stderr, "usage: graph_cache DEVICE [--quick] [--check]\n");
        return 2;
    }
    void *memory = NULL;
    rondo_allocator heap = {.struct_size = sizeof heap,
                            .allocate = allocate,
                            .reallocate = reallocate,
                            .free = free_area};
    must(rondo_set_allocator(&heap));
    must(rondo_device_open(argv[1], &b.device));
    must(rondo_stream_create(b.device, NULL, &b.stream));
    must(rondo_memory_allocate(b.device, RONDO_MEMORY_DEVICE, COUNT * sizeof(uint32_t), &memory));
    b.memory = memory;
    printf("Rondo %s, %s\n", rondo_version_get_text(), argv[1]);
    measure_hits(&b);
    measure_changes(&b);
    measure_bytes(&b);
    measure_one_key(&b);
    rondo_memory_free(b.device, memory);
    rondo_stream_destroy(b.stream);
    rondo_device_release(b.device);
    return is_checked && g_missed_count > 0 ? 1 : 0;
}
