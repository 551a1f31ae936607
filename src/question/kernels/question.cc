#include <fmt/core.h>

#include "base/wording.h"
#include "document/words/facts.h"
#include "document/words/table.h"
#include "foretrace/question/kernels.h"
#include "question/common/forms.h"
#include "question/common/reading.h"

namespace foretrace {
namespace {

/// The rows that are shown, of all that were found.
struct ShownKernels {
  KernelReport report;
  std::size_t top = 0;

  std::span<const KernelRow> rows() const {
    return std::span(report.rows).first(std::min(top, report.rows.size()));
  }
};

std::string per_second(double flops_per_second) {
  return flops_per_second > 0 ? to_text(Throughput{flops_per_second}) : "-";
}

std::string share_text(double share) { return share > 0 ? to_share(share) : "-"; }

std::string headline(const KernelReport& report) {
  const std::string where = report.has_steps ? "a step" : "the recording";
  std::string text = fmt::format("kernels take {} of {}", to_text(report.all), where);
  if (report.ranks > 1)
    text += fmt::format(" of rank {}, the slowest of {}", report.rank, report.ranks);
  if (report.device.empty())
    return text + "; the device is not known, so --machine has to name it for a comparison";
  if (report.impossible > 0)
    text += fmt::format(
        "; {} faster than {} allows, so their shapes or arithmetic are not what the recording says",
        report.impossible == 1 ? "one row is" : std::to_string(report.impossible) + " rows are",
        report.device);
  if (report.known.count() == 0)
    return text + (report.impossible > 0 ? ""
                                         : "; the arithmetic of none is known: record with "
                                           "record_shapes=True, or collect --ops");
  return text + fmt::format(
                    "; products, convolutions and attention with known shapes take {} of that and "
                    "reach {} of what {} allows",
                    to_text(report.known), to_share(report.of_roofline), report.device);
}

Document document_of(const ShownKernels& shown) {
  Document document("Kernels");
  document.say("Kernels", headline(shown.report));
  Table table{.heading = {"time", "count", "each", "rate", "of roofline", "arithmetic", "op",
                          "shapes", "kernel"},
              .rows = {},
              .left = {6, 7, 8}};
  for (const KernelRow& row : shown.report.rows) {
    if (table.rows.size() == shown.top) break;
    table.rows.push_back(
        {to_text(row.time), to_text(row.count), to_text(row.each),
         per_second(row.flops_per_second()), share_text(row.of_roofline),
         row.arithmetic.empty() ? "-" : row.arithmetic, row.op.empty() ? "-" : row.op,
         row.shapes.empty() ? "-" : shortened(row.shapes, 48), shortened(row.kernel, 48)});
  }
  const std::size_t hidden = shown.report.rows.size() - table.rows.size();
  document.section("Ops and shapes", Document::Heading::not_in_text).table(std::move(table));
  if (hidden > 0) document.say(fmt::format("({} more; --top shows them)", hidden));
  return document;
}

Facts kernel_facts(const KernelRow& row) {
  Facts facts;
  facts.fact("op", row.op)
      .fact("shapes", row.shapes)
      .fact("kernel", row.kernel)
      .fact("count", row.count)
      .fact("time_ns", row.time)
      .fact("each_ns", row.each)
      .fact("flops", unless_default(row.flops))
      .fact("flops_per_second", unless_default(row.flops_per_second()))
      .fact("peak_flops_per_second", unless_default(row.peak_flops))
      .fact("of_roofline", unless_default(row.of_roofline))
      .fact("lost_ns", row.lost())
      .fact("arithmetic", row.arithmetic);
  return facts;
}

nlohmann::json to_json(const ShownKernels& shown) {
  const KernelReport& report = shown.report;
  return {{"schema", "foretrace.kernels/1"},
          {"trace", report.trace},
          {"device", report.device},
          {"rank", report.rank},
          {"ranks", report.ranks},
          {"per_step", report.has_steps},
          {"kernel_time_ns", report.all.count()},
          {"known_time_ns", report.known.count()},
          {"of_roofline", report.of_roofline},
          {"kinds", report.rows.size()},
          {"kernels", rows_json(shown.rows(), kernel_facts)}};
}

void write_csv(const ShownKernels& shown, std::ostream& out) {
  write_rows(shown.rows(), kernel_facts, out);
}

class Kernels final : public Question {
 public:
  void describe(Fields& fields) override {
    describe_trace(fields, trace_);
    fields.name_or_path("machine", machine_,
                        "Compare with this device; by default with the recorded one");
    fields.integer("top", top_, "How many rows to show", 1, 1'000'000);
    reading_.describe_part(fields);
    reading_.describe_execution_trace(fields);
    reading_.describe(fields);
  }

  std::string remarks() const override {
    return "Rows are sorted by the time of a step that is lost to the roofline: the least time "
           "that the peak of the kernel's arithmetic and the reading of its inputs allow. Rows "
           "whose arithmetic is not known follow, longest first.";
  }

  std::vector<Form> forms() const override { return forms_of<ShownKernels>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    const ImportOptions reading = reading_.options(session);
    warn_if_large(trace_, reading, session);
    const auto activity = session.begin("measuring the kernels of " + trace_);
    return answer_of(
        ShownKernels{measure_kernels(trace_, machine_, reading), static_cast<std::size_t>(top_)});
  }

 private:
  std::string trace_, machine_;
  std::int64_t top_ = 20;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_kernels() { return std::make_unique<Kernels>(); }

}  // namespace foretrace
