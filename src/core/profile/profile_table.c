// profile/profile_table.c — from records to rows.
//
// Rows are found by their parent row, thread and name; equal names have equal addresses. Spans come
// in the order of their begins, so that the row around each is known. Busy time is a union of
// intervals, and work comes by time: one pass with a mark for each row (covered until when) does.
//
//      work        |----a----|      |--c--|
//                     |--b--|
//      mark of row ...........>......  ....>      adds what lies behind the mark
//
// SPDX-License-Identifier: Apache-2.0
#include "profile/profile_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

#define NONE SIZE_MAX
#define MERGED UINT32_MAX

static const char g_outside_name[] = "(outside of events)";

typedef struct row_call {
    size_t row;
    uint64_t ns;
} row_call;

// While the table is made.
typedef struct builder {
    const rondo__profile_records *records;
    bool per_thread;
    rondo_profile_key key;
    rondo__profile_row *rows;  // in the order in which they were met
    size_t row_count;
    size_t row_capacity;
    uint64_t *covered;  // by row: until when its devices were known to be busy
    size_t covered_capacity;
    row_call *calls;  // of all rows
    size_t call_count;
    size_t call_capacity;
    size_t *slots;  // rows by hash, plus 1; a power of two of them
    size_t slot_count;
    size_t *row_of_span;
    bool *has_copy;        // by span: work tells of the copy
    bool *is_waited;       // by span: a run waited for what it copied before it went on
    uint64_t *waits;       // by span: waits of devices inside
    uint64_t *thread_ns;   // by thread: of its outermost spans
    bool *has_spans;       // by thread
    size_t *outside_rows;  // by thread, in a merged table the first only; NONE: not yet
} builder;

// ---- rows -------------------------------------------------------------------------------------

typedef struct row_key {
    size_t parent;
    uint32_t thread;
    uint32_t is_work;
    const char *name;
} row_key;

static size_t find_slot(const builder *b, const row_key *key) {
    size_t slot = (size_t)rondo__hash64(0, key, sizeof *key) & (b->slot_count - 1);
    for (; b->slots[slot] != 0; slot = (slot + 1) & (b->slot_count - 1)) {
        const rondo__profile_row *row = &b->rows[b->slots[slot] - 1];
        if (row->parent == key->parent && row->thread == key->thread &&
            row->is_work == (key->is_work != 0) && row->name == key->name) {
            break;
        }
    }
    return slot;
}

