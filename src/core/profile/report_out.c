// profile/report_out.c — handing a report on, piece by piece.
// SPDX-License-Identifier: Apache-2.0
#include "profile/report.h"

enum { PASS_BYTES = 64 << 10 };

void rondo__profile_out_flush(rondo__profile_out *out) {
    if (out->text.length > 0 && !out->text.failed && !out->is_stopped) {
        out->is_stopped = !out->write(out->user_data, out->text.bytes, out->text.length);
    }
    out->text.length = 0;
}

bool rondo__profile_out_pass(rondo__profile_out *out) {
    if (out->text.length >= PASS_BYTES) {
        rondo__profile_out_flush(out);
    }
    return !out->is_stopped && !out->text.failed;
}
