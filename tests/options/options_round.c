// options/options_round.c — one round: an executor with drawn options, and drawn calls on it. Each
// gives what a plain run gives, or fails as an option promises.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/options.h"
#include "support/cases/interpret.h"
#include "support/expect_ok.h"
#include "support/sweep.h"
#include "support/text_sink.h"
#include "tensor/elements.h"

enum { CALLS_MIN = 6, CALLS_MORE = 10, PENDING_MAX = 3, FAULT_MAX = 400 };

// A run that is not waited for, or a recorded one.
typedef struct pending {
    size_t set;
    size_t count;
    rondo_binding fetches[PORTS_MAX];
    rondo_tensor wanted[PORTS_MAX];  // by fetch; owned
} pending;

// A run recorded into a graph.
typedef struct recording {
    rondo_graph *graph;
    rondo_stream *stream;
    pending run;
    rondo_tensor feeds[PORTS_MAX];
} recording;

typedef struct round_state {
    rondo_device *device;
    rondo_device *host;
    const option_row *row;
    dice d;
    subject s;
    settings settings;
    rondo_executor *executor;
    rondo_executor *twin;  // plain, on the host: for what depends on the runs before
    rondo_tensor state;    // of the twin; NONE: not known
    bool is_bound;
    bool is_forgotten;  // its executor may have lost it, of which replays know nothing
    bool is_apart;      // the twin has drawn other numbers
    bool has_fault;     // an allocation fails in the call at hand,
    bool is_late;       // or has failed in a run that nobody has waited for
    pending pending[PENDING_MAX];
    size_t pending_count;
    recording recording;
    bool is_good;
    bool is_told;
    uint64_t sequence;  // of the error record before the call
    const char *call;
    size_t set;  // of feeds, of the value at hand
} round_state;

RONDO_PRINTF(2, 3) static void complain(round_state *r, const char *format, ...) {
    va_list arguments;
    r->is_good = false;
    va_start(arguments, format);
    printf("  %s, %s: ", r->s.name, r->call);
    (void)vprintf(format, arguments);
    printf(" (set %zu)\n", r->set);
    va_end(arguments);
}

// ---- what may fail ----------------------------------------------------------------------------

// Whether the options promise this failure. The record must be new.
static bool is_promised(round_state *r, rondo_status status) {
    const rondo_error *error = rondo_error_get_last();
    const rondo_executor_options *o = &r->settings.options;
    if (error->sequence <= r->sequence || error->status != status || error->message[0] == '\0') {
        complain(r, "%s has no record of its own: \"%s\"", rondo_status_get_name(status),
                 error->message);
        return true;
    }
    if (status == RONDO_STATUS_NO_MEMORY || status == RONDO_STATUS_NO_DEVICE_MEMORY) {
        return r->has_fault ||
               (o->memory_limit_bytes > 0 && strstr(error->message, "limit of") != NULL) ||
               (o->weight_limit_bytes > 0 && strstr(error->message, "weight_limit_bytes") != NULL);
    }
    if (status == RONDO_STATUS_UNSUPPORTED && o->place_count > 0) {
        return strstr(error->message, "by options.place") != NULL;
    }
    if (status == RONDO_STATUS_BAD_DATA && o->loop_limit > 0) {
        return strstr(error->message, "loop_limit") != NULL;
    }
    return false;
}

static void begin(round_state *r, const char *call) {
    r->call = call;
    r->sequence = rondo_error_get_last()->sequence;
    if (getenv("RONDO_OPTIONS_VERBOSE") != NULL) {
        printf("    %s\n", call);
        fflush(stdout);
    }
    if (r->row->level[OPTION_FAULTS] == 1 && dice_draw(&r->d, 3) == 0) {
        const size_t n = (size_t)dice_draw_size(&r->d, 1, FAULT_MAX) - 1;
        if (getenv("RONDO_OPTIONS_VERBOSE") != NULL) {
            printf("      allocation %zu fails\n", n);
        }
        r->has_fault = true;
        sweep_fail_allocation(n, dice_draw(&r->d, 2) == 0);
    }
}

// What has succeeded under a fault that came has got along without the memory.
static void end(round_state *r) {
    if (r->has_fault) {
        (void)sweep_end_allocations();
    }
}

