// support/cases/program_lines.c — see program_lines.h.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/program_lines.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/place_mark.h"
#include "program/shapes/specialise.h"
#include "rondo/builder.h"
#include "support/cases/interpret.h"
#include "support/expect_ok.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "tensor/narrow.h"

enum { WORDS_MAX = 24, INPUTS_MAX = 8, TEXT_BYTES = 512, NAME_BYTES = 32 };

// ---- programs in lines ------------------------------------------------------------------------

// A program with its inputs, specialised to them.
typedef struct model {
    rondo_builder *builder;
    rondo_program *source, *program;
    rondo_tensor inputs[INPUTS_MAX];
    rondo_tensor expected[INPUTS_MAX];
    size_t input_count;
    char place[2][NAME_BYTES];  // of which nodes, and where
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
        } else if (tensor->dtype == RONDO_DTYPE_F16) {
            const float value = (float)(draw() % 1000) / 300.0f - 1.5f;
            ((uint16_t *)tensor->data)[i] = rondo_f16_from_float(value);
        } else if (tensor->dtype == RONDO_DTYPE_U16) {
            ((uint16_t *)tensor->data)[i] = (uint16_t)draw();
        } else if (tensor->dtype == RONDO_DTYPE_I32) {
            ((int32_t *)tensor->data)[i] = (int32_t)(draw() % 4000) - 2000;
        } else if (rondo__dtype_is_narrow(tensor->dtype)) {
            const float number = (float)(draw() % 16) - 8.0f;
            ((uint8_t *)tensor->data)[i] = rondo__narrow_encode(tensor->dtype, number, NULL);
        } else {
            ((uint8_t *)tensor->data)[i] = (uint8_t)draw();
        }
    }
}

static rondo_dtype read_dtype(const char *name) {
    static const rondo_dtype dtypes[] = {
        RONDO_DTYPE_F32, RONDO_DTYPE_U8, RONDO_DTYPE_I8, RONDO_DTYPE_I32, RONDO_DTYPE_I64,
        RONDO_DTYPE_I4,  RONDO_DTYPE_U4, RONDO_DTYPE_I2, RONDO_DTYPE_F16, RONDO_DTYPE_U16};
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
            const bool is_float = strchr(equals + 1, '.') != NULL;
            const bool is_text = strpbrk(equals + 1, "hik") != NULL;
            attributes[attribute_count] = (rondo_attribute){
                .name = words[i],
                .kind = is_text    ? RONDO_ATTRIBUTE_STRING
                        : is_list  ? RONDO_ATTRIBUTE_INTS
                        : is_float ? RONDO_ATTRIBUTE_FLOAT
                                   : RONDO_ATTRIBUTE_INT,
                .float_value = strtof(equals + 1, NULL),
                .string_value = equals + 1,
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
    OK(rondo_builder_add_node(m->builder, words[0], inputs, input_count, outputs, output_count,
                              &WITH_LIST(attributes, attribute_count)));
}

static void add_value(model *m, const char *name, rondo_dtype dtype, float number,
                      const rondo_shape *shape) {
    rondo_tensor tensor;
    OK(rondo_tensor_init(dtype, shape, &tensor));
    for (int64_t i = 0; i < rondo_shape_get_count(shape); ++i) {
        if (dtype == RONDO_DTYPE_F32) {
            ((float *)tensor.data)[i] = number;
        } else if (dtype == RONDO_DTYPE_F16) {
            ((uint16_t *)tensor.data)[i] = rondo_f16_from_float(number);
        } else if (dtype == RONDO_DTYPE_I64) {
            ((int64_t *)tensor.data)[i] = (int64_t)number;
        } else if (dtype == RONDO_DTYPE_I32) {
            ((int32_t *)tensor.data)[i] = (int32_t)number;
        } else {
            ((uint8_t *)tensor.data)[i] = (uint8_t)(int)number;
        }
    }
    OK(rondo_builder_add_constant(m->builder, name, dtype, shape, tensor.data));
    rondo_tensor_deinit(&tensor);
}

static void empty_first_row(rondo_tensor *tensor) {
    for (int64_t i = 0; i < tensor->shape.extent[tensor->shape.rank - 1]; ++i) {
        ((float *)tensor->data)[i] = -INFINITY;
    }
}

static void add_line(model *m, const char *line) {
    char text[TEXT_BYTES];
    char *words[WORDS_MAX];
    (void)snprintf(text, sizeof text, "%s", line);
    const size_t count = split(text, words);
    if (strcmp(words[0], "output") == 0) {
        OK(rondo_builder_add_output(m->builder, words[1], NULL));
    } else if (strcmp(words[0], "place") == 0) {
        (void)snprintf(m->place[0], sizeof m->place[0], "%s", words[1]);
        (void)snprintf(m->place[1], sizeof m->place[1], "%s", words[2]);
    } else if (strcmp(words[0], "list") == 0) {
        int64_t numbers[RONDO_RANK_MAX];
        const rondo_shape shape = {1, {(int64_t)read_numbers(words[2], numbers)}};
        OK(rondo_builder_add_constant(m->builder, words[1], RONDO_DTYPE_I64, &shape, numbers));
    } else if (strcmp(words[0], "value") == 0) {
        const rondo_shape shape = read_shape(count > 4 ? words[4] : "");
        add_value(m, words[1], read_dtype(words[2]), strtof(words[3], NULL), &shape);
    } else if (strcmp(words[0], "const") == 0) {
        const rondo_shape shape = read_shape(count > 3 ? words[3] : "");
        rondo_tensor tensor;
        OK(rondo_tensor_init(read_dtype(words[2]), &shape, &tensor));
        fill(&tensor);
        OK(rondo_builder_add_constant(m->builder, words[1], tensor.dtype, &shape, tensor.data));
        rondo_tensor_deinit(&tensor);
    } else if (strcmp(words[0], "input") == 0) {
        const rondo_shape shape = read_shape(count > 3 ? words[3] : "");
        rondo_port port = {.struct_size = sizeof port,
                           .name = words[1],
                           .dtype = read_dtype(words[2]),
                           .rank = shape.rank};
        memcpy(port.extent, shape.extent, sizeof shape.extent);
        OK(rondo_builder_add_input(m->builder, &port));
        OK(rondo_tensor_init(port.dtype, &shape, &m->inputs[m->input_count]));
        fill(&m->inputs[m->input_count]);
        if (count > 4) {
            empty_first_row(&m->inputs[m->input_count]);
        }
        ++m->input_count;
    } else {
        add_node(m, words, count);
    }
}

static void load(const char *const *lines, model *m) {
    rondo_tensor shapes[INPUTS_MAX] = {{0}};
    *m = (model){0};
    random_state = 7;
    OK(rondo_builder_create(NULL, &m->builder));
    for (size_t i = 0; i < PROGRAM_LINES_MAX && lines[i] != NULL; ++i) {
        add_line(m, lines[i]);
    }
    OK(rondo_builder_finish(m->builder, &m->source));
    rondo_builder_destroy(m->builder);
    if (m->place[0][0] != '\0') {
        OK(rondo_program_set_place(m->source, m->place[0], m->place[1]));
    }
    for (size_t i = 0; i < m->input_count; ++i) {
        shapes[i].dtype = m->inputs[i].dtype;
        shapes[i].shape = m->inputs[i].shape;
    }
    rondo_program *copy;
    OK(rondo__program_specialise(m->source, shapes, 0, &m->program, NULL));
    OK(interpret_program(m->program, m->inputs, m->expected));
    rondo_program_destroy(m->program);
    OK(rondo__program_clone(m->source, &copy));
    OK(rondo__program_quantise(copy));
    OK(rondo__program_specialise(copy, shapes, 1 << 20, &m->program, NULL));
    rondo_program_destroy(copy);
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
        const uint8_t place = program->nodes[n].place.place;
        const bool has_place = place != RONDO__PLACE_ANY;
        length +=
            (size_t)snprintf(text + length, text_bytes - length, "%s%s%s%s%s%s", n > 0 ? " " : "",
                             def->domain, def->domain[0] != '\0' ? "." : "", def->name,
                             has_place ? "@" : "", has_place ? rondo__place_get_name(place) : "");
    }
}

