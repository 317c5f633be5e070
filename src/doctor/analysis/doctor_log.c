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

// Gives up the older half.
static void forget_half(rondo__doctor_log *log) {
    const size_t dropped = log->event_count / 2;
    const size_t kept = log->event_count - dropped;
    const size_t words = kept > 0 ? log->first_words[dropped] : log->word_count;
    memmove(log->events, log->events + dropped, kept * sizeof(*log->events));
    memmove(log->words, log->words + words, (log->word_count - words) * sizeof(*log->words));
    for (size_t i = 0; i < kept; i++) {
        log->first_words[i] = log->first_words[dropped + i] - words;
    }
    log->event_count = kept;
    log->word_count -= words;
}

static bool add_text(rondo__doctor_log *log, const rondo__doctor_event *event, const char *tail) {
    if (event->name != log->text_count + 1 || log->text_count == RONDO__DOCTOR_TEXTS_MAX) {
        return event->name != 0 && log->text_count == RONDO__DOCTOR_TEXTS_MAX;
    }
    if (log->texts == NULL) {
        log->texts = calloc(RONDO__DOCTOR_TEXTS_MAX, sizeof(*log->texts));
    }
    char *text = log->texts != NULL ? malloc((size_t)event->word_count + 1) : NULL;
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
        .is_of_graph = event->object != 0,
    };
    return true;
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
    if (!make_room(log, words)) {
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
        default:
            return event->word_count <= RONDO__DOCTOR_WORDS_MAX &&
                   rondo__doctor_call_kind(event->call) != RONDO__DOCTOR_KIND_NONE &&
                   add_call(log, event, tail);
    }
}

const char *rondo__doctor_log_text(const rondo__doctor_log *log, uint32_t number) {
    return number > 0 && number <= log->text_count ? log->texts[number - 1] : "";
}

const char *rondo__doctor_log_read(rondo__doctor_log *log, const void *bytes, size_t count) {
    rondo__doctor_header header;
    if (count < sizeof(header)) {
        return "it is too short for a stream of calls";
    }
    memcpy(&header, bytes, sizeof(header));
    if (header.magic != RONDO__DOCTOR_MAGIC) {
        return "it is no stream of calls (rondo doctor --record writes one)";
    }
    if (header.version != RONDO__DOCTOR_VERSION ||
        header.event_bytes != sizeof(rondo__doctor_event)) {
        return "it is of another version of rondo doctor; record it again";
    }
    size_t place = sizeof(header);
    while (place < count) {
        rondo__doctor_event event;
        if (count - place < sizeof(event)) {
            return "it ends inside a record";
        }
        memcpy(&event, (const char *)bytes + place, sizeof(event));
        place += sizeof(event);
        if (event.word_count > RONDO__DOCTOR_TEXT_MAX ||
            rondo__doctor_tail_bytes(&event) > count - place) {
            return "it ends inside a record";
        }
        if (!rondo__doctor_log_add(log, &event, (const char *)bytes + place)) {
            return "it holds what is no record";
        }
        place += rondo__doctor_tail_bytes(&event);
    }
    return NULL;
}

void rondo__doctor_log_clear(rondo__doctor_log *log) {
    for (size_t i = 0; i < log->text_count; i++) {
        free(log->texts[i]);
    }
    free(log->texts);
    free(log->events);
    free(log->first_words);
    free(log->words);
    free(log->works);
    memset(log, 0, sizeof(*log));
}
