// The .npy format: "\x93NUMPY", major, minor, header length (2 bytes little endian; 4 from format
// 2.0), a Python dictionary as text, then the elements.
//
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//
// Source: NumPy Enhancement Proposal 1.
// SPDX-License-Identifier: Apache-2.0
#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "file_bytes.h"
#include "npy_text.h"
#include "output_file.h"
#include "tensor_text.h"

enum {
    MAGIC_BYTES = 6,
    HEADER_LIMIT_BYTES = 65536,  // far beyond any header that a tensor of rank 8 needs
    HEADER_ALIGNMENT = 64,
    EMPTY_COUNT_MAX = 1024,  // NumPy gives empty strings the room of one character
};
static const char magic[MAGIC_BYTES + 1] = "\x93NUMPY";

typedef struct npy_type {
    const char *descr;  // without the byte order
    const char *name;   // which NumPy takes as well
    rondo_dtype dtype;
} npy_type;

static const npy_type types[] = {
    {"f4", "float32", RONDO_DTYPE_F32},      {"f8", "float64", RONDO_DTYPE_F64},
    {"f2", "float16", RONDO_DTYPE_F16},      {"V2", "bfloat16", RONDO_DTYPE_BF16},
    {"i1", "int8", RONDO_DTYPE_I8},          {"i2", "int16", RONDO_DTYPE_I16},
    {"i4", "int32", RONDO_DTYPE_I32},        {"i8", "int64", RONDO_DTYPE_I64},
    {"u1", "uint8", RONDO_DTYPE_U8},         {"u2", "uint16", RONDO_DTYPE_U16},
    {"u4", "uint32", RONDO_DTYPE_U32},       {"u8", "uint64", RONDO_DTYPE_U64},
    {"b1", "bool", RONDO_DTYPE_BOOL},        {"c8", "complex64", RONDO_DTYPE_C64},
    {"c16", "complex128", RONDO_DTYPE_C128},
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

// ---- reading ----------------------------------------------------------------------------------

typedef struct npy_header {
    rondo_dtype dtype;
    rondo_shape shape;
    bool is_big_endian;
    bool is_fortran_order;
    cli_npy_text text;  // of strings
} npy_header;

// The text after "'key':" with blanks skipped; NULL when the key is not there.
static const char *find_value(const char *text, const char *key) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", key);
    const char *value = strstr(text, quoted);
    if (value == NULL) {
        return NULL;
    }
    value += strlen(quoted);
    value += strspn(value, " ");
    if (*value++ != ':') {
        return NULL;
    }
    return value + strspn(value, " ");
}

// What a type that is none of ours is, in words.
static const char *explain_descr(const char *descr) {
    static const struct {
        const char *prefix;
        const char *meaning;
    } kinds[] = {
        {"O", "Python objects (pickled); save an array of numbers"},
        {"c", "complex numbers of more than 128 bits; convert them to complex128"},
        {"V1",
         "raw bytes, as NumPy saves float8 and int4, where other numbers are wanted; convert "
         "them first"},
        {"M", "dates; convert them to numbers"},
        {"m", "spans of time; convert them to numbers"},
        {"f16", "long doubles; convert them to float64"},
        {"f12", "long doubles; convert them to float64"},
        {"V", "raw records"},
    };
    if (descr[0] == '[') {
        return "a structured array; save its fields by themselves";
    }
    for (size_t i = 0; descr[0] == '\'' && descr[1] != '\0' && i < sizeof kinds / sizeof kinds[0];
         i++) {
        const char *type = descr + (strchr("<>|=", descr[1]) != NULL ? 2 : 1);
        if (strncmp(type, kinds[i].prefix, strlen(kinds[i].prefix)) == 0) {
            return kinds[i].meaning;
        }
    }
    return NULL;
}

// Whether `text` is this word, up to a quote.
static bool is_quoted(const char *text, const char *word) {
    const size_t length = strlen(word);
    return strncmp(text, word, length) == 0 && text[length] == '\'';
}

// Sets the type; otherwise *out_reason to what the file holds, or leaves it when that is unclear.
static bool parse_descr(const char *value, rondo_dtype wanted, npy_header *header,
                        const char **out_reason) {
    if (value[0] == '\'') {
        const bool has_order = value[1] != '\0' && strchr("<>|=", value[1]) != NULL;
        const char *type = value + (has_order ? 2 : 1);
        header->is_big_endian = value[1] == '>';
        for (size_t i = 0; i < TYPE_COUNT; i++) {
            if (is_quoted(type, types[i].descr) || is_quoted(type, types[i].name)) {
                header->dtype = types[i].dtype;
                return true;
            }
        }
        if (is_quoted(type, "V1") && (wanted == RONDO_DTYPE_NONE || cli_is_narrow(wanted))) {
            header->dtype = wanted == RONDO_DTYPE_NONE ? RONDO_DTYPE_U8 : wanted;
            return true;
        }
    }
    if (cli_npy_text_parse_descr(value, &header->text)) {
        header->dtype = RONDO_DTYPE_STRING;
        return true;
    }
    const char *meaning = explain_descr(value);
    *out_reason = meaning != NULL ? meaning : *out_reason;
    return false;
}

