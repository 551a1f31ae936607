#include "question/files.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/fields/settings.h"
#include "base/files/json_events.h"
#include "base/files/new_file.h"
#include "base/json_text.h"
#include "foretrace/error.h"
#include "import/holds_trace.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOutput = "OUT";
/// Names of values that are not paths.
constexpr std::array<std::string_view, 3> kNoPaths = {"NAME", "TRANSFORM", "WORD"};
constexpr std::string_view kTrace = "TRACE", kProgram = "PROGRAM";
/// Other names of values that are traces.
constexpr std::array<std::string_view, 2> kTraces = {"A", "B"};
constexpr std::size_t kMaxDelimiters = 16;
constexpr int kDeepestQuotes = 4;  ///< A step, quoted in a scenario, in a setting.
constexpr std::size_t kLongestPath = 4096;
constexpr std::uintmax_t kLongestJson = 16'000'000;  ///< Bytes; the limit of scenario files.
constexpr std::size_t kMaxJson = 256;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_one_of(std::string_view name, const auto& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether the type lists words, such as "text|json".
bool is_choice(std::string_view type) {
  return type.find('|') != type.npos &&
         type.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == type.npos;
}

/// Returns a text that is equal for all paths of one file or folder, and empty for pipes and
/// devices. A file that does not exist yet is identified by the path where it would be created.
std::string file_identity(const std::string& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) == 0) {
    if (!S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode)) return {};
    return fmt::format("{}:{}", found.st_dev, found.st_ino);
  }
  try {
    return follow_links(path).path;
  } catch (const Error&) {
    return fs::absolute(path).lexically_normal().string();
  }
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// A part of a text without blanks around it, or the brackets of a list.
std::string_view bare(std::string_view part) {
  const std::size_t begin = std::min(part.find_first_not_of(" ["), part.size());
  const std::size_t end = part.find_last_not_of(" ]") + 1;
  return begin < end ? part.substr(begin, end - begin) : std::string_view();
}

/// Adds the parts between neighboring delimiters, however many there are.
void add_parts(std::string_view text, std::vector<std::string>& paths) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(":=,", begin), text.size());
    const std::string_view part = bare(text.substr(begin, end - begin));
    if (!part.empty() && part.size() < kLongestPath) paths.emplace_back(part);
    begin = end + 1;
  }
}

/// The JSON strings in a text, decoded: what stands in quotes may be escaped.
std::vector<std::string> quoted_strings(std::string_view text) {
  std::vector<std::string> strings;
  for (std::size_t at = text.find('"'); at != text.npos; at = text.find('"', at + 1)) {
    std::size_t end = at + 1;
    while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    if (end >= text.size()) continue;
    const auto value = try_parse_json<nlohmann::json>(text.substr(at, end - at + 1));
    if (value.is_string()) strings.push_back(value.get<std::string>());
  }
  return strings;
}

/// Returns everything that a text may name: the text, each part of it between two delimiters, its
/// begin or its end, and the same of each string in quotes in it.
std::vector<std::string> possible_paths(const std::string& text, int depth = 0) {
  std::vector<std::size_t> begins = {0}, ends;
  for (std::size_t at = text.find_first_of(":=,"); at != text.npos;
       at = text.find_first_of(":=,", at + 1)) {
    if (ends.size() == kMaxDelimiters) break;
    ends.push_back(at);
    begins.push_back(at + 1);
  }
  ends.push_back(text.size());
  std::vector<std::string> paths;
  for (const std::size_t begin : begins) {
    for (const std::size_t end : ends) {
      if (end > begin && end - begin < kLongestPath)
        paths.push_back(text.substr(begin, end - begin));
    }
  }
  add_parts(text, paths);
  if (depth == kDeepestQuotes) return paths;
  for (const std::string& inner : quoted_strings(text)) {
    for (std::string& path : possible_paths(inner, depth + 1)) paths.push_back(std::move(path));
  }
  return paths;
}

/// Gathers all texts of a JSON file, which may name other files, until it turns out to be a trace.
class TextGatherer final : public JsonEvents {
 public:
  std::vector<std::string> take() {
    return is_trace_ ? std::vector<std::string>() : std::move(texts_);
  }

  bool string(string_t& value) override {
    texts_.push_back(value);
    return true;
  }
  bool start_object(std::size_t) override { return ++depth_ <= kMaxNesting; }
  bool end_object() override { return depth_-- > 0; }
  bool start_array(std::size_t) override {
    is_trace_ = depth_ == 1 && key_ == "traceEvents";
    return !is_trace_ && ++depth_ <= kMaxNesting;
  }
  bool end_array() override { return depth_-- > 0; }
  bool key(string_t& key) override {
    if (depth_ == 1) key_ = key;
    return true;
  }

 private:
  std::vector<std::string> texts_;
  std::string key_;  ///< The last one of the outermost object.
  int depth_ = 0;
  bool is_trace_ = false;
};

