#include <algorithm>
#include <fmt/core.h>
#include <limits>

#include "foretrace/allocator.h"
#include "foretrace/error.h"
#include "foretrace/question/examine.h"
#include "question/common/changes.h"
#include "question/common/forms.h"
#include "question/common/reading.h"

namespace foretrace {

// Found by the type, so not in the unnamed namespace, which is not that of the type.
static Document document_of(const ExaminedMemory& memory) { return document_of(memory.report); }
static nlohmann::json to_json(const ExaminedMemory& memory) { return to_json(memory.report); }
static void write_csv(const ExaminedMemory& memory, std::ostream& out) {
  write_csv(memory.report, memory.graph, out);
}

namespace {

constexpr std::int64_t kMaxDevices = std::numeric_limits<std::int32_t>::max();

Bandwidth positive_bandwidth(std::string_view text) {
  const Bandwidth bandwidth = parse_bandwidth(text);
  if (bandwidth.bytes_per_second <= 0)
    throw Error(fmt::format("must be more than 0, got '{}'", text));
  return bandwidth;
}

void write_blocks_page(const ExaminedMemory& memory, std::ostream& out) {
  write_memory_html(memory.report, memory.graph, out);
}

class Memory final : public Question {
 public:
  void describe(Fields& fields) override {
    describe_trace(fields, trace_,
                   "A trace or memory snapshot, or a folder with those of all ranks");
    fields.optional_integer("device", device_,
                            "The device to describe; by default the one with the highest peak");
    fields.optional_integer(
        "step", question_.step,
        "Only this step, by the number in its name; by default the whole recording");
    fields.integer("top", top_, "Rows in each list", 1, 1'000'000);
    fields.as({.value = "RATE"})
        .text("host_bandwidth", host_bandwidth_,
              "Bandwidth of copies to the host and back: 24GB/s, or 6.3GB/s,6.4GB/s for the two "
              "directions; by default that of the device");
    allocator_.describe(fields);
    reading_.describe_part(fields);
    reading_.describe_execution_trace(fields);
    reading_.describe(fields);
  }

  std::vector<Form> forms() const override {
    return forms_with_page<ExaminedMemory>(
        "Also write a page that draws all blocks over time; it works offline", write_blocks_page);
  }

  std::unique_ptr<Answer> ask(Session& session) override {
    question_.top = static_cast<std::size_t>(top_);
    if (device_) question_.device = static_cast<std::int32_t>(std::min(*device_, kMaxDevices));
    read_bandwidth();
    AllocatorSettings settings;
    allocator_.set(settings);
    const ImportOptions reading = reading_.options(session);
    warn_if_large(trace_, reading, session);
    const auto activity = session.begin("examining " + trace_);
    ExaminedMemory memory = examine_memory(trace_, question_, settings, reading);
    const ExitCode code = fits(memory.report) ? kAnswered : kCheckFailed;
    return answer_of(std::move(memory), code);
  }

 private:
  void read_bandwidth() {
    if (host_bandwidth_.empty()) return;
    within("--host-bandwidth", [&] {
      const std::size_t comma = host_bandwidth_.find(',');
      question_.out = positive_bandwidth(host_bandwidth_.substr(0, comma));
      question_.in = comma == std::string::npos
                         ? question_.out
                         : positive_bandwidth(host_bandwidth_.substr(comma + 1));
    });
  }

  std::string trace_, host_bandwidth_;
  MemoryQuestion question_;
  std::optional<std::int64_t> device_;
  std::int64_t top_ = 10;
  AllocatorChoice allocator_;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_memory() { return std::make_unique<Memory>(); }

}  // namespace foretrace
