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
  std::string_view value;     ///< The setting that "words=4" gives a value; empty: it takes none.
};
const std::vector<Synonym>& synonyms();

/// All that a transform is also called, in the order of the table.
std::vector<std::string_view> synonyms_of(std::string_view transform);

/// The transform of this name or of this synonym; empty if there is none.
std::string transform_called(std::string_view name);

/// The path of a setting that practitioners know by another name: "num_workers" and
/// "loader.num_workers" become "loader.workers". A path that fits nothing stays as it is.
std::string setting_path_called(std::string_view path);

/// The steps that a text asks for, each as read_transform_text() takes it: "amp, num_workers=4"
/// gives "amp" and "loader:workers=4". A comma begins a step where what follows it is a transform
/// or a synonym, and no setting of the step before. Throws Error on what means nothing, with what
/// can be asked instead.
std::vector<std::string> read_steps(std::string_view text);

/// What can be asked in place of something that is no transform; empty if nothing is known.
std::string_view asked_instead_of(std::string_view name);

/// The error for a name that is no transform, for read_steps() and for scenario files.
std::string no_such_transform(std::string_view name);

}  // namespace foretrace
