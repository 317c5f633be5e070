// Inputs of a model: files, shapes and dimensions from the command line, and what follows from one
// for the other. A symbol gets its number from --set, from --shape, or from the shape of a file;
// when two of them disagree, both are named.
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cast.h"
#include "session_text.h"
#include "suggest.h"
#include "tensor_file.h"
#include "tensor_text.h"

enum { PATH_BYTES = 4096 };

typedef rondo_status (*get_port_function)(const rondo_program *program, size_t index,
                                          rondo_port *out_port);

// Appends ", name" to a list of at most `bytes`; false when it is full, and then ends in "...".
static bool append_name(char *list, size_t bytes, const char *name) {
    const size_t length = strlen(list);
    if (length + strlen(name) + 8 > bytes) {
        if (length + 6 <= bytes) {
            snprintf(list + length, bytes - length, ", ...");
        }
        return false;
    }
    snprintf(list + length, bytes - length, "%s%s", length > 0 ? ", " : "", name);
    return true;
}

// ---- symbols ----------------------------------------------------------------------------------

static cli_dimension *find_dimension(const cli_session *session, const char *symbol) {
    for (size_t i = 0; i < session->dimension_count; i++) {
        if (strcmp(session->dimensions[i].symbol, symbol) == 0) {
            return &session->dimensions[i];
        }
    }
    return NULL;
}

// Gives `symbol` (of the program) a number, unless it has another one. `origin` says where it is
// from: "--set batch=4", or a file.
static bool learn(cli_session *session, const char *symbol, int64_t extent, const char *origin) {
    const cli_dimension *known = find_dimension(session, symbol);
    if (known != NULL && known->extent == extent) {
        return true;
    }
    if (known != NULL) {
        cli_print_error("%s: dimension \"%s\" would be %" PRId64 " (%s) and %" PRId64 " (%s)",
                        session->path, symbol, known->extent, known->origin, extent, origin);
        return false;
    }
    if (rondo_program_set_dimension(session->program, symbol, extent) != RONDO_STATUS_OK) {
        cli_session_fail(session);
        return false;
    }
    cli_dimension *grown =
        realloc(session->dimensions, (session->dimension_count + 1) * sizeof *grown);
    if (grown == NULL) {
        return cli_fail_memory();
    }
    session->dimensions = grown;
    cli_dimension *added = &grown[session->dimension_count++];
    *added = (cli_dimension){.symbol = symbol, .extent = extent};
    snprintf(added->origin, sizeof added->origin, "%s", origin);
    return true;
}

// Calls `visit` for the symbols of all inputs and outputs, until it returns true.
static bool visit_symbols(const cli_session *session, bool (*visit)(void *data, const char *symbol),
                          void *data) {
    static const get_port_function getters[2] = {rondo_program_get_input, rondo_program_get_output};
    const size_t counts[2] = {rondo_program_get_input_count(session->program),
                              rondo_program_get_output_count(session->program)};
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < counts[side]; i++) {
            rondo_port port = {.struct_size = sizeof port};
            if (getters[side](session->program, i, &port) != RONDO_STATUS_OK) {
                return false;
            }
            for (int32_t d = 0; d < port.rank; d++) {
                if (port.symbol[d] != NULL && visit(data, port.symbol[d])) {
                    return true;
                }
            }
        }
    }
    return false;
}

typedef struct symbol_search {
    const char *wanted;
    const char *found;
    cli_suggestion suggestion;
    char list[300];
} symbol_search;

static bool match_symbol(void *data, const char *symbol) {
    symbol_search *search = data;
    if (strcmp(symbol, search->wanted) == 0) {
        search->found = symbol;
        return true;
    }
    return false;
}

