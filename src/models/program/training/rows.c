// program/training/rows.c — tables of which a step reads and changes the rows that were looked up,
// and no others. See step_parts.h and rondo/training.h.
//
// With plain SGD what is added to a row is added for each of its places in the ids. All else needs
// the sum of a row's parts first, without a table of gradients:
//
//   slot[ids] = 0, 1, 2 ...      one of a row's places stays: its owner
//   owner     = slot[ids]        the same for all places of a row
//   sums[owner] += change        as many rows as ids
//   change    = sums[owner]
//
// Then all places of a row compute the same, and write it to the same place.
// SPDX-License-Identifier: Apache-2.0
#include "program/edit.h"
#include "program/training/step_parts.h"

#define E(...) RONDO__EMIT(&step->g, __VA_ARGS__)

// What is looked up, a row for each place.
typedef struct places {
    int32_t ids;     // [places]
    int32_t tuples;  // [places, 1]
    rondo_shape table;
} places;

static int32_t num(rondo__step *step, double number, int32_t like) {
    return rondo__gradient_number(&step->g, number, like);
}

static int32_t as_tuples(rondo__step *step, int32_t ids) {
    return E("Unsqueeze", ids, rondo__gradient_int(&step->g, -1));
}

static int32_t add_to(rondo__step *step, int32_t table, int32_t tuples, int32_t rows) {
    return rondo__gradient_set_string(&step->g, E("ScatterND", table, tuples, rows), "reduction",
                                      "add");
}

// `rows`, of the ids' shape and the table's, as [places, ...].
static int32_t flatten(rondo__step *step, const places *p, int32_t rows) {
    int64_t extents[RONDO_RANK_MAX] = {-1};
    for (int32_t d = 1; d < p->table.rank; ++d) {
        extents[d] = p->table.extent[d];
    }
    return rondo__gradient_reshape(&step->g, rows, extents, (size_t)p->table.rank);
}

static int32_t choose(rondo__step *step, int32_t now, int32_t before) {
    return step->applies >= 0 ? E("Where", step->applies, now, before) : now;
}

static void add_rows(rondo__step *step, const rondo__trained *t) {
    rondo__gradient *g = &step->g;
    const int32_t change = choose(step, t->change, num(step, 0.0, t->change));
    const int32_t rate = rondo__gradient_cast_like(g, E("Neg", step->rate), t->weight);
    const int32_t ids = rondo__gradient_cast(g, t->ids, RONDO_DTYPE_I64);
    const int32_t tuples = as_tuples(step, ids);
    rondo__step_update(step, t->weight, add_to(step, t->weight, tuples, E("Mul", change, rate)));
}

// A state of the table's shape, the rows of it that were looked up, and what becomes of them.
typedef struct row_state {
    int32_t variable, before, now;
} row_state;

static row_state add_state(rondo__step *step, const rondo__trained *t, const places *p,
                           const char *what) {
    const rondo__value *weight = &step->program->values[t->weight];
    row_state s = {.now = RONDO__VALUE_NONE};
    s.variable = rondo__step_add_state(step, weight->name, what, weight->dtype, t->weight, 0.0);
    s.before = E("Gather", s.variable, p->ids);
    return s;
}

static void put(rondo__step *step, const places *p, int32_t variable, int32_t before, int32_t now) {
    rondo__step_update(step, variable,
                       E("ScatterND", variable, p->tuples, choose(step, now, before)));
}

static int32_t go_part(rondo__step *step, int32_t before, int32_t to, double share) {
    return E("Add", before, E("Mul", E("Sub", to, before), num(step, share, before)));
}

// As SparseAdam: epsilon joins the root that is not corrected.
static int32_t find_adam(rondo__step *step, const rondo__trained *t, int32_t old, int32_t change,
                         row_state *mean, row_state *square) {
    const rondo_minimize_options *o = &step->options;
    if (step->rows_size < 0) {
        const int32_t root = E("Sqrt", rondo__step_correction(step, o->beta2));
        step->rows_size =
            E("Neg", E("Div", E("Mul", step->rate, root), rondo__step_correction(step, o->beta1)));
    }
    mean->now = go_part(step, mean->before, change, 1.0 - o->beta1);
    square->now = go_part(step, square->before, E("Mul", change, change), 1.0 - o->beta2);
    const int32_t below = E("Add", E("Sqrt", square->now), num(step, o->epsilon, old));
    const int32_t size = rondo__step_narrow(step, step->rows_size, t->weight);
    return E("Add", old, E("Mul", E("Div", mean->now, below), size));
}

