// executor/state/prepared.c — see prepared.h. An entry of a section is a run of bytes with its
// length in front, so that others are stepped over.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/prepared.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "device/device.h"

enum { LEVEL_BYTES = 64, REASON_BYTES = 320 };

static rondo_status fail_damaged(const char *section) {
    return RONDO_FAIL(BAD_DATA, "the plan file's section \"%s\" is damaged", section);
}

// ---- what the file was made for ---------------------------------------------------------------

// Whether the sections that depend on it may be used on this device by this library. Otherwise says
// why in `reason`.
static bool fits(const rondo__saved *saved, rondo_device *device, char *reason,
                 size_t reason_bytes) {
    const rondo__saved_about *about = &saved->about;
    const char *kind = rondo_device_is_host(device) ? "host" : "cuda";
    char level[LEVEL_BYTES];
    reason[0] = '\0';
    rondo__kernel_get_level(device, level, sizeof level);
    if (strcmp(about->library, rondo__saved_library) != 0) {
        (void)snprintf(reason, reason_bytes, "it was made by version %.60s, this is %.60s",
                       about->library, rondo__saved_library);
    } else if (strcmp(about->device, kind) != 0) {
        (void)snprintf(reason, reason_bytes, "it was made for %s (%.100s), the device is %s",
                       strcmp(about->device, "host") == 0 ? "the host" : "a GPU",
                       about->description, rondo_device_get_name(device));
    } else if (strcmp(about->level, level) != 0) {
        (void)snprintf(reason, reason_bytes, "it was made for %.60s (%.100s), %s is %s",
                       about->level, about->description, rondo_device_get_name(device), level);
    }
    return reason[0] == '\0';
}

rondo_status rondo__prepared_check(const rondo_program *program, rondo_device *device) {
    char reason[REASON_BYTES];
    const rondo__saved *saved = rondo__program_get_saved(program);
    return saved == NULL || saved->allow_remake || fits(saved, device, reason, sizeof reason)
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS("rondo_executor_create", UNSUPPORTED,
                               "the plan file does not fit: %s; make it anew, or load it with "
                               "allow_remake",
                               reason);
}

// The program's plan file where the unit may use it.
static const rondo__saved *get_saved(const rondo__unit *unit) {
    char reason[REASON_BYTES];
    const rondo__saved *saved = rondo__program_get_saved(unit->source);
    const bool is_main = unit == &unit->executor->main;
    return saved != NULL && is_main && !unit->is_lean && !unit->executor->options.reference &&
                   fits(saved, unit->executor->device, reason, sizeof reason)
               ? saved
               : NULL;
}

// ---- entries ----------------------------------------------------------------------------------

// The next entry of a section; false at its end.
static bool read_entry(rondo__record *section, rondo__record *out_entry) {
    size_t byte_count = 0;
    if (section->at == section->past) {
        return false;
    }
    const uint8_t *bytes = rondo__record_get_bytes(section, &byte_count);
    *out_entry = (rondo__record){.at = bytes, .past = bytes != NULL ? bytes + byte_count : NULL};
    return bytes != NULL;
}

// ---- choices and forms ------------------------------------------------------------------------

rondo_status rondo__prepared_give_choices(rondo_executor *executor) {
    rondo__record record;
    const rondo__saved *saved = rondo__program_get_saved(executor->main.source);
    if (saved == NULL ||
        !rondo__saved_find(saved, "tuning", RONDO__SAVED_TUNING_VERSION, &record)) {
        return RONDO_STATUS_OK;
    }
    return rondo__tuning_choices_add(executor->resources.choices, record.at,
                                     (size_t)(record.past - record.at));
}

rondo_status rondo__prepared_write_kernel(const rondo__kernel_code *code,
                                          rondo__data_blocks *blocks, rondo__text *out) {
    uint64_t offset = 0;
    RETURN_IF_ERROR(rondo__data_blocks_add(blocks, code->bytes, code->byte_count, &offset));
    rondo__text entry = {0};
    rondo__record_put(&entry, code->key.low);
    rondo__record_put(&entry, code->key.high);
    rondo__record_put(&entry, offset);
    rondo__record_put(&entry, code->byte_count);
    rondo__record_put_bytes(out, entry.bytes, entry.length);
    const rondo_status status = rondo__text_get_status(&entry);
    rondo__text_deinit(&entry);
    return status;
}

