# SPDX-License-Identifier: Apache-2.0
"""The C API for ctypes. Written by generate_raw.py from the headers: do not edit."""
# fmt: off
# ruff: noqa
from ctypes import (CFUNCTYPE, POINTER, Structure, Union, c_bool, c_char, c_char_p, c_double,
                    c_float, c_int, c_int8, c_int16, c_int32, c_int64, c_size_t, c_uint8,
                    c_uint16, c_uint32, c_uint64, c_void_p)

RONDO_STATUS_OK = 0
RONDO_STATUS_INVALID = 1
RONDO_STATUS_STATE = 2
RONDO_STATUS_UNSUPPORTED = 3
RONDO_STATUS_NO_MEMORY = 4
RONDO_STATUS_NO_DEVICE_MEMORY = 5
RONDO_STATUS_UNAVAILABLE = 6
RONDO_STATUS_DRIVER = 7
RONDO_STATUS_LOST = 8
RONDO_STATUS_BAD_DATA = 9
RONDO_STATUS_INTERNAL = 10
RONDO_STATUS_CANCELLED = 11
RONDO_STATUS_MISMATCH = 12
RONDO_LOG_ERROR = 0
RONDO_LOG_WARNING = 1
RONDO_LOG_INFO = 2
RONDO_LOG_DEBUG = 3
RONDO_FEATURE_IF = 0
RONDO_FEATURE_IF_ELSE = 1
RONDO_FEATURE_SWITCH = 2
RONDO_FEATURE_WHILE = 3
RONDO_FEATURE_HOST_IN_BODY = 4
RONDO_MEMORY_DEVICE = 0
RONDO_MEMORY_PINNED = 1
RONDO_EVENT_TIMED = 1
RONDO_EVENT_EXTERNAL = 2
RONDO_COPY_HOST_TO_DEVICE = 0
RONDO_COPY_DEVICE_TO_HOST = 1
RONDO_COPY_DEVICE_TO_DEVICE = 2
RONDO_LAUNCH_OVERLAP = 1
RONDO_LAUNCH_ONE_PARAMETER = 2
RONDO_LAUNCH_COOPERATIVE = 4
RONDO_CAPTURE_THREAD_LOCAL = 0
RONDO_CAPTURE_GLOBAL = 1
RONDO_CAPTURE_RELAXED = 2
RONDO_PAGEABLE_REFUSE = 0
RONDO_PAGEABLE_SNAPSHOT = 1
RONDO_KEEP_EXECUTABLE = 0
RONDO_KEEP_TEMPLATE = 1
RONDO_KEEP_TEMPLATE_ONLY = 2
RONDO_STEP_NOTHING = 0
RONDO_STEP_CAPTURED = 1
RONDO_STEP_RAN_EAGERLY = 2
RONDO_CAUSE_NONE = 0
RONDO_CAUSE_SYNCHRONIZE = 1
RONDO_CAUSE_ALLOCATION = 2
RONDO_CAUSE_LEGACY_STREAM = 3
RONDO_CAUSE_PAGEABLE_COPY = 4
RONDO_CAUSE_UNJOINED_STREAM = 5
RONDO_CAUSE_OTHER_THREAD = 6
RONDO_CAUSE_OTHER_DEVICE = 7
RONDO_CAUSE_ABORTED = 8
RONDO_CAUSE_OUT_OF_MEMORY = 9
RONDO_CAUSE_WORK_REFUSED = 10
RONDO_CAUSE_STREAM_DESTROYED = 11
RONDO_CAUSE_INSTANTIATION = 12
RONDO_CAUSE_MERGE = 13
RONDO_CAUSE_OUTSIDE_WORK = 14
RONDO_CAUSE_UNSEEN_CALL = 15
RONDO_CAUSE_OTHER = 16
RONDO_DTYPE_NONE = 0
RONDO_DTYPE_F32 = 1
RONDO_DTYPE_F64 = 2
RONDO_DTYPE_F16 = 3
RONDO_DTYPE_BF16 = 4
RONDO_DTYPE_I8 = 5
RONDO_DTYPE_I16 = 6
RONDO_DTYPE_I32 = 7
RONDO_DTYPE_I64 = 8
RONDO_DTYPE_U8 = 9
RONDO_DTYPE_U16 = 10
RONDO_DTYPE_U32 = 11
RONDO_DTYPE_U64 = 12
RONDO_DTYPE_BOOL = 13
RONDO_DTYPE_STRING = 14
RONDO_DTYPE_SEQUENCE = 15
RONDO_DTYPE_OPTIONAL = 16
RONDO_DTYPE_C64 = 17
RONDO_DTYPE_C128 = 18
RONDO_DTYPE_I4 = 19
RONDO_DTYPE_U4 = 20
RONDO_DTYPE_I2 = 21
RONDO_DTYPE_U2 = 22
RONDO_DTYPE_F4E2M1 = 23
RONDO_DTYPE_F8E4M3FN = 24
RONDO_DTYPE_F8E4M3FNUZ = 25
RONDO_DTYPE_F8E5M2 = 26
RONDO_DTYPE_F8E5M2FNUZ = 27
RONDO_DTYPE_F8E8M0 = 28
RONDO_DTYPE_COUNT = 29
RONDO_RANK_MAX = 8
RONDO_TEXT_PLAIN = 0
RONDO_TEXT_JSON = 1
RONDO_TEXT_DOT = 2
RONDO_TEXT_SVG = 3
RONDO_NODE_KERNEL = 0
RONDO_NODE_HOST = 1
RONDO_NODE_COPY = 2
RONDO_NODE_FILL = 3
RONDO_NODE_EMPTY = 4
RONDO_NODE_EVENT_WAIT = 5
RONDO_NODE_EVENT_RECORD = 6
RONDO_NODE_CHILD = 7
RONDO_NODE_CONDITIONAL = 8
RONDO_NODE_OTHER = 9
RONDO_UPDATE_PATCHED = 0
RONDO_UPDATE_INSTANTIATED = 1
RONDO_SYMBOL_FUNCTION = 0
RONDO_SYMBOL_MEMORY = 1
RONDO_SYMBOL_EVENT = 2
RONDO_SYMBOL_HOST_FUNCTION = 3
RONDO_SCOPE_IF = 0
RONDO_SCOPE_IF_ELSE = 1
RONDO_SCOPE_SWITCH = 2
RONDO_SCOPE_WHILE = 3
RONDO_TOGGLE_KEEP = 0
RONDO_TOGGLE_ENABLE = 1
RONDO_TOGGLE_DISABLE = 2
RONDO_STEPPER_EAGER = 0
RONDO_STEPPER_RECORDS = 1
RONDO_STEPPER_PATCHES = 2
RONDO_PROFILE_SOURCE_AUTO = 0
RONDO_PROFILE_SOURCE_CUPTI = 1
RONDO_PROFILE_SOURCE_EVENTS = 2
RONDO_PROFILE_SOURCE_NONE = 3
RONDO_PROFILE_BY_TOTAL = 0
RONDO_PROFILE_BY_CALLS = 1
RONDO_PROFILE_BY_MIN = 2
RONDO_PROFILE_BY_MAX = 3
RONDO_PROFILE_BY_AVERAGE = 4
RONDO_PROFILE_BY_GPU = 5
RONDO_PROFILE_USER = 0
RONDO_PROFILE_RUN = 1
RONDO_PROFILE_PLAN = 2
RONDO_PROFILE_TUNE = 3
RONDO_PROFILE_CAPTURE = 4
RONDO_PROFILE_INSTANTIATE = 5
RONDO_PROFILE_PATCH = 6
RONDO_PROFILE_REPLAY = 7
RONDO_PROFILE_OP = 8
RONDO_PROFILE_COMPUTE = 9
RONDO_PROFILE_COPY = 10
RONDO_PROFILE_WAIT = 11
RONDO_PROFILE_ALLOCATE = 12
RONDO_PROFILE_PLAIN = 0
RONDO_PROFILE_JSON = 1
RONDO_PROFILE_TRACE = 2
RONDO_PROFILE_HTML = 3
RONDO_CACHE_MEASURED = 0
RONDO_CACHE_ALWAYS_CAPTURE = 1
RONDO_CACHE_NEVER_CAPTURE = 2
RONDO_CACHE_NOTHING = 0
RONDO_CACHE_RAN_EAGERLY = 1
RONDO_CACHE_REPLAYED = 2
RONDO_CACHE_CAPTURED_AND_REPLAYED = 3
RONDO_CACHE_UPDATED = 4
RONDO_DLPACK_MAJOR = 1
RONDO_DLPACK_MINOR = 1
RONDO_DLPACK_CPU = 1
RONDO_DLPACK_CUDA = 2
RONDO_DLPACK_CUDA_HOST = 3
RONDO_DLPACK_CUDA_MANAGED = 13
RONDO_DLPACK_INT = 0
RONDO_DLPACK_UINT = 1
RONDO_DLPACK_FLOAT = 2
RONDO_DLPACK_BFLOAT = 4
RONDO_DLPACK_COMPLEX = 5
RONDO_DLPACK_BOOL = 6
RONDO_DLPACK_FLOAT8_E4M3FN = 10
RONDO_DLPACK_FLOAT8_E4M3FNUZ = 11
RONDO_DLPACK_FLOAT8_E5M2 = 12
RONDO_DLPACK_FLOAT8_E5M2FNUZ = 13
RONDO_DLPACK_FLOAT8_E8M0FNU = 14
RONDO_DLPACK_FLOAT4_E2M1FN = 17
RONDO_ARGUMENT_POINTER = 0
RONDO_ARGUMENT_INT8 = 1
RONDO_ARGUMENT_INT16 = 2
RONDO_ARGUMENT_INT32 = 3
RONDO_ARGUMENT_INT64 = 4
RONDO_ARGUMENT_UINT8 = 5
RONDO_ARGUMENT_UINT16 = 6
RONDO_ARGUMENT_UINT32 = 7
RONDO_ARGUMENT_UINT64 = 8
RONDO_ARGUMENT_BOOL = 9
RONDO_ARGUMENT_FLOAT = 10
RONDO_ARGUMENT_DOUBLE = 11
RONDO_ARGUMENT_STRUCT = 12
RONDO_LEARN_CHEAPEST = 0
RONDO_LEARN_EAGER = 1
RONDO_LEARN_REFUSE = 2
RONDO_LEARN_CACHE = 3
RONDO_LEARN_FIXED = 4
RONDO_LEARN_RECAPTURE = 5
RONDO_LEARNED_NOT_YET = 0
RONDO_LEARNED_PROVED = 1
RONDO_LEARNED_REFUSED = 2
RONDO_REFUSAL_NONE = 0
RONDO_REFUSAL_STEP_FAILED = 1
RONDO_REFUSAL_NODES = 2
RONDO_REFUSAL_FUNCTION = 3
RONDO_REFUSAL_WORD = 4
RONDO_REFUSAL_AMBIGUOUS = 5
RONDO_REFUSAL_OPAQUE = 6
RONDO_REFUSAL_FIXED = 7
RONDO_REFUSAL_INNER = 8
RONDO_REFUSAL_MEMORY = 9
RONDO_REFUSAL_TABLE = 10
RONDO_REFUSAL_UNSEEN = 11
RONDO_REFUSAL_CHANGED = 12
RONDO_REFUSAL_LAUNCH = 13
RONDO_REFUSAL_EXCLUDED = 14
RONDO_ATTRIBUTE_INT = 1
RONDO_ATTRIBUTE_FLOAT = 2
RONDO_ATTRIBUTE_STRING = 3
RONDO_ATTRIBUTE_TENSOR = 4
RONDO_ATTRIBUTE_INTS = 5
RONDO_ATTRIBUTE_FLOATS = 6
RONDO_ATTRIBUTE_STRINGS = 7
RONDO_ATTRIBUTE_GRAPH = 8
RONDO_PARAMETER_COPIED = 0
RONDO_PARAMETER_SHARED = 1
RONDO_PARAMETER_INPUT = 2
RONDO_START_NONE = 0
RONDO_START_CONSTANT = 1
RONDO_START_UNIFORM = 2
RONDO_START_NORMAL = 3
RONDO_START_XAVIER_UNIFORM = 4
RONDO_START_XAVIER_NORMAL = 5
RONDO_START_HE_UNIFORM = 6
RONDO_START_HE_NORMAL = 7
RONDO_START_TENSOR = 8
RONDO_OP_CAPTURE_UNKNOWN = 0
RONDO_OP_CAPTURE_YES = 1
RONDO_OP_CAPTURE_NO = 2
RONDO_OP_IMPURE = 1
RONDO_GRAPHS_AUTO = 0
RONDO_GRAPHS_ON = 1
RONDO_GRAPHS_OFF = 2
RONDO_GRAPHS_MEASURED = 3
RONDO_BRANCHES_AUTO = 0
RONDO_BRANCHES_ON = 1
RONDO_BRANCHES_OFF = 2
RONDO_TUNING_AUTO = 0
RONDO_TUNING_OFF = 1
RONDO_TUNING_FAST = 2
RONDO_TUNING_FULL = 3
RONDO_TUNING_KEEP = 4
RONDO_SELF_CHECK_FAIL = 0
RONDO_SELF_CHECK_KEEP_EAGER = 1
RONDO_PLACEMENT_OP = 0
RONDO_PLACEMENT_TRANSFER = 1
RONDO_PLACEMENT_TENSOR = 2
RONDO_OPTIMIZER_SGD = 0
RONDO_OPTIMIZER_ADAM = 1
RONDO_OPTIMIZER_ADAMW = 2
RONDO_OPTIMIZER_ADAGRAD = 3
RONDO_SCHEDULE_CONSTANT = 0
RONDO_SCHEDULE_STEP = 1
RONDO_SCHEDULE_COSINE = 2
RONDO_SCHEDULE_LINEAR = 3
RONDO_TRANSPORT_AUTO = 0
RONDO_TRANSPORT_NCCL = 1
RONDO_TRANSPORT_MPI = 2
RONDO_TRANSPORT_SOCKETS = 3
RONDO_REDUCTION_SUM = 0
RONDO_REDUCTION_AVERAGE = 1
RONDO_DLPACK_FLAG_IS_COPIED = 2
RONDO_DLPACK_FLAG_READ_ONLY = 1
RONDO_DLPACK_FLAG_SUBBYTE_PADDED = 4
RONDO_VERSION_MAJOR = 0
RONDO_VERSION_MINOR = 1
RONDO_VERSION_NUMBER = 100
RONDO_VERSION_PATCH = 0

