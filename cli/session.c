#include "session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"
#include "progress.h"

char *cli_format_port(const rondo_port *port, char *buffer, size_t buffer_bytes) {
    size_t length = 0;
    const char *dtype = rondo_dtype_get_name(port->dtype);
    if (port->rank < 0) {
        snprintf(buffer, buffer_bytes, "%s, any shape", dtype);
        return buffer;
    }
    snprintf(buffer, buffer_bytes, "%s [", dtype);
    for (int32_t d = 0; d < port->rank; d++) {
        const char *separator = d > 0 ? ", " : "";
        length = strlen(buffer);
        if (port->symbol[d] != NULL && port->extent[d] >= 0) {
            snprintf(buffer + length, buffer_bytes - length, "%s%.40s=%" PRId64, separator,
                     port->symbol[d], port->extent[d]);
        } else if (port->symbol[d] != NULL) {
            snprintf(buffer + length, buffer_bytes - length, "%s%.40s", separator, port->symbol[d]);
        } else if (port->extent[d] >= 0) {
            snprintf(buffer + length, buffer_bytes - length, "%s%" PRId64, separator,
                     port->extent[d]);
        } else {
            snprintf(buffer + length, buffer_bytes - length, "%s?", separator);
        }
    }
    length = strlen(buffer);
    snprintf(buffer + length, buffer_bytes - length, "]");
    return buffer;
}

// ---- opening ----------------------------------------------------------------------------------

// Splits "NAME=VALUE" at the last '=' before VALUE; false when there is none or NAME is empty.
static bool split_assignment(const char *text, char *name, size_t name_bytes,
                             const char **out_value) {
    const char *equals = strrchr(text, '=');
    if (equals == NULL || equals == text || (size_t)(equals - text) >= name_bytes) {
        return false;
    }
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = '\0';
    *out_value = equals + 1;
    return true;
}

static bool set_dimensions(rondo_program *program, const cli_list *dimensions) {
    for (size_t i = 0; i < dimensions->count; i++) {
        char name[256];
        const char *value = NULL;
        char *end = NULL;
        errno = 0;
        if (!split_assignment(dimensions->items[i], name, sizeof name, &value)) {
            cli_print_error("--set %s: write NAME=NUMBER", dimensions->items[i]);
            return false;
        }
        const long long extent = strtoll(value, &end, 10);
        if (errno != 0 || end == value || *end != '\0') {
            cli_print_error("--set %s: \"%s\" is not a whole number", dimensions->items[i], value);
            return false;
        }
        if (rondo_program_set_dimension(program, name, extent) != RONDO_STATUS_OK) {
            cli_fail_with_record();
            return false;
        }
    }
    return true;
}

bool cli_set_precision(rondo_executor_options *options, rondo_dtype dtype, const cli_list *keep_f32,
                       const cli_list *use_f16) {
    if (dtype != RONDO_DTYPE_F16 && keep_f32->count + use_f16->count > 0) {
        cli_print_error("%s needs --dtype fp16", keep_f32->count > 0 ? "--keep-f32" : "--use-f16");
        return false;
    }
    options->dtype = dtype;
    options->keep_f32 = keep_f32->items;
    options->keep_f32_count = keep_f32->count;
    options->use_f16 = use_f16->items;
    options->use_f16_count = use_f16->count;
    return true;
}

bool cli_session_open(const char *path, const cli_model_settings *settings, cli_session *session) {
    memset(session, 0, sizeof *session);
    // The device first: its name is quickly checked, and a large model is slow to load.
    if (rondo_device_open(settings->device, &session->device) != RONDO_STATUS_OK ||
        rondo_device_get_info(session->device, &session->device_info) != RONDO_STATUS_OK) {
        cli_fail_with_record();
        return false;
    }
    cli_progress_show_loading(path);
    const rondo_status loaded = rondo_program_load_onnx(path, &session->program);
    cli_progress_clear();
    if (loaded != RONDO_STATUS_OK) {
        const rondo_error *error = rondo_error_get_last();
        const bool names_file = strstr(error->message, path) != NULL;
        cli_print_error("%s%s%s", names_file ? "" : path, names_file ? "" : ": ", error->message);
        return false;
    }
    if (!set_dimensions(session->program, &settings->dimensions)) {
        return false;
    }
    rondo_executor_options options = rondo_executor_options_default();
    options.graphs = (rondo_graphs_mode)settings->graphs;
    if (!cli_set_precision(&options, settings->dtype == 1 ? RONDO_DTYPE_F16 : RONDO_DTYPE_F32,
                           &settings->keep_f32, &settings->use_f16)) {
        return false;
    }
    options.seed = settings->seed;
    options.progress = cli_progress_show;
    if (rondo_executor_create(session->program, session->device, &options, &session->executor) !=
        RONDO_STATUS_OK) {
        cli_fail_with_record();
        return false;
    }
    return true;
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
    rondo_executor_destroy(session->executor);
    rondo_program_destroy(session->program);
    rondo_device_release(session->device);
    memset(session, 0, sizeof *session);
}

// ---- inputs -----------------------------------------------------------------------------------

