// libnccl.so.2 of the emulated GPU: all-reduces are host functions on the stream, which a capture
// records; the ranks, threads or processes, exchange numbers through local sockets of rank 0.
//
// As NCCL does, it refuses a capture of a communicator that was never used, and adds in an order of
// its own: of the ranks.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "collective/nccl_api.h"
#include "rondo/tensor.h"

enum { RANKS_MAX = 16, FAILED = 1, REFUSED = 5, REMOTE = 6, CAPTURING = 1 };

typedef struct piece {
    struct comm *comm;
    const void *send;
    void *receive;
    size_t count;  // of all ranks together, where it is gathered or scattered
    int type, op;
    enum { REDUCES, SCATTERS, GATHERS } kind;
    struct piece *next;
} piece;

typedef struct comm {
    int rank, size;
    int fds[RANKS_MAX];
    bool is_used;
    volatile bool is_aborted;
    volatile bool has_failed;
    piece *pieces;  // graphs may run them again
    struct comm *next_aborted;
} comm;

#define EXPORT(result, name, parameters)                           \
    __attribute__((visibility("default"))) result name parameters; \
    result name parameters

// ---- the driver ---------------------------------------------------------------------------------

typedef int (*launch_function)(void *stream, void (*function)(void *), void *data);
typedef int (*status_function)(void *stream, int *out_status);

static void find_driver(const char *name, void *out_function) {
    int (*get)(const char *, void **, int, uint64_t, int *) = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *symbol = library != NULL ? dlsym(library, "cuGetProcAddress_v2") : NULL;
    void *found = NULL;
    int status = 0;
    memcpy(&get, &symbol, sizeof get);
    if (get != NULL) {
        (void)get(name, &found, 13000, 0, &status);
    }
    memcpy(out_function, &found, sizeof found);
}

// ---- sums ---------------------------------------------------------------------------------------

static bool move(int fd, void *bytes, size_t count, bool sends) {
    char *at = bytes;
    while (count > 0) {
        const ssize_t moved = sends ? send(fd, at, count, MSG_NOSIGNAL) : recv(fd, at, count, 0);
        if (moved <= 0) {
            return false;
        }
        at += moved;
        count -= (size_t)moved;
    }
    return true;
}

static size_t get_bytes(int type) {
    return type == RONDO__NCCL_FLOAT32 || type == RONDO__NCCL_INT32   ? 4
           : type == RONDO__NCCL_FLOAT64 || type == RONDO__NCCL_INT64 ? 8
                                                                      : 2;
}

// bf16 and f16 of small whole numbers, which is what the tests have.
static double widen(const void *x, size_t i, int type) {
    if (type == RONDO__NCCL_BFLOAT16) {
        const uint32_t bits = (uint32_t)((const uint16_t *)x)[i] << 16;
        float wide;
        memcpy(&wide, &bits, sizeof wide);
        return (double)wide;
    }
    return type == RONDO__NCCL_FLOAT32   ? (double)((const float *)x)[i]
           : type == RONDO__NCCL_FLOAT64 ? ((const double *)x)[i]
           : type == RONDO__NCCL_INT32   ? (double)((const int32_t *)x)[i]
           : type == RONDO__NCCL_INT64   ? (double)((const int64_t *)x)[i]
                                         : (double)rondo_f16_to_float(((const uint16_t *)x)[i]);
}

static void narrow(void *y, size_t i, int type, double value) {
    if (type == RONDO__NCCL_BFLOAT16) {
        const float wide = (float)value;
        uint32_t bits;
        memcpy(&bits, &wide, sizeof bits);
        ((uint16_t *)y)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    } else if (type == RONDO__NCCL_FLOAT32) {
        ((float *)y)[i] = (float)value;
    } else if (type == RONDO__NCCL_FLOAT64) {
        ((double *)y)[i] = value;
    } else if (type == RONDO__NCCL_INT32) {
        ((int32_t *)y)[i] = (int32_t)value;
    } else if (type == RONDO__NCCL_INT64) {
        ((int64_t *)y)[i] = (int64_t)value;
    } else {
        ((uint16_t *)y)[i] = rondo_f16_from_float((float)value);
    }
}