static void check_status(round_state *r, rondo_status status, rondo_status wanted) {
    if (status == wanted || (status != RONDO_STATUS_OK && is_promised(r, status))) {
        return;
    }
    complain(r, "%s, not %s: %s", rondo_status_get_name(status), rondo_status_get_name(wanted),
             status != RONDO_STATUS_OK ? rondo_error_get_last()->message : "");
}

// ---- what comes out ---------------------------------------------------------------------------

static void check_value(round_state *r, const char *name, const rondo_tensor *tensor,
                        const rondo_tensor *wanted) {
    const bool is_half = r->row->level[OPTION_DTYPE] > 0;
    rondo_tensor near = {0};
    if (!rondo_tensor_is_on_host(tensor)) {
        rondo_stream *stream;
        OK(rondo_stream_create(r->device, NULL, &stream));
        OK(rondo_tensor_init(tensor->dtype, &tensor->shape, &near));
        OK(rondo_tensor_copy(stream, tensor, &near));
        OK(rondo_stream_synchronize(stream));
        rondo_stream_destroy(stream);
    } else {
        rondo_tensor_share(tensor, &near);
    }
    const double difference = compare_tensors(&near, wanted);
    if (!(is_half && r->s.branches) && !(difference <= (is_half ? 0.2 : 1e-4))) {
        char have[96];
        char want[96];
        complain(r, "output \"%s\" %s %s differs by %g from %s %s", name,
                 rondo_dtype_get_name(near.dtype),
                 rondo_shape_format(&near.shape, have, sizeof have), difference,
                 rondo_dtype_get_name(wanted->dtype),
                 rondo_shape_format(&wanted->shape, want, sizeof want));
    }
    rondo_tensor_deinit(&near);
}

// The feeds of a run: a bound input has its state.
static size_t copy_feeds(const round_state *r, size_t set, bool leaves_state,
                         rondo_binding *out_feeds) {
    size_t count = 0;
    for (size_t i = 0; i < r->s.sets[set].count; ++i) {
        if (!(leaves_state && (int)i == r->s.state)) {
            out_feeds[count++] = r->s.sets[set].feeds[i];
        }
    }
    return count;
}

// What a run gives whose results depend on the runs before.
static rondo_status run_twin(round_state *r, size_t set, bool leaves_state, rondo_tensor *wanted) {
    rondo_binding feeds[PORTS_MAX];
    rondo_binding fetches[PORTS_MAX] = {{0}};
    const size_t count = copy_feeds(r, set, false, feeds);
    if (leaves_state) {
        feeds[r->s.state].tensor = r->state;
    }
    for (size_t i = 0; i < r->s.output_count; ++i) {
        fetches[i].name = r->s.outputs[i];
    }
    const rondo_status status =
        rondo_executor_run(r->twin, feeds, count, fetches, r->s.output_count);
    for (size_t i = 0; i < r->s.output_count; ++i) {
        wanted[i] = fetches[i].tensor;
    }
    if (r->is_bound && status == RONDO_STATUS_OK) {
        rondo_tensor_deinit(&r->state);
        rondo_tensor_share(&wanted[r->s.state_output], &r->state);
        r->is_forgotten = false;
    }
    return status;
}

static bool has_past(const round_state *r) {
    return r->s.draws || r->is_bound;
}

// Draws fetches: some of the outputs, on the device or given or neither.
static void draw_fetches(round_state *r, size_t set, pending *run) {
    memset(run, 0, sizeof *run);
    run->set = set;
    for (size_t i = 0; i < r->s.output_count; ++i) {
        const rondo_tensor *wanted = &r->s.sets[set].wanted[i];
        rondo_binding *fetch = &run->fetches[run->count];
        if (dice_draw(&r->d, 4) == 0) {
            continue;
        }
        fetch->name = r->s.outputs[i];
        run->count += 1;
        const bool is_plain = rondo__dtype_is_plain(wanted->dtype);
        const uint64_t way = dice_draw(&r->d, 4);
        if (is_plain && way == 0) {
            OK(rondo_tensor_init(wanted->dtype, &wanted->shape, &fetch->tensor));
        } else if (is_plain && way == 1) {
            OK(rondo_tensor_init_device(r->device, wanted->dtype, &wanted->shape, &fetch->tensor));
        } else if (is_plain && way == 2) {
            fetch->tensor.device = r->device;
        }
    }
}

static size_t find_output(const round_state *r, const char *name) {
    size_t i = 0;
    while (strcmp(r->s.outputs[i], name) != 0) {
        i += 1;
    }
    return i;
}

