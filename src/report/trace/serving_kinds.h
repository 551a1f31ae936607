#pragma once

#include <nlohmann/json_fwd.hpp>

#include "foretrace/trace.h"

namespace foretrace {

class Document;

/// The steps of an engine that serves a model, by kind. Both do nothing for other recordings.
void say_serving_steps(const Trace& trace, Document& document);
void add_serving_steps(const Trace& trace, nlohmann::json& object);

}  // namespace foretrace
