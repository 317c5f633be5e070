// SPDX-License-Identifier: Apache-2.0

#include "session.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file_bytes.h"
#include "interrupt.h"
#include "missing_ops.h"
#include "model_file.h"
#include "progress.h"
#include "random_tensor.h"
#include "session_text.h"

// ---- the command line -------------------------------------------------------------------------

static bool is_extent(const char *text) {
    errno = 0;
    (void)strtoll(text, NULL, 10);
    return errno == 0 && text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
}

static bool is_shape(const char *text) {
    return text[0] != '\0' && strspn(text, "0123456789x") == strlen(text) && text[0] != 'x' &&
           text[strlen(text) - 1] != 'x' && strstr(text, "xx") == NULL;
}

void cli_set_precision(rondo_executor_options *options, rondo_dtype dtype, const cli_list *keep_f32,
                       const cli_list *use_f16) {
    options->dtype = dtype;
    options->keep_f32 = keep_f32->items;
    options->keep_f32_count = keep_f32->count;
    options->use_f16 = use_f16->items;
    options->use_f16_count = use_f16->count;
}

bool cli_check_precision(const cli_command *command, bool is_half, const cli_list *keep_f32,
                         const cli_list *use_f16) {
    if (!is_half && keep_f32->count + use_f16->count > 0) {
        cli_fail_misuse(command, "%s needs --dtype fp16",
                        keep_f32->count > 0 ? "--keep-f32" : "--use-f16");
        return false;
    }
    return true;
}

bool cli_choose_threads(const cli_command *command, uint64_t count) {
    char text[32];
    if (count > 1024) {
        cli_fail_misuse(command, "option --threads is 1 to 1024, not \"%" PRIu64 "\"", count);
        return false;
    }
    snprintf(text, sizeof text, "%" PRIu64, count);
    if (count > 0 && setenv("RONDO_NUM_THREADS", text, 1) != 0) {
        return cli_fail_memory();
    }
    return true;
}

int cli_session_begin(const cli_command *command, const cli_model_settings *settings,
                      cli_session *session) {
    memset(session, 0, sizeof *session);
    static const cli_assignment_kind set = {"--set", "batch=4", false, is_extent};
    static const cli_assignment_kind shape = {"--shape", "x=1x3x224x224", false, is_shape};
    static const cli_assignment_kind image = {"--image", "x=FILE.jpg", true, NULL};
    static const cli_assignment_kind input = {"--input", "x=FILE.npy, or x=random", true, NULL};
    if (!cli_choose_threads(command, settings->thread_count)) {
        return CLI_MISUSE;
    }
    if (settings->is_quiet && settings->is_verbose) {
        return cli_fail_misuse(command, "--quiet and --verbose exclude each other");
    }
    if (!cli_check_precision(command, settings->dtype == 1, &settings->keep_f32,
                             &settings->use_f16)) {
        return CLI_MISUSE;
    }
    if (!cli_assignments_parse(command, &set, &settings->dimensions, &session->sets) ||
        !cli_assignments_parse(command, &shape, &settings->shapes, &session->shapes) ||
        !cli_assignments_parse(command, &input, &settings->inputs, &session->files) ||
        !cli_assignments_parse(command, &image, &settings->image.images, &session->images) ||
        !cli_image_options_read(command, &settings->image, &session->image_options)) {
        return CLI_MISUSE;
    }
    if (cli_get_level() == CLI_NORMAL) {
        cli_set_level(settings->is_quiet     ? CLI_RESULT
                      : settings->is_verbose ? CLI_DETAIL
                                             : CLI_NORMAL);
    }
    const int variable = cli_read_variable("RONDO_GRAPHS");
    static const rondo_graphs_mode modes[] = {RONDO_GRAPHS_AUTO, RONDO_GRAPHS_ON,
                                              RONDO_GRAPHS_OFF,  RONDO_GRAPHS_MEASURED,
                                              RONDO_GRAPHS_ON,   RONDO_GRAPHS_OFF};
    session->graphs = settings->graphs >= 0 ? (rondo_graphs_mode)settings->graphs
                      : variable >= 0       ? modes[variable]
                                            : RONDO_GRAPHS_AUTO;
    return CLI_DONE;
}