static bool parse_shape(const char *value, rondo_shape *shape, const char **out_reason) {
    if (*value++ != '(') {
        return false;
    }
    for (;;) {
        while (*value == ' ' || *value == ',') {
            value++;
        }
        if (*value == ')') {
            return true;
        }
        char *end = NULL;
        errno = 0;
        const long long extent = strtoll(value, &end, 10);
        if (errno != 0 || end == value || extent < 0) {
            return false;
        }
        if (shape->rank == RONDO_RANK_MAX) {
            *out_reason = "an array of more than 8 dimensions, the most that Rondo has; reshape it";
            return false;
        }
        shape->extent[shape->rank++] = extent;
        value = end + (*end == 'L' ? 1 : 0);  // as Python 2 wrote them
    }
}

// *out_reason says what is wrong when the result is false.
static bool parse_header(const char *text, rondo_dtype wanted, npy_header *header,
                         const char **out_reason) {
    const char *descr = find_value(text, "descr");
    const char *order = find_value(text, "fortran_order");
    const char *shape = find_value(text, "shape");
    *out_reason = NULL;
    if (descr == NULL || order == NULL || shape == NULL) {
        return false;
    }
    header->is_fortran_order = strncmp(order, "True", 4) == 0;
    if (!parse_descr(descr, wanted, header, out_reason)) {
        return false;
    }
    return parse_shape(shape, &header->shape, out_reason);
}

static void swap_bytes(rondo_tensor *tensor) {
    // Of complex numbers each part.
    const size_t width =
        rondo_dtype_get_bytes(tensor->dtype) / (cli_is_complex(tensor->dtype) ? 2 : 1);
    const size_t byte_count = rondo_tensor_get_bytes(tensor);
    uint8_t *bytes = tensor->data;
    for (size_t start = 0; start + width <= byte_count; start += width) {
        for (size_t i = 0; i < width / 2; i++) {
            const uint8_t kept = bytes[start + i];
            bytes[start + i] = bytes[start + width - 1 - i];
            bytes[start + width - 1 - i] = kept;
        }
    }
}

// The first axis runs fastest in the file, the last one in a tensor.
static void turn_order(const uint8_t *source, size_t width, rondo_tensor *tensor) {
    const rondo_shape *shape = &tensor->shape;
    const size_t count = rondo_tensor_get_bytes(tensor) / width;
    size_t steps[RONDO_RANK_MAX];  // in elements of the file, for each axis
    int64_t place[RONDO_RANK_MAX] = {0};
    size_t step = 1;
    for (int32_t d = 0; d < shape->rank; d++) {
        steps[d] = step;
        step *= (size_t)shape->extent[d];
    }
    size_t from = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy((uint8_t *)tensor->data + i * width, source + from * width, width);
        for (int32_t d = shape->rank - 1; d >= 0; d--) {
            from += steps[d];
            if (++place[d] < shape->extent[d]) {
                break;
            }
            from -= steps[d] * (size_t)shape->extent[d];
            place[d] = 0;
        }
    }
}

// Copies the header's text, terminated, and sets *out_start to where the elements begin; NULL when
// malformed. The caller frees it.
static char *copy_header_text(const uint8_t *bytes, size_t byte_count, size_t *out_start) {
    if (byte_count < MAGIC_BYTES + 6 || memcmp(bytes, magic, MAGIC_BYTES) != 0 ||
        bytes[MAGIC_BYTES] < 1 || bytes[MAGIC_BYTES] > 3) {
        return NULL;
    }
    const bool is_first_format = bytes[MAGIC_BYTES] == 1;
    const size_t start = MAGIC_BYTES + (is_first_format ? 4 : 6);
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (!is_first_format) {
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    }
    if (length > HEADER_LIMIT_BYTES || length > byte_count - start) {
        return NULL;
    }
    char *text = calloc(length + 1, 1);
    if (text != NULL) {
        memcpy(text, bytes + start, length);
        for (size_t i = 0; i < length; i++) {
            text[i] = (char)(text[i] == '"' ? '\'' : text[i]);  // Python takes either
        }
        *out_start = start + length;
    }
    return text;
}

bool cli_npy_is(const uint8_t *bytes, size_t byte_count) {
    return byte_count >= MAGIC_BYTES && memcmp(bytes, magic, MAGIC_BYTES) == 0;
}

