#include <algorithm>
#include <fmt/core.h>

#include "base/wording.h"
#include "foretrace/error.h"
#include "question/collective/pricing.h"

namespace foretrace {
namespace {

/// Whether a name is that of an algorithm. send_receive, which is both, counts as an operation.
bool is_algorithm(const std::string& name) {
  return std::ranges::count(operation_names(), name) == 0 &&
         std::ranges::count(algorithms(), name, &AlgorithmEntry::name) > 0;
}

/// The first operation in the list that the algorithm can run on four ranks.
Operation first_served(const std::string& name) {
  const auto algorithm = find_algorithm(name);
  for (std::size_t i = 0; i < operation_names().size(); ++i) {
    const auto operation = static_cast<Operation>(i);
    const Call call{.operation = operation, .ranks = 4, .levels = {4}, .servers = 1};
    if (algorithm->refusal(call).empty()) return operation;
  }
  return Operation::all_reduce;
}

Operation named_operation(const std::string& name) {
  try {
    return read_operation(name);
  } catch (const Error&) {
    std::vector<std::string_view> names = operation_names();
    for (const AlgorithmEntry& entry : algorithms()) names.push_back(entry.name);
    throw Error(fmt::format("there is no collective or algorithm '{}'{}; must be auto or one of {}",
                            name, did_you_mean(name, names), joined(names)));
  }
}

}  // namespace

RequestedCollective requested_collective(const CollectiveQuestion& question) {
  RequestedCollective requested{.operation = Operation::all_reduce,
                                .algorithm = question.algorithm};
  if (question.algorithm != "auto") find_algorithm(question.algorithm);
  if (is_algorithm(question.name)) {
    if (question.algorithm != "auto" && question.algorithm != question.name)
      throw Error(
          fmt::format("two algorithms are named, {} and {}", question.name, question.algorithm));
    requested.algorithm = question.name;
    requested.operation = first_served(question.name);
  } else if (question.name != "auto") {
    requested.operation = named_operation(question.name);
  }
  if (!question.operation.empty()) requested.operation = read_operation(question.operation);
  return requested;
}

}  // namespace foretrace
