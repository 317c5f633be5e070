// collective/transport_nccl.c — collectives of GPUs by NCCL, put on streams, so that they are
// recorded, too.
//
// NCCL's own waits do not end when a rank is gone while it connects, so a thread of its own
// connects, and is left behind then. Afterwards ncclCommAbort ends the kernels that wait, in graphs
// as well. NCCL connects further at the first collective, which a capture would not survive:
// `open` makes one.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "backend/cuda/driver/cuda_device.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/thread.h"
#include "collective/nccl_api.h"
#include "collective/sockets.h"
#include "collective/transport.h"
#include "rondo/device.h"

static const char create_name[] = "rondo_communicator_create";

typedef struct nccl_state {
    const rondo__nccl_api *api;
    rondo__cuda_device *device;
    rondo__nccl_comm comm;  // guarded by the communicator's data_lock
    bool is_aborted;        // the same
} nccl_state;

static rondo_status fail(const nccl_state *s, int code, const char *call) {
    return RONDO_FAIL_DRIVER(RONDO_STATUS_DRIVER, code, s->api->ncclGetErrorString(code), call,
                             "NCCL failed; NCCL_DEBUG=WARN in the environment says more");
}

// ---- connecting ---------------------------------------------------------------------------------

// What the connecting thread has, which may outlive the communicator: the last one frees it.
typedef struct connecting {
    pthread_mutex_t lock;
    int user_count;
    const rondo__nccl_api *api;
    rondo_device *device;
    rondo_communicator *communicator;  // NULL: it was left behind
    rondo__nccl_id id;
    int rank, size;
    bool is_done;
    int code;
    rondo_status status;
    rondo__nccl_comm comm;
} connecting;

static void give_up(connecting *k) {
    (void)pthread_mutex_lock(&k->lock);
    const bool is_last = --k->user_count == 0;
    k->communicator = NULL;
    (void)pthread_mutex_unlock(&k->lock);
    if (is_last) {
        (void)pthread_mutex_destroy(&k->lock);
        rondo_device_release(k->device);
        rondo__free(k);
    }
}

static void *run_connecting(void *argument) {
    connecting *k = argument;
    rondo__cuda_device *device = rondo__cuda_device_of(k->device);
    bool was_pushed;
    rondo__nccl_comm comm = NULL;
    int code = 0;
    const rondo_status status = rondo__cuda_enter(device, &was_pushed);
    if (status == RONDO_STATUS_OK) {
        code = k->api->ncclCommInitRank(&comm, k->size, k->id, k->rank);
        rondo__cuda_leave(device, was_pushed);
    }
    (void)pthread_mutex_lock(&k->lock);
    k->is_done = true;
    k->code = code;
    k->status = status;
    k->comm = comm;
    rondo_communicator *c = k->communicator;
    if (c != NULL) {
        (void)pthread_mutex_lock(&c->lock);
        (void)pthread_cond_broadcast(&c->changed);
        (void)pthread_mutex_unlock(&c->lock);
    }
    (void)pthread_mutex_unlock(&k->lock);
    give_up(k);
    return NULL;
}

static bool is_done(connecting *k) {
    (void)pthread_mutex_lock(&k->lock);
    const bool is = k->is_done;
    (void)pthread_mutex_unlock(&k->lock);
    return is;
}

// Looks without the communicator's lock, which the other thread takes under its own.
static void wait_for(rondo_communicator *c, connecting *k) {
    (void)pthread_mutex_lock(&c->lock);
    for (;;) {
        (void)pthread_mutex_unlock(&c->lock);
        const bool is_over = is_done(k) || atomic_load(&c->is_lost);
        (void)pthread_mutex_lock(&c->lock);
        if (is_over || atomic_load(&c->is_lost)) {
            break;
        }
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 1;  // it may be done since it was asked
        (void)pthread_cond_timedwait(&c->changed, &c->lock, &until);
    }
    (void)pthread_mutex_unlock(&c->lock);
}

