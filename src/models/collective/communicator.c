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

static const char create_name[] = "rondo_communicator_create";
enum { WAIT_MS = 120000 };

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
    rondo__communicator_leave(c);
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
    const uint64_t now = rondo__clock_now_ns();
    const uint64_t wait_ms = o->wait_ms > 0 ? o->wait_ms : WAIT_MS;
    const rondo__patience patience = {now, now + wait_ms * 1000000, o->waiting, o->waiting_data};
    RETURN_IF_ERROR(choose_ranks(o, &ranks, &c->launcher));
    RETURN_IF_ERROR(rondo__communicator_enter(c));
    RETURN_IF_ERROR(choose_transport(c, o->transport));
    const int length = snprintf(traits, sizeof traits, "transport %s\n%s", c->transport->name,
                                o->common != NULL ? o->common : "");
    if (length >= (int)sizeof traits) {
        return RONDO_FAIL_AS(create_name, INVALID, "options.common has %zu bytes, at most 1980",
                             strlen(o->common));
    }
    RETURN_IF_ERROR(
        rondo__meeting_hold(&ranks, c->launcher, o->meeting, traits, &patience, &c->meeting));
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

int32_t rondo__communicator_get_rank(const rondo_communicator *communicator) {
    return communicator->meeting.rank;
}

int32_t rondo__communicator_get_size(const rondo_communicator *communicator) {
    return communicator->meeting.size;
}

rondo_device *rondo__communicator_get_device(const rondo_communicator *communicator) {
    return communicator->device;
}
