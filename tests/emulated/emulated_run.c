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
#include <unistd.h>

#include "emulated/emulated_fiber.h"

enum { THREADS_MAX = 1024, SHARED_BYTES_MAX = 232448, POISON = 0xcd };

typedef enum thread_state { RUNS, WAITS_FOR_WARP, WAITS_FOR_BLOCK, HAS_ENDED } thread_state;

typedef struct thread_place {
    thread_state state;
    unsigned int fiber;
    unsigned int lanes;          // that it waits for
    unsigned int meeting_count;  // with its warp, so far
} thread_place;

static emulated_machine g_machine;
static thread_place g_threads[THREADS_MAX];
static unsigned long long g_words[THREADS_MAX / EMULATED_WARP][2][EMULATED_WARP];
static unsigned int g_lanes[THREADS_MAX / EMULATED_WARP];  // that came to the last meeting
static unsigned int g_thread_count, g_next_thread, g_fiber;
static emulated_thread g_kernel;
static const unsigned char *g_arguments;

static void select_thread(unsigned int index) {
    const emulated_extent size = g_machine.block_size;
    g_machine.thread.x = index % size.x;
    g_machine.thread.y = index / size.x % size.y;
    g_machine.thread.z = index / size.x / size.y;
}

static unsigned int get_thread(void) {
    const emulated_extent at = g_machine.thread, size = g_machine.block_size;
    return at.x + size.x * (at.y + size.y * at.z);
}

static void fiber_main(void) {
    while (g_next_thread < g_thread_count) {
        const unsigned int index = g_next_thread++;
        select_thread(index);
        g_kernel(&g_machine, g_arguments);
        g_threads[get_thread()].state = HAS_ENDED;
    }
    emulated_fiber_switch(g_fiber, 0);
    abort();
}

static void wait_for(unsigned int index, thread_state state) {
    g_threads[index].state = state;
    g_threads[index].fiber = g_fiber;
    emulated_fiber_switch(g_fiber, 0);
}

static void meet_block(void) {
    wait_for(get_thread(), WAITS_FOR_BLOCK);
}

// Two sets of words: a lane may bring its next word while others have not read the last ones.
static const unsigned long long *meet_warp(unsigned int lanes, unsigned long long word,
                                           unsigned int *out_lanes) {
    const unsigned int index = get_thread(), warp = index / EMULATED_WARP;
    unsigned long long *words = g_words[warp][g_threads[index].meeting_count++ % 2];
    words[index % EMULATED_WARP] = word;
    g_threads[index].lanes = lanes;
    wait_for(index, WAITS_FOR_WARP);
    *out_lanes = g_lanes[warp];
    return words;
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

static bool release_warp(unsigned int first, bool is_backward) {
    const unsigned int rest = g_thread_count - first;
    const unsigned int lane_count = rest < EMULATED_WARP ? rest : EMULATED_WARP;
    bool is_any = false;
    for (unsigned int lane = 0; lane < lane_count; lane++) {
        const thread_place *warp = &g_threads[first];
        const unsigned int meeting =
            warp[lane].state == WAITS_FOR_WARP ? find_meeting(warp, lane_count, lane) : 0;
        g_lanes[first / EMULATED_WARP] = meeting;
        for (unsigned int n = 0; n < lane_count && meeting != 0; n++) {
            const unsigned int i = is_backward ? lane_count - 1 - n : n;
            if ((meeting >> i & 1u) != 0) {
                resume(first + i);
                is_any = true;
            }
        }
        if (meeting != 0) {
            break;
        }
    }
    return is_any;
}

// Whether all threads that have not ended wait for the block.
static bool is_block_complete(void) {
    for (unsigned int i = 0; i < g_thread_count; i++) {
        if (g_threads[i].state != WAITS_FOR_BLOCK && g_threads[i].state != HAS_ENDED) {
            return false;
        }
    }
    return true;
}

static bool has_ended(void) {
    for (unsigned int i = 0; i < g_thread_count; i++) {
        if (g_threads[i].state != HAS_ENDED) {
            return false;
        }
    }
    return true;
}

// One step for all that can go on. False: none can.
static bool release_all(bool is_backward) {
    bool is_any = false;
    for (unsigned int first = 0; first < g_thread_count; first += EMULATED_WARP) {
        is_any = release_warp(first, is_backward) || is_any;
    }
    if (is_any || !is_block_complete()) {
        return is_any;
    }
    for (unsigned int n = 0; n < g_thread_count; n++) {
        const unsigned int i = is_backward ? g_thread_count - 1 - n : n;
        if (g_threads[i].state != HAS_ENDED) {
            resume(i);
        }
    }
    return true;
}

static bool run_block(void) {
    memset(g_threads, 0, g_thread_count * sizeof(g_threads[0]));
    g_next_thread = 0;
    for (unsigned int fiber = 1; g_next_thread < g_thread_count; fiber++) {
        g_fiber = fiber;
        emulated_fiber_start(fiber, fiber_main);
        emulated_fiber_switch(0, fiber);
    }
    for (bool is_backward = true; !has_ended(); is_backward = !is_backward) {
        if (!release_all(is_backward)) {
            return false;
        }
    }
    return true;
}

bool emulated_run(emulated_thread thread, const unsigned int shape[7],
                  const unsigned char *arguments, const char **out_problem) {
    static _Alignas(1024) unsigned char shared[SHARED_BYTES_MAX];
    const unsigned long long threads = (unsigned long long)shape[3] * shape[4] * shape[5];
    *out_problem = NULL;
    if (threads == 0 || threads > THREADS_MAX || shape[6] > SHARED_BYTES_MAX || shape[0] == 0 ||
        shape[1] == 0 || shape[2] == 0 || shape[1] > 65535 || shape[2] > 65535) {
        *out_problem = "a grid or a block of this shape cannot be launched";
        return false;
    }
    g_kernel = thread;
    g_arguments = arguments;
    g_thread_count = (unsigned int)threads;
    g_machine = (emulated_machine){
        .block_size = {shape[3], shape[4], shape[5]},
        .grid_size = {shape[0], shape[1], shape[2]},
        .shared = shared,
        .meet_block = meet_block,
        .meet_warp = meet_warp,
    };
    emulated_extent *block = &g_machine.block;
    for (block->z = 0; block->z < shape[2]; block->z++) {
        for (block->y = 0; block->y < shape[1]; block->y++) {
            for (block->x = 0; block->x < shape[0]; block->x++) {
                memset(shared, POISON, shape[6]);
                if (!run_block()) {
                    *out_problem =
                        "some threads of a block wait for a barrier and others of their "
                        "warp for a shuffle";
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

emulated_thread emulated_find(void *module, const char *kernel_name) {
    char name[256];
    emulated_thread thread = NULL;
    (void)snprintf(name, sizeof(name), EMULATED_PREFIX "%s", kernel_name);
    void *address = dlsym(module, name);
    memcpy(&thread, &address, sizeof(thread));
    return thread;
}

void emulated_unload(void *module) {
    (void)dlclose(module);
}
