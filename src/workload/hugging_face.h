#pragma once

// Models as Hugging Face's config.json describes them.

#include <nlohmann/json_fwd.hpp>

namespace foretrace {

/// Whether an object looks like a config.json.
bool is_hugging_face(const nlohmann::json& config);

/// Settings of the family "transformer". Samples have as many tokens as the model takes, at most
/// 4096: the file does not say how long they are. Throws Error if the model's type is not known:
/// code that comes with a model is not run.
nlohmann::json hugging_face_settings(const nlohmann::json& config);

}  // namespace foretrace
