#pragma once

// The explorer's questions. A page asks in JSON and gets JSON:
//
//     {"ask": "transforms"}                                    all, settings as JSON Schema
//     {"ask": "machines"}                                      devices to predict for
//     {"ask": "read", "steps": "bf16,loader:workers=4"}        transforms, as --with takes them
//     {"ask": "open", "path": P}                               reads a job, which stays in memory
//     {"ask": "quick", "scenario": {...}}                      like predict, faster: for sliders
//     {"ask": "predict", "scenario": {...}, "tasks": n}        for the open job; tasks 0: no parts
//     {"ask": "advise", "path": P}
//     {"ask": "diff", "before": P, "after": P}
//
// An answer is {"error": text}, or contains the result. Results of commands are in "json", the text
// that the command of that name prints with --format json. A prediction also has "parts", which the
// page shows (see prediction_parts()), and "command", the command line that asks the same.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace foretrace {

class Explorer {
 public:
  Explorer();
  ~Explorer();
  /// Answers one question. Errors are answers, too.
  std::string answer(std::string_view question);

 private:
  struct OpenJob;

  nlohmann::json answer_to(const nlohmann::json& question);

  std::unique_ptr<OpenJob> open_job_;
};

}  // namespace foretrace
