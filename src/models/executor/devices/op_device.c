// executor/devices/op_device.c — see op_device.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/devices/op_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/devices/other_gpus.h"
#include "executor/devices/transfers.h"
#include "executor/state/counted.h"
#include "executor/state/limits.h"
#include "executor/state/states.h"
#include "op/draws.h"
#include "program/edit.h"
#include "program/node_pattern.h"
#include "program/place_mark.h"
#include "program/shapes/specialise.h"
#include "tensor/elements.h"

enum {
    PATTERN_BYTES = 256,
    // The most bytes that an op of shape arithmetic reads or makes: the processor is done with
    // them before a launch would have reached the GPU.
    SMALL_BYTES = 4096,
};

// ---- options ----------------------------------------------------------------------------------

// Splits "Gather*=cpu" at its last "=".
static rondo_status read_entry(const char *entry, char pattern[PATTERN_BYTES], uint8_t *out_place) {
    const char *split = entry != NULL ? strrchr(entry, '=') : NULL;
    const size_t length = split != NULL ? (size_t)(split - entry) : 0;
    if (length == 0 || length >= PATTERN_BYTES) {
        return RONDO_FAIL(INVALID,
                          "options.place: \"%.80s\" is no pattern and place, as \"Gather*=cpu\" is",
                          entry != NULL ? entry : "(NULL)");
    }
    memcpy(pattern, entry, length);
    pattern[length] = '\0';
    return rondo__place_parse(split + 1, "rondo_executor_create", out_place);
}

// Two entries of the options that match the same node have to agree.
static rondo_status mark_nodes(rondo_program *program, const char *pattern, const char *entry,
                               uint8_t place) {
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__node *node = &program->nodes[n];
        const bool is_match = rondo__node_matches(node, pattern);
        if (is_match && node->place.by == RONDO__PLACED_BY_OPTION && node->place.place != place) {
            return RONDO_FAIL(INVALID,
                              "%s: options.place says \"%s\" of it, and \"%.80s\", too; let one "
                              "pattern match it",
                              rondo__node_describe(node), rondo__place_get_name(node->place.place),
                              entry);
        }
        if (is_match) {
            node->place = (rondo__place_mark){place, RONDO__PLACED_BY_OPTION};
        }
        for (size_t i = 0; i < node->op.attribute_count; ++i) {
            if (node->op.attributes[i].kind == RONDO__ATTRIBUTE_BODY) {  // bounded depth: program.h
                RETURN_IF_ERROR(mark_nodes(node->op.attributes[i].body, is_match ? NULL : pattern,
                                           entry, place));
            }
        }
    }
    return RONDO_STATUS_OK;
}

// ---- what is asked for ------------------------------------------------------------------------

rondo_status rondo__op_device_refuse(const rondo__node *node, const rondo__op_device *home,
                                     const char *why) {
    char cause[200];
    (void)snprintf(cause, sizeof cause, "%.199s", why);
    const rondo_status status =
        RONDO_FAIL(UNSUPPORTED, "%s is placed on \"%s\" by %s: %s. Place it on \"cpu\" or \"all\"",
                   rondo__node_describe(node), rondo__place_get_name(home->place),
                   rondo__place_get_source(home->by), cause);
    rondo__error_set_op(node->op.name);
    return status;
}

static rondo_status ask(rondo_executor *executor, const rondo__node *node,
                        rondo__op_device *out_home) {
    const int ordinal = rondo__other_gpus_get_own(executor);
    rondo__op_device home = {node->place.place, node->place.by, "asked for"};
    if (home.place >= RONDO__PLACE_GPU && ordinal < 0) {
        return rondo__op_device_refuse(node, &home,
                                       "the executor runs on the processor, with no GPU");
    }
    if (home.place >= RONDO__PLACE_GPU_0 && home.place - RONDO__PLACE_GPU_0 != ordinal) {
        rondo__peer *peer;
        if (rondo__other_gpus_open(executor, home.place - RONDO__PLACE_GPU_0, &peer) !=
            RONDO_STATUS_OK) {
            return rondo__op_device_refuse(node, &home, rondo_error_get_last()->message);
        }
    } else if (home.place >= RONDO__PLACE_GPU_0) {
        home.place = RONDO__PLACE_GPU;
    }
    *out_home = home;
    return RONDO_STATUS_OK;
}

// Looks at all marks before anything is fused: a whole that is fused has none.
static rondo_status check_marks(rondo_executor *executor, const rondo_program *program) {
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        rondo__op_device home;
        RETURN_IF_ERROR(ask(executor, node, &home));
        for (size_t i = 0; i < node->op.attribute_count; ++i) {
            if (node->op.attributes[i].kind == RONDO__ATTRIBUTE_BODY) {  // bounded depth: program.h
                RETURN_IF_ERROR(check_marks(executor, node->op.attributes[i].body));
            }
        }
    }
    return RONDO_STATUS_OK;
}

