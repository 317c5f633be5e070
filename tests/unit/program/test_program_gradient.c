// Gradients against finite differences in f64: of every case of the op list whose op has a
// gradient, and of the gradients themselves where they are smooth.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/op.h"
#include "op/support.h"
#include "program/edit.h"
#include "program/gradient/gradient.h"
#include "program/gradient/gradient_parts.h"
#include "support/cases/interpret.h"
#include "support/cases/op_cases.h"
#include "support/expect_ok.h"
#include "support/test.h"
#include "tensor/elements.h"

enum { INPUTS_MAX = 40, SAMPLES = 24, WORK_MAX = 6000 };

typedef struct totals {
    size_t passed, failed, refused, skipped, second;
    rondo__op_id seen[256];  // ops that passed
    size_t seen_count;
} totals;

// A program of one op and the sum of what it makes, each element with a weight of its own.
typedef struct trial {
    rondo_program *program;
    size_t count;                     // of real inputs
    rondo_tensor points[INPUTS_MAX];  // their values, f64
    int32_t xs[INPUTS_MAX];
    int32_t loss;
} trial;

static double weight_at(int64_t i) {
    return 0.3 + 0.1 * (double)((i * 7) % 11);
}

static void make_f64(const rondo_tensor *from, rondo_tensor *out_wide) {
    OK(rondo_tensor_init(RONDO_DTYPE_F64, &from->shape, out_wide));
    rondo__convert_elements(from->dtype, from->data, RONDO_DTYPE_F64, out_wide->data,
                            (size_t)rondo_shape_get_count(&from->shape));
}

static int32_t add_node(rondo_program *program, const char *name, const int32_t *inputs,
                        size_t count) {
    int32_t value;
    OK(rondo__program_add_value(program, "t", &value));
    OK(rondo__program_add_simple(program, "", name, NULL, inputs, count, &value, 1));
    return value;
}

// loss + sum(value * weights)
static int32_t add_loss(rondo_program *program, int32_t loss, int32_t value,
                        const rondo_shape *shape) {
    rondo_tensor weights;
    int32_t constant;
    OK(rondo_tensor_init(RONDO_DTYPE_F64, shape, &weights));
    for (int64_t i = 0; i < rondo_shape_get_count(shape); ++i) {
        ((double *)weights.data)[i] = weight_at(i);
    }
    OK(rondo__program_add_constant(program, "r", &weights, &constant));
    rondo_tensor_deinit(&weights);
    const int32_t product[2] = {value, constant};
    const int32_t weighted = add_node(program, "Mul", product, 2);
    const int32_t sum = add_node(program, "ReduceSum", &weighted, 1);
    OK(rondo__op_set_int(&program->nodes[program->node_count - 1].op, "keepdims", 0));
    const int32_t both[2] = {loss, sum};
    return loss < 0 ? sum : add_node(program, "Add", both, 2);
}

static double run_loss(const trial *t) {
    rondo_tensor output = {0};
    const double *number;
    OK(interpret_program(t->program, t->points, &output));
    number = output.data;
    const double value = *number;
    rondo_tensor_deinit(&output);
    return value;
}

// Shapes of the op's outputs at the points.
static rondo_status find_outputs(const rondo__op *op, const rondo_tensor *const *inputs,
                                 size_t input_count, size_t output_count, rondo_tensor *results) {
    memset(results, 0, output_count * sizeof *results);
    rondo__compute compute = {.op = op,
                              .input_count = input_count,
                              .output_count = output_count,
                              .inputs = inputs,
                              .outputs = results};
    return rondo__op_compute(&compute);
}

static bool is_first_only(const char *name) {
    return strstr(name, "Normalization") != NULL;
}

// Reals that are no operands: the scales of Resize, the weights of classes.
static bool is_setting(const rondo__op *op, size_t input) {
    return (strcmp(op->def->name, "Resize") == 0 && input > 0) ||
           (strstr(op->def->name, "Loss") != NULL && input == 2);
}