RONDO_REFUSAL_TEXTS = {
    0: ('NONE', 'nothing was refused', ''),
    1: ('STEP_FAILED', 'the step failed for values of its domain', 'describe the domain more narrowly, or mend the step for these values'),
    2: ('NODES', 'the step records other nodes or edges for other values', 'keep the values apart that lead to other nodes: one learned step for each'),
    3: ('FUNCTION', 'a node calls another function for other values', 'describe the domain more narrowly: larger alignments, multiples, a smaller range'),
    4: ('WORD', 'a word depends on the arguments in a way that is not among those that are learned, or on something else', "give the word's value as an argument of its own, or keep hidden state out of the step"),
    5: ('AMBIGUOUS', 'a word has two explanations that no values could keep apart', 'describe the domain more widely'),
    6: ('OPAQUE', 'a node does not show its arguments', 'launch it with separate parameters, on a driver of 12.4 or later'),
    7: ('FIXED', 'a word depends on the arguments in a node that cannot be patched', 'see the message for what such a node would have to be'),
    8: ('INNER', 'a word depends on the arguments inside a conditional body or a recorded graph', 'keep what changes at the outermost level'),
    9: ('MEMORY', 'the step takes memory from a pool, the size of which depends on the arguments', 'take what the largest values need'),
    10: ('TABLE', 'the step writes host memory that a recorded copy reads, which no replay writes', 'hand the values to a node, or write that memory outside the step before each run'),
    11: ('UNSEEN', 'no word of any node depends on an argument (a warning: all recordings agree)', 'leave the argument out, unless the step hands it on through memory, which no replay does'),
    12: ('CHANGED', 'the step recorded something else than was foretold, though all words were explained before', 'keep hidden state out of the step, such as counters; values may be rare special cases'),
    13: ('LAUNCH', 'a kernel is launched with other attributes for other values: clusters, priority, a window of memory to keep in the cache', 'keep the values apart that lead to other attributes, which no patch can change: one learned step for each'),
    14: ('EXCLUDED', 'the step fails for some values (a warning: such runs are recorded)', 'describe the domain more narrowly, or say is_exclusive of pointers that share no memory'),
}

RONDO_DTYPE_TEXTS = {
    0: ('NONE', 'none'),
    1: ('F32', 'f32'),
    2: ('F64', 'f64'),
    3: ('F16', 'f16'),
    4: ('BF16', 'bf16'),
    5: ('I8', 'i8'),
    6: ('I16', 'i16'),
    7: ('I32', 'i32'),
    8: ('I64', 'i64'),
    9: ('U8', 'u8'),
    10: ('U16', 'u16'),
    11: ('U32', 'u32'),
    12: ('U64', 'u64'),
    13: ('BOOL', 'bool'),
    14: ('STRING', 'string'),
    15: ('SEQUENCE', 'sequence'),
    16: ('OPTIONAL', 'optional'),
    17: ('C64', 'c64'),
    18: ('C128', 'c128'),
    19: ('I4', 'i4'),
    20: ('U4', 'u4'),
    21: ('I2', 'i2'),
    22: ('U2', 'u2'),
    23: ('F4E2M1', 'f4e2m1'),
    24: ('F8E4M3FN', 'f8e4m3fn'),
    25: ('F8E4M3FNUZ', 'f8e4m3fnuz'),
    26: ('F8E5M2', 'f8e5m2'),
    27: ('F8E5M2FNUZ', 'f8e5m2fnuz'),
    28: ('F8E8M0', 'f8e8m0'),
}


class rondo_error(Structure):
    pass


rondo_error._fields_ = [
    ("struct_size", c_size_t),
    ("status", c_int32),
    ("driver_code", c_int32),
    ("driver_name", c_char * 48),
    ("op", c_char * 64),
    ("call", c_char * 48),
    ("message", c_char * 480),
    ("file", c_char_p),
    ("line", c_int32),
    ("sequence", c_uint64),
]

rondo_log_function = CFUNCTYPE(None, c_void_p, c_int32, c_char_p)


class rondo_device_info(Structure):
    pass


rondo_device_info._fields_ = [
    ("struct_size", c_size_t),
    ("name", c_char * 32),
    ("description", c_char * 128),
    ("reason", c_char * 480),
    ("available", c_bool),
    ("memory_bytes", c_uint64),
    ("free_bytes", c_uint64),
    ("compute_units", c_int32),
    ("arch_major", c_int32),
    ("arch_minor", c_int32),
    ("driver_version", c_int32),
]


class rondo_stream_options(Structure):
    pass


rondo_stream_options._fields_ = [
    ("struct_size", c_size_t),
    ("priority", c_int32),
]

rondo_host_function = CFUNCTYPE(None, c_void_p)


class rondo_launch(Structure):
    pass


rondo_launch._fields_ = [
    ("struct_size", c_size_t),
    ("name", c_char_p),
    ("function", c_void_p),
    ("grid", c_uint32 * 3),
    ("block", c_uint32 * 3),
    ("shared_bytes", c_uint32),
    ("arguments", c_void_p),
    ("argument_bytes", c_size_t),
    ("flags", c_uint32),
    ("cluster", c_uint32 * 3),
    ("priority", c_int32),
]


class rondo_graph_options(Structure):
    pass


rondo_graph_options._fields_ = [
    ("struct_size", c_size_t),
    ("keep", c_int32),
    ("label", c_char_p),
    ("arena", c_void_p),
    ("pageable_sources", c_int32),
    ("check_addresses", c_bool),
]

rondo_step_function = CFUNCTYPE(c_int32, c_void_p, c_void_p)


class rondo_step_options(Structure):
    pass


rondo_step_options._fields_ = [
    ("struct_size", c_size_t),
    ("mode", c_int32),
    ("capture_only", c_bool),
]


class rondo_graph_stats(Structure):
    pass


rondo_graph_stats._fields_ = [
    ("struct_size", c_size_t),
    ("node_count", c_uint64),
    ("kernel_count", c_uint64),
    ("copy_count", c_uint64),
    ("replay_count", c_uint64),
    ("capture_ns", c_uint64),
    ("instantiate_ns", c_uint64),
    ("device_bytes", c_uint64),
    ("device_bytes_is_estimate", c_bool),
    ("executed_count", c_uint64),
    ("arena_live_bytes", c_uint64),
    ("arena_reserved_bytes", c_uint64),
    ("arena_peak_bytes", c_uint64),
]


class rondo_capture_report(Structure):
    pass


rondo_capture_report._fields_ = [
    ("struct_size", c_size_t),
    ("status", c_int32),
    ("cause", c_int32),
    ("what", c_char_p),
    ("advice", c_char_p),
    ("message", c_char * 480),
    ("call", c_char * 48),
    ("op", c_char * 64),
    ("label", c_char * 128),
    ("driver_code", c_int32),
    ("driver_name", c_char * 48),
    ("file", c_char_p),
    ("line", c_int32),
    ("stream_number", c_uint32),
    ("thread_number", c_uint64),
    ("thread_name", c_char * 16),
    ("is_other_thread", c_bool),
    ("has_last_node", c_bool),
    ("is_index_exact", c_bool),
    ("last_node_index", c_uint64),
    ("last_node_name", c_char * 64),
    ("last_node_label", c_char * 128),
    ("last_node_depth", c_uint32),
]


