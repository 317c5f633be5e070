// collective/rank_runs.c — what ranks do together: runs that begin, sums, and the thread that makes
// them. See communicator.h.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/memory.h"
#include "collective/communicator.h"
#include "collective/transport.h"
#include "op/half.h"

enum { EXPLAIN_SECONDS = 8 };
static const char create_name[] = "rondo_communicator_create";

// ---- one communicator a thread ------------------------------------------------------------------

enum { LIVE_MAX = 256 };

static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t live[LIVE_MAX];  // numbers of all communicators; 0: free
static uint64_t last_number;
static _Thread_local uint64_t served;  // by this thread; perhaps it is gone

static bool is_live(uint64_t number) {
    bool is = false;
    (void)pthread_mutex_lock(&live_lock);
    for (size_t i = 0; i < LIVE_MAX; ++i) {
        is = is || (number != 0 && live[i] == number);
    }
    (void)pthread_mutex_unlock(&live_lock);
    return is;
}

// Ranks wait for each other, so a thread that served two would wait for itself.
static rondo_status serve(const rondo_communicator *c, const char *call) {
    if (served != c->number && is_live(served)) {
        return RONDO_FAIL_AS(call, STATE,
                             "this thread serves another communicator; several GPUs in one process "
                             "take a thread each, since ranks wait for each other");
    }
    served = c->number;
    return RONDO_STATUS_OK;
}

rondo_status rondo__communicator_enter(rondo_communicator *c) {
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    (void)pthread_mutex_lock(&live_lock);
    c->number = ++last_number;
    for (size_t i = 0; i < LIVE_MAX && status != RONDO_STATUS_OK; ++i) {
        if (live[i] == 0) {
            live[i] = c->number;
            status = RONDO_STATUS_OK;
        }
    }
    (void)pthread_mutex_unlock(&live_lock);
    return status == RONDO_STATUS_OK
               ? serve(c, create_name)
               : RONDO_FAIL_AS(create_name, NO_MEMORY, "there are %d communicators", LIVE_MAX);
}

void rondo__communicator_leave(const rondo_communicator *c) {
    (void)pthread_mutex_lock(&live_lock);
    for (size_t i = 0; i < LIVE_MAX; ++i) {
        live[i] = live[i] == c->number ? 0 : live[i];
    }
    (void)pthread_mutex_unlock(&live_lock);
}

// ---- runs ---------------------------------------------------------------------------------------

// Under the lock.
static rondo_status fail_lost(const rondo_communicator *c) {
    return c->has_problem ? RONDO_FAIL_AS("rondo_executor_run", MISMATCH, "%s", c->loss)
                          : RONDO_FAIL_AS("rondo_executor_run", UNAVAILABLE, "%s", c->loss);
}

rondo_status rondo__communicator_check(rondo_communicator *communicator) {
    if (!atomic_load(&communicator->is_lost)) {
        return communicator->transport->check != NULL ? communicator->transport->check(communicator)
                                                      : RONDO_STATUS_OK;
    }
    (void)pthread_mutex_lock(&communicator->lock);
    const rondo_status status = fail_lost(communicator);
    (void)pthread_mutex_unlock(&communicator->lock);
    return status;
}

rondo_status rondo__communicator_explain(rondo_communicator *communicator, const char *what) {
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += EXPLAIN_SECONDS;
    (void)pthread_mutex_lock(&communicator->lock);
    int code = 0;
    while (!atomic_load(&communicator->is_lost) && code == 0) {
        code = pthread_cond_timedwait(&communicator->changed, &communicator->lock, &until);
    }
    const rondo_status status = atomic_load(&communicator->is_lost)
                                    ? fail_lost(communicator)
                                    : RONDO_FAIL_AS("rondo_executor_run", UNAVAILABLE, "%s", what);
    (void)pthread_mutex_unlock(&communicator->lock);
    return status;
}

