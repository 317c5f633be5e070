// doctor/analysis/doctor_predict.c — see doctor_predict.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/analysis/doctor_predict.h"

#include <stdlib.h>
#include <string.h>

#include "doctor/analysis/doctor_path_times.h"

// The model, in microseconds; bench/results/core/doctor.md says where each comes from.
static const double GRAPH_LAUNCH_US =
    4.0;                                // from the launch of a graph to its first node, and its end
static const double TIMES_VARY = 0.05;  // device times of a replay from those that were taken
// Real replays beside rehearsed ones: a kernel's own memory may be slower or faster than a wait.
static const double REHEARSED_LOW = 0.87;
static const double REHEARSED_HIGH = 1.15;
static const double CAPTURE_NODE_US = 2.5;  // capture and instantiation, a node
static const double AWAY_US = 100.0;
static const double BUSY_SHARE = 0.9;
static const double WORTH_SHARE = 0.05;

static double at(const double *sorted, size_t count, double share) {
    return count > 0 ? sorted[(size_t)((double)(count - 1) * share + 0.5)] : 0.0;
}

// ---- the host ---------------------------------------------------------------------------------

static size_t count_chosen(const rondo__doctor_steps *steps, rondo__doctor_choice choice) {
    size_t count = 0;
    for (size_t i = 0; i < steps->count; i++) {
        count += rondo__doctor_is_chosen(steps, i, choice);
    }
    return count;
}

// Those that say what the host takes.
static rondo__doctor_choice choose(const rondo__doctor_steps *steps) {
    return count_chosen(steps, RONDO__DOCTOR_QUIET) > 0 ? RONDO__DOCTOR_QUIET
                                                        : RONDO__DOCTOR_TYPICAL;
}

// The one in the middle of those.
static const rondo__doctor_step *find_chosen(const rondo__doctor_steps *steps) {
    const rondo__doctor_choice choice = choose(steps);
    size_t rest = count_chosen(steps, choice) / 2;
    size_t i = 0;
    for (; i + 1 < steps->count; i++) {
        const bool is_chosen = rondo__doctor_is_chosen(steps, i, choice);
        if (is_chosen && rest == 0) {
            break;
        }
        rest -= is_chosen;
    }
    return &steps->steps[i];
}

static double find_pause(uint64_t end, uint64_t begin) {
    const double pause = begin > end ? (double)(begin - end) * 1e-3 : 0.0;
    return pause >= AWAY_US ? pause : 0.0;
}

static void add_host_times(const rondo__doctor_steps *steps, const rondo__doctor_step *step,
                           rondo__doctor_costs *costs) {
    const rondo__doctor_event *events = steps->log->events;
    uint64_t end = step->begin_ns;
    double behind = 0.0;  // the last work or wait
    for (size_t i = step->first; i < step->last; i++) {
        const rondo__doctor_event *event = &events[i];
        const double length = (double)event->duration_ns * 1e-3;
        const double pause = find_pause(end, event->begin_ns);
        const rondo__doctor_kind kind = rondo__doctor_call_kind(event->call);
        const bool is_wait = kind == RONDO__DOCTOR_KIND_WAIT ||
                             kind == RONDO__DOCTOR_KIND_COPY_WAIT ||
                             kind == RONDO__DOCTOR_KIND_FILL_WAIT;
        const bool is_work = rondo__doctor_is_work(event->call);
        costs->waits_us += is_wait ? length : 0.0;
        costs->calls_us += !is_wait && is_work ? length : 0.0;
        costs->away_us += pause;
        behind = is_wait || is_work ? 0.0 : behind + pause;
        end =
            event->begin_ns + event->duration_ns > end ? event->begin_ns + event->duration_ns : end;
    }
    const double pause = find_pause(end, step->begin_ns + step->length_ns);
    costs->away_us += pause;
    costs->between_us += behind + pause;
}

static void find_launch_times(const rondo__doctor_steps *steps, rondo__doctor_costs *costs) {
    const rondo__doctor_step *step = find_chosen(steps);
    double *lengths = malloc((step->work_count + 1) * sizeof(*lengths));
    size_t count = 0;
    for (size_t i = 0; lengths != NULL && i < step->work_count; i++) {
        const rondo__doctor_event *event = &steps->log->events[steps->works[step->work_first + i]];
        const rondo__doctor_kind kind = rondo__doctor_call_kind(event->call);
        costs->graph_launch_count += kind == RONDO__DOCTOR_KIND_GRAPH_LAUNCH;
        if (kind == RONDO__DOCTOR_KIND_LAUNCH) {
            lengths[count++] = (double)event->duration_ns * 1e-3;
        }
    }
    if (lengths != NULL) {
        rondo__doctor_sort_lengths(lengths, count);
        costs->launch_us = at(lengths, count, 0.5);
    }
    costs->launch_count = count;
    free(lengths);
}

