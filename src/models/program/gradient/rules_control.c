// program/gradient/rules_control.c — gradients through If, Loop and Scan.
//
// If: another If with the same condition, whose branches run the branch once more and then back.
// Loop and Scan: their turns written out, so their number must be known, and no turn may end them.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/support.h"
#include "program/body_view.h"
#include "program/edit.h"
#include "program/gradient/gradient_parts.h"

#define E(...) RONDO__EMIT(g, __VA_ARGS__)
#define RULE(name) static void name(rondo__gradient *g, const rondo__gradient_call *call)

enum { TURNS_MAX = 4096 };

static const rondo_program *find_body(const rondo__gradient_call *call, const char *name) {
    const rondo__attribute *attribute = rondo__op_find(&call->op, name);
    return attribute != NULL ? attribute->body : NULL;
}

// ---- a body written out -------------------------------------------------------------------------

// The parameter around that a constant of a body is, among those whose change is wanted.
static int32_t find_parameter(const rondo__gradient *g, const rondo_tensor *constant) {
    for (size_t i = 0; i < g->request->x_count; ++i) {
        const rondo__value *x = &g->program->values[g->request->xs[i]];
        if (rondo__value_is_constant(x) && constant->data != NULL &&
            x->constant.data == constant->data) {
            return g->request->xs[i];
        }
    }
    return RONDO__VALUE_NONE;
}

// Appends the nodes of a body; `map` has the value here for each of the body's, or NONE.
static void write_out(rondo__gradient *g, const rondo_program *body, int32_t *map) {
    for (size_t v = 0; v < body->value_count && g->status == RONDO_STATUS_OK; ++v) {
        const rondo__value *value = &body->values[v];
        if (map[v] >= 0 || !rondo__value_is_constant(value)) {
            continue;
        }
        map[v] = find_parameter(g, &value->constant);
        if (map[v] < 0) {
            g->status =
                rondo__program_add_constant(g->program, value->name, &value->constant, &map[v]);
        }
    }
    for (size_t n = 0; n < body->node_count && g->status == RONDO_STATUS_OK; ++n) {
        const rondo__node *node = &body->nodes[n];
        int32_t *lists = rondo__calloc(node->input_count + node->output_count + 1, sizeof *lists);
        if (lists == NULL) {
            g->status = RONDO_STATUS_NO_MEMORY;
            return;
        }
        int32_t *outputs = lists + node->input_count;
        for (size_t i = 0; i < node->input_count; ++i) {
            lists[i] = node->inputs[i] >= 0 ? map[node->inputs[i]] : RONDO__VALUE_NONE;
        }
        for (size_t i = 0; i < node->output_count && g->status == RONDO_STATUS_OK; ++i) {
            outputs[i] = RONDO__VALUE_NONE;
            if (node->outputs[i] >= 0) {
                g->status = rondo__program_add_value(
                    g->program, body->values[node->outputs[i]].name, &outputs[i]);
                map[node->outputs[i]] = outputs[i];
            }
        }
        if (g->status == RONDO_STATUS_OK) {
            g->status = rondo__program_add_copy(g->program, node, lists, outputs);
        }
        rondo__free(lists);
    }
}

static int32_t *make_map(rondo__gradient *g, const rondo_program *body) {
    int32_t *map = rondo__calloc(body->value_count + 1, sizeof *map);
    for (size_t v = 0; map != NULL && v < body->value_count; ++v) {
        map[v] = RONDO__VALUE_NONE;
    }
    g->status = map == NULL ? RONDO_STATUS_NO_MEMORY : g->status;
    return map;
}

static void map_captured(const rondo__gradient_call *call, const rondo_program *body,
                         int32_t *map) {
    for (size_t i = body->declared_count; i < body->input_count; ++i) {
        map[body->inputs[i]] = call->inputs[call->explicit_count + i - body->declared_count];
    }
}

// ---- Loop and Scan ------------------------------------------------------------------------------

// What a loop carries, and the rows that it makes.
typedef struct turns {
    const rondo_program *body;
    int64_t count;
    size_t carried_count, row_count;
    int32_t *carried;  // carried_count
    int32_t *rows;     // row_count for each turn
} turns;