static void keep_wanted(const round_state *r, const rondo_tensor *wanted, pending *run) {
    for (size_t f = 0; f < run->count; ++f) {
        rondo_tensor_share(&wanted[find_output(r, run->fetches[f].name)], &run->wanted[f]);
    }
}

static void free_pending(pending *run) {
    for (size_t f = 0; f < run->count; ++f) {
        rondo_tensor_deinit(&run->fetches[f].tensor);
        rondo_tensor_deinit(&run->wanted[f]);
    }
    memset(run, 0, sizeof *run);
}

static void check_pending(round_state *r, pending *run) {
    r->set = run->set;
    for (size_t f = 0; f < run->count; ++f) {
        if (!r->is_apart) {
            check_value(r, run->fetches[f].name, &run->fetches[f].tensor, &run->wanted[f]);
        }
    }
}

// A run has been put or done: what it gives.
static void note_success(round_state *r, pending *run, bool leaves_state) {
    if (has_past(r) && !r->is_apart) {
        rondo_tensor wanted[PORTS_MAX] = {{0}};
        OK(run_twin(r, run->set, leaves_state, wanted));
        keep_wanted(r, wanted, run);
        for (size_t i = 0; i < r->s.output_count; ++i) {
            rondo_tensor_deinit(&wanted[i]);
        }
    } else {
        keep_wanted(r, r->s.sets[run->set].wanted, run);
    }
}

// Until a run feeds it.
static void forget_state(round_state *r) {
    rondo_tensor_deinit(&r->state);
    r->state = (rondo_tensor){0};
    r->is_forgotten = true;
}

static void note_failure(round_state *r) {
    r->is_apart = r->is_apart || r->s.draws;  // how much it had drawn is not promised
    forget_state(r);                          // it may have no value any more
}

// ---- runs -------------------------------------------------------------------------------------

static void settle(round_state *r, bool is_ok) {
    for (size_t p = 0; p < r->pending_count; ++p) {
        if (is_ok) {
            check_pending(r, &r->pending[p]);
        }
        free_pending(&r->pending[p]);
    }
    if (!is_ok && r->pending_count > 0) {
        r->is_apart = r->is_apart || has_past(r);
        forget_state(r);
    }
    r->pending_count = 0;
}

// Waits for what was not waited for.
static void wait_for_all(round_state *r) {
    r->call = "wait";
    r->sequence = rondo_error_get_last()->sequence;
    r->has_fault = r->is_late;
    r->is_late = false;
    const rondo_status status = rondo_executor_wait(r->executor);
    check_status(r, status, RONDO_STATUS_OK);
    settle(r, status == RONDO_STATUS_OK);
    r->has_fault = false;
}

static bool draw_leaves_state(round_state *r) {
    return r->is_bound && r->state.dtype != RONDO_DTYPE_NONE && !r->is_apart &&
           dice_draw(&r->d, 4) != 0;
}

static void do_run(round_state *r, size_t set, bool checks) {
    rondo_binding feeds[PORTS_MAX];
    pending run;
    rondo_self_check_report report = {.struct_size = sizeof report};
    wait_for_all(r);
    const bool leaves_state = draw_leaves_state(r);
    const size_t count = copy_feeds(r, set, leaves_state, feeds);
    draw_fetches(r, set, &run);
    begin(r, checks ? "self_check" : "run");
    const rondo_status status =
        checks
            ? rondo_executor_self_check(r->executor, feeds, count, run.fetches, run.count, &report)
            : rondo_executor_run(r->executor, feeds, count, run.fetches, run.count);
    end(r);
    if (checks && status == RONDO_STATUS_STATE &&
        strstr(rondo_error_get_last()->message, "graphs are off") != NULL) {
        free_pending(&run);
        return;
    }
    check_status(r, status, r->s.sets[set].status);
    if (status == RONDO_STATUS_OK) {
        note_success(r, &run, leaves_state);
        check_pending(r, &run);
    } else {
        note_failure(r);
    }
    if (report.is_different) {
        complain(r, "%s \"%s\": %s is %s in a replay", report.op, report.node, report.eager,
                 report.replayed);
    }
    free_pending(&run);
}