// ---- opening ----------------------------------------------------------------------------------

// A load of a file, perhaps on a thread of its own while the device is opened: both take some
// tenths of a second where there is a GPU.
typedef struct loading {
    const char *path;
    rondo_load_options options;
    bool allow_remake;
    bool has_thread;
    pthread_t thread;
    rondo_status status;
    rondo_error error;
    rondo_program *program;
} loading;

static void *load_file(void *data) {
    loading *l = data;
    l->status = cli_model_load(l->path, &l->options, l->allow_remake, &l->program);
    l->error = *rondo_error_get_last();
    return NULL;
}

static bool is_stdin(const char *path) {
    return strcmp(path, "-") == 0;
}

static void begin_loading(const char *device, loading *l) {
    const bool is_worth_it = !is_stdin(l->path) && strcmp(device, "host") != 0;
    l->has_thread = is_worth_it && pthread_create(&l->thread, NULL, load_file, l) == 0;
}

static void end_loading(loading *l) {
    if (l->has_thread) {
        (void)pthread_join(l->thread, NULL);
    } else {
        (void)load_file(l);
    }
}

static bool read_stdin(loading *l) {
    cli_bytes bytes;
    if (!cli_bytes_load(l->path, &bytes)) {
        return false;
    }
    l->status = rondo_program_parse_onnx_with(bytes.data, bytes.count, &l->options, &l->program);
    l->error = *rondo_error_get_last();
    cli_bytes_free(&bytes);
    return true;
}

static bool load_program(loading *l, cli_session *session) {
    if (is_stdin(l->path)) {
        session->path = "standard input";
        if (!read_stdin(l)) {
            return false;
        }
    } else {
        session->path = l->path;
        cli_progress_show_loading(l->path);
        end_loading(l);
        cli_progress_clear();
        if (l->status == RONDO_STATUS_UNSUPPORTED && cli_print_missing_ops(l->path)) {
            return false;
        }
    }
    if (l->status != RONDO_STATUS_OK) {
        const bool names_file = strstr(l->error.message, session->path) != NULL;
        char hint[1100];
        cli_print_error("%s%s%s%s", names_file ? "" : session->path, names_file ? "" : ": ",
                        l->error.message, cli_model_hint(session->path, hint, sizeof hint));
        return false;
    }
    session->program = l->program;
    return true;
}

bool cli_session_make_executor(const cli_model_settings *settings, cli_session *session) {
    rondo_executor_options options = {.struct_size = sizeof options};
    const bool has_plan =
        rondo_program_get_plan_options(session->program, &options) == RONDO_STATUS_OK;
    // Of a plan file, what is not said is as it was when that was made.
    if (!has_plan || settings->dtype >= 0 ||
        settings->keep_f32.count + settings->use_f16.count > 0) {
        cli_set_precision(&options, settings->dtype == 1 ? RONDO_DTYPE_F16 : RONDO_DTYPE_F32,
                          &settings->keep_f32, &settings->use_f16);
    }
    if (settings->place.count > 0) {
        options.place = settings->place.items;
        options.place_count = settings->place.count;
    }
    options.no_folding = options.no_folding || settings->is_unfolded;
    options.seed = settings->seed;
    options.progress = cli_progress_show;
    options.thread_count = (uint32_t)settings->thread_count;
    options.branches = settings->branches;
    options.tuning = settings->tuning != RONDO_TUNING_AUTO ? settings->tuning : options.tuning;
    options.tuning_file = settings->tuning_file;
    options.memory_limit_bytes = settings->memory_limit;
    options.weight_limit_bytes = settings->weight_limit;
    options.loop_limit = settings->loop_limit;
    const rondo_status status =
        rondo_executor_create(session->program, session->device, &options, &session->executor);
    // Said again, so that an explicit --graphs auto goes before RONDO_GRAPHS, too.
    if (status != RONDO_STATUS_OK ||
        rondo_executor_set_graphs(session->executor, session->graphs) != RONDO_STATUS_OK) {
        cli_session_fail(session);
        return false;
    }
    return true;
}

