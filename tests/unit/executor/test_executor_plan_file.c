// Plan files: a program loaded from one computes the same, bit for bit, from what the file has
// ready; what does not fit is refused by name; altered files are never a wrong result.
//
//   test_executor_plan_file [COUNT]      so many altered files of each kind; 60
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "kernel/weights/weight_store.h"
#include "program/saved/saved.h"
#include "rondo/builder.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/models/add_program.h"
#include "support/models/build_node.h"
#include "support/models/code_programs.h"
#include "support/short_forms.h"
#include "support/source_dir.h"
#include "support/test.h"
#include "support/text_sink.h"

static char g_path[64], g_other[64];
static size_t g_count = 60;
static size_t g_ready_count;   // plans whose program came from a file
static size_t g_kernel_count;  // their kernels, of which a plan has fewer than ten

static void count_line(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)level;
    const char *kernels = strstr(message, " kernels come from the plan file");
    if (kernels != NULL && kernels > message) {
        g_kernel_count += (size_t)(kernels[-1] - '0');
    }
    g_ready_count += strstr(message, "comes from the plan file") != NULL ? 1 : 0;
}

static int make_files(void **state) {
    (void)state;
    // In memory where that is possible: many files are written.
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(g_path, sizeof g_path, "%s/rondo_plan_XXXXXX", folder);
    (void)snprintf(g_other, sizeof g_other, "%s/rondo_plan_XXXXXX", folder);
    const int first = mkstemp(g_path);
    const int second = mkstemp(g_other);
    rondo_log_set_sink(count_line, NULL);
    rondo_log_set_level(RONDO_LOG_DEBUG);
    return first >= 0 && second >= 0 && close(first) == 0 && close(second) == 0 ? 0 : -1;
}

static int remove_files(void **state) {
    (void)state;
    return unlink(g_path) == 0 && unlink(g_other) == 0 ? 0 : -1;
}

// ---- programs ---------------------------------------------------------------------------------

enum { PORTS_MAX = 16 };

// A program with feeds and what comes of them.
typedef struct world {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    size_t feed_count, fetch_count;
    rondo_binding feeds[PORTS_MAX], fetches[PORTS_MAX];
} world;

static void fill_feed(const rondo_port *port, rondo_binding *out_feed) {
    rondo_shape shape = {.rank = port->rank};
    for (int32_t d = 0; d < port->rank; ++d) {
        shape.extent[d] = port->extent[d] >= 0 ? port->extent[d] : CODE_PROGRAM_EXTENT;
    }
    out_feed->name = port->name;
    OK(rondo_tensor_init(port->dtype, &shape, &out_feed->tensor));
    const size_t count = (size_t)rondo_shape_get_count(&shape);
    for (size_t i = 0; i < count; ++i) {
        if (port->dtype == RONDO_DTYPE_F32) {
            ((float *)out_feed->tensor.data)[i] = code_program_get_number(i);
        } else if (port->dtype == RONDO_DTYPE_I64) {
            ((int64_t *)out_feed->tensor.data)[i] = (int64_t)(i % 3);
        } else if (port->dtype == RONDO_DTYPE_BOOL) {
            ((bool *)out_feed->tensor.data)[i] = true;
        }
    }
}

static void list_ports(world *w) {
    w->feed_count = rondo_program_get_input_count(w->program);
    w->fetch_count = rondo_program_get_output_count(w->program);
    assert_true(w->feed_count <= PORTS_MAX && w->fetch_count <= PORTS_MAX);
    for (size_t i = 0; i < w->feed_count; ++i) {
        rondo_port port = {.struct_size = sizeof port};
        OK(rondo_program_get_input(w->program, i, &port));
        fill_feed(&port, &w->feeds[i]);
    }
    for (size_t i = 0; i < w->fetch_count; ++i) {
        rondo_port port = {.struct_size = sizeof port};
        OK(rondo_program_get_output(w->program, i, &port));
        w->fetches[i].name = port.name;
    }
}

static rondo_status run(world *w) {
    return rondo_executor_run(w->executor, w->feeds, w->feed_count, w->fetches, w->fetch_count);
}

