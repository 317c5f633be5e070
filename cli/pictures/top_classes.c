// SPDX-License-Identifier: Apache-2.0

#include "top_classes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "file_bytes.h"
#include "tensor_text.h"

// ---- labels -------------------------------------------------------------------------------------

void cli_labels_free(cli_labels *labels) {
    free(labels->names);
    free(labels->text);
    *labels = (cli_labels){0};
}

static size_t count_lines(const char *text) {
    size_t count = 0;
    for (const char *at = text; *at != '\0'; at = *at == '\n' ? at + 1 : at) {
        at += strcspn(at, "\n");
        count++;
    }
    return count;
}

// Empty lines at the end of a file are no classes.
static void drop_empty_lines(cli_labels *labels) {
    while (labels->count > 0 && labels->names[labels->count - 1][0] == '\0') {
        labels->count--;
    }
}

bool cli_labels_read(const char *path, cli_labels *out_labels) {
    cli_bytes bytes;
    *out_labels = (cli_labels){0};
    if (path == NULL) {
        return true;
    }
    if (!cli_bytes_load(path, &bytes)) {
        return false;
    }
    const bool is_text = memchr(bytes.data, '\0', bytes.count) == NULL;
    out_labels->text = is_text ? strndup((const char *)bytes.data, bytes.count) : NULL;
    cli_bytes_free(&bytes);
    if (out_labels->text == NULL) {
        cli_print_error("%s: %s", path, is_text ? "out of memory" : "is no text");
        return false;
    }
    out_labels->names = calloc(count_lines(out_labels->text) + 1, sizeof *out_labels->names);
    if (out_labels->names == NULL) {
        return cli_fail_memory();
    }
    const bool has_mark = strncmp(out_labels->text, "\xef\xbb\xbf", 3) == 0;  // of UTF-8
    for (char *at = out_labels->text + (has_mark ? 3 : 0); *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        const bool is_last = at[length] == '\0';
        out_labels->names[out_labels->count++] = at;
        at[length > 0 && at[length - 1] == '\r' ? length - 1 : length] = '\0';
        at[length] = '\0';
        at += is_last ? length : length + 1;
    }
    drop_empty_lines(out_labels);
    return true;
}

// ---- scores -------------------------------------------------------------------------------------

cli_scores cli_scores_find(const rondo_tensor *tensor) {
    cli_scores scores = {.tensor = tensor};
    const int64_t count = cli_is_number(tensor->dtype) ? rondo_shape_get_count(&tensor->shape) : 0;
    int32_t axis = tensor->shape.rank - 1;
    while (axis > 0 && tensor->shape.extent[axis] == 1) {
        axis--;
    }
    if (count > 0 && axis >= 0 && tensor->data != NULL) {
        scores.class_count = (size_t)tensor->shape.extent[axis];
        scores.row_count = (size_t)count / scores.class_count;
    }
    return scores;
}

static double get_score(const cli_scores *scores, size_t row, size_t class_index) {
    return cli_tensor_get_element(scores->tensor, row * scores->class_count + class_index);
}

size_t cli_scores_rank(const cli_scores *scores, size_t row, size_t limit, size_t *classes) {
    size_t count = 0;
    for (size_t i = 0; i < scores->class_count; i++) {
        const double score = get_score(scores, row, i);
        size_t place = count;
        while (place > 0 && score > get_score(scores, row, classes[place - 1])) {
            place--;
        }
        if (isnan(score) || place == limit) {
            continue;
        }
        count += count < limit ? 1 : 0;
        memmove(classes + place + 1, classes + place, (count - 1 - place) * sizeof *classes);
        classes[place] = i;
    }
    return count;
}

// The share of a class by softmax; below 0 where the row is a distribution as it is.
static double get_share(const cli_scores *scores, size_t row, size_t class_index) {
    double largest = -(double)INFINITY;
    double sum = 0.0;
    double smallest = 0.0;
    for (size_t i = 0; i < scores->class_count; i++) {
        const double score = get_score(scores, row, i);
        largest = fmax(largest, score);
        smallest = fmin(smallest, score);
        sum += score;
    }
    if (smallest >= 0.0 && fabs(sum - 1.0) < 1e-2) {
        return -1.0;
    }
    double exponentials = 0.0;
    for (size_t i = 0; i < scores->class_count; i++) {
        exponentials += exp(get_score(scores, row, i) - largest);
    }
    return exp(get_score(scores, row, class_index) - largest) / exponentials;
}

char *cli_scores_format(const cli_scores *scores, size_t row, size_t class_index, char *line) {
    const double share = get_share(scores, row, class_index);
    char name[120] = "";
    char softmax[40] = "";
    if (scores->labels != NULL && class_index < scores->labels->count) {
        snprintf(name, sizeof name, " %.110s", scores->labels->names[class_index]);
    } else if (scores->columns != NULL && scores->columns->dtype == RONDO_DTYPE_STRING) {
        char quoted[110];
        snprintf(name, sizeof name, " %s",
                 cli_string_quote((const rondo_string *)scores->columns->data + class_index, quoted,
                                  sizeof quoted));
    } else if (scores->columns != NULL) {
        char number[CLI_ELEMENT_BYTES];
        snprintf(name, sizeof name, " %s",
                 cli_tensor_format_element(scores->columns, class_index, number));
    }
    if (share >= 0.0) {
        snprintf(softmax, sizeof softmax, " (softmax %.4g)", share);
    }
    snprintf(line, CLI_TOP_LINE_BYTES, "%zu%s %.6g%s", class_index, name,
             get_score(scores, row, class_index), softmax);
    return line;
}