static void say_dimensions(const cli_session *session) {
    for (size_t i = 0; i < session->dimension_count; i++) {
        const cli_dimension *dimension = &session->dimensions[i];
        cli_say(CLI_DETAIL, "dimension %s = %" PRId64 " (%s)", dimension->symbol, dimension->extent,
                dimension->origin);
    }
}

bool cli_session_open(const char *path, const cli_model_settings *settings, cli_session *session) {
    loading l = {.path = path,
                 .options = {.struct_size = sizeof l.options,
                             .memory_limit_bytes = settings->memory_limit,
                             .allow_newer_opset = settings->allow_newer_opset},
                 .allow_remake = settings->allow_remake};
    session->device_info.struct_size = sizeof session->device_info;
    begin_loading(settings->device, &l);
    // What is wrong with the device is said first: a large model is slow to load.
    if (rondo_device_open(settings->device, &session->device) != RONDO_STATUS_OK ||
        rondo_device_get_info(session->device, &session->device_info) != RONDO_STATUS_OK) {
        cli_fail_with_record();
        if (l.has_thread) {
            end_loading(&l);
            rondo_program_destroy(l.program);
        }
        return false;
    }
    if (!load_program(&l, session)) {
        return false;
    }
    const size_t input_count = rondo_program_get_input_count(session->program);
    const size_t output_count = rondo_program_get_output_count(session->program);
    cli_say(CLI_DETAIL, "model %s: %zu input%s, %zu output%s", session->path, input_count,
            input_count == 1 ? "" : "s", output_count, output_count == 1 ? "" : "s");
    cli_say(CLI_DETAIL, "device %s (%s)", session->device_info.name,
            session->device_info.description);
    if (!cli_inputs_set_dimensions(session) || !cli_inputs_read(session, settings)) {
        return false;
    }
    say_dimensions(session);
    return cli_session_make_executor(settings, session);
}

void cli_session_close(cli_session *session) {
    for (size_t i = 0; session->feeds != NULL && i < session->feed_count; i++) {
        rondo_tensor_deinit(&session->feeds[i].tensor);
    }
    for (size_t i = 0; session->fetches != NULL && i < session->fetch_count; i++) {
        rondo_tensor_deinit(&session->fetches[i].tensor);
    }
    free(session->feeds);
    free(session->fetches);
    free(session->varies);
    free(session->dimensions);
    cli_assignments_free(&session->sets);
    cli_assignments_free(&session->shapes);
    cli_assignments_free(&session->files);
    cli_assignments_free(&session->images);
    cli_path_list_free(&session->image_files);
    rondo_executor_destroy(session->executor);
    rondo_program_destroy(session->program);
    rondo_device_release(session->device);
    memset(session, 0, sizeof *session);
}

// ---- running ----------------------------------------------------------------------------------

static bool ignore(void *user_data, const char *text, size_t bytes) {
    (void)user_data;
    (void)text;
    (void)bytes;
    return true;
}

bool cli_session_plan(cli_session *session, const rondo_binding *feeds, size_t feed_count) {
    const rondo_status status = rondo_executor_describe_feeds(session->executor, feeds, feed_count,
                                                              RONDO_TEXT_PLAIN, ignore, NULL);
    cli_progress_clear();
    if (status != RONDO_STATUS_OK) {
        cli_session_fail(session);
    }
    return status == RONDO_STATUS_OK;
}