static void open_world(const code_program *row, const rondo_executor_options *options, world *w) {
    *w = (world){0};
    OK(code_program_build(row, &w->program));
    OK(rondo_device_open("host", &w->device));
    OK(rondo_executor_create(w->program, w->device, options, &w->executor));
    list_ports(w);
    OK(run(w));
}

static void close_world(world *w) {
    for (size_t i = 0; i < PORTS_MAX; ++i) {
        rondo_tensor_deinit(&w->feeds[i].tensor);
        rondo_tensor_deinit(&w->fetches[i].tensor);
    }
    rondo_executor_destroy(w->executor);
    rondo_program_destroy(w->program);
    rondo_device_release(w->device);
}

static rondo_status load_world(const char *path, const rondo_plan_options *options, world *w) {
    *w = (world){0};
    OK(rondo_device_open("host", &w->device));
    return rondo_executor_load(path, w->device, NULL, options, &w->program, &w->executor);
}

static void expect_same(const world *a, const world *b) {
    assert_int_equal(a->fetch_count, b->fetch_count);
    for (size_t i = 0; i < a->fetch_count; ++i) {
        code_program_compare(&a->fetches[i].tensor, &b->fetches[i].tensor);
    }
}

// Loads the file, runs it, and compares.
static void expect_file_same(const char *path, const world *w) {
    world loaded;
    OK(load_world(path, NULL, &loaded));
    list_ports(&loaded);
    OK(run(&loaded));
    expect_same(w, &loaded);
    OK(run(&loaded));  // as a graph
    expect_same(w, &loaded);
    close_world(&loaded);
}

// The program of the file, saved as a model and loaded again.
static void expect_model_same(const char *path, const world *w) {
    rondo_program *program = NULL;
    world loaded = {0};
    OK(rondo_program_load_plan(path, NULL, &program));
    OK(rondo_program_save_onnx(program, g_other));
    rondo_program_destroy(program);
    OK(rondo_device_open("host", &loaded.device));
    OK(rondo_program_load_onnx(g_other, &loaded.program));
    OK(rondo_executor_create(loaded.program, loaded.device, NULL, &loaded.executor));
    list_ports(&loaded);
    OK(run(&loaded));
    expect_same(w, &loaded);
    close_world(&loaded);
}

TEST(test_executor_plan_file__programs_compute_the_same) {
    for (const code_program *row = code_programs; row->name != NULL; ++row) {
        world w;
        open_world(row, NULL, &w);
        OK(rondo_executor_save(w.executor, g_path));
        const size_t before = g_ready_count;
        expect_file_same(g_path, &w);
        if (g_ready_count == before) {
            print_error("%s: its plan was not in the file\n", row->name);
        }
        assert_true(g_ready_count > before);
        expect_model_same(g_path, &w);
        close_world(&w);
    }
}

TEST(test_executor_plan_file__half_precision) {
    const char *keep[] = {"Softmax"};
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .dtype = RONDO_DTYPE_F16,
                                            .keep_f32 = keep,
                                            .keep_f32_count = 0};
    for (const code_program *row = code_programs; row->name != NULL; ++row) {
        world w;
        open_world(row, &options, &w);
        OK(rondo_executor_save(w.executor, g_path));
        expect_file_same(g_path, &w);
        close_world(&w);
    }
}

// A file that was made from a file is the same again, but for the order of what has none.
TEST(test_executor_plan_file__saved_again) {
    world w, loaded;
    open_world(&code_programs[0], NULL, &w);
    OK(rondo_executor_save(w.executor, g_path));
    OK(load_world(g_path, NULL, &loaded));
    list_ports(&loaded);
    OK(run(&loaded));
    OK(rondo_executor_save(loaded.executor, g_other));
    close_world(&loaded);
    expect_file_same(g_other, &w);
    // Over the very file that is mapped.
    OK(load_world(g_path, NULL, &loaded));
    list_ports(&loaded);
    OK(run(&loaded));
    OK(rondo_executor_save(loaded.executor, g_path));
    expect_same(&w, &loaded);
    close_world(&loaded);
    expect_file_same(g_path, &w);
    close_world(&w);
}