// Lists those that somebody may want to set: exporters write expressions, too.
static bool list_symbol(void *data, const char *symbol) {
    symbol_search *search = data;
    char quoted[96];
    snprintf(quoted, sizeof quoted, "%.90s", symbol);
    cli_suggest_offer(&search->suggestion, symbol);
    const char *seen = strstr(search->list, quoted);
    const size_t length = strlen(quoted);
    while (seen != NULL && (seen[length] != '\0' && seen[length] != ',')) {
        seen = strstr(seen + 1, quoted);
    }
    return seen == NULL && length <= 32 && strpbrk(symbol, "()+*/ ") == NULL &&
           !append_name(search->list, sizeof search->list, quoted);
}

static bool fail_unknown_dimension(const cli_session *session, const char *name) {
    char near[128];
    symbol_search search = {.suggestion = {.word = name}};
    (void)visit_symbols(session, list_symbol, &search);
    if (search.list[0] == '\0') {
        cli_print_error(
            "%s: no dimension \"%s\": the model has no symbolic dimensions; an input's "
            "shape can be given with --shape",
            session->path, name);
        return false;
    }
    cli_print_error("%s: no dimension \"%s\"%s there are: %s", session->path, name,
                    search.suggestion.best != NULL
                        ? cli_suggest_format(&search.suggestion, near, sizeof near)
                        : ";",
                    search.list);
    return false;
}

bool cli_inputs_set_dimensions(cli_session *session) {
    for (size_t i = 0; i < session->sets.count; i++) {
        cli_assignment *set = &session->sets.items[i];
        symbol_search search = {.wanted = set->name};
        if (!visit_symbols(session, match_symbol, &search)) {
            return fail_unknown_dimension(session, set->name);
        }
        const int64_t extent = strtoll(set->value, NULL, 10);  // digits, and few enough
        char origin[160];
        snprintf(origin, sizeof origin, "--set %.150s", set->text);
        if (!learn(session, search.found, extent, origin)) {
            return false;
        }
    }
    return true;
}

// ---- shapes -----------------------------------------------------------------------------------

// "1x3x224" to extents; the text was checked but for its numbers.
static bool parse_shape(const cli_session *session, const char *name, const char *text,
                        rondo_shape *out_shape) {
    *out_shape = (rondo_shape){0};
    for (const char *at = text;;) {
        char *end = NULL;
        errno = 0;
        const long long extent = strtoll(at, &end, 10);
        if (errno != 0 || out_shape->rank == RONDO_RANK_MAX) {
            cli_print_error("%s: --shape %s=%s: %s", session->path, name, text,
                            errno != 0 ? "an extent is too large" : "more than 8 dimensions");
            return false;
        }
        out_shape->extent[out_shape->rank++] = extent;
        if (*end == '\0') {
            return true;
        }
        at = end + 1;
    }
}

// What else an input takes that looks like one of pictures.
static const char *get_picture_hint(const rondo_port *port) {
    return cli_image_fits(port) ? "; or a picture, with --image of rondo run" : "";
}

// Checks a shape against the declaration and learns the symbols in it.
static bool take_shape(cli_session *session, const rondo_port *port, const rondo_shape *shape,
                       bool is_picture, const char *origin) {
    char have[128];
    char want[512];
    bool fits = port->rank < 0 || port->rank == shape->rank;
    for (int32_t d = 0; fits && d < port->rank; d++) {
        fits =
            port->symbol[d] != NULL || port->extent[d] < 0 || port->extent[d] == shape->extent[d];
    }
    if (!fits) {
        cli_print_error("%s: %s: the shape is %s, input \"%s\" takes %s%s", session->path, origin,
                        rondo_shape_format(shape, have, sizeof have), port->name,
                        cli_format_port(port, want, sizeof want),
                        is_picture ? "" : get_picture_hint(port));
        return false;
    }
    for (int32_t d = 0; d < port->rank; d++) {
        if (port->symbol[d] != NULL && !learn(session, port->symbol[d], shape->extent[d], origin)) {
            return false;
        }
    }
    return true;
}

// An optional that holds what `tensor` was.
static bool wrap_optional(const char *file, rondo_tensor *tensor) {
    rondo_tensor optional;
    if (rondo_tensor_init_optional(tensor, &optional) != RONDO_STATUS_OK) {
        cli_fail_about(file, "");
        return false;
    }
    rondo_tensor_deinit(tensor);
    *tensor = optional;
    return true;
}

