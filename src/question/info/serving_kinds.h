#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>

#include "foretrace/trace.h"

namespace foretrace {

class Document;

/// Whether the recording has steps of an engine that serves a model.
bool serves(const Trace& trace);
/// The steps of an engine that serves a model, by kind. Both do nothing for other recordings.
void say_serving_steps(const Trace& trace, Document& document);
/// The table of steps that `serve --table` reads. Throws Error if the recording does not hold one.
void write_steps_csv(const Trace& trace, std::ostream& out);
void add_serving_steps(const Trace& trace, nlohmann::json& object);

}  // namespace foretrace