// ---- what does not fit ------------------------------------------------------------------------

// Writes the file at g_path to g_other, with one section changed; NULL: it is left out.
static void rewrite(const char *name, void (*change)(rondo__section_source *source)) {
    rondo__section_file file;
    rondo__section_piece pieces[RONDO__SECTION_COUNT_MAX];
    rondo__section_source sources[RONDO__SECTION_COUNT_MAX];
    size_t count = 0;
    OK(rondo__section_file_open(&rondo__plan_file_kind, g_path, &file));
    for (size_t i = 0; i < file.section_count; ++i) {
        const rondo__section *section = &file.sections[i];
        const bool is_changed = strcmp(section->name, name) == 0;
        if (is_changed && change == NULL) {
            continue;
        }
        pieces[count] = (rondo__section_piece){section->bytes, section->byte_count, 0};
        sources[count] =
            (rondo__section_source){section->name, section->version, &pieces[count], 1};
        if (is_changed) {
            change(&sources[count]);
        }
        ++count;
    }
    OK(rondo__section_file_write(&rondo__plan_file_kind, g_other, sources, count));
    rondo__section_file_close(&file);
}

static rondo__saved_about g_about;

// Another "about"; the texts are g_about's.
static void change_about(rondo__section_source *source) {
    static rondo__text text;
    static rondo__section_piece piece;
    rondo__text_deinit(&text);
    rondo__saved_about_write(&g_about, &text);
    piece = (rondo__section_piece){text.bytes, text.length, 0};
    source->pieces = &piece;
}

static void change_version(rondo__section_source *source) {
    source->version += 1;
}

static void expect_refused(rondo_status status, const char *words) {
    world w;
    expect_words(load_world(g_other, NULL, &w), status, words, __FILE__, __LINE__);
    close_world(&w);
}

// What a caller who allows it gets: the same results.
static void expect_remade(const world *w) {
    const rondo_plan_options options = {.struct_size = sizeof options, .allow_remake = true};
    world loaded;
    OK(load_world(g_other, &options, &loaded));
    list_ports(&loaded);
    OK(run(&loaded));
    expect_same(w, &loaded);
    close_world(&loaded);
}