// Over all but the tenth of the steps that took longest, which something else disturbed.
static void average_host_times(const rondo__doctor_steps *steps, rondo__doctor_choice choice,
                               rondo__doctor_costs *costs) {
    size_t count = 0;
    for (size_t i = 0; i < steps->count; i++) {
        const rondo__doctor_step *step = &steps->steps[i];
        if (rondo__doctor_is_chosen(steps, i, choice) &&
            (double)step->length_ns * 1e-3 <= costs->step_high_us) {
            add_host_times(steps, step, costs);
            ++count;
        }
    }
    if (count > 0) {
        costs->calls_us /= (double)count;
        costs->waits_us /= (double)count;
        costs->away_us /= (double)count;
        costs->between_us /= (double)count;
    }
}

static void find_host_times(const rondo__doctor_steps *steps, rondo__doctor_costs *costs) {
    const rondo__doctor_choice choice = choose(steps);
    double *lengths = malloc((steps->count + 1) * sizeof(*lengths));
    size_t count = 0;
    for (size_t i = 0; lengths != NULL && i < steps->count; i++) {
        if (rondo__doctor_is_chosen(steps, i, choice)) {
            lengths[count++] = (double)steps->steps[i].length_ns * 1e-3;
        }
    }
    if (count > 0) {
        rondo__doctor_sort_lengths(lengths, count);
        costs->step_us = at(lengths, count, 0.5);
        costs->step_low_us = at(lengths, count, 0.1);
        costs->step_high_us = at(lengths, count, 0.9);
        average_host_times(steps, choice, costs);
    }
    free(lengths);
}

// ---- the device -------------------------------------------------------------------------------

static int compare_works(const void *left, const void *right) {
    const rondo__doctor_work *a = left;
    const rondo__doctor_work *b = right;
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns ? 1 : 0;
}

// Works that lie upon each other count once. `works` is sorted.
static double find_busy_us(const rondo__doctor_log *log, const rondo__doctor_work *works,
                           size_t count, bool only_copies) {
    uint64_t end = 0;
    uint64_t busy = 0;
    for (size_t i = 0; i < count; i++) {
        if (only_copies &&
            !rondo__doctor_is_copy_name(rondo__doctor_log_text(log, works[i].name))) {
            continue;
        }
        const uint64_t begin = works[i].begin_ns > end ? works[i].begin_ns : end;
        const uint64_t stop = works[i].begin_ns + works[i].duration_ns;
        busy += stop > begin ? stop - begin : 0;
        end = stop > end ? stop : end;
    }
    return (double)busy * 1e-3;
}

// Steps that the timed works make: counted by works where each call is one, by time where graphs
// are launched.
static double count_timed_steps(const rondo__doctor_steps *steps, const rondo__doctor_costs *costs,
                                const rondo__doctor_work *works, size_t count) {
    if (costs->graph_launch_count == 0) {
        return (double)count / (double)steps->period;
    }
    double length = 0.0;
    size_t timed = 0;
    for (size_t i = 0; i < steps->count; i++) {
        if (steps->steps[i].is_timed && steps->steps[i].is_typical) {
            length += (double)steps->steps[i].length_ns * 1e-3;
            ++timed;
        }
    }
    length = timed > 0 ? length / (double)timed : costs->step_us;
    const rondo__doctor_work *last = &works[count - 1];
    const double span = (double)(last->begin_ns + last->duration_ns - works[0].begin_ns) * 1e-3;
    return length > 0.0 ? span / length : 0.0;
}

static void find_device_times(const rondo__doctor_steps *steps, rondo__doctor_costs *costs) {
    const rondo__doctor_log *log = steps->log;
    const size_t count = log->work_count;
    rondo__doctor_work *works = malloc((count + 1) * sizeof(*works));
    if (works == NULL || count == 0) {
        free(works);
        return;
    }
    memcpy(works, log->works, count * sizeof(*works));
    qsort(works, count, sizeof(*works), compare_works);
    const double timed = count_timed_steps(steps, costs, works, count);
    if (timed >= 1.0) {
        // Works of one stream never lie upon each other; those of the program's start do not count.
        const bool is_one = costs->path.is_known && costs->path.stream_count == 1;
        costs->has_times = true;
        costs->copy_us = find_busy_us(log, works, count, true) / timed;
        costs->device_us =
            is_one ? costs->path.device_us : find_busy_us(log, works, count, false) / timed;
        const double idle = 1.0 - costs->device_us / costs->step_us;
        costs->idle_share = costs->step_us > 0.0 && idle > 0.0 ? idle : 0.0;
    }
    free(works);
}

// ---- the prediction ---------------------------------------------------------------------------

