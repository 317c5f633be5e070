// doctor/analysis/doctor_log.h — what is kept of one process's stream: the latest records, in
// bounded memory, and counts of all of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "doctor/stream/doctor_event.h"

enum {
    RONDO__DOCTOR_EVENTS_MAX = 1 << 17,  // kept; a step may have 20 000 calls, and three are needed
    RONDO__DOCTOR_WORK_MAX = 1 << 17,
    RONDO__DOCTOR_TEXTS_MAX = 1 << 13,
    RONDO__DOCTOR_RANGES_MAX = 1 << 14,
    RONDO__DOCTOR_BLOCKS_MAX = 1 << 12,
};

// What a device did.
typedef struct rondo__doctor_work {
    uint64_t begin_ns;
    uint64_t duration_ns;
    uint64_t bytes;
    uint32_t stream;
    uint32_t name;
    uint32_t order;  // by when it was asked for; 0: not known
    bool is_of_graph;
} rondo__doctor_work;

// A range of NVTX; `end_ns` is UINT64_MAX while it is open.
typedef struct rondo__doctor_range {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t number;  // 0: the thread's innermost one ends first
    uint32_t name;
    uint32_t thread;
} rondo__doctor_range;

// Memory that the driver gave.
typedef struct rondo__doctor_block {
    uint64_t begin;
    uint64_t end;
} rondo__doctor_block;

// Replays of a graph like the step, as doctor/rehearse measures them.
typedef struct rondo__doctor_replays {
    uint64_t works;  // of the step; 0: there was no rehearsal
    uint64_t median_ns;
    uint64_t low_ns;
    uint64_t high_ns;
} rondo__doctor_replays;

typedef struct rondo__doctor_log {
    rondo__doctor_event *events;
    size_t *first_words;  // of each event, in `words`
    size_t event_count;
    size_t event_room;
    uint64_t *words;
    size_t word_count;
    size_t word_room;
    rondo__doctor_work *works;
    size_t work_count;
    size_t work_room;
    char **texts;
    uint64_t *layouts;  // of the kernel of this text's number, as RONDO__DOCTOR_LAYOUT tells it
    size_t text_count;
    rondo__doctor_range *ranges;
    size_t range_count;
    rondo__doctor_block *blocks;  // the latest ones
    size_t block_count;           // of all
    rondo__doctor_block heap;     // of the host
    uint32_t multiprocessors;     // 0: not known
    uint32_t multiprocessor_threads;
    uint32_t multiprocessor_blocks;
    uint64_t multiprocessor_shared_bytes;
    uint64_t device_uuid[2];  // zeros: not known
    rondo__doctor_replays rehearsal;
    const char *note;       // the last that the recorder had to say of device times; NULL: nothing
    uint64_t seen_count;    // of calls, dropped ones included
    uint64_t launch_count;  // of kernels, likewise
    uint64_t lost_count;    // how often records were lost
    uint64_t first_ns;
    uint64_t last_ns;
} rondo__doctor_log;

// Keeps a record and its tail. False: out of memory, or the record is none (its call is unknown,
// its // tail longer than any); what was kept stays.
bool rondo__doctor_log_add(rondo__doctor_log *log, const rondo__doctor_event *event,
                           const void *tail);

// The text of this number; "" for none.
const char *rondo__doctor_log_text(const rondo__doctor_log *log, uint32_t number);

// Whether memory that the driver gave lies there.
bool rondo__doctor_log_is_given(const rondo__doctor_log *log, uint64_t address);

static inline const uint64_t *rondo__doctor_log_words(const rondo__doctor_log *log, size_t event) {
    return log->words + log->first_words[event];
}

// Reads a whole stream: its header and its records. Returns NULL or what is wrong with it. What
// stands in front of the fault is kept. A stream without end takes no more memory than any other.
const char *rondo__doctor_log_read(rondo__doctor_log *log, FILE *file);

void rondo__doctor_log_clear(rondo__doctor_log *log);
