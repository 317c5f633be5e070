// profile/thread_log.h — what one thread has told during a profile, as it was told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include "profile/chunk.h"
#include "profile/collector.h"
#include "profile/texts.h"

enum { RONDO__PROFILE_OPEN_MAX = 64 };

// Texts are numbers in the log's table. A span that has not ended has end_ns 0.
typedef struct rondo__raw_span {
    uint64_t id;  // the hooks'
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t bytes;
    uint32_t name;
    uint32_t detail;
    uint8_t category;
    uint8_t way;
    bool is_async;
} rondo__raw_span;

typedef struct rondo__raw_work {
    uint64_t span;
    uint64_t stream;
    uint64_t bytes;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint32_t name;
    uint32_t label;
    int32_t device;
    uint8_t kind;
    uint8_t way;
} rondo__raw_work;

typedef struct rondo__raw_sample {
    uint64_t time_ns;
    uint64_t value;
    uint32_t name;
} rondo__raw_sample;

// The end of a span that another thread began.
typedef struct rondo__raw_end {
    uint64_t id;
    uint64_t time_ns;
} rondo__raw_end;

typedef struct rondo__open_span {
    uint64_t id;
    rondo__raw_span *span;  // NULL: it was dropped
} rondo__open_span;

typedef struct rondo__profile_log {
    pthread_mutex_t lock;  // guards all below
    uint64_t session;      // of the profile; 0: none
    rondo__profile_thread thread;
    rondo__profile_texts texts;
    rondo__profile_list spans;
    rondo__profile_list works;
    rondo__profile_list samples;
    rondo__profile_list ends;
    rondo__open_span open[RONDO__PROFILE_OPEN_MAX];
    size_t open_count;
} rondo__profile_log;

// Frees what it holds; the lock stays.
void rondo__profile_log_clear(rondo__profile_log *log);

// Makes one list of each of what the logs hold, in the order of time; spans nest.
//
// Errors:    NO_MEMORY; then the store is as it was.
RONDO_MUST_USE rondo_status rondo__profile_logs_merge(const rondo__profile_log *logs,
                                                      size_t log_count, uint64_t begin_ns,
                                                      uint64_t end_ns,
                                                      rondo__profile_store *out_store);
