// A block's threads run one after the other on one fiber, until one of them waits; then another
// fiber goes on with the next thread. So a kernel without barriers takes one fiber and no switches.
// When every thread has ended or waits, those whose meeting is complete go on. They do so in turns
// from the first to the last thread and from the last to the first, so that a kernel which lacks a
// barrier does not come out right by the order alone.
// SPDX-License-Identifier: Apache-2.0
#include "emulated/emulated_run.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emulated/emulated_fiber.h"

enum {
    CLUSTER_MAX = 8,
    BLOCK_MAX = 1024,
    THREADS_MAX = EMULATED_THREADS,
    SHARED_BYTES_MAX = 232448,
    POISON = 0xcd,
    IDLE_ROUNDS_MAX = 10000,  // in which threads only look whether others have come
};

typedef enum thread_state {
    RUNS,
    WAITS_FOR_WARP,
    WAITS_FOR_BLOCK,
    WAITS_FOR_CLUSTER,
    WAITS_FOR_TURN,
    HAS_ENDED,
} thread_state;

typedef struct thread_place {
    thread_state state;
    unsigned int fiber;
    unsigned int lanes;          // that it waits for
    unsigned int meeting_count;  // with its warp, so far
} thread_place;

// Where a thread stands, the same for all blocks of a launch.
typedef struct thread_home {
    emulated_extent thread;
    unsigned int block, lane;  // in the cluster, in the warp
    unsigned char *shared;
    emulated_words (*words)[EMULATED_WARP];  // both sets of its warp
} thread_home;

static emulated_machine g_machine;
static thread_home g_homes[THREADS_MAX];
static thread_place g_threads[THREADS_MAX];  // of the cluster, block by block
static emulated_words g_words[THREADS_MAX / EMULATED_WARP][2][EMULATED_WARP];
static unsigned int g_lanes;  // that came to the last meeting
static unsigned int g_block_threads, g_thread_count, g_next_thread, g_thread, g_fiber;
static unsigned int g_ended_count;
static unsigned int g_first_block;  // x of the cluster's first block
static emulated_thread g_kernel;
static const unsigned char *g_arguments;

// Once a launch: the divisions would be half of a switch.
static void place_threads(void) {
    const emulated_extent size = g_machine.block_size;
    const unsigned int warps = (g_block_threads + EMULATED_WARP - 1) / EMULATED_WARP;
    for (unsigned int index = 0; index < g_thread_count; index++) {
        const unsigned int block = index / g_block_threads, at = index % g_block_threads;
        g_homes[index] = (thread_home){
            .thread = {at % size.x, at / size.x % size.y, at / size.x / size.y},
            .block = block,
            .lane = at % EMULATED_WARP,
            .shared = g_machine.cluster_shared + (size_t)EMULATED_BLOCK_SHARED * block,
            .words = g_words[block * warps + at / EMULATED_WARP],
        };
    }
}

static void select_thread(unsigned int index) {
    const thread_home *home = &g_homes[index];
    g_thread = index;
    g_machine.index = index;
    g_machine.thread = home->thread;
    g_machine.block.x = g_first_block + home->block;
    g_machine.shared = home->shared;
}

static void fiber_main(void) {
    while (g_next_thread < g_thread_count) {
        const unsigned int index = g_next_thread++;
        select_thread(index);
        g_kernel(&g_machine, g_arguments);
        g_threads[g_thread].state = HAS_ENDED;
        g_ended_count++;
    }
    emulated_fiber_switch(g_fiber, 0);
    abort();
}

static void wait_for(thread_state state) {
    g_threads[g_thread].state = state;
    g_threads[g_thread].fiber = g_fiber;
    emulated_fiber_switch(g_fiber, 0);
}

static void meet_block(void) {
    wait_for(WAITS_FOR_BLOCK);
}

static void meet_cluster(void) {
    wait_for(WAITS_FOR_CLUSTER);
}

static void yield(void) {
    wait_for(WAITS_FOR_TURN);
}

// Two sets of words: a lane may bring its next word while others have not read the last ones.
static const emulated_words *meet_warp(unsigned int lanes, const emulated_words *words,
                                       unsigned int *out_lanes) {
    const thread_home *home = &g_homes[g_thread];
    thread_place *place = &g_threads[g_thread];
    emulated_words *all = home->words[place->meeting_count++ % 2];
    all[home->lane] = *words;
    place->lanes = lanes;
    wait_for(WAITS_FOR_WARP);
    *out_lanes = g_lanes;
    return all;
}

