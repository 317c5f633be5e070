// options/options_model.c — the models of the rounds, feeds for them, and what they give: a plain
// run on the host says that.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/options.h"
#include "support/expect_ok.h"
#include "support/models/flow_models.h"
#include "support/source_dir.h"
#include "tensor/elements.h"

enum { FLOAT = 1, INT64 = 7, FLOWS = 4, EXTENT_MAX = 5 };

static const char *const files[] = {"branch_and_loop",    "words_and_lists", "found_rows",
                                    "gpt_mini",           "bert_mini",       "shortcut_mini",
                                    "columns_and_classes"};

// ---- models built here ------------------------------------------------------------------------

static void parse(model_builder *builder, subject *s) {
    size_t bytes = 0;
    const uint8_t *model = model_builder_pack(builder, &bytes);
    OK(rondo_program_parse_onnx(model, bytes, &s->program));
    model_builder_deinit(builder);
}

// s_out = s / 2 + x * w, whose w may be fed; y, and the shape of x.
static void build_state(subject *s) {
    static const float half[1] = {0.5f};
    static const float weights[4] = {1, -2, 3, 0.25f};
    model_builder b;
    model_builder_init(&b);
    model_builder_add_floats(&b, b.graph, "half", half, 1);
    model_builder_add_floats(&b, b.graph, "w", weights, 4);
    model_builder_add_input(&b, b.graph, "x", FLOAT, "4");
    model_builder_add_input(&b, b.graph, "s", FLOAT, "4");
    model_builder_add_input(&b, b.graph, "w", FLOAT, "4");
    model_builder_add_node(&b, b.graph, "Mul", "halve", "s half", "h");
    model_builder_add_node(&b, b.graph, "Mul", "weigh", "x w", "v");
    model_builder_add_node(&b, b.graph, "Add", "sum", "h v", "s_out");
    model_builder_add_node(&b, b.graph, "Tanh", "bound", "s_out", "y");
    model_builder_add_node(&b, b.graph, "Shape", "shape", "x", "extents");
    model_builder_add_output(&b, b.graph, "s_out", FLOAT, "4");
    model_builder_add_output(&b, b.graph, "y", FLOAT, "4");
    model_builder_add_output(&b, b.graph, "extents", INT64, "1");
    parse(&b, s);
    s->name = "state";
    s->state = 1;
    s->state_output = 0;
}

static void build_draws(subject *s) {
    model_builder b;
    model_builder_init(&b);
    model_builder_add_input(&b, b.graph, "x", FLOAT, "n 3");
    model_builder_add_node(&b, b.graph, "RandomNormalLike", "normal", "x", "noise");
    model_builder_add_node(&b, b.graph, "Add", "blur", "x noise", "y");
    model_builder_add_node(&b, b.graph, "Dropout", "drop", "y", "z");
    model_builder_add_output(&b, b.graph, "y", FLOAT, "n 3");
    model_builder_add_output(&b, b.graph, "z", FLOAT, "n 3");
    parse(&b, s);
    s->name = "draws";
    s->draws = true;
}

static void build_flow(subject *s, bool moves, dice *d) {
    model_builder b;
    model_builder_init(&b);
    if (moves) {
        (void)flow_model_build_moves(&b);
    } else {
        (void)flow_model_build(&b, dice_draw(d, UINT32_MAX));
    }
    parse(&b, s);
    s->name = moves ? "moves" : "flow";
    s->branches = true;
}

// ---- feeds ------------------------------------------------------------------------------------

typedef struct symbol_list {
    size_t count;
    const char *names[PORTS_MAX];
    int64_t extents[PORTS_MAX];
} symbol_list;

static int64_t get_symbol(symbol_list *symbols, const char *name, dice *d) {
    for (size_t i = 0; i < symbols->count; ++i) {
        if (strcmp(symbols->names[i], name) == 0) {
            return symbols->extents[i];
        }
    }
    assert_true(symbols->count < PORTS_MAX);
    symbols->names[symbols->count] = name;
    symbols->extents[symbols->count] = 1 + (int64_t)dice_draw(d, EXTENT_MAX);
    return symbols->extents[symbols->count++];
}

static void fill(rondo_tensor *tensor, dice *d) {
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    for (int64_t i = 0; i < count; ++i) {
        const uint64_t number = dice_draw(d, 2000);
        if (tensor->dtype == RONDO_DTYPE_F32) {
            ((float *)tensor->data)[i] = (float)number / 1000.0f - 1.0f;
        } else if (tensor->dtype == RONDO_DTYPE_I64) {
            ((int64_t *)tensor->data)[i] = (int64_t)(number % 4);
        } else if (tensor->dtype == RONDO_DTYPE_BOOL) {
            ((uint8_t *)tensor->data)[i] = (uint8_t)(number % 2);
        } else {
            fail_msg("no values for %s", rondo_dtype_get_name(tensor->dtype));
        }
    }
}

// found_rows compares sums of rows with whole numbers. In half precision a sum of four numbers up
// to 1 is off by up to 4 times 2^-12 of theirs and 4 times 2^-10 of its own: those as near are
// moved.
static void move_sums(rondo_tensor *tensor) {
    enum { COLUMNS = 4 };
    float *row = tensor->data;
    for (int64_t i = 0; i < tensor->shape.extent[0]; ++i, row += COLUMNS) {
        const float sum = row[0] + row[1] + row[2] + row[3];
        row[0] += fabsf(sum - roundf(sum)) < 0.01f ? 0.02f : 0.0f;
    }
}

