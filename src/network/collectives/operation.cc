#include <algorithm>
#include <fmt/core.h>

#include "base/wording.h"
#include "foretrace/error.h"
#include "network/collective.h"

namespace foretrace {
namespace {

constexpr std::pair<std::string_view, Operation> kOtherNames[] = {
    {"a2a", Operation::all_to_all},       {"alltoallv", Operation::all_to_all},
    {"bcast", Operation::broadcast},      {"p2p", Operation::send_receive},
    {"send", Operation::send_receive},    {"sendrecv", Operation::send_receive},
    {"hypercube", Operation::all_gather},
};

}  // namespace

const std::vector<std::string_view>& operation_names() {
  static const std::vector<std::string_view> names = {"all_reduce",  "all_gather", "reduce_scatter",
                                                      "all_to_all",  "broadcast",  "reduce",
                                                      "send_receive"};
  return names;
}

std::string_view to_string(Operation operation) {
  return operation_names()[static_cast<std::size_t>(operation)];
}

Operation read_operation(std::string_view name) {
  const std::vector<std::string_view>& names = operation_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (letters_and_digits(names[i]) == letters_and_digits(name)) return static_cast<Operation>(i);
  }
  for (const auto& [other, operation] : kOtherNames) {
    if (other == letters_and_digits(name)) return operation;
  }
  throw Error(fmt::format("there is no collective '{}'{}; must be one of {}", name,
                          did_you_mean(name, names), joined(names)));
}

std::optional<Operation> operation_recorded_as(std::string_view name) {
  static constexpr std::pair<std::string_view, Operation> kParts[] = {
      {"allreduce", Operation::all_reduce},
      {"allgather", Operation::all_gather},
      {"reducescatter", Operation::reduce_scatter},
      {"alltoall", Operation::all_to_all},
      {"broadcast", Operation::broadcast},
      {"send", Operation::send_receive},
      {"recv", Operation::send_receive},
      {"reduce", Operation::reduce},
  };
  const std::string recorded = letters_and_digits(name);
  for (const auto& [part, operation] : kParts) {
    if (recorded.find(part) != std::string::npos) return operation;
  }
  return std::nullopt;
}

double bus_factor(Operation operation, std::uint32_t ranks) {
  const double others = ranks == 0 ? 0 : static_cast<double>(ranks - 1) / ranks;
  switch (operation) {
    case Operation::all_reduce:
      return 2 * others;
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::all_to_all:
      return others;
    default:
      return 1;
  }
}

}  // namespace foretrace