static bool add_up(const piece *p, double *sums, void *other, void *out) {
    const comm *c = p->comm;
    const size_t bytes = p->count * get_bytes(p->type);
    for (size_t i = 0; i < p->count; i++) {
        sums[i] = widen(p->send, i, p->type);
    }
    for (int r = 1; r < c->size; r++) {
        if (!move(c->fds[r], other, bytes, false)) {
            return false;
        }
        for (size_t i = 0; i < p->count; i++) {
            sums[i] += widen(other, i, p->type);
        }
    }
    for (size_t i = 0; i < p->count; i++) {
        narrow(out, i, p->type, p->op == RONDO__NCCL_AVERAGE ? sums[i] / c->size : sums[i]);
    }
    return true;
}

// Rank 0 gets each rank's part.
static bool collect(const piece *p, char *out) {
    const comm *c = p->comm;
    const size_t own = p->count / (size_t)c->size * get_bytes(p->type);
    bool is_good = true;
    memmove(out, p->send, own);
    for (int r = 1; r < c->size && is_good; r++) {
        is_good = move(c->fds[r], out + (size_t)r * own, own, false);
    }
    return is_good;
}

// On the stream. A rank that is lost leaves garbage, as it does on a GPU. A rank that gets its part
// alone finds nothing else written.
static void run_piece(void *argument) {
    const piece *p = argument;
    comm *c = p->comm;
    const size_t bytes = p->count * get_bytes(p->type);
    const size_t own = bytes / (size_t)c->size;
    const size_t sent = p->kind == GATHERS ? own : bytes;
    double *sums = calloc(p->count + 1, sizeof *sums);
    char *all = malloc(bytes + 1);
    void *other = malloc(bytes + 1);
    bool is_good = sums != NULL && other != NULL && all != NULL && !c->is_aborted;
    if (is_good && c->rank == 0) {
        is_good = p->kind == GATHERS ? collect(p, all) : add_up(p, sums, other, all);
        for (int r = 1; r < c->size && is_good; r++) {
            is_good = move(c->fds[r], all, bytes, true);
        }
    } else if (is_good && c->rank > 0) {
        memcpy(other, p->send, sent);
        is_good = move(c->fds[0], other, sent, true) && move(c->fds[0], all, bytes, false);
    }
    if (is_good && p->kind == SCATTERS) {
        memcpy(p->receive, all + (size_t)c->rank * own, own);
    } else if (is_good) {
        memcpy(p->receive, all, bytes);
    }
    c->has_failed = c->has_failed || !is_good;
    free(sums);
    free(other);
    free(all);
}

// ---- NCCL's calls -------------------------------------------------------------------------------

EXPORT(int, ncclGetVersion, (int *version)) {
    *version = 22803;
    return RONDO__NCCL_SUCCESS;
}

EXPORT(int, ncclGetUniqueId, (rondo__nccl_id * id)) {
    static int count;
    memset(id, 0, sizeof *id);
    (void)snprintf(id->bytes, sizeof id->bytes, "rondo-nccl-%ld-%d", (long)getpid(),
                   __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST));
    return RONDO__NCCL_SUCCESS;
}

static int listen_for(comm *c, const struct sockaddr_un *address, socklen_t bytes) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_good = bind(fd, (const struct sockaddr *)address, bytes) == 0 && listen(fd, 16) == 0;
    for (int i = 1; i < c->size && is_good; i++) {
        int32_t rank = 0;
        const int other = accept(fd, NULL, NULL);
        is_good = other >= 0 && move(other, &rank, sizeof rank, false) && rank < RANKS_MAX;
        if (is_good) {
            c->fds[rank] = other;
        }
    }
    (void)close(fd);
    return is_good ? RONDO__NCCL_SUCCESS : FAILED;
}