class rondo_shape(Structure):
    pass


rondo_shape._fields_ = [
    ("rank", c_int32),
    ("extent", c_int64 * 8),
]


class rondo_string(Structure):
    pass


rondo_string._fields_ = [
    ("data", c_char_p),
    ("size", c_size_t),
]


class rondo_tensor(Structure):
    pass


rondo_tensor._fields_ = [
    ("dtype", c_int32),
    ("shape", rondo_shape),
    ("data", c_void_p),
    ("storage", c_void_p),
    ("device", c_void_p),
]

rondo_write_function = CFUNCTYPE(c_bool, c_void_p, c_char_p, c_size_t)


class rondo_graph_node(Structure):
    pass


rondo_graph_node._fields_ = [
    ("struct_size", c_size_t),
    ("kind", c_int32),
    ("name", c_char_p),
    ("label", c_char_p),
    ("grid", c_uint32 * 3),
    ("block", c_uint32 * 3),
    ("shared_bytes", c_uint32),
    ("copy_kind", c_int32),
    ("destination", c_void_p),
    ("source", c_void_p),
    ("byte_count", c_uint64),
    ("fill_value", c_uint32),
    ("element_bytes", c_uint32),
    ("width", c_uint64),
    ("height", c_uint64),
    ("depth", c_uint64),
    ("pitch_bytes", c_uint64),
    ("event", c_void_p),
    ("predicate", c_void_p),
    ("branch_count", c_uint32),
    ("inner_count", c_uint64),
    ("native", c_void_p),
]


class rondo_graph_edge(Structure):
    pass


rondo_graph_edge._fields_ = [
    ("from", c_uint64),
    ("to", c_uint64),
    ("is_programmatic", c_bool),
]


class rondo_stall(Structure):
    pass


rondo_stall._fields_ = [
    ("struct_size", c_size_t),
    ("device", c_char_p),
    ("driver_version", c_int32),
    ("graph", c_char_p),
    ("last_label", c_char_p),
    ("mark", c_uint64),
    ("mark_count", c_uint64),
    ("stream", c_uint32),
    ("waited_ns", c_uint64),
    ("text", c_char_p),
]

rondo_stall_function = CFUNCTYPE(None, c_void_p, POINTER(rondo_stall))


class rondo_watchdog_options(Structure):
    pass


rondo_watchdog_options._fields_ = [
    ("struct_size", c_size_t),
    ("timeout_ns", c_uint64),
    ("function", rondo_stall_function),
    ("user_data", c_void_p),
]


class rondo_difference(Structure):
    pass


rondo_difference._fields_ = [
    ("struct_size", c_size_t),
    ("place", c_char * 40),
    ("label", c_char * 128),
    ("field", c_char * 40),
    ("before", c_char * 72),
    ("after", c_char * 72),
]


class rondo_update_report(Structure):
    pass


rondo_update_report._fields_ = [
    ("struct_size", c_size_t),
    ("result", c_int32),
    ("has_difference", c_bool),
    ("difference", rondo_difference),
]


class rondo_graph_symbol(Structure):
    pass


rondo_graph_symbol._fields_ = [
    ("name", c_char_p),
    ("address", c_void_p),
    ("byte_count", c_size_t),
    ("kind", c_int32),
]

rondo_body_function = CFUNCTYPE(c_int32, c_void_p, c_void_p)


class rondo_node(Structure):
    pass


rondo_node._fields_ = [
    ("recording", c_uint64),
    ("number", c_uint64),
]


class rondo_work(Structure):
    pass


rondo_work._fields_ = [
    ("struct_size", c_size_t),
    ("kind", c_int32),
    ("launch", POINTER(rondo_launch)),
    ("name", c_char_p),
    ("function", rondo_host_function),
    ("arguments", c_void_p),
    ("argument_bytes", c_size_t),
    ("copy_kind", c_int32),
    ("source", c_void_p),
    ("destination", c_void_p),
    ("byte_count", c_size_t),
    ("fill_value", c_uint32),
    ("element_bytes", c_uint32),
    ("element_count", c_size_t),
    ("graph", c_void_p),
    ("event", c_void_p),
    ("scope", c_int32),
    ("predicate", c_void_p),
    ("bodies", POINTER(rondo_body_function)),
    ("body_count", c_uint32),
    ("user_data", c_void_p),
]


class rondo_node_state(Structure):
    pass


rondo_node_state._fields_ = [
    ("struct_size", c_size_t),
    ("kind", c_int32),
    ("name", c_char_p),
    ("is_enabled", c_bool),
    ("can_be_patched", c_bool),
    ("function", c_void_p),
    ("grid", c_uint32 * 3),
    ("block", c_uint32 * 3),
    ("shared_bytes", c_uint32),
    ("arguments", c_void_p),
    ("argument_bytes", c_size_t),
    ("copy_kind", c_int32),
    ("source", c_void_p),
    ("destination", c_void_p),
    ("byte_count", c_uint64),
    ("fill_value", c_uint32),
    ("element_bytes", c_uint32),
    ("cluster", c_uint32 * 3),
    ("is_cooperative", c_bool),
    ("priority", c_int32),
    ("event", c_void_p),
    ("predicate", c_void_p),
]


class rondo_patch(Structure):
    pass


rondo_patch._fields_ = [
    ("node", rondo_node),
    ("work", POINTER(rondo_work)),
    ("toggle", c_int32),
]


class rondo_stepper_options(Structure):
    pass


rondo_stepper_options._fields_ = [
    ("struct_size", c_size_t),
    ("eager_steps", c_uint32),
    ("records_at_once", c_bool),
    ("mode", c_int32),
    ("label", c_char_p),
    ("measures", c_bool),
]


class rondo_profile_options(Structure):
    pass


rondo_profile_options._fields_ = [
    ("struct_size", c_size_t),
    ("source", c_int32),
    ("record_limit", c_uint64),
]


class rondo_profile_summary(Structure):
    pass


rondo_profile_summary._fields_ = [
    ("struct_size", c_size_t),
    ("total_ns", c_uint64),
    ("computation_ns", c_uint64),
    ("framework_ns", c_uint64),
    ("device_ns", c_uint64),
    ("async_calls", c_uint64),
    ("async_ns", c_uint64),
    ("async_bytes", c_uint64),
    ("sync_calls", c_uint64),
    ("sync_ns", c_uint64),
    ("sync_bytes", c_uint64),
    ("thread_count", c_uint64),
    ("span_count", c_uint64),
    ("work_count", c_uint64),
    ("dropped_count", c_uint64),
    ("source", c_char_p),
]


class rondo_profile_row(Structure):
    pass


rondo_profile_row._fields_ = [
    ("struct_size", c_size_t),
    ("parent", c_uint64),
    ("depth", c_uint32),
    ("thread", c_uint32),
    ("category", c_int32),
    ("is_device_work", c_bool),
    ("name", c_char_p),
    ("detail", c_char_p),
    ("calls", c_uint64),
    ("total_ns", c_uint64),
    ("cpu_ns", c_uint64),
    ("gpu_ns", c_uint64),
    ("min_ns", c_uint64),
    ("max_ns", c_uint64),
    ("bytes", c_uint64),
]


class rondo_profile_write_options(Structure):
    pass


rondo_profile_write_options._fields_ = [
    ("struct_size", c_size_t),
    ("format", c_int32),
    ("key", c_int32),
    ("per_thread", c_bool),
    ("title", c_char_p),
    ("event", c_char_p),
    ("picture", c_char_p),
    ("row_limit", c_size_t),
]


class rondo_log_record(Structure):
    pass


rondo_log_record._fields_ = [
    ("struct_size", c_size_t),
    ("level", c_int32),
    ("message", c_char_p),
    ("room", c_char_p),
    ("file", c_char_p),
    ("line", c_int32),
    ("thread", c_uint64),
    ("time_ns", c_uint64),
]

rondo_log_record_function = CFUNCTYPE(None, c_void_p, POINTER(rondo_log_record))


class rondo_pool_options(Structure):
    pass


rondo_pool_options._fields_ = [
    ("struct_size", c_size_t),
    ("kind", c_int32),
    ("limit_bytes", c_uint64),
]


class rondo_pool_stats(Structure):
    pass


rondo_pool_stats._fields_ = [
    ("struct_size", c_size_t),
    ("live_bytes", c_uint64),
    ("live_count", c_uint64),
    ("pending_bytes", c_uint64),
    ("reserved_bytes", c_uint64),
    ("live_peak_bytes", c_uint64),
    ("reserved_peak_bytes", c_uint64),
    ("allocation_count", c_uint64),
    ("driver_call_count", c_uint64),
]


class rondo_arena_options(Structure):
    pass


rondo_arena_options._fields_ = [
    ("struct_size", c_size_t),
    ("allows_any_order", c_bool),
]


class rondo_arena_stats(Structure):
    pass


rondo_arena_stats._fields_ = [
    ("struct_size", c_size_t),
    ("live_bytes", c_uint64),
    ("live_count", c_uint64),
    ("reserved_bytes", c_uint64),
    ("live_peak_bytes", c_uint64),
    ("reserved_peak_bytes", c_uint64),
    ("graph_count", c_uint64),
]


class rondo_generator_state(Structure):
    pass


rondo_generator_state._fields_ = [
    ("seed", c_uint64),
    ("offset", c_uint64),
]


class rondo_random_range(Structure):
    pass


rondo_random_range._fields_ = [
    ("state", POINTER(c_uint64)),
    ("relative", c_uint64),
    ("count", c_uint64),
]


class rondo_graph_cache_options(Structure):
    pass


rondo_graph_cache_options._fields_ = [
    ("struct_size", c_size_t),
    ("label", c_char_p),
    ("entry_limit", c_size_t),
    ("byte_limit", c_uint64),
    ("key_limit", c_size_t),
    ("policy", c_int32),
    ("mode", c_int32),
    ("arena", c_void_p),
    ("pageable_sources", c_int32),
    ("capture_in_background", c_bool),
    ("user_data_bytes", c_size_t),
]


class rondo_graph_cache_stats(Structure):
    pass


