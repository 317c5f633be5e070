// SPDX-License-Identifier: Apache-2.0
#include "train_report.h"

#include <math.h>
#include <stdlib.h>

#include "console.h"

enum { WIDTH = 860, HEIGHT = 320, LEFT = 70, TOP = 20, DRAWN_MAX = 1200 };

bool cli_train_line_add(cli_train_line *line, double step, double value) {
    if (line->count == line->capacity) {
        const size_t capacity = line->capacity > 0 ? 2 * line->capacity : 256;
        cli_train_point *grown = realloc(line->points, capacity * sizeof *grown);
        if (grown == NULL) {
            return cli_fail_memory();
        }
        line->points = grown;
        line->capacity = capacity;
    }
    line->points[line->count++] = (cli_train_point){step, value};
    return true;
}

void cli_train_line_free(cli_train_line *line) {
    free(line->points);
    *line = (cli_train_line){0};
}

static void write_escaped(FILE *file, const char *text) {
    for (; *text != '\0'; ++text) {
        const unsigned char c = (unsigned char)*text;
        if (c == '<' || c == '>' || c == '&' || c == '"' || c < 0x20) {
            (void)fprintf(file, "&#%u;", c < 0x20 ? 0x20u : c);
        } else {
            (void)fputc(c, file);
        }
    }
}

typedef struct range {
    double first, last, low, high;
} range;

static void widen(range *r, const cli_train_line *line) {
    for (size_t i = 0; i < line->count; ++i) {
        const cli_train_point *p = &line->points[i];
        if (isfinite(p->value)) {
            r->first = p->step < r->first ? p->step : r->first;
            r->last = p->step > r->last ? p->step : r->last;
            r->low = p->value < r->low ? p->value : r->low;
            r->high = p->value > r->high ? p->value : r->high;
        }
    }
}

static void write_line(FILE *file, const range *r, const cli_train_line *line, const char *colour) {
    const size_t every = line->count / DRAWN_MAX + 1;
    (void)fprintf(file, "<polyline fill='none' stroke='%s' stroke-width='1.5' points='", colour);
    for (size_t i = 0; i < line->count; i += every) {
        const cli_train_point *p = &line->points[i];
        if (isfinite(p->value)) {
            const double x = (p->step - r->first) / (r->last - r->first) * (WIDTH - LEFT - 20);
            const double y = (r->high - p->value) / (r->high - r->low) * (HEIGHT - TOP - 40);
            (void)fprintf(file, "%.1f,%.1f ", LEFT + x, TOP + y);
        }
    }
    (void)fprintf(file, "'/>\n");
}

bool cli_train_report_write(void *data, FILE *file) {
    const cli_train_report *report = data;
    range r = {HUGE_VAL, -HUGE_VAL, HUGE_VAL, -HUGE_VAL};
    widen(&r, report->loss);
    widen(&r, report->validation);
    r = r.first > r.last ? (range){0.0, 1.0, 0.0, 1.0} : r;
    r.last = r.last > r.first ? r.last : r.first + 1.0;
    r.high = r.high > r.low ? r.high : r.low + 1.0;
    (void)fprintf(file,
                  "<!doctype html>\n<html lang='en'><meta charset='utf-8'><title>rondo train: ");
    write_escaped(file, report->model);
    (void)fprintf(file, "</title>\n<body style='font-family:sans-serif;margin:2em'>\n<h1>");
    write_escaped(file, report->model);
    (void)fprintf(file, "</h1>\n<p>");
    write_escaped(file, report->summary);
    (void)fprintf(file,
                  "</p>\n<svg width='%d' height='%d' role='img' aria-label='loss by step'>\n"
                  "<rect x='%d' y='%d' width='%d' height='%d' fill='none' stroke='#999'/>\n",
                  WIDTH, HEIGHT, LEFT, TOP, WIDTH - LEFT - 20, HEIGHT - TOP - 40);
    (void)fprintf(file, "<text x='4' y='%d'>%.4g</text><text x='4' y='%d'>%.4g</text>\n", TOP + 12,
                  r.high, HEIGHT - 42, r.low);
    (void)fprintf(file,
                  "<text x='%d' y='%d'>step %.0f</text><text x='%d' y='%d' text-anchor='end'>"
                  "%.0f</text>\n",
                  LEFT, HEIGHT - 12, r.first, WIDTH - 20, HEIGHT - 12, r.last);
    write_line(file, &r, report->loss, "#1667b7");
    write_line(file, &r, report->validation, "#c4520f");
    (void)fprintf(file,
                  "</svg>\n<p><span style='color:#1667b7'>loss</span>, "
                  "<span style='color:#c4520f'>loss of what is held out</span></p>\n"
                  "</body></html>\n");
    return ferror(file) == 0;
}