static void do_run_async(round_state *r, size_t set) {
    rondo_binding feeds[PORTS_MAX];
    rondo_event *done = NULL;
    if (r->pending_count == PENDING_MAX) {
        wait_for_all(r);
    }
    pending *run = &r->pending[r->pending_count];
    const bool leaves_state = draw_leaves_state(r);
    const size_t count = copy_feeds(r, set, leaves_state, feeds);
    draw_fetches(r, set, run);
    if (dice_draw(&r->d, 3) == 0) {
        OK(rondo_event_create(r->device, 0, &done));
    }
    begin(r, "run_async");
    const rondo_status status =
        rondo_executor_run_async(r->executor, feeds, count, run->fetches, run->count, done);
    end(r);
    const bool may_be_earlier = r->is_late;  // whose failure a call tells that waits for it
    r->has_fault = r->has_fault || may_be_earlier;
    r->is_late = r->has_fault;
    if (!(r->s.branches && r->s.sets[set].status != RONDO_STATUS_OK)) {
        check_status(r, status, r->s.sets[set].status);
    }
    if (status == RONDO_STATUS_OK) {
        note_success(r, run, leaves_state);
        r->pending_count += 1;
        if (done != NULL) {
            (void)!rondo_event_synchronize(done);
        }
    } else {
        note_failure(r);
        free_pending(run);
        if (status == RONDO_STATUS_BAD_DATA || may_be_earlier) {
            settle(r, false);  // it may have waited for an earlier one, and tell of that
        }
    }
    rondo_event_destroy(done);
}

static void do_rerun(round_state *r) {
    wait_for_all(r);
    begin(r, "rerun");
    const rondo_status status = rondo_executor_rerun(r->executor);
    end(r);
    if (status != RONDO_STATUS_STATE && status != RONDO_STATUS_BAD_DATA) {
        check_status(r, status, RONDO_STATUS_OK);
    }
    r->is_apart = r->is_apart || r->s.draws;
    forget_state(r);
}

// ---- a run that is recorded ------------------------------------------------------------------

static void free_recording(recording *rec) {
    rondo_graph_destroy(rec->graph);
    rondo_stream_destroy(rec->stream);
    free_pending(&rec->run);
    for (size_t i = 0; i < PORTS_MAX; ++i) {
        rondo_tensor_deinit(&rec->feeds[i]);
    }
    memset(rec, 0, sizeof *rec);
}

static void replay(round_state *r) {
    recording *rec = &r->recording;
    if (rec->graph == NULL) {
        return;
    }
    r->call = "replay";
    OK(rondo_graph_replay(rec->graph, rec->stream));
    OK(rondo_stream_synchronize(rec->stream));
    if (!has_past(r) && r->settings.options.loop_limit == 0) {
        check_pending(r, &rec->run);
    }
    if (r->is_bound &&
        !r->is_forgotten) {  // the recorded run feeds the state, and leaves what becomes of that
        rondo_tensor_deinit(&r->state);
        rondo_tensor_share(&r->s.sets[rec->run.set].wanted[r->s.state_output], &r->state);
    }
}

// Device tensors of all feeds; false: one is no tensor of numbers.
static bool copy_to_device(round_state *r, size_t count, rondo_binding *feeds) {
    recording *rec = &r->recording;
    for (size_t i = 0; i < count; ++i) {
        const rondo_tensor from = feeds[i].tensor;
        if (!rondo__dtype_is_plain(from.dtype)) {
            return false;
        }
        OK(rondo_tensor_init_device(r->device, from.dtype, &from.shape, &rec->feeds[i]));
        OK(rondo_tensor_copy(rec->stream, &from, &rec->feeds[i]));
        feeds[i].tensor = rec->feeds[i];
    }
    OK(rondo_stream_synchronize(rec->stream));
    return true;
}