static int visit(comm *c, const struct sockaddr_un *address, socklen_t bytes) {
    int32_t rank = c->rank;
    c->fds[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (int tries = 0; tries < 3000; tries++) {
        if (connect(c->fds[0], (const struct sockaddr *)address, bytes) == 0) {
            return move(c->fds[0], &rank, sizeof rank, true) ? RONDO__NCCL_SUCCESS : FAILED;
        }
        (void)usleep(10000);
    }
    return FAILED;
}

EXPORT(int, ncclCommInitRank, (rondo__nccl_comm * out, int size, rondo__nccl_id id, int rank)) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    comm *c = calloc(1, sizeof *c);
    if (c == NULL || size > RANKS_MAX) {
        free(c);
        return FAILED;
    }
    c->rank = rank;
    c->size = size;
    memset(c->fds, -1, sizeof c->fds);
    (void)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%.80s", id.bytes);
    const socklen_t bytes =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(id.bytes));
    const int code = size == 1   ? RONDO__NCCL_SUCCESS
                     : rank == 0 ? listen_for(c, &address, bytes)
                                 : visit(c, &address, bytes);
    *out = c;
    return code;
}

static int put(const piece *call, void *stream) {
    comm *c = call->comm;
    launch_function launch;
    status_function ask;
    int status = 0;
    find_driver("cuLaunchHostFunc", (void *)&launch);
    find_driver("cuStreamIsCapturing", (void *)&ask);
    if (launch == NULL || ask == NULL || ask(stream, &status) != 0 ||
        (status == CAPTURING && !c->is_used)) {
        return REFUSED;
    }
    piece *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return FAILED;
    }
    *p = *call;
    p->next = c->pieces;
    c->pieces = p;
    c->is_used = true;
    return launch(stream, run_piece, p) == 0 ? RONDO__NCCL_SUCCESS : FAILED;
}

EXPORT(int, ncclAllReduce,
       (const void *send, void *receive, size_t count, int type, int op, rondo__nccl_comm handle,
        void *stream)) {
    const piece call = {.comm = handle,
                        .send = send,
                        .receive = receive,
                        .count = count,
                        .type = type,
                        .op = op,
                        .kind = REDUCES};
    return put(&call, stream);
}

EXPORT(int, ncclReduceScatter,
       (const void *send, void *receive, size_t count, int type, int op, rondo__nccl_comm handle,
        void *stream)) {
    const piece call = {.comm = handle,
                        .send = send,
                        .receive = receive,
                        .count = count * (size_t)((struct comm *)handle)->size,
                        .type = type,
                        .op = op,
                        .kind = SCATTERS};
    return put(&call, stream);
}

EXPORT(int, ncclAllGather,
       (const void *send, void *receive, size_t count, int type, rondo__nccl_comm handle,
        void *stream)) {
    const piece call = {.comm = handle,
                        .send = send,
                        .receive = receive,
                        .count = count * (size_t)((struct comm *)handle)->size,
                        .type = type,
                        .kind = GATHERS};
    return put(&call, stream);
}

EXPORT(int, ncclCommGetAsyncError, (rondo__nccl_comm handle, int *code)) {
    const comm *c = handle;
    *code = c->has_failed ? REMOTE : RONDO__NCCL_SUCCESS;
    return RONDO__NCCL_SUCCESS;
}

static void end(comm *c) {
    for (int r = 0; r < RANKS_MAX; r++) {
        if (c->fds[r] >= 0) {
            (void)shutdown(c->fds[r], SHUT_RDWR);
        }
    }
}

// Kept: a function on a stream may still use it.
static _Atomic(comm *) aborted;

EXPORT(int, ncclCommAbort, (rondo__nccl_comm handle)) {
    comm *c = handle;
    c->is_aborted = true;
    end(c);
    c->next_aborted = atomic_exchange(&aborted, c);
    return RONDO__NCCL_SUCCESS;
}

EXPORT(int, ncclCommDestroy, (rondo__nccl_comm handle)) {
    comm *c = handle;
    for (int r = 0; r < RANKS_MAX; r++) {
        if (c->fds[r] >= 0) {
            (void)close(c->fds[r]);
        }
    }
    while (c->pieces != NULL) {
        piece *p = c->pieces;
        c->pieces = p->next;
        free(p);
    }
    free(c);
    return RONDO__NCCL_SUCCESS;
}

EXPORT(int, ncclGroupStart, (void)) {
    return RONDO__NCCL_SUCCESS;
}

EXPORT(int, ncclGroupEnd, (void)) {
    return RONDO__NCCL_SUCCESS;
}

EXPORT(const char *, ncclGetErrorString, (int code)) {
    return code == REFUSED ? "invalid usage" : code == 0 ? "no error" : "unhandled error";
}
