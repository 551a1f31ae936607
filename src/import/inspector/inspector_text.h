#pragma once

// NCCL Inspector's text for Prometheus: the latest figures of each rank, communicator, operation
// and class of sizes.
//
//     nccl_bus_bandwidth_gbs{gpu="GPU0",nranks="4",collective="AllReduce",...} 678.263
//     nccl_collective_exec_time_microseconds{gpu="GPU0",nranks="4",...} 9498.47

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "import/inspector/inspector.h"

namespace foretrace {

/// Figures with the same labels belong together, so they are kept until the end.
class InspectorText {
 public:
  static bool begins(std::string_view head);
  /// Returns false if the line is no figure.
  bool read(std::string_view line);
  /// Visits those with a time, in the order of their labels.
  void each(const std::function<void(const InspectedOperation&)>& visit) const;

 private:
  struct Figures {
    double microseconds = 0, bus_gigabytes = 0;
  };
  std::map<std::string, Figures, std::less<>> figures_;  ///< By labels, as text.
};

}  // namespace foretrace
