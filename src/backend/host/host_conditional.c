// backend/host/host_conditional.c — conditional nodes: recording their bodies, and choosing.
//
// In a template a conditional node owns a template for each body. In a program it is one
// instruction, whose argument holds the bodies' programs and the address of the predicate:
//
//      instructions  [run|arguments] [choose|choice] [run|arguments]
//                                          |
//      choice        predicate, body 0, body 1 ...    each a program with instructions of its own
//
// So a turn of a while costs one comparison, and its body what the same nodes cost elsewhere. A
// body with parallel branches is a job of its own (host_team.c), whose owner is whoever runs the
// node.
//
// A body is recorded by a capture of its own, whose template moves into the node when it ends. The
// capture forbids nothing to other calls (it is relaxed): what the outer capture forbids breaks
// that one.
#include "backend/host/host_backend.h"
#include "base/memory.h"

// The node while it is recorded.
typedef struct open_conditional {
    rondo__conditional head;
    rondo__host_capture *parent;     // a reference is held
    rondo__host_branches *branches;  // lives while parent->recorded does
} open_conditional;

// ---- templates --------------------------------------------------------------------------------

static rondo__host_branches *create_branches(rondo_scope_kind kind, const void *predicate,
                                             uint32_t count) {
    rondo__host_branches *branches =
        rondo__calloc(1, sizeof *branches + count * sizeof branches->bodies[0]);
    if (branches != NULL) {
        branches->kind = kind;
        branches->predicate = predicate;
        branches->count = count;
    }
    return branches;
}

void rondo__host_branches_destroy(rondo__host_branches *branches) {
    if (branches == NULL) {
        return;
    }
    for (uint32_t i = 0; i < branches->count; ++i) {
        if (branches->bodies[i] != NULL) {
            rondo__host_destroy_template(&branches->bodies[i]->head);
        }
    }
    rondo__free(branches);
}

const char *rondo__host_branches_get_name(const rondo__host_branches *branches) {
    static const char *const names[] = {
        [RONDO_SCOPE_IF] = "if",
        [RONDO_SCOPE_IF_ELSE] = "if_else",
        [RONDO_SCOPE_SWITCH] = "switch",
        [RONDO_SCOPE_WHILE] = "while",
    };
    return names[branches->kind];
}

rondo_status rondo__host_get_body(rondo__template *template_, size_t index, uint32_t branch,
                                  rondo__template **out_body) {
    const rondo__host_template *recorded = (const rondo__host_template *)template_;
    const rondo__host_branches *branches =
        index < recorded->node_count ? recorded->nodes[index].branches : NULL;
    bool is_there =
        branches != NULL && branch < branches->count && branches->bodies[branch] != NULL;
    *out_body = is_there ? &branches->bodies[branch]->head : NULL;
    return RONDO_STATUS_OK;
}

// ---- running ----------------------------------------------------------------------------------

rondo_status rondo__host_choice_create(const rondo__host_branches *branches,
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
            rondo__host_choice_destroy(choice);
            return status;
        }
    }
    *out_choice = choice;
    return RONDO_STATUS_OK;
}

void rondo__host_choice_destroy(rondo__host_choice *choice) {
    for (uint32_t i = 0; i < choice->count; ++i) {
        rondo__host_program_release(choice->bodies[i]);
    }
    rondo__free(choice);
}

static void run_branch(const rondo__host_choice *choice, uint32_t branch) {
    if (branch < choice->count && choice->bodies[branch] != NULL) {
        rondo__host_program_run(choice->bodies[branch]);
    }
}

void rondo__host_choice_run(void *data) {
    const rondo__host_choice *choice = data;
    // Written by work that came before, perhaps on another thread: whoever handed this node over
    // made that visible. Read anew each time.
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

// ---- recording --------------------------------------------------------------------------------

rondo_status rondo__host_refuse_in_body(rondo__host_stream *stream, const char *call,
                                        const char *what) {
    rondo__host_device *device = rondo__host_device_of(stream->head.device);
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&device->capture_lock);
    rondo__host_capture *capture = atomic_load(&stream->capture);
    if (capture != NULL && capture->is_body) {
        status = RONDO_FAIL_AS(call, UNSUPPORTED,
                               "there are no %s inside conditional bodies; do this before or "
                               "after the scope",
                               what);
    }
    pthread_mutex_unlock(&device->capture_lock);
    return status;
}

