// backend/cuda/cupti/cupti_symbols.h — every function of CUPTI that Rondo calls; no include guard.
//
//   RONDO__CUPTI_SYMBOL(need, name, arguments)
//
// need: REQUIRED, or OPTIONAL, then the member may be NULL. Every function returns CUptiResult.
// SPDX-License-Identifier: Apache-2.0

RONDO__CUPTI_SYMBOL(REQUIRED, cuptiGetVersion, (uint32_t * out_version))
RONDO__CUPTI_SYMBOL(REQUIRED, cuptiGetResultString,
                    (rondo__cupti_result result, const char **out_text))
RONDO__CUPTI_SYMBOL(REQUIRED, cuptiSubscribe,
                    (rondo__cupti_subscriber * out_subscriber, rondo__cupti_callback callback,
                     void *user_data))
RONDO__CUPTI_SYMBOL(REQUIRED, cuptiUnsubscribe, (rondo__cupti_subscriber subscriber))
RONDO__CUPTI_SYMBOL(REQUIRED, cuptiGetTimestamp, (uint64_t * out_ns))
RONDO__CUPTI_SYMBOL(REQUIRED, cuptiActivityRegisterTimestampCallback, (rondo__cupti_clock clock))
RONDO__CUPTI_SYMBOL(REQUIRED, cuptiActivityRegisterCallbacks,
                    (rondo__cupti_request request, rondo__cupti_complete complete))
RONDO__CUPTI_SYMBOL(REQUIRED, cuptiActivityEnable, (int kind))
RONDO__CUPTI_SYMBOL(REQUIRED, cuptiActivityDisable, (int kind))
RONDO__CUPTI_SYMBOL(OPTIONAL, cuptiActivityEnableDriverApi, (uint32_t call, uint8_t is_enabled))
RONDO__CUPTI_SYMBOL(OPTIONAL, cuptiGetGraphExecId,
                    (rondo__cu_graph_exec exec, uint32_t *out_number))
RONDO__CUPTI_SYMBOL(REQUIRED, cuptiActivityFlushAll, (uint32_t flags))
RONDO__CUPTI_SYMBOL(REQUIRED, cuptiActivityGetNextRecord,
                    (uint8_t * buffer, size_t valid_bytes, rondo__cupti_record **in_out_record))
RONDO__CUPTI_SYMBOL(REQUIRED, cuptiActivityGetNumDroppedRecords,
                    (rondo__cu_context context, uint32_t stream, size_t *out_count))
RONDO__CUPTI_SYMBOL(REQUIRED, cuptiActivityPushExternalCorrelationId, (int kind, uint64_t id))
RONDO__CUPTI_SYMBOL(REQUIRED, cuptiActivityPopExternalCorrelationId, (int kind, uint64_t *out_id))