TEST(test_executor_plan_file__what_does_not_fit_is_named) {
    world w;
    rondo__saved *saved = NULL;
    open_world(&code_programs[0], NULL, &w);
    OK(rondo_executor_save(w.executor, g_path));
    OK(rondo__saved_open(g_path, &saved));
    const struct {
        const char *library, *device, *level, *words;
    } rows[] = {
        {"0.0.9", "host", saved->about.level, "made by version 0.0.9"},
        {saved->about.library, "cuda", "sm_90", "made for a GPU"},
        {saved->about.library, "host", "avx1024", "made for avx1024"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        g_about = saved->about;
        g_about.library = rows[i].library;
        g_about.device = rows[i].device;
        g_about.level = rows[i].level;
        rewrite("about", change_about);
        expect_refused(RONDO_STATUS_UNSUPPORTED, rows[i].words);
        expect_remade(&w);
    }
    rondo__saved_destroy(saved);
    for (size_t i = 0; i < 3; ++i) {
        static const char *const needed[] = {"about", "program", "data"};
        rewrite(needed[i], change_version);
        expect_refused(RONDO_STATUS_UNSUPPORTED, needed[i]);
        rewrite(needed[i], NULL);
        expect_refused(RONDO_STATUS_BAD_DATA, needed[i]);
    }
    rewrite("plans", change_version);  // made anew, as plans of other shapes are
    expect_file_same(g_other, &w);
    rewrite("forms", NULL);
    expect_file_same(g_other, &w);
    rewrite("bases", NULL);
    expect_refused(RONDO_STATUS_UNSUPPORTED, "other options");
    expect_remade(&w);
    close_world(&w);
}

TEST(test_executor_plan_file__options_and_models) {
    world w, other, loaded;
    rondo_program *program = NULL;
    rondo_executor *executor = NULL;
    open_world(&code_programs[0], NULL, &w);
    OK(rondo_executor_save(w.executor, g_path));
    const rondo_executor_options half = {.struct_size = sizeof half, .dtype = RONDO_DTYPE_F16};
    EXPECT(UNSUPPORTED, "made with other options (dtype f32",
           rondo_executor_load(g_path, w.device, &half, NULL, NULL, &executor));
    assert_null(executor);
    const rondo_plan_options remake = {.struct_size = sizeof remake, .allow_remake = true};
    OK(rondo_executor_load(g_path, w.device, &half, &remake, NULL, &executor));
    rondo_executor_destroy(executor);
    // The options that it was made with.
    rondo_executor_options options = {.struct_size = sizeof options};
    OK(rondo_program_load_plan(g_path, NULL, &program));
    OK(rondo_program_get_plan_options(program, &options));
    assert_int_equal(options.dtype, RONDO_DTYPE_F32);
    rondo_program_destroy(program);
    EXPECT(STATE, "does not come from a plan file",
           rondo_program_get_plan_options(w.program, &options));
    // The model that it was made of, and another.
    open_world(&code_programs[1], NULL, &other);
    rondo_plan_options made_of = {.struct_size = sizeof made_of, .made_of = w.program};
    OK(load_world(g_path, &made_of, &loaded));
    close_world(&loaded);
    made_of.made_of = other.program;
    EXPECT(INVALID, "another model", rondo_program_load_plan(g_path, &made_of, &program));
    assert_null(program);
    char no_plan[512];
    (void)snprintf(no_plan, sizeof no_plan, "%s/README.md", get_source_dir());
    EXPECT(BAD_DATA, "no plan file", rondo_program_load_plan(no_plan, NULL, &program));
    EXPECT(UNAVAILABLE, "no/such", rondo_program_load_plan("no/such/file", NULL, &program));
    EXPECT(UNAVAILABLE, "no/such", rondo_executor_save(w.executor, "no/such/file"));
    close_world(&other);
    close_world(&w);
}

static rondo_program *build_symbolic(void) {
    const rondo_port port = {.struct_size = sizeof port,
                             .name = "x",
                             .dtype = RONDO_DTYPE_F32,
                             .rank = 2,
                             .extent = {-1, 64},
                             .symbol = {"rows"}};
    const rondo_shape shape = {.rank = 2, .extent = {64, 48}};
    const char *const in[] = {"x", "w"}, *const out[] = {"y"};
    rondo_builder *builder = NULL;
    rondo_program *program = NULL;
    rondo_tensor weights;
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &weights));
    for (size_t i = 0; i < 64 * 48; ++i) {
        ((float *)weights.data)[i] = code_program_get_number(i);
    }
    OK(rondo_builder_create(NULL, &builder));
    OK(rondo_builder_add_input(builder, &port));
    OK(rondo_builder_add_parameter(builder, "w", &weights, RONDO_PARAMETER_COPIED));
    OK(rondo_builder_add_node(builder, "MatMul", in, 2, out, 1, NULL));
    OK(rondo_builder_add_output(builder, "y", NULL));
    program = build_finish(builder);
    rondo_tensor_deinit(&weights);
    return program;
}

static void run_rows(rondo_executor *executor, int64_t rows, rondo_tensor *out_y) {
    rondo_binding feed = {.name = "x"}, fetch = {.name = "y"};
    const rondo_shape shape = {.rank = 2, .extent = {rows, 64}};
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &feed.tensor));
    for (int64_t i = 0; i < rows * 64; ++i) {
        ((float *)feed.tensor.data)[i] = code_program_get_number((size_t)i);
    }
    OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    *out_y = fetch.tensor;
    rondo_tensor_deinit(&feed.tensor);
}

