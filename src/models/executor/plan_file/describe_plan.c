// executor/plan_file/describe_plan.c — what is in a plan file, as text or JSON.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/compile/plan_cache.h"
#include "executor/state/prepared.h"
#include "rondo/text.h"
#include "rondo/tuning.h"

typedef struct describer {
    rondo__text text;
    const rondo__saved *saved;
    const rondo_program *program;
    bool is_json;
    const char *path;
} describer;

static size_t count_entries(const rondo__saved *saved, const char *name, uint32_t version) {
    rondo__record section;
    size_t count = 0;
    if (!rondo__saved_find(saved, name, version, &section)) {
        return 0;
    }
    while (section.at != section.past && !section.is_bad) {
        size_t bytes = 0;
        (void)rondo__record_get_bytes(&section, &bytes);
        count += section.is_bad ? 0 : 1;
    }
    return count;
}

static void append_about(describer *d) {
    const rondo__saved_about *about = &d->saved->about;
    rondo__text *text = &d->text;
    if (!d->is_json) {
        rondo__text_append(text, "plan file ");
        rondo__text_append_escaped(text, d->path);
        rondo__text_append(text, ", %zu bytes: made by rondo ", d->saved->file.byte_count);
        rondo__text_append_escaped(text, about->library);
        rondo__text_append(text, " for ");
        rondo__text_append_escaped(text, about->device);
        rondo__text_append(text, " (");
        rondo__text_append_escaped(text, about->description);
        rondo__text_append(text, "; ");
        rondo__text_append_escaped(text, about->level);
        rondo__text_append(text, "), dtype %s\n", rondo_dtype_get_name(about->dtype));
        return;
    }
    const char *const rows[][2] = {{"path", d->path},
                                   {"library", about->library},
                                   {"device", about->device},
                                   {"level", about->level},
                                   {"description", about->description},
                                   {"dtype", rondo_dtype_get_name(about->dtype)}};
    rondo__text_append(text, "{");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        rondo__text_append(text, "\"%s\": ", rows[i][0]);
        rondo__text_append_json(text, rows[i][1]);
        rondo__text_append(text, ", ");
    }
    rondo__text_append(text, "\"bytes\": %zu, \"sections\": [", d->saved->file.byte_count);
}

static void append_sections(describer *d) {
    const struct {
        const char *name;
        uint32_t version;
        const char *unit;
    } counted[] = {{"bases", RONDO__SAVED_BASES_VERSION, "program behind the first passes"},
                   {"plans", RONDO__SAVED_PLANS_VERSION, "plan"},
                   {"kernels", RONDO__SAVED_KERNELS_VERSION, "module"},
                   {"forms", RONDO__SAVED_FORMS_VERSION, "packed constant"}};
    for (size_t i = 0; i < d->saved->file.section_count; ++i) {
        const rondo__section *section = &d->saved->file.sections[i];
        size_t count = 0;
        const char *unit = NULL;
        for (size_t k = 0; k < sizeof counted / sizeof counted[0]; ++k) {
            if (strcmp(section->name, counted[k].name) == 0) {
                unit = counted[k].unit;
                count = count_entries(d->saved, counted[k].name, counted[k].version);
            }
        }
        if (d->is_json) {
            rondo__text_append(&d->text, "%s{\"name\": ", i > 0 ? ", " : "");
            rondo__text_append_json(&d->text, section->name);
            rondo__text_append(&d->text, ", \"version\": %u, \"bytes\": %zu, \"count\": %zu}",
                               (unsigned)section->version, section->byte_count, count);
        } else {
            rondo__text_append(&d->text, "  %-8s version %u, %12zu bytes", section->name,
                               (unsigned)section->version, section->byte_count);
            if (unit != NULL) {
                rondo__text_append(&d->text, ", %zu %s%s", count, unit, count == 1 ? "" : "s");
            }
            rondo__text_append(&d->text, "\n");
        }
    }
}

static void append_inputs(describer *d, const rondo__key_input *inputs) {
    for (size_t i = 0; i < d->program->input_count; ++i) {
        char shape[128];
        const rondo_tensor *tensor = &inputs[i].tensor;
        const char *name = d->program->values[d->program->inputs[i]].name;
        (void)rondo_shape_format(&tensor->shape, shape, sizeof shape);
        if (d->is_json) {
            rondo__text_append(&d->text, "%s", i > 0 ? ", " : "");
            rondo__text_append_json(&d->text, name);
            rondo__text_append(&d->text, ": \"%s %s\"", rondo_dtype_get_name(tensor->dtype), shape);
        } else {
            rondo__text_append(&d->text, "%s", i > 0 ? ", " : "");
            rondo__text_append_escaped(&d->text, name);
            rondo__text_append(&d->text, " %s %s%s", rondo_dtype_get_name(tensor->dtype), shape,
                               tensor->data != NULL ? " with its value" : "");
        }
    }
}

// The shapes that the file has plans for.
static rondo_status append_plans(describer *d) {
    rondo__record section;
    const size_t count = d->program->input_count;
    rondo__key_input *inputs = rondo__calloc(count + 1, sizeof *inputs);
    if (inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    size_t shown = 0;
    if (!rondo__saved_find(d->saved, "plans", RONDO__SAVED_PLANS_VERSION, &section)) {
        section = (rondo__record){0};
    }
    while (section.at != section.past) {
        size_t bytes = 0, key_bytes = 0;
        const uint8_t *at = rondo__record_get_bytes(&section, &bytes);
        rondo__record entry = {.at = at, .past = at != NULL ? at + bytes : NULL};
        (void)rondo__record_get_text(&entry);
        const void *key = rondo__record_get_bytes(&entry, &key_bytes);
        if (key == NULL || !rondo__plan_key_read(key, key_bytes, inputs, count)) {
            continue;
        }
        rondo__text_append(&d->text, d->is_json ? "%s{" : "%s  plan for ",
                           d->is_json && shown > 0 ? ", " : "");
        append_inputs(d, inputs);
        rondo__text_append(&d->text, d->is_json ? "}" : "\n");
        ++shown;
    }
    rondo__free(inputs);
    return RONDO_STATUS_OK;
}

static rondo_status describe(describer *d) {
    append_about(d);
    append_sections(d);
    rondo__text_append(&d->text, "%s", d->is_json ? "], \"plans\": [" : "");
    RETURN_IF_ERROR(append_plans(d));
    rondo__text_append(&d->text, "%s", d->is_json ? "]}\n" : "");
    return rondo__text_get_status(&d->text);
}

rondo_status rondo_plan_describe(const char *path, rondo_text_format format,
                                 rondo_write_function write, void *user_data) {
    if (path == NULL || write == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", path == NULL ? "path" : "write");
    }
    if (format != RONDO_TEXT_PLAIN && format != RONDO_TEXT_JSON) {
        return RONDO_FAIL(INVALID, "format %d: a plan file is shown as plain text or JSON",
                          (int)format);
    }
    rondo__saved *saved = NULL;
    rondo_program *program = NULL;
    RETURN_IF_ERROR(rondo__saved_open(path, &saved));
    RETURN_IF_ERROR(rondo__saved_read_program(saved, &program));
    describer d = {
        .saved = saved, .program = program, .is_json = format == RONDO_TEXT_JSON, .path = path};
    const rondo_status status = describe(&d);
    if (status == RONDO_STATUS_OK) {
        (void)write(user_data, d.text.bytes, d.text.length);
    }
    rondo__text_deinit(&d.text);
    rondo_program_destroy(program);
    return status;
}