static bool read_fitting(const cli_model_settings *settings, const rondo_port *port,
                         const char *file, const rondo_shape *given_shape,
                         rondo_tensor *out_tensor) {
    cli_tensor_wish wish = {
        .name = port->name, .dtype = port->dtype, .shape = {.rank = port->rank}, .port = port};
    for (int32_t d = 0; d < port->rank; d++) {
        wish.shape.extent[d] = port->extent[d];
    }
    wish.shape = given_shape != NULL ? *given_shape : wish.shape;
    if (!cli_tensor_file_read(file, &wish, out_tensor)) {
        return false;
    }
    if (given_shape != NULL && !rondo_shape_is_equal(given_shape, &out_tensor->shape)) {
        char have[128];
        char want[128];
        cli_print_error("%s: has shape %s, and --shape says %s", file,
                        rondo_shape_format(&out_tensor->shape, have, sizeof have),
                        rondo_shape_format(given_shape, want, sizeof want));
        return false;
    }
    if (port->dtype == RONDO_DTYPE_NONE || out_tensor->dtype == port->dtype) {
        return true;
    }
    if (port->dtype == RONDO_DTYPE_OPTIONAL) {
        return wrap_optional(file, out_tensor);
    }
    const bool can_cast = cli_is_number(out_tensor->dtype) && cli_is_number(port->dtype);
    if (!settings->casts || !can_cast) {
        char want[512];
        cli_print_error("%s: holds %s, input \"%s\" takes %s%s", file,
                        rondo_dtype_get_name(out_tensor->dtype), port->name,
                        cli_format_port(port, want, sizeof want),
                        can_cast ? "; --cast converts it" : get_picture_hint(port));
        return false;
    }
    return cli_cast(file, port->dtype, out_tensor);
}

static bool read_file(const cli_model_settings *settings, const rondo_port *port, const char *file,
                      const rondo_shape *given_shape, rondo_tensor *out_tensor) {
    *out_tensor = (rondo_tensor){0};
    if (read_fitting(settings, port, file, given_shape, out_tensor)) {
        return true;
    }
    rondo_tensor_deinit(out_tensor);
    return false;
}

// ---- pictures and test data sets ----------------------------------------------------------------

