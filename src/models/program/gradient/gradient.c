// program/gradient/gradient.c — the way back. See gradient.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/gradient/gradient.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/draws.h"
#include "program/edit.h"
#include "program/gradient/gradient_parts.h"
#include "program/node_pattern.h"
#include "program/shapes/specialise.h"

enum {
    FOLD_COUNT_MAX = 1024,  // elements of what is computed ahead: shapes, axes
    EXPANSION_DEPTH_MAX = 16,
    PATH_MAX_OPS = 8,
};

// ---- what is known ------------------------------------------------------------------------------

static rondo_status reserve_values(rondo__gradient *g) {
    const size_t count = g->program->value_count;
    if (count <= g->value_count) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(g->values, g->value_capacity, count));
    for (; g->value_count < count; ++g->value_count) {
        rondo__gradient_value *v = &g->values[g->value_count];
        *v = (rondo__gradient_value){.gradient = RONDO__VALUE_NONE, .again = RONDO__VALUE_NONE};
        rondo__program_get_info(g->program, (int32_t)g->value_count, &v->info);
        v->info.constant = NULL;
    }
    return RONDO_STATUS_OK;
}

// Fills *out_info; a constant's pointer is good until values are added.
static void get_info(const rondo__gradient *g, int32_t value, rondo__tensor_info *out_info) {
    *out_info = (rondo__tensor_info){0};
    if (value < 0) {
        return;
    }
    if (rondo__value_is_constant(&g->program->values[value])) {
        rondo__program_get_info(g->program, value, out_info);
        return;
    }
    *out_info = g->values[value].info;
    out_info->constant = g->values[value].folded;
}

static bool is_small(const rondo__tensor_info *info) {
    return info->is_shape_known && rondo_shape_get_count(&info->shape) <= FOLD_COUNT_MAX &&
           rondo_dtype_get_bytes(info->dtype) != 0 && info->dtype != RONDO_DTYPE_STRING;
}