static void draw_strings(const rondo_shape *shape, rondo_tensor *out_tensor, dice *d) {
    static const char *const words[] = {"red", "green", "", "blue", "a longer word than others"};
    const int64_t count = rondo_shape_get_count(shape);
    rondo_string *strings = calloc((size_t)count + 1, sizeof *strings);
    assert_non_null(strings);
    for (int64_t i = 0; i < count; ++i) {
        const char *word = words[dice_draw(d, 5)];
        strings[i] = (rondo_string){.data = word, .size = strlen(word)};
    }
    const rondo_tensor borrowed = {.dtype = RONDO_DTYPE_STRING, .shape = *shape, .data = strings};
    OK(rondo__tensor_copy(&borrowed, out_tensor));
    free(strings);
}

// From the test's own file where no number of the shape is open, else by the dice.
static void make_feed(const subject *s, size_t index, symbol_list *symbols, dice *d,
                      rondo_tensor *out_tensor) {
    rondo_port port = {.struct_size = sizeof port};
    char path[512];
    OK(rondo_program_get_input(s->program, index, &port));
    rondo_shape shape = {.rank = port.rank};
    for (int32_t k = 0; k < port.rank; ++k) {
        shape.extent[k] =
            port.symbol[k] != NULL ? get_symbol(symbols, port.symbol[k], d) : port.extent[k];
    }
    const bool is_number = port.dtype == RONDO_DTYPE_F32 || port.dtype == RONDO_DTYPE_I64 ||
                           port.dtype == RONDO_DTYPE_BOOL;
    if (port.rank >= 0 && is_number && strcmp(port.name, "picked") != 0) {
        OK(rondo_tensor_init(port.dtype, &shape, out_tensor));
        fill(out_tensor, d);
        if (strcmp(s->name, "found_rows") == 0) {
            move_sums(out_tensor);
        }
    } else if (port.rank >= 0 && port.dtype == RONDO_DTYPE_STRING) {
        draw_strings(&shape, out_tensor, d);
    } else {
        (void)snprintf(path, sizeof path, "%s/tests/models/%s/test_data_set_0/input_%zu.pb",
                       get_source_dir(), s->name, index);
        OK(rondo_port_load_onnx(&port, path, out_tensor));
    }
}

static void run_plain(const subject *s, rondo_device *host, bool training, feed_set *set) {
    const rondo_executor_options options = {
        .struct_size = sizeof options, .graphs = RONDO_GRAPHS_OFF, .seed = 7, .training = training};
    rondo_binding fetches[PORTS_MAX] = {{0}};
    rondo_executor *executor;
    for (size_t i = 0; i < s->output_count; ++i) {
        fetches[i].name = s->outputs[i];
    }
    OK(rondo_executor_create(s->program, host, &options, &executor));
    set->status = rondo_executor_run(executor, set->feeds, set->count, fetches, s->output_count);
    if (set->status == RONDO_STATUS_NO_MEMORY) {  // which tells nothing of the model
        fail_msg("the plain run: %s", rondo_error_get_last()->message);
    }
    for (size_t i = 0; i < s->output_count; ++i) {
        set->wanted[i] = fetches[i].tensor;
    }
    rondo_executor_destroy(executor);
}

static void name_ports(subject *s) {
    rondo_port port = {.struct_size = sizeof port};
    s->input_count = rondo_program_get_input_count(s->program);
    s->output_count = rondo_program_get_output_count(s->program);
    assert_true(s->input_count < PORTS_MAX && s->output_count <= PORTS_MAX);
    for (size_t i = 0; i < s->input_count; ++i) {
        OK(rondo_program_get_input(s->program, i, &port));
        (void)snprintf(s->inputs[i], sizeof s->inputs[i], "%s", port.name);
    }
    for (size_t i = 0; i < s->output_count; ++i) {
        OK(rondo_program_get_output(s->program, i, &port));
        (void)snprintf(s->outputs[i], sizeof s->outputs[i], "%s", port.name);
    }
}

void subject_open(subject *s, size_t model, bool training, dice *d) {
    rondo_device *host;
    char path[512];
    memset(s, 0, sizeof *s);
    s->state = -1;
    if (model <= FLOWS) {
        build_flow(s, model == FLOWS, d);
    } else if (model == FLOWS + 1) {
        build_state(s);
    } else if (model == FLOWS + 2) {
        build_draws(s);
    } else {
        s->name = files[model - FLOWS - 3];
        (void)snprintf(path, sizeof path, "%s/tests/models/%s/model.onnx", get_source_dir(),
                       s->name);
        OK(rondo_program_load_onnx(path, &s->program));
        s->branches = strcmp(s->name, "branch_and_loop") == 0;
    }
    name_ports(s);
    OK(rondo_device_open("host", &host));
    for (size_t k = 0; k < SETS; ++k) {
        feed_set *set = &s->sets[k];
        symbol_list symbols = {0};
        set->count = s->input_count;
        for (size_t i = 0; i < s->input_count; ++i) {
            set->feeds[i].name = s->inputs[i];
            make_feed(s, i, &symbols, d, &set->feeds[i].tensor);
        }
        if (s->state >= 0 && k > 0) {  // the optional input, too
            set->feeds[set->count].name = "w";
            OK(rondo_tensor_init(RONDO_DTYPE_F32, &set->feeds[0].tensor.shape,
                                 &set->feeds[set->count].tensor));
            fill(&set->feeds[set->count++].tensor, d);
        }
        run_plain(s, host, training, set);
    }
    rondo_device_release(host);
}

void subject_close(subject *s) {
    for (size_t k = 0; k < SETS; ++k) {
        for (size_t i = 0; i < PORTS_MAX; ++i) {
            rondo_tensor_deinit(&s->sets[k].feeds[i].tensor);
            rondo_tensor_deinit(&s->sets[k].wanted[i]);
        }
    }
    rondo_program_destroy(s->program);
}
