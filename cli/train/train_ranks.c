// SPDX-License-Identifier: Apache-2.0
#include "train_ranks.h"

#include <stdio.h>
#include <string.h>

#include "console.h"
#include "interrupt.h"

bool cli_train_ranks_find(cli_train_ranks *out_ranks) {
    *out_ranks = (cli_train_ranks){.ranks = {.struct_size = sizeof out_ranks->ranks}};
    return rondo_find_ranks(&out_ranks->ranks) == RONDO_STATUS_OK || cli_say_record();
}

bool cli_train_ranks_open_device(const cli_train_ranks *ranks, const char *name,
                                 rondo_device **out_device) {
    char own[24];
    if (rondo_device_open(name, out_device) != RONDO_STATUS_OK) {
        return cli_say_record();
    }
    if (!cli_train_ranks_are_many(ranks) || strcmp(name, "auto") != 0 ||
        rondo_device_is_host(*out_device)) {
        return true;
    }
    rondo_device_release(*out_device);
    *out_device = NULL;
    (void)snprintf(own, sizeof own, "cuda:%d", (int)ranks->ranks.local_rank);
    return rondo_device_open(own, out_device) == RONDO_STATUS_OK || cli_say_record();
}

// After two seconds, and then each ten.
static bool note_wait(void *user_data, const char *what, double seconds) {
    cli_train_ranks *ranks = user_data;
    if (seconds >= (ranks->said_at > 0.0 ? ranks->said_at + 10.0 : 2.0)) {
        (void)fprintf(stderr, "rondo: %s, for %.0f s\n", what, seconds);
        ranks->said_at = seconds;
    }
    return !cli_interrupt_came();
}

bool cli_train_ranks_meet(cli_train_ranks *ranks, rondo_device *device, const char *common) {
    const rondo_communicator_options options = {.struct_size = sizeof options,
                                                .common = common,
                                                .waiting = note_wait,
                                                .waiting_data = ranks};
    if (!cli_train_ranks_are_many(ranks) ||
        rondo_communicator_create(device, &options, &ranks->communicator) == RONDO_STATUS_OK) {
        return true;
    }
    if (!cli_interrupt_came()) {
        return cli_say_record();
    }
    cli_print_error("stopped before all ranks were there");
    return false;
}

float cli_train_ranks_take(const cli_train_ranks *ranks, int64_t count, int64_t *out_first,
                           int64_t *out_count) {
    const int64_t size = ranks->ranks.size;
    const int64_t rank = ranks->ranks.rank;
    const int64_t first = count * rank / size;
    const int64_t own = count * (rank + 1) / size - first;
    *out_first = own > 0 ? first : 0;
    *out_count = own > 0 ? own : 1;
    return (float)((double)own * (double)size / (double)count);
}

bool cli_train_ranks_stop(const cli_train_ranks *ranks) {
    return cli_train_ranks_are_many(ranks) ? ranks->is_stopped : cli_interrupt_came();
}