static bool turns_init(rondo__gradient *g, const rondo_program *body, int64_t count,
                       size_t carried_count, size_t row_count, turns *out_turns) {
    *out_turns = (turns){body, count, carried_count, row_count, NULL, NULL};
    out_turns->carried = rondo__calloc(carried_count + 1, sizeof *out_turns->carried);
    out_turns->rows = rondo__calloc((size_t)count * row_count + 1, sizeof *out_turns->rows);
    if (out_turns->carried == NULL || out_turns->rows == NULL) {
        g->status = RONDO_STATUS_NO_MEMORY;
    }
    return g->status == RONDO_STATUS_OK;
}

static void turns_deinit(turns *t) {
    rondo__free(t->carried);
    rondo__free(t->rows);
}

// One turn: `first` declared inputs come before the carried ones, `skipped` outputs before theirs;
// `others` are the declared inputs behind.
static void run_turn(rondo__gradient *g, const rondo__gradient_call *call, turns *t, int64_t turn,
                     const int32_t *before, size_t first, const int32_t *others, size_t skipped) {
    const rondo_program *body = t->body;
    int32_t *map = make_map(g, body);
    if (map == NULL) {
        return;
    }
    for (size_t i = 0; i < body->declared_count; ++i) {
        map[body->inputs[i]] = i < first ? before[i]
                               : i < first + t->carried_count
                                   ? t->carried[i - first]
                                   : others[i - first - t->carried_count];
    }
    map_captured(call, body, map);
    write_out(g, body, map);
    for (size_t i = 0; i < t->carried_count && g->status == RONDO_STATUS_OK; ++i) {
        t->carried[i] = map[body->outputs[skipped + i]];
    }
    for (size_t i = 0; i < t->row_count && g->status == RONDO_STATUS_OK; ++i) {
        const int32_t row = map[body->outputs[skipped + t->carried_count + i]];
        t->rows[(size_t)turn * t->row_count + i] = E("Unsqueeze", row, rondo__gradient_int(g, 0));
    }
    rondo__free(map);
}

static void give_turns(rondo__gradient *g, const rondo__gradient_call *call, turns *t,
                       size_t begin) {
    int32_t *made = rondo__calloc(call->output_count + 1, sizeof *made);
    int32_t *rows = rondo__calloc((size_t)t->count + 1, sizeof *rows);
    if (made == NULL || rows == NULL) {
        g->status = RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < call->output_count && g->status == RONDO_STATUS_OK; ++i) {
        made[i] = i < t->carried_count ? t->carried[i] : RONDO__VALUE_NONE;
        if (i >= t->carried_count && t->count > 0) {
            for (int64_t k = 0; k < t->count; ++k) {
                rows[k] = t->rows[(size_t)k * t->row_count + i - t->carried_count];
            }
            made[i] = rondo__gradient_set_int(
                g, rondo__gradient_emit(g, "Concat", rows, (size_t)t->count), "axis", 0);
        }
    }
    if (g->status == RONDO_STATUS_OK) {
        rondo__gradient_expand(g, begin, made, call->changes, call->output_count);
    }
    rondo__free(made);
    rondo__free(rows);
}

static bool is_true(const rondo_tensor *tensor) {
    return tensor != NULL && rondo_shape_get_count(&tensor->shape) == 1 &&
           rondo__tensor_get_int(tensor, 0) != 0;
}

// Whether the body's condition is true in every turn: a constant, or the one it was given.
static bool goes_on(const rondo_program *body) {
    int32_t value = body->outputs[0];
    while (body->values[value].producer >= 0) {
        const rondo__node *node = &body->nodes[body->values[value].producer];
        if (!rondo__node_is(node, RONDO__OP_Identity)) {
            return false;
        }
        value = node->inputs[0];
    }
    const rondo__value *v = &body->values[value];
    return rondo__value_is_constant(v) ? is_true(&v->constant)
                                       : body->declared_count > 1 && value == body->inputs[1];
}

