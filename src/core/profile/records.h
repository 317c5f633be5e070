// profile/records.h — what a profile has kept: spans, work, samples.
//
// Times are nanoseconds of rondo__clock_now_ns. A text stands once, so that equal texts have equal
// addresses, and lives as long as the records. Spans nest: on one thread each lies within its
// parent, because ends that came late were cut there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/hook.h"

typedef struct rondo__profile_span {
    uint64_t id;      // from 1, in the order of their begins: its index and 1
    uint64_t parent;  // 0: outermost of its thread
    uint32_t thread;  // index into threads
    rondo__span_category category;
    const char *name;
    const char *detail;  // ""
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t bytes;
    rondo__way way;
    bool is_async;
} rondo__profile_span;

typedef struct rondo__profile_work {
    uint64_t span;  // 0: not known
    rondo__work_kind kind;
    rondo__way way;
    const char *name;
    const char *label;  // ""
    int32_t device;     // -1: the processor
    uint64_t stream;
    uint64_t bytes;
    uint64_t begin_ns;
    uint64_t end_ns;
} rondo__profile_work;

typedef struct rondo__profile_sample {
    const char *name;
    uint64_t time_ns;
    uint64_t value;
} rondo__profile_sample;

typedef struct rondo__profile_thread {
    uint64_t native_id;  // of the operating system
    char name[32];
} rondo__profile_thread;

// All of a stopped profile. Spans stand in the order of their begins, work and samples by time.
typedef struct rondo__profile_records {
    uint64_t begin_ns;  // of the region
    uint64_t end_ns;
    size_t span_count;
    const rondo__profile_span *spans;
    size_t work_count;
    const rondo__profile_work *works;
    size_t sample_count;
    const rondo__profile_sample *samples;
    size_t thread_count;  // the first is the one that started the profile
    const rondo__profile_thread *threads;
    uint64_t dropped_count;
    const char *source;  // where the times of devices come from, in words for people
} rondo__profile_records;
