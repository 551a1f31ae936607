#include <iostream>
#include <optional>
#include <string_view>

#include "base/files/temporary_file.h"
#include "base/free_memory.h"
#include "cli/options/memory_limit.h"
#include "cli/options/run.h"

int main(int argc, char** argv) {
  foretrace::delete_temporaries_on_signals();
  const bool runs_a_program = argc > 1 && std::string_view(argv[1]) == "collect";
  if (!runs_a_program) {
    const std::optional<foretrace::Bytes> left = foretrace::free_memory();
    foretrace::limit_memory(left);
    foretrace::keep_freed_memory(left);
  }
  return foretrace::run(argc, argv, std::cout, std::cerr);
}
