// Tables of which the rows that were looked up change alone, with their states: to the bits of
// PyTorch's SparseAdam and Adagrad, and what plain loops compute; what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rondo/models.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/variables_world.h"
#include "training/training_golden.h"

enum { ROWS = 9, COLUMNS = 5, LOOKED_UP = 6, STEPS = 12 };

// Some rows twice or three times; rows 2 and 6 never.
static void choose_ids(int step, int64_t *ids) {
    static const int64_t lists[3][LOOKED_UP] = {
        {7, 3, 7, 8, 0, 7}, {1, 1, 4, 3, 5, -1}, {0, 5, 5, 4, 1, 3}};
    memcpy(ids, lists[step % 3], sizeof lists[0]);
}

// loss = sum(table[ids] * x): the gradient of a row is the sum of its x. Ids [3, 2], or [places].
static rondo_builder *begin_table(bool has_grid, float *table) {
    const rondo_port ids = {.struct_size = sizeof ids,
                            .name = "ids",
                            .dtype = RONDO_DTYPE_I64,
                            .rank = has_grid ? 2 : 1,
                            .extent = {has_grid ? 3 : -1, has_grid ? 2 : 0}};
    const rondo_port x = {.struct_size = sizeof x,
                          .name = "x",
                          .dtype = RONDO_DTYPE_F32,
                          .rank = has_grid ? 3 : 2,
                          .extent = {has_grid ? 3 : -1, has_grid ? 2 : COLUMNS, COLUMNS}};
    const rondo_tensor tensor = {
        .dtype = RONDO_DTYPE_F32, .shape = {2, {ROWS, COLUMNS}}, .data = table};
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &ids));
    OK(rondo_builder_add_input(b, &x));
    OK(rondo_builder_add_parameter(b, "table", &tensor, RONDO_PARAMETER_COPIED));
    OK(rondo_builder_add_embedding(b, "ids", "table", "rows"));
    build_op(b, "Mul", "rows", "x", "p");
    build_node(b, "ReduceSum", "p", "loss", &WITH(ATTRIBUTE_INT("keepdims", 0)));
    OK(rondo_builder_add_output(b, "loss", NULL));
    return b;
}

static void open_world(rondo_builder *b, variables_world *w) {
    w->program = build_finish(b);
    OK(rondo_device_open(on_devices_get_name(), &w->device));
    OK(rondo_executor_create(w->program, w->device, NULL, &w->executor));
}

static void run_step(const variables_world *w, bool has_grid, int step, float *x) {
    int64_t ids[LOOKED_UP];
    choose_ids(step, ids);
    const rondo_shape flat[2] = {{1, {LOOKED_UP}}, {2, {LOOKED_UP, COLUMNS}}};
    const rondo_shape grid[2] = {{2, {3, 2}}, {3, {3, 2, COLUMNS}}};
    const rondo_shape *shapes = has_grid ? grid : flat;
    const rondo_binding feeds[] = {BIND_SHAPE("ids", RONDO_DTYPE_I64, ids, shapes[0]),
                                   BIND_SHAPE("x", RONDO_DTYPE_F32, x, shapes[1])};
    OK(rondo_executor_run(w->executor, feeds, 2, NULL, 0));
}

#define BASE(kind, rate) \
    .struct_size = sizeof(rondo_minimize_options), .optimizer = (kind), .learning_rate = (rate)
static const char *const all_tables[] = {"tab*"};
#define BY_ROWS .rows = all_tables, .rows_count = 1

// What a step makes of a row, by plain loops in f32; each operation is rounded by itself.
typedef struct plain {
    float table[ROWS * COLUMNS], momentum[ROWS * COLUMNS];
} plain;

static void step_plainly(const rondo_minimize_options *o, int step, const float *x, plain *p) {
    int64_t ids[LOOKED_UP];
    bool is_done[ROWS] = {false};
    choose_ids(step, ids);
    for (int k = 0; k < LOOKED_UP; ++k) {
        const int64_t row = ids[k] < 0 ? ids[k] + ROWS : ids[k];
        for (int c = 0; c < COLUMNS && !is_done[row]; ++c) {
            volatile float sum = 0.0f;
            for (int j = 0; j < LOOKED_UP; ++j) {
                sum += ids[j] == ids[k] ? x[j * COLUMNS + c] : 0.0f;
            }
            float *m = &p->momentum[row * COLUMNS + c];
            volatile float kept = *m * (float)o->momentum;
            volatile float part = o->dampening != 0.0 ? sum * (float)(1.0 - o->dampening) : sum;
            *m = kept + part;
            volatile float ahead = *m * (float)o->momentum;
            volatile float way = o->nesterov ? sum + ahead : *m;
            volatile float moved = way * (float)-o->learning_rate;
            p->table[row * COLUMNS + c] += moved;
        }
        is_done[row] = true;
    }
}

