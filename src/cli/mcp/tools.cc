#include "cli/mcp/tools.h"

namespace foretrace {
namespace {

constexpr std::string_view kTraceHelp =
    "Path of a trace, or of a folder with the traces of all ranks of one job";
constexpr std::string_view kStepsHelp =
    "What to change: a list of transforms with their settings, such as \"loader:workers=4\"; see "
    "list_transforms";

CommandLine command_line(std::string_view name, const CommandLine& options,
                         const std::vector<std::string>& files) {
  // Agents read files; which programs run is for their user to decide.
  CommandLine line = {std::string(name), "--quiet", "--no-run"};
  line.insert(line.end(), options.begin(), options.end());
  line.emplace_back("--");
  line.insert(line.end(), files.begin(), files.end());
  return line;
}

/// A tool about one trace.
class TraceTool : public Tool {
 public:
  void describe(Fields& fields) override { fields.text("trace", trace_, kTraceHelp); }
  std::vector<std::string> required() const override { return {"trace"}; }

 protected:
  CommandLine command(std::string_view name, const CommandLine& options = {}) const {
    return command_line(name, options, {trace_});
  }

  std::string trace_;
};

class StepsTool : public TraceTool {
 public:
  void describe(Fields& fields) override {
    TraceTool::describe(fields);
    fields.texts("steps", steps_, kStepsHelp);
    fields.name_or_path("machine", machine_, "Another device to predict for, such as h100-sxm");
  }

 protected:
  CommandLine predict(CommandLine options = {}) const {
    for (const std::string& step : steps_) options.push_back("--with=" + step);
    if (!machine_.empty()) options.push_back("--machine=" + machine_);
    return command("predict", options);
  }

  std::vector<std::string> steps_;
  std::string machine_;
};

class ListTransforms final : public Tool {
 public:
  void describe(Fields& fields) override {
    fields.text("name", name_, "Explain this transform with all its settings; empty: list all");
  }
  std::vector<CommandLine> command_lines() const override {
    if (name_.empty()) return {{"list", "transforms"}};
    return {{"help", "--", name_}};
  }

 private:
  std::string name_;
};

class OpenJob final : public TraceTool {
 public:
  std::vector<CommandLine> command_lines() const override {
    return {command("predict", {"--brief"}), command("doctor")};
  }
};

class Predict final : public StepsTool {
 public:
  void describe(Fields& fields) override {
    StepsTool::describe(fields);
    fields.text("memory_limit", memory_limit_, "Device memory to fit into, such as 16GB");
  }
  std::vector<CommandLine> command_lines() const override {
    if (memory_limit_.empty()) return {predict()};
    return {predict({"--memory-limit=" + memory_limit_})};
  }

 private:
  std::string memory_limit_;
};

class VarySetting final : public StepsTool {
 public:
  void describe(Fields& fields) override {
    StepsTool::describe(fields);
    fields.text("setting", setting_,
                "The setting to vary and its values, such as loader.workers=0..16 or "
                "amp.matmul=2,3");
    fields.text("until", until_, "Find the last value for which this holds: step_time <= 50ms");
  }
  std::vector<std::string> required() const override { return {"trace", "setting"}; }
  std::vector<CommandLine> command_lines() const override {
    CommandLine options = {"--vary=" + setting_};
    if (!until_.empty()) options.push_back("--until=" + until_);
    return {predict(options)};
  }

 private:
  std::string setting_, until_;
};

class ExplainStep final : public StepsTool {
 public:
  std::vector<CommandLine> command_lines() const override { return {predict({"--explain"})}; }
};

class Advise final : public TraceTool {
 public:
  void describe(Fields& fields) override {
    TraceTool::describe(fields);
    fields.flag("all", all_, "Also show ceilings, and what is not advised and why");
  }
  std::vector<CommandLine> command_lines() const override {
    if (!all_) return {command("advise")};
    return {command("advise", {"--all"})};
  }

 private:
  bool all_ = false;
};

class DiffJobs final : public Tool {
 public:
  void describe(Fields& fields) override {
    fields.text("before", before_, kTraceHelp);
    fields.text("after", after_, "A later recording of the same job");
  }
  std::vector<std::string> required() const override { return {"before", "after"}; }
  std::vector<CommandLine> command_lines() const override {
    return {command_line("diff", {}, {before_, after_})};
  }

 private:
  std::string before_, after_;
};

class JobMemory final : public TraceTool {
 public:
  std::vector<CommandLine> command_lines() const override { return {command("memory")}; }
};

template <class ToolType>
std::unique_ptr<Tool> make_tool() {
  return std::make_unique<ToolType>();
}

}  // namespace

const std::vector<ToolEntry>& tools() {
  static const std::vector<ToolEntry> all = {
      {"list_transforms", "The changes that can be predicted; one of them with its settings",
       &make_tool<ListTransforms>},
      {"open_job", "Step time of a recorded job, how well it replays, and what its trace lacks",
       &make_tool<OpenJob>},
      {"predict", "Step time after changes, with an interval, its basis and its assumptions",
       &make_tool<Predict>},
      {"advise", "What limits a job, which changes would help, and how sure that is",
       &make_tool<Advise>},
      {"diff", "What changed between two recordings of a job, and the cost of each change",
       &make_tool<DiffJobs>},
      {"vary", "Step times for several values of one setting", &make_tool<VarySetting>},
      {"explain_step",
       "What the critical path of a step works on and waits for, as recorded or "
       "after changes",
       &make_tool<ExplainStep>},
      {"memory", "What device memory is used for at its peak", &make_tool<JobMemory>},
  };
  return all;
}

}  // namespace foretrace
