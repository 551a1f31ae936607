#include "cli/options.h"

#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "foretrace/new_file.h"
#include "foretrace/shown.h"
#include "foretrace/units.h"

namespace foretrace {

void CacheOptions::add_to(CLI::App& command) {
  command.add_flag("--no-cache", off,
                   "Neither use nor keep copies of traces that are slow to read");
  command
      .add_option("--cache-dir", folder,
                  "Where to keep such copies instead of foretrace in $XDG_CACHE_HOME or ~/.cache")
      ->type_name("FOLDER");
  command
      .add_option("--max-unpacked", most_unpacked,
                  "Refuse a packed trace that unpacks to more (default: 16GiB, or, beyond 256MiB, "
                  "200 times its size)")
      ->type_name("SIZE");
}

std::int64_t CacheOptions::max_unpacked() const {
  if (most_unpacked.empty()) return 0;
  return within("--max-unpacked", [&] {
    const Bytes most = parse_bytes(most_unpacked);
    if (most.count < 1) throw Error("must be more than nothing, got " + most_unpacked);
    return most.count;
  });
}

std::string CacheOptions::chosen() const {
  if (off) return {};
  return folder.empty() ? default_cache_folder() : folder;
}

void ExecutionTraceOption::add_to(CLI::App& command) {
  command
      .add_option("--execution-trace", path,
                  "PyTorch's execution trace of the same run, or a folder with those of all ranks: "
                  "tells what each op reads and writes")
      ->type_name("FILE");
}

void OutputOption::add_to(CLI::App& command) {
  add_to(command, "--output,-o", "Write the result to this file instead of standard output");
}

void OutputOption::add_to(CLI::App& command, const std::string& name, const std::string& help) {
  names_output(command.add_option(name, path, help));
}

void OutputOption::write(Session& session, const std::function<void(std::ostream&)>& answer) const {
  if (path.empty()) return answer(session.out);
  write_new_file(path, [&](std::ostream& file) {
    const ShownOn wall(file);
    answer(file);
  });
}

void FormatOption::add_to(CLI::App& command) {
  std::string all;
  for (const std::string_view name : names) all += (all.empty() ? "" : "|") + std::string(name);
  command.add_option("--format", chosen, "How to show the result")->type_name(all);
}

void FormatOption::check() const {
  std::string all;
  for (const std::string_view name : names) {
    if (name == chosen) return;
    all += (all.empty() ? "" : ", ") + std::string(name);
  }
  throw Error("--format: must be one of " + all + ", got '" + chosen + "'" +
              did_you_mean(chosen, names));
}

void AnswerOptions::add_to(CLI::App& command) {
  format.add_to(command);
  command.add_flag("--quiet", quiet, "Show no progress");
  output.add_to(command);
  cache.add_to(command);
}

void add_trace(CLI::App& command, std::string& trace) {
  command.add_option("TRACE", trace, "A trace, or a folder with those of all ranks")->required();
}

void print_json(const nlohmann::json& value, std::ostream& out) {
  out << value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

}  // namespace foretrace
