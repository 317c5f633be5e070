// decoder_ports.c — see decoder_ports.h.
// SPDX-License-Identifier: Apache-2.0
#include "decoder_ports.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "console.h"
#include "file_bytes.h"
#include "json_reader.h"
#include "model_path.h"

enum { NAME_MAX_BYTES = 256 };

// ---- the files beside the model -----------------------------------------------------------------

static bool format_beside(const char *path, const char *name, char *out, size_t out_bytes) {
    const char *slash = strrchr(path, '/');
    const int folder = slash != NULL ? (int)(slash - path + 1) : 0;
    const int length = snprintf(out, out_bytes, "%.*s%s", folder, path, name);
    if (length < 0 || (size_t)length >= out_bytes) {
        cli_print_error("%.100s...: the path is longer than %zu bytes", path, out_bytes - 1);
        return false;
    }
    return true;
}

// *out_value is NULL where there is no such file.
static bool read_beside(const char *path, const char *name, json_t **out_value) {
    char beside[CLI_PATH_MAX];
    cli_bytes bytes;
    *out_value = NULL;
    if (!format_beside(path, name, beside, sizeof beside) || access(beside, F_OK) != 0) {
        return true;
    }
    if (!cli_bytes_load(beside, &bytes)) {
        return false;
    }
    const bool is_read = cli_json_parse((const char *)bytes.data, bytes.count, beside, out_value);
    cli_bytes_free(&bytes);
    return is_read;
}

bool cli_decoder_find_model(const char *operand, char *path, size_t path_bytes) {
    struct stat info;
    json_t *config = NULL;
    char inside[CLI_PATH_MAX];
    if (stat(operand, &info) != 0 || !S_ISDIR(info.st_mode)) {
        return format_beside("", operand, path, path_bytes);
    }
    if (!cli_format_model_path(operand, inside, sizeof inside) ||
        !read_beside(inside, "genai_config.json", &config)) {
        return false;
    }
    const char *name = cli_json_find_text(config, "model.decoder.filename");
    const bool fits = format_beside(inside, name != NULL ? name : "model.onnx", path, path_bytes);
    json_decref(config);
    return fits;
}

static void add_stop(cli_decoder_ports *ports, const json_t *value) {
    const double number = json_is_number(value) ? json_number_value(value) : -1.0;
    if (number >= 0 && number < INT32_MAX) {
        ports->stops[ports->stop_count++] = (int64_t)number;
    }
}

static bool read_stops(const char *path, cli_decoder_ports *ports, const json_t *value) {
    if (json_array_size(value) > CLI_STOP_MAX) {
        cli_print_error("%s: %zu ids of eos_token_id; leave %d in its configuration", path,
                        json_array_size(value), CLI_STOP_MAX);
        return false;
    }
    add_stop(ports, value);
    for (size_t i = 0; i < json_array_size(value); ++i) {
        add_stop(ports, json_array_get(value, i));
    }
    return true;
}

// A whole number of a config, or 0.
static int64_t read_count(json_t *config, const char *path) {
    double number = 0;
    return cli_json_find_number(config, path, &number) && number >= 1 && number < INT32_MAX
               ? (int64_t)number
               : 0;
}

// ---- ports --------------------------------------------------------------------------------------

static bool find_port(const rondo_program *program, bool is_output, const char *name,
                      rondo_port *out_port) {
    const size_t count = is_output ? rondo_program_get_output_count(program)
                                   : rondo_program_get_input_count(program);
    for (size_t i = 0; i < count; ++i) {
        *out_port = (rondo_port){.struct_size = sizeof *out_port};
        const rondo_status status = is_output ? rondo_program_get_output(program, i, out_port)
                                              : rondo_program_get_input(program, i, out_port);
        if (status == RONDO_STATUS_OK && strcmp(out_port->name, name) == 0) {
            return true;
        }
    }
    return false;
}