static bool is_picture_name(const char *name) {
    static const char *const endings[] = {".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".bmp"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot != NULL && i < sizeof endings / sizeof endings[0]; i++) {
        if (strcasecmp(dot, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

// Of a folder the first picture that can be read; the others come later, in the same way.
static bool read_folder(cli_session *session, const rondo_port *port, const char *folder,
                        rondo_tensor *out_tensor) {
    if (session->image_name != NULL) {
        cli_print_error("%s: inputs \"%s\" and \"%s\" both take a folder of pictures; one can",
                        session->path, session->image_name, port->name);
        return false;
    }
    session->image_name = port->name;
    if (!cli_path_list_read(folder, is_picture_name, &session->image_files)) {
        return false;
    }
    const cli_path_list *files = &session->image_files;
    for (; session->image_at < files->count; session->image_at++) {
        if (cli_image_load(session->program, port, files->paths[session->image_at],
                           &session->image_options, true, out_tensor)) {
            return true;
        }
    }
    cli_print_error("%s: %s", folder,
                    files->count > 0 ? "none of its pictures can be read"
                                     : "has no pictures (.png, .jpg, .jpeg, .ppm, .pgm or .bmp)");
    return false;
}

static bool read_picture(cli_session *session, const rondo_port *port, const char *path,
                         rondo_tensor *out_tensor) {
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        return read_folder(session, port, path, out_tensor);
    }
    return cli_image_load(session->program, port, path, &session->image_options, true, out_tensor);
}

// Whether the data set has a file for input `index`.
static bool find_data(const char *folder, size_t index, char *path, size_t path_bytes) {
    struct stat info;
    const int length = snprintf(path, path_bytes, "%s/input_%zu.pb", folder, index);
    return length > 0 && (size_t)length < path_bytes && stat(path, &info) == 0;
}

static bool fail_missing(const char *folder, size_t index, const char *name) {
    cli_print_error("%s: has no input_%zu.pb for input \"%s\"; give it with --input %s=FILE",
                    folder, index, name, name);
    return false;
}

static bool has_items(const rondo_port *port) {
    return port->dtype == RONDO_DTYPE_SEQUENCE || port->dtype == RONDO_DTYPE_OPTIONAL;
}

// What the command line says of input number `index`: values, or a shape, or nothing yet.
static bool read_input(cli_session *session, const cli_model_settings *settings, size_t index,
                       const rondo_port *port, rondo_binding *feed, bool *out_is_named) {
    rondo_shape shape;
    char data_path[PATH_BYTES];
    const char *file = cli_assignments_find(&session->files, port->name);
    const char *picture = cli_assignments_find(&session->images, port->name);
    if (file == NULL && picture == NULL && session->data_folder != NULL &&
        find_data(session->data_folder, index, data_path, sizeof data_path)) {
        file = data_path;
    }
    const char *shape_text = cli_assignments_find(&session->shapes, port->name);
    if (session->data_folder != NULL && file == NULL && picture == NULL && shape_text == NULL) {
        return fail_missing(session->data_folder, index, port->name);
    }
    char origin[160];
    snprintf(origin, sizeof origin, "--shape %.60s=%.80s", port->name,
             shape_text != NULL ? shape_text : "");
    feed->name = port->name;
    *out_is_named = file != NULL || picture != NULL || shape_text != NULL;
    if (picture != NULL && (file != NULL || shape_text != NULL)) {
        cli_print_error("%s: input \"%s\" is given with --image and with %s; one of them says all",
                        session->path, port->name, file != NULL ? "--input" : "--shape");
        return false;
    }
    if (picture != NULL) {
        return read_picture(session, port, picture, &feed->tensor) &&
               take_shape(session, port, &feed->tensor.shape, true, picture);
    }
    if (shape_text != NULL && has_items(port)) {
        char text[512];
        cli_print_error("%s: %s: input \"%s\" is a %s, which has no shape", session->path, origin,
                        port->name, cli_format_port(port, text, sizeof text));
        return false;
    }
    if (shape_text != NULL && (!parse_shape(session, port->name, shape_text, &shape) ||
                               !take_shape(session, port, &shape, false, origin))) {
        return false;
    }
    if (shape_text != NULL) {
        feed->tensor.dtype = port->dtype;
        feed->tensor.shape = shape;
    }
    if (file == NULL || strcmp(file, "random") == 0) {
        return true;
    }
    return read_file(settings, port, file, shape_text != NULL ? &shape : NULL, &feed->tensor) &&
           take_shape(session, port, &feed->tensor.shape, false, file);
}

// Names of open dimensions, for the hint.
typedef struct open_names {
    char symbols[200];
    char input[64];    // the first one with an unnamed dimension
    char example[96];  // a shape for it: "1x3xAxB"
} open_names;

// "1x3xAxB": what is known of a shape, and letters for the rest.
static void format_example(const rondo_port *port, char *buffer, size_t buffer_bytes) {
    char letter = 'A';
    size_t length = 0;
    for (int32_t d = 0; d < port->rank && length + 1 < buffer_bytes; d++) {
        const char *separator = d > 0 ? "x" : "";
        if (port->extent[d] >= 0) {
            snprintf(buffer + length, buffer_bytes - length, "%s%" PRId64, separator,
                     port->extent[d]);
        } else {
            snprintf(buffer + length, buffer_bytes - length, "%s%c", separator, letter++);
        }
        length = strlen(buffer);
    }
}

// The shape of an input that has none yet: what nobody set counts as 1. Sequences and optionals
// hold nothing.
static void assume_shape(const rondo_port *port, rondo_tensor *tensor, open_names *names) {
    if (tensor->dtype == RONDO_DTYPE_NONE && has_items(port)) {
        tensor->dtype = port->dtype;
        tensor->shape.rank = 1;
    }
    if (tensor->dtype != RONDO_DTYPE_NONE || port->rank < 0 || port->rank > RONDO_RANK_MAX) {
        return;
    }
    tensor->dtype = port->dtype;
    tensor->shape.rank = port->rank;
    for (int32_t d = 0; d < port->rank; d++) {
        const bool is_open = port->extent[d] < 0;
        const char *symbol = port->symbol[d];
        tensor->shape.extent[d] = is_open ? 1 : port->extent[d];
        if (is_open && symbol != NULL && strlen(symbol) <= 40 &&
            strstr(names->symbols, symbol) == NULL) {
            (void)append_name(names->symbols, sizeof names->symbols, symbol);
        } else if (is_open && symbol == NULL && names->input[0] == '\0') {
            snprintf(names->input, sizeof names->input, "%.60s", port->name);
            format_example(port, names->example, sizeof names->example);
        }
    }
}

static void write_hint(const open_names *names, cli_session *session) {
    if (names->symbols[0] != '\0') {
        const size_t first = strcspn(names->symbols, ",");
        snprintf(session->hint, sizeof session->hint, "; nobody set %s, so %s 1: try --set %.*s=N",
                 names->symbols, names->symbols[first] == ',' ? "they count as" : "it counts as",
                 (int)first, names->symbols);
    } else if (names->input[0] != '\0') {
        snprintf(session->hint, sizeof session->hint,
                 "; unnamed dimensions of input \"%s\" count as 1: try --shape %s=%s", names->input,
                 names->input, names->example);
    }
}

// ---- all of them ------------------------------------------------------------------------------

// Port `index` of the inputs, then of those with a default.
static bool get_port(const cli_session *session, size_t index, rondo_port *out_port) {
    const size_t count = rondo_program_get_input_count(session->program);
    const rondo_status status =
        index < count ? rondo_program_get_input(session->program, index, out_port)
                      : rondo_program_get_optional_input(session->program, index - count, out_port);
    if (status != RONDO_STATUS_OK) {
        cli_session_fail(session);
    }
    return status == RONDO_STATUS_OK;
}

static bool check_all_used(const cli_session *session, const cli_assignments *assignments,
                           size_t port_count) {
    for (size_t i = 0; i < assignments->count; i++) {
        const cli_assignment *item = &assignments->items[i];
        if (item->is_used) {
            continue;
        }
        char names[600] = "";
        char near[128];
        bool has_room = true;
        cli_suggestion suggestion = {.word = item->name};
        for (size_t k = 0; k < port_count; k++) {
            rondo_port port = {.struct_size = sizeof port};
            if (!get_port(session, k, &port)) {
                return false;
            }
            char type[200];
            char named[300];
            cli_suggest_offer(&suggestion, port.name);
            snprintf(named, sizeof named, "%.80s %s", port.name,
                     cli_format_port(&port, type, sizeof type));
            has_room = has_room && append_name(names, sizeof names, named);
        }
        cli_print_error("%s: %s %s: there is no such input%s%s the inputs are: %s", session->path,
                        assignments->kind->option, item->text,
                        cli_suggest_format(&suggestion, near, sizeof near),
                        suggestion.best != NULL ? "" : ";", names);
        return false;
    }
    return true;
}

static void say_inputs(const cli_session *session) {
    for (size_t i = 0; i < session->feed_count; i++) {
        const rondo_tensor *tensor = &session->feeds[i].tensor;
        char shape[128];
        cli_say(CLI_DETAIL, "input %s: %s %s, %s", session->feeds[i].name,
                rondo_dtype_get_name(tensor->dtype),
                rondo_shape_format(&tensor->shape, shape, sizeof shape),
                tensor->data != NULL ? "from a file" : "not given");
    }
}

// Symbols are learned from what is given before the rest is assumed. An input with a default is fed
// when the command line names it.
bool cli_inputs_read(cli_session *session, const cli_model_settings *settings) {
    const size_t input_count = rondo_program_get_input_count(session->program);
    const size_t port_count =
        input_count + rondo_program_get_optional_input_count(session->program);
    size_t *ports = calloc(port_count + 1, sizeof *ports);  // of each feed
    bool is_done = false;
    session->feeds = calloc(port_count + 1, sizeof *session->feeds);
    if (session->feeds == NULL || ports == NULL) {
        cli_fail_memory();
        goto free_ports;
    }
    for (size_t i = 0; i < port_count; i++) {
        rondo_port port = {.struct_size = sizeof port};
        bool is_named = false;
        ports[session->feed_count] = i;
        if (!get_port(session, i, &port) ||
            !read_input(session, settings, i, &port, &session->feeds[session->feed_count],
                        &is_named)) {
            session->feed_count++;  // what was read is freed with the session
            goto free_ports;
        }
        session->feed_count += i < input_count || is_named ? 1 : 0;
    }
    open_names names = {.symbols = ""};
    is_done = check_all_used(session, &session->files, port_count) &&
              check_all_used(session, &session->images, port_count) &&
              check_all_used(session, &session->shapes, port_count);
    for (size_t i = 0; is_done && i < session->feed_count; i++) {
        rondo_port port = {.struct_size = sizeof port};
        is_done = get_port(session, ports[i], &port);
        if (is_done) {
            assume_shape(&port, &session->feeds[i].tensor, &names);
        }
    }
    if (is_done) {
        write_hint(&names, session);
        say_inputs(session);
    }

free_ports:
    free(ports);
    return is_done;
}

// ---- other values -------------------------------------------------------------------------------

static bool find_port(const cli_session *session, const char *name, size_t *out_index,
                      rondo_port *out_port) {
    const size_t count = rondo_program_get_input_count(session->program) +
                         rondo_program_get_optional_input_count(session->program);
    for (size_t i = 0; i < count; i++) {
        *out_port = (rondo_port){.struct_size = sizeof *out_port};
        if (!get_port(session, i, out_port)) {
            return false;
        }
        if (strcmp(out_port->name, name) == 0) {
            *out_index = i;
            return true;
        }
    }
    return false;
}

// Puts `tensor` in the place of what the feed has; takes it, also on failure.
static bool exchange(rondo_binding *feed, const char *file, rondo_tensor *tensor) {
    char have[128];
    char want[128];
    if (!rondo_shape_is_equal(&tensor->shape, &feed->tensor.shape)) {
        cli_print_error("%s: the shape is %s, that of the first file %s; run it by itself", file,
                        rondo_shape_format(&tensor->shape, have, sizeof have),
                        rondo_shape_format(&feed->tensor.shape, want, sizeof want));
        rondo_tensor_deinit(tensor);
        return false;
    }
    rondo_tensor_deinit(&feed->tensor);
    feed->tensor = *tensor;
    return true;
}

bool cli_inputs_exchange(cli_session *session, const cli_model_settings *settings, const char *file,
                         const char *data_folder) {
    bool is_done = true;
    for (size_t i = 0; i < session->feed_count && is_done; i++) {
        rondo_binding *feed = &session->feeds[i];
        rondo_port port;
        rondo_tensor tensor = {0};
        size_t index = 0;
        char path[PATH_BYTES];
        if (!find_port(session, feed->name, &index, &port)) {
            return false;
        }
        if (file != NULL && strcmp(feed->name, session->image_name) == 0) {
            is_done = cli_image_load(session->program, &port, file, &session->image_options, false,
                                     &tensor) &&
                      exchange(feed, file, &tensor);
        } else if (file == NULL && cli_assignments_find(&session->files, feed->name) == NULL &&
                   cli_assignments_find(&session->shapes, feed->name) == NULL) {
            is_done = (find_data(data_folder, index, path, sizeof path) ||
                       fail_missing(data_folder, index, feed->name)) &&
                      read_file(settings, &port, path, NULL, &tensor) &&
                      exchange(feed, path, &tensor);
        }
    }
    return is_done;
}
