// program/gradient/rules_recurrent.c — gradients of RNN, GRU and LSTM: the steps written out.
//
// What the input brings to the gates is one product for all steps. The way back goes through the
// steps one by one, so their number must be known.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "program/gradient/gradient_parts.h"

#define E(...) RONDO__EMIT(g, __VA_ARGS__)
#define RULE(name) static void name(rondo__gradient *g, const rondo__gradient_call *call)
#define FIRST rondo__gradient_input(call, 0)

enum { STEPS_MAX = 1024, GATES_MAX = 4 };

typedef struct cell {
    int64_t gates;  // 1, 3 or 4
    int64_t hidden;
    int64_t steps;
    bool is_lstm;
    bool resets_late;        // GRU with linear_before_reset
    const char *activation;  // RNN's
    // Of one direction:
    int32_t w, r;    // [gates * hidden, ...]
    int32_t wb, rb;  // [gates * hidden]; NONE
    int32_t h, c;    // [batch, hidden]
} cell;

static bool has_plain_attributes(const rondo__gradient_call *call, cell *out_cell) {
    const rondo__attribute *names = rondo__op_find(&call->op, "activations");
    out_cell->activation = "Tanh";
    static const char *const lstm[] = {"Sigmoid", "Tanh", "Tanh"};
    const size_t cycle = out_cell->gates == 1 ? 1 : out_cell->is_lstm ? 3 : 2;
    for (size_t i = 0; names != NULL && i < names->count; ++i) {
        if (out_cell->gates == 1 && i == 0 && strcmp(names->strings[i], "Relu") == 0 &&
            names->count == 1) {
            out_cell->activation = "Relu";
        } else if (strcmp(names->strings[i], out_cell->gates == 1 ? "Tanh" : lstm[i % cycle]) !=
                   0) {
            return false;
        }
    }
    return rondo__op_find(&call->op, "clip") == NULL &&
           rondo__op_get_int(&call->op, "layout", 0) == 0 &&
           rondo__op_get_int(&call->op, "input_forget", 0) == 0 &&
           rondo__gradient_input(call, 4) < 0 && rondo__gradient_input(call, 7) < 0;
}

static int32_t pick(rondo__gradient *g, int32_t value, int64_t direction) {
    return value >= 0 ? E("Gather", value, rondo__gradient_index(g, direction)) : RONDO__VALUE_NONE;
}

static int32_t first_state(rondo__gradient *g, const rondo__gradient_call *call, size_t input,
                           int64_t direction, const cell *c) {
    const int32_t given = rondo__gradient_input(call, input);
    if (given >= 0) {
        return pick(g, given, direction);
    }
    const int32_t list[2] = {rondo__gradient_axis_size(g, FIRST, 1),
                             rondo__gradient_int(g, c->hidden)};
    const int32_t extents =
        rondo__gradient_set_int(g, rondo__gradient_emit(g, "Concat", list, 2), "axis", 0);
    return E("Expand", rondo__gradient_number(g, 0.0, FIRST), extents);
}

static void split_gates(rondo__gradient *g, int32_t value, size_t count, int64_t axis,
                        int32_t *out_gates) {
    if (count == 1) {
        out_gates[0] = value;
        return;
    }
    rondo__gradient_emit_many(g, "Split", &value, 1, out_gates, count);
    (void)rondo__gradient_set_int(g, out_gates[0], "axis", axis);
    (void)rondo__gradient_set_int(g, out_gates[0], "num_outputs", (int64_t)count);
}

// One step: what x brings is [batch, gates * hidden].
static void step_lstm(rondo__gradient *g, cell *c, int32_t brought, int32_t r_turned) {
    int32_t gate[GATES_MAX];
    split_gates(g, E("Add", brought, E("MatMul", c->h, r_turned)), 4, 1, gate);
    const int32_t kept = E("Mul", E("Sigmoid", gate[2]), c->c);
    c->c = E("Add", kept, E("Mul", E("Sigmoid", gate[0]), E("Tanh", gate[3])));
    c->h = E("Mul", E("Sigmoid", gate[1]), E("Tanh", c->c));
}

static void step_rnn(rondo__gradient *g, cell *c, int32_t brought, int32_t r_turned) {
    c->h = E(c->activation, E("Add", brought, E("MatMul", c->h, r_turned)));
}

// r_turned: [hidden, 3 * hidden].
static void step_gru(rondo__gradient *g, cell *c, int32_t brought, int32_t r_turned) {
    int32_t x[3];
    int32_t r[3];
    int32_t rb[3] = {RONDO__VALUE_NONE, RONDO__VALUE_NONE, RONDO__VALUE_NONE};
    split_gates(g, brought, 3, 1, x);
    split_gates(g, r_turned, 3, 1, r);
    if (c->rb >= 0) {
        split_gates(g, c->rb, 3, 0, rb);
    }
    int32_t part[3];
    for (int i = 0; i < 2; ++i) {
        part[i] = E("Add", x[i], E("MatMul", c->h, r[i]));
        part[i] = E("Sigmoid", rb[i] >= 0 ? E("Add", part[i], rb[i]) : part[i]);
    }
    const int32_t update = part[0];
    const int32_t reset = part[1];
    int32_t back = E("MatMul", c->resets_late ? c->h : E("Mul", reset, c->h), r[2]);
    back = rb[2] >= 0 ? E("Add", back, rb[2]) : back;
    back = c->resets_late ? E("Mul", reset, back) : back;
    const int32_t next = E("Tanh", E("Add", x[2], back));
    const int32_t old = E("Mul", update, c->h);
    const int32_t rest = E("Sub", rondo__gradient_number(g, 1.0, update), update);
    c->h = E("Add", E("Mul", rest, next), old);
}

