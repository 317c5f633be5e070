// kernel/cuda/tune/cuda_tune.c — see cuda_tune.h.
// SPDX-License-Identifier: Apache-2.0

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/compile/kernel_cache.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log/hook.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "device/device.h"
#include "kernel/cuda/tune/cuda_tune.h"
#include "kernel/cuda/tune/cuda_tune_buffers.h"

enum {
    TUNE_LAUNCHES = 10,  // in one graph
    TUNE_REPLAYS = 5,
};

// State of a contest beside its candidates.
typedef struct contest {
    rondo__tune_buffers buffers;
    rondo_event *start, *end;
} contest;

static void end_contest(contest *c) {
    rondo_event_destroy(c->start);
    rondo_event_destroy(c->end);
    rondo__tune_buffers_deinit(&c->buffers);
}

static rondo_status begin_contest(const rondo__cuda_kernel *kernel, contest *c) {
    RETURN_IF_ERROR(rondo__tune_buffers_init(kernel, TUNE_LAUNCHES, &c->buffers));
    RETURN_IF_ERROR(rondo_event_create(kernel->device, RONDO_EVENT_TIMED, &c->start));
    return rondo_event_create(kernel->device, RONDO_EVENT_TIMED, &c->end);
}

static rondo_status capture(rondo__cuda_kernel *candidate, const contest *c,
                            rondo__executable **out_executable) {
    const rondo__backend *backend = candidate->device->backend;
    rondo_stream *stream = c->buffers.stream;
    rondo__template *recorded = NULL;
    rondo_error first;

    RETURN_IF_ERROR(backend->begin_capture(stream, RONDO_CAPTURE_THREAD_LOCAL, NULL));
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < TUNE_LAUNCHES && status == RONDO_STATUS_OK; i++) {
        status = rondo__tune_buffers_launch(&c->buffers, candidate, i);
        if (status == RONDO_STATUS_OK) {
            status = rondo__tune_buffers_launch_neighbour(&c->buffers);
        }
    }
    rondo__error_save(&first);
    const rondo_status ended = backend->end_capture(stream, &recorded);
    if (status == RONDO_STATUS_OK) {
        status = ended;
    } else {
        rondo__error_restore(&first);
    }
    if (status == RONDO_STATUS_OK) {
        status = backend->instantiate(recorded, out_executable);
    }
    if (recorded != NULL) {
        backend->destroy_template(recorded);
    }
    return status;
}

// One replay, and how long it took.
static rondo_status time_replay(contest *c, rondo__executable *executable, int64_t *out_ns) {
    rondo_stream *stream = c->buffers.stream;
    RETURN_IF_ERROR(rondo__tune_buffers_chill(&c->buffers));
    RETURN_IF_ERROR(rondo_event_record(c->start, stream));
    RETURN_IF_ERROR(c->buffers.device->backend->replay(executable, stream));
    RETURN_IF_ERROR(rondo_event_record(c->end, stream));
    RETURN_IF_ERROR(rondo_event_synchronize(c->end));
    return rondo_event_get_elapsed_ns(c->start, c->end, out_ns);
}

// The fastest replay, in milliseconds for TUNE_LAUNCHES launches.
static rondo_status time_candidate(rondo__cuda_kernel *candidate, contest *c,
                                   float *out_milliseconds) {
    const rondo__backend *backend = candidate->device->backend;
    rondo_stream *stream = c->buffers.stream;
    rondo__executable *executable = NULL;
    float best = -1.0f;

    RETURN_IF_ERROR(rondo__tune_buffers_prepare(&c->buffers, candidate));
    RETURN_IF_ERROR(rondo__tune_buffers_launch(&c->buffers, candidate, 0));
    RETURN_IF_ERROR(rondo_stream_synchronize(stream));
    RETURN_IF_ERROR(capture(candidate, c, &executable));
    rondo_status status = backend->replay(executable, stream);
    for (int i = 0; i < TUNE_REPLAYS && status == RONDO_STATUS_OK; i++) {
        int64_t span_ns = 0;
        status = time_replay(c, executable, &span_ns);
        const float milliseconds = (float)span_ns * 1e-6f;
        best = best < 0.0f || milliseconds < best ? milliseconds : best;
    }
    const rondo_status settled = rondo_stream_synchronize(stream);
    backend->destroy_executable(executable);
    *out_milliseconds = best;
    return status != RONDO_STATUS_OK ? status : settled;
}

