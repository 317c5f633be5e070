// collective/launcher.c — see launcher.h.
// SPDX-License-Identifier: Apache-2.0
#include "collective/launcher.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"

enum { RANKS_MAX = 4096 };

// The variables of a launcher. SLURM sets its own in batch scripts, too, which are one process, but
// the number of the step's tasks only in a step. Local ones may be missing.
typedef struct launcher_variables {
    rondo__launcher_id id;
    const char *name;
    const char *rank, *size, *local_rank, *local_size;
} launcher_variables;

static const launcher_variables launchers[] = {
    {RONDO__LAUNCHER_OWN, "rondo", "RONDO_RANK", "RONDO_RANKS", "RONDO_LOCAL_RANK",
     "RONDO_LOCAL_RANKS"},
    {RONDO__LAUNCHER_OPEN_MPI, "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {RONDO__LAUNCHER_TORCHRUN, "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {RONDO__LAUNCHER_MPICH, "MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {RONDO__LAUNCHER_SLURM, "SLURM", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL},
};

static const char *get_text(const char *name) {
    const char *text = name != NULL ? getenv(name) : NULL;
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static rondo_status read_number(const char *name, int32_t fallback, int32_t *out_number) {
    const char *text = get_text(name);
    char *end = NULL;
    *out_number = fallback;
    if (text == NULL) {
        return RONDO_STATUS_OK;
    }
    errno = 0;
    const long number = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || number < 0 || number > RANKS_MAX) {
        return RONDO_FAIL_AS("rondo_find_ranks", INVALID,
                             "%s is \"%.40s\"; it is a number from 0 to %d", name, text, RANKS_MAX);
    }
    *out_number = (int32_t)number;
    return RONDO_STATUS_OK;
}

static rondo_status read_ranks(const launcher_variables *l, rondo_ranks *out) {
    RETURN_IF_ERROR(read_number(l->rank, 0, &out->rank));
    RETURN_IF_ERROR(read_number(l->size, 1, &out->size));
    if (out->size < 1 || out->rank >= out->size) {
        return RONDO_FAIL_AS("rondo_find_ranks", INVALID,
                             "%s is %d and %s is %d; there is at least one rank, and ranks count "
                             "from 0, so that the last is one less than %s",
                             l->rank, (int)out->rank, l->size, (int)out->size, l->size);
    }
    const char *local = get_text(l->local_rank) != NULL ? l->local_rank : "SLURM_LOCALID";
    RETURN_IF_ERROR(read_number(local, out->rank, &out->local_rank));
    return read_number(l->local_size, 0, &out->local_size);
}

rondo_status rondo__launcher_read(rondo_ranks *out_ranks, rondo__launcher_id *out_launcher) {
    rondo_ranks found = {.struct_size = sizeof found, .size = 1, .local_size = 1, .launcher = ""};
    *out_launcher = RONDO__LAUNCHER_NONE;
    if ((get_text("RONDO_RANK") == NULL) != (get_text("RONDO_RANKS") == NULL)) {
        return RONDO_FAIL_AS("rondo_find_ranks", INVALID, "%s is set and %s is not; set both",
                             get_text("RONDO_RANK") != NULL ? "RONDO_RANK" : "RONDO_RANKS",
                             get_text("RONDO_RANK") != NULL ? "RONDO_RANKS" : "RONDO_RANK");
    }
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; ++i) {
        const launcher_variables *l = &launchers[i];
        if (get_text(l->rank) != NULL && get_text(l->size) != NULL) {
            RETURN_IF_ERROR(read_ranks(l, &found));
            found.launcher = l->name;
            *out_launcher = l->id;
            break;
        }
    }
    *out_ranks = found;
    return RONDO_STATUS_OK;
}

// What tells a job from others: a name that its launcher gives it, or the process that started it.
static uint64_t hash_job(rondo__launcher_id launcher) {
    static const char *const names[][4] = {
        [RONDO__LAUNCHER_OPEN_MPI] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
        [RONDO__LAUNCHER_TORCHRUN] = {"TORCHELASTIC_RUN_ID", "MASTER_PORT",
                                      "TORCHELASTIC_RESTART_COUNT"},
        [RONDO__LAUNCHER_SLURM] = {"SLURM_JOB_ID", "SLURM_STEP_ID"},
    };
    uint64_t hash = RONDO__HASH_SEED;
    bool is_named = false;
    for (size_t i = 0; launcher < sizeof names / sizeof *names && i < 4; ++i) {
        const char *text = get_text(names[launcher][i]);
        if (text != NULL) {
            hash = rondo__hash64(hash, text, strlen(text) + 1);
            is_named = true;
        }
    }
    if (!is_named) {
        const pid_t parent = getppid();
        hash = rondo__hash64(hash, &parent, sizeof parent);
    }
    return hash;
}

rondo_status rondo__launcher_name_file(rondo__launcher_id launcher, char *out_path, size_t bytes) {
    const char *folder = get_text("TMPDIR");
    folder = folder != NULL ? folder : "/tmp";
    const int used = snprintf(out_path, bytes, "%s/rondo-%lu-%016" PRIx64, folder,
                              (unsigned long)geteuid(), hash_job(launcher));
    return used > 0 && (size_t)used < bytes
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS("rondo_communicator_create", INVALID,
                               "TMPDIR has %zu bytes, too many for the file where the ranks meet; "
                               "set RONDO_MEETING to a shorter path, or HOST:PORT",
                               strlen(folder));
}

bool rondo__launcher_get_master(char *out_address, size_t bytes) {
    const char *host = get_text("MASTER_ADDR");
    const char *port = get_text("MASTER_PORT");
    const char *agent = get_text("TORCHELASTIC_USE_AGENT_STORE");
    if (host == NULL || port == NULL || (agent != NULL && strcmp(agent, "True") == 0)) {
        return false;
    }
    // What is cut is no address, and is refused as such.
    (void)snprintf(out_address, bytes, "%.300s:%.100s", host, port);
    return true;
}
