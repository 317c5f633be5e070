// learn/watch.c — see watch.h.
// SPDX-License-Identifier: Apache-2.0
#include "learn/watch.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "learn/learned.h"

enum { MET_LEAST = 64, OVERLAPS_LEAST = 688 };

// ---- life -------------------------------------------------------------------------------------

void rondo__watch_init(rondo__watch *watch, const rondo__arguments *arguments,
                       uint64_t draws_wanted, uint32_t check_every) {
    *watch = (rondo__watch){.draws_wanted = draws_wanted, .check_every = check_every};
    for (size_t i = 0; i < arguments->count; ++i) {
        const bool is_pointer = arguments->list[i].kind == RONDO_ARGUMENT_POINTER;
        watch->pointers |= is_pointer ? UINT64_C(1) << i : 0;
    }
}

static void forget_met(rondo__watch *watch) {
    rondo__free(watch->met);
    watch->met = NULL;
    watch->met_count = 0;
    watch->met_capacity = 0;
}

void rondo__watch_deinit(rondo__watch *watch) {
    forget_met(watch);
    for (size_t i = 0; i < watch->tried_count; ++i) {
        rondo__values_deinit(&watch->tried[i]);
    }
    rondo__free(watch->tried);
    *watch = (rondo__watch){0};
}

rondo_status rondo__watch_add_tried(rondo__watch *watch, const rondo__arguments *arguments,
                                    const rondo__values *values) {
    rondo_status status =
        RONDO__ARRAY_RESERVE(watch->tried, watch->tried_capacity, watch->tried_count + 1);
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(rondo__values_init(arguments, &watch->tried[watch->tried_count]));
    rondo__values_copy(arguments, &watch->tried[watch->tried_count++], values);
    watch->is_needed = true;
    return RONDO_STATUS_OK;
}

// ---- values that were met ---------------------------------------------------------------------

static uint64_t hash_values(const rondo__arguments *arguments, const rondo__values *values) {
    const uint64_t hash = rondo__hash64(
        1, values->bits, (arguments->count + 1) * sizeof(uint64_t) + arguments->struct_bytes);
    return hash != 0 ? hash : 1;
}

// Where the hash stands, or would.
static size_t find_place(const rondo__watch *watch, uint64_t hash) {
    size_t place = (size_t)hash & (watch->met_capacity - 1);
    while (watch->met[place] != 0 && watch->met[place] != hash) {
        place = (place + 1) & (watch->met_capacity - 1);
    }
    return place;
}

static bool was_met(const rondo_learned *learned) {
    const rondo__watch *watch = &learned->watch;
    const uint64_t hash = hash_values(&learned->arguments, &learned->next);
    return watch->met != NULL && watch->met[find_place(watch, hash)] == hash;
}

static rondo_status grow_met(rondo__watch *watch) {
    rondo__watch larger = {.met_capacity =
                               watch->met_capacity > 0 ? 2 * watch->met_capacity : MET_LEAST};
    larger.met = rondo__calloc(larger.met_capacity, sizeof *larger.met);
    if (larger.met == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < watch->met_capacity; ++i) {
        if (watch->met[i] != 0) {
            larger.met[find_place(&larger, watch->met[i])] = watch->met[i];
        }
    }
    rondo__free(watch->met);
    watch->met = larger.met;
    watch->met_capacity = larger.met_capacity;
    return RONDO_STATUS_OK;
}

static rondo_status note_met(rondo__watch *watch, uint64_t hash) {
    if (2 * watch->met_count >= watch->met_capacity) {
        RETURN_IF_ERROR(grow_met(watch));
    }
    const size_t place = find_place(watch, hash);
    watch->met_count += watch->met[place] == 0;
    watch->met[place] = hash;
    return RONDO_STATUS_OK;
}

// ---- what is to be done -----------------------------------------------------------------------

static bool lacks_draws(const rondo_learned *learned) {
    return learned->lesson.odds.draw_count < learned->watch.draws_wanted;
}

