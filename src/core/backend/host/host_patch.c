// backend/host/host_patch.c — nodes that do something else from the next replay on.
//
// Replays of an executable run one after the other, on threads of the library. So a patch is a
// message to the next one: the changes travel with its command, and it makes them before it runs.
// Replays in flight do not see them, and the patch does not wait.
//
//   changes   [place|run|bytes][arguments ...][place|run|bytes][arguments ...] ...
// SPDX-License-Identifier: Apache-2.0
#include "backend/host/host_patch.h"

#include <string.h>

#include "backend/host/host_team.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"

enum { ALIGNMENT = 16, FIRST_CAPACITY = 512 };

// One instruction's; the new arguments follow, none: they stay.
typedef struct change {
    void (*run)(void *);
    uint32_t place;
    uint32_t argument_bytes;
} change;
_Static_assert(sizeof(change) % ALIGNMENT == 0, "arguments behind it are aligned");

struct rondo__host_changes {
    size_t bytes;
    size_t capacity;
    _Alignas(16) unsigned char room[];
};

// ---- reading ----------------------------------------------------------------------------------

static bool has_arguments(rondo__node_kind kind) {
    return kind == RONDO__NODE_KERNEL || kind == RONDO__NODE_HOST;
}

rondo_status rondo__host_read_node(rondo__template *template_, size_t index,
                                   rondo__node_image *out_image) {
    *out_image = (rondo__node_image){.index = index, .is_enabled = true};
    RETURN_IF_ERROR(rondo__host_describe_node(template_, index, &out_image->info));
    const rondo__host_node *node = &((const rondo__host_template *)template_)->nodes[index];
    union {
        void (*function)(void *);
        void *address;
    } target = {.function = node->run};
    out_image->function = target.address;
    if (!has_arguments(node->kind)) {
        bool can_change = node->kind == RONDO__NODE_COPY || node->kind == RONDO__NODE_FILL;
        out_image->fixed = can_change ? NULL : "nodes of this kind have nothing that can change";
        return RONDO_STATUS_OK;
    }
    const rondo__node_image borrowed = {.index = index,
                                        .info = out_image->info,
                                        .is_enabled = true,
                                        .function = target.address,
                                        .attributes = node->attributes,
                                        .arguments = (unsigned char *)(uintptr_t)node->arguments,
                                        .argument_bytes = node->argument_bytes};
    return rondo__node_image_copy(&borrowed, out_image);
}

// ---- telling the next replay ------------------------------------------------------------------

static rondo_status reserve(rondo__host_executable *executable, size_t bytes) {
    rondo__host_changes *former = executable->changes;
    size_t used = former != NULL ? former->bytes : 0;
    if (former != NULL && former->capacity - used >= bytes) {
        return RONDO_STATUS_OK;
    }
    size_t capacity = former != NULL ? 2 * former->capacity : FIRST_CAPACITY;
    capacity = capacity < used + bytes ? used + bytes : capacity;
    rondo__host_changes *changes = rondo__malloc_aligned(sizeof *changes + capacity, ALIGNMENT);
    if (changes == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    changes->bytes = used;
    changes->capacity = capacity;
    if (used > 0) {
        memcpy(changes->room, former->room, used);
    }
    rondo__free(former);
    executable->changes = changes;
    return RONDO_STATUS_OK;
}

// Replays count what they run.
static void run_nothing(void *arguments) {
    (void)arguments;
    --rondo__host_executed_count;
}

static rondo_status add_change(rondo__host_executable *executable, const rondo__node_image *image,
                               const void *arguments, size_t argument_bytes) {
    size_t room = rondo__align_up(argument_bytes, (size_t)ALIGNMENT);
    RETURN_IF_ERROR(reserve(executable, sizeof(change) + room));
    union {
        void *address;
        void (*function)(void *);
    } target = {.address = image->function};
    const change added = {.run = image->is_enabled ? target.function : run_nothing,
                          .place = executable->program->places[image->index],
                          .argument_bytes = (uint32_t)argument_bytes};
    rondo__host_changes *changes = executable->changes;
    memcpy(changes->room + changes->bytes, &added, sizeof added);
    if (argument_bytes > 0) {
        memcpy(changes->room + changes->bytes + sizeof added, arguments, argument_bytes);
    }
    changes->bytes += sizeof added + room;
    return RONDO_STATUS_OK;
}

static rondo_status patch_node(rondo__host_executable *executable, const rondo__node_image *image) {
    const rondo__node_info *info = &image->info;
    if (info->kind == RONDO__NODE_COPY) {
        const rondo__host_copy_arguments copy = {
            .destination = (void *)(uintptr_t)info->destination,
            .source = info->source,
            .bytes = (size_t)info->byte_count,
            .kind = info->copy_kind};
        return add_change(executable, image, &copy, sizeof copy);
    }
    if (info->kind == RONDO__NODE_FILL) {
        const rondo__host_fill_arguments fill = {
            .destination = (void *)(uintptr_t)info->destination,
            .count = (size_t)info->width,
            .value = info->fill_value,
            .element_bytes = info->element_bytes};
        return add_change(executable, image, &fill, sizeof fill);
    }
    return add_change(executable, image, image->arguments, image->argument_bytes);
}

rondo_status rondo__host_patch_nodes(rondo__executable *executable, rondo__template *template_,
                                     rondo__node_image *const *images, size_t count,
                                     size_t *out_done) {
    rondo_status status = RONDO_STATUS_OK;
    (void)template_;
    for (*out_done = 0; *out_done < count && status == RONDO_STATUS_OK;) {
        status = patch_node((rondo__host_executable *)executable, images[*out_done]);
        *out_done += status == RONDO_STATUS_OK;
    }
    return status;
}

rondo_status rondo__host_enable_node(rondo__executable *executable, rondo__template *template_,
                                     const rondo__node_image *image) {
    (void)template_;
    return add_change((rondo__host_executable *)executable, image, NULL, 0);
}

void rondo__host_make_changes(rondo__host_program *program, rondo__host_changes *changes) {
    size_t bytes = changes != NULL ? changes->bytes : 0;
    for (size_t at = 0; at < bytes;) {
        change made;
        memcpy(&made, changes->room + at, sizeof made);
        at += sizeof made;
        rondo__host_instruction *instruction = &program->instructions[made.place];
        instruction->run = made.run;
        if (made.argument_bytes > 0) {
            memcpy(instruction->arguments, changes->room + at, made.argument_bytes);
        }
        at += rondo__align_up((size_t)made.argument_bytes, (size_t)ALIGNMENT);
    }
    rondo__free(changes);
}