static bool has_marks(const rondo_program *program) {
    bool has = false;
    for (size_t n = 0; n < program->node_count && !has; ++n) {
        const rondo__node *node = &program->nodes[n];
        has = node->place.place != RONDO__PLACE_ANY;
        for (size_t i = 0; i < node->op.attribute_count && !has; ++i) {
            has = node->op.attributes[i].kind == RONDO__ATTRIBUTE_BODY &&
                  has_marks(node->op.attributes[i].body);  // bounded depth: program.h
        }
    }
    return has;
}

bool rondo__op_device_has_marks(const rondo__unit *unit) {
    return unit->executor->options.place != NULL || has_marks(unit->source);
}

// ---- variables ----------------------------------------------------------------------------------

static bool is_on_processor(const rondo_executor_options *options, const rondo__node *node) {
    uint8_t place = node->place.place;
    for (size_t i = 0; options->place != NULL && i < options->place_count; ++i) {
        char pattern[PATTERN_BYTES];
        uint8_t asked;
        rondo_error saved;
        rondo__error_save(&saved);
        if (read_entry(options->place[i], pattern, &asked) == RONDO_STATUS_OK &&
            rondo__node_matches(node, pattern)) {
            place = asked;
        }
        rondo__error_restore(&saved);  // told when the marks are made
    }
    return place == RONDO__PLACE_CPU;
}

static bool is_of_processor(const rondo_executor *executor, const rondo__state *state) {
    const rondo_program *program = executor->main.source;
    const int32_t value = program->inputs[state->input];
    bool is_read = false;
    bool is = true;
    for (size_t n = 0; n < program->node_count && is; ++n) {
        const rondo__node *node = &program->nodes[n];
        for (size_t k = 0; k < node->input_count && is; ++k) {
            is_read = is_read || node->inputs[k] == value;
            is = node->inputs[k] != value || is_on_processor(&executor->options, node);
        }
    }
    const int32_t update = state->output != RONDO__STATE_NO_OUTPUT
                               ? program->values[program->outputs[state->output]].producer
                               : -1;
    return is && is_read &&
           (update < 0 || is_on_processor(&executor->options, &program->nodes[update]));
}

void rondo__op_device_pin_states(rondo_executor *executor) {
    rondo__state *state = rondo_device_is_host(executor->device) ? NULL : executor->caller.states;
    for (; state != NULL; state = state->next) {
        state->value.is_pinned = is_of_processor(executor, state);
        state->spare.is_pinned = state->value.is_pinned;
    }
}

rondo_status rondo__op_device_mark(const rondo__unit *unit, rondo_program *program) {
    const rondo_executor_options *options = &unit->executor->options;
    for (size_t i = 0; options->place != NULL && i < options->place_count; ++i) {
        char pattern[PATTERN_BYTES];
        uint8_t place;
        RETURN_IF_ERROR(read_entry(options->place[i], pattern, &place));
        // Counted where nothing is folded yet: an op that folds away is no mistake of the caller's.
        if (rondo__program_count_matches(unit->source, pattern) == 0) {
            return RONDO_FAIL(INVALID,
                              "place \"%.80s\" matches no op: neither a name of a node nor a type "
                              "of op (* stands for any characters, ? for one)",
                              pattern);
        }
        RETURN_IF_ERROR(mark_nodes(program, pattern, options->place[i], place));
    }
    return check_marks(unit->executor, program);
}

// ---- rules ------------------------------------------------------------------------------------

typedef struct rules {
    const rondo__unit *unit;
    rondo__plan *plan;
    bool *by_device;  // by value: an op of the device, or no op, reads it
    bool *by_host;    // by value: an op of the processor reads it
} rules;

static bool is_known(const rondo_program *program, int32_t value) {
    const rondo__value *v = value >= 0 ? &program->values[value] : NULL;
    return v == NULL ||
           (rondo__value_has_known_shape(v) &&
            rondo__dtype_is_plain(rondo__value_is_constant(v) ? v->constant.dtype : v->dtype));
}

// Whether the node waits for values of this run on the processor, whatever is placed where.
static bool reads_on_host(const rondo_program *program, const rondo__node *node) {
    bool all_known = true;
    if ((node->op.def->flags & RONDO__OP_CONTROL) != 0) {
        return rondo__node_is(node, RONDO__FUSED_Rest) || rondo__counted_is(node);
    }
    for (size_t i = 0; i < node->input_count; ++i) {
        all_known = all_known && is_known(program, node->inputs[i]);
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        all_known = all_known && is_known(program, node->outputs[i]);
    }
    return !all_known;
}