// Shapes that the file has, and others; what it says of itself.
TEST(test_executor_plan_file__shapes) {
    rondo_program *program = build_symbolic();
    rondo_device *device = NULL;
    rondo_executor *executor = NULL, *loaded = NULL;
    static const int64_t rows[] = {5, 1, 7};
    rondo_tensor y[3], z;
    text_sink s = {.length = 0};
    OK(rondo_device_open("host", &device));
    OK(rondo_executor_create(program, device, NULL, &executor));
    for (int i = 0; i < 3; ++i) {
        run_rows(executor, rows[i], &y[i]);
        if (i == 1) {
            OK(rondo_executor_save(executor, g_path));
        }
    }
    OK(rondo_executor_load(g_path, device, NULL, NULL, NULL, &loaded));
    for (int i = 0; i < 3; ++i) {
        const size_t before = g_ready_count;
        run_rows(loaded, rows[i], &z);
        assert_int_equal(g_ready_count - before, i < 2 ? 1 : 0);
        code_program_compare(&y[i], &z);
        rondo_tensor_deinit(&z);
        rondo_tensor_deinit(&y[i]);
    }
    OK(rondo_plan_describe(g_path, RONDO_TEXT_PLAIN, text_sink_append, &s));
    assert_non_null(strstr(s.text, "plan for x f32 [5, 64]"));
    assert_non_null(strstr(s.text, "plan for x f32 [1, 64]"));
    s.length = 0;
    OK(rondo_plan_describe(g_path, RONDO_TEXT_JSON, text_sink_append, &s));
    assert_non_null(strstr(s.text, "\"plans\": [{\"x\": \"f32 [1, 64]\"}, {\"x\": "));
    EXPECT(INVALID, "plain text or JSON",
           rondo_plan_describe(g_path, RONDO_TEXT_DOT, text_sink_append, &s));
    rondo_executor_destroy(loaded);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// y = v + x, and v becomes y.
static rondo_program *build_counting(void) {
    const rondo_shape shape = {.rank = 1, .extent = {4}};
    const rondo_port port = PORT("x", RONDO_DTYPE_F32, 4);
    rondo_port variable = port;
    float first[4] = {1, 2, 3, 4};
    const rondo_tensor tensor = {.dtype = RONDO_DTYPE_F32, .shape = shape, .data = first};
    const rondo_start start = {
        .struct_size = sizeof start, .kind = RONDO_START_TENSOR, .tensor = &tensor};
    const char *const in[] = {"v", "x"}, *const out[] = {"y"};
    rondo_builder *builder = NULL;
    variable.name = "v";
    OK(rondo_builder_create(NULL, &builder));
    OK(rondo_builder_add_variable(builder, &variable, &start));
    OK(rondo_builder_add_input(builder, &port));
    OK(rondo_builder_add_node(builder, "Add", in, 2, out, 1, NULL));
    OK(rondo_builder_add_output(builder, "y", NULL));
    OK(rondo_builder_set_update(builder, "v", "y"));
    return build_finish(builder);
}

// Variables begin anew, whatever they were when the file was made.
TEST(test_executor_plan_file__variables) {
    rondo_program *program = build_counting(), *again = NULL;
    rondo_device *device = NULL;
    rondo_executor *executor = NULL, *loaded = NULL;
    float x[4] = {1, 1, 1, 1}, y[4];
    const rondo_shape shape = {.rank = 1, .extent = {4}};
    const rondo_binding feed = BIND_SHAPE("x", RONDO_DTYPE_F32, x, shape);
    rondo_binding fetch = BIND_SHAPE("y", RONDO_DTYPE_F32, y, shape);
    rondo_variable variable;
    size_t count = 0;
    OK(rondo_device_open("host", &device));
    OK(rondo_executor_create(program, device, NULL, &executor));
    for (int i = 0; i < 3; ++i) {
        OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    }
    OK(rondo_executor_save(executor, g_path));
    OK(rondo_executor_load(g_path, device, NULL, NULL, &again, &loaded));
    OK(rondo_program_list_variables(again, 1, &variable, &count));
    assert_int_equal(count, 1);
    assert_string_equal(variable.update, "y");
    assert_int_equal(variable.start->kind, RONDO_START_TENSOR);
    for (int i = 0; i < 3; ++i) {
        OK(rondo_executor_run(loaded, &feed, 1, &fetch, 1));
        assert_true(y[0] == 2.0f + (float)i && y[3] == 5.0f + (float)i);
    }
    rondo_executor_destroy(loaded);
    rondo_executor_destroy(executor);
    rondo_program_destroy(again);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// A form that is ready is used where it lies.
TEST(test_executor_plan_file__forms_are_not_copied) {
    static _Alignas(64) const float packed[16] = {1};
    const rondo_shape shape = {.rank = 1, .extent = {16}};
    rondo_device *device = NULL;
    rondo__weight_store *store = NULL;
    rondo_tensor constant;
    void *address = NULL;
    OK(rondo_device_open("host", &device));
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &constant));
    OK(rondo__weight_store_create(device, RONDO_MEMORY_DEVICE, &store));
    rondo__ready_form *forms = rondo__calloc(1, sizeof *forms);
    assert_non_null(forms);
    forms[0] = (rondo__ready_form){.dtype = RONDO_DTYPE_F32,
                                   .constant = constant.data,
                                   .form = "key",
                                   .form_bytes = 3,
                                   .bytes = packed,
                                   .byte_count = sizeof packed};
    rondo__weight_store_set_ready(store, forms, 1);
    rondo__weight_account account = {.store = store};
    rondo__weight_list list;
    rondo__weight_list_init(&account, &list);
    rondo__weight_want want = {
        .constant = &constant, .form = "key", .form_bytes = 3, .bytes = sizeof packed};
    OK(rondo__weight_list_add(&list, &want, &address));
    assert_ptr_equal(address, packed);
    want.form = "kez";
    OK(rondo__weight_list_add(&list, &want, &address));
    assert_ptr_not_equal(address, packed);
    rondo__weight_list_cut(&list, 0);
    rondo__weight_store_destroy(store);
    rondo_tensor_deinit(&constant);
    rondo_device_release(device);
}