// Whether there is more to do in a run than to look at its pointers.
static void decide_whether_needed(rondo_learned *learned) {
    rondo__watch *watch = &learned->watch;
    watch->is_needed = lacks_draws(learned) || watch->check_every != 0 ||
                       learned->lesson.exclusions.count > 0 ||
                       watch->tried_done < watch->tried_count;
    if (!lacks_draws(learned)) {
        forget_met(watch);
    }
}

rondo_status rondo__watch_begin(rondo_learned *learned, const rondo__values *first) {
    rondo__watch *watch = &learned->watch;
    watch->tried_done = watch->tried_count;
    (void)rondo__relations_note(&learned->lesson.odds.relations, &learned->arguments, first);
    if (lacks_draws(learned)) {
        RETURN_IF_ERROR(note_met(watch, hash_values(&learned->arguments, first)));
    }
    decide_whether_needed(learned);
    return RONDO_STATUS_OK;
}

// Whether a pointer that has changed lies to another one in a way that was never drawn, is at one
// address with more others than before (x + x to x), or overlaps one: each distance is another way
// then, so many are seen before one is believed, whatever the program wants of other draws.
static bool is_new_relation(const rondo_learned *learned, uint64_t changed) {
    const rondo__odds *odds = &learned->lesson.odds;
    const uint64_t wanted =
        learned->watch.draws_wanted > OVERLAPS_LEAST ? learned->watch.draws_wanted : OVERLAPS_LEAST;
    for (uint64_t rest = changed; rest != 0; rest &= rest - 1) {
        const size_t i = (size_t)__builtin_ctzll(rest);
        if (!rondo__relations_has_group(&odds->relations, &learned->arguments, &learned->next, i)) {
            return true;
        }
        for (uint64_t others = learned->watch.pointers & ~(UINT64_C(1) << i); others != 0;
             others &= others - 1) {
            const size_t k = (size_t)__builtin_ctzll(others);
            rondo__pair pair = {.first = (uint16_t)(i < k ? i : k),
                                .other = (uint16_t)(i < k ? k : i)};
            pair.relation =
                rondo__relation_find(&learned->arguments, &learned->next, pair.first, pair.other);
            if (!rondo__relations_has(&odds->relations, &pair) ||
                (rondo__relation_overlaps(pair.relation) && odds->overlap_count < wanted)) {
                return true;
            }
        }
    }
    return false;
}

bool rondo__watch_wants(rondo_learned *learned, uint64_t changed) {
    rondo__watch *watch = &learned->watch;
    const uint64_t pointers = changed & watch->pointers;
    if (changed == 0) {
        return false;
    }
    if (pointers != 0 && is_new_relation(learned, pointers)) {
        return true;
    }
    if (!watch->is_needed) {
        return false;
    }
    if (rondo__exclusions_find(&learned->lesson.exclusions, &learned->arguments, &learned->next)) {
        return true;
    }
    if (watch->check_every != 0 && ++watch->since_check >= watch->check_every) {
        watch->since_check = 0;
        return true;
    }
    return lacks_draws(learned) && !was_met(learned);
}

// ---- comparing --------------------------------------------------------------------------------

