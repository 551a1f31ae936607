#pragma once

// Recording a program that runs on a GPU, without changing it. The program is started with two
// libraries beside it, which the CUDA driver and the NVTX headers load of themselves; they write
// what happens into one spool per process (spool.h), which survives if the program does not.
// import_trace() reads spools.

#include <string>
#include <vector>

namespace foretrace {

}  // namespace foretrace
