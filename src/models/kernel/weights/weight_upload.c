// kernel/weights/weight_upload.c — see weight_upload.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/weights/weight_upload.h"

#include <string.h>

#include "base/crew.h"
#include "base/error.h"

enum {
    HALF_BYTES = 4 << 20,
    SENT_BYTES_MIN = 64 << 10,  // the driver takes less into its own queue
    // Below that a plain copy takes less time than pinning memory for it does.
    PINNED_BYTES_MIN = 1 << 20,
    PLAIN_ROW_BYTES = 64,  // of a constant that is sent as it is
};

typedef struct part {
    const rondo__weight_want *want;
    size_t first_row, row_bytes;
    char *to;  // where the first row goes
} part;

static bool is_plain(const rondo__weight_want *want) {
    return want->fill_rows == NULL && want->fill == NULL;
}

// The last row of a plain constant may be short.
static size_t get_row_bytes(const rondo__weight_want *want) {
    return is_plain(want) ? (size_t)PLAIN_ROW_BYTES : want->bytes / want->row_count;
}

static size_t get_row_count(const rondo__weight_want *want) {
    return is_plain(want) ? (want->bytes + PLAIN_ROW_BYTES - 1) / PLAIN_ROW_BYTES : want->row_count;
}

static size_t get_offset(const rondo__weight_want *want, size_t row) {
    const size_t offset = row * get_row_bytes(want);
    return offset < want->bytes ? offset : want->bytes;
}

static void fill_part(void *data, size_t first, size_t last) {
    const part *p = data;
    const rondo__weight_want *want = p->want;
    const size_t begin = get_offset(want, p->first_row + first);
    char *to = p->to + first * p->row_bytes;
    if (want->fill_rows != NULL) {
        want->fill_rows(want, p->first_row + first, p->first_row + last, to);
    } else {
        memcpy(to, (const char *)want->constant->data + begin,
               get_offset(want, p->first_row + last) - begin);
    }
}

static void fill(const rondo__weight_want *want, size_t first_row, size_t row_count, void *to) {
    part p = {.want = want, .first_row = first_row, .row_bytes = get_row_bytes(want), .to = to};
    rondo__crew_run(row_count, 2 * p.row_bytes, fill_part, &p);
}

void rondo__weight_fill_rows(const rondo__weight_want *want, void *bytes) {
    fill(want, 0, get_row_count(want), bytes);
}

bool rondo__weight_upload_suits(const rondo__weight_upload *upload,
                                const rondo__weight_want *want) {
    const size_t bytes_min =
        is_plain(want) && upload->pinned == NULL ? PINNED_BYTES_MIN : SENT_BYTES_MIN;
    return want->bytes >= bytes_min && (is_plain(want) || want->fill_rows != NULL) &&
           get_row_bytes(want) <= HALF_BYTES;
}

rondo_status rondo__weight_upload_send(rondo__weight_upload *upload, rondo_stream *stream,
                                       const rondo__weight_want *want, void *memory) {
    if (upload->pinned == NULL) {
        void *pinned = NULL;
        RETURN_IF_ERROR(rondo_memory_allocate(rondo_stream_get_device(stream), RONDO_MEMORY_PINNED,
                                              (size_t)2 * HALF_BYTES, &pinned));
        upload->pinned = pinned;
    }
    const size_t row_count = get_row_count(want);
    const size_t most = HALF_BYTES / get_row_bytes(want);
    size_t half = 0;
    rondo_status status = RONDO_STATUS_OK;
    for (size_t row = 0; row < row_count && status == RONDO_STATUS_OK; half = 1 - half) {
        const size_t count = row_count - row < most ? row_count - row : most;
        const size_t begin = get_offset(want, row);
        char *from = upload->pinned + half * HALF_BYTES;
        fill(want, row, count, from);
        // The copy before this one has left the other half, which is filled next.
        status = rondo_stream_synchronize(stream);
        if (status == RONDO_STATUS_OK) {
            status =
                rondo_stream_copy(stream, (char *)memory + begin, from,
                                  get_offset(want, row + count) - begin, RONDO_COPY_HOST_TO_DEVICE);
        }
        row += count;
    }
    const rondo_status waited = rondo_stream_synchronize(stream);
    return status != RONDO_STATUS_OK ? status : waited;
}

void rondo__weight_upload_end(rondo__weight_upload *upload, rondo_device *device) {
    rondo_memory_free(device, upload->pinned);
    upload->pinned = NULL;
}
