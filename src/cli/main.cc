#include <iostream>

#include "cli/command.h"
#include "foretrace/temporary_file.h"

int main(int argc, char** argv) {
  foretrace::delete_temporaries_on_signals();
  return foretrace::run(argc, argv, std::cout, std::cerr);
}
