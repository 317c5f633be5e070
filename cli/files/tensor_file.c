// SPDX-License-Identifier: Apache-2.0

#include "tensor_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "console.h"
#include "file_bytes.h"
#include "image_file.h"
#include "npy.h"
#include "npy_text.h"
#include "npz.h"
#include "rondo/onnx.h"
#include "tensor_text.h"

enum { NAME_MAX_BYTES = 200, PATH_BYTES = 4096 };

static bool has_ending(const char *path, const char *ending) {
    const size_t length = strlen(path);
    const size_t ending_length = strlen(ending);
    return length > ending_length && strcmp(path + length - ending_length, ending) == 0;
}

static bool is_raw_name(const char *path) {
    return has_ending(path, ".bin") || has_ending(path, ".raw") || has_ending(path, ".dat");
}

void cli_tensor_file_name(const char *name, size_t number, char *buffer, size_t buffer_bytes) {
    char end[32] = "";
    if (number > 1) {
        snprintf(end, sizeof end, ".%zu", number);
    }
    snprintf(buffer, buffer_bytes, "%.*s", NAME_MAX_BYTES, name[0] != '\0' ? name : "output");
    for (char *c = buffer; *c != '\0'; c++) {
        const bool is_fine = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                             (*c >= '0' && *c <= '9') || strchr("._-", *c) != NULL;
        *c = is_fine ? *c : '_';
    }
    if (buffer[0] == '.') {
        buffer[0] = '_';  // hidden, or a folder
    }
    const size_t length = strlen(buffer);
    snprintf(buffer + length, buffer_bytes - length, "%s", end);
}

// ---- one tensor -------------------------------------------------------------------------------

// The shape of a raw file: an extent that is not known follows from the size.
static bool complete_shape(const char *path, const cli_tensor_wish *wish, size_t byte_count,
                           rondo_shape *out_shape) {
    const size_t width = rondo_dtype_get_bytes(wish->dtype);
    rondo_shape shape = wish->shape;
    int32_t open_axis = -1;
    if ((!cli_is_number(wish->dtype) && !cli_is_complex(wish->dtype)) || shape.rank < 0) {
        cli_print_error(
            "%s: bytes alone do not tell their type and shape, and the model does not "
            "either; give the shape with --shape, or save it as .npy",
            path);
        return false;
    }
    for (int32_t d = 0; d < shape.rank; d++) {
        if (shape.extent[d] < 0) {
            if (open_axis >= 0) {
                cli_print_error(
                    "%s: bytes alone do not tell their shape, and more than one extent "
                    "is open; set them with --set or --shape",
                    path);
                return false;
            }
            open_axis = d;
            shape.extent[d] = 1;
        }
    }
    const int64_t rest = rondo_shape_get_count(&shape);
    if (open_axis >= 0 && rest > 0 && byte_count % ((size_t)rest * width) == 0) {
        shape.extent[open_axis] = (int64_t)(byte_count / ((size_t)rest * width));
    }
    const rondo_tensor described = {.dtype = wish->dtype, .shape = shape};
    if (rondo_shape_get_count(&shape) < 0 || rondo_tensor_get_bytes(&described) != byte_count) {
        char text[128];
        cli_print_error("%s: holds %zu bytes, %s %s takes %zu", path, byte_count,
                        rondo_dtype_get_name(wish->dtype),
                        rondo_shape_format(&shape, text, sizeof text),
                        rondo_tensor_get_bytes(&described));
        return false;
    }
    *out_shape = shape;
    return true;
}

static bool read_raw(const char *path, const cli_bytes *bytes, const cli_tensor_wish *wish,
                     rondo_tensor *out_tensor) {
    rondo_shape shape;
    if (!complete_shape(path, wish, bytes->count, &shape)) {
        return false;
    }
    if (rondo_tensor_init(wish->dtype, &shape, out_tensor) != RONDO_STATUS_OK) {
        cli_fail_about(path, "");
        return false;
    }
    if (bytes->count > 0) {
        memcpy(out_tensor->data, bytes->data, bytes->count);
    }
    return true;
}