// Bytes of a value that is not known ahead; SIZE_MAX where it has too many, or is no whole number.
static size_t measure_small(const rondo_program *program, int32_t value) {
    const rondo__value *v = value >= 0 ? &program->values[value] : NULL;
    if (v == NULL || rondo__value_is_constant(v)) {
        return 0;
    }
    rondo_tensor shell = {.dtype = v->dtype};
    const bool is_whole =
        v->dtype == RONDO_DTYPE_I64 || v->dtype == RONDO_DTYPE_I32 || v->dtype == RONDO_DTYPE_BOOL;
    const size_t bytes = is_whole && rondo__value_get_shape(v, &shell.shape)
                             ? rondo_tensor_get_bytes(&shell)
                             : SIZE_MAX;
    return bytes <= SMALL_BYTES ? bytes : SIZE_MAX;
}

// Whether the node is a rondo.Rest whose results stay on the device.
static bool stays_on_device(const rules *r, const rondo__node *node) {
    return rondo__node_is(node, RONDO__FUSED_Rest) && rondo__unit_has_two_sides(r->unit);
}

// Whether an op of the device makes the value.
static bool is_from_device(const rules *r, int32_t value) {
    const int32_t maker = value >= 0 ? r->plan->program->values[value].producer : -1;
    const rondo__node *node = maker >= 0 ? &r->plan->program->nodes[maker] : NULL;
    return maker >= 0 && r->plan->homes[maker].place != RONDO__PLACE_CPU &&
           (!reads_on_host(r->plan->program, node) || stays_on_device(r, node));
}

// Whether the node makes small whole numbers from small whole numbers, only the processor reads
// them, and moving the node there costs no more crossings than moving its result.
static bool is_shape_arithmetic(const rules *r, const rondo__node *node) {
    const rondo_program *program = r->plan->program;
    size_t read_count = 0;
    size_t crossing_count = 0;
    for (size_t i = 0; i < node->output_count; ++i) {
        const int32_t value = node->outputs[i];
        if (value >= 0 && (measure_small(program, value) == SIZE_MAX || r->by_device[value])) {
            return false;
        }
        read_count += value >= 0 && r->by_host[value] ? 1 : 0;
    }
    const bool is_shape_only = (node->op.def->flags & RONDO__OP_SHAPE_ONLY) != 0;
    for (size_t i = 0; i < node->input_count && !is_shape_only; ++i) {
        if (measure_small(program, node->inputs[i]) == SIZE_MAX) {
            return false;
        }
        crossing_count += is_from_device(r, node->inputs[i]) ? 1 : 0;
    }
    return read_count > 0 && crossing_count <= read_count;
}

static void note_reads(rules *r, size_t n) {
    const rondo_program *program = r->plan->program;
    const rondo__node *node = &program->nodes[n];
    const bool is_shape_only = (node->op.def->flags & RONDO__OP_SHAPE_ONLY) != 0;
    const bool is_counted = rondo__counted_is(node);
    const bool stays = stays_on_device(r, node);
    const bool is_host =
        r->plan->homes[n].place == RONDO__PLACE_CPU || reads_on_host(program, node);
    for (size_t i = 0; i < node->input_count && !is_shape_only; ++i) {
        const int32_t value = node->inputs[i];
        // Ops whose results stay on the device have the processor read only a count, and what may
        // decide shapes.
        const bool is_read_on_host = is_counted ? i == rondo__counted_get_input(node)
                                     : stays    ? measure_small(program, value) != SIZE_MAX
                                                : is_host;
        if (value >= 0) {
            (is_read_on_host ? r->by_host : r->by_device)[value] = true;
        }
    }
}

// Backwards, because what an op of the processor reads may be computed there, too.
static rondo_status place_shape_arithmetic(const rondo__unit *unit, rondo__plan *plan) {
    const rondo_program *program = plan->program;
    rules r = {.unit = unit, .plan = plan};
    r.by_device = rondo__calloc(program->value_count + 1, sizeof *r.by_device);
    r.by_host = rondo__calloc(program->value_count + 1, sizeof *r.by_host);
    if (r.by_device == NULL || r.by_host == NULL) {
        rondo__free(r.by_device);
        rondo__free(r.by_host);
        return RONDO_STATUS_NO_MEMORY;
    }
    const uint32_t settled = RONDO__OP_CONTROL | RONDO__OP_RANDOM;
    for (size_t n = program->node_count; n-- > 0;) {
        const rondo__node *node = &program->nodes[n];
        const bool is_open = plan->homes[n].place == RONDO__PLACE_ANY &&
                             (node->op.def->flags & settled) == 0 && node->op.def->bound == NULL &&
                             !reads_on_host(program, node);
        if (is_open && is_shape_arithmetic(&r, node)) {
            plan->homes[n] = (rondo__op_device){RONDO__PLACE_CPU, RONDO__PLACED_BY_NOBODY,
                                                "it computes what ops of the processor read"};
        }
        note_reads(&r, n);
    }
    rondo__free(r.by_device);
    rondo__free(r.by_host);
    return RONDO_STATUS_OK;
}