// ---- altered files ----------------------------------------------------------------------------

typedef struct file_bytes {
    unsigned char *bytes;
    size_t count;
} file_bytes;

static file_bytes read_file(const char *path) {
    file_bytes b = {0};
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    b.count = (size_t)ftell(file);
    rewind(file);
    b.bytes = malloc(b.count);
    assert_non_null(b.bytes);
    assert_int_equal(fread(b.bytes, 1, b.count, file), b.count);
    assert_int_equal(fclose(file), 0);
    return b;
}

static void write_file(const unsigned char *bytes, size_t count) {
    FILE *file = fopen(g_other, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static uint64_t g_random = 1;

static size_t draw(size_t bound) {
    g_random = g_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return bound > 0 ? (size_t)(g_random >> 33) % bound : 0;
}

// Changes some bytes of `count`, half of the time near the beginning, where the table is.
static void alter(unsigned char *bytes, size_t count) {
    const size_t times = 1 + draw(4);
    for (size_t i = 0; i < times && count > 0; ++i) {
        const size_t at = draw(2) == 0 ? draw(count) : draw(count < 1024 ? count : 1024);
        const size_t length = draw(4) == 0 ? 1 + draw(64) : 1;
        for (size_t k = at; k < at + length && k < count; ++k) {
            bytes[k] = (unsigned char)(draw(3) == 0 ? bytes[k] ^ 1u << draw(8) : draw(256));
        }
    }
}

// Refused by name, or the same result: what was altered may be padding.
TEST(test_executor_plan_file__altered_files_are_no_wrong_result) {
    world w;
    size_t refused = 0;
    open_world(&code_programs[1], NULL, &w);
    OK(rondo_executor_save(w.executor, g_path));
    const file_bytes whole = read_file(g_path);
    unsigned char *bytes = malloc(whole.count);
    assert_non_null(bytes);
    rondo_log_set_level(RONDO_LOG_ERROR);
    for (size_t i = 0; i < g_count; ++i) {
        world loaded;
        const size_t count = draw(4) == 0 ? draw(whole.count) : whole.count;
        memcpy(bytes, whole.bytes, whole.count);
        if (count == whole.count) {
            alter(bytes, count);
        }
        write_file(bytes, count);
        const rondo_status status = load_world(g_other, NULL, &loaded);
        if (status == RONDO_STATUS_OK) {
            list_ports(&loaded);
            OK(run(&loaded));
            expect_same(&w, &loaded);
        } else {
            assert_true(status == RONDO_STATUS_BAD_DATA || status == RONDO_STATUS_UNSUPPORTED);
            assert_true(strlen(rondo_error_get_last()->message) > 0);
            refused += 1;
        }
        close_world(&loaded);
    }
    assert_true(refused > g_count / 2);
    rondo_log_set_level(RONDO_LOG_DEBUG);
    free(bytes);
    free(whole.bytes);
    close_world(&w);
}

// The section as it is, and what is to be altered in it.
static void alter_section(rondo__section_source *source) {
    static unsigned char *copy;
    static rondo__section_piece piece;
    free(copy);
    copy = malloc(source->pieces[0].byte_count + 1);
    assert_non_null(copy);
    memcpy(copy, source->pieces[0].bytes, source->pieces[0].byte_count);
    alter(copy, source->pieces[0].byte_count);
    piece = (rondo__section_piece){copy, source->pieces[0].byte_count, 0};
    source->pieces = &piece;
}

// Checksums that fit, around programs that do not: the reader looks at all of it.
TEST(test_executor_plan_file__records_are_read_as_a_strangers) {
    size_t read = 0;
    const rondo_plan_options options = {.struct_size = sizeof options, .allow_remake = true};
    rondo_log_set_level(RONDO_LOG_ERROR);
    for (size_t i = 0; i < g_count; ++i) {
        static const char *const names[] = {"about", "program", "tuning", "program"};
        size_t row = 0;
        while (code_programs[row].name != NULL) {
            ++row;
        }
        if (i % 16 == 0) {
            world w;
            open_world(&code_programs[draw(row)], NULL, &w);
            OK(rondo_executor_save(w.executor, g_path));
            close_world(&w);
        }
        rondo_program *program = NULL;
        text_sink s = {.length = 0};
        rewrite(names[draw(4)], alter_section);
        const rondo_status status = rondo_program_load_plan(g_other, &options, &program);
        read += status == RONDO_STATUS_OK ? 1 : 0;
        rondo_program_destroy(program);
        rewrite("plans", alter_section);
        const rondo_status described =
            rondo_plan_describe(g_other, RONDO_TEXT_JSON, text_sink_append, &s);
        assert_true(described == RONDO_STATUS_OK || described == RONDO_STATUS_BAD_DATA);
    }
    assert_true(read < g_count);
    rondo_log_set_level(RONDO_LOG_DEBUG);
}

// ---- kernels of a GPU -------------------------------------------------------------------------

// Without a name: as the fake driver has it.
static fake_cuda_options g_gpu;

static void open_gpu(rondo_device **out_device) {
    fake_cuda_reset(g_gpu.name != NULL ? &g_gpu : NULL);
    fake_cuda_install();
    fake_cuda_install_compiler();
    add_program_prepare_fake();
    OK(rondo_device_open("cuda:0", out_device));
}

static void close_gpu(rondo_device *device) {
    rondo_device_release(device);
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
}

static void save_for_gpu(void) {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    open_gpu(&device);
    OK(add_program_create(device, RONDO_GRAPHS_AUTO, &program, &executor));
    OK(add_program_run(executor, 1.0f));
    OK(rondo_executor_save(executor, g_path));
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    close_gpu(device);
}

// Eager, recorded and replayed, from kernels that no text was written for; and saved again.
TEST(test_executor_plan_file__kernels_of_a_gpu) {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    save_for_gpu();
    g_kernel_count = 0;
    open_gpu(&device);
    OK(rondo_executor_load(g_path, device, NULL, NULL, &program, &executor));
    for (int i = 0; i < 4; ++i) {
        OK(add_program_run(executor, (float)i));
    }
    assert_int_equal(g_kernel_count, 2);
    OK(rondo_executor_save(executor, g_other));
    const file_bytes first = read_file(g_path);
    const file_bytes second = read_file(g_other);
    assert_int_equal(first.count, second.count);
    assert_memory_equal(first.bytes, second.bytes, first.count);
    free(first.bytes);
    free(second.bytes);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    close_gpu(device);
}

// A file of an H200 serves an H100, another GPU of its generation, as it is. One of any other
// generation refuses it by name, and remakes it where that is allowed.
TEST(test_executor_plan_file__gpus_of_one_generation) {
    static const struct {
        const char *name, *words;
        int capability, gibibytes;
    } rows[] = {{"NVIDIA H200", NULL, 90, 141},
                {"NVIDIA H100 80GB HBM3", NULL, 90, 80},
                {"NVIDIA A100-SXM4-80GB", "cuda:0 is sm_80", 80, 80},
                {"NVIDIA L40S", "cuda:0 is sm_89", 89, 48},
                {"NVIDIA B200", "cuda:0 is sm_100", 100, 180}};
    const rondo_plan_options remake = {.struct_size = sizeof remake, .allow_remake = true};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        rondo_device *device;
        rondo_program *program;
        rondo_executor *executor;
        g_gpu = (fake_cuda_options){.device_count = 1,
                                    .driver_version = 13000,
                                    .name = rows[i].name,
                                    .compute_capability = rows[i].capability,
                                    .memory_bytes = (size_t)rows[i].gibibytes << 30,
                                    .has_get_proc_address = true};
        i == 0 ? save_for_gpu() : (void)0;
        g_kernel_count = 0;
        open_gpu(&device);
        const rondo_status got =
            rondo_executor_load(g_path, device, NULL, NULL, &program, &executor);
        assert_int_equal(got == RONDO_STATUS_OK, rows[i].words == NULL);
        if (rows[i].words != NULL) {
            expect_words(got, RONDO_STATUS_UNSUPPORTED, "made for sm_90", __FILE__, __LINE__);
            expect_words(got, RONDO_STATUS_UNSUPPORTED, rows[i].words, __FILE__, __LINE__);
            OK(rondo_executor_load(g_path, device, NULL, &remake, &program, &executor));
        }
        OK(add_program_run(executor, 1.0f));
        assert_int_equal(g_kernel_count, rows[i].words == NULL ? 2 : 0);
        rondo_executor_destroy(executor);
        rondo_program_destroy(program);
        close_gpu(device);
    }
    g_gpu = (fake_cuda_options){0};
}

// The kernels stand behind the program.
static void alter_kernels(rondo__section_source *source) {
    static unsigned char *copy;
    static rondo__section_piece piece;
    const size_t count = source->pieces[0].byte_count;
    free(copy);
    copy = malloc(count);
    assert_non_null(copy);
    memcpy(copy, source->pieces[0].bytes, count);
    alter(copy + count * 3 / 4, count / 4);
    piece = (rondo__section_piece){copy, count, 0};
    source->pieces = &piece;
}

// Checksums that fit: what does not is prepared as without the file, or the file is refused.
TEST(test_executor_plan_file__altered_kernels) {
    save_for_gpu();
    rondo_log_set_level(RONDO_LOG_ERROR);
    for (size_t i = 0; i < g_count; ++i) {
        rondo_device *device;
        rondo_program *program;
        rondo_executor *executor;
        text_sink s = {.length = 0};
        open_gpu(&device);
        rewrite("plans", alter_kernels);
        OK(rondo_executor_load(g_other, device, NULL, NULL, &program, &executor));
        const rondo_status status =  // makes the plan, and runs nothing
            rondo_executor_describe(executor, RONDO_TEXT_JSON, text_sink_append, &s);
        assert_true(status == RONDO_STATUS_OK || status == RONDO_STATUS_BAD_DATA ||
                    status == RONDO_STATUS_NO_MEMORY || status == RONDO_STATUS_NO_DEVICE_MEMORY);
        rondo_executor_destroy(executor);
        rondo_program_destroy(program);
        close_gpu(device);
    }
    rondo_log_set_level(RONDO_LOG_DEBUG);
}

int main(int argc, char **argv) {
    g_count = argc > 1 ? (size_t)strtoull(argv[1], NULL, 10) : g_count;
    return RUN_TESTS(make_files, remove_files);
}