static unsigned long long now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
}

static void resume(unsigned int index) {
    g_threads[index].state = RUNS;
    select_thread(index);
    g_fiber = g_threads[index].fiber;
    emulated_fiber_switch(0, g_fiber);
}

// The lanes that wait for each other as `lane` does; 0 when one of them neither waits so nor has
// ended.
static unsigned int find_meeting(const thread_place *warp, unsigned int lane_count,
                                 unsigned int lane) {
    unsigned int meeting = 0;
    for (unsigned int i = 0; i < lane_count; i++) {
        if ((warp[lane].lanes >> i & 1u) == 0 || warp[i].state == HAS_ENDED) {
            continue;
        }
        if (warp[i].state != WAITS_FOR_WARP || warp[i].lanes != warp[lane].lanes) {
            return 0;
        }
        meeting |= 1u << i;
    }
    return meeting;
}

static bool release_warp(unsigned int first, unsigned int end, bool is_backward) {
    const unsigned int lane_count = end - first < EMULATED_WARP ? end - first : EMULATED_WARP;
    const thread_place *warp = &g_threads[first];
    unsigned int meeting = 0;
    for (unsigned int lane = 0; lane < lane_count && meeting == 0; lane++) {
        if (warp[lane].state == WAITS_FOR_WARP) {
            meeting = find_meeting(warp, lane_count, lane);
        }
    }
    g_lanes = meeting;
    for (unsigned int n = 0; n < lane_count && meeting != 0; n++) {
        const unsigned int i = is_backward ? lane_count - 1 - n : n;
        if ((meeting >> i & 1u) != 0) {
            resume(first + i);
        }
    }
    return meeting != 0;
}

// Lets threads go on when all of [first, end) that have not ended wait for `state`.
static bool release_range(unsigned int first, unsigned int end, thread_state state,
                          bool is_backward) {
    bool is_any = false;
    for (unsigned int i = first; i < end; i++) {
        if (g_threads[i].state != state && g_threads[i].state != HAS_ENDED) {
            return false;
        }
        is_any = is_any || g_threads[i].state == state;
    }
    for (unsigned int n = first; n < end && is_any; n++) {
        const unsigned int i = is_backward ? end - 1 - (n - first) : n;
        if (g_threads[i].state == state) {
            resume(i);
        }
    }
    return is_any;
}

static bool release_turns(bool is_backward) {
    bool is_any = false;
    for (unsigned int n = 0; n < g_thread_count; n++) {
        const unsigned int i = is_backward ? g_thread_count - 1 - n : n;
        if (g_threads[i].state == WAITS_FOR_TURN) {
            is_any = true;
            resume(i);
        }
    }
    return is_any;
}

// One step for all that can go on. False: none can.
static bool release_all(bool is_backward) {
    bool is_any = false;
    for (unsigned int block = 0; block < g_thread_count; block += g_block_threads) {
        const unsigned int end = block + g_block_threads;
        bool is_warp = false;
        for (unsigned int first = block; first < end; first += EMULATED_WARP) {
            is_warp = release_warp(first, end, is_backward) || is_warp;
        }
        is_any = is_any || is_warp || release_range(block, end, WAITS_FOR_BLOCK, is_backward);
    }
    return is_any || release_range(0, g_thread_count, WAITS_FOR_CLUSTER, is_backward);
}

static bool run_cluster(void) {
    memset(g_threads, 0, g_thread_count * sizeof(g_threads[0]));
    g_next_thread = 0;
    g_ended_count = 0;
    for (unsigned int fiber = 1; g_next_thread < g_thread_count; fiber++) {
        g_fiber = fiber;
        emulated_fiber_start(fiber, fiber_main);
        emulated_fiber_switch(0, fiber);
    }
    unsigned int idle_rounds = 0;
    for (bool is_backward = true; g_ended_count < g_thread_count; is_backward = !is_backward) {
        const bool is_released = release_all(is_backward);
        idle_rounds = is_released ? 0 : idle_rounds + 1;
        if ((!release_turns(is_backward) && !is_released) || idle_rounds > IDLE_ROUNDS_MAX) {
            return false;
        }
    }
    return true;
}