static rondo__doctor_verdict judge(const rondo__doctor_steps *steps,
                                   const rondo__doctor_costs *costs) {
    if (!costs->has_times) {
        return rondo__doctor_launches_graphs(steps) ? RONDO__DOCTOR_IS_GRAPH
                                                    : RONDO__DOCTOR_NO_TIMES;
    }
    if (1.0 - costs->idle_share >= BUSY_SHARE) {
        return costs->copy_us > costs->device_us / 2 ? RONDO__DOCTOR_COPY_BOUND
                                                     : RONDO__DOCTOR_KERNEL_BOUND;
    }
    if (costs->graph_launch_count > 0 && costs->launch_count <= costs->graph_launch_count) {
        return RONDO__DOCTOR_IS_GRAPH;
    }
    const double idle_us = costs->idle_share * costs->step_us;
    return costs->between_us > idle_us / 2 ? RONDO__DOCTOR_HOST_BOUND : RONDO__DOCTOR_LAUNCH_BOUND;
}

static void predict_graph(const rondo__doctor_steps *steps, rondo__doctor_costs *costs) {
    const double nodes = (double)steps->period;
    rondo__doctor_path *path = &costs->path;
    if (!path->is_known) {
        path->replay_us = costs->device_us + nodes * rondo__doctor_typical_gap_us();
        path->replay_low_us = costs->device_us;
        path->replay_high_us = costs->device_us + 3.0 * nodes * rondo__doctor_typical_gap_us();
    }
    const rondo__doctor_replays *seen = &steps->log->rehearsal;
    costs->is_rehearsed = seen->works == steps->period;
    costs->model_us = path->replay_us + GRAPH_LAUNCH_US;
    if (costs->is_rehearsed) {
        // Kernels are no faster than waits, and this machine may be slower than the constants.
        const double rehearsed_us = (double)seen->median_ns * 1e-3;
        costs->graph_us = rehearsed_us > costs->model_us ? rehearsed_us : costs->model_us;
        costs->graph_low_us = (double)seen->low_ns * 1e-3 * REHEARSED_LOW;
        const double high_us = (double)seen->high_ns * 1e-3;
        costs->graph_high_us =
            (high_us > costs->graph_us ? high_us : costs->graph_us) * REHEARSED_HIGH;
    } else {
        costs->graph_us = costs->model_us;
        costs->graph_low_us = path->replay_low_us * (1.0 - TIMES_VARY) + GRAPH_LAUNCH_US / 2;
        costs->graph_high_us = path->replay_high_us * (1.0 + TIMES_VARY) + GRAPH_LAUNCH_US;
    }
    // A graph is no slower than the calls that it was made of: where the device is all that counts,
    // its times, which CUPTI makes longer, are no better than the step's own.
    if (costs->graph_us > costs->step_us && costs->step_us > 0.0) {
        const double low_us = costs->step_us * (1.0 - TIMES_VARY);
        costs->graph_us = costs->step_us;
        costs->graph_low_us = costs->graph_low_us < low_us ? costs->graph_low_us : low_us;
        costs->graph_high_us = costs->step_us * (1.0 + TIMES_VARY);
    }
    costs->after_us = costs->graph_us + costs->between_us;
    if (costs->after_us > costs->step_us) {
        costs->after_us = costs->step_us;
    }
    const double saved = costs->step_us - costs->after_us;
    costs->break_even = saved > 0.0 ? nodes * CAPTURE_NODE_US / saved : 0.0;
}

bool rondo__doctor_predict(const rondo__doctor_steps *steps, rondo__doctor_costs *out_costs) {
    *out_costs = (rondo__doctor_costs){.verdict = RONDO__DOCTOR_NO_STEP};
    if (steps->period == 0) {
        return true;
    }
    find_launch_times(steps, out_costs);
    find_host_times(steps, out_costs);
    if (out_costs->graph_launch_count == 0 && !rondo__doctor_find_path(steps, &out_costs->path)) {
        return false;
    }
    find_device_times(steps, out_costs);
    if (out_costs->has_times) {
        predict_graph(steps, out_costs);
    }
    out_costs->verdict = judge(steps, out_costs);
    return true;
}

bool rondo__doctor_is_worth_it(const rondo__doctor_costs *costs) {
    return costs->has_times && costs->verdict != RONDO__DOCTOR_IS_GRAPH &&
           costs->step_us - costs->after_us > WORTH_SHARE * costs->step_us;
}

const char *rondo__doctor_verdict_name(rondo__doctor_verdict verdict) {
    static const char *const names[] = {
        [RONDO__DOCTOR_NO_STEP] = "no repeated step",
        [RONDO__DOCTOR_NO_TIMES] = "not judged",
        [RONDO__DOCTOR_LAUNCH_BOUND] = "launch-bound",
        [RONDO__DOCTOR_HOST_BOUND] = "waiting for the host",
        [RONDO__DOCTOR_KERNEL_BOUND] = "bound by its kernels",
        [RONDO__DOCTOR_COPY_BOUND] = "bound by its copies",
        [RONDO__DOCTOR_IS_GRAPH] = "launches graphs already",
    };
    return names[verdict];
}
