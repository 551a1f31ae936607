// Stands in for the module that records programs, which WebAssembly cannot.

#include "foretrace/collect.h"

#include "foretrace/error.h"

namespace foretrace {

void check(const CollectOptions&) {
  throw Error("this build runs no other program: record with the Linux program or the wheel");
}

CollectedRun collect(const std::vector<std::string>&, const std::string&, const CollectOptions&) {
  return {};
}

}  // namespace foretrace