RULE(rule_loop) {
    const rondo_program *body = find_body(call, "body");
    int64_t count = -1;
    const int32_t limit = rondo__gradient_input(call, 0);
    const int32_t condition = rondo__gradient_input(call, 1);
    const bool is_endless = condition < 0 || is_true(rondo__gradient_info(g, condition)->constant);
    if (rondo__gradient_read_ints(g, limit, &count, 1) != 1 || count < 0 || count > TURNS_MAX ||
        !is_endless || body == NULL || !goes_on(body)) {
        rondo__gradient_refuse(g, call, "a number of turns that is not known, or above 4096");
        return;
    }
    turns t;
    const size_t carried = call->explicit_count - 2;
    const size_t begin = rondo__gradient_begin(g);
    if (turns_init(g, body, count, carried, body->output_count - 1 - carried, &t)) {
        memcpy(t.carried, call->inputs + 2, carried * sizeof *t.carried);
        for (int64_t k = 0; k < count && g->status == RONDO_STATUS_OK; ++k) {
            const rondo_shape scalar = {0};
            bool yes = true;
            const rondo_tensor true_tensor = {
                .dtype = RONDO_DTYPE_BOOL, .shape = scalar, .data = &yes};
            rondo_tensor copy = {0};
            int32_t before[2] = {rondo__gradient_index(g, k), RONDO__VALUE_NONE};
            rondo_status status = rondo_tensor_init(RONDO_DTYPE_BOOL, &scalar, &copy);
            if (status == RONDO_STATUS_OK) {
                memcpy(copy.data, true_tensor.data, 1);
                status = rondo__program_add_constant(g->program, "goes_on", &copy, &before[1]);
            }
            rondo_tensor_deinit(&copy);
            g->status = g->status == RONDO_STATUS_OK ? status : g->status;
            run_turn(g, call, &t, k, before, 2, NULL, 1);
        }
        give_turns(g, call, &t, begin);
    }
    turns_deinit(&t);
}

static bool is_all_zero(const rondo__gradient_call *call, const char *name) {
    size_t count = 0;
    const int64_t *list = rondo__op_get_ints(&call->op, name, &count);
    for (size_t i = 0; i < count; ++i) {
        if (list[i] != 0) {
            return false;
        }
    }
    return true;
}

RULE(rule_scan) {
    enum { SCANNED_MAX = 16 };
    const rondo_program *body = find_body(call, "body");
    const size_t scanned = (size_t)rondo__op_get_int(&call->op, "num_scan_inputs", 0);
    if (call->op.opset < 9 || body == NULL || scanned < 1 || scanned > SCANNED_MAX ||
        scanned > call->explicit_count || !is_all_zero(call, "scan_input_axes") ||
        !is_all_zero(call, "scan_output_axes") || !is_all_zero(call, "scan_input_directions") ||
        !is_all_zero(call, "scan_output_directions")) {
        rondo__gradient_refuse(g, call, "axes or directions other than 0, or of version 8");
        return;
    }
    const size_t carried = call->explicit_count - scanned;
    const int64_t count = rondo__gradient_extent(g, call->inputs[carried], 0);
    if (count < 1 || count > TURNS_MAX) {
        rondo__gradient_refuse(g, call, "a number of turns that is not known, or above 4096");
        return;
    }
    turns t;
    const size_t begin = rondo__gradient_begin(g);
    int32_t *rows = rondo__calloc((size_t)count * scanned + 1, sizeof *rows);
    if (rows == NULL) {
        g->status = RONDO_STATUS_NO_MEMORY;
        return;
    }
    for (size_t s = 0; s < scanned; ++s) {
        rondo__gradient_emit_many(g, "Split", &call->inputs[carried + s], 1,
                                  rows + s * (size_t)count, (size_t)count);
        (void)rondo__gradient_set_int(g, rows[s * (size_t)count], "num_outputs", count);
    }
    if (turns_init(g, body, count, carried, body->output_count - carried, &t)) {
        memcpy(t.carried, call->inputs, carried * sizeof *t.carried);
        for (int64_t k = 0; k < count && g->status == RONDO_STATUS_OK; ++k) {
            int32_t others[SCANNED_MAX];
            for (size_t s = 0; s < scanned; ++s) {
                const int64_t first = 0;
                others[s] = E("Squeeze", rows[s * (size_t)count + (size_t)k],
                              rondo__gradient_ints(g, &first, 1));
            }
            run_turn(g, call, &t, k, NULL, 0, others, 0);
        }
        give_turns(g, call, &t, begin);
    }
    turns_deinit(&t);
    rondo__free(rows);
}

// ---- If -----------------------------------------------------------------------------------------

// The values around that the changes are wanted of: each once.
typedef struct wanted {
    size_t count;
    int32_t *values;
} wanted;

