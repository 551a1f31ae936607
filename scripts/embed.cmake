# Writes files as C++ text, for programs that contain them: cmake -D OUT=... -D ROOT=... -D "FILES=a;b" -P embed.cmake
#
# Names in the table are relative to ROOT. Only its delimiter ends a raw string, so the files may contain anything else.
set(text "// Made from the files named here; see scripts/embed.cmake.\n#include \"document/page/page_shell.h\"\n\n#include \"foretrace/error.h\"\n\n")
string(APPEND text "namespace foretrace {\n\nstd::string_view embedded(std::string_view name) {\n")
foreach(file ${FILES})
  file(READ "${file}" content)
  string(FIND "${content}" ")embedded\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${file} holds the end of a raw string")
  endif()
  file(RELATIVE_PATH name "${ROOT}" "${file}")
  string(APPEND text "  if (name == \"${name}\")\n    return R\"embedded(${content})embedded\";\n")
endforeach()
string(APPEND text "  CHECK(false && \"a file that is embedded\");\n  return {};\n}\n\n}  // namespace foretrace\n")
file(WRITE "${OUT}" "${text}")