// What the config calls a port.
static const char *get_name(json_t *config, const char *kind, const char *key,
                            const char *fallback) {
    char path[96];
    (void)snprintf(path, sizeof path, "model.decoder.%s.%s", kind, key);
    const char *name = cli_json_find_text(config, path);
    return name != NULL ? name : fallback;
}

static const char *find_input(const rondo_program *program, json_t *config, const char *key,
                              rondo_dtype *out_dtype) {
    rondo_port port;
    if (!find_port(program, false, get_name(config, "inputs", key, key), &port)) {
        return NULL;
    }
    *out_dtype = port.dtype;
    return port.name;
}

// The pattern's name of layer `layer`, which stands for its first %d.
static bool format_layer(const char *pattern, size_t layer, char *out, size_t out_bytes) {
    const char *mark = strstr(pattern, "%d");
    if (mark == NULL) {
        return false;
    }
    const int length =
        snprintf(out, out_bytes, "%.*s%zu%s", (int)(mark - pattern), pattern, layer, mark + 2);
    return length >= 0 && (size_t)length < out_bytes;
}

typedef struct finder {
    const rondo_program *program;
    json_t *config;     // genai_config.json, or NULL
    json_t *hub;        // config.json, or NULL
    int64_t head_size;  // 0: not said
    cli_decoder_ports *ports;
} finder;

static bool add_cache(finder *f, const char *past_name, const char *present_name) {
    cli_decoder_ports *ports = f->ports;
    rondo_port past, present;
    if (!find_port(f->program, false, past_name, &past)) {
        return true;
    }
    if (!find_port(f->program, true, present_name, &present)) {
        cli_print_error("input \"%s\" has no output \"%s\" that it becomes", past_name,
                        present_name);
        return false;
    }
    if (past.rank != 4 || past.extent[1] < 1) {
        cli_print_error("input \"%s\" is no cache [batch, heads, rows, width]", past_name);
        return false;
    }
    const int64_t width = past.extent[3] > 0 ? past.extent[3] : f->head_size;
    if (width < 1) {
        cli_print_error(
            "input \"%s\" does not say how wide a head is, and there is no "
            "genai_config.json beside the model: give --head-size",
            past_name);
        return false;
    }
    cli_cache *caches = realloc(ports->caches, (ports->cache_count + 1) * sizeof *ports->caches);
    if (caches == NULL) {
        return cli_fail_memory();
    }
    ports->caches = caches;
    caches[ports->cache_count++] =
        (cli_cache){past.name, present.name, past.dtype, past.extent[1], width};
    return true;
}

static bool add_caches(finder *f) {
    static const char *const kinds[] = {"key", "value"};
    for (size_t layer = 0, before = SIZE_MAX; before != f->ports->cache_count; ++layer) {
        before = f->ports->cache_count;
        for (size_t i = 0; i < 2; ++i) {
            char past_key[32], present_key[32], past_pattern[64], present_pattern[64];
            char past[NAME_MAX_BYTES], present[NAME_MAX_BYTES];
            (void)snprintf(past_key, sizeof past_key, "past_%s_names", kinds[i]);
            (void)snprintf(present_key, sizeof present_key, "present_%s_names", kinds[i]);
            (void)snprintf(past_pattern, sizeof past_pattern, "past_key_values.%%d.%s", kinds[i]);
            (void)snprintf(present_pattern, sizeof present_pattern, "present.%%d.%s", kinds[i]);
            const char *of_past = get_name(f->config, "inputs", past_key, past_pattern);
            const char *of_present = get_name(f->config, "outputs", present_key, present_pattern);
            if (!format_layer(of_past, layer, past, sizeof past) ||
                !format_layer(of_present, layer, present, sizeof present)) {
                cli_print_error("genai_config.json: \"%s\" or \"%s\" lacks %%d", of_past,
                                of_present);
                return false;
            }
            if (!add_cache(f, past, present)) {
                return false;
            }
        }
    }
    return true;
}