static rondo_status grow_slots(builder *b) {
    const size_t count = b->slot_count > 0 ? b->slot_count * 2 : 256;
    size_t *slots = rondo__calloc(count, sizeof *slots);
    if (slots == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__free(b->slots);
    b->slots = slots;
    b->slot_count = count;
    for (size_t i = 0; i < b->row_count; ++i) {
        const rondo__profile_row *row = &b->rows[i];
        const row_key key = {row->parent, row->thread, row->is_work ? 1 : 0, row->name};
        b->slots[find_slot(b, &key)] = i + 1;
    }
    return RONDO_STATUS_OK;
}

// The row, made where it is new: then it has no calls.
static rondo_status find_row(builder *b, const row_key *key, rondo__span_category category,
                             size_t *out_row) {
    if (b->row_count * 2 >= b->slot_count) {
        RETURN_IF_ERROR(grow_slots(b));
    }
    const size_t slot = find_slot(b, key);
    if (b->slots[slot] == 0) {
        rondo_status status = RONDO__ARRAY_RESERVE(b->rows, b->row_capacity, b->row_count + 1);
        RETURN_IF_ERROR(status);
        status = RONDO__ARRAY_RESERVE(b->covered, b->covered_capacity, b->row_count + 1);
        RETURN_IF_ERROR(status);
        b->rows[b->row_count] =
            (rondo__profile_row){.parent = key->parent,
                                 .depth = key->parent != NONE ? b->rows[key->parent].depth + 1 : 0,
                                 .thread = key->thread,
                                 .category = category,
                                 .is_work = key->is_work != 0,
                                 .name = key->name,
                                 .detail = "",
                                 .min_ns = UINT64_MAX};
        b->covered[b->row_count] = b->records->begin_ns;
        b->slots[slot] = ++b->row_count;
    }
    *out_row = b->slots[slot] - 1;
    return RONDO_STATUS_OK;
}

static rondo_status add_call(builder *b, size_t index, uint64_t ns, uint64_t bytes) {
    rondo__profile_row *row = &b->rows[index];
    rondo_status status = RONDO__ARRAY_RESERVE(b->calls, b->call_capacity, b->call_count + 1);
    RETURN_IF_ERROR(status);
    b->calls[b->call_count++] = (row_call){.row = index, .ns = ns};
    row->calls += 1;
    row->total_ns += ns;
    row->bytes += bytes;
    row->min_ns = ns < row->min_ns ? ns : row->min_ns;
    row->max_ns = ns > row->max_ns ? ns : row->max_ns;
    return RONDO_STATUS_OK;
}

static int compare_calls(const void *a, const void *b) {
    const row_call *left = a;
    const row_call *right = b;
    return left->row != right->row ? (left->row > right->row) - (left->row < right->row)
                                   : (left->ns > right->ns) - (left->ns < right->ns);
}

// Between two calls the value that lies as far between theirs.
static void find_quartiles(builder *b) {
    if (b->call_count > 0) {
        qsort(b->calls, b->call_count, sizeof *b->calls, compare_calls);
    }
    const row_call *first = b->calls;
    const row_call *end = first + b->call_count;
    while (first < end) {
        rondo__profile_row *row = &b->rows[first->row];
        for (size_t q = 0; q < 3; ++q) {
            const size_t quarters = (size_t)(row->calls - 1) * (q + 1);
            const row_call *below = first + quarters / 4;
            const uint64_t step = quarters % 4 > 0 ? below[1].ns - below->ns : 0;
            row->quartiles_ns[q] = below->ns + step / 4 * (quarters % 4);
        }
        first += row->calls;
    }
}

// ---- spans ------------------------------------------------------------------------------------

static bool is_wait(const rondo__profile_span *span) {
    return span->category == RONDO__SPAN_WAIT ||
           (span->category == RONDO__SPAN_COPY && !span->is_async && span->way != RONDO__WAY_H2H);
}

// Waits inside each span; of spans that are waits, all of it. Children stand behind their parents.
static void add_waits(builder *b) {
    const rondo__profile_span *spans = b->records->spans;
    for (size_t i = b->records->span_count; i-- > 0;) {
        const uint64_t ns = spans[i].end_ns - spans[i].begin_ns;
        if (is_wait(&spans[i])) {
            b->waits[i] = ns;
        }
        if (spans[i].parent != 0) {
            b->waits[spans[i].parent - 1] += b->waits[i];
        }
    }
}

static rondo_status add_span(builder *b, size_t i) {
    const rondo__profile_span *span = &b->records->spans[i];
    const row_key key = {.parent = span->parent != 0 ? b->row_of_span[span->parent - 1] : NONE,
                         .thread = b->per_thread ? span->thread : MERGED,
                         .name = span->name};
    RETURN_IF_ERROR(find_row(b, &key, span->category, &b->row_of_span[i]));
    rondo__profile_row *row = &b->rows[b->row_of_span[i]];
    const uint64_t ns = span->end_ns - span->begin_ns;
    if (row->calls == 0) {
        row->detail = span->detail;
    } else if (row->detail != span->detail) {
        row->detail = "";
    }
    RETURN_IF_ERROR(add_call(b, b->row_of_span[i], ns, span->bytes));
    row->cpu_ns += ns > b->waits[i] ? ns - b->waits[i] : 0;
    b->has_spans[span->thread] = true;
    b->thread_ns[span->thread] += span->parent == 0 ? ns : 0;
    return RONDO_STATUS_OK;
}

// A row for each thread's time outside of its spans; in a merged table one for all.
static rondo_status find_outside(builder *b, uint32_t thread, size_t *out_row) {
    const size_t index = b->per_thread ? thread : 0;
    if (b->outside_rows[index] == NONE) {
        const row_key key = {
            .parent = NONE, .thread = b->per_thread ? thread : MERGED, .name = g_outside_name};
        RETURN_IF_ERROR(find_row(b, &key, RONDO__SPAN_USER, &b->outside_rows[index]));
        b->rows[b->outside_rows[index]].is_outside = true;
    }
    *out_row = b->outside_rows[index];
    return RONDO_STATUS_OK;
}

static rondo_status add_outside(builder *b, rondo__profile_table *table) {
    for (size_t t = 0; t < b->records->thread_count; ++t) {
        if (t > 0 && !b->has_spans[t]) {
            continue;  // the first one started the profile
        }
        table->thread_count += 1;
        const uint64_t ns = table->total_ns - b->thread_ns[t];
        if (ns > 0) {
            size_t row = 0;
            RETURN_IF_ERROR(find_outside(b, (uint32_t)t, &row));
            RETURN_IF_ERROR(add_call(b, row, ns, 0));
            b->rows[row].cpu_ns += ns;
        }
    }
    table->rows_ns = table->total_ns * table->thread_count;
    return RONDO_STATUS_OK;
}

// ---- work -------------------------------------------------------------------------------------

// Adds an interval to a union that has grown up to *in_out_until; they come by their begins.
static uint64_t add_interval(uint64_t begin, uint64_t end, uint64_t *in_out_until) {
    const uint64_t from = begin > *in_out_until ? begin : *in_out_until;
    const uint64_t ns = end > from ? end - from : 0;
    *in_out_until = end > *in_out_until ? end : *in_out_until;
    return ns;
}

static rondo_status add_work(builder *b, const rondo__profile_work *work) {
    row_key key = {.is_work = 1, .name = work->label[0] != '\0' ? work->label : work->name};
    rondo__span_category category = RONDO__SPAN_USER;
    if (work->span != 0) {
        const rondo__profile_span *span = &b->records->spans[work->span - 1];
        key.parent = b->row_of_span[work->span - 1];
        category = span->category;
        b->has_copy[work->span - 1] = b->has_copy[work->span - 1] || work->kind == RONDO__WORK_COPY;
    } else {
        RETURN_IF_ERROR(find_outside(b, 0, &key.parent));
    }
    if (key.name[0] == '\0') {
        key.name = rondo__work_kind_get_name(work->kind);
    }
    key.thread = b->rows[key.parent].thread;
    size_t row = 0;
    RETURN_IF_ERROR(find_row(b, &key, category, &row));
    RETURN_IF_ERROR(add_call(b, row, work->end_ns - work->begin_ns, work->bytes));
    for (; row != NONE; row = b->rows[row].parent) {
        b->rows[row].gpu_ns += add_interval(work->begin_ns, work->end_ns, &b->covered[row]);
    }
    return RONDO_STATUS_OK;
}

// ---- waits in the middle of runs --------------------------------------------------------------
//
// If a run waits and then goes on, it has waited for the copies before. Feeds, fetches and the wait
// at a run's end are the caller's.
//
//      run   | copy x | op A: copy a | wait | op B | copy y | wait |
//                             waited for                 not

typedef struct run_state {
    uint64_t run;      // the latest run; 0: none
    uint64_t pending;  // the latest span that copies, linked to those before; 0: none
    uint64_t awaited;  // the same, once there was a wait
} run_state;

// Whether copies of the run itself can lie in the span: its own, if it is a copy, or a graph's.
static bool may_copy(const rondo__profile_span *span, uint64_t run) {
    if (span->category == RONDO__SPAN_REPLAY) {
        return true;
    }
    return span->category == RONDO__SPAN_COPY && span->way != RONDO__WAY_H2H &&
           span->way != RONDO__WAY_D2D && span->parent != run;
}

static void mark_all(builder *b, const uint64_t *links, uint64_t first) {
    for (uint64_t id = first; id != 0; id = links[id - 1]) {
        b->is_waited[id - 1] = true;
    }
}

static void visit_span(builder *b, uint64_t *links, run_state *state, size_t i) {
    const rondo__profile_span *span = &b->records->spans[i];
    if (span->category == RONDO__SPAN_RUN) {
        *state = (run_state){.run = span->id};
        return;
    }
    if (state->run == 0 || span->begin_ns >= b->records->spans[state->run - 1].end_ns) {
        return;
    }
    if (span->category == RONDO__SPAN_WAIT) {
        state->awaited = state->pending != 0 ? state->pending : state->awaited;
        state->pending = 0;
        return;
    }
    // It goes on, unless it fetches.
    if (state->awaited != 0 &&
        !(span->category == RONDO__SPAN_COPY && span->parent == state->run)) {
        mark_all(b, links, state->awaited);
        state->awaited = 0;
    }
    if (may_copy(span, state->run)) {
        links[i] = state->pending;
        state->pending = span->id;
    }
}

static rondo_status mark_waited(builder *b) {
    uint64_t *links = rondo__calloc(b->records->span_count + 1, sizeof *links);
    run_state *states = rondo__calloc(b->records->thread_count + 1, sizeof *states);
    const bool has_memory = links != NULL && states != NULL;
    for (size_t i = 0; has_memory && i < b->records->span_count; ++i) {
        visit_span(b, links, &states[b->records->spans[i].thread], i);
    }
    rondo__free(links);
    rondo__free(states);
    return has_memory ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

// ---- totals -----------------------------------------------------------------------------------

static void add_copy(rondo__profile_table *table, bool is_async, uint64_t ns, uint64_t bytes) {
    if (is_async) {
        table->async_calls += 1;
        table->async_ns += ns;
        table->async_bytes += bytes;
    } else {
        table->sync_calls += 1;
        table->sync_ns += ns;
        table->sync_bytes += bytes;
    }
}

// Whether the call, or the run before it went on, waited for what the span copied.
static bool is_async(const builder *b, size_t i) {
    const rondo__profile_span *span = &b->records->spans[i];
    return !b->is_waited[i] && (span->category != RONDO__SPAN_COPY || span->is_async);
}

// Copies that work tells of count by that; the others by their spans.
static void add_copies(const builder *b, rondo__profile_table *table) {
    for (size_t i = 0; i < b->records->work_count; ++i) {
        const rondo__profile_work *work = &b->records->works[i];
        if (work->kind == RONDO__WORK_COPY && work->way != RONDO__WAY_H2H) {
            add_copy(table, work->span == 0 || is_async(b, work->span - 1),
                     work->end_ns - work->begin_ns, work->bytes);
        }
    }
    for (size_t i = 0; i < b->records->span_count; ++i) {
        const rondo__profile_span *span = &b->records->spans[i];
        if (span->category == RONDO__SPAN_COPY && span->way != RONDO__WAY_H2H && !b->has_copy[i]) {
            add_copy(table, is_async(b, i), span->end_ns - span->begin_ns, span->bytes);
        }
    }
}

static bool computes(rondo__work_kind kind) {
    return kind == RONDO__WORK_KERNEL || kind == RONDO__WORK_HOST || kind == RONDO__WORK_FILL ||
           kind == RONDO__WORK_GRAPH;
}

static uint64_t clip(const rondo__profile_records *records, uint64_t time_ns) {
    return time_ns < records->begin_ns ? records->begin_ns
           : time_ns > records->end_ns ? records->end_ns
                                       : time_ns;
}

// Both lists are in the order of time, so that the next interval is the earlier of two.
static void add_times(const builder *b, rondo__profile_table *table) {
    const rondo__profile_records *records = b->records;
    uint64_t computed_until = records->begin_ns;
    uint64_t busy_until = records->begin_ns;
    size_t w = 0;
    size_t s = 0;
    table->total_ns = records->end_ns - records->begin_ns;
    while (w < records->work_count || s < records->span_count) {
        if (s < records->span_count &&
            (w == records->work_count || records->spans[s].begin_ns < records->works[w].begin_ns)) {
            const rondo__profile_span *span = &records->spans[s++];
            if (span->category == RONDO__SPAN_COMPUTE) {
                table->computation_ns +=
                    add_interval(span->begin_ns, span->end_ns, &computed_until);
            }
            continue;
        }
        const rondo__profile_work *work = &records->works[w++];
        const uint64_t begin = clip(records, work->begin_ns);
        const uint64_t end = clip(records, work->end_ns);
        table->device_ns += add_interval(begin, end, &busy_until);
        if (computes(work->kind)) {
            table->computation_ns += add_interval(begin, end, &computed_until);
        }
    }
    table->framework_ns = table->total_ns - table->computation_ns;
}

// ---- order ------------------------------------------------------------------------------------

// Siblings are sorted together: by parent first, then by the key, then as they were met.
typedef struct sorted_row {
    size_t row;
    size_t parent;
    uint32_t thread;
    uint64_t weight;
    uint64_t total_ns;  // where weights are equal
} sorted_row;

static uint64_t weigh(const rondo__profile_row *row, rondo_profile_key key) {
    switch (key) {
        case RONDO_PROFILE_BY_CALLS:
            return row->calls;
        case RONDO_PROFILE_BY_MIN:
            return row->min_ns;
        case RONDO_PROFILE_BY_MAX:
            return row->max_ns;
        case RONDO_PROFILE_BY_AVERAGE:
            return row->total_ns / row->calls;
        case RONDO_PROFILE_BY_GPU:
            return row->gpu_ns;
        default:
            return row->total_ns;
    }
}

static int compare_rows(const void *a, const void *b) {
    const sorted_row *left = a;
    const sorted_row *right = b;
    if (left->parent != right->parent) {
        return left->parent < right->parent ? -1 : 1;
    }
    if (left->thread != right->thread) {
        return left->thread < right->thread ? -1 : 1;
    }
    if (left->weight != right->weight) {
        return left->weight > right->weight ? -1 : 1;
    }
    if (left->total_ns != right->total_ns) {
        return left->total_ns > right->total_ns ? -1 : 1;
    }
    return left->row < right->row ? -1 : left->row > right->row;
}

// The first of those with this parent, which stand together.
static size_t find_children(const sorted_row *sorted, size_t count, size_t parent) {
    size_t low = 0;
    for (size_t high = count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        if (sorted[middle].parent < parent) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Puts each row before those under it. `next` is where to go on, by depth.
static void lay_out(const builder *b, const sorted_row *sorted, size_t *next,
                    rondo__profile_row *out) {
    size_t placed = 0;
    size_t depth = 0;
    size_t *row_at = next + b->row_count + 1;  // the row of each depth, as it was met
    size_t *new_at = row_at + b->row_count + 1;
    next[0] = find_children(sorted, b->row_count, NONE);
    for (;;) {
        const size_t parent = depth > 0 ? row_at[depth - 1] : NONE;
        const size_t at = next[depth];
        if (at < b->row_count && sorted[at].parent == parent) {
            const size_t row = sorted[at].row;
            ++next[depth];
            out[placed] = b->rows[row];
            out[placed].parent = depth > 0 ? new_at[depth - 1] : NONE;
            row_at[depth] = row;
            new_at[depth] = placed++;
            next[++depth] = find_children(sorted, b->row_count, row);
        } else if (depth-- == 0) {
            return;
        }
    }
}

static rondo_status sort_rows(builder *b, rondo__profile_table *table) {
    size_t *scratch = rondo__calloc(3 * (b->row_count + 1), sizeof *scratch);
    sorted_row *sorted = rondo__calloc(b->row_count + 1, sizeof *sorted);
    table->rows = rondo__calloc(b->row_count + 1, sizeof *table->rows);
    rondo_status status = scratch != NULL && sorted != NULL && table->rows != NULL
                              ? RONDO_STATUS_OK
                              : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK) {
        find_quartiles(b);
        for (size_t i = 0; i < b->row_count; ++i) {
            rondo__profile_row *row = &b->rows[i];
            if (row->calls == 0) {
                row->min_ns = 0;  // it only holds work of no span
                row->calls = 1;
            }
            sorted[i] =
                (sorted_row){i, row->parent, row->thread, weigh(row, b->key), row->total_ns};
        }
        qsort(sorted, b->row_count, sizeof *sorted, compare_rows);
        lay_out(b, sorted, scratch, table->rows);
        table->row_count = b->row_count;
    }
    rondo__free(scratch);
    rondo__free(sorted);
    return status;
}

// ---- all of it --------------------------------------------------------------------------------

static void builder_deinit(builder *b) {
    rondo__free(b->rows);
    rondo__free(b->covered);
    rondo__free(b->calls);
    rondo__free(b->slots);
    rondo__free(b->row_of_span);
    rondo__free(b->has_copy);
    rondo__free(b->is_waited);
    rondo__free(b->waits);
    rondo__free(b->thread_ns);
    rondo__free(b->has_spans);
    rondo__free(b->outside_rows);
}

static rondo_status builder_init(builder *b) {
    const size_t span_count = b->records->span_count;
    const size_t thread_count = b->records->thread_count;
    b->row_of_span = rondo__calloc(span_count, sizeof *b->row_of_span);
    b->has_copy = rondo__calloc(span_count, sizeof *b->has_copy);
    b->is_waited = rondo__calloc(span_count, sizeof *b->is_waited);
    b->waits = rondo__calloc(span_count, sizeof *b->waits);
    b->thread_ns = rondo__calloc(thread_count, sizeof *b->thread_ns);
    b->has_spans = rondo__calloc(thread_count, sizeof *b->has_spans);
    b->outside_rows = rondo__calloc(thread_count, sizeof *b->outside_rows);
    if (b->row_of_span == NULL || b->has_copy == NULL || b->is_waited == NULL || b->waits == NULL ||
        b->thread_ns == NULL || b->has_spans == NULL || b->outside_rows == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memset(b->outside_rows, 0xff, thread_count * sizeof *b->outside_rows);
    return RONDO_STATUS_OK;
}

static rondo_status build(builder *b, rondo__profile_table *table) {
    RETURN_IF_ERROR(builder_init(b));
    add_times(b, table);
    add_waits(b);
    for (size_t i = 0; i < b->records->span_count; ++i) {
        RETURN_IF_ERROR(add_span(b, i));
    }
    RETURN_IF_ERROR(add_outside(b, table));
    for (size_t i = 0; i < b->records->work_count; ++i) {
        RETURN_IF_ERROR(add_work(b, &b->records->works[i]));
    }
    RETURN_IF_ERROR(mark_waited(b));
    add_copies(b, table);
    return sort_rows(b, table);
}

rondo_status rondo__profile_table_init(const rondo__profile_records *records, rondo_profile_key key,
                                       bool per_thread, rondo__profile_table *out_table) {
    builder b = {.records = records, .per_thread = per_thread, .key = key};
    rondo__profile_table table = {0};
    const rondo_status status = build(&b, &table);
    builder_deinit(&b);
    if (status != RONDO_STATUS_OK) {
        rondo__profile_table_deinit(&table);
    }
    *out_table = table;
    return status;
}

void rondo__profile_table_deinit(rondo__profile_table *table) {
    rondo__free(table->rows);
    *table = (rondo__profile_table){0};
}

// ---- names ------------------------------------------------------------------------------------

const char *rondo__span_category_get_name(rondo__span_category category) {
    static const char *const names[RONDO__SPAN_COUNT] = {
        [RONDO__SPAN_USER] = "user",
        [RONDO__SPAN_RUN] = "run",
        [RONDO__SPAN_PLAN] = "plan",
        [RONDO__SPAN_TUNE] = "tune",
        [RONDO__SPAN_CAPTURE] = "capture",
        [RONDO__SPAN_INSTANTIATE] = "instantiate",
        [RONDO__SPAN_PATCH] = "patch",
        [RONDO__SPAN_REPLAY] = "replay",
        [RONDO__SPAN_OP] = "op",
        [RONDO__SPAN_COMPUTE] = "compute",
        [RONDO__SPAN_COPY] = "copy",
        [RONDO__SPAN_WAIT] = "wait",
        [RONDO__SPAN_ALLOCATE] = "allocate",
    };
    return category < RONDO__SPAN_COUNT ? names[category] : "";
}

const char *rondo__work_kind_get_name(rondo__work_kind kind) {
    static const char *const names[RONDO__WORK_COUNT] = {
        [RONDO__WORK_KERNEL] = "kernel", [RONDO__WORK_COPY] = "memcpy",
        [RONDO__WORK_FILL] = "memset",   [RONDO__WORK_HOST] = "host function",
        [RONDO__WORK_OTHER] = "other",   [RONDO__WORK_GRAPH] = "graph",
    };
    return kind < RONDO__WORK_COUNT ? names[kind] : "";
}

const char *rondo__way_get_name(rondo__way way) {
    static const char *const names[] = {
        [RONDO__WAY_NONE] = "",
        [RONDO__WAY_H2D] = "host to device",
        [RONDO__WAY_D2H] = "device to host",
        [RONDO__WAY_D2D] = "device to device",
        [RONDO__WAY_H2H] = "host to host",
    };
    return way <= RONDO__WAY_H2H ? names[way] : "";
}
