#include "foretrace/collect.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <iostream>
#include <set>
#include <sstream>

#include "base/shown.h"
#include "cli/options/command.h"
#include "cli/options/progress.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/import.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

/// The temporary folder of the spools. It lies next to the result, on a disk that is meant for such
/// files, and is deleted with this object unless it is to be kept.
class SpoolFolder {
 public:
  /// Creates the folder around it, but no other, if `makes_parent`.
  SpoolFolder(const std::string& output, bool makes_parent, bool keep) : keep_(keep) {
    const fs::path parent = fs::absolute(output).parent_path();
    std::error_code error;
    if (makes_parent && fs::create_directory(parent, error)) made_ = parent;
    std::string name =
        (parent / (fs::path(output).filename().string() + ".spools-XXXXXX")).string();
    if (mkdtemp(name.data()) == nullptr)
      throw Error(fmt::format("collect: cannot create a folder for the recording in '{}': {}",
                              parent.string(), std::strerror(errno)));
    path_ = name;
  }
  SpoolFolder(const SpoolFolder&) = delete;
  SpoolFolder& operator=(const SpoolFolder&) = delete;
  ~SpoolFolder() {
    std::error_code ignored;
    if (keep_) return;
    fs::remove_all(path_, ignored);
    if (!made_.empty()) fs::remove(made_, ignored);  // Only if nothing was recorded into it.
  }

