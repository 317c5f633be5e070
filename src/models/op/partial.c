// op/partial.c — shape inference where some extents are not known.
//
// This file asks the op's own inference several times, with numbers instead of the unknown extents:
// all equal, and each apart from the others. A property on which all answers agree does not depend
// on the unknown extents. The numbers are 0, 1, small and large ones, and the known extents of the
// inputs, because ops treat these specially. If the op accepts only one number for an extent, the
// outputs stay unknown: one answer proves nothing. Where another input has that extent, as Gemm's B
// has A's columns, their ranks are believed, and no extents; likewise where nothing fits until
// optional inputs of unknown extents are left out. Outputs also stay unknown if the op
// accepts only numbers that make an input empty: ops accept empty inputs whatever their other
// extents are (Concat), so such answers can only deny a property. The executor compares results
// with this inference, so a wrong answer ends in an error.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/op.h"
#include "tensor/elements.h"

enum {
    OPEN_MAX = 16,  // more unknown extents say nothing
    KNOWN_MAX = 4,  // known extents that are tried, too
    ALIKE_MIN = 4,  // answers before "nothing is known" is believed
    APART_FEW = 3,  // of more unknown extents two numbers are tried apart, and the known ones
    RANKS_MIN = 2,  // of an input without a rank so many must fit
    RANK_MIN = 2,   // answers for each of these ranks
};

static const int64_t alike_numbers[] = {1, 7, 0, 2, 3, 64, 1009, (INT64_C(1) << 30) + 3};
static const int64_t apart_numbers[] = {11, 0, 1, 5};
static const int64_t other_numbers[] = {7, 1};

#define COUNT_OF(list) (sizeof(list) / sizeof *(list))

void rondo__info_join(rondo__tensor_info *in_out_info, const rondo__tensor_info *other) {
    rondo__tensor_info *info = in_out_info;
    if (info->dtype != other->dtype) {
        *info = (rondo__tensor_info){0};
        return;
    }
    info->constant = NULL;
    if (!rondo__info_has_rank(info) || !rondo__info_has_rank(other) ||
        info->shape.rank != other->shape.rank) {
        *info = (rondo__tensor_info){.dtype = info->dtype};
        return;
    }
    info->is_rank_known = true;
    info->is_shape_known = true;
    for (int32_t d = 0; d < info->shape.rank; ++d) {
        if (info->shape.extent[d] != other->shape.extent[d]) {
            info->shape.extent[d] = -1;
        }
        info->is_shape_known = info->is_shape_known && info->shape.extent[d] >= 0;
    }
}

// An unknown extent, and which numbers fitted.
typedef struct open_extent {
    size_t input;
    int32_t axis;
    bool has_first;
    bool has_other;
    int64_t first;
} open_extent;

typedef struct trials {
    const rondo__infer *infer;    // what is asked
    rondo__tensor_info *inputs;   // of one trial
    rondo__tensor_info *outputs;  // of one trial
    rondo__tensor_info *joined;   // of all that fitted
    size_t rankless;              // the input without a rank; SIZE_MAX for none
    size_t open_count;
    open_extent open[OPEN_MAX];
    size_t known_count;
    int64_t known[KNOWN_MAX];
    size_t fit_count;
    size_t fit_before;  // as many before the rank that is tried for the input without one
    bool has_full;      // one that fitted had elements in all inputs that were tried
    bool is_rank_only;  // an extent fitted with one number only, which another input has
} trials;

static void note_known(trials *t, int64_t extent) {
    for (size_t i = 0; i < t->known_count; ++i) {
        if (t->known[i] == extent) {
            return;
        }
    }
    if (t->known_count < KNOWN_MAX) {
        t->known[t->known_count++] = extent;
    }
}

// Finds what is unknown of the inputs. False: too much, or a value that is no tensor.
static bool find_open(trials *t) {
    t->rankless = SIZE_MAX;
    for (size_t i = 0; i < t->infer->input_count; ++i) {
        const rondo__tensor_info *input = &t->infer->inputs[i];
        if (input->dtype == RONDO_DTYPE_NONE) {
            continue;
        }
        if (rondo__dtype_is_nested(input->dtype) ||
            (!rondo__info_has_rank(input) && t->rankless != SIZE_MAX)) {
            return false;
        }
        if (!rondo__info_has_rank(input)) {
            t->rankless = i;
            continue;
        }
        for (int32_t d = 0; d < input->shape.rank; ++d) {
            if (input->shape.extent[d] >= 0) {
                note_known(t, input->shape.extent[d]);
            } else if (t->open_count < OPEN_MAX) {
                t->open[t->open_count++] = (open_extent){.input = i, .axis = d};
            } else {
                return false;
            }
        }
    }
    return true;
}

