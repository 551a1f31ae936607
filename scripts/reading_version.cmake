# Writes the digest of all sources that determine how traces are read: cmake -D OUT=... -D ROOT=... -P reading_version.cmake
file(GLOB_RECURSE sources "${ROOT}/src/import/*" "${ROOT}/src/trace/*")
list(SORT sources)
set(digests "")
foreach(source ${sources} "${ROOT}/include/foretrace/trace.h")
  file(SHA256 "${source}" digest)
  string(APPEND digests "${digest}")
endforeach()
string(SHA256 digest "${digests}")
string(SUBSTRING "${digest}" 0 16 digest)
file(WRITE "${OUT}" "// Made by scripts/reading_version.cmake.\n#include \"import/cache/cache.h\"\n
namespace foretrace {\n\nstd::string_view reading_version() { return \"${digest}\"; }\n\n}  // namespace foretrace\n")
