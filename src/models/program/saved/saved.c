// program/saved/saved.c — see saved.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/saved/saved.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { TUNING_MAX = 4 };  // RONDO_TUNING_KEEP

static size_t count_patterns(const rondo__saved_about *about) {
    size_t count = 0;
    for (size_t g = 0; g < RONDO__SAVED_GROUPS; ++g) {
        count += about->pattern_counts[g];
    }
    return count;
}

void rondo__saved_about_write(const rondo__saved_about *about, rondo__text *out) {
    rondo__record_put_text(out, about->library);
    rondo__record_put_text(out, about->device);
    rondo__record_put_text(out, about->level);
    rondo__record_put_text(out, about->description);
    rondo__record_put(out, (uint64_t)about->dtype);
    rondo__record_put(out, about->op_by_op ? 1 : 0);
    rondo__record_put(out, about->no_folding ? 1 : 0);
    rondo__record_put(out, about->is_training ? 1 : 0);
    rondo__record_put(out, about->tuning);
    for (size_t g = 0; g < RONDO__SAVED_GROUPS; ++g) {
        rondo__record_put(out, about->pattern_counts[g]);
    }
    for (size_t i = 0; i < count_patterns(about); ++i) {
        rondo__record_put_text(out, about->patterns[i]);
    }
}

static rondo_status read_about(rondo__record *in, rondo__saved_about *about) {
    about->library = rondo__record_get_text(in);
    about->device = rondo__record_get_text(in);
    about->level = rondo__record_get_text(in);
    about->description = rondo__record_get_text(in);
    about->dtype = (rondo_dtype)rondo__record_get_most(in, RONDO_DTYPE_COUNT - 1);
    about->op_by_op = rondo__record_get_most(in, 1) != 0;
    about->no_folding = rondo__record_get_most(in, 1) != 0;
    about->is_training = rondo__record_get_most(in, 1) != 0;
    about->tuning = (uint32_t)rondo__record_get_most(in, TUNING_MAX);
    for (size_t g = 0; g < RONDO__SAVED_GROUPS; ++g) {
        about->pattern_counts[g] = rondo__record_get_count(in);
    }
    const size_t count = count_patterns(about);
    const char **patterns = rondo__calloc(count + 1, sizeof *patterns);
    if (patterns == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        patterns[i] = rondo__record_get_text(in);
    }
    about->patterns = patterns;
    about->owned = patterns;
    return in->is_bad ? RONDO_FAIL(BAD_DATA, "the plan file's section \"about\" is damaged")
                      : RONDO_STATUS_OK;
}

bool rondo__saved_find(const rondo__saved *saved, const char *name, uint32_t version,
                       rondo__record *out_record) {
    const rondo__section *section = rondo__section_file_find(&saved->file, name);
    if (section == NULL || section->version != version) {
        return false;
    }
    *out_record =
        (rondo__record){.at = section->bytes, .past = section->bytes + section->byte_count};
    return true;
}

// A section without which there is no program.
static rondo_status need(const rondo__saved *saved, const char *name, uint32_t version,
                         rondo__record *out_record) {
    const rondo__section *section = rondo__section_file_find(&saved->file, name);
    if (section == NULL) {
        return RONDO_FAIL(BAD_DATA, "the plan file has no section \"%s\"", name);
    }
    if (!rondo__saved_find(saved, name, version, out_record)) {
        return RONDO_FAIL(UNSUPPORTED,
                          "the plan file's section \"%s\" is of version %u, this library reads "
                          "version %u: make the file anew with this library",
                          name, (unsigned)section->version, (unsigned)version);
    }
    return RONDO_STATUS_OK;
}

static rondo_status open_sections(rondo__saved *saved) {
    rondo__record about, data;
    RETURN_IF_ERROR(need(saved, "about", RONDO__SAVED_ABOUT_VERSION, &about));
    RETURN_IF_ERROR(need(saved, "data", RONDO__SAVED_DATA_VERSION, &data));
    saved->data = (rondo__saved_data){.storage = saved->file.storage,
                                      .bytes = data.at,
                                      .byte_count = (size_t)(data.past - data.at)};
    return read_about(&about, &saved->about);
}

rondo_status rondo__saved_open(const char *path, rondo__saved **out_saved) {
    *out_saved = NULL;
    rondo__saved *saved = rondo__calloc(1, sizeof *saved);
    if (saved == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = rondo__section_file_open(&rondo__plan_file_kind, path, &saved->file);
    if (status == RONDO_STATUS_OK) {
        status = open_sections(saved);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__saved_destroy(saved);
        return status;
    }
    *out_saved = saved;
    return RONDO_STATUS_OK;
}

void rondo__saved_destroy(rondo__saved *saved) {
    if (saved != NULL) {
        rondo__free(saved->about.owned);
        rondo__section_file_close(&saved->file);
        rondo__free(saved);
    }
}

static void free_saved(rondo__program_attachment *head) {
    rondo__saved_destroy((rondo__saved *)head);
}

rondo_status rondo__saved_read_program(rondo__saved *saved, rondo_program **out_program) {
    rondo__record record;
    *out_program = NULL;
    rondo_status status = need(saved, "program", RONDO__SAVED_PROGRAM_VERSION, &record);
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_read(&record, &saved->data, out_program);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__saved_destroy(saved);
        return status;
    }
    saved->head.free = free_saved;
    (*out_program)->saved = &saved->head;
    return RONDO_STATUS_OK;
}
