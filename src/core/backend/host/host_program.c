// backend/host/host_program.c — the runnable form of a template.
//
// A template's nodes are cut into segments: longest chains in which each node depends on the one
// before it and on nothing else, and nothing else depends on that one. A straight-line graph is one
// segment, and running it is one loop over pairs of a function and the address of its arguments,
// which lie in one block in the order in which they are used:
//
//      instructions  [run|arguments] [run|arguments] [run|arguments] ...
//                          |               |               |
//      arguments     [ bytes of 0 ][ bytes of 1      ][ bytes of 2 ] ...
//
// A graph with branches is a graph of segments. Segments are numbered in the order of their first
// nodes, and a predecessor's last node always precedes its successor's first one, so running the
// segments in order is right on one thread; host_team.c runs them on several.
//
// A conditional node is one instruction, whose argument is a choice: the programs of its bodies and
// the address of the predicate.
//
//      instructions  [run|arguments] [run_choice|choice] [run|arguments]
//                                          |
//      choice        predicate, body 0, body 1 ...    each a program with instructions of its own
//
// So a turn of a while costs one comparison, and its body what the same nodes cost elsewhere. A
// body with parallel branches is a job of its own (host_team.c); the thread that runs the node owns
// it.
//
// Cost: 16 bytes and the rounded-up arguments per node, 20 bytes per segment.
// SPDX-License-Identifier: Apache-2.0

#include "backend/host/host_program.h"

#include <string.h>

#include "backend/host/host_child.h"
#include "backend/host/host_device.h"
#include "backend/host/host_external.h"
#include "backend/host/host_team.h"
#include "backend/host/host_timing.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/use_count.h"

enum { NO_SEGMENT = UINT32_MAX, ARGUMENT_ALIGNMENT = 16 };
// Their serials travel in one command of a stream's ring.
enum { EXTERNALS_MAX = 4096 };

// Scratch while a program is made.
typedef struct segment_plan {
    uint32_t *segment_of;       // per node
    uint32_t *successor_count;  // per node
    uint32_t *cursor;           // per segment
    uint32_t segment_count;
} segment_plan;

static void deinit_plan(segment_plan *plan) {
    rondo__free(plan->segment_of);
    rondo__free(plan->successor_count);
    rondo__free(plan->cursor);
}

static const size_t *predecessors_of(const rondo__host_template *recorded, size_t node) {
    return recorded->predecessors == NULL
               ? NULL
               : recorded->predecessors + recorded->nodes[node].first_edge;
}

// Gives each node its segment.
static rondo_status init_plan(const rondo__host_template *recorded, segment_plan *out_plan) {
    *out_plan = (segment_plan){0};
    size_t count = recorded->node_count;
    out_plan->segment_of = rondo__calloc(count, sizeof(uint32_t));
    out_plan->successor_count = rondo__calloc(count, sizeof(uint32_t));
    out_plan->cursor = rondo__calloc(count, sizeof(uint32_t));
    if (out_plan->segment_of == NULL || out_plan->successor_count == NULL ||
        out_plan->cursor == NULL) {
        deinit_plan(out_plan);
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < recorded->edge_count; ++i) {
        ++out_plan->successor_count[recorded->predecessors[i]];
    }
    for (size_t i = 0; i < count; ++i) {
        uint32_t segment = NO_SEGMENT;
        if (recorded->nodes[i].edge_count == 1) {
            size_t predecessor = *predecessors_of(recorded, i);
            if (out_plan->successor_count[predecessor] == 1) {
                segment = out_plan->segment_of[predecessor];
            }
        }
        out_plan->segment_of[i] = segment != NO_SEGMENT ? segment : out_plan->segment_count++;
    }
    return RONDO_STATUS_OK;
}

// ---- conditional nodes ------------------------------------------------------------------------

static void destroy_choice(rondo__host_choice *choice) {
    for (uint32_t i = 0; i < choice->count; ++i) {
        rondo__host_program_release(choice->bodies[i]);
    }
    rondo__free(choice);
}

