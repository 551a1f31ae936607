#include <cstdio>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "import/torch_memory/pickle_machine.h"

namespace foretrace {

namespace {

std::string hexadecimal(unsigned opcode) {
  char text[8];
  std::snprintf(text, sizeof text, "0x%02x", opcode);
  return text;
}

}  // namespace

PlainData PickleMachine::run() {
  if (all_.empty()) fail("must hold a pickle, but is empty");
  while (!stopped_) {
    operation_ = all_.size() - rest_.size();
    data_.check_size(all_.size());
    const auto opcode = static_cast<unsigned char>(take(1)[0]);
    if (!make_number(opcode) && !make_text(opcode) && !make_container(opcode) &&
        !use_memo(opcode) && !arrange(opcode) && !call(opcode)) {
      fail("has an unknown opcode: " + hexadecimal(opcode));
    }
  }
  return std::move(data_);
}

void PickleMachine::fail(const std::string& what) const {
  throw TraceError(fmt::format("the pickle {}, at byte {}", what, operation_));
}

bool PickleMachine::make_number(unsigned opcode) {
  switch (opcode) {
    case 'N':
      return push(data_.make(PlainKind::none)), true;
    case 0x88:
    case 0x89:
      return push(data_.make(PlainKind::boolean, opcode == 0x88 ? 1 : 0)), true;
    case 'J':
      return push(data_.make_integer(static_cast<std::int32_t>(take_number(4)))), true;
    case 'K':
      return push(data_.make_integer(static_cast<std::int64_t>(take_number(1)))), true;
    case 'M':
      return push(data_.make_integer(static_cast<std::int64_t>(take_number(2)))), true;
    case 0x8a:
      return push_long(take(take_number(1))), true;
    case 0x8b:
      return push_long(take(take_number(4))), true;
    case 'I':
    case 'L':
      return push_line_integer(take_line()), true;
    case 'G':
      return push(data_.make_real(big_endian_real(take(8)))), true;
    case 'F': {
      const auto value = decimal_real(take_line());
      if (!value) fail("has a malformed number");
      return push(data_.make_real(*value)), true;
    }
    default:
      return false;
  }
}

void PickleMachine::push_long(std::string_view bytes) {
  const auto value = twos_complement(bytes);
  push(value ? data_.make_integer(*value) : data_.make_real(rough_number(bytes)));
}

void PickleMachine::push_line_integer(std::string_view line) {
  if (line == "00" || line == "01") return push(data_.make(PlainKind::boolean, line == "01"));
  if (const auto value = decimal_integer(line)) return push(data_.make_integer(*value));
  const auto rough = decimal_real(line);
  if (!rough) fail("has a malformed number");
  push(data_.make_real(*rough));
}

bool PickleMachine::make_text(unsigned opcode) {
  const auto sized = [&](std::size_t width, PlainKind kind = PlainKind::text) {
    push(data_.make_text(take(take_number(width)), kind));
    return true;
  };
  switch (opcode) {
    case 'U':
    case 0x8c:
      return sized(1);
    case 'T':
    case 'X':
      return sized(4);
    case 0x8d:
      return sized(8);
    case 'C':
      return sized(1, PlainKind::bytes);
    case 'B':
      return sized(4, PlainKind::bytes);
    case 0x8e:
    case 0x96:
      return sized(8, PlainKind::bytes);
    case 'S':
      return push_decoded(unquoted(take_line())), true;
    case 'V':
      return push_decoded(raw_unicode(take_line())), true;
    default:
      return false;
  }
}

void PickleMachine::push_decoded(std::optional<std::string> text) {
  if (!text) fail("has a malformed text");
  push(data_.make_copied_text(*text));
}

bool PickleMachine::make_container(unsigned opcode) {
  switch (opcode) {
    case ')':
    case ']':
    case 0x8f:
      return push(data_.make_container(PlainKind::list)), true;
    case '}':
      return push(data_.make_container(PlainKind::dict)), true;
    case 't':
    case 'l':
    case 0x91:
      return push_of(PlainKind::list, pop_mark()), true;
    case 'd':
      return push_of(PlainKind::dict, pop_mark()), true;
    case 0x85:
    case 0x86:
    case 0x87:
      if (stack_.size() < floor() + (opcode - 0x84)) fail("takes more values than there are");
      return push_of(PlainKind::list, stack_.size() - (opcode - 0x84)), true;
    case 'e':
    case 0x90:
      return append(PlainKind::list, pop_mark()), true;
    case 'u':
      return append(PlainKind::dict, pop_mark()), true;
    case 'a':
    case 's': {
      const std::size_t count = opcode == 'a' ? 1 : 2;
      if (stack_.size() < floor() + count) fail("takes more values than there are");
      append(opcode == 'a' ? PlainKind::list : PlainKind::dict, stack_.size() - count);
      return true;
    }
    default:
      return false;
  }
}

void PickleMachine::push_of(PlainKind kind, std::size_t from) {
  if (kind == PlainKind::dict && (stack_.size() - from) % 2 != 0) fail("has a key without a value");
  const PlainValue container = data_.make_container(kind);
  data_.append(container, above(from));
  stack_.resize(from);
  push(container);
}

void PickleMachine::append(PlainKind kind, std::size_t from) {
  const bool is_dict = kind == PlainKind::dict;
  if (from <= floor() || stack_[from - 1].kind() != kind)
    fail(is_dict ? "sets items of a value that is not a dict"
                 : "appends to a value that is not a list");
  if (is_dict && (stack_.size() - from) % 2 != 0) fail("has a key without a value");
  data_.append(stack_[from - 1], above(from));
  stack_.resize(from);
}

bool PickleMachine::use_memo(unsigned opcode) {
  switch (opcode) {
    case 0x94:
      return put(memoized_), true;
    case 'q':
      return put(take_number(1)), true;
    case 'r':
      return put(take_number(4)), true;
    case 'p':
      return put(slot_in_line()), true;
    case 'h':
      return get(take_number(1)), true;
    case 'j':
      return get(take_number(4)), true;
    case 'g':
      return get(slot_in_line()), true;
    default:
      return false;
  }
}

std::uint64_t PickleMachine::slot_in_line() {
  const auto slot = decimal_integer(take_line());
  if (!slot || *slot < 0) fail("has a malformed number");
  return static_cast<std::uint64_t>(*slot);
}

void PickleMachine::put(std::uint64_t slot) {
  // Slots are numbered consecutively and each takes an operation to fill, so no slot of a valid
  // pickle has a number as large as the size of the pickle.
  if (slot >= all_.size()) fail(fmt::format("names slot {} of its memo", slot));
  const PlainValue value = top();
  if (slot >= memo_.size()) {
    memo_.resize(static_cast<std::size_t>(slot) + 1);
    filled_.resize(memo_.size());
  }
  if (!filled_[slot]) ++memoized_;
  filled_[slot] = true;
  memo_[slot] = value;
}

void PickleMachine::get(std::uint64_t slot) {
  if (slot >= memo_.size() || !filled_[slot])
    fail(fmt::format("takes slot {} of its memo, which is empty", slot));
  push(memo_[slot]);
}

/// Runs operations that move values on the stack or that frame the pickle.
bool PickleMachine::arrange(unsigned opcode) {
  switch (opcode) {
    case '(':
      return marks_.push_back(stack_.size()), true;
    case '0':
      if (!marks_.empty() && marks_.back() == stack_.size()) return marks_.pop_back(), true;
      return pop(), true;
    case '1':
      return stack_.resize(pop_mark()), true;
    case '2':
      return push(PlainValue(top())), true;
    case 0x80: {
      const auto protocol = take_number(1);
      if (protocol > kNewestPickleProtocol)
        fail("must be of protocol 0 to 5, but is of " + std::to_string(protocol));
      return true;
    }
    case 0x95:
      return read_frame(), true;
    case '.':
      data_.root = pop();
      if (data_.root.kind() == PlainKind::callable) fail("holds a class");
      return stopped_ = true;
    default:
      return false;
  }
}

/// Reads the size of a frame, which is only a hint how much to read ahead.
void PickleMachine::read_frame() {
  const std::uint64_t size = take_number(8);
  if (size > rest_.size()) {
    fail(fmt::format("is cut off: a frame of {} bytes has only {}", size, rest_.size()));
  }
}

PlainData read_pickle(std::string bytes, PickleCalls calls) {
  return PickleMachine(std::move(bytes), calls).run();
}

bool begins_pickle(std::string_view head) {
  if (head.size() < 2) return false;
  if (head[0] == '\x80')
    return head[1] >= 2 && static_cast<unsigned char>(head[1]) <= kNewestPickleProtocol;
  // Pickles of protocols 0 and 1 do not contain the protocol's number. They begin with a dict or a
  // list that is put into the memo.
  const auto starts = [&](std::string_view start) { return head.starts_with(start); };
  return starts("(dp") || starts("(lp") || starts("}q") || starts("]q");
}

}  // namespace foretrace
