// program/passes/pass_rest.c — puts ops that wait for shapes into bodies, which are planned once
// their shapes are known.
//
//   before   x ── NonZero ── Transpose ── Gather ── MatMul ── ReduceSum ── Sqrt ── y
//   after    x ── NonZero ── rondo.Rest ───────────────────────────────── Sqrt ── y
//                              body: Transpose, Gather, MatMul, ReduceSum
//
// An op *waits* when the shape of an input or an output depends on data. Some ops always stay
// outside; they are *walls*: control flow (but an If that shapes decide, whose branch the body
// takes), strings and sequences, and ops like NonZero, whose shape no body could know ahead either.
// An op with known shapes between two ops that wait joins their body, so that shape arithmetic
// (Shape, Gather, Concat, Reshape) is in the body that it serves.
//
// If a body's results stay on a GPU (`stays_on_device`), an op like NonZero whose input waits ends
// a body: there its input's shape is known, and its kernel runs behind the others. Ops that read
// its result are in a later phase. On a GPU a single op is a body, too, if it would read data of
// the GPU.
//
// A body must not depend on itself through a wall. So each node has a phase: how many walls that
// depend on ops that wait lie on the longest way to it. Edges never lead to an earlier phase; what
// is between two nodes of one phase is of that phase and no wall. In a phase, nodes belong to one
// body that are joined by an edge, or read shapes of one maker, which change together.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/support.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/shapes/specialise.h"
#include "tensor/elements.h"

// Facts about one node.
typedef struct mark {
    bool is_wall;
    bool waits;
    bool ends;       // a wall that may be the last of a body
    bool is_behind;  // it waits, ends a body, or depends on a node that does
    bool has_front;  // a node of its phase that waits comes before it, or is itself one
    bool has_back;   // the same, behind it
    int32_t phase;
    int32_t body;  // a node of the same body, nearer to its first one; itself: the first; -1: none
    int32_t next;  // of the same body, behind it; -1: it is the last
    int32_t reader;  // of what it makes in an unknown shape, the last one met; -1: none
} mark;

static bool is_object(const rondo_program *program, int32_t value) {
    const rondo_dtype dtype = value >= 0 ? program->values[value].dtype : RONDO_DTYPE_NONE;
    return dtype != RONDO_DTYPE_NONE && !rondo__dtype_is_plain(dtype);
}

static int32_t get_maker(const rondo_program *program, int32_t value) {
    return value >= 0 ? program->values[value].producer : -1;
}

// Whether a node reads only what comes from outside the program, all of it of known shape.
static bool is_fed(const rondo_program *program, const rondo__node *node) {
    for (size_t i = 0; i < node->input_count; ++i) {
        if (!rondo__program_is_known(program, node->inputs[i]) ||
            get_maker(program, node->inputs[i]) >= 0) {
            return false;
        }
    }
    return true;
}

// Whether a value follows from shapes alone, so that a body knows it when it is planned.
static bool follows_from_shapes(const rondo_program *program, int32_t value, int depth) {
    enum { DEPTH_MAX = 8 };
    const int32_t maker = get_maker(program, value);
    if (value < 0 || rondo__value_is_constant(&program->values[value])) {
        return true;
    }
    if (maker < 0 || depth >= DEPTH_MAX) {
        return false;
    }
    const rondo__node *node = &program->nodes[maker];
    const uint32_t flags = node->op.def->flags;
    bool follows = (flags & (RONDO__OP_CONTROL | RONDO__OP_RANDOM | RONDO__OP_IMPURE)) == 0 &&
                   node->op.def->bound == NULL;
    for (size_t i = 0; i < node->input_count && follows; ++i) {
        follows = (flags & RONDO__OP_SHAPE_ONLY) != 0 ||
                  follows_from_shapes(program, node->inputs[i], depth + 1);
    }
    return follows;
}

