// kernel/weights/bring_list.c — see bring_list.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/weights/bring_list.h"

#include "base/error.h"
#include "base/memory.h"

rondo_status rondo__bring_list_add(rondo__bring_list *list, size_t node, size_t input,
                                   const rondo__weight_want *want) {
    for (size_t i = 0; i < list->count; ++i) {
        if (list->list[i].node == node && list->list[i].input == input) {
            return RONDO_STATUS_OK;
        }
    }
    void *from = NULL;
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(list->list, list->capacity, list->count + 1));
    RETURN_IF_ERROR(rondo__weight_list_add(&list->weights, want, &from));
    list->list[list->count++] =
        (rondo__bring){.node = node, .input = input, .from = from, .bytes = want->bytes};
    return RONDO_STATUS_OK;
}

void rondo__bring_list_deinit(rondo__bring_list *list) {
    if (list->weights.account != NULL) {
        rondo__weight_list_cut(&list->weights, 0);
    }
    rondo__free(list->list);
    *list = (rondo__bring_list){0};
}
