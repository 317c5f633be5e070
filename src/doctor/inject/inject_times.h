// doctor/inject/inject_times.h — a window of device times, by CUPTI's activity records.
//
// CUPTI is loaded when the doctor asks for times, never linked. Where another tool has it, the
// window stays shut and a note says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/inject/inject_record.h"

// Opens the window when the number is odd, shuts it when it is even; numbers only grow. Cheap when
// nothing changes. A window that is open when the program ends is lost: CUPTI is not called then,
// since programs crashed in it.
void rondo__inject_follow_times(uint32_t wanted);

static inline void rondo__inject_follow(uint32_t wanted) {
    if (wanted != atomic_load_explicit(&rondo__inject_common.followed, memory_order_relaxed)) {
        rondo__inject_follow_times(wanted);
    }
}