// Values so large that differences say nothing.
static bool is_far(const rondo_tensor *wide) {
    for (int64_t i = 0; i < rondo_shape_get_count(&wide->shape); ++i) {
        if (!(fabs(((const double *)wide->data)[i]) < 100.0)) {
            return true;
        }
    }
    return false;
}

static bool trial_init(const rondo__op *op, const rondo_tensor *inputs, size_t input_count,
                       size_t output_count, trial *t) {
    int32_t values[INPUTS_MAX];
    const rondo_tensor *tensors[INPUTS_MAX] = {NULL};
    rondo_tensor constants[INPUTS_MAX] = {{0}};
    rondo_tensor results[INPUTS_MAX];
    int32_t outputs[INPUTS_MAX];
    *t = (trial){.loss = RONDO__VALUE_NONE};
    OK(rondo__program_create("gradient", &t->program));
    for (size_t i = 0; i < input_count; ++i) {
        char name[16];
        (void)snprintf(name, sizeof name, "x%zu", i);
        values[i] = RONDO__VALUE_NONE;
        if (inputs[i].dtype == RONDO_DTYPE_F32 && !is_setting(op, i)) {
            make_f64(&inputs[i], &t->points[t->count]);
            OK(rondo__program_add_value(t->program, name, &values[i]));
            rondo__value_set_shape(&t->program->values[values[i]], RONDO_DTYPE_F64,
                                   &inputs[i].shape);
            OK(rondo__program_add_input(t->program, values[i]));
            t->xs[t->count] = values[i];
            tensors[i] = &t->points[t->count++];
        } else if (inputs[i].dtype != RONDO_DTYPE_NONE) {
            if (inputs[i].dtype == RONDO_DTYPE_F32 && strstr(op->def->name, "Loss") != NULL) {
                make_f64(&inputs[i], &constants[i]);
            } else {
                OK(rondo__tensor_copy(&inputs[i], &constants[i]));
            }
            OK(rondo__program_add_constant(t->program, name, &constants[i], &values[i]));
            tensors[i] = &constants[i];
        }
    }
    rondo_status status = find_outputs(op, tensors, input_count, output_count, results);
    rondo__op copy = {0};
    OK(rondo__op_copy(op, &copy));
    for (size_t i = 0; i < output_count; ++i) {
        OK(rondo__program_add_value(t->program, "y", &outputs[i]));
    }
    OK(rondo__program_add_node(t->program, &copy, values, input_count, input_count, outputs,
                               output_count));
    int64_t work = 0;
    bool has_far = false;
    for (size_t i = 0; status == RONDO_STATUS_OK && i < output_count; ++i) {
        work += rondo_shape_get_count(&results[i].shape);
        if (results[i].dtype == RONDO_DTYPE_F64 && (i == 0 || !is_first_only(op->def->name))) {
            t->loss = add_loss(t->program, t->loss, outputs[i], &results[i].shape);
        }
    }
    for (size_t i = 0; i < output_count; ++i) {
        rondo_tensor_deinit(&results[i]);
    }
    for (size_t i = 0; i < input_count; ++i) {
        work += tensors[i] != NULL ? rondo_shape_get_count(&tensors[i]->shape) : 0;
        rondo_tensor_deinit(&constants[i]);
    }
    for (size_t i = 0; i < t->count; ++i) {
        has_far = has_far || is_far(&t->points[i]);
    }
    if (t->loss >= 0) {
        OK(rondo__program_add_output(t->program, t->loss));
    }
    return status == RONDO_STATUS_OK && !has_far && t->loss >= 0 && t->count > 0 &&
           work <= WORK_MAX;
}

static void trial_deinit(trial *t) {
    for (size_t i = 0; i < t->count; ++i) {
        rondo_tensor_deinit(&t->points[i]);
    }
    rondo_program_destroy(t->program);
}

