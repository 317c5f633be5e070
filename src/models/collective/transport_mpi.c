// collective/transport_mpi.c — sums by the MPI whose launcher started the ranks.
//
// The module (mpi/mpi_module.h) lies beside the library, or below its folder; RONDO_LIBRARY_PATH
// comes first. It is opened for all to see: MPI loads parts of its own that look for its symbols.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "collective/mpi/mpi_module.h"
#include "collective/transport.h"

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static const rondo__mpi_module *mpi_loaded;  // guarded by load_lock; a process has one MPI
static rondo__launcher_id loaded_for;

static const char *get_file_name(rondo__launcher_id launcher) {
    return launcher == RONDO__LAUNCHER_OPEN_MPI ? "librondo-mpi-openmpi.so"
           : launcher == RONDO__LAUNCHER_MPICH  ? "librondo-mpi-mpich.so"
                                                : NULL;
}

static void *try_folder(const char *folder, size_t length, const char *below, const char *name) {
    char path[PATH_MAX];
    const int used = snprintf(path, sizeof path, "%.*s%s/%s", (int)length, folder, below, name);
    return used > 0 && (size_t)used < sizeof path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
}

// Of the library, or of the program that it is a part of; 0: not known.
static size_t find_own_folder(char out_path[PATH_MAX]) {
    Dl_info own = {0};
    if (dladdr((const void *)&rondo__transport_mpi, &own) != 0 &&
        strchr(own.dli_fname, '/') != NULL) {
        (void)snprintf(out_path, PATH_MAX, "%s", own.dli_fname);
    } else {
        const ssize_t bytes = readlink("/proc/self/exe", out_path, PATH_MAX - 1);
        out_path[bytes > 0 ? bytes : 0] = '\0';
    }
    const char *end = strrchr(out_path, '/');
    return end != NULL ? (size_t)(end - out_path) : 0;
}

static void *try_all(const char *name) {
    static const char *const below[] = {"", "/rondo", "/../" RONDO_LIBRARY_FOLDER "/rondo"};
    const char *list = getenv("RONDO_LIBRARY_PATH");
    void *found = NULL;
    while (list != NULL && found == NULL && *list != '\0') {
        const size_t length = strcspn(list, ":");
        found = length > 0 ? try_folder(list, length, "", name) : NULL;
        list += length + (list[length] == ':' ? 1 : 0);
    }
    char own[PATH_MAX];
    const size_t length = found == NULL ? find_own_folder(own) : 0;
    for (size_t i = 0; length > 0 && found == NULL && i < sizeof below / sizeof *below; ++i) {
        found = try_folder(own, length, below[i], name);
    }
    return found;
}

// Under load_lock.
static rondo_status load(rondo__launcher_id launcher, const char *name) {
    void *library = try_all(name);
    if (library == NULL) {
        const char *why = dlerror();
        return RONDO_FAIL_AS("rondo_communicator_create", UNAVAILABLE,
                             "%s does not load, which makes sums with this MPI (%.120s)", name,
                             why != NULL ? why : "no reason");
    }
    rondo__mpi_getter get;
    void *symbol = dlsym(library, RONDO__MPI_SYMBOL);
    memcpy(&get, &symbol, sizeof get);
    const rondo__mpi_module *module = symbol != NULL ? get() : NULL;
    if (module == NULL || module->version != RONDO__MPI_VERSION) {
        return RONDO_FAIL_AS("rondo_communicator_create", UNAVAILABLE,
                             "%s is of another version of Rondo", name);
    }
    mpi_loaded = module;
    loaded_for = launcher;
    return RONDO_STATUS_OK;
}

rondo_status rondo__mpi_find(rondo__launcher_id launcher) {
    const char *name = get_file_name(launcher);
    if (name == NULL) {
        return RONDO_FAIL_AS("rondo_communicator_create", UNAVAILABLE,
                             "the ranks were not started by mpirun of Open MPI or MPICH");
    }
    (void)pthread_mutex_lock(&load_lock);
    const rondo_status status =
        mpi_loaded != NULL && loaded_for == launcher ? RONDO_STATUS_OK : load(launcher, name);
    (void)pthread_mutex_unlock(&load_lock);
    return status;
}

static rondo_status open_mpi(rondo_communicator *c) {
    char problem[160] = "";
    int rank = 0;
    int size = 0;
    (void)pthread_mutex_lock(&load_lock);
    const rondo__mpi_module *module = mpi_loaded;
    (void)pthread_mutex_unlock(&load_lock);
    const int code = module->open(&rank, &size, problem, sizeof problem);
    if (code != 0) {
        return RONDO_FAIL_AS("rondo_communicator_create", UNAVAILABLE,
                             "MPI does not start: %s; RONDO_TRANSPORT_SOCKETS, or RONDO_RANK and "
                             "RONDO_RANKS in the place of the launcher's variables, do without it",
                             problem);
    }
    memcpy(&c->state, &module, sizeof module);
    return rank == c->meeting.rank && size == c->meeting.size
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS("rondo_communicator_create", UNAVAILABLE,
                               "MPI says that this is rank %d of %d, its launcher's variables say "
                               "%d of %d; start the ranks with the mpirun of the same MPI",
                               rank, size, (int)c->meeting.rank, (int)c->meeting.size);
}

static int is_lost(void *data) {
    return atomic_load(&((rondo_communicator *)data)->is_lost) ? 1 : 0;
}

static rondo_status sum(rondo_communicator *c, void *buffer, size_t count, rondo_dtype dtype) {
    const rondo__mpi_module *module = c->state;
    const rondo__mpi_type type = dtype == RONDO_DTYPE_F32   ? RONDO__MPI_F32
                                 : dtype == RONDO_DTYPE_F64 ? RONDO__MPI_F64
                                 : dtype == RONDO_DTYPE_I32 ? RONDO__MPI_I32
                                                            : RONDO__MPI_I64;
    char problem[160] = "";
    const int code = module->sum(buffer, (int64_t)count, type, is_lost, c, problem, sizeof problem);
    if (code != 0) {
        RETURN_IF_ERROR(rondo__communicator_check(c));
        return RONDO_FAIL_AS("rondo_executor_run", UNAVAILABLE,
                             "MPI failed in a sum: %s; start all ranks again from the last "
                             "checkpoint, with RONDO_TRANSPORT_SOCKETS if it goes on failing",
                             problem);
    }
    return RONDO_STATUS_OK;
}

static void interrupt(rondo_communicator *c) {
    (void)c;  // sums ask
}

static void close_mpi(rondo_communicator *c) {
    if (c->state != NULL) {
        ((const rondo__mpi_module *)c->state)->close(is_lost(c));
        c->state = NULL;
    }
}

const rondo__transport rondo__transport_mpi = {
    .name = "mpi", .open = open_mpi, .sum = sum, .interrupt = interrupt, .close = close_mpi};