static void do_record(round_state *r, size_t set) {
    recording *rec = &r->recording;
    rondo_binding feeds[PORTS_MAX];
    free_recording(rec);
    wait_for_all(r);
    if (r->s.sets[set].status != RONDO_STATUS_OK) {
        return;
    }
    const size_t count = copy_feeds(r, set, false, feeds);
    OK(rondo_stream_create(r->device, NULL, &rec->stream));
    rec->run.set = set;
    for (size_t i = 0; i < r->s.output_count; ++i) {
        const rondo_tensor *wanted = &r->s.sets[set].wanted[i];
        if (rondo__dtype_is_plain(wanted->dtype)) {
            rondo_binding *fetch = &rec->run.fetches[rec->run.count++];
            fetch->name = r->s.outputs[i];
            OK(rondo_tensor_init_device(r->device, wanted->dtype, &wanted->shape, &fetch->tensor));
        }
    }
    if (!copy_to_device(r, count, feeds)) {
        free_recording(rec);
        return;
    }
    OK(rondo_graph_create(r->device, NULL, &rec->graph));
    OK(rondo_graph_capture_begin(rec->graph, rec->stream, RONDO_CAPTURE_THREAD_LOCAL));
    begin(r, "record");
    const rondo_status status = rondo_executor_record(r->executor, rec->stream, feeds, count,
                                                      rec->run.fetches, rec->run.count);
    end(r);
    const bool is_refused = status == RONDO_STATUS_UNSUPPORTED || status == RONDO_STATUS_STATE ||
                            status == RONDO_STATUS_INVALID;
    if (!is_refused) {
        check_status(r, status, RONDO_STATUS_OK);
    }
    const rondo_status ended = rondo_graph_capture_end(rec->graph);
    if (status == RONDO_STATUS_OK && ended == RONDO_STATUS_OK) {
        keep_wanted(r, r->s.sets[set].wanted, &rec->run);
        replay(r);
        r->is_apart = r->is_apart || r->s.draws;
    } else {
        if (status == RONDO_STATUS_OK) {
            complain(r, "capture_end: %s", rondo_error_get_last()->message);
        }
        free_recording(rec);
    }
}

// ---- other calls ------------------------------------------------------------------------------

static void do_describe(round_state *r, size_t set) {
    static const rondo_text_format formats[] = {RONDO_TEXT_PLAIN, RONDO_TEXT_JSON, RONDO_TEXT_SVG};
    rondo_binding feeds[PORTS_MAX];
    size_t count = 0;
    wait_for_all(r);
    const rondo_text_format format = formats[dice_draw(&r->d, 3)];
    const bool is_declared = dice_draw(&r->d, 2) == 0;
    const size_t feed_count = copy_feeds(r, set, false, feeds);
    begin(r, is_declared ? "describe" : "describe_feeds");
    rondo_status status = is_declared
                              ? rondo_executor_describe(r->executor, format, text_sink_ignore, NULL)
                              : rondo_executor_describe_feeds(r->executor, feeds, feed_count,
                                                              format, text_sink_ignore, NULL);
    if (status == RONDO_STATUS_OK) {
        r->call = "list_placements";
        r->sequence = rondo_error_get_last()->sequence;
        status = rondo_executor_list_placements(r->executor, feeds, feed_count, 0, NULL, &count);
    }
    end(r);
    // Zeros may fit where numbers decide shapes, or not.
    if (status != RONDO_STATUS_BAD_DATA && status != RONDO_STATUS_INVALID) {
        check_status(r, status, RONDO_STATUS_OK);
    }
}

static void do_questions(round_state *r) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    rondo_transfer_stats transfers = {.struct_size = sizeof transfers};
    rondo_run_times times = {.struct_size = sizeof times};
    const uint64_t limit = r->settings.options.memory_limit_bytes;
    begin(r, "get_stats");
    const rondo_status status = rondo_executor_get_stats(r->executor, &stats);
    end(r);
    if (status == RONDO_STATUS_OK && limit > 0 &&
        (stats.memory_bytes > limit || stats.device_memory_bytes > limit)) {
        complain(r, "%llu bytes, %llu on the device: beyond the limit of %llu",
                 (unsigned long long)stats.memory_bytes,
                 (unsigned long long)stats.device_memory_bytes, (unsigned long long)limit);
    }
    (void)!rondo_executor_get_transfers(r->executor, &transfers);
    (void)!rondo_executor_get_times(r->executor, &times);
}

// Another executor of the program, which shares what it can.
static void do_other(round_state *r, size_t set) {
    rondo_executor *other = NULL;
    pending run;
    if (r->s.draws) {
        return;
    }
    draw_fetches(r, set, &run);
    begin(r, "another executor");
    rondo_status status =
        rondo_executor_create(r->s.program, r->device, &r->settings.options, &other);
    if (status == RONDO_STATUS_OK) {
        rondo_binding feeds[PORTS_MAX];
        const size_t count = copy_feeds(r, set, false, feeds);
        status = rondo_executor_run(other, feeds, count, run.fetches, run.count);
    }
    end(r);
    check_status(r, status, r->s.sets[set].status);
    if (status == RONDO_STATUS_OK) {
        keep_wanted(r, r->s.sets[set].wanted, &run);
        check_pending(r, &run);
    }
    free_pending(&run);
    rondo_executor_destroy(other);
}

