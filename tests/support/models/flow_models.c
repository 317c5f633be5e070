// SPDX-License-Identifier: Apache-2.0

#include "support/models/flow_models.h"
#include "support/short_forms.h"

#include <stdio.h>
#include <string.h>

enum { FLOAT = 1, INT64 = 7, BOOL = 9, NAMES_MAX = 64, NAME_BYTES = 16, DEPTH_MAX = 3 };

typedef struct maker {
    model_builder *b;
    uint64_t random;
    int number;  // of the last name
} maker;

// Names of values of shape [3, 3] that a graph may use.
typedef struct scope {
    Onnx__GraphProto *graph;
    int depth;
    char names[NAMES_MAX][NAME_BYTES];
    size_t count;
} scope;

static uint64_t draw(maker *m, uint64_t below) {
    m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (m->random >> 33) % below;
}

static const char *name_new(maker *m, char *buffer) {
    (void)snprintf(buffer, NAME_BYTES, "v%d", ++m->number);
    return buffer;
}

static void add_name(scope *s, const char *name) {
    if (s->count < NAMES_MAX) {
        (void)strcpy(s->names[s->count++], name);
    }
}

static const char *pick(maker *m, const scope *s) {
    // Late ones more often: what a block has made itself.
    const size_t recent = s->count < 4 ? s->count : 4;
    return draw(m, 2) == 0 ? s->names[draw(m, s->count)] : s->names[s->count - 1 - draw(m, recent)];
}

static Onnx__NodeProto *add_node(maker *m, scope *s, const char *op, const char *inputs,
                                 const char *outputs) {
    char name[NAME_BYTES];
    return model_builder_add_node(m->b, s->graph, op, name_new(m, name), inputs, outputs);
}

