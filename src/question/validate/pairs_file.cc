// Lists of before/after pairs: our own, and the measurements of scripts/ground_truth.py.

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/files/json_file.h"
#include "base/json_text.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/fields.h"
#include "foretrace/question/pairs.h"
#include "foretrace/transform.h"
#include "scenario/use_text.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPairsSchema = "foretrace.pairs/1";
constexpr std::string_view kGroundTruthSchema = "foretrace.ground_truth/1";

/// The fields of a pair in the file.
struct PairFields : Described {
  std::string name, before, after, compare = "step_time", kind;
  std::vector<std::string> uses;
  bool fitted = false;

  void describe(Fields& fields) override {
    fields.text("name", name, "What changed");
    fields.text("before", before, "The recording before");
    fields.text("after", after, "The recording after");
    fields.texts("with", uses, "The transforms that model the change");
    fields.choice("compare", compare, {"step_time", "peak_allocated", "peak_reserved"},
                  "What is compared");
    fields.text("class", kind, "The kind of what-if; by default the transforms");
    fields.flag("fitted", fitted, "A transform was refined on this pair");
  }
};

/// Path of a file in the folder, which may be packed (.gz).
std::string found_in_folder(const std::filesystem::path& folder, const std::string& name) {
  const std::string path = (folder / name).lexically_normal().string();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored) && std::filesystem::exists(path + ".gz", ignored))
    return path + ".gz";
  return path;
}

/// "amp, prefetch"
std::string kind_of_uses(const std::vector<std::string>& uses) {
  std::vector<std::string> names;
  for (const std::string& use : uses) {
    const std::string name(kind_of(use));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return joined(names);
}

Compared compared_named(std::string_view name) {
  for (const Compared peak : {Compared::peak_allocated, Compared::peak_reserved}) {
    if (name == to_string(peak)) return peak;
  }
  return Compared::step_time;
}

class PairReader {
 public:
  PairReader(const std::string& path, const std::string& folder)
      : path_(path),
        folder_(folder.empty() ? std::filesystem::path(path).parent_path()
                               : std::filesystem::path(folder)) {
    list_.path = path;
  }

  PairList read() {
    const Json file = read_json_file(path_);
    within(path_, [&] {
      if (!file.is_object() || !file.contains("schema"))
        throw Error(fmt::format("must be an object with \"schema\": \"{}\" or \"{}\"", kPairsSchema,
                                kGroundTruthSchema));
      if (file["schema"] == kGroundTruthSchema) return read_ground_truth(file);
      if (file["schema"] == kPairsSchema) return read_pair_list(file);
      throw Error(fmt::format("schema: must be \"{}\" or \"{}\", got {}", kPairsSchema,
                              kGroundTruthSchema, json_line(file["schema"])));
    });
    return std::move(list_);
  }

 private:
  void read_pair_list(const Json& file) {
    const std::vector<std::string_view> known = {"schema", "pairs", "synthetic", "$comment"};
    for (const auto& [key, value] : file.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      throw Error(
          fmt::format("there is no \"{}\" in a list of pairs{}", key, did_you_mean(key, known)));
    }
    if (file.contains("synthetic") && !file["synthetic"].is_boolean())
      throw Error("synthetic: must be true or false");
    if (!file.contains("pairs") || !file["pairs"].is_array() || file["pairs"].empty())
      throw Error("pairs: must be a list of at least one");
    for (const Json& pair : file["pairs"]) {
      within(fmt::format("pairs[{}]", list_.pairs.size()),
             [&] { list_.pairs.push_back(read_pair(pair)); });
      list_.pairs.back().synthetic = file.value("synthetic", false);
    }
  }

  KnownPair read_pair(const Json& object) const {
    PairFields fields;
    read_json(object, fields);
    if (fields.name.empty()) throw Error("name: must be given");
    if (fields.before.empty()) throw Error("before: must be the path of a recording");
    if (fields.after.empty()) throw Error("after: must be the path of a recording");
    if (fields.uses.empty()) throw Error("with: must name at least one transform");
    for (const std::string& use : fields.uses)
      within("with: " + use, [&] { read_transform_text(use); });
    return {.name = fields.name,
            .before = found_in_folder(folder_, fields.before),
            .after = found_in_folder(folder_, fields.after),
            .uses = fields.uses,
            .kind = fields.kind.empty() ? kind_of_uses(fields.uses) : fields.kind,
            .compared = compared_named(fields.compare),
            .fitted = fields.fitted};
  }

  void read_ground_truth(const Json& file) {
    if (!file.contains("cases") || !file["cases"].is_array()) throw Error("cases: must be a list");
    is_dry_run_ = file.contains("dry_run") && file["dry_run"] == true;
    if (is_dry_run_)
      list_.notes.add(Severity::warning, "times of a dry run are made up: errors mean nothing");
    std::size_t number = 0;
    for (const Json& run : file["cases"]) {
      within(fmt::format("cases[{}]", number++), [&] {
        try {
          read_case(run);
        } catch (const Json::exception&) {
          throw Error("must have the keys of a case as in traces/README.md");
        }
      });
    }
    if (list_.pairs.empty()) throw Error("cases: none is done and has transforms to predict with");
  }

  void read_case(const Json& run) {
    if (run.at("status") != "done") {
      list_.notes.add(Severity::info, "cases that are not done", run.at("id").get<std::string>());
      return;
    }
    if (run.at("predict").is_null()) {
      list_.notes.add(Severity::info, "cases that no transform stands for",
                      run.at("id").get<std::string>());
      return;
    }
    const Json& traces = run.at("before").at("traces");
    const Json& after = run.at("after");
    for (const char* source : {"kineto", "ftrace", "snapshot"}) {
      if (!traces.contains(source)) continue;
      const bool snapshot = std::string_view(source) == "snapshot";
      KnownPair pair{.name = fmt::format("{} ({})", run.at("id").get<std::string>(), source),
                     .before = found_in_folder(folder_, traces.at(source).at("path")),
                     .after = {},
                     .uses = run.at("predict").get<std::vector<std::string>>(),
                     .kind = {},
                     .compared = snapshot ? Compared::peak_allocated : Compared::step_time,
                     .synthetic = is_dry_run_};
      for (const std::string& use : pair.uses)
        within("predict: " + use, [&] { read_transform_text(use); });
      pair.kind = kind_of_uses(pair.uses);
      pair.recorded = snapshot ? whole_in(after.at("memory"), "peak_allocated_bytes")
                               : step_time_of(after, source);
      list_.pairs.push_back(std::move(pair));
    }
  }

  static std::int64_t whole_in(const Json& object, const char* key) {
    const Json& value = object.at(key);
    return within(key, [&] { return whole_number(value); });
  }

  /// Step time while it was recorded in the same way as the other side, because recording costs
  /// time on both.
  static std::int64_t step_time_of(const Json& side, std::string_view source) {
    const char* const same =
        source == "kineto" ? "profiled_step_time_ns" : "collected_step_time_ns";
    const bool has_same = side.contains(same) && side.at(same).is_number();
    return whole_in(side, has_same ? same : "step_time_ns");
  }

  std::string path_;
  std::filesystem::path folder_;
  PairList list_;
  bool is_dry_run_ = false;
};

}  // namespace

PairList read_pairs(const std::string& path, const std::string& folder) {
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
    throw Error(folder + ": must be a folder with recordings");
  return PairReader(path, folder).read();
}

}  // namespace foretrace
