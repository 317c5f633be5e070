// kernel/host/host_threads.h — divides the work of one op among threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/thread_count.h"
#include "base/workers.h"

enum {
    // The least work that pays for another thread: bytes moved, and multiply-adds, both some 5 us.
    // One thread runs an op with fewer than the least count of such chunks.
    RONDO__HOST_CHUNK_BYTES = 64 * 1024,
    RONDO__HOST_CHUNK_MULTIPLY_ADDS = 256 * 1024,
    RONDO__HOST_CHUNK_COUNT_MIN = 4,
};

// How many of `count` equal elements make a chunk, where all of them move so many bytes and need so
// many multiply-adds. All of them, where the op is a small one.
static inline int64_t rondo__host_get_grain(int64_t count, double bytes, double multiply_adds) {
    const double by_bytes = bytes / RONDO__HOST_CHUNK_BYTES;
    const double by_work = multiply_adds / RONDO__HOST_CHUNK_MULTIPLY_ADDS;
    const double chunks = by_bytes > by_work ? by_bytes : by_work;
    if (chunks < RONDO__HOST_CHUNK_COUNT_MIN) {
        return count;
    }
    const int64_t grain = (int64_t)((double)count / chunks);
    return grain > 1 ? grain : 1;
}

// Parts of work that each need memory of their own: one for each thread that the work pays for.
static inline int64_t rondo__host_count_parts(int64_t count, double bytes, double multiply_adds) {
    const int64_t grain = rondo__host_get_grain(count, bytes, multiply_adds);
    const int64_t grains = grain > 0 ? count / grain : 1, threads = rondo__host_get_thread_count();
    return grains < threads ? grains : threads;
}

// How a product of `rows` rows with `panels` panels is cut into units of work: unit u is row part
// u % row_parts of panel part u / row_parts.
typedef struct rondo__cut {
    int64_t row_parts, panel_parts;
    bool streams;  // the panels are not in the cache yet: one is used for all rows, while the next
                   // one is fetched
} rondo__cut;

// row_height  rows of the smallest part.
// row_bytes, panel_bytes  of all rows of a, and of all panels.
// cache_bytes  what may stay in a processor's cache meanwhile.
static inline rondo__cut rondo__host_cut(double multiply_adds, int64_t rows, int64_t row_height,
                                         double row_bytes, int64_t panels, double panel_bytes,
                                         double cache_bytes) {
    enum { UNITS_PER_THREAD = 2, STREAM_BYTES = 768 * 1024 };
    const double by_work = multiply_adds / RONDO__HOST_CHUNK_MULTIPLY_ADDS;
    const double by_bytes = (row_bytes + panel_bytes) / RONDO__HOST_CHUNK_BYTES / 2;
    const double chunks = by_work > by_bytes ? by_work : by_bytes;
    const int64_t threads = rondo__host_get_thread_count();
    const int64_t most = threads > 1 ? UNITS_PER_THREAD * threads : 1;
    const int64_t row_most = (rows + row_height - 1) / row_height;
    int64_t wanted = chunks < RONDO__HOST_CHUNK_COUNT_MIN ? 1 : (int64_t)chunks;
    wanted = wanted < most ? wanted : most;
    rondo__cut cut = {1, 1, panel_bytes > STREAM_BYTES};
    if (panel_bytes > cache_bytes) {
        // Each part of the panels stays in the cache while all rows go by, or as many rows as stay
        // there, too; and each thread has as many of them.
        const int64_t parts = (int64_t)(panel_bytes / cache_bytes) + 1;
        cut.panel_parts = (parts + threads - 1) / threads * threads;
        cut.panel_parts = cut.panel_parts < panels ? cut.panel_parts : panels;
        cut.row_parts = (int64_t)(row_bytes / cache_bytes) + 1;
        const int64_t rest = (threads + cut.panel_parts - 1) / cut.panel_parts;
        cut.row_parts = cut.row_parts > rest ? cut.row_parts : rest;
        cut.row_parts = cut.row_parts < row_most ? cut.row_parts : row_most;
    } else {
        cut.row_parts = wanted < row_most ? wanted : row_most;
        const int64_t rest = (wanted + cut.row_parts - 1) / cut.row_parts;
        cut.panel_parts = rest < panels ? rest : panels;
    }
    return cut;
}

// Where part `part` of `parts` of `count` begins.
static inline int64_t rondo__host_part(int64_t count, int64_t part, int64_t parts) {
    return count * part / parts;
}

// The same, at a multiple of `height`.
static inline int64_t rondo__host_row_part(int64_t count, int64_t height, int64_t part,
                                           int64_t parts) {
    const int64_t at = height * rondo__host_part((count + height - 1) / height, part, parts);
    return at < count ? at : count;
}
