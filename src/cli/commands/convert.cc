#include "base/files/new_file.h"
#include "cli/options/outputs.h"
#include "cli/options/progress.h"
#include "cli/options/trace_part.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/infer.h"
#include "question/common/reading.h"

namespace foretrace {
namespace {

void write_notation(const Trace& trace, const std::string& path) {
  write_new_file(path, to_text(infer(trace).graph));
}

class ConvertCommand final : public Command {
 public:
  void describe(Fields& fields) override {
    describe_trace(fields, from_);
    out_.describe(fields);
    reading_.describe_part(fields);
    fields.flag("quiet", is_quiet_, "Show no progress");
    reading_.describe_execution_trace(fields);
    reading_.describe(fields);
  }

  void run(Invocation& invocation) override {
    out_.check("convert");
    const Progress progress("converting " + from_, is_quiet_);
    std::vector<Trace> traces = reading_.read_whole(from_);
    within(from_, [&] { cut_to(reading_.part(), traces); });
    for (const Output& output : out_.output_files(from_, traces, invocation)) {
      within(from_, [&] {
        if (output.exporter == nullptr) return write_notation(*output.trace, output.path);
        output.exporter->write(*output.trace, output.path);
      });
    }
  }

 private:
  std::string from_;
  OutputChoice out_{.path = {}, .to = {}, .allows_graph = true};
  bool is_quiet_ = false;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Command> make_convert_command() { return std::make_unique<ConvertCommand>(); }

}  // namespace foretrace