static void list_entries(const cli_npz *npz, char *buffer, size_t buffer_bytes) {
    size_t length = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < npz->count && length + 1 < buffer_bytes; i++) {
        snprintf(buffer + length, buffer_bytes - length, "%s%.60s", i > 0 ? ", " : "",
                 npz->entries[i].name);
        length = strlen(buffer);
    }
}

static bool read_archive(const char *path, const cli_bytes *bytes, const char *entry_name,
                         const cli_tensor_wish *wish, rondo_tensor *out_tensor) {
    cli_npz npz;
    if (!cli_npz_open(bytes->data, bytes->count, path, &npz)) {
        return false;
    }
    const char *name = entry_name != NULL ? entry_name : wish->name;
    const cli_npz_entry *entry = cli_npz_find(&npz, name != NULL ? name : "");
    if (entry == NULL && entry_name == NULL && npz.count == 1) {
        entry = &npz.entries[0];
    }
    bool is_done = false;
    if (entry != NULL) {
        is_done = cli_npz_read(&npz, entry, wish->dtype, out_tensor);
    } else {
        char names[400];
        list_entries(&npz, names, sizeof names);
        cli_print_error("%s: has no entry \"%s\"; %s%s", path, name != NULL ? name : "",
                        npz.count > 0 ? "there are: " : "it has none", names);
    }
    cli_npz_close(&npz);
    return is_done;
}

static bool read_bytes(const char *path, const cli_bytes *bytes, const char *entry_name,
                       const cli_tensor_wish *wish, rondo_tensor *out_tensor) {
    if (cli_npy_is(bytes->data, bytes->count)) {
        return cli_npy_parse(bytes->data, bytes->count, path, wish->dtype, out_tensor);
    }
    if (cli_npz_is(bytes->data, bytes->count)) {
        return read_archive(path, bytes, entry_name, wish, out_tensor);
    }
    if (is_raw_name(path)) {
        return read_raw(path, bytes, wish, out_tensor);
    }
    const char *picture = cli_image_find_kind(bytes->data, bytes->count);
    if (picture != NULL) {
        cli_print_error("%s: a picture (%s), which --image %s=%s of rondo run reads", path, picture,
                        wish->name != NULL ? wish->name : "NAME", path);
        return false;
    }
    cli_print_error("%s: not a .npy file of numbers or strings, nor .npz, .pb, .bin or .raw", path);
    return false;
}

// The items of a sequence: 0.npy, 1.npy and so on.
static bool read_items(const char *path, const cli_tensor_wish *wish, rondo_tensor *out_tensor) {
    const rondo_dtype item = wish->port != NULL ? wish->port->item_dtype[0] : RONDO_DTYPE_NONE;
    rondo_tensor *items = NULL;
    size_t count = 0;
    bool is_fine = true;
    struct stat info;
    char file[PATH_BYTES];
    for (; is_fine; count++) {
        const int length = snprintf(file, sizeof file, "%s/%zu.npy", path, count);
        if (length < 0 || length >= PATH_BYTES || stat(file, &info) != 0) {
            break;
        }
        rondo_tensor *grown = realloc(items, (count + 1) * sizeof *items);
        items = grown != NULL ? grown : items;
        if (grown == NULL) {
            (void)cli_fail_memory();
            is_fine = false;
            break;
        }
        is_fine = cli_npy_read(file, item, &items[count]);
    }
    if (is_fine && rondo_tensor_init_sequence(items, count, out_tensor) != RONDO_STATUS_OK) {
        cli_fail_about(path, "");
        is_fine = false;
    }
    for (size_t i = 0; i < count; i++) {
        rondo_tensor_deinit(&items[i]);
    }
    free(items);
    return is_fine;
}

static bool read_proto(const char *path, const rondo_port *port, rondo_tensor *out_tensor) {
    const rondo_status status = port != NULL ? rondo_port_load_onnx(port, path, out_tensor)
                                             : rondo_tensor_load_onnx(path, out_tensor);
    if (status != RONDO_STATUS_OK) {
        cli_fail_about(path, "");
    }
    return status == RONDO_STATUS_OK;
}