/// Returns no texts if the file is not JSON, or is a trace.
std::vector<std::string> texts_in_json(const std::string& path) {
  std::error_code error;
  if (fs::file_size(path, error) > kLongestJson || error) return {};
  std::ifstream file(path, std::ios::binary);
  std::string mark(kByteOrderMark.size(), '\0');
  file.read(mark.data(), static_cast<std::streamsize>(mark.size()));
  const bool is_marked = file && mark == kByteOrderMark;
  file.clear();
  if (!is_marked) file.seekg(0);
  file >> std::ws;
  if (file.peek() != '{' && file.peek() != '[') return {};
  TextGatherer gatherer;
  nlohmann::json::sax_parse(file, &gatherer);
  return gatherer.take();
}

[[noreturn]] void refuse(const NamedFile& output, const std::string& what,
                         const std::string& path) {
  throw Error(fmt::format("{}: must not be {}, got '{}' beside '{}'", output.setting, what,
                          output.path, path));
}

/// Whether the path lies in `root` after links are followed. The file need not exist.
bool is_within(const std::string& path, const fs::path& root) {
  std::error_code error;
  const fs::path target = fs::weakly_canonical(fs::absolute(path), error);
  return !error && std::ranges::mismatch(root, target).in1 == root.end();
}

[[noreturn]] void refuse_outside(const std::string& setting, const std::string& path,
                                 const std::string& root) {
  throw Error(fmt::format("{}: must be in {}, got '{}'", setting, root, path));
}

[[noreturn]] void refuse_writing(const std::string& setting) {
  throw Error(setting + ": must be left out; no file may be written here");
}

struct ValueName {
  std::string operator()(const bool*) const { return ""; }
  std::string operator()(const std::int64_t*) const { return "NUMBER"; }
  std::string operator()(const double*) const { return "NUMBER"; }
  std::string operator()(const std::string*) const { return "TEXT"; }
  std::string operator()(const std::vector<std::string>*) const { return "TEXT"; }
  std::string operator()(const Nanoseconds*) const { return "TIME"; }
  std::string operator()(const Bytes*) const { return "SIZE"; }
  std::string operator()(const Bandwidth*) const { return "RATE"; }
  std::string operator()(const Throughput*) const { return "RATE"; }
  std::string operator()(const Described*) const { return ""; }
  template <class Value>
  std::string operator()(const std::optional<Value>*) const {
    return (*this)(static_cast<const Value*>(nullptr));
  }
};

/// Adds the texts of settings as possible files.
class FileFinder final : public Fields {
 public:
  explicit FileFinder(QuestionFiles& files) : files_(files) {}
  void visit(const Setting& setting) override {
    if (auto* const* nested = std::get_if<Described*>(&setting.value))
      return (*nested)->describe(*this);
    std::vector<std::string> texts;
    if (auto* const* text = std::get_if<std::string*>(&setting.value)) texts = {**text};
    if (auto* const* list = std::get_if<std::vector<std::string>*>(&setting.value)) texts = **list;
    files_.add(value_name(setting), std::string(setting.name), texts);
  }

 private:
  QuestionFiles& files_;
};

}  // namespace

std::string value_name(const Setting& setting) {
  if (setting.options) return joined(*setting.options, "|");
  if (!setting.form.value.empty()) return std::string(setting.form.value);
  if (setting.kind == TextKind::path) return "FILE";
  if (setting.kind == TextKind::name_or_path) return "NAME|FILE";
  return std::visit(ValueName{}, setting.value);
}

class QuestionFiles::Inputs {
 public:
  void add(const NamedFile& named) {
    for (const std::string& path : possible_paths(named.path)) {
      if (is_file(path)) {
        add_file({.setting = named.setting, .path = path});
        if (!named.is_program && !named.is_trace) json_.push_back({named.setting, path});
      } else if (!named.is_program && is_folder(path)) {
        add_folder({named.setting, path, named.is_trace});
      }
    }
  }

  /// Adds the files that JSON inputs name, by paths relative to the current folder, to the folder
  /// of the JSON file, or to a folder that is read.
  void add_files_named_in_json() {
    std::set<std::string> read_files;
    for (std::size_t i = 0; i < json_.size() && i < kMaxJson; ++i) {
      const NamedFile json = json_[i];
      if (!read_files.insert(file_identity(json.path)).second) continue;
      std::vector<fs::path> base_folders = {"", fs::path(json.path).parent_path()};
      for (const NamedFile& folder : folders_) base_folders.emplace_back(folder.path);
      for (const std::string& text : texts_in_json(json.path)) {
        for (const fs::path& folder : base_folders) add_text(text, folder, json.setting);
      }
    }
  }

  /// Throws Error if the output is an input. `identity` is the output's file_identity().
  void check_file(const NamedFile& output, const std::string& identity) const {
    const auto found = files_.find(identity);
    if (found == files_.end()) return;
    const Input& input = found->second;
    if (!input.is_in_folder)
      refuse(output,
             (input.is_named ? "a file that is read because of " : "the file of ") + input.setting,
             input.path);
    if (holds_trace(input.path))
      refuse(output, "one of the traces in the folder of " + input.setting, input.path);
  }