rondo_graph_cache_stats._fields_ = [
    ("struct_size", c_size_t),
    ("hit_count", c_uint64),
    ("miss_count", c_uint64),
    ("eager_count", c_uint64),
    ("capture_count", c_uint64),
    ("capture_fail_count", c_uint64),
    ("instantiate_count", c_uint64),
    ("update_count", c_uint64),
    ("eviction_count", c_uint64),
    ("give_up_count", c_uint64),
    ("entry_count", c_uint64),
    ("pinned_count", c_uint64),
    ("key_count", c_uint64),
    ("bytes", c_uint64),
]


class rondo_graph_cache_entry(Structure):
    pass


rondo_graph_cache_entry._fields_ = [
    ("struct_size", c_size_t),
    ("has_graph", c_bool),
    ("is_pinned", c_bool),
    ("run_count", c_uint64),
    ("eager_count", c_uint64),
    ("replay_count", c_uint64),
    ("capture_count", c_uint64),
    ("eager_ns", c_uint64),
    ("replay_ns", c_uint64),
    ("eager_device_ns", c_uint64),
    ("replay_device_ns", c_uint64),
    ("capture_ns", c_uint64),
    ("instantiate_ns", c_uint64),
    ("update_ns", c_uint64),
    ("payback_run_count", c_uint64),
    ("node_count", c_uint64),
    ("bytes", c_uint64),
    ("reason", c_char * 256),
]


class rondo_cache_key(Structure):
    pass


rondo_cache_key._fields_ = [
    ("bytes", c_void_p),
    ("byte_count", c_size_t),
]


class rondo_dlpack_device(Structure):
    pass


rondo_dlpack_device._fields_ = [
    ("type", c_int32),
    ("id", c_int32),
]


class rondo_dlpack_type(Structure):
    pass


rondo_dlpack_type._fields_ = [
    ("code", c_uint8),
    ("bits", c_uint8),
    ("lanes", c_uint16),
]


class rondo_dlpack_tensor(Structure):
    pass


rondo_dlpack_tensor._fields_ = [
    ("data", c_void_p),
    ("device", rondo_dlpack_device),
    ("rank", c_int32),
    ("type", rondo_dlpack_type),
    ("extents", POINTER(c_int64)),
    ("strides", POINTER(c_int64)),
    ("byte_offset", c_uint64),
]


class rondo_dlpack_managed(Structure):
    pass


rondo_dlpack_managed._fields_ = [
    ("tensor", rondo_dlpack_tensor),
    ("context", c_void_p),
    ("deleter", CFUNCTYPE(None, POINTER(rondo_dlpack_managed))),
]


class rondo_dlpack_versioned(Structure):
    pass


rondo_dlpack_versioned._fields_ = [
    ("major", c_uint32),
    ("minor", c_uint32),
    ("context", c_void_p),
    ("deleter", CFUNCTYPE(None, POINTER(rondo_dlpack_versioned))),
    ("flags", c_uint64),
    ("tensor", rondo_dlpack_tensor),
]


class rondo_dlpack_info(Structure):
    pass


rondo_dlpack_info._fields_ = [
    ("struct_size", c_size_t),
    ("device", rondo_dlpack_device),
    ("type", rondo_dlpack_type),
    ("is_read_only", c_bool),
    ("is_copied", c_bool),
]


class rondo_value(Union):
    pass


rondo_value._fields_ = [
    ("pointer", c_void_p),
    ("integer", c_int64),
    ("unsigned_integer", c_uint64),
    ("single", c_float),
    ("number", c_double),
    ("bytes", c_void_p),
]


class rondo_argument(Structure):
    pass


rondo_argument._fields_ = [
    ("struct_size", c_size_t),
    ("name", c_char_p),
    ("kind", c_int32),
    ("bytes", c_uint64),
    ("extent", c_uint64),
    ("alignment", c_uint64),
    ("memory", c_int32),
    ("is_unchecked", c_bool),
    ("least", rondo_value),
    ("most", rondo_value),
    ("multiple_of", c_uint64),
    ("values", POINTER(rondo_value)),
    ("value_count", c_size_t),
    ("is_exclusive", c_bool),
]

rondo_learned_function = CFUNCTYPE(c_int32, c_void_p, POINTER(rondo_value), c_void_p)


class rondo_learned_options(Structure):
    pass


rondo_learned_options._fields_ = [
    ("struct_size", c_size_t),
    ("label", c_char_p),
    ("fallback", c_int32),
    ("arena", c_void_p),
    ("mode", c_int32),
    ("check_addresses", c_bool),
    ("check_every", c_uint32),
    ("seed", c_uint64),
    ("cache", POINTER(rondo_graph_cache_options)),
    ("learn_ns", c_uint64),
    ("draws_wanted", c_uint64),
    ("measures", c_bool),
]


class rondo_learned_report(Structure):
    pass


rondo_learned_report._fields_ = [
    ("struct_size", c_size_t),
    ("state", c_int32),
    ("node_count", c_uint64),
    ("word_count", c_uint64),
    ("slot_count", c_uint64),
    ("changing_count", c_uint64),
    ("recording_count", c_uint64),
    ("learn_ns", c_uint64),
    ("refusal", c_int32),
    ("what", c_char_p),
    ("advice", c_char_p),
    ("has_node", c_bool),
    ("node", c_uint64),
    ("node_name", c_char * 64),
    ("node_label", c_char * 128),
    ("word", c_char * 48),
    ("message", c_char * 480),
    ("step_status", c_int32),
    ("fallback", c_int32),
    ("fallback_ns", c_uint64),
    ("finding_count", c_uint64),
    ("unseen_count", c_uint64),
    ("excluded_count", c_uint64),
    ("special_count", c_uint64),
    ("draw_count", c_uint64),
    ("missed_share", c_double),
]


class rondo_learned_finding(Structure):
    pass


rondo_learned_finding._fields_ = [
    ("struct_size", c_size_t),
    ("refusal", c_int32),
    ("is_warning", c_bool),
    ("what", c_char_p),
    ("advice", c_char_p),
    ("has_node", c_bool),
    ("node", c_uint64),
    ("node_name", c_char * 64),
    ("node_label", c_char * 128),
    ("word", c_char * 48),
    ("message", c_char * 480),
]


class rondo_learned_slot(Structure):
    pass


rondo_learned_slot._fields_ = [
    ("struct_size", c_size_t),
    ("node", c_uint64),
    ("node_name", c_char * 64),
    ("node_label", c_char * 128),
    ("word", c_char * 48),
    ("bytes", c_uint32),
    ("argument", c_uint32),
    ("second", c_uint32),
    ("formula", c_char * 96),
]


class rondo_learned_stats(Structure):
    pass


rondo_learned_stats._fields_ = [
    ("struct_size", c_size_t),
    ("run_count", c_uint64),
    ("unchanged_count", c_uint64),
    ("patched_node_count", c_uint64),
    ("fallback_count", c_uint64),
    ("check_count", c_uint64),
    ("recording_count", c_uint64),
    ("fallback_eager_count", c_uint64),
]


class rondo_allocator(Structure):
    pass


rondo_allocator._fields_ = [
    ("struct_size", c_size_t),
    ("allocate", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_size_t)),
    ("reallocate", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t)),
    ("free", CFUNCTYPE(None, c_void_p, c_void_p)),
    ("user_data", c_void_p),
]


class rondo_port(Structure):
    pass


rondo_port._fields_ = [
    ("struct_size", c_size_t),
    ("name", c_char_p),
    ("dtype", c_int32),
    ("rank", c_int32),
    ("extent", c_int64 * 8),
    ("symbol", c_char_p * 8),
    ("item_dtype", c_int32 * 2),
    ("labels", POINTER(rondo_tensor)),
]


class rondo_load_options(Structure):
    pass


rondo_load_options._fields_ = [
    ("struct_size", c_size_t),
    ("memory_limit_bytes", c_uint64),
    ("allow_newer_opset", c_bool),
]

rondo_unsupported_function = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p, c_int64, c_char_p, c_size_t)


class rondo_attribute(Structure):
    pass


rondo_attribute._fields_ = [
    ("name", c_char_p),
    ("kind", c_int32),
    ("float_value", c_float),
    ("int_value", c_int64),
    ("string_value", c_char_p),
    ("tensor", POINTER(rondo_tensor)),
    ("count", c_size_t),
    ("ints", POINTER(c_int64)),
    ("floats", POINTER(c_float)),
    ("strings", POINTER(c_char_p)),
    ("body", c_void_p),
    ("program", c_void_p),
]


class rondo_builder_options(Structure):
    pass


rondo_builder_options._fields_ = [
    ("struct_size", c_size_t),
    ("name", c_char_p),
    ("opset", c_int32),
]


class rondo_builder_node_options(Structure):
    pass


rondo_builder_node_options._fields_ = [
    ("struct_size", c_size_t),
    ("domain", c_char_p),
    ("version", c_int32),
    ("name", c_char_p),
    ("attributes", POINTER(rondo_attribute)),
    ("attribute_count", c_size_t),
]


class rondo_parameter(Structure):
    pass


rondo_parameter._fields_ = [
    ("name", c_char_p),
    ("tensor", POINTER(rondo_tensor)),
]


class rondo_program_node(Structure):
    pass


rondo_program_node._fields_ = [
    ("struct_size", c_size_t),
    ("op", c_char_p),
    ("domain", c_char_p),
    ("version", c_int32),
    ("name", c_char_p),
    ("input_count", c_size_t),
    ("output_count", c_size_t),
    ("attribute_count", c_size_t),
    ("place", c_char_p),
]


class rondo_start(Structure):
    pass


rondo_start._fields_ = [
    ("struct_size", c_size_t),
    ("kind", c_int32),
    ("a", c_double),
    ("b", c_double),
    ("seed", c_uint64),
    ("fan_in", c_uint64),
    ("fan_out", c_uint64),
    ("tensor", POINTER(rondo_tensor)),
]


class rondo_variable(Structure):
    pass


rondo_variable._fields_ = [
    ("name", c_char_p),
    ("update", c_char_p),
    ("start", POINTER(rondo_start)),
]

rondo_op_infer_function = CFUNCTYPE(c_int32, c_void_p, POINTER(rondo_tensor), c_size_t, POINTER(rondo_tensor), c_size_t)

rondo_op_compute_function = CFUNCTYPE(c_int32, c_void_p, POINTER(rondo_tensor), c_size_t, POINTER(rondo_tensor), c_size_t)


class rondo_op_preparation(Structure):
    pass


rondo_op_preparation._fields_ = [
    ("struct_size", c_size_t),
    ("device", c_void_p),
    ("input_count", c_size_t),
    ("inputs", POINTER(rondo_tensor)),
    ("output_count", c_size_t),
    ("outputs", POINTER(rondo_tensor)),
    ("state", c_void_p),
    ("workspace_bytes", c_size_t),
    ("capture", c_int32),
    ("reason", c_char_p),
]


class rondo_op_launch(Structure):
    pass


