// doctor/analysis/doctor_log.c — see doctor_log.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/analysis/doctor_log.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 1 << 20, FIRST_ROOM = 1024, LINE_WAY = 256 };

static bool grow(void **memory, size_t *room, size_t needed, size_t element_bytes) {
    size_t wanted = *room > 0 ? *room : FIRST_ROOM;
    while (wanted < needed) {
        wanted *= 2;
    }
    if (wanted == *room) {
        return true;
    }
    void *larger = realloc(*memory, wanted * element_bytes);
    if (larger == NULL) {
        return false;
    }
    *memory = larger;
    *room = wanted;
    return true;
}

static bool is_timed(const rondo__doctor_log *log, size_t event) {
    return (log->events[event].flags & RONDO__DOCTOR_TIMED) != 0;
}

// The calls during which device times were taken, from the first to the last, and some ahead of
// them, as far as they are among the first `count`, and no more than half of those.
static size_t find_timed(const rondo__doctor_log *log, size_t count, size_t *out_first) {
    size_t first = 0;
    while (first < log->event_count && !is_timed(log, first)) {
        ++first;
    }
    const size_t begin = first - (first < count / 4 ? first : count / 4);
    size_t last = count;
    while (last > first && !is_timed(log, last - 1)) {
        --last;
    }
    *out_first = begin;
    if (first == log->event_count || begin >= count) {
        return 0;
    }
    return last - begin < count / 2 ? last - begin : count / 2;
}

// Moves a part of the log to `place`, its words behind those of the call ahead.
static void move_part(rondo__doctor_log *log, size_t place, size_t from, size_t count) {
    const size_t end_word =
        from + count < log->event_count ? log->first_words[from + count] : log->word_count;
    const size_t from_word = count > 0 ? log->first_words[from] : end_word;
    const size_t place_word =
        place > 0 ? log->first_words[place - 1] + log->events[place - 1].word_count : 0;
    memmove(log->events + place, log->events + from, count * sizeof(*log->events));
    memmove(log->words + place_word, log->words + from_word,
            (end_word - from_word) * sizeof(*log->words));
    for (size_t i = 0; i < count; i++) {
        log->first_words[place + i] = log->first_words[from + i] - from_word + place_word;
    }
}

// Gives up the older half, but for calls whose device times are known, which come once, and those
// ahead of them: CUPTI leaves a program slower.
static void forget_half(rondo__doctor_log *log) {
    const size_t dropped = log->event_count / 2;
    const size_t rest = log->event_count - dropped;
    size_t first = 0;
    const size_t timed = find_timed(log, dropped, &first);
    const size_t rest_words = log->word_count - log->first_words[dropped];
    const bool is_gap = first + timed < dropped;
    move_part(log, 0, first, timed);
    move_part(log, timed, dropped, rest);
    log->events[timed].flags |= is_gap ? RONDO__DOCTOR_AFTER_LOSS : 0;
    log->event_count = timed + rest;
    log->word_count = log->first_words[timed] + rest_words;
}

static bool add_text(rondo__doctor_log *log, const rondo__doctor_event *event, const char *tail) {
    if (event->name != log->text_count + 1 || log->text_count == RONDO__DOCTOR_TEXTS_MAX) {
        return event->name != 0 && log->text_count == RONDO__DOCTOR_TEXTS_MAX;
    }
    if (log->texts == NULL) {
        log->texts = calloc(RONDO__DOCTOR_TEXTS_MAX, sizeof(*log->texts));
        log->layouts = calloc(RONDO__DOCTOR_TEXTS_MAX, sizeof(*log->layouts));
    }
    char *text =
        log->texts != NULL && log->layouts != NULL ? malloc((size_t)event->word_count + 1) : NULL;
    if (text == NULL) {
        return false;
    }
    memcpy(text, tail, event->word_count);
    text[event->word_count] = '\0';
    log->texts[log->text_count++] = text;
    return true;
}

static bool add_work(rondo__doctor_log *log, const rondo__doctor_event *event) {
    if (log->work_count == RONDO__DOCTOR_WORK_MAX) {
        return true;
    }
    void *works = log->works;
    if (!grow(&works, &log->work_room, log->work_count + 1, sizeof(*log->works))) {
        return false;
    }
    log->works = works;
    log->works[log->work_count++] = (rondo__doctor_work){
        .begin_ns = event->begin_ns,
        .duration_ns = event->duration_ns,
        .bytes = event->bytes,
        .stream = (uint32_t)event->stream,
        .name = event->name,
        .order = (uint32_t)event->source,
        .is_of_graph = event->object != 0,
    };
    return true;
}

