#include <iostream>

#include "cli/command.h"

int main(int argc, char** argv) { return foretrace::run(argc, argv, std::cout, std::cerr); }
