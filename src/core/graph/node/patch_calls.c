// graph/node/patch_calls.c — the public calls that patch nodes: checked, applied, taken back.
//
// A call has three stages: every patch is checked and its node's image made; the memory they name
// is looked at; the executable is changed. Where the last fails half way, it is changed back.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "backend/check.h"
#include "base/checked.h"
#include "base/log/hook.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "device/work.h"
#include "graph/executable.h"
#include "graph/node/patch.h"
#include "graph/template.h"
#include "graph/tracked.h"

static const char patch_call[] = "rondo_graph_patch";

#define FAIL(status, ...) RONDO_FAIL_AS(patch_call, status, __VA_ARGS__)

// A patch that changes something: the node's own image, and what it did.
typedef struct change {
    rondo__node_image *image;
    rondo__node_image former;
    bool changes_work;
    bool changes_toggle;
} change;

typedef struct patching {
    rondo_graph *graph;
    change *changes;
    size_t count;
    rondo__node_image **images;  // room for those that are written
    change few_changes[4];       // `changes` and `images`, where they are no more
    rondo__node_image *few_images[4];
} patching;

// ---- checks -----------------------------------------------------------------------------------

static rondo_status check_graph(rondo_graph *graph) {
    RETURN_IF_ERROR(rondo__check_pointer(graph, patch_call, "graph"));
    if (graph->state != RONDO__GRAPH_READY && graph->state != RONDO__GRAPH_RECORDED) {
        return rondo__graph_fail_not_ready(graph, patch_call);
    }
    RETURN_IF_ERROR(rondo__check_alive(graph->device, patch_call));
    return graph->state == RONDO__GRAPH_RECORDED ? rondo__graph_instantiate(graph)
                                                 : RONDO_STATUS_OK;
}

static rondo_status find_image(rondo_graph *graph, rondo_node node, rondo__node_image **out_image) {
    size_t index = rondo__tracked_get_index(graph->tracked, node);
    if (index == SIZE_MAX) {
        return FAIL(STATE,
                    "the handle is none of what graph \"%s\" recorded last; handles end when the "
                    "graph is reset, updated or instantiated again, and belong to one graph",
                    graph->label);
    }
    return rondo__graph_get_image(graph, index, out_image);
}

// A fixed node may still be switched off and on, and some fixed nodes may be patched in part.
static rondo_status check_fixed(const rondo_graph *graph, const rondo__node_image *image,
                                const rondo_patch *patch) {
    bool may_work = patch->work == NULL || image->has_rows;
    bool may_switch = patch->toggle == RONDO_TOGGLE_KEEP || image->is_switchable;
    bool is_nothing = patch->work == NULL && patch->toggle == RONDO_TOGGLE_KEEP;
    return image->fixed == NULL || (may_work && may_switch && !is_nothing)
               ? RONDO_STATUS_OK
               : FAIL(UNSUPPORTED, "node %zu of graph \"%s\" cannot be patched: %s", image->index,
                      graph->label, image->fixed);
}

static const char *get_name(const rondo__node_image *image) {
    return image->info.name[0] != '\0' ? image->info.name : "without a name";
}

// A struct may have padding behind the last parameter, which the driver does not count.
static rondo_status check_bytes(const rondo__node_image *image, size_t bytes) {
    size_t most = rondo__align_up(image->argument_bytes, (size_t)16);
    if (image->is_opaque) {
        return FAIL(UNSUPPORTED, "the driver does not show the arguments of kernel %s",
                    get_name(image));
    }
    bool fits = image->parameter_count > 0 ? bytes >= image->argument_bytes && bytes <= most
                                           : bytes == image->argument_bytes;
    return fits ? RONDO_STATUS_OK
                : FAIL(INVALID, "node %zu (%s) was recorded with %zu bytes of arguments, not %zu",
                       image->index, get_name(image), image->argument_bytes, bytes);
}

// ---- what a node will do ----------------------------------------------------------------------