// Whether none of the numbers at hand is 0.
static bool is_full(const trials *t) {
    for (size_t k = 0; k < t->open_count; ++k) {
        if (t->inputs[t->open[k].input].shape.extent[t->open[k].axis] == 0) {
            return false;
        }
    }
    return true;
}

// Asks once, with the numbers that the extents of t->inputs hold.
static void ask(trials *t) {
    rondo__infer infer = *t->infer;
    infer.inputs = t->inputs;
    infer.outputs = t->outputs;
    if (rondo__op_infer(&infer) != RONDO_STATUS_OK) {
        return;
    }
    for (size_t i = 0; i < infer.output_count; ++i) {
        if (t->fit_count == 0) {
            t->joined[i] = t->outputs[i];
        } else {
            rondo__info_join(&t->joined[i], &t->outputs[i]);
        }
    }
    t->fit_count += 1;
    t->has_full = t->has_full || is_full(t);
    for (size_t k = 0; k < t->open_count; ++k) {
        open_extent *open = &t->open[k];
        const int64_t extent = t->inputs[open->input].shape.extent[open->axis];
        open->has_other = open->has_other || (open->has_first && open->first != extent);
        open->first = open->has_first ? open->first : extent;
        open->has_first = true;
    }
}

// Whether further answers could still say something.
static bool is_worth_asking(const trials *t) {
    if (t->rankless != SIZE_MAX && t->fit_count < t->fit_before + RANK_MIN) {
        return true;  // a higher rank may deny that of the outputs, even where no extent is known
    }
    for (size_t i = 0; i < t->infer->output_count; ++i) {
        const rondo__tensor_info *info = &t->joined[i];
        if (t->fit_count < ALIKE_MIN) {
            return true;
        }
        for (int32_t d = 0; rondo__info_has_rank(info) && d <= info->shape.rank; ++d) {
            if (d == info->shape.rank ? d == 0 : info->shape.extent[d] >= 0) {
                return true;
            }
        }
    }
    return t->fit_count == 0;
}

static void set_all(trials *t, int64_t extent) {
    for (size_t k = 0; k < t->open_count; ++k) {
        t->inputs[t->open[k].input].shape.extent[t->open[k].axis] = extent;
    }
}

// Number `index` of a list that goes on with the known extents; false beyond its end.
static bool get_number(const trials *t, const int64_t *numbers, size_t count, size_t index,
                       int64_t *out_number) {
    if (index >= count + t->known_count) {
        return false;
    }
    *out_number = index < count ? numbers[index] : t->known[index - count];
    return true;
}

// Open extent `k` by itself, the others all at one number.
static void ask_apart(trials *t, size_t k) {
    const bool is_short = t->open_count > APART_FEW;
    int64_t other;
    int64_t own;
    for (size_t o = 0; get_number(t, other_numbers, COUNT_OF(other_numbers), o, &other); ++o) {
        for (size_t n = 0; get_number(t, apart_numbers, COUNT_OF(apart_numbers), n, &own); ++n) {
            if (is_short && !is_worth_asking(t)) {
                break;
            }
            if (is_short && n > 1 && n < COUNT_OF(apart_numbers)) {
                continue;
            }
            set_all(t, other);
            t->inputs[t->open[k].input].shape.extent[t->open[k].axis] = own;
            ask(t);
        }
    }
}

// Whether the only number that fitted is an extent of another input, of the same type (not of a
// list of extents or indices).
static bool is_shared(const trials *t, const open_extent *open) {
    const rondo__tensor_info *inputs = t->infer->inputs;
    for (size_t i = 0; i < t->infer->input_count && open->first > 1; ++i) {
        const bool is_like = i != open->input && inputs[i].dtype == inputs[open->input].dtype;
        for (int32_t d = 0; is_like && d < inputs[i].shape.rank; ++d) {
            if (inputs[i].shape.extent[d] == open->first) {
                return true;
            }
        }
    }
    return false;
}

