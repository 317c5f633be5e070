// The .npy format: "\x93NUMPY", major, minor, header length (2 bytes little endian; 4 from format
// 2.0), a Python dictionary as text, then the elements.
//
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//
// Source: NumPy Enhancement Proposal 1.
#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

enum {
    MAGIC_BYTES = 6,
    HEADER_LIMIT_BYTES = 65536,  // far beyond any header that a tensor of rank 8 needs
    HEADER_ALIGNMENT = 64,
};
static const char magic[MAGIC_BYTES + 1] = "\x93NUMPY";

typedef struct npy_type {
    const char *descr;  // without the byte order
    rondo_dtype dtype;
} npy_type;

static const npy_type types[] = {
    {"f4", RONDO_DTYPE_F32},  {"f8", RONDO_DTYPE_F64}, {"f2", RONDO_DTYPE_F16},
    {"V2", RONDO_DTYPE_BF16}, {"i1", RONDO_DTYPE_I8},  {"i2", RONDO_DTYPE_I16},
    {"i4", RONDO_DTYPE_I32},  {"i8", RONDO_DTYPE_I64}, {"u1", RONDO_DTYPE_U8},
    {"u2", RONDO_DTYPE_U16},  {"u4", RONDO_DTYPE_U32}, {"u8", RONDO_DTYPE_U64},
    {"b1", RONDO_DTYPE_BOOL},
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

// ---- reading ----------------------------------------------------------------------------------

typedef struct npy_header {
    rondo_dtype dtype;
    rondo_shape shape;
    bool is_big_endian;
    bool is_fortran_order;
} npy_header;

// The text after "'key':" with blanks skipped; NULL when the key is not there.
static const char *find_value(const char *text, const char *key) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *value = strstr(text, quoted);
    if (value == NULL) {
        return NULL;
    }
    value += strlen(quoted);
    while (*value == ' ') {
        value++;
    }
    return value;
}

static bool parse_descr(const char *value, npy_header *header) {
    if (value[0] != '\'' || value[1] == '\0' || strchr("<>|=", value[1]) == NULL) {
        return false;
    }
    header->is_big_endian = value[1] == '>';
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        const size_t length = strlen(types[i].descr);
        if (strncmp(value + 2, types[i].descr, length) == 0 && value[2 + length] == '\'') {
            header->dtype = types[i].dtype;
            return true;
        }
    }
    return false;
}

static bool parse_shape(const char *value, rondo_shape *shape) {
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
        if (errno != 0 || end == value || extent < 0 || shape->rank == RONDO_RANK_MAX) {
            return false;
        }
        shape->extent[shape->rank++] = extent;
        value = end;
    }
}

static bool parse_header(const char *text, npy_header *header) {
    const char *descr = find_value(text, "descr");
    const char *order = find_value(text, "fortran_order");
    const char *shape = find_value(text, "shape");
    if (descr == NULL || order == NULL || shape == NULL) {
        return false;
    }
    header->is_fortran_order = strncmp(order, "True", 4) == 0;
    return parse_descr(descr, header) && parse_shape(shape, &header->shape);
}

