// SPDX-License-Identifier: Apache-2.0

#include "profile_phases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interrupt.h"
#include "progress.h"

static bool check(const cli_session *session, rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        (void)cli_fail_about(session->path, "");
    }
    return status == RONDO_STATUS_OK;
}

// Ends the event of a phase, also behind a run that failed.
static bool end_event(const cli_session *session, bool is_fine) {
    const rondo_status status = rondo_profile_end();
    return is_fine && check(session, status);
}

// Runs until a run was replayed, or until it is clear that none will be.
static bool capture(cli_session *session) {
    enum { CAPTURE_RUNS_MAX = 4 };
    for (int i = 0; i < CAPTURE_RUNS_MAX; i++) {
        rondo_run_times times = {.struct_size = sizeof times};
        if (!cli_session_run(session) ||
            !check(session, rondo_executor_get_times(session->executor, &times))) {
            return false;
        }
        if (times.replayed_op_count > 0) {
            break;
        }
    }
    return true;
}

static bool prepare(cli_session *session, rondo_graphs_mode graphs, uint64_t warm_up_count) {
    const bool is_eager = graphs == RONDO_GRAPHS_OFF;
    if (!check(session, rondo_executor_set_graphs(session->executor, graphs)) ||
        !check(session, rondo_profile_begin(is_eager ? "prepare eager" : "prepare replay"))) {
        return false;
    }
    cli_progress_show(NULL, "preparing", 0, 0);
    bool is_fine = is_eager ? cli_session_run(session) : capture(session);
    for (uint64_t i = 0; i < warm_up_count && is_fine && !cli_interrupt_came(); i++) {
        is_fine = cli_session_run(session);
    }
    return end_event(session, is_fine);
}

static bool show(cli_session *session, uint64_t run_count, profile_phase *phase) {
    phase->times_ms = calloc(run_count, sizeof *phase->times_ms);
    if (phase->times_ms == NULL) {
        return cli_fail_memory();
    }
    if (!check(session, rondo_profile_begin(phase->name))) {
        return false;
    }
    bool is_fine = true;
    for (uint64_t i = 0; i < run_count && is_fine && !cli_interrupt_came(); i++) {
        const double start = cli_get_seconds();
        is_fine = cli_session_run(session);
        phase->times_ms[i] = (cli_get_seconds() - start) * 1e3;
        phase->run_count += is_fine ? 1 : 0;
    }
    return end_event(session, is_fine);
}

bool profile_phases_run(cli_session *session, rondo_profile *profile, uint64_t run_count,
                        uint64_t warm_up_count, profile_phases *out_phases) {
    const rondo_graphs_mode graphs[PROFILE_MODE_COUNT] = {RONDO_GRAPHS_OFF, session->graphs};
    const size_t mode_count = session->graphs != RONDO_GRAPHS_OFF ? PROFILE_MODE_COUNT : 1;
    *out_phases = (profile_phases){.modes = {{.name = "eager"}, {.name = "replay"}}};
    if (!check(session, rondo_profile_start(profile))) {
        return false;
    }
    bool is_fine = true;
    cli_interrupt_catch(session->executor);
    for (size_t i = 0; i < mode_count && is_fine && !cli_interrupt_came(); i++) {
        is_fine = prepare(session, graphs[i], warm_up_count) &&
                  (cli_interrupt_came() || show(session, run_count, &out_phases->modes[i]));
    }
    out_phases->was_interrupted = cli_interrupt_came();
    cli_interrupt_release();
    cli_progress_clear();
    const rondo_status stopped = rondo_profile_stop(profile);
    return (is_fine || session->was_cancelled) && check(session, stopped);
}

void profile_phases_free(profile_phases *phases) {
    for (size_t i = 0; i < PROFILE_MODE_COUNT; i++) {
        free(phases->modes[i].times_ms);
        phases->modes[i].times_ms = NULL;
    }
}