// Asks with every open extent. False: one of them fitted with a single number only.
static bool ask_all(trials *t) {
    int64_t number;
    for (size_t k = 0; k < t->open_count; ++k) {
        t->inputs[t->open[k].input].is_shape_known = true;
    }
    for (size_t n = 0;
         get_number(t, alike_numbers, COUNT_OF(alike_numbers), n, &number) && is_worth_asking(t);
         ++n) {
        set_all(t, number);
        ask(t);
    }
    for (size_t k = 0; t->open_count > 1 && k < t->open_count && is_worth_asking(t); ++k) {
        ask_apart(t, k);
    }
    for (size_t k = 0; k < t->open_count; ++k) {
        if (t->open[k].has_first && !t->open[k].has_other) {
            if (t->rankless != SIZE_MAX || !is_shared(t, &t->open[k])) {
                return false;
            }
            t->is_rank_only = true;
        }
    }
    return true;
}

// Asks for every rank of the one input that has none.
static bool ask_ranks(trials *t) {
    const size_t open_count = t->open_count;
    size_t rank_count = 0;
    for (int32_t rank = 0; rank <= RONDO_RANK_MAX; ++rank) {
        t->fit_before = t->fit_count;
        rondo__tensor_info *input = &t->inputs[t->rankless];
        input->is_shape_known = true;
        input->shape = (rondo_shape){.rank = rank};
        t->open_count = open_count;
        for (int32_t d = 0; d < rank; ++d) {
            if (t->open_count == OPEN_MAX) {
                return false;
            }
            t->open[t->open_count++] = (open_extent){.input = t->rankless, .axis = d};
        }
        if (!ask_all(t)) {
            return false;
        }
        rank_count += t->fit_count > t->fit_before ? 1 : 0;
    }
    return rank_count >= RANKS_MIN;
}

// Leaves out optional inputs of which no extent is known, such as the states that an LSTM begins
// with, whose three extents must all be right. False: there is none. Ranks alone are told then.
static bool leave_out(trials *t) {
    size_t kept = 0;
    for (size_t k = 0; k < t->open_count; ++k) {
        const size_t i = t->open[k].input;
        const rondo__tensor_info *input = &t->infer->inputs[i];
        bool is_open = i >= t->infer->op->def->input_min && input->dtype == t->inputs[0].dtype;
        for (int32_t d = 0; d < input->shape.rank; ++d) {
            is_open = is_open && input->shape.extent[d] < 0;
        }
        if (is_open) {
            t->inputs[i] = (rondo__tensor_info){0};
        } else {
            t->open[kept++] = t->open[k];
        }
    }
    t->is_rank_only = kept < t->open_count;
    t->open_count = kept;
    return t->is_rank_only && t->rankless == SIZE_MAX;
}

rondo_status rondo__op_infer_partial(rondo__infer *infer) {
    trials t = {.infer = infer};
    memset(infer->outputs, 0, infer->output_count * sizeof *infer->outputs);
    if (infer->op->def->infer == NULL || !find_open(&t)) {
        return RONDO_STATUS_OK;
    }
    const size_t count = infer->input_count + 2 * infer->output_count;
    t.inputs = rondo__calloc(count + 1, sizeof *t.inputs);
    if (t.inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    t.outputs = t.inputs + infer->input_count;
    t.joined = t.outputs + infer->output_count;
    for (size_t i = 0; i < infer->input_count; ++i) {
        t.inputs[i] = infer->inputs[i];
    }
    rondo_error saved;
    rondo__error_save(&saved);
    bool has_asked = t.rankless != SIZE_MAX ? ask_ranks(&t) : ask_all(&t);
    if (t.fit_count == 0 && leave_out(&t)) {
        has_asked = ask_all(&t);
    }
    const bool is_sure = has_asked && t.has_full;
    rondo__error_restore(&saved);
    for (size_t i = 0; i < infer->output_count && t.fit_count > 0; ++i) {
        infer->outputs[i] =
            is_sure ? t.joined[i] : (rondo__tensor_info){.dtype = t.joined[i].dtype};
        infer->outputs[i].constant = NULL;
        for (int32_t d = 0; t.is_rank_only && d < infer->outputs[i].shape.rank; ++d) {
            infer->outputs[i].shape.extent[d] = -1;
            infer->outputs[i].is_shape_known = false;
        }
    }
    rondo__free(t.inputs);
    return RONDO_STATUS_OK;
}
