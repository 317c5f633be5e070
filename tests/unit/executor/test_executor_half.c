// Half precision through executors, on the host: types at every border in every mode, patterns, the
// description, and the op that loses the precision.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/state/plan.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/short_forms.h"
#include "support/source_dir.h"
#include "support/test.h"

static rondo_device *open_device(void) {
    rondo_device *device;
    OK(rondo_device_open("host", &device));
    return device;
}

// ---- borders ----------------------------------------------------------------------------------

// Every plan of the executor and of the bodies in it: inputs and outputs have the types that their
// program declares, where it does.
static size_t check_borders(const rondo__unit *unit) {
    size_t checked = 0;
    const rondo_program *source = unit->source;
    for (const rondo__plan *plan = rondo__unit_next_plan(unit, NULL); plan != NULL;
         plan = rondo__unit_next_plan(unit, plan)) {
        const size_t count = source->input_count + source->output_count;
        for (size_t i = 0; i < count; ++i) {
            const bool is_input = i < source->input_count;
            const size_t k = is_input ? i : i - source->input_count;
            const int32_t declared = is_input ? source->inputs[k] : source->outputs[k];
            const int32_t value = is_input ? plan->program->inputs[k] : plan->program->outputs[k];
            const rondo_dtype want = source->values[declared].dtype;
            const rondo_dtype have = plan->slots[value].dtype;
            if (want == RONDO_DTYPE_NONE || have == RONDO_DTYPE_NONE) {
                continue;
            }
            if (want != have) {
                fail_msg("\"%s\" is %s, declared %s", source->values[declared].name,
                         rondo_dtype_get_name(have), rondo_dtype_get_name(want));
            }
            checked += 1;
        }
        for (size_t s = 0; s < plan->step_count; ++s) {
            for (size_t b = 0; b < plan->steps[s].run.body_count; ++b) {
                if (plan->steps[s].run.bodies[b] != NULL) {
                    checked += check_borders(plan->steps[s].run.bodies[b]);
                }
            }
        }
    }
    return checked;
}

typedef struct model {
    rondo_program *program;
    size_t feed_count;
    size_t fetch_count;
    rondo_binding feeds[8];
    rondo_binding fetches[8];
} model;

static void load_model(const char *folder, model *out_model) {
    char path[512];
    rondo_port port = {.struct_size = sizeof port};
    memset(out_model, 0, sizeof *out_model);
    (void)snprintf(path, sizeof path, "%s/%s/model.onnx", get_source_dir(), folder);
    OK(rondo_program_load_onnx(path, &out_model->program));
    out_model->feed_count = rondo_program_get_input_count(out_model->program);
    out_model->fetch_count = rondo_program_get_output_count(out_model->program);
    for (size_t i = 0; i < out_model->feed_count; ++i) {
        OK(rondo_program_get_input(out_model->program, i, &port));
        out_model->feeds[i].name = port.name;
        (void)snprintf(path, sizeof path, "%s/%s/test_data_set_0/input_%zu.pb", get_source_dir(),
                       folder, i);
        OK(rondo_tensor_load_onnx(path, &out_model->feeds[i].tensor));
    }
}

static void free_model(model *m) {
    for (size_t i = 0; i < m->feed_count; ++i) {
        rondo_tensor_deinit(&m->feeds[i].tensor);
    }
    rondo_program_destroy(m->program);
}

static void run_in_mode(model *m, rondo_device *device, const rondo_executor_options *options) {
    rondo_executor *executor;
    OK(rondo_executor_create(m->program, device, options, &executor));
    const int runs = options->graphs == RONDO_GRAPHS_OFF ? 1 : 2;
    for (int run = 0; run < runs; ++run) {
        for (size_t i = 0; i < m->fetch_count; ++i) {
            rondo_port port = {.struct_size = sizeof port};
            OK(rondo_program_get_output(m->program, i, &port));
            m->fetches[i].name = port.name;
        }
        OK(rondo_executor_run(executor, m->feeds, m->feed_count, m->fetches, m->fetch_count));
        for (size_t i = 0; i < m->fetch_count; ++i) {
            rondo_port port = {.struct_size = sizeof port};
            OK(rondo_program_get_output(m->program, i, &port));
            assert_int_equal(m->fetches[i].tensor.dtype, port.dtype);
            rondo_tensor_deinit(&m->fetches[i].tensor);
        }
    }
    assert_true(check_borders(&executor->main) >= m->fetch_count);
    rondo_executor_destroy(executor);
}

