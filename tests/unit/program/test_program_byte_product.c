// Products of 8-bit integers take in what scales their sums, and their images have channels last:
// small programs computed op by op before and after, bit for bit, and the ops that are left.
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants the four above first
#include <cmocka.h>

#include "program/passes/passes.h"
#include "program/shapes/specialise.h"
#include "rondo/builder.h"
#include "support/cases/interpret.h"

enum { LINES_MAX = 24, WORDS_MAX = 24, INPUTS_MAX = 4, TEXT_BYTES = 512 };

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        print_error("%s: %s\n", rondo_error_get_last()->op, rondo_error_get_last()->message);
    }
    assert_int_equal(status, RONDO_STATUS_OK);
}

// ---- programs in lines ------------------------------------------------------------------------

// A program with its inputs, specialised to them.
typedef struct model {
    rondo_builder *builder;
    rondo_program *source, *program;
    rondo_tensor inputs[INPUTS_MAX];
    rondo_tensor expected[INPUTS_MAX];
    size_t input_count;
} model;

static uint32_t random_state;

static uint32_t draw(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 16;
}

static void fill(rondo_tensor *tensor) {
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    for (int64_t i = 0; i < count; ++i) {
        if (tensor->dtype == RONDO_DTYPE_F32) {
            ((float *)tensor->data)[i] = (float)(draw() % 1000) / 300.0f - 1.5f;
        } else if (tensor->dtype == RONDO_DTYPE_I32) {
            ((int32_t *)tensor->data)[i] = (int32_t)(draw() % 4000) - 2000;
        } else {
            ((uint8_t *)tensor->data)[i] = (uint8_t)draw();
        }
    }
}

static rondo_dtype read_dtype(const char *name) {
    static const rondo_dtype dtypes[] = {RONDO_DTYPE_F32, RONDO_DTYPE_U8, RONDO_DTYPE_I8,
                                         RONDO_DTYPE_I32, RONDO_DTYPE_I64};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; ++i) {
        if (strcmp(rondo_dtype_get_name(dtypes[i]), name) == 0) {
            return dtypes[i];
        }
    }
    fail_msg("there is no type %s", name);
    return RONDO_DTYPE_NONE;
}

static size_t read_numbers(const char *text, int64_t *numbers) {
    size_t count = 0;
    while (*text == '-' || (*text >= '0' && *text <= '9')) {
        char *end = NULL;
        numbers[count++] = strtoll(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return count;
}

static rondo_shape read_shape(const char *text) {
    rondo_shape shape = {0};
    shape.rank = (int32_t)read_numbers(text, shape.extent);
    return shape;
}

static size_t split(char *line, char **words) {
    size_t count = 0;
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
        words[count++] = word;
    }
    return count;
}

static void add_node(model *m, char **words, size_t count) {
    int64_t numbers[4][RONDO_RANK_MAX * 2];
    rondo_attribute attributes[4];
    const char *inputs[WORDS_MAX], *outputs[WORDS_MAX];
    size_t attribute_count = 0, input_count = 0, output_count = 0;
    bool is_output = false;
    for (size_t i = 1; i < count; ++i) {
        char *equals = strchr(words[i], '=');
        if (strcmp(words[i], ">") == 0) {
            is_output = true;
        } else if (equals != NULL) {
            *equals = '\0';
            const size_t number_count = read_numbers(equals + 1, numbers[attribute_count]);
            const bool is_list = strchr(equals + 1, ',') != NULL;
            attributes[attribute_count] = (rondo_attribute){
                .name = words[i],
                .kind = is_list ? RONDO_ATTRIBUTE_INTS : RONDO_ATTRIBUTE_INT,
                .ints = numbers[attribute_count],
                .count = number_count,
                .int_value = numbers[attribute_count][0],
            };
            attribute_count++;
        } else if (is_output) {
            outputs[output_count++] = words[i];
        } else {
            inputs[input_count++] = words[i];
        }
    }
    const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                .attributes = attributes,
                                                .attribute_count = attribute_count};
    check(rondo_builder_add_node(m->builder, words[0], inputs, input_count, outputs, output_count,
                                 &options));
}

