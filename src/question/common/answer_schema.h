#pragma once

// Schemas of answers. They come from examples, so that they say what the program writes.

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "question/common/filled.h"

namespace foretrace {

/// Returns the JSON Schema that examples of an answer have in common: what they all have is
/// required, what is null in one may be null.
nlohmann::json schema_of(const std::vector<nlohmann::json>& examples);

/// The schema of the JSON form of answers of this type.
template <class Value>
nlohmann::json answer_schema() {
  constexpr int kMaxDepth = 9, kEach = 24;
  std::vector<nlohmann::json> examples;
  std::minstd_rand chance;
  for (int depth = 0; depth <= kMaxDepth; ++depth) {
    for (int i = 0; i < kEach; ++i)
      examples.emplace_back(
          to_json(filled<Value>({.depth = depth, .chance = i == 0 ? nullptr : &chance})));
  }
  return schema_of(examples);
}

}  // namespace foretrace