static bool read_kernel(rondo__record *entry, const rondo__saved_data *data,
                        rondo__kernel_code *out_code) {
    out_code->key.low = rondo__record_get(entry);
    out_code->key.high = rondo__record_get(entry);
    const uint64_t offset = rondo__record_get_most(entry, data->byte_count);
    out_code->byte_count =
        entry->is_bad ? 0 : (size_t)rondo__record_get_most(entry, data->byte_count - offset);
    out_code->bytes = data->bytes + offset;
    return !entry->is_bad && out_code->byte_count > 0;
}

rondo_status rondo__prepared_give_kernels(rondo_executor *executor) {
    char reason[REASON_BYTES];
    rondo__record section, entry;
    const rondo__saved *saved = rondo__program_get_saved(executor->main.source);
    if (saved == NULL || !fits(saved, executor->device, reason, sizeof reason) ||
        !rondo__saved_find(saved, "kernels", RONDO__SAVED_KERNELS_VERSION, &section)) {
        return RONDO_STATUS_OK;
    }
    while (read_entry(&section, &entry)) {
        rondo__kernel_code code;
        if (!read_kernel(&entry, &saved->data, &code)) {
            return fail_damaged("kernels");
        }
        const rondo_status status = rondo__device_offer_kernel(executor->device, &code);
        if (status != RONDO_STATUS_OK && (!saved->allow_remake || status != RONDO_STATUS_DRIVER)) {
            rondo__error_prefix("the plan file's machine code");
            return status;
        }
    }
    return section.is_bad ? fail_damaged("kernels") : RONDO_STATUS_OK;
}

rondo_status rondo__prepared_write_form(const rondo__ready_form *form, rondo__data_blocks *blocks,
                                        rondo__text *out) {
    uint64_t constant = 0;
    uint64_t bytes = 0;
    RETURN_IF_ERROR(
        rondo__data_blocks_add(blocks, form->constant, form->constant_bytes, &constant));
    RETURN_IF_ERROR(rondo__data_blocks_add(blocks, form->bytes, form->byte_count, &bytes));
    rondo__text entry = {0};
    rondo__record_put(&entry, (uint64_t)form->dtype);
    rondo__record_put(&entry, constant);
    rondo__record_put(&entry, bytes);
    rondo__record_put(&entry, form->byte_count);
    rondo__record_put_bytes(&entry, form->form, form->form_bytes);
    rondo__record_put_bytes(out, entry.bytes, entry.length);
    const rondo_status status = rondo__text_get_status(&entry);
    rondo__text_deinit(&entry);
    return status;
}

static bool read_form(rondo__record *entry, const rondo__saved_data *data,
                      rondo__ready_form *out_form) {
    out_form->dtype = (rondo_dtype)rondo__record_get_most(entry, RONDO_DTYPE_COUNT - 1);
    const uint64_t constant = rondo__record_get_most(entry, data->byte_count);
    const uint64_t offset = rondo__record_get_most(entry, data->byte_count);
    out_form->byte_count =
        entry->is_bad ? 0 : (size_t)rondo__record_get_most(entry, data->byte_count - offset);
    out_form->form = rondo__record_get_bytes(entry, &out_form->form_bytes);
    out_form->constant = data->bytes + constant;
    out_form->bytes = data->bytes + offset;
    return !entry->is_bad && offset % RONDO__DATA_ALIGNMENT == 0;
}

rondo_status rondo__prepared_give_forms(const rondo_program *program, rondo_device *device,
                                        rondo__weight_store *store) {
    char reason[REASON_BYTES];
    rondo__record section, entry;
    const rondo__saved *saved = rondo__program_get_saved(program);
    if (saved == NULL || !fits(saved, device, reason, sizeof reason) ||
        !rondo__saved_find(saved, "forms", RONDO__SAVED_FORMS_VERSION, &section)) {
        return RONDO_STATUS_OK;
    }
    rondo__ready_form *forms = NULL;
    size_t count = 0, capacity = 0;
    rondo_status status = RONDO_STATUS_OK;
    while (status == RONDO_STATUS_OK && read_entry(&section, &entry)) {
        status = RONDO__ARRAY_RESERVE(forms, capacity, count + 1);
        if (status == RONDO_STATUS_OK && !read_form(&entry, &saved->data, &forms[count++])) {
            status = fail_damaged("forms");
        }
    }
    if (status == RONDO_STATUS_OK && section.is_bad) {
        status = fail_damaged("forms");
    }
    if (status != RONDO_STATUS_OK) {
        rondo__free(forms);
        return status;
    }
    rondo__weight_store_set_ready(store, forms, count);
    return RONDO_STATUS_OK;
}