// "input x f32 2,5", "const w u8 5,7", "list extents 1,7,1,1", "output y", or a node:
// "ConvInteger pads=1,1,1,1 x w > y"; a list of one number ends with a comma.
static void add_line(model *m, const char *line) {
    char text[TEXT_BYTES];
    char *words[WORDS_MAX];
    (void)snprintf(text, sizeof text, "%s", line);
    const size_t count = split(text, words);
    if (strcmp(words[0], "output") == 0) {
        check(rondo_builder_add_output(m->builder, words[1], NULL));
    } else if (strcmp(words[0], "list") == 0) {
        int64_t numbers[RONDO_RANK_MAX];
        const rondo_shape shape = {1, {(int64_t)read_numbers(words[2], numbers)}};
        check(rondo_builder_add_constant(m->builder, words[1], RONDO_DTYPE_I64, &shape, numbers));
    } else if (strcmp(words[0], "const") == 0) {
        const rondo_shape shape = read_shape(count > 3 ? words[3] : "");
        rondo_tensor tensor;
        check(rondo_tensor_init(read_dtype(words[2]), &shape, &tensor));
        fill(&tensor);
        check(rondo_builder_add_constant(m->builder, words[1], tensor.dtype, &shape, tensor.data));
        rondo_tensor_deinit(&tensor);
    } else if (strcmp(words[0], "input") == 0) {
        const rondo_shape shape = read_shape(count > 3 ? words[3] : "");
        rondo_port port = {.struct_size = sizeof port,
                           .name = words[1],
                           .dtype = read_dtype(words[2]),
                           .rank = shape.rank};
        memcpy(port.extent, shape.extent, sizeof shape.extent);
        check(rondo_builder_add_input(m->builder, &port));
        check(rondo_tensor_init(port.dtype, &shape, &m->inputs[m->input_count]));
        fill(&m->inputs[m->input_count++]);
    } else {
        add_node(m, words, count);
    }
}

static void load(const char *const *lines, model *m) {
    rondo_tensor shapes[INPUTS_MAX] = {{0}};
    *m = (model){0};
    random_state = 7;
    check(rondo_builder_create(NULL, &m->builder));
    for (size_t i = 0; i < LINES_MAX && lines[i] != NULL; ++i) {
        add_line(m, lines[i]);
    }
    check(rondo_builder_finish(m->builder, &m->source));
    rondo_builder_destroy(m->builder);
    for (size_t i = 0; i < m->input_count; ++i) {
        shapes[i].dtype = m->inputs[i].dtype;
        shapes[i].shape = m->inputs[i].shape;
    }
    check(rondo__program_specialise(m->source, shapes, 1 << 20, &m->program, NULL));
    check(interpret_program(m->program, m->inputs, m->expected));
}

static void unload(model *m) {
    for (size_t i = 0; i < INPUTS_MAX; ++i) {
        rondo_tensor_deinit(&m->inputs[i]);
        rondo_tensor_deinit(&m->expected[i]);
    }
    rondo_program_destroy(m->program);
    rondo_program_destroy(m->source);
}

// "DynamicQuantizeLinear rondo.MatMulInteger"
static void list_ops(const rondo_program *program, char *text, size_t text_bytes) {
    size_t length = 0;
    text[0] = '\0';
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__op_def *def = program->nodes[n].op.def;
        length += (size_t)snprintf(text + length, text_bytes - length, "%s%s%s%s", n > 0 ? " " : "",
                                   def->domain, def->domain[0] != '\0' ? "." : "", def->name);
    }
}

// In single precision on a GPU.
static const rondo__pass_options single = {.fuse_convolution = true,
                                           .fuse_bytes = true,
                                           .fuse_matmul = true,
                                           .fuse_attention = true,
                                           .fuse_elementwise = true};

typedef struct row {
    const char *lines[LINES_MAX];
    const char *ops;  // that are left, in order; a ~ in front: results may differ by rounding
} row;

static void check_rows(const row *rows, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        rondo_tensor outputs[INPUTS_MAX] = {{0}};
        char ops[TEXT_BYTES];
        model m;
        load(rows[i].lines, &m);
        check(rondo__program_simplify(m.program));
        check(rondo__program_optimise(m.program, &single));
        list_ops(m.program, ops, sizeof ops);
        const bool is_rounded = rows[i].ops[0] == '~';
        if (strcmp(ops, rows[i].ops + is_rounded) != 0) {
            fail_msg("row %zu leaves\n  %s\nexpected is\n  %s", i, ops, rows[i].ops);
        }
        check(interpret_program(m.program, m.inputs, outputs));
        for (size_t k = 0; k < m.program->output_count; ++k) {
            const double error = compare_tensors(&outputs[k], &m.expected[k]);
            if (!(error <= (is_rounded ? 1e-6 : 0.0))) {
                fail_msg("row %zu: output %zu: error %g", i, k, error);
            }
            rondo_tensor_deinit(&outputs[k]);
        }
        unload(&m);
    }
}

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

// ---- matrices ---------------------------------------------------------------------------------

#define QUANTISED                                                                            \
    "input x f32 2,3,8", "const w i8 8,5", "const ws f32", "const wz i8", "const b f32 5",   \
        "DynamicQuantizeLinear x > q xs xz", "Mul xs ws > s", "MatMulInteger q w xz wz > i", \
        "Cast to=1 i > c"