static rondo_status create_choice(const rondo__host_branches *branches,
                                  rondo__host_choice **out_choice) {
    rondo__host_choice *choice =
        rondo__calloc(1, sizeof *choice + branches->count * sizeof choice->bodies[0]);
    if (choice == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    choice->kind = branches->kind;
    choice->predicate = branches->predicate;
    choice->count = branches->count;
    for (uint32_t i = 0; i < branches->count; ++i) {
        if (branches->bodies[i] == NULL) {
            continue;
        }
        rondo_status status = rondo__host_program_create(branches->bodies[i], &choice->bodies[i]);
        if (status != RONDO_STATUS_OK) {
            destroy_choice(choice);
            return status;
        }
    }
    *out_choice = choice;
    return RONDO_STATUS_OK;
}

static void run_branch(const rondo__host_choice *choice, uint32_t branch) {
    if (branch < choice->count && choice->bodies[branch] != NULL) {
        rondo__host_program_run(choice->bodies[branch]);
    }
}

static void run_choice(void *data) {
    const rondo__host_choice *choice = data;
    // Earlier work wrote it, perhaps on another thread, which made it visible when it handed this
    // node over. Read anew each time.
    const volatile uint32_t *predicate = choice->predicate;
    switch (choice->kind) {
        case RONDO_SCOPE_IF:
        case RONDO_SCOPE_IF_ELSE:
            run_branch(choice, *predicate != 0 ? 0 : 1);
            break;
        case RONDO_SCOPE_SWITCH:
            run_branch(choice, *predicate);
            break;
        case RONDO_SCOPE_WHILE:
            while (*predicate != 0) {
                run_branch(choice, 0);
            }
            break;
    }
}

// ---- making a program -------------------------------------------------------------------------

static rondo_status place_choice(const rondo__host_branches *branches, rondo__host_program *program,
                                 rondo__host_instruction *out_instruction) {
    rondo__host_choice *choice;
    RETURN_IF_ERROR(create_choice(branches, &choice));
    choice->next = program->choices;
    program->choices = choice;
    *out_instruction = (rondo__host_instruction){.run = run_choice, .arguments = choice};
    return RONDO_STATUS_OK;
}

// Cuts the instructions among the segments, and copies the arguments in that order.
static rondo_status place_instructions(const rondo__host_template *recorded, segment_plan *plan,
                                       rondo__host_program *program) {
    size_t total = 0;
    for (size_t i = 0; i < recorded->node_count; ++i) {
        ++program->segments[plan->segment_of[i]].count;
        total += rondo__align_up(recorded->nodes[i].argument_bytes, (size_t)ARGUMENT_ALIGNMENT);
    }
    uint32_t first = 0;
    for (size_t i = 0; i < program->segment_count; ++i) {
        program->segments[i].first = first;
        plan->cursor[i] = first;
        first += program->segments[i].count;
    }
    // Order of execution: which node stands at each place.
    uint32_t *order = rondo__calloc(recorded->node_count, sizeof *order);
    program->arguments = rondo__malloc_aligned(total, RONDO__CACHE_LINE_BYTES);
    const bool has_notes = rondo__hook_is_on(RONDO__HOOK_LABELS);
    program->notes = has_notes ? rondo__host_notes_create(recorded) : NULL;
    if (order == NULL || program->arguments == NULL || (has_notes && program->notes == NULL)) {
        rondo__free(order);
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < recorded->node_count; ++i) {
        order[plan->cursor[plan->segment_of[i]]++] = (uint32_t)i;
    }
    unsigned char *arguments = program->arguments;
    rondo_status status = RONDO_STATUS_OK;
    for (size_t place = 0; place < recorded->node_count && status == RONDO_STATUS_OK; ++place) {
        const rondo__host_node *node = &recorded->nodes[order[place]];
        const size_t origin = recorded->borrows_branches ? node->origin : order[place];
        if (origin != SIZE_MAX) {
            program->places[origin] = (uint32_t)place;
        }
        if (program->notes != NULL) {
            rondo__host_notes_set(program->notes, place, node);
        }
        if (node->branches != NULL) {
            status = place_choice(node->branches, program, &program->instructions[place]);
            continue;
        }
        program->instructions[place] =
            (rondo__host_instruction){.run = node->run, .arguments = arguments};
        if (node->argument_bytes > 0) {
            memcpy(arguments, node->arguments, node->argument_bytes);
            arguments += rondo__align_up(node->argument_bytes, (size_t)ARGUMENT_ALIGNMENT);
        }
    }
    rondo__free(order);
    return status;
}

// Edges between nodes of different segments become edges between segments. Several between the same
// two are kept: each counts once on both sides.
static rondo_status link_segments(const rondo__host_template *recorded, segment_plan *plan,
                                  rondo__host_program *program) {
    program->successors = rondo__calloc(recorded->edge_count, sizeof *program->successors);
    if (program->successors == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t pass = 0; pass < 2; ++pass) {
        for (size_t i = 0; i < recorded->node_count; ++i) {
            const size_t *predecessors = predecessors_of(recorded, i);
            uint32_t to = plan->segment_of[i];
            for (size_t edge = 0; edge < recorded->nodes[i].edge_count; ++edge) {
                uint32_t from = plan->segment_of[predecessors[edge]];
                if (from == to) {
                    continue;
                }
                if (pass == 0) {
                    ++program->segments[from].successor_count;
                    ++program->segments[to].predecessor_count;
                } else {
                    program->successors[plan->cursor[from]++] = to;
                }
            }
        }
        uint32_t first = 0;
        for (size_t i = 0; pass == 0 && i < program->segment_count; ++i) {
            program->segments[i].first_successor = first;
            plan->cursor[i] = first;
            first += program->segments[i].successor_count;
        }
    }
    return RONDO_STATUS_OK;
}

// The most segments on one level, where a segment's level is the longest way to it from a root.
static rondo_status measure_width(rondo__host_program *program, segment_plan *plan) {
    uint32_t *level = plan->cursor;
    uint32_t *level_size = rondo__calloc(program->segment_count, sizeof *level_size);
    if (level_size == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memset(level, 0, program->segment_count * sizeof *level);
    program->width = 0;
    for (size_t i = 0; i < program->segment_count; ++i) {
        const rondo__host_segment *segment = &program->segments[i];
        for (uint32_t edge = 0; edge < segment->successor_count; ++edge) {
            uint32_t to = program->successors[segment->first_successor + edge];
            level[to] = level[to] > level[i] ? level[to] : level[i] + 1;
        }
        size_t size = ++level_size[level[i]];
        program->width = size > program->width ? size : program->width;
    }
    rondo__free(level_size);
    return RONDO_STATUS_OK;
}

// Lists the nodes whose serials each replay sets.
static rondo_status find_externals(rondo__host_program *program) {
    size_t count = 0;
    for (size_t pass = 0; pass < 2; ++pass) {
        count = 0;
        for (size_t i = 0; i < program->count; ++i) {
            const rondo__host_instruction *instruction = &program->instructions[i];
            rondo__host_external *external =
                rondo__host_get_external(instruction->run, instruction->arguments);
            if (external != NULL && pass > 0) {
                program->externals[count] = external;
            }
            count += external != NULL;
        }
        if (count == 0) {
            return RONDO_STATUS_OK;
        }
        if (count > EXTERNALS_MAX) {
            return RONDO_FAIL_AS(
                "rondo_graph_instantiate", UNSUPPORTED,
                "%zu nodes of a graph use external events; at most %d may, so split "
                "the graph",
                count, (int)EXTERNALS_MAX);
        }
        if (pass == 0) {
            program->externals = rondo__calloc(count, sizeof *program->externals);
            if (program->externals == NULL) {
                return RONDO_STATUS_NO_MEMORY;
            }
        }
    }
    program->external_count = count;
    return RONDO_STATUS_OK;
}

static rondo_status init_job(rondo__host_program *program) {
    program->job.program = program;
    program->job.pending = rondo__calloc(program->segment_count, sizeof *program->job.pending);
    program->job.ready = rondo__calloc(program->segment_count, sizeof *program->job.ready);
    return program->job.pending != NULL && program->job.ready != NULL ? RONDO_STATUS_OK
                                                                      : RONDO_STATUS_NO_MEMORY;
}

// `origin_count`: nodes of the template before it was flattened.
static rondo_status create_flat(const rondo__host_template *recorded, size_t origin_count,
                                rondo__host_program **out_program) {
    if (recorded->node_count >= NO_SEGMENT || recorded->edge_count >= NO_SEGMENT) {
        return RONDO_FAIL_AS("rondo_graph_instantiate", UNSUPPORTED,
                             "a graph of %zu nodes and %zu edges is too large",
                             recorded->node_count, recorded->edge_count);
    }
    rondo__host_program *program = rondo__calloc_lines(sizeof *program);
    if (program == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    atomic_init(&program->reference_count, 1);
    program->count = recorded->node_count;
    program->team = rondo__host_device_of(recorded->head.device)->team;
    segment_plan plan;
    rondo_status status = init_plan(recorded, &plan);
    if (status != RONDO_STATUS_OK) {
        goto release_program;
    }
    program->segment_count = plan.segment_count;
    program->segments = rondo__calloc(program->segment_count, sizeof *program->segments);
    program->instructions = rondo__calloc(program->count, sizeof *program->instructions);
    program->places = rondo__calloc(origin_count, sizeof *program->places);
    bool has_room =
        program->segments != NULL && program->instructions != NULL && program->places != NULL;
    status = has_room ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK) {
        status = place_instructions(recorded, &plan, program);
    }
    if (status == RONDO_STATUS_OK) {
        status = link_segments(recorded, &plan, program);
    }
    if (status == RONDO_STATUS_OK) {
        status = measure_width(program, &plan);
    }
    if (status == RONDO_STATUS_OK) {
        status = find_externals(program);
    }
    if (status == RONDO_STATUS_OK && program->width > 1) {
        status = init_job(program);
    }
    deinit_plan(&plan);
    if (status == RONDO_STATUS_OK) {
        if (program->width > 1) {
            rondo__host_team_start(program->team);
        }
        *out_program = program;
        return RONDO_STATUS_OK;
    }
release_program:
    rondo__host_program_release(program);
    return status;
}

rondo_status rondo__host_program_create(const rondo__host_template *recorded,
                                        rondo__host_program **out_program) {
    *out_program = NULL;
    const rondo__host_template *flat;
    RETURN_IF_ERROR(rondo__host_flatten(recorded, &flat));
    rondo_status status = create_flat(flat, recorded->node_count, out_program);
    rondo__host_unflatten(recorded, flat);
    return status;
}

void rondo__host_program_release(rondo__host_program *program) {
    if (program == NULL || !rondo__reference_drop(&program->reference_count)) {
        return;
    }
    while (program->choices != NULL) {
        rondo__host_choice *next = program->choices->next;
        destroy_choice(program->choices);
        program->choices = next;
    }
    rondo__free(program->instructions);
    rondo__free(program->places);
    rondo__free(program->arguments);
    rondo__free(program->segments);
    rondo__free(program->successors);
    rondo__free(program->externals);
    rondo__free(program->job.pending);
    rondo__free(program->job.ready);
    rondo__free(program->notes);
    rondo__free(program);
}

void rondo__host_program_run(rondo__host_program *program) {
    if (program->width > 1) {
        rondo__host_team_run(program->team, &program->job);
        return;
    }
    if (rondo__host_is_timed(program)) {
        rondo__host_run_timed(program, 0, (uint32_t)program->count);
        rondo__host_executed_count += program->count;
        return;
    }
    const rondo__host_instruction *instruction = program->instructions;
    const rondo__host_instruction *end = instruction + program->count;
    for (; instruction != end; ++instruction) {
        instruction->run(instruction->arguments);
    }
    rondo__host_executed_count += (uint64_t)(instruction - program->instructions);
}
