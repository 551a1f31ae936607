#pragma once

// Schedules made from settings, as on the command line.

#include <string>
#include <string_view>

#include "base/fields/assignments.h"
#include "foretrace/error.h"
#include "schedule/schedule.h"

namespace foretrace {

/// schedule_of("chimera", "stages=4,micro_batches=8").
inline Schedule schedule_of(std::string_view name, std::string_view settings) {
  const auto rule = find_schedule(name);
  read_assigned(settings, *rule);
  return rule->make();
}

/// The message of the Error that the schedule's rule throws; empty if it throws none.
inline std::string refusal_of(std::string_view name, std::string_view settings) {
  try {
    schedule_of(name, settings);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace foretrace
