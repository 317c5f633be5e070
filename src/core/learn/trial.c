// learn/trial.c — see trial.h.
// SPDX-License-Identifier: Apache-2.0
#include "learn/trial.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/areas.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "capture/label_stack.h"
#include "device/stream.h"
#include "graph/graph_capture.h"

enum { OWN_ON_HOST = 4, SHARED_ON_HOST = 4, HINTS = 8, STEPS_OF_SLACK = 64 };

static const size_t slack_least = 65536;
static const size_t page_bytes = 4096;

// ---- sites ------------------------------------------------------------------------------------

// How far into a site an address may lie.
static size_t get_slack(const rondo__argument *argument) {
    const size_t slack = (size_t)argument->alignment * STEPS_OF_SLACK;
    return slack > slack_least ? slack : slack_least;
}

// The thread sanitizer keeps most of the address space to itself.
#if defined(__SANITIZE_THREAD__)
enum { SPAN_BITS = 38 };
#else
enum { SPAN_BITS = 46 };
#endif

// Address space that is never mapped, somewhere among 64 TiB; if the system does not follow the
// hints, anywhere.
static void *map_site(rondo__draws *draws, size_t bytes) {
    const uint64_t span = UINT64_C(1) << SPAN_BITS;
    for (int i = 0; i <= HINTS; ++i) {
        const uintptr_t hint =
            (uintptr_t)((rondo__draw(draws) % span + span / 64) & ~(uint64_t)(page_bytes - 1));
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        void *memory =
            i < HINTS ? mmap((void *)hint, bytes, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0)
                      : mmap(NULL, bytes, PROT_NONE, flags, -1, 0);
        if (memory != MAP_FAILED) {
            return memory;
        }
    }
    return NULL;
}

static rondo_status make_mapped(rondo__trials *trials, rondo_memory_kind kind, size_t bytes,
                                rondo__site *site) {
    site->memory = map_site(&trials->draws, bytes);
    if (site->memory == NULL) {
        return RONDO_FAIL_AS("rondo_learned_learn", NO_MEMORY,
                             "no address space of %zu bytes for trials", bytes);
    }
    site->is_mapped = true;
    // Copies look there whether they may use it.
    rondo_status status = rondo__areas_add(trials->step->device, kind, site->memory, bytes);
    if (status != RONDO_STATUS_OK) {
        munmap(site->memory, bytes);
        site->memory = NULL;
    }
    return status;
}

// room       behind the slack.
static rondo_status make_site(rondo__trials *trials, rondo_memory_kind kind, size_t slack,
                              size_t room) {
    rondo_device *device = trials->step->device;
    rondo__site *site = &trials->sites[trials->site_count];
    size_t bytes = 0;
    if (!rondo__add_size(room, slack, &bytes) || bytes > SIZE_MAX - page_bytes) {
        return RONDO_FAIL_AS("rondo_learned_learn", NO_MEMORY,
                             "an extent of %zu bytes is too large for trials", room);
    }
    bytes = rondo__align_up(bytes, page_bytes);
    site->bytes = bytes;
    rondo_status status = rondo_device_is_host(device)
                              ? make_mapped(trials, kind, bytes, site)
                              : rondo__areas_allocate(device, kind, bytes, &site->memory);
    if (status == RONDO_STATUS_OK) {
        trials->made_up[trials->site_count++] =
            (rondo__made_up){.begin = (uintptr_t)site->memory, .bytes = bytes};
    }
    return status;
}

static void free_site(rondo_device *device, const rondo__site *site) {
    if (site->memory == NULL) {
        return;
    }
    if (site->is_mapped) {
        rondo__areas_remove(device, site->memory);
        munmap(site->memory, site->bytes);
    } else {
        (void)rondo__areas_free(device, site->memory);
    }
}

static size_t count_pointers(const rondo__arguments *arguments) {
    size_t count = 0;
    for (size_t i = 0; i < arguments->count; ++i) {
        count += arguments->list[i].kind == RONDO_ARGUMENT_POINTER;
    }
    return count;
}