rondo_status rondo__watch_record(rondo_learned *learned, rondo_stream *stream,
                                 const rondo__values *values, rondo__recording *out_recording,
                                 bool *out_failed) {
    rondo__lesson *lesson = &learned->lesson;
    *out_recording = (rondo__recording){0};
    *out_failed = false;
    RETURN_IF_ERROR(rondo__fallback_make_spare(learned));
    RETURN_IF_ERROR(rondo__values_init(&learned->arguments, &out_recording->values));
    rondo__values_copy(&learned->arguments, &out_recording->values, values);
    ++learned->stats.recording_count;
    RETURN_IF_ERROR(rondo__step_record(&learned->step, learned->fallback.spare, stream, NULL,
                                       out_recording, &lesson->step_status, &lesson->finding));
    if (lesson->finding.refusal == RONDO_REFUSAL_STEP_FAILED) {
        *out_failed = true;
        return RONDO_STATUS_OK;
    }
    if (!rondo__recordings_match(&lesson->reference, out_recording, &lesson->finding)) {
        return rondo__recordings_list_differences(&lesson->reference, out_recording,
                                                  &lesson->findings);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__watch_compare(rondo_learned *learned, const rondo__recording *recording,
                                  bool has_images) {
    rondo__lesson *lesson = &learned->lesson;
    const rondo__node_image *const *images =
        has_images ? (const rondo__node_image *const *)learned->images : NULL;
    bool is_right = false;
    ++learned->stats.check_count;
    RETURN_IF_ERROR(rondo__solution_check(&lesson->solution, &learned->arguments,
                                          &lesson->reference, recording, images, &is_right,
                                          &lesson->finding));
    if (!is_right) {
        return RONDO_STATUS_OK;
    }
    const uint64_t hash = hash_values(&learned->arguments, &recording->values);
    // A run's, and not what the program named: that was not drawn.
    const bool is_draw = has_images && lacks_draws(learned) &&
                         (learned->watch.met == NULL ||
                          learned->watch.met[find_place(&learned->watch, hash)] != hash);
    lesson->odds.overlap_count +=
        rondo__relations_note(&lesson->odds.relations, &learned->arguments, &recording->values);
    if (is_draw) {
        RETURN_IF_ERROR(note_met(&learned->watch, hash));
        ++lesson->odds.draw_count;
        decide_whether_needed(learned);
    }
    return RONDO_STATUS_OK;
}

// ---- what the program named -------------------------------------------------------------------

// The step fails for what was named: runs with it are excluded.
static rondo_status exclude_tried(rondo_learned *learned, const rondo__values *values,
                                  uint64_t pinned) {
    rondo__lesson *lesson = &learned->lesson;
    rondo__finding finding;
    RETURN_IF_ERROR(rondo__exclusions_add(&lesson->exclusions, &learned->arguments, values, pinned,
                                          NULL, lesson->finding.message));
    lesson->finding = (rondo__finding){.refusal = RONDO_REFUSAL_NONE};
    rondo__finding_set(&finding, RONDO_REFUSAL_EXCLUDED, SIZE_MAX, "%s",
                       lesson->exclusions.list[lesson->exclusions.count - 1].message);
    finding.is_warning = true;
    return rondo__findings_add(&lesson->findings, &finding);
}

// Pointers that were left open are the run's.
static rondo_status try_one(rondo_learned *learned, rondo_stream *stream,
                            const rondo__values *tried, rondo__values *values) {
    rondo__recording recording;
    uint64_t pinned = 0;
    bool failed = false;
    rondo__values_copy(&learned->arguments, values, tried);
    for (size_t i = 0; i < learned->arguments.count; ++i) {
        const bool is_open = (learned->watch.pointers >> i & 1) != 0 && tried->bits[i] == 0;
        values->bits[i] = is_open ? learned->next.bits[i] : tried->bits[i];
        pinned |= is_open ? 0 : UINT64_C(1) << i;
    }
    rondo_status status = rondo__watch_record(learned, stream, values, &recording, &failed);
    if (status == RONDO_STATUS_OK && failed) {
        status = exclude_tried(learned, values, pinned);
    } else if (status == RONDO_STATUS_OK && learned->lesson.finding.refusal == RONDO_REFUSAL_NONE) {
        status = rondo__watch_compare(learned, &recording, false);
    }
    rondo__recording_deinit(&recording);
    return status;
}

rondo_status rondo__watch_try_all(rondo_learned *learned, rondo_stream *stream) {
    rondo__watch *watch = &learned->watch;
    rondo__values values = {0};
    rondo_status status = rondo__values_init(&learned->arguments, &values);
    while (status == RONDO_STATUS_OK && watch->tried_done < watch->tried_count &&
           learned->lesson.finding.refusal == RONDO_REFUSAL_NONE) {
        status = try_one(learned, stream, &watch->tried[watch->tried_done], &values);
        watch->tried_done += status == RONDO_STATUS_OK;
    }
    rondo__values_deinit(&values);
    if (status == RONDO_STATUS_OK) {
        decide_whether_needed(learned);
    }
    return status;
}
