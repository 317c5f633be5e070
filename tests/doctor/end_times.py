# Device times end in the middle of what a recorded stream has of them: python3 end_times.py FROM TO.
# doctor/stream/doctor_event.h says what a record is.
# SPDX-License-Identifier: Apache-2.0
import struct
import sys

RECORD, TEXT, TIMED = 104, 1, 8
data = bytearray(open(sys.argv[1], "rb").read())
flags_at, at = [], 16
while at < len(data):
    call, flags, _, words = struct.unpack_from("<HBBI", data, at + 92)
    if flags & TIMED:
        flags_at.append(at + 94)
    at += RECORD + ((words + 7) // 8 * 8 if call == TEXT else 8 * words)
for place in flags_at[len(flags_at) // 2:]:
    data[place] &= ~TIMED
with open(sys.argv[2], "wb") as file:
    file.write(data)
