#include <iostream>
#include <string_view>

#include "base/files/temporary_file.h"
#include "cli/options/command.h"
#include "cli/options/memory_limit.h"

int main(int argc, char** argv) {
  foretrace::delete_temporaries_on_signals();
  const bool runs_a_program = argc > 1 && std::string_view(argv[1]) == "collect";
  if (!runs_a_program) {
    foretrace::limit_memory();
    foretrace::keep_freed_memory();
  }
  return foretrace::run(argc, argv, std::cout, std::cerr);
}