  void keep() { keep_ = true; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  fs::path made_;
  bool keep_;
};

struct ProcessRecording {
  Trace trace;
  std::string spool;
};

bool used_device(const ProcessRecording& recording) { return !recording.trace.devices.empty(); }

/// The parts of lists that commas separate.
std::vector<std::string> parts_of(const std::vector<std::string>& lists) {
  std::vector<std::string> parts;
  for (const std::string& list : lists) {
    std::istringstream text(list);
    for (std::string part; std::getline(text, part, ',');) parts.push_back(part);
  }
  return parts;
}

class CollectCommand final : public Command {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "OUT", .letter = "o"})
        .path("output", output,
              "Output file, by default recording.ftrace; its ending selects the format, as for "
              "convert. If several processes use a GPU, or with a trailing /, a folder of that "
              "name with one file per rank");
    fields.as({.value = "LIST"})
        .texts("record", record,
               "What to record: a list of kernels, api, sync, graphs, nvtx, memory, device_memory, "
               "overhead; by default all but memory");
    fields.flag("ops", ops,
                "Also record PyTorch's operators with their shapes; slows down the host");
    fields.flag("no_python", no_python,
                "Do not mark the training steps of PyTorch programs with a hook in Python");
    fields.flag("memory", memory, "Also record every block of PyTorch's caching allocator");
    fields.flag("memory_history", memory_history,
                "Also write PyTorch's own memory snapshot, with the source lines that allocated, "
                "as a .pickle next to the output");
    fields.as({.value = "TIME"})
        .text("start_after", start_after, "Start recording after this time, such as 30s");
    fields.optional_time("duration", duration, "Stop recording after this time, such as 5s");
    fields.as({.value = "A-B"})
        .text("steps", steps,
              "Record only these steps, such as 10-15, found by NVTX ranges \"ProfilerStep#10\" "
              "or \"step 10\" (also those of --ops)");
    fields.flag("profiler_api", profiler_api,
                "Record only between torch.cuda.profiler.start() and stop() (cudaProfilerStart)");
    fields.flag("keep_spool", keep_spool, "Keep the raw files that the program wrote while it ran");
    fields.flag("quiet", quiet, "Print only errors");
    fields.as({.value = "PROGRAM", .is_positional = true})
        .texts("program", command, "The program to run, with its arguments, after --");
  }

  bool runs_a_program() const override { return true; }

  CollectOptions options() const {
    CollectOptions options;
    if (!record.empty()) options.record = parts_of(record);
    if (memory) options.record.push_back("memory");
    options.python = !no_python;
    options.ops = ops;
    options.memory_history = memory_history;
    if (!start_after.empty())
      options.start_after = within("--start-after", [&] { return parse_time(start_after); });
    if (duration) options.duration = *duration;
    if (!steps.empty())
      options.steps = within("collect: --steps", [&] { return parse_steps(steps); });
    options.profiler_api = profiler_api;
    within("collect", [&] { foretrace::check(options); });
    return options;
  }

  void run(Invocation& invocation) override {
    const CollectOptions chosen = options();
    if (command.empty())
      throw Error(
          "collect: which PROGRAM? Give it after --: foretrace collect -o run.ftrace -- python "
          "train.py");
    resolve_output(chosen);
    SpoolFolder folder(is_folder() ? output + "recording" : output, is_folder(), keep_spool);
    const CollectedRun program = foretrace::collect(command, folder.path(), chosen);
    std::string problem;
    std::vector<ProcessRecording> all = read(program, folder, problem);
    // A failed program must be recognizable as such, whatever happened to its recording.
    invocation.exit_code = program.status;
    if (all.empty()) {
      std::cerr << "foretrace: nothing was recorded: "
                << (problem.empty() ? reason_nothing_recorded(program, folder) : shown(problem))
                << (program.status == 0
                        ? ""
                        : ", and the program exited with status " + std::to_string(program.status))
                << '\n';
      if (program.status == 0) invocation.exit_code = kUnusableTrace;
      return;
    }
    try {
      write(all, folder);
    } catch (const Error& error) {
      if (program.status == 0) throw;
      std::cerr << "foretrace: " << error.what() << '\n';
    }
    move_snapshots(program, folder);
    if (keep_spool && !quiet)
      std::cerr << "foretrace: the raw recording is in " << folder.path() << '\n';
  }

  /// Throws Error if the output cannot be written, before the program has run for hours. Afterwards
  /// `output` ends in a slash if and only if it is a folder.
  void resolve_output(const CollectOptions& chosen) {
    if (output.empty()) throw Error("collect: --output must name a file or a folder");
    std::error_code ignored;
    if (fs::is_directory(output, ignored) && !is_folder()) output += '/';
    if (is_folder()) return check_folder(output);
    if (fs::is_character_file(output, ignored) || fs::is_block_file(output, ignored))
      throw Error(
          fmt::format("collect: --output must be a file or a folder, got the device '{}'", output));
    const ExporterEntry* exporter = exporter_for(output);
    if (exporter == nullptr && !fs::path(output).extension().empty())
      throw Error(
          fmt::format("collect: --output must end in one of {}, or have no ending (.ftrace), or "
                      "end in / (a folder), got '{}'",
                      all_endings(), output));
    if (exporter == nullptr) output += ".ftrace";
    if (fs::exists(output, ignored) && access(output.c_str(), W_OK) != 0)
      throw Error(fmt::format("collect: '{}' cannot be written: {}", output, std::strerror(errno)));
    const auto& kinds = chosen.record;
    if (exporter != nullptr && exporter->name == "memory_viz" &&
        std::find(kinds.begin(), kinds.end(), "memory") == kinds.end())
      throw Error(
          fmt::format("collect: '{}' would contain only memory events: add --memory", output));
  }

  static void check_folder(const std::string& folder) {
    std::error_code ignored;
    const std::string name = folder.substr(0, folder.find_last_not_of('/') + 1);
    if (!name.empty() && fs::exists(name, ignored) && !fs::is_directory(name, ignored))
      throw Error(fmt::format("collect: '{}' must be a folder, but '{}' is a file", folder, name));
  }

  bool is_folder() const { return output.ends_with('/'); }

  /// Returns why there is no recording. A process that uses CUDA leaves a spool, even an empty one.
  std::string reason_nothing_recorded(const CollectedRun& program,
                                      const SpoolFolder& folder) const {
    if (program.folder_is_gone)
      return fmt::format("the program removed or renamed the folder of the recording, '{}'",
                         folder.path());
    if (program.spools.empty() && !program.has_driver)
      return "the program could not start CUDA: there is no NVIDIA driver (libcuda.so.1 is not "
             "found); install one, or start the container with --gpus all";
    if (program.spools.empty()) return "the program did not use CUDA";
    if (was_cut_off)
      return "the program closed the recorder's file, or ended before anything was written";
    if (!steps.empty()) return "no range of the program marked a step of --steps " + steps;
    if (profiler_api)
      return "the program never called cudaProfilerStart, which --profiler-api waits for";
    if (!start_after.empty()) return "the program ended before --start-after " + start_after;
    return "the program used CUDA, but did nothing that was to be recorded";
  }

  /// Returns the recordings of the processes that used a GPU, or of all processes if none did.
  /// Sets `problem` to the first problem of a process that recorded nothing.
  std::vector<ProcessRecording> read(const CollectedRun& program, SpoolFolder& folder,
                                     std::string& problem) {
    const Progress progress("converting the recording", quiet);
    std::vector<ProcessRecording> all;
    for (const std::string& spool : program.spools) {
      try {
        ProcessRecording one{import_trace(spool), spool};
        if (one.trace.record_count() > 0) {
          all.push_back(std::move(one));
        } else if (problem.empty()) {
          problem = first_problem(one.trace);
          was_cut_off = was_cut_off || ended_early(one.trace);
        }
      } catch (const TraceError& error) {
        std::cerr << "foretrace: " << shown(error.what()) << '\n';
        folder.keep();
      }
    }
    if (std::any_of(all.begin(), all.end(), used_device))
      std::erase_if(all, [](const ProcessRecording& one) { return !used_device(one); });
    std::stable_sort(all.begin(), all.end(),
                     [](const ProcessRecording& a, const ProcessRecording& b) {
                       return a.trace.rank < b.trace.rank;
                     });
    return all;
  }

  static std::string first_problem(const Trace& trace) {
    for (const Note& note : trace.notes.all()) {
      if (note.severity == Severity::warning)
        return note.example.empty() ? note.text : note.example;
    }
    return {};
  }

  static bool ended_early(const Trace& trace) {
    const auto& notes = trace.notes.all();
    return std::any_of(notes.begin(), notes.end(), [](const Note& note) {
      return note.text.starts_with("the program did not end the recording properly");
    });
  }

  static void print_problems(const Trace& trace) {
    for (const Note& note : trace.notes.all()) {
      if (note.severity != Severity::warning) continue;
      std::cerr << "foretrace: "
                << shown(note.example.empty() ? note.text
                                              : fmt::format("{}: {}", note.text, note.example))
                << '\n';
    }
  }

  void write(const std::vector<ProcessRecording>& all, SpoolFolder& folder) const {
    try {
      if (all.size() == 1 && !is_folder()) return write_one(all[0].trace, output);
      const fs::path ranks =
          is_folder() ? output : output.substr(0, output.size() - ending().size());
      fs::create_directories(ranks);
      std::set<std::string> names;
      for (std::size_t i = 0; i < all.size(); ++i) names.insert(name_of(all, i));
      for (std::size_t i = 0; i < all.size(); ++i)
        write_one(all[i].trace, (ranks / name_of(all, i)).string());
      warn_about_old_files(ranks, names);
    } catch (const fs::filesystem_error& error) {
      keep_spools(folder);
      throw Error(error.what());
    } catch (...) {
      keep_spools(folder);
      throw;
    }
  }

  static void keep_spools(SpoolFolder& folder) {
    folder.keep();
    std::cerr << "foretrace: the raw recording is kept in " << folder.path() << '\n';
  }

  /// Warns about files of an earlier job in this folder, which would be read as ranks of this job.
  void warn_about_old_files(const fs::path& folder, const std::set<std::string>& names) const {
    std::set<std::string> others;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("rank") && exporter_for(name) != nullptr && names.count(name) == 0)
        others.insert(name);
    }
    if (others.empty()) return;
    std::cerr << "foretrace: " << folder.string() << " also contains " << *others.begin()
              << (others.size() == 1 ? "" : fmt::format(" and {} more", others.size() - 1))
              << ", which this recording did not write: delete old files, or they are read as "
                 "further ranks\n";
  }

  /// Returns the file name, "rank3.ftrace"; it also contains the process if two have the same rank.
  std::string name_of(const std::vector<ProcessRecording>& all, std::size_t i) const {
    const std::int32_t rank = all[i].trace.rank;
    const auto same = std::count_if(all.begin(), all.end(), [&](const ProcessRecording& one) {
      return one.trace.rank == rank;
    });
    const std::string process = same == 1 ? "" : "." + fs::path(all[i].spool).stem().string();
    return fmt::format("rank{}{}{}", rank, process, ending());
  }

  std::string ending() const {
    const std::string_view known = known_ending(output).text;
    return known.empty() ? ".ftrace" : std::string(known);
  }

  void write_one(const Trace& trace, const std::string& path) const {
    export_trace(trace, path);
    if (quiet) return;
    std::cerr << "foretrace: " << path << ": " << trace.devices.size()
              << " activities on the device, " << trace.hosts.size() << " on the host\n";
    print_problems(trace);
  }

  void move_snapshots(const CollectedRun& program, SpoolFolder& folder) const {
    if (memory_history && program.snapshots.empty())
      std::cerr << "foretrace: no memory history was written: PyTorch writes it at exit of a "
                   "Python program that used its allocator on a GPU\n";
    for (const std::string& snapshot : program.snapshots) {
      const fs::path target = fs::absolute(output).parent_path() / fs::path(snapshot).filename();
      std::error_code error;
      fs::rename(snapshot, target, error);
      if (error) {
        folder.keep();
        std::cerr << "foretrace: '" << target.string() << "' could not be written ("
                  << error.message() << "), so the memory history stays in " << snapshot << '\n';
      } else if (!quiet) {
        std::cerr << "foretrace: " << target.string() << '\n';
      }
    }
  }

  std::string output = "recording.ftrace";
  std::vector<std::string> command, record;
  std::string start_after, steps;
  std::optional<Nanoseconds> duration;
  bool no_python = false, ops = false, memory = false, memory_history = false, profiler_api = false;
  bool keep_spool = false, quiet = false;
  bool was_cut_off = false;  ///< An empty spool shows that its recording did not end properly.
};

}  // namespace

std::unique_ptr<Command> make_collect_command() { return std::make_unique<CollectCommand>(); }

}  // namespace foretrace