bool cli_tensor_file_read(const char *path, const cli_tensor_wish *wish, rondo_tensor *out_tensor) {
    cli_bytes bytes;
    struct stat info;
    memset(out_tensor, 0, sizeof *out_tensor);
    if (has_ending(path, ".pb")) {
        return read_proto(path, wish->port, out_tensor);
    }
    const bool takes_items =
        wish->dtype == RONDO_DTYPE_SEQUENCE || wish->dtype == RONDO_DTYPE_OPTIONAL;
    if (takes_items && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        return read_items(path, wish, out_tensor);
    }
    // "arrays.npz:name", unless there is a file of that name.
    char *file = strdup(path);
    char *colon = file != NULL ? strstr(file, ".npz:") : NULL;
    const char *entry_name = NULL;
    if (file == NULL) {
        return cli_fail_memory();
    }
    if (colon != NULL && stat(path, &info) != 0) {
        colon[4] = '\0';
        entry_name = colon + 5;
    }
    bool is_done = false;
    if (cli_bytes_load(file, &bytes)) {
        is_done = read_bytes(file, &bytes, entry_name, wish, out_tensor);
        cli_bytes_free(&bytes);
    }
    free(file);
    return is_done;
}

// ---- sets of tensors --------------------------------------------------------------------------

void cli_tensor_set_free(cli_tensor_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        free(set->names[i]);
        rondo_tensor_deinit(&set->tensors[i]);
    }
    free(set->names);
    free(set->tensors);
    memset(set, 0, sizeof *set);
}

// Takes the tensor, also on failure; copies the name.
static bool add_tensor(cli_tensor_set *set, const char *name, size_t name_length,
                       rondo_tensor *tensor) {
    if (tensor->dtype == RONDO_DTYPE_STRING) {
        set->string_count += (size_t)rondo_shape_get_count(&tensor->shape);
    }
    if (set->string_count > CLI_NPY_STRINGS_MAX) {
        rondo_tensor_deinit(tensor);
        cli_print_error("%.*s: with it there are %zu strings; at most %d are read at once",
                        (int)name_length, name, set->string_count, CLI_NPY_STRINGS_MAX);
        return false;
    }
    if (set->count == set->capacity) {
        const size_t capacity = set->capacity == 0 ? 16 : 2 * set->capacity;
        char **names = realloc(set->names, capacity * sizeof *names);
        set->names = names != NULL ? names : set->names;
        rondo_tensor *tensors =
            names != NULL ? realloc(set->tensors, capacity * sizeof *tensors) : NULL;
        set->tensors = tensors != NULL ? tensors : set->tensors;
        set->capacity = tensors != NULL ? capacity : set->capacity;
    }
    char *copy = set->count < set->capacity ? strndup(name, name_length) : NULL;
    if (copy == NULL) {
        rondo_tensor_deinit(tensor);
        return cli_fail_memory();
    }
    set->names[set->count] = copy;
    set->tensors[set->count++] = *tensor;
    return true;
}

// A variable-length number of a protobuf message; false at the end of the bytes.
static bool read_varint(const cli_bytes *bytes, size_t *at, uint64_t *out_value) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && *at < bytes->count; shift += 7) {
        const uint8_t byte = bytes->data[(*at)++];
        value |= (uint64_t)(byte & 0x7fu) << shift;
        if (byte < 0x80) {
            *out_value = value;
            return true;
        }
    }
    return false;
}

// The name that a TensorProto carries, field 8, borrowed; NULL when there is none.
static const char *find_proto_name(const cli_bytes *bytes, size_t *out_length) {
    enum { VARINT = 0, EIGHT_BYTES = 1, LENGTH = 2, FOUR_BYTES = 5, NAME_FIELD = 8 };
    size_t at = 0;
    uint64_t tag = 0;
    while (at < bytes->count && read_varint(bytes, &at, &tag)) {
        uint64_t size = 0;
        switch (tag & 7u) {
            case VARINT:
                if (!read_varint(bytes, &at, &size)) {
                    return NULL;
                }
                size = 0;
                break;
            case EIGHT_BYTES:
                size = 8;
                break;
            case FOUR_BYTES:
                size = 4;
                break;
            case LENGTH:
                if (!read_varint(bytes, &at, &size)) {
                    return NULL;
                }
                break;
            default:
                return NULL;
        }
        if (size > bytes->count - at) {
            return NULL;
        }
        if (tag == (NAME_FIELD << 3 | LENGTH)) {
            *out_length = (size_t)size;
            return size > 0 ? (const char *)bytes->data + at : NULL;
        }
        at += (size_t)size;
    }
    return NULL;
}

