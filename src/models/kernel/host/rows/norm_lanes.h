// kernel/host/rows/norm_lanes.h — what a channel has for each number of a line, where channels come
// last: lines of a few positions, so that loops over few channels are long enough.
//
// A batch is cut into parts by its shape alone, so that sums do not depend on the threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>
#include <string.h>

enum {
    RONDO__LINE_FLOATS = 256,  // of a line, where a position has fewer
    RONDO__LINES_IN_F32 = 64,  // added up in f32; longer sums are of such blocks, in double
    RONDO__PARTS_MAX = 32,
};

typedef struct rondo__line_cut {
    int64_t channels;
    int64_t lanes;   // numbers of a line, a multiple of the channels
    int64_t floats;  // all
    int64_t lines;   // the last one may be shorter
    int64_t parts;
} rondo__line_cut;

static inline rondo__line_cut rondo__line_cut_of(int64_t positions, int64_t channels) {
    const int64_t most = RONDO__LINE_FLOATS / channels, repeats = most > 1 ? most : 1;
    rondo__line_cut cut = {channels, repeats * channels, positions * channels, 0, 0};
    cut.lines = (positions + repeats - 1) / repeats;
    const int64_t parts = cut.lines / RONDO__LINES_IN_F32;
    cut.parts = parts < 1 ? 1 : parts > RONDO__PARTS_MAX ? RONDO__PARTS_MAX : parts;
    return cut;
}

static inline int64_t rondo__line_get_length(const rondo__line_cut *cut, int64_t line) {
    const int64_t rest = cut->floats - line * cut->lanes;
    return rest < cut->lanes ? rest : cut->lanes;
}

// A vector of the channels becomes one of a line.
static inline void rondo__line_repeat(const rondo__line_cut *cut, float *line) {
    for (int64_t i = cut->channels; i < cut->lanes; i += cut->channels) {
        memcpy(line + i, line, (size_t)cut->channels * sizeof *line);
    }
}

// Adds the sums of a line to those of the channels.
static inline void rondo__line_add(const rondo__line_cut *cut, const float *line, double *sums) {
    for (int64_t i = 0; i < cut->lanes; i += cut->channels) {
        for (int64_t c = 0; c < cut->channels; ++c) {
            sums[c] += (double)line[i + c];
        }
    }
}

// Two sums of each channel and part: those of the first part become those of all.
static inline void rondo__line_cut_join(const rondo__line_cut *cut, double *sums) {
    for (int64_t part = 1; part < cut->parts; ++part) {
        for (int64_t i = 0; i < 2 * cut->channels; ++i) {
            sums[i] += sums[part * 2 * cut->channels + i];
        }
    }
}
