# cmake -DLIST=FILE -DVERSION=0.1.0 -DOUTPUT=FILE -P identity.cmake: the version of the library with a hash of the
# sources that LIST names, one a line, as a C text. Plan files are of one such version.
# SPDX-License-Identifier: Apache-2.0
file(STRINGS ${LIST} sources)
set(hashes "")
foreach(source IN LISTS sources)
  file(SHA256 ${source} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 identity "${hashes}")
string(SUBSTRING ${identity} 0 12 identity)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "extern const char rondo__saved_library[];
const char rondo__saved_library[] = \"${VERSION}, sources ${identity}\";
")
