// Handles the calls that a pickle asks for. Nearly all of them are rejected.

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "import/torch_memory/pickle_machine.h"

namespace foretrace {

namespace {

/// `object` is not called: its class or function, arguments and state become a list.
enum class Callable : std::uint8_t { dict, default_dict, list, factory, object };

struct KnownCallable {
  std::string_view name;
  Callable kind;
};

/// The known functions and classes, with the names that their modules have in Python 3.
constexpr KnownCallable kCallables[] = {{"collections.OrderedDict", Callable::dict},
                                        {"collections.defaultdict", Callable::default_dict},
                                        {"builtins.set", Callable::list},
                                        {"builtins.frozenset", Callable::list},
                                        {"builtins.list", Callable::factory},
                                        {"builtins.dict", Callable::factory},
                                        {"builtins.int", Callable::factory},
                                        {"builtins.float", Callable::factory},
                                        {"builtins.str", Callable::factory}};

/// Classes and functions of a DataFrame of numbers with times as its index.
constexpr std::string_view kFrameNames[] = {"pandas.core.frame.DataFrame",
                                            "pandas.core.internals.managers.BlockManager",
                                            "pandas.core.indexes.base._new_Index",
                                            "pandas.core.indexes.base.Index",
                                            "pandas.core.indexes.datetimes._new_DatetimeIndex",
                                            "pandas.core.indexes.datetimes.DatetimeIndex",
                                            "pandas.core.arrays.datetimes.DatetimeArray",
                                            "numpy.core.multiarray._reconstruct",
                                            "numpy.ndarray",
                                            "numpy.dtype",
                                            "builtins.slice"};

constexpr std::size_t kNameShown = 120;

}  // namespace

bool PickleMachine::call(unsigned opcode) {
  switch (opcode) {
    case 'c': {
      const std::string_view module = take_line();
      return push_callable(module, take_line()), true;
    }
    case 0x93: {
      const PlainValue name = pop();
      return push_callable(data_.text(pop()), data_.text(name)), true;
    }
    case 'R':
      return reduce(), true;
    case 0x81:
      return make_object(), true;
    case 'b':
      return set_state(), true;
    case 'i': {
      const std::string_view module = take_line();
      refuse_call(fmt::format("{}.{}", module, take_line()));
    }
    case 'o':
    case 0x92:
      refuse_call("a class to make an object of it");
    case 'P':
    case 'Q':
      refuse_call("persistent_load, for an object kept elsewhere");
    case 0x82:
    case 0x83:
    case 0x84:
      refuse_call("a class of the extension registry");
    case 0x97:
    case 0x98:
      fail("takes a buffer that is kept elsewhere");
    default:
      return false;
  }
}

void PickleMachine::push_callable(std::string_view module, std::string_view name) {
  if (module == "__builtin__") module = "builtins";
  std::string full(module.substr(0, kNameShown));
  full += ".";
  full += name.substr(0, kNameShown);
  for (const KnownCallable& known : kCallables) {
    if (known.name == full)
      return push(data_.make(PlainKind::callable, static_cast<std::uint64_t>(known.kind)));
  }
  if (calls_ == PickleCalls::data_frames &&
      std::ranges::find(kFrameNames, full) != std::end(kFrameNames))
    return push(data_.make(PlainKind::callable, static_cast<std::uint64_t>(Callable::object)));
  refuse_call(full);
}

/// Makes a list of a class, or a function, and its arguments.
void PickleMachine::make_object() {
  if (calls_ == PickleCalls::none) refuse_call("a class to make an object of it");
  const PlainValue arguments = pop(), callable = pop();
  if (callable.kind() != PlainKind::callable || !arguments.is_list() ||
      static_cast<Callable>(callable.index()) != Callable::object)
    refuse_call("a class to make an object of it");
  const PlainValue object = data_.make_container(PlainKind::list);
  data_.append(object, callable);
  data_.append(object, arguments);
  push(object);
}

/// Adds its state to an object that has none yet.
void PickleMachine::set_state() {
  if (calls_ == PickleCalls::none) refuse_call("__setstate__ of an object");
  const PlainValue state = pop();
  const auto parts = data_.items(top());
  if (!top().is_list() || parts.size() != 2 || parts[0].kind() != PlainKind::callable)
    refuse_call("__setstate__ of an object");
  data_.append(top(), state);
}

/// Runs a call. Only calls that make an empty dict, or a set from one list, are allowed.
void PickleMachine::reduce() {
  if (stack_.size() > floor() + 1 && calls_ == PickleCalls::data_frames) {
    const PlainValue before = stack_[stack_.size() - 2];
    if (before.kind() == PlainKind::callable &&
        static_cast<Callable>(before.index()) == Callable::object)
      return make_object();
  }
  const PlainValue arguments = pop();
  const PlainValue callable = pop();
  if (callable.kind() != PlainKind::callable || !arguments.is_list())
    refuse_call("a value that is not a function");
  const auto all = data_.items(arguments);
  switch (static_cast<Callable>(callable.index())) {
    case Callable::dict:
      if (!all.empty()) break;
      return push(data_.make_container(PlainKind::dict));
    case Callable::default_dict:
      if (all.size() > 1 ||
          (all.size() == 1 && !all[0].is_none() && all[0].kind() != PlainKind::callable)) {
        break;
      }
      return push(data_.make_container(PlainKind::dict));
    case Callable::list:
      if (all.size() != 1 || !all[0].is_list()) break;
      return push(PlainValue(all[0]));
    case Callable::factory:
    case Callable::object:
      break;
  }
  refuse_call("a function with arguments");
}

void PickleMachine::refuse_call(const std::string& what) const {
  std::string shown;
  for (const char c : what) shown += c >= ' ' && c <= '~' ? c : '?';
  throw TraceError(fmt::format(
      "must be a pickle of plain data, but it wants to call {}, which is never done, at byte {}",
      shown, operation_));
}

}  // namespace foretrace
