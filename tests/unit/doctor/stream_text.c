// unit/doctor/stream_text.c — see stream_text.h.
// SPDX-License-Identifier: Apache-2.0
#include "unit/doctor/stream_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint64_t ADDRESS = 0x7f0000001000;

static const struct {
    const char *text;
    const char *call;
} shorts[] = {{"L", "cuLaunchKernel"},
              {"H", "cuMemcpyHtoDAsync"},
              {"D", "cuMemcpyDtoHAsync"},
              {"W", "cuStreamSynchronize"}};

static uint16_t find_call(const char *text) {
    for (size_t i = 0; i < sizeof(shorts) / sizeof(shorts[0]); i++) {
        text = strcmp(shorts[i].text, text) == 0 ? shorts[i].call : text;
    }
    for (uint16_t call = 1; call < RONDO__DOCTOR_CALL_COUNT; call++) {
        if (strcmp(rondo__doctor_call_name(call), text) == 0) {
            return call;
        }
    }
    fail_msg("no call is named %s", text);
    return 0;
}

uint32_t stream_add_text(rondo__doctor_log *log, const char *text) {
    for (uint32_t i = 1; i <= log->text_count; i++) {
        if (strcmp(rondo__doctor_log_text(log, i), text) == 0) {
            return i;
        }
    }
    char tail[RONDO__DOCTOR_TEXT_MAX + 8] = {0};
    const rondo__doctor_event event = {.call = RONDO__DOCTOR_TEXT,
                                       .name = (uint32_t)log->text_count + 1,
                                       .word_count = (uint32_t)strlen(text)};
    strcpy(tail, text);
    assert_true(rondo__doctor_log_add(log, &event, tail));
    return event.name;
}

static uint64_t read_word(const char *text, int step) {
    switch (text[0]) {
        case '#':
            return (uint64_t)step;
        case '@':
            return ADDRESS + (uint64_t)(step % 2) * 4096;
        case '!':  // what malloc gave the host
            return 263680336 + (uint64_t)(step * step % 7) * 16777264;
        case '&':  // the same, of a larger heap
            return 0x7e1234567890 + (uint64_t)(step * step % 7) * 16777264;
        case '~':  // the same, or a small number
            return step * step % 7 < 3 ? 6 : 888187040;
        case '%':  // a byte, three that nobody writes, and a number
            return 0x400000006 + (uint64_t)(step * step % 7 + step % 3) * 0x3d1700;
        case '?':
            return (uint64_t)(step * step % 7 + step % 3);
        default:
            return strtoull(text, NULL, 10);
    }
}

static void read_field(rondo__doctor_log *log, rondo__doctor_event *event, uint64_t *words,
                       const char *field, int step) {
    const uint64_t number = strtoull(field + 1, NULL, 10);
    const bool is_other = step == 9 || step == 20;
    switch (field[0]) {
        case 's':
            event->stream = number;
            break;
        case 'n':
            event->name = stream_add_text(log, field + 1);
            break;
        case 'g':
            event->grid[0] = (uint32_t)number;
            break;
        case 'G':
            event->grid[0] = is_other ? 2 : 1;
            break;
        case 'o':
            event->object = number;
            break;
        case 'd':
            event->duration_ns = number * 1000;
            break;
        case 'p':
            event->begin_ns += number * 1000;
            break;
        case 'b':
            event->bytes = number;
            break;
        case 'B':
            event->bytes = is_other ? 8 : 4;
            break;
        case 'K':
            event->name = is_other || event->name == 0
                              ? stream_add_text(log, is_other ? "other" : "one")
                              : event->name;
            break;
        case 'A':
            event->source = read_word("@", step);
            break;
        case 'P':
            event->flags |= RONDO__DOCTOR_PAGEABLE;
            break;
        case 'U':
            log->layouts[event->name - 1] = 2;
            if (log->block_count == 0) {
                const rondo__doctor_event block = {
                    .call = RONDO__DOCTOR_BLOCK, .object = ADDRESS, .bytes = 65536};
                assert_true(rondo__doctor_log_add(log, &block, NULL));
            }
            break;
        case 'E':
            log->heap = (rondo__doctor_block){1 << 27, 1 << 30};
            break;
        case 'C':
            event->flags |= RONDO__DOCTOR_IN_CALLBACK;
            break;
        case 'w':
            words[event->word_count++] = read_word(field + 1, step);
            break;
        default:
            fail_msg("no field is %s", field);
    }
}

static void add_item(rondo__doctor_log *log, char *item, int step) {
    char *rest = NULL;
    uint64_t words[RONDO__DOCTOR_WORDS_MAX];
    rondo__doctor_event event = {.stream = 7, .thread = 1, .grid = {1, 1, 1}, .block = {32, 1, 1}};
    event.call = find_call(strtok_r(item, ":", &rest));
    event.duration_ns =
        rondo__doctor_call_kind(event.call) == RONDO__DOCTOR_KIND_WAIT ? 20000 : 2000;
    event.begin_ns = log->last_ns + 1000;
    for (char *field = strtok_r(NULL, ":", &rest); field != NULL;
         field = strtok_r(NULL, ":", &rest)) {
        read_field(log, &event, words, field, step);
    }
    assert_true(rondo__doctor_log_add(log, &event, words));
}

void stream_add_steps(rondo__doctor_log *log, const char *step, int count) {
    for (int i = 0; i < count; i++) {
        char *rest = NULL;
        char *copy = strdup(step);
        assert_non_null(copy);
        for (char *item = strtok_r(copy, " ", &rest); item != NULL;
             item = strtok_r(NULL, " ", &rest)) {
            add_item(log, item, i);
        }
        free(copy);
    }
}

void stream_add_works(rondo__doctor_log *log, const char *name, int count, uint64_t length_ns,
                      uint64_t pause_ns) {
    const uint32_t number = stream_add_text(log, name);
    uint64_t begin = log->work_count > 0 ? log->works[log->work_count - 1].begin_ns +
                                               log->works[log->work_count - 1].duration_ns
                                         : log->first_ns;
    for (int i = 0; i < count; i++) {
        begin += pause_ns;
        const rondo__doctor_event event = {.call = RONDO__DOCTOR_WORK,
                                           .begin_ns = begin,
                                           .duration_ns = length_ns,
                                           .stream = 1,
                                           .name = number};
        assert_true(rondo__doctor_log_add(log, &event, NULL));
        begin += length_ns;
    }
}