TEST(test_executor_half__types_hold_in_every_mode) {
    static const struct {
        rondo_dtype dtype;
        bool optimise;
        bool reference;
        rondo_graphs_mode graphs;
    } modes[] = {{RONDO_DTYPE_F32, true, false, RONDO_GRAPHS_AUTO},
                 {RONDO_DTYPE_F16, true, false, RONDO_GRAPHS_AUTO},
                 {RONDO_DTYPE_F16, true, false, RONDO_GRAPHS_OFF},
                 {RONDO_DTYPE_F16, false, false, RONDO_GRAPHS_AUTO},
                 {RONDO_DTYPE_F16, true, true, RONDO_GRAPHS_OFF}};
    static const char *const folders[] = {
        "tests/models/bert_mini", "tests/models/gpt_mini", "tests/models/lstm_tagger",
        "tests/models/branch_and_loop", "examples/models/squeezenet1_1"};
    rondo_device *device = open_device();
    for (size_t f = 0; f < sizeof folders / sizeof folders[0]; ++f) {
        model m;
        load_model(folders[f], &m);
        for (size_t k = 0; k < sizeof modes / sizeof modes[0]; ++k) {
            const bool is_large = strstr(folders[f], "squeezenet") != NULL;
            if (is_large && (modes[k].reference || !modes[k].optimise)) {
                continue;  // seconds of plain C for nothing new
            }
            rondo_executor_options options = {.struct_size = sizeof options};
            options.dtype = modes[k].dtype;
            options.op_by_op = !modes[k].optimise;
            options.reference = modes[k].reference;
            options.graphs = modes[k].graphs;
            run_in_mode(&m, device, &options);
        }
        free_model(&m);
    }
    rondo_device_release(device);
}

// ---- programs made here -----------------------------------------------------------------------

static int32_t add_value(rondo_program *program, const char *name) {
    int32_t value;
    OK(rondo__program_add_value(program, name, &value));
    program->values[value].dtype = RONDO_DTYPE_F32;
    return value;
}

// y = sqrt(pow(x, 2)): fine for 300 in f32, out of range in f16.
static rondo_program *make_square_root(void) {
    rondo_program *program;
    OK(rondo__program_create("p", &program));
    const int32_t x = add_value(program, "x");
    int32_t inputs[2] = {x, add_value(program, "two")};
    const int32_t square = add_value(program, "square");
    const int32_t y = add_value(program, "y");
    const float two = 2.0f;
    const rondo_shape scalar = {0};
    const rondo_shape shape = {.rank = 1, .extent = {3}};
    rondo__value *v = &program->values[x];
    v->has_shape = true;
    v->rank = shape.rank;
    v->dims[0] = (rondo__dimension){.number = shape.extent[0], .symbol = -1};
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &scalar, &program->values[inputs[1]].constant));
    memcpy(program->values[inputs[1]].constant.data, &two, sizeof two);
    OK(rondo__program_add_input(program, x));
    OK(rondo__program_add_simple(program, "", "Pow", "power", inputs, 2, &square, 1));
    OK(rondo__program_add_simple(program, "", "Sqrt", "root", &square, 1, &y, 1));
    OK(rondo__program_add_output(program, y));
    OK(rondo__program_verify(program));
    return program;
}

static rondo_binding make_feed(void) {
    static const float values[3] = {300.0f, -2.0f, 1.0f};
    const rondo_shape shape = {.rank = 1, .extent = {3}};
    rondo_binding feed = {.name = "x"};
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &feed.tensor));
    memcpy(feed.tensor.data, values, sizeof values);
    return feed;
}

static float run_square_root(rondo_program *program, rondo_device *device,
                             const rondo_executor_options *options) {
    rondo_executor *executor;
    rondo_binding feed = make_feed();
    rondo_binding fetch = {.name = "y"};
    OK(rondo_executor_create(program, device, options, &executor));
    OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    assert_int_equal(fetch.tensor.dtype, RONDO_DTYPE_F32);
    const float result = ((const float *)fetch.tensor.data)[0];
    rondo_tensor_deinit(&feed.tensor);
    rondo_tensor_deinit(&fetch.tensor);
    rondo_executor_destroy(executor);
    return result;
}