static int32_t find_rate(rondo__step *step, const rondo__trained *t) {
    if (step->size < 0) {
        step->size = E("Neg", step->rate);
    }
    return rondo__step_narrow(step, step->size, t->weight);
}

static int32_t find_adagrad(rondo__step *step, const rondo__trained *t, int32_t old, int32_t change,
                            row_state *square) {
    square->now = E("Add", square->before, E("Mul", change, change));
    const int32_t below = E("Add", E("Sqrt", square->now), num(step, step->options.epsilon, old));
    return E("Add", old, E("Mul", E("Div", change, below), find_rate(step, t)));
}

static int32_t find_momentum(rondo__step *step, const rondo__trained *t, int32_t old,
                             int32_t change, row_state *momentum) {
    const rondo_minimize_options *o = &step->options;
    const int32_t kept = E("Mul", momentum->before, num(step, o->momentum, old));
    const int32_t part =
        o->dampening == 0.0 ? change : E("Mul", change, num(step, 1.0 - o->dampening, old));
    momentum->now = E("Add", kept, part);
    const int32_t way = o->nesterov
                            ? E("Add", change, E("Mul", momentum->now, num(step, o->momentum, old)))
                            : momentum->now;
    return E("Add", old, E("Mul", way, find_rate(step, t)));
}

static void apply_sums(rondo__step *step, const rondo__trained *t) {
    rondo__gradient *g = &step->g;
    const rondo_optimizer optimizer = step->options.optimizer;
    const char *name = step->program->values[t->weight].name;
    const bool is_adam = optimizer == RONDO_OPTIMIZER_ADAM || optimizer == RONDO_OPTIMIZER_ADAMW;
    static const int64_t line = -1;
    places p = {.ids = RONDO__VALUE_NONE};
    row_state first = {0};
    row_state second = {0};
    int32_t next;
    (void)rondo__value_get_shape(&step->program->values[t->weight], &p.table);
    const rondo_shape count = {1, {p.table.extent[0]}};
    p.ids = rondo__gradient_reshape(g, rondo__gradient_cast(g, t->ids, RONDO_DTYPE_I64), &line, 1);
    p.tuples = as_tuples(step, p.ids);
    const int32_t slot =
        rondo__step_add_shaped_state(step, name, "slot", RONDO_DTYPE_I64, &count, 0.0);
    const int32_t slots = E("ScatterND", slot, p.tuples, rondo__gradient_count_up(g, p.ids));
    const int32_t owner = E("Gather", slots, p.ids);
    const int32_t parts = flatten(step, &p, t->change);
    const int32_t sums =
        add_to(step, rondo__gradient_fill_like(g, 0.0, parts), as_tuples(step, owner), parts);
    const int32_t change = E("Gather", sums, owner);
    const int32_t old = flatten(step, &p, t->rows);
    if (is_adam) {
        first = add_state(step, t, &p, "mean");
        second = add_state(step, t, &p, "square");
        next = find_adam(step, t, old, change, &first, &second);
        put(step, &p, second.variable, second.before, second.now);
    } else if (optimizer == RONDO_OPTIMIZER_ADAGRAD) {
        first = add_state(step, t, &p, "square");
        next = find_adagrad(step, t, old, change, &first);
    } else {
        first = add_state(step, t, &p, "momentum");
        next = find_momentum(step, t, old, change, &first);
    }
    put(step, &p, first.variable, first.before, first.now);
    put(step, &p, t->weight, old, next);
    rondo__step_update(step, slot, slots);
}

void rondo__step_apply_rows(rondo__step *step, const rondo__trained *trained) {
    const rondo_minimize_options *o = &step->options;
    const size_t first = step->program->node_count;
    const rondo__place_mark place = step->program->nodes[trained->gather].place;
    if (o->optimizer == RONDO_OPTIMIZER_SGD && o->momentum == 0.0) {
        add_rows(step, trained);
    } else {
        apply_sums(step, trained);
    }
    for (size_t n = first; n < step->program->node_count; ++n) {
        step->program->nodes[n].place = place;
    }
}