// The limit of the program's first NonMaxSuppression.
static int64_t get_boxes(const rondo_program *program) {
    size_t n = 0;
    while (!rondo__node_is(&program->nodes[n], RONDO__OP_NonMaxSuppression)) {
        ++n;
    }
    return *(const int64_t *)program->values[program->nodes[n].inputs[2]].constant.data;
}

void program_rows_check(const program_row *rows, size_t count, const rondo__pass_options *options) {
    for (size_t i = 0; i < count; ++i) {
        rondo_tensor outputs[INPUTS_MAX] = {{0}};
        char ops[TEXT_BYTES];
        model m;
        load(rows[i].lines, &m);
        OK(rondo__program_simplify(m.program));
        OK(rondo__pass_detections(m.program));
        if (options != NULL) {
            OK(rondo__program_optimise(m.program, options));
        }
        list_ops(m.program, ops, sizeof ops);
        char *names;
        const int64_t boxes = strtoll(rows[i].ops, &names, 10);
        const bool is_rounded = names[0] == '~';
        if (boxes != 0) {
            assert_int_equal(get_boxes(m.program), boxes);
        }
        if (strcmp(ops, names + is_rounded) != 0) {
            fail_msg("row %zu leaves\n  %s\nexpected is\n  %s", i, ops, rows[i].ops);
        }
        OK(interpret_program(m.program, m.inputs, outputs));
        for (size_t k = 0; k < m.program->output_count; ++k) {
            const double error = compare_tensors(&outputs[k], &m.expected[k]);
            // A step of f16 behind 8.
            const double most = outputs[k].dtype == RONDO_DTYPE_F16 ? 1.0 / 128.0 : 1e-6;
            if (!(error <= (is_rounded ? most : 0.0))) {
                fail_msg("row %zu: output %zu: error %g", i, k, error);
            }
            rondo_tensor_deinit(&outputs[k]);
        }
        unload(&m);
    }
}