// Computes a node of small tensors whose inputs are known.
static rondo_status fold(rondo__gradient *g, const rondo__node *node,
                         const rondo__tensor_info *inputs, const rondo__tensor_info *outputs) {
    enum { INPUTS_MAX = 8 };
    const rondo__op_def *def = node->op.def;
    rondo_tensor shells[INPUTS_MAX];
    const rondo_tensor *tensors[INPUTS_MAX] = {NULL};
    if (node->output_count != 1 || node->input_count > INPUTS_MAX || def->compute == NULL ||
        (def->flags & (RONDO__OP_CONTROL | RONDO__OP_IMPURE)) != 0 || node->outputs[0] < 0 ||
        (outputs[0].is_shape_known && !is_small(&outputs[0])) ||
        rondo__op_draws(&node->op, inputs, node->input_count)) {
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < node->input_count; ++i) {
        shells[i] = (rondo_tensor){.dtype = inputs[i].dtype, .shape = inputs[i].shape};
        const bool reads_shape = (def->flags & RONDO__OP_SHAPE_ONLY) != 0;
        tensors[i] = inputs[i].constant != NULL                ? inputs[i].constant
                     : reads_shape && inputs[i].is_shape_known ? &shells[i]
                                                               : NULL;
        if (node->inputs[i] >= 0 &&
            (tensors[i] == NULL || (!reads_shape && !is_small(&inputs[i])))) {
            return RONDO_STATUS_OK;
        }
    }
    rondo_tensor *result = rondo__calloc(1, sizeof *result);
    if (result == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__compute compute = {.op = &node->op,
                              .input_count = node->input_count,
                              .output_count = 1,
                              .inputs = tensors,
                              .outputs = result};
    const rondo_status status = rondo__op_compute(&compute);
    if (status != RONDO_STATUS_OK) {
        rondo__free(result);
        return status;
    }
    rondo__gradient_value *v = &g->values[node->outputs[0]];
    v->folded = result;
    v->info = (rondo__tensor_info){
        .dtype = result->dtype, .is_shape_known = true, .shape = result->shape};
    return RONDO_STATUS_OK;
}

// Types of what a control op makes, as far as its bodies declare them.
static void infer_control(const rondo__node *node, rondo__tensor_info *outputs) {
    const rondo_program *body = NULL;
    for (size_t a = 0; a < node->op.attribute_count && body == NULL; ++a) {
        body = node->op.attributes[a].body;
    }
    const size_t skipped = rondo__node_is(node, RONDO__OP_Loop) ? 1 : 0;
    for (size_t i = 0; body != NULL && i < node->output_count; ++i) {
        if (i + skipped < body->output_count) {
            const rondo__value *v = &body->values[body->outputs[i + skipped]];
            outputs[i].dtype = rondo__value_is_constant(v) ? v->constant.dtype : v->dtype;
        }
    }
}

static rondo_status infer_node(rondo__gradient *g, const rondo__node *node,
                               rondo__tensor_info *inputs, rondo__tensor_info *outputs) {
    bool are_dtypes_known = true;
    bool all_known = true;
    for (size_t i = 0; i < node->input_count; ++i) {
        get_info(g, node->inputs[i], &inputs[i]);
        if (node->inputs[i] >= 0) {
            are_dtypes_known = are_dtypes_known && inputs[i].dtype != RONDO_DTYPE_NONE;
            all_known = all_known && inputs[i].is_shape_known;
        }
    }
    rondo__infer infer = {.op = &node->op,
                          .input_count = node->input_count,
                          .output_count = node->output_count,
                          .inputs = inputs,
                          .outputs = outputs};
    if ((node->op.def->flags & RONDO__OP_CONTROL) != 0) {
        infer_control(node, outputs);
        return RONDO_STATUS_OK;
    }
    if (!are_dtypes_known) {
        return RONDO_STATUS_OK;
    }
    return all_known ? rondo__op_infer(&infer) : rondo__op_infer_partial(&infer);
}

static rondo_status visit_node(rondo__gradient *g, size_t n) {
    const rondo__node *node = &g->program->nodes[n];
    rondo__tensor_info *infos =
        rondo__calloc(node->input_count + node->output_count + 1, sizeof *infos);
    if (infos == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__tensor_info *outputs = infos + node->input_count;
    rondo_status status = infer_node(g, node, infos, outputs);
    for (size_t i = 0; i < node->output_count && status == RONDO_STATUS_OK; ++i) {
        if (node->outputs[i] >= 0) {
            rondo__tensor_info *info = &g->values[node->outputs[i]].info;
            const rondo_dtype declared = info->dtype;
            if (rondo__info_has_rank(&outputs[i]) || !rondo__info_has_rank(info)) {
                *info = outputs[i];
            }
            info->dtype = outputs[i].dtype != RONDO_DTYPE_NONE ? outputs[i].dtype : declared;
            info->constant = NULL;
        }
    }
    if (status == RONDO_STATUS_OK) {
        status = fold(g, node, infos, outputs);
    }
    rondo__free(infos);
    if (status != RONDO_STATUS_OK) {
        rondo__node_blame(&g->program->nodes[n]);
    }
    return status;
}

void rondo__gradient_settle(rondo__gradient *g) {
    if (g->status == RONDO_STATUS_OK) {
        g->status = reserve_values(g);
    }
    while (g->status == RONDO_STATUS_OK && g->inferred_count < g->program->node_count) {
        g->status = visit_node(g, g->inferred_count);
        g->inferred_count += 1;
    }
}

const rondo__tensor_info *rondo__gradient_info(rondo__gradient *g, int32_t value) {
    static _Thread_local rondo__tensor_info info;
    info = (rondo__tensor_info){0};
    rondo__gradient_settle(g);
    if (g->status == RONDO_STATUS_OK) {
        get_info(g, value, &info);
    }
    return &info;
}

// ---- what depends on what -----------------------------------------------------------------------

static bool is_real(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_NONE || dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_BF16 ||
           dtype == RONDO_DTYPE_F32 || dtype == RONDO_DTYPE_F64;
}

static bool is_kept(const rondo__gradient *g, int32_t value) {
    for (size_t i = 0; i < g->request->kept_count; ++i) {
        if (g->request->kept[i] == value) {
            return true;
        }
    }
    return false;
}

void rondo__gradient_mark(rondo__gradient *g, size_t begin, size_t end) {
    rondo__gradient_settle(g);
    for (size_t n = begin; n < end && g->status == RONDO_STATUS_OK; ++n) {
        const rondo__node *node = &g->program->nodes[n];
        bool is_zero = false;
        bool depends = false;
        for (size_t i = 0; i < node->input_count; ++i) {
            depends = depends || (node->inputs[i] >= 0 && g->values[node->inputs[i]].depends);
        }
        (void)rondo__gradient_find_rule(node->op.def, &is_zero);
        for (size_t i = 0; depends && !is_zero && i < node->output_count; ++i) {
            const int32_t value = node->outputs[i];
            if (value >= 0 && is_real(g->values[value].info.dtype) && !is_kept(g, value)) {
                g->values[value].depends = true;
            }
        }
    }
}

// ---- failures -----------------------------------------------------------------------------------

// The ops from the node to y, "Mul, ReduceMean": along first users that depend.
static void write_path(const rondo__gradient *g, size_t from, char *buffer, size_t buffer_bytes) {
    size_t used = 0;
    int32_t value = RONDO__VALUE_NONE;
    buffer[0] = '\0';
    for (size_t n = from, ops = 0; n < g->program->node_count && ops < PATH_MAX_OPS; ++n) {
        const rondo__node *node = &g->program->nodes[n];
        bool reads = n == from;
        for (size_t i = 0; i < node->input_count; ++i) {
            reads = reads || (value >= 0 && node->inputs[i] == value);
        }
        if (!reads) {
            continue;
        }
        const int written = snprintf(buffer + used, buffer_bytes - used, "%s%.24s",
                                     used > 0 ? " -> " : "", node->op.def->name);
        used += written > 0 ? (size_t)written : 0;
        if (used >= buffer_bytes) {
            return;
        }
        ops += 1;
        for (size_t i = 0; i < node->output_count; ++i) {
            const int32_t made = node->outputs[i];
            if (made == g->request->y) {
                (void)snprintf(buffer + used, buffer_bytes - used, " -> \"%.40s\"",
                               g->program->values[made].name);
                return;
            }
            if (made >= 0 && g->values[made].gradient >= 0) {
                value = made;
            }
        }
    }
}

static rondo_status fail_node(rondo__gradient *g, size_t n, const char *detail) {
    const rondo__node *node = &g->program->nodes[n];
    char path[240];
    char domain[64] = "";
    write_path(g, n, path, sizeof path);
    if (node->op.def->domain[0] != '\0') {
        (void)snprintf(domain, sizeof domain, "%.60s.", node->op.def->domain);
    }
    const rondo_status status = RONDO_FAIL(
        UNSUPPORTED, "no gradient for op %s%s%s%s, node \"%.64s\" (%s)", domain, node->op.def->name,
        detail[0] != '\0' ? " with " : "", detail, node->op.name, path);
    rondo__error_set_op(node->op.name);
    return status;
}

void rondo__gradient_refuse(rondo__gradient *g, const rondo__gradient_call *call,
                            const char *detail) {
    if (g->status == RONDO_STATUS_OK) {
        g->status = fail_node(g, call->index, detail);
    }
}

// ---- what runs once more ------------------------------------------------------------------------

static bool is_marked(const rondo__gradient *g, const rondo__node *node) {
    if ((node->op.def->flags & (RONDO__OP_RANDOM | RONDO__OP_IMPURE | RONDO__OP_CONTROL)) != 0) {
        return false;
    }
    for (size_t i = 0; i < g->request->recompute_count; ++i) {
        if (rondo__node_matches(node, g->request->recompute[i])) {
            return true;
        }
    }
    return false;
}

// Whether the value is made by a node that is marked, and has no copy yet.
static bool is_due(const rondo__gradient *g, int32_t value) {
    const int32_t n = value >= 0 ? g->program->values[value].producer : -1;
    return n >= 0 && (size_t)n < g->forward_count && g->values[value].again < 0 &&
           is_marked(g, &g->program->nodes[n]);
}

// Copies the node that makes `value`, whose inputs have their copies.
static void copy_node(rondo__gradient *g, int32_t value) {
    const size_t n = (size_t)g->program->values[value].producer;
    const size_t inputs = g->program->nodes[n].input_count;
    const size_t outputs = g->program->nodes[n].output_count;
    int32_t *lists = rondo__calloc(inputs + outputs + 1, sizeof *lists);
    if (lists == NULL) {
        g->status = RONDO_STATUS_NO_MEMORY;
        return;
    }
    for (size_t i = 0; i < inputs; ++i) {
        const int32_t input = g->program->nodes[n].inputs[i];
        lists[i] = input >= 0 && g->values[input].again >= 0 ? g->values[input].again : input;
    }
    for (size_t i = 0; i < outputs && g->status == RONDO_STATUS_OK; ++i) {
        const int32_t output = g->program->nodes[n].outputs[i];
        lists[inputs + i] = RONDO__VALUE_NONE;
        if (output >= 0) {
            g->status = rondo__program_add_value(g->program, g->program->values[output].name,
                                                 &lists[inputs + i]);
            g->values[output].again = lists[inputs + i];
        }
    }
    if (g->status == RONDO_STATUS_OK) {
        const rondo__node node = g->program->nodes[n];  // the array may move
        g->status = rondo__program_add_copy(g->program, &node, lists, lists + inputs);
    }
    rondo__free(lists);
}

int32_t rondo__gradient_recompute(rondo__gradient *g, int32_t value) {
    if (g->request->recompute_count == 0 || g->status != RONDO_STATUS_OK || value < 0 ||
        (size_t)value >= g->value_count) {
        return value;
    }
    size_t capacity = 0;
    size_t count = 0;
    int32_t *stack = NULL;
    if (is_due(g, value)) {
        g->status = RONDO__ARRAY_RESERVE(stack, capacity, 1);
        if (g->status == RONDO_STATUS_OK) {
            stack[count++] = value;
        }
    }
    while (count > 0 && g->status == RONDO_STATUS_OK) {
        const int32_t at = stack[count - 1];
        const rondo__node *node = &g->program->nodes[g->program->values[at].producer];
        const size_t before = count;
        for (size_t i = 0; i < node->input_count && g->status == RONDO_STATUS_OK; ++i) {
            if (is_due(g, node->inputs[i])) {
                g->status = RONDO__ARRAY_RESERVE(stack, capacity, count + 1);
                if (g->status == RONDO_STATUS_OK) {
                    stack[count++] = node->inputs[i];
                }
            }
        }
        if (count == before) {
            count -= 1;
            if (is_due(g, at)) {
                copy_node(g, at);
            }
        }
    }
    rondo__free(stack);
    return g->status == RONDO_STATUS_OK && g->values[value].again >= 0 ? g->values[value].again
                                                                       : value;
}

// ---- the way back -------------------------------------------------------------------------------

void rondo__gradient_add(rondo__gradient *g, int32_t value, int32_t change) {
    if (g->status != RONDO_STATUS_OK || change < 0 || value < 0) {
        return;
    }
    change = rondo__gradient_cast_like(g, change, value);
    rondo__gradient_settle(g);
    if (g->status != RONDO_STATUS_OK || change < 0) {
        return;
    }
    // A change has the shape of what it belongs to, also where that was not seen.
    rondo__tensor_info known;
    get_info(g, value, &known);
    known.constant = NULL;
    if (!g->values[change].info.is_shape_known && rondo__info_has_rank(&known)) {
        g->values[change].info = known;
    }
    const int32_t before = g->values[value].gradient;
    const int32_t sum = before < 0 ? change : RONDO__EMIT(g, "Add", before, change);
    rondo__gradient_settle(g);
    if (g->status == RONDO_STATUS_OK) {
        g->values[value].gradient = sum;
    }
}

bool rondo__gradient_wants(const rondo__gradient *g, const rondo__gradient_call *call,
                           size_t index) {
    const int32_t value = rondo__gradient_input(call, index);
    return g->status == RONDO_STATUS_OK && value >= 0 && g->values[value].depends;
}

void rondo__gradient_give(rondo__gradient *g, const rondo__gradient_call *call, size_t input,
                          int32_t change) {
    if (rondo__gradient_wants(g, call, input)) {
        rondo__gradient_add(g, call->inputs[input], change);
    }
}

int32_t rondo__gradient_input(const rondo__gradient_call *call, size_t index) {
    return index < call->input_count ? call->inputs[index] : RONDO__VALUE_NONE;
}

int32_t rondo__gradient_output(const rondo__gradient_call *call, size_t index) {
    return index < call->output_count ? call->outputs[index] : RONDO__VALUE_NONE;
}

int32_t rondo__gradient_take_output(rondo__gradient *g, const rondo__gradient_call *call,
                                    size_t index, rondo_dtype dtype) {
    int32_t value = rondo__gradient_output(call, index);
    if (g->status != RONDO_STATUS_OK || value >= 0) {
        return value;
    }
    char name[32];
    (void)snprintf(name, sizeof name, "d.%zu", g->program->value_count);
    g->status = rondo__program_add_value(g->program, name, &value);
    rondo__node *node = &g->program->nodes[call->index];
    int32_t *outputs =
        g->status == RONDO_STATUS_OK ? rondo__calloc(index + 1, sizeof *outputs) : NULL;
    if (outputs == NULL) {
        g->status = RONDO_STATUS_NO_MEMORY;
        return RONDO__VALUE_NONE;
    }
    for (size_t i = 0; i <= index; ++i) {
        outputs[i] = i < node->output_count ? node->outputs[i] : RONDO__VALUE_NONE;
    }
    outputs[index] = value;
    rondo__free(node->outputs);
    node->outputs = outputs;
    node->output_count = index + 1;
    g->program->values[value].producer = (int32_t)call->index;
    g->program->values[value].dtype = dtype;
    rondo__gradient_settle(g);
    g->status = g->status == RONDO_STATUS_OK ? visit_node(g, call->index) : g->status;
    return value;
}

// A copy of the lists, which a rule may make the node change.
typedef struct kept_call {
    rondo__gradient_call call;
    int32_t *lists;
} kept_call;

static rondo_status begin_call(const rondo__gradient *g, size_t n, kept_call *out_kept) {
    const rondo__node *node = &g->program->nodes[n];
    const size_t inputs = node->input_count;
    const size_t outputs = node->output_count;
    int32_t *lists = rondo__calloc(inputs + 2 * outputs + 1, sizeof *lists);
    if (lists == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(lists, node->inputs, inputs * sizeof *lists);
    memcpy(lists + inputs, node->outputs, outputs * sizeof *lists);
    for (size_t i = 0; i < outputs; ++i) {
        const int32_t value = node->outputs[i];
        lists[inputs + outputs + i] = value >= 0 ? g->values[value].gradient : RONDO__VALUE_NONE;
    }
    *out_kept = (kept_call){.lists = lists,
                            .call = {.op = node->op,
                                     .index = n,
                                     .input_count = inputs,
                                     .output_count = outputs,
                                     .explicit_count = node->explicit_count,
                                     .inputs = lists,
                                     .outputs = lists + inputs,
                                     .changes = lists + inputs + outputs}};
    return RONDO_STATUS_OK;
}

static bool is_on_the_way(const rondo__gradient *g, const rondo__node *node) {
    bool depends = false;
    bool has_change = false;
    for (size_t i = 0; i < node->input_count; ++i) {
        depends = depends || (node->inputs[i] >= 0 && g->values[node->inputs[i]].depends);
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        const int32_t value = node->outputs[i];
        has_change = has_change ||
                     (value >= 0 && g->values[value].depends && g->values[value].gradient >= 0);
    }
    return depends && has_change;
}

static void go_back(rondo__gradient *g, size_t begin, size_t end) {
    for (size_t n = end; n-- > begin && g->status == RONDO_STATUS_OK;) {
        bool is_zero = false;
        if (!is_on_the_way(g, &g->program->nodes[n])) {
            continue;
        }
        const rondo__gradient_rule rule =
            rondo__gradient_find_rule(g->program->nodes[n].op.def, &is_zero);
        if (rule == NULL) {
            g->status = fail_node(g, n, "");
            return;
        }
        const size_t first = g->program->node_count;
        const rondo__place_mark place = g->program->nodes[n].place;
        kept_call kept = {0};
        g->status = begin_call(g, n, &kept);
        if (g->status == RONDO_STATUS_OK) {
            rule(g, &kept.call);
        }
        rondo__free(kept.lists);
        for (size_t i = first; i < g->program->node_count; ++i) {
            g->program->nodes[i].place = place;
        }
    }
}

size_t rondo__gradient_begin(const rondo__gradient *g) {
    return g->program->node_count;
}

void rondo__gradient_expand(rondo__gradient *g, size_t begin, const int32_t *values,
                            const int32_t *changes, size_t count) {
    const size_t end = g->program->node_count;
    if (g->status == RONDO_STATUS_OK && g->depth >= EXPANSION_DEPTH_MAX) {
        g->status = RONDO_FAIL(INTERNAL, "gradients expand more than %d deep", EXPANSION_DEPTH_MAX);
    }
    rondo__gradient_mark(g, begin, end);
    for (size_t i = 0; i < count; ++i) {
        rondo__gradient_add(g, values[i], changes[i]);
    }
    g->depth += 1;
    go_back(g, begin, end);
    g->depth -= 1;
}

// ---- the whole ----------------------------------------------------------------------------------

void rondo__gradient_deinit(rondo__gradient *g) {
    for (size_t v = 0; v < g->value_count; ++v) {
        if (g->values[v].folded != NULL) {
            rondo_tensor_deinit(g->values[v].folded);
            rondo__free(g->values[v].folded);
        }
    }
    rondo__free(g->values);
}

static void start(rondo__gradient *g) {
    const rondo__gradient_request *request = g->request;
    const size_t end = g->program->node_count;
    g->forward_count = end;
    rondo__gradient_settle(g);
    for (size_t i = 0; i < request->x_count && g->status == RONDO_STATUS_OK; ++i) {
        const int32_t x = request->xs[i];
        rondo__tensor_info info;
        get_info(g, x, &info);
        if (!is_real(info.dtype)) {
            g->status = RONDO_FAIL(UNSUPPORTED, "\"%.80s\" is %s; only reals have gradients",
                                   g->program->values[x].name, rondo_dtype_get_name(info.dtype));
        }
        g->values[x].depends = true;
    }
    rondo__gradient_mark(g, 0, end);
    if (g->status != RONDO_STATUS_OK || !g->values[request->y].depends) {
        return;
    }
    const int32_t seed =
        request->seed >= 0 ? request->seed : rondo__gradient_fill_like(g, 1.0, request->y);
    rondo__gradient_add(g, request->y, seed);
    go_back(g, 0, end);
}

rondo_status rondo__program_add_gradients(rondo_program *program,
                                          const rondo__gradient_request *request,
                                          int32_t *out_values) {
    rondo__gradient g = {.program = program, .request = request};
    start(&g);
    for (size_t i = 0; i < request->x_count && g.status == RONDO_STATUS_OK; ++i) {
        out_values[i] = g.values[request->xs[i]].gradient;
        if (out_values[i] < 0) {
            out_values[i] = rondo__gradient_fill_like(&g, 0.0, request->xs[i]);
        }
        rondo__gradient_settle(&g);
    }
    for (size_t v = 0; g.status == RONDO_STATUS_OK && v < program->value_count; ++v) {
        rondo__value *value = &program->values[v];
        value->dtype = value->dtype == RONDO_DTYPE_NONE ? g.values[v].info.dtype : value->dtype;
    }
    rondo__gradient_deinit(&g);
    return g.status;
}
