// backend/host/host_timing.c — see host_timing.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/host/host_timing.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

enum { NAME_BYTES = 80 };

_Thread_local const rondo__host_timing *rondo__host_timing_now;

// ---- what work is -----------------------------------------------------------------------------

// COUNT: a node that profiles do not list. A conditional is one, as the nodes in its bodies are
// timed by themselves.
static rondo__work_kind to_work(rondo__node_kind kind) {
    switch (kind) {
        case RONDO__NODE_KERNEL:
            return RONDO__WORK_KERNEL;
        case RONDO__NODE_HOST:
            return RONDO__WORK_HOST;
        case RONDO__NODE_COPY:
            return RONDO__WORK_COPY;
        case RONDO__NODE_FILL:
            return RONDO__WORK_FILL;
        case RONDO__NODE_EVENT_WAIT:
        case RONDO__NODE_EVENT_RECORD:
            return RONDO__WORK_OTHER;
        default:
            return RONDO__WORK_COUNT;
    }
}

static void describe_bytes(rondo__hook_work *work, const void *arguments) {
    static const rondo__way ways[] = {[RONDO_COPY_HOST_TO_DEVICE] = RONDO__WAY_H2D,
                                      [RONDO_COPY_DEVICE_TO_HOST] = RONDO__WAY_D2H,
                                      [RONDO_COPY_DEVICE_TO_DEVICE] = RONDO__WAY_D2D};
    if (work->kind == RONDO__WORK_COPY) {
        const rondo__host_copy_arguments *copy = arguments;
        work->bytes = copy->bytes;
        work->way = ways[copy->kind];
    } else if (work->kind == RONDO__WORK_FILL) {
        const rondo__host_fill_arguments *fill = arguments;
        work->bytes = (uint64_t)fill->count * fill->element_bytes;
    }
}

// ---- commands ---------------------------------------------------------------------------------

// The arguments of the command itself follow.
typedef struct timed_command {
    _Alignas(16) void (*run)(void *);
    uint64_t span;
    uint32_t stream;
    rondo__work_kind kind;
    char name[NAME_BYTES];
} timed_command;

static void run_timed_command(void *data) {
    const timed_command *command = data;
    void *arguments = (char *)data + sizeof *command;
    rondo__hook_work work = {.kind = command->kind,
                             .name = command->name,
                             .label = "",
                             .span = command->span,
                             .device = -1,
                             .stream = command->stream};
    describe_bytes(&work, arguments);
    work.begin_ns = rondo__clock_now_ns();
    command->run(arguments);
    work.end_ns = rondo__clock_now_ns();
    rondo__hook_post_work(&work);
}

rondo_status rondo__host_submit_node(rondo__host_stream *stream, const rondo__host_node *node,
                                     size_t extra_bytes, void **out_arguments) {
    const size_t bytes = node->argument_bytes + extra_bytes;
    if (!rondo__hook_is_on(RONDO__HOOK_WORK)) {
        return rondo__host_submit(stream, node->run, bytes, out_arguments);
    }
    void *room;
    RETURN_IF_ERROR(
        rondo__host_submit(stream, run_timed_command, sizeof(timed_command) + bytes, &room));
    timed_command *command = room;
    *command = (timed_command){.run = node->run,
                               .span = rondo__hook_get_span(),
                               .stream = stream->head.number,
                               .kind = to_work(node->kind)};
    rondo__text_fit(command->name, sizeof command->name, node->name);
    *out_arguments = command + 1;
    return RONDO_STATUS_OK;
}

// ---- programs ---------------------------------------------------------------------------------

rondo__host_timing rondo__host_timing_make(const rondo__host_stream *stream) {
    return (rondo__host_timing){.span = rondo__hook_get_span(),
                                .stream = stream->head.number,
                                .is_wanted = rondo__hook_is_on(RONDO__HOOK_WORK)};
}

typedef struct note {
    const char *name;
    const char *label;
    rondo__work_kind kind;
    uint64_t end_ns;  // of the run at hand
} note;

struct rondo__host_notes {
    char *texts;  // behind the notes
    note by_place[];
};

static const char *get_text(const char *text) {
    return text != NULL ? text : "";
}

rondo__host_notes *rondo__host_notes_create(const rondo__host_template *recorded) {
    size_t bytes = sizeof(rondo__host_notes) + recorded->node_count * sizeof(note);
    const size_t first = bytes;
    for (size_t i = 0; i < recorded->node_count; ++i) {
        const rondo__host_node *node = &recorded->nodes[i];
        bytes += strlen(get_text(node->name)) + 1 + strlen(get_text(node->label)) + 1;
    }
    rondo__host_notes *notes = rondo__calloc(1, bytes);
    if (notes != NULL) {
        notes->texts = (char *)notes + first;
    }
    return notes;
}

static const char *keep_text(rondo__host_notes *notes, const char *text) {
    char *kept = notes->texts;
    const size_t bytes = strlen(text) + 1;
    memcpy(kept, text, bytes);
    notes->texts += bytes;
    return kept;
}

void rondo__host_notes_set(rondo__host_notes *notes, size_t place, const rondo__host_node *node) {
    notes->by_place[place] = (note){.name = keep_text(notes, get_text(node->name)),
                                    .label = keep_text(notes, get_text(node->label)),
                                    .kind = to_work(node->kind)};
}

static void tell(const rondo__host_program *program, uint32_t first, uint32_t count,
                 uint64_t begin_ns) {
    const rondo__host_timing *timing = rondo__host_timing_now;
    for (uint32_t i = first; i < first + count; ++i) {
        const note *n = &program->notes->by_place[i];
        rondo__hook_work work = {.kind = n->kind,
                                 .name = n->name,
                                 .label = n->label,
                                 .span = timing->span,
                                 .device = -1,
                                 .stream = timing->stream,
                                 .begin_ns = begin_ns,
                                 .end_ns = n->end_ns};
        if (n->kind != RONDO__WORK_COUNT) {
            describe_bytes(&work, program->instructions[i].arguments);
            rondo__hook_post_work(&work);
        }
        begin_ns = n->end_ns;
    }
}

void rondo__host_run_timed(const rondo__host_program *program, uint32_t first, uint32_t count) {
    const uint64_t begin_ns = rondo__clock_now_ns();
    for (uint32_t i = first; i < first + count; ++i) {
        const rondo__host_instruction *instruction = &program->instructions[i];
        instruction->run(instruction->arguments);
        program->notes->by_place[i].end_ns = rondo__clock_now_ns();
    }
    tell(program, first, count, begin_ns);
}

void rondo__host_tell_program(const rondo__host_program *program, uint64_t begin_ns) {
    if (program->notes == NULL && rondo__host_timing_now != NULL) {
        rondo__hook_post_work(&(rondo__hook_work){.kind = RONDO__WORK_GRAPH,
                                                  .name = "graph",
                                                  .label = "",
                                                  .span = rondo__host_timing_now->span,
                                                  .device = -1,
                                                  .stream = rondo__host_timing_now->stream,
                                                  .begin_ns = begin_ns,
                                                  .end_ns = rondo__clock_now_ns()});
    }
}