static bool add_range(rondo__doctor_log *log, const rondo__doctor_event *event) {
    if (log->ranges == NULL) {
        log->ranges = malloc(RONDO__DOCTOR_RANGES_MAX * sizeof(*log->ranges));
    }
    if (log->ranges == NULL) {
        return false;
    }
    if (log->range_count == RONDO__DOCTOR_RANGES_MAX) {
        log->range_count /= 2;
        memmove(log->ranges, log->ranges + log->range_count,
                log->range_count * sizeof(*log->ranges));
    }
    log->ranges[log->range_count++] = (rondo__doctor_range){.begin_ns = event->begin_ns,
                                                            .end_ns = UINT64_MAX,
                                                            .number = event->object,
                                                            .name = event->name,
                                                            .thread = event->thread};
    return true;
}

static void end_range(rondo__doctor_log *log, const rondo__doctor_event *event) {
    for (size_t i = log->range_count; i > 0; i--) {
        rondo__doctor_range *range = &log->ranges[i - 1];
        const bool is_it = event->object != 0
                               ? range->number == event->object
                               : range->number == 0 && range->thread == event->thread;
        if (is_it && range->end_ns == UINT64_MAX) {
            range->end_ns = event->begin_ns;
            return;
        }
    }
}

static bool gives_memory(const rondo__doctor_event *event) {
    switch (rondo__doctor_call_kind(event->call)) {
        case RONDO__DOCTOR_KIND_ALLOCATE:
        case RONDO__DOCTOR_KIND_HOST_MEMORY:
        case RONDO__DOCTOR_KIND_STREAM_MEMORY:
        case RONDO__DOCTOR_KIND_MAP_MEMORY:
            return true;
        default:
            return false;
    }
}

// Of the latest allocations it is known where they lie.
static bool add_block(rondo__doctor_log *log, const rondo__doctor_event *event) {
    if (event->object == 0 || event->bytes == 0 || event->status != 0) {
        return true;
    }
    if (log->blocks == NULL) {
        log->blocks = malloc(RONDO__DOCTOR_BLOCKS_MAX * sizeof(*log->blocks));
    }
    if (log->blocks == NULL) {
        return false;
    }
    log->blocks[log->block_count++ % RONDO__DOCTOR_BLOCKS_MAX] =
        (rondo__doctor_block){event->object, event->object + event->bytes};
    return true;
}

bool rondo__doctor_log_is_given(const rondo__doctor_log *log, uint64_t address) {
    for (size_t i = 0; i < log->block_count && i < RONDO__DOCTOR_BLOCKS_MAX; i++) {
        if (address >= log->blocks[i].begin && address < log->blocks[i].end) {
            return true;
        }
    }
    return false;
}

static void add_device(rondo__doctor_log *log, const rondo__doctor_event *event) {
    log->multiprocessors = event->grid[0];
    log->multiprocessor_threads = event->grid[1];
    log->multiprocessor_blocks = event->grid[2];
    log->multiprocessor_shared_bytes = event->bytes;
    log->device_uuid[0] = event->stream;
    log->device_uuid[1] = event->object;
}

// The call that it belongs to has just returned.
static void add_line(rondo__doctor_log *log, const rondo__doctor_event *event) {
    for (size_t i = log->event_count; i > 0 && log->event_count - i < LINE_WAY; i--) {
        rondo__doctor_event *call = &log->events[i - 1];
        if (call->call == event->object && call->thread == event->thread && call->place != 0) {
            call->line = event->name;
            return;
        }
    }
}

static bool make_room(rondo__doctor_log *log, size_t words) {
    if (log->event_count == RONDO__DOCTOR_EVENTS_MAX || log->word_count + words > WORDS_MAX) {
        forget_half(log);
    }
    void *memory = log->events;
    size_t room = log->event_room;
    bool is_done = grow(&memory, &room, log->event_count + 1, sizeof(*log->events));
    log->events = memory;
    memory = log->first_words;
    is_done = is_done && grow(&memory, &log->event_room, log->event_count + 1, sizeof(size_t));
    log->first_words = memory;
    memory = log->words;
    is_done =
        is_done && grow(&memory, &log->word_room, log->word_count + words + 1, sizeof(*log->words));
    log->words = memory;
    return is_done;
}

static bool add_call(rondo__doctor_log *log, const rondo__doctor_event *event, const void *tail) {
    const size_t words = event->word_count;
    if (!make_room(log, words) || (gives_memory(event) && !add_block(log, event))) {
        return false;
    }
    log->events[log->event_count] = *event;
    log->first_words[log->event_count++] = log->word_count;
    if (words > 0) {
        memcpy(log->words + log->word_count, tail, words * sizeof(*log->words));
    }
    log->word_count += words;
    log->seen_count += 1;
    log->launch_count += rondo__doctor_call_kind(event->call) == RONDO__DOCTOR_KIND_LAUNCH;
    log->lost_count += (event->flags & RONDO__DOCTOR_AFTER_LOSS) != 0;
    log->first_ns = log->seen_count == 1 ? event->begin_ns : log->first_ns;
    log->last_ns = event->begin_ns + event->duration_ns;
    return true;
}