// SplitMix64: good enough for test data, and the same everywhere.
// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static void store_random(rondo_dtype dtype, void *data, size_t index, uint64_t bits) {
    const float real = (float)(bits >> 40) * (1.0f / 8388608.0f) - 1.0f;  // 24 bits: [-1, 1)
    uint32_t real_bits;
    memcpy(&real_bits, &real, sizeof real_bits);
    switch (dtype) {
        case RONDO_DTYPE_F32:
            ((float *)data)[index] = real;
            break;
        case RONDO_DTYPE_F64:
            ((double *)data)[index] = (double)real;
            break;
        case RONDO_DTYPE_F16:
            ((uint16_t *)data)[index] = rondo_half_from_float(real);
            break;
        case RONDO_DTYPE_BF16:
            ((uint16_t *)data)[index] = (uint16_t)(real_bits >> 16);
            break;
        default: {
            // Whole numbers are most often ids, lengths and masks, where 0 and 1 are always in
            // range.
            const size_t width = rondo_dtype_get_bytes(dtype);
            const uint64_t bit = bits >> 63;
            memcpy((char *)data + index * width, &bit, width);
            break;
        }
    }
}

static bool make_random_input(const rondo_port *port, uint64_t seed, rondo_tensor *out_tensor) {
    rondo_shape shape = {.rank = port->rank};
    if (port->rank < 0 || port->rank > RONDO_RANK_MAX) {
        cli_print_error("input \"%s\" has no declared shape; give it with --input %s=FILE.npy",
                        port->name, port->name);
        return false;
    }
    for (int32_t d = 0; d < port->rank; d++) {
        shape.extent[d] = port->extent[d] >= 0 ? port->extent[d] : 1;
    }
    if (rondo_tensor_init(port->dtype, &shape, out_tensor) != RONDO_STATUS_OK) {
        cli_fail_with_record();
        return false;
    }
    uint64_t state = seed;
    const int64_t count = rondo_shape_get_count(&shape);
    for (int64_t i = 0; i < count; i++) {
        store_random(port->dtype, out_tensor->data, (size_t)i, next_random(&state));
    }
    return true;
}

// What --input says about `name`: a file, or NULL for random. *out_uses counts the mentions.
static const char *find_input_file(const cli_list *inputs, const char *name, size_t *out_uses) {
    const char *file = NULL;
    const size_t length = strlen(name);
    *out_uses = 0;
    for (size_t i = 0; i < inputs->count; i++) {
        const char *item = inputs->items[i];
        if (strncmp(item, name, length) == 0 && item[length] == '=') {
            (*out_uses)++;
            file = strcmp(item + length + 1, "random") == 0 ? NULL : item + length + 1;
        }
    }
    return file;
}

static bool make_feed(const cli_model_settings *settings, const rondo_port *port, size_t index,
                      rondo_binding *feed, size_t *used_count) {
    size_t uses = 0;
    const char *file = find_input_file(&settings->inputs, port->name, &uses);
    if (uses > 1) {
        cli_print_error("input \"%s\" is given %zu times", port->name, uses);
        return false;
    }
    *used_count += uses;
    feed->name = port->name;
    return file != NULL ? cli_npy_read(file, &feed->tensor)
                        : make_random_input(port, settings->seed + index, &feed->tensor);
}

static void print_unknown_input(const cli_session *session, const cli_list *inputs) {
    for (size_t i = 0; i < inputs->count; i++) {
        bool is_known = false;
        for (size_t k = 0; k < session->feed_count; k++) {
            const size_t length = strlen(session->feeds[k].name);
            is_known |= strncmp(inputs->items[i], session->feeds[k].name, length) == 0 &&
                        inputs->items[i][length] == '=';
        }
        if (!is_known) {
            char names[512] = "";
            for (size_t k = 0; k < session->feed_count; k++) {
                const size_t length = strlen(names);
                snprintf(names + length, sizeof names - length, "%s%s", k > 0 ? ", " : "",
                         session->feeds[k].name);
            }
            cli_print_error("--input %s: write NAME=FILE.npy or NAME=random; the inputs are: %s",
                            inputs->items[i], names);
            return;
        }
    }
}

bool cli_session_make_bindings(cli_session *session, const cli_model_settings *settings) {
    session->feed_count = rondo_program_get_input_count(session->program);
    session->fetch_count = rondo_program_get_output_count(session->program);
    session->feeds = calloc(session->feed_count + 1, sizeof *session->feeds);
    session->fetches = calloc(session->fetch_count + 1, sizeof *session->fetches);
    if (session->feeds == NULL || session->fetches == NULL) {
        cli_print_error("out of memory");
        return false;
    }
    size_t used_count = 0;
    for (size_t i = 0; i < session->feed_count; i++) {
        rondo_port port;
        if (rondo_program_get_input(session->program, i, &port) != RONDO_STATUS_OK) {
            cli_fail_with_record();
            return false;
        }
        if (!make_feed(settings, &port, i, &session->feeds[i], &used_count)) {
            return false;
        }
    }
    if (used_count != settings->inputs.count) {
        print_unknown_input(session, &settings->inputs);
        return false;
    }
    for (size_t i = 0; i < session->fetch_count; i++) {
        rondo_port port;
        if (rondo_program_get_output(session->program, i, &port) != RONDO_STATUS_OK) {
            cli_fail_with_record();
            return false;
        }
        session->fetches[i].name = port.name;
    }
    return true;
}

bool cli_session_run(cli_session *session) {
    const rondo_status status =
        rondo_executor_run(session->executor, session->feeds, session->feed_count, session->fetches,
                           session->fetch_count);
    cli_progress_clear();
    if (status != RONDO_STATUS_OK) {
        cli_fail_with_record();
        return false;
    }
    return true;
}
