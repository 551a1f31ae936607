#pragma once

// The explorer's questions. A page asks in JSON and gets JSON:
//
//     {"ask": "transforms"}                                    all, settings as JSON Schema
//     {"ask": "machines"}                                      devices to predict for
//     {"ask": "read", "steps": "bf16,loader:workers=4"}        transforms, as --with takes them
//     {"ask": "open", "path": P}                               reads a job, which stays in memory
//     {"ask": "quick", "scenario": {...}}                      like predict, faster: for sliders
//     {"ask": "predict", "scenario": {...}, "tasks": n}        for the open job; tasks 0: no parts
//     {"ask": "vary", "scenario": {...}, "setting": "loader.workers", "values": "1..16"}
//     {"ask": "compare", "before": P, "after": P, "tasks": n}  two recordings
//     {"ask": "questions"}                                     all, settings as JSON Schema
//     {"ask": "question", "name": "advise", "settings": {"trace": P}}
//
// An answer is {"error": text}, or contains the result. Results of questions are in "json" and
// "text", the texts that the command of that name prints with --format. "parts" is what the page
// shows of an answer (see prediction_parts()). A prediction also has "command", the command line
// that asks the same.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace foretrace {

class Job;

class Explorer {
 public:
  /// Answers one question. Errors are answers, too.
  std::string answer(std::string_view question);

 private:
  nlohmann::json answer_to(const nlohmann::json& question);

  std::shared_ptr<const Job> open_job_;
};

}  // namespace foretrace