// The clusters of the recording stay, so the new grid must be whole ones, too.
static rondo_status check_cluster(const rondo__node_image *image, const rondo_launch *launch) {
    const uint32_t *cluster = image->attributes.cluster;
    for (int i = 0; i < 3; ++i) {
        if (cluster[i] > 1 && launch->grid[i] % cluster[i] != 0) {
            return FAIL(INVALID,
                        "node %zu (%s) was recorded with clusters of %u x %u x %u blocks, which do "
                        "not divide a grid of %u x %u x %u",
                        image->index, get_name(image), (unsigned)cluster[0], (unsigned)cluster[1],
                        (unsigned)cluster[2], (unsigned)launch->grid[0], (unsigned)launch->grid[1],
                        (unsigned)launch->grid[2]);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status take_launch(rondo__node_image *image, const rondo_launch *launch) {
    rondo_launch whole;
    RETURN_IF_ERROR(rondo__check_pointer(launch, patch_call, "work->launch"));
    RETURN_IF_ERROR(rondo__work_check_launch(&launch, &whole, patch_call));
    RETURN_IF_ERROR(check_bytes(image, launch->argument_bytes));
    RETURN_IF_ERROR(check_cluster(image, launch));
    memcpy(image->info.grid, launch->grid, sizeof image->info.grid);
    memcpy(image->info.block, launch->block, sizeof image->info.block);
    image->info.shared_bytes = launch->shared_bytes;
    if (image->function != launch->function) {
        image->function = launch->function;
        image->kernel = NULL;
        image->parameter_count = 0;  // another kernel's lie elsewhere: all go in one piece
    }
    if (image->argument_bytes > 0) {
        memcpy(image->arguments, launch->arguments, image->argument_bytes);
    }
    return RONDO_STATUS_OK;
}

static rondo_status take_host(rondo__node_image *image, const rondo_work *work) {
    union {
        rondo_host_function function;
        void *address;
    } target = {.function = work->function};
    RETURN_IF_ERROR(rondo__check_pointer(target.address, patch_call, "work->function"));
    RETURN_IF_ERROR(rondo__work_check_arguments(work->arguments, work->argument_bytes, patch_call));
    RETURN_IF_ERROR(check_bytes(image, work->argument_bytes));
    image->function = target.address;
    if (image->argument_bytes > 0) {
        memcpy(image->arguments, work->arguments, image->argument_bytes);
    }
    return RONDO_STATUS_OK;
}

static rondo_status take_copy(rondo__node_image *image, const rondo_work *work) {
    rondo__node_info *info = &image->info;
    RETURN_IF_ERROR(rondo__work_check_copy(work->destination, work->source, work->byte_count,
                                           work->copy_kind, patch_call));
    if (work->copy_kind != info->copy_kind) {
        return FAIL(INVALID,
                    "node %zu copies in another direction, which cannot change; record one copy "
                    "for each and switch them off and on",
                    image->index);
    }
    if (work->byte_count == 0) {
        return FAIL(INVALID, "node %zu would copy nothing; switch it off instead", image->index);
    }
    info->destination = work->destination;
    info->source = work->source;
    info->byte_count = work->byte_count;
    info->width = work->byte_count;
    return RONDO_STATUS_OK;
}

static rondo_status take_fill(rondo__node_image *image, const rondo_work *work) {
    rondo__node_info *info = &image->info;
    RETURN_IF_ERROR(rondo__work_check_fill(work->destination, work->element_bytes,
                                           work->element_count, patch_call));
    if (work->element_count == 0) {
        return FAIL(INVALID, "node %zu would fill nothing; switch it off instead", image->index);
    }
    if (image->has_rows && (work->element_bytes != info->element_bytes ||
                            work->element_count != info->width * info->height)) {
        return FAIL(INVALID,
                    "node %zu fills %zu rows of %zu elements of %u bytes; only its value and "
                    "destination can change",
                    image->index, (size_t)info->height, (size_t)info->width,
                    (unsigned)info->element_bytes);
    }
    info->destination = work->destination;
    info->fill_value = rondo__cut_to_element(work->fill_value, work->element_bytes);
    if (image->has_rows) {
        return RONDO_STATUS_OK;
    }
    info->element_bytes = work->element_bytes;
    info->width = work->element_count;
    info->byte_count = (uint64_t)work->element_count * work->element_bytes;
    return RONDO_STATUS_OK;
}

static rondo_status take_whole_work(rondo__node_image *image, const rondo_work *work) {
    if ((int32_t)work->kind != (int32_t)image->info.kind) {
        bool is_known = work->kind >= 0 && work->kind < RONDO__NODE_KIND_COUNT;
        return FAIL(
            INVALID,
            "the work is of kind %s, node %zu (%s) of kind %s; a patch keeps the kind, a new "
            "recording changes it",
            is_known ? rondo__node_kind_get_name((rondo__node_kind)work->kind) : "unknown",
            image->index, get_name(image), rondo__node_kind_get_name(image->info.kind));
    }
    switch (image->info.kind) {
        case RONDO__NODE_KERNEL:
            return take_launch(image, work->launch);
        case RONDO__NODE_HOST:
            return take_host(image, work);
        case RONDO__NODE_COPY:
            return take_copy(image, work);
        default:
            return take_fill(image, work);
    }
}

static rondo_status take_work(rondo__node_image *image, const rondo_work *given) {
    if (given->struct_size == sizeof *given) {
        return take_whole_work(image, given);
    }
    rondo_work work = {.struct_size = sizeof work};
    RETURN_IF_ERROR(rondo__read_options(given, &work, sizeof work, patch_call, "rondo_work"));
    return take_whole_work(image, &work);
}

static rondo_status take_toggle(rondo__node_image *image, rondo_toggle toggle) {
    if (toggle < RONDO_TOGGLE_KEEP || toggle > RONDO_TOGGLE_DISABLE) {
        return FAIL(INVALID, "%d is not a rondo_toggle", (int)toggle);
    }
    if (toggle != RONDO_TOGGLE_KEEP && image->info.kind == RONDO__NODE_HOST) {
        return FAIL(UNSUPPORTED,
                    "node %zu (%s) is a host function, which cannot be switched off; let it "
                    "return at once",
                    image->index, get_name(image));
    }
    if (toggle != RONDO_TOGGLE_KEEP) {
        image->is_enabled = toggle == RONDO_TOGGLE_ENABLE;
    }
    return RONDO_STATUS_OK;
}

static bool does_the_same(const rondo__node_image *a, const rondo__node_image *b) {
    const rondo__node_info *x = &a->info;
    const rondo__node_info *y = &b->info;
    return a->function == b->function && memcmp(x->grid, y->grid, sizeof x->grid) == 0 &&
           memcmp(x->block, y->block, sizeof x->block) == 0 && x->shared_bytes == y->shared_bytes &&
           x->destination == y->destination && x->source == y->source &&
           x->byte_count == y->byte_count && x->fill_value == y->fill_value &&
           x->element_bytes == y->element_bytes && x->width == y->width &&
           (a->argument_bytes == 0 || memcmp(a->arguments, b->arguments, a->argument_bytes) == 0);
}

// ---- a call -----------------------------------------------------------------------------------

// The images are what they were before the call.
static void restore_images(patching *p) {
    for (size_t i = p->count; i-- > 0;) {
        const change *c = &p->changes[i];
        unsigned char *arguments = c->image->arguments;
        *c->image = c->former;
        c->image->arguments = arguments;
        if (c->image->argument_bytes > 0) {
            memcpy(arguments, c->image->former_arguments, c->image->argument_bytes);
        }
    }
}

static rondo_status begin_patching(patching *p, rondo_graph *graph, size_t count) {
    const bool is_few = count <= sizeof p->few_changes / sizeof p->few_changes[0];
    p->graph = graph;
    p->count = 0;
    p->changes = is_few ? p->few_changes : rondo__calloc(count, sizeof *p->changes);
    p->images = is_few ? p->few_images : rondo__calloc(count, sizeof(rondo__node_image *));
    return p->changes != NULL && p->images != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

static void end_patching(patching *p) {
    if (p->changes != p->few_changes) {
        rondo__free(p->changes);
        rondo__free(p->images);
    }
}

static rondo_status refuse_twice(const rondo_graph *graph, rondo__node_image *image) {
    if (image->last_call == graph->patch_call_count) {
        return FAIL(INVALID, "node %zu (%s) is patched twice in one call", image->index,
                    get_name(image));
    }
    image->last_call = graph->patch_call_count;
    return RONDO_STATUS_OK;
}

// First stage: the image of one node says what it will do.
static rondo_status prepare(patching *p, const rondo_patch *patch) {
    rondo__node_image *image;
    RETURN_IF_ERROR(find_image(p->graph, patch->node, &image));
    RETURN_IF_ERROR(check_fixed(p->graph, image, patch));
    RETURN_IF_ERROR(refuse_twice(p->graph, image));
    change *c = &p->changes[p->count];
    RETURN_IF_ERROR(rondo__node_image_reserve_former(image));
    rondo__node_image_save(image, &c->former);
    c->image = image;
    ++p->count;
    if (patch->work != NULL) {
        RETURN_IF_ERROR(take_work(image, patch->work));
        image->named_at = p->graph->patch_call_count;
    }
    RETURN_IF_ERROR(take_toggle(image, patch->toggle));
    c->changes_work = !does_the_same(image, &c->former);
    c->changes_toggle = image->is_enabled != c->former.is_enabled;
    return RONDO_STATUS_OK;
}

// Second: the memory that it names.
static rondo_status admit(patching *p) {
    bool wants_addresses = false;
    RETURN_IF_ERROR(rondo__graph_begin_patches(p->graph, &wants_addresses));
    for (size_t i = 0; i < p->count; ++i) {
        const change *c = &p->changes[i];
        const bool is_used = c->changes_work || (c->changes_toggle && c->image->is_enabled);
        if (is_used && p->graph->checks_addresses) {
            RETURN_IF_ERROR(rondo__graph_refuse_gone(p->graph, c->image, patch_call));
        }
        if (c->changes_work && c->image->info.kind == RONDO__NODE_COPY) {
            RETURN_IF_ERROR(rondo__graph_admit_copy(p->graph, c->image, patch_call));
        }
        if (c->changes_work && wants_addresses) {
            RETURN_IF_ERROR(rondo__graph_admit_addresses(p->graph, c->image, &c->former));
        }
    }
    return RONDO_STATUS_OK;
}

// Third: all work in one call, then what is switched.
static rondo_status apply(const patching *p) {
    const rondo_graph *graph = p->graph;
    const rondo__backend *backend = graph->device->backend;
    rondo_status status = RONDO_STATUS_OK;
    size_t count = 0;
    for (size_t i = 0; i < p->count; ++i) {
        if (p->changes[i].changes_work) {
            p->images[count++] = p->changes[i].image;
        }
    }
    if (count > 0) {
        size_t done;
        status = backend->patch_nodes(graph->executable, graph->recorded, p->images, count, &done);
    }
    for (size_t i = 0; i < p->count && status == RONDO_STATUS_OK; ++i) {
        if (p->changes[i].changes_toggle) {
            status = backend->enable_node(graph->executable, graph->recorded, p->changes[i].image);
        }
    }
    return status;
}

// Changes the executable back, in the order in which it was changed: what fails now, because it
// could not be changed either, comes last.
static void take_back(patching *p) {
    rondo_error saved;
    rondo__error_save(&saved);
    restore_images(p);
    (void)apply(p);
    rondo__error_restore(&saved);
}

static rondo_status patch_nodes(rondo_graph *graph, const rondo_patch *patches, size_t count) {
    patching p;
    rondo_status status = begin_patching(&p, graph, count);
    ++graph->patch_call_count;
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        status = prepare(&p, &patches[i]);
    }
    if (status == RONDO_STATUS_OK) {
        status = admit(&p);
    }
    if (status != RONDO_STATUS_OK) {
        restore_images(&p);
    } else {
        status = apply(&p);
        if (status != RONDO_STATUS_OK) {
            take_back(&p);
        }
        rondo__graph_watch_anew(graph);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__error_set_op(graph->label);
    }
    end_patching(&p);
    return status;
}

rondo_status rondo_graph_patch(rondo_graph *graph, const rondo_patch *patches, size_t count) {
    RETURN_IF_ERROR(check_graph(graph));
    if (count == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__check_pointer(patches, __func__, "patches"));
    const rondo__hook_scope scope = rondo__hook_enter(RONDO__SPAN_PATCH, "patch nodes");
    const rondo_status status = patch_nodes(graph, patches, count);
    rondo__hook_leave(&scope);
    return status;
}

// Whether the node, which was patched before, runs exactly that launch already. Launches that are
// not plain take the long way, which refuses them by name, and so do launches of checked graphs.
static bool runs_already(const rondo_graph *graph, rondo_node node, const rondo_work *work) {
    if (graph->images == NULL || graph->checks_addresses || work->struct_size != sizeof *work ||
        work->kind != RONDO_NODE_KERNEL || work->launch == NULL ||
        work->launch->struct_size != sizeof *work->launch || work->launch->flags != 0 ||
        work->launch->cluster[0] != 0 || work->launch->arguments == NULL) {
        return false;
    }
    size_t index = rondo__tracked_get_index(graph->tracked, node);
    const rondo__node_image *image = index < graph->image_count ? graph->images[index] : NULL;
    const rondo_launch *launch = work->launch;
    return image != NULL && image->info.kind == RONDO__NODE_KERNEL &&
           image->function == launch->function &&
           memcmp(image->info.grid, launch->grid, sizeof launch->grid) == 0 &&
           memcmp(image->info.block, launch->block, sizeof launch->block) == 0 &&
           image->info.shared_bytes == launch->shared_bytes &&
           image->argument_bytes == launch->argument_bytes && image->argument_bytes > 0 &&
           memcmp(image->arguments, launch->arguments, image->argument_bytes) == 0;
}

rondo_status rondo_graph_patch_node(rondo_graph *graph, rondo_node node, const rondo_work *work) {
    RETURN_IF_ERROR(rondo__check_pointer(work, __func__, "work"));
    if (graph != NULL && graph->state == RONDO__GRAPH_READY && runs_already(graph, node, work)) {
        return RONDO_STATUS_OK;
    }
    const rondo_patch patch = {.node = node, .work = work};
    return rondo_graph_patch(graph, &patch, 1);
}