static void find_wanted(rondo__gradient *g, const rondo__gradient_call *call, wanted *out_wanted) {
    *out_wanted = (wanted){0, rondo__calloc(call->input_count + 1, sizeof(int32_t))};
    if (out_wanted->values == NULL) {
        g->status = RONDO_STATUS_NO_MEMORY;
        return;
    }
    for (size_t i = call->explicit_count; i < call->input_count; ++i) {
        bool is_new = rondo__gradient_wants(g, call, i);
        for (size_t k = 0; k < out_wanted->count; ++k) {
            is_new = is_new && out_wanted->values[k] != call->inputs[i];
        }
        if (is_new) {
            out_wanted->values[out_wanted->count++] = call->inputs[i];
        }
    }
}

// A branch that goes on to be the branch of the way back, and what it captures.
typedef struct branch {
    rondo_program *body;
    size_t captured_count;
    int32_t *captured;  // values around; room for all
} branch;

static int32_t capture(rondo__gradient *g, branch *b, int32_t outer) {
    int32_t inner = RONDO__VALUE_NONE;
    if (g->status != RONDO_STATUS_OK) {
        return inner;
    }
    const bool is_constant = rondo__value_is_constant(&g->program->values[outer]);
    g->status = rondo__program_add_from_around(b->body, "around", g->program, outer, &inner);
    if (g->status == RONDO_STATUS_OK && !is_constant) {
        const rondo__tensor_info info = *rondo__gradient_info(g, outer);
        rondo__value_set_info(&b->body->values[inner], info.dtype, &info);
        g->status = rondo__program_add_captured(b->body, inner);
        b->captured[b->captured_count++] = outer;
    }
    return inner;
}

// Runs the branch back; its outputs are then the changes of `w`.
static void go_back_in(rondo__gradient *g, const rondo__gradient_call *call, branch *b,
                       const wanted *w) {
    rondo_program *body = b->body;
    const size_t outputs = call->output_count;
    const rondo__gradient_request request = {.y = RONDO__VALUE_NONE};
    rondo__gradient inner = {.program = body, .request = &request};
    for (size_t i = 0; i < body->input_count; ++i) {
        const rondo__tensor_info info = *rondo__gradient_info(g, b->captured[i]);
        rondo__value_set_info(&body->values[body->inputs[i]], info.dtype, &info);
    }
    const size_t captured = body->input_count;
    int32_t *changes = rondo__calloc(outputs + w->count + 1, sizeof *changes);
    if (changes == NULL) {
        g->status = RONDO_STATUS_NO_MEMORY;
        return;
    }
    for (size_t i = 0; i < outputs; ++i) {
        changes[i] = call->changes[i] >= 0 ? capture(g, b, call->changes[i]) : RONDO__VALUE_NONE;
    }
    rondo__gradient_settle(&inner);
    for (size_t i = 0; i < captured && inner.status == RONDO_STATUS_OK; ++i) {
        for (size_t k = 0; k < w->count; ++k) {
            inner.values[body->inputs[i]].depends =
                inner.values[body->inputs[i]].depends || b->captured[i] == w->values[k];
        }
    }
    if (g->status == RONDO_STATUS_OK && inner.status == RONDO_STATUS_OK) {
        rondo__gradient_mark(&inner, 0, body->node_count);
        rondo__gradient_expand(&inner, 0, body->outputs, changes, outputs);
    }
    for (size_t k = 0; k < w->count; ++k) {
        int32_t sum = RONDO__VALUE_NONE;
        for (size_t i = 0; i < captured && inner.status == RONDO_STATUS_OK; ++i) {
            if (b->captured[i] == w->values[k]) {
                sum = rondo__gradient_join(&inner, sum, inner.values[body->inputs[i]].gradient);
            }
        }
        if (sum < 0) {
            const int32_t like = capture(g, b, w->values[k]);
            sum = rondo__gradient_fill_like(&inner, 0.0, like);
        }
        changes[outputs + k] = RONDO__EMIT(&inner, "Identity", sum);
    }
    body->output_count = 0;
    g->status = g->status == RONDO_STATUS_OK ? inner.status : g->status;
    for (size_t k = 0; k < w->count && g->status == RONDO_STATUS_OK; ++k) {
        rondo__gradient_settle(&inner);
        const int32_t made = changes[outputs + k];
        body->values[made].dtype = inner.values[made].info.dtype;
        g->status = rondo__program_add_output(body, made);
    }
    rondo__gradient_deinit(&inner);
    rondo__free(changes);
}