// For any two pointers of that memory kind.
static rondo_status make_shared_sites(rondo__trials *trials, rondo_memory_kind kind) {
    const rondo__arguments *arguments = trials->step->arguments;
    size_t extents[2] = {0, 0};
    size_t slack = 0;
    for (size_t i = 0; i < arguments->count; ++i) {
        const rondo__argument *argument = &arguments->list[i];
        if (argument->kind != RONDO_ARGUMENT_POINTER || argument->memory != kind) {
            continue;
        }
        const size_t extent = (size_t)argument->extent;
        extents[1] = extent > extents[0] ? extents[0] : extent > extents[1] ? extent : extents[1];
        extents[0] = extent > extents[0] ? extent : extents[0];
        slack = get_slack(argument) > slack ? get_slack(argument) : slack;
    }
    trials->first_shared[kind] = trials->site_count;
    for (size_t i = 0; extents[0] > 0 && i < trials->per_kind; ++i) {
        RETURN_IF_ERROR(make_site(trials, kind, slack, extents[0] + extents[1]));
    }
    return RONDO_STATUS_OK;
}

static rondo_status make_sites(rondo__trials *trials) {
    const rondo__arguments *arguments = trials->step->arguments;
    const size_t count = count_pointers(arguments) * trials->per_pointer + 2 * trials->per_kind;
    trials->sites = rondo__calloc(count + 1, sizeof *trials->sites);
    trials->made_up = rondo__calloc(count + 1, sizeof *trials->made_up);
    if (trials->sites == NULL || trials->made_up == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < arguments->count; ++i) {
        const rondo__argument *argument = &arguments->list[i];
        for (size_t k = 0; k < trials->per_pointer && argument->kind == RONDO_ARGUMENT_POINTER;
             ++k) {
            RETURN_IF_ERROR(
                make_site(trials, argument->memory, get_slack(argument), (size_t)argument->extent));
        }
    }
    RETURN_IF_ERROR(make_shared_sites(trials, RONDO_MEMORY_DEVICE));
    return make_shared_sites(trials, RONDO_MEMORY_PINNED);
}

rondo_status rondo__trials_init(const rondo__step *step, uint64_t seed, rondo__trials *out_trials) {
    const rondo_graph_options options = {
        .struct_size = sizeof options, .keep = RONDO_KEEP_TEMPLATE_ONLY, .label = "trial"};
    rondo__trials trials = {.step = step,
                            .draws = {seed != 0 ? seed : UINT64_C(0x72d1f3a95b8c6e47)},
                            .per_pointer = rondo_device_is_host(step->device) ? OWN_ON_HOST : 1,
                            .per_kind = rondo_device_is_host(step->device) ? SHARED_ON_HOST : 1};
    rondo_status status = rondo_graph_create(step->device, &options, &trials.probe);
    if (status == RONDO_STATUS_OK) {
        status = make_sites(&trials);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__trials_deinit(&trials);
        trials = (rondo__trials){0};
    }
    *out_trials = trials;
    return status;
}

void rondo__trials_deinit(rondo__trials *trials) {
    rondo_error saved;
    rondo__error_save(&saved);
    for (size_t i = 0; i < trials->site_count; ++i) {
        free_site(trials->step->device, &trials->sites[i]);
    }
    rondo__free(trials->sites);
    rondo__free(trials->made_up);
    rondo_graph_destroy(trials->probe);
    rondo__error_restore(&saved);
}

// ---- values -----------------------------------------------------------------------------------

// The k-th multiple of the alignment in the site.
static uint64_t get_address(const rondo__site *site, uint64_t alignment, size_t k) {
    return rondo__align_up((size_t)(uintptr_t)site->memory, (size_t)alignment) + k * alignment;
}