// Whether a body will have a branch of this If in its place.
static bool is_decided_inside(const rondo_program *program, const rondo__node *node) {
    return rondo__node_is(node, RONDO__OP_If) && rondo__branches_may_move(node) &&
           follows_from_shapes(program, node->inputs[0], 0);
}

static void classify(const rondo_program *program, const rondo__node *node,
                     const rondo__rest_options *options, mark *own) {
    const bool is_shaped = node->op.def->bound != NULL;
    bool has_objects = false;
    for (size_t i = 0; i < node->input_count + node->output_count; ++i) {
        const bool is_input = i < node->input_count;
        const int32_t value = is_input ? node->inputs[i] : node->outputs[i - node->input_count];
        has_objects = has_objects || is_object(program, value);
        own->waits = own->waits || !rondo__program_is_known(program, value);
        own->ends = own->ends || (is_input && !rondo__program_is_known(program, value));
    }
    // In a body what still waits with all inputs at hand would wait in a further body, too.
    own->is_wall =
        has_objects || is_shaped ||
        ((node->op.def->flags & RONDO__OP_CONTROL) != 0 && !is_decided_inside(program, node)) ||
        (options->is_body && own->waits && is_fed(program, node));
    own->waits = own->waits && !own->is_wall;
    own->ends = own->ends && is_shaped && !has_objects && options->stays_on_device;
}

// Fills in everything but the bodies.
static void mark_nodes(const rondo_program *program, const rondo__rest_options *options,
                       mark *marks) {
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        mark *own = &marks[n];
        *own = (mark){.body = -1, .next = -1, .reader = -1};
        classify(program, node, options, own);
        for (size_t i = 0; i < node->input_count; ++i) {
            const int32_t maker = get_maker(program, node->inputs[i]);
            const mark *before = maker >= 0 ? &marks[maker] : NULL;
            if (before != NULL) {
                const int32_t phase = before->phase + (before->is_wall && before->is_behind);
                own->phase = phase > own->phase ? phase : own->phase;
                own->is_behind = own->is_behind || before->is_behind;
            }
        }
        own->is_behind = own->is_behind || own->waits || own->ends;
        own->has_front = own->waits || own->ends;
        for (size_t i = 0; i < node->input_count && !own->is_wall; ++i) {
            const int32_t maker = get_maker(program, node->inputs[i]);
            own->has_front = own->has_front || (maker >= 0 && marks[maker].has_front &&
                                                marks[maker].phase == own->phase);
        }
    }
    for (size_t n = program->node_count; n-- > 0;) {
        const rondo__node *node = &program->nodes[n];
        marks[n].has_back = marks[n].has_back || marks[n].waits || marks[n].ends;
        for (size_t i = 0; i < node->input_count && marks[n].has_back; ++i) {
            const int32_t maker = get_maker(program, node->inputs[i]);
            if (maker >= 0 && !marks[maker].is_wall && marks[maker].phase == marks[n].phase) {
                marks[maker].has_back = true;
            }
        }
    }
}

static int32_t find_first(mark *marks, int32_t node) {
    while (marks[node].body != node) {
        marks[node].body = marks[marks[node].body].body;
        node = marks[node].body;
    }
    return node;
}

static void join(mark *marks, int32_t a, int32_t b) {
    a = find_first(marks, a);
    b = find_first(marks, b);
    marks[a > b ? a : b].body = a < b ? a : b;
}

static void form_bodies(const rondo_program *program, mark *marks) {
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        if (!marks[n].has_front || !marks[n].has_back) {
            continue;
        }
        marks[n].body = (int32_t)n;
        for (size_t i = 0; i < node->input_count; ++i) {
            const int32_t maker = get_maker(program, node->inputs[i]);
            if (maker < 0) {
                continue;
            }
            const bool is_inside = marks[maker].body >= 0 && marks[maker].phase == marks[n].phase;
            const int32_t reader = marks[maker].reader;
            if (is_inside) {
                join(marks, maker, (int32_t)n);
            } else if (!rondo__program_is_known(program, node->inputs[i])) {
                if (reader >= 0 && marks[reader].phase == marks[n].phase) {
                    join(marks, reader, (int32_t)n);
                }
                marks[maker].reader = (int32_t)n;
            }
        }
    }
}