// ---- bases ------------------------------------------------------------------------------------

void rondo__prepared_write_base_head(const rondo__unit *unit, const char *key, rondo__text *out) {
    const size_t count = unit->base->input_count;
    rondo__record_put_text(out, key);
    rondo__record_put(out, count);
    for (size_t i = 0; i < count; ++i) {
        rondo__record_put(out, unit->keys.keyed[i]);
        rondo__record_put(out, unit->keys.deciding[i] ? 1 : 0);
        rondo__record_put_signed(out, unit->keys.bounds[i].of);
        rondo__record_put_signed(out, unit->keys.bounds[i].axis);
    }
}

static rondo_status read_input_keys(rondo__record *entry, rondo__unit *unit) {
    const size_t count = rondo__record_get_count(entry);
    for (size_t i = 0; i < count; ++i) {
        const uint8_t keyed = (uint8_t)rondo__record_get_most(entry, RONDO__WANT_VALUE);
        const bool is_deciding = rondo__record_get_most(entry, 1) != 0;
        const int64_t of = rondo__record_get_signed(entry);
        const int64_t axis = rondo__record_get_signed(entry);
        if (of < -1 || of >= (int64_t)count || axis < 0 || axis >= RONDO_RANK_MAX) {
            return fail_damaged("bases");
        }
        if (unit != NULL && i < unit->base->input_count) {
            unit->keys.keyed[i] = keyed;
            unit->keys.deciding[i] = is_deciding;
            unit->keys.bounds[i] = (rondo__value_bound){(int32_t)of, (int32_t)axis};
        }
    }
    const bool fits = !entry->is_bad && (unit == NULL || count == unit->base->input_count);
    return fits ? RONDO_STATUS_OK : fail_damaged("bases");
}

// The entry of a base, behind its key; false where there is none.
static bool find_base_entry(const rondo__saved *saved, const char *key, rondo__record *out_entry) {
    rondo__record section;
    if (!rondo__saved_find(saved, "bases", RONDO__SAVED_BASES_VERSION, &section)) {
        return false;
    }
    while (read_entry(&section, out_entry)) {
        if (strcmp(rondo__record_get_text(out_entry), key) == 0) {
            return true;
        }
    }
    return false;
}

rondo_status rondo__prepared_find_base(const rondo__unit *unit, const char *key,
                                       rondo_program **out_base) {
    rondo__record entry;
    const rondo__saved *saved = get_saved(unit);
    *out_base = NULL;
    if (saved == NULL) {
        return RONDO_STATUS_OK;
    }
    if (find_base_entry(saved, key, &entry)) {
        RETURN_IF_ERROR(read_input_keys(&entry, NULL));
        return rondo__program_read(&entry, &saved->data, out_base);
    }
    return saved->allow_remake
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS("rondo_executor_create", UNSUPPORTED,
                               "the plan file was made with other options (dtype %s%s): ask for "
                               "those (rondo_program_get_plan_options), or load it with "
                               "allow_remake",
                               rondo_dtype_get_name(saved->about.dtype),
                               saved->about.is_training ? ", training" : "");
}

rondo_status rondo__prepared_give_keys(rondo__unit *unit, const char *key) {
    rondo__record entry;
    const rondo__saved *saved = get_saved(unit);
    return saved != NULL && find_base_entry(saved, key, &entry) ? read_input_keys(&entry, unit)
                                                                : RONDO_STATUS_OK;
}

// ---- plans ------------------------------------------------------------------------------------

void rondo__prepared_write_plan_head(const char *base_key, const void *key, size_t key_bytes,
                                     const rondo__half_report *halves, rondo__text *out) {
    rondo__record_put_text(out, base_key);
    rondo__record_put_bytes(out, key, key_bytes);
    rondo__record_put(out, halves->half_count);
    rondo__record_put_text(out, halves->note != NULL ? halves->note : "");
    rondo__record_put(out, halves->kept_count);
    for (size_t i = 0; i < halves->kept_count; ++i) {
        rondo__record_put_text(out, halves->kept[i].op);
        rondo__record_put_text(out, halves->kept[i].name);
        rondo__record_put_text(out, halves->kept[i].reason);
    }
}