// The file's name without folder and ending.
static const char *find_stem(const char *path, size_t *out_length) {
    const char *slash = strrchr(path, '/');
    const char *stem = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(stem, '.');
    *out_length = dot != NULL && dot != stem ? (size_t)(dot - stem) : strlen(stem);
    return stem;
}

static bool add_archive(cli_tensor_set *set, const char *path, const cli_bytes *bytes) {
    cli_npz npz;
    bool is_done = cli_npz_open(bytes->data, bytes->count, path, &npz);
    for (size_t i = 0; is_done && i < npz.count; i++) {
        rondo_tensor tensor;
        is_done = cli_npz_read(&npz, &npz.entries[i], RONDO_DTYPE_NONE, &tensor) &&
                  add_tensor(set, npz.entries[i].name, strlen(npz.entries[i].name), &tensor);
    }
    cli_npz_close(&npz);
    return is_done;
}

// Adds what a file holds; `folder` stands before its name.
static bool add_file(cli_tensor_set *set, const char *folder, const char *path) {
    static const cli_tensor_wish nothing = {.shape = {.rank = -1}};
    cli_bytes bytes;
    rondo_tensor tensor;
    size_t length = 0;
    char prefixed[NAME_MAX_BYTES + 64];
    if (!cli_bytes_load(path, &bytes)) {
        return false;
    }
    if (cli_npz_is(bytes.data, bytes.count)) {
        const bool is_added = add_archive(set, path, &bytes);
        cli_bytes_free(&bytes);
        return is_added;
    }
    const char *name = has_ending(path, ".pb") ? find_proto_name(&bytes, &length) : NULL;
    if (name == NULL) {
        name = find_stem(path, &length);
    }
    if (folder[0] != '\0') {
        snprintf(prefixed, sizeof prefixed, "%s/%.*s", folder, (int)length, name);
        name = prefixed;
        length = strlen(prefixed);
    }
    const bool is_done =
        cli_tensor_file_read(path, &nothing, &tensor) && add_tensor(set, name, length, &tensor);
    cli_bytes_free(&bytes);
    return is_done;
}

static int is_tensor_file(const struct dirent *entry) {
    return has_ending(entry->d_name, ".npy") || has_ending(entry->d_name, ".npz") ||
           has_ending(entry->d_name, ".pb");
}

static int is_folder_or_tensor_file(const struct dirent *entry) {
    return entry->d_name[0] != '.' && (entry->d_type == DT_DIR || is_tensor_file(entry));
}

// Adds the files of a folder, and with `folder` "" those of the folders in it: sequences.
static bool add_folder(cli_tensor_set *set, const char *folder, const char *path) {
    struct dirent **entries = NULL;
    const bool is_outer = folder[0] == '\0';
    const int count =
        scandir(path, &entries, is_outer ? is_folder_or_tensor_file : is_tensor_file, alphasort);
    if (count < 0) {
        cli_print_error("%s: %s", path, strerror(errno));
        return false;
    }
    bool is_done = true;
    for (int i = 0; i < count; i++) {
        char file[PATH_BYTES];
        const int length = snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        is_done =
            is_done && length > 0 && length < PATH_BYTES &&
            (is_outer && !is_tensor_file(entries[i]) ? add_folder(set, entries[i]->d_name, file)
                                                     : add_file(set, folder, file));
        free(entries[i]);
    }
    free(entries);
    return is_done;
}

bool cli_tensor_set_read(const char *path, cli_tensor_set *out_set) {
    struct stat info;
    memset(out_set, 0, sizeof *out_set);
    if (stat(path, &info) != 0) {
        cli_print_error("%s: %s", path, strerror(errno));
        return false;
    }
    if (!S_ISDIR(info.st_mode)) {
        return add_file(out_set, "", path);
    }
    if (!add_folder(out_set, "", path)) {
        return false;
    }
    if (out_set->count == 0) {
        cli_print_error("%s: holds no .npy, .npz or .pb files", path);
    }
    return out_set->count > 0;
}