static rondo_tuning get_mode(const rondo__cuda_kernel *kernel) {
    static const char *const names[] = {
        [RONDO_TUNING_OFF] = "off", [RONDO_TUNING_FAST] = "fast", [RONDO_TUNING_FULL] = "full"};
    const char *setting = getenv("RONDO_TUNE");
    rondo_tuning mode = kernel->request->tuning;
    for (size_t i = RONDO_TUNING_OFF;
         mode == RONDO_TUNING_AUTO && setting != NULL && i < sizeof names / sizeof names[0]; i++) {
        mode = strcmp(setting, names[i]) == 0 ? (rondo_tuning)i : mode;
    }
    return mode == RONDO_TUNING_AUTO ? RONDO_TUNING_FAST : mode;
}

static bool times_nothing(rondo_tuning mode) {
    return mode == RONDO_TUNING_OFF || mode == RONDO_TUNING_KEEP;
}

// ---- listing ----------------------------------------------------------------------------------

void rondo__candidates_add(rondo__candidates *candidates, int way, size_t plan_count,
                           size_t fast_count) {
    for (size_t i = 0; i < plan_count && candidates->count < RONDO__CANDIDATES_MAX; i++) {
        candidates->list[candidates->count].way = way;
        candidates->list[candidates->count].plan = i;
        candidates->fast |= i < fast_count ? UINT64_C(1) << candidates->count : 0;
        candidates->count++;
    }
}

void rondo__candidates_mark_library(rondo__candidates *candidates, size_t first) {
    candidates->library |= ((UINT64_C(1) << candidates->count) - 1) ^ ((UINT64_C(1) << first) - 1);
}

void rondo__candidates_add_plain(rondo__candidates *candidates, int way, bool is_slow) {
    candidates->last |= is_slow ? UINT64_C(1) << candidates->count : 0;
    rondo__candidates_add(candidates, way, 1, 1);
}

// ---- the contest ------------------------------------------------------------------------------

enum { NAME_BYTES = 64, KEPT_BYTES = NAME_BYTES + 24 };

static bool is_of(uint64_t bits, size_t index) {
    return (bits >> index & 1) != 0;
}

// The candidate of this name, or the number of candidates.
static size_t find_named(const rondo__cuda_kernel *kernel, const rondo__tuning *tuning,
                         const char *wanted) {
    for (int of_library = 0; of_library < 2; of_library++) {
        for (size_t i = 0; i < tuning->candidate_count; i++) {
            char name[NAME_BYTES] = "";
            if (is_of(tuning->library, i) == (of_library != 0)) {
                tuning->describe(kernel, tuning->problem, i, name, sizeof name);
            }
            if (name[0] != '\0' && strcmp(name, wanted) == 0) {
                return i;
            }
        }
    }
    return tuning->candidate_count;
}

// The candidates that do not need a library that is missing.
static uint64_t get_possible(const rondo__cuda_kernel *kernel, const rondo__tuning *tuning) {
    const uint64_t all =
        tuning->candidate_count < 64 ? (UINT64_C(1) << tuning->candidate_count) - 1 : UINT64_MAX;
    const bool lacks_library =
        tuning->library != 0 && tuning->has_library != NULL && !tuning->has_library(kernel);
    return lacks_library ? all & ~tuning->library : all;
}

// Whether a contest times the candidate, or may have to.
static bool is_tried(const rondo__cuda_kernel *kernel, const rondo__tuning *tuning, size_t index) {
    return get_mode(kernel) == RONDO_TUNING_FULL || is_of(tuning->fast | tuning->last, index);
}

// The fastest candidates: of all that are timed, and of those that a fast contest times.
typedef struct standing {
    float best, fast_best;  // milliseconds; below 0: none
    size_t winner, fast_winner;
} standing;

static void note_time(const rondo__tuning *tuning, size_t index, float milliseconds, standing *s) {
    if (s->best < 0.0f || milliseconds < s->best) {
        s->best = milliseconds;
        s->winner = index;
    }
    if (is_of(tuning->fast, index) && (s->fast_best < 0.0f || milliseconds < s->fast_best)) {
        s->fast_best = milliseconds;
        s->fast_winner = index;
    }
}

// The least of many times is the luckiest one: a candidate that is not among the best guesses has
// to win by more than times vary.
static void settle(const rondo__tuning *tuning, standing *s) {
    static const float ratio_max = 0.97f;
    if (s->fast_winner < tuning->candidate_count && !(s->best < ratio_max * s->fast_best)) {
        s->winner = s->fast_winner;
        s->best = s->fast_best;
    }
}

