# SPDX-License-Identifier: Apache-2.0

"""Rondo's calls that the interop programs use, declared for ctypes from the shared library."""
import ctypes
from ctypes import POINTER, c_bool, c_char, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_uint64
from ctypes import c_void_p

OK, INVALID, STATE = 0, 1, 2  # rondo_status
THREAD_LOCAL = 0              # rondo_capture_mode
KEEP_TEMPLATE = 1             # rondo_graph_keeps
CAUSE_UNSEEN_CALL = 15        # rondo_capture_cause


class Error(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("status", c_int32), ("driver_code", c_int32), ("driver_name", c_char * 48),
                ("op", c_char * 64), ("call", c_char * 48), ("message", c_char * 480),
                ("file", c_char_p), ("line", c_int32), ("sequence", c_uint64)]


class GraphOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("keep", c_int32), ("label", c_char_p),
                ("arena", c_void_p), ("pageable_sources", c_int32),
                ("check_addresses", c_bool)]


class Report(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("status", c_int32), ("cause", c_int32),
                ("what", c_char_p), ("advice", c_char_p), ("message", c_char * 480),
                ("call", c_char * 48), ("op", c_char * 64), ("label", c_char * 128),
                ("driver_code", c_int32), ("driver_name", c_char * 48), ("file", c_char_p),
                ("line", c_int32), ("stream_number", c_uint32), ("thread_number", c_uint64),
                ("thread_name", c_char * 16), ("is_other_thread", c_bool),
                ("has_last_node", c_bool), ("is_index_exact", c_bool),
                ("last_node_index", c_uint64), ("last_node_name", c_char * 64),
                ("last_node_label", c_char * 128), ("last_node_depth", c_uint32)]


# What a call gives (None: nothing), and what it takes. Objects are addresses.
SIGNATURES = {
    "rondo_error_get_last": (POINTER(Error),),
    "rondo_device_open": (c_int32, c_char_p, POINTER(c_void_p)),
    "rondo_device_release": (None, c_void_p),
    "rondo_stream_create": (c_int32, c_void_p, c_void_p, POINTER(c_void_p)),
    "rondo_stream_wrap": (c_int32, c_void_p, c_void_p, POINTER(c_void_p)),
    "rondo_stream_get_native": (c_void_p, c_void_p),
    "rondo_stream_destroy": (None, c_void_p),
    "rondo_stream_synchronize": (c_int32, c_void_p),
    "rondo_stream_is_recording": (c_int32, c_void_p, POINTER(c_bool)),
    "rondo_stream_fill": (c_int32, c_void_p, c_void_p, c_uint32, c_uint32, c_size_t),
    "rondo_memory_allocate": (c_int32, c_void_p, c_int, c_size_t, POINTER(c_void_p)),
    "rondo_memory_free": (None, c_void_p, c_void_p),
    "rondo_graph_create": (c_int32, c_void_p, POINTER(GraphOptions), POINTER(c_void_p)),
    "rondo_graph_destroy": (None, c_void_p),
    "rondo_graph_reset": (c_int32, c_void_p),
    "rondo_graph_capture_begin": (c_int32, c_void_p, c_void_p, c_int),
    "rondo_graph_capture_end": (c_int32, c_void_p),
    "rondo_graph_replay": (c_int32, c_void_p, c_void_p),
    "rondo_graph_get_node_count": (c_int32, c_void_p, POINTER(c_size_t)),
    "rondo_graph_get_report": (c_int32, c_void_p, POINTER(Report)),
    "rondo_label_push": (c_int32, c_void_p, c_char_p),
    "rondo_label_pop": (c_int32, c_void_p),
    "rondo_pool_create": (c_int32, c_void_p, c_void_p, POINTER(c_void_p)),
    "rondo_pool_release": (None, c_void_p),
    "rondo_pool_allocate": (c_int32, c_void_p, c_void_p, c_size_t, POINTER(c_void_p)),
    "rondo_pool_free": (c_int32, c_void_p, c_void_p),
    "rondo_generator_create": (c_int32, c_void_p, c_uint64, POINTER(c_void_p)),
    "rondo_generator_release": (None, c_void_p),
    "rondo_random_words": (c_int32, c_void_p, c_void_p, c_void_p, c_size_t),
}


class Library:
    """rondo.stream_wrap(...) is rondo_stream_wrap. What fails raises an AssertionError with the
    record, unless it is called through `refused`. A last argument that is an address given back is
    left out of the call and returned."""

    def __init__(self, path):
        self.functions = ctypes.CDLL(path)
        for name, (result, *arguments) in SIGNATURES.items():
            function = getattr(self.functions, name)
            function.restype, function.argtypes = result, arguments

    def get_error(self):
        return self.functions.rondo_error_get_last().contents

    def __getattr__(self, short):
        name = "rondo_" + short
        function = getattr(self.functions, name)
        result, *types = SIGNATURES[name]

        def call(*arguments):
            out = None
            if len(arguments) + 1 == len(types) and types[-1] is not c_void_p:
                out = types[-1]._type_()
                arguments = (*arguments, ctypes.byref(out))
            status = function(*arguments)
            if result is not c_int32:
                return status
            assert status == OK, f"{name}: {self.get_error().message.decode()}"
            return out.value if hasattr(out, "value") else out

        return call

    def refused(self, short, *arguments):
        """The call's status, which is not OK, and the message of its record."""
        before = self.get_error().sequence
        status = getattr(self.functions, "rondo_" + short)(*arguments)
        error = self.get_error()
        assert status != OK and error.status == status and error.sequence > before, (short, status)
        return status, error.message.decode()