// (f(x + h) - f(x - h)) / 2h at one element.
static double differ(const trial *t, size_t input, int64_t at) {
    double *x = (double *)t->points[input].data + at;
    const double before = *x;
    const double h = 1e-5;
    *x = before + h;
    const double up = run_loss(t);
    *x = before - h;
    const double down = run_loss(t);
    *x = before;
    return (up - down) / (2.0 * h);
}

// The gradients of `t`, as a program with the inputs of `t`. UNSUPPORTED: there is none.
static rondo_status differentiate(const trial *t, rondo_program **out_program, int32_t *out_xs) {
    const rondo__gradient_request request = {
        .y = t->loss, .seed = RONDO__VALUE_NONE, .xs = t->xs, .x_count = t->count};
    OK(rondo__program_clone(t->program, out_program));
    rondo_status status = rondo__program_add_gradients(*out_program, &request, out_xs);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    (*out_program)->output_count = 0;
    for (size_t i = 0; i < t->count; ++i) {
        OK(rondo__program_add_output(*out_program, out_xs[i]));
    }
    OK(rondo__program_verify(*out_program));
    return RONDO_STATUS_OK;
}

static void note_seen(totals *all, rondo__op_id id) {
    for (size_t i = 0; i < all->seen_count; ++i) {
        if (all->seen[i] == id) {
            return;
        }
    }
    assert_true(all->seen_count < 256);
    all->seen[all->seen_count++] = id;
}

// Compares `gradients` with differences of `t`; prints what is off.
static bool compare(const trial *t, const rondo_program *gradients, const char *what) {
    rondo_tensor results[INPUTS_MAX] = {{0}};
    bool is_good = true;
    const rondo_status status = interpret_program(gradients, t->points, results);
    if (status != RONDO_STATUS_OK) {
        print_message("%s: %s\n", what, rondo_error_get_last()->message);
        return false;
    }
    for (size_t i = 0; i < t->count; ++i) {
        const int64_t count = rondo_shape_get_count(&t->points[i].shape);
        is_good = is_good && rondo_shape_is_equal(&results[i].shape, &t->points[i].shape) &&
                  results[i].dtype == RONDO_DTYPE_F64;
        for (int64_t s = 0; s < SAMPLES && s < count && is_good; ++s) {
            const int64_t at =
                count <= SAMPLES ? s : s * 7919 % count;  // a prime: no element twice
            const double want = differ(t, i, at);
            const double have = ((const double *)results[i].data)[at];
            if (!(fabs(have - want) <= 2e-5 * (1.0 + fabs(want)))) {
                print_message("%s: input %zu, element %lld: %.9g, by differences %.9g\n", what, i,
                              (long long)at, have, want);
                is_good = false;
            }
        }
    }
    for (size_t i = 0; i < t->count; ++i) {
        rondo_tensor_deinit(&results[i]);
    }
    return is_good;
}

// The gradients of a sum over the gradients.
static void try_second(const trial *first, const rondo_program *gradients, const int32_t *dxs,
                       const char *name, totals *all) {
    trial t = *first;
    int32_t second[INPUTS_MAX];
    rondo_program *program = NULL;
    OK(rondo__program_clone(gradients, &t.program));
    t.loss = RONDO__VALUE_NONE;
    for (size_t i = 0; i < t.count; ++i) {
        t.loss = add_loss(t.program, t.loss, dxs[i], &t.points[i].shape);
    }
    t.program->output_count = 0;
    OK(rondo__program_add_output(t.program, t.loss));
    OK(rondo__program_verify(t.program));
    const rondo_status status = differentiate(&t, &program, second);
    if (status == RONDO_STATUS_OK) {
        char what[96];
        (void)snprintf(what, sizeof what, "%s, second order", name);
        const bool is_good = compare(&t, program, what);
        all->second += is_good;
        all->failed += !is_good;
    } else if (strcmp(name, "ReduceProd") == 0 && status == RONDO_STATUS_UNSUPPORTED) {
        all->refused += 1;  // of a long axis, by way of CumProd
    } else {
        print_message("%s, second order: %s\n", name, rondo_error_get_last()->message);
        all->failed += 1;
    }
    rondo_program_destroy(program);
    rondo_program_destroy(t.program);
}