rondo_status rondo__host_check_feature(rondo_device *device, rondo_feature feature) {
    (void)device;
    (void)feature;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_add_conditional(rondo_stream *parent_, rondo_scope_kind kind,
                                         const void *predicate, uint32_t branch_count,
                                         rondo__conditional **out_conditional) {
    rondo__host_stream *parent = (rondo__host_stream *)parent_;
    rondo__host_device *device = rondo__host_device_of(parent_->device);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    open_conditional *open = rondo__calloc(1, sizeof *open);
    rondo__host_branches *branches = create_branches(kind, predicate, branch_count);
    if (open == NULL || branches == NULL) {
        goto free_both;
    }
    rondo__host_node node = {.kind = RONDO__NODE_CONDITIONAL, .name = "", .branches = branches};
    bool was_recorded = false;
    status = rondo__host_record_node(parent, &node, &was_recorded);
    if (status == RONDO_STATUS_OK && !was_recorded) {
        status = RONDO_FAIL_AS("rondo_scope_begin", STATE, "stream %u does not record",
                               (unsigned)parent_->number);
    }
    if (status != RONDO_STATUS_OK) {
        goto free_both;
    }
    open->head = (rondo__conditional){.device = parent_->device,
                                      .kind = kind,
                                      .predicate = predicate,
                                      .branch_count = branch_count};
    open->branches = branches;
    pthread_mutex_lock(&device->capture_lock);
    open->parent = atomic_load(&parent->capture);
    ++open->parent->reference_count;
    open->head.last_node = parent->frontier[0];
    pthread_mutex_unlock(&device->capture_lock);
    *out_conditional = &open->head;
    return RONDO_STATUS_OK;

free_both:
    rondo__free(branches);
    rondo__free(open);
    return status;
}

rondo_status rondo__host_begin_body(rondo__conditional *conditional, uint32_t branch,
                                    rondo_stream *body, rondo__node_handle *out_node,
                                    uint32_t *out_index) {
    rondo__host_device *device = rondo__host_device_of(conditional->device);
    RETURN_IF_ERROR(rondo__host_begin_capture(body, RONDO_CAPTURE_RELAXED, NULL));
    pthread_mutex_lock(&device->capture_lock);
    atomic_load(&((rondo__host_stream *)body)->capture)->is_body = true;
    pthread_mutex_unlock(&device->capture_lock);
    *out_node = conditional->last_node;
    *out_index = branch;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_end_body(rondo__conditional *conditional, uint32_t branch,
                                  rondo_stream *body) {
    open_conditional *open = (open_conditional *)conditional;
    rondo__host_device *device = rondo__host_device_of(conditional->device);
    rondo__template *recorded = NULL;
    RETURN_IF_ERROR(rondo__host_end_capture(body, &recorded));
    pthread_mutex_lock(&device->capture_lock);
    bool is_wanted = open->parent->recorded != NULL;
    if (is_wanted) {
        open->branches->bodies[branch] = (rondo__host_template *)recorded;
    }
    pthread_mutex_unlock(&device->capture_lock);
    if (!is_wanted) {
        rondo__host_destroy_template(recorded);
    }
    return RONDO_STATUS_OK;
}

void rondo__host_release_conditional(rondo__conditional *conditional) {
    open_conditional *open = (open_conditional *)conditional;
    rondo__host_device *device = rondo__host_device_of(conditional->device);
    pthread_mutex_lock(&device->capture_lock);
    rondo__host_capture_unreference(open->parent);
    pthread_mutex_unlock(&device->capture_lock);
    rondo__free(open);
}