rondo_op_launch._fields_ = [
    ("struct_size", c_size_t),
    ("stream", c_void_p),
    ("input_count", c_size_t),
    ("inputs", POINTER(rondo_tensor)),
    ("output_count", c_size_t),
    ("outputs", POINTER(rondo_tensor)),
    ("workspace", c_void_p),
    ("workspace_bytes", c_size_t),
    ("state", c_void_p),
]


class rondo_op_kernel(Structure):
    pass


rondo_op_kernel._fields_ = [
    ("launch", CFUNCTYPE(c_int32, c_void_p, POINTER(rondo_op_launch))),
    ("prepare", CFUNCTYPE(c_int32, c_void_p, POINTER(rondo_op_preparation))),
    ("release", CFUNCTYPE(None, c_void_p, c_void_p)),
]


class rondo_op_definition(Structure):
    pass


rondo_op_definition._fields_ = [
    ("struct_size", c_size_t),
    ("domain", c_char_p),
    ("name", c_char_p),
    ("version_min", c_int32),
    ("version_max", c_int32),
    ("input_min", c_uint32),
    ("input_max", c_uint32),
    ("output_min", c_uint32),
    ("output_max", c_uint32),
    ("attributes", POINTER(c_char_p)),
    ("infer", rondo_op_infer_function),
    ("compute", rondo_op_compute_function),
    ("host", rondo_op_kernel),
    ("cuda", rondo_op_kernel),
    ("capture", c_int32),
    ("flags", c_uint32),
    ("data", c_void_p),
]

rondo_progress_function = CFUNCTYPE(None, c_void_p, c_char_p, c_size_t, c_size_t)


class rondo_executor_options(Structure):
    pass


rondo_executor_options._fields_ = [
    ("struct_size", c_size_t),
    ("graphs", c_int32),
    ("dtype", c_int32),
    ("seed", c_uint64),
    ("op_by_op", c_bool),
    ("reference", c_bool),
    ("plan_limit", c_size_t),
    ("progress", rondo_progress_function),
    ("progress_data", c_void_p),
    ("thread_count", c_uint32),
    ("memory_limit_bytes", c_uint64),
    ("loop_limit", c_uint64),
    ("keep_f32", POINTER(c_char_p)),
    ("keep_f32_count", c_size_t),
    ("use_f16", POINTER(c_char_p)),
    ("use_f16_count", c_size_t),
    ("plan_limit_bytes", c_uint64),
    ("self_check_every", c_uint64),
    ("self_check_action", c_int32),
    ("stream", c_void_p),
    ("training", c_bool),
    ("branches", c_int32),
    ("place", POINTER(c_char_p)),
    ("place_count", c_size_t),
    ("no_folding", c_bool),
    ("tuning", c_int32),
    ("tuning_file", c_char_p),
    ("weight_limit_bytes", c_uint64),
    ("workers", c_void_p),
    ("communicator", c_void_p),
    ("run_arena", c_void_p),
    ("keep_templates", c_bool),
    ("watchdog", c_void_p),
]


class rondo_binding(Structure):
    pass


rondo_binding._fields_ = [
    ("name", c_char_p),
    ("tensor", rondo_tensor),
]


class rondo_run_times(Structure):
    pass


rondo_run_times._fields_ = [
    ("struct_size", c_size_t),
    ("latency_ns", c_uint64),
    ("enqueue_ns", c_uint64),
    ("host_to_device_ns", c_uint64),
    ("compute_ns", c_uint64),
    ("device_to_host_ns", c_uint64),
    ("was_replayed", c_bool),
    ("ran_op_count", c_uint64),
    ("replayed_op_count", c_uint64),
]


class rondo_executor_stats(Structure):
    pass


rondo_executor_stats._fields_ = [
    ("struct_size", c_size_t),
    ("op_count", c_uint64),
    ("segment_count", c_uint64),
    ("bypassed_count", c_uint64),
    ("node_count", c_uint64),
    ("plan_count", c_uint64),
    ("capture_ns", c_uint64),
    ("instantiate_ns", c_uint64),
    ("first_replay_ns", c_uint64),
    ("prepare_ns", c_uint64),
    ("arena_bytes", c_uint64),
    ("arena_naive_bytes", c_uint64),
    ("constant_bytes", c_uint64),
    ("graph_bytes", c_uint64),
    ("eager_run_count", c_uint64),
    ("replay_run_count", c_uint64),
    ("random_op_count", c_uint64),
    ("shared_constant_bytes", c_uint64),
    ("plan_bytes", c_uint64),
    ("plan_hit_count", c_uint64),
    ("plan_miss_count", c_uint64),
    ("plan_eviction_count", c_uint64),
    ("memory_bytes", c_uint64),
    ("device_memory_bytes", c_uint64),
    ("in_place_run_count", c_uint64),
    ("branch_count", c_uint64),
    ("spilled_constant_bytes", c_uint64),
    ("state_bytes", c_uint64),
]


class rondo_precision_loss(Structure):
    pass


rondo_precision_loss._fields_ = [
    ("struct_size", c_size_t),
    ("is_found", c_bool),
    ("op", c_char * 48),
    ("node", c_char * 160),
    ("error_before", c_double),
    ("error_after", c_double),
    ("output_error", c_double),
    ("compared_count", c_uint64),
]


class rondo_plan_options(Structure):
    pass


rondo_plan_options._fields_ = [
    ("struct_size", c_size_t),
    ("allow_remake", c_bool),
    ("made_of", c_void_p),
]


class rondo_placement(Structure):
    pass


rondo_placement._fields_ = [
    ("kind", c_int32),
    ("type", c_char_p),
    ("name", c_char_p),
    ("place", c_char_p),
    ("reason", c_char_p),
    ("bytes", c_uint64),
]


class rondo_transfer_count(Structure):
    pass


rondo_transfer_count._fields_ = [
    ("count", c_uint64),
    ("bytes", c_uint64),
]


class rondo_transfer_stats(Structure):
    pass


rondo_transfer_stats._fields_ = [
    ("struct_size", c_size_t),
    ("run_count", c_uint64),
    ("to_device", rondo_transfer_count),
    ("to_host", rondo_transfer_count),
    ("synchronous_to_device", rondo_transfer_count),
    ("synchronous_to_host", rondo_transfer_count),
    ("between_devices", rondo_transfer_count),
    ("synchronous_between_devices", rondo_transfer_count),
    ("weights", rondo_transfer_count),
]


class rondo_self_check_report(Structure):
    pass


rondo_self_check_report._fields_ = [
    ("struct_size", c_size_t),
    ("segment_count", c_uint64),
    ("value_count", c_uint64),
    ("is_different", c_bool),
    ("is_first", c_bool),
    ("op", c_char * 48),
    ("node", c_char * 160),
    ("value", c_char * 160),
    ("dtype", c_int32),
    ("element", c_uint64),
    ("different_count", c_uint64),
    ("eager", c_char * 48),
    ("replayed", c_char * 48),
]


class rondo_run_arena_options(Structure):
    pass


rondo_run_arena_options._fields_ = [
    ("struct_size", c_size_t),
    ("address", c_void_p),
    ("bytes", c_size_t),
]

rondo_fetch_allocator = CFUNCTYPE(c_void_p, c_void_p, c_char_p, POINTER(rondo_tensor), c_size_t)


class rondo_op_options(Structure):
    pass


rondo_op_options._fields_ = [
    ("struct_size", c_size_t),
    ("domain", c_char_p),
    ("version", c_int32),
    ("attributes", POINTER(rondo_attribute)),
    ("attribute_count", c_size_t),
    ("seed", c_uint64),
]


class rondo_gradient_options(Structure):
    pass


rondo_gradient_options._fields_ = [
    ("struct_size", c_size_t),
    ("seed", c_char_p),
    ("stop", POINTER(c_char_p)),
    ("stop_count", c_size_t),
    ("recompute", POINTER(c_char_p)),
    ("recompute_count", c_size_t),
]


class rondo_minimize_options(Structure):
    pass


rondo_minimize_options._fields_ = [
    ("struct_size", c_size_t),
    ("optimizer", c_int32),
    ("learning_rate", c_double),
    ("rate", c_char_p),
    ("momentum", c_double),
    ("dampening", c_double),
    ("nesterov", c_bool),
    ("beta1", c_double),
    ("beta2", c_double),
    ("epsilon", c_double),
    ("weight_decay", c_double),
    ("schedule", c_int32),
    ("schedule_steps", c_int64),
    ("schedule_factor", c_double),
    ("schedule_least", c_double),
    ("warmup_steps", c_int64),
    ("warmup_start", c_double),
    ("clip_value", c_double),
    ("clip_norm", c_double),
    ("scale_loss", c_bool),
    ("scale_start", c_double),
    ("scale_growth", c_double),
    ("scale_backoff", c_double),
    ("scale_least", c_double),
    ("scale_interval", c_int64),
    ("scale_patience", c_int64),
    ("accumulate", c_int64),
    ("train", POINTER(c_char_p)),
    ("train_count", c_size_t),
    ("recompute", POINTER(c_char_p)),
    ("recompute_count", c_size_t),
    ("average_ranks", c_bool),
    ("bucket_bytes", c_size_t),
    ("rows", POINTER(c_char_p)),
    ("rows_count", c_size_t),
    ("shard_updates", c_bool),
]


class rondo_ranks(Structure):
    pass


rondo_ranks._fields_ = [
    ("struct_size", c_size_t),
    ("rank", c_int32),
    ("size", c_int32),
    ("local_rank", c_int32),
    ("local_size", c_int32),
    ("launcher", c_char_p),
]

rondo_waiting_function = CFUNCTYPE(c_bool, c_void_p, c_char_p, c_double)


class rondo_communicator_options(Structure):
    pass


rondo_communicator_options._fields_ = [
    ("struct_size", c_size_t),
    ("rank", c_int32),
    ("size", c_int32),
    ("meeting", c_char_p),
    ("transport", c_int32),
    ("wait_ms", c_uint64),
    ("common", c_char_p),
    ("waiting", rondo_waiting_function),
    ("waiting_data", c_void_p),
]