static void try_case(void *user_data, const rondo__op *op, const rondo_tensor *inputs,
                     const bool *is_known, size_t input_count, size_t output_count) {
    totals *all = user_data;
    bool is_zero = false;
    trial t;
    int32_t dxs[INPUTS_MAX];
    (void)is_known;
    if (rondo__gradient_find_rule(op->def, &is_zero) == NULL || input_count > INPUTS_MAX ||
        output_count > INPUTS_MAX || (op->def->flags & RONDO__OP_RANDOM) != 0) {
        return;
    }
    // Of whole numbers it is all jumps.
    if (strcmp(op->def->name, "Mod") == 0 && rondo__op_get_int(op, "fmod", 0) == 0) {
        return;
    }
    const char *filter = getenv("RONDO_TEST_OP");
    if (filter != NULL && strcmp(filter, op->def->name) != 0) {
        return;
    }
    if (!trial_init(op, inputs, input_count, output_count, &t)) {
        all->skipped += 1;
        trial_deinit(&t);
        return;
    }
    rondo_program *gradients = NULL;
    const rondo_status status = differentiate(&t, &gradients, dxs);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        print_message("refused: %s\n", rondo_error_get_last()->message);
        all->refused += 1;
    } else if (status != RONDO_STATUS_OK) {
        print_message("%s: %s\n", op->def->name, rondo_error_get_last()->message);
        all->failed += 1;
    } else if (compare(&t, gradients, op->def->name)) {
        all->passed += 1;
        note_seen(all, op->def->id);
        try_second(&t, gradients, dxs, op->def->name, all);
    } else {
        all->failed += 1;
    }
    rondo_program_destroy(gradients);
    trial_deinit(&t);
}

static void list_unseen(const totals *all) {
    static const rondo__gradient_row *const tables[] = {
        rondo__gradient_rows_elementwise, rondo__gradient_rows_arrange,
        rondo__gradient_rows_reduce,      rondo__gradient_rows_product,
        rondo__gradient_rows_image,       rondo__gradient_rows_norm,
        rondo__gradient_rows_loss,        rondo__gradient_rows_recurrent,
        rondo__gradient_rows_attention,
    };
    size_t unseen = 0;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; ++t) {
        for (const rondo__gradient_row *row = tables[t]; row->op != RONDO__OP_NONE; ++row) {
            bool is_seen = row->rule == NULL;
            for (size_t i = 0; i < all->seen_count; ++i) {
                is_seen = is_seen || all->seen[i] == row->op;
            }
            if (!is_seen) {
                print_message("no case of op %d\n", (int)row->op);
                unseen += 1;
            }
        }
    }
    assert_int_equal(unseen, 0);
}