static void test_program_byte_product__matrices(void **state) {
    (void)state;
    static const row rows[] = {
        {{QUANTISED, "Mul c s > y", "output y"}, "DynamicQuantizeLinear rondo.MatMulInteger"},
        {{QUANTISED, "Mul s c > p", "Add b p > a", "Relu a > y", "output y"},
         "DynamicQuantizeLinear rondo.MatMulInteger"},
        // a residual; one before the bias; others than the result's shape
        {{QUANTISED, "input z f32 2,3,5", "Mul c s > p", "Add p b > a", "Add z a > r", "Tanh r > y",
          "output y"},
         "DynamicQuantizeLinear rondo.MatMulInteger"},
        {{QUANTISED, "input z f32 2,3,5", "Mul c s > p", "Add p z > a", "Add a b > y", "output y"},
         "DynamicQuantizeLinear rondo.MatMulInteger Add"},
        {{QUANTISED, "input z f32 3,5", "Mul c s > p", "Add p z > y", "output y"},
         "DynamicQuantizeLinear rondo.MatMulInteger Add"},
        {{QUANTISED, "input z f32 4,2,3,5", "Mul c s > p", "Add p z > y", "output y"},
         "DynamicQuantizeLinear rondo.MatMulInteger Add"},
    };
    check_rows(rows, COUNT(rows));
}

static void test_program_byte_product__factors(void **state) {
    (void)state;
    static const row rows[] = {
        // a scale for each column, one that nobody makes, and one that is not of columns
        {{"input x f32 3,8", "const w u8 8,5", "const ws f32 5", "const wz u8 5",
          "DynamicQuantizeLinear x > q xs xz", "Mul xs ws > s", "MatMulInteger q w xz wz > i",
          "Cast to=1 i > c", "Mul c s > y", "output y"},
         "DynamicQuantizeLinear rondo.MatMulInteger"},
        {{"input q u8 3,8", "input s f32 1,5", "const w i8 8,5", "MatMulInteger q w > i",
          "Cast to=1 i > c", "Mul c s > y", "output y"},
         "rondo.MatMulInteger"},
        {{"input q u8 3,8", "input s f32 3,1", "const w i8 8,5", "MatMulInteger q w > i",
          "Cast to=1 i > c", "Mul c s > y", "output y"},
         "MatMulInteger Cast Mul"},
        {{"input q u8 5,8", "input s f32 5,1", "const w i8 8,5", "MatMulInteger q w > i",
          "Cast to=1 i > c", "Mul c s > y", "output y"},
         "MatMulInteger Cast Mul"},
        // computed weights, of several matrices
        {{"input q u8 2,3,8", "input w i8 2,8,5", "input s f32", "MatMulInteger q w > i",
          "Cast to=1 i > c", "Mul c s > p", "Sigmoid p > y", "output y"},
         "rondo.MatMulInteger"},
        // another type; sums that somebody else wants; no factor; nothing to scale
        {{"input q u8 3,8", "const w i8 8,5", "MatMulInteger q w > i", "Cast to=7 i > y",
          "output y"},
         "MatMulInteger Cast"},
        {{QUANTISED, "Mul c s > y", "output y", "output i"},
         "DynamicQuantizeLinear Mul MatMulInteger Cast Mul"},
        {{QUANTISED, "Mul c s > y", "output y", "output c"},
         "DynamicQuantizeLinear Mul MatMulInteger Cast Mul"},
        {{QUANTISED, "Add c b > y", "output y"}, "DynamicQuantizeLinear MatMulInteger Cast Add"},
        {{"input q u8 8", "const w i8 8,5", "input s f32", "MatMulInteger q w > i",
          "Cast to=1 i > c", "Mul c s > y", "output y"},
         "MatMulInteger Cast Mul"},
    };
    check_rows(rows, COUNT(rows));
}

static void test_program_byte_product__silu(void **state) {
    (void)state;
    static const row rows[] = {
        {{QUANTISED, "Mul c s > p", "Sigmoid p > g", "Mul p g > y", "output y"},
         "~DynamicQuantizeLinear rondo.MatMulInteger"},
        {{QUANTISED, "Mul c s > p", "Sigmoid p > g", "Mul g p > y", "output y", "output g"},
         "DynamicQuantizeLinear rondo.MatMulInteger Sigmoid Mul"},
        {{QUANTISED, "Mul c s > p", "Sigmoid p > g", "Sub p g > y", "output y"},
         "DynamicQuantizeLinear rondo.MatMulInteger rondo.Elementwise"},
    };
    check_rows(rows, COUNT(rows));
}