# What a function gives (None: nothing), and what it takes.
FUNCTIONS = {
    "rondo_version_get_text": (c_char_p, ()),
    "rondo_version_get_number": (c_int32, ()),
    "rondo_error_get_last": (POINTER(rondo_error), ()),
    "rondo_status_get_name": (c_char_p, (c_int32,)),
    "rondo_log_set_sink": (None, (c_void_p, c_void_p,)),
    "rondo_log_set_level": (None, (c_int32,)),
    "rondo_device_list": (c_int32, (POINTER(rondo_device_info), c_size_t, POINTER(c_size_t),)),
    "rondo_device_open": (c_int32, (c_char_p, POINTER(c_void_p),)),
    "rondo_device_retain": (None, (c_void_p,)),
    "rondo_device_release": (None, (c_void_p,)),
    "rondo_device_get_info": (c_int32, (c_void_p, POINTER(rondo_device_info),)),
    "rondo_device_get_name": (c_char_p, (c_void_p,)),
    "rondo_device_is_host": (c_bool, (c_void_p,)),
    "rondo_device_synchronize": (c_int32, (c_void_p,)),
    "rondo_device_supports": (c_int32, (c_void_p, c_int32,)),
    "rondo_memory_allocate": (c_int32, (c_void_p, c_int32, c_size_t, POINTER(c_void_p),)),
    "rondo_memory_free": (None, (c_void_p, c_void_p,)),
    "rondo_stream_create": (c_int32, (c_void_p, POINTER(rondo_stream_options), POINTER(c_void_p),)),
    "rondo_stream_wrap": (c_int32, (c_void_p, c_void_p, POINTER(c_void_p),)),
    "rondo_stream_destroy": (None, (c_void_p,)),
    "rondo_stream_get_device": (c_void_p, (c_void_p,)),
    "rondo_stream_get_native": (c_void_p, (c_void_p,)),
    "rondo_stream_synchronize": (c_int32, (c_void_p,)),
    "rondo_stream_query": (c_int32, (c_void_p, POINTER(c_bool),)),
    "rondo_stream_wait_event": (c_int32, (c_void_p, c_void_p,)),
    "rondo_stream_is_recording": (c_int32, (c_void_p, POINTER(c_bool),)),
    "rondo_event_create": (c_int32, (c_void_p, c_uint32, POINTER(c_void_p),)),
    "rondo_event_destroy": (None, (c_void_p,)),
    "rondo_event_record": (c_int32, (c_void_p, c_void_p,)),
    "rondo_event_query": (c_int32, (c_void_p, POINTER(c_bool),)),
    "rondo_event_synchronize": (c_int32, (c_void_p,)),
    "rondo_event_get_elapsed_ns": (c_int32, (c_void_p, c_void_p, POINTER(c_int64),)),
    "rondo_stream_copy": (c_int32, (c_void_p, c_void_p, c_void_p, c_size_t, c_int32,)),
    "rondo_stream_fill": (c_int32, (c_void_p, c_void_p, c_uint32, c_uint32, c_size_t,)),
    "rondo_stream_call_host": (c_int32, (c_void_p, c_char_p, c_void_p, c_void_p, c_size_t,)),
    "rondo_stream_launch": (c_int32, (c_void_p, POINTER(rondo_launch),)),
    "rondo_graph_create": (c_int32, (c_void_p, POINTER(rondo_graph_options), POINTER(c_void_p),)),
    "rondo_graph_destroy": (None, (c_void_p,)),
    "rondo_graph_capture_begin": (c_int32, (c_void_p, c_void_p, c_int32,)),
    "rondo_graph_capture_end": (c_int32, (c_void_p,)),
    "rondo_graph_capture_abort": (None, (c_void_p,)),
    "rondo_graph_capture_step": (c_int32, (c_void_p, c_void_p, POINTER(rondo_step_options), c_void_p, c_void_p, POINTER(c_int32),)),
    "rondo_graph_replay": (c_int32, (c_void_p, c_void_p,)),
    "rondo_graph_upload": (c_int32, (c_void_p, c_void_p,)),
    "rondo_graph_reset": (c_int32, (c_void_p,)),
    "rondo_graph_get_stats": (c_int32, (c_void_p, POINTER(rondo_graph_stats),)),
    "rondo_graph_instantiate": (c_int32, (c_void_p,)),
    "rondo_stream_add_graph": (c_int32, (c_void_p, c_void_p,)),
    "rondo_graph_get_report": (c_int32, (c_void_p, POINTER(rondo_capture_report),)),
    "rondo_capture_report_format": (c_size_t, (POINTER(rondo_capture_report), c_char_p, c_size_t,)),
    "rondo_capture_cause_get_name": (c_char_p, (c_int32,)),
    "rondo_dtype_get_bytes": (c_size_t, (c_int32,)),
    "rondo_dtype_get_name": (c_char_p, (c_int32,)),
    "rondo_shape_get_count": (c_int64, (POINTER(rondo_shape),)),
    "rondo_shape_is_equal": (c_bool, (POINTER(rondo_shape), POINTER(rondo_shape),)),
    "rondo_shape_format": (c_char_p, (POINTER(rondo_shape), c_char_p, c_size_t,)),
    "rondo_tensor_init": (c_int32, (c_int32, POINTER(rondo_shape), POINTER(rondo_tensor),)),
    "rondo_tensor_init_device": (c_int32, (c_void_p, c_int32, POINTER(rondo_shape), POINTER(rondo_tensor),)),
    "rondo_tensor_is_on_host": (c_bool, (POINTER(rondo_tensor),)),
    "rondo_tensor_copy": (c_int32, (c_void_p, POINTER(rondo_tensor), POINTER(rondo_tensor),)),
    "rondo_tensor_init_strings": (c_int32, (POINTER(rondo_shape), POINTER(rondo_string), POINTER(rondo_tensor),)),
    "rondo_tensor_init_sequence": (c_int32, (POINTER(rondo_tensor), c_size_t, POINTER(rondo_tensor),)),
    "rondo_tensor_init_optional": (c_int32, (POINTER(rondo_tensor), POINTER(rondo_tensor),)),
    "rondo_tensor_get_item": (POINTER(rondo_tensor), (POINTER(rondo_tensor), c_size_t,)),
    "rondo_tensor_share": (None, (POINTER(rondo_tensor), POINTER(rondo_tensor),)),
    "rondo_tensor_deinit": (None, (POINTER(rondo_tensor),)),
    "rondo_tensor_get_bytes": (c_size_t, (POINTER(rondo_tensor),)),
    "rondo_f16_from_float": (c_uint16, (c_float,)),
    "rondo_f16_to_float": (c_float, (c_uint16,)),
    "rondo_narrow_from_float": (c_uint8, (c_int32, c_float,)),
    "rondo_narrow_to_float": (c_float, (c_int32, c_uint8,)),
    "rondo_text_escape": (c_size_t, (c_char_p, c_char_p, c_size_t,)),
    "rondo_graph_get_node_count": (c_int32, (c_void_p, POINTER(c_size_t),)),
    "rondo_graph_get_node": (c_int32, (c_void_p, c_size_t, POINTER(rondo_graph_node),)),
    "rondo_graph_list_edges": (c_int32, (c_void_p, POINTER(rondo_graph_edge), c_size_t, POINTER(c_size_t),)),
    "rondo_graph_dump": (c_int32, (c_void_p, c_int32, c_void_p, c_void_p,)),
    "rondo_graph_measure_device_bytes": (c_int32, (c_void_p, POINTER(c_uint64),)),
    "rondo_graph_get_native": (c_int32, (c_void_p, POINTER(c_void_p), POINTER(c_void_p),)),
    "rondo_watchdog_create": (c_int32, (c_void_p, POINTER(rondo_watchdog_options), POINTER(c_void_p),)),
    "rondo_watchdog_destroy": (None, (c_void_p,)),
    "rondo_watchdog_mark": (c_int32, (c_void_p, c_void_p, c_void_p,)),
    "rondo_watchdog_replay": (c_int32, (c_void_p, c_void_p, c_void_p,)),
    "rondo_watchdog_get_stall_count": (c_uint64, (c_void_p,)),
    "rondo_graph_update": (c_int32, (c_void_p, c_void_p, POINTER(rondo_update_report),)),
    "rondo_graph_recapture": (c_int32, (c_void_p, c_void_p, POINTER(rondo_step_options), c_void_p, c_void_p, POINTER(rondo_update_report),)),
    "rondo_graph_compare": (c_int32, (c_void_p, c_void_p, POINTER(rondo_difference), c_size_t, POINTER(c_size_t),)),
    "rondo_difference_format": (c_size_t, (POINTER(rondo_difference), c_char_p, c_size_t,)),
    "rondo_graph_save": (c_int32, (c_void_p, c_char_p, POINTER(rondo_graph_symbol), c_size_t,)),
    "rondo_graph_load": (c_int32, (c_void_p, c_char_p, POINTER(rondo_graph_symbol), c_size_t,)),
    "rondo_control_if": (c_int32, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "rondo_control_switch": (c_int32, (c_void_p, c_void_p, POINTER(rondo_body_function), c_uint32, c_void_p,)),
    "rondo_control_while": (c_int32, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "rondo_stream_get_last_node": (c_int32, (c_void_p, POINTER(rondo_node),)),
    "rondo_stream_add_node": (c_int32, (c_void_p, POINTER(rondo_work), POINTER(rondo_node),)),
    "rondo_graph_get_node_index": (c_int32, (c_void_p, rondo_node, POINTER(c_size_t),)),
    "rondo_graph_get_node_handle": (c_int32, (c_void_p, c_size_t, POINTER(rondo_node),)),
    "rondo_graph_find_nodes": (c_int32, (c_void_p, c_char_p, POINTER(rondo_node), c_size_t, POINTER(c_size_t),)),
    "rondo_graph_read_node": (c_int32, (c_void_p, rondo_node, POINTER(rondo_node_state),)),
    "rondo_graph_build_begin": (c_int32, (c_void_p,)),
    "rondo_graph_add_node": (c_int32, (c_void_p, POINTER(rondo_node), c_size_t, POINTER(rondo_work), POINTER(rondo_node),)),
    "rondo_graph_add_step": (c_int32, (c_void_p, POINTER(rondo_node), c_size_t, c_void_p, c_void_p, POINTER(rondo_node), c_size_t, POINTER(c_size_t),)),
    "rondo_graph_clone": (c_int32, (c_void_p, c_char_p, POINTER(c_void_p),)),
    "rondo_graph_patch": (c_int32, (c_void_p, POINTER(rondo_patch), c_size_t,)),
    "rondo_graph_patch_node": (c_int32, (c_void_p, rondo_node, POINTER(rondo_work),)),
    "rondo_stepper_create": (c_int32, (c_void_p, POINTER(rondo_stepper_options), POINTER(c_void_p),)),
    "rondo_stepper_destroy": (None, (c_void_p,)),
    "rondo_stepper_begin": (c_int32, (c_void_p, c_void_p,)),
    "rondo_stepper_put": (c_int32, (c_void_p, POINTER(rondo_work),)),
    "rondo_stepper_skip": (c_int32, (c_void_p, POINTER(rondo_work),)),
    "rondo_stepper_end": (c_int32, (c_void_p,)),
    "rondo_stepper_reset": (c_int32, (c_void_p,)),
    "rondo_stepper_get_mode": (c_int32, (c_void_p,)),
    "rondo_stepper_describe": (c_int32, (c_void_p, c_int32, c_void_p, c_void_p,)),
    "rondo_stepper_get_graph": (c_void_p, (c_void_p,)),
    "rondo_label_push": (c_int32, (c_void_p, c_char_p,)),
    "rondo_label_pop": (c_int32, (c_void_p,)),
    "rondo_profile_create": (c_int32, (POINTER(rondo_profile_options), POINTER(c_void_p),)),
    "rondo_profile_destroy": (None, (c_void_p,)),
    "rondo_profile_start": (c_int32, (c_void_p,)),
    "rondo_profile_stop": (c_int32, (c_void_p,)),
    "rondo_profile_begin": (c_int32, (c_char_p,)),
    "rondo_profile_end": (c_int32, ()),
    "rondo_profile_get_summary": (c_int32, (c_void_p, POINTER(rondo_profile_summary),)),
    "rondo_profile_get_rows": (c_int32, (c_void_p, c_int32, c_bool, POINTER(rondo_profile_row), c_size_t, POINTER(c_size_t),)),
    "rondo_profile_write": (c_int32, (c_void_p, POINTER(rondo_profile_write_options), c_void_p, c_void_p,)),
    "rondo_log_set_record_sink": (None, (c_void_p, c_void_p,)),
    "rondo_log_set_levels": (c_int32, (c_char_p,)),
    "rondo_pool_create": (c_int32, (c_void_p, POINTER(rondo_pool_options), POINTER(c_void_p),)),
    "rondo_pool_retain": (None, (c_void_p,)),
    "rondo_pool_release": (None, (c_void_p,)),
    "rondo_pool_allocate": (c_int32, (c_void_p, c_void_p, c_size_t, POINTER(c_void_p),)),
    "rondo_pool_free": (c_int32, (c_void_p, c_void_p,)),
    "rondo_pool_use": (c_int32, (c_void_p, c_void_p, c_void_p,)),
    "rondo_pool_trim": (c_int32, (c_void_p, c_uint64, POINTER(c_uint64),)),
    "rondo_pool_get_stats": (c_int32, (c_void_p, POINTER(rondo_pool_stats),)),
    "rondo_arena_create": (c_int32, (c_void_p, POINTER(rondo_arena_options), POINTER(c_void_p),)),
    "rondo_graph_get_arena": (c_int32, (c_void_p, POINTER(c_void_p),)),
    "rondo_arena_retain": (None, (c_void_p,)),
    "rondo_arena_release": (None, (c_void_p,)),
    "rondo_arena_begin_round": (c_int32, (c_void_p,)),
    "rondo_arena_get_stats": (c_int32, (c_void_p, POINTER(rondo_arena_stats),)),
    "rondo_stream_copy_between": (c_int32, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t,)),
    "rondo_device_copies_directly": (c_int32, (c_void_p, c_void_p, POINTER(c_bool),)),
    "rondo_generator_create": (c_int32, (c_void_p, c_uint64, POINTER(c_void_p),)),
    "rondo_generator_retain": (None, (c_void_p,)),
    "rondo_generator_release": (None, (c_void_p,)),
    "rondo_generator_set_seed": (c_int32, (c_void_p, c_uint64,)),
    "rondo_generator_set_state": (c_int32, (c_void_p, POINTER(rondo_generator_state),)),
    "rondo_generator_get_state": (c_int32, (c_void_p, POINTER(rondo_generator_state),)),
    "rondo_random_words": (c_int32, (c_void_p, c_void_p, POINTER(c_uint32), c_size_t,)),
    "rondo_random_uniform": (c_int32, (c_void_p, c_void_p, c_int32, c_void_p, c_size_t, c_double, c_double,)),
    "rondo_random_normal": (c_int32, (c_void_p, c_void_p, c_int32, c_void_p, c_size_t, c_double, c_double,)),
    "rondo_random_bernoulli": (c_int32, (c_void_p, c_void_p, c_int32, c_void_p, c_size_t, c_double,)),
    "rondo_random_bernoulli_each": (c_int32, (c_void_p, c_void_p, c_int32, c_void_p, c_int32, c_void_p, c_size_t,)),
    "rondo_random_dropout": (c_int32, (c_void_p, c_void_p, c_int32, c_void_p, c_void_p, POINTER(c_uint8), c_size_t, c_double,)),
    "rondo_generator_reserve": (c_int32, (c_void_p, c_void_p, c_uint64, POINTER(rondo_random_range),)),
    "rondo_random_get_device_text": (c_char_p, ()),
    "rondo_random_philox": (None, (c_uint64, c_uint64, c_uint64, POINTER(c_uint32),)),
    "rondo_graph_cache_create": (c_int32, (c_void_p, POINTER(rondo_graph_cache_options), POINTER(c_void_p),)),
    "rondo_graph_cache_destroy": (None, (c_void_p,)),
    "rondo_graph_cache_run": (c_int32, (c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, POINTER(c_int32),)),
    "rondo_graph_cache_wait": (c_int32, (c_void_p,)),
    "rondo_graph_cache_pin": (c_int32, (c_void_p, c_void_p, c_size_t,)),
    "rondo_graph_cache_unpin": (c_int32, (c_void_p, c_void_p, c_size_t,)),
    "rondo_graph_cache_forget": (c_int32, (c_void_p, c_void_p, c_size_t,)),
    "rondo_graph_cache_clear": (c_int32, (c_void_p,)),
    "rondo_graph_cache_get_stats": (c_int32, (c_void_p, POINTER(rondo_graph_cache_stats),)),
    "rondo_graph_cache_get_entry": (c_int32, (c_void_p, c_void_p, c_size_t, POINTER(rondo_graph_cache_entry),)),
    "rondo_graph_cache_list_keys": (c_int32, (c_void_p, POINTER(rondo_cache_key), c_size_t, POINTER(c_size_t),)),
    "rondo_tensor_from_dlpack": (c_int32, (POINTER(rondo_dlpack_managed), POINTER(rondo_tensor), POINTER(rondo_dlpack_info),)),
    "rondo_tensor_from_dlpack_versioned": (c_int32, (POINTER(rondo_dlpack_versioned), POINTER(rondo_tensor), POINTER(rondo_dlpack_info),)),
    "rondo_dlpack_get_device": (c_int32, (c_void_p, c_int32, POINTER(rondo_dlpack_device),)),
    "rondo_tensor_to_dlpack": (c_int32, (POINTER(rondo_tensor), POINTER(rondo_dlpack_device), POINTER(rondo_dlpack_type), POINTER(POINTER(rondo_dlpack_managed)),)),
    "rondo_tensor_to_dlpack_versioned": (c_int32, (POINTER(rondo_tensor), POINTER(rondo_dlpack_device), POINTER(rondo_dlpack_type), c_uint64, POINTER(POINTER(rondo_dlpack_versioned)),)),
    "rondo_learned_create": (c_int32, (c_void_p, POINTER(rondo_learned_options), POINTER(rondo_argument), c_size_t, c_void_p, c_void_p, POINTER(c_void_p),)),
    "rondo_learned_destroy": (None, (c_void_p,)),
    "rondo_learned_learn": (c_int32, (c_void_p, c_void_p, POINTER(rondo_value), c_size_t,)),
    "rondo_learned_try": (c_int32, (c_void_p, POINTER(rondo_value), c_size_t,)),
    "rondo_learned_run": (c_int32, (c_void_p, c_void_p, POINTER(rondo_value), c_size_t,)),
    "rondo_learned_get_graph": (c_void_p, (c_void_p,)),
    "rondo_learned_get_report": (c_int32, (c_void_p, POINTER(rondo_learned_report),)),
    "rondo_learned_list_findings": (c_int32, (c_void_p, POINTER(rondo_learned_finding), c_size_t, POINTER(c_size_t),)),
    "rondo_learned_list_slots": (c_int32, (c_void_p, POINTER(rondo_learned_slot), c_size_t, POINTER(c_size_t),)),
    "rondo_learned_describe": (c_int32, (c_void_p, c_int32, c_void_p, c_void_p,)),
    "rondo_refusal_get_name": (c_char_p, (c_int32,)),
    "rondo_learned_get_stats": (c_int32, (c_void_p, POINTER(rondo_learned_stats),)),
    "rondo_set_allocator": (c_int32, (POINTER(rondo_allocator),)),
    "rondo_workers_create": (c_int32, (c_uint32, POINTER(c_void_p),)),
    "rondo_workers_retain": (None, (c_void_p,)),
    "rondo_workers_release": (None, (c_void_p,)),
    "rondo_program_destroy": (None, (c_void_p,)),
    "rondo_program_get_input_count": (c_size_t, (c_void_p,)),
    "rondo_program_get_output_count": (c_size_t, (c_void_p,)),
    "rondo_program_get_input": (c_int32, (c_void_p, c_size_t, POINTER(rondo_port),)),
    "rondo_program_get_output": (c_int32, (c_void_p, c_size_t, POINTER(rondo_port),)),
    "rondo_program_get_optional_input_count": (c_size_t, (c_void_p,)),
    "rondo_program_get_optional_input": (c_int32, (c_void_p, c_size_t, POINTER(rondo_port),)),
    "rondo_program_set_dimension": (c_int32, (c_void_p, c_char_p, c_int64,)),
    "rondo_program_get_metadata": (c_char_p, (c_void_p, c_char_p,)),
    "rondo_program_load_onnx": (c_int32, (c_char_p, POINTER(c_void_p),)),
    "rondo_program_load_onnx_with": (c_int32, (c_char_p, POINTER(rondo_load_options), POINTER(c_void_p),)),
    "rondo_program_parse_onnx": (c_int32, (c_void_p, c_size_t, POINTER(c_void_p),)),
    "rondo_program_parse_onnx_with": (c_int32, (c_void_p, c_size_t, POINTER(rondo_load_options), POINTER(c_void_p),)),
    "rondo_onnx_list_unsupported": (c_int32, (c_char_p, c_void_p, c_void_p,)),
    "rondo_program_save_onnx": (c_int32, (c_void_p, c_char_p,)),
    "rondo_tensor_load_onnx": (c_int32, (c_char_p, POINTER(rondo_tensor),)),
    "rondo_port_load_onnx": (c_int32, (POINTER(rondo_port), c_char_p, POINTER(rondo_tensor),)),
    "rondo_builder_create": (c_int32, (POINTER(rondo_builder_options), POINTER(c_void_p),)),
    "rondo_builder_destroy": (None, (c_void_p,)),
    "rondo_builder_add_input": (c_int32, (c_void_p, POINTER(rondo_port),)),
    "rondo_builder_add_parameter": (c_int32, (c_void_p, c_char_p, POINTER(rondo_tensor), c_int32,)),
    "rondo_builder_add_constant": (c_int32, (c_void_p, c_char_p, c_int32, POINTER(rondo_shape), c_void_p,)),
    "rondo_builder_add_node": (c_int32, (c_void_p, c_char_p, POINTER(c_char_p), c_size_t, POINTER(c_char_p), c_size_t, POINTER(rondo_builder_node_options),)),
    "rondo_builder_begin_place": (c_int32, (c_void_p, c_char_p,)),
    "rondo_builder_end_place": (c_int32, (c_void_p,)),
    "rondo_builder_add_output": (c_int32, (c_void_p, c_char_p, POINTER(rondo_port),)),
    "rondo_builder_finish": (c_int32, (c_void_p, POINTER(c_void_p),)),
    "rondo_builder_add_embedding": (c_int32, (c_void_p, c_char_p, c_char_p, c_char_p,)),
    "rondo_builder_add_l2_normalize": (c_int32, (c_void_p, c_char_p, c_int64, c_float, c_char_p,)),
    "rondo_builder_add_square_error_cost": (c_int32, (c_void_p, c_char_p, c_char_p, c_char_p,)),
    "rondo_builder_add_mean": (c_int32, (c_void_p, c_char_p, c_char_p,)),
    "rondo_builder_add_shape": (c_int32, (c_void_p, c_char_p, c_char_p,)),
    "rondo_builder_add_slice": (c_int32, (c_void_p, c_char_p, POINTER(c_int64), POINTER(c_int64), POINTER(c_int64), POINTER(c_int64), c_size_t, c_char_p,)),
    "rondo_program_list_parameters": (c_int32, (c_void_p, c_size_t, POINTER(rondo_parameter), POINTER(c_size_t),)),
    "rondo_program_get_opset": (c_int32, (c_void_p, c_char_p,)),
    "rondo_program_get_node_count": (c_size_t, (c_void_p,)),
    "rondo_program_get_node": (c_int32, (c_void_p, c_size_t, POINTER(rondo_program_node),)),
    "rondo_program_get_node_input": (c_char_p, (c_void_p, c_size_t, c_size_t,)),
    "rondo_program_get_node_output": (c_char_p, (c_void_p, c_size_t, c_size_t,)),
    "rondo_program_get_node_attribute": (c_int32, (c_void_p, c_size_t, c_size_t, POINTER(rondo_attribute),)),
    "rondo_program_describe": (c_int32, (c_void_p, c_int32, c_void_p, c_void_p,)),
    "rondo_builder_add_variable": (c_int32, (c_void_p, POINTER(rondo_port), POINTER(rondo_start),)),
    "rondo_builder_set_update": (c_int32, (c_void_p, c_char_p, c_char_p,)),
    "rondo_program_make_variables": (c_int32, (c_void_p, POINTER(c_char_p), c_size_t, POINTER(c_void_p),)),
    "rondo_program_list_variables": (c_int32, (c_void_p, c_size_t, POINTER(rondo_variable), POINTER(c_size_t),)),
    "rondo_op_register": (c_int32, (POINTER(rondo_op_definition),)),
    "rondo_op_get_data": (c_void_p, (c_void_p,)),
    "rondo_op_get_attribute": (c_bool, (c_void_p, c_char_p, POINTER(rondo_attribute),)),
    "rondo_op_fail": (c_int32, (c_void_p, c_int32, c_char_p,)),
    "rondo_executor_create": (c_int32, (c_void_p, c_void_p, POINTER(rondo_executor_options), POINTER(c_void_p),)),
    "rondo_executor_destroy": (None, (c_void_p,)),
    "rondo_executor_run": (c_int32, (c_void_p, POINTER(rondo_binding), c_size_t, POINTER(rondo_binding), c_size_t,)),
    "rondo_executor_rerun": (c_int32, (c_void_p,)),
    "rondo_executor_cancel": (c_int32, (c_void_p,)),
    "rondo_executor_set_graphs": (c_int32, (c_void_p, c_int32,)),
    "rondo_executor_set_training": (c_int32, (c_void_p, c_bool,)),
    "rondo_executor_get_times": (c_int32, (c_void_p, POINTER(rondo_run_times),)),
    "rondo_executor_get_stats": (c_int32, (c_void_p, POINTER(rondo_executor_stats),)),
    "rondo_executor_list_graphs": (c_int32, (c_void_p, POINTER(c_void_p), c_size_t, POINTER(c_size_t),)),
    "rondo_executor_describe": (c_int32, (c_void_p, c_int32, c_void_p, c_void_p,)),
    "rondo_executor_describe_feeds": (c_int32, (c_void_p, POINTER(rondo_binding), c_size_t, c_int32, c_void_p, c_void_p,)),
    "rondo_executor_infer_outputs": (c_int32, (c_void_p, POINTER(rondo_binding), c_size_t, POINTER(rondo_binding), c_size_t, POINTER(c_size_t),)),
    "rondo_executor_find_loss": (c_int32, (c_void_p, c_void_p, POINTER(rondo_executor_options), POINTER(rondo_binding), c_size_t, c_double, POINTER(rondo_precision_loss),)),
    "rondo_executor_write_tuning": (c_int32, (c_void_p, c_void_p, c_void_p,)),
    "rondo_executor_save": (c_int32, (c_void_p, c_char_p,)),
    "rondo_program_load_plan": (c_int32, (c_char_p, POINTER(rondo_plan_options), POINTER(c_void_p),)),
    "rondo_program_get_plan_options": (c_int32, (c_void_p, POINTER(rondo_executor_options),)),
    "rondo_executor_load": (c_int32, (c_char_p, c_void_p, POINTER(rondo_executor_options), POINTER(rondo_plan_options), POINTER(c_void_p), POINTER(c_void_p),)),
    "rondo_plan_describe": (c_int32, (c_char_p, c_int32, c_void_p, c_void_p,)),
    "rondo_executor_list_placements": (c_int32, (c_void_p, POINTER(rondo_binding), c_size_t, c_size_t, POINTER(rondo_placement), POINTER(c_size_t),)),
    "rondo_executor_get_transfers": (c_int32, (c_void_p, POINTER(rondo_transfer_stats),)),
    "rondo_executor_self_check": (c_int32, (c_void_p, POINTER(rondo_binding), c_size_t, POINTER(rondo_binding), c_size_t, POINTER(rondo_self_check_report),)),
    "rondo_executor_get_self_check": (c_int32, (c_void_p, POINTER(rondo_self_check_report),)),
    "rondo_executor_get_stream": (c_void_p, (c_void_p,)),
    "rondo_executor_run_async": (c_int32, (c_void_p, POINTER(rondo_binding), c_size_t, POINTER(rondo_binding), c_size_t, c_void_p,)),
    "rondo_executor_wait": (c_int32, (c_void_p,)),
    "rondo_executor_record": (c_int32, (c_void_p, c_void_p, POINTER(rondo_binding), c_size_t, POINTER(rondo_binding), c_size_t,)),
    "rondo_run_arena_create": (c_int32, (c_void_p, POINTER(rondo_run_arena_options), POINTER(c_void_p),)),
    "rondo_run_arena_destroy": (None, (c_void_p,)),
    "rondo_run_arena_get_bytes": (c_uint64, (c_void_p,)),
    "rondo_bound_run_create": (c_int32, (c_void_p, POINTER(c_void_p),)),
    "rondo_bound_run_destroy": (None, (c_void_p,)),
    "rondo_bound_run_set_feed": (c_int32, (c_void_p, c_char_p, POINTER(rondo_tensor),)),
    "rondo_bound_run_set_fetch": (c_int32, (c_void_p, c_char_p, POINTER(rondo_tensor),)),
    "rondo_bound_run_set_allocator": (c_int32, (c_void_p, c_void_p, c_void_p,)),
    "rondo_bound_run_run": (c_int32, (c_void_p,)),
    "rondo_bound_run_run_async": (c_int32, (c_void_p, c_void_p,)),
    "rondo_bound_run_get_fetch": (c_int32, (c_void_p, c_char_p, POINTER(rondo_tensor),)),
    "rondo_executor_bind": (c_int32, (c_void_p, c_char_p, c_char_p,)),
    "rondo_executor_reserve_variable": (c_int32, (c_void_p, c_char_p, c_size_t,)),
    "rondo_executor_get_variable": (c_int32, (c_void_p, c_char_p, POINTER(rondo_tensor),)),
    "rondo_executor_set_variable": (c_int32, (c_void_p, c_char_p, POINTER(rondo_tensor),)),
    "rondo_executor_reset_variables": (c_int32, (c_void_p,)),
    "rondo_executor_snapshot": (c_int32, (c_void_p, POINTER(c_void_p),)),
    "rondo_op_prepare": (c_int32, (c_void_p, c_char_p, POINTER(rondo_op_options), POINTER(rondo_tensor), c_size_t, c_size_t, POINTER(c_void_p),)),
    "rondo_op_destroy": (None, (c_void_p,)),
    "rondo_op_get_output": (c_int32, (c_void_p, c_size_t, POINTER(rondo_tensor),)),
    "rondo_op_put": (c_int32, (c_void_p, c_void_p, POINTER(rondo_tensor), c_size_t, POINTER(rondo_tensor), c_size_t,)),
    "rondo_builder_create_from": (c_int32, (c_void_p, POINTER(c_void_p),)),
    "rondo_builder_add_gradients": (c_int32, (c_void_p, c_char_p, POINTER(c_char_p), POINTER(c_char_p), c_size_t, POINTER(rondo_gradient_options),)),
    "rondo_builder_minimize": (c_int32, (c_void_p, c_char_p, POINTER(rondo_minimize_options),)),
    "rondo_builder_add_adapters": (c_int32, (c_void_p, POINTER(c_char_p), c_size_t, c_int64,)),
    "rondo_find_ranks": (c_int32, (POINTER(rondo_ranks),)),
    "rondo_communicator_create": (c_int32, (c_void_p, POINTER(rondo_communicator_options), POINTER(c_void_p),)),
    "rondo_communicator_destroy": (None, (c_void_p,)),
    "rondo_builder_add_all_reduce": (c_int32, (c_void_p, c_int32, POINTER(c_char_p), POINTER(c_char_p), c_size_t,)),
    "rondo_executor_gather_variables": (c_int32, (c_void_p,)),
    "rondo_checkpoint_save": (c_int32, (c_void_p, c_char_p,)),
    "rondo_checkpoint_load": (c_int32, (c_void_p, c_char_p,)),
    "rondo_checkpoint_read": (c_int32, (c_char_p, c_char_p, POINTER(rondo_tensor),)),
    "rondo_executor_get_trained": (c_int32, (c_void_p, c_void_p, POINTER(c_void_p),)),
}