// Runs one direction; out_y[t] is [1, 1, batch, hidden].
static void run_direction(rondo__gradient *g, const rondo__gradient_call *call, cell *c,
                          bool is_reverse, int32_t *out_y) {
    int32_t brought[STEPS_MAX];
    const int64_t ahead[2] = {0, 1};
    int32_t all = E("MatMul", FIRST, rondo__gradient_swap(g, c->w, 2));
    all = c->wb >= 0 ? E("Add", all, c->wb) : all;
    // GRU's bias of the state stays with its gates.
    all = c->rb >= 0 && c->gates != 3 ? E("Add", all, c->rb) : all;
    split_gates(g, all, (size_t)c->steps, 0, brought);
    const int32_t turned = rondo__gradient_swap(g, c->r, 2);
    const int64_t first = 0;
    for (int64_t i = 0; i < c->steps; ++i) {
        const int64_t t = is_reverse ? c->steps - 1 - i : i;
        const int32_t x = E("Squeeze", brought[t], rondo__gradient_ints(g, &first, 1));
        if (c->is_lstm) {
            step_lstm(g, c, x, turned);
        } else if (c->gates == 3) {
            step_gru(g, c, x, turned);
        } else {
            step_rnn(g, c, x, turned);
        }
        out_y[t] = E("Unsqueeze", c->h, rondo__gradient_ints(g, ahead, 2));
    }
}

static int32_t concat(rondo__gradient *g, const int32_t *values, size_t count, int64_t axis) {
    return count == 1 ? values[0]
                      : rondo__gradient_set_int(g, rondo__gradient_emit(g, "Concat", values, count),
                                                "axis", axis);
}

static void expand(rondo__gradient *g, const rondo__gradient_call *call, cell c) {
    const char *direction = rondo__op_get_string(&call->op, "direction", "forward");
    const int64_t directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    const size_t begin = rondo__gradient_begin(g);
    int32_t rows[STEPS_MAX];
    int32_t y[2];
    int32_t last[2];
    int32_t last_c[2];
    for (int64_t d = 0; d < directions; ++d) {
        int32_t biases[2] = {RONDO__VALUE_NONE, RONDO__VALUE_NONE};
        const int32_t bias = pick(g, rondo__gradient_input(call, 3), d);
        if (bias >= 0) {
            split_gates(g, bias, 2, 0, biases);
        }
        c.w = pick(g, rondo__gradient_input(call, 1), d);
        c.r = pick(g, rondo__gradient_input(call, 2), d);
        c.wb = biases[0];
        c.rb = biases[1];
        c.h = first_state(g, call, 5, d, &c);
        c.c = c.is_lstm ? first_state(g, call, 6, d, &c) : RONDO__VALUE_NONE;
        run_direction(g, call, &c, d == 1 || strcmp(direction, "reverse") == 0, rows);
        y[d] = concat(g, rows, (size_t)c.steps, 0);
        last[d] = E("Unsqueeze", c.h, rondo__gradient_int(g, 0));
        last_c[d] = c.is_lstm ? E("Unsqueeze", c.c, rondo__gradient_int(g, 0)) : c.c;
    }
    const size_t count = (size_t)directions;
    const int32_t made[3] = {concat(g, y, count, 1), concat(g, last, count, 0),
                             c.is_lstm ? concat(g, last_c, count, 0) : RONDO__VALUE_NONE};
    rondo__gradient_expand(g, begin, made, call->changes,
                           call->output_count < 3 ? call->output_count : 3);
}

static void run_rule(rondo__gradient *g, const rondo__gradient_call *call, int64_t gates) {
    cell c = {.gates = gates,
              .is_lstm = gates == 4,
              .resets_late = rondo__op_get_int(&call->op, "linear_before_reset", 0) != 0,
              .hidden = rondo__gradient_extent(g, rondo__gradient_input(call, 2), 2),
              .steps = rondo__gradient_extent(g, FIRST, 0)};
    if (!has_plain_attributes(call, &c)) {
        rondo__gradient_refuse(g, call,
                               "sequence_lens, peepholes, clip, layout=1, input_forget or other "
                               "activations");
    } else if (c.steps < 1 || c.steps > STEPS_MAX || c.hidden < 1) {
        rondo__gradient_refuse(g, call,
                               "a number of steps that is not known (sizes of the model's inputs "
                               "in place of names tell it), or above 1024");
    } else {
        expand(g, call, c);
    }
}

RULE(rule_rnn) {
    run_rule(g, call, 1);
}

RULE(rule_gru) {
    run_rule(g, call, 3);
}

RULE(rule_lstm) {
    run_rule(g, call, 4);
}

const rondo__gradient_row rondo__gradient_rows_recurrent[] = {
    {RONDO__OP_RNN, rule_rnn},
    {RONDO__OP_GRU, rule_gru},
    {RONDO__OP_LSTM, rule_lstm},
    {RONDO__OP_NONE, NULL},
};