// ---- tables -----------------------------------------------------------------------------------

// The constant from which a node takes rows or elements; -1: none.
static int32_t get_table(const rondo_program *program, const rondo__node *node) {
    const bool is_lookup = rondo__node_is(node, RONDO__OP_Gather) ||
                           rondo__node_is(node, RONDO__OP_GatherND) ||
                           rondo__node_is(node, RONDO__OP_GatherElements);
    return is_lookup && node->input_count > 0 && node->inputs[0] >= 0 &&
                   rondo__value_is_constant(&program->values[node->inputs[0]])
               ? node->inputs[0]
               : -1;
}

static uint64_t get_constant_bytes(const rondo_program *program, int32_t value) {
    return rondo_tensor_get_bytes(&program->values[value].constant);
}

// Bytes of the constants that the device would hold; marks each in `seen`.
static uint64_t add_constants(const rondo__plan *plan, bool *seen) {
    const rondo_program *program = plan->program;
    uint64_t bytes = 0;
    memset(seen, 0, program->value_count * sizeof *seen);
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        const uint8_t place = plan->homes[n].place;
        const bool is_here = place == RONDO__PLACE_ANY || place == RONDO__PLACE_GPU;
        for (size_t i = 0; is_here && i < node->input_count; ++i) {
            const int32_t value = node->inputs[i];
            if (value >= 0 && !seen[value] && rondo__value_is_constant(&program->values[value])) {
                seen[value] = true;
                bytes += get_constant_bytes(program, value);
            }
        }
    }
    return bytes;
}

// The largest table that has no place yet; -1: none.
static int32_t find_largest_table(const rondo__plan *plan) {
    const rondo_program *program = plan->program;
    int32_t largest = -1;
    for (size_t n = 0; n < program->node_count; ++n) {
        const int32_t table =
            plan->homes[n].place == RONDO__PLACE_ANY ? get_table(program, &program->nodes[n]) : -1;
        if (table >= 0 && (largest < 0 || get_constant_bytes(program, table) >
                                              get_constant_bytes(program, largest))) {
            largest = table;
        }
    }
    return largest;
}

// Leaves tables on the processor, the largest first, until the rest fits.
static rondo_status place_tables(rondo_executor *executor, rondo__plan *plan) {
    const rondo_program *program = plan->program;
    const uint64_t room = rondo__executor_get_device_room(executor);
    bool *seen = rondo__calloc(program->value_count + 1, sizeof *seen);
    if (seen == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    int32_t table = find_largest_table(plan);
    while (table >= 0 && add_constants(plan, seen) > room) {
        for (size_t n = 0; n < program->node_count; ++n) {
            if (plan->homes[n].place == RONDO__PLACE_ANY &&
                get_table(program, &program->nodes[n]) == table) {
                plan->homes[n] =
                    (rondo__op_device){RONDO__PLACE_CPU, RONDO__PLACED_BY_NOBODY,
                                       "its table does not fit into the device's memory"};
            }
        }
        table = find_largest_table(plan);
    }
    rondo__free(seen);
    return RONDO_STATUS_OK;
}

// Lets the plan have a side for each other GPU that is asked for.
static rondo_status add_peers(rondo_executor *executor, rondo__plan *plan) {
    const rondo_program *program = plan->program;
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__op_device home;
        RETURN_IF_ERROR(ask(executor, &program->nodes[n], &home));
        if (home.place >= RONDO__PLACE_GPU_0) {
            RETURN_IF_ERROR(rondo__other_gpus_add(executor, plan, home.place - RONDO__PLACE_GPU_0));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__op_device_decide(rondo__unit *unit, rondo__plan *plan) {
    const rondo_program *program = plan->program;
    RETURN_IF_ERROR(add_peers(unit->executor, plan));
    // Room for the copies between the sides.
    plan->homes = rondo__calloc(
        program->node_count + rondo__plan_count_sides(plan) * program->value_count + 1,
        sizeof *plan->homes);
    if (plan->homes == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t n = 0; n < program->node_count; ++n) {
        if (program->nodes[n].place.place != RONDO__PLACE_ANY) {
            RETURN_IF_ERROR(ask(unit->executor, &program->nodes[n], &plan->homes[n]));
        }
    }
    if (rondo_device_is_host(unit->executor->device)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(place_shape_arithmetic(unit, plan));
    return place_tables(unit->executor, plan);
}