// Whether one op alone is worth a plan: it multiplies matrices.
static bool is_heavy(const rondo_program *program, const rondo__node *node) {
    bool is_product = rondo__node_is(node, RONDO__OP_MatMul);
    for (size_t i = 1; i < node->input_count && !is_product; ++i) {
        const rondo__value *value = node->inputs[i] >= 0 ? &program->values[node->inputs[i]] : NULL;
        is_product = value != NULL && rondo__value_is_constant(value) &&
                     rondo__dtype_is_float(value->constant.dtype) && value->constant.shape.rank > 1;
    }
    return is_product;
}

// ---- building a body --------------------------------------------------------------------------

typedef struct builder {
    rondo_program *program;
    const rondo__rest_options *options;
    mark *marks;
    size_t node_count;  // that have marks; behind them are nodes that hold bodies
    rondo__uses uses;
    int32_t *inner;  // the body's number of each value; -1: it has none
    rondo_program *body;
    rondo__op op;     // the node that will hold the body
    int32_t *inputs;  // its lists
    int32_t *outputs;
    int32_t *list;              // for the inputs and outputs of one node
    rondo__tensor_info *infos;  // the same
    size_t input_count;
    size_t output_count;
} builder;

static void builder_deinit(builder *b) {
    rondo__uses_deinit(&b->uses);
    rondo__free(b->inner);
    rondo__free(b->inputs);
    rondo__free(b->outputs);
    rondo__free(b->list);
    rondo__free(b->infos);
    rondo_program_destroy(b->body);
    rondo__op_deinit(&b->op);
}

static rondo_status builder_init(rondo_program *program, const rondo__rest_options *options,
                                 mark *marks, builder *out_builder) {
    builder b = {
        .program = program, .options = options, .marks = marks, .node_count = program->node_count};
    size_t widest = 0;
    for (size_t n = 0; n < program->node_count; ++n) {
        const size_t width = program->nodes[n].input_count + program->nodes[n].output_count;
        widest = width > widest ? width : widest;
    }
    b.inner = rondo__calloc(program->value_count + 1, sizeof *b.inner);
    b.inputs = rondo__calloc(program->value_count + 1, sizeof *b.inputs);
    b.outputs = rondo__calloc(program->value_count + 1, sizeof *b.outputs);
    b.list = rondo__calloc(widest + 1, sizeof *b.list);
    b.infos = rondo__calloc(widest + 1, sizeof *b.infos);
    if (b.inner == NULL || b.inputs == NULL || b.outputs == NULL || b.list == NULL ||
        b.infos == NULL || rondo__uses_init(program, &b.uses) != RONDO_STATUS_OK) {
        builder_deinit(&b);
        return RONDO_STATUS_NO_MEMORY;
    }
    memset(b.inner, 0xff, program->value_count * sizeof *b.inner);
    *out_builder = b;
    return RONDO_STATUS_OK;
}

// The body's number of what a node of it reads: a constant is shared, another value is captured.
static rondo_status enter_value(builder *b, int32_t value, int32_t *out_inner) {
    const rondo__value *outer = value >= 0 ? &b->program->values[value] : NULL;
    *out_inner = RONDO__VALUE_NONE;
    if (outer == NULL) {
        return RONDO_STATUS_OK;
    }
    if (b->inner[value] < 0 && rondo__value_is_constant(outer)) {
        RETURN_IF_ERROR(
            rondo__program_add_constant(b->body, outer->name, &outer->constant, &b->inner[value]));
    } else if (b->inner[value] < 0) {
        RETURN_IF_ERROR(
            rondo__program_add_shaped(b->body, outer->name, outer->dtype, NULL, &b->inner[value]));
        RETURN_IF_ERROR(rondo__program_add_captured(b->body, b->inner[value]));
        b->inputs[b->input_count++] = value;
    }
    *out_inner = b->inner[value];
    return RONDO_STATUS_OK;
}