// A candidate that cannot be built or run just loses; only a lost device ends the contest.
static rondo_status run_contest(rondo__cuda_kernel *kernel, const rondo__tuning *tuning,
                                uint64_t possible, size_t *out_winner) {
    contest c = {0};
    standing s = {-1.0f, -1.0f, tuning->candidate_count, tuning->candidate_count};
    rondo_status status = begin_contest(kernel, &c);

    for (size_t i = 0; i < tuning->candidate_count && status == RONDO_STATUS_OK; i++) {
        const bool is_late = s.winner < tuning->candidate_count && is_of(tuning->last, i);
        if (is_late || !is_of(possible, i) || !is_tried(kernel, tuning, i)) {
            continue;
        }
        rondo__cuda_kernel *trial = NULL;
        rondo__kernel *ready = NULL;
        float milliseconds = 0.0f;
        status = rondo__cuda_begin_candidate(kernel->request, &trial);
        if (status != RONDO_STATUS_OK) {
            break;
        }
        // Packed weights of the real kernel may lie at the front of the workspace.
        trial->head.workspace_bytes = kernel->head.workspace_bytes;
        tuning->build(trial, tuning->problem, i);
        rondo_status outcome = rondo__cuda_finish_kernel(trial, &ready);
        if (outcome == RONDO_STATUS_OK) {
            outcome = time_candidate(trial, &c, &milliseconds);
        }
        rondo__kernel_destroy(ready);
        if (outcome == RONDO_STATUS_OK) {
            char name[NAME_BYTES];
            tuning->describe(kernel, tuning->problem, i, name, sizeof name);
            RONDO_LOG_DEBUG_F("tune %s: %s takes %.2f us with its neighbour", tuning->key, name,
                              (double)milliseconds * 1000.0 / TUNE_LAUNCHES);
            note_time(tuning, i, milliseconds, &s);
        } else {
            RONDO_LOG_DEBUG_F("tune %s: candidate %zu: %s", tuning->key, i,
                              rondo_error_get_last()->message);
            status = outcome == RONDO_STATUS_LOST ? outcome : RONDO_STATUS_OK;
        }
    }
    end_contest(&c);
    settle(tuning, &s);
    *out_winner = s.winner;
    if (status == RONDO_STATUS_OK && *out_winner < tuning->candidate_count) {
        char name[NAME_BYTES];
        tuning->describe(kernel, tuning->problem, *out_winner, name, sizeof name);
        RONDO_LOG_INFO_F("tune %s: %s, of %zu, wins with %.2f us, a neighbour included",
                         tuning->key, name, tuning->candidate_count,
                         (double)s.best * 1000.0 / TUNE_LAUNCHES);
    }
    return status;
}

static bool make_key(const rondo__cuda_kernel *kernel, const rondo__tuning *tuning,
                     rondo_tuning mode, rondo__hash128 *out_key) {
    rondo_device_info info = {.struct_size = sizeof info};
    char text[640];
    if (rondo__device_get_facts(kernel->device, &info) != RONDO_STATUS_OK) {
        return false;
    }
    const int length =
        snprintf(text, sizeof(text), "tune 13|%s|%d|%d|%s|%zu|%s|%s", info.description,
                 info.compute_units, info.driver_version, tuning->key, tuning->candidate_count,
                 mode == RONDO_TUNING_FULL ? "full" : "fast",
                 rondo__tune_is_cold(kernel->request) ? "cold" : "warm");
    if (length < 0 || (size_t)length >= sizeof(text)) {
        return false;
    }
    *out_key = rondo__hash128_bytes(text, (size_t)length);
    return true;
}

// The winner that was kept under the key, or the number of candidates. Its number then stands
// before its name, so that in most cases one candidate is named.
static size_t load_winner(const rondo__cuda_kernel *kernel, const rondo__tuning *tuning,
                          rondo__hash128 key) {
    rondo__cuda_image image = {0};
    char kept[KEPT_BYTES] = "", name[NAME_BYTES] = "";
    if (!rondo__kernel_cache_load(key, &image)) {
        return tuning->candidate_count;
    }
    if (image.byte_count < sizeof kept) {
        memcpy(kept, image.bytes, image.byte_count);
    }
    rondo__cuda_image_deinit(&image);
    char *rest = kept;
    const size_t number = strtoul(kept, &rest, 10);
    if (*rest++ != ' ') {
        return tuning->candidate_count;
    }
    if (number < tuning->candidate_count) {
        tuning->describe(kernel, tuning->problem, number, name, sizeof name);
    }
    return strcmp(name, rest) == 0 ? number : find_named(kernel, tuning, rest);
}

