#pragma once

// The words that practitioners use: "bf16", "num_workers=4", "gradient checkpointing", "h100".
// Their table is src/transform/synonyms.def; capitals, dashes, dots, blanks and underscores do not
// matter.

#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

struct Synonym {
  std::string_view transform;
  std::vector<std::string_view> words;
  std::string_view settings;  ///< The settings that the words imply, "stage=2"; may be empty.
  std::string_view value;  ///< The setting that "words=4" sets; empty if the words take no value.
};
const std::vector<Synonym>& synonyms();

/// Returns the other names of a transform, in the order of the table.
std::vector<std::string_view> synonyms_of(std::string_view transform);

/// Returns the transform of this name or synonym; empty if there is none.
std::string transform_called(std::string_view name);

/// Translates the path of a setting that practitioners know by another name: "num_workers" and
/// "loader.num_workers" become "loader.workers". Returns an unknown path unchanged.
std::string setting_path_called(std::string_view path);

/// Returns the steps that a text asks for, each in the form that read_transform_text() reads: "amp,
/// num_workers=4" gives "amp" and "loader:workers=4". A comma begins a new step if a transform or
/// synonym follows it that is not a setting of the previous step. Throws Error on an unknown name;
/// the message says what can be asked instead.
std::vector<std::string> read_steps(std::string_view text);

/// Returns advice on what to ask in place of `name`, which is no transform; empty if there is none.
std::string_view alternative_to(std::string_view name);

/// Likewise for words that no change answers but another question does: "ttft", "price".
std::string_view question_about(std::string_view name);

/// Returns steps for up to three devices whose names have `name`: "h100" fits several, "4090" one.
/// Empty if none does.
std::string devices_like(std::string_view name);

/// Returns the text without blanks at its ends.
std::string_view without_blanks(std::string_view text);

/// Returns the error text for a name that is no transform, for read_steps() and scenario files.
std::string no_such_transform(std::string_view name);

}  // namespace foretrace
