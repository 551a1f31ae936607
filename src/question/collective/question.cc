#include <fmt/core.h>
#include <optional>
#include <sstream>

#include "base/numbers/range.h"
#include "base/parse_number.h"
#include "foretrace/error.h"
#include "foretrace/question/collective.h"
#include "network/packet/settings.h"
#include "question/common/forms.h"

namespace foretrace {
namespace {

constexpr std::size_t kMaxSizes = 1000;
constexpr std::int64_t kMaxFactor = 1'000'000;

/// Reads the first size of a range, which may lack a unit, because nccl-tests begin at 8 bytes.
Bytes first_size(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return parse_bytes(plain ? text + "B" : text);
}

/// Reads numbers separated by commas. Throws Error.
template <class Number>
std::vector<Number> numbers_in(const std::string& setting, const std::string& text) {
  std::vector<Number> all;
  if (text.empty()) return all;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const auto number = parse_number<Number>(rest.substr(0, comma));
    if (!number)
      throw Error(fmt::format("{}: must be numbers such as 8,4, got \"{}\"", setting, text));
    all.push_back(*number);
    if (comma == rest.npos) return all;
    rest.remove_prefix(comma + 1);
  }
}

class Collective final : public Question {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "COLLECTIVE", .is_positional = true, .is_required = true})
        .text("name", question_.name,
              "An operation (all_reduce, all_to_all, ...), an algorithm (ring, tree, ...), or auto "
              "for an all-reduce as NCCL would do it");
    describe_network(fields);
    fields.as({.value = "SIZES"})
        .text("bytes", sizes_, "A size, or sizes as nccl-tests takes them: 8..8GB/x2");
    fields.as({.value = "WORD"})
        .text("algorithm", question_.algorithm,
              "Price this algorithm instead of the one that NCCL would choose");
    fields.as({.value = "WORD"})
        .text("operation", question_.operation,
              "The operation that the algorithm performs, if COLLECTIVE is an algorithm");
    fields.as({.value = "closed|flow|packet"})
        .text("fidelity", question_.fidelity,
              "closed: formulas; flow: every message, with links shared max-min fairly; packet: "
              "queues, drops and transports");
    fields.as({.value = "SETTINGS"})
        .text("packets", question_.packets,
              "Settings of --fidelity packet: transport=dctcp,spray=true");
    fields.integer("groups", question_.groups,
                   "Number of communicators that run the collective at the same time, with their "
                   "ranks interleaved");
    fields.as({.value = "NUMBERS"})
        .text("levels", levels_, "Group sizes of the hierarchical algorithm, innermost first: 8,4");
    fields.integer("servers", question_.servers, "Number of hosts that are only parameter servers");
    fields.integer("seed", question_.seed, "Seed of the choice among routes of equal cost");
    describe_measured(fields);
  }

  std::string remarks() const override {
    std::ostringstream text;
    text << "Settings of packets:\n";
    PacketOptions options;
    write_help(options, text);
    return text.str();
  }

  std::vector<Form> forms() const override { return forms_of<CollectiveReport>(); }

  std::unique_ptr<Answer> ask(Session&) override {
    if (!sizes_.empty()) question_.sizes = within("--bytes", [&] { return read_sizes(sizes_); });
    question_.levels = numbers_in<std::uint32_t>("--levels", levels_);
    question_.calibrate_nodes = numbers_in<std::int64_t>("--calibrate-nodes", calibrate_nodes_);
    return answer_of(price_collective(question_));
  }

 private:
  void describe_network(Fields& fields) {
    fields.name_or_path("machine", question_.machine,
                        "A built-in machine (see `foretrace list machines`), or the path of a file "
                        "that describes one");
    fields.integer("ranks", question_.ranks,
                   "Number of ranks; by default all that the machine has");
    fields.integer("ranks_per_node", question_.ranks_per_node,
                   "Number of devices used on each host; all by default");
    fields.optional_time("latency", question_.latency,
                         "Without --machine: latency of a message on a uniform network");
    fields.optional_bandwidth("bandwidth", question_.bandwidth,
                              "Without --machine: bandwidth of each rank on a uniform network, in "
                              "each direction");
  }

  void describe_measured(Fields& fields) {
    fields.path("against", question_.against,
                "Compare with measured times: output of nccl-tests, CSV with the columns "
                "collective, bytes, gpus, nodes and time_us, a recording of all ranks, or logs of "
                "NCCL Inspector");
    fields.as({.value = "COLUMN=TEXT"})
        .texts("only", question_.only, "Use only rows of CSV files whose COLUMN has TEXT");
    fields.path("calibrate", question_.calibrate,
                "Calibrate with the measured times of a file as for --against, or with a saved "
                "calibration (.json)");
    fields.as({.value = "NUMBERS"})
        .text("calibrate_nodes", calibrate_nodes_,
              "Calibrate only with rows that have these numbers of nodes: 1,8,128");
    fields.as({.value = "OUT"})
        .path("save_calibration", question_.save_calibration,
              "Also save the calibration in a file, for --calibrate");
  }

  CollectiveQuestion question_;
  std::string sizes_, levels_, calibrate_nodes_;
};

}  // namespace

std::vector<Bytes> read_sizes(const std::string& text) {
  const std::optional<RangeText> range = split_range(text);
  if (!range) return {parse_bytes(text)};
  const Bytes first = first_size(std::string(range->first)), last = parse_bytes(range->last);
  if (range->step == RangeStep::parts)
    throw Error("must end in a factor such as /x2, or in a size to add such as /+1MB, got " + text);
  if (first.count < 1 || last < first)
    throw Error("must go from a size of at least 1 B to one that is not less, got " + text);
  const bool adds = range->step == RangeStep::add;
  std::int64_t amount = 2;
  if (adds) amount = parse_bytes(range->amount).count;
  if (range->step == RangeStep::times) {
    const auto factor = parse_number<std::int64_t>(range->amount);
    amount = factor && *factor < kMaxFactor ? *factor : 0;
    if (amount < 2) throw Error("must end in a factor of at least 2, such as /x2, got " + text);
  }
  if (amount < 1) throw Error("must add at least 1 B, got " + text);
  std::vector<Bytes> sizes;
  for (std::int64_t bytes = first.count; bytes <= last.count && sizes.size() < kMaxSizes;
       bytes = adds ? bytes + amount : bytes * amount)
    sizes.push_back({bytes});
  return sizes;
}

std::unique_ptr<Question> make_collective() { return std::make_unique<Collective>(); }

}  // namespace foretrace
