// profile/merge.c — the logs of all threads made into one list of each.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "profile/profile_table.h"
#include "profile/thread_log.h"

void rondo__profile_log_clear(rondo__profile_log *log) {
    rondo__profile_texts_deinit(&log->texts, false);
    rondo__profile_chunks_free(log->spans.first);
    rondo__profile_chunks_free(log->works.first);
    rondo__profile_chunks_free(log->samples.first);
    rondo__profile_chunks_free(log->ends.first);
    log->spans = log->works = log->samples = log->ends = (rondo__profile_list){0};
    log->open_count = 0;
}

void rondo__profile_store_deinit(rondo__profile_store *store) {
    rondo__free(store->spans);
    rondo__free(store->works);
    rondo__free(store->samples);
    rondo__free(store->threads);
    rondo__profile_chunks_free(store->texts);
    *store = (rondo__profile_store){0};
}

// Where a span of the hooks' numbers went.
typedef struct place {
    uint64_t hook_id;
    uint64_t id;  // the profile's; 0: not kept
} place;

typedef struct merge {
    rondo__profile_store store;
    rondo__profile_texts texts;
    const char **by_number;  // of the log at hand
    size_t by_number_capacity;
    place *places;  // by hook_id, once sorted
    size_t span_count;
    size_t work_count;
    size_t sample_count;
    uint64_t begin_ns;
    uint64_t end_ns;
} merge;

// Calls for each record of a list, which are `bytes` long.
#define FOR_EACH(list, type, record)                                                               \
    for (const rondo__profile_chunk *chunk_ = (list).first; chunk_ != NULL; chunk_ = chunk_->next) \
        for (const type *record = (const type *)(const void *)chunk_->bytes,                       \
                        *end_ = record + chunk_->used / sizeof(type);                              \
             record != end_; ++record)

_Static_assert(sizeof(rondo__raw_span) % 8 == 0 && sizeof(rondo__raw_work) % 8 == 0 &&
                   sizeof(rondo__raw_sample) % 8 == 0 && sizeof(rondo__raw_end) % 8 == 0,
               "records lie one behind the other");

// ---- copying ----------------------------------------------------------------------------------

// Texts of the log by number, as they stand in the store.
static rondo_status translate_texts(merge *m, const rondo__profile_log *log) {
    rondo_status status =
        RONDO__ARRAY_RESERVE(m->by_number, m->by_number_capacity, (size_t)log->texts.count + 1);
    RETURN_IF_ERROR(status);
    m->by_number[0] = "";
    for (uint32_t i = 1; i <= log->texts.count; ++i) {
        uint32_t number = 0;
        if (!rondo__profile_texts_find(&m->texts, rondo__profile_texts_get(&log->texts, i),
                                       &number)) {
            return RONDO_FAIL_AS("rondo_profile_stop", NO_MEMORY,
                                 "no memory for the texts of a profile");
        }
        m->by_number[i] = rondo__profile_texts_get(&m->texts, number);
    }
    return RONDO_STATUS_OK;
}

// Spans that began after the end of the region are not part of it.
static void copy_spans(merge *m, const rondo__profile_log *log, uint32_t thread) {
    FOR_EACH(log->spans, rondo__raw_span, raw) {
        if (raw->begin_ns >= m->end_ns) {
            continue;
        }
        const bool is_open = raw->end_ns == 0 || raw->end_ns > m->end_ns;
        m->store.spans[m->span_count++] =
            (rondo__profile_span){.id = raw->id,
                                  .thread = thread,
                                  .category = (rondo__span_category)raw->category,
                                  .name = m->by_number[raw->name],
                                  .detail = m->by_number[raw->detail],
                                  .begin_ns = raw->begin_ns,
                                  .end_ns = is_open ? m->end_ns : raw->end_ns,
                                  .bytes = raw->bytes,
                                  .way = (rondo__way)raw->way,
                                  .is_async = raw->is_async};
    }
}

static void copy_others(merge *m, const rondo__profile_log *log) {
    FOR_EACH(log->works, rondo__raw_work, raw) {
        // Copies and fills have no name of their own; everybody calls them by what they are.
        const bool has_name = m->by_number[raw->name][0] != '\0';
        m->store.works[m->work_count++] = (rondo__profile_work){
            .span = raw->span,
            .kind = (rondo__work_kind)raw->kind,
            .way = (rondo__way)raw->way,
            .name = has_name ? m->by_number[raw->name]
                             : rondo__work_kind_get_name((rondo__work_kind)raw->kind),
            .label = m->by_number[raw->label],
            .device = raw->device,
            .stream = raw->stream,
            .bytes = raw->bytes,
            .begin_ns = raw->begin_ns,
            .end_ns = raw->end_ns};
    }
    FOR_EACH(log->samples, rondo__raw_sample, raw) {
        m->store.samples[m->sample_count++] = (rondo__profile_sample){
            .name = m->by_number[raw->name], .time_ns = raw->time_ns, .value = raw->value};
    }
}

// ---- order ------------------------------------------------------------------------------------