// The winner of an earlier contest that was as wide as the mode asks, or wider; or the number of
// candidates.
static size_t recall_winner(const rondo__cuda_kernel *kernel, const rondo__tuning *tuning) {
    const size_t count = tuning->candidate_count;
    size_t winner = count;
    rondo__hash128 key;
    if (make_key(kernel, tuning, RONDO_TUNING_FULL, &key)) {
        winner = load_winner(kernel, tuning, key);
    }
    if (winner == count && get_mode(kernel) != RONDO_TUNING_FULL &&
        make_key(kernel, tuning, RONDO_TUNING_FAST, &key)) {
        winner = load_winner(kernel, tuning, key);
    }
    return winner;
}

static void remember_winner(const rondo__cuda_kernel *kernel, const rondo__tuning *tuning,
                            rondo__hash128 key, size_t winner) {
    char kept[KEPT_BYTES], name[NAME_BYTES];
    tuning->describe(kernel, tuning->problem, winner, name, sizeof name);
    (void)snprintf(kept, sizeof kept, "%zu %s", winner, name);
    const rondo__cuda_image image = {.bytes = kept, .byte_count = strlen(kept)};
    rondo__kernel_cache_store(key, &image);
}

// ---- tuning files -----------------------------------------------------------------------------

// The device that a choice holds for; without its driver, which hardly changes the order.
static bool name_device(const rondo__cuda_kernel *kernel, char *text, size_t text_bytes) {
    rondo_device_info info = {.struct_size = sizeof info};
    if (rondo__device_get_facts(kernel->device, &info) != RONDO_STATUS_OK) {
        return false;
    }
    const int length =
        snprintf(text, text_bytes, "%s, %d multiprocessors", info.description, info.compute_units);
    return length >= 0 && (size_t)length < text_bytes;
}

// Adds the candidate to the kernel. False: it cannot be built here, and the kernel is as before.
// Want of memory and a lost device are no fault of the candidate, and stay with the kernel.
static bool try_build(rondo__cuda_kernel *kernel, const rondo__tuning *tuning, size_t index) {
    rondo__cuda_mark mark;
    rondo__cuda_set_mark(kernel, &mark);
    tuning->build(kernel, tuning->problem, index);
    const rondo_status status = kernel->status;
    if (status == RONDO_STATUS_OK || rondo__is_out_of_memory(status) ||
        status == RONDO_STATUS_LOST) {
        return true;
    }
    RONDO_LOG_DEBUG_F("tune %s: candidate %zu cannot be built: %s", tuning->key, index,
                      rondo_error_get_last()->message);
    rondo__cuda_go_back(kernel, &mark);
    return false;
}

// The choice of the request's tuning file, or the number of candidates.
static size_t find_in_file(rondo__cuda_kernel *kernel, const rondo__tuning *tuning) {
    char device[320], choice[NAME_BYTES];
    if (kernel->request->choices == NULL || !name_device(kernel, device, sizeof device) ||
        !rondo__tuning_choices_find(kernel->request->choices, device, tuning->key, choice,
                                    sizeof choice)) {
        return tuning->candidate_count;
    }
    const size_t found = find_named(kernel, tuning, choice);
    if (found == tuning->candidate_count) {
        RONDO_LOG_INFO_F("tune %s: there is no \"%s\" here, which the tuning file chooses",
                         tuning->key, choice);
    }
    return found;
}

static void note_choice(const rondo__cuda_kernel *kernel, const rondo__tuning *tuning,
                        size_t winner) {
    char device[320], name[NAME_BYTES];
    if (kernel->request->choices != NULL && name_device(kernel, device, sizeof device)) {
        tuning->describe(kernel, tuning->problem, winner, name, sizeof name);
        rondo__tuning_choices_note(kernel->request->choices, device, tuning->key, name);
    }
}

// ---- choosing ---------------------------------------------------------------------------------