// ---- convolutions -----------------------------------------------------------------------------

// As quantise_dynamic writes a convolution with a bias.
#define CONVOLVED(shape, window)                                                                   \
    "input x f32 " shape, "const w u8 16,16,3,3", "const ws f32", "const wz u8", "const b f32 16", \
        "list extents 1,16,1,1", "DynamicQuantizeLinear x > q xs xz", "Mul xs ws > bs",            \
        "Div b bs > t", "Floor t > f", "Cast to=6 f > fi", "Reshape fi extents > rb",              \
        "ConvInteger " window " q w xz wz > i"

static void test_program_byte_product__convolutions(void **state) {
    (void)state;
    static const row rows[] = {
        {{CONVOLVED("2,16,5,6", "pads=1,1,1,1"), "Add i rb > a", "Cast to=1 a > c", "Mul ws xs > s",
          "Mul c s > p", "Sigmoid p > g", "Mul p g > y", "output y"},
         "~DynamicQuantizeLinear Transpose rondo.ConvInteger Transpose"},
        // another step than the bias has
        {{CONVOLVED("2,16,5,6", "strides=2,2"), "Add i rb > a", "Cast to=1 a > c", "Mul c xs > y",
          "output y"},
         "DynamicQuantizeLinear Mul rondo.Elementwise Cast Reshape Transpose rondo.ConvInteger "
         "Transpose Add Cast Mul"},
        // one after the other, with what lies between them
        {{CONVOLVED("1,16,9,9", "pads=1,1,1,1"), "Add i rb > a", "Cast to=1 a > c", "Mul c bs > p",
          "MaxPool kernel_shape=3,3 strides=2,2 p > m", "DynamicQuantizeLinear m > q2 xs2 xz2",
          "ConvInteger q2 w xz2 wz > i2", "Cast to=1 i2 > c2", "Mul c2 xs2 > y", "output y"},
         "DynamicQuantizeLinear Transpose rondo.ConvInteger rondo.MaxPool DynamicQuantizeLinear "
         "rondo.ConvInteger Transpose"},
        // no image
        {{"input q u8 1,8,30", "const w i8 6,8,3", "input s f32", "const b f32 6,1",
          "ConvInteger pads=1,1 q w > i", "Cast to=1 i > c", "Mul c s > p", "Add p b > y",
          "output y"},
         "rondo.ConvInteger"},
    };
    check_rows(rows, COUNT(rows));
}

static void test_program_byte_product__steps_between_images(void **state) {
    (void)state;
    static const row rows[] = {
        {{"input x f32 1,3,8,8", "const xs f32", "const xz u8", "const w i8 8,3,3,3",
          "const ws f32 8", "const wz i8 8", "const ys f32 8", "const yz u8 8",
          "QuantizeLinear x xs xz > q", "QLinearConv pads=1,1,1,1 q xs xz w ws wz xs xz > c",
          "MaxPool kernel_shape=2,2 c > m", "DequantizeLinear axis=1 m ys yz > d", "Relu d > r",
          "QuantizeLinear r xs xz > q2", "const v u8 5,8,1,1",
          "QLinearConv q2 xs xz v xs xz xs xz > y", "output y"},
         "QuantizeLinear Transpose rondo.QLinearConv rondo.MaxPool DequantizeLinear Relu "
         "QuantizeLinear rondo.QLinearConv Transpose"},
    };
    check_rows(rows, COUNT(rows));
}

// Convolutions of reals keep their layout where only bytes want another.
static void test_program_byte_product__reals_beside_bytes(void **state) {
    (void)state;
    static const row rows[] = {
        {{"input x f32 1,4,6,6", "const f f32 16,4,1,1", "const w i8 8,16,1,1",
          "const g f32 3,8,1,1", "Conv x f > r", "DynamicQuantizeLinear r > q xs xz",
          "ConvInteger q w xz > i", "Cast to=1 i > c", "Mul c xs > p", "Conv p g > y", "output y"},
         "rondo.Conv DynamicQuantizeLinear Transpose rondo.ConvInteger Transpose rondo.Conv"},
        {{"input x f32 1,4,6,6", "const f f32 4,4,1,1", "Conv x f > r",
          "MaxPool kernel_shape=2,2 r > y", "output y"},
         "rondo.Conv MaxPool"},
    };
    check_rows(rows, COUNT(rows));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_byte_product__matrices),
        cmocka_unit_test(test_program_byte_product__factors),
        cmocka_unit_test(test_program_byte_product__silu),
        cmocka_unit_test(test_program_byte_product__convolutions),
        cmocka_unit_test(test_program_byte_product__steps_between_images),
        cmocka_unit_test(test_program_byte_product__reals_beside_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