static void swap_bytes(rondo_tensor *tensor) {
    const size_t width = rondo_dtype_get_bytes(tensor->dtype);
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

// Reads magic, version and header text, terminated; NULL when malformed. The caller frees it.
static char *read_header_text(FILE *file) {
    unsigned char lead[MAGIC_BYTES + 6];
    if (fread(lead, 1, MAGIC_BYTES + 4, file) != MAGIC_BYTES + 4 ||
        memcmp(lead, magic, MAGIC_BYTES) != 0) {
        return NULL;
    }
    size_t length = (size_t)lead[8] | (size_t)lead[9] << 8;
    if (lead[MAGIC_BYTES] > 1) {
        if (fread(lead + 10, 1, 2, file) != 2) {
            return NULL;
        }
        length |= (size_t)lead[10] << 16 | (size_t)lead[11] << 24;
    }
    if (lead[MAGIC_BYTES] < 1 || lead[MAGIC_BYTES] > 3 || length > HEADER_LIMIT_BYTES) {
        return NULL;
    }
    char *text = calloc(length + 1, 1);
    if (text != NULL && fread(text, 1, length, file) != length) {
        free(text);
        return NULL;
    }
    return text;
}

// True when the file holds at least `needed` more bytes, so that a header which lies about the size
// does not make us allocate it.
static bool has_bytes_left(FILE *file, size_t needed) {
    const long position = ftell(file);
    if (position < 0 || fseek(file, 0, SEEK_END) != 0) {
        return false;
    }
    const long end = ftell(file);
    return fseek(file, position, SEEK_SET) == 0 && end >= position &&
           (size_t)(end - position) >= needed;
}

bool cli_npy_read(const char *path, rondo_tensor *out_tensor) {
    npy_header header = {.dtype = RONDO_DTYPE_NONE};
    rondo_tensor tensor = {.dtype = RONDO_DTYPE_NONE};
    char *text = NULL;
    bool is_done = false;
    memset(out_tensor, 0, sizeof *out_tensor);

    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        cli_print_error("%s: %s", path, strerror(errno));
        return false;
    }
    text = read_header_text(file);
    if (text == NULL || !parse_header(text, &header)) {
        cli_print_error("%s: not a .npy file of numbers", path);
        goto close_file;
    }
    if (header.is_fortran_order && header.shape.rank > 1) {
        cli_print_error("%s: Fortran order; save it with numpy.ascontiguousarray", path);
        goto close_file;
    }
    const rondo_tensor described = {.dtype = header.dtype, .shape = header.shape};
    if (rondo_shape_get_count(&header.shape) < 0 ||
        !has_bytes_left(file, rondo_tensor_get_bytes(&described))) {
        cli_print_error("%s: the file is shorter than its header says", path);
        goto close_file;
    }
    if (rondo_tensor_init(header.dtype, &header.shape, &tensor) != RONDO_STATUS_OK) {
        cli_print_error("%s: %s", path, rondo_error_get_last()->message);
        goto close_file;
    }
    const size_t byte_count = rondo_tensor_get_bytes(&tensor);
    if (byte_count > 0 && fread(tensor.data, 1, byte_count, file) != byte_count) {
        cli_print_error("%s: %s", path, strerror(errno));
        rondo_tensor_deinit(&tensor);
        goto close_file;
    }
    if (header.is_big_endian) {
        swap_bytes(&tensor);
    }
    *out_tensor = tensor;
    is_done = true;

close_file:
    free(text);
    fclose(file);
    return is_done;
}

// ---- writing ----------------------------------------------------------------------------------

// Writes the dictionary, padded with blanks so that the elements start aligned. Returns its length.
static size_t format_header(const rondo_tensor *tensor, const char *descr, char *buffer,
                            size_t buffer_bytes) {
    const bool has_byte_order = rondo_dtype_get_bytes(tensor->dtype) > 1;
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
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (types[i].dtype == tensor->dtype) {
            descr = types[i].descr;
        }
    }
    if (descr == NULL) {
        cli_print_error("%s: %s has no form in .npy", path, rondo_dtype_get_name(tensor->dtype));
        return false;
    }
    char header[512];
    const size_t length = format_header(tensor, descr, header, sizeof header);
    const unsigned char version[4] = {1, 0, (unsigned char)(length & 0xff),
                                      (unsigned char)(length >> 8)};

    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        cli_print_error("%s: %s", path, strerror(errno));
        return false;
    }
    const size_t byte_count = rondo_tensor_get_bytes(tensor);
    bool is_written = fwrite(magic, 1, MAGIC_BYTES, file) == MAGIC_BYTES &&
                      fwrite(version, 1, sizeof version, file) == sizeof version &&
                      fwrite(header, 1, length, file) == length &&
                      (byte_count == 0 || fwrite(tensor->data, 1, byte_count, file) == byte_count);
    if (fclose(file) != 0) {
        is_written = false;
    }
    if (!is_written) {
        cli_print_error("%s: %s", path, strerror(errno));
    }
    return is_written;
}