  void check_root(const fs::path& root) const {
    for (const auto& [identity, input] : files_) {
      if (!is_within(input.path, root)) refuse_outside(input.setting, input.path, root.string());
    }
  }

  /// Throws Error if a trace would be written into the folder that is read, where the next run
  /// would read it.
  void check_folder(const NamedFile& output) const {
    if (output.setting != kOutput) return;
    const std::string parent = fs::path(output.path).parent_path().string();
    const std::string identity = file_identity(is_folder(output.path) ? output.path
                                               : parent.empty()       ? "."
                                                                      : parent);
    for (const NamedFile& folder : folders_) {
      if (folder.is_trace && identity == file_identity(folder.path))
        refuse(output, "in the folder of " + folder.setting, folder.path);
    }
  }

 private:
  struct Input {
    std::string setting;
    std::string path;
    bool is_in_folder = false;
    bool is_named = false;  ///< Another file that is read names it.
  };

  void add_file(Input input) { files_.try_emplace(file_identity(input.path), std::move(input)); }

  void add_folder(const NamedFile& folder) {
    folders_.push_back(folder);
    add_files_in(folder, folder.path, 1);
  }

  void add_files_in(const NamedFile& folder, const std::string& place, int levels) {
    std::error_code error;
    for (auto entry = fs::directory_iterator(place, error);
         !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const std::string path = entry->path().string();
      if (is_file(path)) {
        add_file({.setting = folder.setting, .path = path, .is_in_folder = true});
      } else if (levels > 0 && is_folder(path)) {
        add_files_in(folder, path, levels - 1);
      }
    }
  }

  void add_text(const std::string& text, const fs::path& folder, const std::string& setting) {
    for (const std::string& part : possible_paths(text)) {
      const std::string path = (folder / part).string();
      if (is_file(path)) {
        add_file({.setting = setting, .path = path, .is_named = true});
        json_.push_back({setting, path});
      } else if (part.size() > 2 && is_folder(path)) {  // "." and ".." are not folders of traces.
        add_files_in({setting, path}, path, 1);
      }
    }
  }

  std::map<std::string, Input> files_;
  std::vector<NamedFile> folders_;
  std::vector<NamedFile> json_;
};

void QuestionFiles::add(std::string_view value, const std::string& setting,
                        const std::vector<std::string>& texts) {
  const bool is_output = value == kOutput;
  if (!is_output && (is_choice(value) || is_one_of(value, kNoPaths))) return;
  const bool is_trace = value == kTrace || is_one_of(value, kTraces);
  for (const std::string& path : texts) {
    if (path.empty()) continue;
    (is_output ? outputs_ : inputs_).push_back({setting, path, is_trace, value == kProgram});
  }
}

void QuestionFiles::add(Described& settings) {
  FileFinder finder(*this);
  settings.describe(finder);
}

void QuestionFiles::check() const {
  if (!root_.empty()) check_root();
  check(0);
}

void QuestionFiles::check_root() const {
  if (!outputs_.empty()) refuse_writing(outputs_.front().setting);
  const fs::path root = fs::canonical(root_);
  Inputs inputs;
  for (const NamedFile& input : inputs_) {
    for (const std::string& path : possible_paths(input.path)) {
      // A setting such as /gemm/ is a pattern, unless there is such a folder.
      const bool may_be_path = input.is_trace || is_file(path) || is_folder(path);
      if (may_be_path && !is_within(path, root)) refuse_outside(input.setting, path, root_);
    }
    inputs.add(input);
  }
  inputs.add_files_named_in_json();
  inputs.check_root(root);
}

void QuestionFiles::add_outputs(const std::vector<NamedFile>& outputs) {
  if (!root_.empty() && !outputs.empty()) refuse_writing(outputs.front().setting);
  const std::size_t first = outputs_.size();
  for (const NamedFile& output : outputs) {
    std::erase_if(inputs_, [&](const NamedFile& input) { return input.setting == output.setting; });
    outputs_.push_back(output);
  }
  check(first);
}

void QuestionFiles::check(std::size_t first) const {
  if (first == outputs_.size()) return;
  Inputs inputs;
  for (const NamedFile& input : inputs_) inputs.add(input);
  inputs.add_files_named_in_json();
  std::map<std::string, const NamedFile*> taken;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const NamedFile& output = outputs_[i];
    if (i >= first) inputs.check_folder(output);
    const std::string identity = file_identity(output.path);
    if (identity.empty() || is_folder(output.path)) continue;
    const auto [other, is_new] = taken.try_emplace(identity, &output);
    if (i < first) continue;
    const NamedFile& before = *other->second;
    if (!is_new && (before.setting != output.setting || before.path != output.path))
      refuse(output, "the file of " + before.setting, before.path);
    inputs.check_file(output, identity);
  }
}

}  // namespace foretrace
