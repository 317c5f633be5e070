// collective/communicator.c — see communicator.h.
// SPDX-License-Identifier: Apache-2.0
#include "collective/communicator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "collective/transport.h"
#include "op/half.h"
#include "tensor/elements.h"

static const char create_name[] = "rondo_communicator_create";
enum { WAIT_MS = 120000 };

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

static rondo_status enter_live(rondo_communicator *c) {
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

static void leave_live(const rondo_communicator *c) {
    (void)pthread_mutex_lock(&live_lock);
    for (size_t i = 0; i < LIVE_MAX; ++i) {
        live[i] = live[i] == c->number ? 0 : live[i];
    }
    (void)pthread_mutex_unlock(&live_lock);
}

// ---- create and destroy -------------------------------------------------------------------------

rondo_status rondo_find_ranks(rondo_ranks *out_ranks) {
    rondo__launcher_id launcher;
    rondo_ranks found;
    if (out_ranks == NULL) {
        return RONDO_FAIL(INVALID, "out_ranks is NULL");
    }
    if (out_ranks->struct_size < sizeof out_ranks->struct_size ||
        out_ranks->struct_size > sizeof found) {
        return RONDO_FAIL(INVALID, "out_ranks->struct_size is %zu", out_ranks->struct_size);
    }
    RETURN_IF_ERROR(rondo__launcher_read(&found, &launcher));
    found.struct_size = out_ranks->struct_size;
    memcpy(out_ranks, &found, found.struct_size);
    return RONDO_STATUS_OK;
}

static rondo_status choose_ranks(const rondo_communicator_options *o, rondo_ranks *out_ranks,
                                 rondo__launcher_id *out_launcher) {
    RETURN_IF_ERROR(rondo__launcher_read(out_ranks, out_launcher));
    if (o->size == 0) {
        return RONDO_STATUS_OK;
    }
    if (o->size < 1 || o->rank < 0 || o->rank >= o->size) {
        return RONDO_FAIL_AS(create_name, INVALID, "options.rank is %d and options.size %d",
                             (int)o->rank, (int)o->size);
    }
    if (o->size != out_ranks->size || o->rank != out_ranks->rank) {
        *out_launcher = RONDO__LAUNCHER_NONE;
        out_ranks->local_size = 0;
    }
    out_ranks->rank = o->rank;
    out_ranks->size = o->size;
    return RONDO_STATUS_OK;
}

static rondo_status choose_transport(rondo_communicator *c, rondo_transport wanted) {
    const bool is_host = rondo_device_is_host(c->device);
    if (wanted < RONDO_TRANSPORT_AUTO || wanted > RONDO_TRANSPORT_SOCKETS) {
        return RONDO_FAIL_AS(create_name, INVALID, "%d is not a rondo_transport", (int)wanted);
    }
    if ((wanted == RONDO_TRANSPORT_NCCL && is_host) ||
        (wanted > RONDO_TRANSPORT_NCCL && !is_host)) {
        return RONDO_FAIL_AS(create_name, UNSUPPORTED,
                             "GPUs are reached by nccl, the host by mpi "
                             "or sockets; the device is %s",
                             rondo_device_get_name(c->device));
    }
    c->transport = is_host ? &rondo__transport_sockets : &rondo__transport_nccl;
    if (is_host && wanted != RONDO_TRANSPORT_SOCKETS) {
        rondo_error saved;
        rondo__error_save(&saved);
        const rondo_status status = rondo__mpi_find(c->launcher);
        if (status == RONDO_STATUS_OK) {
            c->transport = &rondo__transport_mpi;
        } else if (wanted == RONDO_TRANSPORT_MPI) {
            return status;
        } else {
            rondo__error_restore(&saved);
        }
    }
    return RONDO_STATUS_OK;
}

static void free_said(rondo__announcement *said) {
    rondo__free(said->text);
}

static void destroy(rondo_communicator *c) {
    if (c->has_watch) {
        rondo__watch_leave(c);
    }
    rondo__watch_stop(c);
    if (c->transport != NULL) {
        c->transport->close(c);
    }
    for (int32_t r = 0; c->records != NULL && r < c->meeting.size; ++r) {
        free_said(&c->records[r].said[0]);
        free_said(&c->records[r].said[1]);
    }
    free_said(&c->now);
    free_said(&c->before);
    rondo__meeting_end(&c->meeting);
    leave_live(c);
    (void)pthread_mutex_destroy(&c->lock);
    (void)pthread_mutex_destroy(&c->data_lock);
    (void)pthread_cond_destroy(&c->changed);
    rondo__free(c->records);
    rondo__free(c->scratch);
    rondo_device_release(c->device);
    rondo__free(c);
}

static rondo_status open_all(rondo_communicator *c, const rondo_communicator_options *o) {
    char traits[RONDO__TRAITS_BYTES];
    rondo_ranks ranks;
    const uint64_t wait_ms = o->wait_ms > 0 ? o->wait_ms : WAIT_MS;
    const uint64_t deadline_ns = rondo__clock_now_ns() + wait_ms * 1000000;
    RETURN_IF_ERROR(choose_ranks(o, &ranks, &c->launcher));
    RETURN_IF_ERROR(enter_live(c));
    RETURN_IF_ERROR(choose_transport(c, o->transport));
    (void)snprintf(traits, sizeof traits, "transport %s", c->transport->name);
    RETURN_IF_ERROR(
        rondo__meeting_hold(&ranks, c->launcher, o->meeting, traits, deadline_ns, &c->meeting));
    c->records = rondo__calloc((size_t)c->meeting.size, sizeof *c->records);
    if (c->records == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    RETURN_IF_ERROR(rondo__watch_start(c));
    RETURN_IF_ERROR(c->transport->open(c));
    RONDO_LOG_INFO_F("rank %d of %d, by %s", (int)c->meeting.rank, (int)c->meeting.size,
                     c->transport->name);
    return rondo__communicator_check(c);
}

rondo_status rondo_communicator_create(rondo_device *device,
                                       const rondo_communicator_options *options,
                                       rondo_communicator **out_communicator) {
    rondo_communicator_options merged = {.struct_size = sizeof merged};
    RETURN_IF_ERROR(rondo__check_pointer(out_communicator, __func__, "out_communicator"));
    *out_communicator = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    RETURN_IF_ERROR(rondo__read_options(options, &merged, sizeof merged, __func__,
                                        "rondo_communicator_options"));
    rondo_communicator *c = rondo__calloc(1, sizeof *c);
    if (c == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    c->wake[0] = c->wake[1] = -1;
    atomic_init(&c->reference_count, 1);
    atomic_init(&c->is_lost, false);
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_mutex_init(&c->data_lock, NULL);
    (void)pthread_cond_init(&c->changed, NULL);
    rondo_device_retain(device);
    c->device = device;
    const rondo_status status = open_all(c, &merged);
    if (status != RONDO_STATUS_OK) {
        rondo_error saved;
        rondo__error_save(&saved);
        destroy(c);
        rondo__error_restore(&saved);
        return status;
    }
    *out_communicator = c;
    return RONDO_STATUS_OK;
}

void rondo__communicator_retain(rondo_communicator *communicator) {
    if (communicator != NULL) {
        atomic_fetch_add(&communicator->reference_count, 1);
    }
}

void rondo_communicator_destroy(rondo_communicator *communicator) {
    if (communicator != NULL && !atomic_load(&communicator->device->is_forked) &&
        atomic_fetch_sub(&communicator->reference_count, 1) == 1) {
        destroy(communicator);
    }
}

rondo_status rondo_communicator_get_ranks(const rondo_communicator *communicator, int32_t *out_rank,
                                          int32_t *out_size) {
    RETURN_IF_ERROR(rondo__check_pointer(communicator, __func__, "communicator"));
    if (out_rank != NULL) {
        *out_rank = communicator->meeting.rank;
    }
    if (out_size != NULL) {
        *out_size = communicator->meeting.size;
    }
    return RONDO_STATUS_OK;
}

rondo_device *rondo__communicator_get_device(const rondo_communicator *communicator) {
    return communicator->device;
}

// ---- runs ---------------------------------------------------------------------------------------

// Under the lock.
static rondo_status fail_lost(const rondo_communicator *c) {
    return c->has_problem ? RONDO_FAIL_AS("rondo_executor_run", MISMATCH, "%s", c->loss)
                          : RONDO_FAIL_AS("rondo_executor_run", UNAVAILABLE, "%s", c->loss);
}

rondo_status rondo__communicator_check(rondo_communicator *communicator) {
    if (!atomic_load(&communicator->is_lost)) {
        return RONDO_STATUS_OK;
    }
    (void)pthread_mutex_lock(&communicator->lock);
    const rondo_status status = fail_lost(communicator);
    (void)pthread_mutex_unlock(&communicator->lock);
    return status;
}

static rondo_status note_new(rondo_communicator *c, const rondo__collectives *collectives) {
    char *text = rondo__strdup(collectives->text != NULL ? collectives->text : "");
    if (text == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    free_said(&c->before);
    c->before = c->now;
    c->now = (rondo__announcement){c->run, collectives->hash, text};
    c->changed_run = c->run;
    return RONDO_STATUS_OK;
}

// Whether all ranks will be there; under the lock.
static rondo_status check_left(rondo_communicator *c) {
    for (int32_t r = 0; r < c->meeting.size; ++r) {
        if (c->records[r].has_left && c->records[r].left_runs < c->run) {
            return RONDO_FAIL_AS("rondo_executor_run", UNAVAILABLE,
                                 "rank %d of %d has left after %llu runs; this is run %llu", (int)r,
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
    if (is_new) {
        RETURN_IF_ERROR(note_new(c, collectives));
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

rondo_status rondo__communicator_check_part(const rondo_communicator *communicator,
                                            rondo_dtype dtype) {
    (void)communicator;
    const bool is_known = dtype == RONDO_DTYPE_F32 || dtype == RONDO_DTYPE_F64 ||
                          dtype == RONDO_DTYPE_I32 || dtype == RONDO_DTYPE_I64 ||
                          rondo__is_half(dtype);
    return is_known ? RONDO_STATUS_OK
                    : RONDO_FAIL_AS("rondo_executor_run", UNSUPPORTED,
                                    "ranks reduce f16, bf16, f32, f64, i32 and i64, not %s",
                                    rondo_dtype_get_name(dtype));
}

static void divide(void *buffer, size_t count, rondo_dtype dtype, int32_t size) {
    if (dtype == RONDO_DTYPE_F64) {
        for (size_t i = 0; i < count; ++i) {
            ((double *)buffer)[i] /= (double)size;
        }
    } else {
        for (size_t i = 0; i < count; ++i) {
            ((float *)buffer)[i] /= (float)size;
        }
    }
}

static rondo_status sum_wide(rondo_communicator *c, bool is_average, void *buffer, size_t count,
                             rondo_dtype dtype) {
    RETURN_IF_ERROR(c->transport->sum(c, buffer, count, dtype));
    if (is_average) {
        divide(buffer, count, dtype, c->meeting.size);
    }
    return RONDO_STATUS_OK;
}

// Half precision is added in f32, and rounded once.
static rondo_status reduce_half(rondo_communicator *c, bool is_average,
                                const rondo__reduction_part *part, const void *input,
                                void *output) {
    const size_t bytes = part->count * sizeof(float);
    if (c->scratch_bytes < bytes) {
        rondo__free(c->scratch);
        c->scratch_bytes = 0;
        c->scratch = rondo__malloc(bytes);
        if (c->scratch == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        c->scratch_bytes = bytes;
    }
    rondo__half_to_float_array(part->dtype, input, c->scratch, part->count);
    RETURN_IF_ERROR(sum_wide(c, is_average, c->scratch, part->count, RONDO_DTYPE_F32));
    rondo__half_from_float_array(part->dtype, c->scratch, output, part->count);
    return RONDO_STATUS_OK;
}

static rondo_status reduce_part(rondo_communicator *c, bool is_average,
                                const rondo__reduction_part *part, const void *input,
                                void *output) {
    if (part->count == 0) {
        return RONDO_STATUS_OK;
    }
    if (rondo__is_half(part->dtype)) {
        return reduce_half(c, is_average, part, input, output);
    }
    if (input != output) {
        memcpy(output, input, part->count * rondo_dtype_get_bytes(part->dtype));
    }
    return sum_wide(c, is_average, output, part->count, part->dtype);
}

rondo_status rondo__communicator_reduce(rondo_communicator *communicator,
                                        const rondo__reduction *reduction,
                                        const void *const *inputs, void *const *outputs) {
    rondo_status status = rondo__communicator_check(communicator);
    (void)pthread_mutex_lock(&communicator->data_lock);
    for (size_t i = 0; i < reduction->part_count && status == RONDO_STATUS_OK; ++i) {
        status = reduce_part(communicator, reduction->is_average, &reduction->parts[i], inputs[i],
                             outputs[i]);
    }
    (void)pthread_mutex_unlock(&communicator->data_lock);
    return status;
}

rondo_status rondo__communicator_put(rondo_communicator *communicator,
                                     const rondo__reduction *reduction, const void *const *inputs,
                                     void *const *outputs, rondo_stream *stream) {
    RETURN_IF_ERROR(rondo__communicator_check(communicator));
    return communicator->transport->put(communicator, reduction, inputs, outputs, stream);
}