bool emulated_run(const emulated_kernel *kernel, const unsigned int shape[7],
                  const unsigned char *arguments, const char **out_problem) {
    static _Alignas(1024) unsigned char shared[CLUSTER_MAX][EMULATED_BLOCK_SHARED];
    const unsigned long long threads = (unsigned long long)shape[3] * shape[4] * shape[5];
    *out_problem = NULL;
    if (threads == 0 || threads > BLOCK_MAX || shape[6] > SHARED_BYTES_MAX || shape[0] == 0 ||
        shape[1] == 0 || shape[2] == 0 || shape[1] > 65535 || shape[2] > 65535 ||
        kernel->cluster > CLUSTER_MAX || shape[0] % kernel->cluster != 0) {
        *out_problem = "a grid or a block of this shape cannot be launched";
        return false;
    }
    g_kernel = kernel->thread;
    g_arguments = arguments;
    g_block_threads = (unsigned int)threads;
    g_thread_count = g_block_threads * kernel->cluster;
    g_machine = (emulated_machine){
        .block_size = {shape[3], shape[4], shape[5]},
        .grid_size = {shape[0], shape[1], shape[2]},
        .cluster_shared = shared[0],
        .meet_block = meet_block,
        .meet_cluster = meet_cluster,
        .meet_warp = meet_warp,
        .yield = yield,
        .now_ns = now_ns,
    };
    place_threads();
    emulated_extent *block = &g_machine.block;
    for (block->z = 0; block->z < shape[2]; block->z++) {
        for (block->y = 0; block->y < shape[1]; block->y++) {
            for (g_first_block = 0; g_first_block < shape[0]; g_first_block += kernel->cluster) {
                for (unsigned int i = 0; i < kernel->cluster; i++) {
                    memset(shared[i], POISON, shape[6]);
                }
                if (!run_cluster()) {
                    *out_problem =
                        "some threads of a block wait for a barrier and others of their "
                        "warp for a shuffle, or for what nobody does";
                    return false;
                }
            }
        }
    }
    return true;
}

// ---- images -----------------------------------------------------------------------------------

void *emulated_load(const void *image, const char **out_problem) {
    const size_t head = strlen(EMULATED_MAGIC) + 8;
    const unsigned char *bytes = image;
    char path[64];
    uint64_t size = 0;
    static unsigned int load_count;
    *out_problem = NULL;
    if (strncmp(image, EMULATED_MAGIC, strlen(EMULATED_MAGIC)) != 0) {
        *out_problem = "the image is not one of the emulation's compiler";
        return NULL;
    }
    for (size_t i = 0; i < 8; i++) {
        size |= (uint64_t)bytes[head - 8 + i] << (8 * i);
    }
    // The loader takes a file of the same name for the same library, so the name counts, too.
    (void)snprintf(path, sizeof(path), "/tmp/rondo-kernel-%u-XXXXXX", ++load_count);
    const int file = mkstemp(path);
    const bool is_written = file >= 0 && write(file, bytes + head, size) == (ssize_t)size;
    void *module = is_written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (file >= 0) {
        close(file);
        unlink(path);
    }
    if (module == NULL) {
        *out_problem = is_written ? dlerror() : "no file could be written to /tmp";
    }
    return module;
}

static void *find_symbol(void *module, const char *prefix, const char *name) {
    char symbol[256];
    (void)snprintf(symbol, sizeof(symbol), "%s%s", prefix, name);
    return dlsym(module, symbol);
}

emulated_kernel emulated_find(void *module, const char *kernel_name) {
    emulated_kernel kernel = {.cluster = 1};
    void *thread = find_symbol(module, EMULATED_THREAD, kernel_name);
    const unsigned int *cluster = find_symbol(module, EMULATED_CLUSTER, kernel_name);
    memcpy(&kernel.thread, &thread, sizeof(thread));
    if (cluster != NULL && *cluster > 0) {
        kernel.cluster = *cluster;
    }
    const unsigned int *bytes = find_symbol(module, EMULATED_BYTES, kernel_name);
    kernel.argument_bytes = bytes != NULL ? *bytes : 0;
    kernel.layout = find_symbol(module, EMULATED_LAYOUT, kernel_name);
    return kernel;
}

void emulated_unload(void *module) {
    (void)dlclose(module);
}