// PyTorch's square root is one unit off here and there, which shows where it divides by one alone.
static void expect_bits(const char *name, const float *have, const unsigned *want) {
    const float most = strstr(name, "adagrad") != NULL ? 1.2e-7f : 0.0f;
    for (size_t i = 0; i < ROWS * COLUMNS; ++i) {
        float wanted;
        memcpy(&wanted, &want[i], sizeof wanted);
        if (!(fabsf(have[i] - wanted) <= most * fabsf(wanted))) {
            fail_msg("%s: element %zu is %.9g, not %.9g", name, i, (double)have[i], (double)wanted);
        }
    }
}

TEST(rows_change_as_in_pytorch) {
    static const struct {
        const char *name;
        const unsigned *bits;
        rondo_minimize_options options;
        bool is_dense;  // without options.rows
    } cases[] = {
        {"sparse_adam", golden_sparse_adam, {BASE(RONDO_OPTIMIZER_ADAM, 0.01), BY_ROWS}, false},
        {"sparse_adam", golden_sparse_adam, {BASE(RONDO_OPTIMIZER_ADAMW, 0.01), BY_ROWS}, false},
        {"sparse_adam_betas",
         golden_sparse_adam_betas,
         {BASE(RONDO_OPTIMIZER_ADAM, 0.01), BY_ROWS, .beta1 = 0.3, .beta2 = 0.9, .epsilon = 0.1},
         false},
        {"sparse_adagrad",
         golden_sparse_adagrad,
         {BASE(RONDO_OPTIMIZER_ADAGRAD, 0.1), BY_ROWS},
         false},
        {"adagrad", golden_adagrad, {BASE(RONDO_OPTIMIZER_ADAGRAD, 0.1)}, true},
        {"adagrad_decay",
         golden_adagrad_decay,
         {BASE(RONDO_OPTIMIZER_ADAGRAD, 0.1), .weight_decay = 0.05, .epsilon = 0.01},
         true},
        {"dense_adam", golden_dense_adam, {BASE(RONDO_OPTIMIZER_ADAM, 0.01)}, true},
    };
    for (size_t c = 0; c < 2 * sizeof cases / sizeof *cases; ++c) {
        const bool has_grid = c % 2 != 0;
        float values[ROWS * COLUMNS];
        float x[LOOKED_UP * COLUMNS];
        variables_world w;
        variables_fill(1, ROWS * COLUMNS, 1.0, values);
        rondo_builder *b = begin_table(has_grid, values);
        OK(rondo_builder_minimize(b, "loss", &cases[c / 2].options));
        open_world(b, &w);
        for (int step = 0; step < STEPS; ++step) {
            variables_fill(100 + (uint32_t)step, LOOKED_UP * COLUMNS, 0.3, x);
            run_step(&w, has_grid, step, x);
        }
        variables_read_all(w.executor, "table", values);
        expect_bits(cases[c / 2].name, values, cases[c / 2].bits);
        variables_close(&w);
    }
}

// Momentum of rows alone is Rondo's own rule; a step that is left out changes nothing.
TEST(momentum_of_rows) {
    const rondo_minimize_options cases[] = {
        {BASE(RONDO_OPTIMIZER_SGD, 0.1), BY_ROWS, .momentum = 0.9},
        {BASE(RONDO_OPTIMIZER_SGD, 0.1), BY_ROWS, .momentum = 0.8, .dampening = 0.5},
        {BASE(RONDO_OPTIMIZER_SGD, 0.1), BY_ROWS, .momentum = 0.9, .nesterov = true},
        {BASE(RONDO_OPTIMIZER_SGD, 0.1), BY_ROWS, .momentum = 0.9, .scale_loss = true},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
        const rondo_minimize_options *o = &cases[c];
        plain p = {.momentum = {0}};
        float now[ROWS * COLUMNS];
        float x[LOOKED_UP * COLUMNS];
        variables_world w;
        variables_fill(1, ROWS * COLUMNS, 1.0, p.table);
        rondo_builder *b = begin_table(false, p.table);
        OK(rondo_builder_minimize(b, "loss", o));
        open_world(b, &w);
        for (int step = 0; step < STEPS; ++step) {
            variables_fill(100 + (uint32_t)step, LOOKED_UP * COLUMNS, 0.3, x);
            const bool is_bad = o->scale_loss && step == 5;
            x[3] = is_bad ? INFINITY : x[3];
            run_step(&w, false, step, x);
            if (!is_bad) {
                step_plainly(o, step, x, &p);
            }
        }
        variables_read_all(w.executor, "table", now);
        assert_memory_equal(now, p.table, sizeof now);
        variables_read_all(w.executor, "table.momentum", now);
        assert_memory_equal(now, p.momentum, sizeof now);
        variables_close(&w);
    }
}