static int compare_numbers(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

static int compare_spans(const void *a, const void *b) {
    const rondo__profile_span *left = a;
    const rondo__profile_span *right = b;
    const int by_time = compare_numbers(left->begin_ns, right->begin_ns);
    return by_time != 0 ? by_time : compare_numbers(left->id, right->id);
}

static int compare_works(const void *a, const void *b) {
    const rondo__profile_work *left = a;
    const rondo__profile_work *right = b;
    const int by_time = compare_numbers(left->begin_ns, right->begin_ns);
    return by_time != 0 ? by_time : compare_numbers(left->end_ns, right->end_ns);
}

static int compare_samples(const void *a, const void *b) {
    return compare_numbers(((const rondo__profile_sample *)a)->time_ns,
                           ((const rondo__profile_sample *)b)->time_ns);
}

static int compare_places(const void *a, const void *b) {
    return compare_numbers(((const place *)a)->hook_id, ((const place *)b)->hook_id);
}

static const place *find_place(const merge *m, uint64_t hook_id) {
    const place wanted = {.hook_id = hook_id};
    return m->span_count > 0
               ? bsearch(&wanted, m->places, m->span_count, sizeof *m->places, compare_places)
               : NULL;
}

// Spans get numbers in the order of their begins.
static void number_spans(merge *m) {
    rondo__profile_span *spans = m->store.spans;
    if (m->span_count == 0) {
        return;
    }
    qsort(spans, m->span_count, sizeof *spans, compare_spans);
    for (size_t i = 0; i < m->span_count; ++i) {
        m->places[i] = (place){.hook_id = spans[i].id, .id = i + 1};
        spans[i].id = i + 1;
    }
    qsort(m->places, m->span_count, sizeof *m->places, compare_places);
}

// Ends that other threads saw.
static void apply_ends(merge *m, const rondo__profile_log *log) {
    FOR_EACH(log->ends, rondo__raw_end, end) {
        const place *found = find_place(m, end->id);
        rondo__profile_span *span = found != NULL ? &m->store.spans[found->id - 1] : NULL;
        if (span != NULL && end->time_ns >= span->begin_ns && end->time_ns < span->end_ns) {
            span->end_ns = end->time_ns;
        }
    }
}

// Nesting is read from the times; a span that ends later than the span around it is cut there.
static rondo_status nest_spans(merge *m, size_t thread_count) {
    rondo__profile_span *spans = m->store.spans;
    uint64_t *innermost = rondo__calloc(thread_count + 1, sizeof *innermost);
    if (innermost == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < m->span_count; ++i) {
        uint64_t *parent = &innermost[spans[i].thread];
        while (*parent != 0 && spans[*parent - 1].end_ns <= spans[i].begin_ns) {
            *parent = spans[*parent - 1].parent;
        }
        spans[i].parent = *parent;
        if (*parent != 0 && spans[i].end_ns > spans[*parent - 1].end_ns) {
            spans[i].end_ns = spans[*parent - 1].end_ns;
        }
        *parent = spans[i].id;
    }
    rondo__free(innermost);
    return RONDO_STATUS_OK;
}

static void sort_others(merge *m) {
    if (m->work_count > 0) {
        qsort(m->store.works, m->work_count, sizeof *m->store.works, compare_works);
    }
    if (m->sample_count > 0) {
        qsort(m->store.samples, m->sample_count, sizeof *m->store.samples, compare_samples);
    }
    for (size_t i = 0; i < m->work_count; ++i) {
        const place *found =
            m->store.works[i].span != 0 ? find_place(m, m->store.works[i].span) : NULL;
        m->store.works[i].span = found != NULL ? found->id : 0;
    }
}

// ---- copies without a span --------------------------------------------------------------------
//
// A source may know a copy, but not which call put it there (CUPTI, where it tells nothing of that
// call). The span of that call is known, too, and both would count. So each such copy goes to the
// first span of a copy of the same bytes the same way that has none yet and began before.

typedef struct copy_end {
    rondo__way way;
    uint64_t bytes;
    uint64_t begin_ns;
    size_t index;  // of the span or work
} copy_end;

static int compare_copies(const void *a, const void *b) {
    const copy_end *left = a;
    const copy_end *right = b;
    const int by_way = compare_numbers(left->way, right->way);
    const int by_bytes = compare_numbers(left->bytes, right->bytes);
    return by_way != 0     ? by_way
           : by_bytes != 0 ? by_bytes
                           : compare_numbers(left->begin_ns, right->begin_ns);
}

static bool is_same_copy(const copy_end *a, const copy_end *b) {
    return a->way == b->way && a->bytes == b->bytes;
}

static size_t list_lost_works(const merge *m, copy_end *list) {
    size_t count = 0;
    for (size_t i = 0; i < m->work_count; ++i) {
        const rondo__profile_work *work = &m->store.works[i];
        if (work->kind == RONDO__WORK_COPY && work->span == 0) {
            list[count++] = (copy_end){work->way, work->bytes, work->end_ns, i};
        }
    }
    return count;
}

static size_t list_empty_spans(const merge *m, bool *has_work, copy_end *list) {
    size_t count = 0;
    for (size_t i = 0; i < m->work_count; ++i) {
        if (m->store.works[i].span != 0) {
            has_work[m->store.works[i].span - 1] = true;
        }
    }
    for (size_t i = 0; i < m->span_count; ++i) {
        const rondo__profile_span *span = &m->store.spans[i];
        if (span->category == RONDO__SPAN_COPY && span->way != RONDO__WAY_H2H && !has_work[i]) {
            list[count++] = (copy_end){span->way, span->bytes, span->begin_ns, i};
        }
    }
    return count;
}

// Both lists are sorted: by kind of copy, then by time.
static void join_copies(merge *m, const copy_end *works, size_t work_count, const copy_end *spans,
                        size_t span_count) {
    size_t s = 0;
    for (size_t w = 0; w < work_count; ++w) {
        copy_end first = works[w];
        first.begin_ns = 0;
        while (s < span_count && compare_copies(&spans[s], &first) < 0) {
            ++s;
        }
        if (s < span_count && is_same_copy(&spans[s], &works[w]) &&
            spans[s].begin_ns <= works[w].begin_ns) {
            m->store.works[works[w].index].span = m->store.spans[spans[s].index].id;
            ++s;
        }
    }
}

static rondo_status adopt_copies(merge *m) {
    copy_end *works = rondo__calloc(m->work_count + 1, sizeof *works);
    copy_end *spans = rondo__calloc(m->span_count + 1, sizeof *spans);
    bool *has_work = rondo__calloc(m->span_count + 1, sizeof *has_work);
    const bool has_memory = works != NULL && spans != NULL && has_work != NULL;
    const size_t work_count = has_memory ? list_lost_works(m, works) : 0;
    if (work_count > 0) {
        const size_t span_count = list_empty_spans(m, has_work, spans);
        qsort(works, work_count, sizeof *works, compare_copies);
        qsort(spans, span_count, sizeof *spans, compare_copies);
        join_copies(m, works, work_count, spans, span_count);
    }
    rondo__free(works);
    rondo__free(spans);
    rondo__free(has_work);
    return has_memory ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

// ---- all of it --------------------------------------------------------------------------------

static rondo_status take_memory(merge *m, const rondo__profile_log *logs, size_t log_count) {
    size_t span_count = 0;
    size_t work_count = 0;
    size_t sample_count = 0;
    for (size_t i = 0; i < log_count; ++i) {
        span_count += logs[i].spans.count;
        work_count += logs[i].works.count;
        sample_count += logs[i].samples.count;
    }
    m->store.spans = rondo__calloc(span_count, sizeof *m->store.spans);
    m->store.works = rondo__calloc(work_count, sizeof *m->store.works);
    m->store.samples = rondo__calloc(sample_count, sizeof *m->store.samples);
    m->store.threads = rondo__calloc(log_count, sizeof *m->store.threads);
    m->places = rondo__calloc(span_count, sizeof *m->places);
    return m->store.spans != NULL && m->store.works != NULL && m->store.samples != NULL &&
                   m->store.threads != NULL && m->places != NULL
               ? RONDO_STATUS_OK
               : RONDO_STATUS_NO_MEMORY;
}

static rondo_status copy_logs(merge *m, const rondo__profile_log *logs, size_t log_count) {
    for (size_t i = 0; i < log_count; ++i) {
        RETURN_IF_ERROR(translate_texts(m, &logs[i]));
        m->store.threads[i] = logs[i].thread;
        copy_spans(m, &logs[i], (uint32_t)i);
        copy_others(m, &logs[i]);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__profile_logs_merge(const rondo__profile_log *logs, size_t log_count,
                                       uint64_t begin_ns, uint64_t end_ns,
                                       rondo__profile_store *out_store) {
    merge m = {.begin_ns = begin_ns, .end_ns = end_ns};
    rondo_status status = take_memory(&m, logs, log_count);
    if (status == RONDO_STATUS_OK) {
        status = copy_logs(&m, logs, log_count);
    }
    if (status == RONDO_STATUS_OK) {
        number_spans(&m);
        for (size_t i = 0; i < log_count; ++i) {
            apply_ends(&m, &logs[i]);
        }
        status = nest_spans(&m, log_count);
    }
    if (status == RONDO_STATUS_OK) {
        sort_others(&m);
        status = adopt_copies(&m);
    }
    if (status == RONDO_STATUS_OK) {
        m.store.texts = m.texts.bytes.first;
        m.store.records = (rondo__profile_records){.begin_ns = begin_ns,
                                                   .end_ns = end_ns,
                                                   .span_count = m.span_count,
                                                   .spans = m.store.spans,
                                                   .work_count = m.work_count,
                                                   .works = m.store.works,
                                                   .sample_count = m.sample_count,
                                                   .samples = m.store.samples,
                                                   .thread_count = log_count,
                                                   .threads = m.store.threads,
                                                   .source = ""};
        *out_store = m.store;
    } else {
        rondo__profile_store_deinit(&m.store);
    }
    rondo__profile_texts_deinit(&m.texts, status == RONDO_STATUS_OK);
    rondo__free((void *)m.by_number);
    rondo__free(m.places);
    return status;
}