// Whether anyone outside the body reads a value that a node of it makes.
static bool is_used_outside(const builder *b, int32_t value, int32_t first) {
    bool is_used = b->uses.is_output[value];
    for (size_t u = b->uses.first[value]; u < b->uses.first[value + 1] && !is_used; ++u) {
        const int32_t user = (int32_t)b->uses.users[u];
        is_used = b->marks[user].body < 0 || find_first(b->marks, user) != first;
    }
    return is_used;
}

// Moves the op of a node into the body. The node itself keeps its lists until it is removed.
static rondo_status move_node(builder *b, size_t n, int32_t first) {
    rondo__node *node = &b->program->nodes[n];
    int32_t *const outputs = b->list + node->input_count;
    for (size_t i = 0; i < node->input_count; ++i) {
        RETURN_IF_ERROR(enter_value(b, node->inputs[i], &b->list[i]));
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        const int32_t value = node->outputs[i];
        outputs[i] = RONDO__VALUE_NONE;
        if (value < 0) {
            continue;
        }
        const rondo__value *outer = &b->program->values[value];
        RETURN_IF_ERROR(
            rondo__program_add_shaped(b->body, outer->name, outer->dtype, NULL, &b->inner[value]));
        outputs[i] = b->inner[value];
        if (is_used_outside(b, value, first)) {
            RETURN_IF_ERROR(rondo__program_add_output(b->body, outputs[i]));
            b->outputs[b->output_count++] = value;
        }
    }
    RETURN_IF_ERROR(rondo__program_add_node(b->body, &node->op, b->list, node->input_count,
                                            node->explicit_count, outputs, node->output_count));
    b->body->nodes[b->body->node_count - 1].precision = node->precision;
    b->body->nodes[b->body->node_count - 1].place = node->place;
    return RONDO_STATUS_OK;
}

// Puts the body into a node behind all others, which takes the name of the body's first.
static rondo_status add_rest(builder *b) {
    rondo__attribute attribute = {.kind = RONDO__ATTRIBUTE_BODY, .body = b->body};
    b->op = (rondo__op){.opset = RONDO_OP_OPSET_MAX};
    b->op.def = rondo__op_get_def(RONDO__FUSED_Rest);
    b->op.name = rondo__strdup(b->body->nodes[0].op.name);
    attribute.name = rondo__strdup("rest");
    rondo_status status = attribute.name == NULL || b->op.name == NULL
                              ? RONDO_STATUS_NO_MEMORY
                              : rondo__op_take_attribute(&b->op, &attribute);
    rondo__attribute_deinit(&attribute);
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_add_node(b->program, &b->op, b->inputs, b->input_count, 0,
                                         b->outputs, b->output_count);
    }
    if (status == RONDO_STATUS_OK) {
        b->body = NULL;  // the node owns it
    }
    return status;
}

// Whether a body would know more of the op's results than is known here: an input's shape, or a
// value that decides one.
static bool gains(const builder *b, const rondo__node *node) {
    bool all_known = true;
    for (size_t i = 0; i < node->input_count; ++i) {
        all_known = all_known && rondo__program_is_known(b->program, node->inputs[i]);
        rondo__program_get_info(b->program, node->inputs[i], &b->infos[i]);
    }
    rondo__infer infer = {.op = &node->op,
                          .input_count = node->input_count,
                          .output_count = node->output_count,
                          .inputs = b->infos,
                          .outputs = b->infos + node->input_count};
    rondo_error saved;
    rondo__error_save(&saved);
    const bool needs_value =
        all_known && rondo__op_infer(&infer) == RONDO_STATUS_OK && infer.needed_inputs != 0;
    rondo__error_restore(&saved);
    return !all_known || needs_value;
}

