// profile/write.c — what can be had of a stopped profile: numbers, rows, reports.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "backend/check.h"
#include "base/read_options.h"
#include "base/write_struct.h"
#include "profile/profile.h"
#include "profile/profile_slice.h"
#include "profile/report.h"

static rondo_status check_stopped(const rondo_profile *profile, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(profile, call, "profile"));
    return profile->state == RONDO__PROFILE_STOPPED
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(
                     call, STATE, "the profile %s; there are numbers once it was stopped",
                     profile->state == RONDO__PROFILE_RUNNING ? "runs" : "was not started");
}

static rondo_status check_key(rondo_profile_key key, const char *call) {
    return key >= RONDO_PROFILE_BY_TOTAL && key <= RONDO_PROFILE_BY_GPU
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, INVALID, "%d is not a rondo_profile_key", (int)key);
}

// ---- numbers ----------------------------------------------------------------------------------

rondo_status rondo_profile_get_summary(rondo_profile *profile, rondo_profile_summary *out_summary) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_summary, sizeof *out_summary, __func__, "rondo_profile_summary"));
    RETURN_IF_ERROR(check_stopped(profile, __func__));
    const rondo__profile_records *records = &profile->store.records;
    rondo__profile_table table;
    RETURN_IF_ERROR(rondo__profile_table_init(records, RONDO_PROFILE_BY_TOTAL, false, &table));
    const rondo_profile_summary summary = {.struct_size = sizeof summary,
                                           .total_ns = table.total_ns,
                                           .computation_ns = table.computation_ns,
                                           .framework_ns = table.framework_ns,
                                           .device_ns = table.device_ns,
                                           .async_calls = table.async_calls,
                                           .async_ns = table.async_ns,
                                           .async_bytes = table.async_bytes,
                                           .sync_calls = table.sync_calls,
                                           .sync_ns = table.sync_ns,
                                           .sync_bytes = table.sync_bytes,
                                           .thread_count = table.thread_count,
                                           .span_count = records->span_count,
                                           .work_count = records->work_count,
                                           .dropped_count = records->dropped_count,
                                           .source = records->source};
    rondo__profile_table_deinit(&table);
    rondo__write_struct(out_summary, &summary);
    return RONDO_STATUS_OK;
}

static rondo_profile_row show_row(const rondo__profile_row *row, size_t struct_size) {
    return (rondo_profile_row){.struct_size = struct_size,
                               .parent = row->parent != SIZE_MAX ? row->parent : UINT64_MAX,
                               .depth = (uint32_t)row->depth,
                               .thread = row->thread,
                               .category = (rondo_profile_category)row->category,
                               .is_device_work = row->is_work,
                               .name = row->name,
                               .detail = row->detail,
                               .calls = row->calls,
                               .total_ns = row->total_ns,
                               .cpu_ns = row->cpu_ns,
                               .gpu_ns = row->gpu_ns,
                               .min_ns = row->min_ns,
                               .max_ns = row->max_ns,
                               .bytes = row->bytes};
}

rondo_status rondo_profile_get_rows(rondo_profile *profile, rondo_profile_key key, bool per_thread,
                                    rondo_profile_row *rows, size_t capacity, size_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    RETURN_IF_ERROR(check_stopped(profile, __func__));
    RETURN_IF_ERROR(check_key(key, __func__));
    size_t stride = 0;
    RETURN_IF_ERROR(
        rondo__read_stride(rows, capacity, sizeof *rows, __func__, "rondo_profile_row", &stride));
    rondo__profile_table table;
    RETURN_IF_ERROR(rondo__profile_table_init(&profile->store.records, key, per_thread, &table));
    for (size_t i = 0; i < table.row_count && i < capacity; ++i) {
        const rondo_profile_row row = show_row(&table.rows[i], stride);
        memcpy((char *)rows + i * stride, &row, stride);
    }
    *out_count = table.row_count;
    rondo__profile_table_deinit(&table);
    return RONDO_STATUS_OK;
}

// ---- reports ----------------------------------------------------------------------------------

static const rondo__profile_writer g_writers[] = {
    [RONDO_PROFILE_PLAIN] = rondo__profile_write_plain,
    [RONDO_PROFILE_JSON] = rondo__profile_write_json,
    [RONDO_PROFILE_TRACE] = rondo__profile_write_trace,
    [RONDO_PROFILE_HTML] = rondo__profile_write_html,
};

static rondo_status check_write(const rondo_profile *profile,
                                const rondo_profile_write_options *options,
                                rondo_write_function write) {
    static const char call[] = "rondo_profile_write";
    RETURN_IF_ERROR(check_stopped(profile, call));
    RETURN_IF_ERROR(write != NULL ? RONDO_STATUS_OK : rondo__check_fail_null(call, "write"));
    RETURN_IF_ERROR(check_key(options->key, call));
    if (options->format < RONDO_PROFILE_PLAIN || options->format > RONDO_PROFILE_HTML) {
        return RONDO_FAIL_AS(call, INVALID, "%d is not a rondo_profile_format",
                             (int)options->format);
    }
    return RONDO_STATUS_OK;
}

static rondo_status write_records(const rondo__profile_records *records,
                                  const rondo_profile_write_options *options,
                                  rondo_write_function write, void *user_data) {
    rondo__profile_table table;
    RETURN_IF_ERROR(rondo__profile_table_init(records, options->key, options->per_thread, &table));
    const rondo__profile_report report = {
        .records = records,
        .table = &table,
        .key = options->key,
        .per_thread = options->per_thread,
        .title = options->title != NULL ? options->title : "",
        .picture = options->picture != NULL ? options->picture : "",
        .row_limit = options->row_limit,
    };
    rondo__profile_out out = {.write = write, .user_data = user_data};
    g_writers[options->format](&report, &out);
    const rondo_status status = rondo__text_get_status(&out.text);
    if (status == RONDO_STATUS_OK) {
        rondo__profile_out_flush(&out);
    }
    rondo__text_deinit(&out.text);
    rondo__profile_table_deinit(&table);
    return status;
}

rondo_status rondo_profile_write(rondo_profile *profile, const rondo_profile_write_options *options,
                                 rondo_write_function write, void *user_data) {
    rondo_profile_write_options wanted = {.struct_size = sizeof wanted};
    RETURN_IF_ERROR(rondo__read_options(options, &wanted, sizeof wanted, __func__,
                                        "rondo_profile_write_options"));
    RETURN_IF_ERROR(check_write(profile, &wanted, write));
    const rondo__profile_records *records = &profile->store.records;
    if (wanted.event == NULL) {
        return write_records(records, &wanted, write, user_data);
    }
    const rondo__profile_span *event = rondo__profile_find_event(records, wanted.event);
    if (event == NULL) {
        return RONDO_FAIL(INVALID,
                          "no outermost event of the program is called \"%.80s\"; "
                          "rondo_profile_begin makes them",
                          wanted.event);
    }
    rondo__profile_slice slice;
    RETURN_IF_ERROR(rondo__profile_slice_init(records, event, &slice));
    const rondo_status status = write_records(&slice.records, &wanted, write, user_data);
    rondo__profile_slice_deinit(&slice);
    return status;
}
