// kernel/cuda/tune/cuda_tune.h — choosing among several ways to do the same work by timing them.
//
// Which tile, split or library engine is fastest depends on the shape and the chip in ways that no
// rule of ours predicts well, so the candidates are run. What is timed is what will run: each
// candidate is captured several times in a row and the graph replayed, so that launch cost stays
// out, on buffers filled with noise, and with weights that come from memory where those of the
// network do (cuda_tune_buffers.h). The choice is kept by name: on disk beside the compiled
// kernels, under a key of chip, driver and problem, and for tuning files (rondo/tuning.h). The name
// of a library's way holds the library's version; one of our own stays chosen when a library
// changes, so that it need not be loaded to be found.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/cuda_steps.h"

enum { RONDO__CANDIDATES_MAX = 48 };

// The ways to do one piece of work, each with one or several plans, listed the best guess first.
typedef struct rondo__candidates {
    size_t count;
    struct {
        int way;  // the caller's own number
        size_t plan;
    } list[RONDO__CANDIDATES_MAX];
    uint64_t fast, last, library;  // bits as in rondo__tuning
} rondo__candidates;

// Lists plans 0 to plan_count - 1 of a way, as far as there is room. A fast contest tries the first
// `fast_count` of them.
void rondo__candidates_add(rondo__candidates *candidates, int way, size_t plan_count,
                           size_t fast_count);
// What is listed from number `first` on is of a library.
void rondo__candidates_mark_library(rondo__candidates *candidates, size_t first);
// Lists the way that is always there. `is_slow`: it is tried only where no other works.
void rondo__candidates_add_plain(rondo__candidates *candidates, int way, bool is_slow);

typedef struct rondo__tuning {
    const char *key;         // the problem, in words
    size_t candidate_count;  // at most 64, the first the best guess
    uint64_t fast;           // bit i: RONDO_TUNING_FAST tries candidate i, too
    uint64_t last;           // bit i: tried only where none before it works
    // Bit i: candidate i is of a library, and is neither named nor built without loading that,
    // which takes a good part of a second. So a choice is looked for among the others first.
    uint64_t library;
    // Whether the library can be loaded, which it is. NULL: candidates can be built without it.
    bool (*has_library)(const rondo__cuda_kernel *kernel);
    const void *problem;
    // Adds candidate `index` to the kernel. A candidate that cannot be built refuses.
    void (*build)(rondo__cuda_kernel *kernel, const void *problem, size_t index);
    // What candidate `index` is, for the log and for tuning files: no two have one name, and the
    // name tells the library's version where that numbers it.
    void (*describe)(const rondo__cuda_kernel *kernel, const void *problem, size_t index,
                     char *text, size_t text_bytes);
} rondo__tuning;

// Adds the fastest candidate to the kernel, as far as the request's rondo_tuning goes: the tuning
// file's choice, one that was kept, otherwise that of a contest, and without one the first that can
// be built.
void rondo__cuda_add_fastest(rondo__cuda_kernel *kernel, const rondo__tuning *tuning);