bool cli_session_complete_feeds(cli_session *session, const cli_model_settings *settings) {
    for (size_t i = 0; i < session->feed_count; i++) {
        rondo_tensor *tensor = &session->feeds[i].tensor;
        const bool is_empty = rondo_shape_get_count(&tensor->shape) == 0;
        if (tensor->dtype == RONDO_DTYPE_SEQUENCE && tensor->storage == NULL) {
            cli_print_error(
                "%s: input \"%s\" is a sequence; give it with --input: a .pb file, or a "
                "folder with its items 0.npy, 1.npy and so on",
                session->path, session->feeds[i].name);
            return false;
        }
        if (tensor->data != NULL || (is_empty && tensor->dtype != RONDO_DTYPE_NONE)) {
            continue;
        }
        if (tensor->dtype == RONDO_DTYPE_NONE) {
            cli_print_error(
                "%s: input \"%s\" has no declared shape; give it with --shape, or its "
                "values with --input",
                session->path, session->feeds[i].name);
            return false;
        }
        const rondo_dtype dtype = tensor->dtype;
        const rondo_shape shape = tensor->shape;
        if (cli_random_init(dtype, &shape, settings->seed + i, tensor) != RONDO_STATUS_OK) {
            cli_session_fail(session);
            return false;
        }
    }
    session->fetch_count = rondo_program_get_output_count(session->program);
    session->fetches = calloc(session->fetch_count + 1, sizeof *session->fetches);
    if (session->fetches == NULL) {
        return cli_fail_memory();
    }
    for (size_t i = 0; i < session->fetch_count; i++) {
        rondo_port port = {.struct_size = sizeof port};
        if (rondo_program_get_output(session->program, i, &port) != RONDO_STATUS_OK) {
            cli_session_fail(session);
            return false;
        }
        session->fetches[i].name = port.name;
    }
    return true;
}

// Whether a run succeeded; otherwise prints why.
static bool check_run(cli_session *session, rondo_status status) {
    cli_progress_clear();
    if (status == RONDO_STATUS_CANCELLED && cli_interrupt_came()) {
        session->was_cancelled = true;
        return false;
    }
    if (status != RONDO_STATUS_OK) {
        cli_session_fail(session);
    }
    return status == RONDO_STATUS_OK;
}

// Which sizes the shapes of the inputs leave open.
static bool find_varying(cli_session *session) {
    size_t count = 0;
    rondo_binding *outputs = calloc(session->fetch_count + 1, sizeof *outputs);
    bool *varies = calloc(session->fetch_count + 1, sizeof *varies);
    if (outputs == NULL || varies == NULL) {
        (void)cli_fail_memory();
        goto free_lists;
    }
    if (rondo_executor_infer_outputs(session->executor, session->feeds, session->feed_count,
                                     outputs, session->fetch_count, &count) != RONDO_STATUS_OK) {
        cli_session_fail(session);
        goto free_lists;
    }
    for (size_t i = 0; i < count; i++) {
        const rondo_shape *shape = &outputs[i].tensor.shape;
        varies[i] = shape->rank < 0;
        for (int32_t d = 0; d < shape->rank; d++) {
            varies[i] = varies[i] || shape->extent[d] < 0;
        }
    }
    session->varies = varies;
    varies = NULL;

free_lists:
    free(outputs);
    free(varies);
    return session->varies != NULL;
}

bool cli_session_free_varying(cli_session *session) {
    bool has_run = false;
    for (size_t i = 0; i < session->fetch_count; i++) {
        has_run = has_run || session->fetches[i].tensor.dtype != RONDO_DTYPE_NONE;
    }
    if (has_run && session->varies == NULL && !find_varying(session)) {
        return false;
    }
    for (size_t i = 0; has_run && i < session->fetch_count; i++) {
        if (session->varies[i]) {
            rondo_tensor_deinit(&session->fetches[i].tensor);
        }
    }
    return true;
}

bool cli_session_run(cli_session *session) {
    return cli_session_free_varying(session) &&
           check_run(session,
                     rondo_executor_run(session->executor, session->feeds, session->feed_count,
                                        session->fetches, session->fetch_count));
}

bool cli_session_rerun(cli_session *session) {
    return check_run(session, rondo_executor_rerun(session->executor));
}
