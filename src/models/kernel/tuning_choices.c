// kernel/tuning_choices.c — see tuning_choices.h.
// SPDX-License-Identifier: Apache-2.0

#include "kernel/tuning_choices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

#define FIRST_LINE "rondo tuning "

enum { FILE_VERSION = 1, FIELD_COUNT = 3 };

// Device, problem and choice, one behind the other in one allocation.
typedef struct choice_line {
    char *field[FIELD_COUNT];
    size_t number;  // in the file; where two are of one problem, the later one counts
} choice_line;

struct rondo__tuning_choices {
    choice_line *lines;  // sorted by device and problem
    size_t line_count, line_capacity;
};

static int compare(const choice_line *line, const char *device, const char *problem) {
    const int order = strcmp(line->field[0], device);
    return order != 0 ? order : strcmp(line->field[1], problem);
}

// The first line that does not come before the problem.
static size_t find_place(const rondo__tuning_choices *choices, const char *device,
                         const char *problem) {
    size_t low = 0, high = choices->line_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare(&choices->lines[middle], device, problem) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool has_line(const rondo__tuning_choices *choices, size_t place, const char *device,
                     const char *problem) {
    return place < choices->line_count && compare(&choices->lines[place], device, problem) == 0;
}

static rondo_status make_line(const char *const field[FIELD_COUNT], choice_line *out_line) {
    size_t bytes = 0;
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        bytes += strlen(field[i]) + 1;
    }
    char *at = rondo__malloc(bytes);
    if (at == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const size_t field_bytes = strlen(field[i]) + 1;
        memcpy(at, field[i], field_bytes);
        out_line->field[i] = at;
        at += field_bytes;
    }
    return RONDO_STATUS_OK;
}

// Puts one line behind the others, whatever its order: sort_lines makes up for it.
static rondo_status append(rondo__tuning_choices *choices, const char *const field[FIELD_COUNT],
                           size_t number) {
    choice_line line = {.number = number};
    RETURN_IF_ERROR(
        RONDO__ARRAY_RESERVE(choices->lines, choices->line_capacity, choices->line_count + 1));
    RETURN_IF_ERROR(make_line(field, &line));
    choices->lines[choices->line_count++] = line;
    return RONDO_STATUS_OK;
}

static int compare_lines(const void *a, const void *b) {
    const choice_line *left = a;
    const choice_line *right = b;
    const int order = compare(left, right->field[0], right->field[1]);
    return order != 0 ? order : left->number < right->number ? -1 : 1;
}

// Sorts what was appended; of the lines of one problem the last stays.
static void sort_lines(rondo__tuning_choices *choices) {
    size_t kept = 0;
    if (choices->line_count == 0) {
        return;
    }
    qsort(choices->lines, choices->line_count, sizeof *choices->lines, compare_lines);
    for (size_t i = 0; i < choices->line_count; i++) {
        const choice_line line = choices->lines[i];
        if (kept > 0 && compare(&choices->lines[kept - 1], line.field[0], line.field[1]) == 0) {
            rondo__free(choices->lines[--kept].field[0]);
        }
        choices->lines[kept++] = line;
    }
    choices->line_count = kept;
}

static rondo_status put(rondo__tuning_choices *choices, const char *const field[FIELD_COUNT]) {
    const size_t place = find_place(choices, field[0], field[1]);
    const bool is_there = has_line(choices, place, field[0], field[1]);
    choice_line line = {0};
    if (is_there && strcmp(choices->lines[place].field[2], field[2]) == 0) {
        return RONDO_STATUS_OK;
    }
    if (!is_there) {
        RETURN_IF_ERROR(
            RONDO__ARRAY_RESERVE(choices->lines, choices->line_capacity, choices->line_count + 1));
    }
    RETURN_IF_ERROR(make_line(field, &line));
    if (is_there) {
        rondo__free(choices->lines[place].field[0]);
    } else {
        memmove(&choices->lines[place + 1], &choices->lines[place],
                (choices->line_count - place) * sizeof line);
        choices->line_count++;
    }
    choices->lines[place] = line;
    return RONDO_STATUS_OK;
}

// ---- reading ----------------------------------------------------------------------------------

static rondo_status check_first_line(const char *line) {
    char *end = NULL;
    if (strncmp(line, FIRST_LINE, strlen(FIRST_LINE)) != 0) {
        return RONDO_FAIL(BAD_DATA, "no tuning file: its first line is not \"" FIRST_LINE "%d\"",
                          FILE_VERSION);
    }
    const long version = strtol(line + strlen(FIRST_LINE), &end, 10);
    if (*end != '\0' || version < 1) {
        return RONDO_FAIL(BAD_DATA, "no tuning file: its first line is not \"" FIRST_LINE "%d\"",
                          FILE_VERSION);
    }
    return version <= FILE_VERSION
               ? RONDO_STATUS_OK
               : RONDO_FAIL(UNSUPPORTED,
                            "a tuning file of version %ld; this Rondo reads version %d; make it "
                            "again with rondo tune",
                            version, FILE_VERSION);
}