TEST(test_executor_half__patterns_decide) {
    rondo_device *device = open_device();
    rondo_program *program = make_square_root();
    rondo_executor_options options = {.struct_size = sizeof options};
    options.dtype = RONDO_DTYPE_F16;
    assert_true(run_square_root(program, device, &options) == 300.0f);
    options.use_f16 = (const char *const[]){"pow*"};
    options.use_f16_count = 1;
    assert_true(run_square_root(program, device, &options) < 256.0f);  // 90000 became 65504
    rondo_executor *executor = NULL;
    const struct {
        rondo_dtype dtype;
        const char *pattern;
        const char *text;
    } wrong[] = {{RONDO_DTYPE_F16, "powr", "keep_f32 \"powr\" matches no op"},
                 {RONDO_DTYPE_F16, NULL, "pattern 0 is NULL"},
                 {RONDO_DTYPE_F32, "power", "need dtype f16"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        options = (rondo_executor_options){.struct_size = sizeof(rondo_executor_options)};
        options.dtype = wrong[i].dtype;
        options.keep_f32 = &wrong[i].pattern;
        options.keep_f32_count = 1;
        assert_int_equal(rondo_executor_create(program, device, &options, &executor),
                         RONDO_STATUS_INVALID);
        assert_non_null(strstr(rondo_error_get_last()->message, wrong[i].text));
    }
    static const char *const missing[] = {
        "options.keep_f32 is NULL, and options.keep_f32_count is 2",
        "options.use_f16 is NULL, and options.use_f16_count is 2",
        "options.place is NULL, and options.place_count is 2"};
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; ++i) {
        options = (rondo_executor_options){.struct_size = sizeof(rondo_executor_options)};
        options.dtype = RONDO_DTYPE_F16;
        options.keep_f32_count = i == 0 ? 2 : 0;
        options.use_f16_count = i == 1 ? 2 : 0;
        options.place_count = i == 2 ? 2 : 0;
        executor = (rondo_executor *)&options;
        assert_int_equal(rondo_executor_create(program, device, &options, &executor),
                         RONDO_STATUS_INVALID);
        assert_non_null(strstr(rondo_error_get_last()->message, missing[i]));
        assert_null(executor);
    }
    rondo_program_destroy(program);
    rondo_device_release(device);
}

static bool collect(void *user_data, const char *text, size_t bytes) {
    const size_t used = strlen(user_data);
    assert_true(used + bytes < 8192);
    memcpy((char *)user_data + used, text, bytes);
    return true;
}

TEST(test_executor_half__description_says_why) {
    static const char *const wanted[][3] = {
        {"0 ops of the model compute in f16, 2 stay in f32", "power", "powers leave the range"},
        {"\"f16_count\": 0", "\"name\": \"root\"", "\"reason\": \"roots are taken"}};
    rondo_device *device = open_device();
    rondo_program *program = make_square_root();
    rondo_executor_options options = {.struct_size = sizeof options};
    options.dtype = RONDO_DTYPE_F16;
    rondo_executor *executor;
    OK(rondo_executor_create(program, device, &options, &executor));
    for (int format = RONDO_TEXT_PLAIN; format <= RONDO_TEXT_JSON; ++format) {
        char text[8192] = "";
        OK(rondo_executor_describe(executor, (rondo_text_format)format, collect, text));
        for (size_t i = 0; i < 3; ++i) {
            if (strstr(text, wanted[format][i]) == NULL) {
                fail_msg("\"%s\" is missing in:\n%s", wanted[format][i], text);
            }
        }
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// x (mean(x^2) + e)^-0.5 w, as exporters write it, with Casts to the type that is there.
static rondo_program *make_mean_norm(void) {
    static const float gain[8] = {1, 2, 3, 4, 5, 6, 7, 8}, two = 2.0f, small = 1e-5f, power = -0.5f;
    static const rondo_shape row = {1, {8}}, scalar = {0};
    static const struct {
        const char *op, *inputs[2], *output;
    } nodes[] = {{"Cast", {"x"}, "wide"},          {"Pow", {"wide", "two"}, "squares"},
                 {"ReduceMean", {"squares"}, "m"}, {"Add", {"m", "small"}, "sum"},
                 {"Pow", {"sum", "power"}, "i"},   {"Mul", {"wide", "i"}, "n"},
                 {"Cast", {"n"}, "narrow"},        {"Mul", {"narrow", "gain"}, "y"}};
    const int64_t last = -1;
    const rondo_attribute to = ATTRIBUTE_INT("to", 1);
    const rondo_attribute axes = ATTRIBUTE_INTS("axes", &last, 1);
    const rondo_builder_options options = {.struct_size = sizeof options, .opset = 17};
    rondo_builder *b;
    OK(rondo_builder_create(&options, &b));
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, 3, 8)));
    OK(rondo_builder_add_constant(b, "gain", RONDO_DTYPE_F32, &row, gain));
    OK(rondo_builder_add_constant(b, "two", RONDO_DTYPE_F32, &scalar, &two));
    OK(rondo_builder_add_constant(b, "small", RONDO_DTYPE_F32, &scalar, &small));
    OK(rondo_builder_add_constant(b, "power", RONDO_DTYPE_F32, &scalar, &power));
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; ++i) {
        const bool is_cast = strcmp(nodes[i].op, "Cast") == 0;
        const rondo_builder_node_options more = {
            .struct_size = sizeof more,
            .name = nodes[i].output,
            .attributes = is_cast ? &to : &axes,
            .attribute_count = is_cast || strcmp(nodes[i].op, "ReduceMean") == 0 ? 1 : 0};
        OK(rondo_builder_add_node(b, nodes[i].op, nodes[i].inputs,
                                  nodes[i].inputs[1] != NULL ? 2 : 1, &nodes[i].output, 1, &more));
    }
    OK(rondo_builder_add_output(b, "y", NULL));
    return build_finish(b);
}