bool cli_npy_parse(const uint8_t *bytes, size_t byte_count, const char *label, rondo_dtype wanted,
                   rondo_tensor *out_tensor) {
    npy_header header = {.dtype = RONDO_DTYPE_NONE};
    const char *reason = NULL;
    size_t start = 0;
    bool is_done = false;
    memset(out_tensor, 0, sizeof *out_tensor);
    char *text = copy_header_text(bytes, byte_count, &start);
    if (text == NULL || !parse_header(text, wanted, &header, &reason)) {
        cli_print_error("%s: %s%s", label,
                        reason != NULL ? "holds " : "not a .npy file of numbers or strings",
                        reason != NULL ? reason : "");
        goto free_text;
    }
    const bool is_text = header.dtype == RONDO_DTYPE_STRING;
    const size_t width = is_text ? header.text.element_bytes : rondo_dtype_get_bytes(header.dtype);
    const int64_t count = rondo_shape_get_count(&header.shape);
    // Strings of no bytes take room here that the file does not show.
    if (count < 0 || (width > 0 && (uint64_t)count > (byte_count - start) / width) ||
        (width == 0 && (uint64_t)count > EMPTY_COUNT_MAX)) {
        cli_print_error("%s: the file is shorter than its header says", label);
        goto free_text;
    }
    if (is_text && header.is_fortran_order && header.shape.rank > 1) {
        cli_print_error("%s: holds strings in Fortran order; save them in C order", label);
        goto free_text;
    }
    if (is_text) {
        is_done = cli_npy_text_read(bytes + start, &header.text, &header.shape, label, out_tensor);
        goto free_text;
    }
    if (rondo_tensor_init(header.dtype, &header.shape, out_tensor) != RONDO_STATUS_OK) {
        cli_print_error("%s: %s", label, rondo_error_get_last()->message);
        goto free_text;
    }
    if (header.is_fortran_order && header.shape.rank > 1) {
        turn_order(bytes + start, width, out_tensor);
    } else if (rondo_tensor_get_bytes(out_tensor) > 0) {
        memcpy(out_tensor->data, bytes + start, rondo_tensor_get_bytes(out_tensor));
    }
    if (header.is_big_endian) {
        swap_bytes(out_tensor);
    }
    is_done = true;

free_text:
    free(text);
    return is_done;
}

bool cli_npy_read(const char *path, rondo_dtype wanted, rondo_tensor *out_tensor) {
    cli_bytes bytes;
    memset(out_tensor, 0, sizeof *out_tensor);
    if (!cli_bytes_load(path, &bytes)) {
        return false;
    }
    const bool is_done = cli_npy_parse(bytes.data, bytes.count, path, wanted, out_tensor);
    cli_bytes_free(&bytes);
    return is_done;
}

// ---- writing ----------------------------------------------------------------------------------

// Writes the dictionary, padded with blanks so that the elements start aligned. Returns its length.
static size_t format_header(const rondo_tensor *tensor, const char *descr, char *buffer,
                            size_t buffer_bytes) {
    const bool has_byte_order =
        rondo_dtype_get_bytes(tensor->dtype) > 1 || cli_is_narrow(tensor->dtype);
    size_t length = (size_t)snprintf(buffer, buffer_bytes,
                                     "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                                     has_byte_order ? '<' : '|', descr);
    for (int32_t d = 0; d < tensor->shape.rank; d++) {
        length += (size_t)snprintf(buffer + length, buffer_bytes - length, "%" PRId64 ",%s",
                                   tensor->shape.extent[d], d + 1 < tensor->shape.rank ? " " : "");
    }
    length += (size_t)snprintf(buffer + length, buffer_bytes - length, "), }");
    while ((MAGIC_BYTES + 4 + length + 1) % HEADER_ALIGNMENT != 0) {
        buffer[length++] = ' ';
    }
    buffer[length++] = '\n';
    return length;
}

bool cli_npy_write(const char *path, const rondo_tensor *tensor) {
    const char *descr = NULL;
    const bool is_text = tensor->dtype == RONDO_DTYPE_STRING;
    char text_descr[32];
    size_t characters = 0;
    if (is_text) {
        if (!cli_npy_text_measure(tensor, path, &characters)) {
            return false;
        }
        snprintf(text_descr, sizeof text_descr, "U%zu", characters);
        descr = text_descr;
    }
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (types[i].dtype == tensor->dtype) {
            descr = types[i].descr;
        }
    }
    if (cli_is_narrow(tensor->dtype)) {
        descr = "V1";
    }
    if (descr == NULL) {
        cli_print_error("%s: %s has no form in .npy", path, rondo_dtype_get_name(tensor->dtype));
        return false;
    }
    char header[512];
    const size_t length = format_header(tensor, descr, header, sizeof header);
    const unsigned char version[4] = {1, 0, (unsigned char)(length & 0xff),
                                      (unsigned char)(length >> 8)};

    cli_output output;
    if (!cli_output_open(path, &output)) {
        return false;
    }
    // What fails here is told by cli_output_close.
    const size_t byte_count = rondo_tensor_get_bytes(tensor);
    (void)!fwrite(magic, 1, MAGIC_BYTES, output.file);
    (void)!fwrite(version, 1, sizeof version, output.file);
    (void)!fwrite(header, 1, length, output.file);
    if (is_text) {
        cli_npy_text_write(tensor, characters, output.file);
    } else if (byte_count > 0) {
        (void)!fwrite(tensor->data, 1, byte_count, output.file);
    }
    return cli_output_close(&output);
}