// Texts that are not owned lie in the file, which lives as long as the program.
static rondo_status read_halves(rondo__record *entry, rondo__half_report *out_halves) {
    out_halves->half_count = (size_t)rondo__record_get_most(entry, SIZE_MAX);
    const char *note = rondo__record_get_text(entry);
    out_halves->note = note[0] != '\0' ? note : NULL;
    const size_t count = rondo__record_get_count(entry);
    out_halves->kept = rondo__calloc(count + 1, sizeof *out_halves->kept);
    if (out_halves->kept == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        rondo__half_kept *kept = &out_halves->kept[i];
        kept->op = rondo__record_get_text(entry);
        kept->name = rondo__strdup(rondo__record_get_text(entry));
        kept->reason = rondo__record_get_text(entry);
        if (kept->name == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        out_halves->kept_count = i + 1;
    }
    return entry->is_bad ? fail_damaged("plans") : RONDO_STATUS_OK;
}

static bool has_key(rondo__record *entry, const char *base_key, const void *key, size_t key_bytes) {
    size_t found_bytes = 0;
    const bool is_of_base = strcmp(rondo__record_get_text(entry), base_key) == 0;
    const void *found = rondo__record_get_bytes(entry, &found_bytes);
    return is_of_base && found != NULL && found_bytes == key_bytes &&
           memcmp(found, key, key_bytes) == 0;
}

rondo_status rondo__prepared_find_plan(const rondo__unit *unit, const char *base_key,
                                       const void *key, size_t key_bytes,
                                       rondo_program **out_program, rondo__half_report *out_halves,
                                       rondo__record *out_kernels) {
    rondo__record section, entry;
    const rondo__saved *saved = get_saved(unit);
    *out_kernels = (rondo__record){0};
    *out_program = NULL;
    *out_halves = (rondo__half_report){0};
    if (saved == NULL || !rondo__saved_find(saved, "plans", RONDO__SAVED_PLANS_VERSION, &section)) {
        return RONDO_STATUS_OK;
    }
    while (read_entry(&section, &entry)) {
        if (has_key(&entry, base_key, key, key_bytes)) {
            rondo_status status = read_halves(&entry, out_halves);
            if (status == RONDO_STATUS_OK) {
                status = rondo__program_read(&entry, &saved->data, out_program);
            }
            if (status == RONDO_STATUS_OK &&
                ((*out_program)->input_count != unit->base->input_count ||
                 (*out_program)->output_count != unit->base->output_count)) {
                rondo_program_destroy(*out_program);
                *out_program = NULL;
                status = fail_damaged("plans");
            }
            if (status != RONDO_STATUS_OK) {
                rondo__half_report_deinit(out_halves);
            }
            *out_kernels = entry;
            return status;
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__prepared_list_kernels(const rondo__record *kernels, size_t node_count,
                                          rondo__record **out_list) {
    rondo__record entries = *kernels;
    rondo__record entry;
    *out_list = NULL;
    if (entries.at == entries.past) {
        return RONDO_STATUS_OK;
    }
    rondo__record *list = rondo__calloc(node_count + 1, sizeof *list);
    if (list == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    while (read_entry(&entries, &entry)) {
        const size_t node = (size_t)rondo__record_get_most(&entry, node_count);
        entries.is_bad = entries.is_bad || entry.is_bad || node == node_count;
        list[node] = entry;
    }
    if (entries.is_bad) {
        rondo__free(list);
        return fail_damaged("plans");
    }
    *out_list = list;
    return RONDO_STATUS_OK;
}

rondo_status rondo__prepared_write_kernels(rondo_device *device, const rondo__plan *plan,
                                           rondo__text *out) {
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < plan->item_count && status == RONDO_STATUS_OK; ++i) {
        const rondo__item *item = &plan->items[i];
        rondo__text entry = {0};
        rondo__record_put(&entry, item->node);
        if (item->side == RONDO__SIDE_DEVICE &&
            rondo__kernel_write(device, item->kernel, &plan->weights, &entry)) {
            rondo__record_put_bytes(out, entry.bytes, entry.length);
        }
        status = rondo__text_get_status(&entry);
        rondo__text_deinit(&entry);
    }
    return status == RONDO_STATUS_OK ? rondo__text_get_status(out) : status;
}