// What the candidate's texts are, for threads that compile ahead.
static void survey_candidate(rondo__cuda_kernel *kernel, const rondo__tuning *tuning,
                             size_t index) {
    rondo__cuda_kernel *trial = NULL;
    rondo__kernel *ready = NULL;
    if (rondo__cuda_begin_candidate(kernel->request, &trial) == RONDO_STATUS_OK) {
        tuning->build(trial, tuning->problem, index);
        if (rondo__cuda_finish_kernel(trial, &ready) == RONDO_STATUS_OK) {
            rondo__kernel_destroy(ready);
        }
    }
}

static void survey(rondo__cuda_kernel *kernel, const rondo__tuning *tuning) {
    const size_t choice = find_in_file(kernel, tuning);
    const size_t winner = choice < tuning->candidate_count ? choice : recall_winner(kernel, tuning);
    if (winner < tuning->candidate_count) {
        survey_candidate(kernel, tuning, winner);
        return;
    }
    const bool is_off = times_nothing(get_mode(kernel));
    if (is_off && !is_of(tuning->library, 0)) {
        survey_candidate(kernel, tuning, 0);
        return;
    }
    const uint64_t possible = get_possible(kernel, tuning);
    const bool is_single = (possible & (possible - 1)) == 0;
    bool is_done = false;
    for (size_t i = 0; i < tuning->candidate_count && !is_done; i++) {
        const bool may_run =
            is_off || is_single || (is_tried(kernel, tuning, i) && !is_of(tuning->last, i));
        if (is_of(possible, i) && may_run) {
            survey_candidate(kernel, tuning, i);
            is_done = is_off;
        }
    }
}

// Builds the winner into the kernel, or the next candidate that can be: cuDNN refuses to compile
// some engines a second time.
static void build_or_next(rondo__cuda_kernel *kernel, const rondo__tuning *tuning, size_t winner) {
    for (size_t i = 0; i < tuning->candidate_count; i++) {
        if (try_build(kernel, tuning, (winner + i) % tuning->candidate_count)) {
            return;
        }
    }
    rondo__cuda_refuse(kernel, "none of the ways to do it works on this device");
}

// By a contest, if there are several.
static rondo_status find_fastest(rondo__cuda_kernel *kernel, const rondo__tuning *tuning,
                                 size_t *out_winner, bool *out_is_guess) {
    const uint64_t possible = get_possible(kernel, tuning);
    *out_is_guess = possible != 0 && (possible & (possible - 1)) == 0;
    if (*out_is_guess) {
        for (*out_winner = 0; !is_of(possible, *out_winner); ++*out_winner) {
        }
        return RONDO_STATUS_OK;
    }
    const rondo__hook_scope scope = rondo__hook_enter(RONDO__SPAN_TUNE, "tune");
    const rondo_status status = run_contest(kernel, tuning, possible, out_winner);
    rondo__hook_leave(&scope);
    return status;
}

void rondo__cuda_add_fastest(rondo__cuda_kernel *kernel, const rondo__tuning *tuning) {
    rondo__hash128 key;

    if (kernel->status != RONDO_STATUS_OK) {
        return;
    }
    if (tuning->candidate_count == 1) {
        tuning->build(kernel, tuning->problem, 0);
        return;
    }
    if (kernel->request->is_survey) {
        survey(kernel, tuning);
        return;
    }
    const size_t count = tuning->candidate_count;
    const size_t choice = find_in_file(kernel, tuning);
    const rondo_tuning mode = get_mode(kernel);
    if (choice < count && try_build(kernel, tuning, choice)) {
        if (mode == RONDO_TUNING_KEEP && make_key(kernel, tuning, RONDO_TUNING_FULL, &key)) {
            remember_winner(kernel, tuning, key, choice);
        }
        return;
    }
    size_t winner = recall_winner(kernel, tuning);
    bool is_guess = false;
    if (winner == count && times_nothing(mode)) {
        winner = 0;
        is_guess = true;
    } else if (winner == count) {
        if (!rondo__cuda_check(kernel, find_fastest(kernel, tuning, &winner, &is_guess))) {
            return;
        }
        if (winner < count && !is_guess && make_key(kernel, tuning, mode, &key)) {
            remember_winner(kernel, tuning, key, winner);
        }
    }
    if (winner == count) {
        rondo__cuda_refuse(kernel, "none of the ways to do it works on this device");
        return;
    }
    if (!is_guess) {
        note_choice(kernel, tuning, winner);
    }
    build_or_next(kernel, tuning, winner);
}
