// program/gradient/gradient_user.c — gradients that users give for ops of their own.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/registered.h"
#include "program/builder/builder_parts.h"
#include "program/gradient/gradient_parts.h"
#include "rondo/training.h"

typedef struct user_gradient {
    const char *domain;  // the op's
    const char *name;
    rondo_gradient_function function;
    void *data;
    struct user_gradient *next;
} user_gradient;

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static user_gradient *g_first;

static const user_gradient *find(const char *domain, const char *name) {
    (void)pthread_mutex_lock(&g_lock);
    const user_gradient *at = g_first;
    while (at != NULL && (strcmp(at->domain, domain) != 0 || strcmp(at->name, name) != 0)) {
        at = at->next;
    }
    (void)pthread_mutex_unlock(&g_lock);
    return at;
}

rondo_status rondo_op_set_gradient(const char *domain, const char *name,
                                   rondo_gradient_function function, void *data) {
    int32_t first = 0;
    int32_t last = 0;
    if (domain == NULL || name == NULL || function == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL",
                          domain == NULL ? "domain"
                          : name == NULL ? "name"
                                         : "function");
    }
    const rondo__op_def *def = rondo__op_get_versions(domain, name, &first, &last)
                                   ? rondo__op_lookup(domain, name, last)
                                   : NULL;
    if (def == NULL || (def->flags & RONDO__OP_USER) == 0) {
        return RONDO_FAIL(INVALID, "no op %.48s.%.64s was registered", domain, name);
    }
    if (find(domain, name) != NULL) {
        return RONDO_FAIL(INVALID, "op %.48s.%.64s has a gradient already", domain, name);
    }
    user_gradient *added = rondo__calloc(1, sizeof *added);
    if (added == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *added = (user_gradient){def->domain, def->name, function, data, NULL};
    (void)pthread_mutex_lock(&g_lock);
    added->next = g_first;
    g_first = added;
    (void)pthread_mutex_unlock(&g_lock);
    return RONDO_STATUS_OK;
}

static const char *get_name(const rondo__gradient *g, int32_t value) {
    return value >= 0 ? g->program->values[value].name : "";
}

// The lists of names that the function sees; one piece of memory.
typedef struct name_lists {
    const char **inputs;
    const char **outputs;
    const char **changes;
    const char **made;
    bool *wants;
} name_lists;

// Names move with the values' array only as pointers: the texts stay in place.
static rondo_status make_lists(const rondo__gradient *g, const rondo__gradient_call *call,
                               name_lists *out_lists) {
    const size_t inputs = call->input_count;
    const size_t outputs = call->output_count;
    const char **names = rondo__calloc(2 * inputs + 2 * outputs + 1, sizeof *names);
    bool *wants = rondo__calloc(inputs + 1, sizeof *wants);
    *out_lists = (name_lists){names, NULL, NULL, NULL, wants};
    if (names == NULL || wants == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    out_lists->outputs = names + inputs;
    out_lists->changes = names + inputs + outputs;
    out_lists->made = names + inputs + 2 * outputs;
    for (size_t i = 0; i < inputs; ++i) {
        names[i] = get_name(g, call->inputs[i]);
        wants[i] = rondo__gradient_wants(g, call, i);
    }
    for (size_t i = 0; i < outputs; ++i) {
        out_lists->outputs[i] = get_name(g, call->outputs[i]);
        out_lists->changes[i] = get_name(g, call->changes[i]);
    }
    return RONDO_STATUS_OK;
}

static rondo_status ask(rondo__gradient *g, const rondo__gradient_call *call,
                        const user_gradient *user, const name_lists *lists) {
    rondo_builder builder = {.program = g->program};
    struct rondo_op_node op_node = {.op = &call->op};
    const rondo_gradient_node node = {.struct_size = sizeof node,
                                      .node = &op_node,
                                      .input_count = call->input_count,
                                      .inputs = lists->inputs,
                                      .wants = lists->wants,
                                      .output_count = call->output_count,
                                      .outputs = lists->outputs,
                                      .changes = lists->changes};
    RETURN_IF_ERROR(rondo__builder_add_domain(&builder, "", RONDO_OP_OPSET_WRITTEN));
    const uint64_t sequence = rondo_error_get_last()->sequence;
    rondo_status status = user->function(user->data, &node, &builder, lists->made);
    if (status != RONDO_STATUS_OK) {
        status = rondo__user_op_note(&call->op, status, sequence, "its gradient");
    }
    builder.program = NULL;
    rondo__builder_deinit(&builder);
    return status;
}

// The rule of an op of a user's.
static void rule_user(rondo__gradient *g, const rondo__gradient_call *call) {
    const user_gradient *user = find(call->op.def->domain, call->op.def->name);
    name_lists lists;
    rondo__gradient_settle(g);
    if (g->status != RONDO_STATUS_OK) {
        return;
    }
    g->status = make_lists(g, call, &lists);
    if (g->status == RONDO_STATUS_OK) {
        g->status = ask(g, call, user, &lists);
    }
    for (size_t i = 0; i < call->input_count && g->status == RONDO_STATUS_OK; ++i) {
        const char *name = lists.made[i];
        if (!lists.wants[i] || name == NULL || name[0] == '\0') {
            continue;
        }
        const int32_t change = rondo__program_find_value(g->program, name);
        if (change < 0) {
            g->status =
                RONDO_FAIL(INVALID, "the gradient of op %.64s names \"%.64s\", which no node makes",
                           call->op.def->name, name);
        }
        rondo__gradient_give(g, call, i, change);
    }
    rondo__free(lists.inputs);
    rondo__free(lists.wants);
}

rondo__gradient_rule rondo__gradient_find_user_rule(const rondo__op_def *def) {
    return find(def->domain, def->name) != NULL ? rule_user : NULL;
}