// Each in a site of its own; one of them may stand in a shared one instead.
static void draw_addresses(rondo__trials *trials, uint64_t pinned, rondo__values *values) {
    const rondo__arguments *arguments = trials->step->arguments;
    const size_t pointer_count = count_pointers(arguments);
    size_t outsider = pointer_count > 0 ? (size_t)rondo__draw(&trials->draws) % pointer_count : 0;
    size_t first = 0;
    for (size_t i = 0; i < arguments->count; ++i) {
        const rondo__argument *argument = &arguments->list[i];
        if (argument->kind != RONDO_ARGUMENT_POINTER) {
            continue;
        }
        const size_t drawn = (size_t)(rondo__draw(&trials->draws) >> 1);
        const size_t steps = get_slack(argument) / (size_t)argument->alignment;
        const size_t step = (size_t)(rondo__draw(&trials->draws) % steps);
        const bool is_outside = outsider-- == 0 && drawn % 2 == 0;
        const size_t site = is_outside
                                ? trials->first_shared[argument->memory] + drawn % trials->per_kind
                                : first + drawn % trials->per_pointer;
        if ((pinned >> i & 1) == 0) {
            values->bits[i] = get_address(&trials->sites[site], argument->alignment, step);
        }
        first += trials->per_pointer;
    }
}

// How far behind the lower one the other is to begin. 0: extents and alignments do not allow it.
static uint64_t draw_distance(rondo__draws *draws, rondo__relation relation,
                              const rondo__argument *lower, const rondo__argument *upper) {
    const uint64_t unit = lower->alignment < upper->alignment ? lower->alignment : upper->alignment;
    if (relation == RONDO__RELATION_TOUCHES || relation == RONDO__RELATION_TOUCHED) {
        return lower->extent % unit == 0 ? lower->extent : 0;
    }
    if (rondo__relation_overlaps(relation)) {
        const uint64_t steps = (lower->extent - 1) / unit;
        const bool is_near = rondo__draw(draws) % 2 == 0;
        return steps == 0 ? 0 : unit * (1 + (is_near ? 0 : rondo__draw(draws) % steps));
    }
    return (lower->extent / unit + 1 + rondo__draw(draws) % 4) * unit;
}

static bool is_turned(rondo__relation relation) {
    return relation == RONDO__RELATION_BEHIND || relation == RONDO__RELATION_TOUCHED ||
           relation == RONDO__RELATION_OVERLAPPED;
}

// Two addresses in one site. The seed alone says which, so that a pair can be asked for again with
// its addresses exchanged.
static void place_pair(const rondo__trials *trials, const rondo__pair *pair, size_t index,
                       uint64_t seed, rondo__values *values) {
    const rondo__argument *list = trials->step->arguments->list;
    rondo__draws draws = {.state = seed + index};
    const bool turns = is_turned(pair->relation);
    const size_t lower = turns ? pair->other : pair->first;
    const size_t upper = turns ? pair->first : pair->other;
    const uint64_t wide = list[lower].alignment > list[upper].alignment ? list[lower].alignment
                                                                        : list[upper].alignment;
    const rondo_memory_kind kind = list[lower].memory;
    const rondo__site *site = &trials->sites[trials->first_shared[kind] + index % trials->per_kind];
    const size_t step = (size_t)(rondo__draw(&draws) % (STEPS_OF_SLACK / 2));
    const uint64_t distance =
        pair->relation == RONDO__RELATION_EQUAL
            ? 0
            : draw_distance(&draws, pair->relation, &list[lower], &list[upper]);
    if (distance == 0 && pair->relation != RONDO__RELATION_EQUAL) {
        return;
    }
    // The one with the wider alignment stands at a multiple of it, the other at the distance.
    uint64_t begin = get_address(site, wide, step);
    if (list[lower].alignment < list[upper].alignment) {
        begin = get_address(site, wide, step + (size_t)(distance / wide) + 1) - distance;
    }
    values->bits[lower] = begin;
    values->bits[upper] = begin + distance;
}

void rondo__trials_draw(rondo__trials *trials, const rondo__draw_request *request,
                        rondo__values *in_out_values) {
    const rondo__arguments *arguments = trials->step->arguments;
    for (size_t i = 0; i < arguments->count; ++i) {
        const rondo__argument *argument = &arguments->list[i];
        if (argument->kind != RONDO_ARGUMENT_POINTER && (request->pinned >> i & 1) == 0) {
            rondo__argument_draw(argument, &trials->draws, request->kind, &in_out_values->bits[i],
                                 in_out_values->bytes + argument->struct_offset);
        }
    }
    draw_addresses(trials, request->pinned, in_out_values);
    for (size_t i = 0; i < request->pair_count; ++i) {
        place_pair(trials, &request->pairs[i], i, request->pair_seed, in_out_values);
    }
}