static rondo_status connect(rondo_communicator *c, nccl_state *s, const rondo__nccl_id *id) {
    connecting *k = rondo__calloc(1, sizeof *k);
    pthread_t thread;
    if (k == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *k = (connecting){.user_count = 2,
                      .api = s->api,
                      .device = c->device,
                      .communicator = c,
                      .id = *id,
                      .rank = c->meeting.rank,
                      .size = c->meeting.size};
    (void)pthread_mutex_init(&k->lock, NULL);
    rondo_device_retain(c->device);
    rondo_status status = rondo__thread_start("rondo-nccl", run_connecting, k, &thread);
    if (status != RONDO_STATUS_OK) {
        k->user_count = 1;
        give_up(k);
        return status;
    }
    (void)pthread_detach(thread);
    wait_for(c, k);
    (void)pthread_mutex_lock(&k->lock);
    if (!k->is_done) {
        status = RONDO_STATUS_UNAVAILABLE;
    } else if (k->status != RONDO_STATUS_OK) {
        status = RONDO_FAIL_AS(create_name, DRIVER, "the GPU's context is not to be had");
    } else if (k->code != RONDO__NCCL_SUCCESS) {
        status = fail(s, k->code, "ncclCommInitRank");
    } else {
        (void)pthread_mutex_lock(&c->data_lock);
        s->comm = k->comm;
        (void)pthread_mutex_unlock(&c->data_lock);
    }
    (void)pthread_mutex_unlock(&k->lock);
    give_up(k);
    // A lost rank is the better reason.
    return status == RONDO_STATUS_OK || !atomic_load(&c->is_lost) ? status
                                                                  : rondo__communicator_check(c);
}

// Rank 0 makes the id that NCCL finds the others by, and sends it to them.
static rondo_status share_id(rondo_communicator *c, const nccl_state *s, rondo__nccl_id *out_id) {
    const rondo__meeting *m = &c->meeting;
    if (m->rank > 0) {
        return rondo__socket_receive(m->data[0], out_id, sizeof *out_id)
                   ? RONDO_STATUS_OK
                   : RONDO_FAIL_AS(create_name, UNAVAILABLE, "rank 0 has ended");
    }
    const int code = s->api->ncclGetUniqueId(out_id);
    if (code != RONDO__NCCL_SUCCESS) {
        return fail(s, code, "ncclGetUniqueId");
    }
    for (int32_t r = 1; r < m->size; ++r) {
        if (!rondo__socket_send(m->data[r], out_id, sizeof *out_id)) {
            return RONDO_FAIL_AS(create_name, UNAVAILABLE, "rank %d has ended", (int)r);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- collectives --------------------------------------------------------------------------------

static int get_type(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_F32    ? RONDO__NCCL_FLOAT32
           : dtype == RONDO_DTYPE_F64  ? RONDO__NCCL_FLOAT64
           : dtype == RONDO_DTYPE_F16  ? RONDO__NCCL_FLOAT16
           : dtype == RONDO_DTYPE_BF16 ? RONDO__NCCL_BFLOAT16
           : dtype == RONDO_DTYPE_I32  ? RONDO__NCCL_INT32
                                       : RONDO__NCCL_INT64;
}

// One tensor.
static int put_tensor(const nccl_state *s, const rondo_communicator *c,
                      const rondo__reduction *reduction, const rondo__reduction_part *part,
                      const char *input, char *output, void *stream) {
    const int op = part->is_average ? RONDO__NCCL_AVERAGE : RONDO__NCCL_SUM;
    const int type = get_type(part->dtype);
    if (!part->is_split) {
        return s->api->ncclAllReduce(input, output, part->count, type, op, s->comm, stream);
    }
    const size_t count = part->count / (size_t)c->meeting.size;
    const size_t before = count * (size_t)c->meeting.rank * rondo_dtype_get_bytes(part->dtype);
    return reduction->gathers
               ? s->api->ncclAllGather(input + before, output, count, type, s->comm, stream)
               : s->api->ncclReduceScatter(input, output + before, count, type, op, s->comm,
                                           stream);
}

// All tensors as one group: one kernel, where they are of one kind.
static int put_group(const nccl_state *s, const rondo_communicator *c,
                     const rondo__reduction *reduction, const void *const *inputs,
                     void *const *outputs, void *stream) {
    int code = s->api->ncclGroupStart();
    for (size_t i = 0; i < reduction->part_count && code == RONDO__NCCL_SUCCESS; ++i) {
        const rondo__reduction_part *part = &reduction->parts[i];
        const bool is_copy = reduction->gathers && !part->is_split;
        if (outputs[i] != NULL && !is_copy) {  // otherwise nobody reads it, at any rank
            code = put_tensor(s, c, reduction, part, inputs[i], outputs[i], stream);
        }
    }
    const int ended = s->api->ncclGroupEnd();
    return code != RONDO__NCCL_SUCCESS ? code : ended;
}

// What all ranks have whole is copied where all are gathered; and zeros in the parts of others.
static rondo_status put_rest(const rondo_communicator *c, const rondo__reduction *reduction,
                             const void *const *inputs, void *const *outputs,
                             rondo_stream *stream) {
    for (size_t i = 0; i < reduction->part_count; ++i) {
        const rondo__reduction_part *part = &reduction->parts[i];
        const size_t bytes = part->count * rondo_dtype_get_bytes(part->dtype);
        char *output = outputs[i];
        if (output == NULL || bytes == 0) {
            continue;
        }
        if (reduction->gathers && !part->is_split && inputs[i] != output) {
            RETURN_IF_ERROR(
                rondo_stream_copy(stream, output, inputs[i], bytes, RONDO_COPY_DEVICE_TO_DEVICE));
        }
        if (reduction->has_zeros && part->is_split) {
            const size_t own = bytes / (size_t)c->meeting.size;
            const size_t before = own * (size_t)c->meeting.rank;
            const size_t behind = bytes - before - own;
            RETURN_IF_ERROR(before > 0 ? rondo_stream_fill(stream, output, 0, 4, before / 4)
                                       : RONDO_STATUS_OK);
            RETURN_IF_ERROR(behind > 0
                                ? rondo_stream_fill(stream, output + before + own, 0, 4, behind / 4)
                                : RONDO_STATUS_OK);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status put(rondo_communicator *c, const rondo__reduction *reduction,
                        const void *const *inputs, void *const *outputs, rondo_stream *stream) {
    const nccl_state *s = c->state;
    bool was_pushed;
    int code = RONDO__NCCL_SUCCESS;
    RETURN_IF_ERROR(put_rest(c, reduction, inputs, outputs, stream));
    RETURN_IF_ERROR(rondo__cuda_enter(s->device, &was_pushed));
    const int mode = rondo__cuda_relax(s->device);
    (void)pthread_mutex_lock(&c->data_lock);  // against the end of the communicator
    const bool is_there = !s->is_aborted;
    if (is_there) {
        code = put_group(s, c, reduction, inputs, outputs, rondo_stream_get_native(stream));
    }
    (void)pthread_mutex_unlock(&c->data_lock);
    rondo__cuda_restore(s->device, mode);
    rondo__cuda_leave(s->device, was_pushed);
    if (!is_there) {
        return rondo__communicator_check(c);
    }
    return code == RONDO__NCCL_SUCCESS ? RONDO_STATUS_OK : fail(s, code, "ncclGroupEnd");
}

static rondo_status check(rondo_communicator *c) {
    const nccl_state *s = c->state;
    int code = RONDO__NCCL_SUCCESS;
    (void)pthread_mutex_lock(&c->data_lock);
    if (s != NULL && s->comm != NULL && !s->is_aborted) {
        (void)s->api->ncclCommGetAsyncError(s->comm, &code);
    }
    (void)pthread_mutex_unlock(&c->data_lock);
    return code == RONDO__NCCL_SUCCESS || code == RONDO__NCCL_IN_PROGRESS
               ? RONDO_STATUS_OK
               : rondo__communicator_explain(c, s->api->ncclGetErrorString(code));
}

// The first collective, of one number.
static rondo_status warm_up(rondo_communicator *c) {
    const rondo__reduction_part part = {.dtype = RONDO_DTYPE_F32, .count = 1};
    const rondo__reduction reduction = {.part_count = 1, .parts = &part};
    rondo_stream *stream = NULL;
    void *word = NULL;
    RETURN_IF_ERROR(rondo_stream_create(c->device, NULL, &stream));
    rondo_status status = rondo_memory_allocate(c->device, RONDO_MEMORY_DEVICE, 256, &word);
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_fill(stream, word, 0, 4, 1);
    }
    if (status == RONDO_STATUS_OK) {
        status = put(c, &reduction, (const void *const *)&word, &word, stream);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_synchronize(stream);
    }
    rondo_memory_free(c->device, word);
    rondo_stream_destroy(stream);
    return status;
}

static rondo_status open_nccl(rondo_communicator *c) {
    const rondo__nccl_api *api;
    rondo__nccl_id id;
    RETURN_IF_ERROR(rondo__nccl_get_api(&api));
    nccl_state *s = rondo__calloc(1, sizeof *s);
    if (s == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    s->api = api;
    s->device = rondo__cuda_device_of(c->device);
    (void)pthread_mutex_lock(&c->lock);
    c->state = s;
    (void)pthread_mutex_unlock(&c->lock);
    RETURN_IF_ERROR(share_id(c, s, &id));
    RETURN_IF_ERROR(connect(c, s, &id));
    return warm_up(c);
}

// Each communicator is taken once, by the thread that ends it.
static rondo__nccl_comm take_comm(rondo_communicator *c, nccl_state *s) {
    (void)pthread_mutex_lock(&c->data_lock);
    rondo__nccl_comm comm = s->is_aborted ? NULL : s->comm;
    s->is_aborted = s->is_aborted || comm != NULL;
    (void)pthread_mutex_unlock(&c->data_lock);
    return comm;
}

static void end_comm(rondo_communicator *c, bool is_lost) {
    (void)pthread_mutex_lock(&c->lock);
    nccl_state *s = c->state;
    (void)pthread_mutex_unlock(&c->lock);
    rondo__nccl_comm comm = s != NULL ? take_comm(c, s) : NULL;
    bool was_pushed = false;
    if (comm == NULL) {
        return;
    }
    // An abort selects its device by itself; the driver may be busy with what is to end.
    if (!is_lost) {
        rondo__cuda_enter_cleanup(s->device, &was_pushed);
    }
    const int code = is_lost ? s->api->ncclCommAbort(comm) : s->api->ncclCommDestroy(comm);
    if (code != RONDO__NCCL_SUCCESS) {
        RONDO_LOG_WARN_F("NCCL's communicator did not end: %s", s->api->ncclGetErrorString(code));
    }
    rondo__cuda_leave(s->device, was_pushed);
}

// Its kernels see that, and end. It returns when the graphs that hold it are gone, too.
static void interrupt(rondo_communicator *c) {
    end_comm(c, true);
}

static void close_nccl(rondo_communicator *c) {
    end_comm(c, atomic_load(&c->is_lost));
    rondo__free(c->state);
    c->state = NULL;
}

const rondo__transport rondo__transport_nccl = {.name = "nccl",
                                                .open = open_nccl,
                                                .put = put,
                                                .check = check,
                                                .interrupt = interrupt,
                                                .close = close_nccl};