// ---- tables on the processor --------------------------------------------------------------------

enum { LONG = 300 };

// The same table as above, but long, and placed; loss = sum(table[ids] * w * x), w of the device.
static void train_placed(const char *device, const rondo_minimize_options *how, float *table,
                         float *weight) {
    static float start[LONG * COLUMNS];
    float x[LOOKED_UP * COLUMNS], w[COLUMNS];
    const rondo_tensor tensor = {
        .dtype = RONDO_DTYPE_F32, .shape = {2, {LONG, COLUMNS}}, .data = start};
    const rondo_tensor line = {.dtype = RONDO_DTYPE_F32, .shape = {1, {COLUMNS}}, .data = w};
    rondo_transfer_stats moved = {.struct_size = sizeof moved};
    variables_world v;
    variables_fill(9, LONG * COLUMNS, 1.0, start);
    variables_fill(10, COLUMNS, 1.0, w);
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("ids", RONDO_DTYPE_I64, LOOKED_UP)));
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, LOOKED_UP, COLUMNS)));
    OK(rondo_builder_add_parameter(b, "table", &tensor, RONDO_PARAMETER_COPIED));
    OK(rondo_builder_add_parameter(b, "w", &line, RONDO_PARAMETER_COPIED));
    OK(rondo_builder_begin_place(b, "cpu"));
    OK(rondo_builder_add_embedding(b, "ids", "table", "rows"));
    OK(rondo_builder_end_place(b));
    build_op(b, "Mul", "rows", "w", "q");
    build_op(b, "Mul", "q", "x", "p");
    build_node(b, "ReduceSum", "p", "loss", &WITH(ATTRIBUTE_INT("keepdims", 0)));
    OK(rondo_builder_add_output(b, "loss", NULL));
    OK(rondo_builder_minimize(b, "loss", how));
    v.program = build_finish(b);
    OK(rondo_device_open(device, &v.device));
    OK(rondo_executor_create(v.program, v.device, NULL, &v.executor));
    for (int step = 0; step < STEPS; ++step) {
        variables_fill(100 + (uint32_t)step, LOOKED_UP * COLUMNS, 0.3, x);
        run_step(&v, false, step, x);
    }
    OK(rondo_executor_get_transfers(v.executor, &moved));
    assert_true(moved.to_host.bytes + moved.to_device.bytes < STEPS * sizeof start / 2);
    variables_read_all(v.executor, "table", table);
    variables_read_all(v.executor, "w", weight);
    variables_close(&v);
}

// A table that only ops of the processor read and change lies there: it does not travel, and comes
// to what it does on the host.
TEST(tables_stay_on_the_processor) {
    static float tables[2][LONG * COLUMNS];
    const rondo_minimize_options cases[] = {
        {BASE(RONDO_OPTIMIZER_SGD, 0.1)},
        {BASE(RONDO_OPTIMIZER_ADAM, 0.01), BY_ROWS},
        {BASE(RONDO_OPTIMIZER_SGD, 0.1), BY_ROWS, .momentum = 0.9, .scale_loss = true},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
        float weights[2][COLUMNS];
        train_placed(on_devices_get_name(), &cases[c], tables[0], weights[0]);
        train_placed("host", &cases[c], tables[1], weights[1]);
        for (size_t i = 0; i < LONG * COLUMNS; ++i) {
            assert_true(fabsf(tables[0][i] - tables[1][i]) <= 1e-6f);
        }
        for (size_t i = 0; i < COLUMNS; ++i) {
            assert_true(fabsf(weights[0][i] - weights[1][i]) <= 1e-5f);
        }
    }
}

