#pragma once

// Programs that launch training jobs: what their configuration files say of a job, and the settings
// with which they run a layout.
//
//     pretrain.sh, train.toml, ... --read--> model, layout, batch --> what `generate` asks
//     layout --changes--> settings of the program: flags, or the same file with other values
//
// Keys, defaults and their meaning are from the programs' sources: Megatron-LM d98e8a64,
// Megatron-Bridge 067f987d, torchtitan 0.2.2, DeepSpeed edaa7221, nanotron 2411b022 (2026).

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/config/config.h"
#include "price/price.h"

namespace foretrace {

/// Looks up values of a file, and keeps which ones nobody looked up.
class ConfigReader {
 public:
  explicit ConfigReader(const Config& config) : config_(config) {}

  /// The last value with one of these keys. A key that begins with a full stop is the end of a
  /// longer one or, without the stop, a whole one: ".hidden_size". Null values count as missing.
  const ConfigValue* find(std::initializer_list<std::string_view> keys);
  bool has(std::initializer_list<std::string_view> keys) { return find(keys) != nullptr; }

  /// Throw Error, with the key, if the value is of another kind, "auto", or a variable of a script.
  std::optional<std::int64_t> integer(std::initializer_list<std::string_view> keys);
  std::int64_t integer(std::initializer_list<std::string_view> keys, std::int64_t usual);
  /// An integer of at least 1 that must be in the file; `what` it is.
  std::int64_t stated(std::initializer_list<std::string_view> keys, std::string_view what);
  /// nullopt also for a value that a script knows only when it runs.
  std::optional<std::int64_t> known_integer(std::initializer_list<std::string_view> keys);
  double number(std::initializer_list<std::string_view> keys, double usual);
  std::string word(std::initializer_list<std::string_view> keys, const std::string& usual = "");
  bool flag(std::initializer_list<std::string_view> keys, bool usual = false);
  /// All values of a list, with blanks between them; of arguments, what stands before the next one.
  std::string list(std::string_view key);

  /// Keys that were not looked up, sorted.
  std::vector<std::string> unread() const;
  ConfigForm form() const { return config_.form; }

 private:
  const Config& config_;
  std::set<std::string, std::less<>> read_;
};

/// A job as a file describes it.
struct LaunchSettings {
  std::string model{};     ///< For find_workload(); empty: it names none.
  std::string sequence{};  ///< Tokens of a sample if `model` does not say; empty: unknown.
  nlohmann::json layout = nlohmann::json::object();  ///< Settings of Layout, but not dp.
  std::optional<std::int64_t> gpus{}, global_batch{};
  std::optional<std::int64_t> accumulation{};  ///< Micro-batches of a rank in a step.
  std::optional<std::int64_t> local_batch{};   ///< Samples of a rank between flushes.
  /// The micro-batch is what global batch, accumulation (or 1) and data parallel ranks leave.
  bool micro_batch_follows = false;
  std::vector<std::string> notes{};
};

struct LaunchProgram {
  std::string_view name;
  bool (*recognizes)(ConfigReader& config);
  /// Throws Error if a value is not allowed or contradicts others.
  LaunchSettings (*read)(ConfigReader& config);
  /// Whether the program has a setting for everything in the layout.
  bool (*runs)(const Layout& layout);
  /// All settings that decide the layout. REQUIRES: runs(layout).
  std::vector<ConfigChange> (*changes)(const Layout& layout);
  bool has_flags = false;  ///< Whether its settings are flags of a command line.
};
/// In the order of programs.def.
const std::vector<LaunchProgram>& launch_programs();

/// Programs whose settings are flags of a command line.
std::vector<const LaunchProgram*> flag_programs();

/// The settings that differ from the program's defaults, as flags.
std::vector<std::string> flags_of(const LaunchProgram& program, const Layout& layout);

/// A configuration file of a job.
struct LaunchFile {
  std::string path{};
  Config config{};
  const LaunchProgram* program = nullptr;
  LaunchSettings settings{};
};

/// Throws Error that begins with the path if no program knows the file, or if its values are not
/// allowed.
LaunchFile read_launch_file(const std::string& path);

/// The settings of a layout on `gpus` devices, if that is not 0 and else on as many as the file
/// says; `stated` (settings of Layout as text: "dp=4") wins over the file. Returns text for
/// --layout. Throws Error if the number of devices is not known, or contradicts the layout or the
/// batch.
std::string launch_layout(const LaunchFile& file, const std::string& stated, std::int64_t gpus);

/// The model of a file, unless `stated` is given; with the file's sequence where the model has
/// none. Throws Error if there is none.
std::string launch_model(const LaunchFile& file, const std::string& stated);

/// Settings of a transformer as the shortest text for find_workload(): a preset that differs from
/// them in little, or the family.
std::string model_text(const nlohmann::json& settings);

}  // namespace foretrace