static rondo_status note_new(rondo_communicator *c, const rondo__collectives *collectives) {
    char *text = rondo__strdup(collectives->text != NULL ? collectives->text : "");
    if (text == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__free(c->before.text);
    c->before = c->now;
    c->now = (rondo__announcement){c->run, collectives->hash, text};
    c->changed_run = c->run;
    return RONDO_STATUS_OK;
}

// Whether all ranks will be there; under the lock.
static rondo_status check_left(rondo_communicator *c) {
    for (int32_t r = 0; r < c->meeting.size; ++r) {
        if (c->records[r].has_left && c->records[r].left_runs < c->run) {
            return RONDO_FAIL_AS("rondo_executor_run", UNAVAILABLE, RONDO__HAS_LEFT, (int)r,
                                 (int)c->meeting.size, (unsigned long long)c->records[r].left_runs,
                                 (unsigned long long)c->run);
        }
    }
    return RONDO_STATUS_OK;
}

// Under the lock.
static rondo_status begin(rondo_communicator *c, const rondo__collectives *collectives) {
    const bool is_new = c->run == 0 || collectives->hash != c->now.hash;
    c->run += 1;
    rondo__watch_apply_loss(c);
    RETURN_IF_ERROR(atomic_load(&c->is_lost) ? fail_lost(c) : check_left(c));
    if (is_new && note_new(c, collectives) != RONDO_STATUS_OK) {
        c->run -= 1;  // has not begun: an answer to a rank that asks would tell of none
        return RONDO_STATUS_NO_MEMORY;
    }
    if (is_new || c->asked_run == c->run) {
        rondo__watch_announce(c, c->run, c->now.hash, c->now.text);
    }
    while (is_new && c->agreed_run < c->run && !atomic_load(&c->is_lost)) {
        (void)pthread_cond_wait(&c->changed, &c->lock);
    }
    return atomic_load(&c->is_lost) ? fail_lost(c) : RONDO_STATUS_OK;
}

rondo_status rondo__communicator_begin_run(rondo_communicator *communicator,
                                           const rondo__collectives *collectives) {
    RETURN_IF_ERROR(serve(communicator, "rondo_executor_run"));
    (void)pthread_mutex_lock(&communicator->lock);
    const rondo_status status = atomic_load(&communicator->is_lost)
                                    ? fail_lost(communicator)
                                    : begin(communicator, collectives);
    (void)pthread_mutex_unlock(&communicator->lock);
    return status;
}

void rondo__communicator_break(rondo_communicator *communicator) {
    char why[RONDO__LOSS_BYTES];
    rondo_error saved;
    rondo__error_save(&saved);
    (void)pthread_mutex_lock(&communicator->lock);
    const unsigned long long run = communicator->run;
    (void)pthread_mutex_unlock(&communicator->lock);
    (void)snprintf(why, sizeof why, "rank %d of %d failed in run %llu: %.150s",
                   (int)communicator->meeting.rank, (int)communicator->meeting.size, run,
                   saved.message);
    rondo__communicator_lose(communicator, why);
    rondo__error_restore(&saved);
}

// ---- all-reduce ---------------------------------------------------------------------------------

static void divide(void *buffer, size_t count, rondo_dtype dtype, double by) {
    if (dtype == RONDO_DTYPE_F64) {
        for (size_t i = 0; i < count; ++i) {
            ((double *)buffer)[i] /= by;
        }
    } else {
        for (size_t i = 0; i < count; ++i) {
            ((float *)buffer)[i] /= (float)by;
        }
    }
}

// An average of finite numbers is finite: they are divided by a power of two first, which rounds
// nothing but what is denormal then.
static rondo_status sum_wide(rondo_communicator *c, bool is_average, void *buffer, size_t count,
                             rondo_dtype dtype) {
    double power = 1.0;
    while (is_average && power < (double)c->meeting.size) {
        power *= 2.0;
    }
    if (is_average) {
        divide(buffer, count, dtype, power);
    }
    RETURN_IF_ERROR(c->transport->sum(c, buffer, count, dtype));
    if (is_average && power != (double)c->meeting.size) {
        divide(buffer, count, dtype, (double)c->meeting.size / power);
    }
    return RONDO_STATUS_OK;
}

static rondo_status make_scratch(rondo_communicator *c, size_t bytes) {
    if (c->scratch_bytes < bytes) {
        rondo__free(c->scratch);
        c->scratch_bytes = 0;
        c->scratch = rondo__malloc(bytes);
        if (c->scratch == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        c->scratch_bytes = bytes;
    }
    return RONDO_STATUS_OK;
}

// Half precision is added in f32, and rounded once.
static rondo_status reduce_half(rondo_communicator *c, const rondo__reduction_part *part,
                                const void *input, void *output) {
    RETURN_IF_ERROR(make_scratch(c, part->count * sizeof(float)));
    rondo__half_to_float_array(part->dtype, input, c->scratch, part->count);
    RETURN_IF_ERROR(sum_wide(c, part->is_average, c->scratch, part->count, RONDO_DTYPE_F32));
    rondo__half_from_float_array(part->dtype, c->scratch, output, part->count);
    return RONDO_STATUS_OK;
}

// A sum of all of it, of which a rank that gets its part alone forgets the rest: then no one takes
// that for the truth.
static rondo_status reduce_part(rondo_communicator *c, const rondo__reduction_part *part,
                                const void *input, void *output) {
    const size_t bytes = part->count * rondo_dtype_get_bytes(part->dtype);
    if (part->count == 0) {
        return RONDO_STATUS_OK;
    }
    if (rondo__is_half(part->dtype)) {
        RETURN_IF_ERROR(reduce_half(c, part, input, output));
    } else {
        if (input != output) {
            memcpy(output, input, bytes);
        }
        RETURN_IF_ERROR(sum_wide(c, part->is_average, output, part->count, part->dtype));
    }
    if (part->is_split) {
        const size_t own = bytes / (size_t)c->meeting.size;
        const size_t before = own * (size_t)c->meeting.rank;
        memset(output, 0, before);
        memset((char *)output + before + own, 0, bytes - before - own);
    }
    return RONDO_STATUS_OK;
}

// A sum of whole numbers, of which all ranks but one have 0, so that every bit stays. What is split
// has a multiple of 16 bytes.
static rondo_status gather_part(rondo_communicator *c, const rondo__reduction_part *part,
                                const void *input, void *output) {
    const size_t bytes = part->count * rondo_dtype_get_bytes(part->dtype);
    if (input != output && (!part->is_split || bytes == 0)) {
        memcpy(output, input, bytes);
    }
    if (!part->is_split || bytes == 0) {
        return RONDO_STATUS_OK;
    }
    const size_t own = bytes / (size_t)c->meeting.size;
    const size_t before = own * (size_t)c->meeting.rank;
    RETURN_IF_ERROR(make_scratch(c, bytes));
    char *all = c->scratch;
    memset(all, 0, bytes);
    memcpy(all + before, (const char *)input + before, own);
    RETURN_IF_ERROR(c->transport->sum(c, all, bytes / sizeof(int32_t), RONDO_DTYPE_I32));
    memcpy(output, all, bytes);
    return RONDO_STATUS_OK;
}

rondo_status rondo__communicator_reduce(rondo_communicator *communicator,
                                        const rondo__reduction *reduction,
                                        const void *const *inputs, void *const *outputs) {
    rondo_status status = rondo__communicator_check(communicator);
    (void)pthread_mutex_lock(&communicator->data_lock);
    for (size_t i = 0; i < reduction->part_count && status == RONDO_STATUS_OK; ++i) {
        if (outputs[i] != NULL) {  // otherwise nobody reads it, at any rank
            const rondo__reduction_part *part = &reduction->parts[i];
            status = reduction->gathers ? gather_part(communicator, part, inputs[i], outputs[i])
                                        : reduce_part(communicator, part, inputs[i], outputs[i]);
        }
    }
    (void)pthread_mutex_unlock(&communicator->data_lock);
    return status;
}

void rondo__communicator_set_split(const rondo_communicator *communicator, bool may,
                                   rondo__reduction_part *part) {
    part->is_split = may && rondo__part_is_split(part->count, communicator->meeting.size);
}

void rondo__communicator_get_part(const rondo_communicator *communicator, size_t count,
                                  size_t *out_first, size_t *out_count) {
    const bool is_split =
        communicator != NULL && rondo__part_is_split(count, communicator->meeting.size);
    *out_count = is_split ? count / (size_t)communicator->meeting.size : count;
    *out_first = is_split ? *out_count * (size_t)communicator->meeting.rank : 0;
}

rondo_status rondo__communicator_put(rondo_communicator *communicator,
                                     const rondo__reduction *reduction, const void *const *inputs,
                                     void *const *outputs, rondo_stream *stream) {
    RETURN_IF_ERROR(rondo__communicator_check(communicator));
    return communicator->transport->put(communicator, reduction, inputs, outputs, stream);
}