static void set_ints(maker *m, Onnx__NodeProto *node, const char *name, const int64_t *values,
                     size_t count) {
    Onnx__AttributeProto *attribute =
        model_builder_add_attribute(m->b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    attribute->n_ints = count;
    attribute->ints = model_builder_allocate(m->b, (count + 1) * sizeof *attribute->ints);
    memcpy(attribute->ints, values, count * sizeof *values);
}

// A bool: whether the sum of a value is above zero.
static const char *add_condition(maker *m, scope *s, char *buffer) {
    char sum[NAME_BYTES];
    model_builder_set_int(m->b, add_node(m, s, "ReduceSum", pick(m, s), name_new(m, sum)),
                          "keepdims", 0);
    char wires[64];
    (void)snprintf(wires, sizeof wires, "%s zero", sum);
    add_node(m, s, "Greater", wires, name_new(m, buffer));
    return buffer;
}

// Reduces stacked rows along `axis` to one more value.
static void use_rows(maker *m, scope *s, const char *rows, const char *axis) {
    char wires[64];
    char value[NAME_BYTES];
    (void)snprintf(wires, sizeof wires, "%s %s", rows, axis);
    model_builder_set_int(m->b, add_node(m, s, "ReduceSum", wires, name_new(m, value)), "keepdims",
                          0);
    add_name(s, value);
}

static void add_block(maker *m, scope *s);

static void add_simple(maker *m, scope *s) {
    static const char *const ops[] = {"Add", "Mul", "Sub", "MatMul", "Tanh", "Relu", "Neg"};
    const size_t op = draw(m, 7);
    char wires[64];
    char value[NAME_BYTES];
    (void)snprintf(wires, sizeof wires, op < 4 ? "%s %s" : "%s", pick(m, s), pick(m, s));
    add_node(m, s, ops[op], wires, name_new(m, value));
    add_name(s, value);
    if (op < 4) {  // stays small
        char bounded[NAME_BYTES];
        add_node(m, s, "Tanh", value, name_new(m, bounded));
        add_name(s, bounded);
    }
}

static scope begin_body(maker *m, const scope *around, const char *name) {
    scope body = *around;
    body.graph = model_builder_new_graph(m->b, name);
    body.depth = around->depth + 1;
    return body;
}

static void add_if(maker *m, scope *s) {
    static const char *const branches[] = {"then_branch", "else_branch"};
    char condition[NAME_BYTES];
    char outputs[2][NAME_BYTES];
    char wires[64];
    const bool is_given = draw(m, 3) == 0;
    (void)snprintf(wires, sizeof wires, "%s %s", name_new(m, outputs[0]), name_new(m, outputs[1]));
    Onnx__NodeProto *node =
        add_node(m, s, "If", is_given ? "go" : add_condition(m, s, condition), wires);
    for (int b = 0; b < 2; ++b) {
        scope body = begin_body(m, s, branches[b]);
        add_block(m, &body);
        for (int i = 0; i < 2; ++i) {
            // What comes from around needs a node; some values are the branch's own, or one twice.
            char given[NAME_BYTES];
            add_node(m, &body, "Identity", pick(m, &body), name_new(m, given));
            model_builder_add_output(m->b, body.graph, given, FLOAT, "3 3");
        }
        model_builder_add_body(m->b, node, branches[b], body.graph);
    }
    add_name(s, outputs[0]);
    add_name(s, outputs[1]);
}

// Carried values of a body: inputs from `initial` on, outputs in any order, swapped, or one twice.
static void add_carried(maker *m, scope *body, const scope *around, size_t count, char *initial,
                        size_t bytes) {
    for (size_t k = 0; k < count; ++k) {
        char name[NAME_BYTES];
        const size_t length = strlen(initial);
        (void)snprintf(initial + length, bytes - length, "%s%s", length > 0 ? " " : "",
                       pick(m, around));
        model_builder_add_input(m->b, body->graph, name_new(m, name), FLOAT, "3 3");
        add_name(body, name);
    }
}

static void give_out(maker *m, scope *body, size_t count) {
    for (size_t k = 0; k < count; ++k) {
        char name[NAME_BYTES];
        add_node(m, body, "Identity", pick(m, body), name_new(m, name));
        model_builder_add_output(m->b, body->graph, name, FLOAT, "3 3");
    }
}

static void name_outputs(maker *m, char (*names)[NAME_BYTES], size_t count, char *wires,
                         size_t bytes) {
    wires[0] = '\0';
    for (size_t k = 0; k < count; ++k) {
        const size_t length = strlen(wires);
        (void)snprintf(wires + length, bytes - length, "%s%s", k > 0 ? " " : "",
                       name_new(m, names[k]));
    }
}

static void add_loop(maker *m, scope *s) {
    const size_t carried = 1 + draw(m, 3);
    const bool has_rows = draw(m, 3) == 0;
    const size_t ending = has_rows ? 0 : draw(m, 3);  // 0: the trip count; 1, 2: a condition, too
    static const char *const counts[] = {"three", "n", "-"};
    const char *count = has_rows ? "three" : counts[draw(m, ending == 1 ? 3 : 2)];
    char condition[NAME_BYTES];
    const size_t start = has_rows ? 0 : draw(m, 3);
    char inputs[96] = "";
    char outputs[5][NAME_BYTES];
    char wires[96];
    (void)snprintf(inputs, sizeof inputs, "%s %s", count,
                   start == 0   ? "-"
                   : start == 1 ? "go"
                                : add_condition(m, s, condition));
    scope body = begin_body(m, s, "body");
    char names[3][NAME_BYTES];
    model_builder_add_input(m->b, body.graph, name_new(m, names[0]), INT64, "");
    model_builder_add_input(m->b, body.graph, name_new(m, names[1]), BOOL, "");
    add_carried(m, &body, s, carried, inputs, sizeof inputs);
    add_block(m, &body);
    char goes_on[NAME_BYTES];
    if (ending == 1) {
        (void)snprintf(wires, sizeof wires, "%s three", names[0]);
        add_node(m, &body, "Less", wires, name_new(m, goes_on));
    } else if (ending == 2) {
        add_condition(m, &body, goes_on);
    } else {
        add_node(m, &body, "Identity", names[1], name_new(m, goes_on));
    }
    model_builder_add_output(m->b, body.graph, goes_on, BOOL, "");
    give_out(m, &body, carried + (has_rows ? 1 : 0));
    name_outputs(m, outputs, carried + (has_rows ? 1 : 0), wires, sizeof wires);
    model_builder_add_body(m->b, add_node(m, s, "Loop", inputs, wires), "body", body.graph);
    for (size_t k = 0; k < carried; ++k) {
        add_name(s, outputs[k]);
    }
    if (has_rows) {
        use_rows(m, s, outputs[carried], "axis0");
    }
}

static void add_scan(maker *m, scope *s) {
    const size_t carried = draw(m, 3);
    const size_t scanned = 1 + draw(m, 2);
    const size_t rows = carried == 0 ? 1 : draw(m, 3);
    static const char *const axes_of_rows[] = {"axis0", "axis1", "axis2"};
    int64_t axes[2], directions[2], row_axes[2], row_directions[2];
    char inputs[96] = "";
    char outputs[5][NAME_BYTES];
    char wires[96];
    scope body = begin_body(m, s, "body");
    add_carried(m, &body, s, carried, inputs, sizeof inputs);
    for (size_t i = 0; i < scanned; ++i) {
        char name[NAME_BYTES];
        const size_t length = strlen(inputs);
        const bool is_turned = draw(m, 2) == 0;  // [3, 4, 3] along axis 1, which is -2
        (void)snprintf(inputs + length, sizeof inputs - length, "%s%s", length > 0 ? " " : "",
                       is_turned ? "turned" : "list");
        model_builder_add_input(m->b, body.graph, name_new(m, name), FLOAT, "3 3");
        add_name(&body, name);
        axes[i] = !is_turned ? 0 : draw(m, 2) == 0 ? 1 : -2;
        directions[i] = (int64_t)draw(m, 2);
    }
    add_block(m, &body);
    give_out(m, &body, carried + rows);
    for (size_t i = 0; i < rows; ++i) {
        row_axes[i] = (int64_t)draw(m, 3);
        row_directions[i] = (int64_t)draw(m, 2);
    }
    name_outputs(m, outputs, carried + rows, wires, sizeof wires);
    Onnx__NodeProto *node = add_node(m, s, "Scan", inputs, wires);
    model_builder_add_body(m->b, node, "body", body.graph);
    model_builder_set_int(m->b, node, "num_scan_inputs", (int64_t)scanned);
    set_ints(m, node, "scan_input_axes", axes, scanned);
    set_ints(m, node, "scan_input_directions", directions, scanned);
    set_ints(m, node, "scan_output_axes", row_axes, rows);
    set_ints(m, node, "scan_output_directions", row_directions, rows);
    for (size_t k = 0; k < carried; ++k) {
        add_name(s, outputs[k]);
    }
    for (size_t i = 0; i < rows; ++i) {
        use_rows(m, s, outputs[carried + i], axes_of_rows[row_axes[i]]);
    }
}

static void add_block(maker *m, scope *s) {
    const size_t count = 1 + draw(m, 3);
    for (size_t i = 0; i < count; ++i) {
        const uint64_t kind = draw(m, s->depth == 0 ? 5 : 8);
        if (kind > 2 || s->depth == DEPTH_MAX) {
            add_simple(m, s);
        } else if (kind == 0) {
            add_if(m, s);
        } else if (kind == 1) {
            add_loop(m, s);
        } else {
            add_scan(m, s);
        }
    }
}

static void add_constant(maker *m, const char *name, int32_t type, size_t rank, const void *bytes,
                         size_t byte_count) {
    const int64_t one = 1;
    model_builder_set_raw(m->b,
                          model_builder_add_initializer(m->b, m->b->graph, name, type, rank, &one),
                          bytes, byte_count);
}

// The inputs that all models have, and constants.
static void add_inputs(maker *m) {
    static const int64_t three = 3;
    static const float zero = 0;
    static const int64_t axes[3] = {0, 1, 2};
    Onnx__GraphProto *graph = m->b->graph;
    model_builder_add_input(m->b, graph, "x", FLOAT, "3 3");
    model_builder_add_input(m->b, graph, "w", FLOAT, "3 3");
    model_builder_add_input(m->b, graph, "list", FLOAT, "4 3 3");
    model_builder_add_input(m->b, graph, "n", INT64, "");
    model_builder_add_input(m->b, graph, "go", BOOL, "");
    add_constant(m, "three", INT64, 0, &three, sizeof three);
    add_constant(m, "zero", FLOAT, 0, &zero, sizeof zero);
    add_constant(m, "axis0", INT64, 1, &axes[0], sizeof axes[0]);
    add_constant(m, "axis1", INT64, 1, &axes[1], sizeof axes[1]);
    add_constant(m, "axis2", INT64, 1, &axes[2], sizeof axes[2]);
}

size_t flow_model_build(model_builder *builder, uint64_t seed) {
    maker m = {.b = builder, .random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    scope s = {.graph = builder->graph};
    static const int64_t turn[3] = {1, 0, 2};
    add_inputs(&m);
    set_ints(&m, add_node(&m, &s, "Transpose", "list", "turned"), "perm", turn, 3);
    add_name(&s, "x");
    add_name(&s, "w");
    const size_t first = s.count;
    while (s.count < first + 2) {
        add_block(&m, &s);
    }
    size_t count = 0;
    for (; count < FLOW_OUTPUT_MAX && count < s.count - first; ++count) {
        char name[NAME_BYTES];
        (void)snprintf(name, sizeof name, "out%zu", count);
        add_node(&m, &s, "Identity", s.names[s.count - 1 - count], name);
        model_builder_add_output(builder, s.graph, name, FLOAT, "3 3");
    }
    return count;
}

size_t flow_model_build_moves(model_builder *builder) {
    maker m = {.b = builder};
    model_builder *b = builder;
    add_inputs(&m);
    Onnx__GraphProto *swap = model_builder_new_graph(b, "body");
    model_builder_add_input(b, swap, "i0", INT64, "");
    model_builder_add_input(b, swap, "c0", BOOL, "");
    model_builder_add_input(b, swap, "s0", FLOAT, "3 3");
    model_builder_add_input(b, swap, "t0", FLOAT, "3 3");
    model_builder_add_node(b, swap, "Identity", "keep0", "c0", "d0");
    model_builder_add_output(b, swap, "d0", BOOL, "");
    model_builder_add_output(b, swap, "t0", FLOAT, "3 3");
    model_builder_add_output(b, swap, "s0", FLOAT, "3 3");
    model_builder_add_body(
        b, add_node(&m, &(scope){.graph = b->graph}, "Loop", "n go x w", "out0 out1"), "body",
        swap);

    Onnx__GraphProto *rows = model_builder_new_graph(b, "body");
    model_builder_add_input(b, rows, "i1", INT64, "");
    model_builder_add_input(b, rows, "c1", BOOL, "");
    model_builder_add_input(b, rows, "s1", FLOAT, "3 3");
    Onnx__NodeProto *branch = model_builder_add_node(b, rows, "If", "choose1", "go", "r1");
    for (int k = 0; k < 2; ++k) {
        Onnx__GraphProto *graph = model_builder_new_graph(b, "branch");
        model_builder_add_node(b, graph, "Identity", "give", k == 0 ? "out1" : "s1",
                               k == 0 ? "g0" : "g1");
        model_builder_add_output(b, graph, k == 0 ? "g0" : "g1", FLOAT, "3 3");
        model_builder_add_body(b, branch, k == 0 ? "then_branch" : "else_branch", graph);
    }
    model_builder_add_node(b, rows, "Identity", "keep1", "c1", "d1");
    model_builder_add_output(b, rows, "d1", BOOL, "");
    model_builder_add_output(b, rows, "r1", FLOAT, "3 3");
    model_builder_add_output(b, rows, "i1", INT64, "");
    model_builder_add_output(b, rows, "s1", FLOAT, "3 3");
    model_builder_add_body(
        b, model_builder_add_node(b, b->graph, "Loop", "rows", "three - x", "out2 out3 out4"),
        "body", rows);

    static const int64_t one = 1;
    Onnx__GraphProto *back = model_builder_new_graph(b, "body");
    model_builder_add_input(b, back, "s2", FLOAT, "3 3");
    model_builder_add_input(b, back, "x2", FLOAT, "3 3");
    model_builder_add_output(b, back, "x2", FLOAT, "3 3");
    model_builder_add_output(b, back, "s2", FLOAT, "3 3");
    Onnx__NodeProto *scan =
        model_builder_add_node(b, b->graph, "Scan", "back", "out1 list", "out5 out6");
    model_builder_add_body(b, scan, "body", back);
    model_builder_set_int(m.b, scan, "num_scan_inputs", 1);
    set_ints(&m, scan, "scan_input_directions", &one, 1);
    set_ints(&m, scan, "scan_output_axes", &one, 1);
    for (size_t i = 0; i < 7; ++i) {
        char name[8];
        (void)snprintf(name, sizeof name, "out%d", (int)i);
        model_builder_add_output(b, b->graph, name, i == 3 ? INT64 : FLOAT, NULL);
    }
    return 7;
}

void flow_feeds_make(flow_feeds *feeds, uint64_t seed, int64_t n, bool go) {
    maker m = {.random = seed};
    float *const lists[] = {feeds->x, feeds->w, feeds->list};
    const size_t counts[] = {9, 9, 36};
    for (size_t l = 0; l < 3; ++l) {
        for (size_t i = 0; i < counts[l]; ++i) {
            lists[l][i] = (float)draw(&m, 2000) / 1000.0f - 1.0f;
        }
    }
    feeds->n = n;
    feeds->go = go;
    const rondo_shape square = {.rank = 2, .extent = {3, 3}};
    const rondo_shape stack = {.rank = 3, .extent = {4, 3, 3}};
    const rondo_binding bindings[FLOW_FEED_COUNT] = {
        BIND_SHAPE("x", RONDO_DTYPE_F32, feeds->x, square),
        BIND_SHAPE("w", RONDO_DTYPE_F32, feeds->w, square),
        BIND_SHAPE("list", RONDO_DTYPE_F32, feeds->list, stack),
        BIND("n", RONDO_DTYPE_I64, &feeds->n), BIND("go", RONDO_DTYPE_BOOL, &feeds->go)};
    memcpy(feeds->bindings, bindings, sizeof bindings);
}