bool rondo__doctor_log_add(rondo__doctor_log *log, const rondo__doctor_event *event,
                           const void *tail) {
    switch (event->call) {
        case RONDO__DOCTOR_TEXT:
            return event->word_count <= RONDO__DOCTOR_TEXT_MAX && add_text(log, event, tail);
        case RONDO__DOCTOR_WORK:
            return event->word_count == 0 && add_work(log, event);
        case RONDO__DOCTOR_LINE:
            add_line(log, event);
            return event->word_count == 0;
        case RONDO__DOCTOR_NOTE:
            log->note = rondo__doctor_log_text(log, event->name);
            return event->word_count == 0;
        case RONDO__DOCTOR_RANGE_PUSH:
            return event->word_count == 0 && add_range(log, event);
        case RONDO__DOCTOR_RANGE_POP:
            end_range(log, event);
            return event->word_count == 0;
        case RONDO__DOCTOR_LAYOUT:
            if (event->name > 0 && event->name <= log->text_count) {
                log->layouts[event->name - 1] |= event->object;
            }
            return event->word_count == 0;
        case RONDO__DOCTOR_BLOCK:
            return event->word_count == 0 && add_block(log, event);
        case RONDO__DOCTOR_HEAP:
            log->heap = (rondo__doctor_block){event->object, event->object + event->bytes};
            return event->word_count == 0;
        case RONDO__DOCTOR_DEVICE:
            add_device(log, event);
            return event->word_count == 0;
        case RONDO__DOCTOR_REHEARSAL:
            log->rehearsal = (rondo__doctor_replays){.works = event->object,
                                                     .median_ns = event->duration_ns,
                                                     .low_ns = event->begin_ns,
                                                     .high_ns = event->bytes};
            return event->word_count == 0;
        default:
            return event->word_count <= RONDO__DOCTOR_WORDS_MAX &&
                   rondo__doctor_call_kind(event->call) != RONDO__DOCTOR_KIND_NONE &&
                   add_call(log, event, tail);
    }
}

const char *rondo__doctor_log_text(const rondo__doctor_log *log, uint32_t number) {
    return number > 0 && number <= log->text_count ? log->texts[number - 1] : "";
}

// Whether so many bytes were there; *out_is_end: none was.
static bool read_bytes(FILE *file, void *bytes, size_t count, bool *out_is_end) {
    const size_t got = count > 0 ? fread(bytes, 1, count, file) : 0;
    *out_is_end = got == 0;
    return got == count;
}

const char *rondo__doctor_log_read(rondo__doctor_log *log, FILE *file) {
    rondo__doctor_header header;
    bool is_end = false;
    if (!read_bytes(file, &header, sizeof(header), &is_end)) {
        return "it is too short for a stream of calls";
    }
    if (header.magic != RONDO__DOCTOR_MAGIC) {
        return "it is no stream of calls (rondo doctor --record writes one)";
    }
    if (header.version != RONDO__DOCTOR_VERSION ||
        header.event_bytes != sizeof(rondo__doctor_event)) {
        return "it is of another version of rondo doctor; record it again";
    }
    for (;;) {
        rondo__doctor_event event;
        char tail[RONDO__DOCTOR_TEXT_MAX + 8];
        if (!read_bytes(file, &event, sizeof(event), &is_end)) {
            return ferror(file) ? "it cannot be read" : is_end ? NULL : "it ends inside a record";
        }
        if (event.word_count > RONDO__DOCTOR_TEXT_MAX ||
            rondo__doctor_tail_bytes(&event) > sizeof(tail)) {
            return "it holds what is no record";
        }
        if (!read_bytes(file, tail, rondo__doctor_tail_bytes(&event), &is_end)) {
            return "it ends inside a record";
        }
        if (!rondo__doctor_log_add(log, &event, tail)) {
            return "it holds what is no record";
        }
    }
}

void rondo__doctor_log_clear(rondo__doctor_log *log) {
    for (size_t i = 0; i < log->text_count; i++) {
        free(log->texts[i]);
    }
    free(log->texts);
    free(log->layouts);
    free(log->ranges);
    free(log->blocks);
    free(log->events);
    free(log->first_words);
    free(log->words);
    free(log->works);
    memset(log, 0, sizeof(*log));
}