// What the list of all ops lacks, and what matters to a gradient but to nothing else: steps that
// leave something over, groups, pads that count.
static const op_case more_cases[] = {
    {"Cast", 18, "T[3,4]", "to=11", 1},
    {"CastLike", 18, "T[3,4] T[1]", "", 1},
    {"Acosh", 18, "T[3]:=1.5,2,3", "", 1},
    {"Atanh", 18, "T[4]:=0.5,-0.5,0.1,0.9", "", 1},
    {"Swish", 24, "T[3,5]", "alpha=0.5", 1},
    {"Swish", 24, "T[3,5]", "", 1},
    {"Flatten", 18, "T[2,3,4]", "axis=2", 1},
    {"Squeeze", 18, "T[2,1,4] i64[1]:=1", "", 1},
    {"Squeeze", 11, "T[2,1,4]", "axes=1,", 1},
    {"Unsqueeze", 18, "T[2,4] i64[2]:=0,3", "", 1},
    {"Scatter", 10, "T[3,3] i64[2,3]:=1,0,2,0,2,1 T[2,3]", "", 1},
    {"RMSNormalization", 23, "T[3,5] T[5]", "epsilon=0.01", 1},
    {"RMSNormalization", 23, "T[2,3,5] T[3,5]", "axis=1", 1},
    {"Conv", 18, "T[2,4,9,8] T[6,2,3,2] T[6]", "group=2 strides=3,2 pads=1,0,0,1", 1},
    {"Conv", 18, "T[1,3,9] T[2,3,3]", "strides=2, dilations=2,", 1},
    {"Conv", 18, "T[1,3,6,6,5] T[2,3,2,3,2]", "strides=2,2,2", 1},
    {"Conv", 18, "T[1,2,7,7] T[3,2,3,3]", "auto_pad=SAME_LOWER strides=2,2", 1},
    {"Conv", 18, "T[2,4,5,5] T[4,1,3,3]", "group=4 pads=1,1,1,1", 1},
    {"ConvTranspose", 18, "T[2,4,3,4] T[4,3,3,2] T[6]", "group=2 strides=2,3 pads=1,0,0,1", 1},
    {"ConvTranspose", 18, "T[1,2,4] T[2,3,3]", "strides=3, output_padding=1, dilations=2,", 1},
    {"AveragePool", 19, "T[1,2,7,6]", "kernel_shape=3,2 strides=2,2 pads=1,0,1,1", 1},
    {"AveragePool", 19, "T[1,2,7,6]",
     "kernel_shape=3,2 strides=2,2 pads=1,0,1,1 count_include_pad=1", 1},
    {"AveragePool", 19, "T[1,2,8,6]", "kernel_shape=3,3 strides=2,2 ceil_mode=1", 1},
    {"AveragePool", 19, "T[1,2,8,6]",
     "kernel_shape=3,3 strides=2,2 pads=1,1,0,0 ceil_mode=1 count_include_pad=1", 1},
    {"AveragePool", 19, "T[1,2,5]",
     "kernel_shape=2, auto_pad=SAME_UPPER ceil_mode=1 count_include_pad=1", 1},
    {"AveragePool", 19, "T[1,2,9]", "kernel_shape=2, dilations=2, strides=2,", 1},
    {"MaxPool", 18, "T[2,2,7,6]", "kernel_shape=3,2 strides=2,2 pads=1,0,1,1 ceil_mode=1", 1},
    {"BatchNormalization", 15, "T[3,2,4] T[2] T[2] T[2]:p T[2]:p", "training_mode=1", 1},
    {"BatchNormalization", 15, "T[3,2,4] T[2] T[2] T[2]:p T[2]:p", "", 1},
    {"GroupNormalization", 21, "T[2,6,5] T[6] T[6]", "num_groups=3", 1},
    {"GroupNormalization", 18, "T[2,6,5] T[3] T[3]", "num_groups=3", 1},
    {"InstanceNormalization", 18, "T[2,3,7] T[3] T[3]", "", 1},
    {"LayerNormalization", 17, "T[2,3,5] T[3,5] T[3,5]", "axis=1", 1},
    {"LRN", 18, "T[2,5,3,2]", "size=3 alpha=0.5 beta=0.75 bias=2.0", 1},
    {"Resize", 18, "T[1,2,3,4] - T[4]:=1,1,2,1.7", "mode=linear", 1},
    {"Resize", 18, "T[1,2,5,4] - - i64[4]:=1,2,3,7", "mode=cubic antialias=1", 1},
    {"Resize", 18, "T[1,2,5,4] - - i64[4]:=1,2,8,7",
     "mode=linear coordinate_transformation_mode=align_corners", 1},
    {"Resize", 18, "T[1,1,3,3] - T[4]:=1,1,2,2", "mode=nearest", 1},
    {"SoftmaxCrossEntropyLoss", 13, "T[3,4] i64[3]:=0,3,1 T[4]:p", "reduction=mean", 1},
    {"SoftmaxCrossEntropyLoss", 13, "T[3,4] i64[3]:=0,3,1", "ignore_index=3", 2},
    {"SoftmaxCrossEntropyLoss", 13, "T[2,4,3] i64[2,3]:=0,3,1 T[4]:p",
     "reduction=none ignore_index=0", 1},
    {"NegativeLogLikelihoodLoss", 13, "T[2,4,3] i64[2,3]:=0,3,1 T[4]:p", "ignore_index=1", 1},
    {"ReduceProd", 18, "T[2,3,4] i64[2]:=0,2", "keepdims=0", 1},
    {"ReduceLogSum", 18, "T[2,3]:p i64[1]:=1", "keepdims=0", 1},
    {"ReduceMean", 13, "T[2,3,4]", "axes=0,-1 keepdims=0", 1},
    {"ReduceSum", 13, "T[2,3]", "noop_with_empty_axes=1", 1},
    {"Einsum", 18, "T[2,3,4] T[2,4,5]", "equation='bij,bjk->bik", 1},
    {"Einsum", 18, "T[2,3] T[4]", "equation='ij,k->j", 1},
    {"Einsum", 18, "T[3,2,4] T[1,4,5]", "equation='...ij,...jk->...ik", 1},
    {"Gather", 18, "T[3,4,5] i64[2,2]:=1,0,-1,1", "axis=1", 1},
    {"Slice", 18, "T[4,9] i64[1]:=7 i64[1]:=-20 i64[1]:=1 i64[1]:=-3", "", 1},
    {"Attention", 23, "T[2,3,8] T[2,5,4] T[2,5,6] T[3,5]",
     "q_num_heads=4 kv_num_heads=2 softcap=2.5", 1},
    {"Attention", 23, "T[2,2,3,4] T[2,2,3,4] T[2,2,3,5]", "is_causal=1 scale=0.7", 1},
    {"LSTM", 14, "T[3,2,4] T[2,12,4] T[2,12,3] T[2,24] - T[2,2,3] T[2,2,3]",
     "hidden_size=3 direction=bidirectional", 3},
    {"LSTM", 14, "T[3,2,4] T[1,12,4] T[1,12,3]", "hidden_size=3 direction=reverse", 3},
    {"GRU", 14, "T[3,2,4] T[1,9,4] T[1,9,3] T[1,18]", "hidden_size=3 linear_before_reset=1", 2},
    {"GRU", 14, "T[3,2,4] T[2,9,4] T[2,9,3] T[2,18] - T[2,2,3]",
     "hidden_size=3 direction=bidirectional", 2},
    {"RNN", 14, "T[3,2,4] T[1,3,4] T[1,3,3] T[1,6]", "hidden_size=3", 2},
};

TEST(gradients_are_differences) {
    totals all = {0};
    op_cases_visit(try_case, &all);
    for (size_t i = 0; i < sizeof more_cases / sizeof *more_cases; ++i) {
        const size_t good = all.passed + all.failed;
        op_cases_visit_one(&more_cases[i], try_case, &all);
        if (all.passed + all.failed != good + 1 && getenv("RONDO_TEST_OP") == NULL) {
            print_message("not tried: %s {%s}\n", more_cases[i].op, more_cases[i].attributes);
            all.failed += 1;
        }
    }
    print_message(
        "%zu passed, %zu of second order, %zu failed, %zu refused, %zu skipped; ops: %zu\n",
        all.passed, all.second, all.failed, all.refused, all.skipped, all.seen_count);
    assert_int_equal(all.failed, 0);
    list_unseen(&all);
}

TEST_MAIN()
