#pragma once

// Configuration files that other programs read, as one list of values, whatever they are written
// in. Nothing in them is run.
//
//     parallelism:               "parallelism.tp"   8      line 2
//       tp: 8                    "layers.0"         full   line 3
//     layers: [full, window]     "layers.1"         window line 3

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

struct ConfigValue {
  std::string key{};     ///< Names and indices from the outermost one, between full stops.
  std::string text{};    ///< Without quotes; "null" if there is none, "true" for a flag alone.
  bool is_word = false;  ///< Quoted, where quotes tell texts from numbers.
  std::size_t begin = 0, end = 0;  ///< Bytes of the file, with quotes; equal if not known.
};

/// A value that a file should have.
struct ConfigChange {
  std::string key{};     ///< Without a full stop also the end of a longer one in the file.
  std::string value;     ///< Empty: the file should not give one.
  std::string usual{};   ///< The value if the file does not name the key.
  bool is_word = false;  ///< A text, which gets quotes where texts have them.
};

/// arguments: of a command line or in a script for a shell, whose simple variables are replaced.
/// log: "name ..... value" in lines, as Megatron-LM prints its arguments.
enum class ConfigForm : std::uint8_t { json, yaml, toml, arguments, log };

struct Config {
  ConfigForm form = ConfigForm::json;
  std::string text{};
  std::vector<ConfigValue>
      values{};  ///< In the order of the file; a key once, except in arguments.
};

/// Reads a file of at most 16 MB by its ending: .json, .yaml or .yml, .toml; any other one is JSON
/// if it begins with a brace, else arguments or a log. Throws Error that begins with the path: a
/// program (.py), bad syntax with its line, a key given twice, anchors and tags of YAML, values
/// that nest deeper than kMaxNesting.
Config read_config(const std::string& path);

/// The byte behind `count` characters of UTF-8 that begin at `at`; the end if there are fewer.
std::size_t behind_characters(std::string_view text, std::size_t at, std::size_t count);

std::vector<ConfigValue> json_values(std::string_view text);
/// Throws Error also in a build without libyaml, such as the explorer's page.
std::vector<ConfigValue> yaml_values(std::string_view text);
std::vector<ConfigValue> toml_values(std::string_view text);
/// The keys have no dashes: "--micro-batch-size 4" is "micro_batch_size". A variable that has no
/// value in the text stays: "$TP".
std::vector<ConfigValue> argument_values(std::string_view text);
std::vector<ConfigValue> log_values(std::string_view text);

/// "--micro-batch-size 4", "--training.seq_len 4096", or "--bf16" for the value "true".
std::string argument_text(const ConfigChange& change);

/// The text of the file with these values: others, their order and comments stay. JSON is written
/// anew. Throws Error on a log, and on a value that has no place: a key without a full stop that
/// the file lacks, if the file has sections.
std::string changed_text(const Config& config, const std::vector<ConfigChange>& changes);

}  // namespace foretrace
