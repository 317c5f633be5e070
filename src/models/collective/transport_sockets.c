// collective/transport_sockets.c — sums through the meeting's connections, for hosts without MPI.
//
// Rank 0 adds the others' numbers to its own, in the order of ranks, piece by piece, and sends the
// sum to all: every rank has the same bits, run after run.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/memory.h"
#include "collective/sockets.h"
#include "collective/transport.h"

enum { PIECE_BYTES = 1 << 20 };

static rondo_status open_sockets(rondo_communicator *c) {
    if (c->meeting.rank == 0 && c->meeting.size > 1) {
        c->state = rondo__malloc(PIECE_BYTES);
        return c->state != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    }
    return RONDO_STATUS_OK;
}

#define ADD(type)                                     \
    for (size_t i = 0; i < count; ++i) {              \
        ((type *)sum)[i] += ((const type *)other)[i]; \
    }

static void add(void *sum, const void *other, size_t count, rondo_dtype dtype) {
    if (dtype == RONDO_DTYPE_F32) {
        ADD(float)
    } else if (dtype == RONDO_DTYPE_F64) {
        ADD(double)
    } else if (dtype == RONDO_DTYPE_I32) {
        ADD(uint32_t)  // which wraps
    } else {
        ADD(uint64_t)
    }
}

static rondo_status fail(rondo_communicator *c, int32_t rank) {
    char what[64];
    (void)snprintf(what, sizeof what, "the connection with rank %d broke", (int)rank);
    return rondo__communicator_explain(c, what);
}

static rondo_status sum_piece(rondo_communicator *c, char *piece, size_t count, rondo_dtype dtype) {
    const size_t bytes = count * rondo_dtype_get_bytes(dtype);
    const int *fds = c->meeting.data;
    if (c->meeting.rank > 0) {
        const bool is_good =
            rondo__socket_send(fds[0], piece, bytes) && rondo__socket_receive(fds[0], piece, bytes);
        return is_good ? RONDO_STATUS_OK : fail(c, 0);
    }
    for (int32_t r = 1; r < c->meeting.size; ++r) {
        if (!rondo__socket_receive(fds[r], c->state, bytes)) {
            return fail(c, r);
        }
        add(piece, c->state, count, dtype);
    }
    for (int32_t r = 1; r < c->meeting.size; ++r) {
        if (!rondo__socket_send(fds[r], piece, bytes)) {
            return fail(c, r);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status sum(rondo_communicator *c, void *buffer, size_t count, rondo_dtype dtype) {
    const size_t element = rondo_dtype_get_bytes(dtype);
    const size_t most = PIECE_BYTES / element;
    for (size_t first = 0; first < count; first += most) {
        const size_t left = count - first;
        RETURN_IF_ERROR(
            sum_piece(c, (char *)buffer + first * element, left < most ? left : most, dtype));
    }
    return RONDO_STATUS_OK;
}

static void interrupt(rondo_communicator *c) {
    for (int32_t r = 0; r < c->meeting.size; ++r) {
        if (c->meeting.data[r] >= 0) {
            (void)shutdown(c->meeting.data[r], SHUT_RDWR);
        }
    }
}

static void close_sockets(rondo_communicator *c) {
    rondo__free(c->state);
    c->state = NULL;
}

const rondo__transport rondo__transport_sockets = {.name = "sockets",
                                                   .open = open_sockets,
                                                   .sum = sum,
                                                   .interrupt = interrupt,
                                                   .close = close_sockets};
