// The program for Node: the command line.

#include <iostream>

#include "cli/options/run.h"

/// Named as JavaScript looks for it: this compiler would call main() otherwise.
extern "C" int node_main(int argc, char** argv) asm("main");

int node_main(int argc, char** argv) { return foretrace::run(argc, argv, std::cout, std::cerr); }