// The mean of squares is named before its ops become half precision, unless one is asked to stay.
TEST(test_executor_half__norms_are_named_first) {
    static const char *const asked[] = {"squares"};
    rondo_device *device = open_device();
    rondo_program *program = make_mean_norm();
    for (size_t kept = 0; kept < 2; ++kept) {
        rondo_executor_options options = {.struct_size = sizeof options};
        rondo_executor *executor;
        char text[8192] = "";
        options.dtype = RONDO_DTYPE_F16;
        options.keep_f32 = asked;
        options.keep_f32_count = kept;
        OK(rondo_executor_create(program, device, &options, &executor));
        OK(rondo_executor_describe(executor, RONDO_TEXT_PLAIN, collect, text));
        if ((strstr(text, "RMSNormalization") != NULL) == (kept == 1) ||
            (strstr(text, "ReduceMean") != NULL) == (kept == 0)) {
            fail_msg("%zu kept:\n%s", kept, text);
        }
        rondo_executor_destroy(executor);
    }
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// Bodies are planned ahead where their shapes are known, and described one by one.
TEST(test_executor_half__description_shows_bodies) {
    rondo_device *device = open_device();
    model m;
    load_model("tests/models/branch_and_loop", &m);
    rondo_executor_options options = {.struct_size = sizeof options};
    options.dtype = RONDO_DTYPE_F16;
    rondo_executor *executor;
    OK(rondo_executor_create(m.program, device, &options, &executor));
    char text[8192] = "";
    OK(rondo_executor_describe(executor, RONDO_TEXT_PLAIN, collect, text));
    assert_non_null(strstr(text, "half precision in body of /Loop: 4 ops"));
    assert_non_null(strstr(text, "half precision in then_branch of /If_1: 3 ops"));
    assert_non_null(strstr(text, "half precision in then_branch of /If_2: 1 ops"));
    rondo_executor_destroy(executor);
    free_model(&m);
    rondo_device_release(device);
}

TEST(test_executor_half__loss_is_found) {
    rondo_device *device = open_device();
    rondo_program *program = make_square_root();
    rondo_binding feed = make_feed();
    rondo_executor_options options = {.struct_size = sizeof options};
    options.dtype = RONDO_DTYPE_F16;
    rondo_precision_loss loss = {.struct_size = sizeof loss};
    OK(rondo_executor_find_loss(program, device, &options, &feed, 1, 0.01, &loss));
    assert_false(loss.is_found);
    assert_int_equal(loss.compared_count, 2);
    options.use_f16 = (const char *const[]){"Pow"};
    options.use_f16_count = 1;
    OK(rondo_executor_find_loss(program, device, &options, &feed, 1, 0.01, &loss));
    assert_true(loss.is_found);
    assert_string_equal(loss.op, "Pow");
    assert_string_equal(loss.node, "power");
    assert_true(loss.error_before == 0.0 && loss.error_after > 0.1 && loss.output_error > 0.1);
    loss.struct_size = 1;
    assert_int_equal(rondo_executor_find_loss(program, device, &options, &feed, 1, 0.01, &loss),
                     RONDO_STATUS_INVALID);
    options = (rondo_executor_options){.struct_size = sizeof(rondo_executor_options)};
    loss.struct_size = sizeof loss;
    assert_int_equal(rondo_executor_find_loss(program, device, &options, &feed, 1, 0.01, &loss),
                     RONDO_STATUS_INVALID);
    rondo_tensor_deinit(&feed.tensor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

TEST_MAIN()
