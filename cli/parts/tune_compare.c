// tune_compare.c — see tune_compare.h.
// SPDX-License-Identifier: Apache-2.0

#include "tune_compare.h"

#include <string.h>

#include "progress.h"
#include "statistics.h"

static const double turn_s = 0.02;    // of one executor in one round
static const double warm_up_s = 0.1;  // of each before the first round
static const double seconds_max = 20.0;
enum {
    RUNS_MAX = 2000,  // in one turn
    RUNS_MIN = 3,
    ROUNDS_MIN = 5,
    CAPTURE_RUNS_MAX = 4,
};

bool tune_times_judge(tune_times *times) {
    const double ratio_max = 1.01;
    double before[TUNE_ROUNDS], after[TUNE_ROUNDS];
    size_t slower_count = 0;
    memcpy(before, times->before, sizeof before);
    memcpy(after, times->after, sizeof after);
    for (size_t i = 0; i < times->round_count; i++) {
        slower_count += times->after[i] > times->before[i] ? 1 : 0;
    }
    times->before_s = cli_statistics_median(before, times->round_count);
    times->after_s = cli_statistics_median(after, times->round_count);
    return times->after_s > ratio_max * times->before_s &&
           4 * slower_count >= 3 * times->round_count;
}

static bool run_again(rondo_executor *executor, double *out_s) {
    rondo_run_times times = {.struct_size = sizeof times};
    if (rondo_executor_rerun(executor) != RONDO_STATUS_OK ||
        rondo_executor_get_times(executor, &times) != RONDO_STATUS_OK) {
        return false;
    }
    *out_s = (double)times.latency_ns * 1e-9;
    return true;
}

// Feeds, and runs until the graph is made, or until it is clear that none will be.
static bool start(cli_session *session, rondo_executor *executor) {
    double run_s = 0.0;
    for (int i = 0; i < CAPTURE_RUNS_MAX; i++) {
        rondo_run_times times = {.struct_size = sizeof times};
        if (!cli_session_free_varying(session) ||
            rondo_executor_run(executor, session->feeds, session->feed_count, session->fetches,
                               session->fetch_count) != RONDO_STATUS_OK ||
            rondo_executor_get_times(executor, &times) != RONDO_STATUS_OK) {
            return false;
        }
        if (times.replayed_op_count > 0) {
            break;
        }
    }
    const double end = cli_get_seconds() + warm_up_s;
    do {
        if (!run_again(executor, &run_s)) {
            return false;
        }
    } while (cli_get_seconds() < end);
    return true;
}

// The first run is not counted: what the other executor left in caches is not this one's.
static bool take_turn(rondo_executor *executor, double *out_median_s) {
    double runs[RUNS_MAX];
    size_t count = 0;
    if (!run_again(executor, &runs[0])) {
        return false;
    }
    const double end = cli_get_seconds() + turn_s;
    do {
        if (!run_again(executor, &runs[count++])) {
            return false;
        }
    } while (count < RUNS_MAX && (count < RUNS_MIN || cli_get_seconds() < end));
    *out_median_s = cli_statistics_median(runs, count);
    return true;
}

bool tune_compare(cli_session *session, rondo_executor *before, rondo_executor *after,
                  tune_times *out_times) {
    memset(out_times, 0, sizeof *out_times);
    cli_progress_show(NULL, "comparing the whole network", 0, 0);
    if (!start(session, before) || !start(session, after)) {
        return false;
    }
    const double end = cli_get_seconds() + seconds_max;
    for (size_t i = 0; i < TUNE_ROUNDS && (i < ROUNDS_MIN || cli_get_seconds() < end); i++) {
        for (size_t turn = 0; turn < 2; turn++) {
            const bool is_before = (i + turn) % 2 == 0;
            if (!take_turn(is_before ? before : after,
                           is_before ? &out_times->before[i] : &out_times->after[i])) {
                return false;
            }
        }
        out_times->round_count = i + 1;
    }
    return true;
}