static void do_call(round_state *r) {
    static const rondo_graphs_mode graphs[] = {RONDO_GRAPHS_AUTO, RONDO_GRAPHS_ON,
                                               RONDO_GRAPHS_OFF};
    const size_t set = dice_draw(&r->d, SETS);
    r->has_fault = false;
    switch (dice_draw(&r->d, 20)) {
        case 0:
        case 1:
        case 2:
        case 3:
            do_run_async(r, set);
            break;
        case 4:
            wait_for_all(r);
            break;
        case 5:
            do_rerun(r);
            break;
        case 6:
            do_describe(r, set);
            break;
        case 7:
            OK(rondo_executor_set_graphs(r->executor, graphs[dice_draw(&r->d, 3)]));
            break;
        case 8:
            do_questions(r);
            break;
        case 9:
            do_run(r, set, true);
            break;
        case 10:
        case 11:
            do_record(r, set);
            break;
        case 12:
            replay(r);
            break;
        case 13:
            do_other(r, set);
            break;
        case 14:
            OK(rondo_executor_cancel(r->executor));
            break;
        default:
            do_run(r, set, false);
            break;
    }
}

static void make_twin(round_state *r) {
    const rondo_executor_options plain = {.struct_size = sizeof plain,
                                          .graphs = RONDO_GRAPHS_OFF,
                                          .seed = r->settings.options.seed,
                                          .training = r->settings.options.training};
    OK(rondo_executor_create(r->s.program, r->host, &plain, &r->twin));
}

// A limit about where it begins to hinder.
static void choose_limit(round_state *r) {
    rondo_executor_options *o = &r->settings.options;
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    pending run;
    rondo_executor *executor = NULL;
    o->memory_limit_bytes = 0;
    draw_fetches(r, 0, &run);
    if (rondo_executor_create(r->s.program, r->device, o, &executor) == RONDO_STATUS_OK &&
        rondo_executor_run(executor, r->s.sets[0].feeds, r->s.sets[0].count, run.fetches,
                           run.count) == RONDO_STATUS_OK &&
        rondo_executor_get_stats(executor, &stats) == RONDO_STATUS_OK) {
        const uint64_t most = stats.memory_bytes > stats.device_memory_bytes
                                  ? stats.memory_bytes
                                  : stats.device_memory_bytes;
        o->memory_limit_bytes = 1 + most / 2 + dice_draw(&r->d, most + 1);
    }
    free_pending(&run);
    rondo_executor_destroy(executor);
}

static void run_calls(round_state *r) {
    const uint64_t calls = CALLS_MIN + dice_draw(&r->d, CALLS_MORE);
    if (r->row->level[OPTION_MEMORY] == 3) {
        choose_limit(r);
    }
    begin(r, "create");
    const rondo_status status =
        rondo_executor_create(r->s.program, r->device, &r->settings.options, &r->executor);
    end(r);
    check_status(r, status, RONDO_STATUS_OK);
    if (status != RONDO_STATUS_OK) {
        return;
    }
    make_twin(r);
    if (r->s.state >= 0 && r->row->level[OPTION_STATES] == 1) {
        OK(rondo_executor_bind(r->executor, r->s.outputs[r->s.state_output],
                               r->s.inputs[r->s.state]));
        r->is_bound = true;
    }
    for (uint64_t n = 0; n < calls && r->is_good; ++n) {
        do_call(r);
    }
    r->has_fault = false;
    if (dice_draw(&r->d, 2) == 0) {
        wait_for_all(r);
    }
    rondo_executor_destroy(r->executor);
    if (r->is_good) {
        replay(r);  // the graph keeps what it needs
    }
}

bool round_run(rondo_device *device, const option_row *row, uint64_t seed, uint64_t index) {
    round_state *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->device = device;
    r->row = row;
    r->d = dice_make(seed, index);
    r->is_good = true;
    OK(rondo_device_open("host", &r->host));
    settings_make(&r->settings, row, device, &r->d);
    subject_open(&r->s, row->level[OPTION_MODEL], r->settings.options.training, &r->d);
    run_calls(r);
    settle(r, false);
    free_recording(&r->recording);
    rondo_tensor_deinit(&r->state);
    rondo_executor_destroy(r->twin);
    subject_close(&r->s);
    settings_free(&r->settings);
    rondo_device_release(r->host);
    const bool is_good = r->is_good;
    free(r);
    return is_good;
}