static void append_if(rondo__gradient *g, const rondo__gradient_call *call, branch *branches,
                      int32_t *outputs, size_t output_count) {
    static const char *const names[2] = {"then_branch", "else_branch"};
    rondo__op op = {.def = call->op.def, .opset = call->op.opset};
    const size_t count = 1 + branches[0].captured_count + branches[1].captured_count;
    int32_t *inputs = rondo__calloc(count + 1, sizeof *inputs);
    if (inputs == NULL) {
        g->status = RONDO_STATUS_NO_MEMORY;
        return;
    }
    size_t used = 0;
    inputs[used++] = call->inputs[0];
    for (int b = 0; b < 2 && g->status == RONDO_STATUS_OK; ++b) {
        memcpy(inputs + used, branches[b].captured, branches[b].captured_count * sizeof *inputs);
        used += branches[b].captured_count;
        rondo__attribute attribute = {.name = rondo__strdup(names[b]),
                                      .kind = RONDO__ATTRIBUTE_BODY,
                                      .body = branches[b].body};
        g->status = attribute.name != NULL ? rondo__op_take_attribute(&op, &attribute)
                                           : RONDO_STATUS_NO_MEMORY;
        if (g->status == RONDO_STATUS_OK) {
            branches[b].body = NULL;
        }
        rondo__attribute_deinit(&attribute);
    }
    for (size_t i = 0; i < output_count && g->status == RONDO_STATUS_OK; ++i) {
        g->status = rondo__program_add_value(g->program, "d.if", &outputs[i]);
    }
    if (g->status == RONDO_STATUS_OK) {
        g->status =
            rondo__program_add_node(g->program, &op, inputs, used, 1, outputs, output_count);
    }
    for (size_t a = 0; a < op.attribute_count; ++a) {
        rondo_program_destroy(op.attributes[a].body);
    }
    rondo__op_deinit(&op);
    rondo__free(inputs);
}

RULE(rule_if) {
    static const char *const names[2] = {"then_branch", "else_branch"};
    wanted w = {0};
    branch branches[2] = {{0}};
    int32_t *outputs = rondo__calloc(call->input_count + 1, sizeof *outputs);
    find_wanted(g, call, &w);
    g->status = outputs == NULL ? RONDO_STATUS_NO_MEMORY : g->status;
    size_t first = call->explicit_count;
    for (int b = 0; b < 2 && outputs != NULL && g->status == RONDO_STATUS_OK; ++b) {
        const rondo_program *body = find_body(call, names[b]);
        for (size_t v = 0; v < body->value_count; ++v) {
            if (rondo__value_is_constant(&body->values[v]) &&
                find_parameter(g, &body->values[v].constant) >= 0) {
                rondo__gradient_refuse(g, call, "a parameter in a branch; make it a variable");
            }
        }
        branches[b].captured =
            rondo__calloc(body->input_count + call->output_count + w.count + 1, sizeof(int32_t));
        if (branches[b].captured == NULL) {
            g->status = RONDO_STATUS_NO_MEMORY;
            break;
        }
        // Captured values stand in the order of the attributes.
        const bool is_first = call->op.attributes[0].body == body;
        const rondo_program *other = find_body(call, names[1 - b]);
        first = call->explicit_count + (is_first ? 0 : other->input_count);
        branches[b].captured_count = body->input_count;
        memcpy(branches[b].captured, call->inputs + first, body->input_count * sizeof(int32_t));
        g->status = rondo__program_clone(body, &branches[b].body);
        if (g->status == RONDO_STATUS_OK) {
            go_back_in(g, call, &branches[b], &w);
        }
    }
    if (g->status == RONDO_STATUS_OK && outputs != NULL) {
        append_if(g, call, branches, outputs, w.count);
    }
    for (size_t k = 0; k < w.count && g->status == RONDO_STATUS_OK; ++k) {
        rondo__gradient_add(g, w.values[k], outputs[k]);
    }
    for (int b = 0; b < 2; ++b) {
        rondo_program_destroy(branches[b].body);
        rondo__free(branches[b].captured);
    }
    rondo__free(w.values);
    rondo__free(outputs);
}

const rondo__gradient_row rondo__gradient_rows_control[] = {
    {RONDO__OP_If, rule_if},
    {RONDO__OP_Loop, rule_loop},
    {RONDO__OP_Scan, rule_scan},
    {RONDO__OP_NONE, NULL},
};
