#pragma once

// Says what a trace lacks, and whether it can be used (`foretrace doctor`).

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/notes.h"

namespace foretrace {

/// Something missing, what that costs a prediction, and which setting of the profiler would fix it.
struct Finding {
  Severity severity = Severity::info;
  std::string what, cost, fix;
};

/// The findings about one trace.
struct Diagnosis {
  std::int32_t rank = 0, world_size = 1;
  std::vector<Finding> findings;  ///< Warnings first.
  /// Replay of the unmodified job; empty if the trace cannot be used.
  std::optional<Prediction> replay;
  std::string unusable;  ///< Why the trace cannot be used; empty if it can.

  std::size_t count(Severity severity) const;
};

class Document;
/// For people, in every form.
Document document_of(const std::vector<Diagnosis>& ranks);
/// The object with schema "foretrace.doctor/1".
nlohmann::json to_json(const std::vector<Diagnosis>& ranks);

}  // namespace foretrace