static rondo_status read_line(rondo__tuning_choices *choices, char *line, size_t number) {
    const char *field[FIELD_COUNT];
    char *at = line;
    if (number == 1) {
        return check_first_line(line);
    }
    if (line[0] == '#' || line[0] == '\0') {
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        char *end = at != NULL ? strchr(at, '\t') : NULL;
        if (at == NULL || at[0] == '\0' || at[0] == '\t' || (end != NULL && i + 1 == FIELD_COUNT)) {
            return RONDO_FAIL(BAD_DATA,
                              "line %zu of the tuning file is not a device, a problem and a choice "
                              "with tabs between them",
                              number);
        }
        field[i] = at;
        if (end != NULL) {
            *end++ = '\0';
        }
        at = end;
    }
    return append(choices, field, number);
}

static rondo_status read_lines(rondo__tuning_choices *choices, char *text, size_t byte_count) {
    size_t number = 0;
    if (memchr(text, '\0', byte_count) != NULL) {
        return RONDO_FAIL(BAD_DATA, "no tuning file: there is a zero byte in it");
    }
    for (char *line = text; line != NULL;) {
        char *end = strchr(line, '\n');
        if (end != NULL) {
            *end++ = '\0';
        }
        const size_t length = strlen(line);
        if (length > 0 && line[length - 1] == '\r') {
            line[length - 1] = '\0';
        }
        RETURN_IF_ERROR(read_line(choices, line, ++number));
        line = end;
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_bytes(rondo__tuning_choices *choices, const void *bytes,
                               size_t byte_count) {
    char *text = rondo__malloc(byte_count + 1);
    if (text == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (byte_count > 0) {
        memcpy(text, bytes, byte_count);
    }
    text[byte_count] = '\0';
    const rondo_status status = read_lines(choices, text, byte_count);
    sort_lines(choices);
    rondo__free(text);
    return status;
}

static rondo_status read_file(rondo__tuning_choices *choices, const char *path) {
    rondo__file file;
    RETURN_IF_ERROR(rondo__file_map(path, &file));
    const rondo_status status = read_bytes(choices, file.bytes, file.byte_count);
    rondo__file_unmap(&file);
    if (status != RONDO_STATUS_OK) {
        rondo__error_prefix("%s", path);
    }
    return status;
}

// ---- the object -------------------------------------------------------------------------------

rondo_status rondo__tuning_choices_create(const char *path, rondo__tuning_choices **out_choices) {
    rondo__tuning_choices *choices = rondo__calloc(1, sizeof *choices);
    *out_choices = NULL;
    if (choices == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status = path != NULL ? read_file(choices, path) : RONDO_STATUS_OK;
    if (status != RONDO_STATUS_OK) {
        rondo__tuning_choices_destroy(choices);
        return status;
    }
    *out_choices = choices;
    return RONDO_STATUS_OK;
}

void rondo__tuning_choices_destroy(rondo__tuning_choices *choices) {
    for (size_t i = 0; choices != NULL && i < choices->line_count; i++) {
        rondo__free(choices->lines[i].field[0]);
    }
    if (choices != NULL) {
        rondo__free(choices->lines);
    }
    rondo__free(choices);
}

rondo_status rondo__tuning_choices_add(rondo__tuning_choices *choices, const void *bytes,
                                       size_t byte_count) {
    rondo__tuning_choices *more = NULL;
    RETURN_IF_ERROR(rondo__tuning_choices_create(NULL, &more));
    rondo_status status = read_bytes(more, bytes, byte_count);
    for (size_t i = 0; i < more->line_count && status == RONDO_STATUS_OK; i++) {
        char *const *field = more->lines[i].field;
        if (!has_line(choices, find_place(choices, field[0], field[1]), field[0], field[1])) {
            status = put(choices, (const char *const *)field);
        }
    }
    rondo__tuning_choices_destroy(more);
    return status;
}

bool rondo__tuning_choices_find(const rondo__tuning_choices *choices, const char *device,
                                const char *problem, char *choice, size_t choice_bytes) {
    const size_t place = choices != NULL ? find_place(choices, device, problem) : 0;
    if (choices == NULL || !has_line(choices, place, device, problem)) {
        return false;
    }
    const int length = snprintf(choice, choice_bytes, "%s", choices->lines[place].field[2]);
    return length >= 0 && (size_t)length < choice_bytes;
}

void rondo__tuning_choices_note(rondo__tuning_choices *choices, const char *device,
                                const char *problem, const char *choice) {
    const char *const field[FIELD_COUNT] = {device, problem, choice};
    rondo_error before;
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (field[i][0] == '\0' || field[i][0] == '#' || strpbrk(field[i], "\t\r\n") != NULL) {
            return;  // a line could not hold it
        }
    }
    if (choices != NULL) {
        rondo__error_save(&before);
        if (put(choices, field) != RONDO_STATUS_OK) {
            rondo__error_restore(&before);
        }
    }
}

void rondo__tuning_choices_print(const rondo__tuning_choices *choices, rondo__text *text) {
    rondo__text_append(text, FIRST_LINE "%d\n", FILE_VERSION);
    rondo__text_append(text, "# device, problem, the fastest way to do it: rondo tune\n");
    for (size_t i = 0; i < choices->line_count; i++) {
        char *const *field = choices->lines[i].field;
        rondo__text_append(text, "%s\t%s\t%s\n", field[0], field[1], field[2]);
    }
}