// Whether a node takes the cache as one that has room for the new rows.
static bool is_shared(const rondo_program *program, const char *past) {
    for (size_t n = 0; n < rondo_program_get_node_count(program); ++n) {
        rondo_program_node node = {.struct_size = sizeof node};
        const char *input = rondo_program_get_node_input(program, n, 3);
        if (input != NULL && strcmp(input, past) == 0 &&
            rondo_program_get_node(program, n, &node) == RONDO_STATUS_OK &&
            strcmp(node.op, "GroupQueryAttention") == 0) {
            return true;
        }
    }
    return false;
}

static bool is_known(const cli_decoder_ports *ports, const char *name) {
    const char *const names[] = {ports->ids, ports->mask, ports->places};
    bool has = false;
    for (size_t i = 0; i < 3; ++i) {
        has = has || (names[i] != NULL && strcmp(names[i], name) == 0);
    }
    for (size_t i = 0; i < ports->cache_count; ++i) {
        has = has || strcmp(ports->caches[i].past, name) == 0;
    }
    return has;
}

static bool check_ports(const char *path, const finder *f) {
    const cli_decoder_ports *ports = f->ports;
    const char *missing = ports->ids == NULL        ? "input \"input_ids\""
                          : ports->logits == NULL   ? "output \"logits\""
                          : ports->cache_count == 0 ? "caches past_key_values.N.key and .value"
                          : ports->mask == NULL     ? "input \"attention_mask\""
                                                    : NULL;
    if (missing != NULL) {
        cli_print_error("%s: no language model that rondo decode knows: it has no %s", path,
                        missing);
        return false;
    }
    for (size_t i = 0; i < rondo_program_get_input_count(f->program); ++i) {
        rondo_port port = {.struct_size = sizeof port};
        if (rondo_program_get_input(f->program, i, &port) == RONDO_STATUS_OK &&
            !is_known(ports, port.name)) {
            cli_print_error("%s: rondo decode does not know what to feed to \"%s\"", path,
                            port.name);
            return false;
        }
    }
    return true;
}

static bool find(const char *path, finder *f) {
    cli_decoder_ports *ports = f->ports;
    rondo_port port;
    if (!read_beside(path, "genai_config.json", &f->config) ||
        !read_beside(path, "config.json", &f->hub)) {
        return false;
    }
    if (f->head_size == 0) {
        f->head_size = read_count(f->config, "model.decoder.head_size");
    }
    if (!read_stops(path, ports,
                    f->config != NULL ? cli_json_find(f->config, "model.eos_token_id")
                                      : cli_json_find(f->hub, "eos_token_id"))) {
        return false;
    }
    ports->context = f->config != NULL ? read_count(f->config, "model.context_length")
                                       : read_count(f->hub, "max_position_embeddings");
    ports->ids = find_input(f->program, f->config, "input_ids", &ports->ids_dtype);
    ports->mask = find_input(f->program, f->config, "attention_mask", &ports->mask_dtype);
    ports->places = find_input(f->program, f->config, "position_ids", &ports->places_dtype);
    if (find_port(f->program, true, get_name(f->config, "outputs", "logits", "logits"), &port)) {
        ports->logits = port.name;
    }
    if (!add_caches(f) || !check_ports(path, f)) {
        return false;
    }
    ports->is_shared = is_shared(f->program, ports->caches[0].past);
    return true;
}

bool cli_decoder_ports_find(const char *path, const rondo_program *program, int64_t head_size,
                            cli_decoder_ports *out_ports) {
    finder f = {.program = program, .head_size = head_size, .ports = out_ports};
    *out_ports = (cli_decoder_ports){0};
    const bool is_found = find(path, &f);
    json_decref(f.config);
    json_decref(f.hub);
    return is_found;
}

void cli_decoder_ports_free(cli_decoder_ports *ports) {
    free(ports->caches);
    ports->caches = NULL;
}