TEST(other_tables_are_refused) {
    static const struct {
        rondo_minimize_options options;
        const char *words;
    } cases[] = {
        {{BASE(RONDO_OPTIMIZER_ADAM, 0.1), BY_ROWS, .weight_decay = 0.1}, "decay"},
        {{BASE(RONDO_OPTIMIZER_ADAM, 0.1), BY_ROWS, .clip_norm = 1.0}, "clipping"},
        {{BASE(RONDO_OPTIMIZER_SGD, 0.1), BY_ROWS, .accumulate = 2}, "accumulation"},
        {{BASE(RONDO_OPTIMIZER_ADAM, 0.1), BY_ROWS, .average_ranks = true}, "ranks"},
    };
    float table[ROWS * COLUMNS] = {0};
    rondo_builder *b = begin_table(false, table);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
        EXPECT(UNSUPPORTED, cases[c].words, rondo_builder_minimize(b, "loss", &cases[c].options));
    }
    const rondo_minimize_options none = {BASE(RONDO_OPTIMIZER_ADAM, 0.1),
                                         .rows = (const char *const[]){"none"}, .rows_count = 1};
    EXPECT(INVALID, "\"none\"", rondo_builder_minimize(b, "loss", &none));
    const rondo_minimize_options by_rows = {BASE(RONDO_OPTIMIZER_ADAM, 0.1), BY_ROWS};
    OK(rondo_builder_add_mean(b, "table", "mean"));
    build_op(b, "Add", "loss", "mean", "both");
    EXPECT(UNSUPPORTED, "one Gather", rondo_builder_minimize(b, "both", &by_rows));
    rondo_builder_destroy(b);
}

// What is named is trained, whole; the others keep their bits, and have no states.
TEST(patterns_choose_parameters) {
    static const char *const names[] = {"left.weight", "left.bias", "right.weight", "l"};
    static const char *const patterns[] = {"left.*", "?"};
    const rondo_minimize_options options = {BASE(RONDO_OPTIMIZER_ADAM, 0.1), .train = patterns,
                                            .train_count = 2};
    const rondo_shape shape = {1, {COLUMNS}};
    float start[COLUMNS] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f};
    rondo_program *model, *trained;
    rondo_parameter list[4];
    size_t count;
    variables_world w;
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, COLUMNS)));
    OK(rondo_builder_add_mean(b, "x", "sum0"));
    for (size_t i = 0; i < 4; ++i) {
        char products[2][8], sums[2][8];
        (void)snprintf(products[0], 8, "p%zu", i);
        (void)snprintf(products[1], 8, "m%zu", i);
        (void)snprintf(sums[0], 8, "sum%zu", i);
        (void)snprintf(sums[1], 8, "sum%zu", i + 1);
        OK(rondo_builder_add_constant(b, names[i], RONDO_DTYPE_F32, &shape, start));
        build_op(b, "Mul", "x", names[i], products[0]);
        OK(rondo_builder_add_mean(b, products[0], products[1]));
        build_op(b, "Add", sums[0], products[1], sums[1]);
    }
    OK(rondo_builder_add_output(b, "sum4", NULL));
    model = build_finish(b);
    OK(rondo_builder_create_from(model, &b));
    OK(rondo_builder_minimize(b, "sum4", &options));
    open_world(b, &w);
    const rondo_binding feed = BIND_SHAPE("x", RONDO_DTYPE_F32, start, shape);
    OK(rondo_executor_run(w.executor, &feed, 1, NULL, 0));
    OK(rondo_executor_get_trained(w.executor, model, &trained));
    OK(rondo_program_list_parameters(trained, 4, list, &count));
    assert_int_equal(count, 4);
    for (size_t i = 0; i < 4; ++i) {
        const bool is_trained = strcmp(list[i].name, "right.weight") != 0;
        for (size_t k = 0; k < COLUMNS; ++k) {
            const bool is_same = ((const float *)list[i].tensor->data)[k] == start[k];
            assert_int_equal(is_same, !is_trained);
        }
    }
    float kept[COLUMNS];
    variables_read_all(w.executor, "left.bias.mean", kept);
    rondo_tensor none;
    EXPECT(INVALID, "right.weight.mean",
           rondo_executor_get_variable(w.executor, "right.weight.mean", &none));
    rondo_program_destroy(trained);
    rondo_program_destroy(model);
    variables_close(&w);
}

int main(void) {
    return ON_DEVICES();
}