// ---- recordings -------------------------------------------------------------------------------

enum { ARGUMENTS_MAX = 64 };

rondo_status rondo__step_call(const rondo__step *step, rondo_stream *stream,
                              const rondo__values *values) {
    rondo_value given[ARGUMENTS_MAX];
    for (size_t i = 0; i < step->arguments->count; ++i) {
        given[i] = rondo__value_from_bits(&step->arguments->list[i], values, i);
    }
    const uint64_t sequence = rondo_error_get_last()->sequence;
    const bool was_lent = rondo__stream_lend(stream);
    const rondo_status status = step->function(stream, given, step->user_data);
    rondo__stream_take_back(stream, was_lent);
    return rondo__error_note_callback(status, sequence, "rondo_learned_run", "the step");
}

bool rondo__step_is_outer_failure(rondo_status status) {
    return rondo__is_out_of_memory(status) || status == RONDO_STATUS_UNAVAILABLE ||
           status == RONDO_STATUS_DRIVER || status == RONDO_STATUS_LOST ||
           status == RONDO_STATUS_INTERNAL;
}

// "n = 4, x = 0x7f00" as far as there is room.
static void format_all(const rondo__arguments *arguments, const rondo__values *values, char *text,
                       size_t capacity) {
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < arguments->count && length + 1 < capacity; ++i) {
        char value[40];
        rondo__argument_format(&arguments->list[i], values->bits[i], value, sizeof value);
        const int added = snprintf(text + length, capacity - length, "%s%.20s = %s",
                                   i > 0 ? ", " : "", arguments->list[i].name, value);
        length += added > 0 ? (size_t)added : 0;
    }
}

static rondo_status note_failure(const rondo__step *step, const rondo__values *values,
                                 rondo_status failure, rondo_status *out_step_status,
                                 rondo__finding *out_finding) {
    if (rondo__step_is_outer_failure(failure)) {
        return failure;
    }
    char given[96];
    format_all(step->arguments, values, given, sizeof given);
    rondo__finding_set(out_finding, RONDO_REFUSAL_STEP_FAILED, SIZE_MAX, "%.300s (for %s)",
                       rondo_error_get_last()->message, given);
    *out_step_status = failure;
    return RONDO_STATUS_OK;
}

typedef struct looking {
    rondo__recording *recording;
    const rondo__trial_memory *trial;
    bool was_looked_at;
} looking;

static rondo_status look(void *user_data, rondo__template *recorded,
                         const rondo__participant *labels) {
    looking *l = user_data;
    l->was_looked_at = true;
    return rondo__recording_read(l->recording, recorded, labels, l->trial);
}

rondo_status rondo__step_record(const rondo__step *step, rondo_graph *probe, rondo_stream *stream,
                                const rondo__trial_memory *trial,
                                rondo__recording *in_out_recording, rondo_status *out_step_status,
                                rondo__finding *out_finding) {
    RETURN_IF_ERROR(rondo_graph_capture_begin(probe, stream, step->mode));
    probe->capture->is_step = true;
    probe->capture->blocks = &in_out_recording->blocks;
    const size_t label_depth = rondo__label_get_depth(stream);
    looking l = {.recording = in_out_recording, .trial = trial};
    rondo_status status = rondo__step_call(step, stream, &in_out_recording->values);
    if (status != RONDO_STATUS_OK) {
        rondo_graph_capture_abort(probe);
    } else if (probe->state != RONDO__GRAPH_RECORDING) {
        status = RONDO_FAIL_AS("rondo_learned_run", STATE,
                               "the step ended or aborted its capture by itself");
    } else {
        status = rondo__graph_capture_look(probe, look, &l);
    }
    rondo__label_close_above(stream, label_depth);
    if (status == RONDO_STATUS_OK && in_out_recording->blocks.is_incomplete) {
        return RONDO_FAIL_AS("rondo_learned_run", NO_MEMORY, "no memory to note a block");
    }
    if (status == RONDO_STATUS_OK || l.was_looked_at) {
        return status;
    }
    return note_failure(step, &in_out_recording->values, status, out_step_status, out_finding);
}
