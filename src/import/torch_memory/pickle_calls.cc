// Handles the calls that a pickle asks for. Nearly all of them are rejected.

#include <fmt/core.h>

#include "foretrace/error.h"
#include "import/torch_memory/pickle_machine.h"

namespace foretrace {

namespace {

enum class Callable : std::uint8_t { dict, default_dict, list, factory };

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
    case 'i': {
      const std::string_view module = take_line();
      refuse_call(fmt::format("{}.{}", module, take_line()));
    }
    case 'o':
    case 0x81:
    case 0x92:
      refuse_call("a class to make an object of it");
    case 'b':
      refuse_call("__setstate__ of an object");
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
  refuse_call(full);
}

/// Runs a call. Only calls that make an empty dict, or a set from one list, are allowed.
void PickleMachine::reduce() {
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
