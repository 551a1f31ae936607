#include <algorithm>
#include <limits>
#include <map>

#include "export/anonymize/public_words.h"
#include "export/anonymize/text_anonymizer.h"
#include "foretrace/export.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kPage = std::uint64_t{2} << 20;  ///< A page of the driver's memory.

class Anonymizer {
 public:
  Anonymizer(const Trace& trace, const Anonymization& settings, AnonymizedTexts& texts)
      : from_(trace), settings_(settings), anonymizer_(settings, texts) {}

  Trace run() {
    copy_tables();
    for (HostRecord& record : to_.hosts) hide(record);
    for (DeviceRecord& record : to_.devices) hide(record);
    for (OpDetails& details : to_.op_details) hide(details);
    for (CollectiveDetails& details : to_.collectives) hide(details);
    hide_memory();
    for (TensorRecord& tensor : to_.tensors) {
      rename(tensor.type, Rule::type);
      rename(tensor.shape, Rule::shapes);
    }
    for (Thread& thread : to_.threads) thread.name = anonymizer_.word(thread.name);
    for (const Device& device : to_.properties) anonymizer_.keep(device.name);
    for (const auto& [key, json] : from_.metadata) {
      if (is_public_metadata(key, json)) to_.metadata.emplace(key, json), anonymizer_.keep(key);
    }
    return std::move(to_);
  }

 private:
  enum class Rule { op, call, frame, stack, kernel, shapes, types, values, type, collective, word };

  void copy_tables() {
    to_.hosts = from_.hosts;
    to_.devices = from_.devices;
    to_.graph_edges = from_.graph_edges;
    to_.syncs = from_.syncs;
    to_.memory = from_.memory;
    to_.segments = from_.segments;
    to_.blocks = from_.blocks;
    to_.links = from_.links;
    to_.tensors = from_.tensors;
    to_.op_details = from_.op_details;
    to_.collectives = from_.collectives;
    to_.launches = from_.launches;
    to_.threads = from_.threads;
    to_.streams = from_.streams;
    to_.properties = from_.properties;
    to_.rank = from_.rank;
    to_.world_size = from_.world_size;
    to_.origin_ns = settings_.keep_time ? from_.origin_ns : 0;
    to_.tick_ns = from_.tick_ns;
    to_.has_times = from_.has_times;
    to_.format = from_.format;
  }

  std::string hidden(std::string_view text, Rule rule) {
    switch (rule) {
      case Rule::op:
        return anonymizer_.op(text);
      case Rule::call:
        return anonymizer_.call(text);
      case Rule::frame:
        return anonymizer_.frame(text);
      case Rule::stack:
        return anonymizer_.stack(text);
      case Rule::kernel:
        return anonymizer_.kernel(text);
      case Rule::shapes:
        return anonymizer_.shapes(text);
      case Rule::types:
        return anonymizer_.types(text);
      case Rule::values:
        return anonymizer_.values(text);
      case Rule::type:
        return anonymizer_.type(text);
      case Rule::collective:
        return anonymizer_.collective(text);
      case Rule::word:
        return anonymizer_.word(text);
    }
    return {};
  }

  void rename(NameId& id, Rule rule) {
    if (id == NameId{}) return;
    const auto [known, added] = known_.try_emplace({rule, id});
    if (added) known->second = to_.names.intern(hidden(from_.names[id], rule));
    id = known->second;
  }

  void hide(HostRecord& record) {
    rename(record.name, is_call(record.kind)              ? Rule::call
                        : record.kind == HostKind::python ? Rule::frame
                                                          : Rule::op);
  }

  void hide(DeviceRecord& record) {
    if (record.kind == DeviceKind::kernel) return rename(record.name, Rule::kernel);
    if (record.kind == DeviceKind::annotation) return rename(record.name, Rule::op);
    record.name = to_.names.intern(anonymizer_.copy(record, from_.names[record.name]));
  }

  void hide(OpDetails& details) {
    rename(details.shapes, Rule::shapes);
    rename(details.types, Rule::types);
    rename(details.values, Rule::values);
    rename(details.stack, Rule::stack);
  }

  void hide(CollectiveDetails& details) {
    rename(details.collective, Rule::collective);
    rename(details.dtype, Rule::type);
    rename(details.group, Rule::word);
    rename(details.ranks, Rule::values);
  }

  void hide_memory() {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    const auto each_address = [&](auto&& visit) {
      for (MemoryRecord& record : to_.memory) visit(record.address);
      for (MemorySegment& segment : to_.segments) visit(segment.address);
      for (MemoryBlock& block : to_.blocks) visit(block.address);
    };
    each_address([&](std::uint64_t address) {
      if (address != 0) least = std::min(least, address);
    });
    const std::uint64_t base = least / kPage * kPage;
    each_address([&](std::uint64_t& address) {
      if (address != 0) address = address - base + kPage;
    });
    for (MemoryRecord& record : to_.memory) rename(record.stack, Rule::stack);
    for (MemorySegment& segment : to_.segments) {
      rename(segment.stack, Rule::stack);
      rename(segment.pool, Rule::values);
    }
    for (MemoryBlock& block : to_.blocks) rename(block.stack, Rule::stack);
  }

  const Trace& from_;
  const Anonymization& settings_;
  TextAnonymizer anonymizer_;
  Trace to_;
  std::map<std::pair<Rule, NameId>, NameId> known_;
};

}  // namespace

Trace anonymize(const Trace& trace, const Anonymization& settings, AnonymizedTexts& texts) {
  return Anonymizer(trace, settings, texts).run();
}

}  // namespace foretrace
