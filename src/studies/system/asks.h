#pragma once

// Numbers of a described system that other questions answer:
//
//     "asks": [{"question": "generate",
//               "settings": {"model": "gpt2-1.4b", "machine": "daint.json",
//                            "layout": "pp={stages},dp=64,global_batch=2048"},
//               "take": {"step": "/step/step_time_ns"}}]
//
// `{stages}` stands for the value of a formula. A text that names a file beside the description is
// the path of that file. "take" has pointers into the JSON of the answer (RFC 6901); numbers are in
// the units of that JSON. Each question is asked once for the same settings.

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "foretrace/question.h"

namespace foretrace {

using NamedNumbers = std::map<std::string, double>;

struct SystemAsk {
  std::string question{};
  nlohmann::json settings{};
  std::map<std::string, std::string> take{};  ///< Pointers by the names of numbers.
};

/// Throws Error if it is not of the form above.
SystemAsk read_ask(const nlohmann::json& json);

/// The value of a formula. Throws Error if it cannot be read or is not finite.
double formula_value(const std::string& formula, const NamedNumbers& numbers);

class Asker {
 public:
  /// `path` is that of the description. No question may write a file; `options` says which ones
  /// they may read.
  Asker(const std::string& path, AskOptions options);

  /// Adds the numbers that an answer gives. Throws Error or TraceError.
  void add(const SystemAsk& ask, NamedNumbers& numbers);

  /// Sentences that the answers assume, each once, in the order of the questions.
  const std::vector<std::string>& assumptions() const { return assumptions_; }

 private:
  nlohmann::json filled(const nlohmann::json& settings, const NamedNumbers& numbers) const;
  const nlohmann::json& answer(const std::string& question, const nlohmann::json& settings);

  std::string folder_;
  AskOptions options_;
  std::map<std::string, nlohmann::json> answers_;
  std::vector<std::string> assumptions_;
};

}  // namespace foretrace
