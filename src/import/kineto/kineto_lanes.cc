#include "import/kineto/kineto_lanes.h"

#include <algorithm>
#include <limits>

#include "base/wide.h"

namespace foretrace {

namespace {

constexpr std::int64_t kFirstText = -1000000;  ///< Id that stands for the empty text.
constexpr std::uint32_t kMaxLanes = 0xffff;
constexpr std::size_t kMaxNames = 100000;

}  // namespace

PairTable::Slot& PairTable::slot(std::int64_t a, std::int64_t b) {
  const std::uint64_t mixed =
      (static_cast<std::uint64_t>(a) * 0x9e3779b97f4a7c15U ^ static_cast<std::uint64_t>(b)) *
      0xc2b2ae3d27d4eb4fU;
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = static_cast<std::size_t>(mixed >> 32U) & mask;
  while (slots_[at].number != kNone && (slots_[at].a != a || slots_[at].b != b))
    at = (at + 1) & mask;
  return slots_[at];
}

std::uint32_t PairTable::number(std::int64_t a, std::int64_t b, bool& is_new) {
  Slot& found = slot(a, b);
  is_new = found.number == kNone;
  if (!is_new) return found.number;
  found = {a, b, count_++};
  if (count_ * 2 > slots_.size()) grow();
  return count_ - 1;
}

void PairTable::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& moved : old) {
    if (moved.number != kNone) slot(moved.a, moved.b) = moved;
  }
}

std::int64_t KinetoLanes::identity(const JsonValue& value) {
  if (is_integer(value)) {
    // A quoted number may be followed by other characters: "12abc" is a text.
    const std::string_view text = value.view();
    if (value.kind == ValueKind::number || text.find_first_not_of("0123456789", 1) == text.npos) {
      return to_integer(value);
    }
  }
  std::string_view text = value.kind == ValueKind::text ? value.view() : std::string_view();
  constexpr std::string_view kStream = "stream ";
  if (text.substr(0, kStream.size()) == kStream) {
    JsonValue number = value;
    number.begin += kStream.size();
    number.size -= static_cast<std::uint32_t>(kStream.size());
    if (is_integer(number)) return to_integer(number);
  }
  return kFirstText - static_cast<std::int64_t>(texts_.intern(text));
}

std::uint16_t KinetoLanes::thread(std::int64_t process, std::int64_t id) {
  bool is_new = false;
  const std::uint32_t number = threads_.number(process, id, is_new);
  if (number >= kMaxLanes) {
    ++too_many_;
    return static_cast<std::uint16_t>(kMaxLanes - 1);
  }
  if (is_new) trace_.threads.push_back({.process = process, .id = id, .name = {}});
  return static_cast<std::uint16_t>(number);
}

std::uint16_t KinetoLanes::stream(std::int64_t device, std::int64_t id) {
  bool is_new = false;
  const std::uint32_t number = streams_.number(device, id, is_new);
  if (number >= kMaxLanes) {
    ++too_many_;
    return static_cast<std::uint16_t>(kMaxLanes - 1);
  }
  if (is_new) trace_.streams.push_back({.device = to_int32(device), .id = id});
  return static_cast<std::uint16_t>(number);
}

void KinetoLanes::name_thread(std::int64_t process, std::int64_t id, std::string_view name) {
  if (thread_names_.size() < kMaxNames) thread_names_.push_back({process, id, std::string(name)});
}

void KinetoLanes::name_process(std::int64_t process, std::string_view name) {
  if (process_names_.size() < kMaxNames) process_names_.try_emplace(process, name);
}

std::string_view KinetoLanes::process_name(std::int64_t process) const {
  const auto found = process_names_.find(process);
  return found == process_names_.end() ? std::string_view() : found->second;
}

void KinetoLanes::finish() {
  bool is_new = false;
  for (LaneName& known : thread_names_) {
    const std::uint32_t count = threads_.size();
    const std::uint32_t number = threads_.number(known.process, known.id, is_new);
    if (number < count && number < trace_.threads.size())
      trace_.threads[number].name = std::move(known.name);
  }
  for (Thread& thread : trace_.threads) {
    if (!thread.name.empty()) continue;
    if (thread.id > kFirstText) continue;
    const std::int64_t text = kFirstText - thread.id;
    if (text < static_cast<std::int64_t>(texts_.size()))
      thread.name = texts_[static_cast<NameId>(text)];
  }
  // If every thread is a process of its own, as in timelines of tensors, the name of the process
  // serves as the name of the thread.
  for (const auto& [process, name] : process_names_) {
    const std::uint32_t count = threads_.size();
    const std::uint32_t number = threads_.number(process, 0, is_new);
    if (number >= count || number >= trace_.threads.size()) continue;
    if (trace_.threads[number].name.empty()) trace_.threads[number].name = name;
  }
  if (too_many_ > 0) {
    trace_.notes.add(Severity::warning,
                     "records of more than 65535 threads or streams, all put on the last one", {},
                     too_many_);
  }
}

}  // namespace foretrace