// Whether a node leaves its results on a GPU: it finds something, or is, or will be, in a body.
static bool leaves_near(const builder *b, size_t n) {
    return n >= b->node_count || b->marks[n].body >= 0 ||
           b->program->nodes[n].op.def->bound != NULL;
}

// Whether an op would read data of a GPU: results that an op there has found, or values made from
// them; or values of known shape that are not shape arithmetic, because they are too large or no
// whole numbers.
static bool reads_near(const builder *b, const rondo__node *node) {
    bool is_near = false;
    for (size_t i = 0; i < node->input_count; ++i) {
        rondo__tensor_info info;
        const int32_t maker = get_maker(b->program, node->inputs[i]);
        rondo__program_get_info(b->program, node->inputs[i], &info);
        const bool is_found = maker >= 0 && !info.is_shape_known && leaves_near(b, (size_t)maker);
        const bool is_data = info.is_shape_known && info.constant == NULL &&
                             info.dtype != RONDO_DTYPE_NONE &&
                             (rondo__dtype_is_float(info.dtype) ||
                              rondo_shape_get_count(&info.shape) > RONDO__VALUE_KEY_COUNT_MAX);
        is_near = is_near || is_found || is_data;
    }
    return is_near;
}

// Makes the body that begins with node `first`, unless it is not worth it.
static rondo_status make_body(builder *b, int32_t first, bool *remove) {
    const mark *marks = b->marks;
    rondo_program *program = b->program;
    const rondo__node *only = &program->nodes[first];
    const bool is_worth_it = marks[first].next >= 0 || is_heavy(program, only) ||
                             (b->options->stays_on_device && reads_near(b, only) && gains(b, only));
    if (!is_worth_it) {
        return RONDO_STATUS_OK;
    }
    b->input_count = 0;
    b->output_count = 0;
    RETURN_IF_ERROR(rondo__program_create("rest", &b->body));
    for (int32_t n = first; n >= 0; n = marks[n].next) {
        RETURN_IF_ERROR(move_node(b, (size_t)n, first));
        remove[n] = true;
    }
    RETURN_IF_ERROR(add_rest(b));
    for (int32_t n = first; n >= 0; n = marks[n].next) {
        const rondo__node *node = &program->nodes[n];
        for (size_t i = 0; i < node->input_count + node->output_count; ++i) {
            const int32_t value =
                i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
            if (value >= 0) {
                b->inner[value] = -1;
            }
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status make_bodies(rondo_program *program, const rondo__rest_options *options,
                                mark *marks) {
    const size_t node_count = program->node_count;
    builder b;
    rondo_status status = builder_init(program, options, marks, &b);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    bool *remove = rondo__calloc(node_count + 1, sizeof *remove);
    status = remove == NULL ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK;
    for (size_t n = 0; n < node_count && status == RONDO_STATUS_OK; ++n) {
        if (marks[n].body == (int32_t)n) {
            status = make_body(&b, (int32_t)n, remove);
        }
    }
    if (remove != NULL) {
        status = rondo__program_finish_rewrite(program, remove, node_count, status);
    }
    rondo__free(remove);
    builder_deinit(&b);
    return status;
}

rondo_status rondo__pass_rest(rondo_program *program, const rondo__rest_options *options) {
    mark *marks = rondo__calloc(program->node_count + 1, sizeof *marks);
    if (marks == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    bool has_bodies = false;
    mark_nodes(program, options, marks);
    form_bodies(program, marks);
    for (size_t n = program->node_count; n-- > 0;) {
        const int32_t first = marks[n].body >= 0 ? find_first(marks, (int32_t)n) : -1;
        if (first >= 0 && first != (int32_t)n) {
            marks[n].next = marks[first].next;
            marks[first].next = (int32_t)n;
        }
        has_bodies = has_bodies || first >= 0;
    }
    const rondo_status status = has_bodies ? make_bodies(program, options, marks) : RONDO_STATUS_OK;
    rondo__free(marks);
    return status;
}
